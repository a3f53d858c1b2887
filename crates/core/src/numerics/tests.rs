//! Injected faults are detected at the default tolerances; normal rounding passes.

use half::bf16;
use proptest::prelude::*;

use crate::model::{OutputCheck, VerifyCode};

use super::{DType, NpyError, NumericsTolerance, Tensor, check, typical_magnitude, verify};

/// Returns seeded numbers with an approximately standard normal distribution (each is a sum of twelve uniform
/// ones).
pub(super) fn normal(seed: u64, count: usize) -> Vec<f32> {
    let mut state = seed;
    let mut uniform = || {
        // SplitMix64 (Steele, Lea & Flood, 2014).
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    };
    (0..count).map(|_| ((0..12).map(|_| uniform()).sum::<f64>() - 6.0) as f32).collect()
}

pub(super) fn f32s(shape: &[usize], values: &[f32]) -> Tensor {
    let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    Tensor::from_raw(DType::F32, shape.to_vec(), &bytes).unwrap()
}

pub(super) fn f64s(shape: &[usize], values: &[f64]) -> Tensor {
    let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    Tensor::from_raw(DType::F64, shape.to_vec(), &bytes).unwrap()
}

const SIDE: usize = 96;

/// Returns a realistic output: a square of normal values.
fn reference() -> Vec<f32> {
    normal(7, SIDE * SIDE)
}

fn checked(output: &[f32], reference: &[f32]) -> OutputCheck {
    let shape = [SIDE, SIDE];
    check(0, &f32s(&shape, output), &f32s(&shape, reference), None, &NumericsTolerance::defaults())
}

/// Asserts that the reference fails after `fault` changed it; returns the reason.
fn caught(fault: impl Fn(&mut Vec<f32>)) -> String {
    let mut output = reference();
    fault(&mut output);
    let check = checked(&output, &reference());
    assert_eq!(check.code, VerifyCode::Fail, "{:?}", check.divergence);
    check.why.unwrap()
}

#[test]
fn an_equal_output_passes_with_nothing_to_report() {
    let check = checked(&reference(), &reference());
    assert_eq!((check.code, check.why), (VerifyCode::Pass, None));
    let d = check.divergence.unwrap();
    assert_eq!((d.max_abs, d.max_rel, d.max_ulp, d.rmse, d.mismatched), (0.0, 0.0, 0.0, 0.0, 0));
    assert!((d.cosine - 1.0).abs() < 1e-12);
    assert_eq!(d.elements, (SIDE * SIDE) as u64);
}

#[test]
fn reordered_sums_pass() {
    // Noise of 1e-6 of the magnitude in every element, including those near zero.
    let noise = normal(8, SIDE * SIDE);
    let output: Vec<f32> = reference().iter().zip(noise).map(|(x, n)| x + n * 1e-6).collect();
    assert_eq!(checked(&output, &reference()).code, VerifyCode::Pass);
    // Ten times as much noise is still a normal error for a deep model.
    let noise = normal(9, SIDE * SIDE);
    let output: Vec<f32> = reference().iter().zip(noise).map(|(x, n)| x + n * 1e-5).collect();
    assert_eq!(checked(&output, &reference()).code, VerifyCode::Pass);
}

#[test]
fn the_same_product_summed_in_another_order_passes() {
    // A real matrix product with k = 2048, summed forwards, and in blocks of 16 as a vectorized kernel does.
    let (rows, k) = (32, 2048);
    let (a, b) = (normal(1, rows * k), normal(2, rows * k));
    let dot = |i: usize, j: usize, block: usize| {
        let products = (0..k).map(|n| a[i * k + n] * b[j * k + n]).collect::<Vec<f32>>();
        let mut lanes = vec![0.0f32; block];
        products.iter().enumerate().for_each(|(n, product)| lanes[n % block] += product);
        lanes.iter().sum::<f32>()
    };
    let product = |block| {
        let mut out = Vec::new();
        for i in 0..rows {
            for j in 0..rows {
                out.push(dot(i, j, block));
            }
        }
        out
    };
    let shape = [rows, rows];
    let (forward, blocked) = (f32s(&shape, &product(1)), f32s(&shape, &product(16)));
    let check = check(0, &blocked, &forward, None, &[]);
    assert_eq!(check.code, VerifyCode::Pass, "{:?}", check);
    // If the two orders gave equal sums, this test would be meaningless.
    assert!(check.divergence.unwrap().max_abs > 0.0);
}

#[test]
fn elements_in_another_shape_are_named() {
    let values = normal(7, 12);
    let shape = f32s(&[3, 4], &values);
    let transposed: Vec<f32> = (0..12).map(|at| values[(at % 3) * 4 + at / 3]).collect();
    let why = |output: &Tensor| check(0, output, &shape, None, &[]).why.unwrap();
    assert_eq!(
        why(&f32s(&[4, 3], &transposed)),
        "shape 4x3, but the reference has 3x4; the output is the reference transposed: the last two \
        dimensions are swapped"
    );
    assert_eq!(
        why(&f32s(&[12], &values)),
        "shape 12, but the reference has 3x4; the output is the reference reshaped, with equal elements"
    );
    assert_eq!(why(&f32s(&[4, 3], &normal(8, 12))), "shape 4x3, but the reference has 3x4");
}

#[test]
fn a_reference_below_the_absolute_tolerance_verifies_nothing() {
    // MobileNet's outputs with random weights were as small: every element could be off by forty times its
    // size.
    let tiny: Vec<f32> = normal(7, 16).iter().map(|x| x * 2e-10).collect();
    let reference = f32s(&[16], &tiny);
    let found = verify(std::slice::from_ref(&reference), std::slice::from_ref(&reference), &[], &[]);
    assert_eq!(found.code, VerifyCode::VerifierSkipped);
    assert!(found.why.unwrap().contains("absolute tolerance"));
}

#[test]
fn one_nan_is_caught() {
    assert!(caught(|x| x[17] = f32::NAN).contains("1 of 9216 elements is NaN or infinite"));
}

#[test]
fn one_infinity_is_caught() {
    assert!(caught(|x| x[9000] = f32::INFINITY).contains("NaN or infinite"));
}

#[test]
fn a_scale_of_one_in_a_thousand_is_caught() {
    caught(|x| x.iter_mut().for_each(|x| *x *= 1.001));
}

#[test]
fn two_swapped_rows_are_caught() {
    caught(|x| (0..SIDE).for_each(|n| x.swap(3 * SIDE + n, 4 * SIDE + n)));
}

#[test]
fn a_transposed_square_is_caught() {
    caught(|x| {
        let before = x.clone();
        for (at, value) in x.iter_mut().enumerate() {
            *value = before[(at % SIDE) * SIDE + at / SIDE];
        }
    });
}

#[test]
fn rounding_to_bf16_is_caught() {
    caught(|x| x.iter_mut().for_each(|x| *x = bf16::from_f32(*x).to_f32()));
}

#[test]
fn rounding_to_f16_is_caught() {
    caught(|x| x.iter_mut().for_each(|x| *x = half::f16::from_f32(*x).to_f32()));
}

#[test]
fn a_zeroed_last_percent_is_caught() {
    caught(|x| {
        let from = x.len() * 99 / 100;
        x[from..].fill(0.0);
    });
}

#[test]
fn one_element_off_by_a_percent_is_caught() {
    let why = caught(|x| x[123] += 0.01 * x[123].signum().max(1.0));
    assert!(why.contains("1 of 9216") && why.contains("at [1, 27]"), "{why}");
}

#[test]
fn the_output_of_another_input_is_caught() {
    caught(|x| *x = normal(99, SIDE * SIDE));
}

#[test]
fn a_constant_output_is_caught() {
    caught(|x| x.fill(0.0));
}

#[test]
fn another_shape_fails_with_a_reason() {
    let check = check(2, &f32s(&[2, 3], &[0.0; 6]), &f32s(&[3, 2], &[0.0; 6]), None, &[]);
    assert_eq!((check.index, check.code), (2, VerifyCode::Fail));
    assert_eq!(check.why.unwrap(), "shape 2x3, but the reference has 3x2");
    assert_eq!(check.divergence, None);
}

#[test]
fn another_type_fails_with_a_reason() {
    let check = check(0, &f64s(&[2], &[0.0; 2]), &f32s(&[2], &[0.0; 2]), None, &[]);
    assert_eq!(check.why.unwrap(), "type f64 2, but the reference has f32 2");
}

#[test]
fn a_masked_row_that_is_nan_on_both_sides_agrees() {
    let (mut output, mut reference) = (reference(), reference());
    output[..SIDE].fill(f32::NAN);
    reference[..SIDE].fill(f32::NAN);
    assert_eq!(checked(&output, &reference).code, VerifyCode::Pass);
    // A finite value where the reference is NaN is a difference.
    output[0] = 1.0;
    assert!(checked(&output, &reference).why.unwrap().contains("but the reference is NaN"));
    output[0] = f32::NAN;
    output[SIDE] = f32::NEG_INFINITY;
    reference[SIDE] = f32::INFINITY;
    assert_eq!(checked(&output, &reference).code, VerifyCode::Fail);
}

#[test]
fn a_reference_of_nan_verifies_nothing() {
    let nan = vec![f32::NAN; SIDE * SIDE];
    assert!(checked(&nan, &nan).why.unwrap().contains("nothing can be verified"));
}

#[test]
fn infinities_are_compared_exactly_and_one_everywhere_is_what_a_constant_would_match() {
    const LOW: f32 = f32::NEG_INFINITY;
    let code = |output: &[f32], reference: &[f32]| {
        let tensor = |values: &[f32]| f32s(&[values.len()], values);
        verify(&[tensor(output)], &[tensor(reference)], &[], &[]).code
    };
    assert_eq!(code(&[LOW], &[LOW]), VerifyCode::Pass, "the maximum of an empty set");
    assert_eq!(code(&[LOW, -LOW], &[LOW, -LOW]), VerifyCode::Pass);
    assert_eq!(code(&[LOW, f32::NAN], &[LOW, f32::NAN]), VerifyCode::Pass);
    assert_eq!(code(&[LOW, LOW], &[LOW, LOW]), VerifyCode::VerifierSkipped);
    for wrong in [[LOW, -LOW], [LOW, f32::MIN], [LOW, f32::NAN], [0.0, 0.0]] {
        assert_eq!(code(&wrong, &[LOW, LOW]), VerifyCode::Fail, "{wrong:?}");
    }
}

#[test]
fn a_huge_mask_does_not_hide_errors_elsewhere() {
    let (mut output, mut reference) = (reference(), reference());
    output[..SIDE].fill(-3.0e38);
    reference[..SIDE].fill(-3.0e38);
    assert_eq!(checked(&output, &reference).code, VerifyCode::Pass);
    output[SIDE] += 0.5;
    assert_eq!(checked(&output, &reference).code, VerifyCode::Fail);
}

#[test]
fn an_ill_conditioned_output_passes_if_eager_has_a_similar_error() {
    let exact: Vec<f64> = reference().iter().map(|x| f64::from(*x)).collect();
    let off = |seed, size: f32| -> Vec<f32> {
        reference().iter().zip(normal(seed, SIDE * SIDE)).map(|(x, n)| x + n * size).collect()
    };
    let shape = [SIDE, SIDE];
    let (eager, exact) = (f32s(&shape, &off(1, 1e-3)), f64s(&shape, &exact));
    let output = f32s(&shape, &off(2, 1e-3));
    assert_eq!(check(0, &output, &eager, None, &[]).code, VerifyCode::Fail);
    assert_eq!(check(0, &output, &eager, Some(&exact), &[]).code, VerifyCode::Pass);
    // An error ten times as large as eager's own is not the same answer, and neither is a NaN.
    let worse = f32s(&shape, &off(2, 1e-2));
    assert_eq!(check(0, &worse, &eager, Some(&exact), &[]).code, VerifyCode::Fail);
    let mut broken = off(2, 1e-3);
    broken[5] = f32::NAN;
    assert_eq!(check(0, &f32s(&shape, &broken), &eager, Some(&exact), &[]).code, VerifyCode::Fail);
    // One wrong element barely changes the mean, but it changes the maximum.
    let mut one = off(2, 1e-3);
    one[5] += 0.5;
    assert_eq!(check(0, &f32s(&shape, &one), &eager, Some(&exact), &[]).code, VerifyCode::Fail);
}

#[test]
fn integers_are_equal_or_wrong_unless_the_policy_says_otherwise() {
    let int = |values: &[i8]| {
        let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        Tensor::from_raw(DType::I8, vec![values.len()], &bytes).unwrap()
    };
    let (output, reference) = (int(&[1, -128, 3]), int(&[1, -127, 3]));
    let why = |reference: &Tensor| check(0, &output, reference, None, &[]).why.unwrap();
    insta::assert_snapshot!(why(&reference), @"1 of 3 elements beyond the tolerance, largest |a − b| 1.000e0, at [1]; integers that differ by at most 1, as in a quantized model, agree with `[numerics.i8] atol = 1`; every element is that of the reference × 1.007869");
    assert!(!why(&int(&[1, -126, 3])).contains("atol"));
    let one = NumericsTolerance { atol: 1.0, ..NumericsTolerance::for_dtype(DType::I8) };
    let check = check(0, &output, &reference, None, &[one]);
    assert_eq!(check.code, VerifyCode::Pass);
    assert_eq!(check.divergence.unwrap().max_ulp, 1.0);
}

#[test]
fn large_integers_are_compared_exactly() {
    let int = |value: i64| Tensor::from_raw(DType::I64, vec![], &value.to_le_bytes()).unwrap();
    // Both integers are the same number as `f64`.
    let check = check(0, &int(i64::MAX), &int(i64::MAX - 1), None, &[]);
    assert_eq!((check.code, check.divergence.unwrap().max_abs), (VerifyCode::Fail, 1.0));
}

#[test]
fn signless_integers_are_read_with_the_reference_s_type() {
    let output = Tensor::from_raw(DType::I8, vec![2], &[255, 1]).unwrap();
    let reference = Tensor::from_raw(DType::U8, vec![2], &[255, 1]).unwrap();
    assert_eq!(check(0, &output, &reference, None, &[]).code, VerifyCode::Pass);
    let wider = Tensor::from_raw(DType::I16, vec![2], &[255, 0, 1, 0]).unwrap();
    assert_eq!(check(0, &wider, &reference, None, &[]).code, VerifyCode::Fail);
}

#[test]
fn distances_count_representable_numbers() {
    let ulp = |a: f32, b: f32| {
        check(0, &f32s(&[1], &[a]), &f32s(&[1], &[b]), None, &[]).divergence.unwrap().max_ulp
    };
    assert_eq!(ulp(1.0, 1.0 + f32::EPSILON), 1.0);
    assert_eq!(ulp(-f32::from_bits(1), f32::from_bits(1)), 2.0);
    assert_eq!(ulp(0.0, -0.0), 0.0);
}

#[test]
fn the_typical_magnitude_ignores_zeros_and_outliers() {
    assert_eq!(typical_magnitude(&[]), 0.0);
    assert_eq!(typical_magnitude(&[0.0, f64::NAN]), 0.0);
    assert_eq!(typical_magnitude(&[2.0, -2.0]), 2.0);
    assert_eq!(typical_magnitude(&[1.0, 1.0, 1.0, -1e300]), 16.0);
    let mostly_masked = [[1.0, 2.0, 3.0, -4.0, 5.0], [-1e38; 5], [-1e38; 5]].concat();
    assert!((typical_magnitude(&mostly_masked) - 11f64.sqrt()).abs() < 1e-12);
    // Masks are added to scores, there may be several, and zeros between.
    let scores: Vec<f64> = (0..100).map(|at| f64::from(at % 5 + 1)).collect();
    let added = |mask: f64| scores.iter().map(|score| score + mask).collect::<Vec<_>>();
    for mask in [-1e4, -65504.0, -1e9, -1e38] {
        let mixed = [scores.clone(), added(mask), added(mask), vec![0.0; 100], vec![-3e38; 300]].concat();
        assert!((typical_magnitude(&mixed) - 5.5f64.sqrt()).abs() < 1e-12, "{mask}");
    }
    // A bell curve has no mask, whatever its scale.
    let wide: Vec<f64> = normal(3, 4096).iter().map(|x| f64::from(bf16::from_f32(x * 1e7))).collect();
    assert!((typical_magnitude(&wide) / 1e7 - 1.0).abs() < 0.05);
    // Two logits, and saturated outputs next to small ones, are not masks.
    assert!(typical_magnitude(&[5.0, 1e-3]) > 3.0);
    assert!(typical_magnitude(&[1.0, 1.0, 1.0, 1e-9]) > 0.8);
}

#[test]
fn outputs_and_references_are_paired_by_position() {
    let (a, b) = (f32s(&[2], &[1.0, 2.0]), f32s(&[2], &[3.0, 4.0]));
    let both = [a.clone(), b.clone()];
    assert_eq!(verify(&both, &both, &[], &[]).code, VerifyCode::Pass);
    let swapped = verify(&[b.clone(), a.clone()], &both, &[], &[]);
    assert_eq!(swapped.code, VerifyCode::Fail);
    assert!(swapped.why.unwrap().starts_with("output 0: 2 of 2 elements"));
    let fewer = verify(&[a], &both, &[], &[]);
    assert_eq!(
        (fewer.code, fewer.why.unwrap().as_str()),
        (VerifyCode::Fail, "1 output where there are 2 references")
    );
    let none = verify(&both, &[], &[], &[]);
    assert_eq!(none.code, VerifyCode::VerifierSkipped);
}

#[test]
fn empty_outputs_agree() {
    let empty = f32s(&[0, 4], &[]);
    assert_eq!(check(0, &empty, &empty, None, &[]).code, VerifyCode::Pass);
}

/// Returns an `.npy` file of version 1 with this header and data.
fn npy(header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

#[test]
fn files_written_by_iree_are_read() {
    let floats: Vec<u8> = [1.5f32, -2.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    let file = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }       \n", &floats);
    let tensor = Tensor::from_npy(&file).unwrap();
    assert_eq!((tensor.dtype(), tensor.shape(), tensor.to_f64()), (DType::F32, &[2][..], vec![1.5, -2.0]));
    let file = npy("{'descr': '|b1', 'fortran_order': False, 'shape': (), }\n", &[1]);
    assert_eq!(Tensor::from_npy(&file).unwrap().dtype(), DType::Bool);
    let file = npy("{'descr': '<V2', 'fortran_order': False, 'shape': (1, 1), }\n", &[0xc0, 0x3f]);
    assert_eq!(Tensor::from_npy(&file).unwrap().to_f64(), [1.5]);
}

#[test]
fn column_major_and_big_endian_files_read_the_same() {
    let header = |descr: &str, fortran: &str| {
        format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': (2, 3, 2), }}\n")
    };
    let rows: Vec<i32> = (0..12).collect();
    // Element (i, j, k) is i·6 + j·2 + k; in column-major order, i changes fastest.
    let columns: Vec<i32> = (0..12).map(|at| (at % 2) * 6 + (at / 2 % 3) * 2 + at / 6).collect();
    let little = |values: &[i32]| values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>();
    let big = |values: &[i32]| values.iter().flat_map(|x| x.to_be_bytes()).collect::<Vec<_>>();
    let expected = Tensor::from_npy(&npy(&header("<i4", "False"), &little(&rows))).unwrap();
    assert_eq!(Tensor::from_npy(&npy(&header("<i4", "True"), &little(&columns))).unwrap(), expected);
    assert_eq!(Tensor::from_npy(&npy(&header(">i4", "False"), &big(&rows))).unwrap(), expected);
    assert_eq!(Tensor::from_npy(&npy(&header(">i4", "True"), &big(&columns))).unwrap(), expected);
}

#[test]
fn pickles_are_never_loaded() {
    let file = npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n", b"\x80\x04.");
    assert_eq!(Tensor::from_npy(&file), Err(NpyError::Objects));
}

#[test]
fn hostile_headers_are_errors() {
    let shape =
        |shape: &str| npy(&format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n"), &[]);
    for hostile in [
        "(4294967296, 4294967296, 4)",
        "(99999999999999999999999,)",
        "(1000000000000,)",
        "(-1,)",
        "(1",
        "((((((((((",
        "(1e9,)",
    ] {
        assert!(Tensor::from_npy(&shape(hostile)).is_err(), "{hostile}");
    }
    let dimensions = format!("({})", "1,".repeat(1000));
    assert!(Tensor::from_npy(&shape(&dimensions)).is_err());
    // The file announces a header of four gigabytes that it does not contain.
    let mut long = b"\x93NUMPY\x02\x00".to_vec();
    long.extend(u32::MAX.to_le_bytes());
    assert_eq!(Tensor::from_npy(&long), Err(NpyError::LongHeader(u32::MAX as usize)));
    for other in ["", "\u{93}NUMPY", "PK\u{3}\u{4}"] {
        assert_eq!(Tensor::from_npy(other.as_bytes()), Err(NpyError::NotNpy));
    }
    // An empty dimension and a huge one make an empty tensor; their product must not overflow.
    assert!(Tensor::from_npy(&shape("(0, 18446744073709551615, 2)")).unwrap().is_empty());
}

#[test]
fn a_truncated_file_is_an_error_with_both_lengths() {
    let file = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n", &[0; 7]);
    assert_eq!(
        Tensor::from_npy(&file).unwrap_err().to_string(),
        "expected 8 bytes for 2 elements of f32, found 7"
    );
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        drop(Tensor::from_npy(&bytes));
    }

    #[test]
    fn arbitrary_headers_never_panic(header in "[{}()'a-z_:,<|>0-9 LTF]{0,80}", data in proptest::collection::vec(any::<u8>(), 0..32)) {
        drop(Tensor::from_npy(&npy(&header, &data)));
    }

    #[test]
    fn any_bits_are_compared_without_panic_and_equal_bits_agree(bits in proptest::collection::vec(any::<u32>(), 1..40), other in any::<u32>()) {
        let values: Vec<f32> = bits.iter().map(|bits| f32::from_bits(*bits)).collect();
        let tensor = f32s(&[values.len()], &values);
        let same = check(0, &tensor, &tensor, None, &[]);
        prop_assert_eq!(same.divergence.unwrap().mismatched, 0);
        let mut changed = values.clone();
        changed[0] = f32::from_bits(other);
        let check = check(0, &f32s(&[values.len()], &changed), &tensor, None, &[]);
        let d = check.divergence.unwrap();
        // If no pair of numbers is finite, the similarity is unknown and therefore NaN.
        let finite = changed.iter().zip(&values).any(|(a, b)| a.is_finite() && b.is_finite());
        let sensible = if finite { (-1.0..=1.0).contains(&d.cosine) } else { d.cosine.is_nan() };
        prop_assert!(sensible);
        prop_assert!(d.mismatched <= 1);
    }
}

#[test]
fn an_fp64_reference_of_another_program_excuses_nothing() {
    let (right, other) = (reference(), normal(11, SIDE * SIDE));
    let wide =
        |values: &[f32]| f64s(&[SIDE, SIDE], &values.iter().map(|x| f64::from(*x)).collect::<Vec<_>>());
    let wrong = normal(12, SIDE * SIDE);
    let shape = [SIDE, SIDE];
    let check = |exact: &[f32]| {
        let [output, reference] = [&wrong, &right].map(|values| f32s(&shape, values));
        check(0, &output, &reference, Some(&wide(exact)), &NumericsTolerance::defaults()).code
    };
    assert_eq!([check(&right), check(&other)], [VerifyCode::Fail; 2]);
}
