//! The policy inside a run file: written when the run is made, read when it is judged in a second step.

use crate::gate::{ChangedReference, FailOn, MetricPolicy, Policy, SequentialPolicy, TestKind};
use crate::record::{GateMetricRecord, GateRecord, Number, PlanFile, RunFile};

/// The policy as a run file and a plan hold it.
pub fn record(policy: &Policy) -> GateRecord {
    GateRecord {
        alpha: Number(policy.alpha),
        test: policy.test.as_str().to_owned(),
        fail_on: policy.fail_on.0.to_vec(),
        between_cv: policy.between_cv.map(Number),
        changed_reference: (policy.changed_reference != ChangedReference::default())
            .then(|| policy.changed_reference.as_str().to_owned()),
        metrics: policy
            .metrics
            .iter()
            .map(|(name, metric)| GateMetricRecord {
                name: name.clone(),
                floor: metric.floor,
                tolerance: Number(metric.tolerance),
                fatal: metric.fatal,
            })
            .collect(),
        overrides: policy.overrides.clone(),
        waivers: policy.waivers.clone(),
        expectations: policy.expectations.clone(),
    }
}

/// The suite's policy as the run file has it; the default if it has none.
///
/// # Errors
/// The name of a test that this version does not know.
pub fn recorded_policy(file: &RunFile) -> Result<Policy, String> {
    let mut policy = Policy::default();
    policy.sequential = recorded_blocks(file).unwrap_or(policy.sequential);
    file.gate.as_ref().map_or(Ok(policy.clone()), |record| of_record(record, policy.sequential))
}

/// The policy that all shards of a plan are measured under.
///
/// # Errors
/// The name of a test that this version does not know.
pub fn planned_policy(plan: &PlanFile) -> Result<Policy, String> {
    let PlanFile { min_blocks, max_blocks, .. } = *plan;
    of_record(&plan.gate, SequentialPolicy { min_blocks, max_blocks })
}

fn of_record(record: &GateRecord, sequential: SequentialPolicy) -> Result<Policy, String> {
    let test = TestKind::parse(&record.test).ok_or_else(|| format!("unknown test `{}`", record.test))?;
    let changed_reference = match record.changed_reference.as_deref() {
        None => ChangedReference::default(),
        Some(word) => ChangedReference::parse(word)
            .ok_or_else(|| format!("unknown value of `changed-reference`: `{word}`"))?,
    };
    Ok(Policy {
        metrics: record
            .metrics
            .iter()
            .map(|metric| {
                (
                    metric.name.clone(),
                    MetricPolicy { floor: metric.floor, tolerance: metric.tolerance.0, fatal: metric.fatal },
                )
            })
            .collect(),
        overrides: record.overrides.clone(),
        waivers: record.waivers.clone(),
        expectations: record.expectations.clone(),
        alpha: record.alpha.0,
        sequential,
        fail_on: FailOn(record.fail_on.to_vec()),
        test,
        between_cv: record.between_cv.map(f64::from),
        changed_reference,
    })
}

/// The block limits of the run: its looks are part of the measurement, whatever policy judges it.
pub fn recorded_blocks(file: &RunFile) -> Option<SequentialPolicy> {
    let (min_blocks, max_blocks) = file.measure.min_blocks.zip(file.measure.max_blocks)?;
    Some(SequentialPolicy { min_blocks, max_blocks })
}
