//! Values that `--collect` took from a process, under the names of the torchbench runner. Like every metric
//! of results.jsonl they are lists. The lists of these values have one entry, because a value is taken once
//! per process and not in each repetition.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use benchgate_core::record::{CollectedRecord, OperatorTimesRecord};

/// Returns the metrics for the line of one process.
pub(super) fn metrics(backend: &str, collected: &CollectedRecord) -> Map<String, Value> {
    let mut metrics = Map::new();
    let mut put = |name: &str, value: Value| metrics.insert(name.to_owned(), json!([value]));
    if let Some(counters) = &collected.dynamo_counters {
        put("dynamo_counters", json!(counters));
    }
    if let Some(profile) = &collected.profile {
        let (cpu, cuda) = (profile.cpu_seconds.0, profile.cuda_seconds.0);
        let iterations = f64::from(profile.iterations.max(1));
        put("total_cpu_time_s", json!(cpu));
        put("per_iter_cpu_time_s", json!(cpu / iterations));
        put("total_cuda_time_s", json!(cuda));
        put("per_iter_cuda_time_s", json!(cuda / iterations));
        // The runner profiles its repetitions; here, fewer iterations are profiled after them.
        put("profiled_iterations", json!(profile.iterations));
    }
    if let Some(operators) = &collected.operators {
        // The runner uses this name for the operators of every backend except PyTorch/XLA.
        let name = if backend.starts_with("xla-") { "xla_unlowered_ops" } else { "inductor_ops" };
        let by_name: BTreeMap<&str, Value> =
            operators.iter().map(|(operator, times)| (operator.as_str(), operator_metrics(times))).collect();
        put(name, json!(by_name));
    }
    metrics
}

fn operator_metrics(times: &OperatorTimesRecord) -> Value {
    json!({
        "self_cpu_time_s": times.self_cpu_seconds.0,
        "self_cuda_time_s": times.self_cuda_seconds.0,
        "total_cpu_time_s": times.cpu_seconds.0,
        "total_cuda_time_s": times.cuda_seconds.0,
        "num_of_calls": times.calls,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collected() -> CollectedRecord {
        let text = r#"{
            "dynamo_counters": {"stats": {"calls_captured": 5, "unique_graphs": 1}},
            "profile": {"iterations": 4, "cpu_seconds": 0.5, "cuda_seconds": 0.0},
            "operators": {"aten::nonzero": {"calls": 8, "self_cpu_seconds": 0.25, "cpu_seconds": 0.5,
                                            "self_cuda_seconds": 0.0, "cuda_seconds": 0.0}}
        }"#;
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn every_number_has_the_runners_name() {
        let expected = json!({
            "dynamo_counters": [{ "stats": { "calls_captured": 5, "unique_graphs": 1 } }],
            "total_cpu_time_s": [0.5],
            "per_iter_cpu_time_s": [0.125],
            "total_cuda_time_s": [0.0],
            "per_iter_cuda_time_s": [0.0],
            "profiled_iterations": [4],
            "xla_unlowered_ops": [{ "aten::nonzero": {
                "self_cpu_time_s": 0.25,
                "self_cuda_time_s": 0.0,
                "total_cpu_time_s": 0.5,
                "total_cuda_time_s": 0.0,
                "num_of_calls": 8,
            } }],
        });
        assert_eq!(json!(metrics("xla-lazy", &collected())), expected);
    }

    #[test]
    fn operators_of_other_backends_have_the_runners_other_name() {
        assert!(metrics("inductor", &collected())["inductor_ops"][0]["aten::nonzero"].is_object());
    }

    #[test]
    fn no_fallback_differs_from_not_collected() {
        let none = CollectedRecord { operators: Some(BTreeMap::new()), ..CollectedRecord::default() };
        assert_eq!(json!(metrics("xla-lazy", &none)), json!({ "xla_unlowered_ops": [{}] }));
        assert!(metrics("xla-lazy", &CollectedRecord::default()).is_empty());
    }
}
