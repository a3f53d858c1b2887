//! Compares the accuracy of head with base's, so that speed gained at the cost of accuracy is visible.
//!
//! Module `status` judges outputs beyond the tolerance as `diverged`; this module reports on outputs that
//! pass.

use benchgate_core::model::{Benchmark, Divergence, Lint, LintCode, OutputCheck, Run, VerifyCode};
use benchgate_core::numerics::{self, Tensor};

use super::workload;

/// Ratio of two errors (root mean square) below which their difference is not reported: two correct roundings
/// of one computation differ by less.
const WORTH_SAYING: f64 = 2.0;
/// Share of the allowed error below which a distance is only rounding. Without an fp64 reference, the
/// distance between an output and its reference includes the rounding of both.
const ROUNDING_SHARE: f64 = 0.05;

/// Returns findings about outputs that both sides got right, and about outputs that differ between the sides.
pub fn lints(base: &Benchmark, head: &Benchmark) -> Vec<Lint> {
    let mut lints: Vec<Lint> = moved(base, head).into_iter().collect();
    let (Some(base), Some(head)) = (&base.verification, &head.verification) else { return lints };
    if base.code != VerifyCode::Pass || head.code != VerifyCode::Pass {
        return lints;
    }
    let pairs = head.outputs.iter().filter_map(|output| {
        let partner = base.outputs.iter().find(|partner| partner.index == output.index)?;
        Some((output.index, partner.divergence.as_ref()?, output.divergence.as_ref()?))
    });
    let worst = pairs
        .filter_map(|(index, base, head)| Some((index, Loss::between(base, head)?)))
        .max_by(|(_, a), (_, b)| a.factor().total_cmp(&b.factor()));
    if let Some((index, loss)) = worst {
        lints.push(Lint::new(LintCode::LessAccurate, format!("output {index} {}", loss.sentence())));
    }
    lints
}

/// Returns a copy of head in which the outputs that head's tool printed are compared with those that base's
/// tool printed, with the precision in which they were printed. `None` if head's tool printed no outputs.
pub fn with_printed(base: &Run, head: &Run) -> Option<Run> {
    if head.benchmarks.iter().all(|benchmark| benchmark.printed.is_empty()) {
        return None;
    }
    let tensors = |benchmark: &Benchmark| -> Option<Vec<Tensor>> {
        let printed = Some(&benchmark.printed).filter(|printed| !printed.is_empty())?;
        printed.iter().map(|text| Tensor::from_printed(text)).collect()
    };
    let mut head = head.clone();
    for benchmark in &mut head.benchmarks {
        let of_base = base.benchmarks.iter().find(|other| other.name == benchmark.name).and_then(tensors);
        if let Some((base, found)) = of_base.zip(tensors(benchmark))
            && let Some(verification) = &mut benchmark.verification
        {
            verification.against_base = numerics::against_base(&found, &base, &[], &[]);
            let vacuous = numerics::vacuous_base(&base, &[]);
            benchmark.lints.extend(vacuous.map(|why| Lint::new(LintCode::VacuousReference, why)));
        }
    }
    Some(head)
}

/// Returns the finding that head's outputs differ from base's or were not compared with them.
fn moved(base: &Benchmark, head: &Benchmark) -> Option<Lint> {
    let found = head.verification.as_ref()?;
    let moved = found.against_base.iter().find(|output| output.code != VerifyCode::Pass).map(difference);
    if workload::model_changed(base, head) {
        let uncompared = || "head's outputs were compared with a different reference than base's".to_owned();
        let detail = moved.or_else(|| found.against_base.is_empty().then(uncompared))?;
        return Some(Lint::new(LintCode::ReferenceChanged, detail));
    }
    Some(Lint::new(LintCode::OutputsMoved, moved.filter(|_| found.code == VerifyCode::Pass)?))
}

/// Describes a difference: `output 0: 12 of 9216 elements beyond the tolerance …`.
fn difference(output: &OutputCheck) -> String {
    format!("output {}: {}", output.index, output.why.as_deref().unwrap_or("it differs"))
}

/// An error that increased.
struct Loss {
    base: f64,
    head: f64,
    truth: &'static str,
}

impl Loss {
    fn between(base: &Divergence, head: &Divergence) -> Option<Self> {
        match (base.error_fp64, head.error_fp64) {
            (Some(was), Some(now)) => {
                // The compiler did not cause the rounding error of the eager execution itself.
                let natural = head.reference_error_fp64.unwrap_or(0.0);
                let loss = Self { base: was, head: now, truth: "the fp64 reference" };
                (now > WORTH_SAYING * was.max(natural)).then_some(loss)
            }
            _ => {
                let (was, now) = (base.error?, head.error?);
                let rounding = ROUNDING_SHARE * head.allowed_error?;
                let loss = Self { base: was, head: now, truth: "the reference" };
                (now > WORTH_SAYING * was && now > rounding).then_some(loss)
            }
        }
    }

    fn factor(&self) -> f64 {
        if self.base > 0.0 { self.head / self.base } else { f64::INFINITY }
    }

    fn sentence(&self) -> String {
        let Self { base, head, truth } = self;
        if *base > 0.0 {
            format!(
                "is {:.1}× as far from {truth} as base's (error {head:.2e}, was {base:.2e})",
                self.factor()
            )
        } else {
            format!("is no longer exact: error {head:.2e} against {truth}, was 0")
        }
    }
}
