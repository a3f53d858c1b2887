//! The commits between two, along first parents: the states of a branch after each merge.

use git2::ErrorCode;

use super::{GitError, Repository, other};

/// A commit of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineCommit {
    /// 40 digits.
    pub id: String,
    /// The first line of its message.
    pub subject: String,
    /// The name of its author.
    pub author: String,
}

/// A longer line suggests a mistake in a name.
const MOST_COMMITS: usize = 100_000;

impl Repository {
    /// From `good` to `bad`, both included, oldest first, following the first parent of each merge.
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
        // In a shallow clone, a missing commit may still exist on the remote.
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
