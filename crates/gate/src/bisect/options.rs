//! How a search is run.

use crate::{MetricPolicy, Policy, looks};
use benchgate_core::model::Metric;
use benchgate_stats::spending::Looks;

/// Blocks of a probe's first look.
const FIRST_LOOK: u32 = 8;

/// How a search is run.
#[derive(Debug, Clone)]
pub struct BisectOptions {
    pub policy: Policy,
    /// The observed metric.
    pub metric: Metric,
}

impl BisectOptions {
    /// The policy judges `metric` alone, and only up to `max_blocks` blocks a pair.
    pub fn new(policy: &Policy, metric: Metric, max_blocks: u32) -> Self {
        let mut policy = policy.clone();
        let rule = policy.metrics.iter().find(|(name, _)| *name == metric.name).map(|(_, rule)| rule.clone());
        let latency = || Policy::default().metrics.into_iter().next().map(|(_, rule)| rule);
        let rule = rule.or_else(latency).map(|rule| MetricPolicy { fatal: true, ..rule });
        policy.metrics = rule.map(|rule| (metric.name.to_string(), rule)).into_iter().collect();
        policy.sequential.max_blocks = max_blocks.max(policy.sequential.min_blocks);
        Self { policy, metric }
    }

    /// When the gate judges a pair.
    pub(super) fn looks(&self) -> Looks {
        looks(&self.policy, &self.metric)
    }

    /// When a probe is looked at.
    pub(super) fn probe_looks(&self) -> Looks {
        let blocks = self.policy.sequential;
        Looks::new(FIRST_LOOK.min(blocks.min_blocks), blocks.max_blocks)
    }
}
