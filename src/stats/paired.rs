//! The paired estimate: ABBA blocks, one log ratio each.

use super::describe;
use super::effect::Effect;

/// The shift of head against base from one log ratio per block. `None` below two blocks.
pub fn block_effect(log_ratios: &[f64]) -> Option<Effect> {
    let center = describe::mean(log_ratios)?;
    let variance = describe::variance(log_ratios)?;
    let n = log_ratios.len() as f64;
    Some(Effect { center, se: (variance / n).sqrt(), df: n - 1.0 })
}
