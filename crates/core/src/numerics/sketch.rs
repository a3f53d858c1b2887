//! Compares outputs of different sessions, of which only sketches are stored.
//!
//! Each sum of a sketch adds the elements with independent random signs. The square of the difference between two outputs'
//! sums then has the squared Euclidean distance of the outputs as its expected value.

use crate::model::{Number, OutputCheck, OutputSketch, VerifyCode, significant};

use super::check::tolerance_of;
use super::{NumericsTolerance, Tensor, typical_magnitude};

/// Number of sums of a sketch.
const SUMS: usize = 16;

/// Size from which an element is a mask: sums with it would lose the digits of all others.
const MASK: f64 = 1e30;

/// Factor by which the estimated squared distance of outputs that agree may exceed the allowed one. A mean of 16 squares of
/// standard normal variables exceeds 4.5 once in 2·10⁸ cases.
const BEYOND_CHANCE: f64 = 4.5;

/// Share of the sum of all sizes up to which the order of an addition in double precision changes a sum.
const ROUNDING: f64 = 1e-13;

impl OutputSketch {
    pub fn new(output: &Tensor, tolerances: &[NumericsTolerance]) -> Self {
        let tolerance = tolerance_of(output.dtype(), tolerances);
        let values = output.to_f64();
        let magnitude = typical_magnitude(&values);
        let is_counted = |value: &f64| value.abs() < MASK;
        let mut sums = [0.0; SUMS];
        let (mut of_elements, mut of_scale, mut sizes) = (0.0, 0.0, 0.0);
        for (at, value) in values.iter().enumerate().filter(|(_, value)| is_counted(value)) {
            let signs = signs(at as u64);
            for (bit, sum) in sums.iter_mut().enumerate() {
                *sum += if signs >> bit & 1 == 0 { *value } else { -value };
            }
            let size = value.abs();
            sizes += size;
            of_elements += (tolerance.atol + tolerance.rtol * size + tolerance.stol * magnitude).powi(2);
            of_scale += (size + magnitude).powi(2);
        }
        // The bound of the normalized error is the smaller one for types that have rounding.
        let allowed = of_elements.sqrt().min(tolerance.max_error * of_scale.sqrt());
        let exact = values.iter().all(|value| value.fract() == 0.0);
        let rounding = if exact { 0.0 } else { ROUNDING * sizes };
        Self {
            shape: output.describe(),
            non_finite: values.iter().filter(|value| !is_counted(value)).count() as u64,
            sums: sums.into_iter().map(Number).collect(),
            allowed: Number(allowed + rounding),
        }
    }

    /// Returns the reason why another output is not the same within the tolerance.
    fn difference(&self, other: &Self) -> Option<String> {
        if self.shape != other.shape {
            return Some(format!("{}, but the stored one is {}", other.shape, self.shape));
        }
        if self.non_finite != other.non_finite {
            let [stored, found] = [self, other].map(|sketch| sketch.non_finite);
            return Some(format!("{} not finite, but {stored} of the stored one", are(found)));
        }
        let allowed = self.allowed.0;
        let pairs = self.sums.iter().zip(&other.sums);
        let squares: f64 = pairs.map(|(one, two)| (one.0 - two.0).powi(2)).sum();
        let distance = (squares / SUMS as f64).sqrt();
        let is_same = self.sums.len() == SUMS
            && other.sums.len() == SUMS
            && distance.is_finite()
            && distance <= BEYOND_CHANCE.sqrt() * allowed;
        (!is_same).then(|| match distance / allowed {
            times if times.is_finite() => {
                format!(
                    "about {} times as far from the stored one as the tolerance allows",
                    significant(times, 2)
                )
            }
            _ => "it differs from the stored one".to_owned(),
        })
    }
}

/// Compares head's outputs with those that a stored session had, by their sketches.
pub fn against_sketches(head: &[OutputSketch], base: &[OutputSketch]) -> Vec<OutputCheck> {
    let check = |index, why: Option<String>| {
        let code = if why.is_none() { VerifyCode::Pass } else { VerifyCode::Fail };
        OutputCheck { index, code, divergence: None, why }
    };
    let pairs = base.iter().zip(head).map(|(base, head)| base.difference(head));
    let mut checks: Vec<OutputCheck> = pairs.enumerate().map(|(index, why)| check(index, why)).collect();
    if head.len() != base.len() {
        let why = format!("head has {} outputs, the stored session has {}", head.len(), base.len());
        checks.push(check(checks.len(), Some(why)));
    }
    checks
}

fn are(count: u64) -> String {
    if count == 1 { "1 element is".to_owned() } else { format!("{count} elements are") }
}

/// Returns 64 random bits for a position, by one step of SplitMix64 (Steele, Lea and Flood, 2014).
fn signs(at: u64) -> u64 {
    let mut bits = at.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{f32s, f64s, normal};
    use super::*;
    use crate::numerics::DType;

    fn agree(stored: &Tensor, found: &Tensor) -> bool {
        let [stored, found] = [stored, found].map(|tensor| vec![OutputSketch::new(tensor, &[])]);
        against_sketches(&found, &stored).iter().all(|check| check.code == VerifyCode::Pass)
    }

    #[test]
    fn rounding_agrees_and_wrong_outputs_do_not() {
        for count in [1, 7, 1000, 100_000] {
            let values = normal(3, count);
            let noise = normal(4, count);
            let with_error = |size: f32| {
                f32s(
                    &[count],
                    &values.iter().zip(&noise).map(|(value, noise)| value + size * noise).collect::<Vec<_>>(),
                )
            };
            let stored = f32s(&[count], &values);
            assert!(agree(&stored, &stored) && agree(&stored, &with_error(2e-6)), "{count}");
            assert!(!agree(&stored, &with_error(1e-3)), "{count}");
            assert!(!agree(
                &stored,
                &f32s(&[count], &values.iter().map(|value| value * 1.001).collect::<Vec<_>>())
            ));
            if count > 1 {
                let reversed: Vec<f32> = values.iter().rev().copied().collect();
                assert!(!agree(&stored, &f32s(&[count], &reversed)), "{count}");
            }
        }
    }

    #[test]
    fn integers_shapes_and_values_that_are_not_finite_must_be_equal() {
        let ints = |values: &[i32]| {
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            Tensor::from_raw(DType::I32, vec![values.len()], &bytes).unwrap()
        };
        assert!(agree(&ints(&[1, 2, 3]), &ints(&[1, 2, 3])));
        assert!(!agree(&ints(&[1, 2, 3]), &ints(&[1, 2, 4])));
        assert!(!agree(&f64s(&[2, 2], &[1.0; 4]), &f64s(&[4], &[1.0; 4])));
        assert!(!agree(&f64s(&[2], &[1.0, 2.0]), &f64s(&[2], &[1.0, f64::NAN])));
        assert!(agree(&f64s(&[2], &[-1e38, 2.0]), &f64s(&[2], &[f64::NEG_INFINITY, 2.0])));
    }

    #[test]
    fn a_sketch_without_sums_agrees_with_nothing() {
        let whole = OutputSketch::new(&f64s(&[1], &[1.0]), &[]);
        let empty = OutputSketch { sums: Vec::new(), ..whole.clone() };
        for (base, head) in [(&whole, &empty), (&empty, &whole), (&empty, &empty)] {
            let checks = against_sketches(std::slice::from_ref(head), std::slice::from_ref(base));
            assert_eq!(checks[0].code, VerifyCode::Fail);
        }
        assert_eq!(against_sketches(&[], &[whole]).len(), 1);
    }
}
