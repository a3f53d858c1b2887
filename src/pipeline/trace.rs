//! What an export read, as its interpreter heard it, and whether that is still as it was.
//!
//! The key of an export has the whole tree of its side's sources, because native code opens files unheard. What
//! lies outside the tree (modules of a parent folder, data elsewhere) is only known once it was read. So a key has
//! an entry for each state of those files, and a list of what decides which one.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::PipelineError;
use super::cache::{Cache, Digests, KeyBuilder, aside, write_json};
use super::memo::Memo;
use super::stage::{StageFailure, Staged};
use super::tree;
use serde::{Deserialize, Serialize};

const KIND: &str = "export-trace";

/// Endings of what benchgate and its tools write next to a configuration. Only Python code reads them, and that
/// is heard; with them in the key, every run would change it.
const HEARD: [&str; 7] = ["csv", "html", "jsonl", "log", "md", "svg", "xml"];

/// What an exporter's answer says.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Heard {
    read: Vec<PathBuf>,
    listed: Vec<PathBuf>,
    /// What the model did that no list of files describes.
    pub(super) opaque: Option<String>,
}

/// Names and contents. Names are relative to the sources, also where they lead out of them: a file next to the
/// base's checkout is not the one next to the head's.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Trace {
    /// Digest by name; `None` for what was looked for and not found.
    files: BTreeMap<String, Option<String>>,
    /// Names of the files in a folder outside of the sources, as one digest.
    folders: BTreeMap<String, Option<String>>,
}

/// The state of the sources of each side, each looked at once in a run.
#[derive(Debug, Default)]
pub(super) struct Sources {
    /// What this run writes, which no model is made of.
    own: Vec<PathBuf>,
    trees: Memo<PathBuf, Result<String, StageFailure>>,
}

impl Sources {
    pub(super) fn without(own: impl IntoIterator<Item = PathBuf>) -> Self {
        Self { own: own.into_iter().map(|path| clean(&path)).collect(), ..Self::default() }
    }

    /// The digest of everything below a folder of sources.
    pub(super) async fn digest(&self, folder: &Path, digests: &Digests) -> Staged<String> {
        let folder = clean(folder);
        let look = async || {
            let (root, own) = (folder.clone(), self.own.clone());
            let found = aside(move || {
                let skip = |path: &Path| own.iter().any(|own| own == path) || is_made(path);
                Ok(tree::files(&root, &skip))
            });
            let mut files = match found.await? {
                Ok(files) => files,
                Err(why) => {
                    return Ok(Err(StageFailure::new(format!("the sources can't be hashed: {why}"))));
                }
            };
            files.retain(|name, _| !self.is_own(&folder.join(name)) && !is_heard(name));
            let key = tree::add(KeyBuilder::new("sources/1"), &files, digests).await?;
            Ok::<_, PipelineError>(Ok(key.finish()))
        };
        Ok(self.trees.get(folder.clone(), look).await??)
    }

    fn is_own(&self, path: &Path) -> bool {
        self.own.iter().any(|own| path.starts_with(own))
    }

    /// The present state of what was heard.
    pub(super) async fn record(
        &self,
        heard: &Heard,
        folder: &Path,
        digests: &Digests,
    ) -> Result<Trace, PipelineError> {
        let folder = clean(folder);
        let mut trace = Trace { files: BTreeMap::new(), folders: BTreeMap::new() };
        for path in &heard.read {
            let name = relative(path, &folder);
            trace.files.insert(name.clone(), content(&folder.join(name), digests).await?);
        }
        for path in heard.listed.iter().filter(|path| !path.starts_with(&folder)) {
            let name = relative(path, &folder);
            trace.folders.insert(name.clone(), self.listing(&folder.join(name)));
        }
        Ok(trace)
    }

    /// Whether everything is as it was.
    async fn holds(&self, trace: &Trace, folder: &Path, digests: &Digests) -> Result<bool, PipelineError> {
        for (name, then) in &trace.files {
            if content(&folder.join(name), digests).await? != *then {
                return Ok(false);
            }
        }
        Ok(trace.folders.iter().all(|(name, then)| self.listing(&folder.join(name)) == *then))
    }

    fn listing(&self, folder: &Path) -> Option<String> {
        let items = fs::read_dir(folder).ok()?;
        let mut names: Vec<Vec<u8>> = items
            .filter_map(Result::ok)
            .filter(|item| !self.is_own(&clean(&item.path())))
            .map(|item| item.file_name().as_encoded_bytes().to_vec())
            .collect();
        names.sort();
        Some(names.iter().fold(KeyBuilder::new("listing"), |key, name| key.bytes("name", name)).finish())
    }

    /// The entry of `key` that was made from what is there now.
    pub(super) async fn entry(
        &self,
        cache: &Cache,
        key: &str,
        folder: &Path,
        digests: &Digests,
    ) -> Result<Option<String>, PipelineError> {
        let index = cache.folder(KIND, key);
        let Ok(items) = fs::read_dir(&index) else { return Ok(None) };
        let folder = clean(folder);
        for path in items.filter_map(Result::ok).map(|item| item.path()) {
            // One that can't be read is one that is not there.
            let read = fs::read(&path).ok().and_then(|bytes| serde_json::from_slice::<Trace>(&bytes).ok());
            let Some(trace) = read else { continue };
            if self.holds(&trace, &folder, digests).await? {
                return Ok(Some(trace.entry_key(key)));
            }
        }
        Ok(None)
    }
}

impl Trace {
    /// Names the entry that was made under `key` from these files.
    pub(super) fn entry_key(&self, key: &str) -> String {
        let parts = |mut builder: KeyBuilder, parts: &BTreeMap<String, Option<String>>| {
            for (name, content) in parts {
                builder = builder.text("name", name).text("is", content.as_deref().unwrap_or("not there"));
            }
            builder.bytes("count", &parts.len().to_le_bytes())
        };
        let builder = KeyBuilder::new("traced/1").text("key", key);
        parts(parts(builder, &self.files), &self.folders).finish()
    }

    /// Adds this to the states of `key` that have an entry.
    pub(super) fn keep(&self, cache: &Cache, key: &str) -> Result<(), PipelineError> {
        let folder = cache.folder(KIND, key);
        fs::create_dir_all(&folder).map_err(PipelineError::io("create", &folder))?;
        write_json(&folder.join(format!("{}.json", self.entry_key(key))), self)
    }
}

/// A folder that tools fill, as its own mark says: a repository, a virtual environment, a cache.
fn is_made(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name == ".git")
        || ["pyvenv.cfg", "CACHEDIR.TAG"].iter().any(|mark| folder.join(mark).is_file())
}

fn is_heard(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|ending| HEARD.iter().any(|heard| ending == *heard))
}

async fn content(path: &Path, digests: &Digests) -> Result<Option<String>, PipelineError> {
    if path.is_file() { digests.sha256(path).await.map(Some) } else { Ok(None) }
}

/// Absolute, without `.` and `..`, as Python's `abspath` writes it.
fn clean(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut clean = PathBuf::new();
    for part in absolute.components() {
        if part == Component::ParentDir {
            clean.pop();
        } else {
            clean.push(part);
        }
    }
    clean
}

/// The way from a folder to a path, both clean.
fn relative(path: &Path, folder: &Path) -> String {
    let shared = path.components().zip(folder.components()).take_while(|(a, b)| a == b).count();
    let up = folder.components().skip(shared).map(|_| Component::ParentDir);
    let way: PathBuf = up.chain(path.components().skip(shared)).collect();
    way.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_relative_to_the_sources_also_outside_of_them() {
        let folder = Path::new("/checkout/suite");
        assert_eq!(relative(Path::new("/checkout/suite/a/b.py"), folder), "a/b.py");
        assert_eq!(relative(Path::new("/checkout/lib/x.py"), folder), "../lib/x.py");
        assert_eq!(relative(Path::new("/data/w.bin"), folder), "../../data/w.bin");
        assert_eq!(clean(Path::new("/a/./b/../c")), Path::new("/a/c"));
    }
}
