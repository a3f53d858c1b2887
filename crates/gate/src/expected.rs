//! Benchmarks that the suite expects to fail.

use benchgate_core::model::{
    Benchmark, FailureKind, Lint, LintCode, Outcome, SideName, Verdict, Verification,
};

use super::matching::Matched;
use super::rules::Rules;
use super::status::{self, Status, was_killed};
use super::{Expectation, Policy, Reason};

/// How the result of a benchmark on one side relates to an expectation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Met {
    /// It fails in this way, and that is expected.
    Fails(FailureKind),
    /// It works, and is expected to fail.
    Works,
}

/// Looks up the benchmarks of one side in the expectations of a policy.
pub struct Expectations<'a>(Rules<'a>);

impl<'a> Expectations<'a> {
    pub fn new(policy: &'a Policy) -> Self {
        Self(Rules::new(policy, ""))
    }

    /// `None` if nothing is expected, or it fails in another way.
    pub fn met(&self, benchmark: &Benchmark) -> Option<Met> {
        let expectation = self.0.expectation(&benchmark.name).filter(|expectation| !expectation.removed)?;
        met(expectation, benchmark)
    }
}

fn met(expectation: &Expectation, side: &Benchmark) -> Option<Met> {
    match FailureKind::of(side) {
        Some(failure) if expectation.failure.contains(&failure) && !was_killed(Some(side)) => {
            Some(Met::Fails(failure))
        }
        None if matches!(side.outcome, Outcome::Ok) => Some(Met::Works),
        _ => None,
    }
}

/// Whether a side fails as expected, in a later stage than this one.
fn got_further(expectation: &Expectation, side: &Benchmark, failure: FailureKind) -> bool {
    matches!(met(expectation, side), Some(Met::Fails(other)) if other > failure)
}

/// The verdict about a benchmark that is expected to fail. `None` if the usual rules decide: nothing is expected, it
/// fails in another way than expected, or it worked at base.
pub fn status(pair: Matched<'_>, rules: &Rules<'_>) -> Option<Status> {
    let head = pair.head?;
    let expectation = rules.expectation(&head.name)?;
    let worked_at_base = pair.base.is_some_and(|base| met(expectation, base) == Some(Met::Works));
    match met(expectation, head)? {
        // The suite was wrong about base, or head broke a working benchmark.
        Met::Fails(_) if worked_at_base || expectation.removed => None,
        // Base got further: it ran, or it compiled.
        Met::Fails(failure) if pair.base.is_some_and(|base| got_further(expectation, base, failure)) => None,
        Met::Fails(_) if head.verification.as_ref().is_some_and(Verification::differs_from_base) => {
            Some(Status::fatal(Verdict::Diverged, Reason::WrongOutput))
        }
        Met::Fails(failure) => {
            let reason = Reason::ExpectedFailure { failure, reason: expectation.reason.clone() };
            Some(Status::fatal(Verdict::Pass, reason))
        }
        // Repaired by this change: like a new benchmark, it has nothing to compare with.
        Met::Works if expectation.removed && !worked_at_base && status::agrees(head) => {
            Some(Status::reported(Verdict::Missing, Reason::OnlyOn(SideName::Head)))
        }
        Met::Works if expectation.removed => None,
        Met::Works => {
            let words: Vec<&str> = expectation.failure.iter().map(|failure| failure.as_str()).collect();
            let detail = format!("{} was expected: {}", words.join(" or "), expectation.reason);
            let lint = Lint::new(LintCode::UnexpectedSuccess, detail);
            Some(Status::fatal(Verdict::Error, Reason::Unusable(lint)))
        }
    }
}
