//! Finds the pull request of a reported run. For a fork, the event of the run names no pull
//! request, and the artifact of the run is untrusted. So a pull request is accepted only if its
//! head is the commit that the run measured.

use serde::Deserialize;

use super::client::{Client, if_present};
use super::event::PullRequestPart;
use super::{GitHubError, PullRequest, Sha, WorkflowRun};

impl WorkflowRun {
    /// Rejects a run of a workflow other than `workflow`, and a run that was not started by a pull request.
    ///
    /// # Errors
    /// The reason why the run is rejected.
    pub fn accept(&self, workflow: &str) -> Result<(), GitHubError> {
        if self.path != workflow {
            let why = format!("it is a run of {}; only runs of {workflow} are published", self.path);
            return Err(GitHubError::Untrusted(why));
        }
        if self.event != "pull_request" {
            let why = format!("it was started by {}, not by pull_request", self.event);
            return Err(GitHubError::Untrusted(why));
        }
        Ok(())
    }
}

impl Client {
    /// Finds the open pull request whose head is the measured commit. `None` if the pull request
    /// has newer commits or was closed.
    ///
    /// # Errors
    /// GitHub rejects a request, or it keeps failing.
    pub async fn pull_request_of(
        &self,
        run: &WorkflowRun,
        named: Option<u64>,
    ) -> Result<Option<PullRequest>, GitHubError> {
        let mut numbers: Vec<u64> = named.into_iter().chain(run.pull_requests.iter().copied()).collect();
        numbers.dedup();
        for number in numbers {
            let path = self.path(&format!("pulls/{number}"));
            let found = if_present(self.get::<PullRequestPart>("read the pull request", &path).await)?;
            if let Some(found) = found.filter(|found| found.matches_run(run)) {
                return Ok(Some(found.into()));
            }
        }
        let (Some(owner), Some(branch)) = (&run.head_owner, &run.head_branch) else { return Ok(None) };
        let query = format!("pulls?state=open&head={}:{}", encoded(owner), encoded(branch));
        let found: Vec<PullRequestPart> =
            self.list("list the pull requests", &self.path(&query), Some).await?;
        let mut fits = found.into_iter().filter(|found| found.matches_run(run));
        match (fits.next(), fits.next()) {
            (Some(only), None) => Ok(Some(only.into())),
            // Several pull requests have this commit, and only the event could tell which of them was
            // measured.
            _ => Ok(None),
        }
    }
}

/// The fields of a commit that show its parents.
#[derive(Debug, Deserialize)]
struct CommitPart {
    parents: Vec<ParentPart>,
}

#[derive(Debug, Deserialize)]
struct ParentPart {
    sha: Sha,
}

/// The fields of a comparison of two commits.
#[derive(Debug, Deserialize)]
struct ComparedPart {
    status: String,
    merge_base_commit: ParentPart,
}

impl Client {
    /// Returns whether a pull request is still open and at this commit.
    ///
    /// # Errors
    /// GitHub rejects a request, or it keeps failing.
    pub async fn is_still_at(&self, number: u64, head: &Sha) -> Result<bool, GitHubError> {
        let path = self.path(&format!("pulls/{number}"));
        let found = if_present(self.get::<PullRequestPart>("read the pull request", &path).await)?;
        Ok(found.is_some_and(|found| found.is_still_at(head)))
    }

    /// The commit of `base_ref` with which `measured` is compared. `None` unless `measured` is `proposed`
    /// itself, or GitHub's merge of it into a commit of that branch that contains the one from which it started.
    ///
    /// # Errors
    /// GitHub rejects a request, or it keeps failing.
    pub async fn base_of(
        &self,
        measured: &Sha,
        proposed: &Sha,
        base_ref: &str,
    ) -> Result<Option<Sha>, GitHubError> {
        if measured == proposed {
            let compared = self.compared(base_ref, proposed).await?;
            return Ok(compared.map(|compared| compared.merge_base_commit.sha));
        }
        let path = self.path(&format!("git/commits/{}", measured.as_str()));
        let commit = if_present(self.get::<CommitPart>("read the measured commit", &path).await)?;
        let Some(commit) = commit else { return Ok(None) };
        let [base, head] = commit.parents.as_slice() else { return Ok(None) };
        if head.sha != *proposed {
            return Ok(None);
        }
        // A fork can contain a merge with any commit, so the base must be a commit of the branch. It may be an older one than
        // the change started from: the pull request had another branch as its base.
        let is_one_of = |found: Option<ComparedPart>, statuses: [&str; 2]| {
            found.is_some_and(|found| statuses.contains(&found.status.as_str()))
        };
        if !is_one_of(self.compared(base_ref, &base.sha).await?, ["behind", "identical"]) {
            return Ok(None);
        }
        let Some(change) = self.compared(base_ref, proposed).await? else { return Ok(None) };
        let start = change.merge_base_commit.sha;
        let has_start = is_one_of(self.compared(start.as_str(), &base.sha).await?, ["ahead", "identical"]);
        Ok(has_start.then(|| base.sha.clone()))
    }

    async fn compared(&self, branch: &str, commit: &Sha) -> Result<Option<ComparedPart>, GitHubError> {
        let path = self.path(&format!("compare/{}...{}?per_page=1", encoded(branch), commit.as_str()));
        if_present(self.get("compare the measured commit with the branch", &path).await)
    }
}

/// Percent-encodes a branch name for a query, because it may contain any character.
fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::encoded;

    #[test]
    fn a_branch_can_not_add_to_the_query() {
        assert_eq!(encoded("a&state=closed#é/b"), "a%26state%3Dclosed%23%C3%A9%2Fb");
    }
}
