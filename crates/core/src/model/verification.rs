//! The result of checking that a compiled module computes the same as the original model.
//!
//! The outcome and the verdict of a benchmark. Outcomes are data, not errors.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::number::{self, Number};

words! {
    /// The verification codes of PyTorch/XLA's torchbench runner, which are already in common use.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum VerifyCode: "verification code" {
        Pass = "PASS",
        Fail = "FAIL",
        EagerFailed = "EAGER_FAILED",
        ExceptionRaised = "EXCEPTION_RAISED",
        NondeterministicEagerRun = "NONDETERMINISTIC_EAGER_RUN",
        VerifierSkipped = "VERIFIER_SKIPPED",
        VerifierDidntRun = "VERIFIER_DIDNT_RUN",
    }
}

impl VerifyCode {
    /// Returns whether nothing shows that the outputs are right or wrong, so that they are compared with base's.
    pub const fn has_no_reference(self) -> bool {
        matches!(self, Self::VerifierSkipped | Self::NondeterministicEagerRun)
    }
}

/// The numerical distance between an output and its reference.
#[serde_with::apply(
    f64 => #[serde(with = "number")] #[schemars(with = "Number")],
    Option<f64> => #[serde(default, with = "number::optional")] #[schemars(with = "Option<Number>")],
)]
#[skip_serializing_none]
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
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
    /// Root mean square of |a − b| / (|b| + m), where m is the reference's typical magnitude: the distance that says
    /// how accurate an output is. Absent if nothing finite was compared, and in old files.
    pub error: Option<f64>,
    /// The largest allowed value of this error; absent for types that have no rounding.
    pub allowed_error: Option<f64>,
    /// Distance from the fp64 reference, if there is one.
    pub error_fp64: Option<f64>,
    /// The reference's own distance from the fp64 reference: the error of rounding alone.
    pub reference_error_fp64: Option<f64>,
}

impl Divergence {
    /// Returns whether a check with these numbers can have passed. Only an fp64 reference excuses elements
    /// beyond the tolerance.
    fn can_pass(&self) -> bool {
        let is_known = |error: Option<f64>| error.is_some_and(f64::is_finite);
        let is_excused = is_known(self.error_fp64) && is_known(self.reference_error_fp64);
        let within = self.error.zip(self.allowed_error).is_none_or(|(error, allowed)| error <= allowed);
        self.non_finite == 0 && (is_excused || (self.mismatched == 0 && within))
    }
}

/// One output of one function, checked.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutputCheck {
    #[schemars(with = "u32")]
    pub index: usize,
    pub code: VerifyCode,
    /// The reason in words, if the code is not PASS.
    pub why: Option<String>,
    /// Absent if shapes or types differ, or nothing was compared.
    pub divergence: Option<Divergence>,
}

impl OutputCheck {
    /// Returns the code that the numbers support: a pass that they contradict becomes a failure.
    fn supported_code(&self) -> VerifyCode {
        let contradicted = self.divergence.is_some_and(|divergence| !divergence.can_pass());
        if self.code == VerifyCode::Pass && contradicted { VerifyCode::Fail } else { self.code }
    }
}

/// Sums over the elements x of an output with random signs, of x / (|x| + s) for two scales s. The mean square of the
/// differences between two outputs' sums estimates the squared distance between the outputs (Alon, Matias and Szegedy, "The
/// space complexity of approximating the frequency moments", 1999).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutputSketch {
    /// The output's type and shape: `f32 4x8`.
    #[serde(rename = "type")]
    pub shape: String,
    /// SHA-256 over the elements.
    pub sha256: String,
    /// Numbers of elements that are NaN, infinite, and minus infinite.
    pub not_finite: [u64; 3],
    /// The scales are two to the power of this and of the next number, next to the size of most elements.
    pub exponent: i32,
    /// The sums for each scale.
    pub sums: [Vec<Number>; 2],
    /// For each scale, the distance (Euclidean norm) of an output whose elements all differ from this one's by as much as the
    /// tolerance allows.
    pub allowed: [Number; 2],
}

/// The outputs of a benchmark without a reference, for a comparison with those of another session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutputSketches {
    /// SHA-256 over the program, its weights and its inputs.
    pub program_sha256: String,
    pub outputs: Vec<OutputSketch>,
}

/// All outputs of one benchmark, checked against the reference.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Verification {
    pub code: VerifyCode,
    pub why: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<OutputCheck>,
    /// Head's outputs against base's, where both were computed from the same inputs; empty otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub against_base: Vec<OutputCheck>,
    /// Head's program and reference differ from base's, so different outputs may be intended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub model_changed: bool,
    /// The reason why there is no fp64 reference, if one was tried.
    pub no_fp64: Option<String>,
    /// Only if there is no reference.
    pub sketches: Option<OutputSketches>,
}

impl Verification {
    /// Creates a verification without compared outputs.
    pub const fn bare(code: VerifyCode, why: Option<String>) -> Self {
        Self {
            code,
            outputs: Vec::new(),
            why,
            against_base: Vec::new(),
            model_changed: false,
            no_fp64: None,
            sketches: None,
        }
    }

    /// Returns the code of the total, or of a failed output if the total claims a pass.
    pub fn supported_code(&self) -> VerifyCode {
        let failed =
            self.outputs.iter().map(OutputCheck::supported_code).find(|code| *code != VerifyCode::Pass);
        match self.code {
            VerifyCode::Pass => failed.unwrap_or(VerifyCode::Pass),
            code => code,
        }
    }

    /// Returns whether head's outputs differ from base's.
    pub fn differs_from_base(&self) -> bool {
        self.against_base.iter().any(|output| output.supported_code() != VerifyCode::Pass)
    }
}

words! {
    /// The steps a model goes through.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Stage: "stage" {
        Toolchain = "toolchain",
        Export = "export",
        Compile = "compile",
        Verify = "verify",
        Benchmark = "benchmark",
    }
}

/// The outcome of one benchmark on one side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Measured.
    Ok,
    /// Declared as not supported, with the reason. Not a failure and not a pass.
    Unsupported { reason: String },
    /// A stage failed.
    Failed { stage: Stage, why: String },
    /// Not run, as requested.
    Skipped { reason: String },
}

impl Outcome {
    pub const fn is_ok(&self) -> bool {
        matches!(self, Self::Ok)
    }

    /// Returns the reason why it was not measured.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Ok => None,
            Self::Failed { why, .. } => Some(why),
            Self::Unsupported { reason } | Self::Skipped { reason } => Some(reason),
        }
    }
}

words! {
    /// The decision about one row, or about a whole comparison.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Verdict: "verdict" {
        /// Measured, and the change is smaller than the tolerance.
        Pass = "pass",
        /// Better by more than the floor.
        Improved = "improved",
        /// Worse by more than the floor, or a stage that worked at base fails at head.
        Regressed = "regressed",
        /// The outputs differ by more than the policy allows.
        Diverged = "diverged",
        /// Measured, but undecided.
        Inconclusive = "inconclusive",
        /// One side lacks the benchmark.
        Missing = "missing",
        /// Could not be measured or must not be judged.
        Error = "error",
    }
}

impl Verdict {
    /// Returns the rank of a verdict. The verdict with the highest rank determines the result: error,
    /// diverged, regressed, missing, inconclusive, then the good ones.
    pub const fn precedence(self) -> u8 {
        match self {
            Self::Error => 6,
            Self::Diverged => 5,
            Self::Regressed => 4,
            Self::Missing => 3,
            Self::Inconclusive => 2,
            Self::Improved => 1,
            Self::Pass => 0,
        }
    }
}
