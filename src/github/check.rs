//! The check run, which shows the verdict on the commit.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::client::{Client, Created};
use super::{GitHubError, Marker, Sha};

/// The conclusion of a check run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Conclusion {
    Success,
    Failure,
    /// A neutral check run is neither success nor failure, and does not block a merge.
    Neutral,
}

/// A completed check run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    pub name: String,
    pub head: Sha,
    pub conclusion: Conclusion,
    pub title: String,
    pub summary: String,
    /// Identifies the suite and the attempt that posts the check run, so that a re-run updates its own check
    /// run and an older attempt does not replace a newer one.
    pub marker: Marker,
    pub page: Option<String>,
}

impl Check {
    /// The body of the request, which a dry run prints.
    pub fn body(&self) -> Value {
        let mut body = json!({
            "name": self.name,
            "head_sha": self.head.as_str(),
            "status": "completed",
            "conclusion": self.conclusion,
            "external_id": self.marker.id(),
            "output": { "title": self.title, "summary": self.summary },
        });
        if let Some(page) = &self.page {
            body["details_url"] = json!(page);
        }
        body
    }
}

#[derive(Debug, Deserialize)]
struct CheckRun {
    id: u64,
    external_id: Option<String>,
}

/// Maximum number of POST attempts. After an attempt without a response, existing check runs are
/// listed before the next attempt.
const POSTS: u32 = 3;

impl Client {
    /// Posts a check run, or updates the one that an earlier attempt posted. Returns `false` if a later
    /// attempt has already posted one.
    ///
    /// # Errors
    /// GitHub rejects a request, or it keeps failing.
    pub async fn check(&self, check: &Check) -> Result<bool, GitHubError> {
        let path = self.path("check-runs");
        for post in 1..=POSTS {
            if let Some((known, marker)) = self.known(check).await? {
                if marker.is_later_than(&check.marker) {
                    return Ok(false);
                }
                let path = format!("{path}/{}", known.id);
                let mut body = check.body();
                // GitHub does not allow the commit of a check run to be changed.
                if let Some(fields) = body.as_object_mut() {
                    fields.remove("head_sha");
                }
                return self.patch::<CheckRun>("update the check run", &path, &body).await.map(|_| true);
            }
            match self.post::<CheckRun>("post the check run", &path, &check.body()).await? {
                Created::Confirmed(_) => return Ok(true),
                Created::Unconfirmed if post < POSTS => tokio::time::sleep(self.pause()).await,
                Created::Unconfirmed => {}
            }
        }
        // The last attempt may have succeeded although its response was lost.
        if self.known(check).await?.is_some() {
            return Ok(true);
        }
        Err(GitHubError::Unreachable {
            what: "post the check run".to_owned(),
            why: format!("{POSTS} attempts got no response, and no check run exists"),
        })
    }

    /// The latest check run that benchgate has posted for this suite on this commit.
    async fn known(&self, check: &Check) -> Result<Option<(CheckRun, Marker)>, GitHubError> {
        let path = self.path(&format!("commits/{}/check-runs", check.head.as_str()));
        let inside = |mut content: Value| content.get_mut("check_runs").map(Value::take);
        let all: Vec<CheckRun> = self.list("list the check runs", &path, inside).await?;
        let ours = all.into_iter().filter_map(|run| {
            let marker = Marker::from_check_id(run.external_id.as_deref()?)?;
            marker.is_same_suite(&check.marker).then_some((run, marker))
        });
        Ok(ours.reduce(|one, other| if other.1.is_later_than(&one.1) { other } else { one }))
    }
}
