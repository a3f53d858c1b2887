//! Files to which definitions refer by URL.

use std::collections::{BTreeMap, BTreeSet};

use super::suite::ImportedSuite;

/// The hash and size of a file that has been downloaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedFile {
    pub sha256: String,
    pub size: u64,
}

/// A file that becomes an `[[artifact]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ImportedArtifact {
    pub(super) name: String,
    pub(super) url: String,
    pub(super) file: FetchedFile,
}

/// The downloaded files, and the URLs of those that are missing.
pub(super) struct RemoteFiles<'a> {
    fetched: &'a BTreeMap<String, FetchedFile>,
    pub(super) missing: BTreeSet<String>,
}

impl<'a> RemoteFiles<'a> {
    pub(super) fn new(fetched: &'a BTreeMap<String, FetchedFile>) -> Self {
        Self { fetched, missing: BTreeSet::new() }
    }

    /// Notes which of the files that a test needs are missing.
    ///
    /// # Errors
    /// If any is missing, since the test can't be imported without it.
    pub(super) fn want<'b>(&mut self, urls: impl Iterator<Item = &'b str>) -> Result<(), String> {
        let mut is_complete = true;
        for url in urls.filter(|url| !self.fetched.contains_key(*url)) {
            is_complete = false;
            self.missing.insert(url.to_owned());
        }
        let why =
            "[[artifact]] needs the SHA-256 of the test's files; `--fetch` downloads them and records it";
        if is_complete { Ok(()) } else { Err(why.to_owned()) }
    }

    /// The path of a downloaded file below the sources. Declares the file as an artifact if it isn't one yet.
    pub(super) fn place(&self, url: &str, suite: &mut ImportedSuite) -> String {
        let known = suite.artifacts.iter().find(|artifact| artifact.url == url);
        let name = known.map(|artifact| artifact.name.clone()).unwrap_or_else(|| {
            let mut name = name_of(url);
            // Two URLs can differ only in characters that a name can't contain, so the names could
            // be equal.
            while suite.artifacts.iter().any(|artifact| artifact.name == name) {
                name = format!("other/{name}");
            }
            if let Some(file) = self.fetched.get(url).cloned() {
                suite.artifacts.push(ImportedArtifact { name: name.clone(), url: url.to_owned(), file });
            }
            name
        });
        format!("artifacts/{name}")
    }
}

/// An artifact name made from the path of a URL.
fn name_of(url: &str) -> String {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let path = path.split_once("://").map_or(path, |(_, rest)| rest);
    let below = path.split_once('/').map_or(path, |(_, below)| below);
    let part = |part: &str| -> String {
        let kept = part.chars().map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' });
        // A name must begin with a letter, a digit or `_`.
        kept.collect::<String>().trim_start_matches(['.', '-']).to_owned()
    };
    let parts: Vec<String> = below.split('/').map(part).filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { "file".to_owned() } else { parts.join("/") }
}
