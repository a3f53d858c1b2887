//! Stages on two machines: one world compiles; another one, without a compiler, Python, sources or
//! configuration, verifies and measures.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::github::{event, red};
use crate::harness::{Outcome, World, row, without_digests};
use crate::pull_request;
use crate::suite::Suite;

/// Compiles and packs. Returns the bundle and the printed text.
pub fn made(suite: &Suite, code: i32) -> (PathBuf, Outcome) {
    let outcome =
        suite.world.run(["run", "--until", "compile", "--bundle", "suite.bundle"]).expect_code(code);
    (suite.world.work().join("suite.bundle"), outcome)
}

/// The measuring machine, which has only the bundle and no program on its path.
pub struct There(World);

impl There {
    pub fn new(bundle: &Path) -> Self {
        let there = Self(World::new());
        std::fs::copy(bundle, there.0.work().join("suite.bundle")).unwrap();
        there
    }

    fn command(&self, more: &[&str]) -> Command {
        self.command_of("run", more)
    }

    fn command_of(&self, name: &str, more: &[&str]) -> Command {
        let mut args = vec![name, "--from", "verify", "--bundle", "suite.bundle"];
        args.extend(more);
        let mut command = self.0.command(args);
        command.env("PATH", "/nonexistent");
        command
    }

    fn run(&self, more: &[&str]) -> Outcome {
        self.0.finish(self.command(more))
    }

    /// Replaces the transferred bundle by another one.
    pub fn replace(&self, content: &[u8]) {
        self.0.write("suite.bundle", content);
    }

    pub fn gate(&self, more: &[&str]) -> Outcome {
        self.0.finish(self.command_of("gate", more))
    }

    fn run_json(&self) -> Value {
        serde_json::from_str(&self.0.read("run.json")).unwrap()
    }
}

fn benchmarks(run: &Value) -> Vec<Value> {
    let sides = run["sides"].as_array().unwrap();
    sides.iter().flat_map(|side| side["benchmarks"].as_array().unwrap().clone()).collect()
}

pub fn paired() -> Suite {
    Suite::new()
        .model("a", &["latency-us=1000", "dispatch-count=9"])
        .model("b", &["latency-us=500"])
        .base("")
        .head("flags = [\"--fake=latency-us=1300\"]")
}

#[test]
fn a_bundle_is_verified_and_measured_with_no_compiler_no_python_and_no_sources() {
    let suite = paired().write();
    let (bundle, outcome) = made(&suite, 0);
    assert!(!suite.world.work().join("run.json").exists(), "nothing was measured");
    let sha256 = outcome.stdout.split_once("sha256 ").unwrap().1.trim().to_owned();
    // The same suite is run on one machine for comparison.
    suite.world.run(["run"]).expect_code(0);
    let here = suite.run_json();
    let there = There::new(&bundle);
    drop(suite);
    there.run(&["--bundle-sha256", &sha256]).expect_code(0);
    let run = there.run_json();
    assert_eq!(run["suite"], "fake");
    assert_eq!(run["design"], "pairs");
    assert_eq!(run["bundle"]["sha256"], sha256.as_str());
    assert!(here["bundle"].is_null());
    assert_eq!(run["sides"][1]["toolchain"], here["sides"][1]["toolchain"]);
    let (here, there_too) = (benchmarks(&here), benchmarks(&run));
    assert_eq!(here.len(), there_too.len());
    for (one, other) in here.iter().zip(&there_too) {
        for same in ["name", "labels", "outcome", "verification"] {
            assert_eq!(one[same], other[same], "{same}");
        }
        for same in ["vmfb_sha256", "vmfb_bytes", "dispatch_count"] {
            assert_eq!(one["artifact"][same], other["artifact"][same], "{same}");
        }
        let stages: Vec<&str> =
            other["stages"].as_array().unwrap().iter().map(|s| s["stage"].as_str().unwrap()).collect();
        assert_eq!(stages, ["export", "compile", "verify"]);
        assert!(other["processes"].as_array().unwrap().len() >= 8);
    }
    let compare = ["compare", "run.json#base", "run.json#head", "--format", "json"];
    let comparison = there.0.run(compare).expect_code(10).json();
    assert_eq!(row(&comparison, "a/cpu/main", Some("latency"))["verdict"], "regressed");
    // No unpacked file of the bundle remains in the cache.
    let staging = there.0.cache().join("benchgate/staging");
    assert_eq!(std::fs::read_dir(staging).unwrap().count(), 0);
}

#[test]
fn a_renamed_model_is_compared_with_what_it_was_from_a_bundle_too() {
    for (toml, rename) in
        [(pull_request::RENAMED, &[][..]), (pull_request::UNEXPLAINED, &["--rename", "a", "b"])]
    {
        let (suite, _repository) = pull_request::renamed("latency-us=1300", toml);
        let args = ["gate", "--base", "main", "--until", "compile", "--bundle", "../suite.bundle"];
        suite.world.run(args.iter().chain(rename)).expect_code(0);
        let there = There::new(&suite.world.work().join("../suite.bundle"));
        let comparison = there.gate(&["--format", "json"]).expect_code(10).json();
        assert_eq!(row(&comparison, "b/cpu/main", Some("latency"))["verdict"], "regressed");
    }
}

#[test]
fn a_gate_is_split_too_and_the_merge_base_still_judges() {
    let (suite, repository) = pull_request::repository();
    suite.source("a", &["latency-us=1300"]);
    let toml = suite.world.read("benchgate.toml");
    let loose = "\n[gate.metric.latency]\nfloor = \"90%\"\ntolerance = \"95%\"\n";
    suite.world.write("benchgate.toml", format!("{toml}{loose}"));
    pull_request::commit(&repository, "slower, under a looser policy");
    let args = ["gate", "--base", "main", "--until", "compile", "--bundle", "../suite.bundle"];
    suite.world.run(args).expect_code(0);
    let there = There::new(&suite.world.work().join("../suite.bundle"));
    let here = suite.world.run(["gate", "--base", "main", "--format", "json"]).expect_code(10).json();
    let commits = |run: &Value| [run["sides"][0]["commit"].clone(), run["sides"][1]["commit"].clone()];
    let expected = commits(&suite.run_json());
    drop((suite, repository));
    let comparison = there.gate(&["--format", "json"]).expect_code(10).json();
    // The notes say that head edits the policy. A note about stability depends on how busy the host is, so it
    // is left out.
    let notes = |compared: &Value| -> Vec<String> {
        let all = compared["notes"].as_array().unwrap().iter().map(|note| note.as_str().unwrap().to_owned());
        all.filter(|note| !note.starts_with("stability compares")).collect()
    };
    assert_eq!((notes(&comparison), &comparison["policy"]), (notes(&here), &here["policy"]));
    for compared in [&here, &comparison] {
        assert_eq!(row(compared, "a/cpu/main", Some("latency"))["verdict"], "regressed");
    }
    assert_eq!(commits(&there.run_json()), expected);
    // Options that affect the verdict are given on the machine that judges.
    there.gate(&["--warn-only"]).expect_code(0);
}

#[test]
fn a_gate_needs_both_sides_of_a_bundle_and_says_so_before_it_measures() {
    let suite = Suite::new().model("a", &[]).write();
    let (bundle, _) = made(&suite, 0);
    let there = There::new(&bundle);
    insta::assert_snapshot!(without_digests(&there.gate(&[]).expect_code(12).messages()), @"
    the bundle is complete, sha256 [DIGEST]
    error: the bundle suite.bundle has no base to compare with
    hint: create the bundle with `benchgate gate --until compile`, or measure this one with `benchgate run`
    ");
    assert!(!there.0.work().join("run.json").exists());
    suite.world.run(["gate", "--until", "compile", "--bundle", "suite.bundle"]).expect_code(12);
}

#[test]
fn a_bundle_whose_base_is_one_of_heads_configuration_does_not_judge_a_proposed_change() {
    let suite = paired().write();
    let there = There::new(&made(&suite, 0).0);
    let event = there.0.write("event.json", event::payload("merge_group").to_string());
    let gate = || there.command_of("gate", &[]);
    there.0.finish(red::in_job(gate(), &event)).expect_code(2);
    assert!(!there.0.work().join("run.json").exists());
    there.0.finish(gate()).expect_code(10);
}

#[test]
fn a_bundle_of_another_commit_does_not_judge_a_proposed_change() {
    let (suite, repository) = pull_request::repository();
    suite.source("a", &["latency-us=1000", "note=head"]);
    pull_request::commit(&repository, "other bytes");
    let args = ["gate", "--base", "main", "--until", "compile", "--bundle", "../suite.bundle"];
    suite.world.run(args).expect_code(0);
    let there = There::new(&suite.world.work().join("../suite.bundle"));
    let packed = repository.head().unwrap().target().unwrap().to_string();
    let mut proposed = event::payload("pull_request");
    let mut gate = || {
        let file = there.0.write("event.json", proposed.to_string());
        let mut command = red::in_job(there.command_of("gate", &[]), &file);
        command.env("GITHUB_EVENT_NAME", "pull_request");
        let outcome = there.0.finish(command);
        proposed["pull_request"]["head"]["sha"] = packed.as_str().into();
        outcome
    };
    let refused = gate().expect_code(2);
    assert!(refused.stderr.contains(&format!("is {packed}, but the job is about ")), "{}", refused.stderr);
    gate().expect_code(0);
}

#[test]
fn a_bundle_of_a_shard_is_not_measured_as_the_whole_suite() {
    let suite = Suite::new().model("a", &[]).model("b", &[]).write();
    suite.world.run(["plan", "--shards", "2"]).expect_code(0);
    let shard = |number: &'static str| ["--plan", "plan.json", "--shard", number];
    let pack = ["run", "--until", "compile", "--bundle", "suite.bundle"];
    suite.world.run(pack.into_iter().chain(shard("1"))).expect_code(0);
    let there = There::new(&suite.world.work().join("suite.bundle"));
    there.0.write("plan.json", suite.world.read("plan.json"));
    let refused = there.run(&[]).expect_code(21);
    assert!(refused.stderr.contains("only shard 1"), "{}", refused.stderr);
    there.run(&shard("2")).expect_code(21);
    there.run(&shard("1")).expect_code(0);
}

#[test]
fn what_does_not_compile_is_bundled_as_failed_and_never_passes() {
    let suite = Suite::new().model("a", &[]).model("broken", &["compile-error=no such op"]).write();
    let (bundle, outcome) = made(&suite, 20);
    // The size and the digest depend on the fake tools.
    let (said, _) = outcome.stdout.split_once(" modules").unwrap();
    insta::assert_snapshot!(said, @"
    failed head broken/cpu/main: compile: ended with exit code 1: [WORLD]/work/models/broken.mlir:1:1: error: no such op
    wrote suite.bundle: 1 of 2
    ");
    let there = There::new(&bundle);
    there.run(&[]).expect_code(20);
    let found = benchmarks(&there.run_json());
    assert_eq!(found[1]["name"], "broken/cpu/main");
    assert_eq!(found[1]["outcome"]["status"], "failed");
    let (_, why) = found[1]["outcome"]["why"].as_str().unwrap().split_once("/work/").unwrap();
    insta::assert_snapshot!(why, @"models/broken.mlir:1:1: error: no such op");
}

#[test]
fn a_wrong_output_is_found_where_it_is_measured() {
    let suite = Suite::new().model("a", &["output=1,2,4"]).write();
    let (bundle, _) = made(&suite, 0);
    There::new(&bundle).run(&[]).expect_code(13);
}

#[test]
fn what_was_filtered_away_is_not_missing_and_programs_read_what_was_packed() {
    let suite = Suite::new().model("a", &[]).model("b", &[]).write();
    let args =
        ["run", "--until", "compile", "--bundle", "suite.bundle", "--filter", "^a/", "--format", "json"];
    let packed = suite.world.run(args).expect_code(0).json();
    assert_eq!(packed["benchmarks"].as_array().unwrap().len(), 1);
    assert_eq!(packed["sha256"].as_str().unwrap().len(), 64);
    let there = There::new(&suite.world.work().join("suite.bundle"));
    there.run(&[]).expect_code(0);
    assert_eq!(benchmarks(&there.run_json()).len(), 1);
}

#[test]
fn other_backends_need_python_so_a_bundle_has_none_of_them_and_says_so() {
    let suite = Suite::new().model("a", &[]).write();
    let toml = suite.world.read("benchgate.toml");
    suite.world.write("benchgate.toml", format!("{toml}\n[[backend]]\nname = \"eager\"\n"));
    let (bundle, _) = made(&suite, 0);
    let there = There::new(&bundle);
    let outcome = there.run(&[]).expect_code(0);
    insta::assert_snapshot!(without_digests(&outcome.messages()), @"the bundle is complete, sha256 [DIGEST]");
    assert!(there.run_json()["backends"].is_null());
}

#[test]
fn a_file_that_a_flag_names_is_bundled_and_one_outside_the_sources_is_refused() {
    let suite = Suite::new().model("a", &[]).head("run-flags = [\"--flagfile=flags/run.txt\"]").write();
    suite.world.write("flags/run.txt", "--task_topology_group_count=1\n");
    let (bundle, _) = made(&suite, 0);
    let listed = manifest(&bundle);
    let paths: Vec<&str> =
        listed["files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect();
    assert!(paths.contains(&"sources/head/flags/run.txt"), "{paths:?}");
    There::new(&bundle).run(&[]).expect_code(0);
    let outside = suite.world.cache().join("run.txt");
    std::fs::write(&outside, "").unwrap();
    let toml = suite.world.read("benchgate.toml").replace("flags/run.txt", outside.to_str().unwrap());
    suite.world.write("benchgate.toml", toml);
    let (_, outcome) = made(&suite, 2);
    assert!(outcome.stderr.contains(outside.file_name().unwrap().to_str().unwrap()), "{}", outcome.stderr);
}

#[test]
fn an_interrupted_half_goes_on_where_it_stopped() {
    let suite = Suite::new().model("a", &["pause-ms=700"]).measure("processes = 6\n").write();
    let toml = suite.world.read("benchgate.toml").replacen("processes = 2\n", "", 1);
    suite.world.write("benchgate.toml", toml);
    let (bundle, _) = made(&suite, 0);
    let there = There::new(&bundle);
    let mut child = there.command(&[]).stdout(std::process::Stdio::null()).spawn().unwrap();
    let begun = std::time::Instant::now();
    while !first_result(&there.0.work().join(".benchgate/sessions")) {
        assert!(begun.elapsed() < std::time::Duration::from_secs(60), "nothing was measured");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let session = session(&there.0);
    there.run(&[]).expect_code(0);
    assert_eq!(there.run_json()["session"], session);
    assert_eq!(benchmarks(&there.run_json())[0]["processes"].as_array().unwrap().len(), 6);
}

/// The only session that was started in a world.
fn session(world: &World) -> Value {
    let sessions = world.work().join(".benchgate/sessions");
    let folder = std::fs::read_dir(sessions).unwrap().next().unwrap().unwrap().path();
    let head: Value = serde_json::from_slice(&std::fs::read(folder.join("session.json")).unwrap()).unwrap();
    head["session"].clone()
}

fn first_result(sessions: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(sessions) else { return false };
    entries.flatten().any(|session| session.path().join("processes/00000.json").exists())
}

#[test]
fn the_two_halves_are_asked_for_whole() {
    let suite = Suite::new().model("a", &[]).write();
    for args in [
        &["run", "--until", "compile"][..],
        &["run", "--from", "verify"],
        &["run", "--bundle", "x"],
        &["run", "--until", "compile", "--from", "verify", "--bundle", "x"],
        &["run", "--from", "verify", "--bundle", "x", "--side", "head"],
        &["run", "--from", "verify", "--bundle", "x", "--bundle-sha256", "abc"],
        &["run", "--until", "verify", "--bundle", "x"],
        &["run", "--until", "compile", "--bundle", "x", "--run", "run.json"],
        &["run", "--until", "compile", "--bundle", "x", "--backend", "eager"],
        &["gate", "--until", "compile", "--bundle", "x", "--stored"],
        &["gate", "--from", "verify", "--bundle", "x", "--base", "main"],
    ] {
        suite.world.run(args).expect_code(2);
    }
    suite.world.run(["run", "--from", "verify", "--bundle", "nothing.bundle"]).expect_code(20);
}

/// The names and contents of a bundle's entries.
pub fn entries(bundle: &Path) -> Vec<(String, Vec<u8>)> {
    let mut archive = tar::Archive::new(std::fs::File::open(bundle).unwrap());
    let read = |entry: std::io::Result<tar::Entry<'_, std::fs::File>>| {
        let mut entry = entry.unwrap();
        let mut content = Vec::new();
        std::io::Read::read_to_end(&mut entry, &mut content).unwrap();
        (entry.path().unwrap().to_str().unwrap().to_owned(), content)
    };
    archive.entries().unwrap().map(read).collect()
}

fn manifest(bundle: &Path) -> Value {
    serde_json::from_slice(&entries(bundle)[0].1).unwrap()
}

/// Writes a bundle again with another manifest.
fn rewrite(bundle: &Path, change: impl Fn(&mut Value)) {
    let mut entries = entries(bundle);
    let mut manifest: Value = serde_json::from_slice(&entries[0].1).unwrap();
    change(&mut manifest);
    entries[0].1 = serde_json::to_vec(&manifest).unwrap();
    std::fs::write(bundle, write_entries(&entries)).unwrap();
}

/// A bundle of these entries.
pub fn write_entries(entries: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, content) in entries {
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, content.as_slice()).unwrap();
    }
    archive.into_inner().unwrap()
}

fn refused(change: impl Fn(&mut Value)) -> String {
    let suite = paired().write();
    let (bundle, _) = made(&suite, 0);
    rewrite(&bundle, change);
    let there = There::new(&bundle);
    let outcome = there.run(&[]).expect_code(21);
    assert!(!there.0.work().join("run.json").exists());
    without_digests(&outcome.messages())
}

#[test]
fn a_manifest_that_lies_is_refused_before_anything_of_it_is_run() {
    let digest = refused(|manifest| manifest["files"][1]["sha256"] = "0".repeat(64).into());
    insta::assert_snapshot!(digest, @"
    error: failed to use the bundle suite.bundle: data/[DIGEST].npy has sha256 [DIGEST], listed as [DIGEST]
    hint: create the bundle again: `benchgate run --until compile --bundle FILE`
    ");
    let path = refused(|manifest| manifest["files"][1]["path"] = "../../evil".into());
    insta::assert_snapshot!(path, @r#"
    error: failed to use the bundle suite.bundle: files[1]: "../../evil" is not a plain path
    hint: create the bundle again: `benchgate run --until compile --bundle FILE`
    "#);
    let name = refused(|manifest| manifest["sides"][1]["benchmarks"][0]["name"] = "z/cpu/main".into());
    insta::assert_snapshot!(name, @r#"
    error: failed to use the bundle suite.bundle: its configuration has no benchmark "z/cpu/main"
    hint: create the bundle again: `benchgate run --until compile --bundle FILE`
    "#);
    let tool = refused(|manifest| {
        let config = manifest["sides"][0]["config"].clone();
        manifest["sides"][0]["run_module"] = config;
    });
    insta::assert_snapshot!(tool, @"
    error: failed to use the bundle suite.bundle: its tools are not in the folder `tools`
    hint: create the bundle again: `benchgate run --until compile --bundle FILE`
    ");
}

#[test]
fn tools_of_another_commit_than_the_pin_are_not_run() {
    let suite = paired().write();
    let (bundle, _) = made(&suite, 0);
    rewrite(&bundle, |manifest| {
        manifest["sides"][1]["toolchain"]["runtime_commit"] = "2".repeat(40).into();
    });
    let outcome = There::new(&bundle).run(&[]).expect_code(20);
    // The first line contains the folder into which the bundle was unpacked.
    let messages = outcome.messages();
    insta::assert_snapshot!(messages.lines().last().unwrap(), @"hint: correct the pin in benchgate.toml: its commit or its version does not match these tools");
}

#[test]
fn a_module_for_one_very_processor_is_not_measured_on_another() {
    let suite = Suite::new().model("a", &[]).head("flags = [\"--iree-llvmcpu-target-cpu=host\"]").write();
    let (bundle, _) = made(&suite, 0);
    There::new(&bundle).run(&[]).expect_code(0);
    rewrite(&bundle, |manifest| manifest["made_on"]["isa"] = "armv8".into());
    let there = There::new(&bundle);
    there.run(&[]).expect_code(20);
    let found = benchmarks(&there.run_json());
    assert_eq!(
        (&found[0]["outcome"]["status"], &found[0]["outcome"]["stage"]),
        (&"failed".into(), &"verify".into())
    );
    assert!(found[0]["processes"].is_null());
}
