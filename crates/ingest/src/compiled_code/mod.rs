//! Facts about generated code, kernel by kernel: IREE modules (.vmfb), AMD code objects (.hsaco), PTX, SPIR-V and ELF
//! libraries. The same bytes give the same numbers on every machine, so they are compared exactly and without a device.
//!
//! Every fact is read from the code itself or from the notes that the assembler stored with it. If a format
//! does not have a fact, the fact is absent, never zero.

mod amdgpu;
mod container;
mod cpu;
mod elf_library;
mod ptx;
mod ptxas;
mod spirv;

use std::collections::{BTreeMap, BTreeSet};

use benchgate_core::model::{
    ARCHITECTURE, Benchmark, GeneratedCode, KernelCode, Metric, MetricSeries, Number, Run, Series,
};

use super::build::has_room;
use super::join::ByName;

pub(super) use container::is_code;

/// The code of a file. Some facts are only known once an assembler has processed it.
#[derive(Debug, Clone, PartialEq)]
pub struct CompiledCode {
    objects: Vec<CodeObject>,
}

/// Code that `ptxas` has to assemble before its registers are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unassembled<'a> {
    /// The processor that the code is for, such as `sm_80`. Names of any other form are not passed on.
    pub processor: &'a str,
    pub text: &'a str,
}

impl CompiledCode {
    /// Reads every kernel of a file.
    ///
    /// # Errors
    /// The file can't be read, or it has no code.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let objects = container::objects(bytes)?;
        if objects.iter().all(|object| object.kernels.is_empty()) {
            return Err("the module has no kernels".to_owned());
        }
        Ok(Self { objects })
    }

    /// Returns the code objects that have to be assembled, with their numbers.
    pub fn unassembled(&self) -> impl Iterator<Item = (usize, Unassembled<'_>)> {
        self.objects.iter().enumerate().filter_map(|(number, object)| {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let processor = Some(object.architecture.as_str()).filter(|name| name.chars().all(is_plain));
            let processor = processor.unwrap_or_default();
            Some((number, Unassembled { processor, text: &object.ptx.as_ref()?.text }))
        })
    }

    /// Adds the output of `ptxas -v` for the code object with this number, assembled for this processor.
    ///
    /// # Errors
    /// The output does not state the resources of each kernel.
    pub fn assembled(&mut self, number: usize, processor: &str, log: &str) -> Result<(), String> {
        let Some((object, ptx)) =
            self.objects.get_mut(number).and_then(|object| Some((&mut object.kernels, object.ptx.as_ref()?)))
        else {
            return Err(format!("code object {number} is not PTX"));
        };
        ptxas::add(object, &ptx.launches, processor, log)
    }

    /// Returns the processors that the code is for (`gfx942`), without their features, which compilers spell
    /// in several ways.
    pub fn architecture(&self) -> String {
        architectures(&self.objects, |name| name.split(':').next().unwrap_or(name))
    }

    /// Returns the facts of all code together (sums, and the lowest occupancy), then those of each kernel.
    pub fn facts(self) -> Vec<(Metric, f64)> {
        let kernels: Vec<CodeOfKernel> = self.objects.into_iter().flat_map(|object| object.kernels).collect();
        let mut facts = whole(&kernels);
        for (name, kernel) in named(kernels) {
            facts.extend(kernel.facts.iter().map(|(metric, value)| (metric.of_kernel(&name), *value)));
        }
        facts
    }

    /// Returns the facts of all code together, then each kernel with its facts.
    pub fn generated(self) -> GeneratedCode {
        let architecture = architectures(&self.objects, |name| name);
        let kernels: Vec<CodeOfKernel> = self.objects.into_iter().flat_map(|object| object.kernels).collect();
        let by_name = |facts: Vec<(Metric, f64)>| {
            facts.into_iter().map(|(metric, value)| (metric.name.into_owned(), Number(value))).collect()
        };
        GeneratedCode {
            architecture,
            facts: by_name(whole(&kernels)),
            kernels: named(kernels)
                .into_iter()
                .map(|(name, kernel)| KernelCode {
                    name,
                    sha256: kernel.sha256,
                    facts: by_name(kernel.facts),
                })
                .collect(),
            problem: None,
        }
    }
}

/// An executable of an IREE module: the unit that the runtime loads and can exchange.
#[derive(Debug, Clone, PartialEq)]
pub struct Executable<'a> {
    /// Names of its kernels, including their numbers.
    pub kernels: Vec<String>,
    pub content: &'a [u8],
}

/// Returns the executables of an IREE module, in its order.
///
/// # Errors
/// The module is damaged or has an unknown form.
pub fn executables(module: &[u8]) -> Result<Vec<Executable<'_>>, String> {
    let executable = |container::Entry { content, objects }| {
        let kernels = objects.into_iter().flat_map(|object| object.kernels);
        Executable { kernels: kernels.map(|kernel| kernel.name).collect(), content }
    };
    Ok(container::entries(module)?.into_iter().map(executable).collect())
}

/// A kernel (an entry point) of compiled code.
#[derive(Debug, Clone, PartialEq)]
struct CodeOfKernel {
    name: String,
    /// SHA-256 of its instructions without its name.
    sha256: String,
    facts: Vec<(Metric, f64)>,
}

/// The kernels of one code object, and the architecture for which it was compiled.
#[derive(Debug, Clone, PartialEq, Default)]
struct CodeObject {
    architecture: String,
    kernels: Vec<CodeOfKernel>,
    /// The source text, if it is PTX.
    ptx: Option<ptx::PtxSource>,
}

/// The reason why bytes are not code that can be read.
type BadCode = String;

/// Reads every kernel of a file. The first row describes the whole file, so that code that moves to a kernel
/// with another name is still compared.
pub(super) fn read(bytes: &[u8]) -> Result<Run, BadCode> {
    let objects = container::objects(bytes)?;
    let code = CompiledCode { objects };
    let architecture = code.architecture();
    let kernels: Vec<CodeOfKernel> = code.objects.into_iter().flat_map(|object| object.kernels).collect();
    if kernels.is_empty() {
        return Ok(Run::default());
    }
    // Code for another processor is not comparable, so each row has the processor as a label.
    let row = |name: &str, sha256, facts: Vec<(Metric, f64)>| {
        let mut benchmark = Benchmark::new(name);
        benchmark.labels.insert(ARCHITECTURE.to_owned(), architecture.clone());
        let series = |(metric, value)| MetricSeries { metric, series: Series::Exact(value) };
        benchmark.metrics = facts.into_iter().map(series).collect();
        benchmark.code_sha256 = sha256;
        benchmark
    };
    let mut benchmarks = ByName::default();
    benchmarks.push(row("(all kernels)", None, whole(&kernels)));
    for (at, (name, kernel)) in named(kernels).into_iter().enumerate() {
        if !has_room(at) {
            break;
        }
        benchmarks.push(row(&name, Some(kernel.sha256), kernel.facts));
    }
    Ok(Run { benchmarks: benchmarks.finish(), ..Run::default() })
}

/// Joins the architectures of all objects, each once: `gfx90a and gfx942`.
fn architectures(objects: &[CodeObject], named: fn(&str) -> &str) -> String {
    let found: BTreeSet<&str> = objects.iter().map(|object| named(&object.architecture)).collect();
    found.into_iter().collect::<Vec<_>>().join(" and ")
}

/// Returns kernels by the names that they have in every file, without running numbers. These numbers shift
/// when an earlier kernel disappears, so the second kernel with a name is paired with the second.
fn named(kernels: Vec<CodeOfKernel>) -> Vec<(String, CodeOfKernel)> {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let named = kernels.into_iter().map(|kernel| {
        let name = unnumbered(&kernel.name).to_owned();
        let count = seen.entry(name.clone()).or_default();
        *count += 1;
        let name = if *count == 1 { name } else { format!("{name} ({count})") };
        (name, kernel)
    });
    named.collect()
}

/// Returns a kernel's name without IREE's running number: `main_dispatch_9_matmul_…` becomes `matmul_…`,
/// whatever its position.
pub fn unnumbered(name: &str) -> &str {
    let Some((_, rest)) = name.split_once("_dispatch_") else { return name };
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    match rest[digits..].strip_prefix('_') {
        Some(kind) if digits > 0 && !kind.is_empty() => kind,
        _ => name,
    }
}

/// Returns the facts of all kernels together: sums, and the lowest occupancy.
fn whole(kernels: &[CodeOfKernel]) -> Vec<(Metric, f64)> {
    let mut found: Vec<(Metric, f64)> = Vec::new();
    for (metric, value) in kernels.iter().flat_map(|kernel| &kernel.facts) {
        // A sum of registers would have no meaning.
        if [Metric::VECTOR_REGISTERS, Metric::ACCUMULATOR_REGISTERS, Metric::SCALAR_REGISTERS]
            .contains(metric)
        {
            continue;
        }
        match found.iter_mut().find(|(known, _)| known == metric) {
            Some((_, total)) if *metric == Metric::OCCUPANCY => *total = total.min(*value),
            Some((_, total)) => *total += value,
            None => found.push((metric.clone(), *value)),
        }
    }
    // A sum over some kernels would hide what the others need.
    let states = |kernel: &CodeOfKernel| kernel.facts.iter().any(|(metric, _)| *metric == Metric::SCRATCH);
    if !kernels.iter().all(states) {
        found.retain(|(metric, _)| *metric != Metric::SCRATCH);
    }
    // In order of importance, regardless of which kernel had a fact first.
    found.sort_by_key(|(metric, _)| Metric::OF_CODE.iter().position(|known| known == metric));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_keeps_its_name_when_its_number_changes() {
        assert_eq!(unnumbered("main_dispatch_10_matmul_197x192_f32"), "matmul_197x192_f32");
        assert_eq!(unnumbered("main_dispatch_9_matmul_197x192_f32"), "matmul_197x192_f32");
        assert_eq!(unnumbered("main_dispatch_9"), "main_dispatch_9");
        assert_eq!(unnumbered("main_dispatch_x_y"), "main_dispatch_x_y");
        assert_eq!(unnumbered("triton_poi_fused_add"), "triton_poi_fused_add");
    }
}
