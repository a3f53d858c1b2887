//! The validated configuration: only this leaves `config`. The files of the tables declare and document each key.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::gate::{NumericsPolicy, Policy};
use crate::model::{Disclose, SideName};

use super::fields::ChosenBy;
use super::table::DeclaredTable;
use super::{Backend, CommandSpec, GitHub, Measure, Model, Pin, PythonSettings, Side, Store, Target};

/// A whole, valid `benchgate.toml`.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The file it was read from.
    pub file: PathBuf,
    /// The folder of `file`; relative paths start here.
    pub root: PathBuf,
    pub suite: String,
    /// `[side.base]` and `[side.head]`; a suite without them has head only.
    pub base: Option<Side>,
    pub head: Side,
    pub models: Vec<Model>,
    pub targets: Vec<Target>,
    pub commands: Vec<CommandSpec>,
    /// `[[backend]]`, in the order of the file.
    pub backends: Vec<Backend>,
    pub python: PythonSettings,
    pub measure: Measure,
    pub policy: Policy,
    /// Defaults included.
    pub numerics: NumericsPolicy,
    pub disclose: Disclose,
    pub github: GitHub,
    pub store: Store,
    /// The frozen toolchain of `[baseline]`.
    pub anchor: Option<Pin>,
    /// `[aliases]`: flags of the tools by another name that other versions know them by.
    pub aliases: BTreeMap<String, String>,
    /// The file that `policy = "…"` names, as written; [`super::load`] has already read it.
    pub policy_file: Option<PathBuf>,
}

impl Config {
    /// The side of this name, where the configuration has one.
    pub fn side(&self, name: SideName) -> Option<&Side> {
        match name {
            SideName::Base => self.base.as_ref(),
            SideName::Head => Some(&self.head),
        }
    }

    /// Takes over from the configuration of the base all that a change must not decide about itself: what
    /// judges it, where it is stored and how it is reported.
    pub fn judge_by(&mut self, base: &Self) {
        // Naming every field makes a new one a decision.
        let Self {
            file: _,
            root,
            suite,
            base: _,
            head: _,
            models,
            targets,
            commands: _,
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
            // Relative paths start at the configuration, and untracked interpreters are only next to this one.
            if let Ok(inside) = python.strip_prefix(&base.root) {
                *python = root.join(inside);
            }
        }
        python.judge_by(&base.python);
        measure.clone_from(&base.measure);
        policy.clone_from(&base.policy);
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
    }

    /// The keys outside of the policy in which this configuration differs from the base's: those that the base chooses, and
    /// those that this one does.
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

    /// The part that judges.
    pub fn policy_part(&self) -> PolicyPart {
        PolicyPart { policy: self.policy.clone(), numerics: self.numerics.clone() }
    }
}

/// What a change does to a configuration, in words: `[measure] timeout: 300s → 1s`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConfigChanges {
    /// Keys that the base chooses, so that these changes were ignored.
    pub ignored: Vec<String>,
    /// Keys that the head chooses.
    pub chosen: Vec<String>,
}

impl ConfigChanges {
    fn add(&mut self, table: &str, changes: impl IntoIterator<Item = (ChosenBy, String)>) {
        for (by, change) in changes {
            let list = if by == ChosenBy::Base { &mut self.ignored } else { &mut self.chosen };
            list.push(format!("{table} {change}"));
        }
    }
}

/// The part of a configuration that judges.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyPart {
    pub policy: Policy,
    /// Defaults included.
    pub numerics: NumericsPolicy,
}
