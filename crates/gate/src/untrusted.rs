//! Compares results that untrusted code could have written, because the job of a pull request made them.
//! Facts that are known without the result come from elsewhere, and facts from the result alone are not a
//! reason to pass.

use std::collections::{BTreeMap, BTreeSet};

use benchgate_core::model::{
    Benchmark, BenchmarkName, Lint, LintCode, Metric, Outcome, Run, Series, SideName, Verdict, Verification,
    VerifyCode,
};

use super::compare::{CompareOptions, compare, waive};
use super::rules::Rules;
use super::{Comparison, Policy, Reason, Row, comparison, looks, status, workload};

/// A benchmark that the base's configuration declares, so that the result must contain it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    pub benchmark: BenchmarkName,
    /// The benchmark's name in the base's policy.
    pub judged_as: BenchmarkName,
    /// The device on which its module runs.
    pub device: Option<String>,
    /// True if it runs on a device other than the CPU.
    pub on_gpu: bool,
    /// True if there are reference outputs, so that head's outputs can be verified.
    pub has_reference: bool,
    /// True if the configuration names reference outputs, so that a verification without any contradicts it.
    pub names_reference: bool,
    /// True if its time is judged.
    pub is_timed: bool,
    /// The metrics that a command prints for it; `None` for a benchmark of a module, whose metrics are known.
    pub printed: Option<Vec<String>>,
}

/// Compares like [`compare`], for a result that is not trusted: every expected benchmark must be measured on
/// both sides, in all blocks up to a look of the schedule, and equal digests are ignored.
pub fn compare_untrusted(
    base: &Run,
    head: &Run,
    expected: &[Expected],
    policy: &Policy,
    options: &CompareOptions,
) -> Comparison {
    let [base, head] = &[base, head].map(without_identity);
    let mut comparison = compare(base, head, policy, options);
    let rules = Rules::new(policy, &options.today).of_runs(base, head);
    let (of_base, of_head) = (base.by_name(), head.by_name());
    let mut rows: BTreeMap<BenchmarkName, Vec<usize>> = BTreeMap::new();
    for (index, row) in comparison.rows.iter().enumerate() {
        rows.entry(row.benchmark.clone()).or_default().push(index);
    }
    for row in &mut comparison.rows {
        let sides = [&of_base, &of_head].map(|side| side.get(&row.benchmark).copied());
        if let Some(what) = left_out(row, sides, policy).filter(|_| row.fatal) {
            row.lints.push(Lint::new(LintCode::IncompleteBlocks, what.clone()));
            if matches!(row.verdict, Verdict::Pass | Verdict::Improved) {
                (row.verdict, row.reason) =
                    (Verdict::Inconclusive, Reason::too_little("incomplete blocks", what));
            }
        }
    }
    for expected in expected {
        let name = &expected.benchmark;
        let found = rows.get(name).map_or(&[][..], Vec::as_slice);
        for &index in found {
            insist(&mut comparison.rows[index], &rules);
        }
        let sides = (of_base.get(name).copied(), of_head.get(name).copied());
        let has = |metric: &Metric| {
            found.iter().any(|&index| {
                comparison.rows[index].metric.as_ref().is_some_and(|known| known.name == metric.name)
            })
        };
        let mut more = absent(expected, sides, has, &rules);
        more.iter_mut().for_each(|row| waive(row, &rules, None));
        comparison.rows.extend(more);
    }
    (comparison.verdict, comparison.exit_code) = comparison::overall(&comparison.rows, &policy.fail_on);
    comparison
}

/// Returns a run without its artifacts, which are not trusted: its writer could have copied the other side's
/// digests.
fn without_identity(run: &Run) -> Run {
    let mut run = run.clone();
    for artifact in run.benchmarks.iter_mut().filter_map(|benchmark| benchmark.artifact.as_mut()) {
        artifact.execution_sha256.clear();
    }
    run
}

/// Checks that no block of a metric is left out: blocks must be complete and consecutive from the first one,
/// and the schedule must have a look after this number of blocks. Otherwise the writer of the result could
/// omit slow blocks.
fn left_out(row: &Row, sides: [Option<&Benchmark>; 2], policy: &Policy) -> Option<String> {
    let metric = row.metric.as_ref()?;
    // Compilations form pairs, and processes form quadruples.
    let a_side = if metric.is_compile_time() { 1 } else { 2 };
    let mut blocks: BTreeMap<u32, [BTreeSet<u8>; 2]> = BTreeMap::new();
    for (at, side) in sides.into_iter().enumerate() {
        let Series::Processes(processes) = &side?.metric(&metric.name)?.series else { return None };
        for slot in processes.iter().filter_map(|process| process.slot) {
            blocks.entry(slot.block).or_default()[at].insert(slot.slot);
        }
    }
    let cut = (0..).zip(&blocks).find(|(expected, (block, [base, head]))| {
        *block != expected || base.len() != a_side || head.len() != a_side || !base.is_disjoint(head)
    });
    if let Some((expected, _)) = cut {
        return Some(format!("the result lacks processes of block {}", expected + 1));
    }
    let count = u32::try_from(blocks.len()).unwrap_or(u32::MAX);
    (count > 0 && !looks(policy, metric).points().contains(&count)).then(|| {
        format!(
            "the result ends after {}, but the schedule has no look at that point",
            benchgate_core::model::counted(blocks.len(), "block")
        )
    })
}

/// Makes the row of an expected benchmark fatal if it has no comparison, whatever reason the result gives.
fn insist(row: &mut Row, rules: &Rules<'_>) {
    if row.verdict != Verdict::Missing || row.fatal || row.waiver.is_some() {
        return;
    }
    row.fatal = match &row.metric {
        None => true,
        // A cached compilation has no time, so one side often lacks it.
        Some(metric) => !metric.is_compile_time() && rules.metric(&row.benchmark, metric).fatal,
    };
    waive(row, rules, None);
}

/// Returns rows for benchmarks that neither side of the result has.
fn absent(
    expected: &Expected,
    sides: (Option<&Benchmark>, Option<&Benchmark>),
    has: impl Fn(&Metric) -> bool,
    rules: &Rules<'_>,
) -> Vec<Row> {
    let name = &expected.benchmark;
    let (base, head) = match sides {
        (None, None) => {
            let reason =
                "the base's configuration declares this benchmark, but the result does not contain it"
                    .to_owned();
            let reason = Reason::NotMeasured(Outcome::Skipped { reason });
            return vec![missing(name, None, reason)];
        }
        (Some(base), Some(head)) => (base, head),
        // The comparison itself has a row for it.
        _ => return Vec::new(),
    };
    if !base.outcome.is_ok() || !head.outcome.is_ok() {
        return Vec::new();
    }
    let mut rows = Vec::new();
    if let Some(printed) = &expected.printed {
        let is_there = |metric: &String| [base, head].iter().any(|side| side.metric(metric).is_some());
        for metric in printed.iter().filter(|metric| !is_there(metric)) {
            let reason =
                Reason::too_little("not in the result", format!("neither side of the result has {metric}"));
            rows.push(missing(name, None, reason));
        }
    }
    for metric in Metric::BUILT_IN.into_iter().filter(|_| expected.printed.is_none()) {
        let rule = rules.metric(name, &metric);
        if rule.fatal && is_measured(&metric, expected) && !has(&metric) {
            let reason =
                Reason::too_little("not in the result", "neither side of the result has this metric");
            rows.push(Row { policy: Some(rule), ..missing(name, Some(metric), reason) });
        }
    }
    for (side, benchmark) in [(SideName::Base, base), (SideName::Head, head)] {
        if expected.printed.is_none() && workload::recorded(benchmark).is_none() {
            let why = format!("the result does not state with which inputs and settings {side} was measured");
            rows.push(missing(name, None, Reason::too_little("unknown workload", why)));
        }
    }
    let verified = |benchmark: &Benchmark| {
        let claims = |check: &Verification| check.code == VerifyCode::Pass || expected.names_reference;
        let fails =
            |check: &Verification| matches!(check.code, VerifyCode::Fail | VerifyCode::ExceptionRaised);
        benchmark
            .verification
            .as_ref()
            .is_some_and(|check| fails(check) || !claims(check) || !check.outputs.is_empty())
    };
    // Without its own reference, a model's outputs are compared with base's. Equal modules whose outputs differ from call
    // to call are not.
    let is_random = |check: &Verification| {
        let code_of_base = base.verification.as_ref().map(|of_base| of_base.code);
        check.code == VerifyCode::NondeterministicEagerRun
            && code_of_base == Some(check.code)
            && status::same_module(base, head)
    };
    let is_compared = |check: &Verification| {
        !check.code.has_no_reference()
            || is_random(check)
            || !check.outputs.is_empty()
            || !check.against_base.is_empty()
    };
    let is_unknown = expected.printed.is_none()
        && expected.is_timed
        && !head.verification.as_ref().is_some_and(is_compared);
    if (expected.has_reference && !verified(head)) || is_unknown {
        let reason = Reason::too_little(
            status::NOT_VERIFIED,
            "the result does not state whether head's outputs are right",
        );
        rows.push(missing(name, None, reason));
    }
    rows
}

/// Returns whether every benchmark that is measured has this metric. A cached compilation has no time.
fn is_measured(metric: &Metric, expected: &Expected) -> bool {
    match &*metric.name {
        name if metric.is_compile_time() || name == Metric::THROUGHPUT.name => false,
        name if name == Metric::PEAK_DEVICE_MEMORY.name => expected.on_gpu,
        name if name == Metric::VMFB_SIZE.name || name == Metric::DISPATCH_COUNT.name => true,
        _ => expected.is_timed,
    }
}

fn missing(name: &BenchmarkName, metric: Option<Metric>, reason: Reason) -> Row {
    Row { metric, ..Row::new(name.clone(), Verdict::Missing, reason) }
}
