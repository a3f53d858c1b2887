//! Bounds that the next value of an unchanged series exceeds with at most a given probability: prediction
//! bounds for one future observation (Hahn and Meeker 1991, *Statistical Intervals*, chapters 4 and 5).

use super::describe;
use super::distributions::student_quantile;

/// Minimum number of values for the normal method: fewer don't show whether a normal distribution fits.
pub const LEAST_NORMAL: usize = 20;

/// Method for deriving a bound from the observed values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PredictionMethod {
    /// The k-th largest value. The next value exceeds it with probability k/(n + 1) at most, whatever the
    /// distribution.
    OrderStatistic,
    /// Mean + t·s·√(1 + 1/n) of normally distributed values, but at least the largest value.
    Normal,
}

impl PredictionMethod {
    /// Returns the minimum number of values for a bound.
    pub fn least_values(self, rate: f64) -> usize {
        match self {
            // The rounding error of 1/0.01 must not ask for one value more.
            Self::OrderStatistic => ((1.0 / rate - 1e-9).ceil() as usize).saturating_sub(1).max(1),
            Self::Normal => LEAST_NORMAL,
        }
    }

    /// Returns the bound that the next value exceeds with probability `rate` at most; `None` if there are too
    /// few values or one is not finite.
    pub fn upper_bound(self, values: &[f64], rate: f64) -> Option<f64> {
        let n = values.len();
        if n < self.least_values(rate) || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let sorted = describe::sorted(values);
        let largest = *sorted.last()?;
        match self {
            Self::OrderStatistic => {
                let allowed = (rate * (n + 1) as f64 + 1e-9) as usize;
                sorted.get(n - allowed.clamp(1, n)).copied()
            }
            Self::Normal => {
                let (mean, spread) = (describe::mean(values)?, describe::stddev(values)?);
                let t = student_quantile(rate, (n - 1) as f64);
                let bound = mean + t * spread * (1.0 + 1.0 / n as f64).sqrt();
                Some(bound.max(largest)).filter(|bound| bound.is_finite())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::ChaCha8Rng;
    use rand::{RngExt, SeedableRng};

    /// Returns the share of next values that exceed the bound.
    fn exceeded(method: PredictionMethod, n: usize, rate: f64, draw: impl Fn(&mut ChaCha8Rng) -> f64) -> f64 {
        const ROUNDS: usize = 4_000;
        let mut random = ChaCha8Rng::seed_from_u64(7);
        let is_exceeded = |random: &mut ChaCha8Rng| {
            let values: Vec<f64> = (0..n).map(|_| draw(random)).collect();
            draw(random) > method.upper_bound(&values, rate).unwrap()
        };
        (0..ROUNDS).filter(|_| is_exceeded(&mut random)).count() as f64 / ROUNDS as f64
    }

    /// Returns the sum of twelve uniform numbers minus six, which is approximately standard normal.
    fn normal(random: &mut ChaCha8Rng) -> f64 {
        (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0
    }

    #[test]
    fn unchanged_values_exceed_the_bound_as_rarely_as_stated() {
        let heavy = |random: &mut ChaCha8Rng| 1.0 / (1.0 - random.random::<f64>());
        let ordered = PredictionMethod::OrderStatistic;
        for (n, rate) in [(19, 0.05), (30, 0.1)] {
            for seen in [exceeded(ordered, n, rate, normal), exceeded(ordered, n, rate, heavy)] {
                assert!((0.7 * rate..1.3 * rate).contains(&seen), "{n} {rate} {seen}");
            }
        }
        // For rates above 1/(n + 1), the bound is the largest value, which is exceeded less often than
        // stated.
        for (n, rate) in [(20, 0.03), (40, 0.015)] {
            let seen = exceeded(PredictionMethod::Normal, n, rate, normal);
            assert!((0.7 * rate..1.3 * rate).contains(&seen), "{n} {rate} {seen}");
        }
    }

    #[test]
    fn a_rate_needs_so_many_values_and_there_is_no_bound_from_fewer() {
        let method = PredictionMethod::OrderStatistic;
        assert_eq!([0.05, 0.01, 0.001].map(|rate| method.least_values(rate)), [19, 99, 999]);
        let values: Vec<f64> = (0..99).map(f64::from).collect();
        assert_eq!(method.upper_bound(&values, 0.01), Some(98.0));
        assert_eq!(method.upper_bound(&values, 0.02), Some(97.0));
        assert_eq!(method.upper_bound(&values[..98], 0.01), None);
        assert_eq!(PredictionMethod::Normal.upper_bound(&values[..LEAST_NORMAL - 1], 0.01), None);
    }

    #[test]
    fn a_value_that_was_seen_does_not_exceed_a_normal_bound() {
        let mut values = vec![0.0; 30];
        values[3] = 1.0;
        assert_eq!(PredictionMethod::Normal.upper_bound(&values, 0.2), Some(1.0));
    }
}
