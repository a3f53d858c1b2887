//! Reads a configuration from disk and checks every file that it names.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::files;

use super::build::Built;
use super::parse::{collect, collect_policy, collect_policy_of_config, collect_toolchains};
use super::problems::{Collector, ConfigError, ConfigProblems, Problem, shown};
use super::types::PolicyPart;
use super::{Config, Pin, Side, ToolSource};

/// The largest accepted file. A suite of all operators has thousands of models of about 500 bytes each;
/// anything larger is a mistake or an attack.
const LARGEST: u64 = 4 << 20;

/// Reads and parses a configuration, and checks that every file it names exists and is inside the repository:
/// the nearest parent folder with a `.git`, or else the configuration's own folder.
pub fn load(path: &Path) -> Result<Config, ConfigError> {
    let folder = folder_of(path);
    load_within(path, &boundary_of(&folder))
}

/// Loads like [`load`], but accepts no file outside `boundary`; for a checkout without `.git`.
pub fn load_within(path: &Path, boundary: &Path) -> Result<Config, ConfigError> {
    load_checked(path, boundary, check_files)
}

/// Loads a configuration. `check` reports problems with the files that it names.
fn load_checked(
    path: &Path,
    boundary: &Path,
    check: fn(&Built, &Path, &mut Collector),
) -> Result<Config, ConfigError> {
    let text = read(path)?;
    let mut problems = Collector::default();
    let Some(mut built) = collect(&text, path, &mut problems) else {
        return Err(invalid(path, problems.finish(&text, path)));
    };
    check(&built, &canonical(boundary)?, &mut problems);
    let mut part = built.config.policy_part();
    let named = built.config.policy_file.as_deref().map(|file| (file, built.policy_at));
    let mut all = read_policy_file(&mut part, path, named, boundary, &mut problems)?;
    (built.config.policy, built.config.numerics) = (part.policy, part.numerics);
    for (index, limit) in built.config.unmatched_limits() {
        let glob = shown(&limit.benchmark);
        let at = built.limits_at.get(index).copied().unwrap_or(built.policy_at);
        problems.add(at, format!("the [[limit]] of `{glob}` matches no benchmark of the suite"));
    }
    let mut found = problems.finish(&text, path);
    found.append(&mut all);
    if found.is_empty() { Ok(built.config) } else { Err(invalid(path, found)) }
}

/// Replaces the policy with the policy file's, if the configuration has one. `named` is the file's name and
/// the position of that name. Returns the problems of that file.
fn read_policy_file(
    part: &mut PolicyPart,
    config: &Path,
    named: Option<(&Path, usize)>,
    boundary: &Path,
    problems: &mut Collector,
) -> Result<Vec<Problem>, ConfigError> {
    let Some((name, at)) = named else { return Ok(Vec::new()) };
    let file = folder_of(config).join(name);
    if let Some(reason) = unreachable_file(&file, &canonical(boundary)?) {
        problems.add(at, format!("{}: {reason} (policy)", shown(&name.to_string_lossy())));
        return Ok(Vec::new());
    }
    let text = read(&file)?;
    let mut found = Collector::default();
    if let Some(own) = collect_policy(&text, &mut found) {
        // The block counts are keys of [measure], which a policy file can't have.
        let sequential = part.policy.sequential;
        *part = own;
        part.policy.sequential = sequential;
    }
    Ok(found.finish(&text, &file))
}

/// Loads a configuration for judging results that were measured elsewhere. Of the files that it names, only
/// the policy file need exist.
pub fn load_judging(path: &Path) -> Result<Config, ConfigError> {
    load_judging_within(path, &boundary_of(&folder_of(path)))
}

/// Loads like [`load_judging`], for a folder outside any repository.
pub fn load_judging_within(path: &Path, boundary: &Path) -> Result<Config, ConfigError> {
    load_checked(path, boundary, |_, _, _| {})
}

/// Loads only the policy of the configuration at `path`, for a head that is judged by its base's policy. Only
/// `[gate]`, `[[waiver]]`, `[[expect]]`, `[[limit]]`, `[numerics]`, `policy` and the block counts are read,
/// so the rest of that file may be invalid.
pub fn load_policy(path: &Path) -> Result<PolicyPart, ConfigError> {
    let folder = folder_of(path);
    load_policy_within(path, &boundary_of(&folder))
}

/// Loads like [`load_policy`], for a checkout without `.git`.
pub fn load_policy_within(path: &Path, boundary: &Path) -> Result<PolicyPart, ConfigError> {
    let text = read(path)?;
    let mut problems = Collector::default();
    let Some((mut part, file)) = collect_policy_of_config(&text, &mut problems) else {
        return Err(invalid(path, problems.finish(&text, path)));
    };
    let named = file.as_deref().map(|file| (Path::new(file), 0));
    let mut all = read_policy_file(&mut part, path, named, boundary, &mut problems)?;
    let mut found = problems.finish(&text, path);
    found.append(&mut all);
    if found.is_empty() { Ok(part) } else { Err(invalid(path, found)) }
}

/// Loads a list of `[[toolchain]]` tables. Relative paths in it start at the list's folder.
pub fn load_toolchains(path: &Path) -> Result<Vec<Pin>, ConfigError> {
    let text = read(path)?;
    let mut problems = Collector::default();
    let found = collect_toolchains(&text, &mut problems);
    let problems = problems.finish(&text, path);
    let Some(mut pins) = found.filter(|_| problems.is_empty()) else { return Err(invalid(path, problems)) };
    let folder = canonical(&folder_of(path))?;
    for pin in &mut pins {
        if let ToolSource::Path(tree) = &mut pin.source {
            *tree = folder.join(&*tree);
        }
    }
    Ok(pins)
}

fn invalid(path: &Path, problems: Vec<Problem>) -> ConfigError {
    ConfigError::Invalid(ConfigProblems { file: path.to_owned(), problems })
}

fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// The root of the repository that contains `folder`, or `folder` itself.
fn boundary_of(folder: &Path) -> PathBuf {
    let absolute = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let repository = absolute.ancestors().find(|ancestor| ancestor.join(".git").exists()).map(Path::to_owned);
    repository.unwrap_or(absolute)
}

fn canonical(folder: &Path) -> Result<PathBuf, ConfigError> {
    fs::canonicalize(folder).map_err(|source| ConfigError::Unreadable { path: folder.to_owned(), source })
}

/// Reads the text of a configuration file.
pub fn read(path: &Path) -> Result<String, ConfigError> {
    let bytes = files::read_bounded(path, LARGEST).map_err(|source| match source.kind() {
        ErrorKind::FileTooLarge => ConfigError::TooLarge { path: path.to_owned(), limit: LARGEST },
        _ => ConfigError::Unreadable { path: path.to_owned(), source },
    })?;
    String::from_utf8(bytes)
        .map_err(|error| ConfigError::NotText { path: path.to_owned(), at: error.utf8_error().valid_up_to() })
}

/// The reason why a file can't be used, if there is one.
fn unreachable_file(path: &Path, boundary: &Path) -> Option<String> {
    match fs::canonicalize(path) {
        Ok(real) if !real.starts_with(boundary) => Some("lies outside the repository".to_owned()),
        Ok(real) if files::has_lfs_pointer(&real) == Some(true) => {
            Some("is a git-lfs pointer and not its content; run `git lfs pull`".to_owned())
        }
        Ok(real) if real.is_file() => None,
        Ok(_) => Some("is not a file".to_owned()),
        Err(error) if error.kind() == ErrorKind::NotFound => Some("no such file".to_owned()),
        Err(error) => Some(shown(&error.to_string())),
    }
}

fn check_files(built: &Built, boundary: &Path, problems: &mut Collector) {
    let config = &built.config;
    let sides: Vec<(&str, &Side, usize)> = config
        .base
        .iter()
        .map(|side| ("base", side, built.sources_at[0]))
        .chain([("head", &config.head, built.sources_at[1])])
        .collect();
    let several = sides.len() > 1 && sides[0].1.sources != sides[1].1.sources;
    let mut seen = BTreeSet::new();
    for (name, side, at) in sides {
        let folder = config.root.join(&side.sources);
        if !seen.insert(folder.clone()) {
            continue;
        }
        match fs::canonicalize(&folder) {
            Ok(real) if !real.starts_with(boundary) => {
                let path = shown(&side.sources.to_string_lossy());
                problems.add(at, format!("{path}: lies outside the repository (sources of side {name})"));
                continue;
            }
            Ok(real) if real.is_dir() => {}
            _ => {
                let path = shown(&side.sources.to_string_lossy());
                problems.add(at, format!("{path}: no such folder (sources of side {name})"));
                continue;
            }
        }
        let downloaded = |path: &Path| config.artifacts.iter().any(|artifact| artifact.is_at(path));
        for file in built.files.iter().filter(|file| !downloaded(&file.path)) {
            if let Some(reason) = unreachable_file(&folder.join(&file.path), boundary) {
                let path = shown(&side.sources.join(&file.path).to_string_lossy()).replacen("./", "", 1);
                let whose = if several { format!(", side {name}") } else { String::new() };
                problems.add(file.at, format!("{path}: {reason} ({}{whose})", file.what));
            }
        }
    }
}
