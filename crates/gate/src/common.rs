//! The common shift of a session: the day, the chip or the driver shifts all rows of a metric together. The
//! common shift is removed from each row and judged as a separate row, because a change that affects all rows
//! would otherwise be removed with it.

use benchgate_stats::describe;

/// The name of the row for what all benchmarks have in common. No benchmark can have it, because names of benchmarks are not
/// in parentheses.
pub const ALL_BENCHMARKS: &str = "(all benchmarks)";

/// Minimum number of rows for the correction; with fewer, the median of the others is itself too noisy to be
/// worth subtracting.
const LEAST_ROWS: usize = 5;
/// Minimum number of stored sessions; with fewer, it is unknown whether removing the shift helps.
const LEAST_SESSIONS: usize = 3;

/// Factor by which the correction may widen a row's own spread. A change that made most rows faster is no shift of the row that
/// it left alone, which would look slower by as much.
const MOST_WIDENED: f64 = 2.0;
/// Minimum number of stored sessions that show this; the spread of fewer is too uncertain.
const SESSIONS_TO_BE_APART: usize = 5;

/// One row's costs (log scale) in the stored sessions, by number, and in head.
pub struct RowCosts<'a> {
    pub stored: &'a [(usize, f64)],
    /// Costs in sessions that are excluded because they were slow, numbered like the stored ones or after
    /// them.
    pub slow: &'a [(usize, f64)],
    pub now: Option<f64>,
}

/// Deviations of all rows from their usual cost, by session.
#[derive(Debug, Clone, PartialEq)]
pub struct Common {
    /// Usual cost of each row: the median of its stored sessions.
    usual: Vec<f64>,
    /// Sorted deviations of the rows in each stored session, then in each slow session that is not among the
    /// stored ones.
    stored: Vec<Vec<f64>>,
    /// Number of stored sessions.
    sessions: usize,
    now: Vec<f64>,
    /// Rows whose stored sessions the correction makes clearly less alike, so that it is not applied to them.
    apart: Vec<bool>,
}

pub struct CommonShifts {
    pub stored: Vec<f64>,
    pub slow: Vec<f64>,
    pub now: f64,
}

impl Common {
    /// Returns `None` if removing the shift from the stored sessions doesn't make them more alike. Head does
    /// not affect this choice, so the choice favors no verdict.
    pub fn of_rows(rows: &[RowCosts<'_>], sessions: usize, slow: usize) -> Option<Self> {
        let whole = |row: &&RowCosts<'_>| row.now.is_some() && row.stored.len() >= LEAST_SESSIONS;
        if rows.iter().filter(whole).count() < LEAST_ROWS {
            return None;
        }
        let costs = |row: &RowCosts<'_>| row.stored.iter().map(|(_, cost)| *cost).collect::<Vec<f64>>();
        let usual: Vec<f64> =
            rows.iter().map(|row| describe::median(&costs(row)).unwrap_or_default()).collect();
        let mut stored = vec![Vec::new(); sessions + slow];
        let mut now = Vec::new();
        for (row, usual) in rows.iter().zip(&usual) {
            if row.stored.is_empty() {
                continue;
            }
            now.extend(row.now.map(|cost| cost - usual));
            let only_slow = row.slow.iter().filter(|(session, _)| *session >= sessions);
            for (session, cost) in row.stored.iter().chain(only_slow) {
                stored[*session].push(cost - usual);
            }
        }
        // A few slow rows do not make a common shift.
        stored[sessions..].iter_mut().filter(|rows| rows.len() < LEAST_ROWS).for_each(Vec::clear);
        stored.iter_mut().chain([&mut now]).for_each(|deviations| deviations.sort_by(f64::total_cmp));
        let common = Self { usual, stored, sessions, now, apart: vec![false; rows.len()] };
        let spreads = |of: &dyn Fn(usize) -> Vec<f64>| -> Vec<Option<f64>> {
            (0..rows.len()).map(|row| describe::stddev(&of(row))).collect()
        };
        let median = |spreads: &[Option<f64>]| {
            describe::median(&spreads.iter().flatten().copied().collect::<Vec<f64>>())
        };
        let before = spreads(&|row| costs(&rows[row]));
        let after = spreads(&|row| {
            common.without(row, rows[row].stored, None).0.into_iter().map(|(_, cost)| cost).collect()
        });
        let remaining = median(&after)?;
        let is_apart = |row: usize| {
            let sides =
                before[row].zip(after[row]).filter(|_| rows[row].stored.len() >= SESSIONS_TO_BE_APART);
            sides.is_some_and(|(before, after)| after > MOST_WIDENED * before.max(remaining))
        };
        let apart = (0..rows.len()).map(is_apart).collect();
        (remaining < median(&before)?).then_some(Self { apart, ..common })
    }

    /// Returns the costs of a row, minus the common shift of the other rows in each session that has one.
    pub fn without(
        &self,
        row: usize,
        stored: &[(usize, f64)],
        now: Option<f64>,
    ) -> (Vec<(usize, f64)>, Option<f64>) {
        if self.apart[row] {
            return (stored.to_vec(), now);
        }
        let usual = self.usual[row];
        let less = |deviations: &[f64], cost: f64| cost - median_of_others(deviations, cost - usual);
        let of = |session: usize| self.stored.get(session).map_or(&[][..], Vec::as_slice);
        let stored = stored.iter().map(|&(session, cost)| (session, less(of(session), cost)));
        (stored.collect(), now.map(|cost| less(&self.now, cost)))
    }

    /// Returns the common shift in the stored sessions that have rows, in those that are slow as a whole, and
    /// in head.
    pub fn shifts(&self) -> CommonShifts {
        let middle = |deviations: &Vec<f64>| describe::quantile_sorted(deviations, 0.5);
        let (stored, slow) = self.stored.split_at(self.sessions);
        CommonShifts {
            stored: stored.iter().filter_map(middle).collect(),
            slow: slow.iter().filter_map(middle).collect(),
            now: middle(&self.now).unwrap_or_default(),
        }
    }
}

/// Returns the median of sorted values with one of them left out; zero if no other is left.
fn median_of_others(sorted: &[f64], own: f64) -> f64 {
    let others = sorted.len().saturating_sub(1);
    if others == 0 {
        return 0.0;
    }
    let rank = sorted.partition_point(|value| value.total_cmp(&own).is_lt());
    let at = |index: usize| sorted[if index < rank { index } else { index + 1 }.min(others)];
    if others % 2 == 1 { at(others / 2) } else { f64::midpoint(at(others / 2 - 1), at(others / 2)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_left_out_of_what_it_is_compared_with() {
        let sorted = [1.0, 2.0, 3.0, 10.0];
        assert_eq!(median_of_others(&sorted, 10.0), 2.0);
        assert_eq!(median_of_others(&sorted, 1.0), 3.0);
        assert_eq!(median_of_others(&[1.0, 2.0, 4.0], 2.0), 2.5);
        assert_eq!(median_of_others(&[7.0], 7.0), 0.0);
    }

    /// Returns six rows in four sessions, each of which shifts all rows.
    fn days(shifts: [f64; 4]) -> Vec<Vec<(usize, f64)>> {
        let row = |row: usize| {
            let own = |day: usize| 0.001 * ((row * 7 + day * 3) % 5) as f64;
            shifts.iter().enumerate().map(|(day, shift)| (day, row as f64 + shift + own(day))).collect()
        };
        (0..6).map(row).collect()
    }

    #[test]
    fn what_a_day_does_to_all_rows_is_taken_out_of_each() {
        let stored = days([0.0, 0.05, -0.03, 0.08]);
        let rows: Vec<RowCosts<'_>> = stored
            .iter()
            .enumerate()
            .map(|(at, stored)| RowCosts {
                stored,
                slow: &[],
                now: Some(at as f64 + 0.2 + if at == 2 { 0.1 } else { 0.0 }),
            })
            .collect();
        let common = Common::of_rows(&rows, 4, 0).unwrap();
        let (costs, now) = common.without(2, rows[2].stored, rows[2].now);
        let spread = describe::stddev(&costs.iter().map(|(_, cost)| *cost).collect::<Vec<_>>()).unwrap();
        assert!(spread < 0.005, "{spread}");
        let usual = costs.iter().map(|(_, cost)| cost).sum::<f64>() / 4.0;
        assert!((now.unwrap() - usual - 0.1).abs() < 0.01, "only its own change is left");
        let shifts = common.shifts();
        assert_eq!(shifts.stored.len(), 4);
        assert!(shifts.now > 0.15, "what all rows did is not lost: {}", shifts.now);
    }

    #[test]
    fn a_row_that_a_change_of_most_rows_left_alone_stays_as_it_is() {
        let rows = 0..6;
        let faster = |row: usize| if row == 0 { 0.0 } else { -0.2 };
        let stored: Vec<Vec<(usize, f64)>> = rows
            .map(|row| {
                let own = |day: usize| 0.002 * ((row * 7 + day * 3) % 5) as f64;
                (0..8).map(|day| (day, own(day) + if day == 7 { faster(row) } else { 0.0 })).collect()
            })
            .collect();
        let costs = |(row, stored): (usize, &'_ Vec<(usize, f64)>)| (stored.clone(), faster(row));
        let owned: Vec<_> = stored.iter().enumerate().map(costs).collect();
        let rows: Vec<RowCosts<'_>> =
            owned.iter().map(|(stored, now)| RowCosts { stored, slow: &[], now: Some(*now) }).collect();
        let common = Common::of_rows(&rows, 8, 0).unwrap();
        assert_eq!(common.without(0, rows[0].stored, rows[0].now), (rows[0].stored.to_vec(), rows[0].now));
        let (_, now) = common.without(1, rows[1].stored, rows[1].now);
        assert!(now.unwrap().abs() < 0.01, "the others share their shift");
    }

    #[test]
    fn where_days_do_nothing_nothing_is_taken_out() {
        let stored: Vec<Vec<(usize, f64)>> = (0..6)
            .map(|row| (0..4).map(|day| (day, 0.02 * (((row * 13 + day * 29) % 17) as f64 - 8.0))).collect())
            .collect();
        let rows: Vec<RowCosts<'_>> =
            stored.iter().map(|stored| RowCosts { stored, slow: &[], now: Some(0.0) }).collect();
        assert_eq!(Common::of_rows(&rows, 4, 0), None);
    }
}
