//! Downloads a wheel by URL, hashing while it arrives.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::ToolchainError;
use super::manifest::sha256_of;
use super::wheel::Name;
use crate::model::hex;
use crate::process::Cancel;

/// Timeout without data from the server.
const SILENCE: Duration = Duration::from_secs(60);

/// The wheel's file name, from the last part of its URL.
pub(super) fn file_name(url: &str) -> Option<String> {
    let path = url.split(['?', '#']).next()?;
    let last = path.rsplit('/').next()?;
    // `+` of a local version is often written percent-encoded.
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
    let failed = |detail: String| ToolchainError::Download { url: without_secrets(url), detail };
    let name =
        file_name(url).ok_or_else(|| failed("the URL does not end in the name of a wheel".to_owned()))?;
    let path = folder.join(&name);
    if sha256_of(&path).is_ok_and(|found| found == sha256) {
        return Ok(path);
    }
    let work = download(url, &path);
    let found = tokio::select! {
        found = work => found.map_err(|failure| match failure {
            DownloadFailure::Network(error) => failed(reason(&error)),
            DownloadFailure::Disk(source) => ToolchainError::io("write", &path)(source),
        })?,
        () = cancel.requested() => return Err(ToolchainError::Interrupted),
    };
    if found == sha256 {
        return Ok(path);
    }
    // Not kept under a name that a later step might trust.
    drop(std::fs::remove_file(&path));
    Err(ToolchainError::WrongHash { what: name, expected: sha256.to_owned(), found })
}

enum DownloadFailure {
    Network(reqwest::Error),
    Disk(std::io::Error),
}

async fn download(url: &str, path: &Path) -> Result<String, DownloadFailure> {
    // Set once for the process; an existing value is fine.
    drop(rustls::crypto::ring::default_provider().install_default());
    let client = reqwest::Client::builder().connect_timeout(SILENCE).read_timeout(SILENCE).build();
    let response = client.map_err(DownloadFailure::Network)?.get(url).send().await;
    let mut response =
        response.and_then(reqwest::Response::error_for_status).map_err(DownloadFailure::Network)?;
    let mut file = File::create(path).map_err(DownloadFailure::Disk)?;
    let mut hash = Sha256::new();
    while let Some(chunk) = response.chunk().await.map_err(DownloadFailure::Network)? {
        hash.update(&chunk);
        file.write_all(&chunk).map_err(DownloadFailure::Disk)?;
    }
    Ok(hex(&hash.finalize()))
}

/// The root cause, which a person can act on, without the URL.
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

/// The URL for messages, without credentials and signed parameters.
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
}
