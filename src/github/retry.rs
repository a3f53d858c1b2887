//! Decides when to retry a request, as a pure function of the response.
//!
//! A request that GitHub rejected because of a rate limit was not carried out and may always be repeated. A
//! request without a response may have been carried out, and repeating a POST request could post twice, so
//! the caller has to check first.

use std::time::Duration;

/// The number of attempts, and the time between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Time to wait after the first failure; each further wait is twice as long.
    pub first_wait: Duration,
    /// Maximum number of attempts per request.
    pub max_attempts: u32,
    /// Maximum total time that one request may wait.
    pub max_wait: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        // GitHub resets the primary rate limit every hour, but a comment is not worth waiting that long.
        Self { first_wait: Duration::from_secs(1), max_attempts: 5, max_wait: Duration::from_secs(600) }
    }
}

/// Time to wait after a rate limit that does not state a time, as GitHub recommends.
const DEFAULT_WAIT: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TryOutcome {
    Response {
        status: u16,
        /// Seconds to wait according to the response: the value of Retry-After, or the time until the limit
        /// is reset.
        retry_after: Option<u64>,
        /// True if no requests are left until the limit is reset.
        exhausted: bool,
        /// True if the message mentions a rate limit.
        limited: bool,
    },
    /// No connection was made, so the request was not carried out.
    NotSent,
    /// The request was sent, but there was no response.
    NoResponse,
}

/// The next step after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextStep {
    /// Use the response.
    Accept,
    Wait(Duration),
    /// The request may have been carried out, so check whether it was.
    CheckWhetherDone,
}

/// Decides the next step. `repeatable` means that carrying out the request twice has the same effect as once.
/// `failures` is the number of earlier failures.
pub(super) fn next_step(
    outcome: &TryOutcome,
    repeatable: bool,
    failures: u32,
    retries: RetryPolicy,
) -> NextStep {
    let backoff = retries.first_wait.saturating_mul(2_u32.saturating_pow(failures));
    match outcome {
        TryOutcome::Response { status, retry_after, exhausted, limited } => {
            let retry_after = retry_after.map(Duration::from_secs);
            match status {
                429 => NextStep::Wait(retry_after.unwrap_or(DEFAULT_WAIT)),
                403 if retry_after.is_some() || *exhausted || *limited => {
                    NextStep::Wait(retry_after.unwrap_or(DEFAULT_WAIT))
                }
                500..=599 if repeatable => NextStep::Wait(retry_after.unwrap_or(backoff)),
                500..=599 => NextStep::CheckWhetherDone,
                _ => NextStep::Accept,
            }
        }
        TryOutcome::NotSent => NextStep::Wait(backoff),
        TryOutcome::NoResponse if repeatable => NextStep::Wait(backoff),
        TryOutcome::NoResponse => NextStep::CheckWhetherDone,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16) -> TryOutcome {
        TryOutcome::Response { status, retry_after: None, exhausted: false, limited: false }
    }

    fn limited(status: u16, seconds: u64) -> TryOutcome {
        TryOutcome::Response { status, retry_after: Some(seconds), exhausted: false, limited: false }
    }

    fn ask(outcome: &TryOutcome, repeatable: bool) -> NextStep {
        next_step(outcome, repeatable, 0, RetryPolicy::default())
    }

    #[test]
    fn a_rate_limit_is_waited_out() {
        for repeatable in [false, true] {
            assert_eq!(ask(&limited(429, 7), repeatable), NextStep::Wait(Duration::from_secs(7)));
            assert_eq!(ask(&limited(403, 7), repeatable), NextStep::Wait(Duration::from_secs(7)));
            assert_eq!(ask(&answer(429), repeatable), NextStep::Wait(DEFAULT_WAIT));
            let secondary =
                TryOutcome::Response { status: 403, retry_after: None, exhausted: false, limited: true };
            assert_eq!(ask(&secondary, repeatable), NextStep::Wait(DEFAULT_WAIT));
        }
    }

    #[test]
    fn a_read_only_token_is_not_a_rate_limit() {
        assert_eq!(ask(&answer(403), false), NextStep::Accept);
    }

    #[test]
    fn a_request_that_may_have_been_carried_out_is_not_repeated_without_a_check() {
        for outcome in [answer(500), answer(502), answer(503), answer(504), TryOutcome::NoResponse] {
            assert_eq!(ask(&outcome, false), NextStep::CheckWhetherDone, "{outcome:?}");
            assert!(matches!(ask(&outcome, true), NextStep::Wait(_)), "{outcome:?}");
        }
        assert!(matches!(ask(&TryOutcome::NotSent, false), NextStep::Wait(_)));
    }

    #[test]
    fn waits_double_after_each_failure() {
        let wait = |failures| next_step(&answer(502), true, failures, RetryPolicy::default());
        assert_eq!(wait(0), NextStep::Wait(Duration::from_secs(1)));
        assert_eq!(wait(3), NextStep::Wait(Duration::from_secs(8)));
        // Checks that nothing overflows, even far beyond the maximum number of attempts.
        assert!(matches!(wait(200), NextStep::Wait(_)));
    }

    #[test]
    fn success_and_other_errors_are_accepted() {
        for status in [200, 201, 204, 301, 401, 404, 422] {
            assert_eq!(ask(&answer(status), false), NextStep::Accept, "{status}");
        }
    }
}
