//! A branch on a remote that contains only data. It is fetched partially, read without a checkout, appended
//! to and pushed. All of this happens in a temporary repository, and the user's repository is never written
//! to.
//!
//! The `git` program fetches and pushes; libgit2 reads and writes objects. libgit2 is not used for the
//! network because it can't fetch partially and would download three years of baselines in full. Its
//! transport would also need another TLS stack, and ignores the proxies, certificates and SSH agents of the
//! user's git configuration. Users who have a checkout have git installed anyway.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use git2::build::TreeUpdateBuilder;
use git2::{ErrorCode, FileMode, ObjectType, Oid};

use super::remote::Remote;
use super::{GitError, other};
use crate::files::{self, Scratch};
use crate::process::{Command, Exit, Finished, ProcessError};

/// A function that runs a program to its end. The caller owns the runtime and handles interrupts.
pub type CommandRunner<'a> = dyn Fn(&Command) -> Result<Finished, ProcessError> + 'a;

/// Maximum attempts to push while others push at the same time. An attempt fails only if another writer
/// succeeded, so twelve failures in a row need twelve other writers.
const MAX_PUSHES: u32 = 12;
/// Maximum attempts to push after connection failures.
const MAX_CONNECTION_ATTEMPTS: u32 = 3;
/// The first pause between attempts. Each further one is twice as long, up to `LONGEST_PAUSE`.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Adds or removes one file.
#[derive(Debug, Clone, Copy)]
pub enum Edit<'a> {
    Add(&'a str, &'a [u8]),
    Remove(&'a str),
}

/// The purpose of a `git` command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    FetchListing,
    FetchFiles,
    Push,
}

/// The data branch as of the last fetch.
pub struct DataBranch<'a> {
    scratch: Scratch,
    repository: git2::Repository,
    remote: Remote,
    branch: String,
    tip: Option<Oid>,
    run: &'a CommandRunner<'a>,
}

impl std::fmt::Debug for DataBranch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DataBranch").field("remote", &self.remote).field("branch", &self.branch).finish()
    }
}

impl<'a> DataBranch<'a> {
    /// Fetches the branch's file listing without the files. A missing branch is empty.
    pub fn fetch(remote: Remote, branch: &str, run: &'a CommandRunner<'a>) -> Result<Self, GitError> {
        // A name that is not valid could make git push to another ref.
        if !git2::Reference::is_valid_name(&format!("refs/heads/{branch}")) {
            return Err(GitError::BadBranch(branch.to_owned()));
        }
        const PREFIX: &str = "benchgate-branch-";
        let temporary = std::env::temp_dir();
        files::sweep_scratch(&temporary, PREFIX);
        let scratch =
            Scratch::new_in(&temporary, PREFIX).map_err(|source| GitError::Io { path: temporary, source })?;
        let repository = git2::Repository::init_bare(scratch.path())
            .map_err(|error| other("create a temporary repository", &error))?;
        let mut config =
            repository.config().map_err(|error| other("configure a temporary repository", &error))?;
        for (key, value) in [
            ("core.repositoryformatversion", "1"),
            ("remote.store.url", remote.url()),
            // The listing is fetched at once, and file contents only when they are needed.
            ("remote.store.promisor", "true"),
            ("remote.store.partialclonefilter", "blob:none"),
        ] {
            config.set_str(key, value).map_err(|error| other("configure a temporary repository", &error))?;
        }
        let mut fetched = Self { scratch, repository, remote, branch: branch.to_owned(), tip: None, run };
        fetched.refresh()?;
        Ok(fetched)
    }

    /// Fetches the current state of the branch.
    pub fn refresh(&mut self) -> Result<(), GitError> {
        let full = format!("refs/heads/{}", self.branch);
        let refspec = format!("+{full}:{full}");
        let arguments = ["--depth=1", "--filter=blob:none", "store", refspec.as_str()];
        let finished = self.run_git(Operation::FetchListing, &arguments)?;
        if !finished.exit.is_success() {
            if finished.stderr_tail.contains("couldn't find remote ref") {
                self.tip = None;
                return Ok(());
            }
            return Err(self.remote.failure("fetch from", &finished));
        }
        let tip =
            self.repository.refname_to_id(&full).map_err(|error| other("read the fetched branch", &error))?;
        self.tip = Some(tip);
        Ok(())
    }

    /// The fetched commit.
    pub fn tip(&self) -> Option<String> {
        self.tip.map(|tip| tip.to_string())
    }

    /// The remote's URL, without secrets.
    pub fn url(&self) -> &str {
        self.remote.url()
    }

    pub fn name(&self) -> &str {
        &self.branch
    }

    /// The entries of a folder: each name, and whether it is a folder. Empty if the folder does not exist.
    pub fn list(&self, folder: &str) -> Result<Vec<(String, bool)>, GitError> {
        let Some(tree) = self.tree(folder)? else { return Ok(Vec::new()) };
        Ok(super::listing(&tree))
    }

    /// Fetches the missing ones of these files together.
    pub fn fetch_files(&self, paths: &[String]) -> Result<(), GitError> {
        let odb = self.repository.odb().map_err(|error| other("open the temporary repository", &error))?;
        let mut wanted = Vec::new();
        for path in paths {
            if let Some(id) = self.blob(path)?
                && !odb.exists(id)
            {
                wanted.push(id.to_string());
            }
        }
        wanted.sort();
        wanted.dedup();
        // Large batches keep the number of git commands small; each command line stays far below the system's
        // limit.
        for batch in wanted.chunks(1000) {
            let mut arguments = vec!["--filter=blob:none", "store"];
            arguments.extend(batch.iter().map(String::as_str));
            let finished = self.run_git(Operation::FetchFiles, &arguments)?;
            if !finished.exit.is_success() {
                return Err(self.remote.failure("fetch from", &finished));
            }
        }
        odb.refresh().map_err(|error| other("open the temporary repository", &error))
    }

    /// The content of a file; `None` if it does not exist.
    pub fn read(&self, path: &str) -> Result<Option<Vec<u8>>, GitError> {
        let Some(id) = self.blob(path)? else { return Ok(None) };
        if self.repository.odb().is_ok_and(|odb| !odb.exists(id)) {
            self.fetch_files(&[path.to_owned()])?;
        }
        let blob = self.repository.find_blob(id).map_err(|error| other("read a fetched file", &error))?;
        Ok(Some(blob.content().to_vec()))
    }

    /// Bytes fetched so far, as stored on disk.
    pub fn bytes(&self) -> u64 {
        let folder = self.repository.path().join("objects/pack");
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.len()).sum()
    }

    /// Commits these edits on top of the branch's newest state and pushes the commit. If another writer pushed first,
    /// the commit is repeated on top of theirs: files are only added or removed whole, so only names can conflict.
    ///
    /// # Errors
    /// [`GitError::NameTaken`] if a file with that name and other content exists. Otherwise the reason why the push
    /// failed; then the remote is unchanged.
    pub fn push(&mut self, edits: &[Edit<'_>], message: &str) -> Result<(), GitError> {
        let (mut pushes, mut connections) = (0, 0);
        loop {
            if self.is_applied(edits)? {
                return Ok(());
            }
            let commit = self.commit(edits, message)?;
            let refspec = format!("{commit}:refs/heads/{}", self.branch);
            let finished =
                self.run_git(Operation::Push, &["--porcelain", "--no-verify", "store", &refspec])?;
            match push_outcome(&finished) {
                PushOutcome::Done => {
                    self.tip = Some(commit);
                    return Ok(());
                }
                PushOutcome::LostRace => {
                    pushes += 1;
                    if pushes >= MAX_PUSHES {
                        return Err(GitError::Contended { branch: self.branch.clone(), tries: pushes });
                    }
                    pause(pushes);
                }
                PushOutcome::Refused(why) => {
                    return Err(GitError::PushRefused { branch: self.branch.clone(), why });
                }
                PushOutcome::Failed => {
                    let failure = self.remote.failure("push to", &finished);
                    connections += 1;
                    if connections >= MAX_CONNECTION_ATTEMPTS
                        || matches!(failure, GitError::Credentials { .. })
                    {
                        return Err(failure);
                    }
                    pause(connections);
                }
            }
            // This is also done after a connection failure, because the push may have succeeded
            // although its response was lost.
            self.refresh()?;
        }
    }

    /// Returns whether the branch already contains the edits. A name with other content is an error.
    fn is_applied(&self, edits: &[Edit<'_>]) -> Result<bool, GitError> {
        let mut all = true;
        for edit in edits {
            match *edit {
                Edit::Add(path, bytes) => match self.blob(path)? {
                    None => all = false,
                    Some(found) => {
                        let ours = Oid::hash_object(ObjectType::Blob, bytes);
                        if ours.is_ok_and(|ours| ours != found) {
                            return Err(GitError::NameTaken(path.to_owned()));
                        }
                    }
                },
                Edit::Remove(path) => all &= self.blob(path)?.is_none(),
            }
        }
        Ok(all)
    }

    fn commit(&self, edits: &[Edit<'_>], message: &str) -> Result<Oid, GitError> {
        let failed = |error: git2::Error| other("write a commit", &error);
        let repository = &self.repository;
        let parent = self.tip.map(|tip| repository.find_commit(tip)).transpose().map_err(failed)?;
        let tree = match &parent {
            Some(parent) => parent.tree().map_err(failed)?,
            None => {
                let empty = repository.treebuilder(None).and_then(|tree| tree.write()).map_err(failed)?;
                repository.find_tree(empty).map_err(failed)?
            }
        };
        let mut builder = TreeUpdateBuilder::new();
        for edit in edits {
            match *edit {
                Edit::Add(path, bytes) => {
                    let blob = repository.blob(bytes).map_err(failed)?;
                    builder.upsert(path, blob, FileMode::Blob);
                }
                Edit::Remove(path) if self.blob(path)?.is_some() => {
                    builder.remove(path);
                }
                Edit::Remove(_) => {}
            }
        }
        let tree = builder.create_updated(repository, &tree).map_err(failed)?;
        let tree = repository.find_tree(tree).map_err(failed)?;
        let author = git2::Signature::now("benchgate", "benchgate@localhost").map_err(failed)?;
        let parents: Vec<_> = parent.iter().collect();
        repository.commit(None, &author, &author, message, &tree, &parents).map_err(failed)
    }

    fn tree(&self, folder: &str) -> Result<Option<git2::Tree<'_>>, GitError> {
        let Some(tip) = self.tip else { return Ok(None) };
        let failed = |error: git2::Error| other("read the fetched branch", &error);
        let root = self.repository.find_commit(tip).and_then(|commit| commit.tree()).map_err(failed)?;
        super::subtree(&self.repository, root, folder).map_err(failed)
    }

    fn blob(&self, path: &str) -> Result<Option<Oid>, GitError> {
        let Some(root) = self.tree("")? else { return Ok(None) };
        match root.get_path(Path::new(path)) {
            Ok(entry) if entry.kind() == Some(ObjectType::Blob) => Ok(Some(entry.id())),
            Ok(_) => Ok(None),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
            Err(error) => Err(other("read the fetched branch", &error)),
        }
    }

    /// Runs one `git` command against the remote.
    fn run_git(&self, operation: Operation, arguments: &[&str]) -> Result<Finished, GitError> {
        let mut all: Vec<OsString> = Vec::new();
        if operation == Operation::FetchFiles {
            // Single files have no history to negotiate.
            all.extend(["-c", "fetch.negotiationAlgorithm=noop"].map(Into::into));
        }
        all.push(if operation == Operation::Push { "push" } else { "fetch" }.into());
        if operation != Operation::Push {
            all.extend(
                ["--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--quiet"].map(Into::into),
            );
        }
        all.extend(arguments.iter().map(Into::into));
        let command = self.remote.command(self.scratch.path(), all);
        run_git(self.run, &command)
    }
}

/// Runs git to its end, however it ends.
pub(super) fn run_git(run: &CommandRunner<'_>, command: &Command) -> Result<Finished, GitError> {
    let finished = run(command).map_err(|error| match error {
        ProcessError::NotFound { .. } => GitError::NoGit,
        error => GitError::Other { action: "run git", message: error.to_string() },
    })?;
    if finished.exit == Exit::Interrupted { Err(GitError::Interrupted) } else { Ok(finished) }
}

/// Waits, longer with each attempt. The random part keeps competing writers from retrying at the same moment.
fn pause(times: u32) {
    let longest = FIRST_PAUSE.saturating_mul(1 << times.min(10)).min(LONGEST_PAUSE);
    let nanos =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |t| t.subsec_nanos());
    let share = f64::from(nanos.wrapping_mul(std::process::id() | 1) % 1000) / 1000.0;
    std::thread::sleep(longest.mul_f64(0.5 + share / 2.0));
}

// git exits with the same code if another writer was faster and if a server rule rejects the push, so this
// module parses its report (`--porcelain`). libgit2's `push` would report both as success.

#[derive(Debug, PartialEq, Eq)]
enum PushOutcome {
    Done,
    /// Another writer pushed first; fetch and try again.
    LostRace,
    /// A rule of the server forbids the push; trying again is useless.
    Refused(String),
    /// The server did not report on the ref.
    Failed,
}

/// Messages of git and common servers that mean that another writer pushed first.
const RACES: [&str; 8] = [
    "fetch first",
    "non-fast-forward",
    "stale info",
    "cannot lock ref",
    "failed to update ref",
    "incorrect old value",
    "reference already exists",
    "failed to lock",
];

fn push_outcome(finished: &Finished) -> PushOutcome {
    let report = String::from_utf8_lossy(&finished.stdout);
    // `!\t<from>:<to>\t[remote rejected] (why)`
    if let Some(line) = report.lines().find(|line| line.starts_with("!\t")) {
        let summary = line.rsplit('\t').next().unwrap_or(line);
        if RACES.iter().any(|race| summary.contains(race)) {
            return PushOutcome::LostRace;
        }
        let said = finished.stderr_tail.lines().filter_map(|line| line.trim().strip_prefix("remote: "));
        let said: Vec<&str> = said.map(str::trim).filter(|line| !line.is_empty()).take(3).collect();
        let why =
            if said.is_empty() { summary.to_owned() } else { format!("{summary}: {}", said.join("; ")) };
        return PushOutcome::Refused(why);
    }
    let answered =
        report.lines().any(|line| matches!(line.as_bytes(), [b' ' | b'*' | b'=' | b'+', b'\t', ..]));
    if finished.exit.is_success() && answered { PushOutcome::Done } else { PushOutcome::Failed }
}

#[cfg(test)]
mod tests {
    use crate::process::{Exit, Finished};

    use super::{PushOutcome, push_outcome};

    fn finished(exit: Exit, stdout: &str, stderr: &str) -> Finished {
        Finished::new(exit, stdout.as_bytes().to_vec(), stderr.to_owned())
    }

    #[test]
    fn a_lost_race_and_a_server_rule_are_distinguished() {
        let race = "To u\n!\ta:refs/heads/b\t[rejected] (fetch first)\nDone\n";
        assert_eq!(push_outcome(&finished(Exit::Code(1), race, "")), PushOutcome::LostRace);
        let rule = "To u\n!\ta:refs/heads/b\t[remote rejected] (protected branch hook declined)\nDone\n";
        let refused =
            push_outcome(&finished(Exit::Code(1), rule, "remote: GH006: Protected branch.        \n"));
        let why = "[remote rejected] (protected branch hook declined): GH006: Protected branch.";
        assert_eq!(refused, PushOutcome::Refused(why.to_owned()));
    }

    #[test]
    fn success_requires_a_response_about_the_ref() {
        assert_eq!(push_outcome(&finished(Exit::Success, "Done\n", "")), PushOutcome::Failed);
        let done = "To u\n*\ta:refs/heads/b\t[new branch]\nDone\n";
        assert_eq!(push_outcome(&finished(Exit::Success, done, "")), PushOutcome::Done);
        assert_eq!(push_outcome(&finished(Exit::Code(128), "", "fatal: x")), PushOutcome::Failed);
    }
}
