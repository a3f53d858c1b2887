//! One side of an execution of a suite on one testbed, with the identity of its tools.
//!
//! The state of the machine while a process was measured, including processes of other programs.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::benchmark::is_of_command;
use super::number::{self, Number};
use super::{Benchmark, BenchmarkName, Lint, LintCode};

words! {
    /// Base or head.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum SideName: "side" {
        Base = "base",
        Head = "head",
    }
}

impl SideName {
    pub const BOTH: [Self; 2] = Self::ALL;
}

/// The origin of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Origin {
    /// The format it was read from, for example `google-benchmark-json`.
    pub format: String,
    /// The reader's name for it: a path, or `-`.
    pub label: String,
    /// The labels of joined sessions, in order; empty if there is only one.
    pub sessions: Vec<String>,
    /// The load average during the last minute of each joined session whose file states it.
    pub loads: Vec<f64>,
}

impl Origin {
    /// Creates the origin of a run from one file.
    pub fn new(format: &str, label: &str) -> Self {
        Self { format: format.to_owned(), label: label.to_owned(), ..Self::default() }
    }
}

/// Facts about the host that the tool printed while it measured.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Context {
    pub date: Option<String>,
    pub host_name: Option<String>,
    pub executable: Option<String>,
    pub num_cpus: Option<u32>,
    #[serde(default, with = "number::optional")]
    #[schemars(with = "Option<Number>")]
    pub mhz_per_cpu: Option<f64>,
    pub cpu_scaling_enabled: Option<bool>,
    pub aslr_enabled: Option<bool>,
    /// `release` or `debug`, as the benchmark library was built.
    pub library_build_type: Option<String>,
    pub library_version: Option<String>,
    /// 1, 5 and 15 minute load averages.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "number::list")]
    #[schemars(with = "Vec<Number>")]
    pub load_avg: Vec<f64>,
}

impl Context {
    /// Returns the finding that the benchmark library, and thus probably the program, is a debug build. A baseline keeps
    /// the finding, and not the context.
    pub fn debug_build(&self) -> Option<Lint> {
        let is_debug = self.library_build_type.as_deref()?.eq_ignore_ascii_case("debug");
        is_debug.then(|| Lint::new(LintCode::DebugBuild, "the benchmark library is a debug build"))
    }
}

/// The fingerprint of a machine: the facts that must be equal to compare two runs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Testbed {
    /// Short stable digest of `facts`.
    pub id: String,
    /// Every fact that entered the fingerprint: processor model, core count, GPU, driver, kernel …
    pub facts: BTreeMap<String, String>,
    /// Facts that are recorded but may differ: host name, boot time, load.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub notes: BTreeMap<String, String>,
}

impl Testbed {
    /// Notes about the moment of measuring, which differ between two sessions of an unchanged machine.
    const MOMENTARY: [&str; 2] = ["boot-id", "load-average"];

    /// Returns the notes that don't change while the machine stays the same.
    pub fn lasting_notes(&self) -> impl Iterator<Item = (&String, &String)> {
        self.notes.iter().filter(|(key, _)| !Self::MOMENTARY.contains(&key.as_str()))
    }
}

/// The variation of a benchmark's metric on one testbed, measured by an A/A calibration. Each value is the
/// standard deviation of the natural logarithm (about a coefficient of variation).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Spread {
    pub within_process: Option<f64>,
    pub between_processes: Option<f64>,
    pub between_blocks: Option<f64>,
    pub between_sessions: Option<f64>,
}

/// The calibration is part of the run, so that a verdict needs nothing else.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Calibration {
    /// Text for the report that states who measured the spreads and when.
    pub source: String,
    /// By benchmark and metric name.
    pub spreads: BTreeMap<(BenchmarkName, String), Spread>,
}

/// Times of a session's benchmarks relative to a reference toolchain, block by block. Benchmarks and
/// reference are affected alike by the state of the machine on that day.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Anchor {
    /// Only sessions with the same reference toolchain can be compared.
    pub toolchain: Toolchain,
    /// The artifact of each benchmark that the anchor executed; only ratios to the same artifact can be compared.
    pub artifacts: BTreeMap<BenchmarkName, String>,
    /// Measured value / anchor's value, by benchmark and metric name.
    pub ratios: BTreeMap<(BenchmarkName, String), f64>,
}

/// A commit of the measured repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceCommit {
    /// The full identifier (40 digits).
    pub id: String,
    /// The first line of its message.
    pub subject: String,
    /// The name of its author.
    pub author: String,
}

/// One side of one execution of a suite on one testbed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Run {
    pub suite: Option<String>,
    /// Runs with the same session were measured together; their blocks pair up.
    pub session: Option<String>,
    pub origin: Origin,
    pub context: Context,
    pub testbed: Option<Testbed>,
    pub toolchain: Option<Toolchain>,
    /// The commit of the measured sources, if known.
    pub commit: Option<String>,
    /// The program of each benchgate command, by the command's name; the empty name stands for all
    /// benchmarks. This text shows whether several files come from one program, and is not stored.
    pub programs: BTreeMap<String, String>,
    pub benchmarks: Vec<Benchmark>,
    pub calibration: Option<Calibration>,
    /// Present if an anchor was measured in the same session.
    pub anchor: Option<Anchor>,
    /// True if the run was measured in shards, in each of which a row was judged alone until it was decided.
    /// Its rows are therefore judged alone again: rows from other machines could undo a decision after
    /// measuring has ended.
    pub in_shards: bool,
    /// Findings about the whole run; a finding about one row is stored with its benchmark.
    pub lints: Vec<Lint>,
}

impl Run {
    /// Returns the benchmarks by their names.
    pub fn by_name(&self) -> HashMap<&BenchmarkName, &Benchmark> {
        self.benchmarks.iter().map(|benchmark| (&benchmark.name, benchmark)).collect()
    }

    /// Returns whether the run states that it was measured with a debug build.
    pub fn is_debug_build(&self) -> bool {
        self.context.debug_build().is_some()
            || self.lints.iter().any(|lint| lint.code == LintCode::DebugBuild)
    }

    /// Returns what the run states about the program of a benchmark; empty if nothing.
    pub fn program(&self, benchmark: &BenchmarkName) -> String {
        let is_of = |name: &str| name.is_empty() || is_of_command(benchmark.as_str(), name);
        let stated = self.programs.iter().filter(|(name, _)| is_of(name)).map(|(_, program)| program);
        let stated: Vec<&str> = stated.chain(&self.context.executable).map(String::as_str).collect();
        stated.join(", ")
    }
}

/// Tools as they identified themselves after installation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Toolchain {
    /// The version that was pinned, for example `3.13.0`.
    pub version: String,
    /// The commit that `iree-compile --version` printed.
    pub compiler_commit: String,
    /// The commit that the runtime's own version file names.
    pub runtime_commit: String,
    /// The source of the tools: `pypi`, `url` or `path`.
    pub source: String,
}

/// The state of the machine during one process, as far as it matters for the verdict.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Telemetry {
    /// Position among all processes of the session.
    pub order: u32,
    /// Share of the measured processors' time that other programs used; absent if it can't be distinguished
    /// from zero.
    pub foreign_share: Option<f64>,
    /// Other programs that were observed: `process 4711 (python3)`.
    pub foreign: Vec<String>,
    /// Reasons for a reduced clock, in words; the power limit has its own field.
    pub throttled: Vec<String>,
    /// True if the power limit reduced the clock.
    pub power_capped: bool,
    /// Temperature of the device at the end, in degrees Celsius.
    pub temperature: Option<f64>,
}

/// A process that is not the run's.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ForeignRecord")]
pub struct ForeignProcess {
    pub pid: u32,
    /// Its short name in the kernel, if visible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Writes `process 4711 (python3)`.
impl fmt::Display for ForeignProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "process {} ({name})", self.pid),
            None => write!(f, "process {}", self.pid),
        }
    }
}
