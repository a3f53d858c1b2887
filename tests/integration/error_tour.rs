//! Common mistakes of new users, and the messages about them: what happened, why, and the next command.
//!
//! All messages are in one snapshot, so that anyone who changes one of them reads the others too.

use std::process::{Command, Stdio};

use crate::github::{Double, Measured, pull};
use crate::harness::{Outcome, World, without_digests};
use crate::suite::Suite;

const GOLDEN: &str = include_str!("../fixtures/record/run-v1.json");

/// Every verdict that is not a pass.
const FAIL_ON: &str = "regressed,diverged,error,missing,inconclusive";

/// The messages, one after the other.
#[derive(Default)]
struct Tour(String);

impl Tour {
    fn stop(&mut self, mistake: &str, command: &str, outcome: &Outcome) {
        let errors = outcome.stderr.lines().filter(|line| !line.starts_with('['));
        let said: String = errors.map(|line| format!("{}\n", without_digests(line))).collect();
        assert!(!said.trim().is_empty(), "{mistake}: nothing was said\n{}", outcome.stdout);
        assert!(outcome.code.is_some_and(|code| code != 0 && code != 1), "{mistake}: {outcome:?}");
        let code = outcome.code.unwrap();
        self.0.push_str(&format!("# {mistake}\n$ benchgate {command}\n{said}exit {code}\n\n"));
    }

    fn visit(&mut self, mistake: &str, world: &World, command: &str) {
        self.stop(mistake, command, &world.run(command.split(' ')));
    }
}

fn edited(suite: &Suite, from: &str, to: &str) {
    let toml = suite.world.read("benchgate.toml");
    assert!(toml.contains(from), "{toml}");
    suite.world.write("benchgate.toml", toml.replacen(from, to, 1));
}

fn suite() -> Suite {
    Suite::new().model("a", &["latency-us=1000"]).write()
}

fn git(world: &World, args: &[&str]) {
    let status = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main"])
        .args(args)
        .current_dir(world.work())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success(), "git {args:?}");
}

fn configurations(tour: &mut Tour) {
    let world = World::new();
    tour.visit("no configuration here", &world, "gate");
    tour.visit("a wrong path", &world, "run -c suites/nope.toml");
    let changes = [
        ("a misspelled key", "min-blocks = 4", "min-block = 4"),
        ("a backend that is not one", "backend = \"llvm-cpu\"", "backend = \"llvmcpu\""),
        ("a duration without a unit", "timeout = \"20s\"", "timeout = 20"),
        ("a model that is not there", "models/a.mlir", "models/b.mlir"),
        ("an abbreviated commit", "commit = \"", "commit = \"89ece87b\" # "),
        ("no models at all", "[[model]]", "[[side.base.model]]"),
    ];
    for (mistake, from, to) in changes {
        let suite = suite();
        edited(&suite, from, to);
        tour.visit(mistake, &suite.world, "run");
    }
    let suite = suite();
    tour.visit("a filter that matches nothing", &suite.world, "run --filter resnet");
    tour.visit("a verdict that is not one", &suite.world, "gate --fail-on regresed");
    tour.visit("an output that can't be written", &suite.world, "run --run nowhere/run.json");
}

fn tools(tour: &mut Tour) {
    let suite = suite();
    edited(&suite, "path = \"tools\"", "");
    tour.visit("tools that were never locked", &suite.world, "run");
    let world = World::new();
    // A lock that requires wheels, and an existing model.
    for name in ["benchgate.lock", "models/mlp.mlir"] {
        let quickstart = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/quickstart");
        world.write(name, std::fs::read(quickstart.join(name)).unwrap());
    }
    world.write(
        "benchgate.toml",
        "[suite]\nname = \"s\"\n[toolchain]\nversion = \"3.13.0\"\n\
         commit = \"89ece87b89852100c0a4ac3d515e14842d090967\"\n[[model]]\nname = \"mlp\"\n\
         source = \"models/mlp.mlir\"\n[[target]]\nname = \"cpu\"\nbackend = \"llvm-cpu\"\n",
    );
    let mut command = world.command(["tools", "install"]);
    command.env("PATH", "/nowhere");
    tour.stop("no Python", "tools install", &world.finish(command));
}

fn repositories(tour: &mut Tour) {
    tour.visit("no repository", &suite().world, "gate --base main");
    let suite = suite();
    let (world, clone) = (&suite.world, World::new());
    world.write(".gitignore", "/tools\n/.benchgate\n");
    git(world, &["init", "--quiet"]);
    for message in ["one", "two"] {
        world.write("note", message);
        git(world, &["add", "--all"]);
        git(world, &["commit", "--quiet", "--message", message]);
    }
    let from = format!("file://{}", world.work().display());
    git(&clone, &["clone", "--quiet", "--depth", "1", &from, "."]);
    tour.visit("a shallow clone", &clone, "gate --base HEAD~1");
    tour.visit("a branch that was not fetched", world, "gate --base origin/main");
    tour.visit("no base and no history", world, "gate");
}

fn results(tour: &mut Tour) {
    let world = World::new();
    world.write("base.json", GOLDEN);
    world.write("cut.json", &GOLDEN.as_bytes()[..GOLDEN.len() / 2]);
    world.write("newer.json", GOLDEN.replace("benchgate/run/v1", "benchgate/run/v9"));
    tour.visit("a file that is not there", &world, "compare base.json#base haed.json");
    tour.visit("a file that was cut off", &world, "compare base.json#base cut.json#head");
    tour.visit("a result of a newer benchgate", &world, "compare base.json#base newer.json#head");
    tour.visit("a store without a baseline", &world, "baseline show");
}

fn tokens(tour: &mut Tour) {
    let measured = Measured::new();
    let double = Double::new();
    let mut command = measured.command("pull_request", &pull(), &[]);
    command.env("GITHUB_API_URL", double.api()).env("GITHUB_TOKEN", "ghs_expired");
    let outcome = measured.suite.world.finish(command);
    tour.stop("an expired token", "publish --run run.json", &outcome);
    let command = measured.command("pull_request", &pull(), &[]);
    tour.stop("no token", "publish --run run.json", &measured.suite.world.finish(command));
}

#[test]
fn each_mistake_is_answered_with_what_happened_why_and_what_to_do() {
    let mut tour = Tour::default();
    configurations(&mut tour);
    tools(&mut tour);
    repositories(&mut tour);
    results(&mut tour);
    tokens(&mut tour);
    insta::assert_snapshot!(tour.0);
}

/// A change of head's results.
type Change = fn(&mut serde_json::Value);

/// A measured result that can't be judged is not an error of the command. Such a result becomes a row with a
/// reason.
#[test]
fn what_can_not_be_compared_is_a_row_with_its_reason() {
    let world = World::new();
    let mut said = String::new();
    let changes: [(&str, Change); 3] = [
        ("another machine", |run| {
            run["testbed"]["id"] = "0000aaaa".into();
            run["testbed"]["facts"]["cpu-model"] = "another".into();
            run["sides"][0]["benchmarks"][0]["artifact"]["vmfb_sha256"] = "7".repeat(64).into();
        }),
        ("a renamed benchmark", |run| {
            let name = run["sides"][0]["benchmarks"][0]["name"].as_str().unwrap().to_owned();
            run["sides"][0]["benchmarks"][0]["name"] = format!("{name}-v2").into();
        }),
        ("a benchmark that failed", |run| {
            run["sides"][0]["benchmarks"][0]["outcome"] =
                serde_json::json!({"status": "failed", "stage": "compile", "why": "exit status 1"});
        }),
    ];
    let mut one: serde_json::Value = serde_json::from_str(GOLDEN).unwrap();
    let side = one["sides"][0].take();
    one["sides"] = vec![side].into();
    world.write("base.json", one.to_string());
    for (mistake, change) in changes {
        let mut head = one.clone();
        change(&mut head);
        world.write("head.json", head.to_string());
        let outcome = world.run(["compare", "base.json", "head.json", "--fail-on", FAIL_ON]);
        assert_ne!(outcome.code, Some(0), "{mistake}: {}", outcome.stdout);
        said.push_str(&format!("# {mistake}\n{}exit {}\n\n", outcome.stdout, outcome.code.unwrap()));
    }
    insta::assert_snapshot!(said);
}
