//! `benchgate pair`: manipulations of results by head's command.

use std::os::unix::fs::PermissionsExt;

use crate::harness::{Outcome, World};

use super::{FAIL_ON, Greens};

/// Prints two benchmarks of about 100 µs in Google Benchmark's format. The time of day serves as noise that
/// does not depend on load.
const HONEST: &str = r#"
row() { printf '{"name":"%s","run_type":"iteration","iterations":10,"real_time":100.0%s,"cpu_time":100.0%s,"time_unit":"us"}' "$1" "$2" "$2"; }
rows() { printf '{"context":{},"benchmarks":['; row BM_a "$(date +%N)"; printf ','; row BM_b "$(date +%N)"; printf ']}'; }
"#;

/// With two blocks, an honest pair stays undecided, which does not fail here. Each case has to end in another
/// verdict.
const SHORT: [&str; 4] = ["--max-blocks", "2", "--fail-on", "regressed,diverged,error,missing"];

struct Commands(World);

impl Commands {
    fn new() -> Self {
        let commands = Self(World::new());
        commands.script("base", "rows");
        commands
    }

    fn script(&self, name: &str, body: &str) {
        let path = self.0.write(name, format!("#!/bin/sh\n{HONEST}\n{body}\n"));
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn pair(&self, options: &[&str]) -> Outcome {
        let all = ["pair", "--warmup", "0", "--timeout", "2s"];
        self.0.run(all.iter().chain(&SHORT).chain(options))
    }

    /// Runs head with this script against an honest base.
    fn head(&self, body: &str) -> Outcome {
        self.script("head", body);
        self.pair(&["./base", "./head"])
    }
}

#[test]
fn what_head_prints_is_never_green_unless_it_is_what_base_prints() {
    let commands = Commands::new();
    commands.script("head", "rows");
    commands.pair(&["./base", "./head"]).expect_code(0);

    let mut greens = Greens::default();
    let one = |name: &str| {
        format!(r#"printf '{{"context":{{}},"benchmarks":['; row {name} "$(date +%N)"; printf ']}}'"#)
    };
    let edited = |from: &str, to: &str| format!("rows | sed 's/{from}/{to}/'");
    // The first two processes are honest.
    let later =
        |body: &str| format!("echo x >> count; if [ $(wc -l < count) -gt 2 ]; then {body}; else rows; fi");
    for (case, body) in [
        ("fewer rows", one("BM_a")),
        ("fewer rows later", later(&one("BM_a"))),
        ("another name", edited("BM_b", "BM_c")),
        ("another name later", later(&edited("BM_b", "BM_c"))),
        ("a time of zero", edited(r"100\.[0-9]*", "0")),
        ("a time of zero later", later(&edited(r"100\.[0-9]*", "0"))),
        ("a negative time", edited("100", "-100")),
        ("a time that is no number", edited(r"100\.[0-9]*", "NaN")),
        ("an infinite time", edited(r"100\.[0-9]*", "1e999")),
        ("a failed row", edited(r#""run_type""#, r#""error_occurred":true,"error_message":"no","run_type""#)),
        (
            "a skipped row",
            edited(r#""run_type""#, r#""skipped":"by request","skip_message":"no","run_type""#),
        ),
        ("an unknown unit", edited("us", "moons")),
        (
            "medians",
            edited(
                r#""run_type":"iteration""#,
                r#""run_type":"aggregate","aggregate_name":"median","run_name":"BM_a""#,
            ),
        ),
        ("no rows", r#"echo '{"context":{},"benchmarks":[]}'"#.to_owned()),
        ("nothing", "true".to_owned()),
        ("nothing later", later("true")),
        ("prose", "echo all benchmarks passed".to_owned()),
        ("half of the output", "rows | head -c 120".to_owned()),
        ("half of the output later", later("rows | head -c 120")),
        ("a failure", "rows; exit 1".to_owned()),
        ("a failure later", later("rows; exit 1")),
        ("a crash", "rows; kill -SEGV $$".to_owned()),
        ("an endless process", "rows; sleep 60".to_owned()),
        ("a run of its own", "cat .benchgate/pair.json".to_owned()),
        ("itself replaced", "cp head other; mv other head; rows".to_owned()),
    ] {
        let _ = std::fs::remove_file(commands.0.work().join("count"));
        greens.check(case, &commands.head(&body));
    }
    // Changes that only the statistics can detect need all blocks.
    commands.script("head", "cat copy || { rows > copy; cat copy; }");
    greens.check(
        "the same output each time",
        &commands.0.run(["pair", "./base", "./head", "--fail-on", FAIL_ON]),
    );
    greens.none(26);
}

/// The program of both sides is an interpreter, so the scripts must not change.
#[test]
fn a_script_that_the_other_side_exchanges_is_never_green() {
    let commands = Commands::new();
    commands.script("head", "rows");
    commands.pair(&["sh base", "sh head"]).expect_code(0);
    commands.pair(&["--shell", "sh ./base", "sh ./head"]).expect_code(0);
    let mut greens = Greens::default();
    let exchange = "sed s/100/900/g head.slow > base.new; mv base.new base; rows";
    for options in [&["sh base", "sh head"][..], &["--shell", "sh ./base; true", "sh ./head"]] {
        commands.script("base", "rows");
        commands.script("head.slow", "rows");
        commands.script("head", exchange);
        let outcome = commands.pair(options);
        assert!(outcome.stderr.contains("changed while it was measured"), "{}", outcome.stderr);
        greens.check("base's script replaced by a slower one", &outcome);
    }
    greens.none(2);
}

#[test]
fn a_command_that_does_not_run_as_asked_is_never_green() {
    let commands = Commands::new();
    commands.script("head", "rows");
    commands.script("silent", "sleep 0.1");
    // The body runs in the second process of the second slot.
    let later =
        |body: &str| format!("sleep 0.1; echo x >> count; if [ $(wc -l < count) -eq 7 ]; then {body}; fi");
    commands.script("fails", &later("exit 1"));
    commands.script("prints", &later("rows"));
    commands.script("lingers", &later("sleep 30 & true"));
    commands.pair(&["./base", "./head", "--setup", "true", "--prepare", "true"]).expect_code(0);
    let mut greens = Greens::default();
    let mut check = |case: &str, options: &[&str]| {
        greens.check(case, &commands.pair(options));
    };
    check("no such program", &["./base", "./absent"]);
    check("no such base", &["./absent", "./head"]);
    check("no program on either side", &["./absent"]);
    check("an output that is not written", &["./base {output}", "./head {output}"]);
    check("another format than the one asked for", &["./base", "./head", "--format-in", "hyperfine-json"]);
    check("failed set-up", &["./base", "./head", "--setup", "false"]);
    check("failed preparation", &["./base", "./head", "--prepare", "false"]);
    check(
        "a command that goes on in the background",
        &["--shell", "--whole", "sleep 0.01", "sleep 30 & true"],
    );
    check("rows against a whole process", &["./silent", "./head"]);
    check("a whole process against rows", &["./base", "./silent"]);
    check("a whole process that fails", &["./silent", "false"]);
    for head in ["./fails", "./prints", "./lingers"] {
        let _ = std::fs::remove_file(commands.0.work().join("count"));
        check("one process among several", &["./silent", head]);
    }
    check("a filter that selects nothing", &["./base {filter}", "sh -c true {filter}"]);
    greens.none(15);
}
