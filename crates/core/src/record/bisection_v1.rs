//! `bisect.json`, version 1. Frozen: see the rule in [`crate::record`] before touching a field.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::Verdict;

use super::{BisectionSchema, Number, RecordError, schema};

/// The result of a search for the candidate that made a benchmark worse.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BisectionFile {
    pub schema: BisectionSchema,
    /// The version of benchgate that wrote the file.
    pub benchgate: String,
    pub suite: String,
    pub benchmark: String,
    /// A metric's name, `outputs` or `failure`.
    pub observed: String,
    pub result: BisectionResult,
    pub exit_code: u8,
    /// The result in one sentence.
    pub headline: String,
    /// The good end first, the bad end last. Other fields name candidates by their place here, from 0.
    pub candidates: Vec<CandidateRecord>,
    /// The bad end compared with the good end, once both were measured.
    pub ends: Option<ObservationRecord>,
    /// The parts that the range was divided into, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PartRecord>,
    /// Every pair that was compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<ProbeRecord>,
    /// Blocks of all probes.
    pub blocks: u32,
    /// Time that measuring took, over all attempts.
    pub seconds: Number,
    /// Notes for the reader.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The outcome of a bisection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BisectionResult {
    /// At least one change is named, and no part of the range is left unexplained.
    Found,
    /// Part of the range is worse, and no single change in it explains that.
    Unexplained,
    /// The bad end is not worse than the good end.
    NotWorse,
    /// The allowed blocks did not decide the search.
    Inconclusive,
    /// The time budget ended first.
    Unfinished,
}

/// A release, a toolchain or a commit.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CandidateRecord {
    pub name: String,
    /// The first line of a commit's message.
    pub title: Option<String>,
    /// Probability that this candidate made the whole step, if one did.
    pub probability: Option<Number>,
    /// Why it could not be measured.
    pub skipped: Option<String>,
    /// The earlier candidate whose program is the same.
    pub same_as: Option<u32>,
}

/// The result of comparing a pair of candidates.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ObservationRecord {
    pub verdict: Verdict,
    pub blocks: u32,
    /// Change of the cost: later/earlier for values that vary (above 1 is worse), later − earlier for exact
    /// values (above 0 is worse).
    pub change: Number,
    pub low: Option<Number>,
    pub high: Option<Number>,
    /// The value is exact, and `change` is a difference.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exact: bool,
}

/// Candidates behind `after`, up to `upto`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PartRecord {
    pub kind: PartKind,
    pub after: u32,
    pub upto: u32,
    /// Probability of a culprit.
    pub probability: Option<Number>,
    /// Most probable range of an unexplained change: after the first candidate, up to the second.
    pub likely: Option<[u32; 2]>,
    /// `upto` compared with `after`.
    pub observation: ObservationRecord,
}

/// The kinds of parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PartKind {
    /// The gate finds `upto` worse than `after`, its predecessor or the nearest earlier candidate that can be
    /// measured.
    Culprit,
    /// The part's end is worse than its start, and no two neighbors inside differ.
    Unexplained,
    /// The allowed blocks did not decide it.
    Open,
    /// The part's end is not worse than its start.
    NotWorse,
}

/// A pair that was compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProbeRecord {
    pub base: u32,
    pub head: u32,
    pub observation: ObservationRecord,
}

impl BisectionFile {
    /// Reads `bisect.json`.
    pub fn from_slice(bytes: &[u8]) -> Result<Self, RecordError> {
        schema::read(bytes, &BisectionSchema::FORMAT, |_| Ok(()))
    }

    /// Returns the file's bytes. Equal values give equal bytes.
    pub fn to_json(&self) -> Vec<u8> {
        schema::indented(self)
    }
}
