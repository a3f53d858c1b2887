//! The repository half of `doctor`: may what this repository's workflows publish be trusted?
//!
//! A check is a function that looks at one thing and returns one [`Finding`] with an `id` of its own; add
//! it to the list that [`findings`] returns. What it may look at is in [`Place`].

use crate::git::Repository;

use super::Place;
use super::finding::Finding;

/// Every finding about the repository.
pub(super) fn findings(place: &Place) -> Vec<Finding> {
    vec![repository(place)]
}

fn repository(place: &Place) -> Finding {
    const ID: &str = "repository";
    match Repository::open(&place.folder) {
        Ok(repository) => Finding::ok(ID, format!("a git work tree at {}", repository.root().display())),
        Err(_) => Finding::note(
            ID,
            format!("{} is not in a git work tree", place.folder.display()),
            "Results name no commit, and nothing can be compared with a merge base.",
            "",
        ),
    }
}
