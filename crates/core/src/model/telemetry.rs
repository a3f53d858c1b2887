//! The state of the machine while a process was measured, and processes that are not the run's.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The state of the machine over the time of one process, as far as it bears on the verdict.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Telemetry {
    /// Position among all processes of the session.
    pub order: u32,
    /// Share of the measured processors' time that other programs took; absent if it was too small to differ from
    /// none.
    pub foreign_share: Option<f64>,
    /// Other programs that were observed: `process 4711 (python3)`.
    pub foreign: Vec<String>,
    /// Why the clock was held down, in words; without the power limit.
    pub throttled: Vec<String>,
    /// The power limit held the clock down.
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

/// `process 4711 (python3)`.
impl fmt::Display for ForeignProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "process {} ({name})", self.pid),
            None => write!(f, "process {}", self.pid),
        }
    }
}
