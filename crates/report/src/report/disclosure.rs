//! Removes absolute values from reports if they are private; only ratios remain.

use benchgate_core::model::Disclose;
use benchgate_gate::{Comparison, Reason, SideStats, Typical};

/// Removes values from a comparison that must not be disclosed. Verdicts, changes, intervals and numbers of
/// samples stay.
pub fn withhold(comparison: &mut Comparison, disclose: Disclose) {
    if disclose == Disclose::All {
        return;
    }
    for row in &mut comparison.rows {
        for side in [&mut row.base, &mut row.head].into_iter().flatten() {
            *side = relative(side);
        }
        row.typical = Typical::WITHHELD;
        if let Some(alignment) = &mut row.alignment {
            alignment.reference = None;
        }
        if let Some(policy) = &mut row.policy {
            policy.floor.absolute = 0.0;
        }
        // Details contain measured values.
        for lint in &mut row.lints {
            lint.detail.clear();
        }
        match &mut row.reason {
            Reason::Unusable(lint) => lint.detail.clear(),
            Reason::Limit(reading) => reading.withhold(),
            _ => {}
        }
    }
    comparison.notes.push("Absolute values are withheld (`disclose`); only ratios are shown.".to_owned());
}

fn relative(side: &SideStats) -> SideStats {
    // Every field is listed, so that the compiler requires a decision about each new field.
    let &SideStats { processes, samples, cv, location: _, mean: _, min: _, max: _, stddev: _ } = side;
    let hidden = f64::NAN;
    SideStats {
        processes,
        samples,
        cv,
        location: hidden,
        mean: hidden,
        min: hidden,
        max: hidden,
        stddev: None,
    }
}
