//! Why a candidate can't be measured.

use super::super::CliError;

/// Why a candidate is not a side.
pub enum Unusable {
    /// It can't be measured; the search continues without it.
    Skipped(String),
    /// The search can't go on.
    Stop(CliError),
}

impl<E: Into<CliError>> From<E> for Unusable {
    fn from(error: E) -> Self {
        Self::Stop(error.into())
    }
}
