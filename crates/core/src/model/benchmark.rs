//! A benchmark and everything known about it on one side. Its samples are grouped by the process that took them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use globset::{Glob, GlobMatcher};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::number::{self, Number};
use super::{
    Lint, Metric, Outcome, Telemetry, Verification, excerpt, is_in, name_their_sides, name_words, words,
};

/// The name that pairs a benchmark of one run with the same benchmark of another:
/// `model/target/function` in benchgate's own runs, the tool's own name in foreign files.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BenchmarkName(Arc<str>);

impl BenchmarkName {
    pub fn new(name: impl AsRef<str>) -> Self {
        Self(Arc::from(name.as_ref()))
    }

    pub fn from_parts(model: &str, target: &str, function: &str) -> Self {
        Self::new(format!("{model}/{target}/{function}"))
    }

    /// Returns the name of a benchmark that a command of a suite printed. The name includes that of the
    /// command, because two commands may print the same benchmark names.
    pub fn of_command(command: &str, printed: &str) -> Self {
        Self::new(format!("{command}/{printed}"))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns whether a benchmark is the command with this name, or was printed by it.
pub fn is_of_command(benchmark: &str, command: &str) -> bool {
    benchmark.strip_prefix(command).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl fmt::Debug for BenchmarkName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for BenchmarkName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A glob over benchmark names. If it can't be parsed, it matches only its own text: `config` reports the
/// error, and the set of benchmarks that it covers must not change silently.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(from = "String", into = "String")]
#[schemars(with = "String")]
pub struct BenchmarkGlob {
    text: String,
    /// Compiled once, because each acceptance is matched against every benchmark of every session.
    matcher: Option<GlobMatcher>,
}

impl BenchmarkGlob {
    pub fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        // Compiling a glob is slow, and a suite may list a thousand benchmarks by name.
        let has_wildcard = text.contains(['*', '?', '[', '{', '\\']);
        let glob = if has_wildcard { Glob::new(&text).ok() } else { None };
        Self { text, matcher: glob.map(|glob| glob.compile_matcher()) }
    }

    pub fn matches(&self, name: &str) -> bool {
        self.text == name || self.matcher.as_ref().is_some_and(|matcher| matcher.is_match(name))
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl PartialEq for BenchmarkGlob {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for BenchmarkGlob {}

impl From<String> for BenchmarkGlob {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<BenchmarkGlob> for String {
    fn from(glob: BenchmarkGlob) -> Self {
        glob.text
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct MetricSeries {
    pub metric: Metric,
    pub series: Series,
}

/// The executed files, identified by content. If both sides have equal artifacts, there is nothing to
/// compare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// SHA-256 of the compiled module.
    pub vmfb_sha256: String,
    /// SHA-256 over everything else that is executed: runtime, parameters, inputs, run flags.
    pub execution_sha256: String,
    /// The work that the module was asked to do; `None` in results of tools that do not record it.
    pub workload: Option<Workload>,
}

/// The work of a module, whichever compiler made it. Times are comparable only if the work is the same.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// The device that the runtime tools open.
    pub device: String,
    /// SHA-256 over the inputs, by content.
    pub inputs_sha256: String,
    /// SHA-256 over the function, the runtime flags with the files that they name, and the environment.
    pub settings_sha256: String,
    /// SHA-256 over the reference outputs, by content; absent if there are none.
    pub reference_sha256: Option<String>,
    /// SHA-256 over the reference outputs in double precision, by content; absent if there are none.
    pub reference64_sha256: Option<String>,
    /// Numbers (from 0) of the inputs that the first call changes. Later calls are timed with the changed
    /// values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed_inputs: Vec<u32>,
    /// Names of the tensors that each call of a PyTorch model leaves in attributes or global variables. The exported
    /// function does not compute them. Absent for other models, and in old files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<Vec<String>>,
}

/// A model × target × function, as measured on one side.
#[derive(Debug, Clone, PartialEq)]
pub struct Benchmark {
    pub name: BenchmarkName,
    /// `model`, `target`, `function`, and the axes of foreign runners.
    pub labels: BTreeMap<String, String>,
    pub outcome: Outcome,
    /// Metrics in order of importance; the first noisy one is usually [`Metric::LATENCY`].
    pub metrics: Vec<MetricSeries>,
    pub artifact: Option<Artifact>,
    pub verification: Option<Verification>,
    pub lints: Vec<Lint>,
    /// The state of the machine during each successful process, in the order they ran; empty if it was not
    /// watched.
    pub telemetry: Vec<Telemetry>,
    /// Time per kernel, if requested.
    pub profile: Option<Profile>,
    /// The generated code of the benchmark's module, if known.
    pub code: Option<GeneratedCode>,
    /// Statistics of the compiler about the module, by its own names: `execution.dispatch-count`.
    pub compiler: BTreeMap<String, u64>,
    /// SHA-256 of the kernel's instructions, if the benchmark describes the generated code of a kernel.
    pub code_sha256: Option<String>,
    /// The benchmark's outputs as a tool printed them, such as `4xf32=3 4 5 6`. Not stored.
    pub printed: Vec<String>,
}

/// Label with the name that a renamed benchmark had at base.
pub const RENAMED_FROM: &str = "renamed-from";

/// Label of a benchmark that is not timed; its value names the facts that are judged instead.
pub const JUDGED_BY: &str = "judged-by";
/// The value of [`JUDGED_BY`] for a benchmark that is judged by its outputs.
pub const JUDGED_BY_OUTPUTS: &str = "outputs";

/// Label of a benchmark that is judged by its generated code; its value is the processor architecture that
/// the code is for.
pub const ARCHITECTURE: &str = "architecture";

/// Metric of a foreign tool that measures the clock of the device, in hertz.
pub const DEVICE_CLOCK: &str = "device-clock";

/// Prefix of labels that state the environment in which a foreign tool ran the benchmark: `environment
/// python`. The tool may be the intended change, so a difference is reported, and the sides stay comparable.
pub const ENVIRONMENT: &str = "environment ";

/// Label with the first label of a Google Benchmark program's benchmark, and the words of its processes' labels
/// ([`LabelWords`](super::LabelWords)).
pub const LABEL: &str = "label";
pub const LABEL_WORDS: &str = "label words";

/// Label of a command that is timed as a whole, with the text that nearly all of its processes printed, and its values if
/// they printed nothing, or different texts.
pub const STANDARD_OUTPUT: &str = "standard output";
pub const SILENT: &str = "nothing";
pub const ANY_TEXT: &str = "text";

/// Label with the names of all facts that a foreign row states in separate fields. A row without this label
/// states none, so a fact that only one side states is a difference.
pub const FIELDS: &str = "fields";

/// Prefix of the labels for fields that a reader does not know, which keeps a file from setting a label that has a
/// meaning.
pub const FIELD: &str = "field ";

/// Begins the value of such a label for a measured number that differs from run to run; its range follows: `1.5 to 3`.
pub const VARIES: &str = "varies from ";

/// The least number of files in which a number that is always the same is a fact.
const FILES_OF_A_FACT: usize = 3;

/// Fields that name what a side wrote or ran, not what it worked on.
const NAMED_BY_SIDE: &str =
    "output outputs out outfile result results log filename program executable exe binary";

/// Returns whether two values of a label are the same, name an output or a program of each side (`base.json`, `head.json`), or
/// are measurements of similar size: the ranges would overlap if one were twice as large. A single run has one value.
fn is_alike(label: &str, one: &str, two: &str) -> bool {
    let range = |value: &str| -> Option<(f64, f64)> {
        match value.strip_prefix(VARIES) {
            Some(range) => {
                let (low, high) = range.split_once(" to ")?;
                low.parse().ok().zip(high.parse().ok())
            }
            None => value.split_whitespace().next()?.parse().ok().map(|value| (value, value)),
        }
    };
    let is_measured = label.starts_with(FIELD) && (one.starts_with(VARIES) || two.starts_with(VARIES));
    let overlap = |((low, high), (other_low, other_high)): ((f64, f64), (f64, f64))| {
        low.min(low / 2.0) <= other_high && other_low.min(other_low / 2.0) <= high
    };
    // A head that prints something does not do less than a silent base, and another text hides no slowdown.
    let is_no_less = label == STANDARD_OUTPUT && (one == SILENT || two != SILENT);
    let is_of_sides = || {
        let field = label.strip_prefix(FIELD).map(name_words);
        field.is_some_and(|name| words(&name).iter().any(|word| is_in(NAMED_BY_SIDE, word)))
            && name_their_sides(one, two)
    };
    one == two
        || is_no_less
        || is_of_sides()
        || is_measured && range(one).zip(range(two)).is_some_and(overlap)
}

/// The label of a command's benchmark that holds its variables and line, as the configuration states them.
pub const RUN_LINE: &str = "run-line";

/// The labels of a command's benchmark that hold the lines run before it was measured.
pub const SETUP: &str = "setup";
pub const PREPARE: &str = "prepare";

/// Maximum number of characters of a label's value in a finding.
const LONGEST_VALUE: usize = 80;

/// Returns whether a label distinguishes experiments that have equal names. The other labels are part of the
/// name, describe a process, or say how benchgate built a module.
pub fn is_axis(label: &str) -> bool {
    let is_other = matches!(
        label,
        "timestamp"
            | LABEL
            | "group"
            | "lowering"
            | "exporter"
            | "torchbench"
            | "target"
            | "device"
            | "backend"
            | RENAMED_FROM
            | RUN_LINE
            | JUDGED_BY
    );
    !is_other && !label.starts_with(ENVIRONMENT)
}

impl Benchmark {
    /// Creates a measured benchmark that has a name and no data.
    pub fn new(name: impl AsRef<str>) -> Self {
        Self {
            name: BenchmarkName::new(name),
            labels: BTreeMap::new(),
            outcome: Outcome::Ok,
            metrics: Vec::new(),
            artifact: None,
            verification: None,
            lints: Vec::new(),
            telemetry: Vec::new(),
            profile: None,
            code: None,
            compiler: BTreeMap::new(),
            code_sha256: None,
            printed: Vec::new(),
        }
    }

    /// The labels that distinguish experiments with equal names, as pairs of axis and value.
    pub fn axes(&self) -> impl Iterator<Item = (&String, &String)> {
        self.labels.iter().filter(|(axis, _)| is_axis(axis))
    }

    /// Returns the axis in which another result of the same name differs, with both values, as `batch: 1 /
    /// 2`.
    pub fn differing_axis(&self, other: &Self) -> Option<String> {
        let fields = |side: &Self| side.labels.get(FIELDS).map_or_else(|| "none".to_owned(), String::clone);
        let (ours, theirs) = (fields(self), fields(other));
        let of_fields = (FIELDS, ours.as_str(), theirs.as_str());
        // The words of labels can vary from process to process, which the gate takes into account.
        let of_axes = self
            .axes()
            .filter(|(axis, _)| *axis != LABEL_WORDS)
            .filter_map(|(axis, one)| Some((axis.as_str(), one.as_str(), other.labels.get(axis)?.as_str())));
        let mut differing = of_axes.chain([of_fields]);
        // A value that all files of one side state was not measured, although the other side's files differ.
        let is_fact =
            self.metrics.first().and_then(|series| series.series.sessions()) >= Some(FILES_OF_A_FACT);
        let varies = |one: &str, two: &str| is_fact && !one.starts_with(VARIES) && two.starts_with(VARIES);
        let (axis, one, two) =
            differing.find(|(axis, one, two)| !is_alike(axis, one, two) || varies(one, two))?;
        Some(format!("{axis}: {} / {}", excerpt(one, LONGEST_VALUE), excerpt(two, LONGEST_VALUE)))
    }

    /// Returns what differs in the environment of another result of the same name, with both values, as
    /// `python: 3.11 / 3.12`.
    pub fn differing_environment(&self, other: &Self) -> Vec<String> {
        let stated = |label: &str| {
            let values =
                [self, other].map(|side| side.labels.get(label).map_or("not stated", String::as_str));
            let [one, two] = values.map(|value| excerpt(value, LONGEST_VALUE));
            let name = label.strip_prefix(ENVIRONMENT)?;
            (values[0] != values[1]).then(|| format!("{name}: {one} / {two}"))
        };
        let [ours, theirs] =
            [self, other].map(|side| side.labels.keys().filter(|label| label.starts_with(ENVIRONMENT)));
        let labels: BTreeSet<&String> = ours.chain(theirs).collect();
        labels.into_iter().filter_map(|label| stated(label)).collect()
    }

    /// Returns a line that ran before this benchmark on only one of the two sides, as `prepare: none /
    /// ./warm`.
    pub fn differing_preparation(&self, other: &Self) -> Option<String> {
        [SETUP, PREPARE].into_iter().find_map(|label| {
            let [one, two] = [self, other].map(|side| side.labels.get(label).map_or("", String::as_str));
            let shown =
                |line: &str| if line.is_empty() { "none".to_owned() } else { excerpt(line, LONGEST_VALUE) };
            (one != two).then(|| format!("{label}: {} / {}", shown(one), shown(two)))
        })
    }

    /// Gives the benchmark the name of another experiment to compare it with. Its axis labels are removed,
    /// because the difference between the two is intended.
    pub fn rename(&mut self, name: BenchmarkName) {
        if self.name != name {
            self.labels.retain(|axis, _| !is_axis(axis));
            self.name = name;
        }
    }

    /// Returns the values of the metric with this name.
    pub fn metric(&self, name: &str) -> Option<&MetricSeries> {
        self.metrics.iter().find(|series| series.metric.name == name)
    }
}

/// Position of a process in a paired schedule: `block` counts the quadruples of one benchmark, `slot` is its place (0
/// to 3) in the quadruple. Base and head share block numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BlockSlot {
    pub block: u32,
    pub slot: u8,
}

/// One fresh start of the benchmark tool: the sampling unit. Repetitions inside a process refine its location
/// but don't show how much processes differ from each other.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Process {
    /// One value per repetition, in the metric's unit, in the order taken.
    pub samples: Vec<f64>,
    /// Place in the paired schedule; absent for unpaired runs and foreign files.
    pub slot: Option<BlockSlot>,
    /// Number of the session that started the process, for a side that consists of several files (one session
    /// each).
    pub session: u32,
    /// Iterations of one repetition; `None` if they are unknown or differ.
    pub iterations: Option<u64>,
    /// Sample standard deviation, if the tool stated it more precisely than it printed the samples.
    pub stated_stddev: Option<f64>,
    /// Start of the process, RFC 3339, if known.
    pub started: Option<Arc<str>>,
    /// Date that the row of a foreign file states, as printed, so its format, zone and resolution are unknown.
    pub dated: Option<Arc<str>>,
}

/// A tool's summary of repetitions whose values it did not keep.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Summary {
    /// Number of repetitions summarized; `None` if the tool did not say.
    pub n: Option<u64>,
    pub mean: Option<f64>,
    pub median: Option<f64>,
    /// Sample standard deviation (n − 1).
    pub stddev: Option<f64>,
    /// First and third quartile.
    pub q1: Option<f64>,
    pub q3: Option<f64>,
    pub min: Option<f64>,
    pub max: Option<f64>,
    /// The 99 % confidence interval of the median.
    pub interval: Option<(f64, f64)>,
    /// Number of the session, as in [`Process`].
    pub session: u32,
}

/// The values of a benchmark's metric.
#[derive(Debug, Clone, PartialEq)]
pub enum Series {
    /// Every sample of every process, in the order the processes ran.
    Processes(Vec<Process>),
    /// Only summaries were kept, one per process.
    Summaries(Vec<Summary>),
    /// A deterministic value.
    Exact(f64),
}

impl Series {
    /// Returns the number of processes that the values are from; 1 for a deterministic value.
    pub fn processes(&self) -> usize {
        match self {
            Self::Processes(processes) => processes.len(),
            Self::Summaries(summaries) => summaries.len(),
            Self::Exact(_) => 1,
        }
    }

    /// Returns the number of sessions that the values are from; `None` for a deterministic value.
    pub fn sessions(&self) -> Option<usize> {
        let sessions: BTreeSet<u32> = match self {
            Self::Processes(processes) => processes.iter().map(|process| process.session).collect(),
            Self::Summaries(summaries) => summaries.iter().map(|summary| summary.session).collect(),
            Self::Exact(_) => return None,
        };
        Some(sessions.len())
    }
}

/// The time one iteration spends in each kernel, from processes that ran under the runtime's profiler. Context for people
/// and never judged: a profiled process is slower than a measured one.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ProfileRecord")]
pub struct Profile {
    /// Processes that were profiled. The quickest time of each kernel is kept, because interference only adds time.
    pub processes: u32,
    /// Iterations in each.
    pub iterations: u32,
    /// The kernels in the order of the module.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernels: Vec<Kernel>,
    /// The reason why there are no kernels.
    pub problem: Option<String>,
}

/// One kernel of the module.
#[serde_with::apply(f64 => #[serde(with = "number")] #[schemars(with = "Number")])]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "KernelRecord")]
pub struct Kernel {
    /// The compiler's name for the kernel, such as `main_dispatch_9_batch_matmul_4x197x197x48_f32`.
    pub name: String,
    /// Launches in one iteration.
    pub calls: f64,
    /// Total time in one iteration, in nanoseconds.
    #[serde(rename = "ns")]
    pub nanoseconds: f64,
}

/// The generated code of a module whose time is measured. The same module has the same facts on every machine; they
/// explain its time and don't decide it.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "GeneratedCodeRecord")]
pub struct GeneratedCode {
    /// The processor that runs it: `gfx942`, `x86-64`.
    pub architecture: String,
    /// Facts of all kernels together, by the name of the metric.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, Number>,
    /// The kernels in the order of the module.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernels: Vec<KernelCode>,
    /// The reason why there are no kernels.
    pub problem: Option<String>,
}

/// The code of one kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "KernelCodeRecord")]
pub struct KernelCode {
    /// The compiler's name for the kernel without running numbers.
    pub name: String,
    /// SHA-256 of its instructions; empty if they were not found.
    pub sha256: String,
    /// By the name of the metric.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, Number>,
}
