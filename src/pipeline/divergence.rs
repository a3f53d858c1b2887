//! Compares head's outputs with base's, once both sides have computed theirs.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::files::Scratch;
use crate::model::{Lint, LintCode, OutputCheck, SideName, Verification, VerifyCode};
use crate::numerics::{self, Tensor, TensorFile};

use super::PipelineError;
use super::argv::InputArg;
use super::cache::{Digests, KeyBuilder};
use super::candidates::PreparedSide;
use super::stage::{Outputs, PreparedSource, StageError, StageFailure, Staged};

/// Keeps the outputs of one verified call, and of a call with other inputs, until they are compared.
pub(super) async fn keep(
    digests: &Digests,
    folder: Scratch,
    [files, with_others]: [Vec<TensorFile>; 2],
    source: &PreparedSource,
) -> Result<Outputs, PipelineError> {
    let inputs = add_inputs(KeyBuilder::new("inputs"), &source.inputs, digests).await?.finish();
    let mut question = KeyBuilder::new("question").text("inputs", &inputs).text("mlir", &source.mlir_sha256);
    for (scope, path) in &source.parameters {
        question = question.text("scope", scope).text("parameters", &digests.sha256(path).await?);
    }
    let answer = KeyBuilder::new("answer").text("inputs", &inputs);
    let answer = add_tensors(answer, &source.expected, digests).await?;
    let answer = (!source.expected.is_empty()).then(|| answer.finish());
    let exact = source.expected64.clone();
    let (folder, question) = (Arc::new(folder), question.finish());
    Ok(Outputs { _folder: folder, files, with_others, exact, inputs, question, answer })
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

/// Returns whether both calls had the same task: the same program and data, or the same reference and data.
/// If the model was changed, different numbers are not the compiler's fault.
fn same_model(a: &Outputs, b: &Outputs) -> bool {
    a.question == b.question || (a.answer.is_some() && a.answer == b.answer)
}

/// Compares every benchmark of head with base's under head's tolerances, and then releases the files.
pub(super) fn compare_sides(sides: &mut [PreparedSide<'_>]) -> Result<(), PipelineError> {
    let [first, second] = sides else { return Ok(()) };
    let (base, head) = if first.input.name == SideName::Base { (first, second) } else { (second, first) };
    for prepared in &mut head.benchmarks {
        let Some(partner) = base.benchmarks.iter_mut().find(|partner| partner.name() == prepared.name())
        else {
            continue;
        };
        // If both sides execute the same bytes, a difference is not caused by the change, so no comparison is
        // needed. Without a reference it is made anyway, because nothing else would verify the outputs.
        let identical = prepared.artifact.is_some() && prepared.artifact == partner.artifact;
        let Some(base_outputs) = partner.outputs.take() else { continue };
        let Some(head_outputs) = prepared.outputs.take() else {
            if !identical
                && let Some((why, verification)) = prepared.incomparable.zip(prepared.verification.as_mut())
            {
                let why = format!("head's outputs can't be compared with base's: {why}");
                verification.against_base =
                    vec![OutputCheck { index: 0, code: VerifyCode::Fail, divergence: None, why: Some(why) }];
            }
            continue;
        };
        if partner.had_other_inputs && !prepared.had_other_inputs {
            let why = "head can't be called with other inputs, but base can, so benchgate could not check \
                whether head keeps state between calls";
            prepared.lints.push(Lint::new(LintCode::Stateful, why));
        }
        let Some(verification) = prepared.verification.as_mut() else { continue };
        // Outputs of different inputs can't be compared at all.
        let needs_no_base = identical && verification.code != VerifyCode::VerifierSkipped;
        if needs_no_base || head_outputs.inputs != base_outputs.inputs {
            continue;
        }
        // Both files were read as tensors before, so if one can't be read now, it is damaged.
        let read = |files: &[TensorFile]| {
            tensors(files).map_err(|error| match error {
                StageError::Run(error) => error,
                StageError::Benchmark(failure) => {
                    let path = files.first().map_or(Path::new(""), |file| &file.path);
                    PipelineError::io("read back", path)(std::io::Error::other(failure.why))
                }
            })
        };
        verification.model_changed = !same_model(&head_outputs, &base_outputs);
        // If the model is the same, only the reference decides, and a difference from base's outputs is only
        // a finding.
        let exact = if verification.model_changed { read(&base_outputs.exact)? } else { Vec::new() };
        let (base, head) = (read(&base_outputs.files)?, read(&head_outputs.files)?);
        let tolerances = prepared.planned.tolerances();
        verification.against_base = numerics::against_base(&head, &base, &exact, &tolerances);
        let is_unreferenced =
            verification.code == VerifyCode::VerifierSkipped && verification.outputs.is_empty();
        if is_unreferenced && let Some(why) = numerics::vacuous_base(&base, &tolerances) {
            prepared.lints.push(Lint::new(LintCode::VacuousReference, why));
        }
        let others = [&head_outputs.with_others, &base_outputs.with_others];
        if !identical && others.iter().all(|files| !files.is_empty()) {
            let [head, others] = [read(others[0])?, read(others[1])?];
            let checks = &verification.against_base;
            let wrong = numerics::with_other_inputs(&head, &others, &base, checks, &tolerances);
            add_wrong(verification, wrong);
        }
    }
    Ok(())
}

/// Adds the outputs that differ from base's when both are called with other inputs. A reference only covers
/// the given inputs, so agreement with it doesn't excuse this difference. If the model changed and its
/// outputs differ for the given inputs too, nothing is added.
fn add_wrong(verification: &mut Verification, wrong: Vec<OutputCheck>) {
    let is_same_model = verification.code == VerifyCode::Pass && !verification.model_changed;
    for found in wrong {
        let Some(check) = verification.against_base.get_mut(found.index) else { continue };
        if is_same_model {
            verification.code = VerifyCode::Fail;
            verification.why.clone_from(&found.why);
        }
        if is_same_model || check.code == VerifyCode::Pass {
            *check = found;
        }
    }
}
