//! The parts of a benchmark that several stored files share. Frozen: see the rule in [`crate::record`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::{Artifact, BlockSlot, Outcome, Stage, Workload};

use super::error::wrong;
use super::{Number, RecordError};

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
