//! Changes inside a benchmark: its kernels, compiler statistics, the state of the machine.
//!
//! This is evidence for a person who looks for a cause. Nothing here affects a verdict.

use std::collections::{BTreeSet, HashMap};

use benchgate_core::model::{
    Benchmark, BenchmarkName, Kernel, Lint, LintCode, Metric, Run, Telemetry, Verdict,
};
use benchgate_stats::describe;

use super::code::{CodeChange, code_changes};
use super::status::matched;
use super::{Comparison, Row};

/// One benchmark, explained as far as both runs have data.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    pub benchmark: BenchmarkName,
    /// Its rows of the comparison, with their verdicts.
    pub rows: Vec<Row>,
    /// Every kernel of either side; the kernel whose time changed most is first.
    pub kernels: Vec<KernelChange>,
    /// The reason why a side has no kernels, base first.
    pub unprofiled: [Option<String>; 2],
    /// The code of every kernel of either side, if both sides have code for the same processor.
    pub code: Vec<CodeChange>,
    /// The reason why a side's code could not be read, base first.
    pub unread: [Option<String>; 2],
    /// Compiler statistics that differ, by the compiler's own names.
    pub counts: Vec<CountChange>,
    /// The state of the machine while each side was measured; absent if it was not watched.
    pub machine: [Option<Machine>; 2],
}

/// One kernel on both sides, or on the side that has it.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelChange {
    pub base: Option<Kernel>,
    pub head: Option<Kernel>,
}

/// A statistic that the compiler reports on one side or on both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountChange {
    pub name: String,
    pub base: Option<u64>,
    pub head: Option<u64>,
}

/// The state of the machine during the processes of one side.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Machine {
    /// Number of processes that were watched.
    pub processes: u32,
    /// Number of processes in which something other than the power limit reduced the clock.
    pub throttled: u32,
    /// Number of processes in which the power limit reduced the clock.
    pub power_capped: u32,
    /// Number of processes during which other programs ran.
    pub disturbed: u32,
    /// Median over the processes, in degrees Celsius.
    pub temperature: Option<f64>,
}

impl KernelChange {
    /// Returns head's name, or base's if head has no such kernel.
    pub fn name(&self) -> &str {
        self.head.as_ref().or(self.base.as_ref()).map_or("", |kernel| kernel.name.as_str())
    }

    /// Returns the time that it adds to one iteration, in nanoseconds; negative if it became faster.
    pub fn delta(&self) -> f64 {
        let time = |kernel: &Option<Kernel>| kernel.as_ref().map_or(0.0, |kernel| kernel.nanoseconds);
        time(&self.head) - time(&self.base)
    }
}

impl Explanation {
    pub fn row(&self, metric: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.metric.as_ref().is_some_and(|it| it.name == metric))
    }

    /// Returns whether the latency may have changed, or whether another metric or a statistic has changed.
    pub fn moved(&self) -> bool {
        self.rows.iter().any(|row| {
            // Other metrics count only if they are known to differ; for a compile time from the cache, this
            // is unknown.
            let other = row.metric.as_ref().is_some_and(|metric| metric.name != Metric::LATENCY.name);
            let changed = matches!(row.verdict, Verdict::Regressed | Verdict::Improved);
            if other { changed } else { row.verdict != Verdict::Pass }
        }) || !self.counts.is_empty()
    }

    /// Returns whether both sides were profiled; otherwise no kernel is known to be new, removed or slower.
    pub fn compares_kernels(&self) -> bool {
        self.unprofiled.iter().all(Option::is_none)
    }

    /// Returns head's latency minus base's, in nanoseconds.
    pub fn latency_delta(&self) -> Option<f64> {
        let row = self.row(&Metric::LATENCY.name)?;
        Some(row.typical.head? - row.typical.base?)
    }
}

/// Explains every benchmark of a comparison of these runs, in the same order.
pub fn explain(base: &Run, head: &Run, comparison: &Comparison) -> Vec<Explanation> {
    let mut rows: HashMap<&BenchmarkName, Vec<Row>> = HashMap::new();
    for row in &comparison.rows {
        rows.entry(&row.benchmark).or_default().push(row.clone());
    }
    matched(base, head)
        .into_iter()
        .filter_map(|pair| {
            let name = &pair.any()?.name;
            Some(Explanation {
                benchmark: name.clone(),
                rows: rows.remove(name).unwrap_or_default(),
                kernels: kernels(pair.base, pair.head),
                unprofiled: match can_be_profiled([pair.base, pair.head]) {
                    true => [pair.base, pair.head].map(unprofiled),
                    false => Default::default(),
                },
                code: code_changes(pair.base, pair.head),
                unread: [pair.base, pair.head].map(|side| side?.code.as_ref()?.problem.clone()),
                counts: counts(pair.base, pair.head),
                machine: [machine(pair.base), machine(pair.head)],
            })
        })
        .collect()
}

/// Returns a finding for the row of a latency that changed: the kernel that changed most, in the same
/// direction as all kernels together, if both sides were profiled. It contains only ratios, so that it may be
/// published wherever ratios may.
pub fn kernel_lint(base: &Benchmark, head: &Benchmark) -> Option<Lint> {
    let both = |benchmark: &Benchmark| benchmark.profile.as_ref().is_some_and(|it| !it.kernels.is_empty());
    if !both(base) || !both(head) {
        return None;
    }
    let changes = kernels(Some(base), Some(head));
    let together: f64 = changes.iter().map(KernelChange::delta).sum();
    let most = changes.iter().find(|change| change.delta() * together > 0.0)?;
    let detail = match (&most.base, &most.head) {
        (Some(was), Some(now)) if was.nanoseconds > 0.0 => {
            let factor = now.nanoseconds / was.nanoseconds;
            let name = most.name();
            if was.calls == now.calls {
                format!("{name} takes {factor:.2} times as long")
            } else {
                // A kernel that is launched more often did not get slower.
                let (was, now) = (was.calls, now.calls);
                format!(
                    "{name} takes {factor:.2} times as long in total and runs {now} times instead of {was}"
                )
            }
        }
        (_, None) => format!("{} is gone", most.name()),
        (_, Some(_)) => format!("{} is new", most.name()),
    };
    let total: f64 = changes.iter().map(|change| change.delta().abs()).sum();
    let share = 100.0 * most.delta().abs() / total;
    // The values in a file are untrusted.
    if !share.is_finite() {
        return None;
    }
    let detail = format!("{detail}: {share:.0} % of the change in kernel time");
    Some(Lint::new(LintCode::KernelMoved, detail))
}

/// Pairs kernels by name. The compiler numbers them, so the remaining ones are paired by name without the
/// number, in order.
fn kernels(base: Option<&Benchmark>, head: Option<&Benchmark>) -> Vec<KernelChange> {
    let of = |benchmark: Option<&Benchmark>| -> Vec<Kernel> {
        benchmark.and_then(|it| it.profile.as_ref()).map(|it| it.kernels.clone()).unwrap_or_default()
    };
    let mut left: Vec<Kernel> = of(base);
    let mut changes: Vec<KernelChange> =
        of(head).into_iter().map(|kernel| KernelChange { base: None, head: Some(kernel) }).collect();
    for same in [exactly as fn(&str) -> String, without_number] {
        for change in changes.iter_mut().filter(|change| change.base.is_none()) {
            let name = same(change.name());
            if let Some(at) = left.iter().position(|kernel| same(&kernel.name) == name) {
                change.base = Some(left.remove(at));
            }
        }
    }
    changes.extend(left.into_iter().map(|kernel| KernelChange { base: Some(kernel), head: None }));
    changes.sort_by(|a, b| b.delta().abs().total_cmp(&a.delta().abs()));
    changes
}

fn exactly(name: &str) -> String {
    name.to_owned()
}

/// Returns `main_dispatch__matmul` for `main_dispatch_9_matmul`.
fn without_number(name: &str) -> String {
    const MARK: &str = "_dispatch_";
    match name.split_once(MARK) {
        Some((before, after)) => {
            format!("{before}{MARK}{}", after.trim_start_matches(|letter: char| letter.is_ascii_digit()))
        }
        None => name.to_owned(),
    }
}

/// Returns whether one of the sides is a compiled module or was profiled: other programs have no kernels to time.
fn can_be_profiled(sides: [Option<&Benchmark>; 2]) -> bool {
    sides.into_iter().flatten().any(|side| side.artifact.is_some() || side.profile.is_some())
}

fn unprofiled(benchmark: Option<&Benchmark>) -> Option<String> {
    match benchmark {
        None => Some("this side does not have the benchmark".to_owned()),
        Some(benchmark) if !benchmark.outcome.is_ok() => Some("the benchmark was not measured".to_owned()),
        Some(benchmark) => match &benchmark.profile {
            None => Some("the benchmark was not profiled (set `profile` in [measure])".to_owned()),
            Some(profile) => {
                let empty = profile.kernels.is_empty().then(|| "the profile contains no kernel".to_owned());
                profile.problem.clone().or(empty)
            }
        },
    }
}

fn counts(base: Option<&Benchmark>, head: Option<&Benchmark>) -> Vec<CountChange> {
    let (Some(base), Some(head)) = (base, head) else { return Vec::new() };
    if base.compiler.is_empty() || head.compiler.is_empty() {
        return Vec::new();
    }
    let names: BTreeSet<&String> = base.compiler.keys().chain(head.compiler.keys()).collect();
    names
        .into_iter()
        .map(|name| CountChange {
            name: name.clone(),
            base: base.compiler.get(name).copied(),
            head: head.compiler.get(name).copied(),
        })
        .filter(|change| change.base != change.head)
        .collect()
}

fn machine(benchmark: Option<&Benchmark>) -> Option<Machine> {
    let seen = benchmark.map(|benchmark| benchmark.telemetry.as_slice()).filter(|seen| !seen.is_empty())?;
    let count = |which: fn(&Telemetry) -> bool| {
        u32::try_from(seen.iter().filter(|one| which(one)).count()).unwrap_or(u32::MAX)
    };
    let temperatures: Vec<f64> = seen.iter().filter_map(|one| one.temperature).collect();
    Some(Machine {
        processes: count(|_| true),
        throttled: count(|one| !one.throttled.is_empty()),
        power_capped: count(|one| one.power_capped),
        disturbed: count(|one| one.foreign_share.is_some() || !one.foreign.is_empty()),
        temperature: describe::median(&temperatures),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use benchgate_core::model::Profile;

    fn profiled(kernels: &[(&str, f64)]) -> Benchmark {
        let kernel = |(name, nanoseconds): &(&str, f64)| Kernel {
            name: (*name).to_owned(),
            calls: 1.0,
            nanoseconds: *nanoseconds,
        };
        let profile = Profile { kernels: kernels.iter().map(kernel).collect(), ..Profile::default() };
        Benchmark { profile: Some(profile), ..Benchmark::new("m") }
    }

    #[test]
    fn kernels_are_matched_by_name_then_by_name_without_its_number() {
        let base = profiled(&[("main_dispatch_0_matmul", 5.0), ("main_dispatch_1_softmax", 9.0)]);
        let head = profiled(&[
            ("main_dispatch_0_matmul", 5.0),
            ("main_dispatch_1_transpose", 3.0),
            ("main_dispatch_2_softmax", 1.0),
        ]);
        let changes = kernels(Some(&base), Some(&head));
        let found: Vec<(&str, f64)> = changes.iter().map(|it| (it.name(), it.delta())).collect();
        assert_eq!(
            found,
            [
                ("main_dispatch_2_softmax", -8.0),
                ("main_dispatch_1_transpose", 3.0),
                ("main_dispatch_0_matmul", 0.0)
            ]
        );
        assert!(changes[1].base.is_none());
    }

    #[test]
    fn the_kernel_that_moved_most_is_named_in_ratios() {
        let base = profiled(&[("a", 600.0), ("b", 400.0)]);
        let head = profiled(&[("a", 500.0), ("b", 800.0)]);
        let lint = kernel_lint(&base, &head).unwrap();
        assert_eq!(lint.detail, "b takes 2.00 times as long: 80 % of the change in kernel time");
        assert_eq!(kernel_lint(&base, &base), None);
        assert_eq!(kernel_lint(&base, &Benchmark::new("m")), None);
    }

    #[test]
    fn a_kernel_that_got_faster_is_not_named_for_a_slowdown() {
        let base = profiled(&[("a", 600.0), ("b", 400.0)]);
        let head = profiled(&[("a", 500.0), ("b", 460.0), ("c", 90.0)]);
        let lint = kernel_lint(&base, &head).unwrap();
        assert_eq!(lint.detail, "c is new: 36 % of the change in kernel time");
    }
}
