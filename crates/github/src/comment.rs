//! The sticky comment, and issues. benchgate keeps one comment per suite up to date, and never overwrites it with the
//! result of an older attempt. Issues are found by label and author, and created only once.

use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use benchgate_core::model::hex;

use super::client::{Client, Created, if_present};
use super::{GitHubError, RunAttempt};

/// The first line of a comment, which identifies the suite and the attempt. The suite's name is hashed, so
/// that a name can't end the marker or imitate the marker of another suite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker {
    key: String,
    attempt: RunAttempt,
}

const BEGIN: &str = "<!-- benchgate/v1 ";
const END: &str = " -->";

/// Number of digits of the hash, enough to distinguish all suites of a repository.
const KEY_DIGITS: usize = 16;

impl Marker {
    pub fn new(suite: &str, attempt: RunAttempt) -> Self {
        let digest = Sha256::digest(suite.as_bytes());
        Self { key: hex(&digest[..KEY_DIGITS / 2]), attempt }
    }

    /// The key as the external id of a check run.
    pub fn id(&self) -> String {
        format!("benchgate/v1/{}/{}/{}", self.key, self.attempt.run, self.attempt.attempt)
    }

    /// Parses the external id of a check run.
    pub fn from_check_id(id: &str) -> Option<Self> {
        let mut parts = id.strip_prefix("benchgate/v1/")?.split('/');
        let key = parts.next()?.to_owned();
        let run = parts.next()?.parse().ok()?;
        let attempt = parts.next()?.parse().ok()?;
        let whole = parts.next().is_none() && key.len() == KEY_DIGITS;
        whole.then_some(Self { key, attempt: RunAttempt { run, attempt } })
    }

    /// Returns whether both markers are for the same suite.
    pub fn is_same_suite(&self, other: &Self) -> bool {
        self.key == other.key
    }

    pub fn is_later_than(&self, other: &Self) -> bool {
        self.attempt > other.attempt
    }

    pub fn line(&self) -> String {
        let RunAttempt { run, attempt } = self.attempt;
        format!("{BEGIN}key={} run={run} attempt={attempt}{END}", self.key)
    }

    /// The text of a comment: the marker line, followed by the visible text.
    pub fn comment(&self, body: &str) -> String {
        format!("{}\n{body}", self.line())
    }

    /// Parses the marker of a comment, which must be the complete first line.
    pub fn from_comment(body: &str) -> Option<Self> {
        let line = body.lines().next()?;
        let inner = line.trim_end().strip_prefix(BEGIN)?.strip_suffix(END)?;
        let mut parts = inner.split(' ');
        let mut part = |name: &str| parts.next()?.strip_prefix(name)?.strip_prefix('=');
        let key = part("key")?.to_owned();
        let run = part("run")?.parse().ok()?;
        let attempt = part("attempt")?.parse().ok()?;
        let whole = parts.next().is_none() && key.len() == KEY_DIGITS;
        whole.then_some(Self { key, attempt: RunAttempt { run, attempt } })
    }
}

/// A comment in the API's responses.
#[derive(Debug, Clone, Deserialize)]
struct Comment {
    id: u64,
    body: Option<String>,
    user: Option<User>,
    html_url: String,
}

#[derive(Debug, Clone, Deserialize)]
struct User {
    login: String,
}

/// The result of posting a comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Posted {
    Created {
        url: String,
    },
    Updated {
        url: String,
    },
    /// A later attempt has already posted a comment, so nothing was changed.
    Newer {
        url: String,
    },
    /// There is no comment, and creating one was not requested.
    NotWanted,
}

impl Posted {
    pub fn url(&self) -> Option<&str> {
        match self {
            Self::Created { url } | Self::Updated { url } | Self::Newer { url } => Some(url),
            Self::NotWanted => None,
        }
    }
}

/// A comment to post on a pull request or an issue, which share one series of numbers.
#[derive(Debug, Clone)]
pub struct CommentRequest<'a> {
    pub pull_request: u64,
    pub marker: &'a Marker,
    /// The text without the marker.
    pub body: &'a str,
    /// Allows creating a comment. An existing one is always updated.
    pub create: bool,
    /// The login of the author of benchgate's comments, used if it can't be determined from the token.
    pub author: &'a str,
}

/// Maximum number of POST attempts. After an attempt without a response, existing comments are
/// listed before the next attempt.
const POSTS: u32 = 3;

/// Number of times to look for a comment after a POST without a response, because a listing may lag behind.
const LOOKS: u32 = 2;

/// Maximum number of rounds, in case the listings stay inconsistent.
const ROUNDS: u32 = 20;

impl Client {
    /// Creates or updates the suite's comment and removes duplicates. A comment of a later attempt is not
    /// changed.
    pub async fn comment(&self, wanted: &CommentRequest<'_>) -> Result<Posted, GitHubError> {
        let mut author = self.me().await?.unwrap_or_else(|| wanted.author.to_owned());
        let (mut posts, mut looks) = (0, 0);
        let mut created: Option<String> = None;
        for _ in 0..ROUNDS {
            let ours = self.ours(wanted, &author).await?;
            if let Some((newer, _)) = ours.iter().find(|(_, marker)| marker.attempt > wanted.marker.attempt) {
                return Ok(Posted::Newer { url: newer.html_url.clone() });
            }
            if let Some(((keep, _), rest)) = ours.split_first() {
                // The oldest comment is kept, so that two concurrent jobs keep the same one.
                let Some(url) = self.update(wanted, keep).await? else { continue };
                for (comment, _) in rest {
                    self.remove(comment.id).await?;
                }
                let is_new = posts > 0;
                return Ok(if is_new { Posted::Created { url } } else { Posted::Updated { url } });
            }
            if let Some(url) = created {
                // The comment was posted but is not listed yet.
                return Ok(Posted::Created { url });
            }
            if !wanted.create {
                return Ok(Posted::NotWanted);
            }
            if looks > 0 {
                looks -= 1;
                tokio::time::sleep(self.pause()).await;
                continue;
            }
            if posts == POSTS {
                break;
            }
            posts += 1;
            match self.create(wanted).await? {
                Created::Confirmed(comment) => {
                    // The response shows which user the token belongs to.
                    if let Some(user) = comment.user {
                        author = user.login;
                    }
                    created = Some(comment.html_url);
                }
                Created::Unconfirmed => {
                    looks = LOOKS;
                    tokio::time::sleep(self.pause()).await;
                }
            }
        }
        Err(GitHubError::Unreachable {
            what: "post the comment".to_owned(),
            why: format!("{posts} attempts got no response, and no comment exists"),
        })
    }

    /// The login of the token's user. The token of a GitHub App's installation has no permission to read it.
    pub(super) async fn me(&self) -> Result<Option<String>, GitHubError> {
        match self.get::<User>("read the user of the token", "/user").await {
            Ok(user) => Ok(Some(user.login)),
            Err(error) if error.is_forbidden() || error.is_absent() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// benchgate's comments for this suite, oldest first.
    async fn ours(
        &self,
        wanted: &CommentRequest<'_>,
        author: &str,
    ) -> Result<Vec<(Comment, Marker)>, GitHubError> {
        let path = self.path(&format!("issues/{}/comments", wanted.pull_request));
        let all: Vec<Comment> = self.list("list the comments", &path, Some).await?;
        let mut ours: Vec<(Comment, Marker)> = all
            .into_iter()
            // Only the author's own comments count, because other users' comments may contain any marker.
            .filter(|comment| comment.user.as_ref().is_some_and(|user| user.login == author))
            .filter_map(|comment| {
                let marker = Marker::from_comment(comment.body.as_deref()?)?;
                Some((comment, marker)).filter(|(_, marker)| marker.key == wanted.marker.key)
            })
            .collect();
        ours.sort_by_key(|(comment, _)| comment.id);
        Ok(ours)
    }

    async fn create(&self, wanted: &CommentRequest<'_>) -> Result<Created<Comment>, GitHubError> {
        let path = self.path(&format!("issues/{}/comments", wanted.pull_request));
        self.post("post the comment", &path, &body(wanted)).await
    }

    /// Updates the comment and returns its URL, or `None` if it was deleted in the meantime.
    async fn update(
        &self,
        wanted: &CommentRequest<'_>,
        comment: &Comment,
    ) -> Result<Option<String>, GitHubError> {
        if comment.body.as_deref() == Some(&text(wanted)) {
            return Ok(Some(comment.html_url.clone()));
        }
        let path = self.path(&format!("issues/comments/{}", comment.id));
        let comment = self.patch::<Comment>("update the comment", &path, &body(wanted)).await;
        Ok(if_present(comment)?.map(|comment| comment.html_url))
    }

    async fn remove(&self, id: u64) -> Result<(), GitHubError> {
        let path = self.path(&format!("issues/comments/{id}"));
        if_present(self.delete("delete a second comment", &path).await).map(drop)
    }
}

fn body(wanted: &CommentRequest<'_>) -> Value {
    json!({ "body": text(wanted) })
}

fn text(wanted: &CommentRequest<'_>) -> String {
    wanted.marker.comment(wanted.body)
}

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

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: RunAttempt = RunAttempt { run: 7, attempt: 1 };

    #[test]
    fn a_marker_is_read_back() {
        let marker = Marker::new("quickstart", FIRST);
        assert_eq!(Marker::from_comment(&format!("{}\nmore", marker.line())), Some(marker.clone()));
        assert_eq!(Marker::from_comment(&format!("{}\r\nmore", marker.line())), Some(marker.clone()));
        assert_eq!(Marker::from_check_id(&marker.id()), Some(marker));
    }

    #[test]
    fn only_a_whole_marker_on_the_first_line_counts() {
        let line = Marker::new("quickstart", FIRST).line();
        for body in [
            format!("hello\n{line}"),
            format!("> {line}"),
            line.replace(" -->", ""),
            line.replace("attempt=1", "attempt=1 x=2"),
            line.replace("run=7", "run=-7"),
            line.replace("key=", "key=0"),
            String::new(),
        ] {
            assert_eq!(Marker::from_comment(&body), None, "{body}");
        }
    }

    #[test]
    fn a_suite_s_name_can_not_end_its_marker() {
        let line = Marker::new("a --><script>", FIRST).line();
        assert_eq!(line.matches("-->").count(), 1);
        assert!(!line.contains("script"));
        assert_ne!(line, Marker::new("a", FIRST).line());
    }

    #[test]
    fn a_re_run_of_an_older_run_is_older_than_a_newer_run() {
        let newer = RunAttempt { run: 8, attempt: 1 };
        assert!(RunAttempt { run: 7, attempt: 3 } < newer && newer < RunAttempt { run: 8, attempt: 2 });
    }
}
