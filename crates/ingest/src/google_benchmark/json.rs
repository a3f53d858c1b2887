//! Google Benchmark JSON (`--benchmark_format=json`, `--benchmark_out`), read in one pass that builds only
//! what is kept: a file of 100,000 rows costs one scan and 16 bytes per row.

use std::borrow::Cow;

use benchgate_core::model::{Context, Run, Testbed, is_in, name_words, words};

use super::super::facts::{failure, is_commit, shared};
use super::super::json_scan::{Scan, Scanner};
use super::super::{BoxedFault, document, fault};
use super::counters::MAX_COUNTERS;
use super::labels::{AXES, Axes, StatedLabels};
use super::rows::{Families, GoogleBenchmarkRow, RowKind};
use super::summaries::{Instance, Statistic};
use super::{TimeUnit, cache, of_caches};

/// Reads the whole file into context and benchmarks.
pub(crate) fn read(text: &str) -> Result<Run, BoxedFault> {
    let mut json = Scanner::new(text);
    let mut run = Run::default();
    let mut families = Families::default();
    let mut seen_benchmarks = false;
    json.begin_object()?;
    let mut first = true;
    while let Some(key) = json.next_key(&mut first)? {
        match key.as_ref() {
            "context" => families.stated = context(&mut json, &mut run)?,
            "benchmarks" if seen_benchmarks => return Err(second_list(&json)),
            "benchmarks" => {
                seen_benchmarks = true;
                let (mut row, mut layout) = (GoogleBenchmarkRow::default(), KeyLayout::default());
                json.begin_array()?;
                let mut first = true;
                while json.next_item(&mut first)? {
                    if read_row(&mut json, &mut row, &mut layout)? {
                        families.push(&mut row);
                    }
                }
            }
            key => document::add(&mut run.lints, document::read_field(&mut json, key)?),
        }
    }
    json.end()?;
    if !seen_benchmarks {
        return Err(fault(json.at(), "`benchmarks` is missing"));
    }
    run.benchmarks = families.finish();
    Ok(run)
}

/// Returns the fault for a second list. A second list is rejected because some readers use the first of two
/// lists and others the last.
pub(super) fn second_list(json: &Scanner<'_>) -> BoxedFault {
    fault(json.at(), "`benchmarks` appears twice")
}

/// Context key under which a file that benchgate wrote describes its machine: a testbed as JSON text.
pub(crate) const TESTBED: &str = "benchgate_testbed";
/// Reads the context, and adds to the run what it states about the program and the machine.
pub(super) fn context(json: &mut Scanner<'_>, run: &mut Run) -> Scan<StatedLabels> {
    let (mut context, mut named, mut caches, mut commit) = (Context::default(), None, None, None);
    let (mut axes, mut fields) = (Axes::default(), Vec::new());
    json.begin_object()?;
    let mut first = true;
    while let Some(key) = json.next_key(&mut first)? {
        match key.as_ref() {
            "date" => context.date = Some(json.string()?.into_owned()),
            "host_name" => context.host_name = Some(json.string()?.into_owned()),
            "executable" => context.executable = Some(json.string()?.into_owned()),
            "num_cpus" => {
                let count = json.number()?;
                context.num_cpus =
                    (count.fract() == 0.0 && (1.0..1e6).contains(&count)).then_some(count as u32);
            }
            "mhz_per_cpu" => {
                context.mhz_per_cpu = Some(json.number()?).filter(|mhz| mhz.is_finite() && *mhz > 0.0)
            }
            "cpu_scaling_enabled" => context.cpu_scaling_enabled = Some(json.boolean()?),
            "aslr_enabled" => context.aslr_enabled = Some(json.boolean()?),
            "library_build_type" => context.library_build_type = Some(json.string()?.into_owned()),
            "library_version" => context.library_version = Some(json.string()?.into_owned()),
            "caches" => caches = machine(json)?,
            "load_avg" => context.load_avg = load_averages(json)?,
            TESTBED => {
                let text = json.string()?;
                let read = serde_json::from_str(&text);
                named = Some(read.map_err(|error| fault(json.at(), format!("`{TESTBED}`: {error}")))?);
            }
            AXES => {
                let read = serde_json::from_str(&json.string()?);
                axes = read.map_err(|error| fault(json.at(), format!("`{AXES}`: {error}")))?;
            }
            "json_schema_version" => json.skip()?,
            // The user's own context (`--benchmark_context=commit=…`).
            key if is_commit(key) && json.peek()? == b'"' => {
                let stated = json.string()?.into_owned();
                commit = commit.or(Some(stated).filter(|stated| !stated.is_empty()));
            }
            _ => match json.peek()? {
                b'"' => {
                    let value = json.string()?.into_owned();
                    if !(is_reading(&key) && value.starts_with(|c: char| c.is_ascii_digit())) {
                        fields.push((key.into_owned(), value));
                    }
                }
                b't' | b'f' => fields.push((key.into_owned(), json.boolean()?.to_string())),
                b'[' => {
                    let start = json.at();
                    json.skip()?;
                    let list = json.taken_since(start).trim();
                    let stated = document::finding(&key, list);
                    // Other lists are measurements.
                    let is_fact = !is_reading(&key)
                        && list.len() <= LONGEST_LIST
                        && list.contains(|c: char| c.is_alphanumeric());
                    if is_fact && stated.is_none() && !list.contains(['{', '.']) {
                        fields.push((key.into_owned(), list.to_owned()));
                    }
                    document::add(&mut run.lints, stated);
                }
                b'-' | b'0'..=b'9' if is_reading(&key) => json.skip()?,
                b'-' | b'0'..=b'9' => fields.push((key.into_owned(), json.number()?.to_string())),
                _ => document::add(&mut run.lints, document::read_field(json, &key)?),
            },
        }
    }
    (run.context, run.testbed, run.commit) = (context, named.or(caches), commit);
    Ok(StatedLabels { axes, fields: shared(fields).map_err(|what| fault(json.at(), what))? })
}

/// Returns whether a number with this name is a reading of the machine: `mem_free`, but not `temperature`, which can be a setting.
fn is_reading(key: &str) -> bool {
    const READINGS: &str =
        "free available memavailable affinity uptime temp temperature load used freq frequency mhz ghz";
    const OF_MACHINE: &str =
        "cpu gpu mem memory ram swap disk core host avg average c celsius kb mb gb percent";
    let lower = name_words(key);
    let words = words(&lower);
    let is_known = words.iter().all(|word| is_in(READINGS, word) || is_in(OF_MACHINE, word))
        && words.iter().any(|word| is_in(READINGS, word));
    let is_clear = words.len() > 1 || is_in("memavailable affinity uptime load", &lower);
    is_known && is_clear
}

/// Maximum number of bytes of a list that is a fact.
const LONGEST_LIST: usize = 256;

/// Reads the machine, identified by the sizes of its caches: except for the number of processors, the tool
/// states nothing else about it.
fn machine(json: &mut Scanner<'_>) -> Scan<Option<Testbed>> {
    /// Maximum number of caches; processors have fewer.
    const MOST: usize = 32;
    if json.peek()? != b'[' {
        return json.skip().map(|()| None);
    }
    let mut caches = Vec::new();
    json.begin_array()?;
    let mut first = true;
    while json.next_item(&mut first)? {
        let (mut level, mut kind, mut size) = (None, None, None);
        json.begin_object()?;
        let mut first = true;
        while let Some(key) = json.next_key(&mut first)? {
            match key.as_ref() {
                "level" => level = number_or_skip(json)?,
                "size" => size = number_or_skip(json)?,
                "type" if json.peek()? == b'"' => kind = Some(json.string()?.into_owned()),
                _ => json.skip()?,
            }
        }
        if let (Some(level), Some(kind), Some(size)) = (level, kind, size)
            && caches.len() < MOST
        {
            caches.push(cache(level, &kind, size));
        }
    }
    Ok(of_caches(&caches))
}

/// Reads load averages. The kernel reports three, so a longer list has another origin.
fn load_averages(json: &mut Scanner<'_>) -> Scan<Vec<f64>> {
    let mut values = Vec::new();
    json.begin_array()?;
    let mut first = true;
    while json.next_item(&mut first)? {
        let value = json.number()?;
        if values.len() == 3 {
            return Err(fault(json.at(), "more than three load averages"));
        }
        values.push(value);
    }
    Ok(values)
}

/// The keys that a row may have only once.
#[derive(Debug, Clone, Copy, strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str)]
enum Key {
    Name,
    RunName,
    RunType,
    RepetitionIndex,
    Repetitions,
    RealTime,
    CpuTime,
    TimeUnit,
    AggregateName,
    ErrorOccurred,
    ErrorMessage,
    Skipped,
    SkipMessage,
    Label,
}

/// Returns whether the tool writes a key that benchgate does not need; a user's counter can't have these
/// names.
fn is_bookkeeping(key: &str) -> bool {
    matches!(key, "aggregate_unit" | "big_o" | "cpu_coefficient" | "real_coefficient" | "rms")
}

/// The meaning of a row's key.
#[derive(Clone)]
enum Meaning<'a> {
    Known(Key),
    Iterations,
    Family,
    InFamily,
    Threads,
    Bookkeeping,
    Counter(Cow<'a, str>),
}

/// The spelling of previous rows: for each key, all bytes from the end of the previous value to the start of
/// the key, and the meaning of the key. A tool writes all rows alike, so comparing these bytes replaces
/// scanning white space, key and colon, which make up most of a file.
#[derive(Default)]
pub(super) struct KeyLayout<'a> {
    keys: Vec<(&'a str, Meaning<'a>)>,
}

impl<'a> KeyLayout<'a> {
    /// Maximum number of remembered keys, which is more than the tool writes; the rest of a longer row is
    /// scanned.
    const LONGEST: usize = 64;

    /// Returns the next key of a row after `taken` keys.
    #[inline]
    fn next_key(&mut self, json: &mut Scanner<'a>, taken: usize) -> Scan<Option<Meaning<'a>>> {
        if let Some((bytes, meaning)) = self.keys.get(taken)
            && json.take_again(bytes)
        {
            return Ok(Some(meaning.clone()));
        }
        self.learn_key(json, taken)
    }

    fn learn_key(&mut self, json: &mut Scanner<'a>, taken: usize) -> Scan<Option<Meaning<'a>>> {
        let start = json.at();
        let Some(key) = json.next_key(&mut (taken == 0))? else { return Ok(None) };
        let meaning = match key.parse::<Key>() {
            Ok(known) => Meaning::Known(known),
            Err(_) if key == "iterations" => Meaning::Iterations,
            Err(_) if key == "family_index" => Meaning::Family,
            Err(_) if key == "per_family_instance_index" => Meaning::InFamily,
            Err(_) if key == "threads" => Meaning::Threads,
            Err(_) if is_bookkeeping(&key) => Meaning::Bookkeeping,
            Err(_) => Meaning::Counter(key),
        };
        self.keys.truncate(taken);
        if taken == self.keys.len() && taken < Self::LONGEST {
            self.keys.push((json.taken_since(start), meaning.clone()));
        }
        Ok(Some(meaning))
    }
}

/// Reads one row; returns false for a row that has no measurement by design (an asymptotic fit).
pub(super) fn read_row<'a>(
    json: &mut Scanner<'a>,
    row: &mut GoogleBenchmarkRow<'a>,
    layout: &mut KeyLayout<'a>,
) -> Scan<bool> {
    let start = json.at();
    row.counters.clear();
    (row.repetition, row.count, row.iterations) = (None, None, f64::NAN);
    row.instance = Instance::UNKNOWN;
    (row.real, row.cpu) = (f64::NAN, None);
    (row.error, row.skipped, row.label, row.kind) = (None, None, None, RowKind::Unmarked);
    let (mut name, mut run_name, mut aggregate, mut unit) = (None, None, None, None);
    let (mut error, mut skipped, mut has_real) = (None::<bool>, None::<bool>, false);
    let (mut error_message, mut skip_message) = (None, None);
    let (mut is_aggregate, mut has_iterations, mut seen) = (false, false, 0u32);
    json.begin_object()?;
    let mut taken = 0;
    while let Some(meaning) = layout.next_key(json, taken)? {
        taken += 1;
        let known = match meaning {
            Meaning::Known(known) => known,
            Meaning::Iterations => {
                let count = number_or_skip(json)?.unwrap_or(f64::NAN);
                // A user's counter may have the same name; the number of iterations is then unknown.
                row.iterations = if has_iterations { f64::NAN } else { count };
                has_iterations = true;
                continue;
            }
            Meaning::Family => {
                set(&mut row.instance.family, json)?;
                continue;
            }
            Meaning::InFamily => {
                set(&mut row.instance.in_family, json)?;
                continue;
            }
            Meaning::Threads => {
                set(&mut row.instance.threads, json)?;
                continue;
            }
            Meaning::Bookkeeping => {
                json.skip()?;
                continue;
            }
            Meaning::Counter(key) => {
                counter(json, key, row)?;
                continue;
            }
        };
        let bit = 1 << known as u32;
        if seen & bit != 0 {
            return Err(fault(json.at(), format!("a row has two values of `{}`", known.into_str())));
        }
        seen |= bit;
        match known {
            Key::Name => name = Some(json.string()?),
            Key::RunName => run_name = Some(json.string()?),
            Key::RunType => match json.string()?.as_ref() {
                "iteration" => row.kind = RowKind::Iteration,
                "aggregate" => is_aggregate = true,
                _ => return Err(fault(json.at(), "`run_type` is neither iteration nor aggregate")),
            },
            Key::RepetitionIndex => row.repetition = Some(json.number()?),
            Key::Repetitions => row.count = Some(json.number()?),
            Key::RealTime => {
                has_real = true;
                row.real = number_or_null(json)?;
            }
            Key::CpuTime => row.cpu = Some(number_or_null(json)?),
            Key::TimeUnit => unit = Some(json.string()?),
            Key::AggregateName => aggregate = Some(json.string()?),
            Key::ErrorOccurred => error = Some(json.boolean()?),
            Key::ErrorMessage => error_message = Some(json.string()?),
            Key::Skipped => match json.peek()? {
                // A user's counter.
                b'-' | b'0'..=b'9' => counter(json, Cow::Borrowed("skipped"), row)?,
                _ => skipped = Some(json.boolean()?),
            },
            Key::SkipMessage => skip_message = Some(json.string()?),
            Key::Label => row.label = Some(json.string()?),
        }
    }
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return Err(fault(start, "a row without a `name`"));
    };
    if error == Some(true) || (error.is_none() && error_message.is_some()) {
        row.error = Some(error_message.unwrap_or_default());
    } else if skipped == Some(true) {
        row.skipped = Some(skip_message.unwrap_or_default());
    }
    if is_aggregate {
        let statistic = aggregate.as_deref().map_or(Statistic::Other, Statistic::parse);
        row.kind = RowKind::Aggregate(statistic);
        if statistic == Statistic::Fit {
            return Ok(false);
        }
        let suffix = aggregate.as_deref().unwrap_or_default();
        row.family = run_name.unwrap_or_else(|| without_suffix(name, suffix));
    } else {
        row.family = run_name.unwrap_or(name);
    }
    let excused = row.error.is_some() || row.skipped.is_some();
    if !has_real && !excused {
        return Err(fault(start, "a row without a `real_time`"));
    }
    row.unit = match unit {
        // This row states the unit of the other rows, although its value is a ratio.
        Some(_) if row.kind == RowKind::Aggregate(Statistic::Cv) => TimeUnit::Ratio(1.0),
        Some(unit) => TimeUnit::parse(unit),
        None if excused => TimeUnit::Known(1.0),
        None => return Err(fault(start, "a row without a `time_unit`")),
    };
    Ok(true)
}

/// Reads a user's counter, which is a numeric key that the tool does not know; values of other types are the
/// tool's own text.
fn counter<'a>(json: &mut Scanner<'a>, key: Cow<'a, str>, row: &mut GoogleBenchmarkRow<'a>) -> Scan<()> {
    let said = match json.peek()? {
        b'{' | b'[' => return json.skip(),
        b'"' => Some(json.string()?),
        b't' | b'f' => Some(Cow::Borrowed(if json.boolean()? { "true" } else { "false" })),
        _ => None,
    };
    if let Some(said) = said {
        row.error = row.error.take().or_else(|| failure(&key, &said).map(Cow::Owned));
        return Ok(());
    }
    let value = number_or_null(json)?;
    if row.counters.iter().any(|(known, _)| *known == key) {
        return Err(fault(json.at(), format!("a row has two values of `{key}`")));
    }
    if row.counters.len() == MAX_COUNTERS {
        return Err(fault(json.at(), format!("more than {MAX_COUNTERS} counters in one row")));
    }
    row.counters.push((key, value));
    Ok(())
}

/// Stores one of the tool's numbers. A user's counter may have the same name, but the tool's own key comes
/// first.
fn set(place: &mut f64, json: &mut Scanner<'_>) -> Scan<()> {
    if let Some(value) = number_or_skip(json)?
        && place.is_nan()
    {
        *place = value;
    }
    Ok(())
}

/// Reads a number; skips a value of any other kind.
fn number_or_skip(json: &mut Scanner<'_>) -> Scan<Option<f64>> {
    if matches!(json.peek()?, b'"' | b'{' | b'[' | b't' | b'f' | b'n') {
        return json.skip().map(|()| None);
    }
    json.number().map(Some)
}

/// Reads a number or null, because tools that rewrite the file turn NaN into null.
fn number_or_null(json: &mut Scanner<'_>) -> Scan<f64> {
    if json.peek()? == b'n' {
        return json.skip().map(|()| f64::NAN);
    }
    json.number()
}

/// Returns the benchmark to which an aggregate belongs, in old releases that write no `run_name`.
fn without_suffix<'a>(name: Cow<'a, str>, aggregate: &str) -> Cow<'a, str> {
    let cut = |name: &str| Some(name.strip_suffix(aggregate)?.strip_suffix('_')?.len());
    match (cut(&name), name) {
        (Some(length @ 1..), Cow::Borrowed(text)) => Cow::Borrowed(&text[..length]),
        (Some(length @ 1..), Cow::Owned(mut text)) => {
            text.truncate(length);
            Cow::Owned(text)
        }
        (_, name) => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use benchgate_core::model::Series;

    fn iterations(counts: [&str; 2]) -> Option<u64> {
        let row = |count: &str| {
            format!(r#"{{"name": "BM_a", "iterations": {count}, "real_time": 1.5, "time_unit": "ns"}}"#)
        };
        let mean = r#"{"name": "BM_a_mean", "run_name": "BM_a", "run_type": "aggregate",
            "aggregate_name": "mean", "iterations": 2, "real_time": 1.5, "time_unit": "ns"}"#;
        let text = format!(r#"{{"benchmarks": [{}, {}, {mean}]}}"#, row(counts[0]), row(counts[1]));
        let run = read(&text).unwrap();
        let Series::Processes(processes) = &run.benchmarks[0].metrics[0].series else { panic!("{text}") };
        assert_eq!(processes[0].samples, [1.5, 1.5]);
        processes[0].iterations
    }

    #[test]
    fn iterations_are_those_of_one_repetition_and_unknown_where_they_differ() {
        assert_eq!(iterations(["20", "20"]), Some(20));
        for unknown in [
            ["20", "10"],
            ["null", "null"],
            ["20", "\"20\""],
            ["2.5", "2.5"],
            ["20, \"iterations\": 20", "20"],
        ] {
            assert_eq!(iterations(unknown), None, "{unknown:?}");
        }
    }
}
