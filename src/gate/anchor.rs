//! Head against a frozen toolchain that was measured in the same session: the ratio that is stored and judged.

use crate::model::{Anchor, Run};

use super::{CompareOptions, Method, Policy, compare};

/// `head` with its ratios to `anchor`, block by block as a paired gate estimates them.
pub fn anchored(anchor: &Run, mut head: Run, policy: &Policy) -> Run {
    let comparison = compare(anchor, &head, policy, &CompareOptions::default());
    let ratios = comparison.rows.into_iter().filter_map(|row| {
        let estimate = row.estimate.filter(|estimate| estimate.method == Method::Paired)?;
        Some(((row.benchmark, row.metric?.name.into_owned()), estimate.ratio))
    });
    let ratios = ratios.filter(|(_, ratio)| ratio.is_finite() && *ratio > 0.0).collect();
    head.anchor = anchor.toolchain.clone().map(|toolchain| Anchor { toolchain, ratios });
    head
}
