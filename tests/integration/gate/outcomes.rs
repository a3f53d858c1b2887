//! Every failure of a benchmark has its own outcome, and none of them passes.

use benchgate::exit_code::ExitCode;
use benchgate::gate::{
    CompareOptions, EarlierSessions, FailOn, Policy, Reason, StoredSessions, Waiver, compare,
    compare_with_history, open_rows,
};
use benchgate::model::{
    Artifact, Benchmark, Context, Lint, LintCode, Metric, MetricSeries, Outcome, OutputCheck, Run, Series,
    SideName, Stage, Summary, Testbed, Unit, Verdict, VerifyCode,
};

use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};

use super::build::{
    failed, judged, judged_by, measured, only_row, paired, process, run, session, verified, with,
};

const STEADY: &[f64] = &[100.0, 101.0, 99.0, 100.0, 100.5];

/// A benchmark with samples that depend on its name, because equal samples would be refused as duplicates.
fn steady(name: &str) -> Benchmark {
    let level: f64 = name.bytes().map(f64::from).sum();
    measured(name, &STEADY.iter().map(|value| value * level).collect::<Vec<_>>())
}

#[test]
fn a_benchmark_that_vanished_is_missing_and_fatal() {
    let comparison = judged(&run(vec![steady("a"), steady("b")]), &run(vec![steady("a")]));
    let row = &comparison.rows[1];
    assert_eq!(
        (row.verdict, &row.reason, row.fatal),
        (Verdict::Missing, &Reason::OnlyOn(SideName::Base), true)
    );
    assert_eq!(comparison.exit_code, ExitCode::BaselineMissing);
}

#[test]
fn a_new_benchmark_is_missing_a_base_but_does_not_fail_the_rest() {
    let (base, head) = paired(
        "old",
        &[100.0; 12],
        &[100.0, 100.1, 99.9, 100.0, 100.05, 99.95, 100.0, 100.1, 99.9, 100.0, 100.05, 99.95],
        0.0001,
    );
    let comparison = judged(&session(vec![base]), &session(vec![head, steady("new")]));
    assert_eq!(comparison.rows[0].verdict, Verdict::Pass, "{:?}", comparison.rows[0]);
    assert_eq!(comparison.rows[1].verdict, Verdict::Missing);
    assert_eq!(comparison.exit_code, ExitCode::Pass);
}

#[test]
fn nothing_judged_is_never_a_pass() {
    assert_eq!(judged(&run(vec![]), &run(vec![])).exit_code, ExitCode::Error);
    let only_new = judged(&run(vec![]), &run(vec![steady("new")]));
    assert_eq!((only_new.verdict, only_new.exit_code), (Verdict::Missing, ExitCode::BaselineMissing));
}

#[test]
fn an_interrupted_run_is_never_a_pass_not_even_where_nothing_had_to_be_measured() {
    let exact = |value| with("size", Metric::VMFB_SIZE, Series::Exact(value));
    let (base, head) = paired("time", &[100.0; 12], &[100.0; 12], 0.0001);
    let (base, mut head) = (session(vec![base, exact(8.0)]), session(vec![head, exact(8.0)]));
    let whole = judged(&base, &head);
    assert!(whole.rows.iter().all(|row| row.verdict == Verdict::Pass), "{:?}", whole.rows);
    head.lints.push(Lint::new(LintCode::TruncatedInput, "stopped"));
    let cut = judged(&base, &head);
    assert!(cut.rows.iter().all(|row| row.verdict == Verdict::Inconclusive), "{:?}", cut.rows);
    assert_eq!(cut.verdict, Verdict::Inconclusive);
}

#[test]
fn an_exact_value_whose_last_digits_may_be_cut_is_no_pass() {
    let exact = || with("size", Metric::VMFB_SIZE, Series::Exact(8.0));
    let mut head = exact();
    head.lints.push(Lint::new(LintCode::TruncatedInput, "the last line does not end with a newline"));
    assert_eq!(only_row(exact(), head).verdict, Verdict::Inconclusive);
}

#[test]
fn a_stage_that_worked_at_base_and_fails_at_head_is_a_regression_of_that_stage() {
    for stage in Stage::ALL {
        let row = only_row(steady("a"), failed("a", stage));
        assert_eq!(row.verdict, Verdict::Regressed);
        assert!(matches!(row.reason, Reason::FailsAtHead { stage: at, .. } if at == stage));
    }
}

#[test]
fn failing_on_both_sides_is_an_error() {
    let comparison = judged(&run(vec![failed("a", Stage::Compile)]), &run(vec![failed("a", Stage::Compile)]));
    assert_eq!(comparison.exit_code, ExitCode::Error);
}

#[test]
fn a_repair_may_be_merged_but_another_fault_at_base_may_not_hide_the_row() {
    let rejected = || Lint::new(LintCode::CompilerRejected, "a.mlir:1:1: error: no such op");
    for stage in Stage::ALL {
        let unknown = only_row(failed("a", stage), steady("a"));
        assert_eq!((unknown.verdict, unknown.fatal), (Verdict::Error, true), "{stage}");
        let mut base = failed("a", stage);
        base.lints.push(rejected());
        let row = only_row(base, steady("a"));
        let is_repair = stage == Stage::Compile;
        let expected = if is_repair { (Verdict::Missing, false) } else { (Verdict::Error, true) };
        assert_eq!((row.verdict, row.fatal), expected, "{stage}");
    }
}

#[test]
fn a_benchmark_whose_device_was_missing_at_base_alone_is_an_error() {
    let mut base = Benchmark::new("a");
    base.outcome = Outcome::Unsupported { reason: "no CUDA device (compiled only)".to_owned() };
    assert!(!only_row(base.clone(), steady("a")).fatal, "declared by base");
    let (vmfb_sha256, execution_sha256) = ("1".to_owned(), "2".to_owned());
    base.artifact = Some(Artifact { vmfb_sha256, execution_sha256, workload: None });
    let row = only_row(base, steady("a"));
    assert_eq!((row.verdict, row.fatal), (Verdict::Error, true));
}

#[test]
fn a_benchmark_that_head_declares_unsupported_is_missing_and_fatal() {
    let mut head = Benchmark::new("a");
    head.outcome = Outcome::Unsupported { reason: "not today".to_owned() };
    let row = only_row(steady("a"), head);
    assert_eq!((row.verdict, row.fatal), (Verdict::Missing, true));
}

#[test]
fn zero_negative_nan_and_infinite_times_are_errors() {
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        for (base, head) in
            [(measured("a", &[100.0, bad]), steady("a")), (steady("a"), measured("a", &[bad]))]
        {
            let row = only_row(base, head);
            assert_eq!(row.verdict, Verdict::Error, "{bad}");
            assert!(matches!(row.reason, Reason::Unusable(_)), "{:?}", row.reason);
        }
    }
}

#[test]
fn a_row_the_tool_marked_as_failed_is_not_a_hundred_percent_faster() {
    let mut head = measured("a", &[0.0]);
    head.lints.push(Lint::new(LintCode::Errored, "input shape mismatch"));
    let row = only_row(steady("a"), head.clone());
    assert_eq!(row.verdict, Verdict::Regressed);
    let both = only_row(head.clone(), head);
    assert_eq!(both.verdict, Verdict::Error);
}

#[test]
fn one_sample_is_inconclusive_however_large_the_change() {
    let row = only_row(measured("a", &[100.0]), measured("a", &[900.0]));
    assert_eq!(row.verdict, Verdict::Inconclusive);
    assert!(row.lints.iter().any(|l| l.code == LintCode::SingleRepetition));
}

#[test]
fn what_one_repetition_can_t_show_of_the_latency_it_can_t_show_of_the_processor_s_time() {
    let both = |latency: f64, cpu: f64| {
        let mut benchmark = measured("a", &[latency]);
        let series = Series::Processes(vec![process(&[cpu], None)]);
        benchmark.metrics.push(MetricSeries { metric: Metric::CPU_TIME, series });
        run(vec![benchmark])
    };
    let comparison = judged(&both(100.0, 9_000.0), &both(90_000.0, 9.0));
    let verdicts: Vec<Verdict> = comparison.rows.iter().map(|row| row.verdict).collect();
    assert_eq!(verdicts, [Verdict::Inconclusive; 2]);
}

#[test]
fn a_few_values_far_away_give_no_finding_digits_beyond_a_thousand_percent() {
    let far = |scale: f64| -> Vec<f64> {
        (0..1000).map(|at| scale * if at % 40 == 0 { 1e6 } else { 100.0 + f64::from(at % 7) }).collect()
    };
    let row = only_row(measured("a", &far(1.0)), measured("a", &far(1.2)));
    let said: Vec<&str> = row.lints.iter().map(|lint| lint.detail.as_str()).collect();
    let large = |text: &&str| {
        text.split(' ').filter_map(|word| word.parse::<f64>().ok()).any(|number| number > 1000.0)
    };
    assert!(said.iter().any(|text| text.contains("more than 1000 %")), "{said:?}");
    assert!(!said.iter().any(large), "{said:?}");
}

#[test]
fn a_measured_benchmark_without_any_metric_is_an_error() {
    assert_eq!(only_row(Benchmark::new("a"), Benchmark::new("a")).verdict, Verdict::Error);
}

#[test]
fn a_process_without_samples_is_an_error() {
    let empty = with("a", Metric::LATENCY, Series::Processes(vec![process(&[], None)]));
    assert_eq!(only_row(empty, steady("a")).verdict, Verdict::Error);
    let none = with("a", Metric::LATENCY, Series::Summaries(vec![Summary::default()]));
    assert_eq!(only_row(steady("a"), none).verdict, Verdict::Error);
}

#[test]
fn units_of_different_kinds_are_an_error() {
    let mut metric = Metric::LATENCY;
    metric.unit = Unit::Other("cycles".into());
    let row = only_row(steady("a"), with("a", metric, Series::Processes(vec![process(STEADY, None)])));
    assert_eq!(row.reason, Reason::UnitMismatch { base: "ns".to_owned(), head: "cycles".to_owned() });
    assert_eq!(row.verdict, Verdict::Error);
}

#[test]
fn different_machines_are_neither_red_nor_green_but_exact_metrics_still_compare() {
    let on = |id: &str, latency: &[f64], size: f64| {
        let mut benchmark = measured("a", latency);
        benchmark.metrics.push(MetricSeries { metric: Metric::VMFB_SIZE, series: Series::Exact(size) });
        let mut run = run(vec![benchmark]);
        run.testbed = Some(Testbed { id: id.to_owned(), ..Testbed::default() });
        run
    };
    let comparison = judged(&on("one", STEADY, 1000.0), &on("two", &[900.0; 5], 1100.0));
    assert_eq!(comparison.rows[0].verdict, Verdict::Inconclusive);
    assert!(comparison.lints.iter().any(|l| l.code == LintCode::TestbedMismatch));
    assert_eq!(comparison.rows[1].verdict, Verdict::Regressed);
    assert_eq!(comparison.exit_code, ExitCode::Inconclusive);
}

#[test]
fn wrong_outputs_at_head_diverge_and_wrong_on_both_sides_is_an_error() {
    let side = |code| verified(steady("a"), code);
    let verdict = |base, head| judged(&run(vec![base]), &run(vec![head])).exit_code;
    assert_eq!(verdict(side(VerifyCode::Pass), side(VerifyCode::Fail)), ExitCode::Diverged);
    assert_eq!(verdict(steady("a"), side(VerifyCode::Fail)), ExitCode::Diverged);
    assert_eq!(verdict(side(VerifyCode::Fail), side(VerifyCode::Fail)), ExitCode::Error);
    assert_eq!(verdict(side(VerifyCode::Pass), side(VerifyCode::ExceptionRaised)), ExitCode::Regressed);
}

#[test]
fn outputs_that_could_not_be_checked_on_either_side_are_no_pass() {
    let side = || verified(steady("a"), VerifyCode::VerifierDidntRun);
    assert_eq!(judged(&run(vec![side()]), &run(vec![side()])).exit_code, ExitCode::Error);
}

#[test]
fn what_base_proved_and_head_leaves_unproved_is_inconclusive() {
    for code in
        [VerifyCode::VerifierDidntRun, VerifyCode::VerifierSkipped, VerifyCode::NondeterministicEagerRun]
    {
        let base = verified(steady("a"), VerifyCode::Pass);
        let comparison = judged(&run(vec![base]), &run(vec![verified(steady("a"), code)]));
        assert_eq!(comparison.rows[0].verdict, Verdict::Inconclusive);
    }
    let base = verified(steady("a"), VerifyCode::Pass);
    let unproved = judged(&run(vec![base]), &run(vec![steady("a")]));
    assert_eq!(unproved.rows[0].verdict, Verdict::Inconclusive);
}

#[test]
fn without_a_reference_outputs_that_differ_from_bases_diverge() {
    for code in [VerifyCode::VerifierSkipped, VerifyCode::NondeterministicEagerRun] {
        let mut head = verified(steady("a"), code);
        let found = OutputCheck { index: 0, code: VerifyCode::Fail, divergence: None, why: None };
        head.verification.as_mut().unwrap().against_base = vec![found];
        let comparison = judged(&run(vec![verified(steady("a"), code)]), &run(vec![head]));
        assert_eq!(comparison.exit_code, ExitCode::Diverged, "{code:?}");
    }
}

#[test]
fn facts_are_compared_on_machines_of_one_name_too() {
    let on = |cpus: u32, model: &str| {
        let mut run = run(vec![steady("a")]);
        run.context.num_cpus = Some(cpus);
        let facts = [("cpu-model".to_owned(), model.to_owned())].into();
        run.testbed = Some(Testbed { id: "host".to_owned(), facts, ..Testbed::default() });
        run
    };
    let mismatch = |base: &Run, head: &Run| {
        judged(base, head).lints.iter().any(|lint| lint.code == LintCode::TestbedMismatch)
    };
    assert!(!mismatch(&on(8, "one"), &on(8, "one")));
    assert!(mismatch(&on(8, "one"), &on(2, "one")));
    assert!(mismatch(&on(8, "one"), &on(8, "two")));
    // A testbed without facts does not contradict one with facts.
    let silent =
        Run { testbed: Some(Testbed { id: "host".to_owned(), ..Testbed::default() }), ..on(8, "one") };
    assert!(!mismatch(&on(8, "one"), &silent));
}

#[test]
fn a_tolerance_is_the_one_that_judged() {
    let (base, head) = paired("a", &[1e5; 24], &[1.1e5; 24], 0.0001);
    let mut policy = Policy::default();
    for (_, rule) in &mut policy.metrics {
        rule.floor.absolute = 50_000.0;
    }
    let row = judged_by(&policy, &session(vec![base]), &session(vec![head])).rows.remove(0);
    assert_eq!(row.verdict, Verdict::Pass, "{row:?}");
    assert!((row.tolerance().unwrap() - 0.5).abs() < 0.01, "{:?}", row.tolerance());
}

#[test]
fn identical_artifacts_pass_unless_their_times_contradict_them() {
    let artifact =
        Artifact { vmfb_sha256: "11".to_owned(), execution_sha256: "22".to_owned(), workload: None };
    let side = |samples: &[f64], artifact: &Artifact| {
        let mut benchmark = measured("a", samples);
        benchmark.artifact = Some(artifact.clone());
        benchmark
    };
    let row = only_row(side(STEADY, &artifact), side(&[120.0; 5], &artifact));
    assert_eq!((row.verdict, row.reason), (Verdict::Pass, Reason::Identical));
    for factor in [0.1, 0.5, 2.0, 10.0] {
        let row = only_row(side(STEADY, &artifact), side(&[100.0 * factor; 5], &artifact));
        assert_eq!(row.verdict, Verdict::Error, "{factor}");
        assert!(row.lints.iter().any(|lint| lint.code == LintCode::Contradictory), "{factor}");
    }
    let other = Artifact { execution_sha256: "33".to_owned(), ..artifact.clone() };
    let row = only_row(side(STEADY, &artifact), side(&[300.0; 5], &other));
    assert_eq!(row.verdict, Verdict::Regressed);
}

/// A session of identical programs in which the selected blocks of head took twice as long.
fn identical_session(blocks: usize, slow: impl Fn(usize) -> bool) -> (Run, Run) {
    let level = |block: usize| 1e5 * (1.0 + 1e-3 * (block % 7) as f64);
    let of_base: Vec<f64> = (0..blocks).map(level).collect();
    let of_head: Vec<f64> =
        (0..blocks).map(|block| level(block) * if slow(block) { 2.0 } else { 1.0 }).collect();
    let (mut base, mut head) = paired("a", &of_base, &of_head, 0.0001);
    let artifact =
        Artifact { vmfb_sha256: "11".to_owned(), execution_sha256: "22".to_owned(), workload: None };
    (base.artifact, head.artifact) = (Some(artifact.clone()), Some(artifact));
    (session(vec![base]), session(vec![head]))
}

#[test]
fn a_busy_host_makes_own_measurements_of_identical_programs_longer_and_no_error() {
    let policy = Policy::default();
    let own = CompareOptions { measured_here: true, ..CompareOptions::default() };
    let judged_here = |(base, head): &(Run, Run)| compare(base, head, &policy, &own).rows.swap_remove(0);
    let first = identical_session(1, |_| true);
    let row = judged_here(&first);
    assert_eq!(row.verdict, Verdict::Inconclusive, "{row:?}");
    assert!(row.lints.iter().any(|lint| lint.code == LintCode::Disturbed), "{row:?}");
    assert_eq!(open_rows(&first.0, &first.1, &policy).next_blocks, Some(12));
    let row = judged_here(&identical_session(12, |block| block == 0));
    assert_eq!((row.verdict, row.reason), (Verdict::Pass, Reason::Identical));
    // The executed program differs from the one that the hashes identify.
    let row = judged_here(&identical_session(24, |_| true));
    assert_eq!((row.verdict, row.reason), (Verdict::Regressed, Reason::BeyondFloor));
    // A stored file may have been edited.
    let (base, head) = first;
    assert_eq!(judged(&base, &head).rows[0].verdict, Verdict::Error);
    // With several blocks, the times decide for a stored file too.
    let slower = (0..24).map(|block| 1.3e5 * (1.0 + 1e-3 * f64::from(block % 7))).collect::<Vec<_>>();
    let (base, _) = identical_session(24, |_| false);
    let (_, mut head) = paired("a", &slower, &slower, 0.0001);
    head.artifact = base.benchmarks[0].artifact.clone();
    let row = judged(&base, &session(vec![head])).rows.swap_remove(0);
    assert_eq!((row.verdict, row.reason), (Verdict::Regressed, Reason::BeyondFloor));
}

/// A night of one benchmark at this level. Its compiled program is the same every night.
fn night_of_same_bytes(random: &mut ChaCha12Rng, label: &str, level: f64) -> Run {
    let mut near = |location: f64| location * (1.0 + 0.004 * (random.random::<f64>() - 0.5));
    let processes = (0..12).map(|_| {
        let location = near(level);
        process(&[(); 6].map(|()| near(location)), None)
    });
    let mut benchmark = with("a", Metric::LATENCY, Series::Processes(processes.collect()));
    benchmark.artifact =
        Some(Artifact { vmfb_sha256: "11".to_owned(), execution_sha256: "22".to_owned(), workload: None });
    let mut night = run(vec![benchmark]);
    night.origin.label = label.to_owned();
    night
}

#[test]
fn nights_of_the_same_bytes_are_judged_by_their_times() {
    let mut random = ChaCha12Rng::seed_from_u64(1);
    let mut night = |label: &str, level: f64| night_of_same_bytes(&mut random, label, level);
    let stored: Vec<Run> = (0..20).map(|at| night(&format!("{at}"), 1e5)).collect();
    let mut judge = |level: f64| {
        let head = night("head", level);
        let options = CompareOptions::default();
        compare_with_history(&head, stored.as_slice(), &Policy::default(), &options).rows.remove(0)
    };
    let row = judge(1e5);
    assert_eq!((row.verdict, row.reason), (Verdict::Pass, Reason::Identical));
    let row = judge(1.5e5);
    assert_eq!((row.verdict, row.reason), (Verdict::Regressed, Reason::BeyondFloor));
}

#[test]
fn nights_of_the_same_bytes_that_creep_are_compared_with_their_best_earlier_level() {
    let mut random = ChaCha12Rng::seed_from_u64(2);
    let mut night = |label: &str, level: f64| night_of_same_bytes(&mut random, label, level);
    let mut judge = |creep: f64| {
        let since = "2026-08-01".to_owned();
        let earlier =
            [EarlierSessions { since, runs: (0..10).map(|at| night(&format!("then {at}"), 1e5)).collect() }];
        let level = |at: u32| 1e5 * (1.0 + creep * (20.0 + f64::from(at)));
        let stored: Vec<Run> = (0..30).map(|at| night(&format!("{at}"), level(at))).collect();
        let sessions =
            StoredSessions { good: &stored, slow: &[], before: &[], earlier: &earlier, storing: false };
        let head = night("head", level(30));
        compare_with_history(&head, sessions, &Policy::default(), &CompareOptions::default()).rows.remove(0)
    };
    let row = judge(0.0);
    assert_eq!((row.verdict, row.reason), (Verdict::Pass, Reason::Identical));
    let row = judge(0.001);
    assert_eq!(row.verdict, Verdict::Regressed, "{row:?}");
    assert!(row.lints.iter().any(|lint| lint.code == LintCode::Gradual), "{:?}", row.lints);
}

#[test]
fn a_quality_that_gets_a_little_worse_every_night_is_compared_with_the_oldest_ones() {
    let mut random = ChaCha12Rng::seed_from_u64(5);
    let accuracy = Metric { name: "accuracy".into(), ..Metric::THROUGHPUT };
    let accuracy = Metric { unit: Unit::Other("".into()), ..accuracy };
    let mut night = |label: &str, quality: f64| {
        let mut night = night_of_same_bytes(&mut random, label, 1e5);
        night.benchmarks[0].artifact = None;
        if quality.is_finite() {
            let series = Series::Processes((0..12).map(|_| process(&[quality; 6], None)).collect());
            night.benchmarks[0].metrics.push(MetricSeries { metric: accuracy.clone(), series });
        }
        night
    };
    let mut judge = |quality: fn(i32) -> f64| {
        let then = (0..3).map(|at| night(&format!("then {at}"), quality(at))).collect();
        let earlier = [EarlierSessions { since: "2026-08-01".to_owned(), runs: then }];
        let stored: Vec<Run> = (20..40).map(|at| night(&format!("{at}"), quality(at))).collect();
        let sessions =
            StoredSessions { good: &stored, slow: &[], before: &[], earlier: &earlier, storing: true };
        let head = night("head", quality(40));
        compare_with_history(&head, sessions, &Policy::default(), &CompareOptions::default()).rows.remove(0)
    };
    let mut problem = |quality: fn(i32) -> f64| {
        let row = judge(quality);
        let found = row.lints.into_iter().find(|lint| lint.code == LintCode::ReportedProblem);
        assert!(found.is_none() || row.verdict == Verdict::Inconclusive, "{:?}", row.verdict);
        found.map(|lint| lint.detail)
    };
    assert_eq!(problem(|_| 0.9), None);
    assert_eq!(problem(|at| 0.9 * 1.002_f64.powi(at)), None);
    let found = problem(|at| 0.9 * 0.995_f64.powi(at)).unwrap();
    assert!(found.starts_with("gradually: `accuracy` 0.8"), "{found}");
    // The number may be newer than the oldest sessions.
    let added = |at: i32| if at < 3 { f64::NAN } else { 0.9 * 0.995_f64.powi(at) };
    assert!(problem(added).is_some());
}

#[test]
fn exact_values_that_creep_are_compared_with_their_best_stored_one() {
    let night = |label: &str, spills: f64| {
        let mut night = run(vec![with("a", Metric::SPILLED_REGISTERS, Series::Exact(spills))]);
        night.origin.label = label.to_owned();
        night
    };
    let creep = |at: i32| (100.0 * 1.09_f64.powi(at)).floor();
    let judge = |stored: &[Run], earlier: &[EarlierSessions], head: f64| {
        let sessions = StoredSessions { good: stored, slow: &[], before: &[], earlier, storing: true };
        let head = night("head", head);
        compare_with_history(&head, sessions, &Policy::default(), &CompareOptions::default()).rows.remove(0)
    };
    let stored: Vec<Run> = (0..2).map(|at| night(&format!("{at}"), creep(at))).collect();
    assert_eq!(judge(&stored[..1], &[], creep(1)).verdict, Verdict::Pass);
    let row = judge(&stored, &[], creep(2));
    assert_eq!(row.verdict, Verdict::Regressed, "{row:?}");
    assert!(row.lints.iter().any(|lint| lint.code == LintCode::Gradual), "{:?}", row.lints);
    // The newest sessions alone don't include the level before the regression.
    let newest: Vec<Run> = (20..22).map(|at| night(&format!("{at}"), creep(at))).collect();
    let earlier = [EarlierSessions { since: "2026-08-01".to_owned(), runs: stored }];
    assert_eq!(judge(&newest, &earlier, creep(22)).verdict, Verdict::Regressed);
    assert_eq!(judge(&newest, &earlier, 50.0).verdict, Verdict::Improved);
}

#[test]
fn nights_of_the_same_bytes_stay_red_until_the_slowdown_is_gone() {
    let mut random = ChaCha12Rng::seed_from_u64(3);
    let mut night = |label: &str, level: f64| night_of_same_bytes(&mut random, label, level);
    let good: Vec<Run> = (0..20).map(|at| night(&format!("{at}"), 1e5)).collect();
    let slow: Vec<Run> = (20..24).map(|at| night(&format!("{at}"), 1.04e5)).collect();
    let mut judge = |level: f64| {
        let sessions = StoredSessions { good: &good, slow: &slow, before: &[], earlier: &[], storing: false };
        let head = night("head", level);
        compare_with_history(&head, sessions, &Policy::default(), &CompareOptions::default()).rows.remove(0)
    };
    // Compared with the last good night alone, the row would pass, because it is within the tolerance.
    let row = judge(1.028e5);
    assert_ne!(row.verdict, Verdict::Pass, "{row:?}");
}

/// Load doubled the times of both sides in half of the blocks, and of head in one more. Without pairing, the
/// sides would differ a lot.
#[test]
fn identical_programs_on_a_busy_host_are_compared_within_their_blocks() {
    let of_base: Vec<f64> = (0..12).map(|block| if block < 6 { 1e5 } else { 2e5 }).collect();
    let of_head: Vec<f64> = (0..12).map(|block| if block < 5 { 1e5 } else { 2e5 }).collect();
    let (mut base, mut head) = paired("a", &of_base, &of_head, 0.0001);
    let artifact =
        Artifact { vmfb_sha256: "11".to_owned(), execution_sha256: "22".to_owned(), workload: None };
    (base.artifact, head.artifact) = (Some(artifact.clone()), Some(artifact));
    let own = CompareOptions { measured_here: true, ..CompareOptions::default() };
    let (base, head) = (session(vec![base]), session(vec![head]));
    let row = compare(&base, &head, &Policy::default(), &own).rows.swap_remove(0);
    assert_eq!((row.verdict, row.reason), (Verdict::Pass, Reason::Identical));
}

#[test]
fn deterministic_metrics_compare_exactly_with_their_own_floor() {
    let side = |metric: Metric, value| with("a", metric, Series::Exact(value));
    let verdict =
        |metric: Metric, base, head| only_row(side(metric.clone(), base), side(metric, head)).verdict;
    assert_eq!(verdict(Metric::DISPATCH_COUNT, 10.0, 11.0), Verdict::Regressed);
    assert_eq!(verdict(Metric::DISPATCH_COUNT, 10.0, 10.0), Verdict::Pass);
    assert_eq!(verdict(Metric::VMFB_SIZE, 1000.0, 1005.0), Verdict::Pass);
    assert_eq!(verdict(Metric::VMFB_SIZE, 1000.0, 900.0), Verdict::Improved);
    assert_eq!(verdict(Metric::PEAK_DEVICE_MEMORY, 0.0, 5.0), Verdict::Regressed);
}

#[test]
fn an_overloaded_debug_build_with_scaling_says_so_and_decides_nothing() {
    let mut head = run(vec![measured("a", &[900.0; 5])]);
    head.context = Context {
        num_cpus: Some(128),
        cpu_scaling_enabled: Some(true),
        library_build_type: Some("DEBUG".to_owned()),
        load_avg: vec![125.10, 56.79, 21.95],
        ..Context::default()
    };
    let comparison = judged(&run(vec![steady("a")]), &head);
    let codes: Vec<LintCode> = comparison.lints.iter().map(|l| l.code).collect();
    let of_head = [LintCode::HostOverloaded, LintCode::DebugBuild, LintCode::CpuScaling];
    assert_eq!(codes, [&of_head[..], &[LintCode::WorkloadChanged]].concat());
    assert_eq!(comparison.rows[0].verdict, Verdict::Inconclusive);
}

#[test]
fn a_waiver_takes_its_row_out_until_its_last_day() {
    let base = run(vec![failed_or("a", true)]);
    let head = run(vec![failed_or("a", false)]);
    let exit = |expires: &str| {
        let waiver = Waiver {
            benchmark: "a*".to_owned(),
            metric: None,
            owner: "kim".to_owned(),
            reason: "known".to_owned(),
            expires: expires.to_owned(),
        };
        let comparison = judged_by(&Policy { waivers: vec![waiver], ..Policy::default() }, &base, &head);
        assert_eq!(comparison.rows[0].verdict, Verdict::Regressed);
        comparison.exit_code
    };
    assert_eq!(exit("2026-11-20"), ExitCode::Pass);
    assert_eq!(exit("2026-11-19"), ExitCode::Regressed);
    assert_eq!(exit("never"), ExitCode::Regressed);
}

fn failed_or(name: &str, ok: bool) -> Benchmark {
    if ok { steady(name) } else { failed(name, Stage::Compile) }
}

#[test]
fn the_exit_code_follows_the_documented_precedence_and_fail_on() {
    let base = run(vec![steady("slow"), steady("wrong"), steady("gone"), failed("dead", Stage::Export)]);
    let head = run(vec![
        measured("slow", &[9e6; 5]),
        verified(steady("wrong"), VerifyCode::Fail),
        failed("dead", Stage::Export),
    ]);
    let exit = |fail_on: Vec<Verdict>| {
        judged_by(&Policy { fail_on: FailOn(fail_on), ..Policy::default() }, &base, &head).exit_code
    };
    use Verdict::{Diverged, Error, Missing, Regressed};
    assert_eq!(exit(vec![Missing, Regressed, Diverged, Error]), ExitCode::Error);
    assert_eq!(exit(vec![Missing, Regressed, Diverged]), ExitCode::Diverged);
    assert_eq!(exit(vec![Missing, Regressed]), ExitCode::Regressed);
    assert_eq!(exit(vec![Missing]), ExitCode::BaselineMissing);
    assert_eq!(exit(vec![]), ExitCode::Pass);
}

#[test]
fn identical_sides_without_a_single_metric_are_an_error_and_no_pass() {
    let mut benchmark = Benchmark::new("a");
    benchmark.artifact = Some(Artifact {
        vmfb_sha256: "same".to_owned(),
        execution_sha256: "same".to_owned(),
        workload: None,
    });
    let comparison = judged(&run(vec![benchmark.clone()]), &run(vec![benchmark]));
    assert_eq!(comparison.verdict, Verdict::Error);
}
