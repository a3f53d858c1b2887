//! Absolute limits, in addition to the comparison with base. A limit applies to the median of head's
//! processes. A sign test bounds how often a value within its limit fails, whatever the distribution; a value
//! that is not clearly within its limit does not pass.

use std::collections::BTreeMap;

use benchgate_core::model::{
    BenchmarkGlob, Lint, LintCode, MetricKind, MetricSeries, Run, Testbed, Verdict, percents,
};
use benchgate_stats::multiplicity::holm_levels;
use benchgate_stats::{describe, sign_test};

use super::draft::blank;
use super::rules::Rules;
use super::status::Matched;
use super::{Limit, Reason, Row, series};

/// A value together with its limit.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitReading {
    /// True if larger values are beyond the limit.
    pub is_max: bool,
    /// The limit in the metric's unit. If values are withheld, it is 1 and the other values are relative to
    /// it.
    pub limit: f64,
    /// The interval of the typical value.
    pub low: f64,
    pub high: f64,
    /// Number of processes, if there are too few to show on which side of the limit the value is.
    pub too_few: Option<usize>,
    pub owner: Option<String>,
    pub withheld: bool,
}

impl LimitReading {
    /// Replaces absolute values by ratios to the limit.
    pub fn withhold(&mut self) {
        if !self.withheld {
            (self.low, self.high) = (self.low / self.limit, self.high / self.limit);
            (self.limit, self.withheld) = (1.0, true);
        }
    }
}

/// One bound of a limit, and the values that are compared with it.
struct Question<'a> {
    pair: Matched<'a>,
    /// The row of this metric, if there is one.
    row: Option<usize>,
    limit: &'a Limit,
    is_max: bool,
    bound: f64,
    /// One value per process, or a single exact one; sorted.
    values: Vec<f64>,
    is_exact: bool,
}

/// Judges each row that has a limit. A row that has failed already keeps its verdict and gets the finding.
pub(super) fn judge(rows: &mut Vec<Row>, pairs: &[Matched<'_>], head: &Run, rules: &Rules<'_>, alpha: f64) {
    let mut questions: Vec<Question<'_>> = Vec::new();
    let mut places: Option<BTreeMap<(String, String), usize>> = None;
    for pair in pairs {
        // If head has no result, the row states the reason and doesn't pass, unless the suite expects the
        // failure.
        let Some(benchmark) = pair.head.filter(|benchmark| benchmark.outcome.is_ok()) else { continue };
        for limit in rules.limits(&benchmark.name).filter(|limit| is_for(limit, head.testbed.as_ref())) {
            let places = places.get_or_insert_with(|| places_of(rows));
            let row = places.get(&(benchmark.name.to_string(), limit.metric.clone())).copied();
            let Some((values, is_exact)) = values(benchmark.metric(&limit.metric)) else {
                unjudged(rows, row, *pair, limit);
                continue;
            };
            // Sides that execute the same bytes are not measured long enough, and head did not change the
            // time.
            if row.is_some_and(|row| rows[row].reason == Reason::Identical) && !is_exact {
                continue;
            }
            for (is_max, bound) in [(true, limit.max), (false, limit.min)] {
                let Some(bound) = bound else { continue };
                let values = values.clone();
                questions.push(Question { pair: *pair, row, limit, is_max, bound, values, is_exact });
            }
        }
    }
    let p_beyond: Vec<f64> = questions.iter().map(Question::p_beyond).collect();
    for (question, level) in questions.iter().zip(holm_levels(&p_beyond, alpha)) {
        if let Some(row) = question.row {
            question.apply(&mut rows[row], level, alpha);
        } else if let Some(mut row) = question.row_of_its_own() {
            question.apply(&mut row, level, alpha);
            rows.extend(Some(row).filter(|row| row.verdict != Verdict::Pass));
        }
    }
}

fn places_of(rows: &[Row]) -> BTreeMap<(String, String), usize> {
    let named = rows.iter().enumerate().filter_map(|(at, row)| {
        Some(((row.benchmark.to_string(), row.metric.as_ref()?.name.to_string()), at))
    });
    // If several rows have the same name, the first one counts.
    named.rev().collect()
}

/// Returns whether a limit applies to a machine. An unknown machine may be any machine.
fn is_for(limit: &Limit, testbed: Option<&Testbed>) -> bool {
    let (Some(glob), Some(testbed)) = (&limit.testbed, testbed) else { return true };
    let glob = BenchmarkGlob::new(glob);
    testbed.facts.values().any(|fact| glob.matches(fact))
}

/// Returns the value of each process, or the only exact value.
fn values(series: Option<&MetricSeries>) -> Option<(Vec<f64>, bool)> {
    let series = series?;
    let readings = series::read(series).ok()?;
    if series.metric.kind == MetricKind::Exact {
        return Some((vec![readings.stats.location], true));
    }
    let value = |cost: &f64| (series.metric.better.worse() * cost).exp();
    Some((describe::sorted(&readings.clean.iter().map(value).collect::<Vec<f64>>()), false))
}

/// Records a limit without a value: the benchmark must not pass.
fn unjudged(rows: &mut Vec<Row>, place: Option<usize>, pair: Matched<'_>, limit: &Limit) {
    let Some(benchmark) = pair.head else { return };
    let is_settled = |row: &Row| {
        row.benchmark == benchmark.name
            && (matches!(row.reason, Reason::ExpectedFailure { .. })
                || row.fatal && !matches!(row.verdict, Verdict::Pass | Verdict::Improved))
    };
    if rows.iter().any(is_settled) {
        return;
    }
    let why = format!("the limit can't be judged: head has no usable value for {}", limit.metric);
    match place {
        Some(place) => rows[place].fatal = true,
        None => {
            let reason = Reason::too_little("limit not judged", why);
            rows.push(blank(&benchmark.name, pair, Verdict::Inconclusive, reason, true));
        }
    }
}

impl Question<'_> {
    /// Returns a row for a metric that base does not have.
    fn row_of_its_own(&self) -> Option<Row> {
        let benchmark = self.pair.head?;
        let series = benchmark.metric(&self.limit.metric)?;
        let mut row = blank(&benchmark.name, self.pair, Verdict::Pass, Reason::Exact, false);
        (row.metric, row.head) = (Some(series.metric.clone()), series::described(series));
        Some(row)
    }

    fn is_beyond(&self, value: f64) -> bool {
        if self.is_max { value > self.bound } else { value < self.bound }
    }

    fn beyond(&self) -> usize {
        self.values.iter().filter(|value| self.is_beyond(**value)).count()
    }

    /// Returns the chance that so many values are beyond the limit if the median is within it.
    fn p_beyond(&self) -> f64 {
        match self.beyond() {
            0 => 1.0,
            _ if self.is_exact => 0.0,
            beyond => sign_test(beyond, self.values.len()),
        }
    }

    /// Returns the chance that so many values are within the limit if the median is beyond it.
    fn p_within(&self) -> f64 {
        match self.values.len() - self.beyond() {
            0 => 1.0,
            _ if self.is_exact => 0.0,
            within => sign_test(within, self.values.len()),
        }
    }

    fn apply(&self, row: &mut Row, level: f64, alpha: f64) {
        // A finding that forbids a verdict about the change also forbids a verdict about the value, so the
        // value must not pass.
        if matches!(row.reason, Reason::Unusable(_) | Reason::UnitMismatch { .. }) {
            row.fatal = true;
            return;
        }
        let exceeded = self.p_beyond() <= level;
        if !exceeded && self.p_within() <= alpha {
            return;
        }
        let reading = self.reading(if exceeded { level } else { alpha }, alpha);
        if exceeded {
            row.lints.push(Lint::new(LintCode::LimitExceeded, reading.text()));
        }
        let is_green = matches!(row.verdict, Verdict::Pass | Verdict::Improved);
        let is_red = matches!(row.verdict, Verdict::Regressed | Verdict::Error | Verdict::Diverged);
        if exceeded && !(is_red && row.fatal) {
            (row.verdict, row.reason) = (Verdict::Regressed, Reason::Limit(reading));
        } else if is_green || !row.fatal {
            (row.verdict, row.reason) = (Verdict::Inconclusive, Reason::Limit(reading));
        }
        row.fatal = true;
    }

    /// Returns the reading; `beyond` and `within` are the levels of the interval's end on either side of the
    /// limit.
    fn reading(&self, beyond: f64, within: f64) -> LimitReading {
        let n = self.values.len();
        let skipped = |level: f64| (0..n).rev().find(|skipped| sign_test(n - skipped, n) <= level);
        let (below, above) = if self.is_max { (beyond, within) } else { (within, beyond) };
        let ends = skipped(below).zip(skipped(above)).filter(|(below, above)| below + above < n);
        let (low, high) = ends.unwrap_or((0, 0));
        LimitReading {
            is_max: self.is_max,
            limit: self.bound,
            low: self.values[low],
            high: self.values[n - 1 - high],
            too_few: (ends.is_none() && !self.is_exact).then_some(n),
            owner: self.limit.owner.clone(),
            withheld: false,
        }
    }
}

impl LimitReading {
    fn text(&self) -> String {
        let side = if self.is_max { "above" } else { "below" };
        let owner = self.owner.as_ref().map(|owner| format!("; owner: {owner}")).unwrap_or_default();
        let nearest = if self.is_max { self.low } else { self.high };
        let apart = match (nearest / self.limit - 1.0).abs() {
            apart if !apart.is_finite() => String::new(),
            apart if apart > 10.0 => format!("{} ", percents(apart)),
            apart => format!("at least {:.1} % ", 100.0 * apart),
        };
        format!("{apart}{side} the limit{owner}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CompareOptions, Policy, compare};
    use benchgate_core::model::{Benchmark, BenchmarkName, Metric, Process, Series};

    fn series(metric: Metric, values: &[f64]) -> MetricSeries {
        let process = |value: &f64| {
            let samples = [0.999, 1.0, 1.001, 1.002].map(|factor| value * factor).to_vec();
            Process { samples, ..Process::default() }
        };
        let series = match metric.kind {
            MetricKind::Exact => Series::Exact(values[0]),
            MetricKind::Noisy => Series::Processes(values.iter().map(process).collect()),
        };
        MetricSeries { metric, series }
    }

    fn run(metric: &Metric, values: &[f64]) -> Run {
        let mut benchmark = Benchmark::new("m/cpu/main");
        benchmark.metrics = vec![series(metric.clone(), values)];
        Run { benchmarks: vec![benchmark], ..Run::default() }
    }

    fn limit(metric: &Metric, max: Option<f64>, min: Option<f64>) -> Policy {
        let metric = metric.name.to_string();
        let (benchmark, owner) = ("m/*".to_owned(), Some("@o".to_owned()));
        let limits = vec![Limit { benchmark, metric, max, min, testbed: None, owner }];
        let mut policy = Policy { limits, ..Policy::default() };
        // These tests are not about changes.
        policy.metrics.iter_mut().for_each(|(_, rule)| rule.fatal = false);
        policy
    }

    /// Judges equal sides with values that vary by `spread` percent around `center`.
    fn judged(policy: &Policy, metric: &Metric, center: f64, spread: f64, processes: usize) -> Row {
        let values: Vec<f64> = (0..processes)
            .map(|at| center * (1.0 + spread / 100.0 * (2.0 * at as f64 / (processes - 1) as f64 - 1.0)))
            .collect();
        let [base, head] = [1.0, 1.000_001].map(|factor| {
            let values: Vec<f64> = values.iter().map(|value| value * factor).collect();
            run(metric, &values)
        });
        compare(&base, &head, policy, &CompareOptions::default()).rows.remove(0)
    }

    #[test]
    fn a_time_is_red_beyond_its_limit_open_near_it_and_as_before_within_it() {
        let policy = limit(&Metric::LATENCY, Some(12e6), None);
        let row = |center| judged(&policy, &Metric::LATENCY, center, 1.0, 24);
        let unlimited = Policy { limits: Vec::new(), ..policy.clone() };
        let without = judged(&unlimited, &Metric::LATENCY, 11.5e6, 1.0, 24);
        assert_eq!((row(11.5e6).verdict, row(11.5e6).reason), (without.verdict, without.reason));
        let red = row(12.5e6);
        assert_eq!(red.verdict, Verdict::Regressed);
        assert!(matches!(&red.reason, Reason::Limit(reading) if reading.low > reading.limit), "{red:?}");
        assert!(
            red.lints.iter().any(|lint| lint.code == LintCode::LimitExceeded && lint.detail.ends_with("@o"))
        );
        let near = row(12.01e6);
        assert_eq!(near.verdict, Verdict::Inconclusive);
        let is_around =
            |reading: &LimitReading| reading.low <= reading.limit && reading.limit <= reading.high;
        assert!(matches!(&near.reason, Reason::Limit(reading) if is_around(reading)), "{near:?}");
    }

    #[test]
    fn few_processes_neither_exceed_a_limit_nor_keep_it() {
        let policy = limit(&Metric::LATENCY, Some(12e6), None);
        for center in [6e6, 24e6] {
            let row = judged(&policy, &Metric::LATENCY, center, 1.0, 4);
            assert_ne!(row.verdict, Verdict::Pass);
            assert_ne!(row.verdict, Verdict::Regressed);
        }
    }

    #[test]
    fn a_count_is_compared_exactly_and_a_rate_with_its_least_value() {
        let dispatches = Metric::DISPATCH_COUNT;
        for (max, verdict) in [(7.0, Verdict::Pass), (6.0, Verdict::Regressed)] {
            let policy = limit(&dispatches, Some(max), None);
            let side = || run(&dispatches, &[7.0]);
            let rows = compare(&side(), &side(), &policy, &CompareOptions::default()).rows;
            assert_eq!(rows[0].verdict, verdict, "{max}");
        }
        let rate = Metric { better: benchgate_core::model::Better::Higher, ..Metric::LATENCY };
        let row = judged(&limit(&rate, None, Some(100.0)), &rate, 90.0, 1.0, 24);
        assert!(matches!(&row.reason, Reason::Limit(reading) if reading.high < 100.0), "{row:?}");
    }

    #[test]
    fn a_benchmark_without_a_value_is_not_green() {
        let policy = limit(&Metric::VMFB_SIZE, Some(1.0), None);
        let side = || run(&Metric::DISPATCH_COUNT, &[7.0]);
        let comparison = compare(&side(), &side(), &policy, &CompareOptions::default());
        assert_eq!(comparison.verdict, Verdict::Inconclusive);
    }

    #[test]
    fn a_limit_of_another_machine_is_not_this_ones() {
        let mut policy = limit(&Metric::DISPATCH_COUNT, Some(6.0), None);
        policy.limits[0].testbed = Some("AMD EPYC 9654*".to_owned());
        for (cpu, verdict) in [("AMD EPYC 9654 96-Core", Verdict::Regressed), ("Xeon", Verdict::Pass)] {
            let facts = [("cpu".to_owned(), cpu.to_owned())].into();
            let testbed = Some(Testbed { facts, ..Testbed::default() });
            let side = || Run { testbed: testbed.clone(), ..run(&Metric::DISPATCH_COUNT, &[7.0]) };
            let rows = compare(&side(), &side(), &policy, &CompareOptions::default()).rows;
            assert_eq!(rows[0].verdict, verdict, "{cpu}");
        }
    }

    #[test]
    fn the_ends_of_the_interval_agree_with_the_test() {
        let policy = limit(&Metric::LATENCY, Some(100.0), None);
        let rules = Rules::new(&policy, "");
        let limit = rules.limits(&BenchmarkName::new("m/cpu/main")).next().unwrap();
        for n in [8_usize, 24, 48] {
            for beyond in 0..=n {
                let values: Vec<f64> = (0..n)
                    .map(|at| if at < n - beyond { 90.0 + at as f64 * 0.1 } else { 110.0 + at as f64 })
                    .collect();
                let pair = Matched { base: None, head: None };
                let question =
                    Question { pair, row: None, limit, is_max: true, bound: 100.0, values, is_exact: false };
                let reading = question.reading(0.001, 0.01);
                if reading.too_few.is_none() {
                    assert_eq!(question.p_beyond() <= 0.001, reading.low > 100.0, "{beyond} of {n}");
                    assert_eq!(question.p_within() <= 0.01, reading.high <= 100.0, "{beyond} of {n}");
                }
            }
        }
    }
}
