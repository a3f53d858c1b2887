//! Compares the generated code of both sides, kernel by kernel: which kernels changed, and which facts got
//! worse by the rules of `judge = "code"`.

use std::collections::{BTreeMap, BTreeSet};

use benchgate_core::model::{
    Benchmark, GeneratedCode, KernelCode, Lint, LintCode, Metric, Number, Verdict, counted,
};

use super::decide::decide_exact;
use super::rules::Rules;
use super::{Row, status};

/// Maximum number of names in a finding; the others are only counted.
const NAMED: usize = 3;

/// The detail of a finding about two sides that execute one module.
const SAME_MODULE: &str = "the compiled modules are identical";

impl Row {
    /// Returns the finding about the code of both sides if nothing in it differs.
    pub fn identical_code(&self) -> Option<&str> {
        let lint = self.lints.iter().find(|lint| lint.code == LintCode::KernelCode)?;
        // If kernels have several states, the detail lists a count for each.
        self.same_code.then_some(&lint.detail)
    }
}

/// The relation of a kernel's instructions to those of base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum KernelState {
    Identical,
    Changed,
    New,
    Gone,
}

impl KernelState {
    /// Compares the digests of both sides; `None` if neither has the kernel.
    pub fn of(base: Option<&str>, head: Option<&str>) -> Option<Self> {
        match (base, head) {
            (None, None) => None,
            // An empty digest stands for code that was not found.
            (Some(base), Some(head)) if base == head && !base.is_empty() => Some(Self::Identical),
            (Some(_), Some(_)) => Some(Self::Changed),
            (None, Some(_)) => Some(Self::New),
            (Some(_), None) => Some(Self::Gone),
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Identical => "identical",
            Self::Changed => "changed",
            Self::New => "new",
            Self::Gone => "gone",
        }
    }
}

/// Returns `12 kernels: 5 identical, 6 changed, 1 new` or `12 kernels: all changed`; `None` without kernels.
pub fn kernel_counts(states: impl Iterator<Item = KernelState>) -> Option<String> {
    let mut counts: BTreeMap<KernelState, usize> = BTreeMap::new();
    for state in states {
        *counts.entry(state).or_default() += 1;
    }
    let all: usize = counts.values().sum();
    let part = |(state, count): (&KernelState, &usize)| match (*count == all, all) {
        (true, 1) => state.as_str().to_owned(),
        (true, _) => format!("all {}", state.as_str()),
        (false, _) => format!("{count} {}", state.as_str()),
    };
    let parts: Vec<String> = counts.iter().map(part).collect();
    (all > 0).then(|| format!("{}: {}", counted(all, "kernel"), parts.join(", ")))
}

/// The code of a kernel on both sides, or on the side that has it.
#[derive(Debug, Clone, PartialEq)]
pub struct CodeChange {
    pub base: Option<KernelCode>,
    pub head: Option<KernelCode>,
}

/// A fact of base and of head; `None` for a side on which it is unknown.
type FactOfBoth = (Metric, Option<f64>, Option<f64>);

impl CodeChange {
    /// Returns head's name, or base's if head has no such kernel.
    pub fn name(&self) -> &str {
        self.head.as_ref().or(self.base.as_ref()).map_or("", |kernel| kernel.name.as_str())
    }

    pub fn state(&self) -> Option<KernelState> {
        let [base, head] =
            [&self.base, &self.head].map(|side| side.as_ref().map(|kernel| kernel.sha256.as_str()));
        KernelState::of(base, head)
    }

    /// Returns the facts that differ, in order of importance.
    pub fn differing(&self) -> Vec<FactOfBoth> {
        let facts =
            |side: &'_ Option<KernelCode>| side.as_ref().map(|it| it.facts.clone()).unwrap_or_default();
        let mut facts = both(&facts(&self.base), &facts(&self.head));
        facts.retain(|(_, base, head)| base != head);
        facts
    }
}

fn both(base: &BTreeMap<String, Number>, head: &BTreeMap<String, Number>) -> Vec<FactOfBoth> {
    let known = |facts: &BTreeMap<String, Number>, metric: &Metric| {
        facts.get(metric.name.as_ref()).map(|value| value.0)
    };
    let facts = Metric::OF_CODE.into_iter().map(|metric| {
        let (base, head) = (known(base, &metric), known(head, &metric));
        (metric, base, head)
    });
    facts.filter(|(_, base, head)| base.is_some() || head.is_some()).collect()
}

/// Returns every kernel of either side, in head's order; empty unless both sides have code for the same
/// processor. A kernel is paired first by name and content, then by content, then by name, because the
/// numbers in names shift when an earlier kernel disappears.
pub fn code_changes(base: Option<&Benchmark>, head: Option<&Benchmark>) -> Vec<CodeChange> {
    let Some((base, head)) = base.zip(head).and_then(|(base, head)| comparable(base, head)) else {
        return Vec::new();
    };
    let mut partners: Vec<Option<usize>> = vec![None; head.kernels.len()];
    let mut left: Vec<usize> = (0..base.kernels.len()).collect();
    type Key = fn(&KernelCode) -> (&str, &str);
    let keys: [Key; 3] = [|it| (&it.name, &it.sha256), |it| (&it.sha256, ""), |it| (&it.name, "")];
    for key in keys {
        let mut known: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
        // Kernels are pushed in reverse order, so that the first one is on top.
        for &at in left.iter().rev() {
            known.entry(key(&base.kernels[at])).or_default().push(at);
        }
        for (kernel, partner) in head.kernels.iter().zip(&mut partners) {
            if partner.is_none() {
                *partner = known.get_mut(&key(kernel)).and_then(Vec::pop);
            }
        }
        left = known.into_values().flatten().collect();
        left.sort_unstable();
    }
    let paired = head.kernels.iter().zip(partners).map(|(kernel, partner)| CodeChange {
        base: partner.map(|at| base.kernels[at].clone()),
        head: Some(kernel.clone()),
    });
    let gone = left.iter().map(|&at| CodeChange { base: Some(base.kernels[at].clone()), head: None });
    paired.chain(gone).collect()
}

/// Returns the code of both sides, if it is for the same processor.
fn comparable<'a>(
    base: &'a Benchmark,
    head: &'a Benchmark,
) -> Option<(&'a GeneratedCode, &'a GeneratedCode)> {
    let (base, head) = base.code.as_ref().zip(head.code.as_ref())?;
    (base.architecture == head.architecture).then_some((base, head))
}

/// Adds findings about the module's code to the row of its latency: the kernels that changed, if the time
/// changed or may have changed, and the facts that regressed.
pub fn add_lints(row: &mut Row, base: &Benchmark, head: &Benchmark, rules: &Rules<'_>) {
    let changes = code_changes(Some(base), Some(head));
    let same_module = status::same_module(base, head);
    let counts = if same_module {
        Some(SAME_MODULE.to_owned())
    } else {
        kernel_counts(changes.iter().filter_map(CodeChange::state))
    };
    let Some(counts) = counts else { return };
    let moved: Vec<&str> = changes
        .iter()
        .filter(|change| change.state() != Some(KernelState::Identical))
        .map(CodeChange::name)
        .collect();
    let is_worth_it = matches!(row.verdict, Verdict::Regressed | Verdict::Improved | Verdict::Inconclusive);
    // Names are only informative if other kernels stayed the same; `explain` lists all of them.
    let is_part = !moved.is_empty() && moved.len() < changes.len();
    row.same_code = !is_part && (same_module || moved.is_empty());
    let detail = if is_part { format!("{counts}: {}", first_of(&moved)) } else { counts };
    let kernels = is_worth_it.then(|| Lint::new(LintCode::KernelCode, detail));
    let regressed = regressions(&changes, base, head, rules);
    let regressed = (!regressed.is_empty()).then(|| Lint::new(LintCode::CodeRegressed, first_of(&regressed)));
    row.lints.extend(kernels.into_iter().chain(regressed));
}

/// Returns the finding that only one side has some kernels, if the code itself is judged, by facts of each kernel.
pub fn other_kernels(base: &Benchmark, head: &Benchmark) -> Option<Lint> {
    let kernels = |side: &'_ Benchmark| -> BTreeSet<String> {
        side.metrics.iter().filter_map(|series| Some(series.metric.kernel()?.to_owned())).collect()
    };
    let sides = [kernels(base), kernels(head)];
    if sides.iter().any(BTreeSet::is_empty) {
        return None;
    }
    let only = |name: &str, side: &BTreeSet<String>, other: &BTreeSet<String>| {
        let names: Vec<&String> = side.difference(other).collect();
        (!names.is_empty()).then(|| format!("only {name} has {}", first_of(&names)))
    };
    let [base, head] = &sides;
    let parts: Vec<String> = only("base", base, head).into_iter().chain(only("head", head, base)).collect();
    (!parts.is_empty()).then(|| Lint::new(LintCode::KernelCode, parts.join("; ")))
}

/// Returns the facts that regressed: `spilled-registers of matmul_64x64_f32 0 → 12` for each kernel that both
/// sides have, and for all kernels together the facts in which no such kernel regressed.
fn regressions(changes: &[CodeChange], base: &Benchmark, head: &Benchmark, rules: &Rules<'_>) -> Vec<String> {
    let name = &head.name;
    let regressed = |facts: Vec<FactOfBoth>| {
        facts.into_iter().filter_map(|(metric, base, head)| {
            let rule = rules.metric(name, &metric);
            let worse = metric.better.worse();
            let (base, head) = base.zip(head)?;
            let (verdict, _) = decide_exact(base, head, worse, &rule);
            (rule.fatal && verdict == Verdict::Regressed).then_some((metric, base, head))
        })
    };
    let each = changes.iter().filter(|change| change.base.is_some());
    let each = each.flat_map(|change| {
        regressed(change.differing())
            .map(|(metric, base, head)| (metric.of_kernel(change.name()), base, head))
    });
    let mut found: Vec<(Metric, f64, f64)> = each.collect();
    if let Some((base, head)) = comparable(base, head) {
        let shown: Vec<Metric> =
            found.iter().filter_map(|(metric, ..)| Metric::kernel_fact(&metric.name)).collect();
        found
            .extend(regressed(both(&base.facts, &head.facts)).filter(|(metric, ..)| !shown.contains(metric)));
    }
    found.into_iter().map(|(metric, base, head)| format!("{} {base} → {head}", metric.name)).collect()
}

/// Returns the first names, and the number of the others.
fn first_of(names: &[impl AsRef<str>]) -> String {
    let shown: Vec<&str> = names.iter().take(NAMED).map(AsRef::as_ref).collect();
    match names.len().saturating_sub(NAMED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
