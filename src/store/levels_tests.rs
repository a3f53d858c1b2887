//! Tests of sessions that are slower after an improvement.

use crate::gate::{CompareOptions, Policy, compare_with_history};
use crate::model::{SideName, Verdict};
use crate::record::{QuarantineCause, RunFile};

use super::quarantine_tests::long_night;
use super::tests::{found, put};
use super::{Directory, Files, judged_side};

/// Standard deviation between nights.
const NOISE: f64 = 0.004;

/// A gate's verdict on the first benchmark, and the cause for which its session is then quarantined.
fn gated_and_stored(files: &mut dyn Files, file: &RunFile) -> (Verdict, Option<QuarantineCause>) {
    let policy = Policy::default();
    let head = judged_side(file, SideName::Head, "run.json", &policy).unwrap();
    let gate = compare_with_history(&head, found(files).sessions(false), &policy, &CompareOptions::default());
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
        let folder = tempfile::tempdir().unwrap();
        let mut files = Directory::new(folder.path());
        let improved = 1.0 - gain;
        let began = 18 + lasts;
        for night in 0..began {
            put(&mut files, &long_night(night, if night < 18 { 1.0 } else { improved }, NOISE)).unwrap();
        }
        for night in began..began + 9 {
            let file = long_night(night, improved * slower, NOISE);
            let (verdict, cause) = gated_and_stored(&mut files, &file);
            let what = format!("{gain} for {lasts}, night {night}: {verdict:?}, {cause:?}");
            assert!(matches!(verdict, Verdict::Inconclusive | Verdict::Regressed), "{what}");
            assert!(cause.is_some(), "{what}");
            if night > began {
                assert_eq!(cause, Some(QuarantineCause::Regressed), "{what}");
            }
        }
        // From here on, the slowdown is gone.
        for night in began + 9..began + 12 {
            put(&mut files, &long_night(night, improved, NOISE)).unwrap();
        }
        let last = long_night(began + 12, improved, NOISE);
        let (verdict, cause) = gated_and_stored(&mut files, &last);
        assert!(
            verdict != Verdict::Regressed && cause.is_none(),
            "{gain} for {lasts}: {verdict:?}, {cause:?}"
        );
    }
}

#[test]
fn a_week_in_which_the_machine_was_faster_is_not_a_slowdown_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = Directory::new(folder.path());
    for night in 0..45 {
        let mut file = long_night(night, 1.0, NOISE);
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
