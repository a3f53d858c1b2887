//! The outcome and the verdict of a benchmark. Outcomes are data, not errors.

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
