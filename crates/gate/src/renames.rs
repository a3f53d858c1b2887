//! Benchmarks that have another name at head than at base: those that say so, and those that look like it.

use std::collections::BTreeMap;

use benchgate_core::model::{Benchmark, BenchmarkName, Lint, LintCode, RENAMED_FROM, Run, Workload};

use super::Row;
use super::matching::Matched;

/// A note about benchmarks that were compared under another name.
pub(super) fn notes(base: &Run) -> Option<String> {
    let renamed = base.benchmarks.iter().filter_map(|benchmark| {
        let from = benchmark.labels.get(RENAMED_FROM)?;
        Some(format!("{from} → {}", benchmark.name))
    });
    let renamed: Vec<String> = renamed.collect();
    (!renamed.is_empty()).then(|| format!("renamed by head, and judged as before: {}", renamed.join(", ")))
}

/// Adds a finding to each benchmark that only base has, if one of head's looks like it.
pub(super) fn point_out(rows: &mut [Row], pairs: &[Matched<'_>]) {
    let gone = pairs.iter().filter(|pair| pair.head.is_none()).filter_map(|pair| pair.base);
    let new: Vec<&Benchmark> =
        pairs.iter().filter(|pair| pair.base.is_none()).filter_map(|pair| pair.head).collect();
    let alike: BTreeMap<&BenchmarkName, &BenchmarkName> = gone
        .filter_map(|gone| {
            let mut found = new.iter().filter(|new| is_alike(gone, new));
            // With several candidates, none is more likely than the others.
            let one = found.next().filter(|_| found.next().is_none())?;
            Some((&gone.name, &one.name))
        })
        .collect();
    for row in rows {
        let Some(to) = alike.get(&row.benchmark) else { continue };
        if let Some(lint) = row.lints.iter_mut().find(|lint| lint.code == LintCode::Unmatched) {
            *lint = Lint::new(LintCode::Unmatched, format!("looks renamed: {} → {to}", row.benchmark));
        }
    }
}

/// Whether both do the same with the same inputs, as far as the results say.
fn is_alike(gone: &Benchmark, new: &Benchmark) -> bool {
    let asked = |benchmark: &Benchmark| {
        let Workload { device, inputs_sha256, reference_sha256, .. } =
            benchmark.artifact.as_ref()?.workload.clone()?;
        // Without reference outputs the inputs are mostly those of every other model.
        Some((device, inputs_sha256, reference_sha256?))
    };
    let module = |benchmark: &Benchmark| Some(benchmark.artifact.as_ref()?.vmfb_sha256.clone());
    asked(gone).is_some_and(|asked_of| asked(new) == Some(asked_of))
        || module(gone).is_some_and(|module_of| module(new) == Some(module_of))
}
