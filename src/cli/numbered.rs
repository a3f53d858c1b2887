//! Files and folders of one side that a number tells apart, such as `head-07.json`.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;

use crate::model::{Lint, LintCode};

/// The maximum number of lost files that are named.
const MOST_NUMBERS: usize = 6;

/// The two patterns, such as `base-*.json` and `head-*.json`, that a shell has expanded into these names.
/// `None` if the names are not two numbered series, one after the other.
pub fn expanded_patterns(names: &[String]) -> Option<[String; 2]> {
    const LEAST_FILES: usize = 2;
    let at = names.iter().position(|name| family(name) != family(&names[0]))?;
    let (first, second) = names.split_at(at);
    let is_family = |names: &[String]| {
        names.len() >= LEAST_FILES && names.iter().all(|name| family(name) == family(&names[0]))
    };
    (is_family(first) && is_family(second)).then(|| [family(&first[0]), family(&second[0])])
}

/// A name with its last number replaced by a star: `base-07.json` becomes `base-*.json`.
fn family(name: &str) -> String {
    families(name).next_back().unwrap_or_else(|| name.to_owned())
}

/// A name with each of its numbers, one at a time, replaced by a star.
fn families(name: &str) -> impl DoubleEndedIterator<Item = String> {
    numbers(name).into_iter().map(|at| starred(name, &at))
}

fn starred(name: &str, at: &Range<usize>) -> String {
    format!("{}*{}", &name[..at.start], &name[at.end..])
}

fn numbers(name: &str) -> Vec<Range<usize>> {
    let mut all: Vec<Range<usize>> = Vec::new();
    for (at, _) in name.bytes().enumerate().filter(|(_, byte)| byte.is_ascii_digit()) {
        match all.last_mut() {
            Some(last) if last.end == at => last.end += 1,
            _ => all.push(at..at + 1),
        }
    }
    all
}

/// The names that differ from a known name in one number.
#[derive(Default)]
pub struct Numbered(HashSet<String>);

impl Numbered {
    pub fn add(&mut self, name: &str) {
        self.0.extend(families(name));
    }

    pub fn contains(&self, name: &str) -> bool {
        families(name).any(|family| self.0.contains(&family))
    }
}

/// The finding that both sides consist of numbered files, and head lacks some numbers of base's although higher ones
/// follow: a tool that fails writes no file.
pub fn lost_files(base: &[&str], head: &[&str]) -> Option<Lint> {
    let [base, head] = [by_family(base)?, by_family(head)?];
    // Programs that each wrote files for every session are compared one by one. Both sides have them in the same order.
    let pairs = base.values().zip(head.values()).filter(|_| base.len() == head.len());
    let lost: BTreeSet<u64> = pairs.flat_map(|(base, head)| lost_numbers(base, head)).collect();
    let shown: Vec<String> = lost.iter().take(MOST_NUMBERS).map(u64::to_string).collect();
    (!lost.is_empty()).then(|| {
        let more = if lost.len() > shown.len() { ", …" } else { "" };
        let detail = format!("no file has the number {}{more}, but base has these files", shown.join(", "));
        Lint::new(LintCode::IncompleteJoin, detail)
    })
}

/// Returns whether a file of this name can be the log of a run.
pub fn is_log(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    let is_word = |word: &str| ["log", "err", "out", "stderr", "stdout"].contains(&word);
    name.split('.').any(is_word) || is_of_failed_run(path)
}

/// Returns whether the name of a file says that its run failed: `r-07.json.failed`.
pub fn is_of_failed_run(path: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(_, extension)| extension.eq_ignore_ascii_case("failed"))
}

/// Returns whether a file says by its name that the run of one of these results failed: `07.failed` next to `07.json`, or
/// `FAILED` in a folder of results.
pub fn marks_failure_of_result(path: &str, results: &HashSet<&str>) -> bool {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let in_folder = |result: &&&str| result.rsplit_once('/').map_or("", |(folder, _)| folder) == folder;
    // `07.json.failed` next to `07.json` is an attempt that was repeated.
    let of_stem = |result: &&str| {
        let (stem, _) = path.rsplit_once('.').unwrap_or((path, ""));
        result.strip_prefix(stem).is_some_and(|rest| rest.starts_with('.'))
    };
    let mut others = results.iter().filter(|result| **result != path).filter(in_folder);
    match name.eq_ignore_ascii_case("failed") {
        true => others.next().is_some(),
        false => is_of_failed_run(path) && others.any(of_stem),
    }
}

/// Returns whether a file can be the printed text of a run that also wrote a file: `1.txt` next to `1.json`.
pub fn is_text_of_result(path: &str, all: &HashSet<&str>) -> bool {
    let stem = ["txt", "log", "out"].iter().find_map(|end| path.strip_suffix(end)?.strip_suffix('.'));
    stem.is_some_and(|stem| all.contains(format!("{stem}.json").as_str()))
}

/// Returns the log of a run that seems to have left no result, such as `head/05.log` or `head/05/stderr.log` next to
/// the results of other runs: its number is that of no result, and it lies among or directly after those that are.
pub fn of_lost_run<'a>(results: &[String], others: &[&'a str]) -> Option<&'a str> {
    let mut series: HashMap<String, BTreeSet<u64>> = HashMap::new();
    for (family, number) in results.iter().flat_map(|path| runs(path)) {
        series.entry(family).or_default().insert(number);
    }
    others.iter().copied().find(|path| {
        runs(path).any(|(family, number)| {
            let Some(known) = series.get(&family).filter(|known| known.len() > 1) else { return false };
            let (first, last) = (known.first().copied(), known.last().copied());
            let range = first.unwrap_or(0)..=last.unwrap_or(0).saturating_add(known.len() as u64);
            range.contains(&number) && !known.contains(&number)
        })
    })
}

/// The numbers in the name of a file without its extensions, and in those of its folders, with what surrounds them.
fn runs(path: &str) -> impl Iterator<Item = (String, u64)> {
    let name = path.rfind('/').map_or(0, |at| at + 1);
    let stem = path[name..].find('.').map_or(path.len(), |at| name + at);
    let folders = path.match_indices('/').map(|(at, _)| at);
    let places: Vec<&str> = folders.chain([stem]).map(|end| &path[..end]).collect();
    places.into_iter().flat_map(|place| {
        numbers(place)
            .into_iter()
            .filter_map(|at| Some((starred(place, &at), place[at.clone()].parse().ok()?)))
    })
}

fn lost_numbers(base: &BTreeSet<u64>, head: &BTreeSet<u64>) -> Vec<u64> {
    let (Some(first), Some(last), true) = (head.first(), head.last(), head.len() > 1) else {
        return Vec::new();
    };
    // Dates, times and seeds don't count the files.
    let is_counter = |side: &BTreeSet<u64>| {
        let range = side.first().zip(side.last()).map_or(0, |(first, last)| last - first);
        range < 2 * side.len() as u64
    };
    // One counter can number both sides. Then they have no number in common. Sides that were numbered alike begin with
    // the same number. If head has a number that base lacks, its first files may be those of other sessions.
    let from = match head.is_subset(base) {
        true => 0,
        false if !base.is_disjoint(head) && is_counter(base) && is_counter(head) => *first,
        false => return Vec::new(),
    };
    base.difference(head).filter(|at| (from..*last).contains(at)).copied().collect()
}

/// The numbers of files, by what is otherwise equal in their names; `None` if a name has no number. Of several
/// numbers in a name, the one that leaves the fewest families tells the files apart: 07 in `head-07-x86_64.json`, and
/// in `head-07-a1b2c3.json`, where nothing after it is equal.
fn by_family(names: &[&str]) -> Option<BTreeMap<String, BTreeSet<u64>>> {
    let all: Vec<(&str, Vec<Range<usize>>)> = names.iter().map(|name| (*name, numbers(name))).collect();
    let positions = all.iter().map(|(_, numbers)| numbers.len()).min()?;
    let choices = (0..positions).flat_map(|position| [false, true].map(|from_end| (position, from_end)));
    let grouped = choices.flat_map(|(position, from_end)| {
        let at = |numbers: &[Range<usize>]| match from_end {
            true => numbers[numbers.len() - 1 - position].clone(),
            false => numbers[position].clone(),
        };
        let of = |with_rest: bool| {
            let mut families: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
            // The minutes of a time are followed by its seconds.
            if !with_rest && all.iter().all(|(name, numbers)| begins_with_number(&name[at(numbers).end..])) {
                return None;
            }
            for (name, numbers) in &all {
                let at = at(numbers);
                let number = name[at.clone()].parse().ok()?;
                let family = if with_rest { starred(name, &at) } else { name[..at.start].to_owned() };
                // Two files with one number are told apart by something else.
                families.entry(family).or_default().insert(number).then_some(())?;
            }
            Some(families)
        };
        [of(true), of(false)]
    });
    grouped.flatten().min_by_key(BTreeMap::len)
}

/// Returns whether the rest of a name begins with another whole number: `-07.json`, but not `-1a2b.json`.
fn begins_with_number(rest: &str) -> bool {
    let rest = rest.trim_start_matches(['-', '_', '.', ':']);
    let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    after.len() < rest.len() && !after.starts_with(char::is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn two_numbered_families_of_files_are_patterns_that_the_shell_expanded() {
        let names = strings(&["q.0-01.json", "q.0-02.json", "q.0x-01.json", "q.0x-02.json"]);
        assert_eq!(expanded_patterns(&names), Some(["q.0-*.json".to_owned(), "q.0x-*.json".to_owned()]));
        for columns in [
            &["v1.json", "v2.json", "v3.json"][..],
            &["base.json", "a.json", "b.json"],
            &["base.json", "head-1.json", "head-2.json"],
        ] {
            assert_eq!(expanded_patterns(&strings(columns)), None, "{columns:?}");
        }
    }

    #[test]
    fn a_number_that_only_heads_files_lack_is_lost() {
        let names = |side: &str, numbers: &[u64]| -> Vec<String> {
            numbers.iter().map(|at| format!("3/{side}-{at:02}.json")).collect()
        };
        let lost = |base: &[u64], head: &[u64]| {
            let (base, head) = (names("base", base), names("head", head));
            let [base, head] = [&base, &head].map(|side| side.iter().map(String::as_str).collect::<Vec<_>>());
            lost_files(&base, &head).map(|lint| lint.detail)
        };
        let detail = "no file has the number 2, 9, but base has these files".to_owned();
        assert_eq!(lost(&[1, 2, 3, 9, 10], &[1, 3, 10]), Some(detail));
        // Head has more files, or base lacks one too.
        assert!(lost(&[1, 2, 3, 4], &[1, 2, 4, 5, 6]).is_some());
        assert!(lost(&[1, 2, 4, 5], &[1, 3, 4, 5]).is_some());
        // Sides that are numbered otherwise, that have another number of files, or of which base lacks a file.
        for (base, head) in [
            (&[1, 3, 5][..], &[2, 4, 6][..]),
            (&[1, 2, 3], &[4, 5, 6]),
            (&[1, 2, 3], &[1, 2]),
            (&[1, 3], &[1, 2, 3]),
            (&[1, 2, 3], &[3, 4, 5]),
            (&[1003, 1010, 1021], &[1004, 1010, 1030]),
            (&[1], &[1]),
        ] {
            assert_eq!(lost(base, head), None, "{base:?} {head:?}");
        }
    }

    #[test]
    fn a_log_whose_run_has_no_result_shows_that_the_run_failed() {
        let lost = |results: &[&str], others: &[&'static str]| of_lost_run(&strings(results), others);
        let files = ["h/r-01.json", "h/r-02.json", "h/r-04.json"];
        assert_eq!(lost(&files, &["h/r-01.log", "h/r-03.stderr.log"]), Some("h/r-03.stderr.log"));
        assert_eq!(lost(&files, &["h/r-05.log"]), Some("h/r-05.log"));
        let folders = ["h/1/out.json", "h/2/out.json", "h/4/out.json"];
        assert_eq!(lost(&folders, &["h/1/stderr.log", "h/3/stderr.log"]), Some("h/3/stderr.log"));
        // Each run has a log, or the file belongs to none of them.
        let logs =
            ["h/r-01.log", "h/r-02.log", "h/r-04.log", "h/notes-3.txt", "h/r-00.log", "h/r-20261129.log"];
        assert_eq!(lost(&files, &logs), None);
        assert_eq!(lost(&["h/r-01.json"], &["h/r-02.log"]), None);
        assert!(is_log("h/3/stderr.log") && is_log("h/r-03.stderr") && is_log("h/3/log.txt"));
        assert!(is_log("h/r-03.json.failed") && !is_of_failed_run("h/failed.json"));
        assert!(!is_log("h/r-03.png") && !is_log("h/logistic-3.mlir"));
    }

    #[test]
    fn times_in_names_number_nothing() {
        let names = |minutes: &[u64]| -> Vec<String> {
            minutes.iter().map(|at| format!("x-12-{at:02}-{:02}.json", 7 * at % 60)).collect()
        };
        let (base, head) = (names(&[1, 2, 3, 4, 5, 6]), names(&[1, 2, 4, 5, 6, 7]));
        let [base, head] = [&base, &head].map(|side| side.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(lost_files(&base, &head), None);
    }

    #[test]
    fn the_number_that_tells_files_apart_need_not_be_the_last_one() {
        let name = |side: &str, at: u64, rest: &str| format!("out/2026-11-29/{side}-{at:02}{rest}.json");
        for rest in
            [|_| "-x86_64".to_owned(), |_| "_attempt_1".to_owned(), |at| format!("-{:x}a1b", 7919 * at)]
        {
            let names = |side: &str, lost: u64| -> Vec<String> {
                let numbers = (1..=12).filter(|at| *at != lost);
                numbers.map(|at| name(side, at, &rest(at + side.len() as u64))).collect()
            };
            let all = names("base", 0);
            let all: Vec<&str> = all.iter().map(String::as_str).collect();
            for (lost, detail) in [(0, None), (7, Some("no file has the number 7, but base has these files"))]
            {
                let head = names("head-of-main", lost);
                let head: Vec<&str> = head.iter().map(String::as_str).collect();
                let found = lost_files(&all, &head).map(|lint| lint.detail);
                assert_eq!(found.as_deref(), detail, "{head:?}");
            }
        }
    }
}
