//! The evidence in two series of one metric: paired blocks if they pair up, otherwise independent sessions.

use std::collections::BTreeMap;
use std::sync::Arc;

use benchgate_core::model::{Benchmark, BlockSlot, Lint, Metric, Series, Spread, counted, percents};
use benchgate_stats::classical::{Moments, UMethod, fewest_of_one_side, mann_whitney, welch};
use benchgate_stats::scores::{BlockCosts, ProcessCosts};
use benchgate_stats::stability::{SLOW_SCALES, SlowShare};
use benchgate_stats::tail::log_mean_exp;
use benchgate_stats::unpaired::{SeparateSide, UnpairedRow};
use benchgate_stats::{describe, unpaired};

use super::decide::TAIL_LIMIT;
use super::gradual::Earlier;
use super::series::{self, Readings};
use super::{Method, Reason, TooLittle};

/// Evidence about one row, as costs: larger is worse, whatever the metric's direction.
#[derive(Debug, Clone)]
pub enum Evidence {
    /// Blocks of pairs; the effect is estimated together with that of neighboring rows.
    Paired(Arc<[BlockCosts]>),
    /// Independent sessions, or processes with a known spread; the effect is estimated together with that of
    /// neighboring rows.
    Unpaired {
        row: UnpairedRow,
        method: Method,
        source: SpreadSource,
        counts: [UnitCounts; 2],
        /// The stability or the tail, if head may be worse in that respect.
        uneven: Option<Reason>,
        /// p of "these two runs do not differ", by Mann and Whitney's test on the repetitions, if they were kept.
        p_runs: Option<f64>,
    },
    /// Head's session and the stored ones; sessions of neighboring rows stabilize the spread. `slow`:
    /// sessions after the stored ones that are excluded because they were slow.
    History {
        stored: Vec<f64>,
        slow: Vec<f64>,
        earlier: Earlier,
        now: f64,
        assumed_sd: f64,
        lints: Vec<Lint>,
    },
}

impl Evidence {
    /// Takes the findings about this evidence's assumptions, to add them to the row.
    pub fn take_lints(&mut self) -> Vec<Lint> {
        match self {
            Self::Paired(_) | Self::Unpaired { .. } => Vec::new(),
            Self::History { lints, .. } => std::mem::take(lints),
        }
    }
}

/// Number of units on each level, for one side of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnitCounts {
    pub sessions: usize,
    pub processes: usize,
    pub repetitions: u64,
}

impl UnitCounts {
    fn counted_in(readings: &Readings) -> Self {
        Self {
            sessions: readings.sessions.len(),
            processes: readings.clean.len(),
            repetitions: readings.stats.samples,
        }
    }
}

/// The assumed spread of a benchmark before its own processes are examined.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PriorSpread {
    /// Standard deviation between processes, as a fraction.
    pub between: f64,
    pub source: SpreadSource,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpreadSource {
    Calibrated,
    Declared,
    Default,
}

impl SpreadSource {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Calibrated => "calibrated",
            Self::Declared => "declared",
            Self::Default => "default",
        }
    }
}

/// Returns whether a measured or declared spread can be used; zero may mean that it is unknown.
pub fn usable(value: &f64) -> bool {
    value.is_finite() && *value > 0.0
}

/// Returns the declared spread, otherwise the calibrated one, otherwise the model's default.
pub fn prior_spread(calibrated: Option<&Spread>, declared: Option<f64>) -> PriorSpread {
    if let Some(between) = declared.filter(usable) {
        return PriorSpread { between, source: SpreadSource::Declared };
    }
    if let Some(between) = calibrated.and_then(|spread| spread.between_processes).filter(usable) {
        return PriorSpread { between, source: SpreadSource::Calibrated };
    }
    PriorSpread { between: 0.0, source: SpreadSource::Default }
}

/// Returns the blocks that have at least one process of each side, in order; `None` if a process has no slot.
pub fn blocks(base: &Readings, head: &Readings) -> Option<Vec<BlockCosts>> {
    let mut blocks: BTreeMap<u32, BlockCosts> = BTreeMap::new();
    for (readings, head) in [(base, false), (head, true)] {
        for (at, slot) in readings.slots.iter().enumerate() {
            let BlockSlot { block, slot } = (*slot)?;
            let costs = readings.costs.get(at).cloned().unwrap_or_default();
            let (clean, middle, mean) = (readings.clean[at], readings.middle[at], readings.mean[at]);
            blocks.entry(block).or_default().push(ProcessCosts { slot, head, clean, middle, mean, costs });
        }
    }
    let has = |block: &BlockCosts, head: bool| block.iter().any(|process| process.head == head);
    let mut blocks: Vec<BlockCosts> =
        blocks.into_values().filter(|block| has(block, false) && has(block, true)).collect();
    blocks.iter_mut().for_each(|block| block.sort_by_key(|process| (process.head, process.slot)));
    Some(blocks)
}

/// Gathers the evidence of head against base, or returns why there is none. `worse` is +1 if a larger value
/// is worse; the tolerance is on the log scale.
pub fn gather(
    base: &Readings,
    head: &Readings,
    same_session: bool,
    prior: PriorSpread,
    waiting: f64,
    (worse, tolerance): (f64, f64),
) -> Result<Evidence, TooLittle> {
    if same_session && let Some(blocks) = blocks(base, head) {
        return match blocks.len() {
            found @ 0..=1 => {
                let why = format!("{}; at least two are needed", counted(found, "paired block"));
                Err(TooLittle::new("too few blocks", why))
            }
            _ => Ok(Evidence::Paired(blocks.into())),
        };
    }
    // An effect of the session on both sides is not a difference between them.
    let by_process = same_session || prior.source != SpreadSource::Default;
    let mut sides = [base, head].map(|readings| side(readings, by_process, waiting));
    if sides.iter().any(|side| side.locations.is_empty()) {
        return Err(TooLittle::new("no process", "a side has no process"));
    }
    // It is unknown how far a single session lies from the next one of its side, however many the other side has, so
    // the row is judged like one of two sessions.
    if !by_process && sides.iter().any(|side| side.locations.len() == 1) {
        for side in &mut sides {
            side.locations = describe::median(&side.locations).into_iter().collect();
        }
    }
    let [base_side, head_side] = sides;
    let enough = base.samples.len().min(head.samples.len()) >= LEAST_FOR_RUNS;
    let known = (prior.source != SpreadSource::Default).then_some(prior.between);
    Ok(Evidence::Unpaired {
        row: UnpairedRow { base: base_side, head: head_side, known },
        // A file with samples and one with only summaries have just the median in common.
        method: if base.summaries_only || head.summaries_only { Method::Summaries } else { Method::Unpaired },
        source: prior.source,
        counts: [base, head].map(UnitCounts::counted_in),
        uneven: uneven(base, head, worse, tolerance),
        p_runs: enough
            .then(|| mann_whitney(&head.samples, &base.samples, UMethod::Auto))
            .flatten()
            .map(|test| test.two_sided),
    })
}

/// Minimum number of repetitions on each side: with five and five, the most extreme order is one of 252, in
/// either direction.
const LEAST_FOR_RUNS: usize = 5;

/// Probability up to which an excess of slow processes in head is not attributed to chance: the probability
/// of three slow processes of head and none of base.
const UNEVEN_LIMIT: f64 = 0.13;

/// Probability that a rise of the mean is due to chance, up to which a row does not pass even if the rise
/// barely exceeds the tolerance.
const MEAN_LIMIT: f64 = 0.02;

/// Factor of the limit of Welch's test, which is proportional to rise / tolerance − 1: the more a pass would
/// hide, the less evidence against it is needed.
const MEAN_RATE: f64 = 0.1;
const LARGEST_MEAN_LIMIT: f64 = 0.15;

/// Returns a reason if head is slow, or stalls, more often or for longer than base. The location of a side
/// does not show this. Without a schedule the machine may be the cause, so this prevents a pass but does not
/// make a row `regressed`.
fn uneven(base: &Readings, head: &Readings, worse: f64, tolerance: f64) -> Option<Reason> {
    let quicker = |costs: &[f64]| describe::quantile_sorted(&describe::sorted(costs), 0.25);
    let by_process = base.middle.len().min(head.middle.len()) > 1;
    let units = |side: &Readings| -> Vec<f64> {
        if by_process {
            side.middle.clone()
        } else {
            side.samples.iter().map(|value| worse * value.ln()).collect()
        }
    };
    let (base_units, head_units) = (units(base), units(head));
    let fastest_of_head = head_units.iter().copied().fold(f64::INFINITY, f64::min);
    /// Probability with which so many of base's values lie before all of head's by chance.
    const UNMATCHED: f64 = 1.0 / 64.0;
    let unmatched = fewest_of_one_side(base_units.len(), head_units.len(), UNMATCHED);
    let lead_of_base = describe::sorted(&base_units).get(unmatched - 1).map(|unit| fastest_of_head - unit);
    if let Some(behind) = lead_of_base.filter(|behind| by_process && *behind > tolerance) {
        let why = format!(
            "{unmatched} of base's processes are faster than all of head's, by {} or more",
            percents(behind.exp_m1())
        );
        return Some(Reason::too_little("fastest processes got slower", why));
    }
    if let Some((base_level, head_level)) = quicker(&base_units).zip(quicker(&head_units)) {
        // If head is faster, its process is slow only if a base process with this time would be slow.
        let levels = [base_level, head_level.max(base_level)];
        if SlowShare::new(&base_units, &head_units, levels, tolerance).p <= UNEVEN_LIMIT {
            return Some(Reason::Stability);
        }
    }
    if !by_process && deviates_more(base, head, tolerance) {
        return Some(Reason::Stability);
    }
    let rose = |by: f64| {
        let why = format!(
            "head's processes take {} longer than base's on average, more than chance explains",
            percents(by)
        );
        Reason::too_little("the mean rose", why)
    };
    if by_process && let Some(rise) = Rise::between(&base_units, &head_units) {
        let limit = (MEAN_RATE * (rise.by / tolerance - 1.0)).clamp(MEAN_LIMIT, LARGEST_MEAN_LIMIT);
        if rise.by > tolerance && (rise.p <= limit || rise.p_of_slower <= MEAN_LIMIT) {
            return Some(rose(rise.by));
        }
    }
    let lead = (describe::median(&head.middle)? - describe::median(&base.middle)?).min(0.0);
    let tails = |side: &Readings, lead: f64| -> Vec<f64> {
        side.mean.iter().zip(&side.middle).map(|(mean, middle)| mean - middle + lead).collect()
    };
    let (base_tails, head_tails) = (tails(base, 0.0), tails(head, lead));
    let level = quicker(&base_tails)?;
    let stalled = SlowShare::new(&base_tails, &head_tails, [level, level], tolerance);
    let excess = log_mean_exp(&head_tails) - log_mean_exp(&base_tails);
    // A summary has no repetitions to count, only their mean.
    let uncounted = base.summaries_only || head.summaries_only;
    if excess > tolerance && (uncounted || by_process && stalled.p <= TAIL_LIMIT) {
        return Some(Reason::Tail);
    }
    // If most processes of both sides stall, head's may stall longer.
    let rise = Rise::between(&base.mean, &head.mean).filter(|_| by_process)?;
    (rise.by > tolerance && rise.p <= MEAN_LIMIT).then(|| rose(rise.by))
}

/// Returns whether two summaries state that head's repetitions deviate by more than the tolerance, and many times as
/// much as base's.
fn deviates_more(base: &Readings, head: &Readings, tolerance: f64) -> bool {
    /// Fewer repetitions don't show a deviation.
    const LEAST: u64 = 3;
    let deviation = |side: &Readings| {
        let stats = &side.stats;
        (side.summaries_only && stats.samples >= LEAST).then_some(stats.stddev? / stats.location)
    };
    let Some((of_base, of_head)) = deviation(base).zip(deviation(head)) else { return false };
    // A few stalls explain the part of head's deviation that belongs to the distance of mean and median.
    let stats = &head.stats;
    let of_stalls = (stats.mean / stats.location - 1.0) * (stats.samples as f64).sqrt();
    let of_head = (of_head.powi(2) - of_stalls.powi(2)).max(0.0).sqrt();
    of_head > tolerance && of_head > SLOW_SCALES * of_base
}

/// The rise of the mean from base to head, as a share of base's, and the probabilities that it is due to chance: head may
/// have as many slow units as base, but slower ones.
struct Rise {
    by: f64,
    /// By Welch's test, which needs means that are clearly separated.
    p: f64,
    /// By the slower halves of both sides, which distinguish times of several modes.
    p_of_slower: f64,
}

impl Rise {
    /// Compares costs, which are logarithms of times.
    fn between(base: &[f64], head: &[f64]) -> Option<Self> {
        let level = describe::median(base)?;
        let values = |costs: &[f64]| {
            describe::sorted(&costs.iter().map(|cost| (cost - level).exp()).collect::<Vec<_>>())
        };
        let (base, head) = (values(base), values(head));
        let moments = Moments::from_values(&head).zip(Moments::from_values(&base));
        let slower = |values: &[f64]| values[values.len() / 2..].to_vec();
        Some(Self {
            by: describe::mean(&head)? / describe::mean(&base)? - 1.0,
            p: moments.map_or(1.0, |(head, base)| welch(head, base).greater),
            p_of_slower: mann_whitney(&slower(&head), &slower(&base), UMethod::Auto)?.greater,
        })
    }
}

/// Returns one side in the form that the model reads. With `by_process`, each process is a unit; otherwise
/// each session is.
fn side(readings: &Readings, by_process: bool, waiting: f64) -> SeparateSide {
    let sessions = &readings.sessions;
    let disturbances: Vec<f64> = sessions.iter().filter_map(|session| session.disturbance).collect();
    let disturbance = describe::median(&disturbances);
    let processes = sessions.iter().map(|session| session.processes).min().unwrap_or(0);
    let repetitions = readings.stats.samples as f64 / readings.stats.processes.max(1) as f64;
    SeparateSide {
        within: unpaired::within(disturbance, repetitions),
        disturbance: disturbance.map(|disturbance| disturbance.max(waiting)),
        locations: if by_process {
            readings.middle.clone()
        } else {
            sessions.iter().map(|session| session.location).collect()
        },
        processes: if by_process { 1 } else { processes },
    }
}

/// Share of the wall-clock time that a program may spend without its processor before other programs are
/// suspected: time for reading a file or starting a process.
const OWN_WAITING: f64 = 0.02;
/// Share of the waiting (the logarithm of wall-clock over processor time) that counts as disturbance. A
/// program may wait for itself, so only part of it counts.
const SUSPECTED: f64 = 0.5;

/// Returns how far the wall-clock time exceeds the processor time, as a disturbance: another session may wait
/// more or less. The excess counts only if a file states the time of whole processes, as hyperfine does,
/// because a thread that waits for a device or for its workers is not disturbed.
pub fn waiting(benchmark: &Benchmark) -> f64 {
    let stated = benchmark.metric(&Metric::CPU_TIME.name).and_then(|series| match &series.series {
        Series::Summaries(summaries) => summaries.first()?.mean,
        Series::Processes(_) | Series::Exact(_) => None,
    });
    let wall = || Some(series::described(benchmark.metric(&Metric::LATENCY.name)?)?.mean);
    let share = stated.and_then(|busy| Some(busy / wall()?));
    let share = share.filter(|share| share.is_finite() && *share > 0.0).unwrap_or(1.0);
    (SUSPECTED * (-share.ln() - OWN_WAITING)).clamp(0.0, unpaired::BUSY)
}

/// Returns the median over sessions, in the metric's unit; `worse` is +1 if a larger value is worse.
pub fn location(readings: &Readings, worse: f64) -> Option<f64> {
    let costs: Vec<f64> = readings.sessions.iter().map(|session| session.location).collect();
    describe::median(&costs).map(|cost| (cost * worse).exp())
}
