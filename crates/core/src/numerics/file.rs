//! Tensor files: `.npy`, and raw bytes of a known type, because `.npy` has no bf16.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::NpyError;
use super::tensor::{DType, Data, ShapeError, Tensor, by_type};

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

    pub fn read(&self, bytes: &[u8]) -> Result<Tensor, TensorFileError> {
        let Some(raw) = &self.raw else { return Ok(Tensor::from_npy(bytes)?) };
        let (dtype, shape) = parse_type(raw).ok_or_else(|| TensorFileError::Type(raw.clone()))?;
        Ok(Tensor::from_raw(dtype, shape, bytes)?)
    }
}

/// Returns whether `.npy` can't represent a type such as `4x8xbf16`.
pub fn lacks_npy(raw: &str) -> bool {
    raw.rsplit('x').next() == Some(DType::Bf16.into_str())
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
        Some(Self { shape, data })
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
    }
}
