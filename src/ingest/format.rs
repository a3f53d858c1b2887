//! The formats benchgate reads, and their names.

use std::fmt;

macro_rules! formats {
    ($($variant:ident $name:literal $description:literal;)+) => {
        /// A format of results. The kebab-case name is what `--format-in` takes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Format { $(#[doc = $description] $variant,)+ }

        impl Format {
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The kebab-case name.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// What it is, for `--help`.
            pub const fn description(self) -> &'static str {
                match self { $(Self::$variant => $description,)+ }
            }
        }
    };
}

formats! {
    RunJson "run-json" "benchgate's own run.json";
    GoogleBenchmarkJson "google-benchmark-json" "Google Benchmark and iree-benchmark-module, `--benchmark_format=json`";
    GoogleBenchmarkCsv "google-benchmark-csv" "the same, `--benchmark_format=csv`";
    GoogleBenchmarkConsole "google-benchmark-console" "the same, the table on the console";
    IreeRunModule "iree-run-module" "transcripts of iree-run-module";
    LatencyCsv "latency-csv" "latency.csv and iree_latency.csv: timestamp, model, device, time";
    ResultsJsonl "results-jsonl" "results.jsonl of the PyTorch/XLA torchbench runner";
    CompileBenchmarkJson "compile-benchmark-json" "the compile benchmark's JSON, backends side by side";
    CompileBenchmarkMarkdown "compile-benchmark-markdown" "the compile benchmark's Markdown tables";
    ConvLibrary "conv-library" "result lines of the igemm convolution library's driver";
    HyperfineJson "hyperfine-json" "hyperfine, `--export-json`";
    PytestBenchmarkJson "pytest-benchmark-json" "pytest-benchmark, `--benchmark-json`";
    NvbenchJson "nvbench-json" "nvbench, `--json`";
    CriterionEstimates "criterion-estimates" "criterion.rs, `new/estimates.json`";
    CriterionSample "criterion-sample" "criterion.rs, `new/sample.json`";
    Benchfmt "benchfmt" "Go's benchmark text, which benchstat reads";
    JmhJson "jmh-json" "JMH, `-rf json`";
    AsvJson "asv-json" "airspeed velocity, `results/MACHINE/COMMIT-ENVIRONMENT.json`";
}

impl Format {
    /// The inverse of [`Format::as_str`].
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|format| format.as_str() == name)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
