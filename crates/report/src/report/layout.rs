//! The columns of a comparison's table. A figure is a line of a column, with its title and its text; a layout
//! arranges figures. A new column is a new figure that is added to the layouts that show it.

use benchgate_core::model::{Better, Verdict};
use benchgate_gate::Reason;

use super::document::{Cell, Column, Part, Rules, Table, Text, Tone, icon};
use super::view::Legend;
use super::{RowView, View};

/// A value of a row and its title.
struct Figure {
    title: &'static str,
    text: for<'a> fn(&RowView<'a>) -> Text<'a>,
}

macro_rules! figures {
    ($($name:ident = $title:literal, $text:expr;)+) => {
        $(const $name: &Figure = &Figure { title: $title, text: $text };)+
    };
}

figures! {
    MARK = "", |row| Text::default().with(Part::Icon(mark(row)));
    NAME = "benchmark", |row| match &row.row.metric {
        Some(metric) if metric.better == Better::Higher => name(row).say(" (more\u{a0}is\u{a0}better)"),
        _ => name(row),
    };
    FINDINGS = "", |row| match findings(row) {
        codes if codes.is_empty() => Text::default(),
        codes => format!("! {codes}").into(),
    };
    VALUES = "base → head", |row| row.values().into();
    CHANGE = "change", |row| row.effect().unwrap_or_default().into();
    INTERVAL = "interval", |row| row.interval().unwrap_or_default().into();
    CHANGE_AND_INTERVAL = "change (interval)", |row| row.change().into();
    MEAN = "mean", |row| row.mean().into();
    STDDEV = "stddev", |row| row.stddev().into();
    CV = "CV", |row| row.cv().into();
    FLOOR = "floor", |row| row.floor().into();
    SMALLEST = "detects ≥", |row| row.smallest().into();
    PROCESSES = "n", |row| row.processes().into();
    METHOD = "", |row| row.method().into();
    PROCESSES_AND_METHOD = "n", |row| {
        let parts = [row.processes(), row.method()].into_iter().filter(|part| !part.is_empty());
        parts.collect::<Vec<_>>().join(", ").into()
    };
    VERDICT = "verdict", |row| row.row.verdict.to_string().into();
    REASON = "", |row| reason(row).into();
    VERDICT_AND_REASON = "verdict", |row| judged(row, false);
    VERDICT_IF_NOT_SAID = "verdict", |row| judged(row, says_itself(row));
    VERDICT_IF_NOT_BELOW = "verdict", |row| judged(row, says_itself(row) || is_explained_below(row));
    STANDING = "", |row| standing(row).into();
    MARK_AND_STANDING = "verdict", |row| Text::default().with(Part::Icon(mark(row))).say(standing(row));
}

/// Figures on top of each other in one column.
struct Stack {
    figures: &'static [&'static Figure],
    number: bool,
    whole: bool,
    tone: fn(&RowView<'_>) -> Tone,
}

const fn words(figures: &'static [&'static Figure]) -> Stack {
    Stack { figures, number: false, whole: false, tone: |_| Tone::Plain }
}

const fn whole(figures: &'static [&'static Figure]) -> Stack {
    Stack { whole: true, ..words(figures) }
}

const fn number(figures: &'static [&'static Figure]) -> Stack {
    Stack { number: true, ..whole(figures) }
}

/// Creates a column that is bold if the verdict establishes a direction.
const fn change(figures: &'static [&'static Figure]) -> Stack {
    let tone = |row: &RowView<'_>| match row.row.verdict {
        Verdict::Regressed | Verdict::Improved => Tone::Strong,
        _ => Tone::Plain,
    };
    Stack { tone, ..number(figures) }
}

const fn verdict(figures: &'static [&'static Figure]) -> Stack {
    Stack { tone: |row| Tone::of_verdict(row.row.verdict), ..words(figures) }
}

/// The arrangement of a table's columns.
pub(super) struct Layout {
    stacks: &'static [Stack],
    rules: Rules,
    one_line: bool,
    /// True if the ending that all names share is moved into the title.
    shortened: bool,
}

const LINE: Layout = Layout { stacks: &[], rules: Rules::Ends, one_line: false, shortened: false };
const RULED: Layout = Layout { rules: Rules::Rows, ..LINE };
const SHORT: Layout = Layout { shortened: true, ..LINE };

/// The figures that a reader has to consider, one line per row. At 80 columns, the interval is next to the
/// change. The reason is shown unless the verdict implies it; the next layout shows it unless it follows
/// below the table.
pub(super) const BRIEF: &[Layout] = &[
    Layout {
        stacks: &[
            words(&[NAME]),
            number(&[VALUES]),
            number(&[CHANGE]),
            number(&[INTERVAL]),
            verdict(&[VERDICT_AND_REASON]),
        ],
        one_line: true,
        ..LINE
    },
    Layout {
        stacks: &[
            words(&[NAME]),
            number(&[VALUES]),
            whole(&[CHANGE_AND_INTERVAL]),
            verdict(&[VERDICT_IF_NOT_SAID]),
        ],
        one_line: true,
        ..SHORT
    },
    Layout {
        stacks: &[
            whole(&[NAME]),
            number(&[VALUES]),
            whole(&[CHANGE_AND_INTERVAL]),
            verdict(&[VERDICT_IF_NOT_BELOW]),
        ],
        ..SHORT
    },
    Layout {
        stacks: &[
            words(&[NAME]),
            number(&[VALUES]),
            whole(&[CHANGE_AND_INTERVAL]),
            verdict(&[VERDICT_IF_NOT_BELOW]),
        ],
        ..SHORT
    },
    Layout {
        stacks: &[words(&[NAME]), number(&[VALUES, CHANGE, INTERVAL]), verdict(&[VERDICT, REASON])],
        ..LINE
    },
];

/// Everything, with as many columns as fit.
pub(super) const ALL: &[Layout] = &[
    Layout {
        stacks: &[
            words(&[NAME, FINDINGS]),
            number(&[VALUES]),
            number(&[MEAN, STDDEV]),
            number(&[CV]),
            number(&[CHANGE]),
            number(&[INTERVAL]),
            number(&[PROCESSES, METHOD]),
            number(&[FLOOR]),
            number(&[SMALLEST]),
            verdict(&[VERDICT, REASON]),
        ],
        ..RULED
    },
    Layout {
        stacks: &[
            words(&[NAME, FINDINGS]),
            number(&[VALUES, CV]),
            number(&[CHANGE, INTERVAL]),
            number(&[PROCESSES, METHOD]),
            verdict(&[VERDICT, REASON]),
        ],
        ..RULED
    },
    Layout {
        stacks: &[
            words(&[NAME, FINDINGS]),
            number(&[VALUES, CHANGE, INTERVAL, CV, PROCESSES, METHOD]),
            verdict(&[VERDICT, REASON]),
        ],
        ..RULED
    },
];

/// The first table of a page, with two lines per row.
pub(super) const PAGE: &[Layout] = &[Layout {
    stacks: &[
        words(&[MARK]),
        words(&[NAME, STANDING]),
        change(&[CHANGE, INTERVAL]),
        number(&[VALUES, CV]),
        number(&[FLOOR, SMALLEST]),
        number(&[PROCESSES, METHOD]),
    ],
    ..LINE
}];

/// The other tables of a page, with one line per row.
pub(super) const PAGE_BRIEF: &[Layout] = &[Layout {
    stacks: &[
        words(&[MARK_AND_STANDING]),
        words(&[NAME]),
        number(&[CHANGE]),
        number(&[INTERVAL]),
        number(&[VALUES]),
        number(&[FLOOR]),
        number(&[PROCESSES_AND_METHOD]),
    ],
    ..LINE
}];

/// Returns one table of the rows for each layout.
pub(super) fn tables<'a>(
    rows: &[RowView<'a>],
    legend: Option<&Legend>,
    layouts: &'static [Layout],
) -> Vec<Table<'a>> {
    layouts.iter().map(|layout| table(rows, legend, layout)).collect()
}

fn table<'a>(rows: &[RowView<'a>], legend: Option<&Legend>, layout: &'static Layout) -> Table<'a> {
    let end = if layout.shortened { shared_end(rows) } else { "" };
    let has_intervals = rows.iter().any(|row| row.interval().is_some());
    let title = |figure: &Figure| -> Text<'a> {
        match legend {
            _ if figure.title == NAME.title && !end.is_empty() => Text::from("…").name(end),
            Some(legend) if figure.title == VALUES.title => legend.values(figure.title).into(),
            Some(legend) if has_intervals => figure.title.replace("interval", &legend.interval()).into(),
            _ => figure.title.replace(" (interval)", "").into(),
        }
    };
    let columns = layout.stacks.iter().map(|stack| Column {
        title: stack.figures.iter().map(|figure| title(figure)).collect(),
        number: stack.number,
        whole: stack.whole,
    });
    let cells = |row: &RowView<'a>| {
        let row = RowView { name: row.name.strip_suffix(end).unwrap_or(row.name), ..*row };
        let lines = |stack: &Stack| stack.figures.iter().map(|figure| (figure.text)(&row)).collect();
        layout.stacks.iter().map(|stack| Cell { lines: lines(stack), tone: (stack.tone)(&row) }).collect()
    };
    let table = Table {
        columns: columns.collect(),
        rows: rows.iter().map(cells).collect(),
        rules: layout.rules,
        one_line: layout.one_line,
    };
    table.without_empty_columns()
}

/// Returns the ending, from a `/` on, that the names of all rows share.
fn shared_end<'a>(rows: &[RowView<'a>]) -> &'a str {
    let [first, others @ ..] = rows else { return "" };
    let mut ends = first.name.match_indices('/').map(|(at, _)| &first.name[at..]);
    let shared = |end: &&str| rows.iter().all(|row| row.name.len() > end.len() && row.name.ends_with(end));
    ends.find(shared).filter(|_| !others.is_empty()).unwrap_or_default()
}

/// Returns the name, and the metric unless it is latency.
pub(super) fn name<'a>(row: &RowView<'a>) -> Text<'a> {
    match row.metric {
        Some(metric) => Text::named(row.name).say(" ").name(metric),
        None => Text::named(row.name),
    }
}

/// Returns the icon of a row. A waived row makes no claim, so it has the icon of a missing one.
pub(super) fn mark(row: &RowView<'_>) -> &'static str {
    icon(if row.waived() { Verdict::Missing } else { row.row.verdict })
}

fn findings(row: &RowView<'_>) -> String {
    row.findings().into_iter().map(|code| code.to_string()).collect::<Vec<_>>().join(", ")
}

fn reason(row: &RowView<'_>) -> String {
    if row.waived() { "waived".to_owned() } else { row.words().short }
}

fn judged<'a>(row: &RowView<'a>, alone: bool) -> Text<'a> {
    let (verdict, reason) = (row.row.verdict, reason(row));
    if reason.is_empty() || alone && !row.waived() {
        verdict.to_string().into()
    } else {
        format!("{verdict}: {reason}").into()
    }
}

fn says_itself(row: &RowView<'_>) -> bool {
    matches!(
        row.row.reason,
        Reason::BeyondFloor
            | Reason::BelowFloor
            | Reason::WithinTolerance
            | Reason::Exact
            | Reason::Open
            | Reason::TooLittle(_)
    )
}

fn is_explained_below(row: &RowView<'_>) -> bool {
    matches!(row.row.verdict, Verdict::Inconclusive | Verdict::Diverged | Verdict::Error | Verdict::Missing)
}

/// Returns the verdict of a row in a word or two, with its findings.
fn standing(row: &RowView<'_>) -> String {
    let words = match (&row.row.verdict, &row.row.reason) {
        // The verdict already implies the reason.
        (Verdict::Regressed | Verdict::Improved, Reason::BeyondFloor | Reason::BelowFloor) => {
            row.row.verdict.to_string()
        }
        _ => row.words().short,
    };
    let waived = if row.waived() { "waived: " } else { "" };
    let findings = findings(row);
    let separator = if findings.is_empty() { "" } else { ", " };
    format!("{waived}{words}{separator}{findings}")
}

/// The order of the rows in a section. Wrong and failed rows always come before changed ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Order {
    /// Changed rows by size, the rest in the order of the suite.
    #[default]
    Importance,
    /// The benchmark's name.
    Name,
    /// The effect, the largest slowdown first.
    Change,
}

impl View<'_> {
    /// Returns this view with its rows in this order.
    pub fn sorted(mut self, order: Order) -> Self {
        let sections = [
            &mut self.diverged,
            &mut self.failed,
            &mut self.changed,
            &mut self.open,
            &mut self.unchanged,
            &mut self.reported,
        ];
        match order {
            Order::Importance => {}
            Order::Name => sections.into_iter().for_each(|rows| rows.sort_by_key(|row| row.name)),
            Order::Change => {
                let worse = |row: &RowView<'_>| row.worsening().unwrap_or(f64::NEG_INFINITY);
                sections.into_iter().for_each(|rows| rows.sort_by(|a, b| worse(b).total_cmp(&worse(a))));
            }
        }
        self
    }
}

impl RowView<'_> {
    /// Returns the logarithm of the effect, which is above zero if head is worse.
    fn worsening(&self) -> Option<f64> {
        let change = self.row.estimate.as_ref()?.ratio.ln();
        Some(self.row.metric.as_ref()?.better.worse() * change)
    }
}
