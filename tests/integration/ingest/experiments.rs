//! Results of different experiments or machines are never read as repetitions of one.

use std::fmt::Write as _;

use benchgate::gate::{CompareOptions, Policy, compare};
use benchgate::ingest;
use benchgate::model::{Lint, LintCode, Run, Series, Verdict};

use super::{benchmark, codes, read};

fn names(run: &Run) -> Vec<&str> {
    run.benchmarks.iter().map(|benchmark| benchmark.name.as_str()).collect()
}

fn hyperfine(commands: &[(&str, &str)]) -> String {
    let one = |(command, parameters): &(&str, &str)| {
        format!(
            "{{\"command\": \"{command}\", \"mean\": 2, \"times\": [1, 2, 3], \"exit_codes\": [0, 0, 0], \"parameters\": {{{parameters}}}}}"
        )
    };
    let commands: Vec<String> = commands.iter().map(one).collect();
    format!("{{\"results\": [{}]}}", commands.join(", "))
}

#[test]
fn a_parameter_that_the_command_does_not_show_is_part_of_the_name() {
    let run =
        read(&hyperfine(&[("resnet18", "\"threads\": \"1\""), ("resnet18", "\"threads\": \"18\"")])).unwrap();
    assert_eq!(names(&run), ["resnet18/threads=1", "resnet18/threads=18"]);
    let run = read(&hyperfine(&[("conv -t 1", "\"t\": \"1\""), ("conv -t 8", "\"t\": \"8\"")])).unwrap();
    assert_eq!(names(&run), ["conv -t 1", "conv -t 8"]);
    assert_eq!(codes(&run.benchmarks[0]), []);
}

#[test]
fn a_name_that_comes_again_where_tools_write_it_once_withholds_green() {
    let nvbench = |name: &str| {
        format!(
            "{{\"name\": \"{name}\", \"states\": [{{\"summaries\": [{{\"tag\": \"nv/cold/time/gpu/mean\", \"data\": [{{\"name\": \"value\", \"value\": \"1.0\"}}]}}]}}]}}"
        )
    };
    let pytest = "{\"name\": \"a\", \"fullname\": \"a\", \"stats\": {\"data\": [1, 2, 3]}}";
    let backend = "{\"backend\": \"a\", \"mean_ms\": 1}";
    let twice = [
        hyperfine(&[("a", ""), ("a", "")]),
        format!("[{0}, {0}]", jmh(1)),
        format!("{{\"devices\": [], \"benchmarks\": [{0}, {0}]}}", nvbench("a")),
        format!("{{\"machine_info\": {{}}, \"benchmarks\": [{pytest}, {pytest}]}}"),
        format!("{{\"results\": [{backend}, {backend}]}}"),
        "| Backend | Mean Latency (ms) |\n|-|-|\n| a | 1 |\n| a | 2 |\n".to_owned(),
    ];
    for text in twice {
        let run = read(&text).unwrap();
        assert!(codes(&run.benchmarks[0]).contains(&LintCode::DuplicateName), "{text}");
    }
}

fn jmh(threads: u64) -> String {
    format!(
        "{{\"jmhVersion\": \"1.37\", \"benchmark\": \"a.B.f\", \"mode\": \"avgt\", \"threads\": {threads}, \"forks\": 2, \
         \"primaryMetric\": {{\"score\": 2, \"scoreUnit\": \"us/op\", \"rawData\": [[1, 2, 3], [1, 2, 3]]}}}}"
    )
}

#[test]
fn the_threads_of_jmh_are_part_of_the_name() {
    let run = read(&format!("[{}, {}]", jmh(1), jmh(8))).unwrap();
    assert_eq!(names(&run), ["a.B.f/avgt", "a.B.f/avgt/threads=8"]);
}

#[test]
fn columns_of_latency_csv_that_say_what_was_measured_are_part_of_the_name() {
    let run = read(
        "timestamp,run,model,device,batch,max_seq_len,memory_mb,latency_ms,latency_std\n\
         2026-11-22T09:00:00,1,m,cpu,1,128,31.5,10.0,0.1\n\
         2026-11-22T09:00:01,2,m,cpu,1,128,31.7,10.1,0.1\n\
         2026-11-22T09:00:02,3,m,cpu,2,128,31.9,19.0,0.1\n",
    )
    .unwrap();
    assert_eq!(names(&run), ["m/cpu/batch=1/max_seq_len=128", "m/cpu/batch=2/max_seq_len=128"]);
    assert_eq!(run.benchmarks[0].labels["batch"], "1");
}

#[test]
fn columns_of_latency_csv_that_date_a_row_or_hold_other_measurements_are_not() {
    for column in [
        "git_sha",
        "commit_hash",
        "run_id",
        "run_number",
        "compile_time",
        "max",
        "p999",
        "cv",
        "memory",
        "gpu_temp",
        "peak_memory_mb",
        "gpu_memory_bytes",
        "latency_p99_ms",
        "total_s",
        "kernel_us",
        "gpu_util_percent",
    ] {
        let run = read(&format!("model,device,{column},latency_ms\nm,cpu,1,10.0\nm,cpu,2,10.1\n")).unwrap();
        assert_eq!(names(&run), ["m/cpu"], "{column}");
    }
}

/// The compiler may be the intended change, but one file of two compilers is not one program.
#[test]
fn a_version_in_latency_csv_is_part_of_the_environment() {
    let file = |versions: [&str; 2]| {
        let rows = versions.map(|version| format!("2026-05-01,m,cpu,{version},1.5\n"));
        let text = format!("timestamp,model,device,compiler_version,time\n{}", rows.concat());
        read(&text).unwrap()
    };
    let run = file(["3.12.0", "3.12.0"]);
    assert_eq!(names(&run), ["m/cpu"]);
    assert_eq!(benchmark(&run, "m/cpu").labels["environment compiler_version"], "3.12.0");
    assert!(!codes(benchmark(&run, "m/cpu")).contains(&LintCode::SeveralPrograms));
    let mixed = file(["3.12.0", "3.13.0"]);
    assert!(codes(benchmark(&mixed, "m/cpu")).contains(&LintCode::SeveralPrograms));
}

#[test]
fn of_several_times_in_latency_csv_the_typical_one_is_read_or_none() {
    let read_with = |columns: &str| read(&format!("model,device,{columns}\nm,cpu,1.0,2.0\n"));
    for (columns, expected) in [
        ("latency_min_ms,latency_ms", 2.0),
        ("latency_ms,latency_min_ms", 1.0),
        ("latency_p50_ms,latency_mean_ms", 2.0),
        ("latency_max_ms,latency_median_ms", 2.0),
    ] {
        let run = read_with(columns).unwrap();
        let samples = match &run.benchmarks[0].metric("latency").unwrap().series {
            Series::Processes(processes) => processes[0].samples.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(samples, [expected * 1e6], "{columns}");
    }
    for columns in [
        "latency_ms,latency_ms",
        "time_ms,latency_ms",
        "latency_us,latency_ms",
        "latency_p50_ms,latency_p99_ms",
    ] {
        assert!(read_with(columns).is_err(), "{columns}");
    }
    for column in ["latency_ms (us)", "latency_ms_us"] {
        assert!(read(&format!("model,device,{column}\nm,cpu,1.0\n")).is_err(), "two units: {column}");
    }
    // The two sides of a comparison may have different statistics.
    let labels = |column: &str| {
        read(&format!("model,device,{column}\nm,cpu,1.0\n")).unwrap().benchmarks[0]
            .labels
            .get("column")
            .cloned()
    };
    assert_eq!(labels("latency_ms"), None);
    assert_eq!(labels("latency_min_ms").as_deref(), Some("latency_min_ms"));
}

/// An experiment can vary any of these columns.
#[test]
fn a_column_of_latency_csv_that_may_be_an_axis_keeps_experiments_apart() {
    for column in [
        "size_mb",
        "id",
        "index",
        "hash",
        "config_hash",
        "kernel_index",
        "gpu",
        "gpu_id",
        "tile_ms",
        "window_s",
        "time_limit_ms",
        "batch_max",
        "max_seq_len",
        "iterations",
        "temperature",
        "compile",
        "mb",
        "bytes",
        "ms",
    ] {
        let run = read(&format!("model,device,{column},latency_ms\nm,cpu,1,10.0\nm,cpu,2,10.1\n")).unwrap();
        assert_eq!(names(&run), [format!("m/cpu/{column}=1"), format!("m/cpu/{column}=2")]);
        assert_eq!(codes(&run.benchmarks[0]), [LintCode::SingleRepetition]);
    }
    // A measured time has more digits.
    for column in ["first_token_ms", "queue_ms", "ttft_ms", "h2d_us", "prefill_s"] {
        let run =
            read(&format!("model,device,{column},latency_ms\nm,cpu,5.047,10.0\nm,cpu,4.971,10.1\n")).unwrap();
        assert_eq!(names(&run), ["m/cpu"], "{column}");
    }
    let run = read("model,device,tile_ms,wall_ms\nm,cpu,1,10.0\nm,cpu,2,10.1\n").unwrap();
    assert_eq!(names(&run), ["m/cpu/tile_ms=1", "m/cpu/tile_ms=2"]);
    assert!(read("model,device,tile_ms,block_ms\nm,cpu,1,10.0\n").is_err(), "which is the time?");
}

fn google(rows: &[&str]) -> String {
    let rows: Vec<String> = rows
        .iter()
        .map(|more| format!("{{\"name\": \"a\", \"run_type\": \"iteration\", \"real_time\": 5, \"time_unit\": \"ns\", {more}}}"))
        .collect();
    format!("{{\"benchmarks\": [{}]}}", rows.join(", "))
}

#[test]
fn rows_of_one_name_from_two_benchmarks_of_a_program_withhold_green() {
    for (first, second) in [
        ("\"family_index\": 0", "\"family_index\": 1"),
        ("\"per_family_instance_index\": 0", "\"per_family_instance_index\": 1"),
        ("\"repetition_index\": 0", "\"repetition_index\": 0"),
    ] {
        let run = read(&google(&[first, second])).unwrap();
        assert!(codes(benchmark(&run, "a")).contains(&LintCode::DuplicateName), "{second}");
        assert_eq!(LintCode::DuplicateName.consequence(), LintCode::IncompleteJoin.consequence());
    }
    let run = read(&google(&["\"family_index\": 0", "\"family_index\": 0"])).unwrap();
    assert_eq!(codes(benchmark(&run, "a")), []);
}

#[test]
fn lines_of_one_name_below_different_configuration_are_different_experiments() {
    let line = "BenchmarkA-8 100 10 ns/op\n";
    let run = read(&format!("cpu: x\ntoolchain: tip\n{line}{line}")).unwrap();
    assert_eq!((codes(&run.benchmarks[0]), run.lints), (vec![], vec![]));
    let run = read(&format!("cpu: x\ntoolchain: tip\n{line}toolchain: go1.25\n{line}")).unwrap();
    assert_eq!(codes(&run.benchmarks[0]), [LintCode::DuplicateName]);
    let run = read(&format!("cpu: x\n{line}cpu: y\n{line}")).unwrap();
    assert_eq!(run.lints, [Lint::new(LintCode::TestbedMismatch, "cpu: x / y in one file")]);
}

#[test]
fn runs_that_were_appended_to_one_log_are_not_repetitions_of_one() {
    let console = "Benchmark Time CPU Iterations\nBM_main 1.25 ns 1.25 ns 100\n";
    let csv = "name,iterations,real_time,cpu_time,time_unit\n\"BM_main\",100,1.25,1.25,ns\n";
    for text in [console, csv] {
        assert_eq!(codes(benchmark(&read(text).unwrap(), "BM_main")), [LintCode::SingleRepetition]);
        let run = read(&text.repeat(2)).unwrap();
        assert_eq!(codes(benchmark(&run, "BM_main")), [LintCode::DuplicateName], "{text}");
    }
}

fn lints(base: &str, head: &str) -> Vec<LintCode> {
    let options = CompareOptions { today: "2026-11-23".to_owned(), ..CompareOptions::default() };
    let comparison = compare(&read(base).unwrap(), &read(head).unwrap(), &Policy::default(), &options);
    let rows = comparison.rows.iter().flat_map(|row| &row.lints);
    comparison.lints.iter().chain(rows).map(|lint| lint.code).collect()
}

#[test]
fn results_of_two_machines_are_a_testbed_mismatch_in_every_format_that_names_the_machine() {
    let nvbench = "{\"devices\": [{\"id\": 0, \"name\": \"MACHINE\"}], \"benchmarks\": [{\"name\": \"a\", \"states\": \
        [{\"device\": 0, \"summaries\": [{\"tag\": \"nv/cold/time/gpu/mean\", \"data\": [{\"name\": \"value\", \"value\": \"1.0\"}]}]}]}]}";
    let pytest = "{\"machine_info\": {\"node\": \"n\", \"cpu\": {\"brand_raw\": \"MACHINE\", \"count\": 8}}, \
        \"benchmarks\": [{\"name\": \"a\", \"stats\": {\"data\": [1, 2, 3]}}]}";
    let asv = |fact: &str| {
        format!(
            "{{\"version\": 2, \"commit_hash\": \"1\", \"params\": {{\"{fact}\": \"MACHINE\"}}, \"result_columns\": \
            [\"result\"], \"results\": {{\"t.time_a\": [[0.02]]}}}}"
        )
    };
    let go = "cpu: MACHINE\nBenchmarkA-8 100 10 ns/op\n".to_owned();
    let google = "{\"context\": {\"num_cpus\": 4, \"caches\": [{\"type\": \"MACHINE\", \"level\": 2, \"size\": 524288}]}, \
        \"benchmarks\": [{\"name\": \"a\", \"real_time\": 1, \"time_unit\": \"ns\"}]}";
    let mut files = vec![nvbench.to_owned(), pytest.to_owned(), go, google.to_owned()];
    files.extend(["machine", "arch", "cpu", "os", "ram"].map(asv));
    for file in files {
        let machine = |name: &str| file.replace("MACHINE", name);
        assert!(lints(&machine("one"), &machine("two")).contains(&LintCode::TestbedMismatch), "{file}");
        assert!(!lints(&machine("one"), &machine("one")).contains(&LintCode::TestbedMismatch), "{file}");
    }
}

#[test]
fn processors_and_hosts_are_compared_where_the_fingerprints_are_equal() {
    let file = |cpus: u32, node: &str| {
        format!(
            "{{\"machine_info\": {{\"node\": \"{node}\", \"system\": \"Linux\", \"cpu\": {{\"count\": {cpus}}}}}, \
            \"benchmarks\": [{{\"name\": \"a\", \"stats\": {{\"data\": [1, 2, 3]}}}}]}}"
        )
    };
    assert!(lints(&file(8, "n"), &file(2, "n")).contains(&LintCode::TestbedMismatch));
    assert!(lints(&file(8, "n"), &file(8, "m")).contains(&LintCode::OtherHost));
}

#[test]
fn rounds_that_another_clock_timed_are_not_compared() {
    let rounds = |options: &str, first: f64| {
        let data: Vec<String> = (0..20).map(|at| format!("{}", first + 1e-5 * f64::from(at))).collect();
        format!(
            "{{\"machine_info\": {{}}, \"benchmarks\": [{{\"name\": \"a\", \"options\": {options}, \
             \"stats\": {{\"data\": [{}]}}}}]}}",
            data.join(", ")
        )
    };
    let run = |options: &str, first: f64| read(&rounds(options, first)).unwrap();
    let timers = ["{\"timer\": \"perf_counter\"}", "{\"timer\": \"process_time\"}", "{}", "null"];
    let is_other = |base: &str, head: &str| {
        let comparison =
            compare(&run(base, 0.02), &run(head, 0.021), &Policy::default(), &CompareOptions::default());
        let row = &comparison.rows[0];
        let found = row.lints.iter().any(|lint| lint.code == LintCode::WorkloadChanged);
        assert!(!found || row.verdict == Verdict::Inconclusive, "{row:?}");
        found
    };
    for (at, base) in timers.iter().enumerate() {
        for (other, head) in timers.iter().enumerate() {
            // The last two files don't name a timer.
            assert_eq!(is_other(base, head), at.min(2) != other.min(2), "{base} {head}");
        }
    }
    let joined = ingest::join([run(timers[0], 0.02), run(timers[1], 0.02)]).unwrap().unwrap();
    assert!(codes(&joined.benchmarks[0]).contains(&LintCode::DuplicateName));
}

#[test]
fn sides_with_another_version_of_a_benchmark_or_another_accelerator_are_not_compared() {
    let asv = |version: &str| {
        format!(
            "{{\"version\": 2, \"commit_hash\": \"1\", \"result_columns\": [\"result\", \"version\"], \
            \"results\": {{\"t.time_a\": [[0.02], \"{version}\"]}}}}"
        )
    };
    assert!(lints(&asv("1"), &asv("2")).contains(&LintCode::WorkloadChanged));
    assert!(!lints(&asv("1"), &asv("1")).contains(&LintCode::WorkloadChanged));
    let unstated = asv("1").replace(", \"version\"]", "]").replace("[0.02], \"1\"", "[0.02]");
    assert!(lints(&asv("1"), &unstated).contains(&LintCode::WorkloadChanged));
    let line = |model: &str| {
        format!(
            "{{\"model\": {{\"model_name\": \"m\"}}, \"experiment\": {{\"accelerator\": \"cuda\", \
            \"accelerator_model\": \"{model}\"}}, \"metrics\": {{\"total_time\": [1, 1, 1, 1, 1]}}}}\n"
        )
    };
    assert!(lints(&line("A100"), &line("H200")).contains(&LintCode::WorkloadChanged));
    let run = read(&(line("A100") + &line("H200"))).unwrap();
    assert!(codes(&run.benchmarks[0]).contains(&LintCode::DuplicateName));
}

#[test]
fn a_crash_of_the_program_withholds_green() {
    let console = "Benchmark Time CPU Iterations\nBM_a 1.25 ns 1.25 ns 100\nBM_a 1.26 ns 1.26 ns 100\n";
    let csv = "name,iterations,real_time,cpu_time,time_unit\n\"BM_a\",100,1.25,1.25,ns\n";
    assert_eq!(read(console).unwrap().lints, []);
    for line in [
        "Segmentation fault (core dumped)",
        "Aborted",
        "Killed",
        "terminate called without an active exception",
    ] {
        for text in [format!("{console}{line}\n"), format!("{line}\n{csv}")] {
            let lints = read(&text).unwrap().lints;
            assert!(lints.iter().any(|lint| lint.code == LintCode::TruncatedInput), "{text}: {lints:?}");
        }
    }
}

#[test]
fn no_format_has_more_benchmarks_than_can_be_compared() {
    let many = |start: &str, one: &dyn Fn(usize) -> String, join: &str, end: &str| {
        let mut text = start.to_owned();
        for number in 0..=ingest::MOST_BENCHMARKS {
            let separator = if number == 0 { "" } else { join };
            write!(text, "{separator}{}", one(number)).unwrap();
        }
        text + end
    };
    let console = "Benchmark Time CPU Iterations\n";
    let files = [
        many(
            "{\"benchmarks\": [",
            &|n| format!("{{\"name\": \"{n}\", \"real_time\": 1, \"time_unit\": \"ns\"}}"),
            ",",
            "]}",
        ),
        many(console, &|n| format!("b{n} 1.25 ns 1.25 ns 1\n"), "", ""),
        many("timestamp,model,device,time\n", &|n| format!("2026-11-23,m{n},cpu,1\n"), "", ""),
        many("", &|n| format!("BenchmarkB{n} 1 1 ns/op\n"), "", ""),
        many(
            "{\"results\": [",
            &|n| format!("{{\"command\": \"{n}\", \"mean\": 1, \"times\": [1]}}"),
            ",",
            "]}",
        ),
        many(
            "{\"version\": 2, \"commit_hash\": \"\", \"result_columns\": [\"result\"], \"results\": {",
            &|n| format!("\"time_{n}\": [[1]]"),
            ",",
            "}}",
        ),
    ];
    for text in files {
        let start = &text[..60];
        let error = read(&text).unwrap_err().to_string();
        assert!(error.contains("more than 20000 benchmarks"), "{start}: {error}");
    }
}
