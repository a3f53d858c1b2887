//! Sends a signed message to any URL, for example to a chat system.

use std::time::Duration;

use ring::hmac;
use secrecy::{ExposeSecret, SecretString};

use benchgate_core::model::hex;

use super::GitHubError;
use super::client::{NextStep, RetryPolicy, TryOutcome, next_step};

/// Timeout if the receiver sends no data.
const SILENCE: Duration = Duration::from_secs(30);

/// A receiver of messages. The URL is often a secret itself, so neither it nor the signing secret is ever
/// shown.
pub struct Webhook {
    url: SecretString,
    host: String,
    key: Option<hmac::Key>,
    policy: RetryPolicy,
}

impl std::fmt::Debug for Webhook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Webhook").field("host", &self.host).finish_non_exhaustive()
    }
}

impl Webhook {
    /// Creates a webhook. The URL must use `https`, except on this machine. `secret` signs the messages.
    pub fn new(url: &str, secret: Option<&str>, policy: RetryPolicy) -> Result<Self, GitHubError> {
        let unusable = |why: &str| GitHubError::Setup(format!("the webhook's address {why}"));
        let parsed = reqwest::Url::parse(url.trim()).map_err(|_| unusable("can't be read"))?;
        let host = parsed.host_str().ok_or_else(|| unusable("names no host"))?.to_owned();
        let is_local = ["127.0.0.1", "localhost", "[::1]"].contains(&host.as_str());
        if parsed.scheme() != "https" && !(parsed.scheme() == "http" && is_local) {
            return Err(unusable("must begin with https://"));
        }
        let key = secret.map(|secret| hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()));
        Ok(Self { url: SecretString::from(parsed.to_string()), host, key, policy })
    }

    /// Sends a message. The message is sent again if there is no response or the server asks for a
    /// retry (429, 5xx). `delivery` identifies the message, so that a receiver can recognize a
    /// repetition.
    pub async fn send(&self, delivery: &str, body: &[u8]) -> Result<(), GitHubError> {
        drop(rustls::crypto::ring::default_provider().install_default());
        let http = reqwest::Client::builder()
            .timeout(SILENCE)
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| GitHubError::Setup(error.without_url().to_string()))?;
        let what = format!("send the webhook to {}", self.host);
        let mut failures = 0;
        let mut waited = Duration::ZERO;
        loop {
            let mut request = http
                .post(self.url.expose_secret())
                .header("content-type", "application/json")
                .header("user-agent", format!("benchgate/{}", benchgate_core::VERSION))
                .header("x-benchgate-delivery", delivery);
            if let Some(key) = &self.key {
                request = request.header("x-benchgate-signature-256", signature(key, body));
            }
            let (came, why) = match request.body(body.to_vec()).send().await {
                Ok(answer) if answer.status().is_success() => return Ok(()),
                Ok(answer) => {
                    let after = answer.headers().get("retry-after").and_then(|value| value.to_str().ok());
                    let wait = after.and_then(|text| text.parse().ok());
                    let status = answer.status().as_u16();
                    (
                        TryOutcome::Response { status, retry_after: wait, exhausted: false, limited: false },
                        format!("it answered {status}"),
                    )
                }
                Err(error) => (TryOutcome::NoResponse, error.without_url().to_string()),
            };
            failures += 1;
            match next_step(&came, true, failures - 1, self.policy) {
                NextStep::Wait(wait)
                    if failures < self.policy.max_attempts
                        && waited.saturating_add(wait) <= self.policy.max_wait =>
                {
                    tokio::time::sleep(wait).await;
                    waited += wait;
                }
                _ => return Err(GitHubError::Webhook { what, why }),
            }
        }
    }
}

/// The signature of a message, as in GitHub's own webhooks: `sha256=` and the hexadecimal digits of the
/// body's HMAC-SHA256.
fn signature(key: &hmac::Key, body: &[u8]) -> String {
    let tag = hmac::sign(key, body);
    format!("sha256={}", hex(tag.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_the_one_of_the_rfc() {
        // RFC 4231, test case 2.
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"Jefe");
        assert_eq!(
            signature(&key, b"what do ya want for nothing?"),
            "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }

    #[test]
    fn only_https_is_sent_to_and_nothing_shows_the_address() {
        for wrong in ["http://example.org/x", "ftp://example.org", "example.org", "file:///etc/passwd"] {
            assert!(Webhook::new(wrong, None, RetryPolicy::default()).is_err(), "{wrong}");
        }
        let hook = Webhook::new("https://example.org/T0K3N", Some("s3cret"), RetryPolicy::default()).unwrap();
        let shown = format!("{hook:?}");
        assert!(!shown.contains("T0K3N") && !shown.contains("s3cret"), "{shown}");
    }
}
