//! Values that can't be true, and options that would let everything pass: none of them may end with exit code
//! 0.

use crate::harness::World;

/// A function that writes a file of one format with one benchmark that has these times.
type Writer = fn(&[&str]) -> String;

fn google(words: &[&str]) -> String {
    let rows: Vec<String> = words
        .iter()
        .enumerate()
        .map(|(at, time)| {
            format!(
                r#"{{"name": "a", "run_type": "iteration", "repetition_index": {at}, "iterations": 10,
                    "real_time": {time}, "cpu_time": 1.0, "time_unit": "ms"}}"#
            )
        })
        .collect();
    format!(r#"{{"context": {{"num_cpus": 8}}, "benchmarks": [{}]}}"#, rows.join(","))
}

fn google_csv(words: &[&str]) -> String {
    let header = "name,iterations,real_time,cpu_time,time_unit,bytes_per_second,items_per_second,label,error_occurred,\
                  error_message\n";
    words.iter().fold(header.to_owned(), |text, time| format!("{text}\"a\",10,{time},1.0,ms,,,,,\n"))
}

fn hyperfine(words: &[&str]) -> String {
    let zeros: Vec<&str> = words.iter().map(|_| "0").collect();
    format!(
        r#"{{"results": [{{"command": "a", "mean": 1.0, "times": [{}], "exit_codes": [{}]}}]}}"#,
        words.join(","),
        zeros.join(",")
    )
}

fn pytest(words: &[&str]) -> String {
    format!(
        r#"{{"machine_info": {{}}, "commit_info": {{}}, "version": "4.0.0", "benchmarks": [{{"name": "a",
            "fullname": "a", "stats": {{"mean": 1.0, "data": [{}]}}}}]}}"#,
        words.join(",")
    )
}

fn go(words: &[&str]) -> String {
    words.iter().fold(String::new(), |text, time| format!("{text}BenchmarkA-8 100 {time} ns/op\n"))
}

const GOOD: [&str; 4] = ["1.0", "1.01", "1.02", "1.0"];

#[test]
fn a_time_that_is_no_measurement_is_an_error_on_either_side_of_every_format() {
    let formats: [(&str, Writer, &[&str]); 5] = [
        ("google-benchmark-json", google, &["0", "-1.0", "NaN", "Infinity", "1e-320"]),
        ("google-benchmark-csv", google_csv, &["0", "-1.0", "nan", "inf", "1e-320"]),
        ("hyperfine-json", hyperfine, &["0", "-1.0", "null", "1e-320"]),
        ("pytest-benchmark-json", pytest, &["0", "-1.0", "1e-320"]),
        ("benchfmt", go, &["0", "-1.0", "NaN", "+Inf", "1e-320"]),
    ];
    let world = World::new();
    for (name, write, bad) in formats {
        world.write("good", write(&GOOD));
        for &word in bad {
            world.write("all", write(&[word; 4]));
            world.write("one", write(&[GOOD[0], word, GOOD[2], GOOD[3]]));
            for file in ["all", "one"] {
                for sides in [["good", file], [file, "good"], [file, file]] {
                    let outcome = world.run(["compare", sides[0], sides[1]]);
                    assert_eq!(outcome.code, Some(20), "{name} {word} {sides:?}:\n{}", outcome.said());
                }
            }
        }
    }
}

/// The other benchmarks would pass.
#[test]
fn unusable_times_on_both_sides_are_an_error_next_to_good_benchmarks() {
    let world = World::new();
    let good = google(&GOOD);
    let bad = google(&["NaN"; 4]).replace("\"a\"", "\"b\"");
    let (head, tail) = (good.rsplit_once(']').unwrap().0, bad.split_once("\"benchmarks\": [").unwrap().1);
    world.write("both.json", format!("{head},{tail}"));
    world.run(["compare", "both.json", "both.json"]).expect_code(20);
}

#[test]
fn repetitions_in_different_units_are_an_error() {
    let world = World::new();
    world.write("base.json", google(&GOOD));
    let mut rows = 0;
    let mixed: String = google(&GOOD)
        .split_inclusive("\"time_unit\": \"ms\"")
        .map(|part| {
            rows += 1;
            if rows % 2 == 0 { part.replace("\"ms\"", "\"us\"") } else { part.to_owned() }
        })
        .collect();
    world.write("head.json", mixed);
    let outcome = world.run(["compare", "base.json", "head.json", "--format", "json"]).expect_code(20);
    assert!(outcome.stdout.contains("\"unit-mismatch\""), "{}", outcome.stdout);
    world.run(["compare", "head.json", "head.json"]).expect_code(20);
}

/// `timeout` ends a command that would never end, with exit code 124.
#[test]
fn files_of_which_some_rows_are_joined_and_some_are_not_are_compared_in_time() {
    let world = World::new();
    let torchbench =
        concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/tool_output/torchbench/results.jsonl");
    world.write("one.json", google(&GOOD));
    let more = google(&GOOD).rsplit_once(']').unwrap().0.to_owned();
    let tail = google(&GOOD).replace("\"a\"", "\"b\"").split_once("\"benchmarks\": [").unwrap().1.to_owned();
    world.write("two.json", format!("{more},{tail}"));
    let joined: Vec<&str> = [
        "--base-file",
        "one.json",
        "--base-file",
        "two.json",
        "--head-file",
        "one.json",
        "--head-file",
        "two.json",
    ]
    .to_vec();
    for spread in ["0.01%", "0.1%", "0.5%", "0.7%", "5%", "99%"] {
        for inputs in [&joined, &vec![torchbench, torchbench]] {
            let mut command = std::process::Command::new("timeout");
            let program = world.command([""; 0]);
            command
                .arg("120")
                .arg(program.get_program())
                .arg("compare")
                .args(inputs)
                .args(["--between-cv", spread]);
            command.env_clear().current_dir(world.work()).stdout(std::process::Stdio::piped());
            command.env("PATH", std::env::var_os("PATH").unwrap());
            let code = world.finish(command).code;
            assert!(matches!(code, Some(0 | 10..=13 | 20)), "{spread} {inputs:?}: {code:?}");
        }
    }
}

#[test]
fn an_option_that_lets_everything_through_is_refused() {
    let world = World::new();
    world.write("base.json", google(&GOOD));
    world.write("head.json", google(&["1.4", "1.41", "1.42", "1.4"]));
    for option in [
        ["--floor", "0.5"],
        ["--floor", "1"],
        ["--floor", "100%"],
        ["--tolerance", "3"],
        ["--tolerance", "NaN"],
        ["--between-cv", "0"],
        ["--between-cv", "1"],
        ["--alpha", "1e-30"],
        ["--alpha", "1e-200"],
        ["--alpha", "0"],
        ["--alpha", "0.5"],
    ] {
        let outcome = world.run(["compare", "base.json", "head.json", option[0], option[1]]);
        assert_eq!(outcome.code, Some(2), "{option:?}: {}", outcome.said());
    }
}
