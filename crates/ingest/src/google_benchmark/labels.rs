//! Labels of Google Benchmark: free text in which a program says how it ran and how right the result is, and labels that
//! the context states.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

use benchgate_core::model::{Benchmark, LABEL, LABEL_WORDS, Lint, LintCode, Quality, excerpt, is_axis};

use super::super::facts::{self, Field, state};
use super::super::join::SEVERAL;
use super::super::values::number;
use super::super::{document, logs::stated_problem};
use super::label_text::{fixed_words, numbers, pairs};

/// Number of names of numbers from which no further label is read.
const MOST_NAMES: usize = 64;

/// The labels of one benchmark's rows.
#[derive(Debug, Default)]
pub(super) struct Labels {
    first: Option<String>,
    /// Their words, which are compared with those of the other side's processes.
    words: Option<String>,
    numbers: BTreeMap<String, Vec<f64>>,
    problem: Option<Lint>,
}

impl Labels {
    /// Adds the label of a row; returns the failure that it reports.
    pub(super) fn take(&mut self, label: Cow<'_, str>) -> Option<String> {
        if self.first.as_deref() == Some(label.as_ref()) {
            return None;
        }
        self.problem = self.problem.take().or_else(|| problem(&label));
        // No honest program uses so many names.
        let stated = numbers(&label);
        // `errors: 1` is a count, which is compared with base's.
        let counts = stated.iter().any(|(name, _)| {
            Quality::of_name(name) == Some(Quality::Failures)
                && label.trim_start().to_lowercase().starts_with(name.as_str())
        });
        if self.numbers.len() < MOST_NAMES {
            for (name, value) in stated {
                self.numbers.entry(name).or_default().push(value);
            }
        }
        let words = fixed_words(&label);
        let is_other = self.words.as_ref().is_some_and(|known| *known != words);
        self.words = Some(if is_other { SEVERAL.to_owned() } else { words });
        let failure = facts::failure("label", &label).filter(|_| !counts);
        self.first.get_or_insert(label.into_owned());
        failure
    }

    /// Adds the first label, the words and the problem of all labels to the benchmark.
    pub(super) fn describe(&self, benchmark: &mut Benchmark) {
        let first = self.first.iter().filter(|text| !text.is_empty());
        benchmark.labels.extend(first.map(|text| (LABEL.to_owned(), text.clone())));
        benchmark.labels.extend(self.words.iter().map(|words| (LABEL_WORDS.to_owned(), words.clone())));
        benchmark.lints.extend(self.problem.clone());
    }

    /// Adds the numbers to a benchmark that was measured.
    pub(super) fn state_numbers(self, benchmark: &mut Benchmark) {
        for (name, values) in self.numbers {
            facts::state_values(benchmark, &name, values);
        }
    }
}

/// Returns the problem that a label reports as a whole or in one of its pairs (`correct=false`, `exit_code: 139`). The
/// detail is the same on both sides, because a pair can also be a mode: `exact_match=false`.
fn problem(label: &str) -> Option<Lint> {
    let stated = || stated_problem(label).map(str::to_owned);
    let in_pair = || {
        pairs(label).find_map(|(name, value)| {
            let is_literal = matches!(value, "true" | "false") || number(value).is_some();
            let json =
                if is_literal { value.to_owned() } else { Value::String(value.to_owned()).to_string() };
            // `False` is Python's.
            document::finding(name, &json.replace("False", "false")).map(|_| format!("{name}={value}"))
        })
    };
    let lint = |said: String| {
        Lint::new(LintCode::ReportedProblem, format!("the label says `{}`", excerpt(&said, 80)))
    };
    facts::problem("label", label).or_else(|| stated().or_else(in_pair).map(lint))
}

/// Context key for the labels that distinguish experiments with equal names, such as pytest-benchmark's
/// timer: [`Axes`] as JSON text.
pub(crate) const AXES: &str = "benchgate_axes";

/// Labels of each benchmark.
pub(crate) type Axes = BTreeMap<String, BTreeMap<String, String>>;

/// Labels of benchmarks that a file states outside of their rows.
#[derive(Debug, Default)]
pub(super) struct StatedLabels {
    /// The labels of each benchmark of a converted file.
    pub(super) axes: Axes,
    /// The user's own context (`--benchmark_context=backend=cuda`), which all benchmarks share.
    pub(super) fields: Vec<Field>,
}

impl StatedLabels {
    pub(super) fn add_to(&mut self, benchmark: &mut Benchmark) {
        if !self.fields.is_empty() {
            state(benchmark, &self.fields);
        }
        // Other labels state how benchgate built or judges a benchmark, which a file must not decide.
        let stated = self.axes.remove(benchmark.name.as_str()).unwrap_or_default();
        benchmark.labels.extend(stated.into_iter().filter(|(axis, _)| is_axis(axis)));
    }
}
