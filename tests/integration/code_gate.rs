//! `judge = "code"`: a suite that is compiled and judged by its generated code, without a device. The modules are what
//! IREE's compilers made of one model (tests/fixtures/compiled_code).

use std::path::Path;

use benchgate::gate::{self, CompareOptions, Policy};
use benchgate::model::{Benchmark, Metric, MetricSeries, Run, Series, Verdict};

use crate::suite::Suite;

fn module(release: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/compiled_code");
    format!("module={}", folder.join(format!("conv-block.gfx942.{release}.vmfb.gz")).display())
}

/// A suite whose one target is judged by its code: base compiled by 3.7.1, head as `flags` say.
fn suite(head: &[&str]) -> Suite {
    let flags: Vec<String> = head.iter().map(|fake| format!("\"--fake={fake}\"")).collect();
    let suite = Suite::new()
        .model("a", &[&module("3.7.1")])
        .base("")
        .head(&format!("flags = [{}]", flags.join(", ")))
        .write();
    let cpu = "name = \"cpu\"\nbackend = \"llvm-cpu\"\ndevice = \"local-task\"\n";
    let code = "name = \"mi300\"\nbackend = \"rocm\"\njudge = \"code\"\n";
    suite.world.write("benchgate.toml", suite.world.read("benchgate.toml").replace(cpu, code));
    suite
}

#[test]
fn a_release_that_spills_registers_is_red_without_a_device() {
    let suite = suite(&[&module("3.8.0")]);
    let said = suite.world.run(["gate"]).expect_code(10).stdout;
    assert!(said.contains("spilled-registers") && said.contains("4,185"), "{said}");
    assert!(said.contains("conv_64x28x28x64x3x3_f32 (2)"), "{said}");
    let run = suite.run_json();
    for side in run["sides"].as_array().unwrap() {
        assert!(side["benchmarks"][0]["processes"].is_null(), "nothing is measured");
    }
    // What was stored is judged alike.
    let again = suite.world.run(["compare", "run.json"]).expect_code(10).stdout;
    assert!(again.contains("4,185"), "{again}");
}

#[test]
fn the_same_code_passes_and_a_release_without_spills_does_too() {
    suite(&["note=head"]).world.run(["gate"]).expect_code(0);
    suite(&[&module("3.13.0")]).world.run(["gate"]).expect_code(0);
}

#[test]
fn code_that_can_not_be_read_is_never_green() {
    // The fake's own module is text.
    let suite = Suite::new().model("a", &[]).base("").head("flags = [\"--fake=note=head\"]").write();
    let toml = suite.world.read("benchgate.toml").replace("device = \"local-task\"\n", "judge = \"code\"\n");
    suite.world.write("benchgate.toml", toml);
    let outcome = suite.world.run(["gate"]);
    assert_eq!(outcome.code, Some(12), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("can't be judged"), "{}", outcome.stdout);
    // One side alone is no comparison either.
    let sides = self::suite(&["module=/dev/null"]);
    assert_ne!(sides.world.run(["gate"]).code, Some(0));
}

#[test]
fn what_one_kernel_gains_does_not_hide_what_another_loses() {
    let side = |spills: [f64; 2]| {
        let mut benchmark = Benchmark::new("a/mi300/main");
        let all = (Metric::SPILLED_REGISTERS, spills.iter().sum());
        let each =
            ["one", "two"].iter().zip(spills).map(|(name, n)| (Metric::SPILLED_REGISTERS.of_kernel(name), n));
        benchmark.metrics = std::iter::once(all)
            .chain(each)
            .map(|(metric, value)| MetricSeries { metric, series: Series::Exact(value) })
            .collect();
        Run { benchmarks: vec![benchmark], ..Run::default() }
    };
    let options = CompareOptions { today: "2026-11-24".to_owned(), ..CompareOptions::default() };
    let compare = |base, head| gate::compare(&side(base), &side(head), &Policy::default(), &options);
    let swapped = compare([0.0, 4185.0], [4185.0, 0.0]);
    assert_eq!(swapped.verdict, Verdict::Regressed);
    let red = swapped.rows.iter().find(|row| row.verdict == Verdict::Regressed).unwrap();
    assert_eq!(red.metric.as_ref().unwrap().name, "spilled-registers of one");
    assert_eq!(compare([0.0, 4185.0], [0.0, 4185.0]).verdict, Verdict::Pass);
}
