//! One side's values of one metric, prepared for statistics: checked, located, described.

use std::ops::RangeInclusive;
use std::slice;

use benchgate_core::model::{
    Better, BlockSlot, Lint, LintCode, Metric, MetricKind, MetricSeries, Process, Series, Summary, Unit,
};
use benchgate_stats::tail::log_mean_exp;
use benchgate_stats::{describe, unpaired};

use super::SideStats;

/// The quantile of a process's repetitions that is its location. Interference only adds time, so the quicker
/// repetitions show the undisturbed code (Chen and Revels 2016, arXiv:1608.04295, argue for the minimum);
/// unlike the minimum, the quartile doesn't depend on one lucky repetition.
const LOCATION_QUANTILE: f64 = 0.25;

/// The values of one side that can be used.
#[derive(Debug, Clone)]
pub struct Readings {
    pub stats: SideStats,
    /// The undisturbed location of each process, as a cost (log scale, larger is worse).
    pub clean: Vec<f64>,
    /// The median of each process's repetitions, as a cost.
    pub middle: Vec<f64>,
    /// The mean of each process's repetitions, as a cost. For a rate, it is the mean of the corresponding
    /// times.
    pub mean: Vec<f64>,
    /// Position of each process in the paired schedule, if it has one.
    pub slots: Vec<Option<BlockSlot>>,
    /// Repetitions of each process as costs, sorted; empty if no process has a position in a schedule.
    pub costs: Vec<Vec<f64>>,
    /// Coefficient of variation of the repetitions inside a process, as the median over processes.
    pub within_cv: Option<f64>,
    /// The sessions that started the processes, in order.
    pub sessions: Vec<SessionReading>,
    /// All repetitions of all processes; empty if only summaries were kept.
    pub samples: Vec<f64>,
    /// The value of a deterministic metric, which is the same wherever it was read.
    pub exact: Option<f64>,
    pub summaries_only: bool,
}

impl Readings {
    /// Returns whether every value has a logarithm, which all estimates of a ratio work with.
    pub fn has_ratio(&self) -> bool {
        self.stats.min > 0.0
    }
}

/// One session, which is the content of a file unless the file states several sessions.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionReading {
    /// The median of its processes' medians, as a cost.
    pub location: f64,
    pub processes: usize,
    /// Disturbance as a standard deviation; `None` if the data do not show it.
    pub disturbance: Option<f64>,
}

/// Returns whether zero is a possible value of this metric. A time or a rate of zero was not measured, but a
/// count, a size or a user's counter may be zero.
fn may_be_zero(metric: &Metric) -> bool {
    metric.kind == MetricKind::Exact || !matches!(metric.unit, Unit::Nanoseconds | Unit::PerSecond)
}

/// Returns the range of plausible measurements. A time of a femtosecond or of thirty years was computed or
/// damaged, and so was any value at the edge of the number format.
fn plausible(metric: &Metric) -> RangeInclusive<f64> {
    if metric.unit == Unit::Nanoseconds { 1e-6..=1e18 } else { f64::MIN_POSITIVE..=1e300 }
}

/// Returns the lint for a value that is not a measurement.
fn unusable(value: f64, metric: &Metric) -> Option<Lint> {
    if !value.is_finite() {
        return Some(Lint::new(LintCode::NonFinite, format!("a value is {value}")));
    }
    if metric.unit == Unit::Nanoseconds && value > 0.0 && value < *plausible(metric).start() {
        let detail = format!("a time of {value:e} ns is that of an empty loop");
        return Some(Lint::new(LintCode::ZeroTime, detail));
    }
    if value > 0.0 && !plausible(metric).contains(&value) {
        return Some(Lint::new(LintCode::Contradictory, format!("a value of {value:e} is not plausible")));
    }
    let bad = value < 0.0 || (value == 0.0 && !may_be_zero(metric));
    let ratio = if metric.may_be_negative() { ", which has no ratio to another" } else { "" };
    bad.then(|| Lint::new(LintCode::ZeroTime, format!("a value is {value}{ratio}")))
}

/// Returns whether a metric's values have no ratio, because one is below zero: they state at most how right a result is.
pub fn is_signed(series: &MetricSeries) -> bool {
    series.metric.may_be_negative() && values(series).iter().any(|value| *value < 0.0)
}

/// Returns all values of a series, or all statistics that were kept.
pub fn values(series: &MetricSeries) -> Vec<f64> {
    match &series.series {
        Series::Exact(value) => vec![*value],
        Series::Processes(processes) => {
            processes.iter().flat_map(|process| process.samples.iter().copied()).collect()
        }
        Series::Summaries(summaries) => {
            let stated = summaries.iter().flat_map(|it| [it.mean, it.median, it.min, it.max]);
            stated.flatten().collect()
        }
    }
}

/// Reads a series, or returns the reason why it can't be used.
pub fn read(series: &MetricSeries) -> Result<Readings, Lint> {
    let groups: Vec<Repetitions<'_>> = match &series.series {
        Series::Exact(value) => vec![(slice::from_ref(value), None, None)],
        Series::Processes(processes) => {
            let kept = processes.iter().filter(|process| !process.samples.is_empty());
            kept.map(|process| (process.samples.as_slice(), process.slot, process.stated_stddev)).collect()
        }
        Series::Summaries(summaries) => return from_summaries(summaries, &series.metric),
    };
    if groups.is_empty() {
        return Err(Lint::new(LintCode::Errored, "no sample was taken"));
    }
    let mut samples = groups.iter().flat_map(|(samples, ..)| *samples);
    if let Some(lint) = samples.find_map(|&value| unusable(value, &series.metric)) {
        return Err(lint);
    }
    let mut readings = from_processes(&groups, series.metric.better);
    readings.sessions = sessions(&series.series, series.metric.better);
    let first = readings.samples[0];
    let constant = readings.samples.iter().all(|&v| v == first);
    let may_be_exact = series.metric.kind == MetricKind::Exact || first == 0.0;
    readings.exact = (may_be_exact && constant).then_some(first);
    Ok(readings)
}

/// Returns the location of one process from its repetitions. This is the only definition of it.
pub fn location(samples: &[f64], better: Better) -> Option<f64> {
    describe::quantile_sorted(&describe::sorted(samples), location_quantile(better))
}

fn location_quantile(better: Better) -> f64 {
    if better == Better::Higher { 1.0 - LOCATION_QUANTILE } else { LOCATION_QUANTILE }
}

/// Describes one side's values without judging them; `None` if they can't be used.
pub fn described(series: &MetricSeries) -> Option<SideStats> {
    read(series).ok().map(|readings| readings.stats)
}

/// Converts a value to a cost: its logarithm, with a sign such that larger is worse.
fn cost(value: f64, better: Better) -> f64 {
    better.worse() * value.ln()
}

/// Maximum number of repetitions of a process that are compared with others; if there are more, this many
/// quantiles represent them.
const MOST_COMPARED: usize = 32;

/// A process's repetitions, its position in the schedule, and the standard deviation that its tool stated.
type Repetitions<'a> = (&'a [f64], Option<BlockSlot>, Option<f64>);

fn from_processes(groups: &[Repetitions<'_>], better: Better) -> Readings {
    let mut sorted: Vec<Vec<f64>> = groups.iter().map(|(samples, ..)| describe::sorted(samples)).collect();
    let at = |q: f64| sorted.iter().filter_map(|s| describe::quantile_sorted(s, q)).collect::<Vec<f64>>();
    let (locations, middles) = (at(location_quantile(better)), at(0.5));
    // The values are sorted, so that the order of processes can't change the last bit of a mean.
    let samples = match sorted.as_mut_slice() {
        [only] => std::mem::take(only),
        several => describe::sorted(&several.concat()),
    };
    let cvs: Vec<f64> = groups
        .iter()
        .filter_map(|(samples, _, stated)| {
            Some(stated.or_else(|| describe::stddev(samples))? / describe::mean(samples)?)
        })
        .filter(|cv| cv.is_finite())
        .collect();
    let location = describe::median(&locations).unwrap_or_default();
    let mean = describe::mean(&samples).unwrap_or(location);
    let stddev = match groups {
        [(_, _, stated @ Some(_))] => *stated,
        _ => describe::stddev(&samples),
    };
    let scheduled = groups.iter().any(|(_, slot, _)| slot.is_some());
    let costs = |samples: &[f64]| -> Vec<f64> {
        let sorted = describe::sorted(&samples.iter().map(|&v| cost(v, better)).collect::<Vec<f64>>());
        if sorted.len() <= MOST_COMPARED {
            return sorted;
        }
        let middle = |at: usize| (at as f64 + 0.5) / MOST_COMPARED as f64;
        (0..MOST_COMPARED).filter_map(|at| describe::quantile_sorted(&sorted, middle(at))).collect()
    };
    let log_mean =
        |samples: &[f64]| log_mean_exp(&samples.iter().map(|&v| cost(v, better)).collect::<Vec<f64>>());
    Readings {
        mean: groups.iter().map(|(samples, ..)| log_mean(samples)).collect(),
        stats: SideStats {
            processes: groups.len() as u32,
            samples: samples.len() as u64,
            location,
            mean,
            stddev,
            cv: stddev.map(|s| s / mean).filter(|cv| cv.is_finite()),
            min: samples.iter().copied().fold(f64::INFINITY, f64::min),
            max: samples.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        },
        clean: locations.iter().map(|&v| cost(v, better)).collect(),
        middle: middles.iter().map(|&v| cost(v, better)).collect(),
        slots: groups.iter().map(|(_, slot, _)| *slot).collect(),
        costs: groups.iter().filter(|_| scheduled).map(|(samples, ..)| costs(samples)).collect(),
        within_cv: describe::median(&cvs),
        sessions: Vec::new(),
        samples,
        exact: None,
        summaries_only: false,
    }
}

/// Returns the readings of each session from its repetitions.
fn sessions(series: &Series, better: Better) -> Vec<SessionReading> {
    let Series::Processes(processes) = series else { return Vec::new() };
    let kept: Vec<&Process> = processes.iter().filter(|process| !process.samples.is_empty()).collect();
    let of_session = |processes: &[&Process]| {
        let in_order: Vec<f64> =
            processes.iter().flat_map(|process| &process.samples).map(|&value| cost(value, better)).collect();
        let middles: Vec<f64> =
            processes.iter().filter_map(|process| describe::median(&process.samples)).collect();
        Some(SessionReading {
            location: cost(describe::median(&middles)?, better),
            processes: processes.len(),
            disturbance: unpaired::disturbance_of(&in_order),
        })
    };
    kept.chunk_by(|a, b| a.session == b.session).filter_map(of_session).collect()
}

/// Returns the readings of each session from its summaries, of which each process has one.
fn sessions_of_summaries(summaries: &[Summary], better: Better) -> Vec<SessionReading> {
    let of_session = |summaries: &[Summary]| {
        let stated = summaries.iter().filter_map(|summary| summary.median.or(summary.mean));
        let costs: Vec<f64> = stated.map(|value| cost(value, better)).collect();
        let inside: Vec<f64> = summaries.iter().filter_map(stated_disturbance).collect();
        let among = unpaired::disturbance_of(&costs);
        Some(SessionReading {
            location: describe::median(&costs)?,
            processes: costs.len(),
            disturbance: among.into_iter().chain(describe::median(&inside)).reduce(f64::max),
        })
    };
    summaries.chunk_by(|a, b| a.session == b.session).filter_map(of_session).collect()
}

/// Returns the disturbance of a session for which only a summary was kept: from its quartiles and the
/// interval of its median, if stated. Its standard deviation, which a few extreme values can make large, is
/// only used without them.
fn stated_disturbance(summary: &Summary) -> Option<f64> {
    /// Distance between the quartiles of a normal distribution, in standard deviations; and the range that
    /// holds 99 % of its values.
    const QUARTILES: f64 = 1.349;
    const INTERVAL: f64 = 5.152;
    /// Standard error of the median of normal values, times the square root of their number.
    const OF_MEDIAN: f64 = 1.2533;
    let apart = |(low, high): (f64, f64)| {
        // asv's interval for a very uneven time may begin below zero.
        let apart = if low > 0.0 { (high / low).ln() } else { 1.0 };
        (apart.is_finite() && apart >= 0.0).then_some(apart)
    };
    let n = summary.n.unwrap_or(1).clamp(1, 10) as f64;
    let by_quartiles = summary.q1.zip(summary.q3).and_then(apart).map(|apart| apart / QUARTILES);
    let by_interval = summary.interval.and_then(apart).map(|apart| apart / INTERVAL * n.sqrt() / OF_MEDIAN);
    let by_deviation = || {
        let relative = summary.stddev? / summary.mean.or(summary.median)?;
        (relative.is_finite() && relative >= 0.0 && summary.n != Some(1)).then(|| relative.ln_1p())
    };
    match (by_quartiles, by_interval) {
        (None, None) => by_deviation(),
        (one, two) => Some(one.unwrap_or_default().max(two.unwrap_or_default())),
    }
}

/// Returns the mean that three quartiles imply (Wan et al. 2014, scenario C3): without it, a tool that keeps no mean would
/// hide that head stalls.
fn mean_by_quartiles(summary: &Summary) -> Option<f64> {
    let mean = (summary.q1? + summary.median? + summary.q3?) / 3.0;
    Some(mean).filter(|mean| mean.is_finite() && *mean > 0.0)
}

fn from_summaries(summaries: &[Summary], metric: &Metric) -> Result<Readings, Lint> {
    let better = metric.better;
    let (mut locations, mut means) = (Vec::new(), Vec::new());
    let (mut count, mut weighted, mut squares, mut freedom) = (0_u64, 0.0, 0.0, 0.0);
    let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
    let mut cvs = Vec::new();
    for summary in summaries {
        let Some(location) = summary.median.or(summary.mean) else { continue };
        let mean = summary.mean.or_else(|| mean_by_quartiles(summary)).unwrap_or(location);
        let values = [Some(location), Some(mean), summary.min, summary.max];
        if let Some(lint) = values.into_iter().flatten().find_map(|v| unusable(v, metric)) {
            return Err(lint);
        }
        let n = summary.n.unwrap_or(1).max(1);
        locations.push(location);
        means.push(mean);
        count += n;
        weighted += mean * n as f64;
        if let Some(stddev) = summary.stddev.filter(|s| s.is_finite() && *s >= 0.0) {
            squares += stddev * stddev * (n - 1) as f64;
            freedom += (n - 1) as f64;
            cvs.extend(Some(stddev / mean).filter(|cv| cv.is_finite()));
        }
        min = min.min(summary.min.unwrap_or(location));
        max = max.max(summary.max.unwrap_or(location));
    }
    let Some(location) = describe::median(&locations) else {
        return Err(Lint::new(LintCode::Errored, "neither a mean nor a median was kept"));
    };
    let mean = weighted / count as f64;
    let stddev = (freedom > 0.0).then(|| (squares / freedom).sqrt());
    Ok(Readings {
        stats: SideStats {
            processes: locations.len() as u32,
            samples: count,
            location,
            mean,
            stddev,
            cv: stddev.map(|s| s / mean).filter(|cv| cv.is_finite()),
            min,
            max,
        },
        slots: vec![None; locations.len()],
        costs: Vec::new(),
        clean: locations.iter().map(|&v| cost(v, better)).collect(),
        middle: locations.iter().map(|&v| cost(v, better)).collect(),
        mean: means.iter().map(|&v| cost(v, better)).collect(),
        within_cv: describe::median(&cvs),
        sessions: sessions_of_summaries(summaries, better),
        samples: Vec::new(),
        exact: (min == 0.0 && max == 0.0).then_some(0.0),
        summaries_only: true,
    })
}
