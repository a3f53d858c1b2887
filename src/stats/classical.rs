//! The classical two-sample tests, for `--test` and for comparison with other tools. Both agree with
//! scipy to 1e-9 (`tests/fixtures/scipy/`), ties and small samples included.

use super::describe;
use super::distributions::{normal_tail, student_tail};

/// The p-values of one test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TestResult {
    /// t, or U of the first sample.
    pub statistic: f64,
    /// Alternative: the first sample is smaller.
    pub less: f64,
    /// Alternative: the first sample is larger.
    pub greater: f64,
    pub two_sided: f64,
}

/// Mean, variance and count: all that Welch's test needs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moments {
    pub n: f64,
    pub mean: f64,
    pub variance: f64,
}

impl Moments {
    /// `None` below two values.
    pub fn of(values: &[f64]) -> Option<Self> {
        Some(Self {
            n: values.len() as f64,
            mean: describe::mean(values)?,
            variance: describe::variance(values)?,
        })
    }
}

/// Standard error and degrees of freedom of a difference of two means (Welch 1947).
pub fn welch_error(x: Moments, y: Moments) -> (f64, f64) {
    let (vx, vy) = (x.variance / x.n, y.variance / y.n);
    let total = vx + vy;
    let df = total * total / (vx * vx / (x.n - 1.0) + vy * vy / (y.n - 1.0));
    (total.sqrt(), df)
}

/// Welch's t test, `scipy.stats.ttest_ind(x, y, equal_var=False)`.
pub fn welch(x: Moments, y: Moments) -> TestResult {
    let (se, df) = welch_error(x, y);
    let t = (x.mean - y.mean) / se;
    let (less, greater) = (student_tail(-t, df), student_tail(t, df));
    TestResult { statistic: t, less, greater, two_sided: (2.0 * less.min(greater)).min(1.0) }
}

/// How the distribution of U is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UMethod {
    /// All arrangements counted. With ties it is what scipy computes: the tie-free distribution.
    Exact,
    /// Normal approximation with tie correction.
    Asymptotic { continuity: bool },
    /// As scipy chooses: exact up to eight values on a side without ties, else asymptotic with
    /// continuity correction.
    Auto,
}

/// Mann and Whitney's U test, `scipy.stats.mannwhitneyu(x, y)`. `None` where a side is empty.
pub fn mann_whitney(x: &[f64], y: &[f64], method: UMethod) -> Option<TestResult> {
    if x.is_empty() || y.is_empty() {
        return None;
    }
    let (rank_sum, tie_term) = ranks(x, y);
    let (n, m) = (x.len() as f64, y.len() as f64);
    let u = rank_sum - n * (n + 1.0) / 2.0;
    let exact = match method {
        UMethod::Exact => true,
        UMethod::Asymptotic { .. } => false,
        UMethod::Auto => x.len().min(y.len()) <= 8 && tie_term == 0.0,
    };
    let upper_tail: Box<dyn Fn(f64) -> f64> = if exact {
        let tail = exact_tail(x.len(), y.len());
        // Rounded up to the next whole number: scipy truncates the mirrored statistic, which is the same.
        Box::new(move |u: f64| tail.get(u.ceil().max(0.0) as usize).copied().unwrap_or(0.0))
    } else {
        let total = n + m;
        let variance = n * m / 12.0 * ((total + 1.0) - tie_term / (total * (total - 1.0)));
        let shift = if method == (UMethod::Asymptotic { continuity: false }) { 0.0 } else { 0.5 };
        Box::new(move |u: f64| {
            // Without any variance, NaN: no evidence.
            normal_tail((u - n * m / 2.0 - shift) / variance.sqrt())
        })
    };
    let (greater, less) = (upper_tail(u).min(1.0), upper_tail(n * m - u).min(1.0));
    Some(TestResult { statistic: u, less, greater, two_sided: (2.0 * less.min(greater)).min(1.0) })
}

/// Sum of the first sample's midranks in both, and Σ (t³ − t) over groups of ties.
fn ranks(x: &[f64], y: &[f64]) -> (f64, f64) {
    let mut all: Vec<(f64, bool)> =
        x.iter().map(|&v| (v, true)).chain(y.iter().map(|&v| (v, false))).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut sum, mut ties, mut start) = (0.0, 0.0, 0);
    while start < all.len() {
        let length = all[start..].iter().take_while(|(value, _)| *value == all[start].0).count().max(1);
        let midrank = start as f64 + (length as f64 + 1.0) / 2.0;
        sum += midrank * all[start..start + length].iter().filter(|(_, first)| *first).count() as f64;
        let t = length as f64;
        ties += t * t * t - t;
        start += length;
    }
    (sum, ties)
}

/// P(U ≥ u) for every whole u without ties: counts of arrangements by Mann and Whitney's recurrence,
/// which stay exact in floating point far beyond the sizes it is used for.
fn exact_tail(n: usize, m: usize) -> Vec<f64> {
    // frequencies[j] holds, for the rows done so far, the number of ways to reach each U with j of y.
    let mut frequencies: Vec<Vec<f64>> = vec![vec![1.0]; m + 1];
    for i in 1..=n {
        for j in 1..=m {
            let mut next = vec![0.0; i * j + 1];
            // The largest value is of y (it adds nothing), or of x (it beats all j of y).
            for (u, count) in frequencies[j - 1].iter().enumerate() {
                next[u] += count;
            }
            for (u, count) in frequencies[j].iter().enumerate() {
                next[u + j] += count;
            }
            frequencies[j] = next;
        }
        frequencies[0] = vec![1.0];
    }
    let counts = &frequencies[m];
    let total: f64 = counts.iter().sum();
    let mut tail = vec![0.0; counts.len()];
    let mut sum = 0.0;
    for (u, count) in counts.iter().enumerate().rev() {
        sum += count;
        tail[u] = sum / total;
    }
    tail
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_above_four_is_one_arrangement_in_seventy() {
        let test = mann_whitney(&[5.0, 6.0, 7.0, 8.0], &[1.0, 2.0, 3.0, 4.0], UMethod::Auto).unwrap();
        assert_eq!(test.statistic, 16.0);
        assert!((test.greater - 1.0 / 70.0).abs() < 1e-15);
        assert_eq!(test.less, 1.0);
    }

    #[test]
    fn three_repetitions_can_never_be_significant() {
        let test = mann_whitney(&[5.0, 6.0, 7.0], &[1.0, 2.0, 3.0], UMethod::Auto).unwrap();
        assert!(test.two_sided > 0.05);
    }
}
