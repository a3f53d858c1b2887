//! Resolves pins through pip, without installing anything.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;

use super::lock::platform;
use super::pip::{
    Name, Pip, SuitePackages, Wheel, is_plain_version, project_of, projects, without, write_requirements,
};
use super::python_env::Environment;
use super::{Lock, LockedPython, LockedTools, ToolchainError, python_env};
use benchgate_config::Pin;
use benchgate_core::model::{Event, Progress, is_sha256};
use benchgate_host::files::{self, Scratch};
use benchgate_host::process::Cancel;

use super::install::{RUNTIME_FOLDER, runtime_commit};
use super::pip::{requirement, tool_arguments};

/// Time limit for resolving, which asks an index for the metadata of about forty projects.
pub(super) const TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// Architectures whose wheels are always locked.
const MACHINES: &[&str] = &["x86_64", "aarch64"];

/// Python versions whose wheels are accepted, in order of preference. The tools in the wheels don't use
/// Python.
const PYTHONS: &[&str] = &["3.11", "3.12", "3.13", "3.10"];

/// Minor versions of glibc that a wheel may require: 2.17 (2012) to 2.39 (2024). If a wheel requires a newer
/// glibc than the machine has, the loader reports it when the tools are first run.
const OLDEST_GLIBC: u32 = 17;
const NEWEST_GLIBC: u32 = 39;

/// Resolves a pin to its wheels for every architecture.
///
/// # Errors
/// There is no Python, no network or no such version, or the index provides no hashes.
pub async fn pin_tools(
    pin: &Pin,
    cache: &Path,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<LockedTools, ToolchainError> {
    let what = format!("IREE {}", pin.version);
    let commit_fits = pin.commit.is_empty() || is_plain_version(&pin.commit);
    if !is_plain_version(&pin.version) || !commit_fits {
        return Err(ToolchainError::NotFound { what, detail: "it is not a valid version".to_owned() });
    }
    let work = workspace(cache)?;
    let python = python_env::with_pip(cache, cancel).await?;
    let pip = Pip::of(python.executable, work.path(), TIMEOUT);
    let mut wheels = Vec::new();
    let mut missing = None;
    for machine in MACHINES {
        progress.on(Event::Note(&format!("asking pip for {what}, linux-{machine}")));
        match for_machine(&pip, &what, &pin.version, machine, cancel).await {
            Ok(found) => wheels.extend(found),
            // A private index may not have wheels for every architecture.
            Err(error @ ToolchainError::NotFound { .. }) => {
                progress.on(Event::Note(&format!("no wheels of {what} for linux-{machine}")));
                missing = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    if let (true, Some(error)) = (wheels.is_empty(), missing) {
        return Err(error);
    }
    Ok(LockedTools { version: pin.version.clone(), commit: pin.commit.clone(), wheels })
}

/// The compiler releases that an index offers for this machine, oldest first. Pre-releases are left out.
///
/// # Errors
/// There is no Python, no network or no release.
pub async fn releases(cache: &Path, cancel: &Cancel) -> Result<Vec<String>, ToolchainError> {
    const PROJECT: &str = "iree-base-compiler";
    let what = "the list of IREE releases";
    let work = workspace(cache)?;
    let python = python_env::with_pip(cache, cancel).await?;
    let pip = Pip::of(python.executable, work.path(), TIMEOUT);
    let finished = pip.run(what, ["index", "versions", PROJECT], cancel).await?;
    let found = releases_of(&String::from_utf8_lossy(&finished.stdout));
    if found.is_empty() {
        return Err(ToolchainError::NotFound { what: what.to_owned(), detail: "pip lists none".to_owned() });
    }
    Ok(found)
}

fn releases_of(text: &str) -> Vec<String> {
    let list =
        text.lines().find_map(|line| line.trim().strip_prefix("Available versions:")).unwrap_or_default();
    let mut found: Vec<(Vec<u64>, String)> = (list.split(','))
        .filter_map(|version| Some((release_order(version.trim())?, version.trim().to_owned())))
        .collect();
    found.sort();
    found.into_iter().map(|(_, version)| version).collect()
}

/// The numbers of a release, by which releases are ordered. `None` for a pre-release and for text that is not
/// a version.
pub fn release_order(version: &str) -> Option<Vec<u64>> {
    version.split('.').map(|number| number.parse().ok()).collect()
}

async fn for_machine(
    pip: &Pip,
    what: &str,
    version: &str,
    machine: &str,
    cancel: &Cancel,
) -> Result<Vec<Wheel>, ToolchainError> {
    let mut last = None;
    for python in PYTHONS {
        let digits = python.replace('.', "");
        let mut arguments: Vec<OsString> = [
            "--no-deps",
            "--only-binary=:all:",
            "--implementation",
            "cp",
            "--python-version",
            python,
            "--abi",
            &format!("cp{digits}"),
            "--abi",
            "abi3",
            "--abi",
            "none",
        ]
        .map(Into::into)
        .into();
        for glibc in OLDEST_GLIBC..=NEWEST_GLIBC {
            arguments.extend(["--platform".into(), format!("manylinux_2_{glibc}_{machine}").into()]);
        }
        arguments.extend(
            ["iree-base-compiler", "iree-base-runtime"].map(|name| format!("{name}=={version}").into()),
        );
        match resolve(pip, what, arguments, cancel).await {
            Ok(wheels) => return Ok(wheels),
            Err(error @ ToolchainError::NotFound { .. }) => last = last.or(Some(error)),
            Err(error) => return Err(error),
        }
    }
    Err(last.unwrap_or_else(|| ToolchainError::NotFound {
        what: what.to_owned(),
        detail: "no Python version supports it".to_owned(),
    }))
}

/// Resolves an environment for every Python of this machine that supports it. Dependencies may be
/// conditional on the Python that resolves them, so each Python resolves them itself. Entries of
/// `known` with the same requirements stay unchanged, because a newer wheel of any dependency would
/// require another copy of several gigabytes.
///
/// # Errors
/// No Python of this machine supports the environment, or an error of [`pin_tools`].
pub async fn pin_python(
    environment: Environment,
    suite: &SuitePackages,
    known: &Lock,
    cache: &Path,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<Vec<LockedPython>, ToolchainError> {
    let work = workspace(cache)?;
    let requirements = work.path().join("requirements.in");
    write_requirements(&requirements, &[environment.requirements().to_owned()])?;
    let added = environment.suite_name().filter(|_| !suite.is_empty());
    let mut locked = Vec::new();
    let mut last = None;
    for python in python_env::all(cancel).await? {
        let version = python.version();
        let what = format!("the Python environment {} for Python {version}", environment.name());
        progress.on(Event::Note(&format!("asking pip for {what}")));
        let Some(folder) = python.pip else { continue };
        let pip = Pip { pip: Some(folder), ..Pip::of(python.executable, work.path(), TIMEOUT) };
        let arguments = ["--only-binary=:all:".into(), "--requirement".into(), requirements.clone().into()];
        let resolved = async {
            let locked = |name, digest: &str| {
                Some(known.python(name, digest, Some(&[&version])).ok()?[0].wheels.clone())
            };
            let wheels = match locked(environment.name(), &environment.requirements_digest()) {
                Some(wheels) => wheels,
                None => resolve(&pip, &what, arguments, cancel).await?,
            };
            let Some(name) = added else { return Ok((wheels, None)) };
            let digest = suite.digest(&environment.requirements_digest());
            let added = match locked(name, &digest) {
                Some(wheels) => wheels,
                None => pin_suite(&pip, suite, &wheels, progress, cancel).await?,
            };
            Ok((wheels, Some((name, digest, added))))
        };
        match resolved.await {
            Ok((wheels, added)) => {
                let own = Some((environment.name(), environment.requirements_digest(), wheels));
                let found = own.into_iter().chain(added);
                locked.extend(found.map(|(name, requirements_sha256, wheels)| LockedPython {
                    name: name.to_owned(),
                    platform: platform(),
                    python: version.clone(),
                    requirements_sha256,
                    wheels,
                }));
            }
            // A Python that torch does not support (yet) must not prevent the others from being locked.
            Err(error @ (ToolchainError::NotFound { .. } | ToolchainError::Pip { .. })) => last = Some(error),
            Err(error) => return Err(error),
        }
    }
    match (locked.is_empty(), last) {
        (true, Some(error)) => Err(error),
        (true, None) => Err(ToolchainError::NoPython { found: "no Python with pip was found".to_owned() }),
        (false, _) => Ok(locked),
    }
}

/// Resolves the wheels that a suite adds to an environment. The versions of the environment's wheels are
/// kept.
async fn pin_suite(
    pip: &Pip,
    suite: &SuitePackages,
    environment: &[Wheel],
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<Vec<Wheel>, ToolchainError> {
    let constraints = pip.work.join("constraints.txt");
    let versions = environment.iter().filter_map(|wheel| Name::parse(&wheel.file));
    write_requirements(&constraints, &versions.map(|name| name.requirement()).collect::<Vec<_>>())?;
    let file = pip.work.join("suite.in");
    let what = "the packages of the suite's models";
    let ask = async |lines: &[String]| {
        if lines.is_empty() {
            return Ok(Vec::new());
        }
        write_requirements(&file, lines)?;
        let given = [("--requirement", &file), ("--constraint", &constraints)];
        let given = given.into_iter().flat_map(|(option, path)| [option.into(), path.clone().into()]);
        resolve(pip, what, std::iter::once("--only-binary=:all:".into()).chain(given), cancel).await
    };
    // The environment's version of a project takes precedence over the one in a model's list.
    let known = projects(environment);
    let listed = suite.torchbench.iter().filter(|line| !known.contains(&project_of(line)));
    let mut listed: Vec<String> = listed.cloned().collect();
    let mut lines = [suite.own.as_slice(), &listed].concat();
    let mut found = ask(&lines).await;
    let left_out = |line: &str, detail: &str| {
        progress.on(Event::Warning(&format!(
            "`{line}`, which a model of torchbench asks for, can't be locked: {detail}"
        )));
    };
    // pip's message names a requirement that no index has. Each attempt takes half a minute, so that
    // requirement is removed before the requirements are tried one by one.
    while let Err(ToolchainError::NotFound { detail, .. }) = &found
        && let Some(at) = unavailable(detail, &listed)
    {
        left_out(&listed.remove(at), detail);
        lines = [suite.own.as_slice(), &listed].concat();
        found = ask(&lines).await;
    }
    if let (Err(ToolchainError::NotFound { .. } | ToolchainError::Pip { .. }), false) =
        (&found, listed.is_empty())
    {
        lines.clone_from(&suite.own);
        found = ask(&lines).await;
        for line in listed {
            lines.push(line.clone());
            match ask(&lines).await {
                Err(ToolchainError::NotFound { detail, .. } | ToolchainError::Pip { detail, .. }) => {
                    left_out(&line, &detail);
                    lines.pop();
                }
                more => found = Ok(more?),
            }
        }
    }
    Ok(without(found?, environment))
}

/// The line for which pip has no distribution, found by pip's message.
fn unavailable(detail: &str, lines: &[String]) -> Option<usize> {
    let (_, requirement) = detail.rsplit_once("No matching distribution found for ")?;
    lines.iter().position(|line| project_of(line) == project_of(requirement))
}

pub(super) fn workspace(cache: &Path) -> Result<Scratch, ToolchainError> {
    const PREFIX: &str = "pin-";
    files::sweep_scratch(cache, PREFIX);
    Scratch::new_in(cache, PREFIX).map_err(ToolchainError::io("write in", cache))
}

/// pip's installation report (pip 22.2 or newer), which lists the packages that it would install.
#[derive(Debug, Deserialize)]
struct PipReport {
    install: Vec<Item>,
}

#[derive(Debug, Deserialize)]
struct Item {
    download_info: Download,
}

#[derive(Debug, Deserialize)]
struct Download {
    url: String,
    archive_info: Option<PipArchive>,
}

#[derive(Debug, Deserialize)]
struct PipArchive {
    /// `sha256=…`, in reports of older pip versions.
    hash: Option<String>,
    hashes: Option<std::collections::BTreeMap<String, String>>,
}

async fn resolve(
    pip: &Pip,
    what: &str,
    arguments: impl IntoIterator<Item = OsString>,
    cancel: &Cancel,
) -> Result<Vec<Wheel>, ToolchainError> {
    let path = pip.work.join("report.json");
    let target = pip.work.join("nothing");
    let mut all: Vec<OsString> =
        ["install", "--dry-run", "--ignore-installed", "--quiet", "--report"].map(Into::into).into();
    // pip requires a target folder to resolve for another platform, but installs nothing there.
    all.extend([path.clone().into(), "--target".into(), target.into()]);
    all.extend(arguments);
    pip.run(what, all, cancel).await?;
    let text = std::fs::read(&path).map_err(ToolchainError::io("read", &path))?;
    wheels_of(&text).map_err(|detail| ToolchainError::NotFound { what: what.to_owned(), detail })
}

fn wheels_of(report: &[u8]) -> Result<Vec<Wheel>, String> {
    let report: PipReport =
        serde_json::from_slice(report).map_err(|error| format!("pip's report: {error}"))?;
    let mut wheels = Vec::new();
    for Item { download_info: Download { url, archive_info } } in report.install {
        let file = super::fetch::file_name(&url).ok_or_else(|| {
            let last: String = url.rsplit('/').next().unwrap_or_default().chars().take(200).collect();
            format!("the index offers {last:?}, which is not a wheel")
        })?;
        let archive = archive_info.ok_or_else(|| format!("pip reported no hash of {file}"))?;
        let modern = archive.hashes.and_then(|mut hashes| hashes.remove("sha256"));
        let legacy = archive.hash.and_then(|hash| hash.strip_prefix("sha256=").map(str::to_owned));
        let sha256 = modern.or(legacy).filter(|hash| is_sha256(hash));
        let sha256 = sha256.ok_or_else(|| format!("the index states no sha256 of {file}"))?;
        wheels.push(Wheel { file, sha256 });
    }
    wheels.sort_by(|a, b| {
        Name::parse(&a.file).map(|n| n.project).cmp(&Name::parse(&b.file).map(|n| n.project))
    });
    Ok(wheels)
}

/// The commit that a release was built from, as stated in the runtime's wheel, which is a few
/// megabytes; the compiler's wheel is a hundred. `None` if there is no wheel for this machine; the
/// commit is then verified when the release is installed.
///
/// # Errors
/// The wheel can't be downloaded, or states no commit.
pub async fn release_commit(
    tools: &LockedTools,
    cache: &Path,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<Option<String>, ToolchainError> {
    let is_runtime_here = |file: &str| {
        Name::parse(file)
            .is_some_and(|name| name.project == "iree_base_runtime" && name.runs_on(std::env::consts::ARCH))
    };
    let Some(wheel) = tools.wheels.iter().find(|wheel| is_runtime_here(&wheel.file)) else {
        return Ok(None);
    };
    let what = format!("the runtime of IREE {}", tools.version);
    progress.on(Event::Note(&format!("reading the commit of {what}")));
    let work = workspace(cache)?;
    let python = python_env::with_pip(cache, cancel).await?;
    let pip = Pip::of(python.executable, work.path(), TIMEOUT);
    let (target, requirements) = (work.path().join("runtime"), work.path().join("requirements.txt"));
    write_requirements(&requirements, &[requirement(wheel)?])?;
    pip.run(&what, tool_arguments(wheel, &target, &requirements), cancel).await?;
    let commit = runtime_commit(&target.join(RUNTIME_FOLDER).join("version.py"))?;
    if commit.is_empty() {
        let detail = "its wheel does not state the commit it was built from".to_owned();
        return Err(ToolchainError::NotFound { what, detail });
    }
    Ok(Some(commit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_ordered_by_number_and_pre_releases_are_left_out() {
        let text =
            "iree-base-compiler (3.13.0)\nAvailable versions: 3.13.0, 3.9.0, 3.10.0rc20260101, 3.10.0\n";
        assert_eq!(releases_of(text), ["3.9.0", "3.10.0", "3.13.0"]);
        assert!(releases_of("ERROR: unknown command").is_empty());
    }

    #[test]
    fn a_report_gives_files_and_hashes() {
        let hash = "6e1f83dc404f5dcdd76354a869cbbb389bd3f93b4623096de3195799ceb323a7";
        let report = format!(
            r#"{{"version": "1", "install": [{{"download_info": {{
                "url": "https://example.com/x/iree_base_compiler-3.13.0-cp311-cp311-manylinux_2_28_x86_64.whl",
                "archive_info": {{"hash": "sha256={hash}"}}}}, "metadata": {{}}}}]}}"#
        );
        let wheels = wheels_of(report.as_bytes()).unwrap();
        assert_eq!(wheels[0].sha256, hash);
        let without = report.replace("\"hash\"", "\"other\"");
        assert!(wheels_of(without.as_bytes()).unwrap_err().contains("the index states no sha256 of"));
        let source = report.replace(".whl", ".tar.gz");
        assert!(wheels_of(source.as_bytes()).unwrap_err().contains("is not a wheel"));
    }
}
