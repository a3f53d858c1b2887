//! The outcome of every benchmark of a run, one row each.

use strum::VariantArray;

use benchgate_core::model::{
    Benchmark, Consequence, Metric, Outcome, Run, SideName, Stage, Unit, Verdict, VerifyCode, counted,
};
use benchgate_core::record::Number;
use benchgate_gate::{Comparison, SideStats, Typical, described};

use super::chart::shown_latencies;
use super::document::{self, Block, Cell, Column, Item, Part, Rules, Table, TerminalOptions, Text, Tone};
use super::{DrawnRun, RowView, clean, percent, quantity};

/// A row of the table. Names and reasons are untrusted and raw.
#[derive(Debug, Clone, serde::Serialize)]
pub struct OutcomeRow {
    pub benchmark: String,
    pub side: SideName,
    pub labels: std::collections::BTreeMap<String, String>,
    pub status: RowStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<Stage>,
    /// Reason why the status is not `ok`, or why the outputs are not known to be right.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verification: Option<VerifyCode>,
    pub processes: u32,
    /// The typical value of each metric of the benchmark, in the metric's unit.
    pub metrics: Vec<MetricValue>,
    /// Path of the log with the complete message of a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    #[serde(skip)]
    latency: Option<SideStats>,
    #[serde(skip)]
    typical: Option<f64>,
}

#[derive(Debug, Clone, serde::Serialize)]
pub struct MetricValue {
    pub metric: String,
    pub unit: String,
    pub value: Number,
}

/// The first word of a row's outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, strum::IntoStaticStr, strum::VariantArray)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum RowStatus {
    Ok,
    /// The benchmark ran, but its outputs are wrong or differ from base's, or are not known to be
    /// right although there is a reference.
    Wrong,
    Unsupported,
    Skipped,
    Failed,
}

/// The outcomes of all benchmarks on all sides of a run.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Outcomes {
    pub rows: Vec<OutcomeRow>,
    /// Number of rows by status, including rows that are not shown.
    pub counts: std::collections::BTreeMap<&'static str, usize>,
}

impl Outcomes {
    /// Collects the outcomes. `log` finds the log of a benchmark's failure, as a path that the reader can
    /// open. `comparison` compares the two sides, if there are two.
    pub fn new(
        sides: &[(SideName, &Run)],
        comparison: Option<&Comparison>,
        log: impl Fn(SideName, &str) -> Option<String>,
    ) -> Self {
        let shown = comparison.map(shown_latencies).unwrap_or_default();
        let diverged = comparison.into_iter().flat_map(|comparison| &comparison.rows);
        let diverged: Vec<RowView<'_>> =
            diverged.filter(|row| row.verdict == Verdict::Diverged).map(RowView::new).collect();
        let mut rows: Vec<OutcomeRow> = sides
            .iter()
            .flat_map(|(side, run)| run.benchmarks.iter().map(move |benchmark| (*side, benchmark)))
            .map(|(side, benchmark)| OutcomeRow {
                log: log(side, benchmark.name.as_str()),
                ..OutcomeRow::new(side, benchmark, shown.get(benchmark.name.as_str()))
            })
            .collect();
        for row in rows.iter_mut().filter(|row| row.status == RowStatus::Ok && row.side == SideName::Head) {
            if let Some(found) = diverged.iter().find(|found| found.name == row.benchmark) {
                (row.status, row.why) = (RowStatus::Wrong, Some(found.sentence()));
            }
        }
        let count = |status: RowStatus| rows.iter().filter(|row| row.status == status).count();
        let counts = RowStatus::VARIANTS.iter().map(|status| (status.into_str(), count(*status))).collect();
        Self { rows, counts }
    }

    /// Returns the table. A reason is shortened to two or three lines of this width.
    pub(super) fn table(&self, width: usize) -> Table<'_> {
        let mut table = Table::new(&["benchmark", "side"], &["latency", "CV"], Rules::Ends);
        table.columns.push(Column::text("outcome"));
        let one_side = self.rows.iter().all(|row| row.side == self.rows[0].side);
        for row in &self.rows {
            let text = row.outcome();
            let tone = match row.status {
                RowStatus::Ok => Tone::Plain,
                RowStatus::Unsupported | RowStatus::Skipped => Tone::Doubt,
                RowStatus::Wrong | RowStatus::Failed => Tone::Bad,
            };
            let text = shortened(&text, width).unwrap_or(text);
            table.rows.push(vec![
                Text::named(&row.benchmark).into(),
                if one_side { "" } else { row.side.as_str() }.into(),
                row.latency().into(),
                row.cv().into(),
                Cell { lines: vec![Text::named(text)], tone },
            ]);
        }
        table.without_empty_columns()
    }

    /// Collects the outcomes of a displayed run, whose logs may be elsewhere.
    pub fn of_run(run: &DrawnRun) -> Self {
        let sides = run.file.runs(&run.name);
        let sides: Vec<(SideName, &Run)> = sides.iter().map(|(side, run)| (*side, run)).collect();
        Self::new(&sides, run.comparison.as_ref(), |_, _| None)
    }

    /// Formats `34 benchmarks: 28 ok, 4 unsupported, 2 failed`; with two sides, each benchmark counts on
    /// both.
    fn sentence(&self) -> String {
        let names: std::collections::BTreeSet<&str> =
            self.rows.iter().map(|row| row.benchmark.as_str()).collect();
        let sides = if names.len() < self.rows.len() { " on two sides" } else { "" };
        let parts: Vec<String> = RowStatus::VARIANTS
            .iter()
            .filter_map(|status| Some((self.counts.get(status.into_str())?, status)))
            .filter(|(count, _)| **count > 0)
            .map(|(count, status)| format!("{count} {}", status.into_str()))
            .collect();
        format!("{}{sides}: {}", counted(names.len(), "benchmark"), parts.join(", "))
    }
}

/// Returns the reason, as found by the reader of the file, why a benchmark that ran has no latency.
fn unusable(benchmark: &Benchmark) -> Option<String> {
    let measured = benchmark.metric(&Metric::LATENCY.name).is_some();
    let mut lints = benchmark.lints.iter().filter(|_| !measured);
    let lint = lints.find(|lint| lint.code.consequence() == Consequence::Error)?;
    Some(format!("{}: {}", lint.code.as_str(), lint.detail))
}

impl OutcomeRow {
    fn new(side: SideName, benchmark: &Benchmark, shown: Option<&Typical>) -> Self {
        let code = benchmark.verification.as_ref().map(|verification| verification.code);
        let (status, stage, why) = match &benchmark.outcome {
            Outcome::Failed { stage, why } => (RowStatus::Failed, Some(*stage), Some(why.clone())),
            Outcome::Unsupported { reason } => (RowStatus::Unsupported, None, Some(reason.clone())),
            Outcome::Skipped { reason } => (RowStatus::Skipped, None, Some(reason.clone())),
            // A time of zero means that the tool reported no usable value.
            Outcome::Ok if unusable(benchmark).is_some() => {
                (RowStatus::Failed, Some(Stage::Benchmark), unusable(benchmark))
            }
            Outcome::Ok => match code {
                None | Some(VerifyCode::Pass) => (RowStatus::Ok, None, None),
                // There is no reference.
                Some(VerifyCode::VerifierSkipped | VerifyCode::NondeterministicEagerRun) => {
                    (RowStatus::Ok, None, unverified(benchmark))
                }
                Some(_) => (RowStatus::Wrong, None, unverified(benchmark)),
            },
        };
        let described_of = |name: &str| benchmark.metric(name).and_then(described);
        let latency = described_of(Metric::LATENCY.name.as_ref());
        let shown = shown.and_then(|shown| match side {
            SideName::Base => shown.base,
            SideName::Head => shown.head,
        });
        let value = |metric: &Metric| {
            let measured = described_of(&metric.name)?.location;
            let shown = shown.filter(|_| metric.name == Metric::LATENCY.name);
            let value = Number(shown.unwrap_or(measured));
            Some(MetricValue { metric: metric.name.to_string(), unit: metric.unit.to_string(), value })
        };
        Self {
            benchmark: benchmark.name.as_str().to_owned(),
            side,
            labels: benchmark.labels.clone(),
            status,
            stage,
            why,
            verification: code,
            processes: latency.as_ref().map_or(0, |stats| stats.processes),
            metrics: benchmark.metrics.iter().filter_map(|series| value(&series.metric)).collect(),
            log: None,
            typical: shown.or(latency.as_ref().map(|stats| stats.location)),
            latency,
        }
    }

    /// Returns the last cell: `ok, PASS`, `unsupported: no CUDA device (compiled only)`, `failed: compile:
    /// …`.
    fn outcome(&self) -> String {
        let why = self.why.as_deref().map(|why| format!(": {}", clean(why))).unwrap_or_default();
        let code = self.verification.map_or("not verified", |code| code.as_str());
        match (self.status, self.stage) {
            (RowStatus::Failed, Some(stage)) => format!("failed: {}{why}", stage),
            (RowStatus::Ok, _) => format!("ok, {code}{why}"),
            // Head's own outputs passed or had no reference, but they differ from base's.
            (RowStatus::Wrong, _)
                if self
                    .verification
                    .is_some_and(|code| code == VerifyCode::Pass || code.has_no_reference()) =>
            {
                format!("diverged{why}")
            }
            (RowStatus::Wrong, _) => format!("{code}{why}"),
            (status, _) => format!("{}{why}", status.into_str()),
        }
    }

    fn latency(&self) -> String {
        self.typical.map(|value| quantity(value, &Unit::Nanoseconds)).unwrap_or_default()
    }

    fn cv(&self) -> String {
        self.latency.as_ref().and_then(|stats| stats.cv).map(percent).unwrap_or_default()
    }
}

/// Returns why the outputs are not known to be right: the reason of the first such output, otherwise the
/// verification's.
fn unverified(benchmark: &Benchmark) -> Option<String> {
    let verification = benchmark.verification.as_ref()?;
    let bad = verification.outputs.iter().find(|output| output.code != VerifyCode::Pass);
    let of_output = bad.and_then(|output| Some(format!("output {}: {}", output.index, output.why.as_ref()?)));
    of_output.or_else(|| verification.why.clone())
}

/// Shortens a reason to two or three lines of the table; the complete reason is below the table.
fn shortened(text: &str, width: usize) -> Option<String> {
    let letters = width.max(80).saturating_add(10);
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let kept: String = flat.chars().take(letters).collect();
    // The text is cut after the last word that fits.
    let whole = kept.rsplit_once(' ').map_or(kept.as_str(), |(whole, _)| whole);
    (flat.chars().count() > letters).then(|| format!("{whole} …"))
}

/// Renders the table, the texts that did not fit into it, and the counts.
pub fn outcomes_table(outcomes: &Outcomes, options: TerminalOptions) -> String {
    let blocks = blocks(outcomes, usize::from(options.width));
    document::terminal(&blocks, TerminalOptions { all: true, ..options })
}

/// Renders the same as GitHub Markdown, safe against hostile names.
pub fn outcomes_markdown(outcomes: &Outcomes) -> String {
    document::markdown(&blocks(outcomes, MARKDOWN_WIDTH), usize::MAX)
}

/// Width in which a page shows a reason in full.
const MARKDOWN_WIDTH: usize = 400;

fn blocks(outcomes: &Outcomes, width: usize) -> Vec<Block<'_>> {
    let two_sides = outcomes.rows.iter().any(|row| row.side != outcomes.rows[0].side);
    let mut blocks = vec![Block::Table(vec![outcomes.table(width)])];
    let rows = outcomes.rows.iter();
    let whole = rows.filter(|row| shortened(&row.outcome(), width).is_some() || row.log.is_some());
    let item = |row: &'_ OutcomeRow| {
        let side = if two_sides { format!(" {}", row.side) } else { String::new() };
        let text = Text::named(row.benchmark.clone()).say(format!("{side}: ")).name(row.outcome());
        let log = row.log.clone().map(|log| Text::from("log: ").with(Part::Copied(log.into())));
        Item { text, details: log.into_iter().collect() }
    };
    let whole: Vec<Item<'_>> = whole.map(item).collect();
    if !whole.is_empty() {
        blocks.extend([Block::Title("In full".into()), Block::List(whole)]);
    }
    blocks.extend([Block::Break, Block::Prose(outcomes.sentence().into())]);
    blocks
}

/// Renders JSON for programs.
pub fn outcomes_json(outcomes: &Outcomes) -> String {
    document::json(outcomes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use benchgate_core::model::{MetricSeries, OutputCheck, Policy, Process, Series, Verification};
    use benchgate_gate::{CompareOptions, compare};

    fn measured(name: &str, nanoseconds: f64) -> Benchmark {
        let mut benchmark = Benchmark::new(name);
        let samples = [0.99, 1.0, 1.01].map(|factor| factor * nanoseconds).to_vec();
        let series = Series::Processes(vec![Process { samples, ..Process::default() }; 8]);
        benchmark.metrics.push(MetricSeries { metric: Metric::LATENCY, series });
        benchmark
    }

    fn verified(mut benchmark: Benchmark, code: VerifyCode, why: Option<&str>) -> Benchmark {
        benchmark.verification = Some(Verification::bare(code, why.map(str::to_owned)));
        benchmark
    }

    fn unmeasured(name: &str, outcome: Outcome) -> Benchmark {
        Benchmark { outcome, ..Benchmark::new(name) }
    }

    fn run() -> Run {
        let long = "ended with exit code 1: bert.mlir:812:11: error: failed to legalize operation \
                    'torch.aten.scatter_reduce.two' that was explicitly marked illegal";
        let benchmarks = vec![
            verified(measured("resnet@torch-mlir/cpu/main", 27_120_000.0), VerifyCode::Pass, None),
            verified(measured("conv/vulkan/main", 912_000.0), VerifyCode::Fail, Some("7 elements are NaN")),
            verified(
                measured("own/cpu/main", 912.0),
                VerifyCode::VerifierSkipped,
                Some("no expected outputs"),
            ),
            unmeasured(
                "llama-spinquant@iree-turbine/vulkan/main",
                Outcome::Unsupported { reason: "no Vulkan device (compiled only)".into() },
            ),
            unmeasured(
                "bert@torch-mlir/cpu/main",
                Outcome::Failed { stage: Stage::Compile, why: long.into() },
            ),
            unmeasured("gat/cpu/main", Outcome::Skipped { reason: "::error::by request\u{1b}[31m".into() }),
        ];
        Run { benchmarks, ..Run::default() }
    }

    fn outcomes(sides: &[(SideName, &Run)]) -> Outcomes {
        Outcomes::new(sides, None, |_, name| {
            name.starts_with("bert").then(|| "logs/compile-0123.log".to_owned())
        })
    }

    #[test]
    fn every_benchmark_has_a_row_that_fits_the_terminal() {
        let run = run();
        let one = outcomes_table(&outcomes(&[(SideName::Head, &run)]), TerminalOptions::default());
        assert!(one.lines().all(|line| line.chars().count() <= 80), "{one}");
        insta::assert_snapshot!("outcomes", one);
        let both = outcomes(&[(SideName::Base, &run), (SideName::Head, &run)]);
        let both = outcomes_table(&both, TerminalOptions::default());
        assert!(both.lines().all(|line| line.chars().count() <= 80), "{both}");
        insta::assert_snapshot!("outcomes-of-two-sides", both);
    }

    #[test]
    fn a_head_whose_outputs_are_other_than_base_s_is_not_ok() {
        let base = run();
        let mut head = run();
        let own = head.benchmarks.iter_mut().find(|benchmark| benchmark.name.as_str() == "own/cpu/main");
        let verification = own.and_then(|own| own.verification.as_mut()).unwrap();
        let why = Some("8192 of 8192 elements beyond the tolerance".to_owned());
        verification.against_base =
            vec![OutputCheck { index: 0, code: VerifyCode::Fail, why, divergence: None }];
        let comparison = compare(&base, &head, &Policy::default(), &CompareOptions::default());
        let sides = [(SideName::Base, &base), (SideName::Head, &head)];
        let outcomes = Outcomes::new(&sides, Some(&comparison), |_, _| None);
        let [base, head] = SideName::BOTH.map(|side| {
            let mut rows = outcomes.rows.iter().filter(|row| row.side == side);
            rows.find(|row| row.benchmark == "own/cpu/main").unwrap().outcome()
        });
        assert_eq!(base, "ok, VERIFIER_SKIPPED: no expected outputs");
        assert_eq!(
            head,
            "diverged: head's outputs differ: output 0 differs from base's, and there is no reference: 8192 of 8192 \
             elements beyond the tolerance"
        );
    }

    #[test]
    fn programs_get_every_row_whole() {
        let run = run();
        let json: serde_json::Value =
            serde_json::from_str(&outcomes_json(&outcomes(&[(SideName::Head, &run)]))).unwrap();
        assert_eq!(json["rows"].as_array().unwrap().len(), 6);
        assert_eq!(json["counts"]["failed"], 1);
        assert_eq!(json["counts"]["unsupported"], 1);
        assert!(json["rows"][4]["why"].as_str().unwrap().ends_with("explicitly marked illegal"));
        assert_eq!(json["rows"][0]["metrics"][0]["metric"], "latency");
    }
}
