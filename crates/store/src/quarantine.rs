//! Quarantine stores results but excludes them from the baseline. If a regressed session joined the baseline,
//! the next slow session would pass; the same applies to a session without a verdict. Both kinds of session
//! stay excluded until they are accepted.
//!
//! If possible, a reason applies to one benchmark only, so that a model that fails every night does not keep
//! the others from having a baseline.

use std::collections::BTreeMap;

use benchgate_core::model::{BenchmarkName, Consequence, LintCode, SideName, Verdict, VerifyCode};
use benchgate_core::record::{AcceptanceFile, OutcomeStatus, QuarantineCause, QuarantineRecord, RunFile};
use benchgate_gate::{self, ALL_BENCHMARKS, Comparison, Reason, Row};

use super::RunName;
use super::name;

/// The reason to quarantine a benchmark of which no good session is left. It ends with an acceptance.
pub const STILL_RED: &str =
    "all stored sessions of this benchmark are quarantined, some because it regressed";

/// All reasons to quarantine a side of a run. `comparison` compares that side with the stored sessions, if
/// there are any. `red` are benchmarks whose last stored results regressed, and `still_red` are those that
/// have only quarantined results left.
pub(super) fn reasons(
    run: &RunFile,
    side: SideName,
    comparison: Option<&Comparison>,
    red: &BTreeMap<Option<String>, RunName>,
    still_red: &[String],
) -> Vec<QuarantineRecord> {
    let mut found = Reasons(Vec::new());
    for name in still_red {
        found.add(QuarantineCause::Undecided, Some(name), STILL_RED);
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
            Some(VerifyCode::ExceptionRaised | VerifyCode::VerifierDidntRun) => {
                found.add(QuarantineCause::Errored, name, "checking its outputs failed");
            }
            _ => {}
        }
    }
    if let Some((_, head)) = run.runs("").into_iter().find(|(name, _)| *name == side) {
        // The comparison says whether a reported problem is new. Many programs always report the same ones.
        let unfit =
            benchgate_gate::unfit(&head).into_iter().filter(|(_, it)| it.code != LintCode::ReportedProblem);
        for (benchmark, lint) in unfit {
            let cause = match lint.code.consequence() {
                Consequence::Error => QuarantineCause::Errored,
                Consequence::Inconclusive | Consequence::NotGreen | Consequence::Note => {
                    QuarantineCause::Undecided
                }
            };
            let benchmark = benchmark.as_ref().map(BenchmarkName::as_str);
            found.add(cause, benchmark, &format!("{}: {}", lint.code, lint.detail));
        }
    }
    for row in comparison.into_iter().flat_map(|comparison| &comparison.rows) {
        if let Some((cause, why)) = row_reason(row) {
            let metric = row.metric.as_ref().map_or_else(String::new, |metric| format!("{}: ", metric.name));
            // A shift of all benchmarks concerns the whole run.
            let name = Some(row.benchmark.as_str()).filter(|name| *name != ALL_BENCHMARKS);
            let is_open =
                matches!(row.reason, Reason::TooLittle(_) | Reason::Open | Reason::Stability | Reason::Tail);
            let stays_red = is_open && row.estimate.is_some() && red.contains_key(&name.map(str::to_owned));
            let cause = if stays_red { QuarantineCause::Regressed } else { cause };
            // A benchmark that failed is already quarantined for that.
            if row.estimate.is_none() && cause == QuarantineCause::Regressed && found.is_errored(name) {
                continue;
            }
            found.add(cause, name, &format!("{metric}{why}"));
        }
    }
    found.0
}

/// The p-value below which an undecided row counts as a likely slowdown. By chance, this excludes one
/// unchanged session in twenty.
const LIKELY_WORSE: f64 = 0.05;

/// The reason to quarantine a row, if any. Rows that are merely undecided are kept: if only
/// sessions that are certainly unchanged were kept, the spread between sessions would be
/// underestimated, and too many later sessions would be reported as regressed.
fn row_reason(row: &Row) -> Option<(QuarantineCause, String)> {
    use QuarantineCause::{Diverged, Errored, Regressed, Undecided};
    if !row.fatal && row.verdict != Verdict::Error {
        return None;
    }
    let estimate = row.estimate.as_ref();
    let ratio = || {
        estimate.map_or_else(String::new, |e| format!("{:.3} × the value of the stored sessions", e.ratio))
    };
    let changed = row.lints.iter().find(|lint| lint.code.consequence() == Consequence::NotGreen);
    Some(match (row.verdict, &row.reason) {
        // Few sessions leave a row open, but not what its results state.
        (Verdict::Inconclusive, _) if let Some(lint) = changed => {
            (Undecided, format!("{}: {}", lint.code, lint.detail))
        }
        // A row beyond an absolute limit still shows the level that later sessions are compared with.
        (_, Reason::Limit(_)) => {
            if !estimate.and_then(|e| e.p_worse).is_some_and(|p| p < LIKELY_WORSE) {
                return None;
            }
            (Undecided, format!("likely slower: {}", ratio()))
        }
        (Verdict::Regressed, _) if estimate.is_some() => (Regressed, ratio()),
        // The benchmark ran in the stored sessions, but its device is missing now.
        (Verdict::Regressed, Reason::FailsAtHead { why, .. }) => (Regressed, why.clone()),
        (Verdict::Diverged, _) => (Diverged, "its outputs are wrong".to_owned()),
        // The stored session failed. Only a good session can replace it, so this one is stored.
        (Verdict::Error, Reason::FailsAtBase { .. }) => return None,
        (Verdict::Error, Reason::Unusable(lint)) => (Errored, format!("{}: {}", lint.code, lint.detail)),
        (Verdict::Error, Reason::UnitMismatch { base, head }) => {
            (Errored, format!("{head}, stored as {base}"))
        }
        // The history starts anew with this session. If it were excluded, the new history could never start.
        (Verdict::Inconclusive, Reason::Unusable(lint)) if lint.code == LintCode::AnchorChanged => {
            return None;
        }
        (Verdict::Inconclusive, Reason::Unusable(lint)) => {
            (Undecided, format!("{}: {}", lint.code, lint.detail))
        }
        (Verdict::Inconclusive, Reason::TooLittle(lacking)) => (Undecided, lacking.why.clone()),
        (Verdict::Inconclusive, Reason::Stability) => {
            (Undecided, "more of its processes were slow than in the stored sessions".to_owned())
        }
        (Verdict::Inconclusive, Reason::Tail) => {
            (Undecided, "more of its repetitions stalled than in the stored sessions".to_owned())
        }
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

    /// Adds a reason, unless the benchmark already has one with this cause.
    fn add(&mut self, cause: QuarantineCause, benchmark: Option<&str>, why: &str) {
        if self.0.iter().all(|known| known.cause != cause || known.benchmark.as_deref() != benchmark) {
            let benchmark = benchmark.map(str::to_owned);
            self.0.push(QuarantineRecord { cause, why: why.to_owned(), benchmark });
        }
    }
}

/// Returns whether a benchmark is excluded for its measured value, and not because the measurement can't be
/// used.
pub(super) fn is_about_speed(reason: &QuarantineRecord) -> bool {
    match reason.cause {
        QuarantineCause::Regressed => true,
        QuarantineCause::Undecided => reason.benchmark.is_some(),
        QuarantineCause::Diverged
        | QuarantineCause::Errored
        | QuarantineCause::Unverified
        | QuarantineCause::Incomplete => false,
    }
}

/// Returns whether an acceptance lifts a reason for a benchmark of the run (`None` means the whole run). The
/// accepted run itself is released from every reason. A later run is released only from a regression, and
/// only if it was stored when the change was accepted, so that somebody could know it: any other regression is a new
/// one.
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
                && match &acceptance.later_runs {
                    Some(stored) => stored.iter().any(|stored| stored == run.as_str()),
                    None => {
                        let accepted = name::stamp(&acceptance.created);
                        accepted.is_some_and(|accepted| run.time() <= accepted.as_str())
                    }
                }
        };
        acceptance.covers(benchmark) && (run.as_str() == acceptance.from || later())
    })
}
