//! A baseline in an object store, from the command line. `file://` has the same layout and rules as other
//! stores; `object_stores` tests real servers.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Stdio;

use crate::baseline::{eleven_days, run};
use crate::harness::World;
use crate::simulated_history::{self, Plan};
use crate::stored_gate::{commit, committed, git};
use crate::suite::Suite;

fn url(world: &World) -> String {
    format!("file://{}/objects", world.work().canonicalize().unwrap().parent().unwrap().display())
}

fn objects(world: &World) -> Vec<PathBuf> {
    let mut folders = vec![world.work().canonicalize().unwrap().parent().unwrap().join("objects")];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found
}

/// A committed suite whose configuration names an object store that contains one session.
fn stored() -> Suite {
    let suite = committed();
    let toml = suite.world.read("benchgate.toml");
    suite.world.write("benchgate.toml", format!("{toml}\n[store]\nurl = \"{}\"\n", url(&suite.world)));
    commit(&suite);
    suite.run_on_a_quiet_host();
    suite.world.run(["baseline", "update"]).expect_code(0);
    suite
}

#[test]
fn a_head_is_judged_by_the_sessions_in_the_store_of_the_configuration() {
    let suite = stored();
    assert_eq!(objects(&suite.world).len(), 1);
    suite.world.run(["gate"]).expect_no_failure();
    suite.source("a", &["latency-us=3000"]);
    suite.world.run(["gate"]).expect_code(10);
    suite.world.run(["gate", "--store", &format!("{}/none", url(&suite.world))]).expect_code(12);
}

#[test]
fn a_change_that_names_another_store_is_judged_by_the_one_that_was() {
    let suite = stored();
    git(&suite, &["checkout", "--quiet", "-b", "change"]);
    let toml = suite.world.read("benchgate.toml");
    suite.world.write("benchgate.toml", toml.replace("/objects\"", "/of-the-change\""));
    suite.source("a", &["latency-us=3000"]);
    commit(&suite);
    suite.world.run(["gate", "--stored", "--base", "main"]).expect_code(10);
}

#[test]
fn a_store_whose_sessions_are_damaged_is_not_one_without_sessions() {
    let suite = stored();
    for object in objects(&suite.world) {
        let bytes = std::fs::read(&object).unwrap();
        std::fs::write(&object, &bytes[..bytes.len() / 2]).unwrap();
    }
    let outcome = suite.world.run(["gate"]).expect_code(20);
    assert!(outcome.stderr.contains("not a usable Parquet file"), "{}", outcome.stderr);
    let verified = suite.world.run(["baseline", "verify", "--quiet"]).expect_code(22);
    assert!(verified.stderr.contains("is left out"), "{}", verified.stderr);
}

#[test]
fn an_export_shows_what_the_folder_shows() {
    let world = World::new();
    eleven_days(&world);
    world
        .run(["baseline", "accept", "--since", "bbbbbbb", "--why", "bigger tiles", "--who", "Ada"])
        .expect_code(0);
    let copied = world.run(["baseline", "export", "--parquet", "../objects"]).expect_code(0);
    assert_eq!(copied.stdout, "copied 11 sessions and 1 acceptance to ../objects, 0 already there\n");
    let show = |arguments: &[&str]| {
        let arguments = ["baseline", "show", "--format", "json"].iter().chain(arguments);
        world.run(arguments).expect_code(0).stdout
    };
    assert_eq!(show(&["--store", &url(&world)]), show(&[]));
    // The baseline is copied from one object store to another.
    let again = world.run(["baseline", "export", "--parquet", &url(&world)]).expect_code(0);
    assert!(again.stdout.contains("12 already there"), "{}", again.stdout);
}

#[test]
fn the_site_of_an_object_store_is_the_site_of_the_folder() {
    let world = World::new();
    let plan = Plan { seed: 1, nights: 60, benchmarks: 8, processes: 2, noise: 0.008, hostile: true };
    simulated_history::write(&plan, &world.work().join("baselines"));
    world.run(["baseline", "export", "--parquet", "../objects"]).expect_code(0);
    let now = simulated_history::began(60).to_string();
    let site = |folder: &str, arguments: &[&str]| {
        let fixed = ["site", folder, "--quiet", "--now", &now, "--repository", "https://github.com/o/r"];
        world.run(fixed.iter().chain(arguments)).expect_code(0);
        let mut files = BTreeMap::new();
        let mut folders = vec![world.work().join(folder)];
        while let Some(at) = folders.pop() {
            for entry in std::fs::read_dir(at).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let name = path.strip_prefix(world.work().join(folder)).unwrap().to_owned();
                    files.insert(name, std::fs::read(path).unwrap());
                }
            }
        }
        files
    };
    assert!(site("of-objects", &["--store", &url(&world)]) == site("of-folder", &[]));
}

#[test]
fn an_address_that_brings_more_than_a_place_is_a_mistake() {
    let world = World::new();
    for address in
        ["s3://key:secret@nightly/x", "s3://nightly/x?endpoint=http://127.0.0.1", "https://nightly/x"]
    {
        world.run(["baseline", "list", "--store", address]).expect_code(2);
        world.write("benchgate.toml", format!("[suite]\nname = \"x\"\n[store]\nurl = \"{address}\"\n"));
        let outcome = world.run(["baseline", "list"]).expect_code(2);
        assert!(outcome.stderr.contains("`url`: expected"), "{}", outcome.stderr);
        std::fs::remove_file(world.work().join("benchgate.toml")).unwrap();
    }
}

#[test]
fn a_store_that_can_not_be_reached_is_exit_22_without_a_secret() {
    let world = World::new();
    let attempt = |allowed: &[(&str, &str)]| {
        let mut command = world.command(["baseline", "list", "--store", "s3://nightly/x"]);
        command.env("AWS_ENDPOINT_URL", "http://127.0.0.1:9").env("AWS_REGION", "us-east-1");
        command.env("AWS_ACCESS_KEY_ID", "AKIDSECRET").env("AWS_SECRET_ACCESS_KEY", "verysecret");
        command.envs(allowed.iter().copied());
        world.finish(command).expect_code(22).stderr
    };
    let plain = attempt(&[]);
    assert!(plain.contains("AWS_ALLOW_HTTP"), "{plain}");
    let dead = attempt(&[("AWS_ALLOW_HTTP", "true")]);
    for text in [plain, dead] {
        assert!(text.contains("s3://nightly/x") && !text.to_lowercase().contains("secret"), "{text}");
    }
}

#[test]
fn a_writer_that_is_killed_at_any_moment_leaves_no_half_session() {
    let world = World::new();
    for moment in 0..8 {
        world.write("run.json", run(moment + 1, 'a', 100.0));
        let mut command = world.command(["baseline", "update", "--store", &url(&world)]);
        let mut child = command.stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(u64::from(moment) * 10));
        // The process may have ended already.
        drop(child.kill());
        child.wait().unwrap();
        world.run(["baseline", "update", "--store", &url(&world)]).expect_code(0);
    }
    let verified = world.run(["baseline", "verify", "--store", &url(&world)]).expect_code(0);
    assert!(verified.stdout.contains("8 runs in 1 baseline,"), "{}", verified.stdout);
}

#[test]
fn a_copy_of_an_object_store_is_no_folder_without_sessions() {
    let world = World::new();
    eleven_days(&world);
    world.run(["baseline", "export", "--parquet", "history"]).expect_code(0);
    let refused = world.run(["baseline", "show", "--store", "history"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("--store file://"), "{}", refused.stderr);
}
