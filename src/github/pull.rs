//! Which pull request a reported run was about. The run's own event names none for a fork, and what its
//! artifact says is a stranger's word: a pull request is believed when its head is the measured commit.

use super::client::Client;
use super::event::PullRequestPart;
use super::{GitHubError, PullRequest, WorkflowRun};

impl WorkflowRun {
    /// Refuses a run that is not one of `workflow`, started by a pull request.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn accept(&self, workflow: &str) -> Result<(), GitHubError> {
        if self.path != workflow {
            let why = format!("it is a run of {}, and only those of {workflow} are published", self.path);
            return Err(GitHubError::Untrusted(why));
        }
        if self.event != "pull_request" {
            let why = format!("it was started by {}, and not by pull_request", self.event);
            return Err(GitHubError::Untrusted(why));
        }
        Ok(())
    }
}

impl Client {
    /// The open pull request whose head is the measured commit; none where it moved on or was closed.
    ///
    /// # Errors
    /// Everything that GitHub refuses or that keeps failing.
    pub async fn pull_request_of(
        &self,
        run: &WorkflowRun,
        named: Option<u64>,
    ) -> Result<Option<PullRequest>, GitHubError> {
        let mut numbers: Vec<u64> = named.into_iter().chain(run.pull_requests.iter().copied()).collect();
        numbers.dedup();
        for number in numbers {
            let path = self.path(&format!("pulls/{number}"));
            match self.get::<PullRequestPart>("read the pull request", &path).await {
                Ok(found) if found.is_of(run) => return Ok(Some(found.into())),
                Ok(_) => {}
                Err(error) if error.is_absent() => {}
                Err(error) => return Err(error),
            }
        }
        let (Some(owner), Some(branch)) = (&run.head_owner, &run.head_branch) else { return Ok(None) };
        let query = format!("pulls?state=open&head={}:{}", encoded(owner), encoded(branch));
        let found: Vec<PullRequestPart> =
            self.list("list the pull requests", &self.path(&query), Some).await?;
        let mut fits = found.into_iter().filter(|found| found.is_of(run));
        match (fits.next(), fits.next()) {
            (Some(only), None) => Ok(Some(only.into())),
            // Two pull requests of one commit: which one was measured, only the event could say.
            _ => Ok(None),
        }
    }
}

/// A branch may be named anything.
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
