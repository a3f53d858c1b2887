//! The cost of large results: memory relative to the size of the file, and time relative to the number of
//! rows. Only the resources of the process itself are measured, so that the load of the host has no effect.

use std::time::Duration;

use benchgate::process::{Cancel, Command, Finished, run};
use serde_json::{Value, json};

use crate::harness::World;
use crate::suite::Suite;

const LIMIT: Duration = Duration::from_secs(600);

/// A result of both sides in which the only benchmark is repeated `benchmarks` times, with this many
/// repetitions per process.
fn result(template: &Value, benchmarks: usize, repetitions: u32) -> String {
    let mut run = template.clone();
    for side in run["sides"].as_array_mut().unwrap() {
        let mut one = side["benchmarks"][0].clone();
        for process in one["processes"].as_array_mut().unwrap() {
            let time = process["samples"]["latency"][0].as_f64().unwrap();
            let samples = (0..repetitions).map(|at| json!(time + f64::from(at * 104_729 % 1_000) / 7.0));
            process["samples"]["latency"] = samples.collect();
        }
        let numbered = |number: usize| {
            let mut another = one.clone();
            another["name"] = format!("model-{number}/cpu/main").into();
            another
        };
        side["benchmarks"] = (0..benchmarks).map(numbered).collect();
    }
    serde_json::to_string_pretty(&run).unwrap()
}

fn template() -> Value {
    let suite = Suite::new()
        .model("a", &["latency-us=1000"])
        .base("")
        .head("flags = [\"--fake=revision=2\"]")
        .write();
    suite.world.run(["run"]).expect_code(0);
    suite.run_json()
}

/// Runs the binary and returns its resource use.
async fn used(world: &World, args: &[&str], code: i32) -> Finished {
    let like = world.command(args);
    let mut command = Command::new(env!("CARGO_BIN_EXE_benchgate"), LIMIT).args(args).cwd(world.work());
    for (name, value) in like.get_envs() {
        command = command.env(name, value.unwrap_or_default());
    }
    let finished = run(&command, &Cancel::new()).await.unwrap();
    let ended = match finished.exit {
        benchgate::process::Exit::Code(code) => code,
        _ => 0,
    };
    assert_eq!((ended, finished.exit.is_success()), (code, code == 0), "{}", finished.stderr_tail);
    finished
}

fn bytes(finished: &Finished) -> f64 {
    finished.peak_memory_bytes.unwrap() as f64
}

/// Memory for reading, as a multiple of the file's size. Only one row is judged, so that most of the time is spent on
/// reading.
async fn memory(world: &World, name: &str, text: &str, code: i32) -> f64 {
    let size = std::fs::metadata(world.write(name, text)).unwrap().len();
    assert!(size > 16_000_000, "{name} has {size} bytes");
    let one = ["--filter", "^model-0/"];
    let without = used(world, &[&["compare", "small.json"][..], &one].concat(), 0).await;
    let with = used(world, &[&["compare", name][..], &one].concat(), code).await;
    (bytes(&with) - bytes(&without)) / size as f64
}

#[tokio::test]
async fn reading_a_result_takes_at_most_three_times_its_size_in_memory() {
    let (world, template) = (World::new(), template());
    world.write("small.json", result(&template, 1, 4));
    let compact = |text: String| serde_json::from_str::<Value>(&text).unwrap().to_string();
    for (name, text) in [
        ("many-processes.json", result(&template, 350, 4)),
        ("many-repetitions.json", result(&template, 100, 160)),
        ("compact.json", compact(result(&template, 800, 4))),
        ("compact-repetitions.json", compact(result(&template, 150, 160))),
    ] {
        let ratio = memory(&world, name, &text, 0).await;
        assert!(ratio <= 3.0, "{name}: {ratio:.2} times its size");
    }
}

#[tokio::test]
async fn records_that_are_far_smaller_than_any_measurement_are_refused_in_a_large_file() {
    let world = World::new();
    let mut template = template();
    world.write("small.json", result(&template, 1, 4));
    // The filler is inserted here; the rest of the file is a valid result.
    let mark = |at: &mut Value| *at = json!("FILLER");
    let (process, number) = (r#"{"order":0,"started":"2026-01-01T00:00:00Z","seconds":1}"#, "0");
    let benchmark = r#"{"name":"a","outcome":{"status":"ok"}}"#;
    let labels = r#"{"name":"a","outcome":{"status":"ok"},"labels":{"a":"","b":"","c":""}}"#;
    let samples =
        r#"{"order":0,"started":"2026-01-01T00:00:00Z","seconds":1,"samples":{"a":[],"b":[],"c":[]}}"#;
    let kernel = r#"{"name":"","calls":0,"ns":0}"#;
    let lint = r#"{"code":"host-busy","detail":""}"#;
    let spread = r#"{"benchmark":"","metric":""}"#;
    let head = "/sides/1/benchmarks";
    let shapes = [
        ("processes", "/sides/1/benchmarks/0/processes", process),
        ("samples", "/sides/1/benchmarks/0/processes", samples),
        ("numbers", "/sides/1/benchmarks/0/processes/0/samples/latency", number),
        ("benchmarks", head, benchmark),
        ("labels", head, labels),
        ("kernels", "/sides/1/benchmarks/0/profile", kernel),
        ("lints", "/lints", lint),
        ("spreads", "/calibration", spread),
        ("flags", "/sides/1/flags", r#""""#),
        ("compiler", "/sides/1/benchmarks/0/compiler", r#""aNUMBER":0"#),
    ];
    template["lints"] = json!([]);
    template["calibration"] = json!(null);
    template["sides"][1]["flags"] = json!([]);
    template["sides"][1]["benchmarks"][0]["profile"] = json!(null);
    template["sides"][1]["benchmarks"][0]["compiler"] = json!({});
    for (name, place, filler) in shapes {
        let mut run = template.clone();
        mark(run.pointer_mut(place).unwrap());
        let count = 17_000_000 / filler.len() + 1;
        let filled: Vec<String> = (0..count).map(|at| filler.replace("NUMBER", &at.to_string())).collect();
        let list = filled.join(",");
        let list = match name {
            "kernels" => format!(r#"{{"processes":1,"iterations":1,"kernels":[{list}]}}"#),
            "spreads" => format!(r#"{{"source":"","spreads":[{list}]}}"#),
            "compiler" => format!("{{{list}}}"),
            _ => format!("[{list}]"),
        };
        let text = run.to_string().replace(r#""FILLER""#, &list);
        let ratio = memory(&world, &format!("{name}.json"), &text, 21).await;
        assert!(ratio <= 3.0, "{name}: {ratio:.2} times its size");
    }
}

#[tokio::test]
async fn a_page_of_five_times_as_many_rows_takes_about_five_times_as_much() {
    let (world, template) = (World::new(), template());
    let mut costs = Vec::new();
    for (name, rows) in [("few", 200), ("many", 1_000)] {
        let file = format!("{name}.json");
        world.write(&file, result(&template, rows, 4));
        let page = format!("{name}.html");
        let finished = used(&world, &["report", &file, "--format", "html", "-o", &page], 0).await;
        let size = std::fs::metadata(world.work().join(page)).unwrap().len();
        costs.push((finished.user.as_secs_f64(), bytes(&finished), size as f64));
    }
    let (few, many) = (costs[0], costs[1]);
    assert!(many.0 / few.0 < 9.0, "processor time: {costs:?}");
    assert!(many.1 / few.1 < 6.0, "memory: {costs:?}");
    assert!(many.2 / few.2 < 6.0, "size: {costs:?}");
}
