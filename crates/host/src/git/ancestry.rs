//! The ancestors of a commit. The history is walked once and only as far back as needed.

use std::cell::RefCell;
use std::collections::HashSet;

use git2::{Oid, Revwalk, Sort};

use super::{GitError, Repository, other};

/// Tolerated difference between committers' clocks, in seconds. With a larger difference an ancestor may be missed, which
/// loses a stored session. Without a limit, every unrelated commit would walk a large history to its root, which takes minutes.
const SLACK: i64 = 7 * 24 * 3600;

/// The ancestors of a commit, newest first, as far as they were walked.
pub struct Ancestry<'r> {
    repository: &'r Repository,
    walked: RefCell<Walked<'r>>,
}

struct Walked<'r> {
    walk: Revwalk<'r>,
    seen: HashSet<Oid>,
    /// Time of the last walked commit.
    reached: i64,
    ended: bool,
}

impl std::fmt::Debug for Ancestry<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ancestry").field("repository", self.repository).finish_non_exhaustive()
    }
}

impl Repository {
    /// The ancestors of a commit, branch or tag.
    pub fn ancestry(&self, of: &str) -> Result<Ancestry<'_>, GitError> {
        let failed = |error: git2::Error| other("follow the history", &error);
        let of = self.commit(of)?;
        let mut walk = self.inner.revwalk().map_err(failed)?;
        walk.set_sorting(Sort::TIME).map_err(failed)?;
        walk.push(of).map_err(failed)?;
        let walked = Walked { walk, seen: HashSet::new(), reached: i64::MAX, ended: false };
        Ok(Ancestry { repository: self, walked: RefCell::new(walked) })
    }
}

impl Ancestry<'_> {
    /// Whether a commit is this one or an ancestor of it. `None` if a shallow clone ends before that is known.
    pub fn contains(&self, commit: &str) -> Option<bool> {
        let inner = &self.repository.inner;
        let not_found = |at_end: bool| if at_end && inner.is_shallow() { None } else { Some(false) };
        // If the history is complete, a commit that is not in the repository is not an ancestor.
        let Ok(found) = Oid::from_str(commit).and_then(|id| inner.find_commit(id)) else {
            return not_found(true);
        };
        let (id, time) = (found.id(), found.time().seconds());
        let walked = &mut *self.walked.borrow_mut();
        while !walked.seen.contains(&id) && !walked.ended && walked.reached.saturating_add(SLACK) >= time {
            // In a shallow clone the walk ends with an error about a missing parent.
            match walked.walk.next().transpose() {
                Ok(Some(next)) => {
                    walked.seen.insert(next);
                    walked.reached = inner.find_commit(next).map_or(walked.reached, |c| c.time().seconds());
                }
                Ok(None) | Err(_) => walked.ended = true,
            }
        }
        if walked.seen.contains(&id) { Some(true) } else { not_found(walked.ended) }
    }
}
