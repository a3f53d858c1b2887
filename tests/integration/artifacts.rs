//! `[[artifact]]`: a local server that behaves correctly or not, and how a run reacts.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use crate::harness::{Outcome, lint_codes, row};
use crate::pull_request::{branch, commit};
use crate::suite::{Suite, npy};

/// A server with one file. The path of a request selects the kind of answer.
struct FileServer {
    address: String,
    /// The requests so far, each with its headers.
    requests: Arc<Mutex<Vec<String>>>,
}

impl FileServer {
    fn new(body: Vec<u8>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let known = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                // A killed client is not a failure of the server.
                drop(answer(stream.unwrap(), &body, &known));
            }
        });
        Self { address, requests }
    }

    fn url(&self, path: &str) -> String {
        format!("{}/{path}", self.address)
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

/// - `/file`: the file, or the rest of it that `Range` asks for;
/// - `/cut-once`: the same, but the first answer ends in the middle;
/// - `/cut`: ends in the middle of the file, always;
/// - `/other`: a file of the same size;
/// - `/longer`: a file that has no length and does not end where it should;
/// - `/moved?URL`: a redirect.
fn answer(mut stream: TcpStream, body: &[u8], requests: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        request.extend(byte);
    }
    let request = String::from_utf8(request).unwrap();
    let is_first = {
        let mut known = requests.lock().unwrap();
        known.push(request.clone());
        known.len() == 1
    };
    let path = request.split(' ').nth(1).unwrap().to_owned();
    let asked =
        request.lines().find_map(|line| line.to_lowercase().strip_prefix("range: bytes=").map(str::to_owned));
    let from: usize = asked.as_ref().map_or(0, |range| range.trim_end_matches('-').parse().unwrap());
    let whole = |status: &str, body: &[u8]| {
        let length = body.len();
        format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n").into_bytes()
    };
    let answer = match path.as_str() {
        "/file" | "/cut-once" if from > 0 => {
            let head = format!(
                "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {from}-{}/{}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len() - 1,
                body.len(),
                body.len() - from
            );
            [head.as_bytes(), &body[from..]].concat()
        }
        "/file" => [&whole("200 OK", body), body].concat(),
        "/cut-once" if !is_first => [&whole("200 OK", body), body].concat(),
        "/cut-once" | "/cut" => [&whole("200 OK", body), &body[..body.len() / 2]].concat(),
        "/other" => [whole("200 OK", body), vec![b'x'; body.len()]].concat(),
        "/longer" => [b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", body, body].concat(),
        path if path.starts_with("/moved?") => {
            let to = path.strip_prefix("/moved?").unwrap();
            format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                .into_bytes()
        }
        _ => whole("404 Not Found", b""),
    };
    stream.write_all(&answer)
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn reference() -> Vec<u8> {
    npy(&[1.0, 2.0, 3.0])
}

/// An artifact, and a model that uses it as its reference.
fn tables(url: &str, sha256: &str, more: &str) -> String {
    format!(
        "[[artifact]]\nname = \"a/y.npy\"\nurl = \"{url}\"\nsha256 = \"{sha256}\"\n{more}\n\
         [[model]]\nname = \"m\"\nsource = \"models/m.mlir\"\ninputs = [\"3xf32=1\"]\nexpected = [\"artifacts/a/y.npy\"]\n"
    )
}

fn suite(url: &str, sha256: &str, more: &str) -> Suite {
    let suite = Suite::new().toml(&tables(url, sha256, more)).write();
    suite.source("m", &["output=1,2,3"]);
    suite
}

fn cached(suite: &Suite, sha256: &str) -> PathBuf {
    suite.world.cache().join("benchgate/artifacts").join(sha256).join("data")
}

/// Checks that exactly one line reports the failure, and that no downloaded content is used.
#[track_caller]
fn refuse(suite: &Suite, words: &[&str]) -> Outcome {
    let outcome = suite.world.run(["run"]);
    assert_eq!(outcome.code, Some(20), "{}", outcome.stderr);
    let lines: Vec<&str> = outcome.stderr.lines().filter(|line| line.contains("error:")).collect();
    assert_eq!(lines.len(), 1, "{}", outcome.stderr);
    for word in words {
        assert!(lines[0].contains(word), "{word:?} is not in {}", lines[0]);
    }
    assert!(!suite.world.work().join("artifacts/a/y.npy").exists());
    outcome
}

#[test]
fn an_artifact_is_downloaded_once_and_then_needs_no_network() {
    let server = FileServer::new(reference());
    let suite = suite(&server.url("file"), &sha256(&reference()), &format!("size = {}", reference().len()));
    suite.world.run(["run"]).expect_code(0);
    assert_eq!(suite.world.read("artifacts/.gitignore"), "*\n");
    assert_eq!(std::fs::read(suite.world.work().join("artifacts/a/y.npy")).unwrap(), reference());
    suite.world.run(["run"]).expect_code(0);
    suite.world.run(["tools", "install"]).expect_code(0);
    assert_eq!(server.requests().len(), 1);
    // The artifact is the reference, so a different output fails the run.
    suite.source("m", &["output=1,2,4"]);
    suite.world.run(["run"]).expect_code(13);
}

#[test]
fn another_file_than_the_locked_one_is_refused_and_not_kept() {
    let server = FileServer::new(reference());
    let (wanted, found) = (sha256(&reference()), sha256(&vec![b'x'; reference().len()]));
    let suite = suite(&server.url("other"), &wanted, "");
    refuse(&suite, &[&server.url("other"), &format!("expected sha256 {wanted}, found {found}")]);
    assert!(!cached(&suite, &wanted).with_file_name("download").exists());
    assert!(!cached(&suite, &wanted).exists());
}

#[test]
fn a_truncated_file_is_an_error_that_says_how_much_arrived() {
    let server = FileServer::new(reference());
    let suite = suite(&server.url("cut"), &sha256(&reference()), "");
    let (half, all) = (reference().len() / 2, reference().len());
    refuse(&suite, &[&server.url("cut"), &format!("the transfer ended after {half} of {all} bytes")]);
}

#[test]
fn an_interrupted_transfer_goes_on_where_it_ended() {
    let server = FileServer::new(reference());
    let suite = suite(&server.url("cut-once"), &sha256(&reference()), "");
    suite.world.run(["run"]).expect_code(0);
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    let range = format!("range: bytes={}-", reference().len() / 2);
    assert!(requests[1].to_lowercase().contains(&range), "{}", requests[1]);
}

#[test]
fn a_part_that_an_earlier_run_left_is_continued_and_one_of_another_file_is_not() {
    for (part, requests) in [(&reference()[..50], 1), (&[b'x'; 50][..], 2)] {
        let server = FileServer::new(reference());
        let suite = suite(&server.url("file"), &sha256(&reference()), "");
        let place = cached(&suite, &sha256(&reference())).parent().unwrap().with_extension("part");
        std::fs::create_dir_all(&place).unwrap();
        std::fs::write(place.join("download"), part).unwrap();
        suite.world.run(["run"]).expect_code(0);
        assert_eq!(server.requests().len(), requests);
        assert!(server.requests()[0].to_lowercase().contains("range: bytes=50-"));
    }
}

#[test]
fn a_missing_file_a_missing_server_and_a_file_of_another_size_are_one_clear_line() {
    let server = FileServer::new(reference());
    let wanted = sha256(&reference());
    let gone = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}/file", listener.local_addr().unwrap())
    };
    for (url, size, words) in [
        (server.url("missing?token=secret"), "", "the server answers 404 Not Found"),
        (gone, "", "Connection refused"),
        (server.url("file"), "size = 7", "expected 7 bytes, found"),
        (server.url("longer"), "size = 140", "expected 140 bytes, found"),
    ] {
        let suite = suite(&url, &wanted, size);
        let outcome = refuse(&suite, &[url.split('?').next().unwrap(), words]);
        assert!(!outcome.stderr.contains("secret"), "{}", outcome.stderr);
    }
}

#[test]
fn a_redirect_to_another_host_is_not_followed_without_encryption() {
    let server = FileServer::new(reference());
    let other = FileServer::new(reference());
    let wanted = sha256(&reference());
    let suite = suite(&server.url(&format!("moved?{}", other.url("file"))), &wanted, "");
    refuse(&suite, &[&server.url("moved"), "redirects to", &other.url("file")]);
    assert!(other.requests().is_empty());
    // A redirect to the same host is followed.
    suite
        .world
        .write("benchgate.toml", suite.world.read("benchgate.toml").replace(&other.address, &server.address));
    suite.world.run(["run"]).expect_code(0);
}

#[test]
fn an_artifact_that_was_changed_in_the_cache_is_downloaded_again() {
    let server = FileServer::new(reference());
    let wanted = sha256(&reference());
    let suite = suite(&server.url("file"), &wanted, "");
    suite.world.run(["run"]).expect_code(0);
    let data = cached(&suite, &wanted);
    std::fs::remove_file(&data).unwrap();
    std::fs::write(&data, npy(&[1.0, 2.0, 4.0])).unwrap();
    suite.source("m", &["output=1,2,4"]);
    let outcome = suite.world.run(["run"]).expect_code(13);
    assert!(outcome.stderr.contains("is damaged; downloading it again"), "{}", outcome.stderr);
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_full_disk_is_an_error_that_leaves_no_part() {
    let server = FileServer::new(reference());
    let wanted = sha256(&reference());
    let suite = suite(&server.url("file"), &wanted, "");
    let place = cached(&suite, &wanted).parent().unwrap().with_extension("part");
    std::fs::create_dir_all(&place).unwrap();
    symlink("/dev/full", place.join("download")).unwrap();
    refuse(&suite, &["no space is left on the disk"]);
    assert!(!place.exists());
}

#[test]
fn an_own_copy_is_used_if_it_is_the_same_file() {
    let suite = suite("http://127.0.0.1:1/never", &sha256(&reference()), "");
    suite.world.write("artifacts/a/y.npy", reference());
    suite.world.run(["run"]).expect_code(0);
    suite.world.write("artifacts/a/y.npy", npy(&[1.0, 2.0, 4.0]));
    let refused = suite.world.run(["run"]).expect_code(20);
    assert!(refused.stderr.contains("artifacts/a/y.npy: expected sha256"), "{}", refused.stderr);
}

#[test]
fn no_link_that_was_committed_leads_an_artifact_out_of_the_sources() {
    let server = FileServer::new(reference());
    let outside = tempfile::tempdir().unwrap();
    for link in ["artifacts", "artifacts/a", "artifacts/a/y.npy"] {
        let suite = suite(&server.url("file"), &sha256(&reference()), "");
        let path = suite.world.work().join(link);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(outside.path(), &path).unwrap();
        let refused = suite.world.run(["run"]).expect_code(20);
        assert!(
            refused.stderr.contains(&format!("link an artifact at [WORLD]/work/{link}")),
            "{}",
            refused.stderr
        );
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    }
    assert!(server.requests().is_empty());
}

#[test]
fn only_what_the_selected_benchmarks_need_is_downloaded() {
    let server = FileServer::new(reference());
    let suite = suite(&server.url("missing"), &sha256(&reference()), "");
    let text = suite.world.read("benchgate.toml");
    suite.source("other", &["output=1,2,3"]);
    let other = "[[model]]\nname = \"other\"\nsource = \"models/other.mlir\"\ninputs = [\"3xf32=1\"]\nexpected = [\"data/y.npy\"]\n";
    suite.world.write("benchgate.toml", format!("{text}{other}"));
    suite.world.run(["run", "--filter", "other"]).expect_code(0);
    assert!(server.requests().is_empty());
    refuse(&suite, &["404"]);
}

#[test]
fn each_side_has_its_own_artifacts_and_another_hash_is_other_work() {
    let [base, head] = [1.0, 2.0].map(|last| npy(&[1.0, 1.0, last]));
    let servers = [&base, &head].map(|body| FileServer::new(body.clone()));
    let table = |at: usize, body: &[u8]| {
        format!(
            "[[artifact]]\nname = \"x.npy\"\nurl = \"{}\"\nsha256 = \"{}\"\n",
            servers[at].url("file"),
            sha256(body)
        )
    };
    let suite =
        Suite::new().model("a", &["latency-us=1000"]).toml(&table(0, &base)).write().with_tools_outside();
    let inputs = suite.world.read("benchgate.toml").replace("3xf32=1", "artifacts/x.npy");
    suite.world.write("benchgate.toml", inputs);
    let repository = branch(&suite.world.work());
    suite.source("a", &["latency-us=1000", "revision=2"]);
    commit(&repository, "a change that passes");
    let gate =
        ["gate", "--base", "main", "--fail-on", "regressed,diverged,error,inconclusive", "--format", "json"];
    suite.world.run(gate).expect_code(0);
    let changed = suite.world.read("benchgate.toml").replace(&table(0, &base), &table(1, &head));
    suite.world.write("benchgate.toml", changed);
    let outcome = suite.world.run(gate).expect_code(11);
    assert!(
        lint_codes(row(&outcome.json(), "a/cpu/main", Some("latency"))).contains(&"workload-changed"),
        "{}",
        outcome.stdout
    );
    assert!(outcome.stdout.contains("[[artifact]] x.npy sha256: "), "{}", outcome.stdout);
    suite.source("a", &["latency-us=1000"]);
    let said = suite.world.run(["gate", "--base", "main"]).expect_code(11).said();
    assert!(said.contains("; the compiled modules are identical"), "{said}");
    assert_eq!(servers.map(|server| server.requests().len()), [1, 1]);
}

#[test]
fn clean_removes_artifacts_that_are_not_used() {
    let server = FileServer::new(reference());
    let wanted = sha256(&reference());
    let suite = suite(&server.url("file"), &wanted, "");
    suite.world.run(["run"]).expect_code(0);
    let old = std::fs::FileTimes::new().set_modified(std::time::SystemTime::UNIX_EPOCH);
    for path in [cached(&suite, &wanted), cached(&suite, &wanted).parent().unwrap().to_owned()] {
        let file = std::fs::File::open(path).unwrap();
        file.set_times(old).unwrap();
    }
    let cleaned = suite.world.run(["clean"]).expect_code(0);
    assert!(cleaned.stdout.contains("artifacts: removed 1 of 1 folder"), "{}", cleaned.stdout);
    assert!(!cached(&suite, &wanted).exists());
    // The link that remained is dangling, so this run downloads the file again.
    suite.world.run(["run"]).expect_code(0);
    assert_eq!(server.requests().len(), 2);
}
