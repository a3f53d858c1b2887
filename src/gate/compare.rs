//! Two runs and a policy in, a comparison out.

use crate::model::{Benchmark, BenchmarkName, Lint, LintCode, MetricSeries, Run, SideName, Verdict};
use crate::stats::Effect;

use super::decide::{Question, decide, decide_exact};
use super::matching::{Matched, matched};
use super::question::{answer, direction, prior_spread};
use super::rules::Rules;
use super::series::{self, Readings};
use super::{Comparison, Estimate, Interval, Method, Policy, Reason, Row, RunSummary};
use super::{context, overall, status};

/// What a comparison takes beside the runs and the policy.
#[derive(Debug, Clone, Default)]
pub struct CompareOptions {
    /// Seed of every resampling; the same files, policy and seed give the same bytes.
    pub seed: u64,
    /// Today, `YYYY-MM-DD`, for waivers' expiry.
    pub today: String,
}

/// A row before the error budget is shared out among all rows.
struct Draft {
    row: Row,
    question: Option<Question>,
    /// +1 where a larger value is worse.
    worse: f64,
    effect: Option<Effect>,
    forbidden: Option<Lint>,
}

impl Draft {
    fn settled(row: Row) -> Self {
        Self { row, question: None, worse: 1.0, effect: None, forbidden: None }
    }
}

/// Compares head with base. Total: every benchmark of either side gets at least one row.
pub fn compare(base: &Run, head: &Run, policy: &Policy, options: &CompareOptions) -> Comparison {
    let rules = Rules::new(policy, &options.today);
    let lints = context::deduplicate(context::of_runs(base, head));
    let session = Session {
        together: base.session.is_some() && base.session == head.session,
        base,
        head,
        forbidden: context::forbidding(&lints).cloned(),
    };
    let mut drafts: Vec<Draft> =
        matched(base, head).into_iter().flat_map(|pair| draft(pair, &session, &rules, policy)).collect();
    judge(&mut drafts, policy);
    for draft in &mut drafts {
        waive(&mut draft.row, &rules);
    }
    let effects: Vec<Option<Effect>> = drafts.iter().map(|draft| draft.effect).collect();
    let rows: Vec<Row> = drafts.into_iter().map(|draft| draft.row).collect();
    let geomeans = overall::geomeans(&rows, &effects, policy.alpha);
    let (verdict, exit_code) = overall::overall(&rows, &policy.fail_on);
    let notes = notes(&rows, policy);
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
    }
}

/// What all rows of a comparison share.
struct Session<'a> {
    together: bool,
    base: &'a Run,
    head: &'a Run,
    forbidden: Option<Lint>,
}

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

fn blank(name: &BenchmarkName, pair: Matched<'_>, verdict: Verdict, reason: Reason, fatal: bool) -> Row {
    let lints = [pair.base, pair.head].into_iter().flatten().flat_map(|side| side.lints.iter().cloned());
    Row {
        benchmark: name.clone(),
        metric: None,
        target: context::target(pair),
        verdict,
        reason,
        fatal,
        estimate: None,
        base: None,
        head: None,
        policy: None,
        base_verification: pair.base.and_then(|side| side.verification.clone()),
        head_verification: pair.head.and_then(|side| side.verification.clone()),
        lints: context::deduplicate(lints.collect()),
        waiver: None,
    }
}

/// All rows of one benchmark.
fn draft(pair: Matched<'_>, session: &Session<'_>, rules: &Rules<'_>, policy: &Policy) -> Vec<Draft> {
    let Some(any) = pair.any() else { return Vec::new() };
    let name = &any.name;
    if let Some(status) = status::of_outcomes(pair) {
        let mut row = blank(name, pair, status.verdict, status.reason, status.fatal);
        if pair.base.is_none() || pair.head.is_none() {
            row.lints.push(Lint::new(LintCode::Unmatched, "only one side has it"));
        }
        return vec![Draft::settled(row)];
    }
    let (Some(base), Some(head)) = (pair.base, pair.head) else { return Vec::new() };
    let mut drafts = Vec::new();
    if let Some(status) = status::of_verification(base, head) {
        drafts.push(Draft::settled(blank(name, pair, status.verdict, status.reason, status.fatal)));
    }
    let identical = status::identical(base, head);
    for series in &head.metrics {
        let template = || blank(name, pair, Verdict::Inconclusive, Reason::Open, false);
        let rule = rules.metric(name, &series.metric);
        let mut row = template();
        row.metric = Some(series.metric.clone());
        row.fatal = rule.fatal;
        row.policy = Some(rule);
        drafts.push(match base.metric(&series.metric.name) {
            None => {
                row.verdict = Verdict::Missing;
                row.reason = Reason::MetricOnlyOn(SideName::Head);
                // Base never promised this metric.
                row.fatal = false;
                Draft::settled(row)
            }
            Some(partner) => {
                metric_draft(row, (base, partner), (head, series), identical, session, rules, policy)
            }
        });
    }
    for series in base.metrics.iter().filter(|series| head.metric(&series.metric.name).is_none()) {
        let rule = rules.metric(name, &series.metric);
        let mut row = blank(name, pair, Verdict::Missing, Reason::MetricOnlyOn(SideName::Base), rule.fatal);
        row.metric = Some(series.metric.clone());
        row.policy = Some(rule);
        drafts.push(Draft::settled(row));
    }
    if drafts.is_empty() {
        drafts.push(Draft::settled(if identical {
            blank(name, pair, Verdict::Pass, Reason::Identical, true)
        } else {
            let reason = Reason::TooLittle("no metric was measured on either side".to_owned());
            blank(name, pair, Verdict::Error, reason, true)
        }));
    }
    drafts
}

/// One metric that both sides have.
fn metric_draft(
    mut row: Row,
    base: (&Benchmark, &MetricSeries),
    head: (&Benchmark, &MetricSeries),
    identical: bool,
    session: &Session<'_>,
    rules: &Rules<'_>,
    policy: &Policy,
) -> Draft {
    let ((base, base_series), (head, head_series)) = (base, head);
    let metric = &head_series.metric;
    let readings = (series::read(base_series), series::read(head_series));
    row.base = readings.0.as_ref().ok().map(|r| r.stats.clone());
    row.head = readings.1.as_ref().ok().map(|r| r.stats.clone());
    if base_series.metric.unit != metric.unit || base_series.metric.better != metric.better {
        let (base, head) = (base_series.metric.unit.to_string(), metric.unit.to_string());
        row.lints.push(Lint::new(LintCode::UnitMismatch, format!("{base} / {head}")));
        row.verdict = Verdict::Error;
        row.reason = Reason::UnitMismatch { base, head };
        return Draft::settled(row);
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
    let ratio = head_readings.stats.location / base_readings.stats.location;
    let estimate = |method, ratio| Estimate {
        method,
        ratio,
        interval: None,
        p_worse: None,
        p_adjusted: None,
        q_value: None,
        p_stability: None,
        blocks: 0,
        minimum_detectable: None,
    };
    let worse = direction(metric.better);
    if let (Some(base), Some(head)) = (base_readings.exact, head_readings.exact) {
        let rule = rules.metric(&row.benchmark, metric);
        (row.verdict, row.reason) = decide_exact(base, head, worse, &rule);
        row.estimate = Some(estimate(Method::Exact, if base == head { 1.0 } else { head / base }));
        return Draft::settled(row);
    }
    if identical {
        row.verdict = Verdict::Pass;
        row.reason = Reason::Identical;
        row.estimate = Some(estimate(Method::Identical, ratio));
        return Draft::settled(row);
    }
    row.lints.extend(series_lints(&base_readings, SideName::Base));
    row.lints.extend(series_lints(&head_readings, SideName::Head));
    if let Some(lint) = context::forbidding(&row.lints).cloned()
        && lint.code.consequence() == crate::model::Consequence::Error
    {
        row.verdict = Verdict::Error;
        row.reason = Reason::Unusable(lint);
        return Draft::settled(row);
    }
    let calibrated = [session.head, session.base].into_iter().find_map(|run| {
        let spreads = &run.calibration.as_ref()?.spreads;
        spreads.get(&(row.benchmark.clone(), metric.name.to_string()))
    });
    let gpu = context::on_gpu(head) || context::on_gpu(base);
    let prior = prior_spread(calibrated, rules.between_cv(&row.benchmark, metric), gpu);
    match answer(&base_readings, &head_readings, session.together, prior) {
        Err(why) => {
            row.verdict = Verdict::Inconclusive;
            row.reason = Reason::TooLittle(why);
            row.estimate = Some(estimate(Method::Unpaired, ratio));
            Draft::settled(row)
        }
        Ok(answer) => {
            row.lints.extend(answer.lints);
            row.lints = context::deduplicate(row.lints);
            row.estimate = Some(Estimate {
                blocks: answer.blocks,
                ..estimate(answer.method, answer.effect.center.exp())
            });
            let rule = rules.metric(&row.benchmark, metric);
            let sides = (&base_readings.stats, &head_readings.stats);
            let question = Question::new(answer.effect, worse, &rule, sides, policy, answer.blocks);
            let forbidden = context::forbidding(&row.lints).or(session.forbidden.as_ref()).cloned();
            Draft { question: Some(question), worse, effect: Some(answer.effect), forbidden, row }
        }
    }
}

/// Within-process coefficient of variation from which a row is called noisy: beyond it, the median of
/// ten repetitions is itself uncertain by more than the default tolerance.
const HIGH_CV: f64 = 0.10;

fn series_lints(readings: &Readings, side: SideName) -> Vec<Lint> {
    let mut lints = Vec::new();
    if readings.stats.processes == 1 && readings.stats.samples <= 1 {
        lints.push(Lint::new(LintCode::SingleRepetition, format!("{side}: one process measured once")));
    }
    if readings.summaries_only {
        lints.push(Lint::new(LintCode::AggregatesOnly, format!("{side}: only summaries were kept")));
    }
    if let Some(cv) = readings.within_cv.filter(|cv| *cv > HIGH_CV) {
        let detail = format!("{side}: repetitions vary by {:.0} %", cv * 100.0);
        lints.push(Lint::new(LintCode::HighCv, detail));
    }
    lints
}

/// Shares the error budget out and gives every open draft its verdict.
fn judge(drafts: &mut [Draft], policy: &Policy) {
    let asked: Vec<usize> = (0..drafts.len()).filter(|&i| drafts[i].question.is_some()).collect();
    let questions: Vec<Question> = asked.iter().filter_map(|&i| drafts[i].question.clone()).collect();
    let worse: Vec<f64> = asked.iter().map(|&i| drafts[i].worse).collect();
    for (decision, &index) in decide(&questions, &worse, policy).into_iter().zip(&asked) {
        let draft = &mut drafts[index];
        let row = &mut draft.row;
        if let Some(estimate) = &mut row.estimate {
            estimate.interval = Some(Interval { ..decision.interval });
            estimate.p_worse = Some(decision.p_worse);
            estimate.p_adjusted = Some(decision.p_adjusted);
            estimate.q_value = Some(decision.q_value);
            estimate.minimum_detectable = Some(decision.minimum_detectable);
        }
        (row.verdict, row.reason) = match &draft.forbidden {
            Some(lint) if lint.code.consequence() == crate::model::Consequence::Error => {
                (Verdict::Error, Reason::Unusable(lint.clone()))
            }
            Some(lint) => (Verdict::Inconclusive, Reason::Unusable(lint.clone())),
            None => (decision.verdict, decision.reason),
        };
    }
}

/// A waiver that still holds takes the row out of the whole verdict; its own verdict stays visible.
fn waive(row: &mut Row, rules: &Rules<'_>) {
    if matches!(row.verdict, Verdict::Pass | Verdict::Improved) || !row.fatal {
        return;
    }
    row.waiver = rules.waiver(&row.benchmark, row.metric.as_ref());
    if row.waiver.as_ref().is_some_and(|waiver| !waiver.expired) {
        row.fatal = false;
    }
}

fn notes(rows: &[Row], policy: &Policy) -> Vec<String> {
    let mut notes = Vec::new();
    let has = |code| rows.iter().flat_map(|row| &row.lints).any(|lint| lint.code == code);
    if has(LintCode::AssumedSpread) {
        notes.push(
            "some rows have one process a side; how much processes differ was assumed, not measured"
                .to_owned(),
        );
    }
    let of = |method| rows.iter().filter_map(|row| row.estimate.as_ref()).any(|e| e.method == method);
    if of(Method::Paired) {
        notes.push(format!(
            "paired by block; family-wise error {} % over looks and fatal rows (Holm)",
            policy.alpha * 100.0
        ));
    }
    notes
}
