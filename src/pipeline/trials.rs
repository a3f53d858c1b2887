//! Short trials before measuring: how long an iteration of each benchmark takes, and its start. They are not judged;
//! they only determine the length of the measured processes.

use std::time::Duration;

use crate::model::Metric;
use crate::record::ProcessRecord;

use super::argv::Timing;
use super::design::Trial;

/// Three single iterations: the first one touches memory for the first time, and of the others the quicker counts.
pub(super) const TIMING: Timing =
    Timing { repetitions: 3, iterations: Some(1), min_time: Duration::ZERO, warmup: Duration::ZERO };

/// The result of a trial. `None` if the tool printed no time.
pub(super) fn read(process: &ProcessRecord) -> Option<Trial> {
    let samples = process.samples.get(Metric::LATENCY.name.as_ref())?;
    let duration = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or_default();
    let iteration = samples.iter().copied().min_by(f64::total_cmp)?;
    let all = samples.iter().sum::<f64>();
    let startup = duration(process.seconds.0).saturating_sub(duration(all * 1e-9));
    Some(Trial { iteration: duration(iteration * 1e-9), startup })
}
