//! Findings that follow from the numbers themselves.

use benchgate_core::model::{Lint, LintCode, SideName, percents};
use benchgate_stats::describe;
use benchgate_stats::robust::{ScalePrior, fit};
use benchgate_stats::scores::BlockCosts;
use benchgate_stats::stability::Counts;

use super::evidence::Evidence;
use super::series::Readings;

/// Coefficient of variation within a process above which a row is called noisy: the location of ten
/// repetitions is then itself uncertain by more than the default tolerance.
const HIGH_CV: f64 = 0.10;
/// Smallest separation of two modes that is reported, as a log ratio: the default tolerance.
const MODES_APART: f64 = 0.03;
/// Level of the findings about order and drift: they are notes, so one in a hundred calm rows may have one.
const LEVEL: f64 = 0.01;
/// This level as a two-sided normal quantile.
const LEVEL_Z: f64 = 2.576;
/// Smallest total drift over a session that is reported, as a log ratio. Paired blocks cancel it, but people
/// should know.
const DRIFT_TOTAL: f64 = 0.03;

/// Returns findings about one row's series, except for those that the reader of a file has already reported.
pub fn of_row(known: &[Lint], base: &Readings, head: &Readings, evidence: Option<&Evidence>) -> Vec<Lint> {
    let mut lints = Vec::new();
    if !known.iter().any(|lint| lint.code == LintCode::AggregatesOnly) {
        let side = match (base.summaries_only, head.summaries_only) {
            (true, true) => Some(String::new()),
            (true, false) => Some(format!("{}: ", SideName::Base)),
            (false, true) => Some(format!("{}: ", SideName::Head)),
            (false, false) => None,
        };
        lints.extend(
            side.map(|side| Lint::new(LintCode::AggregatesOnly, format!("{side}only summaries were kept"))),
        );
    }
    for (side, readings) in [(SideName::Base, base), (SideName::Head, head)] {
        lints.extend(of_series(readings, side));
    }
    if let Some(Evidence::Paired(blocks)) = evidence {
        let levels: Vec<f64> = blocks.iter().filter_map(level).collect();
        if let Some(slope) = describe::drift(&levels, LEVEL_Z) {
            let total = slope * (levels.len() - 1) as f64;
            if total.abs() > DRIFT_TOTAL {
                let change = format!("{:+.1} %", total.exp_m1() * 100.0).replace('-', "−");
                lints.push(Lint::new(LintCode::Drift, format!("{change} from the first block to the last")));
            }
        }
    }
    lints
}

fn of_series(readings: &Readings, side: SideName) -> Vec<Lint> {
    let mut lints = Vec::new();
    if readings.stats.processes == 1 && readings.stats.samples <= 1 {
        lints.push(Lint::new(LintCode::SingleRepetition, format!("{side}: a process measured only once")));
    }
    if let Some(cv) = readings.within_cv.filter(|cv| *cv > HIGH_CV) {
        let detail = format!("{side}: repetitions vary by {}", percents(cv));
        lints.push(Lint::new(LintCode::HighCv, detail));
    }
    // The repetitions of a single process show modes within it; several processes show modes between them.
    let repetitions: Vec<f64> = readings.samples.iter().map(|v| v.ln()).collect();
    let (values, what) = match readings.clean.len() {
        1 => (&repetitions, "repetitions"),
        _ => (&readings.clean, "processes"),
    };
    if let Some(modes) = describe::bimodal(values, MODES_APART) {
        let detail = format!(
            "{side}: two groups of {what}, {} apart, {} in the upper one",
            percents((modes.high - modes.low).exp_m1()),
            percents(modes.upper)
        );
        lints.push(Lint::new(LintCode::Bimodal, detail));
    }
    lints
}

/// Returns the cost of a block over all of its processes.
fn level(block: &BlockCosts) -> Option<f64> {
    describe::mean(&block.iter().map(|process| process.clean).collect::<Vec<f64>>())
}

/// Returns the finding that head was slow more often, if that is large enough to mention.
pub fn of_stability(counts: &Counts, p: f64, processes: (usize, usize)) -> Option<Lint> {
    if p >= 0.05 || counts.head_slower <= counts.base_slower {
        return None;
    }
    let (base, head) = processes;
    let detail = format!(
        "head was slow in {} of {head} processes, base in {} of {base}",
        counts.slow_head, counts.slow_base
    );
    Some(Lint::new(LintCode::Intermittent, detail))
}

/// Returns how much slower the first process of a pair was than the second, averaged over the two pairs of a
/// complete block. Only blocks with base first in one pair and head first in the other are used, so that a
/// difference between the sides cancels.
fn order_effect(block: &BlockCosts) -> Option<f64> {
    let mut costs: Vec<(u8, bool, f64)> = block.iter().map(|p| (p.slot, p.head, p.clean)).collect();
    costs.sort_by_key(|(slot, ..)| *slot);
    match costs[..] {
        [(0, first, a), (1, _, b), (2, third, c), (3, _, d)] if first != third => {
            Some(((a - b) + (c - d)) / 2.0)
        }
        _ => None,
    }
}

/// Returns findings about the whole session: whether the first process of a pair differs from the second.
/// Each row contributes its robust mean with equal weight.
pub fn of_session<'a>(rows: impl Iterator<Item = &'a Evidence>) -> Option<Lint> {
    let effects: Vec<f64> = rows
        .filter_map(|evidence| match evidence {
            Evidence::Paired(blocks) => {
                let effects: Vec<f64> = blocks.iter().filter_map(order_effect).collect();
                fit(&effects, ScalePrior::NONE).map(|fit| fit.center)
            }
            Evidence::Unpaired { .. } | Evidence::History { .. } => None,
        })
        .collect();
    let effect = fit(&describe::sorted(&effects), ScalePrior::NONE)?.effect();
    let p = 2.0 * effect.p_above(0.0).min(effect.p_below(0.0));
    (effects.len() >= 3 && p < LEVEL).then(|| {
        let detail = format!(
            "over {} rows, the first process of a pair differs from the second by {:+.1} % (p {p:.1e})",
            effects.len(),
            effect.center.exp_m1() * 100.0
        );
        Lint::new(LintCode::SlotOrder, detail)
    })
}
