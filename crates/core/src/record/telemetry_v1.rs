//! The part of `run.json`, version 1, that describes the machine while a process was measured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::{ForeignProcess, Telemetry};

use super::Number;

/// The machine over the time of one process.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TelemetryRecord {
    /// The processors that the process had to itself; absent if it had none.
    pub cpu: Option<CpuTelemetryRecord>,
    /// The GPUs that it may have used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<GpuTelemetryRecord>,
}

/// The measured processors over the time of one process.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CpuTelemetryRecord {
    /// Share of their time that other programs took, 0 to 1.
    pub foreign: Number,
    /// Share that the hypervisor gave to other machines.
    pub stolen: Number,
    /// The share that the kernel's counters can't distinguish from zero over so short a time.
    pub resolution: Number,
    /// Times that one of them lowered its clock because of heat; absent if the machine does not count them.
    pub throttled: Option<u64>,
    /// Other programs that ran there at the end.
    pub by: Option<ForeignProcess>,
}

/// A GPU over the time of one process. Values that its driver does not report are absent.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GpuTelemetryRecord {
    /// The chip: its UUID, or its place on the bus.
    pub id: String,
    /// Readings taken, the first before the process and the last after it.
    pub readings: u32,
    pub clock_mhz: Option<RangeRecord>,
    pub memory_clock_mhz: Option<RangeRecord>,
    pub temperature_celsius: Option<RangeRecord>,
    pub power_watts: Option<RangeRecord>,
    /// Most memory in use, by all processes together.
    pub memory_used_bytes: Option<u64>,
    /// Limits that held the clock down in any reading: `power`, `thermal`, `hardware`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub throttled: Vec<String>,
    /// Time during which the power limit lowered the clock, as the driver counted it.
    pub power_capped_seconds: Option<Number>,
    /// Time during which heat lowered the clock.
    pub thermal_seconds: Option<Number>,
    /// True if benchgate locked the clock.
    pub clock_held: Option<bool>,
    /// Processes on it that are not the run's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub foreign: Vec<ForeignProcess>,
}

/// Least and greatest of the readings, and the last one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RangeRecord {
    pub min: Number,
    pub max: Number,
    pub last: Number,
}

/// Share of a processor's time that is too small to change a result if one process of many loses it.
const LITTLE: f64 = 0.05;

/// Returns the part that matters for the verdict. `order` is the position of the process among all processes
/// of the session.
pub(super) fn telemetry(order: u32, record: &TelemetryRecord) -> Telemetry {
    let mut seen = Telemetry { order, ..Telemetry::default() };
    if let Some(cpu) = &record.cpu {
        let share = cpu.foreign.0 + cpu.stolen.0;
        if share > cpu.resolution.0.max(LITTLE) {
            seen.foreign_share = Some(share);
            seen.foreign.extend(cpu.by.as_ref().map(ToString::to_string));
        }
        if cpu.throttled.is_some_and(|times| times > 0) {
            seen.throttled.push("the processor's heat".to_owned());
        }
    }
    for gpu in &record.gpus {
        seen.foreign.extend(gpu.foreign.iter().map(ToString::to_string));
        let counted = |seconds: Option<Number>| seconds.is_some_and(|seconds| seconds.0 > 0.0);
        let says = |reason: &str| gpu.throttled.iter().any(|said| said == reason);
        seen.power_capped |= says("power") || counted(gpu.power_capped_seconds);
        if says("thermal") || counted(gpu.thermal_seconds) {
            seen.throttled.push("heat".to_owned());
        }
        if says("hardware") {
            seen.throttled.push("the power supply or a power brake".to_owned());
        }
        let last = gpu.temperature_celsius.map(|range| range.last.0);
        seen.temperature = [seen.temperature, last].into_iter().flatten().reduce(f64::max);
    }
    seen
}
