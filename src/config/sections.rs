//! The top level of `benchgate.toml`, and the smallest tables.
//!
//! `[python]`: packages and folders that Python models import, in addition to benchgate's own environment.
//!
//! The tables for services that a suite uses: the store of its baselines, and GitHub.

use std::path::PathBuf;

use strum::VariantNames;

use crate::model::{Disclose, StoreUrl};

use super::artifact::ARTIFACT;
use super::backend::BACKEND;
use super::command::COMMAND;
use super::fields::{ChosenBy, LINES, Section, ValueKind, defaulted, optional, required};
use super::judging;
use super::measure::MEASURE;
use super::model::MODEL;
use super::problems::{Collector, shown};
use super::table::{DeclaredTable, key_values, table};
use super::target::{SIDE, TARGET, TOOLCHAIN};
use super::view::ConfigView;

pub(super) static ROOT: Section = Section {
    title: "the top level",
    doc: "",
    fields: &[
        required("suite", ValueKind::Table(&SUITE), "The suite."),
        optional(
            "toolchain",
            ValueKind::Table(&TOOLCHAIN),
            "The IREE tools of every side that does not pin its own.",
        )
        .by(ChosenBy::Head),
        optional("side", ValueKind::Table(&SIDES), "Differences between base and head.").by(ChosenBy::Head),
        optional("model", ValueKind::Tables(&MODEL), "The models to measure.").by(ChosenBy::Each),
        optional("target", ValueKind::Tables(&TARGET), "The devices to measure them on.").by(ChosenBy::Each),
        optional("artifact", ValueKind::Tables(&ARTIFACT), "Files to download.").by(ChosenBy::Head),
        optional("command", ValueKind::Tables(&COMMAND), "The programs to build and measure.")
            .by(ChosenBy::Each),
        optional("torchbench", ValueKind::Table(&TORCHBENCH), "The checkout of models named `torchbench:…`.")
            .by(ChosenBy::Head),
        optional(
            "python",
            ValueKind::Table(&PYTHON),
            "Packages and folders that models in Python import from.",
        )
        .by(ChosenBy::Each),
        optional(
            "backend",
            ValueKind::Tables(&BACKEND),
            "Other backends to measure the models on, for context.",
        ),
        optional("measure", ValueKind::Table(&MEASURE), "Measurement settings."),
        judging::GATE_TABLE,
        judging::WAIVERS,
        judging::EXPECTATIONS,
        judging::LIMITS,
        judging::NUMERICS_TABLE,
        judging::NUMERICS_OVERRIDES,
        optional("report", ValueKind::Table(&REPORT), "Contents of reports."),
        optional("baseline", ValueKind::Table(&BASELINE), "Settings that make stored sessions comparable."),
        optional("store", ValueKind::Table(&STORE), "Where baselines are stored, and how they are read."),
        optional("github", ValueKind::Table(&GITHUB), "What is posted to GitHub, and when."),
        optional(
            "aliases",
            ValueKind::Renames,
            "Flags that were renamed between versions of the tools, in either direction: \"--iree-hip-target\" = \
             \"--iree-rocm-target\". `benchgate bisect` uses the name that a version accepts.",
        ),
        optional(
            "policy",
            ValueKind::Relative,
            "A separate file for `[gate]`, `[[waiver]]`, `[[expect]]`, `[[limit]]`, `[numerics]` and \
            `[[numerics-override]]`, relative to this one, so that CODEOWNERS can guard it. `benchgate.toml` \
            must then not contain these tables.",
        ),
    ],
};

static SUITE: Section = Section {
    title: "[suite]",
    doc: "",
    fields: &[required("name", ValueKind::Name, "Name of the suite in reports and in the baseline store.")],
};

static SIDES: Section = Section {
    title: "[side]",
    doc: "",
    fields: &[
        optional(
            "base",
            ValueKind::Table(&SIDE),
            "The side that head is compared with. Without it, only head is measured.",
        ),
        optional("head", ValueKind::Table(&SIDE), "The side that is judged."),
    ],
};

static BASELINE: Section = Section {
    title: "[baseline]",
    doc: "In a pull request this is read from the base. docs/baselines.md describes anchors.",
    fields: &[optional(
        "anchor",
        ValueKind::Table(&TOOLCHAIN),
        "A frozen toolchain that `baseline update --measure` and `gate --stored` measure in the same session, in pairs with \
         head. benchgate then stores and compares the ratio of head to this toolchain. Change it only if \
         necessary: ratios to different anchors can't be compared.",
    )],
};

static TORCHBENCH: Section = Section {
    title: "[torchbench]",
    doc: "A checkout of PyTorch's torchbench (github.com/pytorch/benchmark), or a folder with the same \
    layout: `torchbenchmark/models/NAME/__init__.py` defines a class `Model`. Options of its models are \
    `batch_size` and `weights` (`\"published\"` or `\"random\"`). The result names the checkout's commit.",
    fields: &[
        required(
            "path",
            ValueKind::AnyPath,
            "The checkout, relative to this file's folder. With `gate --base` each side has its own copy of the repository, \
             so a checkout outside the repository needs an absolute path (a submodule does not).",
        ),
        optional(
            "options",
            ValueKind::Scalars,
            "Options of all its models, for example `weights = \"random\"`, which downloads nothing. A model's own \
            options take precedence.",
        ),
    ],
};

static REPORT: Section = Section {
    title: "[report]",
    doc: "In a pull request this is read from the base.",
    fields: &[defaulted(
        "disclose",
        ValueKind::Choice(Disclose::WORDS),
        "\"all\"",
        "`ratios` omits absolute times, sizes and counts from every report, comment, summary and annotation. \
        `run.json` keeps them, because the verdict is computed from them.",
    )],
};

table! {
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct PythonSettings, PYTHON: "[python]",
        "Packages and folders that models in Python import from, in addition to torch and its companions.";
    head "requirements" => requirements: Vec<String>, LINES,
        "Packages from pip's index, such as `einops==0.8.1`. `benchgate tools pin` locks them and their \
             dependencies by hash, in versions that fit benchgate's own packages. It also locks the \
             `requirements.txt` of each `torchbench:` model.";
    head "path" => path: Vec<PathBuf>, ValueKind::List(&ValueKind::Inside),
        "Folders to import from, relative to the sources folder, which is searched before them.";
}

/// Reads the table and checks its values.
pub(super) fn python(view: ConfigView<'_, '_>, problems: &mut Collector) -> PythonSettings {
    for item in view.get("requirements").items() {
        let Some(text) = item.text() else { continue };
        if !is_lockable(text) {
            let message = format!(
                "`requirements`: expected a package of an index such as `einops==0.8.1`, found `{}`; addresses, paths and \
                 options of pip can't be locked by hash",
                shown(text)
            );
            problems.add(item.at(), message);
        }
    }
    PythonSettings::read(view)
}

/// Returns true if a line of requirements names a package of an index; only those can be locked by hash.
pub fn is_lockable(line: &str) -> bool {
    line.starts_with(|c: char| c.is_ascii_alphanumeric())
        && !line.contains(['@', '/', '\\'])
        && !line.contains(" -")
        && line.len() <= 200
}

table! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Store, STORE: "[store]",
        "In a pull request this is read from the base. `--store`, `--branch`, `--remote`, `BENCHGATE_STORE` and \
        `BENCHGATE_STORE_BRANCH` override it.";
    "folder" => folder: PathBuf = PathBuf::from("baselines"),
        ValueKind::Inside, "The folder of the baseline, relative to this file.";
    "url" => url: Option<StoreUrl>, ValueKind::StoreUrl,
        "An object store instead of a folder: `s3://bucket/prefix`, `gs://bucket/prefix`, `az://container/prefix` or \
             `file:///folder`. Credentials and endpoints come from the environment only.";
    "branch" => branch: Option<String>, ValueKind::Line,
        "A separate branch of the remote, instead of a folder: `benchgate-baselines`.";
    "remote" => remote: String = "origin".to_owned(), ValueKind::Line,
        "The remote of that branch: a name, or an address without credentials.";
    "sessions" => sessions: usize = 20,
        ValueKind::Integer { min: 1, max: 1000 }, "Maximum number of sessions that a gate reads, newest first.";
    "stale-days" => stale_days: u32 = 14, ValueKind::Integer { min: 1, max: 3650 },
        "Age of the newest session, in days, at which the baseline counts as stale.";
}

/// Reads the table and checks that it names only one place.
pub(super) fn store(view: ConfigView<'_, '_>, problems: &mut Collector) -> Store {
    let places = ["folder", "url", "branch"].into_iter().filter(|key| view.get(key).is_present());
    if let [_, second, ..] = places.collect::<Vec<_>>().as_slice() {
        let what = format!("`{second}`: set only one of `folder`, `url` and `branch`");
        problems.add(view.get(second).at(), what);
    }
    Store::read(view)
}

impl Default for Store {
    fn default() -> Self {
        Self::read(ConfigView::ABSENT)
    }
}

table! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct GitHub, GITHUB: "[github]",
        "Settings of `benchgate publish`. In a pull request this table is read from the base; the publishing \
        job reads it from the default branch. See docs/action.md.";
    "comment" => comment: CommentWhen = CommentWhen::OnChange, ValueKind::Choice(CommentWhen::VARIANTS),
        "When the pull request gets its first comment. `on-change`: if the verdict is not *pass*, \
         if there is a warning, if a row is waived or if a benchmark is new. `on-failure`: if the verdict \
         is neither *pass* nor *improved*. Except with `never`, an existing comment is kept up to date.";
    "check-run" => check_run: bool = false, ValueKind::Bool,
        "Also post a check run. An inconclusive result fails the check run, or makes it neutral if \
        `fail-on` omits `inconclusive`.";
    "annotations" => annotations: bool = true,
        ValueKind::Bool, "Print a workflow annotation for each row that fails.";
    "workflow" => workflow: String = ".github/workflows/benchgate.yml".to_owned(), ValueKind::Line,
        "Path of the workflow that measures: after a `workflow_run` event only its results are published.";
    "author" => author: String = "github-actions[bot]".to_owned(), ValueKind::Line,
        "Account that comments, if the token does not identify it: an app's `name[bot]`.";
}

impl Default for GitHub {
    fn default() -> Self {
        Self::read(ConfigView::ABSENT)
    }
}

/// The conditions under which a pull request gets a comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantArray, strum::VariantNames)]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum CommentWhen {
    Always,
    /// Only if a row of the suite changed.
    OnChange,
    /// Only if the verdict is neither pass nor improved.
    OnFailure,
    Never,
}

key_values! {
    CommentWhen: ConfigView::word, |word: &Self| format!("{:?}", word.into_str());
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_default_of_the_grammar_is_of_its_own_kind() {
        fn look(section: &'static Section, count: &mut usize) {
            for field in section.fields {
                if let Some(text) = field.default() {
                    let text = format!("default = {text}");
                    let document = toml_span::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
                    let mut problems = Collector::default();
                    crate::config::check::check(
                        document.pointer("/default").unwrap(),
                        &field.kind,
                        field.key,
                        &mut problems,
                    );
                    assert!(problems.finish(&text, Path::new("f")).is_empty(), "{} {text}", section.title);
                    *count += 1;
                }
                if let Some(inner) = field.kind.section() {
                    look(inner, count);
                }
            }
        }
        let mut count = 0;
        look(&ROOT, &mut count);
        assert!(count > 40, "{count}");
    }
}
