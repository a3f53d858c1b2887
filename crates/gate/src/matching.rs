//! Pairs the benchmarks of base and head, by name only. A benchmark that seems to have another name at head
//! is pointed out.

use std::collections::{BTreeMap, HashMap};

use benchgate_core::model::{Benchmark, BenchmarkName, Lint, LintCode, RENAMED_FROM, Run, Workload};
use benchgate_core::record::WHEN_STORED;

use super::Row;

/// One benchmark, on one side or on both.
#[derive(Debug, Clone, Copy)]
pub struct Matched<'a> {
    pub base: Option<&'a Benchmark>,
    pub head: Option<&'a Benchmark>,
}

impl<'a> Matched<'a> {
    /// Returns head's benchmark or, if head lacks it, base's.
    pub fn any(&self) -> Option<&'a Benchmark> {
        self.head.or(self.base)
    }

    /// Returns whether head reports this problem and base does not.
    pub fn is_new(&self, problem: &Lint) -> bool {
        self.head.is_some_and(|head| head.lints.contains(problem))
            && !self.base.is_some_and(|base| is_reported(&base.lints, problem))
    }
}

/// Returns whether these findings of base contain the problem. A stored session keeps only the code.
pub fn is_reported(lints: &[Lint], problem: &Lint) -> bool {
    lints.contains(problem) || lints.contains(&Lint::new(problem.code, WHEN_STORED))
}

/// Returns every benchmark of either run once: in the order of head, followed by those that only base has. If
/// a run repeats a name, the first one is paired with the first, the second with the second.
pub fn matched<'a>(base: &'a Run, head: &'a Run) -> Vec<Matched<'a>> {
    let mut waiting: HashMap<&BenchmarkName, Vec<usize>> = HashMap::with_capacity(base.benchmarks.len());
    for (index, benchmark) in base.benchmarks.iter().enumerate().rev() {
        waiting.entry(&benchmark.name).or_default().push(index);
    }
    let mut taken = vec![false; base.benchmarks.len()];
    let mut pairs = Vec::with_capacity(head.benchmarks.len());
    for benchmark in &head.benchmarks {
        let partner = waiting.get_mut(&benchmark.name).and_then(Vec::pop);
        if let Some(index) = partner {
            taken[index] = true;
        }
        pairs.push(Matched { base: partner.map(|index| &base.benchmarks[index]), head: Some(benchmark) });
    }
    let left = base.benchmarks.iter().zip(&taken).filter(|(_, taken)| !**taken);
    pairs.extend(left.map(|(benchmark, _)| Matched { base: Some(benchmark), head: None }));
    pairs
}

/// Returns a note about benchmarks that were compared under another name.
pub(super) fn notes(base: &Run) -> Option<String> {
    let renamed = base.benchmarks.iter().filter_map(|benchmark| {
        let from = benchmark.labels.get(RENAMED_FROM)?;
        Some(format!("{from} → {}", benchmark.name))
    });
    let renamed: Vec<String> = renamed.collect();
    (!renamed.is_empty()).then(|| {
        format!("head renamed benchmarks, and the policy for the old names applies: {}", renamed.join(", "))
    })
}

/// Adds a finding to each benchmark that only base has, if one of head's looks like the same one.
pub(super) fn point_out(rows: &mut [Row], pairs: &[Matched<'_>]) {
    let gone = pairs.iter().filter(|pair| pair.head.is_none()).filter_map(|pair| pair.base);
    let new: Vec<&Benchmark> =
        pairs.iter().filter(|pair| pair.base.is_none()).filter_map(|pair| pair.head).collect();
    let alike: BTreeMap<&BenchmarkName, &BenchmarkName> = gone
        .filter_map(|gone| {
            let mut found = new.iter().filter(|new| is_alike(gone, new));
            // If there are several candidates, none is more likely than the others.
            let one = found.next().filter(|_| found.next().is_none())?;
            Some((&gone.name, &one.name))
        })
        .collect();
    for row in rows {
        let Some(to) = alike.get(&row.benchmark) else { continue };
        if let Some(lint) = row.lints.iter_mut().find(|lint| lint.code == LintCode::Unmatched) {
            *lint = Lint::new(LintCode::Unmatched, renaming(&row.benchmark, to));
        }
    }
}

/// The beginning of the finding that a benchmark seems to have another name at head.
pub const LOOKS_RENAMED: &str = "looks renamed: ";

/// Describes a renaming, with the line that declares it. Only a model's name can be declared.
fn renaming(from: &BenchmarkName, to: &BenchmarkName) -> String {
    let text = format!("{LOOKS_RENAMED}{from} → {to}");
    match (from.as_str().split_once('/'), to.as_str().split_once('/')) {
        (Some((old, rest)), Some((new, same))) if rest == same => {
            format!("{text}; if it is, add {RENAMED_FROM} = \"{old}\" to the [[model]] {new}")
        }
        _ => text,
    }
}

/// Returns whether two benchmarks do the same work with the same inputs, as far as the results show.
fn is_alike(gone: &Benchmark, new: &Benchmark) -> bool {
    let asked = |benchmark: &Benchmark| {
        let Workload { device, inputs_sha256, reference_sha256, .. } =
            benchmark.artifact.as_ref()?.workload.clone()?;
        // Reference outputs are required, because without them many models share the same inputs.
        Some((device, inputs_sha256, reference_sha256?))
    };
    let module = |benchmark: &Benchmark| Some(benchmark.artifact.as_ref()?.vmfb_sha256.clone());
    asked(gone).is_some_and(|asked_of| asked(new) == Some(asked_of))
        || module(gone).is_some_and(|module_of| module(new) == Some(module_of))
}
