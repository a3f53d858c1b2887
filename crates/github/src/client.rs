//! Sends requests to GitHub's API. octocrab sends the token only to the configured host; `next_step` decides
//! which requests are repeated, and when.

use std::fmt;
use std::time::Duration;

use http::{HeaderMap, Method};
use http_body_util::{BodyExt, Limited};
use octocrab::Octocrab;
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::RepositoryName;

/// Timeout for connecting and for each read.
const SILENCE: Duration = Duration::from_secs(60);

/// Maximum size of a response. A page of a hundred comments is far smaller.
const MAX_RESPONSE_BYTES: usize = 32 << 20;

/// Number of entries per page, which is GitHub's maximum.
const PAGE: usize = 100;

/// Maximum number of pages of a listing, for 10,000 entries.
const MAX_PAGES: u32 = 100;

/// An access token. It never appears in Debug output, logs or errors.
pub struct GitHubToken(SecretString);

impl GitHubToken {
    /// Wraps a token. `None` if the text is empty, as for a missing secret in a workflow, or not valid in a
    /// header.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let sendable = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        sendable.then(|| Self(SecretString::from(text.to_owned())))
    }
}

impl fmt::Debug for GitHubToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// A client for the API of one repository.
pub struct Client {
    crab: Octocrab,
    repository: RepositoryName,
    retries: RetryPolicy,
    /// The token, which is removed from every response, because a server may echo it.
    token: SecretString,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("repository", &self.repository).finish_non_exhaustive()
    }
}

struct Response {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
}

/// The outcome of a request that creates an object.
pub(super) enum Created<T> {
    Confirmed(T),
    /// There was no response, or a gateway timed out, so the object may have been created.
    Unconfirmed,
}

impl Client {
    /// Creates a client. `api` is the value of GITHUB_API_URL, including `/api/v3` for GitHub Enterprise
    /// Server.
    pub fn new(
        api: &str,
        repository: RepositoryName,
        token: &GitHubToken,
        retries: RetryPolicy,
    ) -> Result<Self, GitHubError> {
        // The provider is set once for the process; an error only means that it is already set.
        drop(rustls::crypto::ring::default_provider().install_default());
        let http = reqwest::Client::builder()
            .connect_timeout(SILENCE)
            .read_timeout(SILENCE)
            .timeout(SILENCE * 2)
            // Redirects are never followed, because they could send the token to another host.
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| GitHubError::Setup(deepest(&error)))?;
        let crab = Octocrab::builder()
            .base_uri(api)
            .map_err(|error| GitHubError::Setup(deepest(&error)))?
            .personal_token(token.0.clone())
            .build_with_reqwest(http)
            .map_err(|error| GitHubError::Setup(deepest(&error)))?;
        Ok(Self { crab, repository, retries, token: token.0.clone() })
    }

    /// The API path of something in this repository.
    pub(super) fn path(&self, rest: &str) -> String {
        format!("/repos/{}/{rest}", self.repository)
    }

    pub(super) async fn get<T: DeserializeOwned>(&self, what: &str, path: &str) -> Result<T, GitHubError> {
        let answer = self.repeated(what, &Method::GET, path, None).await?;
        read(what, &answer.body)
    }

    pub(super) async fn patch<T: DeserializeOwned>(
        &self,
        what: &str,
        path: &str,
        body: &Value,
    ) -> Result<T, GitHubError> {
        let answer = self.repeated(what, &Method::PATCH, path, Some(body)).await?;
        read(what, &answer.body)
    }

    pub(super) async fn delete(&self, what: &str, path: &str) -> Result<(), GitHubError> {
        self.repeated(what, &Method::DELETE, path, None).await.map(drop)
    }

    /// Sends a POST request, which is carried out at most once.
    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        what: &str,
        path: &str,
        body: &Value,
    ) -> Result<Created<T>, GitHubError> {
        match self.request(what, &Method::POST, path, Some(body)).await? {
            Some(answer) => Ok(Created::Confirmed(read(what, &answer.body)?)),
            None => Ok(Created::Unconfirmed),
        }
    }

    /// Returns all entries of a listing. Pages are requested by number, and links in responses are not
    /// followed.
    pub(super) async fn list<T: DeserializeOwned>(
        &self,
        what: &str,
        path: &str,
        inside: impl Fn(Value) -> Option<Value>,
    ) -> Result<Vec<T>, GitHubError> {
        let mut all = Vec::new();
        let separator = if path.contains('?') { '&' } else { '?' };
        for page in 1..=MAX_PAGES {
            let path = format!("{path}{separator}per_page={PAGE}&page={page}");
            let answer = self.repeated(what, &Method::GET, &path, None).await?;
            let content: Value = read(what, &answer.body)?;
            let unreadable =
                || GitHubError::Unreadable { what: what.to_owned(), why: "it is not a list".to_owned() };
            let entries = inside(content).ok_or_else(unreadable)?;
            let entries: Vec<T> = serde_json::from_value(entries)
                .map_err(|error| GitHubError::Unreadable { what: what.to_owned(), why: error.to_string() })?;
            let full = entries.len() >= PAGE;
            all.extend(entries);
            let more = header(&answer.headers, "link").is_some_and(|links| links.contains("rel=\"next\""));
            if !full && !more {
                return Ok(all);
            }
        }
        let why = format!("there are more than {MAX_PAGES} pages");
        Err(GitHubError::Unreadable { what: what.to_owned(), why })
    }

    /// Sends a request that may be carried out more than once.
    async fn repeated(
        &self,
        what: &str,
        method: &Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Response, GitHubError> {
        let answer = self.request(what, method, path, body).await?;
        // Only a POST request needs this check, and POST requests are not sent by this function.
        answer.ok_or_else(|| GitHubError::Unreadable { what: what.to_owned(), why: "no response".to_owned() })
    }

    /// Sends a request until there is a response. Returns `None` if the caller has to check whether the
    /// request was carried out.
    async fn request(
        &self,
        what: &str,
        method: &Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Option<Response>, GitHubError> {
        let repeatable = *method != Method::POST;
        let mut waited = Duration::ZERO;
        let mut failures = 0;
        loop {
            let tried = self.once(method, path, body).await;
            let outcome = match &tried {
                Ok(answer) => answer.outcome(),
                Err(lost) if lost.sent => TryOutcome::NoResponse,
                Err(_) => TryOutcome::NotSent,
            };
            let wait = match (next_step(&outcome, repeatable, failures, self.retries), tried) {
                (NextStep::CheckWhetherDone, _) => return Ok(None),
                (NextStep::Accept, Ok(answer)) if (200..300).contains(&answer.status) => {
                    return Ok(Some(answer));
                }
                (NextStep::Accept, Ok(answer)) => return Err(answer.refused(what)),
                // No attempts are left, so report the last failure.
                (NextStep::Wait(wait), Ok(answer)) if self.gives_up(failures, waited, wait) => {
                    let limited = matches!(answer.status, 403 | 429);
                    return Err(if limited {
                        GitHubError::RateLimited { what: what.to_owned(), wait, waited }
                    } else {
                        answer.refused(what)
                    });
                }
                (NextStep::Wait(wait), Err(lost)) if self.gives_up(failures, waited, wait) => {
                    return Err(GitHubError::Unreachable { what: what.to_owned(), why: lost.why });
                }
                (NextStep::Wait(wait), _) => wait,
                (NextStep::Accept, Err(lost)) => {
                    return Err(GitHubError::Unreachable { what: what.to_owned(), why: lost.why });
                }
            };
            tokio::time::sleep(wait).await;
            waited += wait;
            failures += 1;
        }
    }

    fn gives_up(&self, failures: u32, waited: Duration, wait: Duration) -> bool {
        failures + 1 >= self.retries.max_attempts || waited.saturating_add(wait) > self.retries.max_wait
    }

    /// The time to wait before checking whether an object was created, because listings lag behind.
    pub(super) fn pause(&self) -> Duration {
        self.retries.first_wait
    }

    fn without_token(&self, body: Vec<u8>) -> Vec<u8> {
        let token = self.token.expose_secret();
        match std::str::from_utf8(&body) {
            Ok(text) if text.contains(token) => text.replace(token, "…").into_bytes(),
            // Error messages are only taken from bodies that are text.
            _ => body,
        }
    }

    async fn once(&self, method: &Method, path: &str, body: Option<&Value>) -> Result<Response, NoResponse> {
        let request = http::Request::builder()
            .method(method.clone())
            .uri(path)
            .header("accept", "application/vnd.github+json")
            .header("x-github-api-version", "2022-11-28");
        let unsent = |error: octocrab::Error| NoResponse { sent: sent(&error), why: deepest(&error) };
        let request = self.crab.build_request(request, body).map_err(unsent)?;
        let response = self.crab.execute(request).await.map_err(unsent)?;
        let (parts, body) = response.into_parts();
        let whole = Limited::new(body, MAX_RESPONSE_BYTES).collect().await;
        let whole = whole.map_err(|error| NoResponse { sent: true, why: deepest(error.as_ref()) })?;
        let body = self.without_token(whole.to_bytes().to_vec());
        Ok(Response { status: parts.status.as_u16(), headers: parts.headers, body })
    }
}

/// Returns `None` if GitHub's response is that the object does not exist.
pub(super) fn if_present<T>(found: Result<T, GitHubError>) -> Result<Option<T>, GitHubError> {
    match found {
        Err(error) if error.is_absent() => Ok(None),
        found => found.map(Some),
    }
}

/// The reason why an attempt got no response.
struct NoResponse {
    sent: bool,
    why: String,
}

impl Response {
    fn message(&self) -> String {
        let body: Option<Value> = serde_json::from_slice(&self.body).ok();
        let message = body.as_ref().and_then(|body| body.get("message")).and_then(Value::as_str);
        // A gateway responds in HTML, which is not usable in a message.
        message.unwrap_or("no message").chars().take(300).collect()
    }

    fn outcome(&self) -> TryOutcome {
        let after = header(&self.headers, "retry-after");
        let retry_after = after.map(|text| text.parse().unwrap_or(60));
        let exhausted = header(&self.headers, "x-ratelimit-remaining").is_some_and(|left| left == "0");
        let retry_after = retry_after.or_else(|| exhausted.then(|| until_reset(&self.headers)).flatten());
        let limited = self.message().to_ascii_lowercase().contains("rate limit");
        TryOutcome::Response { status: self.status, retry_after, exhausted, limited }
    }

    fn refused(&self, what: &str) -> GitHubError {
        GitHubError::Refused { what: what.to_owned(), status: self.status, message: self.message() }
    }
}

/// Seconds until the rate limit is reset. The server's clock is used, because the local one may be wrong.
fn until_reset(headers: &HeaderMap) -> Option<u64> {
    let reset: i64 = header(headers, "x-ratelimit-reset")?.parse().ok()?;
    let now = jiff::fmt::rfc2822::parse(header(headers, "date")?).ok()?.timestamp().as_second();
    // One second is added, because both times are truncated to whole seconds.
    u64::try_from(reset.saturating_sub(now).saturating_add(1)).ok()
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn read<T: DeserializeOwned>(what: &str, body: &[u8]) -> Result<T, GitHubError> {
    serde_json::from_slice(body)
        .map_err(|error| GitHubError::Unreadable { what: what.to_owned(), why: error.to_string() })
}

/// Returns whether a failed request may have reached the server.
fn sent(error: &octocrab::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<reqwest::Error>() {
            return !(error.is_connect() || error.is_builder());
        }
        cause = error.source();
    }
    true
}

/// The innermost cause, which is the most useful one for people. The text contains no URL.
fn deepest(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

/// Each message completes "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum GitHubError {
    #[error("{what}: GitHub is unreachable: {why}")]
    Unreachable { what: String, why: String },
    #[error("{what}: GitHub returned {status}: {message}")]
    Refused { what: String, status: u16, message: String },
    /// The response was not in the expected form.
    #[error("{what}: unexpected response from GitHub: {why}")]
    Unreadable { what: String, why: String },
    #[error("{what}: rate limit: GitHub asks to wait another {} s after {} s of waiting", wait.as_secs(), waited.as_secs())]
    RateLimited { what: String, wait: Duration, waited: Duration },
    /// This job must not publish the run that a `workflow_run` event reports.
    #[error("accept the reported run: {0}")]
    Untrusted(String),
    #[error("prepare the connection: {0}")]
    Setup(String),
    #[error("{what}: {why}")]
    Webhook { what: String, why: String },
}

impl GitHubError {
    /// Returns whether the token is valid but lacks the permission. Tokens for pull requests from forks are
    /// read-only.
    pub const fn is_forbidden(&self) -> bool {
        matches!(self, Self::Refused { status: 403, .. })
    }

    pub const fn is_absent(&self) -> bool {
        matches!(self, Self::Refused { status: 404 | 410, .. })
    }
}

/// The number of attempts, and the time between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Time to wait after the first failure; each further wait is twice as long.
    pub first_wait: Duration,
    /// Maximum number of attempts per request.
    pub max_attempts: u32,
    /// Maximum total time that one request may wait.
    pub max_wait: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        // GitHub resets the primary rate limit every hour, but a comment is not worth waiting that long.
        Self { first_wait: Duration::from_secs(1), max_attempts: 5, max_wait: Duration::from_secs(600) }
    }
}

/// Time to wait after a rate limit that does not state a time, as GitHub recommends.
const DEFAULT_WAIT: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TryOutcome {
    Response {
        status: u16,
        /// Seconds to wait according to the response: the value of Retry-After, or the time until the limit
        /// is reset.
        retry_after: Option<u64>,
        /// True if no requests are left until the limit is reset.
        exhausted: bool,
        /// True if the message mentions a rate limit.
        limited: bool,
    },
    /// No connection was made, so the request was not carried out.
    NotSent,
    /// The request was sent, but there was no response.
    NoResponse,
}

/// The next step after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextStep {
    /// Use the response.
    Accept,
    Wait(Duration),
    /// The request may have been carried out, so check whether it was.
    CheckWhetherDone,
}

/// Decides the next step, as a pure function of the response. `repeatable` means that carrying out the request twice has
/// the same effect as once. `failures` is the number of earlier failures.
///
/// A request that GitHub rejected because of a rate limit was not carried out and may always be repeated. A
/// request without a response may have been carried out, and repeating a POST request could post twice, so
/// the caller has to check first.
pub(super) fn next_step(
    outcome: &TryOutcome,
    repeatable: bool,
    failures: u32,
    retries: RetryPolicy,
) -> NextStep {
    let backoff = retries.first_wait.saturating_mul(2_u32.saturating_pow(failures));
    match outcome {
        TryOutcome::Response { status, retry_after, exhausted, limited } => {
            let retry_after = retry_after.map(Duration::from_secs);
            match status {
                429 => NextStep::Wait(retry_after.unwrap_or(DEFAULT_WAIT)),
                403 if retry_after.is_some() || *exhausted || *limited => {
                    NextStep::Wait(retry_after.unwrap_or(DEFAULT_WAIT))
                }
                500..=599 if repeatable => NextStep::Wait(retry_after.unwrap_or(backoff)),
                500..=599 => NextStep::CheckWhetherDone,
                _ => NextStep::Accept,
            }
        }
        TryOutcome::NotSent => NextStep::Wait(backoff),
        TryOutcome::NoResponse if repeatable => NextStep::Wait(backoff),
        TryOutcome::NoResponse => NextStep::CheckWhetherDone,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16) -> TryOutcome {
        TryOutcome::Response { status, retry_after: None, exhausted: false, limited: false }
    }

    fn limited(status: u16, seconds: u64) -> TryOutcome {
        TryOutcome::Response { status, retry_after: Some(seconds), exhausted: false, limited: false }
    }

    fn ask(outcome: &TryOutcome, repeatable: bool) -> NextStep {
        next_step(outcome, repeatable, 0, RetryPolicy::default())
    }

    #[test]
    fn a_rate_limit_is_waited_out() {
        for repeatable in [false, true] {
            assert_eq!(ask(&limited(429, 7), repeatable), NextStep::Wait(Duration::from_secs(7)));
            assert_eq!(ask(&limited(403, 7), repeatable), NextStep::Wait(Duration::from_secs(7)));
            assert_eq!(ask(&answer(429), repeatable), NextStep::Wait(DEFAULT_WAIT));
            let secondary =
                TryOutcome::Response { status: 403, retry_after: None, exhausted: false, limited: true };
            assert_eq!(ask(&secondary, repeatable), NextStep::Wait(DEFAULT_WAIT));
        }
    }

    #[test]
    fn a_read_only_token_is_not_a_rate_limit() {
        assert_eq!(ask(&answer(403), false), NextStep::Accept);
    }

    #[test]
    fn a_request_that_may_have_been_carried_out_is_not_repeated_without_a_check() {
        for outcome in [answer(500), answer(502), answer(503), answer(504), TryOutcome::NoResponse] {
            assert_eq!(ask(&outcome, false), NextStep::CheckWhetherDone, "{outcome:?}");
            assert!(matches!(ask(&outcome, true), NextStep::Wait(_)), "{outcome:?}");
        }
        assert!(matches!(ask(&TryOutcome::NotSent, false), NextStep::Wait(_)));
    }

    #[test]
    fn waits_double_after_each_failure() {
        let wait = |failures| next_step(&answer(502), true, failures, RetryPolicy::default());
        assert_eq!(wait(0), NextStep::Wait(Duration::from_secs(1)));
        assert_eq!(wait(3), NextStep::Wait(Duration::from_secs(8)));
        // Checks that nothing overflows, even far beyond the maximum number of attempts.
        assert!(matches!(wait(200), NextStep::Wait(_)));
    }

    #[test]
    fn success_and_other_errors_are_accepted() {
        for status in [200, 201, 204, 301, 401, 404, 422] {
            assert_eq!(ask(&answer(status), false), NextStep::Accept, "{status}");
        }
    }
}
