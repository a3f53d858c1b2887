//! All outputs of a benchmark against their references.

use crate::model::{OutputCheck, Verification, VerifyCode};

use super::check::check;
use super::{NumericsTolerance, Tensor};

/// Compares every output with the reference of the same place.
///
/// `references64` holds the fp64 references in the same order, or is empty. Without references nothing is
/// verified, and the code says so; another number of outputs than of references fails.
pub fn verify(
    outputs: &[Tensor],
    references: &[Tensor],
    references64: &[Tensor],
    tolerances: &[NumericsTolerance],
) -> Verification {
    if references.is_empty() {
        return Verification {
            code: VerifyCode::VerifierSkipped,
            outputs: Vec::new(),
            why: Some("there is no reference".to_owned()),
        };
    }
    let checks: Vec<OutputCheck> = outputs
        .iter()
        .zip(references)
        .enumerate()
        .map(|(index, (output, reference))| {
            check(index, output, reference, references64.get(index), tolerances)
        })
        .collect();
    let why = if outputs.len() == references.len() {
        checks
            .iter()
            .find(|check| check.code != VerifyCode::Pass)
            .map(|check| format!("output {}: {}", check.index, check.why.as_deref().unwrap_or("differs")))
    } else {
        let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        Some(format!(
            "{} where there {} {}",
            count(outputs.len(), "output"),
            if references.len() == 1 { "is" } else { "are" },
            count(references.len(), "reference")
        ))
    };
    let code = if why.is_none() { VerifyCode::Pass } else { VerifyCode::Fail };
    Verification { code, outputs: checks, why }
}
