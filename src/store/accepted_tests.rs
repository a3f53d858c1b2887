//! Tests of the first nights after a slowdown was accepted.

use std::fs;

use crate::record::QuarantineCause;

use super::quarantine_tests::long_night;
use super::tests::{acceptance, put_at};
use super::{Acceptance, Directory, accept};

const SLOW: &str = "m0/cpu/main";
/// Standard deviation between nights.
const NOISE: f64 = 0.005;
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

    /// The same, accepted on the day of the given night.
    fn on_day(rows: usize, is_whole: bool, first: usize, night: usize) -> Self {
        let accepted = Self { folder: tempfile::tempdir().unwrap(), rows, first };
        for night in 0..ACCEPTED {
            accepted.put(night, 1.0);
        }
        accepted.put(ACCEPTED, 1.1);
        let benchmark = (!is_whole).then(|| SLOW.to_owned());
        let created = long_night(first + night, 1.0, NOISE).created.replace("T02", "T08");
        let acceptance = Acceptance { benchmark, ..acceptance(None, &created) };
        accept(&mut Directory::new(accepted.folder.path()), acceptance).unwrap();
        accepted
    }

    /// Stores a night, and returns its path and the cause for which the first benchmark is quarantined.
    fn put(&self, night: usize, level: f64) -> (String, Option<QuarantineCause>) {
        let mut file = long_night(self.first + night, level, NOISE);
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
