//! The state of the machine while a process was measured, including processes of other programs.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
