//! The module's outputs against the reference, before anything is timed.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::model::{Stage, Verification, VerifyCode};
use crate::numerics::{self, Tensor};
use crate::process::{Command, Exit, Finished};
use crate::record::StageStatus;
use crate::toolchain::Installed;

use super::PipelineError;
use super::argv::Execution;
use super::compile::{failure, printed_error};
use super::diagnostics;
use super::divergence::Outputs;
use super::plan::Planned;
use super::prepare::{Context, Noted, Source, StageFailure, StageReport};

/// A module that ran, and what its outputs are worth.
#[derive(Debug)]
pub(super) struct Verified {
    pub(super) verification: Verification,
    pub(super) report: StageReport,
    /// Of the one call that was verified.
    pub(super) peak_device_memory: Option<u64>,
    /// What it computed, where head's is to be compared with base's.
    pub(super) outputs: Option<Outputs>,
}

impl Noted for Verified {
    fn note(&self) -> String {
        self.verification.code.to_string()
    }

    fn took(&self) -> Duration {
        Duration::try_from_secs_f64(self.report.seconds).unwrap_or_default()
    }
}

/// Runs the module once and compares every output. A module that does not run is a failure of the
/// stage; wrong outputs are a [`Verification`] with its code.
pub(super) async fn verify(
    context: &Context<'_>,
    planned: Planned<'_>,
    tools: &Installed,
    execution: &Execution,
    source: &Source,
) -> Result<Result<Verified, StageFailure>, PipelineError> {
    let folder = context.scratch()?;
    let outputs: Vec<PathBuf> =
        (0..source.expected.len()).map(|index| folder.path().join(format!("output{index}.npy"))).collect();
    let log = folder.path().join("verify.log");
    let command = |outputs: &[PathBuf]| {
        let command = Command::new(&tools.iree_run_module, planned.side.config.measure.timeout)
            .args(execution.verify(outputs))
            .cwd(&planned.side.side.sources)
            .capture_stdout()
            .log(&log)
            .cpus(context.cpus_for(&execution.device));
        planned.target.env.iter().fold(command, |command, (name, value)| command.env(name, value))
    };
    let _slot = context.slot().await?;
    let started = Instant::now();
    let call = command(&outputs);
    let finished = context.run(&call).await?;
    let said = diagnostics::despite_success(&finished, &log)?;
    if finished.exit != Exit::Success || said.is_some() {
        context.fail_on_full_disk(&finished, folder.path())?;
        // By benchmark and side, not by module: benchmarks may share one and fail for reasons of their own.
        let key = super::cache::KeyBuilder::new("log")
            .text("benchmark", planned.name().as_str())
            .text("side", planned.side.name.as_str())
            .finish();
        let log = context.keep_log(&log, "verify", &key)?;
        let failure = match said {
            Some(said) => StageFailure { took: Some(finished.wall), log: Some(log), ..printed_error(&said) },
            None => failure(&finished, call.timeout, Some(log)),
        };
        return Ok(Err(failure));
    }
    let mut verification = match &source.reference_problem {
        Some((code, why)) => Verification::bare(*code, Some(why.clone())),
        None if source.expected.is_empty() => Verification::bare(
            VerifyCode::VerifierSkipped,
            Some("the model names no expected outputs".to_owned()),
        ),
        None => match compare(planned, &outputs, source)? {
            Ok(verification) => verification,
            Err(failure) => return Ok(Err(failure)),
        },
    };
    verification.no_fp64.clone_from(&source.expected64_problem);
    // Base stands in for the reference where there is none, so its outputs are needed all the same.
    let outputs = if context.paired && verification.code == VerifyCode::VerifierSkipped {
        let known = (!source.expected.is_empty()).then_some(source.expected.len());
        match steady_outputs(context, planned, known, &finished, folder.path(), command).await? {
            Ok(outputs) => outputs,
            Err(failure) => return Ok(Err(failure)),
        }
    } else {
        outputs
    };
    let comparable = matches!(verification.code, VerifyCode::Pass | VerifyCode::VerifierSkipped);
    let kept = context.paired && comparable && !outputs.is_empty();
    let kept = if kept { Some(Outputs::keep(context, folder, outputs, source).await?) } else { None };
    let report = StageReport {
        stage: Stage::Verify,
        status: StageStatus::Ok,
        seconds: started.elapsed().as_secs_f64(),
        peak_memory_bytes: finished.peak_memory_bytes,
        log: None,
    };
    let peak_device_memory = super::statistics::peak_device_memory(&finished.stderr_tail);
    Ok(Ok(Verified { verification, report, peak_device_memory, outputs: kept }))
}

/// The outputs of a function without a reference that proves anything: as many as are known, or as its first call
/// printed. They are computed twice, because a function that disagrees with itself (random numbers, a race that it allows) says
/// nothing about a change; then there are none.
async fn steady_outputs(
    context: &Context<'_>,
    planned: Planned<'_>,
    known: Option<usize>,
    first: &Finished,
    folder: &Path,
    command: impl Fn(&[PathBuf]) -> Command,
) -> Result<Result<Vec<PathBuf>, StageFailure>, PipelineError> {
    let text = String::from_utf8_lossy(&first.stdout);
    let results = known.unwrap_or_else(|| text.lines().filter(|line| line.starts_with("result[")).count());
    if results == 0 || (known.is_none() && first.stdout_truncated) {
        return Ok(Ok(Vec::new()));
    }
    let mut calls = Vec::new();
    for call in ["a", "b"] {
        let outputs: Vec<PathBuf> =
            (0..results).map(|index| folder.join(format!("{call}{index}.npy"))).collect();
        let call = command(&outputs);
        let finished = context.run(&call).await?;
        if finished.exit != Exit::Success {
            // It worked a moment ago: without its outputs nothing would be compared, and that is not a pass.
            context.fail_on_full_disk(&finished, folder)?;
            return Ok(Err(failure(&finished, call.timeout, None)));
        }
        calls.push(outputs);
    }
    let (Some(twice), Some(once)) = (calls.pop(), calls.pop()) else { return Ok(Ok(Vec::new())) };
    let (Ok(a), Ok(b)) = (tensors(&once)?, tensors(&twice)?) else { return Ok(Ok(Vec::new())) };
    let same = numerics::against_base(&a, &b, &planned.side.config.numerics)
        .iter()
        .all(|check| check.code == VerifyCode::Pass);
    Ok(Ok(if same { once } else { Vec::new() }))
}

/// A reference that can't be read is the suite's own mistake and fails the stage: with it, nothing would
/// ever be verified, and a gate that checks no output must not look like one that does.
fn compare(
    planned: Planned<'_>,
    outputs: &[PathBuf],
    source: &Source,
) -> Result<Result<Verification, StageFailure>, PipelineError> {
    let tolerances = &planned.side.config.numerics;
    let expected = match tensors(&source.expected)? {
        Ok(tensors) => tensors,
        Err(why) => return Ok(Err(StageFailure::new(format!("the reference can't be read: {why}")))),
    };
    let expected64 = match tensors(&source.expected64)? {
        Ok(tensors) => tensors,
        Err(why) => return Ok(Err(StageFailure::new(format!("the fp64 reference can't be read: {why}")))),
    };
    Ok(Ok(match tensors(outputs)? {
        Ok(outputs) => numerics::verify(&outputs, &expected, &expected64, tolerances),
        Err(why) => Verification::bare(VerifyCode::VerifierDidntRun, Some(format!("output {why}"))),
    }))
}

/// Reads all files, or says which one is no tensor.
pub(super) fn tensors(paths: &[PathBuf]) -> Result<Result<Vec<Tensor>, String>, PipelineError> {
    let mut tensors = Vec::with_capacity(paths.len());
    for path in paths {
        let bytes = fs::read(path).map_err(PipelineError::io("read", path))?;
        match Tensor::from_npy(&bytes) {
            Ok(tensor) => tensors.push(tensor),
            Err(error) => return Ok(Err(format!("{}: {error}", path.display()))),
        }
    }
    Ok(Ok(tensors))
}
