//! Compares the accuracy of head with base's, so that speed gained at the cost of accuracy is visible.
//!
//! Module `status` judges outputs beyond the tolerance as `diverged`; this module reports on outputs that
//! pass.

use benchgate_core::model::{
    ANY_TEXT, Benchmark, Divergence, Lint, LintCode, Metric, MetricSeries, OutputCheck, Quality, Run, SILENT,
    STANDARD_OUTPUT, Series, VerifyCode, states_costs,
};
use benchgate_core::numerics::{self, Tensor};
use benchgate_stats::classical::fewest_of_one_side;
use benchgate_stats::describe;

use super::chance::{ENOUGH_RANKED, NOT_CHANCE, OF_ONE_FACT, other_processes, ranked};
use super::rules::Rules;
use super::series::{self, values};
use super::workload::{self, is_clearly_less, is_ranked_less};

/// Ratio of two errors (root mean square) below which their difference is not reported: two correct roundings
/// of one computation differ by less.
const WORTH_SAYING: f64 = 2.0;
/// Share of the allowed error below which a distance is only rounding. Without an fp64 reference, the
/// distance between an output and its reference includes the rounding of both.
const ROUNDING_SHARE: f64 = 0.05;

/// Returns findings about outputs that both sides got right, and about outputs that differ between the sides.
pub fn lints(base: &Benchmark, head: &Benchmark) -> Vec<Lint> {
    let mut lints: Vec<Lint> = moved(base, head).into_iter().collect();
    let (Some(base), Some(head)) = (&base.verification, &head.verification) else { return lints };
    if base.code != VerifyCode::Pass || head.code != VerifyCode::Pass {
        return lints;
    }
    let pairs = head.outputs.iter().filter_map(|output| {
        let partner = base.outputs.iter().find(|partner| partner.index == output.index)?;
        Some((output.index, partner.divergence.as_ref()?, output.divergence.as_ref()?))
    });
    let worst = pairs
        .filter_map(|(index, base, head)| Some((index, Loss::between(base, head)?)))
        .max_by(|(_, a), (_, b)| a.factor().total_cmp(&b.factor()));
    if let Some((index, loss)) = worst {
        lints.push(Lint::new(LintCode::LessAccurate, format!("output {index} {}", loss.sentence())));
    }
    lints
}

/// Returns a copy of head in which its outputs are compared with base's: those that the tools printed, with the precision in
/// which they were printed, and those of which both sides have sketches. `None` if head has neither.
pub fn with_outputs(base: &Run, head: &Run) -> Option<Run> {
    let together = base.session.is_some() && base.session == head.session;
    let sketches = |benchmark: &Benchmark| benchmark.verification.as_ref()?.sketches.clone();
    if head.benchmarks.iter().all(|benchmark| benchmark.printed.is_empty() && sketches(benchmark).is_none()) {
        return None;
    }
    let tensors = |benchmark: &Benchmark| -> Option<Vec<Tensor>> {
        let printed = Some(&benchmark.printed).filter(|printed| !printed.is_empty())?;
        printed.iter().map(|text| Tensor::from_printed(text)).collect()
    };
    let mut head = head.clone();
    for benchmark in &mut head.benchmarks {
        let of_base = base.benchmarks.iter().find(|other| other.name == benchmark.name);
        if let Some((base, found)) = of_base.and_then(sketches).zip(sketches(benchmark))
            && of_base.is_some_and(|base| workload::has_same_inputs(base, benchmark))
            && let Some(verification) = &mut benchmark.verification
            && !together
            && !verification.differs_from_base()
        {
            // In a result with two sides, the outputs agreed with those of another base.
            verification.model_changed |= base.program_sha256 != found.program_sha256;
            verification.against_base = numerics::against_sketches(&found.outputs, &base.outputs);
        }
        let of_base = of_base.and_then(tensors);
        if let Some((base, found)) = of_base.zip(tensors(benchmark))
            && let Some(verification) = &mut benchmark.verification
        {
            verification.against_base = numerics::against_base(&found, &base, &[], &[]);
            let vacuous = numerics::vacuous_base(&base, &[]);
            benchmark.lints.extend(vacuous.map(|why| Lint::new(LintCode::VacuousReference, why)));
        }
    }
    Some(head)
}

/// Returns the finding that head's outputs differ from base's or were not compared with them.
fn moved(base: &Benchmark, head: &Benchmark) -> Option<Lint> {
    let found = head.verification.as_ref()?;
    let moved = found.against_base.iter().find(|output| output.code != VerifyCode::Pass).map(difference);
    if workload::model_changed(base, head) {
        let uncompared = if found.outputs.is_empty() {
            "head's outputs were compared neither with a reference nor with base's"
        } else {
            "head's outputs were compared with a different reference than base's"
        };
        let detail = moved.or_else(|| found.against_base.is_empty().then(|| uncompared.to_owned()))?;
        return Some(Lint::new(LintCode::ReferenceChanged, detail));
    }
    Some(Lint::new(LintCode::OutputsMoved, moved.filter(|_| found.code == VerifyCode::Pass)?))
}

/// Describes a difference: `output 0: 12 of 9216 elements beyond the tolerance …`.
fn difference(output: &OutputCheck) -> String {
    format!("output {}: {}", output.index, output.why.as_deref().unwrap_or("it differs"))
}

/// An error that increased.
struct Loss {
    base: f64,
    head: f64,
    truth: &'static str,
}

impl Loss {
    fn between(base: &Divergence, head: &Divergence) -> Option<Self> {
        match (base.error_fp64, head.error_fp64) {
            (Some(was), Some(now)) => {
                // The compiler did not cause the rounding error of the eager execution itself.
                let natural = head.reference_error_fp64.unwrap_or(0.0);
                let loss = Self { base: was, head: now, truth: "the fp64 reference" };
                (now > WORTH_SAYING * was.max(natural)).then_some(loss)
            }
            _ => {
                let (was, now) = (base.error?, head.error?);
                let rounding = ROUNDING_SHARE * head.allowed_error?;
                let loss = Self { base: was, head: now, truth: "the reference" };
                (now > WORTH_SAYING * was && now > rounding).then_some(loss)
            }
        }
    }

    fn factor(&self) -> f64 {
        if self.base > 0.0 { self.head / self.base } else { f64::INFINITY }
    }

    fn sentence(&self) -> String {
        let Self { base, head, truth } = self;
        if *base > 0.0 {
            format!(
                "is {:.1}× as far from {truth} as base's (error {head:.2e}, was {base:.2e})",
                self.factor()
            )
        } else {
            format!("is no longer exact: error {head:.2e} against {truth}, was 0")
        }
    }
}

/// Share of a score by which a worse one must differ from it.
const ROUNDING: f64 = 0.01;

/// Share of a loss by which a worse one must differ from it: losses depend on random seeds.
const OF_LOSS: f64 = 0.1;

/// Errors up to this size may come from rounding, so that only one ten times as large is worse.
const ROUNDING_ERROR: f64 = 1e-3;

/// Factor by which a percentage exceeds a fraction, even if it is much worse.
const PERCENTAGE: f64 = 20.0;

/// Smallest error that a tenfold one is compared with.
const EXACT: f64 = 1e-7;

/// Share by which two sums of the same numbers may differ if they are added in another order.
const SUMMATION: f64 = 1e-3;

/// Returns the finding for each metric that states how right a result is and that is worse at head, or that only base
/// has: the benchmark can't pass. A metric that fails the gate itself is judged like a time. The recent sessions are not
/// enough, because they move along with a gradual change, so the oldest ones are compared with head too.
pub fn quality_lints(
    base: &Benchmark,
    [recent, oldest]: [Option<&Benchmark>; 2],
    head: &Benchmark,
    rules: &Rules<'_>,
) -> Vec<Lint> {
    let mut found = changed_qualities(base, recent.unwrap_or(base), head, rules);
    if let Some(oldest) = oldest.filter(|_| found.is_empty()) {
        // A metric that is newer than the oldest sessions shows nothing. Data that changed once were found then.
        let stated = oldest.metrics.iter().filter(|series| head.metric(&series.metric.name).is_some());
        let qualities =
            stated.filter_map(|series| Some((&series.metric, Quality::of_metric(&series.metric)?)));
        let gradual = qualities.filter_map(|(metric, quality)| {
            let is_judged = rules.metric(&head.name, metric).fatal;
            let is_of_data = quality == Quality::Checksum;
            if is_judged || is_of_data { None } else { lint(oldest, head, &metric.name, quality) }
        });
        let work = workload::less_work(oldest, head, |metric| rules.metric(&head.name, metric).fatal);
        let gradual = gradual.chain(work);
        found = gradual.map(|lint| Lint::new(lint.code, format!("gradually: {}", lint.detail))).collect();
    }
    found
}

fn changed_qualities(base: &Benchmark, recent: &Benchmark, head: &Benchmark, rules: &Rules<'_>) -> Vec<Lint> {
    let of_head = head.metrics.iter().filter(|series| base.metric(&series.metric.name).is_none());
    let metrics = base.metrics.iter().chain(of_head).map(|series| &series.metric);
    let stated = metrics.filter_map(|metric| Some((metric, Quality::of_metric(metric)?)));
    stated
        .filter_map(|(metric, quality)| {
            // A gating metric is judged by its values, which files that lack it don't have.
            let is_fatal = rules.metric(&head.name, metric).fatal;
            // Data, unlike scores, may have changed since.
            let base = if matches!(quality, Quality::Checksum | Quality::Work) { base } else { recent };
            let found = if is_fatal { None } else { lint(base, head, &metric.name, quality) };
            found.or_else(|| lost(base, head, &metric.name, quality))
        })
        .chain(workload::less_work(base, head, |metric| rules.metric(&head.name, metric).fatal))
        .collect()
}

/// Returns whether a metric that is not judged shows that both sides did the same work, or did it equally well. A rate only
/// does next to a time that is judged; on its own, it would be judged.
pub fn is_check(metric: &Metric, is_timed: bool) -> bool {
    is_timed && metric.is_rate() || Quality::of_metric(metric).is_some() || metric.is_of_unknown_meaning()
}

fn lint(base: &Benchmark, head: &Benchmark, name: &str, quality: Quality) -> Option<Lint> {
    let [mut was, now] = [base, head].map(|side| side.metric(name).map_or_else(Vec::new, values));
    if was.is_empty() && quality == Quality::Failures {
        was.push(0.0);
    }
    let badness = |value: f64| match quality {
        Quality::Score => -value,
        Quality::Similarity => 1.0 - value,
        Quality::Error => value.abs(),
        Quality::Loss | Quality::Failures | Quality::Checksum | Quality::Work => value,
    };
    let ordered = |mut values: Vec<f64>| -> Option<[f64; 2]> {
        values.sort_by(|one, two| badness(*one).total_cmp(&badness(*two)));
        Some([*values.first()?, *values.last()?])
    };
    // A fraction that became a percentage can't be compared.
    let is_fraction = |value: &f64| *value > 0.0 && *value <= 1.0;
    let is_percentage = |value: &f64| was.iter().all(|before| *value > PERCENTAGE * before);
    let is_other_unit = matches!(quality, Quality::Score | Quality::Similarity)
        && !was.is_empty()
        && was.iter().all(is_fraction)
        && now.iter().any(is_percentage);
    let is_repeated = was.len() > 1;
    let is_less = quality == Quality::Work && does_less([base, head], name);
    let counted = was.iter().chain(&now).all(|value| value.fract() == 0.0);
    let before = ordered(was)?;
    let Some(after) = ordered(now) else {
        return Some(Lint::new(LintCode::ReportedProblem, format!("`{name}` is missing")));
    };
    let detail = |[was, now]: [String; 2]| format!("`{name}` {was} → {now}");
    if matches!(quality, Quality::Checksum | Quality::Work) {
        let rounding = if counted { 0.0 } else { SUMMATION };
        let differs = |one: f64, two: f64| (one - two).abs() > rounding * one.abs();
        // It may be the total of all iterations, and a rate can have the name of a count.
        let is_constant = match quality {
            Quality::Work => is_repeated && before[0] == before[1] && !is_total([base, head], name),
            _ => !differs(before[0], before[1]),
        };
        // A program whose amount of work varies a little by chance may have the same one in all of base's processes.
        let is_common = other_processes([base, head], name, |value| differs(before[0], value))
            .is_beyond_chance(OF_ONE_FACT);
        let is_much = |value: f64| {
            2.0 * value <= before[0] || (value - before[0]).abs() > (MUCH * before[0].abs()).max(RARE)
        };
        let is_other = |value: f64| {
            let is_certain = quality == Quality::Checksum || is_common || is_much(value);
            is_constant && is_certain && differs(before[0], value)
        };
        let other = after.into_iter().find(|value| is_less || is_other(*value))?;
        let detail = detail([before[0], other].map(|value| value.to_string()));
        return Some(Lint::new(LintCode::WorkloadChanged, format!("the sides differ in {detail}")));
    }
    let is_worse = |head: f64, base: f64| {
        let least = match quality {
            Quality::Error | Quality::Similarity if !counted && head <= ROUNDING_ERROR => {
                9.0 * base.max(EXACT)
            }
            Quality::Error | Quality::Failures | Quality::Similarity => base.max(0.0),
            Quality::Loss => OF_LOSS * base.abs(),
            Quality::Score | Quality::Checksum | Quality::Work => ROUNDING * base.abs(),
        };
        head > base && head - base >= least
    };
    let [[base_best, base_worst], [head_best, head_worst]] = [before, after].map(|side| side.map(badness));
    let worse = other_processes([base, head], name, |value| is_worse(badness(value), base_worst));
    // One value among many is worse if base's vary too little for it. Few values don't show how much they vary.
    let range = base_worst - base_best;
    let least = match worse.are_enough() {
        false => range,
        // A score that is the same in each process was computed, and not drawn.
        true if !counted && range == 0.0 => 0.0,
        // A count of failures varies like its square root (Poisson).
        true if counted && quality == Quality::Failures => RARE * range.max(base_worst.abs().sqrt()).max(1.0),
        true if counted => RARE * range.max(1.0),
        true if matches!(quality, Quality::Score | Quality::Similarity) => range,
        // Losses and errors have long tails.
        true => RARE * range,
    };
    let limit = if range == 0.0 { OF_ONE_FACT } else { NOT_CHANCE };
    let is_one_worse = is_worse(head_worst, base_worst) && head_worst > base_worst + least;
    let is_found = is_worse(head_best, base_worst) || is_one_worse;
    let is_found = is_found || is_other_unit || worse.are_enough() && worse.is_beyond_chance(limit) || {
        let sides = base.metric(name).zip(head.metric(name));
        let ranked = sides.and_then(|(base, head)| is_ranked_worse(base, head, badness));
        ranked.is_some_and(|[was, now]| is_worse(now, was))
    };
    let is_lost = quality == Quality::Score && after == [0.0; 2] && before[1] > 0.0;
    let code = if is_lost { LintCode::Errored } else { LintCode::ReportedProblem };
    is_found.then(|| Lint::new(code, detail([before[1], after[1]].map(shown))))
}

/// The least number of processes whose equal values show that a number with the name of a measurement is none.
const ENOUGH_STEADY: usize = 10;

/// Number of times that a number must differ by more than its jitter if it has one.
const JITTERS: f64 = 10.0;

/// Largest number of changed numbers to name.
const MOST_NAMED: usize = 3;

/// Returns the finding that numbers of unknown meaning are constant at base, and that head's values are all different, or
/// missing. Such a number is not noise: it is a fact about the program, and may state that the result is wrong. The policy
/// decides about a metric that it names. `newest` are base's newest sessions, if there are several.
pub fn changed_facts(
    base: &Benchmark,
    newest: Option<&Benchmark>,
    head: &Benchmark,
    rules: &Rules<'_>,
) -> Option<Lint> {
    let of_base = newest.unwrap_or(base);
    let is_unknown = |series: &&MetricSeries| {
        series.metric.is_of_unknown_meaning() && !rules.names(&head.name, &series.metric)
    };
    let mut changed = of_base.metrics.iter().filter(is_unknown).filter_map(|series| {
        let name = &series.metric.name;
        let was = values(series);
        let first = *was.first()?;
        let moved = head.metric(name).and_then(|of_head| is_elsewhere(series, of_head));
        if let Some(moved) = moved.filter(|_| !follows_time([of_base, head], name)) {
            return Some(format!("`{name}` {moved}"));
        }
        // A process may measure something once, and state it in each of its rows. A measurement is never the same for long.
        let least = if Quality::is_measurement(name) { ENOUGH_STEADY } else { 2 };
        // The order in which numbers are added changes their sum, also from process to process.
        let jitter = if first.fract() == 0.0 { 0.0 } else { SUMMATION * first.abs() };
        if series.series.processes() < least || was.iter().any(|value| (value - first).abs() > jitter) {
            return None;
        }
        let Some(of_head) = head.metric(name) else {
            // A number that few of base's processes state may be in none of head's by chance.
            let [all, of_head] =
                [base, head].map(|side| side.metrics.first().map_or(1, |it| it.series.processes()));
            let is_chance = newest.is_none()
                && all.min(of_head) >= ENOUGH_RANKED
                && series.series.processes() < fewest_of_one_side(all, of_head, OF_ONE_FACT);
            return (!is_chance).then(|| format!("`{name}` is missing"));
        };
        if is_lost(of_base, head, name).is_some() {
            return Some(format!("`{name}` is missing in some files"));
        }
        let now = values(of_head);
        let is_same = was.iter().all(|value| *value == first);
        let is_measured = || Quality::is_measurement(name) || states_costs(name);
        if !is_same && is_measured() {
            return None;
        }
        let rounding = if is_same { jitter } else { JITTERS * jitter };
        let differs = |value: &&f64| (**value - first).abs() > rounding;
        let other = now.iter().find(differs)?;
        // A program with a race is wrong in some processes only.
        let others = other_processes([of_base, head], name, |value| differs(&&value));
        let is_changed = (now.iter().all(|value| differs(&value))
            || others.are_enough() && others.is_beyond_chance(OF_ONE_FACT))
            && !is_total([of_base, head], name);
        is_changed.then(|| format!("`{name}` {first} → {other}"))
    });
    let mut named: Vec<String> = changed.by_ref().take(MOST_NAMED).collect();
    let more = changed.count();
    named.extend((more > 0).then(|| format!("{more} more")));
    named.extend(other_text(base, head));
    (!named.is_empty()).then(|| Lint::new(LintCode::FactChanged, named.join(", ")))
}

/// Returns whether a metric changed about as the time or a rate did, so that it is a part of the time, counts what happens in
/// it, or is divided by it.
fn follows_time(sides: [&Benchmark; 2], name: &str) -> bool {
    let ratio = |name: &str| {
        let [was, now] = sides.map(|side| describe::median(&values(side.metric(name)?)));
        Some(now? / was?)
    };
    let of_time = ratio(&Metric::LATENCY.name).or_else(|| ratio("throughput"));
    let ratios = ratio(name).zip(of_time);
    ratios.is_some_and(|(of_metric, of_time)| {
        [of_metric / of_time, of_metric * of_time].iter().any(|other| (other - 1.0).abs() <= MUCH)
            && (of_time - 1.0).abs() > SUMMATION
    })
}

/// Describes how a number of unknown meaning that varies at base moved, if all of head's values are beyond all of base's and
/// much larger or smaller. Its name may be that of a score.
fn is_elsewhere(base: &MetricSeries, head: &MetricSeries) -> Option<String> {
    let is_enough = base.series.processes().min(head.series.processes()) >= ENOUGH_RANKED;
    let [was, now] = [base, head].map(|side| {
        let values = values(side);
        let extreme = |of: fn(f64, f64) -> f64| values.iter().copied().reduce(of);
        Some((extreme(f64::min)?, describe::median(&values)?, extreme(f64::max)?))
    });
    let ((low, middle, high), (least, now, most)) = was.zip(now)?;
    let is_apart = least > high || most < low;
    let is_moved = is_enough && low < high && is_apart && (now - middle).abs() > MUCH * middle.abs();
    let name = &base.metric.name;
    let is_measured = Quality::is_measurement(name) || states_costs(name) || base.metric.is_rate();
    (is_moved && !is_measured).then(|| {
        let [was, now] = [middle, now].map(|value| benchgate_core::model::significant(value, 3));
        format!("about {was} → {now}")
    })
}

/// Returns the texts that the processes of the sides print, if they differ and nearly all processes of base print the same.
fn other_text(base: &Benchmark, head: &Benchmark) -> Option<String> {
    let [was, now] = [base, head].map(|side| side.labels.get(STANDARD_OUTPUT));
    let (was, now) = was.zip(now).filter(|(was, now)| was != now)?;
    match (was.as_str(), now.as_str()) {
        (ANY_TEXT | SILENT, _) | (_, SILENT) => None,
        (was, ANY_TEXT) => Some(format!("{STANDARD_OUTPUT} `{was}` → not the same in each process")),
        (was, now) => Some(format!("{STANDARD_OUTPUT} `{was}` → `{now}`")),
    }
}

/// Returns the finding that more sessions of head than of base lack a metric: these sessions may have failed.
fn lost(base: &Benchmark, head: &Benchmark, name: &str, quality: Quality) -> Option<Lint> {
    let (of_base, of_head, all) = is_lost(base, head, name)?;
    // A checksum in a label is read as a number if it happens to have digits only.
    let is_by_chance = quality == Quality::Checksum && of_base > 0;
    (!is_by_chance).then(|| {
        Lint::new(LintCode::ReportedProblem, format!("`{name}` is missing in {of_head} of {all} files"))
    })
}

/// Returns how many sessions of base and of head lack a metric, and the number of head's sessions, if a larger share of
/// head's lacks it.
fn is_lost(base: &Benchmark, head: &Benchmark, name: &str) -> Option<(usize, usize, usize)> {
    let lacking = |side: &Benchmark| {
        let all = side.metrics.iter().filter_map(|series| series.series.sessions()).max()?;
        Some((all.saturating_sub(side.metric(name)?.series.sessions()?), all))
    };
    let ((of_base, all_of_base), (of_head, all)) = lacking(base).zip(lacking(head))?;
    // A metric that only one file has belongs to a result that was split into files.
    let is_split = all_of_base - of_base == 1 && all - of_head == 1;
    (of_head * all_of_base > of_base * all && !is_split).then_some((of_base, of_head, all))
}

/// Number of ranges of base's values, or standard deviations of a count, by which a single value must exceed base's worst.
const RARE: f64 = 3.0;

/// Share by which a single amount of work must differ from one that is constant at base.
const MUCH: f64 = 0.25;

/// Returns whether head's processes are worse than base's, larger values being worse, even if a single one of base is as
/// bad as head's.
fn is_ranked_worse(
    base: &MetricSeries,
    head: &MetricSeries,
    badness: impl Fn(f64) -> f64,
) -> Option<[f64; 2]> {
    let of_processes = |series: &MetricSeries| -> Vec<f64> {
        let values = match &series.series {
            Series::Exact(_) => Vec::new(),
            Series::Processes(all) => {
                all.iter().filter_map(|process| describe::median(&process.samples)).collect()
            }
            Series::Summaries(all) => all.iter().filter_map(|it| it.median.or(it.mean)).collect::<Vec<f64>>(),
        };
        values.into_iter().map(&badness).collect()
    };
    let is_one_session = head.series.sessions().is_none_or(|sessions| sessions < 2);
    let [base, head] = [base, head].map(of_processes);
    // A number that all processes of a session repeat was measured once.
    if is_one_session && head.windows(2).all(|pair| pair[0] == pair[1]) {
        return None;
    }
    let medians = [describe::median(&base)?, describe::median(&head)?];
    (ranked(&base, &head)?.greater < NOT_CHANCE).then_some(medians)
}

/// Returns whether both sides' values of a metric have ratios.
pub fn has_ratio(base: &Benchmark, head: &MetricSeries) -> bool {
    !series::is_signed(head) && !base.metric(&head.metric.name).is_some_and(series::is_signed)
}

/// Returns whether head does clearly less work than base, although base's amounts vary. The counter may be that of a call
/// or the total of all iterations, so both readings must show it.
fn does_less(sides: [&Benchmark; 2], name: &str) -> bool {
    let of = |side: &Benchmark, per_iteration: bool| -> Option<Vec<Vec<f64>>> {
        match &side.metric(name)?.series {
            Series::Processes(all) => all
                .iter()
                .map(|process| {
                    let iterations = if per_iteration { process.iterations? as f64 } else { 1.0 };
                    Some(process.samples.iter().map(|value| value / iterations).collect())
                })
                .collect(),
            Series::Summaries(_) | Series::Exact(_) if per_iteration => None,
            Series::Summaries(_) | Series::Exact(_) => {
                Some(values(side.metric(name)?).into_iter().map(|value| vec![value]).collect())
            }
        }
    };
    let is_less = |per_iteration: bool| {
        let sides = sides.map(|side| of(side, per_iteration));
        let [Some(base), Some(head)] = sides else { return per_iteration };
        let medians = |side: &[Vec<f64>]| -> Vec<f64> {
            side.iter().filter_map(|process| describe::median(process)).collect()
        };
        is_clearly_less(&base.concat(), &head.concat()) || is_ranked_less(&medians(&base), &medians(&head))
    };
    is_less(true) && is_less(false)
}

/// Returns whether a counter only shows how many iterations there were: it is the same for each iteration of both sides, or
/// one number divided by them.
fn is_total(sides: [&Benchmark; 2], name: &str) -> bool {
    let mut each = Vec::new();
    for series in sides.into_iter().filter_map(|side| side.metric(name)) {
        let Series::Processes(processes) = &series.series else { return false };
        for process in processes {
            let Some(iterations) = process.iterations else { return false };
            each.extend(process.samples.iter().map(|value| (*value, iterations as f64)));
        }
    }
    let is_constant = |of: fn(f64, f64) -> f64| {
        let mut all = each.iter().map(|(value, iterations)| of(*value, *iterations));
        let first = all.next();
        first.is_some_and(|first| all.all(|value| (value / first - 1.0).abs() <= 1e-6))
    };
    is_constant(|value, iterations| value / iterations)
        || is_constant(|value, iterations| value * iterations)
            && each.iter().any(|(_, iterations)| *iterations != each[0].1)
}

/// Returns a whole number, or another one with four digits.
fn shown(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return value.to_string();
    }
    let rounded = format!("{value:.3e}").parse().unwrap_or(value);
    let is_short = rounded == 0.0 || (1e-4..1e7).contains(&rounded.abs());
    if is_short { rounded.to_string() } else { format!("{rounded:e}") }
}
