//! Location of sessions after the slowest quarter is left out, and its error (Yuen 1974, Biometrika
//! 61:165–170).
//!
//! A disturbed machine makes sessions slower, never faster. Therefore only slow sessions are left out, and
//! those that remain differ less than the central ones would if both ends were trimmed.

use super::describe;
use super::robust::ScalePrior;
use crate::inference::Effect;

/// Number of values of a side from which at least two are left out.
pub const ENOUGH: usize = 8;

/// Returns the mean of all costs except the largest quarter. For the error, those that are left out count as
/// equal to the largest remaining cost, because it is a matter of chance which ones they are. `None` for
/// fewer than two values.
pub fn quicker_mean(costs: &[f64], prior: ScalePrior) -> Option<Effect> {
    let mut sorted = describe::sorted(costs);
    let kept = sorted.len() - sorted.len() / 4;
    let center = describe::mean(&sorted[..kept])?;
    let largest = *sorted[..kept].last()?;
    sorted[kept..].fill(largest);
    let (n, kept) = (sorted.len() as f64, kept as f64);
    let measured = describe::variance(&sorted)? * (n - 1.0) / (kept * (kept - 1.0));
    let df = prior.df + kept - 1.0;
    let variance = (prior.df * prior.variance / kept + (kept - 1.0) * measured) / df;
    Some(Effect { center, se: variance.sqrt(), df })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_yuens_mean_with_its_error() {
        // Two of eight values are left out. 0 … 5 remain, and the sum of squares of 0 1 2 3 4 5 5 5 about
        // their mean is 26.875. Yuen: √(26.875 / (6 · 5)).
        let costs: Vec<f64> = [3.0, 0.0, 60.0, 1.0, 5.0, 2.0, 700.0, 4.0].to_vec();
        let found = quicker_mean(&costs, ScalePrior::NONE).unwrap();
        assert!((found.center - 2.5).abs() < 1e-12, "{found:?}");
        assert!((found.se - (26.875_f64 / 30.0).sqrt()).abs() < 1e-12, "{found:?}");
        assert_eq!(found.df, 5.0);
    }

    #[test]
    fn a_prior_counts_as_further_values() {
        let costs: Vec<f64> = (0..8).map(f64::from).collect();
        let prior = ScalePrior { variance: 600.0, df: 5.0 };
        let found = quicker_mean(&costs, prior).unwrap();
        assert!((found.se.powi(2) - f64::midpoint(100.0, 26.875 / 30.0)).abs() < 1e-9, "{found:?}");
        assert_eq!(found.df, 10.0);
    }

    #[test]
    fn slow_sessions_do_not_widen_what_the_others_show() {
        let with = |slow: f64| {
            let costs: Vec<f64> =
                (0..21).map(|at| if at < 5 { slow } else { 0.01 * f64::from(at % 4) }).collect();
            quicker_mean(&costs, ScalePrior::NONE).unwrap()
        };
        assert_eq!(with(0.1), with(2.0));
        assert!(with(0.1).se < 0.004, "{:?}", with(0.1));
    }
}
