//! Tests after every session whether an event happens to one member of a group (a benchmark, a machine) more
//! often than to the others.
//!
//! An e-value has a mean of at most one under the null hypothesis. The detector multiplies the e-values of
//! the sessions since the most favorable beginning: `M = max(M, 1) · e`. Its mean time until `M ≥ c` by
//! chance is at least `c` sessions, however often it is checked (the CUSUM e-detector of Shin, Ramdas and
//! Rinaldo 2023, The New England Journal of Statistics in Data Science 2:229–260).

/// Assumed ratios between the tested member's chance of an event and any other member's, equally weighted.
const ODDS: [f64; 3] = [2.0, 6.0, 20.0];

/// Returns the e-value of one session in which `hit` of `all` members had the event; `is_hit` says whether
/// the tested one is among them.
///
/// Under the null hypothesis, given the number of events, each member is equally likely to have one, and the
/// mean is exactly one. The e-value is one if all members or none had the event.
pub fn e_value(is_hit: bool, hit: usize, all: usize) -> f64 {
    if all == 0 {
        return 1.0;
    }
    let share = hit as f64 / all as f64;
    let ratio = |odds: &f64| if is_hit { *odds } else { 1.0 } / (1.0 - share + share * odds);
    ODDS.iter().map(ratio).sum::<f64>() / ODDS.len() as f64
}

/// Evidence that accumulates over sessions.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct EDetector {
    /// Lower bound for the mean number of sessions after which chance alone gives this much evidence. Zero
    /// before the first session.
    pub evidence: f64,
    /// Index of the session since which evidence has accumulated.
    pub since: usize,
}

impl EDetector {
    /// Adds the session with this index and its e-value. Evidence is capped at `most`, so that an alarm can
    /// end again.
    pub fn with(self, session: usize, e_value: f64, most: f64) -> Self {
        let (evidence, since) =
            if self.evidence > 1.0 { (self.evidence, self.since) } else { (1.0, session) };
        Self { evidence: (evidence * e_value).min(most), since }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    proptest! {
        #[test]
        fn the_mean_of_an_e_value_is_one_where_each_is_as_likely_as_another(all in 1_usize..500, hit in 0_usize..500) {
            let hit = hit.min(all);
            let share = hit as f64 / all as f64;
            let mean = share * e_value(true, hit, all) + (1.0 - share) * e_value(false, hit, all);
            prop_assert!((mean - 1.0).abs() < 1e-12, "{mean}");
        }
    }

    #[test]
    fn nights_that_hit_all_or_nothing_say_nothing() {
        assert_eq!((e_value(true, 9, 9), e_value(false, 0, 9), e_value(false, 0, 0)), (1.0, 1.0, 1.0));
    }

    /// Returns the detector at the first alarm, if there was one.
    fn alarm(seed: u64, sessions: usize, rate: f64, others: f64) -> Option<EDetector> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut draw = |share: f64| f64::from(random.next_u32()) / f64::from(u32::MAX) < share;
        let mut detector = EDetector::default();
        for session in 0..sessions {
            let is_hit = draw(rate);
            let hit = usize::from(is_hit) + (0..19).filter(|_| draw(others)).count();
            detector = detector.with(session, e_value(is_hit, hit, 20), 1e6);
            if detector.evidence >= 1000.0 {
                return Some(detector);
            }
        }
        None
    }

    #[test]
    fn one_like_the_others_alarms_at_most_once_in_as_many_sessions_as_the_threshold() {
        for others in [0.02, 0.1, 0.5] {
            let alarms = (0..200).filter(|seed| alarm(*seed, 365, others, others).is_some()).count();
            // In 200 × 365 sessions with a mean time of at least 1,000, at most 73 alarms are expected.
            assert!(alarms <= 73, "{alarms} at {others}");
        }
    }

    #[test]
    fn one_that_is_hit_half_of_the_time_is_found_within_thirty_sessions() {
        let found = (0..200).filter(|seed| alarm(*seed, 30, 0.5, 0.05).is_some()).count();
        assert!(found >= 190, "{found}");
    }
}
