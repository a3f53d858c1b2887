//! Real object stores: moto (S3) and azurite (Azure). `.ci/run store` installs them, and DuckDB, and runs these tests.
//! `BENCHGATE_OBJECT_SESSIONS` is the number of sessions that a gate meets; docs/object-stores.md has the figures of
//! 100,000.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use benchgate::model::SideName;
use benchgate::record::{BaselineFile, RunFile};
use benchgate::store::{RunName, folder_name, summarise};
use serde_json::Value;

use crate::baseline::{eleven_days, run};
use crate::harness::{Outcome, World};
use crate::stored_gate::{commit, committed_with};

/// The documented account key of every azurite server, which is not a secret.
const AZURITE_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const NIGHTLY: &str = "compiler";

fn tools() -> PathBuf {
    PathBuf::from(std::env::var_os("BENCHGATE_STORE_TOOLS").expect("`.ci/run store` sets it"))
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/object_stores").join(name)
}

/// A running server with a bucket named `nightly`.
struct Server {
    child: Child,
    url: String,
    variables: Vec<(&'static str, String)>,
    _folder: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Server {
    fn s3(files: Option<&Path>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("port");
        let mut command = Command::new(tools().join("venv/bin/python"));
        command.arg(script("serve.py")).arg(&file).args(files).stdin(Stdio::piped()).stderr(Stdio::null());
        let child = command.spawn().unwrap();
        let port = waited(|| std::fs::read_to_string(&file).ok());
        let variables = vec![
            ("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{port}")),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ACCESS_KEY_ID", "AKIDTEST".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "verysecret".to_owned()),
        ];
        Self { child, url: format!("s3://nightly/{NIGHTLY}"), variables, _folder: folder }
    }

    fn azure(files: Option<&Path>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let location = folder.path().join("azurite");
        std::fs::create_dir(&location).unwrap();
        let mut fill = Command::new(tools().join("venv/bin/python"));
        assert!(fill.arg(script("fill.py")).arg(&location).args(files).status().unwrap().success());
        let said = folder.path().join("said");
        let mut command = Command::new(tools().join("node"));
        command.arg(tools().join("node_modules/azurite/dist/src/blob/main.js"));
        command.args(["--silent", "--disableTelemetry", "--blobPort", "0", "--location"]).arg(&location);
        command.stdout(std::fs::File::create(&said).unwrap()).stdin(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap();
        let port = waited(|| {
            let text = std::fs::read_to_string(&said).ok()?;
            let port = text.split("http://127.0.0.1:").nth(1)?.split_whitespace().next()?.to_owned();
            Some(port)
        });
        let variables = vec![
            ("AZURE_STORAGE_ENDPOINT", format!("http://127.0.0.1:{port}/devstoreaccount1")),
            ("AZURE_ALLOW_HTTP", "true".to_owned()),
            ("AZURE_STORAGE_ACCOUNT_NAME", "devstoreaccount1".to_owned()),
            ("AZURE_STORAGE_ACCOUNT_KEY", AZURITE_KEY.to_owned()),
        ];
        Self { child, url: format!("az://nightly/{NIGHTLY}"), variables, _folder: folder }
    }

    fn both() -> [Self; 2] {
        [Self::s3(None), Self::azure(None)]
    }

    fn command(&self, world: &World, arguments: &[&str]) -> Command {
        let mut command = world.command(arguments);
        command.args(["--store", &self.url]).envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    fn run(&self, world: &World, arguments: &[&str]) -> Outcome {
        let outcome = world.finish(self.command(world, arguments));
        for secret in ["verysecret", AZURITE_KEY] {
            assert!(!outcome.stdout.contains(secret) && !outcome.stderr.contains(secret));
        }
        outcome
    }
}

fn waited<T>(mut ready: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = ready() {
            return found;
        }
        assert!(started.elapsed() < Duration::from_secs(600), "the server did not start");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
#[ignore = "needs moto and azurite: `.ci/run store`"]
fn a_history_in_a_real_store_is_the_history_of_the_folder() {
    for server in Server::both() {
        let world = World::new();
        eleven_days(&world);
        world
            .run(["baseline", "accept", "--since", "bbbbbbb", "--why", "tiles", "--who", "Ada"])
            .expect_code(0);
        let mut copy = world.command(["baseline", "export", "--parquet", &server.url]);
        copy.envs(server.variables.iter().map(|(name, value)| (name, value)));
        world.finish(copy).expect_code(0);
        let show = ["baseline", "show", "--format", "json"];
        assert_eq!(server.run(&world, &show).expect_code(0).stdout, world.run(show).stdout);
        // The session is a regression until it is accepted.
        world.write("run.json", run(12, 'c', 240_000.0));
        server.run(&world, &["baseline", "update"]).expect_code(10);
        assert!(
            server.run(&world, &["baseline", "update"]).expect_code(10).stdout.contains("already stored")
        );
        server
            .run(&world, &["baseline", "accept", "--since", "ccccccc", "--why", "on purpose", "--who", "Ada"])
            .expect_code(0);
        server.run(&world, &["baseline", "prune", "--keep", "3"]).expect_code(0);
        let verified = server.run(&world, &["baseline", "verify"]).expect_code(0);
        assert!(
            verified.stdout.contains("3 runs in 1 baseline, ") && verified.stdout.contains("2 acceptances"),
            "{}",
            verified.stdout
        );
    }
}

#[test]
#[ignore = "needs moto and azurite: `.ci/run store`"]
fn fifty_racing_writers_lose_nothing() {
    for server in Server::both() {
        let worlds: Vec<World> = (0..50).map(|_| World::new()).collect();
        let writers: Vec<Child> = worlds
            .iter()
            .enumerate()
            .map(|(at, world)| {
                // All sessions have the same second and commit, so all writers use the same name.
                let run = run(1, 'a', 100.0 + at as f64).replace("session-1", &format!("writer-{at}"));
                world.write("run.json", run);
                let mut command = server.command(world, &["baseline", "update", "--quiet"]);
                command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
            })
            .collect();
        for mut writer in writers {
            // A session may be regressed compared with one that was stored before it, but it is stored in any
            // case.
            let code = writer.wait().unwrap().code();
            assert!(matches!(code, Some(0 | 10 | 11)), "{code:?}");
        }
        let verified = server.run(&worlds[0], &["baseline", "verify"]).expect_code(0);
        assert!(verified.stdout.contains("50 runs in 1 baseline, "), "{}", verified.stdout);
    }
}

#[test]
#[ignore = "needs moto and azurite: `.ci/run store`"]
fn a_writer_that_is_killed_at_any_moment_leaves_no_half_object() {
    for server in Server::both() {
        let world = World::new();
        for moment in 1..=24 {
            world.write("run.json", run(moment, 'a', 100.0));
            let mut child = server
                .command(&world, &["baseline", "update"])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            std::thread::sleep(Duration::from_millis(u64::from(moment) * 6));
            drop(child.kill());
            child.wait().unwrap();
            server.run(&world, &["baseline", "verify"]).expect_code(0);
        }
        half_an_upload(&server);
        server.run(&world, &["baseline", "verify"]).expect_code(0);
        let listed = server.run(&world, &["baseline", "list"]).expect_code(0);
        assert!(!listed.stdout.contains("half"), "{}", listed.stdout);
    }
}

/// Sends the part of a request that remains after a kill: a stated length, but fewer bytes.
fn half_an_upload(server: &Server) {
    use std::io::Write;
    let endpoint = &server.variables[0].1;
    let rest = endpoint.strip_prefix("http://").unwrap();
    let (host, account) = rest.split_once('/').unwrap_or((rest, ""));
    let name = format!("20261001T120000Z-{}.parquet", "a".repeat(40));
    let key = format!("nightly/{NIGHTLY}/sessions/suite=half/testbed=x/month=2026-10/{name}");
    let path = if account.is_empty() { format!("/{key}") } else { format!("/{account}/{key}") };
    let mut stream = std::net::TcpStream::connect(host).unwrap();
    write!(
        stream,
        "PUT {path} HTTP/1.1\r\nHost: {host}\r\nx-ms-blob-type: BlockBlob\r\nContent-Length: 100000\r\n\r\n"
    )
    .unwrap();
    stream.write_all(&[b'x'; 50_000]).unwrap();
    stream.flush().unwrap();
    std::thread::sleep(Duration::from_millis(200));
}

#[test]
#[ignore = "needs moto and azurite: `.ci/run store`"]
fn a_refused_key_is_exit_22_and_not_a_missing_baseline() {
    let mut server = Server::azure(None);
    let world = World::new();
    server.variables[3].1 = "d3Jvbmc=".to_owned();
    let refused = server.run(&world, &["baseline", "list"]).expect_code(22);
    assert!(!refused.stderr.contains("d3Jvbmc"), "{}", refused.stderr);
    let mut server = Server::s3(None);
    server.url = "s3://no-such-bucket/x".to_owned();
    server.run(&world, &["baseline", "list"]).expect_code(22);
}

#[test]
#[ignore = "needs DuckDB: `.ci/run store`"]
fn the_documented_query_has_the_numbers_of_baseline_show() {
    let world = World::new();
    eleven_days(&world);
    world.run(["baseline", "export", "--parquet", "history"]).expect_code(0);
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/object-stores.md");
    let mut query = Command::new(tools().join("venv/bin/python"));
    let output = query.arg(script("query.py")).arg(docs).arg(world.work().join("history")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let shown: Value =
        serde_json::from_str(&world.run(["baseline", "show", "--format", "json"]).stdout).unwrap();
    let benchmarks = shown["benchmarks"].as_array().unwrap();
    assert_eq!(rows.len(), benchmarks.len());
    for (row, benchmark) in rows.iter().zip(benchmarks) {
        assert_eq!(row["benchmark"], benchmark["name"]);
        assert_eq!(row["newest"], benchmark["points"].as_array().unwrap().last().unwrap()["value"]);
        let (there, here) = (row["spread"].as_f64().unwrap(), benchmark["spread"].as_f64().unwrap());
        assert!((there - here).abs() <= 1e-12, "{there} {here}");
        // The eleventh session regresses.
        assert_eq!(row["good"], 10);
    }
}

/// Writes sessions of the run's suite below `folder`, one every half hour until now. The newest fifty are
/// complete. A gate lists the older ones but does not read them, so one benchmark is enough.
fn fill(folder: &Path, run: &RunFile, sessions: usize) {
    let mut template = summarise(run, SideName::Head, None, Vec::new()).unwrap();
    let whole = template.benchmarks.clone();
    template.benchmarks.truncate(1);
    let newest: jiff::Timestamp = run.created.parse().unwrap();
    let threads = 2;
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (template, whole) = (&template, &whole);
            scope.spawn(move || {
                for ago in (1..=sessions).filter(|ago| ago % threads == thread) {
                    let began = newest - jiff::SignedDuration::from_mins(30 * ago as i64);
                    let mut file = BaselineFile {
                        created: began.to_string(),
                        session: format!("session-{ago}"),
                        ..template.clone()
                    };
                    if ago <= 50 {
                        file.benchmarks.clone_from(whole);
                    }
                    file.seal();
                    let name = RunName::new(&file.created, file.commit.as_deref()).unwrap();
                    let folder = folder.join(format!(
                        "sessions/suite={}/testbed={}/month={}",
                        folder_name(&file.suite),
                        folder_name(&file.testbed.id),
                        name.month()
                    ));
                    std::fs::create_dir_all(&folder).unwrap();
                    std::fs::write(folder.join(format!("{name}.parquet")), file.to_parquet().unwrap())
                        .unwrap();
                }
            });
        }
    });
}

#[test]
#[ignore = "needs moto and azurite: `.ci/run store`"]
fn a_gate_reads_the_newest_of_many_sessions_in_little_time_and_memory() {
    let sessions: usize =
        std::env::var("BENCHGATE_OBJECT_SESSIONS").map_or(3000, |count| count.parse().unwrap());
    let models: Vec<String> = (0..100).map(|at| format!("model-{at:03}")).collect();
    let suite = committed_with(&models.iter().map(String::as_str).collect::<Vec<_>>());
    commit(&suite);
    suite.run_on_a_quiet_host();
    let run = RunFile::from_slice(suite.world.read("run.json").as_bytes()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    fill(folder.path(), &run, sessions);
    for start in [Server::s3 as fn(Option<&Path>) -> Server, Server::azure] {
        let server = start(Some(folder.path()));
        for turn in ["first", "second"] {
            let mut child = server
                .command(&suite.world, &["gate", "--stored"])
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let status = format!("/proc/{}/status", child.id());
            let mut peak = 0;
            while child.try_wait().unwrap().is_none() {
                // Only anonymous memory counts. The pages of the program's own file are left out, because
                // they depend on the build.
                let text = std::fs::read_to_string(&status).unwrap_or_default();
                let kibibytes =
                    text.lines().find_map(|line| line.strip_prefix("RssAnon:")?.split_whitespace().next());
                peak = kibibytes.map_or(peak, |text| peak.max(text.parse::<u64>().unwrap()));
                std::thread::sleep(Duration::from_millis(2));
            }
            let output = child.wait_with_output().unwrap();
            let said = String::from_utf8(output.stderr).unwrap();
            let account =
                said.lines().find(|line| line.starts_with("compared 100 benchmarks with 20 stored sessions"));
            let account = account.unwrap_or_else(|| panic!("{said}"));
            println!(
                "{} of {sessions} sessions, {turn} gate: {account}; peak {} MB",
                server.url,
                peak / 1000
            );
            assert!(peak < 64_000, "{peak} KiB");
        }
    }
}
