//! Rows before the error budget is divided: the evidence for each benchmark and metric.

use std::collections::BTreeSet;

use benchgate_core::model::{
    Benchmark, BenchmarkName, Better, Consequence, JUDGED_BY, JUDGED_BY_OUTPUTS, Lint, LintCode, Metric,
    MetricSeries, Outcome, Run, Series, SideName, Verdict,
};

use super::decide::{decide_exact, log_floor, log_tolerance};
use super::disturbance::Measured;
use super::estimate::shift;
use super::evidence::{self, Evidence, gather, prior_spread};
use super::newest::GradualQuestion;
use super::rules::Rules;
use super::series::{self, Readings};
use super::status::Matched;
use super::{
    Estimate, Method, MetricPolicy, Reason, Row, accuracy, context, copied, diagnosis, disturbance, history,
    rounding, status, workload,
};

/// Metrics of compiler output, which need no device.
const OF_MODULES: [&str; 4] = ["compile-time", "compile-instructions", "vmfb-size", "dispatch-count"];

/// A row before the error budget is divided among all rows.
pub struct Draft {
    pub row: Row,
    /// The part that is left to decide; `None` if the row is settled.
    pub open: Option<Box<Open>>,
}

/// An undecided row.
pub struct Open {
    pub evidence: Evidence,
    /// The lint that forbids a verdict, whatever the numbers are.
    pub forbidden: Option<Lint>,
    /// +1 if a larger value is worse.
    pub worse: f64,
    pub rule: MetricPolicy,
    /// The floor on the log scale.
    pub floor: f64,
    /// Base's and head's repetitions, if a classical test or a chart reads them again. All rows of a large
    /// comparison are open at once, so they keep nothing else.
    pub readings: Option<[Readings; 2]>,
}

impl ComparedSession<'_> {
    /// Returns whether both sides were read from one file.
    fn one_file(&self) -> bool {
        let [base, head] = [self.base, self.head].map(|run| &run.origin.label);
        base == head && !base.is_empty()
    }

    fn judges(&self, metric: &Metric) -> bool {
        self.metrics.is_empty() || self.metrics.iter().any(|name| *name == metric.name)
    }
}

impl Draft {
    fn settled(row: Row) -> Self {
        Self { row, open: None }
    }
}

/// Data that all rows of a comparison share.
pub struct ComparedSession<'a> {
    /// True if both sides were measured together, so that their blocks pair up.
    pub together: bool,
    pub measured_here: bool,
    /// The metrics that are judged; empty for all.
    pub metrics: &'a [String],
    /// True if blocks were resampled, as in [`super::CompareOptions`].
    pub resampled: bool,
    pub base: &'a Run,
    pub head: &'a Run,
    /// The stored sessions that head is judged against, if requested.
    pub history: Option<history::Sessions<'a>>,
    pub forbidden: Option<Lint>,
    /// The lint that forbids a verdict even if no load explains the row's result.
    pub forbidden_at_any_load: Option<Lint>,
    /// Benchmarks that share samples with another one, on either side.
    pub repeated: BTreeSet<BenchmarkName>,
}

pub fn blank(name: &BenchmarkName, pair: Matched<'_>, verdict: Verdict, reason: Reason, fatal: bool) -> Row {
    let sides = [(SideName::Base, pair.base), (SideName::Head, pair.head)];
    let lints = sides
        .into_iter()
        .filter_map(|(name, side)| Some((name, side?)))
        .flat_map(|(name, side)| side.lints.iter().map(move |lint| disturbance::recorded(lint, name)));
    let lints = lints.filter(|lint| lint.code != LintCode::ReportedProblem || pair.is_new(lint));
    Row {
        target: context::target(pair),
        fatal,
        base_verification: pair.base.and_then(|side| side.verification.clone()),
        head_verification: pair.head.and_then(|side| side.verification.clone()),
        lints: context::deduplicate(lints.collect()),
        ..Row::new(name.clone(), verdict, reason)
    }
}

/// Returns all rows of one benchmark.
pub fn drafts(pair: Matched<'_>, session: &ComparedSession<'_>, rules: &Rules<'_>) -> Vec<Draft> {
    let Some(any) = pair.any() else { return Vec::new() };
    let name = &any.name;
    let expected = status::status(pair, rules);
    let both_ran = [pair.base, pair.head].iter().all(|side| side.is_some_and(|side| side.outcome.is_ok()));
    let of_outcomes = match &expected {
        Some(status) if !both_ran => Some(status.clone()),
        _ => status::of_outcomes(pair),
    };
    if let Some(status) = of_outcomes {
        let mut row = blank(name, pair, status.verdict, status.reason, status.fatal);
        if pair.base.is_none() || pair.head.is_none() {
            row.lints.push(Lint::new(LintCode::Unmatched, "only one side has it"));
        }
        let mut drafts = vec![Draft::settled(row)];
        drafts.extend(compiled_only(pair, session, rules));
        return drafts;
    }
    let (Some(base), Some(head)) = (pair.base, pair.head) else { return Vec::new() };
    let mut drafts = Vec::new();
    let of_outputs = expected.or_else(|| status::of_verification(base, head, session.together, rules));
    if let Some(status) = of_outputs {
        drafts.push(Draft::settled(blank(name, pair, status.verdict, status.reason, status.fatal)));
    }
    if drafts.is_empty() && judges_outputs(base, head) {
        drafts.push(Draft::settled(outputs_row(name, pair, head)));
    }
    let identical = status::identical(base, head);
    let gpu = context::on_gpu(head) || context::on_gpu(base);
    let waiting = evidence::waiting(base).max(evidence::waiting(head));
    let unverified = status::unverified(head);
    let unusable = unusable(base).or_else(|| unusable(head));
    let accuracy = accuracy::lints(base, head);
    let mut asked = workload::lints(base, head, session.together);
    let stored = session.history.as_ref();
    asked.extend(accuracy::quality_lints(base, history::qualities(stored, name), head, rules));
    asked.extend(disturbance::clocks(base, head));
    asked.extend(accuracy::changed_facts(base, stored.and_then(|it| it.newest(name)), head, rules));
    let disturbed =
        disturbance::of_row(base, head, Measured::new(session.together, session.history.is_some()));
    let untimed = untimed(pair, (base, head), session, rules);
    let is_untimed =
        |series: &MetricSeries| untimed.iter().any(|draft| draft.row.metric.as_ref() == Some(&series.metric));
    for series in head.metrics.iter().filter(|series| !is_untimed(series)) {
        let rule = rules.metric(name, &series.metric);
        // Its values were compared with base's above.
        if !rule.fatal && !accuracy::has_ratio(base, series) {
            continue;
        }
        let mut row = blank(name, pair, Verdict::Inconclusive, Reason::Open, false);
        row.lints.extend(unverified.clone());
        row.lints.extend(accuracy.iter().cloned());
        row.lints.extend(copied::lint_repeated(name, &session.repeated));
        // The compiler's output does not depend on the device that runs it.
        if !OF_MODULES.contains(&series.metric.name.as_ref()) {
            row.lints.extend(asked.iter().cloned());
        }
        if is_timed(series) {
            row.lints.extend(disturbed.iter().cloned());
        }
        row.metric = Some(series.metric.clone());
        row.fatal = rule.fatal;
        row.policy = Some(rule);
        drafts.push(match base.metric(&series.metric.name) {
            None => {
                let fatal = row.fatal;
                let is_lost = is_for_time(base) && TIMES.contains(&series.metric);
                (row.verdict, row.reason) =
                    if is_lost { not_timed() } else { only_on(SideName::Head, unusable) };
                // The metric is only required if base has a usable value for it, or if base has none that is judged.
                let has_judged = base.metrics.iter().any(|series| session.judges(&series.metric));
                row.fatal = fatal && (row.verdict == Verdict::Error || !has_judged);
                Draft::settled(row)
            }
            Some(partner) => metric_draft(row, partner, series, (identical, gpu, waiting), session, rules),
        });
    }
    let of_base = base.metrics.iter().filter(|series| !is_untimed(series));
    for series in of_base.filter(|series| head.metric(&series.metric.name).is_none()) {
        let rule = rules.metric(name, &series.metric);
        let (verdict, reason) = only_on(SideName::Base, unusable);
        // Compilers split, fuse and rename kernels, so the effect of removed kernels is judged by the totals.
        let fatal = rule.fatal && Metric::kernel_fact(&series.metric.name).is_none();
        let mut row = blank(name, pair, verdict, reason, fatal);
        row.metric = Some(series.metric.clone());
        row.policy = Some(rule);
        drafts.push(Draft::settled(row));
    }
    drafts.extend(untimed);
    drafts.extend(untimed_on_both(pair, (base, head), rules));
    drafts.retain(|draft| draft.row.metric.as_ref().is_none_or(|metric| session.judges(metric)));
    // If no gating row shows that the reader found unusable values, the benchmark would pass by its other rows.
    let shows = |draft: &Draft| draft.row.fatal && draft.row.verdict == Verdict::Error;
    if let Some(lint) = unusable.filter(|_| !drafts.iter().any(shows)) {
        drafts.push(Draft::settled(blank(name, pair, Verdict::Error, Reason::Unusable(lint.clone()), true)));
    }
    // Correct outputs and equal modules are not the whole benchmark: different work is inconclusive too.
    if let Some(lint) = asked.into_iter().next()
        && !drafts.iter().any(|draft| draft.row.fatal && draft.row.lints.contains(&lint))
    {
        let mut row = blank(name, pair, Verdict::Inconclusive, Reason::Unusable(lint.clone()), true);
        row.lints.push(lint);
        drafts.push(Draft::settled(row));
    }
    if drafts.is_empty() {
        // This also applies to identical sides, because nothing shows that either of them ran.
        let reason = Reason::too_little("nothing measured", "no metric was measured on either side");
        drafts.push(Draft::settled(blank(name, pair, Verdict::Error, reason, true)));
    }
    drafts
}

/// Returns whether only outputs are judged and nothing is timed.
fn judges_outputs(base: &Benchmark, head: &Benchmark) -> bool {
    is_judged_by_outputs(base) && is_judged_by_outputs(head)
}

fn is_judged_by_outputs(side: &Benchmark) -> bool {
    side.labels.get(JUDGED_BY).is_some_and(|by| by == JUDGED_BY_OUTPUTS) || !side.printed.is_empty()
}

/// Returns the row of a benchmark that is judged by its outputs, if they are right.
fn outputs_row(name: &BenchmarkName, pair: Matched<'_>, head: &Benchmark) -> Row {
    let is_compared = || head.verification.as_ref().is_some_and(|found| !found.against_base.is_empty());
    let is_printed = !head.printed.is_empty();
    let vacuous = head.lints.iter().find(|lint| is_printed && lint.code == LintCode::VacuousReference);
    if let Some(vacuous) = vacuous {
        let reason = Reason::too_little("vacuous reference", vacuous.detail.clone());
        return blank(name, pair, Verdict::Inconclusive, reason, true);
    }
    if status::agrees(head) && (!is_printed || is_compared()) {
        return blank(name, pair, Verdict::Pass, Reason::Verified, true);
    }
    if is_printed {
        let why = "the printed outputs can't be compared: base prints none, or they are truncated \
                   (`--output_max_element_count`)";
        let reason = Reason::too_little("not comparable", why);
        return blank(name, pair, Verdict::Inconclusive, reason, true);
    }
    let why = head
        .verification
        .as_ref()
        .map(|found| found.why.clone().unwrap_or_else(|| found.supported_code().as_str().to_owned()));
    let why = why.unwrap_or_else(|| "no reference outputs".to_owned());
    let reason = Reason::too_little(status::NOT_VERIFIED, format!("head's outputs were not verified: {why}"));
    blank(name, pair, Verdict::Inconclusive, reason, true)
}

/// Returns the finding of a side's reader that some of its values can't be used.
fn unusable(side: &Benchmark) -> Option<&Lint> {
    side.lints.iter().find(|lint| lint.code.consequence() == Consequence::Error)
}

/// Returns the verdict about a metric that one side lacks, due to the unusable values if the reader reported some.
fn only_on(side: SideName, unusable: Option<&Lint>) -> (Verdict, Reason) {
    match unusable {
        Some(lint) => (Verdict::Error, Reason::Unusable(lint.clone())),
        None => (Verdict::Missing, Reason::MetricOnlyOn(side)),
    }
}

/// Returns the rows that can be compared if a module was compiled on both sides but its device is missing on
/// at least one: size, dispatches, compile time. The module's own time is never compared.
fn compiled_only(pair: Matched<'_>, session: &ComparedSession<'_>, rules: &Rules<'_>) -> Vec<Draft> {
    let unsupported = |side: &Benchmark| matches!(side.outcome, Outcome::Unsupported { .. });
    let settled = |side: &Benchmark| unsupported(side) || side.outcome.is_ok();
    let (Some(base), Some(head)) = (pair.base, pair.head) else { return Vec::new() };
    if ![base, head].into_iter().all(|side| settled(side) && status::is_compiled(Some(side))) {
        return Vec::new();
    }
    let gpu = context::on_gpu(head) || context::on_gpu(base);
    let partners = head.metrics.iter().filter_map(|series| Some((base.metric(&series.metric.name)?, series)));
    let untimed = untimed(pair, (base, head), session, rules);
    partners
        .filter(|(_, series)| OF_MODULES.contains(&series.metric.name.as_ref()))
        .map(|(partner, series)| {
            let rule = rules.metric(&head.name, &series.metric);
            let mut row = blank(&head.name, pair, Verdict::Inconclusive, Reason::Open, rule.fatal);
            row.metric = Some(series.metric.clone());
            row.policy = Some(rule);
            metric_draft(row, partner, series, (status::identical(base, head), gpu, 0.0), session, rules)
        })
        .chain(untimed)
        .collect()
}

/// Returns rows for compile times and compilers' instructions that decide but that a side lacks, because its
/// module came from a cache or a bundle or because nothing was counted. Otherwise, a gate on such a metric
/// would pass whenever the metric is missing.
fn untimed(
    pair: Matched<'_>,
    (base, head): (&Benchmark, &Benchmark),
    session: &ComparedSession<'_>,
    rules: &Rules<'_>,
) -> Vec<Draft> {
    // A stored session may have been compiled from a cache, but later ones can still be compared with the
    // other sessions.
    if session.history.is_some() || base.artifact.is_none() || head.artifact.is_none() {
        return Vec::new();
    }
    let reasons = [
        (
            Metric::COMPILE_TIME,
            "not timed",
            "the compiler was not timed",
            "whose module came from a cache or a bundle; measure again with a policy that makes compile time gating",
        ),
        (
            Metric::COMPILE_INSTRUCTIONS,
            "not counted",
            "the compiler's instructions were not counted",
            "or the count failed; measure again with `compile-instructions = true` in [measure], and with \
            valgrind installed",
        ),
    ];
    let lacking = reasons.into_iter().filter_map(|(metric, short, what, why)| {
        let rule = rules.metric(&head.name, &metric);
        let sides = [(SideName::Base, base), (SideName::Head, head)];
        let (without, _) = sides.into_iter().find(|(_, side)| side.metric(&metric.name).is_none())?;
        let reason = Reason::too_little(short, format!("{what} for {without}, {why}"));
        let mut row = blank(&head.name, pair, Verdict::Inconclusive, reason, true);
        row.metric = Some(metric);
        row.policy = Some(rule.clone());
        rule.fatal.then(|| Draft::settled(row))
    });
    lacking.collect()
}

/// Times of a module that can decide.
const TIMES: [Metric; 2] = [Metric::LATENCY, Metric::CPU_TIME];

/// Returns whether a side ran a module to time it.
fn is_for_time(side: &Benchmark) -> bool {
    let by_code = || side.metrics.iter().any(|known| Metric::OF_CODE.contains(&known.metric));
    side.artifact.is_some() && !is_judged_by_outputs(side) && !by_code()
}

fn not_timed() -> (Verdict, Reason) {
    (Verdict::Error, Reason::too_little("not timed", "base was not timed"))
}

/// Returns rows for times that decide but that neither side has although their modules ran: sizes alone are
/// not the benchmark.
fn untimed_on_both(
    pair: Matched<'_>,
    (base, head): (&Benchmark, &Benchmark),
    rules: &Rules<'_>,
) -> Vec<Draft> {
    let lost = TIMES.into_iter().filter(|metric| {
        is_for_time(base) && [base, head].iter().all(|side| side.metric(&metric.name).is_none())
    });
    lost.filter_map(|metric| {
        let rule = rules.metric(&head.name, &metric);
        rule.fatal.then(|| {
            let (verdict, reason) = not_timed();
            let mut row = blank(&head.name, pair, verdict, reason, true);
            (row.metric, row.policy) = (Some(metric), Some(rule));
            Draft::settled(row)
        })
    })
    .collect()
}

/// Returns whether telemetry describes the processes that measured a series. Compile time is not measured by
/// these processes.
fn is_timed(series: &MetricSeries) -> bool {
    match &series.series {
        Series::Processes(processes) => processes.iter().any(|process| process.started.is_some()),
        Series::Summaries(_) | Series::Exact(_) => false,
    }
}

/// Ratio by which the processes of two identical programs may differ. States of one machine differ by less;
/// if the ratio is larger, the measured programs are not those that the hashes identify.
const IDENTICAL_RATIO: f64 = 1.5;

/// Returns why identical programs can't have these times, if every process of one side is far beyond every
/// process of the other.
fn contradiction(base: &Readings, head: &Readings) -> Option<String> {
    if !(base.has_ratio() && head.has_ratio()) {
        return None;
    }
    let extent = |side: &Readings| {
        let costs = side.clean.iter().copied();
        (costs.clone().fold(f64::INFINITY, f64::min), costs.fold(f64::NEG_INFINITY, f64::max))
    };
    let ((base_low, base_high), (head_low, head_high)) = (extent(base), extent(head));
    let apart = (head_low - base_high).max(base_low - head_high);
    (apart > IDENTICAL_RATIO.ln()).then(|| {
        format!("both sides ran identical programs, but their times are at least {:.2} × apart", apart.exp())
    })
}

/// Returns why programs that look identical were not shown to be equally fast although each side has more
/// than one block: the sides differ by more than a pass may hide. Their times then decide as in any other
/// row.
fn disagreement(base: &Readings, head: &Readings, together: bool, tolerance: f64) -> Option<String> {
    const OF_ONE_BLOCK: usize = 2;
    let checked = [base, head].iter().all(|side| side.has_ratio() && side.clean.len() > OF_ONE_BLOCK);
    if !checked {
        return None;
    }
    // On a busy host, the sides as a whole differ a lot by chance; processes that took turns agree much more
    // closely.
    let blocks = if together { evidence::blocks(base, head) } else { None };
    let paired = blocks.filter(|blocks| blocks.len() > 1).and_then(shift);
    let apart = paired.map_or((head.stats.location / base.stats.location).ln(), |shift| shift.center()).abs();
    (apart > tolerance.ln_1p()).then(|| {
        format!("both sides ran programs that look identical, but their times are {:.2} × apart", apart.exp())
    })
}

/// Returns the draft of one metric that both sides have. `identical`: everything executed is the same; `gpu`:
/// the benchmark ran on a GPU; `waiting`: how much the wall-clock time suggests interference from other
/// programs.
fn metric_draft(
    mut row: Row,
    newest: &MetricSeries,
    head_series: &MetricSeries,
    (identical, gpu, waiting): (bool, bool, f64),
    session: &ComparedSession<'_>,
    rules: &Rules<'_>,
) -> Draft {
    let metric = &head_series.metric;
    let best = session.history.as_ref().and_then(|sessions| sessions.best(&row.benchmark, metric));
    let is_exact = matches!(newest.series, Series::Exact(_)) && newest.metric == *metric;
    let base_series = best.filter(|_| is_exact).unwrap_or(newest);
    let readings = (series::read(base_series), series::read(head_series));
    row.base = readings.0.as_ref().ok().map(|r| r.stats.clone());
    row.head = readings.1.as_ref().ok().map(|r| r.stats.clone());
    if base_series.metric.better == Better::Unknown {
        // A direction that only head states is not trusted.
        row.metric = Some(Metric { better: Better::Unknown, ..metric.clone() });
    }
    if !base_series.metric.is_like(metric) {
        let (base, head) = (base_series.metric.unit.to_string(), metric.unit.to_string());
        row.lints.push(Lint::new(LintCode::UnitMismatch, format!("{base} / {head}")));
        row.verdict = Verdict::Error;
        row.reason = Reason::UnitMismatch { base, head };
        return Draft::settled(row);
    }
    if !session.resampled {
        row.lints.extend(copied::lint(base_series, head_series, session.one_file()));
    }
    let (base_readings, head_readings) = match readings {
        (Ok(base), Ok(head)) => (base, head),
        (Err(lint), _) | (_, Err(lint)) => {
            row.lints.push(lint.clone());
            row.verdict = Verdict::Error;
            row.reason = Reason::Unusable(lint);
            return Draft::settled(row);
        }
    };
    let worse = metric.better.worse();
    if !session.together && base_readings.exact.is_none() {
        // Separate sessions have only these medians in common, in the form in which the tools print them.
        for (stats, readings) in [(&mut row.base, &base_readings), (&mut row.head, &head_readings)] {
            if let Some((stats, location)) = stats.as_mut().zip(evidence::location(readings, worse)) {
                stats.location = location;
            }
        }
    }
    let ratio = head_readings.stats.location / base_readings.stats.location;
    row.lints.extend(rounding::lint(base_series, head_series));
    let other_work = row.lints.iter().find(|lint| lint.code == LintCode::WorkloadChanged).cloned();
    if let (Some(base), Some(head)) = (base_readings.exact, head_readings.exact) {
        let rule = rules.metric(&row.benchmark, metric);
        (row.verdict, row.reason) = decide_exact(base, head, worse, &rule);
        row.estimate = Some(Estimate::unjudged(Method::Exact, if base == head { 1.0 } else { head / base }));
        if row.verdict == Verdict::Regressed
            && let Series::Exact(newest) = newest.series
            && newest != base
        {
            let detail = format!("{newest} in the newest stored session, {base} in the best one");
            row.lints.push(Lint::new(LintCode::Gradual, detail));
        }
        if let Some(lint) = other_work {
            (row.verdict, row.reason) = (Verdict::Inconclusive, Reason::Unusable(lint));
        }
        return Draft::settled(row);
    }
    let calibrated = [session.head, session.base].into_iter().find_map(|run| {
        let spreads = &run.calibration.as_ref()?.spreads;
        spreads.get(&(row.benchmark.clone(), metric.name.to_string()))
    });
    let declared = rules.between_cv(&row.benchmark, metric);
    // Equal modules can have different compile times.
    let identical = identical && !metric.is_compile_time();
    let copied =
        row.lints.iter().any(|lint| matches!(lint.code, LintCode::RepeatedSamples | LintCode::SameFile));
    if identical && other_work.is_none() && !copied {
        let tolerance = row.policy.as_ref().map_or(0.0, |rule| rule.tolerance);
        let contradiction = contradiction(&base_readings, &head_readings);
        if let Some(detail) = &contradiction
            && !session.measured_here
            && session.history.is_none()
        {
            let lint = Lint::new(LintCode::Contradictory, detail.clone());
            row.lints.push(lint.clone());
            row.estimate = Some(Estimate::unjudged(Method::Unpaired, ratio));
            (row.verdict, row.reason) = (Verdict::Error, Reason::Unusable(lint));
            return Draft::settled(row);
        }
        let question = contradiction.or_else(|| {
            let disagreement = || disagreement(&base_readings, &head_readings, session.together, tolerance);
            // Files from different days may differ because the machine did.
            (session.together || session.history.is_some()).then(disagreement).flatten()
        });
        // The newest session alone does not show a slowdown that began before it.
        let was_slowed = || {
            let Some((sessions, rule)) = session.history.as_ref().zip(row.policy.as_ref()) else {
                return false;
            };
            let floor = log_floor(rule, &base_readings.stats, &head_readings.stats);
            let (tolerance, storing) = (log_tolerance(rule, floor), true);
            let (assumed_sd, _) = history::prior(calibrated, declared, gpu);
            let question = GradualQuestion { floor, tolerance, storing, assumed_sd };
            sessions.is_slowed(&row.benchmark, metric, &question)
        };
        match question {
            None if was_slowed() => {}
            None => {
                // A difference between two runs of one program is noise, not an effect.
                row.estimate = Some(Estimate::unjudged(Method::Identical, 1.0));
                (row.verdict, row.reason) = (Verdict::Pass, Reason::Identical);
                return Draft::settled(row);
            }
            // A few processes on a busy host can differ by this much. With more blocks, identical sides
            // should agree; otherwise a different program ran, and the times are judged as in any other row.
            // The times of sessions that were measured separately are judged too, because a machine that
            // became slower is not a baseline either.
            Some(detail) => row.lints.push(Lint::new(LintCode::Disturbed, detail)),
        }
    }
    if let Some(lint) = context::forbidding(&row.lints).cloned()
        && lint.code.consequence() == Consequence::Error
    {
        row.verdict = Verdict::Error;
        row.reason = Reason::Unusable(lint);
        return Draft::settled(row);
    }
    if !base_readings.has_ratio() || !head_readings.has_ratio() {
        row.reason = Reason::too_little("a value is zero", "a value is zero, so there is no ratio to judge");
        return Draft::settled(row);
    }
    let evidence = match &session.history {
        Some(sessions) => history::gather(sessions, &row.benchmark, metric, calibrated, declared, gpu),
        None => {
            let prior = prior_spread(calibrated, declared);
            let rule = rules.metric(&row.benchmark, metric);
            let tolerance =
                log_tolerance(&rule, log_floor(&rule, &base_readings.stats, &head_readings.stats));
            gather(&base_readings, &head_readings, session.together, prior, waiting, (worse, tolerance))
        }
    };
    let other_anchor = session.history.as_ref().and_then(|it| it.other_anchor(&row.benchmark, metric));
    row.lints.extend(other_anchor.clone());
    if session.together {
        row.lints.extend(disturbance::lint_incomplete(&base_readings, &head_readings));
    }
    let found = diagnosis::of_row(&row.lints, &base_readings, &head_readings, evidence.as_ref().ok());
    row.lints.extend(found);
    if disturbance::is_beyond_other_programs(&base_readings, &head_readings, 1.0) {
        disturbance::only_note_other_programs(&mut row.lints);
    }
    let load = context::load_factor(&session.head.context);
    let is_beyond_load = disturbance::is_beyond_other_programs(&base_readings, &head_readings, load);
    match evidence {
        Err(why) => {
            row.verdict = Verdict::Inconclusive;
            row.reason = other_anchor.map_or(Reason::TooLittle(why), Reason::Unusable);
            row.estimate = Some(Estimate::unjudged(Method::Unpaired, ratio));
            Draft::settled(row)
        }
        Ok(mut evidence) => {
            row.lints.extend(evidence.take_lints());
            row.lints = context::deduplicate(row.lints);
            row.estimate = Some(Estimate::unjudged(Method::Paired, ratio));
            let rule = rules.metric(&row.benchmark, metric);
            let forbidding = context::forbidding_with(&row.lints, &evidence).cloned();
            if !rule.fatal {
                // Compile time is measured once by design. Too little data is only reported if a verdict
                // depends on it.
                row.lints.retain(|lint| !context::ABOUT_LITTLE_DATA.contains(&lint.code));
            }
            let floor = log_floor(&rule, &base_readings.stats, &head_readings.stats);
            // A single repetition shows as little about the processor time as about the latency.
            let plain = matches!(evidence, Evidence::Unpaired { .. }) && !metric.is_compile_time();
            let forbidden = if plain { forbidding } else { context::forbidding(&row.lints).cloned() };
            let of_session = if is_beyond_load { &session.forbidden_at_any_load } else { &session.forbidden };
            let forbidden = forbidden.or_else(|| of_session.clone());
            let read_again = rules.is_classical() || matches!(evidence, Evidence::Paired(_));
            let readings = read_again.then_some([base_readings, head_readings]);
            Draft { row, open: Some(Box::new(Open { evidence, forbidden, worse, rule, floor, readings })) }
        }
    }
}
