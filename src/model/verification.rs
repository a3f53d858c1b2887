//! Whether a compiled module computes what the model computes.

use std::fmt;

/// The verification codes of the PyTorch/XLA torchbench runner, which the field already reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VerifyCode {
    Pass,
    Fail,
    EagerFailed,
    ExceptionRaised,
    NondeterministicEagerRun,
    VerifierSkipped,
    VerifierDidntRun,
}

impl VerifyCode {
    pub const ALL: [Self; 7] = [
        Self::Pass,
        Self::Fail,
        Self::EagerFailed,
        Self::ExceptionRaised,
        Self::NondeterministicEagerRun,
        Self::VerifierSkipped,
        Self::VerifierDidntRun,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "PASS",
            Self::Fail => "FAIL",
            Self::EagerFailed => "EAGER_FAILED",
            Self::ExceptionRaised => "EXCEPTION_RAISED",
            Self::NondeterministicEagerRun => "NONDETERMINISTIC_EAGER_RUN",
            Self::VerifierSkipped => "VERIFIER_SKIPPED",
            Self::VerifierDidntRun => "VERIFIER_DIDNT_RUN",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.as_str() == name)
    }
}

impl fmt::Display for VerifyCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The numerical distance between an output and its reference.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Divergence {
    /// Largest |a − b|.
    pub max_abs: f64,
    /// Largest |a − b| / |b| over elements with b ≠ 0.
    pub max_rel: f64,
    /// Largest distance in units in the last place of the output's type.
    pub max_ulp: f64,
    /// Cosine similarity of the flattened tensors; 1 for equal directions.
    pub cosine: f64,
    /// Root mean square of a − b.
    pub rmse: f64,
    /// Elements outside the tolerance, of `elements`.
    pub mismatched: u64,
    pub elements: u64,
    /// NaN or Inf where the reference is finite.
    pub non_finite: u64,
    /// Root mean square of |a − b| / (|b| + m), where m is the reference's typical magnitude: the distance
    /// that says how accurate an output is. Absent where nothing finite was compared, and in old files.
    pub error: Option<f64>,
    /// The most of it that was allowed; absent for types that have no rounding.
    pub allowed_error: Option<f64>,
    /// The same distance from the fp64 reference, where there is one.
    pub error_fp64: Option<f64>,
    /// The reference's own distance from the fp64 reference: what rounding alone costs.
    pub reference_error_fp64: Option<f64>,
}

/// One output of one function, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct OutputCheck {
    pub index: usize,
    pub code: VerifyCode,
    /// Absent where shapes or types differ, or nothing was compared.
    pub divergence: Option<Divergence>,
    /// Why, in words, where the code is not PASS.
    pub why: Option<String>,
}

/// All outputs of one benchmark, checked against the reference.
#[derive(Debug, Clone, PartialEq)]
pub struct Verification {
    pub code: VerifyCode,
    pub outputs: Vec<OutputCheck>,
    pub why: Option<String>,
    /// Head's outputs against base's, where both computed the same from the same inputs; empty otherwise.
    pub against_base: Vec<OutputCheck>,
    /// Why there is no fp64 reference, where one was tried.
    pub no_fp64: Option<String>,
}

impl Verification {
    /// One without outputs that were compared.
    pub const fn bare(code: VerifyCode, why: Option<String>) -> Self {
        Self { code, outputs: Vec::new(), why, against_base: Vec::new(), no_fp64: None }
    }

    /// The code that the outputs bear out: a total that passes although one of its outputs did not is as
    /// good as that output.
    pub fn supported_code(&self) -> VerifyCode {
        let failed = self.outputs.iter().map(|output| output.code).find(|code| *code != VerifyCode::Pass);
        match self.code {
            VerifyCode::Pass => failed.unwrap_or(VerifyCode::Pass),
            code => code,
        }
    }

    /// Head computes something else than base.
    pub fn differs_from_base(&self) -> bool {
        self.against_base.iter().any(|output| output.code != VerifyCode::Pass)
    }
}
