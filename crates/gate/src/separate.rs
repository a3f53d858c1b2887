//! Sides that were measured separately: builds the questions for the model in `stats::unpaired`, and applies
//! its results to the rows.

use benchgate_core::model::{Lint, LintCode, Metric, Verdict, counted};
use benchgate_stats::classical::{UMethod, mann_whitney};
use benchgate_stats::unpaired::{Estimated, UnpairedRow, effects};
use benchgate_stats::{Inference, describe};

use super::decide::{LEAST_HEAD_PROCESSES, Question, log_tolerance};
use super::draft::{Draft, Open};
use super::evidence::{Evidence, SpreadSource, UnitCounts};
use super::{AssumedSpread, Interval, Method, Reason, Row, TooLittle};

/// Creates the questions for all rows of one metric whose sides were measured separately.
pub fn ask(drafts: &mut [Draft], indices: &[usize], questions: &mut [Option<Question>]) {
    let of = |index: usize| match &drafts[index].open.as_deref()?.evidence {
        Evidence::Unpaired { row, .. } => Some((index, row.clone())),
        Evidence::Paired(_) | Evidence::History { .. } => None,
    };
    let (places, rows): (Vec<usize>, Vec<UnpairedRow>) =
        indices.iter().filter_map(|&index| of(index)).unzip();
    for (index, estimated) in places.into_iter().zip(effects(&rows)) {
        let (Draft { row, open: Some(open) }, Some(estimated)) = (&mut drafts[index], estimated) else {
            continue;
        };
        let Open {
            evidence: Evidence::Unpaired { row: sides, method, source, counts, uneven, p_runs, .. },
            rule,
            floor,
            ..
        } = &**open
        else {
            continue;
        };
        if let Some(estimate) = &mut row.estimate {
            estimate.method = *method;
            let sessions: u32 = counts[0].sessions.min(counts[1].sessions).try_into().unwrap_or(u32::MAX);
            (estimate.sessions, estimate.p_runs) = (Some(sessions), *p_runs);
        }
        // With this many sessions, the assumption about their spread has next to no weight.
        let is_measured = *source == SpreadSource::Default
            && counts.iter().all(|side| side.sessions >= LEAST_HEAD_PROCESSES);
        if *source != SpreadSource::Calibrated && rule.fatal && !is_measured {
            row.lints.push(assumed(*source, counts, &estimated));
            row.assumed = Some(AssumedSpread {
                sd: estimated.between,
                disturbance: estimated.disturbance,
                source: *source,
            });
        }
        let effect = Inference::Sided { worse: estimated.worse, better: estimated.better };
        let question = Question::unpaired(effect, rule, *floor).in_question(uneven.clone());
        let question = match source {
            SpreadSource::Default => question.in_order(p_order(sides, estimated.worse.center)),
            SpreadSource::Calibrated | SpreadSource::Declared => question,
        };
        let of_compiler = row.metric.as_ref().is_some_and(Metric::is_compile_time);
        let head_processes = counts[1].processes;
        questions[index] = Some(match source {
            // A declared spread implies that no process is occasionally slow, so a few processes are enough.
            SpreadSource::Declared => question.unless(contradicted(sides, log_tolerance(rule, *floor))),
            _ if of_compiler && head_processes > 1 => question.of_compiler(),
            _ => question.shown_by(head_processes),
        });
    }
}

/// Largest effect, on the log scale, for which the layouts of processes in memory are taken as the cause (30 %). It is an
/// assumption.
const OF_LAYOUT: f64 = 0.262;

/// Returns the p of the order of the sessions if their layouts may explain the effect, otherwise 0. A few processes don't
/// show that there are two layouts, and a robust location jumps from one to the other. A session of several processes
/// has several layouts.
fn p_order(sides: &UnpairedRow, effect: f64) -> f64 {
    let [base, head] = [&sides.base.locations, &sides.head.locations];
    let is_of_one = [&sides.base, &sides.head].iter().all(|side| side.processes == 1);
    if effect > OF_LAYOUT || !is_of_one || base.len().min(head.len()) < 2 {
        return 0.0;
    }
    mann_whitney(head, base, UMethod::Auto).map_or(0.0, |test| test.greater)
}

/// Number of standard deviations from which one of head's processes is not as fast as its others.
pub const FAR: f64 = 6.0;

/// The reason why a declared spread can't let head pass: one of its processes is slower than the spread allows.
fn contradicted(row: &UnpairedRow, tolerance: f64) -> Option<TooLittle> {
    let scale = row.known?.hypot(row.head.within);
    let typical = describe::median(&row.head.locations)?;
    let slowest = row.head.locations.iter().copied().fold(f64::NEG_INFINITY, f64::max) - typical;
    (slowest > tolerance.max(FAR * scale)).then(|| {
        let why = format!(
            "the slowest process of head takes {:.2} × the time of a typical one, too much for the declared \
            spread of {:.1} %; declare a larger spread, or measure at least {LEAST_HEAD_PROCESSES} processes",
            slowest.exp(),
            100.0 * row.known.unwrap_or_default()
        );
        TooLittle::new("a process is slow", why)
    })
}

/// Returns a finding about the assumed spread behind an effect.
fn assumed(source: SpreadSource, counts: &[UnitCounts; 2], estimated: &Estimated) -> Lint {
    let between = 100.0 * estimated.between;
    let [base, head] = counts;
    let detail = match source {
        SpreadSource::Default if [base.sessions, head.sessions] == [1, 1] => {
            format!(
                "one session per side; the spread between sessions is assumed to be {between:.1} %, \
                estimated from how steady the two sessions are"
            )
        }
        SpreadSource::Default => format!(
            "{} of base and {} of head, combined with an assumed spread of {between:.1} % between sessions",
            counted(base.sessions, "session"),
            head.sessions
        ),
        SpreadSource::Calibrated | SpreadSource::Declared => {
            let (base, head) = (base.processes, head.processes);
            let weighed = if base.min(head) > 1 {
                format!(", combined with that of {base} and {head} measured processes")
            } else {
                String::new()
            };
            format!("{} spread between processes of {between:.1} %{weighed}", source.as_str())
        }
    };
    Lint::new(LintCode::AssumedSpread, detail)
}

/// Ratio above which no interval is stated, because the sessions were disturbed too much.
const BEYOND_WORDS: f64 = 11.0;

/// Removes an interval that is too wide to be useful, and states the reason.
pub fn withhold(row: &mut Row) {
    let Some(estimate) = &mut row.estimate else { return };
    let separate = matches!(estimate.method, Method::Unpaired | Method::Summaries);
    let says_nothing = |interval: &Interval| interval.high.max(1.0 / interval.low) > BEYOND_WORDS;
    if separate
        && row.verdict == Verdict::Inconclusive
        && estimate.interval.as_ref().is_some_and(says_nothing)
    {
        (estimate.interval, estimate.minimum_detectable) = (None, None);
        if row.reason == Reason::Open {
            row.reason =
                Reason::too_little("too few sessions", "times that vary this much need more sessions");
        }
    }
}
