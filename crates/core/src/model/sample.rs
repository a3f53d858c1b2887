//! Samples, grouped by the process that took them.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Position of a process in a paired schedule: `block` counts the quadruples of one benchmark, `slot` is its place (0
/// to 3) in the quadruple. Base and head share block numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BlockSlot {
    pub block: u32,
    pub slot: u8,
}

/// One fresh start of the benchmark tool: the sampling unit. Repetitions inside it refine its
/// location and say nothing about the next process.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Process {
    /// One value per repetition, in the metric's unit, in the order taken.
    pub samples: Vec<f64>,
    /// Place in the paired schedule; absent for unpaired runs and foreign files.
    pub slot: Option<BlockSlot>,
    /// Number of the session that the process was started in, where a side has several: each file is one.
    pub session: u32,
    /// Iterations of one repetition; `None` if they are unknown or differ.
    pub iterations: Option<u64>,
    /// Sample standard deviation, where the tool stated it more precisely than it printed the samples.
    pub stated_stddev: Option<f64>,
    /// Start of the process, RFC 3339, if known.
    pub started: Option<Arc<str>>,
}

/// A tool's summary of a set of repetitions that it did not keep.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Summary {
    /// Number of repetitions summarized; `None` if the tool did not say.
    pub n: Option<u64>,
    pub mean: Option<f64>,
    pub median: Option<f64>,
    /// Sample standard deviation (n − 1).
    pub stddev: Option<f64>,
    /// First and third quartile.
    pub q1: Option<f64>,
    pub q3: Option<f64>,
    pub min: Option<f64>,
    pub max: Option<f64>,
    /// The 99 % confidence interval of the median.
    pub interval: Option<(f64, f64)>,
    /// Number of the session, as of a process.
    pub session: u32,
}

/// The values of one metric of one benchmark.
#[derive(Debug, Clone, PartialEq)]
pub enum Series {
    /// Every sample of every process, in the order the processes ran.
    Processes(Vec<Process>),
    /// Only summaries were kept, one per process.
    Summaries(Vec<Summary>),
    /// A deterministic value.
    Exact(f64),
}
