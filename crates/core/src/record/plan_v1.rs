//! The plan of a suite that several machines measure, version 1. Frozen: see the rule in [`crate::record`]
//! before touching a field.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::{Policy, SequentialPolicy, SideName};

use super::schema::sealed;
use super::{Design, Number, PlanSchema, RecordError, schema, wrong};

/// The division of a suite into shards, and everything that all shards must agree on.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanFile {
    pub schema: PlanSchema,
    /// The version of benchgate that wrote the file.
    pub benchgate: String,
    /// SHA-256 of everything else in the file. Shards refer to the plan by it.
    pub sha256: String,
    pub suite: String,
    /// SHA-256 over the configuration, lock, commit, flags and benchmarks of every side.
    pub suite_sha256: String,
    pub design: Design,
    /// Seed of the schedule's order, for every shard.
    pub seed: u64,
    /// For a run with one side: processes of each benchmark.
    pub processes: u32,
    /// For a run with two sides: blocks before the first look.
    pub min_blocks: u32,
    /// Blocks after which an open row is inconclusive.
    pub max_blocks: u32,
    /// True if measuring may end early because its time is spent; each shard has the suite's budget.
    pub time_budget_ns: Option<u64>,
    /// Rows of the whole suite that the error budget is shared among while a shard measures.
    pub rows: u32,
    /// The policy that decides how long each row is measured.
    pub gate: Policy,
    pub sides: Vec<PlannedSideRecord>,
    /// The benchmarks in the order of the suite, on which the schedule depends.
    pub benchmarks: Vec<PlannedBenchmarkRecord>,
    /// Numbered from 1.
    pub shards: Vec<PlannedShardRecord>,
}

/// One side of every shard.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlannedSideRecord {
    pub name: SideName,
    pub commit: Option<String>,
    /// Version of the pinned tools.
    pub version: String,
    /// The commit that compiler and runtime must print.
    pub tools_commit: String,
}

/// One benchmark of the suite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlannedBenchmarkRecord {
    pub name: String,
    pub target: String,
    /// The sides that declare it.
    pub sides: Vec<SideName>,
    /// The time that it was expected to take.
    pub seconds: Number,
}

/// One shard: all processes of its benchmarks run on one machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlannedShardRecord {
    pub shard: u32,
    /// Labels of the runner.
    pub runner: Vec<String>,
    /// Names of benchmarks, in the order of the suite.
    pub benchmarks: Vec<String>,
    pub seconds: Number,
}

sealed!(PlanFile);

impl PlanFile {
    /// Returns the policy under which all shards are measured.
    pub fn policy(&self) -> Policy {
        let Self { min_blocks, max_blocks, .. } = *self;
        Policy { sequential: SequentialPolicy { min_blocks, max_blocks }, ..self.gate.clone() }
    }

    /// Reads a plan and checks its hash.
    pub fn from_slice(bytes: &[u8]) -> Result<Self, RecordError> {
        schema::read(bytes, &PlanSchema::FORMAT, |file: &Self| {
            file.check_seal()?;
            consistent(file)
        })
    }

    /// Returns the file's bytes. Equal values give equal bytes.
    pub fn to_json(&self) -> Vec<u8> {
        schema::indented(self)
    }

    pub fn shard(&self, number: u32) -> Option<&PlannedShardRecord> {
        self.shards.iter().find(|shard| shard.shard == number)
    }
}

fn consistent(file: &PlanFile) -> Result<(), RecordError> {
    let sides: Vec<SideName> = file.sides.iter().map(|side| side.name).collect();
    match (file.design, sides.as_slice()) {
        (Design::Single, [_]) | (Design::Pairs, [SideName::Base, SideName::Head]) => {}
        _ => return Err(wrong("sides", "the sides don't match the design")),
    }
    // Policies have a few metrics, and commands print at most hundreds of benchmarks; more rows would only
    // cost memory.
    const MOST_ROWS: usize = 10_000;
    if file.rows as usize > file.benchmarks.len().saturating_mul(MOST_ROWS).min(1_000_000) {
        return Err(wrong("rows", format!("{} rows are more than the benchmarks can have", file.rows)));
    }
    let mut names = BTreeSet::new();
    for benchmark in &file.benchmarks {
        if !names.insert(benchmark.name.as_str()) {
            return Err(wrong("benchmarks", format!("a second benchmark is named {:?}", benchmark.name)));
        }
        let declared: Vec<SideName> = benchmark.sides.clone();
        if declared.is_empty() || !declared.is_sorted() || declared.iter().any(|side| !sides.contains(side)) {
            return Err(wrong(
                "benchmarks",
                format!("the sides of {:?} differ from the plan's", benchmark.name),
            ));
        }
    }
    for (number, shard) in (1..).zip(&file.shards) {
        if shard.shard != number {
            return Err(wrong("shards", format!("shard {} is listed at position {number}", shard.shard)));
        }
        for name in &shard.benchmarks {
            if !names.remove(name.as_str()) {
                return Err(wrong("shards", format!("{name:?} is in two shards, or not in the suite")));
            }
        }
    }
    match names.first() {
        None => Ok(()),
        Some(name) => Err(wrong("shards", format!("{name:?} is in no shard"))),
    }
}
