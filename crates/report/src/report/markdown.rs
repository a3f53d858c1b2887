//! A comparison as GitHub Markdown: the verdict first, what changed, what is wrong, then the rest folded.

mod escape;
mod failure;
mod source;

use benchgate_core::model::{Consequence, Verdict};
use benchgate_gate::Reason;

use super::sparkline::silhouette;
use super::terminal::CAUSES;
use super::view::MORE_COLUMNS;
use super::{RowView, View};
use escape::{message, paragraph};

pub(super) use escape::text;
pub use escape::{cell, code};
pub use failure::{Failure, failure, failure_headline};
pub use source::ResultSource;

/// Characters of a density: as wide as a name.
const SILHOUETTE: usize = 40;

/// How to lay it out.
#[derive(Debug, Clone, Copy, Default)]
pub struct MarkdownOptions {
    /// Bytes the whole may have (a comment 60,000, a job summary 900 KiB). Rows are left out, and
    /// counted, until it fits.
    pub max_bytes: Option<usize>,
}

/// Renders a view as Markdown.
pub fn markdown(view: &View<'_>, options: MarkdownOptions) -> String {
    let most = view.comparison.rows.len().max(view.lints.len()).max(view.comparison.notes.len() + 1);
    let whole = page(view, most);
    let Some(max_bytes) = options.max_bytes.filter(|max| whole.len() > *max) else { return whole };
    // The largest number of rows a section that still fits; fewer rows are never more bytes.
    let (mut fits, mut too_many) = (0, most);
    while too_many - fits > 1 {
        let middle = fits + (too_many - fits) / 2;
        if page(view, middle).len() <= max_bytes {
            fits = middle;
        } else {
            too_many = middle;
        }
    }
    page(view, fits)
}

/// A verdict at a glance. A word follows the icon, because not all readers see colors.
fn icon(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "✅",
        Verdict::Improved => "🟢",
        Verdict::Regressed => "🔴",
        Verdict::Diverged => "❌",
        Verdict::Inconclusive => "🟡",
        Verdict::Missing => "⚪",
        Verdict::Error => "⛔",
    }
}

fn page(view: &View<'_>, rows: usize) -> String {
    let mut page = MarkdownPage { text: String::new(), rows };
    page.top(view);
    let first = [&view.diverged, &view.failed, &view.changed, &view.open];
    let shown: Vec<RowView<'_>> = first.into_iter().flatten().copied().collect();
    if !shown.is_empty() {
        page.line("");
        page.table(&shown, RowDetail::Full);
    }
    for geomean in view.geomeans(false) {
        let target = geomean.target.as_ref().map(|name| format!(" on {}", code(name))).unwrap_or_default();
        let (metric, change) = (code(&geomean.metric.name), text(&super::view::geomean(geomean)));
        let rows = view.geomean_rows(geomean, &format!("{metric} row"));
        page.line(&format!("\nGeometric mean of {rows}{target}: {change}"));
    }
    page.list("Wrong outputs", &view.diverged);
    page.accuracy(view);
    page.list("Failed or missing", &view.failed);
    page.waived(view);
    page.folded("Why it is inconclusive", view.open.len(), |page| page.open(view));
    page.alignments(&[&view.changed, &view.open]);
    page.folded("Not compared", view.not_compared.len(), |page| page.reasons(&view.not_compared));
    page.folded("Unchanged", view.unchanged.len(), |page| page.table(&view.unchanged, RowDetail::Brief));
    page.folded("Informational metrics", view.reported.len(), |page| {
        page.table(&view.reported, RowDetail::Brief);
    });
    page.findings(view);
    page.facts(view);
    page.notes(view);
    page.reproduce(view);
    page.text.push_str(&source::footer(view.source.as_ref(), true));
    page.text
}

/// How much of a row a table shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RowDetail {
    /// Two lines per row, with the main values.
    Full,
    Brief,
}

struct MarkdownPage {
    text: String,
    /// Rows a section may show.
    rows: usize,
}

impl MarkdownPage {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// The verdict, the count, and warnings that stand before everything else.
    fn top(&mut self, view: &View<'_>) {
        let (word, rest) = view.headline.split_once(": ").unwrap_or((&view.headline, ""));
        let suite = view.comparison.suite.as_ref().map(|suite| format!(" · {}", code(suite)));
        let icon = icon(view.comparison.verdict);
        self.line(&format!("### {icon} {word}{}\n", suite.unwrap_or_default()));
        let (first, others) = match rest.split_once(", ") {
            Some((first, others)) => (first, format!(", {others}")),
            None => (rest, String::new()),
        };
        self.line(&format!("**{first}**{others}"));
        if let Some(way_out) = &view.way_out {
            self.line(&format!("\n{way_out}"));
        }
        for alert in &view.alerts {
            self.line(&format!("\n> [!IMPORTANT]\n> {}", paragraph(alert)));
        }
        self.causes(view);
        let warning = source::warning(view.source.as_ref());
        self.text.push_str(&warning);
    }

    /// The causes of a regression.
    fn causes(&mut self, view: &View<'_>) {
        let shown = self.rows.min(CAUSES);
        for (at, cause) in view.causes.iter().take(shown).enumerate() {
            let kernel = cause.kernel.map(message);
            let changes = cause.changes.iter().map(|change| text(change));
            let known = kernel.into_iter().chain(changes).collect::<Vec<_>>().join("; ");
            let gap = if at == 0 { "\n" } else { "" };
            self.line(&format!("{gap}- {}: {known}", cell(cause.benchmark)));
        }
    }

    fn more(&mut self, all: usize) {
        if all > self.rows {
            self.line(&format!("\n… and {} more, in the JSON report.", all - self.rows));
        }
    }

    fn table(&mut self, rows: &[RowView<'_>], layout: RowDetail) {
        match layout {
            RowDetail::Full => {
                // Where values are withheld there is only their spread to show.
                let values = if rows.iter().any(|row| !row.values().is_empty()) {
                    "base → head<br><sub>spread</sub>"
                } else {
                    "<sub>spread</sub>"
                };
                self.line(&format!(
                    "| | benchmark | change<br><sub>interval</sub> | {values} | floor<br><sub>could see</sub> | \
                     n |"
                ));
                self.line("|---|:--|--:|--:|--:|--:|");
            }
            RowDetail::Brief => {
                self.line("| verdict | benchmark | change | interval | base → head | floor | n |");
                self.line("|---|---|--:|--:|--:|--:|--:|");
            }
        }
        for row in rows.iter().take(self.rows) {
            let line = match layout {
                RowDetail::Full => full(row),
                RowDetail::Brief => brief(row),
            };
            self.line(&line);
        }
        self.more(rows.len());
    }

    fn list(&mut self, title: &str, rows: &[RowView<'_>]) {
        if !rows.is_empty() {
            self.line(&format!("\n**{title}**\n"));
            self.reasons(rows);
        }
    }

    fn reasons(&mut self, rows: &[RowView<'_>]) {
        for row in rows.iter().take(self.rows) {
            let words = row.words();
            let detail = words.detail.map(|detail| format!(": {}", message(&detail))).unwrap_or_default();
            let (icon, verdict) = (icon(row.row.verdict), row.row.verdict);
            let sentence = text(&words.sentence);
            self.line(&format!("- {icon} {verdict}: {}: {sentence}{detail}", subject(row)));
        }
        self.more(rows.len());
    }

    /// Why rows are open: an entry for each reason.
    fn open(&mut self, view: &View<'_>) {
        const NAMES: usize = 5;
        let waived: Vec<RowView<'_>> =
            view.open.iter().filter(|row| row.row.waiver.is_some()).copied().collect();
        let groups = view.open_groups();
        for group in groups.iter().take(self.rows) {
            if let [only] = group.rows.as_slice() {
                self.reasons(&[*only]);
                continue;
            }
            let detail = group.detail.as_deref().map(|detail| format!(": {}", message(detail)));
            let names: Vec<String> = group.rows.iter().take(NAMES).map(subject).collect();
            let rest = group.rows.len().saturating_sub(NAMES);
            let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
            let smallest = group.smallest.as_ref();
            let smallest =
                smallest.map(|change| format!("; this much data could have shown a change of {change}"));
            self.line(&format!(
                "- {} {} rows: {}{}{}: {}{more}",
                icon(Verdict::Inconclusive),
                group.rows.len(),
                text(&group.sentence),
                smallest.unwrap_or_default(),
                detail.unwrap_or_default(),
                names.join(", ")
            ));
        }
        self.more(groups.len());
        self.reasons(&waived);
    }

    /// The densities of both sides, one line each, so that a reader can check an estimate by eye.
    fn alignments(&mut self, sections: &[&Vec<RowView<'_>>]) {
        let rows = sections.iter().copied().flatten();
        let rows: Vec<_> = rows.filter_map(|row| Some((row, row.row.alignment.as_ref()?))).collect();
        self.folded("How base and head align", rows.len(), |page| {
            for (row, alignment) in rows.iter().take(page.rows) {
                let curves = [&alignment.base, &alignment.head, &alignment.aligned];
                let highest = curves.into_iter().flatten().copied().fold(f64::MIN_POSITIVE, f64::max);
                page.line(&format!("- {}", subject(row)));
                for (curve, name) in curves.into_iter().zip(["base", "head", "head moved back"]) {
                    let line = silhouette(curve, highest, SILHOUETTE);
                    page.line(&format!("  <br>`{line}` {name}"));
                }
            }
            page.more(rows.len());
        });
    }

    fn accuracy(&mut self, view: &View<'_>) {
        if view.less_accurate.is_empty() {
            return;
        }
        self.line("\n**Less accurate**\n");
        for row in view.less_accurate.iter().take(self.rows) {
            if let Some(words) = row.accuracy() {
                let detail = words.detail.map(|detail| format!(": {}", message(&detail))).unwrap_or_default();
                self.line(&format!("- ⚠️ {}: {}{detail}", subject(row), text(&words.sentence)));
            }
        }
        self.more(view.less_accurate.len());
    }

    fn waived(&mut self, view: &View<'_>) {
        let sections =
            [&view.changed, &view.open, &view.diverged, &view.failed, &view.unchanged, &view.reported];
        let waived: Vec<&RowView<'_>> =
            sections.into_iter().flatten().filter(|row| row.row.waiver.is_some()).collect();
        if waived.is_empty() {
            return;
        }
        self.line("\n**Waivers**\n");
        for row in waived.iter().take(self.rows) {
            if let Some(waiver) = &row.row.waiver {
                let state = if waiver.expired { "expired on" } else { "in force until" };
                let line = format!(
                    "- {}: {state} {}, {}: {}",
                    subject(row),
                    text(&waiver.expires),
                    code(&waiver.owner),
                    message(&waiver.reason)
                );
                self.line(&line);
            }
        }
        self.more(waived.len());
    }

    fn folded(&mut self, title: &str, count: usize, body: impl FnOnce(&mut Self)) {
        if count == 0 {
            return;
        }
        self.line(&format!("\n<details><summary>{title} ({count})</summary>\n"));
        body(self);
        self.line("\n</details>");
    }

    fn findings(&mut self, view: &View<'_>) {
        self.folded("Findings", view.lints.len(), |page| {
            for group in view.lints.iter().take(page.rows) {
                let consequence = match group.code.consequence() {
                    Consequence::Note => "note",
                    Consequence::Inconclusive => "no verdict",
                    Consequence::Error => "error",
                };
                page.line(&format!(
                    "- `{}` ({consequence}): {} {}",
                    group.code,
                    text(group.code.description()),
                    text(group.fix)
                ));
                let cases = page.rows.min(3);
                for (benchmark, detail) in group.found.iter().take(cases) {
                    let place = benchmark.as_ref().map(|name| code(name));
                    let detail = (!detail.is_empty()).then(|| message(detail));
                    let case: Vec<String> = place.into_iter().chain(detail).collect();
                    if !case.is_empty() {
                        page.line(&format!("  - {}", case.join(": ")));
                    }
                }
                if group.found.len() > cases {
                    page.line(&format!("  - … and {} more", group.found.len() - cases));
                }
            }
            page.more(view.lints.len());
        });
    }

    fn facts(&mut self, view: &View<'_>) {
        self.folded("Machine and tools", view.facts.len(), |page| {
            page.line("| | base | head |");
            page.line("|---|---|---|");
            for fact in &view.facts {
                let side =
                    |value: &Option<String>| value.as_ref().map(|value| cell(value)).unwrap_or_default();
                page.line(&format!("| {} | {} | {} |", fact.name, side(&fact.base), side(&fact.head)));
            }
        });
    }

    fn notes(&mut self, view: &View<'_>) {
        let known = |note: &&String| !view.alerts.contains(note);
        let legend = view.legend.as_ref().map(|legend| format!("{} {MORE_COLUMNS}", legend.sentences()));
        let notes: Vec<&String> = legend.iter().chain(view.comparison.notes.iter().filter(known)).collect();
        self.folded("Notes", notes.len(), |page| {
            for note in notes.iter().take(page.rows) {
                // Nothing may follow the dash that would begin a list of its own.
                let guard = if note.starts_with(char::is_alphabetic) { "" } else { "&#8203;" };
                page.line(&format!("- {guard}{}", paragraph(note)));
            }
            page.more(notes.len());
        });
    }

    fn reproduce(&mut self, view: &View<'_>) {
        if let Some(command) = &view.reproduce {
            self.line(&format!("\nTo repeat this: {}", message(command)));
        }
    }
}

/// The verdict of a row in a word or two.
fn standing(row: &RowView<'_>) -> String {
    let words = match (&row.row.verdict, &row.row.reason) {
        // The rest follows from the change.
        (Verdict::Regressed | Verdict::Improved, Reason::BeyondFloor | Reason::BelowFloor) => {
            row.row.verdict.to_string()
        }
        _ => text(&row.words().short),
    };
    if row.waived() { format!("waived: {words}") } else { words }
}

/// A waived row has no mark.
fn mark(row: &RowView<'_>) -> &'static str {
    if row.waived() { "⚪" } else { icon(row.row.verdict) }
}

fn full(row: &RowView<'_>) -> String {
    let change = row.effect().map(|effect| unbroken(&effect)).unwrap_or_default();
    let decided = matches!(row.row.verdict, Verdict::Regressed | Verdict::Improved) && !change.is_empty();
    let change = if decided { format!("**{change}**") } else { change };
    let interval = row.interval().unwrap_or_default();
    let cv = Some(row.cv()).filter(|cv| !cv.is_empty()).map(|cv| format!("CV {cv}")).unwrap_or_default();
    let findings = row.findings().into_iter().map(|code| format!(", {code}")).collect::<String>();
    format!(
        "| {} | {} | {} | {} | {} | {} |",
        mark(row),
        stacked(subject(row), &format!("{}{findings}", standing(row))),
        stacked(change, &unbroken(&interval)),
        stacked(unbroken(&row.values()), &unbroken(&cv)),
        stacked(unbroken(&row.floor()), &unbroken(&row.smallest())),
        stacked(unbroken(&row.processes()), &unbroken(&row.method())),
    )
}

/// A cell of two lines. Both are Markdown already.
fn stacked(first: String, second: &str) -> String {
    match (first.is_empty(), second.is_empty()) {
        (_, true) => first,
        (true, false) => format!("<sub>{second}</sub>"),
        (false, false) => format!("{first}<br><sub>{second}</sub>"),
    }
}

/// Numbers with their units, which a narrow table must not tear apart.
fn unbroken(numbers: &str) -> String {
    text(numbers).replace(' ', "\u{a0}")
}

fn brief(row: &RowView<'_>) -> String {
    let (processes, method) = (row.processes(), row.method());
    let separator = if processes.is_empty() || method.is_empty() { "" } else { ", " };
    let findings: String = row.findings().into_iter().map(|code| format!(" <sub>{code}</sub>")).collect();
    format!(
        "| {} {} | {}{findings} | {} | {} | {} | {} | {} |",
        mark(row),
        standing(row),
        subject(row),
        unbroken(&row.effect().unwrap_or_default()),
        unbroken(&row.interval().unwrap_or_default()),
        unbroken(&row.values()),
        unbroken(&row.floor()),
        text(&format!("{processes}{separator}{method}")),
    )
}

fn subject(row: &RowView<'_>) -> String {
    match row.metric {
        Some(metric) => format!("{} {}", cell(row.name), cell(metric)),
        None => cell(row.name),
    }
}
