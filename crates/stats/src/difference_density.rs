//! Densities of the differences between repetitions, on a regular grid.

/// Width of the kernel, as a log ratio: smaller than the effects that matter, larger than the differences
/// between repetitions in one state of the host.
pub const BANDWIDTH: f64 = 0.008;
/// Width of the tables' cells: a quarter of the kernel's width, with linear interpolation between cells.
pub const STEP: f64 = BANDWIDTH / 4.0;
/// Distance, in standard deviations, beyond which the kernel is zero.
pub const REACH: f64 = 3.5;

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
    let cells = (REACH * BANDWIDTH / STEP).ceil() as usize;
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
