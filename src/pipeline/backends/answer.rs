//! The answer of a backend's process, or an answer that is derived from its output after a crash.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::model::{Outcome, Stage};
use crate::process::{Exit, Finished};
use crate::record::CollectedRecord;

/// The first line that the Python package prints.
const PROTOCOL: &str = "benchgate-backends/1";

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum BackendStatus {
    Ok,
    Unsupported,
    #[default]
    Failed,
}

/// The answer, which is the last line of the output.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct BackendAnswer {
    pub(super) status: BackendStatus,
    pub(super) stage: Option<String>,
    pub(super) error: Option<String>,
    pub(super) code: Option<String>,
    #[serde(default)]
    pub(super) samples: Vec<f64>,
    pub(super) iterations: Option<u64>,
    pub(super) compile_seconds: Option<f64>,
    #[serde(default)]
    pub(super) cold: bool,
    #[serde(default)]
    pub(super) metrics: BTreeMap<String, Vec<f64>>,
    #[serde(default)]
    pub(super) versions: BTreeMap<String, String>,
    /// Number of tensors that were written for comparison.
    pub(super) outputs: Option<usize>,
    #[serde(default)]
    pub(super) references64: usize,
    #[serde(default)]
    pub(super) memory: Vec<(f64, u64, Option<u64>, String)>,
    pub(super) collected: Option<CollectedRecord>,
}

impl BackendAnswer {
    fn failed(stage: Option<String>, error: String) -> Self {
        Self { status: BackendStatus::Failed, stage, error: Some(error), ..Self::default() }
    }

    /// Reads the answer from the last line. If there is none, derives one from the lines before and the end
    /// of the process. `measured` tells whether times were requested.
    pub(super) fn read(text: &str, finished: &Finished, measured: bool) -> Self {
        let mut stage = None;
        for line in text.lines() {
            let Ok(message) = serde_json::from_str::<serde_json::Value>(line) else { continue };
            if let Some(hello) = message["hello"].as_str().filter(|hello| *hello != PROTOCOL) {
                return Self::failed(None, format!("expected the protocol {PROTOCOL}, found {hello}"));
            }
            if message["status"].is_string() {
                let answer = serde_json::from_value::<Self>(message);
                return match answer {
                    Ok(answer) if measured => answer.checked(),
                    Ok(answer) => answer,
                    Err(error) => Self::failed(None, format!("the answer can't be read: {error}")),
                };
            }
            stage = message["stage"].as_str().map(str::to_owned).or(stage);
        }
        let last =
            finished.stderr_tail.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let how = match finished.exit {
            Exit::Success => "ended without an answer".to_owned(),
            exit => exit.to_string(),
        };
        let separator = if last.is_empty() { "" } else { ": " };
        Self::failed(stage, format!("the backend {how}{separator}{last}"))
    }

    /// Turns an answer without a valid time into a failure.
    fn checked(self) -> Self {
        let timed =
            !self.samples.is_empty() && self.samples.iter().all(|value| value.is_finite() && *value > 0.0);
        if self.status == BackendStatus::Ok && !timed {
            return Self::failed(Some("measure".to_owned()), "the backend measured no time".to_owned());
        }
        self
    }

    pub(super) fn why(&self) -> String {
        let error = self.error.as_deref().unwrap_or("the backend gave no reason");
        // Compilers may print pages about an error; the complete text is in the log.
        const LONGEST: usize = 300;
        let line: String = error
            .lines()
            .find(|line| !line.trim().is_empty())
            .unwrap_or_default()
            .chars()
            .take(LONGEST)
            .collect();
        match (&self.stage, self.status) {
            (Some(stage), BackendStatus::Failed) => format!("{stage}: {line}"),
            _ => line,
        }
    }

    pub(super) fn outcome(&self) -> Outcome {
        let why = self.why();
        match self.status {
            BackendStatus::Ok => Outcome::Ok,
            BackendStatus::Unsupported => Outcome::Unsupported { reason: why },
            BackendStatus::Failed => {
                let stage = match self.stage.as_deref() {
                    Some("compile") => Stage::Compile,
                    Some("verify") => Stage::Verify,
                    Some("warmup" | "measure" | "dump") => Stage::Benchmark,
                    Some("import") => Stage::Toolchain,
                    // The remaining stages, creating the model and running it eagerly, are the first steps of
                    // an export.
                    _ => Stage::Export,
                };
                Outcome::Failed { stage, why }
            }
        }
    }
}
