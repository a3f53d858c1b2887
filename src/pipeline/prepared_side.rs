//! A side of a run whose benchmarks can be measured.

use std::sync::Arc;

use crate::model::BenchmarkName;
use crate::toolchain::Installed;

use super::commands::PreparedCommand;
use super::plan::SideInput;
use super::stage::Prepared;

/// A side with its tools and its benchmarks.
pub(super) struct PreparedSide<'a> {
    pub(super) input: &'a SideInput,
    /// Absent for a side without a model.
    pub(super) tools: Option<Arc<Installed>>,
    pub(super) benchmarks: Vec<Prepared<'a>>,
    pub(super) commands: Vec<PreparedCommand>,
}

impl PreparedSide<'_> {
    /// Whether a process of it will be timed.
    pub(super) fn is_timed(&self) -> bool {
        !self.commands.is_empty() || self.benchmarks.iter().any(|one| one.execution.is_some())
    }

    /// The benchmark of a model of this name.
    pub(super) fn benchmark(&self, name: &BenchmarkName) -> Option<&Prepared<'_>> {
        self.benchmarks.iter().find(|prepared| prepared.name() == *name)
    }
}
