//! The seven words a comparison can end in.

words! {
    /// The answer about one row, or about a whole comparison.
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
        /// Measured, but the question is still open.
        Inconclusive = "inconclusive",
        /// One side has no such benchmark.
        Missing = "missing",
        /// Could not be measured or must not be judged.
        Error = "error",
    }
}

impl Verdict {
    /// If several apply, the one with the highest precedence determines the result: error, diverged, regressed,
    /// missing, inconclusive, then the good ones.
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
