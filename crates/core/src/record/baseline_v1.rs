//! One file of a baseline, version 1, and the record of an acceptance. Frozen: see the rule in
//! [`crate::record`].

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::{BenchmarkGlob, Lint, LintCode, Metric, OutputSketches, Testbed, Toolchain, VerifyCode};

use super::schema::sealed;
use super::{
    AcceptanceSchema, ArtifactRecord, BaselineSchema, Number, OutcomeRecord, RecordError, ValueRecord, date,
    described, known_metric, schema, timestamp, wrong,
};

/// One session of a suite on one testbed, as a baseline keeps it: one summary per process. The samples stay in the
/// run's file.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BaselineFile {
    pub schema: BaselineSchema,
    /// The version of benchgate that wrote the file.
    pub benchgate: String,
    /// SHA-256 of everything else in the file. The hash finds damage and hand edits; it is not a signature.
    pub sha256: String,
    pub suite: String,
    /// The session of the run; one session is stored once.
    pub session: String,
    /// When the run began, RFC 3339.
    pub created: String,
    /// The commit of the measured sources.
    pub commit: Option<String>,
    pub testbed: Testbed,
    pub toolchain: Option<Toolchain>,
    /// The frozen toolchain that was measured in the same session.
    pub anchor: Option<Toolchain>,
    /// Why the run, or a benchmark of it, is excluded from the baseline until accepted. Empty if nothing is excluded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quarantine: Vec<QuarantineRecord>,
    /// Every metric that is named below, once.
    pub metrics: Vec<Metric>,
    pub benchmarks: Vec<BaselineBenchmark>,
    /// Findings about the whole run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lints: Vec<Lint>,
}

/// Model × target × function in one session.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BaselineBenchmark {
    /// `model/target/function`; unique within the file.
    pub name: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    pub outcome: OutcomeRecord,
    pub artifact: Option<ArtifactRecord>,
    /// The result of checking the outputs; absent if nothing was checked.
    pub verification: Option<VerifyCode>,
    /// The outputs, if there is no reference.
    pub sketches: Option<OutputSketches>,
    /// Every process that worked, in the order they ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<BaselineProcess>,
    /// Metrics with one value for the benchmark.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<ValueRecord>,
    /// The benchmark relative to the anchor; absent if the anchor has no time for it.
    pub anchored: Option<AnchoredRecord>,
    /// Codes of the findings about this benchmark.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lints: Vec<LintCode>,
}

/// Ratios to a frozen toolchain, from blocks of pairs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnchoredRecord {
    /// The anchor's artifact: SHA-256 of its module, and over everything else. Only ratios to the same artifact can be
    /// compared.
    pub artifact: String,
    /// Ratios measured / anchor, by metric name.
    pub ratios: BTreeMap<String, Number>,
}

/// One fresh start of the benchmark tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BaselineProcess {
    /// The state of the machine, by name with the unit in it: `load-1m`, `clock-mhz`, `temperature-c`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub state: BTreeMap<String, Number>,
    /// By metric name.
    pub summaries: BTreeMap<String, SummaryRecord>,
}

/// The repetitions of one process, in the metric's unit, to nine significant digits.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SummaryRecord {
    /// Number of repetitions.
    pub n: u64,
    /// The location: the median of the repetitions.
    pub median: Number,
    /// First quartile of the cost: the code's time without interference. Absent for one repetition, as are the next
    /// two.
    pub undisturbed: Option<Number>,
    /// The spread: sample standard deviation of the repetitions.
    pub stddev: Option<Number>,
    pub min: Option<Number>,
}

/// A reason to exclude a run from the baseline.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuarantineRecord {
    pub cause: QuarantineCause,
    /// In words.
    pub why: String,
    /// The quarantined benchmark; absent if the whole run is quarantined.
    pub benchmark: Option<String>,
}

/// Kinds of reasons to exclude a run from the baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum QuarantineCause {
    /// Slower than the stored sessions by more than the floor.
    Regressed,
    /// A stage failed, or the values can't be used.
    Errored,
    /// The outputs are wrong.
    Diverged,
    /// The tools were not identified, or the sources differ from their commit.
    Unverified,
    /// A part of the plan was not done.
    Incomplete,
    /// It could not be decided: the machine was disturbed, or a benchmark of the stored sessions was not measured.
    Undecided,
}

/// The acceptance of a change: who accepted it, why, and from which run on.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcceptanceFile {
    pub schema: AcceptanceSchema,
    /// The version of benchgate that wrote the file.
    pub benchgate: String,
    /// SHA-256 of everything else in the file.
    pub sha256: String,
    pub suite: String,
    pub testbed: String,
    /// When it was accepted, RFC 3339.
    pub created: String,
    /// File name of the first run of the new normal, without `.json`. Runs are no longer compared with older ones.
    pub from: String,
    /// Glob over benchmark names; absent if all benchmarks are accepted.
    #[schemars(with = "Option<String>")]
    pub benchmark: Option<BenchmarkGlob>,
    /// Benchmarks that the first run should have measured but did not. They keep their history, although `benchmark`
    /// matches them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_measured: Vec<String>,
    /// File names of the later runs that were stored when it was accepted, without `.json`: their regressions are
    /// accepted too. Absent in older files, which accept those of all runs that were measured before `created`.
    pub later_runs: Option<Vec<String>>,
    pub who: String,
    pub why: String,
    /// Last day of the acceptance, `YYYY-MM-DD`; absent if it does not expire. Afterwards, sessions stored under it
    /// are excluded from the baseline. A day before `created` withdraws the earlier acceptance of the same sessions
    /// and benchmarks.
    pub until: Option<String>,
}

sealed!(BaselineFile);
sealed!(AcceptanceFile);

impl BaselineFile {
    /// Reads one file of a baseline and checks its hash.
    pub fn from_slice(bytes: &[u8]) -> Result<Self, RecordError> {
        schema::read(bytes, &BaselineSchema::FORMAT, Self::check)
    }

    /// Rejects a file that contradicts itself or was changed after it was written.
    pub(super) fn check(&self) -> Result<(), RecordError> {
        timestamp("created", &self.created)?;
        let metrics = described(&self.metrics)?;
        let mut names = BTreeSet::new();
        for (at, benchmark) in self.benchmarks.iter().enumerate() {
            let at = format!("benchmarks[{at}]");
            if !names.insert(benchmark.name.as_str()) {
                return Err(wrong(at, format!("a second benchmark is named {:?}", benchmark.name)));
            }
            benchmark.outcome.check(&at)?;
            let named = benchmark.processes.iter().flat_map(|process| process.summaries.keys());
            let mut named = named.chain(benchmark.values.iter().map(|value| &value.metric));
            named.try_for_each(|name| known_metric(&at, name, &metrics))?;
        }
        self.check_seal()
    }

    /// Returns the file's bytes, with a line for each benchmark. Equal values give equal bytes.
    pub fn to_json(&self) -> Vec<u8> {
        schema::line_per_entry(self)
    }
}

impl AcceptanceFile {
    /// Reads an acceptance and checks its hash.
    pub fn from_slice(bytes: &[u8]) -> Result<Self, RecordError> {
        schema::read(bytes, &AcceptanceSchema::FORMAT, |file: &Self| {
            timestamp("created", &file.created)?;
            if let Some(until) = &file.until {
                date("until", until)?;
            }
            file.check_seal()
        })
    }

    /// Returns whether the file withdraws an earlier acceptance, instead of accepting something.
    pub fn is_withdrawal(&self) -> bool {
        self.until.as_ref().is_some_and(|until| until.as_str() < self.created.get(..10).unwrap_or_default())
    }

    /// Returns whether the acceptance covers this benchmark; `None` stands for the whole run.
    pub fn covers(&self, benchmark: Option<&str>) -> bool {
        let Some(name) = benchmark else { return self.benchmark.is_none() };
        self.benchmark.as_ref().is_none_or(|glob| glob.matches(name))
            && !self.not_measured.iter().any(|it| it == name)
    }

    /// Returns whether no run before the accepted one counts for any benchmark.
    pub fn starts_a_history(&self) -> bool {
        self.benchmark.is_none() && self.not_measured.is_empty()
    }

    /// Returns the file's bytes. Equal values give equal bytes.
    pub fn to_json(&self) -> Vec<u8> {
        schema::line_per_entry(self)
    }

    pub fn to_json_line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }
}
