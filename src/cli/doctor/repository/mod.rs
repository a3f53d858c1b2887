//! The repository half of `doctor`: checks that the results published by this repository's workflows can be
//! trusted.
//!
//! A check is a function that examines one property and returns one [`Finding`] with a unique `id`; add it to
//! the list that [`findings`] returns. Its inputs are in [`CheckContext`] and [`Workflows`].

/// The advice to add workflows with `benchgate init`. The command includes `--action`, which is required
/// unless a release was installed.
macro_rules! init {
    ($does:literal) => {
        concat!("`benchgate init --action OWNER/REPO@COMMIT --runner LABELS`, in the suite's folder, ", $does)
    };
}

#[cfg(test)]
mod tests;
mod workflows;

use std::path::Path;

use crate::cli::Terminal;
use crate::cli::store_args::{StoreArgs, runner};
use crate::config::{Config, Store};
use crate::git::Repository;
use crate::model::counted;
use crate::store::{self, BaselineFolder, Files};

use super::machine::needs_gpu;
use super::{CheckContext, Finding};
use workflows::{Role, Workflows};

/// All findings about the repository.
pub(super) fn findings(context: &CheckContext, terminal: &Terminal) -> Vec<Finding> {
    let opened = Repository::open(&context.folder).ok();
    let mut found = vec![repository(context, opened.as_ref())];
    let Some(repository) = &opened else { return found };
    let workflows = Workflows::read(repository.root());
    let expected = context.config.as_ref().map(|config| config.github.workflow.as_str());
    found.extend(workflows::findings(&workflows, expected));
    found.extend(baseline_findings(&workflows, context, repository, terminal));
    found
}

fn repository(context: &CheckContext, opened: Option<&Repository>) -> Finding {
    const ID: &str = "repository";
    match opened {
        Some(repository) => Finding::ok(ID, format!("a git work tree at {}", repository.root().display())),
        None => Finding::note(
            ID,
            format!("{} is not in a git work tree", context.folder.display()),
            "Results name no commit, so nothing can be compared with a merge base.",
            "",
        ),
    }
}

/// Checks the baseline and the policy, and who can change them.
fn baseline_findings(
    workflows: &Workflows,
    context: &CheckContext,
    repository: &Repository,
    terminal: &Terminal,
) -> Vec<Finding> {
    let Some(config) = &context.config else { return Vec::new() };
    let mut found = vec![staleness(config, context, repository, terminal)];
    found.extend(writers(workflows, &config.store));
    found.extend(owners(repository.root(), config));
    found.extend(clocks(config));
    found
}

/// Checks the age of this suite's newest stored session on any machine.
fn staleness(
    config: &Config,
    context: &CheckContext,
    repository: &Repository,
    terminal: &Terminal,
) -> Finding {
    const ID: &str = "staleness";
    const FIX: &str = concat!("Store a session every night: ", init!("writes the workflow."));
    let options = StoreArgs { store: None, branch: None, remote: None };
    let stored = options.over(&config.store, &context.folder);
    let newest = match stored.open(Some(repository), &runner, terminal) {
        Ok(files) => newest(files.as_ref(), &config.suite),
        Err(error) => Err(error.to_string()),
    };
    match newest {
        Err(why) => {
            let fix = match stored.unknown_remote(repository) {
                Some(_) => {
                    "Add the remote (`git remote add NAME URL`) and name it in `[store] remote`, or store in a folder."
                }
                None => "Run `benchgate doctor` where the remote can be reached.",
            };
            let what = format!("the baseline can't be read: {}", why.lines().next().unwrap_or_default());
            Finding::note(ID, what, "Its age is unknown.", fix)
        }
        Ok(None) => Finding::note(
            ID,
            format!("no session of {} is stored", config.suite),
            "Without a measured base there is nothing to compare with, and gradual slowdowns stay undetected.",
            FIX,
        ),
        Ok(Some(began)) => {
            let days = jiff::Timestamp::now().duration_since(began).as_hours() / 24;
            let age = counted(usize::try_from(days).unwrap_or_default(), "day");
            let what = format!("the newest stored session is {age} old");
            if days >= i64::from(config.store.stale_days) {
                let why = "The machine and its drivers may have changed since then, so verdicts get the note `stale-baseline`.";
                Finding::warning(ID, what, why, FIX)
            } else {
                Finding::ok(ID, what)
            }
        }
    }
}

fn newest(files: &dyn Files, suite: &str) -> Result<Option<jiff::Timestamp>, String> {
    let wanted = store::folder_name(suite);
    let shelves = store::baseline_folders(files).map_err(|error| error.to_string())?;
    let mut newest = None;
    for (suite, testbed) in shelves.into_iter().filter(|(suite, _)| *suite == wanted) {
        let shelf = BaselineFolder::open_folder(files, format!("{suite}/{testbed}"))
            .map_err(|error| error.to_string())?;
        // Names sort by time, so the first one with a valid time is the newest.
        for name in shelf.newest(files) {
            if let Some(began) = name.map_err(|error| error.to_string())?.began() {
                newest = newest.max(Some(began));
                break;
            }
        }
    }
    Ok(newest)
}

/// Checks the workflows that add sessions to the baseline.
fn writers(workflows: &Workflows, store: &Store) -> Option<Finding> {
    const ID: &str = "baseline-writer";
    let storing = workflows.with(Role::Stores);
    if let Some(placed) = storing.iter().find(|placed| placed.meets_pull_requests()) {
        return Some(Finding::error(
            ID,
            format!("{placed} stores the results of pull requests"),
            "A pull request could change the baseline that judges it.",
            "Store on `schedule` or on `push` to the main branch.",
        ));
    }
    if let Some(placed) = storing.iter().find(|placed| placed.workflow.cancels) {
        return Some(Finding::warning(
            ID,
            format!("{placed} is cancelled by the next run of its workflow"),
            "A long measurement may never reach the baseline.",
            "Set `cancel-in-progress: false` in its `concurrency`.",
        ));
    }
    let first = storing.first()?;
    let elsewhere = ["BENCHGATE_STORE", "BENCHGATE_STORE_BRANCH"];
    let mut envs = first.job.steps.iter().map(|step| &step.env);
    let is_told = envs.any(|env| elsewhere.iter().any(|name| env.contains_key(*name)));
    if store.branch.is_none() && store.url.is_none() && !is_told {
        return Some(Finding::warning(
            ID,
            format!("{first} stores in the folder {} of its checkout", store.folder.display()),
            "The checkout is deleted after the job, and the session with it.",
            "Set `branch = \"benchgate-baselines\"` or `url` in `[store]`, or commit the folder in that job.",
        ));
    }
    Some(Finding::ok(ID, format!("{first} adds to the baseline")))
}

/// Checks that CODEOWNERS protects the policy. The base's policy judges changes, so everyone who can merge a
/// change of the policy controls the gate.
fn owners(root: &Path, config: &Config) -> Option<Finding> {
    const ID: &str = "policy-owners";
    let places = [".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS"];
    let text = places.iter().find_map(|place| std::fs::read_to_string(root.join(place)).ok());
    let file = config.file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let guards = |line: &str| {
        let pattern = line.split_whitespace().next().unwrap_or_default();
        pattern == "*" || pattern.rsplit('/').next() == Some(file)
    };
    if text.as_deref().is_some_and(|text| text.lines().any(guards)) {
        return Some(Finding::ok(ID, format!("CODEOWNERS guards {file}")));
    }
    root.join(".github").is_dir().then(|| {
        Finding::note(
            ID,
            format!("{file} has no code owner"),
            "The file holds floors, tolerances and waivers. A pull request is judged by the base's copy, so \
            a merged change to this file can loosen the gate for later pull requests.",
            "Add a line for it to .github/CODEOWNERS.",
        )
    })
}

fn clocks(config: &Config) -> Option<Finding> {
    const ID: &str = "clocks";
    if !needs_gpu(Some(config)) {
        return None;
    }
    Some(match &config.measure.lock_clocks {
        Some(_) => Finding::ok(ID, "the GPU's clock is locked during measurement"),
        None => Finding::note(
            ID,
            "the GPU's clock is not locked",
            "The clock changes with temperature and power, so detecting the same effect takes more \
            processes.",
            "Set `lock-clocks = \"base\"` in `[measure]`, if the runner is allowed to lock it.",
        ),
    })
}
