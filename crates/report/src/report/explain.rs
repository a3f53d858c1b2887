//! Reports an explanation, for people and for programs.

use serde_json::{Value, json};

use benchgate_core::model::{Metric, MetricKind, Unit, Verdict, counted};
use benchgate_core::record::Number;
use benchgate_gate::{
    CodeChange, Explanation, KernelChange, KernelState, Machine, Reason, Row, kernel_counts,
};

use super::document::{self, Block, Rules, Table, TerminalOptions, Text};
use super::human::change_of;
use super::{RowView, percent, quantity};

/// Share of the latency below which the change of a kernel is not listed but only counted.
const WORTH_A_LINE: f64 = 0.005;
/// Maximum number of kernels that are listed because their code changed; the others are only counted.
const KERNELS: usize = 5;

/// Renders explanations as text. `all` shows every kernel.
pub fn explanations(explanations: &[Explanation], options: TerminalOptions) -> String {
    let blocks: Vec<Block<'_>> = explanations.iter().flat_map(|one| blocks(one, options.all)).collect();
    document::terminal(&blocks, TerminalOptions { all: true, ..options })
}

fn blocks(explanation: &Explanation, all: bool) -> Vec<Block<'_>> {
    let rows = explanation.rows.iter().filter(|row| is_shown(row));
    let mut before: Vec<Text<'_>> = rows.map(sentence).map(Text::named).collect();
    for (what, reasons) in [("time per kernel", &explanation.unprofiled), ("code", &explanation.unread)] {
        for (side, why) in ["base", "head"].iter().zip(reasons) {
            let said = |why: &'_ String| format!("no {what} of {side}: {why}");
            before.extend(why.as_ref().map(said).map(Text::named));
        }
    }
    let (table, mut after) = kernels(explanation, all);
    after.extend(code(explanation, all));
    after.extend(explanation.counts.iter().map(|count| {
        let of = |count: Option<u64>| count.map_or_else(|| "–".to_owned(), |count| count.to_string());
        let text = Text::from("compiler: ").name(&count.name);
        text.say(format!(" {} → {}", of(count.base), of(count.head)))
    }));
    for (side, machine) in ["base", "head"].iter().zip(&explanation.machine) {
        after.extend(machine.iter().map(|machine| format!("machine, {side}: {}", state(machine)).into()));
    }
    let lints = explanation.row(&Metric::LATENCY.name).map(|row| row.lints.iter()).into_iter().flatten();
    after.extend(lints.map(|lint| Text::from(format!("{}: ", lint.code)).name(&lint.detail)));
    let title = Block::Title(Text::named(explanation.benchmark.as_str()));
    let table = table.map(|table| Block::Table(vec![table]));
    [title, Block::list(before)].into_iter().chain(table).chain([Block::list(after)]).collect()
}

/// Returns whether a row is shown: latency always, other metrics if they changed.
fn is_shown(row: &Row) -> bool {
    let latency = row.metric.as_ref().is_none_or(|metric| metric.name == Metric::LATENCY.name);
    let exact = row.metric.as_ref().is_some_and(|metric| metric.kind == MetricKind::Exact);
    latency
        || matches!(row.verdict, Verdict::Regressed | Verdict::Improved | Verdict::Diverged)
        || (exact && row.estimate.as_ref().is_some_and(|estimate| estimate.ratio != 1.0))
}

/// Formats `latency regressed: 1.000 → 1.500 ms, +50 %`.
fn sentence(row: &Row) -> String {
    let Some(metric) = &row.metric else {
        return format!("{}: {}", row.verdict, super::words::reason(row).sentence);
    };
    let cells = RowView::new(row);
    let (values, effect) = (cells.values(), cells.effect().unwrap_or_default());
    let identical = if row.reason == Reason::Identical { "identical" } else { "" };
    let parts = [values.as_str(), &effect, identical].into_iter().filter(|part| !part.is_empty());
    format!("{} {}: {}", metric.name, row.verdict, parts.collect::<Vec<_>>().join(", "))
}

/// Returns the table of kernels, and sentences about those that are not in it.
fn kernels(explanation: &Explanation, all: bool) -> (Option<Table<'_>>, Vec<Text<'_>>) {
    let mut said = Vec::new();
    if explanation.kernels.is_empty() {
        return (None, said);
    }
    let latency = explanation.row(&Metric::LATENCY.name).and_then(|row| row.typical.base);
    let compared = explanation.compares_kernels();
    let moved = explanation.latency_delta().filter(|_| compared && latency_moved(explanation));
    let worth = |kernel: &&KernelChange| {
        all || latency.is_none_or(|latency| kernel.delta().abs() >= WORTH_A_LINE * latency)
    };
    let shown: Vec<&KernelChange> = explanation.kernels.iter().filter(worth).collect();
    let hidden = explanation.kernels.len() - shown.len();
    if hidden > 0 {
        let kernels = counted(hidden, "kernel");
        let verb = match (compared, hidden) {
            (true, _) => "moved by",
            (false, 1) => "takes",
            (false, _) => "take",
        };
        said.push(format!("{kernels} {verb} less than {} of the latency", percent(WORTH_A_LINE)).into());
    }
    let sum = |side: fn(&KernelChange) -> Option<f64>| -> Option<f64> {
        let times: Vec<f64> = explanation.kernels.iter().filter_map(side).collect();
        (!times.is_empty()).then(|| times.iter().sum())
    };
    let base = sum(|kernel| Some(kernel.base.as_ref()?.nanoseconds));
    let head = sum(|kernel| Some(kernel.head.as_ref()?.nanoseconds));
    let together = match (base, head) {
        (Some(one), None) | (None, Some(one)) => quantity(one, &Unit::Nanoseconds),
        _ => change_of(base, head, &Unit::Nanoseconds),
    };
    let is_rest = base.or(head).zip(latency).is_some_and(|(kernels, latency)| kernels < latency);
    let rest = if is_rest { "; the rest of the latency is outside of kernels" } else { "" };
    said.push(format!("kernels together: {together}{rest}").into());
    ((!shown.is_empty()).then(|| table(&shown, compared, moved)), said)
}

/// Describes how many kernels have different code than at base, and in which facts each of them
/// differs.
fn code(explanation: &Explanation, all: bool) -> Vec<Text<'_>> {
    let Some(counts) = kernel_counts(explanation.code.iter().filter_map(CodeChange::state)) else {
        return Vec::new();
    };
    let mut said = vec![Text::from(format!("code: {counts}"))];
    let changed = || {
        explanation.code.iter().filter_map(|change| {
            let state = change.state().filter(|state| *state != KernelState::Identical)?;
            Some((change, state))
        })
    };
    let shown = if all { usize::MAX } else { KERNELS };
    said.extend(changed().take(shown).map(|(change, state)| {
        let facts = change
            .differing()
            .into_iter()
            .map(|(metric, base, head)| format!("{} {}", metric.name, change_of(base, head, &metric.unit)));
        let text = Text::from("code of ").name(change.name()).say(format!(" {}", state.as_str()));
        match facts.collect::<Vec<_>>() {
            facts if facts.is_empty() || state != KernelState::Changed => text,
            facts => text.say(format!(": {}", facts.join(", "))),
        }
    }));
    let more = changed().count().saturating_sub(shown);
    let kernels = counted(more, "more kernel");
    said.extend((more > 0).then(|| format!("{kernels} with different code; --all shows them").into()));
    said
}

/// Returns whether the change of the latency can be divided among kernels.
fn latency_moved(explanation: &Explanation) -> bool {
    let row = explanation.row(&Metric::LATENCY.name);
    row.is_some_and(|row| matches!(row.verdict, Verdict::Regressed | Verdict::Improved))
}

/// Returns the table of kernels; if only one side was profiled, with its times and without changes.
fn table<'a>(kernels: &[&'a KernelChange], compared: bool, moved: Option<f64>) -> Table<'a> {
    let mut table = Table::new(&["kernel"], &["calls", "time", "change", "share of"], Rules::Header);
    table.columns[4].title.push("the change".into());
    for kernel in kernels {
        let time =
            |side: &Option<benchgate_core::model::Kernel>| side.as_ref().map(|kernel| kernel.nanoseconds);
        let shown = |time| quantity(time, &Unit::Nanoseconds);
        let what = match (time(&kernel.base), time(&kernel.head)) {
            (Some(base), Some(head)) => change_of(Some(base), Some(head), &Unit::Nanoseconds),
            (Some(base), None) if compared => format!("{}, gone", shown(base)),
            (None, Some(head)) if compared => format!("{}, new", shown(head)),
            (base, head) => head.or(base).map(shown).unwrap_or_default(),
        };
        let sign = match kernel.delta() {
            delta if delta < 0.0 => "−",
            delta if delta > 0.0 => "+",
            _ => "",
        };
        let change = if compared { format!("{sign}{}", shown(kernel.delta().abs())) } else { String::new() };
        let share = moved.map(|moved| percent(kernel.delta() / moved)).unwrap_or_default();
        table.rows.push(vec![
            Text::named(kernel.name()).into(),
            calls(kernel).into(),
            what.into(),
            change.into(),
            share.into(),
        ]);
    }
    table.without_empty_columns()
}

/// Formats `1`, or `1 → 2` if the kernel is launched more often.
fn calls(kernel: &KernelChange) -> String {
    let of = |side: &Option<benchgate_core::model::Kernel>| side.as_ref().map(|kernel| kernel.calls);
    match (of(&kernel.base), of(&kernel.head)) {
        (Some(base), Some(head)) if base != head => change_of(Some(base), Some(head), &Unit::Count),
        (base, head) => head.or(base).map(|calls| quantity(calls, &Unit::Count)).unwrap_or_default(),
    }
}

/// Formats `16 processes, 3 disturbed by other programs, 54 °C`.
fn state(machine: &Machine) -> String {
    let mut parts = vec![counted(machine.processes as usize, "process")];
    let states = [
        (machine.disturbed, "disturbed by other programs"),
        (machine.throttled, "throttled"),
        (machine.power_capped, "at the power limit"),
    ];
    parts
        .extend(states.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")));
    if states.iter().all(|(count, _)| *count == 0) {
        parts.push("undisturbed".to_owned());
    }
    parts.extend(machine.temperature.map(|celsius| format!("{celsius:.0} °C")));
    parts.join(", ")
}

/// Renders JSON for programs: a list of benchmarks.
pub fn explanations_json(explanations: &[Explanation]) -> String {
    document::json(&explanations.iter().map(benchmark_json).collect::<Vec<Value>>())
}

fn benchmark_json(explanation: &Explanation) -> Value {
    let metrics = explanation.rows.iter().filter_map(|row| {
        let metric = row.metric.as_ref()?;
        Some(json!({
            "metric": metric.name,
            "unit": metric.unit.as_str(),
            "verdict": row.verdict,
            "base": row.typical.base.map(Number),
            "head": row.typical.head.map(Number),
            "ratio": row.estimate.as_ref().map(|estimate| Number(estimate.ratio)),
        }))
    });
    let kernels = explanation.kernels.iter().map(|kernel| {
        let [base, head] = [kernel.base.as_ref(), kernel.head.as_ref()];
        let other_name = base.map(|base| base.name.as_str()).filter(|name| *name != kernel.name());
        let json = json!({
            "kernel": kernel.name(),
            "base_kernel": other_name,
            "base_ns": base.map(|kernel| Number(kernel.nanoseconds)),
            "head_ns": head.map(|kernel| Number(kernel.nanoseconds)),
            "base_calls": base.map(|kernel| Number(kernel.calls)),
            "head_calls": head.map(|kernel| Number(kernel.calls)),
        });
        document::without_null(json, &["base_kernel"])
    });
    let code = explanation.code.iter().filter_map(|change| {
        // A fact that one side lacks is absent there.
        let facts = change.differing().into_iter().map(|(metric, base, head)| {
            let json = json!({ "metric": metric.name, "base": base.map(Number), "head": head.map(Number) });
            document::without_null(json, &["base", "head"])
        });
        let facts: Vec<Value> = facts.collect();
        Some(json!({ "kernel": change.name(), "state": change.state()?.as_str(), "facts": facts }))
    });
    let code: Vec<Value> = code.collect();
    let counts = explanation.counts.iter();
    let counts = counts.map(|it| json!({ "name": it.name, "base": it.base, "head": it.head }));
    let [base_machine, head_machine] = explanation.machine.each_ref().map(|machine| {
        machine.as_ref().map(|machine| {
            json!({
                "processes": machine.processes,
                "disturbed": machine.disturbed,
                "throttled": machine.throttled,
                "power_capped": machine.power_capped,
                "temperature_celsius": machine.temperature.map(Number),
            })
        })
    });
    let [base_unprofiled, head_unprofiled] = &explanation.unprofiled;
    let json = json!({
        "benchmark": explanation.benchmark.as_str(),
        "metrics": metrics.collect::<Vec<Value>>(),
        "kernels": kernels.collect::<Vec<Value>>(),
        "code": (!code.is_empty()).then_some(code),
        "counts": counts.collect::<Vec<Value>>(),
        "base_unprofiled": base_unprofiled,
        "head_unprofiled": head_unprofiled,
        "base_machine": base_machine,
        "head_machine": head_machine,
    });
    let optional = ["code", "base_unprofiled", "head_unprofiled", "base_machine", "head_machine"];
    document::without_null(json, &optional)
}

#[cfg(test)]
mod tests {
    use super::*;
    use benchgate_core::model::{Benchmark, Kernel, MetricSeries, Process, Profile, Run, Series};
    use benchgate_gate::{CompareOptions, Policy, compare, explain};

    fn run(latency: f64, profiled: bool) -> Run {
        let process = |number: u32| Process {
            samples: (0..3).map(|at| latency * (1.0 + f64::from(3 * number + at) * 0.000_137)).collect(),
            ..Process::default()
        };
        let series = Series::Processes((0..6).map(process).collect());
        let kernel =
            Kernel { name: "main_dispatch_1_softmax".to_owned(), calls: 1.0, nanoseconds: latency * 0.9 };
        let benchmark = Benchmark {
            metrics: vec![MetricSeries { metric: Metric::LATENCY, series }],
            profile: profiled.then(|| Profile { kernels: vec![kernel], ..Profile::default() }),
            ..Benchmark::new("m/cpu/main")
        };
        Run { benchmarks: vec![benchmark], ..Run::default() }
    }

    fn explained(base: &Run, head: &Run) -> String {
        let comparison = compare(base, head, &Policy::default(), &CompareOptions::default());
        explanations(&explain(base, head, &comparison), TerminalOptions { all: true, ..Default::default() })
    }

    #[test]
    fn without_a_profile_of_base_no_kernel_is_called_new() {
        let text = explained(&run(1e6, false), &run(2e6, true));
        assert!(
            text.contains("main_dispatch_1_softmax ") && !text.contains("new") && !text.contains("share"),
            "{text}"
        );
        let both = explained(&run(1e6, true), &run(2e6, true));
        assert!(both.contains("main_dispatch_1_softmax ") && both.contains("900.0 → 1800 µs"), "{both}");
        assert!(both.contains("share of") && both.contains("the change"), "{both}");
    }
}
