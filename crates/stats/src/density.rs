//! Kernel density estimates for charts. No verdict depends on them.

use super::describe;

/// Kernels are cut off where they fall below a thousandth of their height.
const REACH: f64 = 4.0;
/// Minimum number of repetitions for estimating the spread of a process.
const ENOUGH: usize = 4;
/// Clocks that benchmarks read have a relative resolution of a few parts in ten thousand at best.
const NARROWEST: f64 = 0.001;
const WIDEST: f64 = 0.1;

/// Returns the bandwidth for logarithms that are grouped by process: the normal-reference rule 0.9 · min(sd,
/// IQR / 1.34) · n^(−1/5) (Silverman 1986, *Density Estimation for Statistics and Data Analysis*, eq. 3.31),
/// with the spread and n of a typical process. The spread of all values together would merge the two peaks of
/// a host that switches between two speeds.
pub fn bandwidth<'a>(processes: impl Iterator<Item = &'a [f64]> + Clone) -> f64 {
    let own = processes.clone().filter(|values| values.len() >= ENOUGH).filter_map(reference_rule);
    let own: Vec<f64> = own.collect();
    let typical = describe::median(&own).or_else(|| {
        let all: Vec<f64> = processes.flatten().copied().collect();
        reference_rule(&all)
    });
    typical.unwrap_or(NARROWEST).clamp(NARROWEST, WIDEST)
}

fn reference_rule(values: &[f64]) -> Option<f64> {
    let sorted = describe::sorted(values);
    let quartiles = describe::quantile_sorted(&sorted, 0.75)? - describe::quantile_sorted(&sorted, 0.25)?;
    let spread = describe::stddev(values)?.min(quartiles / 1.34);
    let width = 0.9 * spread * (values.len() as f64).powf(-0.2);
    width.is_finite().then_some(width)
}

/// Returns the density of `values` at `cells` equidistant points from `low` to `high`, with a Gaussian kernel
/// on linearly binned values (Wand 1994, *Fast Computation of Multivariate Kernel Estimators*). Values
/// outside the range count towards the total but are not drawn.
pub fn density(values: &[f64], bandwidth: f64, (low, high): (f64, f64), cells: usize) -> Vec<f64> {
    let mut binned = vec![0.0; cells];
    let step = (high - low) / (cells.saturating_sub(1)) as f64;
    if cells < 2 || values.is_empty() || !(step > 0.0 && step.is_finite()) {
        return binned;
    }
    for value in values {
        let at = (value - low) / step;
        if !(0.0..=(cells - 1) as f64).contains(&at) {
            continue;
        }
        let cell = (at.floor() as usize).min(cells - 2);
        let share = at - cell as f64;
        binned[cell] += 1.0 - share;
        binned[cell + 1] += share;
    }
    // A kernel narrower than the grid would be drawn as separate spikes.
    let width = bandwidth.max(step) / step;
    let reach = (REACH * width).ceil() as usize;
    let kernel: Vec<f64> = (0..=reach).map(|far| (-0.5 * (far as f64 / width).powi(2)).exp()).collect();
    let scale = 1.0 / (values.len() as f64 * width * step * std::f64::consts::TAU.sqrt());
    let height = |cell: usize| {
        let near = cell.saturating_sub(reach)..(cell + reach + 1).min(cells);
        near.map(|other| binned[other] * kernel[other.abs_diff(cell)]).sum::<f64>() * scale
    };
    (0..cells).map(height).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_density_has_area_one_and_its_peak_where_the_values_are() {
        let values: Vec<f64> = (0..200).map(|at| f64::from(at % 20) * 0.001).collect();
        let curve = density(&values, 0.004, (-0.1, 0.1), 401);
        let area: f64 = curve.iter().sum::<f64>() * 0.2 / 400.0;
        assert!((area - 1.0).abs() < 0.01, "{area}");
        let peak = (0..401).max_by(|&one, &other| curve[one].total_cmp(&curve[other])).unwrap();
        assert!((219 - 8..=219 + 8).contains(&peak), "{peak}");
    }

    #[test]
    fn two_speeds_of_a_host_stay_two_hills() {
        let process = |speed: f64| (0..8).map(|at| speed + f64::from(at) * 0.002).collect::<Vec<f64>>();
        let processes: Vec<Vec<f64>> =
            (0..20).map(|number| process(if number % 2 == 0 { 0.0 } else { 0.5 })).collect();
        let width = bandwidth(processes.iter().map(Vec::as_slice));
        assert!(width < 0.01, "{width}");
        let all: Vec<f64> = processes.concat();
        let curve = density(&all, width, (-0.1, 0.6), 141);
        assert!(curve[70] < curve[21].min(curve[121]) / 100.0, "the valley is empty");
    }

    #[test]
    fn constant_few_and_no_values_have_a_finite_density() {
        for values in [&[][..], &[1.0], &[1.0; 50], &[1.0, f64::MAX]] {
            let width = bandwidth([values].into_iter());
            assert!((NARROWEST..=WIDEST).contains(&width));
            for range in [(0.0, 2.0), (1.0, 1.0), (2.0, 1.0)] {
                assert!(density(values, width, range, 50).iter().all(|height| height.is_finite()));
            }
        }
    }
}
