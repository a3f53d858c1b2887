//! What became of a benchmark. Outcomes are data, not errors.

use std::fmt;

/// The steps a model goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stage {
    Toolchain,
    Export,
    Compile,
    Verify,
    Benchmark,
}

impl Stage {
    pub const ALL: [Self; 5] = [Self::Toolchain, Self::Export, Self::Compile, Self::Verify, Self::Benchmark];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Toolchain => "toolchain",
            Self::Export => "export",
            Self::Compile => "compile",
            Self::Verify => "verify",
            Self::Benchmark => "benchmark",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| stage.as_str() == name)
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What became of one benchmark on one side.
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
