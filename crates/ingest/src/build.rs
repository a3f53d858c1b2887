//! Turns values into series, for all formats except Google Benchmark. No other module turns a value that is
//! not a measurement into a lint.

use std::borrow::Cow;
use std::collections::BTreeMap;

use benchgate_core::model::{
    Benchmark, Better, Lint, LintCode, Metric, MetricKind, MetricSeries, Outcome, Process, Series, Stage,
    Summary, Testbed, Unit, is_in, name_words, significant, states_rate, states_waste, words,
};

use super::{IngestError, LineFault, line_fault};

/// Returns the number of nanoseconds in a unit of time, by the names that tools print.
pub(super) fn time_unit(name: &str) -> Option<f64> {
    Some(match name {
        "ps" => 1e-3,
        "ns" | "nsec" | "nanoseconds" => 1.0,
        "us" | "µs" | "μs" | "usec" | "microseconds" => 1e3,
        "ms" | "msec" | "milliseconds" => 1e6,
        "s" | "sec" | "secs" | "second" | "seconds" => 1e9,
        "min" | "minutes" => 60e9,
        "hr" => 3600e9,
        // Short units are case-sensitive: `MS` may be megasamples.
        _ if name.len() > 3 => return time_word(&name.to_ascii_lowercase()),
        _ => return None,
    })
}

/// Returns the nanoseconds in a unit that is written out.
fn time_word(word: &str) -> Option<f64> {
    Some(match word {
        "nanosecond" | "nanoseconds" | "nanos" | "nsec" | "nsecs" => 1.0,
        "microsecond" | "microseconds" | "micros" | "usec" | "usecs" => 1e3,
        "millisecond" | "milliseconds" | "millis" | "msec" | "msecs" => 1e6,
        "second" | "seconds" | "secs" => 1e9,
        "minute" | "minutes" | "mins" => 60e9,
        "hour" | "hours" => 3600e9,
        _ => return None,
    })
}

/// Converts a tool's own unit to the one form in which files are compared, and returns the factor to it: times are
/// in nanoseconds (`ns/step`) and rates are per second (`ops/s`).
pub(super) fn own_unit(unit: &str) -> (Cow<'_, str>, f64) {
    let (of, per) = unit.split_once('/').map_or((unit, None), |(of, per)| (of, Some(per)));
    match (time_unit(of), per, per.and_then(time_unit)) {
        (Some(scale), None, _) => ("ns".into(), scale),
        (Some(scale), Some(per), None) if of != "ns" => (format!("ns/{per}").into(), scale),
        (Some(scale), Some(_), Some(per)) => ("ns/s".into(), scale * 1e9 / per),
        (None, Some("s"), _) => (unit.into(), 1.0),
        (None, Some(_), Some(per)) => (format!("{of}/s").into(), 1e9 / per),
        _ => (unit.into(), 1.0),
    }
}

/// Clock frequencies, which are better if they are higher.
const HERTZ: &str = "hz khz mhz ghz";

/// Returns which direction is better for a unit, or for a name that contains one: `ms/step` is a time; `GB/s`,
/// `fps` and `TFLOPS` are rates. A guess could turn a halved throughput into an improvement, so the direction of any
/// other unit is unknown.
pub(super) fn direction(unit: &str) -> Better {
    if let Some(known) = Metric::built_in(unit) {
        return known.better;
    }
    // Units of time are case-sensitive: `MS/s` are samples per second.
    let (of, per) = unit.trim().split_once('/').unwrap_or((unit.trim(), ""));
    let is_clock = || is_in(HERTZ, of.to_lowercase().as_str());
    let is_rate = || (time_unit(per).is_some() || states_rate(unit)) && !states_waste(of);
    if time_unit(of).is_some() {
        Better::Lower
    } else if is_clock() || is_rate() {
        Better::Higher
    } else {
        Better::Unknown
    }
}

/// Last words in the names of metrics that count costs, and words that may follow: `allocs_per_iter`.
const COSTS: &str =
    "alloc allocs allocations malloc mallocs misses faults instructions cycles dispatches spills";
const OF_COSTS: &str = "per op ops iter iteration call byte element item";

/// Returns which direction is better for a metric with this name. In a metric's name, `hr` or `min` does not
/// stand for a unit of time.
pub(super) fn direction_of_name(name: &str) -> Better {
    let lower = name_words(name);
    let last = words(&lower).into_iter().rev().find(|word| !is_in(OF_COSTS, word));
    match direction(name) {
        _ if time_unit(name.trim()).is_some() => Better::Unknown,
        Better::Unknown if last.is_some_and(|word| is_in(COSTS, word)) => Better::Lower,
        known => known,
    }
}

/// Checks a name that appears once in a file and becomes part of the names of many rows: without a limit, a
/// file of megabytes would need gigabytes.
pub(super) fn carried(name: &str) -> Result<&str, &'static str> {
    const LONGEST: usize = 1024;
    if name.len() > LONGEST { Err("a name of more than 1024 bytes that many rows share") } else { Ok(name) }
}

/// Returns the machine that a foreign file describes; `None` if it describes none.
pub(super) fn testbed(facts: BTreeMap<String, String>) -> Option<Testbed> {
    let id = facts.values().map(String::as_str).collect::<Vec<_>>().join("/");
    (!facts.is_empty()).then_some(Testbed { id, facts, notes: BTreeMap::new() })
}

/// Creates a metric that is specific to its tool.
pub(super) fn own_metric(name: impl Into<Cow<'static, str>>, unit: Unit, better: Better) -> Metric {
    Metric { name: name.into(), unit, better, kind: MetricKind::Noisy }
}

/// Adds the processes of a metric, each of which is a list of samples in the tool's unit; `scale` converts
/// that unit to the metric's. A bad value is a lint: it forbids judging if it is a latency, and is a note
/// otherwise.
pub(super) fn processes(benchmark: &mut Benchmark, metric: Metric, scale: f64, processes: Vec<Vec<f64>>) {
    let main = metric.name == Metric::LATENCY.name;
    let total: usize = processes.iter().map(Vec::len).sum();
    let (mut kept, mut zero, mut not_finite) = (Vec::new(), 0usize, 0usize);
    for samples in processes {
        let mut good = Vec::with_capacity(samples.len());
        for sample in samples {
            let sample = sample * scale;
            if !sample.is_finite() {
                not_finite += 1;
            } else if sample < 0.0 && !metric.may_be_negative() || sample == 0.0 && main {
                zero += 1;
            } else {
                good.push(sample);
            }
        }
        if !good.is_empty() {
            kept.push(Process { samples: good, ..Process::default() });
        }
    }
    if zero + not_finite > 0 && !main {
        let detail = format!("{}: {} of {total} values are not measurements", metric.name, zero + not_finite);
        benchmark.lints.push(Lint::new(LintCode::DroppedMetric, detail));
        if not_finite > 0 {
            benchmark.lints.extend(lost(&metric));
        }
        return;
    }
    if zero > 0 {
        let detail = format!("{zero} of {total} times are zero or less");
        benchmark.lints.push(Lint::new(LintCode::ZeroTime, detail));
    }
    if not_finite > 0 {
        let detail = format!("{not_finite} of {total} times are NaN or infinite");
        benchmark.lints.push(Lint::new(LintCode::NonFinite, detail));
    }
    if main && total == 1 {
        benchmark.lints.push(Lint::new(LintCode::SingleRepetition, "one repetition"));
    }
    if !kept.is_empty() {
        benchmark.metrics.push(MetricSeries { metric, series: Series::Processes(kept) });
    }
}

/// Adds a metric for which only a summary in the tool's unit was kept.
pub(super) fn summary(benchmark: &mut Benchmark, metric: Metric, scale: f64, summary: Summary) {
    let main = metric.name == Metric::LATENCY.name;
    check_summary(benchmark, &[], &summary);
    let scaled = |value: Option<f64>| value.map(|value| value * scale);
    let summary = Summary {
        n: summary.n,
        mean: scaled(summary.mean),
        median: scaled(summary.median),
        stddev: scaled(summary.stddev).filter(|_| summary.n != Some(1)),
        q1: scaled(summary.q1),
        q3: scaled(summary.q3),
        min: scaled(summary.min),
        max: scaled(summary.max),
        interval: summary.interval.map(|(low, high)| (low * scale, high * scale)),
        session: summary.session,
    };
    let centre = [summary.mean, summary.median];
    let spread = [summary.stddev, summary.q1, summary.q3, summary.min, summary.max];
    let finite = centre.iter().chain(&spread).flatten().all(|value| value.is_finite());
    let positive = metric.may_be_negative()
        || centre.iter().flatten().all(|&value| value > 0.0 || (value == 0.0 && !main))
            && spread.iter().flatten().all(|&value| value >= 0.0);
    let code = match (main, finite, positive) {
        (_, true, true) => {
            if main {
                benchmark.lints.push(Lint::new(LintCode::AggregatesOnly, "no repetition was kept"));
            }
            if main && summary.n == Some(1) {
                benchmark.lints.push(Lint::new(LintCode::SingleRepetition, "one repetition"));
            }
            let series = Series::Summaries(vec![summary]);
            benchmark.metrics.push(MetricSeries { metric, series });
            return;
        }
        (true, false, _) => LintCode::NonFinite,
        (true, true, false) => LintCode::ZeroTime,
        (false, ..) => LintCode::DroppedMetric,
    };
    benchmark.lints.push(Lint::new(code, format!("{}: a stated value is not a measurement", metric.name)));
    if !main && !finite {
        benchmark.lints.extend(lost(&metric));
    }
}

/// Returns the finding that a metric other than the latency is not a number. It doesn't count if base has the
/// same finding. JMH's profilers have no number if nothing was collected.
fn lost(metric: &Metric) -> Option<Lint> {
    let is_of_profiler = ["gc.", "safepoints."].iter().any(|start| metric.name.starts_with(start));
    let problem = || Lint::new(LintCode::ReportedProblem, format!("`{}` is NaN or infinite", metric.name));
    (!is_of_profiler).then(problem)
}

/// Marks a benchmark as failed and drops its numbers.
pub(super) fn fail(benchmark: &mut Benchmark, stage: Stage, why: impl Into<String>) {
    let why = Some(why.into()).filter(|why| !why.is_empty());
    let why = why.unwrap_or_else(|| "the tool gave no reason".to_owned());
    benchmark.metrics.clear();
    benchmark.lints.push(Lint::new(LintCode::Errored, why.clone()));
    benchmark.outcome = Outcome::Failed { stage, why };
}

// The first limit is the number of benchmarks in a result of any format. The others limit the number of
// values in formats where each value takes several times its own size in memory.

/// Maximum number of benchmarks in one result, over all sides. The rows of each take 14 KB while they are
/// compared, so a result with a million would need more memory than most machines have.
pub const MOST_BENCHMARKS: usize = 20_000;

/// Returns whether a reader may keep another benchmark. A reader keeps one more than allowed and drops the
/// rest, so that [`check`] notices and memory stays bounded.
pub(super) fn has_room(kept: usize) -> bool {
    kept <= MOST_BENCHMARKS
}

/// Rejects a result with too many benchmarks.
pub(super) fn check(benchmarks: usize, label: &str) -> Result<(), IngestError> {
    if benchmarks <= MOST_BENCHMARKS {
        return Ok(());
    }
    Err(IngestError::TooManyBenchmarks { label: label.to_owned(), limit: MOST_BENCHMARKS })
}

/// Maximum number of values in a document that is read as a whole. Each takes 16 to 32 bytes in memory, and
/// possibly only two in the file.
const MOST_VALUES: usize = 8 << 20;
/// Maximum number of runs in a result in which each run is a process. Each takes half a kilobyte while they
/// are compared.
const MOST_RUNS: usize = 1 << 18;

/// Rejects a document with too many values before it is read.
pub(super) fn check_values(text: &str) -> Result<(), LineFault> {
    let values = text.bytes().filter(|byte| *byte == b',').count();
    at_most(values, MOST_VALUES, "values")
}

/// Rejects a result with too many runs.
pub(super) fn check_runs(runs: usize) -> Result<(), LineFault> {
    at_most(runs, MOST_RUNS, "runs")
}

fn at_most(found: usize, most: usize, what: &str) -> Result<(), LineFault> {
    if found <= most { Ok(()) } else { Err(line_fault(1, format!("it has more than {most} {what}"))) }
}

/// Share by which a total and the sum of its parts may differ.
const ROUNDING: f64 = 0.01;

/// Share of the largest number that arithmetic in single precision may lose.
const ARITHMETIC: f64 = 1e-6;

/// Returns whether two numbers are equal except for rounding. A number that is not finite is ignored.
pub(super) fn agree(one: f64, two: f64) -> bool {
    let apart = (one - two).abs();
    apart.is_nan() || apart <= ROUNDING * one.abs().max(two.abs())
}

/// Adds the finding for a contradiction, which prevents a verdict about the benchmark.
pub(super) fn contradict(benchmark: &mut Benchmark, detail: impl Into<String>) {
    benchmark.lints.push(Lint::new(LintCode::Contradictory, detail));
}

/// Compares a count that the file states with the actual number of `what`.
pub(super) fn check_count(benchmark: &mut Benchmark, stated: Option<u64>, found: usize, what: &str) {
    if let Some(stated) = stated.filter(|stated| *stated != found as u64) {
        contradict(benchmark, format!("{found} {what}, but the file states {stated}"));
    }
}

/// Compares what the file states about samples with the samples, both in the tool's unit. Without samples,
/// the statements are compared with each other.
pub(super) fn check_summary(benchmark: &mut Benchmark, samples: &[f64], stated: &Summary) {
    if let Some(detail) = contradiction(samples, stated, "the file's unit") {
        contradict(benchmark, detail);
    }
}

/// Describes how the statements of a summary contradict the samples or, without samples, each other. All are in `unit`.
pub(super) fn contradiction(samples: &[f64], stated: &Summary, unit: &str) -> Option<String> {
    if samples.is_empty() {
        return is_impossible(stated)
            .then(|| "no set of times has the statistics that the file states".to_owned());
    }
    if let Some(n) = stated.n.filter(|n| *n != samples.len() as u64) {
        return Some(format!("{} samples, but the file states {n}", samples.len()));
    }
    if samples.iter().any(|sample| !sample.is_finite()) {
        return None;
    }
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len() - 1;
    let count = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / count;
    let squares = samples.iter().map(|sample| (sample - mean).powi(2)).sum::<f64>();
    let divisor = (count - 1.0).max(1.0);
    // Tools define quantiles differently, but always between the two neighboring samples; and they divide the
    // variance by n or by n − 1.
    let (below, above) = ((sorted.len() / 4).saturating_sub(1), (sorted.len() / 4 + 1).min(last));
    let found = [
        ("mean", stated.mean, mean, mean),
        ("median", stated.median, sorted[last / 2], sorted[sorted.len() / 2]),
        ("least", stated.min, sorted[0], sorted[0]),
        ("largest", stated.max, sorted[last], sorted[last]),
        ("first quartile", stated.q1, sorted[below], sorted[above]),
        ("third quartile", stated.q3, sorted[last - above], sorted[last - below]),
        ("deviation", stated.stddev, (squares / count).sqrt(), (squares / divisor).sqrt()),
    ];
    let [ours, theirs] = [Printed::new(samples.iter().copied()), Printed::new(values(stated))];
    let largest = sorted[last].abs().max(sorted[0].abs());
    found.into_iter().find_map(|(name, stated, low, high)| {
        let stated = stated?;
        if !stated.is_finite() {
            return Some(format!(
                "the {name} of the samples is {}, but the file's is not a number",
                significant(high, 4)
            ));
        }
        // Small samples may be printed with more digits than large ones.
        let of_samples = match name {
            "mean" => samples.iter().map(|sample| ours.open(*sample)).sum::<f64>() / count,
            // Half of the samples may have been rounded up and the other half down, which changes the root of their
            // mean square by one rounding error, and the deviation of a sample by more.
            "deviation" => ours.open(largest) * (count / divisor).sqrt(),
            _ => ours.open(high),
        };
        let open = of_samples + theirs.open(stated) + ARITHMETIC * largest;
        (stated < low - open || stated > high + open).then(|| {
            let [found, stated] = [high, stated].map(|value| significant(value, 4));
            format!("the {name} of the samples is {found}, but the file states {stated} (both in {unit})")
        })
    })
}

/// Returns whether no samples can have these statistics: a mean or median outside the extremes or quartiles,
/// or a deviation that is too small for the distance between mean and median, or too large for the distance
/// between the extremes.
fn is_impossible(stated: &Summary) -> bool {
    // A deviation may be computed from a ratio, and then has more digits than the tool prints.
    let places = Printed::new(values(&Summary { stddev: None, ..stated.clone() }));
    let deviations = Printed::new(values(stated));
    let open = |value: f64| places.open(value) + ARITHMETIC * value.abs();
    let open_deviation = |value: f64| deviations.open(value) + ARITHMETIC * value.abs();
    let is_above = |one: f64, two: f64| one - two > open(one) + open(two);
    let is_unsorted = |list: &[Option<f64>]| {
        let known: Vec<f64> = list.iter().copied().flatten().collect();
        known.windows(2).any(|pair| is_above(pair[0], pair[1]))
    };
    let (low, high) = stated.interval.unzip();
    let range = stated.max.zip(stated.min).map(|(max, min)| max - min);
    let skew = stated.mean.zip(stated.median).map(|(mean, median)| (mean - median).abs());
    // Nothing follows from a missing deviation, or from the deviation of a single repetition.
    let deviation = stated.stddev.filter(|_| stated.n != Some(1));
    let centre = stated.mean.or(stated.median).map_or(0.0, open);
    let is_wider = |one: Option<f64>, two: Option<f64>| {
        one.zip(two)
            .is_some_and(|(one, two)| one - two > 2.0 * centre + open_deviation(one) + open_deviation(two))
    };
    // The interval is that of the mean or of the median, and a few slow calls move the mean away from the median.
    let centres = [stated.median, stated.mean].into_iter().filter(Option::is_some);
    let is_beside = centres.clone().count() > 0 && centres.clone().all(|it| is_unsorted(&[low, it, high]));
    is_unsorted(&[stated.min, stated.q1, stated.median, stated.q3, stated.max])
        || is_unsorted(&[stated.min, stated.mean, stated.max])
        || is_unsorted(&[low, high])
        || is_beside
        || is_wider(deviation, range)
        || is_wider(skew, deviation)
}

fn values(stated: &Summary) -> impl Iterator<Item = f64> {
    let Summary { mean, median, stddev, q1, q3, min, max, .. } = *stated;
    [mean, median, stddev, q1, q3, min, max].into_iter().flatten()
}

/// The significant digits and decimals of numbers that were all printed by one rule.
struct Printed {
    digits: i32,
    /// Significant digits of the numbers with decimals. Tools don't round the places before the decimal point of larger
    /// numbers, which therefore have more digits.
    decimal_digits: i32,
    decimals: i32,
}

/// Default number of significant digits of C and C++.
const C_DIGITS: i32 = 6;

impl Printed {
    fn new(values: impl Iterator<Item = f64>) -> Self {
        let mut printed = Self { digits: 1, decimal_digits: 1, decimals: 0 };
        let mut places = 1;
        // Among this many numbers, some don't end in zeros.
        for value in values.filter(|value| value.is_finite() && *value != 0.0).take(64) {
            // Converting units may change the last digit of a double.
            let text = format!("{:.14e}", value.abs());
            let Some((mantissa, exponent)) = text.split_once('e') else { continue };
            let exponent: i32 = exponent.parse().unwrap_or_default();
            let digits = mantissa.trim_end_matches('0').trim_end_matches('.').len().saturating_sub(1).max(1);
            let digits = i32::try_from(digits).unwrap_or(i32::MAX);
            printed.digits = printed.digits.max(digits);
            places = places.max(exponent + 1);
            if digits > exponent + 1 {
                printed.decimal_digits = printed.decimal_digits.max(digits);
            }
            printed.decimals = printed.decimals.max(digits - 1 - exponent);
        }
        // C++ prints six digits, and numbers from a million on with an exponent: `1.51425e+06`.
        let has_exponents = places > C_DIGITS && printed.digits <= C_DIGITS;
        printed.digits = if has_exponents { C_DIGITS } else { printed.digits.max(places) };
        printed
    }

    /// Returns how far a printed number may be from the original: half a unit in its last place.
    fn open(&self, value: f64) -> f64 {
        let exponent = if value == 0.0 { 0 } else { value.abs().log10().floor().clamp(-400.0, 400.0) as i32 };
        let digits = if exponent < self.decimal_digits { self.decimal_digits } else { self.digits };
        0.499 * 10f64.powi((exponent + 1 - digits).max(-self.decimals))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number as Google Benchmark's console prints it: three digits, and more of a large number.
    fn on_console(value: f64) -> f64 {
        let decimals = match value {
            ..1.0 => 3,
            ..10.0 => 2,
            ..100.0 => 1,
            _ => 0,
        };
        format!("{value:.decimals$}").parse().unwrap()
    }

    fn mean(samples: &[f64]) -> f64 {
        samples.iter().sum::<f64>() / samples.len() as f64
    }

    fn deviation(samples: &[f64]) -> f64 {
        let squares: f64 = samples.iter().map(|sample| (sample - mean(samples)).powi(2)).sum();
        (squares / (samples.len() as f64 - 1.0)).sqrt()
    }

    fn found(samples: &[f64], stated: &Summary) -> Option<String> {
        contradiction(samples, stated, "ns")
    }

    #[test]
    fn rounded_samples_contradict_no_statistic_of_the_exact_ones() {
        let mut state = 11_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        for round in 0..40_000 {
            let (count, center) = (2 + round % 4, [12.0, 90.0, 110.0, 250.0, 999.0, 5000.0][round / 4 % 6]);
            let spread = [0.01, 0.1, 20.0][round / 24 % 3];
            let exact: Vec<f64> = (0..count).map(|_| center * (1.0 + spread * random())).collect();
            let mut sorted = exact.clone();
            sorted.sort_by(f64::total_cmp);
            let stated = Summary {
                mean: Some(on_console(mean(&exact))),
                median: Some(on_console((sorted[(count - 1) / 2] + sorted[count / 2]) / 2.0)),
                stddev: Some(on_console(deviation(&exact))),
                ..Summary::default()
            };
            let printed: Vec<f64> = exact.iter().map(|value| on_console(*value)).collect();
            for statistic in [
                Summary { mean: stated.mean, ..Summary::default() },
                Summary { median: stated.median, ..Summary::default() },
                Summary { stddev: stated.stddev, ..Summary::default() },
            ] {
                assert_eq!(found(&printed, &statistic), None, "{exact:?}");
            }
            // The console prints a small deviation as 0.000, but its ratio.
            let ratio = 1e-4 * (1e4 * deviation(&exact) / mean(&exact)).round();
            let stddev = stated.mean.map(|mean| mean * ratio);
            assert_eq!(found(&[], &Summary { stddev, ..stated }), None, "{exact:?}");
        }
    }

    #[test]
    fn a_deviation_that_rounding_does_not_explain_is_a_contradiction() {
        let of = |samples: &[f64], stddev: f64| {
            found(samples, &Summary { stddev: Some(stddev), ..Summary::default() })
        };
        assert_eq!(of(&[258.0, 250.0, 249.0], 5.44), None);
        let detail = of(&[258.0, 250.0, 249.0], 5.56).unwrap();
        assert_eq!(detail, "the deviation of the samples is 4.933, but the file states 5.560 (both in ns)");
        // From a million on, C++ rounds to tens and more.
        let large = [1.514_25e6, 1.547_02e6, 1.531_52e6];
        let mean = |mean: f64| found(&large, &Summary { mean: Some(mean), ..Summary::default() });
        assert_eq!(mean(1.530_93e6), None);
        assert!(mean(1.530_99e6).is_some());
        // Samples with all digits were not rounded.
        let exact = [258.123_456_789, 250.345_678_912, 249.567_891_234];
        assert_eq!(of(&exact, deviation(&exact)), None);
        assert!(of(&exact, deviation(&exact) + 0.01).is_some());
    }
}
