//! From two series of one metric to an effect: paired where blocks pair up, else over processes.

use std::collections::BTreeMap;

use crate::model::{Better, BlockSlot, Lint, LintCode, Spread};
use crate::stats::unpaired::Processes;
use crate::stats::{Effect, paired, unpaired};

use super::Method;
use super::series::Readings;

/// An effect on the log scale of head/base, and what it rests on.
#[derive(Debug, Clone)]
pub struct Answer {
    pub effect: Effect,
    pub method: Method,
    pub blocks: u32,
    pub lints: Vec<Lint>,
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

/// Printed default where nothing measured or declared the spread between processes of a GPU target.
/// A GPU's processes differ by clock and placement; 2 % is the upper end of what pinned ones show.
pub const DEFAULT_GPU_BETWEEN_CV: f64 = 0.02;
/// The same for processors: 5 % is the middle of what unpinned, otherwise idle machines show.
pub const DEFAULT_CPU_BETWEEN_CV: f64 = 0.05;

/// Calibration first, then declaration, then the default for the kind of device.
pub fn prior_spread(calibrated: Option<&Spread>, declared: Option<f64>, gpu: bool) -> PriorSpread {
    let usable = |value: &f64| value.is_finite() && *value > 0.0;
    if let Some(between) = declared.filter(usable) {
        return PriorSpread { between, source: SpreadSource::Declared };
    }
    if let Some(between) = calibrated.and_then(|spread| spread.between_processes).filter(usable) {
        return PriorSpread { between, source: SpreadSource::Calibrated };
    }
    let between = if gpu { DEFAULT_GPU_BETWEEN_CV } else { DEFAULT_CPU_BETWEEN_CV };
    PriorSpread { between, source: SpreadSource::Default }
}

/// The processes of one block, by side.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Block {
    pub base: Vec<(u8, f64)>,
    pub head: Vec<(u8, f64)>,
}

impl Block {
    /// Log ratio of the two sides' mean log locations. Every process of the block counts.
    fn log_ratio(&self) -> Option<f64> {
        let side = |values: &[(u8, f64)]| {
            let logs: Vec<f64> = values.iter().map(|(_, v)| v.ln()).collect();
            crate::stats::describe::mean(&logs)
        };
        Some(side(&self.head)? - side(&self.base)?)
    }
}

/// Blocks that hold at least one process of each side, in order. `None` where a process has no slot.
pub fn blocks(base: &Readings, head: &Readings) -> Option<Vec<Block>> {
    let mut blocks: BTreeMap<u32, Block> = BTreeMap::new();
    let mut put = |readings: &Readings, is_head: bool| -> Option<()> {
        for (slot, location) in readings.slots.iter().zip(&readings.locations) {
            let BlockSlot { block, slot } = (*slot)?;
            let block = blocks.entry(block).or_default();
            let side = if is_head { &mut block.head } else { &mut block.base };
            side.push((slot, *location));
        }
        Some(())
    };
    put(base, false)?;
    put(head, true)?;
    Some(blocks.into_values().filter(|b| !b.base.is_empty() && !b.head.is_empty()).collect())
}

/// The effect of head against base, or why there is none.
pub fn answer(
    base: &Readings,
    head: &Readings,
    same_session: bool,
    prior: PriorSpread,
) -> Result<Answer, String> {
    if same_session && let Some(blocks) = blocks(base, head) {
        let ratios: Vec<f64> = blocks.iter().filter_map(Block::log_ratio).collect();
        return match paired::block_effect(&ratios) {
            Some(effect) => {
                Ok(Answer { effect, method: Method::Paired, blocks: ratios.len() as u32, lints: Vec::new() })
            }
            None => Err(format!("{} paired block; two are the least that can be judged", ratios.len())),
        };
    }
    let mut lints = Vec::new();
    let base_side = processes(base, prior);
    let head_side = processes(head, prior);
    let assumed = base.locations.len() == 1 || head.locations.len() == 1;
    if assumed && prior.source != SpreadSource::Calibrated {
        let source = if prior.source == SpreadSource::Declared { "declared" } else { "default" };
        let detail = format!("{source} spread between processes of {:.1} %", prior.between * 100.0);
        lints.push(Lint::new(LintCode::AssumedSpread, detail));
    }
    let effect = unpaired::effect(&base_side, &head_side).ok_or("a side has no process")?;
    let summaries = base.summaries_only || head.summaries_only;
    let method = if summaries { Method::Summaries } else { Method::Unpaired };
    Ok(Answer { effect, method, blocks: 0, lints })
}

fn processes(readings: &Readings, prior: PriorSpread) -> Processes {
    let within = readings.within_cv.unwrap_or(0.0);
    Processes {
        log_locations: readings.locations.iter().map(|v| v.ln()).collect(),
        within: within * within / readings.repetitions.max(1.0),
        between_sd: prior.between,
    }
}

/// +1 where more is worse, −1 where more is better.
pub fn direction(better: Better) -> f64 {
    match better {
        Better::Lower => 1.0,
        Better::Higher => -1.0,
    }
}
