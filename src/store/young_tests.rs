//! Tests of the first sessions of a baseline, which have few or no earlier ones to be compared with.

use crate::gate::{CompareOptions, Comparison, Policy, compare_with_history};
use crate::model::{SideName, Verdict};
use crate::record::{QuarantineCause, RunFile};

use super::quarantine_tests::long_night;
use super::tests::{acceptance, found, put};
use super::{Acceptance, Directory, Files, accept, judged_side};

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
        let folder = tempfile::tempdir().unwrap();
        let mut files = Directory::new(folder.path());
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
        let folder = tempfile::tempdir().unwrap();
        let mut files = Directory::new(folder.path());
        for night in 0..20 {
            gated_and_stored(&mut files, night, if night < 2 { 1.0 } else { 1.1 }, true);
        }
        if is_accepted {
            let one = Acceptance {
                benchmark: Some("m0/*".to_owned()),
                ..acceptance(Some("20260103"), "2026-01-20T13:00:00Z")
            };
            accept(&mut files, one).unwrap();
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
        let folder = tempfile::tempdir().unwrap();
        let mut files = Directory::new(folder.path());
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
