//! Tests of sessions that are stored while a benchmark is regressed, or while there is nothing to compare
//! with.

use std::fs;
use std::path::Path;

use benchgate_core::model::{BenchmarkGlob, LintCode, SideName, Stage, Verdict, VerifyCode};
use benchgate_core::record::{AcceptanceFile, OutcomeRecord, OutcomeStatus, QuarantineCause, RunFile};
use benchgate_gate::{CompareOptions, Policy};

use super::tests::{
    SESSIONS, acceptance, commit, found, latencies_of, nights, now, put, put_at, run, store, ten_days,
};
use super::{Files, Lineage, StoreError, UpdateOptions, accept, prunable, update, verify};

/// A run of two benchmarks, of which the second never changes.
fn two(day: u8, letter: char, latency: f64) -> RunFile {
    let mut two = run(day, letter, latency);
    let mut steady = run(day, letter, 120_000.0 + f64::from(day % 3) * 100.0).sides[0].benchmarks[0].clone();
    steady.name = "steady/cpu/main".to_owned();
    two.sides[0].benchmarks.push(steady);
    two
}

/// The run, with this outcome instead of the first benchmark's times.
fn gone(mut run: RunFile, status: OutcomeStatus) -> RunFile {
    let benchmark = &mut run.sides[0].benchmarks[0];
    let stage = (status == OutcomeStatus::Failed).then_some(Stage::Benchmark);
    benchmark.outcome = OutcomeRecord { status, stage, why: Some("no device".to_owned()) };
    benchmark.processes.clear();
    run
}

#[test]
fn a_slowdown_stays_red_for_more_nights_than_a_gate_compares_with() {
    for with_another in [false, true] {
        let (_folder, mut files) = store();
        let night = |day, letter, latency| {
            if with_another { two(day, letter, latency) } else { run(day, letter, latency) }
        };
        nights(&mut files, 1..=5, |day| night(day, 'a', 120_000.0 + f64::from(day % 3) * 100.0));
        for day in 6..=28 {
            let red = put(&mut files, &night(day, 'b', 180_000.0 + f64::from(day % 3) * 100.0)).unwrap();
            let causes: Vec<_> = red.quarantine.iter().map(|reason| reason.cause).collect();
            assert_eq!(causes, [QuarantineCause::Regressed], "day {day}");
            assert_eq!(red.comparison.unwrap().verdict, Verdict::Regressed);
        }
        let good = latencies_of(&found(&files), "mlp/cpu/main");
        assert_eq!(good.len(), 5, "{good:?}");
    }
}

#[test]
fn a_benchmark_whose_device_is_gone_is_quarantined_as_regressed_and_one_that_fails_only_as_failed() {
    for (status, cause) in [
        (OutcomeStatus::Unsupported, QuarantineCause::Regressed),
        (OutcomeStatus::Failed, QuarantineCause::Errored),
    ] {
        let (_folder, mut files) = store();
        nights(&mut files, 1..=5, |day| two(day, 'a', 120_000.0 + f64::from(day % 3) * 100.0));
        let night = put(&mut files, &gone(two(6, 'b', 120_000.0), status)).unwrap();
        let held: Vec<_> =
            night.quarantine.iter().map(|reason| (reason.cause, reason.benchmark.as_deref())).collect();
        assert_eq!(held, [(cause, Some("mlp/cpu/main"))]);
    }
}

#[test]
fn the_first_night_that_measures_again_is_judged_by_the_last_one_that_did() {
    for with_another in [false, true] {
        for status in [OutcomeStatus::Failed, OutcomeStatus::Unsupported, OutcomeStatus::Skipped] {
            let (_folder, mut files) = store();
            let night = |day, letter, latency| {
                if with_another { two(day, letter, latency) } else { run(day, letter, latency) }
            };
            nights(&mut files, 1..=5, |day| night(day, 'a', 120_000.0 + f64::from(day % 3) * 100.0));
            let missed = |day| gone(night(day, 'b', 120_000.0 + f64::from(day % 3) * 100.0), status);
            nights(&mut files, 6..=28, missed);
            let back = put(&mut files, &night(29, 'c', 180_000.0)).unwrap();
            let causes: Vec<_> = back.quarantine.iter().map(|reason| reason.cause).collect();
            assert_eq!(causes, [QuarantineCause::Regressed], "{status:?} {with_another}");
        }
    }
}

#[test]
fn a_benchmark_whose_sessions_are_all_quarantined_is_no_new_one() {
    let (folder, mut files) = store();
    nights(&mut files, 1..=5, |day| two(day, 'a', 120_000.0 + f64::from(day % 3) * 100.0));
    put(&mut files, &two(6, 'b', 180_000.0)).unwrap();
    for day in 1..=5 {
        fs::remove_file(
            folder.path().join(format!("quickstart/9c1f0e57/202610{day:02}T120000Z-{}.json", commit('a'))),
        )
        .unwrap();
    }
    let next = put(&mut files, &two(7, 'b', 180_000.0)).unwrap();
    let comparison = next.comparison.unwrap();
    assert_eq!(comparison.verdict, Verdict::Missing);
    let row = comparison.rows.iter().find(|row| row.benchmark.as_str() == "mlp/cpu/main").unwrap();
    assert!(row.fatal && row.lints.iter().any(|lint| lint.code == LintCode::Quarantined), "{row:?}");
    let held: Vec<_> =
        next.quarantine.iter().map(|reason| (reason.cause, reason.benchmark.as_deref())).collect();
    assert_eq!(held, [(QuarantineCause::Undecided, Some("mlp/cpu/main"))]);
    // Accepting the slowdown makes it the new baseline.
    let one = AcceptanceFile {
        benchmark: Some(BenchmarkGlob::new("mlp/*/*")),
        ..acceptance("2026-10-07T13:00:00Z")
    };
    accept(&mut files, one, Some("20261007")).unwrap();
    assert_eq!(latencies_of(&found(&files), "mlp/cpu/main"), [180_000.25]);
}

#[test]
fn nothing_becomes_the_baseline_where_stored_sessions_cant_be_compared_with() {
    let (folder, mut files) = store();
    let path = put(&mut files, &run(1, 'a', 120_000.0)).unwrap().path;
    let policy = Policy::default();
    let writing = UpdateOptions {
        side: SideName::Head,
        sessions: SESSIONS,
        policy: &policy,
        options: CompareOptions::default(),
        lineage: &|_| Lineage::Unknown,
        now: now(),
    };
    let shallow = update(&mut files, &run(2, 'b', 180_000.0), &writing).unwrap_err();
    assert!(matches!(shallow, StoreError::Shallow(1)), "{shallow}");
    fs::write(folder.path().join(path), "{}").unwrap();
    let damaged = put(&mut files, &run(3, 'b', 180_000.0)).unwrap();
    assert_eq!(damaged.quarantine[0].cause, QuarantineCause::Undecided);
}

/// The newest sessions follow a gradual slowdown; only the first ones, whose commits are cut off, show it.
#[test]
fn a_shallow_clone_that_reaches_only_the_newest_sessions_stores_nothing() {
    let (_folder, mut files) = store();
    for day in 1..=10 {
        let letter = if day <= 5 { 'a' } else { 'b' };
        put(&mut files, &run(day, letter, 120_000.0 + f64::from(day % 3) * 100.0)).unwrap();
    }
    let policy = Policy::default();
    let cut = |found: &str| if found == commit('a') { Lineage::Unknown } else { Lineage::Ancestor };
    for sessions in [3, SESSIONS] {
        let writing = UpdateOptions {
            side: SideName::Head,
            sessions,
            policy: &policy,
            options: CompareOptions::default(),
            lineage: &cut,
            now: now(),
        };
        let shallow = update(&mut files, &run(11, 'c', 120_100.0), &writing).unwrap_err();
        assert!(matches!(shallow, StoreError::Shallow(5)), "{shallow}");
    }
    assert!(put(&mut files, &run(11, 'c', 120_100.0)).unwrap().quarantine.is_empty());
}

#[test]
fn accepting_one_benchmark_of_a_run_that_was_quarantined_as_a_whole_releases_it() {
    let (_folder, mut files) = store();
    nights(&mut files, 1..=3, |day| two(day, 'a', 120_000.0));
    let mut dirty = two(4, 'b', 180_000.0);
    dirty.sides[0].dirty = Some(true);
    put(&mut files, &dirty).unwrap();
    let one = AcceptanceFile {
        benchmark: Some(BenchmarkGlob::new("mlp/*/*")),
        ..acceptance("2026-10-05T00:00:00Z")
    };
    accept(&mut files, one, None).unwrap();
    let history = found(&files);
    assert_eq!(latencies_of(&history, "mlp/cpu/main"), [180_000.25]);
    assert_eq!(latencies_of(&history, "steady/cpu/main").len(), 3);
}

#[test]
fn an_acceptance_of_another_testbed_is_refused() {
    let (folder, mut files) = store();
    put(&mut files, &run(1, 'a', 120_000.0)).unwrap();
    let (path, _) = accept(&mut files, acceptance("2026-10-05T00:00:00Z"), None).unwrap();
    let other = folder.path().join("quickstart/other");
    fs::create_dir(&other).unwrap();
    fs::copy(folder.path().join(&path), other.join(Path::new(&path).file_name().unwrap())).unwrap();
    let faults = verify(&files).unwrap().faults;
    assert!(faults.iter().any(|fault| fault.why == "it belongs in quickstart/9c1f0e57"), "{faults:?}");
}

#[test]
fn a_run_of_the_future_is_not_stored() {
    let (_folder, mut files) = store();
    let mut future = run(1, 'a', 120_000.0);
    future.created = "2026-11-01T00:10:01Z".to_owned();
    let error = put(&mut files, &future).unwrap_err().to_string();
    assert!(error.contains("in the future"), "{error}");
}

#[test]
fn a_session_that_is_a_link_is_an_error() {
    let (folder, mut files) = store();
    let path = folder.path().join(put(&mut files, &run(1, 'a', 100.0)).unwrap().path);
    let target = folder.path().join("elsewhere.json");
    fs::rename(&path, &target).unwrap();
    std::os::unix::fs::symlink(&target, &path).unwrap();
    for case in ["a file", "nothing"] {
        let error = put(&mut files, &run(2, 'a', 108.0)).unwrap_err();
        assert!(error.to_string().contains("it is a link"), "{case}: {error}");
        fs::remove_file(&target).unwrap_or_default();
    }
}

#[test]
fn a_history_that_starts_anew_says_which_sessions_it_leaves_out() {
    let (_folder, mut files) = store();
    ten_days(&mut files);
    let (policy, options) = (Policy::default(), CompareOptions::default());
    let lineage = &|_: &str| Lineage::Unrelated;
    let writing =
        UpdateOptions { side: SideName::Head, sessions: 20, policy: &policy, options, lineage, now: now() };
    let updated = update(&mut files, &run(11, 'b', 130_000.0), &writing).unwrap();
    assert_eq!(updated.notes, ["left out: 10 stored sessions of commits that are not ancestors of this one"]);
}

#[test]
fn a_session_with_a_wrong_or_an_unchecked_output_is_quarantined_whatever_its_summary_says() {
    for (is_wrong, cause) in [(true, QuarantineCause::Diverged), (false, QuarantineCause::Errored)] {
        let (_folder, mut files) = store();
        ten_days(&mut files);
        let mut wrong = run(11, 'a', 120_000.0);
        let verification = wrong.sides[0].benchmarks[0].verification.as_mut().unwrap();
        if is_wrong {
            verification.outputs[0].code = VerifyCode::Fail;
        } else {
            verification.code = VerifyCode::VerifierDidntRun;
        }
        let updated = put(&mut files, &wrong).unwrap();
        let causes: Vec<_> = updated.quarantine.iter().map(|reason| reason.cause).collect();
        assert_eq!(causes.first(), Some(&cause), "{causes:?}");
    }
}

#[test]
fn pruning_keeps_the_last_good_sessions_of_what_is_red_since() {
    let (_folder, mut files) = store();
    nights(&mut files, 1..=5, |day| two(day, 'a', 120_000.0 + f64::from(day % 3) * 100.0));
    nights(&mut files, 6..=8, |day| two(day, 'b', 180_000.0));
    let (pruned, _) = prunable(&files, "quickstart/9c1f0e57", 2, now()).unwrap();
    let removed: Vec<&str> = pruned.removed.iter().map(|name| &name.time()[6..8]).collect();
    assert_eq!(removed, ["06"]);
}

#[test]
fn pruning_keeps_the_good_sessions_of_a_benchmark_that_is_not_measured() {
    let (_folder, mut files) = store();
    let night = |day: u8| {
        let latency = 120_000.0 + f64::from(day % 3) * 100.0;
        if (6..=8).contains(&day) { two(day, 'a', latency) } else { run(day, 'a', latency) }
    };
    nights(&mut files, 1..=14, night);
    let (pruned, _) = prunable(&files, "quickstart/9c1f0e57", 2, now()).unwrap();
    let removed: Vec<&str> = pruned.removed.iter().map(|name| &name.time()[6..8]).collect();
    assert_eq!(removed, ["09", "10", "11", "12"]);
}

#[test]
fn pruning_counts_no_damaged_session_and_removes_no_good_one_for_it() {
    let (folder, mut files) = store();
    nights(&mut files, 1..=7, |day| run(day, 'a', 120_000.0));
    let damaged = folder.path().join(format!("quickstart/9c1f0e57/20261008T120000Z-{}.json", commit('a')));
    fs::write(&damaged, "{").unwrap();
    let (pruned, faults) = prunable(&files, "quickstart/9c1f0e57", 1, now()).unwrap();
    let removed: Vec<&str> = pruned.removed.iter().map(|name| &name.time()[6..8]).collect();
    assert_eq!((removed, pruned.kept, faults.len()), (vec!["06"], 7, 1));
}

/// A fixed number for each night and row. Together these numbers look like draws from the standard normal
/// distribution.
fn deviate(night: usize, row: usize) -> f64 {
    use rand::{Rng, SeedableRng};
    let mut random = rand::rngs::ChaCha8Rng::seed_from_u64((night * 64 + row) as u64);
    let uniform = |random: &mut rand::rngs::ChaCha8Rng| f64::from(random.next_u32()) / f64::from(u32::MAX);
    (0..12).map(|_| uniform(&mut random)).sum::<f64>() - 6.0
}

const ROWS: usize = 6;

/// A session of six benchmarks that vary by `noise` between sessions. `level` is the factor of the first one.
pub(super) fn long_night(night: usize, level: f64, noise: f64) -> RunFile {
    let mut file = run(1, 'a', 1.0);
    let first: jiff::civil::Date = "2026-01-01".parse().unwrap();
    let day = first.checked_add(jiff::Span::new().days(night as i64)).unwrap();
    file.session = format!("night-{night}");
    file.created = format!("{day}T02:00:00Z");
    let commit = format!("{:040x}", night + 1);
    file.sides[0].commit = Some(commit.clone());
    let golden = file.sides[0].benchmarks[0].clone();
    file.sides[0].benchmarks = (0..ROWS)
        .map(|row| {
            let mut benchmark = golden.clone();
            benchmark.name = format!("m{row}/cpu/main");
            benchmark.artifact.as_mut().unwrap().vmfb_sha256 = format!("{commit}{:024}", row);
            let change = if row == 0 { level } else { 1.0 };
            let latency = 1e6 * (row + 1) as f64 * change * (noise * deviate(night, row)).exp();
            for (at, process) in benchmark.processes.iter_mut().enumerate() {
                let noise = 1.0 + 0.001 * (at as f64 - 0.5);
                let samples = process.samples.get_mut("latency").unwrap();
                samples.iter_mut().for_each(|value| *value = latency * noise);
            }
            benchmark
        })
        .collect();
    file
}

/// Stores a session, and returns the reason why its first benchmark is quarantined, if it is.
fn stored_cause(files: &mut dyn Files, night: usize, level: f64) -> Option<QuarantineCause> {
    let stored = put(files, &long_night(night, level, 0.004)).unwrap();
    let others = |reason: &benchgate_core::record::QuarantineRecord| {
        reason.benchmark.as_deref().is_none_or(|name| name != "m0/cpu/main")
            && reason.cause == QuarantineCause::Regressed
    };
    assert!(!stored.quarantine.iter().any(others), "night {night}: {:?}", stored.quarantine);
    let mut own =
        stored.quarantine.iter().filter(|reason| reason.benchmark.as_deref() == Some("m0/cpu/main"));
    own.next().map(|reason| reason.cause)
}

#[test]
fn a_slowdown_that_no_one_accepts_is_never_stored_as_good() {
    for level in [1.03, 1.06, 1.2, 2.0] {
        let (_folder, mut files) = store();
        for night in 0..25 {
            let cause = stored_cause(&mut files, night, 1.0);
            assert_ne!(cause, Some(QuarantineCause::Regressed), "night {night} of {level}");
        }
        let mut turned_red = false;
        for night in 25..70 {
            let cause = stored_cause(&mut files, night, level);
            turned_red |= cause == Some(QuarantineCause::Regressed);
            assert!(cause.is_some(), "night {night} of {level} is stored as good");
            assert!(!turned_red || cause == Some(QuarantineCause::Regressed), "night {night} of {level}");
        }
        assert!(turned_red, "{level}");
    }
}

#[test]
fn a_slowdown_that_is_gone_is_good_again_after_two_nights() {
    let (_folder, mut files) = store();
    let levels = (0..25).map(|_| 1.0).chain((0..30).map(|_| 1.06)).chain((0..4).map(|_| 1.0));
    let causes: Vec<_> =
        levels.enumerate().map(|(night, level)| stored_cause(&mut files, night, level)).collect();
    assert!(causes[25..55].iter().all(|cause| *cause == Some(QuarantineCause::Regressed)), "{causes:?}");
    assert_eq!(causes[55], Some(QuarantineCause::Regressed), "one night does not show that it is over");
    assert_eq!(causes[56..], [None, None, None]);
}

#[test]
fn a_slowdown_that_is_accepted_is_the_baseline_from_then_on() {
    let (_folder, mut files) = store();
    for night in 0..45 {
        stored_cause(&mut files, night, if night < 25 { 1.0 } else { 1.06 });
    }
    let one =
        AcceptanceFile { benchmark: Some(BenchmarkGlob::new("m0/*")), ..acceptance("2026-02-14T13:00:00Z") };
    accept(&mut files, one, Some("20260126")).unwrap();
    assert_eq!(latencies_of(&found(&files), "m0/cpu/main").len(), 20);
    assert_eq!(stored_cause(&mut files, 45, 1.06), None);
    // A further slowdown counts as a new one.
    assert_eq!(stored_cause(&mut files, 46, 1.12), Some(QuarantineCause::Regressed));
}

/// The level of a night: constant for 40 nights, then slower by 0.15 % per night for 80 nights, then constant
/// again.
fn creep(night: usize) -> f64 {
    (0.0015_f64 * night.saturating_sub(40).min(80) as f64).exp()
}

#[test]
fn a_gradual_slowdown_is_never_stored_as_good_from_three_percent_on() {
    let (_folder, mut files) = store();
    let mut turned_red = None;
    for night in 0..130 {
        let cause = stored_cause(&mut files, night, creep(night));
        if night < 40 {
            assert_ne!(cause, Some(QuarantineCause::Regressed), "night {night}");
        }
        if creep(night) >= 1.03 {
            assert!(cause.is_some(), "night {night} at {} is stored as good", creep(night));
        }
        if cause == Some(QuarantineCause::Regressed) {
            turned_red.get_or_insert(night);
        } else {
            assert_eq!(turned_red, None, "night {night} is {cause:?} after a red one");
        }
    }
    assert!(turned_red.is_some_and(|night| creep(night) < 1.06), "{turned_red:?}");
    let red = put(&mut files, &long_night(130, creep(130), 0.004)).unwrap().comparison.unwrap();
    let row = red.rows.iter().find(|row| row.benchmark.as_str() == "m0/cpu/main" && row.fatal).unwrap();
    let lint = row.lints.iter().find(|lint| lint.code == LintCode::Gradual).unwrap();
    assert!(lint.detail.ends_with("% since 2026-01-01 (gradual)"), "{}", lint.detail);
    assert!(row.estimate.as_ref().unwrap().ratio > 1.1, "{row:?}");
}

#[test]
fn a_gradual_slowdown_after_an_improvement_is_one_from_the_better_level() {
    let (_folder, mut files) = store();
    // In November, the day 240 days ago is in March, whose sessions are faster than the first ones.
    for night in 0..190_usize {
        let better = if night < 50 { 1.0 } else { 0.9 };
        let level = (0.001_f64 * night.saturating_sub(100) as f64).exp();
        let cause = stored_cause(&mut files, night, better * level);
        assert!(level < 1.03 || cause.is_some(), "night {night} at {level} is stored as good");
    }
}

#[test]
fn two_slowdowns_of_two_percent_are_one_of_four() {
    let (_folder, mut files) = store();
    for night in 0..90 {
        let level = if night < 30 {
            1.0
        } else if night < 60 {
            1.02
        } else {
            1.04
        };
        let cause = stored_cause(&mut files, night, level);
        assert!(night < 60 || cause.is_some(), "night {night} is stored as good");
    }
}

#[test]
fn damaged_first_sessions_do_not_hide_a_gradual_slowdown() {
    let (folder, mut files) = store();
    for night in 0..66 {
        stored_cause(&mut files, night, creep(night));
    }
    for day in 1..=8 {
        let damaged = format!("quickstart/9c1f0e57/202601{day:02}T020000Z-{day:040x}.json");
        fs::write(folder.path().join(damaged), "{").unwrap();
    }
    let stored = put(&mut files, &long_night(66, 1.04, 0.004)).unwrap();
    assert!(stored.quarantine.iter().any(|reason| reason.benchmark.as_deref() == Some("m0/cpu/main")));
    assert_eq!(stored.faults.len(), 8, "{:?}", stored.faults);
}

/// Stores a session with a gate that compares with four sessions, and returns the reason why its
/// first benchmark is quarantined, if it is.
fn stored_in_time(files: &mut dyn Files, night: usize, level: f64) -> Option<QuarantineCause> {
    let run = long_night(night, level, 0.004);
    let stored = put_at(files, &run, 4, run.created.parse().unwrap()).unwrap();
    let own = stored.quarantine.iter().find(|reason| reason.benchmark.as_deref() == Some("m0/cpu/main"));
    own.map(|reason| reason.cause)
}

#[test]
fn a_gradual_slowdown_that_no_one_accepts_stays_red_while_the_days_that_it_is_compared_with_move_on() {
    let (_folder, mut files) = store();
    for night in 0..100_usize {
        let better = if night < 12 { 1.0 } else { 0.92 };
        let level = (0.003_f64 * night.saturating_sub(32).min(14) as f64).exp();
        let cause = stored_in_time(&mut files, night, better * level);
        assert!(level < 1.04 || cause.is_some(), "night {night} at {level} is stored as good");
    }
}

#[test]
fn pruning_each_night_does_not_hide_a_gradual_slowdown_after_an_improvement() {
    let (_folder, mut files) = store();
    for night in 0..80_usize {
        let better = if night < 20 { 1.0 } else { 0.8 };
        let level = (0.001_f64 * night.saturating_sub(36) as f64).exp();
        let run = long_night(night, better * level, 0.004);
        let now = run.created.parse().unwrap();
        let stored = put_at(&mut files, &run, 20, now).unwrap();
        let is_held = stored.quarantine.iter().any(|it| it.benchmark.as_deref() == Some("m0/cpu/main"));
        assert!(level < 1.04 || is_held, "night {night} at {level} is stored as good");
        let (pruned, _) = prunable(&files, "quickstart/9c1f0e57", 10, now).unwrap();
        files.apply(&pruned.change()).unwrap();
    }
}
