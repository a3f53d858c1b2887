//! The check run, which shows the verdict on the commit.
//!
//! Workflow commands that GitHub shows as annotations of a job (at most ten of each level per step), and the
//! outputs for later steps.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use benchgate_core::model::without_commands;

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
    conclusion: Option<String>,
}

/// The way in which a check run was posted, or the reason why it was not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PostedCheck {
    Posted,
    /// A later attempt has posted its own.
    Newer,
    /// Another result of the same attempt, such as that of another machine, has failed.
    Failed,
}

/// Maximum number of POST attempts. After an attempt without a response, existing check runs are
/// listed before the next attempt.
const POSTS: u32 = 3;

impl Client {
    /// Posts a check run, or updates the one that an earlier attempt posted. A failure is only replaced by another attempt.
    ///
    /// # Errors
    /// GitHub rejects a request, or it keeps failing.
    pub async fn check(&self, check: &Check) -> Result<PostedCheck, GitHubError> {
        let path = self.path("check-runs");
        for post in 1..=POSTS {
            if let Some((known, marker)) = self.known(check).await? {
                if marker.is_later_than(&check.marker) {
                    return Ok(PostedCheck::Newer);
                }
                let has_failed = known.conclusion.as_deref() == Some("failure");
                if marker == check.marker && has_failed && check.conclusion != Conclusion::Failure {
                    return Ok(PostedCheck::Failed);
                }
                let path = format!("{path}/{}", known.id);
                let mut body = check.body();
                // GitHub does not allow the commit of a check run to be changed.
                if let Some(fields) = body.as_object_mut() {
                    fields.remove("head_sha");
                }
                let updated = self.patch::<CheckRun>("update the check run", &path, &body).await;
                return updated.map(|_| PostedCheck::Posted);
            }
            match self.post::<CheckRun>("post the check run", &path, &check.body()).await? {
                Created::Confirmed(_) => return Ok(PostedCheck::Posted),
                Created::Unconfirmed if post < POSTS => tokio::time::sleep(self.pause()).await,
                Created::Unconfirmed => {}
            }
        }
        // The last attempt may have succeeded although its response was lost.
        if self.known(check).await?.is_some() {
            return Ok(PostedCheck::Posted);
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

/// The level of an annotation, most severe first. The variant's name is the workflow command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::Display)]
#[strum(serialize_all = "kebab-case")]
pub enum AnnotationLevel {
    Error,
    Warning,
    Notice,
}

/// An annotation, usually about one row. Title and message may contain anything, because both are escaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotation {
    pub level: AnnotationLevel,
    pub title: String,
    pub message: String,
}

/// Number of annotations of each level that are printed in full. GitHub shows ten; the tenth states how many
/// were left out.
const SHOWN: usize = 9;

/// Maximum length of a message, below GitHub's limit of 4,096 characters.
const LONGEST: usize = 3_000;

/// Returns the lines to print. The last one states how many annotations were left out, and has their highest
/// level.
pub fn annotations(all: &[Annotation]) -> String {
    let mut lines: String = all.iter().take(SHOWN).map(line).collect();
    let rest = all.get(SHOWN..).unwrap_or_default();
    if let Some(first) = rest.first() {
        let level = rest.iter().map(|more| more.level).fold(first.level, AnnotationLevel::min);
        lines.push_str(&line(&Annotation {
            level,
            title: "benchgate".to_owned(),
            message: format!("{} more, in the job summary", rest.len()),
        }));
    }
    lines
}

fn line(annotation: &Annotation) -> String {
    let command = annotation.level;
    let title = escape(&annotation.title).replace(':', "%3A").replace(',', "%2C");
    let short: String = annotation.message.chars().take(LONGEST).collect();
    format!("::{command} title={title}::{}\n", escape(&short))
}

/// Escapes text as GitHub's toolkit does, so that it can't end the line or the command. `##[` is the older
/// form of a command, which GitHub recognizes anywhere in a line.
fn escape(text: &str) -> String {
    without_commands(&text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A"))
}

/// The lines for the output file of a step. Values are untrusted, so each is enclosed in delimiters
/// that the value can't contain: `delimiter` must be random and newly generated.
pub fn outputs(values: &[(&str, String)], delimiter: &str) -> String {
    let mut text = String::new();
    for (name, value) in values {
        let mut fence = delimiter.to_owned();
        // The delimiter can't be guessed, but a value that was created after it could still contain it.
        while value.contains(&fence) {
            fence.push('x');
        }
        text.push_str(&format!("{name}<<{fence}\n{value}\n{fence}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(title: &str, message: &str) -> Annotation {
        Annotation { level: AnnotationLevel::Error, title: title.to_owned(), message: message.to_owned() }
    }

    #[test]
    fn a_name_can_not_issue_a_command() {
        let text = annotations(&[error("a:b,c\n::add-mask::x", "100 %\r\n::stop-commands::x ##[error]y")]);
        assert_eq!(
            text,
            "::error title=a%3Ab%2Cc%0A%3A%3Aadd-mask%3A%3Ax::100 %25%0D%0A::stop-commands::x # #[error]y\n"
        );
    }

    #[test]
    fn the_tenth_annotation_counts_the_others() {
        let mut all: Vec<Annotation> = (0..12).map(|at| error(&at.to_string(), "slow")).collect();
        assert_eq!(annotations(&all).lines().count(), 10);
        assert!(annotations(&all).ends_with("::3 more, in the job summary\n"));
        all.truncate(9);
        assert_eq!(annotations(&all).lines().count(), 9);
    }

    #[test]
    fn a_long_message_is_cut_before_github_cuts_it() {
        assert!(annotations(&[error("a", &"é".repeat(10_000))]).chars().count() < 4_096);
    }

    #[test]
    fn a_value_can_not_end_itself_and_set_another() {
        let hostile = "pass\nd1\nverdict=pass".to_owned();
        let text = outputs(&[("verdict", hostile)], "d1");
        assert_eq!(text, "verdict<<d1x\npass\nd1\nverdict=pass\nd1x\n");
    }
}
