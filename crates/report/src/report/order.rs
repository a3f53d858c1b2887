//! The order of rows in a table.

use super::{RowView, View};

/// The order of the rows of a section. Wrong and failed rows stay above changed ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Order {
    /// Changed rows by size, the rest in the order of the suite.
    #[default]
    Importance,
    /// The benchmark's name.
    Name,
    /// The effect, the largest slowdown first.
    Change,
}

impl View<'_> {
    /// This view with its rows in this order.
    pub fn sorted(mut self, order: Order) -> Self {
        let sections = [
            &mut self.diverged,
            &mut self.failed,
            &mut self.changed,
            &mut self.open,
            &mut self.unchanged,
            &mut self.reported,
        ];
        match order {
            Order::Importance => {}
            Order::Name => sections.into_iter().for_each(|rows| rows.sort_by_key(|row| row.name)),
            Order::Change => {
                let worse = |row: &RowView<'_>| row.worsening().unwrap_or(f64::NEG_INFINITY);
                sections.into_iter().for_each(|rows| rows.sort_by(|a, b| worse(b).total_cmp(&worse(a))));
            }
        }
        self
    }
}

impl RowView<'_> {
    /// Logarithm of the effect, above zero if head is worse.
    fn worsening(&self) -> Option<f64> {
        let change = self.row.estimate.as_ref()?.ratio.ln();
        let better = self.row.metric.as_ref()?.better;
        Some(if better == benchgate_core::model::Better::Lower { change } else { -change })
    }
}
