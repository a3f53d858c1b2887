//! Time per kernel, as `run.json` holds it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::{Kernel, Profile};

use super::Number;

/// What one iteration spends in each kernel, from processes that ran under the runtime's profiler.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProfileRecord {
    /// Processes that were profiled. Of each kernel the quickest is kept: interference only adds time.
    pub processes: u32,
    /// Iterations in each.
    pub iterations: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernels: Vec<KernelRecord>,
    /// Why there are no kernels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// One kernel of the module.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KernelRecord {
    /// The compiler's name of it.
    pub name: String,
    /// Launches in one iteration.
    pub calls: Number,
    /// Time of all of them in one iteration, in nanoseconds.
    pub ns: Number,
}

impl From<&ProfileRecord> for Profile {
    fn from(record: &ProfileRecord) -> Self {
        let kernel = |kernel: &KernelRecord| Kernel {
            name: kernel.name.clone(),
            calls: kernel.calls.0,
            nanoseconds: kernel.ns.0,
        };
        Self { kernels: record.kernels.iter().map(kernel).collect(), problem: record.problem.clone() }
    }
}

impl From<&Kernel> for KernelRecord {
    fn from(kernel: &Kernel) -> Self {
        Self { name: kernel.name.clone(), calls: Number(kernel.calls), ns: Number(kernel.nanoseconds) }
    }
}
