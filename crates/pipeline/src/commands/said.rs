//! The text that a process timed as a whole printed, as far as it must be the same on both sides.

use benchgate_core::model::{ANY_TEXT, Quality, SILENT, digest_of, excerpt, is_hash, is_in};

/// Names of days and months, by their first three letters, and units of time.
const OF_DATES: &str = "Mon Tue Wed Thu Fri Sat Sun Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec";
const OF_TIMES: &str = "ns us µs ms s sec secs second seconds min mins minutes h hours";

/// Returns what a process printed, without what is not the same on both sides, or in any two runs, although the program
/// does the same: paths, versions, hashes, times, and, in a line with a date, every number that is no result. A program
/// that failed without an error may print nothing, or another text than base's.
pub(super) fn said(printed: &str) -> String {
    const LONGEST: usize = 60;
    let is_digit = |c: char| c.is_ascii_digit();
    // In lower case, `may` and `sun` are words.
    let is_name = |word: &str| word.len() == 3 && is_in(OF_DATES, word);
    let is_clock = |word: &str| {
        word.contains([':', '-'])
            && word.starts_with(is_digit)
            && word.chars().all(|c| is_digit(c) || "-:.,TZ".contains(c))
    };
    let dates = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        is_name(word) || is_clock(word)
    };
    let is_dated = |line: &str| line.split_whitespace().any(dates);
    let is_of_date = |word: &str| dates(word) || ["AM", "PM", "am", "pm"].contains(&word);
    let bare = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_owned();
    // `checksum: 9f86d081`, but not `commit 9f86d081`.
    let is_checksum = |words: &[&str], at: usize| {
        let assigned = words[at].rsplit_once(['=', ':']).map(|(name, _)| name);
        let before = words[..at].iter().rev().copied().find(|word| word.contains(char::is_alphanumeric));
        [assigned, before]
            .into_iter()
            .flatten()
            .any(|name| Quality::is_checksum(name.trim_matches(|c: char| !c.is_alphanumeric())))
    };
    let is_kept = |word: &str, next: Option<&&str>| {
        let bare = bare(word);
        let is_version = bare.split('.').count() > 2
            || bare.strip_prefix('v').is_some_and(|rest| rest.starts_with(is_digit));
        let unit = bare.trim_start_matches(|c: char| is_digit(c) || c == '.');
        let next = next.map(|next| next.trim_matches(|c: char| !c.is_alphanumeric()));
        let is_number = unit.is_empty() && !bare.is_empty();
        let is_time = bare.starts_with(is_digit) && is_in(OF_TIMES, unit)
            || is_number && next.is_some_and(|next| is_in(OF_TIMES, next));
        // `3/10 tiles`, but no path
        let is_fraction =
            word.contains('/') && bare.split('/').all(|part| !part.is_empty() && part.chars().all(is_digit));
        (is_fraction || !word.contains(['/', '\\'])) && !is_hash(&bare) && !is_version && !is_time
    };
    let of_line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_said = |at: &usize| is_kept(words[*at], words.get(at + 1)) || is_checksum(&words, *at);
        // A date, a process or a count of steps, but not `accuracy 0.93`
        let is_result = |at: usize| {
            let name = words[..=at].iter().rev().flat_map(|word| word.rsplit(['=', ':']));
            let mut names = name.filter(|part| part.contains(char::is_alphabetic));
            names.next().is_some_and(|name| Quality::of_name(name).is_some())
        };
        let is_dated = is_dated(line);
        let counts = |at: &usize| {
            !is_dated || !is_of_date(words[*at]) && (is_result(*at) || !words[*at].contains(is_digit))
        };
        let kept = (0..words.len()).filter(is_said).filter(counts).map(|at| words[at]);
        kept.collect::<Vec<_>>().join(" ")
    };
    let lines: Vec<String> = printed.lines().map(of_line).collect();
    match lines.join(" ").trim() {
        _ if printed.trim_ascii().is_empty() => SILENT.to_owned(),
        "" => ANY_TEXT.to_owned(),
        text if text.chars().count() <= LONGEST => text.to_owned(),
        text => format!("{} (SHA-256 {})", excerpt(text, LONGEST), &digest_of([text])[..12]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_kept_and_dates_places_and_times_are_not() {
        for (line, kept) in [
            ("verified 3/10 tiles", "verified 3/10 tiles"),
            ("read /tmp/a/10 in 3.5 ms", "read in ms"),
            ("2026-11-30 11:00:01 INFO accuracy 0.93", "INFO accuracy 0.93"),
            ("2026-11-30 11:00:01,123 [4711] INFO step 12 of 100 loss=0.5", "INFO step of loss=0.5"),
            ("accuracy: 0.93 (2026-11-30)", "accuracy: 0.93"),
            ("loss 0.5 [11:00:01]", "loss 0.5"),
            ("Mon Nov 30 11:00:01 PM UTC 2026", "UTC"),
            ("checksum: 9f86d081, commit 9f86d081", "checksum: 9f86d081, commit"),
            ("v1.2.3 done", "done"),
        ] {
            assert_eq!(said(line), kept, "{line}");
        }
        assert_eq!([said(" "), said("11:00:01")], [SILENT, ANY_TEXT]);
    }
}
