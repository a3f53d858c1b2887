//! Describes the differences between two policies, for pull requests that change the gate.

use benchgate_core::model::Better;
use benchgate_gate::{Expectation, Limit, MetricPolicy, NumericsTolerance, Override, Waiver};

use super::PolicyPart;
use super::fields::KeyPresence;
use super::judging::{GATE, NUMERICS};
use super::policy::percent;
use super::values::shown;

/// Describes the changes that `head` makes to the policy of `base`, one phrase for each, in the order of the
/// reference page. Empty if both policies judge alike. The phrases contain no control characters, but their
/// text still comes from a pull request, so renderers must escape it for their format.
pub fn policy_changes(base: &PolicyPart, head: &PolicyPart) -> Vec<String> {
    let mut changes = Vec::new();
    let (b, h) = (&base.policy, &head.policy);
    let (blocks, head_blocks) = (b.sequential, h.sequential);
    changed(&mut changes, "min-blocks", blocks.min_blocks, head_blocks.min_blocks, |n| n.to_string());
    changed(&mut changes, "max-blocks", blocks.max_blocks, head_blocks.max_blocks, |n| n.to_string());
    for field in GATE.fields.iter().chain(NUMERICS.fields) {
        match (field.key, field.presence) {
            ("fail-on", _) => changed(&mut changes, field.key, fail_on(base), fail_on(head), String::clone),
            ("between-cv", _) => {
                changed(&mut changes, field.key, b.between_cv, h.between_cv, |cv| share(*cv))
            }
            (_, KeyPresence::Judged(written, _)) => {
                let plain = |text: &String| text.trim_matches('"').to_owned();
                changed(&mut changes, field.key, written(b), written(h), plain);
            }
            _ => {}
        }
    }
    metrics(&b.metrics, &h.metrics, &mut changes);
    listed("override", &b.overrides, &h.overrides, describe_override, &mut changes);
    listed("waiver", &b.waivers, &h.waivers, describe_waiver, &mut changes);
    listed("expectation", &b.expectations, &h.expectations, describe_expectation, &mut changes);
    listed("limit", &b.limits, &h.limits, describe_limit, &mut changes);
    for after in &head.numerics.types {
        if let Some(before) = base.numerics.types.iter().find(|tolerance| tolerance.dtype == after.dtype) {
            numerics(before, after, &mut changes);
        }
    }
    let (b, h) = (&base.numerics.overrides, &head.numerics.overrides);
    listed("numerics-override", b, h, describe_tolerance, &mut changes);
    changes
}

fn changed<T: PartialEq>(
    changes: &mut Vec<String>,
    what: &str,
    before: T,
    after: T,
    shown: impl Fn(&T) -> String,
) {
    if before != after {
        changes.push(format!("{what}: {} → {}", shown(&before), shown(&after)));
    }
}

fn fail_on(part: &PolicyPart) -> String {
    let mut words: Vec<_> = part.policy.fail_on.0.iter().map(|verdict| verdict.as_str()).collect();
    // The words are sorted, because the order in the file has no meaning.
    words.sort_unstable();
    words.join(", ")
}

fn share(value: Option<f64>) -> String {
    value.map_or_else(|| "not set".to_owned(), percent)
}

fn metrics(before: &[(String, MetricPolicy)], after: &[(String, MetricPolicy)], changes: &mut Vec<String>) {
    let find = |all: &[(String, MetricPolicy)], name: &str| {
        all.iter().find(|(known, _)| known == name).map(|(_, policy)| policy.clone())
    };
    for (name, head) in after {
        let shown_name = shown(name);
        let Some(base) = find(before, name) else {
            changes.push(format!("metric `{shown_name}`: added"));
            continue;
        };
        let part = |part: &str| format!("{shown_name} {part}");
        let (old, new) = (base.floor, head.floor);
        changed(changes, &part("floor"), old.relative, new.relative, |floor| percent(*floor));
        changed(changes, &part("floor-absolute"), old.absolute, new.absolute, f64::to_string);
        changed(changes, &part("tolerance"), base.tolerance, head.tolerance, |share| percent(*share));
        changed(changes, &part("fatal"), base.fatal, head.fatal, bool::to_string);
        let direction = |better: &Option<Better>| better.unwrap_or(Better::Unknown).to_string();
        changed(changes, &part("better"), base.better, head.better, direction);
    }
    for (name, _) in before {
        if find(after, name).is_none() {
            changes.push(format!("metric `{}`: removed", shown(name)));
        }
    }
}

/// Describes the entries that were added to a list or removed from it. A changed entry appears as both.
fn listed<T: PartialEq>(
    what: &str,
    before: &[T],
    after: &[T],
    describe: fn(&T) -> String,
    changes: &mut Vec<String>,
) {
    let unchanged = changes.len();
    for entry in before.iter().filter(|entry| !after.contains(entry)) {
        changes.push(format!("{what} removed: {}", describe(entry)));
    }
    for entry in after.iter().filter(|entry| !before.contains(entry)) {
        changes.push(format!("{what} added: {}", describe(entry)));
    }
    if changes.len() == unchanged && before != after {
        // The last override that matches wins, so their order is part of the policy.
        changes.push(format!("{what}s: other order"));
    }
}

fn describe_override(entry: &Override) -> String {
    let mut parts = Vec::new();
    let mut part =
        |key: &str, value: Option<String>| parts.extend(value.map(|value| format!("{key} {value}")));
    part("floor", entry.floor_relative.map(percent));
    part("floor-absolute", entry.floor_absolute.map(|value| value.to_string()));
    part("tolerance", entry.tolerance.map(percent));
    part("fatal", entry.fatal.map(|value| value.to_string()));
    part("between-cv", entry.between_cv.map(percent));
    format!("{}: {}", place(&entry.benchmark, entry.metric.as_deref()), parts.join(", "))
}

fn describe_waiver(entry: &Waiver) -> String {
    format!(
        "{} until {} by {}: {}",
        place(&entry.benchmark, entry.metric.as_deref()),
        shown(&entry.expires),
        shown(&entry.owner),
        shown(&entry.reason)
    )
}

fn describe_expectation(entry: &Expectation) -> String {
    let failures: Vec<&str> = entry.failure.iter().map(|failure| failure.as_str()).collect();
    format!("{} for `{}`: {}", failures.join(" or "), shown(&entry.benchmark), shown(&entry.reason))
}

fn describe_limit(entry: &Limit) -> String {
    let Limit { benchmark, metric, max, min, testbed, owner } = entry;
    let mut parts = vec![place(benchmark, Some(metric))];
    parts.extend(max.map(|max| format!("max {max}")));
    parts.extend(min.map(|min| format!("min {min}")));
    parts.extend(testbed.as_ref().map(|testbed| format!("on `{}`", shown(testbed))));
    parts.extend(owner.as_ref().map(|owner| format!("by {}", shown(owner))));
    parts.join(", ")
}

fn describe_tolerance((benchmark, tolerance): &(String, NumericsTolerance)) -> String {
    let bounds = tolerance.bounds().map(|(key, bound)| format!("{key} {bound:?}"));
    format!("`{}` ({}): {}", shown(benchmark), tolerance.dtype, bounds.join(", "))
}

fn place(benchmark: &str, metric: Option<&str>) -> String {
    match metric {
        Some(metric) => format!("`{}` ({})", shown(benchmark), shown(metric)),
        None => format!("`{}`", shown(benchmark)),
    }
}

fn numerics(before: &NumericsTolerance, after: &NumericsTolerance, changes: &mut Vec<String>) {
    for ((key, b), (_, a)) in before.bounds().into_iter().zip(after.bounds()) {
        let dtype = &after.dtype;
        // Unlike `{}`, `{:?}` writes tiny numbers with an exponent.
        changed(changes, &format!("{dtype} {key}"), b, a, |bound| format!("{bound:?}"));
    }
}
