//! Inference about a shift, whichever method estimated it.

use std::sync::Arc;

use crate::distributions::{student_quantile, student_tail};
use crate::shift::Shift;

/// An estimated shift with p-values and bounds, on the log scale; positive is worse.
#[derive(Debug, Clone)]
pub enum Inference {
    /// A center, a standard error and Student's t: for independent processes, sessions, and summaries.
    Modelled(Effect),
    /// Effects with a separate error for each direction (head is worse, head is better).
    Sided { worse: Effect, better: Effect },
    /// Randomized blocks, tested by redrawing their labels.
    Randomised(Arc<Shift>),
}

impl Inference {
    /// Frees intermediate data if it takes more than `most` bytes. The next query computes it again.
    pub fn put_away(&self, most: usize) {
        if let Self::Randomised(shift) = self {
            shift.put_away(most);
        }
    }

    pub fn center(&self) -> f64 {
        match self {
            Self::Modelled(effect) | Self::Sided { worse: effect, .. } => effect.center,
            Self::Randomised(shift) => shift.estimate(),
        }
    }

    /// Returns the one-sided p of "the true shift is `limit` or less".
    pub fn p_above(&self, limit: f64) -> f64 {
        match self {
            Self::Modelled(effect) | Self::Sided { worse: effect, .. } => effect.p_above(limit),
            Self::Randomised(shift) => shift.p_above(limit),
        }
    }

    /// Returns the one-sided p of "the true shift is `limit` or more".
    pub fn p_below(&self, limit: f64) -> f64 {
        match self {
            Self::Modelled(effect) | Self::Sided { better: effect, .. } => effect.p_below(limit),
            Self::Randomised(shift) => shift.p_below(limit),
        }
    }

    /// Returns the bound that the true shift exceeds with confidence 1 − `alpha`.
    pub fn lower(&self, alpha: f64) -> f64 {
        match self {
            Self::Modelled(effect) | Self::Sided { worse: effect, .. } => effect.lower(alpha),
            Self::Randomised(shift) => shift.lower(alpha),
        }
    }

    /// Returns the bound that the true shift stays below with confidence 1 − `alpha`.
    pub fn upper(&self, alpha: f64) -> f64 {
        match self {
            Self::Modelled(effect) | Self::Sided { better: effect, .. } => effect.upper(alpha),
            Self::Randomised(shift) => shift.upper(alpha),
        }
    }

    /// Returns the distance above a limit at which a true shift is detected with `power` at `alpha`.
    pub fn detectable(&self, alpha: f64, power: f64) -> f64 {
        match self {
            Self::Modelled(effect) | Self::Sided { worse: effect, .. } => effect.detectable(alpha, power),
            Self::Randomised(shift) => {
                shift.half_width(alpha)
                    + student_quantile(1.0 - power, f64::INFINITY) * shift.standard_error()
            }
        }
    }

    /// Returns the nearest effect with a normal distribution, for means over rows.
    pub fn effect(&self) -> Effect {
        match self {
            Self::Modelled(effect) | Self::Sided { worse: effect, .. } => *effect,
            Self::Randomised(shift) => Effect {
                center: shift.estimate(),
                se: shift.standard_error(),
                df: (shift.blocks().max(2) - 1) as f64,
            },
        }
    }
}

/// An estimate with its standard error and the degrees of freedom of that error.
///
/// The scale is the natural logarithm of head/base, so that "5 % slower" and "5 % faster" are mirror images
/// and units cancel. Infinite degrees of freedom mean that the error is known and not estimated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effect {
    pub center: f64,
    pub se: f64,
    pub df: f64,
}

impl Effect {
    /// Returns the one-sided p of "the true shift is `limit` or less".
    pub fn p_above(&self, limit: f64) -> f64 {
        self.tail((self.center - limit) / self.se)
    }

    /// Returns the one-sided p of "the true shift is `limit` or more".
    pub fn p_below(&self, limit: f64) -> f64 {
        self.tail((limit - self.center) / self.se)
    }

    /// Returns the bound that the true shift exceeds with confidence 1 − `alpha`.
    pub fn lower(&self, alpha: f64) -> f64 {
        self.center - self.quantile(alpha) * self.se
    }

    /// Returns the bound that the true shift stays below with confidence 1 − `alpha`.
    pub fn upper(&self, alpha: f64) -> f64 {
        self.center + self.quantile(alpha) * self.se
    }

    /// Returns the distance above a limit at which a true shift is detected with `power` at `alpha`.
    pub fn detectable(&self, alpha: f64, power: f64) -> f64 {
        (self.quantile(alpha) + self.quantile(1.0 - power)) * self.se
    }

    /// Returns this effect with base and head swapped.
    pub fn swapped(&self) -> Self {
        Self { center: -self.center, ..*self }
    }

    /// Returns the upper tail of the reference distribution.
    fn tail(&self, t: f64) -> f64 {
        // Without a difference and without spread, 0/0 is NaN: no evidence either way.
        student_tail(t, self.df)
    }

    /// Returns the value that the reference distribution exceeds with probability `alpha`.
    fn quantile(&self, alpha: f64) -> f64 {
        student_quantile(alpha, self.df)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EFFECT: Effect = Effect { center: 0.05, se: 0.01, df: 11.0 };

    #[test]
    fn a_bound_and_its_p_value_say_the_same() {
        let alpha = EFFECT.p_above(0.01);
        assert!((EFFECT.lower(alpha) - 0.01).abs() < 1e-9);
        let alpha = EFFECT.p_below(0.09);
        assert!((EFFECT.upper(alpha) - 0.09).abs() < 1e-9);
    }

    #[test]
    fn no_difference_without_spread_is_no_evidence() {
        let nothing = Effect { center: 0.01, se: 0.0, df: 3.0 };
        assert_eq!(nothing.p_above(0.01), 1.0);
        assert_eq!(nothing.p_above(0.0), 0.0);
    }
}
