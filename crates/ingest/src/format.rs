//! The formats that benchgate reads, and their names.

use strum::{EnumMessage, VariantArray};

/// A result format. Its kebab-case name is the value of `--format-in`, and its documentation is the help
/// text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[derive(strum::Display, strum::EnumMessage, strum::EnumString, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum Format {
    /// benchgate's own run.json
    RunJson,
    /// Google Benchmark and iree-benchmark-module, `--benchmark_format=json`
    GoogleBenchmarkJson,
    /// the same, `--benchmark_format=csv`
    GoogleBenchmarkCsv,
    /// the same, console table
    GoogleBenchmarkConsole,
    /// transcripts of iree-run-module
    IreeRunModule,
    /// CSV with timestamp, model, device and time in each row (latency.csv, iree_latency.csv)
    LatencyCsv,
    /// results.jsonl of the PyTorch/XLA torchbench runner
    ResultsJsonl,
    /// JSON of a PyTorch compiler benchmark: `model`, `device`, and one `backend` in each of `results`
    CompileBenchmarkJson,
    /// the same, in Markdown tables with a latency column
    CompileBenchmarkMarkdown,
    /// result lines of a convolution library's driver: `[fwd:40] KERNEL, …, cost:0.183ms, …`
    ConvLibrary,
    /// hyperfine, `--export-json`
    HyperfineJson,
    /// pytest-benchmark, `--benchmark-json`
    PytestBenchmarkJson,
    /// nvbench, `--json`
    NvbenchJson,
    /// criterion.rs, `new/estimates.json`
    CriterionEstimates,
    /// criterion.rs, `new/sample.json`
    CriterionSample,
    /// Go's benchmark text, which benchstat reads
    Benchfmt,
    /// Go's benchmark text in the events of `go test -json`
    GoTestJson,
    /// the text of `cargo bench`: libtest and criterion.rs
    CargoBench,
    /// JMH, `-rf json`
    JmhJson,
    /// airspeed velocity, `results/MACHINE/COMMIT-ENVIRONMENT.json`
    AsvJson,
    /// github-action-benchmark's list of name, unit and value, where smaller is better
    CustomSmallerIsBetter,
    /// the same list, where bigger is better
    CustomBiggerIsBetter,
    /// Bencher's metric format (BMF)
    BencherJson,
    /// generated code: IREE modules (.vmfb), AMD code objects (.hsaco), PTX, SPIR-V, x86-64 and AArch64 ELF
    CompiledCode,
}

/// The unit that one file contains several times. A verdict about the program depends on the differences at
/// the next higher level, which the file does not show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum Level {
    /// The file has the repetitions of one process.
    Repetitions,
    /// The file has the processes of one session.
    Processes,
}

impl Format {
    /// Returns the unit that one file in this format contains several times.
    pub const fn level(self) -> Level {
        match self {
            Self::RunJson | Self::HyperfineJson | Self::JmhJson | Self::LatencyCsv | Self::ResultsJsonl => {
                Level::Processes
            }
            _ => Level::Repetitions,
        }
    }

    pub const ALL: &'static [Self] = Self::VARIANTS;

    pub fn description(self) -> &'static str {
        self.get_documentation().unwrap_or_default()
    }
}
