//! `benchgate gate`: measures both sides, compares them and judges.

use std::path::{Path, PathBuf};

use crate::config::{self, Config, ConfigChanges, GitHub};
use crate::exit_code::ExitCode;
use crate::gate::{self, CompareOptions, Comparison};
use crate::git::{MovedSubmodule, Repository};
use crate::model::{SideName, short_commit};
use crate::pipeline::{self, MeasuredRun, SideInput};

use super::bundle_args::{BundleArgs, Half};
use super::policy_args::PolicyArgs;
use super::posting::{self, Situation};
use super::rendering::{ComparisonArgs, Destination, RunFileArgs};
use super::reporting::{GithubArgs, PostArgs, Story, Texts};
use super::run_args::BackendArgs;
use super::session::{MeasureArgs, side, with_anchor};
use super::store_args::{StoreArgs, checkout_runner};
use super::stored::{Baseline, likely_base};
use super::{CliError, ErrorKind, Terminal, provenance, runtime};

/// Measure both sides, compare and judge
///
/// Without --base, the sides are [side.base] and [side.head] of the configuration. With --base, the
/// head is the working tree and the base is the merge base of HEAD and REF, checked out read-only
/// and built from its own configuration, lock and sources. The policy then comes from the merge
/// base, so that a change can't loosen the gate that judges it.
///
/// With --stored, or if there is no base to measure, only head is measured and compared with the stored baseline:
/// sessions of this testbed whose commits are ancestors of the merge base (with --base) or of HEAD.
///
/// A job of GitHub Actions for a pull request needs --base.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  benchgate gate -c examples/quickstart/benchgate.toml   two sides of a suite
  benchgate gate --base origin/main                      what a branch changed
  benchgate gate --stored --branch --base origin/main    against stored sessions
  benchgate gate --base origin/main --format markdown --output verdict.md
  benchgate gate --base origin/main --until compile --bundle b    compile only
  benchgate gate --from verify --bundle b                         measure, judge

Exit codes: 0 pass, 2 usage or config, 10 regressed, 11 inconclusive, 12 no
base, or no result for a benchmark of base, 13 diverged, 20 a stage failed or the tools can't be
verified, 21 input unreadable, 22 store or GitHub failed, 130 interrupted.")]
pub struct GateArgs {
    #[command(flatten)]
    measure: MeasureArgs,
    /// Compare with the merge base of HEAD and this commit, branch or tag
    #[arg(long, value_name = "REF", conflicts_with = "from")]
    base: Option<String>,
    /// Compare the base's benchmark FROM with the head's TO; FROM and TO are names of models, as in `renamed-from`
    #[arg(long, num_args = 2, value_names = ["FROM", "TO"], requires = "base")]
    rename: Vec<String>,
    /// Compare with the stored baseline instead of measuring a base
    #[arg(long, conflicts_with = "half")]
    stored: bool,
    #[command(flatten)]
    halves: BundleArgs,
    #[command(flatten)]
    run: RunFileArgs,
    #[command(flatten)]
    report: ComparisonArgs,
    #[command(flatten)]
    policy: PolicyArgs,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    github: GithubArgs,
    /// Post the verdict as `benchgate publish` does, in this job; only for private repositories, because the pull
    /// request's code can then reach the token
    #[arg(long, help_heading = "GitHub", conflicts_with = "until")]
    publish: bool,
    #[command(flatten)]
    post: PostArgs,
}

pub fn run(args: &GateArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    runtime::leave_no_earlier_result(&args.run.run)?;
    if let Half::UntilCompile(bundle) = args.halves.half() {
        return pack(args, bundle, terminal);
    }
    if args.publish {
        posting::one_job()?;
    }
    let judged = judge(args, terminal);
    // A user who interrupted the command needs no report.
    let announced = (args.publish || args.github.wanted())
        && !judged.as_ref().is_err_and(|error| error.kind() == ErrorKind::Interrupted);
    if !announced {
        return Ok(judged?.comparison.exit_code);
    }
    let story = match &judged {
        Ok(Judged { comparison, alerts, .. }) => Story::Compared { comparison, reproduce: None, alerts },
        Err(error) => Story::Failed(error),
    };
    if args.publish {
        let (suite, configured) = match &judged {
            Ok(judged) => (judged.suite.clone(), judged.github.clone()),
            // The comment is found by the suite's name, which is known unless the configuration itself is
            // invalid.
            Err(_) => args.measure.load().map(|config| (config.suite, config.github)).unwrap_or_default(),
        };
        let mut github = args.post.over(configured);
        if github.check_run && !args.measure.is_whole_suite() {
            terminal
                .note("no check run is posted, because `--filter` or `--tag` left out a part of the suite");
            github.check_run = false;
        }
        if let Err(error) = &judged {
            terminal.error(error);
        }
        let situation = match Situation::find(&github, None, false) {
            Ok(situation) => situation,
            Err(error) => {
                // Even if GitHub can't be reached, the job's summary can show the verdict.
                args.github.reporting().report(&Texts::new(&story, None, true), None, None, terminal)?;
                return Err(error);
            }
        };
        return posting::publish(
            &story,
            &suite,
            &github,
            &situation,
            args.github.output_dir.clone(),
            terminal,
        );
    }
    args.github.reporting().report(&Texts::new(&story, None, true), None, None, terminal)?;
    Ok(judged?.comparison.exit_code)
}

/// A verdict, and the reporting settings of the configuration that applied to it.
struct Judged {
    comparison: Comparison,
    suite: String,
    github: GitHub,
    /// Warnings that come before everything else.
    alerts: Vec<String>,
}

fn judge(args: &GateArgs, terminal: &Terminal) -> Result<Judged, CliError> {
    let destination = args.report.output.open()?;
    if let Half::FromVerify(bundle) = args.halves.half() {
        let mut open = args.halves.open(bundle, &args.measure, terminal)?;
        if !open.sides.iter().any(|side| side.name == SideName::Base) {
            return Err(CliError::baseline_missing(format!(
                "the bundle {} has no base to compare with",
                bundle.display()
            ))
            .hint(
                "create the bundle with `benchgate gate --until compile`, or measure this one with \
                `benchgate run`",
            ));
        }
        if open.is_judged_by_head() {
            only_merged(Path::new("."))?;
        }
        let head = open.sides.iter().find(|side| side.name == SideName::Head);
        runtime::require_proposed(bundle, head.and_then(|side| side.commit.as_deref()))?;
        adjust(args, &mut open.sides)?;
        let measure = || args.measure.measure_bundle(&open, &args.run.run, terminal);
        return judged(args, &open.sides, &open.notices, None, measure, destination, terminal);
    }
    // Options of the command line are applied later, after the base's configuration, so that they don't count
    // as changes to the configuration.
    let mut config = config::load(&args.measure.config)?;
    rename(&mut config, &args.rename)?;
    if args.base.is_none() {
        only_merged(&config.root)?;
    }
    let root = config.root.clone();
    let stored = args.stored || (args.base.is_none() && config.base.is_none());
    let (mut sides, notices) = match &args.base {
        Some(reference) => {
            let (sides, mut notices) =
                against_merge_base(args.measure.cache_dir.as_deref(), config, reference, terminal)?;
            // With --stored, base is not measured; its commit only selects the sessions.
            notices.extend(if stored { None } else { only_untracked(&sides, reference)? });
            (sides, notices)
        }
        None if stored => {
            say_what_judges(args, &config, terminal)?;
            (vec![required(side(SideName::Head, &config)?)?], Vec::new())
        }
        None => (configured_sides(&config, "gate --base")?, Vec::new()),
    };
    let repository = if stored { Some(history(&root)?) } else { None };
    let baseline = match &repository {
        Some(repository) => {
            let base = sides.iter().find(|side| side.name == SideName::Base);
            let commit = base.and_then(|base| base.commit.clone());
            let commit = commit.map_or_else(|| repository.head().map(|head| head.commit), Ok)?;
            sides.retain(|side| side.name == SideName::Head);
            // With --base, the head's configuration has by now received the store settings of the base.
            let store = sides.first().map(|side| side.config.store.clone()).unwrap_or_default();
            let place = args.store.over(&store, &root);
            let baseline = Baseline::open(&place, &store, repository, commit, terminal)?;
            sides = sides.into_iter().flat_map(with_anchor).collect();
            Some(baseline)
        }
        None => None,
    };
    adjust(args, &mut sides)?;
    if let (Some(baseline), Some(head)) = (&baseline, sides.last()) {
        let testbeds = args.measure.testbeds(&sides)?;
        baseline.require(&head.config.suite, &testbeds, args.base.is_some(), terminal)?;
    }
    let measure = || args.measure.measure(&sides, &args.run.run, None, &BackendArgs::default(), terminal);
    judged(args, &sides, &notices, baseline.as_ref(), measure, destination, terminal)
}

/// Applies the options of the command line to all sides, so that the interim looks and the final verdict use
/// the same policy.
fn adjust(args: &GateArgs, sides: &mut [SideInput]) -> Result<(), CliError> {
    for side in sides {
        // The current folder is checked too, because a bundle is unpacked outside the repository.
        for folder in [side.config.root.as_path(), Path::new(".")] {
            if let Some(file) = &args.policy.policy
                && runtime::is_part_of_a_proposed_change(file, folder)?
            {
                return Err(CliError::usage(format!(
                    "`--policy`: {} is part of the change that it would judge",
                    file.display()
                ))
                .hint("name it in benchgate.toml (`policy = \"FILE\"`); the merge base's copy of the file then judges"));
            }
        }
        // Options of the command line override the base's settings.
        args.measure.adjust(&mut side.config);
        side.config.policy = args.measure.limit(args.policy.over(side.config.policy.clone())?);
    }
    Ok(())
}

/// Measures the sides and judges the result.
fn judged(
    args: &GateArgs,
    sides: &[SideInput],
    notices: &[String],
    baseline: Option<&Baseline<'_>>,
    measure: impl FnOnce() -> Result<MeasuredRun, CliError>,
    destination: Destination,
    terminal: &Terminal,
) -> Result<Judged, CliError> {
    let Some(head) = sides.iter().find(|side| side.name == SideName::Head) else {
        return Err(CliError::internal("a gate has a head"));
    };
    if args.publish && head.dirty == Some(true) {
        return Err(provenance::edited(head.commit.as_deref()));
    }
    let config = &head.config;
    let suite_rows = args.measure.shard.rows()?;
    let options = CompareOptions {
        today: runtime::today(),
        suite_rows,
        // A bundle may have been packed with a filter.
        whole_suite: args.measure.is_whole_suite() && !matches!(args.halves.half(), Half::FromVerify(_)),
        measured_here: true,
        ..CompareOptions::default()
    };
    let session = measure()?;
    let mut comparison = match baseline {
        Some(baseline) => baseline.judge(&session.file, config, &options, terminal)?,
        None => gate::compare(&session.base, &session.head, &config.policy, &options),
    };
    comparison.notes.extend(args.measure.shard.note());
    let untracked = sides.iter().filter_map(SideInput::untracked_note);
    comparison.notes.splice(0..0, notices.iter().cloned().chain(untracked));
    args.policy.downgrade(&mut comparison);
    crate::report::withhold(&mut comparison, args.report.disclose.unwrap_or(config.disclose));
    let written = (args.run.run.as_path(), baseline.is_none());
    args.report.write_measured(&comparison, written, destination, terminal)?;
    Ok(Judged {
        comparison,
        suite: config.suite.clone(),
        github: config.github.clone(),
        alerts: notices.to_vec(),
    })
}

/// Runs the half of a gate that needs no device: exports, compiles and packs both sides.
fn pack(args: &GateArgs, bundle: &Path, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let destination = args.report.output.open()?;
    let mut config = config::load(&args.measure.config)?;
    rename(&mut config, &args.rename)?;
    let (mut sides, notices) = match &args.base {
        Some(reference) => {
            let (sides, mut notices) =
                against_merge_base(args.measure.cache_dir.as_deref(), config, reference, terminal)?;
            notices.extend(only_untracked(&sides, reference)?);
            (sides, notices)
        }
        None => {
            only_merged(&config.root)?;
            (configured_sides(&config, "gate --base")?, Vec::new())
        }
    };
    for side in &mut sides {
        args.measure.adjust(&mut side.config);
    }
    let (text, code) = args.halves.make(bundle, &sides, &notices, &args.measure, false, terminal)?;
    destination.write(&text, terminal)?;
    Ok(code)
}

/// Refuses to judge a proposed change without --base, because its own policy and stored baseline would then
/// apply instead of the base's.
pub fn only_merged(folder: &Path) -> Result<(), CliError> {
    if !runtime::is_for_a_proposed_change(folder)? {
        return Ok(());
    }
    Err(CliError::usage(
        "`--base` is required for a proposed change: without a base, the change's own policy and baseline \
        would judge it",
    )
    .hint("name the branch to merge into: `benchgate gate --base origin/main`"))
}

/// Notes which stored sessions and which policy apply because no base is named.
fn say_what_judges(args: &GateArgs, config: &Config, terminal: &Terminal) -> Result<(), CliError> {
    let head = history(&config.root)?.head()?;
    let own = || config.policy_file.as_ref().map(|name| config.root.join(name));
    let policy = args.policy.policy.clone().or_else(own).unwrap_or_else(|| config.file.clone());
    let short = short_commit(&head.commit);
    terminal.note(&format!(
        "no --base: compared with stored sessions of HEAD ({short}) and its ancestors, under the current policy in {}",
        policy.display()
    ));
    Ok(())
}

/// The repository, which determines whether a stored session belongs to an ancestor of the head.
fn history(root: &Path) -> Result<Repository, CliError> {
    Repository::open(root).map_err(|error| {
        CliError::baseline_missing(format!(
            "failed to {error}: without a usable repository, no stored session can be related to this commit, and there is no base to measure"
        ))
        .hint("name a base: `benchgate gate --base origin/main`, or add [side.base]")
    })
}

/// The sides of the configuration. `naming` is the command whose next argument can name a base instead.
pub fn configured_sides(config: &Config, naming: &str) -> Result<Vec<SideInput>, CliError> {
    match (side(SideName::Base, config)?, side(SideName::Head, config)?) {
        (Some(base), Some(head)) => Ok(vec![base, head]),
        _ => Err(CliError::baseline_missing(format!(
            "{} has no [side.base], so there is nothing to compare with",
            config.file.display()
        ))
        .hint(format!(
            "name a base: `benchgate {naming} {}`, or add [side.base]",
            Repository::open(&config.root).map_or("origin/main", |repository| likely_base(&repository))
        ))),
    }
}

/// Enters the renames of the command line into the configuration, as if they were declared there.
fn rename(config: &mut Config, pairs: &[String]) -> Result<(), CliError> {
    for pair in pairs.chunks_exact(2) {
        let [from, to] = pair else { continue };
        let mut renamed = config.models.iter_mut().filter(|model| model.name == *to).peekable();
        if renamed.peek().is_none() {
            return Err(CliError::usage(format!("`--rename`: the suite has no model `{to}`"))
                .hint("give the names of models: first the old name, then the new one"));
        }
        renamed.for_each(|model| model.renamed_from = Some(from.clone()));
    }
    Ok(())
}

/// Makes the base side from the merge base and the head side from the working tree.
pub fn against_merge_base(
    cache_dir: Option<&Path>,
    mut head_config: Config,
    reference: &str,
    terminal: &Terminal,
) -> Result<(Vec<SideInput>, Vec<String>), CliError> {
    // The path is made absolute, because messages name this folder and `.` would not identify it.
    let root = std::path::absolute(&head_config.root).unwrap_or_else(|_| head_config.root.clone());
    let repository = Repository::open(&root)?;
    if let Some(outer) = repository.superproject()?.filter(|outer| is_asked_from(outer, repository.root())) {
        return Err(CliError::usage(format!(
            "{} is a submodule of {}, so the proposed change could choose its own base",
            repository.root().display(),
            outer.display()
        ))
        .hint("run benchgate in a job that checks out only the submodule's repository"));
    }
    let merge_base = repository.merge_base(reference)?;
    let moved = moved_submodules(&repository, &merge_base)?;
    let inside = repository.relative(&by_given_names(&head_config.file))?;
    let cache = super::paths::cache_dir(cache_dir)?;
    let checkouts = cache.join("checkouts");
    let checkout = repository.checkout(&merge_base, &checkouts, &checkout_runner)?;
    let base_file = checkout.folder.join(&inside);
    if !base_file.is_file() {
        return Err(CliError::baseline_missing(format!(
            "failed to find a base: the merge base {merge_base} has no {}",
            inside.display()
        ))
        .hint("the suite does not exist on the base yet: merge it first, or compare with a [side.base]"));
    }
    let whose = if reference == "HEAD" {
        "HEAD".to_owned()
    } else {
        format!("the merge base of HEAD and {reference}")
    };
    terminal.note(&format!("base: {merge_base}, {whose}"));
    let mut base_config = config::load_within(&base_file, &checkout.folder)?;
    let text = std::fs::read_to_string(&base_file)
        .map_err(|error| CliError::failed(format!("failed to read {}: {error}", base_file.display())))?;
    if !(base_config.commands.is_empty() && head_config.commands.is_empty()) {
        refuse_cache_inside(&cache, &repository)?;
    }
    let declared = required(side(SideName::Head, &base_config)?)?;
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let own = real(&checkout.folder);
    let of_flags =
        pipeline::named_by_flags(&declared.config, &declared.side).into_iter().map(|path| real(&path));
    let of_flags = of_flags.filter(|path| path.starts_with(repository.root()) && !path.starts_with(&own));
    if let Some(path) = paths_below(&text, repository.root()).into_iter().chain(of_flags).next() {
        return Err(CliError::usage(format!(
            "{} at {merge_base} names {} by an absolute path inside the working tree, so the change could replace a file of its base",
            inside.display(),
            path.display()
        ))
        .hint(
            "use a path relative to benchgate.toml, which is resolved in each side's checkout; keep uncommitted tools \
            outside the repository",
        ));
    }
    head_config.rename_in(&mut base_config).map_err(|error| {
        CliError::usage(error.to_string()).hint("rename in one change, and reuse the old name in a later one")
    })?;

    let mut notices: Vec<String> = checkout.notices.iter().map(ToString::to_string).collect();
    notices.extend(moved);
    // The merge base's policy judges: changes to thresholds, tolerances and waivers only take effect once
    // they are merged.
    notices.extend(configuration_notices(&base_config, &head_config, &merge_base));
    head_config.judge_by(&base_config);

    let mut base = required(side(SideName::Head, &base_config)?)?;
    base.name = SideName::Base;
    base.commit = Some(merge_base);
    base.dirty = Some(false);
    base.untracked.clear();
    base.checkout = Some(checkout);
    let head = required(side(SideName::Head, &head_config)?)?;
    notices.extend((head.dirty == Some(true) && runtime::is_ci()).then(|| {
        "tracked files differ from HEAD (`git status` lists them), so `publish`, `merge` and `baseline update` \
        don't accept the result"
            .to_owned()
    }));
    Ok((vec![base, head], notices))
}

/// Refuses a cache in the working tree if the suite has a `[[command]]`: its tools look for settings in parent folders
/// (`.cargo/config.toml`, `conftest.py`, `node_modules`), so base's checkout would get head's.
fn refuse_cache_inside(cache: &Path, repository: &Repository) -> Result<(), CliError> {
    let existing = cache.ancestors().find_map(|folder| folder.canonicalize().ok());
    if !existing.is_some_and(|folder| folder.starts_with(repository.root())) {
        return Ok(());
    }
    Err(CliError::usage(format!(
        "the cache {} is inside the working tree, so a [[command]] of base would find head's files in its parent folders",
        cache.display()
    ))
    .hint("name a folder outside of the repository with --cache-dir or BENCHGATE_CACHE"))
}

/// Refuses to compare a commit with itself. Untracked files may be a change that is not committed yet, so on
/// a user's machine they are measured, with a note. A job judges a commit, which does not contain them.
fn only_untracked(sides: &[SideInput], reference: &str) -> Result<Option<String>, CliError> {
    let [base, head] = sides else { return Err(CliError::internal("a gate has two sides")) };
    let (Some(commit), false) = (&head.commit, head.dirty == Some(true)) else { return Ok(None) };
    if base.commit.as_ref() != Some(commit) {
        return Ok(None);
    }
    let repository = Repository::open(&head.config.root)?;
    let untracked: Vec<String> = if runtime::is_ci() {
        Vec::new()
    } else {
        let mut files = repository.untracked_files()?;
        files.retain(|file| !super::paths::is_result(&repository.root().join(file)));
        files.iter().map(|file| file.display().to_string()).collect()
    };
    let Some(first) = untracked.first() else {
        return Err(CliError::baseline_missing(format!(
            "HEAD is the base ({commit}), and no tracked file is edited: there is no change to measure"
        ))
        .hint(if reference == "HEAD" {
            "name the commit before the change: `--base HEAD~1`"
        } else {
            "commit the change, or name the commit before it: `--base HEAD~1`"
        }));
    };
    let others = untracked.len() - 1;
    let others = if others == 0 { String::new() } else { format!(" and {others} more") };
    Ok(Some(format!("HEAD is the base; the only change is in untracked files ({first}{others})")))
}

/// Describes the submodules that are not at the commit that HEAD names. A change that updates a submodule must
/// not be measured with base's checkout of it.
fn moved_submodules(repository: &Repository, merge_base: &str) -> Result<Vec<String>, CliError> {
    let mut notices = Vec::new();
    for MovedSubmodule { path, named, found } in repository.moved_submodules()? {
        if repository.submodule_commit(merge_base, &path)?.as_ref() == Some(&found) {
            return Err(CliError::failed(format!(
                "the submodule {} is still at base's commit {found}, but HEAD names {named}, so the change was not measured",
                path.display()
            ))
            .hint("run `git submodule update --init --recursive`; for actions/checkout, set `submodules: recursive`"));
        }
        notices.push(format!(
            "the submodule {} was measured at {found}, but HEAD names {named}",
            path.display()
        ));
    }
    Ok(notices)
}

/// Makes a relative path absolute by resolving it against PWD. PWD keeps the symbolic links through which the
/// shell entered the current folder; another commit may not have those links.
fn by_given_names(file: &Path) -> PathBuf {
    let is_here = |folder: &PathBuf| {
        let both = std::env::current_dir()
            .and_then(std::fs::canonicalize)
            .ok()
            .zip(std::fs::canonicalize(folder).ok());
        folder.is_absolute() && both.is_some_and(|(here, named)| here == named)
    };
    let here = std::env::var_os("PWD").map(PathBuf::from).filter(is_here);
    here.filter(|_| file.is_relative()).map_or_else(|| file.to_owned(), |here| here.join(file))
}

/// Returns true if the current folder or the job's checkout is in the outer working tree but not in its
/// submodule.
fn is_asked_from(outer: &Path, submodule: &Path) -> bool {
    let workspace = std::env::var_os("GITHUB_WORKSPACE").map(PathBuf::from);
    let folders = std::env::current_dir().ok().into_iter().chain(workspace);
    folders
        .filter_map(|folder| std::fs::canonicalize(folder).ok())
        .any(|folder| folder.starts_with(outer) && !folder.starts_with(submodule))
}

/// Notes about the keys of the configuration that a change edits.
fn configuration_notices(base: &Config, head: &Config, merge_base: &str) -> Vec<String> {
    let policy = config::policy_changes(&base.policy_part(), &head.policy_part());
    let ConfigChanges { ignored, chosen } = head.changes(base);
    let short = short_commit(merge_base);
    [
        ("edits the policy that judges changes; the change was judged by the policy of", policy),
        ("edits settings that the base chooses; the change was measured with those of", ignored),
    ]
    .map(|(edits, changes)| (format!("this change {edits} {short}, without these edits"), changes))
    .into_iter()
    .chain([("this change sets".to_owned(), chosen)])
    .filter(|(_, changes)| !changes.is_empty())
    .map(|(text, changes)| format!("{text}: {}", changes.join("; ")))
    .collect()
}

fn required(side: Option<SideInput>) -> Result<SideInput, CliError> {
    side.ok_or_else(|| CliError::internal("every configuration has a head"))
}

/// The absolute paths in a configuration's text that lead below a folder, directly or through links.
fn paths_below(text: &str, folder: &Path) -> Vec<PathBuf> {
    let ends = |c: char| c.is_whitespace() || "\"',;:{}".contains(c);
    let starts = |at: &usize| {
        let before = text[..*at].chars().next_back();
        before.is_none_or(|before| !before.is_alphanumeric() && !"._-~/".contains(before))
    };
    text.match_indices('/')
        .map(|(at, _)| at)
        .filter(starts)
        .map(|at| &text[at..])
        .map(|rest| &rest[..rest.find(ends).unwrap_or(rest.len())])
        // `FILE@NAME` stands for a symbol in a file.
        .flat_map(|path| [Some(path), path.split_once('@').map(|(file, _)| file)])
        .flatten()
        .map(PathBuf::from)
        .map(|path| std::fs::canonicalize(&path).unwrap_or(path))
        .filter(|path| path.starts_with(folder))
        .collect()
}
