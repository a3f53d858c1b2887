//! The second pass: converts values into a [`Config`], and checks every rule that involves more than one
//! value.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::model::Disclose;

use super::judging;
use super::names::NamedFile;
use super::problems::Collector;
use super::table::DeclaredTable;
use super::view::ConfigView;
use super::{
    CommandSpec, Config, GitHub, artifact, backend, command, flags, functions, measure, model, policy,
    python, services, side, target,
};

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
    let models = functions::in_models(root.get("model"), models, &mut files, problems);
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
    let (base, head) = side::sides(root, problems);
    let backends = backend::backends(root, &models, &folder, problems);
    let python = python::python(root.get("python"), problems);
    let measure = measure::measure(root.get("measure"), problems);
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
            store: services::store(root.get("store"), problems),
            anchor: {
                let anchor = root.get("baseline").get("anchor");
                anchor.is_present().then(|| side::pin(anchor, problems))
            },
            policy_file,
        },
        files,
        sources_at: [side_sources("base"), side_sources("head")],
        policy_at: root.get("policy").at(),
        limits_at: root.get("limit").items().map(ConfigView::at).collect(),
    }
}
