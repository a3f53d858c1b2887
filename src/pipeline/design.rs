//! Chooses how long a process measures, from the duration of the benchmark. Several short processes give more
//! information per second than one long one.

use std::time::Duration;

use crate::config::Measure;
use crate::model::Metric;
use crate::record::ProcessRecord;

use super::argv::Timing;

/// Minimum duration of a repetition. Schedulers switch programs every 3 to 4 ms, so most repetitions of this
/// length are either completely undisturbed or completely disturbed by a competing program, and the
/// undisturbed ones remain recognizable.
const REPETITION: Duration = Duration::from_micros(2500);

/// Minimum measuring time of a process, even if it starts quickly: 16 repetitions.
const LEAST: Duration = Duration::from_millis(40);
/// Maximum measuring time that is chosen for a process that starts slowly. Beyond this, another process gives
/// more information.
const MOST: Duration = Duration::from_millis(200);

/// Minimum number of repetitions. With only two, a disturbed repetition could not be recognized.
const FEWEST_REPETITIONS: u32 = 3;
const MOST_REPETITIONS: u32 = 24;

/// The warm-up time is the measuring time divided by this number. In any case, the tool warms up with one
/// whole iteration.
const WARMUP_PART: u32 = 8;

/// The result of a short trial of a benchmark on one side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Trial {
    pub(super) iteration: Duration,
    /// Duration of everything except the iterations: starting, loading, ending.
    pub(super) startup: Duration,
}

/// The timing, if the configuration sets all of it; `None` if something has to be chosen.
pub(super) fn fixed(settings: &Measure) -> Option<Timing> {
    let min_time = settings.min_time.or(settings.iterations.map(|_| REPETITION))?;
    Some(Timing {
        repetitions: settings.repetitions?,
        iterations: settings.iterations,
        min_time,
        warmup: settings.warmup?,
    })
}

/// Chooses the timing that the configuration leaves open. Both sides get the timing of the slower one, so
/// that swapping the sides changes nothing.
///
/// A process measures for about as long as it takes to start. This follows Kalibera and Jones (ISMM 2013):
/// repeat the level that varies most, until repeating the level above is cheaper. If the benchmark is short
/// enough, a repetition fits between two decisions of the scheduler.
pub(super) fn chosen(settings: &Measure, trials: &[Trial]) -> Timing {
    let longest = |of: fn(&Trial) -> Duration| trials.iter().map(of).max().unwrap_or_default();
    let measuring = longest(|trial| trial.startup).clamp(LEAST, MOST);
    let unit = longest(|trial| trial.iteration).max(REPETITION);
    let repetitions = settings.repetitions.unwrap_or_else(|| {
        let fitting = measuring.as_nanos() / unit.as_nanos();
        u32::try_from(fitting).unwrap_or(MOST_REPETITIONS).clamp(FEWEST_REPETITIONS, MOST_REPETITIONS)
    });
    Timing {
        repetitions,
        iterations: settings.iterations,
        min_time: settings.min_time.unwrap_or_else(|| REPETITION.max(measuring / MOST_REPETITIONS)),
        warmup: settings.warmup.unwrap_or(measuring / WARMUP_PART),
    }
}

/// The timing of a trial, a short process before measuring that shows how long the benchmark takes to start
/// and to run one iteration. Trials are not judged. A trial has three single iterations: the first one
/// touches memory for the first time, and the faster of the other two counts.
pub(super) const TIMING: Timing =
    Timing { repetitions: 3, iterations: Some(1), min_time: Duration::ZERO, warmup: Duration::ZERO };

/// Reads the result of a trial. `None` if the tool printed no time.
pub(super) fn read_trial(process: &ProcessRecord) -> Option<Trial> {
    let samples = process.samples.get(Metric::LATENCY.name.as_ref())?;
    let duration = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or_default();
    let iteration = samples.iter().copied().min_by(f64::total_cmp)?;
    let all = samples.iter().sum::<f64>();
    let startup = duration(process.seconds.0).saturating_sub(duration(all * 1e-9));
    Some(Trial { iteration: duration(iteration * 1e-9), startup })
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    fn settings(toml: &str) -> Measure {
        let text = format!(
            "[suite]\nname = \"s\"\n[toolchain]\nversion = \"3.13.0\"\ncommit = \"{}\"\n[[model]]\nname = \"a\"\n\
             source = \"a.mlir\"\n[[target]]\nname = \"cpu\"\nbackend = \"llvm-cpu\"\n[measure]\n{toml}",
            "1".repeat(40)
        );
        crate::config::parse(&text, std::path::Path::new("benchgate.toml")).unwrap().measure
    }

    fn timing(iteration: Duration, startup: Duration) -> Timing {
        chosen(&settings(""), &[Trial { iteration, startup }])
    }

    #[test]
    fn a_short_benchmark_gets_many_repetitions_that_fit_between_two_decisions_of_the_scheduler() {
        let timing = timing(Duration::from_micros(200), ms(60));
        assert_eq!((timing.repetitions, timing.min_time), (24, REPETITION));
        assert!(timing.warmup < ms(10));
    }

    #[test]
    fn a_long_benchmark_is_repeated_less_and_never_fewer_than_three_times() {
        assert_eq!(timing(ms(10), ms(60)).repetitions, 6);
        assert_eq!(timing(ms(1000), ms(60)).repetitions, FEWEST_REPETITIONS);
    }

    #[test]
    fn a_process_measures_about_as_long_as_it_starts() {
        let of = |startup| {
            let timing = timing(Duration::from_micros(50), startup);
            timing.min_time * timing.repetitions
        };
        assert_eq!(of(ms(60)), ms(60));
        assert!(of(ms(5000)) <= MOST && of(ms(5000)) > ms(190));
        assert!(of(ms(1)) >= LEAST);
    }

    #[test]
    fn both_sides_are_measured_by_the_timing_of_the_slower_one() {
        let (quick, slow) =
            (Trial { iteration: ms(1), startup: ms(50) }, Trial { iteration: ms(9), startup: ms(40) });
        let both = chosen(&settings(""), &[quick, slow]);
        assert_eq!(both, chosen(&settings(""), &[slow, quick]));
        assert_eq!(both.repetitions, 5);
    }

    #[test]
    fn what_the_configuration_says_is_kept() {
        let some = settings("repetitions = 4\nwarmup = \"1ms\"");
        assert_eq!(fixed(&some), None);
        let timing = chosen(&some, &[Trial { iteration: ms(1), startup: ms(50) }]);
        assert_eq!((timing.repetitions, timing.warmup, timing.min_time), (4, ms(1), REPETITION));
        let all = settings("repetitions = 4\nwarmup = \"1ms\"\nmin-time = \"12ms\"");
        assert_eq!(fixed(&all).unwrap().min_time, ms(12));
        assert_eq!(chosen(&all, &[]), fixed(&all).unwrap());
    }
}
