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
    let exact = exact.filter(|exact| exact.shape() == reference.shape());
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
