//! The top level of `benchgate.toml`, and the smallest tables.
//!
//! `[python]`: packages and folders that Python models import, in addition to benchgate's own environment.
//!
//! The tables for services that a suite uses: the store of its baselines, and GitHub.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use strum::VariantNames;

use benchgate_core::model::{Disclose, GpuClock, StoreUrl};

use super::artifact::ARTIFACT;
use super::backend::BACKEND;
use super::command::COMMAND;
use super::fields::{COUNT, ChosenBy, KeyPresence, LINES, Section, ValueKind, defaulted, optional, required};
use super::judging;
use super::model::MODEL;
use super::problems::Collector;
use super::table::{DeclaredTable, key_values, minutes, table};
use super::target::{SIDE, TARGET, TOOLCHAIN};
use super::values::ConfigView;
use super::values::shown;

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

table! {
    #[derive(Debug, Clone, PartialEq, Serialize)]
    pub struct Measure, MEASURE: "[measure]", "";
    "repetitions" => repetitions: Option<u32>, COUNT,
        "Repetitions inside one process. By default 3 to 24, chosen per benchmark from a short trial, so that a \
             process measures for about as long as it takes to start (40 to 200 ms).";
    "min-time" => min_time: Option<Duration>, ValueKind::Duration,
        "Minimum time of one repetition. By default 2.5 to 8 ms, or one iteration.";
    "iterations-per-run" => iterations: Option<u32>, COUNT,
        "Iterations of one repetition, instead of as many as fill `min-time`.";
    "warmup" => warmup: Option<Duration>, ValueKind::Duration,
        "Untimed warm-up of each process. By default at least one iteration and an eighth of the time measured.";
    "processes" => processes: u32 = 8, COUNT, "Processes per benchmark when one side is measured alone.";
    "min-blocks": KeyPresence::Policy(|policy| policy.sequential.min_blocks.to_string()), COUNT,
        "With two sides: blocks (two pairs of a base and a head process, in random order) per benchmark \
        before the first interim analysis (look).";
    "max-blocks": KeyPresence::Policy(|policy| policy.sequential.max_blocks.to_string()),
        COUNT, "Maximum number of blocks: a row still undecided after these is inconclusive.";
    "time-budget" => time_budget: Option<Duration>, ValueKind::Duration,
        "Measuring time of all benchmarks together. After the first look, the undecided rows that need the \
        least time for their next look are measured first. No row gets more than `max-blocks`.";
    "timeout" => timeout: Duration = minutes(5), ValueKind::Duration, "Limit of one benchmark process.";
    "compile-timeout" => compile_timeout: Duration = minutes(10), ValueKind::Duration, "Limit of one compilation.";
    "compile-instructions" => compile_instructions: bool = false, ValueKind::Bool,
        "Count the instructions of each compilation, with one thread and under valgrind, as the exact metric \
        `compile-instructions`. Counting takes 50 to 120 times as long as compiling, at most \
        `compile-timeout`.";
    "export-timeout" => export_timeout: Duration = minutes(10), ValueKind::Duration, "Limit of one export.";
    "cpus" => cpus: Option<Vec<usize>>, ValueKind::List(&ValueKind::Integer { min: 0, max: 4095 }),
        "Processors to pin CPU targets to. By default benchgate leaves one processor to the host.";
    "lock-clocks" => lock_clocks: Option<GpuClock>, ValueKind::Line,
        "Lock the GPU's clock while measuring, and unlock it afterwards: `\"base\"`, the clock that the chip \
        sustains under any load, or a value such as `\"1410MHz\"`. NVIDIA only, and needs permission \
        (docs/gpu-guide.md); without permission benchgate prints a note and continues. Without this key no setting \
        is changed.";
    "profile" => profile: Profiling = Profiling::Changed, ValueKind::Choice(Profiling::VARIANTS),
        "Time per kernel, from separate processes after all measurements; it is never judged, and `benchgate \
        explain` shows it. `changed`: for benchmarks whose latency regressed or improved. \
             `always`: for all. It needs a runtime that includes `iree-profile`.";
    "jobs" => jobs: Option<usize>,
        ValueKind::Integer { min: 1, max: 4096 }, "Parallel compile jobs; by default one per processor.";
    "seed" => seed: Option<u64>, ValueKind::Integer { min: 0, max: i64::MAX },
        "Seed of the order in which processes run, to repeat a schedule. By default each session draws its \
             own, so that the order can't be known beforehand; run.json records it. A pull request is measured \
             with the seed of its base.";
}

/// The benchmarks that are run again under the runtime's profiler after measuring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum Profiling {
    /// Benchmarks whose latency regressed or improved.
    Changed,
    Always,
    Never,
}

key_values! {
    Profiling: ConfigView::word, |word: &Self| format!("{:?}", word.into_str());
    GpuClock: |view: ConfigView<'_, '_>| view.text().and_then(Self::parse), |clock: &Self| format!("\"{clock}\"");
}

/// Reads the table and checks the rules for its values.
pub(super) fn measure(view: ConfigView<'_, '_>, problems: &mut Collector) -> Measure {
    let measure = Measure::read(view);
    for key in ["min-time", "timeout", "compile-timeout", "export-timeout", "time-budget"] {
        if view.get(key).duration().is_some_and(|duration| duration.is_zero()) {
            problems.add(view.get(key).at(), format!("`{key}`: expected more than zero"));
        }
    }
    let cpus = view.get("cpus");
    let numbers: Vec<usize> = cpus.items().filter_map(ConfigView::integer).collect();
    if cpus.is_present() && cpus.items().next().is_none() {
        problems.add(cpus.at(), "`cpus`: the list is empty; leave the key out to let benchgate choose");
    }
    for (index, item) in cpus.items().enumerate() {
        if item.integer().is_some_and(|cpu: usize| numbers[..index.min(numbers.len())].contains(&cpu)) {
            problems.add(item.at(), "`cpus`: a processor is named twice");
        }
    }
    let clock = view.get("lock-clocks");
    if clock.is_present() && clock.text().is_some() && measure.lock_clocks.is_none() {
        problems.add(clock.at(), "`lock-clocks`: expected \"base\" or a clock such as \"1410MHz\"");
    }
    measure
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
                    crate::check::check(
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
