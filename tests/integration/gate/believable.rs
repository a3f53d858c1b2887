//! Mathematical properties of verdicts, tested through the gate's public functions.

use benchgate::gate::noise::{NoiseOptions, Share, noise};
use benchgate::gate::{
    CompareOptions, Comparison, Policy, Reason, compare, compare_with_history, open_in_shard, open_rows,
};
use benchgate::model::{
    Benchmark, LintCode, Metric, MetricSeries, Process, Run, Series, Telemetry, Testbed, Verdict,
};
use proptest::prelude::*;
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};

use super::build::{judged, measured, paired, process, run, session, with};

/// An approximately standard normal number: the sum of twelve uniform ones.
fn normal(random: &mut ChaCha12Rng) -> f64 {
    (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0
}

/// A paired session with `rows` benchmarks, `blocks` blocks and process noise of `noise`. Head's times of row
/// 0 are multiplied by `effect`, and in a share `slow_share` of its processes also by 1.2.
fn recorded(seed: u64, rows: usize, blocks: u32, noise: f64, effect: f64, slow_share: f64) -> (Run, Run) {
    let mut random = ChaCha12Rng::seed_from_u64(seed);
    let (mut base, mut head) = (Vec::new(), Vec::new());
    for row in 0..rows {
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for block in 0..blocks {
            let abba: bool = random.random();
            for slot in 0..4_u8 {
                let is_head = matches!(slot, 1 | 2) == abba;
                let mut location = 1e6 * (row + 1) as f64 * (noise * normal(&mut random)).exp();
                if is_head && row == 0 {
                    location *= effect;
                    if random.random::<f64>() < slow_share {
                        location *= 1.2;
                    }
                }
                let samples: Vec<f64> =
                    (0..8).map(|_| location * (0.003 * normal(&mut random)).exp()).collect();
                let process = process(&samples, Some((block, slot)));
                if is_head { b.push(process) } else { a.push(process) }
            }
        }
        let name = format!("row-{row}/cpu/main");
        base.push(with(&name, Metric::LATENCY, Series::Processes(a)));
        head.push(with(&name, Metric::LATENCY, Series::Processes(b)));
    }
    (session(base), session(head))
}

fn map_samples(run: &Run, of: impl Fn(f64) -> f64, metric: &Metric) -> Run {
    let mut run = run.clone();
    for series in run.benchmarks.iter_mut().flat_map(|benchmark| &mut benchmark.metrics) {
        series.metric = metric.clone();
        if let Series::Processes(processes) = &mut series.series {
            processes.iter_mut().flat_map(|p| &mut p.samples).for_each(|sample| *sample = of(*sample));
        }
    }
    run
}

fn verdicts(comparison: &Comparison) -> Vec<Verdict> {
    comparison.rows.iter().map(|row| row.verdict).collect()
}

fn close(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < 1e-9
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn scale_changes_nothing(seed in 0_u64..1000, scale in 1e-6_f64..1e6, effect in 0.8_f64..1.3) {
        let (base, head) = recorded(seed, 4, 8, 0.01, effect, 0.0);
        let scaled = |run: &Run| map_samples(run, |v| v * scale, &Metric::LATENCY);
        let (plain, scaled) = (judged(&base, &head), judged(&scaled(&base), &scaled(&head)));
        prop_assert_eq!(verdicts(&plain), verdicts(&scaled));
        for (a, b) in plain.rows.iter().zip(&scaled.rows) {
            let (a, b) = (a.estimate.as_ref().unwrap(), b.estimate.as_ref().unwrap());
            prop_assert!(close(a.ratio, b.ratio));
            prop_assert!(close(a.interval.unwrap().high, b.interval.unwrap().high));
        }
    }

    #[test]
    fn a_rate_is_judged_as_its_time_would_be(seed in 0_u64..1000, effect in 0.8_f64..1.3) {
        let (base, head) = recorded(seed, 4, 8, 0.01, effect, 0.0);
        let rate = Metric { name: "latency".into(), ..Metric::THROUGHPUT };
        let inverted = |run: &Run| map_samples(run, |v| 1e9 / v, &rate);
        let (time, rate) = (judged(&base, &head), judged(&inverted(&base), &inverted(&head)));
        prop_assert_eq!(verdicts(&time), verdicts(&rate));
        for (a, b) in time.rows.iter().zip(&rate.rows) {
            let (a, b) = (a.estimate.as_ref().unwrap(), b.estimate.as_ref().unwrap());
            // Interpolated quartiles of reciprocals differ a little.
            prop_assert!((a.ratio * b.ratio - 1.0).abs() < 1e-3);
        }
    }

    #[test]
    fn swapping_the_sides_mirrors_the_effect(seed in 0_u64..1000, effect in 0.8_f64..1.3) {
        let (base, head) = recorded(seed, 4, 8, 0.004, effect, 0.0);
        let (there, back) = (judged(&base, &head), judged(&head, &base));
        for (a, b) in there.rows.iter().zip(&back.rows) {
            let (ea, eb) = (a.estimate.as_ref().unwrap(), b.estimate.as_ref().unwrap());
            prop_assert!(close(ea.ratio * eb.ratio, 1.0));
            // An improvement needs no share of the error budget, so it may be decided while its mirror image
            // is still undecided, but not the other way round.
            let mirror = |a: Verdict, b: Verdict| a != Verdict::Regressed || b == Verdict::Improved;
            prop_assert!(mirror(a.verdict, b.verdict) && mirror(b.verdict, a.verdict));
        }
    }

    #[test]
    fn the_order_of_rows_and_processes_is_irrelevant(seed in 0_u64..1000) {
        let (base, head) = recorded(seed, 5, 6, 0.02, 1.1, 0.0);
        let mut shuffled = base.clone();
        shuffled.benchmarks.reverse();
        for series in shuffled.benchmarks.iter_mut().flat_map(|benchmark| &mut benchmark.metrics) {
            if let Series::Processes(processes) = &mut series.series {
                processes.reverse();
            }
        }
        let (plain, other) = (judged(&base, &head), judged(&shuffled, &head));
        prop_assert_eq!(&plain.rows, &other.rows);
        let mut turned = head.clone();
        turned.benchmarks.reverse();
        let mut other = judged(&base, &turned).rows;
        other.reverse();
        prop_assert_eq!(&plain.rows, &other);
    }

    #[test]
    fn the_same_input_gives_the_same_answer(seed in 0_u64..1000) {
        let (base, head) = recorded(seed, 3, 6, 0.03, 1.04, 0.1);
        prop_assert_eq!(judged(&base, &head), judged(&base, &head));
        prop_assert_eq!(
            open_rows(&base, &head, &Policy::default()),
            open_rows(&base, &head, &Policy::default())
        );
    }

    #[test]
    fn any_samples_at_all_get_a_verdict_and_none_of_it_is_a_quiet_pass(
        base in proptest::collection::vec(proptest::num::f64::ANY, 0..6),
        head in proptest::collection::vec(proptest::num::f64::ANY, 0..6),
    ) {
        let bad = |samples: &[f64]| samples.is_empty() || samples.iter().any(|v| !v.is_finite() || *v <= 0.0);
        let unusable = bad(&base) || bad(&head);
        let comparison = judged(&run(vec![measured("a", &base)]), &run(vec![measured("a", &head)]));
        prop_assert_eq!(comparison.rows.len(), 1);
        if unusable {
            prop_assert_eq!(comparison.rows[0].verdict, Verdict::Error);
        }
    }
}

#[test]
fn more_data_never_turns_a_true_red_green() {
    let policy = Policy::default();
    let mut reds = 0;
    for blocks in [6, 12, 48, 120] {
        for seed in 0..4 {
            let (base, head) = recorded(seed, 4, blocks, 0.02, 1.05, 0.0);
            let verdict = compare(&base, &head, &policy, &CompareOptions::default()).rows[0].verdict;
            assert_ne!(verdict, Verdict::Pass, "{blocks} blocks, seed {seed}");
            reds += u32::from(verdict == Verdict::Regressed);
            assert!(blocks < 48 || verdict == Verdict::Regressed, "{blocks} blocks, seed {seed}: {verdict}");
        }
    }
    assert!(reds >= 10);
}

#[test]
fn a_change_between_floor_and_tolerance_becomes_red_in_the_limit() {
    let (base, head) = recorded(3, 3, 300, 0.01, 1.02, 0.0);
    let row = &judged(&base, &head).rows[0];
    assert_eq!(row.verdict, Verdict::Regressed, "{row:?}");
}

#[test]
fn a_head_that_is_slow_in_some_of_its_starts_is_caught_as_unstable() {
    let (base, head) = recorded(11, 12, 24, 0.005, 1.0, 0.4);
    let comparison = judged(&base, &head);
    let row = &comparison.rows[0];
    assert_eq!((row.verdict, &row.reason), (Verdict::Regressed, &Reason::Stability), "{row:?}");
    assert!(row.lints.iter().any(|lint| lint.code == LintCode::Intermittent));
    // An unstable base does not make head unstable.
    assert!(judged(&head, &base).rows[0].reason != Reason::Stability);
}

/// A session without an effect, in which a fifth of the processes of each side's first row is slowed by that
/// side's factor.
fn slow_starts(seed: u64, factors: [f64; 2]) -> (Run, Run) {
    let (mut base, mut head) = recorded(seed, 3, 48, 0.005, 1.0, 0.0);
    let mut random = ChaCha12Rng::seed_from_u64(seed + 2000);
    for (run, factor) in [&mut base, &mut head].into_iter().zip(factors) {
        let Series::Processes(processes) = &mut run.benchmarks[0].metrics[0].series else { continue };
        for process in processes {
            let factor = if random.random::<f64>() < 0.2 { factor } else { 1.0 };
            process.samples.iter_mut().for_each(|sample| *sample *= factor);
        }
    }
    (base, head)
}

#[test]
fn a_head_with_a_few_slow_starts_that_cost_more_than_the_tolerance_is_never_green() {
    for (slow, factor, green) in
        [(5, 10.0, false), (3, 2.0, false), (2, 2.0, false), (5, 1.5, false), (1, 1.5, true)]
    {
        let (base, mut head) = recorded(31, 3, 24, 0.002, 1.0, 0.0);
        let Series::Processes(processes) = &mut head.benchmarks[0].metrics[0].series else { panic!() };
        for process in processes.iter_mut().skip(3).step_by(9).take(slow) {
            process.samples.iter_mut().for_each(|sample| *sample *= factor);
        }
        let row = judged(&base, &head).rows.remove(0);
        assert_eq!(row.verdict == Verdict::Pass, green, "{slow} of 48 take {factor} times as long: {row:?}");
    }
}

#[test]
fn a_head_whose_slow_starts_take_longer_than_those_of_base_is_never_green() {
    let verdict = |seed, factors| {
        let (base, head) = slow_starts(seed, factors);
        judged(&base, &head).rows[0].verdict
    };
    for seed in 0..8 {
        let longer = verdict(seed, [1.5, 4.0]);
        assert!(matches!(longer, Verdict::Inconclusive | Verdict::Regressed), "seed {seed}: {longer}");
    }
    let greens = |factors| (0..8).filter(|seed| verdict(*seed, factors) == Verdict::Pass).count();
    assert!(greens([1.5, 1.5]) >= 7 && greens([4.0, 1.5]) >= 7);
}

#[test]
fn a_slow_start_of_base_does_not_excuse_those_of_head_that_cost_more() {
    for (count, factor) in [(5, 10.0), (6, 2.0), (8, 1.5)] {
        let (mut base, mut head) = recorded(count, 3, 24, 0.005, 1.0, 0.0);
        let of = |run: &mut Run, every: usize, factor: f64| {
            let Series::Processes(processes) = &mut run.benchmarks[0].metrics[0].series else {
                unreachable!()
            };
            for process in processes.iter_mut().skip(2).step_by(every) {
                process.samples.iter_mut().for_each(|sample| *sample *= factor);
            }
        };
        of(&mut head, 48 / count as usize, factor);
        of(&mut base, 48, 1.2);
        let row = &judged(&base, &head).rows[0];
        let green = matches!(row.verdict, Verdict::Pass | Verdict::Improved);
        assert!(!green, "{count} starts × {factor}: {row:?}");
    }
}

#[test]
fn a_head_with_more_slow_starts_than_a_base_that_has_some_is_not_green_and_says_how_many() {
    let slow = |run: &mut Run, first: usize, every: usize, count: usize| {
        let Series::Processes(processes) = &mut run.benchmarks[0].metrics[0].series else { unreachable!() };
        for process in processes.iter_mut().skip(first).step_by(every).take(count) {
            process.samples.iter_mut().for_each(|sample| *sample *= 1.6);
        }
    };
    let judged = |of_base: usize, of_head: usize| {
        // There is only one row, because stable neighbors alone would show that such starts are rare.
        let (mut base, mut head) = recorded(41, 1, 24, 0.002, 1.0, 0.0);
        slow(&mut head, 0, 4, of_head);
        slow(&mut base, 2, 8, of_base);
        judged(&base, &head).rows.swap_remove(0)
    };
    let row = judged(4, 10);
    let Reason::TooLittle(lacking) = &row.reason else { panic!("{row:?}") };
    let starts = "above base's: more slow starts (10 of 48 against 4 of 48)";
    assert!(lacking.why.ends_with(starts), "{}", lacking.why);
    assert_eq!(judged(5, 7).verdict, Verdict::Pass);
}

/// A session in which each repetition of the first row stalls with its side's probability, and then takes
/// fifty times as long.
fn stalled(seed: u64, blocks: u32, effect: f64, [of_base, of_head]: [f64; 2]) -> (Run, Run) {
    let (mut base, mut head) = recorded(seed, 3, blocks, 0.005, effect, 0.0);
    let mut random = ChaCha12Rng::seed_from_u64(seed + 1000);
    for (run, chance) in [(&mut base, of_base), (&mut head, of_head)] {
        let Series::Processes(processes) = &mut run.benchmarks[0].metrics[0].series else { continue };
        for sample in processes.iter_mut().flat_map(|process| &mut process.samples) {
            *sample *= if random.random::<f64>() < chance { 50.0 } else { 1.0 };
        }
    }
    (base, head)
}

#[test]
fn a_head_that_stalls_in_a_fiftieth_of_its_repetitions_is_never_green() {
    for seed in 0..6 {
        let (base, head) = stalled(seed, 24, 1.0, [0.0, 0.02]);
        let comparison = judged(&base, &head);
        let row = &comparison.rows[0];
        assert!(matches!(row.verdict, Verdict::Inconclusive | Verdict::Regressed), "seed {seed}: {row:?}");
        assert!(row.reason.is_uneven(), "seed {seed}: {row:?}");
        assert!(verdicts(&comparison)[1..].iter().all(|verdict| *verdict == Verdict::Pass), "seed {seed}");
    }
}

#[test]
fn a_head_that_stalls_often_has_regressed_by_its_tail() {
    let (base, head) = stalled(3, 24, 1.0, [0.0, 0.08]);
    let row = &judged(&base, &head).rows[0];
    assert_eq!((row.verdict, &row.reason), (Verdict::Regressed, &Reason::Tail), "{row:?}");
    assert!(row.estimate.as_ref().unwrap().p_tail.unwrap() < 1e-6);
    assert!(judged(&head, &base).rows[0].reason != Reason::Tail);
}

#[test]
fn a_host_that_stalls_both_sides_makes_no_row_red_and_few_open() {
    let mut green = 0;
    for seed in 0..8 {
        let (base, head) = stalled(seed, 24, 1.0, [0.02, 0.02]);
        let row = &judged(&base, &head).rows[0];
        assert_ne!(row.verdict, Verdict::Regressed, "seed {seed}: {row:?}");
        green += u32::from(row.verdict == Verdict::Pass);
    }
    assert!(green >= 4, "{green} of 8");
}

#[test]
fn one_stall_of_a_host_is_measured_further_and_then_passes() {
    let once = |blocks| {
        let (base, mut head) = stalled(4, blocks, 1.0, [0.0, 0.0]);
        let Series::Processes(processes) = &mut head.benchmarks[0].metrics[0].series else { unreachable!() };
        processes[3].samples[2] *= 50.0;
        judged(&base, &head).rows.swap_remove(0)
    };
    assert_eq!((once(12).verdict, once(12).reason), (Verdict::Inconclusive, Reason::Tail));
    assert_eq!(once(24).verdict, Verdict::Pass);
}

#[test]
fn a_head_whose_every_repetition_beats_base_has_improved_however_uneven_it_is() {
    let (base, head) = recorded(11, 12, 24, 0.005, 0.5, 0.4);
    let row = &judged(&base, &head).rows[0];
    assert_eq!((row.verdict, &row.reason), (Verdict::Improved, &Reason::BelowFloor), "{row:?}");
    // Some of its processes are slower than base.
    let (base, head) = recorded(11, 12, 24, 0.005, 0.9, 0.4);
    assert_eq!(judged(&base, &head).rows[0].verdict, Verdict::Inconclusive);
}

#[test]
fn open_rows_asks_for_the_declared_looks_and_then_stops() {
    let policy = Policy::default();
    let (base, head) = recorded(5, 3, 12, 0.0005, 1.0, 0.0);
    let settled = open_rows(&base, &head, &policy);
    assert_eq!((settled.open.len(), settled.next_blocks), (0, None));
    let (base, head) = recorded(5, 3, 12, 0.2, 1.0, 0.0);
    let noisy = open_rows(&base, &head, &policy);
    assert_eq!((noisy.open.len(), noisy.next_blocks), (3, Some(18)));
    let (base, head) = recorded(5, 3, 24, 0.2, 1.0, 0.0);
    assert_eq!(open_rows(&base, &head, &policy).next_blocks, None);
    let (base, head) = recorded(5, 3, 1, 0.01, 1.0, 0.0);
    assert_eq!(open_rows(&base, &head, &policy).next_blocks, Some(12));
}

#[test]
fn how_long_a_row_is_measured_does_not_depend_on_what_else_is_in_its_shard() {
    let policy = Policy::default();
    let mut open = 0;
    for seed in 0..8 {
        let (base, head) = recorded(seed, 5, 12, 0.02, 1.05, 0.0);
        let whole = open_in_shard(&base, &head, &policy, 5);
        open += whole.open.len();
        for at in 0..5 {
            let only = |run: &Run| Run { benchmarks: vec![run.benchmarks[at].clone()], ..run.clone() };
            let alone = open_in_shard(&only(&base), &only(&head), &policy, 5);
            let name = &head.benchmarks[at].name;
            assert_eq!(alone.open.contains(name), whole.open.contains(name), "seed {seed}, {name}");
        }
    }
    assert!((1..40).contains(&open), "{open} of 40 rows are open, so the rows say nothing");
}

#[test]
fn a_row_of_a_merged_run_is_as_stable_as_its_shard_found_it() {
    let mut differ = 0;
    for seed in 0..8 {
        let (mut base, mut head) = recorded(seed, 5, 12, 0.01, 1.0, 0.3);
        let stability = |base: &Run, head: &Run| -> Vec<Option<f64>> {
            judged(base, head).rows.iter().map(|row| row.estimate.as_ref().unwrap().p_stability).collect()
        };
        let together = stability(&base, &head);
        (base.in_shards, head.in_shards) = (true, true);
        let merged = stability(&base, &head);
        for (at, p_merged) in merged.iter().enumerate() {
            let only = |run: &Run| Run { benchmarks: vec![run.benchmarks[at].clone()], ..run.clone() };
            assert_eq!(stability(&only(&base), &only(&head)), [*p_merged], "seed {seed}, row {at}");
        }
        differ += usize::from(together != merged);
    }
    assert!(differ > 0, "neighbors on one machine say what is usual there");
}

#[test]
fn a_part_of_a_suite_is_judged_against_the_error_budget_of_the_whole() {
    let (base, head) = recorded(3, 1, 12, 0.01, 1.05, 0.0);
    let level = |suite_rows: u32| {
        let options = CompareOptions { suite_rows, ..CompareOptions::default() };
        let comparison = compare(&base, &head, &Policy::default(), &options);
        comparison.rows[0].estimate.as_ref().unwrap().interval.unwrap().level
    };
    assert!(level(100) > level(10), "a hundred rows share what ten rows share");
    assert!(level(10) > level(0));
}

#[test]
fn every_row_says_what_it_could_have_seen() {
    let (base, head) = recorded(5, 3, 12, 0.01, 1.0, 0.0);
    for row in judged(&base, &head).rows {
        let detectable = row.estimate.unwrap().minimum_detectable.unwrap();
        assert!((0.01..0.05).contains(&detectable), "{detectable}");
    }
}

fn nightly(seed: u64, effect: f64, testbed: &str) -> Run {
    let mut random = ChaCha12Rng::seed_from_u64(seed);
    let benchmarks = (0..6).map(|row| {
        let day = 0.01 * normal(&mut random);
        let processes: Vec<Process> = (0..6)
            .map(|_| {
                let location = 1e6 * effect * (day + 0.005 * normal(&mut random)).exp();
                process(&[location, location * 1.001, location * 1.002], None)
            })
            .collect();
        with(&format!("row-{row}"), Metric::LATENCY, Series::Processes(processes))
    });
    let mut run = run(benchmarks.collect());
    run.testbed = Some(Testbed { id: testbed.to_owned(), ..Testbed::default() });
    run
}

#[test]
fn a_stored_baseline_counts_the_spread_between_its_sessions() {
    let history: Vec<Run> = (0..12).map(|seed| nightly(seed, 1.0, "gpu")).collect();
    let policy = Policy::default();
    let judge = |head: &Run, history: &[Run]| {
        compare_with_history(head, history, &policy, &CompareOptions::default())
    };
    assert!(verdicts(&judge(&nightly(100, 1.0, "gpu"), &history)).iter().all(|v| *v != Verdict::Regressed));
    assert!(verdicts(&judge(&nightly(100, 1.25, "gpu"), &history)).iter().all(|v| *v == Verdict::Regressed));
    let few = judge(&nightly(100, 1.06, "gpu"), &history[..1]);
    assert!(few.rows.iter().all(|row| row.verdict == Verdict::Inconclusive));
    assert!(few.rows[0].lints.iter().any(|lint| lint.code == LintCode::FewSessions));
    let elsewhere = judge(&nightly(100, 1.0, "other"), &history);
    assert!(verdicts(&elsewhere).iter().all(|v| *v == Verdict::Missing));
}

#[test]
fn files_with_one_process_a_side_say_what_was_assumed() {
    let samples: Vec<f64> = (0..10).map(|i| 100.0 + f64::from(i) * 0.1).collect();
    let head: Vec<f64> = samples.iter().map(|v| v * 1.06).collect();
    let comparison =
        judged(&run(vec![measured("conv/cuda", &samples)]), &run(vec![measured("conv/cuda", &head)]));
    let row = &comparison.rows[0];
    assert_eq!(row.verdict, Verdict::Inconclusive, "six percent is within what two processes may differ");
    let lint = row.lints.iter().find(|lint| lint.code == LintCode::AssumedSpread).unwrap();
    assert!(lint.detail.contains("one session per side"), "{}", lint.detail);
    let runs = row.estimate.as_ref().unwrap();
    assert!(runs.sessions == Some(1) && runs.p_runs.unwrap() < 0.001, "{runs:?}: the two runs differ");
    // A user who measured the spread may state it.
    let policy = Policy { between_cv: Some(0.003), ..Policy::default() };
    let declared = compare(
        &run(vec![measured("conv/cuda", &samples)]),
        &run(vec![measured("conv/cuda", &head)]),
        &policy,
        &CompareOptions::default(),
    );
    assert_eq!(declared.rows[0].verdict, Verdict::Regressed);
}

#[test]
fn noise_reports_what_an_a_a_session_is_worth_and_repeats_itself() {
    let (base, head) = recorded(1, 4, 8, 0.005, 1.0, 0.0);
    let options = NoiseOptions { resamples: 12, slowdowns: vec![0.10], ..NoiseOptions::default() };
    let report = noise(&base, &head, &Policy::default(), &options);
    assert_eq!(report, noise(&base, &head, &Policy::default(), &options));
    assert_eq!(report.red_suites.of, 12);
    let alone = NoiseOptions { threads: 1, ..options };
    assert_eq!(report, noise(&base, &head, &Policy::default(), &alone), "threads change no figure");
    assert!(report.red_suites.value() < 0.1 && report.power[0].seen.value() > 0.9, "{report:?}");
    assert_eq!(report.rows.len(), 4);
    let spread = report.rows[0].spread;
    assert!((0.002..0.01).contains(&spread.between_processes.unwrap()), "{spread:?}");
    assert!(report.rows[0].least > 0.01 && report.rows[0].least < 0.03);
    assert_eq!(report.calibration(0.01).unwrap().spreads.len(), 4);
}

#[test]
fn a_session_that_turns_red_more_often_than_alpha_allows_gives_no_calibration() {
    let (base, head) = recorded(1, 4, 8, 0.005, 1.0, 0.0);
    let options = NoiseOptions { resamples: 1, slowdowns: Vec::new(), ..NoiseOptions::default() };
    let mut report = noise(&base, &head, &Policy::default(), &options);
    let mut kept = |hits, of| {
        report.red_suites = Share { hits, of };
        report.calibration(0.01).is_some()
    };
    assert_eq!([kept(0, 100), kept(3, 100), kept(10, 100), kept(100, 100)], [true, true, false, false]);
}

#[test]
fn a_calibration_inside_the_run_replaces_the_default() {
    let report = {
        let (base, head) = recorded(1, 2, 8, 0.001, 1.0, 0.0);
        let options = NoiseOptions { resamples: 0, slowdowns: Vec::new(), ..NoiseOptions::default() };
        noise(&base, &head, &Policy::default(), &options)
    };
    let samples = [100.0, 100.1, 100.2, 100.1];
    let side = |factor: f64| {
        let samples: Vec<f64> = samples.iter().map(|v| v * factor).collect();
        let mut run = run(vec![measured("row-0/cpu/main", &samples)]);
        run.calibration = report.calibration(0.01).cloned();
        run
    };
    let row = &judged(&side(1.0), &side(1.05)).rows[0];
    assert_eq!(row.verdict, Verdict::Regressed, "{row:?}");
    assert!(row.lints.iter().all(|lint| lint.code != LintCode::AssumedSpread));
}

#[test]
fn the_order_effect_and_drift_of_a_session_are_reported() {
    let (mut base, mut head) = recorded(9, 6, 10, 0.002, 1.0, 0.0);
    for run in [&mut base, &mut head] {
        for MetricSeries { series, .. } in
            run.benchmarks.iter_mut().flat_map(|b: &mut Benchmark| &mut b.metrics)
        {
            if let Series::Processes(processes) = series {
                for process in processes {
                    let slot = process.slot.unwrap();
                    let factor =
                        if slot.slot % 2 == 0 { 1.02 } else { 1.0 } * (1.0 + 0.01 * f64::from(slot.block));
                    process.samples.iter_mut().for_each(|sample| *sample *= factor);
                }
            }
        }
    }
    let comparison = judged(&base, &head);
    assert!(comparison.lints.iter().any(|lint| lint.code == LintCode::SlotOrder), "{:?}", comparison.lints);
    assert!(comparison.rows.iter().all(|row| row.lints.iter().any(|lint| lint.code == LintCode::Drift)));
    assert!(comparison.rows.iter().all(|row| row.verdict != Verdict::Regressed));
}

/// A slower process meets other programs more often, which must not hide how much slower it is.
#[test]
fn a_head_far_slower_than_other_programs_explain_is_red_although_it_was_disturbed_more() {
    let disturbed = |mut benchmark: Benchmark, of: usize| {
        let processes = 24;
        if let Series::Processes(all) = &mut benchmark.metrics[0].series {
            all.iter_mut().for_each(|process| process.started = Some("2026-11-27T12:00:00Z".into()));
        }
        let seen = |order: u32| Telemetry {
            order,
            foreign_share: ((order as usize) < of).then_some(0.4),
            ..Telemetry::default()
        };
        Benchmark { telemetry: (0..processes).map(seen).collect(), ..benchmark }
    };
    let judged = |head_takes: f64, disturbed_base: usize, disturbed_head: usize| {
        let (base, head) = paired("a", &[100.0; 12], &[head_takes; 12], 0.002);
        let (base, head) = (disturbed(base, disturbed_base), disturbed(head, disturbed_head));
        judged(&session(vec![base]), &session(vec![head])).rows.remove(0).verdict
    };
    assert_eq!(judged(500.0, 2, 24), Verdict::Regressed);
    // Sharing a processor could explain these.
    assert_eq!(judged(150.0, 2, 24), Verdict::Inconclusive);
    assert_eq!(judged(20.0, 24, 2), Verdict::Inconclusive);
}
