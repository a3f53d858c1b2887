//! `[[artifact]]` files: downloaded into the cache by their hash, verified before every use, and linked into
//! the sources.
//!
//! ```text
//! <cache>/artifacts/<sha256>/data       downloaded; only ever appears whole
//! <sources>/artifacts/NAME -> data      a link, or the user's own copy with the same hash
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::ToolchainError;
use super::fetch::{Arrived, RemoteFile, hash};
use super::install::{ToolPlace, remove_tree};
use benchgate_config::Artifact;
use benchgate_core::model::{Event, Progress, Stage, is_sha256};
use benchgate_host::files::{self, KeptFolder, Scratch};
use benchgate_host::process::Cancel;

/// The folder of the cache that contains artifacts, and the name of each artifact's file.
const KIND: &str = "artifacts";
const DATA: &str = "data";

/// Links each artifact into its sources, and downloads it first if the cache does not have it. `wanted` pairs
/// each artifact with the folder of the sources that need it.
///
/// # Errors
/// An artifact can't be downloaded or verified, or another file is in its place.
pub async fn place_artifacts(
    wanted: &[(&Artifact, &Path)],
    cache: &Path,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<(), ToolchainError> {
    let mut verified: BTreeMap<&str, PathBuf> = BTreeMap::new();
    for (artifact, sources) in wanted {
        // A file in place of the link is reported before gigabytes are downloaded.
        let place = LinkPlace::look(artifact, sources)?;
        if place.has_file {
            place.verify_file(artifact, cancel).await?;
            continue;
        }
        let content = match verified.get(artifact.sha256.as_str()) {
            Some(content) => content.clone(),
            None => ensure_artifact(artifact, cache, progress, cancel).await?,
        };
        place.link(&content)?;
        verified.insert(&artifact.sha256, content);
    }
    Ok(())
}

/// Returns the verified file in the cache, and downloads it first if necessary. Uses no network if the cache
/// has the file.
///
/// # Errors
/// The file can't be downloaded, or the server has a different one.
pub async fn ensure_artifact(
    artifact: &Artifact,
    cache: &Path,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<PathBuf, ToolchainError> {
    let started = Instant::now();
    let what = artifact.path().display().to_string();
    progress.on(Event::StepStarted { stage: Stage::Toolchain, what: &what });
    let place = ToolPlace::new(cache, KIND, &artifact.sha256);
    let path = place.root.join(DATA);
    if place.is_installed() {
        match hash(&path, cancel).await {
            Ok(found) if found == artifact.sha256 => {}
            Err(ToolchainError::Interrupted) => return Err(ToolchainError::Interrupted),
            _ => {
                let text = format!("{} is damaged; downloading it again", path.display());
                progress.on(Event::Warning(&text));
                let read = KeptFolder::read(&place.root);
                remove_tree(&read.map_err(ToolchainError::io("read", &place.root))?)?;
            }
        }
    }
    let note = if place.is_installed() { "verified" } else { "downloaded" };
    if !place.is_installed() {
        place.install(download(artifact, &what, &place, progress, cancel), progress, cancel).await?;
    }
    files::mark_used(&place.root);
    let took = started.elapsed();
    progress.on(Event::StepFinished { stage: Stage::Toolchain, what: &what, note, took });
    std::path::absolute(&path).map_err(ToolchainError::io("find", &path))
}

/// Downloads a file whose hash is not known yet into the cache. Returns its SHA-256 and size.
///
/// # Errors
/// The file can't be downloaded or stored.
pub async fn record_artifact(
    url: &str,
    cache: &Path,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<(String, u64), ToolchainError> {
    let started = Instant::now();
    let folder = cache.join(KIND);
    fs::create_dir_all(&folder).map_err(ToolchainError::io("make", &folder))?;
    let scratch =
        Scratch::new_in(&folder, "new-").map_err(ToolchainError::io("make a folder in", &folder))?;
    let what = url.split(['?', '#']).next().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
    progress.on(Event::StepStarted { stage: Stage::Toolchain, what });
    let part = scratch.path().join("download");
    let file = RemoteFile { url, sha256: None, size: None };
    let sha256 = file.fetch(&part, &reporting(what, progress), cancel).await?;
    let size = fs::metadata(&part).map_err(ToolchainError::io("read", &part))?.len();
    let place = ToolPlace::new(cache, KIND, &sha256);
    place.install(async { keep(&part, &place) }, progress, cancel).await?;
    let took = started.elapsed();
    progress.on(Event::StepFinished { stage: Stage::Toolchain, what, note: "downloaded", took });
    Ok((sha256, size))
}

/// Downloads an artifact into its staging folder.
async fn download(
    artifact: &Artifact,
    what: &str,
    place: &ToolPlace,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<(), ToolchainError> {
    let part = place.work().join("download");
    let file = RemoteFile { url: &artifact.url, sha256: Some(&artifact.sha256), size: artifact.size };
    file.fetch(&part, &reporting(what, progress), cancel).await?;
    keep(&part, place)
}

/// Downloads are large, and their sizes are reported in whole mebibytes.
const MEBIBYTE: u64 = 1 << 20;

fn reporting<'a>(what: &'a str, progress: &'a dyn Progress) -> impl Fn(Arrived) + Sync + 'a {
    move |Arrived { bytes, of }| {
        let of = of.map(|of| format!(" of {}", of / MEBIBYTE)).unwrap_or_default();
        let note = format!("{}{of} MiB", bytes / MEBIBYTE);
        progress.on(Event::StepContinues { stage: Stage::Toolchain, what, note: &note });
    }
}

/// Moves a downloaded file into its staging folder.
fn keep(part: &Path, place: &ToolPlace) -> Result<(), ToolchainError> {
    // The file is made read-only, because a tool that writes to its input must not change the
    // cache.
    let read_only = fs::Permissions::from_mode(0o444);
    fs::set_permissions(part, read_only).map_err(ToolchainError::io("protect", part))?;
    let whole = place.tree().join(DATA);
    fs::rename(part, &whole).map_err(ToolchainError::io("rename to", &whole))
}

/// Folders in the cache that contain artifacts or parts of interrupted downloads.
pub fn cached_artifacts(cache: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(cache.join(KIND)) else { return Vec::new() };
    let folders = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| entry.path()).collect()
}

/// The path of an artifact's link in the sources.
struct LinkPlace {
    path: PathBuf,
    folder: PathBuf,
    /// True if a regular file, not a link, is at this path.
    has_file: bool,
}

impl LinkPlace {
    /// Inspects the path of the link. A pull request may have committed anything there, so no link
    /// is followed.
    fn look(artifact: &Artifact, sources: &Path) -> Result<Self, ToolchainError> {
        let within = artifact.path();
        let path = sources.join(&within);
        let taken = |path: &Path, why: &str| ToolchainError::PlaceTaken {
            path: path.to_owned(),
            why: why.to_owned(),
        };
        let mut folders: Vec<PathBuf> = within.ancestors().skip(1).map(|it| sources.join(it)).collect();
        // Only folders inside the sources are checked; the path of the sources comes from the configuration.
        folders.pop();
        folders.reverse();
        for folder in &folders {
            match fs::symlink_metadata(folder) {
                Ok(found) if found.is_dir() => {}
                Ok(_) => return Err(taken(folder, "it is not a folder")),
                Err(error) if error.kind() == ErrorKind::NotFound => break,
                Err(error) => return Err(ToolchainError::io("look at", folder)(error)),
            }
        }
        let has_file = match fs::symlink_metadata(&path) {
            Ok(found) if found.is_file() => true,
            Ok(found) if found.is_symlink() && fs::read_link(&path).is_ok_and(|to| is_ours(&to)) => false,
            Ok(found) if found.is_symlink() => {
                return Err(taken(&path, "it is a symbolic link that benchgate did not make"));
            }
            Ok(_) => return Err(taken(&path, "it is not a file")),
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            Err(error) => return Err(ToolchainError::io("look at", &path)(error)),
        };
        let folder = folders.into_iter().next().unwrap_or_else(|| sources.to_owned());
        Ok(Self { path, folder, has_file })
    }

    /// Accepts the user's own copy if it has the right content.
    async fn verify_file(self, artifact: &Artifact, cancel: &Cancel) -> Result<(), ToolchainError> {
        let found = hash(&self.path, cancel).await?;
        if found == artifact.sha256 {
            return Ok(());
        }
        let why = format!("expected sha256 {}, found {found}", artifact.sha256);
        Err(ToolchainError::PlaceTaken { path: self.path, why })
    }

    /// Creates the link, replacing an earlier one.
    fn link(self, content: &Path) -> Result<(), ToolchainError> {
        let Self { path, folder, .. } = self;
        if fs::read_link(&path).is_ok_and(|to| to == content) {
            return Ok(());
        }
        if !folder.exists() {
            fs::create_dir_all(&folder).map_err(ToolchainError::io("create", &folder))?;
            // A link to this machine's cache must not be committed.
            let ignore = folder.join(".gitignore");
            fs::write(&ignore, "*\n").map_err(ToolchainError::io("write", &ignore))?;
        }
        let parent = path.parent().unwrap_or(&folder);
        fs::create_dir_all(parent).map_err(ToolchainError::io("create", parent))?;
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(ToolchainError::io("remove", &path)(error));
            }
            _ => {}
        }
        symlink(content, &path).map_err(ToolchainError::io("link", &path))
    }
}

/// Returns whether a link leads to an artifact in a cache. Only the form of the link's target is
/// checked, because the cache's folder may have changed.
fn is_ours(to: &Path) -> bool {
    let is_hash = |path: &Path| path.file_name().is_some_and(|name| is_sha256(&name.to_string_lossy()));
    to.is_absolute() && to.ends_with(DATA) && to.parent().is_some_and(is_hash)
}
