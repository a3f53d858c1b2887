//! Vacuous references: a constant output would also match them, so they verify nothing.

use crate::model::VerifyCode;

use super::check::{check, tolerance_of};
use super::tensor::Tensor;
use super::{NumericsTolerance, typical_magnitude};

/// Why matching this reference verifies nothing, or `None` if it does verify something. It is vacuous if it is empty, or
/// if zeros or the same number everywhere would match it under these tolerances. A single number is only compared with
/// zero.
pub(super) fn vacuous(reference: &Tensor, tolerances: &[NumericsTolerance]) -> Option<String> {
    if reference.is_empty() {
        return Some("the reference has no element".to_owned());
    }
    let values = reference.to_f64();
    if !values.iter().any(|value| value.is_finite()) {
        // That check fails with its own message.
        return None;
    }
    let agrees = |with: &Tensor| check(0, with, reference, None, tolerances).code == VerifyCode::Pass;
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
        return Some("zeros would agree with the reference, so small are its elements".to_owned());
    }
    if values.len() > 1 && agrees(&reference.splat(median_at(&values))) {
        return Some("one number in every element would agree with the reference".to_owned());
    }
    None
}

/// The index of the median of the finite elements.
fn median_at(values: &[f64]) -> usize {
    let mut finite: Vec<(f64, usize)> =
        values.iter().copied().zip(0..).filter(|(value, _)| value.is_finite()).collect();
    let middle = finite.len() / 2;
    if finite.is_empty() {
        return 0;
    }
    finite.select_nth_unstable_by(middle, |(a, _), (b, _)| a.total_cmp(b)).1.1
}
