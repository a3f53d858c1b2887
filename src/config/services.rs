//! The tables for services that a suite uses: the store of its baselines, and GitHub.

use std::path::PathBuf;

use strum::VariantNames;

use crate::model::StoreUrl;

use super::fields::ValueKind;
use super::problems::Collector;
use super::table::{DeclaredTable, key_values, table};
use super::view::ConfigView;

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
