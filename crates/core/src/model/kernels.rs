//! Kernels of a measured module: the generated code of each, and its time according to the runtime's own
//! profiler.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::number::{self, Number};

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
