//! The tables of what a suite talks to: where its baselines are stored, and GitHub.

use strum::VariantNames;

use super::fields::{Section, ValueKind, defaulted, optional};
use super::types::CommentWhen;

pub(super) static STORE: Section = Section {
    title: "[store]",
    doc: "In a pull request this is read from the base. `--store`, `--branch` and `--remote` win over it, and \
          so do `BENCHGATE_STORE` and `BENCHGATE_STORE_BRANCH`.",
    fields: &[
        defaulted(
            "folder",
            ValueKind::Inside,
            "\"baselines\"",
            "The folder of the baseline, relative to this file.",
        ),
        optional(
            "url",
            ValueKind::StoreUrl,
            "An object store instead of a folder: `s3://bucket/prefix`, `gs://bucket/prefix`, `az://container/prefix` or \
             `file:///folder`. Credentials and endpoints come from the environment only.",
        ),
        optional(
            "branch",
            ValueKind::Line,
            "A branch of the remote that holds nothing else, instead of a folder: `benchgate-baselines`.",
        ),
        defaulted(
            "remote",
            ValueKind::Line,
            "\"origin\"",
            "The remote of that branch: a name, or an address without credentials.",
        ),
        defaulted(
            "sessions",
            ValueKind::Integer { min: 1, max: 1000 },
            "20",
            "Most sessions that a gate reads, newest first.",
        ),
        defaulted(
            "stale-days",
            ValueKind::Integer { min: 1, max: 3650 },
            "14",
            "Age of the newest session, in days, from which the baseline is called stale.",
        ),
    ],
};

pub(super) static GITHUB: Section = Section {
    title: "[github]",
    doc: "What `benchgate publish` does. In a pull request this is read from the base. docs/github.md tells \
          the whole story.",
    fields: &[
        defaulted(
            "comment",
            ValueKind::Choice(CommentWhen::VARIANTS),
            "\"on-change\"",
            "When the pull request gets its comment. One that is there is kept up to date whatever this says, \
             unless it says `never`.",
        ),
        defaulted(
            "check-run",
            ValueKind::Bool,
            "false",
            "Also post a check run. An inconclusive result fails it; where `fail-on` leaves `inconclusive` out, it is \
             neutral.",
        ),
        defaulted(
            "annotations",
            ValueKind::Bool,
            "true",
            "Print a workflow annotation for each row that fails.",
        ),
        defaulted(
            "workflow",
            ValueKind::Line,
            "\".github/workflows/benchgate.yml\"",
            "Path of the workflow that measures: after a `workflow_run` event nothing else's results are published.",
        ),
        defaulted(
            "author",
            ValueKind::Line,
            "\"github-actions[bot]\"",
            "Who comments, where the token can't say it: an app's `name[bot]`.",
        ),
    ],
};
