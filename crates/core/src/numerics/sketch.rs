//! Compares outputs of different sessions, of which only sketches are stored.
//!
//! Each sum of a sketch adds the elements with independent random signs. The square of the difference between two outputs'
//! sums then has the squared Euclidean distance of the outputs as its expected value.

use crate::model::{Number, OutputCheck, OutputSketch, VerifyCode, significant};

use super::check::tolerance_of;
use super::{NumericsTolerance, Tensor, typical_magnitude};

/// Number of sums for a scale.
const SUMS: usize = 16;

/// Factor by which the estimated squared distance of outputs that agree may exceed the allowed one. A mean of 16 squares of
/// standard normal variables exceeds 4.5 once in 2·10⁸ cases.
const BEYOND_CHANCE: f64 = 4.5;

/// Share of the tolerance that an element that is zero has.
const OF_ZEROS: f64 = 0.1;

impl OutputSketch {
    /// Summarizes an output. Each element counts as x / (|x| + s), so that large elements, such as masks, don't hide the others.
    /// A scale of its own would hide a wrong factor of the whole output, so it is one of few fixed ones.
    pub fn new(output: &Tensor, tolerances: &[NumericsTolerance]) -> Self {
        let tolerance = tolerance_of(output.dtype(), tolerances);
        let values = output.to_f64();
        let magnitude = typical_magnitude(&values);
        let exponent = scale_of(&values).max(tolerance.atol).max(f64::MIN_POSITIVE).log2().floor() as i32;
        let scales = [exponent, exponent + 1].map(|power| f64::from(power).exp2());
        let mut sums = [[0.0; SUMS]; 2];
        let (mut of_elements, mut of_output) = ([0.0; 2], [0.0; 2]);
        for (at, value) in values.iter().enumerate() {
            let signs = signs(at as u64);
            for (scale, sums) in scales.iter().zip(&mut sums) {
                let bounded = match value {
                    value if value.is_nan() => 0.0,
                    value if value.is_infinite() => value.signum(),
                    value => value / (value.abs() + scale),
                };
                for (bit, sum) in sums.iter_mut().enumerate() {
                    *sum += if signs >> bit & 1 == 0 { bounded } else { -bounded };
                }
            }
            if value.is_finite() {
                let size = value.abs();
                let allowed = tolerance.atol + tolerance.rtol * size + tolerance.stol * magnitude;
                // Zeros are rarely rounded, and many of them must not hide the other elements.
                let share = if *value == 0.0 { OF_ZEROS } else { 1.0 };
                for (at, scale) in scales.iter().enumerate() {
                    // The derivative of x / (|x| + s).
                    let slope = scale / (size + scale).powi(2);
                    of_elements[at] += (allowed * slope).powi(2);
                    of_output[at] += (share * (size + magnitude) * slope).powi(2);
                }
            }
        }
        let is_limited = tolerance.max_error < f64::MAX;
        let of_output = of_output
            .map(|squares| if is_limited { tolerance.max_error * f64::sqrt(squares) } else { f64::INFINITY });
        let allowed = [0, 1].map(|at| Number(f64::sqrt(of_elements[at]).min(of_output[at])));
        let count = |is: fn(&f64) -> bool| values.iter().filter(|value| is(value)).count() as u64;
        Self {
            shape: output.describe(),
            sha256: output.sha256(),
            not_finite: [
                count(|value| value.is_nan()),
                count(|value| *value == f64::INFINITY),
                count(|value| *value == f64::NEG_INFINITY),
            ],
            exponent,
            sums: sums.map(|sums| sums.into_iter().map(Number).collect()),
            allowed,
        }
    }

    /// Returns the reason why another output is not the same within the tolerance.
    fn difference(&self, other: &Self) -> Option<String> {
        if self.shape != other.shape {
            return Some(format!("{}, but the stored one is {}", other.shape, self.shape));
        }
        if self.sha256 == other.sha256 {
            return None;
        }
        if self.not_finite != other.not_finite {
            return Some("not as many of its elements are NaN or infinite as of the stored one".to_owned());
        }
        let scales = match other.exponent.checked_sub(self.exponent) {
            Some(0) => Some((0, 0)),
            Some(1) => Some((1, 0)),
            Some(-1) => Some((0, 1)),
            _ => None,
        };
        let Some((own, others)) = scales else {
            return Some("its elements are of another size than those of the stored one".to_owned());
        };
        let (stored, found) = (&self.sums[own], &other.sums[others]);
        let squares: f64 = stored.iter().zip(found).map(|(one, two)| (one.0 - two.0).powi(2)).sum();
        let distance = (squares / SUMS as f64).sqrt();
        let allowed = self.allowed[own].0;
        let is_same = stored.len() == SUMS
            && found.len() == SUMS
            && allowed > 0.0
            && distance.is_finite()
            && distance <= BEYOND_CHANCE.sqrt() * allowed;
        (!is_same).then(|| match distance / allowed {
            times if times.is_finite() && times > 1.0 => {
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

/// Returns the root mean square of the elements that are neither zero nor infinite, where large ones, such as masks, count as 16
/// times the lower quartile of their sizes; 0 if there are none. Rounding moves it as little as it moves the elements.
fn scale_of(values: &[f64]) -> f64 {
    const MOST: f64 = 16.0;
    let mut sizes: Vec<f64> = values.iter().map(|x| x.abs()).filter(|x| x.is_finite() && *x > 0.0).collect();
    if sizes.is_empty() {
        return 0.0;
    }
    let quarter = sizes.len() / 4;
    let most = MOST * *sizes.select_nth_unstable_by(quarter, f64::total_cmp).1;
    let squares: f64 = sizes.iter().map(|size| (size.min(most) / most).powi(2)).sum();
    most * (squares / sizes.len() as f64).sqrt()
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
            let changed = |change: &dyn Fn(f32, f32) -> f32| {
                let pairs = values.iter().zip(&noise);
                f32s(&[count], &pairs.map(|(value, noise)| change(*value, *noise)).collect::<Vec<_>>())
            };
            let stored = f32s(&[count], &values);
            assert!(
                agree(&stored, &stored) && agree(&stored, &changed(&|value, noise| value + 2e-6 * noise))
            );
            assert!(!agree(&stored, &changed(&|value, noise| value + 1e-2 * noise)), "{count}");
            for factor in [0.3, 0.5, 0.99, 1.01, 1.2, 2.0, 3.0, -1.0] {
                assert!(!agree(&stored, &changed(&|value, _| value * factor)), "{count} {factor}");
            }
            if count > 1 {
                let reversed: Vec<f32> = values.iter().rev().copied().collect();
                assert!(!agree(&stored, &f32s(&[count], &reversed)), "{count}");
            }
        }
    }

    #[test]
    fn masks_and_large_elements_do_not_hide_the_others() {
        let values = normal(5, 4096);
        for mask in [-1e4, -65504.0, -1e9, f32::MIN, f32::NEG_INFINITY] {
            let masked = |values: &[f32], factor: f32| {
                let element = |(at, value): (usize, &f32)| if at % 2 == 0 { mask } else { factor * value };
                f32s(&[64, 64], &values.iter().enumerate().map(element).collect::<Vec<_>>())
            };
            let stored = masked(&values, 1.0);
            assert!(agree(&stored, &masked(&values, 1.000_001)), "{mask}");
            for wrong in [masked(&values, 1.2), masked(&values, 0.0), masked(&normal(6, 4096), 1.0)] {
                assert!(!agree(&stored, &wrong), "{mask}");
            }
        }
        // A few elements exceed the others by far (a lognormal distribution).
        let heavy: Vec<f64> =
            normal(7, 4096).into_iter().map(|value| (3.0 * f64::from(value)).exp()).collect();
        let rounded = |size: f64| -> Vec<f64> {
            heavy
                .iter()
                .zip(normal(8, 4096))
                .map(|(value, noise)| value * (1.0 + size * f64::from(noise)))
                .collect()
        };
        let f32s =
            |values: &[f64]| f32s(&[4096], &values.iter().map(|value| *value as f32).collect::<Vec<_>>());
        assert!(agree(&f32s(&heavy), &f32s(&rounded(1e-5))));
        assert!(!agree(&f32s(&heavy), &f32s(&rounded(1e-2))));
    }

    fn bf16s(values: &[f32]) -> Tensor {
        let bytes: Vec<u8> =
            values.iter().flat_map(|value| half::bf16::from_f32(*value).to_le_bytes()).collect();
        Tensor::from_raw(DType::Bf16, vec![values.len()], &bytes).unwrap()
    }

    #[test]
    fn coarse_types_and_sparse_outputs_hide_no_wrong_elements() {
        let values = normal(9, 4096);
        let stored = bf16s(&values);
        let noise = normal(10, 4096);
        let noisy: Vec<f32> =
            values.iter().zip(&noise).map(|(value, noise)| value * (1.0 + 0.003 * noise)).collect();
        assert!(agree(&stored, &bf16s(&noisy)));
        for factor in [0.7, 1.3, 1.5] {
            assert!(
                !agree(&stored, &bf16s(&values.iter().map(|value| value * factor).collect::<Vec<_>>())),
                "{factor}"
            );
        }
        // Twenty ones among 10,000 zeros, and at other places, or with another sign.
        let sparse = |first: usize, sign: f32| -> Vec<f32> {
            (0..10_000).map(|at| if at % 500 == first { sign } else { 0.0 }).collect()
        };
        assert!(agree(&bf16s(&sparse(3, 1.0)), &bf16s(&sparse(3, 1.0078125))));
        assert!(!agree(&bf16s(&sparse(3, 1.0)), &bf16s(&sparse(4, 1.0))));
        assert!(!agree(&bf16s(&sparse(3, 1.0)), &bf16s(&sparse(3, -1.0))));
    }

    #[test]
    fn a_rounded_large_element_is_no_other_size() {
        let outliers = |one: f32, two: f32| {
            let mut values: Vec<f32> = normal(11, 1000).into_iter().map(|value| 100.0 * value).collect();
            (values[3], values[700]) = (one, two);
            bf16s(&values)
        };
        assert!(agree(&outliers(9984.0, 9984.0), &outliers(9984.0, 10048.0)));
        let ints = |last: i8| {
            let bytes: Vec<u8> = (0..4096).map(|at| if at == 4095 { last as u8 } else { 0 }).collect();
            Tensor::from_raw(DType::I8, vec![4096], &bytes).unwrap()
        };
        let tolerance = NumericsTolerance { atol: 1.0, ..NumericsTolerance::for_dtype(DType::I8) };
        let [zero, one] = [0, 1].map(|last| OutputSketch::new(&ints(last), std::slice::from_ref(&tolerance)));
        assert_eq!(zero.difference(&one), None);
    }

    #[test]
    fn integers_shapes_and_values_that_are_not_finite_must_be_equal() {
        let ints = |values: &[i64]| {
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            Tensor::from_raw(DType::I64, vec![values.len()], &bytes).unwrap()
        };
        let large = 1 << 60;
        assert!(agree(&ints(&[1, 2, large]), &ints(&[1, 2, large])));
        assert!(!agree(&ints(&[1, 2, 3]), &ints(&[1, 2, 4])));
        assert!(!agree(&ints(&[1, 2, large]), &ints(&[1, 2, large + 1])));
        assert!(!agree(&f64s(&[2, 2], &[1.0; 4]), &f64s(&[4], &[1.0; 4])));
        let [nan, inf, finite] = [f64::NAN, f64::NEG_INFINITY, -1e38].map(|first| f64s(&[2], &[first, 2.0]));
        for (one, two) in [(&nan, &inf), (&inf, &finite), (&finite, &nan)] {
            assert!(agree(one, one) && !agree(one, two) && !agree(two, one));
        }
    }

    #[test]
    fn a_sketch_without_sums_agrees_with_no_other() {
        let whole = OutputSketch::new(&f64s(&[1], &[1.0]), &[]);
        let empty = OutputSketch { sums: [Vec::new(), Vec::new()], sha256: "f".repeat(64), ..whole.clone() };
        for (base, head) in [(&whole, &empty), (&empty, &whole)] {
            let checks = against_sketches(std::slice::from_ref(head), std::slice::from_ref(base));
            assert_eq!(checks[0].code, VerifyCode::Fail);
        }
        assert_eq!(against_sketches(&[], &[whole]).len(), 1);
    }
}
