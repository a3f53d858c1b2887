//! Tensor files: `.npy`, and raw bytes of a known type, because `.npy` has no bf16.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::model::excerpt;

use super::tensor::{DType, Data, ShapeError, Tensor, by_type, byte_length, decode};

/// Extension of raw files.
const RAW_ENDING: &str = ".bin";

/// A file that contains one tensor.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct TensorFile {
    pub path: PathBuf,
    /// The type of a raw file in IREE's notation, `4x8xbf16`; `None` for `.npy`.
    pub raw: Option<String>,
}

/// The reason why a file is not a tensor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TensorFileError {
    #[error(transparent)]
    Npy(#[from] NpyError),
    #[error(transparent)]
    Raw(#[from] ShapeError),
    #[error("`{0}` is not the type of a tensor")]
    Type(String),
}

impl TensorFile {
    /// Determines the format from the name: `x.4x8xbf16.bin` is raw, everything else is `.npy`.
    pub fn named(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let raw = path.file_name().and_then(|name| name.to_str()).and_then(type_in_name).map(str::to_owned);
        Self { path, raw }
    }

    /// Parses the notation of a suite: `x.npy`, `4x8xbf16=@x.bin`, or `x.4x8xbf16.bin` for short.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some((raw, path)) = text.split_once("=@") {
            parse_type(raw)?;
            let is_raw = !path.is_empty() && !path.ends_with(".npy");
            return is_raw.then(|| Self { path: path.into(), raw: Some(raw.to_owned()) });
        }
        let file = Self::named(text);
        (file.raw.is_some() || text.ends_with(".npy")).then_some(file)
    }

    /// Returns this file with its path relative to `folder`.
    #[must_use]
    pub fn below(&self, folder: &Path) -> Self {
        Self { path: folder.join(&self.path), raw: self.raw.clone() }
    }

    /// Returns the file extension by which [`Self::named`] recognizes this format.
    pub fn ending(&self) -> String {
        self.raw.as_ref().map_or_else(|| "npy".to_owned(), |raw| format!("{raw}{RAW_ENDING}"))
    }

    /// Returns the notation of a suite: the reverse of [`Self::parse`].
    pub fn notation(&self) -> String {
        let path = self.path.to_string_lossy();
        self.raw.as_ref().map_or_else(|| path.to_string(), |raw| format!("{raw}=@{path}"))
    }

    /// Returns the type if the runtime can't write it as `.npy`.
    pub fn type_without_npy(&self) -> Option<&str> {
        self.raw.as_deref().filter(|raw| lacks_npy(raw))
    }

    /// Returns the element type if the notation states it; a `.npy` file states its own.
    pub fn dtype(&self) -> Option<DType> {
        self.raw.as_deref().and_then(parse_type).map(|(dtype, _)| dtype)
    }

    /// Checks the length of a raw file, which can't be read in any other way than as its whole content. An `.npy` file
    /// states its shape.
    ///
    /// # Errors
    /// The lengths, if they differ.
    pub fn check_length(&self, found: u64) -> Result<(), TensorFileError> {
        let Some(raw) = &self.raw else { return Ok(()) };
        let (dtype, shape) = parse_type(raw).ok_or_else(|| TensorFileError::Type(raw.clone()))?;
        let expected = byte_length(dtype, &shape)?;
        let found = usize::try_from(found).unwrap_or(usize::MAX);
        if found == expected {
            Ok(())
        } else {
            Err(ShapeError::WrongLength { dtype, expected, found }.into())
        }
    }

    pub fn read(&self, bytes: &[u8]) -> Result<Tensor, TensorFileError> {
        let Some(raw) = &self.raw else { return Ok(Tensor::from_npy(bytes)?) };
        let (dtype, shape) = parse_type(raw).ok_or_else(|| TensorFileError::Type(raw.clone()))?;
        Ok(Tensor::from_raw(dtype, shape, bytes)?)
    }
}

/// Returns whether `.npy` can't represent a type such as `4x8xbf16` or `4x8xf8E4M3FN`.
pub fn lacks_npy(raw: &str) -> bool {
    let name = raw.rsplit('x').next().unwrap_or(raw);
    // `complex` contains an `x` too, so the name that is left of `4xcomplex<f32>` is `<f32>`.
    !name.ends_with('>') && element(name).is_none_or(|dtype| dtype == DType::Bf16)
}

fn type_in_name(name: &str) -> Option<&str> {
    let found = name.strip_suffix(RAW_ENDING)?.rsplit_once('.')?.1;
    parse_type(found).map(|_| found)
}

impl Tensor {
    /// Reads a tensor as IREE's tools print it, `2x2xf32=[1 2][3 4]`. Returns `None` if the text is cut
    /// short.
    pub fn from_printed(text: &str) -> Option<Self> {
        let (notation, values) = text.split_once('=')?;
        let (dtype, shape) = parse_type(notation.trim())?;
        let words = || values.split(['[', ']', ' ']).filter(|word| !word.is_empty());
        if shape.iter().try_fold(1_usize, |all, side| all.checked_mul(*side)) != Some(words().count()) {
            return None;
        }
        fn read<'a, T: FromStr>(words: impl Iterator<Item = &'a str>) -> Option<Vec<T>> {
            words.map(|word| word.parse().ok()).collect()
        }
        let data = by_type!(made dtype => read(words())?);
        Some(Self { shape, data, complex: false })
    }
}

/// Most bytes of a literal's elements.
const MOST_LITERAL_BYTES: usize = 1 << 30;

/// Returns the notation, the type and the little-endian elements of a value from the command line, such as
/// `2x2xf32=1 2 3 4`. A single number stands for all elements, and without a value they are zero.
pub fn literal_elements(text: &str) -> Option<(&str, DType, Vec<u8>)> {
    let (notation, values) = text.split_once('=').unwrap_or((text, "0"));
    let (dtype, shape) = parse_type(notation)?;
    let count = shape.iter().try_fold(1_usize, |all, side| all.checked_mul(*side))?;
    count.checked_mul(dtype.size()).filter(|bytes| *bytes <= MOST_LITERAL_BYTES)?;
    let is_separator = |c: char| c.is_whitespace() || matches!(c, ',' | '[' | ']');
    let words: Vec<&str> = values.split(is_separator).filter(|word| !word.is_empty()).collect();
    let data = by_type!(made dtype => words.iter().map(|word| word.parse().ok()).collect::<Option<_>>()?);
    let bytes = by_type!(any data, values => values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>());
    match words.len() {
        1 => Some((notation, dtype, bytes.repeat(count))),
        all => (all == count).then_some((notation, dtype, bytes)),
    }
}

/// Reads `4x8xbf16`, or `bf16` for one element.
pub(super) fn parse_type(text: &str) -> Option<(DType, Vec<usize>)> {
    let mut parts: Vec<&str> = text.split('x').collect();
    let dtype = element(parts.pop()?)?;
    let shape: Option<Vec<usize>> = parts
        .into_iter()
        .map(|side| side.parse().ok().filter(|_| side.bytes().all(|byte| byte.is_ascii_digit())))
        .collect();
    Some((dtype, shape?))
}

/// Returns the element type with this IREE name.
fn element(name: &str) -> Option<DType> {
    if name == "i1" {
        return Some(DType::Bool);
    }
    if let Some(bits) = name.strip_prefix("ui") {
        return format!("u{bits}").parse().ok();
    }
    if let Some(bits) = name.strip_prefix("si") {
        return format!("i{bits}").parse().ok();
    }
    name.parse::<DType>().ok().filter(|dtype| *dtype != DType::Bool && !name.starts_with('u'))
}

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
    /// two-byte type (`V2`, as `ml_dtypes` writes it) is read as bf16. A complex tensor has an additional last
    /// dimension of two: the real and the imaginary part.
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
        Ok(Self { shape: header.shape, data, complex: header.complex })
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

/// The header: a dictionary as NumPy and IREE write it, not arbitrary Python (format:
/// <https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>, versions 1 to 3). It has its own parser
/// because it may be hostile: a general parser for Python literals would recurse as deeply as the file demands and
/// multiply dimensions without overflow checks. Object arrays are pickles and are rejected.
#[derive(Debug)]
struct NpyHeader {
    /// For complex numbers, the type of their parts.
    dtype: DType,
    complex: bool,
    big_endian: bool,
    fortran: bool,
    /// For complex numbers, the last dimension is that of the parts.
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
        let ElementType { dtype, complex, big_endian } = element_type(descr)?;
        let fortran = fortran.ok_or(NpyError::Header("`fortran_order` is missing"))?;
        let mut shape = shape.ok_or(NpyError::Header("`shape` is missing"))?;
        if complex {
            // The parts of a number are adjacent in both orders.
            if fortran && shape.len() > 1 {
                return Err(NpyError::DType("complex, column-major".to_owned()));
            }
            shape.push(2);
        }
        Ok(Self { dtype, complex, big_endian, fortran: fortran && !complex, shape })
    }
}

struct ElementType {
    dtype: DType,
    complex: bool,
    big_endian: bool,
}

/// Parses a type such as `<f4`.
fn element_type(descr: &str) -> Result<ElementType, NpyError> {
    let unknown = || NpyError::DType(excerpt(descr, 20));
    let order = descr.chars().next().ok_or_else(unknown)?;
    let (big_endian, name) = match order {
        '<' | '|' | '=' => (false, &descr[1..]),
        '>' => (true, &descr[1..]),
        _ => (false, descr),
    };
    let complex = name.starts_with('c');
    let dtype = match name {
        "c16" | "f8" => DType::F64,
        "c8" | "f4" => DType::F32,
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
    Ok(ElementType { dtype, complex, big_endian })
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

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(path: &str, raw: &str) -> TensorFile {
        TensorFile { path: path.into(), raw: Some(raw.into()) }
    }

    #[test]
    fn a_raw_file_is_recognized_by_its_name() {
        let file = TensorFile::named("d/x.2x1xbf16.bin");
        assert_eq!(file, raw("d/x.2x1xbf16.bin", "2x1xbf16"));
        assert_eq!(TensorFile::named(format!("y.{}", file.ending())).raw, file.raw);
        let tensor = file.read(&[0x80, 0x3f, 0x00, 0x40]).unwrap();
        assert_eq!(
            (tensor.dtype(), tensor.shape(), tensor.to_f64()),
            (DType::Bf16, [2, 1].as_slice(), vec![1.0, 2.0])
        );
        assert_eq!(TensorFile::named("x.bf16.bin").read(&[0x80, 0x3f]).unwrap().shape(), [0_usize; 0]);
        assert!(TensorFile::named("x.2xbf16.bin").read(&[0; 3]).is_err(), "three bytes are not two elements");
        let is_as_long = |bytes| TensorFile::named("x.2xbf16.bin").check_length(bytes).is_ok();
        assert_eq!([3, 4, 5].map(is_as_long), [false, true, false]);
        assert_eq!(TensorFile::named("x.npy").check_length(3), Ok(()));
        for other in
            ["x.npy", "x.bin", "x.2xf99.bin", "x.-1xbf16.bin", "x.+2xbf16.bin", "x.2xbf16.npy", "2xbf16"]
        {
            assert_eq!(TensorFile::named(other).raw, None, "{other}");
        }
    }

    #[test]
    fn the_runtime_s_notation_accepts_raw_files_of_any_name() {
        for kind in ["2x3xbf16", "2xf32", "f64", "4xi1", "2xui8", "2xsi16", "2xi32"] {
            assert_eq!(TensorFile::parse(&format!("{kind}=@a/x.bin")), Some(raw("a/x.bin", kind)));
        }
        assert_eq!(TensorFile::parse("x.npy").unwrap().raw, None);
        for other in
            ["2xbf16=@x.npy", "2xbf16=@", "2xu8=@x.bin", "2xbool=@x.bin", "2xf32=1", "@x.bin", "x.bin"]
        {
            assert_eq!(TensorFile::parse(other), None, "{other}");
        }
        assert_eq!(raw("x", "2xbf16").type_without_npy(), Some("2xbf16"));
        assert_eq!(raw("x", "2xf32").type_without_npy(), None);
        let lacking = ["bf16", "4x8xf8E4M3FN", "2xi4"];
        assert!(lacking.iter().all(|name| lacks_npy(name)));
        assert!(["f16", "i1", "2xui8", "3xcomplex<f32>"].iter().all(|name| !lacks_npy(name)));
    }
}
