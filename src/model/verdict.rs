//! The seven words a comparison can end in.

use std::fmt;

/// The answer about one row, or about a whole comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Measured, and the change is smaller than the tolerance.
    Pass,
    /// Better by more than the floor.
    Improved,
    /// Worse by more than the floor, or a stage that worked at base fails at head.
    Regressed,
    /// The outputs differ by more than the policy allows.
    Diverged,
    /// Measured, but the question is still open.
    Inconclusive,
    /// One side has no such benchmark.
    Missing,
    /// Could not be measured or must not be judged.
    Error,
}

impl Verdict {
    pub const ALL: [Self; 7] = [
        Self::Pass,
        Self::Improved,
        Self::Regressed,
        Self::Diverged,
        Self::Inconclusive,
        Self::Missing,
        Self::Error,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Improved => "improved",
            Self::Regressed => "regressed",
            Self::Diverged => "diverged",
            Self::Inconclusive => "inconclusive",
            Self::Missing => "missing",
            Self::Error => "error",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verdict| verdict.as_str() == name)
    }

    /// Where several hold, the one with the highest precedence names the whole:
    /// error, diverged, regressed, missing, inconclusive, then the good ones.
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

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
