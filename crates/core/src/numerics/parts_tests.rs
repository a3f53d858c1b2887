//! Outputs in which a part bears no resemblance to the reference, although the whole is within the tolerance.

use half::bf16;
use proptest::prelude::*;

use crate::model::VerifyCode;

use super::tests::{f64s, normal};
use super::{DType, NumericsTolerance, Tensor, check};

/// Rows of `columns` normal values, each column with its own scale.
fn scaled(seed: u64, rows: usize, scales: &[f64]) -> Vec<f64> {
    let values = normal(seed, rows * scales.len());
    values.iter().enumerate().map(|(at, x)| f64::from(*x) * scales[at % scales.len()]).collect()
}

fn of_dtype(dtype: DType, shape: &[usize], values: &[f64]) -> Tensor {
    let bytes: Vec<u8> = match dtype {
        DType::F16 => values.iter().flat_map(|x| half::f16::from_f64(*x).to_le_bytes()).collect(),
        DType::Bf16 => values.iter().flat_map(|x| bf16::from_f64(*x).to_le_bytes()).collect(),
        DType::F32 => values.iter().flat_map(|x| (*x as f32).to_le_bytes()).collect(),
        _ => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
    };
    Tensor::from_raw(dtype, shape.to_vec(), &bytes).unwrap()
}

/// The code of a change to one column, by element.
fn with_column(values: &[f64], columns: usize, wrong: usize, fault: impl Fn(usize, f64) -> f64) -> Vec<f64> {
    let changed = |(at, x): (usize, &f64)| if at % columns == wrong { fault(at, *x) } else { *x };
    values.iter().enumerate().map(changed).collect()
}

#[test]
fn a_column_of_small_values_that_has_nothing_of_the_reference_is_caught() {
    let scales = [1e4, 1e4, 1e4, 0.2];
    let shape = [64, 4];
    let values = scaled(1, 64, &scales);
    let reference = of_dtype(DType::F32, &shape, &values);
    let found = |values: &[f64]| check(0, &of_dtype(DType::F32, &shape, values), &reference, None, &[]);
    let noise = |size: f64| -> Vec<f64> {
        values.iter().zip(normal(2, 256)).map(|(x, n)| x + f64::from(n) * size).collect()
    };
    // The error that sums of large terms leave in each column.
    let honest = noise(1e-3);
    assert_eq!(found(&honest).code, VerifyCode::Pass);
    type Fault<'a> = (&'a str, &'a dyn Fn(usize, f64) -> f64);
    let faults: [Fault<'_>; 5] = [
        ("zeros", &|_, _| 0.0),
        ("the other sign", &|_, x| -x),
        ("another column", &|at, _| values[at - 1] / 5e4),
        ("a constant", &|_, _| 0.1),
        ("another row", &|at, _| values[(at + 4) % 256]),
    ];
    for (fault, change) in faults {
        assert_eq!(found(&with_column(&honest, 4, 3, change)).code, VerifyCode::Fail, "{fault}");
    }
    let why = found(&with_column(&honest, 4, 3, |_, _| 0.0)).why.unwrap();
    assert!(why.starts_with("[:, 3] has nothing of the reference"), "{why}");
    // The caller's own bound of an element holds.
    let atol = NumericsTolerance { atol: 10.0, ..NumericsTolerance::for_dtype(DType::F32) };
    let zeros = of_dtype(DType::F32, &shape, &with_column(&values, 4, 3, |_, _| 0.0));
    assert_eq!(check(0, &zeros, &reference, None, &[atol]).code, VerifyCode::Pass);
}

#[test]
fn an_fp64_reference_shows_what_the_rounding_of_large_columns_would_hide() {
    for (dtype, small) in [(DType::F16, 1e-2), (DType::F16, 1.0), (DType::Bf16, 1.0), (DType::F32, 1e-2)] {
        let shape = [64, 2];
        let values = scaled(1, 64, &[1e4, small]);
        let (exact, reference) = (f64s(&shape, &values), of_dtype(dtype, &shape, &values));
        let found =
            |values: &[f64]| check(0, &of_dtype(dtype, &shape, values), &reference, Some(&exact), &[]).code;
        let rounded: Vec<f64> = values.iter().map(|x| x * (1.0 + 1e-3)).collect();
        let honest = if dtype == DType::F32 { &values } else { &rounded };
        assert_eq!(found(honest), VerifyCode::Pass, "{dtype} {small}");
        assert_eq!(found(&with_column(honest, 2, 1, |_, _| 0.0)), VerifyCode::Fail, "{dtype} {small}");
        assert_eq!(found(&with_column(honest, 2, 1, |_, x| -x)), VerifyCode::Fail, "{dtype} {small}");
    }
}

#[test]
fn a_column_that_is_rounding_in_the_reference_too_passes() {
    // Two large equal terms cancel: nothing of the third column is right on either side.
    let shape = [64, 3];
    let values = scaled(1, 64, &[100.0, 100.0, 0.0]);
    let side = |seed: u64| -> Vec<f64> {
        values.iter().zip(normal(seed, 192)).map(|(x, n)| x + f64::from(n) * 1e-5).collect()
    };
    let (a, b) = (of_dtype(DType::F32, &shape, &side(2)), of_dtype(DType::F32, &shape, &side(3)));
    assert_eq!(check(0, &a, &b, None, &[]).code, VerifyCode::Pass);
    assert_eq!(check(0, &a, &b, Some(&f64s(&shape, &values)), &[]).code, VerifyCode::Pass);
}

#[test]
fn the_values_next_to_masks_and_zeros_are_compared() {
    for (dtype, masks) in [
        (DType::F32, &[-1e38, -1e9, -1e4][..]),
        (DType::Bf16, &[-1e38, -1e4]),
        (DType::F16, &[-65504.0, -1e4, f64::NEG_INFINITY]),
    ] {
        for mask in masks {
            let scores = normal(5, 1000);
            let mixed = |of_score: &dyn Fn(f64) -> f64| -> Vec<f64> {
                let element = |(at, x): (usize, &f32)| match at * 7 % 10 {
                    0..4 => f64::from(*x) + mask,
                    4..8 => 0.0,
                    _ => of_score(f64::from(*x)),
                };
                scores.iter().enumerate().map(element).collect()
            };
            let shape = [100, 10];
            let reference = of_dtype(dtype, &shape, &mixed(&|x| x));
            let found = |of_score: &dyn Fn(f64) -> f64| {
                check(0, &of_dtype(dtype, &shape, &mixed(of_score)), &reference, None, &[]).code
            };
            assert_eq!(
                found(&|x| x * 1.001),
                if dtype == DType::F32 { VerifyCode::Fail } else { VerifyCode::Pass }
            );
            let faults: [&dyn Fn(f64) -> f64; 4] = [&|x| x * 1.2, &|_| 0.0, &|x| -x, &|x| x + 0.3];
            for wrong in faults {
                assert_eq!(found(wrong), VerifyCode::Fail, "{dtype} {mask}");
            }
        }
    }
}

proptest! {
    #[test]
    fn slices_that_are_zeros_or_another_slice_are_caught_at_any_scale(
        seed in any::<u64>(),
        shape in proptest::collection::vec(4usize..7, 2..4),
        axis in 0usize..3,
        scales in proptest::collection::vec(-3.0f64..0.0, 7),
        wrong in 0usize..7,
        by_another in any::<bool>(),
    ) {
        let shape = [&[8][..], &shape].concat();
        let axis = axis % shape.len();
        let (side, stride) = (shape[axis], shape[axis + 1..].iter().product::<usize>());
        let index = |at: usize| at / stride % side;
        let count: usize = shape.iter().product();
        let scale = |at: usize| 10f64.powf(scales[index(at) % 7]);
        let values: Vec<f64> =
            normal(seed, count).iter().enumerate().map(|(at, x)| f64::from(*x) * scale(at)).collect();
        // The error that large terms leave in all slices.
        let noise = 1e-8 * (0..count).map(scale).fold(0.0, f64::max);
        let noisy: Vec<f64> =
            values.iter().zip(normal(!seed, count)).map(|(x, n)| x + f64::from(n) * noise).collect();
        let other = |at: usize| at - index(at) * stride + (index(at) + 1) % side * stride;
        let fault = |at: usize| if by_another { noisy[other(at)] } else { 0.0 };
        let faulty: Vec<f64> =
            (0..count).map(|at| if index(at) == wrong % side { fault(at) } else { noisy[at] }).collect();
        let reference = of_dtype(DType::F32, &shape, &values);
        let code = |values: &[f64]| check(0, &of_dtype(DType::F32, &shape, values), &reference, None, &[]).code;
        prop_assert_eq!(code(&noisy), VerifyCode::Pass);
        prop_assert_eq!(code(&faulty), VerifyCode::Fail);
    }
}
