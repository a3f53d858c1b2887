//! Makes inputs of the same types and shapes as given ones, with other values that a function should also
//! accept: numbers are in reverse order, and floating-point numbers are halved. Integers may be indices, so
//! they keep their values. If there are floating-point numbers, integers also keep their order.

use std::fs;
use std::path::Path;

use crate::numerics::{DType, TensorFile};

use super::PipelineError;
use super::argv::InputArg;

/// Makes other inputs, and writes their files to `folder`. `None` if no different inputs can be made.
pub(super) fn made(inputs: &[InputArg], folder: &Path) -> Result<Option<Vec<InputArg>>, PipelineError> {
    for with_integers in [false, true] {
        let mut others = Vec::new();
        for (number, input) in inputs.iter().enumerate() {
            others.push(other(input, number, with_integers, folder)?);
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
    with_integers: bool,
    folder: &Path,
) -> Result<InputArg, PipelineError> {
    let file = match input {
        InputArg::Literal(text) => return Ok(InputArg::Literal(other_literal(text, with_integers))),
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
    if is_float(dtype) || (with_integers && dtype != DType::Bool) {
        elements.reverse();
        elements.chunks_mut(dtype.size()).for_each(<[u8]>::reverse);
    }
    elements.chunks_mut(dtype.size()).for_each(|element| halve(dtype, element));
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

/// Halves a little-endian number by decrementing its exponent, unless it is zero, infinite, NaN or tiny.
fn halve(dtype: DType, element: &mut [u8]) {
    let mantissa = match dtype {
        DType::F64 => 52,
        DType::F32 => 23,
        DType::F16 => 10,
        DType::Bf16 => 7,
        _ => return,
    };
    let width = element.len();
    let mut wide = [0; 8];
    wide[..width].copy_from_slice(element);
    let bits = u64::from_le_bytes(wide);
    let exponents = (1_u64 << (8 * width - 1 - mantissa)) - 1;
    let exponent = bits >> mantissa & exponents;
    if exponent > 1 && exponent < exponents {
        element.copy_from_slice(&(bits - (1 << mantissa)).to_le_bytes()[..width]);
    }
}

/// Changes a value from the command line, such as `2x2xf32=1 2 3 4`.
fn other_literal(text: &str, with_integers: bool) -> String {
    let Some((kind, values)) = text.split_once('=') else { return text.to_owned() };
    let element = kind.rsplit('x').next().unwrap_or(kind);
    let is_float = element.starts_with('f') || element.starts_with("bf");
    let is_separator = |c: char| c.is_whitespace() || matches!(c, ',' | '[' | ']');
    let numbers: Vec<&str> = values.split(is_separator).filter(|number| !number.is_empty()).collect();
    let changed = |number: &&str| match number.parse::<f64>() {
        Ok(value) if is_float => Some((value / 2.0).to_string()),
        Ok(_) => Some((*number).to_owned()),
        Err(_) => None,
    };
    let reversed: Option<Vec<String>> = numbers.iter().rev().map(changed).collect();
    let Some(reversed) = reversed.filter(|_| is_float || (with_integers && element != "i1")) else {
        return text.to_owned();
    };
    let mut next = reversed.into_iter();
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
        assert_eq!(other_literal("2x2xf32=[1 2][3 -4]", false), "2x2xf32=[-2 1.5][1 0.5]");
        assert_eq!(other_literal("3xbf16=1", false), "3xbf16=0.5");
        assert_eq!(other_literal("3xi64=1,2,3", false), "3xi64=1,2,3");
        assert_eq!(other_literal("3xi64=1,2,3", true), "3xi64=3,2,1");
        assert_eq!(other_literal("3xf32", false), "3xf32");
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
        assert_eq!(made(&[file("c", "2xf32", &[0; 8])], folder.path()).unwrap(), None);
    }
}
