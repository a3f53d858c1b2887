//! Renders a document as a self-contained page. It has no script, font or file from elsewhere, so a page that
//! was stored as an artifact still opens years later.

use benchgate_core::model::clean;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{Block, Part, Text, Tone, escape};

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1f2328;--muted:#59636e;--ground:#fff;--line:#d9dfe5;--bad:#b3261e}\
body{font:15px/1.5 'DejaVu Sans',Verdana,sans-serif;color:var(--ink);background:var(--ground);max-width:940px;\
margin:2em auto;padding:0 1em}\
h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}h3{font-size:1em}summary{margin-top:1em}\
table{border-collapse:collapse;width:100%;font-size:13px}\
th,td{text-align:left;padding:.3em .6em;border-bottom:1px solid var(--line);vertical-align:top}\
th{color:var(--muted);font-weight:normal}.n{text-align:right;white-space:nowrap}small{color:var(--muted)}\
p.note{color:var(--muted);font-size:13px}.bad{color:var(--bad)}\
svg{max-width:100%;height:auto}.dark{display:none}\
@media (max-width:50em){table{display:block;overflow-x:auto}th:last-child,td:last-child{min-width:18em}}\
@media (prefers-color-scheme:dark){:root{--ink:#f0f6fc;--muted:#9198a1;--ground:#0d1117;--line:#2f363e;\
--bad:#ff7b72}.dark{display:block}.light{display:none}}";

const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// Returns a page that needs no other file.
pub(in crate::report) fn page(title: &str, blocks: &[Block<'_>]) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                title { (shown(title)) ": benchgate" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { (shown(title)) }
                @for block in blocks { "\n" (put(block)) }
            }
        }
    };
    page.into_string() + "\n"
}

fn put(block: &Block<'_>) -> Markup {
    html! {
        @match block {
            Block::Title(text) => h2 { (line(text)) },
            Block::Prose(text) => p { (line(text)) },
            Block::Commands(lines) => pre { (lines) },
            Block::Callout(_, text) => p { strong { (line(text)) } },
            Block::Small(text) => p.note { (line(text)) },
            Block::List(items) => ul { @for item in items { li {
                (line(&item.text))
                @if !item.details.is_empty() { ul { @for detail in &item.details { li { (line(detail)) } } } }
            } "\n" } },
            Block::Table(layouts) => @for table in layouts.iter().take(1) {
                table {
                    tr { @for column in &table.columns { th class=[column.number.then_some("n")] { (stacked(&column.title)) } } }
                    "\n"
                    @for row in &table.rows { tr { @for (cell, column) in row.iter().zip(&table.columns) {
                        td class=[class(cell.tone, column.number)] { (stacked(&cell.lines)) }
                    } } "\n" }
                }
            },
            Block::Section { title, count, blocks } => @match count {
                None => { h3 { (title) } @for block in blocks { (put(block)) } },
                Some(count) => details { summary { (title) " (" (count) ")" } @for block in blocks { (put(block)) } },
            },
            Block::Picture([light, dark]) => {
                div.light { (PreEscaped(light)) }
                div.dark { (PreEscaped(dark)) }
            },
            Block::Break => {},
        }
    }
}

const fn class(tone: Tone, number: bool) -> Option<&'static str> {
    match (tone, number) {
        (Tone::Bad, true) => Some("bad n"),
        (Tone::Bad, false) => Some("bad"),
        (_, true) => Some("n"),
        (_, false) => None,
    }
}

fn stacked(lines: &[Text<'_>]) -> Markup {
    html! {
        @for (at, text) in lines.iter().filter(|text| !text.is_empty()).enumerate() {
            @if at == 0 { (line(text)) } @else { br; small { (line(text)) } }
        }
    }
}

fn line(text: &Text<'_>) -> Markup {
    html! {
        @for part in &text.0 {
            @match part {
                Part::Ours(text) | Part::Name(text) | Part::Message(text) => (shown(text)),
                Part::Strong(text, _) => strong { (shown(text)) },
                Part::Copied(text) => code { (shown(text)) },
                Part::Icon(icon) => { (icon) " " },
                Part::Link(label, address) => a href=(address) { (label) },
            }
        }
    }
}

/// Escapes text, also for a log in which commands would be executed.
fn shown(text: &str) -> Markup {
    PreEscaped(escape(&clean(text)))
}
