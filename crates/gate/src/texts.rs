//! Compares the words of the labels that the processes of both sides state.

use benchgate_core::model::{Benchmark, LabelWords, Lint, LintCode, excerpt};
use benchgate_stats::classical::fewest_of_one_side;

use super::chance::{ENOUGH_RANKED, NOT_CHANCE, OF_ONE_FACT, ranked};

/// Maximum number of characters of a label in a finding.
const LONGEST: usize = 80;

/// Returns the finding that the words of the sides' labels differ by more than chance explains. Another word names other work.
/// Head may also say that it did something else if only head has a label, or no longer say what it does.
pub fn label_lint(base: &Benchmark, head: &Benchmark) -> Option<Lint> {
    let stated = [base, head].map(LabelWords::of);
    if stated.iter().all(Option::is_none) {
        return None;
    }
    let [of_base, of_head] = [base, head].map(|side| {
        let processes = side.metrics.first().map_or(1, |series| series.series.processes());
        LabelWords::of(side).unwrap_or_else(|| LabelWords::none(processes))
    });
    if are_alike(&of_base, &of_head) {
        return None;
    }
    let shown = |words: &LabelWords| excerpt(&words.shown(), LONGEST);
    Some(match stated {
        [None, _] => Lint::new(LintCode::FactChanged, format!("a new label says {}", shown(&of_head))),
        [_, None] => Lint::new(LintCode::FactChanged, format!("the label {} is missing", shown(&of_base))),
        _ => {
            let detail =
                format!("the sides differ in label words: {} / {}", shown(&of_base), shown(&of_head));
            Lint::new(LintCode::WorkloadChanged, detail)
        }
    })
}

/// Returns whether chance explains how the labels of the processes differ. A few processes don't show what varies, so their
/// labels must be the same.
fn are_alike(of_base: &LabelWords, of_head: &LabelWords) -> bool {
    if of_base.processes().min(of_head.processes()) < ENOUGH_RANKED {
        return of_base.0.keys().eq(of_head.0.keys());
    }
    let shifted = of_base.0.keys().any(|words| {
        let is_theirs = |side: &LabelWords| -> Vec<f64> {
            let counted = |(other, count): (&String, &usize)| {
                std::iter::repeat_n(f64::from(u8::from(other == words)), *count)
            };
            side.0.iter().flat_map(counted).collect()
        };
        ranked(&is_theirs(of_base), &is_theirs(of_head)).is_some_and(|test| test.two_sided < NOT_CHANCE)
    });
    !shifted && !has_new_words(of_base, of_head) && !has_new_words(of_head, of_base)
}

/// Returns whether more of the processes in `new` have words that `known` lacks than chance explains. If each process of
/// `known` has its own words, so has a further one: its share is that of the words seen once (Good 1953, Biometrika 40:237–264).
fn has_new_words(known: &LabelWords, new: &LabelWords) -> bool {
    let unseen = new.0.iter().filter(|(words, _)| !known.0.contains_key(*words)).map(|(_, count)| count);
    let expected = (known.seen_once() * new.processes()).div_ceil(known.processes().max(1));
    unseen.sum::<usize>() >= expected + fewest_of_one_side(new.processes(), known.processes(), OF_ONE_FACT)
}
