//! Stores how long the processes of each benchmark measure in one session.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::BenchmarkName;
use crate::record::TimingRecord;

use super::PipelineError;
use super::argv::Timing;
use super::cache::write_json;

/// The timing of each benchmark. The timings are stored on disk, so that a resumed session continues with the
/// same kind of processes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Timings(BTreeMap<String, TimingRecord>);

impl Timings {
    /// Reads the timings of an interrupted session; empty if it was interrupted before they were chosen.
    pub(super) fn read(file: &Path) -> Result<Self, PipelineError> {
        let bytes = match fs::read(file) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            bytes => bytes.map_err(PipelineError::io("read", file))?,
        };
        serde_json::from_slice(&bytes)
            .map_err(|error| PipelineError::io("read back", file)(std::io::Error::other(error)))
    }

    pub(super) fn write(&self, file: &Path) -> Result<(), PipelineError> {
        write_json(file, self)
    }

    pub(super) fn record(&self, name: &BenchmarkName) -> Option<TimingRecord> {
        self.0.get(name.as_str()).copied()
    }

    pub(super) fn get(&self, name: &BenchmarkName) -> Option<Timing> {
        self.record(name).map(|record| Timing {
            repetitions: record.repetitions,
            iterations: record.iterations,
            min_time: Duration::from_nanos(record.min_time_ns),
            warmup: Duration::from_nanos(record.warmup_ns),
        })
    }

    pub(super) fn set(&mut self, name: &BenchmarkName, timing: &Timing) {
        let nanoseconds = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let record = TimingRecord {
            repetitions: timing.repetitions,
            iterations: timing.iterations,
            min_time_ns: nanoseconds(timing.min_time),
            warmup_ns: nanoseconds(timing.warmup),
        };
        self.0.insert(name.as_str().to_owned(), record);
    }
}
