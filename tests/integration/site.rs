//! `benchgate site`: the files that it writes and keeps, and its reports about missing sessions.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::SystemTime;

use crate::harness::World;
use crate::simulated_history::{self as history, Plan};

const PLAN: Plan = Plan { seed: 3, nights: 72, benchmarks: 8, processes: 3, noise: 0.004, hostile: true };

fn world(plan: &Plan) -> World {
    let world = World::new();
    history::write(plan, &world.work().join("baselines"));
    world
}

fn now(night: usize) -> String {
    history::began(night).to_string()
}

/// The content and the modification time of every file, by path.
fn files(folder: &Path) -> BTreeMap<String, (Vec<u8>, SystemTime)> {
    let (mut found, mut folders) = (BTreeMap::new(), vec![folder.to_owned()]);
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                let time = path.metadata().unwrap().modified().unwrap();
                found.insert(name, (std::fs::read(&path).unwrap(), time));
            }
        }
    }
    found
}

#[test]
fn the_same_history_gives_the_same_site_and_nothing_is_written_twice() {
    let world = world(&PLAN);
    let present = now(PLAN.nights);
    let arguments = ["site", "public", "--now", &present];
    world.run(arguments).expect_code(0);
    let before = files(&world.work().join("public"));
    assert!(before.len() > 20 && before.contains_key("index.html"));
    let again = world.run(arguments).expect_code(0);
    assert!(again.stdout.contains(" 0 files,"), "{}", again.stdout);
    assert_eq!(
        before.iter().filter(|(name, _)| *name != "benchgate-site.json").collect::<Vec<_>>(),
        files(&world.work().join("public"))
            .iter()
            .filter(|(name, _)| *name != "benchgate-site.json")
            .collect::<Vec<_>>()
    );
}

#[test]
fn the_first_section_is_what_is_slower_now_with_its_machine_and_commits() {
    let world = world(&PLAN);
    world.run(["site", "public", "--now", &now(PLAN.nights)]).expect_code(0);
    let page = world.read("public/index.html");
    let first = page.find("<h2>").unwrap();
    assert!(page[first..].starts_with("<h2>Open slowdowns</h2>"), "{}", &page[first..first + 80]);
    let open = &page[first..page.find("Also moved this week").unwrap()];
    assert!(open.contains("<article") && open.contains("<bdi>cpu</bdi>") && open.contains(".."), "{open}");
    assert!(page.contains("<bdi>chip A</bdi>"), "a testbed has the name of its device");
}

#[test]
fn a_night_of_one_testbed_leaves_the_pages_of_the_others_alone() {
    let world = world(&PLAN);
    world.run(["site", "public", "--now", &now(PLAN.nights)]).expect_code(0);
    let before = files(&world.work().join("public"));
    // Only the newest session of the CPU is removed.
    let shelf = world.work().join("baselines/zoo/cpu");
    let mut sessions: Vec<_> =
        std::fs::read_dir(&shelf).unwrap().map(|entry| entry.unwrap().path()).collect();
    sessions.sort();
    std::fs::remove_file(sessions.last().unwrap()).unwrap();
    world.run(["site", "public", "--now", &now(PLAN.nights)]).expect_code(0);
    let after = files(&world.work().join("public"));
    let changed: Vec<&String> =
        before.iter().filter(|(name, file)| after.get(*name) != Some(file)).map(|(name, _)| name).collect();
    assert!(changed.iter().any(|name| name.starts_with("b/") && name.contains("zoo-cpu")), "{changed:?}");
    let others = changed.iter().filter(|name| name.contains("gpu"));
    assert_eq!(others.count(), 0, "{changed:?}");
    // Files of old sessions are unchanged, and the file of the removed session is removed.
    assert_eq!(changed.iter().filter(|name| name.starts_with("s/")).count(), 2, "{changed:?}");
}

#[test]
fn a_missing_week_turns_the_night_red() {
    let world = world(&Plan { nights: 40, benchmarks: 6, ..PLAN });
    let site = |night: usize| world.run(["site", "public", "--fail-on", "missing", "--now", &now(night)]);
    // One benchmark was removed twenty nights before the end, and the old chip was replaced.
    insta::assert_snapshot!(site(40).expect_code(12).messages(), @"
    warning: missing: ../../../etc/passwd of zoo on cpu was last measured on 2024-12-09, 21 days ago
    note: the whole testbed of zoo on gpu-old-chip was last measured on 2024-12-17, 13 days ago; replaced by testbed gpu-new-chip
    ");
    // A week later there is still no new session.
    insta::assert_snapshot!(site(47).expect_code(12).messages(), @"
    warning: missing: the whole testbed of zoo on cpu was last measured on 2024-12-29, 8 days ago
    warning: missing: the whole testbed of zoo on gpu-new-chip was last measured on 2024-12-29, 8 days ago
    warning: missing: the whole testbed of zoo on gpu-old-chip was last measured on 2024-12-17, 20 days ago
    ");
    // Without the option, the site is written and the missing sessions are reported.
    world.run(["site", "public", "--now", &now(47)]).expect_code(0);
}

#[test]
fn a_benchmark_that_is_slow_now_and_then_is_named_and_no_other() {
    let plan = Plan { hostile: false, ..PLAN };
    let said = world(&plan).run(["site", "public", "--now", &now(plan.nights)]).expect_code(0).stderr;
    let named: Vec<&str> = said.lines().filter(|line| line.contains("unstable: ")).collect();
    let name = history::name(history::unstable(&plan).0, &plan);
    assert!(named.len() == 1 && named[0].contains(&format!("{name} of zoo on cpu")), "{said}");
}

#[test]
fn silence_that_was_acknowledged_is_not_an_alarm() {
    let plan = Plan { nights: 40, benchmarks: 6, hostile: false, ..PLAN };
    let world = world(&plan);
    let name = history::name(history::dropped(&plan).0, &plan);
    let site = || world.run(["site", "public", "--fail-on", "missing", "--now", &now(40)]);
    site().expect_code(12);
    let accept = ["baseline", "accept", "zoo", "--testbed", "cpu", "--benchmark", &name];
    let reason = ["--who", "kim", "--why", "removed on purpose"];
    world.run(accept.into_iter().chain(reason)).expect_code(0);
    insta::assert_snapshot!(site().expect_code(0).messages(), @"
    note: model-004/target/main of zoo on cpu was last measured on 2024-12-09, 21 days ago; acknowledged by kim: removed on purpose
    note: the whole testbed of zoo on gpu-old-chip was last measured on 2024-12-17, 13 days ago; replaced by testbed gpu-new-chip
    ");
}

#[test]
fn a_name_that_no_recent_session_has_is_not_accepted() {
    let world = world(&Plan { nights: 25, benchmarks: 6, ..PLAN });
    let accept = ["baseline", "accept", "zoo", "--testbed", "cpu", "--benchmark", "mdoel-*"];
    world.run(accept.into_iter().chain(["--who", "kim", "--why", "a typo"])).expect_code(2);
}

#[test]
fn a_folder_with_something_else_in_it_is_refused_and_kept() {
    let world = world(&Plan { nights: 12, benchmarks: 6, ..PLAN });
    world.write("public/thesis.tex", "all of it");
    let refused = world.run(["site", "public"]).expect_code(2);
    assert!(refused.stdout.is_empty());
    assert_eq!(world.read("public/thesis.tex"), "all of it");
}

#[test]
fn a_damaged_session_is_named_and_counted_on_the_site() {
    let world = world(&Plan { nights: 12, benchmarks: 6, ..PLAN });
    let shelf = world.work().join("baselines/zoo/cpu");
    let mut entries = std::fs::read_dir(&shelf).unwrap().map(|entry| entry.unwrap().path());
    let session = entries.find(|path| !path.to_str().unwrap().contains("-accept-")).unwrap();
    let text = std::fs::read_to_string(&session).unwrap().replacen("night-", "other-", 1);
    std::fs::write(&session, text).unwrap();
    let said = world.run(["site", "public", "--now", &now(12), "--quiet"]).expect_code(0).stderr;
    assert!(said.contains("is left out"), "{said}");
    assert!(world.read("public/index.html").contains("1 unusable file"));
}

#[test]
fn an_empty_baseline_is_no_site() {
    World::new().run(["site", "public"]).expect_code(12);
}

#[test]
fn no_page_holds_anything_inline_that_its_policy_forbids() {
    let world = world(&Plan { nights: 30, benchmarks: 8, ..PLAN });
    world.run(["site", "public", "--now", &now(30)]).expect_code(0);
    for (name, (content, _)) in files(&world.work().join("public")) {
        if !name.ends_with(".html") {
            continue;
        }
        let text = String::from_utf8(content).unwrap();
        let scripts: Vec<&str> = text.match_indices("<script").map(|(at, _)| &text[at..]).collect();
        for script in scripts {
            let runs = !script.starts_with("<script type=\"application/json\"");
            assert!(!runs || script.contains("assets/site.js"), "{name}: {}", &script[..60]);
        }
        for forbidden in ["<style", " style=\"", "javascript:", "<img", "<iframe", " src=\"http"] {
            assert!(!text.contains(forbidden), "{name} holds {forbidden}");
        }
        assert!(text.contains("default-src 'none'"), "{name}");
    }
}

#[test]
fn a_reboot_and_another_load_are_no_change_of_the_machine() {
    let world = World::new();
    let site = |notes: [(&str, &str); 3], day: u8| {
        let mut run: serde_json::Value =
            serde_json::from_str(&crate::baseline::run(day, 'a', 120_000.0 + f64::from(day))).unwrap();
        for (note, value) in notes {
            run["testbed"]["notes"][note] = value.into();
        }
        world.write("run.json", run.to_string());
        world.run(["baseline", "update"]);
        world.run(["site", "public", "--now", "2026-10-09T12:00:00Z"]);
        let pages = files(&world.work().join("public"));
        let said = |text: &str| {
            pages.iter().any(|(name, (page, _))| {
                name.ends_with(".html") && String::from_utf8_lossy(page).contains(text)
            })
        };
        (said("a change of the machine"), said("machine: microcode 0x1 → 0x2"))
    };
    site([("load-average", "0.10 0.20 0.30"), ("boot-id", "one"), ("microcode", "0x1")], 1);
    let unchanged = site([("load-average", "0.50 0.20 0.30"), ("boot-id", "two"), ("microcode", "0x1")], 2);
    assert_eq!(unchanged, (false, false));
    let updated = site([("load-average", "0.70 0.20 0.30"), ("boot-id", "two"), ("microcode", "0x2")], 3);
    assert_eq!(updated, (true, true));
}

/// The section about what is slower now.
fn open_slowdowns(world: &World, options: &[&str]) -> String {
    let arguments = [&["site", "public", "--now", "2026-10-16T00:00:00Z"][..], options].concat();
    world.run(&arguments).expect_code(0);
    let page = world.read("public/index.html");
    page.split("<h2>").find(|section| section.starts_with("Open slowdowns")).unwrap().to_owned()
}

const CALM: &str = "Nothing is slower than its baseline";

#[test]
fn a_site_of_a_few_sessions_lists_what_is_red_and_says_which_sessions_it_is_about() {
    let world = World::new();
    crate::baseline::eleven_days(&world);
    for day in [12, 13] {
        world.write("run.json", crate::baseline::run(day, 'b', 180_000.0 + f64::from(day) * 10.0));
        world.run(["baseline", "update"]).expect_code(10);
    }
    for sessions in [&[][..], &["--sessions", "2"], &["--sessions", "3"], &["--sessions", "4"]] {
        let open = open_slowdowns(&world, sessions);
        assert!(open.contains("1 benchmark is red now") && open.contains("mlp/cpu/main"), "{open}");
        assert!(open.contains("2026-10-1") && !open.contains(CALM), "{open}");
    }
    assert!(open_slowdowns(&world, &["--sessions", "2"]).contains("or earlier"));

    let world = World::new();
    for day in 1..=5 {
        let latency = 120_000.0 + f64::from(day % 3) * 90.0;
        world.write("run.json", crate::baseline::run(day, 'a', latency));
        world.run(["baseline", "update"]).expect_code(0);
    }
    assert!(open_slowdowns(&world, &[]).contains(&format!("{CALM}.")));
    assert!(open_slowdowns(&world, &["--sessions", "9"]).contains(&format!("{CALM}.")));
    let cut = open_slowdowns(&world, &["--sessions", "3"]);
    assert!(cut.contains(&format!("{CALM} in the newest 3 sessions")), "{cut}");
}

#[test]
fn a_metric_that_the_configuration_makes_fatal_is_shown_while_it_is_red() {
    let world = World::new();
    world.write(
        "benchgate.toml",
        "[suite]\nname = \"quickstart\"\n\n[[command]]\nname = \"a\"\nrun = \"true\"\n\n\
         [gate.metric.cpu-time]\nfatal = true\n\n[gate.metric.vmfb-size]\nfatal = true\n",
    );
    let night = |day: u8, letter: char, cpu: f64, size: u64, code: i32| {
        let latency = 120_000.0 + f64::from(day % 3) * 90.0;
        let mut run: serde_json::Value =
            serde_json::from_str(&crate::baseline::run(day, letter, latency)).unwrap();
        let benchmark = &mut run["sides"][0]["benchmarks"][0];
        benchmark["artifact"]["vmfb_bytes"] = size.into();
        for process in benchmark["processes"].as_array_mut().unwrap() {
            process["samples"]["cpu-time"] = vec![cpu, cpu + 0.25, cpu + 0.5].into();
        }
        world.write("run.json", run.to_string());
        world.run(["baseline", "update"]).expect_code(code);
    };
    for day in 1..=10 {
        night(day, 'a', 110_000.0 + f64::from(day % 3) * 70.0, 50_000, 0);
    }
    for day in 11..=13 {
        night(day, 'b', 143_000.0 + f64::from(day % 3) * 70.0, 50_000, 10);
    }
    let open = open_slowdowns(&world, &[]);
    assert!(open.contains("1 benchmark is red now") && open.contains("+30.0 %"), "{open}");
    assert!(open.contains("cpu-time") && !open.contains("latency"), "{open}");

    // The size of a module is not stored as a value, so only the verdict is known.
    night(14, 'c', 110_000.0, 50_000, 10);
    night(15, 'd', 110_070.0, 60_000, 10);
    let open = open_slowdowns(&world, &[]);
    assert!(open.contains("is red now") && !open.contains(CALM), "{open}");
}
