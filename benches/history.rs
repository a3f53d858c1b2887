//! Runs a gate against three years of nightly sessions: 20 suites × 1,095 sessions × 100 benchmarks, with
//! complete files.
//!
//! `cargo bench --bench history` writes the history as a branch of a remote, and the commits of these nights
//! into a source repository, so that both the transfer and the ancestry are real. Then it runs `benchgate
//! gate --stored --branch` over HTTP on loopback, with a token, and prints the gate's verdict, the bytes that
//! the server sent, and the gate's peak memory. Only the measured tools are fake, so that measuring head
//! takes seconds. Writing the history takes minutes and about 2 GB in the temporary folder. `-- NIGHTS` makes
//! it shorter.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench may panic, and prints its figures")]

#[path = "../tests/integration/git_server.rs"]
mod git_server;
#[path = "../tests/integration/harness.rs"]
#[expect(dead_code, reason = "the tests use the rest of it")]
mod harness;
#[path = "../tests/integration/suite.rs"]
#[expect(dead_code, reason = "the tests use the rest of it")]
mod suite;

use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use benchgate::model::SideName;
use benchgate::record::RunFile;
use benchgate::store::{Encoding, RunName, folder_name, summarise};
use git_server::GitServer;
use suite::Suite;

const SUITES: usize = 20;
const NIGHTS: usize = 1095;
const BENCHMARKS: usize = 100;
const PROCESSES: usize = 8;
const REPETITIONS: usize = 10;
const BRANCH: &str = "benchgate-baselines";

fn main() {
    let nights = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(NIGHTS);
    let suite = suite();
    let commits = source_history(&suite, nights);
    suite.world.run(["run"]).expect_code(0);
    let run = RunFile::from_slice(suite.world.read("run.json").as_bytes()).unwrap();

    let server = GitServer::new();
    let started = Instant::now();
    let bytes = stored_history(&server, &run, &commits);
    println!(
        "{SUITES} suites × {nights} nights × {BENCHMARKS} benchmarks: {} files, {} MB of JSON, {} MB packed, \
         written in {:.0} s",
        SUITES * nights,
        bytes / 1_000_000,
        packed(&server.repository()) / 1_000_000,
        started.elapsed().as_secs_f64(),
    );
    for turn in ["first", "second"] {
        gate(&suite, &server, turn);
    }
}

/// Commits a suite of a hundred fake models.
fn suite() -> Suite {
    let mut suite = Suite::new();
    for at in 0..BENCHMARKS {
        suite = suite.model(&format!("model-{at:03}"), &["latency-us=1000"]);
    }
    let suite = suite.write();
    suite.world.write(".gitignore", "/tools\n/run.json\n/.benchgate\n");
    git(&suite.world.work(), &["init", "--quiet"]);
    git(&suite.world.work(), &["add", "-A"]);
    git(&suite.world.work(), &["commit", "--quiet", "-m", "the suite"]);
    suite
}

/// Makes a commit for every night, oldest first.
fn source_history(suite: &Suite, nights: usize) -> Vec<String> {
    let work = suite.world.work();
    fast_import(&work.join(".git"), |stream| {
        for night in 0..nights {
            write!(stream, "commit refs/heads/main\ncommitter t <t@example.org> {night} +0000\n").unwrap();
            let from = if night == 0 { "from refs/heads/main^0\n" } else { "" };
            write!(stream, "data 5\nnight\n{from}\n").unwrap();
        }
    });
    let listed = git(&work, &["rev-list", "--reverse", "main"]);
    listed.lines().skip(1).map(str::to_owned).collect()
}

/// Writes every night of every suite to the data branch, one commit per night; returns the bytes of all
/// files.
fn stored_history(server: &GitServer, run: &RunFile, commits: &[String]) -> usize {
    let mut noise = Noise(1);
    let mut all = 0;
    let testbed = folder_name(&run.testbed.id);
    fast_import(&server.repository(), |stream| {
        for (night, commit) in commits.iter().enumerate() {
            write!(stream, "commit refs/heads/{BRANCH}\ncommitter t <t@example.org> {night} +0000\n")
                .unwrap();
            write!(stream, "data 5\nnight\n").unwrap();
            let created = created(commits.len() - night);
            for suite in 0..SUITES {
                // The gate asks for the first suite.
                let name = if suite == 0 { run.suite.clone() } else { format!("suite-{suite:02}") };
                let mut session = session(run, &mut noise);
                session.suite.clone_from(&name);
                session.session = format!("night-{night}-{suite}");
                session.created.clone_from(&created);
                session.sides[0].commit = Some(commit.clone());
                let bytes = summarise(&session, SideName::Head, None, Vec::new()).unwrap().to_json();
                let file = RunName::new(&created, Some(commit)).unwrap().file(Encoding::Json);
                let path = format!("{}/{testbed}/{file}", folder_name(&name));
                write!(stream, "M 644 inline {path}\ndata {}\n", bytes.len()).unwrap();
                stream.write_all(&bytes).unwrap();
                writeln!(stream).unwrap();
                all += bytes.len();
            }
            writeln!(stream).unwrap();
        }
    });
    all
}

/// Returns the measured run with other samples.
fn session(run: &RunFile, noise: &mut Noise) -> RunFile {
    let mut session = run.clone();
    session.sides[0].dirty = Some(false);
    for benchmark in &mut session.sides[0].benchmarks {
        let process = benchmark.processes[0].clone();
        benchmark.processes = (0..PROCESSES)
            .map(|order| {
                let mut process = process.clone();
                process.order = u32::try_from(order).unwrap();
                let metrics: Vec<String> = process.samples.iter().map(|(name, _)| name.to_owned()).collect();
                for metric in metrics {
                    let place = 1e6 * (1.0 + 0.01 * noise.next());
                    let samples = (0..REPETITIONS).map(|_| place * (1.0 + 0.005 * noise.next())).collect();
                    process.samples.insert(metric, samples);
                }
                process
            })
            .collect();
    }
    session
}

/// A stream of numbers from −½ to ½.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        // Knuth's MMIX generator. Any generator is suitable whose numbers compress no better than
        // measurements.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f64 / f64::from(1_u32 << 24) - 0.5
    }
}

/// Returns the start of a session that ran this many nights ago.
fn created(nights_ago: usize) -> String {
    let hours = i64::try_from(24 * nights_ago).unwrap();
    (jiff::Timestamp::now() - jiff::SignedDuration::from_hours(hours)).to_string()
}

/// Runs the gate and prints its cost.
fn gate(suite: &Suite, server: &GitServer, turn: &str) {
    let before = server.sent();
    let remote = server.url();
    let branch = format!("--branch={BRANCH}");
    let mut command = suite.world.command(["gate", "--stored", &branch, "--remote", &remote]);
    command.env("BENCHGATE_TOKEN", git_server::TOKEN);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = String::new();
    let code = loop {
        if let Ok(text) = std::fs::read_to_string(&status)
            && let Some(found) = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))
        {
            found.trim().clone_into(&mut peak);
        }
        if let Some(ended) = child.try_wait().unwrap() {
            break ended.code();
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let mut said = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut said).unwrap();
    let account = said.lines().find(|line| line.starts_with("judged")).unwrap_or(&said);
    println!(
        "{turn} gate: exit code {code:?}, peak {peak}, {} kB sent by the server; it said: {account}",
        (server.sent() - before) / 1000
    );
}

/// Returns the size of a repository's packs in bytes.
fn packed(repository: &Path) -> u64 {
    let packs = std::fs::read_dir(repository.join("objects/pack")).unwrap();
    packs.map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
}

fn fast_import(repository: &Path, write: impl FnOnce(&mut BufWriter<std::process::ChildStdin>)) {
    let mut import = Command::new("git")
        // The fastest compression is enough, because writing the history is not measured.
        .args(["-c", "core.compression=1", "fast-import", "--quiet", "--depth=0"])
        .env("GIT_DIR", repository)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stream = BufWriter::new(import.stdin.take().unwrap());
    write(&mut stream);
    stream.flush().unwrap();
    drop(stream);
    assert!(import.wait().unwrap().success());
}

/// Runs git without the configuration of the user who runs the benchmark.
fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"])
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
