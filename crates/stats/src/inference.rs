//! The inference about a shift, whichever method produced it.

use std::sync::Arc;

use super::shift::Shift;
use super::{Effect, student_quantile};

/// An estimated shift with p-values and bounds, on the log scale; positive is worse.
#[derive(Debug, Clone)]
pub enum Inference {
    /// A center, a standard error and Student's t: independent processes, sessions, summaries.
    Modelled(Effect),
    /// Effects with a separate error for each direction: head being worse, and head being better.
    Sided { worse: Effect, better: Effect },
    /// Randomized blocks.
    Randomised(Arc<Shift>),
}

impl Inference {
    /// Frees intermediate data that takes more than these bytes. The next query computes it again.
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

    /// One-sided p of "the true shift is `limit` or less".
    pub fn p_above(&self, limit: f64) -> f64 {
        match self {
            Self::Modelled(effect) | Self::Sided { worse: effect, .. } => effect.p_above(limit),
            Self::Randomised(shift) => shift.p_above(limit),
        }
    }

    /// One-sided p of "the true shift is `limit` or more".
    pub fn p_below(&self, limit: f64) -> f64 {
        match self {
            Self::Modelled(effect) | Self::Sided { better: effect, .. } => effect.p_below(limit),
            Self::Randomised(shift) => shift.p_below(limit),
        }
    }

    /// The bound that the true shift exceeds with confidence 1 − `alpha`.
    pub fn lower(&self, alpha: f64) -> f64 {
        match self {
            Self::Modelled(effect) | Self::Sided { worse: effect, .. } => effect.lower(alpha),
            Self::Randomised(shift) => shift.lower(alpha),
        }
    }

    /// The bound that the true shift stays below with confidence 1 − `alpha`.
    pub fn upper(&self, alpha: f64) -> f64 {
        match self {
            Self::Modelled(effect) | Self::Sided { better: effect, .. } => effect.upper(alpha),
            Self::Randomised(shift) => shift.upper(alpha),
        }
    }

    /// How far above a limit the true shift must lie to be detected with `power` at `alpha`.
    pub fn detectable(&self, alpha: f64, power: f64) -> f64 {
        match self {
            Self::Modelled(effect) | Self::Sided { worse: effect, .. } => effect.detectable(alpha, power),
            Self::Randomised(shift) => {
                shift.half_width(alpha)
                    + student_quantile(1.0 - power, f64::INFINITY) * shift.standard_error()
            }
        }
    }

    /// The nearest effect of a normal distribution, for means over rows.
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
