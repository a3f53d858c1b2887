//! `--from-history`: takes the ends from the newest slowdown in the stored sessions.

use crate::git::Repository;
use crate::model::Metric;
use crate::pipeline::Filter;
use crate::record::QuarantineCause;
use crate::report;
use crate::site::{BenchmarkHistory, Session, Timeline};

use super::super::site::read_timeline;
use super::super::store_args::runner;
use super::super::{CliError, Terminal};
use super::BisectArgs;
use super::driver::only;
use super::observe::Observable;
use crate::cli::store_args::ShelfArgs;

/// The smallest slowdown that is searched for, as a ratio. `benchgate alert` ignores smaller ones as well.
const LEAST: f64 = 1.01;
/// The number of newest sessions that are read.
const SESSIONS: usize = 200;

/// A slowdown between two sessions.
struct Slowdown<'a> {
    benchmark: &'a str,
    ratio: f64,
    /// The last session that certainly has the old level. `after` is the first that certainly has the new
    /// one.
    before: usize,
    after: usize,
}

/// The arguments completed with both ends, and with the benchmark that got slower between them.
pub fn with_ends(args: &BisectArgs, terminal: &Terminal) -> Result<BisectArgs, CliError> {
    let Observable::Metric(metric) = &args.observe else {
        return Err(no_range(&format!(
            "stored sessions show changes of metrics, but not of {}",
            args.observe.name()
        ))
        .hint("name both ends with --good and --bad"));
    };
    let config = args.measure.load()?;
    let root = std::path::absolute(&config.root).unwrap_or_else(|_| config.root.clone());
    let repository = Repository::open(&root)?;
    let files = args.store.over(&config.store, &config.root).open(Some(&repository), &runner, terminal)?;
    let shelf = ShelfArgs::of_suite(&config.suite, args.testbed.as_deref()).open(files.as_ref())?;
    let timeline = read_timeline(files.as_ref(), &shelf, SESSIONS, terminal)?;
    let filter = Filter::new(&args.measure.filter);
    let newest = timeline.as_ref().and_then(|timeline| newest_slowdown(timeline, metric, &filter));
    let (Some(timeline), Some(found)) = (&timeline, newest) else {
        return Err(no_range(&format!("no {} in {} got worse by 1 % or more", metric.name, shelf.folder))
            .hint(
                "name both ends with --good and --bad; `benchgate baseline show --changes` lists the stored \
            changes",
            ));
    };
    let (old, new) = (&timeline.sessions[found.before], &timeline.sessions[found.after]);
    let (good, bad) = (commit(old)?, commit(new)?);
    let change = format!("{} of {} changed by {}", metric.name, found.benchmark, report::change(found.ratio));
    if good == bad {
        return Err(no_range(&format!(
            "{change} between {} and {}, which measured the same commit {good}",
            old.name, new.name
        ))
        .hint("look at the machine, or name two toolchains with --good and --bad"));
    }
    terminal.note(&format!("{change} between the stored sessions {} and {}", old.name, new.name));
    let mut args = args.clone();
    (args.good, args.bad) = (Some(good), Some(bad));
    args.measure.filter = vec![only(config.declared_name(found.benchmark))?];
    Ok(args)
}

fn no_range(why: &str) -> CliError {
    CliError::usage(format!("failed to find a range to search: {why}"))
}

fn commit(session: &Session) -> Result<String, CliError> {
    session.commit.clone().ok_or_else(|| {
        no_range(&format!("the stored session {} does not name the commit that it measured", session.name))
            .hint("name both ends with --good and --bad")
    })
}

/// The slowdown that ends last; if several do, the largest of them.
fn newest_slowdown<'a>(timeline: &'a Timeline, metric: &Metric, filter: &Filter) -> Option<Slowdown<'a>> {
    let selected = timeline.benchmarks.iter().filter(|(name, _)| filter.selects(name));
    let all = selected.flat_map(|(name, history)| slowdowns(timeline, name, history, metric));
    all.filter(|found| found.ratio >= LEAST)
        .max_by(|x, y| x.after.cmp(&y.after).then(x.ratio.total_cmp(&y.ratio)))
}

fn slowdowns<'a>(
    timeline: &Timeline,
    benchmark: &'a str,
    history: &BenchmarkHistory,
    metric: &Metric,
) -> Vec<Slowdown<'a>> {
    let Some(track) = history.tracks.get(metric.name.as_ref()) else { return Vec::new() };
    // A regressed session can be searched immediately, whereas detecting a change of level takes three
    // sessions.
    let red = |session: usize| {
        timeline.sessions[session].held.iter().any(|reason| {
            reason.cause == QuarantineCause::Regressed
                && reason.benchmark.as_deref().is_none_or(|held| held == benchmark)
        })
    };
    let reds = track.points.iter().rev().take_while(|point| red(point.session)).count();
    if let Some(first) = track.points.len().checked_sub(reds).filter(|first| reds > 0 && *first > 0)
        && let Some(costs) = track.costs()
    {
        let (before, after) = (track.points[first - 1].session, track.points[first].session);
        return vec![Slowdown { benchmark, ratio: (costs[first] - costs[first - 1]).exp(), before, after }];
    }
    let moves = track.moves().into_iter();
    moves
        .map(|found| Slowdown {
            benchmark,
            ratio: found.cost_ratio,
            before: found.before,
            after: found.latest,
        })
        .collect()
}
