//! A run in the form that charts and pages need, and the data of the bar charts before any layout: groups of
//! rows from one or several runs.

use std::collections::HashMap;

use benchgate_core::model::{Metric, SideName, Unit};
use benchgate_core::record::{BenchmarkRecord, ProcessRecord, RunFile, SideRecord};
use benchgate_gate::{Comparison, Latency, Typical};

use super::super::backends::{BackendRow, BackendTable, CompileTime, IREE, times};
use super::super::human::quantity;

/// The backend or side that a bar belongs to, which determines its color. A side of a comparison has IREE's
/// color, whichever tool measured it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    Iree,
    IreeBase,
    Other,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bar {
    pub(super) label: String,
    pub(super) who: Who,
    /// `None` if nothing was measured; `text` then has the reason.
    pub(super) value: Option<f64>,
    /// Values of the fastest and the slowest process.
    pub(super) range: Option<(f64, f64)>,
    pub(super) text: String,
}

/// Rows that are grouped because they do the same work.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Group {
    pub(super) title: String,
    pub(super) bars: Vec<Bar>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Chart {
    pub(super) title: &'static str,
    pub(super) subtitle: &'static str,
    pub(super) groups: Vec<Group>,
    /// True if bars are ratios, which start at one on a logarithmic scale.
    pub(super) ratios: bool,
}

const UNMEASURED: &str = "not measured";

/// One of IREE's measured rows in a run.
struct Own<'a> {
    group: String,
    label: String,
    who: Who,
    side: SideName,
    benchmark: &'a BenchmarkRecord,
}

/// Returns a run's own benchmarks, without those of other backends, on both sides.
fn own(drawn: &DrawnRun, several: bool) -> Vec<Own<'_>> {
    let (name, run) = (drawn.name.as_str(), &drawn.file);
    let paired = run.sides.len() > 1;
    let ours = is_ours(run);
    let alone = is_alone(run, several);
    let mut rows = Vec::new();
    // Both sides of a benchmark are next to each other, in the order in which benchmarks first appear.
    let mut order: Vec<&str> = Vec::new();
    let mut places: HashMap<&str, Vec<(SideName, &BenchmarkRecord)>> = HashMap::new();
    for side in &run.sides {
        for benchmark in &side.benchmarks {
            let place = places.entry(benchmark.name.as_str()).or_default();
            if place.is_empty() {
                order.push(&benchmark.name);
            }
            place.push((side.name, benchmark));
        }
    }
    for benchmark_name in order {
        for &(side, benchmark) in places.get(benchmark_name).into_iter().flatten() {
            let (group, label) = match (ours, paired, several) {
                _ if alone => placed(benchmark, name),
                (false, true, true) => (benchmark_name.to_owned(), format!("{side} ({name})")),
                (false, true, false) => (benchmark_name.to_owned(), side.to_string()),
                (false, false, _) => (benchmark_name.to_owned(), name.to_owned()),
                (true, true, true) => (benchmark_name.to_owned(), format!("{IREE} {side} ({name})")),
                (true, true, false) => (benchmark_name.to_owned(), format!("{IREE} {side}")),
                (true, false, true) => (benchmark_name.to_owned(), format!("{IREE} ({name})")),
                (true, false, false) => (benchmark_name.to_owned(), IREE.to_owned()),
            };
            rows.push(Own {
                group,
                label,
                who: match side {
                    _ if !ours && !paired => Who::Other,
                    SideName::Base => Who::IreeBase,
                    SideName::Head => Who::Iree,
                },
                side,
                benchmark,
            });
        }
    }
    rows
}

/// Returns whether benchgate made the run. Another tool's file names no toolchain and has no stages.
fn is_ours(run: &RunFile) -> bool {
    let of_side = |side: &SideRecord| {
        side.toolchain.is_some() || side.benchmarks.iter().any(|benchmark| !benchmark.stages.is_empty())
    };
    run.sides.iter().any(of_side)
}

/// Returns whether a benchmark has no other side or backend; the benchmarks of a model are then grouped.
fn is_alone(run: &RunFile, several: bool) -> bool {
    !several && run.sides.len() == 1 && run.backends.is_empty()
}

/// Returns group and label of a benchmark that has no other side or backend: its name up to the model's name,
/// and the rest.
fn placed(benchmark: &BenchmarkRecord, run: &str) -> (String, String) {
    let name = &benchmark.name;
    let model = benchmark.labels.get("model").map(|model| format!("{model}/"));
    let split = model.and_then(|model| Some(name.find(&model)? + model.len()));
    match split.map(|at| name.split_at(at)) {
        Some((group, label)) if !label.is_empty() => {
            (group.trim_end_matches('/').to_owned(), label.to_owned())
        }
        _ => (run.to_owned(), name.clone()),
    }
}

/// Returns the rows of other backends with the group that each belongs to: the benchmark that does the same
/// work, otherwise a separate group.
fn other_backends(drawn: &DrawnRun, several: bool) -> Vec<(String, String, BackendRow)> {
    let (name, run) = (drawn.name.as_str(), &drawn.file);
    let mut rows = Vec::new();
    // The backends in another tool's file are its own benchmarks.
    if run.backends.is_empty() {
        return rows;
    }
    for row in BackendTable::new(drawn).rows.into_iter().filter(|row| row.backend != IREE) {
        let first =
            run.backends.iter().find(|record| record.model == row.model).and_then(|r| r.benchmarks.first());
        let group = match first {
            Some(first) if row.work() == "eval" => first.clone(),
            _ => format!("{}, {}", row.model, row.work()),
        };
        let label = if several { format!("{} ({name})", row.backend) } else { row.backend.clone() };
        rows.push((group, label, row));
    }
    rows
}

/// Groups in the order of their first bar.
#[derive(Default)]
struct Groups {
    groups: Vec<Group>,
    place: HashMap<String, usize>,
}

impl Groups {
    fn put(&mut self, title: String, bar: Bar) {
        let Self { groups, place } = self;
        let at = *place.entry(title).or_insert_with_key(|title| {
            groups.push(Group { title: title.clone(), bars: Vec::new() });
            groups.len() - 1
        });
        groups[at].bars.push(bar);
    }
}

fn latency_bar(label: String, who: Who, latency: Option<Latency>, why: Option<&str>) -> Bar {
    let text = match latency {
        Some(latency) => quantity(latency.typical, &Unit::Nanoseconds),
        None => why.unwrap_or(UNMEASURED).to_owned(),
    };
    Bar {
        label,
        who,
        value: latency.map(|latency| latency.typical),
        range: latency.filter(|latency| latency.processes > 1).map(|latency| (latency.least, latency.most)),
        text,
    }
}

pub(crate) fn latency(runs: &[DrawnRun]) -> Chart {
    let mut groups = Groups::default();
    let several = runs.len() > 1;
    for run in runs {
        for row in own(run, several) {
            let latency = run.latency(row.side, row.benchmark);
            let bar = latency_bar(row.label, row.who, latency, row.benchmark.outcome.why.as_deref());
            groups.put(row.group, bar);
        }
    }
    for run in runs {
        for (group, label, row) in other_backends(run, several) {
            groups.put(group, latency_bar(label, Who::Other, row.latency, row.why.as_deref()));
        }
    }
    Chart {
        title: "Latency",
        subtitle: "the bar is the typical process, the whisker spans all processes; shorter is better",
        groups: groups.groups,
        ratios: false,
    }
}

pub(super) fn compile_time(runs: &[DrawnRun]) -> Chart {
    let mut groups = Groups::default();
    let several = runs.len() > 1;
    let mut bar = |group: String, label: String, who, compile: Option<CompileTime>| {
        // Eager mode does not compile, so it has no bar.
        if let Some(compile) = compile {
            let (value, text) = (Some(compile.seconds * 1e9), compile.text());
            groups.put(group, Bar { label, who, value, range: None, text });
        }
    };
    for run in runs {
        for row in own(run, several) {
            bar(row.group, row.label, row.who, CompileTime::for_benchmark(row.benchmark));
        }
    }
    for run in runs {
        for (group, label, row) in other_backends(run, several) {
            bar(group, label, Who::Other, row.compile);
        }
    }
    Chart {
        title: "Compile time",
        subtitle: "until the end of the first call; for IREE, the time of iree-compile (in an earlier run if cached)",
        groups: groups.groups,
        ratios: false,
    }
}

/// Returns whether a bar shows eager: `eager`, `eager (run)`, `cpu/eager`.
fn is_eager(label: &str) -> bool {
    label.starts_with("eager") || label.rsplit('/').next() == Some("eager")
}

/// Returns speeds relative to eager if it was measured, otherwise relative to the base side, otherwise to the
/// first row.
pub(super) fn speedup(runs: &[DrawnRun]) -> Chart {
    // Benchmarks that do different work are not compared, unless one of them is eager.
    let alone = matches!(runs, [run] if is_alone(&run.file, false));
    let mut groups = Vec::new();
    for group in latency(runs).groups {
        let measured = |bar: &&Bar| bar.value.is_some();
        let reference = group
            .bars
            .iter()
            .find(|bar| is_eager(&bar.label) && bar.value.is_some())
            .or_else(|| group.bars.iter().filter(measured).find(|bar| bar.who == Who::IreeBase && !alone))
            .or_else(|| group.bars.iter().filter(|_| !alone).find(measured));
        let Some((name, base)) = reference.and_then(|bar| Some((bar.label.clone(), bar.value?))) else {
            continue;
        };
        let bars: Vec<Bar> = group
            .bars
            .iter()
            .filter(|bar| bar.label != name)
            .filter_map(|bar| {
                let ratio = base / bar.value?;
                let range = bar.range.map(|(least, most)| (base / most, base / least));
                Some(Bar { value: Some(ratio), range, text: times(Some(ratio)), ..bar.clone() })
            })
            .collect();
        if !bars.is_empty() {
            groups.push(Group { title: format!("{} against {name}", group.title), bars });
        }
    }
    Chart {
        title: "Speed-up",
        subtitle: "how many times as fast, the whisker spans all processes; right of 1 × is faster",
        groups,
        ratios: true,
    }
}

/// A run with its display name.
#[derive(Debug, Clone)]
pub struct DrawnRun {
    pub name: String,
    pub file: RunFile,
    /// Comparison of the two sides, if there are two and the run is complete.
    pub comparison: Option<Comparison>,
    /// Latencies in the comparison, by benchmark.
    shown: HashMap<String, Typical>,
}

impl DrawnRun {
    pub fn new(name: impl Into<String>, file: RunFile, comparison: Option<Comparison>) -> Self {
        let shown = comparison.as_ref().map(shown_latencies).unwrap_or_default();
        Self { name: name.into(), file, comparison, shown }
    }

    /// Returns the latency of a benchmark on a side: the value that the comparison shows, so that charts and
    /// tables agree; without a comparison, the location of its processes.
    pub(crate) fn latency(&self, side: SideName, benchmark: &BenchmarkRecord) -> Option<Latency> {
        let worked = benchmark.processes.iter().filter(|process| process.failure.is_none());
        let measured = Latency::of_processes(worked.filter_map(latency_samples))?;
        let shown = self.shown.get(&benchmark.name).and_then(|shown| match side {
            SideName::Base => shown.base,
            SideName::Head => shown.head,
        });
        Some(shown.map_or(measured, |typical| measured.around(typical)))
    }
}

/// Returns the latencies that a comparison shows, by benchmark.
pub(crate) fn shown_latencies(comparison: &Comparison) -> HashMap<String, Typical> {
    let latencies = comparison.rows.iter().filter(|row| {
        row.estimate.is_some()
            && row.metric.as_ref().is_some_and(|metric| metric.name == Metric::LATENCY.name)
    });
    latencies.map(|row| (row.benchmark.to_string(), row.typical)).collect()
}

fn latency_samples(process: &ProcessRecord) -> Option<&[f64]> {
    process.samples.get(Metric::LATENCY.name.as_ref())
}
