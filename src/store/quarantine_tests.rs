//! Tests of what is stored while a benchmark is red, or while nothing can be compared with.

use std::fs;
use std::path::Path;

use crate::gate::{CompareOptions, Policy};
use crate::model::{LintCode, SideName, Verdict};
use crate::record::{QuarantineCause, RunFile};

use super::tests::{SESSIONS, acceptance, commit, found, latencies_of, now, put, run};
use super::{Acceptance, Directory, Lineage, UpdateOptions, accept, prunable, update, verify};

/// A run of two benchmarks, of which the second is always the same.
fn two(day: u8, letter: char, latency: f64) -> RunFile {
    let mut two = run(day, letter, latency);
    let mut steady = run(day, letter, 120_000.0 + f64::from(day % 3) * 100.0).sides[0].benchmarks[0].clone();
    steady.name = "steady/cpu/main".to_owned();
    two.sides[0].benchmarks.push(steady);
    two
}

#[test]
fn a_slowdown_stays_red_for_more_nights_than_a_gate_compares_with() {
    for with_another in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let mut files = Directory::new(folder.path());
        let night = |day, letter, latency| {
            if with_another { two(day, letter, latency) } else { run(day, letter, latency) }
        };
        for day in 1..=5 {
            put(&mut files, &night(day, 'a', 120_000.0 + f64::from(day % 3) * 100.0)).unwrap();
        }
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
fn a_benchmark_whose_sessions_are_all_quarantined_is_no_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = Directory::new(folder.path());
    for day in 1..=5 {
        put(&mut files, &two(day, 'a', 120_000.0 + f64::from(day % 3) * 100.0)).unwrap();
    }
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
    // Accepting it makes it the new normal.
    let one = Acceptance {
        benchmark: Some("mlp/*/*".to_owned()),
        ..acceptance(Some("20261007"), "2026-10-07T13:00:00Z")
    };
    accept(&mut files, one).unwrap();
    assert_eq!(latencies_of(&found(&files), "mlp/cpu/main"), [180_000.25]);
}

#[test]
fn nothing_becomes_the_baseline_where_stored_sessions_cant_be_compared_with() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = Directory::new(folder.path());
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
    let shallow = update(&mut files, &run(2, 'b', 180_000.0), &writing).unwrap();
    assert_eq!(shallow.quarantine[0].cause, QuarantineCause::Undecided);
    fs::write(folder.path().join(path), "{}").unwrap();
    fs::remove_file(folder.path().join(shallow.path)).unwrap();
    let damaged = put(&mut files, &run(3, 'b', 180_000.0)).unwrap();
    assert_eq!(damaged.quarantine[0].cause, QuarantineCause::Undecided);
}

#[test]
fn accepting_one_benchmark_of_a_run_that_was_quarantined_as_a_whole_releases_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = Directory::new(folder.path());
    for day in 1..=3 {
        put(&mut files, &two(day, 'a', 120_000.0)).unwrap();
    }
    let mut dirty = two(4, 'b', 180_000.0);
    dirty.sides[0].dirty = Some(true);
    put(&mut files, &dirty).unwrap();
    let one =
        Acceptance { benchmark: Some("mlp/*/*".to_owned()), ..acceptance(None, "2026-10-05T00:00:00Z") };
    accept(&mut files, one).unwrap();
    let history = found(&files);
    assert_eq!(latencies_of(&history, "mlp/cpu/main"), [180_000.25]);
    assert_eq!(latencies_of(&history, "steady/cpu/main").len(), 3);
}

#[test]
fn an_acceptance_of_another_testbed_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = Directory::new(folder.path());
    put(&mut files, &run(1, 'a', 120_000.0)).unwrap();
    let (path, _) = accept(&mut files, acceptance(None, "2026-10-05T00:00:00Z")).unwrap();
    let other = folder.path().join("quickstart/other");
    fs::create_dir(&other).unwrap();
    fs::copy(folder.path().join(&path), other.join(Path::new(&path).file_name().unwrap())).unwrap();
    let faults = verify(&files).unwrap().faults;
    assert!(faults.iter().any(|fault| fault.why == "it belongs in quickstart/9c1f0e57"), "{faults:?}");
}

#[test]
fn a_run_of_the_future_is_not_stored() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = Directory::new(folder.path());
    let mut future = run(1, 'a', 120_000.0);
    future.created = "2026-11-01T00:10:01Z".to_owned();
    let error = put(&mut files, &future).unwrap_err().to_string();
    assert!(error.contains("in the future"), "{error}");
}

#[test]
fn pruning_keeps_the_last_good_session_of_what_is_red_since() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = Directory::new(folder.path());
    for day in 1..=5 {
        put(&mut files, &two(day, 'a', 120_000.0 + f64::from(day % 3) * 100.0)).unwrap();
    }
    for day in 6..=8 {
        put(&mut files, &two(day, 'b', 180_000.0)).unwrap();
    }
    let pruned = prunable(&files, "quickstart/9c1f0e57", 2).unwrap();
    let removed: Vec<&str> = pruned.removed.iter().map(|name| &name.time()[6..8]).collect();
    assert_eq!(removed, ["01", "02", "03", "04", "06"]);
}
