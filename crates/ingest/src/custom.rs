//! Results that a script wrote for a dashboard: the generic JSON of github-action-benchmark, and Bencher's
//! metric format. Both formats hold one value per benchmark and no samples.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value as Json;

use benchgate_core::model::{Benchmark, Better, Metric, Quality, Run, Summary, Unit, excerpt, is_in, words};

use super::build::{carried, check_summary, contradict, direction, own_metric, own_unit, summary};
use super::facts::{self, Commits, Field};
use super::google_benchmark::{self, counter_metric};
use super::join::ByName;
use super::json::{Value, parse, unique_entries, unique_map};
use super::{LineFault, line_fault};

/// An entry of github-action-benchmark's list. Its `range` is free text whose meaning differs between tools, so only
/// a NaN in it is read.
#[derive(Deserialize)]
struct CustomEntry {
    name: String,
    unit: String,
    value: Value,
    range: Option<Json>,
    extra: Option<Json>,
    #[serde(flatten, deserialize_with = "unique_map")]
    other: BTreeMap<String, Json>,
}

/// Returns the fields in the free text next to a value: its lines `key: value`, and any other line without
/// digits, such as `cold cache`. Lines with digits often state measurements; they are remarks.
fn extra_fields(extra: &str) -> Vec<Field> {
    let lines = extra.lines().map(str::trim).filter(|line| !line.is_empty());
    let field = |line: &str| match line.split_once([':', '=']) {
        Some((key, value)) if !key.trim().is_empty() => {
            Some((key.trim().to_owned(), value.trim().to_owned()))
        }
        _ if line.contains(|c: char| c.is_ascii_digit()) => Some(("note".to_owned(), line.to_owned())),
        _ => Some(("extra".to_owned(), line.to_owned())),
    };
    lines.filter_map(field).collect()
}

/// Returns whether a line of the free text is no pair and has digits: `256 tokens`, `accuracy 0.93`.
fn is_remark(line: &str) -> bool {
    !line.contains([':', '=']) && line.contains(|c: char| c.is_ascii_digit())
}

/// Reads github-action-benchmark's list. The file does not state which direction is better, so the caller has
/// to.
pub(super) fn read(text: &str, better: Better) -> Result<Run, LineFault> {
    let file: Vec<CustomEntry> = parse(text)?;
    let (mut benchmarks, mut commits) = (ByName::default(), Commits::default());
    for CustomEntry { name, unit, value, range, extra, other } in file {
        let mut benchmark = Benchmark::new(carried(&name).map_err(|what| line_fault(1, what))?);
        let (metric, scale) = metric(&unit, better);
        // Without a unit, the name may contain one.
        let (what, stated) = if unit.trim().is_empty() { ("name", &name) } else { ("unit", &unit) };
        let of_stated = if what == "unit" { direction(stated) } else { direction_of_words(stated) };
        let (what, stated, of_stated) = match of_stated {
            Better::Unknown => ("name", &name, direction_of_quality(&name, &unit)),
            known => (what, stated, known),
        };
        if ![better, Better::Unknown].contains(&of_stated) {
            let detail = format!(
                "the {what} `{}` contradicts the direction (smaller or bigger is better) of the format",
                excerpt(stated, 40)
            );
            contradict(&mut benchmark, detail);
        }
        summary(&mut benchmark, metric, scale, Summary { mean: Some(value.0), ..Summary::default() });
        let (mut fields, mut numbers) = (facts::of_json(&other), Vec::new());
        match extra {
            Some(Json::String(text)) => {
                fields.extend(extra_fields(&text));
                for line in text.lines().filter(|line| is_remark(line)) {
                    // Other numbers of a remark are mostly measurements.
                    let is_compared =
                        |name: &str| Quality::of_name(name).is_some() || name == google_benchmark::UNNAMED;
                    numbers.extend(
                        google_benchmark::numbers(line).into_iter().filter(|(name, _)| is_compared(name)),
                    );
                    let words = google_benchmark::fixed_words(line);
                    fields.extend((!words.is_empty()).then(|| ("text".to_owned(), words)));
                }
            }
            Some(Json::Object(object)) => fields.extend(facts::of_json(&object)),
            _ => {}
        }
        commits.add(facts::borrowed(&fields));
        facts::state(&mut benchmark, &fields);
        for (name, value) in numbers {
            facts::state_values(&mut benchmark, &name, vec![value]);
        }
        let range = range.as_ref().and_then(Json::as_str).map(|range| range.trim_matches(['±', ' ']));
        benchmark.lints.extend(range.and_then(|range| facts::problem("range", range)));
        benchmarks.push_once(benchmark);
    }
    let mut run = Run { benchmarks: benchmarks.finish(), ..Run::default() };
    commits.finish(&mut run);
    Ok(run)
}

/// Returns which direction is better for a name of several words, such as `latency_ms` or `decode throughput`. At
/// the end of a name, `min` is a statistic.
fn direction_of_words(name: &str) -> Better {
    let name = name.to_ascii_lowercase();
    let last = words(&name).last().copied().filter(|word| word.len() > 1 && *word != "min");
    match (direction(&name), last) {
        (Better::Unknown, Some("latency" | "duration" | "runtime")) => Better::Lower,
        (Better::Unknown, Some(last)) => direction(last),
        (known, _) => known,
    }
}

/// Returns which direction is better for a number whose unit, or the last word of whose name, states how right a result
/// is, how much faster it is, or that it is memory. Other words may describe what is measured.
fn direction_of_quality(name: &str, unit: &str) -> Better {
    let (name, unit) = (name.to_lowercase(), unit.to_lowercase());
    let of_word = |word: &str| match Quality::of_name(word) {
        Some(Quality::Score | Quality::Similarity) => Better::Higher,
        Some(Quality::Loss | Quality::Error | Quality::Failures) => Better::Lower,
        _ if word == "speedup" => Better::Higher,
        _ if is_in("mem memory rss", word) && is_in("b kb mb gb kib mib gib bytes", &unit) => Better::Lower,
        _ => Better::Unknown,
    };
    match of_word(words(&name).last().copied().unwrap_or_default()) {
        Better::Unknown => of_word(&unit),
        known => known,
    }
}

/// Returns the metric of a unit: `ns`, `ms/op` and `us/iter` are times, for which less is better in any
/// format.
fn metric(unit: &str, better: Better) -> (Metric, f64) {
    let (own, scale) = own_unit(unit);
    if better == Better::Lower && matches!(own.as_ref(), "ns" | "ns/op" | "ns/iter") {
        return (Metric::LATENCY, scale);
    }
    (own_metric(own.clone().into_owned(), Unit::parse(&own), better), scale)
}

/// `{"BENCHMARK": {"MEASURE": {"value": 1.0}}}`. The bounds next to a value have another meaning in each
/// tool, but the value always lies between them.
#[derive(Deserialize)]
struct BencherFile(#[serde(deserialize_with = "unique_entries")] Vec<(String, BencherMeasures)>);

#[derive(Deserialize)]
struct BencherMeasures(#[serde(deserialize_with = "unique_entries")] Vec<(String, BencherMetric)>);

#[derive(Deserialize)]
struct BencherMetric {
    value: Value,
    lower_value: Option<f64>,
    upper_value: Option<f64>,
}

/// Reads Bencher's metric format.
pub(super) fn read_bencher(text: &str) -> Result<Run, LineFault> {
    let file: BencherFile = parse(text)?;
    let mut benchmarks = ByName::default();
    for (name, measures) in file.0 {
        let mut benchmark = Benchmark::new(carried(&name).map_err(|what| line_fault(1, what))?);
        for (measure, BencherMetric { value, lower_value: min, upper_value: max }) in measures.0 {
            check_summary(
                &mut benchmark,
                &[],
                &Summary { mean: Some(value.0), min, max, ..Summary::default() },
            );
            let (metric, scale) = measure_metric(&measure).unwrap_or_else(|| (counter_metric(&measure), 1.0));
            summary(&mut benchmark, metric, scale, Summary { mean: Some(value.0), ..Summary::default() });
        }
        benchmarks.push_once(benchmark);
    }
    Ok(Run { benchmarks: benchmarks.finish(), ..Run::default() })
}

/// Returns Bencher's own measures, whose unit and direction are fixed; for a user's measures the file states
/// neither.
fn measure_metric(measure: &str) -> Option<(Metric, f64)> {
    const COUNTS: [&str; 5] =
        ["instructions", "estimated-cycles", "total-accesses", "l1-accesses", "ram-accesses"];
    Some(match measure.to_ascii_lowercase().as_str() {
        "latency" => (Metric::LATENCY, 1.0),
        "throughput" => (own_metric("throughput", Unit::PerSecond, Better::Higher), 1.0),
        "build-time" => (own_metric("build-time", Unit::Nanoseconds, Better::Lower), 1e9),
        "file-size" => (own_metric("file-size", Unit::Bytes, Better::Lower), 1.0),
        count if COUNTS.contains(&count) => (own_metric(count.to_owned(), Unit::Count, Better::Lower), 1.0),
        _ => return None,
    })
}
