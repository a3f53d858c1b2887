//! The place of the baseline, from the command line and the environment, and the selection of a suite and
//! testbed in it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::builder::{OsStringValueParser, TypedValueParser};

use crate::config::{self, Config, Store};
use crate::git::{CommandRunner, DataBranch, GitError, GitToken, Remote, Repository};
use crate::model::{StoreUrl, StoreUrlError, shell_word};
use crate::process::{self, ProcessError};
use crate::store::{self, BaselineFolder, Branch, Directory, Fault, Files, Objects, StoreError};

use super::{CliError, Terminal, runtime};

/// Options of every command that reads or writes a baseline.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Baseline")]
pub struct StoreArgs {
    /// The folder of the baseline, or the URL of an object store
    ///
    /// s3://bucket/prefix, gs://bucket/prefix, az://container/prefix or file:///folder. The default is [store] of the
    /// configuration, otherwise `baselines`.
    #[arg(
        long,
        global = true,
        value_name = "FOLDER|URL",
        env = "BENCHGATE_STORE",
        value_parser = StoreAt::parser()
    )]
    pub store: Option<StoreAt>,
    /// Use a separate branch of the remote instead of a folder
    #[arg(
        long,
        global = true,
        value_name = "NAME",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = crate::store::BRANCH,
        env = "BENCHGATE_STORE_BRANCH"
    )]
    pub branch: Option<String>,
    /// The remote of the branch: a name or an address
    #[arg(long, global = true, value_name = "REMOTE")]
    pub remote: Option<String>,
}

/// A folder or an object store, as the command line names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreAt {
    Folder(PathBuf),
    Url(StoreUrl),
}

impl StoreAt {
    pub fn parser() -> impl TypedValueParser<Value = Self> {
        OsStringValueParser::new().try_map(Self::parse)
    }

    fn parse(text: OsString) -> Result<Self, StoreUrlError> {
        match text.to_str().filter(|text| text.contains("://")) {
            Some(url) => Ok(Self::Url(url.parse()?)),
            None => Ok(Self::Folder(PathBuf::from(text))),
        }
    }

    /// Opens the object store, or a folder with the same layout.
    pub fn objects(&self) -> Result<Objects, StoreError> {
        match self {
            Self::Folder(folder) => Objects::folder(folder),
            Self::Url(url) => open_objects(url),
        }
    }
}

fn open_objects(url: &StoreUrl) -> Result<Objects, StoreError> {
    Objects::open(url, &runtime::cloud_variables())
}

/// The place of the baseline, from the command line, the environment and the configuration.
#[derive(Debug, Clone)]
pub enum StorePlace {
    Folder(PathBuf),
    Branch { name: String, remote: String },
    Objects(StoreUrl),
}

/// Variables that git needs but would not inherit: proxies, certificates, the SSH agent and the place of its
/// configuration.
const GIT_NEEDS: [&str; 17] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "CURL_CA_BUNDLE",
    "SSH_AUTH_SOCK",
    "GIT_SSH_COMMAND",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_SYSTEM",
    "XDG_CONFIG_HOME",
];

/// Runs git for the baseline branch until it ends or is interrupted.
pub fn runner(command: &process::Command) -> Result<process::Finished, ProcessError> {
    let ran = runtime::block_on(async |cancel| Ok(process::run(command, &cancel).await));
    ran.unwrap_or_else(|error| {
        let source = std::io::Error::other(error.to_string());
        Err(ProcessError::Start { program: command.program.clone(), cwd: PathBuf::from("."), source })
    })
}

/// Runs git for a checkout, which may have to fetch from a partial clone or from git-lfs.
pub fn checkout_runner(command: &process::Command) -> Result<process::Finished, ProcessError> {
    let command = git_environment()
        .into_iter()
        .fold(command.clone(), |command, (name, value)| command.env(name, value));
    runner(&command)
}

/// The variables that git needs to reach a remote, with their values.
pub fn git_environment() -> Vec<(OsString, OsString)> {
    GIT_NEEDS.iter().filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?))).collect()
}

impl StoreArgs {
    /// The configuration, unless these options name the baseline, which its `[store]` names otherwise. Stored
    /// results can be inspected without the suite's configuration, so that it may be absent if it is not
    /// `required`.
    pub fn configured(&self, file: &Path, required: bool) -> Result<Option<Config>, CliError> {
        let is_named = self.store.is_some() || self.branch.is_some();
        let is_read = !is_named && (required || file.exists());
        Ok(is_read.then(|| config::load(file)).transpose()?)
    }

    /// The place that these options select, or else the configuration.
    pub fn place(&self, config: Option<&Config>) -> StorePlace {
        let default = || self.over(&Store::default(), Path::new(""));
        config.map_or_else(default, |config| self.over(&config.store, &config.root))
    }

    /// The place that these options select, or else the one that the configuration in `root` does.
    pub fn over(&self, store: &Store, root: &Path) -> StorePlace {
        let on = |name: &String| StorePlace::Branch {
            name: name.clone(),
            remote: self.remote.clone().unwrap_or_else(|| store.remote.clone()),
        };
        match (&self.branch, &self.store, &store.url, &store.branch) {
            (Some(branch), ..) => on(branch),
            (None, Some(StoreAt::Url(url)), ..) | (None, None, Some(url), _) => {
                StorePlace::Objects(url.clone())
            }
            (None, Some(StoreAt::Folder(folder)), ..) => StorePlace::Folder(folder.clone()),
            (None, None, None, Some(branch)) => on(branch),
            (None, None, None, None) => StorePlace::Folder(root.join(&store.folder)),
        }
    }
}

impl StorePlace {
    /// The name of the branch's remote, if the repository has no such remote.
    pub fn unknown_remote(&self, repository: &Repository) -> Option<&str> {
        let Self::Branch { remote, .. } = self else { return None };
        let unknown = || matches!(repository.remote_url(remote), Err(GitError::NoRemote(_)));
        (!is_address(remote) && unknown()).then_some(remote)
    }

    /// The options that select this place, quoted for a shell.
    pub fn options(&self) -> String {
        match self {
            Self::Folder(folder) => format!("--store {}", shell_word(folder)),
            Self::Branch { name, remote } => {
                format!("{} --remote {}", shell_word(format!("--branch={name}")), shell_word(remote))
            }
            Self::Objects(url) => format!("--store {}", shell_word(url.to_string())),
        }
    }

    /// Opens the baseline. For a branch it fetches the list of files, but no contents yet.
    pub fn open<'a>(
        &self,
        repository: Option<&Repository>,
        run: &'a CommandRunner<'a>,
        terminal: &Terminal,
    ) -> Result<Box<dyn Files + 'a>, CliError> {
        match self {
            // Read as a folder of a repository, a copy of an object store would look empty.
            Self::Folder(folder) if is_copy_of_objects(folder) => {
                let shown = std::path::absolute(folder).unwrap_or_else(|_| folder.clone());
                let message =
                    format!("{} contains `sessions`: it is a copy of an object store", folder.display());
                let hint = format!("name it as one: --store file://{}", shown.display());
                Err(CliError::usage(message).hint(hint))
            }
            Self::Folder(folder) => Ok(Box::new(Directory::new(folder))),
            Self::Branch { name, remote } => {
                let remote = find_remote(remote, repository)?;
                terminal.note(&format!("fetching the branch {name} of {}", remote.url()));
                Ok(Box::new(Branch::new(DataBranch::fetch(remote, name, run).map_err(StoreError::Git)?)))
            }
            Self::Objects(url) => Ok(Box::new(open_objects(url)?)),
        }
    }
}

/// Returns whether a folder has the layout of an object store.
fn is_copy_of_objects(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder.join("sessions"));
    entries
        .into_iter()
        .flatten()
        .flatten()
        .any(|entry| entry.file_name().to_string_lossy().starts_with("suite="))
}

/// Returns true if a remote is given by its URL and not by its name.
fn is_address(remote: &str) -> bool {
    remote.contains(['/', ':'])
}

fn find_remote(named: &str, repository: Option<&Repository>) -> Result<Remote, CliError> {
    let url = match repository {
        _ if is_address(named) => absolute(named, Path::new(".")),
        Some(repository) => {
            let url = repository.remote_url(named).map_err(StoreError::Git)?;
            absolute(&url, repository.root())
        }
        None => {
            return Err(CliError::usage(format!(
                "there is no git repository here, so the remote {named} can't be looked up"
            ))
            .hint("run benchgate inside the repository, or give an address with --remote"));
        }
    };
    Ok(Remote::new(&url, token_for(&url), git_environment()).map_err(StoreError::Git)?)
}

/// Resolves the path of a local remote against `folder`, because git is started in another one. Other URLs
/// are returned unchanged.
fn absolute(url: &str, folder: &Path) -> String {
    // `host:path` is the scp form. A colon after a slash belongs to a path.
    let is_path = !url.contains("://") && url.split('/').next().is_some_and(|first| !first.contains(':'));
    if !is_path || url.starts_with('~') || Path::new(url).is_absolute() {
        return url.to_owned();
    }
    let joined = folder.join(url);
    std::fs::canonicalize(&joined)
        .or_else(|_| std::path::absolute(&joined))
        .map_or_else(|_| url.to_owned(), |path| path.to_string_lossy().into_owned())
}

/// The token for a remote: BENCHGATE_TOKEN for any remote, GITHUB_TOKEN only for the GitHub server that
/// issued it.
fn token_for(url: &str) -> Option<GitToken> {
    let variable = |name: &str| runtime::secret(name).and_then(|text| GitToken::new(&text));
    if let Some(token) = variable("BENCHGATE_TOKEN") {
        return Some(token);
    }
    let server = std::env::var("GITHUB_SERVER_URL").unwrap_or_else(|_| "https://github.com".to_owned());
    let own = url.strip_prefix(server.trim_end_matches('/')).is_some_and(|rest| rest.starts_with('/'));
    if own { variable("GITHUB_TOKEN") } else { None }
}

/// The hint for a clone whose history is too short.
pub const UNSHALLOW: &str =
    "run `git fetch --unshallow origin`, or check out with `fetch-depth: 0`, and run the same command again";

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> Self {
        const AGAIN: &str = "nothing was changed there and your run.json is kept: run the same command again";
        let hint = match &error {
            StoreError::Git(GitError::Interrupted) | StoreError::Interrupted => return Self::interrupted(),
            StoreError::Unusable(_) | StoreError::NoSuchRun { .. } => {
                return Self::usage(format!("failed to {error}"));
            }
            StoreError::Shallow(_) => {
                return Self::baseline_missing(format!("failed to {error}")).hint(UNSHALLOW);
            }
            StoreError::Git(GitError::NoRemote(remote)) => {
                let hint = format!(
                    "store in a folder: `--store baselines`, or `folder = \"baselines\"` instead of `branch` in [store]; \
                     or name the remote: `git remote add {remote} URL`, or its address with --remote"
                );
                return Self::store(format!("failed to {error}")).hint(hint);
            }
            StoreError::Unreadable { .. } => {
                return Self::failed(format!("failed to {error}"))
                    .hint("`benchgate baseline verify` lists every damaged file");
            }
            StoreError::Git(GitError::Credentials { .. }) => Some(
                "set BENCHGATE_TOKEN to a token that may write contents; in a workflow, `permissions: contents: \
                 write` and `GITHUB_TOKEN: ${{ github.token }}`",
            ),
            StoreError::Git(GitError::PushRefused { .. }) => Some(
                "let this token push to that branch, or use another with --branch=NAME; your run.json is kept",
            ),
            StoreError::Git(GitError::Unreachable { .. } | GitError::Contended { .. }) => Some(AGAIN),
            StoreError::NotABaseline { .. } | StoreError::Git(GitError::BadBranch(_)) => {
                Some("name a branch that is used for nothing else: --branch=NAME; the first write creates it")
            }
            StoreError::Git(GitError::NoGit) => {
                Some("git is required to fetch and push baselines; install it")
            }
            StoreError::Objects { .. } => Some(
                "credentials and endpoints come from the environment (AWS_…, GOOGLE_…, AZURE_…); docs/object-stores.md lists \
                 them",
            ),
            _ => None,
        };
        Self::store(format!("failed to {error}")).maybe_hint(hint)
    }
}

/// A suite on a testbed.
#[derive(Debug, Clone, clap::Args)]
pub struct ShelfArgs {
    /// The suite; needed if there are several
    #[arg(value_name = "SUITE")]
    suite: Option<String>,
    /// The testbed, or the beginning of its name; needed if there are several
    #[arg(long, value_name = "ID")]
    testbed: Option<String>,
}

impl ShelfArgs {
    /// The arguments for a given suite, on the named testbed or on the only one.
    pub fn of_suite(suite: &str, testbed: Option<&str>) -> Self {
        Self { suite: Some(suite.to_owned()), testbed: testbed.map(str::to_owned) }
    }

    /// Opens the baseline of the selected suite and testbed.
    pub fn open(&self, files: &dyn Files) -> Result<BaselineFolder, CliError> {
        let suite = self.suite.as_deref().map(store::folder_name);
        let testbed = self.testbed.as_deref().map(store::folder_name);
        let fits = |(of_suite, of_testbed): &(String, String)| {
            suite.as_ref().is_none_or(|suite| suite == of_suite)
                && testbed.as_ref().is_none_or(|testbed| of_testbed.starts_with(testbed.as_str()))
        };
        let all = store::baseline_folders(files)?;
        let found: Vec<&(String, String)> = all.iter().filter(|shelf| fits(shelf)).collect();
        match found.as_slice() {
            [(suite, testbed)] => {
                let mut shelf = BaselineFolder::open_folder(files, format!("{suite}/{testbed}"))?;
                shelf.end_acceptances(jiff::Timestamp::now());
                Ok(shelf)
            }
            [] => Err(CliError::baseline_missing(format!("no such suite and testbed in {}", files.place()))
                .hint(
                    "`benchgate baseline list` lists the baselines; `benchgate baseline update` adds a \
            session to one",
                )),
            several => Err(CliError::usage(format!("{} match", several.len())).hint(
                "name the suite, and the testbed with --testbed; `benchgate baseline list` lists \
                them",
            )),
        }
    }
}

/// An error for a pattern that matches nothing, which is a mistake and not an empty result.
pub fn no_match(pattern: &str, folder: &str) -> CliError {
    CliError::usage(format!("`{pattern}` matches no benchmark in {folder}"))
        .hint("`benchgate baseline show` lists their names")
}

/// Warns about damaged files, which are left out of every result. `--quiet` does not hide these warnings.
pub fn say_faults(faults: &[Fault], terminal: &Terminal) {
    for fault in faults {
        terminal.warn(&format!("{} is left out: {}", fault.path, fault.why));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_remote_is_found_from_where_git_would_look_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let folder = std::fs::canonicalize(folder.path()).unwrap();
        std::fs::create_dir_all(folder.join("store.git")).unwrap();
        std::fs::create_dir_all(folder.join("work")).unwrap();
        let found = absolute("../store.git", &folder.join("work"));
        assert_eq!(PathBuf::from(found), folder.join("store.git"));
        for address in
            ["https://example.org/a/b.git", "git@example.org:a/b.git", "/srv/b.git", "file:///srv/b"]
        {
            assert_eq!(absolute(address, &folder), address);
        }
    }
}
