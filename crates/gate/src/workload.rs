//! Checks whether both sides did the same work.

use benchgate_core::model::{
    ARCHITECTURE, Benchmark, Lint, LintCode, MetricSeries, Series, SideName, Summary, Workload,
};

use super::work_per_call;

/// Returns findings about differences between the work of the two sides. Results of tools that do not record
/// it are accepted, but in a session that measured both sides, either both must record it or neither.
pub fn lints(base: &Benchmark, head: &Benchmark, together: bool) -> Vec<Lint> {
    let code = [base, head].map(|side| side.labels.get(ARCHITECTURE).map(String::as_str));
    let other_code = match code {
        [Some(base), Some(head)] => Some((base, head)),
        // Older results don't contain it.
        [None, None] => None,
        [base, head] => together.then(|| (base.unwrap_or("unknown"), head.unwrap_or("unknown"))),
    };
    let other_code = other_code.filter(|(base, head)| base != head);
    let (base, head) = match (recorded(base), recorded(head)) {
        (Some(base), Some(head)) => (base, head),
        (None, None) => return other_axis(base, head).into_iter().collect(),
        (known, _) if together => {
            let side = if known.is_some() { SideName::Head } else { SideName::Base };
            let detail =
                format!("the result does not state with which inputs and settings {side} was measured");
            return vec![Lint::new(LintCode::WorkloadChanged, detail)];
        }
        _ => return Vec::new(),
    };
    let mut differing = Vec::new();
    if base.inputs_sha256 != head.inputs_sha256 {
        differing.push("other inputs".to_owned());
    }
    if base.changed_inputs != head.changed_inputs {
        let shown = |inputs: &[u32]| match inputs {
            [] => "no input".to_owned(),
            _ => format!("input {}", inputs.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")),
        };
        let [of_base, of_head] = [base, head].map(|side| shown(&side.changed_inputs));
        differing.push(format!(
            "a program whose first call changes {of_head} for later calls (base's first call \
            changes {of_base})"
        ));
    }
    if base.device != head.device {
        differing.push(format!("device `{}` instead of `{}`", head.device, base.device));
    }
    if base.settings_sha256 != head.settings_sha256 {
        differing.push("different runtime flags, allocators or environment".to_owned());
    }
    if let Some((base_code, head_code)) = other_code {
        differing.push(format!("code for {head_code} instead of {base_code}"));
    }
    if !differing.is_empty() {
        let detail = format!("head was measured with {}", differing.join(", "));
        return vec![Lint::new(LintCode::WorkloadChanged, detail)];
    }
    // An fp64 reference makes larger errors acceptable. If both the fp64 reference and the ordinary one are
    // new, they are judged as a new reference.
    let detail = match (&base.reference64_sha256, &head.reference64_sha256) {
        (None, Some(_)) => "head adds an fp64 reference, which can make a larger error acceptable",
        (Some(old), Some(new)) if old != new && !other_reference(base, head) => {
            "head's fp64 reference differs from base's"
        }
        _ => return Vec::new(),
    };
    vec![Lint::new(LintCode::Fp64ReferenceChanged, detail)]
}

/// Returns whether head's outputs were compared with a reference that base's outputs were not compared with.
fn other_reference(base: &Workload, head: &Workload) -> bool {
    head.reference_sha256.is_some() && base.reference_sha256 != head.reference_sha256
}

/// Returns whether head's outputs were compared with a reference that base's outputs were not compared with,
/// for the same inputs. A reference for other inputs means different work, which is a separate finding.
pub fn has_other_reference(base: &Benchmark, head: &Benchmark) -> bool {
    let both = recorded(base).zip(recorded(head));
    both.is_some_and(|(base, head)| base.inputs_sha256 == head.inputs_sha256 && other_reference(base, head))
}

/// Returns whether head's model, or the reference of its outputs, differs from base's.
pub fn model_changed(base: &Benchmark, head: &Benchmark) -> bool {
    has_other_reference(base, head) || head.verification.as_ref().is_some_and(|found| found.model_changed)
}

/// Returns the finding that labels, or the work of a call, differ: results of commands and of foreign tools
/// identify benchmarks by name and labels.
fn other_axis(base: &Benchmark, head: &Benchmark) -> Option<Lint> {
    let axis = base.differing_preparation(head).or_else(|| base.differing_axis(head));
    let axis = axis.or_else(|| work_per_call::difference(base, head));
    let axis = axis.or_else(|| other_statistics(base, head))?;
    Some(Lint::new(LintCode::WorkloadChanged, format!("the sides differ in {axis}")))
}

/// Returns the difference between the statistics of which a metric's sides consist: a mean is not compared with a
/// median, and a standard deviation that head leaves out may have grown.
fn other_statistics(base: &Benchmark, head: &Benchmark) -> Option<String> {
    const NAMES: [&str; 3] = ["mean", "median", "stddev"];
    let stated = |series: &MetricSeries| match &series.series {
        Series::Summaries(summaries) => {
            let has =
                |statistic: fn(&Summary) -> Option<f64>| summaries.iter().any(|it| statistic(it).is_some());
            Some([has(|it| it.mean), has(|it| it.median), has(|it| it.stddev)])
        }
        Series::Processes(_) | Series::Exact(_) => None,
    };
    let differing = base.metrics.iter().find_map(|series| {
        let (was, now) = stated(series).zip(stated(head.metric(&series.metric.name)?))?;
        let differs = was[..2] != now[..2] || was[2] && !now[2];
        differs.then_some((&series.metric.name, [was, now]))
    });
    let (name, sides) = differing?;
    let [was, now] = sides.map(|stated| {
        let names = NAMES.into_iter().zip(stated).filter(|(_, is_stated)| *is_stated);
        names.map(|(name, _)| name).collect::<Vec<_>>().join(", ")
    });
    Some(format!("statistics of {name}: {was} / {now}"))
}

pub fn recorded(side: &Benchmark) -> Option<&Workload> {
    side.artifact.as_ref().and_then(|artifact| artifact.workload.as_ref())
}
