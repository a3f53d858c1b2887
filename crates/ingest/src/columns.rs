//! Columns and fields that a reader doesn't know: their names say whether they identify the experiment, measure
//! something else or state a failure.

use serde_json::Value;

use benchgate_core::model::{Benchmark, Stage};

use super::build::{carried, fail, time_unit};

/// Returns the words of a name in lower case.
pub(super) fn header_words(header: &str) -> Vec<&str> {
    header.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect()
}

/// Words for columns that number or date the rows of one experiment (`run_id`, `git_sha`), or that measure
/// something else (`memory_mb`, `latency_std`).
const NO_AXES: &str = "timestamp date datetime run iteration iter repetition repeat rep trial round sample pid uuid \
    commit sha branch url user host hostname note notes comment mean avg average median std stddev stdev var cv min max \
    time latency memory mem rss vram fps qps throughput flops tflops gflops speedup loss accuracy power watts joules \
    energy util utilization usage clock timeout";

/// Words for times, in columns that state a unit of time.
const TIMED: &str = "wall compile compilation elapsed duration total inference kernel";

/// Words that don't decide about a column if it has other words. Alone they can name an axis: `gpu`, `id`,
/// `size_mb`.
const QUALIFIERS: &str = "id idx index number hash git cpu gpu device host peak used total wall compile compilation \
    elapsed duration inference kernel temp temperature mb mib gb gib kb bytes percent pct mhz ghz per sec second step";

/// Returns whether a word is a percentile: `p50`, `p99`, `p999`.
pub(super) fn is_percentile(word: &str) -> bool {
    word.strip_prefix('p').is_some_and(|digits| digits.len() > 1 && digits.parse::<u16>().is_ok())
}

/// Returns whether a column identifies the experiment, so that rows that differ in it belong to different
/// experiments. A column with an unknown word counts as such. In doubt, its benchmarks stay without a partner
/// or a second sample, because merging them could hide a change.
pub(super) fn is_axis(words: &[&str]) -> bool {
    let is_in = |words: &str, word: &str| words.split(' ').any(|known| known == word);
    let has_unit = words.last().is_some_and(|word| *word != "min" && time_unit(word).is_some());
    let named = &words[..words.len() - usize::from(has_unit)];
    let is_known = |word: &str| is_in(NO_AXES, word) || is_percentile(word);
    let decides = |word: &str| is_known(word) || has_unit && is_in(TIMED, word);
    let is_gpus = words.len() > 1 && matches!(words.last(), Some(&("temp" | "temperature")));
    let known = named.iter().all(|word| is_known(word) || is_in(QUALIFIERS, word));
    !(words.is_empty() || known && (named.iter().any(|word| decides(word)) || is_gpus))
}

/// Words for fields that state whether the result is good.
const STATES: &str =
    "success ok pass passed correct valid verified verification accuracy status state result outcome";

/// Words for fields that describe a failure.
const FAULTS: &str =
    "error errors exception exceptions failure failures failed traceback crash crashed returncode exit";

/// Parts of a value that says that the result is not good.
const BAD: [&str; 17] = [
    "fail",
    "error",
    "incorrect",
    "mismatch",
    "wrong",
    "timeout",
    "timed out",
    "crash",
    "abort",
    "kill",
    "oom",
    "out of memory",
    "skip",
    "invalid",
    "differ",
    "unsupported",
    "❌",
];

/// Values that say the same as a missing field.
const NOTHING: [&str; 8] = ["", "-", "none", "null", "no", "false", "0", "ok"];

/// Adds what a result states in a field that its reader doesn't know, such as `batch_size` or `dtype`: the two sides
/// are compared only if they agree. A field that states a failure (`correct: false`, `status: "failed"`) fails the
/// benchmark. Numbers with a fraction are measured and not chosen, so they are left out.
///
/// # Errors
/// A value that no report could show.
pub(super) fn add_field(benchmark: &mut Benchmark, name: &str, value: &Value) -> Result<(), &'static str> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) if number.is_i64() || number.is_u64() => number.to_string(),
        Value::Object(inner) => {
            let mut inner = inner.iter();
            return inner
                .try_for_each(|(field, value)| add_field(benchmark, &format!("{name}.{field}"), value));
        }
        Value::Number(_) | Value::Array(_) | Value::Null => return Ok(()),
    };
    let (name, said) = (name.to_lowercase(), text.to_lowercase());
    let words = header_words(&name);
    let is_one_of = |known: &str| words.iter().any(|word| known.split(' ').any(|known| known == *word));
    let is_bad =
        || BAD.iter().any(|bad| said.contains(bad)) || matches!(said.as_str(), "false" | "no" | "nan");
    if is_one_of(STATES) && is_bad() || states_fault(&words, value, &said) {
        fail(benchmark, Stage::Benchmark, format!("the file states {name}: {}", carried(&text)?));
    } else if is_axis(&words) && !is_one_of(STATES) && !is_one_of(FAULTS) {
        benchmark.labels.insert(name, carried(&text)?.to_owned());
    }
    Ok(())
}

/// Returns whether a field describes a failure. A number does only if it counts failures or is an exit code:
/// `max_error` measures.
fn states_fault(words: &[&str], value: &Value, said: &str) -> bool {
    const COUNTS: [&str; 6] = ["errors", "exceptions", "failures", "failed", "crashed", "returncode"];
    let is_named = match value {
        Value::Number(_) => {
            words.ends_with(&["exit", "code"]) || words.last().is_some_and(|last| COUNTS.contains(last))
        }
        _ => words.iter().any(|word| FAULTS.split(' ').any(|known| known == *word)),
    };
    is_named && !NOTHING.contains(&said)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(fields: Value) -> Benchmark {
        let mut benchmark = Benchmark::new("a");
        for (name, value) in fields.as_object().unwrap() {
            add_field(&mut benchmark, name, value).unwrap();
        }
        benchmark
    }

    #[test]
    fn a_field_that_states_a_failure_fails_the_benchmark() {
        for fields in [
            r#"{"accuracy": "fail_accuracy"}"#,
            r#"{"correct": false}"#,
            r#"{"status": "Failed"}"#,
            r#"{"error": "out of memory"}"#,
            r#"{"run": {"exit_code": 139}}"#,
            r#"{"Verified": "no"}"#,
            r#"{"failures": 2}"#,
            r#"{"timeout_error": true}"#,
        ] {
            let failed = with(serde_json::from_str(fields).unwrap());
            assert!(!failed.outcome.is_ok(), "{fields}");
        }
        for fields in [
            r#"{"accuracy": "pass", "correct": true, "status": "ok", "error": null, "failures": 0}"#,
            r#"{"max_error": 0.001, "error_rate": 0, "exit_code": 0, "accuracy": 0.98}"#,
        ] {
            let good = with(serde_json::from_str(fields).unwrap());
            assert!(good.outcome.is_ok() && good.labels.is_empty(), "{fields}: {good:?}");
        }
    }

    #[test]
    fn what_was_chosen_is_a_fact_and_what_was_measured_is_not() {
        let found = with(
            serde_json::from_str(
                r#"{"batch_size": 8, "dtype": "fp16", "config": {"mode": "max-autotune", "seq": 512}, "peak_memory_mb": 512,
                "tokens_per_s": 812.5, "timestamp": "2026-11-27", "git_sha": "abc", "p99": 3, "losses": [1.0]}"#,
            )
            .unwrap(),
        );
        let labels: Vec<String> =
            found.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(labels, ["batch_size=8", "config.mode=max-autotune", "config.seq=512", "dtype=fp16"]);
    }
}
