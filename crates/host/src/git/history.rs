//! Gives a checkout a `.git` of its own, because builds ask git for their version (`git describe`,
//! setuptools_scm, `go build`). It has the commit, its history and the tags, but no branches, remotes or hooks. Nothing
//! that a build writes there reaches the repository.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use git2::Oid;

use super::{GitError, io as of_path, other};

/// Settings of a repository that determine how its files look on disk.
const KEPT: &str = "^(core\\.(autocrlf|eol|safecrlf|symlinks|filemode)|filter\\..*)$";

/// A folder with what git needs to know about a checkout.
pub(super) struct History {
    folder: PathBuf,
}

impl History {
    pub(super) fn new_in(scratch: &Path, id: Oid) -> Result<Self, GitError> {
        let folder = scratch.join(format!("{id}.git"));
        fs::create_dir_all(&folder).map_err(|source| of_path(&folder, source))?;
        Ok(Self { folder })
    }

    /// The index that the checkout is written with.
    pub(super) fn index(&self) -> PathBuf {
        self.folder.join("index")
    }

    /// Connects it with a checkout that is complete.
    pub(super) fn attach(
        &self,
        repository: &git2::Repository,
        id: Oid,
        checkout: &Path,
    ) -> Result<(), GitError> {
        let tags = tags(repository).map_err(|error| other("list tags", &error))?;
        let settings = settings(repository).map_err(|error| other("read git's configuration", &error))?;
        let objects = repository.commondir().join("objects");
        let objects = objects.canonicalize().map_err(|source| of_path(&objects, source))?;
        let place = checkout.join(".git");
        let written = || -> io::Result<()> {
            fs::create_dir_all(self.folder.join("refs"))?;
            fs::create_dir_all(self.folder.join("objects/info"))?;
            let line = |path: &Path| [path.as_os_str().as_bytes(), b"\n"].concat();
            fs::write(self.folder.join("objects/info/alternates"), line(&objects))?;
            fs::write(self.folder.join("HEAD"), format!("{id}\n"))?;
            fs::write(self.folder.join("config"), settings)?;
            fs::write(self.folder.join("packed-refs"), tags)?;
            let shallow = repository.commondir().join("shallow");
            if shallow.exists() {
                fs::copy(shallow, self.folder.join("shallow"))?;
            }
            // git reads files again that are as new as the index. Then a build would seem to use them.
            File::options().write(true).open(self.index())?.set_modified(SystemTime::now() + NEWER)?;
            fs::write(&place, [b"gitdir: ", &line(&self.folder)[..]].concat())?;
            fs::set_permissions(&place, Permissions::from_mode(0o444))
        };
        written().map_err(|source| of_path(&place, source))
    }
}

/// git compares the times of files in seconds.
const NEWER: Duration = Duration::from_secs(2);

/// The tags in the format of git's file `packed-refs`.
fn tags(repository: &git2::Repository) -> Result<Vec<u8>, git2::Error> {
    let mut found = Vec::new();
    for reference in repository.references_glob("refs/tags/*")? {
        let reference = reference?;
        if let Some(target) = reference.target() {
            found.push((reference.name_bytes().to_vec(), target));
        }
    }
    found.sort();
    Ok(found.iter().flat_map(|(name, id)| [id.to_string().as_bytes(), b" ", name, b"\n"].concat()).collect())
}

fn settings(repository: &git2::Repository) -> Result<Vec<u8>, git2::Error> {
    // Write permission was removed, which changed the time of each file's state.
    let own = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\ttrustctime = false\n";
    let mut text = own.as_bytes().to_vec();
    let local = match repository.config()?.open_level(git2::ConfigLevel::Local) {
        Err(error) if error.code() == git2::ErrorCode::NotFound => return Ok(text),
        opened => opened?,
    };
    local.entries(Some(KEPT))?.for_each(|entry| {
        let (Some((section, key)), Ok(value)) =
            (entry.name().ok().and_then(|name| name.rsplit_once('.')), entry.value())
        else {
            return;
        };
        let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let section = match section.split_once('.') {
            Some((section, name)) => format!("[{section} \"{}\"]", quoted(name)),
            None => format!("[{section}]"),
        };
        text.extend(format!("{section}\n\t{key} = \"{}\"\n", quoted(value)).into_bytes());
    })?;
    Ok(text)
}
