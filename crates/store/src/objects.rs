//! A baseline in an object store. Each session and each acceptance is one object that is created
//! once and never changed. So no locks are needed, and no catalog exists that could contradict the
//! objects.
//!
//! ```text
//! sessions/suite=<suite>/testbed=<testbed>/month=2026-11/<time>-<commit>.parquet
//! acceptances/suite=<suite>/testbed=<testbed>/<time>-accept-<hash>.json
//! ```
//!
//! Sessions are grouped by month. A gate lists the months around today. A gate asks for other months only if
//! it needs more sessions.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use jiff::Timestamp;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{BackoffConfig, ClientOptions, Error, ObjectStore, ObjectStoreExt, PutMode, RetryConfig};
use tokio::runtime::Runtime;

use benchgate_core::model::{StoreScheme, StoreUrl};
use benchgate_host::process;

use super::listing::ListingConnector;
use super::{Change, Encoding, Files, RunName, StoreError, name};

const SESSIONS: &str = "sessions";
const ACCEPTANCES: &str = "acceptances";
const SUITE: &str = "suite=";
const TESTBED: &str = "testbed=";
const MONTH: &str = "month=";

/// Size limit for an object to read. A session of 20,000 benchmarks is smaller.
const MOST_BYTES: u64 = 64 << 20;
/// Maximum number of objects in a month, or of months in a folder, to list. A server that never stops listing
/// must not fill the memory.
const MOST_NAMES: usize = 1_000_000;
/// Number of parallel requests. Each takes tens of milliseconds, most of it waiting.
const AT_ONCE: usize = 16;
/// Maximum number of bytes to prefetch. Further files are fetched when they are read.
const MOST_AHEAD: usize = 64 << 20;

fn unstarted(place: &str, error: &std::io::Error) -> StoreError {
    StoreError::Objects { action: "start the requests to", url: place.to_owned(), why: error.to_string() }
}

/// A baseline in the objects below a prefix.
pub struct Objects {
    runtime: Runtime,
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    place: String,
    is_remote: bool,
    /// Objects that were prefetched and not read yet, by their path in the baseline.
    ahead: RefCell<BTreeMap<String, Vec<u8>>>,
    fetched: Cell<u64>,
}

impl Objects {
    /// Opens the store at `url` without sending a request. `variables` are environment variables, the only
    /// source of the endpoint and the credentials.
    ///
    /// # Errors
    /// The variables contradict each other, or contain no account.
    pub fn open(url: &StoreUrl, variables: &[(String, String)]) -> Result<Self, StoreError> {
        let (store, is_remote) =
            open(url, variables).map_err(|error| failed("open the store", &url.to_string(), &error))?;
        let prefix = Path::parse(url.prefix())
            .map_err(|error| failed("open the store", &url.to_string(), &error.into()))?;
        Self::new(store, prefix, url.to_string(), is_remote)
    }

    /// Opens a folder of this machine as an object store. The folder is created by the first write.
    ///
    /// # Errors
    /// The path can't be expressed as a key.
    pub fn folder(folder: &std::path::Path) -> Result<Self, StoreError> {
        let place = folder.display().to_string();
        let io = |source| StoreError::Io { action: "find", path: folder.to_owned(), source };
        let absolute = std::path::absolute(folder).map_err(io)?;
        // Keys can't contain `..`, so the path is resolved; the folder itself may not exist yet.
        let there = absolute.ancestors().find(|ancestor| ancestor.exists()).unwrap_or(&absolute);
        let rest = absolute.strip_prefix(there).unwrap_or(std::path::Path::new(""));
        let absolute = there.canonicalize().map_err(io)?.join(rest);
        let prefix = Path::from_absolute_path(&absolute)
            .map_err(|error| failed("open the folder", &place, &error.into()))?;
        Self::new(local(), prefix, place, false)
    }

    pub(super) fn new(
        store: Arc<dyn ObjectStore>,
        prefix: Path,
        place: String,
        is_remote: bool,
    ) -> Result<Self, StoreError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| unstarted(&place, &error))?;
        let (ahead, fetched) = (RefCell::default(), Cell::default());
        Ok(Self { runtime, store, prefix, place, is_remote, ahead, fetched })
    }

    fn wait<T>(&self, work: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        self.runtime.block_on(async {
            let interrupts = process::interrupts().map_err(|error| unstarted(&self.place, &error))?;
            tokio::select! {
                done = work => done,
                () = interrupts.cancel.requested() => Err(StoreError::Interrupted),
            }
        })
    }

    fn failed(&self, action: &'static str, key: &Path, error: &Error) -> StoreError {
        failed(action, &self.shown(key), error)
    }

    /// A key in the form in which the user would write it.
    fn shown(&self, key: &Path) -> String {
        let inside = key.as_ref().strip_prefix(self.prefix.as_ref()).unwrap_or(key.as_ref());
        format!("{}/{}", self.place, inside.trim_start_matches('/'))
    }

    /// The key of `parts` below the prefix. Special characters in these folder and file names are already
    /// encoded, so they are not encoded again.
    fn key(&self, parts: &[&str]) -> Result<Path, StoreError> {
        let parts = [self.prefix.as_ref()].into_iter().chain(parts.iter().copied());
        let text = parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
        Path::parse(&text).map_err(|error| failed("find", &text, &error.into()))
    }

    /// The prefix of a suite, or of a suite on a testbed, below one of the two top folders.
    fn folder_key(&self, top: &str, folder: &str, more: &str) -> Result<Path, StoreError> {
        let (suite, testbed) = folder.split_once('/').unwrap_or((folder, ""));
        let level = |prefix: &str, name: &str| match name {
            "" => String::new(),
            name => format!("{prefix}{name}"),
        };
        self.key(&[top, &level(SUITE, suite), &level(TESTBED, testbed), more])
    }

    /// The key of a file of the baseline.
    fn file_key(&self, path: &str) -> Result<Path, StoreError> {
        let missing = || StoreError::NoSuchFile { path: path.to_owned() };
        let (folder, file) = path.rsplit_once('/').ok_or_else(missing)?;
        if name::is_acceptance(file) {
            return self.folder_key(ACCEPTANCES, folder, file);
        }
        let run = RunName::parse(file, Encoding::Parquet).ok_or_else(missing)?;
        self.folder_key(SESSIONS, folder, &format!("{MONTH}{}/{file}", run.month()))
    }

    /// Lists the folders at a key, sorted by name and without the prefix `level`.
    fn folders_at(&self, key: &Path, level: &str) -> Result<Vec<String>, StoreError> {
        let listed = self.wait(async {
            let listed = self.store.list_with_delimiter(Some(key)).await;
            listed.map_err(|error| self.failed("list", key, &error))
        })?;
        if listed.common_prefixes.len() > MOST_NAMES {
            return Err(self.too_many(key));
        }
        let names = listed.common_prefixes.iter().filter_map(Path::filename);
        let mut names: Vec<String> =
            names.filter_map(|name| name.strip_prefix(level)).map(str::to_owned).collect();
        names.sort();
        Ok(names)
    }

    /// Lists the objects directly at a key, sorted by name.
    fn files_at(&self, key: &Path) -> Result<Vec<String>, StoreError> {
        let mut names = self.wait(async {
            let mut names = Vec::new();
            let mut objects = self.store.list(Some(key));
            while let Some(object) = objects.next().await {
                let object = object.map_err(|error| self.failed("list", key, &error))?;
                let inside = object.location.as_ref().strip_prefix(key.as_ref());
                let file = inside.and_then(|inside| inside.strip_prefix('/'));
                names.extend(file.filter(|file| !file.contains('/')).map(str::to_owned));
                if names.len() > MOST_NAMES {
                    return Err(self.too_many(key));
                }
            }
            Ok(names)
        })?;
        names.sort();
        Ok(names)
    }

    fn too_many(&self, key: &Path) -> StoreError {
        let why = format!("it has more than {MOST_NAMES} objects or folders");
        StoreError::Objects { action: "list", url: self.shown(key), why }
    }

    /// Creates an object completely or not at all. Fails if it exists.
    async fn create(&self, path: &str, key: &Path, bytes: &[u8]) -> Result<(), StoreError> {
        let written = self.store.put_opts(key, bytes.to_vec().into(), PutMode::Create.into()).await;
        written.map(drop).map_err(|error| match error {
            Error::AlreadyExists { .. } => StoreError::Exists { path: path.to_owned() },
            error => self.failed("write", key, &error),
        })
    }

    /// Reads an object, but never more than [`MOST_BYTES`].
    async fn get(&self, path: &str, key: &Path) -> Result<Vec<u8>, StoreError> {
        let failed = |error: &Error| match error {
            Error::NotFound { .. } => StoreError::NoSuchFile { path: path.to_owned() },
            error => self.failed("read", key, error),
        };
        let too_large = || {
            let why = format!("it is larger than {} MiB", MOST_BYTES >> 20);
            StoreError::Objects { action: "read", url: self.shown(key), why }
        };
        let found = self.store.get(key).await.map_err(|error| failed(&error))?;
        if found.meta.size > MOST_BYTES {
            return Err(too_large());
        }
        let mut bytes = Vec::new();
        let mut chunks = found.into_stream();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|error| failed(&error))?;
            // A server can send more bytes than it stated.
            if (bytes.len() + chunk.len()) as u64 > MOST_BYTES {
                return Err(too_large());
            }
            bytes.extend_from_slice(&chunk);
        }
        self.fetched.set(self.fetched.get() + bytes.len() as u64);
        Ok(bytes)
    }
}

impl Files for Objects {
    fn list(&self, folder: &str, folders: bool) -> Result<Vec<String>, StoreError> {
        if folders {
            let level = if folder.is_empty() { SUITE } else { TESTBED };
            return self.folders_at(&self.folder_key(SESSIONS, folder, "")?, level);
        }
        let mut names = self.acceptances(folder)?;
        for period in self.periods(folder)? {
            names.extend(self.names_in(folder, &period)?);
        }
        names.sort();
        Ok(names)
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, StoreError> {
        if let Some(bytes) = self.ahead.borrow_mut().remove(path) {
            return Ok(bytes);
        }
        let key = self.file_key(path)?;
        self.wait(self.get(path, &key))
    }

    fn prefetch(&self, paths: &[String]) -> Result<(), StoreError> {
        let mut wanted = Vec::new();
        for path in paths.iter().filter(|path| !self.ahead.borrow().contains_key(*path)) {
            wanted.push((path, self.file_key(path)?));
        }
        self.wait(async {
            let requests = wanted.iter().map(|(path, key)| async move { (*path, self.get(path, key).await) });
            let mut answers = stream::iter(requests).buffer_unordered(AT_ONCE);
            let mut held = 0;
            while let Some((path, bytes)) = answers.next().await {
                let bytes = match bytes {
                    Ok(bytes) => bytes,
                    // The object was pruned after the listing; reading it later returns this error.
                    Err(StoreError::NoSuchFile { .. }) => continue,
                    Err(error) => return Err(error),
                };
                held += bytes.len();
                self.ahead.borrow_mut().insert(path.clone(), bytes);
                if held > MOST_AHEAD {
                    break;
                }
            }
            Ok(())
        })
    }

    fn apply(&mut self, change: &Change) -> Result<(), StoreError> {
        let mut new = Vec::new();
        for (path, bytes) in &change.add {
            new.push((path, self.file_key(path)?, bytes));
        }
        self.wait(async {
            let requests = new.iter().map(|(path, key, bytes)| self.create(path, key, bytes));
            let mut answers = stream::iter(requests).buffer_unordered(AT_ONCE);
            while let Some(answer) = answers.next().await {
                answer?;
            }
            Ok(())
        })?;
        for path in &change.remove {
            let key = self.file_key(path)?;
            self.wait(async {
                match self.store.delete(&key).await {
                    // Another process has removed it already.
                    Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
                    Err(error) => Err(self.failed("remove", &key, &error)),
                }
            })?;
        }
        Ok(())
    }

    fn place(&self) -> String {
        self.place.clone()
    }

    fn fetched(&self) -> Option<u64> {
        self.is_remote.then(|| self.fetched.get())
    }

    fn encoding(&self) -> Encoding {
        Encoding::Parquet
    }

    fn periods(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        self.folders_at(&self.folder_key(SESSIONS, folder, "")?, MONTH)
    }

    fn recent_periods(&self, now: Timestamp) -> Vec<String> {
        name::months_around(now)
    }

    fn period_of(&self, name: &RunName) -> String {
        name.month()
    }

    fn names_in(&self, folder: &str, period: &str) -> Result<Vec<String>, StoreError> {
        self.files_at(&self.folder_key(SESSIONS, folder, &format!("{MONTH}{period}"))?)
    }

    fn acceptances(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        let names = self.files_at(&self.folder_key(ACCEPTANCES, folder, "")?)?;
        Ok(names.into_iter().filter(|file| name::is_acceptance(file)).collect())
    }
}

/// Timeout for a whole request, including its body.
const REQUEST: Duration = Duration::from_secs(60);
const CONNECT: Duration = Duration::from_secs(5);

/// The retry policy. If the response to a creation was lost, the repeated request finds the object
/// that the first request created; the caller then compares the contents.
fn retry() -> RetryConfig {
    let backoff = BackoffConfig { max_backoff: Duration::from_secs(5), ..BackoffConfig::default() };
    RetryConfig { backoff, max_retries: 4, retry_timeout: Duration::from_secs(60) }
}

/// The client options, which require encrypted connections unless a variable such as `AWS_ALLOW_HTTP` permits
/// others.
fn client() -> ClientOptions {
    // The provider is set once for the process; an error only means that it is already set.
    drop(rustls::crypto::ring::default_provider().install_default());
    ClientOptions::new().with_timeout(REQUEST).with_connect_timeout(CONNECT).with_allow_http(false)
}

/// Opens the store at a URL, and returns whether it is on another machine. The URL's bucket is set last, so
/// that no variable replaces it. The builders' own `from_env` is not used, because benchgate removes secrets
/// from its environment before it starts other programs; `variables` also contains the removed ones.
pub(super) fn open(
    url: &StoreUrl,
    variables: &[(String, String)],
) -> Result<(Arc<dyn ObjectStore>, bool), Error> {
    macro_rules! with_variables {
        ($builder:expr, $prefix:literal) => {{
            let builder = $builder.with_client_options(client()).with_retry(retry());
            let mut builder = builder.with_http_connector(ListingConnector::default());
            for (name, value) in variables.iter().filter(|(name, _)| name.starts_with($prefix)) {
                // Variables that the builder does not recognize belong to other tools.
                if let Ok(key) = name.to_ascii_lowercase().parse() {
                    builder = builder.with_config(key, value);
                }
            }
            builder
        }};
    }
    let store: Arc<dyn ObjectStore> = match url.scheme() {
        StoreScheme::S3 => {
            Arc::new(with_variables!(AmazonS3Builder::new(), "AWS_").with_bucket_name(url.bucket()).build()?)
        }
        StoreScheme::Gs => Arc::new(
            with_variables!(GoogleCloudStorageBuilder::new(), "GOOGLE_")
                .with_bucket_name(url.bucket())
                .build()?,
        ),
        StoreScheme::Az => Arc::new(
            with_variables!(MicrosoftAzureBuilder::new(), "AZURE_")
                .with_container_name(url.bucket())
                .build()?,
        ),
        StoreScheme::File => local(),
    };
    Ok((store, url.scheme() != StoreScheme::File))
}

/// A store whose objects are files of this machine. A write returns only after its data is on disk.
fn local() -> Arc<dyn ObjectStore> {
    Arc::new(LocalFileSystem::new().with_fsync(true))
}

/// Addresses of the metadata services from which cloud machines get credentials.
const METADATA: [&str; 3] = ["169.254.169.254", "169.254.170.2", "metadata.google.internal"];

/// Reduces a server's XML response to its code and message.
fn plain(text: &str) -> String {
    let element = |name: &str| {
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        Some(rest.split_once(&format!("</{name}>"))?.0.trim().to_owned())
    };
    let Some(code) = element("Code") else { return text.to_owned() };
    let start = text.find('<').unwrap_or_default();
    let before = text[..start].trim_end_matches([' ', ':', '"']);
    let message = element("Message").map_or_else(String::new, |message| format!(" ({message})"));
    format!("{before}: {code}{message}")
}

/// Maximum length of a reason in a message, because servers respond with whole documents.
const LONGEST: usize = 400;

/// Converts an error, and removes the query from each URL in it, because the query of an Azure URL may
/// contain a signature.
pub(super) fn failed(action: &'static str, url: &str, error: &Error) -> StoreError {
    let mut text = plain(&error.to_string());
    // The innermost cause is the one that a user can act on.
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    let cause = plain(&cause.to_string());
    if !text.contains(&cause) {
        text.push_str(&format!(": {cause}"));
    }
    // Without credentials, the client requests some from the machine's metadata service, which most machines
    // don't have.
    if METADATA.iter().any(|address| text.contains(address)) {
        text =
            "no credentials, neither in the environment nor from this machine's metadata service".to_owned();
    }
    if text.contains("URL scheme is not allowed") {
        text.push_str("; the connection is not encrypted, which only AWS_ALLOW_HTTP, GOOGLE_ALLOW_HTTP or AZURE_ALLOW_HTTP allow");
    }
    let words = text.split_whitespace().map(|word| match word.split_once('?') {
        Some((address, _)) if address.contains("://") => address,
        _ => word,
    });
    let mut why = words.collect::<Vec<_>>().join(" ");
    if why.len() > LONGEST {
        let end = (0..=LONGEST).rev().find(|end| why.is_char_boundary(*end)).unwrap_or(0);
        why.truncate(end);
        why.push('…');
    }
    StoreError::Objects { action, url: url.to_owned(), why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_in_an_address_is_not_shown() {
        let source =
            "Error performing GET https://a.blob.core.windows.net/c/x?sv=2024&sig=SECRET in 1ms".into();
        let error = failed("read", "az://c/x", &Error::Generic { store: "MicrosoftAzure", source });
        assert!(!error.to_string().contains("SECRET"), "{error}");
        assert!(error.to_string().contains("https://a.blob.core.windows.net/c/x in 1ms"), "{error}");
    }

    #[test]
    fn an_answer_in_xml_is_shown_as_its_code_and_message() {
        let source = "Server returned non-2xx status code: 403 Forbidden: <?xml version=\"1.0\"?><Error>\
                      <Code>AccessDenied</Code><Message>Access Denied</Message><HostId>x</HostId></Error>";
        let error = failed("write", "s3://b/x", &Error::Generic { store: "S3", source: source.into() });
        let text = error.to_string();
        assert!(text.ends_with("403 Forbidden: AccessDenied (Access Denied)"), "{text}");
        assert!(!text.contains('<'), "{text}");
    }

    #[test]
    fn missing_credentials_are_named_and_not_the_address_that_has_none() {
        let source = "Error performing PUT http://169.254.169.254/latest/api/token in 3s: timed out".into();
        let text = failed("write", "s3://b/x", &Error::Generic { store: "S3", source }).to_string();
        assert!(text.contains("no credentials") && !text.contains("169.254"), "{text}");
    }

    #[test]
    fn the_bucket_is_that_of_the_address_and_not_that_of_a_variable() {
        let variables = [
            ("AWS_BUCKET", "other"),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ACCESS_KEY_ID", "id"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let (store, is_remote) = open(&"s3://nightly/x".parse().unwrap(), &variables).unwrap();
        assert!(is_remote);
        assert_eq!(store.to_string(), "AmazonS3(nightly)");
    }
}
