//! Raw files of tensors: bf16 inputs, references and outputs, which `.npy` can't represent.

use crate::harness::World;
use crate::suite::Suite;

const REFERENCE: [f32; 4] = [1.0, -2.0, 3.5, 0.25];

/// The upper half of each f32.
fn bf16(values: &[f32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| {
            let [_, _, low, high] = value.to_le_bytes();
            [low, high]
        })
        .collect()
}

/// A suite with one model that is called with `input` and returns `output` in bf16.
fn suite(input: &str, expected: &str, output: &str) -> Suite {
    let suite = Suite::new().toml(&format!(
        "[[model]]\nname = \"m\"\nsource = \"models/m.mlir\"\ninputs = [\"{input}\"]\nexpected = [{expected}]"
    ));
    suite.source("m", &["latency-us=1000", "output-type=4xbf16", &format!("output={output}")]);
    suite.world.write("data/x.bin", bf16(&[0.5; 4]));
    suite.world.write("data/y.4xbf16.bin", bf16(&REFERENCE));
    suite
}

const INPUT: &str = "4xbf16=@data/x.bin";
const EXPECTED: &str = "\"data/y.4xbf16.bin\"";
const RIGHT: &str = "1,-2,3.5,0.25";

fn verification(world: &World, side: usize) -> serde_json::Value {
    let run: serde_json::Value = serde_json::from_str(&world.read("run.json")).unwrap();
    run["sides"][side]["benchmarks"][0]["verification"].clone()
}

#[test]
fn a_compiled_module_is_kept_by_name() {
    let suite = suite(INPUT, EXPECTED, RIGHT).write();
    suite.world.run(["run", "--keep-modules", "results"]).expect_code(0);
    let kept: Vec<_> = std::fs::read_dir(suite.world.work().join("results")).unwrap().flatten().collect();
    let [only] = &kept[..] else { panic!("{kept:?}") };
    assert_eq!(only.file_name(), "m-cpu.vmfb");
    let bytes = suite.run_json()["sides"][0]["benchmarks"][0]["artifact"]["vmfb_bytes"].as_u64();
    assert_eq!(Some(only.metadata().unwrap().len()), bytes);
}

/// The digest of the files that are executed, including the module.
fn execution(suite: &Suite) -> String {
    suite.world.run(["run"]).expect_code(0);
    let run = suite.run_json();
    run["sides"][0]["benchmarks"][0]["artifact"]["execution_sha256"].as_str().unwrap().to_owned()
}

#[test]
fn a_bf16_output_is_verified_by_a_raw_reference() {
    for expected in [EXPECTED, "\"4xbf16=@data/y.4xbf16.bin\""] {
        let right = suite(INPUT, expected, RIGHT).write();
        right.world.run(["run"]).expect_code(0);
        assert_eq!(verification(&right.world, 0)["code"], "PASS");
        let wrong = suite(INPUT, expected, "1,-2,3.5,2.25").write();
        wrong.world.run(["run"]).expect_code(13);
        assert_eq!(verification(&wrong.world, 0)["code"], "FAIL");
    }
}

#[test]
fn a_raw_input_of_another_length_is_an_error() {
    for bytes in [6, 16] {
        let suite = suite(INPUT, EXPECTED, RIGHT).write();
        suite.world.write("data/x.bin", vec![0; bytes]);
        let said = suite.world.run(["run"]).expect_code(20).said();
        let why = format!("expected 8 bytes for 4 elements of bf16, found {bytes}");
        assert!(said.split_whitespace().collect::<Vec<_>>().join(" ").contains(&why), "{said}");
        let stages = suite.run_json()["sides"][0]["benchmarks"][0]["stages"].as_array().unwrap().clone();
        assert!(stages.iter().all(|stage| stage["stage"] != "compile"), "{stages:?}");
    }
}

#[test]
fn a_raw_output_of_another_type_with_the_same_bytes_is_caught() {
    for printed in ["4xf16", "2x2xbf16"] {
        let suite = suite(INPUT, EXPECTED, RIGHT).write();
        let directives = ["latency-us=1000", &format!("output-type={printed}"), &format!("output={RIGHT}")];
        suite.source("m", &directives);
        suite.world.run(["run"]).expect_code(13);
        let found = verification(&suite.world, 0);
        assert_eq!(found["code"], "FAIL");
        assert_eq!(found["why"], format!("output 0 has type {printed}; the reference has 4xbf16"));
    }
}

#[test]
fn another_content_or_another_type_of_a_raw_input_is_another_execution() {
    let first = suite(INPUT, EXPECTED, RIGHT).write();
    let before = execution(&first);
    assert_eq!(execution(&first), before);
    first.world.write("data/x.bin", bf16(&[0.75; 4]));
    assert_ne!(execution(&first), before, "the content changed");
    let reshaped = suite("2x2xbf16=@data/x.bin", EXPECTED, RIGHT).write();
    assert_ne!(execution(&reshaped), before, "the shape changed");
    let short = suite("data/x.4xbf16.bin", EXPECTED, RIGHT).write();
    short.world.write("data/x.4xbf16.bin", bf16(&[0.5; 4]));
    assert_eq!(execution(&short), before, "the type in the name says the same");
}

#[test]
fn a_bundle_carries_raw_files_and_their_types() {
    let there = |input: &str| {
        let suite = suite(input, EXPECTED, RIGHT).write();
        suite.world.run(["run", "--until", "compile", "--bundle", "suite.bundle"]).expect_code(0);
        let there = World::new();
        std::fs::copy(suite.world.work().join("suite.bundle"), there.work().join("suite.bundle")).unwrap();
        drop(suite);
        there.run(["run", "--from", "verify", "--bundle", "suite.bundle"]).expect_code(0);
        assert_eq!(verification(&there, 0)["code"], "PASS");
        let run: serde_json::Value = serde_json::from_str(&there.read("run.json")).unwrap();
        run["sides"][0]["benchmarks"][0]["artifact"]["execution_sha256"].as_str().unwrap().to_owned()
    };
    let four = there(INPUT);
    assert_eq!(there(INPUT), four);
    assert_ne!(there("2x2xbf16=@data/x.bin"), four);
}

#[test]
fn without_a_reference_a_bf16_output_of_head_is_compared_with_bases() {
    let suite = suite(INPUT, "", RIGHT).base("").head("flags = [\"--fake=output=1,-2,3.5,-0.25\"]").write();
    suite.world.run(["gate"]).expect_code(13);
}
