//! Reads the output of `ptxas -v` about the kernels that it assembled, and computes how many of their warps a
//! GPU can hold.

use std::collections::BTreeMap;

use benchgate_core::model::Metric;

use super::ptx::Launch;
use super::{BadCode, CodeOfKernel};

/// The assembler's result for one function. Registers and shared memory are only stated for kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Assembled {
    stack: u64,
    spill_stores: u64,
    registers: Option<u64>,
    shared: Option<u64>,
}

/// Returns the functions in the output of `ptxas -v`, by name:
/// ```text
/// ptxas info    : Function properties for main_dispatch_0
///     48 bytes stack frame, 16 bytes spill stores, 16 bytes spill loads
/// ptxas info    : Used 103 registers, used 1 barriers, 1024 bytes smem, 384 bytes cmem[0]
/// ```
fn functions(log: &str) -> Result<BTreeMap<&str, Assembled>, BadCode> {
    let mut found: BTreeMap<&str, Assembled> = BTreeMap::new();
    let mut open = None;
    for line in log.lines() {
        let line = line.strip_prefix("ptxas info").map_or(line, |info| info.trim_start_matches([' ', ':']));
        if let Some(name) = line.strip_prefix("Function properties for ") {
            open = Some(name.trim());
        } else if let (Some(name), true) = (open, line.contains(" bytes stack frame")) {
            let size = |what| {
                amount(line, what).ok_or_else(|| format!("ptxas reports no {} for {name:?}", what.trim()))
            };
            let (stack, spill_stores) = (size(" bytes stack frame")?, size(" bytes spill stores")?);
            let function = Assembled { stack, spill_stores, ..Assembled::default() };
            if found.insert(name, function).is_some() {
                return Err(format!("ptxas reports two results for {name:?}"));
            }
        } else if let (Some(used), Some(name)) = (line.strip_prefix("Used "), open) {
            let function =
                found.get_mut(name).ok_or_else(|| format!("ptxas reports no stack size for {name:?}"))?;
            function.registers = amount(used, " registers");
            function.shared = Some(amount(used, " bytes smem").unwrap_or(0));
        }
    }
    Ok(found)
}

/// Returns the number before `what` in a list of such numbers.
fn amount(list: &str, what: &str) -> Option<u64> {
    let part = list.split(',').find(|part| part.trim_end().ends_with(what))?;
    part.trim().strip_suffix(what)?.trim().parse().ok()
}

/// Adds the assembler's output to the facts of the kernels in its input.
pub(super) fn add(
    kernels: &mut [CodeOfKernel],
    launches: &BTreeMap<String, Launch>,
    processor: &str,
    log: &str,
) -> Result<(), BadCode> {
    let functions = functions(log)?;
    for kernel in kernels {
        let name = &kernel.name;
        let said = functions.get(name.as_str());
        let said = said.ok_or_else(|| format!("ptxas reports nothing about {name:?}"))?;
        // The stack frame contains local arrays and spilled registers.
        kernel.facts.retain(|(metric, _)| *metric != Metric::SCRATCH);
        // Each spilled register is one store of four bytes.
        let spilled = said.spill_stores.div_ceil(4);
        let launch = launches.get(name).copied();
        let launch = launch.filter(|launch| launch.is_kernel);
        let registers = said.registers.filter(|_| launch.is_some());
        if launch.is_some() && registers.is_none() {
            return Err(format!("ptxas reports no registers for {name:?}"));
        }
        let shared = launch.and_then(|launch| said.shared?.checked_add(launch.dynamic_shared?));
        let threads = launch.and_then(|launch| launch.threads);
        let occupancy = match (registers, shared, threads) {
            (Some(registers), Some(shared), Some(threads)) => {
                occupancy(processor, registers, shared, threads)
            }
            _ => None,
        };
        let facts = [
            (Metric::SPILLED_REGISTERS, Some(spilled)),
            (Metric::SCRATCH, Some(said.stack)),
            (Metric::OCCUPANCY, occupancy),
            (Metric::VECTOR_REGISTERS, registers),
            (Metric::SHARED_MEMORY, shared),
        ];
        kernel.facts.extend(facts.into_iter().filter_map(|(metric, value)| Some((metric, value? as f64))));
    }
    Ok(())
}

/// Number of threads in a warp.
const WARP: u64 = 32;
/// Number of parts of a streaming multiprocessor, each of which has a scheduler and a quarter of the
/// registers.
const PARTS: u64 = 4;
/// Number of registers in each part, and the granularity in which a warp gets them.
const REGISTERS: u64 = 16 << 10;
const REGISTER_STEP: u64 = 256;
/// Maximum number of registers for a thread, and for a block.
const MOST_OF_THREAD: u64 = 255;
const MOST_OF_BLOCK: u64 = 64 << 10;

/// Resources of a streaming multiprocessor.
struct Multiprocessor {
    warps: u64,
    blocks: u64,
    shared: u64,
    /// Shared memory that the system reserves in every block, and the granularity in which shared memory is
    /// allocated.
    reserved: u64,
    step: u64,
}

impl Multiprocessor {
    /// Returns the resources by compute capability ("CUDA C++ Programming Guide", technical specifications);
    /// `None` for an unknown one.
    fn of(processor: &str) -> Option<Self> {
        let number = processor.strip_prefix("sm_")?;
        // `sm_90a` is the same processor, with instructions that later ones lack.
        let (warps, blocks, kib) = match number.trim_end_matches(['a', 'f']) {
            "70" => (64, 32, 96),
            "75" => (32, 16, 64),
            "80" => (64, 32, 164),
            "86" => (48, 16, 100),
            "87" => (48, 16, 164),
            "89" => (48, 24, 100),
            "90" | "100" => (64, 32, 228),
            "120" => (48, 24, 100),
            _ => return None,
        };
        let (reserved, step) = if number.starts_with('7') { (0, 256) } else { (1024, 128) };
        Some(Self { warps, blocks, shared: kib << 10, reserved, step })
    }
}

/// Returns the number of warps that each scheduler can hold, limited by registers, shared memory and the
/// number of blocks.
fn occupancy(processor: &str, registers: u64, shared: u64, threads: u64) -> Option<u64> {
    let hardware = Multiprocessor::of(processor)?;
    if registers > MOST_OF_THREAD || threads == 0 || shared > hardware.shared {
        return Some(0);
    }
    let warps = threads.div_ceil(WARP);
    let of_warp = (registers * WARP).next_multiple_of(REGISTER_STEP).max(REGISTER_STEP);
    if warps > hardware.warps || of_warp * warps.next_multiple_of(PARTS) > MOST_OF_BLOCK {
        return Some(0);
    }
    let by_registers = PARTS * (REGISTERS / of_warp) / warps;
    let of_block = (shared + hardware.reserved).next_multiple_of(hardware.step);
    let by_memory = hardware.shared.checked_div(of_block).unwrap_or(hardware.blocks);
    let blocks = hardware.blocks.min(hardware.warps / warps).min(by_registers).min(by_memory);
    Some((blocks * warps).div_ceil(PARTS))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "ptxas info    : 0 bytes gmem\n\
        ptxas info    : Compiling entry function 'k' for 'sm_80'\n\
        ptxas info    : Function properties for helper\n    8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n\
        ptxas info    : Function properties for k\n    48 bytes stack frame, 18 bytes spill stores, 16 bytes spill loads\n\
        ptxas info    : Used 103 registers, used 1 barriers, 1024 bytes smem, 384 bytes cmem[0]\n\
        ptxas info    : Compile time = 188.173 ms\n";

    fn kernel(name: &str) -> CodeOfKernel {
        CodeOfKernel { name: name.to_owned(), sha256: String::new(), facts: vec![(Metric::SCRATCH, 1.0)] }
    }

    #[test]
    fn each_function_has_the_facts_that_are_stated_of_it() {
        let launch = Launch { is_kernel: true, threads: Some(128), dynamic_shared: Some(512) };
        let launches = BTreeMap::from([("k".to_owned(), launch)]);
        let mut kernels = [kernel("k"), kernel("helper")];
        add(&mut kernels, &launches, "sm_80", LOG).unwrap();
        let of = |at: usize| -> Vec<(&str, f64)> {
            kernels[at].facts.iter().map(|(metric, value)| (metric.name.as_ref(), *value)).collect()
        };
        assert_eq!(
            of(0),
            [
                ("spilled-registers", 5.0),
                ("scratch-size", 48.0),
                ("occupancy", 4.0),
                ("vector-registers", 103.0),
                ("shared-memory", 1536.0)
            ]
        );
        assert_eq!(of(1), [("spilled-registers", 0.0), ("scratch-size", 8.0)]);
        // An unknown launch parameter is not guessed.
        let unknown = BTreeMap::from([("k".to_owned(), Launch { dynamic_shared: None, ..launch })]);
        let mut kernels = [kernel("k")];
        add(&mut kernels, &unknown, "sm_80", LOG).unwrap();
        assert_eq!(kernels[0].facts.len(), 3);
    }

    #[test]
    fn a_kernel_without_a_result_or_with_two_is_an_error() {
        let launches = BTreeMap::new();
        assert!(add(&mut [kernel("other")], &launches, "sm_80", LOG).is_err());
        assert!(add(&mut [kernel("k")], &launches, "sm_80", &LOG.repeat(2)).is_err());
        let without = LOG.replace("Used 103 registers", "Used registers");
        let launch = Launch { is_kernel: true, threads: None, dynamic_shared: Some(0) };
        let launches = BTreeMap::from([("k".to_owned(), launch)]);
        assert!(add(&mut [kernel("k")], &launches, "sm_80", &without).is_err());
    }

    /// The expected values were computed by NVIDIA's `cuda_occupancy.h` 12.9 for 0 to 255 registers, 1 to
    /// 1024 threads and shared memory up to the limit.
    #[test]
    fn the_occupancy_is_that_of_nvidias_calculator() {
        let cases = include_str!("../../../../tests/fixtures/compiled_code/cuda-occupancy.tsv");
        let mut checked = 0;
        for line in cases.lines().skip(1) {
            let cells: Vec<&str> = line.split('\t').collect();
            let [registers, threads, shared, blocks] =
                [1, 2, 3, 4].map(|at: usize| cells[at].parse::<u64>().unwrap());
            let warps = blocks * threads.div_ceil(WARP);
            assert_eq!(
                occupancy(cells[0], registers, shared, threads),
                Some(warps.div_ceil(PARTS)),
                "{line}"
            );
            checked += 1;
        }
        assert!(checked > 300);
        assert_eq!(occupancy("sm_999", 32, 0, 128), None);
    }
}
