//! A comparison for a person at a terminal, or for a log.

use std::borrow::Cow;
use std::collections::BTreeSet;

use anstyle::{AnsiColor, Style};
use comfy_table::Color;

use benchgate_core::exit_code::ExitCode;
use benchgate_core::model::{Consequence, LintCode, Metric, Unit, Verdict, clean, counted};
use benchgate_gate::{Reason, method_notes};

use super::grid::{Grid, GridCell, GridColumn, PLAIN, RULED, verdict_color};
use super::markup::first_lines;
use super::view::{Legend, MORE_COLUMNS};
use super::words::UNDECIDED;
use super::wrap::paragraph;
use super::{Fact, LintGroup, RegressionCause, RowView, View, quantity};

/// How to lay it out.
#[derive(Debug, Clone, Copy)]
pub struct TerminalOptions {
    /// Columns of the terminal.
    pub width: u16,
    pub color: bool,
    /// Everything: all rows and columns, what doesn't decide, each case of a finding, the machine.
    pub all: bool,
}

impl Default for TerminalOptions {
    fn default() -> Self {
        Self { width: 80, color: false, all: false }
    }
}

/// Sentences are wrapped to this at most: longer lines are hard to read.
const PROSE: usize = 100;
/// Sentences of one section before the rest is only counted.
const SENTENCES: usize = 20;
/// Number of benchmarks whose cause is at the top.
pub(super) const CAUSES: usize = 3;
/// Rows of a table before the rest is only counted, unless everything is requested.
const ROWS: usize = 50;
/// Names of one group before the rest is only counted.
const NAMES: usize = 3;
/// Cases of one lint before the rest is only counted.
const CASES: usize = 3;

/// Renders a view as text: gating rows, their reasons, findings, and the verdict last, where a terminal's cursor is.
pub fn terminal(view: &View<'_>, options: TerminalOptions) -> String {
    let mut page = TerminalPage::new(options);
    page.tables(view);
    page.causes(&view.causes);
    page.section("Wrong outputs", &view.diverged);
    page.accuracy(&view.less_accurate);
    page.section("Failed or missing", &view.failed);
    page.open(view);
    page.section("Not compared", &view.not_compared);
    page.section("Waived", &waived(view));
    page.lints(view);
    page.facts(view);
    page.notes(view);
    page.verdict(view);
    page.into_text()
}

fn waived<'a>(view: &View<'a>) -> Vec<RowView<'a>> {
    let rows = [&view.changed, &view.unchanged, &view.reported];
    rows.into_iter().flatten().filter(|row| row.row.waiver.is_some()).cloned().collect()
}

/// A message of several lines that may quote untrusted text, made fit for a terminal and a log.
pub fn harmless(text: &str) -> String {
    text.split('\n').map(|line| disarm(&clean(line)).into_owned()).collect::<Vec<_>>().join("\n")
}

fn disarm(line: &str) -> Cow<'_, str> {
    let start = line.len() - line.trim_start().len();
    if line[start..].starts_with("::") {
        Cow::Owned(format!("{}∷ {}", &line[..start], &line[start + 2..]))
    } else {
        Cow::Borrowed(line)
    }
}

/// A text that grows by the line, as wide as the terminal.
pub(super) struct TerminalPage {
    text: String,
    options: TerminalOptions,
    /// The table is done, and the lines below it have begun.
    below: bool,
}

impl TerminalPage {
    pub(super) fn new(options: TerminalOptions) -> Self {
        Self { text: String::new(), options, below: false }
    }

    /// The whole, harmless.
    pub(super) fn into_text(self) -> String {
        // A log of GitHub Actions obeys lines that begin with `::`, wherever they come from.
        self.text.split_inclusive('\n').map(disarm).collect()
    }

    pub(super) fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn styled(&self, style: Style, text: &str) -> String {
        if self.options.color { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    pub(super) fn title(&mut self, title: &str) {
        let title = self.styled(Style::new().bold(), title);
        self.line(&format!("\n{title}"));
    }

    /// Begins a section: with its title if everything is shown. Otherwise a blank line below the table is enough,
    /// because each line names its subject.
    fn heading(&mut self, title: &str) {
        if self.options.all {
            self.title(title);
        } else if !self.below && !self.text.is_empty() {
            self.line("");
        }
        self.below = true;
    }

    /// An entry of a section.
    fn entry(&mut self, text: &str) {
        let (first, rest) = if self.options.all { ("  ", "      ") } else { ("", "    ") };
        self.prose(&clean(text), first, rest);
    }

    /// A wrapped paragraph: the first line starts with `first`, the others with `rest`.
    pub(super) fn prose(&mut self, text: &str, first: &str, rest: &str) {
        let width = PROSE.min(usize::from(self.options.width.max(40)));
        self.line(&paragraph(text, width, first, rest));
    }

    /// The verdict in a sentence, with the exit code.
    fn verdict(&mut self, view: &View<'_>) {
        self.line("");
        if let Some(way_out) = &view.way_out {
            self.prose(way_out, "", "    ");
        }
        let (code, verdict) = (view.comparison.exit_code, view.comparison.verdict);
        let not_asked = code == ExitCode::Pass && !matches!(verdict, Verdict::Pass | Verdict::Improved);
        let why = if not_asked { ", not asked to fail" } else { "" };
        let (word, rest) = view.headline.split_once(':').unwrap_or((&view.headline, ""));
        let start = self.text.len();
        self.prose(&format!("{word} (exit code {}{why}):{rest}", code.code()), "", "    ");
        // Colored after wrapping, because codes have no width.
        let end = start + word.len();
        let word = self.styled(style_of(verdict).bold(), word);
        self.text.replace_range(start..end, &word);
    }

    /// The causes of a regression.
    fn causes(&mut self, causes: &[RegressionCause<'_>]) {
        if !causes.is_empty() {
            self.heading("Causes");
        }
        for cause in causes.iter().take(CAUSES) {
            let known = cause.kernel.into_iter().chain(cause.changes.iter().map(String::as_str));
            let known = known.collect::<Vec<_>>().join("; ");
            self.entry(&format!("{}: {known}", cause.benchmark));
        }
        if causes.len() > CAUSES {
            let more = counted(causes.len() - CAUSES, "more benchmark");
            self.entry(&format!("… and {more} with a known cause"));
        }
    }

    fn tables(&mut self, view: &View<'_>) {
        let deciding = view.deciding();
        let shown = if self.options.all { deciding.len() } else { deciding.len().min(ROWS) };
        if !deciding.is_empty() {
            self.table(&deciding[..shown], view);
        }
        if shown < deciding.len() {
            let rest = quantity((deciding.len() - shown) as f64, &Unit::Count);
            self.line(&format!("… and {rest} more (--all)"));
        }
        if self.options.all && !view.reported.is_empty() {
            self.title("Informational metrics");
            self.table(&view.reported, view);
        } else if !view.reported.is_empty() {
            let count = |verdict: Verdict| {
                let rows = view.reported.iter().filter(|row| row.row.verdict == verdict).count();
                (rows > 0).then(|| format!("{rows} {verdict}"))
            };
            let changed: Vec<String> =
                [Verdict::Regressed, Verdict::Improved].into_iter().filter_map(count).collect();
            let changed =
                if changed.is_empty() { String::new() } else { format!(" ({})", changed.join(", ")) };
            let rows = counted(view.reported.len(), "informational row");
            let them = if view.reported.len() == 1 { "it" } else { "them" };
            self.prose(&format!("{rows}{changed}; --all shows {them}"), "", "    ");
        }
        let geomeans = view.geomeans(self.options.all);
        for geomean in &geomeans {
            let several = geomeans.iter().any(|other| other.target != geomean.target);
            let target = geomean.target.as_deref().filter(|_| several).map(|name| format!(" on {name}"));
            let metric = Some(&geomean.metric.name).filter(|name| **name != Metric::LATENCY.name);
            let metric = metric.map(|name| format!("{name} ")).unwrap_or_default();
            let rows = view.geomean_rows(geomean, &format!("{metric}row"));
            let text = super::view::geomean(geomean);
            let text = format!("Geometric mean of {rows}{}: {text}", target.unwrap_or_default());
            self.prose(&clean(&text), "", "    ");
        }
        if let Some(legend) = view.legend.as_ref().filter(|_| self.options.all) {
            self.prose(&format!("{} {MORE_COLUMNS}", legend.sentences()), "", "");
        }
    }

    /// The roomiest layout in which no word has to be split, and, but for the last ones, no name.
    fn table(&mut self, rows: &[RowView<'_>], view: &View<'_>) {
        let interval = view.legend.as_ref().map_or_else(|| "interval".to_owned(), Legend::interval);
        let width = usize::from(self.options.width);
        let grid = if self.options.all {
            let grids = [wide, narrow].map(|layout| layout(rows).without_empty_columns());
            grids.into_iter().find(|grid| grid.least_width() <= width).unwrap_or_else(|| tight(rows))
        } else {
            let unwrapped = |grid: &Grid| grid.full_width() <= width;
            let unsplit = |grid: &Grid| grid.least_width() <= width;
            let made = |grid: Grid| Some(grid.without_empty_columns());
            made(one_line(rows, &interval))
                .filter(unwrapped)
                .or_else(|| made(compact(rows, &interval, Compact::WithReasons)).filter(unwrapped))
                .or_else(|| made(compact(rows, &interval, Compact::WholeNames)).filter(unsplit))
                .or_else(|| made(compact(rows, &interval, Compact::WrappedNames)).filter(unsplit))
                .unwrap_or_else(|| three_lines(rows))
        };
        self.grid(&grid.without_empty_columns());
    }

    pub(super) fn grid(&mut self, grid: &Grid) {
        for line in grid.lines(self.options.width, self.options.color) {
            self.line(&line);
        }
    }

    fn section(&mut self, title: &str, rows: &[RowView<'_>]) {
        if !rows.is_empty() {
            self.heading(title);
            self.sentences(rows);
        }
    }

    fn sentences(&mut self, rows: &[RowView<'_>]) {
        for row in rows.iter().take(SENTENCES) {
            let waiver = match &row.row.waiver {
                Some(waiver) if waiver.expired => {
                    format!("; the waiver of {} expired on {}", waiver.owner, waiver.expires)
                }
                Some(waiver) => {
                    format!("; waived by {} until {}: {}", waiver.owner, waiver.expires, waiver.reason)
                }
                None => String::new(),
            };
            let words = row.words();
            let detail = words.detail.map(|detail| format!(": {}", first_lines(&detail))).unwrap_or_default();
            let text = format!("{} ({}): {}{detail}{waiver}", name(row), row.row.verdict, words.sentence);
            self.entry(&text);
        }
        self.rest(rows.len());
    }

    fn rest(&mut self, count: usize) {
        if count > SENTENCES {
            self.entry(&format!("… and {} more", count - SENTENCES));
        }
    }

    /// Why rows are open: a paragraph for each reason.
    fn open(&mut self, view: &View<'_>) {
        let groups = view.open_groups();
        if !view.open.is_empty() {
            self.heading("Inconclusive");
        }
        for group in groups.iter().take(SENTENCES) {
            if let ([only], true) = (group.rows.as_slice(), self.options.all) {
                self.sentences(&[*only]);
                continue;
            }
            let detail = group.detail.as_deref().map(first_lines);
            // The line already states that the row is inconclusive.
            let sentence =
                Some(group.sentence.as_str()).filter(|said| detail.is_none() || *said != UNDECIDED);
            let reason = sentence.into_iter().chain(detail.as_deref()).collect::<Vec<_>>().join(": ");
            let smallest = group.smallest.as_ref().filter(|_| self.options.all);
            let smallest =
                smallest.map(|change| format!("; this much data could have shown a change of {change}"));
            let names: Vec<String> = group.rows.iter().take(NAMES).map(name).collect();
            let more = match group.rows.len().saturating_sub(NAMES) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            self.entry(&format!(
                "{}{more} ({}): {reason}{}",
                names.join(", "),
                Verdict::Inconclusive,
                smallest.unwrap_or_default()
            ));
        }
        self.rest(groups.len());
        let waived: Vec<RowView<'_>> =
            view.open.iter().filter(|row| row.row.waiver.is_some()).copied().collect();
        self.sentences(&waived);
    }

    fn accuracy(&mut self, rows: &[RowView<'_>]) {
        if rows.is_empty() {
            return;
        }
        self.heading("Less accurate");
        for row in rows.iter().take(SENTENCES) {
            if let Some(words) = row.accuracy() {
                let detail = words.detail.map(|detail| format!(": {detail}")).unwrap_or_default();
                self.entry(&format!("{}: {}{detail}", name(row), words.sentence));
            }
        }
        self.rest(rows.len());
    }

    fn lints(&mut self, view: &View<'_>) {
        // The facts already name the differing tools.
        let repeated = |group: &&LintGroup| {
            !self.options.all
                && group.code == LintCode::ToolchainMismatch
                && view.facts.iter().any(|fact| is_of_tools(fact) && is_telling(fact, view))
        };
        let lints: Vec<&LintGroup> = view.lints.iter().filter(|group| !repeated(group)).collect();
        if !lints.is_empty() {
            self.heading("Findings");
        }
        // Notes without details share one line.
        let mut counts = Vec::new();
        for group in lints {
            let consequence = match group.code.consequence() {
                Consequence::Note => "note",
                Consequence::Inconclusive => "no verdict",
                Consequence::Error => "error",
            };
            if self.options.all {
                self.finding(group, consequence);
                continue;
            }
            let is_note = group.code.consequence() == Consequence::Note;
            match places(group) {
                (place, false) if is_note => counts.push(format!("{} ({place})", group.code)),
                (place, _) => {
                    // The fix of a note is shown by --all; any other finding prevents a verdict.
                    let fix = if is_note { String::new() } else { format!(". {}", group.fix) };
                    self.entry(&format!("{} ({consequence}): {place}{fix}", group.code));
                }
            }
        }
        if !counts.is_empty() {
            self.entry(&format!("notes: {}; --all explains them", counts.join(", ")));
        }
    }

    /// A finding with its meaning, its first cases, and its fix.
    fn finding(&mut self, group: &LintGroup, consequence: &str) {
        self.entry(&format!("{} ({consequence}): {}", group.code, group.code.description()));
        for (benchmark, detail) in group.found.iter().take(CASES) {
            let place = benchmark.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
            self.prose(&clean(&format!("{place}{detail}")), "      - ", "        ");
        }
        if group.found.len() > CASES {
            self.line(&format!("      … and {} more", group.found.len() - CASES));
        }
        self.prose(group.fix, "      fix: ", "           ");
    }

    fn facts(&mut self, view: &View<'_>) {
        let facts: Vec<&Fact> =
            view.facts.iter().filter(|fact| self.options.all || is_telling(fact, view)).collect();
        if facts.is_empty() {
            return;
        }
        self.heading("Machine and tools");
        if !self.options.all {
            let differing: Vec<String> = facts.into_iter().map(fact_in_short).collect();
            self.entry(&format!("differs: {}", differing.join("; ")));
            return;
        }
        let width = facts.iter().map(|fact| fact.name.len()).max().unwrap_or_default();
        for fact in facts {
            let text = match (&fact.base, &fact.head) {
                (Some(base), Some(head)) if base == head => format!("{base} (both)"),
                (base, head) => {
                    let side = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
                    format!("{} → {}", side(base), side(head))
                }
            };
            let first = format!("  {:width$}  ", fact.name);
            self.prose(&clean(&text), &first, &" ".repeat(first.len()));
        }
    }

    fn notes(&mut self, view: &View<'_>) {
        let comparison = view.comparison;
        // How it was judged is the same in every report, and in the documentation.
        let known = match self.options.all {
            true => Vec::new(),
            false => method_notes(&comparison.rows, &comparison.policy),
        };
        let notes: Vec<&String> = comparison.notes.iter().filter(|note| !known.contains(note)).collect();
        if !notes.is_empty() {
            self.heading("Notes");
        }
        for note in notes {
            if self.options.all {
                self.prose(&clean(note), "  - ", "    ");
            } else {
                self.entry(&format!("note: {note}"));
            }
        }
        if let Some(command) = &view.reproduce {
            self.heading("To repeat this");
            // Not wrapped: it is there to be copied.
            let indent = if self.options.all { "  " } else { "to repeat this: " };
            self.line(&format!("{indent}{}", clean(command)));
        }
        if let Some(written) = &view.written {
            self.heading("Written");
            self.entry(written);
        }
    }
}

/// Whether a differing fact is worth reporting. Files have different names and times in every comparison, and another
/// version of the tools has other commits and another benchmark library.
fn is_telling(fact: &Fact, view: &View<'_>) -> bool {
    let other_version = || view.facts.iter().any(|fact| fact.name == "tools" && fact.base != fact.head);
    let expected = match fact.name {
        "input" | "measured" | "load" => true,
        "compiler commit" | "runtime commit" | "benchmark library" => other_version(),
        _ => false,
    };
    fact.base != fact.head && !expected
}

fn is_of_tools(fact: &Fact) -> bool {
    matches!(fact.name, "tools" | "compiler commit" | "runtime commit")
}

/// `compiler commit 1a668193 → 89ece87b`.
fn fact_in_short(fact: &Fact) -> String {
    const DIGITS: usize = 8;
    let side = |value: &Option<String>| match value.as_deref() {
        None => "unknown".to_owned(),
        Some(commit) if commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            commit[..DIGITS].to_owned()
        }
        Some(value) => value.to_owned(),
    };
    format!("{} {} → {}", fact.name, side(&fact.base), side(&fact.head))
}

/// Place of a finding, and whether it includes the detail: a single case does, several benchmarks are counted.
fn places(group: &LintGroup) -> (String, bool) {
    let benchmarks: BTreeSet<&str> = group.found.iter().filter_map(|(name, _)| name.as_deref()).collect();
    match (group.found.as_slice(), benchmarks.len()) {
        ([(place, detail)], _) => {
            (place.iter().chain([detail]).cloned().collect::<Vec<_>>().join(": "), true)
        }
        ([(_, detail), ..], 0) => (format!("{detail}, and {} more", group.found.len() - 1), true),
        ([(_, detail), ..], 1) => (format!("{}: {detail}", benchmarks.into_iter().collect::<String>()), true),
        (_, count) => (counted(count, "benchmark"), false),
    }
}

/// The main columns, one line per row.
fn one_line(rows: &[RowView<'_>], interval: &str) -> Grid {
    let columns = vec![
        GridColumn::text("benchmark"),
        GridColumn::number("base → head"),
        GridColumn::number("change"),
        GridColumn::number(interval),
        GridColumn::text("verdict"),
    ];
    let mut grid = Grid::new(columns, PLAIN);
    for row in rows {
        grid.push(vec![
            name(row).into(),
            row.values().into(),
            row.effect().unwrap_or_default().into(),
            row.interval().unwrap_or_default().into(),
            verdict_cell(row, ": "),
        ]);
    }
    grid
}

/// The part of a table that is shortened to save space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compact {
    WithReasons,
    /// Reasons that follow below the table are left out.
    WholeNames,
    WrappedNames,
}

/// A layout for 80 columns: the common end of all names is in the title, the interval follows the change, and a reason
/// is shown only if the verdict does not imply it.
fn compact(rows: &[RowView<'_>], interval: &str, layout: Compact) -> Grid {
    let end = shared_end(rows);
    let title = if end.is_empty() { "benchmark".to_owned() } else { format!("…{end}") };
    let names = GridColumn::text(title);
    let estimated = rows.iter().any(|row| row.interval().is_some());
    let change = if estimated { format!("change ({interval})") } else { "change".to_owned() };
    let columns = vec![
        if layout == Compact::WrappedNames { names } else { names.whole() },
        GridColumn::number("base → head"),
        GridColumn::text(change).whole(),
        GridColumn::text("verdict"),
    ];
    let mut grid = Grid::new(columns, PLAIN);
    for row in rows {
        let full = clean(row.name);
        let short = full.strip_suffix(end.as_str()).unwrap_or(&full);
        let metric = row.metric.map(|metric| format!(" {}", clean(metric))).unwrap_or_default();
        let follows = matches!(
            row.row.verdict,
            Verdict::Inconclusive | Verdict::Diverged | Verdict::Error | Verdict::Missing
        );
        let said = match row.row.reason {
            Reason::BeyondFloor | Reason::BelowFloor | Reason::WithinTolerance | Reason::Exact => true,
            Reason::Open | Reason::TooLittle(_) => true,
            _ => follows && layout != Compact::WithReasons,
        };
        let verdict = if said && !row.waived() {
            GridCell::judged(row.row.verdict.to_string(), row.row.verdict)
        } else {
            verdict_cell(row, ": ")
        };
        grid.push(vec![format!("{short}{metric}").into(), row.values().into(), row.change().into(), verdict]);
    }
    grid
}

/// The end of the names, from a `/` on, that all rows share.
fn shared_end(rows: &[RowView<'_>]) -> String {
    let names: Vec<String> = rows.iter().map(|row| clean(row.name)).collect();
    let [first, others @ ..] = names.as_slice() else { return String::new() };
    let ends = first.match_indices('/').map(|(at, _)| &first[at..]);
    let shared = |end: &&str| names.iter().all(|name| name.len() > end.len() && name.ends_with(end));
    ends.into_iter().find(shared).filter(|_| !others.is_empty()).unwrap_or_default().to_owned()
}

/// A layout for long names, with all numbers below one another.
fn three_lines(rows: &[RowView<'_>]) -> Grid {
    let columns =
        vec![GridColumn::text("benchmark"), GridColumn::number("base → head"), GridColumn::text("verdict")];
    let mut grid = Grid::new(columns, PLAIN);
    for row in rows {
        let numbers = [row.values(), row.effect().unwrap_or_default(), row.interval().unwrap_or_default()];
        let numbers: Vec<String> = numbers.into_iter().filter(|number| !number.is_empty()).collect();
        grid.push(vec![name(row).into(), numbers.join("\n").into(), verdict_cell(row, "\n")]);
    }
    grid
}

/// Every number in a separate column.
fn wide(rows: &[RowView<'_>]) -> Grid {
    let columns = vec![
        GridColumn::text("benchmark"),
        GridColumn::number("base → head"),
        GridColumn::number("mean, stddev"),
        GridColumn::number("CV"),
        GridColumn::number("effect"),
        GridColumn::number("interval"),
        GridColumn::number("n"),
        GridColumn::number("floor"),
        GridColumn::number("sees"),
        GridColumn::text("verdict"),
    ];
    let mut grid = Grid::new(columns, RULED);
    for row in rows {
        grid.push(vec![
            subject(row).into(),
            row.values().into(),
            two(&row.mean(), &row.stddev()).into(),
            row.cv().into(),
            row.effect().unwrap_or_default().into(),
            row.interval().unwrap_or_default().into(),
            two(&row.processes(), &row.method()).into(),
            row.floor().into(),
            row.smallest().into(),
            verdict_cell(row, "\n"),
        ]);
    }
    grid
}

/// The main columns, two numbers in each.
fn narrow(rows: &[RowView<'_>]) -> Grid {
    let columns = vec![
        GridColumn::text("benchmark"),
        GridColumn::number("base → head"),
        GridColumn::number("effect, interval"),
        GridColumn::number("n"),
        GridColumn::text("verdict"),
    ];
    let mut grid = Grid::new(columns, RULED);
    for row in rows {
        grid.push(vec![
            subject(row).into(),
            two(&row.values(), &labelled_cv(row)).into(),
            two(&row.effect().unwrap_or_default(), &row.interval().unwrap_or_default()).into(),
            two(&row.processes(), &row.method()).into(),
            verdict_cell(row, "\n"),
        ]);
    }
    grid
}

/// All numbers below one another, for long names.
fn tight(rows: &[RowView<'_>]) -> Grid {
    let columns =
        vec![GridColumn::text("benchmark"), GridColumn::number("base → head"), GridColumn::text("verdict")];
    let mut grid = Grid::new(columns, RULED);
    for row in rows {
        let (processes, method) = (row.processes(), row.method());
        let separator = if processes.is_empty() || method.is_empty() { "" } else { ", " };
        let numbers = [
            row.values(),
            row.effect().unwrap_or_default(),
            row.interval().unwrap_or_default(),
            labelled_cv(row),
            format!("{processes}{separator}{method}"),
        ];
        let numbers = numbers.into_iter().filter(|number| !number.is_empty());
        let numbers = numbers.collect::<Vec<_>>().join("\n");
        grid.push(vec![subject(row).into(), numbers.into(), verdict_cell(row, "\n")]);
    }
    grid
}

fn labelled_cv(row: &RowView<'_>) -> String {
    let cv = row.cv();
    if cv.is_empty() { cv } else { format!("CV {cv}") }
}

fn verdict_cell(row: &RowView<'_>, separator: &str) -> GridCell {
    let reason = if row.waived() { "waived".to_owned() } else { row.words().short };
    // A number and its unit stay on one line.
    let reason = clean(&reason).replace(" %", "\u{a0}%");
    let separator = if reason.is_empty() { "" } else { separator };
    let text = format!("{}{separator}{reason}", row.row.verdict);
    GridCell::judged(text, row.row.verdict)
}

fn two(first: &str, second: &str) -> String {
    if second.is_empty() { first.to_owned() } else { format!("{first}\n{second}") }
}

fn name(row: &RowView<'_>) -> String {
    match row.metric {
        Some(metric) => format!("{} {}", clean(row.name), clean(metric)),
        None => clean(row.name),
    }
}

/// The first cell of a row: the name, the metric if it is not the usual one, and the row's findings.
fn subject(row: &RowView<'_>) -> String {
    let mut lines = vec![clean(row.name)];
    lines.extend(row.metric.map(clean));
    // The mark and its code must not be wrapped apart.
    lines.extend(row.findings().into_iter().map(|code| format!("!\u{a0}{code}")));
    lines.join("\n")
}

fn style_of(verdict: Verdict) -> Style {
    let color = match verdict_color(verdict) {
        Some(Color::DarkRed) => AnsiColor::Red,
        Some(Color::DarkYellow) => AnsiColor::Yellow,
        _ => AnsiColor::Green,
    };
    Style::new().fg_color(Some(color.into()))
}
