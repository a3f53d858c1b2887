//! How far an output may be from its reference, by element type, and why so far.

/// Largest numerical distance that still counts as the same answer, for one element type.
///
/// With `m` the typical magnitude of the reference (see [`super::typical_magnitude`]), an output `a`
/// agrees with its reference `b` when every element satisfies
/// `|a − b| ≤ atol + rtol·|b| + stol·m`, the root mean square of `|a − b| / (|b| + m)` is at most
/// `max_error`, and the cosine similarity is at least `min_cosine`.
#[derive(Debug, Clone, PartialEq)]
pub struct NumericsTolerance {
    /// NumPy-style name: `f32`, `f16`, `bf16`, `f64`, `i32` …
    pub dtype: String,
    /// Absolute part of an element's bound, in the output's own unit, as in `numpy.allclose`.
    pub atol: f64,
    /// Part relative to the element of the reference, as in `numpy.allclose`.
    pub rtol: f64,
    /// Part relative to the typical magnitude of the whole reference. Rounding error of a sum scales
    /// with its terms, not with the result, so an element near zero needs this and not `rtol`.
    pub stol: f64,
    /// Bound of the root mean square of the normalised error: what catches a fault that is small in
    /// every element and present in all of them.
    pub max_error: f64,
    pub min_cosine: f64,
}

/// Every element type that an output can have.
const DTYPES: [&str; 13] =
    ["f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8", "bool"];

impl NumericsTolerance {
    /// The default of an element type, where it is one that outputs can have.
    ///
    /// An honest output differs from eager by reordered sums: about `u·√k` of the magnitude, where `u`
    /// is the unit roundoff of the type and `k` the length of a reduction (Higham, *Accuracy and
    /// Stability of Numerical Algorithms*, 2nd ed., section 2.8). Each bound lies well above that
    /// and below the next coarser type, so that a computation at less precision than promised is a
    /// failure: rounding to bf16 alone is a normalised error of about 5e-4, and so is a scale of 1.001.
    pub fn default_for(dtype: &str) -> Option<Self> {
        let (atol, rtol, stol, max_error, min_cosine) = match dtype {
            // u = 1.1e-16: 1e-10 leaves six digits to long reductions; single precision is 1e-8.
            "f64" => (1e-14, 1e-9, 1e-9, 1e-10, 0.999_999),
            // u = 6e-8: 1e-4 leaves three digits to depth and to approximated exp and tanh.
            "f32" => (1e-8, 1e-3, 1e-3, 1e-4, 0.9999),
            // u = 4.9e-4, and accumulation may be in f16 too.
            "f16" => (1e-6, 1e-2, 1e-2, 3e-3, 0.999),
            // u = 3.9e-3, and accumulation may be in bf16 too.
            "bf16" => (1e-6, 5e-2, 5e-2, 2e-2, 0.999),
            // Integers and booleans have no rounding: they are equal or wrong.
            known if DTYPES.contains(&known) => (0.0, 0.0, 0.0, 0.0, 1.0),
            _ => return None,
        };
        Some(Self { dtype: dtype.to_owned(), atol, rtol, stol, max_error, min_cosine })
    }

    /// The defaults of every element type, widest first.
    pub fn defaults() -> Vec<Self> {
        DTYPES.into_iter().filter_map(Self::default_for).collect()
    }
}
