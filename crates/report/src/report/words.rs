//! Explains in words why a row has its verdict, and what to do about a finding. Only this module turns a
//! [`Reason`] into text.

use benchgate_core::model::{
    Better, Lint, LintCode, Metric, Outcome, OutputCheck, SideName, Verdict, Verification, VerifyCode,
    counted, significant,
};
use benchgate_gate::{LOOKS_RENAMED, LimitReading, Method, Reason, Row, SpreadSource, disturbed_side};

use super::human::{Style, change, changed_by, interval, percent, quantity, range};

/// Reason of an undecided row that has no more specific reason, or has a detail.
pub(super) const UNDECIDED: &str = "undecided";

/// Number of sessions per side that is enough to detect a program that is slow in one start of five.
pub(super) const ENOUGH_SESSIONS: u32 = 21;

/// A sentence by benchgate, and untrusted text such as a compiler's message or a tool's error. The two are
/// separate, because every renderer has to escape the second.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Words {
    /// A short text that fits into a table cell.
    pub short: String,
    /// A whole sentence without a capital letter and a full stop.
    pub sentence: String,
    pub detail: Option<String>,
}

impl Words {
    fn new(short: impl Into<String>, sentence: impl Into<String>) -> Self {
        Self { short: short.into(), sentence: sentence.into(), detail: None }
    }

    fn with(mut self, detail: &str) -> Self {
        if !detail.is_empty() {
            self.detail = Some(detail.to_owned());
        }
        self
    }
}

/// Returns the sentence about accuracy in a latency row, if head's outputs pass but are less accurate. Each
/// benchmark has only one such row.
pub(super) fn accuracy(row: &Row) -> Option<Words> {
    row.metric.as_ref().filter(|metric| metric.name == Metric::LATENCY.name)?;
    let lint = row.lints.iter().find(|lint| lint.code == LintCode::LessAccurate)?;
    let sentence = match row.verdict {
        Verdict::Improved => "faster but less accurate",
        Verdict::Regressed => "slower and less accurate",
        Verdict::Pass => "as fast but less accurate",
        _ => "less accurate",
    };
    Some(Words::new("less accurate", sentence).with(&lint.detail))
}

pub(super) fn reason(row: &Row) -> Words {
    match &row.reason {
        Reason::BeyondFloor => Words::new(format!("beyond {}", floor(row)), beyond(row)),
        Reason::BelowFloor => {
            Words::new(format!("beyond {}", floor(row)), format!("{}, in the good direction", beyond(row)))
        }
        Reason::WithinTolerance => {
            let ruled_out = format!("a regression of {} or more is ruled out", tolerance(row));
            if is_better_than_tolerance(row) {
                Words::new("no worse", format!("{ruled_out}, and an improvement is not certain"))
            } else {
                Words::new(format!("within {}", tolerance(row)), ruled_out)
            }
        }
        Reason::Open => open(row),
        Reason::Identical => Words::new(
            "identical",
            "everything executed is identical on both sides, so there is nothing to compare",
        ),
        Reason::Stability => {
            Words::new("less stable", uneven(row, "head is slow more often, or varies more"))
        }
        Reason::Tail => Words::new(
            "more stalls",
            uneven(row, "rare repetitions of head take many times as long, which makes head's mean worse"),
        ),
        Reason::Exact => exact(row),
        Reason::ExpectedFailure { failure, reason } => {
            let words = Words::new("fails as expected", format!("a {failure} is expected on both sides"));
            words.with(reason)
        }
        Reason::Verified => {
            let against_base =
                |found: &Verification| found.code.has_no_reference() && !found.against_base.is_empty();
            let reference = if row.head_verification.as_ref().is_some_and(against_base) {
                "base's"
            } else {
                "the reference"
            };
            Words::new("outputs verified", format!("the outputs agree with {reference}; nothing was timed"))
        }
        // Only rows of kernels are neither fatal nor waived.
        Reason::OnlyOn(SideName::Base) if row.fatal || row.waiver.is_some() => {
            let renamed = |lint: &&Lint| lint.detail.starts_with(LOOKS_RENAMED);
            let renamed = row.lints.iter().find(renamed).map_or("", |lint| lint.detail.as_str());
            Words::new("only at base", "base has this benchmark and head does not").with(renamed)
        }
        Reason::OnlyOn(SideName::Base) => Words::new(
            "only at base",
            "only base has this kernel, so there is nothing to compare it with; the row that covers all kernels together judges the code of both sides",
        ),
        Reason::OnlyOn(SideName::Head) => Words::new(
            "only at head",
            "head has this benchmark and base does not: there is nothing to compare it with",
        ),
        Reason::MetricOnlyOn(side) => {
            Words::new(format!("only at {side}"), format!("only {side} has this metric"))
        }
        Reason::FailsAtHead { stage, why } if row.verdict == Verdict::Regressed => {
            Words::new(format!("{stage} fails"), format!("{stage} fails only at head")).with(why)
        }
        Reason::FailsAtHead { stage, why } => Words::new(
            format!("{stage} fails"),
            format!("{stage} fails at head, so the benchmark can't be compared"),
        )
        .with(why),
        Reason::FailsAtBase { stage, why } => Words::new(
            format!("{stage} failed at base"),
            format!("{stage} fails at base, so there is nothing to compare head with"),
        )
        .with(why),
        Reason::FailsOnBoth { stage, why } => {
            Words::new(format!("{stage} fails on both"), format!("{stage} fails on both sides")).with(why)
        }
        Reason::NotMeasured(outcome) => not_measured(outcome),
        Reason::WrongOutput => {
            let (sentence, detail) = wrong_output(row.head_verification.as_ref());
            let short = if is_of_base(row) { "different output than base" } else { "wrong output" };
            Words::new(short, format!("head's outputs differ: {sentence}")).with(&detail)
        }
        Reason::WrongOutputOnBase => {
            let (sentence, detail) = wrong_output(row.base_verification.as_ref());
            let head = match &row.head_verification {
                Some(head) if head.code == VerifyCode::Pass => ", and head's are right",
                _ => "",
            };
            Words::new(
                "wrong at base",
                format!("base's own outputs don't match the reference{head}: {sentence}"),
            )
            .with(&detail)
        }
        Reason::Unusable(lint) => {
            Words::new(lint.code.as_str(), fragment(lint.code.description())).with(&lint.detail)
        }
        Reason::TooLittle(lacking) => {
            let assumed = assumed_spread(std::iter::once(row).filter(|row| is_wide(row)));
            let assumed = assumed.map(|assumed| format!("; {assumed}"));
            let why = format!("{}{}", lacking.why, assumed.unwrap_or_default());
            match runs(row).filter(|_| is_wide(row)) {
                Some(RunsAnswer { short, sentence, .. }) => Words::new(short, sentence).with(&why),
                None => Words::new(lacking.short, UNDECIDED).with(&why),
            }
        }
        Reason::Limit(reading) => limit(row, reading),
        Reason::UnitMismatch { base, head } => {
            Words::new("units differ", "the two sides have units of different kinds")
                .with(&format!("{base} at base, {head} at head"))
        }
    }
}

/// Describes a value relative to its limit.
fn limit(row: &Row, reading: &LimitReading) -> Words {
    let number = |value: f64| match &row.metric {
        Some(metric) if !reading.withheld => quantity(value, &metric.unit),
        _ => significant(value, 4),
    };
    let (low, high) = (number(reading.low), number(reading.high));
    let mut value = if low == high { low } else { format!("{low} … {high}") };
    let mut limit = format!("the limit of {}", number(reading.limit));
    if reading.withheld {
        value.push_str(" × the limit");
        "it".clone_into(&mut limit);
    }
    let words = match (row.verdict, reading.is_max, reading.too_few) {
        (Verdict::Regressed, true, _) => {
            Words::new("limit exceeded", format!("head's typical value, {value}, is above {limit}"))
        }
        (Verdict::Regressed, false, _) => {
            Words::new("limit exceeded", format!("head's typical value, {value}, is below {limit}"))
        }
        (_, _, Some(processes)) => Words::new(
            "limit undecided",
            format!(
                "{} ({value}) can't show whether head's typical value meets {limit}",
                counted(processes, "process")
            ),
        ),
        (_, _, None) => Words::new(
            "near its limit",
            format!("head's typical value, {value}, may be on either side of {limit}{}", and_more_data(row)),
        ),
    };
    match &reading.owner {
        Some(owner) => words.with(&format!("owner: {owner}")),
        None => words,
    }
}

/// Returns the sentence for a row whose typical time did not get worse, but whose stability or tail did or
/// may have.
fn uneven(row: &Row, what: &str) -> String {
    match row.verdict {
        Verdict::Inconclusive => format!(
            "undecided: the typical time is within the tolerance of {}, but {what}{}",
            tolerance(row),
            and_more_data(row)
        ),
        _ => format!("the typical time did not get worse, but {what}"),
    }
}

/// Advice for an undecided row that was measured in blocks.
const MORE_BLOCKS: &str = "more blocks (`--max-blocks`) or a quieter machine would settle it";

/// Advice for an undecided row that has many sessions.
const MORE_SESSIONS: &str = "more sessions, a quieter machine or `benchgate pair` would narrow the interval";

/// Describes a change beyond the floor. A classical test decides by its p-value and the effect alone, so its
/// interval may reach below the floor.
fn beyond(row: &Row) -> String {
    match &row.estimate {
        Some(estimate) if matches!(estimate.method, Method::Welch | Method::MannWhitney) => format!(
            "the test is significant, and the effect of {}{} lies beyond the floor of {}",
            change(estimate.ratio),
            bounds(row),
            floor(row)
        ),
        _ => format!("the whole interval{} lies beyond the floor of {}", bounds(row), floor(row)),
    }
}

/// Returns why a row is open, without details that only this row has: rows with equal texts are open for the
/// same reason.
pub(super) fn open_kind(row: &Row) -> Words {
    match &row.reason {
        Reason::Open => {
            let more = and_more_data(row);
            let room = room_for_both(row, "");
            match runs(row) {
                Some(RunsAnswer { short, kind, .. }) => Words::new(short, format!("{kind}: {room}{more}")),
                None => Words::new(undecided(row), format!("{room}{more}")),
            }
        }
        Reason::TooLittle(lacking) => match runs(row).filter(|_| is_wide(row)) {
            Some(RunsAnswer { short, kind, .. }) => Words::new(short, kind).with(&lacking.why),
            None => Words::new(lacking.short, UNDECIDED).with(&lacking.why),
        },
        Reason::Unusable(lint) => Words { detail: disturbed_side(lint), ..reason(row) },
        _ => reason(row),
    }
}

/// Answer to the question whether two runs that were measured separately differ. This is the first
/// of two questions, and the only one that repetitions can answer.
struct RunsAnswer {
    short: &'static str,
    /// The answer to both questions, without this row's numbers.
    kind: &'static str,
    /// The text of `kind`, with the p-value.
    sentence: String,
}

/// p-value from which the repetitions of two runs do not clearly differ.
const RUNS_ALIKE: f64 = 0.01;
/// Smallest p-value that is printed exactly.
const LEAST_P: f64 = 1e-9;

fn runs(row: &Row) -> Option<RunsAnswer> {
    let estimate = row.estimate.as_ref()?;
    let p = estimate.p_runs?;
    let (short, kind) = match (p < RUNS_ALIKE, estimate.sessions) {
        (true, Some(2..)) => (
            "the sessions differ",
            "the sessions of the two sides differ, but sessions of one program may differ as much",
        ),
        (true, _) => (
            "the sessions differ",
            "these two sessions differ, but two sessions of one program may differ as much",
        ),
        (false, _) => (
            "no clear difference",
            "no clear difference between the sides, but a change of the program can't be ruled out",
        ),
    };
    let p = match p {
        p if p < LEAST_P => "p below 1e-9".to_owned(),
        p if p < RUNS_ALIKE => format!("p {p:.1e}"),
        p => format!("p {p:.2}"),
    };
    Some(RunsAnswer { short, kind, sentence: format!("{kind} (repetitions alone: {p})") })
}

/// Returns whether the row is undecided because of the width of its interval, printed or withheld.
pub(super) fn is_wide(row: &Row) -> bool {
    let is_withheld = row.estimate.as_ref().is_some_and(|estimate| estimate.interval.is_none());
    row.reason == Reason::Open || is_withheld && matches!(row.reason, Reason::TooLittle(_))
}

/// Returns the source of a row's assumed spread and the number of sessions, on which the explanation of the
/// spread depends.
pub(super) fn assumed_kind(row: &Row) -> Option<(&'static str, u32)> {
    let sessions = row.estimate.as_ref().and_then(|estimate| estimate.sessions);
    Some((row.assumed?.source.as_str(), sessions.unwrap_or(1)))
}

/// Explains the source of a spread that is assumed because the rows' own data does not show it, and
/// which data would show it; the assumption must be of the same kind in all rows.
pub(super) fn assumed_spread<'a>(rows: impl Iterator<Item = &'a Row> + Clone) -> Option<String> {
    let (_, sessions) = assumed_kind(rows.clone().next()?)?;
    let assumed = rows.filter_map(|row| row.assumed);
    let size = range(assumed.clone().map(|assumed| assumed.sd))?;
    let source = assumed.clone().next()?.source;
    Some(match (source, sessions) {
        (SpreadSource::Default, 2..) => format!(
            "{sessions} sessions per side are few, so a standard deviation of {size} between sessions is assumed and \
             combined with the measured one; with {ENOUGH_SESSIONS} per side, only the measured one counts"
        ),
        (SpreadSource::Default, _) => {
            let seen = range(assumed.filter_map(|assumed| assumed.disturbance));
            let from = seen.map_or_else(
                || "nothing shows how steady the machine was".to_owned(),
                |seen| {
                    format!(
                        "the repetitions of one session already drift or wait for other programs by {seen}"
                    )
                },
            );
            format!(
                "one session per side can't show how much sessions vary, so a standard deviation \
                 of {size} between them is assumed ({from}); with {ENOUGH_SESSIONS} sessions per \
                 side, it is measured instead"
            )
        }
        (source, _) => format!(
            "the {} standard deviation between processes is {size}; more processes would settle it",
            source.as_str()
        ),
    })
}

/// Returns advice that would narrow the interval of an undecided row that already has all the data that the
/// method asks for.
fn more_data(row: &Row) -> Option<&'static str> {
    let sessions = row.estimate.as_ref().and_then(|estimate| estimate.sessions);
    let has_enough = row.assumed.is_none() && sessions.is_some_and(|sessions| sessions >= ENOUGH_SESSIONS);
    if is_paired(row) { Some(MORE_BLOCKS) } else { has_enough.then_some(MORE_SESSIONS) }
}

fn and_more_data(row: &Row) -> String {
    more_data(row).map_or_else(String::new, |more| format!("; {more}"))
}

fn is_paired(row: &Row) -> bool {
    row.estimate.as_ref().is_some_and(|estimate| estimate.method == Method::Paired)
}

fn room_for_both(row: &Row, bounds: &str) -> String {
    let floor = floor(row);
    if is_beyond_floor(row) {
        return format!(
            "the interval{bounds} lies beyond the floor of {floor}, but the test over the whole suite is not \
            certain enough to fail the row"
        );
    }
    let tolerance = tolerance(row);
    format!(
        "the interval{bounds} reaches from below the floor of {floor} to above the tolerance of {tolerance}"
    )
}

/// Explains why the printed estimate equals an end of its printed interval.
pub(super) fn at_an_end(row: &Row) -> &'static str {
    let paired = row.estimate.as_ref().filter(|estimate| estimate.method == Method::Paired);
    let Some((estimate, interval)) = paired.and_then(|one| Some((one, one.interval?))) else { return "" };
    let style = Style::for_ratio(estimate.ratio);
    let [change, low, high] = [estimate.ratio, interval.low, interval.high].map(|one| changed_by(one, style));
    match (change == low, change == high) {
        (true, false) => {
            "; the printed change is the most frequent difference between repetitions; nearly all others are larger, so it may be too low"
        }
        (false, true) => {
            "; the printed change is the most frequent difference between repetitions; nearly all others are smaller, so it may be too high"
        }
        _ => "",
    }
}

/// Returns the reason why an interval does not decide.
fn undecided(row: &Row) -> &'static str {
    if is_beyond_floor(row) { "not certain enough" } else { "interval too wide" }
}

/// Returns whether the effect is an improvement by more than the tolerance.
fn is_better_than_tolerance(row: &Row) -> bool {
    let (Some(estimate), Some(metric), Some(policy)) = (&row.estimate, &row.metric, &row.policy) else {
        return false;
    };
    let limit = 1.0 + policy.tolerance;
    match metric.better {
        Better::Lower => estimate.ratio < 1.0 / limit,
        Better::Higher => estimate.ratio > limit,
        Better::Unknown => false,
    }
}

/// Returns whether the whole interval is a slowdown of more than the floor.
fn is_beyond_floor(row: &Row) -> bool {
    let interval = row.estimate.as_ref().and_then(|estimate| estimate.interval);
    let (Some(interval), Some(metric), Some(policy)) = (interval, &row.metric, &row.policy) else {
        return false;
    };
    let limit = 1.0 + policy.floor.relative;
    match metric.better {
        Better::Lower | Better::Unknown => interval.low > limit,
        Better::Higher => interval.high < 1.0 / limit,
    }
}

fn open(row: &Row) -> Words {
    let runs = runs(row);
    let start = match &runs {
        Some(RunsAnswer { sentence, .. }) => sentence.clone(),
        None => UNDECIDED.to_owned(),
    };
    let mut sentence = format!("{start}: {}{}", room_for_both(row, &bounds(row)), at_an_end(row));
    if let Some(assumed) = assumed_spread(std::iter::once(row)) {
        sentence.push_str(&format!("; {assumed}"));
    }
    if let Some(smallest) = row.estimate.as_ref().and_then(|estimate| estimate.minimum_detectable) {
        sentence.push_str(&format!("; this much data can detect a change of {}", percent(smallest)));
    }
    if let Some(more) = more_data(row) {
        sentence.push_str(&format!("; {more}"));
    }
    Words::new(runs.map_or(undecided(row), |runs| runs.short), sentence)
}

fn exact(row: &Row) -> Words {
    let values = row.metric.as_ref().zip(row.typical.base.zip(row.typical.head));
    let Some((metric, (base, head))) = values else {
        // The values may be withheld, so the ratio is compared.
        let same = row.estimate.as_ref().is_some_and(|estimate| estimate.ratio == 1.0);
        let what = if same { "the same on both sides" } else { "it changed" };
        return Words::new("exact", format!("a deterministic value: {what}"));
    };
    let (base_text, head_text) = (quantity(base, &metric.unit), quantity(head, &metric.unit));
    if base == head {
        Words::new("exact", format!("a deterministic value, the same on both sides: {base_text}"))
    } else if row.verdict == Verdict::Pass {
        Words::new(
            "exact",
            format!(
                "a deterministic value, within the floor of {}: {base_text}, now {head_text}",
                floor(row)
            ),
        )
    } else {
        Words::new("exact", format!("a deterministic value: {base_text}, now {head_text}"))
    }
}

fn not_measured(outcome: &Outcome) -> Words {
    match outcome {
        Outcome::Unsupported { reason } => {
            Words::new("unsupported", "it is unsupported here, so nothing was measured").with(reason)
        }
        Outcome::Skipped { reason } => {
            Words::new("skipped", "it was skipped, so nothing was measured").with(reason)
        }
        Outcome::Failed { stage, why } => {
            Words::new(format!("{stage} fails"), format!("{stage} fails")).with(why)
        }
        Outcome::Ok => Words::new("no values", "the benchmark ran, but it produced no value of this metric"),
    }
}

/// Returns whether head's outputs differ from base's while nothing else shows that they are wrong.
pub(super) fn is_of_base(row: &Row) -> bool {
    let of_base = |found: &Verification| {
        found.code != VerifyCode::Fail && found.differs_from_base() && wrong(found).next().is_none()
    };
    row.reason == Reason::WrongOutput && row.head_verification.as_ref().is_some_and(of_base)
}

/// Returns the outputs that don't agree with the reference.
fn wrong(verification: &Verification) -> impl Iterator<Item = &OutputCheck> {
    verification.outputs.iter().filter(|output| {
        let unproved = output.code == VerifyCode::VerifierSkipped && verification.differs_from_base();
        output.code != VerifyCode::Pass && !unproved
    })
}

fn wrong_output(verification: Option<&Verification>) -> (String, String) {
    let Some(verification) = verification else {
        return ("the outputs were not verified".to_owned(), String::new());
    };
    let failed: Vec<&OutputCheck> = wrong(verification).collect();
    let Some(first) = failed.first() else {
        if let Some(first) = verification.against_base.iter().find(|output| output.code != VerifyCode::Pass) {
            let why = match verification.code {
                VerifyCode::Fail => "",
                _ if verification.model_changed => ", and the model or its reference changed",
                _ => ", and there is no reference",
            };
            let sentence = format!("output {} differs from base's{why}", first.index);
            return (sentence, first.why.clone().unwrap_or_default());
        }
        return (
            format!("verification says {}", verification.code),
            verification.why.clone().unwrap_or_default(),
        );
    };
    let mut sentence = format!("output {} is {}", first.index, first.code);
    if let Some(distance) = &first.divergence {
        let metrics = if distance.rmse.is_nan() && distance.max_abs.is_nan() && distance.cosine.is_nan() {
            "no pair of finite values to compare".to_owned()
        } else {
            format!(
                "max abs {}, max rel {}, cosine {}",
                significant(distance.max_abs, 3),
                significant(distance.max_rel, 3),
                significant(distance.cosine, 5)
            )
        };
        let (mismatched, elements) = (distance.mismatched, distance.elements);
        // The verifier's own message usually begins with the count.
        let states_the_count = |why: &String| why.contains(&format!("{mismatched} of {elements} elements"));
        if first.why.as_ref().is_some_and(states_the_count) {
            sentence.push_str(&format!(" ({metrics})"));
        } else {
            sentence.push_str(&format!(
                ", {mismatched} of {elements} elements are outside the tolerance ({metrics})"
            ));
        }
        if distance.non_finite > 0 {
            let non_finite = usize::try_from(distance.non_finite).unwrap_or(usize::MAX);
            sentence.push_str(&format!("; {}", counted(non_finite, "non-finite value")));
        }
    }
    if failed.len() > 1 {
        sentence.push_str(&format!(", and {}", counted(failed.len() - 1, "more output")));
    }
    let why = first.why.clone().or_else(|| verification.why.clone());
    (sentence, why.unwrap_or_default())
}

/// Turns a description into a fragment of a sentence.
fn fragment(sentence: &str) -> String {
    let mut letters = sentence.chars();
    let first = letters.next().map(|letter| letter.to_lowercase().to_string()).unwrap_or_default();
    format!("{first}{}", letters.as_str().trim_end_matches('.'))
}

fn bounds(row: &Row) -> String {
    let known = row.estimate.as_ref().and_then(|estimate| Some((estimate.ratio, estimate.interval?)));
    known.map_or_else(String::new, |(ratio, bounds)| {
        format!(" ({})", interval(bounds.low, bounds.high, ratio))
    })
}

/// Returns whether the verdict establishes the direction of the typical value.
pub(super) fn is_established(row: &Row) -> bool {
    let of_change = !row.reason.is_uneven() && !matches!(row.reason, Reason::Limit(_));
    matches!(row.verdict, Verdict::Regressed | Verdict::Improved) && of_change
}

/// Describes the floor that applied: both parts if there are two.
pub(super) fn floor(row: &Row) -> String {
    let Some(policy) = &row.policy else { return "the policy".to_owned() };
    let relative = percent(policy.floor.relative);
    match &row.metric {
        Some(metric) if policy.floor.absolute > 0.0 => {
            format!("{relative} and {}", quantity(policy.floor.absolute, &metric.unit))
        }
        _ => relative,
    }
}

pub(super) fn tolerance(row: &Row) -> String {
    row.tolerance().map_or_else(|| "the policy".to_owned(), percent)
}
