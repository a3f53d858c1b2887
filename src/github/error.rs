//! Errors of requests to GitHub. They never contain the token, because it is in no URL and no body.

use std::time::Duration;

/// Each message completes "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum GitHubError {
    #[error("{what}: GitHub is unreachable: {why}")]
    Unreachable { what: String, why: String },
    #[error("{what}: GitHub returned {status}: {message}")]
    Refused { what: String, status: u16, message: String },
    /// An unexpected response.
    #[error("{what}: unexpected response from GitHub: {why}")]
    Unreadable { what: String, why: String },
    #[error("{what}: rate limit: GitHub asks to wait another {} s after {} s of waiting", wait.as_secs(), waited.as_secs())]
    RateLimited { what: String, wait: Duration, waited: Duration },
    /// A `workflow_run` event reports a run that this job does not publish.
    #[error("accept the reported run: {0}")]
    Untrusted(String),
    #[error("prepare the connection: {0}")]
    Setup(String),
    #[error("{what}: {why}")]
    Webhook { what: String, why: String },
}

impl GitHubError {
    /// Whether a valid token lacks the permission: it is read-only, as for every fork.
    pub const fn is_forbidden(&self) -> bool {
        matches!(self, Self::Refused { status: 403, .. })
    }

    pub const fn is_absent(&self) -> bool {
        matches!(self, Self::Refused { status: 404 | 410, .. })
    }
}
