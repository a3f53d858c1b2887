//! Files of real tools in their usual use, which must be read and judged, each next to the file that it must not be
//! taken for.

use serde_json::{Value, json};

use crate::harness::{Outcome, World};
use crate::rated_files::{self, FORMATS, least, mean, median, times};

/// The number of files of a side: enough for a verdict without an assumed spread.
const FILES: u32 = 24;

/// A factor near one that differs from repetition to repetition.
fn noise(file: u32, repetition: u32) -> f64 {
    1.0 + 0.008 * f64::from((7919 * file + 104_729 * repetition) % 1009) / 1009.0
}

/// A file of Google Benchmark with one benchmark of three repetitions. `more` adds fields to each row.
fn google_benchmark(file: u32, time: f64, context: &Value, more: impl Fn(u32) -> Value) -> String {
    let mut stated = json!({"date": "2026-11-20T10:00:00+00:00", "num_cpus": 2, "mhz_per_cpu": 2000,
        "library_build_type": "release", "load_avg": [0.5]});
    stated.as_object_mut().unwrap().extend(context.as_object().unwrap().clone());
    let row = |repetition: u32| {
        let time = time * noise(file, repetition);
        let mut row = json!({"name": "BM_a", "run_name": "BM_a", "run_type": "iteration", "repetitions": 3,
            "repetition_index": repetition, "threads": 1, "iterations": 10, "real_time": time, "cpu_time": time,
            "time_unit": "ns"});
        row.as_object_mut().unwrap().extend(more(repetition).as_object().unwrap().clone());
        row
    };
    json!({"context": stated, "benchmarks": (0..3).map(row).collect::<Vec<_>>()}).to_string()
}

fn nothing(_: u32) -> Value {
    json!({})
}

/// Compares all files of both sides.
fn compare(world: &World) -> Outcome {
    world.run(["compare", "base-*", "head-*", "--format", "json"])
}

/// Writes a file of each side for each session.
fn write(world: &World, file: impl Fn(&str, u32) -> String) {
    for number in 0..FILES {
        for side in ["base", "head"] {
            // No file is a copy of another one.
            let shift = if side == "head" { 100 } else { 0 };
            world.write(&format!("{side}-{number:02}.json"), file(side, number + shift));
        }
    }
}

#[test]
fn machine_state_that_varies_from_run_to_run_is_no_other_benchmark() {
    let world = World::new();
    let state = |file: u32| json!({"free_mem": format!("{} kB", 23_000_000 + 977 * file), "container": "a"});
    write(&world, |_, file| google_benchmark(file, 100.0, &state(file), nothing));
    compare(&world).expect_code(0);
    // The ranges of both sides overlap, or else it is a setting.
    let other = |side: &str, file: u32| if side == "head" { 100 + file % 5 } else { 1 + file % 5 };
    write(&world, |side, file| {
        google_benchmark(file, 100.0, &json!({"solver": other(side, file).to_string()}), nothing)
    });
    assert!(compare(&world).expect_code(11).stdout.contains("\"workload-changed\""));
    let claimed = |side: &str| if side == "head" { "varies from 0 to 1e9" } else { "5" };
    write(&world, |side, file| google_benchmark(file, 100.0, &json!({"solver": claimed(side)}), nothing));
    assert!(compare(&world).expect_code(11).stdout.contains("\"workload-changed\""));
    // Two values can be two settings, and names of settings always are.
    for setting in [
        |file: u32| json!({"unknown": (file % 2).to_string()}),
        |file: u32| json!({"batch_size": (file % 5).to_string()}),
    ] {
        write(&world, |_, file| google_benchmark(file, 100.0, &setting(file), nothing));
        assert!(compare(&world).expect_code(11).stdout.contains("\"duplicate-name\""));
    }
}

#[test]
fn the_compiler_of_a_side_is_the_change_and_not_other_work() {
    let world = World::new();
    let context = |side: &str| json!({"compiler": format!("gcc for {side}"), "cxxflags": side});
    write(&world, |side, file| google_benchmark(file, 100.0, &context(side), nothing));
    compare(&world).expect_code(0);
}

#[test]
fn what_names_the_side_or_a_time_of_the_day_is_no_other_work() {
    let world = World::new();
    let context = |side: &str, started: &str| json!({"output": format!("{side}.json"), "binary": format!("build/bench_{side}"), "start_time": started});
    let started = |side: &str| if side == "base" { "10:00:00" } else { "10:20:00.5" };
    write(&world, |side, file| google_benchmark(file, 100.0, &context(side, started(side)), nothing));
    compare(&world).expect_code(0);
    let other = |side: &str| if side == "base" { "head" } else { "base" };
    write(&world, |side, file| google_benchmark(file, 100.0, &context(other(side), "10:00:00"), nothing));
    compare(&world).expect_code(11);
}

#[test]
fn a_load_that_both_sides_share_forbids_no_verdict() {
    let world = World::new();
    let loaded = |file: u32, load: f64| json!({"load_avg": [load + 0.1 * f64::from(7 * file % 11)]});
    let compare_at = |loads: [f64; 2], time: f64| {
        write(&world, |side, file| {
            let (load, time) = if side == "head" { (loads[1], time) } else { (loads[0], 100.0) };
            google_benchmark(file, time, &loaded(file, load), nothing)
        });
        compare(&world)
    };
    compare_at([6.0, 6.0], 100.0).expect_code(0);
    compare_at([6.0, 6.0], 200.0).expect_code(10);
    // A larger load can slow head down, but not by this factor.
    assert!(compare_at([6.0, 8.0], 120.0).expect_code(11).stdout.contains("host-overloaded"));
    compare_at([6.0, 8.0], 2500.0).expect_code(10);
}

#[test]
fn two_layouts_in_a_few_files_are_not_red_and_a_clear_slowdown_is() {
    let world = World::new();
    // Processes of one program are in one of two layouts, 10 % apart.
    let compare_with = |slow_base: &[u32], slow_head: &[u32], files: u32, more: f64| {
        for file in 0..files {
            for (side, slow) in [("base", slow_base), ("head", slow_head)] {
                let of_head = if side == "head" { more } else { 1.0 };
                let time = of_head * if slow.contains(&file) { 110.0 } else { 100.0 };
                let shift = if side == "head" { 100 } else { 0 };
                let text = google_benchmark(file + shift, time, &json!({}), nothing);
                world.write(&format!("{side}-{file:02}.json"), text);
            }
        }
        compare(&world)
    };
    compare_with(&[3], &[0, 1, 2, 4, 5], 6, 1.0).expect_code(11);
    compare_with(&[], &[], 6, 1.1).expect_code(10);
    // A layout does not explain this.
    compare_with(&[3], &[0, 1, 2, 4, 5], 6, 2.0).expect_code(10);
}

#[test]
fn containers_have_random_names() {
    let world = World::new();
    let named = |name: String| json!({ "host_name": name });
    write(&world, |_, file| {
        google_benchmark(
            file,
            100.0,
            &named(format!("{:012x}", 123_456_789_123_u64 * u64::from(file + 7))),
            nothing,
        )
    });
    compare(&world).expect_code(0);
    write(&world, |_, file| google_benchmark(file, 100.0, &named(format!("runner-{}", file % 2)), nothing));
    assert!(compare(&world).expect_code(11).stdout.contains("testbed-mismatch"));
}

#[test]
fn head_does_less_work_although_the_work_of_calls_varies() {
    let world = World::new();
    let compare_at = |work: f64, time: f64, is_rate: bool| {
        write(&world, |side, file| {
            let (work, time) = if side == "head" { (work, time) } else { (4000.0, 1e9) };
            google_benchmark(file, time, &json!({}), |repetition| {
                let time = time * noise(file, repetition);
                let work = (work * (1.0 + 0.003 * f64::from((3 * repetition + file) % 7))).round();
                match is_rate {
                    true => json!({"items_per_second": work / (time * 1e-9)}),
                    false => json!({ "tokens": work }),
                }
            })
        });
        compare(&world)
    };
    for is_rate in [true, false] {
        compare_at(4000.0, 1e9, is_rate).expect_code(0);
        compare_at(4000.0, 0.5e9, is_rate).expect_code(0);
        for time in [1e9, 0.5e9] {
            let outcome = compare_at(2000.0, time, is_rate).expect_code(11);
            assert!(outcome.stdout.contains("\"workload-changed\""), "{}", outcome.stdout);
        }
    }
}

#[test]
fn a_rate_that_one_repetition_lacks_is_left_out() {
    let world = World::new();
    write(&world, |side, file| {
        google_benchmark(file, 100.0, &json!({}), |repetition| match (side, repetition) {
            ("base", 1) => json!({}),
            _ => json!({"items_per_second": 1e6}),
        })
    });
    assert!([Some(0), Some(11)].contains(&compare(&world).code));
}

#[test]
fn one_file_of_base_hides_no_worse_quality() {
    let world = World::new();
    // The accuracy of each base file but one, the accuracy of that one, and that of head's files.
    let compare_with = |lost: Value, of_head: f64| {
        write(&world, |side, file| {
            let vary = |accuracy: f64| json!({"accuracy": accuracy + 0.0001 * f64::from(7 * file % 11)});
            let accuracy = match (side, file) {
                ("base", 7) => lost.clone(),
                ("base", _) => vary(0.9),
                _ => vary(of_head),
            };
            google_benchmark(file, 100.0, &json!({}), |_| accuracy.clone())
        });
        compare(&world)
    };
    for lost in [json!({}), json!({"accuracy": 0.3})] {
        compare_with(lost.clone(), 0.9).expect_code(0);
        let outcome = compare_with(lost, 0.4).expect_code(11);
        assert!(outcome.stdout.contains("\"reported-problem\""), "{}", outcome.stdout);
    }
}

#[test]
fn tables_of_google_benchmark_with_labels_fits_and_summaries_are_read() {
    let world = World::new();
    let table = |rows: &str| format!("-----\nBenchmark  Time  CPU  Iterations\n-----\n{rows}");
    let fit = "BM_sort/64  331 ns  330 ns  2000 std::sort n=64\nBM_sort/128  731 ns  730 ns  1000 std::sort n=128\n\
        BM_sort_BigO  4.24 NlgN  2.70 NlgN std::sort n=64\nBM_sort_RMS  28 %  30 %  std::sort n=64\n";
    let summaries = "BM_sort/repeats:10_mean  16537 ns  6545 ns  10\nBM_sort/repeats:10_median  15666 ns  6443 ns  10\n\
        BM_sort/repeats:10_stddev  4582 ns  196 ns  10\nBM_sort/repeats:10_cv  27.71 %  2.99 %  10\n";
    // The console prints fewer digits of 3.26 than of 0.095.
    let rounded = "BM_a  3.26 us  3.26 us  10\nBM_a  0.126 us  0.126 us  10\nBM_a  0.097 us  0.097 us  10\n\
        BM_a  0.103 us  0.103 us  10\nBM_a  0.095 us  0.095 us  10\nBM_a_mean  0.735 us  0.735 us  5\n";
    for rows in [fit, summaries, rounded] {
        world.write("a.txt", table(rows));
        world.write(
            "b.txt",
            table(&rows.replace("331", "332").replace("15666", "15667").replace("0.103", "0.104")),
        );
        let outcome = world.run(["compare", "a.txt", "b.txt", "--format", "json"]);
        assert!(![20, 21].contains(&outcome.code.unwrap()), "{}", outcome.said());
    }
    let wrong = rounded.replace("0.735", "0.755");
    world.write("a.txt", table(&wrong));
    world.run(["compare", "a.txt", "a.txt"]).expect_code(20);
}

#[test]
fn messages_of_the_go_command_and_its_version_are_no_configuration() {
    let world = World::new();
    let text = |above: &str, time: u32| {
        let lines =
            (0..8).map(|line| format!("BenchmarkSum-2  1000  {}.{line} ns/op\n", time + 7 * line % 5));
        format!("{above}goos: linux\ngoarch: amd64\npkg: x\n{}PASS\n", lines.collect::<String>())
    };
    world.write("a.txt", text("go: downloading example.com/dep v1.0.0\ntoolchain: go1.21.3\n", 100));
    world.write("b.txt", text("toolchain: go1.22.1\n", 100));
    world.write("c.txt", text("mode: fast\n", 100));
    let compare = |head| world.run(["compare", "a.txt", head, "--between-cv", "0.1%", "--format", "json"]);
    let outcome = compare("b.txt");
    assert!(!outcome.stdout.contains("workload-changed"), "{}", outcome.stdout);
    assert!(compare("c.txt").stdout.contains("workload-changed"));
}

#[test]
fn whole_nanoseconds_are_not_exact() {
    let world = World::new();
    let write = |side: &str, time: &dyn Fn(u32) -> u32| {
        for file in 0..FILES {
            let line = format!("test sum ... bench:  {} ns/iter (+/- 0)\n", time(file));
            world.write(
                &format!("{side}-{file:02}"),
                format!("{line}\ntest result: ok. 0 passed; 0 failed; 0 ignored; 1 measured\n"),
            );
        }
    };
    write("base", &|_| 8);
    write("head", &|_| 8);
    assert!(compare(&world).expect_code(11).stdout.contains("rounded-time"));
    // Noise that is larger than the rounding makes it average out.
    write("base", &|file| 60 + 7 * file % 5);
    write("head", &|file| 60 + 7 * (file + 3) % 5);
    assert!(!compare(&world).stdout.contains("rounded-time"));
}

#[test]
fn a_column_that_states_how_right_results_are_names_no_benchmark() {
    let world = World::new();
    let table = |top1: f64, shift: u32| {
        let row = |row: u32| {
            format!(
                "m,cpu,{:.5},{:.4},{}\n",
                12.0 * noise(row + shift, 0),
                top1 + 0.0001 * f64::from(row),
                70 + row
            )
        };
        format!("model,device,latency_ms,top1,power_w\n{}", (0..12).map(row).collect::<String>())
    };
    world.write("a.csv", table(0.76, 0));
    world.write("b.csv", table(0.76, 100));
    let outcome = world.run(["compare", "a.csv", "b.csv", "--format", "json"]);
    let json: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let names: Vec<&str> =
        json["rows"].as_array().unwrap().iter().filter_map(|row| row["benchmark"].as_str()).collect();
    assert!(names.iter().all(|name| *name == "m/cpu"), "{names:?}");
    world.write("b.csv", table(0.4, 100));
    let outcome = world.run(["compare", "a.csv", "b.csv", "--between-cv", "0.1%"]).expect_code(11);
    assert!(outcome.stdout.contains("top1"), "{}", outcome.stdout);
}

#[test]
fn a_quoted_comma_a_counter_named_skipped_and_a_pinned_processor_are_read() {
    let world = World::new();
    let table = |shift: u32| {
        let row = |row: u32| format!("m,cpu,{:.5},\"warm, ok\"\n", 12.0 * noise(row + shift, 0));
        format!("model,device,latency_ms,note\n{}", (0..12).map(row).collect::<String>())
    };
    world.write("a.csv", table(0));
    world.write("b.csv", table(100));
    world.run(["compare", "a.csv", "b.csv", "--between-cv", "1%"]).expect_code(0);
    write(&world, |_, file| google_benchmark(file, 100.0, &json!({}), |_| json!({"skipped": 3})));
    compare(&world).expect_code(0);
    let log = |pin: &str, shift: u32| {
        let line = |row: u32| format!("BenchmarkSum-2  1000  {:.2} ns/op\n", 100.0 * noise(row + shift, 0));
        format!("{pin}goos: linux\npkg: x\n{}PASS\n", (0..8).map(line).collect::<String>())
    };
    world.write("a.txt", log("", 0));
    for (pin, code) in [("using CPU 3\n", 0), ("no GPU found, using CPU\n", 11)] {
        world.write("b.txt", log(pin, 100));
        world.run(["compare", "a.txt", "b.txt", "--between-cv", "0.1%"]).expect_code(code);
    }
}

#[test]
fn a_checksum_of_letters_in_a_label_must_be_equal() {
    let world = World::new();
    let compare_with = |of_head: &str| {
        write(&world, |side, file| {
            let checksum = if side == "head" { of_head } else { "aabbccdd" };
            let label = json!({"label": format!("commit=0123456{} checksum={checksum}", file % 10)});
            google_benchmark(file, 100.0, &json!({}), |_| label.clone())
        });
        compare(&world)
    };
    compare_with("aabbccdd").expect_code(0);
    assert!(compare_with("11223344").expect_code(11).stdout.contains("workload-changed"));
}

#[test]
fn a_time_that_the_console_rounds_to_zero_has_one_finding_with_the_step() {
    let world = World::new();
    let rows = |name: &str, time: &str| {
        let row = format!("{time} ms  {time} ms  4000 bytes_alloc=4.096k hit_ratio=0.93\n");
        let summaries = ["mean", "median", "stddev"];
        let summaries = summaries.map(|statistic| format!("{name}_{statistic}  {time} ms  {time} ms  3\n"));
        let ratio = format!("{name}_cv  0.24 %  0.53 %  3\n");
        format!("{}{}{ratio}", format!("{name}  {row}").repeat(3), summaries.concat())
    };
    let header = "-----\nBenchmark  Time  CPU  Iterations\n-----\n";
    world.write("a.txt", format!("{header}{}", rows("BM_cnt", "0.000")));
    world.write("b.txt", format!("{header}{}", rows("BM_cnt", "0.000").replace("4000", "4001")));
    let compare = |format| world.run(["compare", "a.txt", "b.txt", "--format", format]).expect_code(20);
    let json = compare("json").json();
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 1, "{rows:#?}");
    for code in ["duplicate-name", "dropped-metric"] {
        assert!(!json.to_string().contains(code), "{code}: {json:#}");
    }
    let said = compare("terminal").said();
    assert!(said.contains("`--benchmark_format=json`"), "{said}");
}

#[test]
fn a_benchmark_that_fails_on_both_sides_can_be_left_out() {
    let world = World::new();
    let failing = |file: u32| {
        let mut json: Value =
            serde_json::from_str(&google_benchmark(file, 100.0, &json!({}), nothing)).unwrap();
        let row = json!({"name": "BM_gpu", "run_name": "BM_gpu", "run_type": "iteration", "repetitions": 3,
            "repetition_index": 0, "error_occurred": true, "error_message": "no GPU"});
        json["benchmarks"].as_array_mut().unwrap().push(row);
        json.to_string()
    };
    write(&world, |_, file| failing(file));
    let compare = |more: &[&str]| world.run(["compare", "base-*", "head-*"].iter().chain(more));
    let said = compare(&[]).expect_code(20).said();
    assert!(said.contains("`--exclude REGEX`"), "{said}");
    let said = compare(&["--exclude", "^BM_gpu$"]).expect_code(0).said();
    assert!(said.contains("--exclude leaves out 1 benchmark, which was not judged: BM_gpu"), "{said}");
    compare(&["--filter", "BM_", "--exclude", "^BM_gpu$"]).expect_code(0);
    // A pattern without an effect, and a comparison without a benchmark, are mistakes.
    compare(&["--exclude", "^BM_gpu$", "--exclude", "^BM_cpu$"]).expect_code(2);
    compare(&["--exclude", "BM_"]).expect_code(2);
    compare(&["--filter", "BM_gpu", "--exclude", "gpu"]).expect_code(2);
    let shown = world.run(["report", "base-00.json", "--exclude", "gpu"]).expect_code(0).stdout;
    assert!(!shown.contains("BM_gpu"), "{shown}");
    world.run(["report", "base-00.json", "--exclude", "cpu"]).expect_code(2);
}

#[test]
fn a_benchmark_that_head_lacks_has_a_next_step() {
    let world = World::new();
    write(&world, |side, file| {
        let text = google_benchmark(file, 100.0, &json!({}), nothing);
        if side == "head" { text.replace("BM_a", "BM_b") } else { text }
    });
    let said = world.run(["compare", "base-*", "head-*"]).expect_code(12).said();
    assert!(said.contains("`--rename FROM TO`") && said.contains("`--exclude REGEX`"), "{said}");
}

#[test]
fn a_file_of_summaries_is_said_once_to_have_no_repetitions() {
    let world = World::new();
    write(&world, |_, file| json!({"conv": {"latency": {"value": 1000.0 * noise(file, 0)}}}).to_string());
    let json = compare(&world).json();
    let lints = json["rows"][0]["lints"].as_array().unwrap();
    let found = lints.iter().filter(|lint| lint["code"] == "aggregates-only").count();
    assert_eq!(found, 1, "{lints:#?}");
}

/// Labels, counters and scores that differ from process to process of one program, by the number of a file.
fn varying(of: &str, file: u32) -> Value {
    let rare = |chance: u32| (file * 7919 % 1009) % 100 < chance;
    let tail = f64::from(file * 104_729 % 997) / 997.0;
    match of {
        "path" => json!({"label": if rare(8) { "slow path" } else { "fast path" }}),
        "state" => json!({"label": if rare(12) { "max iterations reached" } else { "converged" }}),
        "checksum" => json!({"label": format!("crc={:08x}", file.wrapping_mul(2_654_435_761))}),
        "place" => json!({"label": format!("pid {} tmp=/tmp/x{file}", 4000 + file)}),
        "rare label" => json!({"label": if rare(4) { "preempted" } else { "" }}),
        "count" => json!({"label": format!("errors: {}", u32::from(rare(30)))}),
        "amount" => json!({"rows": 1000 + u32::from(rare(8))}),
        "loss" => json!({"loss": (2.5 * tail).exp()}),
        "accuracy" => json!({"accuracy": f64::from(u8::from(!rare(6)))}),
        "nan" => json!({"nan_count": u32::from(rare(8))}),
        other => panic!("{other}"),
    }
}

/// A fact is compared with what varies at base: one process of 24 with another label is chance.
#[test]
fn labels_and_scores_that_vary_from_process_to_process_are_no_difference() {
    let cases =
        ["path", "state", "checksum", "place", "rare label", "count", "amount", "loss", "accuracy", "nan"];
    for of in cases {
        let world = World::new();
        write(&world, |_, file| google_benchmark(file, 100.0, &json!({}), |_| varying(of, file)));
        compare(&world).expect_code(0);
    }
    for (base, head) in [("path", "state"), ("rare label", "path"), ("path", "rare label")] {
        let world = World::new();
        write(&world, |side, file| {
            google_benchmark(file, 100.0, &json!({}), |_| {
                varying(if side == "base" { base } else { head }, file)
            })
        });
        compare(&world).expect_code(11);
    }
    // A third of head's processes is more than chance explains.
    let world = World::new();
    let word = |side: &str, file: u32| {
        if side == "head" && file.is_multiple_of(3) { "cpu fallback" } else { "fast path" }
    };
    write(&world, |side, file| {
        google_benchmark(file, 100.0, &json!({}), |_| json!({"label": word(side, file)}))
    });
    let outcome = compare(&world).expect_code(11);
    assert!(
        outcome.stdout.contains("fast path") && outcome.stdout.contains("cpu fallback"),
        "{}",
        outcome.said()
    );
}

/// A user's counter may have the name of a metric that benchgate defines.
#[test]
fn counters_with_the_names_of_other_metrics_are_read_back() {
    let world = World::new();
    let counters = json!({"instructions": 1000.5, "latency": 0.5, "occupancy": 0.25, "vmfb-size": 12});
    write(&world, |_, file| google_benchmark(file, 100.0, &json!({}), |_| counters.clone()));
    compare(&world).expect_code(0);
    world.run(["report", "base-00.json"]).expect_code(0);
    world.run(["convert", "base-00.json", "run.json", "--to", "run-json"]).expect_code(0);
    world.run(["report", "run.json"]).expect_code(0);
}

/// `./bench --benchmark_out=1.json > 1.txt` leaves two files with one result.
#[test]
fn the_printed_text_of_a_run_next_to_its_file_is_its_log() {
    let world = World::new();
    let table = "-----\nBenchmark  Time  CPU  Iterations\n-----\nBM_a  100 ns  100 ns  10\n";
    for number in 0..FILES {
        for (side, shift) in [("a", 0), ("b", 100)] {
            let file = google_benchmark(number + shift, 100.0, &json!({}), nothing);
            world.write(&format!("{side}/{number}.json"), file);
            world.write(&format!("{side}/{number}.txt"), table);
        }
    }
    let outcome = world.run(["compare", "a", "b"]).expect_code(0);
    assert!(outcome.stdout.contains("24 files, each read as one session"), "{}", outcome.said());
    world.write("b/7.txt", format!("{table}verification failed\n"));
    world.run(["compare", "a", "b"]).expect_code(11);
}

/// A program times an empty loop to show the overhead of its tool.
#[test]
fn an_empty_loop_is_told_as_such() {
    let world = World::new();
    write(&world, |_, file| google_benchmark(file, 2e-7, &json!({}), nothing));
    let outcome = compare(&world).expect_code(20);
    assert!(outcome.stdout.contains("that of an empty loop"), "{}", outcome.said());
}

#[test]
fn a_rate_that_is_computed_from_the_time_is_judged_with_it() {
    for (format, file) in FORMATS {
        for statistic in [mean, median, least] {
            for (files, between) in [(24, 0.01), (24, 0.03), (1, 0.0)] {
                let side = |time: f64| {
                    move |at: u64| {
                        let rate = |times: &[f64]| 32e3 / statistic(times);
                        file(&times(at, time, between), "throughput", &rate)
                    }
                };
                for time in [12.0, 10.8] {
                    let outcome = rated_files::compare(files, side(12.0), side(time));
                    assert_eq!(
                        outcome.code,
                        Some(0),
                        "{format}, {files} files, {time} ms: {}",
                        outcome.said()
                    );
                }
                assert_ne!(rated_files::compare(files, side(12.0), side(13.5)).code, Some(0), "{format}");
            }
        }
    }
}

#[test]
fn a_rate_that_was_chosen_is_no_amount_of_work() {
    for (format, file) in FORMATS.into_iter().filter(|(format, _)| *format != "Bencher") {
        let side = |time: f64| move |at: u64| file(&times(at, time, 0.01), "target_fps", &|_: &[f64]| 60.0);
        let outcome = rated_files::compare(24, side(12.0), side(10.0));
        assert_eq!(outcome.code, Some(0), "{format}: {}", outcome.said());
    }
}
