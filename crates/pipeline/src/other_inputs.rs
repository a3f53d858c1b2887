//! Other inputs for a call that must not return a remembered result.
//!
//! The other inputs have the same types and shapes as the given ones, and values that a function should also accept.
//! Floating-point numbers are in reverse order and halved, some of them twice, and some have the other sign; in an
//! input of zeros, some become 0.5 or 8. Integers may be indices, so they stay between zero and the largest one: they
//! are in reverse order, and every fourth one is replaced by the next. Some of equal integers are moved towards zero,
//! and a single zero becomes one. Sorted integers, which may be offsets, are rounded to even numbers and stay sorted.
//! Inputs with equal elements don't get equal ones: those of input N begin with the Nth. The changed elements have no
//! period: otherwise, rows whose length it divides would stay equal, and a function that computes only one of them
//! would not be noticed. A function that accepts none of these values gets the given ones in another order.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use benchgate_core::numerics::{DType, TensorFile, literal_elements};

use super::PipelineError;
use super::argv::InputArg;

/// The elements that may differ from those of the given inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OtherValues {
    Signed,
    /// For functions that don't accept other signs.
    All,
    /// For functions that don't accept other integers or booleans.
    FloatingPoint,
    /// The given values in another order, for functions that don't accept others: the square root of a difference, or a
    /// text that begins with a certain token.
    Reordered,
}

impl OtherValues {
    /// Those with most changes first.
    pub(super) const ALL: [Self; 4] = [Self::Signed, Self::All, Self::FloatingPoint, Self::Reordered];
}

/// Makes inputs that differ from the given ones, and writes their files to `folder`. `None` if there are none with these
/// values, or if they would be those with more changes again.
pub(super) fn made(
    inputs: &[InputArg],
    values: OtherValues,
    folder: &Path,
) -> Result<Option<Vec<InputArg>>, PipelineError> {
    let mut made = Vec::new();
    let mut changed = Vec::new();
    for (number, input) in inputs.iter().enumerate() {
        let other = other(input, number, values, folder)?;
        changed.extend(other.as_ref().map(|(is_float, _)| *is_float));
        made.push(other.map_or_else(|| input.clone(), |(_, other)| other));
    }
    let is_new = match values {
        OtherValues::Signed | OtherValues::Reordered => !changed.is_empty(),
        OtherValues::All => changed.contains(&true),
        OtherValues::FloatingPoint => changed.contains(&true) && changed.len() < inputs.len(),
    };
    Ok(is_new.then_some(made))
}

/// Returns the inputs that [`made`] wrote to a folder, and the given ones that stayed the same.
pub(super) fn made_before(inputs: &[InputArg], values: OtherValues, folder: &Path) -> Vec<InputArg> {
    let files: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    let other = |(number, input): (usize, &InputArg)| {
        let start = format!("other{}-input{number}.", values as u8);
        let is_its = |path: &&PathBuf| {
            path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(&start))
        };
        files
            .iter()
            .find(is_its)
            .map_or_else(|| input.clone(), |path| InputArg::File(TensorFile::named(path)))
    };
    inputs.iter().enumerate().map(other).collect()
}

/// Returns another input, and whether its elements are floating-point numbers. `None` if the input stays the same.
fn other(
    input: &InputArg,
    number: usize,
    values: OtherValues,
    folder: &Path,
) -> Result<Option<(bool, InputArg)>, PipelineError> {
    let (raw, dtype, row, mut bytes, at) = match input {
        InputArg::File(file) => {
            let bytes = fs::read(&file.path).map_err(PipelineError::io("read", &file.path))?;
            let Ok(tensor) = file.read(&bytes) else { return Ok(None) };
            // In `.npy` files and in raw files, the elements are at the end.
            let at = bytes.len().saturating_sub(tensor.len() * tensor.dtype().size());
            (file.raw.clone(), tensor.dtype(), tensor.shape().last().copied(), bytes, at)
        }
        InputArg::Literal(text) => {
            let Some((raw, dtype, bytes)) = literal_elements(text) else {
                return Ok(
                    other_number(text, values).map(|(is_float, other)| (is_float, InputArg::Literal(other)))
                );
            };
            let row = raw.rsplit('x').nth(1).and_then(|side| side.parse().ok());
            (Some(raw.to_owned()), dtype, row, bytes, 0)
        }
    };
    let is_changed = match is_float(dtype) {
        _ if values == OtherValues::Reordered => reorder(&mut bytes[at..], dtype.size(), row),
        true => change_floats(&mut bytes[at..], dtype, number, values == OtherValues::Signed),
        false => values != OtherValues::FloatingPoint && change_integers(&mut bytes[at..], dtype, number),
    };
    if !is_changed {
        return Ok(None);
    }
    let mut file = TensorFile { path: folder.to_owned(), raw };
    file.path.push(format!("other{}-input{number}.{}", values as u8, file.ending()));
    fs::write(&file.path, bytes).map_err(PipelineError::io("write", &file.path))?;
    Ok(Some((is_float(dtype), InputArg::File(file))))
}

/// Writes the bytes that a call left in an input to a file of the input's format, or as they are if that is unknown.
pub(super) fn left_in(
    input: &InputArg,
    contents: &Path,
    folder: &Path,
    number: u32,
) -> Result<TensorFile, PipelineError> {
    let read = |path: &Path| fs::read(path).map_err(PipelineError::io("read", path));
    let unknown = || (Some(String::new()), Vec::new());
    let (raw, header) = match input {
        InputArg::File(file) => {
            let mut bytes = read(&file.path)?;
            let elements = file.read(&bytes).map(|tensor| tensor.len() * tensor.dtype().size());
            elements.map_or_else(
                |_| unknown(),
                |elements| {
                    bytes.truncate(bytes.len().saturating_sub(elements));
                    (file.raw.clone(), bytes)
                },
            )
        }
        InputArg::Literal(text) => {
            literal_elements(text).map_or_else(unknown, |(raw, ..)| (Some(raw.to_owned()), Vec::new()))
        }
    };
    let mut file = TensorFile { path: folder.to_owned(), raw };
    file.path.push(format!("left{number}.{}", file.ending()));
    fs::write(&file.path, [header, read(contents)?].concat())
        .map_err(PipelineError::io("write", &file.path))?;
    Ok(file)
}

/// Returns another number for an argument that is not a tensor, and whether it is a floating-point number.
fn other_number(text: &str, values: OtherValues) -> Option<(bool, String)> {
    if values == OtherValues::Reordered {
        return None;
    }
    if let Ok(value) = text.parse::<i64>() {
        let other = if value == 0 { 1 } else { value - value.signum() };
        return (values != OtherValues::FloatingPoint).then(|| (false, other.to_string()));
    }
    let value = text.parse::<f64>().ok().filter(|value| value.is_finite())?;
    let other = if value == 0.0 { 0.5 } else { value / 2.0 };
    Some((true, other.to_string()))
}

/// Returns a number of 64 bits that only depends on the position, by the finalizer of SplitMix64 (Steele, Lea and Flood,
/// "Fast splittable pseudorandom number generators", OOPSLA 2014).
const fn drawn(position: usize) -> u64 {
    let mut bits = (position as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Reverses the elements, then moves as many to the end.
fn reverse(elements: &mut [u8], size: usize, moved: usize) {
    elements.reverse();
    elements.chunks_mut(size).for_each(<[u8]>::reverse);
    let count = elements.len() / size;
    if count > 0 {
        elements.rotate_left(moved % count * size);
    }
}

/// Reverses the elements of each row except the first and the last, or of all rows together if rows are too short.
/// Returns whether an element changed.
fn reorder(elements: &mut [u8], size: usize, row: Option<usize>) -> bool {
    const LEAST: usize = 4;
    let before = elements.to_vec();
    let row = row.filter(|row| *row >= LEAST).map_or(elements.len(), |row| row * size);
    for row in elements.chunks_mut(row.max(1)).filter(|row| row.len() >= LEAST * size) {
        let inner = size..row.len() - size;
        reverse(&mut row[inner], size, 0);
    }
    elements != before
}

/// Returns whether an element changed.
fn change_floats(elements: &mut [u8], dtype: DType, number: usize, is_signed: bool) -> bool {
    let size = dtype.size();
    // The sign is in the last bit.
    let is_zero =
        elements.iter().enumerate().all(|(at, byte)| byte & !(u8::from((at + 1) % size == 0) << 7) == 0);
    if is_zero {
        for (at, element) in elements.chunks_mut(size).enumerate() {
            // The first two elements are different powers of two.
            match if at < 2 { at as u64 } else { drawn(at) % 4 } {
                0 => replace_zero(dtype, element, -1),
                1 => replace_zero(dtype, element, 3),
                _ => {}
            }
        }
        return !elements.is_empty();
    }
    let before = elements.to_vec();
    reverse(elements, size, number);
    for (at, element) in elements.chunks_mut(size).enumerate() {
        let drawn = drawn(at);
        (0..=drawn % 2).for_each(|_| halve(dtype, element));
        // The sign is the first bit of the last byte. Most signs stay, because a norm needs a positive variance.
        let is_turned = is_signed && (drawn / 2).is_multiple_of(3);
        element.last_mut().filter(|_| is_turned).into_iter().for_each(|byte| *byte ^= 0x80);
    }
    elements != before
}

/// Returns whether an element changed. Booleans are integers too.
fn change_integers(elements: &mut [u8], dtype: DType, number: usize) -> bool {
    let size = dtype.size();
    let is_signed = matches!(dtype, DType::I64 | DType::I32 | DType::I16 | DType::I8);
    let value = |element: &[u8]| {
        let is_negative = is_signed && element.last().is_some_and(|byte| byte & 0x80 != 0);
        let mut wide = [if is_negative { 0xff } else { 0 }; 8];
        wide[..size].copy_from_slice(element);
        i64::from_le_bytes(wide)
    };
    let change = |element: &mut [u8], change: &dyn Fn(i64) -> i64| {
        let changed = change(value(element)).to_le_bytes();
        element.copy_from_slice(&changed[..size]);
    };
    let towards_zero = |value: i64| value - value.signum();
    let before = elements.to_vec();
    let values = before.chunks(size).map(value);
    let ends = before.chunks(size).next().zip(before.chunks(size).next_back());
    let rises = ends.is_some_and(|(first, last)| value(first) < value(last) && value(last) > 1);
    // Booleans and numbers of eight bits are data.
    if size > 1 && rises && values.is_sorted() {
        let is_even = before.chunks(size).all(|element| value(element) % 2 == 0);
        let rounded = |value: i64| if is_even { towards_zero(value) } else { value - value % 2 };
        elements.chunks_mut(size).for_each(|element| change(element, &rounded));
        return elements != before;
    }
    reverse(elements, size, number);
    // Otherwise a sum would stay the same. A mask is not emptied, and indices that are all different stay so.
    let reversed = elements.to_vec();
    let different: BTreeSet<&[u8]> = reversed.chunks(size).collect();
    let are_indices = size > 1 && different.len() == reversed.len() / size;
    let replaced = if are_indices { 0 } else { elements.len() };
    for at in (0..replaced.saturating_sub(size)).step_by(4 * size) {
        elements.copy_within(at + size..at + 2 * size, at);
    }
    if elements.chunks(size).all(|element| *element == elements[..size]) {
        elements.copy_from_slice(&reversed);
    }
    let is_zero = before.iter().all(|byte| *byte == 0);
    let moved = |value: i64| if is_zero { 1 } else { towards_zero(value) };
    // The first of equal elements is moved and the second stays.
    for first in [0, 1] {
        if elements != before {
            break;
        }
        let is_moved = |at: &usize| *at == first || *at > 1 && drawn(*at) % 2 == first as u64;
        let moving = elements.chunks_mut(size).enumerate().filter(|(at, _)| is_moved(at));
        moving.for_each(|(_, element)| change(element, &moved));
    }
    elements != before
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

/// Replaces a zero by a power of two. One of 0.5 and 8 changes the results of most functions by more than the
/// tolerance, and neither overflows in any type.
fn replace_zero(dtype: DType, element: &mut [u8], exponent: i64) {
    let Some(mantissa) = mantissa(dtype) else { return };
    let bits_in_all = 8 * dtype.size();
    let bias = (1_u64 << (bits_in_all - 2 - mantissa)) - 1;
    let power = bias.wrapping_add_signed(exponent) << mantissa;
    let sign = 1_u64 << (bits_in_all - 1);
    change_bits(element, |bits| (bits & !sign == 0).then_some(power));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(input: &InputArg) -> Vec<f64> {
        let InputArg::File(file) = input else { panic!("{input:?}") };
        file.read(&fs::read(&file.path).unwrap()).unwrap().to_f64()
    }

    fn literal(text: &str) -> InputArg {
        InputArg::Literal(text.to_owned())
    }

    fn of_one(text: &str) -> Vec<f64> {
        let folder = tempfile::tempdir().unwrap();
        let made = |values| made(&[literal(text)], values, folder.path()).unwrap();
        values(&made(OtherValues::All).or_else(|| made(OtherValues::Signed)).unwrap()[0])
    }

    #[test]
    fn floating_point_numbers_are_halved_and_reversed_and_zeros_replaced() {
        assert_eq!(of_one("2x2xf32=[1 2][3 -4]"), [-1.0, 1.5, 0.5, 0.5]);
        assert_eq!(of_one("3xbf16=1"), [0.25, 0.5, 0.25]);
        assert_eq!(of_one("2x2xf32=0 -0 0 0"), [0.5, 8.0, 0.0, 0.5]);
        for zeros in ["6xf32", "6xbf16=0", "6xf16", "6xf64=0 0 0 0 0 0"] {
            assert_eq!(of_one(zeros), [0.5, 8.0, 0.0, 0.5, 0.0, 0.0], "{zeros}");
        }
    }

    #[test]
    fn integers_stay_indices_and_sorted_ones_offsets() {
        assert_eq!(of_one("4xi64=1,3,2,0"), [0.0, 2.0, 3.0, 1.0]);
        assert_eq!(of_one("5xi32=0 0 5 9 9"), [0.0, 0.0, 4.0, 8.0, 8.0]);
        assert_eq!(of_one("3xi32=0 2 4"), [0.0, 1.0, 3.0]);
        assert_eq!(of_one("4xi32=7"), [6.0, 7.0, 7.0, 6.0]);
        assert_eq!(of_one("3xi32=[0 7 0]"), [7.0, 7.0, 0.0]);
        assert_eq!(of_one("3xi8=-1 0 -1"), [0.0, 0.0, -1.0]);
        assert_eq!(of_one("3xsi8=1 2 3"), [2.0, 2.0, 1.0]);
        assert_eq!(of_one("1xui8=255"), [254.0]);
        assert_eq!(of_one("3xi64=9007199254740993"), [9_007_199_254_740_992.0; 3]);
        assert_eq!(of_one("3xi64=0"), [1.0, 0.0, 0.0]);
        for single in ["i64=0", "1xi64", "1x1xi32=0", "1xi1=0"] {
            assert_eq!(of_one(single), [1.0], "{single}");
        }
        // A mask is not emptied.
        assert_eq!(of_one("4xi64=0 0 1 1"), [1.0, 1.0, 0.0, 0.0]);
        assert_eq!(of_one("3xi1=1 0 0"), [0.0, 0.0, 1.0]);
        assert_eq!(of_one("4xi1=1"), [0.0, 1.0, 1.0, 0.0]);
    }

    #[test]
    fn equal_rows_of_any_length_become_different_ones() {
        for shape in ["xf32=1", "xf32=0", "xbf16=-3", "xi32=7", "xi64=0", "xi1=1"] {
            for length in [12, 16, 48, 97] {
                let changed = of_one(&format!("8x{length}{shape}"));
                let rows: Vec<&[f64]> = changed.chunks(length).collect();
                let is_same = |at: usize| rows[..at].contains(&rows[at]);
                assert!(!(1..rows.len()).any(is_same), "{length}{shape}: {rows:?}");
            }
        }
    }

    #[test]
    fn signs_change_and_equal_inputs_get_different_values() {
        let folder = tempfile::tempdir().unwrap();
        let twice = [literal("4xf32=1 2 3 4"), literal("4xf32=1 2 3 4"), literal("4xi32=1 4 3 1")];
        let made = |values| made(&twice, values, folder.path()).unwrap().unwrap();
        let signed = made(OtherValues::Signed);
        let found: Vec<Vec<f64>> = signed.iter().map(values).collect();
        assert_eq!(found, [[-1.0, -1.5, -0.5, 0.5], [-0.75, -1.0, -0.25, 2.0], [1.0, 1.0, 1.0, 3.0]]);
        let all: Vec<Vec<f64>> = made(OtherValues::All).iter().map(values).collect();
        assert_eq!(all, [[1.0, 1.5, 0.5, 0.5], [0.75, 1.0, 0.25, 2.0], [1.0, 1.0, 1.0, 3.0]]);
    }

    #[test]
    fn a_function_that_refuses_other_integers_gets_other_floating_point_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, raw: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            fs::write(&path, bytes).unwrap();
            InputArg::File(TensorFile { path, raw: Some(raw.to_owned()) })
        };
        let floats: Vec<u8> = [1.0_f32, 0.0, -3.0].into_iter().flat_map(f32::to_le_bytes).collect();
        let integers: Vec<u8> = [1_i16, 2].into_iter().flat_map(i16::to_le_bytes).collect();
        let inputs = [file("a", "3xf32", &floats), file("b", "2xsi16", &integers)];
        let other = |inputs: &[InputArg], values| made(inputs, values, folder.path()).unwrap();
        let all = other(&inputs, OtherValues::All).unwrap();
        assert_eq!((values(&all[0]), values(&all[1])), (vec![-0.75, 0.0, 0.25], vec![0.0, 2.0]));
        let floats = other(&inputs, OtherValues::FloatingPoint).unwrap();
        assert_eq!((values(&floats[0]), &floats[1]), (vec![-0.75, 0.0, 0.25], &inputs[1]));
        // These would be the inputs that the function didn't accept.
        assert!(other(&inputs[..1], OtherValues::FloatingPoint).is_none());
        assert!(other(&inputs[1..], OtherValues::All).is_none());
        assert!(other(&inputs[1..], OtherValues::FloatingPoint).is_none());
        assert!(other(&[literal("2xf8E4M3FN=1 2")], OtherValues::Signed).is_none());
        // A zero that is the only position stays.
        let position = [literal("3xf32=1"), literal("i32=0"), literal("0")];
        assert_eq!(other(&position, OtherValues::FloatingPoint).unwrap()[1..], position[1..]);
    }

    #[test]
    fn a_function_that_refuses_all_other_values_gets_the_given_ones_in_another_order() {
        let folder = tempfile::tempdir().unwrap();
        let reordered = |text: &str| {
            let made = made(&[literal(text)], OtherValues::Reordered, folder.path()).unwrap();
            made.map(|inputs| values(&inputs[0]))
        };
        let texts = reordered("2x5xi64=[1 7 8 9 2][1 5 6 5 2]").unwrap();
        assert_eq!(texts, [1.0, 9.0, 8.0, 7.0, 2.0, 1.0, 5.0, 6.0, 5.0, 2.0]);
        assert_eq!(reordered("3x2xf32=[1 2][3 4][5 6]").unwrap(), [1.0, 5.0, 4.0, 3.0, 2.0, 6.0]);
        assert!(["8xf32=1", "3xi32=1 2 3", "5"].iter().all(|text| reordered(text).is_none()));
    }

    #[test]
    fn arguments_that_are_not_tensors_change_too() {
        let folder = tempfile::tempdir().unwrap();
        let given = ["5", "0", "-3", "2.5", "-1.0", "0.0", "1e-3"].map(literal);
        let made = |values| made(&given, values, folder.path()).unwrap().unwrap();
        let all = ["4", "1", "-2", "1.25", "-0.5", "0.5", "0.0005"].map(literal);
        assert_eq!([made(OtherValues::All), made(OtherValues::Signed)], [all.to_vec(), all.to_vec()]);
        let floats = made(OtherValues::FloatingPoint);
        assert_eq!((&floats[..3], &floats[3..]), (&given[..3], &all[3..]));
    }
}
