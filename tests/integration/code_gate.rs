//! `judge = "code"`: a suite that is compiled and judged by its generated code, without a device. IREE's
//! compilers made the modules from one model (tests/fixtures/compiled_code).

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use benchgate::gate::{self, CompareOptions, Policy};
use benchgate::model::{Benchmark, Metric, MetricSeries, Run, Series, Verdict};

use crate::suite::Suite;

fn module(release: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/compiled_code");
    format!("module={}", folder.join(format!("conv-block.gfx942.{release}.vmfb.gz")).display())
}

/// A suite whose only target is judged by its code. Base is compiled by 3.7.1, and head as `flags` determine.
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
    assert!(said.contains("64x28x28x64x3x3_f32 (2)"), "{said}");
    let run = suite.run_json();
    for side in run["sides"].as_array().unwrap() {
        assert!(side["benchmarks"][0]["processes"].is_null(), "nothing is measured");
    }
    // Stored results get the same verdict.
    let again = suite.world.run(["compare", "run.json"]).expect_code(10).stdout;
    assert!(again.contains("4,185"), "{again}");
}

/// A suite whose head is the executable of base's module with these bytes replaced. The file can't be the
/// module itself, because a module has checksums.
fn exchanged(from: &[u8], to: &[u8]) -> Suite {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/compiled_code");
    let packed = std::fs::read(folder.join("conv-block.gfx942.3.7.1.vmfb.gz")).unwrap();
    let module = benchgate::ingest::decompressed(&packed, "module").unwrap();
    let mut module = module[memchr::memmem::find(&module, b"\x7fELF").unwrap()..].to_vec();
    let places: Vec<usize> = memchr::memmem::find_iter(&module, from).collect();
    assert!(!places.is_empty());
    for at in places {
        module[at..at + to.len()].copy_from_slice(to);
    }
    let suite = suite(&["module=head.hsaco"]);
    suite.world.write("head.hsaco", module);
    suite
}

#[test]
fn code_for_another_processor_is_not_compared() {
    let outcome = exchanged(b"gfx942", b"gfx90a").world.run(["gate"]).expect_code(11);
    assert!(outcome.stdout.contains("gfx90a instead of gfx942"), "{}", outcome.stdout);
}

#[test]
fn spilled_scalar_registers_are_red() {
    let spills = b".sgpr_spill_count";
    let outcome = exchanged(&[&spills[..], &[0]].concat(), &[&spills[..], &[90]].concat());
    let said = outcome.world.run(["gate"]).expect_code(10).stdout;
    assert!(said.contains("spilled-scalar-registers") && said.contains("0 → "), "{said}");
}

#[test]
fn a_stack_of_unknown_size_is_not_a_stack_of_no_size() {
    let key = b".uses_dynamic_stack";
    let outcome = exchanged(&[&key[..], &[0xc2]].concat(), &[&key[..], &[0xc3]].concat());
    let said = outcome.world.run(["gate"]).expect_code(12).stdout;
    assert!(said.contains("scratch-size"), "{said}");
}

#[test]
fn nearly_all_matrix_instructions_gone_is_red() {
    let suite = Suite::new().model("a", &[]).base("").head("").write();
    suite.world.write("base.ptx", measured_ptx(1, &[MMA; 64].join("\n")));
    suite.world.write("head.ptx", measured_ptx(1, &format!("{MMA}\n{}", [FMA; 64].join("\n"))));
    let said = suite.world.run(["compare", "base.ptx", "head.ptx"]).expect_code(10).stdout;
    assert!(said.contains("64 → 1"), "{said}");
}

#[test]
fn the_same_code_passes_and_a_release_without_spills_does_too() {
    suite(&["note=head"]).world.run(["gate"]).expect_code(0);
    suite(&[&module("3.13.0")]).world.run(["gate"]).expect_code(0);
}

#[test]
fn code_that_can_not_be_read_is_never_green() {
    // The fake module is text, which is not readable as code.
    let suite = Suite::new().model("a", &[]).base("").head("flags = [\"--fake=note=head\"]").write();
    let toml = suite.world.read("benchgate.toml").replace("device = \"local-task\"\n", "judge = \"code\"\n");
    suite.world.write("benchgate.toml", toml);
    let outcome = suite.world.run(["gate"]);
    assert_eq!(outcome.code, Some(12), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("can't be judged"), "{}", outcome.stdout);
    // A comparison needs readable code on both sides.
    let sides = self::suite(&["module=/dev/null"]);
    assert_ne!(sides.world.run(["gate"]).code, Some(0));
}

/// A suite whose only target uses CUDA and is judged by its code. `lines` are added to the target, and
/// `spill` changes head's module.
fn cuda(spill: bool, lines: &str) -> Suite {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/compiled_code");
    let packed = std::fs::read(folder.join("conv-block.sm_80.3.13.0.vmfb.gz")).unwrap();
    let module = benchgate::ingest::decompressed(&packed, "module").unwrap();
    let code = benchgate::ingest::CompiledCode::read(&module).unwrap();
    let text = code.unassembled().next().unwrap().1.text.to_owned();
    let suite = Suite::new().model("a", &["module=base.ptx"]).base("");
    let suite = suite.head(if spill { "flags = [\"--fake=module=head.ptx\"]" } else { "" }).write();
    suite.world.write("head.ptx", text.replace("maxntid 28, 2, 1", "maxntid 28, 1, 1"));
    suite.world.write("base.ptx", text);
    let cpu = "name = \"cpu\"\nbackend = \"llvm-cpu\"\ndevice = \"local-task\"\n";
    let code = format!("name = \"a100\"\nbackend = \"cuda\"\njudge = \"code\"\n{lines}");
    let toml = suite.world.read("benchgate.toml").replace(cpu, &code);
    suite.world.write("benchgate.toml", toml);
    suite
}

/// Installs a user's own `ptxas`: a script that stores the name of its input in `$input` and then runs this
/// body.
fn own_ptxas(suite: &Suite, body: &str) {
    let path = suite.world.work().join("own/ptxas");
    suite.world.write("own/ptxas", format!("#!/bin/sh\nfor input; do :; done\n{body}\n"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let toml = suite.world.read("benchgate.toml");
    suite.world.write("benchgate.toml", toml.replace("OWN", path.to_str().unwrap()));
}

/// A script that prints the recorded output of the real assembler. For code with smaller blocks, it reports
/// spills.
fn recorded() -> String {
    let log =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/compiled_code/conv-block.ptxas.sm_80.txt");
    format!(
        "if grep -q 'maxntid 28, 1, 1' \"$input\"; then sed 's/ 0 bytes spill stores/ 64 bytes spill stores/' {log} >&2\n\
         else cat {log} >&2; fi",
        log = log.display()
    )
}

#[test]
fn spills_that_only_the_assembler_knows_are_red() {
    let suite = cuda(true, "ptxas = \"OWN\"\n");
    own_ptxas(&suite, &recorded());
    let said = suite.world.run(["gate"]).expect_code(10).stdout;
    assert!(said.contains("spilled-registers") && said.contains("0 → 64"), "{said}");
    let suite = cuda(false, "ptxas = \"OWN\"\n");
    own_ptxas(&suite, &recorded());
    suite.world.run(["gate"]).expect_code(0);
    let record = suite.run_json();
    let values = record["sides"][1]["benchmarks"][0]["values"].as_array().unwrap();
    let names: Vec<&str> = values.iter().map(|value| value["metric"].as_str().unwrap()).collect();
    assert!(names.contains(&"spilled-registers of slow_memcpy") && names.contains(&"occupancy"), "{names:?}");
}

#[test]
fn ptx_whose_registers_are_unknown_is_never_green() {
    // The locked assembler is the default, but nothing is locked.
    let outcome = cuda(false, "").world.run(["gate"]).expect_code(12);
    assert!(
        outcome.stdout.contains("can't be judged") && outcome.stdout.contains("ptxas"),
        "{}",
        outcome.stdout
    );
    for body in [
        "echo 'ptxas fatal   : Unsupported .version 9.9; current version is 8.8' >&2; exit 255",
        "echo 'ptxas info    : 0 bytes gmem' >&2",
        "kill -9 $$",
    ] {
        let suite = cuda(false, "ptxas = \"OWN\"\n");
        own_ptxas(&suite, body);
        let outcome = suite.world.run(["gate"]).expect_code(12);
        assert!(outcome.stdout.contains("can't be judged"), "{}", outcome.stdout);
    }
    let gone = cuda(false, "ptxas = \"/no/such/ptxas\"\n").world.run(["gate"]).expect_code(12);
    assert!(gone.stdout.contains("can't be judged"), "{}", gone.stdout);
}

#[test]
fn the_users_own_assembler_is_no_file_of_the_checkout() {
    let outcome = cuda(false, "ptxas = \"own/ptxas\"\n").world.run(["gate"]).expect_code(2);
    assert!(outcome.stderr.contains("absolute path"), "{}", outcome.stderr);
}

#[test]
#[ignore = "downloads ptxas from the Python package index"]
fn registers_come_from_the_locked_assembler() {
    let suite = cuda(false, "ptxas-arch = \"sm_90\"\n");
    let run = |args: &[&str], code: i32| {
        let output = crate::real_tools::command(&suite.world, args).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(code), "{said}{}", String::from_utf8_lossy(&output.stderr));
    };
    run(&["tools", "pin"], 0);
    assert!(suite.world.read("benchgate.lock").contains("nvidia_cuda_nvcc_cu12-12.9.86"));
    run(&["gate"], 0);
    let record = suite.run_json();
    let values = record["sides"][1]["benchmarks"][0]["values"].as_array().unwrap();
    let value = |name: &str| values.iter().find(|value| value["metric"] == name).unwrap()["value"].as_f64();
    let log = include_str!("../fixtures/compiled_code/conv-block.ptxas.sm_90.txt");
    let stated = log.split("main_dispatch_2_conv_64x28x28x64x3x3_f32\n").nth(1).unwrap();
    let stated = stated.split("Used ").nth(1).unwrap().split(' ').next().unwrap();
    assert_eq!(value("vector-registers of conv_64x28x28x64x3x3_f32 (2)"), stated.parse().ok());
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

#[test]
fn a_kernel_that_only_one_side_has_is_noted() {
    let side = |kernels: &[&str]| {
        let mut benchmark = Benchmark::new("a/mi300/main");
        let each = kernels.iter().flat_map(|name| {
            [Metric::SPILLED_REGISTERS, Metric::SCRATCH].map(|metric| metric.of_kernel(name))
        });
        benchmark.metrics = std::iter::once(Metric::SPILLED_REGISTERS)
            .chain(each)
            .map(|metric| MetricSeries { metric, series: Series::Exact(0.0) })
            .collect();
        Run { benchmarks: vec![benchmark], ..Run::default() }
    };
    let options = CompareOptions { today: "2026-11-24".to_owned(), ..CompareOptions::default() };
    let noted = |head: &[&str]| {
        let base = side(&["matmul", "softmax"]);
        let found = gate::compare(&base, &side(head), &Policy::default(), &options);
        assert_eq!(found.verdict, Verdict::Pass);
        let lints = found.rows.iter().flat_map(|row| &row.lints);
        lints.map(|lint| format!("{}: {}", lint.code.as_str(), lint.detail)).collect::<Vec<_>>()
    };
    assert_eq!(noted(&["matmul"]), ["kernel-code: only base has softmax"]);
    assert_eq!(noted(&["fused"]), ["kernel-code: only base has matmul, softmax; only head has fused"]);
    assert_eq!(noted(&["matmul", "softmax"]), [""; 0]);
}

/// PTX of a module that is measured: two kernels, one of which has this body.
fn measured_ptx(latency: u32, matmul: &str) -> String {
    let kernel = |name: &str, body: &str| {
        format!(".visible .entry {name}(\n.param .u64 {name}_param_0\n)\n{{\n{body}\nret;\n}}\n")
    };
    let kernels =
        kernel("main_dispatch_0_copy", "mov.u32 %r1, 0;") + &kernel("main_dispatch_1_matmul", matmul);
    format!("// fake latency-us={latency}\n.version 7.0\n.target sm_80\n.address_size 64\n{kernels}")
}

#[test]
fn files_of_code_for_other_processors_decide_nothing_and_a_kernel_of_one_side_is_no_failure() {
    let suite = Suite::new().model("a", &[]).base("").head("").write();
    let world = &suite.world;
    world.write("sm_80.ptx", measured_ptx(1, FMA));
    world.write("sm_90.ptx", measured_ptx(1, FMA).replace("sm_80", "sm_90"));
    for filter in [".", "matmul"] {
        let outcome =
            world.run(["compare", "sm_80.ptx", "sm_90.ptx", "--all", "--filter", filter]).expect_code(11);
        let said = outcome.said();
        assert!(said.contains("architecture: sm_80 / sm_90") && !said.contains("missing"), "{said}");
    }
    let one = measured_ptx(1, FMA);
    world.write("one.ptx", &one[..one.find(".visible .entry main_dispatch_1").unwrap()]);
    let said = world.run(["compare", "sm_80.ptx", "one.ptx"]).expect_code(0).said();
    assert!(said.contains("only base has this kernel"), "{said}");
}

const MMA: &str = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%r1}, {%r2};";
const FMA: &str = "fma.rn.f32 %f1, %f2, %f3, %f4;\nfma.rn.f32 %f1, %f2, %f3, %f4;";

/// A suite whose time is measured, with the generated code of both sides.
fn measured(head: &str) -> Suite {
    let suite = Suite::new().model("a", &["module=base.ptx"]).base("");
    let suite = suite.head("flags = [\"--fake=module=head.ptx\"]").write();
    suite.world.write("base.ptx", measured_ptx(1000, MMA));
    suite.world.write("head.ptx", head);
    suite
}

#[test]
fn a_slower_module_says_which_kernels_are_other_code_and_which_got_worse() {
    let suite = measured(&measured_ptx(1500, FMA));
    let said = suite.world.run(["gate"]).expect_code(10).said();
    assert!(said.contains("2 kernels: 1 identical, 1 changed: matmul"), "{said}");
    assert!(said.contains("matrix-instructions of matmul 1 → 0"), "{said}");
    let code = suite.run_json()["sides"][1]["benchmarks"][0]["code"].clone();
    assert_eq!((&code["architecture"], &code["kernels"][1]["name"]), (&"sm_80".into(), &"matmul".into()));
    let explained = suite.world.run(["explain", "run.json"]).expect_code(0).said();
    assert!(
        explained.contains("code of matmul changed: matrix-instructions 1 → 0, instructions 2 → 3"),
        "{explained}"
    );
    let json = suite.world.run(["explain", "run.json", "--format", "json"]).expect_code(0).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json[0]["code"][0]["state"], "identical");
    assert_eq!(
        json[0]["code"][1]["facts"][0],
        serde_json::json!({"metric": "matrix-instructions", "base": 1, "head": 0})
    );
}

#[test]
fn code_that_got_worse_is_a_finding_next_to_a_time_that_passes() {
    let suite = measured(&measured_ptx(1000, FMA));
    let said = suite.world.run(["gate"]).expect_no_failure().said();
    assert!(said.contains("the generated code regressed") && said.contains("matmul 1 → 0"), "{said}");
    let better =
        measured(&measured_ptx(1000, &format!("{MMA}\n{MMA}"))).world.run(["gate"]).expect_no_failure();
    assert!(!better.said().contains("generated code"), "{}", better.said());
}

#[test]
fn a_slower_module_with_the_same_kernels_says_so() {
    let said = measured(&measured_ptx(1500, MMA)).world.run(["gate"]).expect_code(10).said();
    assert!(said.contains("2 kernels: all identical"), "{said}");
}
