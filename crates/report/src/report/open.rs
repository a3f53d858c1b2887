//! The reasons of rows without a verdict.

use benchgate_core::model::Verdict;
use benchgate_gate::Reason;

use super::advice::{self, WayOut};
use super::document::{Block, Item, Part, Text, icon};
use super::layout::{mark, name};
use super::row_view::RowView;
use super::view::{self, View};
use super::words::{self, UNDECIDED, Words};

/// Maximum number of names in a group; the others are only counted.
pub(super) const NAMES: usize = 3;

/// Returns why rows are open: an entry for each reason.
pub(super) fn items<'a>(view: &'a View<'a>, brief: bool) -> Vec<Item<'a>> {
    let group = |group: view::OpenGroup<'a>| {
        if let ([only], false) = (group.rows.as_slice(), brief) {
            let item = sentence(only);
            let text = item.text.then(same_code(&group.rows)).then(also_moved(view, &group.rows));
            return Item { text, ..item };
        }
        // The section's title already states that the row is inconclusive.
        let said = Some(group.sentence).filter(|said| group.detail.is_none() || *said != UNDECIDED);
        let reason = said.map(Text::from).into_iter().chain(group.detail.map(Text::message_of));
        let smallest = group
            .smallest
            .filter(|_| !brief)
            .map_or_else(String::new, |change| format!("; this much data can detect a change of {change}"));
        let names = first_names(&group.rows);
        let text = Text::default().with(Part::Icon(icon(Verdict::Inconclusive))).then(names);
        let text = text.say(format!(" ({}): ", Verdict::Inconclusive));
        let assumed = group.assumed.map_or_else(String::new, |assumed| format!("; {assumed}"));
        let text = text.then(Text::joined(reason, ": ")).say(smallest).say(assumed);
        let text = text.then(at_an_end(&group.rows, brief));
        text.then(same_code(&group.rows)).then(also_moved(view, &group.rows)).into()
    };
    let waived = view.open.iter().filter(|row| row.row.waiver.is_some()).map(sentence);
    view.open_groups().into_iter().map(group).chain(waived).collect()
}

/// Explains printed changes that equal an end of their interval; in a short report, only that of a single row.
fn at_an_end<'a>(rows: &[RowView<'a>], brief: bool) -> Text<'a> {
    let is_at_end =
        |row: &&RowView<'a>| row.row.reason == Reason::Open && !words::at_an_end(row.row).is_empty();
    let there: Vec<RowView<'a>> = rows.iter().filter(is_at_end).copied().collect();
    match (there.as_slice(), rows.len()) {
        ([only], 1) => words::at_an_end(only.row).into(),
        ([], _) => Text::default(),
        _ if brief => Text::default(),
        _ => Text::from("; the most frequent value is at an end of the interval: ").then(first_names(&there)),
    }
}

/// Returns the processor times of open rows that changed. Processor times decide nothing, but are more
/// informative than times that other programs disturb.
fn also_moved<'a>(view: &View<'a>, rows: &[RowView<'a>]) -> Text<'a> {
    let moved = view.moved_cpu_times(rows).take(NAMES).map(|row| {
        let change = format!("{} ({})", row.effect().unwrap_or_default(), row.interval().unwrap_or_default());
        if rows.len() == 1 { change.into() } else { Text::named(row.name).say(" ").say(change) }
    });
    let what = match rows {
        [_] => "; its cpu-time, which does not decide the verdict, changed by ",
        _ => "; cpu-time, which does not decide the verdict, changed: ",
    };
    match Text::joined(moved, ", ") {
        none if none.is_empty() => none,
        moved => Text::from(what).then(moved),
    }
}

/// Returns the open rows in whose code nothing changed, so that something else must have moved the time.
fn same_code<'a>(rows: &[RowView<'a>]) -> Text<'a> {
    let same: Vec<RowView<'a>> =
        rows.iter().copied().filter(|row| row.row.identical_code().is_some()).collect();
    match (same.as_slice(), rows.len()) {
        ([], _) => Text::default(),
        ([only], 1) => Text::from("; ").say(only.row.identical_code().unwrap_or_default()),
        _ => Text::from("; identical code: ").then(first_names(&same)),
    }
}

/// Returns why a row has its verdict, and who waived it.
pub(super) fn sentence<'a>(row: &RowView<'a>) -> Item<'a> {
    let Words { sentence, detail, .. } = row.words();
    let text = Text::default().with(Part::Icon(mark(row))).then(name(row));
    let text = text.say(format!(" ({}): {sentence}", row.row.verdict)).detail(detail);
    let text = match &row.row.waiver {
        Some(waiver) if waiver.expired => {
            text.say("; the waiver of ").name(&waiver.owner).say(" expired on ").say(waiver.expires.as_str())
        }
        Some(waiver) => text
            .say("; waived by ")
            .name(&waiver.owner)
            .say(" until ")
            .say(waiver.expires.as_str())
            .detail(Some(waiver.reason.as_str())),
        None => text,
    };
    text.into()
}

/// Formats `a, b, c and 2 more`.
pub(super) fn first_names<'a>(rows: &[RowView<'a>]) -> Text<'a> {
    let names = Text::joined(rows.iter().take(NAMES).map(name), ", ");
    match rows.len().saturating_sub(NAMES) {
        0 => names,
        more => names.say(format!(" and {more} more")),
    }
}

/// Returns what to do about missing and undecided rows, for the end of a report on a terminal and the beginning of a page.
pub(super) fn next_steps<'a>(view: &'a View<'_>) -> impl Iterator<Item = Block<'a>> {
    let blocks = |it: &'a WayOut| [Block::Prose(it.advice.as_str().into()), Block::Commands(&it.commands)];
    let missing = advice::missing(view.comparison).map(|step| Block::Prose(step.into()));
    missing.into_iter().chain(view.way_out.iter().flat_map(blocks))
}
