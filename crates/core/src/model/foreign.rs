//! Processes that are not the run's.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

/// `process 4711 (python3)`.
impl fmt::Display for ForeignProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "process {} ({name})", self.pid),
            None => write!(f, "process {}", self.pid),
        }
    }
}
