//! Density estimates: of values, for charts only, and of the differences between repetitions on a regular grid, on which
//! verdicts depend.

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

/// Width of the kernel, as a log ratio: smaller than the effects that matter, larger than the differences
/// between repetitions in one state of the host.
pub const BANDWIDTH: f64 = 0.008;
/// Width of the tables' cells: a quarter of the kernel's width, with linear interpolation between cells.
pub const STEP: f64 = BANDWIDTH / 4.0;
/// Distance, in standard deviations, beyond which the kernel is zero.
pub const KERNEL_REACH: f64 = 3.5;

/// A density on a regular grid, zero outside of it.
#[derive(Debug, Clone)]
pub struct Table {
    low: f64,
    values: Vec<f64>,
}

impl Table {
    pub fn zeros(low: f64, high: f64) -> Self {
        Self { low, values: vec![0.0; Self::cells(low, high)] }
    }

    fn cells(low: f64, high: f64) -> usize {
        ((high - low) / STEP).ceil().max(0.0) as usize + 2
    }

    fn place(&self, x: f64) -> Option<(usize, f64)> {
        place(self.low, self.values.len(), x)
    }

    pub fn at(&self, x: f64) -> f64 {
        let Some((cell, part)) = self.place(x) else { return 0.0 };
        let (low, high) = (self.values[cell], self.values[cell + 1]);
        low + part * (high - low)
    }

    /// Adds a kernel of this weight at every point.
    pub fn add(&mut self, points: &[f64], weight: f64, kernel: &[f64]) {
        for &point in points {
            let Some((cell, part)) = self.place(point) else { continue };
            for (cell, weight) in [(cell, weight * (1.0 - part)), (cell + 1, weight * part)] {
                for (away, height) in kernel.iter().enumerate() {
                    if let Some(value) = self.values.get_mut(cell + away) {
                        *value += weight * height;
                    }
                    if let Some(value) = cell.checked_sub(away).filter(|_| away > 0) {
                        self.values[value] += weight * height;
                    }
                }
            }
        }
    }
}

/// Returns the cell of `x` on a grid that begins at `low`, and the position within it.
fn place(low: f64, cells: usize, x: f64) -> Option<(usize, f64)> {
    let position = (x - low) / STEP;
    // Truncating equals rounding down for values from zero on, and takes one instruction.
    let whole = position as usize;
    (position >= 0.0 && whole < cells - 1).then_some((whole, position - whole as f64))
}

/// Several tables on one grid. The tables are interleaved cell by cell, because all of them are read at the
/// same position.
#[derive(Debug, Clone)]
pub struct TableGrid {
    low: f64,
    cells: usize,
    count: usize,
    values: Vec<f64>,
}

impl TableGrid {
    pub fn new(tables: &[Table]) -> Self {
        let (low, cells) = tables.first().map_or((0.0, 1), |table| (table.low, table.values.len()));
        let count = tables.len();
        let mut values = vec![0.0; cells * count];
        for (at, table) in tables.iter().enumerate() {
            values
                .iter_mut()
                .skip(at)
                .step_by(count)
                .zip(&table.values)
                .for_each(|(into, value)| *into = *value);
        }
        Self { low, cells, count, values }
    }

    /// Returns the memory that the values take.
    pub fn bytes(&self) -> usize {
        size_of_val(self.values.as_slice())
    }

    /// Writes to `into`, for each table, its value at `x` minus its value at `y`.
    pub fn differences(&self, x: f64, y: f64, into: &mut Vec<f64>) {
        into.clear();
        into.resize(self.count, 0.0);
        for (sign, at) in [(1.0, x), (-1.0, y)] {
            let Some((cell, part)) = place(self.low, self.cells, at) else { continue };
            let (low, rest) = self.values[cell * self.count..].split_at(self.count);
            for ((into, low), high) in into.iter_mut().zip(low).zip(rest) {
                *into += sign * (low + part * (high - low));
            }
        }
    }
}

/// Returns the heights of a kernel, cell by cell from its middle.
pub fn kernel() -> Vec<f64> {
    let cells = (KERNEL_REACH * BANDWIDTH / STEP).ceil() as usize;
    (0..=cells).map(|cell| (-0.5 * (cell as f64 * STEP / BANDWIDTH).powi(2)).exp()).collect()
}

/// Returns the sum of densities that share one grid.
pub fn sum(tables: &[Table]) -> Table {
    let mut tables = tables.iter();
    let mut sum = tables.next().cloned().unwrap_or(Table { low: 0.0, values: vec![0.0] });
    for table in tables {
        sum.values.iter_mut().zip(&table.values).for_each(|(into, value)| *into += value);
    }
    sum
}

/// The density of `repetition - other` for all other repetitions in `density`.
pub struct Differences<'a> {
    repetitions: &'a [f64],
    density: &'a Table,
    low: f64,
    cells: usize,
}

impl<'a> Differences<'a> {
    pub fn new(repetitions: &'a [f64], density: &'a Table, farthest: f64) -> Self {
        // Zero is exactly at a cell, so that both directions are rounded alike.
        let farthest = (farthest / STEP).ceil() * STEP;
        Self { repetitions, density, low: -farthest, cells: Table::cells(-farthest, farthest) }
    }

    /// Returns, for each repetition, the cell of `density` that is aligned with cell 0, and the position within that
    /// cell. Each following cell is aligned with the cell below, at the same position.
    fn places(&self) -> impl Iterator<Item = (i64, f64)> {
        self.repetitions.iter().map(|repetition| {
            let position = (repetition - self.low - self.density.low) / STEP;
            (position.floor() as i64, position - position.floor())
        })
    }

    /// Returns the densities of all differences.
    pub fn table(&self) -> Table {
        let mut table = Table { low: self.low, values: vec![0.0; self.cells] };
        // The values are mirrored, so that both lists are read forwards.
        let mirrored: Vec<f64> = self.density.values.iter().rev().copied().collect();
        let (count, share) = (mirrored.len() as i64, 1.0 / self.repetitions.len() as f64);
        for (whole, part) in self.places() {
            let (first, last) = (0.max(whole - count + 2), whole.min(self.cells as i64 - 1));
            if last < first {
                continue;
            }
            let (begin, end) = ((count - 1 - whole + first) as usize, (count - whole + last) as usize);
            let into = &mut table.values[first as usize..=last as usize];
            for ((into, low), high) in
                into.iter_mut().zip(&mirrored[begin..end]).zip(&mirrored[begin - 1..end - 1])
            {
                *into += share * (low + part * (high - low));
            }
        }
        table
    }

    /// Returns the density of one difference, for callers that need only a few.
    pub fn at(&self, x: f64) -> f64 {
        let Some((cell, part)) = place(self.low, self.cells, x) else { return 0.0 };
        let (low, high) = (self.value(cell), self.value(cell + 1));
        low + part * (high - low)
    }

    fn value(&self, cell: usize) -> f64 {
        let (values, share) = (&self.density.values, 1.0 / self.repetitions.len() as f64);
        let of = |(whole, part): (i64, f64)| {
            let at = usize::try_from(whole - cell as i64).ok().filter(|at| at + 1 < values.len())?;
            Some(share * (values[at] + part * (values[at + 1] - values[at])))
        };
        self.places().filter_map(of).sum()
    }
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
