//! The cells of a row as text, before any layout.

use benchgate_core::model::{LintCode, Metric, counted};
use benchgate_gate::{Method, Reason, Row, SideStats, Typical};

use super::human::{change_of, effect, interval, percent, quantity};
use super::words;

/// A row and its cells. Cells are formatted on demand, because most formats show only some rows and few of
/// their cells. The name is untrusted and raw.
#[derive(Debug, Clone, Copy)]
pub struct RowView<'a> {
    pub row: &'a Row,
    pub name: &'a str,
    /// The metric's name, unless it is the default one.
    pub metric: Option<&'a str>,
    /// The row whose numbers are shown: for a benchmark with wrong outputs, the row of its latency.
    pub(super) numbers: &'a Row,
}

impl<'a> RowView<'a> {
    pub fn new(row: &'a Row) -> Self {
        let metric = row.metric.as_ref().map(|metric| metric.name.as_ref());
        let metric = metric.filter(|name| *name != Metric::LATENCY.name);
        Self { row, name: row.benchmark.as_str(), metric, numbers: row }
    }

    /// Formats the effect: `+44.1 %`, `8.76× faster`.
    pub fn effect(&self) -> Option<String> {
        let row = self.numbers;
        let estimate = row.estimate.as_ref().filter(|estimate| estimate.method != Method::Identical)?;
        let metric = row.metric.as_ref()?;
        Some(effect(estimate.ratio, &metric.unit, metric.better))
    }

    /// Formats the effect and its interval in one cell: `+44.1 % (+43.1 … +45.1)`, `8.76× faster (8.70 … 8.83)`.
    pub(super) fn change(&self) -> String {
        let Some(effect) = self.effect() else { return String::new() };
        match self.interval() {
            // The unit of the effect applies to both.
            Some(bounds) => match (effect.ends_with(" %"), bounds.strip_suffix(" %")) {
                (true, Some(bounds)) => format!("{effect} ({bounds})"),
                (false, Some(_)) => format!("{effect} ({bounds})"),
                (_, None) => format!("{effect} ({})", bounds.trim_end_matches('×')),
            },
            None => effect,
        }
    }

    pub fn interval(&self) -> Option<String> {
        let estimate = self.numbers.estimate.as_ref()?;
        let bounds = estimate.interval?;
        Some(interval(bounds.low, bounds.high, estimate.ratio))
    }

    /// Formats the numbers of processes, base + head: `24+24`.
    pub fn processes(&self) -> String {
        match (&self.numbers.base, &self.numbers.head) {
            (Some(base), Some(head)) => format!("{}+{}", base.processes, head.processes),
            (Some(base), None) => format!("{}+0", base.processes),
            (None, Some(head)) => format!("0+{}", head.processes),
            (None, None) => String::new(),
        }
    }

    /// Returns `12 blocks`, `samples pooled` …; empty if the number of processes is sufficient.
    pub fn method(&self) -> String {
        let Some(estimate) = &self.numbers.estimate else { return String::new() };
        match estimate.method {
            Method::Paired => counted(estimate.blocks as usize, "block"),
            Method::Unpaired => "unpaired".to_owned(),
            Method::Summaries => "summaries".to_owned(),
            Method::Exact => "exact".to_owned(),
            Method::Welch => "Welch".to_owned(),
            Method::MannWhitney => "Mann-Whitney".to_owned(),
            Method::Identical => "identical".to_owned(),
            Method::History => "history".to_owned(),
        }
    }

    /// Formats the values that agree with the effect: `13.47 → 14.65 µs`, or a single one if both sides are
    /// identical.
    pub fn values(&self) -> String {
        let Typical { base, head } = self.numbers.typical;
        let Some(metric) = self.numbers.metric.as_ref().filter(|_| base.is_some() || head.is_some()) else {
            return String::new();
        };
        let same = matches!(self.numbers.reason, Reason::Identical | Reason::Exact) && base == head;
        match head {
            Some(both) if same => quantity(both, &metric.unit),
            _ => change_of(base, head, &metric.unit),
        }
    }

    pub fn mean(&self) -> String {
        self.of_both(|side| Some(side.mean))
    }

    pub fn stddev(&self) -> String {
        self.of_both(|side| side.stddev)
    }

    pub fn cv(&self) -> String {
        let side = |side: &Option<SideStats>| side.as_ref().and_then(|side| side.cv);
        match (side(&self.numbers.base), side(&self.numbers.head)) {
            (None, None) => String::new(),
            (base, head) => {
                let text = |cv: Option<f64>| cv.map_or("?".to_owned(), percent);
                let (base, head) = (text(base), text(head));
                // One percent sign is enough for both.
                format!("{} → {head}", base.trim_end_matches(" %"))
            }
        }
    }

    pub fn floor(&self) -> String {
        self.numbers.policy.as_ref().map(|_| words::floor(self.numbers)).unwrap_or_default()
    }

    /// Formats the smallest change that the row could have detected.
    pub fn smallest(&self) -> String {
        let estimate = self.numbers.estimate.as_ref();
        estimate.and_then(|estimate| estimate.minimum_detectable).map(percent).unwrap_or_default()
    }

    /// Returns why the row has its verdict. The detail is untrusted and raw.
    pub(super) fn words(&self) -> words::Words {
        words::reason(self.row)
    }

    /// Describes head's loss of accuracy, if any.
    pub(super) fn accuracy(&self) -> Option<words::Words> {
        words::accuracy(self.row)
    }

    /// Returns why the row has its verdict, with the untrusted detail; unescaped.
    pub fn sentence(&self) -> String {
        let words = self.words();
        match words.detail {
            Some(detail) => format!("{}: {detail}", words.sentence),
            None => words.sentence,
        }
    }

    fn of_both(&self, value: fn(&SideStats) -> Option<f64>) -> String {
        // A withheld value is stored as NaN.
        let side = |side: &Option<SideStats>| side.as_ref().and_then(value).filter(|value| !value.is_nan());
        let (base, head) = (side(&self.numbers.base), side(&self.numbers.head));
        match &self.numbers.metric {
            Some(metric) if base.is_some() || head.is_some() => change_of(base, head, &metric.unit),
            _ => String::new(),
        }
    }

    /// Returns whether a waiver is in force.
    pub fn waived(&self) -> bool {
        self.row.waiver.as_ref().is_some_and(|waiver| !waiver.expired)
    }

    /// Returns the codes of the row's findings, each once.
    pub fn findings(&self) -> Vec<LintCode> {
        // The reason already states this finding.
        let is_said =
            |code: LintCode| code == LintCode::LimitExceeded && matches!(self.row.reason, Reason::Limit(_));
        let codes = self.row.lints.iter().map(|lint| lint.code);
        let mut codes: Vec<LintCode> = codes.filter(|code| !is_said(*code)).collect();
        codes.sort();
        codes.dedup();
        codes
    }
}
