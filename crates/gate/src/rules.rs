//! Determines which policy applies to a row: metric defaults, overrides, waivers and numerical tolerances by
//! glob, and the direction of metrics whose tool does not state it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use benchgate_core::model::{
    Benchmark, BenchmarkGlob, BenchmarkName, Better, Metric, Quality, RENAMED_FROM, Run, Verdict, is_date,
};

use super::common::ALL_BENCHMARKS;
use super::gradual::StoredSessions;
use super::series::is_signed;
use super::{
    ChangedReference, EarlierSessions, Expectation, Limit, MetricPolicy, NumericsTolerance, Override, Policy,
    Reason, Row, TestKind, Waiver, WaiverUse,
};

/// Returns whether this metric of a benchmark can fail the gate.
pub fn decides(policy: &Policy, name: &BenchmarkName, metric: &Metric) -> bool {
    Rules::of_metrics(policy).metric(name, metric).fatal
}

/// Returns what the policy requires of benchmarks and metrics that neither run has, in words: limits, and metrics
/// that fail the gate because the policy says so. A misspelled name would otherwise never be judged.
pub fn unmatched(policy: &Policy, runs: [&Run; 2]) -> Vec<String> {
    let benchmarks = || runs.into_iter().flat_map(|run| &run.benchmarks);
    let has = |glob: &BenchmarkGlob, metric: Option<&str>| {
        let has_metric = |benchmark: &&Benchmark| {
            let mut names = benchmark.metrics.iter().map(|series| judged_as(&series.metric).name.clone());
            metric.is_none_or(|metric| names.any(|name| name == metric) || benchmark.metric(metric).is_some())
        };
        benchmarks().filter(|benchmark| glob.matches(benchmark.name.as_str())).any(|found| has_metric(&found))
    };
    let usual = Policy::default();
    let is_usual = |name: &str| usual.metrics.iter().any(|(known, rule)| *known == name && rule.fatal);
    let any = BenchmarkGlob::new("*");
    let metrics = policy.metrics.iter().filter(|(name, rule)| rule.fatal && !is_usual(name));
    let metrics = metrics.filter(|(name, _)| !has(&any, Some(name)));
    let metrics = metrics.map(|(name, _)| format!("the gating metric `{name}` is in neither result"));
    let limits = policy.limits.iter().map(|limit| limit.benchmark.as_str());
    let limits = of_no_benchmark("limit", limits, runs);
    let overrides = policy.overrides.iter().filter(|rule| {
        rule.fatal == Some(true) && !has(&BenchmarkGlob::new(&rule.benchmark), rule.metric.as_deref())
    });
    let overrides = overrides.map(|rule| match &rule.metric {
        Some(metric) => {
            format!("no benchmark that matches `{}` has the gating metric `{metric}`", rule.benchmark)
        }
        None => format!(
            "the gating [[gate.override]] of `{}` matches no benchmark of either result",
            rule.benchmark
        ),
    });
    metrics.chain(limits).chain(overrides).collect()
}

/// Returns the limits that match no benchmark of a whole suite, in words. Benchmarks count under their old names too. A
/// command that failed printed no rows, and another machine's limits may be about benchmarks that only that one has.
pub fn unmatched_limits(policy: &Policy, runs: [&Run; 2]) -> Vec<String> {
    if !runs.into_iter().flat_map(|run| &run.benchmarks).all(|benchmark| benchmark.outcome.is_ok()) {
        return Vec::new();
    }
    let limits = policy.limits.iter().filter(|limit| limit.testbed.is_none());
    of_no_benchmark("limit", limits.map(|limit| limit.benchmark.as_str()), runs).collect()
}

/// Returns the waivers that match no benchmark of a whole suite, in words. They hide nothing, but the slowdowns that they
/// were meant for are red.
pub fn unmatched_waivers(policy: &Policy, runs: [&Run; 2]) -> Vec<String> {
    let is_of_all = |waiver: &&Waiver| BenchmarkGlob::new(&waiver.benchmark).matches(ALL_BENCHMARKS);
    let globs = policy.waivers.iter().filter(|it| !is_of_all(it)).map(|waiver| waiver.benchmark.as_str());
    of_no_benchmark("waiver", globs, runs).collect()
}

fn of_no_benchmark<'a>(
    table: &'static str,
    globs: impl Iterator<Item = &'a str>,
    runs: [&Run; 2],
) -> impl Iterator<Item = String> {
    let names: Vec<&str> = runs
        .into_iter()
        .flat_map(|run| &run.benchmarks)
        .flat_map(|it| [Some(it.name.as_str()), it.labels.get(RENAMED_FROM).map(String::as_str)])
        .flatten()
        .collect();
    globs
        .filter(move |glob| {
            let glob = BenchmarkGlob::new(*glob);
            !names.iter().any(|name| glob.matches(name))
        })
        .map(move |glob| format!("the [[{table}]] of `{glob}` matches no benchmark"))
}

/// A policy with its globs compiled.
pub struct Rules<'a> {
    policy: &'a Policy,
    overrides: Vec<(BenchmarkGlob, &'a Override)>,
    waivers: Vec<(BenchmarkGlob, &'a Waiver)>,
    expectations: Vec<(BenchmarkGlob, &'a Expectation)>,
    limits: Vec<(BenchmarkGlob, &'a Limit)>,
    today: &'a str,
    /// The names of renamed benchmarks in the policy, by new name.
    renamed: BTreeMap<&'a str, BenchmarkName>,
    /// The metrics that decide because their benchmark has none that decides by the policy.
    own: BTreeSet<(&'a BenchmarkName, &'a str)>,
}

/// Returns the metric whose rule applies: a fact about one kernel is judged like the fact about all kernels
/// together.
fn judged_as(metric: &Metric) -> Cow<'_, Metric> {
    Metric::kernel_fact(&metric.name).map_or(Cow::Borrowed(metric), Cow::Owned)
}

impl<'a> Rules<'a> {
    pub fn new(policy: &'a Policy, today: &'a str) -> Self {
        Self {
            today,
            waivers: policy.waivers.iter().map(|w| (BenchmarkGlob::new(&w.benchmark), w)).collect(),
            expectations: policy.expectations.iter().map(|e| (BenchmarkGlob::new(&e.benchmark), e)).collect(),
            limits: policy.limits.iter().map(|l| (BenchmarkGlob::new(&l.benchmark), l)).collect(),
            ..Self::of_metrics(policy)
        }
    }

    /// Compiles only floors, tolerances and fatality.
    fn of_metrics(policy: &'a Policy) -> Self {
        Self {
            policy,
            overrides: policy.overrides.iter().map(|o| (BenchmarkGlob::new(&o.benchmark), o)).collect(),
            waivers: Vec::new(),
            expectations: Vec::new(),
            limits: Vec::new(),
            today: "",
            renamed: BTreeMap::new(),
            own: BTreeSet::new(),
        }
    }

    /// Adds what the rules need to know about the benchmarks of two runs.
    pub fn of_runs(self, base: &'a Run, head: &'a Run) -> Self {
        let mut rules = self.with_renames(base);
        let in_head = head.by_name();
        let pairs = base.benchmarks.iter().filter_map(|base| Some((base, *in_head.get(&base.name)?)));
        rules.own = pairs.flat_map(|(base, head)| rules.own_measures(base, head)).collect();
        rules
    }

    /// Returns the metrics that decide about another tool's benchmark if the policy makes none of its metrics
    /// decide, as for a benchmark of throughput: its rates or, without rates, all its metrics. A metric that
    /// the policy names is as informational as the policy says, and so are the others of a benchmark that has
    /// a latency. Base's metrics are used; head's only if base has none.
    fn own_measures(
        &self,
        base: &'a Benchmark,
        head: &'a Benchmark,
    ) -> impl Iterator<Item = (&'a BenchmarkName, &'a str)> + use<'a> {
        let side = if base.metrics.is_empty() { head } else { base };
        let name = &side.name;
        let metrics = || {
            let with_ratio = side.metrics.iter().filter(|series| !is_signed(series));
            with_ratio.map(|series| &series.metric)
        };
        // An artifact that only head states must not keep base's metrics from being judged.
        let is_judged = base.artifact.is_some()
            || metrics().any(|metric| metric.name == Metric::LATENCY.name || self.metric(name, metric).fatal);
        // Large suites have thousands of benchmarks with a time.
        let usual = (!is_judged).then(Policy::default);
        let is_free = |metric: &&Metric| {
            // A built-in metric with its default rule decides for a benchmark that measures nothing else.
            let named = self.policy.metrics.iter().find(|(known, _)| *known == metric.name);
            let is_named =
                named.is_some_and(|rule| usual.as_ref().is_none_or(|usual| !usual.metrics.contains(rule)));
            let is_of_code = Metric::OF_CODE.contains(&judged_as(metric));
            let mut overrides = self.overrides(name, metric);
            !is_judged && !is_named && !is_of_code && overrides.all(|rule| rule.fatal.is_none())
        };
        let mut free: Vec<&Metric> = metrics().filter(is_free).collect();
        // How right a result is decides only if nothing else is stated.
        if free.iter().any(|metric| Quality::of_metric(metric).is_none()) {
            free.retain(|metric| Quality::of_metric(metric).is_none());
        }
        let has_rate = free.iter().any(|metric| metric.better == Better::Higher);
        let deciding = free.into_iter().filter(move |metric| !has_rate || metric.better == Better::Higher);
        deciding.map(move |metric| (name, metric.name.as_ref()))
    }

    /// Adds the old names of the benchmarks that head renamed: by choosing a name, head must not move a
    /// benchmark into or out of a glob.
    fn with_renames(mut self, base: &'a Run) -> Self {
        let renamed = base.benchmarks.iter().filter_map(|benchmark| {
            let from = benchmark.labels.get(RENAMED_FROM)?;
            Some((benchmark.name.as_str(), BenchmarkName::new(from)))
        });
        self.renamed = renamed.collect();
        self
    }

    fn known_as<'b>(&'b self, name: &'b BenchmarkName) -> &'b BenchmarkName {
        self.renamed.get(name.as_str()).unwrap_or(name)
    }

    fn overrides<'b>(
        &'b self,
        name: &'b BenchmarkName,
        metric: &'b Metric,
    ) -> impl Iterator<Item = &'a Override> {
        let name = self.known_as(name);
        self.overrides
            .iter()
            .filter(move |(pattern, rule)| {
                rule.metric.as_ref().is_none_or(|m| *m == metric.name || *m == judged_as(metric).name)
                    && pattern.matches(name.as_str())
            })
            .map(|(_, rule)| *rule)
    }

    /// Returns the floor, tolerance and fatality of one row. Later overrides take precedence.
    pub fn metric(&self, name: &BenchmarkName, metric: &Metric) -> MetricPolicy {
        let judged = judged_as(metric);
        let named = self.policy.metrics.iter().find(|(known, _)| *known == judged.name);
        let is_own = self.own.contains(&(name, metric.name.as_ref()));
        let mut rule = match named {
            Some((_, rule)) => MetricPolicy { fatal: rule.fatal || is_own, ..rule.clone() },
            None if is_own => self.policy.like_a_time(),
            None => MetricPolicy::unnamed(&judged),
        };
        for change in self.overrides(name, metric) {
            rule.floor.relative = change.floor_relative.unwrap_or(rule.floor.relative);
            rule.floor.absolute = change.floor_absolute.unwrap_or(rule.floor.absolute);
            rule.tolerance = change.tolerance.unwrap_or(rule.tolerance);
            rule.fatal = change.fatal.unwrap_or(rule.fatal);
        }
        rule
    }

    /// Returns whether the policy names this metric, so that it is as informational as the policy says.
    pub fn names(&self, name: &BenchmarkName, metric: &Metric) -> bool {
        let mut overrides = self.overrides(name, metric);
        self.policy.metrics.iter().any(|(known, _)| *known == metric.name)
            || self.own.contains(&(name, metric.name.as_ref()))
            || overrides.any(|rule| rule.metric.is_some())
    }

    pub fn changed_reference(&self) -> ChangedReference {
        self.policy.changed_reference
    }

    /// Returns whether a textbook test on all repetitions was requested.
    pub fn is_classical(&self) -> bool {
        self.policy.test != TestKind::Auto
    }

    /// Returns the declared standard deviation between processes, if the policy has one for this row.
    pub fn between_cv(&self, name: &BenchmarkName, metric: &Metric) -> Option<f64> {
        self.overrides(name, metric).filter_map(|o| o.between_cv).last().or(self.policy.between_cv)
    }

    /// Returns how a benchmark is known to fail. The last matching expectation takes precedence.
    pub fn expectation(&self, name: &BenchmarkName) -> Option<&'a Expectation> {
        let name = self.known_as(name);
        let mut matching =
            self.expectations.iter().rev().filter(|(pattern, _)| pattern.matches(name.as_str()));
        matching.next().map(|(_, expectation)| *expectation)
    }

    /// Returns the absolute limits of a benchmark, all of which apply.
    pub fn limits<'b>(&'b self, name: &'b BenchmarkName) -> impl Iterator<Item = &'a Limit> {
        let name = self.known_as(name);
        self.limits.iter().filter(|(pattern, _)| pattern.matches(name.as_str())).map(|(_, limit)| *limit)
    }

    /// Returns the waiver for a row: one that is valid or, failing that, one that has expired.
    pub fn waiver(&self, name: &BenchmarkName, metric: Option<&Metric>) -> Option<WaiverUse> {
        let name = self.known_as(name);
        let matching = self.waivers.iter().filter(|(pattern, waiver)| {
            let metric_matches = match (&waiver.metric, metric) {
                (None, _) => true,
                (Some(wanted), Some(metric)) => *wanted == metric.name,
                (Some(_), None) => false,
            };
            metric_matches && pattern.matches(name.as_str())
        });
        let uses = matching.map(|(_, waiver)| WaiverUse {
            owner: waiver.owner.clone(),
            reason: waiver.reason.clone(),
            expires: waiver.expires.clone(),
            // A waiver whose last day can't be read counts as expired; otherwise it would never end.
            expired: !is_date(&waiver.expires)
                || !is_date(self.today)
                || waiver.expires.as_str() < self.today,
        });
        let mut uses: Vec<WaiverUse> = uses.collect();
        uses.sort_by_key(|waiver| waiver.expired);
        uses.into_iter().next()
    }
}

/// The distances from their references that outputs may have.
#[derive(Debug, Clone, PartialEq)]
pub struct NumericsPolicy {
    /// The tolerance of each element type.
    pub types: Vec<NumericsTolerance>,
    /// Globs over benchmark names, each with the tolerance of one type. Later ones take precedence.
    pub overrides: Vec<(String, NumericsTolerance)>,
}

impl Default for NumericsPolicy {
    fn default() -> Self {
        Self { types: NumericsTolerance::defaults(), overrides: Vec::new() }
    }
}

impl NumericsPolicy {
    /// Returns the tolerance of every element type for one benchmark.
    pub fn for_benchmark(&self, name: &BenchmarkName) -> Vec<NumericsTolerance> {
        let mut types = self.types.clone();
        for (_, own) in
            self.overrides.iter().filter(|(glob, _)| BenchmarkGlob::new(glob).matches(name.as_str()))
        {
            types.iter_mut().filter(|known| known.dtype == own.dtype).for_each(|known| known.clone_from(own));
        }
        types
    }
}

/// Returns the run with the directions that the policy states, for metrics whose tool does not state whether more or
/// less is better; `None` if that changes nothing.
pub fn stated(run: &Run, policy: &Policy) -> Option<Run> {
    let stated = |metric: &Metric| {
        let rule = policy.metrics.iter().find(|(name, _)| *name == metric.name);
        rule.and_then(|(_, rule)| rule.better).filter(|better| *better != metric.better)
    };
    let series = |run: &Run| {
        run.benchmarks
            .iter()
            .flat_map(|benchmark| &benchmark.metrics)
            .any(|series| stated(&series.metric).is_some())
    };
    series(run).then(|| {
        let mut run = run.clone();
        for series in run.benchmarks.iter_mut().flat_map(|benchmark| &mut benchmark.metrics) {
            series.metric.better = stated(&series.metric).unwrap_or(series.metric.better);
        }
        run
    })
}

/// The stored sessions with the directions that the policy states.
pub struct StatedSessions {
    good: Vec<Run>,
    slow: Vec<Run>,
    before: Vec<Run>,
    earlier: Vec<EarlierSessions>,
    storing: bool,
}

impl StatedSessions {
    /// Returns `None` if the policy states no direction.
    pub fn new(stored: StoredSessions<'_>, policy: &Policy) -> Option<Self> {
        let all = |runs: &[Run]| -> Vec<Run> {
            runs.iter().map(|run| stated(run, policy).unwrap_or_else(|| run.clone())).collect()
        };
        let earlier = |sessions: &EarlierSessions| EarlierSessions {
            since: sessions.since.clone(),
            runs: all(&sessions.runs),
        };
        policy.metrics.iter().any(|(_, rule)| rule.better.is_some()).then(|| Self {
            good: all(stored.good),
            slow: all(stored.slow),
            before: all(stored.before),
            earlier: stored.earlier.iter().map(earlier).collect(),
            storing: stored.storing,
        })
    }

    pub fn sessions(&self) -> StoredSessions<'_> {
        StoredSessions {
            good: &self.good,
            slow: &self.slow,
            before: &self.before,
            earlier: &self.earlier,
            storing: self.storing,
        }
    }
}

/// Makes a row inconclusive if its metric changed and neither the tool nor the policy states which direction
/// is better. The row passes only if a change of more than the tolerance is excluded in both directions.
pub fn withhold(row: &mut Row) {
    // A limit states by itself whether it is an upper or a lower one.
    if matches!(row.reason, Reason::Limit(_)) {
        return;
    }
    let Some(metric) = row.metric.as_ref().filter(|metric| metric.better == Better::Unknown) else { return };
    let interval = row.estimate.as_ref().and_then(|estimate| estimate.interval);
    let may_be_lower = || {
        let tolerance = row.policy.as_ref().map_or(0.0, |rule| rule.tolerance);
        interval.is_some_and(|interval| interval.low * (1.0 + tolerance) < 1.0)
    };
    let changed = match row.verdict {
        Verdict::Regressed | Verdict::Improved => true,
        Verdict::Pass => may_be_lower(),
        _ => false,
    };
    if changed {
        let why = format!(
            "neither the metric's name nor its unit states whether more or less is better; set `better = \
            \"higher\"` or `\"lower\"` in `[gate.metric.{:?}]` of the policy",
            metric.name
        );
        (row.verdict, row.reason) = (Verdict::Inconclusive, Reason::too_little("unknown direction", why));
    }
}

#[cfg(test)]
mod tests {
    use benchgate_core::numerics::DType;

    use super::*;

    #[test]
    fn a_benchmark_has_its_own_tolerance_of_one_type() {
        let wide = NumericsTolerance { atol: 0.5, ..NumericsTolerance::for_dtype(DType::F16) };
        let policy =
            NumericsPolicy { overrides: vec![("unet*/*".into(), wide)], ..NumericsPolicy::default() };
        let atol = |benchmark: &str, dtype: &str| {
            let all = policy.for_benchmark(&BenchmarkName::new(benchmark));
            all.iter().find(|tolerance| tolerance.dtype == dtype).unwrap().atol
        };
        assert_eq!(atol("unet-conv/cpu/main", "f16"), 0.5);
        assert_eq!(atol("unet-conv/cpu/main", "f32"), NumericsTolerance::for_dtype(DType::F32).atol);
        assert_eq!(atol("vit/cpu/main", "f16"), NumericsTolerance::for_dtype(DType::F16).atol);
    }
}
