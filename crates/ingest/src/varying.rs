//! Numbers in fields that differ from run to run of one program: measurements, and no settings.

use std::collections::{BTreeMap, BTreeSet};

use benchgate_core::model::{Benchmark, FIELD, Quality, VARIES, is_in, name_words, words};

use super::values::number;

/// Words in names of fields whose number chooses the work, and is not measured.
const CHOSEN: &str =
    "size scale threshold tolerance limit mode type length weight level unroll tile block chunk window";

/// Values of numeric facts that differ among the runs of one side.
#[derive(Debug, Default)]
pub(super) struct Varying(BTreeMap<String, BTreeSet<String>>);

impl Varying {
    /// The least number of values that shows that a number is measured. Two may be two settings.
    const ENOUGH: usize = 3;

    /// Takes the facts in which a further run differs from the first one, so that the two appear equal.
    pub(super) fn take(&mut self, first: &Benchmark, next: &mut Benchmark) {
        for (label, value) in &mut next.labels {
            let Some(known) = first.labels.get(label).filter(|known| *known != value) else { continue };
            let is_taken = label.strip_prefix(FIELD).is_some_and(may_be_measured)
                && [known.as_str(), value.as_str()].into_iter().all(is_reading);
            if is_taken {
                let values = self.0.entry(label.clone()).or_default();
                values.insert(known.clone());
                values.insert(std::mem::replace(value, known.clone()));
            }
        }
    }

    /// Notes in the joined benchmark which facts vary. Returns those of which too few values differ, with these values.
    pub(super) fn finish(self, joined: &mut Benchmark) -> Vec<(String, String)> {
        let mut few = Vec::new();
        for (label, values) in self.0 {
            if values.len() >= Self::ENOUGH {
                joined.labels.insert(label, varying_label(&values));
            } else {
                few.push((label, values.into_iter().collect::<Vec<_>>().join(" / ")));
            }
        }
        few
    }
}

/// Returns the value of the label for a fact with these values, which states their range.
fn varying_label(values: &BTreeSet<String>) -> String {
    let first = |value: &String| number(value.split_whitespace().next()?);
    let numbers: Vec<f64> = values.iter().filter_map(first).collect();
    let low = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let high = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("{VARIES}{low} to {high}")
}

/// Returns whether a value consists of numbers and their units: `23552272 kB`, `0.16 0.80 0.14`.
fn is_reading(value: &str) -> bool {
    const LONGEST_UNIT: usize = 4;
    let is_unit =
        |word: &str| word.len() <= LONGEST_UNIT && word.chars().all(|c| c.is_ascii_alphabetic() || c == '/');
    let mut words = value.split_whitespace();
    words.next().is_some_and(|first| number(first).is_some())
        && words.all(|word| number(word).is_some() || is_unit(word))
}

/// Returns whether a number in a field with this name can be a measurement, because the name states no amount of work
/// and no setting.
fn may_be_measured(name: &str) -> bool {
    let lower = name_words(name);
    Quality::of_name(name).is_none() && !words(&lower).iter().any(|word| is_in(CHOSEN, word))
}
