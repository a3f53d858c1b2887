//! Detects parts of an output that bear no resemblance to the reference. The tolerance grows with the
//! magnitude of the whole tensor, so a column of small values next to large ones could be all zeros without
//! any element beyond the tolerance.

use half::f16;

use super::NumericsTolerance;
use super::tensor::{DType, Tensor};

/// A part is lost if its error is at least this share of its own values.
const LOST: f64 = 0.5;
/// Minimum number of values in a part: fewer can be small by chance.
const LEAST_VALUES: u64 = 8;
/// The error of a lost part exceeds the other parts' error by this factor: the rounding of large terms, which
/// all parts share, may be larger than a small part.
const SHARED: f64 = 16.0;
/// The error of a lost part exceeds the reference's error, if known, by this factor: a part that consists of
/// rounding errors even in the reference can't be lost.
const EAGER: f64 = 4.0;
/// Number of roundings in the accumulator's type, relative to the magnitude, that can explain any small part:
/// without and with an exact reference.
const ROUNDINGS: [f64; 2] = [64.0, 8.0];
/// Range of exponents whose elements form a part.
const OCTAVES: i32 = 4;

/// A way to divide a tensor into parts.
enum Division {
    /// By the index along one axis.
    Slices { axis: usize, stride: usize, side: usize },
    /// By the indices along the first axes.
    Blocks { axes: usize, length: usize },
    /// By the size of the elements of the reference, from this exponent on.
    Sizes { least: i32 },
}

/// Sums of squares over the finite elements of one part, in units of the magnitude.
#[derive(Debug, Clone, Default)]
struct PartSums {
    values: u64,
    finite: u64,
    size: f64,
    error: f64,
    of_eager: f64,
}

impl PartSums {
    fn mean(&self, sum: f64) -> f64 {
        (sum / self.finite.max(1) as f64).sqrt()
    }
}

/// Describes a part of an output that bears no resemblance to the reference although the output is within the
/// tolerance, if there is one. `exact` is the same computation in fp64.
pub(super) fn lost_part(
    output: &Tensor,
    reference: &Tensor,
    exact: Option<&Tensor>,
    tolerance: &NumericsTolerance,
    magnitude: f64,
) -> Option<String> {
    let smallest = match reference.dtype() {
        DType::F64 => f64::MIN_POSITIVE,
        DType::F32 | DType::Bf16 => f64::from(f32::MIN_POSITIVE),
        DType::F16 => f16::MIN_POSITIVE.to_f64(),
        // Integers are equal or wrong.
        _ => return None,
    };
    if magnitude == 0.0 || tolerance.stol == 0.0 {
        return None;
    }
    let rounding = if reference.dtype() == DType::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) };
    let exact =
        exact.filter(|exact| exact.shape() == reference.shape() && exact.complex == reference.complex);
    let (found, eager) = (output.to_f64(), reference.to_f64());
    let exact = exact.map(Tensor::to_f64);
    let wanted = exact.as_ref().unwrap_or(&eager);
    let triples =
        || found.iter().zip(&eager).zip(wanted).map(|((found, eager), wanted)| [*found, *eager, *wanted]);
    divisions(reference.shape(), wanted).into_iter().find_map(|division| {
        let parts = division.sums(triples(), magnitude);
        let is_judged = |part: &PartSums| part.values >= LEAST_VALUES;
        let has_reference = |part: &PartSums| EAGER * part.mean(part.of_eager) <= LOST * part.mean(part.size);
        let judged = parts.iter().filter(|part| is_judged(part));
        let (known, right) =
            judged.fold((0, 0), |(n, right), part| (n + 1, right + usize::from(has_reference(part))));
        // If the reference is wrong in many parts, the computation is ill-conditioned, and it is chance which
        // parts are right.
        if right * 4 < known * 3 {
            return None;
        }
        let (all, count) = parts.iter().fold((0.0, 0), |(sum, n), part| (sum + part.error, n + part.finite));
        let is_lost = |part: &&PartSums| {
            let (size, error) = (part.mean(part.size), part.mean(part.error));
            let own = LOST.max(2.0 * tolerance.rtol) * size + tolerance.atol / magnitude;
            let explained = if exact.is_some() {
                ROUNDINGS[1] * rounding
            } else {
                let others = ((all - part.error) / (count - part.finite).max(1) as f64).max(0.0).sqrt();
                SHARED * others.min(tolerance.max_error) + ROUNDINGS[0] * rounding
            };
            is_judged(part) && has_reference(part) && error > explained.max(own) + smallest / magnitude
        };
        let at = parts.iter().position(|part| is_lost(&part))?;
        let [error, size] = [parts[at].error, parts[at].size].map(|sum| parts[at].mean(sum) * magnitude);
        Some(format!(
            "{} nothing of the reference: the root mean square of |a − b| is {error:.2e}, that of its values \
             {size:.2e}",
            division.describe(at, reference.shape()),
        ))
    })
}

/// Returns every way to divide a tensor of this shape into parts that are large enough.
fn divisions(shape: &[usize], values: &[f64]) -> Vec<Division> {
    let least = LEAST_VALUES as usize;
    let mut all = Vec::new();
    for (axis, &side) in shape.iter().enumerate() {
        let stride: usize = shape[axis + 1..].iter().product();
        if side > 1 && values.len() / side >= least {
            all.push(Division::Slices { axis, stride, side });
        }
        if axis > 0 && stride >= least {
            all.push(Division::Blocks { axes: axis + 1, length: stride });
        }
    }
    if let Some(least) = values.iter().filter_map(|value| octave(*value)).min() {
        all.push(Division::Sizes { least });
    }
    all
}

fn octave(value: f64) -> Option<i32> {
    (value.is_finite() && value != 0.0).then(|| (value.abs().log2() / f64::from(OCTAVES)).floor() as i32)
}

impl Division {
    /// Returns the part of an element.
    fn part(&self, at: usize, wanted: f64) -> Option<usize> {
        match *self {
            Self::Slices { stride, side, .. } => Some(at / stride % side),
            Self::Blocks { length, .. } => Some(at / length),
            Self::Sizes { least } => usize::try_from(octave(wanted)? - least).ok(),
        }
    }

    /// Returns the sums of each part over elements of output, reference and exact reference.
    fn sums(&self, elements: impl Iterator<Item = [f64; 3]>, magnitude: f64) -> Vec<PartSums> {
        let mut parts: Vec<PartSums> = Vec::new();
        for (at, element) in elements.enumerate() {
            let Some(part) = self.part(at, element[2]).filter(|_| element.iter().all(|x| x.is_finite()))
            else {
                continue;
            };
            if part >= parts.len() {
                parts.resize(part + 1, PartSums::default());
            }
            let [found, eager, wanted] = element.map(|value| value / magnitude);
            let part = &mut parts[part];
            part.values += u64::from(wanted != 0.0);
            part.finite += 1;
            part.size += wanted * wanted;
            part.error += (found - wanted) * (found - wanted);
            part.of_eager += (eager - wanted) * (eager - wanted);
        }
        parts
    }

    /// Names a part as the start of a sentence: `[:, 3] has`, or `the elements of 1e-3 to 1e-2 have`.
    fn describe(&self, part: usize, shape: &[usize]) -> String {
        let place = |indices: &mut dyn Iterator<Item = String>| {
            format!("[{}] has", indices.collect::<Vec<_>>().join(", "))
        };
        match *self {
            Self::Slices { axis, .. } => place(
                &mut (0..shape.len())
                    .map(|other| if other == axis { part.to_string() } else { ":".to_owned() }),
            ),
            Self::Blocks { axes, .. } => {
                let strides = (0..axes).map(|axis| shape[axis + 1..axes].iter().product::<usize>());
                let indices = strides.zip(shape).map(|(stride, side)| (part / stride % side).to_string());
                place(&mut indices.chain((axes..shape.len()).map(|_| ":".to_owned())))
            }
            Self::Sizes { least } => {
                let exponent = OCTAVES * (least + i32::try_from(part).unwrap_or(i32::MAX));
                let [low, high] = [exponent, exponent + OCTAVES].map(|exponent| f64::from(exponent).exp2());
                format!("the elements of {low:.1e} to {high:.1e} have")
            }
        }
    }
}

/// Outputs in which a part bears no resemblance to the reference, although the whole is within the tolerance.
#[cfg(test)]
mod tests {
    use half::bf16;
    use proptest::prelude::*;

    use crate::model::VerifyCode;

    use super::super::tests::{f64s, normal};
    use super::super::{DType, NumericsTolerance, Tensor, check};

    /// Rows of `columns` normal values, each column with its own scale.
    fn scaled(seed: u64, rows: usize, scales: &[f64]) -> Vec<f64> {
        let values = normal(seed, rows * scales.len());
        values.iter().enumerate().map(|(at, x)| f64::from(*x) * scales[at % scales.len()]).collect()
    }

    fn of_dtype(dtype: DType, shape: &[usize], values: &[f64]) -> Tensor {
        let bytes: Vec<u8> = match dtype {
            DType::F16 => values.iter().flat_map(|x| half::f16::from_f64(*x).to_le_bytes()).collect(),
            DType::Bf16 => values.iter().flat_map(|x| bf16::from_f64(*x).to_le_bytes()).collect(),
            DType::F32 => values.iter().flat_map(|x| (*x as f32).to_le_bytes()).collect(),
            _ => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
        };
        Tensor::from_raw(dtype, shape.to_vec(), &bytes).unwrap()
    }

    /// The code of a change to one column, by element.
    fn with_column(
        values: &[f64],
        columns: usize,
        wrong: usize,
        fault: impl Fn(usize, f64) -> f64,
    ) -> Vec<f64> {
        let changed = |(at, x): (usize, &f64)| if at % columns == wrong { fault(at, *x) } else { *x };
        values.iter().enumerate().map(changed).collect()
    }

    #[test]
    fn a_column_of_small_values_that_has_nothing_of_the_reference_is_caught() {
        let scales = [1e4, 1e4, 1e4, 0.2];
        let shape = [64, 4];
        let values = scaled(1, 64, &scales);
        let reference = of_dtype(DType::F32, &shape, &values);
        let found = |values: &[f64]| check(0, &of_dtype(DType::F32, &shape, values), &reference, None, &[]);
        let noise = |size: f64| -> Vec<f64> {
            values.iter().zip(normal(2, 256)).map(|(x, n)| x + f64::from(n) * size).collect()
        };
        // The error that sums of large terms leave in each column.
        let honest = noise(1e-3);
        assert_eq!(found(&honest).code, VerifyCode::Pass);
        type Fault<'a> = (&'a str, &'a dyn Fn(usize, f64) -> f64);
        let faults: [Fault<'_>; 5] = [
            ("zeros", &|_, _| 0.0),
            ("the other sign", &|_, x| -x),
            ("another column", &|at, _| values[at - 1] / 5e4),
            ("a constant", &|_, _| 0.1),
            ("another row", &|at, _| values[(at + 4) % 256]),
        ];
        for (fault, change) in faults {
            assert_eq!(found(&with_column(&honest, 4, 3, change)).code, VerifyCode::Fail, "{fault}");
        }
        let why = found(&with_column(&honest, 4, 3, |_, _| 0.0)).why.unwrap();
        assert!(why.starts_with("[:, 3] has nothing of the reference"), "{why}");
        // The caller's own bound of an element holds.
        let atol = NumericsTolerance { atol: 10.0, ..NumericsTolerance::for_dtype(DType::F32) };
        let zeros = of_dtype(DType::F32, &shape, &with_column(&values, 4, 3, |_, _| 0.0));
        assert_eq!(check(0, &zeros, &reference, None, &[atol]).code, VerifyCode::Pass);
    }

    #[test]
    fn an_fp64_reference_shows_what_the_rounding_of_large_columns_would_hide() {
        for (dtype, small) in [(DType::F16, 1e-2), (DType::F16, 1.0), (DType::Bf16, 1.0), (DType::F32, 1e-2)]
        {
            let shape = [64, 2];
            let values = scaled(1, 64, &[1e4, small]);
            let (exact, reference) = (f64s(&shape, &values), of_dtype(dtype, &shape, &values));
            let found = |values: &[f64]| {
                check(0, &of_dtype(dtype, &shape, values), &reference, Some(&exact), &[]).code
            };
            let rounded: Vec<f64> = values.iter().map(|x| x * (1.0 + 1e-3)).collect();
            let honest = if dtype == DType::F32 { &values } else { &rounded };
            assert_eq!(found(honest), VerifyCode::Pass, "{dtype} {small}");
            assert_eq!(found(&with_column(honest, 2, 1, |_, _| 0.0)), VerifyCode::Fail, "{dtype} {small}");
            assert_eq!(found(&with_column(honest, 2, 1, |_, x| -x)), VerifyCode::Fail, "{dtype} {small}");
        }
    }

    #[test]
    fn a_column_that_is_rounding_in_the_reference_too_passes() {
        // Two large equal terms cancel: nothing of the third column is right on either side.
        let shape = [64, 3];
        let values = scaled(1, 64, &[100.0, 100.0, 0.0]);
        let side = |seed: u64| -> Vec<f64> {
            values.iter().zip(normal(seed, 192)).map(|(x, n)| x + f64::from(n) * 1e-5).collect()
        };
        let (a, b) = (of_dtype(DType::F32, &shape, &side(2)), of_dtype(DType::F32, &shape, &side(3)));
        assert_eq!(check(0, &a, &b, None, &[]).code, VerifyCode::Pass);
        assert_eq!(check(0, &a, &b, Some(&f64s(&shape, &values)), &[]).code, VerifyCode::Pass);
    }

    #[test]
    fn the_values_next_to_masks_and_zeros_are_compared() {
        for (dtype, masks) in [
            (DType::F32, &[-1e38, -1e9, -1e4][..]),
            (DType::Bf16, &[-1e38, -1e4]),
            (DType::F16, &[-65504.0, -1e4, f64::NEG_INFINITY]),
        ] {
            for mask in masks {
                let scores = normal(5, 1000);
                let mixed = |of_score: &dyn Fn(f64) -> f64| -> Vec<f64> {
                    let element = |(at, x): (usize, &f32)| match at * 7 % 10 {
                        0..4 => f64::from(*x) + mask,
                        4..8 => 0.0,
                        _ => of_score(f64::from(*x)),
                    };
                    scores.iter().enumerate().map(element).collect()
                };
                let shape = [100, 10];
                let reference = of_dtype(dtype, &shape, &mixed(&|x| x));
                let found = |of_score: &dyn Fn(f64) -> f64| {
                    check(0, &of_dtype(dtype, &shape, &mixed(of_score)), &reference, None, &[]).code
                };
                assert_eq!(
                    found(&|x| x * 1.001),
                    if dtype == DType::F32 { VerifyCode::Fail } else { VerifyCode::Pass }
                );
                let faults: [&dyn Fn(f64) -> f64; 4] = [&|x| x * 1.2, &|_| 0.0, &|x| -x, &|x| x + 0.3];
                for wrong in faults {
                    assert_eq!(found(wrong), VerifyCode::Fail, "{dtype} {mask}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn slices_that_are_zeros_or_another_slice_are_caught_at_any_scale(
            seed in any::<u64>(),
            shape in proptest::collection::vec(4usize..7, 2..4),
            axis in 0usize..3,
            scales in proptest::collection::vec(-3.0f64..0.0, 7),
            wrong in 0usize..7,
            by_another in any::<bool>(),
        ) {
            let shape = [&[8][..], &shape].concat();
            let axis = axis % shape.len();
            let (side, stride) = (shape[axis], shape[axis + 1..].iter().product::<usize>());
            let index = |at: usize| at / stride % side;
            let count: usize = shape.iter().product();
            let scale = |at: usize| 10f64.powf(scales[index(at) % 7]);
            let values: Vec<f64> =
                normal(seed, count).iter().enumerate().map(|(at, x)| f64::from(*x) * scale(at)).collect();
            // The error that large terms leave in all slices.
            let noise = 1e-8 * (0..count).map(scale).fold(0.0, f64::max);
            let noisy: Vec<f64> =
                values.iter().zip(normal(!seed, count)).map(|(x, n)| x + f64::from(n) * noise).collect();
            let other = |at: usize| at - index(at) * stride + (index(at) + 1) % side * stride;
            let fault = |at: usize| if by_another { noisy[other(at)] } else { 0.0 };
            let faulty: Vec<f64> =
                (0..count).map(|at| if index(at) == wrong % side { fault(at) } else { noisy[at] }).collect();
            let reference = of_dtype(DType::F32, &shape, &values);
            let code = |values: &[f64]| check(0, &of_dtype(DType::F32, &shape, values), &reference, None, &[]).code;
            prop_assert_eq!(code(&noisy), VerifyCode::Pass);
            prop_assert_eq!(code(&faulty), VerifyCode::Fail);
        }
    }
}
