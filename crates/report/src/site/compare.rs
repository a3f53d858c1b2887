//! The page that compares any two sessions. Each session is a separate file, which the page loads as a script
//! when it is chosen: a page that was opened from a disk may load scripts, but may not fetch data.

use maud::html;
use serde_json::{Value, json};

use super::history::Timeline;
use super::layout::{data, page, slug};
use crate::report::clean;
use benchgate_core::model::short_commit;

/// Returns the folder of a timeline's sessions.
fn folder(timeline: &Timeline) -> String {
    format!("s/{}", slug(&[&timeline.suite, &timeline.testbed.id]))
}

/// Returns the page that compares sessions; it lists the timelines and loads the rest.
pub fn compare_page(timelines: &[Timeline]) -> String {
    let listed = timelines.iter().map(|timeline| {
        json!({ "suite": clean(&timeline.suite), "testbed": clean(&timeline.machine), "folder": folder(timeline) })
    });
    let body = html! {
        h1 { "Compare sessions" }
        p.noscript {
            "Choosing sessions needs JavaScript. " code { "benchgate baseline diff BASE HEAD" }
            " compares two stored sessions with full statistics and gives a verdict."
        }
        div.chooser hidden {
            label { "Suite and testbed " select id="timeline" {} }
            label { "Base " select id="base" {} }
            label { "Head " select id="head" {} }
            label { "Metric " select id="metric" {} }
        }
        p id="verdict" hidden {}
        p id="compared" role="status" {}
        div.wide role="region" aria-label="Compared benchmarks" tabindex="0" {
            table id="comparison" hidden {
                caption { "Head against base" }
                thead { tr { th scope="col" { "Benchmark" } th.n scope="col" { "Base" } th.n scope="col" { "Head" }
                    th.n scope="col" { "Change" } th scope="col" { "Result" } } }
                tbody {}
            }
        }
        p.note {
            "Medians over processes and their intervals. These intervals don't include the spread between sessions; "
            code { "benchgate baseline diff" } " takes it into account."
        }
        (data("timelines", &listed.collect::<Value>()))
    };
    page("Compare sessions", "", &body)
}

/// Returns the file that the script loads first: the sessions of a timeline and the addresses of its
/// benchmarks.
pub fn index(timeline: &Timeline) -> (String, String) {
    let sessions = timeline.sessions.iter().map(|session| {
        json!([
            file(&session.name),
            session.began.strftime("%Y-%m-%d %H:%M").to_string(),
            session.commit.as_deref().map(|commit| clean(short_commit(commit))),
            !session.held.is_empty()
        ])
    });
    let benchmarks =
        timeline.benchmarks.keys().map(|name| json!([clean(name), super::benchmark::path(timeline, name)]));
    let content =
        json!({ "sessions": sessions.collect::<Value>(), "benchmarks": benchmarks.collect::<Value>() });
    script(&format!("{}/index.js", folder(timeline)), &content)
}

/// Returns the values of every session, one file each.
pub fn sessions(timeline: &Timeline) -> impl Iterator<Item = (String, String)> + '_ {
    // Each track is read once, and its values are distributed to the sessions.
    let mut values: Vec<Vec<Value>> = timeline.sessions.iter().map(|_| Vec::new()).collect();
    let rounded = |value: f64| -> f64 { format!("{value:.6e}").parse().unwrap_or(value) };
    for (at, history) in timeline.benchmarks.values().enumerate() {
        for (metric, track) in &history.tracks {
            for point in &track.points {
                let better = track.better.worse() as i8;
                values[point.session].push(json!([
                    at,
                    clean(metric),
                    track.unit.as_str(),
                    better,
                    rounded(point.value),
                    rounded(point.low),
                    rounded(point.high)
                ]));
            }
        }
    }
    timeline.sessions.iter().zip(values).map(move |(session, values)| {
        script(&format!("{}/{}.js", folder(timeline), file(&session.name)), &Value::Array(values))
    })
}

/// Returns the name of a session's file; the names of two sessions may differ only in case.
fn file(session: &str) -> String {
    slug(&[session])
}

fn script(path: &str, content: &Value) -> (String, String) {
    (path.to_owned(), format!("benchgate.loaded({}, {content});\n", Value::from(path)))
}
