//! `[[command]]`: manipulations of commands by the head of a pull request.

use std::path::Path;

use crate::harness::{Outcome, World};
use crate::pull_request::branch;

use super::Greens;

/// Prints two benchmarks in Google Benchmark's format. The time of day serves as noise that does not depend
/// on load.
const ROWS: &str = r#"
row() { printf '{"name":"%s","run_type":"iteration","iterations":10,"real_time":100.0%s,"cpu_time":90.0%s,"time_unit":"us"}' "$1" "$(date +%N)" "$(date +%N)"; }
rows() { printf '{"context":{},"benchmarks":['; row BM_a; printf ','; row BM_b; printf ']}'; }
"#;

/// With two blocks, an honest pair stays undecided, which does not fail here. Each case has to end in another
/// verdict.
const SHORT: [&str; 6] =
    ["gate", "--base=main", "--max-blocks=2", "--fail-on", "regressed,diverged,error,missing", "--all"];

pub(super) const CONFIG: &str = "[suite]\nname = \"micro\"\n\n[[command]]\nname = \"micro\"\nbuild = \"cp bench.sh {build}/bench\"\n\
                      run = \"sh {build}/bench\"\ntimeout = \"2s\"\nwarmup = 0\n\n[measure]\ncompile-timeout = \"2s\"\n";

/// A benchmark that does this.
pub(super) fn script(body: &str) -> String {
    format!("{ROWS}\n{body}\n")
}

/// A repository whose head is its working tree.
pub(super) struct Change(pub(super) World);

impl Change {
    /// Creates a repository whose base has this benchmark and this configuration.
    pub(super) fn new(bench: &str, config: &str) -> Self {
        let change = Self::empty();
        change.begin(bench, config);
        change
    }

    /// Creates a folder for the files of the base.
    pub(super) fn empty() -> Self {
        Self(World::new())
    }

    /// Commits the folder as the base.
    pub(super) fn begin(&self, bench: &str, config: &str) {
        self.0.write("benchgate.toml", config);
        self.bench(bench);
        branch(&self.0.work());
    }

    pub(super) fn bench(&self, body: &str) {
        self.0.write("bench.sh", script(body));
    }

    fn configure(&self, from: &str, to: &str) {
        assert!(CONFIG.contains(from), "{from}");
        self.0.write("benchgate.toml", CONFIG.replace(from, to));
    }

    fn gate(&self) -> Outcome {
        self.0.run(SHORT)
    }

    /// Runs the gate so that only a pass ends with exit code 0, and prints JSON.
    pub(super) fn strictly(&self) -> Outcome {
        let args = ["gate", "--base=main", "--max-blocks=2", "--fail-on", super::FAIL_ON, "--format=json"];
        self.0.run(args)
    }
}

#[test]
fn what_heads_command_prints_is_never_green_unless_it_is_what_base_prints() {
    let change = Change::new("rows", CONFIG);
    change.gate().expect_code(0);
    let mut greens = Greens::default();
    let edited = |from: &str, to: &str| format!("rows | sed 's/{from}/{to}/'");
    for (case, body) in [
        ("fewer rows", r#"printf '{"context":{},"benchmarks":['; row BM_a; printf ']}'"#.to_owned()),
        ("another name", edited("BM_b", "BM_c")),
        ("the command's own name before it", edited("BM_b", "micro\\/BM_b")),
        ("a time of zero", edited(r"100\.[0-9]*", "0")),
        ("no rows", r#"echo '{"context":{},"benchmarks":[]}'"#.to_owned()),
        ("nothing", "true".to_owned()),
        ("half of the output", "rows | head -c 120".to_owned()),
        ("a failure", "rows; exit 1".to_owned()),
        ("a crash", "rows; kill -SEGV $$".to_owned()),
        ("an endless process", "rows; sleep 60".to_owned()),
    ] {
        change.bench(&body);
        greens.check(case, &change.gate());
    }
    greens.none(10);
}

#[test]
fn a_limit_of_another_name_than_any_row_withholds_every_pass() {
    for (benchmark, is_unmatched) in [("BM_a", true), ("micro/BM_A", true), ("micro/BM_a", false)] {
        let limit = format!("\n[[limit]]\nbenchmark = \"{benchmark}\"\nmetric = \"latency\"\nmax = \"1s\"\n");
        let comparison = Change::new("rows", &format!("{CONFIG}{limit}")).strictly().json();
        assert_eq!(comparison.to_string().contains("unmatched-limit"), is_unmatched, "{benchmark}");
    }
}

#[test]
fn a_head_whose_command_is_not_built_or_is_gone_is_never_green() {
    let change = Change::new("rows", CONFIG);
    change.gate().expect_code(0);
    let mut greens = Greens::default();
    for (case, from, to) in [
        ("a failed build", "cp bench.sh {build}/bench", "false"),
        ("a build that does not exist", "cp bench.sh", "no-such-program"),
        ("a build that leaves nothing", "cp bench.sh {build}/bench", "true"),
        ("an endless build", "cp bench.sh {build}/bench", "sleep 60"),
        ("a build that is killed", "cp bench.sh {build}/bench", "sh -c 'kill -9 $$'"),
        (
            "a second step that fails",
            "\"cp bench.sh {build}/bench\"",
            "[\"cp bench.sh {build}/bench\", \"false\"]",
        ),
        ("another name", "name = \"micro\"\nbuild", "name = \"other\"\nbuild"),
        ("a configuration without it", "[[command]]", "[ignored]"),
    ] {
        change.configure(from, to);
        greens.check(case, &change.gate());
    }
    greens.none(8);
}

#[test]
fn a_base_that_is_not_built_is_never_green() {
    let mut greens = Greens::default();
    for (case, from, to) in [
        ("a failed build", "cp bench.sh {build}/bench", "false"),
        ("no build", "build = \"cp bench.sh {build}/bench\"\nrun = \"sh {build}/bench", "run = \"sh absent"),
    ] {
        let change = Change::new("rows", &CONFIG.replace(from, to));
        greens.check(&format!("{case} on both sides"), &change.gate());
        change.0.write("benchgate.toml", CONFIG);
        greens.check(&format!("{case} of base"), &change.gate());
    }
    greens.none(4);
}

/// The paths of base's files, relative to the folder in which head's program runs.
const BASES_SOURCES: &str = "../cache/benchgate/checkouts/checkout-*/content/tree";
pub(super) const BASES_BUILD: &str = "../cache/benchgate/commands/*/content/base";

#[test]
fn a_head_that_writes_to_bases_files_is_never_green() {
    let change = Change::new("rows", CONFIG);
    let mut greens = Greens::default();
    let write = |folder: &str, file: &str| {
        format!("for d in {folder}; do chmod u+w $d $d/{file}; echo '# slower' >> $d/{file}; done")
    };
    let mut check = |case: &str, outcome: &Outcome| {
        assert!(outcome.stderr.contains("changed while it was measured"), "{case}: {}", outcome.stderr);
        greens.check(case, outcome);
    };
    for (case, body) in [
        ("base's sources", write(BASES_SOURCES, "bench.sh")),
        ("base's program", write(BASES_BUILD, "bench")),
        ("a new file next to base's program", write(BASES_BUILD, "sitecustomize.py")),
    ] {
        change.bench(&format!("{body}; rows"));
        check(case, &change.gate());
    }
    change.bench("rows");
    change.0.write("build.sh", write(BASES_BUILD, "bench"));
    change.configure("\"cp bench.sh {build}/bench\"", "[\"sh build.sh\", \"cp bench.sh {build}/bench\"]");
    check("base's program, by the build", &change.gate());
    greens.none(4);
}

/// Computes for a millisecond and writes a result to the build folder.
pub(super) const COMPUTES: &str = "echo 42 > \"$1/y.txt\"; rows";

pub(super) const WITH_OUTPUTS: &str = "[suite]\nname = \"micro\"\n\n[[command]]\nname = \"micro\"\nbuild = \"true\"\n\
                            run = \"sh bench.sh {build}\"\noutputs = [\"y.txt\"]\ntimeout = \"2s\"\nwarmup = 0\n";

#[test]
fn no_process_of_head_finds_or_leaves_out_what_it_has_to_compute() {
    let change = Change::new(COMPUTES, WITH_OUTPUTS);
    change.gate().expect_code(0);
    let mut greens = Greens::default();
    let mut check = |case: &str, body: &str, from: &str, to: &str| {
        let _ = std::fs::remove_file(change.0.work().join("count"));
        change.bench(body);
        assert!(WITH_OUTPUTS.contains(from), "{from}");
        change.0.write("benchgate.toml", WITH_OUTPUTS.replace(from, to));
        greens.check(case, &change.gate());
    };
    check("the build brings it", "rows", "\"true\"", "\"sh -c 'echo 42 > {build}/y.txt'\"");
    check(
        "the build and every process write it",
        COMPUTES.replace("42", "43").as_str(),
        "\"true\"",
        "\"sh -c 'echo 42 > {build}/y.txt'\"",
    );
    let counted = |nth: &str, then: &str| {
        format!(
            "echo x >> count; if [ $(wc -l < count) {nth} ]; then {then}; else echo 42 > \"$1/y.txt\"; fi; rows"
        )
    };
    check("one process writes another", &counted("-eq 2", "echo 43 > \"$1/y.txt\""), "", "");
    check("one process writes nothing", &counted("-eq 2", "true"), "", "");
    check("all but the last write another", &counted("-lt 4", "echo 43 > \"$1/y.txt\""), "", "");
    check("base's", &format!("cp {BASES_BUILD}/y.txt \"$1\"; rows"), "", "");
    let elsewhere = "cp \"$(find .benchgate ../cache -name y.txt | head -n 1)\" \"$1\"; rows";
    check("base's, wherever it is", elsewhere, "", "");
    let filtered = ("run = \"sh bench.sh {build}\"", "run = \"sh bench.sh {build} {filter}\"");
    let first = "[ -e \"$1/y.txt\" ] || [ -e count ] || echo 42 > \"$1/y.txt\"; touch count; rows";
    check("the first process of a command that can run a part", first, filtered.0, filtered.1);
    greens.none(8);
}

#[test]
fn work_that_head_moves_before_the_measured_process_is_never_green() {
    let change = Change::new("rows", CONFIG);
    let gate = || change.strictly();
    let found = |outcome: &Outcome| outcome.stdout.contains("workload-changed");
    assert!(!found(&gate()));
    let mut greens = Greens::default();
    for (key, line) in [("prepare", "true"), ("setup", "sh -c true")] {
        let run = "run = \"sh {build}/bench\"";
        change.configure(run, &format!("{run}\n{key} = \"{line}\""));
        let outcome = gate();
        assert!(found(&outcome), "{key}: {}", outcome.said());
        greens.check(key, &outcome);
    }
    greens.none(2);
    // Lines that base has too don't count as a difference.
    let with = |line: &str| CONFIG.replace("run = ", &format!("prepare = \"{line}\"\nrun = "));
    let change = Change::new("rows", &with("test -d {build}"));
    let gate = || change.strictly();
    assert!(!found(&gate()));
    change.0.write("benchgate.toml", with("true"));
    assert!(found(&gate()));
    change.0.write("benchgate.toml", CONFIG);
    assert!(found(&gate()));
}

#[test]
fn a_command_timed_as_a_whole_that_prints_another_text_did_something_else() {
    let config = CONFIG.replace("\ntimeout", "\nformat = \"whole\"\ntimeout");
    let text = |error: &str, more: &str| format!("echo \"max error: {error} in $0, v1.2, 3f2a9bc1 {more}\"");
    let found = |base: &str, head: &str| {
        let change = Change::new(base, &config);
        change.bench(head);
        let outcome = change.strictly();
        assert!(outcome.stdout.contains("\"micro\""), "{}", outcome.said());
        outcome.stdout.contains("standard output `")
    };
    let base = text("1.2e-07", "");
    assert!(!found(&base, &format!("{base}; true")));
    assert!(found(&base, &text("3.4e+02", "")));
    // A program with a race is wrong in another way each time.
    assert!(found(&base, &text("1.2e-07", "$$")));
    let base = text("1.2e-07", "$$");
    assert!(!found(&base, &format!("{base}; true")), "a number that each process of base prints anew");
}

#[test]
fn a_head_whose_processes_report_a_problem_on_stderr_is_never_green() {
    let change = Change::new("rows", CONFIG);
    for line in ["Segmentation fault (core dumped)", "ERROR: outputs do not match the reference"] {
        change.bench(&format!("echo '{line}' >&2; rows"));
        let outcome = change.strictly();
        assert!(outcome.stdout.contains("reported-problem"), "{line}: {}", outcome.said());
        assert_ne!(outcome.code, Some(0), "{line}");
    }
    // Many programs always report the same.
    let change = Change::new("echo \"$$ ERROR: no GPU, Killed: line $$\" >&2; rows", CONFIG);
    change.bench("echo \"$$ ERROR: no GPU, Killed: line $$\" >&2; rows; true");
    let outcome = change.strictly();
    assert!(!outcome.stdout.contains("reported-problem"), "{}", outcome.said());
}

#[test]
fn a_command_whose_device_is_certainly_absent_is_not_measured() {
    let has = |nodes: &[&str]| nodes.iter().any(|node| Path::new("/dev").join(node).exists());
    let devices =
        [("hip", "no ROCm device", ["kfd", "dxg"]), ("cuda", "no CUDA device", ["nvidiactl", "dxg"])];
    let on = |device: &str| {
        let config = CONFIG.replace("warmup = 0", &format!("warmup = 0\ndevice = \"{device}\""));
        Change::new("rows", &config).strictly()
    };
    for (device, what, _) in devices.into_iter().filter(|(_, _, nodes)| !has(nodes)) {
        let outcome = on(device);
        assert!(outcome.stdout.contains(what), "{}", outcome.said());
        assert!(!outcome.stdout.contains("\"latency\""), "{}", outcome.said());
        assert_ne!(outcome.code, Some(0), "{device}");
    }
    // A processor can be a Vulkan device.
    let outcome = on("vulkan");
    assert!(outcome.stdout.contains("\"latency\""), "{}", outcome.said());
}
