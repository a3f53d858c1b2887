//! What large results cost: memory against the size of the file, and time against the number of rows. Both are
//! measured of the process alone, so that the load of the host doesn't matter.

use std::time::Duration;

use benchgate::process::{Cancel, Command, Finished, run};
use serde_json::{Value, json};

use crate::harness::World;
use crate::suite::Suite;

const LIMIT: Duration = Duration::from_secs(600);

/// A result of both sides as benchgate writes it, with its one benchmark repeated this often and as many repetitions.
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

/// Runs the binary and says what it used.
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

#[tokio::test]
async fn reading_a_result_takes_at_most_three_times_its_size_in_memory() {
    let (world, template) = (World::new(), template());
    world.write("small.json", result(&template, 1, 4));
    for (name, benchmarks, repetitions) in
        [("many-processes.json", 600, 4), ("many-repetitions.json", 200, 160)]
    {
        let size =
            std::fs::metadata(world.write(name, result(&template, benchmarks, repetitions))).unwrap().len();
        assert!(size > 10_000_000, "{name} has {size} bytes");
        // One row is judged, so that the rest is what reading takes.
        let one = ["--filter", "^model-0/"];
        let without = used(&world, &[&["compare", "small.json"][..], &one].concat(), 0).await;
        let with = used(&world, &[&["compare", name][..], &one].concat(), 0).await;
        let ratio = (bytes(&with) - bytes(&without)) / size as f64;
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
