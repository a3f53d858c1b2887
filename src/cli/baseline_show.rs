//! `benchgate baseline list` and `benchgate baseline show`.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;

use crate::exit_code::ExitCode;
use crate::model::{BenchmarkGlob, Better, Metric, MetricKind, Run, Series, Testbed, Unit, counted};
use crate::pipeline::Filter;
use crate::record::{AcceptanceFile, QuarantineRecord};
use crate::report::{self, percent, quantity, sparkline};
use crate::stats::change_points::change_points;
use crate::stats::describe;
use crate::store::{self, BaselineFolder, Files, RunName, StoreError, Stored};

use super::rendering::{OutputArgs, OutputFormat};
use super::store_args::{ShelfArgs, no_match, say_faults};
use super::{CliError, Terminal};

/// List suites and testbeds that have a baseline
#[derive(Debug, clap::Args)]
#[command(mut_arg("format", |format| OutputFormat::limit(format, OutputFormat::PEOPLE_OR_PROGRAMS)))]
pub struct List {
    #[command(flatten)]
    output: OutputArgs,
}

/// Show the sessions of a suite on a testbed: levels, spread, quarantine, changes
#[derive(Debug, clap::Args)]
#[command(mut_arg("format", |format| OutputFormat::limit(format, OutputFormat::PEOPLE_OR_PROGRAMS)))]
pub struct Show {
    #[command(flatten)]
    shelf: ShelfArgs,
    /// Number of newest sessions to read; the newest 40 of them are drawn as a line
    #[arg(long, value_name = "N", default_value_t = 100)]
    sessions: usize,
    /// Only benchmarks whose name (model/target/function) matches this regular expression; repeatable
    #[arg(long, value_name = "REGEX")]
    filter: Vec<Regex>,
    /// Only this metric
    #[arg(long, value_name = "NAME", default_value_t = Metric::LATENCY.name.into_owned())]
    metric: String,
    /// Show level changes with their commit ranges
    #[arg(long)]
    changes: bool,
    #[command(flatten)]
    output: OutputArgs,
}

pub fn list(args: &List, files: &dyn Files, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let destination = args.output.open()?;
    let mut rows = Vec::new();
    for (suite, testbed) in store::baseline_folders(files)? {
        let shelf = BaselineFolder::open_folder(files, format!("{suite}/{testbed}"))?;
        say_faults(&shelf.faults, terminal);
        let runs = shelf.runs(files)?;
        say_faults(&runs.faults, terminal);
        rows.push((suite, testbed, shelf.acceptances.len(), runs.names));
    }
    if args.output.format == OutputFormat::Json {
        let rows = rows.iter().map(|(suite, testbed, acceptances, runs)| {
            serde_json::json!({
                "suite": suite, "testbed": testbed, "sessions": runs.len(),
                "acceptances": acceptances,
                "newest": runs.last().map(RunName::as_str),
            })
        });
        let rows: serde_json::Value = rows.collect();
        destination.write(&format!("{rows:#}\n"), terminal)?;
        return Ok(ExitCode::Pass);
    }
    let mut text = String::new();
    for (suite, testbed, acceptances, runs) in &rows {
        let newest = runs.last().map_or("", RunName::time);
        let sessions = counted(runs.len(), "session");
        text.push_str(&format!("{suite}  testbed {testbed}  {sessions}, newest {newest}"));
        if *acceptances > 0 {
            text.push_str(&format!(", {}", counted(*acceptances, "acceptance")));
        }
        text.push('\n');
    }
    if rows.is_empty() {
        text = format!("no baseline in {}\n", files.place());
    }
    destination.write_lines(&text, terminal)?;
    Ok(ExitCode::Pass)
}

/// The number of sessions in a sparkline. Older sessions only count in the figures.
const LINE: usize = 40;

/// The values of one benchmark over the sessions.
pub(super) struct BenchmarkTrack {
    pub(super) unit: Unit,
    pub(super) better: Better,
    pub(super) is_exact: bool,
    /// For each session, oldest first, its index and the median of its processes.
    pub(super) points: Vec<(usize, f64)>,
    /// The sessions that are not part of this benchmark's baseline: those in quarantine, and those from
    /// before an accepted change.
    pub(super) held: BTreeSet<usize>,
}

impl BenchmarkTrack {
    /// Standard deviation of the logarithms over the sessions in the baseline, which approximates a
    /// coefficient of variation.
    fn spread(&self) -> Option<f64> {
        let good = self.points.iter().filter(|(at, _)| !self.held.contains(at));
        describe::stddev(&good.map(|(_, value)| value.ln()).collect::<Vec<_>>())
    }

    /// A sparkline of the newest sessions. The line includes quarantined sessions, since readers look for
    /// these first.
    fn line(&self, sessions: usize) -> String {
        let mut values = vec![None; sessions];
        for (at, value) in &self.points {
            values[*at] = Some(*value);
        }
        sparkline(&values, LINE)
    }

    fn logs(&self) -> Vec<f64> {
        self.points.iter().map(|(_, value)| value.ln()).collect()
    }
}

pub fn show(args: &Show, files: &dyn Files, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let destination = args.output.open()?;
    let shelf = args.shelf.open(files)?;
    let (sessions, more) = load(&shelf, files, args.sessions, terminal)?;
    let mut tracks = tracks(&sessions, &args.metric, &shelf);
    if tracks.is_empty() {
        require_metric(&sessions, &args.metric, &shelf)?;
    }
    let filter = Filter::new(&args.filter);
    tracks.retain(|name, _| filter.selects(name));
    if let (Some(asked), true) = (args.filter.first(), tracks.is_empty()) {
        return Err(no_match(asked.as_str(), &shelf.folder));
    }
    if args.output.format == OutputFormat::Json {
        let shown = as_json(&shelf, &sessions, &tracks);
        destination.write(&format!("{shown:#}\n"), terminal)?;
        return Ok(ExitCode::Pass);
    }
    let shown = counted(sessions.len(), "session");
    let older = if more { ", and older ones (--sessions N)" } else { "" };
    let machine = sessions.last().map(|stored| machine(&stored.file.testbed)).unwrap_or_default();
    let mut text = format!("{}{machine}: {shown}{older}\n", shelf.folder);
    for stored in sessions.iter().filter(|stored| !stored.file.quarantine.is_empty()) {
        text.push_str(&quarantine(stored, &shelf.acceptances));
    }
    for (_, accepted) in shelf.acceptances.iter().chain(&shelf.ended) {
        let what = accepted.benchmark.as_ref().map_or("every benchmark", BenchmarkGlob::as_str);
        let from = RunName::from_stem(&accepted.from).map_or(accepted.from.clone(), |name| name.readable());
        let (who, why) = (&accepted.who, &accepted.why);
        let line = if accepted.is_withdrawal() {
            format!("  acceptance withdrawn: {what} from {from} on: {who}: {why}\n")
        } else {
            let until = accepted.until.as_ref().map_or_else(String::new, |day| format!(" until {day}"));
            format!("  accepted {what} from {from} on{until}: {who}: {why}\n")
        };
        text.push_str(&line);
    }
    let mut changed = String::new();
    for (name, track) in &tracks {
        let newest = track.points.last().map_or(f64::NAN, |(_, value)| *value);
        let spread = track.spread().map_or_else(|| "unknown".to_owned(), percent);
        let count = track.points.len() - track.held.len();
        let newest = quantity(newest, &track.unit);
        let line = track.line(sessions.len());
        text.push_str(&format!(
            "{name}  {line}  {newest} newest, {spread} spread between {}\n",
            counted(count, "good session")
        ));
        if args.changes {
            let found = changes(&sessions, track);
            text.push_str(&found);
            changed.push_str(&found);
        }
    }
    if args.changes && changed.is_empty() {
        text.push_str(&format!("no change of level in {shown}\n"));
    }
    destination.write_lines(&text, terminal)?;
    Ok(ExitCode::Pass)
}

/// A line for each reason why results of a session were quarantined, with the benchmarks that share it.
fn quarantine(stored: &Stored, acceptances: &[(String, AcceptanceFile)]) -> String {
    let mut lines: Vec<(&str, &QuarantineRecord, Vec<&str>)> = Vec::new();
    for reason in &stored.file.quarantine {
        let whose = reason.benchmark.as_deref();
        let released = store::is_released(reason, whose, &stored.name, acceptances);
        let what = if released { "accepted" } else { "quarantined" };
        let is_same = |(of, known, whom): &&mut (&str, &QuarantineRecord, Vec<&str>)| {
            *of == what && known.cause == reason.cause && known.why == reason.why && !whom.is_empty()
        };
        match (whose, lines.iter_mut().find(is_same)) {
            (Some(name), Some((_, _, whom))) => whom.push(name),
            (name, _) => lines.push((what, reason, name.into_iter().collect())),
        }
    }
    let all = stored.file.run("").benchmarks.len();
    let session = stored.name.readable();
    let line = |(what, reason, whom): (&str, &QuarantineRecord, Vec<&str>)| {
        let whom = match whom.as_slice() {
            [] => "the whole run".to_owned(),
            [only] => (*only).to_owned(),
            many if many.len() == all => format!("all {all} benchmarks"),
            many if many.len() > NAMES => {
                format!("{} of {all} benchmarks, such as {}", many.len(), many[0])
            }
            few => few.join(", "),
        };
        format!("  {what} {session}: {whom}: {}: {}\n", reason.cause, reason.why)
    };
    lines.into_iter().map(line).collect()
}

/// Maximum number of benchmarks that the line of a session names.
const NAMES: usize = 5;

/// The newest sessions, oldest first, and whether there are older ones.
pub(super) fn load(
    shelf: &BaselineFolder,
    files: &dyn Files,
    newest: usize,
    terminal: &Terminal,
) -> Result<(Vec<Stored>, bool), StoreError> {
    // Requests one more than it returns, to find out whether there are older ones.
    let runs = shelf.newest_runs(files, newest.saturating_add(1))?;
    let more = runs.names.len() > newest;
    say_faults(&shelf.faults, terminal);
    say_faults(&runs.faults, terminal);
    let mut sessions = Vec::new();
    for loaded in shelf.load_all(files, &runs.names[usize::from(more)..]) {
        match loaded? {
            Ok(stored) => sessions.push(stored),
            Err(fault) => say_faults(&[fault], terminal),
        }
    }
    Ok((sessions, more))
}

/// The part of a testbed that people recognize: its processor and its GPUs.
fn machine(testbed: &Testbed) -> String {
    let named: Vec<&str> =
        ["gpu", "cpu"].iter().filter_map(|fact| testbed.facts.get(*fact)).map(String::as_str).collect();
    if named.is_empty() { String::new() } else { format!(" ({})", named.join(", ")) }
}

/// Refuses a metric that no session has, which is a mistake and not an empty result.
pub(super) fn require_metric(
    sessions: &[Stored],
    metric: &str,
    shelf: &BaselineFolder,
) -> Result<(), CliError> {
    let runs: Vec<Run> = sessions.iter().map(|stored| stored.file.run("")).collect();
    let series = runs.iter().flat_map(|run| &run.benchmarks).flat_map(|benchmark| &benchmark.metrics);
    let names: BTreeSet<&str> = series.map(|series| series.metric.name.as_ref()).collect();
    if names.is_empty() || names.contains(metric) {
        return Ok(());
    }
    let names: Vec<&str> = names.into_iter().collect();
    Err(CliError::usage(format!(
        "`{}` is no metric of the sessions in {}",
        report::clean(metric),
        shelf.folder
    ))
    .hint(format!("their metrics are {}", report::clean(&names.join(", ")))))
}

pub(super) fn tracks(
    sessions: &[Stored],
    metric: &str,
    shelf: &BaselineFolder,
) -> BTreeMap<String, BenchmarkTrack> {
    let mut tracks: BTreeMap<String, BenchmarkTrack> = BTreeMap::new();
    for (at, stored) in sessions.iter().enumerate() {
        for benchmark in stored.file.run("").benchmarks.iter().filter(|benchmark| benchmark.outcome.is_ok()) {
            let Some(series) = benchmark.metric(metric) else { continue };
            let value = match &series.series {
                Series::Exact(value) => Some(*value),
                Series::Summaries(summaries) => describe::median(
                    &summaries.iter().filter_map(|summary| summary.median).collect::<Vec<_>>(),
                ),
                Series::Processes(_) => None,
            };
            let Some(value) = value.filter(|value| value.is_finite() && *value > 0.0) else { continue };
            let track = tracks.entry(benchmark.name.to_string()).or_insert_with(|| BenchmarkTrack {
                unit: series.metric.unit.clone(),
                better: series.metric.better,
                is_exact: series.metric.kind == MetricKind::Exact,
                points: Vec::new(),
                held: BTreeSet::new(),
            });
            let name = benchmark.name.as_str();
            if !store::is_usable(stored, name, shelf) {
                track.held.insert(at);
            }
            track.points.push((at, value));
        }
    }
    tracks
}

/// Smaller changes are not listed one by one, because no gate could have detected them. The total includes
/// them.
pub(super) const LEAST_SHOWN: f64 = 0.003;

/// Describes every change of level, with the commits between the last session of the old level and the first
/// of the new one, and the total of several small changes.
fn changes(sessions: &[Stored], track: &BenchmarkTrack) -> String {
    let mut text = String::new();
    let found = change_points(&track.logs());
    let commit = |at: usize| {
        let name = &sessions[track.points[at].0].name;
        name.commit().map_or("unknown", |commit| commit.get(..8).unwrap_or(commit)).to_owned()
    };
    for change in found.iter().filter(|change| (change.after - change.before).abs() >= LEAST_SHOWN) {
        let session = sessions[track.points[change.at].0].name.readable();
        let time = session.split(" (").next().unwrap_or_default();
        let factor = change.after - change.before;
        let (from, to) = (commit(change.at - 1), commit(change.at));
        let how = moved(factor, track.better);
        text.push_str(&format!("  changed {time}: {how} in {from}..{to}\n"));
    }
    if let (Some(first), Some(last), true) = (found.first(), found.last(), found.len() > 1) {
        let how = moved(last.after - first.before, track.better);
        text.push_str(&format!("  together: {how} over {}\n", counted(found.len(), "change")));
    }
    text
}

fn moved(log_ratio: f64, better: Better) -> String {
    let word = match (better, log_ratio * better.worse() > 0.0) {
        (Better::Unknown, true) => "higher",
        (Better::Unknown, false) => "lower",
        (_, true) => "worse",
        (_, false) => "better",
    };
    format!("{} {word}", percent(log_ratio.exp_m1().abs()))
}

fn as_json(
    shelf: &BaselineFolder,
    sessions: &[Stored],
    tracks: &BTreeMap<String, BenchmarkTrack>,
) -> serde_json::Value {
    let sessions_json = sessions.iter().map(|stored| {
        serde_json::json!({
            "name": stored.name.as_str(), "commit": stored.file.commit, "quarantine": stored.file.quarantine,
        })
    });
    let benchmarks = tracks.iter().map(|(name, track)| {
        let points = track.points.iter().map(|(at, value)| {
            serde_json::json!({ "session": sessions[*at].name.as_str(), "value": value })
        });
        let changes = change_points(&track.logs()).into_iter().map(|change| {
            serde_json::json!({
                "first": sessions[track.points[change.at].0].name.as_str(),
                "last_before": sessions[track.points[change.at - 1].0].name.as_str(),
                "ratio": (change.after - change.before).exp(),
            })
        });
        serde_json::json!({
            "name": name, "unit": track.unit.as_str(), "spread": track.spread(),
            "points": points.collect::<serde_json::Value>(), "changes": changes.collect::<serde_json::Value>(),
        })
    });
    serde_json::json!({
        "folder": shelf.folder,
        "sessions": sessions_json.collect::<serde_json::Value>(),
        "acceptances": shelf.acceptances.iter().chain(&shelf.ended).map(|(_, file)| file).collect::<Vec<_>>(),
        "benchmarks": benchmarks.collect::<serde_json::Value>(),
    })
}
