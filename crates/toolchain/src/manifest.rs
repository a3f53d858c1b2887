//! The manifest of an installation lists its files, so that a change is noticed before they are used again.
//!
//! The manifest is next to the files. It therefore protects against disk corruption, half-finished repairs
//! and tools that overwrite each other, but not against an attacker who can write to the cache. That is why a
//! tree that other users can change is rejected, and untrusted runs have a separate cache.

pub(super) use benchgate_host::files::sha256_of;

use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{ToolchainError, pip};
use benchgate_core::model::{digest_of, hex};
use benchgate_host::files::{self, Stamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

const FILE: &str = "benchgate-manifest.json";
const FORMAT: u32 = 1;

/// The files of an installed tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ToolManifest {
    format: u32,
    /// The name to display, for example `IREE 3.13.0`.
    pub(super) what: String,
    pub(super) compiler_commit: Option<String>,
    pub(super) runtime_commit: Option<String>,
    files: Vec<ManifestEntry>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ManifestEntry {
    path: PathBuf,
    sha256: String,
    stamp: Stamp,
}

/// The thoroughness of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// Hash every file. Used for the tools that are measured, because disk corruption must not affect a
    /// result.
    Closely,
    /// Hash only files whose stamp has changed. Used for the environments that only export models, up to 5
    /// GB: hashing them takes longer than the export, and the exported model is checked against a reference
    /// afterwards.
    AtStamps,
}

/// The files that a manifest covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// Executables and shared libraries.
    Binaries,
    /// Every file, because a Python environment executes its sources.
    Everything,
}

impl ToolManifest {
    /// Removes other users' write permissions for the files below `root`, and hashes the files.
    pub(super) fn take(root: &Path, what: String, scope: Scope) -> Result<Self, ToolchainError> {
        let mut met = Vec::new();
        walk(root, &mut met)?;
        for folder in folders(root, &met) {
            close_to_others(&folder)?;
        }
        for (path, _) in met.iter().filter(|(_, metadata)| metadata.is_file()) {
            close_to_others(path)?;
        }
        let counts = |path: &Path, metadata: &Metadata| {
            metadata.is_file() && (scope == Scope::Everything || is_binary(path, metadata))
        };
        let mut found: Vec<PathBuf> =
            met.into_iter().filter(|(path, metadata)| counts(path, metadata)).map(|(path, _)| path).collect();
        found.sort();
        let digests = sha256_of_all(&found);
        let mut files = Vec::with_capacity(found.len());
        for (path, digest) in found.into_iter().zip(digests) {
            let sha256 = digest.map_err(ToolchainError::io("hash", &path))?;
            let stamp = Stamp::now(&path).map_err(ToolchainError::io("look at", &path))?;
            let inside = path.strip_prefix(root).unwrap_or(&path).to_owned();
            files.push(ManifestEntry { path: inside, sha256, stamp });
        }
        Ok(Self { format: FORMAT, what, compiler_commit: None, runtime_commit: None, files })
    }

    pub(super) fn write(&self, root: &Path) -> Result<(), ToolchainError> {
        let path = root.join(FILE);
        let text = serde_json::to_vec(self)
            .map_err(|error| ToolchainError::io("write", &path)(io::Error::other(error)))?;
        fs::write(&path, text).map_err(ToolchainError::io("write", &path))
    }

    /// Reads the manifest of an installed tree. `None` if nothing is installed.
    pub(super) fn read(root: &Path) -> Result<Option<Self>, ToolchainError> {
        let path = root.join(FILE);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !root.exists() => return Ok(None),
            Err(error) => return Err(ToolchainError::io("read", &path)(error)),
        };
        let manifest: Self = serde_json::from_slice(&text).map_err(|error| ToolchainError::Tampered {
            path: path.clone(),
            expected: "a complete manifest".to_owned(),
            found: format!("a damaged file ({error})"),
        })?;
        if manifest.format != FORMAT {
            return Err(ToolchainError::Lock {
                path,
                problem: format!("it has the unknown format {}", manifest.format),
            });
        }
        Ok(Some(manifest))
    }

    /// Compares the files below `root` with the manifest. `scope` must be the one that the manifest was
    /// created with.
    pub(super) fn check(&self, root: &Path, look: Look, scope: Scope) -> Result<(), ToolchainError> {
        self.check_added(root, scope)?;
        let mut entries = Vec::new();
        for entry in &self.files {
            let path = root.join(&entry.path);
            let same = look == Look::AtStamps && Stamp::now(&path).is_ok_and(|stamp| stamp == entry.stamp);
            if !same {
                entries.push((path, entry));
            }
        }
        let paths: Vec<PathBuf> = entries.iter().map(|(path, _)| path.clone()).collect();
        for ((path, entry), digest) in entries.into_iter().zip(sha256_of_all(&paths)) {
            let found = digest.unwrap_or_else(|error| format!("an unreadable file ({error})"));
            if found != entry.sha256 {
                let expected = format!("sha256 {}", entry.sha256);
                return Err(ToolchainError::Tampered { path, expected, found });
            }
        }
        Ok(())
    }

    /// Rejects code that was not installed from the lock, because Python runs, for example, any `.pth` file
    /// when it starts. Data that a package stores in its own folder is allowed.
    fn check_added(&self, root: &Path, scope: Scope) -> Result<(), ToolchainError> {
        let known: BTreeSet<&Path> = self.files.iter().map(|entry| entry.path.as_path()).collect();
        let mut found = Vec::new();
        walk(root, &mut found)?;
        for (path, metadata) in &found {
            refuse_exposed(path, metadata)?;
        }
        for folder in folders(root, &found) {
            let metadata = fs::metadata(&folder).map_err(ToolchainError::io("look at", &folder))?;
            refuse_exposed(&folder, &metadata)?;
        }
        for (path, metadata) in found {
            let is_code = match scope {
                Scope::Binaries => is_binary(&path, &metadata),
                Scope::Everything => is_binary(&path, &metadata) || is_python(&path),
            };
            // Every link has the same mode, so its name decides whether a program would load it.
            let is_code = if metadata.is_symlink() { is_python(&path) || is_library(&path) } else { is_code };
            if is_code && !known.contains(path.strip_prefix(root).unwrap_or(&path)) {
                let found = "one that was not installed".to_owned();
                return Err(ToolchainError::Tampered { path, expected: "no file".to_owned(), found });
            }
        }
        Ok(())
    }

    /// Compares the installed programs and libraries with the `RECORD` files of their wheels, because the
    /// manifest itself is only part of the cache. The launchers in `bin` and the metadata of a package come
    /// from pip and are not compared.
    pub(super) fn check_records(&self, root: &Path) -> Result<(), ToolchainError> {
        let mut found = Vec::new();
        walk(root, &mut found)?;
        let listed = pip::read(found.iter().map(|(path, _)| path))?;
        let is_pips = |path: &Path| {
            let folder = path.parent();
            folder.is_some_and(|it| {
                it.ends_with("bin") || it.extension().is_some_and(|kind| kind == "dist-info")
            })
        };
        for entry in self.files.iter().filter(|entry| !is_pips(&entry.path)) {
            let path = root.join(&entry.path);
            let installed = pip::as_recorded(&entry.sha256);
            let recorded = listed.get(&path).map_or("none", String::as_str);
            if recorded != installed {
                let (expected, found) = (format!("sha256 {recorded} of the wheel's record"), installed);
                return Err(ToolchainError::Tampered { path, expected, found });
            }
        }
        Ok(())
    }

    /// Total size of the files in the manifest.
    pub(super) fn size(&self) -> u64 {
        self.files.iter().map(|entry| entry.stamp.size).sum()
    }
}

/// The folders that contain the files found by [`walk`].
fn folders(root: &Path, found: &[(PathBuf, Metadata)]) -> BTreeSet<PathBuf> {
    let inside = |path: &'_ Path| -> Vec<PathBuf> {
        path.ancestors().skip(1).take_while(|folder| *folder != root).map(Path::to_owned).collect()
    };
    found.iter().flat_map(|(path, _)| inside(path)).chain([root.to_owned()]).collect()
}

/// Removes the write permissions of all users except the owner, whatever the umask is.
fn close_to_others(path: &Path) -> Result<(), ToolchainError> {
    let change = || {
        let mode = fs::metadata(path)?.permissions().mode();
        if mode & 0o022 == 0 {
            Ok(())
        } else {
            fs::set_permissions(path, fs::Permissions::from_mode(mode & !0o022))
        }
    };
    change().map_err(ToolchainError::io("change the mode of", path))
}

/// Rejects files that other users of the machine can change.
fn refuse_exposed(path: &Path, metadata: &Metadata) -> Result<(), ToolchainError> {
    match files::exposure(metadata) {
        Some(why) => Err(ToolchainError::Exposed { path: path.to_owned(), why }),
        None => Ok(()),
    }
}

/// Every file and link below a folder.
fn walk(folder: &Path, found: &mut Vec<(PathBuf, Metadata)>) -> Result<(), ToolchainError> {
    let entries = fs::read_dir(folder).map_err(ToolchainError::io("list", folder))?;
    for entry in entries {
        let entry = entry.map_err(ToolchainError::io("list", folder))?;
        let path = entry.path();
        // Links are not followed: a target inside the tree is found by itself, and any other target belongs
        // to the system.
        let metadata = fs::symlink_metadata(&path).map_err(ToolchainError::io("look at", &path))?;
        if metadata.is_dir() {
            walk(&path, found)?;
        } else {
            found.push((path, metadata));
        }
    }
    Ok(())
}

fn is_binary(path: &Path, metadata: &Metadata) -> bool {
    metadata.permissions().mode() & 0o111 != 0 || is_library(path)
}

fn is_library(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".so") || name.contains(".so.")
}

/// Returns whether Python loads the file automatically or on import.
fn is_python(path: &Path) -> bool {
    path.extension().is_some_and(|extension| ["py", "pyc", "pth"].iter().any(|known| extension == *known))
}

/// One digest over the content of some files, for trees that benchgate did not install.
pub(super) fn digest_of_files(files: &[PathBuf]) -> Result<String, ToolchainError> {
    let mut parts = Vec::new();
    for path in files {
        parts.push(path.file_name().unwrap_or_default().to_string_lossy().into_owned());
        parts.push(sha256_of(path).map_err(ToolchainError::io("hash", path))?);
    }
    Ok(digest_of(&parts))
}

pub(super) fn text_digest(text: &str) -> String {
    hex(&Sha256::digest(text))
}

/// The digests of many files, in the order of the paths, computed on all processors.
fn sha256_of_all(paths: &[PathBuf]) -> Vec<io::Result<String>> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(paths.len().max(1));
    let next = AtomicUsize::new(0);
    let mut digests: Vec<Option<io::Result<String>>> = paths.iter().map(|_| None).collect();
    let found: Vec<(usize, io::Result<String>)> = std::thread::scope(|scope| {
        let work = || {
            let mut mine = Vec::new();
            while let Some((index, path)) =
                Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((i, paths.get(i)?)))
            {
                mine.push((index, sha256_of(path)));
            }
            mine
        };
        // This thread also works, so the files are hashed even if no other thread can be started (`ulimit
        // -u`).
        let start = |_| std::thread::Builder::new().spawn_scoped(scope, work).ok();
        let handles: Vec<_> = (1..workers).filter_map(start).collect();
        let mut found = work();
        found.extend(handles.into_iter().flat_map(|handle| handle.join().unwrap_or_default()));
        found
    });
    for (index, digest) in found {
        digests[index] = Some(digest);
    }
    let lost = || Err(io::Error::other("the thread that hashed it ended early"));
    digests.into_iter().map(|digest| digest.unwrap_or_else(lost)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("bin")).unwrap();
        for (name, mode) in [("bin/tool", 0o755), ("lib.so", 0o644), ("notes.txt", 0o644)] {
            let path = folder.path().join(name);
            fs::write(&path, name).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
        folder
    }

    #[test]
    fn tools_that_other_users_can_change_are_refused() {
        let folder = tree();
        let root = folder.path();
        let manifest = ToolManifest::take(root, "tools".into(), Scope::Binaries).unwrap();
        let tool = root.join("bin/tool");
        let refused = || {
            let error = manifest.check(root, Look::AtStamps, Scope::Binaries).unwrap_err();
            assert!(matches!(&error, ToolchainError::Exposed { path, .. } if *path == tool), "{error}");
        };
        manifest.check(root, Look::AtStamps, Scope::Binaries).unwrap();
        fs::set_permissions(&tool, fs::Permissions::from_mode(0o757)).unwrap();
        refused();
        fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
        // Only root can change the owner of a file.
        if std::os::unix::fs::chown(&tool, Some(65_534), None).is_ok() {
            refused();
        }
    }

    #[test]
    fn a_changed_binary_is_noticed_by_either_look() {
        let folder = tree();
        let root = folder.path();
        let manifest = ToolManifest::take(root, "tools".into(), Scope::Binaries).unwrap();
        manifest.write(root).unwrap();
        assert_eq!(ToolManifest::read(root).unwrap().as_ref(), Some(&manifest));
        for look in [Look::Closely, Look::AtStamps] {
            manifest.check(root, look, Scope::Binaries).unwrap();
        }
        fs::write(root.join("notes.txt"), "changed").unwrap();
        manifest.check(root, Look::Closely, Scope::Binaries).unwrap();
        // The length is unchanged, so only the content and the change time differ.
        fs::write(root.join("bin/tool"), "bin/TOOL").unwrap();
        for look in [Look::Closely, Look::AtStamps] {
            let error = manifest.check(root, look, Scope::Binaries).unwrap_err();
            assert!(
                matches!(&error, ToolchainError::Tampered { path, .. } if path.ends_with("bin/tool")),
                "{error}"
            );
        }
    }

    #[test]
    fn added_code_is_noticed_and_added_data_is_not() {
        for (name, scope) in [
            ("site-packages/evil.pth", Scope::Everything),
            ("site-packages/torch/__pycache__/x.cpython-312.pyc", Scope::Everything),
            ("sitecustomize.py", Scope::Everything),
            ("lib/libevil.so.1", Scope::Binaries),
        ] {
            let folder = tree();
            let root = folder.path();
            let manifest = ToolManifest::take(root, "tools".into(), scope).unwrap();
            manifest.write(root).unwrap();
            fs::write(root.join("kernels.cache"), "data").unwrap();
            manifest.check(root, Look::AtStamps, scope).unwrap();
            fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            for link in [false, true] {
                if link {
                    std::os::unix::fs::symlink("/etc/passwd", root.join(name)).unwrap();
                } else {
                    fs::write(root.join(name), "import os").unwrap();
                }
                let error = manifest.check(root, Look::AtStamps, scope).unwrap_err();
                assert!(
                    matches!(&error, ToolchainError::Tampered { path, .. } if path.ends_with(name)),
                    "{error}"
                );
                fs::remove_file(root.join(name)).unwrap();
            }
        }
    }

    #[test]
    fn a_removed_file_and_a_damaged_manifest_are_noticed() {
        let folder = tree();
        let root = folder.path();
        let manifest = ToolManifest::take(root, "tools".into(), Scope::Everything).unwrap();
        fs::remove_file(root.join("lib.so")).unwrap();
        let error = manifest.check(root, Look::AtStamps, Scope::Everything).unwrap_err();
        assert!(error.to_string().contains("an unreadable file"));
        fs::write(root.join(FILE), "{").unwrap();
        assert!(matches!(ToolManifest::read(root), Err(ToolchainError::Tampered { .. })));
        assert_eq!(ToolManifest::read(&root.join("nothing")).unwrap(), None);
    }

    #[test]
    fn files_are_hashed_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> = (0..20).map(|n| folder.path().join(n.to_string())).collect();
        for path in &paths[..19] {
            fs::write(path, path.to_str().unwrap()).unwrap();
        }
        let digests = sha256_of_all(&paths);
        for (path, digest) in paths.iter().zip(&digests).take(19) {
            assert_eq!(digest.as_ref().unwrap(), &hex(&Sha256::digest(path.to_str().unwrap())));
        }
        assert!(digests[19].is_err());
    }

    #[test]
    fn parts_do_not_run_together() {
        assert_ne!(digest_of(["ab", "c"]), digest_of(["a", "bc"]));
    }
}
