//! Decides the verdict of a row, from the two thresholds and the error budget over looks and rows.

use benchgate_core::model::{Verdict, percents};
use benchgate_stats::multiplicity::{Looks, benjamini_hochberg, holm, holm_levels};
use benchgate_stats::shift::Blur;
use benchgate_stats::{Effect, Inference};

use super::estimate::{Paired, Quickest, UNMATCHED, WORTH_SHARING};
use super::gradual::Gradual;
use super::{CompareOptions, Interval, MetricPolicy, Policy, Reason, Row, SideStats, TooLittle, threads};

/// Exponent of the spending function. The budget is spent evenly over the blocks, so that the first look, at
/// which most rows are decided, has half of it (Kim and DeMets 1987).
const RHO: f64 = 1.0;
/// Number of head processes that a pass needs. If one process in five is slow, 21 of them include a slow one
/// with 99 % probability.
pub(crate) const LEAST_HEAD_PROCESSES: usize = 21;
/// Shares of the budget for regressions of a paired row: for its location, for how often its processes are
/// slow, and for how often its repetitions stall.
const LOCATION_SHARE: f64 = 0.75;
const STABILITY_SHARE: f64 = 0.2;
const TAIL_SHARE: f64 = 0.05;
/// p-value of stability below which a row does not pass at the last look.
const STABILITY_LIMIT: f64 = 0.01;
/// p-value of stability below which a row is measured further before the last look.
const STABILITY_HINT: f64 = 0.4;
/// p-value at which a row does not pass because more of head's repetitions lie far from the rest.
const FAR_SHARE_LIMIT: f64 = 0.005;
/// Largest p-value of the tail at which a row does not pass at the last look, if head's stalls raise its mean
/// by more than the tolerance. Two stalls of head and none of base have this p. Before the last look, such a
/// row is measured further.
pub(super) const TAIL_LIMIT: f64 = 0.26;
/// p-value up to which a row does not pass because head's slow processes take longer than base's, so that the
/// mean of all processes rises by more than the tolerance. Both sides may have equally many slow processes.
const SLOW_SIZE_LIMIT: f64 = 0.05;
/// Factor of the limit for the p-value of the mean, which is proportional to rise / tolerance. At the last
/// look, a row does not pass if head's mean exceeds base's by more than the tolerance and p is within this
/// limit: the more a pass would hide, the less evidence against it is needed.
const MEAN_RATE: f64 = 0.04;
/// Largest limit for the p-value of the mean: about the p of three slow processes of head and none of base.
const MEAN_LIMIT: f64 = 0.15;
/// Share of the tolerance: if the mean rises by more, a row is measured further before the last look.
const MEAN_HINT: f64 = 0.5;
/// p-value of a contradiction between the quickest repetitions and the others up to which there is no
/// verdict.
const CONTRADICTED: f64 = 0.05;
/// Share of pairs with an opposite difference of at least half the effect, above which there is no verdict
/// either. A process may have no undisturbed repetition, so the sign alone shows too little.
const OPPOSED: f64 = 0.5;
/// Allowed difference between a bound and its p-value, as a log ratio.
const ROUNDING: f64 = 1e-9;
/// Power for which the minimum detectable effect is stated.
pub const MDE_POWER: f64 = 0.9;

/// The question that is decided for one noisy row. Effects are costs: positive is worse.
#[derive(Debug, Clone)]
pub struct Question {
    pub effect: Inference,
    /// Smallest log change that counts as a regression or an improvement.
    pub floor: f64,
    /// Largest log change that a pass may hide.
    pub tolerance: f64,
    /// Shares of the budgets for regressions and for passes that this look may spend.
    red_share: f64,
    green_share: f64,
    /// One-sided p for stability and for the tail, at looks that judge them.
    p_stability: Option<f64>,
    p_tail: Option<f64>,
    /// One-sided p of the sessions' order, if the model of their spread is not enough to call head worse.
    p_order: f64,
    /// The reason to measure more blocks before a pass: the stability or the tail may have got worse.
    in_question: Option<Reason>,
    /// The reason why the row can't pass, whatever the interval is.
    unshown: Option<TooLittle>,
    /// The reason why the interval does not show the code's own time: other programs took turns with it.
    shared: Option<TooLittle>,
    /// The reason why a slowdown of earlier sessions may not be over.
    unsettled: Option<TooLittle>,
    /// The reason why the row may be slower than at an earlier level, though not slower than the newest
    /// sessions.
    gradual: Option<TooLittle>,
    /// The undisturbed speed of each side, if known.
    quickest: Option<Quickest>,
    fatal: bool,
    classical: Option<Classical>,
    /// p of the effect beyond the floor in either direction, stored because each row needs it several times.
    p_above_floor: f64,
    p_below_floor: f64,
}

/// The p-values of a classical test, which replace the effect's own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Classical {
    /// One-sided p-values for head being worse, and better, than base.
    pub p_worse: f64,
    pub p_better: f64,
    /// One-sided p of "head is worse than base by the tolerance or more".
    pub p_equivalent: f64,
    pub beyond_floor: bool,
    pub below_floor: bool,
}

/// Returns the floor of a row on the log scale: the larger of its relative and its absolute part. The
/// absolute part is taken relative to the smaller side, so that swapping the sides changes nothing.
pub fn log_floor(rule: &MetricPolicy, base: &SideStats, head: &SideStats) -> f64 {
    let smaller = base.location.min(head.location);
    let absolute = if smaller > 0.0 { (rule.floor.absolute.max(0.0) / smaller).ln_1p() } else { 0.0 };
    rule.floor.relative.max(0.0).ln_1p().max(absolute)
}

/// Returns the tolerance on the log scale, which is never below the floor.
pub fn log_tolerance(rule: &MetricPolicy, floor: f64) -> f64 {
    rule.tolerance.max(0.0).ln_1p().max(floor)
}

impl Row {
    /// Returns the largest change that a pass may hide in this row: the policy's tolerance, or the floor if
    /// its absolute part is larger in this row.
    pub fn tolerance(&self) -> Option<f64> {
        let rule = self.policy.as_ref()?;
        let sides = self.base.as_ref().zip(self.head.as_ref());
        let floor = sides.map_or(0.0, |(base, head)| log_floor(rule, base, head).exp_m1());
        Some(rule.tolerance.max(floor))
    }
}

impl Question {
    /// Creates the question about independent processes or a history, which has one look and no test of
    /// stability.
    pub fn unpaired(effect: Inference, rule: &MetricPolicy, floor: f64) -> Self {
        let p = (effect.p_above(floor), effect.p_below(-floor));
        Self::new(effect, p, rule, floor)
    }

    /// Adds the reason why the row must not pass, if the stability or the tail may have got worse.
    pub fn in_question(self, in_question: Option<Reason>) -> Self {
        Self { in_question, ..self }
    }

    /// Adds the p of the sessions' order, which is right whatever the distribution of sessions is.
    pub fn in_order(self, p_order: f64) -> Self {
        Self { p_order, ..self }
    }

    /// Adds a reason why the row can't pass, if there is one.
    pub fn unless(self, unshown: Option<TooLittle>) -> Self {
        Self { unshown: self.unshown.or(unshown), ..self }
    }

    /// Adds the number of head processes; if there are too few, the row can't pass.
    pub fn shown_by(self, head_processes: usize) -> Self {
        let or_declared = |few: TooLittle| {
            TooLittle::new(few.short, format!("{}, or a declared spread (`between-cv`)", few.why))
        };
        self.unless(too_few(head_processes).map(or_declared))
    }

    /// Turns the question into one about a compiler, for which too few processes don't prevent a pass: a
    /// compiler that is occasionally slow does not affect users of its modules.
    pub fn of_compiler(self) -> Self {
        Self { unshown: None, ..self }
    }

    /// Adds earlier slow sessions. `slow` is their number, if this session doesn't show that the slowdown is
    /// over.
    pub fn after_slow_sessions(self, slow: Option<usize>) -> Self {
        let unsettled = slow.map(|slow| {
            let sessions = benchgate_core::model::counted(slow, "stored session");
            let why = format!("slower in {sessions} before this one, and this session does not show that the slowdown is over");
            TooLittle::new("was slower before", why)
        });
        Self { unsettled, ..self }
    }

    /// Adds that the row is likely slower than at an earlier level, which forbids a pass whatever the newest
    /// sessions show.
    pub fn since_earlier(self, gradual: Option<&Gradual>) -> Self {
        let gradual = gradual.map(|gradual| {
            let (short, what) = gradual.since.words();
            TooLittle::new(short, format!("{what} can't be excluded: {}", gradual.text()))
        });
        Self { gradual, ..self }
    }

    fn new(
        effect: Inference,
        (p_above_floor, p_below_floor): (f64, f64),
        rule: &MetricPolicy,
        floor: f64,
    ) -> Self {
        Self {
            floor,
            tolerance: log_tolerance(rule, floor),
            red_share: 1.0,
            green_share: 1.0,
            p_stability: None,
            p_tail: None,
            in_question: None,
            p_order: 0.0,
            unshown: None,
            shared: None,
            unsettled: None,
            gradual: None,
            quickest: None,
            fatal: rule.fatal,
            classical: None,
            p_above_floor,
            p_below_floor,
            effect,
        }
    }

    /// Creates the question about blocks, for the look after this number of blocks.
    pub fn paired(paired: &Paired, rule: &MetricPolicy, floor: f64, looks: &Looks) -> Self {
        let blocks = paired.counts.blocks;
        let last = blocks >= looks.last();
        let share = looks.share(blocks, RHO);
        Self {
            red_share: LOCATION_SHARE * share,
            green_share: share,
            // The sign test of the row's own uneven blocks must also show instability, independently of
            // neighboring rows.
            p_stability: last.then_some(paired.p_stability.max(paired.p_split)),
            p_tail: last.then_some(paired.tail.p),
            in_question: in_question(paired, log_tolerance(rule, floor), last),
            unshown: unshown(paired),
            shared: (paired.blur == Some(Blur::Grid)).then(shared_processor),
            quickest: Some(paired.quickest),
            ..Self::new(paired.shift.clone(), (paired.p_above_floor, paired.p_below_floor), rule, floor)
        }
    }

    /// Creates the question for a classical test, which replaces the evidence about the typical time. The
    /// other conditions of a pass come from the default test's question. A classical test needs no minimum
    /// number of processes if all are about as fast.
    pub fn classical(
        effect: Effect,
        rule: &MetricPolicy,
        floor: f64,
        classical: Classical,
        asked: Option<Self>,
    ) -> Self {
        let own =
            Self { classical: Some(classical), ..Self::unpaired(Inference::Modelled(effect), rule, floor) };
        match asked {
            Some(Self { in_question, unsettled, gradual, .. }) => {
                Self { in_question, unsettled, gradual, ..own }
            }
            None => own,
        }
    }

    /// Returns the p of "not worse by location", as if the whole budget were spent on it at this look.
    fn p_location(&self) -> f64 {
        match self.classical {
            Some(test) => test.p_worse,
            None => (self.p_above_floor / self.red_share).max(self.p_order).min(1.0),
        }
    }

    fn p_unstable(&self) -> f64 {
        self.p_stability.map_or(1.0, |p| (p / STABILITY_SHARE).min(1.0))
    }

    fn p_stalls(&self) -> f64 {
        self.p_tail.map_or(1.0, |p| (p / TAIL_SHARE).min(1.0))
    }

    fn p_worse(&self) -> f64 {
        self.p_location().min(self.p_unstable()).min(self.p_stalls())
    }

    fn p_better(&self) -> f64 {
        match self.classical {
            Some(test) => test.p_better,
            None => (self.p_below_floor / self.red_share).min(1.0),
        }
    }

    fn is_within(&self, alpha: f64) -> bool {
        match self.classical {
            Some(test) => test.p_equivalent <= alpha,
            None => {
                let level = alpha * self.green_share;
                self.effect.p_below(self.tolerance) <= level
                    && self.effect.upper(level) <= self.tolerance + ROUNDING
            }
        }
    }

    /// Returns whether the interval lies beyond the floor. The p-value is not enough: with several modes it
    /// can reject the floor although the printed interval still contains it.
    fn shows_worse(&self, level: f64) -> bool {
        self.classical.is_some() || self.effect.lower(level) >= self.floor - ROUNDING
    }

    /// Returns the verdict, its reason, and the one-sided level of the interval that decided.
    fn judge(&self, worse_level: f64, better_level: f64, alpha: f64) -> (Verdict, Reason, f64) {
        let beyond = self.classical.is_none_or(|test| test.beyond_floor);
        let below = self.classical.is_none_or(|test| test.below_floor);
        let red_level = worse_level * self.red_share;
        if self.p_location() <= worse_level && beyond && self.shows_worse(red_level) {
            return match self.quickest.filter(|quickest| contradicts(quickest, quickest.p_head_faster)) {
                None => (Verdict::Regressed, Reason::BeyondFloor, red_level),
                Some(quickest) => (Verdict::Inconclusive, contradicted(quickest, "slower"), red_level),
            };
        }
        // A head that is clearly faster but less stable is not slower; it does not pass either.
        let uneven = [(self.p_unstable(), Reason::Stability), (self.p_stalls(), Reason::Tail)];
        if let Some((_, reason)) = uneven.into_iter().find(|(p, _)| *p <= worse_level)
            && self.p_better() > better_level
        {
            return (Verdict::Regressed, reason, red_level);
        }
        if let Some(why) = &self.gradual {
            return (Verdict::Inconclusive, Reason::TooLittle(why.clone()), red_level);
        }
        if self.p_order > worse_level && self.p_above_floor <= red_level {
            let why = "a few sessions of one program can differ by this much, because its processes have different memory \
                layouts; more files of both sides would settle it";
            return (Verdict::Inconclusive, Reason::too_little("too few sessions", why), red_level);
        }
        if self.p_better() <= better_level && below && self.in_question.is_none() {
            let level = better_level * self.red_share;
            return match self.quickest.filter(|quickest| contradicts(quickest, quickest.p_head_slower)) {
                None => (Verdict::Improved, Reason::BelowFloor, level),
                Some(quickest) => (Verdict::Inconclusive, contradicted(quickest, "faster"), level),
            };
        }
        // There is no correction over rows: "every row is within tolerance" requires each row to be shown, so
        // the whole is at most as likely wrong as one of them (intersection-union test, Berger 1982,
        // Technometrics 24:295–300).
        let within = self.is_within(alpha);
        let level = alpha * self.green_share;
        if let Some(why) = &self.unsettled {
            return (Verdict::Inconclusive, Reason::TooLittle(why.clone()), red_level);
        }
        if within && self.in_question.is_none() && self.unshown.is_none() {
            // The interval that shows that head is no worse may show more: if all of it lies below the floor,
            // head is better. An improvement never fails a gate, so it needs no share of the budget for false
            // positives.
            let better = self.classical.is_none() && self.p_below_floor <= level;
            return if better {
                (Verdict::Improved, Reason::BelowFloor, level)
            } else {
                (Verdict::Pass, Reason::WithinTolerance, level)
            };
        }
        let reason = match (&self.in_question, &self.unshown) {
            (Some(reason), _) if within => reason.clone(),
            (None, Some(why)) if within => Reason::TooLittle(why.clone()),
            _ => self.shared.clone().map_or(Reason::Open, Reason::TooLittle),
        };
        (Verdict::Inconclusive, reason, red_level)
    }
}

/// Returns the reason that keeps a row with a good interval from passing. If every repetition of head is
/// faster than every one of base, nothing can be slower.
fn in_question(paired: &Paired, tolerance: f64, last: bool) -> Option<Reason> {
    if paired.outruns {
        return None;
    }
    let slow = if last { STABILITY_LIMIT } else { STABILITY_HINT };
    if paired.p_stability < slow || paired.p_far_share <= FAR_SHARE_LIMIT {
        return Some(Reason::Stability);
    }
    let slow = paired.slow_size;
    if slow.excess > tolerance && slow.p <= SLOW_SIZE_LIMIT {
        let why = format!(
            "slow processes got slower: head's slow processes lie {} above head's undisturbed level (base's: \
            {} above base's), so the mean of all processes rises by {}",
            percents(slow.head),
            percents(slow.base),
            percents(slow.excess)
        );
        return Some(Reason::too_little("slow processes got slower", why));
    }
    if paired.quickest.behind > tolerance {
        let why = format!(
            "{UNMATCHED} of base's processes have a repetition that is faster than any of head's, by {} or more",
            percents(paired.quickest.behind.exp_m1())
        );
        return Some(Reason::too_little("fastest times got slower", why));
    }
    let stalls = paired.tail.excess > tolerance && (!last || paired.tail.p <= TAIL_LIMIT);
    if stalls {
        return Some(Reason::Tail);
    }
    mean_in_question(paired, tolerance, last)
}

/// Returns a reason if head's mean may exceed base's by more than the tolerance, whatever raised it. If only
/// head has slow processes, they can't be compared with any of base's, so several of them are enough.
fn mean_in_question(paired: &Paired, tolerance: f64, last: bool) -> Option<Reason> {
    let (mean, counts) = (paired.mean, paired.counts);
    let limit = (MEAN_RATE * mean.rise / tolerance).min(MEAN_LIMIT);
    let of_head_alone = counts.slow_base == 0 && counts.slow_head > 1;
    let is_open = if last {
        mean.rise > tolerance && (of_head_alone || mean.p <= limit)
    } else {
        mean.rise > MEAN_HINT * tolerance
    };
    is_open.then(|| {
        let cause = if mean.of_medians < mean.rise / 2.0 {
            "more or longer stalls of single repetitions".to_owned()
        } else if counts.slow_head > counts.slow_base {
            let [base, head] = paired.processes;
            format!(
                "more slow starts ({} of {head} against {} of {base})",
                counts.slow_head, counts.slow_base
            )
        } else {
            "slower processes".to_owned()
        };
        let why = format!("head's mean is {} above base's: {cause}", percents(mean.rise.exp_m1()));
        Reason::too_little("the mean rose", why)
    })
}

/// Returns whether the quickest repetitions point the other way, by their sign test or by their size.
fn contradicts(quickest: &Quickest, p_other_way: f64) -> bool {
    p_other_way <= CONTRADICTED || quickest.opposed >= OPPOSED
}

/// Returns the reason for a contradiction. A program that shares its processor may be faster when it runs
/// alone but slower when it has to wait, or the other way round; the other programs then decide the result.
fn contradicted(quickest: Quickest, most: &str) -> Reason {
    let Quickest { pairs, head_faster, .. } = quickest;
    let why = format!(
        "the result depends on other programs: most repetitions of head are {most}, but head's quickest one \
        is faster than base's in {head_faster} of {pairs} pairs; reserve a processor for the benchmark \
        (`cpus`)"
    );
    Reason::too_little("contradictory", why)
}

/// Returns a condition of a pass that is not met, other than an interval within the tolerance.
fn unshown(paired: &Paired) -> Option<TooLittle> {
    match paired.blur {
        Some(Blur::Grid) => Some(shared_processor()),
        Some(Blur::Scattered) => Some(TooLittle::new(
            "repetitions vary",
            "the repetitions vary too much: a quieter machine or longer repetitions (`min-time`) would settle it",
        )),
        None => too_few(paired.processes[1]),
    }
}

fn shared_processor() -> TooLittle {
    TooLittle::new(
        "shared processor",
        "the processor seems to be shared: repetitions are evenly spaced, as if another program took turns; \
        stop that program, or pin the benchmark to other processors (`cpus`)",
    )
}

fn too_few(head_processes: usize) -> Option<TooLittle> {
    (head_processes < LEAST_HEAD_PROCESSES).then(|| {
        let processes = if head_processes == 1 { "process" } else { "processes" };
        let why = format!(
            "the typical value is within the tolerance, but {head_processes} {processes} of head can't rule out that some \
            are slow; at least {LEAST_HEAD_PROCESSES} are needed"
        );
        TooLittle::new("too few processes", why)
    })
}

/// The answer to a [`Question`].
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    pub verdict: Verdict,
    pub reason: Reason,
    /// The interval, converted back to head/base.
    pub interval: Interval,
    pub p_worse: f64,
    pub p_adjusted: f64,
    /// p-value with Benjamini and Hochberg's adjustment, for ordering a list.
    pub q_value: f64,
    /// Absent at an interim look, which only needs a verdict.
    pub minimum_detectable: Option<f64>,
}

/// Decides all questions of a comparison at once. Fatal and other rows are two families, because a row that
/// is only reported must not reduce the power of a fatal one. `worse` holds each metric's direction. For a
/// part of a suite, `suite_rows` is the number of fatal rows in the whole suite; those that are not here
/// count as undecided.
pub fn decide(
    questions: &[Question],
    worse: &[f64],
    policy: &Policy,
    options: &CompareOptions,
) -> Vec<Decision> {
    let mut decisions: Vec<Option<Decision>> = vec![None; questions.len()];
    for fatal in [true, false] {
        let family: Vec<usize> = (0..questions.len()).filter(|&i| questions[i].fatal == fatal).collect();
        let size = if fatal { family.len().max(options.suite_rows as usize) } else { family.len() };
        let of = |f: fn(&Question) -> f64| {
            let mut found: Vec<f64> = family.iter().map(|&i| f(&questions[i])).collect();
            found.resize(size, 1.0);
            found
        };
        let p_worse = of(Question::p_worse);
        let adjusted = holm(&p_worse);
        let levels = holm_levels(&p_worse, policy.alpha);
        let better_levels = holm_levels(&of(Question::p_better), policy.alpha);
        let listing = benjamini_hochberg(&p_worse);
        let places: Vec<(usize, usize)> = family.into_iter().enumerate().collect();
        let decided = threads::each(&places, WORTH_SHARING, |&(at, index)| {
            let question = &questions[index];
            let (verdict, reason, level) = question.judge(levels[at], better_levels[at], policy.alpha);
            let detectable = || question.effect.detectable(levels[at] * question.red_share, MDE_POWER);
            let decision = Decision {
                verdict,
                reason,
                interval: interval(&question.effect, level, worse[index]),
                p_worse: question.classical.map_or(question.p_above_floor, |test| test.p_worse),
                p_adjusted: adjusted[at],
                q_value: listing[at],
                minimum_detectable: (!options.looking).then(|| (question.floor + detectable()).exp_m1()),
            };
            question.effect.put_away(0);
            (index, decision)
        });
        for (index, decision) in decided {
            decisions[index] = Some(decision);
        }
    }
    decisions.into_iter().flatten().collect()
}

fn interval(effect: &Inference, level: f64, worse: f64) -> Interval {
    let (low, high) = (effect.lower(level), effect.upper(level));
    let (low, high) = if worse < 0.0 { (-high, -low) } else { (low, high) };
    Interval { low: low.exp(), high: high.exp(), level: 1.0 - 2.0 * level }
}

/// Decides about a deterministic value: any change that exceeds both parts of the floor counts.
pub fn decide_exact(base: f64, head: f64, worse: f64, rule: &MetricPolicy) -> (Verdict, Reason) {
    let change = (head - base) * worse;
    let relative = change.abs() / base.abs();
    let beyond = change != 0.0
        && change.abs() > rule.floor.absolute
        && (relative > rule.floor.relative || base == 0.0);
    let verdict = match (beyond, change > 0.0) {
        (false, _) => Verdict::Pass,
        (true, true) => Verdict::Regressed,
        (true, false) => Verdict::Improved,
    };
    (verdict, Reason::Exact)
}
