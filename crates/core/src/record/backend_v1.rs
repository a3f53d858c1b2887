//! Experiments on backends other than IREE, as `run.json` holds them: context for people, never judged.

use crate::model::{Verification, number};

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::{Number, OutcomeRecord};

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
