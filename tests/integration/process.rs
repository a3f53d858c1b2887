//! Real programs that hang, print without end, crash, or leave their process group.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use benchgate::process::{
    Cancel, Command, Containment, END_OF_SECTION, Exit, Finished, ProgramSession, Reply, containment, run,
};

const LONG: Duration = Duration::from_secs(60);

pub fn fake_tool() -> PathBuf {
    crate::harness::built_example("fake_tool")
}

fn fake(args: &[&str]) -> Command {
    Command::new(fake_tool(), LONG).args(args.iter().copied())
}

async fn ran(command: &Command) -> Finished {
    run(command, &Cancel::new()).await.unwrap()
}

/// The ids of the processes that wrote to `file`.
fn noted(file: &Path) -> Vec<u32> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().map(|line| line.parse().unwrap()).collect()
}

fn is_alive(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

/// Waits until at least one process has written its id.
pub fn wait_for_note(file: &Path) {
    let until = Instant::now() + LONG;
    while noted(file).is_empty() {
        assert!(Instant::now() < until, "nothing was noted in {}", file.display());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Checks that all processes that wrote their ids end within `patience`.
pub fn assert_gone(file: &Path, patience: Duration) {
    let pids = noted(file);
    assert!(!pids.is_empty());
    let until = Instant::now() + patience;
    while pids.iter().any(|pid| is_alive(*pid)) {
        assert!(
            Instant::now() < until,
            "{:?} live on",
            pids.iter().filter(|pid| is_alive(**pid)).collect::<Vec<_>>()
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[tokio::test]
async fn an_exit_code_is_reported_as_it_was() {
    assert_eq!(ran(&fake(&["exit", "0"])).await.exit, Exit::Success);
    assert_eq!(ran(&fake(&["exit", "7"])).await.exit, Exit::Code(7));
    assert_eq!(ran(&fake(&["segfault"])).await.exit, Exit::Signal(11));
}

/// If a supervisor received the variables of its tool as arguments, every user of the machine could see the
/// token for git.
#[tokio::test]
async fn no_command_line_shows_a_variable_of_a_tool() {
    let folder = tempfile::tempdir().unwrap();
    // The secret is passed to grep in a file, because otherwise grep would find its own command line.
    let search = "printf %s \"$SECRET\" >secret && grep -l -s -a -f secret /proc/[0-9]*/cmdline; true";
    let command = Command::new("sh", LONG).args(["-c", search]).cwd(folder.path()).capture_stdout();
    let found = ran(&command.clone().env("SECRET", "ghs_OfOneCommandLine")).await;
    assert_eq!(String::from_utf8(found.stdout).unwrap(), "");
    let control = ran(&command.arg("ghs_InAnArgument").env("SECRET", "ghs_InAnArgument")).await;
    assert_ne!(control.stdout, b"");
}

#[tokio::test]
async fn a_missing_program_is_named() {
    let error = run(&Command::new("/nowhere/iree-compile", LONG), &Cancel::new()).await.unwrap_err();
    assert_eq!(error.to_string(), "start /nowhere/iree-compile: there is no such program");
    let error = run(&fake(&["exit", "0"]).cwd("/nowhere"), &Cancel::new()).await.unwrap_err();
    assert!(error.to_string().contains("in /nowhere: No such file"), "{error}");
}

#[tokio::test]
async fn output_goes_to_the_log_and_where_it_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("new/print.log");
    let finished = ran(&fake(&["print", "to stdout", "to stderr"]).log(&log).capture_stdout()).await;
    assert_eq!(finished.stdout, b"to stdout\n");
    assert_eq!(finished.stderr_tail, "to stderr\n");
    let again = ran(&fake(&["print", "again", ""]).log(&log)).await;
    assert!(again.stdout.is_empty());
    let text = std::fs::read_to_string(log).unwrap();
    for line in ["to stdout\n", "to stderr\n", "again\n"] {
        assert!(text.contains(line), "{text}");
    }
}

#[tokio::test]
async fn a_flood_is_cut_and_does_not_block_the_tool() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("flood.log");
    let finished = ran(&fake(&["flood", "100000000"]).log(&log).capture_stdout()).await;
    assert_eq!(finished.exit, Exit::Success);
    assert!(finished.stdout_truncated);
    assert_eq!(finished.stdout.len(), 64 << 20);
    assert!(std::fs::metadata(log).unwrap().len() < (64 << 20) + 100);
}

#[tokio::test]
async fn a_full_disk_is_an_error_that_names_the_log() {
    let error = run(&fake(&["flood", "1000000"]).log("/dev/full"), &Cancel::new()).await.unwrap_err();
    assert!(error.is_disk_full());
    assert!(error.to_string().starts_with("write the log /dev/full: "), "{error}");
}

#[tokio::test]
async fn resource_use_is_that_of_the_tool() {
    let finished = ran(&fake(&["memory", "200"])).await;
    let peak = finished.peak_memory_bytes.unwrap();
    assert!((200 << 20..400 << 20).contains(&peak), "{peak}");
    let finished = ran(&fake(&["burn", "200"])).await;
    assert!(finished.wall >= Duration::from_millis(200));
    // The share of the processor depends on the other programs of this machine.
    assert!(finished.user + finished.system > Duration::ZERO, "{finished:?}");
}

#[tokio::test]
async fn a_tool_smaller_than_benchgate_is_reported_with_its_own_peak_memory() {
    // The memory is written to, so that this process is far larger than the tool.
    let ballast = std::hint::black_box(vec![1u8; 300 << 20]);
    let peaks: Vec<u64> = [
        ran(&fake(&["memory", "20"])).await.peak_memory_bytes.unwrap(),
        ran(&fake(&["memory", "60"])).await.peak_memory_bytes.unwrap(),
    ]
    .into();
    assert!((20 << 20..40 << 20).contains(&peaks[0]), "{peaks:?}");
    assert!((60 << 20..80 << 20).contains(&peaks[1]), "{peaks:?}");
    drop(ballast);
}

#[tokio::test]
async fn a_small_tool_has_a_peak_memory_too() {
    let peak = ran(&fake(&["exit", "0"])).await.peak_memory_bytes.unwrap();
    assert!(peak < 16 << 20, "{peak}");
}

#[tokio::test]
async fn a_signal_that_benchgate_did_not_send_is_from_outside_and_a_crash_is_not() {
    let killed = ran(&fake(&["kill-oneself", "9"])).await;
    assert_eq!(killed.exit, Exit::Signal(9));
    assert!(killed.ended_from_outside().is_some());
    let crashed = ran(&fake(&["segfault"])).await;
    // The machine may have run out of memory at this moment, which would be reported.
    assert!(crashed.memory_ran_out || crashed.ended_from_outside().is_none());
    let mut hung = fake(&["hang", "/dev/null"]);
    hung.timeout = Duration::from_millis(200);
    assert_eq!(ran(&hung).await.ended_from_outside(), None);
}

/// The child processes of all threads of this process.
fn children(pid: u32) -> Vec<i32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<_>>())
        .collect()
}

#[test]
fn a_stopped_supervisor_does_not_keep_benchgate_from_ending() {
    use nix::sys::signal::{Signal, kill};
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("pids");
    let mut benchgate = contained(&["hang", note.to_str().unwrap()]);
    wait_for_note(&note);
    let supervisors = children(benchgate.id());
    assert_eq!(supervisors.len(), 1);
    kill(nix::unistd::Pid::from_raw(supervisors[0]), Signal::SIGSTOP).unwrap();
    kill(nix::unistd::Pid::from_raw(benchgate.id().cast_signed()), Signal::SIGTERM).unwrap();
    let until = Instant::now() + LONG;
    while benchgate.try_wait().unwrap().is_none() {
        assert!(Instant::now() < until, "it waits for a supervisor that can't obey");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_gone(&note, Duration::ZERO);
}

#[tokio::test]
async fn the_environment_is_an_allow_list() {
    let finished = ran(&fake(&["environment"]).env("GIVEN", "1").capture_stdout()).await;
    let names = String::from_utf8(finished.stdout).unwrap();
    // cargo sets these variables for every test, so they show whether the environment is filtered. Only
    // the folder of its registry, which rustup sets, is passed on.
    let of_cargo = names.lines().filter(|name| name.starts_with("CARGO") && *name != "CARGO_HOME");
    assert_eq!(of_cargo.collect::<Vec<_>>(), <[&str; 0]>::default());
    assert!(names.lines().any(|name| name == "PATH"));
    assert!(names.lines().any(|name| name == "GIVEN"));
}

#[tokio::test]
async fn a_tool_runs_only_on_the_given_processors() {
    let finished = ran(&fake(&["processors"]).cpus(Some(vec![0])).capture_stdout()).await;
    assert_eq!(finished.stdout, b"[0]\n");
}

#[tokio::test]
async fn a_tool_that_hangs_is_ended_at_its_time_limit() {
    let mut command = fake(&["hang", "/dev/null"]);
    command.timeout = Duration::from_millis(200);
    let finished = ran(&command).await;
    assert_eq!(finished.exit, Exit::TimedOut(command.timeout));
    assert_eq!(finished.exit.to_string(), "timed out after 0.2 s");
    assert!(finished.wall < LONG, "{:?}", finished.wall);
}

#[tokio::test]
async fn a_tool_that_ignores_sigterm_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("pids");
    let mut command = fake(&["hang-ignoring-sigterm", note.to_str().unwrap()]);
    // On a busy machine, a tool may reach its time limit before it ignores the signal.
    for limit in [500, 5_000, 50_000].map(Duration::from_millis) {
        command.timeout = limit;
        assert!(ran(&command).await.exit.is_timeout());
        if !noted(&note).is_empty() {
            break;
        }
    }
    assert_gone(&note, Duration::ZERO);
}

#[tokio::test]
async fn an_escaped_grandchild_is_found_and_killed() {
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("pids");
    let finished = ran(&fake(&["escape", note.to_str().unwrap()])).await;
    assert_eq!(finished.exit, Exit::Success);
    assert_eq!(finished.leftovers, 1);
    assert_gone(&note, Duration::ZERO);
}

/// Once a tool has written its id, asks it twice to stop. Also returns the time of the request.
fn stopped_after_note(note: &Path) -> (Cancel, tokio::task::JoinHandle<Instant>) {
    let cancel = Cancel::new();
    let (request, note) = (cancel.clone(), note.to_owned());
    let asked = tokio::task::spawn_blocking(move || {
        wait_for_note(&note);
        request.request();
        request.request();
        Instant::now()
    });
    (cancel, asked)
}

#[tokio::test]
async fn what_forks_forever_is_ended_whole() {
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("pids");
    let command = fake(&["fork-forever", note.to_str().unwrap()]);
    let (cancel, asked) = stopped_after_note(&note);
    assert_eq!(run(&command, &cancel).await.unwrap().exit, Exit::Interrupted);
    asked.await.unwrap();
    assert_gone(&note, Duration::ZERO);
}

#[tokio::test]
async fn a_request_to_stop_ends_the_tool_and_a_second_one_kills_it() {
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("pids");
    let command = fake(&["hang-ignoring-sigterm", note.to_str().unwrap()]);
    let (cancel, asked) = stopped_after_note(&note);
    assert_eq!(run(&command, &cancel).await.unwrap().exit, Exit::Interrupted);
    assert!(asked.await.unwrap().elapsed() < Duration::from_secs(2), "the grace was waited for");
    assert_gone(&note, Duration::ZERO);
}

#[tokio::test]
async fn a_dropped_run_kills_its_tool() {
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("pids");
    let command = fake(&["escape", note.to_str().unwrap(), "hang"]);
    let file = note.clone();
    let is_noted = tokio::task::spawn_blocking(move || wait_for_note(&file));
    let cancel = Cancel::new();
    tokio::select! {
        ended = run(&command, &cancel) => panic!("{ended:?}"),
        done = is_noted => done.unwrap(),
    }
    // Dropping sends the signal, but does not wait until a busy machine has delivered it.
    assert_gone(&note, LONG);
}

fn contained(args: &[&str]) -> std::process::Child {
    let mut benchgate = std::process::Command::new(fake_tool());
    benchgate.arg("contain").args(args).stdout(Stdio::null()).spawn().unwrap()
}

#[test]
fn a_killed_benchgate_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    for mode in ["hang-ignoring-sigterm", "escape"] {
        let note = folder.path().join(mode);
        let mut benchgate = contained(&[mode, note.to_str().unwrap(), "hang"]);
        wait_for_note(&note);
        benchgate.kill().unwrap();
        benchgate.wait().unwrap();
        assert_gone(&note, Duration::from_secs(5));
        if let Containment::Cgroup { base } = containment() {
            let ours = format!("benchgate-{}-", benchgate.id());
            let until = Instant::now() + Duration::from_secs(5);
            let left = || {
                let entries = std::fs::read_dir(&base).unwrap().flatten();
                entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&ours)).count()
            };
            while left() > 0 {
                assert!(Instant::now() < until, "a cgroup is left in {}", base.display());
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

#[test]
fn ctrl_c_ends_the_tool_and_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("pids");
    let mut benchgate = contained(&["hang", note.to_str().unwrap()]);
    wait_for_note(&note);
    let pid = nix::unistd::Pid::from_raw(benchgate.id().cast_signed());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    assert!(benchgate.wait().unwrap().success());
    assert_gone(&note, Duration::ZERO);
}

#[tokio::test]
async fn where_a_cgroup_can_be_made_the_tool_is_in_it_and_it_is_removed() {
    let Containment::Cgroup { base } = containment() else { return };
    let finished = ran(&fake(&["cgroup"]).capture_stdout()).await;
    let text = String::from_utf8(finished.stdout).unwrap();
    let own = text.lines().find_map(|line| line.strip_prefix("0::")).unwrap();
    let name = Path::new(own).file_name().unwrap();
    assert!(name.to_string_lossy().starts_with(&format!("benchgate-{}-", std::process::id())), "{text}");
    assert!(!base.join(name).exists());
}

#[tokio::test]
async fn a_session_answers_line_by_line() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("talk.log");
    let mut session = ProgramSession::start(&fake(&["talk"]).log(&log)).await.unwrap();
    for line in ["one", r#"{"two": 2}"#] {
        assert_eq!(session.request(line, &Cancel::new()).await.unwrap(), Reply::Line(line.into()));
    }
    let finished = session.finish(LONG).await.unwrap();
    assert_eq!(finished.exit, Exit::Success);
    assert!(finished.stderr_tail.contains("heard one"));
    assert!(std::fs::read_to_string(log).unwrap().contains("heard {\"two\""));
}

#[tokio::test]
async fn a_session_that_crashes_ends_and_says_how() {
    for (order, signal) in [("crash", 11), ("half", 9)] {
        let mut session = ProgramSession::start(&fake(&["talk"])).await.unwrap();
        assert_eq!(session.request(order, &Cancel::new()).await.unwrap(), Reply::Ended);
        assert_eq!(session.finish(LONG).await.unwrap().exit, Exit::Signal(signal));
    }
}

#[tokio::test]
async fn a_session_that_hangs_times_out_by_request() {
    let mut command = fake(&["talk"]);
    command.timeout = Duration::from_millis(300);
    let mut session = ProgramSession::start(&command).await.unwrap();
    assert_eq!(session.request("hang", &Cancel::new()).await.unwrap(), Reply::TimedOut);
    assert_eq!(session.finish(LONG).await.unwrap().exit, Exit::TimedOut(command.timeout));
}

#[tokio::test]
async fn an_observed_program_and_its_children_are_seen_to_open_and_to_look_for_files() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().canonicalize().unwrap();
    std::fs::create_dir(at.join("inner")).unwrap();
    std::fs::write(at.join("read"), "1").unwrap();
    for name in ["root", "working", "linked"] {
        std::fs::write(at.join(name), "1").unwrap();
    }
    std::os::unix::fs::symlink("/proc/self/cwd/linked", at.join("link")).unwrap();
    let shared = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
    let script = format!(
        "cat read inner/../missing; ls inner; echo 1 > made; cat made; cat /proc/self/root{}/root; \
         cat /proc/self/cwd/working link {}; cat /proc/self/status >/dev/null; :",
        at.display(),
        shared.path().display(),
    );
    let command = Command::new("/bin/sh", LONG).args(["-c", &script]).cwd(&at).env("LC_ALL", "C");
    assert_eq!(ran(&command).await.opened, None, "it was not asked for");
    let opened = ran(&command.observed()).await.opened.unwrap();
    for name in ["read", "missing", "root", "working", "link", "linked"] {
        assert!(opened.read.contains(&at.join(name)), "{name} is not in {opened:?}");
    }
    assert!(opened.read.contains(shared.path()), "{opened:?}");
    assert!(opened.listed.contains(&at.join("inner")), "{opened:?}");
    assert!(!opened.read.contains(&at.join("made")), "{opened:?}");
    assert!(opened.read.iter().any(|path| path.ends_with("cat")), "{opened:?}");
    assert!(!opened.read.iter().any(|path| path.starts_with("/proc")), "{opened:?}");
    for name in ["read", "inner", "root", "link"] {
        assert!(opened.found.contains_key(&at.join(name)), "{name} is not in {opened:?}");
    }
    assert!(
        !opened.found.keys().any(|path| path.ends_with("made") || path.ends_with("missing")),
        "{opened:?}"
    );
}

#[tokio::test]
async fn an_observed_session_tells_what_each_request_opened() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().canonicalize().unwrap();
    for name in ["one", "two"] {
        std::fs::write(at.join(name), "1").unwrap();
    }
    let script = format!(
        "import os, sys\nfor line in sys.stdin:\n    name = line.strip()\n    open(name).close()\n    \
         if name != 'two': os.path.exists('{END_OF_SECTION}')\n    print(name, flush=True)"
    );
    let command = Command::new("python3", LONG).args(["-c", &script]).cwd(&at);
    let mut session = ProgramSession::start(&command.clone().observed()).await.unwrap();
    let mut found = Vec::new();
    for line in ["one", "one", "two", "one"] {
        session.request(line, &Cancel::new()).await.unwrap();
        let used = session.used();
        let names = |used: &BTreeSet<PathBuf>| -> Vec<String> {
            let inside = used.iter().filter_map(|path| path.strip_prefix(&at).ok());
            inside.map(|name| name.display().to_string()).collect()
        };
        found.push(used.map(|used| names(&used)));
    }
    let said = |names: &[&str]| Some(names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
    // The third request did not end a section, so its file belongs to the next.
    assert_eq!(found, [said(&["one"]), said(&["one"]), None, said(&["one", "two"])]);
    let mut unobserved = ProgramSession::start(&command).await.unwrap();
    unobserved.request("one", &Cancel::new()).await.unwrap();
    assert_eq!(unobserved.used(), None);
}

#[tokio::test]
async fn an_observed_program_is_seen_to_link_rename_and_replace_what_it_found() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().canonicalize().unwrap();
    for name in ["linked", "moved", "replaced", "longer"] {
        std::fs::write(at.join(name), "1").unwrap();
    }
    std::fs::create_dir(at.join("taken")).unwrap();
    let script = "import os; os.link('linked', 'a'); os.rename('moved', 'b'); open('a'); open('b'); os.symlink('a', 'c'); \
                  open('replaced', 'w'); open('replaced'); open('longer', 'a'); os.mkdir('new')\n\
                  try: os.mkdir('taken')\nexcept OSError: pass";
    let command = Command::new("python3", LONG).args(["-c", script]).cwd(&at).observed();
    let opened = ran(&command).await.opened.unwrap();
    let names = opened.found.keys().filter_map(|path| path.strip_prefix(&at).ok());
    let names: Vec<&str> = names.filter_map(|name| name.to_str().filter(|name| !name.is_empty())).collect();
    assert_eq!(names, ["a", "b", "linked", "longer", "moved", "taken"]);
    assert!(opened.kept_memory.is_empty(), "{opened:?}");
}
