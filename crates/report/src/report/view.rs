//! The view model: a comparison as sections, sentences and cells, before any layout.

use std::collections::{BTreeMap, HashMap, HashSet};

use benchgate_core::model::{LintCode, Metric, Unit, Verdict, counted};
use benchgate_gate::{
    ALL_BENCHMARKS, Comparison, Estimate, Geomean, Method, Reason, Row, RunSummary, SideStats,
};

use super::ResultSource;
use super::advice::{self, LintGroup, WayOut};
use super::human::{confidence, effect, interval, percent, range};
use super::row_view::RowView;
use super::words;

/// A comparison that is ready to be laid out.
#[derive(Debug, Clone)]
pub struct View<'a> {
    pub comparison: &'a Comparison,
    /// The verdict in one sentence. It contains no names, so it is safe everywhere.
    pub headline: String,
    /// Advice on how to settle inconclusive rows of other tools' files.
    pub way_out: Option<WayOut>,
    /// Rows that decide and that regressed or improved: regressions first, larger changes first.
    pub changed: Vec<RowView<'a>>,
    /// Rows that decide and are undecided.
    pub open: Vec<RowView<'a>>,
    /// Wrong outputs.
    pub diverged: Vec<RowView<'a>>,
    /// Latencies whose outputs pass but are clearly less accurate than base's. Each is also in its own
    /// section.
    pub less_accurate: Vec<RowView<'a>>,
    /// Failed stages, missing rows and unusable rows.
    pub failed: Vec<RowView<'a>>,
    /// Benchmarks that could not be compared and need not be: new, repaired or unsupported ones.
    pub not_compared: Vec<RowView<'a>>,
    /// Rows that decide and pass.
    pub unchanged: Vec<RowView<'a>>,
    /// Rows of metrics that are reported but don't decide, changed ones first.
    pub reported: Vec<RowView<'a>>,
    pub lints: Vec<LintGroup>,
    pub causes: Vec<RegressionCause<'a>>,
    /// Facts about machine and toolchain.
    pub facts: Vec<Fact>,
    /// Explanation of values and intervals; `None` if there are no estimates.
    pub legend: Option<Legend>,
    /// A command that repeats this comparison.
    pub reproduce: Option<String>,
    /// A sentence that names the files that were written; set by the caller.
    pub written: Option<String>,
    /// Warnings that come before everything else; unescaped. Set by the caller.
    pub alerts: Vec<String>,
    /// The origin of the measured code; set by the caller.
    pub source: Option<ResultSource>,
}

/// Explanation of the columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Legend {
    /// A sentence that explains the values.
    values: String,
    /// The statistic of the values, for the title of their column, if it is a single word and not the one
    /// that most tools print.
    statistic: Option<&'static str>,
    /// True if changes are not the ratios of the values next to them.
    pub(super) is_no_ratio: bool,
    /// Lowest and highest confidence of the intervals.
    levels: Option<(String, String)>,
}

impl Legend {
    pub(super) fn sentences(&self) -> String {
        let Some((low, high)) = &self.levels else { return self.values.clone() };
        let levels = if low == high { low.clone() } else { format!("{low} to {high}") };
        format!("{} Interval: {levels} confidence, all corrections included.", self.values)
    }

    /// Returns `median, base → head`, for the title of a column.
    pub(super) fn values(&self, title: &str) -> String {
        self.statistic.map_or_else(|| title.to_owned(), |statistic| format!("{statistic}, {title}"))
    }

    /// Returns `99.75 % interval`, for the title of a column.
    pub(super) fn interval(&self) -> String {
        match &self.levels {
            Some((low, high)) if low == high => format!("{low} interval"),
            Some((low, _)) => format!("≥ {low} interval"),
            None => "interval".to_owned(),
        }
    }
}

/// Known causes of a latency regression. The name and the kernel are unescaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegressionCause<'a> {
    pub benchmark: &'a str,
    /// The kernel that changed most, and by how much.
    pub kernel: Option<&'a str>,
    /// The number and the names of the kernels whose code differs from base's.
    pub code: Option<&'a str>,
    /// Deterministic values that may explain the regression: `dispatch-count 17 → 25`.
    pub changes: Vec<String>,
}

/// A fact that is known about both sides. Values are unescaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    pub name: &'static str,
    pub base: Option<String>,
    pub head: Option<String>,
}

impl<'a> View<'a> {
    /// Creates the view; `reproduce` is the command that repeats the comparison, if the caller knows it.
    pub fn new(comparison: &'a Comparison, reproduce: Option<String>) -> Self {
        let some_decide = comparison.rows.iter().any(|row| row.fatal);
        let mut view = Self {
            comparison,
            headline: headline(comparison, some_decide),
            way_out: advice::way_out(comparison),
            changed: Vec::new(),
            open: Vec::new(),
            diverged: Vec::new(),
            less_accurate: Vec::new(),
            failed: Vec::new(),
            not_compared: Vec::new(),
            unchanged: Vec::new(),
            reported: Vec::new(),
            lints: advice::lints(comparison),
            causes: causes(comparison),
            facts: facts(&comparison.base, &comparison.head),
            legend: legend(comparison),
            reproduce,
            written: None,
            alerts: Vec::new(),
            source: None,
        };
        let bad = bad_benchmarks(comparison);
        let mut latencies: HashMap<&str, &Row> = HashMap::new();
        for row in &comparison.rows {
            if words::accuracy(row).is_some() {
                view.less_accurate.push(RowView::new(row));
            }
            // The time of a wrong program is not a separate result: it is shown together with the fault.
            if is_latency(row) && row.verdict != Verdict::Regressed && bad.contains(row.benchmark.as_str()) {
                latencies.insert(row.benchmark.as_str(), row);
                continue;
            }
            view.section(row, some_decide).push(RowView::new(row));
        }
        for row in view.diverged.iter_mut().chain(&mut view.failed) {
            if row.row.metric.is_none() {
                row.numbers = latencies.get(row.name).copied().unwrap_or(row.row);
            }
        }
        if let (Some(_), Some(group)) =
            (&view.way_out, view.lints.iter_mut().find(|group| group.code == LintCode::AssumedSpread))
        {
            group.fix = advice::DECLARE;
        }
        view.changed.sort_by(by_importance);
        view.open.sort_by(by_importance);
        view.reported.sort_by(by_importance);
        view
    }

    /// Returns the rows of the main table: wrong and failed ones first, then changed ones.
    pub fn deciding(&self) -> Vec<RowView<'a>> {
        let sections = [&self.diverged, &self.failed, &self.changed, &self.open, &self.unchanged];
        sections.into_iter().flatten().copied().collect()
    }

    /// Returns the means to show. The mean of a single row is that row, and a mean of informational rows is
    /// only shown with `all`.
    pub fn geomeans(&self, all: bool) -> Vec<&'a Geomean> {
        let is_gating = |row: &Row| row.policy.as_ref().is_some_and(|policy| policy.fatal);
        let decides = |metric: &Metric| {
            self.comparison.rows.iter().any(|row| row.metric.as_ref() == Some(metric) && is_gating(row))
        };
        let worth = |geomean: &&Geomean| geomean.rows > 1 && (all || decides(&geomean.metric));
        self.comparison.geomeans.iter().filter(worth).collect()
    }

    fn section(&mut self, row: &Row, some_decide: bool) -> &mut Vec<RowView<'a>> {
        match (row.verdict, &row.reason) {
            (Verdict::Diverged, _) => &mut self.diverged,
            _ if !decides(row, some_decide) && row.metric.is_none() => &mut self.not_compared,
            _ if !decides(row, some_decide) => &mut self.reported,
            (Verdict::Regressed, Reason::FailsAtHead { .. }) | (Verdict::Error | Verdict::Missing, _) => {
                &mut self.failed
            }
            (Verdict::Regressed | Verdict::Improved, _) => &mut self.changed,
            (Verdict::Inconclusive, _) => &mut self.open,
            (Verdict::Pass, _) => &mut self.unchanged,
        }
    }
}

/// Returns, for every regressed latency, the kernel that changed most and the deterministic values that
/// changed.
fn causes(comparison: &Comparison) -> Vec<RegressionCause<'_>> {
    let regressed = |row: &&Row| is_latency(row) && row.verdict == Verdict::Regressed && row.fatal;
    let mut causes: Vec<RegressionCause<'_>> = comparison
        .rows
        .iter()
        .filter(regressed)
        .map(|row| RegressionCause {
            benchmark: row.benchmark.as_str(),
            kernel: detail_of(row, LintCode::KernelMoved),
            code: detail_of(row, LintCode::KernelCode),
            changes: Vec::new(),
        })
        .collect();
    let place: HashMap<&str, usize> =
        causes.iter().enumerate().map(|(at, cause)| (cause.benchmark, at)).collect();
    for row in comparison.rows.iter().filter(|row| row.reason == Reason::Exact) {
        // A smaller module does not explain a regression, but a different number of dispatches may,
        // in either direction.
        let changed = row.verdict == Verdict::Regressed
            || row.metric.as_ref().is_some_and(|metric| metric.name == Metric::DISPATCH_COUNT.name)
                && row.estimate.as_ref().is_some_and(|estimate| estimate.ratio != 1.0);
        if let (Some(metric), Some(at), true) = (&row.metric, place.get(row.benchmark.as_str()), changed) {
            let cells = RowView::new(row);
            let values = cells.values();
            let shown = if values.is_empty() { cells.effect().unwrap_or_default() } else { values };
            causes[*at].changes.push(format!("{} {shown}", metric.name));
        }
    }
    causes.retain(|cause| cause.kernel.is_some() || cause.code.is_some() || !cause.changes.is_empty());
    causes
}

/// Returns the detail of the row's finding with this code; `None` if it is withheld.
pub(super) fn detail_of(row: &Row, code: LintCode) -> Option<&str> {
    let lint = row.lints.iter().find(|lint| lint.code == code)?;
    Some(lint.detail.as_str()).filter(|detail| !detail.is_empty())
}

fn is_latency(row: &Row) -> bool {
    row.metric.as_ref().is_some_and(|metric| metric.name == Metric::LATENCY.name)
}

/// Returns the benchmarks with a row about wrong outputs or about a failure as a whole, which invalidates
/// their times.
fn bad_benchmarks(comparison: &Comparison) -> HashSet<&str> {
    let bad = |row: &&Row| {
        row.metric.is_none() && row.fatal && matches!(row.verdict, Verdict::Diverged | Verdict::Error)
    };
    comparison.rows.iter().filter(bad).map(|row| row.benchmark.as_str()).collect()
}

/// Returns whether a row is part of the verdict. A waived row stays in its section, and if no metric is
/// gating, all rows are shown.
fn decides(row: &Row, some_decide: bool) -> bool {
    let named_fatal = row.policy.as_ref().is_some_and(|policy| policy.fatal);
    let excused = row.waiver.is_some() && (row.metric.is_none() || named_fatal);
    row.fatal || excused || !some_decide
}

fn by_importance(a: &RowView<'_>, b: &RowView<'_>) -> std::cmp::Ordering {
    let rank = |view: &RowView<'_>| match view.row.verdict {
        Verdict::Regressed => 0,
        Verdict::Improved => 1,
        Verdict::Error | Verdict::Missing | Verdict::Diverged => 2,
        Verdict::Inconclusive => 3,
        Verdict::Pass => 4,
    };
    // Rows are sorted by size only if they changed or may have changed; the others are easier to
    // follow in the order of the suite.
    let size = |view: &RowView<'_>| match view.row.verdict {
        Verdict::Regressed | Verdict::Improved | Verdict::Inconclusive => {
            view.row.estimate.as_ref().map_or(0.0, |estimate| estimate.ratio.ln().abs())
        }
        _ => 0.0,
    };
    rank(a).cmp(&rank(b)).then(size(b).total_cmp(&size(a)))
}

/// The category of a benchmark in the headline.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum HeadlineStanding {
    /// The benchmark was compared, but none of its metrics is gating.
    Reported,
    /// The benchmark is new, repaired or not measured on one side.
    NotCompared,
    /// The precedence of the verdict of its worst deciding row: the higher, the worse.
    Judged(u8),
    /// The benchmark is good except for waived rows.
    Waived,
}

/// Counts benchmarks by their standing.
fn tally(comparison: &Comparison, some_decide: bool) -> BTreeMap<HeadlineStanding, usize> {
    let mut worst: BTreeMap<&str, HeadlineStanding> = BTreeMap::new();
    for row in comparison.rows.iter().filter(|row| !is_of_all(row)) {
        let waived = row.waiver.as_ref().is_some_and(|waiver| !waiver.expired);
        let standing = match (row.fatal || !(some_decide || waived), waived) {
            (true, _) => HeadlineStanding::Judged(row.verdict.precedence()),
            (false, true) => HeadlineStanding::Waived,
            (false, false) if row.metric.is_some() => HeadlineStanding::Reported,
            (false, false) => HeadlineStanding::NotCompared,
        };
        let known = worst.entry(row.benchmark.as_str()).or_insert(standing);
        // A waiver excuses one row; it neither makes a good benchmark bad nor a bad one good.
        let good = HeadlineStanding::Judged(Verdict::Improved.precedence());
        *known = match (*known, standing) {
            (HeadlineStanding::Waived, other) | (other, HeadlineStanding::Waived) if other <= good => {
                HeadlineStanding::Waived
            }
            (HeadlineStanding::Waived, other) | (other, HeadlineStanding::Waived) => other,
            (one, other) => one.max(other),
        };
    }
    let mut counts = BTreeMap::new();
    for standing in worst.into_values() {
        *counts.entry(standing).or_insert(0) += 1;
    }
    counts
}

/// Returns whether a row is about the shift of all benchmarks, which is not a benchmark.
fn is_of_all(row: &Row) -> bool {
    row.benchmark.as_str() == ALL_BENCHMARKS
}

fn headline(comparison: &Comparison, some_decide: bool) -> String {
    let counts = tally(comparison, some_decide);
    let all: usize = counts.values().sum();
    let word = match comparison.verdict {
        Verdict::Pass => "Pass",
        Verdict::Improved => "Improved",
        Verdict::Regressed => "Regressed",
        Verdict::Diverged => "Diverged",
        Verdict::Inconclusive => "Inconclusive",
        Verdict::Missing => "Missing",
        Verdict::Error => "Error",
    };
    if all == 0 {
        return format!("{word}: nothing was compared.");
    }
    if comparison.verdict == Verdict::Error && !some_decide {
        return format!("{word}: no metric is gating, so none of {} was judged.", counted(all, "benchmark"));
    }
    let mut diverged = comparison.rows.iter().filter(|row| row.verdict == Verdict::Diverged);
    let of_base = diverged.all(words::is_of_base);
    let judged = counts.iter().rev().filter_map(|(standing, count)| match standing {
        HeadlineStanding::Judged(precedence) => {
            let verdict = Verdict::ALL.into_iter().find(|verdict| verdict.precedence() == *precedence)?;
            Some((happened(verdict, *count, of_base), *count))
        }
        HeadlineStanding::Waived | HeadlineStanding::NotCompared | HeadlineStanding::Reported => None,
    });
    let count_of = |standing: HeadlineStanding| counts.get(&standing).copied().filter(|count| *count > 0);
    let waived = count_of(HeadlineStanding::Waived)
        .map(|count| (if count == 1 { "is waived" } else { "are waived" }, count));
    let not_compared = count_of(HeadlineStanding::NotCompared)
        .map(|count| (if count == 1 { "was not compared" } else { "were not compared" }, count));
    let reported = count_of(HeadlineStanding::Reported)
        .map(|count| (if count == 1 { "has no gating metric" } else { "have no gating metric" }, count));
    let parts: Vec<String> = judged
        .chain(waived)
        .chain(not_compared)
        .chain(reported)
        .enumerate()
        .map(|(at, (what, count))| {
            if at == 0 {
                format!("{count} of {} {what}", counted(all, "benchmark"))
            } else {
                format!("{count} {what}")
            }
        })
        .collect();
    let together = comparison.rows.iter().filter(|row| is_of_all(row) && row.fatal);
    let together = together.filter(|row| !matches!(row.verdict, Verdict::Pass));
    let together = together.map(|row| format!("all together {}", happened(row.verdict, all.max(2), of_base)));
    let parts: Vec<String> = parts.into_iter().chain(together).collect();
    format!("{word}: {}.", parts.join(", "))
}

/// Returns what happened to `count` benchmarks; `of_base` if outputs are only known to differ from base's.
fn happened(verdict: Verdict, count: usize, of_base: bool) -> &'static str {
    let one = count == 1;
    match verdict {
        Verdict::Pass => "passed",
        Verdict::Improved => "improved",
        Verdict::Regressed => "regressed",
        Verdict::Diverged if of_base && one => "has different outputs than base",
        Verdict::Diverged if of_base => "have different outputs than base",
        Verdict::Diverged if one => "has wrong outputs",
        Verdict::Diverged => "have wrong outputs",
        Verdict::Inconclusive if one => "is inconclusive",
        Verdict::Inconclusive => "are inconclusive",
        Verdict::Missing if one => "is missing",
        Verdict::Missing => "are missing",
        Verdict::Error => "could not be judged",
    }
}

/// Relative difference that is hardly seen next to rounded values.
const SHOWN: f64 = 1e-3;

fn legend(comparison: &Comparison) -> Option<Legend> {
    let estimated = comparison.rows.iter().filter_map(|row| row.estimate.as_ref());
    let measured = |estimate: &&Estimate| !matches!(estimate.method, Method::Identical | Method::Exact);
    let mut estimates = estimated.filter(measured).peekable();
    estimates.peek()?;
    let samples = |row: &Row| {
        let side = row.head.as_ref().or(row.base.as_ref());
        side.map_or((0, 0), |side| (side.samples, u64::from(side.processes)))
    };
    let is_once = comparison.rows.iter().all(|row| samples(row).0 <= 1);
    // A row that was not judged states no number of sessions, and shows other values.
    let is_separate = estimates.clone().all(|estimate| {
        matches!(estimate.method, Method::Unpaired | Method::Summaries) && estimate.sessions.is_some()
    });
    // Rows that don't gate are not in the short report.
    let gating = comparison.rows.iter().filter(|row| row.fatal).filter_map(|row| row.estimate.as_ref());
    let gates_by_summaries = gating.clone().any(|estimate| estimate.method == Method::Summaries);
    let has_summaries = estimates.clone().any(|estimate| estimate.method == Method::Summaries);
    let has_history = estimates.clone().any(|estimate| estimate.method == Method::History);
    let location = |side: &Option<SideStats>| side.as_ref().map(|side| side.location);
    let is_stated =
        |row: &Row| (row.typical.base, row.typical.head) == (location(&row.base), location(&row.head));
    let is_stated = comparison.rows.iter().filter(|row| row.estimate.is_some()).all(is_stated);
    let is_ratio = |row: &Row| {
        let effect = row.estimate.as_ref().map(|estimate| estimate.ratio);
        let both = row.typical.base.zip(row.typical.head).zip(effect);
        both.is_none_or(|((base, head), ratio)| (head / base / ratio - 1.0).abs() < SHOWN)
    };
    let is_ratio = comparison.rows.iter().all(is_ratio);
    let has_sessions = estimates.clone().any(|estimate| estimate.sessions.is_some_and(|count| count > 1));
    let statistic = (is_separate && is_stated && !is_once && !gates_by_summaries).then_some("median");
    let values = if estimates.all(|estimate| estimate.method == Method::Welch) {
        "the mean"
    } else if is_once {
        "the value in each file"
    } else if is_separate && !is_stated && is_ratio {
        "typical values, each estimated from all files of its side; their ratio is the change"
    } else if has_history {
        "the level of the stored sessions, and head's median (some tools print the mean)"
    } else if is_separate && has_summaries {
        "the median, or the mean if the file states no median"
    } else if is_separate {
        "the median (some tools print the mean)"
    } else if comparison.rows.iter().map(samples).any(|(samples, processes)| samples > processes) {
        "the faster quartile of a process's repetitions (tools print the mean)"
    } else {
        "the median process (tools print the mean)"
    };
    let intervals = comparison.rows.iter().filter_map(|row| row.estimate.as_ref()?.interval);
    let levels: Vec<f64> =
        intervals.map(|interval| interval.level).filter(|level| level.is_finite()).collect();
    let lowest = levels.iter().copied().reduce(f64::min).map(confidence);
    let highest = levels.iter().copied().reduce(f64::max).map(confidence);
    let values = format!("base → head: {values}.");
    Some(Legend {
        values,
        statistic,
        is_no_ratio: is_separate && has_sessions && !is_ratio,
        levels: lowest.zip(highest),
    })
}

/// Explanation of columns that only some reports have.
pub(super) const MORE_COLUMNS: &str = "CV: standard deviation over mean. n: processes of base + head.";

/// Rows that are open for the same reason.
#[derive(Debug, Clone)]
pub struct OpenGroup<'a> {
    pub rows: Vec<RowView<'a>>,
    /// The reason, in benchgate's words.
    pub sentence: String,
    /// The change that this much data could have detected, if more data would help.
    pub smallest: Option<String>,
    /// The spread that was assumed for these rows, and the data that would show it.
    pub assumed: Option<String>,
    /// Message of the tool about the first row; unescaped.
    pub detail: Option<String>,
}

/// Returns a detail without its numbers, which differ from row to row.
fn without_digits(detail: &Option<String>) -> Option<String> {
    Some(detail.as_ref()?.chars().filter(|c| !c.is_ascii_digit()).collect())
}

impl<'a> View<'a> {
    /// Returns the informational processor times of these latencies that clearly changed.
    pub(super) fn moved_cpu_times(&self, rows: &[RowView<'a>]) -> impl Iterator<Item = &RowView<'a>> {
        let is_one = |row: &&RowView<'a>| {
            let of_rows = |other: &RowView<'_>| other.name == row.name && other.metric.is_none();
            row.metric == Some(Metric::CPU_TIME.name.as_ref())
                && words::is_established(row.row)
                && rows.iter().any(of_rows)
        };
        self.reported.iter().filter(is_one)
    }

    /// Returns the undecided rows without a waiver, grouped by reason. The group with the largest
    /// possible change comes first.
    pub fn open_groups(&self) -> Vec<OpenGroup<'a>> {
        let mut groups: Vec<OpenGroup<'a>> = Vec::new();
        for row in self.open.iter().filter(|row| row.row.waiver.is_none()) {
            let words::Words { sentence, detail, .. } = words::open_kind(row.row);
            let same = |group: &&mut OpenGroup<'_>| {
                group.sentence == sentence && without_digits(&group.detail) == without_digits(&detail)
            };
            match groups.iter_mut().find(same) {
                Some(group) => group.rows.push(*row),
                None => groups.push(OpenGroup {
                    rows: vec![*row],
                    sentence,
                    smallest: None,
                    assumed: None,
                    detail,
                }),
            }
        }
        // If several groups share the explanation of a spread, it is shown with the first.
        let wide: Vec<&Row> = groups.iter().flat_map(|group| &group.rows).map(|row| row.row).collect();
        let wide: Vec<&Row> = wide.into_iter().filter(|row| words::is_wide(row)).collect();
        let mut said = HashSet::new();
        for group in &mut groups {
            let first = group.rows.iter().find(|row| words::is_wide(row.row));
            let kind = first.and_then(|row| words::assumed_kind(row.row));
            if let Some(kind) = kind.filter(|kind| said.insert(*kind)) {
                let rows = wide.iter().copied().filter(|row| words::assumed_kind(row) == Some(kind));
                group.assumed = words::assumed_spread(rows);
            }
            let estimates = group.rows.iter().filter_map(|row| row.row.estimate.as_ref());
            let known = estimates.filter_map(|estimate| estimate.minimum_detectable);
            group.smallest = range(known).filter(|_| group.rows[0].row.reason == Reason::Open);
        }
        groups
    }
}

fn facts(base: &RunSummary, head: &RunSummary) -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut add = |name, value: &dyn Fn(&RunSummary) -> Option<String>| {
        let (base, head) = (value(base), value(head));
        if base.is_some() || head.is_some() {
            facts.push(Fact { name, base, head });
        }
    };
    let present = |text: &String| (!text.is_empty()).then(|| text.clone());
    add("input", &|run| present(&run.label));
    add("format", &|run| present(&run.format));
    add("benchmarks", &|run| Some(run.benchmarks.to_string()));
    add("commit", &|run| run.commit.clone());
    add("tools", &|run| run.toolchain.as_ref().and_then(|tools| present(&tools.version)));
    add("compiler commit", &|run| run.toolchain.as_ref().and_then(|tools| present(&tools.compiler_commit)));
    add("runtime commit", &|run| run.toolchain.as_ref().and_then(|tools| present(&tools.runtime_commit)));
    add("testbed", &|run| run.testbed.as_ref().and_then(|testbed| present(&testbed.id)));
    add("machine", &|run| {
        let facts = &run.testbed.as_ref()?.facts;
        let facts: Vec<String> = facts.iter().map(|(name, value)| format!("{name} {value}")).collect();
        present(&facts.join(", "))
    });
    add("measured", &|run| run.context.date.clone());
    add("host", &|run| run.context.host_name.clone());
    add("processors", &|run| run.context.num_cpus.map(|count| count.to_string()));
    add("load", &|run| {
        let loads: Vec<String> = run.context.load_avg.iter().map(|load| format!("{load:.2}")).collect();
        present(&loads.join(", "))
    });
    add("benchmark library", &|run| {
        let parts = [run.context.library_version.clone(), run.context.library_build_type.clone()];
        present(&parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    });
    facts
}

/// Formats a mean's change and interval: `−36.0 % (−37.0 … −35.0 %, 99 % confidence)`.
pub(super) fn geomean(geomean: &Geomean) -> String {
    let Geomean { ratio, metric, .. } = geomean;
    let bounds = geomean.interval.map(|bounds| {
        let interval = interval(bounds.low, bounds.high, *ratio).replace(' ', "\u{a0}");
        format!(" ({interval}, {} confidence)", percent(bounds.level))
    });
    format!("{}{}", effect(*ratio, &metric.unit, metric.better), bounds.unwrap_or_default())
}

/// Returns the unit of a row, for renderers that print raw numbers.
pub(super) fn unit(row: &Row) -> Option<&Unit> {
    row.metric.as_ref().map(|metric| &metric.unit)
}
