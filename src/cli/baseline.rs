//! `benchgate baseline`: stores runs, quarantines them, and accepts changes.

use std::path::Path;

use crate::config::{self, Config, Store};
use crate::exit_code::ExitCode;
use crate::gate::{self, CompareOptions, Comparison, Reason, Row};
use crate::git::Repository;
use crate::model::{LintCode, Run, SideName, Verdict, counted};
use crate::record::{QuarantineCause, QuarantineRecord, RunFile};
use crate::report::{self, TerminalOptions, View};
use crate::store::{self, Files, Lineage, StoreError, UpdateOptions, Updated};

use super::baseline_accept::{Accept, Acceptable, absent, accept, loaded};
use super::policy_args::PolicyArgs;
use super::rendering::{ComparisonArgs, RunFileArgs};
use super::run_args::BackendArgs;
use super::session::{MeasureArgs, side, with_anchor};
use super::store_args::{ShelfArgs, StoreArgs, StoreAt, StorePlace, runner, say_faults};
use super::{CliError, Terminal, baseline_show, choices, inputs, reading, reporting, runtime};

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
    let config = match &args.command {
        BaselineCommand::Update(update) => {
            let file = Some(&update.measuring.config).filter(|file| file.exists());
            file.map(|file| config::load(file)).transpose()?
        }
        _ => args.store.configured(&MeasureArgs::default_config(), false)?,
    };
    let place = args.store.place(config.as_ref());
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
        runtime::leave_no_earlier_result(run)?;
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
    let absent = absent(&file, args.side, &updated.quarantine);
    // The commands are printed without wrapping, so that they can be copied.
    let advise = |reason: &str, accepted: &[Acceptable<'_>]| {
        terminal.say(reason);
        for accepted in accepted {
            terminal.print(&format!("  {}\n", report::clean(&accepted.command(&file, place))));
        }
    };
    let all = file.side(args.side).into_iter().flat_map(|side| &side.benchmarks);
    let all = all.map(|benchmark| benchmark.name.as_str()).collect();
    let intended = Acceptable::intended(&updated, &all, may_be_intended);
    if !intended.is_empty() {
        let commands = if intended.len() == 1 { "this command accepts" } else { "these commands accept" };
        advise(
            &format!(
                "quarantined results are excluded from the baseline; if the changes are intended, {commands} them:\n"
            ),
            &intended,
        );
    } else if updated.quarantine.len() > absent.len() {
        terminal.say(
            "quarantined results are excluded from the baseline; no acceptance is needed: once the cause is gone, the \
             next session joins the baseline again\n",
        );
    }
    if !absent.is_empty() {
        let gone =
            "if the benchmarks that were not measured are gone on purpose, this command accepts that:\n";
        advise(gone, &[Acceptable::of_newest(&updated, absent)]);
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

/// Returns whether a change of the program may have caused the quarantine, and not the machine or a failure.
fn may_be_intended(reason: &QuarantineRecord) -> bool {
    match reason.cause {
        QuarantineCause::Regressed | QuarantineCause::Diverged => true,
        QuarantineCause::Undecided => {
            // The reason of a row begins with its metric.
            let mut parts = reason.why.split(": ").take(2);
            let intended = [LintCode::WorkloadChanged, LintCode::FactChanged].map(LintCode::as_str);
            reason.why == store::STILL_RED || parts.any(|part| intended.contains(&part))
        }
        QuarantineCause::Errored | QuarantineCause::Unverified | QuarantineCause::Incomplete => false,
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_reasons_that_a_change_of_the_program_can_have_may_be_intended() {
        let is_intended = |cause, why: &str| {
            may_be_intended(&QuarantineRecord { cause, why: why.to_owned(), benchmark: None })
        };
        let undecided = |why| is_intended(QuarantineCause::Undecided, why);
        assert!(is_intended(QuarantineCause::Regressed, "latency: 1.1 × the value of the stored sessions"));
        assert!(undecided("latency: workload-changed: other inputs") && undecided(store::STILL_RED));
        assert!(
            !undecided("foreign-process: 8 of 8 processes") && !undecided("latency: likely slower: 1.1 ×")
        );
        assert!(!is_intended(QuarantineCause::Errored, "a device is missing"));
    }
}
