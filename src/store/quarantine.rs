//! What must not be learned from. A red session that entered the baseline would make the next red green, and so would
//! one that nothing could be said of, so both are kept and not compared with until they are accepted.
//!
//! A reason holds for one benchmark where it can: a model that fails every night must not keep the
//! others from having a baseline.

use globset::Glob;

use crate::gate::{self, ALL_BENCHMARKS, Comparison, Reason, Row};
use crate::model::{BenchmarkName, Consequence, SideName, Verdict, VerifyCode};
use crate::record::{AcceptanceFile, OutcomeStatus, QuarantineCause, QuarantineRecord, RunFile};

use super::RunName;
use super::name;

/// Every reason not to learn from a side of a run. `comparison` is that side against the sessions that
/// are stored already, where there are any.
pub(super) fn reasons(
    run: &RunFile,
    side: SideName,
    comparison: Option<&Comparison>,
) -> Vec<QuarantineRecord> {
    let mut found = Reasons(Vec::new());
    if !run.complete {
        found.add(QuarantineCause::Incomplete, None, "the run was interrupted");
    }
    let Some(record) = run.side(side) else { return found.0 };
    if record.toolchain.is_none() {
        found.add(QuarantineCause::Unverified, None, "the tools were not identified");
    }
    if record.commit.is_none() {
        found.add(QuarantineCause::Unverified, None, "the commit of the sources is not known");
    }
    if record.dirty == Some(true) {
        found.add(QuarantineCause::Unverified, None, "the sources differed from their commit");
    }
    for benchmark in &record.benchmarks {
        let name = Some(benchmark.name.as_str());
        if benchmark.outcome.status == OutcomeStatus::Failed {
            let why = benchmark.outcome.why.as_deref().unwrap_or("it failed");
            found.add(QuarantineCause::Errored, name, why);
        }
        match benchmark.verification.as_ref().map(|verification| verification.code.0) {
            Some(VerifyCode::Fail) => found.add(QuarantineCause::Diverged, name, "its outputs are wrong"),
            Some(VerifyCode::ExceptionRaised) => {
                found.add(QuarantineCause::Errored, name, "checking its outputs failed");
            }
            _ => {}
        }
    }
    if let Some((_, head)) = run.runs("").into_iter().find(|(name, _)| *name == side) {
        for (benchmark, lint) in gate::unfit(&head) {
            let cause = match lint.code.consequence() {
                Consequence::Error => QuarantineCause::Errored,
                Consequence::Inconclusive | Consequence::Note => QuarantineCause::Undecided,
            };
            let benchmark = benchmark.as_ref().map(BenchmarkName::as_str);
            found.add(cause, benchmark, &format!("{}: {}", lint.code, lint.detail));
        }
    }
    for row in comparison.into_iter().flat_map(|comparison| &comparison.rows) {
        if let Some((cause, why)) = of_row(row) {
            let metric = row.metric.as_ref().map_or_else(String::new, |metric| format!("{}: ", metric.name));
            // What all benchmarks did is a reason about the whole run.
            let name = Some(row.benchmark.as_str()).filter(|name| *name != ALL_BENCHMARKS);
            found.add(cause, name, &format!("{metric}{why}"));
        }
    }
    found.0
}

/// An open row is ordinary noise unless a slowdown is this likely: one night in twenty is excluded by chance.
const LIKELY_WORSE: f64 = 0.05;

/// Why a row must not be learned from. What is merely open must be: if only nights that are surely unchanged were
/// kept, the spread between sessions would look smaller than it is, and later nights red.
fn of_row(row: &Row) -> Option<(QuarantineCause, String)> {
    use QuarantineCause::{Errored, Regressed, Undecided};
    if !row.fatal && row.verdict != Verdict::Error {
        return None;
    }
    let estimate = row.estimate.as_ref();
    let ratio =
        || estimate.map_or_else(String::new, |e| format!("{:.3} × that of the stored sessions", e.ratio));
    Some(match (row.verdict, &row.reason) {
        (Verdict::Regressed, _) if estimate.is_some() => (Regressed, ratio()),
        // The stored session is at fault, and only a good one can replace it.
        (Verdict::Error, Reason::FailsAtBase { .. }) => return None,
        (Verdict::Error, Reason::Unusable(lint)) => (Errored, format!("{}: {}", lint.code, lint.detail)),
        (Verdict::Error, Reason::UnitMismatch { base, head }) => {
            (Errored, format!("{head}, stored as {base}"))
        }
        (Verdict::Inconclusive, Reason::Unusable(lint)) => {
            (Undecided, format!("{}: {}", lint.code, lint.detail))
        }
        (Verdict::Inconclusive, Reason::TooLittle(why)) => (Undecided, why.clone()),
        (Verdict::Inconclusive, Reason::Stability) => (Undecided, "it was slow more often".to_owned()),
        (Verdict::Inconclusive, _) if estimate.and_then(|e| e.p_worse).is_none_or(|p| p < LIKELY_WORSE) => {
            (Undecided, format!("still open, and likely slower: {}", ratio()))
        }
        (
            Verdict::Missing,
            Reason::OnlyOn(SideName::Base) | Reason::MetricOnlyOn(SideName::Base) | Reason::NotMeasured(_),
        ) => (Undecided, "it was not measured, and the stored sessions have it".to_owned()),
        _ => return None,
    })
}

struct Reasons(Vec<QuarantineRecord>);

impl Reasons {
    /// The first reason of a kind for a benchmark is enough.
    fn add(&mut self, cause: QuarantineCause, benchmark: Option<&str>, why: &str) {
        if self.0.iter().all(|known| known.cause != cause || known.benchmark.as_deref() != benchmark) {
            let benchmark = benchmark.map(str::to_owned);
            self.0.push(QuarantineRecord { cause, why: why.to_owned(), benchmark });
        }
    }
}

/// Whether an acceptance is about this benchmark; `None` stands for the run as a whole.
pub(super) fn covers(acceptance: &AcceptanceFile, benchmark: Option<&str>) -> bool {
    match (&acceptance.benchmark, benchmark) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(glob), Some(name)) => matches(glob, name),
    }
}

/// A glob that can't be read covers nothing: what is not understood accepts nothing.
fn matches(glob: &str, name: &str) -> bool {
    Glob::new(glob).is_ok_and(|glob| glob.compile_matcher().is_match(name))
}

/// Whether a reason of the run `name` no longer holds. The run that was accepted is released whatever
/// the reason; later ones only where the reason is the accepted change, and only those measured before
/// it was accepted: what turns red after that is news.
pub(super) fn is_released(
    reason: &QuarantineRecord,
    run: &RunName,
    acceptances: &[(String, AcceptanceFile)],
) -> bool {
    acceptances.iter().any(|(_, acceptance)| {
        let later = || {
            reason.cause == QuarantineCause::Regressed
                && *run.as_str() > *acceptance.from
                && name::stamp(&acceptance.created).is_some_and(|accepted| run.time() <= accepted.as_str())
        };
        covers(acceptance, reason.benchmark.as_deref()) && (run.as_str() == acceptance.from || later())
    })
}
