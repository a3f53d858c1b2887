//! Compares all outputs of a benchmark with their references.

use crate::model::{OutputCheck, Verification, VerifyCode};

use super::check::{check, tolerance_of};
use super::{NumericsTolerance, Tensor, typical_magnitude};

/// Compares every output with the reference at the same position.
///
/// `references64` contains the fp64 references in the same order, or is empty. Without references nothing is
/// verified, which a separate code reports. It is a failure if the numbers of outputs and references differ.
/// References that a constant output would match verify nothing either.
pub fn verify(
    outputs: &[Tensor],
    references: &[Tensor],
    references64: &[Tensor],
    tolerances: &[NumericsTolerance],
) -> Verification {
    if references.is_empty() {
        return Verification::bare(VerifyCode::VerifierSkipped, Some("there is no reference".to_owned()));
    }
    let checks: Vec<OutputCheck> = outputs
        .iter()
        .zip(references)
        .enumerate()
        .map(|(index, (output, reference))| {
            check(index, output, reference, references64.get(index), tolerances)
        })
        .collect();
    let why = if outputs.len() == references.len() {
        checks
            .iter()
            .find(|check| check.code != VerifyCode::Pass)
            .map(|check| format!("output {}: {}", check.index, check.why.as_deref().unwrap_or("differs")))
    } else {
        let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        Some(format!(
            "{} where there {} {}",
            count(outputs.len(), "output"),
            if references.len() == 1 { "is" } else { "are" },
            count(references.len(), "reference")
        ))
    };
    if why.is_some() {
        return Verification { outputs: checks, ..Verification::bare(VerifyCode::Fail, why) };
    }
    let Some(reasons) = all_vacuous(references, tolerances) else {
        return Verification { outputs: checks, ..Verification::bare(VerifyCode::Pass, None) };
    };
    let why = reasons.first().map(|why| format!("output 0: {why}, so it proves nothing"));
    let outputs = checks.into_iter().zip(reasons);
    let outputs = outputs.map(|(check, why)| OutputCheck {
        code: VerifyCode::VerifierSkipped,
        why: Some(why),
        ..check
    });
    Verification { outputs: outputs.collect(), ..Verification::bare(VerifyCode::VerifierSkipped, why) }
}

/// Compares head's outputs with base's. Base is the reference; `exact` is the same computation in fp64, or
/// empty. If the numbers of outputs differ, the first missing one counts as different.
pub fn against_base(
    head: &[Tensor],
    base: &[Tensor],
    exact: &[Tensor],
    tolerances: &[NumericsTolerance],
) -> Vec<OutputCheck> {
    let of_pair = |(index, (head, base)): (usize, (&Tensor, &Tensor))| {
        let found = check(index, head, base, exact.get(index), tolerances);
        // `check` describes every difference as one from "the reference".
        OutputCheck { why: found.why.map(|why| why.replace("the reference", "base's output")), ..found }
    };
    let mut checks: Vec<OutputCheck> = head.iter().zip(base).enumerate().map(of_pair).collect();
    if head.len() != base.len() {
        checks.push(OutputCheck {
            index: checks.len(),
            code: VerifyCode::Fail,
            divergence: None,
            why: Some(format!("head has {} outputs, base has {}", head.len(), base.len())),
        });
    }
    checks
}

// A reference is vacuous, and verifies nothing, if a constant output would match it.

/// Returns why agreement with base's outputs proves nothing if they are the only reference.
pub fn vacuous_base(base: &[Tensor], tolerances: &[NumericsTolerance]) -> Option<String> {
    let why = all_vacuous(base, tolerances)?.into_iter().next()?;
    Some(format!("base's outputs are the only references, and they prove nothing; output 0: {why}"))
}

/// Returns why each reference verifies nothing; `None` if at least one is meaningful, which is enough because
/// another output may be a mask of ones.
fn all_vacuous(references: &[Tensor], tolerances: &[NumericsTolerance]) -> Option<Vec<String>> {
    references.iter().map(|reference| vacuous(reference, tolerances)).collect()
}

/// Returns why matching this reference verifies nothing, or `None` if it does verify something. A reference
/// is vacuous if it is empty, or if zeros or one repeated number would match it under these tolerances. A
/// single number is only compared with zero.
pub fn vacuous(reference: &Tensor, tolerances: &[NumericsTolerance]) -> Option<String> {
    if reference.is_empty() {
        return Some("the reference has no element".to_owned());
    }
    let values = reference.to_f64();
    if values.iter().all(|value| value.is_nan()) {
        // The check of such an output fails with its own message.
        return None;
    }
    let agrees = |with: &Tensor| check(0, with, reference, None, tolerances).code == VerifyCode::Pass;
    let one_number = || {
        (values.len() > 1 && agrees(&reference.splat(median_at(&values))))
            .then(|| "one number in every element would agree with the reference".to_owned())
    };
    if !values.iter().any(|value| value.is_finite()) {
        return one_number();
    }
    let magnitude = typical_magnitude(&values);
    if magnitude == 0.0 {
        return Some("the reference is zero in every element".to_owned());
    }
    let atol = tolerance_of(reference.dtype(), tolerances).atol;
    if magnitude <= atol {
        return Some(format!(
            "the reference's typical magnitude {magnitude:.1e} is within the absolute tolerance {atol:.0e}, so no element \
             can be wrong"
        ));
    }
    let zeros = reference.zeros();
    if agrees(&zeros) {
        return Some("the reference's elements are so small that zeros would agree with it".to_owned());
    }
    one_number()
}

/// Returns the index of the median of the finite elements.
fn median_at(values: &[f64]) -> usize {
    let mut finite: Vec<(f64, usize)> =
        values.iter().copied().zip(0..).filter(|(value, _)| value.is_finite()).collect();
    let middle = finite.len() / 2;
    if finite.is_empty() {
        return 0;
    }
    finite.select_nth_unstable_by(middle, |(a, _), (b, _)| a.total_cmp(b)).1.1
}
