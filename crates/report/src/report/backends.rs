//! Compares IREE with other backends in a table for people, with one row for each. The table is
//! informational and has no verdict.

use std::collections::HashMap;

use benchgate_core::model::{Metric, SideName, Stage, Unit, Verification};
use benchgate_core::record::{
    BackendRecord, BenchmarkRecord, OutcomeRecord, OutcomeStatus, SideRecord, StageStatus,
};
use benchgate_gate::Latency;

use super::DrawnRun;
use super::document::{self, Block, Cell, Column, Table, TerminalOptions, Text, Tone};
use super::human::quantity;

/// The name of IREE's own rows.
pub(super) const IREE: &str = "iree";

/// The time that a compiler took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CompileTime {
    pub seconds: f64,
    /// True if the module was compiled in an earlier run and reused.
    pub cached: bool,
}

impl CompileTime {
    /// Returns the compile time of `iree-compile`, or of the compiler in another tool's file.
    pub(super) fn for_benchmark(benchmark: &BenchmarkRecord) -> Option<Self> {
        let Some(stage) = benchmark.stages.iter().find(|stage| stage.stage == Stage::Compile) else {
            return Self::in_samples(benchmark);
        };
        match stage.status {
            StageStatus::Ok => Some(Self { seconds: stage.seconds.0, cached: false }),
            StageStatus::Cached => stage.made_in_seconds.map(|made| Self { seconds: made.0, cached: true }),
            StageStatus::Failed | StageStatus::Skipped => None,
        }
    }

    fn in_samples(benchmark: &BenchmarkRecord) -> Option<Self> {
        let samples =
            benchmark.processes.iter().filter_map(|it| it.samples.get(Metric::COMPILE_TIME.name.as_ref()));
        let typical = Latency::of_processes(samples)?.typical;
        Some(Self { seconds: typical / 1e9, cached: false })
    }

    /// Formats `1.23 s` or `1.23 s (cached)`.
    pub(super) fn text(self) -> String {
        let cached = if self.cached { " (cached)" } else { "" };
        format!("{}{cached}", quantity(self.seconds * 1e9, &Unit::Nanoseconds))
    }
}

/// The row of one model on one backend. Names and reasons are unescaped.
#[derive(Debug, Clone, PartialEq)]
pub struct BackendRow {
    pub model: String,
    /// `iree`, or the name of another backend.
    pub backend: String,
    /// The target in IREE's rows, the device in rows of other backends.
    pub on: String,
    pub test: String,
    /// Axes that differ from the model's own: `batch 8, bf16`.
    pub axes: String,
    pub latency: Option<Latency>,
    pub compile: Option<CompileTime>,
    /// IREE's speed divided by this row's; above 1, IREE is faster. `None` unless both rows compute the same.
    pub iree_is: Option<f64>,
    /// This row's speed divided by the speed of eager in the same test with the same axes.
    pub over_eager: Option<f64>,
    pub code: Option<&'static str>,
    /// The reason why there is no time.
    pub why: Option<String>,
}

/// All rows, grouped by model in the suite's order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BackendTable {
    pub rows: Vec<BackendRow>,
}

impl BackendTable {
    /// Takes the benchmarks of the head side (or of the only side), each model followed by its other
    /// backends. Models without any other backend are left out.
    pub fn new(run: &DrawnRun) -> Self {
        let file = &run.file;
        let side = file.side(SideName::Head).or(file.sides.first());
        let place: HashMap<&str, (SideName, &BenchmarkRecord)> = side
            .into_iter()
            .flat_map(|side| side.benchmarks.iter().map(|it| (it.name.as_str(), (side.name, it))))
            .collect();
        if file.backends.is_empty() {
            return Self { rows: side.map(|side| of_other_tools(run, side)).unwrap_or_default() };
        }
        // Groups are in the order of their first record.
        let mut groups: Vec<Vec<&BackendRecord>> = Vec::new();
        let mut known: HashMap<&[String], usize> = HashMap::new();
        for record in &file.backends {
            let at = *known.entry(&record.benchmarks).or_insert_with(|| {
                groups.push(Vec::new());
                groups.len() - 1
            });
            groups[at].push(record);
        }
        let mut rows = Vec::new();
        for group in groups {
            let names = group.first().map(|record| record.benchmarks.as_slice()).unwrap_or_default();
            let iree: Vec<(&BenchmarkRecord, Option<Latency>)> = names
                .iter()
                .filter_map(|name| place.get(name.as_str()))
                .map(|(side, benchmark)| {
                    let ok = benchmark.outcome.status == OutcomeStatus::Ok;
                    (*benchmark, run.latency(*side, benchmark).filter(|_| ok))
                })
                .collect();
            rows.extend(iree.iter().map(|(benchmark, latency)| iree_row(benchmark, *latency, &group)));
            let latencies = iree.iter().filter_map(|(_, latency)| *latency);
            let fastest = latencies.min_by(|a, b| a.typical.total_cmp(&b.typical));
            rows.extend(group.iter().map(|record| backend_row(record, fastest, &group)));
        }
        Self { rows }
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// Returns the rows of a file in which another tool timed several backends of a model.
fn of_other_tools(run: &DrawnRun, side: &SideRecord) -> Vec<BackendRow> {
    let backends = side.benchmarks.iter().filter_map(|benchmark| {
        let label = |name: &str| benchmark.labels.get(name).cloned();
        let ok = benchmark.outcome.status == OutcomeStatus::Ok;
        Some(BackendRow {
            model: label("model")?,
            backend: label("backend")?,
            on: label("target").unwrap_or_default(),
            test: label("test").unwrap_or_else(|| "eval".to_owned()),
            axes: [label("function"), label("batch_size").map(|size| format!("batch {size}"))]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join(", "),
            latency: run.latency(side.name, benchmark).filter(|_| ok),
            compile: CompileTime::for_benchmark(benchmark),
            iree_is: None,
            over_eager: None,
            code: code(benchmark.verification.as_ref()),
            why: why(&benchmark.outcome),
        })
    });
    let mut rows: Vec<BackendRow> = backends.collect();
    let key = |row: &BackendRow| (row.model.clone(), row.on.clone(), row.work());
    let eager: HashMap<_, Option<Latency>> =
        rows.iter().filter(|row| row.backend == "eager").map(|row| (key(row), row.latency)).collect();
    for row in rows.iter_mut().filter(|row| row.backend != "eager") {
        row.over_eager = ratio(eager.get(&key(row)).copied().flatten(), row.latency);
    }
    rows
}

fn iree_row(benchmark: &BenchmarkRecord, latency: Option<Latency>, group: &[&BackendRecord]) -> BackendRow {
    let label = |name: &str| benchmark.labels.get(name).cloned().unwrap_or_default();
    let eager = group.iter().find(|record| record.backend == "eager" && is_same_work(record));
    BackendRow {
        model: label("model"),
        backend: IREE.to_owned(),
        on: label("target"),
        test: "eval".to_owned(),
        axes: String::new(),
        latency,
        compile: CompileTime::for_benchmark(benchmark),
        iree_is: None,
        over_eager: eager.and_then(|record| ratio(backend_latency(record), latency)),
        code: code(benchmark.verification.as_ref()),
        why: why(&benchmark.outcome),
    }
}

fn backend_row(record: &BackendRecord, iree: Option<Latency>, group: &[&BackendRecord]) -> BackendRow {
    let latency = backend_latency(record);
    let same_axes = |other: &&&BackendRecord| {
        other.backend == "eager"
            && (&other.test, other.batch_size, &other.dtype, &other.matmul_precision)
                == (&record.test, record.batch_size, &record.dtype, &record.matmul_precision)
    };
    let eager = group.iter().find(same_axes).and_then(|eager| backend_latency(eager));
    let compiles = record.processes.iter().filter_map(|process| process.compile_seconds);
    let compiles: Vec<[f64; 1]> = compiles.map(|seconds| [seconds.0]).collect();
    BackendRow {
        model: record.model.clone(),
        backend: record.backend.clone(),
        on: record.device.clone(),
        test: record.test.clone(),
        axes: axes(record),
        latency,
        compile: Latency::of_processes(compiles.iter().map(<[f64; 1]>::as_slice))
            .map(|it| CompileTime { seconds: it.typical, cached: false }),
        iree_is: is_same_work(record).then(|| ratio(latency, iree)).flatten(),
        over_eager: (record.backend != "eager").then(|| ratio(eager, latency)).flatten(),
        code: code(record.verification.as_ref()),
        why: why(&record.outcome),
    }
}

/// Returns whether a backend computes the same as IREE's module: the forward pass, with the
/// exported inputs and types.
fn is_same_work(record: &BackendRecord) -> bool {
    record.test == "eval" && record.batch_size.is_none() && record.dtype.is_none()
}

fn axes(record: &BackendRecord) -> String {
    let batch = record.batch_size.map(|size| format!("batch {size}"));
    let precision = record.matmul_precision.as_ref().map(|precision| format!("matmul {precision}"));
    let all: Vec<String> = [batch, record.dtype.clone(), precision].into_iter().flatten().collect();
    all.join(", ")
}

fn backend_latency(record: &BackendRecord) -> Option<Latency> {
    let worked = record.processes.iter().filter(|process| process.failure.is_none());
    let ok = record.outcome.status == OutcomeStatus::Ok;
    Latency::of_processes(worked.map(|process| process.latency.as_slice())).filter(|_| ok)
}

fn ratio(over: Option<Latency>, under: Option<Latency>) -> Option<f64> {
    Some(over?.typical / under?.typical)
}

fn code(verification: Option<&Verification>) -> Option<&'static str> {
    verification.map(|verification| verification.code.as_str())
}

fn why(outcome: &OutcomeRecord) -> Option<String> {
    let why = outcome.why.as_deref().unwrap_or_default();
    match outcome.status {
        OutcomeStatus::Ok => None,
        OutcomeStatus::Failed => Some(format!("failed: {why}")),
        OutcomeStatus::Unsupported | OutcomeStatus::Skipped => Some(format!("unsupported: {why}")),
    }
}

impl BackendRow {
    /// Formats the time: `0.42 ms`.
    pub fn time(&self) -> Option<String> {
        self.latency.map(|latency| quantity(latency.typical, &Unit::Nanoseconds))
    }

    /// Formats `± 1.2 %`: half of the range between the fastest and the slowest process.
    fn spread(&self) -> String {
        let half = self.latency.and_then(Latency::half_range);
        half.map(|half| format!(" ± {}", super::percent(half))).unwrap_or_default()
    }

    fn compile(&self) -> String {
        self.compile.map(CompileTime::text).unwrap_or_default()
    }

    /// Formats `IREE 1.79 × inductor`.
    fn against_iree(&self) -> String {
        self.iree_is.map_or_else(String::new, |ratio| format!("IREE {ratio:.2} × {}", self.backend))
    }

    /// Formats test and axes: `eval`, `train, bf16`.
    pub(super) fn work(&self) -> String {
        if self.axes.is_empty() { self.test.clone() } else { format!("{}, {}", self.test, self.axes) }
    }
}

pub(super) fn times(ratio: Option<f64>) -> String {
    ratio.map_or_else(String::new, |ratio| format!("{ratio:.2} ×"))
}

const LEGEND: &str = "2 × eager: half of eager's time; below 1 ×, eager is faster. \
                      Latency: the typical process, ± half the range of all processes.";

/// A figure in a column: its title, and the function that returns its text for a row.
type Figure = (&'static str, for<'a> fn(&'a BackendRow) -> Text<'a>);
const BACKEND: Figure = ("backend", |row| Text::named(&row.backend));
const TEST: Figure = ("test", |row| row.work().into());
const LATENCY: Figure =
    ("latency", |row| row.time().map(|time| format!("{time}{}", row.spread())).unwrap_or_default().into());
const COMPILE: Figure = ("compile", |row| row.compile().into());
const AGAINST_IREE: Figure = ("against IREE", |row| row.against_iree().into());
const OVER_EAGER: Figure = ("over eager", |row| times(row.over_eager).into());
const OUTPUTS: Figure = ("outputs", |row| match row.why.as_deref().and_then(|why| why.split(':').next()) {
    Some(outcome) => outcome.into(),
    None => row.code.unwrap_or("not verified").into(),
});
/// Columns in the wide layout: text, numbers, text. The narrow layout stacks them.
const WIDE: [&[&[Figure]]; 3] =
    [&[&[BACKEND], &[TEST]], &[&[LATENCY], &[COMPILE], &[AGAINST_IREE], &[OVER_EAGER]], &[&[OUTPUTS]]];
const NARROW: [&[&[Figure]]; 3] =
    [&[&[BACKEND, TEST]], &[&[LATENCY, COMPILE], &[AGAINST_IREE, OVER_EAGER]], &[&[OUTPUTS]]];

/// Returns one table for each model and device, with the reasons why rows have no time; empty if
/// IREE is the only backend.
pub(super) fn blocks(backends: &BackendTable) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    for rows in backends.rows.chunk_by(|one, next| (&one.model, &one.on) == (&next.model, &next.on)) {
        let why = rows.iter().filter_map(|row| {
            let name = Text::named(&row.backend).say(format!(", {}", row.work()));
            Some(name.detail(Some(row.why.as_deref()?)))
        });
        blocks.push(Block::Title(Text::named(&rows[0].model).say(" on ").name(&rows[0].on)));
        blocks.push(Block::Table([WIDE, NARROW].map(|layout| table(rows, layout)).into()));
        blocks.push(Block::list(why));
    }
    if !blocks.is_empty() {
        blocks.extend([Block::Break, Block::Prose(LEGEND.into())]);
    }
    blocks
}

fn table<'a>(rows: &'a [BackendRow], layout: [&[&[Figure]]; 3]) -> Table<'a> {
    let stacks = || {
        let kinds = layout.into_iter().zip([false, true, false]);
        kinds.flat_map(|(stacks, number)| stacks.iter().map(move |stack| (*stack, number)))
    };
    let columns = stacks().map(|(stack, number)| Column {
        title: stack.iter().map(|(title, _)| (*title).into()).collect(),
        number,
        whole: true,
    });
    let cells = |row: &'a BackendRow| {
        let lines = |stack: &[Figure]| stack.iter().map(|(_, text)| text(row)).collect();
        stacks().map(|(stack, _)| Cell { lines: lines(stack), tone: Tone::Plain }).collect()
    };
    let table =
        Table { columns: columns.collect(), rows: rows.iter().map(cells).collect(), ..Table::default() };
    table.without_empty_columns()
}

/// Renders the tables for a terminal; empty if IREE is the only backend.
pub fn backends_table(run: &DrawnRun, options: TerminalOptions) -> String {
    document::terminal(&blocks(&BackendTable::new(run)), options)
}

/// Renders the tables as GitHub Markdown, safe against hostile names; empty if IREE is the only backend.
pub fn backends_markdown(run: &DrawnRun) -> String {
    document::markdown(&blocks(&BackendTable::new(run)), usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use benchgate_core::record::Number;
    use benchgate_core::record::RunFile;

    fn sample() -> DrawnRun {
        let text = include_str!("../../../../tests/fixtures/record/backends-v1.json");
        DrawnRun::new("run", RunFile::from_slice(text.as_bytes()).unwrap(), None)
    }

    #[test]
    fn the_table_says_how_many_times_faster_iree_is_and_why_a_row_is_empty() {
        insta::assert_snapshot!(backends_table(&sample(), TerminalOptions::default()));
        insta::assert_snapshot!(
            "backends-wide",
            backends_table(&sample(), TerminalOptions { width: 120, ..TerminalOptions::default() })
        );
        insta::assert_snapshot!("backends-markdown", backends_markdown(&sample()));
    }

    #[test]
    fn another_batch_size_or_a_backward_is_not_compared_with_iree() {
        let table = BackendTable::new(&sample());
        let compared: Vec<_> = table.rows.iter().filter(|row| row.iree_is.is_some()).collect();
        assert!(compared.iter().all(|row| row.work() == "eval"), "{compared:?}");
        assert_eq!(compared.len(), 3);
    }

    #[test]
    fn a_hostile_reason_is_no_markdown_and_ends_no_cell() {
        let mut run = sample();
        run.file.backends[0].outcome.status = OutcomeStatus::Unsupported;
        run.file.backends[0].outcome.why = Some("a | b @team [x](http://y)".to_owned());
        let markdown = backends_markdown(&run);
        let bars: Vec<usize> = (markdown.lines().filter(|line| line.starts_with('|')))
            .map(|row| row.matches('|').count())
            .collect();
        assert!(bars.iter().all(|count| *count == bars[0]), "{markdown}");
        assert!(markdown.contains("eval: `unsupported: a | b @team [x](http://y)`"), "{markdown}");
    }

    #[test]
    fn a_cached_module_shows_what_its_compiler_took_and_says_so() {
        let mut run = sample();
        let stages =
            run.file.sides.iter_mut().flat_map(|side| &mut side.benchmarks).flat_map(|it| &mut it.stages);
        for stage in stages.filter(|stage| stage.stage == Stage::Compile) {
            (stage.status, stage.seconds) = (StageStatus::Cached, Number(0.001));
            stage.made_in_seconds = Some(Number(2.5));
        }
        let table = BackendTable::new(&run);
        let iree = table.rows.iter().find(|row| row.backend == IREE).unwrap();
        assert_eq!(iree.compile, Some(CompileTime { seconds: 2.5, cached: true }));
        assert!(iree.compile().ends_with("s (cached)"), "{}", iree.compile());
    }

    #[test]
    fn a_run_without_backends_has_no_table() {
        let mut run = sample();
        run.file.backends.clear();
        let terminal = backends_table(&run, TerminalOptions::default());
        assert_eq!((terminal, backends_markdown(&run)), (String::new(), String::new()));
    }
}
