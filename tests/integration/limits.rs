//! Resource limits of the user who runs benchgate. Each one leads to one clear error, and never to a crash or
//! a hang.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, setrlimit};
use nix::unistd::{Gid, Uid, setgid, setuid};

use crate::harness::{Outcome, World};
use crate::suite::Suite;

const GOLDEN: &str = include_str!("../fixtures/record/run-v1.json");

/// Far more time than any of these commands takes, and less than a person would wait.
const LONGEST: Duration = Duration::from_secs(120);

/// Runs the binary as a user with this limit on processes and threads. The kernel doesn't limit root, so root
/// runs the binary as a user without processes. For other users, their existing processes count too.
fn with_processes(world: &World, limit: u64, args: &[&str]) -> Outcome {
    let root = world.work().parent().unwrap().to_owned();
    let program = root.join("benchgate");
    if !program.exists() {
        let built = env!("CARGO_BIN_EXE_benchgate");
        std::fs::hard_link(built, &program).or_else(|_| std::fs::copy(built, &program).map(drop)).unwrap();
    }
    std::fs::set_permissions(&root, Permissions::from_mode(0o777)).unwrap();
    let open = ["home", "cache", "work", "locks", "proc"].map(|name| root.join(name));
    assert!(Command::new("chmod").args(["-R", "a+rwX"]).args(open).status().unwrap().success());
    // Each call uses another user, because parallel tests must not count each other's processes.
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let unused = 1_000_000_000 + 64 * std::process::id() + CALLS.fetch_add(1, Ordering::Relaxed);
    let like = world.command(args);
    let mut command = Command::new(program);
    command.args(args).current_dir(world.work()).env_clear().stdin(Stdio::null());
    command.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    // SAFETY: the closure only makes system calls.
    unsafe {
        command.pre_exec(move || {
            setrlimit(Resource::RLIMIT_NPROC, limit, limit)?;
            if Uid::effective().is_root() {
                setgid(Gid::from_raw(unused))?;
                setuid(Uid::from_raw(unused))?;
            }
            Ok(())
        });
    }
    let mut child = command.spawn().unwrap();
    let until = Instant::now() + LONGEST;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > until {
            child.kill().unwrap();
            panic!("{args:?} hangs with {limit} processes");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Outcome { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

#[test]
fn a_user_who_may_start_no_more_processes_gets_one_clear_error() {
    let suite = Suite::new().model("a", &["latency-us=1000"]).base("").write();
    for limit in 1..=6 {
        let outcome = with_processes(&suite.world, limit, &["gate"]);
        assert!(outcome.code.is_some_and(|code| ![0, 1, 101].contains(&code)), "{limit}: {outcome:?}");
        let errors = outcome.stderr.lines().filter(|line| line.starts_with("error: ")).count();
        assert_eq!((errors, outcome.stderr.contains("panicked")), (1, false), "{limit}: {outcome:?}");
        assert!(outcome.stderr.contains("ulimit -u"), "{limit}: {outcome:?}");
    }
}

#[test]
fn comparing_needs_no_second_thread() {
    let world = World::new();
    world.write("run.json", GOLDEN);
    let expected = world.run(["compare", "run.json#base", "run.json#head"]);
    let outcome = with_processes(&world, 1, &["compare", "run.json#base", "run.json#head"]);
    assert_eq!((outcome.code, outcome.stdout), (expected.code, expected.stdout));
}
