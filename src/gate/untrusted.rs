//! Compares results that untrusted code could write: the job of a pull request made them. What can be known
//! without the result comes from elsewhere, and what only the result says is not a reason to pass.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{
    Benchmark, BenchmarkName, Metric, Outcome, Run, SideName, Verdict, Verification, VerifyCode,
};

use super::compare::{CompareOptions, compare, waive};
use super::rules::Rules;
use super::{Comparison, Method, Policy, Reason, Row, Typical, overall, status, workload};

/// A benchmark that the base's configuration declares, so the result has to hold it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    pub benchmark: BenchmarkName,
    /// It runs on a device other than the processor.
    pub on_gpu: bool,
    /// There are reference outputs, so head's outputs can be verified.
    pub has_reference: bool,
}

/// As [`compare`], for a result that is not trusted: every expected benchmark has to be measured on both
/// sides, and equal digests count only where the samples agree with them.
pub fn compare_untrusted(
    base: &Run,
    head: &Run,
    expected: &[Expected],
    policy: &Policy,
    options: &CompareOptions,
) -> Comparison {
    let mut comparison = compare(base, head, policy, options);
    check_identity_claims(&mut comparison.rows, base, head, policy, options);
    let rules = Rules::new(policy, &options.today);
    let (of_base, of_head) = (by_name(base), by_name(head));
    let mut rows: BTreeMap<BenchmarkName, Vec<usize>> = BTreeMap::new();
    for (index, row) in comparison.rows.iter().enumerate() {
        rows.entry(row.benchmark.clone()).or_default().push(index);
    }
    for expected in expected {
        let name = &expected.benchmark;
        let found = rows.get(name).map_or(&[][..], Vec::as_slice);
        for &index in found {
            insist(&mut comparison.rows[index], &rules);
        }
        let sides = (of_base.get(name).copied(), of_head.get(name).copied());
        let has = |metric: &Metric| {
            found.iter().any(|&index| {
                comparison.rows[index].metric.as_ref().is_some_and(|known| known.name == metric.name)
            })
        };
        let mut more = absent(expected, sides, has, &rules);
        more.iter_mut().for_each(|row| waive(row, &rules));
        comparison.rows.extend(more);
    }
    (comparison.verdict, comparison.exit_code) = overall::overall(&comparison.rows, &policy.fail_on);
    comparison
}

fn by_name(run: &Run) -> BTreeMap<&BenchmarkName, &Benchmark> {
    run.benchmarks.iter().map(|benchmark| (&benchmark.name, benchmark)).collect()
}

/// Judges benchmarks that claim to be identical by their samples. Where these are too few to say anything,
/// as an honest run's are, the claim counts if they differ by no more than a green may hide.
fn check_identity_claims(
    rows: &mut Vec<Row>,
    base: &Run,
    head: &Run,
    policy: &Policy,
    options: &CompareOptions,
) {
    let of_base = by_name(base);
    let claimed: BTreeSet<&BenchmarkName> = head
        .benchmarks
        .iter()
        .filter(|head| of_base.get(&head.name).is_some_and(|base| status::identical(base, head)))
        .map(|head| &head.name)
        .collect();
    if claimed.is_empty() {
        return;
    }
    let [base, head] = [base, head].map(|run| {
        let mut doubted = Run { benchmarks: Vec::new(), ..run.clone() };
        for benchmark in run.benchmarks.iter().filter(|benchmark| claimed.contains(&benchmark.name)) {
            let mut benchmark = benchmark.clone();
            if let Some(artifact) = &mut benchmark.artifact {
                artifact.execution_sha256.clear();
            }
            doubted.benchmarks.push(benchmark);
        }
        doubted
    });
    let mut judged: BTreeMap<BenchmarkName, Vec<Row>> = BTreeMap::new();
    for mut row in compare(&base, &head, policy, options).rows {
        if agrees(&row) {
            row.verdict = Verdict::Pass;
            row.reason = Reason::Identical;
            if let Some(estimate) = &mut row.estimate {
                estimate.method = Method::Identical;
                // Differences between two runs of one program are noise, not an effect.
                (estimate.ratio, estimate.interval) = (1.0, None);
            }
        }
        judged.entry(row.benchmark.clone()).or_default().push(row);
    }
    let trusting = std::mem::take(rows);
    for row in trusting {
        match judged.get_mut(&row.benchmark) {
            Some(own) => rows.append(own),
            None => rows.push(row),
        }
    }
}

/// Whether the few samples of an open row lie within the tolerance.
fn agrees(row: &Row) -> bool {
    let open =
        row.verdict == Verdict::Inconclusive && matches!(row.reason, Reason::Open | Reason::TooLittle(_));
    let tolerance = row.policy.as_ref().map_or(0.0, |rule| rule.tolerance);
    let ratio = row.estimate.as_ref().map_or(f64::NAN, |estimate| estimate.ratio);
    open && ratio.ln().abs() <= tolerance.ln_1p()
}

/// A row of an expected benchmark that has nothing to compare is fatal, whatever the result gives as reason.
fn insist(row: &mut Row, rules: &Rules<'_>) {
    if row.verdict != Verdict::Missing || row.fatal || row.waiver.is_some() {
        return;
    }
    row.fatal = match &row.metric {
        None => true,
        // A cached compile has no time, so one side often lacks it.
        Some(metric) => {
            metric.name != Metric::COMPILE_TIME.name && rules.metric(&row.benchmark, metric).fatal
        }
    };
    waive(row, rules);
}

/// Rows for what neither side of the result has.
fn absent(
    expected: &Expected,
    sides: (Option<&Benchmark>, Option<&Benchmark>),
    has: impl Fn(&Metric) -> bool,
    rules: &Rules<'_>,
) -> Vec<Row> {
    let name = &expected.benchmark;
    let (base, head) = match sides {
        (None, None) => {
            let reason = "the base's configuration declares it, and the result does not have it".to_owned();
            let reason = Reason::NotMeasured(Outcome::Skipped { reason });
            return vec![missing(name, None, reason)];
        }
        (Some(base), Some(head)) => (base, head),
        // The comparison itself has a row for it.
        _ => return Vec::new(),
    };
    if !base.outcome.is_ok() || !head.outcome.is_ok() {
        return Vec::new();
    }
    let mut rows = Vec::new();
    for metric in Metric::BUILT_IN {
        let rule = rules.metric(name, &metric);
        if rule.fatal && is_measured(&metric, expected) && !has(&metric) {
            let reason = Reason::TooLittle("neither side of the result has this metric".to_owned());
            rows.push(Row { policy: Some(rule), ..missing(name, Some(metric), reason) });
        }
    }
    for (side, benchmark) in [(SideName::Base, base), (SideName::Head, head)] {
        if workload::recorded(benchmark).is_none() {
            let reason = format!("the result does not say what {side} was measured with");
            rows.push(missing(name, None, Reason::TooLittle(reason)));
        }
    }
    let verified = |benchmark: &Benchmark| {
        let passes = |check: &Verification| check.code == VerifyCode::Pass;
        benchmark.verification.as_ref().is_some_and(|check| !passes(check) || !check.outputs.is_empty())
    };
    if expected.has_reference && !verified(head) {
        let reason = Reason::TooLittle("the result does not say whether head's outputs are right".to_owned());
        rows.push(missing(name, None, reason));
    }
    rows
}

/// Whether every benchmark that is measured has this metric. A cached compile has no time.
fn is_measured(metric: &Metric, expected: &Expected) -> bool {
    match &*metric.name {
        name if name == Metric::COMPILE_TIME.name || name == Metric::THROUGHPUT.name => false,
        name if name == Metric::PEAK_DEVICE_MEMORY.name => expected.on_gpu,
        _ => true,
    }
}

fn missing(name: &BenchmarkName, metric: Option<Metric>, reason: Reason) -> Row {
    Row {
        benchmark: name.clone(),
        metric,
        target: None,
        verdict: Verdict::Missing,
        reason,
        fatal: true,
        estimate: None,
        base: None,
        head: None,
        typical: Typical::default(),
        policy: None,
        base_verification: None,
        head_verification: None,
        lints: Vec::new(),
        waiver: None,
        alignment: None,
    }
}
