//! Google Benchmark's output, from every version of iree-benchmark-module.

mod console;
mod counters;
mod csv;
mod json;
mod label_text;
mod labels;
mod pieces;
mod rows;
mod summaries;

pub(super) use console::{is_header as is_console_header, read as read_console};
pub(super) use counters::counter_metric;
pub use counters::metric_name;
pub(super) use csv::{HEADER as CSV_HEADER, read as read_csv};
pub(super) use json::{TESTBED, read as read_json};
pub(super) use label_text::{UNNAMED, fixed_words, numbers};
pub(super) use labels::{AXES, Axes};
pub(super) use pieces::read as read_pieces;

use std::borrow::Cow;

use benchgate_core::model::{Context, Testbed, excerpt};

use super::build::testbed;

/// The unit of a row's two time columns.
#[derive(Debug, Clone, PartialEq)]
enum TimeUnit<'a> {
    /// Nanoseconds in one unit.
    Known(f64),
    /// The columns hold a ratio (`_cv`, `_RMS`) and not a time; the number is the ratio that a value of 1 in
    /// this unit represents.
    Ratio(f64),
    Unknown(Cow<'a, str>),
}

/// The tool's units of time, with their nanoseconds.
const UNITS: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];

impl<'a> TimeUnit<'a> {
    fn parse(name: Cow<'a, str>) -> Self {
        match UNITS.iter().find(|(unit, _)| *unit == name) {
            Some((_, factor)) => Self::Known(*factor),
            None if name == "%" => Self::Ratio(0.01),
            None => Self::Unknown(name),
        }
    }

    /// Returns the name of the unit of this many nanoseconds.
    fn name(factor: f64) -> &'static str {
        UNITS.iter().find(|unit| unit.1 == factor).map_or("the file's unit", |unit| unit.0)
    }
}

/// Adds the facts about the host in one line that the tool prints above its rows, on the console and with CSV; other lines
/// are skipped.
fn read_line(line: &str, context: &mut Context) {
    let line = line.trim();
    if let Some(executable) = line.strip_prefix("Running ") {
        context.executable = Some(executable.to_owned());
    } else if let Some(host) = line.strip_prefix("Run on (") {
        // `Run on (128 X 3799.07 MHz CPU s)`
        let mut words = host.split_ascii_whitespace();
        context.num_cpus = words.next().and_then(|count| count.parse().ok());
        context.mhz_per_cpu =
            words.nth(1).and_then(|mhz| mhz.parse().ok()).filter(|mhz: &f64| mhz.is_finite());
    } else if let Some(loads) = line.strip_prefix("Load Average:") {
        let loads = loads.split(',').map_while(|load| load.trim().parse().ok());
        context.load_avg = loads.filter(|load: &f64| load.is_finite()).take(3).collect();
    } else if let Some(warning) = line.strip_prefix("***WARNING***") {
        if warning.contains("CPU scaling is enabled") {
            context.cpu_scaling_enabled = Some(true);
        } else if warning.contains("Library was built as DEBUG") {
            context.library_build_type = Some("debug".to_owned());
        } else if warning.contains("ASLR is enabled") {
            context.aslr_enabled = Some(true);
        }
    } else if context.date.is_none() && is_date(line) {
        context.date = Some(line.to_owned());
    }
}

/// Describes a cache by its level, its kind and its size in bytes.
fn cache(level: f64, kind: &str, size: f64) -> String {
    format!("L{level} {} {size} bytes", excerpt(kind, 40))
}

/// Returns the machine with these caches.
fn of_caches(caches: &[String]) -> Option<Testbed> {
    let facts = (!caches.is_empty()).then(|| ("caches".to_owned(), caches.join(", ")));
    testbed(facts.into_iter().collect())
}

/// Returns whether a line is a date: `2024-05-07T21:09:15-05:00`, or `2017-03-01 10:00:00` in old releases.
fn is_date(line: &str) -> bool {
    let bytes = line.as_bytes();
    (19..=25).contains(&bytes.len())
        && bytes[..4].iter().all(u8::is_ascii_digit)
        && bytes[4] == b'-'
        && bytes[7] == b'-'
        && matches!(bytes[10], b'T' | b' ')
        && bytes[13] == b':'
}
