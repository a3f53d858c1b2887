//! The content of a comparison's report, and its order. A terminal's default report is shorter than the
//! others and has the verdict last, next to the cursor.

use benchgate_core::exit_code::ExitCode;
use benchgate_core::model::{BenchmarkName, Consequence, LintCode, Metric, Subject, Unit, Verdict, counted};
use benchgate_gate::{Geomean, Method, Reason, Row};

use super::document::{self, Block, Item, Part, TerminalOptions, Text, Tone, icon};
use super::human::{quantity, silhouette};
use super::layout::{self, Layout, mark, name};
use super::open::{self, NAMES, first_names, sentence};
use super::view::{self, MORE_COLUMNS};
use super::words::{self, Words};
use super::{Fact, LintGroup, RowView, View, provenance};

/// Maximum number of benchmarks whose causes are listed at the top.
const CAUSES: usize = 3;
/// Maximum number of rows for which a terminal's table includes those that pass. If there are more, the table
/// has only rows that changed, and the others are counted.
const WHOLE_TABLE: usize = 20;
/// Maximum number of cases of a finding; the others are only counted.
const CASES: usize = 3;
/// Maximum number of densities on a page, because more would not be read.
const ALIGNMENTS: usize = 20;
/// Width of a density in characters, about as wide as a name.
const SILHOUETTE: usize = 40;

/// The amount of detail in a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detail {
    /// The default for a terminal.
    Brief,
    /// A terminal with `--all`.
    All,
    /// A page, which can fold details.
    Page,
}

/// Renders a view as text: the rows that decide, their reasons, other findings, and the verdict last, next to
/// the terminal's cursor.
pub fn terminal(view: &View<'_>, options: TerminalOptions) -> String {
    let mut blocks = body(view, if options.all { Detail::All } else { Detail::Brief });
    blocks.push(Block::Break);
    blocks.extend(open::next_steps(view));
    let (code, verdict) = (view.comparison.exit_code, view.comparison.verdict);
    let not_asked = code == ExitCode::Pass && !matches!(verdict, Verdict::Pass | Verdict::Improved);
    let why = if not_asked { "; this verdict is not set to fail" } else { "" };
    let (word, rest) = view.headline.split_once(':').unwrap_or((&view.headline, ""));
    let tone = match Tone::of_verdict(verdict) {
        Tone::Plain => Tone::Good,
        tone => tone,
    };
    let word = Text::default().with(Part::Strong(word.into(), tone));
    blocks.push(Block::Prose(word.say(format!(" (exit code {}{why}):{rest}", code.code()))));
    document::terminal(&blocks, options)
}

/// Options for the layout of a page.
#[derive(Debug, Clone, Copy, Default)]
pub struct MarkdownOptions {
    /// Maximum number of bytes of the page (60,000 for a comment, 900 KiB for a job summary). Rows
    /// are left out, and counted, until the page fits.
    pub max_bytes: Option<usize>,
}

/// Renders a view as GitHub Markdown: the verdict first, then what changed, then problems, then the rest,
/// folded.
pub fn markdown(view: &View<'_>, options: MarkdownOptions) -> String {
    let (word, rest) = view.headline.split_once(": ").unwrap_or((&view.headline, ""));
    let title = Text::default().with(Part::Icon(icon(view.comparison.verdict))).say(word);
    let title = match &view.comparison.suite {
        Some(suite) => title.say(" · ").name(suite),
        None => title,
    };
    let (first, others) = rest.split_at(rest.find(", ").unwrap_or(rest.len()));
    let headline = Text::default().with(Part::Strong(first.into(), Tone::Strong)).say(others);
    let mut blocks = vec![Block::Title(title), Block::Prose(headline)];
    blocks.extend(page(view));
    document::markdown(&blocks, options.max_bytes.unwrap_or(usize::MAX))
}

/// Returns the content of a page below its title and headline.
pub(super) fn page<'a>(view: &'a View<'a>) -> Vec<Block<'a>> {
    let mut blocks: Vec<Block<'a>> = open::next_steps(view).collect();
    blocks.extend(view.alerts.iter().map(|alert| Block::Callout("IMPORTANT", alert.as_str().into())));
    blocks.extend(causes(view));
    blocks.extend(provenance::warning(view.source.as_ref()));
    blocks.extend(body(view, Detail::Page));
    blocks.extend(provenance::footer(view.source.as_ref(), true));
    blocks
}

/// Returns everything but the verdict.
fn body<'a>(view: &'a View<'a>, detail: Detail) -> Vec<Block<'a>> {
    let mut blocks = Vec::new();
    let table = |rows: &[RowView<'a>], layouts: &'static [Layout]| {
        Block::Table(layout::tables(rows, view.legend.as_ref(), layouts))
    };
    let (rows, layouts) = match detail {
        Detail::Brief if view.deciding().len() > WHOLE_TABLE => (moved(view), layout::BRIEF),
        Detail::Brief => (view.deciding(), layout::BRIEF),
        Detail::All => (view.deciding(), layout::ALL),
        Detail::Page => (moved(view), layout::PAGE),
    };
    if !rows.is_empty() {
        blocks.push(table(&rows, layouts));
    }
    if detail == Detail::Brief && rows.len() < view.deciding().len() {
        blocks.push(Block::Prose(unchanged(view).into()));
    }
    blocks.extend(geomeans(view, detail));
    blocks.extend(busy(view));
    if detail != Detail::Page {
        blocks.extend(causes(view).map(|causes| Block::Section {
            title: "Causes",
            count: None,
            blocks: vec![causes],
        }));
    }
    let section = |title, rows: &[RowView<'a>]| {
        (!rows.is_empty()).then(|| Block::section(title, rows.iter().map(sentence).collect()))
    };
    let folded = |title, items: Vec<Item<'a>>| (!items.is_empty()).then(|| Block::folded(title, items));
    let of_base = view.diverged.iter().all(|row| words::is_of_base(row.row));
    let title = if of_base { "Outputs that differ from base's" } else { "Wrong outputs" };
    blocks.extend(section(title, &view.diverged));
    let less_accurate: Vec<Item<'a>> = view.less_accurate.iter().filter_map(accuracy).collect();
    if !less_accurate.is_empty() {
        blocks.push(Block::section("Less accurate", less_accurate));
    }
    let rows = concat(&[&view.changed, &view.unchanged, &view.reported]);
    let beyond = |row: &&RowView<'_>| {
        matches!(row.row.reason, Reason::Limit(_)) && row.row.verdict == Verdict::Regressed
    };
    let beyond: Vec<Item<'a>> = rows.iter().filter(beyond).map(sentence).collect();
    if !beyond.is_empty() {
        blocks.push(Block::section("Beyond a limit", beyond));
    }
    let code: Vec<Item<'a>> = view.comparison.rows.iter().filter_map(regressed_code).collect();
    if !code.is_empty() {
        blocks.push(Block::section("Generated code", code));
    }
    if !view.failed.is_empty() {
        let is_unusable = |row: &RowView<'_>| matches!(row.row.reason, Reason::Unusable(_));
        blocks.push(Block::section("Failed or missing", together(&view.failed, is_unusable)));
    }
    let waived = concat(&[&view.changed, &view.unchanged, &view.reported]);
    let waived: Vec<RowView<'_>> = waived.into_iter().filter(|row| row.row.waiver.is_some()).collect();
    blocks.extend(section("Waived", &waived));
    if !view.open.is_empty() {
        let items = open::items(view, detail == Detail::Brief);
        blocks.push(Block::counted("Inconclusive", view.open.len(), items));
    }
    if detail == Detail::Page {
        blocks.extend(folded("How base and head align", alignments(view)));
    }
    blocks.extend(folded("Not compared", together(&view.not_compared, |_| true)));
    let mut tables = Vec::new();
    if detail == Detail::Page {
        tables.push(("Unchanged", &view.unchanged, layout::PAGE_BRIEF));
        tables.push(("Informational metrics", &view.reported, layout::PAGE_BRIEF));
    } else if detail == Detail::All {
        tables.push(("Informational metrics", &view.reported, layout::ALL));
    }
    for (title, rows, layouts) in tables.into_iter().filter(|(_, rows, _)| !rows.is_empty()) {
        blocks.push(Block::Section { title, count: Some(rows.len()), blocks: vec![table(rows, layouts)] });
    }
    blocks.extend(folded("Findings", findings(view, detail)));
    blocks.extend(folded("Machine and tools", facts(view, detail)));
    blocks.extend(folded("Notes", notes(view, detail)));
    let command = view.reproduce.as_ref();
    let command = command.map(|command| Text::from("To repeat this: ").with(Part::Copied(command.into())));
    let last: Vec<Block<'_>> =
        command.into_iter().chain(view.written.as_deref().map(Text::from)).map(Block::Prose).collect();
    match detail {
        _ if last.is_empty() => {}
        Detail::Brief => blocks.push(Block::Section { title: "", count: None, blocks: last }),
        Detail::All | Detail::Page => blocks.extend(std::iter::once(Block::Break).chain(last)),
    }
    blocks
}

/// Returns the rows that decide and don't pass.
fn moved<'a>(view: &View<'a>) -> Vec<RowView<'a>> {
    concat(&[&view.diverged, &view.failed, &view.changed, &view.open])
}

/// Formats `1,200 rows pass, 1,180 of them identical (--all)`.
fn unchanged(view: &View<'_>) -> String {
    let number = |count: usize| quantity(count as f64, &Unit::Count);
    let all = view.unchanged.len();
    let identical = view.unchanged.iter().filter(|row| row.row.reason == Reason::Identical).count();
    let identical = match identical {
        0 => String::new(),
        count if count == all => ", all identical".to_owned(),
        count => format!(", {} of them identical", number(count)),
    };
    let rows = if all == 1 { "row passes" } else { "rows pass" };
    format!("{} {rows}{identical} (--all)", number(all))
}

fn concat<'a>(sections: &[&Vec<RowView<'a>>]) -> Vec<RowView<'a>> {
    sections.iter().copied().flatten().copied().collect()
}

/// Returns the number of informational rows, by verdict; `None` if there are none.
fn informational(view: &View<'_>) -> Option<String> {
    let count = |verdict: Verdict| {
        let rows = view.reported.iter().filter(|row| row.row.verdict == verdict).count();
        (rows > 0).then(|| format!("{rows} {verdict}"))
    };
    let changed: Vec<String> =
        [Verdict::Regressed, Verdict::Improved].into_iter().filter_map(count).collect();
    let changed = if changed.is_empty() { String::new() } else { format!(" ({})", changed.join(", ")) };
    let rows = counted(view.reported.len(), "informational row");
    (!view.reported.is_empty()).then(|| format!("{rows}{changed}"))
}

fn geomeans<'a>(view: &'a View<'a>, detail: Detail) -> impl Iterator<Item = Block<'a>> {
    let geomeans = view.geomeans(detail == Detail::All);
    let several = geomeans.iter().any(|other| other.target != geomeans[0].target);
    geomeans.into_iter().map(move |geomean| {
        let metric = Some(&geomean.metric.name).filter(|name| **name != Metric::LATENCY.name);
        let metric = metric.map(|name| format!("{name} ")).unwrap_or_default();
        let text =
            Text::from(format!("Geometric mean of {}", rows_of_mean(geomean, &format!("{metric}row"))));
        let text = match geomean.target.as_deref().filter(|_| several) {
            Some(target) => text.say(" on ").name(target),
            None => text,
        };
        let text = match geomean.left_out.as_slice() {
            [] => text,
            [one] => text.say(", without ").name(one.as_str()),
            [one, two] => text.say(", without ").name(one.as_str()).say(" and ").name(two.as_str()),
            names => text.say(match names.iter().filter(|name| is_identical(view, geomean, name)).count() {
                0 => ", without those that could not be judged",
                count if count == names.len() => ", without the identical ones",
                _ => ", without those that are identical or could not be judged",
            }),
        };
        Block::Prose(text.say(format!(": {}", view::geomean(geomean))))
    })
}

/// Returns whether a row that a mean leaves out passes because its two sides are identical.
fn is_identical(view: &View<'_>, geomean: &Geomean, benchmark: &BenchmarkName) -> bool {
    view.comparison.rows.iter().any(|row| {
        row.reason == Reason::Identical
            && row.benchmark == *benchmark
            && row.target == geomean.target
            && row.metric.as_ref() == Some(&geomean.metric)
    })
}

/// Returns the number of rows behind a mean: `5 rows`, or `4 of 5 rows` if the numbers of one can't be used.
fn rows_of_mean(geomean: &Geomean, noun: &str) -> String {
    let used = geomean.rows as usize;
    match used + geomean.left_out.len() {
        all if all > used => format!("{used} of {}", counted(all, noun)),
        _ => counted(used, noun),
    }
}

/// Returns the note that other programs used the processors while the two sides took turns, with the changes
/// of the processor time.
fn busy<'a>(view: &View<'a>) -> Option<Block<'a>> {
    let is_busy = view.comparison.lints.iter().any(|lint| lint.code == LintCode::HostBusy);
    let moved: Vec<RowView<'a>> =
        moved(view).into_iter().filter(|row| row.metric.is_none() && row.row.estimate.is_some()).collect();
    // Waiting for other programs may also hide the change of a row that passes.
    let hidden: Vec<&RowView<'a>> = view.moved_cpu_times(&view.unchanged).collect();
    if !is_busy || moved.is_empty() && hidden.is_empty() {
        return None;
    }
    let of_time = |row: &RowView<'a>| {
        let is_same = |other: &&RowView<'a>| {
            other.name == row.name && other.metric == Some(Metric::CPU_TIME.name.as_ref())
        };
        let time = view.reported.iter().find(is_same)?;
        Some(name(row).say(format!(" {}", time.effect()?)))
    };
    let text = Text::from("Other programs used the processors, so the size of a change is uncertain");
    let hidden = hidden
        .into_iter()
        .filter_map(|time| Some(Text::named(time.name).say(format!(" {}", time.effect()?))));
    let times: Vec<Text<'a>> = moved.iter().filter_map(of_time).chain(hidden).take(NAMES).collect();
    let text = if times.is_empty() {
        text
    } else {
        text.say("; by processor time: ").then(Text::joined(times, ", "))
    };
    Some(Block::Prose(text.say(".")))
}

/// Returns the explanations of regressions.
fn causes<'a>(view: &'a View<'a>) -> Option<Block<'a>> {
    let causes = view.causes.iter().take(CAUSES).map(|cause| {
        let kernels = [cause.kernel, cause.code].into_iter().flatten().map(Text::message_of);
        let known = kernels.chain(cause.changes.iter().map(|change| change.as_str().into()));
        // A runtime that times kernels can also exchange them, so the command for that is suggested. An
        // untrusted name must not become part of a command.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/_.-".contains(c);
        let exchange = (cause.kernel.is_some() && cause.benchmark.chars().all(is_plain)).then(|| {
            let command = super::exchange::command(view.comparison, cause.benchmark);
            Text::from("each kernel's share: ").name(command)
        });
        Text::named(cause.benchmark).say(": ").then(Text::joined(known.chain(exchange), "; "))
    });
    let more = view.causes.len().saturating_sub(CAUSES);
    let more =
        (more > 0).then(|| format!("… and {} with a known cause", counted(more, "more benchmark")).into());
    (!view.causes.is_empty()).then(|| Block::list(causes.chain(more)))
}

fn accuracy<'a>(row: &RowView<'a>) -> Option<Item<'a>> {
    let Words { sentence, detail, .. } = row.accuracy()?;
    let text = Text::default().with(Part::Icon("⚠️")).then(name(row));
    Some(text.say(format!(": {sentence}")).detail(detail).into())
}

/// Returns the sentence about generated code that got worse, even if the row's time did not change.
fn regressed_code(row: &Row) -> Option<Item<'_>> {
    let lint = row.lints.iter().find(|lint| lint.code == LintCode::CodeRegressed)?;
    let text = Text::default().with(Part::Icon("⚠️")).name(row.benchmark.as_str());
    let detail = Some(lint.detail.as_str()).filter(|detail| !detail.is_empty());
    Some(text.say(": the generated code regressed").detail(detail).into())
}

/// Returns why rows have no verdict: an entry for each row, or one for all rows that `alike` accepts and that
/// have the same reason.
fn together<'a>(rows: &[RowView<'a>], alike: impl Fn(&RowView<'a>) -> bool) -> Vec<Item<'a>> {
    let alike = |row: &RowView<'a>| alike(row) && row.row.waiver.is_none();
    let mut groups: Vec<Vec<RowView<'a>>> = Vec::new();
    for row in rows {
        let same = |group: &&mut Vec<RowView<'a>>| {
            alike(row) && alike(&group[0]) && row.sentence() == group[0].sentence()
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(*row),
            None => groups.push(vec![*row]),
        }
    }
    let item = |group: &Vec<RowView<'a>>| match group.as_slice() {
        [only] => sentence(only),
        group => {
            let Words { sentence, detail, .. } = group[0].words();
            let text = Text::default().with(Part::Icon(mark(&group[0]))).then(first_names(group));
            text.say(format!(" ({}): {sentence}", group[0].row.verdict)).detail(detail).into()
        }
    };
    groups.iter().map(item).collect()
}

/// Returns both sides' densities, one line each, so that a reader can check an estimate by eye.
fn alignments<'a>(view: &'a View<'a>) -> Vec<Item<'a>> {
    let rows = view.changed.iter().chain(&view.open);
    let rows = rows.filter_map(|row| Some((row, row.row.alignment.as_ref()?)));
    let item = |(row, alignment): (&RowView<'a>, &benchgate_gate::Alignment)| {
        let curves = [&alignment.base, &alignment.head, &alignment.aligned];
        let highest = curves.into_iter().flatten().copied().fold(f64::MIN_POSITIVE, f64::max);
        let lines = curves.into_iter().zip([" base", " head", " head moved back"]);
        let lines = lines.map(|(curve, name)| Text::named(silhouette(curve, highest, SILHOUETTE)).say(name));
        Item { text: name(row), details: lines.collect() }
    };
    rows.map(item).take(ALIGNMENTS).collect()
}

fn findings<'a>(view: &'a View<'a>, detail: Detail) -> Vec<Item<'a>> {
    let said = said(view);
    if detail != Detail::Brief {
        return view.lints.iter().map(|group| finding(group, &said)).collect();
    }
    let repeated = |group: &&LintGroup| match group.code {
        // The facts already state that the tools differ, and name them.
        LintCode::ToolchainMismatch => {
            view.facts.iter().any(|fact| is_of_tools(fact) && is_telling(fact, view))
        }
        // The rows and a note already state it, and the fix is obvious.
        LintCode::SameFile => true,
        LintCode::RepeatedSamples if group.benchmarks.is_empty() => {
            view.lints.iter().any(|other| other.code == LintCode::SameFile)
        }
        _ => group.consequence == Consequence::Note && group.found.iter().all(|case| is_said(case, &said)),
    };
    let mut items = Vec::new();
    // Notes that are only counted share one line.
    let mut counts = Vec::new();
    for group in view.lints.iter().filter(|group| !repeated(group)) {
        let is_note = group.consequence == Consequence::Note;
        match places(group) {
            _ if is_note && group.code.subject() == Some(Subject::Measuring) => counts.push(in_a_word(group)),
            (_, false) if is_note => counts.push(in_a_word(group)),
            (place, _) => {
                // The fix for a note is only shown with `--all`; other findings prevent a verdict, so their fix is
                // always shown.
                let fix = if is_note { "" } else { group.fix };
                let text = Text::from(format!("{} ({}): ", group.code, consequence(group)));
                // Cases that the rows above already mention are not repeated.
                let is_repeated = group.found.iter().all(|case| is_said(case, &said));
                let text =
                    if is_repeated { text } else { text.name(place).say(if is_note { "" } else { ". " }) };
                items.push(text.say(fix).into());
            }
        }
    }
    let has_codes = !counts.is_empty();
    let notes = has_codes.then(|| Text::from("notes: ").then(Text::joined(counts, ", ")));
    let rest: Vec<Text<'_>> = notes.into_iter().chain(informational(view).map(Text::from)).collect();
    if !rest.is_empty() {
        // If a file was written, its line already has the command that shows everything.
        let more = match (&view.written, has_codes) {
            (Some(_), _) => "",
            (None, true) => "; --all and `compare --explain CODE` say more",
            (None, false) => "; --all shows more",
        };
        items.push(Text::joined(rest, "; ").say(more).into());
    }
    items
}

/// Returns the details of findings that are already mentioned above, with their benchmarks.
fn said<'a>(view: &View<'a>) -> Vec<(&'a str, String)> {
    let causes = view.causes.iter().take(CAUSES).flat_map(|cause| {
        [cause.kernel, cause.code].into_iter().flatten().map(|text| (cause.benchmark, text.to_owned()))
    });
    let code = view.comparison.rows.iter().filter_map(|row| {
        Some((row.benchmark.as_str(), view::detail_of(row, LintCode::CodeRegressed)?.to_owned()))
    });
    let alone = view.open_groups().into_iter().filter(|group| group.rows.len() == 1);
    let same = alone.flat_map(|group| group.rows);
    let same = same.filter_map(|row| Some((row.name, row.row.identical_code()?.to_owned())));
    let outputs = view.diverged.iter().map(|row| (row, row.words()));
    let outputs = outputs.chain(view.less_accurate.iter().filter_map(|row| Some((row, row.accuracy()?))));
    let outputs = outputs.chain(view.failed.iter().map(|row| (row, row.words())));
    let outputs = outputs.filter_map(|(row, words)| Some((row.row.benchmark.as_str(), words.detail?)));
    causes.chain(code).chain(same).chain(outputs).collect()
}

/// Returns whether this case of a finding is already mentioned above. A finding about an output begins with
/// the output's number.
fn is_said((place, detail): &(Option<String>, String), said: &[(&str, String)]) -> bool {
    let is_same = |(benchmark, text): &(&str, String)| {
        place.as_deref() == Some(benchmark)
            && detail.strip_suffix(text.as_str()).is_some_and(|rest| rest.is_empty() || rest.ends_with(": "))
    };
    said.iter().any(is_same)
}

/// Returns a note and where it was found, without its detail.
fn in_a_word(group: &LintGroup) -> Text<'_> {
    let code = Text::from(group.code.as_str());
    match (group.found.as_slice(), group.benchmarks.len()) {
        (_, 0) => code,
        ([(Some(place), _), ..], 1) => code.say(" (").name(place).say(")"),
        (_, count) => code.say(format!(" ({})", counted(count, "benchmark"))),
    }
}

/// Returns a finding with its meaning, its fix and its first cases, without details that were mentioned
/// above.
fn finding<'a>(group: &'a LintGroup, said: &[(&str, String)]) -> Item<'a> {
    let text = Text::named(group.code.as_str());
    let text = text.say(format!(" ({}): {} {}", consequence(group), group.code.description(), group.fix));
    let case = |case: &(Option<String>, String)| {
        let place = case.0.clone().map(Text::named);
        let detail = Some(case.1.clone()).filter(|detail| !detail.is_empty() && !is_said(case, said));
        let detail = detail.map(Text::message_of);
        Text::joined(place.into_iter().chain(detail), ": ")
    };
    let cases = group.found.iter().map(case).filter(|case| !case.is_empty());
    let more = group.found.len().saturating_sub(CASES);
    let more = (more > 0).then(|| format!("… and {more} more").into());
    Item { text, details: cases.take(CASES).chain(more).collect() }
}

fn consequence(group: &LintGroup) -> &'static str {
    match group.consequence {
        Consequence::Note => "note",
        Consequence::NotGreen => "not green",
        Consequence::Inconclusive => "no verdict",
        Consequence::Error => "error",
    }
}

/// Returns a text that states where a finding was made, and whether it includes the finding's detail: that of a single
/// case, or of the first of several benchmarks if the finding prevents a verdict.
fn places(group: &LintGroup) -> (String, bool) {
    let forbids = group.consequence != Consequence::Note;
    match (group.found.as_slice(), group.benchmarks.len()) {
        ([(place, detail)], _) | ([(place, detail), ..], 1) => {
            (place.iter().chain([detail]).cloned().collect::<Vec<_>>().join(": "), true)
        }
        ([(_, detail), ..], 0) => (format!("{detail}, and {} more like it", group.found.len() - 1), true),
        ([(place, detail), rest @ ..], count) if forbids && !detail.is_empty() => {
            let first = place.as_ref().filter(|_| rest.iter().any(|(_, other)| other != detail));
            let first = first.map_or_else(|| ": ".to_owned(), |place| format!(", such as {place}: "));
            (format!("{}{first}{detail}", counted(count, "benchmark")), true)
        }
        (_, count) => (counted(count, "benchmark"), false),
    }
}

fn facts<'a>(view: &'a View<'a>, detail: Detail) -> Vec<Item<'a>> {
    if detail == Detail::Brief {
        let differing: Vec<Text<'_>> =
            view.facts.iter().filter(|fact| is_telling(fact, view)).map(fact_in_short).collect();
        let all = (!differing.is_empty())
            .then(|| Text::from("differs: ").then(Text::joined(differing, "; ")).into());
        return all.into_iter().collect();
    }
    let value = |text: Text<'a>, side: Option<&'a str>| match side {
        Some(side) => text.message(side),
        None => text.say("unknown"),
    };
    let fact = |fact: &'a Fact| {
        let (base, head) = (fact.base.as_deref(), fact.head.as_deref());
        let text = value(Text::from(fact.name).say(": "), base);
        if base == head { text.say(" (both)").into() } else { value(text.say(" → "), head).into() }
    };
    view.facts.iter().map(fact).collect()
}

/// Returns whether a differing fact is informative. In every comparison files have different names and times,
/// and another version of the tools implies other commits and another benchmark library.
fn is_telling(fact: &Fact, view: &View<'_>) -> bool {
    let other_version = || view.facts.iter().any(|fact| fact.name == "tools" && fact.base != fact.head);
    // A stored session has a separate format and states less; it was selected by its testbed.
    let is_stored = view.comparison.base.format.starts_with("benchgate/baseline/");
    let expected = match fact.name {
        "input" | "measured" | "load" => true,
        name if is_stored && (name == "format" || fact.base.is_none()) => true,
        "compiler commit" | "runtime commit" | "benchmark library" => other_version(),
        _ => false,
    };
    fact.base != fact.head && !expected
}

fn is_of_tools(fact: &Fact) -> bool {
    matches!(fact.name, "tools" | "compiler commit" | "runtime commit")
}

/// Formats `compiler commit 1a668193 → 89ece87b`.
fn fact_in_short(fact: &Fact) -> Text<'_> {
    const DIGITS: usize = 8;
    let side = |value: &Option<String>| match value.as_deref() {
        None => "unknown".to_owned(),
        Some(commit) if commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            commit[..DIGITS].to_owned()
        }
        Some(value) => value.to_owned(),
    };
    Text::from(fact.name).say(" ").name(side(&fact.base)).say(" → ").name(side(&fact.head))
}

fn notes<'a>(view: &'a View<'a>, detail: Detail) -> Vec<Item<'a>> {
    let comparison = view.comparison;
    let brief = detail == Detail::Brief;
    let method = if brief { [].as_slice() } else { &comparison.method };
    let label = if brief { "note: " } else { "" };
    let legend = view.legend.as_ref().filter(|_| !brief);
    let legend = legend.map(|legend| format!("{} {MORE_COLUMNS}", legend.sentences()).into());
    let is_no_ratio = view.legend.as_ref().is_some_and(|legend| legend.is_no_ratio);
    let no_ratio = is_no_ratio.then(|| {
        Text::from(label).say(
            "changes are estimated from all sessions, so they can differ from the ratio of the values next to them",
        )
    });
    // Nothing shows whether files were measured alternately.
    let has_moved = |row: &Row| {
        let is_separate = row.estimate.as_ref().is_some_and(|estimate| estimate.method == Method::Unpaired);
        row.fatal && is_separate && matches!(row.verdict, Verdict::Regressed | Verdict::Improved)
    };
    let drifted = comparison.rows.iter().any(has_moved).then(|| {
        Text::from(label).say(
            "the sides were measured separately: unless they took turns, a drift of the machine looks like a change",
        )
    });
    let notes = comparison.notes.iter().filter(|note| !view.alerts.contains(note));
    let notes = notes.chain(method).map(|note| Text::from(label).say(note.as_str()));
    legend.into_iter().chain(no_ratio).chain(drifted).chain(notes).map(Item::from).collect()
}
