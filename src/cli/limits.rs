//! `benchgate limits`: proposes absolute limits from the stored history.

use std::path::Path;

use regex::Regex;

use crate::config;
use crate::exit_code::ExitCode;
use crate::git::Repository;
use crate::model::{Better, Metric, Testbed, Unit, counted};
use crate::pipeline::Filter;
use crate::report::percent;
use crate::stats::change_points::change_points;
use crate::stats::prediction::PredictionMethod;

use super::baseline_show::{self, BenchmarkTrack, LEAST_SHOWN};
use super::session::MeasureArgs;
use super::store_args::{ShelfArgs, StoreArgs, no_match, runner};
use super::{CliError, Terminal};

/// Propose absolute limits
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  benchgate limits propose --branch
  benchgate limits propose zoo --rate 5% --metric latency --metric vmfb-size
  benchgate limits propose zoo --distribution-free >> benchgate.toml")]
pub struct LimitsArgs {
    #[command(subcommand)]
    command: LimitsCommand,
    #[command(flatten)]
    store: StoreArgs,
}

#[derive(Debug, clap::Subcommand)]
enum LimitsCommand {
    Propose(Propose),
}

/// Print a [[limit]] for each benchmark, with a stated false-alarm rate
///
/// Reads the good sessions since the last change of level, and prints limits. The probability that the next session
/// of unchanged code exceeds any of them is at most --rate. The limit of a size or count is its newest value.
#[derive(Debug, clap::Args)]
struct Propose {
    #[command(flatten)]
    shelf: ShelfArgs,
    /// Maximum share of sessions of unchanged code that exceed a limit
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = rate)]
    rate: f64,
    /// Assume no distribution, which needs more sessions; without this option, times are assumed to be log-normal
    #[arg(long)]
    distribution_free: bool,
    /// Only this metric; repeatable
    #[arg(long, value_name = "NAME", default_value = Metric::LATENCY.name.as_ref())]
    metric: Vec<String>,
    /// Only benchmarks whose name (model/target/function) matches this regular expression; repeatable
    #[arg(long, value_name = "REGEX")]
    filter: Vec<Regex>,
    /// Number of newest sessions to read
    #[arg(long, value_name = "N", default_value_t = 365)]
    sessions: usize,
    /// The responsible person or team, written into each limit
    #[arg(long, value_name = "TEXT")]
    owned_by: Option<String>,
}

fn rate(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.trim_end_matches('%').trim().parse().ok();
    let number = number.filter(|percent| (0.01..=50.0).contains(percent));
    number.map(|percent| percent / 100.0).ok_or_else(|| "expected 0.01% to 50%".to_owned())
}

pub fn run(args: &LimitsArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let LimitsCommand::Propose(propose) = &args.command;
    let repository = Repository::open(Path::new(".")).ok();
    let config = args.store.configured(&MeasureArgs::default_config(), false)?;
    let files = args.store.place(config.as_ref()).open(repository.as_ref(), &runner, terminal)?;
    let shelf = propose.shelf.open(files.as_ref())?;
    let (sessions, _) = baseline_show::load(&shelf, files.as_ref(), propose.sessions, terminal)?;
    let mut rows: Vec<Row> = Vec::new();
    let filter = Filter::new(&propose.filter);
    for metric in &propose.metric {
        let tracks = baseline_show::tracks(&sessions, metric, &shelf);
        if tracks.is_empty() {
            baseline_show::require_metric(&sessions, metric, &shelf)?;
        }
        let selected = tracks.into_iter().filter(|(name, _)| filter.selects(name));
        rows.extend(selected.map(|(name, track)| Row::new(name, metric, &track)));
    }
    if let (Some(asked), true) = (propose.filter.first(), rows.is_empty()) {
        return Err(no_match(asked.as_str(), &shelf.folder));
    }
    let proposal = Proposal { propose, folder: &shelf.folder, rows: &rows, of_all: sessions.len() };
    let testbed = sessions.last().and_then(|stored| machine(&stored.file.testbed));
    let (text, skipped) = proposal.text(testbed);
    for line in &skipped {
        terminal.warn(line);
    }
    if skipped.len() == rows.len() {
        return Err(CliError::failed(format!("no limit can be proposed for {}", shelf.folder))
            .hint("store more sessions with `benchgate baseline update`, or allow a larger --rate"));
    }
    terminal.say(&text);
    Ok(ExitCode::Pass)
}

/// The name of the machine to which the limits apply, in a form that people recognize.
fn machine(testbed: &Testbed) -> Option<&str> {
    ["gpu", "cpu"].iter().find_map(|fact| testbed.facts.get(*fact)).map(String::as_str)
}

/// A metric of a benchmark, with its values in the good sessions since the last change of level.
struct Row {
    benchmark: String,
    metric: String,
    unit: Unit,
    better: Better,
    is_exact: bool,
    /// The values, oldest first.
    values: Vec<f64>,
    /// The number of sessions that are quarantined or from before an acceptance.
    held: usize,
}

impl Row {
    fn new(benchmark: String, metric: &str, track: &BenchmarkTrack) -> Self {
        let good = track.points.iter().filter(|(at, _)| !track.held.contains(at));
        let mut values: Vec<f64> = good.map(|(_, value)| *value).collect();
        let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
        let moved = change_points(&logs);
        let last = moved.iter().rfind(|change| (change.after - change.before).abs() >= LEAST_SHOWN);
        values.drain(..last.map_or(0, |change| change.at));
        let (metric, unit) = (metric.to_owned(), track.unit.clone());
        let (better, is_exact, held) = (track.better, track.is_exact, track.held.len());
        Self { benchmark, metric, unit, better, is_exact, values, held }
    }

    /// The limit in the metric's unit; `None` if there are too few sessions.
    fn limit(&self, method: PredictionMethod, rate: f64) -> Option<f64> {
        if self.is_exact {
            return self.values.last().copied();
        }
        // Converts to costs, for which larger is worse in both directions.
        let sign = self.better.worse();
        let costs: Vec<f64> = self.values.iter().map(|value| sign * value.ln()).collect();
        method.upper_bound(&costs, rate).map(|bound| (sign * bound).exp())
    }

    /// The limit as TOML, such as `max = "12.35ms"`. The limit is rounded away from the measured values, so
    /// that rounding can't cause a false alarm.
    fn bound(&self, limit: f64) -> String {
        let is_max = self.better != Better::Higher;
        let key = if is_max { "max" } else { "min" };
        if self.is_exact {
            return format!("{key} = {limit}");
        }
        let (scale, unit) = match self.unit {
            Unit::Nanoseconds if limit >= 1e9 => (1e9, "s"),
            Unit::Nanoseconds if limit >= 1e6 => (1e6, "ms"),
            Unit::Nanoseconds if limit >= 1e3 => (1e3, "us"),
            Unit::Nanoseconds => (1.0, "ns"),
            _ => (1.0, ""),
        };
        let value = rounded(limit / scale, is_max);
        if unit.is_empty() { format!("{key} = {value}") } else { format!("{key} = \"{value}{unit}\"") }
    }
}

/// Rounds to four significant digits, up or down.
fn rounded(value: f64, up: bool) -> f64 {
    const DIGITS: i32 = 4;
    let exponent = DIGITS - 1 - value.abs().log10().floor() as i32;
    let scaled = value * 10_f64.powi(exponent);
    let whole = if up { scaled.ceil() } else { scaled.floor() };
    // Division by a power of ten gives the float nearest to the decimal number; multiplication by its inverse
    // doesn't.
    if exponent >= 0 { whole / 10_f64.powi(exponent) } else { whole * 10_f64.powi(-exponent) }
}

struct Proposal<'a> {
    propose: &'a Propose,
    folder: &'a str,
    rows: &'a [Row],
    of_all: usize,
}

impl Proposal<'_> {
    /// The limits as TOML, and a sentence for each row that can't have one.
    fn text(&self, testbed: Option<&str>) -> (String, Vec<String>) {
        let Self { propose, folder, rows, of_all } = self;
        let method = if propose.distribution_free {
            PredictionMethod::OrderStatistic
        } else {
            PredictionMethod::Normal
        };
        let noisy = rows.iter().filter(|row| !row.is_exact).count();
        // The false-alarm rate of all limits together is at most the sum of their rates, even if they are
        // correlated.
        let each = propose.rate / noisy.max(1) as f64;
        let (mut limits, mut skipped, mut proposed) = (String::new(), Vec::new(), 0);
        for row in *rows {
            let Row { benchmark, metric, values, held, is_exact, .. } = row;
            let sessions = counted(values.len(), "session");
            let left_out = if *held > 0 {
                format!(" ({held} in quarantine or before an acceptance)")
            } else {
                String::new()
            };
            let Some(limit) = row.limit(method, each) else {
                let needed = method.least_values(each);
                skipped.push(format!(
                    "{benchmark}: no limit for {metric}: only {sessions} at the newest level{left_out}, but a rate of {} needs {needed}",
                    percent(each)
                ));
                continue;
            };
            let basis = match (*is_exact, method) {
                (true, _) => "the newest value".to_owned(),
                (false, PredictionMethod::OrderStatistic) => {
                    format!(
                        "from {sessions}: at most {} of sessions of unchanged code exceed it",
                        percent(each)
                    )
                }
                (false, PredictionMethod::Normal) => format!(
                    "from {sessions}: at most {} of sessions of unchanged code exceed it if their times are log-normal, at most 1 in {} in any case",
                    percent(each),
                    values.len() + 1
                ),
            };
            let name = quoted(&globset::escape(benchmark));
            let mut table = format!("[[limit]]\nbenchmark = {name}\nmetric = {}\n", quoted(metric));
            table.push_str(&format!("{}\n", row.bound(limit)));
            let testbed = testbed.map(globset::escape);
            for (key, value) in [("testbed", testbed.as_deref()), ("owner", propose.owned_by.as_deref())] {
                if let Some(value) = value {
                    table.push_str(&format!("{key} = {}\n", quoted(value)));
                }
            }
            // For example, the metric has almost the name of a built-in one.
            if let Err(problem) = config::check_policy(&table) {
                skipped.push(format!("{benchmark}: no limit for {metric}: {problem}"));
                continue;
            }
            proposed += 1;
            limits.push_str(&format!("\n# {basis}{left_out}\n{table}"));
        }
        let head = format!(
            "# {}, proposed from the newest {} of {folder}. At most {} of sessions of unchanged code exceed any of\n\
             # them, if later sessions resemble those since the last change of level.\n",
            counted(proposed, "limit"),
            counted(*of_all, "session"),
            percent(propose.rate),
        );
        (head + &limits, skipped)
    }
}

/// A text as a TOML string. JSON's escapes are valid in TOML.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_rounded_away_from_the_values() {
        assert_eq!((rounded(12.341, true), rounded(12.349, false)), (12.35, 12.34));
        assert_eq!((rounded(123_456.0, true), rounded(0.001_234_1, true)), (123_500.0, 0.001_235));
        assert_eq!(rounded(12.34, true), 12.34);
    }
}
