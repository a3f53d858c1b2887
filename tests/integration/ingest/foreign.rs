//! Output of real tools that could be misread. The fixtures' READMEs describe how the files were made.

use benchgate::gate::{self, CompareOptions, Policy, Row};
use benchgate::ingest::{self, FileContent, Format, IngestError};
use benchgate::model::{Better, LintCode, Outcome, Run, Series};

use super::{benchmark, codes, fixture, read, samples};
use crate::harness::World;

fn names(run: &Run) -> Vec<&str> {
    run.benchmarks.iter().map(|benchmark| benchmark.name.as_str()).collect()
}

fn metrics(run: &Run, name: &str) -> Vec<String> {
    benchmark(run, name).metrics.iter().map(|series| series.metric.name.to_string()).collect()
}

#[test]
fn every_format_of_google_benchmark_reads_one_program_alike() {
    for version in ["1.7.1", "main"] {
        let json = fixture(&format!("google_benchmark/counters-{version}.json"));
        for format in [".csv", ".console", "-tabular.console"] {
            let other = fixture(&format!("google_benchmark/counters-{version}{format}"));
            assert_eq!(names(&other), names(&json), "{version}{format}");
            for (one, two) in json.benchmarks.iter().zip(&other.benchmarks) {
                assert_eq!(one.outcome, two.outcome, "{version}{format} {}", one.name);
                assert_eq!(one.labels, two.labels, "{version}{format} {}", one.name);
                let sorted = |run: &Run| {
                    let mut all = metrics(run, one.name.as_str());
                    all.sort();
                    all
                };
                assert_eq!(sorted(&json), sorted(&other), "{version}{format} {}", one.name);
            }
        }
    }
    let run = fixture("google_benchmark/counters-main.csv");
    assert_eq!(names(&run), ["BM_counters", "BM_errored", "BM_skipped", "BM_plain"]);
    assert_eq!(benchmark(&run, "BM_skipped").outcome, Outcome::Skipped { reason: "needs a GPU".to_owned() });
    assert!(matches!(benchmark(&run, "BM_errored").outcome, Outcome::Failed { .. }));
}

#[test]
fn bytes_per_second_of_the_console_agree_with_the_json_of_the_same_release() {
    for version in ["1.7.1", "main"] {
        let rate = |file: &str| {
            let run = fixture(&format!("google_benchmark/counters-{version}{file}"));
            let (bytes, items) = ("bytes_per_second", "items-per-second");
            samples(&run, "BM_counters", bytes)[0] / samples(&run, "BM_counters", items)[0]
        };
        // Each iteration processes 65,536 bytes and 10,000 items.
        for file in [".json", ".csv", ".console", "-tabular.console"] {
            assert!((rate(file) / 6.5536 - 1.0).abs() < 1e-4, "{version}{file}: {}", rate(file));
        }
    }
}

#[test]
fn a_users_statistic_is_a_summary_and_a_benchmark_of_such_a_name_stays_one() {
    const HEADER: &str = "name,iterations,real_time,cpu_time,time_unit\n";
    let rows = |last: &str| {
        let summary =
            "\"a\",5,9,9,ns\n\"a\",5,9,9,ns\n\"a_mean\",2,9,9,ns\n\"a_stddev\",2,0,0,ns\n\"a_cv\",2,0,0,\n";
        read(&format!("{HEADER}{summary}{last}")).unwrap()
    };
    assert_eq!(names(&rows("\"a_p90\",2,9,9,ns\n")), ["a"]);
    assert_eq!(names(&rows("\"a_p90\",2,9,9,ns\n\"a_p50\",2,9,9,ns\n")), ["a"]);
    // If the iterations differ, or there are several rows, or another row is in between, the row is a
    // benchmark.
    assert_eq!(names(&rows("\"a_b\",100,9,9,ns\n")), ["a", "a_b"]);
    assert_eq!(names(&rows("\"a_b\",2,9,9,ns\n\"a_b\",2,9,9,ns\n")), ["a", "a_b"]);
    assert_eq!(names(&rows("\"c\",2,9,9,ns\n\"a_b\",2,9,9,ns\n")), ["a", "c", "a_b"]);
}

#[test]
fn benchmarks_whose_names_end_like_statistics_are_judged_or_withhold_green() {
    let of = |rows: &[&str]| {
        read(&format!("name,iterations,real_time,cpu_time,time_unit\n{}\n", rows.join("\n"))).unwrap()
    };
    let is_ambiguous = |run: &Run, name: &str| codes(benchmark(run, name)).contains(&LintCode::DuplicateName);
    // Rows with different iterations, or with statistics of their own, are benchmarks.
    let run = of(&["norm_mean,5600,9,9,ns", "norm_median,700,20,20,ns", "norm_stddev,1200,7,7,ns"]);
    assert_eq!(names(&run), ["norm_mean", "norm_median", "norm_stddev"]);
    let own = |name: &str| {
        let rows = ["", "_mean", "_median", "_stddev"].map(|it| format!("{name}{it},2,9,9,ns\n"));
        [&rows[0], &rows.concat()].map(String::as_str).concat() + &format!("{name}_cv,2,0,0,")
    };
    assert_eq!(names(&of(&[&own("norm_mean"), &own("norm_stddev")])), ["norm_mean", "norm_stddev"]);
    let summary = ["norm_mean,3,9,9,ns", "norm_median,3,9,9,ns", "norm_stddev,3,1,1,ns"];
    let with = |last: &'static str| of(&[&summary[..], &[last]].concat());
    let (main, release_1_7) = (with("norm_cv,3,0.1111,0.1111,"), with("norm_cv,3,3.7037e+07,3.7e+07,ns"));
    for statistics in [&main, &release_1_7] {
        assert_eq!((names(statistics), is_ambiguous(statistics, "norm")), (vec!["norm"], false));
    }
    for last in ["norm_cv,3,9,9,ns", "norm_max,3,10,10,ns"] {
        let run = with(last);
        assert_eq!((names(&run), is_ambiguous(&run, "norm")), (vec!["norm"], true), "{last}");
    }
    for last in ["norm_max,700,30,30,ns", "norm_RMS,3,30,30,ns", "norm_BigO,3,30,30,ns"] {
        assert_eq!(names(&with(last)).len(), 2, "{last}");
    }
    // A single repetition has no statistics, and statistics of repetitions with different lengths can't be
    // checked.
    for rows in [&["norm,3,9,9,ns"][..], &["norm,3,9,9,ns", "norm,7,9,9,ns"]] {
        let run = of(&[rows, &["norm_mean,3,9,9,ns", "norm_stddev,3,0,0,ns"]].concat());
        assert!(is_ambiguous(&run, "norm"), "{rows:?}");
    }
    assert!(!is_ambiguous(
        &of(&["norm,3,9,9,ns", "norm,3,9,9,ns", "norm_mean,2,9,9,ns", "norm_stddev,2,0,0,ns"]),
        "norm"
    ));
}

#[test]
fn a_row_without_counters_is_whole_only_where_it_says_why() {
    const HEADER: &str = "name,iterations,real_time,cpu_time,time_unit,error_occurred,error_message,\"n\"\n";
    let run = read(&format!("{HEADER}\"a\",,,,,true,\"no device\"\n\"b\",1,2,3,ns,,,4\n")).unwrap();
    assert!(matches!(benchmark(&run, "a").outcome, Outcome::Failed { .. }));
    assert_eq!(samples(&run, "b", "n"), [4.0]);
    for cut in ["\"b\",1,2,3,ns,,\n", "\"b\",1,2,3,ns\n", "\"b\",,,,,true\n"] {
        assert!(read(&format!("{HEADER}{cut}")).is_err(), "{cut}");
    }
}

#[test]
fn nvbench_writes_null_for_an_empty_list_and_times_host_only_benchmarks() {
    let run = fixture("nvbench/no-axes.json");
    assert_eq!(names(&run), ["no_axes/Device=0", "skips/Device=0/In=I8", "on_the_host/Threads=2"]);
    assert!(matches!(benchmark(&run, "skips/Device=0/In=I8").outcome, Outcome::Skipped { .. }));
    let host = benchmark(&run, "on_the_host/Threads=2");
    let Series::Summaries(stated) = &host.metric("latency").unwrap().series else { panic!("{host:?}") };
    assert_eq!((stated[0].n, stated[0].mean), (Some(64), Some(2.1e6)));
    assert!((stated[0].median.unwrap() - 2.08e6).abs() < 1.0);
}

#[test]
fn the_compiling_repetition_is_left_out_of_every_list_of_times() {
    let line = r#"{"model": {"model_name": "m"}, "experiment": {"accelerator": "cuda"}, "metrics": {
        "per_iter_time": [9, 9, 9, 1, 1], "per_iter_cpu_time": [9, 9, 9, 2, 2], "total_cuda_time": [9, 9, 9, 3, 3],
        "xla_CompileTime_time_s": [8, 0, 0, 0, 0]}}"#;
    let run = read(line).unwrap();
    assert_eq!(samples(&run, "m/cuda", "per-iter-cpu-time"), [2e9, 2e9]);
    assert_eq!(samples(&run, "m/cuda", "total-cuda-time"), [3e9, 3e9]);
    assert_eq!(samples(&run, "m/cuda", "compile-time"), [8e9]);
}

#[test]
fn a_torchbench_line_without_a_list_of_times_has_failed_whatever_else_it_states() {
    let line = r#"{"model": {"model_name": "m"}, "experiment": {"accelerator": "cuda"}, "metrics": {
        "per_iter_time": "aborted", "total_time": [9, 9, 9, 1, 1]}}"#;
    let run = read(line).unwrap();
    assert!(matches!(benchmark(&run, "m/cuda").outcome, Outcome::Failed { .. }), "{run:?}");
}

#[test]
fn a_go_result_that_does_not_begin_its_line_is_an_error() {
    let lines = |mark: &str| {
        format!("goos: linux\nBenchmarkA-2 1000 123 ns/op\n{mark}BenchmarkB-2 1000 300000.00 ns/op\nPASS\n")
    };
    assert_eq!(read(&lines("")).unwrap().benchmarks.len(), 2);
    for mark in ["2026-11-01T10:00:00Z ", "\u{1b}[1m", "\u{feff}"] {
        let error = read(&lines(mark)).unwrap_err().to_string();
        assert!(error.contains("line 3"), "{mark:?}: {error}");
    }
    let logged = lines("").replace("PASS", "the log names BenchmarkC and 5 ns/op\nPASS");
    assert_eq!(read(&logged).unwrap().benchmarks.len(), 2);
}

#[test]
fn asv_files_hold_one_benchmark_for_each_combination() {
    let run = fixture("asv/samples.json");
    assert_eq!(run.benchmarks.len(), 12);
    assert_eq!(samples(&run, "bench.Tiles.time_sum(4096, 'row')", "latency"), [49_874.999_831_445_166]);
    let skipped = benchmark(&run, "bench.Tiles.time_sum(4096, 'column')");
    assert!(matches!(skipped.outcome, Outcome::Skipped { .. }), "{skipped:?}");
    assert!(matches!(benchmark(&run, "bench.time_fails").outcome, Outcome::Failed { .. }));
    assert_eq!(samples(&run, "bench.Tiles.peakmem_list(64, 'row')", "peak-host-memory"), [27_365_376.0]);
    let medians = fixture("asv/medians.json");
    let row = benchmark(&medians, "bench.time_plain");
    assert!(codes(row).contains(&LintCode::AggregatesOnly), "{row:?}");
    let text = std::fs::read_to_string(super::fixture_path("asv/samples.json")).unwrap();
    assert!(read(&text.replace("\"version\": 2", "\"version\": 3")).is_err());
    assert!(read(&text.replace("[\"64\", \"4096\"]", "[\"64\"]")).is_err());
}

#[test]
fn a_test_binary_that_did_not_end_well_withholds_green() {
    let result = "BenchmarkA-8   100   10.0 ns/op\nBenchmarkA-8   100   10.1 ns/op\n";
    let lints = |end: &str| read(&format!("goos: linux\n{result}{end}")).unwrap().lints;
    assert_eq!(lints("PASS\nok  \ta/b\t1.2s\n"), []);
    for end in ["FAIL\n", "FAIL\ta/b\t1.2s\n", "panic: boom\n", "exit status 2\n"] {
        assert_eq!(lints(end)[0].code, LintCode::TruncatedInput, "{end}");
    }
}

#[test]
fn a_key_that_stands_twice_is_refused() {
    let asv = "{\"version\": 2, \"commit_hash\": \"1\", \"result_columns\": [\"result\"], \"results\": {\"t.time_a\": [[0.02]], \"t.time_a\": [[0.01]]}}";
    assert!(read(asv).is_err());
    let line = "{\"model\": {\"model_name\": \"a\"}, \"experiment\": {}, \"metrics\": {\"total_time\": [2.0], \"total_time\": [1.0]}}\n";
    assert!(read(line).is_err());
    assert!(read(&line.replacen("\"total_time\": [2.0], ", "", 1)).is_ok());
    assert!(read(&asv.replacen("\"t.time_a\": [[0.02]], ", "", 1)).is_ok());
}

#[test]
fn a_column_in_an_unknown_unit_is_not_read_as_milliseconds() {
    let file =
        |header: &str| read(&format!("timestamp,model,device,{header}\n2026-11-20 10:00:00,a,cpu,10.0\n"));
    for (header, nanoseconds) in
        [("time", 1e7), ("latency_us", 1e4), ("latency (s)", 1e10), ("latency_seconds", 1e10)]
    {
        assert_eq!(samples(&file(header).unwrap(), "a/cpu", "latency"), [nanoseconds], "{header}");
    }
    for header in ["latency_fortnights", "time_of_day_h", "timeout_s", "timeout_ms"] {
        assert!(file(header).is_err(), "{header}");
    }
    let run =
        read("timestamp,model,device,timeout_s,latency_ms\n2026-11-20 10:00:00,a,cpu,300,10.0\n").unwrap();
    assert_eq!(samples(&run, "a/cpu", "latency"), [1e7]);
}

#[test]
fn times_of_every_run_are_not_called_summaries_because_of_a_metric_that_does_not_decide() {
    let run = fixture("hyperfine/two-commands.json");
    let compared = gate::compare(&run, &run, &Policy::default(), &CompareOptions::default());
    let named = |row: &Row| row.metric.as_ref().is_some_and(|metric| metric.name == "cpu-time");
    assert!(compared.rows.iter().any(named), "the file has no cpu-time");
    for row in compared.rows {
        assert!(row.lints.iter().all(|lint| lint.code != LintCode::AggregatesOnly), "{row:?}");
    }
}

fn stated(run: &Run, name: &str, metric: &str) -> (Option<f64>, Option<f64>) {
    match &benchmark(run, name).metric(metric).unwrap().series {
        Series::Summaries(all) if all.len() == 1 => (all[0].mean, all[0].median),
        other => panic!("not one summary: {other:?}"),
    }
}

#[test]
fn cargo_bench_prints_medians_of_libtest_and_estimates_of_criterion() {
    let run = fixture("cargo_bench/criterion-0.5-libtest.txt");
    let group = "a group with/slash/a rather long name of a function";
    let (short, long) = (format!("{group}/64"), format!("{group}/4096"));
    assert_eq!(names(&run), ["sum", &short, &long, "sum_4096", "sum_64"]);
    assert_eq!(stated(&run, "sum", "latency"), (Some(13.270), None));
    assert!((stated(&run, &long, "latency").0.unwrap() - 1184.4).abs() < 1e-9);
    assert_eq!(stated(&run, "sum_4096", "latency"), (None, Some(1148.71)));
    let text = std::fs::read_to_string(super::fixture_path("cargo_bench/criterion-0.5-libtest.txt")).unwrap();
    let failed =
        read(&text.replace(
            "test sum_64   ... bench:           9.91 ns/iter (+/- 3.06)",
            "test sum_64   ... FAILED",
        ));
    assert!(matches!(benchmark(&failed.unwrap(), "sum_64").outcome, Outcome::Failed { .. }));
    let cut = read(&text[..text.find("9.91").unwrap() + 10]).unwrap();
    assert!(codes(benchmark(&cut, "sum_4096")).iter().all(|code| *code != LintCode::TruncatedInput));
    let red = read(&text.replace("test result: ok", "test result: FAILED")).unwrap();
    assert_eq!(red.lints[0].code, LintCode::TruncatedInput);
}

#[test]
fn events_of_go_test_are_the_text_that_it_prints_by_package() {
    let run = fixture("go_test/go-1.19.json");
    let name = |name: &str| format!("example.com/sums/{name}");
    assert_eq!(
        names(&run),
        [name("BenchmarkSum/n=64-2"), name("BenchmarkSum/n=1024-2"), name("BenchmarkAppend-2")]
    );
    assert_eq!(samples(&run, &name("BenchmarkSum/n=64-2"), "latency"), [47.75, 50.43, 48.48]);
    assert_eq!(samples(&run, &name("BenchmarkAppend-2"), "allocs/op"), [8.0, 8.0, 8.0]);
    assert_eq!(run.lints, []);
    let text = std::fs::read_to_string(super::fixture_path("go_test/go-1.19.json")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let cut = read(&lines[..lines.len() - 3].join("\n")).unwrap();
    assert_eq!(cut.lints[0].code, LintCode::TruncatedInput);
    // If packages run at the same time, their lines alternate.
    let other = text.replace("example.com/sums", "example.com/other");
    let mixed: Vec<&str> = lines.iter().copied().zip(other.lines()).flat_map(|(a, b)| [a, b]).collect();
    let mixed = read(&mixed.join("\n")).unwrap();
    assert_eq!(mixed.benchmarks.len(), 6);
    assert_eq!(samples(&mixed, &name("BenchmarkSum/n=64-2"), "latency"), [47.75, 50.43, 48.48]);
}

#[test]
fn a_list_of_values_is_read_in_the_direction_that_is_chosen() {
    let bytes = std::fs::read(super::fixture_path("custom/list.json")).unwrap();
    assert!(ingest::read_detected(&bytes, "list.json").is_err(), "the file does not state a direction");
    let better = |format, name: &str, metric: &str| {
        let run = ingest::read(&bytes, format, "list.json").unwrap();
        benchmark(&run, name).metric(metric).map(|series| series.metric.better)
    };
    let (smaller, bigger) = (Format::CustomSmallerIsBetter, Format::CustomBiggerIsBetter);
    assert_eq!(better(smaller, "startup", "latency"), Some(Better::Lower));
    assert_eq!(better(smaller, "idle CPU", "Percent"), Some(Better::Lower));
    assert_eq!(better(bigger, "idle CPU", "Percent"), Some(Better::Higher));
    assert_eq!(better(bigger, "startup", "ns"), Some(Better::Higher));
    let run = ingest::read(&bytes, smaller, "list.json").unwrap();
    assert_eq!(stated(&run, "startup", "latency"), (Some(41.5e6), None));
    assert_eq!(stated(&run, "encode/64", "latency"), (Some(44601.0), None));
}

#[test]
fn measures_of_bencher_have_a_unit_and_a_direction_and_others_have_neither() {
    let run = fixture("custom/bencher.json");
    assert_eq!(names(&run), ["encode/64", "release build", "translate"]);
    assert_eq!(stated(&run, "release build", "build-time"), (Some(87.5e9), None));
    let throughput = benchmark(&run, "encode/64").metric("throughput").unwrap();
    assert_eq!(throughput.metric.better, Better::Higher);
    assert_eq!(metrics(&run, "translate"), ["latency", "accuracy"]);
    let other = r#"{"a": {"latency": {"value": 1.5}, "widgets": {"value": 3}}}"#;
    let run = ingest::read(other.as_bytes(), Format::BencherJson, "bmf.json").unwrap();
    assert_eq!(metrics(&run, "a"), ["latency", "widgets"]);
    assert_eq!(benchmark(&run, "a").metric("widgets").unwrap().metric.better, Better::Unknown);
}

#[test]
fn what_profilers_of_jmh_measured_is_kept_next_to_the_score() {
    let run = fixture("jmh/secondary.json");
    let name = "org.example.Lists.fill/avgt";
    assert_eq!(metrics(&run, name), ["latency", "gc.alloc.rate", "gc.alloc.rate.norm"]);
    let Series::Processes(forks) = &benchmark(&run, name).metric("gc.alloc.rate").unwrap().series else {
        panic!("the iterations of each fork are in the file");
    };
    assert_eq!(forks[1].samples, [1203.0, 1207.0]);
    assert!(codes(benchmark(&run, name)).contains(&LintCode::DroppedMetric), "gc.time is NaN");
}

#[test]
fn asv_keeps_the_quartiles_of_a_time() {
    let run = fixture("asv/medians.json");
    let Series::Summaries(all) = &benchmark(&run, "bench.time_plain").metric("latency").unwrap().series
    else {
        panic!("no samples were recorded");
    };
    assert_eq!((all[0].q1, all[0].q3, all[0].n), (Some(9830.3), Some(102_250.0), Some(6)));
    let text = std::fs::read_to_string(super::fixture_path("asv/medians.json")).unwrap();
    // The edited median is above the third quartile.
    let edited = read(&text.replace("[0.00010225]", "[0.00001025]")).unwrap();
    assert!(codes(benchmark(&edited, "bench.time_plain")).contains(&LintCode::Contradictory));
}

#[test]
fn a_negative_counter_is_kept_and_is_not_a_time_of_zero() {
    let file = |value: &str| {
        format!(
            "name,iterations,real_time,cpu_time,time_unit,error_occurred,error_message,\"drift\"\n\"a\",1,2,3,ns,,,{value}\n\"a\",1,2.1,3,ns,,,1\n"
        )
    };
    let run = read(&file("-4")).unwrap();
    assert_eq!(samples(&run, "a", "drift"), [-4.0, 1.0]);
    assert!(codes(benchmark(&run, "a")).is_empty());
    assert_eq!(samples(&read(&file("0")).unwrap(), "a", "drift"), [0.0, 1.0]);
}

#[test]
fn what_is_not_a_result_is_named_by_its_content() {
    let utf16: Vec<u8> =
        [0xff, 0xfe].into_iter().chain("{\"context\"".encode_utf16().flat_map(u16::to_le_bytes)).collect();
    let cases: [(&[u8], FileContent); 9] = [
        (b" \n", FileContent::Empty),
        (&utf16, FileContent::Utf16),
        (b"\xfd7zXZ\0\x00\x04", FileContent::Compressed),
        (b"PK\x03\x04...", FileContent::Archive),
        (b"\x7fELF\x02\x01\x01\0", FileContent::Binary),
        (b"<!doctype html><title>404</title>", FileContent::Html),
        (b"[{\"name\": \"a\", \"unit\": \"s\", \"value\": 1}]", FileContent::Directionless),
        (b"{\"hello\": 1}", FileContent::Json),
        (b"hello\n", FileContent::Text),
    ];
    for (bytes, content) in cases {
        let error = ingest::read_detected(bytes, "input").unwrap_err();
        assert_eq!(error, IngestError::Unrecognised { label: "input".to_owned(), content });
    }
}

#[test]
fn go_events_of_a_failed_test_or_package_withhold_green() {
    let events = |last: &str| {
        let output =
            "{\"Action\":\"output\",\"Package\":\"x\",\"Output\":\"BenchmarkA 100 1000 ns/op\\n\"}\n";
        format!("{output}{{\"Action\":\"skip\",\"Package\":\"without tests\"}}\n{last}\n")
    };
    let is_cut = |last: &str| {
        let run = read(&events(last)).unwrap();
        run.lints.iter().any(|lint| lint.code == LintCode::TruncatedInput)
    };
    assert!(!is_cut("{\"Action\":\"pass\",\"Package\":\"x\"}"));
    for last in [
        "{\"Action\":\"fail\",\"Package\":\"x\"}",
        "{\"Action\":\"skip\",\"Package\":\"x\"}",
        "{\"Action\":\"fail\",\"Package\":\"x\",\"Test\":\"BenchmarkB\"}\n{\"Action\":\"pass\",\"Package\":\"x\"}",
    ] {
        assert!(is_cut(last), "{last}");
    }
}

#[test]
fn a_file_of_the_compile_benchmark_is_drawn_with_compile_times_and_speed_up_over_eager() {
    let world = World::new();
    world.write(
        "mlp.json",
        r#"{"model":"mlp","device":"cpu","runs":10,"warmup_runs":3,"results":[
            {"backend":"eager","mean_latency_ms":0.493,"std_latency_ms":0.05,"compile_time_s":null,"success":true},
            {"backend":"jit","mean_latency_ms":0.635,"compile_time_s":0.0576,"success":true},
            {"backend":"torch_compile","mean_latency_ms":0.869,"compile_time_s":6.4231,"success":true},
            {"backend":"onnx","mean_latency_ms":0.051,"compile_time_s":0.0865,"success":true}]}"#,
    );
    let said = world.run(["report", "mlp.json", "--output-dir", "pictures"]).expect_code(0).stdout;
    for (picture, values) in [
        ("latency.svg", &["493.0 µs", "635.0 µs", "869.0 µs", "51.00 µs"][..]),
        ("compile-time.svg", &["57.60 ms", "6.423 s", "86.50 ms"]),
        ("speedup.svg", &["mlp against cpu/eager", "0.78 ×", "0.57 ×", "9.67 ×"]),
    ] {
        assert!(said.contains(picture), "{said}");
        let svg = world.read(&format!("pictures/{picture}"));
        for value in values {
            assert!(svg.contains(value), "{picture}: {value}\n{svg}");
        }
    }
    // Files of equal names are told apart by their folders.
    for folder in ["base", "head"] {
        world.write(&format!("{folder}/mlp.json"), world.read("mlp.json"));
    }
    let both = world.run(["report", "base/mlp.json", "head/mlp.json"]).expect_code(0).stdout;
    assert!(both.contains("base/mlp") && both.contains("head/mlp"), "{both}");
    let table = world.run(["report", "mlp.json", "--format", "markdown"]).expect_code(0).stdout;
    insta::assert_snapshot!(table.replace('\u{a0}', " "), @"
    ### `mlp` on `cpu`

    | backend | test | latency | compile | over eager | outputs |
    |---|---|--:|--:|--:|---|
    | `eager` | eval | 493.0 µs |  |  | not verified |
    | `jit` | eval | 635.0 µs | 57.60 ms | 0.78 × | not verified |
    | `torch_compile` | eval | 869.0 µs | 6.423 s | 0.57 × | not verified |
    | `onnx` | eval | 51.00 µs | 86.50 ms | 9.67 × | not verified |


    2 × eager: half of eager's time; below 1 ×, eager is faster. Latency: the typical process, ± half the range of all processes.
    ");
}
