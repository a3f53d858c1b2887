//! One page for one or several runs: charts, tables and machines. Self-contained: no script, no font and no file from
//! anywhere else, so that it can be an artifact that opens years later.

use std::fmt::Write;

use strum::VariantArray;

use benchgate_core::record::{OutcomeStatus, RunFile};
use benchgate_gate::Latency;

use super::DrawnRun;
use super::backends::{BackendTable, times};
use super::chart::{Picture, Theme, picture};
use super::human::quantity;
use super::view::View;
use super::{clean, markup, percent, words};
use benchgate_core::model::{Unit, Verdict};

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1f2328;--muted:#59636e;--ground:#fff;--line:#d9dfe5;--bad:#b3261e}\
body{font:15px/1.5 'DejaVu Sans',Verdana,sans-serif;color:var(--ink);background:var(--ground);max-width:940px;\
margin:2em auto;padding:0 1em}\
h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}\
table{border-collapse:collapse;width:100%;font-size:13px}\
th,td{text-align:left;padding:.3em .6em;border-bottom:1px solid var(--line);vertical-align:top}\
th{color:var(--muted);font-weight:normal}td.n{text-align:right;white-space:nowrap}\
p.note{color:var(--muted);font-size:13px}.bad{color:var(--bad)}\
svg{max-width:100%;height:auto}.dark{display:none}\
@media (max-width:50em){table{display:block;overflow-x:auto}th:last-child,td:last-child{min-width:18em}}\
@media (prefers-color-scheme:dark){:root{--ink:#f0f6fc;--muted:#9198a1;--ground:#0d1117;--line:#2f363e;\
--bad:#ff7b72}.dark{display:block}.light{display:none}}";

/// The page.
pub fn html(runs: &[DrawnRun]) -> String {
    let title = runs.first().map_or("benchgate", |run| run.file.suite.as_str());
    let mut body = String::new();
    for (run, compared) in runs.iter().filter_map(|run| Some((run, run.comparison.as_ref()?))) {
        let view = View::new(compared, None);
        let _ = writeln!(body, "<h2>{}</h2>\n<p>{}</p>", escape(&run.name), escape(&view.headline));
        if let Some(way_out) = &view.way_out {
            let _ = writeln!(body, "<p>{}</p>", escape(way_out));
        }
        for note in &compared.notes {
            let _ = writeln!(body, "<p class=\"note\">{}</p>", escape(note));
        }
        comparison(&view, &mut body);
    }
    for &which in Picture::VARIANTS {
        for theme in Theme::BOTH {
            let Some(svg) = picture(runs, which, theme) else { continue };
            let class = if theme == Theme::Dark { "dark" } else { "light" };
            let _ = writeln!(body, "<div class=\"{class}\">{svg}</div>");
        }
    }
    for run in runs {
        benchmarks(run, &mut body);
        backends(run, &mut body);
        machine(&run.file, &mut body);
    }
    page(title, &body)
}

/// A page that needs no other file.
pub(super) fn page(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\
         <title>{0}: benchgate</title><style>{STYLE}</style></head><body>\n<h1>{0}</h1>\n{body}</body></html>\n",
        escape(title)
    )
}

/// Untrusted text as text.
pub(super) fn escape(text: &str) -> String {
    markup::escape(&clean(text))
}

/// A table: cells that begin with a number mark are set to the right.
pub(super) fn table(page: &mut String, header: &[&str], rows: impl Iterator<Item = Vec<HtmlCell>>) {
    page.push_str("<table><tr>");
    for title in header {
        let _ = write!(page, "<th>{title}</th>");
    }
    page.push_str("</tr>\n");
    for row in rows {
        page.push_str("<tr>");
        for HtmlCell { text, class } in row {
            let _ = write!(page, "<td class=\"{class}\">{}</td>", escape(&text));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</table>\n");
}

pub(super) struct HtmlCell {
    text: String,
    class: &'static str,
}

pub(super) fn plain(text: impl Into<String>) -> HtmlCell {
    HtmlCell { text: text.into(), class: "" }
}

pub(super) fn number(text: impl Into<String>) -> HtmlCell {
    HtmlCell { text: text.into(), class: "n" }
}

fn bad(text: impl Into<String>) -> HtmlCell {
    HtmlCell { text: text.into(), class: "bad" }
}

fn comparison(view: &View<'_>, page: &mut String) {
    let rows = view.deciding().into_iter().chain(view.not_compared.iter().copied()).map(|row| {
        let reason = words::reason(row.row);
        let why =
            reason.detail.map_or(reason.sentence.clone(), |detail| format!("{}: {detail}", reason.sentence));
        let name = row.metric.map_or(row.name.to_owned(), |metric| format!("{} {metric}", row.name));
        vec![
            plain(name),
            match row.row.verdict {
                Verdict::Regressed | Verdict::Diverged | Verdict::Error => bad(row.row.verdict.to_string()),
                verdict => plain(verdict.to_string()),
            },
            number(row.values()),
            number(row.effect().unwrap_or_default()),
            number(row.interval().unwrap_or_default()),
            plain(why),
        ]
    });
    table(page, &["benchmark", "verdict", "base → head", "change", "interval", "why"], rows);
    if let Some(legend) = &view.legend {
        let _ = writeln!(page, "<p class=\"note\">{}</p>", escape(&legend.sentences()));
    }
}

fn benchmarks(run: &DrawnRun, page: &mut String) {
    let _ = writeln!(page, "<h2>Benchmarks of {}</h2>", escape(&run.name));
    let rows = run.file.sides.iter().flat_map(|side| {
        side.benchmarks.iter().map(move |benchmark| {
            let latency = run.latency(side.name, benchmark);
            let spread = latency.and_then(Latency::half_range);
            let outcome = match (&benchmark.outcome.status, &benchmark.outcome.why) {
                (OutcomeStatus::Ok, _) => {
                    let code = benchmark.verification.as_ref().map(|v| v.code.as_str());
                    plain(code.unwrap_or("not verified"))
                }
                (OutcomeStatus::Failed, why) => bad(why.clone().unwrap_or_default()),
                (_, why) => plain(why.clone().unwrap_or_default()),
            };
            vec![
                plain(&benchmark.name),
                plain(side.name.as_str()),
                number(latency.map(|l| quantity(l.typical, &Unit::Nanoseconds)).unwrap_or_default()),
                number(spread.map(|spread| format!("± {}", percent(spread))).unwrap_or_default()),
                number(benchmark.processes.len().to_string()),
                outcome,
            ]
        })
    });
    table(page, &["benchmark", "side", "latency", "processes' range", "processes", "outputs"], rows);
}

fn backends(run: &DrawnRun, page: &mut String) {
    let backends = BackendTable::new(run);
    if backends.is_empty() {
        return;
    }
    page.push_str("<h2>Other backends</h2>\n");
    let rows = backends.rows.iter().map(|row| {
        let outcome = match &row.why {
            Some(why) => plain(why),
            None => plain(row.code.unwrap_or("not verified")),
        };
        vec![
            plain(&row.model),
            plain(&row.backend),
            plain(row.work()),
            number(row.time().unwrap_or_default()),
            number(row.compile()),
            number(row.against_iree()),
            number(times(row.over_eager)),
            outcome,
        ]
    });
    let header: Vec<&str> = ["model"].into_iter().chain(super::backends::HEADER).collect();
    table(page, &header, rows);
    let _ = writeln!(page, "<p class=\"note\">{}</p>", escape(super::backends::LEGEND));
}

/// When it was measured: what the tool itself printed, because the record of a converted file is younger.
fn measured_at(run: &RunFile) -> &str {
    let mut printed = run.sides.iter().filter_map(|side| side.context.as_ref()?.date.as_deref());
    printed.next().unwrap_or(&run.created)
}

fn machine(run: &RunFile, page: &mut String) {
    page.push_str("<h2>Machine and tools</h2>\n");
    let mut rows: Vec<Vec<HtmlCell>> = vec![
        vec![plain("measured"), plain(measured_at(run))],
        vec![plain("testbed"), plain(&run.testbed.id)],
    ];
    rows.extend(run.testbed.facts.iter().map(|(name, value)| vec![plain(name), plain(value)]));
    for side in &run.sides {
        if let Some(tools) = &side.toolchain {
            let text = format!("IREE {} ({})", tools.version, tools.compiler_commit);
            rows.push(vec![plain(side.name.as_str()), plain(text)]);
        }
    }
    table(page, &["", ""], rows.into_iter());
}
