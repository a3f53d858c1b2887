//! The values that a report shows for both sides. These values are computed only here, so that every report
//! shows the same numbers and the percentage always agrees with the numbers next to it.

use benchgate_core::model::Metric;
use benchgate_stats::density::{bandwidth, density};
use benchgate_stats::describe;

use super::draft::ComparedSession;
use super::{Method, Row, SideStats, Typical};

/// The sessions in which the sides of a row were measured, as far as the values to show depend on it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ShownSides {
    /// One session, or one program's run, that measured both sides.
    Together,
    /// Different sessions. Each side shows what its session measured, so that a session shows the same value
    /// whatever it is compared with. `compared` is head's value as a history compares it, without the shift
    /// that all benchmarks share.
    Apart { compared: Option<f64> },
}

impl ShownSides {
    pub(super) fn of_row(row: &Row, session: &ComparedSession<'_>) -> Self {
        if session.together {
            return Self::Together;
        }
        let history = session.history.as_ref().zip(row.metric.as_ref());
        Self::Apart {
            compared: history.and_then(|(sessions, metric)| sessions.compared(&row.benchmark, metric)),
        }
    }
}

impl Row {
    /// Returns the values to show for both sides. The ratio of the values is the effect, except for different
    /// sessions if the effect is not only their ratio.
    ///
    /// Effects are estimated from pairs of processes, so the locations of the two sides don't have exactly
    /// the estimated ratio. The level of both sides together (the geometric mean of their locations) is
    /// measured well, so the two values are placed around it with the ratio of the effect. An outlier may
    /// change an effect without changing a median, so both values are shifted together until each is within
    /// the range of its side.
    pub fn values_to_show(&self, sides: ShownSides) -> Typical {
        let ratio = self.estimate.as_ref().map(|estimate| (&estimate.method, estimate.ratio));
        let value = match ratio {
            // Welch's test compares the means.
            Some((Method::Welch, _)) => |side: &SideStats| side.mean,
            _ => |side: &SideStats| side.location,
        };
        let (base, head) = (self.base.as_ref().map(value), self.head.as_ref().map(value));
        let measured = Typical { base, head };
        let (Some(base), Some(head), Some((method, ratio))) = (base, head, ratio) else { return measured };
        let range = |side: &Option<SideStats>| {
            side.as_ref().map_or((0.0, f64::INFINITY), |side| (side.min, side.max))
        };
        let measured_range = [range(&self.base), range(&self.head)];
        let usable = [base, head, ratio].into_iter().all(|value| value.is_finite() && value > 0.0);
        if !usable {
            return measured;
        }
        // If the effect is the ratio of the locations, they are shown as they were measured.
        const ROUNDING: f64 = 1e-12;
        // A report must not show values that rise next to an effect that falls.
        let is_opposite = (head - base) * (ratio - 1.0) < 0.0;
        match (method, sides) {
            (Method::Exact, _) => measured,
            _ if (head / base / ratio - 1.0).abs() < ROUNDING => measured,
            // The stored side has many sessions, and only head is a new measurement. Their level does not
            // depend on it, because the effect is relative to the level.
            (Method::History, sides) => {
                let compared = if let ShownSides::Apart { compared } = sides { compared } else { None };
                Typical { base: Some(compared.unwrap_or(head) / ratio), head: Some(head) }
            }
            (_, ShownSides::Apart { .. }) if !is_opposite => measured,
            _ => {
                let around = base.sqrt() * head.sqrt() / ratio.sqrt();
                let [base, head] = measured_range;
                let both = (base.0.max(head.0 / ratio), base.1.min(head.1 / ratio));
                // If no two values within the sides' ranges have this ratio, base's range is used.
                let (low, high) = if both.0 <= both.1 { both } else { base };
                let base = around.max(low).min(high);
                Typical { base: Some(base), head: Some(base * ratio) }
            }
        }
    }
}

/// A typical time and the spread of the processes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Latency {
    pub typical: f64,
    /// Times of the fastest and the slowest process.
    pub least: f64,
    pub most: f64,
    pub processes: usize,
}

impl Latency {
    /// Computes the latency from the repetitions of each process; `None` if nothing usable was measured. The
    /// typical value is the location with which a comparison would describe this side.
    pub fn of_processes<'a>(processes: impl Iterator<Item = &'a [f64]>) -> Option<Self> {
        let better = Metric::LATENCY.better;
        let mut locations: Vec<f64> = processes
            .filter_map(|samples| super::series::location(samples, better))
            .filter(|value| value.is_finite() && *value > 0.0)
            .collect();
        locations.sort_by(f64::total_cmp);
        Some(Self {
            typical: describe::median(&locations)?,
            least: *locations.first()?,
            most: *locations.last()?,
            processes: locations.len(),
        })
    }

    /// Returns these processes with another typical value, which belongs to an effect.
    pub fn around(self, typical: f64) -> Self {
        Self { typical, least: self.least.min(typical), most: self.most.max(typical), ..self }
    }

    /// Returns half of the range between the fastest and the slowest process, as a fraction of the typical
    /// value; `None` for a single process.
    pub fn half_range(self) -> Option<f64> {
        (self.processes > 1).then(|| (self.most - self.least) / 2.0 / self.typical)
    }
}

/// Number of points of a curve: a change of 1 % is visible if the values span a factor of two.
const POINTS: usize = 160;
/// Share of the values at either end that is not drawn: one disturbed repetition would flatten the rest of
/// the curve.
const TAIL: f64 = 0.005;
/// Space around the outermost values, in bandwidths or in points of a curve, whichever is wider.
const AROUND: f64 = 3.0;

/// Densities of all repetitions on a log scale, at the same equidistant points.
#[derive(Debug, Clone, PartialEq)]
pub struct Alignment {
    /// The first and the last point, as logarithms relative to the reference.
    pub range: (f64, f64),
    /// Base's median in the metric's unit, which is the zero of the scale; `None` if absolute values are
    /// withheld.
    pub reference: Option<f64>,
    /// The estimated ratio head/base, by which `aligned` was moved back.
    pub ratio: f64,
    pub base: Vec<f64>,
    pub head: Vec<f64>,
    pub aligned: Vec<f64>,
}

impl Alignment {
    /// Computes the densities from the logarithms of each process's repetitions.
    pub fn of_processes(base: &[Vec<f64>], head: &[Vec<f64>], ratio: f64) -> Option<Self> {
        let (all_base, all_head) = (base.concat(), head.concat());
        let reference = describe::median(&all_base)?;
        describe::median(&all_head)?;
        let relative = |values: Vec<f64>, by: f64| -> Vec<f64> {
            values.into_iter().map(|value| value - reference - by).collect()
        };
        let aligned = relative(all_head.clone(), ratio.ln());
        let (all_base, all_head) = (relative(all_base, 0.0), relative(all_head, 0.0));
        let width = bandwidth(base.iter().chain(head).map(Vec::as_slice));
        let mut sorted = [all_base.as_slice(), &all_head, &aligned].concat();
        sorted.sort_by(f64::total_cmp);
        let end = |share: f64| describe::quantile_sorted(&sorted, share).filter(|end| end.is_finite());
        let (low, high) = (end(TAIL)?, end(1.0 - TAIL)?);
        let around = AROUND * width.max((high - low) / POINTS as f64);
        let range = (low - around, high + around);
        let curve = |values: &[f64]| density(values, width, range, POINTS);
        Some(Self {
            range,
            reference: Some(reference.exp()),
            ratio,
            base: curve(&all_base),
            head: curve(&all_head),
            aligned: curve(&aligned),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Estimate, Reason};
    use benchgate_core::model::{BenchmarkName, Verdict};

    fn side(location: f64) -> Option<SideStats> {
        let (min, max) = (location * 0.8, location * 1.3);
        Some(SideStats {
            processes: 8,
            samples: 64,
            location,
            mean: location * 1.1,
            min,
            max,
            ..SideStats::default()
        })
    }

    fn row(method: Method, ratio: f64, base: f64, head: f64) -> Row {
        Row {
            metric: Some(Metric::LATENCY),
            estimate: Some(Estimate::unjudged(method, ratio)),
            base: side(base),
            head: side(head),
            ..Row::new(BenchmarkName::new("m"), Verdict::Pass, Reason::WithinTolerance)
        }
    }

    #[test]
    fn the_values_shown_have_exactly_the_ratio_of_the_effect() {
        // The medians of the sides are slower but the pairs are faster: the report must not state both.
        for method in [Method::Paired, Method::Unpaired, Method::Welch, Method::MannWhitney, Method::History]
        {
            let shown = row(method, 0.932, 13.47, 14.65).values_to_show(ShownSides::Together);
            let (base, head) = (shown.base.unwrap(), shown.head.unwrap());
            assert!((head / base - 0.932).abs() < 1e-12, "{method:?}: {shown:?}");
            assert!(base > 13.0 && base < 17.0 && head > 12.0 && head < 16.0, "{method:?}: {shown:?}");
        }
    }

    #[test]
    fn values_are_shown_inside_of_what_their_side_measured() {
        // One of thirty processes of a side took ten times as long: the mean of logarithms changes, the
        // median doesn't.
        for (slow, ratio) in [(1, 1.08), (0, 1.0 / 1.08)] {
            let mut row = row(Method::Unpaired, ratio, 100.0, 100.0);
            for (at, side) in [&mut row.base, &mut row.head].into_iter().flatten().enumerate() {
                (side.min, side.max) = (99.0, if at == slow { 1000.0 } else { 101.0 });
            }
            let shown = row.values_to_show(ShownSides::Together);
            let (base, head) = (shown.base.unwrap(), shown.head.unwrap());
            assert!(base.min(head) >= 99.0 && (head / base - ratio).abs() < 1e-12, "{shown:?}");
            assert!([base, head][1 - slow] <= 101.0, "{shown:?}");
        }
    }

    #[test]
    fn values_of_different_sessions_are_those_that_each_measured() {
        let apart = ShownSides::Apart { compared: None };
        for method in [Method::Unpaired, Method::Summaries, Method::Identical] {
            let shown = row(method, 1.05, 10.0, 11.0).values_to_show(apart);
            assert_eq!(shown, Typical { base: Some(10.0), head: Some(11.0) }, "{method:?}");
        }
        // On a day that is 10 % slower, head is 2 % faster than its neighbors.
        let shown =
            row(Method::History, 0.98, 10.3, 10.78).values_to_show(ShownSides::Apart { compared: Some(9.8) });
        assert!((shown.base.unwrap() - 10.0).abs() < 1e-9 && shown.head == Some(10.78), "{shown:?}");
        // Values that fall never stand next to an effect that rises.
        let shown = row(Method::Unpaired, 1.05, 11.0, 10.0).values_to_show(apart);
        assert!(shown.head > shown.base, "{shown:?}");
    }

    #[test]
    fn deterministic_values_are_shown_as_they_are() {
        let shown = row(Method::Exact, f64::INFINITY, 0.0, 3.0).values_to_show(ShownSides::Together);
        assert_eq!(shown, Typical { base: Some(0.0), head: Some(3.0) });
    }

    #[test]
    fn one_process_has_no_range() {
        let one = Latency::of_processes([[1.0, 2.0, 3.0].as_slice()].into_iter()).unwrap();
        assert_eq!((one.processes, one.half_range()), (1, None));
        assert_eq!(Latency::of_processes([].into_iter()), None);
    }

    fn overlap(one: &[f64], other: &[f64]) -> f64 {
        let shared: f64 = one.iter().zip(other).map(|(one, other)| one.min(*other)).sum();
        shared / one.iter().sum::<f64>()
    }

    #[test]
    fn head_lies_over_base_after_it_is_moved_back() {
        // The host has two speeds; head takes 5 % longer at both.
        let side = |slower: f64| -> Vec<Vec<f64>> {
            (0..24)
                .map(|process| {
                    let speed: f64 = if process % 3 == 0 { 19.2e6 } else { 11.3e6 };
                    (0..8).map(|at| (speed * slower).ln() + f64::from(at) * 0.001).collect()
                })
                .collect()
        };
        let seen = Alignment::of_processes(&side(1.0), &side(1.05), 1.05).unwrap();
        assert!(overlap(&seen.base, &seen.head) < 0.2, "{}", overlap(&seen.base, &seen.head));
        assert!(overlap(&seen.base, &seen.aligned) > 0.95, "{}", overlap(&seen.base, &seen.aligned));
        assert!((seen.reference.unwrap() - 11.3e6).abs() < 0.2e6);
        let mirrored = Alignment::of_processes(&side(1.05), &side(1.0), 1.0 / 1.05).unwrap();
        assert!(overlap(&mirrored.base, &mirrored.aligned) > 0.95);
    }

    #[test]
    fn a_side_without_repetitions_has_no_alignment() {
        assert_eq!(Alignment::of_processes(&[vec![]], &[vec![1.0]], 1.1), None);
        assert_eq!(Alignment::of_processes(&[vec![1.0]], &[], 1.1), None);
    }
}
