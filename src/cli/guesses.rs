//! Guesses at what the user meant when two results don't fit together: one sentence each, with the command to
//! use.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use regex::escape;

use crate::model::{Lint, LintCode, Run, Series, counted, shell_word};

use super::select::renamed;

/// Results measured less than this apart belong to one comparison, in which either side may come first.
const NOT_TOGETHER: jiff::SignedDuration = jiff::SignedDuration::from_mins(5);

/// The maximum number of lost files that are named.
const MOST_NUMBERS: usize = 6;

/// The maximum number of unmatched names that are compared with each other; more would take too long.
const MOST_NAMES: usize = 200;

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
pub fn family(name: &str) -> String {
    let is_digit = |c: char| c.is_ascii_digit();
    let Some(last) = name.rfind(is_digit) else { return name.to_owned() };
    let start = name[..last]
        .rfind(|c| !is_digit(c))
        .map_or(0, |before| before + name[before..].chars().next().map_or(1, char::len_utf8));
    format!("{}*{}", &name[..start], &name[last + 1..])
}

/// Returns whether two names differ only in that the first says head, or new, where the second says base, or old.
pub fn are_swapped(first: &str, second: &str) -> bool {
    let names = [first, second].map(|name| name.to_ascii_lowercase());
    // A side of a run.json is selected on purpose.
    let paths = names.each_ref().map(|name| name.trim_end_matches("#head").trim_end_matches("#base"));
    let [first, second] = paths.map(parts);
    let is_swapped = |one: &str, two: &str| {
        [("head", "base"), ("new", "old")].iter().any(|(head, base)| {
            let rest = |part: &str, word: &str| part.strip_suffix(word).map(str::to_owned);
            rest(one, head)
                .zip(rest(two, base))
                .is_some_and(|(one, two)| one == two && !one.ends_with(char::is_alphanumeric))
        })
    };
    let differing: Vec<_> = first.iter().zip(&second).filter(|(one, two)| one != two).collect();
    first.len() == second.len()
        && !differing.is_empty()
        && differing.iter().all(|(one, two)| is_swapped(one, two))
}

/// The finding that both sides consist of numbered files, and head lacks some numbers of base's although higher ones
/// follow: a tool that fails writes no file.
pub fn lost_files(base: &[&str], head: &[&str]) -> Option<Lint> {
    let [base, head] = [numbers(base)?, numbers(head)?];
    // Programs that each wrote files for every session are compared one by one. Both sides have them in the same order.
    let pairs = base.values().zip(head.values()).filter(|_| base.len() == head.len());
    let lost: BTreeSet<u64> = pairs
        .filter(|(base, head)| head.len() > 1 && head.is_subset(base))
        .flat_map(|(base, head)| base.difference(head).filter(|at| Some(*at) < head.last()))
        .copied()
        .collect();
    let shown: Vec<String> = lost.iter().take(MOST_NUMBERS).map(u64::to_string).collect();
    (!lost.is_empty()).then(|| {
        let more = if lost.len() > shown.len() { ", …" } else { "" };
        let detail = format!("no file has the number {}{more}, but base has these files", shown.join(", "));
        Lint::new(LintCode::IncompleteJoin, detail)
    })
}

/// The numbers of files, by what is otherwise equal in their names; `None` if a name has no number.
fn numbers(names: &[&str]) -> Option<BTreeMap<String, BTreeSet<u64>>> {
    let mut all: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
    for name in names {
        let family = family(name);
        let (before, after) = family.rsplit_once('*')?;
        let number = name.strip_prefix(before)?.strip_suffix(after)?.parse().ok()?;
        all.entry(family).or_default().insert(number);
    }
    Some(all)
}

/// The command that compares the two benchmarks of a single result; `None` if it does not have exactly two.
pub fn split_command(path: &str, run: &Run) -> Option<String> {
    let [base, head] = run.benchmarks.as_slice() else { return None };
    let only = |name: &str| shell_word(format!("^{}$", escape(name)));
    Some(format!(
        "benchgate compare {} --base-filter {} --head-filter {}",
        shell_word(path),
        only(base.name.as_str()),
        only(head.name.as_str())
    ))
}

/// Notes about two results that were probably not meant to be compared like this.
pub fn notes(base: &Run, head: &Run) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(same_file(base, head));
    if let (Some(before), Some(after)) = (measured(base), measured(head))
        && before.duration_since(after) >= NOT_TOGETHER
        // The two sides of a run or session are measured alternately, so it doesn't matter which one came
        // first.
        && (base.session.is_none() || base.session != head.session)
        && !(has_several_sessions(base) && has_several_sessions(head))
    {
        notes.push(format!(
            "base was measured after head ({before} and {after}). The first argument is the base: if it is \
            the new program, swap the arguments"
        ));
    }
    notes.extend(rename_note(base, head));
    notes
}

/// A note if one file was given for both sides. If it has two benchmarks, the note includes the command that
/// compares them.
fn same_file(base: &Run, head: &Run) -> Option<String> {
    let names = |run: &Run| run.benchmarks.iter().map(|benchmark| benchmark.name.clone()).collect::<Vec<_>>();
    let file = &head.origin.label;
    // benchgate's own format can contain both sides in one file.
    let is_own = head.origin.format.starts_with("benchgate/");
    if is_own || file.is_empty() || base.origin.label != *file || names(base) != names(head) {
        return None;
    }
    let command = split_command(file, head)
        .map_or_else(String::new, |command| format!("; to compare its two benchmarks: `{command}`"));
    Some(format!("{file} was given for both sides{command}"))
}

fn has_several_sessions(run: &Run) -> bool {
    run.benchmarks.iter().flat_map(|benchmark| &benchmark.metrics).any(|metric| match &metric.series {
        Series::Processes(processes) => processes.iter().any(|process| process.session > 0),
        Series::Summaries(summaries) => summaries.iter().any(|summary| summary.session > 0),
        Series::Exact(_) => false,
    })
}

/// The time at which the tool measured, to the second.
fn measured(run: &Run) -> Option<jiff::Timestamp> {
    let date = run.context.date.as_deref()?;
    let known = date.parse::<jiff::Timestamp>().or_else(|_| {
        // A time without a zone is treated as UTC. It only makes sense to compare it with one from the same
        // machine.
        date.parse::<jiff::civil::DateTime>()
            .and_then(|time| time.to_zoned(jiff::tz::TimeZone::UTC))
            .map(|time| time.timestamp())
    });
    known.ok().and_then(|time| jiff::Timestamp::from_second(time.as_second()).ok())
}

/// Proposes `--rename` if both sides have unmatched benchmarks, with the names if it can guess them.
fn rename_note(base: &Run, head: &Run) -> Option<String> {
    let names = |run: &Run| -> HashSet<String> {
        run.benchmarks.iter().map(|benchmark| benchmark.name.to_string()).collect()
    };
    let (in_base, in_head) = (names(base), names(head));
    let mut lost: Vec<&String> = in_base.difference(&in_head).collect();
    let mut new: Vec<&String> = in_head.difference(&in_base).collect();
    if lost.is_empty() || new.is_empty() {
        return None;
    }
    lost.sort();
    new.sort();
    let is_short = lost.len().max(new.len()) <= MOST_NAMES;
    let pairs = if is_short { likely_renames(&lost, &new) } else { Vec::new() };
    let first = || pairs.first().map(|(from, to)| ((*from).to_owned(), (*to).to_owned()));
    let example = pattern(&pairs).or_else(first);
    let option = example.map_or_else(
        || "--rename OLD NEW".to_owned(),
        |(from, to)| format!("--rename {} {}", shell_word(from), shell_word(to)),
    );
    Some(format!(
        "only in base: {}; only in head: {}; if one was renamed, add `{option}`",
        counted(lost.len(), "benchmark"),
        counted(new.len(), "benchmark"),
    ))
}

/// Returns each lost name with the most similar new name, unless another lost name is as similar to that one.
fn likely_renames<'a>(lost: &[&'a String], new: &[&'a String]) -> Vec<(&'a str, &'a str)> {
    if let ([from], [to]) = (lost, new) {
        return vec![(from, to)];
    }
    let best = |name: &String, others: &[&'a String]| -> Option<&'a str> {
        let alike = |other: &str| if differ_in_one_part(name, other) { shared_ends(name, other) } else { 0 };
        let most = others.iter().map(|other| alike(other)).max().filter(|most| *most > 0)?;
        let mut found = others.iter().filter(|other| alike(other) == most);
        let one = found.next()?;
        found.next().is_none().then_some(one.as_str())
    };
    let is_mutual =
        |from: &str, to: &&'a str| new.iter().any(|name| name == to && best(name, lost) == Some(from));
    lost.iter()
        .filter_map(|from| Some((from.as_str(), best(from, new).filter(|to| is_mutual(from, to))?)))
        .collect()
}

/// The number of characters that two names share at their beginnings and ends.
fn shared_ends(one: &str, two: &str) -> usize {
    let prefix = one.chars().zip(two.chars()).take_while(|(a, b)| a == b).count();
    let shorter = one.chars().count().min(two.chars().count());
    let suffix = one.chars().rev().zip(two.chars().rev()).take_while(|(a, b)| a == b).count();
    prefix + suffix.min(shorter - prefix)
}

/// The parts of a name, each including the separator before it.
fn parts(name: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    for (at, _) in name.match_indices(|c: char| !c.is_alphanumeric()) {
        parts.push(&name[start..at]);
        start = at;
    }
    parts.push(&name[start..]);
    parts
}

fn differ_in_one_part(one: &str, two: &str) -> bool {
    let (one, two) = (parts(one), parts(two));
    one.len() == two.len() && one.iter().zip(&two).filter(|(one, two)| one != two).count() == 1
}

/// A pair of patterns that renames all pairs of names; `None` if there are fewer than two pairs.
fn pattern(pairs: &[(&str, &str)]) -> Option<(String, String)> {
    let [(first_from, first_to), (_, _), ..] = pairs else { return None };
    let common = |names: &dyn Fn(&(&str, &str)) -> String, first: &str| {
        let shared =
            |length: &dyn Fn(&str) -> usize| pairs.iter().map(|pair| length(&names(pair))).min().unwrap_or(0);
        let prefix = shared(&|name| name.chars().zip(first.chars()).take_while(|(a, b)| a == b).count());
        let suffix =
            shared(&|name| name.chars().rev().zip(first.chars().rev()).take_while(|(a, b)| a == b).count());
        let letters: Vec<char> = first.chars().collect();
        let suffix = suffix.min(letters.len().saturating_sub(prefix));
        let text = |letters: &[char]| letters.iter().collect::<String>();
        format!("{}*{}", text(&letters[..prefix]), text(&letters[letters.len() - suffix..]))
    };
    let from = common(&|(from, _)| (*from).to_owned(), first_from);
    let to = common(&|(_, to)| (*to).to_owned(), first_to);
    pairs
        .iter()
        .all(|(before, after)| renamed(before, &from, &to).as_deref() == Some(*after))
        .then_some((from, to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Benchmark, Metric, MetricSeries, Origin, Process};

    fn run(names: &[&str]) -> Run {
        Run { benchmarks: names.iter().map(|name| Benchmark::new(*name)).collect(), ..Run::default() }
    }

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
    fn names_of_the_sides_in_the_wrong_order_are_swapped() {
        for (first, second) in [
            ("head.json", "base.json"),
            ("results/head", "results/base"),
            ("'head-*.json'", "'base-*.json'"),
            ("New/a.json", "old/a.json"),
            ("new/head-1.json", "old/base-1.json"),
        ] {
            assert!(are_swapped(first, second), "{first} {second}");
            assert!(!are_swapped(second, first), "{second} {first}");
        }
        for (first, second) in [
            ("run.json#head", "run.json#base"),
            ("renew.json", "reold.json"),
            ("new/base.json", "old/head.json"),
            ("head.json", "head.json"),
            ("head-1.json", "base-2.json"),
            ("head/a.json", "base/b.json"),
        ] {
            assert!(!are_swapped(first, second), "{first} {second}");
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
        // Sides that are numbered otherwise, that have another number of files, or of which base lacks a file.
        for (base, head) in
            [(&[1, 3, 5][..], &[2, 4, 6][..]), (&[1, 2, 3], &[1, 2]), (&[1, 3], &[1, 2, 3]), (&[1], &[1])]
        {
            assert_eq!(lost(base, head), None);
        }
    }

    #[test]
    fn names_without_a_partner_propose_a_rename() {
        let note = |base: &[&str], head: &[&str]| rename_note(&run(base), &run(head));
        let one = note(&["./p0", "same"], &["./p20", "same"]).unwrap();
        assert!(one.contains("`--rename ./p0 ./p20`"), "{one}");
        let many = note(&["old/64/x", "old/8/x"], &["new/64/x", "new/8/x"]).unwrap();
        assert!(many.contains("`--rename 'old/*/x' 'new/*/x'`"), "{many}");
        let alike = note(&["./p0", "./q0", "same"], &["./p1", "./q1", "same"]).unwrap();
        assert!(alike.contains("`--rename './*0' './*1'`"), "{alike}");
        let unlike = note(&["a", "b", "same"], &["c/d", "e/f", "same"]).unwrap();
        assert!(unlike.contains("`--rename OLD NEW`"), "{unlike}");
        let only = note(&["a", "same"], &["a/b", "same"]).unwrap();
        assert!(only.contains("`--rename a a/b`"), "{only}");
        assert_eq!(note(&["a"], &["a", "new"]), None);
        assert_eq!(note(&["a"], &["a"]), None);
    }

    #[test]
    fn files_of_a_side_that_took_turns_with_the_other_side_s_are_in_no_order() {
        let made = |sessions: u32, date: &str| {
            let mut run = run(&["a"]);
            let process = |session| Process { samples: vec![1.0], session, ..Process::default() };
            let series = Series::Processes((0..sessions).map(process).collect());
            run.benchmarks[0].metrics.push(MetricSeries { metric: Metric::LATENCY, series });
            run.context.date = Some(date.to_owned());
            run
        };
        let (first, soon, later) = ("2026-11-20T10:00:00Z", "2026-11-20T10:00:05Z", "2026-11-20T10:20:00Z");
        assert_eq!(notes(&made(21, later), &made(21, first)), Vec::<String>::new());
        assert_eq!(notes(&made(1, soon), &made(1, first)), Vec::<String>::new());
        let expected = "base was measured after head (2026-11-20T10:20:00Z and 2026-11-20T10:00:00Z). The first \
            argument is the base: if it is the new program, swap the arguments";
        assert_eq!(notes(&made(1, later), &made(1, first)), [expected]);
    }

    #[test]
    fn a_base_that_is_newer_is_mentioned() {
        let made = |format: &str, date: &str| {
            let mut run = run(&["a"]);
            run.origin = Origin { format: format.to_owned(), ..Origin::default() };
            run.context.date = Some(date.to_owned());
            run
        };
        let old = made("google-benchmark-json", "2026-11-20T10:00:00+01:00");
        let new = made("google-benchmark-csv", "2026-11-21T10:00:00+01:00");
        assert_eq!(notes(&old, &new), Vec::<String>::new());
        assert_eq!(notes(&new, &old).len(), 1);
    }
}
