//! What talking to GitHub can fail with. Messages never hold a token: it is in no URL and no body.

use std::time::Duration;

/// Fits "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum GitHubError {
    #[error("{what}: GitHub can't be reached: {why}")]
    Unreachable { what: String, why: String },
    #[error("{what}: GitHub answers {status}: {message}")]
    Refused { what: String, status: u16, message: String },
    /// An answer that means nothing to us.
    #[error("{what}: GitHub's answer can't be read: {why}")]
    Unreadable { what: String, why: String },
    #[error("{what}: GitHub asks to wait for {} s more, and {} s were waited", wait.as_secs(), waited.as_secs())]
    RateLimited { what: String, wait: Duration, waited: Duration },
    /// What a `workflow_run` event reports is not what this job publishes.
    #[error("accept the reported run: {0}")]
    Untrusted(String),
    #[error("prepare the connection to GitHub: {0}")]
    Setup(String),
}

impl GitHubError {
    /// The token is good and may not do this: it is a reader's, as every fork's is.
    pub const fn is_forbidden(&self) -> bool {
        matches!(self, Self::Refused { status: 403, .. })
    }

    pub const fn is_absent(&self) -> bool {
        matches!(self, Self::Refused { status: 404 | 410, .. })
    }
}
