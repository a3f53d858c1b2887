//! Head's outputs against base's, once both sides have computed theirs.

use std::sync::Arc;

use crate::files::Scratch;
use crate::model::SideName;
use crate::numerics::{self, TensorFile};

use super::PipelineError;
use super::assemble::PreparedSide;
use super::cache::KeyBuilder;
use super::prepare::{Context, Source, add_inputs, add_tensor};
use super::verify::tensors;

/// The outputs of one verified call, on disk until they were compared.
#[derive(Debug, Clone)]
pub(super) struct Outputs {
    /// Deletes the files when the last holder lets go.
    _folder: Arc<Scratch>,
    files: Vec<TensorFile>,
    /// The program and its data: MLIR, parameters, inputs.
    question: String,
    /// The inputs and what they should give; `None` where nobody said.
    answer: Option<String>,
}

impl Outputs {
    pub(super) async fn keep(
        context: &Context<'_>,
        folder: Scratch,
        files: Vec<TensorFile>,
        source: &Source,
    ) -> Result<Self, PipelineError> {
        let inputs = add_inputs(KeyBuilder::new("inputs"), &source.inputs, &context.digests).await?.finish();
        let mut question =
            KeyBuilder::new("question").text("inputs", &inputs).text("mlir", &source.mlir_sha256);
        for (scope, path) in &source.parameters {
            question = question.text("scope", scope).text("parameters", &context.digests.of(path).await?);
        }
        let mut answer = KeyBuilder::new("answer").text("inputs", &inputs);
        for file in &source.expected {
            answer = add_tensor(answer, "expected", file, &context.digests).await?;
        }
        let answer = (!source.expected.is_empty()).then(|| answer.finish());
        Ok(Self { _folder: Arc::new(folder), files, question: question.finish(), answer })
    }

    /// Whether both were asked the same: one program on one data, or one reference for one data. A model that
    /// was changed on purpose gives other numbers, and no compiler is to blame for that.
    fn answers_the_same_as(&self, other: &Self) -> bool {
        self.question == other.question || (self.answer.is_some() && self.answer == other.answer)
    }
}

/// Compares every benchmark of head with base's, under head's tolerances, and lets the files go.
pub(super) fn compare_sides(sides: &mut [PreparedSide<'_>]) -> Result<(), PipelineError> {
    let [first, second] = sides else { return Ok(()) };
    let (base, head) = if first.input.name == SideName::Base { (first, second) } else { (second, first) };
    for prepared in &mut head.benchmarks {
        let Some(partner) = base.benchmarks.iter_mut().find(|partner| partner.name == prepared.name) else {
            continue;
        };
        let (Some(base_outputs), Some(head_outputs)) = (partner.outputs.take(), prepared.outputs.take())
        else {
            continue;
        };
        // The same bytes: what differs is not the change.
        let identical = prepared.artifact.is_some() && prepared.artifact == partner.artifact;
        if identical || !head_outputs.answers_the_same_as(&base_outputs) {
            continue;
        }
        // Both were read as tensors before.
        if let (Ok(base_tensors), Ok(head_tensors), Some(verification)) =
            (tensors(&base_outputs.files)?, tensors(&head_outputs.files)?, prepared.verification.as_mut())
        {
            let tolerances = &head.input.config.numerics;
            verification.against_base = numerics::against_base(&base_tensors, &head_tensors, tolerances);
        }
    }
    Ok(())
}
