//! L3: what GitHub is told, and what it tells. `event` and `workflow` read what GitHub gives and do no IO;
//! `client` talks, with its own patience; the others each post one thing. Text arrives rendered: nothing
//! here knows what a comparison is.

mod annotations;
mod check;
mod client;
mod comment;
mod error;
mod event;
mod outputs;
mod patience;
mod pull;
mod workflow;

pub use annotations::{Annotation, Level, annotations};
pub use check::{Check, Conclusion};
pub use client::{Client, Token};
pub use comment::{Commenting, Marker, Posted};
pub use error::GitHubError;
pub use event::{Attempt, Event, EventError, Job, Origin, PullRequest, Repository, Sha, WorkflowRun};
pub use outputs::outputs;
pub use patience::Patience;
pub use workflow::{Permissions, Step, Workflow, WorkflowJob};

/// Bytes of a comment: GitHub refuses more than 65,536 characters, and the marker needs some.
pub const COMMENT_BYTES: usize = 60_000;

/// Bytes of a job summary: GitHub drops one of more than 1 MiB whole.
pub const SUMMARY_BYTES: usize = 900 * 1024;

/// Bytes of a check run's text: GitHub refuses more than 65,535 characters.
pub const CHECK_BYTES: usize = 60_000;
