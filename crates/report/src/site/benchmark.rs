//! The page of one benchmark.

use maud::{Markup, html};
use serde_json::json;

use super::causes::{Move, Range, compiler, sources};
use super::history::{BenchmarkHistory, Session, Timeline, Track};
use super::layout::{RepositoryUrl, data, name, page, slug, wide};
use super::plot::{Mark, chart, day, described, number, strip};
use super::stability::Unstable;
use crate::report::{change, clean, quantity};
use benchgate_core::model::short_commit;

/// Number of sessions in the table; the chart and its data contain all of them.
const ROWS: usize = 30;

pub fn path(timeline: &Timeline, benchmark: &str) -> String {
    format!("b/{}.html", slug(&[benchmark, &timeline.suite, &timeline.testbed.id]))
}

pub fn benchmark_page(
    timeline: &Timeline,
    benchmark: &str,
    history: &BenchmarkHistory,
    moved: &[(&str, Vec<Move>)],
    unstable: Option<&Unstable<'_>>,
    repository: Option<&RepositoryUrl>,
) -> String {
    let marks = marks(timeline, benchmark);
    let main = history.main().map(|(metric, _)| metric);
    let mut tracks: Vec<(&String, &Track)> = history.tracks.iter().collect();
    tracks.sort_by_key(|(metric, _)| Some(metric.as_str()) != main);
    let moves = |metric: &str| {
        moved.iter().find(|(of, _)| *of == metric).map(|(_, moves)| moves.as_slice()).unwrap_or_default()
    };
    let body = html! {
        h1 { (name(benchmark)) }
        p.where { "Suite " (name(&timeline.suite)) ", " (name(&timeline.machine)) " (testbed " (name(&timeline.testbed.id)) ")" }
        @if let Some(unstable) = unstable { p.unstable { "Unstable: " (unstable.sentence()) "." } }
        @for (metric, track) in tracks {
            section aria-labelledby=(format!("metric-{}", slug(&[metric]))) {
                h2 id=(format!("metric-{}", slug(&[metric]))) { (name(metric)) }
                (metric_section(timeline, metric, track, moves(metric), &marks, repository))
            }
        }
        @if history.tracks.is_empty() { p { "No session has measured this benchmark." } }
        @for state in timeline.newest().into_iter().flat_map(|newest| newest.state.keys()) {
            section { h2 { "Machine: " (clean(state)) } (strip(timeline, state)) }
        }
        (events(&marks))
        (failures(timeline, history))
        @if let Some((metric, track)) = history.main() { (table(timeline, benchmark, metric, track, repository)) }
        (machine(timeline))
    };
    page(benchmark, "../", &body)
}

fn metric_section(
    timeline: &Timeline,
    metric: &str,
    track: &Track,
    moves: &[Move],
    marks: &[Mark],
    repository: Option<&RepositoryUrl>,
) -> Markup {
    let id = slug(&[metric]);
    if let Some(value) = track.constant() {
        let count = benchgate_core::model::counted(track.points.len(), "session");
        return html! { p { (quantity(value, &track.unit)) " in all of " (count) "." } };
    }
    html! {
        (chart(timeline, &id, track, moves, marks))
        (data(&format!("data-{id}"), &points(timeline, track)))
        (legend(marks))
        @if moves.is_empty() {
            p.note { "No change of level found." }
        } @else {
            h3 { "Changes of level" }
            ol.changes {
                @for (at, moved) in moves.iter().enumerate() {
                    li id=(format!("{id}-change-{at}")) class=(if moved.is_worse() { "worse" } else { "better" }) {
                        (described(timeline, moved, &track.unit))
                        "; " (ranges(timeline.bounds(moved), repository))
                    }
                }
            }
        }
    }
}

/// Returns the commits between the last session at the old level and the first at the new one.
pub fn ranges((old, new): (&Session, &Session), repository: Option<&RepositoryUrl>) -> Markup {
    let iree = RepositoryUrl::parse("https://github.com/iree-org/iree");
    html! {
        @match (sources(old, new), compiler(old, new)) {
            (None, None) => "the same commit and compiler before and after",
            (Some(sources), None) => { "commits " (linked(&sources, repository)) },
            (None, Some(compiler)) => { "commits of the compiler " (linked(&compiler, iree.as_ref())) },
            (Some(sources), Some(compiler)) => {
                "commits " (linked(&sources, repository)) ", of the compiler " (linked(&compiler, iree.as_ref()))
            },
        }
    }
}

fn linked(range: &Range<'_>, repository: Option<&RepositoryUrl>) -> Markup {
    let text = format!("{}..{}", short_commit(range.from), short_commit(range.to));
    html! {
        @if let Some(url) = repository.and_then(|repository| repository.compare(range.from, range.to)) {
            a href=(url) rel="noreferrer" { (clean(&text)) }
        } @else { code { (clean(&text)) } }
    }
}

pub fn commit(text: &str, repository: Option<&RepositoryUrl>) -> Markup {
    html! {
        @if let Some(url) = repository.and_then(|repository| repository.commit(text)) {
            a href=(url) rel="noreferrer" { (clean(short_commit(text))) }
        } @else { code { (clean(short_commit(text))) } }
    }
}

/// Returns the data of the points, for the script.
fn points(timeline: &Timeline, track: &Track) -> serde_json::Value {
    let session = |at: usize| &timeline.sessions[at];
    let rounded = |value: f64| format!("{value:.6e}").parse().unwrap_or(value);
    let column = |of: &dyn Fn(&super::history::Point) -> serde_json::Value| {
        track.points.iter().map(of).collect::<serde_json::Value>()
    };
    json!({
        "t": column(&|point| session(point.session).began.as_second().into()),
        "v": column(&|point| rounded(point.value).into()),
        "l": column(&|point| rounded(point.low).into()),
        "h": column(&|point| rounded(point.high).into()),
        "c": column(&|point| session(point.session).commit.as_deref().map(|commit| clean(short_commit(commit))).into()),
        "q": track.points.iter().enumerate().filter(|(_, point)| point.held).map(|(at, _)| at)
            .collect::<serde_json::Value>(),
    })
}

/// Returns acceptances, and changes of the tools and the machine.
fn marks(timeline: &Timeline, benchmark: &str) -> Vec<Mark> {
    let mut marks = Vec::new();
    for accepted in &timeline.acceptances {
        let session = timeline.sessions.iter().position(|session| session.name == accepted.from);
        if let (Some(session), true) = (session, accepted.covers(Some(benchmark))) {
            let until = accepted.until.as_ref().map_or_else(String::new, |day| format!(" until {day}"));
            let label = format!("accepted by {}{until}: {}", accepted.who, accepted.why);
            marks.push(Mark { session, class: "accepted", target: String::new(), label });
        }
    }
    for (at, two) in timeline.sessions.windows(2).enumerate() {
        let (old, new) = (&two[0], &two[1]);
        if let (Some(before), Some(after)) = (&old.toolchain, &new.toolchain)
            && (before.compiler_commit != after.compiler_commit || before.version != after.version)
        {
            let (from, to) = (short_commit(&before.compiler_commit), short_commit(&after.compiler_commit));
            let label = format!("toolchain {} → {} ({from} → {to})", before.version, after.version);
            marks.push(Mark { session: at + 1, class: "toolchain", target: String::new(), label });
        }
        let differing = new.notes.iter().filter(|(key, value)| old.notes.get(*key) != Some(*value));
        let differing: Vec<String> = differing
            .filter_map(|(key, value)| Some(format!("{key} {} → {value}", old.notes.get(key)?)))
            .collect();
        if !differing.is_empty() {
            let label = format!("machine: {}", differing.join(", "));
            marks.push(Mark { session: at + 1, class: "machine", target: String::new(), label });
        }
    }
    marks.sort_by_key(|mark| mark.session);
    for (at, mark) in marks.iter_mut().enumerate() {
        mark.label = format!("{}: {}", day(timeline.sessions[mark.session].began), clean(&mark.label));
        mark.target = format!("#event-{at}");
    }
    marks
}

/// Returns the legend of a chart's vertical lines.
fn legend(marks: &[Mark]) -> Markup {
    let kinds = [
        ("accepted", "acceptance"),
        ("toolchain", "another toolchain"),
        ("machine", "a change of the machine"),
    ];
    let drawn = kinds.into_iter().filter(|(class, _)| marks.iter().any(|mark| mark.class == *class));
    html! {
        @if !marks.is_empty() {
            p.note.legend {
                "Upright lines: "
                @for (at, (class, what)) in drawn.enumerate() { @if at > 0 { ", " } span class=(class) { "┆ " (what) } }
                "; " a href="#events" { "details" }
            }
        }
    }
}

fn events(marks: &[Mark]) -> Markup {
    html! {
        @if !marks.is_empty() {
            section {
                h2 id="events" { "Acceptances, toolchain and machine" }
                ol.events { @for (at, mark) in marks.iter().enumerate() {
                    li id=(format!("event-{at}")) class=(mark.class) { bdi { (mark.label) } }
                } }
            }
        }
    }
}

fn failures(timeline: &Timeline, history: &BenchmarkHistory) -> Markup {
    html! {
        @if !history.failures.is_empty() {
            section {
                h2 { "Not measured" }
                p { "In " (history.failures.len()) " of " (timeline.sessions.len()) " sessions. The newest:" }
                ul { @for (at, why) in history.failures.iter().rev().take(5) {
                    li { (day(timeline.sessions[*at].began)) ": " (name(why)) }
                } }
            }
        }
    }
}

fn table(
    timeline: &Timeline,
    benchmark: &str,
    metric: &str,
    track: &Track,
    repository: Option<&RepositoryUrl>,
) -> Markup {
    let rows: Vec<usize> = (0..track.points.len()).rev().take(ROWS).collect();
    let content = html! {
        table {
            caption { "The newest " (rows.len()) " of " (track.points.len()) " sessions: " (name(metric)) }
            thead { tr { th scope="col" { "Session" } th scope="col" { "Commit" } th.n scope="col" { "Value" }
                th.n scope="col" { "Interval" } th.n scope="col" { "Processes" } th scope="col" { "Baseline" } } }
            tbody { @for at in rows {
                @let point = track.points[at];
                @let session = &timeline.sessions[point.session];
                tr {
                    th scope="row" { (session.began.strftime("%Y-%m-%d %H:%M").to_string()) }
                    td { @if let Some(text) = &session.commit { (commit(text, repository)) } @else { "unknown" } }
                    td.n { (quantity(point.value, &track.unit)) }
                    td.n { (quantity(point.low, &track.unit)) " – " (quantity(point.high, &track.unit)) }
                    td.n { (point.processes) }
                    td class=(if point.held { "held" } else { "" }) {
                        @if point.held { "quarantined: " (name(&reasons(session, benchmark))) } @else { "used" }
                    }
                }
            } }
        }
    };
    html! {
        section {
            h2 { "Sessions" }
            (wide("Sessions", &content))
            p.note {
                "The interval is the 95 % confidence interval of the median over processes; with fewer than six processes, it is their range."
            }
        }
    }
}

fn reasons(session: &Session, benchmark: &str) -> String {
    let of = |held: &&benchgate_core::record::QuarantineRecord| {
        held.benchmark.as_deref().is_none_or(|excluded| excluded == benchmark)
    };
    let said = session.held.iter().filter(of).map(|held| format!("{}: {}", held.cause, held.why));
    said.collect::<Vec<_>>().join("; ")
}

fn machine(timeline: &Timeline) -> Markup {
    let facts = timeline.testbed.facts.iter().chain(&timeline.testbed.notes);
    let state = timeline.newest().into_iter().flat_map(|newest| &newest.state);
    let tools = timeline.newest().and_then(|newest| newest.toolchain.as_ref());
    html! {
        section {
            h2 { "Machine and tools" }
            dl {
                @for (key, value) in facts { dt { (name(key)) } dd { (name(value)) } }
                @for (key, value) in state { dt { (name(key)) ", newest session" } dd { (number(*value)) } }
                @if let Some(tools) = tools {
                    dt { "toolchain" } dd { (name(&tools.version)) " (" (name(short_commit(&tools.compiler_commit))) ")" }
                }
            }
        }
    }
}

/// Formats a change as the overview shows it.
pub fn in_short(moved: &Move) -> String {
    change(moved.to / moved.from)
}
