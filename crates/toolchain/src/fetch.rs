//! Downloads files by URL. An interrupted transfer is resumed, and no file is used before its hash is
//! checked.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use reqwest::header::{CONTENT_RANGE, RANGE};
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client, Response, StatusCode, Url};

use super::ToolchainError;
use super::install::blocking;
use super::manifest::sha256_of;
use super::pip::Name;
use benchgate_host::files;
use benchgate_host::process::Cancel;

/// Timeout if the server sends no data.
const SILENCE: Duration = Duration::from_secs(60);
/// Maximum number of connections for one file, so that a server that always ends connections early can't keep
/// a job busy forever.
const MOST_CONNECTIONS: usize = 20;
const MOST_REDIRECTS: usize = 10;
/// Minimum time between two progress reports of a transfer.
const BETWEEN_REPORTS: Duration = Duration::from_millis(500);

/// The file name of a wheel, from the last part of its URL.
pub(super) fn file_name(url: &str) -> Option<String> {
    let path = url.split(['?', '#']).next()?;
    let last = path.rsplit('/').next()?;
    // The `+` of a local version is often percent-encoded.
    let name = last.replace("%2B", "+").replace("%2b", "+");
    Name::parse(&name).is_some().then_some(name)
}

/// Downloads the wheel at `url` into `folder`. A complete file that is already there is not fetched again.
pub(super) async fn wheel(
    url: &str,
    sha256: &str,
    folder: &Path,
    cancel: &Cancel,
) -> Result<PathBuf, ToolchainError> {
    let name = file_name(url).ok_or_else(|| ToolchainError::Download {
        url: without_secrets(url),
        detail: "the URL does not end in the name of a wheel".to_owned(),
    })?;
    let path = folder.join(&name);
    if sha256_of(&path).is_ok_and(|found| found == sha256) {
        return Ok(path);
    }
    let file = RemoteFile { url, sha256: Some(sha256), size: None };
    file.fetch(&path, &|_| {}, cancel).await?;
    Ok(path)
}

#[derive(Debug, Clone, Copy)]
pub(super) struct RemoteFile<'a> {
    pub(super) url: &'a str,
    /// The expected hash in lowercase hexadecimal. If absent, any content is accepted.
    pub(super) sha256: Option<&'a str>,
    pub(super) size: Option<u64>,
}

/// The progress of a transfer, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Arrived {
    pub(super) bytes: u64,
    pub(super) of: Option<u64>,
}

enum Failure {
    /// The server did not answer, or answered without the file.
    Refused(String),
    /// The connection ended before the file did.
    Ended(Arrived, reqwest::Error),
    Disk(io::Error),
}

impl RemoteFile<'_> {
    /// Downloads the file to `path`, and resumes an earlier partial download there. If the download
    /// fails, `path` contains at most a partial file, which the next attempt resumes. Returns the
    /// file's SHA-256.
    pub(super) async fn fetch(
        &self,
        path: &Path,
        report: &(dyn Fn(Arrived) + Sync),
        cancel: &Cancel,
    ) -> Result<String, ToolchainError> {
        let mut continued = bytes_of(path) > 0;
        loop {
            tokio::select! {
                done = self.transfer(path, report) => {
                    done.map_err(|failure| self.failed(path, failure))?;
                }
                () = cancel.requested() => return Err(ToolchainError::Interrupted),
            }
            let found = hash(path, cancel).await?;
            let Some(expected) = self.sha256.filter(|expected| found != *expected) else { return Ok(found) };
            // The file is removed, so that no later step trusts a file with the wrong content.
            fs::remove_file(path).map_err(ToolchainError::io("remove", path))?;
            if !continued {
                let (url, expected) = (without_secrets(self.url), expected.to_owned());
                return Err(ToolchainError::WrongFile { url, expected, found });
            }
            // The part of an earlier attempt may have belonged to another file, so the download starts again.
            continued = false;
        }
    }

    fn failed(&self, path: &Path, failure: Failure) -> ToolchainError {
        let detail = match failure {
            Failure::Disk(source) => return ToolchainError::io("write", path)(source),
            Failure::Refused(why) => why,
            Failure::Ended(Arrived { bytes, of }, error) => {
                let of = of.map(|of| format!(" of {of}")).unwrap_or_default();
                format!("the transfer ended after {bytes}{of} bytes: {}", reason(&error))
            }
        };
        ToolchainError::Download { url: without_secrets(self.url), detail }
    }

    /// Connects again until the file is complete, as long as each connection makes progress.
    async fn transfer(&self, path: &Path, report: &(dyn Fn(Arrived) + Sync)) -> Result<(), Failure> {
        // The provider is set once for the process; an error only means that it is already set.
        drop(rustls::crypto::ring::default_provider().install_default());
        let client = Client::builder()
            .connect_timeout(SILENCE)
            .read_timeout(SILENCE)
            .redirect(Policy::custom(redirect))
            .user_agent(concat!("benchgate/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| Failure::Refused(reason(&error)))?;
        let mut furthest = bytes_of(path);
        for connection in 1.. {
            match self.connection(&client, path, report).await {
                Err(Failure::Ended(arrived, _))
                    if arrived.bytes > furthest && connection < MOST_CONNECTIONS =>
                {
                    furthest = arrived.bytes;
                }
                ended => return ended,
            }
        }
        Ok(())
    }

    async fn connection(
        &self,
        client: &Client,
        path: &Path,
        report: &(dyn Fn(Arrived) + Sync),
    ) -> Result<(), Failure> {
        let have = bytes_of(path);
        if have > 0 && self.size == Some(have) {
            return Ok(());
        }
        let mut request = client.get(self.url);
        if have > 0 {
            request = request.header(RANGE, format!("bytes={have}-"));
        }
        let response = request.send().await.map_err(|error| Failure::Refused(reason(&error)))?;
        // If there is nothing left to send, the partial file is already complete.
        if have > 0 && response.status() == StatusCode::RANGE_NOT_SATISFIABLE {
            return Ok(());
        }
        let response = response.error_for_status().map_err(|error| Failure::Refused(reason(&error)))?;
        let begin = if response.status() == StatusCode::PARTIAL_CONTENT {
            begin_of_range(&response).filter(|begin| *begin == have).ok_or_else(|| {
                Failure::Refused(format!("the server does not continue the file at byte {have}"))
            })?
        } else {
            0
        };
        let total = response.content_length().map(|rest| begin + rest);
        self.check_size(total)?;
        let mut options = OpenOptions::new();
        let options =
            if begin > 0 { options.append(true) } else { options.write(true).create(true).truncate(true) };
        let file = options.open(path).map_err(Failure::Disk)?;
        self.receive(response, file, Arrived { bytes: begin, of: total.or(self.size) }, report).await
    }

    /// Rejects a file of the wrong size before it is transferred.
    fn check_size(&self, total: Option<u64>) -> Result<(), Failure> {
        match (self.size, total) {
            (Some(size), Some(total)) if size != total => {
                Err(Failure::Refused(format!("expected {size} bytes, found {total}")))
            }
            _ => Ok(()),
        }
    }

    async fn receive(
        &self,
        mut response: Response,
        mut file: File,
        mut arrived: Arrived,
        report: &(dyn Fn(Arrived) + Sync),
    ) -> Result<(), Failure> {
        let mut reported = Instant::now();
        loop {
            let chunk = response.chunk().await.map_err(|error| Failure::Ended(arrived, error))?;
            let Some(chunk) = chunk else { break };
            file.write_all(&chunk).map_err(Failure::Disk)?;
            arrived.bytes += chunk.len() as u64;
            if self.size.is_some_and(|size| arrived.bytes > size) {
                // The file is too long, so the next attempt must not resume it.
                file.set_len(0).map_err(Failure::Disk)?;
                self.check_size(Some(arrived.bytes))?;
            }
            if reported.elapsed() >= BETWEEN_REPORTS {
                reported = Instant::now();
                report(arrived);
            }
        }
        file.sync_all().map_err(Failure::Disk)
    }
}

/// The size of a partial download; zero if there is none.
fn bytes_of(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

pub(super) async fn hash(path: &Path, cancel: &Cancel) -> Result<String, ToolchainError> {
    let (file, cancel) = (path.to_owned(), cancel.clone());
    blocking(path, move || {
        files::sha256_unless(&file, || cancel.is_requested()).map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => ToolchainError::Interrupted,
            _ => ToolchainError::io("read", &file)(error),
        })
    })
    .await
}

/// The first byte of the range in `Content-Range: bytes 5-9/10`.
fn begin_of_range(response: &Response) -> Option<u64> {
    let range = response.headers().get(CONTENT_RANGE)?.to_str().ok()?;
    range.strip_prefix("bytes ")?.split('-').next()?.parse().ok()
}

/// Follows a redirect on the same host, or from https to https. Over an unencrypted connection, an attacker
/// could redirect the request to another host.
fn redirect(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let Some(from) = attempt.previous().last() else { return attempt.stop() };
    let to = attempt.url();
    if attempt.previous().len() > MOST_REDIRECTS {
        return attempt.error("too many redirects");
    }
    if is_followed(from, to) {
        return attempt.follow();
    }
    let text = format!(
        "the server redirects to {}, which is followed only from https to https",
        without_secrets(to.as_str())
    );
    attempt.error(text)
}

fn is_followed(from: &Url, to: &Url) -> bool {
    let is_encrypted = |url: &Url| url.scheme() == "https";
    let same_name = from.host_str() == to.host_str();
    from.origin() == to.origin() || (is_encrypted(to) && (is_encrypted(from) || same_name))
}

/// The root cause, which is the part that a user can act on, without the URL.
fn reason(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    match error.status() {
        Some(status) => format!("the server answers {status}"),
        None => cause.to_string(),
    }
}

/// The URL for messages, without credentials or signed parameters.
fn without_secrets(url: &str) -> String {
    let plain = url.split(['?', '#']).next().unwrap_or_default();
    match plain.split_once("://") {
        Some((scheme, rest)) => match rest.split_once('/') {
            Some((host, path)) => {
                let host = host.rsplit('@').next().unwrap_or_default();
                format!("{scheme}://{host}/{path}")
            }
            None => format!("{scheme}://{}", rest.rsplit('@').next().unwrap_or_default()),
        },
        None => plain.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_its_wheel() {
        let url =
            "https://example.com/a%2B/iree_base_runtime-3.13.0%2Bgpu-cp311-cp311-linux_x86_64.whl#sha256=0";
        let name = file_name(url).unwrap();
        assert_eq!(name, "iree_base_runtime-3.13.0+gpu-cp311-cp311-linux_x86_64.whl");
        assert_eq!(file_name("https://example.com/archive.zip"), None);
    }

    #[test]
    fn credentials_are_not_shown() {
        let shown = without_secrets("https://user:token@example.com/w.whl?sig=secret#x");
        assert_eq!(shown, "https://example.com/w.whl");
    }

    #[test]
    fn a_redirect_to_another_host_is_followed_only_from_https_to_https() {
        for (from, to, followed) in [
            ("https://a/x", "https://a/y", true),
            ("https://a/x", "https://b/y", true),
            ("http://a/x", "http://a/y", true),
            ("http://a/x", "https://a/y", true),
            ("http://a/x", "http://b/y", false),
            ("http://a:1/x", "http://a:2/y", false),
            ("http://a/x", "https://b/y", false),
            ("https://a/x", "http://a/y", false),
            ("https://a/x", "file:///etc/passwd", false),
        ] {
            let url = |text: &str| Url::parse(text).unwrap();
            assert_eq!(is_followed(&url(from), &url(to)), followed, "{from} {to}");
        }
    }
}
