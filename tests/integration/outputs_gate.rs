//! `judge = "outputs"`: a suite of tests that are too short to be timed. Each module is called once.

use crate::suite::Suite;

/// A suite whose only target is judged by its outputs. `flags` determine what head computes.
fn suite(model: &str, flags: &str) -> Suite {
    let suite = Suite::new().model("a", &[]).base("").head(flags).toml(model).write();
    let device = "device = \"local-task\"\n";
    let toml = suite.world.read("benchgate.toml");
    suite.world.write("benchgate.toml", toml.replacen(device, &format!("{device}judge = \"outputs\"\n"), 1));
    suite
}

#[test]
fn right_outputs_pass_and_nothing_is_timed() {
    let suite = suite("", "flags = [\"--fake=note=head\"]");
    suite.world.run(["gate"]).expect_code(0);
    for side in suite.run_json()["sides"].as_array().unwrap() {
        let benchmark = &side["benchmarks"][0];
        assert!(benchmark["processes"].is_null(), "{benchmark}");
        assert_eq!(benchmark["verification"]["code"], "PASS");
    }
    suite.world.run(["compare", "run.json"]).expect_code(0);
}

#[test]
fn wrong_or_unverified_outputs_are_not_green() {
    suite("", "flags = [\"--fake=output=7,7,7\"]").world.run(["gate"]).expect_code(13);
    let bare = "[[model]]\nname = \"bare\"\nsource = \"models/a.mlir\"\ninputs = [\"3xf32=1\"]\n";
    suite(bare, "flags = [\"--fake=note=head\"]").world.run(["gate"]).expect_code(11);
}

#[test]
fn a_constant_reference_is_what_the_test_of_an_operator_has() {
    for (output, value) in [("0,0,0", 0.0), ("-inf,-inf,-inf", f32::NEG_INFINITY)] {
        let right = suite("", &format!("flags = [\"--fake=output={output}\"]"));
        right.source("a", &[&format!("output={output}")]);
        right.world.write("data/y.npy", crate::suite::npy(&[value; 3]));
        let comparison = right.world.run(["gate", "--format", "json"]).expect_code(0).json();
        let row = crate::harness::row(&comparison, "a/cpu/main", None);
        assert_eq!(row["verdict"], "pass");
        assert!(crate::harness::lint_codes(row).contains(&"vacuous-reference"), "{row}");
        let wrong = suite("", "flags = [\"--fake=output=7,7,7\"]");
        wrong.source("a", &[&format!("output={output}")]);
        wrong.world.write("data/y.npy", crate::suite::npy(&[value; 3]));
        wrong.world.run(["gate"]).expect_code(13);
    }
}

#[test]
fn a_plan_of_such_a_suite_merges_to_what_one_machine_says() {
    let suite = suite("", "flags = [\"--fake=note=head\"]");
    suite.source("b", &[]);
    let toml = suite.world.read("benchgate.toml");
    let b = "[[model]]\nname = \"b\"\nsource = \"models/b.mlir\"\ninputs = [\"3xf32=1\"]\n\
             expected = [\"data/y.npy\"]\n\n[toolchain]";
    suite.world.write("benchgate.toml", toml.replacen("[toolchain]", b, 1));
    suite.world.run(["plan", "--shards", "2"]).expect_code(0);
    std::fs::create_dir(suite.world.work().join("shards")).unwrap();
    for shard in ["1", "2"] {
        let run = format!("shards/{shard}.json");
        let args = ["run", "--plan", "plan.json", "--shard", shard, "--run", &run, "--work-dir", shard];
        suite.world.run(args).expect_code(0);
    }
    suite.world.run(["merge", "shards", "--output", "run.json"]).expect_code(0);
    suite.world.run(["compare", "run.json"]).expect_code(0);
}

#[test]
fn a_tag_selects_models() {
    let suite = Suite::new().model("a", &[]).model("b", &[]).write();
    let toml = suite.world.read("benchgate.toml");
    suite.world.write(
        "benchgate.toml",
        toml.replacen("name = \"b\"", "name = \"b\"\ntags = [\"quick\", \"cpu\"]", 1),
    );
    suite.world.run(["run", "--tag", "quick"]).expect_code(0);
    let run = suite.run_json();
    let names: Vec<&str> = run["sides"][0]["benchmarks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|b| b["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["b/cpu/main"]);
    suite.world.run(["run", "--tag", "quik"]).expect_code(2);
}
