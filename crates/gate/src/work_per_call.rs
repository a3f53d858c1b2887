//! Work of a call, where a file states a rate next to the time: a rate times the time of a call is the number of
//! items or bytes that the call processes.

use benchgate_core::model::{Benchmark, Metric, MetricSeries, Process, Series, Summary, Unit};
use benchgate_stats::describe;

/// Share by which the work of a call must differ at least: less would hide no slowdown.
const LEAST: f64 = 0.01;

/// Rounding, as a share, beyond which printed values don't show the work.
const COARSEST: f64 = 0.02;

/// Number of digits that every tool prints; if fewer are seen, the others are zeros.
const DIGITS: usize = 3;

/// Returns the rate by which the work of a call differs, as `items-per-second: 64 / 32 per call`; `None` if the work
/// is the same or unknown.
pub fn difference(base: &Benchmark, head: &Benchmark) -> Option<String> {
    base.metrics.iter().filter(|series| is_rate(&series.metric)).find_map(|rate| {
        let name = &rate.metric.name;
        // The tool divides by one of the clocks, and by the same one on both sides.
        let clocks = [Metric::CPU_TIME, Metric::LATENCY];
        let [by_cpu, by_wall] = clocks.map(|clock| {
            let of_base = Work::new(rate, base.metric(&clock.name)?)?;
            let Some(of_head) = head.metric(name) else { return Some((of_base, None)) };
            Some((of_base, Some(Work::new(of_head, head.metric(&clock.name)?)?)))
        });
        let found: Vec<(Work, Option<Work>)> = by_cpu.into_iter().chain(by_wall).collect();
        let same = |(base, head): &(Work, Option<Work>)| head.as_ref().is_some_and(|head| base.agrees(head));
        let (of_base, of_head) = found.iter().find(|sides| !same(sides))?;
        if found.iter().any(same) {
            return None;
        }
        let of_head = of_head.as_ref().map_or("not stated".to_owned(), |head| head.shown());
        Some(format!("{name}: {} / {of_head} per call", of_base.shown()))
    })
}

fn is_rate(metric: &Metric) -> bool {
    let name = metric.name.to_ascii_lowercase().replace('-', "_");
    metric.unit == Unit::PerSecond
        || ["_per_second", "_per_sec", "/s", "/sec", "flops"].iter().any(|end| name.ends_with(end))
}

/// The work of one call on one side, which is the same in all of its repetitions.
struct Work {
    per_call: f64,
    /// Work of all calls of each repetition, with their number, if known.
    totals: Vec<(u64, f64)>,
    /// Largest error of `per_call` due to rounding, as a share.
    rounding: f64,
}

impl Work {
    /// Returns `None` if the repetitions do not show that a call always does the same work: a rate may count
    /// something else, or belong to another clock.
    fn new(rate: &MetricSeries, time: &MetricSeries) -> Option<Self> {
        let pairs: Vec<(f64, f64, Option<u64>)> = match (&rate.series, &time.series) {
            (Series::Processes(rates), Series::Processes(times)) if rates.len() == times.len() => {
                rates.iter().zip(times).flat_map(|(rates, times)| repetitions(rates, times)).collect()
            }
            (Series::Summaries(rates), Series::Summaries(times)) if rates.len() == times.len() => {
                let medians = |(rate, time): (&Summary, &Summary)| Some((rate.median?, time.median?, None));
                rates.iter().zip(times).filter_map(medians).collect()
            }
            _ => return None,
        };
        let work: Vec<f64> = pairs.iter().map(|(rate, time, _)| rate * time * 1e-9).collect();
        let rounding = rounding(pairs.iter().map(|pair| pair.0)) + rounding(pairs.iter().map(|pair| pair.1));
        let per_call = describe::median(&work)?;
        let deviates = |work: &f64| (work / per_call - 1.0).abs() > 2.0 * rounding;
        let is_shown = match work.len() {
            // A whole number of items is no coincidence.
            1 => {
                rounding * per_call < 0.01 && (per_call - per_call.round()).abs() <= 2.0 * rounding * per_call
            }
            _ => !work.iter().any(deviates),
        };
        let totals =
            pairs.iter().zip(&work).filter_map(|(pair, work)| Some((pair.2?, pair.2? as f64 * work)));
        let usable = per_call.is_finite() && per_call > 0.0 && rounding <= COARSEST && is_shown;
        usable.then(|| Self { per_call, totals: totals.collect(), rounding })
    }

    fn agrees(&self, other: &Self) -> bool {
        let limit = (2.0 * (self.rounding + other.rounding)).max(LEAST);
        let differ = |one: f64, two: f64| (one / two).ln().abs() > limit;
        !differ(self.per_call, other.per_call) || self.counts_all_calls(other)
    }

    /// Returns whether the rate was computed from a number that does not depend on how many calls were made, so that it
    /// shows nothing about one call.
    fn counts_all_calls(&self, other: &Self) -> bool {
        let mut totals = self.totals.iter().chain(&other.totals);
        let Some((calls, total)) = totals.next() else { return false };
        let same = |other: &f64| (other / total - 1.0).abs() <= 1e-6;
        let rest: Vec<&(u64, f64)> = totals.collect();
        rest.iter().any(|(other, _)| other != calls) && rest.iter().all(|(_, other)| same(other))
    }

    fn shown(&self) -> String {
        let digits = if self.rounding < 1e-6 { 6 } else { 3 };
        let scale = 10f64.powi(digits - 1 - self.per_call.log10().floor() as i32);
        format!("{}", (self.per_call * scale).round() / scale)
    }
}

/// Returns each repetition's rate, time and number of calls.
fn repetitions<'a>(
    rates: &'a Process,
    times: &'a Process,
) -> impl Iterator<Item = (f64, f64, Option<u64>)> + 'a {
    // If values were lost, the others don't belong together.
    let whole = rates.samples.len() == times.samples.len();
    let pairs = rates.samples.iter().zip(&times.samples);
    pairs.filter(move |_| whole).map(|(rate, time)| (*rate, *time, times.iterations))
}

/// Returns the largest error of printed values due to rounding, as a share.
fn rounding(values: impl Iterator<Item = f64>) -> f64 {
    /// Maximum number of values that are examined.
    const MOST: usize = 64;
    let digits = values.take(MOST).map(digits).max().unwrap_or(0).max(DIGITS);
    (0.5 * 10f64.powi(1 - digits as i32)).max(1e-9)
}

/// Returns the number of significant digits of a value, except for those that the conversion of a unit adds.
fn digits(value: f64) -> usize {
    let is_exact = |digits: &usize| {
        let printed = format!("{value:.*e}", digits - 1).parse::<f64>();
        printed.is_ok_and(|printed| (printed - value).abs() <= 1e-13 * value.abs())
    };
    (1..14).find(is_exact).unwrap_or(14)
}
