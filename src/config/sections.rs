//! Every table of `benchgate.toml` and every key in it.

use strum::VariantNames;

use super::fields::{Section, ValueKind, defaulted, of_policy, optional, required};
use super::judging::{GATE, NUMERICS, NUMERICS_OVERRIDE, WAIVER};
use super::services::{GITHUB, STORE};
use super::types::{BackendKind, BackendTest, Exporter, OutputType, Profiling};

const COUNT: ValueKind = ValueKind::Integer { min: 1, max: 100_000 };
const LINES: ValueKind = ValueKind::List(&ValueKind::Line);
const NAMES: ValueKind = ValueKind::List(&ValueKind::Name);

pub(super) static ROOT: Section = Section {
    title: "the top level",
    doc: "",
    fields: &[
        required("suite", ValueKind::Table(&SUITE), "What this suite is."),
        optional(
            "toolchain",
            ValueKind::Table(&TOOLCHAIN),
            "The IREE tools of every side that does not pin its own.",
        ),
        optional("side", ValueKind::Table(&SIDES), "What differs between base and head."),
        required("model", ValueKind::Tables(&MODEL), "The models to measure."),
        required("target", ValueKind::Tables(&TARGET), "The devices to measure them on."),
        optional("torchbench", ValueKind::Table(&TORCHBENCH), "The checkout of models named `torchbench:…`."),
        optional(
            "backend",
            ValueKind::Tables(&BACKEND),
            "Other backends to measure the models on, for context.",
        ),
        optional("measure", ValueKind::Table(&MEASURE), "Measurement settings."),
        optional("gate", ValueKind::Table(&GATE), "What counts as a regression."),
        optional("waiver", ValueKind::Tables(&WAIVER), "Reviewed exceptions."),
        optional("numerics", ValueKind::Table(&NUMERICS), "How far outputs may be from their references."),
        optional("numerics-override", ValueKind::Tables(&NUMERICS_OVERRIDE), "The same for some benchmarks."),
        optional("report", ValueKind::Table(&REPORT), "What reports may say."),
        optional("baseline", ValueKind::Table(&BASELINE), "How stored sessions are made comparable."),
        optional("store", ValueKind::Table(&STORE), "Where baselines are stored, and how they are read."),
        optional("github", ValueKind::Table(&GITHUB), "What is posted to GitHub, and when."),
        optional(
            "aliases",
            ValueKind::Renames,
            "Flags that were renamed between versions of the tools, in either direction: \"--iree-hip-target\" = \
             \"--iree-rocm-target\". `benchgate bisect` uses the name that a version knows.",
        ),
        optional(
            "policy",
            ValueKind::Relative,
            "A file of its own for `[gate]`, `[[waiver]]`, `[numerics]` and `[[numerics-override]]`, relative to this one, so \
             that CODEOWNERS can guard it. Then none of them may be here.",
        ),
    ],
};

static SUITE: Section = Section {
    title: "[suite]",
    doc: "",
    fields: &[required("name", ValueKind::Name, "Names the suite in reports and in the baseline store.")],
};

pub(super) static TOOLCHAIN: Section = Section {
    title: "[toolchain]",
    doc: "The IREE compiler and runtime, by version for people and by commit for truth: both tools must \
          print this commit, or nothing is measured. `benchgate.lock` holds the SHA-256 of every wheel. \
          Without `path` and `compiler`, wheels of this version come from PyPI.",
    fields: &[
        required("version", ValueKind::Version, "Release, for example `3.13.0`."),
        required(
            "commit",
            ValueKind::Commit,
            "The commit that `iree-compile --version` prints, all 40 digits.",
        ),
        optional(
            "path",
            ValueKind::AnyPath,
            "A local build or install tree instead; relative paths start at this file.",
        ),
        optional(
            "compiler",
            ValueKind::Table(&WHEEL),
            "The compiler's wheel by address instead; needs `runtime`.",
        ),
        optional(
            "runtime",
            ValueKind::Table(&WHEEL),
            "The runtime's wheel by address instead; needs `compiler`.",
        ),
    ],
};

/// The file that `benchgate bisect --toolchains` names.
pub(super) static TOOLCHAINS: Section = Section {
    title: "a list of toolchains",
    doc: "",
    fields: &[required(
        "toolchain",
        ValueKind::Tables(&TOOLCHAIN),
        "The toolchains in order, the good end first.",
    )],
};

static WHEEL: Section = Section {
    title: "[toolchain.compiler] and [toolchain.runtime]",
    doc: "",
    fields: &[
        required("url", ValueKind::Url, "Address of the wheel, without credentials."),
        required("sha256", ValueKind::Sha256, "SHA-256 of the wheel, 64 digits."),
    ],
};

static SIDES: Section = Section {
    title: "[side]",
    doc: "",
    fields: &[
        optional(
            "base",
            ValueKind::Table(&SIDE),
            "What head is compared with. Without it, only head is measured.",
        ),
        optional("head", ValueKind::Table(&SIDE), "What is judged."),
    ],
};

static BASELINE: Section = Section {
    title: "[baseline]",
    doc: "In a pull request this is read from the base. docs/baselines.md says what an anchor is good for.",
    fields: &[optional(
        "anchor",
        ValueKind::Table(&TOOLCHAIN),
        "A frozen toolchain that `baseline update --measure` and `gate --stored` measure in the same session, in pairs with \
         head. What is stored and compared is then head's ratio to it. Never change it without need: ratios to another \
         anchor don't compare.",
    )],
};

static SIDE: Section = Section {
    title: "[side.base] and [side.head]",
    doc: "",
    fields: &[
        optional("toolchain", ValueKind::Table(&TOOLCHAIN), "Tools of this side, instead of `[toolchain]`."),
        defaulted("flags", LINES, "[]", "Compile flags added after the target's and the model's."),
        defaulted("run-flags", LINES, "[]", "Flags of the runtime tools, added last."),
        defaulted(
            "sources",
            ValueKind::Relative,
            "\".\"",
            "The folder that model paths start at, relative to this file. It must stay inside the repository.",
        ),
    ],
};

static MODEL: Section = Section {
    title: "[[model]]",
    doc: "A model is a file of MLIR with its inputs, or torch code that is exported.",
    fields: &[
        required("name", ValueKind::Name, "Names the model; unique in the suite."),
        required(
            "source",
            ValueKind::Line,
            "`models/a.mlir` or `models/a.mlirbc`, `models.py:make_a` for a function that returns a torch module \
             and its inputs, `models/a.onnx`, `models/a.pt2` as `torch.export.save` writes it, `zoo:bert` for a model \
             that benchgate brings along, or `torchbench:resnet18`.",
        ),
        defaulted("function", ValueKind::Name, "\"main\"", "The function to run."),
        optional(
            "functions",
            ValueKind::Named(&FUNCTION),
            "Several functions of one MLIR module instead of `function`: one benchmark each.",
        ),
        defaulted(
            "inputs",
            LINES,
            "[]",
            "One per argument: an `.npy` file, a raw one with its type (`1x3xbf16=@x.bin`), or values (`1x3xf32=1`). \
             Exported models bring theirs. For `.onnx` and `.pt2` they replace seeded random inputs or the saved ones.",
        ),
        defaulted(
            "expected",
            LINES,
            "[]",
            "One `.npy` file, or raw one (`4x8xbf16=@y.bin`), per result. Exported models bring theirs; without any, \
             outputs are not verified.",
        ),
        defaulted(
            "expected-f64",
            LINES,
            "[]",
            "The same results computed in double precision, one `.npy` file for each of `expected`: what the error of \
             base and head is measured against. Exported models bring theirs.",
        ),
        defaulted(
            "parameters",
            LINES,
            "[]",
            "Parameter archives, `scope=weights.irpa` or `weights.irpa` for the default scope.",
        ),
        defaulted("input-type", ValueKind::Name, "\"auto\"", "`--iree-input-type` of the compiler."),
        defaulted(
            "exporter",
            ValueKind::OneOrMore(&ValueKind::Choice(Exporter::VARIANTS)),
            "\"torch-mlir\"",
            "What exports a Python model. A list makes one benchmark for each, named `model@exporter`.",
        ),
        optional(
            "output-type",
            ValueKind::OneOrMore(&ValueKind::Choice(OutputType::VARIANTS)),
            "What torch-mlir lowers to; of several, the first that works, and the benchmark's label `lowering` says \
             which. By default a zoo model's own order, otherwise `linalg-on-tensors`, `stablehlo`, `torch`.",
        ),
        optional(
            "dtype",
            ValueKind::Choice(&["f64", "f32", "f16", "bf16"]),
            "What an exported model's weights and floating-point inputs are cast to before it runs and is exported; its \
             own by default. Backends use it where they have no `dtype` of their own.",
        ),
        optional("preset", ValueKind::Name, "Passed to the Python model's constructor as `preset`."),
        defaulted(
            "options",
            ValueKind::Scalars,
            "{}",
            "Keyword arguments of the Python model's constructor. For `.onnx`, sizes of the dimensions that the model \
             leaves open: `{ batch = 1 }`.",
        ),
        defaulted("flags", LINES, "[]", "Compile flags added after the target's."),
        defaulted(
            "dispatch-repeats",
            COUNT,
            "1",
            "Compiles every dispatch this many times in a row and divides the time by it, so that a kernel too short \
             to be timed alone can be. For modules that are one chain of dispatches; what updates a buffer in place \
             computes something else when repeated, and verification says so.",
        ),
        defaulted("targets", NAMES, "[]", "Names of the targets it runs on; all of them when empty."),
    ],
};

static TORCHBENCH: Section = Section {
    title: "[torchbench]",
    doc: "A checkout of PyTorch's torchbench (github.com/pytorch/benchmark), or a folder with the same layout: \
          `torchbenchmark/models/NAME/__init__.py` defines a class `Model`. Options of its models are `batch_size` and \
          `weights`, `\"published\"` or `\"random\"`. The result names the checkout's commit.",
    fields: &[required("path", ValueKind::AnyPath, "The checkout; relative paths start at this file.")],
};

static FUNCTION: Section = Section {
    title: "[model.functions.<name>]",
    doc: "One function of a module of several, with its own data.",
    fields: &[
        defaulted("inputs", LINES, "[]", "As `inputs` of the model."),
        defaulted("expected", LINES, "[]", "As `expected` of the model."),
        defaulted("expected-f64", LINES, "[]", "As `expected-f64` of the model."),
    ],
};

static TARGET: Section = Section {
    title: "[[target]]",
    doc: "What the compiler generates code for, and what runs it. Where the device is not there, the target's \
          benchmarks are compiled only: see docs/targets.md.",
    fields: &[
        required("name", ValueKind::Name, "Names the target; unique in the suite."),
        required(
            "backend",
            ValueKind::Choice(&["llvm-cpu", "cuda", "hip", "rocm", "vulkan"]),
            "What the compiler generates; `rocm` is another name of `hip`.",
        ),
        optional(
            "device",
            ValueKind::Line,
            "The runtime's device: `local-task`, `local-sync`, `cuda`, `hip://0`. By default `local-task` for \
             `llvm-cpu`, otherwise the backend's name.",
        ),
        optional(
            "required",
            ValueKind::Bool,
            "Whether a device that is not there is a failure (`true`) or `unsupported` (`false`). By default it is a \
             failure where the machine has such hardware on its bus, because then a driver broke.",
        ),
        defaulted(
            "allocators",
            LINES,
            "[]",
            "Allocators of the runtime's device, `--device_allocator=`: `[\"caching\"]`.",
        ),
        defaulted("flags", LINES, "[]", "Compile flags: `--iree-cuda-target=sm_86`."),
        defaulted("run-flags", LINES, "[]", "Flags of the runtime tools."),
        defaulted("env", ValueKind::Texts, "{}", "Environment variables of the runtime tools."),
    ],
};

pub(super) static BACKEND: Section = Section {
    title: "[[backend]]",
    doc: "The same models on another backend than IREE, for context: never judged, and a backend that fails or is not \
          installed is a row with its reason. The axes are multiplied out; `--axis NAME=VALUE` keeps some of them. \
          They run after everything that is judged, one process at a time, on the same processors.",
    fields: &[
        required(
            "name",
            ValueKind::Choice(BackendKind::VARIANTS),
            "Which backend. Several tables may have the same one if their experiments differ.",
        ),
        defaulted("models", NAMES, "[]", "Names of the models it runs; all of them when empty."),
        defaulted(
            "test",
            ValueKind::OneOrMore(&ValueKind::Choice(BackendTest::VARIANTS)),
            "\"eval\"",
            "Axis: a forward without gradients, or forward, loss and backward (no optimiser).",
        ),
        defaulted(
            "batch-size",
            ValueKind::List(&COUNT),
            "[]",
            "Axis: given to the constructor as `batch_size` or `batch`; the model's own when empty.",
        ),
        optional(
            "dtype",
            ValueKind::OneOrMore(&ValueKind::Choice(&["f64", "f32", "f16", "bf16", "amp"])),
            "Axis: what weights and floating-point inputs are cast to, or `amp` for automatic mixed precision (bf16 on a \
             CPU, f16 on a GPU); the model's own by default.",
        ),
        optional(
            "matmul-precision",
            ValueKind::OneOrMore(&ValueKind::Choice(&["highest", "high", "medium"])),
            "Axis: `torch.set_float32_matmul_precision`; torch's own by default.",
        ),
        defaulted("processes", COUNT, "3", "Fresh processes of each experiment."),
        optional("repetitions", COUNT, "Repetitions inside one process; those of `[measure]` by default."),
        optional(
            "iterations-per-run",
            COUNT,
            "Iterations of one repetition; by default as many as fill `min-time` of `[measure]`.",
        ),
        defaulted("timeout", ValueKind::Duration, "\"10m\"", "Of one process, its compiler included."),
        optional(
            "python",
            ValueKind::AnyPath,
            "An interpreter of your own with torch and the backend, instead of benchgate's environment: for \
             example TensorRT in a vendor's container. Relative paths start at this file.",
        ),
        defaulted("env", ValueKind::Texts, "{}", "Environment variables of its processes."),
    ],
};

static MEASURE: Section = Section {
    title: "[measure]",
    doc: "",
    fields: &[
        optional(
            "repetitions",
            COUNT,
            "Repetitions inside one process. By default 3 to 24, chosen per benchmark from a short trial, so that a \
             process measures for about as long as it takes to start (40 to 200 ms).",
        ),
        optional(
            "min-time",
            ValueKind::Duration,
            "Minimum time of one repetition. By default 2.5 to 8 ms, or one iteration.",
        ),
        optional(
            "iterations-per-run",
            COUNT,
            "Iterations of one repetition, instead of as many as fill `min-time`.",
        ),
        optional(
            "warmup",
            ValueKind::Duration,
            "Untimed warm-up of each process. By default at least one iteration and an eighth of the time measured.",
        ),
        defaulted("processes", COUNT, "8", "Processes per benchmark when one side is measured alone."),
        of_policy(
            "min-blocks",
            COUNT,
            |policy| policy.sequential.min_blocks.to_string(),
            "Blocks (base, head, head, base) per benchmark before the first look when two sides are measured.",
        ),
        of_policy(
            "max-blocks",
            COUNT,
            |policy| policy.sequential.max_blocks.to_string(),
            "Blocks after which an open question is inconclusive.",
        ),
        optional(
            "time-budget",
            ValueKind::Duration,
            "Time to spend on measuring, over all benchmarks: from the first look on it goes to the open rows that are \
             decided soonest, each as far as its next look. `max-blocks` stays the limit of each row.",
        ),
        defaulted("timeout", ValueKind::Duration, "\"5m\"", "Of one benchmark process."),
        defaulted("compile-timeout", ValueKind::Duration, "\"10m\"", "Of one compilation."),
        defaulted("export-timeout", ValueKind::Duration, "\"10m\"", "Of one export."),
        optional(
            "cpus",
            ValueKind::List(&ValueKind::Integer { min: 0, max: 4095 }),
            "Processors to pin CPU targets to. By default benchgate leaves one to the host.",
        ),
        optional(
            "lock-clocks",
            ValueKind::Line,
            "Lock the GPU's clock while measuring, and let it go afterwards: `\"base\"`, what the chip holds under \
             any load, or a clock, `\"1410MHz\"`. NVIDIA only, and needs the right to (docs/gpu-guide.md); without \
             it benchgate says so and goes on. Without this key no setting is touched.",
        ),
        defaulted(
            "profile",
            ValueKind::Choice(Profiling::VARIANTS),
            "\"changed\"",
            "Time per kernel, from processes of their own after everything is measured; it is never judged, and \
             `benchgate explain` shows it. `changed`: of benchmarks whose latency regressed or improved. \
             `always`: of all. It needs a runtime that brings `iree-profile`.",
        ),
        optional(
            "jobs",
            ValueKind::Integer { min: 1, max: 4096 },
            "Compilers at once; by default one per processor.",
        ),
        optional(
            "seed",
            ValueKind::Integer { min: 0, max: i64::MAX },
            "Seed of the order in which processes run, to repeat a schedule. By default each session draws its \
             own, so that the order can't be known beforehand; run.json records it. A pull request is measured \
             by the seed of its base.",
        ),
    ],
};

static REPORT: Section = Section {
    title: "[report]",
    doc: "In a pull request this is read from the base.",
    fields: &[defaulted(
        "disclose",
        ValueKind::Choice(&["all", "ratios"]),
        "\"all\"",
        "`ratios` keeps absolute times, sizes and counts out of every report, comment, summary and annotation. \
         `run.json` keeps them: it is what the verdict is made from.",
    )],
};

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_default_of_the_grammar_is_of_its_own_kind() {
        fn look(section: &'static Section, count: &mut usize) {
            for field in section.fields {
                if let Some(text) = field.default() {
                    let text = format!("default = {text}");
                    let document = toml_span::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
                    let mut problems = crate::config::problems::Collector::default();
                    crate::config::check::check(
                        document.pointer("/default").unwrap(),
                        &field.kind,
                        field.key,
                        &mut problems,
                    );
                    assert!(problems.finish(&text, Path::new("f")).is_empty(), "{} {text}", section.title);
                    *count += 1;
                }
                if let Some(inner) = field.kind.section() {
                    look(inner, count);
                }
            }
        }
        let mut count = 0;
        look(&ROOT, &mut count);
        assert!(count > 40, "{count}");
    }
}
