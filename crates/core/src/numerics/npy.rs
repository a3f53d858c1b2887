//! Reader for `.npy` files. The header must be a dictionary as NumPy and IREE write it, not arbitrary Python.
//!
//! Format: <https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>, versions 1 to 3. The
//! header has its own parser because it may be hostile: a general parser for Python literals would recurse as
//! deeply as the file demands and multiply dimensions without overflow checks. Object arrays are pickles and
//! are rejected.

use crate::model::excerpt;

use super::tensor::{DType, Data, ShapeError, Tensor, by_type, byte_length, decode};

/// Maximum length of a header, the same as NumPy's `max_header_size`.
const LONGEST_HEADER: usize = 10_000;
/// Maximum number of dimensions, the same as NumPy's.
const MAX_DIMENSIONS: usize = 64;

/// The reason why bytes are not an `.npy` file with a tensor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NpyError {
    #[error("not an .npy file")]
    NotNpy,
    #[error("version {0}.{1} of the .npy format is unknown")]
    Version(u8, u8),
    #[error("the .npy header is too long for any tensor ({0} bytes)")]
    LongHeader(usize),
    #[error("the .npy file ends inside its header")]
    ShortHeader,
    #[error("the .npy header can't be read: {0}")]
    Header(&'static str),
    #[error("the .npy file contains Python objects, which are never loaded")]
    Objects,
    #[error("elements of type `{0}` can't be compared")]
    DType(String),
    #[error(transparent)]
    Shape(#[from] ShapeError),
}

impl Tensor {
    /// Reads an `.npy` file. It never allocates more than the file's size, whatever the header states. A raw
    /// two-byte type (`V2`, as `ml_dtypes` writes it) is read as bf16.
    pub fn from_npy(bytes: &[u8]) -> Result<Self, NpyError> {
        let (header, body) = split(bytes)?;
        let header = NpyHeader::parse(header)?;
        let expected = byte_length(header.dtype, &header.shape)?;
        if body.len() != expected {
            return Err(ShapeError::WrongLength { dtype: header.dtype, expected, found: body.len() }.into());
        }
        let data = if header.big_endian && header.dtype.size() > 1 {
            let mut swapped = body.to_vec();
            swapped.chunks_exact_mut(header.dtype.size()).for_each(<[u8]>::reverse);
            decode(header.dtype, &swapped)
        } else {
            decode(header.dtype, body)
        };
        let data = if header.fortran { row_major(data, &header.shape) } else { data };
        Ok(Self { shape: header.shape, data })
    }
}

/// Splits the bytes into header text and data.
fn split(bytes: &[u8]) -> Result<(&str, &[u8]), NpyError> {
    let rest = bytes.strip_prefix(b"\x93NUMPY").ok_or(NpyError::NotNpy)?;
    let [major, minor, rest @ ..] = rest else { return Err(NpyError::ShortHeader) };
    let (length, rest) = match (major, minor) {
        (1, 0) => {
            let (length, rest) = rest.split_first_chunk::<2>().ok_or(NpyError::ShortHeader)?;
            (usize::from(u16::from_le_bytes(*length)), rest)
        }
        (2 | 3, 0) => {
            let (length, rest) = rest.split_first_chunk::<4>().ok_or(NpyError::ShortHeader)?;
            (usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX), rest)
        }
        (major, minor) => return Err(NpyError::Version(*major, *minor)),
    };
    if length > LONGEST_HEADER {
        return Err(NpyError::LongHeader(length));
    }
    let (header, body) = rest.split_at_checked(length).ok_or(NpyError::ShortHeader)?;
    let header = std::str::from_utf8(header).map_err(|_| NpyError::Header("it is not text"))?;
    Ok((header, body))
}

#[derive(Debug)]
struct NpyHeader {
    dtype: DType,
    big_endian: bool,
    fortran: bool,
    shape: Vec<usize>,
}

impl NpyHeader {
    /// Reads `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`.
    fn parse(text: &str) -> Result<Self, NpyError> {
        let mut text = Cursor(text);
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        text.expect("{", "it does not start with a dictionary")?;
        while !text.eat("}") {
            let key = text.quoted()?;
            text.expect(":", "a key has no value")?;
            match key {
                "descr" => descr = Some(text.descr()?),
                "fortran_order" => fortran = Some(text.boolean()?),
                "shape" => shape = Some(text.shape()?),
                _ => return Err(NpyError::Header("an unknown key")),
            }
            if !text.eat(",") {
                text.expect("}", "the dictionary does not end")?;
                break;
            }
        }
        if !text.0.trim().is_empty() {
            return Err(NpyError::Header("something follows the dictionary"));
        }
        let descr = descr.ok_or(NpyError::Header("`descr` is missing"))?;
        let (dtype, big_endian) = dtype(descr)?;
        Ok(Self {
            dtype,
            big_endian,
            fortran: fortran.ok_or(NpyError::Header("`fortran_order` is missing"))?,
            shape: shape.ok_or(NpyError::Header("`shape` is missing"))?,
        })
    }
}

/// Parses a type such as `<f4`; the flag is set for big-endian data.
fn dtype(descr: &str) -> Result<(DType, bool), NpyError> {
    let unknown = || NpyError::DType(excerpt(descr, 20));
    let order = descr.chars().next().ok_or_else(unknown)?;
    let (big_endian, name) = match order {
        '<' | '|' | '=' => (false, &descr[1..]),
        '>' => (true, &descr[1..]),
        _ => (false, descr),
    };
    let dtype = match name {
        "f8" => DType::F64,
        "f4" => DType::F32,
        "f2" => DType::F16,
        "V2" => DType::Bf16,
        "i8" => DType::I64,
        "i4" => DType::I32,
        "i2" => DType::I16,
        "i1" => DType::I8,
        "u8" => DType::U64,
        "u4" => DType::U32,
        "u2" => DType::U16,
        "u1" => DType::U8,
        "b1" => DType::Bool,
        name if name.starts_with('O') => return Err(NpyError::Objects),
        _ => return Err(unknown()),
    };
    Ok((dtype, big_endian))
}

/// The part of the header that is not parsed yet.
struct Cursor<'a>(&'a str);

impl<'a> Cursor<'a> {
    fn eat(&mut self, token: &str) -> bool {
        let rest = self.0.trim_start().strip_prefix(token);
        if let Some(rest) = rest {
            self.0 = rest;
        }
        rest.is_some()
    }

    fn expect(&mut self, token: &str, otherwise: &'static str) -> Result<(), NpyError> {
        if self.eat(token) { Ok(()) } else { Err(NpyError::Header(otherwise)) }
    }

    fn quoted(&mut self) -> Result<&'a str, NpyError> {
        let quote = if self.eat("'") {
            '\''
        } else if self.eat("\"") {
            '"'
        } else {
            return Err(NpyError::Header("expected text in quotes"));
        };
        let (text, rest) = self.0.split_once(quote).ok_or(NpyError::Header("a quote does not end"))?;
        self.0 = rest;
        Ok(text)
    }

    fn descr(&mut self) -> Result<&'a str, NpyError> {
        if self.0.trim_start().starts_with('[') {
            return Err(NpyError::DType("record".to_owned()));
        }
        self.quoted()
    }

    fn boolean(&mut self) -> Result<bool, NpyError> {
        if self.eat("True") {
            return Ok(true);
        }
        self.expect("False", "`fortran_order` is neither True nor False")?;
        Ok(false)
    }

    fn shape(&mut self) -> Result<Vec<usize>, NpyError> {
        const WRONG: NpyError = NpyError::Header("`shape` is not a tuple of sizes");
        self.expect("(", "`shape` is not a tuple of sizes")?;
        let mut shape = Vec::new();
        while !self.eat(")") {
            self.0 = self.0.trim_start();
            let end = self.0.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.0.len());
            let (digits, rest) = self.0.split_at(end);
            shape.push(digits.parse().map_err(|_| WRONG)?);
            // Python 2 wrote long integers with a suffix L.
            self.0 = rest.strip_prefix('L').unwrap_or(rest);
            if shape.len() > MAX_DIMENSIONS {
                return Err(NpyError::Header("`shape` has too many dimensions"));
            }
            if !self.eat(",") {
                self.expect(")", "`shape` is not a tuple of sizes")?;
                break;
            }
        }
        Ok(shape)
    }
}

/// Reorders column-major elements to row-major order.
fn row_major(data: Data, shape: &[usize]) -> Data {
    fn each<T: Copy>(values: Vec<T>, shape: &[usize]) -> Vec<T> {
        if shape.len() < 2 || values.is_empty() {
            return values;
        }
        // The stride of each dimension in the file, first dimension fastest.
        let mut strides = Vec::with_capacity(shape.len());
        let mut stride = 1;
        for side in shape {
            strides.push(stride);
            stride *= side;
        }
        let mut index = vec![0; shape.len()];
        let mut at = 0;
        let mut out = Vec::with_capacity(values.len());
        for _ in 0..values.len() {
            out.push(values[at]);
            // Counts up in row-major order: the last dimension first.
            for dimension in (0..shape.len()).rev() {
                index[dimension] += 1;
                at += strides[dimension];
                if index[dimension] < shape[dimension] {
                    break;
                }
                at -= strides[dimension] * shape[dimension];
                index[dimension] = 0;
            }
        }
        out
    }
    by_type!(same data, values => each(values, shape))
}
