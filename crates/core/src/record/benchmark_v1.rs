//! The parts of a benchmark that several stored files share. Frozen: see the rule in [`crate::record`].
//!
//! Samples of a process by metric. The metrics are in a list, because a process has only two or three of them
//! and a tree would take more memory than the samples do.
//!
//! The part of `run.json`, version 1, that describes the machine while a process was measured.

use schemars::JsonSchema;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_with::skip_serializing_none;

use crate::model::{Artifact, BlockSlot, ForeignProcess, Outcome, Stage, Telemetry, Workload};

use super::{Number, RecordError, wrong};

/// The outcome of the benchmark.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutcomeRecord {
    pub status: OutcomeStatus,
    /// The stage that failed; present exactly for `failed`.
    pub stage: Option<Stage>,
    /// In words; present for everything but `ok`.
    pub why: Option<String>,
}

impl OutcomeRecord {
    /// Rejects an outcome that contradicts itself; `at` is the path of its benchmark.
    pub(super) fn check(&self, at: &str) -> Result<(), RecordError> {
        if (self.status == OutcomeStatus::Failed) != self.stage.is_some() {
            let stages = Stage::ALL.map(Stage::as_str).join(", ");
            let what =
                format!("a failed outcome needs a stage ({stages}), and no other outcome may have one");
            return Err(wrong(format!("{at}.outcome"), what));
        }
        if (self.status == OutcomeStatus::Ok) == self.why.is_some() {
            return Err(wrong(format!("{at}.outcome"), "every outcome except ok has a reason"));
        }
        Ok(())
    }
}

/// The four outcomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum OutcomeStatus {
    Ok,
    Unsupported,
    Failed,
    Skipped,
}

/// The executed files, by content.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArtifactRecord {
    /// SHA-256 of the compiled module.
    pub vmfb_sha256: String,
    pub vmfb_bytes: u64,
    /// SHA-256 over everything else that is executed: runtime, parameters, inputs, run flags.
    pub execution_sha256: String,
    pub dispatch_count: Option<u64>,
    /// The work that the module was asked to do; absent in files of older versions.
    pub workload: Option<Workload>,
}

/// One stage of one benchmark.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StageRecord {
    pub stage: Stage,
    pub status: StageStatus,
    /// Wall-clock time it took in this run; for `cached`, the time to find it.
    pub seconds: Number,
    /// For `cached`, the time that the stage took originally.
    pub made_in_seconds: Option<Number>,
    pub peak_memory_bytes: Option<u64>,
    /// For a compilation that was repeated only to time it: its place among the pairs of compilations.
    pub slot: Option<BlockSlot>,
    /// Path of the log, relative to the run file.
    pub log: Option<String>,
}

/// The outcome of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StageStatus {
    Ok,
    Cached,
    Failed,
    Skipped,
}

/// A metric with one value for the benchmark.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ValueRecord {
    /// Name of an entry of `metrics`.
    pub metric: String,
    pub value: Number,
}

impl From<&OutcomeRecord> for Outcome {
    fn from(record: &OutcomeRecord) -> Self {
        let why = record.why.clone().unwrap_or_default();
        match (record.status, record.stage) {
            (OutcomeStatus::Ok, _) => Self::Ok,
            (OutcomeStatus::Unsupported, _) => Self::Unsupported { reason: why },
            (OutcomeStatus::Skipped, _) => Self::Skipped { reason: why },
            // Reading a file rejects a failure without a stage, so the fallback is never used.
            (OutcomeStatus::Failed, stage) => Self::Failed { stage: stage.unwrap_or(Stage::Benchmark), why },
        }
    }
}

impl From<&Outcome> for OutcomeRecord {
    fn from(outcome: &Outcome) -> Self {
        let (status, stage, why) = match outcome {
            Outcome::Ok => (OutcomeStatus::Ok, None, None),
            Outcome::Unsupported { reason } => (OutcomeStatus::Unsupported, None, Some(reason)),
            Outcome::Failed { stage, why } => (OutcomeStatus::Failed, Some(*stage), Some(why)),
            Outcome::Skipped { reason } => (OutcomeStatus::Skipped, None, Some(reason)),
        };
        Self { status, stage, why: why.cloned() }
    }
}

impl From<&ArtifactRecord> for Artifact {
    fn from(record: &ArtifactRecord) -> Self {
        Self {
            vmfb_sha256: record.vmfb_sha256.clone(),
            execution_sha256: record.execution_sha256.clone(),
            workload: record.workload.clone(),
        }
    }
}

/// Lists of samples, one value per repetition, in the order of the metrics' names.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SampleMap(Vec<(String, Vec<f64>)>);

impl SampleMap {
    pub fn get(&self, metric: &str) -> Option<&[f64]> {
        self.place(metric).ok().map(|at| self.0[at].1.as_slice())
    }

    pub fn get_mut(&mut self, metric: &str) -> Option<&mut Vec<f64>> {
        self.place(metric).ok().map(|at| &mut self.0[at].1)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &[f64])> {
        self.0.iter().map(|(metric, samples)| (metric.as_str(), samples.as_slice()))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn insert(&mut self, metric: String, samples: Vec<f64>) {
        match self.place(&metric) {
            Ok(at) => self.0[at].1 = samples,
            Err(at) => {
                self.0.reserve_exact(1);
                self.0.insert(at, (metric, samples));
            }
        }
    }

    fn place(&self, metric: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| known.as_str().cmp(metric))
    }
}

impl FromIterator<(String, Vec<f64>)> for SampleMap {
    fn from_iter<I: IntoIterator<Item = (String, Vec<f64>)>>(samples: I) -> Self {
        let mut map = Self::default();
        samples.into_iter().for_each(|(metric, samples)| map.insert(metric, samples));
        map
    }
}

impl Serialize for SampleMap {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // JSON has no NaN and no infinities; `Number` writes and reads them as words.
        let words = |samples: &[f64]| -> Vec<Number> { samples.iter().copied().map(Number).collect() };
        serializer.collect_map(self.iter().map(|(metric, samples)| (metric, words(samples))))
    }
}

impl<'de> Deserialize<'de> for SampleMap {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Samples;

        impl<'de> Visitor<'de> for Samples {
            type Value = SampleMap;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("samples by metric")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SampleMap, A::Error> {
                let mut samples = SampleMap::default();
                while let Some((metric, values)) = map.next_entry::<String, Vec<Number>>()? {
                    // Otherwise the second list would silently replace the first.
                    if samples.get(&metric).is_some() {
                        return Err(A::Error::custom(format_args!("duplicate metric {metric:?}")));
                    }
                    let mut values: Vec<f64> = values.into_iter().map(f64::from).collect();
                    values.shrink_to_fit();
                    samples.insert(metric, values);
                }
                Ok(samples)
            }
        }

        deserializer.deserialize_map(Samples)
    }
}

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
    /// Number of times that one of the processors lowered its clock because of heat; absent if the machine
    /// does not count them.
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
