//! Data that a suite describes and benchgate generates: random inputs, and weights for the parameters that a
//! module declares.

use std::path::PathBuf;

use crate::suite::Suite;

const DECLARED: &str = "// #stream.parameter.named<\"model\"::\"a.weight\"> : tensor<2x3xf32>\n";

/// A suite whose model has this input and these weights.
fn suite(input: &str, weights: &str, source: &str) -> Suite {
    let suite = Suite::new()
        .toml(&format!(
            "[[model]]\nname = \"made\"\nsource = \"models/{source}\"\ninputs = [\"{input}\"]\n\
             parameters = [\"model={weights}\"]\nexpected = [\"data/y.npy\"]"
        ))
        .write();
    let text = format!("// fake latency-us=1000\n// fake output=1,2,3\n{DECLARED}");
    suite.world.write(&format!("models/{source}"), text);
    suite
}

/// The generated files with this name.
fn made(suite: &Suite, name: &str) -> Vec<Vec<u8>> {
    let folders =
        |folder: PathBuf| std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    let entries = folders(suite.world.cache().join("benchgate/generated")).flat_map(folders);
    entries
        .map(|entry| entry.join(name))
        .filter(|file| file.exists())
        .map(|file| std::fs::read(file).unwrap())
        .collect()
}

fn execution(suite: &Suite) -> String {
    let run = suite.run_json();
    run["sides"][0]["benchmarks"][0]["artifact"]["execution_sha256"].as_str().unwrap().to_owned()
}

#[test]
fn random_inputs_and_weights_are_made_once_and_are_the_same_everywhere() {
    let suite = suite("2xf32=random(seed=42, scale=2, offset=-1)", "random(seed=1)", "made.mlir");
    suite.world.run(["run"]).expect_code(0);
    let inputs = made(&suite, "input.bin");
    let numbers: Vec<f32> =
        inputs[0].chunks(4).map(|four| f32::from_le_bytes(four.try_into().unwrap())).collect();
    // numpy.random.seed(42); 2 * numpy.random.rand(2) - 1
    assert_eq!((inputs.len(), numbers), (1, vec![-0.250_919_76, 0.901_428_64]));
    assert_eq!(made(&suite, "weights.irpa")[0][..4], *b"IRPA");
    let before = execution(&suite);
    suite.world.run(["run"]).expect_code(0);
    assert_eq!(execution(&suite), before);
    for (from, to) in [("seed=42", "seed=43"), ("random(seed=1)", "zeros()")] {
        let toml = suite.world.read("benchgate.toml").replace(from, to);
        suite.world.write("benchgate.toml", toml);
        suite.world.run(["run"]).expect_code(0);
        assert_ne!(execution(&suite), before, "{to}");
    }
}

#[test]
fn weights_that_can_t_be_made_fail_their_model_with_the_reason() {
    for (scope, source, why) in [
        ("model", "made.mlirbc", "weight declarations can be read only from MLIR text (a `.mlir` file)"),
        ("other", "made.mlir", "the module declares no parameter of the scope `other`"),
    ] {
        let suite = suite("3xf32=1", "random(seed=1)", source);
        let toml = suite.world.read("benchgate.toml").replace("model=random", &format!("{scope}=random"));
        suite.world.write("benchgate.toml", toml);
        let outcome = suite.world.run(["run"]).expect_code(20);
        assert!(outcome.said().contains(why), "{}", outcome.said());
    }
}

#[test]
fn a_wrong_description_is_refused_with_the_right_form() {
    for (input, weights, form) in [
        ("3xf32=random()", "random(seed=1)", "expected `1x3xf32=random(seed=42, skip=0, scale=1, offset=0)`"),
        ("3xi64=random(seed=4)", "random(seed=1)", "expected `3xi64=random(seed=4, scale=1000)`"),
        ("3xi1=random(seed=4)", "random(seed=1)", "expected `3xi1=random(seed=4, scale=2)`"),
        ("3xf32=1", "random()", "`scope=random(seed=42)` or `scope=zeros()`, found `model=random()`"),
    ] {
        let outcome = suite(input, weights, "made.mlir").world.run(["run"]).expect_code(2);
        assert!(outcome.stderr.contains(form), "{}", outcome.stderr);
    }
}
