//! When to ask again, and when not: a pure function of what came back.
//!
//! A request that GitHub refused for its rate was not carried out and may be repeated whatever it was. One
//! whose answer got lost may have been: repeating a POST then could post twice, so the caller has to look.

use std::time::Duration;

/// How long to be patient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Wait after a first failure; each further one waits twice as long.
    pub first: Duration,
    /// Tries of one request.
    pub tries: u32,
    /// All the waiting that one request may cost.
    pub longest: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        // A primary limit is reset every hour; a job that waited that long would cost more than the comment.
        Self { first: Duration::from_secs(1), tries: 5, longest: Duration::from_secs(600) }
    }
}

/// GitHub's own advice where it limits and does not say for how long.
const UNTOLD: Duration = Duration::from_secs(60);

/// What came back of one try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Came {
    Answer {
        status: u16,
        /// Seconds that the answer says to wait: Retry-After, or the reset of the limit.
        told: Option<u64>,
        /// No request is left until the limit is reset.
        exhausted: bool,
        /// The message names a rate limit.
        limited: bool,
    },
    /// No connection was made, so nothing was carried out.
    NotSent,
    /// The answer got lost.
    Lost,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// The answer stands.
    Take,
    Wait(Duration),
    /// It may have been carried out; only looking tells.
    Look,
}

/// `repeatable`: carrying it out twice is as good as once. `failures` counts those before this one.
pub(super) fn next(came: &Came, repeatable: bool, failures: u32, patience: Patience) -> Next {
    let backoff = patience.first.saturating_mul(2_u32.saturating_pow(failures));
    match came {
        Came::Answer { status, told, exhausted, limited } => {
            let told = told.map(Duration::from_secs);
            match status {
                429 => Next::Wait(told.unwrap_or(UNTOLD)),
                403 if told.is_some() || *exhausted || *limited => Next::Wait(told.unwrap_or(UNTOLD)),
                500..=599 if repeatable => Next::Wait(told.unwrap_or(backoff)),
                500..=599 => Next::Look,
                _ => Next::Take,
            }
        }
        Came::NotSent => Next::Wait(backoff),
        Came::Lost if repeatable => Next::Wait(backoff),
        Came::Lost => Next::Look,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16) -> Came {
        Came::Answer { status, told: None, exhausted: false, limited: false }
    }

    fn told(status: u16, seconds: u64) -> Came {
        Came::Answer { status, told: Some(seconds), exhausted: false, limited: false }
    }

    fn ask(came: &Came, repeatable: bool) -> Next {
        next(came, repeatable, 0, Patience::default())
    }

    #[test]
    fn a_limit_is_waited_out_as_told_whatever_was_asked() {
        for repeatable in [false, true] {
            assert_eq!(ask(&told(429, 7), repeatable), Next::Wait(Duration::from_secs(7)));
            assert_eq!(ask(&told(403, 7), repeatable), Next::Wait(Duration::from_secs(7)));
            assert_eq!(ask(&answer(429), repeatable), Next::Wait(UNTOLD));
            let secondary = Came::Answer { status: 403, told: None, exhausted: false, limited: true };
            assert_eq!(ask(&secondary, repeatable), Next::Wait(UNTOLD));
        }
    }

    #[test]
    fn a_reader_s_token_is_no_limit() {
        assert_eq!(ask(&answer(403), false), Next::Take);
    }

    #[test]
    fn what_may_have_been_posted_is_not_posted_again_unseen() {
        for came in [answer(500), answer(502), answer(503), answer(504), Came::Lost] {
            assert_eq!(ask(&came, false), Next::Look, "{came:?}");
            assert!(matches!(ask(&came, true), Next::Wait(_)), "{came:?}");
        }
        assert!(matches!(ask(&Came::NotSent, false), Next::Wait(_)));
    }

    #[test]
    fn failures_wait_longer_and_longer() {
        let wait = |failures| next(&answer(502), true, failures, Patience::default());
        assert_eq!(wait(0), Next::Wait(Duration::from_secs(1)));
        assert_eq!(wait(3), Next::Wait(Duration::from_secs(8)));
        // Far beyond what is ever tried, and still a number.
        assert!(matches!(wait(200), Next::Wait(_)));
    }

    #[test]
    fn success_and_plain_refusals_stand() {
        for status in [200, 201, 204, 301, 401, 404, 422] {
            assert_eq!(ask(&answer(status), false), Next::Take, "{status}");
        }
    }
}
