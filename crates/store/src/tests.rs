//! Tests of the store.

use std::fs;
use std::path::Path;

use jiff::Timestamp;
use tempfile::TempDir;

use benchgate_core::model::{BenchmarkGlob, LintCode, Series, SideName, Testbed, Verdict};
use benchgate_core::record::{AcceptanceFile, AcceptanceSchema, OutcomeStatus, QuarantineCause, RunFile};
use benchgate_gate::{CompareOptions, Policy};

use super::{
    BaselineFolder, Directory, Files, History, HistoryQuery, Lineage, Missing, Selection, StoreError,
    UpdateOptions, Updated, accept, history_for_gate, prunable, update, verify,
};

/// The number of sessions that a gate uses by default.
pub(super) const SESSIONS: usize = 20;

const GOLDEN: &str = include_str!("../../../tests/fixtures/record/run-v1.json");

/// A commit hash that repeats this letter.
pub(super) fn commit(letter: char) -> String {
    letter.to_string().repeat(40)
}

/// A run of one benchmark with two processes, at noon of a day in October.
pub(super) fn run(day: u8, letter: char, latency: f64) -> RunFile {
    let mut run = RunFile::from_slice(GOLDEN.as_bytes()).unwrap();
    run.sides.truncate(1);
    run.sides[0].name = SideName::Head;
    run.sides[0].commit = Some(commit(letter));
    run.sides[0].benchmarks.truncate(1);
    run.session = format!("session-{day}");
    run.created = format!("2026-10-{day:02}T12:00:00Z");
    run.calibration = None;
    // Each commit has a different module, because identical modules would not be compared.
    run.sides[0].benchmarks[0].artifact.as_mut().unwrap().vmfb_sha256 = letter.to_string().repeat(64);
    for process in &mut run.sides[0].benchmarks[0].processes {
        for (at, value) in process.samples.get_mut("latency").unwrap().iter_mut().enumerate() {
            *value = latency + at as f64 * 0.25;
        }
    }
    run
}

pub(super) fn ancestor(_: &str) -> Lineage {
    Lineage::Ancestor
}

pub(super) fn now() -> Timestamp {
    "2026-11-01T00:00:00Z".parse().unwrap()
}

pub(super) fn put(files: &mut dyn Files, run: &RunFile) -> Result<Updated, StoreError> {
    put_at(files, run, SESSIONS, now())
}

/// Stores a run at a given time, with a gate that compares with `sessions` sessions.
pub(super) fn put_at(
    files: &mut dyn Files,
    run: &RunFile,
    sessions: usize,
    now: Timestamp,
) -> Result<Updated, StoreError> {
    let policy = Policy::default();
    let options = CompareOptions::default();
    let side = SideName::Head;
    update(files, run, &UpdateOptions { side, sessions, policy: &policy, options, lineage: &ancestor, now })
}

fn select(files: &dyn Files, testbed: &Testbed, lineage: &dyn Fn(&str) -> Lineage) -> Selection {
    let query = HistoryQuery {
        suite: "quickstart",
        testbed,
        sessions: SESSIONS,
        stale_days: 14,
        lineage,
        now: now(),
    };
    history_for_gate(files, &query).unwrap()
}

pub(super) fn testbed() -> Testbed {
    run(1, 'a', 1.0).testbed
}

pub(super) fn found(files: &dyn Files) -> History {
    match select(files, &testbed(), &ancestor) {
        Selection::Found(history) => history,
        Selection::Missing(missing) => panic!("nothing found: {missing:?}"),
    }
}

pub(super) fn missing(files: &dyn Files, testbed: &Testbed) -> Missing {
    match select(files, testbed, &ancestor) {
        Selection::Found(history) => panic!("found {:?}", history.names),
        Selection::Missing(missing) => missing,
    }
}

/// An empty baseline, in a folder that is removed when it is dropped.
pub(super) fn store() -> (TempDir, Directory) {
    let folder = tempfile::tempdir().unwrap();
    let files = Directory::new(folder.path());
    (folder, files)
}

/// Stores a run for each day.
pub(super) fn nights(files: &mut dyn Files, days: impl IntoIterator<Item = u8>, run: impl Fn(u8) -> RunFile) {
    days.into_iter().for_each(|day| drop(put(files, &run(day)).unwrap()));
}

/// Stores ten days without a change, at about 120 µs.
pub(super) fn ten_days(files: &mut dyn Files) {
    nights(files, 1..=10, |day| run(day, 'a', 120_000.0 + f64::from(day % 3) * 100.0));
}

pub(super) fn acceptance(created: &str) -> AcceptanceFile {
    AcceptanceFile {
        schema: AcceptanceSchema,
        benchgate: "0.1.0".to_owned(),
        sha256: String::new(),
        suite: "quickstart".to_owned(),
        testbed: testbed().id,
        created: created.to_owned(),
        from: String::new(),
        benchmark: None,
        not_measured: Vec::new(),
        later_runs: None,
        who: "Ada".to_owned(),
        why: "bigger tiles, on purpose".to_owned(),
        until: None,
    }
}

fn latencies(history: &History) -> Vec<f64> {
    latencies_of(history, "mlp/cpu/main")
}

pub(super) fn latencies_of(history: &History, name: &str) -> Vec<f64> {
    let of = |benchmark: &benchgate_core::model::Benchmark| match &benchmark.metric("latency").unwrap().series
    {
        Series::Summaries(summaries) => summaries[0].median.unwrap(),
        other => panic!("{other:?}"),
    };
    let all = history.runs.iter().flat_map(|run| &run.benchmarks);
    all.filter(|benchmark| benchmark.name.as_str() == name).map(of).collect()
}

#[test]
fn the_same_run_twice_changes_nothing() {
    let (_folder, mut files) = store();
    let first = put(&mut files, &run(1, 'a', 100.0)).unwrap();
    let again = put(&mut files, &run(1, 'a', 100.0)).unwrap();
    assert!(!first.already && again.already);
    assert_eq!(first.path, again.path);
    assert_eq!(first.path, format!("quickstart/9c1f0e57/20261001T120000Z-{}.json", commit('a')));
    assert_eq!(files.names("quickstart/9c1f0e57").unwrap().len(), 1);
}

#[test]
fn another_result_of_a_stored_session_is_an_error() {
    let (_folder, mut files) = store();
    put(&mut files, &run(1, 'a', 100.0)).unwrap();
    let error = put(&mut files, &run(1, 'a', 150.0)).unwrap_err();
    assert!(error.to_string().contains("another result of the same session"), "{error}");
    let mut red = run(1, 'a', 100.0);
    red.sides[0].benchmarks[0].outcome.status = OutcomeStatus::Failed;
    put(&mut files, &red).unwrap_err();
    // Another version of benchgate may describe the same measurements in more detail.
    let mut newer = run(1, 'a', 100.0);
    newer.benchgate = "99.0.0".to_owned();
    newer.sides[0].benchmarks[0].labels.insert("new".to_owned(), "label".to_owned());
    newer.sides[0].benchmarks[0].verification = None;
    assert!(put(&mut files, &newer).unwrap().already);
    assert_eq!(latencies(&found(&files)), [100.25]);
}

#[test]
fn two_sessions_of_one_second_are_both_kept() {
    let (_folder, mut files) = store();
    put(&mut files, &run(1, 'a', 100.0)).unwrap();
    let mut other = run(1, 'a', 101.0);
    other.session = "another".to_owned();
    put(&mut files, &other).unwrap();
    assert_eq!(found(&files).runs.len(), 2);
    assert_eq!(verify(&files).unwrap().faults, []);
}

#[test]
fn a_gate_gets_its_newest_ancestors_oldest_first() {
    let (_folder, mut files) = store();
    for day in 1..=28 {
        let letter = if day % 2 == 0 { 'a' } else { 'b' };
        put(&mut files, &run(day, letter, 1000.0 + f64::from(day % 3))).unwrap();
    }
    let behind = |found: &str| if found == commit('a') { Lineage::Ancestor } else { Lineage::Unrelated };
    let Selection::Found(history) = select(&files, &testbed(), &behind) else { panic!("nothing found") };
    assert_eq!(history.runs.len(), 14);
    assert!(history.names.is_sorted());
    assert!(history.runs.iter().all(|run| run.commit.as_deref() == Some(commit('a').as_str())));
    insta::assert_snapshot!(history.notes.join("\n"), @"left out: 14 stored sessions of commits that are not ancestors of this one");
    assert_eq!(found(&files).runs.len(), SESSIONS);
}

#[test]
fn a_testbed_with_another_driver_is_listed_but_not_used() {
    let (_folder, mut files) = store();
    put(&mut files, &run(1, 'a', 100.0)).unwrap();
    let mut here = testbed();
    here.id = "00000000".to_owned();
    here.facts.insert("gpu-driver".to_owned(), "560.1".to_owned());
    let missing = missing(&files, &here);
    assert_eq!(missing.similar.len(), 1);
    assert_eq!(missing.similar[0].testbed, "9c1f0e57");
    assert_eq!(missing.similar[0].differences, ["gpu-driver: unknown / 560.1"]);
}

#[test]
fn a_red_session_is_stored_but_excluded_until_it_is_accepted() {
    let (_folder, mut files) = store();
    ten_days(&mut files);
    let red = put(&mut files, &run(11, 'b', 180_000.0)).unwrap();
    assert_eq!(red.comparison.unwrap().verdict, Verdict::Regressed);
    assert_eq!(red.quarantine[0].cause, QuarantineCause::Regressed);
    // The next session is also red, because it is compared with the good ones.
    let next = put(&mut files, &run(12, 'c', 180_100.0)).unwrap();
    assert_eq!(next.quarantine[0].cause, QuarantineCause::Regressed);
    let history = found(&files);
    assert_eq!(history.runs.len(), 10);
    assert!(history.notes[0].contains("2 stored sessions in quarantine"), "{:?}", history.notes);

    accept(&mut files, acceptance("2026-10-13T09:00:00Z"), Some("20261011")).unwrap();
    let history = found(&files);
    assert_eq!(latencies(&history), [180_000.25, 180_100.25]);
    // A regression after the acceptance is quarantined again.
    let later = put(&mut files, &run(14, 'd', 270_000.0)).unwrap();
    assert_eq!(later.quarantine[0].cause, QuarantineCause::Regressed);
    assert_eq!(found(&files).runs.len(), 2);
}

#[test]
fn an_acceptance_whose_answer_was_lost_is_stored_and_no_error() {
    let (_folder, mut files) = store();
    ten_days(&mut files);
    let mut again = || accept(&mut files, acceptance("2026-10-11T13:00:00Z"), Some("20261010")).unwrap();
    let first = again();
    assert_eq!(again(), first);
}

#[test]
fn sessions_of_an_expired_acceptance_are_excluded() {
    let (_folder, mut files) = store();
    ten_days(&mut files);
    put(&mut files, &run(11, 'b', 180_000.0)).unwrap();
    let until = |day| AcceptanceFile { until: Some(day), ..acceptance("2026-10-11T13:00:00Z") };
    // In these tests, today is a fixed day in October, so one acceptance is in force and the other has
    // expired.
    let today = now().to_zoned(jiff::tz::TimeZone::UTC).date().to_string();
    accept(&mut files, until(today), Some("20261011")).unwrap();
    assert_eq!(latencies(&found(&files)), [180_000.25]);

    let (_folder, mut files) = store();
    ten_days(&mut files);
    put(&mut files, &run(11, 'b', 180_000.0)).unwrap();
    accept(&mut files, until("2026-10-12".to_owned()), Some("20261011")).unwrap();
    // A fast session after the last day of the acceptance is compared with the good sessions and passes.
    put(&mut files, &run(14, 'c', 100_000.0)).unwrap();
    let history = found(&files);
    assert_eq!(history.runs.len(), 11, "{:?}", history.notes);
    assert!(latencies(&history).iter().all(|latency| *latency < 150_000.0));
    assert!(history.notes.iter().any(|note| note.contains("2026-10-12")), "{:?}", history.notes);
}

#[test]
fn an_acceptance_is_withdrawn_by_a_newer_one_that_ends() {
    let day_later = ("2026-10-11T13:00:00Z", "2026-10-12T13:00:00Z");
    // Two files of the same second can be in either order by name, so several pairs are tried.
    let same_second = ("2026-10-12T13:00:00.25Z", "2026-10-12T13:00:00.5Z");
    for ((accepted, ended), why) in [day_later].into_iter().chain([same_second; 6]).zip('a'..) {
        let (_folder, mut files) = store();
        ten_days(&mut files);
        put(&mut files, &run(11, 'b', 180_000.0)).unwrap();
        let why = why.to_string();
        let first = AcceptanceFile { why: why.clone(), ..acceptance(accepted) };
        accept(&mut files, first, Some("20261011")).unwrap();
        assert_eq!(latencies(&found(&files)), [180_000.25]);
        let withdrawn = AcceptanceFile { until: Some("2026-10-12".to_owned()), why, ..acceptance(ended) };
        accept(&mut files, withdrawn, Some("20261011")).unwrap();
        let latencies = latencies(&found(&files));
        assert!(
            latencies.len() == 10 && latencies.iter().all(|latency| *latency < 150_000.0),
            "{latencies:?}"
        );
    }
}

/// Sessions of the same day that were stored before the withdrawal were stored under the acceptance.
#[test]
fn a_withdrawal_takes_effect_at_once() {
    let (_folder, mut files) = store();
    ten_days(&mut files);
    put(&mut files, &run(11, 'b', 180_000.0)).unwrap();
    accept(&mut files, acceptance("2026-10-11T13:00:00Z"), Some("20261011")).unwrap();
    put(&mut files, &run(13, 'c', 180_000.0)).unwrap();
    let withdrawal =
        AcceptanceFile { until: Some("2026-10-12".to_owned()), ..acceptance("2026-10-13T13:00:00Z") };
    accept(&mut files, withdrawal, Some("20261011")).unwrap();
    put(&mut files, &run(14, 'd', 100_000.0)).unwrap();
    let history = found(&files);
    assert_eq!(history.runs.len(), 11, "{:?}", history.notes);
    assert!(latencies(&history).iter().all(|latency| *latency < 150_000.0));
    assert!(history.notes.iter().any(|note| note.contains("was withdrawn by")), "{:?}", history.notes);
}

#[test]
fn accepting_one_benchmark_leaves_the_others_their_history() {
    let (_folder, mut files) = store();
    let two = |day: u8, latency: f64| {
        let mut run = run(day, 'a', latency);
        let mut other = run.sides[0].benchmarks[0].clone();
        other.name = "other/cpu/main".to_owned();
        run.sides[0].benchmarks.push(other);
        run
    };
    nights(&mut files, 1..=5, |day| two(day, 100.0 + f64::from(day)));
    let one = AcceptanceFile {
        benchmark: Some(BenchmarkGlob::new("mlp/*/*")),
        ..acceptance("2026-10-06T00:00:00Z")
    };
    accept(&mut files, one, None).unwrap();
    let history = found(&files);
    let count = |name: &str| {
        let all = history.runs.iter().flat_map(|run| &run.benchmarks);
        all.filter(|benchmark| benchmark.name.as_str() == name).count()
    };
    assert_eq!((count("mlp/cpu/main"), count("other/cpu/main")), (1, 5));
}

#[test]
fn a_failing_benchmark_is_represented_by_its_last_good_session_and_counts_once() {
    let (_folder, mut files) = store();
    ten_days(&mut files);
    let mut failed = run(11, 'a', 120_000.0);
    let golden = RunFile::from_slice(GOLDEN.as_bytes()).unwrap();
    failed.sides[0].benchmarks[0] = golden.sides[1].benchmarks[0].clone();
    let mut healthy = run(11, 'a', 500.0).sides[0].benchmarks[0].clone();
    healthy.name = "healthy/cpu/main".to_owned();
    failed.sides[0].benchmarks.push(healthy);
    let updated = put(&mut files, &failed).unwrap();
    let causes: Vec<_> = updated.quarantine.iter().map(|reason| reason.cause).collect();
    assert_eq!(causes, [QuarantineCause::Errored, QuarantineCause::Diverged]);
    let history = found(&files);
    assert_eq!(history.runs.len(), 11);
    let newest = history.runs.last().unwrap();
    assert!(newest.benchmarks.iter().all(|benchmark| benchmark.outcome.is_ok()));
    assert_eq!(newest.benchmarks.len(), 2);
    let mlp =
        history.runs.iter().flat_map(|run| &run.benchmarks).filter(|b| b.name.as_str() == "mlp/cpu/main");
    assert_eq!(mlp.count(), 10);
}

#[test]
fn an_incomplete_or_unidentified_run_is_quarantined_completely() {
    let (_folder, mut files) = store();
    let mut interrupted = run(1, 'a', 100.0);
    interrupted.complete = false;
    let mut unverified = run(2, 'a', 100.0);
    unverified.sides[0].toolchain = None;
    let mut dirty = run(3, 'a', 100.0);
    dirty.sides[0].dirty = Some(true);
    for run in [interrupted, unverified, dirty] {
        assert!(put(&mut files, &run).unwrap().quarantine.iter().all(|reason| reason.benchmark.is_none()));
    }
    let missing = missing(&files, &testbed());
    assert_eq!((verify(&files).unwrap().runs, missing.notes.len()), (3, 1));
}

#[test]
fn a_damaged_file_is_reported_and_left_out() {
    let (folder, mut files) = store();
    ten_days(&mut files);
    let baseline = BaselineFolder::open(&files, "quickstart", "9c1f0e57").unwrap();
    let runs = baseline.runs(&files).unwrap().names;
    let spoil = |at: usize, change: &dyn Fn(String) -> String| {
        let path = folder.path().join(baseline.run_path(&runs[at]));
        fs::write(&path, change(fs::read_to_string(&path).unwrap())).unwrap();
    };
    spoil(9, &|text| text.replacen("120100.25", "60000.25", 1));
    spoil(8, &|text| text[..text.len() / 2].to_owned());
    spoil(7, &|text| text.replace("baseline/v1", "baseline/v4"));
    spoil(6, &|text| text.replace("9c1f0e57", "aaaaaaaa"));
    let history = found(&files);
    assert_eq!(history.runs.len(), 6);
    let verified = verify(&files).unwrap();
    let mut selected = history.faults.clone();
    selected.reverse();
    assert_eq!(verified.faults, selected);
    let whys: Vec<&str> = verified.faults.iter().map(|fault| fault.why.as_str()).collect();
    assert!(whys[0].contains("damaged or edited"), "{whys:?}");
    assert!(whys[1].contains("reading version 4 needs benchgate 0.1.0 or newer"), "{whys:?}");
    assert!(whys[2].contains("truncated"), "{whys:?}");
    assert!(whys[3].contains("damaged or edited"), "{whys:?}");
}

#[test]
fn a_file_in_the_wrong_folder_is_not_part_of_the_history() {
    let (folder, mut files) = store();
    let path = put(&mut files, &run(1, 'a', 100.0)).unwrap().path;
    let wrong = folder.path().join("quickstart/other");
    fs::create_dir(&wrong).unwrap();
    fs::copy(folder.path().join(&path), wrong.join(Path::new(&path).file_name().unwrap())).unwrap();
    let faults = verify(&files).unwrap().faults;
    assert_eq!(faults.len(), 1);
    assert_eq!(faults[0].why, "it belongs in quickstart/9c1f0e57");
    let here = Testbed { id: "other".to_owned(), ..testbed() };
    assert_eq!(missing(&files, &here).faults, faults);
}

#[test]
fn files_left_by_a_killed_process_are_ignored() {
    let (folder, mut files) = store();
    put(&mut files, &run(1, 'a', 100.0)).unwrap();
    fs::write(folder.path().join("quickstart/9c1f0e57/.unfinished-x"), "{").unwrap();
    assert_eq!(found(&files).faults, []);
    assert_eq!(verify(&files).unwrap().runs, 1);
}

#[test]
fn pruning_keeps_the_newest_and_what_was_accepted() {
    let (_folder, mut files) = store();
    ten_days(&mut files);
    accept(&mut files, acceptance("2026-10-02T13:00:00Z"), Some("20261002")).unwrap();
    let (pruned, _) = prunable(&files, "quickstart/9c1f0e57", 3, now()).unwrap();
    assert_eq!((pruned.removed.len(), pruned.kept), (2, 8));
    files.apply(&pruned.change()).unwrap();
    let left = BaselineFolder::open(&files, "quickstart", "9c1f0e57").unwrap();
    let left = left.runs(&files).unwrap().names;
    let days: Vec<&str> = left.iter().map(|name| &name.time()[6..8]).collect();
    assert_eq!(days, ["02", "03", "04", "05", "06", "08", "09", "10"]);
    assert_eq!(verify(&files).unwrap().faults, []);
}

#[test]
fn an_old_baseline_is_reported_as_stale() {
    let (_folder, mut files) = store();
    put(&mut files, &run(1, 'a', 100.0)).unwrap();
    let history = found(&files);
    let lint = history.runs[0].lints.iter().find(|lint| lint.code == LintCode::StaleBaseline).unwrap();
    assert_eq!(lint.detail, "the newest stored session is 30 days old");
}

#[test]
fn a_run_without_a_fingerprint_is_refused() {
    let (_folder, mut files) = store();
    let mut unknown = run(1, 'a', 100.0);
    unknown.testbed.id.clear();
    assert!(matches!(put(&mut files, &unknown), Err(StoreError::Unusable(_))));
}

/// Adds the benchmark tool's report of an overloaded host to a run.
fn overloaded(mut run: RunFile) -> RunFile {
    let context = run.sides[0].context.get_or_insert_default();
    context.num_cpus = Some(2);
    context.load_avg = vec![9.8];
    run
}

fn quarantined(stored: &Updated) -> Vec<QuarantineCause> {
    stored.quarantine.iter().map(|reason| reason.cause).collect()
}

#[test]
fn a_session_on_an_overloaded_host_is_quarantined() {
    let (_folder, mut files) = store();
    // This applies even to the first session, which is not compared with anything.
    let mut first = overloaded(run(1, 'a', 120_000.0));
    first.session = "first".to_owned();
    let first = put(&mut files, &first).unwrap();
    assert!(quarantined(&first).contains(&QuarantineCause::Undecided), "{:?}", first.quarantine);
    assert_eq!(missing(&files, &testbed()).notes.len(), 1);
    assert_eq!(verify(&files).unwrap().runs, 1);
    ten_days(&mut files);
    for (day, latency) in
        [(11, 240_000.0), (12, 240_000.0), (13, 156_000.0), (14, 156_000.0), (15, 120_000.0)]
    {
        let stored = put(&mut files, &overloaded(run(day, 'b', latency))).unwrap();
        assert!(quarantined(&stored).contains(&QuarantineCause::Undecided), "{day}: {:?}", stored.quarantine);
        assert!(stored.comparison.is_some());
    }
    assert!(latencies(&found(&files)).iter().all(|latency| *latency < 121_000.0));
    // An acceptance of that session releases it.
    accept(&mut files, acceptance("2026-10-16T09:00:00Z"), Some("20261015")).unwrap();
    assert_eq!(latencies(&found(&files)).len(), 1);
}

#[test]
fn a_probably_slow_session_that_is_still_open_is_quarantined() {
    let (_folder, mut files) = store();
    put(&mut files, &run(1, 'a', 120_000.0)).unwrap();
    for day in 2..=6 {
        let slow = put(&mut files, &run(day, 'b', 156_000.0)).unwrap();
        assert!(!slow.quarantine.is_empty(), "{day}");
    }
    // A session with ordinary noise joins the baseline, although its row is undecided too.
    let first = put(&mut files, &run(7, 'c', 121_000.0)).unwrap();
    assert_eq!(first.quarantine.len(), 1, "one session does not show that a slowdown is over");
    let usual = put(&mut files, &run(8, 'c', 121_000.0)).unwrap();
    assert_eq!(usual.comparison.unwrap().verdict, Verdict::Inconclusive);
    assert_eq!(usual.quarantine, []);
    assert_eq!(found(&files).runs.len(), 2);
}

#[test]
fn invalid_values_are_quarantined_in_the_first_session() {
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-320] {
        let (_folder, mut files) = store();
        let mut broken = run(1, 'a', 120_000.0);
        broken.sides[0].benchmarks[0].processes[0].samples.get_mut("latency").unwrap()[0] = bad;
        let stored = put(&mut files, &broken).unwrap();
        assert_eq!(quarantined(&stored), [QuarantineCause::Errored], "{bad}");
    }
}

#[test]
fn a_benchmark_that_was_not_measured_once_keeps_its_history() {
    let (_folder, mut files) = store();
    let two = |day: u8| {
        let mut run = run(day, 'a', 120_000.0 + f64::from(day));
        let mut other = run.sides[0].benchmarks[0].clone();
        other.name = "other/cpu/main".to_owned();
        run.sides[0].benchmarks.push(other);
        run
    };
    for day in 1..=6 {
        assert_eq!(put(&mut files, &two(day)).unwrap().quarantine, [], "{day}");
    }
    let filtered = put(&mut files, &run(7, 'b', 120_000.0)).unwrap();
    assert_eq!(quarantined(&filtered), [QuarantineCause::Undecided]);
    // The next session is still compared with the earlier ones.
    let newest = found(&files).runs.pop().unwrap();
    assert!(newest.benchmarks.iter().any(|benchmark| benchmark.name.as_str() == "other/cpu/main"));
}

#[test]
fn an_acceptance_without_a_reason_is_refused() {
    let (_folder, mut files) = store();
    ten_days(&mut files);
    for blank in ["", "  \n"] {
        let without = AcceptanceFile { why: blank.to_owned(), ..acceptance("2026-10-13T09:00:00Z") };
        assert!(matches!(accept(&mut files, without, None), Err(StoreError::Unusable(_))));
        let unsigned = AcceptanceFile { who: blank.to_owned(), ..acceptance("2026-10-13T09:00:00Z") };
        assert!(matches!(accept(&mut files, unsigned, None), Err(StoreError::Unusable(_))));
    }
}
