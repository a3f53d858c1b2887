//! Describes a bisection in words: the change, its position, and how certain they are.

use benchgate_core::model::counted;
use benchgate_core::record::{
    BisectionFile, BisectionResult, BisectionSchema, CandidateRecord, Number, ObservationRecord, PartKind,
    PartRecord, ProbeRecord,
};
use benchgate_gate::bisect::{Ends, Found, Observed, Part};

use super::chart::{Theme, bisection_svg};
use super::document::{self, Block, Rules, Table, TerminalOptions, Text};
use super::{human, percent};

/// Facts about a bisection that are not part of the search's result.
#[derive(Debug, Clone, Default)]
pub struct BisectionFacts {
    pub suite: String,
    pub benchmark: String,
    pub observed: String,
    /// Name and title of each candidate.
    pub candidates: Vec<(String, Option<String>)>,
    /// Candidates that are the same program as an earlier one.
    pub same: Vec<(usize, usize)>,
    pub seconds: f64,
    /// True if the time budget ended before the search did.
    pub unfinished: bool,
    pub notes: Vec<String>,
}

/// Converts a position. The number always fits, because more candidates are rejected before anything is
/// measured.
fn place(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

fn observation(observed: &Observed) -> ObservationRecord {
    let exact = observed.is_settled();
    let shown = |value: f64| Number(if exact { value } else { value.exp() });
    ObservationRecord {
        verdict: observed.verdict,
        blocks: observed.blocks,
        change: shown(observed.change),
        low: observed.interval.map(|(low, _)| shown(low)),
        high: observed.interval.map(|(_, high)| shown(high)),
        exact,
    }
}

/// Returns the stored form of a bisection, from which every other format is rendered.
pub fn bisection_file(found: &Found, facts: &BisectionFacts) -> BisectionFile {
    let candidates = facts.candidates.iter().enumerate().map(|(at, (name, title))| CandidateRecord {
        name: name.clone(),
        title: title.clone(),
        probability: at.checked_sub(1).and_then(|at| found.posterior.get(at)).map(|p| Number(*p)),
        skipped: found.skipped.iter().find(|(skipped, _)| *skipped == at).map(|(_, why)| why.clone()),
        same_as: facts.same.iter().find(|(later, _)| *later == at).map(|(_, earlier)| place(*earlier)),
    });
    let parts: Vec<PartRecord> = found.parts.iter().map(part).collect();
    let result = result(found, &parts, facts.unfinished);
    let mut file = BisectionFile {
        schema: BisectionSchema,
        benchgate: benchgate_core::VERSION.to_owned(),
        suite: facts.suite.clone(),
        benchmark: facts.benchmark.clone(),
        observed: facts.observed.clone(),
        result,
        exit_code: match result {
            BisectionResult::Found => benchgate_core::exit_code::ExitCode::Pass,
            BisectionResult::NotWorse => benchgate_core::exit_code::ExitCode::Usage,
            _ => benchgate_core::exit_code::ExitCode::Inconclusive,
        }
        .code(),
        headline: String::new(),
        candidates: candidates.collect(),
        ends: match &found.ends {
            Ends::Unknown => None,
            Ends::Worse(observed) | Ends::NotWorse(observed) | Ends::Open(observed) => {
                Some(observation(observed))
            }
        },
        parts,
        probes: found
            .probes
            .iter()
            .map(|probe| ProbeRecord {
                base: place(probe.pair.base),
                head: place(probe.pair.head),
                observation: observation(&probe.observed),
            })
            .collect(),
        blocks: found.blocks(),
        seconds: Number(facts.seconds),
        notes: facts.notes.iter().cloned().chain(mismatch(found)).collect(),
    };
    file.headline = headline(&file);
    file
}

fn part(part: &Part) -> PartRecord {
    PartRecord {
        kind: part.kind,
        after: place(part.after),
        upto: place(part.upto),
        probability: part.probability.map(Number),
        likely: part.likely.map(|(after, upto)| [place(after), place(upto)]),
        observation: observation(&part.observed),
    }
}

fn result(found: &Found, parts: &[PartRecord], unfinished: bool) -> BisectionResult {
    let has = |kind| parts.iter().any(|part| part.kind == kind);
    match &found.ends {
        Ends::NotWorse(_) => BisectionResult::NotWorse,
        _ if unfinished => BisectionResult::Unfinished,
        Ends::Open(_) | Ends::Unknown => BisectionResult::Inconclusive,
        Ends::Worse(_) if has(PartKind::Unexplained) || found.mismatch.is_some() => {
            BisectionResult::Unexplained
        }
        Ends::Worse(_) if has(PartKind::Open) => BisectionResult::Inconclusive,
        Ends::Worse(_) if has(PartKind::Culprit) => BisectionResult::Found,
        Ends::Worse(_) => BisectionResult::Inconclusive,
    }
}

/// Describes the sum of the partial changes, if it differs from the total.
fn mismatch(found: &Found) -> Option<String> {
    let ((low, high), Ends::Worse(whole)) = (found.mismatch?, &found.ends) else { return None };
    let (whole_low, whole_high) = whole.interval?;
    let interval = |low: f64, high: f64| human::interval(low.exp(), high.exp(), low.midpoint(high).exp());
    Some(format!(
        "the partial changes add up to {}, but the ends differ by {}: the machine may have changed between the \
        measurements; \
         delete .benchgate/bisect and search again while nothing else runs",
        interval(low, high),
        interval(whole_low, whole_high)
    ))
}

/// Formats `+3.1 %`, `12.7× better`, or the difference of an exact value.
fn change(observation: &ObservationRecord) -> String {
    let change = observation.change.0;
    let factor = human::Style::for_ratio(change);
    if observation.exact && change == 0.0 {
        "unchanged".to_owned()
    } else if observation.exact {
        format!("{change:+}").replace('-', "−")
    } else {
        // A percentage has a sign; a factor does not.
        let direction = match factor {
            human::Style::Percent => "",
            human::Style::TimesMore => " worse",
            human::Style::TimesLess => " better",
        };
        human::change(change) + direction
    }
}

fn interval(observation: &ObservationRecord) -> String {
    match (observation.low, observation.high) {
        (Some(low), Some(high)) => human::interval(low.0, high.0, observation.change.0),
        _ => String::new(),
    }
}

fn name(file: &BisectionFile, at: u32) -> &str {
    file.candidates.get(at as usize).map_or("?", |candidate| candidate.name.as_str())
}

/// Names the candidates of a part: a single name, or, in git's notation, the candidate before them and the
/// last one.
fn names(file: &BisectionFile, after: u32, upto: u32) -> String {
    if after + 1 == upto {
        name(file, upto).to_owned()
    } else {
        format!("{}..{}", name(file, after), name(file, upto))
    }
}

fn headline(file: &BisectionFile) -> String {
    let what = format!("{} of {}", file.observed, file.benchmark);
    let (good, bad) = (name(file, 0), name(file, place(file.candidates.len().saturating_sub(1))));
    let whole = file.ends.as_ref().map(change).unwrap_or_default();
    let culprits: Vec<String> = (file.parts.iter())
        .filter(|part| part.kind == PartKind::Culprit)
        .map(|part| format!("{} ({})", names(file, part.after, part.upto), change(&part.observation)))
        .collect();
    match file.result {
        BisectionResult::Found => format!("{what} got worse in {}", culprits.join(" and in ")),
        BisectionResult::NotWorse => format!("{what} is not worse in {bad} than in {good} ({whole})"),
        BisectionResult::Unexplained if culprits.is_empty() => {
            format!("{what} is worse in {bad} than in {good} ({whole}), but no single change explains it")
        }
        BisectionResult::Unexplained if file.parts.iter().any(|part| part.kind == PartKind::Unexplained) => {
            format!("{what} got worse in {}; no single change explains the rest", culprits.join(" and in "))
        }
        BisectionResult::Unexplained => {
            format!(
                "{what} got worse in {}; the partial changes don't sum to the total ({whole})",
                culprits.join(" and in ")
            )
        }
        BisectionResult::Inconclusive if !culprits.is_empty() => {
            format!("{what} got worse in {}; the rest could not be decided", culprits.join(" and in "))
        }
        BisectionResult::Inconclusive => {
            format!("{what}: whether {bad} is worse than {good} could not be decided ({whole})")
        }
        BisectionResult::Unfinished if culprits.is_empty() => {
            format!("{what}: the time budget ended before a change was found; run the command again to go on")
        }
        BisectionResult::Unfinished => {
            format!(
                "{what} got worse in {}; the time budget ended before the rest was searched",
                culprits.join(" and in ")
            )
        }
    }
}

/// Returns the kind of a part, in words.
fn kind(part: &PartRecord) -> &'static str {
    match part.kind {
        PartKind::Culprit if part.after + 1 == part.upto => "culprit",
        PartKind::Culprit => "culprit among these",
        PartKind::Unexplained => "no single change explains it",
        PartKind::Open => "not decided",
        PartKind::NotWorse => "not worse",
    }
}

/// Returns a table with the kind of each part, and with the difference between its ends.
fn parts(file: &BisectionFile) -> Table<'_> {
    let row =
        |what: &'static str, (after, upto), observation: &ObservationRecord, probability: Option<Number>| {
            vec![
                what.into(),
                Text::named(names(file, after, upto)).into(),
                change(observation).into(),
                interval(observation).into(),
                probability.map(|p| percent(p.0)).unwrap_or_default().into(),
                observation.blocks.to_string().into(),
            ]
        };
    let numbers = ["change", "interval", "probability", "blocks"];
    let mut table = Table::new(&["result", "candidates"], &numbers, Rules::Header);
    let parts = file.parts.iter();
    table.rows.extend(
        parts.map(|part| row(kind(part), (part.after, part.upto), &part.observation, part.probability)),
    );
    let last = place(file.candidates.len().saturating_sub(1));
    table.rows.extend(file.ends.iter().map(|ends| row("both ends", (0, last), ends, None)));
    table
}

/// Returns the candidates that most probably made the step, likeliest first, if the search has not settled
/// this yet.
fn likeliest(file: &BisectionFile) -> Vec<(String, f64)> {
    const SHOWN: usize = 5;
    const LEAST: f64 = 0.01;
    let mut all: Vec<(String, f64)> = (file.candidates.iter())
        .filter_map(|candidate| Some((candidate.name.clone(), candidate.probability?.0)))
        .filter(|(_, probability)| *probability >= LEAST)
        .collect();
    all.sort_by(|x, y| y.1.total_cmp(&x.1));
    all.truncate(SHOWN);
    all
}

fn footer(file: &BisectionFile) -> String {
    let skipped = file.candidates.iter().filter(|candidate| candidate.skipped.is_some()).count();
    let skipped = if skipped == 0 { String::new() } else { format!(", {skipped} skipped") };
    format!(
        "{} candidates{skipped}, {} compared, {}, {}",
        file.candidates.len(),
        counted(file.probes.len(), "pair"),
        counted(file.blocks as usize, "block"),
        super::duration(std::time::Duration::from_secs_f64(file.seconds.0.max(0.0)))
    )
}

fn is_settled(file: &BisectionFile) -> bool {
    matches!(file.result, BisectionResult::Found | BisectionResult::NotWorse)
}

pub fn bisection_terminal(file: &BisectionFile, width: u16) -> String {
    let headline = Block::Prose(Text::named(&file.headline));
    let blocks: Vec<Block<'_>> = [headline, Block::Break].into_iter().chain(blocks(file)).collect();
    document::terminal(&blocks, TerminalOptions { width, ..TerminalOptions::default() })
}

/// Renders a bisection for a comment or a job summary, in at most `max_bytes` bytes.
pub fn bisection_markdown(file: &BisectionFile, max_bytes: usize) -> String {
    let title = Block::Title(Text::from("Bisection of ").name(&file.benchmark));
    let blocks: Vec<Block<'_>> =
        [title, Block::Prose(Text::message_of(&file.headline))].into_iter().chain(blocks(file)).collect();
    document::markdown(&blocks, max_bytes)
}

/// Renders a bisection as a self-contained page with the chart, every candidate and every probe.
pub fn bisection_html(file: &BisectionFile) -> String {
    let mut candidates = Table::new(&["candidate", "title", "state"], &["probability"], Rules::Header);
    candidates.rows.extend(file.candidates.iter().map(|candidate| {
        let same = candidate.same_as.map(|at| format!("same program as {}", name(file, at)));
        let state = candidate.skipped.clone().map(|why| format!("skipped: {why}")).or(same);
        vec![
            Text::named(&candidate.name).into(),
            Text::named(candidate.title.as_deref().unwrap_or_default()).into(),
            Text::named(state.unwrap_or_default()).into(),
            candidate.probability.map(|p| percent(p.0)).unwrap_or_default().into(),
        ]
    }));
    let (texts, numbers) = (["candidate", "against", "verdict"], ["change", "interval", "blocks"]);
    let mut probes = Table::new(&texts, &numbers, Rules::Header);
    probes.rows.extend(file.probes.iter().map(|probe| {
        vec![
            Text::named(name(file, probe.head)).into(),
            Text::named(name(file, probe.base)).into(),
            probe.observation.verdict.to_string().into(),
            change(&probe.observation).into(),
            interval(&probe.observation).into(),
            probe.observation.blocks.to_string().into(),
        ]
    }));
    let mut page = vec![
        Block::Prose(Text::named(&file.headline)),
        Block::Picture(Theme::BOTH.map(|theme| bisection_svg(file, theme))),
    ];
    page.extend(blocks(file));
    page.extend([Block::Title("Candidates".into()), Block::Table(vec![candidates])]);
    page.extend([Block::Title("Probes".into()), Block::Table(vec![probes])]);
    document::html_page(&format!("Bisection of {}", file.benchmark), &page)
}

/// Returns the content below the headline, which is the same in every form.
fn blocks(file: &BisectionFile) -> Vec<Block<'_>> {
    let mut blocks = vec![Block::Table(vec![parts(file)])];
    let culprits = file.parts.iter().filter(|part| part.kind == PartKind::Culprit);
    let titles = culprits.filter_map(|part| {
        let candidate = file.candidates.get(part.upto as usize)?;
        Some(Text::named(&candidate.name).detail(Some(candidate.title.as_deref()?)))
    });
    let skipped = file.candidates.iter().filter_map(|candidate| {
        let why = candidate.skipped.as_deref()?;
        Some(Text::from("skipped ").name(&candidate.name).detail(Some(why)))
    });
    let notes = file.notes.iter().map(|note| Text::from("note: ").message(note));
    let said: Vec<Text<'_>> = titles.chain(skipped).chain(notes).collect();
    if !said.is_empty() {
        blocks.extend([Block::Break, Block::list(said)]);
    }
    if !is_settled(file) && !likeliest(file).is_empty() {
        let likeliest = likeliest(file).into_iter();
        let candidates =
            likeliest.map(|(name, probability)| Text::named(name).say(format!(": {}", percent(probability))));
        blocks.extend([
            Block::Break,
            Block::Prose("If a single change caused this, the most probable candidates are:".into()),
            Block::list(candidates),
        ]);
    }
    blocks.push(Block::Small(footer(file).into()));
    blocks
}
