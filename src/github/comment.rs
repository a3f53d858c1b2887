//! The sticky comment: one a suite, ours, kept up to date, and never set back by an older try.

use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::client::{Client, Created};
use super::{Attempt, GitHubError};

/// The first line of a comment, by which it is found again. A suite's name is hashed, so that no name can
/// end the marker or stand for another's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker {
    key: String,
    attempt: Attempt,
}

const BEGIN: &str = "<!-- benchgate/v1 ";
const END: &str = " -->";

/// Digits of the hash: two suites of one repository never share them by chance.
const KEY_DIGITS: usize = 16;

impl Marker {
    pub fn new(suite: &str, attempt: Attempt) -> Self {
        let digest = Sha256::digest(suite.as_bytes());
        let key = digest.iter().take(KEY_DIGITS / 2).map(|byte| format!("{byte:02x}")).collect();
        Self { key, attempt }
    }

    /// The same for a check run, which has a field for it.
    pub fn id(&self) -> String {
        format!("benchgate/v1/{}/{}/{}", self.key, self.attempt.run, self.attempt.attempt)
    }

    /// The marker of a check run's id.
    pub fn of_id(id: &str) -> Option<Self> {
        let mut parts = id.strip_prefix("benchgate/v1/")?.split('/');
        let key = parts.next()?.to_owned();
        let run = parts.next()?.parse().ok()?;
        let attempt = parts.next()?.parse().ok()?;
        let whole = parts.next().is_none() && key.len() == KEY_DIGITS;
        whole.then_some(Self { key, attempt: Attempt { run, attempt } })
    }

    /// Whether both are about the same suite.
    pub fn is_of_same(&self, other: &Self) -> bool {
        self.key == other.key
    }

    pub fn is_later_than(&self, other: &Self) -> bool {
        self.attempt > other.attempt
    }

    /// The line.
    pub fn line(&self) -> String {
        let Attempt { run, attempt } = self.attempt;
        format!("{BEGIN}key={} run={run} attempt={attempt}{END}", self.key)
    }

    /// A whole comment: the marker, and what people read.
    pub fn comment(&self, body: &str) -> String {
        format!("{}\n{body}", self.line())
    }

    /// The marker of a comment. Only its first line counts, and only a whole one.
    pub fn of(body: &str) -> Option<Self> {
        let line = body.lines().next()?;
        let inner = line.trim_end().strip_prefix(BEGIN)?.strip_suffix(END)?;
        let mut parts = inner.split(' ');
        let mut part = |name: &str| parts.next()?.strip_prefix(name)?.strip_prefix('=');
        let key = part("key")?.to_owned();
        let run = part("run")?.parse().ok()?;
        let attempt = part("attempt")?.parse().ok()?;
        let whole = parts.next().is_none() && key.len() == KEY_DIGITS;
        whole.then_some(Self { key, attempt: Attempt { run, attempt } })
    }
}

/// A comment as the API lists it.
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

/// What became of a comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Posted {
    Created {
        url: String,
    },
    Updated {
        url: String,
    },
    /// A later try has already said more.
    Newer {
        url: String,
    },
    /// There is none, and none was wanted.
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

/// What a pull request is to be told.
#[derive(Debug, Clone)]
pub struct Commenting<'a> {
    pub pull_request: u64,
    pub marker: &'a Marker,
    /// Without the marker.
    pub body: &'a str,
    /// Whether to begin a comment; one that is there is kept up to date anyway.
    pub begin: bool,
    /// Whose comments are ours, where the token can't say it.
    pub author: &'a str,
}

/// Times that an unanswered POST is followed by another, each after looks.
const POSTS: u32 = 3;

/// Looks for a comment whose POST was not answered: a listing may lag behind.
const LOOKS: u32 = 2;

/// More than any honest sequence of events needs; a listing that disagrees with itself for ever ends here.
const ROUNDS: u32 = 20;

impl Client {
    /// Makes the comment say what it is to say: exactly one, ours, and not over a newer one.
    ///
    /// # Errors
    /// Everything that GitHub refuses or that keeps failing.
    pub async fn comment(&self, wanted: &Commenting<'_>) -> Result<Posted, GitHubError> {
        let mut author = self.me().await?.unwrap_or_else(|| wanted.author.to_owned());
        let (mut posts, mut looks) = (0, 0);
        let mut created: Option<String> = None;
        for _ in 0..ROUNDS {
            let ours = self.ours(wanted, &author).await?;
            if let Some((newer, _)) = ours.iter().find(|(_, marker)| marker.attempt > wanted.marker.attempt) {
                return Ok(Posted::Newer { url: newer.html_url.clone() });
            }
            if let Some(((keep, _), rest)) = ours.split_first() {
                // The oldest stays: two jobs that race agree on it.
                let Some(url) = self.update(wanted, keep).await? else { continue };
                for (comment, _) in rest {
                    self.remove(comment.id).await?;
                }
                let begun = posts > 0;
                return Ok(if begun { Posted::Created { url } } else { Posted::Updated { url } });
            }
            if let Some(url) = created {
                // Posted, and not listed yet.
                return Ok(Posted::Created { url });
            }
            if !wanted.begin {
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
            match self.begin(wanted).await? {
                Created::Certainly(comment) => {
                    // The answer says who we are, where nothing else did.
                    if let Some(user) = comment.user {
                        author = user.login;
                    }
                    created = Some(comment.html_url);
                }
                Created::Perhaps => {
                    looks = LOOKS;
                    tokio::time::sleep(self.pause()).await;
                }
            }
        }
        Err(GitHubError::Unreachable {
            what: "post the comment".to_owned(),
            why: format!("{posts} tries got no answer, and no comment was left"),
        })
    }

    /// Who the token is; an installation's token may not ask.
    async fn me(&self) -> Result<Option<String>, GitHubError> {
        match self.get::<User>("ask whose token it is", "/user").await {
            Ok(user) => Ok(Some(user.login)),
            Err(error) if error.is_forbidden() || error.is_absent() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Our comments about this suite, the oldest first.
    async fn ours(
        &self,
        wanted: &Commenting<'_>,
        author: &str,
    ) -> Result<Vec<(Comment, Marker)>, GitHubError> {
        let path = self.path(&format!("issues/{}/comments", wanted.pull_request));
        let all: Vec<Comment> = self.list("list the comments", &path, Some).await?;
        let mut ours: Vec<(Comment, Marker)> = all
            .into_iter()
            // A stranger's comment may carry any marker.
            .filter(|comment| comment.user.as_ref().is_some_and(|user| user.login == author))
            .filter_map(|comment| {
                let marker = Marker::of(comment.body.as_deref()?)?;
                Some((comment, marker)).filter(|(_, marker)| marker.key == wanted.marker.key)
            })
            .collect();
        ours.sort_by_key(|(comment, _)| comment.id);
        Ok(ours)
    }

    async fn begin(&self, wanted: &Commenting<'_>) -> Result<Created<Comment>, GitHubError> {
        let path = self.path(&format!("issues/{}/comments", wanted.pull_request));
        self.post("post the comment", &path, &body(wanted)).await
    }

    /// The comment's address, or nothing where it was deleted meanwhile.
    async fn update(
        &self,
        wanted: &Commenting<'_>,
        comment: &Comment,
    ) -> Result<Option<String>, GitHubError> {
        if comment.body.as_deref() == Some(&text(wanted)) {
            return Ok(Some(comment.html_url.clone()));
        }
        let path = self.path(&format!("issues/comments/{}", comment.id));
        match self.patch::<Comment>("update the comment", &path, &body(wanted)).await {
            Ok(comment) => Ok(Some(comment.html_url)),
            Err(error) if error.is_absent() => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn remove(&self, id: u64) -> Result<(), GitHubError> {
        let path = self.path(&format!("issues/comments/{id}"));
        match self.delete("delete a second comment", &path).await {
            Err(error) if !error.is_absent() => Err(error),
            _ => Ok(()),
        }
    }
}

fn body(wanted: &Commenting<'_>) -> Value {
    json!({ "body": text(wanted) })
}

/// The whole comment.
fn text(wanted: &Commenting<'_>) -> String {
    wanted.marker.comment(wanted.body)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Attempt = Attempt { run: 7, attempt: 1 };

    #[test]
    fn a_marker_is_read_back() {
        let marker = Marker::new("quickstart", FIRST);
        assert_eq!(Marker::of(&format!("{}\nmore", marker.line())), Some(marker.clone()));
        assert_eq!(Marker::of(&format!("{}\r\nmore", marker.line())), Some(marker.clone()));
        assert_eq!(Marker::of_id(&marker.id()), Some(marker));
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
            assert_eq!(Marker::of(&body), None, "{body}");
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
    fn a_later_try_of_an_older_run_is_older_than_a_newer_run() {
        let newer = Attempt { run: 8, attempt: 1 };
        assert!(Attempt { run: 7, attempt: 3 } < newer && newer < Attempt { run: 8, attempt: 2 });
    }
}
