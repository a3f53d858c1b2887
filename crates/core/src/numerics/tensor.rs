//! A dense tensor in row-major order, and its elements.

use half::{bf16, f16};

use crate::model::digest_of;

/// Element types that an output can have, widest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[derive(strum::Display, strum::EnumString, strum::IntoStaticStr, strum::VariantArray, strum::VariantNames)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum DType {
    F64,
    F32,
    F16,
    Bf16,
    I64,
    I32,
    I16,
    I8,
    U64,
    U32,
    U16,
    U8,
    Bool,
}

impl DType {
    /// Returns the size of one element in bytes.
    pub const fn size(self) -> usize {
        match self {
            Self::F64 | Self::I64 | Self::U64 => 8,
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F16 | Self::Bf16 | Self::I16 | Self::U16 => 2,
            Self::I8 | Self::U8 | Self::Bool => 1,
        }
    }
}

/// The elements, in row-major order.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Data {
    F64(Vec<f64>),
    F32(Vec<f32>),
    F16(Vec<f16>),
    Bf16(Vec<bf16>),
    I64(Vec<i64>),
    I32(Vec<i32>),
    I16(Vec<i16>),
    I8(Vec<i8>),
    U64(Vec<u64>),
    U32(Vec<u32>),
    U16(Vec<u16>),
    U8(Vec<u8>),
    /// One byte per element: zero is false, anything else is true.
    Bool(Vec<u8>),
}

/// Writes a `match` with the same code for every element type:
/// - `any`: an expression of the elements, whatever their type;
/// - `same`: elements of the same type, made from these elements;
/// - `made`: elements of a given type;
/// - `pair`: an expression of two lists of elements of one type, or else another one;
/// - `named`: the type itself.
macro_rules! by_type {
    (@any [$($kind:ident)+] $data:expr, $values:ident => $result:expr) => {
        match $data { $(Data::$kind($values) => $result,)+ }
    };
    (@same [$($kind:ident)+] $data:expr, $values:ident => $result:expr) => {
        match $data { $(Data::$kind($values) => Data::$kind($result),)+ }
    };
    (@made [$($kind:ident)+] $dtype:expr => $result:expr) => {
        match $dtype { $(DType::$kind => Data::$kind($result),)+ }
    };
    (@pair [$($kind:ident)+] $pair:expr, ($one:ident, $two:ident) => $result:expr, $otherwise:expr) => {
        match $pair { $((Data::$kind($one), Data::$kind($two)) => $result,)+ _ => $otherwise }
    };
    (@named [$($kind:ident)+] $data:expr) => {
        match $data { $(Data::$kind(_) => DType::$kind,)+ }
    };
    ($form:ident $($rest:tt)+) => {
        by_type!(@$form [F64 F32 F16 Bf16 I64 I32 I16 I8 U64 U32 U16 U8 Bool] $($rest)+)
    };
}
pub(super) use by_type;

#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    pub(super) shape: Vec<usize>,
    pub(super) data: Data,
    /// If set, the last dimension has the real and the imaginary part of each number.
    pub(super) complex: bool,
}

/// The reason why bytes do not match the expected tensor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    #[error("a tensor of shape {} is larger than any memory", shape(.0))]
    TooLarge(Vec<usize>),
    #[error("expected {expected} bytes for {} elements of {dtype}, found {found}", expected / dtype.size())]
    WrongLength { dtype: DType, expected: usize, found: usize },
}

/// Formats a shape as `2x3`, or `scalar`.
pub(super) fn shape(shape: &[usize]) -> String {
    if shape.is_empty() {
        return "scalar".to_owned();
    }
    shape.iter().map(usize::to_string).collect::<Vec<_>>().join("x")
}

impl Tensor {
    /// Reads little-endian bytes in row-major order, as `iree-run-module --output=@x.bin` writes them.
    pub fn from_raw(dtype: DType, shape: Vec<usize>, bytes: &[u8]) -> Result<Self, ShapeError> {
        let expected = byte_length(dtype, &shape)?;
        if bytes.len() != expected {
            return Err(ShapeError::WrongLength { dtype, expected, found: bytes.len() });
        }
        Ok(Self { shape, data: decode(dtype, bytes), complex: false })
    }

    pub fn dtype(&self) -> DType {
        by_type!(named self.data)
    }

    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        // Other dimensions may be of any size if one is zero.
        if self.shape.contains(&0) { 0 } else { self.shape.iter().product() }
    }

    /// Returns whether there is a single number.
    pub(super) fn is_one_number(&self) -> bool {
        self.len() == if self.complex { 2 } else { 1 }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Describes type and shape, as `f32 2x3`.
    pub(super) fn describe(&self) -> String {
        if let ([sides @ .., _], true) = (self.shape.as_slice(), self.complex) {
            return format!("complex {} {}", self.dtype(), shape(sides));
        }
        format!("{} {}", self.dtype(), shape(&self.shape))
    }

    /// Returns the elements as `f64`; integers beyond 2^53 are rounded.
    pub fn to_f64(&self) -> Vec<f64> {
        by_type!(any &self.data, values => values.iter().map(|value| value.value()).collect())
    }

    /// Returns the SHA-256 of the elements in hexadecimal.
    pub(super) fn sha256(&self) -> String {
        by_type!(any & self.data, values => digest_of([values.iter().flat_map(|value| value.bytes()).collect::<Vec<u8>>()]))
    }

    /// Returns whether both tensors have the same type, shape and elements, none of which is finite.
    pub(super) fn is_same_without_finite(&self, other: &Self) -> bool {
        let is_same =
            |(one, two): (&f64, &f64)| !one.is_finite() && (one == two || one.is_nan() && two.is_nan());
        let same_kind =
            self.dtype() == other.dtype() && self.complex == other.complex && self.shape == other.shape;
        same_kind && !self.is_empty() && self.to_f64().iter().zip(&other.to_f64()).all(is_same)
    }

    /// Returns zeros of the same type and shape.
    pub(super) fn zeros(&self) -> Self {
        let bytes = vec![0; self.len() * self.dtype().size()];
        Self { shape: self.shape.clone(), data: decode(self.dtype(), &bytes), complex: self.complex }
    }

    /// Returns a tensor of the same shape that repeats the element at `at` everywhere; for complex numbers, the number of
    /// which it is a part.
    pub(super) fn splat(&self, at: usize) -> Self {
        fn all<T: Copy>(values: &[T], at: usize) -> Vec<T> {
            values.get(at).map(|value| vec![*value; values.len()]).unwrap_or_default()
        }
        fn parts<T: Copy>(values: &[T], at: usize) -> Vec<T> {
            let number = values.chunks_exact(2).nth(at / 2).unwrap_or_default();
            number.iter().copied().cycle().take(if number.is_empty() { 0 } else { values.len() }).collect()
        }
        let data = by_type!(same &self.data, values => if self.complex { parts(values, at) } else { all(values, at) });
        Self { shape: self.shape.clone(), data, complex: self.complex }
    }

    /// Reinterprets the bits as another type of the same width. MLIR's integers have no sign, and `.npy` has
    /// no bf16, so the reference determines the type.
    pub(super) fn bits_as(&self, dtype: DType) -> Option<Self> {
        if self.dtype().size() != dtype.size() {
            return None;
        }
        let bytes = match &self.data {
            Data::I64(v) => bytes(v, |x| x.to_le_bytes()),
            Data::I32(v) => bytes(v, |x| x.to_le_bytes()),
            Data::I16(v) => bytes(v, |x| x.to_le_bytes()),
            Data::I8(v) => bytes(v, |x| x.to_le_bytes()),
            Data::U64(v) => bytes(v, |x| x.to_le_bytes()),
            Data::U32(v) => bytes(v, |x| x.to_le_bytes()),
            Data::U16(v) => bytes(v, |x| x.to_le_bytes()),
            Data::U8(v) => v.clone(),
            Data::F64(_) | Data::F32(_) | Data::F16(_) | Data::Bf16(_) | Data::Bool(_) => return None,
        };
        Some(Self { shape: self.shape.clone(), data: decode(dtype, &bytes), complex: self.complex })
    }
}

fn bytes<T: Copy, const N: usize>(values: &[T], to: fn(T) -> [u8; N]) -> Vec<u8> {
    values.iter().flat_map(|x| to(*x)).collect()
}

/// Returns the size of a tensor in bytes, checked for overflow.
pub(super) fn byte_length(dtype: DType, shape: &[usize]) -> Result<usize, ShapeError> {
    // An empty dimension makes the tensor empty, however large the others are.
    if shape.contains(&0) {
        return Ok(0);
    }
    let length = shape.iter().try_fold(dtype.size(), |product, side| product.checked_mul(*side));
    length.ok_or_else(|| ShapeError::TooLarge(shape.to_vec()))
}

/// Decodes little-endian elements.
pub(super) fn decode(dtype: DType, bytes: &[u8]) -> Data {
    fn each<T, const N: usize>(bytes: &[u8], from: fn([u8; N]) -> T) -> Vec<T> {
        bytes.as_chunks::<N>().0.iter().map(|chunk| from(*chunk)).collect()
    }
    match dtype {
        DType::F64 => Data::F64(each(bytes, f64::from_le_bytes)),
        DType::F32 => Data::F32(each(bytes, f32::from_le_bytes)),
        DType::F16 => Data::F16(each(bytes, f16::from_le_bytes)),
        DType::Bf16 => Data::Bf16(each(bytes, bf16::from_le_bytes)),
        DType::I64 => Data::I64(each(bytes, i64::from_le_bytes)),
        DType::I32 => Data::I32(each(bytes, i32::from_le_bytes)),
        DType::I16 => Data::I16(each(bytes, i16::from_le_bytes)),
        DType::I8 => Data::I8(each(bytes, i8::from_le_bytes)),
        DType::U64 => Data::U64(each(bytes, u64::from_le_bytes)),
        DType::U32 => Data::U32(each(bytes, u32::from_le_bytes)),
        DType::U16 => Data::U16(each(bytes, u16::from_le_bytes)),
        DType::U8 => Data::U8(bytes.to_vec()),
        DType::Bool => Data::Bool(bytes.iter().map(|byte| u8::from(*byte != 0)).collect()),
    }
}

/// A Rust type that can hold an element.
pub(super) trait Element: Copy {
    fn value(self) -> f64;

    /// Returns bytes that are equal for equal elements only.
    fn bytes(self) -> [u8; 8];

    /// Returns |a − b|, without the rounding that large integers would suffer as `f64`.
    fn distance(self, other: Self) -> f64;

    /// Returns the number of representable numbers between the two; for integers, their distance.
    fn ulps(self, other: Self) -> f64;
}

macro_rules! floats {
    ($($float:ty, $bits:ty, $wide:ty;)+) => {$(
        impl Element for $float {
            fn value(self) -> f64 {
                f64::from(self)
            }

            fn bytes(self) -> [u8; 8] {
                self.value().to_le_bytes()
            }

            fn distance(self, other: Self) -> f64 {
                (self.value() - other.value()).abs()
            }

            fn ulps(self, other: Self) -> f64 {
                // Sign and magnitude are mapped to consecutive integers, and both zeros to the same one.
                let place = |x: Self| {
                    let bits = x.to_bits();
                    let sign: $bits = 1 << (<$bits>::BITS - 1);
                    let magnitude = <$wide>::from(bits & !sign);
                    if bits & sign == 0 { magnitude } else { -magnitude }
                };
                (place(self) - place(other)).unsigned_abs() as f64
            }
        }
    )+};
}

floats! {
    f64, u64, i128;
    f32, u32, i64;
    f16, u16, i32;
    bf16, u16, i32;
}

macro_rules! integers {
    ($($integer:ty)+) => {$(
        impl Element for $integer {
            fn value(self) -> f64 {
                self as f64
            }

            fn bytes(self) -> [u8; 8] {
                (self as i64).to_le_bytes()
            }

            fn distance(self, other: Self) -> f64 {
                self.abs_diff(other) as f64
            }

            fn ulps(self, other: Self) -> f64 {
                self.distance(other)
            }
        }
    )+};
}

integers! { i64 i32 i16 i8 u64 u32 u16 u8 }
