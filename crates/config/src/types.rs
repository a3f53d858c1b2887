//! The validated configuration, which is all that code outside `config` sees. The keys are declared and
//! documented in the files of their tables.

use std::collections::BTreeMap;
use std::path::PathBuf;

use benchgate_core::model::{BenchmarkGlob, BenchmarkName, Disclose, SideName, is_of_command};
use benchgate_gate::{Limit, NumericsPolicy, Policy};

use super::fields::ChosenBy;
use super::table::DeclaredTable;
use super::{
    Artifact, Backend, CommandSpec, GitHub, Measure, Model, Pin, PythonSettings, Side, Store, Target,
};

/// A renamed model that could be compared with more than one model of the base.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`renamed-from`: `{from}` → `{to}` is ambiguous: `{from}` is still a model, or `{to}` was one already"
)]
pub struct AmbiguousRename {
    pub from: String,
    pub to: String,
}

/// A complete, valid `benchgate.toml`.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The file from which the configuration was read.
    pub file: PathBuf,
    /// The folder of `file`; relative paths start here.
    pub root: PathBuf,
    pub suite: String,
    /// `[side.base]`; a suite without sides has only the head.
    pub base: Option<Side>,
    pub head: Side,
    pub models: Vec<Model>,
    /// The models that this change renames: new names as keys, and as values the names that the base's policy
    /// uses.
    pub renames: BTreeMap<String, String>,
    pub targets: Vec<Target>,
    /// Files to download and to link into each side's sources.
    pub artifacts: Vec<Artifact>,
    pub commands: Vec<CommandSpec>,
    /// `[[backend]]`, in the order of the file.
    pub backends: Vec<Backend>,
    pub python: PythonSettings,
    pub measure: Measure,
    pub policy: Policy,
    /// The tolerances, including the defaults.
    pub numerics: NumericsPolicy,
    pub disclose: Disclose,
    pub github: GitHub,
    pub store: Store,
    /// The toolchain of `[baseline]`, which stays fixed as a reference.
    pub anchor: Option<Pin>,
    /// `[aliases]`: flags of the tools, each with the name that other versions of the tools use.
    pub aliases: BTreeMap<String, String>,
    /// The file that `policy = "…"` names, as written there; [`super::load`] has already read it.
    pub policy_file: Option<PathBuf>,
}

impl Config {
    /// The side of this name, if the configuration declares it.
    pub fn side(&self, name: SideName) -> Option<&Side> {
        match name {
            SideName::Base => self.base.as_ref(),
            SideName::Head => Some(&self.head),
        }
    }

    /// The name that the configuration declares for a benchmark: that of the command that prints it, or the
    /// benchmark's own.
    pub fn declared_name<'a>(&'a self, benchmark: &'a str) -> &'a str {
        let mut commands = self.commands.iter().map(|command| command.name.as_str());
        commands.find(|command| is_of_command(benchmark, command)).unwrap_or(benchmark)
    }

    /// Renames models of the base as this configuration, a change of the base, declares with `renamed-from`.
    /// If the base has no model of the old name, the rename was merged earlier and there is nothing to do.
    ///
    /// # Errors
    /// A model whose old name is still in use, or whose new name was in use before: it is not clear which
    /// models to compare.
    pub fn rename_in(&mut self, base: &mut Self) -> Result<(), AmbiguousRename> {
        let is_at_base = |name: &str| base.models.iter().any(|model| model.name == name);
        for model in &self.models {
            let Some(from) = model.renamed_from.as_ref().filter(|from| is_at_base(from)) else { continue };
            let kept = self.models.iter().any(|other| other.name == *from) || is_at_base(&model.name);
            let known = self.renames.insert(model.name.clone(), from.clone());
            // The functions of one module are models with the same name.
            let twice = self.renames.values().filter(|other| *other == from).count() > 1;
            if kept || twice || known.is_some_and(|known| known != *from) {
                return Err(AmbiguousRename { from: from.clone(), to: model.name.clone() });
            }
        }
        base.take_names(&self.renames);
        Ok(())
    }

    /// Gives models their new names; `renames` maps new names to old ones.
    pub fn take_names(&mut self, renames: &BTreeMap<String, String>) {
        self.renames.clone_from(renames);
        for model in &mut self.models {
            if let Some((to, _)) = renames.iter().find(|(_, from)| **from == model.name) {
                model.name.clone_from(to);
            }
        }
    }

    /// Copies from the base's configuration everything that a change must not choose for itself: policy,
    /// store and reporting.
    pub fn judge_by(&mut self, base: &Self) {
        // All fields are listed, so that adding a field requires a decision here.
        let Self {
            file: _,
            root,
            suite,
            base: _,
            head: _,
            models,
            renames: _,
            artifacts: _,
            targets,
            commands,
            backends,
            python,
            measure,
            policy,
            numerics,
            disclose,
            github,
            store,
            anchor,
            aliases,
            policy_file,
        } = self;
        suite.clone_from(&base.suite);
        backends.clone_from(&base.backends);
        for python in backends.iter_mut().filter_map(|backend| backend.python.as_mut()) {
            // A relative path starts at its configuration. An interpreter is not in git, so it only exists
            // next to the head's configuration.
            if let Ok(inside) = python.strip_prefix(&base.root) {
                *python = root.join(inside);
            }
        }
        python.judge_by(&base.python);
        measure.clone_from(&base.measure);
        let kept = std::mem::take(&mut policy.expectations);
        policy.clone_from(&base.policy);
        for expectation in &mut policy.expectations {
            // A change that removes an expectation has to make its benchmarks work.
            expectation.removed |= !kept.contains(expectation);
        }
        numerics.clone_from(&base.numerics);
        *disclose = base.disclose;
        github.clone_from(&base.github);
        store.clone_from(&base.store);
        anchor.clone_from(&base.anchor);
        aliases.clone_from(&base.aliases);
        policy_file.clone_from(&base.policy_file);
        for model in models {
            if let Some(base) = base.models.iter().find(|base| base.is(model)) {
                model.judge_by(base);
            }
        }
        for target in targets {
            if let Some(base) = base.targets.iter().find(|base| base.is(target)) {
                target.judge_by(base);
            }
        }
        for command in commands {
            if let Some(base) = base.commands.iter().find(|base| base.name == command.name) {
                command.judge_by(base);
            }
        }
    }

    /// Describes the keys outside the policy in which this configuration differs from the base's: those that
    /// the base chooses, and those that this configuration chooses.
    pub fn changes(&self, base: &Self) -> ConfigChanges {
        let mut all = ConfigChanges::default();
        all.add("[suite]", ChosenBy::Base.change("name", &base.suite, &self.suite));
        all.add("[side.head]", self.head.changes(&base.head));
        if self.base != base.base {
            all.chosen.push("[side.base]".to_owned());
        }
        for model in &self.models {
            let base = base.models.iter().find(|base| base.is(model));
            all.add(
                &format!("[[model]] {}", model.name),
                base.into_iter().flat_map(|base| model.changes(base)),
            );
        }
        for target in &self.targets {
            let base = base.targets.iter().find(|base| base.is(target));
            all.add(
                &format!("[[target]] {}", target.name),
                base.into_iter().flat_map(|base| target.changes(base)),
            );
        }
        all.add_artifacts(&self.artifacts, &base.artifacts);
        for command in &self.commands {
            let base = base.commands.iter().find(|base| base.name == command.name);
            all.add(
                &format!("[[command]] {}", command.name),
                base.into_iter().flat_map(|base| command.changes(base)),
            );
        }
        let mut judged = self.clone();
        judged.judge_by(base);
        if judged.backends != self.backends {
            all.ignored.push("[[backend]]".to_owned());
        }
        all.add("[python]", self.python.changes(&base.python));
        all.add("[measure]", self.measure.changes(&base.measure));
        all.add("[report]", ChosenBy::Base.change("disclose", &base.disclose, &self.disclose));
        all.add("[baseline]", ChosenBy::Base.change("anchor", &base.anchor, &self.anchor));
        all.add("[store]", self.store.changes(&base.store));
        all.add("[github]", self.github.changes(&base.github));
        all.add("[aliases]", ChosenBy::Base.change("aliases", &base.aliases, &self.aliases));
        all.add("the top level:", ChosenBy::Base.change("policy", &base.policy_file, &self.policy_file));
        all
    }

    /// Limits that match no benchmark of the suite and would therefore never be judged.
    pub(super) fn unmatched_limits(&self) -> Vec<(usize, &Limit)> {
        let models = self.models.iter().flat_map(|model| {
            let names = self.targets.iter().map(move |target| (model, target));
            names.map(|(model, target)| BenchmarkName::from_parts(&model.name, &target.name, &model.function))
        });
        let commands = self.commands.iter().map(CommandSpec::benchmarks);
        // The benchmarks of a command that does not declare its rows are unknown before it runs.
        let Some(commands) = commands.collect::<Option<Vec<_>>>() else { return Vec::new() };
        let names: Vec<BenchmarkName> = models.chain(commands.into_iter().flatten()).collect();
        let is_unmatched = |(_, limit): &(usize, &Limit)| {
            let glob = BenchmarkGlob::new(&limit.benchmark);
            !names.iter().any(|name| glob.matches(name.as_str()))
        };
        self.policy.limits.iter().enumerate().filter(is_unmatched).collect()
    }

    pub fn policy_part(&self) -> PolicyPart {
        PolicyPart { policy: self.policy.clone(), numerics: self.numerics.clone() }
    }
}

/// Descriptions of the changes to a configuration, such as `[measure] timeout: 300s → 1s`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConfigChanges {
    /// Changes that were ignored, because the base chooses these keys.
    pub ignored: Vec<String>,
    /// Changes that took effect, because the head chooses these keys.
    pub chosen: Vec<String>,
}

impl ConfigChanges {
    fn add(&mut self, table: &str, changes: impl IntoIterator<Item = (ChosenBy, String)>) {
        for (by, change) in changes {
            let list = if by == ChosenBy::Base { &mut self.ignored } else { &mut self.chosen };
            list.push(format!("{table} {change}"));
        }
    }

    fn add_artifacts(&mut self, head: &[Artifact], base: &[Artifact]) {
        for artifact in head {
            let table = format!("[[artifact]] {}", artifact.name);
            match base.iter().find(|base| base.name == artifact.name) {
                Some(base) => self.add(&table, artifact.changes(base)),
                None => self.chosen.push(format!("{table}: added")),
            }
        }
        let removed = base.iter().filter(|base| head.iter().all(|artifact| artifact.name != base.name));
        self.chosen.extend(removed.map(|base| format!("[[artifact]] {}: removed", base.name)));
    }
}

/// The part of a configuration by which results are judged.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyPart {
    pub policy: Policy,
    /// The tolerances, including the defaults.
    pub numerics: NumericsPolicy,
}
