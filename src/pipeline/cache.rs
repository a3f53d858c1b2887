//! The content-addressed cache. A key is the digest of everything that decides an entry's content;
//! an entry is a folder that appears whole (rename) or not at all, and is checked before use.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::files::{self, Scratch};

use super::PipelineError;

/// The file of an entry that lists the others with their digests.
const MANIFEST: &str = "entry.json";

/// A digest over named parts. Each part is framed by its length, so no two lists of parts collide.
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

    pub(super) fn finish(self) -> String {
        hex(&self.0.finalize())
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String can't fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// SHA-256 of a file's content, read in pieces.
pub(super) fn file_sha256(path: &Path) -> Result<String, PipelineError> {
    let mut file = fs::File::open(path).map_err(PipelineError::io("open", path))?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0_u8; 1 << 20];
    loop {
        let read = file.read(&mut buffer).map_err(PipelineError::io("read", path))?;
        if read == 0 {
            return Ok(hex(&digest.finalize()));
        }
        digest.update(&buffer[..read]);
    }
}

/// Runs what reads much on a thread of its own.
pub(super) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, PipelineError> + Send + 'static,
) -> Result<T, PipelineError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime only cancels it when everything ends.
            Err(_) => Err(PipelineError::Interrupted),
        },
    }
}

/// Digests of files that do not change while a run lasts, each read once: the weights of a large model are
/// the same for every target and both sides.
#[derive(Debug, Default)]
pub(super) struct Digests(Mutex<HashMap<PathBuf, Arc<tokio::sync::OnceCell<String>>>>);

impl Digests {
    /// Of this file's content.
    pub(super) async fn of(&self, path: &Path) -> Result<String, PipelineError> {
        let cell = {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(known.entry(path.to_owned()).or_default())
        };
        let read = || {
            let path = path.to_owned();
            aside(move || file_sha256(&path))
        };
        cell.get_or_try_init(read).await.cloned()
    }

    /// Notes the digest of a file that was just written from checked bytes, so that it is not read again.
    pub(super) fn learn(&self, path: PathBuf, sha256: String) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(path, Arc::new(tokio::sync::OnceCell::new_with(Some(sha256))));
    }
}

/// Writes a file so that it is there whole or not at all, also after a power cut.
pub(super) fn write_atomically(path: &Path, content: &[u8]) -> Result<(), PipelineError> {
    files::write(path, content).map_err(PipelineError::io("write", path))
}

#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    /// File name → SHA-256.
    files: BTreeMap<String, String>,
    /// What the maker wants to remember: durations, counts, names.
    meta: serde_json::Value,
}

/// An entry whose files were checked against its manifest.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) folder: PathBuf,
    pub(super) files: BTreeMap<String, String>,
    pub(super) meta: serde_json::Value,
    /// It was there before.
    pub(super) cached: bool,
}

impl Entry {
    pub(super) fn path(&self, file: &str) -> PathBuf {
        self.folder.join(file)
    }

    pub(super) fn meta_as<T: serde::de::DeserializeOwned>(&self) -> Option<T> {
        T::deserialize(&self.meta).ok()
    }
}

/// What a lookup found.
#[derive(Debug)]
pub(super) enum Lookup {
    Hit(Entry),
    Miss,
    /// An entry was there, but not with the content it was stored with. It is gone now.
    Damaged(String),
}

/// A folder of entries by kind and key.
#[derive(Debug, Clone)]
pub struct Cache {
    root: PathBuf,
    /// One maker per key inside this process; across processes the rename decides.
    making: Arc<Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>>,
}

impl Cache {
    /// Opens the cache below `root` and removes what killed makers left behind. A cache that holds all that is
    /// needed is never written to, so it may be read-only.
    pub fn open(root: &Path) -> Self {
        let cache = Self { root: root.to_owned(), making: Arc::default() };
        files::sweep_scratch(&cache.staging(), "");
        cache
    }

    fn staging(&self) -> PathBuf {
        self.root.join("staging")
    }

    pub(super) fn folder(&self, kind: &str, key: &str) -> PathBuf {
        // Two digits of fan-out keep any one folder small.
        self.root.join(kind).join(&key[..2]).join(key)
    }

    /// Finds an entry and checks every file of it.
    pub(super) fn lookup(&self, kind: &str, key: &str) -> Result<Lookup, PipelineError> {
        let folder = self.folder(kind, key);
        let manifest = folder.join(MANIFEST);
        let bytes = match fs::read(&manifest) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !folder.exists() => {
                return Ok(Lookup::Miss);
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return self.discard(&folder, "its manifest is missing".to_owned());
            }
            Err(error) => return Err(PipelineError::io("read", &manifest)(error)),
        };
        let Ok(manifest) = serde_json::from_slice::<Manifest>(&bytes) else {
            return self.discard(&folder, "its manifest is not readable".to_owned());
        };
        for (name, expected) in &manifest.files {
            let path = folder.join(name);
            let found = match file_sha256(&path) {
                Ok(found) => found,
                Err(error) => return self.discard(&folder, error.to_string()),
            };
            if found != *expected {
                return self.discard(&folder, format!("{name} has sha256 {found}, stored as {expected}"));
            }
        }
        Ok(Lookup::Hit(Entry { folder, files: manifest.files, meta: manifest.meta, cached: true }))
    }

    /// [`Cache::lookup`] on another thread: hashing a module of a gigabyte must not keep anybody from noticing
    /// that a compiler has ended.
    pub(super) async fn lookup_aside(&self, kind: &'static str, key: &str) -> Result<Lookup, PipelineError> {
        let (cache, key) = (self.clone(), key.to_owned());
        aside(move || cache.lookup(kind, &key)).await
    }

    fn discard(&self, folder: &Path, why: String) -> Result<Lookup, PipelineError> {
        match fs::remove_dir_all(folder) {
            // Another process found the same.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            removed => removed.map_err(PipelineError::io("remove the damaged cache entry", folder))?,
        }
        Ok(Lookup::Damaged(format!("{}: {why}", folder.display())))
    }

    /// A fresh folder to make an entry in. Dropped without [`Cache::store`], it is removed.
    pub(super) fn stage(&self) -> Result<Scratch, PipelineError> {
        let staging = self.staging();
        Scratch::new_in(&staging, "").map_err(PipelineError::io("write in", &staging))
    }

    /// Turns a staged folder into the entry of this key. If another process was faster, its entry
    /// stands: both were made from the same content.
    pub(super) fn store(
        &self,
        kind: &str,
        key: &str,
        staged: Scratch,
        files: &[&str],
        meta: serde_json::Value,
    ) -> Result<Entry, PipelineError> {
        let mut digests = BTreeMap::new();
        for name in files {
            digests.insert((*name).to_owned(), file_sha256(&staged.path().join(name))?);
        }
        let manifest = Manifest { files: digests, meta };
        let text = serde_json::to_vec_pretty(&manifest)
            .map_err(|error| PipelineError::io("write", staged.path())(std::io::Error::other(error)))?;
        write_atomically(&staged.path().join(MANIFEST), &text)?;
        let folder = self.folder(kind, key);
        let parent = folder.parent().unwrap_or(&self.root);
        fs::create_dir_all(parent).map_err(PipelineError::io("create", parent))?;
        let Err(error) = fs::rename(staged.path(), &folder) else {
            return Ok(Entry { folder, files: manifest.files, meta: manifest.meta, cached: false });
        };
        match self.lookup(kind, key)? {
            // Another process was faster. Where its entry differs in a byte, its digests are the true ones.
            Lookup::Hit(entry) => Ok(Entry { cached: false, ..entry }),
            Lookup::Miss | Lookup::Damaged(_) => Err(PipelineError::io("store", &folder)(error)),
        }
    }

    /// Held while an entry of this key is made, so that two sides never make the same thing twice.
    pub(super) async fn maker(&self, kind: &str, key: &str) -> tokio::sync::OwnedMutexGuard<()> {
        let lock = {
            let mut making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(making.entry(format!("{kind}/{key}")).or_default())
        };
        lock.lock_owned().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry_with(cache: &Cache, key: &str, content: &str) -> Entry {
        let staged = cache.stage().unwrap();
        fs::write(staged.path().join("a.txt"), content).unwrap();
        cache.store("thing", key, staged, &["a.txt"], serde_json::json!({"seconds": 1.5})).unwrap()
    }

    const KEY: &str = "00112233";

    #[test]
    fn a_stored_entry_is_found_with_its_meta() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path());
        assert!(matches!(cache.lookup("thing", KEY).unwrap(), Lookup::Miss));
        entry_with(&cache, KEY, "hello");
        let Lookup::Hit(entry) = cache.lookup("thing", KEY).unwrap() else { panic!("not found") };
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
        let Lookup::Damaged(why) = cache.lookup("thing", KEY).unwrap() else { panic!("not noticed") };
        assert!(why.contains("a.txt has sha256"), "{why}");
        assert!(matches!(cache.lookup("thing", KEY).unwrap(), Lookup::Miss));
        entry_with(&cache, KEY, "hello");
        assert!(matches!(cache.lookup("thing", KEY).unwrap(), Lookup::Hit(_)));
    }

    #[test]
    fn a_truncated_manifest_is_damage_not_a_panic() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path());
        let entry = entry_with(&cache, KEY, "hello");
        let manifest = entry.path(MANIFEST);
        let whole = fs::read(&manifest).unwrap();
        fs::write(&manifest, &whole[..whole.len() / 2]).unwrap();
        assert!(matches!(cache.lookup("thing", KEY).unwrap(), Lookup::Damaged(_)));
    }

    #[test]
    fn the_staging_folder_of_a_dead_process_is_removed_when_the_cache_opens_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        // This number is alive here; its owner, in another container, is not.
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
        assert!(matches!(cache.lookup("thing", KEY).unwrap(), Lookup::Hit(_)));
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
