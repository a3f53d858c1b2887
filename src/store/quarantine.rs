//! Quarantine: results that are stored but excluded from the baseline. If a regressed session joined the baseline, the
//! next one would pass; the same applies to a session without a verdict. Both stay excluded until accepted.
//!
//! If possible a reason applies to one benchmark only, so that a model that fails every night does not keep the others
//! from having a baseline.

use std::collections::BTreeSet;

use crate::gate::{self, ALL_BENCHMARKS, Comparison, Reason, Row};
use crate::model::{BenchmarkName, Consequence, LintCode, SideName, Verdict, VerifyCode};
use crate::record::{AcceptanceFile, OutcomeStatus, QuarantineCause, QuarantineRecord, RunFile};

use super::RunName;
use super::name;

/// All reasons to quarantine a side of a run. `comparison` compares that side with the stored sessions, if there are
/// any; `red` are benchmarks that regressed in them and were not good since, and `still_red` those of which only
/// quarantined ones are left.
pub(super) fn reasons(
    run: &RunFile,
    side: SideName,
    comparison: Option<&Comparison>,
    red: &BTreeSet<Option<String>>,
    still_red: &[String],
) -> Vec<QuarantineRecord> {
    let mut found = Reasons(Vec::new());
    for name in still_red {
        let why = "all stored sessions of it are quarantined, some because it regressed";
        found.add(QuarantineCause::Undecided, Some(name), why);
    }
    if !run.complete {
        found.add(QuarantineCause::Incomplete, None, "the run was interrupted");
    }
    let Some(record) = run.side(side) else { return found.0 };
    if record.toolchain.is_none() && (record.has_models() || record.benchmarks.is_empty()) {
        found.add(QuarantineCause::Unverified, None, "the tools were not identified");
    }
    if record.commit.is_none() {
        found.add(QuarantineCause::Unverified, None, "the commit of the sources is unknown");
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
        match benchmark.verification.as_ref().map(|verification| verification.code) {
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
        if let Some((cause, why)) = row_reason(row) {
            let metric = row.metric.as_ref().map_or_else(String::new, |metric| format!("{}: ", metric.name));
            // A shift of all benchmarks applies to the whole run.
            let name = Some(row.benchmark.as_str()).filter(|name| *name != ALL_BENCHMARKS);
            let is_open =
                matches!(row.reason, Reason::TooLittle(_) | Reason::Open | Reason::Stability | Reason::Tail);
            let stays_red = is_open && row.estimate.is_some() && red.contains(&name.map(str::to_owned));
            let cause = if stays_red { QuarantineCause::Regressed } else { cause };
            // A benchmark that failed is quarantined for that already.
            if row.estimate.is_none() && cause == QuarantineCause::Regressed && found.is_errored(name) {
                continue;
            }
            found.add(cause, name, &format!("{metric}{why}"));
        }
    }
    found.0
}

/// p-value below which an open row counts as a likely slowdown. One unchanged session in twenty is excluded by chance.
const LIKELY_WORSE: f64 = 0.05;

/// Why a row is quarantined. Rows that are merely open are not: if only certainly unchanged sessions were kept, the
/// spread between sessions would be underestimated and later sessions would regress.
fn row_reason(row: &Row) -> Option<(QuarantineCause, String)> {
    use QuarantineCause::{Errored, Regressed, Undecided};
    if !row.fatal && row.verdict != Verdict::Error {
        return None;
    }
    let estimate = row.estimate.as_ref();
    let ratio =
        || estimate.map_or_else(String::new, |e| format!("{:.3} × that of the stored sessions", e.ratio));
    Some(match (row.verdict, &row.reason) {
        // Beyond an absolute limit it is still the level that later sessions are compared with.
        (_, Reason::Limit(_)) => {
            if !estimate.and_then(|e| e.p_worse).is_some_and(|p| p < LIKELY_WORSE) {
                return None;
            }
            (Undecided, format!("likely slower: {}", ratio()))
        }
        (Verdict::Regressed, _) if estimate.is_some() => (Regressed, ratio()),
        // It ran in the stored sessions, and its device is gone.
        (Verdict::Regressed, Reason::FailsAtHead { why, .. }) => (Regressed, why.clone()),
        // The stored session failed, and only a good one can replace it.
        (Verdict::Error, Reason::FailsAtBase { .. }) => return None,
        (Verdict::Error, Reason::Unusable(lint)) => (Errored, format!("{}: {}", lint.code, lint.detail)),
        (Verdict::Error, Reason::UnitMismatch { base, head }) => {
            (Errored, format!("{head}, stored as {base}"))
        }
        // The history starts anew with this session: excluded, it would never start.
        (Verdict::Inconclusive, Reason::Unusable(lint)) if lint.code == LintCode::AnchorChanged => {
            return None;
        }
        (Verdict::Inconclusive, Reason::Unusable(lint)) => {
            (Undecided, format!("{}: {}", lint.code, lint.detail))
        }
        (Verdict::Inconclusive, Reason::TooLittle(lacking)) => (Undecided, lacking.why.clone()),
        (Verdict::Inconclusive, Reason::Stability) => (Undecided, "it was slow in more processes".to_owned()),
        (Verdict::Inconclusive, Reason::Tail) => (Undecided, "more of its repetitions stalled".to_owned()),
        (Verdict::Inconclusive, _) if estimate.and_then(|e| e.p_worse).is_none_or(|p| p < LIKELY_WORSE) => {
            (Undecided, format!("undecided, and likely slower: {}", ratio()))
        }
        (
            Verdict::Missing,
            Reason::OnlyOn(SideName::Base) | Reason::MetricOnlyOn(SideName::Base) | Reason::NotMeasured(_),
        ) => (Undecided, "it was not measured, but the stored sessions contain it".to_owned()),
        _ => return None,
    })
}

struct Reasons(Vec<QuarantineRecord>);

impl Reasons {
    fn is_errored(&self, benchmark: Option<&str>) -> bool {
        let errored = |known: &QuarantineRecord| known.cause == QuarantineCause::Errored;
        self.0.iter().any(|known| errored(known) && known.benchmark.as_deref() == benchmark)
    }

    /// Keeps only the first reason of each cause for a benchmark.
    fn add(&mut self, cause: QuarantineCause, benchmark: Option<&str>, why: &str) {
        if self.0.iter().all(|known| known.cause != cause || known.benchmark.as_deref() != benchmark) {
            let benchmark = benchmark.map(str::to_owned);
            self.0.push(QuarantineRecord { cause, why: why.to_owned(), benchmark });
        }
    }
}

/// Whether an acceptance lifts a reason for a benchmark of the run; `None` is the whole run. The accepted run itself is
/// released for any reason. Later runs are released only if the reason is a regression and they were measured before the
/// acceptance: a regression after it is a new one.
pub fn is_released(
    reason: &QuarantineRecord,
    benchmark: Option<&str>,
    run: &RunName,
    acceptances: &[(String, AcceptanceFile)],
) -> bool {
    acceptances.iter().any(|(_, acceptance)| {
        let later = || {
            reason.cause == QuarantineCause::Regressed
                && *run.as_str() > *acceptance.from
                && name::stamp(&acceptance.created).is_some_and(|accepted| run.time() <= accepted.as_str())
        };
        acceptance.covers(benchmark) && (run.as_str() == acceptance.from || later())
    })
}
