//! Compares one output with its reference.

use crate::model::{Divergence, OutputCheck, VerifyCode};

use super::NumericsTolerance;
use super::likeness::{ErrorRegion, likeness, otherwise_shaped};
use super::parts::lost_part;
use super::tensor::{DType, Data, Element, Tensor, by_type, shape};

/// An output beyond the tolerance still passes if its error relative to the fp64 reference is at most the
/// error of eager (the reference in its own precision) times these factors. Two correct roundings of one
/// computation have about the same root mean square error; PyTorch's `same()` also allows a factor of 2.
/// Their largest errors vary more.
const EAGER_RMS_FACTOR: f64 = 2.0;
const EAGER_MAX_FACTOR: f64 = 4.0;

/// Largest normalized error of a reference that excuses that of an output. A reference that is further from fp64 was made by
/// another program, and says nothing about this one.
const MOST_OF_REFERENCE: f64 = 0.25;

/// Compares output `index` with its reference.
///
/// `reference64` is the same computation in fp64, if available. The tolerance is the entry of `tolerances` for the
/// reference's type, or that type's default. An element fails if only one of the two values is finite. If both are NaN, or
/// the same Inf, they count as equal and are left out of the metrics: a masked row is NaN by design, and the maximum of an
/// empty set is −Inf. If every element is NaN, nothing was verified, and the check fails.
pub fn check(
    index: usize,
    output: &Tensor,
    reference: &Tensor,
    reference64: Option<&Tensor>,
    tolerances: &[NumericsTolerance],
) -> OutputCheck {
    let fail =
        |divergence, why: String| OutputCheck { index, code: VerifyCode::Fail, divergence, why: Some(why) };
    let other_type = || format!("type {}, but the reference has {}", output.describe(), reference.describe());
    if output.complex != reference.complex {
        return fail(None, other_type());
    }
    if output.shape() != reference.shape() {
        let (found, expected) = (shape(output.shape()), shape(reference.shape()));
        let why = format!("shape {found}, but the reference has {expected}");
        let looks = otherwise_shaped(output, reference, typical_magnitude(&reference.to_f64()));
        return fail(None, looks.map_or_else(|| why.clone(), |looks| format!("{why}; {looks}")));
    }
    let (output, reference) = match aligned(output, reference) {
        Some(pair) => pair,
        None => return fail(None, other_type()),
    };
    let dtype = reference.dtype();
    let tolerance = tolerance_of(dtype, tolerances);
    let magnitude = typical_magnitude(&reference.to_f64());
    let mut measured = measure(&output, &reference, &tolerance, magnitude);
    let exactness = Exactness::measure(&output, &reference, reference64);
    if let Some(exactness) = &exactness {
        measured.divergence.error_fp64 = Some(exactness.output.normalised);
        measured.divergence.reference_error_fp64 = Some(exactness.reference.normalised);
    }
    let is_explained =
        || measured.is_only_inexact() && exactness.is_some_and(|found| found.is_no_worse_than_reference());
    let verdict =
        measured.verdict(dtype, &tolerance).or_else(|why| if is_explained() { Ok(()) } else { Err(why) });
    // Sums over the whole output show nothing about its small parts.
    let lost = || lost_part(&output, &reference, reference64, &tolerance, magnitude);
    match verdict.and_then(|()| lost().map_or(Ok(()), Err)) {
        Ok(()) => {
            OutputCheck { index, code: VerifyCode::Pass, divergence: Some(measured.divergence), why: None }
        }
        Err(why) => {
            let looks = likeness(&output, &reference, magnitude);
            let why = looks.map_or_else(|| why.clone(), |looks| format!("{why}; {looks}"));
            fail(Some(measured.divergence), why)
        }
    }
}

/// Returns the entry for a type, or that type's default.
pub(super) fn tolerance_of(dtype: DType, tolerances: &[NumericsTolerance]) -> NumericsTolerance {
    let own = tolerances.iter().find(|tolerance| tolerance.dtype == dtype.into_str());
    own.cloned().unwrap_or_else(|| NumericsTolerance::for_dtype(dtype))
}

/// Returns the scale for rounding errors: the root mean square of the finite elements, but at most 16 times
/// the median of the nonzero ones. Without this limit, a mask of −1e38 in a corner would make every error look
/// small. Masks are also left out, because they may cover most of the output. The median leaves out zeros,
/// because half of a ReLU's output is zero. The result is zero if all elements are.
pub fn typical_magnitude(values: &[f64]) -> f64 {
    let mut sizes: Vec<f64> = values.iter().map(|x| x.abs()).filter(|x| x.is_finite() && *x > 0.0).collect();
    let zeros = values.iter().filter(|x| **x == 0.0).count();
    if sizes.is_empty() {
        return 0.0;
    }
    let mut magnitude = f64::INFINITY;
    let mut is_last = false;
    loop {
        let largest = sizes.iter().copied().fold(0.0, f64::max);
        // Scaled by the largest element, so that squares can't overflow.
        let mean_square =
            sizes.iter().map(|x| (x / largest).powi(2)).sum::<f64>() / (sizes.len() + zeros) as f64;
        let middle = sizes.len() / 2;
        let (_, median, _) = sizes.select_nth_unstable_by(middle, f64::total_cmp);
        magnitude = magnitude.min(mean_square.sqrt() * largest).min(OUTLIERS_FROM * *median);
        match remove_mask(&mut sizes, largest) {
            Some(has_others) if !is_last => is_last = !has_others,
            _ => return magnitude,
        }
    }
}

/// Factor by which outliers, or a mask, exceed the other elements.
const OUTLIERS_FROM: f64 = 16.0;

/// Removes a mask: one value between −1e4 and the lowest value of its type, either repeated or added to what it
/// masks. In the second case the values vary, and a gap separates them from the others. Saturated outputs, which
/// repeat 1, are not masks. Returns `None` without a mask, and otherwise whether there may be another one.
fn remove_mask(sizes: &mut Vec<f64>, largest: f64) -> Option<bool> {
    /// Minimum size of a mask: a little less than 1e4, because bf16 rounds 1e4 to 9984 and scores are added
    /// to it.
    const LEAST_MASK: f64 = 9e3;
    const LEAST_VARYING: usize = 8;
    /// Minimum size of an element of a mask that varies, as a share of the largest element.
    const VARIES: f64 = 0.9;
    let of_mask = |least: f64| sizes.iter().filter(|size| **size >= least).count();
    let outside = sizes.iter().copied().filter(|size| *size < VARIES * largest).fold(0.0, f64::max);
    let is_apart = outside * OUTLIERS_FROM < largest;
    // A single large element, such as one of two logits, is not a mask.
    let least = match (of_mask(largest), of_mask(VARIES * largest)) {
        (_, LEAST_VARYING..) if is_apart => VARIES * largest,
        (2.., _) => largest,
        _ => return None,
    };
    if largest < LEAST_MASK || of_mask(least) == sizes.len() {
        return None;
    }
    let all = sizes.len();
    sizes.retain(|size| *size < least);
    // A type with few digits repeats its largest values often, but each in few elements.
    Some(is_apart || sizes.len() * 8 <= all * 7)
}

/// Converts both tensors to the reference's type, if the output's bits can be read as that type.
fn aligned(output: &Tensor, reference: &Tensor) -> Option<(Tensor, Tensor)> {
    let (o, r) = (output.dtype(), reference.dtype());
    if o == r {
        return Some((output.clone(), reference.clone()));
    }
    if is_integer(o) && is_integer(r) || (o, r) == (DType::U16, DType::Bf16) {
        return Some((output.bits_as(r)?, reference.clone()));
    }
    if (o, r) == (DType::Bf16, DType::U16) {
        return Some((output.clone(), reference.bits_as(DType::Bf16)?));
    }
    None
}

fn is_integer(dtype: DType) -> bool {
    use DType::{I8, I16, I32, I64, U8, U16, U32, U64};
    matches!(dtype, I64 | I32 | I16 | I8 | U64 | U32 | U16 | U8)
}

/// The measured differences, before the verdict.
struct MeasuredDifferences<'a> {
    divergence: Divergence,
    /// Root mean square of |a − b| / (|b| + m) over finite pairs.
    error: f64,
    /// Elements that are finite on one side only, or infinite with different signs.
    wrong_specials: u64,
    finite: u64,
    /// Elements that are NaN on both sides.
    nans: u64,
    /// Position of the wrong elements.
    place: ErrorRegion<'a>,
    /// Elements whose own error exceeds the bound for the whole output, whether they count as wrong or not.
    imprecise: ErrorRegion<'a>,
}

impl MeasuredDifferences<'_> {
    /// Returns whether all differences are between two finite numbers.
    fn is_only_inexact(&self) -> bool {
        self.divergence.non_finite == 0 && self.wrong_specials == 0 && self.finite > 0
    }

    fn verdict(&self, dtype: DType, tolerance: &NumericsTolerance) -> Result<(), String> {
        let d = &self.divergence;
        let place = self.place.describe().map_or_else(String::new, |place| format!(", {place}"));
        if d.non_finite > 0 {
            let verb = if d.non_finite == 1 { "is" } else { "are" };
            return Err(format!(
                "{} of {} elements {verb} NaN or infinite, but the reference is not{place}",
                d.non_finite, d.elements
            ));
        }
        if self.wrong_specials > 0 {
            return Err(format!(
                "{} of {} elements are finite, or infinite with the other sign, but the reference is NaN or infinite{place}",
                self.wrong_specials, d.elements
            ));
        }
        if d.elements > 0 && self.nans == d.elements {
            return Err("every element of the reference is NaN, so nothing can be verified".to_owned());
        }
        // No pair of finite numbers is left, and equal infinities have no distance to judge.
        if self.finite == 0 {
            return Ok(());
        }
        if d.mismatched > 0 {
            let is_step = d.max_abs == 1.0 && is_integer(dtype);
            let remedy = if is_step {
                format!(
                    "; integers that differ by at most 1, as in a quantized model, agree with `[numerics.{dtype}] atol = 1`"
                )
            } else {
                String::new()
            };
            return Err(format!(
                "{} of {} elements beyond the tolerance, largest |a − b| {:.3e}{place}{remedy}",
                d.mismatched, d.elements, d.max_abs
            ));
        }
        if exceeds(self.error, tolerance.max_error) {
            let place = self.imprecise.describe().map_or_else(String::new, |place| format!(", {place}"));
            return Err(format!(
                "root mean square of the normalized error {:.2e}, allowed {:.2e}: a small fault in {} of {} elements{place}",
                self.error,
                tolerance.max_error,
                self.imprecise.count(),
                d.elements
            ));
        }
        if exceeds(-d.cosine, -tolerance.min_cosine) {
            return Err(format!("cosine similarity {:.6}, allowed {:.6}", d.cosine, tolerance.min_cosine));
        }
        Ok(())
    }
}

/// Returns whether a value exceeds a bound or is NaN, which must not pass either.
fn exceeds(value: f64, bound: f64) -> bool {
    value > bound || value.is_nan() || bound.is_nan()
}

fn measure<'a>(
    output: &Tensor,
    reference: &'a Tensor,
    tolerance: &NumericsTolerance,
    magnitude: f64,
) -> MeasuredDifferences<'a> {
    let place = ErrorRegion::new(reference.shape());
    by_type!(
        pair (&output.data, &reference.data),
        (a, b) => elements(a, b, tolerance, magnitude, place),
        // `aligned` has made the types equal; if it ever fails to, every element counts as wrong.
        MeasuredDifferences {
            divergence: Divergence { mismatched: reference.len() as u64, ..Divergence::default() },
            error: f64::INFINITY,
            wrong_specials: reference.len() as u64,
            finite: 0,
            nans: 0,
            imprecise: place.clone(),
            place,
        }
    )
}

fn elements<'a, T: Element>(
    output: &[T],
    reference: &[T],
    tolerance: &NumericsTolerance,
    magnitude: f64,
    mut place: ErrorRegion<'a>,
) -> MeasuredDifferences<'a> {
    let mut d = Divergence { elements: reference.len() as u64, ..Divergence::default() };
    let (mut wrong_specials, mut finite, mut nans) = (0, 0, 0);
    let (mut squares, mut normalised) = (0.0, 0.0);
    let mut imprecise = place.clone();
    let slack = tolerance.atol + tolerance.stol * magnitude;
    for (at, (a, b)) in output.iter().zip(reference).enumerate() {
        let (x, y) = (a.value(), b.value());
        match (x.is_finite(), y.is_finite()) {
            (true, true) => {}
            (false, false) if x.is_nan() && y.is_nan() => {
                nans += 1;
                continue;
            }
            (false, false) if x == y => continue,
            (found_finite, expected_finite) => {
                if !found_finite && expected_finite {
                    d.non_finite += 1;
                } else {
                    wrong_specials += 1;
                }
                d.mismatched += 1;
                place.add(at);
                continue;
            }
        }
        finite += 1;
        let distance = a.distance(*b);
        if distance == 0.0 {
            continue;
        }
        d.max_abs = d.max_abs.max(distance);
        if y != 0.0 {
            d.max_rel = d.max_rel.max(distance / y.abs());
        }
        d.max_ulp = d.max_ulp.max(a.ulps(*b));
        squares += distance * distance;
        let scale = y.abs() + magnitude;
        if scale > 0.0 {
            let error = distance / scale;
            normalised += error * error;
            if exceeds(error, tolerance.max_error) {
                imprecise.add(at);
            }
        }
        if exceeds(distance, slack + tolerance.rtol * y.abs()) {
            d.mismatched += 1;
            place.add(at);
        }
    }
    let count = f64::max(finite as f64, 1.0);
    let error = f64::sqrt(normalised / count);
    d.error = (finite > 0).then_some(error);
    d.allowed_error = (tolerance.max_error < f64::MAX).then_some(tolerance.max_error);
    d.rmse = f64::sqrt(squares / count);
    d.cosine = cosine(output, reference);
    if finite == 0 && !reference.is_empty() {
        // The distance is unknown; 0 or 1 would look like agreement.
        (d.max_abs, d.max_rel, d.max_ulp) = (f64::NAN, f64::NAN, f64::NAN);
        (d.rmse, d.cosine) = (f64::NAN, f64::NAN);
    }
    MeasuredDifferences { divergence: d, error, wrong_specials, finite, nans, place, imprecise }
}

/// Cosine similarity over the pairs that are finite on both sides. For two tensors of zeros it is 1.
fn cosine<T: Element>(output: &[T], reference: &[T]) -> f64 {
    let finite = || {
        let pairs = output.iter().zip(reference).map(|(a, b)| (a.value(), b.value()));
        pairs.filter(|(a, b)| a.is_finite() && b.is_finite())
    };
    let (a_max, b_max) =
        finite().fold((0.0, 0.0), |(a, b), (x, y)| (f64::max(a, x.abs()), f64::max(b, y.abs())));
    if a_max == 0.0 || b_max == 0.0 {
        return if a_max == b_max { 1.0 } else { 0.0 };
    }
    // Scaled by the largest element, so that products can't overflow.
    let (mut dot, mut aa, mut bb) = (0.0, 0.0, 0.0);
    for (x, y) in finite().map(|(x, y)| (x / a_max, y / b_max)) {
        dot += x * y;
        aa += x * x;
        bb += y * y;
    }
    (dot / (aa.sqrt() * bb.sqrt())).clamp(-1.0, 1.0)
}

/// The distances of the output and of the reference from the same computation in fp64.
struct Exactness {
    output: Distance,
    reference: Distance,
}

/// The distance of a tensor from an exact one. In the formulas, a is an element of the tensor and c the exact
/// value.
struct Distance {
    /// Root mean square of |a − c| / (|c| + m).
    normalised: f64,
    /// Root of the sum of the squares of a − c.
    total: f64,
    largest: f64,
}

impl Exactness {
    /// Returns `None` if there is no fp64 reference of this shape, or if the type has no rounding: integers
    /// are either equal or wrong.
    fn measure(output: &Tensor, reference: &Tensor, exact: Option<&Tensor>) -> Option<Self> {
        let exact =
            exact.filter(|exact| exact.shape() == reference.shape() && exact.complex == reference.complex)?;
        if !matches!(reference.dtype(), DType::F64 | DType::F32 | DType::F16 | DType::Bf16) {
            return None;
        }
        let exact = exact.to_f64();
        let magnitude = typical_magnitude(&exact);
        let distance = |tensor: &Tensor| Distance::between(&tensor.to_f64(), &exact, magnitude);
        Some(Self { output: distance(output), reference: distance(reference) })
    }

    /// Returns whether the output's error is comparable with the reference's.
    fn is_no_worse_than_reference(&self) -> bool {
        let (output, eager) = (&self.output, &self.reference);
        output.total.is_finite()
            && eager.normalised <= MOST_OF_REFERENCE
            && output.total <= EAGER_RMS_FACTOR * eager.total
            && output.largest <= EAGER_MAX_FACTOR * eager.largest
    }
}

impl Distance {
    fn between(values: &[f64], exact: &[f64], magnitude: f64) -> Self {
        let (mut squares, mut normalised, mut largest, mut finite) = (0.0, 0.0, 0.0, 0u64);
        for (value, exact) in values.iter().zip(exact) {
            // Non-finite pairs have been compared already; the distance between a finite and an infinite
            // value is infinite.
            if value.is_finite() {
                finite += 1;
                let error = (value - exact).abs();
                squares += error * error;
                largest = f64::max(largest, if error.is_nan() { f64::INFINITY } else { error });
                let scale = exact.abs() + magnitude;
                if scale > 0.0 && error > 0.0 {
                    normalised += (error / scale).powi(2);
                }
            }
        }
        let count = f64::max(finite as f64, 1.0);
        Self { normalised: f64::sqrt(normalised / count), total: f64::sqrt(squares), largest }
    }
}
