//! The ancestors of a commit. The history is walked once and only as far back as needed.

use std::cell::RefCell;
use std::collections::HashSet;

use git2::{ErrorCode, Oid, Revwalk, Sort};

use super::{GitError, Repository, other};

/// Tolerated difference between committers' clocks, in seconds. If clocks differ by more, an ancestor may be
/// missed, and a stored session stays unused. Without a limit, a search for an unrelated commit would walk a
/// large history to its root, which takes minutes.
const SLACK: i64 = 7 * 24 * 3600;

/// The ancestors of a commit, walked lazily from the newest.
pub struct Ancestry<'r> {
    repository: &'r Repository,
    walked: RefCell<Walked<'r>>,
}

struct Walked<'r> {
    walk: Revwalk<'r>,
    seen: HashSet<Oid>,
    /// Commit time of the last walked commit.
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
    /// Returns whether `commit` is the start of this walk or one of its ancestors. `None` if a shallow clone
    /// ends before that is known.
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
            // In a shallow clone, the walk ends with an error about a missing parent.
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

/// A commit on the line between two commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineCommit {
    /// The full identifier (40 digits).
    pub id: String,
    /// The first line of its message.
    pub subject: String,
    /// The name of its author.
    pub author: String,
}

/// The maximum number of commits from `good` to `bad`; more suggest that one of the refs is wrong.
const MOST_COMMITS: usize = 100_000;

impl Repository {
    /// The commits from `good` to `bad`, both included, oldest first, along the first parents of merges.
    pub fn line(&self, good: &str, bad: &str) -> Result<Vec<LineCommit>, GitError> {
        let (first, last) = (self.commit(good)?, self.commit(bad)?);
        let failed = |error: git2::Error| other("follow the history", &error);
        let mut line = Vec::new();
        let mut at = self.inner.find_commit(last).map_err(failed)?;
        loop {
            let subject = String::from_utf8_lossy(at.summary_bytes().unwrap_or_default()).into_owned();
            let author = String::from_utf8_lossy(at.author().name_bytes()).into_owned();
            line.push(LineCommit { id: at.id().to_string(), subject, author });
            if at.id() == first {
                line.reverse();
                return Ok(line);
            }
            let parent = if line.len() < MOST_COMMITS { at.parent(0).ok() } else { None };
            let Some(parent) = parent else { break };
            at = parent;
        }
        let (good, bad) = (good.to_owned(), bad.to_owned());
        // In a shallow clone, the missing commit may still exist on the remote.
        if self.inner.is_shallow() {
            return Err(GitError::ShallowLine { good, bad });
        }
        Err(match self.inner.merge_base(first, last) {
            Err(error) if error.code() == ErrorCode::NotFound => GitError::Unrelated { good, bad },
            Err(error) => failed(error),
            Ok(base) if base == last => GitError::Reversed { good, bad },
            Ok(base) => GitError::NotOnLine { good, bad, base: base.to_string() },
        })
    }
}
