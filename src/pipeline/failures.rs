//! What failed in this run already. Benchmarks that share a model or a module share its failure: asking a
//! tool once more would cost minutes and say the same, or, worse, something else.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::prepare::StageFailure;

/// Failures by kind and key of what was to be made. Not kept beyond the run: a cause outside the key (memory,
/// a full disk) may be gone tomorrow.
#[derive(Debug, Default)]
pub(super) struct Failures(Mutex<HashMap<(&'static str, String), StageFailure>>);

impl Failures {
    /// The failure, which takes no time again.
    pub(super) fn of(&self, kind: &'static str, key: &str) -> Option<StageFailure> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let failure = known.get(&(kind, key.to_owned()))?;
        Some(StageFailure { took: Some(Duration::ZERO), ..failure.clone() })
    }

    /// Remembers how making something ended, and hands it on.
    pub(super) fn keep<T>(
        &self,
        kind: &'static str,
        key: &str,
        made: Result<T, StageFailure>,
    ) -> Result<T, StageFailure> {
        if let Err(failure) = &made {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            known.insert((kind, key.to_owned()), failure.clone());
        }
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_known_by_kind_and_key_and_takes_no_time_again() {
        let failures = Failures::default();
        assert!(failures.keep("compile", "a", Ok(())).is_ok());
        let failure = StageFailure { took: Some(Duration::from_secs(9)), ..StageFailure::unsupported("why") };
        assert!(failures.keep::<()>("compile", "b", Err(failure)).is_err());
        for (kind, key) in [("compile", "a"), ("export", "b")] {
            assert!(failures.of(kind, key).is_none());
        }
        let again = failures.of("compile", "b").unwrap();
        assert_eq!((again.why.as_str(), again.unsupported, again.took), ("why", true, Some(Duration::ZERO)));
    }
}
