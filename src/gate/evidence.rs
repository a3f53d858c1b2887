//! What two series of one metric are evidence of: paired blocks where they pair up, else independent
//! processes.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::{BlockSlot, Lint, LintCode, Spread};
use crate::stats::robust::NU;
use crate::stats::scores::{BlockCosts, ProcessCosts};
use crate::stats::unpaired::Processes;
use crate::stats::{Effect, unpaired};

use super::Method;
use super::series::Readings;

/// Evidence about one row, as costs: larger is worse, whatever the metric's direction.
#[derive(Debug, Clone)]
pub enum Evidence {
    /// Blocks of pairs; their effect is estimated together with the neighbouring rows'.
    Paired(Arc<[BlockCosts]>),
    /// Independent processes. `assumed` where the spread between them is a default, so that
    /// neighbouring rows may refute it; `declared` where the policy says what it is.
    Known {
        effect: Effect,
        method: Method,
        assumed: bool,
        declared: bool,
        head_processes: usize,
        lints: Vec<Lint>,
    },
    /// Head's session against stored ones; sessions of neighbouring rows steady the spread.
    /// `slow`: sessions after the stored ones that are excluded because they were slow.
    History { stored: Vec<f64>, slow: Vec<f64>, now: f64, assumed_sd: f64, lints: Vec<Lint> },
}

impl Evidence {
    /// What it is based on in addition to what was measured, for the row.
    pub fn take_lints(&mut self) -> Vec<Lint> {
        match self {
            Self::Paired(_) => Vec::new(),
            Self::Known { lints, .. } | Self::History { lints, .. } => std::mem::take(lints),
        }
    }
}

/// What is known of a benchmark's spread before its own processes are looked at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PriorSpread {
    /// Standard deviation between processes, as a fraction.
    pub between: f64,
    pub source: SpreadSource,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpreadSource {
    Calibrated,
    Declared,
    Default,
}

impl SpreadSource {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Calibrated => "calibrated",
            Self::Declared => "declared",
            Self::Default => "default",
        }
    }
}

/// Printed default where nothing measured or declared the spread between processes of a GPU target.
/// A GPU's processes differ by clock and placement; 2 % is the upper end of what pinned ones show.
pub const DEFAULT_GPU_BETWEEN_CV: f64 = 0.02;
/// The same for processors: 5 % is the middle of what unpinned, otherwise idle machines show.
pub const DEFAULT_CPU_BETWEEN_CV: f64 = 0.05;

/// A spread that was measured or declared by people who may have meant nothing by zero.
pub fn usable(value: &f64) -> bool {
    value.is_finite() && *value > 0.0
}

/// Declaration first, then calibration, then the default for the kind of device.
pub fn prior_spread(calibrated: Option<&Spread>, declared: Option<f64>, gpu: bool) -> PriorSpread {
    if let Some(between) = declared.filter(usable) {
        return PriorSpread { between, source: SpreadSource::Declared };
    }
    if let Some(between) = calibrated.and_then(|spread| spread.between_processes).filter(usable) {
        return PriorSpread { between, source: SpreadSource::Calibrated };
    }
    let between = if gpu { DEFAULT_GPU_BETWEEN_CV } else { DEFAULT_CPU_BETWEEN_CV };
    PriorSpread { between, source: SpreadSource::Default }
}

/// Blocks that hold at least one process of each side, in order. `None` where a process has no slot.
pub fn blocks(base: &Readings, head: &Readings) -> Option<Vec<BlockCosts>> {
    let mut blocks: BTreeMap<u32, BlockCosts> = BTreeMap::new();
    for (readings, head) in [(base, false), (head, true)] {
        for (at, slot) in readings.slots.iter().enumerate() {
            let BlockSlot { block, slot } = (*slot)?;
            let costs = readings.costs.get(at).cloned().unwrap_or_default();
            let (clean, middle, mean) = (readings.clean[at], readings.middle[at], readings.mean[at]);
            blocks.entry(block).or_default().push(ProcessCosts { slot, head, clean, middle, mean, costs });
        }
    }
    let has = |block: &BlockCosts, head: bool| block.iter().any(|process| process.head == head);
    let mut blocks: Vec<BlockCosts> =
        blocks.into_values().filter(|block| has(block, false) && has(block, true)).collect();
    blocks.iter_mut().for_each(|block| block.sort_by_key(|process| (process.head, process.slot)));
    Some(blocks)
}

/// The evidence of head against base, or why there is none.
pub fn gather(
    base: &Readings,
    head: &Readings,
    same_session: bool,
    prior: PriorSpread,
) -> Result<Evidence, String> {
    if same_session && let Some(blocks) = blocks(base, head) {
        return match blocks.len() {
            found @ 0..=1 => Err(format!("{found} paired blocks; two are the least that can be judged")),
            _ => Ok(Evidence::Paired(blocks.into())),
        };
    }
    let mut lints = Vec::new();
    // A file with samples and one with summaries only meet at the median.
    let summaries = base.summaries_only || head.summaries_only;
    let prior = PriorSpread { between: floor_of_spread(base, head, prior), ..prior };
    let single = base.clean.len() == 1 || head.clean.len() == 1;
    if prior.source != SpreadSource::Calibrated {
        let mut detail =
            format!("{} spread between processes of {:.1} %", prior.source.as_str(), prior.between * 100.0);
        if !single {
            let (base, head) = (base.clean.len(), head.clean.len());
            detail.push_str(&format!(", weighed against {base} and {head} measured processes"));
        }
        lints.push(Lint::new(LintCode::AssumedSpread, detail));
    }
    let side = |readings: &Readings| {
        let within = readings.within_cv.unwrap_or(0.0);
        Processes {
            log_locations: if summaries { readings.middle.clone() } else { readings.clean.clone() },
            within: within * within / readings.repetitions.max(1.0),
            between_sd: prior.between,
        }
    };
    let mut effect = unpaired::effect(&side(base), &side(head)).ok_or("a side has no process")?;
    let method = if summaries { Method::Summaries } else { Method::Unpaired };
    let assumed = single && prior.source == SpreadSource::Default;
    if assumed {
        // One process may be in any tail, and the tails were not measured here.
        effect.df = effect.df.min(NU);
    }
    let declared = prior.source == SpreadSource::Declared;
    Ok(Evidence::Known { effect, method, assumed, declared, head_processes: head.clean.len(), lints })
}

/// A default is a guess, and repetitions can refute it: processes differ at least as much as the
/// repetitions inside one do.
fn floor_of_spread(base: &Readings, head: &Readings, prior: PriorSpread) -> f64 {
    let within = [base.within_cv, head.within_cv].into_iter().flatten().fold(0.0, f64::max);
    match prior.source {
        SpreadSource::Default => prior.between.max(within),
        SpreadSource::Calibrated | SpreadSource::Declared => prior.between,
    }
}
