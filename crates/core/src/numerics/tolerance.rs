//! The distance that an output may have from its reference, for each element type, and the reasons for it.

use strum::VariantArray;

use super::DType;

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
    /// Bound of the root mean square of the normalized error. This bound catches faults that are small but
    /// present in every element.
    pub max_error: f64,
    pub min_cosine: f64,
}

impl NumericsTolerance {
    /// Returns the default for an element type.
    ///
    /// A correct output differs from eager execution because sums are reordered: by about `u·√k` of the
    /// magnitude, where `u` is the unit roundoff of the type and `k` the length of a reduction (Higham,
    /// *Accuracy and Stability of Numerical Algorithms*, 2nd ed., section 2.8). The bounds are well above
    /// that, and for f64 and f32 below the error of the next coarser type, so that a computation in lower
    /// precision fails: as a normalized error, rounding to f16 (or TF32, which has as many digits) is about
    /// 9e-5, rounding to bf16 is 4e-4, and so is a scale of 1.001.
    pub fn for_dtype(dtype: DType) -> Self {
        let (atol, rtol, stol, max_error, min_cosine) = match dtype {
            // u = 1.1e-16: 1e-10 leaves six digits for long reductions; the error of single precision is 1e-8.
            DType::F64 => (1e-14, 1e-9, 1e-9, 1e-10, 0.999_999),
            // u = 6e-8. IREE's llvm-cpu differs from NumPy by 4e-8 to 2e-7 on convolutions, attention and
            // MLPs; 2e-5 leaves a factor of a hundred for deep models and approximations of exp and tanh.
            DType::F32 => (1e-8, 1e-3, 1e-3, 2e-5, 0.9999),
            // u = 4.9e-4, and accumulation may also be in f16.
            DType::F16 => (1e-6, 1e-2, 1e-2, 3e-3, 0.999),
            // u = 3.9e-3, and accumulation may also be in bf16.
            DType::Bf16 => (1e-6, 5e-2, 5e-2, 2e-2, 0.999),
            // Integers and booleans have no rounding: every element is either equal or wrong. The bounds for
            // the whole output are unlimited, so that `atol = 1` works for a quantized model.
            DType::I64
            | DType::I32
            | DType::I16
            | DType::I8
            | DType::U64
            | DType::U32
            | DType::U16
            | DType::U8
            | DType::Bool => (0.0, 0.0, 0.0, f64::MAX, -1.0),
        };
        Self { dtype: dtype.to_string(), atol, rtol, stol, max_error, min_cosine }
    }

    /// Returns the names of the bounds in a configuration, and their values.
    pub fn bounds(&self) -> [(&'static str, f64); 5] {
        [
            ("atol", self.atol),
            ("rtol", self.rtol),
            ("stol", self.stol),
            ("max-error", self.max_error),
            ("min-cosine", self.min_cosine),
        ]
    }

    /// Returns the defaults for every element type, widest first.
    pub fn defaults() -> Vec<Self> {
        DType::VARIANTS.iter().copied().map(Self::for_dtype).collect()
    }
}
