//! The table that Google Benchmark prints for people, as logs and notes contain it.
//!
//! `name  time unit  cpu unit  iterations  [counter=value …] [label]`. Names may contain spaces, so a row is
//! recognized by its five middle words. Lines outside a table belong to other programs. A line inside a table
//! that looks like an incomplete row is an error.

use std::borrow::Cow;
use std::collections::BTreeSet;

use benchgate_core::model::{Lint, LintCode, Run, without_colors};

use super::super::text::{Line, lines};
use super::super::{LineFault, line_fault};
use super::counters::{Counters, TableHeader};
use super::rows::{Families, GoogleBenchmarkRow};
use super::summaries::Instance;
use super::{TimeUnit, cache, of_caches};

/// Returns whether this line is the header of a table.
pub(crate) fn is_header(line: &str) -> bool {
    let mut words = line.split_ascii_whitespace();
    words.next() == Some("Benchmark")
        && words.next() == Some("Time")
        && words.next() == Some("CPU")
        && matches!(words.next(), None | Some("Iterations"))
}

/// Reads every table in the text.
pub(crate) fn read(text: &str) -> Result<Run, LineFault> {
    let mut run = Run::default();
    let mut families = Families::default();
    let mut unread: Option<(u64, u64)> = None;
    let mut table: Option<TableHeader> = None;
    let mut tables = 0;
    let mut devices = BTreeSet::new();
    let mut caches = Vec::new();
    for line in lines(text) {
        let plain = without_colors(line.text);
        if is_header(&plain) {
            tables += 1;
            table = Some(TableHeader::parse(&plain));
            continue;
        }
        let Some(header) = &table else {
            super::read_line(&plain, &mut run.context);
            caches.extend(printed_cache(&plain).filter(|_| tables == 0));
            devices.extend(device(&plain));
            continue;
        };
        let trimmed = plain.trim();
        if trimmed.is_empty() || trimmed.starts_with("```") {
            table = None;
        } else if trimmed.bytes().all(|byte| byte == b'-') {
        } else if let Some(mut row) = read_row(trimmed, header) {
            row.instance = Instance::of_table(tables);
            families.push(&mut row);
            if !line.terminated {
                families.mark_last_as_cut();
            }
        } else if looks_like_row(trimmed) || !line.terminated {
            return Err(incomplete(line));
        } else {
            let (_, count) = unread.unwrap_or((line.number, 0));
            unread = Some((unread.map_or(line.number, |(first, _)| first), count + 1));
        }
    }
    if tables == 0 {
        return Err(line_fault(1, "it has no Google Benchmark table"));
    }
    if let Some((first, count)) = unread {
        run.lints.push(Lint::new(LintCode::UnreadLine, format!("{count} lines, the first is line {first}")));
    }
    run.testbed = of_caches(&caches);
    run.benchmarks = families.finish();
    // If one text has commands for several devices, it is not known which table belongs to which device.
    if let (1, Some(device)) = (devices.len(), devices.first()) {
        for benchmark in &mut run.benchmarks {
            benchmark.labels.entry("device".to_owned()).or_insert_with(|| device.clone());
        }
    }
    Ok(run)
}

/// Reads `  L1 Data 32 KiB (x8)`, or `32K` in old releases.
fn printed_cache(line: &str) -> Option<String> {
    let mut words = line.trim().strip_prefix('L')?.split_ascii_whitespace();
    let (level, kind, size) = (words.next()?.parse().ok()?, words.next()?, words.next()?);
    let digits = size.trim_end_matches('K');
    let is_size = digits.len() < size.len() || words.next() == Some("KiB");
    let size: f64 = digits.parse().ok().filter(|_| is_size)?;
    Some(cache(level, kind, 1024.0 * size))
}

/// Returns the device in a command line that was pasted with a table.
fn device(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("--device=")?;
    let device: String =
        rest.chars().take_while(|c| c.is_ascii_alphanumeric() || "-_:/.".contains(*c)).collect();
    (!device.is_empty()).then_some(device)
}

fn incomplete(line: Line<'_>) -> LineFault {
    line_fault(line.number, "an incomplete row")
}

/// Returns whether a line has a name and a time, but not the rest of a row.
fn looks_like_row(line: &str) -> bool {
    let mut words = line.split_ascii_whitespace().skip(1);
    let number = words.next().is_some_and(|word| word.parse::<f64>().is_ok());
    number && words.next().is_some_and(|word| matches!(word, "ns" | "us" | "ms" | "s" | "%"))
}

fn read_row(line: &str, header: &TableHeader) -> Option<GoogleBenchmarkRow<'static>> {
    if let Some(row) = not_measured(line) {
        return Some(row);
    }
    let words: Vec<(usize, &str)> = words(line).collect();
    let at = (1..words.len()).find(|&at| is_middle(words[at - 1].1, &words[at..]))?;
    let name = line[..words[at].0].trim_end().to_owned();
    let time = words[at].1;
    let rest = words.get(at + 4).map_or("", |(start, iterations)| &line[start + iterations.len()..]);
    let Counters { counters, label } = header.read(rest);
    let count: Option<f64> = words.get(at + 4).and_then(|(_, word)| word.parse().ok());
    Some(GoogleBenchmarkRow {
        family: Cow::Owned(name),
        real: time.parse().ok()?,
        cpu: words[at + 2].1.parse().ok(),
        unit: TimeUnit::parse(Cow::Owned(words[at + 1].1.to_owned())),
        count,
        iterations: count.unwrap_or(f64::NAN),
        label: label.map(|label| Cow::Owned(label.to_owned())),
        counters: counters.into_iter().map(|(name, value)| (Cow::Owned(name.to_owned()), value)).collect(),
        ..GoogleBenchmarkRow::default()
    })
}

/// Returns whether the words after a name are time, unit, time, unit, iterations; a fit (`_BigO`, `_RMS`) has a function
/// in place of its unit, and no iterations, but may have its benchmark's label.
fn is_middle(name: &str, words: &[(usize, &str)]) -> bool {
    let word = |at: usize| words.get(at).map_or("", |(_, word)| word);
    let numbers = word(0).parse::<f64>().is_ok() && word(2).parse::<f64>().is_ok();
    let iterations = !word(4).is_empty() && word(4).bytes().all(|byte| byte.is_ascii_digit());
    // A unit consists of letters only, or is a percent sign; whether the unit is known is checked with the
    // row.
    let unit = |unit: &str| unit == "%" || unit.bytes().all(|byte| byte.is_ascii_alphabetic());
    let is_fit_name = name.ends_with("_BigO") || name.ends_with("_RMS");
    let fit = (words.len() == 4 || is_fit_name) && word(1) == word(3) && is_fit_unit(word(1));
    numbers && (fit || (iterations && unit(word(1)) && unit(word(3))))
}

fn is_fit_unit(unit: &str) -> bool {
    matches!(unit, "%" | "(1)" | "N" | "N^2" | "N^3" | "lgN" | "NlgN" | "f(N)")
}

/// Reads `NAME ERROR OCCURRED: 'why'` and `NAME SKIPPED: 'why'`.
fn not_measured(line: &str) -> Option<GoogleBenchmarkRow<'static>> {
    let (name, error, why) = match (line.split_once("ERROR OCCURRED:"), line.split_once("SKIPPED:")) {
        (Some((name, why)), _) => (name, true, why),
        (None, Some((name, why))) => (name, false, why),
        (None, None) => return None,
    };
    let name = name.trim();
    if name.is_empty() {
        return None;
    }
    let why = Some(Cow::Owned(why.trim().trim_matches('\'').to_owned()));
    let family = Cow::Owned(name.to_owned());
    Some(if error {
        GoogleBenchmarkRow { family, error: why, ..GoogleBenchmarkRow::default() }
    } else {
        GoogleBenchmarkRow { family, skipped: why, ..GoogleBenchmarkRow::default() }
    })
}

/// Returns the words of a line with the byte at which each starts.
fn words(line: &str) -> impl Iterator<Item = (usize, &str)> {
    line.split_ascii_whitespace().map(move |word| (word.as_ptr() as usize - line.as_ptr() as usize, word))
}
