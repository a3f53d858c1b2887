//! Requests and answers. octocrab keeps the token to its own host; what is repeated, and after which wait,
//! `patience` decides.

use std::fmt;
use std::time::Duration;

use http::{HeaderMap, Method};
use http_body_util::{BodyExt, Limited};
use octocrab::Octocrab;
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::patience::{Came, Next, Patience, next};
use super::{GitHubError, Repository};

/// A server that says nothing for this long is gone.
const SILENCE: Duration = Duration::from_secs(60);

/// A page of a hundred comments is far below this.
const LARGEST_ANSWER: usize = 32 << 20;

/// What a page holds at most, by GitHub's rules.
pub(super) const PAGE: usize = 100;

/// Of a listing; 10,000 entries.
const MOST_PAGES: u32 = 100;

/// The token. Shown by nothing: not by Debug, not by a log, not by an error.
pub struct Token(SecretString);

impl Token {
    /// Nothing where the text is empty, as an absent secret of a workflow is, or can't be sent in a header.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let sendable = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        sendable.then(|| Self(SecretString::from(text.to_owned())))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// One repository's API.
pub struct Client {
    crab: Octocrab,
    repository: Repository,
    patience: Patience,
    /// Taken out of every answer: a server may echo what it was asked.
    token: SecretString,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("repository", &self.repository).finish_non_exhaustive()
    }
}

/// A whole answer.
struct Answer {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
}

/// How a request that creates something ended.
pub(super) enum Created<T> {
    Certainly(T),
    /// The answer got lost, or a gateway gave up: it may be there.
    Perhaps,
}

impl Client {
    /// `api` is GITHUB_API_URL, with the `/api/v3` of a server of one's own.
    ///
    /// # Errors
    /// An address or a TLS setup that can't be used.
    pub fn new(
        api: &str,
        repository: Repository,
        token: &Token,
        patience: Patience,
    ) -> Result<Self, GitHubError> {
        // Set once for the process; that it is set already is what is wanted.
        drop(rustls::crypto::ring::default_provider().install_default());
        let http = reqwest::Client::builder()
            .connect_timeout(SILENCE)
            .read_timeout(SILENCE)
            .timeout(SILENCE * 2)
            // A token follows nobody elsewhere.
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| GitHubError::Setup(deepest(&error)))?;
        let crab = Octocrab::builder()
            .base_uri(api)
            .map_err(|error| GitHubError::Setup(deepest(&error)))?
            .personal_token(token.0.clone())
            .build_with_reqwest(http)
            .map_err(|error| GitHubError::Setup(deepest(&error)))?;
        Ok(Self { crab, repository, patience, token: token.0.clone() })
    }

    /// A path inside this repository.
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

    /// Creates something, at most once.
    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        what: &str,
        path: &str,
        body: &Value,
    ) -> Result<Created<T>, GitHubError> {
        match self.request(what, &Method::POST, path, Some(body)).await? {
            Some(answer) => Ok(Created::Certainly(read(what, &answer.body)?)),
            None => Ok(Created::Perhaps),
        }
    }

    /// Every entry of a listing. Pages are asked for by number: a link in an answer is not followed.
    pub(super) async fn list<T: DeserializeOwned>(
        &self,
        what: &str,
        path: &str,
        inside: impl Fn(Value) -> Option<Value>,
    ) -> Result<Vec<T>, GitHubError> {
        let mut all = Vec::new();
        let separator = if path.contains('?') { '&' } else { '?' };
        for page in 1..=MOST_PAGES {
            let path = format!("{path}{separator}per_page={PAGE}&page={page}");
            let answer = self.repeated(what, &Method::GET, &path, None).await?;
            let content: Value = read(what, &answer.body)?;
            let unreadable = || GitHubError::Unreadable { what: what.to_owned(), why: "no list".to_owned() };
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
        let why = format!("there are more than {MOST_PAGES} pages");
        Err(GitHubError::Unreadable { what: what.to_owned(), why })
    }

    /// A request that may be carried out twice.
    async fn repeated(
        &self,
        what: &str,
        method: &Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Answer, GitHubError> {
        let answer = self.request(what, method, path, body).await?;
        // Only a POST is looked for.
        answer.ok_or_else(|| GitHubError::Unreadable {
            what: what.to_owned(),
            why: "the answer got lost".to_owned(),
        })
    }

    /// Asks until there is an answer, or until only looking tells whether it was carried out (`None`).
    async fn request(
        &self,
        what: &str,
        method: &Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Option<Answer>, GitHubError> {
        let repeatable = *method != Method::POST;
        let mut waited = Duration::ZERO;
        let mut failures = 0;
        loop {
            let tried = self.once(method, path, body).await;
            let came = match &tried {
                Ok(answer) => answer.came(),
                Err(lost) if lost.sent => Came::Lost,
                Err(_) => Came::NotSent,
            };
            let wait = match (next(&came, repeatable, failures, self.patience), tried) {
                (Next::Look, _) => return Ok(None),
                (Next::Take, Ok(answer)) if (200..300).contains(&answer.status) => return Ok(Some(answer)),
                (Next::Take, Ok(answer)) => return Err(answer.refused(what)),
                // The last failure is the one that is told.
                (Next::Wait(wait), Ok(answer)) if self.gives_up(failures, waited, wait) => {
                    let limited = matches!(answer.status, 403 | 429);
                    return Err(if limited {
                        GitHubError::RateLimited { what: what.to_owned(), wait, waited }
                    } else {
                        answer.refused(what)
                    });
                }
                (Next::Wait(wait), Err(lost)) if self.gives_up(failures, waited, wait) => {
                    return Err(GitHubError::Unreachable { what: what.to_owned(), why: lost.why });
                }
                (Next::Wait(wait), _) => wait,
                (Next::Take, Err(lost)) => {
                    return Err(GitHubError::Unreachable { what: what.to_owned(), why: lost.why });
                }
            };
            tokio::time::sleep(wait).await;
            waited += wait;
            failures += 1;
        }
    }

    fn gives_up(&self, failures: u32, waited: Duration, wait: Duration) -> bool {
        failures + 1 >= self.patience.tries || waited.saturating_add(wait) > self.patience.longest
    }

    /// The wait before looking whether something was created: listings lag behind.
    pub(super) fn pause(&self) -> Duration {
        self.patience.first
    }

    fn without_token(&self, body: Vec<u8>) -> Vec<u8> {
        let token = self.token.expose_secret();
        match std::str::from_utf8(&body) {
            Ok(text) if text.contains(token) => text.replace(token, "…").into_bytes(),
            // A message is only read from text.
            _ => body,
        }
    }

    async fn once(&self, method: &Method, path: &str, body: Option<&Value>) -> Result<Answer, Lost> {
        let request = http::Request::builder()
            .method(method.clone())
            .uri(path)
            .header("accept", "application/vnd.github+json")
            .header("x-github-api-version", "2022-11-28");
        let unsent = |error: octocrab::Error| Lost { sent: sent(&error), why: deepest(&error) };
        let request = self.crab.build_request(request, body).map_err(unsent)?;
        let response = self.crab.execute(request).await.map_err(unsent)?;
        let (parts, body) = response.into_parts();
        let whole = Limited::new(body, LARGEST_ANSWER).collect().await;
        let whole = whole.map_err(|error| Lost { sent: true, why: deepest(error.as_ref()) })?;
        let body = self.without_token(whole.to_bytes().to_vec());
        Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, body })
    }
}

/// A try without an answer.
struct Lost {
    sent: bool,
    why: String,
}

impl Answer {
    fn message(&self) -> String {
        let told: Option<Value> = serde_json::from_slice(&self.body).ok();
        let message = told.as_ref().and_then(|body| body.get("message")).and_then(Value::as_str);
        // A gateway answers in HTML, which tells nobody anything.
        message.unwrap_or("no message").chars().take(300).collect()
    }

    fn came(&self) -> Came {
        let after = header(&self.headers, "retry-after");
        let told = after.map(|text| text.parse().unwrap_or(60));
        let exhausted = header(&self.headers, "x-ratelimit-remaining").is_some_and(|left| left == "0");
        let told = told.or_else(|| exhausted.then(|| until_reset(&self.headers)).flatten());
        let limited = self.message().to_ascii_lowercase().contains("rate limit");
        Came::Answer { status: self.status, told, exhausted, limited }
    }

    fn refused(&self, what: &str) -> GitHubError {
        GitHubError::Refused { what: what.to_owned(), status: self.status, message: self.message() }
    }
}

/// Seconds until the limit is reset, by the server's own clock: ours may be wrong.
fn until_reset(headers: &HeaderMap) -> Option<u64> {
    let reset: i64 = header(headers, "x-ratelimit-reset")?.parse().ok()?;
    let now = jiff::fmt::rfc2822::parse(header(headers, "date")?).ok()?.timestamp().as_second();
    // One more, because both are cut to whole seconds.
    u64::try_from(reset.saturating_sub(now).saturating_add(1)).ok()
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn read<T: DeserializeOwned>(what: &str, body: &[u8]) -> Result<T, GitHubError> {
    serde_json::from_slice(body)
        .map_err(|error| GitHubError::Unreadable { what: what.to_owned(), why: error.to_string() })
}

/// Whether a failed request may have reached the server.
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

/// The cause at the bottom, which is the one a person can act on. It names no URL.
fn deepest(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
