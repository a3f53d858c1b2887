//! Times that a tool printed with few digits.

use std::collections::HashMap;

use benchgate_core::model::{Benchmark, Lint, LintCode, Metric, Series};

/// Relative rounding error (half a unit in the last printed place, as a share of the value) above which
/// rounding alone exceeds half of the default floor of 1 %.
const COARSE: f64 = 0.005;

/// The finding that the rounding of the printed times could hide or create a change. If several runs differ, their
/// rounding errors do too ([`forget_rounding`]).
pub(super) fn rounded() -> Lint {
    Lint::new(LintCode::RoundedTime, "a time is printed with fewer than three digits".to_owned())
}

/// Returns whether rounding to the printed digits can change a decimal by more than [`COARSE`].
pub(super) fn is_coarse(printed: &str) -> bool {
    let Ok(value) = printed.parse::<f64>() else { return false };
    if printed.contains(['e', 'E']) || !value.is_finite() || value <= 0.0 {
        return false;
    }
    let decimals = printed.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let half = 0.5 / 10f64.powi(i32::try_from(decimals).unwrap_or(i32::MAX));
    half / value > COARSE
}

/// The number of different times that shows that noise is larger than the rounding, which then averages out, if none of
/// them is that of most repetitions.
const NOT_ROUNDED: usize = 4;

/// Removes the finding that times are rounded if they differ by more than their rounding.
pub(super) fn forget_rounding(benchmark: &mut Benchmark) {
    let Some(latency) = benchmark.metric(&Metric::LATENCY.name) else { return };
    let times: Vec<f64> = match &latency.series {
        Series::Processes(processes) => processes.iter().flat_map(|it| it.samples.iter().copied()).collect(),
        Series::Summaries(all) => all.iter().filter_map(|it| it.median.or(it.mean)).collect(),
        Series::Exact(_) => return,
    };
    let mut different: HashMap<u64, usize> = HashMap::new();
    for time in &times {
        *different.entry(time.to_bits()).or_default() += 1;
    }
    let most = different.values().copied().max().unwrap_or(0);
    if different.len() >= NOT_ROUNDED && 2 * most <= times.len() {
        benchmark.lints.retain(|lint| lint.code != LintCode::RoundedTime);
    }
}
