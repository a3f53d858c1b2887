//! Other inputs for a call that must not return a remembered result.
//!
//! The other inputs have the same types and shapes as the given ones, and values that a function should also
//! accept: numbers are in reverse order, and floating-point numbers are halved; zeros become 0.5 in every second
//! element. Integers may be indices, so they keep their values, and their order too if there are floating-point
//! numbers. Only if nothing else changes an input, every second integer moves by one.

use std::fs;
use std::path::Path;

use benchgate_core::numerics::{DType, TensorFile};

use super::PipelineError;
use super::argv::InputArg;

/// The change of integers, which may be indices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Integers {
    Kept,
    Reversed,
    /// Reversed, or moved by one if that changes nothing.
    Nudged,
}

/// Makes other inputs, and writes their files to `folder`. `None` if no different inputs can be made.
pub(super) fn made(inputs: &[InputArg], folder: &Path) -> Result<Option<Vec<InputArg>>, PipelineError> {
    for integers in [Integers::Kept, Integers::Reversed, Integers::Nudged] {
        let mut others = Vec::new();
        for (number, input) in inputs.iter().enumerate() {
            others.push(other(input, number, integers, folder)?);
        }
        if others != inputs {
            return Ok(Some(others));
        }
    }
    Ok(None)
}

fn other(
    input: &InputArg,
    number: usize,
    integers: Integers,
    folder: &Path,
) -> Result<InputArg, PipelineError> {
    let file = match input {
        InputArg::Literal(text) => return Ok(InputArg::Literal(other_literal(text, integers))),
        InputArg::File(file) => file,
    };
    let mut bytes = fs::read(&file.path).map_err(PipelineError::io("read", &file.path))?;
    let Ok(tensor) = file.read(&bytes) else { return Ok(input.clone()) };
    let dtype = tensor.dtype();
    // In `.npy` files and in raw files, the elements are at the end.
    let length = tensor.len() * dtype.size();
    let Some(at) = bytes.len().checked_sub(length).filter(|_| length > 0) else { return Ok(input.clone()) };
    let before = bytes.clone();
    let elements = &mut bytes[at..];
    if is_float(dtype) || (integers != Integers::Kept && dtype != DType::Bool) {
        elements.reverse();
        elements.chunks_mut(dtype.size()).for_each(<[u8]>::reverse);
    }
    elements.chunks_mut(dtype.size()).for_each(|element| halve(dtype, element));
    if bytes == before && (is_float(dtype) || (integers == Integers::Nudged && dtype != DType::Bool)) {
        bytes[at..].chunks_mut(dtype.size()).step_by(2).for_each(|element| nudge(dtype, element));
    }
    if bytes == before {
        return Ok(input.clone());
    }
    let path = folder.join(format!("other-input{number}.{}", file.ending()));
    fs::write(&path, bytes).map_err(PipelineError::io("write", &path))?;
    Ok(InputArg::File(TensorFile { path, raw: file.raw.clone() }))
}

fn is_float(dtype: DType) -> bool {
    matches!(dtype, DType::F64 | DType::F32 | DType::F16 | DType::Bf16)
}

/// Number of bits of the mantissa of a floating-point type.
fn mantissa(dtype: DType) -> Option<usize> {
    match dtype {
        DType::F64 => Some(52),
        DType::F32 => Some(23),
        DType::F16 => Some(10),
        DType::Bf16 => Some(7),
        _ => None,
    }
}

/// Replaces the bits of a little-endian number, if `change` returns others.
fn change_bits(element: &mut [u8], change: impl FnOnce(u64) -> Option<u64>) {
    let width = element.len();
    let mut wide = [0; 8];
    wide[..width].copy_from_slice(element);
    if let Some(changed) = change(u64::from_le_bytes(wide)) {
        element.copy_from_slice(&changed.to_le_bytes()[..width]);
    }
}

/// Halves a number by decrementing its exponent, unless it is zero, infinite, NaN or tiny.
fn halve(dtype: DType, element: &mut [u8]) {
    let Some(mantissa) = mantissa(dtype) else { return };
    let exponents = (1_u64 << (8 * dtype.size() - 1 - mantissa)) - 1;
    change_bits(element, |bits| {
        let exponent = bits >> mantissa & exponents;
        (exponent > 1 && exponent < exponents).then(|| bits - (1 << mantissa))
    });
}

/// Makes a number different that halving and another order leave as it is: zero becomes 0.5 or 1, and an integer
/// moves by one towards zero, so that an index remains one.
fn nudge(dtype: DType, element: &mut [u8]) {
    let bits_in_all = 8 * dtype.size();
    let sign = 1_u64 << (bits_in_all - 1);
    change_bits(element, |bits| match mantissa(dtype) {
        Some(mantissa) => {
            let half = ((1_u64 << (bits_in_all - 2 - mantissa)) - 2) << mantissa;
            (bits & !sign == 0).then_some(half)
        }
        None if bits == 0 => Some(1),
        None => {
            let is_signed = matches!(dtype, DType::I64 | DType::I32 | DType::I16 | DType::I8);
            let is_negative = is_signed && bits & sign != 0;
            Some(if is_negative { bits.wrapping_add(1) } else { bits - 1 })
        }
    });
}

/// Changes a value from the command line, such as `2x2xf32=1 2 3 4`. Without a value, all elements are zero.
fn other_literal(text: &str, integers: Integers) -> String {
    let (kind, values) = text.split_once('=').unwrap_or((text, "0"));
    let element = kind.rsplit('x').next().unwrap_or(kind);
    let is_float = element.starts_with('f') || element.starts_with("bf");
    let is_integer = element != "i1" && element.starts_with(['i', 's', 'u']);
    let is_separator = |c: char| c.is_whitespace() || matches!(c, ',' | '[' | ']');
    let numbers: Vec<&str> = values.split(is_separator).filter(|number| !number.is_empty()).collect();
    let parsed: Option<Vec<f64>> = numbers.iter().map(|number| number.parse().ok()).collect();
    let Some(parsed) = parsed.filter(|_| is_float || (integers != Integers::Kept && is_integer)) else {
        return text.to_owned();
    };
    let halved = |value: &f64| if is_float { value / 2.0 } else { *value };
    // The text of an integer is kept, because a floating-point number can't represent every one.
    let moved = |(text, value): (&&str, &f64)| match is_float {
        true => halved(value).to_string(),
        false => (*text).to_owned(),
    };
    let nudged = |(at, value): (usize, &f64)| match *value {
        0.0 if at % 2 == 0 => if is_float { "0.5" } else { "1" }.to_owned(),
        value if at % 2 == 0 && !is_float => (value - value.signum()).to_string(),
        value => value.to_string(),
    };
    let changed: Vec<String> = if parsed.iter().rev().map(halved).eq(parsed.iter().copied()) {
        if !is_float && integers != Integers::Nudged {
            return text.to_owned();
        }
        parsed.iter().enumerate().map(nudged).collect()
    } else {
        numbers.iter().zip(&parsed).rev().map(moved).collect()
    };
    let mut next = changed.into_iter();
    let mut other = format!("{kind}=");
    let mut is_in_number = false;
    for c in values.chars() {
        if is_separator(c) {
            other.push(c);
            is_in_number = false;
        } else if !is_in_number {
            other.push_str(&next.next().unwrap_or_default());
            is_in_number = true;
        }
    }
    other
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_reversed_and_halved_and_integers_only_where_there_is_nothing_else() {
        assert_eq!(other_literal("2x2xf32=[1 2][3 -4]", Integers::Kept), "2x2xf32=[-2 1.5][1 0.5]");
        assert_eq!(other_literal("3xbf16=1", Integers::Kept), "3xbf16=0.5");
        assert_eq!(other_literal("3xi64=1,2,3", Integers::Kept), "3xi64=1,2,3");
        assert_eq!(other_literal("3xi64=1,2,3", Integers::Nudged), "3xi64=3,2,1");
        assert_eq!(other_literal("3xf32", Integers::Kept), "3xf32=0.5");
        assert_eq!(other_literal("4xi32=7", Integers::Nudged), "4xi32=6");
        assert_eq!(other_literal("3xi32=[7 0 7]", Integers::Nudged), "3xi32=[6 0 6]");
        assert_eq!(other_literal("3xsi8=0 -2 0", Integers::Nudged), "3xsi8=1 -2 1");
        assert_eq!(other_literal("2x2xf32=0 -0 0 0", Integers::Kept), "2x2xf32=0.5 -0 0.5 0");
        assert_eq!(other_literal("2xi1=1 0", Integers::Nudged), "2xi1=1 0");
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, raw: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            fs::write(&path, bytes).unwrap();
            InputArg::File(TensorFile { path, raw: Some(raw.to_owned()) })
        };
        let floats: Vec<u8> = [1.0_f32, 0.0, -3.0].into_iter().flat_map(f32::to_le_bytes).collect();
        let integers: Vec<u8> = [1_i16, 2].into_iter().flat_map(i16::to_le_bytes).collect();
        let inputs = [file("a", "3xf32", &floats), file("b", "2xsi16", &integers)];
        let others = made(&inputs, folder.path()).unwrap().unwrap();
        assert_eq!(others[1], inputs[1]);
        let values = |input: &InputArg| {
            let InputArg::File(file) = input else { panic!() };
            file.read(&fs::read(&file.path).unwrap()).unwrap().to_f64()
        };
        assert_eq!(values(&others[0]), [-1.5, 0.0, 0.5]);
        assert_eq!(values(&made(&inputs[1..], folder.path()).unwrap().unwrap()[0]), [2.0, 1.0]);
        // An index that is zero remains one if another input shows the difference.
        let zeros = file("zeros", "2xsi16", &[0; 4]);
        let others = made(&[inputs[1].clone(), zeros.clone()], folder.path()).unwrap().unwrap();
        assert_eq!(others[1], zeros);
        let other = |name: &str, raw: &str, bytes: &[u8]| {
            values(&made(&[file(name, raw, bytes)], folder.path()).unwrap().unwrap()[0])
        };
        for (name, raw) in [("c", "2xf32"), ("d", "4xbf16"), ("e", "4xf16"), ("f", "1xf64")] {
            assert!(
                other(name, raw, &[0; 8]).iter().enumerate().all(|(at, value)| *value == [0.5, 0.0][at % 2])
            );
        }
        assert_eq!(other("g", "2xi32", &[7, 0, 0, 0, 7, 0, 0, 0]), [6.0, 7.0]);
        assert_eq!(other("h", "3xi8", &[0xff, 0, 0xff]), [0.0, 0.0, 0.0]);
        assert_eq!(other("i", "1xui8", &[0xff]), [254.0]);
        assert_eq!(made(&[file("j", "2xi1", &[1, 1])], folder.path()).unwrap(), None);
    }
}
