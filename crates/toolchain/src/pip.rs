//! Runs pip with only the user's settings for indexes and the network, and interprets pip's errors.
//!
//! The packages that a suite's own models import. These packages are laid over an environment, so that the
//! environment is not copied.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use benchgate_config::{Config, ModelSource, is_lockable};
use benchgate_core::model::{digest_of, excerpt};
use benchgate_host::files;
use benchgate_host::process::{self, Cancel, Command, Exit, Finished};

use super::ToolchainError;

/// Environment variables for the index and the network, which are passed to pip. Other settings of pip
/// (`target`, `prefix`, `user`) would change what is installed and where.
const PASSED: &[&str] = &[
    "PIP_CERT",
    "PIP_CLIENT_CERT",
    "PIP_CONFIG_FILE",
    "PIP_DEFAULT_TIMEOUT",
    "PIP_EXTRA_INDEX_URL",
    "PIP_FIND_LINKS",
    "PIP_INDEX_URL",
    "PIP_KEYRING_PROVIDER",
    "PIP_NO_INDEX",
    "PIP_PROXY",
    "PIP_TIMEOUT",
    "PIP_TRUSTED_HOST",
    "ALL_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "all_proxy",
    "https_proxy",
    "http_proxy",
    "no_proxy",
    "CURL_CA_BUNDLE",
    "NETRC",
    "REQUESTS_CA_BUNDLE",
    "XDG_CONFIG_DIRS",
    "XDG_CONFIG_HOME",
];

/// Settings that override a configuration file, which could prevent or redirect the installation.
const SET: &[(&str, &str)] = &[
    ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
    ("PIP_NO_COLOR", "1"),
    ("PIP_NO_INPUT", "1"),
    ("PIP_PROGRESS_BAR", "off"),
    ("PIP_REQUIRE_VIRTUALENV", "0"),
    // Enough retries for a short outage, but few enough to report soon that there is no network. With 0, pip
    // would not print the reason.
    ("PIP_RETRIES", "2"),
    ("PIP_USER", "0"),
];

/// One call of pip, with a folder for its files.
pub(super) struct Pip {
    /// The Python that runs pip and for which it installs.
    pub(super) python: PathBuf,
    /// The folder of pip itself, if it is not part of `python`.
    pub(super) pip: Option<PathBuf>,
    /// The folder for pip's cache, temporary files and log.
    pub(super) work: PathBuf,
    pub(super) timeout: Duration,
}

impl Pip {
    /// The pip that is part of `python`.
    pub(super) fn of(python: PathBuf, work: &Path, timeout: Duration) -> Self {
        Self { python, pip: None, work: work.to_owned(), timeout }
    }

    /// pip's cache, from which a killed installation resumes its downloads.
    pub(super) fn downloads(&self) -> PathBuf {
        self.work.join("pip")
    }

    /// Runs pip. `what` names the goal in messages.
    ///
    /// # Errors
    /// The reason why pip failed, as precisely as its message allows.
    pub(super) async fn run(
        &self,
        what: &str,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
        cancel: &Cancel,
    ) -> Result<Finished, ToolchainError> {
        // pip unpacks large wheels in its temporary folder, so that folder is on the cache's disk and not in
        // a small /tmp.
        let temporary = self.work.join("tmp");
        fs::create_dir_all(&temporary).map_err(ToolchainError::io("make", &temporary))?;
        let mut command = Command::new(&self.python, self.timeout)
            .env("TMPDIR", &temporary)
            .env("PIP_CACHE_DIR", self.downloads())
            .log(self.work.join("pip.log"))
            .capture_stdout();
        command = match &self.pip {
            Some(folder) => command.arg(folder.as_os_str()),
            None => command.args(["-m", "pip"]),
        };
        command = command.args(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        for (name, value) in SET {
            command = command.env(*name, *value);
        }
        for (name, value) in PASSED.iter().filter_map(|name| Some((name, std::env::var_os(name)?))) {
            command = command.env(OsString::from(name), value);
        }
        let finished = process::run(&command, cancel).await.map_err(|error| {
            if error.is_disk_full() { self.disk_full() } else { ToolchainError::Process(error) }
        })?;
        match finished.exit {
            Exit::Success => Ok(finished),
            Exit::Interrupted => Err(ToolchainError::Interrupted),
            exit => Err(self.failure(what, exit, &finished.stderr_tail)),
        }
    }

    fn disk_full(&self) -> ToolchainError {
        ToolchainError::DiskFull { path: self.work.clone() }
    }

    /// Finds the reason in pip's output. The known messages have been stable for years; others are shown
    /// unchanged.
    fn failure(&self, what: &str, exit: Exit, stderr: &str) -> ToolchainError {
        let what = what.to_owned();
        let detail = detail(stderr);
        if stderr.contains("No space left on device") || stderr.contains("Disk quota exceeded") {
            return self.disk_full();
        }
        if stderr.contains("DO NOT MATCH THE HASHES") {
            let after = |label: &str| {
                let line = stderr.lines().find_map(|line| line.trim().strip_prefix(label));
                line.unwrap_or("unknown").trim().trim_start_matches("sha256 ").to_owned()
            };
            return ToolchainError::WrongHash { what, expected: after("Expected"), found: after("Got") };
        }
        let unreachable = [
            "NewConnectionError",
            "NameResolutionError",
            "ConnectTimeoutError",
            "Max retries exceeded",
            "Network is unreachable",
            "Temporary failure in name resolution",
            "Connection refused",
        ];
        if unreachable.iter().any(|words| stderr.contains(words)) {
            return ToolchainError::Offline { what, detail };
        }
        if stderr.contains("No matching distribution found") {
            return ToolchainError::NotFound { what, detail };
        }
        ToolchainError::Pip { what, exit, detail }
    }
}

/// The lines that pip marks as errors, or else its last line. The line that names the missing version follows
/// a list of all available versions, which may be thousands of characters long.
fn detail(stderr: &str) -> String {
    let mut marked: Vec<&str> =
        stderr.lines().filter_map(|line| line.trim().strip_prefix("ERROR: ")).collect();
    if let Some(missing) = marked.iter().position(|line| line.starts_with("No matching distribution")) {
        marked = vec![marked[missing]];
    }
    marked.truncate(2);
    let text = if marked.is_empty() {
        stderr.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no message").to_owned()
    } else {
        marked.join("; ")
    };
    // The text may include every version that the index has.
    excerpt(&text, 400)
}

/// Writes a requirements file that accepts exactly these files.
pub(super) fn write_requirements(path: &Path, lines: &[String]) -> Result<(), ToolchainError> {
    let mut text = lines.join("\n");
    text.push('\n');
    fs::write(path, text).map_err(ToolchainError::io("write", path))
}

/// Maximum size of a model's list of requirements, in bytes.
const MOST_BYTES: u64 = 1 << 20;

/// The packages that a suite needs in addition to benchgate's environments.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SuitePackages {
    /// The key `requirements` of `[python]`. `pin` fails if one of these packages can't be resolved.
    pub(super) own: Vec<String>,
    /// Packages in the lists of torchbench models. `pin` leaves out those for which no index has a wheel.
    pub(super) torchbench: BTreeSet<String>,
}

impl SuitePackages {
    /// Reads the requirements from the configuration and the torchbench checkout. Most models have no list.
    pub fn read(config: &Config) -> Self {
        let lists = config.models.iter().filter_map(|model| match &model.source {
            ModelSource::Torchbench { name, checkout } => Some((&checkout.folder, name)),
            _ => None,
        });
        let lists: BTreeSet<_> = lists.collect();
        let framework = !lists.is_empty();
        let of_models = lists.into_iter().flat_map(|(checkout, name)| {
            lines(&checkout.join("torchbenchmark/models").join(name).join("requirements.txt"))
        });
        // Packages that torchbench's own code imports before it imports a model.
        let of_framework = framework.then(|| FRAMEWORK.map(str::to_owned)).into_iter().flatten();
        Self { own: config.python.requirements.clone(), torchbench: of_models.chain(of_framework).collect() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.own.is_empty() && self.torchbench.is_empty()
    }

    /// The digest of all requested packages together with the base environment's requirements.
    pub(super) fn digest(&self, requirements_sha256: &str) -> String {
        let own = self.own.iter().map(String::as_str);
        let torchbench = self.torchbench.iter().map(String::as_str);
        digest_of(std::iter::once(requirements_sha256).chain(own).chain(["torchbench"]).chain(torchbench))
    }
}

/// The imports of `torchbenchmark/util`. The checkout lists them only together with everything that its tests
/// need.
const FRAMEWORK: [&str; 3] = ["psutil", "pyyaml", "timm"];

/// The requirements of a file that a lock can contain. git URLs and pip options are left out.
fn lines(file: &Path) -> Vec<String> {
    let Ok(bytes) = files::read_bounded(file, MOST_BYTES) else { return Vec::new() };
    let text = String::from_utf8_lossy(&bytes);
    let lines = text.lines().map(|line| line.split(" #").next().unwrap_or_default().trim());
    lines.filter(|line| is_lockable(line)).map(str::to_owned).collect()
}

/// The project name of a requirement, in the spelling of wheel names.
pub(super) fn project_of(requirement: &str) -> String {
    let end = requirement.find(|c: char| !(c.is_ascii_alphanumeric() || "._-".contains(c)));
    requirement[..end.unwrap_or(requirement.len())].to_ascii_lowercase().replace(['-', '.'], "_")
}

/// The wheels whose projects the environment does not contain yet.
pub(super) fn without(wheels: Vec<Wheel>, environment: &[Wheel]) -> Vec<Wheel> {
    let known = projects(environment);
    let is_new = |wheel: &Wheel| project(wheel).is_some_and(|project| !known.contains(&project));
    wheels.into_iter().filter(is_new).collect()
}

pub(super) fn projects(wheels: &[Wheel]) -> BTreeSet<String> {
    wheels.iter().filter_map(project).collect()
}

fn project(wheel: &Wheel) -> Option<String> {
    Name::parse(&wheel.file).map(|name| project_of(name.project))
}

/// A locked wheel: its file name, `{project}-{version}(-{build})?-{python}-{abi}-{platform}.whl` (the binary distribution
/// format of the Python packaging guide), and its hash.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wheel {
    pub file: String,
    /// The hash in lowercase hexadecimal.
    pub sha256: String,
}

/// The parts of a wheel's file name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Name<'a> {
    pub(super) project: &'a str,
    pub(super) version: &'a str,
    pub(super) python: &'a str,
    pub(super) abi: &'a str,
    pub(super) platform: &'a str,
}

impl<'a> Name<'a> {
    /// Parses a wheel's file name; `None` for anything else. A lock file may come from a pull request, and
    /// these names become arguments and lines of requirements files, so the check is strict.
    pub(super) fn parse(file: &'a str) -> Option<Self> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._+!-".contains(c);
        let stem = file.strip_suffix(".whl")?;
        if !stem.chars().all(plain) || !stem.starts_with(|c: char| c.is_ascii_alphanumeric()) {
            return None;
        }
        let parts: Vec<&str> = stem.split('-').collect();
        let (project, version, [python, abi, platform]) = match parts.as_slice() {
            [project, version, rest @ ..] if rest.len() == 3 => {
                (*project, *version, [rest[0], rest[1], rest[2]])
            }
            [project, version, _build, python, abi, platform] => {
                (*project, *version, [*python, *abi, *platform])
            }
            _ => return None,
        };
        let name = Self { project, version, python, abi, platform };
        [project, version, python, abi, platform].iter().all(|part| !part.is_empty()).then_some(name)
    }

    /// The project name as indexes spell it.
    pub(super) fn requirement(&self) -> String {
        format!("{}=={}", self.project.replace('_', "-").to_ascii_lowercase(), self.version)
    }

    /// Returns whether the wheel contains code for this architecture of Linux (`x86_64`, `aarch64`).
    pub(super) fn runs_on(&self, arch: &str) -> bool {
        self.platform.split('.').any(|tag| {
            tag == "any"
                || tag.strip_suffix(arch).is_some_and(|rest| rest.contains("linux") && rest.ends_with('_'))
        })
    }

    /// The arguments that make pip choose this wheel, whichever Python runs pip.
    pub(super) fn selecting_arguments(&self) -> Vec<String> {
        let mut arguments =
            vec!["--implementation".to_owned(), "cp".to_owned(), "--only-binary=:all:".to_owned()];
        if let Some(digits) = self.python.split('.').next_back().and_then(|tag| tag.strip_prefix("cp")) {
            arguments.extend(["--python-version".to_owned(), digits.to_owned()]);
        }
        arguments.extend(["--abi".to_owned(), self.abi.to_owned()]);
        for platform in self.platform.split('.').filter(|tag| *tag != "any") {
            arguments.extend(["--platform".to_owned(), platform.to_owned()]);
        }
        arguments
    }
}

/// Returns whether a version or commit has only characters that are valid in a requirement.
pub(super) fn is_plain_version(version: &str) -> bool {
    !version.is_empty() && version.chars().all(|c| c.is_ascii_alphanumeric() || "._+!-".contains(c))
}

/// The digest of each file, from the `RECORD` files among `files`: base64 without padding.
pub(super) fn read<'a>(
    files: impl IntoIterator<Item = &'a PathBuf>,
) -> Result<BTreeMap<PathBuf, String>, ToolchainError> {
    let mut listed = BTreeMap::new();
    for record in files.into_iter().filter(|path| is_record(path)) {
        let Some(packages) = record.parent().and_then(Path::parent) else { continue };
        let text = fs::read_to_string(record).map_err(ToolchainError::io("read", record))?;
        for line in text.lines() {
            // A line is `path,sha256=digest,bytes`. For scripts, pip lists paths that do not exist.
            let mut fields = line.rsplitn(3, ',').skip(1);
            let (Some(digest), Some(path)) = (fields.next(), fields.next()) else { continue };
            if let Some(digest) = digest.strip_prefix("sha256=") {
                listed.insert(packages.join(path.trim_matches('"')), digest.to_owned());
            }
        }
    }
    Ok(listed)
}

fn is_record(path: &Path) -> bool {
    let folder = path.parent().and_then(Path::extension);
    path.file_name().is_some_and(|name| name == "RECORD") && folder.is_some_and(|kind| kind == "dist-info")
}

/// Converts a hexadecimal digest to the form in which a record contains it.
pub(super) fn as_recorded(hex: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let bits: Vec<u8> = hex
        .chars()
        .filter_map(|digit| digit.to_digit(16))
        .flat_map(|digit| (0..4).rev().map(move |bit| (digit >> bit & 1) as u8))
        .collect();
    bits.chunks(6)
        .map(|six| {
            let value = six.iter().fold(0, |value, bit| value << 1 | usize::from(*bit)) << (6 - six.len());
            char::from(LETTERS[value])
        })
        .collect()
}

/// Returns the line of a requirements file for a wheel, with its hash.
pub(super) fn requirement(wheel: &Wheel) -> Result<String, ToolchainError> {
    let name = Name::parse(&wheel.file)
        .ok_or_else(|| ToolchainError::MissingTool { tool: wheel.file.clone(), root: PathBuf::new() })?;
    Ok(format!("{} --hash=sha256:{}", name.requirement(), wheel.sha256))
}

/// pip's arguments for installing one wheel of the tools. The tools need no Python, so the wheel fits every
/// machine of its platform, whichever Python runs pip.
pub(super) fn tool_arguments(wheel: &Wheel, target: &Path, requirements: &Path) -> Vec<OsString> {
    let mut arguments: Vec<OsString> =
        ["install", "--no-deps", "--no-compile", "--require-hashes"].map(Into::into).into();
    if let Some(name) = Name::parse(&wheel.file) {
        arguments.extend(name.selecting_arguments().into_iter().map(Into::into));
    }
    arguments.extend(["--target".into(), target.into(), "--requirement".into(), requirements.into()]);
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(stderr: &str) -> ToolchainError {
        let pip = Pip::of("python3".into(), Path::new("/cache"), Duration::ZERO);
        pip.failure("IREE 3.13.0", Exit::Code(1), stderr)
    }

    #[test]
    fn a_hash_that_differs_says_which_and_what_was_expected() {
        let error = failure(
            "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE. …\n\
             \x20   iree-base-runtime==3.13.0 from https://…:\n\
             \x20       Expected sha256 1111\n\
             \x20            Got        2222\n",
        );
        assert_eq!(error.to_string(), "verify IREE 3.13.0: expected sha256 1111, found 2222");
    }

    #[test]
    fn no_network_and_no_such_version_are_distinguished() {
        let no_network = "WARNING: Retrying … NewConnectionError('…: [Errno 101] Network is unreachable')': /simple/\n\
                          ERROR: No matching distribution found for iree-base-runtime==3.13.0\n";
        assert!(matches!(failure(no_network), ToolchainError::Offline { .. }));
        let unknown = "ERROR: No matching distribution found for iree-base-runtime==99\n";
        assert!(matches!(failure(unknown), ToolchainError::NotFound { .. }));
        // pip first lists the versions that it ignored.
        let versions = "3.10.0 Requires-Python >=3.12; ".repeat(40);
        let named = failure(&format!(
            "ERROR: Ignored the following versions that require a different python version: {versions}\n\
             ERROR: Could not find a version that satisfies the requirement gym (from versions: none)\n\
             ERROR: No matching distribution found for gym\n"
        ));
        let ToolchainError::NotFound { detail, .. } = named else { panic!("{named:?}") };
        assert_eq!(detail, "No matching distribution found for gym");
    }

    #[test]
    fn a_full_disk_is_recognised_and_anything_else_is_shown() {
        let full = failure(
            "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n",
        );
        assert!(matches!(full, ToolchainError::DiskFull { .. }));
        let other = failure("Traceback …\nRuntimeError: \u{1b}[31mboom\n");
        assert_eq!(
            other.to_string(),
            "install IREE 3.13.0: pip ended with exit code 1: RuntimeError: \u{fffd}[31mboom"
        );
    }

    #[test]
    fn a_list_gives_the_packages_of_an_index() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("requirements.txt");
        let text = "# comment\nnumpy\ngit+https://example.com/x.git\nopacus>=1.1.2,<1.5.4  # why\n-r other.txt\n\n./local\n";
        fs::write(&file, text).unwrap();
        assert_eq!(lines(&file), ["numpy", "opacus>=1.1.2,<1.5.4"]);
        assert!(lines(Path::new("/none")).is_empty());
    }

    #[test]
    fn a_requirement_names_its_project_as_a_wheel_does() {
        for (requirement, project) in [
            ("Scikit-Image>=0.2", "scikit_image"),
            ("ruamel.yaml[jinja]==1", "ruamel_yaml"),
            ("numpy", "numpy"),
        ] {
            assert_eq!(project_of(requirement), project);
        }
    }

    const COMPILER: &str =
        "iree_base_compiler-3.13.0-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl";

    #[test]
    fn a_wheel_name_tells_what_it_is() {
        let name = Name::parse(COMPILER).unwrap();
        assert_eq!(name.requirement(), "iree-base-compiler==3.13.0");
        assert!(name.runs_on("x86_64"));
        assert!(!name.runs_on("aarch64"));
        assert!(Name::parse("networkx-3.6.1-py3-none-any.whl").unwrap().runs_on("aarch64"));
        assert!(!Name::parse("torch-2.15.0-cp311-cp311-win_x86_64.whl").unwrap().runs_on("x86_64"));
        assert_eq!(
            name.selecting_arguments().join(" "),
            "--implementation cp --only-binary=:all: --python-version 311 --abi cp311 \
             --platform manylinux_2_27_x86_64 --platform manylinux_2_28_x86_64"
        );
    }

    #[test]
    fn a_name_that_is_more_than_a_name_is_refused() {
        for hostile in [
            "../evil-1-py3-none-any.whl",
            "a-1-py3-none-any.whl --index-url=http://evil",
            "a-1-py3-none-any.whl\n-r /etc/passwd",
            "-rfoo-1-py3-none-any.whl",
            "a-1-py3-none.whl",
            "a--py3-none-any.whl",
            "a.tar.gz",
        ] {
            assert_eq!(Name::parse(hostile), None, "{hostile}");
        }
    }

    #[test]
    fn a_digest_is_written_as_in_a_record() {
        let hex = "577e9a85d77ebfc1ac9bc6e13ae4d19f1ff9fc5a5e24f9ad3a7a0f0c0dd4c0b1";
        assert!(as_recorded(hex).starts_with("V36ahdd-v8"));
        assert_eq!(as_recorded(hex).len(), 43);
    }

    #[test]
    fn a_record_names_files_next_to_its_own_folder() {
        let folder = tempfile::tempdir().unwrap();
        let record = folder.path().join("a-1.dist-info/RECORD");
        fs::create_dir(record.parent().unwrap()).unwrap();
        fs::write(&record, "a/tool,sha256=xyz,12\n\"a/b,c\",sha256=uvw,1\na-1.dist-info/RECORD,,\n").unwrap();
        let listed = read([&record, &folder.path().join("a/tool")]).unwrap();
        assert_eq!(listed.get(&folder.path().join("a/tool")).unwrap(), "xyz");
        assert_eq!(listed.get(&folder.path().join("a/b,c")).unwrap(), "uvw");
        assert_eq!(listed.len(), 2);
    }
}
