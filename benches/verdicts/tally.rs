//! Shares with their confidence intervals.

/// Results of many resampled suites, with the number of times that each recorded round occurs in each suite.
/// The interval can thus describe the rounds (the units that were recorded) and not just the resamples.
#[derive(Debug, Clone)]
pub struct Tally {
    rounds: usize,
    n: f64,
    sum: f64,
    squares: f64,
    /// Σ count_j and Σ count_j · value, by round.
    counts: Vec<f64>,
    products: Vec<f64>,
}

impl Tally {
    pub fn new(rounds: usize) -> Self {
        Self {
            rounds,
            n: 0.0,
            sum: 0.0,
            squares: 0.0,
            counts: vec![0.0; rounds],
            products: vec![0.0; rounds],
        }
    }

    pub fn add(&mut self, value: f64, drawn: &[usize]) {
        self.n += 1.0;
        self.sum += value;
        self.squares += value * value;
        for &round in drawn {
            self.counts[round] += 1.0;
            self.products[round] += value;
        }
    }

    pub fn mean(&self) -> f64 {
        self.sum / self.n
    }

    /// Returns half of a 95 % interval. The interval includes the resampling error and, by the infinitesimal
    /// jackknife corrected for its resampling bias (Efron 2014, JASA 109:991–1007), the error of having
    /// recorded only these rounds.
    pub fn half_width(&self) -> f64 {
        let mean = self.mean();
        let variance = (self.squares / self.n - mean * mean).max(0.0);
        let covariances =
            (0..self.rounds).map(|j| self.products[j] / self.n - self.counts[j] / self.n * mean);
        let raw: f64 = covariances.map(|c| c * c).sum();
        let between_rounds = (raw - self.rounds as f64 * variance / self.n).max(0.0);
        1.96 * (between_rounds + variance / self.n).sqrt()
    }

    /// Formats `12.3 ±0.4`, in percent; if there was no case, the upper end of an exact 95 % interval.
    pub fn percent(&self) -> String {
        if self.sum == 0.0 {
            return format!("0 (<{:.2})", 300.0 / self.n);
        }
        format!("{:.2} ±{:.2}", 100.0 * self.mean(), 100.0 * self.half_width())
    }
}
