#![doc = include_str!("../README.md")]
//!
//! `event` and `workflow` only parse and do no IO; `client` sends requests with retries; most other modules
//! post one kind of message each.

mod check;
mod client;
mod comment;
mod event;
mod pull;
mod webhook;
mod workflow;

pub use check::{Annotation, AnnotationLevel, Check, Conclusion, PostedCheck, annotations, outputs};
pub use client::{Client, GitHubError, GitHubToken, RetryPolicy};
pub use comment::{CommentRequest, Issue, IssueChange, Marker, Posted};
pub use event::{
    CodeOrigin, EventError, GitHubEvent, Job, PullRequest, RepositoryName, RunAttempt, Sha, WorkflowRun,
};
pub use webhook::Webhook;
pub use workflow::{Permissions, Workflow, WorkflowJob, WorkflowStep};

/// Maximum size of a comment's text in bytes. GitHub rejects comments of more than 65,536 characters, and the
/// marker needs some of them.
pub const COMMENT_BYTES: usize = 60_000;

/// Maximum size of a job summary in bytes. If a summary exceeds 1 MiB, GitHub drops all of it.
pub const SUMMARY_BYTES: usize = 900 * 1024;

/// Maximum size of a check run's text in bytes. GitHub rejects texts of more than 65,535 characters.
pub const CHECK_BYTES: usize = 60_000;
