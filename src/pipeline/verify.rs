//! The module's outputs against the reference, before anything is timed.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::model::{Stage, Verification, VerifyCode};
use crate::numerics::{self, Tensor, TensorFile, lacks_npy};
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
    let types: Vec<Option<String>> =
        source.expected.iter().map(|file| file.type_without_npy().map(str::to_owned)).collect();
    let outputs = places(folder.path(), "output", &types);
    let log = folder.path().join("verify.log");
    let command = |outputs: &[TensorFile]| {
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
    // Raw bytes don't say what they are; without a place for its results, the tool prints their types.
    let mut other = None;
    if types.iter().any(Option::is_some) {
        match again(context, &command(&[]), folder.path()).await? {
            Ok(printed) => other = other_type(&printed, &types),
            Err(failure) => return Ok(Err(failure)),
        }
    }
    let mut verification = match &source.reference_problem {
        Some((code, why)) => Verification::bare(*code, Some(why.clone())),
        None if source.expected.is_empty() => Verification::bare(
            VerifyCode::VerifierSkipped,
            Some("the model names no expected outputs".to_owned()),
        ),
        None => match other {
            Some((code, why)) => Verification::bare(code, Some(why)),
            None => match compare(planned, &outputs, source)? {
                Ok(verification) => verification,
                Err(failure) => return Ok(Err(failure)),
            },
        },
    };
    verification.no_fp64.clone_from(&source.expected64_problem);
    // Base stands in for the reference where there is none, so its outputs are needed all the same.
    let outputs = if context.paired && verification.code == VerifyCode::VerifierSkipped {
        let known = (!types.is_empty()).then_some(types);
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

/// Where the outputs of a call go: `.npy`, or raw where a type is given.
fn places(folder: &Path, call: &str, types: &[Option<String>]) -> Vec<TensorFile> {
    let place = |(index, raw): (usize, &Option<String>)| {
        let mut file = TensorFile { path: folder.to_owned(), raw: raw.clone() };
        file.path.push(format!("{call}{index}.{}", file.ending()));
        file
    };
    types.iter().enumerate().map(place).collect()
}

/// The types of the results that a call printed: `4x4xbf16` of `result[0]: hal.buffer_view` and
/// `4x4xbf16=[…]`.
fn printed_types(stdout: &str) -> Vec<String> {
    let mut lines = stdout.lines();
    let mut types = Vec::new();
    while let Some(line) = lines.next() {
        if line.starts_with("result[") {
            let value = lines.next().unwrap_or_default();
            types.push(value.split('=').next().unwrap_or_default().trim().to_owned());
        }
    }
    types
}

/// What is wrong with the types of a call's results, where the reference is raw.
fn other_type(call: &Finished, expected: &[Option<String>]) -> Option<(VerifyCode, String)> {
    let found = printed_types(&String::from_utf8_lossy(&call.stdout));
    let wanted = expected.iter().enumerate().filter_map(|(index, wanted)| Some((index, wanted.as_ref()?)));
    wanted.into_iter().find_map(|(index, wanted)| match found.get(index) {
        Some(found) if found == wanted => None,
        Some(found) => {
            Some((VerifyCode::Fail, format!("output {index} has type {found}; the reference has {wanted}")))
        }
        None => Some((
            VerifyCode::VerifierDidntRun,
            format!("output {index} was not printed, so its type is unknown"),
        )),
    })
}

/// Another call of what worked a moment ago: without its outputs nothing would be compared, and that is not a pass.
async fn again(
    context: &Context<'_>,
    call: &Command,
    folder: &Path,
) -> Result<Result<Finished, StageFailure>, PipelineError> {
    let finished = context.run(call).await?;
    if finished.exit == Exit::Success {
        return Ok(Ok(finished));
    }
    context.fail_on_full_disk(&finished, folder)?;
    Ok(Err(failure(&finished, call.timeout, None)))
}

/// The outputs of a function without a reference that proves anything: as many as are known, or as its first call
/// printed. They are computed twice, because a function that disagrees with itself (random numbers, a race that it allows) says
/// nothing about a change; then there are none.
async fn steady_outputs(
    context: &Context<'_>,
    planned: Planned<'_>,
    known: Option<Vec<Option<String>>>,
    first: &Finished,
    folder: &Path,
    command: impl Fn(&[TensorFile]) -> Command,
) -> Result<Result<Vec<TensorFile>, StageFailure>, PipelineError> {
    let text = String::from_utf8_lossy(&first.stdout);
    let is_known = known.is_some();
    let results = known.unwrap_or_else(|| {
        printed_types(&text).into_iter().map(|found| lacks_npy(&found).then_some(found)).collect()
    });
    if results.is_empty() || (!is_known && first.stdout_truncated) {
        return Ok(Ok(Vec::new()));
    }
    let mut calls = Vec::new();
    for call in ["a", "b"] {
        let outputs = places(folder, call, &results);
        if let Err(failure) = again(context, &command(&outputs), folder).await? {
            return Ok(Err(failure));
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
    outputs: &[TensorFile],
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
pub(super) fn tensors(files: &[TensorFile]) -> Result<Result<Vec<Tensor>, String>, PipelineError> {
    let mut tensors = Vec::with_capacity(files.len());
    for file in files {
        let bytes = fs::read(&file.path).map_err(PipelineError::io("read", &file.path))?;
        match file.read(&bytes) {
            Ok(tensor) => tensors.push(tensor),
            Err(error) => return Ok(Err(format!("{}: {error}", file.path.display()))),
        }
    }
    Ok(Ok(tensors))
}
