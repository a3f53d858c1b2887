//! What a picture must show, and must survive.

use super::{Picture, Theme, picture, png};
use crate::record::RunFile;

fn sample() -> Vec<(String, RunFile)> {
    let text = include_str!("../../../tests/fixtures/record/backends-v1.json");
    vec![("run".to_owned(), RunFile::from_slice(text.as_bytes()).unwrap())]
}

#[test]
fn every_picture_is_drawn_light_and_dark_and_renders_with_the_embedded_font() {
    for which in Picture::ALL {
        let [light, dark] = Theme::BOTH.map(|theme| picture(&sample(), which, theme).unwrap());
        assert_ne!(light, dark, "{}", which.as_str());
        assert!(light.contains("fill=\"#ffffff\"") && dark.contains("fill=\"#0d1117\""));
        let bytes = png(&light).unwrap();
        assert!(bytes.starts_with(b"\x89PNG") && bytes.len() > 4_000, "{}", which.as_str());
    }
}

/// Without glyphs a chart would be bars that nobody can name.
#[test]
fn text_leaves_ink_in_the_png() {
    let one = |text: &str| {
        let svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"90\" height=\"30\" \
             font-family=\"'DejaVu Sans', Verdana, sans-serif\"><text x=\"2\" y=\"20\">{text}</text></svg>"
        );
        png(&svg).unwrap()
    };
    for text in ["iree", "1.80 ×", "µs ±", "модель", "…"] {
        assert_ne!(one(text), one(""), "{text} is not drawn");
    }
}

#[test]
fn the_latency_chart_names_each_backend_its_time_and_why_one_has_none() {
    let svg = picture(&sample(), Picture::Latency, Theme::Light).unwrap();
    for part in
        ["iree", "inductor", "eager", "unsupported: TensorRT runs on CUDA devices only", "mlp/cpu/main"]
    {
        assert!(svg.contains(part), "{part} is missing:\n{svg}");
    }
}

#[test]
fn a_speedup_is_against_eager() {
    let svg = picture(&sample(), Picture::Speedup, Theme::Light).unwrap();
    assert!(svg.contains("mlp/cpu/main against eager"), "{svg}");
    assert!(svg.contains("2.00 ×"), "iree takes half of eager's time:\n{svg}");
}

#[test]
fn names_are_no_markup() {
    let mut runs = sample();
    for record in &mut runs[0].1.backends {
        record.backend = "<script>\u{1b}[31m&".to_owned();
    }
    for which in Picture::ALL {
        let svg = picture(&runs, which, Theme::Dark).unwrap();
        assert!(!svg.contains("<script>") && !svg.contains('\u{1b}'), "{svg}");
        png(&svg).unwrap();
    }
    assert!(!crate::report::html(&runs, &[]).contains("<script>"));
}

#[test]
fn a_run_without_a_time_has_no_picture() {
    let mut runs = sample();
    runs[0].1.backends.clear();
    for benchmark in runs[0].1.sides.iter_mut().flat_map(|side| &mut side.benchmarks) {
        benchmark.processes.clear();
        benchmark.stages.clear();
    }
    for which in Picture::ALL {
        assert_eq!(picture(&runs, which, Theme::Light), None, "{}", which.as_str());
    }
}

#[test]
fn without_other_backends_a_models_targets_stand_together_and_none_is_called_faster() {
    let mut runs = sample();
    runs[0].1.backends.clear();
    let svg = picture(&runs, Picture::Latency, Theme::Light).unwrap();
    assert!(svg.contains(">mlp</text>") && svg.contains(">cpu/main</text>"), "{svg}");
    assert_eq!(picture(&runs, Picture::Speedup, Theme::Light), None);
}

#[test]
fn another_tools_file_is_not_called_iree() {
    let mut runs = sample();
    let run = &mut runs[0].1;
    run.backends.clear();
    run.sides.iter_mut().for_each(|side| side.toolchain = None);
    for benchmark in run.sides.iter_mut().flat_map(|side| &mut side.benchmarks) {
        benchmark.labels.clear();
        benchmark.stages.clear();
        benchmark.name = "BM_gemm/256".to_owned();
    }
    let one = picture(&runs, Picture::Latency, Theme::Light).unwrap();
    assert!(one.contains(">BM_gemm/256</text>") && !one.contains(">iree"), "{one}");
    runs.push(("other".to_owned(), runs[0].1.clone()));
    let two = picture(&runs, Picture::Latency, Theme::Light).unwrap();
    assert!(two.contains(">run</text>") && two.contains(">other</text>") && !two.contains(">iree"), "{two}");
    assert!(picture(&runs, Picture::Speedup, Theme::Light).unwrap().contains("against run"), "{two}");
}
