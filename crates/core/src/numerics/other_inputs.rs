//! Compares the outputs of both sides for inputs other than the given ones. A program that contains the
//! results for the given inputs differs from base for the others.

use crate::model::{OutputCheck, VerifyCode};

use super::verify::against_base;
use super::{DType, NumericsTolerance, Tensor};

/// Factor by which the sides may be farther apart than for the given inputs.
const FARTHER: f64 = 4.0;
/// One in this many elements of an integer output may differ. Rounding before a comparison (an `argmax`, for
/// example) changes a few elements. The given inputs can be chosen such that it changes none; the other
/// inputs can't.
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
    let pairs = found.into_iter().zip(checks).zip(base.iter().zip(given));
    let failing = pairs.filter(|((found, check), (base, given))| {
        found.code != VerifyCode::Pass && !is_beyond_domain(base, given) && !is_as_close(found, check, base)
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
fn is_as_close(found: &OutputCheck, check: &OutputCheck, base: &Tensor) -> bool {
    let (Some(found), Some(given)) = (found.divergence, check.divergence) else { return false };
    if !matches!(base.dtype(), DType::F64 | DType::F32 | DType::F16 | DType::Bf16) {
        return found.mismatched <= found.elements / FLIPPED;
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
    }
}
