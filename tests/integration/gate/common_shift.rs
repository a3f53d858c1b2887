//! The common shift of a session that is compared with stored ones.

use benchgate::gate::{ALL_BENCHMARKS, CompareOptions, Comparison, Policy, compare, compare_with_history};
use benchgate::model::{Anchor, BenchmarkName, Metric, Process, Run, Series, Verdict};
use benchgate::report::View;
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};

use super::build::{process, run, with};

/// An approximately standard normal number: the sum of twelve uniform ones.
fn normal(random: &mut ChaCha12Rng) -> f64 {
    (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0
}

/// A session with eight rows. `day` shifts the logarithms of all rows, and `slowed` is the row that a change
/// slows down.
fn session(seed: u64, day: f64, slowed: Option<(usize, f64)>) -> Run {
    let mut random = ChaCha12Rng::seed_from_u64(seed);
    let benchmarks = (0..8).map(|row| {
        let own = slowed.filter(|(slow, _)| *slow == row).map_or(1.0, |(_, factor)| factor);
        let processes: Vec<Process> = (0..6)
            .map(|_| {
                let location = 1e6 * own * (day + 0.004 * normal(&mut random)).exp();
                process(&[location, location * 1.001, location * 1.002], None)
            })
            .collect();
        with(&format!("row-{row}"), Metric::LATENCY, Series::Processes(processes))
    });
    run(benchmarks.collect())
}

/// Twelve sessions whose speeds differ by 3 %.
fn history() -> Vec<Run> {
    let mut random = ChaCha12Rng::seed_from_u64(99);
    (0..12).map(|seed| session(seed, 0.03 * normal(&mut random), None)).collect()
}

fn judged(head: &Run, history: &[Run]) -> Comparison {
    compare_with_history(head, history, &Policy::default(), &CompareOptions::default())
}

fn verdict(comparison: &Comparison, name: &str) -> Verdict {
    comparison.rows.iter().find(|row| row.benchmark.as_str() == name).unwrap().verdict
}

#[test]
fn a_slow_day_hides_no_change_of_one_row() {
    let comparison = judged(&session(100, 0.05, Some((3, 1.05))), &history());
    assert_eq!(verdict(&comparison, "row-3"), Verdict::Regressed);
    assert_eq!(verdict(&comparison, "row-0"), Verdict::Pass);
}

#[test]
fn a_change_of_everything_is_red_in_the_row_of_what_all_have_in_common() {
    let comparison = judged(&session(100, 0.3, None), &history());
    assert_eq!(verdict(&comparison, ALL_BENCHMARKS), Verdict::Regressed);
    assert_eq!(comparison.verdict, Verdict::Regressed);
    // What all benchmarks have in common is no further benchmark.
    let benchmarks = comparison.rows.len() - 1;
    let headline = View::new(&comparison, None).headline;
    assert_eq!(
        headline,
        format!("Regressed: {benchmarks} of {benchmarks} benchmarks passed, all together regressed.")
    );
}

#[test]
fn a_session_shows_the_same_value_whatever_it_is_compared_with() {
    let shown = |comparison: &Comparison| {
        let row = comparison.rows.iter().find(|row| row.benchmark.as_str() == "row-0").unwrap();
        (row.typical.base.unwrap(), row.typical.head.unwrap())
    };
    let measured = |run: &Run| {
        let Series::Processes(processes) = &run.benchmarks[0].metrics[0].series else { panic!("{run:?}") };
        let mut middles: Vec<f64> = processes.iter().map(|process| process.samples[1]).collect();
        middles.sort_by(f64::total_cmp);
        (middles[2] * middles[3]).sqrt()
    };
    let is_near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-5;
    let (head, later, history) = (session(100, 0.05, None), session(101, -0.04, None), history());
    let (base, now) = shown(&judged(&head, &history));
    assert!(is_near(now, measured(&head)), "{now} / {}", measured(&head));
    // The level of the stored sessions depends on them only.
    assert!((base / shown(&judged(&later, &history)).0 - 1.0).abs() < 1e-12, "{base}");
    for other in [&history[0], &history[1], &later] {
        let (base, now) = shown(&compare(other, &head, &Policy::default(), &CompareOptions::default()));
        assert!(is_near(base, measured(other)) && is_near(now, measured(&head)), "{base} → {now}");
    }
    let said = judged(&head, &history).notes.into_iter().filter(|note| note.contains("as measured")).count();
    assert_eq!(said, 1);
}

#[test]
fn sessions_with_the_same_anchor_are_judged_by_their_ratio_to_it() {
    // On this day everything is 20 % slower, including the anchor. A change makes one row 10 % slower
    // relative to the anchor.
    let anchored = |mut run: Run, slow: f64| {
        let ratio = |row: usize| if row == 3 { slow } else { 1.0 + 0.001 * (row as f64) };
        let key = |row: usize| (BenchmarkName::new(format!("row-{row}")), "latency".to_owned());
        let ratios = (0..8).map(|row| (key(row), ratio(row))).collect();
        let artifacts = (0..8).map(|row| (key(row).0, format!("module {row}"))).collect();
        run.anchor = Some(Anchor { ratios, artifacts, ..Anchor::default() });
        run
    };
    let history: Vec<Run> = history().into_iter().map(|run| anchored(run, 1.0)).collect();
    let same = judged(&anchored(session(100, 0.2, None), 1.0), &history);
    assert!(same.rows.iter().all(|row| row.verdict == Verdict::Pass), "{same:#?}");
    let slower = judged(&anchored(session(100, 0.2, None), 1.1), &history);
    assert_eq!(verdict(&slower, "row-3"), Verdict::Regressed);
}
