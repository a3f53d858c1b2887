//! Fields of a row that its reader does not know. They can state a failure, a problem that base's row must
//! state as well, a fact about the experiment (`dtype`, `batch_size`, `gpu`), which must be equal on both
//! sides, how right the result is, which must not become worse, or a rate, which shows the work of a call.
//! Other fields are dates, numbers of rows or measurements.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use benchgate_core::model::{
    Benchmark, ENVIRONMENT, FIELD, FIELDS, Lint, LintCode, Metric, Quality, Run, Stage, VARIES, excerpt,
    is_in, name_words, states_rate, words,
};

use super::build::{fail, processes, time_unit};
use super::google_benchmark::counter_metric;
use super::logs::{is_crash, stated_problem};
use super::values::{
    data_file, input, is_absent, is_identity, is_place, is_version_number, number, plain, settings,
};
use super::{LineFault, line_fault};

/// Name and value of a field, as text.
pub(super) type Field = (String, String);

/// Maximum number of bytes of the facts that a file states for all of its rows.
const LONGEST: usize = 4096;

/// Adds the facts among these fields to the benchmark, which has failed if a field says so.
pub(super) fn state(benchmark: &mut Benchmark, fields: &[Field]) {
    if let Some(why) = fields.iter().find_map(|(name, value)| failure(name, value)) {
        fail(benchmark, Stage::Benchmark, why);
    }
    // Without a time, a rate would decide alone.
    let is_timed = benchmark.metric(&Metric::LATENCY.name).is_some();
    let mut numbers: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (name, value) in fields {
        benchmark.lints.extend(problem(name, value));
        if let Some(value) = if is_timed { compared(name, value) } else { quality(name, value) } {
            numbers.entry(name).or_default().push(value);
        }
    }
    for (name, values) in numbers {
        state_values(benchmark, name, values);
    }
    let mut names: Vec<&str> = Vec::new();
    for (name, value) in fields.iter().filter_map(|(name, value)| Some((name, fact(name, value)?))) {
        names.push(name);
        // A file can't say itself that a value is measured.
        let value = if value.starts_with(VARIES) { format!("`{value}`") } else { value };
        benchmark.labels.insert(format!("{FIELD}{name}"), value);
    }
    for (name, value) in fields.iter().filter(|(name, value)| states_version(name, value)) {
        benchmark.labels.insert(format!("{ENVIRONMENT}{name}"), value.trim().to_owned());
    }
    // Fields of one row can stand in several places.
    let known = benchmark.labels.get(FIELDS).cloned().unwrap_or_default();
    names.extend(known.split(", ").filter(|name| !name.is_empty()));
    names.sort_unstable();
    if !names.is_empty() {
        benchmark.labels.insert(FIELDS.to_owned(), names.join(", "));
    }
}

/// States those fields of an object of which the tool writes none, and which are no numbers, or whose names say how right the
/// result is or how much work was done: a wrapper added them. Other numbers may be those of a newer version of the tool.
pub(super) fn state_results(benchmark: &mut Benchmark, others: &BTreeMap<String, Value>, of_file: &[Field]) {
    let mut results = of_file.to_vec();
    results.extend(of_json(others).into_iter().filter(is_wrappers));
    state(benchmark, &results);
}

/// Returns these fields of a whole file, which all of its benchmarks share.
///
/// # Errors
/// There are so many that they would be repeated too often.
pub(super) fn results_of_file(others: &BTreeMap<String, Value>) -> Result<Vec<Field>, LineFault> {
    let results = of_json(others).into_iter().filter(is_wrappers).collect();
    shared(results).map_err(|what| line_fault(1, what))
}

fn is_wrappers((name, value): &Field) -> bool {
    is_result(name) || number(value).is_none()
}

/// States whether the tool printed its last line about the benchmark. Some files never contain that line, but a side
/// that lacks it while the other has it may come from a run that did not finish.
pub(super) fn footer(benchmark: &mut Benchmark, is_printed: bool) {
    let state = if is_printed { "printed" } else { "not printed" };
    benchmark.labels.insert("last line of the tool".to_owned(), state.to_owned());
}

/// Returns the facts and failures among the fields that a file states for all of its rows.
pub(super) fn shared(fields: Vec<Field>) -> Result<Vec<Field>, &'static str> {
    let kept = |(name, value): &Field| {
        fact(name, value).is_some()
            || states_version(name, value)
            || failure(name, value).is_some()
            || problem(name, value).is_some()
            || quality(name, value).is_some()
    };
    let fields: Vec<Field> = fields.into_iter().filter(kept).collect();
    let length: usize = fields.iter().map(|(name, value)| name.len() + value.len()).sum();
    if length > LONGEST { Err("fields of more than 4096 bytes that many rows share") } else { Ok(fields) }
}

/// The commits that the rows of a file state, by the name of their field.
#[derive(Debug, Default)]
pub(super) struct Commits(BTreeMap<String, BTreeSet<String>>);

impl Commits {
    /// Adds the fields that state a commit.
    pub(super) fn add<'a>(&mut self, fields: impl IntoIterator<Item = (&'a str, &'a str)>) {
        for (name, commit) in fields.into_iter().filter(|(name, _)| is_commit(name)) {
            let known = self.0.entry(name.to_owned()).or_default();
            // Two show that there are several.
            if known.len() < 2 {
                known.insert(commit.trim().to_owned());
            }
        }
    }

    /// Sets the commit of the run, or adds the finding that there are several.
    pub(super) fn finish(self, run: &mut Run) {
        for commits in self.0.into_values() {
            let mut commits = commits.into_iter();
            match (commits.next(), commits.next()) {
                (Some(one), Some(two)) => {
                    let shown = |commit: &str| {
                        if commit.is_empty() { "none".to_owned() } else { excerpt(commit, 40) }
                    };
                    let detail = format!("rows of the commits `{}` and `{}`", shown(&one), shown(&two));
                    run.lints.push(Lint::new(LintCode::SeveralPrograms, detail));
                    run.commit = None;
                    return;
                }
                (one, _) => run.commit = run.commit.take().or(one).filter(|commit| !commit.is_empty()),
            }
        }
    }
}

/// Returns whether a field with this name states the commit that was measured.
pub(super) fn is_commit(name: &str) -> bool {
    let lower = name_words(name);
    let words = words(&lower);
    let any = |known: &str| words.iter().any(|word| is_in(known, word));
    let all = "commit sha revision rev hash git id head short full source src repo vcs code githash gitsha";
    words.iter().all(|word| is_in(all, word))
        && (any("commit sha revision githash gitsha") || any("git") && any("hash rev"))
}

/// Borrows fields for [`Commits::add`].
pub(super) fn borrowed(fields: &[Field]) -> impl Iterator<Item = (&str, &str)> {
    fields.iter().map(|(name, value)| (name.as_str(), value.as_str()))
}

/// Returns the scalars of an object by their names, also those of objects in it (`gpu.name`). A list of
/// words or whole numbers, such as a shape, counts as a scalar; one of scores has as many.
pub(super) fn of_json<'a>(object: impl IntoIterator<Item = (&'a String, &'a Value)>) -> Vec<Field> {
    let mut fields = Vec::new();
    for (name, value) in object {
        match value {
            // `NaN` is read as null.
            Value::Null if is_result(name) => fields.push((name.clone(), "null".to_owned())),
            Value::Array(list) if is_result(name) && list.iter().any(Value::is_null) => {
                fields.push((name.clone(), "null".to_owned()));
            }
            Value::Null => {}
            Value::String(text) => fields.push((name.clone(), text.clone())),
            Value::Bool(_) | Value::Number(_) => fields.push((name.clone(), value.to_string())),
            // A list of whole numbers must be the same.
            Value::Array(list)
                if is_quality(name)
                    && list.iter().all(Value::is_number)
                    && list.iter().any(Value::is_f64) =>
            {
                fields.extend(list.iter().map(|item| (name.clone(), item.to_string())));
            }
            Value::Array(list) if list.iter().any(Value::is_object) => {
                fields.extend(list.iter().filter_map(named_value));
                // The entries of a list are cases, of which each can have failed.
                let entries = list.iter().filter_map(Value::as_object).flat_map(of_json);
                let entries = entries.map(|(key, value)| (format!("{name}.{key}"), value));
                fields.extend(entries.filter(|(name, value)| {
                    failure(name, value).is_some() || quality(name, value).is_some()
                }));
            }
            Value::Array(list) => {
                // A list of shapes is a fact too.
                let is_word = |value: &Value| value.is_string() || value.is_boolean() || value.is_i64();
                let is_shape = |value: &Value| {
                    let of_words = |list: &Vec<Value>| list.len() <= MOST_ITEMS && list.iter().all(is_word);
                    is_word(value) || value.as_array().is_some_and(of_words)
                };
                if !list.is_empty() && list.len() <= MOST_ITEMS && list.iter().all(is_shape) {
                    fields.push((name.clone(), value.to_string()));
                }
            }
            Value::Object(inner) => {
                fields
                    .extend(of_json(inner).into_iter().map(|(key, value)| (format!("{name}.{key}"), value)));
            }
        }
    }
    fields
}

/// Returns the field that an object in a list states: `{"name": "accuracy", "value": 0.93}`.
fn named_value(object: &Value) -> Option<Field> {
    let name = ["name", "metric"].into_iter().find_map(|key| object.get(key)?.as_str())?;
    let value = object.get("value").filter(|value| value.is_number() && is_quality(name))?;
    Some((name.to_owned(), value.to_string()))
}

/// Maximum number of items of a list that is a fact; longer lists are measurements or logs.
const MOST_ITEMS: usize = 16;

/// Words in names of fields that say whether a result is right.
const VERDICTS: &str = "status result outcome conclusion state verdict verification verified accuracy correctness correct passed \
    pass success succeeded successful ok valid validated validation check checked match matches matched allclose \
    numerics outputs";

/// Words in values of such fields that deny it.
const DENIALS: &str = "false fail fails failed failure error errors errored wrong incorrect mismatch mismatched invalid \
    timeout crash crashed oom killed aborted diverged bad interrupted cancelled canceled incomplete truncated";

/// Words that make up the names of error messages.
const ERRORS: &str =
    "error errors err exception fail failure failures failed fault crash crashed traceback aborted oom";
const OF_ERRORS: &str = "message msg text type code count num reason detail details last runtime compile compiler build run is has did";

/// Other words after `no` in a field for error messages that states none.
const NOTHING: &str = "problem problems issue issues warning warnings fail fails mismatch mismatches";

/// Names of fields for remarks, which a person or a program writes.
const REMARKS: &str = "note notes comment comments remark remarks label log stderr";

/// First words of a remark that report a failure by themselves; other words do so in capitals or before a colon.
const OUTCOMES: &str =
    "failed failures errored diverged crashed aborted killed oom mismatched segfault skipped unsupported";

/// Other words of a remark that say that a result is not right.
const DOUBTS: &str = "nan inf differ differs unverified unsuccessful nok";

/// Returns whether a field with this name holds a number that a program computed.
fn is_result(name: &str) -> bool {
    Quality::of_name(name).is_some() && !is_message(&words(&name_words(name)))
}

/// Returns whether a field with this name states how right the result is. A checksum is a fact.
fn is_quality(name: &str) -> bool {
    Quality::of_name(name).is_some_and(|quality| !matches!(quality, Quality::Checksum | Quality::Work))
}

/// Returns the number of a field that states how right the result is.
fn quality(name: &str, value: &str) -> Option<f64> {
    if is_quality(name) { number(value) } else { None }
}

/// Returns the number of a field of one benchmark that states how right its result is, or a rate. A rate that a file states
/// for all of its benchmarks shows the work of none.
pub(super) fn compared(name: &str, value: &str) -> Option<f64> {
    let rate = || number(value).filter(|_| counter_metric(name).is_rate_of_work());
    quality(name, value).or_else(rate)
}

/// Adds the values of a field as a metric, so that they are compared like those of a counter. A benchmark without a
/// measurement gets none.
pub(super) fn state_values(benchmark: &mut Benchmark, name: &str, values: Vec<f64>) {
    let metric = counter_metric(name);
    if !benchmark.metrics.is_empty() && benchmark.metric(&metric.name).is_none() {
        let values = values.into_iter().map(|value| vec![value]).collect();
        processes(benchmark, metric, 1.0, values);
    }
}

/// Returns the finding that a field reports a problem, if that alone is not a failure: a remark can mention an error,
/// and a number can be NaN on both sides. The detail is the same for both sides if they report the same problem.
pub(super) fn problem(name: &str, value: &str) -> Option<Lint> {
    let (of_name, lower) = (name_words(name), value.trim().to_lowercase());
    let of_name = words(&of_name);
    let any = |known: &str| of_name.iter().any(|word| is_in(known, word));
    let is_volatile = any(VOLATILE) && !any(REMARKS);
    if is_volatile || is_commit(name) || is_version(name) || is_place(value) || number(value).is_some() {
        return None;
    }
    let what = if is_absent(value) {
        is_result(name).then(|| "has no value".to_owned())?
    } else if is_not_finite(&lower) && !any(REMARKS) {
        format!("is `{}`", lower.trim_start_matches(['+', '-']))
    } else {
        format!("says `{}`", incomplete(&lower).or(denial(&lower)).or(stated_problem(value))?)
    };
    Some(Lint::new(LintCode::ReportedProblem, format!("`{}` {what}", excerpt(name, 40))))
}

/// Returns whether a text stands for a number that is NaN or infinite.
fn is_not_finite(text: &str) -> bool {
    let text = text.trim_start_matches(['+', '-']).trim_end_matches('%');
    is_in("nan inf infinity nan(ind) nan(snan) 1.#qnan 1.#ind 1.#inf", text)
}

/// Returns the part of a remark that counts right results, if some are wrong: `3/100 correct`.
fn incomplete(lower: &str) -> Option<&str> {
    let (counts, rest) = lower.trim().split_once(' ')?;
    let (right, all) = counts.split_once('/')?;
    let is_verdict = words(rest).first().is_some_and(|word| is_in(VERDICTS, word));
    (is_verdict && right.parse::<u64>().ok()? < all.parse().ok()?).then(|| lower.trim())
}

/// Returns the first word of a lower-case text that denies success, except in `no errors`, `0 failed`, `errors: 0`
/// and `error: 1.5e-7`.
fn denial(lower: &str) -> Option<&str> {
    let said = words(lower);
    if matches!(said.as_slice(), ["no" | "without", _, ..]) {
        return None;
    }
    let is_denial = |(at, word): (usize, &&str)| {
        let end = word.as_ptr() as usize - lower.as_ptr() as usize + word.len();
        let number = |text: &str| text.trim_matches(|c: char| !c.is_ascii_digit()).parse::<f64>();
        let after = lower[end..].trim_start_matches([':', '=', ' ']);
        let after = after.split([' ', ',', ';', ')']).next().unwrap_or_default();
        let is_figure = number(after).is_ok_and(|number| number == 0.0 || number.fract() != 0.0);
        let before = at.checked_sub(1).map_or("", |at| said[at]);
        !is_figure
            && !matches!(before, "0" | "no" | "zero" | "without")
            && (is_in(DENIALS, word) || is_in(OUTCOMES, word) || is_in(DOUBTS, word))
            && *word != "false"
    };
    said.iter().enumerate().find(|it| is_denial(*it)).map(|(_, word)| *word)
}

/// Returns whether a remark reports a failure: `FAILED`, `error: no device`, `diverged at step 3`.
fn reports_failure(remark: &str) -> bool {
    // In a longer remark, these words can mean something else (`ko: Korean`).
    let is_alone = is_in("ng ko inf", &remark.trim().to_lowercase());
    if is_alone || remark.lines().any(|line| is_crash(line.trim())) {
        return true;
    }
    let remark = remark.trim_start_matches(|c: char| !c.is_alphanumeric());
    let Some(first) = words(remark).first().copied() else { return false };
    let lower = first.to_lowercase();
    let is_marked = first.len() > 2 && first.chars().all(char::is_uppercase)
        || remark[first.len()..].trim_start().starts_with(':');
    denial(&remark.to_lowercase()) == Some(&lower) && (is_in(OUTCOMES, &lower) || is_marked)
}

/// Returns the failure that a field states: `accuracy: fail`, `correct: false`, `error: out of memory`, `notes:
/// diverged`.
pub(super) fn failure(name: &str, value: &str) -> Option<String> {
    let (value, number) = (value.trim(), number(value));
    if is_absent(value) {
        return None;
    }
    let lower = (name_words(name), value.to_lowercase());
    let (name_of, said) = (words(&lower.0), words(&lower.1));
    let any = |known: &str| name_of.iter().any(|word| is_in(known, word));
    let stated = || Some(format!("`{}` is `{}`", excerpt(name, 40), excerpt(value, 120)));
    let is_code = any("exit return exitcode exitstatus returncode rc") && name_of.len() < 3;
    if let Some(number) = number {
        let is_denied = number == 0.0
            && matches!(name_of.as_slice(), [word] if is_in("correct passed pass success ok valid match verified", word));
        let counts = any("errors failures failed code") && is_message(&name_of);
        let is_flag = number.fract() == 0.0
            && matches!(name_of.as_slice(), [word] if *word != "err" && is_in(ERRORS, word));
        return if is_denied || number != 0.0 && (is_code || counts || is_flag) { stated() } else { None };
    }
    let denies = said.iter().any(|word| is_in(DENIALS, word))
        // `no errors`
        && !(said.len() > 1 && matches!(said.first(), Some(&("no" | "without"))));
    let is_fine = || {
        is_in("false no ok success succeeded passed pass none", &said.join(" "))
            // Not `no device`.
            || matches!(said.as_slice(), ["no" | "without", what, ..] if is_in(ERRORS, what) || is_in(NOTHING, what))
            // An error bar.
            || value.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '±' | '+' | '-'))
    };
    if any(VERDICTS) && (denies || lower.1 == "no")
        || lower.0 == "timeout" && value.eq_ignore_ascii_case("true")
        || is_message(&name_of) && !is_fine()
        || any(REMARKS) && reports_failure(value)
    {
        stated()
    } else {
        None
    }
}

/// Returns whether a field with these words in its name holds a remark.
pub(super) fn is_remark(words: &[&str]) -> bool {
    words.iter().any(|word| is_in(REMARKS, word))
}

/// Returns whether these are the words of a field for a message about an error.
pub(super) fn is_message(words: &[&str]) -> bool {
    words.iter().any(|word| is_in(ERRORS, word))
        && words.iter().all(|word| is_in(ERRORS, word) || is_in(OF_ERRORS, word))
}

/// Words in names of fields that differ between two runs of one experiment.
const VOLATILE: &str = "timestamp date datetime uuid pid commit branch url user host hostname note notes comment \
    path file dir directory folder cwd log started finished ended created updated elapsed duration job workflow runner \
    attempt node ip seconds port";

/// Names of fields that count what a tool chose to repeat.
const REPEATED: &str = "iterations iters rounds samples count id ids at revision build release run ci github \
    gitlab buildkite jenkins circle pr pull request changelist cl patchset rev dirty author uptime ppid tid ticket milestone";

/// Other words of such names, which alone can state a fact.
const OF_REPEATED: &str = "number no time change ref head";

/// First words of the names of variables that a CI service sets, and words for the container or the host of a job.
const OF_CI: &str = "github gitlab ci buildkite circle circleci travis cirrus jenkins appveyor";
const OF_HOST: &str = "docker container pod namespace zone node runner agent executor";
const OF_HOST_NAMES: &str = "docker container pod namespace availability zone node runner agent executor image id name number host os tag";

/// Words in names of fields for the command that was run.
const COMMAND: &str = "cmd cmdline command argv args arguments line cli flags options run bench benchmark";

/// Values that state how a program was built, or how much of it ran.
const MODES: &str = "debug release relwithdebinfo minsizerel profile full smoke quick fast";

/// Returns the fact that a field states, which must be equal on both sides. A field with an unknown name states one,
/// because ignoring it could hide that the sides did different work.
fn fact(name: &str, value: &str) -> Option<String> {
    let lower = name_words(name);
    let words = words(&lower);
    let any = |known: &str| words.iter().any(|word| is_in(known, word));
    let only = |known: &str| words.iter().all(|word| is_in(known, word));
    let last = words.last().copied().unwrap_or_default();
    if is_absent(value) || is_commit(name) {
        return None;
    }
    if any("cmd cmdline command argv args") && only(COMMAND) {
        return settings(value);
    }
    if let Some(file) = data_file(value).filter(|_| !any("output outputs out result results dump save saved"))
    {
        return Some(file.to_owned());
    }
    if let Some(input) = input(&words, value) {
        return Some(input);
    }
    // A wheel for processors only.
    if value.trim().ends_with("+cpu") {
        return Some("+cpu".to_owned());
    }
    let is_mode = || is_in(MODES, &value.trim().to_lowercase());
    if is_mode() && any("build run job mode config configuration type") {
        return Some(plain(value));
    }
    if is_circumstance(name, value) {
        return None;
    }
    if states_version(name, value) || quality(name, value).is_some() {
        return None;
    }
    let is_fact = match number(value) {
        None => any(VERDICTS) || is_axis(&words),
        // A solver's limit.
        Some(_) if words.len() == 2 && words[0] == "max" && is_in("iter iters iterations steps", last) => {
            true
        }
        Some(number) => {
            let has_unit = time_unit(last).is_some() || is_in("mb mib gb gib kb", last);
            let is_measured =
                number.fract() != 0.0 && (has_unit || any("error err diff difference deviation"));
            is_axis(&words) && !states_rate(name) && !is_measured
        }
    };
    is_fact.then(|| plain(value))
}

/// Returns whether a field tells runs, revisions or hosts apart, by its name or by the form of its value.
fn is_circumstance(name: &str, value: &str) -> bool {
    let lower = name_words(name);
    let words = words(&lower);
    let any = |known: &str| words.iter().any(|word| is_in(known, word));
    let only = |known: &str| words.iter().all(|word| is_in(known, word));
    let last = words.last().copied().unwrap_or_default();
    let is_volatile = any(VOLATILE) && !is_in("size length count", last);
    let is_repeated =
        any(REPEATED) && words.iter().all(|word| is_in(REPEATED, word) || is_in(OF_REPEATED, word));
    // The hash of a program, and not of its results.
    let is_of_program = any("git commit build repo src binary exe program executable")
        && any("hash sha sha1 sha256 md5 digest");
    let is_hash = is_of_program && value.trim().bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_side = only("name side which label title")
        && is_in("base head old new before after baseline candidate", &value.trim().to_lowercase());
    let is_of_data = any("weights model dataset data checkpoint");
    let is_of_ci = words.len() > 1 && words.first().is_some_and(|word| is_in(OF_CI, word));
    let is_of_host = any(OF_HOST) && only(OF_HOST_NAMES);
    is_volatile
        || is_repeated
        || is_of_ci
        || is_of_host
        || is_side
        || is_place(value)
        || is_hash
        || !Quality::is_checksum(name) && !is_of_data && is_identity(value)
}

/// Returns whether a field says in words whether a result is right: `accuracy: eager_two_runs_differ`.
pub(super) fn is_verdict(name: &str, value: &str) -> bool {
    words(&name_words(name)).iter().any(|word| is_in(VERDICTS, word))
        && number(value).is_none()
        && !is_absent(value)
}

/// Returns whether a field states the compiler, its flags, or the version of a program, which may be the change itself,
/// unlike versions of the machine.
fn is_version(name: &str) -> bool {
    let lower = name_words(name);
    let words = words(&lower);
    let any = |known: &str| words.iter().any(|word| is_in(known, word));
    let is_compiler = words.iter().all(|word| is_in(COMPILER, word))
        && words.iter().any(|word| !is_in("flags id name", word));
    any("version versions") && !is_machines(name) || is_compiler
}

/// Returns whether a field states a version, by its name or its value. A shape can look like one.
fn states_version(name: &str, value: &str) -> bool {
    const DATA: &str = "dataset data dims dim shape shapes model weights input inputs size sizes config cfg";
    let is_of_data = || words(&name_words(name)).iter().any(|word| is_in(DATA, word));
    let is_one = || is_version_number(value) && !is_machines(name);
    !is_absent(value) && (is_version(name) || is_one() && !is_of_data())
}

/// Returns whether a field with this name states a version of the machine, which must be equal.
fn is_machines(name: &str) -> bool {
    words(&name_words(name)).iter().any(|word| is_in("driver firmware kernel os", word))
}

const COMPILER: &str = "compiler toolchain cc cxx gcc clang rustc nvcc pgo goexperiment cflags cxxflags ldflags rustflags flags id name";

/// Words for columns that number or date the rows of one experiment (`run_id`, `git_sha`), or that measure
/// something else (`memory_mb`, `latency_std`).
const NO_AXES: &str = "timestamp date datetime run iteration iter repetition repeat rep trial round sample pid uuid \
    commit sha branch url user host hostname note notes comment mean avg average median std stddev stdev var cv min max \
    time latency memory mem rss vram fps qps throughput flops tflops gflops speedup loss accuracy \
    top1 top5 acc perplexity ppl bleu wer cer psnr ssim f1 iou miou auc power watts joules \
    energy util utilization usage clock timeout";

/// Words for times, in columns that state a unit of time.
const TIMED: &str =
    "wall compile compilation elapsed duration total inference kernel ttft tpot itl prefill decode";

/// Words that don't decide about a column if it has other words. Alone they can name an axis: `gpu`, `id`,
/// `size_mb`.
const QUALIFIERS: &str = "id idx index number hash git cpu gpu device host peak used total wall compile compilation \
    elapsed duration inference kernel temp temperature mb mib gb gib kb bytes percent pct mhz ghz w sm per sec second step";

/// Words for what a rate counts, in columns that hold a measured one: `images_per_sec`, `tok/s`.
const RATED: &str = "per rate items samples images img imgs tokens tok toks frames requests req reqs queries inferences iterations \
    iters steps examples sequences elements rows batches bits ops";

/// Returns whether a column holds a measured rate, because every word of its name is known: `target_fps` chooses one.
pub(super) fn is_measured_rate(name: &str) -> bool {
    let is_known = |word: &&str| {
        let named = [RATED, NO_AXES, QUALIFIERS, TIMED].into_iter().any(|known| is_in(known, word));
        named || time_unit(word).is_some() || states_rate(word)
    };
    states_rate(name) && words(name).iter().all(is_known)
}

/// Returns whether a word is a percentile: `p50`, `p99`, `p999`.
pub(super) fn is_percentile(word: &str) -> bool {
    word.strip_prefix('p').is_some_and(|digits| digits.len() > 1 && digits.parse::<u16>().is_ok())
}

/// Returns whether a column identifies the experiment, so that rows that differ in it belong to different
/// experiments. A column with an unknown word counts as such. In doubt, benchmarks are kept apart, because
/// merging them could hide a change.
pub(super) fn is_axis(words: &[&str]) -> bool {
    let has_unit = words.last().is_some_and(|word| *word != "min" && time_unit(word).is_some());
    let named = &words[..words.len() - usize::from(has_unit)];
    let is_known = |word: &str| is_in(NO_AXES, word) || is_percentile(word);
    let decides = |word: &str| is_known(word) || has_unit && is_in(TIMED, word);
    let is_gpus = words.len() > 1 && matches!(words.last(), Some(&("temp" | "temperature")));
    let known = named.iter().all(|word| decides(word) || is_in(QUALIFIERS, word));
    !(words.is_empty() || known && (named.iter().any(|word| decides(word)) || is_gpus))
}
