//! Guesses at what the user meant when two results don't fit together: one sentence each, with the command to
//! use.

use std::collections::HashSet;

use regex::escape;

use crate::model::{Run, Series, counted, name_parts, shell_word};

use super::select::renamed;

/// Results measured less than this apart belong to one comparison, in which either side may come first.
const NOT_TOGETHER: jiff::SignedDuration = jiff::SignedDuration::from_mins(5);

/// The maximum number of unmatched names that are compared with each other; more would take too long.
const MOST_NAMES: usize = 200;

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

fn differ_in_one_part(one: &str, two: &str) -> bool {
    let (one, two) = (name_parts(one), name_parts(two));
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
