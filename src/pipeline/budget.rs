//! Selects the undecided rows on which a time budget is spent.

use std::time::Duration;

/// An undecided row before the next look.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Want {
    pub(super) block: Duration,
    /// Number of blocks until the next look.
    pub(super) to_look: u32,
    /// Estimated number of blocks until the row is decided; `None` if unknown.
    pub(super) to_verdict: Option<f64>,
}

impl Want {
    fn seconds_to_verdict(&self) -> f64 {
        let blocks = self.to_verdict.unwrap_or(f64::INFINITY).max(f64::from(self.to_look));
        blocks * self.block.as_secs_f64()
    }

    fn cost_of_look(&self) -> Duration {
        self.block.saturating_mul(self.to_look)
    }
}

/// Selects the rows on which to spend the time that is `left`. Rows that need the least time come first, and
/// each is measured up to its next look. A row that can't reach its next look is not continued, because the
/// additional blocks could not decide it.
pub(super) fn affordable(wants: &[Want], left: Option<Duration>) -> Vec<usize> {
    let mut order: Vec<usize> = (0..wants.len()).collect();
    let Some(mut left) = left else { return order };
    order.sort_by(|&a, &b| wants[a].seconds_to_verdict().total_cmp(&wants[b].seconds_to_verdict()));
    order.retain(|&row| match left.checked_sub(wants[row].cost_of_look()) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    });
    order.sort_unstable();
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn want(block_ms: u64, to_verdict: f64) -> Want {
        Want { block: Duration::from_millis(block_ms), to_look: 2, to_verdict: Some(to_verdict) }
    }

    #[test]
    fn without_a_budget_every_open_row_is_measured() {
        assert_eq!(affordable(&[want(100, 2.0), want(9000, 1e9)], None), [0, 1]);
    }

    #[test]
    fn a_budget_is_spent_on_the_rows_that_are_decided_soonest() {
        let rows = [want(400, 40.0), want(400, 3.0), want(400, 4.0)];
        assert_eq!(affordable(&rows, Some(Duration::from_millis(1600))), [1, 2]);
        // A row with many short blocks can need less time than one with few long blocks.
        let rows = [want(1000, 4.0), want(10, 100.0)];
        assert_eq!(affordable(&rows, Some(Duration::from_millis(500))), [1]);
    }

    #[test]
    fn what_one_row_can_t_use_goes_to_a_cheaper_one() {
        let rows = [want(1000, 2.0), want(100, 50.0)];
        assert_eq!(affordable(&rows, Some(Duration::from_millis(300))), [1]);
        assert!(affordable(&rows, Some(Duration::ZERO)).is_empty());
    }

    #[test]
    fn a_row_of_which_nothing_is_known_comes_last() {
        let rows = [Want { to_verdict: None, ..want(100, 0.0) }, want(100, 1000.0)];
        assert_eq!(affordable(&rows, Some(Duration::from_millis(200))), [1]);
    }
}
