//! Robust location of a few heavy-tailed values: a Student-t model whose scale is stabilized by neighboring rows.
//!
//! Values are modeled as `center + scale · t(NU)` (Lange, Little and Taylor 1989, JASA 84:881–896), fitted by
//! expectation maximization: values far from the rest get little weight, but none is discarded. With few
//! values, the estimated scale is unreliable, so it is shrunk towards the scale of comparable rows (Smyth
//! 2004, Stat. Appl. Genet. Mol. Biol. 3:3), so that a row whose blocks agree by chance does not look exact.

use super::describe;
use super::distributions::digamma;
use crate::inference::Effect;

/// Degrees of freedom of the error model. Lange et al. find that 4 fits many data sets. It is small enough
/// that one of six blocks, at ten times the scale, moves the center by less than its standard error.
pub const NU: f64 = 4.0;

/// Smallest plausible scale, as a log ratio. Clock granularity and one page fault exceed 0.02 % of a repetition, so
/// closer agreement of a few values is luck.
const MIN_SCALE: f64 = 2e-4;

/// Number of EM steps. Each step reduces the error by more than half for NU = 4, so forty reach rounding
/// precision.
const STEPS: usize = 40;

/// A prior for the scale, from comparable rows: its square and its degrees of freedom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScalePrior {
    pub variance: f64,
    pub df: f64,
}

impl ScalePrior {
    /// A prior without any weight.
    pub const NONE: Self = Self { variance: 0.0, df: 0.0 };

    /// Smallest and largest degrees of freedom that neighbors may have. With a dozen rows, the estimate of
    /// how alike they are is itself rough. Below one, the prior would not stabilize anything; above eight, it
    /// would outweigh twelve blocks of the row itself.
    const RANGE: (f64, f64) = (1.0, 8.0);

    /// Computes a prior from the fitted scales of all rows, by Smyth's moments of log variances: rows that
    /// differ much make a weak prior, similar rows a strong one. Fewer than three rows are not enough.
    pub fn pooled(fits: &[Fit]) -> Self {
        // The logarithms are sorted, so that the order of rows can't change the last bit of a sum.
        let mut logs: Vec<(f64, f64)> = fits
            .iter()
            .filter(|fit| fit.n >= 2)
            .map(|fit| (fit.scale * fit.scale, (fit.n - 1) as f64))
            .map(|(variance, df)| (variance.ln() - digamma(df / 2.0) + (df / 2.0).ln(), df))
            .collect();
        if logs.len() < 3 {
            return Self::NONE;
        }
        logs.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let values: Vec<f64> = logs.iter().map(|(value, _)| *value).collect();
        let sampling: f64 = logs.iter().map(|(_, df)| trigamma(df / 2.0)).sum::<f64>() / logs.len() as f64;
        let (Some(mean), Some(spread)) = (describe::mean(&values), describe::variance(&values)) else {
            return Self::NONE;
        };
        let df = 2.0 * inverse_trigamma(spread - sampling);
        let df = df.clamp(Self::RANGE.0, Self::RANGE.1);
        Self { variance: (mean + digamma(df / 2.0) - (df / 2.0).ln()).exp(), df }
    }
}

/// A fitted location and scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fit {
    pub center: f64,
    pub scale: f64,
    pub n: usize,
    /// Degrees of freedom of the scale: the row's own and the prior's.
    pub df: f64,
}

impl Fit {
    /// Returns the location as an effect. The standard error is the inverse Fisher information of the
    /// location of a t distribution, `scale² (NU + 3) / (NU + 1) / n`.
    pub fn effect(&self) -> Effect {
        let se = self.scale * ((NU + 3.0) / (NU + 1.0) / self.n as f64).sqrt();
        Effect { center: self.center, se, df: self.df }
    }
}

/// Fits location and scale; `None` for fewer than two values.
pub fn fit(values: &[f64], prior: ScalePrior) -> Option<Fit> {
    if values.len() < 2 {
        return None;
    }
    let n = values.len() as f64;
    let df = prior.df + n - 1.0;
    let mut center = describe::median(values)?;
    let distances: Vec<f64> = values.iter().map(|v| (v - center).abs()).collect();
    // The factor 1.4826 converts the median distance to the standard deviation of normal values.
    let start = 1.4826 * describe::median(&distances)?;
    let floor = MIN_SCALE * MIN_SCALE;
    let mut variance = ((prior.df * prior.variance + (n - 1.0) * start * start) / df).max(floor);
    for _ in 0..STEPS {
        let weight = |v: f64| (NU + 1.0) / (NU + (v - center) * (v - center) / variance);
        let total: f64 = values.iter().map(|&v| weight(v)).sum();
        let next = values.iter().map(|&v| weight(v) * v).sum::<f64>() / total;
        let squares: f64 = values.iter().map(|&v| weight(v) * (v - next) * (v - next)).sum();
        center = next;
        variance = ((prior.df * prior.variance + squares) / df).max(floor);
    }
    Some(Fit { center, scale: variance.sqrt(), n: values.len(), df })
}

/// Returns the derivative of digamma, by recurrence up to 8 and the asymptotic series (Abramowitz and Stegun
/// 6.4.12); statrs has no such function.
fn trigamma(mut x: f64) -> f64 {
    let mut sum = 0.0;
    while x < 8.0 {
        sum += 1.0 / (x * x);
        x += 1.0;
    }
    let inverse = 1.0 / x;
    let square = inverse * inverse;
    sum + inverse
        * (1.0
            + inverse / 2.0
            + square * (1.0 / 6.0 - square * (1.0 / 30.0 - square * (1.0 / 42.0 - square / 30.0))))
}

/// Returns the x with trigamma(x) = y, by bisection on a decreasing function. The result is not finite unless
/// y is positive.
fn inverse_trigamma(y: f64) -> f64 {
    if y.is_nan() || y <= 0.0 {
        return f64::INFINITY;
    }
    let (mut low, mut high) = (1e-6_f64, 1e6_f64);
    for _ in 0..80 {
        let middle = (low * high).sqrt();
        if trigamma(middle) > y { low = middle } else { high = middle }
    }
    (low * high).sqrt()
}

/// Number of values of a side from which at least two are left out.
pub const ENOUGH: usize = 8;

/// Returns the mean of all costs except the largest quarter (Yuen 1974, Biometrika 61:165–170); `None` for fewer
/// than two values. A disturbed machine makes sessions slower, never faster, so only slow sessions are left out: those
/// that remain differ less than the central ones would if both ends were trimmed. For the error, those that are left out
/// count as equal to the largest remaining cost, because it is a matter of chance which ones they are.
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
    fn one_wild_block_hardly_moves_the_centre() {
        let calm = [0.001, -0.002, 0.0005, 0.002, -0.001];
        let mut wild = calm.to_vec();
        wild.push(0.4);
        let fit = fit(&wild, ScalePrior::NONE).unwrap();
        assert!(fit.center.abs() < 0.001, "{fit:?}");
        assert!(fit.effect().upper(0.01) < 0.03, "{fit:?}");
    }

    #[test]
    fn mirrored_values_give_a_mirrored_fit() {
        let values = [0.03, -0.01, 0.2, 0.011];
        let mirrored: Vec<f64> = values.iter().map(|v| -v).collect();
        let (a, b) = (fit(&values, ScalePrior::NONE).unwrap(), fit(&mirrored, ScalePrior::NONE).unwrap());
        assert_eq!((a.center, a.scale), (-b.center, b.scale));
    }

    #[test]
    fn lucky_agreement_is_not_taken_for_precision() {
        let lucky = [0.0210, 0.0211, 0.0210, 0.0212];
        let noisy = |seed: f64| [seed * 0.02, -seed * 0.03, seed * 0.01, -0.005];
        let mut fits: Vec<Fit> =
            [0.5, 0.8, 1.0, 1.3, 1.7].iter().map(|s| fit(&noisy(*s), ScalePrior::NONE).unwrap()).collect();
        let alone = fit(&lucky, ScalePrior::NONE).unwrap();
        fits.push(alone);
        let steadied = fit(&lucky, ScalePrior::pooled(&fits)).unwrap();
        assert!(steadied.scale > 5.0 * alone.scale, "{steadied:?}");
        assert!(steadied.effect().p_above(0.01) > 1e-5 && alone.effect().p_above(0.01) < 1e-5);
    }

    #[test]
    fn trigamma_is_right_at_known_points() {
        let pi = std::f64::consts::PI;
        assert!((trigamma(1.0) - pi * pi / 6.0).abs() < 1e-10);
        assert!((trigamma(0.5) - pi * pi / 2.0).abs() < 1e-10);
        assert!((inverse_trigamma(pi * pi / 6.0) - 1.0).abs() < 1e-9);
        assert_eq!(inverse_trigamma(-1.0), f64::INFINITY);
    }

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
