//! Generated code, kernel by kernel, without a device.

use std::path::Path;

use benchgate::gate::{self, CompareOptions, Comparison, Policy};
use benchgate::ingest;
use benchgate::model::{Run, Series, Verdict};

fn bytes(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/compiled_code");
    let compressed = std::fs::read(folder.join(format!("conv-block.{name}.vmfb.gz"))).unwrap();
    ingest::decompressed(&compressed, name).unwrap().into_owned()
}

fn module(name: &str) -> Run {
    ingest::read_detected(&bytes(name), name).unwrap()
}

fn compare(base: &str, head: &str) -> Comparison {
    let options = CompareOptions { today: "2026-11-23".to_owned(), ..CompareOptions::default() };
    gate::compare(&module(base), &module(head), &Policy::default(), &options)
}

fn fact(run: &Run, kernel: &str, metric: &str) -> Option<f64> {
    let benchmark = run.benchmarks.iter().find(|found| found.name.as_str() == kernel);
    match benchmark.unwrap_or_else(|| panic!("no kernel {kernel}")).metric(metric)?.series {
        Series::Exact(value) => Some(value),
        _ => panic!("{metric} is not exact"),
    }
}

#[test]
fn facts_of_amd_kernels_agree_with_llvm() {
    let oracle = include_str!("../../fixtures/compiled_code/amdgpu.tsv");
    let mut lines = oracle.lines();
    let metrics: Vec<&str> = lines.next().unwrap().split('\t').skip(2).collect();
    let mut checked = 0;
    for line in lines {
        let cells: Vec<&str> = line.split('\t').collect();
        let run = module(&format!("gfx942.{}", cells[0]));
        let kind = cells[1].split("_dispatch_").last().unwrap().split_once('_').unwrap().1;
        // The second convolution has the first one's shape and name.
        let second = cells[1].contains("dispatch_2_conv");
        let name = if second { format!("{kind} (2)") } else { kind.to_owned() };
        for (metric, wanted) in metrics.iter().zip(&cells[2..]) {
            assert_eq!(fact(&run, &name, metric), wanted.parse().ok(), "{} {name} {metric}", cells[0]);
            checked += 1;
        }
    }
    assert_eq!(checked, 12 * 7);
}

#[test]
fn newly_spilled_registers_are_red_and_name_the_kernel() {
    let comparison = compare("gfx942.3.7.1", "gfx942.3.8.0");
    assert_eq!(comparison.verdict, Verdict::Regressed);
    let red = |row: &&gate::Row| row.verdict == Verdict::Regressed && row.fatal;
    let spilled = comparison.rows.iter().filter(red).find(|row| {
        row.metric.as_ref().is_some_and(|metric| metric.name == "spilled-registers")
            && row.benchmark.as_str().starts_with("conv_")
    });
    assert_eq!(spilled.unwrap().benchmark.as_str(), "conv_64x28x28x64x3x3_f32 (2)");
}

#[test]
fn a_module_compared_with_itself_passes_and_says_that_its_kernels_are_identical() {
    for target in ["gfx942.3.13.0", "sm_80.3.13.0", "vulkan.3.13.0"] {
        let comparison = compare(target, target);
        assert_eq!(comparison.verdict, Verdict::Pass, "{target}");
        assert!(
            comparison.notes.iter().any(|note| note.contains(" kernels: ") && note.ends_with(" identical"))
        );
    }
}

#[test]
fn each_target_carries_the_facts_that_its_code_has() {
    let names =
        |run: &Run| run.benchmarks.iter().skip(1).map(|kernel| kernel.name.to_string()).collect::<Vec<_>>();
    let cuda = module("sm_80.3.13.0");
    assert_eq!(names(&cuda).len(), 4);
    assert!(fact(&cuda, "conv_64x28x28x64x3x3_f32", "instructions").unwrap() > 100.0);
    assert_eq!(fact(&cuda, "conv_64x28x28x64x3x3_f32", "vector-registers"), None);
    let vulkan = module("vulkan.3.13.0");
    assert_eq!(names(&vulkan).len(), 4);
    assert!(fact(&vulkan, "slow_memcpy", "instructions").unwrap() > 10.0);
    let cpu = module("cpu.3.13.0");
    assert_eq!(fact(&cpu, ".text", "instructions"), Some(643.0));
    assert_eq!(fact(&cpu, ".text", "stack-frame"), Some(216.0));
}

#[test]
fn code_for_different_processors_is_not_compared() {
    let comparison = compare("sm_80.3.13.0", "gfx942.3.13.0");
    assert!(!matches!(comparison.verdict, Verdict::Pass | Verdict::Improved), "{:?}", comparison.verdict);
}

#[test]
fn damaged_modules_are_errors_or_say_less_and_never_stop_the_reader() {
    for target in ["gfx942.3.13.0", "sm_80.3.13.0", "vulkan.3.13.0", "cpu.3.13.0"] {
        let whole = bytes(target);
        for step in 0..64 {
            // A read that ends is what is asked; what is cut or changed may still be readable code.
            let cut = &whole[..whole.len() * step / 64];
            assert!(ingest::read_detected(cut, target).is_err(), "{target} cut at {step}/64");
            let mut changed = whole.clone();
            let at = whole.len() * step / 64 + step;
            if let Some(byte) = changed.get_mut(at) {
                *byte ^= 0xff;
            }
            let _read = ingest::read_detected(&changed, target);
        }
    }
}
