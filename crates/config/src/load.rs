//! Reads a configuration from disk and checks every file that it names.
//!
//! Parses text into a [`Config`] without any access to the file system.
//!
//! The second pass: converts values into a [`Config`], and checks every rule that involves more than one
//! value.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use toml_span::Value;

use benchgate_core::model::{Disclose, is_date};
use benchgate_host::files;

use super::check::check_table;
use super::problems::{Collector, ConfigError, ConfigProblems, NamedFile, Problem};
use super::table::DeclaredTable;
use super::types::PolicyPart;
use super::values::ConfigView;
use super::values::shown;
use super::{
    CommandSpec, Config, GitHub, Pin, Side, ToolSource, artifact, backend, command, flags, judging, model,
    policy, sections, target,
};

/// The largest accepted file. A suite of all operators has thousands of models of about 500 bytes each;
/// anything larger is a mistake or an attack.
const LARGEST: u64 = 4 << 20;

/// Reads and parses a configuration, and checks that every file it names exists and is inside the repository:
/// the nearest parent folder with a `.git`, or else the configuration's own folder.
pub fn load(path: &Path) -> Result<Config, ConfigError> {
    load_within(path, &boundary_of(&folder_of(path)))
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
    let boundary = boundary_of(&folder_of(path));
    let text = read(path)?;
    let mut problems = Collector::default();
    let Some((mut part, file)) = collect_policy_of_config(&text, &mut problems) else {
        return Err(invalid(path, problems.finish(&text, path)));
    };
    let named = file.as_deref().map(|file| (Path::new(file), 0));
    let mut all = read_policy_file(&mut part, path, named, &boundary, &mut problems)?;
    let mut found = problems.finish(&text, path);
    found.append(&mut all);
    if found.is_empty() { Ok(part) } else { Err(invalid(path, found)) }
}

/// Checks tables that a configuration may contain as policy, such as `[[limit]]`. Returns the first problem.
pub fn check_policy(text: &str) -> Result<(), String> {
    let (mut problems, file) = (Collector::default(), Path::new(""));
    collect_policy(text, &mut problems);
    problems.finish(text, file).into_iter().next().map_or(Ok(()), |problem| Err(problem.message))
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
            Some("is a git-lfs pointer, not the file's content; run `git lfs pull`".to_owned())
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

/// Parses and validates a `benchgate.toml`. `file` is only used for messages and as the start of relative
/// paths.
///
/// A separate policy file is not read; [`super::load`] does that.
pub fn parse(text: &str, file: &Path) -> Result<Config, ConfigProblems> {
    let mut problems = Collector::default();
    let built = collect(text, file, &mut problems);
    let problems = problems.finish(text, file);
    match built {
        Some(built) if problems.is_empty() => Ok(built.config),
        _ => Err(ConfigProblems { file: file.to_owned(), problems }),
    }
}

/// Parses like [`parse`], but leaves `problems` open so that the caller can check more.
pub(super) fn collect(text: &str, file: &Path, problems: &mut Collector) -> Option<Built> {
    let document = document(text, problems)?;
    check_table(&document, &sections::ROOT, problems);
    Some(build(ConfigView::new(&document), file, problems))
}

/// Parses a file that contains only policy.
fn collect_policy(text: &str, problems: &mut Collector) -> Option<PolicyPart> {
    let document = document(text, problems)?;
    check_table(&document, &judging::POLICY, problems);
    let root = ConfigView::new(&document);
    // The block counts belong to `[measure]`, which a policy file can't have.
    Some(policy::part(root, root.get("measure"), problems))
}

/// Reads only the policy of a whole configuration, and the name of its policy file.
fn collect_policy_of_config(text: &str, problems: &mut Collector) -> Option<(PolicyPart, Option<String>)> {
    let document = document(text, problems)?;
    let root = ConfigView::new(&document);
    for field in judging::POLICY.fields.iter().chain(sections::ROOT.field("policy")) {
        if let Some(value) = document.as_table().and_then(|table| table.get(field.key)) {
            super::check::check(value, &field.kind, field.key, problems);
        }
    }
    let policy_file = root.get("policy").text().map(str::to_owned);
    Some((policy::part(root, root.get("measure"), problems), policy_file))
}

/// Parses a list of toolchains.
fn collect_toolchains(text: &str, problems: &mut Collector) -> Option<Vec<Pin>> {
    let document = document(text, problems)?;
    check_table(&document, &target::TOOLCHAINS, problems);
    Some(
        ConfigView::new(&document).get("toolchain").items().map(|item| target::pin(item, problems)).collect(),
    )
}

fn document<'a>(text: &'a str, problems: &mut Collector) -> Option<Value<'a>> {
    match toml_span::parse(text) {
        Ok(document) => Some(document),
        Err(error) => {
            let at = error.span.start;
            let date = text.get(at..).and_then(|rest| rest.get(..10)).filter(|date| is_date(date));
            problems.add(
                at,
                match date {
                    Some(date) => format!("a date is a string: write \"{date}\", with quotes"),
                    None => format!("not valid TOML: {}", shown(&error.to_string())),
                },
            );
            None
        }
    }
}

/// A configuration, and the positions that the checks of `load` need for their messages.
pub(super) struct Built {
    pub config: Config,
    pub files: Vec<NamedFile>,
    /// Offsets of the `sources` of base and of head.
    pub sources_at: [usize; 2],
    pub policy_at: usize,
    /// Offsets of the limits; empty if the policy is in its own file.
    pub limits_at: Vec<usize>,
}

impl Config {
    /// A suite that has only commands, with the default of every other table.
    pub fn of_commands(suite: &str, commands: Vec<CommandSpec>) -> Self {
        // Building from an empty document reports missing keys, which don't matter here.
        let mut problems = Collector::default();
        let defaults = build(ConfigView::ABSENT, Path::new("benchgate.toml"), &mut problems).config;
        Self { suite: suite.to_owned(), commands, ..defaults }
    }
}

/// Builds as much as possible. The result is only meaningful if `problems` stays empty.
pub(super) fn build(root: ConfigView<'_, '_>, file: &Path, problems: &mut Collector) -> Built {
    let targets = target::targets(root, problems);
    let mut files = Vec::new();
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    };
    let models = model::models(root, &targets, &folder, &mut files, problems);
    let models = model::in_models(root.get("model"), models, &mut files, problems);
    let artifacts = artifact::artifacts(root, problems);
    let commands = command::commands(root, &models, problems);
    let has = |table: &str| root.get(table).items().next().is_some();
    if !has("model") && !has("command") {
        problems.add(root.at(), "no [[model]] or [[command]]: a suite needs at least one");
    }
    if has("model") && !root.get("target").is_present() {
        problems.add(root.at(), "no [[target]]: a suite with models needs at least one");
    }
    if has("command") && root.get("baseline").get("anchor").is_present() {
        let at = root.get("baseline").get("anchor").at();
        problems.add(at, "`anchor` is not valid with [[command]]: no toolchain builds a command, so it would be compared with itself and hide every change");
    }
    flags::check(root, problems);
    let (base, head) = target::sides(root, problems);
    let backends = backend::backends(root, &models, &folder, problems);
    let python = sections::python(root.get("python"), problems);
    let measure = sections::measure(root.get("measure"), problems);
    let policy_file = root.get("policy").text().map(PathBuf::from);
    if policy_file.is_some() {
        for field in judging::POLICY.fields {
            for (name, at, _) in root.entries().filter(|(name, ..)| *name == field.key) {
                problems.add(at, format!("`{name}` belongs in the file that `policy` names"));
            }
        }
    }
    let part = policy::part(root, root.get("measure"), problems);
    let side_sources = |name| root.get("side").get(name).get("sources").at();
    Built {
        config: Config {
            file: file.to_owned(),
            root: folder,
            suite: root.get("suite").get("name").owned(),
            base,
            head,
            models,
            renames: BTreeMap::new(),
            targets,
            artifacts,
            commands,
            backends,
            python,
            measure,
            policy: part.policy,
            numerics: part.numerics,
            disclose: root.get("report").get("disclose").text().and_then(Disclose::parse).unwrap_or_default(),
            github: GitHub::read(root.get("github")),
            aliases: root
                .get("aliases")
                .entries()
                .map(|(flag, _, other)| (flag.to_owned(), other.owned()))
                .collect(),
            store: sections::store(root.get("store"), problems),
            anchor: {
                let anchor = root.get("baseline").get("anchor");
                anchor.is_present().then(|| target::pin(anchor, problems))
            },
            policy_file,
        },
        files,
        sources_at: [side_sources("base"), side_sources("head")],
        policy_at: root.get("policy").at(),
        limits_at: root.get("limit").items().map(ConfigView::at).collect(),
    }
}

/// Configurations on disk: the files that they name, and files that are not configurations.
#[cfg(test)]
mod tests {
    use super::super::tests::MINIMAL;
    use super::*;

    fn suite_on_disk(extra: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("benchgate.toml");
        fs::write(&file, format!("{extra}{MINIMAL}")).unwrap();
        (folder, file)
    }

    fn problems_of(path: &Path) -> Vec<Problem> {
        match load(path) {
            Ok(_) => Vec::new(),
            Err(ConfigError::Invalid(problems)) => problems.problems,
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn a_missing_model_file_is_reported_where_it_is_named() {
        let (folder, file) = suite_on_disk("");
        let problems = problems_of(&file);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert_eq!((problems[0].line, problems[0].column), (9, 11));
        assert_eq!(problems[0].message, "a.mlir: no such file (source of model `a`)");
        fs::write(folder.path().join("a.mlir"), "").unwrap();
        assert_eq!(problems_of(&file), []);
    }

    #[test]
    fn a_file_missing_on_one_side_names_the_side() {
        let (folder, file) = suite_on_disk("");
        let text = fs::read_to_string(&file).unwrap() + "[side.base]\nsources = \"old\"\n";
        fs::write(&file, text).unwrap();
        fs::write(folder.path().join("a.mlir"), "").unwrap();
        assert_eq!(problems_of(&file)[0].message, "old: no such folder (sources of side base)");
        fs::create_dir(folder.path().join("old")).unwrap();
        assert_eq!(
            problems_of(&file)[0].message,
            "old/a.mlir: no such file (source of model `a`, side base)"
        );
    }

    #[test]
    fn a_link_out_of_the_repository_is_refused() {
        let outside = tempfile::NamedTempFile::new().unwrap();
        let (folder, file) = suite_on_disk("");
        std::os::unix::fs::symlink(outside.path(), folder.path().join("a.mlir")).unwrap();
        assert!(problems_of(&file)[0].message.contains("lies outside the repository"));
    }

    #[test]
    fn a_policy_file_is_read_and_its_problems_carry_its_name() {
        let (folder, file) = suite_on_disk("policy = \"policy.toml\"\n");
        fs::write(folder.path().join("a.mlir"), "").unwrap();
        assert!(problems_of(&file)[0].message.contains("policy.toml: no such file"));
        let policy = folder.path().join("policy.toml");
        fs::write(&policy, "[gate]\nalpha = 0.05\n").unwrap();
        assert_eq!(load(&file).unwrap().policy.alpha, 0.05);
        assert_eq!(load_policy(&file).unwrap().policy.alpha, 0.05);
        fs::write(&policy, "[measure]\nseed = 2\n").unwrap();
        let problems = problems_of(&file);
        assert!(problems[0].file.ends_with("policy.toml"));
        assert!(problems[0].message.contains("unknown key `measure`"), "{problems:?}");
    }

    #[test]
    fn the_policy_of_a_base_is_read_whatever_else_its_file_holds() {
        let (_folder, file) = suite_on_disk("");
        fs::write(&file, "[gate]\nalpha = 0.02\n[future]\nkey = 1\n[measure]\nmax-blocks = 6\n").unwrap();
        let part = load_policy(&file).unwrap();
        assert_eq!(part.policy.alpha, 0.02);
        assert_eq!(part.policy.sequential.max_blocks, 6);
        fs::write(&file, "[gate]\nalpah = 0.02\n").unwrap();
        assert!(load_policy(&file).is_err());
    }

    #[test]
    fn bytes_that_are_not_text_are_refused_with_their_place() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), b"[suite]\n\xff").unwrap();
        let error = load(file.path()).unwrap_err();
        assert!(error.to_string().ends_with("it is not UTF-8 text (first at byte 8)"), "{error}");
    }

    #[test]
    fn an_endless_file_is_refused() {
        let error = load(Path::new("/dev/zero")).unwrap_err();
        assert!(error.to_string().contains("not a regular file"), "{error}");
        let folder = tempfile::tempdir().unwrap();
        let large = folder.path().join("benchgate.toml");
        fs::File::create(&large).unwrap().set_len(3 << 30).unwrap();
        let error = load(&large).unwrap_err();
        assert!(error.to_string().contains("too large"), "{error}");
    }
}
