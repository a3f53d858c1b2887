//! Turns two runs and a policy into a comparison.

use std::collections::BTreeMap;

use benchgate_core::model::{
    Anchor, Benchmark, BenchmarkName, Calibration, Consequence, Lint, LintCode, Metric, MetricSeries, Run,
    Series, Summary, Verdict,
};
use benchgate_stats::multiplicity::Looks;
use benchgate_stats::{Effect, Inference};

use super::common::ALL_BENCHMARKS;
use super::decide::{Question, decide, log_tolerance};
use super::draft::{ComparedSession, Draft, Open, blank, drafts};
use super::estimate::{HistoryRow, PairedRow, histories, paired};
use super::evidence::Evidence;
use super::gradual::StoredSessions;
use super::rules::Rules;
use super::status::{Matched, matched};
use super::{
    Alignment, Comparison, Estimate, Method, Policy, Reason, Row, RunSummary, ShownSides, TestKind, accuracy,
    classical, code, comparison, context, copied, diagnosis, disturbance, explain, history, limits, looks,
    rules, separate, series, status, threads,
};

/// Settings of a comparison besides the runs and the policy.
#[derive(Debug, Clone, Default)]
pub struct CompareOptions {
    /// Seed of every resampling; equal files, policy and seed give equal bytes.
    pub seed: u64,
    /// Today's date, `YYYY-MM-DD`, for the expiry of waivers.
    pub today: String,
    /// The metrics that are judged; empty for all. The others only show whether both sides did the same work, and did it
    /// equally well.
    pub metrics: Vec<String>,
    /// Number of fatal rows that share the error budget, if these runs are only a part of a suite; 0 to count
    /// the rows of these runs.
    pub suite_rows: u32,
    /// True if the runs have all benchmarks of the suite, so that a limit or waiver of another name is a mistake.
    pub whole_suite: bool,
    /// True if this program measured both runs just now, so that impossible times come from a disturbed host
    /// and not from a forged file.
    pub measured_here: bool,
    /// True if the blocks were drawn with replacement from the measured ones, so that equal blocks don't
    /// count as copies.
    pub resampled: bool,
    /// True if this is an interim look, which only needs the gating rows: metrics without such a row stay
    /// undecided, and no row states which change it could have detected.
    pub looking: bool,
}

impl CompareOptions {
    /// Returns the options for an interim look at what this program has measured so far.
    pub fn at_look() -> Self {
        Self { measured_here: true, looking: true, ..Self::default() }
    }
}

/// Compares head with base. Every benchmark of either side gets at least one row.
pub fn compare(base: &Run, head: &Run, policy: &Policy, options: &CompareOptions) -> Comparison {
    let stated = [base, head].map(|run| rules::stated(run, policy));
    let [base, head] =
        [(base, &stated[0]), (head, &stated[1])].map(|(run, stated)| stated.as_ref().unwrap_or(run));
    compared(base, head, None, policy, options)
}

/// Compares one session with the stored sessions of a baseline, oldest first. Outcomes, verification and
/// exact metrics are compared with the newest session of head's testbed; times are compared with all of its
/// sessions, which show how much sessions differ. Without a session of that testbed, every row is missing.
pub fn compare_with_history<'a>(
    head: &Run,
    stored: impl Into<StoredSessions<'a>>,
    policy: &Policy,
    options: &CompareOptions,
) -> Comparison {
    let stored = stored.into();
    let stated = rules::StatedSessions::new(stored, policy);
    let stored = stated.as_ref().map_or(stored, rules::StatedSessions::sessions);
    let stated = rules::stated(head, policy);
    let head = stated.as_ref().unwrap_or(head);
    let sessions = stored.good;
    let usable = history::same_testbed(head, sessions);
    let nothing = Run { suite: head.suite.clone(), ..Run::default() };
    let newest = history::newest_measured(&usable).unwrap_or(nothing);
    let history = history::Sessions::new(&stored, head);
    let is_shifted = history.common(&Metric::LATENCY.name).is_some();
    let notes = history::notes(sessions.len(), usable.len(), is_shifted);
    let method = history::method(history.is_anchored());
    let mut comparison = compared(&newest, head, Some((history, stored.storing)), policy, options);
    comparison.notes.extend(notes);
    comparison.method.extend(method);
    comparison
}

/// Returns `head` with its ratios to `anchor`, block by block as a paired gate estimates them.
pub fn anchored(anchor: &Run, head: Run, policy: &Policy) -> Run {
    let mut measured = anchor.clone();
    let mut artifacts = BTreeMap::new();
    for benchmark in &mut measured.benchmarks {
        if let Some(artifact) = &mut benchmark.artifact {
            artifacts.insert(benchmark.name.clone(), history::executed(artifact));
            // Even if head is still the same as the anchor, its ratio is measured like any other and is not
            // exactly one.
            artifact.execution_sha256.clear();
        }
    }
    let comparison = compare(&measured, &head, policy, &CompareOptions::default());
    let ratios = comparison.rows.into_iter().filter_map(|row| {
        let estimate = row.estimate.filter(|estimate| estimate.method == Method::Paired)?;
        Some(((row.benchmark, row.metric?.name.into_owned()), estimate.ratio))
    });
    let ratios = ratios.filter(|(_, ratio)| ratio.is_finite() && *ratio > 0.0).collect();
    let anchor = Anchor { toolchain: anchor.toolchain.clone().unwrap_or_default(), artifacts, ratios };
    Run { anchor: Some(anchor), ..head }
}

fn compared(
    base: &Run,
    head: &Run,
    history: Option<(history::Sessions<'_>, bool)>,
    policy: &Policy,
    options: &CompareOptions,
) -> Comparison {
    let (history, storing) = history.unzip();
    let compared = accuracy::with_outputs(base, head);
    let head = compared.as_ref().unwrap_or(head);
    let rules = Rules::new(policy, &options.today).of_runs(base, head);
    let mut lints = context::deduplicate(context::of_runs(base, head));
    // Stored sessions hold summaries of processes, which never equal samples.
    if history.is_none() && !options.resampled {
        lints.extend(copied::copied_sessions(&[base, head]).or_else(|| copied::rounded_copies(base, head)));
    }
    let together = base.session.is_some() && base.session == head.session;
    if together && lints.iter().all(|lint| lint.code != LintCode::HostBusy) {
        lints.extend(disturbance::busy(base, head));
    }
    let session = ComparedSession {
        together,
        measured_here: options.measured_here,
        metrics: &options.metrics,
        base,
        head,
        history,
        resampled: options.resampled,
        forbidden: context::forbidding(&lints).cloned(),
        forbidden_at_any_load: context::forbidding_at_any_load(&lints).cloned(),
        repeated: [base, head].into_iter().flat_map(copied::repeated).collect(),
    };
    let pairs = matched(base, head);
    let of_pairs = threads::each(&pairs, WORTH_SHARING, |pair| drafts(*pair, &session, &rules));
    let mut drafts: Vec<Draft> = of_pairs.into_iter().flatten().collect();
    drafts.extend(common_draft(&session, &rules));
    let sessions =
        ComparedSessions { storing: storing.unwrap_or(false), in_shards: base.in_shards && head.in_shards };
    let effects = judge(&mut drafts, policy, options, sessions);
    let open = drafts.iter().filter_map(|draft| draft.open.as_ref());
    lints.extend(diagnosis::of_session(open.map(|open| &open.evidence)));
    let mut rows: Vec<Row> = drafts
        .into_iter()
        .map(|Draft { mut row, open }| {
            row.alignment = open.and_then(|open| alignment(&row, &open));
            row
        })
        .collect();
    // Limits are only checked against complete measurements: a limit that is checked at every look would be
    // met by chance.
    if !options.looking {
        limits::judge(&mut rows, &pairs, head, &rules, policy.alpha);
    }
    if options.whole_suite {
        let limits = rules::unmatched_limits(policy, [base, head]);
        lints.extend(limits.into_iter().map(|why| Lint::new(LintCode::UnmatchedLimit, why)));
        let waivers = rules::unmatched_waivers(policy, [base, head]);
        lints.extend(waivers.into_iter().map(|why| Lint::new(LintCode::UnmatchedWaiver, why)));
    }
    let withholding = lints.iter().find(|lint| withholds_green(lint));
    // Rows with numbers have no verdict then, and those that only have outputs need none.
    let reported = lints.iter().find(|lint| lint.code == LintCode::ReportedProblem);
    let unwaivable = withholding.or_else(|| lints.iter().find(|lint| is_beyond_metrics(lint)));
    for row in &mut rows {
        rules::withhold(row);
        withhold_green(row, withholding.or(reported.filter(|_| row.metric.is_none())));
        waive(row, &rules, unwaivable);
        row.typical = row.values_to_show(ShownSides::of_row(row, &session));
    }
    name_kernels(&mut rows, &pairs, &rules);
    status::point_out(&mut rows, &pairs);
    let compiled = pairs.iter().filter_map(Matched::any).filter(|benchmark| benchmark.artifact.is_some());
    let own_processes = compiled.map(|benchmark| &benchmark.name).collect();
    let geomeans = comparison::geomeans(&rows, &effects, &own_processes, policy.alpha);
    let (verdict, exit_code) = comparison::overall(&rows, &policy.fail_on);
    let mut notes = notes(&rows);
    notes.extend(status::notes(base));
    notes.extend(kernels(&pairs));
    let mut method = method(&rows, policy);
    method.extend(calibrated(session.head.calibration.as_ref().or(session.base.calibration.as_ref())));
    Comparison {
        suite: head.suite.clone().or_else(|| base.suite.clone()),
        verdict,
        exit_code,
        base: summary(base),
        head: summary(head),
        rows,
        geomeans,
        policy: policy.clone(),
        lints,
        notes,
        method,
    }
}

/// Names, for each latency, the kernels whose code changed. For a latency that changed, also names the kernel
/// that changed most, if both sides were profiled.
fn name_kernels(rows: &mut [Row], pairs: &[Matched<'_>], rules: &Rules<'_>) {
    let both = pairs.iter().filter_map(|pair| pair.base.zip(pair.head));
    let known = both.filter(|(base, head)| {
        base.profile.is_some() && head.profile.is_some()
            || base.code.is_some() && head.code.is_some()
            || status::same_module(base, head)
    });
    let known: BTreeMap<&BenchmarkName, _> = known.map(|pair| (&pair.1.name, pair)).collect();
    let is_latency =
        |row: &&mut Row| row.metric.as_ref().is_some_and(|metric| metric.name == Metric::LATENCY.name);
    for row in rows.iter_mut().filter(is_latency) {
        let Some((base, head)) = known.get(&row.benchmark) else { continue };
        if matches!(row.verdict, Verdict::Regressed | Verdict::Improved) {
            row.lints.extend(explain::kernel_lint(base, head));
        }
        code::add_lints(row, base, head, rules);
    }
    // Facts of a kernel that only one side has are in rows that decide nothing, so one row of the benchmark names it.
    let both = pairs.iter().filter_map(|pair| pair.base.zip(pair.head));
    let mut others: BTreeMap<&BenchmarkName, Lint> =
        both.filter_map(|(base, head)| Some((&head.name, code::other_kernels(base, head)?))).collect();
    for row in rows {
        row.lints.extend(others.remove(&row.benchmark));
    }
}

/// Returns the draft of the common row, if a common shift was removed from the others. The row is judged like
/// latency: a change that slows down everything is visible only here.
fn common_draft(session: &ComparedSession<'_>, rules: &Rules<'_>) -> Option<Draft> {
    let metric = Metric::LATENCY;
    let sessions = session.history.as_ref()?;
    let gpu = session.head.benchmarks.iter().any(context::on_gpu);
    let evidence = history::gather_common(sessions, &metric.name, gpu)?;
    let Evidence::History { stored, now, .. } = &evidence else { return None };
    let readings = |shifts: &[f64]| {
        let one = |shift: &f64| Summary { n: Some(1), median: Some(shift.exp()), ..Summary::default() };
        let series = Series::Summaries(shifts.iter().map(one).collect());
        series::read(&MetricSeries { metric: Metric::LATENCY, series }).ok()
    };
    let (base, head) = (readings(stored)?, readings(&[*now])?);
    let name = BenchmarkName::new(ALL_BENCHMARKS);
    let rule = rules.metric(&name, &metric);
    let nothing = Matched { base: None, head: None };
    let mut row = blank(&name, nothing, Verdict::Inconclusive, Reason::Open, rule.fatal);
    // The metric has a separate name, because its spread comes from days and chips and says nothing about the
    // spread of a row.
    row.metric = Some(Metric { name: "common-latency".into(), ..metric });
    row.policy = Some(rule.clone());
    row.estimate = Some(Estimate::unjudged(Method::History, head.stats.location / base.stats.location));
    let open = Open {
        evidence,
        forbidden: session.forbidden.clone(),
        worse: 1.0,
        floor: rule.floor.relative.max(0.0).ln_1p(),
        rule,
        readings: Some([base, head]),
    };
    Some(Draft { row, open: Some(Box::new(open)) })
}

/// Number of benchmarks from which threads save more time than starting them takes: a draft takes ten
/// microseconds.
const WORTH_SHARING: usize = 500;

fn summary(run: &Run) -> RunSummary {
    RunSummary {
        label: run.origin.label.clone(),
        format: run.origin.format.clone(),
        commit: run.commit.clone(),
        toolchain: run.toolchain.clone(),
        testbed: run.testbed.clone(),
        context: run.context.clone(),
        benchmarks: run.benchmarks.len() as u32,
    }
}

/// Returns the alignment of a gating row that moved or is undecided. Only rows that were measured in blocks
/// keep their repetitions for this.
fn alignment(row: &Row, open: &Open) -> Option<Alignment> {
    let worth_a_look = matches!(row.verdict, Verdict::Regressed | Verdict::Improved | Verdict::Inconclusive);
    let ratio = row.estimate.as_ref()?.ratio;
    if !(row.fatal && worth_a_look && ratio.is_finite() && ratio > 0.0) {
        return None;
    }
    let values = |costs: &[Vec<f64>]| -> Vec<Vec<f64>> {
        costs.iter().map(|process| process.iter().map(|cost| cost * open.worse).collect()).collect()
    };
    let [base, head] = open.readings.as_ref()?;
    Alignment::of_processes(&values(&base.costs), &values(&head.costs), ratio)
}

/// The way in which the compared sessions were measured, and whether head's is stored.
#[derive(Debug, Clone, Copy)]
struct ComparedSessions {
    /// True if head's session joins the baseline if it is good.
    storing: bool,
    /// True if each row was judged alone while it was measured.
    in_shards: bool,
}

/// Decides the verdicts of all open drafts at once, because neighbors stabilize the estimates and the error
/// budget is shared. Returns the effects as head/base, by row.
fn judge(
    drafts: &mut [Draft],
    policy: &Policy,
    options: &CompareOptions,
    sessions: ComparedSessions,
) -> Vec<Option<Effect>> {
    let mut questions: Vec<Option<Question>> = drafts.iter().map(|_| None).collect();
    let mut by_metric: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, draft) in drafts.iter_mut().enumerate() {
        let Draft { row, open: Some(_) } = draft else { continue };
        let name = row.metric.as_ref().map_or_else(String::new, |metric| metric.name.to_string());
        by_metric.entry(name).or_default().push(index);
    }
    // Rows of one metric stabilize each other, whether they are gating or not.
    let gates = |at: &usize| drafts[*at].open.as_ref().is_some_and(|open| open.rule.fatal);
    by_metric.retain(|_, indices| !options.looking || indices.iter().any(gates));
    for indices in by_metric.values() {
        ask_paired(drafts, indices, &mut questions, policy, (sessions.in_shards, options.looking));
        separate::ask(drafts, indices, &mut questions);
        ask_history(drafts, indices, &mut questions, sessions.storing);
    }
    if policy.test != TestKind::Auto {
        for (draft, question) in drafts.iter_mut().zip(&mut questions) {
            let Draft { row, open: Some(open) } = draft else { continue };
            *question = classical::question(row, open, policy, question.take());
        }
    }
    decide_all(drafts, &questions, policy, options)
}

/// Returns the indices of rows whose evidence `of` selects, with the selected evidence.
fn picked<'a, T>(
    drafts: &'a [Draft],
    indices: &[usize],
    of: impl Fn(&'a Open) -> Option<T>,
) -> (Vec<usize>, Vec<T>) {
    indices.iter().filter_map(|&i| Some((i, of(drafts[i].open.as_deref()?)?))).unzip()
}

/// Creates the questions for the rows of one metric that have stored sessions.
fn ask_history(drafts: &mut [Draft], indices: &[usize], questions: &mut [Option<Question>], storing: bool) {
    let (rows, histories_of) = picked(drafts, indices, |open| match &open.evidence {
        Evidence::History { stored, slow, earlier, now, assumed_sd, .. } => Some(HistoryRow {
            stored,
            slow,
            earlier,
            now: *now,
            assumed_sd: *assumed_sd,
            floor: open.floor,
            tolerance: log_tolerance(&open.rule, open.floor),
        }),
        _ => None,
    });
    let found = histories(&histories_of, storing);
    for (index, found) in rows.into_iter().zip(found) {
        let (Draft { row, open: Some(open) }, Some(found)) = (&mut drafts[index], found) else { continue };
        if let Some(estimate) = &mut row.estimate {
            estimate.method = Method::History;
        }
        // The row gets the effect with the stronger evidence: relative to the newest sessions, or to an
        // earlier level.
        let p_newest = found.effect.p_above(open.floor);
        let gradual = found.gradual.as_ref();
        let certain =
            gradual.filter(|gradual| gradual.is_certain && gradual.effect.p_above(open.floor) < p_newest);
        row.lints.extend(certain.map(|gradual| Lint::new(LintCode::Gradual, gradual.text())));
        let effect = certain.map_or(found.effect, |gradual| gradual.effect);
        questions[index] = Some(
            Question::unpaired(Inference::Modelled(effect), &open.rule, open.floor)
                .after_slow_sessions(found.unsettled)
                .since_earlier(gradual),
        );
    }
}

/// Creates the questions for all paired rows of one metric.
fn ask_paired(
    drafts: &mut [Draft],
    indices: &[usize],
    questions: &mut [Option<Question>],
    policy: &Policy,
    (alone, looking): (bool, bool),
) {
    let (rows, blocks_of) = picked(drafts, indices, |open| match &open.evidence {
        Evidence::Paired(blocks) => {
            let tolerance = log_tolerance(&open.rule, open.floor);
            Some(PairedRow { blocks, floor: open.floor, tolerance })
        }
        _ => None,
    });
    let estimates = paired(&blocks_of, alone);
    for (index, estimate) in rows.into_iter().zip(estimates) {
        let (Draft { row, open: Some(open) }, Some(found)) = (&mut drafts[index], estimate) else { continue };
        if let Some(estimate) = &mut row.estimate {
            estimate.blocks = found.counts.blocks;
            estimate.p_stability = Some(found.p_stability);
            estimate.p_tail = Some(found.tail.p);
        }
        row.lints.extend(diagnosis::of_stability(
            &found.counts,
            found.p_stability,
            open.readings.as_ref().map_or((0, 0), |[base, head]| (base.clean.len(), head.clean.len())),
        ));
        let Some(metric) = row.metric.as_ref() else { continue };
        // A classical test is run once, however many blocks there are.
        let is_only = policy.test != TestKind::Auto && !looking;
        let looks = if is_only { Looks::new(1, 1) } else { looks(policy, metric) };
        let question = Question::paired(&found, &open.rule, open.floor, &looks);
        questions[index] = Some(if metric.is_compile_time() { question.of_compiler() } else { question });
    }
}

fn decide_all(
    drafts: &mut [Draft],
    questions: &[Option<Question>],
    policy: &Policy,
    options: &CompareOptions,
) -> Vec<Option<Effect>> {
    let asked: Vec<usize> = (0..drafts.len()).filter(|&i| questions[i].is_some()).collect();
    let worse: Vec<f64> =
        asked.iter().map(|&i| drafts[i].open.as_ref().map_or(1.0, |open| open.worse)).collect();
    let open: Vec<Question> = asked.iter().filter_map(|&i| questions[i].clone()).collect();
    let mut effects: Vec<Option<Effect>> = vec![None; drafts.len()];
    for ((decision, question), &index) in
        decide(&open, &worse, policy, options).into_iter().zip(&open).zip(&asked)
    {
        let Draft { row, open: Some(open) } = &mut drafts[index] else { continue };
        // Effects are costs, but a row states the ratio head/base.
        let effect = question.effect.effect();
        let effect = if open.worse < 0.0 { effect.swapped() } else { effect };
        effects[index] = Some(effect);
        if let Some(estimate) = &mut row.estimate {
            estimate.ratio = effect.center.exp();
            estimate.interval = match estimate.method {
                Method::MannWhitney => classical::rank_interval(open, decision.interval.level),
                _ => Some(decision.interval),
            };
            estimate.p_worse = Some(decision.p_worse);
            estimate.p_adjusted = Some(decision.p_adjusted);
            estimate.q_value = Some(decision.q_value);
            estimate.minimum_detectable = decision.minimum_detectable;
        }
        (row.verdict, row.reason) = match &open.forbidden {
            Some(lint) if lint.code.consequence() == Consequence::Error => {
                (Verdict::Error, Reason::Unusable(lint.clone()))
            }
            Some(lint) => (Verdict::Inconclusive, Reason::Unusable(lint.clone())),
            None => (decision.verdict, decision.reason),
        };
        separate::withhold(row);
    }
    effects
}

fn withholds_green(lint: &Lint) -> bool {
    let is_of_all = matches!(lint.code, LintCode::TruncatedInput | LintCode::UnmatchedLimit);
    is_of_all || lint.code.consequence() == Consequence::NotGreen
}

/// Returns whether no waiver of a single metric covers a finding.
fn is_beyond_metrics(lint: &Lint) -> bool {
    withholds_green(lint) || context::is_about_benchmark(lint.code)
}

/// Turns passes into inconclusive rows: a truncated result may have lost a regression, and a limit of an unknown
/// name judged nothing, so no row may pass, not even those that need no statistics.
fn withhold_green(row: &mut Row, of_session: Option<&Lint>) {
    let withholding = row.lints.iter().find(|lint| withholds_green(lint)).or(of_session);
    if let Some(lint) = withholding
        && matches!(row.verdict, Verdict::Pass | Verdict::Improved)
    {
        row.reason = Reason::Unusable(lint.clone());
        row.verdict = Verdict::Inconclusive;
    }
}

/// Applies a waiver that has not expired: the row no longer counts for the overall verdict, but its own
/// verdict stays visible. A finding about the whole benchmark or session is not the slowdown that was reviewed, so
/// only a waiver of all metrics covers it.
pub(super) fn waive(row: &mut Row, rules: &Rules<'_>, of_session: Option<&Lint>) {
    if matches!(row.verdict, Verdict::Pass | Verdict::Improved) || !row.fatal {
        return;
    }
    let covers = |waiver: &Option<super::WaiverUse>| waiver.as_ref().is_some_and(|waiver| !waiver.expired);
    let is_withheld = matches!(&row.reason, Reason::Unusable(lint) if is_beyond_metrics(lint));
    let is_whole = is_withheld || row.lints.iter().any(|lint| context::is_about_benchmark(lint.code));
    row.waiver = rules.waiver(&row.benchmark, row.metric.as_ref().filter(|_| !is_whole));
    if !covers(&row.waiver) {
        return;
    }
    match of_session {
        Some(lint) if !covers(&rules.waiver(&row.benchmark, None)) => {
            (row.verdict, row.reason) = (Verdict::Inconclusive, Reason::Unusable(lint.clone()));
        }
        _ => row.fatal = false,
    }
}

/// Returns the number of kernels that changed, if generated code is compared.
fn kernels(pairs: &[Matched<'_>]) -> Option<String> {
    fn digest(side: Option<&Benchmark>) -> Option<&str> {
        side.and_then(|kernel| kernel.code_sha256.as_deref())
    }
    let states = pairs.iter().filter_map(|pair| code::KernelState::of(digest(pair.base), digest(pair.head)));
    code::kernel_counts(states)
}

/// Returns the source of the spread between this machine's processes, if the spread was measured.
fn calibrated(calibration: Option<&Calibration>) -> Option<String> {
    calibration.map(|calibration| {
        format!("the spread between processes comes from a calibration: {}", calibration.source)
    })
}

fn notes(rows: &[Row]) -> Vec<String> {
    let mut notes = Vec::new();
    if rows.iter().any(|row| row.metric.is_some())
        && !rows.iter().any(|row| row.fatal || row.waiver.is_some())
    {
        notes.push(
            "no metric of these results is gating under this policy, so nothing was judged: choose metrics with \
            `compare --metric NAME`, or set `fatal = true` in `[gate.metric.NAME]`"
                .to_owned(),
        );
    }
    notes
}

/// Describes how rows were judged.
fn method(rows: &[Row], policy: &Policy) -> Vec<String> {
    let mut notes = Vec::new();
    let of = |method| rows.iter().filter_map(|row| row.estimate.as_ref()).any(|e| e.method == method);
    if of(Method::Paired) && policy.test == TestKind::Auto {
        notes.push(format!(
            "base and head are paired by block: at most one unchanged suite in {:.0} is red, over all looks \
            and gating rows (Holm), if blocks are independent and equally likely to favor either side",
            1.0 / policy.alpha
        ));
    }
    if rows.iter().any(|row| row.reason == Reason::Stability) {
        notes.push(
            "stability compares how often each side was slow; the usual rate comes from base and the other \
        benchmarks"
                .to_owned(),
        );
    }
    if rows.iter().any(|row| row.reason == Reason::Tail) {
        notes.push(
            "stalls are judged by how far the mean of a process's repetitions lies above their median"
                .to_owned(),
        );
    }
    notes
}
