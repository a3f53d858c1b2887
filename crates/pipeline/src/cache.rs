//! The content-addressed cache. A key is the digest of everything that determines an entry's content. An
//! entry is a folder that is created by a rename, so it is complete or absent, and it is checked before use.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use benchgate_core::model::hex;
use benchgate_core::record::StageStatus;
use benchgate_host::files::{self, Scratch, Stamp};
use benchgate_host::process::Cancel;

use super::PipelineError;
use super::slots::Memo;
use super::stage::{StageError, StageFailure, Staged};

/// The file in an entry that lists its other files with their digests.
const MANIFEST: &str = "entry.json";

/// Computes a digest over named parts. Each part is preceded by its length, so that different lists of parts
/// don't have the same digest.
#[derive(Debug, Clone)]
pub(super) struct KeyBuilder(Sha256);

impl KeyBuilder {
    pub(super) fn new(kind: &str) -> Self {
        Self(Sha256::new()).text("kind", kind)
    }

    pub(super) fn bytes(mut self, name: &str, value: &[u8]) -> Self {
        for part in [name.as_bytes(), value] {
            self.0.update((part.len() as u64).to_le_bytes());
            self.0.update(part);
        }
        self
    }

    pub(super) fn text(self, name: &str, value: &str) -> Self {
        self.bytes(name, value.as_bytes())
    }

    pub(super) fn list<S: AsRef<str>>(self, name: &str, values: impl IntoIterator<Item = S>) -> Self {
        let mut count = 0_u64;
        let mut key = self;
        for value in values {
            key = key.text(name, value.as_ref());
            count += 1;
        }
        key.bytes(name, &count.to_le_bytes())
    }

    /// Adds a value in its JSON form.
    pub(super) fn json(self, name: &str, value: &impl Serialize) -> Result<Self, PipelineError> {
        let text = serde_json::to_vec(value).map_err(std::io::Error::other);
        Ok(self.bytes(name, &text.map_err(PipelineError::io("write the key of", Path::new(name)))?))
    }

    pub(super) fn finish(self) -> String {
        hex(&self.0.finalize())
    }
}

/// A unique key, for entries that can't be identified by content. `staged` is the entry's staging folder,
/// which no other entry uses.
pub(super) fn once(key: &str, staged: &Path) -> String {
    let once = KeyBuilder::new("once").text("key", key).text("folder", &staged.to_string_lossy());
    once.text("at", &jiff::Timestamp::now().to_string()).finish()
}

pub(super) fn file_sha256(path: &Path) -> Result<String, PipelineError> {
    files::sha256_of(path).map_err(PipelineError::io("read", path))
}

/// Runs work that reads many files on a separate thread.
pub(super) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, PipelineError> + Send + 'static,
) -> Result<T, PipelineError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // This work is only canceled when the runtime shuts down.
            Err(_) => Err(PipelineError::Interrupted),
        },
    }
}

/// Digests of files that do not change during a run. Each file is read only once, because the weights of a
/// large model are the same for every target and both sides.
#[derive(Debug)]
pub(super) struct Digests {
    known: Memo<PathBuf, Hashed>,
    cancel: Cancel,
}

#[derive(Debug, Clone)]
struct Hashed {
    sha256: String,
    /// The stamp from before the file was read.
    stamp: Stamp,
}

impl Digests {
    /// Creates an empty list. A request to stop also ends hashing.
    pub(super) fn new(cancel: &Cancel) -> Self {
        Self { known: Memo::default(), cancel: cancel.clone() }
    }

    pub(super) async fn sha256(&self, path: &Path) -> Result<String, PipelineError> {
        Ok(self.hashed(path).await?.sha256)
    }

    /// The digest of a file that a tool may have read; `None` if there is no readable file.
    pub(super) async fn readable(&self, path: &Path) -> Option<String> {
        if !path.is_file() {
            return None;
        }
        // If benchgate can't read a file, neither can its tools.
        self.sha256(path).await.ok()
    }

    /// The stamp of a file from when it was hashed. If the stamp has changed since, the digest may be
    /// outdated.
    pub(super) async fn stamp(&self, path: &Path) -> Result<Stamp, PipelineError> {
        Ok(self.hashed(path).await?.stamp)
    }

    async fn hashed(&self, path: &Path) -> Result<Hashed, PipelineError> {
        let (key, path, cancel) = (path.to_owned(), path.to_owned(), self.cancel.clone());
        let hash = move || {
            let stamp = Stamp::now(&path).map_err(PipelineError::io("look at", &path))?;
            match files::sha256_unless(&path, || cancel.is_requested()) {
                Ok(sha256) => Ok(Hashed { sha256, stamp }),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {
                    Err(PipelineError::Interrupted)
                }
                Err(error) => Err(PipelineError::io("read", &path)(error)),
            }
        };
        self.known.get(key, || aside(hash)).await
    }

    /// Records the digest of a file that was just written from checked bytes, so that it is not read again.
    pub(super) fn learn(&self, path: PathBuf, sha256: String) {
        if let Ok(stamp) = Stamp::now(&path) {
            self.known.set(path, Hashed { sha256, stamp });
        }
    }
}

/// Writes a file so that it is complete or absent, even after a power failure.
pub(super) fn write_atomically(path: &Path, content: &[u8]) -> Result<(), PipelineError> {
    files::write(path, content).map_err(PipelineError::io("write", path))
}

/// Writes a value as JSON, completely or not at all.
pub(super) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), PipelineError> {
    let bytes = serde_json::to_vec_pretty(value)
        .map_err(|error| PipelineError::io("write", path)(std::io::Error::other(error)))?;
    write_atomically(path, &bytes)
}

#[derive(Debug, Serialize, Deserialize)]
struct EntryManifest<M> {
    /// The SHA-256 of each file, by its name.
    files: BTreeMap<String, String>,
    /// Additional data of the entry: durations, counts, names.
    meta: M,
}

/// An entry whose files were checked against its manifest.
#[derive(Debug, Clone)]
pub(super) struct CacheEntry<M> {
    pub(super) folder: PathBuf,
    pub(super) files: BTreeMap<String, String>,
    pub(super) meta: M,
    /// True if the entry existed before.
    pub(super) cached: bool,
    /// The reason why a damaged older entry was replaced, if there was one.
    pub(super) damaged: Option<String>,
}

impl<M> CacheEntry<M> {
    pub(super) fn path(&self, file: &str) -> PathBuf {
        self.folder.join(file)
    }

    pub(super) fn status(&self) -> StageStatus {
        if self.cached { StageStatus::Cached } else { StageStatus::Ok }
    }
}

#[derive(Debug)]
enum Lookup<M> {
    Hit(CacheEntry<M>),
    Miss,
    /// An entry was found, but its content had changed since it was stored. The entry was removed.
    Damaged(String),
}

/// The key and data of an entry that was created in a staging folder.
pub(super) struct Made<M> {
    /// The key under which to store the entry.
    pub(super) key: String,
    pub(super) files: Vec<String>,
    pub(super) meta: M,
}

/// The kind and the key of an entry.
type Request = (&'static str, String);

/// The folder of all entries, by kind and key.
#[derive(Debug, Clone)]
pub struct Cache {
    root: PathBuf,
    /// Locks that let only one task of this process create an entry at a time. Between processes, the first
    /// rename wins.
    making: Arc<Mutex<HashMap<Request, Arc<tokio::sync::Mutex<()>>>>>,
    /// Failures of this run. Benchmarks that share a model or a module share its failure: running the tool
    /// again would take minutes and fail in the same way or, worse, in a different one. Failures are not
    /// stored beyond the run, because a cause that is not part of the key may be gone tomorrow.
    failed: Arc<Mutex<HashMap<Request, StageFailure>>>,
}

impl Cache {
    /// Opens the cache below `root` and removes the staging folders of killed processes. If the cache has all
    /// required entries, only the folders' times change, so it may be read-only.
    pub fn open(root: &Path) -> Self {
        let cache = Self { root: root.to_owned(), making: Arc::default(), failed: Arc::default() };
        files::sweep_scratch(&cache.staging(), "");
        cache
    }

    /// Every entry in the cache below `root`, with its kind.
    pub fn kept(root: &Path) -> Vec<(String, PathBuf)> {
        let kinds = files::folders_in(root).into_iter().filter_map(|folder| {
            let kind = folder.file_name()?.to_str()?.to_owned();
            Some((kind, folder))
        });
        let entries = kinds.flat_map(|(kind, folder)| {
            let entries = files::folders_in(&folder).into_iter().flat_map(|fan| files::folders_in(&fan));
            entries.filter(|entry| is_entry(entry)).map(move |entry| (kind.clone(), entry))
        });
        entries.collect()
    }

    /// Returns the valid entry that `find` names, or else the one that `make` creates in the given folder.
    /// One request may have several entries. Two sides never create the same entry twice, and a failure is
    /// not repeated for the same `attempt`.
    pub(super) async fn keep<M: Serialize + DeserializeOwned + Send + 'static>(
        &self,
        kind: &'static str,
        request: &str,
        attempt: &str,
        find: impl AsyncFnOnce() -> Result<Option<String>, PipelineError>,
        make: impl AsyncFnOnce(&Path) -> Staged<Made<M>>,
    ) -> Staged<CacheEntry<M>> {
        let lock = {
            let mut making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(making.entry((kind, request.to_owned())).or_default())
        };
        let _making = lock.lock().await;
        let attempt = (kind, attempt.to_owned());
        let failed = || self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(failure) = failed().get(&attempt) {
            return Err(StageFailure { took: Some(Duration::ZERO), ..failure.clone() }.into());
        }
        let made = self.found_or_made(kind, find, make).await;
        if let Err(StageError::Benchmark(failure)) = &made {
            failed().insert(attempt, failure.clone());
        }
        made
    }

    async fn found_or_made<M: Serialize + DeserializeOwned + Send + 'static>(
        &self,
        kind: &'static str,
        find: impl AsyncFnOnce() -> Result<Option<String>, PipelineError>,
        make: impl AsyncFnOnce(&Path) -> Staged<Made<M>>,
    ) -> Staged<CacheEntry<M>> {
        let mut damaged = None;
        if let Some(key) = find().await? {
            // Hashes on another thread, because hashing a module of a gigabyte must not delay noticing that a
            // compiler has ended.
            let cache = self.clone();
            match aside(move || cache.lookup(kind, &key)).await? {
                Lookup::Hit(entry) => return Ok(entry),
                Lookup::Damaged(why) => damaged = Some(why),
                Lookup::Miss => {}
            }
        }
        let staged = self.stage()?;
        let made = make(staged.path()).await?;
        Ok(CacheEntry { damaged, ..self.store(kind, staged, made)? })
    }

    /// Writes a package of Python files, unless one with the same content exists. Returns the folder to
    /// import it from.
    pub(super) fn install(
        &self,
        kind: &'static str,
        name: &str,
        files: &[(&str, &str)],
    ) -> Result<PathBuf, PipelineError> {
        let key = package_digest(kind, files);
        if let Lookup::Hit(entry) = self.lookup::<()>(kind, &key)? {
            return Ok(entry.folder);
        }
        let staged = self.stage()?;
        let mut made = Made { key, files: Vec::new(), meta: () };
        for (file, content) in files {
            let path = staged.path().join(name).join(file);
            let parent = path.parent().unwrap_or(staged.path());
            fs::create_dir_all(parent).map_err(PipelineError::io("create", parent))?;
            fs::write(&path, content).map_err(PipelineError::io("write", &path))?;
            made.files.push(format!("{name}/{file}"));
        }
        Ok(self.store(kind, staged, made)?.folder)
    }

    fn staging(&self) -> PathBuf {
        self.root.join("staging")
    }

    pub(super) fn folder(&self, kind: &str, key: &str) -> PathBuf {
        // A subfolder for the first two digits keeps each folder small.
        self.root.join(kind).join(&key[..2]).join(key)
    }

    /// Finds an entry and checks all of its files.
    fn lookup<M: DeserializeOwned>(&self, kind: &str, key: &str) -> Result<Lookup<M>, PipelineError> {
        let folder = self.folder(kind, key);
        let manifest = folder.join(MANIFEST);
        let bytes = match fs::read(&manifest) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return if folder.exists() {
                    self.discard(&folder, "its manifest is missing")
                } else {
                    Ok(Lookup::Miss)
                };
            }
            Err(error) => return Err(PipelineError::io("read", &manifest)(error)),
        };
        let Ok(EntryManifest { files, meta }) = serde_json::from_slice::<EntryManifest<M>>(&bytes) else {
            return self.discard(&folder, "its manifest is not readable");
        };
        for (name, expected) in &files {
            match file_sha256(&folder.join(name)) {
                Ok(found) if found == *expected => {}
                Ok(found) => {
                    let why = format!("{name} has sha256 {found}, stored as {expected}");
                    return self.discard(&folder, &why);
                }
                Err(error) => return self.discard(&folder, &error.to_string()),
            }
        }
        files::mark_used(&folder);
        Ok(Lookup::Hit(CacheEntry { folder, files, meta, cached: true, damaged: None }))
    }

    fn discard<M>(&self, folder: &Path, why: &str) -> Result<Lookup<M>, PipelineError> {
        // Another process may have found and removed the same damaged entry.
        files::if_exists(fs::remove_dir_all(folder))
            .map_err(PipelineError::io("remove the damaged cache entry", folder))?;
        Ok(Lookup::Damaged(format!("{}: {why}", folder.display())))
    }

    /// Creates a staging folder for an entry. It is removed when dropped, unless [`Cache::store`] has turned
    /// it into an entry.
    pub(super) fn stage(&self) -> Result<Scratch, PipelineError> {
        let staging = self.staging();
        Scratch::new_in(&staging, "").map_err(PipelineError::io("write in", &staging))
    }

    /// Turns a staged folder into an entry.
    fn store<M: Serialize + DeserializeOwned>(
        &self,
        kind: &str,
        staged: Scratch,
        made: Made<M>,
    ) -> Result<CacheEntry<M>, PipelineError> {
        let Made { key, files, meta } = made;
        let digest = |name: String| {
            let sha256 = file_sha256(&staged.path().join(&name))?;
            Ok::<_, PipelineError>((name, sha256))
        };
        let files = files.into_iter().map(digest).collect::<Result<BTreeMap<_, _>, _>>()?;
        let manifest = EntryManifest { files, meta };
        write_json(&staged.path().join(MANIFEST), &manifest)?;
        let folder = self.folder(kind, &key);
        let parent = folder.parent().unwrap_or(&self.root);
        fs::create_dir_all(parent).map_err(PipelineError::io("create", parent))?;
        let Err(error) = fs::rename(staged.path(), &folder) else {
            let EntryManifest { files, meta } = manifest;
            return Ok(CacheEntry { folder, files, meta, cached: false, damaged: None });
        };
        match self.lookup(kind, &key)? {
            // Another process stored its entry first. Its files may differ from ours, so its digests are the
            // ones to use.
            Lookup::Hit(entry) => Ok(CacheEntry { cached: false, ..entry }),
            Lookup::Miss | Lookup::Damaged(_) => Err(PipelineError::io("store", &folder)(error)),
        }
    }
}

/// Returns whether a folder has the place and name of an entry: named by a digest, in a subfolder for its
/// first two digits.
fn is_entry(folder: &Path) -> bool {
    const DIGITS: usize = 64;
    let name = |path: Option<&Path>| Some(path?.file_name()?.to_str()?.to_owned());
    let (Some(key), Some(fan)) = (name(Some(folder)), name(folder.parent())) else { return false };
    let digest = &key[..key.find('.').unwrap_or(key.len())];
    fan.len() == 2
        && digest.starts_with(&fan)
        && digest.len() == DIGITS
        && digest.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The digest of a package that is embedded in the binary.
pub(super) fn package_digest(kind: &str, files: &[(&str, &str)]) -> String {
    files.iter().fold(KeyBuilder::new(kind), |key, (name, content)| key.text(name, content)).finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn known() -> Result<Option<String>, PipelineError> {
        Ok(Some(KEY.to_owned()))
    }

    fn entry_with(cache: &Cache, key: &str, content: &str) -> CacheEntry<serde_json::Value> {
        let staged = cache.stage().unwrap();
        fs::write(staged.path().join("a.txt"), content).unwrap();
        let meta = serde_json::json!({"seconds": 1.5});
        let made = Made { key: key.to_owned(), files: vec!["a.txt".to_owned()], meta };
        cache.store("thing", staged, made).unwrap()
    }

    fn look_up(cache: &Cache, key: &str) -> Lookup<serde_json::Value> {
        cache.lookup("thing", key).unwrap()
    }

    const KEY: &str = "00112233";

    #[test]
    fn a_stored_entry_is_found_with_its_meta() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path());
        assert!(matches!(look_up(&cache, KEY), Lookup::Miss));
        entry_with(&cache, KEY, "hello");
        let Lookup::Hit(entry) = look_up(&cache, KEY) else { panic!("not found") };
        assert_eq!(fs::read_to_string(entry.path("a.txt")).unwrap(), "hello");
        assert_eq!(entry.meta["seconds"], 1.5);
        assert!(entry.cached);
    }

    #[test]
    fn a_changed_file_is_noticed_and_the_entry_is_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path());
        let entry = entry_with(&cache, KEY, "hello");
        fs::write(entry.path("a.txt"), "jello").unwrap();
        let Lookup::Damaged(why) = look_up(&cache, KEY) else { panic!("not noticed") };
        assert!(why.contains("a.txt has sha256"), "{why}");
        assert!(matches!(look_up(&cache, KEY), Lookup::Miss));
        entry_with(&cache, KEY, "hello");
        assert!(matches!(look_up(&cache, KEY), Lookup::Hit(_)));
    }

    #[test]
    fn a_truncated_manifest_is_damage_not_a_panic() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path());
        let entry = entry_with(&cache, KEY, "hello");
        let manifest = entry.path(MANIFEST);
        let whole = fs::read(&manifest).unwrap();
        fs::write(&manifest, &whole[..whole.len() / 2]).unwrap();
        assert!(matches!(look_up(&cache, KEY), Lookup::Damaged(_)));
    }

    #[test]
    fn the_staging_folder_of_a_dead_process_is_removed_when_the_cache_opens_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        // A process with this number is alive here, but the folder's owner, in another container, is not.
        let abandoned = folder.path().join(format!("staging/{}-x", std::process::id()));
        fs::create_dir_all(&abandoned).unwrap();
        let cache = Cache::open(folder.path());
        assert!(!abandoned.exists());
        let mine = cache.stage().unwrap();
        Cache::open(folder.path());
        assert!(mine.path().exists(), "the staging folder of a living process stays");
    }

    #[test]
    fn gates_that_start_together_after_a_kill_all_work() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..40 {
            fs::create_dir_all(folder.path().join(format!("staging/999999{number}-x/deep"))).unwrap();
        }
        let root = folder.path();
        std::thread::scope(|scope| {
            for number in 0..3 {
                scope.spawn(move || {
                    let cache = Cache::open(root);
                    entry_with(&cache, &format!("{number}{KEY}"), "hello");
                });
            }
        });
    }

    #[test]
    fn a_complete_cache_is_not_written_to() {
        let folder = tempfile::tempdir().unwrap();
        entry_with(&Cache::open(folder.path()), KEY, "hello");
        fs::remove_dir(folder.path().join("staging")).unwrap();
        let cache = Cache::open(folder.path());
        assert!(matches!(look_up(&cache, KEY), Lookup::Hit(_)));
        assert!(!folder.path().join("staging").exists());
    }

    #[test]
    fn an_entry_that_another_process_stored_first_is_described_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path());
        let first = entry_with(&cache, KEY, "first");
        let second = entry_with(&cache, KEY, "second");
        assert_eq!(first.files, second.files);
    }

    #[tokio::test]
    async fn what_failed_is_not_made_again_in_one_run_and_takes_no_time() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path());
        let failure = StageFailure { took: Some(Duration::from_secs(9)), ..StageFailure::unsupported("why") };
        let fail = async |_: &Path| Err::<Made<()>, _>(failure.clone().into());
        assert!(cache.keep("thing", KEY, KEY, known, fail).await.is_err());
        let again = cache.keep::<()>("thing", KEY, KEY, known, async |_: &Path| panic!("made again")).await;
        let Err(StageError::Benchmark(again)) = again else { panic!("{again:?}") };
        assert_eq!((again.why.as_str(), again.unsupported, again.took), ("why", true, Some(Duration::ZERO)));
        let other = async |_: &Path| Ok(Made { key: KEY.to_owned(), files: Vec::new(), meta: () });
        assert!(!cache.keep("another thing", KEY, KEY, known, other).await.unwrap().cached);
    }

    #[tokio::test]
    async fn an_entry_whose_meta_has_another_shape_is_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path());
        entry_with(&cache, KEY, "hello");
        let make = async |staged: &Path| {
            fs::write(staged.join("b.txt"), "new").unwrap();
            Ok(Made { key: KEY.to_owned(), files: vec!["b.txt".to_owned()], meta: 7_u64 })
        };
        let entry = cache.keep("thing", KEY, KEY, known, make).await.unwrap();
        assert_eq!((entry.meta, entry.cached, entry.damaged.is_some()), (7, false, true));
        assert!(cache.keep("thing", KEY, KEY, known, make).await.unwrap().cached);
    }

    #[test]
    fn keys_frame_their_parts() {
        let split = |a: &str, b: &str| KeyBuilder::new("k").text("x", a).text("y", b).finish();
        assert_ne!(split("ab", "c"), split("a", "bc"));
        assert_ne!(
            KeyBuilder::new("k").list("f", ["a", "b"]).finish(),
            KeyBuilder::new("k").list("f", ["a"]).list("f", ["b"]).finish()
        );
    }
}
