//! Recognizes the kind of fault in a wrong output. Compiler bugs produce typical patterns, and naming them
//! saves the reader of a report time. The verdict never depends on it.

use half::{bf16, f16};

use super::Tensor;
use super::tensor::DType;

/// Largest deviation from a pattern, relative to the typical magnitude: larger than normal rounding, but
/// small enough that a pattern does not fit by chance.
const FIT: f64 = 1e-3;
/// Maximum number of rows for which permutations are searched: every row is compared with every other one.
const MAX_ROWS: usize = 64;

/// Describes the fault, if its pattern is known. Both tensors have the same shape and type.
pub(super) fn likeness(output: &Tensor, reference: &Tensor, magnitude: f64) -> Option<String> {
    let (a, b) = (output.to_f64(), reference.to_f64());
    if a.len() < 2 {
        return None;
    }
    if a.iter().all(|x| x.is_nan()) {
        return Some("every element is NaN".to_owned());
    }
    if !a.iter().chain(&b).all(|x| x.is_finite()) {
        return None;
    }
    if let Some(first) = a.first()
        && a.iter().all(|x| x == first)
    {
        return Some(format!("every element is {first}"));
    }
    let close = close(magnitude);
    transposed(&a, &b, reference.shape(), &close)
        .or_else(|| rows_moved(&a, &b, reference.shape(), &close))
        .or_else(|| rounded(&a, &b, reference.dtype()))
        .or_else(|| scaled(&a, &b))
        .or_else(|| shifted(&a, &b))
        .or_else(|| zeroed(&a, &b, &close))
        .or_else(|| unrelated(&a, &b))
}

/// Describes an output whose shape differs from its reference's although the elements are the same.
pub(super) fn otherwise_shaped(output: &Tensor, reference: &Tensor, magnitude: f64) -> Option<String> {
    let (a, b) = (output.to_f64(), reference.to_f64());
    // If all elements are equal, they match in every order.
    if a.len() != b.len() || b.iter().all(|x| Some(x) == b.first()) {
        return None;
    }
    let close = close(magnitude);
    let shape = reference.shape();
    let mut swapped = shape.to_vec();
    if let [.., rows, columns] = swapped.as_mut_slice() {
        std::mem::swap(rows, columns);
    }
    let same = || a.iter().zip(&b).all(|(x, y)| close(*x, *y));
    (output.shape() == swapped)
        .then(|| transposed(&a, &b, shape, &close))
        .flatten()
        .or_else(|| same().then(|| "the output is the reference reshaped, with equal elements".to_owned()))
}

fn close(magnitude: f64) -> impl Fn(f64, f64) -> bool {
    move |x, y| (x - y).abs() <= FIT * (magnitude + y.abs())
}

/// Returns whether `a` is `b`, which has this shape, with rows and columns swapped.
fn transposed(a: &[f64], b: &[f64], shape: &[usize], close: impl Fn(f64, f64) -> bool) -> Option<String> {
    let [.., rows, columns] = *shape else { return None };
    if rows < 2 || columns < 2 {
        return None;
    }
    let fits = a
        .chunks(rows * columns)
        .zip(b.chunks(rows * columns))
        .all(|(a, b)| a.iter().enumerate().all(|(at, x)| close(*x, b[(at % rows) * columns + at / rows])));
    fits.then(|| "the output is the reference transposed: the last two dimensions are swapped".to_owned())
}

fn rows_moved(a: &[f64], b: &[f64], shape: &[usize], close: impl Fn(f64, f64) -> bool) -> Option<String> {
    let [leading @ .., columns] = shape else { return None };
    if leading.is_empty() || *columns < 2 {
        return None;
    }
    let row =
        |values: &'_ [f64], at: usize| -> Vec<f64> { values[at * columns..(at + 1) * columns].to_vec() };
    let same = |x: &[f64], y: &[f64]| x.iter().zip(y).all(|(x, y)| close(*x, *y));
    let moved: Vec<usize> =
        (0..a.len() / columns).filter(|at| !same(&row(a, *at), &row(b, *at))).take(MAX_ROWS + 1).collect();
    if moved.len() < 2 || moved.len() > MAX_ROWS {
        return None;
    }
    let mut unused = moved.clone();
    for at in &moved {
        let found = unused.iter().position(|other| same(&row(a, *at), &row(b, *other)))?;
        unused.swap_remove(found);
    }
    let name = |at: &usize| {
        let position: Vec<String> = coordinates(*at, leading).iter().map(usize::to_string).collect();
        position.join(",")
    };
    Some(match moved.as_slice() {
        [one, other] => format!("rows {} and {} of the output are swapped", name(one), name(other)),
        [first, .., last] => {
            format!("{} rows between {} and {} are in another order", moved.len(), name(first), name(last))
        }
        _ => return None,
    })
}

/// Returns whether a narrower type can represent every number of `a`, but not every number of the reference.
fn rounded(a: &[f64], b: &[f64], dtype: DType) -> Option<String> {
    let is_bf16 = |x: &f64| bf16::from_f64(*x).to_f64() == *x;
    let is_f16 = |x: &f64| f16::from_f64(*x).to_f64() == *x;
    let is_f32 = |x: &f64| f64::from(*x as f32) == *x;
    let narrow = |fits: &dyn Fn(&f64) -> bool| {
        a.iter().all(fits) && b.iter().filter(|x| !fits(x)).count() > b.len() / 2
    };
    let name = match dtype {
        DType::F32 | DType::F64 if narrow(&is_bf16) => "bf16",
        DType::F32 | DType::F64 if narrow(&is_f16) => "f16",
        DType::F64 if narrow(&is_f32) => "f32",
        _ => return None,
    };
    Some(format!("every element is rounded to {name} although its type is {dtype}"))
}

fn scaled(a: &[f64], b: &[f64]) -> Option<String> {
    let largest = b.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
    if largest == 0.0 {
        return None;
    }
    let (mut dot, mut square) = (0.0, 0.0);
    for (x, y) in a.iter().zip(b) {
        dot += (x / largest) * (y / largest);
        square += (y / largest).powi(2);
    }
    let factor = dot / square;
    let rest: f64 = a.iter().zip(b).map(|(x, y)| ((x - factor * y) / largest).powi(2)).sum();
    let moved = (factor - 1.0).abs();
    // The remainder must be small compared with the part that the factor explains.
    (moved > 1e-6 && factor != 0.0 && (rest / square).sqrt() < 0.1 * moved)
        .then(|| format!("every element is that of the reference × {}", (factor * 1e6).round() / 1e6))
}

fn shifted(a: &[f64], b: &[f64]) -> Option<String> {
    let count = a.len() as f64;
    let mean = a.iter().zip(b).map(|(x, y)| x - y).sum::<f64>() / count;
    let rest = a.iter().zip(b).map(|(x, y)| (x - y - mean).powi(2)).sum::<f64>() / count;
    (mean != 0.0 && rest.sqrt() < 0.1 * mean.abs())
        .then(|| format!("the output is the reference plus {mean:.3e}"))
}

fn zeroed(a: &[f64], b: &[f64], close: impl Fn(f64, f64) -> bool) -> Option<String> {
    let (mut wrong, mut zeros) = (0usize, 0usize);
    for (x, y) in a.iter().zip(b) {
        if !close(*x, *y) {
            wrong += 1;
            zeros += usize::from(*x == 0.0);
        }
    }
    (wrong > 0 && zeros == wrong).then(|| "every wrong element is zero".to_owned())
}

fn unrelated(a: &[f64], b: &[f64]) -> Option<String> {
    let scale = |values: &[f64]| values.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
    let (a_scale, b_scale) = (scale(a), scale(b));
    if a_scale == 0.0 || b_scale == 0.0 {
        return None;
    }
    let (mut dot, mut aa, mut bb) = (0.0, 0.0, 0.0);
    for (x, y) in a.iter().map(|x| x / a_scale).zip(b.iter().map(|y| y / b_scale)) {
        dot += x * y;
        aa += x * x;
        bb += y * y;
    }
    let cosine = dot / (aa.sqrt() * bb.sqrt());
    // A few numbers can be similar by chance.
    (a.len() >= 64 && cosine.abs() < 0.1).then(|| {
        format!("the output has nothing in common with the reference (cosine {cosine:.3}), as if from another input")
    })
}

/// The smallest box that contains all wrong elements.
#[derive(Debug, Clone)]
pub(super) struct ErrorRegion<'a> {
    shape: &'a [usize],
    /// The first wrong element in row-major order.
    first: Option<Vec<usize>>,
    low: Vec<usize>,
    high: Vec<usize>,
    count: u64,
}

impl<'a> ErrorRegion<'a> {
    pub(super) const fn new(shape: &'a [usize]) -> Self {
        Self { shape, first: None, low: Vec::new(), high: Vec::new(), count: 0 }
    }

    /// Returns the number of elements that were added.
    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    /// Adds the element at this position of the flattened output.
    pub(super) fn add(&mut self, at: usize) {
        let position = coordinates(at, self.shape);
        self.count += 1;
        if self.first.is_none() {
            self.low.clone_from(&position);
            self.high.clone_from(&position);
            self.first = Some(position);
            return;
        }
        for (bound, index) in self.low.iter_mut().zip(&position) {
            *bound = (*bound).min(*index);
        }
        for (bound, index) in self.high.iter_mut().zip(&position) {
            *bound = (*bound).max(*index);
        }
    }

    /// Returns `at [0, 17]`, or `first at [3, 0], all within [3–4, 0–95]`; `None` if no element is wrong.
    pub(super) fn describe(&self) -> Option<String> {
        let first = self.first.as_ref()?;
        if self.shape.is_empty() {
            return Some("at the only element".to_owned());
        }
        let list = |parts: Vec<String>| format!("[{}]", parts.join(", "));
        let point = list(first.iter().map(usize::to_string).collect());
        if self.count == 1 {
            return Some(format!("at {point}"));
        }
        let everywhere = self.low.iter().all(|low| *low == 0)
            && self.high.iter().zip(self.shape).all(|(h, n)| h + 1 == *n);
        if everywhere {
            return Some(format!("first at {point}, all over the output"));
        }
        let range = |(low, high): (&usize, &usize)| {
            if low == high { low.to_string() } else { format!("{low}–{high}") }
        };
        let region = list(self.low.iter().zip(&self.high).map(range).collect());
        Some(format!("first at {point}, all within {region}"))
    }
}

/// Returns the coordinates of an element of a row-major tensor.
fn coordinates(at: usize, shape: &[usize]) -> Vec<usize> {
    let mut rest = at;
    let mut position: Vec<usize> = shape
        .iter()
        .rev()
        .map(|side| {
            let side = (*side).max(1);
            let index = rest % side;
            rest /= side;
            index
        })
        .collect();
    position.reverse();
    position
}
