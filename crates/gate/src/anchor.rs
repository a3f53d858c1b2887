//! Head against a frozen toolchain that was measured in the same session: the ratio that is stored and judged.

use std::collections::BTreeMap;

use benchgate_core::model::{Anchor, Artifact, Run};

use super::{CompareOptions, Method, Policy, compare};

/// `head` with its ratios to `anchor`, block by block as a paired gate estimates them.
pub fn anchored(anchor: &Run, head: Run, policy: &Policy) -> Run {
    let mut measured = anchor.clone();
    let mut artifacts = BTreeMap::new();
    for benchmark in &mut measured.benchmarks {
        if let Some(artifact) = &mut benchmark.artifact {
            artifacts.insert(benchmark.name.clone(), executed(artifact));
            // A head that is still the anchor has a measured ratio like any other, and not exactly one.
            artifact.execution_sha256.clear();
        }
    }
    let comparison = compare(&measured, &head, policy, &CompareOptions::default());
    let ratios = comparison.rows.into_iter().filter_map(|row| {
        let estimate = row.estimate.filter(|estimate| estimate.method == Method::Paired)?;
        Some(((row.benchmark, row.metric?.name.into_owned()), estimate.ratio))
    });
    let ratios = ratios.filter(|(_, ratio)| ratio.is_finite() && *ratio > 0.0).collect();
    let anchor = Anchor { toolchain: anchor.toolchain.clone().unwrap_or_default(), artifacts, ratios };
    Run { anchor: Some(anchor), ..head }
}

fn executed(artifact: &Artifact) -> String {
    format!("{}-{}", artifact.vmfb_sha256, artifact.execution_sha256)
}
