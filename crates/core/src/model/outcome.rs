//! The outcome of a benchmark. Outcomes are data, not errors.

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
    /// Not run, by request.
    Skipped { reason: String },
}

impl Outcome {
    pub const fn is_ok(&self) -> bool {
        matches!(self, Self::Ok)
    }
}
