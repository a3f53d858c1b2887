//! Densities of the differences of repetitions, on a regular grid.

/// Width of the kernel, as a log ratio. Smaller than the effects that matter, larger than what repetitions
/// in one state of the host differ by.
pub const BANDWIDTH: f64 = 0.008;
/// Cells of the tables: a quarter of the kernel's width, with linear interpolation between them.
pub const STEP: f64 = BANDWIDTH / 4.0;
/// Standard deviations after which the kernel is zero.
pub const REACH: f64 = 3.5;

/// A density on a regular grid, zero outside of it.
#[derive(Debug, Clone)]
pub struct Table {
    low: f64,
    values: Vec<f64>,
}

impl Table {
    pub fn zeros(low: f64, high: f64) -> Self {
        Self { low, values: vec![0.0; ((high - low) / STEP).ceil().max(0.0) as usize + 2] }
    }

    // Inlined: scores ask for millions of values, and code of other rooms is compiled apart.
    #[inline]
    pub fn place(&self, x: f64) -> Option<(usize, f64)> {
        let position = (x - self.low) / STEP;
        // Cut off instead of rounded down, which is the same from zero on and one instruction.
        let whole = position as usize;
        (position >= 0.0 && whole < self.values.len() - 1).then_some((whole, position - whole as f64))
    }

    #[inline]
    pub fn at(&self, x: f64) -> f64 {
        let Some((cell, part)) = self.place(x) else { return 0.0 };
        let (low, high) = (self.values[cell], self.values[cell + 1]);
        low + part * (high - low)
    }

    /// Adds `weight` kernels about every point.
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

/// Heights of a kernel, cell by cell from its middle.
pub fn kernel() -> Vec<f64> {
    let cells = (REACH * BANDWIDTH / STEP).ceil() as usize;
    (0..=cells).map(|cell| (-0.5 * (cell as f64 * STEP / BANDWIDTH).powi(2)).exp()).collect()
}

/// The sum of densities on one grid.
pub fn sum<'a>(mut tables: impl Iterator<Item = &'a Table>) -> Table {
    let mut sum = tables.next().cloned().unwrap_or(Table { low: 0.0, values: vec![0.0] });
    for table in tables {
        sum.values.iter_mut().zip(&table.values).for_each(|(into, value)| *into += value);
    }
    sum
}

/// Density of the differences `repetition - other` over all others in `density`.
pub fn differences(repetitions: &[f64], density: &Table, farthest: f64) -> Table {
    // Zero is a cell's own place, so that both directions are rounded alike.
    let farthest = (farthest / STEP).ceil() * STEP;
    let mut table = Table::zeros(-farthest, farthest);
    let share = 1.0 / repetitions.len() as f64;
    for &repetition in repetitions {
        // Cell by cell the place in `density` moves down by one; its part of a cell stays.
        let position = (repetition - table.low - density.low) / STEP;
        let (whole, part) = (position.floor() as i64, position - position.floor());
        let (first, last) =
            (0.max(whole - density.values.len() as i64 + 2), whole.min(table.values.len() as i64 - 1));
        for cell in first..=last {
            let at = (whole - cell) as usize;
            let value = density.values[at] + part * (density.values[at + 1] - density.values[at]);
            table.values[cell as usize] += share * value;
        }
    }
    table
}
