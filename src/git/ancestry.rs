//! Which commits lie behind one commit, walked once and only as far back as somebody asks.

use std::cell::RefCell;
use std::collections::HashSet;

use git2::{Oid, Revwalk, Sort};

use super::{GitError, Repository, other};

/// How far clocks of committers may disagree, in seconds, before a commit behind this one is missed. To
/// miss one costs a stored session; to walk a large history to its root for each stranger costs minutes.
const SLACK: i64 = 7 * 24 * 3600;

/// The history behind a commit, newest first, as far as it was walked.
pub struct Ancestry<'r> {
    repository: &'r Repository,
    walked: RefCell<Walked<'r>>,
}

struct Walked<'r> {
    walk: Revwalk<'r>,
    seen: HashSet<Oid>,
    /// Time of the last commit that was walked.
    reached: i64,
    ended: bool,
}

impl std::fmt::Debug for Ancestry<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ancestry").field("repository", self.repository).finish_non_exhaustive()
    }
}

impl Repository {
    /// The history behind a commit, branch or tag.
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
    /// Whether a commit lies behind this one, or is it. `None` where a shallow clone ends before it can be
    /// told.
    pub fn holds(&self, commit: &str) -> Option<bool> {
        let inner = &self.repository.inner;
        let told = |no: bool| if no && inner.is_shallow() { None } else { Some(false) };
        // A commit that is not here is none of this history, if this history is whole.
        let Ok(found) = Oid::from_str(commit).and_then(|id| inner.find_commit(id)) else { return told(true) };
        let (id, time) = (found.id(), found.time().seconds());
        let walked = &mut *self.walked.borrow_mut();
        while !walked.seen.contains(&id) && !walked.ended && walked.reached.saturating_add(SLACK) >= time {
            // Where history is cut off, the walk ends with an error about the parent that is not here.
            match walked.walk.next().transpose() {
                Ok(Some(next)) => {
                    walked.seen.insert(next);
                    walked.reached = inner.find_commit(next).map_or(walked.reached, |c| c.time().seconds());
                }
                Ok(None) | Err(_) => walked.ended = true,
            }
        }
        if walked.seen.contains(&id) { Some(true) } else { told(walked.ended) }
    }
}
