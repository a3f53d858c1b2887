//! Baselines on a branch of a real git remote over HTTP.

use std::time::{Duration, Instant};

use benchgate::git::{DataBranch, Edit, GitError, GitToken, Remote};
use benchgate::process::{self, Cancel, Command, Finished, ProcessError};
use benchgate::store::{Branch, Change, Directory, Files, StoreError};

use crate::git_server::{GitServer, TOKEN};

const BRANCH: &str = "benchgate-baselines";

fn git(command: &Command) -> Result<Finished, ProcessError> {
    let command = command.clone().env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(process::run(&command, &Cancel::new()))
}

fn remote(url: &str, token: &str) -> Remote {
    Remote::new(url, GitToken::new(token), Vec::new()).unwrap()
}

fn open(server: &GitServer) -> Branch<'static> {
    Branch::new(DataBranch::fetch(remote(&server.url(), TOKEN), BRANCH, &git).unwrap())
}

fn adding(path: &str, content: &str) -> Change {
    Change {
        add: vec![(path.to_owned(), content.as_bytes().to_vec())],
        remove: Vec::new(),
        message: format!("add {path}"),
    }
}

#[test]
fn a_branch_that_is_not_there_is_empty_and_the_first_write_makes_it() {
    let server = GitServer::new();
    let mut files = open(&server);
    assert_eq!(files.folders("").unwrap(), [""; 0]);
    files.apply(&adding("suite/bed/a.json", "one")).unwrap();
    let again = open(&server);
    assert_eq!(again.names("suite/bed").unwrap(), ["a.json"]);
    assert_eq!(again.read("suite/bed/a.json").unwrap(), b"one");
    assert!(matches!(again.read("suite/bed/b.json"), Err(StoreError::NoSuchFile { .. })));
    assert!(server.git(&["-C", "r.git", "ls-tree", "-r", "--name-only", BRANCH]).contains("README.md"));
}

#[test]
fn a_gate_fetches_the_files_it_reads_and_no_others() {
    let server = GitServer::new();
    let mut files = open(&server);
    // Incompressible content, so that saved transfers are visible.
    let noise = |seed: u64| {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(b'!' + (state >> 58) as u8)
        };
        (0..20_000).map(|_| next()).collect::<String>()
    };
    let add = (0..50).map(|at| (format!("s/t/{at}.json"), noise(at).into_bytes())).collect();
    files.apply(&Change { add, remove: Vec::new(), message: "fifty".to_owned() }).unwrap();
    let before = server.sent();
    let files = open(&server);
    assert_eq!(files.names("s/t").unwrap().len(), 50);
    let listing = server.sent() - before;
    files.prefetch(&["s/t/3.json".to_owned(), "s/t/4.json".to_owned()]).unwrap();
    assert_eq!(files.read("s/t/4.json").unwrap(), noise(4).into_bytes());
    let all = server.sent() - before;
    assert!(listing < 10_000 && all < 60_000, "{listing} bytes for the listing, {all} in all");
}

#[test]
fn a_branch_of_code_is_not_written_to() {
    let server = GitServer::new();
    let code = |branch| DataBranch::fetch(remote(&server.url(), TOKEN), branch, &git);
    let mut main = code("main").unwrap();
    main.push(&[Edit::Add("Cargo.toml", b"[package]")], "code").unwrap();
    let error = Branch::new(code("main").unwrap()).apply(&adding("s/t/a.json", "a")).unwrap_err();
    assert!(matches!(error, StoreError::NotABaseline { .. }), "{error}");
    for name in ["x:refs/heads/main", "*", "-x y", ""] {
        assert!(matches!(code(name), Err(GitError::BadBranch(_))), "{name}");
    }
}

#[test]
fn two_writers_that_race_lose_nothing() {
    let server = GitServer::new();
    // Fifty races take half a minute on a small machine, so they only run with `BENCHGATE_RACES=50`.
    let races: u32 = std::env::var("BENCHGATE_RACES").ok().and_then(|races| races.parse().ok()).unwrap_or(8);
    let write = |who: &str| {
        let mut files = open(&server);
        for at in 0..races {
            files.apply(&adding(&format!("s/t/{who}-{at:02}.json"), &format!("{who} {at}"))).unwrap();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| write("a"));
        scope.spawn(|| write("b"));
    });
    let files = open(&server);
    assert_eq!(files.names("s/t").unwrap().len(), 2 * races as usize);
    assert_eq!(files.read("s/t/b-07.json").unwrap(), b"b 7");
    // The history is linear, so no commit was overwritten.
    let commits = server.git(&["-C", "r.git", "rev-list", "--count", BRANCH]);
    assert_eq!(commits.trim(), (2 * races).to_string());
}

#[test]
fn a_taken_name_is_refused_and_the_same_content_is_no_new_commit() {
    let server = GitServer::new();
    let (mut one, mut two) = (open(&server), open(&server));
    one.apply(&adding("s/t/x.json", "mine")).unwrap();
    assert!(matches!(two.apply(&adding("s/t/x.json", "yours")), Err(StoreError::Exists { .. })));
    two.apply(&adding("s/t/x.json", "mine")).unwrap();
    assert_eq!(server.git(&["-C", "r.git", "rev-list", "--count", BRANCH]).trim(), "1");
}

#[test]
fn removing_leaves_the_rest() {
    let server = GitServer::new();
    let mut files = open(&server);
    files.apply(&adding("s/t/a.json", "a")).unwrap();
    files.apply(&adding("s/t/b.json", "b")).unwrap();
    let remove = vec!["s/t/a.json".to_owned(), "s/t/never.json".to_owned()];
    files.apply(&Change { add: Vec::new(), remove, message: "prune".to_owned() }).unwrap();
    assert_eq!(open(&server).names("s/t").unwrap(), ["b.json"]);
}

/// Simulates a protected branch until the returned file is removed.
fn protect(server: &GitServer) -> std::path::PathBuf {
    let hook = server.repository().join("hooks/update");
    let script = "#!/bin/sh\necho 'GH006: Protected branch update failed.' >&2\nexit 1\n";
    crate::harness::install_script(&hook, script);
    hook
}

#[test]
fn a_protected_branch_is_said_in_the_servers_words_and_the_next_update_succeeds() {
    let server = GitServer::new();
    let mut files = open(&server);
    let hook = protect(&server);
    let error = files.apply(&adding("s/t/a.json", "a")).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, StoreError::Git(GitError::PushRefused { .. })), "{text}");
    assert!(
        text.contains("hook declined") && text.contains("GH006: Protected branch update failed."),
        "{text}"
    );
    std::fs::remove_file(hook).unwrap();
    files.apply(&adding("s/t/a.json", "a")).unwrap();
    assert_eq!(open(&server).names("s/t").unwrap(), ["a.json"]);
}

#[test]
fn a_wrong_token_is_distinguished_from_a_missing_one_and_never_printed() {
    let server = GitServer::new();
    let wrong = "ghs_wrong000000000000";
    let error = DataBranch::fetch(remote(&server.url(), wrong), BRANCH, &git).unwrap_err();
    assert!(matches!(error, GitError::Credentials { .. }), "{error:?}");
    let text = format!("{error} {error:?}");
    assert!(!text.contains(wrong) && text.contains("the given token"), "{text}");
    let none = Remote::new(&server.url(), None, Vec::new()).unwrap();
    let error = DataBranch::fetch(none, BRANCH, &git).unwrap_err().to_string();
    assert!(error.contains("no token was given"), "{error}");
}

#[test]
fn a_dead_network_is_one_clear_error() {
    let url = GitServer::new().url();
    let started = Instant::now();
    let error = DataBranch::fetch(remote(&url, TOKEN), BRANCH, &git).unwrap_err();
    assert!(matches!(error, GitError::Unreachable { .. }), "{error:?}");
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_writer_that_is_killed_at_any_moment_loses_nothing_that_was_there() {
    let server = GitServer::new();
    open(&server).apply(&adding("s/t/first.json", "first")).unwrap();
    // git is killed at increasingly late points of its push.
    for at in 0..12 {
        let impatient = move |command: &Command| {
            let mut command = command.clone();
            if command.args.iter().any(|verb| verb == "push") {
                command.timeout = Duration::from_millis(at * 12);
            }
            git(&command)
        };
        let branch = DataBranch::fetch(remote(&server.url(), TOKEN), BRANCH, &impatient).unwrap();
        drop(Branch::new(branch).apply(&adding(&format!("s/t/{at:02}.json"), "content")));
        let files = open(&server);
        assert_eq!(files.read("s/t/first.json").unwrap(), b"first");
    }
    open(&server).apply(&adding("s/t/last.json", "last")).unwrap();
    let names = open(&server).names("s/t").unwrap();
    assert!(names.contains(&"last.json".to_owned()), "{names:?}");
    server.git(&["-C", "r.git", "fsck", "--strict"]);
}

#[test]
fn two_writers_of_one_folder_never_share_a_name() {
    let folder = tempfile::tempdir().unwrap();
    let wins: usize = std::thread::scope(|scope| {
        let writer = |who: &'static str| {
            let mut files = Directory::new(folder.path());
            move || (0..50).filter(|at| files.apply(&adding(&format!("s/t/{at}.json"), who)).is_ok()).count()
        };
        let writers = [scope.spawn(writer("a")), scope.spawn(writer("b"))];
        writers.map(|writer| writer.join().unwrap()).into_iter().sum()
    });
    assert_eq!(wins, 50);
}
