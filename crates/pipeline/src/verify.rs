//! Compares the module's outputs with the reference before anything is timed.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use benchgate_core::model::{OutputSketch, OutputSketches, Stage, Verification, VerifyCode, counted};
use benchgate_core::numerics::{self, Tensor, TensorFile, lacks_npy};
use benchgate_core::record::{StageRecord, StageStatus};
use benchgate_host::files::Scratch;
use benchgate_host::process::{Command, Exit, Finished, Opened};
use benchgate_toolchain::Installed;

use super::argv::{Execution, InputArg};
use super::cache::{Digests, KeyBuilder};
use super::compile::{failure, printed_error};
use super::host::Host;
use super::later_calls::{self, LaterCalls};
use super::plan::PlannedBenchmark;
use super::slots::Priority;
use super::stage::{
    Caller, Calls, Outputs, PreparedSource, StageError, StageFailure, StageOutput, Staged, ended,
};
use super::{PipelineError, diagnostics};

pub(super) struct VerifyJob<'a> {
    pub(super) planned: PlannedBenchmark<'a>,
    pub(super) tools: &'a Installed,
    pub(super) execution: &'a Execution,
    pub(super) source: &'a PreparedSource,
    /// The module that calls the benchmark's function more than once; only for timed targets.
    pub(super) caller: Option<&'a Caller>,
    /// True if there is another side to compare the outputs with.
    pub(super) paired: bool,
}

/// A module that ran, and the verification of its outputs.
#[derive(Debug)]
pub(super) struct VerifiedModule {
    pub(super) verification: Verification,
    report: StageRecord,
    pub(super) calls: Calls,
    /// The files that the verified call opened, if they could be observed.
    pub(super) opened: Option<Opened>,
    /// A description of how a later call differs from the first one, if it does.
    pub(super) stateful: Option<String>,
    /// Indices of the inputs that the first call changes.
    pub(super) changed_inputs: Vec<u32>,
}

impl StageOutput for VerifiedModule {
    fn report(&self) -> StageRecord {
        self.report.clone()
    }

    fn note(&self) -> String {
        self.verification.code.to_string()
    }
}

/// Runs the module once and compares every output. A module that can't be run is a failure of the stage;
/// wrong outputs are reported by the code of the [`Verification`].
pub(super) async fn verify(host: &Host<'_>, job: &VerifyJob<'_>) -> Staged<VerifiedModule> {
    let VerifyJob { planned, source, .. } = *job;
    let folder = host.scratch()?;
    let types: Vec<Option<String>> =
        source.expected.iter().map(|file| file.type_without_npy().map(str::to_owned)).collect();
    let outputs = places(folder.path(), "output", &types);
    let log = folder.path().join("verify.log");
    let call = |arguments: Vec<OsString>| {
        Command::new(&job.tools.iree_run_module, planned.side.config.measure.timeout)
            .args(arguments)
            .cwd(&planned.side.side.sources)
            .env("TMPDIR", folder.path())
            .envs(&planned.target.env)
            .capture_stdout()
            .log(&log)
            .cpus(host.cpus_for(&job.execution.device))
    };
    let command = |outputs: &[TensorFile]| call(job.execution.verify(outputs));
    let _alone = host.device_turn(&job.execution.device).await;
    let _slot = host.slot(Priority::Now).await?;
    let started = Instant::now();
    let finished = host.run(&command(&outputs).observed()).await?;
    let said = diagnostics::despite_success(&finished, &log)?;
    if finished.exit != Exit::Success || said.is_some() {
        host.fail_on_full_disk(&finished, folder.path())?;
        if let Some(verification) = other_count(host, &finished, &command(&[]), types.len()).await? {
            let report = ended(Stage::Verify, StageStatus::Ok, started.elapsed().as_secs_f64());
            let opened = finished.opened;
            return Ok(VerifiedModule {
                verification,
                report,
                calls: Calls::default(),
                opened,
                stateful: None,
                changed_inputs: Vec::new(),
            });
        }
        // The log is named by benchmark and side and not by module, because benchmarks that share a module
        // can fail for different reasons.
        let key = KeyBuilder::new("log")
            .text("benchmark", planned.name().as_str())
            .text("side", planned.side.name.as_str())
            .finish();
        let log = Some(host.keep_log(&log, "verify", &key)?);
        let failure = match said {
            Some(said) => StageFailure { took: Some(finished.wall), log, ..printed_error(&said) },
            None => failure(&finished, log),
        };
        return Err(failure.into());
    }
    // A raw output file does not state its type, so the tool is run again without output files: it then
    // prints each result with its type.
    let mut other = None;
    if types.iter().any(Option::is_some) {
        let printed = again(host, &command(&[]), folder.path()).await?;
        other = other_type(&printed, &types);
    }
    let mut verification = match (&source.reference_problem, other) {
        (Some((code, why)), _) => Verification::bare(*code, Some(why.clone())),
        (None, _) if source.expected.is_empty() => {
            let why = "the model names no expected outputs".to_owned();
            Verification::bare(VerifyCode::VerifierSkipped, Some(why))
        }
        (None, Some((code, why))) => Verification::bare(code, Some(why)),
        (None, None) => compare(planned, &outputs, source)?,
    };
    verification.no_fp64.clone_from(&source.expected64_problem);
    // Without a reference, the outputs of base or of a stored session are used instead.
    let (outputs, incomparable) = if verification.code.has_no_reference() {
        let known = (!types.is_empty()).then(|| types.clone());
        match steady_outputs(host, planned, known, &finished, folder.path(), command).await? {
            Ok(outputs) => (outputs, None),
            Err(why) => (Vec::new(), Some(why)),
        }
    } else {
        (outputs, None)
    };
    let mut later = LaterCalls::default();
    let stateful = match job
        .caller
        .filter(|_| verification.code == VerifyCode::Pass || verification.code.has_no_reference())
    {
        None => None,
        Some(caller) => {
            let known = if types.is_empty() { result_types(&finished) } else { types };
            let is_known = known.len() == caller.results;
            // Results of unknown types are written as bytes, because the tool needs a file for each result.
            let known = if is_known { known } else { vec![Some(String::new()); caller.results] };
            let second = places(folder.path(), "second", &known);
            let checked =
                later_calls::check(caller, host, job.execution, &second, finished.wall, folder.path(), call)
                    .await?;
            let stateful = checked.map(|found| later = found).err();
            if stateful.is_some() {
                stateful
            } else if !is_known {
                let verified = !outputs.is_empty();
                verified
                    .then(|| "the results of a second call in the same process could not be read".to_owned())
            } else if verification.code == VerifyCode::Pass {
                let wrong = compare(planned, &second, source)?;
                if wrong.code != VerifyCode::Pass {
                    let why = "the outputs of a process's first call are right, but those of its second call are not";
                    verification = Verification { why: Some(why.to_owned()), ..wrong };
                }
                remembers(planned, &second, &later)?
            } else {
                match differs(planned, &outputs, &second)? {
                    // `outputs` is empty for a nondeterministic function, because comparing its outputs would
                    // prove nothing.
                    None if !outputs.is_empty() => remembers(planned, &second, &later)?,
                    found => found,
                }
            }
        }
    };
    let comparable = match verification.code {
        VerifyCode::Pass | VerifyCode::VerifierSkipped | VerifyCode::NondeterministicEagerRun => true,
        // Outputs that are expected to be wrong must not change.
        VerifyCode::Fail => !planned.side.config.policy.expectations.is_empty(),
        _ => false,
    };
    if verification.code.has_no_reference() {
        verification.sketches = sketches(host, planned, source, &outputs).await?;
    }
    let kept = job.paired && comparable;
    let kept = if kept {
        let with_others = match &later.with_others {
            Some([alone, _]) if stateful.is_none() => alone.clone(),
            _ => Vec::new(),
        };
        Some(keep(&host.digests, folder, [outputs, with_others, later.left], source).await?)
    } else {
        None
    };
    let report = ended(Stage::Verify, StageStatus::Ok, started.elapsed().as_secs_f64());
    Ok(VerifiedModule {
        verification,
        report: StageRecord { peak_memory_bytes: finished.peak_memory_bytes, ..report },
        calls: Calls {
            peak_device_memory: super::stage::peak_device_memory(&finished.stderr_tail),
            outputs: kept,
            incomparable,
            other_values: later.other_values,
        },
        opened: finished.opened,
        stateful,
        changed_inputs: later.changed,
    })
}

/// Files for the outputs of a call: `.npy`, or raw if a type is given.
fn places(folder: &Path, call: &str, types: &[Option<String>]) -> Vec<TensorFile> {
    let place = |(index, raw): (usize, &Option<String>)| {
        let mut file = TensorFile { path: folder.to_owned(), raw: raw.clone() };
        file.path.push(format!("{call}{index}.{}", file.ending()));
        file
    };
    types.iter().enumerate().map(place).collect()
}

/// The types of the results, from the output of a call. The type is `4x4xbf16` in `result[0]:
/// hal.buffer_view` followed by `4x4xbf16=[…]`, and `f32` in `result[1]: f32=1.5`.
fn printed_types(stdout: &str) -> Vec<String> {
    let mut lines = stdout.lines();
    let mut types = Vec::new();
    while let Some(line) = lines.next() {
        if let Some((_, result)) = line.split_once(": ").filter(|_| line.starts_with("result[")) {
            let value = if result.contains('=') { result } else { lines.next().unwrap_or_default() };
            types.push(value.split('=').next().unwrap_or_default().trim().to_owned());
        }
    }
    types
}

/// The types of the result files: `None` if `.npy` can represent the type.
fn result_types(call: &Finished) -> Vec<Option<String>> {
    let printed = printed_types(&String::from_utf8_lossy(&call.stdout));
    printed.into_iter().map(|found| lacks_npy(&found).then_some(found)).collect()
}

/// Reports a second call that returned different results than the first one. This function is used if no
/// reference tells which results are correct.
fn differs(
    planned: PlannedBenchmark<'_>,
    first: &[TensorFile],
    second: &[TensorFile],
) -> Staged<Option<String>> {
    if first.is_empty() {
        return Ok(None);
    }
    let checks = numerics::against_base(&tensors(first)?, &tensors(second)?, &[], &planned.tolerances());
    let differ = checks.iter().any(|check| check.code != VerifyCode::Pass);
    Ok(differ.then(|| "a second call in the same process gives different results from the first".to_owned()))
}

/// Reports a later call whose results differ from those of a second call, or from those of a first call with the same
/// other inputs.
fn remembers(
    planned: PlannedBenchmark<'_>,
    second: &[TensorFile],
    later: &LaterCalls,
) -> Staged<Option<String>> {
    // Byte-equal outputs count as the same, even if none of their elements is finite.
    let read = |file: &TensorFile| fs::read(&file.path).map_err(PipelineError::io("read", &file.path));
    let others = later.with_others.iter().flat_map(|[alone, third]| alone.iter().zip(third));
    for (first, later) in second.iter().zip(&later.late).chain(others) {
        let is_same = read(first)? == read(later)?;
        if !is_same && differs(planned, std::slice::from_ref(first), std::slice::from_ref(later))?.is_some() {
            let why = "a later call in the same process gives different results from an earlier one with the same inputs";
            return Ok(Some(why.to_owned()));
        }
    }
    Ok(None)
}

/// The verification of a module that has more or fewer outputs than its reference. In this case the tool
/// can't write the outputs, so it is run again without writing them.
async fn other_count(
    host: &Host<'_>,
    failed: &Finished,
    without_outputs: &Command,
    references: usize,
) -> Staged<Option<Verification>> {
    if references == 0 || !matches!(failed.exit, Exit::Code(_)) {
        return Ok(None);
    }
    let finished = host.run(without_outputs).await?;
    let outputs = printed_types(&String::from_utf8_lossy(&finished.stdout)).len();
    let is_known = finished.exit == Exit::Success && !finished.stdout_truncated && outputs > 0;
    Ok((is_known && outputs != references).then(|| {
        let why = format!("expected {}, found {outputs}", counted(references, "output"));
        Verification::bare(VerifyCode::Fail, Some(why))
    }))
}

/// The mismatch between the types of a call's results and of raw reference files, if there is one.
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

/// Repeats a call that succeeded before. If it fails now, that is an error, because without its outputs
/// nothing would be compared, which must not count as a pass.
async fn again(host: &Host<'_>, call: &Command, folder: &Path) -> Staged<Finished> {
    let finished = host.run(call).await?;
    if finished.exit == Exit::Success {
        return Ok(finished);
    }
    host.fail_on_full_disk(&finished, folder)?;
    Err(failure(&finished, None).into())
}

/// The outputs of a function without a usable reference. Their number is known, or the first call printed it.
/// The outputs are computed twice; if they differ, the function is nondeterministic (random numbers, a race),
/// so its outputs can't show a change.
///
/// # Errors
/// The reason why the outputs can't be compared with the other side's.
async fn steady_outputs(
    host: &Host<'_>,
    planned: PlannedBenchmark<'_>,
    known: Option<Vec<Option<String>>>,
    first: &Finished,
    folder: &Path,
    command: impl Fn(&[TensorFile]) -> Command,
) -> Staged<Result<Vec<TensorFile>, &'static str>> {
    let is_known = known.is_some();
    let results = known.unwrap_or_else(|| result_types(first));
    if !is_known && first.stdout_truncated {
        return Ok(Err("the tool printed more than benchgate reads"));
    }
    let [once, twice] = ["a", "b"].map(|call| places(folder, call, &results));
    for outputs in [&once, &twice] {
        again(host, &command(outputs), folder).await?;
    }
    let (a, b) = match (tensors(&once), tensors(&twice)) {
        (Ok(a), Ok(b)) => (a, b),
        (Err(run @ StageError::Run(_)), _) | (_, Err(run @ StageError::Run(_))) => return Err(run),
        _ => return Ok(Err("they can't be read as tensors")),
    };
    let checks = numerics::against_base(&a, &b, &[], &planned.tolerances());
    let same = checks.iter().all(|check| check.code == VerifyCode::Pass);
    Ok(if same { Ok(once) } else { Err("two calls with the same inputs return different ones") })
}

/// Compares outputs with the reference. If the reference can't be read, the stage fails: this mistake in the
/// suite would keep any output from being verified, and a gate that checks no output must not look like one
/// that does.
fn compare(
    planned: PlannedBenchmark<'_>,
    outputs: &[TensorFile],
    source: &PreparedSource,
) -> Staged<Verification> {
    let tolerances = &planned.tolerances();
    let unreadable =
        |what: &'static str| move |error: StageError| error.about(&format!("the {what} can't be read"));
    let expected = tensors(&source.expected).map_err(unreadable("reference"))?;
    let expected64 = tensors(&source.expected64).map_err(unreadable("fp64 reference"))?;
    match tensors(outputs) {
        Ok(outputs) => Ok(numerics::verify(&outputs, &expected, &expected64, tolerances)),
        Err(StageError::Benchmark(failure)) => {
            let why = format!("output {}", failure.why);
            Ok(Verification::bare(VerifyCode::VerifierDidntRun, Some(why)))
        }
        Err(run) => Err(run),
    }
}

/// Keeps the outputs of one verified call, and of a call with other inputs, until they are compared.
pub(super) async fn keep(
    digests: &Digests,
    folder: Scratch,
    [files, with_others, left]: [Vec<TensorFile>; 3],
    source: &PreparedSource,
) -> Result<Outputs, PipelineError> {
    let inputs = add_inputs(KeyBuilder::new("inputs"), &source.inputs, digests).await?.finish();
    let question = program(digests, &inputs, source).await?;
    let answer = KeyBuilder::new("answer").text("inputs", &inputs);
    let answer = add_tensors(answer, &source.expected, digests).await?;
    let answer = (!source.expected.is_empty()).then(|| answer.finish());
    let exact = source.expected64.clone();
    let (folder, arguments) = (Arc::new(folder), source.inputs.clone());
    Ok(Outputs { _folder: folder, files, with_others, left, exact, arguments, inputs, question, answer })
}

/// Returns sketches of the outputs, with which other sessions are compared; `None` if there are none, or if they would prove
/// nothing.
async fn sketches(
    host: &Host<'_>,
    planned: PlannedBenchmark<'_>,
    source: &PreparedSource,
    outputs: &[TensorFile],
) -> Staged<Option<OutputSketches>> {
    let (outputs, tolerances) = (tensors(outputs)?, planned.tolerances());
    if outputs.is_empty() || numerics::vacuous_base(&outputs, &tolerances).is_some() {
        return Ok(None);
    }
    let inputs = add_inputs(KeyBuilder::new("inputs"), &source.inputs, &host.digests).await?.finish();
    let program_sha256 = program(&host.digests, &inputs, source).await?;
    let outputs = outputs.iter().map(|output| OutputSketch::new(output, &tolerances)).collect();
    Ok(Some(OutputSketches { program_sha256, outputs }))
}

/// Identifies a program with its weights and inputs.
async fn program(digests: &Digests, inputs: &str, source: &PreparedSource) -> Result<String, PipelineError> {
    let mut key = KeyBuilder::new("question").text("inputs", inputs).text("mlir", &source.mlir_sha256);
    for (scope, path) in &source.parameters {
        key = key.text("scope", scope).text("parameters", &digests.sha256(path).await?);
    }
    Ok(key.finish())
}

/// Adds the arguments of a function to a key: by content, not by name.
pub(super) async fn add_inputs(
    mut key: KeyBuilder,
    inputs: &[InputArg],
    digests: &Digests,
) -> Result<KeyBuilder, PipelineError> {
    for input in inputs {
        key = match input {
            InputArg::File(file) => add_tensor(key, "npy", file, digests).await?,
            InputArg::Literal(text) => key.text("literal", text),
        };
    }
    Ok(key)
}

/// Adds reference outputs to a key: by content, not by name.
pub(super) async fn add_tensors(
    mut key: KeyBuilder,
    files: &[TensorFile],
    digests: &Digests,
) -> Result<KeyBuilder, PipelineError> {
    for file in files {
        key = add_tensor(key, "expected", file, digests).await?;
    }
    Ok(key)
}

/// Adds the content of a file to a key, and for a raw file the type of its elements.
async fn add_tensor(
    key: KeyBuilder,
    name: &str,
    file: &TensorFile,
    digests: &Digests,
) -> Result<KeyBuilder, PipelineError> {
    let key = key.text(name, &digests.sha256(&file.path).await?);
    Ok(match &file.raw {
        Some(raw) => key.text("raw", raw),
        None => key,
    })
}

/// Reads all files. The error names the file that is not a tensor.
pub(super) fn tensors(files: &[TensorFile]) -> Staged<Vec<Tensor>> {
    let read = |file: &TensorFile| {
        let bytes = fs::read(&file.path).map_err(PipelineError::io("read", &file.path))?;
        let not_tensor = |error| StageFailure::new(format!("{}: {error}", file.path.display()));
        Ok(file.read(&bytes).map_err(not_tensor)?)
    };
    files.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_result_is_a_tensor_or_a_number() {
        let printed =
            "EXEC @main\nresult[0]: f32=3\nresult[1]: hal.buffer_view\n2xf32=1 2\nresult[2]: i32=7\n";
        assert_eq!(printed_types(printed), ["f32", "2xf32", "i32"]);
    }
}
