//! Determines the order of measured processes, as a pure function of the seed, so that an interrupted job can
//! resume at the same place, and selects the undecided rows on which a time budget is spent.
//!
//! Also chooses how long a process measures, from the duration of the benchmark. Several short processes give more
//! information per second than one long one.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

use benchgate_config::Measure;
use benchgate_core::model::{BenchmarkName, BlockSlot, Metric, SideName};
use benchgate_core::record::{ProcessRecord, TimingRecord};

use super::PipelineError;
use super::argv::Timing;
use super::cache::write_json;

/// A scheduled start of the benchmark tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ScheduledProcess {
    /// Index in the list of benchmarks.
    pub(super) benchmark: usize,
    pub(super) side: SideName,
    pub(super) slot: BlockSlot,
}

/// The random generator of a round. Each round has its own stream of the seed, so rounds are independent.
fn generator(seed: u64, round: u32) -> ChaCha8Rng {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    generator.set_stream(u64::from(round));
    generator
}

/// Schedules one block of every listed benchmark. The benchmarks are in random order, each with two pairs,
/// and the order of the sides in each pair is random.
///
/// The two processes of a pair are compared because they are close in time. The permutation test of the
/// verdict draws the orders of the pairs again; with two pairs per block it is exact, and its p-values are
/// fine-grained enough. The order of a round does not depend on which benchmarks are still undecided, so
/// stopping some of them early does not move the others.
pub(super) fn paired_round(benchmarks: &[usize], all: usize, round: u32, seed: u64) -> Vec<ScheduledProcess> {
    let (order, sides) = drawn(all, round, seed);
    order
        .into_iter()
        .filter(|benchmark| benchmarks.contains(benchmark))
        .flat_map(|benchmark| {
            sides[benchmark].into_iter().enumerate().map(move |(slot, side)| ScheduledProcess {
                benchmark,
                side,
                // The four processes of a block have slots 0 to 3.
                slot: BlockSlot { block: round, slot: u8::try_from(slot).unwrap_or(u8::MAX) },
            })
        })
        .collect()
}

/// The side of each slot in this round's block, for each of `all` benchmarks.
pub fn sides_of_round(all: usize, round: u32, seed: u64) -> Vec<[SideName; 4]> {
    drawn(all, round, seed).1
}

/// The order of the benchmarks in one round, and the sides of the four slots of each benchmark.
fn drawn(all: usize, round: u32, seed: u64) -> (Vec<usize>, Vec<[SideName; 4]>) {
    use SideName::{Base, Head};
    let mut random = generator(seed, round);
    let mut order: Vec<usize> = (0..all).collect();
    order.shuffle(&mut random);
    let mut pair = || if rand::RngExt::random(&mut random) { [Head, Base] } else { [Base, Head] };
    let sides = (0..all).map(|_| {
        let ([a, b], [c, d]) = (pair(), pair());
        [a, b, c, d]
    });
    let sides = sides.collect();
    (order, sides)
}

/// Schedules one process of every benchmark of a run with one side, in random order.
pub(super) fn single_round(
    benchmarks: &[usize],
    side: SideName,
    round: u32,
    seed: u64,
) -> Vec<ScheduledProcess> {
    let mut order = benchmarks.to_vec();
    order.shuffle(&mut generator(seed, round));
    order
        .into_iter()
        .map(|benchmark| ScheduledProcess { benchmark, side, slot: BlockSlot { block: round, slot: 0 } })
        .collect()
}

/// An undecided row before the next look.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Want {
    pub(super) block: Duration,
    /// Number of blocks until the next look.
    pub(super) to_look: u32,
    /// Estimated number of blocks until the row is decided; `None` if unknown.
    pub(super) to_verdict: Option<f64>,
}

impl Want {
    fn seconds_to_verdict(&self) -> f64 {
        let blocks = self.to_verdict.unwrap_or(f64::INFINITY).max(f64::from(self.to_look));
        blocks * self.block.as_secs_f64()
    }

    fn cost_of_look(&self) -> Duration {
        self.block.saturating_mul(self.to_look)
    }
}

/// Selects the rows on which to spend the time that is `left`. Rows that need the least time come first, and
/// each is measured up to its next look. A row that can't reach its next look is not continued, because the
/// additional blocks could not decide it.
pub(super) fn affordable(wants: &[Want], left: Option<Duration>) -> Vec<usize> {
    let mut order: Vec<usize> = (0..wants.len()).collect();
    let Some(mut left) = left else { return order };
    order.sort_by(|&a, &b| wants[a].seconds_to_verdict().total_cmp(&wants[b].seconds_to_verdict()));
    order.retain(|&row| match left.checked_sub(wants[row].cost_of_look()) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    });
    order.sort_unstable();
    order
}

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

/// The timing of each benchmark in one session. The timings are stored on disk, so that a resumed session continues with
/// the same kind of processes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Timings(BTreeMap<String, TimingRecord>);

impl Timings {
    /// Reads the timings of an interrupted session; empty if it was interrupted before they were chosen.
    pub(super) fn read(file: &Path) -> Result<Self, PipelineError> {
        let bytes = match fs::read(file) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            bytes => bytes.map_err(PipelineError::io("read", file))?,
        };
        serde_json::from_slice(&bytes)
            .map_err(|error| PipelineError::io("read back", file)(std::io::Error::other(error)))
    }

    pub(super) fn write(&self, file: &Path) -> Result<(), PipelineError> {
        write_json(file, self)
    }

    pub(super) fn record(&self, name: &BenchmarkName) -> Option<TimingRecord> {
        self.0.get(name.as_str()).copied()
    }

    pub(super) fn get(&self, name: &BenchmarkName) -> Option<Timing> {
        self.record(name).map(|record| Timing {
            repetitions: record.repetitions,
            iterations: record.iterations,
            min_time: Duration::from_nanos(record.min_time_ns),
            warmup: Duration::from_nanos(record.warmup_ns),
        })
    }

    pub(super) fn set(&mut self, name: &BenchmarkName, timing: &Timing) {
        let nanoseconds = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let record = TimingRecord {
            repetitions: timing.repetitions,
            iterations: timing.iterations,
            min_time_ns: nanoseconds(timing.min_time),
            warmup_ns: nanoseconds(timing.warmup),
        };
        self.0.insert(name.as_str().to_owned(), record);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_of_a_block_has_each_side_once() {
        for round in 0..20 {
            let steps = paired_round(&[0, 1, 2], 3, round, 7);
            for benchmark in 0..3 {
                let sides: Vec<_> =
                    steps.iter().filter(|s| s.benchmark == benchmark).map(|s| s.side).collect();
                assert_eq!(sides.len(), 4);
                assert_ne!(sides[0], sides[1]);
                assert_ne!(sides[2], sides[3]);
            }
        }
    }

    #[test]
    fn a_block_is_never_interleaved_with_another_benchmark() {
        let steps = paired_round(&[0, 1, 2, 3], 4, 3, 1);
        for block in steps.chunks(4) {
            assert!(block.iter().all(|step| step.benchmark == block[0].benchmark));
        }
    }

    #[test]
    fn settling_one_benchmark_moves_no_other() {
        let all = paired_round(&[0, 1, 2, 3], 4, 5, 9);
        let without: Vec<_> = all.iter().copied().filter(|step| step.benchmark != 2).collect();
        assert_eq!(paired_round(&[0, 1, 3], 4, 5, 9), without);
    }

    #[test]
    fn all_four_orders_of_two_pairs_occur() {
        let starts = |round| {
            let steps = paired_round(&[0], 1, round, 1);
            (steps[0].side == SideName::Head, steps[2].side == SideName::Head)
        };
        let orders: Vec<_> = (0..80).map(starts).collect();
        for order in [(false, false), (false, true), (true, false), (true, true)] {
            let count = orders.iter().filter(|found| **found == order).count();
            assert!((8..=36).contains(&count), "{count} of 80 blocks are {order:?}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_order_and_another_seed_another() {
        let order = |seed| paired_round(&[0, 1, 2, 3, 4, 5, 6, 7], 8, 0, seed);
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
    }

    fn want(block_ms: u64, to_verdict: f64) -> Want {
        Want { block: Duration::from_millis(block_ms), to_look: 2, to_verdict: Some(to_verdict) }
    }

    #[test]
    fn without_a_budget_every_open_row_is_measured() {
        assert_eq!(affordable(&[want(100, 2.0), want(9000, 1e9)], None), [0, 1]);
    }

    #[test]
    fn a_budget_is_spent_on_the_rows_that_are_decided_soonest() {
        let rows = [want(400, 40.0), want(400, 3.0), want(400, 4.0)];
        assert_eq!(affordable(&rows, Some(Duration::from_millis(1600))), [1, 2]);
        // A row with many short blocks can need less time than one with few long blocks.
        let rows = [want(1000, 4.0), want(10, 100.0)];
        assert_eq!(affordable(&rows, Some(Duration::from_millis(500))), [1]);
    }

    #[test]
    fn what_one_row_can_t_use_goes_to_a_cheaper_one() {
        let rows = [want(1000, 2.0), want(100, 50.0)];
        assert_eq!(affordable(&rows, Some(Duration::from_millis(300))), [1]);
        assert!(affordable(&rows, Some(Duration::ZERO)).is_empty());
    }

    #[test]
    fn a_row_of_which_nothing_is_known_comes_last() {
        let rows = [Want { to_verdict: None, ..want(100, 0.0) }, want(100, 1000.0)];
        assert_eq!(affordable(&rows, Some(Duration::from_millis(200))), [1]);
    }

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    fn settings(toml: &str) -> Measure {
        let text = format!(
            "[suite]\nname = \"s\"\n[toolchain]\nversion = \"3.13.0\"\ncommit = \"{}\"\n[[model]]\nname = \"a\"\n\
             source = \"a.mlir\"\n[[target]]\nname = \"cpu\"\nbackend = \"llvm-cpu\"\n[measure]\n{toml}",
            "1".repeat(40)
        );
        benchgate_config::parse(&text, Path::new("benchgate.toml")).unwrap().measure
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
