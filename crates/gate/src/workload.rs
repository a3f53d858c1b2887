//! Checks whether both sides did the same work.
//!
//! Work of a call, where a file states a rate next to the time: a rate times the time of a call is the number of
//! items or bytes that the call processes.

use benchgate_core::model::{
    ARCHITECTURE, Benchmark, Lint, LintCode, Metric, MetricSeries, Process, RUN_LINE, Series, SideName,
    Summary, Workload, excerpt, significant,
};
use benchgate_stats::classical::fewest_of_one_side;
use benchgate_stats::describe;

use super::chance::{ENOUGH_RANKED, NOT_CHANCE, OF_ONE_FACT, ranked};
use super::series;
use super::texts::label_lint;

/// Returns findings about differences between the work of the two sides. Results of tools that do not record
/// it are accepted, but in a session that measured both sides, either both must record it or neither.
pub fn lints(base: &Benchmark, head: &Benchmark, together: bool) -> Vec<Lint> {
    let code = [base, head].map(|side| side.labels.get(ARCHITECTURE).map(String::as_str));
    let other_code = match code {
        [Some(base), Some(head)] => Some((base, head)),
        // Older results don't contain it.
        [None, None] => None,
        [base, head] => together.then(|| (base.unwrap_or("unknown"), head.unwrap_or("unknown"))),
    };
    let other_code = other_code.filter(|(base, head)| base != head);
    let (base, head) = match (recorded(base), recorded(head)) {
        (Some(base), Some(head)) => (base, head),
        (None, None) => {
            let lints = other_axis(base, head).or_else(|| other_line(base, head).filter(|_| !together));
            return lints.into_iter().chain(label_lint(base, head)).collect();
        }
        (known, _) if together => {
            let side = if known.is_some() { SideName::Head } else { SideName::Base };
            let detail =
                format!("the result does not state with which inputs and settings {side} was measured");
            return vec![Lint::new(LintCode::WorkloadChanged, detail)];
        }
        _ => return Vec::new(),
    };
    let mut differing = Vec::new();
    if base.inputs_sha256 != head.inputs_sha256 {
        differing.push("other inputs".to_owned());
    }
    if base.changed_inputs != head.changed_inputs {
        let shown = |inputs: &[u32]| match inputs {
            [] => "no input".to_owned(),
            _ => format!("input {}", inputs.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")),
        };
        let [of_base, of_head] = [base, head].map(|side| shown(&side.changed_inputs));
        differing.push(format!(
            "a program whose first call changes {of_head} for later calls (base's first call \
            changes {of_base})"
        ));
    }
    // Older sessions don't state it.
    let are_known = together || [base, head].iter().all(|side| side.left_out.is_some());
    let left_out = [base, head].map(|side| side.left_out.as_deref().unwrap_or_default());
    if are_known && left_out[0] != left_out[1] {
        let shown = |names: &[String]| match names {
            [] => "nothing".to_owned(),
            _ => format!("`{}`", excerpt(&names.join(", "), 80)),
        };
        let [of_base, of_head] = left_out.map(shown);
        differing.push(format!(
            "a model whose calls store {of_head} outside of the results (base's store {of_base})"
        ));
    }
    if base.device != head.device {
        differing.push(format!("device `{}` instead of `{}`", head.device, base.device));
    }
    if base.settings_sha256 != head.settings_sha256 {
        differing.push("different runtime flags, allocators or environment".to_owned());
    }
    if let Some((base_code, head_code)) = other_code {
        differing.push(format!("code for {head_code} instead of {base_code}"));
    }
    if !differing.is_empty() {
        let detail = format!("head was measured with {}", differing.join(", "));
        return vec![Lint::new(LintCode::WorkloadChanged, detail)];
    }
    // An fp64 reference makes larger errors acceptable. If both the fp64 reference and the ordinary one are
    // new, they are judged as a new reference.
    let detail = match (&base.reference64_sha256, &head.reference64_sha256) {
        (None, Some(_)) => "head adds an fp64 reference, which can make a larger error acceptable",
        (Some(old), Some(new)) if old != new && !other_reference(base, head) => {
            "head's fp64 reference differs from base's"
        }
        _ => return Vec::new(),
    };
    vec![Lint::new(LintCode::Fp64ReferenceChanged, detail)]
}

/// Returns whether head's outputs were compared with a reference that base's outputs were not compared with.
fn other_reference(base: &Workload, head: &Workload) -> bool {
    head.reference_sha256.is_some() && base.reference_sha256 != head.reference_sha256
}

/// Returns whether head's outputs were compared with a reference that base's outputs were not compared with,
/// for the same inputs. A reference for other inputs means different work, which is a separate finding.
fn has_other_reference(base: &Benchmark, head: &Benchmark) -> bool {
    let both = recorded(base).zip(recorded(head));
    has_same_inputs(base, head) && both.is_some_and(|(base, head)| other_reference(base, head))
}

/// Returns whether both sides state their inputs, and these are the same.
pub fn has_same_inputs(base: &Benchmark, head: &Benchmark) -> bool {
    let both = recorded(base).zip(recorded(head));
    both.is_some_and(|(base, head)| base.inputs_sha256 == head.inputs_sha256)
}

/// Returns whether head's model, or the reference of its outputs, differs from base's.
pub fn model_changed(base: &Benchmark, head: &Benchmark) -> bool {
    has_other_reference(base, head) || head.verification.as_ref().is_some_and(|found| found.model_changed)
}

/// Returns the finding that labels, or the work of a call, differ: results of commands and of foreign tools
/// identify benchmarks by name and labels.
fn other_axis(base: &Benchmark, head: &Benchmark) -> Option<Lint> {
    let axis = base.differing_preparation(head).or_else(|| base.differing_axis(head));
    let axis = axis.or_else(|| difference(base, head));
    let axis = axis.or_else(|| other_statistics(base, head)).or_else(|| empty_loop(base, head))?;
    Some(Lint::new(LintCode::WorkloadChanged, format!("the sides differ in {axis}")))
}

/// Returns the finding that a command's line or its variables differ between two sessions: its arguments may name a smaller
/// problem. In one session, where head's line is part of the change, the report says so.
fn other_line(base: &Benchmark, head: &Benchmark) -> Option<Lint> {
    let line = |side: &'_ Benchmark| -> Option<Vec<String>> {
        Some(side.labels.get(RUN_LINE)?.split_whitespace().map(str::to_owned).collect())
    };
    let (of_base, of_head) = line(base).zip(line(head))?;
    if of_base == of_head {
        return None;
    }
    let same = |pairs: &mut dyn Iterator<Item = (&String, &String)>| {
        pairs.take_while(|(one, two)| one == two).count()
    };
    let shorter = of_base.len().min(of_head.len());
    let before = same(&mut of_base.iter().zip(&of_head));
    let after = same(&mut of_base.iter().rev().zip(of_head.iter().rev())).min(shorter - before);
    let shown = |words: &[String]| match &words[before..words.len() - after] {
        [] => "nothing".to_owned(),
        differing => format!("`{}`", excerpt(&differing.join(" "), 80)),
    };
    let (was, now) = (shown(&of_base), shown(&of_head));
    Some(Lint::new(LintCode::WorkloadChanged, format!("the sides differ in `run` or `env`: {was} / {now}")))
}

/// Time of a call, in nanoseconds, that a few cycles take, and the factor by which base's must exceed it to show that
/// a call did something.
const EMPTY_CALL: (f64, f64) = (1.0, 20.0);

/// Factor by which no change of the same work is faster.
const IMPLAUSIBLE_SPEEDUP: f64 = 300.0;

/// Returns the difference if a call of base does something and one of head takes no longer than an empty loop, or almost no
/// time in comparison: the compiler may have removed what was to be timed, or the program may not call it.
fn empty_loop(base: &Benchmark, head: &Benchmark) -> Option<String> {
    let (empty, factor) = EMPTY_CALL;
    let time = |side: &Benchmark| Some(series::described(side.metric(&Metric::LATENCY.name)?)?.location);
    let (base, head) = time(base).zip(time(head))?;
    let is_empty = head < empty && base > factor * head.max(empty);
    let why = if is_empty {
        "which an empty loop takes".to_owned()
    } else {
        format!("more than {IMPLAUSIBLE_SPEEDUP} times faster")
    };
    (is_empty || base > IMPLAUSIBLE_SPEEDUP * head)
        .then(|| format!("the work of a call: {base:.0} / {head:.2} ns, {why}"))
}

/// Returns the difference between the statistics of which a metric's sides consist: a mean is not compared with a
/// median, and a standard deviation that head leaves out may have grown.
fn other_statistics(base: &Benchmark, head: &Benchmark) -> Option<String> {
    const NAMES: [&str; 3] = ["mean", "median", "stddev"];
    let stated = |series: &MetricSeries| match &series.series {
        Series::Summaries(summaries) => {
            let has =
                |statistic: fn(&Summary) -> Option<f64>| summaries.iter().any(|it| statistic(it).is_some());
            Some([has(|it| it.mean), has(|it| it.median), has(|it| it.stddev)])
        }
        // Processes are compared by their medians. A single value is its own mean.
        Series::Processes(processes) => {
            processes.iter().any(|process| process.samples.len() > 1).then_some([false, true, false])
        }
        Series::Exact(_) => None,
    };
    let is_stated = |series: &MetricSeries| matches!(series.series, Series::Summaries(_));
    let differing = base.metrics.iter().find_map(|series| {
        let of_head = head.metric(&series.metric.name)?;
        let (was, now) = stated(series).zip(stated(of_head))?;
        let differs = match is_stated(series) && is_stated(of_head) {
            true => was[..2] != now[..2] || was[2] && !now[2],
            false => !was[1] || !now[1],
        };
        differs.then_some((&series.metric.name, [was, now]))
    });
    let (name, sides) = differing?;
    let [was, now] = sides.map(|stated| {
        let names = NAMES.into_iter().zip(stated).filter(|(_, is_stated)| *is_stated);
        names.map(|(name, _)| name).collect::<Vec<_>>().join(", ")
    });
    Some(format!("statistics of {name}: {was} / {now}"))
}

pub fn recorded(side: &Benchmark) -> Option<&Workload> {
    side.artifact.as_ref().and_then(|artifact| artifact.workload.as_ref())
}

/// Minimum share by which the work of a call must differ between the sides: a smaller difference hides no
/// slowdown.
const LEAST: f64 = 0.01;

/// Rounding, as a share, beyond which printed values don't show the work.
const COARSEST: f64 = 0.02;

/// Share by which the work of several files of one side may differ if each file states it.
const WIDEST: f64 = 0.1;

/// Number of digits that every tool prints; if fewer are seen, the others are zeros.
const DIGITS: usize = 3;

/// Returns the rate by which the work of a call differs, as `items-per-second: 64 / 32 per call`; `None` if the work
/// is the same or unknown.
pub fn difference(base: &Benchmark, head: &Benchmark) -> Option<String> {
    measured_rates(base, head).find_map(|rate| {
        let name = &rate.metric.name;
        // The tool divides by one of the clocks, and by the same one on both sides.
        let clocks = [Metric::CPU_TIME, Metric::LATENCY];
        let by = |clock: &Metric, centre: Centre| {
            let of_base = Work::new(rate, base.metric(&clock.name)?, centre)?;
            let Some(of_head) = head.metric(name) else { return Some((of_base, None)) };
            Some((of_base, Some(Work::new(of_head, head.metric(&clock.name)?, centre)?)))
        };
        let ways =
            clocks.iter().flat_map(|clock| Centre::of_rate(rate).iter().map(move |centre| (clock, *centre)));
        let found: Vec<(Work, Option<Work>)> = ways.filter_map(|(clock, centre)| by(clock, centre)).collect();
        // The clock of the rate shows a whole number; the other one doesn't.
        let is_whole = |(base, head): &(Work, Option<Work>)| {
            base.is_whole() && head.as_ref().is_some_and(Work::is_whole)
        };
        let may_be_total = !found.iter().any(is_whole);
        let same = |(base, head): &(Work, Option<Work>)| {
            let total = |head: &Work| may_be_total && base.counts_all_calls(head);
            head.as_ref().is_some_and(|head| base.agrees(head) || total(head))
        };
        let (of_base, of_head) = found.iter().find(|sides| !same(sides))?;
        if found.iter().any(same) {
            return None;
        }
        let of_head = of_head.as_ref().map_or("not stated".to_owned(), |head| head.shown());
        Some(format!("{name}: {} / {of_head} per call", of_base.shown()))
    })
}

/// Returns base's rates of work. One that never varies, although times do, was set and not measured: `target_fps`.
fn measured_rates<'a>(base: &'a Benchmark, head: &'a Benchmark) -> impl Iterator<Item = &'a MetricSeries> {
    let varies = |name: &str| {
        let values = |side: &Benchmark| side.metric(name).map_or_else(Vec::new, series::values);
        let all = [values(base), values(head)].concat();
        all.len() < 3 || all.iter().any(|value| *value != all[0])
    };
    // A rate that a program rounded to `0.04` shows no work. Tools that print few digits state bounds.
    let is_coarse = |series: &MetricSeries| match &series.series {
        Series::Processes(all) => all.iter().flat_map(|it| &it.samples).all(|value| digits(*value) < 2),
        Series::Summaries(_) | Series::Exact(_) => false,
    };
    let times_vary = varies(&Metric::LATENCY.name);
    let rates = base.metrics.iter().filter(|series| series.metric.is_rate_of_work());
    rates.filter(move |rate| !is_coarse(rate) && (!times_vary || varies(&rate.metric.name)))
}

/// Share by which head's amounts of work must be below base's if these vary.
const CLEARLY: f64 = 0.1;

/// Returns whether the amounts of head's processes are clearly below those of base's by their ranks.
pub fn is_ranked_less(base: &[f64], head: &[f64]) -> bool {
    let medians = describe::median(base).zip(describe::median(head));
    medians.is_some_and(|(base, head)| base > 0.0 && head < (1.0 - CLEARLY) * base)
        && ranked(base, head).is_some_and(|test| test.less < NOT_CHANCE)
}

/// Returns whether more of head's processes than chance explains did clearly less work than any of base's: a program that
/// sometimes stops early does not do so at base.
fn is_partly_less(base: &[f64], head: &[f64]) -> bool {
    let Some(least) = base.iter().copied().reduce(f64::min).filter(|least| *least > 0.0) else {
        return false;
    };
    let less = head.iter().filter(|work| **work < (1.0 - CLEARLY) * least).count();
    let is_constant = base.iter().all(|work| work / least - 1.0 < LEAST);
    let limit = if is_constant { OF_ONE_FACT } else { NOT_CHANCE };
    base.len().min(head.len()) >= ENOUGH_RANKED && less >= fewest_of_one_side(head.len(), base.len(), limit)
}

/// Returns whether all amounts of head are clearly below base's, which vary little, and by more than these vary.
pub fn is_clearly_less(base: &[f64], head: &[f64]) -> bool {
    if base.len().min(head.len()) < 2 || base.iter().chain(head).any(|value| !value.is_finite()) {
        return false;
    }
    let extreme = |values: &[f64], of: fn(f64, f64) -> f64| values.iter().copied().reduce(of);
    let (Some(least), Some(most)) = (extreme(base, f64::min), extreme(base, f64::max)) else { return false };
    let Some(of_head) = extreme(head, f64::max) else { return false };
    let range = most - least;
    least > 0.0 && range <= WIDEST * most && of_head < least - range && of_head < (1.0 - CLEARLY) * least
}

/// The work of the calls of each repetition of each process, and how many calls were timed together.
type Calls = Vec<Vec<(f64, Option<u64>)>>;

/// Returns the finding that head's calls do less work by a rate, although it varies from call to call. The tool divides
/// by one of the clocks, so both must show it. A rate that fell, and that fails the gate itself, is judged like a time.
pub fn less_work(base: &Benchmark, head: &Benchmark, is_fatal: impl Fn(&Metric) -> bool) -> Option<Lint> {
    // A stored session keeps one value of each process.
    let is_summarised = |name: &str| {
        let sides = [base, head].into_iter().filter_map(|side| side.metric(name));
        sides.into_iter().any(|series| matches!(series.series, Series::Summaries(_)))
    };
    let of_calls = |side: &Benchmark, rate: &str, clock: &Metric| -> Option<Calls> {
        let (rates, times) = (side.metric(rate)?, side.metric(&clock.name)?);
        if is_summarised(rate) || is_summarised(&clock.name) {
            let (rates, times) = (centres(rates)?, centres(times)?);
            let pairs = (rates.len() == times.len()).then(|| rates.into_iter().zip(times))?;
            return Some(pairs.map(|((rate, _), (time, calls))| vec![(rate * time, calls)]).collect());
        }
        let of_call = |(rate, time, calls)| (rate * time, calls);
        let processes = repetitions(rates, times, Centre::Mean)?.into_iter();
        Some(processes.map(|process| process.into_iter().map(of_call).collect()).collect())
    };
    let is_less = |(base, head): &(Calls, Calls)| {
        // The calls of a process are not independent.
        let [base_medians, head_medians] = [base, head].map(|side| {
            let works = side.iter().map(|process| process.iter().map(|(work, _)| *work).collect::<Vec<_>>());
            works.filter_map(|works| describe::median(&works)).collect::<Vec<_>>()
        });
        let [base, head] = [base.concat(), head.concat()];
        // If values were lost, the others don't belong together.
        if base.is_empty() || head.is_empty() {
            return false;
        }
        let [of_base, of_head] =
            [&base, &head].map(|side| side.iter().map(|(work, _)| *work).collect::<Vec<_>>());
        // Whole amounts of constant work are compared exactly.
        let varies = |side: &[f64]| side.iter().any(|work| (work / side[0] - 1.0).abs() > 1e-6);
        let varies = varies(&of_base) || varies(&of_head);
        // A number that does not depend on the number of calls shows nothing about one.
        let counted =
            base.iter().chain(&head).filter_map(|(work, calls)| Some((work * (*calls)? as f64, *calls)));
        let counted: Vec<(f64, Option<u64>)> = counted.collect();
        let is_total = counted.iter().all(|(total, _)| (total / counted[0].0 - 1.0).abs() <= LEAST)
            && counted.iter().any(|(_, calls)| *calls != counted[0].1);
        let is_clear = is_clearly_less(&of_base, &of_head)
            || is_ranked_less(&base_medians, &head_medians)
            || is_partly_less(&base_medians, &head_medians);
        varies && !is_total && is_clear
    };
    let clocks = [Metric::CPU_TIME, Metric::LATENCY];
    let is_clock = |metric: &Metric| clocks.iter().any(|clock| clock.name == metric.name);
    let rates = measured_rates(base, head).filter(|series| !is_clock(&series.metric));
    let is_judged = |rate: &&MetricSeries| {
        let of_head = head.metric(&rate.metric.name);
        let values = |series: &MetricSeries| series::described(series).map(|stats| stats.location);
        let fell =
            of_head.and_then(values).zip(values(rate)).is_some_and(|(now, was)| now < (1.0 - CLEARLY) * was);
        fell && is_fatal(&rate.metric)
    };
    rates.filter(|rate| !is_judged(rate)).map(|rate| &rate.metric.name).find_map(|name| {
        let sides =
            clocks.iter().filter_map(|clock| of_calls(base, name, clock).zip(of_calls(head, name, clock)));
        let sides: Vec<_> = sides.collect();
        let (of_base, of_head) = sides.last().filter(|_| sides.iter().all(is_less))?;
        let typical = |side: &Calls| {
            describe::median(&side.concat().iter().map(|(work, _)| work * 1e-9).collect::<Vec<_>>())
        };
        let (was, now) = typical(of_base).zip(typical(of_head))?;
        let detail = format!(
            "the sides differ in {name}: about {} / {} per call",
            significant(was, 3),
            significant(now, 3)
        );
        Some(Lint::new(LintCode::WorkloadChanged, detail))
    })
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
    fn new(rate: &MetricSeries, time: &MetricSeries, centre: Centre) -> Option<Self> {
        let pairs = repetitions(rate, time, centre)?.concat();
        // A reader that computes the bounds of a rounded rate knows that it is the rate of the time.
        let bounded = match &rate.series {
            Series::Summaries(rates) => {
                rates.iter().map(rounding_of).try_fold(0.0, |most, rate| Some(rate?.max(most)))
            }
            _ => None,
        };
        let work: Vec<f64> = pairs.iter().map(|(rate, time, _)| rate * time * 1e-9).collect();
        let of_rate = bounded.unwrap_or_else(|| rounding(pairs.iter().map(|pair| pair.0)));
        // A mean has more digits than the times of which it is the mean.
        let of_time = match &time.series {
            Series::Processes(times) => rounding(times.iter().flat_map(|it| it.samples.iter().copied())),
            _ => rounding(pairs.iter().map(|pair| pair.1)),
        };
        let rounding = of_rate + of_time;
        let per_call = describe::median(&work)?;
        // The product of two medians is only exact if both are of the same repetition, and that of two means if there is one.
        let between = match &rate.series {
            Series::Summaries(rates) => rates.iter().map(relative_variance).fold(0.0, f64::max),
            _ => 0.0,
        };
        let rounding = rounding + between;
        let deviates = |work: &f64| (work / per_call - 1.0).abs() > 2.0 * rounding;
        // Rounding is not the only difference if times were rounded before the division.
        let spread = work.iter().map(|work| (work / per_call - 1.0).abs()).fold(0.0, f64::max);
        let is_shown = match work.len() {
            _ if bounded.is_some() => spread <= WIDEST,
            // A whole number of items is no coincidence.
            1 => {
                rounding * per_call < 0.01 && (per_call - per_call.round()).abs() <= 2.0 * rounding * per_call
            }
            _ => !work.iter().any(deviates),
        };
        let totals =
            pairs.iter().zip(&work).filter_map(|(pair, work)| Some((pair.2?, pair.2? as f64 * work)));
        let usable = per_call.is_finite() && per_call > 0.0 && rounding <= COARSEST && is_shown;
        let rounding = if bounded.is_some() { rounding.max(spread / 2.0) } else { rounding };
        usable.then(|| Self { per_call, totals: totals.collect(), rounding })
    }

    fn agrees(&self, other: &Self) -> bool {
        let limit = (2.0 * (self.rounding + other.rounding)).max(LEAST);
        let differ = |one: f64, two: f64| (one / two).ln().abs() > limit;
        !differ(self.per_call, other.per_call)
    }

    /// Returns whether the work is a whole number, also as thousands, millions or billions, which is no coincidence: it is
    /// the work of one call.
    fn is_whole(&self) -> bool {
        [1.0, 1e3, 1e6, 1e9].iter().any(|scale| {
            let work = self.per_call * scale;
            let whole = work.round();
            whole >= 1.0 && (work / whole - 1.0).abs() <= self.rounding && self.rounding * whole < 0.01
        })
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

/// Returns the largest error of a rate, as a share, if its reader states bounds of it and nothing else.
fn rounding_of(rate: &Summary) -> Option<f64> {
    let (low, high) = rate.interval.filter(|_| rate.n.is_none() && rate.stddev.is_none())?;
    Some((high - low) / (high + low)).filter(|share| share.is_finite() && *share >= 0.0)
}

/// Returns the variance of the repetitions, as a share, if their centre is none of them: a mean, or the median of an even
/// number.
fn relative_variance(rate: &Summary) -> f64 {
    let is_one = rate.median.is_some() && rate.n.is_none_or(|repetitions| repetitions % 2 == 1);
    let share = rate.stddev.zip(rate.median.or(rate.mean)).map_or(0.0, |(stddev, centre)| stddev / centre);
    if !is_one && share.is_finite() { share * share } else { 0.0 }
}

/// Returns the median of each process, and how many calls were timed together; `None` if a process has none.
fn centres(series: &MetricSeries) -> Option<Vec<(f64, Option<u64>)>> {
    let of_process = |process: &Process| Some((describe::median(&process.samples)?, process.iterations));
    match &series.series {
        Series::Processes(processes) => processes.iter().map(of_process).collect(),
        Series::Summaries(summaries) => {
            summaries.iter().map(|it| Some((it.median.or(it.mean)?, None))).collect()
        }
        Series::Exact(_) => None,
    }
}

/// A statistic by which a script that states one rate of many times may have divided.
#[derive(Clone, Copy)]
enum Centre {
    Mean,
    Median,
    Least,
}

impl Centre {
    /// Returns the statistics that are possible for a rate. If each repetition has its own, there is no choice.
    fn of_rate(rate: &MetricSeries) -> &'static [Self] {
        const ALL: [Centre; 3] = [Centre::Mean, Centre::Median, Centre::Least];
        let is_single = |process: &Process| process.samples.len() == 1;
        match &rate.series {
            Series::Processes(rates) if rates.iter().all(is_single) => &ALL,
            _ => &ALL[..1],
        }
    }

    fn of(self, times: &[f64]) -> Option<f64> {
        match self {
            Self::Mean => (!times.is_empty()).then(|| times.iter().sum::<f64>() / times.len() as f64),
            Self::Median => describe::median(times),
            Self::Least => times.iter().copied().reduce(f64::min),
        }
    }

    fn of_summary(self, times: &Summary) -> Option<f64> {
        match self {
            Self::Mean => times.mean,
            Self::Median => times.median,
            Self::Least => times.min,
        }
    }
}

/// The rate and the time of a repetition, and how many calls were timed together.
type Repetition = (f64, f64, Option<u64>);

/// Returns the repetitions of each process; `None` if the processes have
/// no order in which they belong together. A process with one rate of many times counts as one repetition.
fn repetitions(rate: &MetricSeries, time: &MetricSeries, centre: Centre) -> Option<Vec<Vec<Repetition>>> {
    // If values were lost, the others don't belong together.
    let of_process = |(rates, times): (&Process, &Process)| match rates.samples.as_slice() {
        all if all.len() == times.samples.len() => {
            let pairs = all.iter().zip(&times.samples);
            pairs.map(|(rate, time)| (*rate, *time, times.iterations)).collect()
        }
        [rate] => centre.of(&times.samples).map(|time| (*rate, time, times.iterations)).into_iter().collect(),
        _ => Vec::new(),
    };
    let with_summary = |(rates, times): (&Process, &Summary)| match rates.samples.as_slice() {
        [rate] => centre.of_summary(times).map(|time| (*rate, time, None)).into_iter().collect(),
        _ => Vec::new(),
    };
    let of_summaries = |(rate, time): (&Summary, &Summary)| {
        let pair = rate.median.zip(time.median).or_else(|| rate.mean.zip(time.mean));
        pair.map(|(rate, time)| (rate, time, None)).into_iter().collect()
    };
    match (&rate.series, &time.series) {
        (Series::Processes(rates), Series::Processes(times)) if rates.len() == times.len() => {
            Some(rates.iter().zip(times).map(of_process).collect())
        }
        (Series::Processes(rates), Series::Summaries(times)) if rates.len() == times.len() => {
            Some(rates.iter().zip(times).map(with_summary).collect())
        }
        (Series::Summaries(rates), Series::Summaries(times)) if rates.len() == times.len() => {
            Some(rates.iter().zip(times).map(of_summaries).collect())
        }
        _ => None,
    }
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
