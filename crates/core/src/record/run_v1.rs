//! `run.json`, version 1. Frozen: see the rule in [`crate::record`] before touching a field.

use std::collections::{BTreeMap, HashSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::{
    BlockSlot, Context, GeneratedCode, Lint, Metric, Policy, Profile, SequentialPolicy, SideName, Testbed,
    Toolchain, Verification, is_of_command, number,
};

use super::schema::content_hash;
use super::{
    ArtifactRecord, Number, OutcomeRecord, RunSchema, SampleMap, StageRecord, TelemetryRecord, ValueRecord,
    schema,
};

/// One execution of a suite on one testbed: everything a verdict needs, with every sample.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunFile {
    pub schema: RunSchema,
    /// The version of benchgate that wrote the file.
    pub benchgate: String,
    pub suite: String,
    /// Identifies the job: processes of one session were measured together on one machine.
    pub session: String,
    /// When the run began, RFC 3339.
    pub created: String,
    /// True if everything planned was done. An incomplete run is never judged.
    pub complete: bool,
    pub design: Design,
    /// Seed of the schedule's order.
    pub seed: u64,
    pub measure: MeasureRecord,
    pub testbed: Testbed,
    /// Every metric that is named below, once.
    pub metrics: Vec<Metric>,
    /// One (head) or two (base, head).
    pub sides: Vec<SideRecord>,
    /// Results of the same models on backends other than IREE: context for people, never judged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backends: Vec<BackendRecord>,
    /// The bundle, if it was compiled on another machine.
    pub bundle: Option<BundleOrigin>,
    /// Set if this is one shard of a suite, which can't be judged alone.
    pub shard: Option<ShardRecord>,
    /// The shards that were merged into this run; empty if one machine measured all of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shards: Vec<MergedShardRecord>,
    /// The suite's policy when the run was made.
    pub gate: Option<Policy>,
    /// The calibration is part of the run, so that a verdict needs nothing else.
    pub calibration: Option<CalibrationRecord>,
    /// Findings about the whole run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lints: Vec<Lint>,
}

impl RunFile {
    /// Returns the suite's policy; the default if the file has none.
    pub fn policy(&self) -> Policy {
        let sequential = self.blocks().unwrap_or_default();
        Policy { sequential, ..self.gate.clone().unwrap_or_default() }
    }

    /// Returns the block limits of the run. The limits belong to the measurement, whatever policy judges it.
    pub fn blocks(&self) -> Option<SequentialPolicy> {
        let (min_blocks, max_blocks) = self.measure.min_blocks.zip(self.measure.max_blocks)?;
        Some(SequentialPolicy { min_blocks, max_blocks })
    }

    /// Returns the file's bytes. Equal values give equal bytes.
    pub fn to_json(&self) -> Vec<u8> {
        schema::indented(self)
    }

    /// Writes the hash of a shard's content into it.
    pub fn seal_shard(&mut self) {
        let found = self.shard_hash();
        if let Some(shard) = &mut self.shard {
            shard.sha256 = found;
        }
    }

    /// Returns whether a shard's content matches its hash.
    pub fn has_shard_seal(&mut self) -> bool {
        let stated = self.shard.as_ref().and_then(|shard| shard.sha256.clone());
        stated.is_some() && stated == self.shard_hash()
    }

    /// Works without a copy, because a shard may be large.
    fn shard_hash(&mut self) -> Option<String> {
        let stated = self.shard.as_mut()?.sha256.take();
        let found = content_hash(self);
        if let Some(shard) = &mut self.shard {
            shard.sha256 = stated;
        }
        Some(found)
    }

    /// Returns every process once. A command's process is in the record of each benchmark that it printed.
    pub fn processes(&self) -> impl Iterator<Item = &ProcessRecord> {
        let all = self.sides.iter().flat_map(|side| &side.benchmarks).flat_map(|record| &record.processes);
        let mut known = HashSet::new();
        all.filter(move |process| known.insert((process.order, &process.started)))
    }

    /// Returns the name that the suite declares for this benchmark: the command that printed it, or its own.
    pub fn declared_name<'a>(&'a self, benchmark: &'a str) -> &'a str {
        let commands = self.sides.iter().flat_map(|side| &side.commands).map(|command| command.name.as_str());
        commands.into_iter().find(|command| is_of_command(benchmark, command)).unwrap_or(benchmark)
    }

    pub fn side(&self, name: SideName) -> Option<&SideRecord> {
        self.sides.iter().find(|side| side.name == name)
    }
}

impl SideRecord {
    /// Returns whether a model was measured, which needs tools; a command does not.
    pub fn has_models(&self) -> bool {
        let of_model = |name| !self.commands.iter().any(|command| is_of_command(name, &command.name));
        self.benchmarks.iter().any(|record| of_model(record.name.as_str()))
    }
}

/// The schedule of processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Design {
    /// One side, processes one after another.
    Single,
    /// Two sides in blocks of four, with one coin a block: base head head base, or its mirror. No longer written.
    Abba,
    /// Two sides in blocks of two pairs, with a coin for each pair.
    Pairs,
}

/// Settings of the benchmark tool.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MeasureRecord {
    /// Repetitions inside one process; absent, like the next three, where it was chosen for each benchmark.
    pub repetitions: Option<u32>,
    /// Iterations of one repetition, if a count was requested instead of a time.
    pub iterations: Option<u32>,
    /// Least time of one repetition.
    pub min_time_ns: Option<u64>,
    /// Untimed warm-up before the first repetition.
    pub warmup_ns: Option<u64>,
    /// Processes of each benchmark, for a run with one side.
    pub processes: Option<u32>,
    /// Blocks before the first look, for a run with two sides.
    pub min_blocks: Option<u32>,
    /// Blocks after which an open row is inconclusive.
    pub max_blocks: Option<u32>,
    /// Processors that a CPU target was pinned to; absent if it was not pinned.
    pub cpus: Option<Vec<u32>>,
}

/// Measuring time of each process of a benchmark, as requested or as chosen in a short trial.
#[skip_serializing_none]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TimingRecord {
    /// Repetitions inside one process; for a command that is timed as a whole, processes in one slot of the schedule.
    pub repetitions: u32,
    /// Iterations of one repetition, if a count was requested instead of a time.
    pub iterations: Option<u32>,
    /// Minimum time of one repetition.
    pub min_time_ns: u64,
    /// Untimed warm-up before the first repetition.
    pub warmup_ns: u64,
}

/// One side of the run.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SideRecord {
    pub name: SideName,
    /// True if base is the frozen toolchain of `[baseline] anchor`. Head's ratio to it is stored and compared with
    /// stored ratios; head is never judged against it directly.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub anchor: bool,
    /// The commit of the measured sources.
    pub commit: Option<String>,
    /// True if the sources differed from that commit.
    pub dirty: Option<bool>,
    /// Absent if the tools were not available, or if no model needs them.
    pub toolchain: Option<Toolchain>,
    /// Compile flags of this side.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
    /// Flags of this side for the runtime tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub run_flags: Vec<String>,
    /// The commands that were measured on this side.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<CommandRecord>,
    /// Facts about the host that the benchmark tool printed.
    pub context: Option<Context>,
    pub benchmarks: Vec<BenchmarkRecord>,
}

/// A command whose processes were measured.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommandRecord {
    /// The name, equal on both sides.
    pub name: String,
    /// Its words, quoted for a shell, or the line that a shell executed.
    pub command: String,
    /// True if a shell executed it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shell: bool,
    /// The line that ran once before it was measured, as the configuration has it.
    pub setup: Option<String>,
    /// The line that ran before each of its processes, as the configuration has it.
    pub prepare: Option<String>,
    /// SHA-256 of the program's file; absent if it was not found.
    pub program_sha256: Option<String>,
    /// Processes that ran before the measured ones.
    pub warmup: u32,
    /// The keys of the command's table in the configuration that a change can edit (`run`, `build`, `folder`,
    /// `env.NAME`), with their placeholders. Empty outside a suite.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub configured: BTreeMap<String, String>,
}

/// Model × target × function on this side.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BenchmarkRecord {
    /// `model/target/function`; unique within the side.
    pub name: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    pub outcome: OutcomeRecord,
    pub artifact: Option<ArtifactRecord>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageRecord>,
    pub verification: Option<Verification>,
    /// Measuring time of its processes; absent if none was started.
    pub timing: Option<TimingRecord>,
    /// Every process that was started, in the order they ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<ProcessRecord>,
    /// Metrics with one value for the benchmark.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<ValueRecord>,
    /// Time per kernel, from separate processes: context for people, never judged.
    pub profile: Option<Profile>,
    /// The generated code of the module: context for people, never judged.
    pub code: Option<GeneratedCode>,
    /// Statistics of the compiler about the module, by its own names: `execution.dispatch-count`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub compiler: BTreeMap<String, u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lints: Vec<Lint>,
}

/// One fresh start of the benchmark tool.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProcessRecord {
    /// Place in the paired schedule; absent for `single`.
    pub slot: Option<BlockSlot>,
    /// Position among all processes of the session, from 0.
    pub order: u32,
    /// RFC 3339.
    pub started: String,
    /// Wall-clock time from start to end of the process.
    pub seconds: Number,
    /// Why it failed; absent if it worked. A failed process fails its benchmark.
    pub failure: Option<String>,
    pub peak_memory_bytes: Option<u64>,
    /// 1, 5 and 15 minute load averages when it began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(with = "number::list")]
    #[schemars(with = "Vec<Number>")]
    pub load_avg: Vec<f64>,
    /// Path of the log, relative to the run file.
    pub log: Option<String>,
    /// Iterations in each repetition.
    pub iterations: Option<u64>,
    /// The state of the machine during the process.
    pub telemetry: Option<TelemetryRecord>,
    /// By metric name: one value per repetition, in the metric's unit, in the order taken.
    #[serde(default, skip_serializing_if = "SampleMap::is_empty")]
    #[schemars(with = "BTreeMap<String, Vec<Number>>")]
    pub samples: SampleMap,
    /// By metric name: the standard deviation of the repetitions that the tool stated, where it printed them rounded.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stated_stddev: BTreeMap<String, Number>,
}

/// The bundle that a run measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BundleOrigin {
    /// Digest of the whole archive.
    pub sha256: String,
    /// When it was made, RFC 3339.
    pub created: String,
    /// Facts of the machine that compiled.
    pub made_on: BTreeMap<String, String>,
}

/// Marks a run file as one shard of a suite, which can't be judged alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShardRecord {
    /// SHA-256 of the plan.
    pub plan: String,
    pub shard: u32,
    /// A later attempt at a shard replaces an earlier one.
    pub attempt: u32,
    /// SHA-256 of the file without this digest, so that `merge` notices a damaged or edited file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// The machine on which a shard of a merged run was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MergedShardRecord {
    pub plan: String,
    pub shard: u32,
    pub attempt: u32,
    pub session: String,
    pub testbed: Testbed,
}

/// An A/A calibration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CalibrationRecord {
    /// Who measured it and when, in words.
    pub source: String,
    pub spreads: Vec<SpreadRecord>,
}

/// The variation of a metric of a benchmark. Each value is a standard deviation of the natural logarithm.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SpreadRecord {
    pub benchmark: String,
    pub metric: String,
    pub within_process: Option<Number>,
    pub between_processes: Option<Number>,
    pub between_blocks: Option<Number>,
    pub between_sessions: Option<Number>,
}

// Experiments on backends other than IREE are context for people, and never judged.

/// One experiment: a model on a backend, with its axes.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BackendRecord {
    /// Name of the suite's model.
    pub model: String,
    /// The benchmarks of the same model on the same device: the experiment is compared with these.
    #[serde(rename = "beside", default, skip_serializing_if = "Vec::is_empty")]
    pub benchmarks: Vec<String>,
    /// `eager`, `torchscript`, `inductor`, `onnxruntime`, `xla-lazy`, `xla-dynamo`, `tensorrt`.
    pub backend: String,
    /// `cpu` or `cuda`.
    pub device: String,
    /// `eval`, or `train`: forward, loss and backward.
    pub test: String,
    /// Absent for the model's own.
    pub batch_size: Option<u32>,
    /// Absent for the model's own.
    pub dtype: Option<String>,
    /// Absent for torch's own.
    pub matmul_precision: Option<String>,
    pub outcome: OutcomeRecord,
    /// Outputs, or the loss and every gradient, against eager.
    pub verification: Option<Verification>,
    /// Imported packages with their versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub versions: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<BackendProcessRecord>,
}

/// One fresh start of the backend.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BackendProcessRecord {
    /// RFC 3339.
    pub started: String,
    /// Wall-clock time from start to end of the process.
    pub seconds: Number,
    /// Why it failed; absent if it worked.
    pub failure: Option<String>,
    pub peak_memory_bytes: Option<u64>,
    /// 1, 5 and 15 minute load averages when it began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(with = "number::list")]
    #[schemars(with = "Vec<Number>")]
    pub load_avg: Vec<f64>,
    /// Path of the log, relative to the run file.
    pub log: Option<String>,
    /// Iterations in each repetition.
    pub iterations: Option<u64>,
    /// Time from the untouched model to the end of its first call, if the backend compiles and its cache was
    /// empty.
    pub compile_seconds: Option<Number>,
    /// Nanoseconds of one iteration, one value per repetition, in the order taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(with = "number::list")]
    #[schemars(with = "Vec<Number>")]
    pub latency: Vec<f64>,
    /// The backend's own metrics by the names of results.jsonl, one value per repetition.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, Vec<Number>>,
    /// Memory at the edges of its stages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory: Vec<MemoryRecord>,
    /// Values that `--collect` asked for, taken after the last repetition.
    pub collected: Option<CollectedRecord>,
}

/// Numbers that are taken after the measurement. Values that were not requested are absent; requested events that did
/// not happen are empty.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CollectedRecord {
    /// torch.compile's counters since the process began: by group, then by name.
    pub dynamo_counters: Option<BTreeMap<String, BTreeMap<String, u64>>>,
    pub profile: Option<ProfiledTimesRecord>,
    /// By aten operator; on PyTorch/XLA only those that it has no lowering for.
    pub operators: Option<BTreeMap<String, OperatorTimesRecord>>,
}

/// Totals of torch's profiler over all operators.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProfiledTimesRecord {
    /// Number of profiled iterations; the times cover all of them.
    pub iterations: u32,
    pub cpu_seconds: Number,
    pub cuda_seconds: Number,
}

/// One operator over all profiled iterations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OperatorTimesRecord {
    pub calls: u64,
    /// Time without the operators that this operator calls.
    pub self_cpu_seconds: Number,
    pub cpu_seconds: Number,
    /// Time without the operators that this operator calls.
    pub self_cuda_seconds: Number,
    pub cuda_seconds: Number,
}

/// Memory held at one moment.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemoryRecord {
    /// Since the process began its work.
    pub seconds: Number,
    pub host_bytes: u64,
    pub device_bytes: Option<u64>,
    /// The stage that had just ended.
    pub stage: String,
}
