//! A gate against three years of nights: 20 suites × 1,095 sessions × 100 benchmarks.
//!
//! `cargo bench --bench history` prints seconds, peak memory and fetched bytes of one decision, from a
//! folder and from a branch over HTTP on loopback. The suite that is asked for has whole files where a
//! gate could read them; elsewhere the names are real and the files are small, since nobody may open them.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench may panic, and prints its figures")]

#[path = "../tests/integration/git_server.rs"]
mod git_server;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use benchgate::gate::{CompareOptions, Policy, compare_with_history};
use benchgate::git::{DataBranch, Remote, Token};
use benchgate::model::{SideName, Testbed};
use benchgate::process::{self, Cancel};
use benchgate::record::{Number, RunFile};
use benchgate::store::{
    Ask, Branch, Directory, Files, Lineage, RunName, SESSIONS, Selection, history_for_gate, summarise,
};

const GOLDEN: &str = include_str!("../tests/fixtures/record/run-v1.json");
const SUITES: usize = 20;
const NIGHTS: i64 = 1095;
const BENCHMARKS: usize = 100;
const PROCESSES: usize = 8;
const REPETITIONS: usize = 10;
/// Nights with whole files; a gate may open a hundred at most.
const WHOLE: i64 = 110;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "--measure") {
        measure(&arguments[at + 1], &arguments[at + 2]);
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("baselines");
    let bytes = write(&root);
    println!("a session's file: {} kB; {} files in all", bytes / 1000, SUITES as i64 * NIGHTS);
    child("folder", root.to_str().unwrap());
    let server = git_server::GitServer::new();
    import(&root, &server);
    let before = server.sent();
    child("branch", &server.url());
    println!("branch: {} kB were sent", (server.sent() - before) / 1000);
}

/// A fresh process, so that the peak of its memory is its own.
fn child(kind: &str, place: &str) {
    let status =
        Command::new(std::env::current_exe().unwrap()).args(["--measure", kind, place]).status().unwrap();
    assert!(status.success());
}

fn created(night: i64) -> String {
    let first: jiff::Timestamp = "2023-11-22T02:00:00Z".parse().unwrap();
    (first + jiff::SignedDuration::from_hours(24 * night)).to_string()
}

fn commit(night: i64) -> String {
    // Any spread of digits will do; names must not compress better than real ones.
    format!("{:040x}", (night as u128 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835))
        .replace('-', "")
}

fn session(night: i64) -> RunFile {
    let mut run = RunFile::from_slice(GOLDEN.as_bytes()).unwrap();
    run.sides.truncate(1);
    run.sides[0].name = SideName::Head.into();
    run.sides[0].commit = Some(commit(night));
    run.suite = "suite-00".to_owned();
    run.session = format!("session-{night}");
    run.created = created(night);
    run.calibration = None;
    let mut state = night as u64 + 1;
    let mut noise = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / (1_u64 << 24) as f64
    };
    let model = run.sides[0].benchmarks[0].clone();
    run.sides[0].benchmarks = (0..BENCHMARKS)
        .map(|at| {
            let mut benchmark = model.clone();
            benchmark.name = format!("model-{at:03}/cpu/main");
            benchmark.artifact.as_mut().unwrap().vmfb_sha256 = commit(night * 1000 + at as i64);
            let process = benchmark.processes[0].clone();
            benchmark.processes = (0..PROCESSES)
                .map(|order| {
                    let mut process = process.clone();
                    process.slot = None;
                    process.order = order as u32;
                    for samples in process.samples.values_mut() {
                        *samples =
                            (0..REPETITIONS).map(|_| Number(1e5 + at as f64 + 500.0 * noise())).collect();
                    }
                    process
                })
                .collect();
            benchmark
        })
        .collect();
    run
}

/// Writes the baseline and returns the size of a whole file.
fn write(root: &Path) -> usize {
    let mut size = 0;
    for suite in 0..SUITES {
        let folder = root.join(format!("suite-{suite:02}/9c1f0e57"));
        std::fs::create_dir_all(&folder).unwrap();
        for night in 0..NIGHTS {
            let name = RunName::new(&created(night), Some(&commit(night))).unwrap();
            let bytes = if suite == 0 && night >= NIGHTS - WHOLE {
                summarise(&session(night), SideName::Head, Vec::new()).unwrap().to_json()
            } else {
                format!("{suite} {night}\n").into_bytes()
            };
            size = size.max(bytes.len());
            std::fs::write(folder.join(name.file()), bytes).unwrap();
        }
    }
    size
}

/// The folder as a branch, by git's fast import.
fn import(root: &Path, server: &git_server::GitServer) {
    let mut import = Command::new("git")
        .args(["fast-import", "--quiet"])
        .env("GIT_DIR", server.repository())
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = std::io::BufWriter::new(import.stdin.take().unwrap());
    writeln!(input, "commit refs/heads/benchgate-baselines\ncommitter t <t@example.org> 0 +0000\ndata 1\nm")
        .unwrap();
    let mut files: Vec<PathBuf> = Vec::new();
    for suite in std::fs::read_dir(root).unwrap() {
        let testbed = suite.unwrap().path().join("9c1f0e57");
        files.extend(std::fs::read_dir(testbed).unwrap().map(|entry| entry.unwrap().path()));
    }
    for file in files {
        let bytes = std::fs::read(&file).unwrap();
        let name = file.strip_prefix(root).unwrap().display();
        write!(input, "M 644 inline {name}\ndata {}\n", bytes.len()).unwrap();
        input.write_all(&bytes).unwrap();
        writeln!(input).unwrap();
    }
    input.flush().unwrap();
    drop(input);
    assert!(import.wait().unwrap().success());
}

fn git(command: &process::Command) -> Result<process::Finished, process::ProcessError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(process::run(command, &Cancel::new()))
}

fn measure(kind: &str, place: &str) {
    let started = Instant::now();
    let files: Box<dyn Files> = match kind {
        "folder" => Box::new(Directory::new(place)),
        _ => {
            let remote = Remote::new(place, Token::new(git_server::TOKEN), Vec::new()).unwrap();
            Box::new(Branch::new(DataBranch::fetch(remote, "benchgate-baselines", &git).unwrap()))
        }
    };
    let listed = started.elapsed();
    let file = session(NIGHTS);
    let head = file.runs("head").remove(0).1;
    let made = started.elapsed();
    let ask = Ask {
        suite: "suite-00",
        testbed: &Testbed::from(&file.testbed),
        sessions: SESSIONS,
        lineage: &|_| Lineage::Ancestor,
        now: created(NIGHTS).parse().unwrap(),
    };
    let Selection::Found(history) = history_for_gate(files.as_ref(), &ask).unwrap() else {
        panic!("no history")
    };
    let read = started.elapsed();
    let comparison =
        compare_with_history(&head, &history.runs, &Policy::default(), &CompareOptions::default());
    let decided = started.elapsed();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("unknown").trim();
    println!(
        "{kind}: {:.3} s to open, {:.3} s to select and read {} sessions, {:.3} s to judge {} rows ({}); peak {peak}",
        listed.as_secs_f64(),
        (read - made).as_secs_f64(),
        history.runs.len(),
        (decided - read).as_secs_f64(),
        comparison.rows.len(),
        comparison.verdict,
    );
}
