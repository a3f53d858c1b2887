//! The generated code of a measured module, kernel by kernel.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::number::Number;

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
    /// In the order of the module.
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
    /// The compiler's name of it without running numbers.
    pub name: String,
    /// SHA-256 of its instructions; empty if they were not found.
    pub sha256: String,
    /// By the name of the metric.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, Number>,
}
