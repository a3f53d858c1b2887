//! The top level of `benchgate.toml`, and the smallest tables.

use crate::model::Disclose;

use super::artifact::ARTIFACT;
use super::backend::BACKEND;
use super::command::COMMAND;
use super::fields::{ChosenBy, Section, ValueKind, defaulted, optional, required};
use super::judging;
use super::measure::MEASURE;
use super::model::MODEL;
use super::python::PYTHON;
use super::services::{GITHUB, STORE};
use super::side::{SIDE, TOOLCHAIN};
use super::target::TARGET;

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
                    let mut problems = crate::config::problems::Collector::default();
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
