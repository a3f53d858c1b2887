//! Compares what base's and head's first calls returned, and what they left in their inputs.

use std::fs;
use std::path::{Path, PathBuf};

use benchgate_config::{ParameterSource, Parameters};
use benchgate_core::model::{Lint, LintCode, OutputCheck, SideName, Verification, VerifyCode};
use benchgate_core::numerics::{
    self, NumericsTolerance, ParameterFill, Tensor, TensorFile, literal_elements,
};

use super::PipelineError;
use super::argv::InputArg;
use super::candidates::PreparedSide;
use super::other_inputs::made_before;
use super::stage::{Outputs, StageError};
use super::verify::tensors;

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
        let both = partner.calls.outputs.take().zip(prepared.calls.outputs.take());
        let Some((base_outputs, head_outputs)) = both else { continue };
        if let Some(why) = partner.calls.incomparable {
            let is_unreferenced = |found: &Verification| found.code.has_no_reference();
            if !identical && prepared.verification.as_ref().is_some_and(is_unreferenced) {
                let why = format!("base's outputs can't be compared with head's: {why}");
                prepared.lints.push(Lint::new(LintCode::VacuousReference, why));
            }
            continue;
        }
        let other_values = [partner.calls.other_values, prepared.calls.other_values];
        if other_values[0].is_some() && other_values[0] != other_values[1] {
            let why = "base and head don't accept the same other inputs, so benchgate could not check whether head keeps \
                state between calls";
            prepared.lints.push(Lint::new(LintCode::Stateful, why));
        }
        let Some(verification) = prepared.verification.as_mut() else { continue };
        // Outputs of different inputs can't be compared at all.
        let needs_no_base = identical && !verification.code.has_no_reference();
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
        if let Some(why) = prepared.calls.incomparable {
            if !identical {
                let why = format!("head's outputs can't be compared with base's: {why}");
                verification.against_base =
                    vec![OutputCheck { index: 0, code: VerifyCode::Fail, divergence: None, why: Some(why) }];
            }
            continue;
        }
        // If the model is the same, only the reference decides, and a difference from base's outputs is only
        // a finding.
        let exact = if verification.model_changed { read(&base_outputs.exact)? } else { Vec::new() };
        let (base, head) = (read(&base_outputs.files)?, read(&head_outputs.files)?);
        let tolerances = prepared.planned.tolerances();
        for (base, head) in base_outputs.left.iter().zip(&head_outputs.left).filter(|_| !identical) {
            if let Some(why) = left_otherwise(base, head, &tolerances)? {
                prepared.lints.push(Lint::new(LintCode::WorkloadChanged, why));
            }
        }
        verification.against_base = numerics::against_base(&head, &base, &exact, &tolerances);
        let is_unreferenced = verification.code.has_no_reference() && verification.outputs.is_empty();
        let nothing = || base.is_empty() && head.is_empty() && !identical;
        let made_of_zeros =
            |weights: &Parameters| weights.source == ParameterSource::Made(ParameterFill::Zeros);
        let parameters = &partner.planned.model.parameters;
        let zeros = || verification.model_changed && parameters.iter().any(made_of_zeros);
        let vacuous = numerics::vacuous_base(&base, &tolerances).or_else(|| {
            let why = match nothing() {
                true => "the function returns nothing, so its work can't be verified",
                false if zeros() => {
                    "the model changed, and weights of `zeros()` hide every change next to them"
                }
                false => return None,
            };
            Some(why.to_owned())
        });
        let vacuous = vacuous.filter(|_| is_unreferenced);
        let vacuous = match vacuous {
            None if !identical => {
                let given = returned_input(&base, &base_outputs.arguments, &tolerances)?;
                match (given, partner.calls.other_values, base_outputs.with_others.first()) {
                    // With other inputs, it may not return its input.
                    (Some(why), Some(values), Some(first)) => {
                        let folder = first.path.parent().unwrap_or(&first.path);
                        let others = made_before(&base_outputs.arguments, values, folder);
                        let outputs = read(&base_outputs.with_others)?;
                        returned_input(&outputs, &others, &tolerances)?.map(|_| why)
                    }
                    (given, ..) => given,
                }
            }
            found => found,
        };
        if let Some(why) = vacuous {
            prepared.lints.push(Lint::new(LintCode::VacuousReference, why));
        }
        let others = [&head_outputs.with_others, &base_outputs.with_others];
        if !identical && other_values[0] == other_values[1] && others.iter().all(|files| !files.is_empty()) {
            let [head, others] = [read(others[0])?, read(others[1])?];
            let checks = &verification.against_base;
            let wrong = numerics::with_other_inputs(&head, &others, &base, checks, &tolerances);
            add_wrong(verification, wrong);
        }
    }
    Ok(())
}

/// Returns why base's outputs prove nothing if a function that returns its inputs would agree with all of them.
fn returned_input(
    outputs: &[Tensor],
    arguments: &[InputArg],
    tolerances: &[NumericsTolerance],
) -> Result<Option<String>, PipelineError> {
    let mut inputs = Vec::new();
    for argument in arguments {
        inputs.push(match argument {
            InputArg::File(file) => {
                let bytes = fs::read(&file.path).map_err(PipelineError::io("read", &file.path))?;
                file.read(&bytes).ok()
            }
            InputArg::Literal(text) => literal_elements(text).and_then(|(raw, _, bytes)| {
                TensorFile { path: PathBuf::new(), raw: Some(raw.to_owned()) }.read(&bytes).ok()
            }),
        });
    }
    let returned = |output: &Tensor| {
        inputs.iter().position(|input| {
            input.as_ref().is_some_and(|input| {
                let is_like = input.shape() == output.shape() && input.dtype() == output.dtype();
                is_like
                    && numerics::against_base(
                        std::slice::from_ref(input),
                        std::slice::from_ref(output),
                        &[],
                        tolerances,
                    )
                    .iter()
                    .all(|check| check.code == VerifyCode::Pass)
            })
        })
    };
    let found: Option<Vec<usize>> = outputs.iter().map(returned).collect();
    let first = found.and_then(|found| found.first().copied());
    Ok(first.map(|input| {
        format!("base's output 0 agrees with its input {input}, so a function that returns its input would agree with it")
    }))
}

/// Describes how what head's first call left in an input differs from what base's left there.
fn left_otherwise(
    base: &TensorFile,
    head: &TensorFile,
    tolerances: &[NumericsTolerance],
) -> Result<Option<String>, PipelineError> {
    let read = |file: &TensorFile| fs::read(&file.path).map_err(PipelineError::io("read back", &file.path));
    let bytes = [read(base)?, read(head)?];
    let tensors = base.read(&bytes[0]).ok().zip(head.read(&bytes[1]).ok());
    let checks = tensors.map(|(base, head)| numerics::against_base(&[head], &[base], &[], tolerances));
    let agrees =
        checks.as_ref().is_some_and(|checks| checks.iter().all(|check| check.code == VerifyCode::Pass));
    if agrees || bytes[0] == bytes[1] {
        return Ok(None);
    }
    let number =
        head.path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.strip_prefix("left"));
    let number = number.and_then(|number| number.split('.').next()).unwrap_or_default();
    Ok(Some(format!("head's first call leaves other values in input {number} than base's")))
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
