//! Random data that is the same on every machine: inputs like those of `numpy.random.seed` and
//! `numpy.random.rand`, and the weights of a module.

use std::fmt;

use half::{bf16, f16};

use super::file::parse_type;
use super::tensor::DType;

/// Number of elements that are encoded at once, so that a large tensor is never in memory as a whole.
const CHUNK: u64 = 1 << 16;

/// Maximum number of skipped draws; so many take half a minute.
const MOST_SKIPPED: u64 = 1 << 32;

/// An input of random numbers: `64x64xf16=random(seed=42, skip=4096, scale=2, offset=-1)`.
///
/// The elements are `scale · rand() + offset`, where `rand` draws from [0, 1). The first `skip` draws belong
/// to other inputs and are discarded.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct RandomTensor {
    /// Shape and type in IREE's notation.
    pub kind: String,
    pub seed: u32,
    pub skip: u64,
    pub scale: f64,
    pub offset: f64,
}

impl Eq for RandomTensor {}

/// The reason why a description gives no random integers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum IntegerFlaw {
    /// All elements are this integer.
    Constant(f64),
    /// Few elements differ from the others, or few are equally likely.
    SmallScale,
    /// The type can't represent all integers from the first to the second.
    Outside(f64, f64),
}

impl fmt::Display for IntegerFlaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(value) => write!(f, "all elements would be {value}"),
            Self::SmallScale => f.write_str("`scale` is below 2"),
            Self::Outside(first, last) => write!(f, "the type can't represent {first} to {last}"),
        }
    }
}

impl RandomTensor {
    /// Returns whether a text has the form of a random input, valid or not.
    pub fn is_meant(text: &str) -> bool {
        text.contains("=random(")
    }

    /// Parses the notation that a suite uses.
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, arguments) = text.split_once("=random(")?;
        parse_type(kind)?;
        let mut random = Self { kind: kind.to_owned(), seed: 0, skip: 0, scale: 1.0, offset: 0.0 };
        let mut seen = Vec::new();
        for argument in arguments.strip_suffix(')')?.split(',') {
            let (key, value) = argument.split_once('=')?;
            let (key, value) = (key.trim(), value.trim());
            let number = || value.parse::<f64>().ok().filter(|number| number.is_finite());
            match key {
                "seed" => random.seed = value.parse().ok()?,
                "skip" => random.skip = value.parse().ok().filter(|skip| *skip <= MOST_SKIPPED)?,
                "scale" => random.scale = number()?,
                "offset" => random.offset = number()?,
                _ => return None,
            }
            if seen.contains(&key) {
                return None;
            }
            seen.push(key);
        }
        // The seed is required: with a default of 0, a reader would not see that the data is always the same.
        (seen.contains(&"seed") && random.elements().is_some()).then_some(random)
    }

    /// Returns the number of elements; `None` if a machine can't address as many.
    pub fn elements(&self) -> Option<u64> {
        let (dtype, shape) = parse_type(&self.kind)?;
        let count = shape.iter().try_fold(1_u64, |all, side| all.checked_mul(u64::try_from(*side).ok()?))?;
        count.checked_mul(u64::try_from(dtype.size()).ok()?)?;
        Some(count)
    }

    /// Returns the reason why the elements are no random integers; `None` for floating-point numbers. NumPy's numbers
    /// are below 1, so without a `scale` all integers are zero.
    pub fn integer_flaw(&self) -> Option<IntegerFlaw> {
        let (dtype, _) = parse_type(&self.kind)?;
        let (least, most) = integers(dtype)?;
        let ends = [self.offset, self.offset + self.scale];
        // No element reaches the upper end, and the lower one is too rare to count.
        let first = |low: f64| if low < 0.0 { low.floor() + 1.0 } else { low.floor() };
        let (first, last) = (first(ends[0].min(ends[1])), 0.0 - first(-ends[0].max(ends[1])));
        let is_bool = dtype == DType::Bool;
        if !is_bool && (first < least || last > most) {
            return Some(IntegerFlaw::Outside(first, last));
        }
        if is_bool && (first > 0.0 || last < 0.0) {
            return Some(IntegerFlaw::Constant(1.0));
        }
        if first >= last {
            return Some(IntegerFlaw::Constant(first));
        }
        (self.scale.abs() < 2.0).then_some(IntegerFlaw::SmallScale)
    }

    /// Returns a description of random integers of the same type, and the largest of them.
    pub fn with_integers(&self) -> (Self, u32) {
        let scale: u32 = match parse_type(&self.kind) {
            Some((DType::Bool, _)) => 2,
            Some((DType::I8 | DType::U8, _)) => 100,
            _ => 1000,
        };
        (Self { scale: scale.into(), offset: 0.0, ..self.clone() }, scale - 1)
    }

    /// Returns the bytes of a raw file, in parts.
    pub fn bytes(&self) -> impl Iterator<Item = Vec<u8>> {
        let dtype = parse_type(&self.kind).map_or(DType::F32, |(dtype, _)| dtype);
        let mut left = self.elements().unwrap_or_default();
        let mut twister = MersenneTwister::new(self.seed);
        for _ in 0..self.skip {
            twister.uniform();
        }
        let (scale, offset) = (self.scale, self.offset);
        std::iter::from_fn(move || {
            let count = left.min(CHUNK);
            left -= count;
            let mut bytes = Vec::new();
            for _ in 0..count {
                encode(dtype, scale * twister.uniform() + offset, &mut bytes);
            }
            (count > 0).then_some(bytes)
        })
    }
}

impl fmt::Display for RandomTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, seed, skip, scale, offset } = self;
        write!(f, "{kind}=random(seed={seed}")?;
        if *skip > 0 {
            write!(f, ", skip={skip}")?;
        }
        if *scale != 1.0 {
            write!(f, ", scale={scale}")?;
        }
        if *offset != 0.0 {
            write!(f, ", offset={offset}")?;
        }
        f.write_str(")")
    }
}

/// Returns the least and the largest integer of a type; `None` for floating-point numbers.
fn integers(dtype: DType) -> Option<(f64, f64)> {
    Some(match dtype {
        DType::F64 | DType::F32 | DType::F16 | DType::Bf16 => return None,
        DType::I64 => (i64::MIN as f64, i64::MAX as f64),
        DType::I32 => (i32::MIN.into(), i32::MAX.into()),
        DType::I16 => (i16::MIN.into(), i16::MAX.into()),
        DType::I8 => (i8::MIN.into(), i8::MAX.into()),
        DType::U64 => (0.0, u64::MAX as f64),
        DType::U32 => (0.0, u32::MAX.into()),
        DType::U16 => (0.0, u16::MAX.into()),
        DType::U8 => (0.0, u8::MAX.into()),
        DType::Bool => (0.0, 1.0),
    })
}

/// Appends a number as an element of a type, in little-endian order. Integers are truncated, like NumPy's
/// `astype` does. Booleans are too, because otherwise almost none would be false.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast to the tensor's type")]
fn encode(dtype: DType, value: f64, bytes: &mut Vec<u8>) {
    match dtype {
        DType::F64 => bytes.extend(value.to_le_bytes()),
        DType::F32 => bytes.extend((value as f32).to_le_bytes()),
        DType::F16 => bytes.extend(f16::from_f64(value).to_le_bytes()),
        DType::Bf16 => bytes.extend(bf16::from_f64(value).to_le_bytes()),
        DType::I64 => bytes.extend((value as i64).to_le_bytes()),
        DType::I32 => bytes.extend((value as i32).to_le_bytes()),
        DType::I16 => bytes.extend((value as i16).to_le_bytes()),
        DType::I8 => bytes.extend((value as i8).to_le_bytes()),
        DType::U64 => bytes.extend((value as u64).to_le_bytes()),
        DType::U32 => bytes.extend((value as u32).to_le_bytes()),
        DType::U16 => bytes.extend((value as u16).to_le_bytes()),
        DType::U8 => bytes.push(value as u8),
        DType::Bool => bytes.push(u8::from(value.trunc() != 0.0)),
    }
}

/// MT19937 (Matsumoto and Nishimura, 1998), seeded like `numpy.random.seed` does.
#[derive(Debug, Clone)]
pub(super) struct MersenneTwister {
    state: Vec<u32>,
    at: usize,
}

const LENGTH: usize = 624;
const MIDDLE: usize = 397;

impl MersenneTwister {
    pub(super) fn new(seed: u32) -> Self {
        let mut state = vec![seed];
        for at in 1..LENGTH as u32 {
            let last = state.last().copied().unwrap_or_default();
            state.push((last ^ (last >> 30)).wrapping_mul(1_812_433_253).wrapping_add(at));
        }
        Self { state, at: LENGTH }
    }

    pub(super) fn next(&mut self) -> u32 {
        if self.at == LENGTH {
            for at in 0..LENGTH {
                let joined = (self.state[at] & 0x8000_0000) | (self.state[(at + 1) % LENGTH] & 0x7fff_ffff);
                let odd = if joined & 1 == 1 { 0x9908_b0df } else { 0 };
                self.state[at] = self.state[(at + MIDDLE) % LENGTH] ^ (joined >> 1) ^ odd;
            }
            self.at = 0;
        }
        let mut word = self.state[self.at];
        self.at += 1;
        word ^= word >> 11;
        word ^= (word << 7) & 0x9d2c_5680;
        word ^= (word << 15) & 0xefc6_0000;
        word ^ (word >> 18)
    }

    /// Returns a number in [0, 1) with 53 random bits.
    pub(super) fn uniform(&mut self) -> f64 {
        let (high, low) = (f64::from(self.next() >> 5), f64::from(self.next() >> 6));
        (high * 67_108_864.0 + low) / 9_007_199_254_740_992.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<f64> {
        let random = RandomTensor::parse(text).unwrap();
        assert_eq!(random.to_string(), text);
        let (dtype, shape) = parse_type(&random.kind).unwrap();
        let bytes: Vec<u8> = random.bytes().flatten().collect();
        super::super::Tensor::from_raw(dtype, shape, &bytes).unwrap().to_f64()
    }

    #[test]
    fn the_numbers_are_those_of_numpy() {
        // numpy.random.seed(0); numpy.random.rand(3)
        let numpy = [0.548_813_503_927_324_8, 0.715_189_366_372_419_5, 0.602_763_376_071_643_9];
        assert_eq!(values("3xf64=random(seed=0)"), numpy);
        assert_eq!(values("1xf64=random(seed=0, skip=2)"), numpy[2..]);
        // numpy.random.seed(42); 2 * numpy.random.rand(2) - 1
        let scaled = [-0.250_919_762_305_275, 0.901_428_612_819_832_3];
        assert_eq!(values("2xf64=random(seed=42, scale=2, offset=-1)"), scaled);
        assert_eq!(values("2xf16=random(seed=0)"), [0.548_828_125, 0.715_332_031_25]);
        assert_eq!(values("2xi8=random(seed=0, scale=10)"), [5.0, 7.0]);
        // This needs more than one chunk and more than one round of the generator.
        assert_eq!(values("70000xf32=random(seed=7)").len(), 70_000);
    }

    #[test]
    fn integers_need_a_scale_that_gives_different_ones() {
        let flaw = |text: &str| RandomTensor::parse(text).unwrap().integer_flaw();
        for random in ["3xf32=random(seed=1)", "3xbf16=random(seed=1, scale=0)"] {
            assert_eq!(flaw(random), None, "{random}");
        }
        let zeros = Some(IntegerFlaw::Constant(0.0));
        for kind in ["8x128xi64", "3xsi32", "3xui16", "i8", "3xi1"] {
            assert_eq!(flaw(&format!("{kind}=random(seed=1)")), zeros, "{kind}");
            assert_eq!(flaw(&format!("{kind}=random(seed=1, scale=2)")), None, "{kind}");
        }
        // Numbers between -1 and 1 are truncated to zero.
        assert_eq!(flaw("3xi32=random(seed=1, scale=2, offset=-1)"), zeros);
        assert_eq!(flaw("3xi32=random(seed=1, scale=-2, offset=1)"), zeros);
        assert_eq!(flaw("3xi32=random(seed=1, scale=-3, offset=0)"), None);
        assert_eq!(flaw("3xi32=random(seed=1, offset=5)"), Some(IntegerFlaw::Constant(5.0)));
        assert_eq!(flaw("3xi1=random(seed=1, scale=9, offset=1)"), Some(IntegerFlaw::Constant(1.0)));
        assert_eq!(flaw("3xi32=random(seed=1, scale=1.5)"), Some(IntegerFlaw::SmallScale));
        assert_eq!(flaw("3xi8=random(seed=1, scale=129)"), Some(IntegerFlaw::Outside(0.0, 128.0)));
        assert_eq!(flaw("3xi8=random(seed=1, scale=256, offset=-128)"), None);
        assert_eq!(flaw("3xui8=random(seed=1, scale=4, offset=-2)"), Some(IntegerFlaw::Outside(-1.0, 1.0)));
        for kind in ["3xi64", "3xi8", "3xi1"] {
            let random = RandomTensor::parse(&format!("{kind}=random(seed=1, offset=7)")).unwrap();
            assert_eq!(random.with_integers().0.integer_flaw(), None, "{kind}");
        }
        let booleans = values("1000xi1=random(seed=1, scale=2)");
        assert!((400.0..600.0).contains(&booleans.iter().sum::<f64>()), "{booleans:?}");
    }

    #[test]
    fn only_a_complete_notation_is_one() {
        for wrong in [
            "3xf32=random()",
            "3xf32=random(seed=)",
            "3xf32=random(seed=-1)",
            "3xf32=random(seed=1, seed=2)",
            "3xf32=random(seed=1, scale=inf)",
            "3xf32=random(seed=1, mean=0)",
            "3xf32=random(seed=1, skip=99999999999)",
            "3xf32=random(seed=1",
            "3xq32=random(seed=1)",
            "9999999999x9999999999xf32=random(seed=1)",
            "3xf32=1",
        ] {
            assert_eq!(RandomTensor::parse(wrong), None, "{wrong}");
        }
    }
}
