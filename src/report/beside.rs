//! IREE beside other backends: one row for each, as a table for people. Context, no verdict.

use std::fmt::Write;

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table};

use crate::model::{SideName, Stage, Unit};
use crate::record::{
    BackendRecord, BenchmarkRecord, Number, OutcomeRecord, OutcomeStatus, RunFile, StageStatus,
    VerificationRecord,
};

use super::human::quantity;
use super::terminal::clean;

/// What IREE's own rows are called.
pub(super) const IREE: &str = "iree";

/// A typical time and how far processes lie apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Latency {
    /// Median over processes of each process's median, nanoseconds.
    pub typical: f64,
    pub least: f64,
    pub most: f64,
    pub processes: usize,
}

/// One backend's row of one model. Names and reasons are raw.
#[derive(Debug, Clone, PartialEq)]
pub struct BesideRow {
    pub model: String,
    /// `iree`, or a backend's name.
    pub backend: String,
    /// The target of IREE's rows, else the device.
    pub on: String,
    pub test: String,
    /// Axes that are not the model's own: `batch 8, bf16`.
    pub axes: String,
    pub latency: Option<Latency>,
    pub compile_seconds: Option<f64>,
    /// How many times IREE's speed is this row's; above 1 IREE is faster. Only where both compute the same.
    pub iree_is: Option<f64>,
    /// How many times this row's speed is eager's of the same test and axes.
    pub over_eager: Option<f64>,
    pub code: Option<&'static str>,
    /// Why there is no time.
    pub why: Option<String>,
}

/// All rows, grouped by model in the suite's order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Beside {
    pub rows: Vec<BesideRow>,
}

impl Beside {
    /// The head side's benchmarks (or the only side's), each model followed by its backends. Models that
    /// have no backend are left out: nothing stands beside them.
    pub fn new(file: &RunFile) -> Self {
        let side = file.side(SideName::Head).or(file.sides.first());
        let benchmarks = || side.into_iter().flat_map(|side| &side.benchmarks);
        let mut rows = Vec::new();
        let mut done: Vec<&[String]> = Vec::new();
        for record in &file.backends {
            if done.contains(&record.beside.as_slice()) {
                continue;
            }
            done.push(&record.beside);
            let iree: Vec<&BenchmarkRecord> =
                benchmarks().filter(|benchmark| record.beside.contains(&benchmark.name)).collect();
            let group: Vec<&BackendRecord> =
                file.backends.iter().filter(|other| other.beside == record.beside).collect();
            rows.extend(iree.iter().map(|benchmark| iree_row(benchmark, &group)));
            let fastest = iree.iter().find_map(|benchmark| iree_latency(benchmark));
            rows.extend(group.iter().map(|record| backend_row(record, fastest, &group)));
        }
        Self { rows }
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

fn iree_row(benchmark: &BenchmarkRecord, group: &[&BackendRecord]) -> BesideRow {
    let label = |name: &str| benchmark.labels.get(name).cloned().unwrap_or_default();
    let latency = iree_latency(benchmark);
    let compiled = benchmark
        .stages
        .iter()
        .find(|stage| stage.stage.0 == Stage::Compile && stage.status == StageStatus::Ok);
    let eager = group.iter().find(|record| record.backend == "eager" && is_same_work(record));
    BesideRow {
        model: label("model"),
        backend: IREE.to_owned(),
        on: label("target"),
        test: "eval".to_owned(),
        axes: String::new(),
        latency,
        compile_seconds: compiled.map(|stage| stage.seconds.0),
        iree_is: None,
        over_eager: eager.and_then(|record| ratio(backend_latency(record), latency)),
        code: code(benchmark.verification.as_ref()),
        why: why(&benchmark.outcome),
    }
}

fn backend_row(record: &BackendRecord, iree: Option<Latency>, group: &[&BackendRecord]) -> BesideRow {
    let latency = backend_latency(record);
    let same_axes = |other: &&&BackendRecord| {
        other.backend == "eager"
            && (&other.test, other.batch_size, &other.dtype, &other.matmul_precision)
                == (&record.test, record.batch_size, &record.dtype, &record.matmul_precision)
    };
    let eager = group.iter().find(same_axes).and_then(|eager| backend_latency(eager));
    let mut compiles: Vec<f64> =
        record.processes.iter().filter_map(|process| Some(process.compile_seconds?.0)).collect();
    BesideRow {
        model: record.model.clone(),
        backend: record.backend.clone(),
        on: record.device.clone(),
        test: record.test.clone(),
        axes: axes(record),
        latency,
        compile_seconds: median(&mut compiles),
        iree_is: is_same_work(record).then(|| ratio(latency, iree)).flatten(),
        over_eager: (record.backend != "eager").then(|| ratio(eager, latency)).flatten(),
        code: code(record.verification.as_ref()),
        why: why(&record.outcome),
    }
}

/// Whether it computes what IREE's module computes: the forward, on the exported inputs and types.
fn is_same_work(record: &BackendRecord) -> bool {
    record.test == "eval" && record.batch_size.is_none() && record.dtype.is_none()
}

fn axes(record: &BackendRecord) -> String {
    let batch = record.batch_size.map(|size| format!("batch {size}"));
    let precision = record.matmul_precision.as_ref().map(|precision| format!("matmul {precision}"));
    let all: Vec<String> = [batch, record.dtype.clone(), precision].into_iter().flatten().collect();
    all.join(", ")
}

fn iree_latency(benchmark: &BenchmarkRecord) -> Option<Latency> {
    let worked = benchmark.processes.iter().filter(|process| process.failure.is_none());
    let ok = benchmark.outcome.status == OutcomeStatus::Ok;
    typical(worked.filter_map(|process| process.samples.get("latency")).map(Vec::as_slice)).filter(|_| ok)
}

fn backend_latency(record: &BackendRecord) -> Option<Latency> {
    let worked = record.processes.iter().filter(|process| process.failure.is_none());
    let ok = record.outcome.status == OutcomeStatus::Ok;
    typical(worked.map(|process| process.latency.as_slice())).filter(|_| ok)
}

fn typical<'a>(processes: impl Iterator<Item = &'a [Number]>) -> Option<Latency> {
    let mut medians: Vec<f64> = processes
        .filter_map(|samples| median(&mut samples.iter().map(|value| value.0).collect::<Vec<_>>()))
        .filter(|value| value.is_finite() && *value > 0.0)
        .collect();
    let typical = median(&mut medians)?;
    Some(Latency { typical, least: *medians.first()?, most: *medians.last()?, processes: medians.len() })
}

/// Sorts, and takes the middle.
fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    Some(f64::midpoint(values[last / 2], values[values.len() / 2]))
}

fn ratio(over: Option<Latency>, under: Option<Latency>) -> Option<f64> {
    Some(over?.typical / under?.typical)
}

fn code(verification: Option<&VerificationRecord>) -> Option<&'static str> {
    verification.map(|verification| verification.code.0.as_str())
}

fn why(outcome: &OutcomeRecord) -> Option<String> {
    let why = outcome.why.as_deref().unwrap_or_default();
    match outcome.status {
        OutcomeStatus::Ok => None,
        OutcomeStatus::Failed => Some(format!("failed: {why}")),
        OutcomeStatus::Unsupported | OutcomeStatus::Skipped => Some(format!("unsupported: {why}")),
    }
}

impl BesideRow {
    /// `0.42 ms`
    pub fn time(&self) -> Option<String> {
        self.latency.map(|latency| quantity(latency.typical, &Unit::Nanoseconds))
    }

    /// `± 1.2 %`: half of what lies between the fastest and the slowest process.
    fn spread(&self) -> String {
        match self.latency {
            Some(latency) if latency.processes > 1 => {
                let half = (latency.most - latency.least) / 2.0 / latency.typical;
                format!(" ± {}", super::percent(half))
            }
            _ => String::new(),
        }
    }

    fn compile(&self) -> String {
        self.compile_seconds.map_or_else(String::new, |seconds| quantity(seconds * 1e9, &Unit::Nanoseconds))
    }

    /// `eval`, `train, bf16`
    pub(super) fn work(&self) -> String {
        if self.axes.is_empty() { self.test.clone() } else { format!("{}, {}", self.test, self.axes) }
    }
}

pub(super) fn times(ratio: Option<f64>) -> String {
    ratio.map_or_else(String::new, |ratio| format!("{ratio:.2} ×"))
}

const HEADER: [&str; 8] = ["model", "backend", "on", "test", "latency", "compile", "IREE is", "over eager"];
const LEGEND: &str = "IREE is: how many times IREE's speed is this backend's; above 1 × IREE is faster. \
                      Latency: median over fresh processes, ± half their range.";

fn cells(row: &BesideRow) -> [String; 8] {
    let latency = row.time().map(|time| format!("{time}{}", row.spread())).unwrap_or_default();
    [
        row.model.clone(),
        row.backend.clone(),
        row.on.clone(),
        row.work(),
        latency,
        row.compile(),
        times(row.iree_is),
        times(row.over_eager),
    ]
}

/// The outcome's last column: verified, or why not measured.
fn outcome(row: &BesideRow) -> String {
    row.why.clone().unwrap_or_else(|| row.code.unwrap_or("not verified").to_owned())
}

/// For a terminal of this many columns; empty where nothing stands beside IREE.
pub fn backends_table(file: &RunFile, width: u16) -> String {
    let beside = Beside::new(file);
    if beside.is_empty() {
        return String::new();
    }
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    table.set_header(HEADER.iter().chain(&["outputs"]).map(|title| Cell::new(*title)));
    for row in &beside.rows {
        let mut line: Vec<Cell> = cells(row)
            .into_iter()
            .enumerate()
            .map(|(at, text)| {
                let cell = Cell::new(clean(&text));
                if at >= 4 { cell.set_alignment(CellAlignment::Right) } else { cell }
            })
            .collect();
        line.push(Cell::new(clean(&outcome(row))));
        table.add_row(line);
    }
    let text: String = table.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    format!("\n{text}{LEGEND}\n")
}

/// As GitHub Markdown, safe against hostile names; empty where nothing stands beside IREE.
pub fn backends_markdown(file: &RunFile) -> String {
    let beside = Beside::new(file);
    if beside.is_empty() {
        return String::new();
    }
    let mut text = format!("| {} | outputs |\n|---|---|---|---|--:|--:|--:|--:|---|\n", HEADER.join(" | "));
    for row in &beside.rows {
        let cells: Vec<String> = cells(row).iter().map(|cell| super::markdown::text(cell)).collect();
        // Writing to a String can't fail.
        let _ = writeln!(text, "| {} | {} |", cells.join(" | "), super::markdown::text(&outcome(row)));
    }
    let _ = writeln!(text, "\n{LEGEND}");
    text
}
