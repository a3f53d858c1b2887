//! The compile benchmark, which compares eager, jit, torch.compile, ONNX and TensorRT: its JSON artifacts,
//! and the Markdown tables that people keep of them.

mod json;
mod markdown;

pub(super) use json::read as read_json;
pub(super) use markdown::{is_header, read as read_markdown};

use benchgate_core::model::Benchmark;

/// Creates a benchmark named `model/device/backend`, leaving out unknown parts.
fn named(model: Option<&str>, device: Option<&str>, backend: &str) -> Benchmark {
    let parts: Vec<&str> = [model, device, Some(backend)].into_iter().flatten().collect();
    let mut benchmark = Benchmark::new(parts.join("/"));
    for (label, value) in [("model", model), ("target", device), ("backend", Some(backend))] {
        if let Some(value) = value {
            benchmark.labels.insert(label.to_owned(), value.to_owned());
        }
    }
    benchmark
}
