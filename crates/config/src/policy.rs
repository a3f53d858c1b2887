//! `[gate]`, `[[waiver]]` and `[numerics]`: the settings that a pull request must not choose for itself.

use std::time::Duration;

use benchgate_core::model::{Better, Metric, Unit};
use benchgate_gate::{
    Expectation, FailureKind, Floor, Limit, MetricPolicy, NumericsPolicy, NumericsTolerance, Override,
    Policy, SequentialPolicy, Waiver,
};

use super::fields::KeyPresence;
use super::judging::{GATE, NUMERICS};
use super::problems::{Collector, did_you_mean, suggestion};
use super::types::PolicyPart;
use super::values::ConfigView;
use super::values::shown;

/// The metrics that benchgate itself measures.
static KNOWN: [Metric; Metric::BUILT_IN.len()] = Metric::BUILT_IN;

/// Reads the policy from the top level of a document, and the block counts from `[measure]`.
pub(super) fn part(
    root: ConfigView<'_, '_>,
    measure: ConfigView<'_, '_>,
    problems: &mut Collector,
) -> PolicyPart {
    let gate = root.get("gate");
    let defaults = Policy::default();
    let mut policy = Policy {
        metrics: metrics(gate.get("metric"), &defaults, problems),
        overrides: overrides(gate.get("override"), problems),
        waivers: waivers(root.get("waiver"), problems),
        expectations: expectations(root.get("expect")),
        limits: limits(root.get("limit"), problems),
        sequential: sequential(measure, defaults.sequential, problems),
        between_cv: gate.get("between-cv").fraction(),
        ..defaults
    };
    for (view, section) in [(gate, &GATE), (root.get("numerics"), &NUMERICS)] {
        for field in section.fields {
            if let KeyPresence::Judged(_, read) = field.presence {
                read(&mut policy, view.get(field.key));
            }
        }
    }
    let failing = gate.get("fail-on");
    if failing.is_list() && failing.items().next().is_none() {
        let message = "`fail-on`: expected at least one verdict; `--warn-only` reports without failing";
        problems.add(failing.at(), message);
    }
    PolicyPart { policy, numerics: numerics(root, problems) }
}

fn sequential(
    view: ConfigView<'_, '_>,
    default: SequentialPolicy,
    problems: &mut Collector,
) -> SequentialPolicy {
    let (min, max) = (view.get("min-blocks"), view.get("max-blocks"));
    let given = |view: ConfigView<'_, '_>| view.integer().filter(|_| view.is_present());
    let max_blocks = given(max).unwrap_or(default.max_blocks);
    // If only one of the two is set, the other one's default is adjusted to fit.
    let min_blocks = given(min).unwrap_or(default.min_blocks.min(max_blocks));
    let max_blocks = if max.is_present() { max_blocks } else { max_blocks.max(min_blocks) };
    let policy = SequentialPolicy { min_blocks, max_blocks };
    if policy.min_blocks > policy.max_blocks {
        let at = if min.is_present() { min } else { max };
        problems.add(
            at.at(),
            format!("`min-blocks` ({}) is more than `max-blocks` ({})", policy.min_blocks, policy.max_blocks),
        );
    }
    policy
}

fn metrics(
    view: ConfigView<'_, '_>,
    defaults: &Policy,
    problems: &mut Collector,
) -> Vec<(String, MetricPolicy)> {
    let mut metrics = defaults.metrics.clone();
    for (name, at, settings) in view.entries() {
        check_metric_name(name, at, problems);
        // A metric of another tool that the gate names is meant to decide the verdict, as latency does.
        let default = metrics
            .iter()
            .find(|(known, _)| known == name)
            .map_or(MetricPolicy { fatal: true, ..MetricPolicy::UNNAMED }, |(_, policy)| policy.clone());
        let tolerance = settings.get("tolerance");
        let policy = MetricPolicy {
            floor: Floor {
                relative: settings.get("floor").fraction().unwrap_or(default.floor.relative),
                absolute: magnitude(settings.get("floor-absolute"), Some(name), problems)
                    .unwrap_or(default.floor.absolute),
            },
            tolerance: tolerance.fraction().unwrap_or(default.tolerance),
            fatal: settings.get("fatal").bool().unwrap_or(default.fatal),
            better: settings.get("better").text().and_then(Better::parse),
        };
        if policy.better.is_some() && Metric::built_in(name).is_some() {
            problems.add(
                settings.get("better").at(),
                format!("`better`: the direction of `{name}` is built in and can't be set"),
            );
        }
        if policy.tolerance < policy.floor.relative {
            let at = if tolerance.is_present() { tolerance.at() } else { settings.get("floor").at() };
            problems.add(at, below_floor(policy.tolerance, policy.floor.relative));
        }
        match metrics.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = policy,
            None => metrics.push((name.to_owned(), policy)),
        }
    }
    metrics
}

fn below_floor(tolerance: f64, floor: f64) -> String {
    format!(
        "the tolerance ({}) is below the floor ({}): a change between them could be neither red nor green",
        percent(tolerance),
        percent(floor)
    )
}

/// A fraction as a percentage, for messages.
pub(super) fn percent(fraction: f64) -> String {
    // Six decimals are few enough to hide the error of 0.07 × 100 in binary arithmetic.
    let text = format!("{:.6}", fraction * 100.0);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Reports a name that resembles the name of a known metric: it is probably a typo, and the table would
/// silently have no effect.
fn check_metric_name(name: &str, at: usize, problems: &mut Collector) {
    let known = || KNOWN.iter().map(|metric| metric.name.as_ref());
    if known().any(|known| known == name) {
        return;
    }
    if let Some(close) = suggestion(name, known()) {
        problems.add(at, format!("unknown metric `{}`; did you mean `{close}`?", shown(name)));
    }
}

/// Reads an absolute floor in the metric's unit.
fn magnitude(view: ConfigView<'_, '_>, metric: Option<&str>, problems: &mut Collector) -> Option<f64> {
    if !view.is_present() {
        return None;
    }
    let Some(metric) = metric else {
        problems.add(view.at(), "`floor-absolute` needs a `metric`: units differ between metrics");
        return None;
    };
    within(in_unit(view, "floor-absolute", metric, problems)?, metric, view.at(), problems)
}

/// Reads a value in the metric's unit, which is nanoseconds for times.
fn in_unit(view: ConfigView<'_, '_>, key: &str, metric: &str, problems: &mut Collector) -> Option<f64> {
    let known = KNOWN.iter().find(|known| known.name == metric);
    let is_time = known.map(|known| known.unit == Unit::Nanoseconds);
    if let Some(duration) = view.duration() {
        if is_time == Some(false) {
            problems.add(view.at(), format!("`{key}`: `{}` is not a time; write a number", shown(metric)));
        }
        return Some(nanoseconds(duration));
    }
    let number = view.number();
    if number.is_some() && is_time == Some(true) {
        problems.add(
            view.at(),
            format!("`{key}`: `{}` is a time; write a duration such as \"5us\"", shown(metric)),
        );
    }
    number
}

/// Refuses floors that would hide every change. Above ten seconds of latency, the relative floor of 1 % is
/// already larger than the limit.
fn within(floor: f64, metric: &str, at: usize, problems: &mut Collector) -> Option<f64> {
    let unit = KNOWN.iter().find(|known| known.name == metric).map(|known| &known.unit);
    let (most, shown) = match unit {
        Some(Unit::Nanoseconds) if metric == Metric::COMPILE_TIME.name => (60e9, "1m"),
        Some(Unit::Nanoseconds) => (100e6, "100ms"),
        Some(Unit::Bytes) => (64.0 * 1024.0 * 1024.0, "67108864 (64 MiB)"),
        Some(_) => (1_000.0, "1000"),
        // Only the other tool knows the unit of its metric, so there is no limit.
        None => return Some(floor),
    };
    if floor <= most {
        return Some(floor);
    }
    problems.add(at, format!("`floor-absolute`: expected at most {shown}: a larger one hides any change"));
    None
}

fn nanoseconds(duration: Duration) -> f64 {
    duration.as_nanos() as f64
}

fn overrides(view: ConfigView<'_, '_>, problems: &mut Collector) -> Vec<Override> {
    let mut seen = Vec::new();
    let mut overrides = Vec::new();
    for item in view.items() {
        let metric = item.get("metric").text();
        if let Some(metric) = metric {
            check_metric_name(metric, item.get("metric").at(), problems);
        }
        let (floor, tolerance) = (item.get("floor").fraction(), item.get("tolerance").fraction());
        if let (Some(floor), Some(tolerance)) = (floor, tolerance)
            && tolerance < floor
        {
            problems.add(item.get("tolerance").at(), below_floor(tolerance, floor));
        }
        let key = (item.get("benchmark").owned(), metric.map(str::to_owned));
        if seen.contains(&key) {
            problems.add(item.at(), format!("a second override for `{}` and the same metric", shown(&key.0)));
        }
        let over = Override {
            benchmark: key.0.clone(),
            metric: key.1.clone(),
            floor_relative: floor,
            floor_absolute: magnitude(item.get("floor-absolute"), metric, problems),
            tolerance,
            fatal: item.get("fatal").bool(),
            between_cv: item.get("between-cv").fraction(),
        };
        seen.push(key);
        let nothing = Override {
            benchmark: over.benchmark.clone(),
            metric: over.metric.clone(),
            ..Override::default()
        };
        if over == nothing && !item.get("floor-absolute").is_present() {
            problems.add(item.at(), "this override changes nothing");
        }
        overrides.push(over);
    }
    overrides
}

fn waivers(view: ConfigView<'_, '_>, problems: &mut Collector) -> Vec<Waiver> {
    view.items()
        .map(|item| {
            if let Some(metric) = item.get("metric").text() {
                check_metric_name(metric, item.get("metric").at(), problems);
            }
            Waiver {
                benchmark: item.get("benchmark").owned(),
                metric: item.get("metric").text().map(str::to_owned),
                owner: item.get("owner").owned(),
                reason: item.get("reason").owned(),
                expires: item.get("expires").owned(),
            }
        })
        .collect()
}

/// Reads the expected failures; a table with several globs becomes one expectation per glob.
fn expectations(view: ConfigView<'_, '_>) -> Vec<Expectation> {
    let of_table = |item: ConfigView<'_, '_>| {
        let failures = item.get("failure").one_or_more().into_iter().filter_map(ConfigView::text);
        let failure: Vec<FailureKind> = failures.filter_map(FailureKind::parse).collect();
        let reason = item.get("reason").owned();
        let one = |glob: &str| Expectation {
            benchmark: glob.to_owned(),
            failure: failure.clone(),
            reason: reason.clone(),
            removed: false,
        };
        item.get("benchmark")
            .one_or_more()
            .into_iter()
            .filter_map(ConfigView::text)
            .map(one)
            .collect::<Vec<_>>()
    };
    view.items().flat_map(of_table).collect()
}

fn limits(view: ConfigView<'_, '_>, problems: &mut Collector) -> Vec<Limit> {
    view.items()
        .map(|item| {
            let metric = item.get("metric");
            let name = metric.owned();
            check_metric_name(&name, metric.at(), problems);
            let mut bound = |key: &str| in_unit(item.get(key), key, &name, problems);
            let (max, min) = (bound("max"), bound("min"));
            if !item.get("max").is_present() && !item.get("min").is_present() {
                problems.add(item.at(), "a limit needs `max` or `min`");
            }
            if let (Some(max), Some(min)) = (max, min)
                && min > max
            {
                problems.add(item.get("min").at(), "`min` is more than `max`");
            }
            Limit {
                benchmark: item.get("benchmark").owned(),
                max,
                min,
                testbed: item.get("testbed").text().map(str::to_owned),
                owner: item.get("owner").text().map(str::to_owned),
                metric: name,
            }
        })
        .collect()
}

fn numerics(root: ConfigView<'_, '_>, problems: &mut Collector) -> NumericsPolicy {
    let mut policy = NumericsPolicy::default();
    let is_key = |name: &str| NUMERICS.fields.iter().any(|field| !field.is_any_name() && field.key == name);
    let types = root.get("numerics").entries().filter(|(name, ..)| !is_key(name));
    for (name, at, settings) in types {
        let Some(known) = policy.types.iter_mut().find(|known| known.dtype == name) else {
            let advice = did_you_mean(name, policy.types.iter().map(|known| known.dtype.as_str()));
            problems.add(at, format!("unknown element type `{}` in [numerics]{advice}", shown(name)));
            continue;
        };
        *known = tolerance(known, settings);
    }
    for item in root.get("numerics-override").items() {
        let name = item.get("type").owned();
        let Some(known) = policy.types.iter().find(|known| known.dtype == name) else { continue };
        let own = tolerance(known, item);
        if own == *known {
            problems.add(item.at(), "this override changes nothing");
        }
        policy.overrides.push((item.get("benchmark").owned(), own));
    }
    policy
}

/// The bounds in `settings`; bounds that it does not give are taken from `before`.
fn tolerance(before: &NumericsTolerance, settings: ConfigView<'_, '_>) -> NumericsTolerance {
    let given = |key: &str, before: f64| settings.get(key).number().unwrap_or(before);
    NumericsTolerance {
        dtype: before.dtype.clone(),
        atol: given("atol", before.atol),
        rtol: given("rtol", before.rtol),
        stol: given("stol", before.stol),
        max_error: given("max-error", before.max_error),
        min_cosine: given("min-cosine", before.min_cosine),
    }
}
