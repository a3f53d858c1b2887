//! The aggregate rows Google Benchmark adds after the repetitions.

use benchgate_core::model::Summary;

/// The statistic that an aggregate row states about the repetitions before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Statistic {
    Mean,
    Median,
    Stddev,
    /// stddev / mean: a fraction, although it stands in the time column.
    Cv,
    Min,
    Max,
    /// An asymptotic fit (`BigO`) or its residual (`RMS`) over other benchmarks: a measurement of nothing.
    Fit,
    /// A user-defined statistic, never a time.
    Other,
}

/// Suffixes of the tool's own statistics, for output that does not mark aggregate rows.
const SUFFIXES: [(&str, Statistic); 8] = [
    ("_mean", Statistic::Mean),
    ("_median", Statistic::Median),
    ("_stddev", Statistic::Stddev),
    ("_cv", Statistic::Cv),
    ("_min", Statistic::Min),
    ("_max", Statistic::Max),
    ("_BigO", Statistic::Fit),
    ("_RMS", Statistic::Fit),
];

impl Statistic {
    /// By the tool's `aggregate_name`.
    pub(super) fn parse(name: &str) -> Self {
        match name {
            "mean" => Self::Mean,
            "median" => Self::Median,
            "stddev" => Self::Stddev,
            "cv" => Self::Cv,
            "min" => Self::Min,
            "max" => Self::Max,
            "BigO" | "RMS" => Self::Fit,
            _ => Self::Other,
        }
    }

    /// A summary that holds only this statistic of times.
    pub(super) fn alone(self, value: f64) -> Summary {
        let mut summary = Summary::default();
        let field = match self {
            Self::Mean => &mut summary.mean,
            Self::Median => &mut summary.median,
            Self::Stddev => &mut summary.stddev,
            Self::Min => &mut summary.min,
            Self::Max => &mut summary.max,
            Self::Cv | Self::Fit | Self::Other => return summary,
        };
        *field = Some(value);
        summary
    }

    /// Splits `BM_main_mean` into `BM_main` and the mean. Only a hint: a benchmark may be named so.
    pub(super) fn split_suffix(name: &str) -> Option<(&str, Self)> {
        SUFFIXES.iter().find_map(|&(suffix, statistic)| {
            name.strip_suffix(suffix).filter(|stem| !stem.is_empty()).map(|stem| (stem, statistic))
        })
    }
}
