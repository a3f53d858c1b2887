//! A regressed result, and the exit codes of `publish` for forgeries of it.

use std::path::Path;
use std::process::Command;

use benchgate::cli::{Commits, TrustedInputs, complete_run, judge};
use benchgate::config::{self, Config};
use benchgate::gate::{FailOn, Policy};
use benchgate::model::Verdict;
use serde_json::{Value, json};

use crate::harness::World;
use crate::suite::{COMMIT, install_fake_tools, npy};

use super::event::payload;

/// Every verdict that is not a pass.
const FAIL_ON: &str = "regressed,diverged,error,missing,inconclusive";
const FAILING: [Verdict; 5] =
    [Verdict::Regressed, Verdict::Diverged, Verdict::Error, Verdict::Missing, Verdict::Inconclusive];

/// A suite of three benchmarks with two sides. The first one is 30 % slower at head; the others are not
/// slower.
pub struct Red {
    world: World,
    pub run: Value,
    event: Value,
}

const NAMES: [&str; 3] = ["slow", "even", "same"];

impl Red {
    pub fn new() -> Self {
        let world = World::new();
        install_fake_tools(&world.work().join("tools"));
        for (side, latency) in [("base", 1000), ("head", 1300)] {
            for name in NAMES {
                let latency = if name == "slow" { latency } else { 1000 };
                let revision = if name == "even" { side.len() + usize::from(side == "head") } else { 0 };
                let source =
                    format!("// {name}\n// fake latency-us={latency}\n// fake revision={revision}\n");
                world.write(&format!("{side}/{name}.mlir"), source);
            }
            world.write(&format!("{side}/y.npy"), npy(&[1.0, 2.0, 3.0]));
            world.write(&format!("{side}/y.bin"), [1.0_f32, 2.0, 3.0].map(f32::to_le_bytes).concat());
        }
        let models: String = NAMES
            .iter()
            .map(|name| {
                format!(
                    "[[model]]\nname = \"{name}\"\nsource = \"{name}.mlir\"\ninputs = [\"3xf32=1\"]\n\
                     expected = [{}]\n",
                    match *name {
                        // The configuration contains the output's type.
                        "slow" => "\"3xf32=@y.bin\"",
                        // Base's outputs are its only reference.
                        "same" => "",
                        _ => "\"y.npy\"",
                    }
                )
            })
            .collect();
        world.write(
            "benchgate.toml",
            format!(
                "[suite]\nname = \"fake\"\n[toolchain]\nversion = \"9.9.9\"\ncommit = \"{COMMIT}\"\npath = \"tools\"\n\
                 [side.base]\nsources = \"base\"\n[side.head]\nsources = \"head\"\n{models}\
                 [[target]]\nname = \"cpu\"\nbackend = \"llvm-cpu\"\ndevice = \"local-task\"\n\
                 [measure]\nrepetitions = 2\nmin-time = \"1ms\"\nwarmup = \"0ms\"\nmin-blocks = 12\nmax-blocks = 12\n"
            ),
        );
        Self::of(world, 0)
    }

    /// These benchmarks, printed by a command. The time of day serves as noise that does not depend on load.
    pub fn of_command() -> Self {
        Self::of_commands_with([("base", 100), ("head", 130)], 3.0)
    }

    /// A command that is as fast as base, and whose second output is wrong.
    pub fn of_wrong_command() -> Self {
        Self::of_commands_with([("base", 100), ("head", 100)], 4.0)
    }

    fn of_commands_with(sides: [(&str, u32); 2], last: f32) -> Self {
        let world = World::new();
        for (side, slow) in sides {
            let script = format!(
                "row() {{ printf '{{\"name\":\"%s\",\"run_type\":\"iteration\",\"iterations\":10,\"real_time\":%s.0%s,\
                 \"cpu_time\":90.0,\"time_unit\":\"us\"}}' \"$1\" \"$2\" \"$(date +%N)\"; }}\n\
                 printf '{{\"context\":{{}},\"benchmarks\":['; row slow {slow}; printf ,; row even 100; printf ,; row same 100; printf ']}}'\n"
            );
            world.write(&format!("{side}/bench.sh"), format!("cp y.npy z.npy \"$1\"\n{script}"));
            world.write(&format!("{side}/y.npy"), npy(&[1.0, 2.0, 3.0]));
            let last = if side == "head" { last } else { 3.0 };
            world.write(&format!("{side}/z.npy"), npy(&[1.0, 2.0, last]));
        }
        world.write(
            "benchgate.toml",
            "[suite]\nname = \"fake\"\n[side.base]\nsources = \"base\"\n[side.head]\nsources = \"head\"\n\
             [[command]]\nname = \"bench\"\nrun = \"sh bench.sh {build}\"\nformat = \"google-benchmark-json\"\n\
             rows = [\"slow\", \"even\", \"same\"]\noutputs = [\"y.npy\", \"z.npy\"]\n\
             [measure]\nmin-blocks = 12\nmax-blocks = 12\n",
        );
        Self::of(world, if last == 3.0 { 0 } else { 13 })
    }

    /// Measures a suite as a job for a merge group does.
    fn of(world: World, code: i32) -> Self {
        let mut event = payload("merge_group");
        event["merge_group"]["base_sha"] = json!("1".repeat(40));
        event["merge_group"]["head_sha"] = json!("2".repeat(40));
        let file = world.write("event.json", event.to_string());
        world.finish(in_job(world.command(["run"]), &file)).expect_code(code);
        let mut run: Value = serde_json::from_str(&world.read("run.json")).unwrap();
        for (at, digit) in ["1", "2"].into_iter().enumerate() {
            run["sides"][at]["commit"] = json!(digit.repeat(40));
            run["sides"][at]["dirty"] = json!(false);
        }
        Self { world, run, event }
    }

    /// The exit code that `publish` ends with for this result.
    pub fn published(&self, run: &Value, at: usize) -> Option<i32> {
        let file = self.world.write(&format!("forged-{at}.json"), run.to_string());
        let event = self.world.write(&format!("event-{at}.json"), self.event.to_string());
        let mut command: Command =
            self.world.command(["publish", "--dry-run", "--fail-on", FAIL_ON, "--run"]);
        command.arg(&file);
        let code = self.world.finish(in_job(command, &event)).code;
        std::fs::remove_file(file).unwrap();
        std::fs::remove_file(event).unwrap();
        code
    }

    /// Returns the exit code of `publish` without starting it, because reading and judging do no IO.
    fn judged(&self, config: &Config, run: &Value) -> i32 {
        let commits = Commits { base: vec!["1".repeat(40)], head: vec!["2".repeat(40)] };
        let policy = Policy { fail_on: FailOn(FAILING.to_vec()), ..config.policy.clone() };
        let today = "2026-01-01".to_owned();
        let known = TrustedInputs { config, policy: &policy, commits: &commits, reported: None, today };
        let comparison = complete_run(run.to_string().into_bytes(), "forged.json")
            .and_then(|file| judge(file, "forged.json", &known));
        match comparison {
            Ok(comparison) => comparison.exit_code.code().into(),
            Err(error) => error.exit_code().code().into(),
        }
    }

    /// Judges every forgery, and returns the names of those that passed or crashed.
    pub fn greens(&self, forgeries: &[(String, Value)]) -> Vec<String> {
        let config = config::load_judging(&self.world.work().join("benchgate.toml")).unwrap();
        assert_eq!(Some(self.judged(&config, &self.run)), self.published(&self.run, 0), "both ways agree");
        let green = &|(what, run): &(String, Value)| {
            let code = self.judged(&config, run);
            // Exit code 1 is a bug in benchgate.
            (code <= 1).then(|| format!("{what}: {code}"))
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            let parts: Vec<_> = forgeries
                .chunks(forgeries.len().div_ceil(threads))
                .map(|part| scope.spawn(move || part.iter().filter_map(green).collect::<Vec<String>>()))
                .collect();
            parts.into_iter().flat_map(|part| part.join().unwrap()).collect()
        })
    }
}

/// Gives the slow benchmark another name on both sides, with times of its own, and keeps head's slow one under the old name.
pub fn renamed_and_kept(run: &mut Value) {
    let mut old = run["sides"][1]["benchmarks"][0].clone();
    for process in old["processes"].as_array_mut().unwrap() {
        process.as_object_mut().unwrap().remove("slot");
    }
    for side in 0..2 {
        let benchmark = &mut run["sides"][side]["benchmarks"][0];
        benchmark["labels"]["renamed-from"] = benchmark["name"].clone();
        benchmark["name"] = json!("new/cpu/main");
    }
    for process in run["sides"][1]["benchmarks"][0]["processes"].as_array_mut().unwrap() {
        for sample in process["samples"]["latency"].as_array_mut().unwrap() {
            *sample = json!(sample.as_f64().unwrap() / 1.3);
        }
    }
    run["sides"][1]["benchmarks"].as_array_mut().unwrap().push(old);
}

/// A command in a job for a merge group.
pub fn in_job(mut command: Command, event: &Path) -> Command {
    command
        .env("GITHUB_EVENT_NAME", "merge_group")
        .env("GITHUB_EVENT_PATH", event)
        .env("GITHUB_REPOSITORY", "o/r")
        .env("GITHUB_SHA", "2".repeat(40))
        .env("GITHUB_API_URL", "https://api.github.com")
        .env("GITHUB_SERVER_URL", "https://github.com")
        .env("GITHUB_RUN_ID", "77")
        .env("GITHUB_RUN_ATTEMPT", "1");
    command
}
