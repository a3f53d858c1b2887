//! `benchgate baseline`: stores runs, quarantines them, and accepts changes.

use std::path::Path;

use crate::config::{self, Config, Store};
use crate::exit_code::ExitCode;
use crate::gate::{self, CompareOptions, Comparison, Reason, Row};
use crate::git::Repository;
use crate::model::{BenchmarkGlob, LintCode, Run, SideName, Verdict, counted};
use crate::record::{AcceptanceFile, QuarantineCause, QuarantineRecord, RunFile};
use crate::report::{self, TerminalOptions, View};
use crate::store::{
    self, Acceptance, AcceptedSessions, BaselineFolder, Files, Lineage, LoadedFile, StoreError, Stored,
    UpdateOptions, Updated,
};

use super::backend_args::BackendArgs;
use super::policy_args::PolicyArgs;
use super::rendering::{ComparisonArgs, RunFileArgs};
use super::session::{MeasureArgs, side, with_anchor};
use super::store_args::{ShelfArgs, StoreArgs, StoreAt, StorePlace, no_match, quoted, runner, say_faults};
use super::{CliError, Terminal, baseline_show, choices, inputs, job, reading, reporting, runtime};

/// Store runs, show them, and accept changes
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  benchgate baseline update --measure          measure one more session
  benchgate baseline update --policy benchgate.toml   store run.json
  benchgate baseline show zoo --changes        levels, spread, changes
  benchgate baseline accept zoo --since 1a66819 --why 'bigger tiles, on purpose'
  benchgate baseline export --parquet history
  benchgate baseline verify

Files are only ever added or removed, never changed: docs/baselines.md describes them.")]
pub struct BaselineArgs {
    #[command(subcommand)]
    command: BaselineCommand,
    #[command(flatten)]
    store: StoreArgs,
}

#[derive(Debug, clap::Subcommand)]
enum BaselineCommand {
    Update(Box<Update>),
    List(baseline_show::List),
    Show(baseline_show::Show),
    Diff(Box<Diff>),
    Accept(Accept),
    Prune(Prune),
    Export(Export),
    /// Check every stored file and list the damaged ones
    Verify,
}

/// Store a measured session
///
/// Compares the run with the stored sessions, prints that comparison, and stores the run. A run that is red, failed,
/// wrong, unverified or undecided (for example on a disturbed machine) is stored too, and excluded from the baseline
/// until it is accepted. The exit code then gives the cause; the run is stored in any case.
#[derive(Debug, clap::Args)]
struct Update {
    #[command(flatten)]
    run: RunFileArgs,
    /// Measure the head side of the suite first, and write the result to --run
    #[arg(long)]
    measure: bool,
    #[command(flatten)]
    measuring: MeasureArgs,
    /// Side to use; only its results are stored
    #[arg(long, value_name = "SIDE", default_value = "head", value_parser = choices::named(&SideName::BOTH, SideName::as_str))]
    side: SideName,
    #[command(flatten)]
    policy: PolicyArgs,
    /// Report to the GitHub Actions job that runs this; its output `regressions` is the number of slowdowns in quarantine
    #[arg(long, help_heading = "GitHub")]
    github: bool,
}

/// Compare two stored runs
#[derive(Debug, clap::Args)]
struct Diff {
    /// The beginning of the base run's name or commit
    base: String,
    /// The beginning of the head run's name or commit; a run of the same suite and testbed
    head: String,
    #[command(flatten)]
    shelf: ShelfArgs,
    #[command(flatten)]
    report: ComparisonArgs,
    #[command(flatten)]
    policy: PolicyArgs,
}

/// Accept a change
///
/// Later runs are no longer compared with sessions before --since. Regressed sessions from --since until now join
/// the baseline; later regressed sessions are excluded again.
#[derive(Debug, clap::Args)]
struct Accept {
    #[command(flatten)]
    shelf: ShelfArgs,
    /// First session after the change, given as a prefix of its file name or commit hash [default: the newest]
    #[arg(long, value_name = "RUN")]
    since: Option<String>,
    /// Only benchmarks that match; the acceptance records the pattern
    #[arg(long, value_name = "GLOB")]
    benchmark: Option<String>,
    /// Reason for the acceptance
    #[arg(long, value_name = "TEXT")]
    why: String,
    /// Last day of the acceptance; later, the sessions stored under it leave the baseline
    #[arg(long, value_name = "YYYY-MM-DD")]
    expires: Option<jiff::civil::Date>,
    /// Withdraw the acceptance with this --since and --benchmark: the sessions stored under it leave the baseline
    #[arg(long, conflicts_with = "expires", requires = "since")]
    withdraw: bool,
    /// Person who accepts the change [default: git's user.name, or $USER]
    #[arg(long, value_name = "NAME", env = "GITHUB_ACTOR")]
    who: Option<String>,
}

/// Remove old runs, but never accepted ones
#[derive(Debug, clap::Args)]
struct Prune {
    /// Runs to keep on each testbed
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    keep: u32,
    /// Show what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
}

/// Copy the baseline to Parquet files
///
/// One file per session, in the layout of an object store, for DuckDB, ClickHouse or Athena. Existing files are left
/// unchanged, so running the command again copies only new sessions.
#[derive(Debug, clap::Args)]
struct Export {
    /// Folder or object store for the files; a folder is created if absent
    #[arg(
        long,
        value_name = "FOLDER|URL",
        value_parser = StoreAt::parser()
    )]
    parquet: StoreAt,
}

pub fn run(args: &BaselineArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let repository = Repository::open(Path::new(".")).ok();
    let config = configured(args)?;
    let (store, root) =
        config.as_ref().map_or_else(Default::default, |it| (it.store.clone(), it.root.clone()));
    let place = args.store.over(&store, &root);
    let mut files = place.open(repository.as_ref(), &runner, terminal)?;
    let files = files.as_mut();
    match &args.command {
        BaselineCommand::Update(args) => {
            update(args, files, &place, config.as_ref(), repository.as_ref(), terminal)
        }
        BaselineCommand::List(args) => baseline_show::list(args, files, terminal),
        BaselineCommand::Show(args) => baseline_show::show(args, files, terminal),
        BaselineCommand::Diff(args) => diff(args, files, terminal),
        BaselineCommand::Accept(args) => accept(args, files, repository.as_ref(), terminal),
        BaselineCommand::Prune(args) => prune(args, files, terminal),
        BaselineCommand::Export(args) => export(args, files, terminal),
        BaselineCommand::Verify => verify(files, terminal),
    }
}

/// The configuration, whose `[store]` names the baseline. Stored results can be inspected without the suite's
/// configuration, so a missing one is not an error.
fn configured(args: &BaselineArgs) -> Result<Option<Config>, CliError> {
    let (file, is_needed) = match &args.command {
        BaselineCommand::Update(update) => (update.measuring.config.clone(), true),
        _ => (MeasureArgs::default_config(), !args.store.is_named()),
    };
    if is_needed && file.exists() { Ok(Some(config::load(&file)?)) } else { Ok(None) }
}

fn update(
    args: &Update,
    files: &mut dyn Files,
    place: &StorePlace,
    config: Option<&Config>,
    repository: Option<&Repository>,
    terminal: &Terminal,
) -> Result<ExitCode, CliError> {
    // Contradictory options are reported before anything is measured.
    args.policy.resolve()?;
    args.measuring.shard.refuse("a session is a whole suite")?;
    let run = &args.run.run;
    if args.measure {
        job::leave_no_earlier_result(run)?;
        let config = args.measuring.load()?;
        let sides: Vec<_> = side(SideName::Head, &config)?.into_iter().flat_map(with_anchor).collect();
        args.measuring.measure(&sides, run, None, &BackendArgs::default(), terminal)?;
    }
    let label = run.to_string_lossy();
    let file = inputs::run_file(reading::file(run)?, &label)?;
    let policy = args.policy.over(policy_of(&file, config, terminal))?;
    if repository.is_none() {
        terminal.note("note: there is no git repository here, so every stored session counts as history");
    }
    let commit = file.side(args.side).and_then(|side| side.commit.clone());
    let ancestry = match (repository, &commit) {
        (Some(repository), Some(commit)) => Some(repository.ancestry(commit).map_err(StoreError::Git)?),
        _ => None,
    };
    let lineage = |other: &str| {
        ancestry.as_ref().map_or(Lineage::Ancestor, |ancestry| Lineage::look_up(ancestry, other))
    };
    let writing = UpdateOptions {
        side: args.side,
        sessions: config.map_or_else(|| Store::default().sessions, |config| config.store.sessions),
        policy: &policy,
        options: CompareOptions { seed: file.seed, today: runtime::today(), ..CompareOptions::default() },
        lineage: &lineage,
        now: jiff::Timestamp::now(),
    };
    let mut updated = store::update(files, &file, &writing)?;
    say_faults(&updated.faults, terminal);
    if updated.comparison.is_none() && !updated.notes.is_empty() {
        terminal.note("note: no stored session can be compared with this one");
        updated.notes.iter().for_each(|note| terminal.note(&format!("note: {note}")));
    }
    // The first session, and one that is stored already, are compared with nothing.
    let alone = if updated.comparison.is_none() { alone(&file, &writing) } else { None };
    let beyond: Vec<&Row> = updated.comparison.iter().chain(&alone).flat_map(beyond_limit).collect();
    let code = match code_of(&updated.quarantine) {
        _ if args.policy.warn_only => ExitCode::Pass,
        // Such a session joins the baseline, which shows the level of later ones, but it is not good.
        ExitCode::Pass if !beyond.is_empty() => ExitCode::Regressed,
        code => code,
    };
    let mut said = outcome(&updated, &files.place());
    for row in beyond.iter().filter(|_| alone.is_some()) {
        let exceeded = row.lints.iter().find(|lint| lint.code == LintCode::LimitExceeded);
        let detail = exceeded.map_or("", |lint| lint.detail.as_str());
        said.push_str(&format!("beyond a limit: {}: {detail}\n", row.benchmark));
    }
    if let Some(comparison) = &mut updated.comparison {
        // The report gets this command's exit code, which the quarantine decides: a run that can't be trusted
        // as a whole is an error, whatever its rows say.
        comparison.exit_code = code;
        let of_code = Verdict::ALL.into_iter().filter(|verdict| ExitCode::for_verdict(*verdict) == code);
        if let Some(worse) = of_code.max_by_key(|verdict| verdict.precedence())
            && code != ExitCode::Pass
        {
            comparison.verdict = worse;
        }
        let options =
            TerminalOptions { width: terminal.width(), color: terminal.colors_stdout(), all: false };
        terminal.print(&report::terminal(&View::new(comparison, None), options));
    }
    terminal.say(&said);
    if !updated.quarantine.is_empty() {
        terminal.say(
            "quarantined results are excluded from the baseline; if the changes are intended, this command releases the results of this session:\n",
        );
        // The command is printed without wrapping, so that it can be copied.
        let command = accept_command(&file, &updated.path, place);
        terminal.print(&format!("  {}\n", report::clean(&command)));
    }
    if args.github {
        let red = updated.quarantine.iter().filter(|reason| reason.cause == QuarantineCause::Regressed);
        reporting::output("regressions", red.count().to_string())?;
    }
    Ok(code)
}

/// The policy that judges a run. The run contains the policy under which it was measured, but the configuration decides
/// what is stored; a run may have been measured elsewhere.
fn policy_of(file: &RunFile, config: Option<&Config>, terminal: &Terminal) -> gate::Policy {
    let recorded = file.policy();
    let Some(config) = config.filter(|config| config.suite == file.suite) else { return recorded };
    let policy = gate::Policy { sequential: recorded.sequential, ..config.policy.clone() };
    if policy != recorded {
        terminal.note(&format!(
            "note: the policy of {} applies; the run was measured under another one",
            config.file.display()
        ));
    }
    policy
}

/// The session compared with nothing, which leaves its limits.
fn alone(file: &RunFile, writing: &UpdateOptions<'_>) -> Option<Comparison> {
    let head = store::judged_side(file, writing.side, "run.json", writing.policy)?;
    Some(gate::compare(&Run::default(), &head, writing.policy, &writing.options))
}

fn beyond_limit(comparison: &Comparison) -> impl Iterator<Item = &Row> {
    let is_beyond =
        |row: &&Row| row.fatal && row.verdict == Verdict::Regressed && matches!(row.reason, Reason::Limit(_));
    comparison.rows.iter().filter(is_beyond)
}

fn outcome(updated: &Updated, place: &str) -> String {
    let done = if updated.already { "already stored as" } else { "stored as" };
    let mut text = format!("{done} {} in {place}\n", updated.path);
    for reason in &updated.quarantine {
        let whom = reason.benchmark.as_deref().unwrap_or("the whole run");
        text.push_str(&format!("quarantined: {whom}: {}: {}\n", reason.cause, reason.why));
    }
    text
}

/// The command that accepts the session that was stored at `path`.
fn accept_command(file: &RunFile, path: &str, place: &StorePlace) -> String {
    let session = Path::new(path).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let shelf = quoted(&[file.suite.clone(), "--testbed".to_owned(), file.testbed.id.clone()]);
    let since = quoted(&["--since".to_owned(), session]);
    format!("benchgate baseline accept {shelf} {} {since} --why REASON", place.options())
}

/// The exit code of the worst quarantine reason, in the same order as for verdicts.
fn code_of(quarantine: &[QuarantineRecord]) -> ExitCode {
    let has = |cause| quarantine.iter().any(|reason| reason.cause == cause);
    if [QuarantineCause::Errored, QuarantineCause::Unverified, QuarantineCause::Incomplete]
        .into_iter()
        .any(has)
    {
        ExitCode::Error
    } else if has(QuarantineCause::Diverged) {
        ExitCode::Diverged
    } else if has(QuarantineCause::Regressed) {
        ExitCode::Regressed
    } else if has(QuarantineCause::Undecided) {
        ExitCode::Inconclusive
    } else {
        ExitCode::Pass
    }
}

fn diff(args: &Diff, files: &dyn Files, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let destination = args.report.output.open()?;
    let policy = args.policy.resolve()?;
    let shelf = args.shelf.open(files)?;
    let load = |wanted: &str| -> Result<Run, CliError> {
        let name = shelf.find(files, wanted)?;
        Ok(loaded(&shelf, files, &name)?.file.run(name.as_str()))
    };
    let (base, head) = (load(&args.base)?, load(&args.head)?);
    let options = CompareOptions { seed: 0, today: runtime::today(), ..CompareOptions::default() };
    let mut comparison = gate::compare(&base, &head, &policy, &options);
    args.policy.downgrade(&mut comparison);
    report::withhold(&mut comparison, args.report.disclose.unwrap_or_default());
    args.report.write(&comparison, None, destination, terminal)?;
    Ok(comparison.exit_code)
}

fn accept(
    args: &Accept,
    files: &mut dyn Files,
    repository: Option<&Repository>,
    terminal: &Terminal,
) -> Result<ExitCode, CliError> {
    let shelf = args.shelf.open(files)?;
    let today = runtime::today();
    if let Some(day) = args.expires.filter(|day| day.to_string() < today) {
        return Err(CliError::usage(format!("the expiry date {day} is in the past")));
    }
    let user = || std::env::var("USER").ok().filter(|user| !user.is_empty());
    let known = args.who.clone().filter(|who| !who.is_empty());
    let known = known.or_else(|| repository.and_then(Repository::user_name)).or_else(user);
    let who = known.ok_or_else(|| {
        CliError::usage("the name of the person who accepts this is unknown")
            .hint("give it with --who NAME, or set git's user.name")
    })?;
    let newest = shelf.newest(files).next().transpose()?.ok_or_else(|| StoreError::NoSuchRun {
        what: "a run to accept".to_owned(),
        why: format!("{} is empty", shelf.folder),
    })?;
    let (suite, testbed) = identity(&shelf, files, &newest, args.benchmark.as_deref())?;
    let now = jiff::Timestamp::now();
    let until = if args.withdraw {
        require_in_force(args, &shelf, files)?;
        // A withdrawal is an acceptance that has ended, so that files are only ever added.
        let today = now.to_zoned(jiff::tz::TimeZone::UTC).date();
        let yesterday = today.yesterday().map_err(|error| CliError::internal(error.to_string()))?;
        Some(yesterday)
    } else {
        args.expires
    };
    let acceptance = Acceptance {
        suite,
        testbed,
        from: args.since.clone(),
        benchmark: args.benchmark.clone(),
        who,
        why: args.why.clone(),
        until,
        created: now.to_string(),
        benchgate: benchgate_core::VERSION.to_owned(),
    };
    let (path, from) = store::accept(files, acceptance)?;
    let what = args.benchmark.as_deref().unwrap_or("every benchmark");
    if args.withdraw {
        terminal.say(&format!(
            "withdrew the acceptance of {what} from {from} on, in {path}\nthe sessions that were stored under it are no \
             longer part of the baseline, and the next ones are compared with those before it\n"
        ));
        return Ok(ExitCode::Pass);
    }
    let until = args.expires.map_or_else(String::new, |day| format!(" until {day}"));
    terminal.say(&format!("accepted {what} from {from} on{until}, in {path}\n"));
    let sessions = AcceptedSessions::read(files, &shelf, &path, &from, now)?;
    say_faults(&sessions.faults, terminal);
    terminal.say(&consequences(&sessions));
    Ok(ExitCode::Pass)
}

/// Checks that the acceptance to withdraw exists. The error names the existing ones.
fn require_in_force(args: &Accept, shelf: &BaselineFolder, files: &dyn Files) -> Result<(), CliError> {
    let from = shelf.find(files, args.since.as_deref().unwrap_or_default())?;
    let is_meant = |accepted: &AcceptanceFile| {
        accepted.from == from.as_str()
            && accepted.benchmark.as_ref().map(BenchmarkGlob::as_str) == args.benchmark.as_deref()
    };
    if shelf.acceptances.iter().any(|(_, accepted)| is_meant(accepted)) {
        return Ok(());
    }
    let what = args.benchmark.as_deref().unwrap_or("every benchmark");
    let error =
        CliError::usage(format!("no acceptance of {what} from {from} on is in force in {}", shelf.folder));
    let others = shelf.acceptances.iter().map(|(_, accepted)| {
        let glob = accepted.benchmark.as_ref();
        let benchmark = glob
            .map_or_else(String::new, |glob| format!(" --benchmark {}", quoted(&[glob.as_str().to_owned()])));
        format!("--since {}{benchmark}", accepted.from)
    });
    let others: Vec<String> = others.collect();
    Err(if others.is_empty() { error } else { error.hint(format!("in force: {}", others.join(", "))) })
}

/// Describes which sessions an acceptance releases from quarantine, and why it does not release the others.
fn consequences(sessions: &AcceptedSessions) -> String {
    let mut text = String::new();
    let line = |what: &str, names: &[store::RunName]| {
        let names: Vec<&str> = names.iter().map(store::RunName::as_str).collect();
        if names.is_empty() { String::new() } else { format!("{what}: {}\n", names.join(", ")) }
    };
    text.push_str(&line("released from quarantine", &sessions.released));
    if sessions.released.is_empty() {
        let AcceptedSessions { held, already, past, accepted, .. } = sessions;
        text.push_str("the acceptance releases no session from quarantine\n");
        text.push_str(&line("released by an earlier acceptance", already));
        text.push_str(&line("older than an accepted session, so not part of the baseline", past));
        // If another acceptance replaces this one, no session is read and `accepted` is 0.
        if *accepted > 0 && held.is_empty() && already.is_empty() && past.is_empty() {
            text.push_str("none of the accepted sessions is in quarantine\n");
        }
    }
    for (name, reasons) in &sessions.faulty {
        let mut causes: Vec<String> = reasons.iter().map(|reason| reason.cause.to_string()).collect();
        causes.sort_unstable();
        let counts: Vec<String> =
            causes.chunk_by(|a, b| a == b).map(|same| format!("{} {}", same.len(), same[0])).collect();
        text.push_str(&format!(
            "released although not quarantined for a slowdown ({}): {name}: {}\n",
            counts.join(", "),
            listed(reasons)
        ));
    }
    for (name, reasons) in &sessions.held {
        text.push_str(&format!("still in quarantine: {name}: {}\n", listed(reasons)));
    }
    for name in &sessions.not_measured {
        let glob = quoted(&[globset::escape(name)]);
        text.push_str(&format!(
            "not accepted: {name}: it was not measured in this session, so it keeps its history (to accept that it is gone: `--benchmark {glob}`)\n"
        ));
    }
    if !sessions.held.is_empty() {
        text.push_str(
            "in later sessions, an acceptance releases only slowdowns; to accept one of these results, name its session with `--since SESSION`\n",
        );
    }
    text.push_str("later sessions are compared with the accepted ones, and can be quarantined again\n");
    text
}

/// The quarantine reasons of a session. Only the first ones are named.
fn listed(reasons: &[QuarantineRecord]) -> String {
    const NAMED: usize = 2;
    let said = reasons.iter().take(NAMED).map(|reason| {
        let whom = reason.benchmark.as_deref().unwrap_or("the whole run");
        format!("{whom}: {}: {}", reason.cause, reason.why)
    });
    let more = (reasons.len() > NAMED).then(|| format!("{} more", reasons.len() - NAMED));
    said.chain(more).collect::<Vec<_>>().join("; ")
}

fn loaded(shelf: &BaselineFolder, files: &dyn Files, name: &store::RunName) -> Result<Stored, CliError> {
    match shelf.load(files, name)? {
        LoadedFile::Run(stored) => Ok(stored),
        LoadedFile::Unusable(fault) => {
            Err(CliError::input(format!("failed to read {}: {}", fault.path, fault.why))
                .hint("`benchgate baseline verify` lists every damaged file"))
        }
    }
}

/// The number of sessions that are searched for the benchmark named in an acceptance.
const RECENT: usize = 100;

/// The names of the suite and the testbed, which their folders have only in an encoded form. If the
/// acceptance names benchmarks, one of the recent sessions must have them.
fn identity(
    shelf: &BaselineFolder,
    files: &dyn Files,
    name: &store::RunName,
    benchmark: Option<&str>,
) -> Result<(String, String), CliError> {
    let stored = loaded(shelf, files, name)?;
    if let Some(pattern) = benchmark
        && let Ok(glob) = globset::Glob::new(pattern)
    {
        let glob = glob.compile_matcher();
        let has = |stored: &Stored| {
            stored.file.benchmarks.iter().any(|benchmark| glob.is_match(benchmark.name.as_str()))
        };
        // A removed benchmark can also be accepted, although the newest sessions no longer have it.
        let mut found = has(&stored);
        for older in shelf.newest(files).skip(1).take(RECENT) {
            if found {
                break;
            }
            found = matches!(shelf.load(files, &older?)?, LoadedFile::Run(older) if has(&older));
        }
        if !found {
            return Err(no_match(pattern, &shelf.folder));
        }
    }
    Ok((stored.file.suite, stored.file.testbed.id))
}

fn prune(args: &Prune, files: &mut dyn Files, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let mut text = String::new();
    for (suite, testbed) in store::baseline_folders(files)? {
        let (pruned, faults) = store::prunable(
            files,
            &format!("{suite}/{testbed}"),
            args.keep as usize,
            jiff::Timestamp::now(),
        )?;
        say_faults(&faults, terminal);
        let verb = if args.dry_run { "would remove" } else { "removed" };
        text.push_str(&format!("{}: {verb} {}, {} kept\n", pruned.folder, pruned.removed.len(), pruned.kept));
        if !args.dry_run && !pruned.removed.is_empty() {
            files.apply(&pruned.change())?;
        }
    }
    terminal.say(&text);
    Ok(ExitCode::Pass)
}

fn export(args: &Export, files: &dyn Files, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let mut to = args.parquet.objects()?;
    let exported = store::export(files, &mut to)?;
    terminal.say(&format!(
        "copied {} and {} to {}, {} already there\n",
        counted(exported.sessions, "session"),
        counted(exported.acceptances, "acceptance"),
        to.place(),
        exported.already,
    ));
    say_faults(&exported.faults, terminal);
    Ok(if exported.faults.is_empty() { ExitCode::Pass } else { ExitCode::StoreFailed })
}

fn verify(files: &dyn Files, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let verified = store::verify(files)?;
    terminal.say(&format!(
        "{}: {} in {}, {} with quarantined results, {}, {}\n",
        files.place(),
        counted(verified.runs, "run"),
        counted(verified.baselines, "baseline"),
        verified.quarantined,
        counted(verified.acceptances, "acceptance"),
        counted(verified.faults.len(), "unusable file"),
    ));
    say_faults(&verified.faults, terminal);
    Ok(if verified.faults.is_empty() { ExitCode::Pass } else { ExitCode::StoreFailed })
}
