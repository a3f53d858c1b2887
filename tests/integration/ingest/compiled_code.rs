//! Reads the generated code of modules kernel by kernel, without a device.

use std::path::Path;

use benchgate::gate::{self, CompareOptions, Comparison, Policy};
use benchgate::ingest;
use benchgate::model::{Run, Series, Verdict};

fn bytes(name: &str) -> Vec<u8> {
    bytes_of(&format!("conv-block.{name}"))
}

fn bytes_of(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/compiled_code");
    let compressed = std::fs::read(folder.join(format!("{name}.vmfb.gz"))).unwrap();
    ingest::decompressed(&compressed, name).unwrap().into_owned()
}

fn module_of(name: &str) -> Run {
    ingest::read_detected(&bytes_of(name), name).unwrap()
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
fn constants_next_to_the_code_are_no_executables_unless_they_begin_like_one() {
    let run = module("constant.3.13.0");
    assert!(fact(&run, "matmul_64x64x64_f32", "instructions").is_some_and(|count| count > 0.0), "{run:#?}");
    let mut hidden = bytes("constant.3.13.0");
    let name = hidden.windows(10).position(|window| window == b"_const.bin").unwrap();
    let begins = |at: &usize| hidden[*at..].starts_with(&[0, 0, 0, 0, 0, 0, 0x40, 0x40]);
    let data = (name..hidden.len()).find(begins).unwrap();
    hidden[data..data + 4].copy_from_slice(b"HIP1");
    assert!(ingest::read_detected(&hidden, "hidden").is_err());
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
        // The second convolution has the same shape and name as the first one.
        let second = cells[1].contains("dispatch_2_conv");
        let name = if second { format!("{kind} (2)") } else { kind.to_owned() };
        for (metric, wanted) in metrics.iter().zip(&cells[2..]) {
            assert_eq!(fact(&run, &name, metric), wanted.parse().ok(), "{} {name} {metric}", cells[0]);
            checked += 1;
        }
    }
    assert_eq!(checked, 12 * 7);
}

/// The code in a module, as its compiler wrote it.
fn code(name: &str, magic: &[u8], size: usize) -> Vec<u8> {
    let bytes = bytes(name);
    let at = bytes.windows(magic.len()).position(|window| window == magic).unwrap();
    let length = u32::from_le_bytes(bytes[at - 4..at].try_into().unwrap()) as usize * size;
    bytes[at..at + length].to_vec()
}

#[test]
fn code_that_says_different_things_about_itself_is_an_error() {
    let is_read = |bytes: &[u8]| ingest::read_detected(bytes, "code").is_ok();
    let amd = code("gfx942.3.8.0", b"\x7fELF", 1);
    let spirv = code("vulkan.3.13.0", b"\x03\x02\x23\x07", 4);
    assert!(is_read(&amd) && is_read(&spirv));
    // Bytes after the code that are not code.
    assert!(is_read(&[amd.as_slice(), &[0; 64]].concat()));
    assert!(!is_read(&[amd.clone(), amd.clone()].concat()));
    assert!(!is_read(&[amd.as_slice(), &[0; 64], &spirv].concat()));
    assert!(!is_read(&[spirv.clone(), spirv].concat()));
    // The descriptor of the kernel with the most scratch memory.
    let mut forged = amd.clone();
    let descriptor = b"\x00\xc6\x00\x00\x70\xc1\x00\x00";
    let at = forged.windows(8).position(|window| window == descriptor).unwrap();
    forged[at + 17] ^= 1;
    assert!(!is_read(&forged));
    for (from, to) in [
        // Half of the scratch memory, or of the local memory: 49,520 and 50,688 bytes.
        (&b".private_segment_fixed_size\xcd\xc1\x70"[..], &b".private_segment_fixed_size\xcd\x60\xb8"[..]),
        (b".group_segment_fixed_size\xcd\xc6\x00", b".group_segment_fixed_size\xcd\x63\x00"),
        (b".vgpr_count\xcd\x01\x00", b".vgpr_count\xcd\x01\x80"),
        (b".sgpr_count", b".vgpr_count"),
        // The metadata name this kernel differently than the code does.
        (b".name\xbbmain_dispatch_0_slow_memcpy", b".name\xbbmain_dispatch_0_fast_memcpy"),
    ] {
        let mut forged = amd.clone();
        let at = forged.windows(from.len()).position(|window| window == from).unwrap();
        forged[at..at + to.len()].copy_from_slice(to);
        assert!(!is_read(&forged), "{}", from.escape_ascii());
    }
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
    assert_eq!(names(&cpu), names(&vulkan));
}

#[test]
fn facts_of_host_libraries_agree_with_objdump() {
    let oracle = include_str!("../../fixtures/compiled_code/host.tsv");
    let mut lines = oracle.lines();
    let metrics: Vec<&str> = lines.next().unwrap().split('\t').skip(2).collect();
    let mut checked = 0;
    for line in lines {
        let cells: Vec<&str> = line.split('\t').collect();
        let run = module(cells[0]);
        let kind = cells[1].split("_dispatch_").last().unwrap().split_once('_').unwrap().1;
        // The second convolution has the same shape and name as the first one.
        let second = if cells[1].contains("dispatch_2_conv") { " (2)" } else { "" };
        for (metric, wanted) in metrics.iter().zip(&cells[2..]) {
            // If the architecture does not have a width, its cell is empty.
            let found = fact(&run, &format!("{kind}{second}"), metric);
            assert_eq!(found, wanted.parse().ok(), "{} {} {metric}", cells[0], cells[1]);
            checked += 1;
        }
    }
    assert_eq!(checked, 2 * 4 * 7);
}

/// `(kernel, registers, stack, spill stores)` of each kernel, from the numbers after its name.
fn assembled(log: &str) -> Vec<(&str, f64, f64, f64)> {
    let kernels = log.split("Function properties for ").skip(1).map(|kernel| {
        let words: Vec<&str> = kernel.split_whitespace().collect();
        let numbers: Vec<f64> = words.iter().skip(1).filter_map(|word| word.parse().ok()).collect();
        (words[0], numbers[3], numbers[0], numbers[1])
    });
    kernels.collect()
}

#[test]
fn facts_of_assembled_ptx_are_what_ptxas_states() {
    for processor in ["sm_80", "sm_90"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/compiled_code");
        let log = std::fs::read_to_string(folder.join(format!("conv-block.ptxas.{processor}.txt"))).unwrap();
        let mut code = ingest::CompiledCode::read(&bytes("sm_80.3.13.0")).unwrap();
        let found: Vec<(usize, String)> =
            code.unassembled().map(|(number, ptx)| (number, ptx.processor.to_owned())).collect();
        assert_eq!(found, [(0, "sm_80".to_owned())]);
        code.assembled(0, processor, &log).unwrap();
        let facts = code.clone().facts();
        let value = |metric: &str, kernel: &str| {
            let name = format!("{metric} of {kernel}");
            facts.iter().find(|(metric, _)| metric.name == name).map(|(_, value)| *value)
        };
        let stated = assembled(&log);
        assert_eq!(stated.len(), 4);
        for (name, registers, stack, spills) in stated {
            let kernel = match name.split_once("_dispatch_").unwrap().1 {
                "2_conv_64x28x28x64x3x3_f32" => "conv_64x28x28x64x3x3_f32 (2)",
                numbered => numbered.split_once('_').unwrap().1,
            };
            assert_eq!(value("vector-registers", kernel), Some(registers), "{kernel}");
            assert_eq!(value("scratch-size", kernel), Some(stack), "{kernel}");
            assert_eq!(value("spilled-registers", kernel), Some(spills / 4.0), "{kernel}");
            // There is only static shared memory, and a block has one or two warps, so the GPU can hold its
            // maximum.
            assert_eq!(value("shared-memory", kernel), Some(0.0), "{kernel}");
            assert!(
                value("occupancy", kernel).is_some_and(|warps| (8.0..=16.0).contains(&warps)),
                "{kernel}"
            );
        }
        // If the assembler does not mention a kernel, the kernel may still have spills.
        let cut = log.split("Compiling entry").next().unwrap();
        assert!(code.assembled(0, processor, cut).is_err());
    }
}

#[test]
fn code_for_different_processors_is_not_compared() {
    let comparison = compare("sm_80.3.13.0", "gfx942.3.13.0");
    assert!(!matches!(comparison.verdict, Verdict::Pass | Verdict::Improved), "{:?}", comparison.verdict);
}

#[test]
fn a_module_with_code_that_its_directory_does_not_list_is_an_error() {
    let (one, other) = (bytes("gfx942.3.13.0"), bytes("sm_80.3.13.0"));
    ingest::read_detected(&one, "one").unwrap();
    let behind = ingest::read_detected(&[one, other].concat(), "two").unwrap_err().to_string();
    assert!(behind.contains("before the archive") || behind.contains("does not list"), "{behind}");
}

/// The module with these bytes replaced by others of the same length.
fn exchanged(module: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let at = memchr::memmem::find(module, from).unwrap();
    [&module[..at], to, &module[at + from.len()..]].concat()
}

#[test]
fn an_executable_inside_the_bytecode_module_or_outside_of_every_entry_is_an_error() {
    let error = |module: &[u8]| ingest::read_detected(module, "m").map(|_| ()).unwrap_err().to_string();
    for target in ["gfx942.3.13.0", "gfx942.3.7.1", "sm_80.3.13.0", "vulkan.3.13.0", "cpu.3.13.0"] {
        let module = bytes(target);
        ingest::read_detected(&module, target).unwrap();
        // Every module contains this constant, which is as long as a small header.
        let constant = b"hal.executable.format";
        for (magic, at) in
            [(&b"\x7fELF"[..], 0), (b"HIP1", 4), (b"CDA1", 0), (b"VKE1", 8), (b"\x03\x02\x23\x07", 0)]
        {
            let mut inside = *constant;
            inside[at..at + 4].copy_from_slice(magic);
            let found = error(&exchanged(&module, constant, &inside));
            assert!(found.contains("executable inside"), "{target}: {found}");
        }
        // The distance of the first executable's segment from the bytecode module.
        let offset = if target.starts_with("vulkan") { 112_u64 } else { 96 }.to_le_bytes();
        let found = error(&exchanged(&module, &offset, &4096_u64.to_le_bytes()));
        assert!(found.contains("not an entry"), "{target}: {found}");
    }
}

#[test]
fn an_executable_that_the_compiler_put_into_the_bytecode_module_is_read() {
    let run = module_of("pairwise-l1.sm_80.3.7.1");
    assert!(
        fact(&run, "reduction_128x256x256_f32", "instructions").is_some_and(|count| count > 10.0),
        "{run:#?}"
    );
}

#[test]
fn damaged_modules_are_errors_or_say_less_and_never_stop_the_reader() {
    for target in ["gfx942.3.13.0", "sm_80.3.13.0", "vulkan.3.13.0", "cpu.3.13.0", "aarch64.3.13.0"] {
        let whole = bytes(target);
        for step in 0..64 {
            // A truncated module is an error. A changed one may still be readable, so reading it only has to
            // end.
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

/// An ELF library with one section of code. Its symbols are functions of `length` bytes, whose names overlap
/// in one text, each starting a byte later.
fn library(code: usize, symbols: usize, length: u64, name: usize) -> Vec<u8> {
    let names = [vec![b'a'; name + symbols], vec![0]].concat();
    let parts: [&[u8]; 2] = [&vec![0x90; code], &names];
    let mut table = vec![0; 24];
    for at in 0..symbols as u32 {
        table.extend(at.to_le_bytes());
        // The symbol is a global function in the first section.
        table.extend([0x12, 0, 1, 0]);
        table.extend([0; 8]);
        table.extend(length.to_le_bytes());
    }
    let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
    bytes.resize(16, 0);
    bytes.extend([3, 0, 62, 0, 1, 0, 0, 0]);
    let size = (parts[0].len() + parts[1].len() + table.len()) as u64;
    for word in [0, 0, 64 + size] {
        bytes.extend(u64::to_le_bytes(word));
    }
    bytes.extend([0, 0, 0, 0, 64, 0, 56, 0, 0, 0, 64, 0, 4, 0, 2, 0]);
    bytes.extend(parts.concat());
    bytes.extend(&table);
    let mut header = |kind: u32, flags: u64, at: u64, size: u64, link: u32, info: u32, entry: u64| {
        bytes.extend(0_u32.to_le_bytes());
        bytes.extend(kind.to_le_bytes());
        for word in [flags, 0, at, size] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend([link.to_le_bytes(), info.to_le_bytes()].concat());
        bytes.extend([1_u64.to_le_bytes(), entry.to_le_bytes()].concat());
    };
    let (code, names) = (code as u64, names.len() as u64);
    header(0, 0, 0, 0, 0, 0, 0);
    header(1, 6, 64, code, 0, 0, 0);
    header(3, 0, 64 + code, names, 0, 0, 0);
    header(2, 0, 64 + code + names, size - code - names, 2, 1, 24);
    bytes
}

#[test]
fn functions_that_share_their_code_or_their_names_do_not_take_the_square_of_the_file_s_size() {
    let one = ingest::read_detected(&library(4096, 1, 4096, 8), "one").unwrap();
    assert_eq!(fact(&one, "aaaaaaaaa", "instructions"), Some(4096.0), "{one:#?}");
    let twice = ingest::read_detected(&library(4096, 2, 4096, 8), "two names").unwrap();
    assert_eq!(twice.benchmarks.len(), 3);
    let error = |bytes: &[u8]| ingest::read_detected(bytes, "library").unwrap_err().to_string();
    let began = std::time::Instant::now();
    let shared = error(&library(1 << 20, 2_000, 1 << 20, 8));
    assert!(shared.contains("functions that overlap"), "{shared}");
    let long = error(&library(4096, 20_000, 1, 1 << 20));
    assert!(long.contains("symbol names take more than 16 MiB"), "{long}");
    // Decoding all of the code would take minutes.
    assert!(began.elapsed() < std::time::Duration::from_secs(60));
}
