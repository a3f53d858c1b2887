//! The values that a bisection can observe.

use std::fmt;

use crate::gate::Policy;
use crate::gate::bisect::{BisectOptions, Observed};
use crate::model::{Benchmark, Metric, MetricKind, Outcome, Series, Stage, Verdict, VerifyCode};

/// A value that can get worse.
#[derive(Debug, Clone, PartialEq)]
pub enum Observable {
    Metric(Metric),
    /// 1 if the outputs are wrong, otherwise 0.
    Outputs,
    /// 1 if a stage fails, otherwise 0.
    Failure,
}

impl fmt::Display for Observable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Observable {
    pub fn parse(word: &str) -> Result<Self, String> {
        match word {
            "outputs" => Ok(Self::Outputs),
            "failure" => Ok(Self::Failure),
            // Each candidate is compiled only once, in parallel with others, which is too unreliable for a
            // search.
            name if name == Metric::COMPILE_TIME.name => {
                Err("compile time is measured once and can't be bisected".to_owned())
            }
            name => Metric::built_in(name).map(Self::Metric).ok_or_else(|| {
                let all = Metric::BUILT_IN;
                let known = all.iter().map(|metric| metric.name.as_ref());
                let known =
                    known.filter(|name| *name != Metric::COMPILE_TIME.name).collect::<Vec<_>>().join(", ");
                format!("expected {known}, outputs or failure")
            }),
        }
    }

    pub fn name(&self) -> &str {
        match self {
            Self::Metric(metric) => &metric.name,
            Self::Outputs => "outputs",
            Self::Failure => "failure",
        }
    }

    /// The metric under which the search compares values. Wrong outputs and failures are treated as counts.
    pub fn metric(&self) -> Metric {
        match self {
            Self::Metric(metric) => metric.clone(),
            Self::Outputs | Self::Failure => Metric::DISPATCH_COUNT,
        }
    }

    /// Returns true if one observation per candidate is enough.
    pub fn is_exact(&self) -> bool {
        !matches!(self, Self::Metric(metric) if metric.kind == MetricKind::Noisy)
    }

    pub fn options(&self, policy: &Policy, max_blocks: u32) -> BisectOptions {
        BisectOptions::new(policy, self.metric(), max_blocks)
    }

    /// The exact value of a candidate, or the reason why there is none.
    pub fn value(&self, benchmark: &Benchmark) -> Result<f64, String> {
        let flag = |bad: bool| f64::from(u8::from(bad));
        match (self, &benchmark.outcome) {
            (Self::Failure, outcome) => Ok(flag(matches!(outcome, Outcome::Failed { .. }))),
            (_, Outcome::Failed { stage, why }) if *stage != Stage::Verify || *self != Self::Outputs => {
                Err(format!("{stage}: {why}"))
            }
            (Self::Outputs, _) => match benchmark.verification.as_ref().map(|found| found.code) {
                Some(VerifyCode::Pass) => Ok(0.0),
                Some(VerifyCode::Fail) => Ok(1.0),
                code => Err(format!(
                    "the outputs were not verified ({})",
                    code.map_or("no reference", VerifyCode::as_str)
                )),
            },
            (Self::Metric(metric), _) => match benchmark.metric(&metric.name).map(|series| &series.series) {
                Some(Series::Exact(value)) => Ok(*value),
                _ => Err(format!("the benchmark has no {}", metric.name)),
            },
        }
    }

    pub fn compare(&self, base: f64, head: f64, options: &BisectOptions) -> Observed {
        match self {
            Self::Metric(_) => Observed::of_values(base, head, options),
            Self::Outputs | Self::Failure => {
                let verdict = if head > base { Verdict::Regressed } else { Verdict::Pass };
                Observed::exact(head - base, verdict)
            }
        }
    }
}
