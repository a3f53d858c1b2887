//! Tests of nights that few alike ones precede: the first sessions of a baseline, those after an accepted slowdown,
//! and those after an improvement.

use std::fs;

use benchgate_core::model::{BenchmarkGlob, SideName, Verdict};
use benchgate_core::record::{AcceptanceFile, QuarantineCause, RunFile};
use benchgate_gate::{CompareOptions, Comparison, Policy, compare_with_history};

use super::quarantine_tests::long_night;
use super::tests::{acceptance, found, put, put_at, store};
use super::{Directory, Files, accept, judged_side};

const SLOW: &str = "m0/cpu/main";

/// Compares this session with the stored ones, as a gate does.
fn gate(files: &dyn Files, session: &RunFile) -> Comparison {
    let policy = Policy::default();
    let head = judged_side(session, SideName::Head, "run.json", &policy).unwrap();
    compare_with_history(&head, found(files).sessions(false), &policy, &CompareOptions::default())
}

/// A gate's verdict on the first benchmark, and the cause for which its session is then quarantined.
fn gated_and_stored(
    files: &mut dyn Files,
    night: usize,
    level: f64,
    is_rebuilt: bool,
) -> (Option<Verdict>, Option<QuarantineCause>) {
    let mut file = long_night(night, level, 0.004);
    if !is_rebuilt {
        // Nothing is committed after the step, so the module stays the same.
        let same = format!("{:064x}", u8::from(level > 1.0));
        file.sides[0].benchmarks[0].artifact.as_mut().unwrap().vmfb_sha256 = same;
    }
    let verdict = (night > 0).then(|| {
        let rows = gate(files, &file).rows;
        rows.iter().find(|row| row.benchmark.as_str() == SLOW && row.fatal).unwrap().verdict
    });
    let stored = put(files, &file).unwrap();
    let mut own = stored.quarantine.iter().filter(|reason| reason.benchmark.as_deref() == Some(SLOW));
    (verdict, own.next().map(|reason| reason.cause))
}

#[test]
fn a_step_in_one_of_the_first_nights_never_passes_and_is_red_once_nights_show_it() {
    // After the step, the module either differs every night (`true`) or stays the same.
    for (is_rebuilt, level, step) in [
        (true, 1.05, 1),
        (true, 1.05, 3),
        (true, 1.1, 2),
        (true, 1.3, 1),
        (true, 1.3, 5),
        (false, 1.05, 2),
        (false, 1.1, 1),
        (false, 1.2, 4),
    ] {
        let (_folder, mut files) = store();
        let mut red = None;
        for night in 0..step + 10 {
            let now = if night < step { 1.0 } else { level };
            let (verdict, cause) = gated_and_stored(&mut files, night, now, is_rebuilt);
            let what = format!("{level} from night {step}, night {night}: {verdict:?}, {cause:?}");
            if night < step {
                assert!(verdict != Some(Verdict::Regressed) && cause.is_none(), "{what}");
                continue;
            }
            assert!(!matches!(verdict, Some(Verdict::Pass | Verdict::Improved)), "{what}");
            if verdict == Some(Verdict::Regressed) {
                red.get_or_insert(night);
            }
            assert_eq!(cause == Some(QuarantineCause::Regressed), red.is_some(), "{what}");
        }
        assert!(red.is_some_and(|night| night <= step + 5), "{level} from {step}: {red:?}");
    }
}

#[test]
fn a_step_in_a_young_store_is_over_when_it_is_gone_or_accepted() {
    for is_accepted in [false, true] {
        let (_folder, mut files) = store();
        for night in 0..20 {
            gated_and_stored(&mut files, night, if night < 2 { 1.0 } else { 1.1 }, true);
        }
        if is_accepted {
            let one = AcceptanceFile {
                benchmark: Some(BenchmarkGlob::new("m0/*")),
                ..acceptance("2026-01-20T13:00:00Z")
            };
            accept(&mut files, one, Some("20260103")).unwrap();
        }
        let level = if is_accepted { 1.1 } else { 1.0 };
        let causes: Vec<_> =
            (20..30).map(|night| gated_and_stored(&mut files, night, level, true).1).collect();
        assert!(causes[2..].iter().all(Option::is_none), "{is_accepted}: {causes:?}");
    }
}

#[test]
fn a_young_store_of_unchanged_code_is_not_red_and_green_from_five_sessions_on() {
    for (noise, least_green) in [(0.004, 0.95), (0.01, 0.4)] {
        let (_folder, mut files) = store();
        let mut verdicts = Vec::new();
        for night in 0..16 {
            let file = long_night(night, 1.0, noise);
            if night > 0 {
                let rows = gate(&files, &file).rows;
                let gating = rows.iter().filter(|row| row.fatal).map(|row| (night, row.verdict));
                verdicts.extend(gating);
            }
            put(&mut files, &file).unwrap();
        }
        assert!(verdicts.iter().all(|(_, verdict)| *verdict != Verdict::Regressed), "{noise}: {verdicts:?}");
        let settled = verdicts.iter().filter(|(night, _)| *night >= 6).map(|(_, verdict)| verdict);
        let all = settled.clone().count();
        let green = settled.filter(|verdict| matches!(verdict, Verdict::Pass | Verdict::Improved)).count();
        assert!(green as f64 >= least_green * all as f64, "{noise}: {green} of {all}");
    }
}

/// Standard deviation between nights.
const NOISE_ACCEPTED: f64 = 0.005;
/// Night of the slowdown that is accepted on the next morning.
const ACCEPTED: usize = 20;

/// A store of unchanged nights, and of one that is slower by 10 % and was accepted.
struct Accepted {
    folder: tempfile::TempDir,
    rows: usize,
    first: usize,
}

impl Accepted {
    /// A suite of so many benchmarks. `is_whole` is true if the acceptance covers all of them.
    fn new(rows: usize, is_whole: bool, first: usize) -> Self {
        Self::on_day(rows, is_whole, first, ACCEPTED)
    }

    /// A suite like that of `new`, whose slowdown is accepted on the day of the given night.
    fn on_day(rows: usize, is_whole: bool, first: usize, night: usize) -> Self {
        let accepted = Self { folder: tempfile::tempdir().unwrap(), rows, first };
        for night in 0..ACCEPTED {
            accepted.put(night, 1.0);
        }
        accepted.put(ACCEPTED, 1.1);
        let benchmark = (!is_whole).then(|| BenchmarkGlob::new(SLOW));
        let created = long_night(first + night, 1.0, NOISE_ACCEPTED).created.replace("T02", "T08");
        let acceptance = AcceptanceFile { benchmark, ..acceptance(&created) };
        accept(&mut Directory::new(accepted.folder.path()), acceptance, None).unwrap();
        accepted
    }

    /// Stores a night, and returns its path and the cause for which the first benchmark is quarantined.
    fn put(&self, night: usize, level: f64) -> (String, Option<QuarantineCause>) {
        let mut file = long_night(self.first + night, level, NOISE_ACCEPTED);
        file.sides[0].benchmarks.truncate(self.rows);
        let mut files = Directory::new(self.folder.path());
        let stored = put_at(&mut files, &file, 20, file.created.parse().unwrap()).unwrap();
        let is_own = |held: &Option<String>| held.as_deref().is_none_or(|name| name == SLOW);
        let mut own = stored.quarantine.iter().filter(|reason| is_own(&reason.benchmark));
        (stored.path, own.next().map(|reason| reason.cause))
    }

    /// Returns the causes in nights at these levels, relative to the accepted one, and removes these nights.
    fn play(&self, levels: &[f64]) -> Vec<Option<QuarantineCause>> {
        let nights = (ACCEPTED + 1..).zip(levels);
        let (paths, causes): (Vec<String>, _) =
            nights.map(|(night, level)| self.put(night, 1.1 * level)).unzip();
        paths.iter().for_each(|path| fs::remove_file(self.folder.path().join(path)).unwrap());
        causes
    }
}

#[test]
fn a_slowdown_right_after_an_accepted_one_is_not_stored_as_good_and_unchanged_nights_are() {
    for (rows, is_whole, first) in [(6, false, 0), (6, true, 40), (1, true, 80), (2, false, 120)] {
        let accepted = Accepted::new(rows, is_whole, first);
        for (gap, step) in [(0, 1.05), (0, 1.1), (1, 1.05), (1, 1.1), (2, 1.05), (2, 1.1), (4, 1.05)] {
            let causes = accepted.play(&[vec![1.0; gap], vec![step; 5]].concat());
            let what = format!("{rows} rows, whole: {is_whole}, {step} after {gap} nights: {causes:?}");
            assert!(causes[..gap].iter().all(Option::is_none), "{what}");
            assert!(causes[gap..].iter().all(Option::is_some), "{what}");
            // One session of the new level may be slow by chance, so that 5 % are likely, but not certain.
            let red = |cause: &Option<QuarantineCause>| *cause == Some(QuarantineCause::Regressed);
            assert!(step < 1.1 || causes[gap + 1..].iter().all(red), "{what}");
        }
        let causes = accepted.play(&[1.0; 8]);
        assert!(causes.iter().all(Option::is_none), "{rows} rows, whole: {is_whole}, unchanged: {causes:?}");
    }
}

#[test]
fn a_regression_that_was_not_stored_when_another_was_accepted_needs_its_own_acceptance() {
    // It was measured before, or the clock of the person who accepts is ahead.
    for (is_whole, night) in [(true, ACCEPTED + 1), (false, ACCEPTED + 1), (true, ACCEPTED + 30)] {
        let causes = Accepted::on_day(6, is_whole, 0, night).play(&[1.1; 6]);
        assert!(causes.iter().all(Option::is_some), "{is_whole}, {night}: {causes:?}");
    }
}

/// Standard deviation between nights.
const NOISE_LEVELS: f64 = 0.004;

/// A gate's verdict on the first benchmark, and the cause for which its session is then quarantined.
fn judged_and_stored(files: &mut dyn Files, file: &RunFile) -> (Verdict, Option<QuarantineCause>) {
    let gate = gate(files, file);
    let name = &file.sides[0].benchmarks[0].name;
    let verdict = gate.rows.iter().find(|row| row.benchmark.as_str() == name && row.fatal).unwrap().verdict;
    let stored = put(files, file).unwrap();
    let mut own =
        stored.quarantine.iter().filter(|reason| reason.benchmark.as_ref().is_none_or(|it| it == name));
    (verdict, own.next().map(|reason| reason.cause))
}

#[test]
fn a_slowdown_that_takes_back_a_part_of_an_improvement_never_passes_and_is_red_from_the_second_night() {
    for (gain, lasts, slower) in [(0.1, 5, 1.067), (0.2, 2, 1.05), (0.05, 8, 1.05)] {
        let (_folder, mut files) = store();
        let improved = 1.0 - gain;
        let began = 18 + lasts;
        for night in 0..began {
            put(&mut files, &long_night(night, if night < 18 { 1.0 } else { improved }, NOISE_LEVELS))
                .unwrap();
        }
        for night in began..began + 9 {
            let file = long_night(night, improved * slower, NOISE_LEVELS);
            let (verdict, cause) = judged_and_stored(&mut files, &file);
            let what = format!("{gain} for {lasts}, night {night}: {verdict:?}, {cause:?}");
            assert!(matches!(verdict, Verdict::Inconclusive | Verdict::Regressed), "{what}");
            assert!(cause.is_some(), "{what}");
            if night > began {
                assert_eq!(cause, Some(QuarantineCause::Regressed), "{what}");
            }
        }
        // From here on, the slowdown is gone.
        for night in began + 9..began + 12 {
            put(&mut files, &long_night(night, improved, NOISE_LEVELS)).unwrap();
        }
        let last = long_night(began + 12, improved, NOISE_LEVELS);
        let (verdict, cause) = judged_and_stored(&mut files, &last);
        assert!(
            verdict != Verdict::Regressed && cause.is_none(),
            "{gain} for {lasts}: {verdict:?}, {cause:?}"
        );
    }
}

#[test]
fn a_week_in_which_the_machine_was_faster_is_not_a_slowdown_afterwards() {
    let (_folder, mut files) = store();
    for night in 0..45 {
        let mut file = long_night(night, 1.0, NOISE_LEVELS);
        let factor = if (22..29).contains(&night) { 0.97 } else { 1.0 };
        let processes = file.sides[0].benchmarks.iter_mut().flat_map(|benchmark| &mut benchmark.processes);
        let samples = processes.filter_map(|process| process.samples.get_mut("latency"));
        samples.flatten().for_each(|value| *value *= factor);
        let stored = put(&mut files, &file).unwrap();
        let red: Vec<_> =
            stored.quarantine.iter().filter(|reason| reason.cause == QuarantineCause::Regressed).collect();
        assert!(red.is_empty(), "night {night}: {red:?}");
    }
}
