//! Independent processes on each side: Welch on log locations, with a known or assumed spread
//! between processes where the data can't show one.

use super::describe;
use super::effect::Effect;

/// One side: the natural logarithm of each process's location, and what is known beforehand about
/// the standard deviation between processes.
#[derive(Debug, Clone, PartialEq)]
pub struct Processes {
    pub log_locations: Vec<f64>,
    /// Variance of a location that comes from repetitions inside the process (zero where unknown).
    pub within: f64,
    /// Standard deviation between processes, calibrated, declared or assumed.
    pub between_sd: f64,
}

/// Degrees of freedom that prior knowledge of the between-process spread is worth in addition to data.
/// Small, so that five measured processes outweigh it: it only keeps two processes that happen to agree from looking
/// exact.
const PRIOR_DF: f64 = 4.0;

/// The variance of one side's mean, with its degrees of freedom. A single process borrows the known
/// spread whole; several update it (scaled inverse chi-square prior, Smyth 2004).
fn variance_of_mean(side: &Processes) -> (f64, f64) {
    let n = side.log_locations.len() as f64;
    let prior = side.between_sd * side.between_sd;
    match describe::variance(&side.log_locations) {
        None => (prior + side.within, f64::INFINITY),
        Some(variance) => {
            let df = PRIOR_DF + n - 1.0;
            let pooled = (PRIOR_DF * prior + (n - 1.0) * variance) / df;
            (pooled / n, df)
        }
    }
}

/// Head against base by Welch's approximation. `None` where a side has no process.
pub fn effect(base: &Processes, head: &Processes) -> Option<Effect> {
    let center = describe::mean(&head.log_locations)? - describe::mean(&base.log_locations)?;
    let (base_variance, base_df) = variance_of_mean(base);
    let (head_variance, head_df) = variance_of_mean(head);
    let variance = base_variance + head_variance;
    // Welch and Satterthwaite's degrees of freedom; infinite parts drop out.
    let denominator = base_variance * base_variance / base_df + head_variance * head_variance / head_df;
    let df = if denominator > 0.0 { variance * variance / denominator } else { f64::INFINITY };
    Some(Effect { center, se: variance.sqrt(), df })
}
