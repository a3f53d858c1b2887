//! Content that charts must show, and inputs that they must handle.

use strum::VariantArray;

use super::{Picture, picture};
use crate::report::{DrawnRun, html, quantity};
use benchgate_core::model::Unit;
use benchgate_core::record::{Number, RunFile};
use benchgate_gate::{CompareOptions, Policy, compare};

fn sample() -> Vec<DrawnRun> {
    let text = include_str!("../../../../../tests/fixtures/record/backends-v1.json");
    vec![DrawnRun::new("run", RunFile::from_slice(text.as_bytes()).unwrap(), None)]
}

fn light(runs: &[DrawnRun], which: Picture) -> Option<String> {
    picture(runs, which).map(|[light, _]| light)
}

#[test]
fn every_picture_is_drawn_light_and_dark_as_well_formed_xml() {
    for &which in Picture::VARIANTS {
        let runs = if which == Picture::Alignment { vec![drawn(paired(1))] } else { sample() };
        let [light, dark] = picture(&runs, which).unwrap();
        assert_ne!(light, dark, "{which}");
        assert!(light.contains("fill=\"#ffffff\"") && dark.contains("fill=\"#0d1117\""));
        assert_well_formed(&light);
    }
}

/// A browser does not show an SVG in which a single character is not escaped.
fn assert_well_formed(svg: &str) {
    let mut reader = quick_xml::Reader::from_str(svg);
    loop {
        match reader.read_event() {
            Ok(quick_xml::events::Event::Eof) => return,
            Ok(quick_xml::events::Event::Text(text)) => drop(text.decode().unwrap()),
            Ok(_) => {}
            Err(error) => panic!("{error}:\n{svg}"),
        }
    }
}

#[test]
fn the_latency_chart_names_each_backend_its_time_and_why_one_has_none() {
    let svg = light(&sample(), Picture::Latency).unwrap();
    for part in
        ["iree", "inductor", "eager", "unsupported: TensorRT runs on CUDA devices only", "mlp/cpu/main"]
    {
        assert!(svg.contains(part), "{part} is missing:\n{svg}");
    }
}

#[test]
fn a_speedup_is_against_eager() {
    let svg = light(&sample(), Picture::Speedup).unwrap();
    assert!(svg.contains("mlp/cpu/main against eager"), "{svg}");
    assert!(svg.contains("2.00 ×"), "iree takes half of eager's time:\n{svg}");
}

#[test]
fn names_are_no_markup() {
    let mut runs = sample();
    for record in &mut runs[0].file.backends {
        record.backend = "<script>\u{1b}[31m&".to_owned();
    }
    for svg in Picture::VARIANTS.iter().filter_map(|&which| light(&runs, which)) {
        assert!(!svg.contains("<script>") && !svg.contains('\u{1b}'), "{svg}");
        assert_well_formed(&svg);
    }
    assert!(!html(&runs).contains("<script>"));
    let mut file = paired(1);
    for side in &mut file.sides {
        side.benchmarks[0].name = format!("<script>\u{1b}[31m&\u{202e}{}", "x".repeat(300));
    }
    let svg = light(&[drawn(file)], Picture::Alignment).unwrap();
    assert!(!svg.contains("<script>") && !svg.contains('\u{1b}') && !svg.contains('\u{202e}'), "{svg}");
    assert_well_formed(&svg);
}

#[test]
fn a_row_that_moved_is_drawn_as_measured_and_moved_back_and_withheld_values_stay_out() {
    let mut run = drawn(paired(1));
    let comparison = run.comparison.as_mut().unwrap();
    assert_eq!(comparison.rows.iter().filter(|row| row.alignment.is_some()).count(), 1);
    let shown = light(std::slice::from_ref(&run), Picture::Alignment).unwrap();
    assert!(shown.contains(" ms</text>"), "{shown}");
    let comparison = run.comparison.as_mut().unwrap();
    crate::report::withhold(comparison, benchgate_core::model::Disclose::Ratios);
    let withheld = light(std::slice::from_ref(&run), Picture::Alignment).unwrap();
    assert!(!withheld.contains(" ms</text>"), "{withheld}");
    assert_eq!(shown.matches("<polyline").count(), 4);
}

#[test]
fn a_run_without_a_time_has_no_picture() {
    let mut runs = sample();
    runs[0].file.backends.clear();
    for benchmark in runs[0].file.sides.iter_mut().flat_map(|side| &mut side.benchmarks) {
        benchmark.processes.clear();
        benchmark.stages.clear();
    }
    for &which in Picture::VARIANTS {
        assert_eq!(light(&runs, which), None, "{which}");
    }
}

#[test]
fn without_other_backends_a_models_targets_stand_together_and_none_is_called_faster() {
    let mut runs = sample();
    runs[0].file.backends.clear();
    let svg = light(&runs, Picture::Latency).unwrap();
    assert!(svg.contains(">mlp</text>") && svg.contains(">cpu/main</text>"), "{svg}");
    assert_eq!(light(&runs, Picture::Speedup), None);
}

#[test]
fn another_tools_file_is_not_called_iree() {
    let mut runs = sample();
    let run = &mut runs[0].file;
    run.backends.clear();
    run.sides.iter_mut().for_each(|side| side.toolchain = None);
    for benchmark in run.sides.iter_mut().flat_map(|side| &mut side.benchmarks) {
        benchmark.labels.clear();
        benchmark.stages.clear();
        benchmark.name = "BM_gemm/256".to_owned();
    }
    let one = light(&runs, Picture::Latency).unwrap();
    assert!(one.contains(">BM_gemm/256</text>") && !one.contains(">iree"), "{one}");
    runs.push(DrawnRun::new("other", runs[0].file.clone(), None));
    let two = light(&runs, Picture::Latency).unwrap();
    assert!(two.contains(">run</text>") && two.contains(">other</text>") && !two.contains(">iree"), "{two}");
    assert!(light(&runs, Picture::Speedup).unwrap().contains("against run"), "{two}");
}

#[test]
fn the_sides_of_commands_are_called_base_and_head() {
    let mut file = paired(1);
    for side in &mut file.sides {
        side.toolchain = None;
        side.benchmarks[0].stages.clear();
        side.benchmarks[0].labels.clear();
    }
    let mut runs = vec![drawn(file.clone())];
    let one = light(&runs, Picture::Latency).unwrap();
    assert!(
        one.contains(">base</text>") && one.contains(">head</text>") && !one.contains(">run</text>"),
        "{one}"
    );
    let speedup = light(&runs, Picture::Speedup).unwrap();
    assert!(speedup.contains("against base"), "{speedup}");
    runs.push(DrawnRun::new("other", file, None));
    let two = light(&runs, Picture::Latency).unwrap();
    assert!(two.contains(">base (run)</text>") && two.contains(">head (other)</text>"), "{two}");
}

/// Returns a paired run with this many benchmarks, in which head takes 1.25 times as long.
fn paired(benchmarks: usize) -> RunFile {
    let text = include_str!("../../../../../tests/fixtures/record/run-v1.json");
    let mut file = RunFile::from_slice(text.as_bytes()).unwrap();
    let one = file.sides[0].benchmarks[0].clone();
    for (at, side) in file.sides.iter_mut().enumerate() {
        let slow = if at == 0 { 1.0 } else { 1.25 };
        side.benchmarks = (0..benchmarks)
            .map(|number| {
                let mut benchmark = one.clone();
                benchmark.name = format!("model{number}/cpu/main");
                if let Some(artifact) = &mut benchmark.artifact {
                    artifact.vmfb_sha256 = format!("{at:064x}");
                }
                let process = benchmark.processes[0].clone();
                benchmark.processes = (0..12)
                    .map(|turn: u8| {
                        let mut process = process.clone();
                        let slot = if at == 0 { [0, 3] } else { [1, 2] }[usize::from(turn % 2)];
                        process.slot =
                            Some(benchgate_core::model::BlockSlot { block: u32::from(turn / 2), slot });
                        process.failure = None;
                        process.peak_memory_bytes = Some(10 << 20);
                        process.seconds = Number(1.0);
                        process.started = format!("2026-11-20T21:{:02}:{:02}Z", number % 60, turn);
                        let latency = 1e6 * slow * (1.0 + f64::from(turn) * 0.001);
                        process.samples = [("latency".to_owned(), vec![latency; 3])].into_iter().collect();
                        process
                    })
                    .collect();
                benchmark
            })
            .collect();
    }
    file
}

fn drawn(file: RunFile) -> DrawnRun {
    let runs = file.runs("run");
    let [(_, base), (_, head)] = runs.as_slice() else { panic!("two sides") };
    let comparison = compare(base, head, &Policy::default(), &CompareOptions::default());
    DrawnRun::new("run", file, Some(comparison))
}

#[test]
fn a_picture_a_page_and_a_comparison_show_the_same_numbers() {
    let mut file = paired(3);
    // The sides' own locations disagree with the pairs.
    for process in file.sides[1].benchmarks[0].processes.iter_mut().take(5) {
        process.samples = [("latency".to_owned(), vec![2e6; 3])].into_iter().collect();
    }
    let run = drawn(file);
    let comparison = run.comparison.clone().unwrap();
    let row = comparison.rows.iter().find(|row| row.estimate.is_some()).unwrap();
    let (ratio, typical) = (row.estimate.as_ref().unwrap().ratio, row.typical);
    let runs = [run];
    let speedup = light(&runs, Picture::Speedup).unwrap();
    assert!(speedup.contains(&format!("{:.2} ×", 1.0 / ratio)), "{ratio}\n{speedup}");
    let page = html(&runs);
    let latency = light(&runs, Picture::Latency).unwrap();
    for value in [typical.base, typical.head].into_iter().flatten() {
        let shown = quantity(value, &Unit::Nanoseconds);
        assert!(latency.contains(&shown) && page.matches(&shown).count() > 2, "{shown}\n{latency}");
    }
}

/// Rendering takes time and memory in proportion to the page's length and the charts' area, so both are
/// limited.
#[test]
fn pictures_of_thousands_of_rows_stay_pictures() {
    let runs = [drawn(paired(600))];
    for &which in Picture::VARIANTS {
        let svg = light(&runs, which).unwrap();
        let height = svg.split("height=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        assert!(height.parse::<u32>().unwrap() < 3_000, "{which}: {height}");
        assert!(svg.len() < 200_000, "{which}: {} bytes", svg.len());
    }
    let page = html(&runs).len();
    assert!(page < 600 * 1_100 + 1_000_000, "{page} bytes");
}
