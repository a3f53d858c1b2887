//! Pairs the benchmarks of both sides, and decides about a pair without statistics: missing, failed, not measured, wrong,
//! identical, or expected to fail.

use std::collections::{BTreeMap, HashMap};

use benchgate_core::model::{
    Artifact, Benchmark, BenchmarkName, FailureKind, Lint, LintCode, Outcome, OutputCheck, RENAMED_FROM, Run,
    SideName, Stage, Verdict, Verification, VerifyCode, Workload,
};
use benchgate_core::record::WHEN_STORED;

use super::rules::Rules;
use super::{ChangedReference, Expectation, Policy, Reason, Row, workload};

/// Returns the finding that a module compiled by benchgate was not checked. Foreign files never have a
/// verification, so it is not reported for them.
pub fn unverified(head: &Benchmark) -> Option<Lint> {
    let code = head.verification.as_ref().map(Verification::supported_code);
    let checked = matches!(code, Some(VerifyCode::Pass | VerifyCode::Fail));
    (head.artifact.is_some() && !checked).then(|| {
        let why = code.map_or("no reference outputs", VerifyCode::as_str);
        let compared = head.verification.as_ref().is_some_and(|found| !found.against_base.is_empty());
        let instead = if compared { "; compared with base's outputs instead" } else { "" };
        Lint::new(LintCode::Unverified, format!("{why}{instead}"))
    })
}

/// A verdict about a benchmark as a whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    pub verdict: Verdict,
    pub reason: Reason,
    pub fatal: bool,
}

impl Status {
    pub(super) fn fatal(verdict: Verdict, reason: Reason) -> Self {
        Self { verdict, reason, fatal: true }
    }

    pub(super) fn reported(verdict: Verdict, reason: Reason) -> Self {
        Self { verdict, reason, fatal: false }
    }
}

/// Returns a side's outcome; rows that the tool marked as failed count as failed.
fn outcome(side: &Benchmark) -> Outcome {
    if !side.outcome.is_ok() {
        return side.outcome.clone();
    }
    match side.lints.iter().find(|lint| lint.code == LintCode::Errored) {
        Some(lint) => Outcome::Failed { stage: Stage::Benchmark, why: lint.detail.clone() },
        None => Outcome::Ok,
    }
}

/// Returns whether there is a module to describe, whether it was measured or not.
pub fn is_compiled(side: Option<&Benchmark>) -> bool {
    side.is_some_and(|side| side.artifact.is_some())
}

/// Returns whether a tool was killed from outside while it worked for this side.
fn was_killed(side: Option<&Benchmark>) -> bool {
    side.is_some_and(|side| side.lints.iter().any(|lint| lint.code == LintCode::Killed))
}

/// Returns whether the compiler itself rejected this side's program, so that a change of the program can
/// repair it.
fn was_rejected(side: Option<&Benchmark>) -> bool {
    side.is_some_and(|side| side.lints.iter().any(|lint| lint.code == LintCode::CompilerRejected))
}

/// Returns the finding that the baseline has no usable session of this benchmark.
fn quarantined(base: Option<&Benchmark>) -> Option<&Lint> {
    base.into_iter().flat_map(|side| &side.lints).find(|lint| lint.code == LintCode::Quarantined)
}

/// Returns `None` if both sides were measured, so that their numbers decide. Wrong outputs count even if
/// there is nothing to compare head with.
pub fn of_outcomes(pair: Matched<'_>) -> Option<Status> {
    let status = of_pair(pair)?;
    let code = pair.head.and_then(|head| head.verification.as_ref()).map(Verification::supported_code);
    let is_wrong = !status.fatal && code == Some(VerifyCode::Fail);
    Some(if is_wrong { Status::fatal(Verdict::Diverged, Reason::WrongOutput) } else { status })
}

fn of_pair(pair: Matched<'_>) -> Option<Status> {
    use Verdict::{Error, Missing, Regressed};
    let (base, head) = match (pair.base, pair.head) {
        (Some(base), Some(head)) => (outcome(base), outcome(head)),
        // Compilers split and fuse kernels. The row of all kernels judges the cost of new ones.
        (Some(kernel), None) | (None, Some(kernel)) if kernel.code_sha256.is_some() => {
            let side = if pair.base.is_some() { SideName::Base } else { SideName::Head };
            return Some(Status::reported(Missing, Reason::OnlyOn(side)));
        }
        // A benchmark that disappeared can't be judged, and renaming it must not bypass the gate.
        (Some(_), None) => return Some(Status::fatal(Missing, Reason::OnlyOn(SideName::Base))),
        (None, Some(head)) => {
            return Some(match outcome(head) {
                // The benchmark is new and does not run.
                Outcome::Failed { stage, why } => Status::fatal(Error, Reason::FailsAtHead { stage, why }),
                _ => Status::reported(Missing, Reason::OnlyOn(SideName::Head)),
            });
        }
        (None, None) => return None,
    };
    match (base, head) {
        (Outcome::Ok, Outcome::Ok) => None,
        // The tool was killed from outside, so the result of that side is unknown, whatever the other side
        // did.
        (_, Outcome::Failed { stage, why }) if was_killed(pair.head) => {
            Some(Status::fatal(Error, Reason::FailsAtHead { stage, why }))
        }
        (Outcome::Failed { stage, why }, _) if was_killed(pair.base) => {
            Some(Status::fatal(Error, Reason::FailsAtBase { stage, why }))
        }
        (Outcome::Failed { .. }, Outcome::Failed { stage, why }) => {
            Some(Status::fatal(Error, Reason::FailsOnBoth { stage, why }))
        }
        (Outcome::Ok, Outcome::Failed { stage, why }) => {
            Some(Status::fatal(Regressed, Reason::FailsAtHead { stage, why }))
        }
        // The benchmark is newly declared as supported, but fails.
        (_, Outcome::Failed { stage, why }) => Some(Status::fatal(Error, Reason::FailsAtHead { stage, why })),
        (Outcome::Failed { stage, why }, Outcome::Ok) => {
            let reason = Reason::FailsAtBase { stage, why };
            // Any other failure may be caused by the machine: base has no result, so a head of any speed
            // would pass.
            let is_repaired = stage == Stage::Compile && was_rejected(pair.base);
            Some(if is_repaired { Status::reported(Missing, reason) } else { Status::fatal(Error, reason) })
        }
        // The module was compiled, but its device is gone: this stage worked at base and no longer does.
        (Outcome::Ok, Outcome::Unsupported { reason }) if is_compiled(pair.head) => {
            let reason = Reason::FailsAtHead { stage: Stage::Benchmark, why: reason };
            Some(Status::fatal(Regressed, reason))
        }
        // Base's configuration declares it, but there is nothing to compare head with.
        (Outcome::Unsupported { reason }, Outcome::Ok) if is_compiled(pair.base) => {
            Some(Status::fatal(Error, Reason::FailsAtBase { stage: Stage::Benchmark, why: reason }))
        }
        // Base measured it, but head no longer does.
        (Outcome::Ok, unmeasured) => Some(Status::fatal(Missing, Reason::NotMeasured(unmeasured))),
        (_, Outcome::Ok) => Some(match quarantined(pair.base) {
            // This is not a new benchmark: its stored results can't be trusted.
            Some(lint) => Status::fatal(Missing, Reason::Unusable(lint.clone())),
            None => Status::reported(Missing, Reason::OnlyOn(SideName::Head)),
        }),
        (Outcome::Failed { .. }, unmeasured) => Some(Status::fatal(Missing, Reason::NotMeasured(unmeasured))),
        (_, unmeasured) => Some(Status::reported(Missing, Reason::NotMeasured(unmeasured))),
    }
}

/// Short reason for a row in which head's outputs are neither shown to be right nor to be wrong.
pub const NOT_VERIFIED: &str = "not verified";

/// Returns the row that the verification of two measured sides adds, if any.
pub fn of_verification(
    base: &Benchmark,
    head: &Benchmark,
    together: bool,
    rules: &Rules<'_>,
) -> Option<Status> {
    let base_code = base.verification.as_ref().map(Verification::supported_code);
    let Some(verification) = head.verification.as_ref() else {
        let unproved = || Reason::too_little(NOT_VERIFIED, "head's outputs were not verified");
        return (base_code == Some(VerifyCode::Pass))
            .then(|| Status::fatal(Verdict::Inconclusive, unproved()));
    };
    let code = verification.supported_code();
    let why = || verification.why.clone().unwrap_or_else(|| code.as_str().to_owned());
    let stage = Stage::Verify;
    let worked_at_base = base_code == Some(VerifyCode::Pass);
    let failed_at_base = matches!(base_code, Some(VerifyCode::ExceptionRaised | VerifyCode::EagerFailed));
    let proved_on_both = worked_at_base && code == VerifyCode::Pass;
    let is_noted = verification.model_changed && rules.changed_reference() == ChangedReference::Note;
    // For an unchanged model, a reference with which both sides agree is better evidence than their distance
    // from each other.
    let allowed = is_noted || (proved_on_both && !workload::model_changed(base, head));
    let is_comparable = code == VerifyCode::Pass || code.has_no_reference();
    if is_comparable && verification.differs_from_base() && !allowed {
        return Some(Status::fatal(Verdict::Diverged, Reason::WrongOutput));
    }
    if together && proved_on_both && !allowed && is_uncompared(base, head) {
        let reason = Reason::too_little(
            NOT_VERIFIED,
            "head's reference changed, but its outputs were not compared with base's",
        );
        return Some(Status::fatal(Verdict::Inconclusive, reason));
    }
    let is_sketched = |found: &Verification| found.sketches.is_some();
    let is_lost = base.verification.as_ref().is_some_and(is_sketched) && !is_sketched(verification);
    if !together && code.has_no_reference() && is_lost && !same_module(base, head) {
        let detail = format!("head's outputs can't be compared with those of the stored session: {}", why());
        return Some(Status::fatal(Verdict::Inconclusive, Reason::too_little(NOT_VERIFIED, detail)));
    }
    match code {
        VerifyCode::Pass if worked_at_base && !covers(verification, base.verification.as_ref()) => {
            let reason =
                Reason::too_little(NOT_VERIFIED, "fewer of head's outputs were verified than of base's");
            Some(Status::fatal(Verdict::Inconclusive, reason))
        }
        VerifyCode::Pass => match base_code {
            // The outputs are repaired at head. The time is still compared, and this row reports that base's
            // numbers came from a wrong module.
            Some(VerifyCode::Fail) => Some(Status::reported(Verdict::Missing, Reason::WrongOutputOnBase)),
            _ => None,
        },
        // The outputs are wrong on both sides: this change is not the cause, but the results can't be
        // trusted.
        VerifyCode::Fail if base_code == Some(VerifyCode::Fail) => {
            Some(Status::fatal(Verdict::Error, Reason::WrongOutputOnBase))
        }
        VerifyCode::Fail => Some(Status::fatal(Verdict::Diverged, Reason::WrongOutput)),
        VerifyCode::ExceptionRaised | VerifyCode::EagerFailed if failed_at_base => {
            Some(Status::fatal(Verdict::Error, Reason::FailsOnBoth { stage, why: why() }))
        }
        // Base's module ran, whether its outputs were verified or not. If eager fails, there is no reference.
        VerifyCode::ExceptionRaised | VerifyCode::EagerFailed => {
            let ran = worked_at_base || code == VerifyCode::ExceptionRaised;
            let verdict = if ran { Verdict::Regressed } else { Verdict::Error };
            Some(Status::fatal(verdict, Reason::FailsAtHead { stage, why: why() }))
        }
        // Base's outputs were verified, but head's are not.
        VerifyCode::NondeterministicEagerRun | VerifyCode::VerifierDidntRun | VerifyCode::VerifierSkipped
            if worked_at_base =>
        {
            let reason =
                Reason::too_little(NOT_VERIFIED, format!("head's outputs were not verified: {}", why()));
            Some(Status::fatal(Verdict::Inconclusive, reason))
        }
        // There was a reference, but it could not be determined whether the output agrees with it.
        VerifyCode::VerifierDidntRun => {
            let reason = match base_code {
                Some(VerifyCode::VerifierDidntRun) => Reason::FailsOnBoth { stage, why: why() },
                _ => Reason::FailsAtHead { stage, why: why() },
            };
            Some(Status::fatal(Verdict::Error, reason))
        }
        // There is no reference; the row has the finding `unverified`.
        VerifyCode::NondeterministicEagerRun | VerifyCode::VerifierSkipped => None,
    }
}

/// Returns whether a side's outputs were compared with their references and agree with them. A constant
/// reference proves little about a model; for a test of one operator it may be the right result, and the row
/// has a note.
pub fn agrees(side: &Benchmark) -> bool {
    side.verification.as_ref().is_some_and(|found| match found.supported_code() {
        VerifyCode::Pass => true,
        VerifyCode::VerifierSkipped => !found.outputs.is_empty(),
        _ => false,
    })
}

/// Returns whether the sides have different modules whose outputs were not compared with each other.
fn is_uncompared(base: &Benchmark, head: &Benchmark) -> bool {
    let module = |side: &Benchmark| side.artifact.as_ref().map(|artifact| artifact.vmfb_sha256.clone());
    let compared = head.verification.as_ref().is_some_and(|found| !found.against_base.is_empty());
    !compared && module(base) != module(head)
}

/// Returns whether head's outputs were compared with their reference as completely as base's were.
fn covers(head: &Verification, base: Option<&Verification>) -> bool {
    let elements = |check: &OutputCheck| check.divergence.map_or(0, |divergence| divergence.elements);
    base.into_iter().flat_map(|base| &base.outputs).all(|wanted| {
        let mut same = head.outputs.iter().filter(|check| check.index == wanted.index);
        same.any(|check| elements(check) >= elements(wanted))
    })
}

/// Returns whether everything executed is the same on both sides.
pub fn identical(base: &Benchmark, head: &Benchmark) -> bool {
    same_module(base, head) && has_same(base, head, |artifact| &artifact.execution_sha256)
}

/// Returns whether both sides execute one module; its inputs, parameters and flags may differ.
pub fn same_module(base: &Benchmark, head: &Benchmark) -> bool {
    has_same(base, head, |artifact| &artifact.vmfb_sha256)
}

fn has_same(base: &Benchmark, head: &Benchmark, of: fn(&Artifact) -> &String) -> bool {
    let artifacts = base.artifact.as_ref().zip(head.artifact.as_ref());
    artifacts.is_some_and(|(base, head)| of(base) == of(head) && !of(base).is_empty())
}

/// The relation between the result of a benchmark on one side and an expectation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Met {
    /// The benchmark fails in the expected way.
    Fails(FailureKind),
    /// The benchmark works although it is expected to fail.
    Works,
}

/// Compares the benchmarks of one side with the expectations of a policy.
pub struct Expectations<'a>(Rules<'a>);

impl<'a> Expectations<'a> {
    pub fn new(policy: &'a Policy) -> Self {
        Self(Rules::new(policy, ""))
    }

    /// Returns `None` if nothing is expected, or if the benchmark fails in another way.
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

/// Returns whether a side fails as expected, but in a later stage than this one.
fn got_further(expectation: &Expectation, side: &Benchmark, failure: FailureKind) -> bool {
    matches!(met(expectation, side), Some(Met::Fails(other)) if other > failure)
}

/// Returns the verdict about a benchmark that is expected to fail. `None` if the usual rules decide: nothing
/// is expected, it does not fail as expected, or it worked at base.
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
        // This change repaired the benchmark: like a new one, it has nothing to compare with.
        Met::Works if expectation.removed && !worked_at_base && agrees(head) => {
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

/// One benchmark, on one side or on both.
#[derive(Debug, Clone, Copy)]
pub struct Matched<'a> {
    pub base: Option<&'a Benchmark>,
    pub head: Option<&'a Benchmark>,
}

impl<'a> Matched<'a> {
    /// Returns head's benchmark or, if head lacks it, base's.
    pub fn any(&self) -> Option<&'a Benchmark> {
        self.head.or(self.base)
    }

    /// Returns whether head reports this problem and base does not.
    pub fn is_new(&self, problem: &Lint) -> bool {
        self.head.is_some_and(|head| head.lints.contains(problem))
            && !self.base.is_some_and(|base| is_reported(&base.lints, problem))
    }
}

/// Returns whether these findings of base contain the problem. A stored session keeps only the code.
pub fn is_reported(lints: &[Lint], problem: &Lint) -> bool {
    lints.contains(problem) || lints.contains(&Lint::new(problem.code, WHEN_STORED))
}

/// Pairs the benchmarks of base and head, by name only. Returns every benchmark of either run once: in the order of
/// head, followed by those that only base has. If a run repeats a name, the first one is paired with the first, the
/// second with the second.
pub fn matched<'a>(base: &'a Run, head: &'a Run) -> Vec<Matched<'a>> {
    let mut waiting: HashMap<&BenchmarkName, Vec<usize>> = HashMap::with_capacity(base.benchmarks.len());
    for (index, benchmark) in base.benchmarks.iter().enumerate().rev() {
        waiting.entry(&benchmark.name).or_default().push(index);
    }
    let mut taken = vec![false; base.benchmarks.len()];
    let mut pairs = Vec::with_capacity(head.benchmarks.len());
    for benchmark in &head.benchmarks {
        let partner = waiting.get_mut(&benchmark.name).and_then(Vec::pop);
        if let Some(index) = partner {
            taken[index] = true;
        }
        pairs.push(Matched { base: partner.map(|index| &base.benchmarks[index]), head: Some(benchmark) });
    }
    let left = base.benchmarks.iter().zip(&taken).filter(|(_, taken)| !**taken);
    pairs.extend(left.map(|(benchmark, _)| Matched { base: Some(benchmark), head: None }));
    pairs
}

/// Returns a note about benchmarks that were compared under another name.
pub(super) fn notes(base: &Run) -> Option<String> {
    let renamed = base.benchmarks.iter().filter_map(|benchmark| {
        let from = benchmark.labels.get(RENAMED_FROM)?;
        Some(format!("{from} → {}", benchmark.name))
    });
    let renamed: Vec<String> = renamed.collect();
    (!renamed.is_empty()).then(|| {
        format!("head renamed benchmarks, and the policy for the old names applies: {}", renamed.join(", "))
    })
}

/// Adds a finding to each benchmark that only base has, if one of head's looks like the same one.
pub(super) fn point_out(rows: &mut [Row], pairs: &[Matched<'_>]) {
    let gone = pairs.iter().filter(|pair| pair.head.is_none()).filter_map(|pair| pair.base);
    let new: Vec<&Benchmark> =
        pairs.iter().filter(|pair| pair.base.is_none()).filter_map(|pair| pair.head).collect();
    let alike: BTreeMap<&BenchmarkName, &BenchmarkName> = gone
        .filter_map(|gone| {
            let mut found = new.iter().filter(|new| is_alike(gone, new));
            // If there are several candidates, none is more likely than the others.
            let one = found.next().filter(|_| found.next().is_none())?;
            Some((&gone.name, &one.name))
        })
        .collect();
    for row in rows {
        let Some(to) = alike.get(&row.benchmark) else { continue };
        if let Some(lint) = row.lints.iter_mut().find(|lint| lint.code == LintCode::Unmatched) {
            *lint = Lint::new(LintCode::Unmatched, renaming(&row.benchmark, to));
        }
    }
}

/// The beginning of the finding that a benchmark seems to have another name at head.
pub const LOOKS_RENAMED: &str = "looks renamed: ";

/// Describes a renaming, with the line that declares it. Only a model's name can be declared.
fn renaming(from: &BenchmarkName, to: &BenchmarkName) -> String {
    let text = format!("{LOOKS_RENAMED}{from} → {to}");
    match (from.as_str().split_once('/'), to.as_str().split_once('/')) {
        (Some((old, rest)), Some((new, same))) if rest == same => {
            format!("{text}; if it is, add {RENAMED_FROM} = \"{old}\" to the [[model]] {new}")
        }
        _ => text,
    }
}

/// Returns whether two benchmarks do the same work with the same inputs, as far as the results show.
fn is_alike(gone: &Benchmark, new: &Benchmark) -> bool {
    let asked = |benchmark: &Benchmark| {
        let Workload { device, inputs_sha256, reference_sha256, .. } =
            benchmark.artifact.as_ref()?.workload.clone()?;
        // Reference outputs are required, because without them many models share the same inputs.
        Some((device, inputs_sha256, reference_sha256?))
    };
    let module = |benchmark: &Benchmark| Some(benchmark.artifact.as_ref()?.vmfb_sha256.clone());
    asked(gone).is_some_and(|asked_of| asked(new) == Some(asked_of))
        || module(gone).is_some_and(|module_of| module(new) == Some(module_of))
}
