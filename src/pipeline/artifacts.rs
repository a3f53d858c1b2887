//! Selects the artifacts that the selected benchmarks of a side need.

use std::path::Path;

use crate::config::{Artifact, Model};

use super::plan::{PlannedBenchmark, SideInput};

/// Selects the artifacts that a side's selected benchmarks need, each with the folder of the side's sources.
/// An artifact is left out only if it is named by models that are not selected, and by nothing else. One that
/// no key names is kept, because code and commands can open it.
pub(super) fn needed<'a>(
    side: &'a SideInput,
    plan: &[PlannedBenchmark<'_>],
    has_commands: bool,
) -> Vec<(&'a Artifact, &'a Path)> {
    if plan.is_empty() && !has_commands {
        return Vec::new();
    }
    let all = &side.config.artifacts;
    let is_needed = |artifact: &&Artifact| {
        let names = |model: &Model| model.files().any(|path| artifact.is_at(path));
        plan.iter().any(|planned| names(planned.model))
            || !side.config.models.iter().any(names)
            || is_in_flags(artifact, side)
    };
    all.iter().filter(is_needed).map(|artifact| (artifact, side.side.sources.as_path())).collect()
}

/// Returns whether flags or environment variables of any benchmark name the artifact.
fn is_in_flags(artifact: &Artifact, side: &SideInput) -> bool {
    let config = &side.config;
    let of_targets = config.targets.iter().flat_map(|target| target.flags.iter().chain(&target.run_flags));
    let variables = config.targets.iter().flat_map(|target| target.env.values());
    let of_models = config.models.iter().flat_map(|model| &model.flags);
    let of_side = side.side.flags.iter().chain(&side.side.run_flags);
    let path = artifact.path();
    let path = path.to_string_lossy();
    of_targets.chain(variables).chain(of_models).chain(of_side).any(|flag| flag.contains(&*path))
}
