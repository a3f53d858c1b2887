//! The repository half of `doctor`: checks that the results published by this repository's workflows can be
//! trusted.
//!
//! A check is a function that examines one property and returns one [`Finding`] with a unique `id`; add it to
//! the list that [`findings`] returns. Its inputs are in [`CheckContext`] and [`Workflows`].

/// The advice to add workflows with `benchgate init`. The command includes `--action`, which is required
/// unless a release was installed.
macro_rules! init {
    ($does:literal) => {
        concat!("`benchgate init --action OWNER/REPO@COMMIT --runner LABELS`, in the suite's folder, ", $does)
    };
}

mod baseline;
#[cfg(test)]
mod tests;
mod workflows;

use crate::cli::Terminal;
use crate::git::Repository;

use super::CheckContext;
use super::finding::Finding;
use workflows::Workflows;

/// All findings about the repository.
pub(super) fn findings(context: &CheckContext, terminal: &Terminal) -> Vec<Finding> {
    let opened = Repository::open(&context.folder).ok();
    let mut found = vec![repository(context, opened.as_ref())];
    let Some(repository) = &opened else { return found };
    let workflows = Workflows::read(repository.root());
    let expected = context.config.as_ref().map(|config| config.github.workflow.as_str());
    found.extend(workflows::findings(&workflows, expected));
    found.extend(baseline::findings(&workflows, context, repository, terminal));
    found
}

fn repository(context: &CheckContext, opened: Option<&Repository>) -> Finding {
    const ID: &str = "repository";
    match opened {
        Some(repository) => Finding::ok(ID, format!("a git work tree at {}", repository.root().display())),
        None => Finding::note(
            ID,
            format!("{} is not in a git work tree", context.folder.display()),
            "Results name no commit, so nothing can be compared with a merge base.",
            "",
        ),
    }
}
