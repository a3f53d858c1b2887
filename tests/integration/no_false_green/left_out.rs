//! Results from which a pull request's job removed the slow parts.

use serde_json::{Value, json};

use crate::github::red::Red;
use crate::harness::World;

use super::{FAIL_ON, Greens};

/// Writes 24 files of `latency.csv` with the rows that `rows` returns for each file: names and times.
fn lines(world: &World, side: &str, rows: impl Fn(usize) -> Vec<(&'static str, f64)>) {
    let seed: usize = side.bytes().map(usize::from).sum();
    for file in 0..24 {
        let text = rows(file).into_iter().enumerate().map(|(at, (device, time))| {
            let time = time * (1.0 + 1e-6 * ((at * 389 + file * 101 + seed * 757) % 997) as f64);
            format!("2026-05-01T10:{file:02}:{at:02},m,{device},{time:.6}\n")
        });
        let text: String = text.collect();
        world.write(&format!("{side}/{file:02}.csv"), format!("timestamp,model,device,latency_ms\n{text}"));
    }
}

#[test]
fn no_head_whose_files_have_fewer_lines_or_other_names_than_bases_is_green() {
    let world = World::new();
    lines(&world, "base", |_| [vec![("cuda", 1.0); 8], vec![("cpu", 3.0); 8]].concat());
    lines(&world, "same", |_| [vec![("cuda", 1.0); 8], vec![("cpu", 3.0); 8]].concat());
    lines(&world, "cut", |file| {
        [vec![("cuda", 1.0); 8], vec![("cpu", 3.0); if file == 5 { 2 } else { 8 }]].concat()
    });
    lines(&world, "one-name", |_| vec![("cuda", 1.0); 8]);
    lines(&world, "half-of-files", |file| vec![(if file % 2 == 0 { "cuda" } else { "vulkan" }, 1.0); 8]);
    lines(&world, "few", |_| vec![("cuda", 1.0); 3]);
    lines(&world, "slower", |_| vec![("cuda", 3.0); 3]);
    lines(&world, "half-of-lines", |_| [vec![("cuda", 1.0); 4], vec![("vulkan", 10.0); 4]].concat());
    let compared = |base: &str, head: &str| world.run(["compare", base, head, "--fail-on", FAIL_ON]);
    compared("base", "same").expect_code(0);
    let mut greens = Greens::default();
    let cases =
        [("base", "cut"), ("one-name", "half-of-files"), ("one-name", "half-of-lines"), ("one-name", "few")];
    for (base, head) in cases {
        greens.check(head, &compared(base, head));
    }
    // A loop of a fixed duration has fewer lines if each takes longer.
    compared("one-name", "slower").expect_code(10);
    compared("few", "one-name").expect_code(0);
    greens.none(4);
}

#[test]
fn a_red_result_from_which_blocks_are_left_out_is_never_green() {
    fn keep(run: &mut Value, sides: &[usize], is_kept: impl Fn(u64) -> bool) {
        for &side in sides {
            let processes = run["sides"][side]["benchmarks"][0]["processes"].as_array_mut().unwrap();
            processes.retain(|process| is_kept(process["slot"]["block"].as_u64().unwrap()));
        }
    }
    let mut red = Red::new();
    // Every second block is slow.
    let is_slow = |block: u64| block % 2 == 1;
    red.even(|block| if is_slow(block) { 1.5 } else { 1.000_001 });
    assert_ne!(red.published(&red.run, 0), Some(0), "the result as it was measured");
    let mut forgeries = Vec::new();
    let mut forge = |what: &str, change: &dyn Fn(&mut Value)| {
        let mut run = red.run.clone();
        change(&mut run);
        forgeries.push((what.to_owned(), run));
    };
    forge("the slow blocks deleted", &|run| keep(run, &[0, 1], |block| !is_slow(block)));
    forge("the slow blocks of head deleted", &|run| keep(run, &[1], |block| !is_slow(block)));
    forge("all blocks from the first slow one on deleted", &|run| keep(run, &[0, 1], |block| block < 1));
    forge("the latency of the slow blocks deleted", &|run| {
        for side in 0..2 {
            for process in run["sides"][side]["benchmarks"][0]["processes"].as_array_mut().unwrap() {
                if is_slow(process["slot"]["block"].as_u64().unwrap()) {
                    process["samples"].as_object_mut().unwrap().remove("latency");
                }
            }
        }
    });
    forge("no slots, and the slow processes of head deleted", &|run| {
        keep(run, &[1], |block| !is_slow(block));
        for side in 0..2 {
            for process in run["sides"][side]["benchmarks"][0]["processes"].as_array_mut().unwrap() {
                process.as_object_mut().unwrap().remove("slot");
            }
        }
    });
    // The other benchmark, which passes, loses the same blocks.
    forge("the same blocks of every benchmark deleted", &|run| {
        for side in 0..2 {
            for benchmark in run["sides"][side]["benchmarks"].as_array_mut().unwrap() {
                let processes = benchmark["processes"].as_array_mut().unwrap();
                processes.retain(|process| !is_slow(process["slot"]["block"].as_u64().unwrap()));
            }
        }
    });
    let greens = red.greens(&forgeries);
    assert!(greens.is_empty(), "{} of {} are green:\n{}", greens.len(), forgeries.len(), greens.join("\n"));

    // Head is 2.5 % slower, which a single block with base's digests would not show.
    red.even(|_| 1.025);
    assert_eq!(red.published(&red.run, 0), Some(10), "the result as it was measured");
    let mut run = red.run.clone();
    let artifact = run["sides"][0]["benchmarks"][0]["artifact"].clone();
    run["sides"][1]["benchmarks"][0]["artifact"] = artifact;
    let same = run.clone();
    keep(&mut run, &[0, 1], |block| block == 0);
    let greens = red.greens(&[("base's digests".to_owned(), same), ("and one block".to_owned(), run)]);
    assert!(greens.is_empty(), "{}", greens.join("\n"));
}

/// Google Benchmark's tables have no last line, and a crash in the last benchmark leaves whole rows.
#[test]
fn no_table_that_lost_its_last_repetitions_is_green() {
    let csv = |at: usize, kept: usize| {
        let row = |index: usize| {
            let name = if index < 5 { "BM_a" } else { "BM_b" };
            let time = 100.0 + 0.01 * ((index * 7 + at * 5) % 13) as f64 + 1e-4 * at as f64;
            format!("\"{name}\",1000,{time},{time},ns,,,,,\n")
        };
        let rows: String = (0..kept).map(row).collect();
        format!(
            "name,iterations,real_time,cpu_time,time_unit,bytes_per_second,items_per_second,label,error_occurred,error_message\n{rows}"
        )
    };
    let console = |at: usize, kept: usize| {
        let row = |index: usize| {
            let name = if index < 5 { "BM_a" } else { "BM_b" };
            let time = 1000 + (index * 7 + at * 5) % 13;
            format!("{name:<20} {time} ns {time} ns 1000\n")
        };
        let rows: String = (0..kept).map(row).collect();
        format!("Running ./bench\nBenchmark                 Time             CPU   Iterations\n{rows}")
    };
    let judged = |table: &dyn Fn(usize, usize) -> String, kept: &dyn Fn(usize) -> usize| {
        let world = World::new();
        for at in 0..6 {
            world.write(&format!("base-{at}"), table(at, 10));
            world.write(&format!("head-{at}"), table(at + 20, kept(at)));
        }
        world.run(["compare", "base-?", "head-?", "--between-cv", "0.1%", "--fail-on", FAIL_ON])
    };
    let mut greens = Greens::default();
    for (name, table) in [("CSV", &csv as &dyn Fn(usize, usize) -> String), ("console", &console)] {
        let honest = judged(table, &|_| 10);
        assert_eq!(honest.code, Some(0), "{name}: {}", honest.said());
        greens.check(&format!("{name}: one file"), &judged(table, &|at| if at == 3 { 8 } else { 10 }));
        greens.check(&format!("{name}: all files"), &judged(table, &|_| 8));
    }
    greens.none(4);
}

/// Writes 24 results of Google Benchmark with a log next to each.
fn logged(world: &World, side: &str, line: &str) {
    let seed: usize = side.bytes().map(usize::from).sum();
    for file in 0..24 {
        let row = |at: usize| {
            let time = 1.0 + 1e-6 * ((at * 389 + file * 101 + seed * 757) % 997) as f64;
            json!({"name": "a", "run_name": "a", "run_type": "iteration", "repetitions": 4, "repetition_index": at,
                "iterations": 10, "real_time": time, "cpu_time": time, "time_unit": "ms"})
        };
        let rows: Vec<Value> = (0..4).map(row).collect();
        let text = json!({"context": {"num_cpus": 8}, "benchmarks": rows}).to_string();
        world.write(&format!("{side}/r-{file:02}.json"), text);
        world.write(&format!("{side}/r-{file:02}.log"), format!("loading weights\n{line}\n0 failed\n"));
    }
}

#[test]
fn no_problem_that_only_a_log_next_to_heads_results_states_is_green() {
    let lines = [
        "[ERROR] kernel 3 rejected, result not computed",
        "3 failed, 7 passed in 0.31s",
        "request timed out",
        "softmax: error exceeds tolerance (3.2e+00 > 1e-03)",
        "No GPU/TPU found, falling back to CPU.",
        "cannot open 'weights.bin': using random weights",
        "flash attention not implemented for this device",
    ];
    let world = World::new();
    let compared = |base: &str, head: &str| {
        logged(&world, "base", base);
        logged(&world, "head", head);
        world.run(["compare", "base", "head", "--fail-on", FAIL_ON])
    };
    compared("", "").expect_code(0);
    compared("", "0 requests timed out").expect_code(0);
    let mut greens = Greens::default();
    for line in lines {
        greens.check(line, &compared("", line));
        compared(line, &line.replace('3', "4")).expect_code(0);
    }
    greens.none(lines.len());
}

#[test]
fn no_file_next_to_heads_results_that_states_a_failure_is_passed_over() {
    let world = World::new();
    logged(&world, "base", "");
    logged(&world, "head", "");
    let compared = |patterns: [&str; 2]| {
        world.run(["compare"].into_iter().chain(patterns).chain(["--fail-on", FAIL_ON]))
    };
    let in_folders = || compared(["base", "head"]);
    in_folders().expect_code(0);
    let files = [
        (
            "r-07.xml",
            "<testsuites><testsuite errors=\"0\" failures=\"1\" tests=\"3\"></testsuite></testsuites>",
        ),
        ("r-07.rc", "139\n"),
        ("status.json", "{\"exit_code\": 139, \"status\": \"failed\"}"),
        ("r-07.meta.json", "{\"returncode\": -11}"),
        ("r-07.failed", ""),
        ("FAILED", ""),
    ];
    let mut greens = Greens::default();
    for (name, text) in files {
        world.write(&format!("head/{name}"), text);
        greens.check(name, &in_folders());
        world.write(&format!("base/{name}"), text);
        in_folders().expect_code(0);
        for side in ["base", "head"] {
            std::fs::remove_file(world.work().join(side).join(name)).unwrap();
        }
    }
    // A pattern names the results only.
    compared(["base/*.json", "head/*.json"]).expect_code(0);
    logged(&world, "head", "CUDA error: an illegal memory access was encountered");
    greens.check("logs that the pattern leaves out", &compared(["base/*.json", "head/*.json"]));
    greens.none(files.len() + 1);
}

#[test]
fn no_result_that_is_marked_as_that_of_a_failed_run_is_counted() {
    let world = World::new();
    logged(&world, "base", "");
    logged(&world, "head", "");
    let path = |name: &str| world.work().join("head").join(name);
    let compared = || world.run(["compare", "base", "head", "--fail-on", FAIL_ON, "--format", "json"]);
    // The run was repeated.
    std::fs::copy(path("r-03.json"), path("r-04.json.failed")).unwrap();
    assert_eq!(compared().expect_code(0).json()["head"]["label"], "head/r-00.json and 23 more");
    let mut greens = Greens::default();
    std::fs::rename(path("r-07.json"), path("r-07.json.failed")).unwrap();
    greens.check("one of 24 runs failed", &compared());
    greens.none(1);
}
