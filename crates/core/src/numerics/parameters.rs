//! Weights generated from a module's own declarations, as an IREE parameter archive (`.irpa`, version 0.0).

use std::collections::BTreeSet;
use std::f64::consts::TAU;
use std::fmt;

use half::{bf16, f16};

use super::random::MersenneTwister;

/// The way in which weights are generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub enum ParameterFill {
    /// Floating-point numbers from a normal distribution with a standard deviation of 0.01, and integers from their whole range.
    Random { seed: u32 },
    /// Zeros, which take no space in the archive.
    Zeros,
}

/// The reason why weights can't be generated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveError {
    #[error("the module declares no parameter of the scope `{0}`")]
    NoneDeclared(String),
    #[error("the module's parameter `{name}` has the unknown type `{kind}`")]
    Type { name: String, kind: String },
    #[error("the module's parameters are too large for a file")]
    TooLarge,
}

impl ParameterFill {
    /// Parses `random(seed=42)` or `zeros()`.
    pub fn parse(text: &str) -> Option<Self> {
        if text == "zeros()" {
            return Some(Self::Zeros);
        }
        let seed = text.strip_prefix("random(seed=")?.strip_suffix(')')?;
        seed.parse().ok().map(|seed| Self::Random { seed })
    }
}

impl fmt::Display for ParameterFill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Random { seed } => write!(f, "random(seed={seed})"),
            Self::Zeros => f.write_str("zeros()"),
        }
    }
}

/// The weights of one scope of a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeightArchive {
    fill: ParameterFill,
    entries: Vec<Declared>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Declared {
    name: String,
    element: ElementType,
    count: u64,
}

/// The element type of a weight; an integer type is identified by its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ElementType {
    F64,
    F32,
    F16,
    Bf16,
    Float8(Float8),
    Integer(u64),
}

/// A floating-point format of eight bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Float8 {
    mantissa: u32,
    bias: i32,
    /// The largest code that stands for a finite number.
    largest: u8,
    has_negative_zero: bool,
}

/// The forms of a declaration, in newer and older modules.
const DECLARATIONS: [&str; 2] = ["#stream.parameter.named<", "#flow.parameter.named<"];
const ALIGNMENT: u64 = 64;
const ENTRY_ALIGNMENT: u64 = 16;
const HEADER: u64 = 88;
const ENTRY_HEADER: u64 = 60;
const SPLAT_ENTRY: u64 = ENTRY_HEADER + 8 + 16 + 1;
const DATA_ENTRY: u64 = ENTRY_HEADER + 16;
/// Number of elements that are generated at once.
const CHUNK: u64 = 1 << 16;

impl WeightArchive {
    /// Reads the declarations of one scope from a module's text.
    pub fn declared(mlir: &str, scope: &str, fill: ParameterFill) -> Result<Self, ArchiveError> {
        let (mut entries, mut names) = (Vec::new(), BTreeSet::new());
        let found = DECLARATIONS.iter().flat_map(|start| mlir.match_indices(start));
        for (at, start) in found {
            let Some((of, name, kind)) = declaration(&mlir[at + start.len()..]) else { continue };
            if of != scope || !names.insert(name) {
                continue;
            }
            let (element, count) = element_and_count(kind)
                .ok_or_else(|| ArchiveError::Type { name: name.to_owned(), kind: kind.to_owned() })?;
            entries.push(Declared { name: name.to_owned(), element, count });
        }
        if entries.is_empty() {
            return Err(ArchiveError::NoneDeclared(scope.to_owned()));
        }
        let archive = Self { fill, entries };
        archive.layout().map(|_| archive).ok_or(ArchiveError::TooLarge)
    }

    /// Returns the file in parts.
    pub fn bytes(&self) -> impl Iterator<Item = Vec<u8>> {
        let (header, offsets, seed) = match (self.layout(), self.fill) {
            (Some((header, offsets)), ParameterFill::Random { seed }) => (header, offsets, Some(seed)),
            (layout, _) => (layout.map(|(header, _)| header).unwrap_or_default(), Vec::new(), None),
        };
        let mut source =
            NormalSource { twister: MersenneTwister::new(seed.unwrap_or_default()), second: None };
        let (mut at, mut done, mut written) = (0, 0, 0);
        let data = std::iter::from_fn(move || {
            let (entry, offset) = self.entries.get(at).zip(offsets.get(at))?;
            let mut bytes = vec![0; usize::try_from(offset.saturating_sub(written)).unwrap_or_default()];
            let count = CHUNK.min(entry.count - done);
            for _ in 0..count {
                entry.element.random(&mut source, &mut bytes);
            }
            written += bytes.len() as u64;
            done += count;
            if done == entry.count {
                (at, done) = (at + 1, 0);
            }
            Some(bytes)
        });
        std::iter::once(header).chain(data)
    }

    /// Returns the header with padding up to the data, and the offset of each entry's data; `None` if a
    /// number overflows.
    fn layout(&self) -> Option<(Vec<u8>, Vec<u64>)> {
        let entry_size = match self.fill {
            ParameterFill::Random { .. } => DATA_ENTRY,
            ParameterFill::Zeros => SPLAT_ENTRY,
        };
        let stride = entry_size.next_multiple_of(ENTRY_ALIGNMENT);
        let entries_at = HEADER.next_multiple_of(ENTRY_ALIGNMENT);
        let count = self.entries.len() as u64;
        let entries_length = (count - 1) * stride + entry_size;
        let names_at = entries_at + entries_length;
        let names: String = self.entries.iter().map(|entry| entry.name.as_str()).collect();
        let data_at = (names_at + names.len() as u64).next_multiple_of(ALIGNMENT);
        let (mut offsets, mut end) = (Vec::new(), 0_u64);
        for entry in &self.entries {
            let offset = end.checked_next_multiple_of(ALIGNMENT)?;
            end = offset.checked_add(entry.count.checked_mul(entry.element.size())?)?;
            offsets.push(offset);
        }
        let stored = if self.fill == ParameterFill::Zeros { 0 } else { end };
        data_at.checked_add(end)?;
        let mut bytes = b"IRPA".to_vec();
        bytes.extend([0; 4]);
        let numbers =
            [HEADER, 0, 0, count, entries_at, entries_length, names_at, names.len() as u64, data_at, stored];
        bytes.extend(numbers.into_iter().flat_map(u64::to_le_bytes));
        let (mut name_at, mut entry_at) = (0, entries_at);
        for (entry, offset) in self.entries.iter().zip(&offsets) {
            pad(&mut bytes, entry_at);
            let kind: u32 = if self.fill == ParameterFill::Zeros { 1 } else { 2 };
            let name = entry.name.len() as u64;
            let length = entry.count * entry.element.size();
            bytes.extend(entry_size.to_le_bytes());
            bytes.extend(kind.to_le_bytes());
            bytes.extend([0, name_at, name, 0, 0, ALIGNMENT].into_iter().flat_map(u64::to_le_bytes));
            match self.fill {
                ParameterFill::Random { .. } => {
                    bytes.extend([*offset, length].into_iter().flat_map(u64::to_le_bytes));
                }
                ParameterFill::Zeros => {
                    bytes.extend(length.to_le_bytes());
                    bytes.extend([0; 16]);
                    bytes.push(1);
                }
            }
            name_at += name;
            entry_at += stride;
        }
        bytes.extend(names.bytes());
        pad(&mut bytes, data_at);
        Some((bytes, offsets))
    }
}

fn pad(bytes: &mut Vec<u8>, to: u64) {
    bytes.resize(usize::try_from(to).unwrap_or(bytes.len()).max(bytes.len()), 0);
}

/// Parses scope, name and type of `"model"::"a.weight"> : tensor<11x65xf32>`, in which the scope may be
/// missing.
fn declaration(text: &str) -> Option<(&str, &str, &str)> {
    let (first, rest) = text.strip_prefix('"')?.split_once('"')?;
    let (scope, name, rest) = match rest.strip_prefix("::\"") {
        Some(rest) => rest.split_once('"').map(|(name, rest)| (first, name, rest))?,
        None => ("", first, rest),
    };
    let kind = rest.strip_prefix("> : ")?;
    Some((scope, name, kind.split(['\n', '\r']).next()?.trim_end()))
}

/// Parses the element type and the number of elements of `tensor<11x65xf32>`.
fn element_and_count(kind: &str) -> Option<(ElementType, u64)> {
    let mut parts: Vec<&str> = kind.strip_prefix("tensor<")?.strip_suffix('>')?.split('x').collect();
    let element = ElementType::parse(parts.pop()?)?;
    let count = parts.into_iter().try_fold(1_u64, |all, side| all.checked_mul(side.parse().ok()?))?;
    Some((element, count))
}

impl ElementType {
    fn parse(text: &str) -> Option<Self> {
        let float8 = |mantissa, bias, largest, has_negative_zero| {
            Self::Float8(Float8 { mantissa, bias, largest, has_negative_zero })
        };
        Some(match text {
            "f64" => Self::F64,
            "f32" => Self::F32,
            "f16" => Self::F16,
            "bf16" => Self::Bf16,
            "f8E4M3FN" => float8(3, 7, 0x7e, true),
            "f8E4M3FNUZ" => float8(3, 8, 0x7f, false),
            "f8E5M2" => float8(2, 15, 0x7b, true),
            "f8E5M2FNUZ" => float8(2, 16, 0x7f, false),
            _ => {
                let bits = ["ui", "si", "i"].into_iter().find_map(|sign| text.strip_prefix(sign))?;
                match bits {
                    "8" => Self::Integer(1),
                    "16" => Self::Integer(2),
                    "32" => Self::Integer(4),
                    "64" => Self::Integer(8),
                    _ => return None,
                }
            }
        })
    }

    const fn size(self) -> u64 {
        match self {
            Self::F64 => 8,
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::Float8(_) => 1,
            Self::Integer(size) => size,
        }
    }

    /// Appends a random number of this type.
    #[expect(clippy::cast_possible_truncation, reason = "a number of the type's precision")]
    fn random(self, source: &mut NormalSource, bytes: &mut Vec<u8>) {
        const DEVIATION: f64 = 0.01;
        if let Self::Integer(size) = self {
            for _ in 0..size {
                bytes.push(source.twister.next().to_le_bytes()[3]);
            }
            return;
        }
        let value = DEVIATION * source.normal();
        match self {
            Self::F64 => bytes.extend(value.to_le_bytes()),
            Self::F32 => bytes.extend((value as f32).to_le_bytes()),
            Self::F16 => bytes.extend(f16::from_f64(value).to_le_bytes()),
            Self::Bf16 => bytes.extend(bf16::from_f64(value).to_le_bytes()),
            Self::Float8(format) => bytes.push(format.nearest(value)),
            Self::Integer(_) => {}
        }
    }
}

impl Float8 {
    /// Returns the number that a code without a sign bit stands for.
    fn value(self, code: u8) -> f64 {
        let (exponent, mantissa) = (i32::from(code) >> self.mantissa, f64::from(code % (1 << self.mantissa)));
        let fraction = mantissa / f64::from(1 << self.mantissa);
        if exponent == 0 {
            fraction * f64::from(1 - self.bias).exp2()
        } else {
            (1.0 + fraction) * f64::from(exponent - self.bias).exp2()
        }
    }

    /// Returns the code of the nearest number.
    fn nearest(self, value: f64) -> u8 {
        let size = value.abs();
        let (mut low, mut high) = (0, self.largest);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.value(middle) <= size { low = middle } else { high = middle }
        }
        let code = if size - self.value(low) <= self.value(high) - size { low } else { high };
        let is_negative = value < 0.0 && (code > 0 || self.has_negative_zero);
        if is_negative { code | 0x80 } else { code }
    }
}

/// A source of normally distributed numbers, by the method of Box and Muller, which yields two at a time.
struct NormalSource {
    twister: MersenneTwister,
    second: Option<f64>,
}

impl NormalSource {
    fn normal(&mut self) -> f64 {
        if let Some(second) = self.second.take() {
            return second;
        }
        let radius = (-2.0 * (1.0 - self.twister.uniform()).ln()).sqrt();
        let (sine, cosine) = (TAU * self.twister.uniform()).sin_cos();
        self.second = Some(radius * sine);
        radius * cosine
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MLIR: &str = r#"
  util.global private @a = #stream.parameter.named<"model"::"blk.0.weight"> : tensor<3x5xf32>
  util.global private @b = #flow.parameter.named<"model"::"b"> : tensor<7xi8>
  util.global private @b2 = #stream.parameter.named<"model"::"b"> : tensor<7xi8>
  util.global private @c = #stream.parameter.named<"c"> : tensor<f16>
"#;

    fn file(scope: &str, fill: ParameterFill) -> Vec<u8> {
        WeightArchive::declared(MLIR, scope, fill).unwrap().bytes().flatten().collect()
    }

    fn number(bytes: &[u8], at: usize) -> usize {
        usize::try_from(u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())).unwrap()
    }

    #[test]
    fn an_archive_holds_the_declared_weights_of_one_scope() {
        let bytes = file("model", ParameterFill::Random { seed: 1 });
        assert_eq!((&bytes[..4], number(&bytes, 32)), (b"IRPA".as_slice(), 2));
        let (entries, names, data) = (number(&bytes, 40), number(&bytes, 56), number(&bytes, 72));
        assert_eq!((entries % 16, data % 64), (0, 0));
        assert_eq!(bytes[names..].get(..13), Some(b"blk.0.weightb".as_slice()));
        assert_eq!(bytes.len(), data + 64 + 7, "the second weight is aligned");
        assert_eq!(number(&bytes, entries + 60), 0);
        assert_eq!((number(&bytes, entries + 68), number(&bytes, entries + 80 + 68)), (60, 7));
        let floats =
            bytes[data..data + 60].chunks(4).map(|four| f32::from_le_bytes(four.try_into().unwrap()));
        assert!(floats.map(f32::abs).all(|value| value > 0.0 && value < 0.06));
        assert_eq!(bytes, file("model", ParameterFill::Random { seed: 1 }));
        assert_ne!(bytes, file("model", ParameterFill::Random { seed: 2 }));
        assert_eq!(number(&file("", ParameterFill::Zeros), 32), 1, "a weight without a scope");
    }

    #[test]
    fn zeros_take_no_space() {
        let bytes = file("model", ParameterFill::Zeros);
        let (entries, data) = (number(&bytes, 40), number(&bytes, 72));
        assert_eq!((number(&bytes, entries), number(&bytes, entries + 60)), (85, 60));
        assert_eq!((bytes.len(), number(&bytes, 80)), (data, 0));
    }

    #[test]
    fn a_module_that_declares_none_or_an_unknown_type_is_refused() {
        let declared = |mlir: &str| WeightArchive::declared(mlir, "x", ParameterFill::Zeros);
        assert_eq!(declared(MLIR), Err(ArchiveError::NoneDeclared("x".into())));
        for kind in ["tensor<?xf32>", "tensor<3xf4>", "tensor<3xf32, #e>", "!util.buffer"] {
            let mlir = format!("#stream.parameter.named<\"x\"::\"w\"> : {kind}\n");
            assert!(matches!(declared(&mlir), Err(ArchiveError::Type { .. })), "{kind}");
        }
        let huge = "#stream.parameter.named<\"x\"::\"w\"> : tensor<4611686018427387904x2xf64>\n";
        assert!(declared(huge).is_err());
    }

    #[test]
    fn eight_bits_are_rounded_to_the_nearest_number() {
        let encoded = |kind: &str, value| match ElementType::parse(kind).unwrap() {
            ElementType::Float8(format) => format.nearest(value),
            other => panic!("{other:?}"),
        };
        assert_eq!([1.0, -1.0, 448.0, 1e9].map(|value| encoded("f8E4M3FN", value)), [0x38, 0xb8, 0x7e, 0x7e]);
        assert_eq!([1.0, 240.0, -1e-9].map(|value| encoded("f8E4M3FNUZ", value)), [0x40, 0x7f, 0x00]);
        assert_eq!([1.0, 0.0].map(|value| encoded("f8E5M2", value)), [0x3c, 0x00]);
    }
}
