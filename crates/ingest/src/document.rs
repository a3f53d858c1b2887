//! Fields of a JSON document, or of its entries, that no reader knows and that say that the run failed or was cut:
//! `"error": "…"`, `"exit_code": 1`, `"timed_out": true`.

use benchgate_core::model::{Lint, LintCode, excerpt, is_in, name_words, words};
use serde_json::Value;

use super::facts::{failure, is_message, is_remark, problem};
use super::json_scan::{Scan, Scanner};
use super::{BoxedFault, Format};

/// Keys of the lists whose entries can state the outcome of a benchmark, and of objects in these.
const ENTRIES: [&str; 2] = ["benchmarks", "results"];
const STATS: &str = "stats";

/// The place of an object, each of which is in the one before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Document,
    Entry,
    Stats,
}

/// Words that the names of flags consist of that are true if a run was cut or its result is wrong.
const CUT: &str = "timeout timedout interrupted cancelled canceled aborted killed truncated incomplete partial \
    crashed failed errored diverged mismatch mismatched wrong invalid oom skipped unsupported";
const OF_CUT: &str = "is was has been did run benchmark test by timeout";

/// Names of fields for the signal that ended a program.
const SIGNALS: [&str; 3] = ["signal", "termsignal", "killedby"];
const KILLING: &str =
    "SIGKILL SIGSEGV SIGABRT SIGTERM SIGINT SIGBUS SIGILL SIGFPE SIGXCPU SIGPIPE SIGHUP SIGTRAP SIGSYS";

/// Names of flags that are false if a run was cut.
const WHOLE: [&str; 3] = ["complete", "completed", "finished"];

/// Returns whether [`findings`] reads documents of this format. The keys of other formats are names of benchmarks, or
/// their readers look at every field.
pub(super) fn is_read(format: Format) -> bool {
    matches!(
        format,
        Format::HyperfineJson
            | Format::PytestBenchmarkJson
            | Format::NvbenchJson
            | Format::CriterionEstimates
            | Format::CriterionSample
            | Format::JmhJson
            | Format::AsvJson
    )
}

/// Returns the findings about the fields of a document and its entries.
pub(super) fn findings(text: &str) -> Result<Vec<Lint>, BoxedFault> {
    let (mut json, mut found) = (Scanner::new(text), Vec::new());
    match json.peek()? {
        b'[' => entries(&mut json, &mut found)?,
        _ => object(&mut json, Level::Document, &mut found)?,
    }
    Ok(found)
}

fn entries(json: &mut Scanner<'_>, found: &mut Vec<Lint>) -> Scan<()> {
    json.begin_array()?;
    let mut first = true;
    while json.next_item(&mut first)? {
        if json.peek()? == b'{' { object(json, Level::Entry, found)? } else { json.skip()? }
    }
    Ok(())
}

fn object(json: &mut Scanner<'_>, level: Level, found: &mut Vec<Lint>) -> Scan<()> {
    json.begin_object()?;
    let mut first = true;
    while let Some(key) = json.next_key(&mut first)? {
        if level == Level::Document && ENTRIES.contains(&key.as_ref()) && json.peek()? == b'[' {
            entries(json, found)?;
        } else if level == Level::Entry && key == STATS && json.peek()? == b'{' {
            object(json, Level::Stats, found)?;
        } else {
            add(found, read_field(json, &key)?);
        }
    }
    Ok(())
}

/// Adds a finding, which many entries of a file may have.
pub(super) fn add(found: &mut Vec<Lint>, lint: Option<Lint>) {
    found.extend(lint.filter(|lint| !found.contains(lint)));
}

/// Consumes the value of a field, and returns the finding that it says something against the run.
pub(super) fn read_field(json: &mut Scanner<'_>, key: &str) -> Scan<Option<Lint>> {
    // The white space before the value is consumed.
    json.peek()?;
    let start = json.at();
    json.skip()?;
    Ok(finding(key, json.taken_since(start).trim_end()))
}

/// Returns the finding about a field with this value, in JSON.
pub(super) fn finding(name: &str, value: &str) -> Option<Lint> {
    let against =
        |detail| Some(Lint::new(LintCode::TruncatedInput, format!("the file states that {detail}")));
    let lower = name_words(name);
    if value.starts_with(['[', '{']) {
        // An error bar has numbers only.
        let has_text = value.contains(['"', 't', 'f']);
        let is_bar = value.starts_with('[') && !has_text;
        let is_empty = value[1..].trim_start().len() == 1 || is_bar;
        let detail = || format!("`{}` is not empty", excerpt(name, 40));
        return if is_message(&words(&lower)) && !is_empty { against(detail()) } else { None };
    }
    let (value, flag) = match serde_json::from_str(value).ok()? {
        Value::Null => return None,
        Value::String(text) => (text, None),
        Value::Bool(flag) => (flag.to_string(), Some(flag)),
        other => (other.to_string(), None),
    };
    let of_name = words(&lower);
    let own: Vec<&str> = of_name.iter().filter(|word| !matches!(**word, "is" | "was")).copied().collect();
    let is_cut = match flag {
        Some(true) => {
            let is_known = |word: &&str| is_in(CUT, word) || is_in(OF_CUT, word);
            of_name.iter().all(is_known) && of_name.iter().any(|word| is_in(CUT, word))
                || own.concat() == "timedout"
        }
        Some(false) => WHOLE.contains(&own.concat().as_str()),
        None => SIGNALS.contains(&own.concat().as_str()) && is_in(KILLING, &value),
    };
    let stated = || is_cut.then(|| format!("`{}` is `{value}`", excerpt(name, 40)));
    // Other text names or describes a benchmark, which may be about errors.
    let remarked = || problem(name, &value).filter(|_| is_remark(&words(&lower)));
    failure(name, &value).or_else(stated).map_or_else(remarked, against)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_say_that_a_run_failed_or_was_cut_are_found() {
        for (name, value) in [
            ("error", "\"no device\""),
            ("error", "{\"code\": 3}"),
            ("errors", "[\"x\"]"),
            ("exit_code", "1"),
            ("returncode", "-9"),
            ("exitstatus", "1"),
            ("conclusion", "\"failure\""),
            ("status", "\"failed\""),
            ("status", "\"interrupted\""),
            ("success", "false"),
            ("timed_out", "true"),
            ("isComplete", "false"),
            ("notes", "\"FAILED\""),
            ("killed", "true"),
            ("was_truncated", "true"),
            ("signal", "\"SIGKILL\""),
            ("err", "\"CUDA error: out of memory\""),
            ("fail_reason", "\"out of memory\""),
        ] {
            assert!(finding(name, value).is_some(), "{name}: {value}");
        }
        for (name, value) in [
            ("error", "null"),
            ("error", "{}"),
            ("errors", "[ ]"),
            ("errors", "0"),
            ("exit_code", "0"),
            ("exitstatus", "0"),
            ("conclusion", "\"success\""),
            ("conclusion", "\"no failures\""),
            ("status", "\"ok\""),
            ("success", "true"),
            ("timed_out", "false"),
            ("timeout", "30"),
            ("killed", "false"),
            ("out", "true"),
            ("signal", "\"sine\""),
            ("err", "0.25"),
            ("complete", "true"),
            ("params", "{\"a\": 1}"),
            ("slope", "null"),
            ("machine_info", "{\"error\": NaN}"),
            ("version", "2"),
            ("command", "\"./bench --wrong\""),
            ("name", "\"test_error: bad\""),
        ] {
            assert!(finding(name, value).is_none(), "{name}: {value}");
        }
    }
}
