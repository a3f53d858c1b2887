//! The files that a command leaves on both sides and that have to agree: a faster program that computes something else is
//! not faster.

use std::path::{Path, PathBuf};

use crate::files;
use crate::gate::NumericsPolicy;
use crate::model::{BenchmarkName, OutputCheck, SideName, Verification, VerifyCode, is_of_command};
use crate::numerics::{NumericsTolerance, TensorFile, check};
use crate::record::RunFile;

use super::PreparedCommand;
use crate::pipeline::candidates::PreparedSide;

/// Largest output.
const MOST: u64 = 1 << 30;

/// Compares the outputs of each command of head with base's, after all of its processes, and adds the result to head's
/// benchmarks.
pub(in crate::pipeline) fn compare_outputs(sides: &[PreparedSide<'_>], file: &mut RunFile) {
    let of = |name| sides.iter().find(|side| side.input.name == name);
    let (Some(base), Some(head)) = (of(SideName::Base), of(SideName::Head)) else { return };
    for command in &head.commands {
        let name = command.spec.name.as_str();
        let Some(reference) = base.commands.iter().find(|base| base.spec.name == name) else { continue };
        let Some(found) = compared(reference, command, &head.input.config.numerics) else { continue };
        let records = file.sides.iter_mut().filter(|side| side.name == SideName::Head);
        for record in records.flat_map(|side| &mut side.benchmarks) {
            if is_of_command(&record.name, name) {
                record.verification = Some(found.clone());
            }
        }
    }
}

/// `None` if there is nothing to compare: the configuration names no outputs, or a side could not be built.
fn compared(
    base: &PreparedCommand,
    head: &PreparedCommand,
    numerics: &NumericsPolicy,
) -> Option<Verification> {
    // Base says which files there are.
    let wanted = &base.spec.outputs;
    if wanted.is_empty() || base.failure.is_some() || head.failure.is_some() {
        return None;
    }
    let (Some(base_folder), Some(head_folder)) = (base.build_folder(), head.build_folder()) else {
        let why = "a side has no build folder to leave its outputs in".to_owned();
        return Some(Verification::bare(VerifyCode::VerifierDidntRun, Some(why)));
    };
    let tolerances = numerics.for_benchmark(&BenchmarkName::new(&head.spec.name));
    let mut checks = Vec::new();
    for (index, output) in wanted.iter().enumerate() {
        match compared_file(index, output, [base_folder, head_folder], &tolerances) {
            Ok(check) => checks.push(check),
            Err(why) => return Some(Verification::bare(VerifyCode::VerifierDidntRun, Some(why))),
        }
    }
    let differs = checks.iter().find(|check| check.code != VerifyCode::Pass);
    let why = differs.map(|check| {
        format!("`{}`: {}", wanted[check.index], check.why.as_deref().unwrap_or("differs from base's"))
    });
    let code = differs.map_or(VerifyCode::Pass, |check| check.code);
    Some(Verification { outputs: checks, ..Verification::bare(code, why) })
}

/// The file that an output names, with or without the shape and type of a tensor.
pub(super) fn file_of(output: &str) -> PathBuf {
    TensorFile::parse(output).map_or_else(|| output.into(), |tensor| tensor.path)
}

/// Compares one file of both sides: tensors by their tolerances, others by their bytes.
///
/// # Errors
/// Why a file can't be read.
fn compared_file(
    index: usize,
    output: &str,
    [base, head]: [&Path; 2],
    tolerances: &[NumericsTolerance],
) -> Result<OutputCheck, String> {
    let (tensor, name) = (TensorFile::parse(output), file_of(output));
    let read = |side: SideName, folder: &Path| {
        // A link could lead to a file of the other side.
        let path = folder.join(&name);
        let real = path
            .canonicalize()
            .ok()
            .filter(|real| folder.canonicalize().is_ok_and(|it| real.starts_with(it)));
        let real = real.ok_or_else(|| format!("{side} left no file `{output}` in its build folder"))?;
        files::read_bounded(&real, MOST)
            .map_err(|error| format!("failed to read `{output}` of {side}: {error}"))
    };
    let (base, head) = (read(SideName::Base, base)?, read(SideName::Head, head)?);
    let Some(tensor) = tensor else {
        let same = base == head;
        let why = (!same).then(|| "its bytes differ from base's".to_owned());
        let code = if same { VerifyCode::Pass } else { VerifyCode::Fail };
        return Ok(OutputCheck { index, code, why, divergence: None });
    };
    let tensor = |side: SideName, bytes: &[u8]| {
        tensor.read(bytes).map_err(|error| format!("`{output}` of {side}: {error}"))
    };
    let (base, head) = (tensor(SideName::Base, &base)?, tensor(SideName::Head, &head)?);
    Ok(check(index, &head, &base, None, tolerances))
}
