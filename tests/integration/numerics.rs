//! Wrong outputs of a module, tested with the whole command. Each one is detected, ends with the exit code of
//! a divergence, and is reported with its position. The output files have the tools' real format.

use half::bf16;

use crate::harness::{lint_codes, lint_detail, reason, row};
use crate::suite::{Suite, npy_of};

const SIDE: usize = 96;

/// Seeded numbers with an approximately standard normal distribution.
fn normal(seed: u64) -> Vec<f32> {
    let mut state = seed;
    let mut uniform = || {
        // SplitMix64 (Steele, Lea & Flood, 2014).
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    };
    (0..SIDE * SIDE).map(|_| ((0..12).map(|_| uniform()).sum::<f64>() - 6.0) as f32).collect()
}

fn square(values: &[f32]) -> Vec<u8> {
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    npy_of("<f4", &format!("({SIDE}, {SIDE})"), &data)
}

/// A suite with one model. The model's output is this file, and its reference is a square matrix of seeded
/// numbers.
fn suite(output: &[u8]) -> Suite {
    let suite = Suite::new().model("m", &["latency-us=1000", "output-file=data/out.npy"]);
    suite.world.write("data/y.npy", square(&normal(7)));
    suite.world.write("data/out.npy", output);
    suite.write()
}

/// Runs the suite with this output, expects the exit code of a wrong output, and returns the message about
/// it.
fn caught(output: &[u8]) -> String {
    let suite = suite(output);
    let outcome = suite.world.run(["run"]).expect_code(13);
    let verification = &suite.run_json()["sides"][0]["benchmarks"][0]["verification"];
    assert_eq!(verification["code"], "FAIL", "{}", outcome.stdout);
    let said = outcome.said();
    assert!(said.contains("m/cpu/main"), "{}", outcome.stdout);
    let why = verification["why"].as_str().unwrap().to_owned();
    // The stored text is the same as the displayed one.
    assert!(said.contains(&why), "{why}\n{}", outcome.stdout);
    why
}

fn fault(change: impl FnOnce(&mut Vec<f32>)) -> String {
    let mut values = normal(7);
    change(&mut values);
    caught(&square(&values))
}

#[test]
fn an_honest_output_passes() {
    let noise = normal(8);
    let values: Vec<f32> = normal(7).iter().zip(noise).map(|(x, noise)| x + noise * 1e-6).collect();
    suite(&square(&values)).world.run(["run"]).expect_code(0);
}

#[test]
fn one_output_too_many() {
    let suite = Suite::new().model("m", &["latency-us=1000", "output-file=data/y.npy,data/y.npy"]).write();
    suite.world.run(["run"]).expect_code(13);
    let verification = &suite.run_json()["sides"][0]["benchmarks"][0]["verification"];
    assert_eq!(verification["code"], "FAIL");
    assert_eq!(verification["why"], "expected 1 output, found 2");
}

#[test]
fn one_nan() {
    assert_eq!(
        fault(|x| x[17] = f32::NAN),
        "output 0: 1 of 9216 elements is NaN or infinite, but the reference is not, at [0, 17]"
    );
}

#[test]
fn one_infinity() {
    assert_eq!(
        fault(|x| x[9000] = f32::INFINITY),
        "output 0: 1 of 9216 elements is NaN or infinite, but the reference is not, at [93, 72]"
    );
}

#[test]
fn nothing_but_nan_is_not_described_with_distances() {
    let mut values = normal(7);
    values.fill(f32::NAN);
    let suite = suite(&square(&values)).base("").head("flags = [\"--x\"]").write();
    let comparison = suite.world.run(["gate", "--format", "json"]).expect_code(20).json();
    let (code, text) = reason(row(&comparison, "m/cpu/main", None));
    assert_eq!(code, "wrong-output-on-base");
    insta::assert_snapshot!(text, @"
    base's own outputs don't match the reference: output 0 is FAIL (no pair of finite values to compare); 9216 non-finite values
    9216 of 9216 elements are NaN or infinite, but the reference is not, first at [0, 0], all over the output; every element is NaN
    ");
    let divergence =
        &suite.run_json()["sides"][0]["benchmarks"][0]["verification"]["outputs"][0]["divergence"];
    assert_eq!((&divergence["cosine"], &divergence["max_abs"]), (&"NaN".into(), &"NaN".into()));
}

#[test]
fn a_scale_of_one_in_a_thousand() {
    let why = fault(|x| x.iter_mut().for_each(|x| *x *= 1.001));
    insta::assert_snapshot!(why, @"output 0: root mean square of the normalized error 4.29e-4, allowed 2.00e-5: a small fault in 9071 of 9216 elements, first at [0, 0], all over the output; every element is that of the reference × 1.001");
}

#[test]
fn two_swapped_rows() {
    let why = fault(|x| (0..SIDE).for_each(|n| x.swap(3 * SIDE + n, 4 * SIDE + n)));
    insta::assert_snapshot!(why, @"output 0: 192 of 9216 elements beyond the tolerance, largest |a − b| 3.112e0, first at [3, 0], all within [3–4, 0–95]; rows 3 and 4 of the output are swapped");
}

#[test]
fn a_transposed_square() {
    let why = fault(|x| {
        let before = x.clone();
        for (at, value) in x.iter_mut().enumerate() {
            *value = before[(at % SIDE) * SIDE + at / SIDE];
        }
    });
    insta::assert_snapshot!(why, @"output 0: 9114 of 9216 elements beyond the tolerance, largest |a − b| 4.713e0, first at [0, 1], all over the output; the output is the reference transposed: the last two dimensions are swapped");
}

#[test]
fn rounding_to_bf16_where_f32_was_promised() {
    let why = fault(|x| x.iter_mut().for_each(|x| *x = bf16::from_f32(*x).to_f32()));
    insta::assert_snapshot!(why, @"output 0: 1575 of 9216 elements beyond the tolerance, largest |a − b| 7.799e-3, first at [0, 1], all over the output; every element is rounded to bf16 although its type is f32");
}

#[test]
fn the_last_percent_zeroed() {
    let why = fault(|x| {
        let from = x.len() * 99 / 100;
        x[from..].fill(0.0);
    });
    insta::assert_snapshot!(why, @"output 0: 93 of 9216 elements beyond the tolerance, largest |a − b| 3.101e0, first at [95, 3], all within [95, 3–95]; every wrong element is zero");
}

#[test]
fn another_type() {
    let data: Vec<u8> = normal(7).iter().flat_map(|x| f64::from(*x).to_le_bytes()).collect();
    let why = caught(&npy_of("<f8", &format!("({SIDE}, {SIDE})"), &data));
    assert_eq!(why, "output 0: type f64 96x96, but the reference has f32 96x96");
}

#[test]
fn another_shape() {
    let data: Vec<u8> = normal(7).iter().flat_map(|x| x.to_le_bytes()).collect();
    let why = caught(&npy_of("<f4", &format!("({}, {})", SIDE * 2, SIDE / 2), &data));
    assert_eq!(
        why,
        "output 0: shape 192x48, but the reference has 96x96; the output is the reference reshaped, with equal elements"
    );
}

#[test]
fn the_output_of_another_input() {
    let why = caught(&square(&normal(99)));
    insta::assert_snapshot!(why, @"output 0: 9203 of 9216 elements beyond the tolerance, largest |a − b| 5.019e0, first at [0, 0], all over the output; the output has nothing in common with the reference (cosine -0.008), as if from another input");
}

#[test]
fn the_second_of_two_outputs_is_compared_too() {
    let suite = Suite::new()
        .model("unused", &["output=1,2,3"])
        .toml(
            "[[model]]\nname = \"two\"\nsource = \"models/two.mlir\"\ninputs = [\"3xf32=1\"]\n\
             expected = [\"data/square.npy\", \"data/square.npy\"]",
        )
        .write();
    suite.source("two", &["output-file=data/square.npy,data/out.npy"]);
    suite.world.write("data/square.npy", square(&normal(7)));
    let mut values = normal(7);
    values[SIDE] = f32::NAN;
    suite.world.write("data/out.npy", square(&values));
    suite.world.run(["run", "--filter", "two/"]).expect_code(13);
    let verification = &suite.run_json()["sides"][0]["benchmarks"][0]["verification"];
    insta::assert_snapshot!(verification["why"].as_str().unwrap(), @"output 1: 1 of 9216 elements is NaN or infinite, but the reference is not, at [1, 0]");
}

#[test]
fn a_fault_that_only_head_has_is_a_divergence_and_is_said_with_its_place() {
    let mut values = normal(7);
    values[17] = f32::NAN;
    let suite =
        suite(&square(&normal(7))).base("").head("flags = [\"--fake=output-file=data/wrong.npy\"]").write();
    suite.world.write("data/wrong.npy", square(&values));
    let comparison = suite.world.run(["gate", "--format", "json"]).expect_code(13).json();
    let (code, text) = reason(row(&comparison, "m/cpu/main", None));
    assert_eq!(code, "wrong-output");
    insta::assert_snapshot!(text, @"
    head's outputs differ: output 0 is FAIL (max abs 0, max rel 0, cosine 1.0000); 1 non-finite value
    1 of 9216 elements is NaN or infinite, but the reference is not, at [0, 17]
    ");
}

/// Seeded numbers with noise of this size.
fn noisy(seed: u64, size: f32) -> Vec<u8> {
    square(&normal(7).iter().zip(normal(seed)).map(|(x, noise)| x + noise * size).collect::<Vec<_>>())
}

fn square64(values: &[f32]) -> Vec<u8> {
    let data: Vec<u8> = values.iter().flat_map(|value| f64::from(*value).to_le_bytes()).collect();
    npy_of("<f8", &format!("({SIDE}, {SIDE})"), &data)
}

/// Base's outputs have noise of 1e-7, and head's have noise of `size`. Head takes four fifths of base's time.
fn faster_head(fp64: bool, size: f32) -> Suite {
    let suite = Suite::new()
        .model("m", &["latency-us=1000", "output-file=data/base.npy"])
        .base("")
        .head("flags = [\"--fake=output-file=data/head.npy\", \"--fake=latency-us=800\"]")
        .write();
    suite.world.write("data/y.npy", square(&normal(7)));
    suite.world.write("data/y64.npy", square64(&normal(7)));
    suite.world.write("data/base.npy", noisy(8, 1e-7));
    suite.world.write("data/head.npy", noisy(9, size));
    if fp64 {
        let toml = suite.world.read("benchgate.toml");
        let wide = "expected = [\"data/y.npy\"]\nexpected-f64 = [\"data/y64.npy\"]";
        suite.world.write("benchgate.toml", toml.replace("expected = [\"data/y.npy\"]", wide));
    }
    suite
}

#[test]
fn a_head_that_pays_for_speed_with_digits_is_faster_but_less_accurate() {
    let suite = faster_head(true, 1e-5);
    suite.world.run(["gate"]).expect_no_failure();
    let compare = ["compare", "run.json#base", "run.json#head", "--format", "markdown"];
    let comment = suite.world.run(compare).expect_code(0).stdout;
    let section = comment.split("\n\n").skip_while(|part| *part != "**Less accurate**").nth(1);
    insta::assert_snapshot!(section.unwrap_or(&comment), @"- ⚠️ `m/cpu/main`: faster but less accurate: `output 0 is 100.7× as far from the fp64 reference as base's (error 6.52e-6, was 6.47e-8)`");
    let divergence =
        &suite.run_json()["sides"][1]["benchmarks"][0]["verification"]["outputs"][0]["divergence"];
    assert!(divergence["error_fp64"].as_f64().unwrap() > 1e-6, "{divergence}");
    assert_eq!(divergence["reference_error_fp64"].as_f64(), Some(0.0), "{divergence}");
}

#[test]
fn without_fp64_the_reference_itself_is_the_measure() {
    let suite = faster_head(false, 1e-5);
    let outcome = suite.world.run(["gate", "--format", "json"]).expect_no_failure();
    insta::assert_snapshot!(lint_detail(row(&outcome.json(), "m/cpu/main", Some("latency")), "less-accurate"), @"output 0 is 100.7× as far from the reference as base's (error 6.52e-6, was 6.47e-8)");
}

#[test]
fn another_rounding_is_not_a_loss_of_accuracy() {
    let outcome = faster_head(true, 1e-7).world.run(["gate", "--format", "json"]).expect_no_failure();
    let comparison = outcome.json();
    let codes = lint_codes(row(&comparison, "m/cpu/main", Some("latency")));
    assert!(!codes.contains(&"less-accurate"), "{codes:?}");
}

#[test]
fn an_ill_conditioned_output_passes_and_its_move_is_said() {
    let suite = faster_head(true, 1e-3);
    suite.world.write("data/y.npy", noisy(10, 1e-3));
    suite.world.write("data/base.npy", noisy(8, 1e-3));
    let comparison = suite.world.run(["gate", "--format", "json"]).expect_no_failure().json();
    let codes = lint_codes(row(&comparison, "m/cpu/main", Some("latency")));
    assert!(codes.contains(&"outputs-moved") && !codes.contains(&"less-accurate"), "{codes:?}");
}

/// A suite whose model names no reference.
fn without_reference(head: &str) -> Suite {
    let suite = Suite::new()
        .model("unused", &["output=1,2,3"])
        .toml("[[model]]\nname = \"free\"\nsource = \"models/free.mlir\"\ninputs = [\"3xf32=1\"]")
        .base("")
        .head(head)
        .write();
    suite.source("free", &["latency-us=1000", "output=1,2,3"]);
    suite
}

#[test]
fn without_a_reference_base_is_what_head_must_compute() {
    let suite = without_reference("flags = [\"--fake=output=1,2,4\"]");
    let outcome = suite.world.run(["gate", "--filter", "free/", "--format", "json"]).expect_code(13);
    let comparison = outcome.json();
    let (code, text) = reason(row(&comparison, "free/cpu/main", None));
    assert_eq!(code, "wrong-output");
    insta::assert_snapshot!(text, @"
    head's outputs differ: output 0 differs from base's, and there is no reference
    1 of 3 elements beyond the tolerance, largest |a − b| 1.000e0, at [2]
    ");
    let same = without_reference("flags = [\"--fake=bytes=7\"]");
    same.world.run(["gate", "--filter", "free/"]).expect_no_failure();
    let against = &same.run_json()["sides"][1]["benchmarks"][0]["verification"]["against_base"];
    assert_eq!(against[0]["code"], "PASS", "{against}");
}

#[test]
fn outputs_of_base_that_a_constant_would_match_prove_nothing_where_they_are_the_only_reference() {
    let suite = without_reference("flags = [\"--fake=bytes=7\"]");
    suite.source("free", &["latency-us=1000", "output=5,5,5"]);
    let comparison =
        suite.world.run(["gate", "--filter", "free/", "--format", "json"]).expect_code(11).json();
    let row = row(&comparison, "free/cpu/main", Some("latency"));
    assert_eq!(row["verdict"], "inconclusive");
    let found =
        &row["lints"].as_array().unwrap().iter().find(|found| found["code"] == "vacuous-reference").unwrap();
    assert_eq!(
        found["detail"],
        "base's outputs are the only references, and they prove nothing; output 0: one number in every element would agree with the reference"
    );
}

#[test]
fn a_module_that_disagrees_with_itself_is_compared_with_nothing() {
    let suite = without_reference("flags = [\"--x\"]");
    suite.source("free", &["latency-us=1000", "random-output=1"]);
    suite.world.run(["gate", "--filter", "free/"]).expect_no_failure();
    assert!(suite.run_json()["sides"][1]["benchmarks"][0]["verification"]["against_base"].is_null());
}

#[test]
fn a_changed_model_without_a_reference_must_compute_what_base_computes() {
    let suite = without_reference("");
    let toml = suite.world.read("benchgate.toml").replace("[side.base]", "[side.base]\nsources = \"old\"");
    suite.world.write("benchgate.toml", toml);
    suite.world.write("old/models/free.mlir", "// free\n// fake latency-us=1000\n// fake output=4,5,6\n");
    suite.world.write("old/models/unused.mlir", "// unused\n");
    suite.world.write("old/data/y.npy", square(&normal(7)));
    suite.world.run(["gate", "--filter", "free/"]).expect_code(13);
    let allowed = suite.world.read("benchgate.toml") + "\n[numerics]\nchanged-reference = \"note\"\n";
    suite.world.write("benchgate.toml", allowed);
    suite.world.run(["gate", "--filter", "free/"]).expect_no_failure();
}
