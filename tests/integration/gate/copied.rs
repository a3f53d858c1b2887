//! Copied samples are not measurements. Equal values of a coarse clock are not copies.

use benchgate::gate::{self, CompareOptions, Policy, Reason};
use benchgate::model::{LintCode, Metric, Process, Run, Series, Unit, Verdict};
use rand::rngs::ChaCha12Rng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use serde_json::Value;

use super::build::{judged, judged_by, process, run, session, with};

/// Processes of about 100 µs with a spread of about 0.2 %, and a clock with ticks of `tick` ns.
fn measured(random: &mut ChaCha12Rng, processes: usize, repetitions: usize, tick: f64) -> Vec<Vec<f64>> {
    let mut sample = |location: f64| {
        let value: f64 = location * (1.0 + 0.004 * (random.random::<f64>() - 0.5));
        if tick > 0.0 { (value / tick).round() * tick } else { value }
    };
    (0..processes)
        .map(|_| {
            let location = sample(1e5);
            (0..repetitions).map(|_| sample(location)).collect()
        })
        .collect()
}

/// A run with one benchmark that has these processes, in blocks of two per side if `in_blocks`.
fn side(samples: &[Vec<f64>], (is_head, in_blocks): (bool, bool)) -> Run {
    let processes = samples.iter().enumerate().map(|(at, samples)| {
        let slot = if is_head { [1, 2] } else { [0, 3] }[at % 2];
        let place = in_blocks.then_some((at as u32 / 2, slot));
        // Each process is in a separate session, so it says little about the next one.
        Process { session: at as u32, ..process(samples, place) }
    });
    let benchmark = with("a", Metric::LATENCY, Series::Processes(processes.collect()));
    if in_blocks { session(vec![benchmark]) } else { run(vec![benchmark]) }
}

/// The verdict, and whether copied samples were found.
fn verdict(base: &[Vec<f64>], head: &[Vec<f64>], in_blocks: bool) -> (Verdict, bool) {
    let row = judged(&side(base, (false, in_blocks)), &side(head, (true, in_blocks))).rows.remove(0);
    (row.verdict, row.lints.iter().any(|lint| lint.code == LintCode::RepeatedSamples))
}

const COPIED: (Verdict, bool) = (Verdict::Error, true);

#[test]
fn copies_of_a_process_of_a_side_or_of_half_of_the_blocks_are_not_green() {
    let mut random = ChaCha12Rng::seed_from_u64(1);
    for (repetitions, in_blocks) in [(1, false), (4, true), (4, false), (8, true)] {
        let base = measured(&mut random, 48, repetitions, 0.0);
        let head = measured(&mut random, 48, repetitions, 0.0);
        let of = |head: &[Vec<f64>]| verdict(&base, head, in_blocks);
        assert_eq!(of(&head), (Verdict::Pass, false), "measured");
        assert_eq!(of(&vec![head[0].clone(); 48]), COPIED, "one process, {repetitions} repetitions");
        assert_eq!(of(&base), COPIED, "base's samples, {repetitions} repetitions");
        assert_eq!(
            of(&[&head[..24], &head[..24]].concat()),
            COPIED,
            "the first half twice, {repetitions} repetitions"
        );
    }
}

/// Two sides of blocks that were drawn with replacement from twelve, with the labels of some pairs exchanged.
fn resampled(random: &mut ChaCha12Rng, slower: f64) -> [Vec<Vec<f64>>; 2] {
    let recorded = measured(random, 48, 8, 0.0);
    let mut sides = [Vec::new(), Vec::new()];
    for _ in 0..24 {
        let block = random.random_range(0..12_usize);
        for pair in 0..2 {
            let first = usize::from(random.random::<bool>());
            for side in 0..2 {
                let process = &recorded[4 * block + 2 * pair + (first ^ side)];
                let factor = if side == 1 { slower } else { 1.0 };
                sides[side].push(process.iter().map(|value| value * factor).collect());
            }
        }
    }
    sides
}

#[test]
fn blocks_that_were_drawn_again_are_no_copies_for_the_calibration_alone() {
    let mut random = ChaCha12Rng::seed_from_u64(5);
    let options = CompareOptions { resampled: true, ..CompareOptions::default() };
    for slower in [1.0, 1.1] {
        for _ in 0..20 {
            let [base, head] = resampled(&mut random, slower);
            assert!(verdict(&base, &head, true).1);
            let (base, head) = (side(&base, (false, true)), side(&head, (true, true)));
            let row = gate::compare(&base, &head, &Policy::default(), &options).rows.remove(0);
            assert!(row.lints.iter().all(|lint| lint.code != LintCode::RepeatedSamples));
        }
    }
}

fn times(times: usize, samples: &[Vec<f64>]) -> Vec<Vec<f64>> {
    vec![samples; times].concat()
}

/// A function that derives other samples from those of one side.
type Edit<'a> = &'a mut dyn FnMut(&[Vec<f64>]) -> Vec<Vec<f64>>;

/// These values in another order.
fn shuffled(random: &mut ChaCha12Rng, samples: &[f64]) -> Vec<f64> {
    let mut samples = samples.to_vec();
    samples.shuffle(random);
    samples
}

#[test]
fn blocks_that_hold_what_other_blocks_hold_are_copies_in_any_order() {
    let mut random = ChaCha12Rng::seed_from_u64(6);
    let sides = [(); 2].map(|()| measured(&mut random, 24, 4, 0.0));
    let of = |edit: Edit<'_>| {
        let [base, head] = sides.each_ref().map(|side| edit(side));
        verdict(&base, &head, true)
    };
    assert!(!of(&mut <[_]>::to_vec).1, "measured");
    assert_eq!(of(&mut |side| times(12, &side[..2])), COPIED, "one block twelve times");
    assert_eq!(of(&mut |side| times(2, &side[..12])), COPIED, "the first six blocks twice");
    let mut again = |side: &[Vec<f64>]| {
        let mut later: Vec<Vec<f64>> = side[..12].iter().map(|it| shuffled(&mut random, it)).collect();
        later.reverse();
        [&side[..12], &later].concat()
    };
    assert_eq!(of(&mut again), COPIED, "the first six blocks again, everything in another order");
    let mut exchanged = |side: &[Vec<f64>]| {
        let values = shuffled(&mut ChaCha12Rng::seed_from_u64(7), &side[..2].concat());
        [&side[..22], &values.chunks(4).map(<[_]>::to_vec).collect::<Vec<_>>()].concat()
    };
    assert_eq!(of(&mut exchanged), COPIED, "the values of one block dealt out among its processes");
}

#[test]
fn blocks_of_one_value_are_copies_where_many_come_again_in_their_order() {
    let mut random = ChaCha12Rng::seed_from_u64(8);
    // Each block has one process of each side.
    let side = |samples: &[Vec<f64>], is_head: bool| {
        let processes = (0..).zip(samples).map(|(at, it)| process(it, Some((at, u8::from(is_head)))));
        session(vec![with("a", Metric::LATENCY, Series::Processes(processes.collect()))])
    };
    let is_found = |base: &[Vec<f64>], head: &[Vec<f64>]| {
        let row = judged(&side(base, false), &side(head, true)).rows.remove(0);
        row.lints.iter().any(|lint| lint.code == LintCode::RepeatedSamples)
    };
    for tick in [0.0, 4.0, 40.0, 400.0] {
        for _ in 0..50 {
            let [base, head] = [(); 2].map(|()| measured(&mut random, 12, 1, tick));
            assert!(!is_found(&base, &head), "{tick}");
        }
    }
    let [base, head] = [(); 2].map(|()| times(2, &measured(&mut random, 6, 1, 0.0)));
    assert!(is_found(&base, &head));
}

/// A side that was read from several files, with the samples `samples[file][benchmark]`.
fn files(samples: &[Vec<Vec<f64>>]) -> Run {
    let benchmarks = (0..samples[0].len()).map(|at| {
        let of_file =
            |(session, file): (u32, &Vec<Vec<f64>>)| Process { session, ..process(&file[at], None) };
        let processes = (0..).zip(samples).map(of_file);
        with(&format!("{at}"), Metric::LATENCY, Series::Processes(processes.collect()))
    });
    run(benchmarks.collect())
}

#[test]
fn a_file_among_many_that_is_a_copy_keeps_the_comparison_from_being_green() {
    let mut random = ChaCha12Rng::seed_from_u64(9);
    // Equal values of a coarse clock are not copies, regardless of the number of files and benchmarks.
    for (benchmarks, repetitions, tick) in
        [(1, 8, 0.0), (2, 3, 0.0), (8, 1, 0.0), (40, 1, 100.0), (40, 3, 100.0), (20, 1, 400.0), (8, 1, 4.0)]
    {
        let mut side = || -> Vec<Vec<Vec<f64>>> {
            (0..21).map(|_| measured(&mut random, benchmarks, repetitions, tick)).collect()
        };
        let (base, mut head) = (side(), side());
        let is_found = |base: &[Vec<Vec<f64>>], head: &[Vec<Vec<f64>>]| {
            let comparison = judged(&files(base), &files(head));
            let of_rows = comparison.rows.iter().flat_map(|row| &row.lints);
            let found = comparison.lints.iter().chain(of_rows).any(|it| it.code == LintCode::RepeatedSamples);
            assert!(!found || comparison.verdict == Verdict::Error);
            found
        };
        let what = format!("{benchmarks} benchmarks, {repetitions} repetitions, {tick} ns");
        assert!(!is_found(&base, &head), "{what}");
        head[13] = head[4].iter().map(|samples| shuffled(&mut random, samples)).collect();
        assert!(tick > 0.0 || is_found(&base, &head), "{what}");
        head[13] = base[4].clone();
        assert!(tick > 0.0 || is_found(&base, &head), "base's file, {what}");
    }
}

#[test]
fn one_file_copied_for_all_of_a_side_is_found_where_its_values_were_shuffled() {
    let mut random = ChaCha12Rng::seed_from_u64(10);
    let mut side = || -> Vec<Vec<f64>> {
        let one = measured(&mut random, 1, 5, 0.0).remove(0);
        (0..21).map(|_| shuffled(&mut random, &one)).collect()
    };
    let (base, head) = (side(), side());
    assert_eq!(verdict(&base, &head, false), COPIED);
}

#[test]
fn a_single_process_with_eight_different_values_is_not_measured_twice() {
    let mut random = ChaCha12Rng::seed_from_u64(2);
    let one = measured(&mut random, 1, 8, 0.0);
    assert_eq!(verdict(&one, &one, false), COPIED);
    let other = measured(&mut random, 1, 8, 0.0);
    assert!(!verdict(&one, &other, false).1);
}

#[test]
fn a_coarse_clock_copies_nothing() {
    let mut random = ChaCha12Rng::seed_from_u64(3);
    // The clock can show from a hundred different values down to one.
    for tick in [4.0, 40.0, 100.0, 400.0, 1000.0] {
        for repetitions in [1, 2, 4, 8] {
            let sides = [30, 30].map(|processes| measured(&mut random, processes, repetitions, tick));
            assert!(!verdict(&sides[0], &sides[1], false).1, "{tick} ns, {repetitions} repetitions");
        }
    }
    // With such a clock, the warm-up looks the same in all processes.
    let mut warming = |_| vec![110.0, 105.0, 102.0, 101.0 + f64::from(random.random::<bool>())];
    let [base, head] = [(); 2].map(|()| (0..30).map(&mut warming).collect::<Vec<_>>());
    assert!(!verdict(&base, &head, false).1);
}

#[test]
fn no_recording_holds_a_copy() {
    for recording in [
        include_str!("../../fixtures/corpus/paired.jsonl"),
        include_str!("../../fixtures/corpus/regimes-aa.jsonl"),
        include_str!("../../fixtures/corpus/design-short-aa.jsonl"),
        include_str!("../../fixtures/corpus/competitor.jsonl"),
        include_str!("../../fixtures/corpus/competitor-niced.jsonl"),
        include_str!("../../fixtures/corpus/crossed.jsonl"),
        include_str!("../../fixtures/corpus/design-default-aa.jsonl"),
        include_str!("../../fixtures/corpus/regimes-plus5.jsonl"),
        include_str!("../../fixtures/corpus/two-threads.jsonl"),
    ] {
        let mut rows: std::collections::BTreeMap<String, [Vec<Process>; 2]> = Default::default();
        for line in recording.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let times: Vec<f64> = line["real_time_ms"]
                .as_array()
                .unwrap()
                .iter()
                .map(|time| time.as_f64().unwrap() * 1e6)
                .collect();
            let row = rows.entry(line["model"].as_str().unwrap().to_owned()).or_default();
            let block = line["round"].as_u64().zip(line["slot"].as_u64());
            let block = block.map(|(round, slot)| (round as u32, slot as u8));
            row[usize::from(line["side"] == "B")].push(process(&times, block));
        }
        let of = |at: usize| {
            let benchmarks = rows
                .iter()
                .map(|(name, sides)| with(name, Metric::LATENCY, Series::Processes(sides[at].clone())));
            run(benchmarks.collect())
        };
        let comparison = judged(&of(0), &of(1));
        let lints: Vec<LintCode> =
            comparison.rows.iter().flat_map(|row| &row.lints).map(|lint| lint.code).collect();
        assert!(!rows.is_empty() && !lints.contains(&LintCode::RepeatedSamples), "{comparison:?}");
    }
}

#[test]
fn what_a_program_counts_or_computes_may_repeat() {
    let losses: Vec<Process> =
        (0..30).map(|_| process(&[0.5, 0.25, 0.125, 0.1, 0.09, 0.08, 0.07, 0.06], None)).collect();
    let unit = Unit::Other("counter".into());
    let loss = Metric { name: "loss".into(), unit, ..Metric::LATENCY };
    let side = run(vec![with("a", loss, Series::Processes(losses))]);
    let rows = judged(&side, &side).rows;
    assert!(
        rows.iter().flat_map(|row| &row.lints).all(|lint| lint.code != LintCode::RepeatedSamples),
        "{rows:?}"
    );
}

#[test]
fn one_file_on_both_sides_is_one_measurement_however_few_values_it_has() {
    let mut both = side(&[vec![100.0, 101.0, 100.0]], (false, false));
    let policy = Policy { between_cv: Some(0.001), ..Policy::default() };
    let verdict = |base: &Run, head: &Run| judged_by(&policy, base, head).rows.remove(0).verdict;
    assert_eq!(verdict(&both, &both), Verdict::Pass, "two measurements of one value");
    both.origin.label = "a.json".to_owned();
    assert_eq!(verdict(&both, &both), Verdict::Error);
    let exact = run(vec![with("a", Metric::VMFB_SIZE, Series::Exact(8.0))]);
    let exact = Run { origin: both.origin.clone(), ..exact };
    assert_eq!(verdict(&exact, &exact), Verdict::Pass, "what is counted is the same each time");
}

#[test]
fn few_processes_of_head_show_no_green_unless_their_spread_is_declared() {
    let mut random = ChaCha12Rng::seed_from_u64(4);
    let mut judge = |processes: usize, declared: Option<f64>| {
        let policy = Policy { between_cv: declared, ..Policy::default() };
        let [base, head] = [60, processes].map(|processes| measured(&mut random, processes, 4, 0.0));
        // A GPU's processes are assumed to differ by 2 %.
        let of = |samples: &[Vec<f64>], is_head| {
            let mut run = side(samples, (is_head, false));
            run.benchmarks[0].labels.insert("target".to_owned(), "cuda".to_owned());
            run
        };
        judged_by(&policy, &of(&base, false), &of(&head, true)).rows.remove(0)
    };
    for processes in [8, 20] {
        let row = judge(processes, None);
        assert_eq!(row.verdict, Verdict::Inconclusive, "{processes}");
        assert!(
            matches!(&row.reason, Reason::TooLittle(lacking) if lacking.why.contains("at least 21")),
            "{row:?}"
        );
        assert_eq!(judge(processes, Some(0.01)).verdict, Verdict::Pass, "{processes}");
    }
    assert_eq!(judge(21, None).verdict, Verdict::Pass);
}

#[test]
fn rows_without_slots_do_not_shift_those_of_other_benchmarks() {
    let mut random = ChaCha12Rng::seed_from_u64(5);
    let mut benchmark = |name: &str, is_head: bool, factor: f64, has_slots: bool| {
        let samples = measured(&mut random, 48, 4, 0.0);
        let processes = samples.iter().enumerate().map(|(at, samples)| {
            let slot = if is_head { [1, 2] } else { [0, 3] }[at % 2];
            let samples: Vec<f64> = samples.iter().map(|sample| sample * factor).collect();
            let place = has_slots.then_some((at as u32 / 2, slot));
            Process { session: at as u32, ..process(&samples, place) }
        });
        with(name, Metric::LATENCY, Series::Processes(processes.collect()))
    };
    let mut side = |is_head: bool, slowdown: f64| {
        session(vec![
            benchmark("without slots", is_head, 1.0, false),
            benchmark("steady", is_head, 1.0, true),
            benchmark("slower", is_head, slowdown, true),
        ])
    };
    let comparison = judged(&side(false, 1.0), &side(true, 1.1));
    let found: Vec<_> = comparison
        .rows
        .iter()
        .map(|row| (row.benchmark.as_str(), row.verdict, row.estimate.as_ref().unwrap().blocks))
        .collect();
    let wanted = [
        ("without slots", Verdict::Pass, 0),
        ("steady", Verdict::Pass, 24),
        ("slower", Verdict::Regressed, 24),
    ];
    assert_eq!(found, wanted);
}
