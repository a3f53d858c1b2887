//! The check run: a verdict beside the commit, neutral where it is open.

use serde::Deserialize;
use serde_json::{Value, json};

use super::client::{Client, Created};
use super::{GitHubError, Marker, Sha};

/// How a check run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conclusion {
    Success,
    Failure,
    /// Neither: it blocks nothing and claims nothing.
    Neutral,
}

impl Conclusion {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Neutral => "neutral",
        }
    }
}

/// A finished check run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    pub name: String,
    pub head: Sha,
    pub conclusion: Conclusion,
    pub title: String,
    pub summary: String,
    /// Names the check and the attempt that posts it, so that a repeated attempt finds its own and an older
    /// one replaces nothing.
    pub marker: Marker,
    pub page: Option<String>,
}

impl Check {
    /// The request's body: what a dry run shows and what is sent.
    pub fn body(&self) -> Value {
        let mut body = json!({
            "name": self.name,
            "head_sha": self.head.as_str(),
            "status": "completed",
            "conclusion": self.conclusion.as_str(),
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

/// Times that an unanswered POST is followed by another, each after a look.
const POSTS: u32 = 3;

impl Client {
    /// Posts a check run, or updates the one that an earlier attempt posted. `false` where a later attempt
    /// has already posted one.
    ///
    /// # Errors
    /// Everything that GitHub refuses or that keeps failing.
    pub async fn check(&self, check: &Check) -> Result<bool, GitHubError> {
        let path = self.path("check-runs");
        for post in 1..=POSTS {
            if let Some((known, marker)) = self.known(check).await? {
                if marker.is_later_than(&check.marker) {
                    return Ok(false);
                }
                let path = format!("{path}/{}", known.id);
                let mut body = check.body();
                // A check run stays at its commit.
                if let Some(fields) = body.as_object_mut() {
                    fields.remove("head_sha");
                }
                return self.patch::<CheckRun>("update the check run", &path, &body).await.map(|_| true);
            }
            match self.post::<CheckRun>("post the check run", &path, &check.body()).await? {
                Created::Certainly(_) => return Ok(true),
                Created::Perhaps if post < POSTS => tokio::time::sleep(self.pause()).await,
                Created::Perhaps => {}
            }
        }
        // The last try may have worked without an answer.
        if self.known(check).await?.is_some() {
            return Ok(true);
        }
        Err(GitHubError::Unreachable {
            what: "post the check run".to_owned(),
            why: format!("{POSTS} tries got no answer, and none of them left one"),
        })
    }

    /// The latest check run of the same name that benchgate has already posted at this commit.
    async fn known(&self, check: &Check) -> Result<Option<(CheckRun, Marker)>, GitHubError> {
        let path = self.path(&format!("commits/{}/check-runs", check.head.as_str()));
        let inside = |mut content: Value| content.get_mut("check_runs").map(Value::take);
        let all: Vec<CheckRun> = self.list("list the check runs", &path, inside).await?;
        let ours = all.into_iter().filter_map(|run| {
            let marker = Marker::of_id(run.external_id.as_deref()?)?;
            marker.is_of_same(&check.marker).then_some((run, marker))
        });
        Ok(ours.reduce(|one, other| if other.1.is_later_than(&one.1) { other } else { one }))
    }
}
