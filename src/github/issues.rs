//! Issues that benchgate opens and keeps up to date. Issues are found by label and author, created only once,
//! and changed by number.

use serde::Deserialize;
use serde_json::{Value, json};

use super::GitHubError;
use super::client::{Client, Created};

/// An issue that benchgate opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    pub number: u64,
    pub open: bool,
    pub title: String,
    pub body: String,
}

#[derive(Debug, Deserialize)]
struct IssuePart {
    number: u64,
    state: String,
    title: String,
    body: Option<String>,
    user: Option<UserPart>,
    /// Present if the issue is a pull request.
    pull_request: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct UserPart {
    login: String,
}

/// The new state of an issue.
#[derive(Debug, Clone, Copy)]
pub struct IssueChange<'a> {
    pub title: Option<&'a str>,
    pub body: &'a str,
    pub open: bool,
    /// True if the issue was closed and is reopened.
    pub reopened: bool,
}

/// Maximum number of attempts to create an issue. After an attempt without confirmation, existing
/// issues are listed before the next attempt.
const POSTS: u32 = 3;
/// Number of times to look for an issue whose creation was not confirmed, because a listing may lag behind.
const LOOKS: u32 = 2;

impl Client {
    /// Every open or closed issue with this label that benchgate opened.
    pub async fn issues(&self, label: &str, author: &str) -> Result<Vec<Issue>, GitHubError> {
        let author = self.me().await?.unwrap_or_else(|| author.to_owned());
        let path = self.path(&format!("issues?state=all&labels={label}"));
        let all: Vec<IssuePart> = self.list("list the issues", &path, Some).await?;
        // Only the author's own issues count, because issues of other users may have any label and
        // any marker.
        let ours = all.into_iter().filter(|issue| {
            issue.pull_request.is_none() && issue.user.as_ref().is_some_and(|user| user.login == author)
        });
        let issue = |part: IssuePart| Issue {
            number: part.number,
            open: part.state == "open",
            title: part.title,
            body: part.body.unwrap_or_default(),
        };
        Ok(ours.map(issue).collect())
    }

    /// Opens an issue exactly once. If a response is lost, the first lines of existing issues show whether it
    /// was created.
    pub async fn open_issue(
        &self,
        title: &str,
        body: &str,
        label: &str,
        author: &str,
    ) -> Result<u64, GitHubError> {
        let content = json!({ "title": title, "body": body, "labels": [label] });
        let marker = body.lines().next().unwrap_or_default();
        for _ in 0..POSTS {
            match self.post::<IssuePart>("open an issue", &self.path("issues"), &content).await? {
                Created::Confirmed(issue) => return Ok(issue.number),
                Created::Unconfirmed => {}
            }
            for _ in 0..LOOKS {
                tokio::time::sleep(self.pause()).await;
                let found = self.issues(label, author).await?;
                if let Some(issue) = found.into_iter().find(|issue| issue.body.lines().next() == Some(marker))
                {
                    return Ok(issue.number);
                }
            }
        }
        Err(GitHubError::Unreachable {
            what: "open an issue".to_owned(),
            why: format!("{POSTS} attempts got no response, and no issue was opened"),
        })
    }

    pub async fn change_issue(&self, number: u64, change: IssueChange<'_>) -> Result<(), GitHubError> {
        let mut content = json!({ "body": change.body });
        if change.reopened || !change.open {
            content["state"] = json!(if change.open { "open" } else { "closed" });
            content["state_reason"] = json!(if change.open { "reopened" } else { "completed" });
        }
        if let Some(title) = change.title {
            content["title"] = json!(title);
        }
        let path = self.path(&format!("issues/{number}"));
        self.patch::<Value>("update an issue", &path, &content).await.map(drop)
    }
}
