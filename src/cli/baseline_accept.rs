//! `benchgate baseline accept`: accepts a change, and prints the command that does so.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::Path;

use crate::exit_code::ExitCode;
use crate::git::Repository;
use crate::model::{BenchmarkGlob, SideName, shell_word};
use crate::record::{AcceptanceFile, AcceptanceSchema, QuarantineCause, QuarantineRecord, RunFile};
use crate::store::{self, AcceptedSessions, BaselineFolder, Files, StoreError, Stored, Updated};

use super::store_args::{ShelfArgs, StorePlace, no_match, say_faults};
use super::{CliError, Terminal, runtime};

/// Accept a change
///
/// Later runs are no longer compared with sessions before --since. Regressed sessions from --since until now join
/// the baseline; later regressed sessions are excluded again. A benchmark that the session should have measured but
/// did not keeps its history, unless --benchmark matches only such benchmarks.
#[derive(Debug, clap::Args)]
pub struct Accept {
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

/// Benchmarks that are quarantined because the run does not contain them.
pub fn absent<'a>(file: &RunFile, side: SideName, quarantine: &'a [QuarantineRecord]) -> BTreeSet<&'a str> {
    let measured = file.side(side).map_or_else(BTreeSet::new, |side| {
        side.benchmarks.iter().map(|benchmark| benchmark.name.as_str()).collect()
    });
    let named = quarantine.iter().filter_map(|reason| reason.benchmark.as_deref());
    named.filter(|name| !measured.contains(name)).collect()
}

/// The scope of one `baseline accept`: benchmarks (`None` stands for all), and the session from which on they are accepted.
#[derive(Debug, PartialEq, Eq)]
pub struct Acceptable<'a> {
    since: &'a str,
    benchmarks: Option<BTreeSet<&'a str>>,
}

impl<'a> Acceptable<'a> {
    /// These benchmarks of the session that was just stored.
    pub fn of_newest(updated: &'a Updated, benchmarks: BTreeSet<&'a str>) -> Self {
        Self { since: session(updated), benchmarks: Some(benchmarks) }
    }

    /// The intended changes of a session: each slowdown from its first session on, because sessions before it still show
    /// the earlier level. `all` are the benchmarks of the session.
    pub fn intended(
        updated: &'a Updated,
        all: &BTreeSet<&'a str>,
        is_intended: impl Fn(&QuarantineRecord) -> bool,
    ) -> Vec<Self> {
        let reasons: Vec<_> = updated.quarantine.iter().filter(|reason| is_intended(reason)).collect();
        // A later session is only released from slowdowns, so any other change is accepted in the session that has it.
        let since = |benchmark: &Option<String>| {
            let mut own = reasons.iter().filter(|reason| reason.benchmark == *benchmark);
            let is_slow = own.all(|reason| reason.cause == QuarantineCause::Regressed);
            let first = updated.red_since.get(benchmark).filter(|_| is_slow);
            first.map_or_else(|| session(updated), store::RunName::as_str)
        };
        if let Some(whole) = reasons.iter().find(|reason| reason.benchmark.is_none()) {
            return vec![Self { since: since(&whole.benchmark), benchmarks: None }];
        }
        let mut found: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for reason in &reasons {
            found.entry(since(&reason.benchmark)).or_default().extend(reason.benchmark.as_deref());
        }
        let is_all = |benchmarks: &BTreeSet<&str>| benchmarks.is_superset(all);
        let found = found.into_iter().map(|(since, benchmarks)| Self {
            since,
            benchmarks: Some(benchmarks).filter(|benchmarks| !is_all(benchmarks)),
        });
        found.collect()
    }

    pub fn command(&self, file: &RunFile, place: &StorePlace) -> String {
        let (suite, testbed) = (shell_word(&file.suite), shell_word(&file.testbed.id));
        let benchmark = self.benchmarks.as_ref().map_or_else(String::new, |names| {
            let names: Vec<String> = names.iter().map(|name| globset::escape(name)).collect();
            let glob =
                if let [one] = names.as_slice() { one.clone() } else { format!("{{{}}}", names.join(",")) };
            format!(" --benchmark {}", shell_word(glob))
        });
        let (place, session) = (place.options(), shell_word(self.since));
        format!(
            "benchgate baseline accept {suite} --testbed {testbed} {place} --since {session}{benchmark} --why REASON"
        )
    }
}

/// The name of the stored session.
fn session(updated: &Updated) -> &str {
    Path::new(&updated.path).file_stem().and_then(OsStr::to_str).unwrap_or_default()
}

pub fn accept(
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
    let acceptance = AcceptanceFile {
        schema: AcceptanceSchema,
        benchgate: benchgate_core::VERSION.to_owned(),
        sha256: String::new(),
        suite,
        testbed,
        created: now.to_string(),
        from: String::new(),
        benchmark: args.benchmark.as_ref().map(BenchmarkGlob::new),
        not_measured: Vec::new(),
        later_runs: None,
        who,
        why: args.why.clone(),
        until: until.map(|day| day.to_string()),
    };
    let (path, from) = store::accept(files, acceptance, args.since.as_deref())?;
    let what = args.benchmark.as_deref().unwrap_or("every benchmark");
    if args.withdraw {
        terminal.say(&format!(
            "withdrew the acceptance of {what} from {from} on, in {path}\nsessions that were stored under the \
             acceptance are no longer part of the baseline; later sessions are compared with those before it\n"
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
        let benchmark =
            glob.map_or_else(String::new, |glob| format!(" --benchmark {}", shell_word(glob.as_str())));
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
        let glob = shell_word(globset::escape(name));
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

pub fn loaded(shelf: &BaselineFolder, files: &dyn Files, name: &store::RunName) -> Result<Stored, CliError> {
    shelf.load(files, name)?.map_err(|fault| {
        CliError::input(format!("failed to read {}: {}", fault.path, fault.why))
            .hint("`benchgate baseline verify` lists every damaged file")
    })
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
            found = shelf.load(files, &older?)?.is_ok_and(|older| has(&older));
        }
        if !found {
            return Err(no_match(pattern, &shelf.folder));
        }
    }
    Ok((stored.file.suite, stored.file.testbed.id))
}

#[cfg(test)]
mod tests {
    use QuarantineCause::{Diverged, Errored, Regressed, Undecided};

    use super::*;

    #[test]
    fn each_slowdown_is_accepted_from_its_first_session_on_and_nothing_else_is() {
        let reason = |cause, benchmark: Option<&str>| QuarantineRecord {
            cause,
            why: "latency: 1.1 ×".to_owned(),
            benchmark: benchmark.map(str::to_owned),
        };
        let stored = |quarantine: Vec<QuarantineRecord>| {
            let first = store::RunName::new("2026-11-20T03:00:00Z", Some("aaaaaaa")).unwrap();
            let red_since =
                [Some("a/x"), Some("b"), Some("w"), None].map(|it| (it.map(str::to_owned), first.clone()));
            Updated {
                path: "suite/testbed/new.json".to_owned(),
                quarantine,
                already: false,
                comparison: None,
                red_since: red_since.into(),
                faults: Vec::new(),
                notes: Vec::new(),
            }
        };
        let all: BTreeSet<&str> = ["a/x", "b", "c", "w"].into();
        let of = |updated: &Updated| {
            let is_intended = |reason: &QuarantineRecord| reason.cause != Errored;
            let found = Acceptable::intended(updated, &all, is_intended);
            let listed = |names: BTreeSet<&str>| names.into_iter().map(str::to_owned).collect::<Vec<_>>();
            found.into_iter().map(|it| (it.since.to_owned(), it.benchmarks.map(listed))).collect::<Vec<_>>()
        };
        let several = stored(vec![
            reason(Regressed, Some("a/x")),
            reason(Regressed, Some("b")),
            reason(Regressed, Some("c")),
            reason(Regressed, Some("w")),
            reason(Undecided, Some("w")),
            reason(Errored, Some("d")),
        ]);
        let old = "20261120T030000Z-aaaaaaa".to_owned();
        let names = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(
            of(&several),
            [(old.clone(), names(&["a/x", "b"])), ("new".to_owned(), names(&["c", "w"]))]
        );
        let whole = stored(vec![reason(Regressed, None), reason(Regressed, Some("c"))]);
        assert_eq!(of(&whole), [(old, None)]);
        let every = ["a/x", "b", "c", "w"].map(|name| reason(Diverged, Some(name)));
        assert_eq!(of(&stored(every.into())), [("new".to_owned(), None)]);
    }
}
