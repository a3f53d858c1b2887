//! Compares all outputs of a benchmark with their references.
//!
//! Compares the outputs of both sides for inputs other than the given ones. If a program contains fixed
//! results for the given inputs, its outputs for other inputs differ from base's.

use crate::model::{OutputCheck, Verification, VerifyCode};

use super::check::{check, tolerance_of};
use super::{DType, NumericsTolerance, Tensor, typical_magnitude};

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
/// empty. Outputs without a finite element agree if they are equal, although they prove nothing. If the numbers of
/// outputs differ, the first missing one counts as different.
pub fn against_base(
    head: &[Tensor],
    base: &[Tensor],
    exact: &[Tensor],
    tolerances: &[NumericsTolerance],
) -> Vec<OutputCheck> {
    let of_pair = |(index, (head, base)): (usize, (&Tensor, &Tensor))| {
        if head.is_same_without_finite(base) {
            return OutputCheck { index, code: VerifyCode::Pass, divergence: None, why: None };
        }
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
    let found: Option<Vec<String>> =
        base.iter().map(|output| nan(output).or_else(|| vacuous(output, tolerances))).collect();
    let why = found?.into_iter().next()?;
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
    if nan(reference).is_some() {
        // The check of such an output fails with its own message.
        return None;
    }
    let values = reference.to_f64();
    let agrees = |with: &Tensor| check(0, with, reference, None, tolerances).code == VerifyCode::Pass;
    let one_number = || {
        (!reference.is_one_number() && agrees(&reference.splat(median_at(&values))))
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

/// Returns why agreement proves little if all rows of an output are equal: it agrees even if only one of them is computed.
pub fn equal_rows(output: &Tensor) -> Option<String> {
    let count = output.shape().iter().copied().find(|side| *side > 1)?;
    let values = output.to_f64();
    let row = values.len() / count;
    let are_equal = row > 1 && values.chunks(row).all(|other| other == &values[..row]);
    are_equal
        .then(|| format!("its {count} rows are equal, so it would agree if only one of them were computed"))
}

fn nan(output: &Tensor) -> Option<String> {
    let is_nan = !output.is_empty() && output.to_f64().iter().all(|value| value.is_nan());
    is_nan.then(|| "every element is NaN".to_owned())
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

/// Factor by which the sides may be farther apart than for the given inputs.
const FARTHER: f64 = 4.0;
/// One in this many elements of an integer output may differ. Rounding before a comparison (an `argmax`, for
/// example) changes a few elements. The given inputs can be chosen such that rounding changes no element; the
/// other inputs can't be chosen.
const FLIPPED: u64 = 16;

/// Compares head's outputs for other inputs with base's, and returns the checks that fail. `given` and
/// `checks` are base's outputs for the given inputs and their comparison with head's.
pub fn with_other_inputs(
    head: &[Tensor],
    base: &[Tensor],
    given: &[Tensor],
    checks: &[OutputCheck],
    tolerances: &[NumericsTolerance],
) -> Vec<OutputCheck> {
    let found = against_base(head, base, &[], tolerances);
    let changes = against_base(base, given, &[], tolerances);
    let pairs = found.into_iter().zip(checks.iter().zip(&changes)).zip(base.iter().zip(given));
    let failing = pairs.filter(|((found, (check, change)), (base, given))| {
        found.code != VerifyCode::Pass
            && !is_beyond_domain(base, given)
            && !is_as_close(found, check, change, base)
    });
    let worded = failing.map(|((found, _), _)| OutputCheck {
        why: found.why.map(|why| format!("called with other inputs: {why}")),
        ..found
    });
    worded.collect()
}

/// Returns whether the model is not defined for the other inputs, so that its results prove nothing.
fn is_beyond_domain(base: &Tensor, given: &Tensor) -> bool {
    let all_finite = |tensor: &Tensor| tensor.to_f64().iter().all(|value| value.is_finite());
    let any_finite = base.to_f64().iter().any(|value| value.is_finite());
    !any_finite || (!all_finite(base) && all_finite(given))
}

/// Returns whether the sides are about as close to each other as for the given inputs: an ill-conditioned
/// model has correct outputs that differ by more than the tolerance, and other inputs have no fp64 reference.
/// `change` compares base's outputs for the other inputs with those for the given ones.
fn is_as_close(found: &OutputCheck, check: &OutputCheck, change: &OutputCheck, base: &Tensor) -> bool {
    let (Some(found), Some(given)) = (found.divergence, check.divergence) else { return false };
    if !matches!(base.dtype(), DType::F64 | DType::F32 | DType::F16 | DType::Bf16) {
        // In a mask with few ones, a fixed result differs in few elements, but in all those that base changed.
        let changed = change.divergence.map_or(0, |change| change.mismatched);
        let followed = if changed == 0 { u64::MAX } else { changed / 2 };
        return found.mismatched <= (found.elements / FLIPPED).min(followed);
    }
    let (Some(error), Some(known), Some(allowed)) = (found.error, given.error, found.allowed_error) else {
        return false;
    };
    // If the whole output is within its bounds, the check failed because a part is lost, which rounding
    // doesn't cause.
    let is_beyond = found.mismatched > 0 || error > allowed;
    let has_few = found.mismatched as f64 <= FARTHER * given.mismatched as f64;
    is_beyond && has_few && found.non_finite == 0 && error <= FARTHER * known
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f32s(values: &[f32]) -> Tensor {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Tensor::from_raw(DType::F32, vec![values.len()], &bytes).unwrap()
    }

    /// Returns whether other inputs show a difference. Each pair of outputs is head's and base's.
    fn differs(given: [&Tensor; 2], others: [&Tensor; 2]) -> bool {
        let [given, others] = [given, others].map(|pair| pair.map(std::slice::from_ref));
        let checks = against_base(given[0], given[1], &[], &[]);
        !with_other_inputs(others[0], others[1], given[1], &checks, &[]).is_empty()
    }

    #[test]
    fn outputs_for_other_inputs_may_differ_as_much_as_for_the_given_ones() {
        let [base, head] = [f32s(&[1.0, 2.0, 3.0]), f32s(&[1.0, 2.01, 3.0])];
        let [others, far, near] = [[4.0, 5.0, 6.0], [4.0, 5.0, 3.0], [4.0, 5.03, 6.0]].map(|x| f32s(&x));
        assert!(!differs([&base, &base], [&others, &others]));
        assert!(differs([&base, &base], [&near, &others]));
        assert!(!differs([&head, &base], [&near, &others]));
        assert!(differs([&head, &base], [&far, &others]));
    }

    #[test]
    fn a_complex_output_proves_nothing_if_one_number_is_in_every_element() {
        let complex =
            |values: &[f32]| Tensor { shape: vec![values.len() / 2, 2], complex: true, ..f32s(values) };
        for constant in [[1.0, 0.0, 1.0, 0.0], [1.0, 2.0, 1.0, 2.0], [0.0; 4]] {
            assert!(vacuous(&complex(&constant), &[]).is_some(), "{constant:?}");
        }
        assert_eq!(vacuous(&complex(&[1.0, 1.0]), &[]), None, "a single number is only compared with zero");
        assert_eq!(vacuous(&complex(&[1.0, 2.0, 2.0, 1.0]), &[]), None);
    }

    #[test]
    fn other_inputs_for_which_base_has_no_finite_result_decide_nothing() {
        let given = f32s(&[1.0, 2.0, 3.0]);
        let [invalid, masked] = [f32s(&[f32::NAN, 5.0, 6.0]), f32s(&[f32::NEG_INFINITY, 2.0, 3.0])];
        assert!(!differs([&given, &given], [&given, &invalid]));
        assert!(differs([&given, &given], [&invalid, &given]));
        assert!(differs([&masked, &masked], [&masked, &invalid]));
    }

    #[test]
    fn few_integers_may_differ_for_other_inputs() {
        let integers = |values: &[u8]| Tensor::from_raw(DType::U8, vec![values.len()], values).unwrap();
        let base: Vec<u8> = (0..32).collect();
        let mut few = base.clone();
        few[3] = 9;
        let [given, few, many] = [&base, &few, &vec![0; 32]].map(|values| integers(values));
        assert!(!differs([&given, &given], [&few, &given]));
        assert!(differs([&given, &given], [&many, &given]));
        assert!(differs([&integers(&[3]), &integers(&[3])], [&integers(&[3]), &integers(&[4])]));
        // A mask with few ones, a fixed one, and one that follows base in most of the elements that change.
        let mask = |ones: &[usize]| {
            let elements: Vec<u8> = (0..640).map(|at| u8::from(ones.contains(&at))).collect();
            integers(&elements)
        };
        let [given, others] = [mask(&[3, 50, 90]), mask(&[7, 60, 95])];
        assert!(differs([&given, &given], [&given, &others]));
        assert!(!differs([&given, &given], [&mask(&[7, 60]), &others]));
    }
}
