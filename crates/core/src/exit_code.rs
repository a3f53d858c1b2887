//! The documented exit codes. Everything that ends the process goes through this enum.

use crate::model::Verdict;

/// The exit code of benchgate. `docs/exit-codes.md` documents each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExitCode {
    /// `fail-on` names none of the verdicts.
    Pass,
    /// A bug in benchgate itself.
    Internal,
    /// The command line or the configuration is invalid.
    Usage,
    /// At least one benchmark regressed.
    Regressed,
    /// The result is inconclusive and `fail-on` names `inconclusive`.
    Inconclusive,
    /// There is nothing to compare with.
    BaselineMissing,
    /// The outputs differ by more than the policy allows.
    Diverged,
    /// A stage failed, the tools are unverified, or the results are unusable.
    Error,
    /// An input could not be read.
    InputUnreadable,
    /// The baseline store or GitHub failed.
    StoreFailed,
    /// Stopped by SIGINT or SIGTERM. The measurements are kept, and the next run resumes.
    Interrupted,
}

impl ExitCode {
    pub const ALL: [Self; 11] = [
        Self::Pass,
        Self::Internal,
        Self::Usage,
        Self::Regressed,
        Self::Inconclusive,
        Self::BaselineMissing,
        Self::Diverged,
        Self::Error,
        Self::InputUnreadable,
        Self::StoreFailed,
        Self::Interrupted,
    ];

    /// Returns the number that the operating system gets.
    pub const fn code(self) -> u8 {
        match self {
            Self::Pass => 0,
            Self::Internal => 1,
            Self::Usage => 2,
            Self::Regressed => 10,
            Self::Inconclusive => 11,
            Self::BaselineMissing => 12,
            Self::Diverged => 13,
            Self::Error => 20,
            Self::InputUnreadable => 21,
            Self::StoreFailed => 22,
            // 128 + SIGINT, the status that shells report for an interrupted command.
            Self::Interrupted => 130,
        }
    }

    /// Returns the exit code for a verdict that `fail-on` contains.
    pub const fn for_verdict(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Pass | Verdict::Improved => Self::Pass,
            Verdict::Regressed => Self::Regressed,
            Verdict::Diverged => Self::Diverged,
            Verdict::Inconclusive => Self::Inconclusive,
            Verdict::Missing => Self::BaselineMissing,
            Verdict::Error => Self::Error,
        }
    }
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code.code())
    }
}
