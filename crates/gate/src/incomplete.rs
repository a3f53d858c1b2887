//! Blocks of a paired session that lost a process: the rest is not the schedule, and the lost process may have been
//! slow.

use std::collections::{BTreeMap, BTreeSet};

use benchgate_core::model::{Lint, LintCode};

use super::series::Readings;

/// The finding about a pair of series whose blocks don't hold as many processes of one side as of the other, or
/// hold one slot twice. Processes without a slot were not scheduled in blocks.
pub fn lint(base: &Readings, head: &Readings) -> Option<Lint> {
    let mut blocks: BTreeMap<u32, (usize, usize)> = BTreeMap::new();
    let mut slots = BTreeSet::new();
    let mut repeated = 0;
    for (readings, is_head) in [(base, false), (head, true)] {
        for slot in readings.slots.iter().flatten() {
            let counts = blocks.entry(slot.block).or_default();
            *(if is_head { &mut counts.1 } else { &mut counts.0 }) += 1;
            repeated += usize::from(!slots.insert(*slot));
        }
    }
    let unequal = blocks.values().filter(|(base, head)| base != head).count();
    (unequal + repeated > 0).then(|| {
        let detail = format!(
            "blocks with more processes of one side: {unequal} of {}; slots taken twice: {repeated}",
            blocks.len()
        );
        Lint::new(LintCode::IncompleteBlocks, detail)
    })
}
