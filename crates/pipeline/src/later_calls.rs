//! Verifies the calls after the first one, because these are the calls that are timed.
//!
//! IREE's benchmark tool passes the same buffers to every call, and a function may write to them. A function
//! that is correct in its first call and does nothing in all others would look fast. Therefore a small module
//! that benchgate generates calls the function twice in one process, and the results of the second call are
//! verified. If the inputs are the same after two calls as after one, every later call starts in the same
//! state as the second one, so its result is valid for all. If the first call changes the inputs, the timed
//! calls don't do the given work, which is accepted only if both sides behave like this.
//!
//! A program can also count its calls. So many calls are made in a third process, and the last one must return the same.
//!
//! A program that remembers its result elsewhere is correct in every call with the same inputs. So a third
//! call gets other inputs ([`made`]), and must return the same as a first call with these inputs, and as base's
//! program does ([`super::between_sides::compare_sides`]). Values that a program keeps in globals are also found by
//! searching its source ([`super::code::suspect_operation`]).
//!
//! A function can also return before its work has ended, so that only its submission is timed. On a processor, the
//! generated module reads the first call's results at once and again later.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use benchgate_core::model::is_cpu;
use benchgate_core::numerics::TensorFile;
use benchgate_host::process::{Command, Exit};
use benchgate_toolchain::Installed;

use super::PipelineError;
use super::argv::{Execution, InputArg};
use super::calling_module::{
    ALONE, GIVEN, LATE, NoCaller, ONCE, Signature, THRICE, TWICE, awaits_nothing, is_buffer,
};
use super::compile::failure;
use super::host::Host;
use super::other_inputs::{OtherValues, left_in, made};
use super::plan::PlannedBenchmark;
use super::slots::Priority;
use super::stage::Caller;

/// Time that the calls before a late one may take together, in seconds.
const UNTIL_LATE: f64 = 0.5;
/// The time limit of a process that calls the function with other inputs, as a multiple of the first process's time, and
/// the least. A loop that ends when its values converge may never end with them.
const TIMES_FIRST: u32 = 20;
const LEAST_LIMIT: Duration = Duration::from_secs(10);
/// Numbers of calls before a late one: of the process that shows how long a call takes, and the limits of the other.
const TRIED_CALLS: f64 = 64.0;
const LATE_CALLS: [f64; 2] = [1.0, 50_000.0];
/// Compiles the module that calls a benchmark's function, or returns the reason why that is not possible.
pub(super) async fn caller(
    host: &Host<'_>,
    planned: PlannedBenchmark<'_>,
    tools: &Installed,
    module: &Path,
) -> Result<Result<Caller, NoCaller>, PipelineError> {
    let timeout = planned.side.config.measure.compile_timeout;
    let dump = {
        let _slot = host.slot(Priority::Now).await?;
        host.run(&Command::new(&tools.iree_dump_module, timeout).arg(module).capture_stdout()).await?
    };
    if dump.exit != Exit::Success {
        let why = format!("`iree-dump-module` failed: {}", dump.stderr_tail.trim());
        return Ok(Err(NoCaller::Unchecked(why)));
    }
    let dump = String::from_utf8_lossy(&dump.stdout);
    let signature = match Signature::of(&planned.model.function, &dump) {
        Ok(signature) => signature,
        Err(why) => return Ok(Err(why)),
    };
    if !signature.is_async && awaits_nothing(&dump) {
        return Ok(Err(NoCaller::Unawaited));
    }
    let text = signature.caller(is_cpu(&planned.target.device));
    let make = async || {
        let folder = host.scratch()?;
        let [source, module] = ["calls.mlir", "calls.vmfb"].map(|name| folder.path().join(name));
        fs::write(&source, &text).map_err(PipelineError::io("write", &source))?;
        let compile = Command::new(&tools.iree_compile, timeout)
            .arg("--compile-mode=vm")
            .arg(&source)
            .arg("-o")
            .arg(&module);
        let _slot = host.slot(Priority::Now).await?;
        let finished = host.run(&compile).await?;
        if finished.exit == Exit::Success && module.is_file() {
            let folder = Some(Arc::new(folder));
            let inputs = signature.parameters.iter().filter(|kind| is_buffer(kind)).count();
            return Ok(Ok(Caller { module, results: signature.results.len(), inputs, _folder: folder }));
        }
        host.fail_on_full_disk(&finished, folder.path())?;
        Ok::<_, PipelineError>(Err(format!("the compiler refused it: {}", finished.stderr_tail.trim())))
    };
    let made: Result<Caller, String> =
        host.callers.get((tools.iree_compile.clone(), text.clone()), make).await?;
    Ok(made.map_err(NoCaller::Unchecked))
}

/// The outcome of checking later calls, for a function whose inputs don't show that it keeps state.
#[derive(Debug, Default)]
pub(super) struct LaterCalls {
    /// Results of a call after many others in one process.
    pub(super) late: Vec<TensorFile>,
    /// Indices of the inputs that the first call changes and later calls leave unchanged.
    pub(super) changed: Vec<u32>,
    /// These inputs with the values that the call left there.
    pub(super) left: Vec<TensorFile>,
    /// The values by which the other inputs differ, if there are inputs with which a first call works.
    pub(super) other_values: Option<OtherValues>,
    /// Results of a first call and of a third call with other inputs, if there are inputs with which a first
    /// call works.
    pub(super) with_others: Option<[Vec<TensorFile>; 2]>,
}

/// Returns whether no element of a result is NaN or infinite.
fn is_finite(results: &[TensorFile]) -> Result<bool, PipelineError> {
    for file in results {
        let bytes = fs::read(&file.path).map_err(PipelineError::io("read", &file.path))?;
        // Results of an unknown type are bytes.
        if file.read(&bytes).is_ok_and(|tensor| tensor.to_f64().iter().any(|value| !value.is_finite())) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Runs a process and returns how many seconds it took, or why it failed.
async fn took(
    host: &Host<'_>,
    command: &Command,
    folder: &Path,
) -> Result<Result<f64, String>, PipelineError> {
    let finished = host.run(command).await?;
    if finished.exit == Exit::Success {
        return Ok(Ok(finished.wall.as_secs_f64()));
    }
    host.fail_on_full_disk(&finished, folder)?;
    Ok(Err(failure(&finished, None).why))
}

/// Calls the function once in one process; in another, it is called twice and then once with other inputs.
/// The second call's results are written to `results`, and those with other inputs to files of the same
/// types. `start` makes the command for some arguments, and `first` is the time of the process of the first call.
///
/// # Errors
/// A description of how the function keeps state, or of why that could not be checked.
pub(super) async fn check(
    caller: &Caller,
    host: &Host<'_>,
    execution: &Execution,
    results: &[TensorFile],
    first: Duration,
    folder: &Path,
    start: impl Fn(Vec<OsString>) -> Command,
) -> Result<Result<LaterCalls, String>, PipelineError> {
    let places = |calls: &str| -> Vec<TensorFile> {
        let name = |number| folder.join(format!("{calls}{number}.bin"));
        let bytes = |number| TensorFile { path: name(number), raw: Some("bytes".to_owned()) };
        (0..caller.inputs).map(bytes).collect()
    };
    let [given, once, twice] = [GIVEN, ONCE, TWICE].map(places);
    let renamed = |calls: &str| -> Vec<TensorFile> {
        let name = |(number, file): (usize, &TensorFile)| TensorFile {
            path: folder.join(format!("{calls}{number}.{}", file.ending())),
            raw: file.raw.clone(),
        };
        results.iter().enumerate().map(name).collect()
    };
    let third = renamed("third");
    let mut both: Option<(OtherValues, Execution, Vec<TensorFile>)> = None;
    for values in OtherValues::ALL {
        let Some(others) = made(&execution.inputs, values, folder)? else { continue };
        let inputs = [execution.inputs.as_slice(), &others].concat();
        let execution = Execution { inputs, ..execution.clone() };
        let alone = renamed(&format!("{ALONE}{}-", values as u8));
        let command = start(execution.through(&caller.module, ALONE, &alone));
        let timeout = command.timeout.min(LEAST_LIMIT.max(first * TIMES_FIRST));
        // The function may not accept the other inputs: it fails or does not end.
        if host.run(&Command { timeout, ..command }).await?.exit != Exit::Success {
            continue;
        }
        // It may also return NaN, for a mask that leaves nothing or for the square root of a negative number. If it
        // always does, that is its result.
        let is_accepted = is_finite(&alone)?;
        both = Some((values, execution, alone));
        if is_accepted {
            break;
        }
    }
    let second = [results, &twice].concat();
    let mut processes = vec![match &both {
        Some((_, both, _)) => both.through(&caller.module, THRICE, &[&second[..], &third].concat()),
        None => execution.through(&caller.module, TWICE, &second),
    }];
    if !once.is_empty() {
        processes.push(execution.through(&caller.module, ONCE, &once));
        processes.push(execution.through(&caller.module, GIVEN, &given));
    }
    let mut seconds = 0.0;
    for (number, arguments) in processes.into_iter().enumerate() {
        match took(host, &start(arguments), folder).await? {
            Ok(took) if number == 0 => seconds = took,
            Ok(_) => {}
            Err(why) => {
                return Ok(Err(format!("a second call in the same process could not be checked: {why}")));
            }
        }
    }
    // The time of a call, which includes a part of the time that starting the process takes. Three calls of a slow function
    // have been made, and timed processes don't make many more.
    let mut each = seconds / 3.0;
    let late = if results.is_empty() || each > UNTIL_LATE { Vec::new() } else { renamed("late") };
    let mut is_known = each * TRIED_CALLS > UNTIL_LATE;
    while !late.is_empty() {
        let count =
            if is_known { (UNTIL_LATE / each).clamp(LATE_CALLS[0], LATE_CALLS[1]) } else { TRIED_CALLS };
        let count = InputArg::Literal(format!("{count:.0}"));
        let inputs = [execution.inputs.as_slice(), &[count]].concat();
        let execution = Execution { inputs, ..execution.clone() };
        match took(host, &start(execution.through(&caller.module, LATE, &late)), folder).await? {
            Ok(_) if is_known => break,
            Ok(took) => (each, is_known) = (took / TRIED_CALLS, true),
            Err(why) => return Ok(Err(format!("later calls in one process could not be checked: {why}"))),
        }
    }
    let (mut changed, mut left) = (Vec::new(), Vec::new());
    // A number is passed as it is, and not in a buffer.
    let is_number =
        |input: &&InputArg| matches!(input, InputArg::Literal(text) if text.parse::<f64>().is_ok());
    let mut buffers = execution.inputs.iter().filter(|input| !is_number(input));
    for (number, calls) in (0..).zip(once.iter().zip(&twice).zip(&given)) {
        let input = buffers.next();
        let ((after, twice), given) = calls;
        let once = host.digests.sha256(&after.path).await?;
        if once != host.digests.sha256(&twice.path).await? {
            return Ok(Err(format!("each call changes input {number}")));
        }
        if once != host.digests.sha256(&given.path).await? {
            changed.push(number);
            if let Some(input) = input {
                left.push(left_in(input, &after.path, folder, number)?);
            }
        }
    }
    let (other_values, with_others) =
        both.map_or_else(Default::default, |(values, _, alone)| (Some(values), Some([alone, third])));
    Ok(Ok(LaterCalls { late, changed, left, other_values, with_others }))
}
