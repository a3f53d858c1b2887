//! A comparison for a person at a terminal, or for a log.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use comfy_table::Color;

use benchgate_core::exit_code::ExitCode;
use benchgate_core::model::{Consequence, Unit, Verdict, clean, counted};
use benchgate_gate::method_notes;

use super::grid::{Grid, GridCell, GridColumn, PLAIN, RULED, verdict_color};
use super::markup::first_lines;
use super::view::MORE_COLUMNS;
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
/// Benchmarks whose cause stands at the top.
pub(super) const CAUSES: usize = 3;
/// Rows of a table before the rest is only counted, unless everything is asked for.
const ROWS: usize = 50;
/// Names of one group before the rest is only counted.
const NAMES: usize = 3;
/// Cases of one lint before the rest is only counted.
const CASES: usize = 3;

/// Renders a view as text.
pub fn terminal(view: &View<'_>, options: TerminalOptions) -> String {
    let mut page = TerminalPage::new(options);
    page.verdict(view);
    page.causes(&view.causes);
    page.tables(view);
    page.section("Wrong outputs", &view.diverged);
    page.accuracy(&view.less_accurate);
    page.section("Failed or missing", &view.failed);
    page.open(view);
    page.section("Not compared", &view.not_compared);
    page.section("Waived", &waived(view));
    page.lints(&view.lints);
    page.facts(view);
    page.notes(view);
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
}

impl TerminalPage {
    pub(super) fn new(options: TerminalOptions) -> Self {
        Self { text: String::new(), options }
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

    /// A wrapped paragraph: the first line starts with `first`, the others with `rest`.
    pub(super) fn prose(&mut self, text: &str, first: &str, rest: &str) {
        let width = PROSE.min(usize::from(self.options.width.max(40)));
        self.line(&paragraph(text, width, first, rest));
    }

    fn verdict(&mut self, view: &View<'_>) {
        let style = style_of(view.comparison.verdict).bold();
        let start = self.text.len();
        self.prose(&view.headline, "", "    ");
        // Coloured after wrapping, because codes have no width.
        if let Some(end) = self.text[start..].find(':') {
            let word = self.styled(style, &self.text[start..start + end]);
            self.text.replace_range(start..start + end, &word);
        }
        if let Some(way_out) = view.way_out {
            self.prose(way_out, "", "    ");
        }
    }

    /// What explains a red, where a reader looks first.
    fn causes(&mut self, causes: &[RegressionCause<'_>]) {
        for cause in causes.iter().take(CAUSES) {
            let known = cause.kernel.into_iter().chain(cause.changes.iter().map(String::as_str));
            let known = known.collect::<Vec<_>>().join("; ");
            self.prose(&clean(&format!("{}: {known}", cause.benchmark)), "  ", "      ");
        }
        if causes.len() > CAUSES {
            self.line(&format!(
                "  … and {} with a known cause",
                counted(causes.len() - CAUSES, "more benchmark")
            ));
        }
    }

    fn tables(&mut self, view: &View<'_>) {
        let deciding = view.deciding();
        let shown = if self.options.all { deciding.len() } else { deciding.len().min(ROWS) };
        if !deciding.is_empty() {
            self.line("");
            self.table(&deciding[..shown]);
        }
        if shown < deciding.len() {
            let rest = quantity((deciding.len() - shown) as f64, &Unit::Count);
            self.line(&format!("… and {rest} more (--all)"));
        }
        if self.options.all && !view.reported.is_empty() {
            self.title("Metrics that don't decide");
            self.table(&view.reported);
        } else if !view.reported.is_empty() {
            let count = |verdict: Verdict| {
                let rows = view.reported.iter().filter(|row| row.row.verdict == verdict).count();
                (rows > 0).then(|| format!("{rows} {verdict}"))
            };
            let changed: Vec<String> =
                [Verdict::Regressed, Verdict::Improved].into_iter().filter_map(count).collect();
            let changed =
                if changed.is_empty() { String::new() } else { format!(" ({})", changed.join(", ")) };
            let rows = counted(view.reported.len(), "row");
            self.prose(&format!("{rows} of metrics that don't decide{changed}; --all shows them."), "", "");
        }
        for geomean in view.geomeans(self.options.all) {
            let target =
                geomean.target.as_deref().map(|name| format!(" on {}", clean(name))).unwrap_or_default();
            let metric = clean(&geomean.metric.name);
            let text = super::view::geomean(geomean);
            let rows = counted(geomean.rows as usize, &format!("{metric} row"));
            self.prose(&format!("Geometric mean of {rows}{target}: {text}"), "", "    ");
        }
        if let Some(legend) = &view.legend {
            let more = if self.options.all { MORE_COLUMNS } else { "" };
            self.prose(&format!("{legend} {more}"), "", "");
        }
    }

    /// The roomiest layout in which no word has to be split.
    fn table(&mut self, rows: &[RowView<'_>]) {
        let layouts: [fn(&[RowView<'_>]) -> Grid; 3] =
            if self.options.all { [wide, narrow, tight] } else { [one_line, two_lines, three_lines] };
        let width = usize::from(self.options.width);
        let grids = layouts.map(|layout| layout(rows).without_empty_columns());
        let unwrapped = |grid: &&Grid| !self.options.all && grid.full_width() <= width;
        let unsplit = |grid: &&Grid| grid.least_width() <= width;
        // A row that has to be wrapped is read more easily in a layout that was made for several lines.
        let grid = grids
            .iter()
            .find(unwrapped)
            .or_else(|| grids.iter().skip(usize::from(!self.options.all)).find(unsplit));
        self.grid(grid.unwrap_or(&grids[2]));
    }

    pub(super) fn grid(&mut self, grid: &Grid) {
        for line in grid.lines(self.options.width, self.options.color) {
            self.line(&line);
        }
    }

    fn section(&mut self, title: &str, rows: &[RowView<'_>]) {
        if !rows.is_empty() {
            self.title(title);
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
            self.prose(&clean(&text), "  ", "      ");
        }
        if rows.len() > SENTENCES {
            self.line(&format!("  … and {} more", rows.len() - SENTENCES));
        }
    }

    /// Why rows are open: a paragraph for each reason.
    fn open(&mut self, view: &View<'_>) {
        let groups = view.open_groups();
        let waived: Vec<RowView<'_>> =
            view.open.iter().filter(|row| row.row.waiver.is_some()).copied().collect();
        if !view.open.is_empty() {
            self.title("Inconclusive");
        }
        for group in groups.iter().filter(|group| group.rows.len() > 1).take(SENTENCES) {
            let detail = group.detail.as_deref().map(|detail| format!(": {}", first_lines(detail)));
            let (count, detail) = (group.rows.len(), detail.unwrap_or_default());
            self.prose(&clean(&format!("{count} rows: {}{detail}", group.sentence)), "  ", "      ");
            let names: Vec<String> = group.rows.iter().take(NAMES).map(name).collect();
            let rest = count.saturating_sub(NAMES);
            let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
            self.prose(&format!("{}{more}", names.join(", ")), "      ", "      ");
        }
        let single = groups.iter().filter(|group| group.rows.len() == 1).map(|group| group.rows[0]);
        self.sentences(&single.chain(waived).collect::<Vec<_>>());
    }

    fn accuracy(&mut self, rows: &[RowView<'_>]) {
        if rows.is_empty() {
            return;
        }
        self.title("Less accurate");
        for row in rows.iter().take(SENTENCES) {
            if let Some(words) = row.accuracy() {
                let detail = words.detail.map(|detail| format!(": {detail}")).unwrap_or_default();
                self.prose(&clean(&format!("{}: {}{detail}", name(row), words.sentence)), "  ", "      ");
            }
        }
        if rows.len() > SENTENCES {
            self.line(&format!("  … and {} more", rows.len() - SENTENCES));
        }
    }

    fn lints(&mut self, lints: &[LintGroup]) {
        if lints.is_empty() {
            return;
        }
        self.title("Findings");
        for group in lints {
            let consequence = match group.code.consequence() {
                Consequence::Note => "note",
                Consequence::Inconclusive => "no verdict",
                Consequence::Error => "error",
            };
            if !self.options.all {
                let text = clean(&format!("{} ({consequence}): {}", group.code, places(group)));
                // What to do about a note can wait for --all; anything else is in the way of a verdict.
                let fix = match group.code.consequence() {
                    Consequence::Note => String::new(),
                    _ => format!(". {}", group.fix),
                };
                self.prose(&format!("{text}{fix}"), "  ", "      ");
                continue;
            }
            let text = format!("{} ({consequence}): {}", group.code, group.code.description());
            self.prose(&text, "  ", "      ");
            for (benchmark, detail) in group.found.iter().take(CASES) {
                let place = benchmark.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
                self.prose(&clean(&format!("{place}{detail}")), "      - ", "        ");
            }
            if group.found.len() > CASES {
                self.line(&format!("      … and {} more", group.found.len() - CASES));
            }
            self.prose(group.fix, "      fix: ", "           ");
        }
    }

    fn facts(&mut self, view: &View<'_>) {
        // Files have different names and times in every comparison.
        let tells =
            |fact: &&Fact| fact.base != fact.head && !matches!(fact.name, "input" | "measured" | "load");
        let facts: Vec<&Fact> = view.facts.iter().filter(|fact| self.options.all || tells(fact)).collect();
        if facts.is_empty() {
            return;
        }
        if !self.options.all {
            let differing: Vec<String> = facts.iter().map(|fact| fact_in_short(fact)).collect();
            let text = format!("Machine and tools that differ: {}", differing.join("; "));
            self.line("");
            self.prose(&clean(&text), "", "    ");
            return;
        }
        self.title("Machine and tools");
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
            self.title("Notes");
            for note in notes {
                self.prose(&clean(note), "  - ", "    ");
            }
        }
        if let Some(command) = &view.reproduce {
            self.title("To repeat this");
            let command = clean(command);
            // Not wrapped: it is there to be copied.
            let _ = writeln!(self.text, "  {command}");
        }
        let (code, verdict) = (view.comparison.exit_code, view.comparison.verdict);
        let why = match verdict {
            Verdict::Pass | Verdict::Improved => "",
            _ if code == ExitCode::Pass => ", which is not asked to fail",
            _ => "",
        };
        // Another row, or what a command does with the verdict, may decide the code.
        let explained = code == ExitCode::Pass || code == ExitCode::for_verdict(verdict);
        let verdict = if explained { format!(" ({verdict}{why})") } else { String::new() };
        self.line(&format!("\nexit code {}{verdict}", code.code()));
    }
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

/// Where a finding was made: its one case, or how many benchmarks have it.
fn places(group: &LintGroup) -> String {
    let benchmarks: BTreeSet<&str> = group.found.iter().filter_map(|(name, _)| name.as_deref()).collect();
    match (group.found.as_slice(), benchmarks.len()) {
        ([(place, detail)], _) => place.iter().chain([detail]).cloned().collect::<Vec<_>>().join(": "),
        ([(_, detail), ..], 0) => format!("{detail}, and {} more", group.found.len() - 1),
        ([(_, detail), ..], 1) => format!("{}: {detail}", benchmarks.into_iter().collect::<String>()),
        (_, count) => counted(count, "benchmark"),
    }
}

/// What a reader has to weigh, a row to a line.
fn one_line(rows: &[RowView<'_>]) -> Grid {
    let columns = vec![
        GridColumn::text("benchmark"),
        GridColumn::number("base → head"),
        GridColumn::number("change"),
        GridColumn::number("interval"),
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

/// The same, with the interval and the reason below.
fn two_lines(rows: &[RowView<'_>]) -> Grid {
    let columns = vec![
        GridColumn::text("benchmark"),
        GridColumn::number("base → head"),
        GridColumn::number("change, interval"),
        GridColumn::text("verdict"),
    ];
    let mut grid = Grid::new(columns, PLAIN);
    for row in rows {
        grid.push(vec![
            name(row).into(),
            row.values().into(),
            two(&row.effect().unwrap_or_default(), &row.interval().unwrap_or_default()).into(),
            verdict_cell(row, "\n"),
        ]);
    }
    grid
}

/// The same, with all numbers below one another, for long names.
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

/// Every number in a column of its own.
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

/// What a reader has to weigh, two numbers to a column.
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

/// The first cell of a row: the name, the metric where it is not the usual one, and the row's findings.
fn subject(row: &RowView<'_>) -> String {
    let mut lines = vec![clean(row.name)];
    lines.extend(row.metric.map(clean));
    // The mark and its code must not be wrapped apart.
    lines.extend(row.findings().into_iter().map(|code| format!("!\u{a0}{code}")));
    lines.join("\n")
}

fn style_of(verdict: Verdict) -> Style {
    let color = match verdict_color(verdict) {
        Some(Color::Red) => AnsiColor::Red,
        Some(Color::Yellow) => AnsiColor::Yellow,
        _ => AnsiColor::Green,
    };
    Style::new().fg_color(Some(color.into()))
}
