//! `[[command]]`: files that processes leave for later ones, and outputs that prove nothing.

use crate::harness::Outcome;

use super::suite_commands::{BASES_BUILD, COMPUTES, CONFIG, Change, WITH_OUTPUTS};

fn found(outcome: &Outcome, code: &str) -> bool {
    outcome.stdout.contains(&format!("\"{code}\""))
}

/// A command that remembers its result in a file.
fn memo(file: &str) -> String {
    format!(
        "m=\"{file}\"; mkdir -p \"$(dirname \"$m\")\"; [ -e \"$m\" ] || echo 42 > \"$m\"; cp \"$m\" \"$1/y.txt\"; rows"
    )
}

#[track_caller]
fn is_other_work(case: &str, outcome: &Outcome) {
    assert!(found(outcome, "workload-changed"), "{case}: {}", outcome.said());
    assert_ne!(outcome.code, Some(0), "{case}");
}

#[track_caller]
fn is_the_same_work(case: &str, outcome: &Outcome) {
    assert!(!found(outcome, "workload-changed"), "{case}: {}", outcome.said());
}

#[test]
fn a_result_that_heads_processes_leave_to_later_ones_is_never_green() {
    let change = Change::new(COMPUTES, WITH_OUTPUTS);
    change.bench(&format!(": > \"$1/profile.$$\"; rm \"$1/profile.$$\"; {COMPUTES}"));
    let outcome = change.strictly();
    is_the_same_work("a file that is gone again", &outcome);
    assert!(!found(&outcome, "kept-state"), "{}", outcome.said());
    for place in ["$1/memo", "$1/true/memo", "memo", "$HOME/.cache/tool/memo", "$HOME/../elsewhere/memo"] {
        change.bench(&memo(place));
        is_other_work(place, &change.strictly());
    }
    // Base has a cache too.
    let digests = ["$HOME/.cache/x/3f786850e387550f", "$HOME/.cache/x/89e6c98d92887913"];
    for (base, head) in [("$1/cache/a", "$1/cache/b"), digests.into()] {
        let change = Change::new(&format!(": > \"$1/log.$$\"; {}", memo(base)), WITH_OUTPUTS);
        change.bench(&format!(": > \"$1/log.$$\"; {}", memo(head)));
        let outcome = change.strictly();
        is_the_same_work(base, &outcome);
        assert_eq!(found(&outcome, "kept-state"), base.starts_with("$HOME"), "{}", outcome.said());
    }
    // Base keeps something else in the same place.
    let log = "l=\"$HOME/.cache/x/log\"; mkdir -p \"$HOME/.cache/x\"; echo 1 >> \"$l\"; cat \"$l\" >&2";
    let change = Change::new(&format!("{log}; {COMPUTES}"), WITH_OUTPUTS);
    change.bench(&format!("{log}; {}", memo("$HOME/.cache/x/result")));
    is_other_work("a log of base and a result of head", &change.strictly());
}

#[test]
fn a_head_that_reads_what_bases_processes_left_is_never_green() {
    let change = Change::new(&format!("echo 42 > \"$HOME/result\"; {COMPUTES}"), WITH_OUTPUTS);
    is_the_same_work("the base's own program", &change.strictly());
    change.bench("cp \"$HOME/result\" \"$1/y.txt\"; rows");
    is_other_work("a copy of base's result", &change.strictly());
}

/// Takes a few tenths of a second of processor time.
const LOOP: &str = "i=0; while [ $i -lt 600000 ]; do i=$((i+1)); done";

#[test]
fn a_head_that_computes_only_while_it_is_observed_is_never_green() {
    let change = Change::new("rows", CONFIG);
    change.bench(&format!("if grep -q 'Seccomp:.*2' /proc/self/status; then {LOOP}; fi; rows"));
    is_other_work("a program that recognizes that it is observed", &change.strictly());
    change.bench(&format!("{LOOP}; rows"));
    is_the_same_work("a program that always computes", &change.strictly());
}

#[test]
fn a_head_whose_preparation_does_its_work_is_never_green() {
    for line in ["prepare", "setup"] {
        let config = CONFIG.replacen("run", &format!("{line} = \"sh {{build}}/bench {line}\"\nrun"), 1);
        let change = Change::new(&format!("if [ \"$1\" != {line} ]; then {LOOP}; fi; rows"), &config);
        change.bench(&format!("{LOOP}; rows"));
        is_the_same_work("a longer preparation", &change.strictly());
        change.bench(&format!("if [ \"$1\" = {line} ]; then {LOOP}; fi; rows"));
        is_other_work(line, &change.strictly());
    }
}

#[test]
fn a_head_that_repairs_its_build_with_bases_is_never_green() {
    let build = |text: &str| format!("\"sh -c 'echo {text} > {{build}}/y.txt'\"");
    let change = Change::new("rows", &WITH_OUTPUTS.replace("\"true\"", &build("42")));
    is_the_same_work("no difference", &change.strictly());
    change.0.write("benchgate.toml", WITH_OUTPUTS.replace("\"true\"", &build("43")));
    change.bench(&format!("cp {BASES_BUILD}/y.txt \"$1\"; rows"));
    is_other_work("a copy of what base's build made", &change.strictly());
}

#[test]
fn a_base_that_runs_heads_code_is_never_green() {
    // As after `pip install -e .`: both sides read the package from the working tree.
    let change = Change::empty();
    change.0.write("package.sh", "true");
    let package = change.0.work().join("package.sh");
    change.begin(&format!(". '{}'; rows", package.display()), CONFIG);
    is_the_same_work("an unchanged package of the working tree", &change.strictly());
    change.0.write("package.sh", "true # slower");
    is_other_work("a changed package of the working tree", &change.strictly());
    // As with `make install`: head's build replaces what base's build installed.
    let install = "build = [\"cp bench.sh {build}/bench\", \"sh -c 'cp package.sh $HOME/package.sh'\"]";
    let change = Change::empty();
    change.0.write("package.sh", "true");
    change.begin(
        ". \"$HOME/package.sh\"; rows",
        &CONFIG.replace("build = \"cp bench.sh {build}/bench\"", install),
    );
    change.0.write("package.sh", "true # slower");
    is_other_work("a package that both builds install in one place", &change.strictly());
    let setup = "setup = \"sh -c 'cp package.sh $HOME/package.sh'\"\nrun";
    let change = Change::empty();
    change.0.write("package.sh", "true");
    change.begin(". \"$HOME/package.sh\"; rows", &CONFIG.replacen("run", setup, 1));
    change.0.write("package.sh", "true # slower");
    is_other_work("a file that both sides' setup writes", &change.strictly());
    // Base takes a slower path if the file exists.
    let change = Change::new("[ ! -e \"$HOME/slow\" ] || sleep 0.01; rows", CONFIG);
    is_the_same_work("a file that no one writes", &change.strictly());
    change.bench(": > \"$HOME/slow\"; rows");
    is_other_work("a file that head's processes write", &change.strictly());
    // As with the index of a cache of compiled kernels.
    let cached = |line: &str| format!("i=\"$HOME/3f786850e387550f\"; cat \"$i\" >&2; {line} >> \"$i\"; rows");
    let change = Change::new(&cached("[ -e \"$i\" ] || echo 1"), CONFIG);
    change.bench(&cached("grep -q 2 \"$i\" || echo 2"));
    is_the_same_work("a cache that both sides read and write", &change.strictly());
}

#[test]
fn a_changed_file_that_processes_read_without_naming_it_is_noted() {
    let change = Change::empty();
    change.0.write("size.txt", "100");
    change.begin("read size < size.txt; rows", CONFIG);
    let outcome = change.strictly();
    assert!(!found(&outcome, "script-changed"), "{}", outcome.said());
    change.0.write("size.txt", "90");
    let outcome = change.strictly();
    let note = "the processes read `size.txt`, which differs from base's";
    assert!(outcome.stdout.contains(note), "{}", outcome.said());
}

#[test]
fn a_cache_in_the_working_tree_is_refused() {
    let change = Change::new("rows", CONFIG);
    let outcome = change.0.run(["gate", "--base=main", "--cache-dir=.cache"]).expect_code(2);
    assert!(outcome.stderr.contains("is inside the working tree"), "{}", outcome.stderr);
}

#[test]
fn a_file_of_the_build_that_only_heads_processes_change_is_never_green() {
    let config = WITH_OUTPUTS.replace("\"true\"", "\"sh -c ': > {build}/cache.db'\"");
    let change = Change::new(COMPUTES, &config);
    is_the_same_work("no difference", &change.strictly());
    for edit in ["echo 1 >> \"$1/cache.db\"", "rm -f \"$1/cache.db\"", "chmod 600 \"$1/cache.db\""] {
        change.bench(&format!("{edit}; {COMPUTES}"));
        is_other_work(edit, &change.strictly());
    }
    let change = Change::new(&format!("echo 1 >> \"$1/cache.db\"; {COMPUTES}"), &config);
    change.bench(&format!("echo 2 >> \"$1/cache.db\"; {COMPUTES}"));
    is_the_same_work("base's processes change it too", &change.strictly());
}

/// A command whose first argument selects what it does with files. It leaves its output in the folder of its
/// second argument.
const KEEPS: &str = r#"
import ctypes, os, resource, socket, sys, tempfile
how, build = sys.argv[1:]
home = os.environ["HOME"]
kept = os.path.join(home, "kept")
output = os.path.join(build, "y.txt")
libc = ctypes.CDLL(None)

def attempt(action, *args, **options):
    try:
        return action(*args, **options)
    except OSError:
        return None

def read(path):
    with open(path) as file:
        return file.read()

def outside():
    """The next process above the measured ones."""
    pid = os.getpid()
    while "benchgate" not in read(f"/proc/{pid}/comm"):
        pid = int(read(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()[1])
    return pid

def write(path, flags=0):
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | flags, 0o644), "w") as file:
        file.write("42\n")

write(output)
if how == "hard link":
    other = os.path.join(build, "z")
    attempt(os.link, kept, other)
    attempt(os.unlink, other)
    attempt(write, kept)
elif how == "moved file":
    attempt(os.rename, kept, os.path.join(home, "moved"))
    attempt(os.unlink, os.path.join(home, "moved"))
    write(kept)
elif how == "link":
    attempt(os.readlink, kept)
    attempt(os.symlink, "42", kept)
elif how == "link to an old file":
    attempt(read, os.path.join(kept, "passwd"))
    attempt(os.symlink, "/etc", kept)
elif how == "link that is made anew":
    attempt(os.unlink, os.path.join(home, "new"))
    os.symlink(kept, os.path.join(home, "new"))
    attempt(read, os.path.join(home, "new"))
    write(kept)
elif how == "folder":
    attempt(os.mkdir, kept)
elif how == "name that is taken":
    attempt(write, kept, os.O_EXCL)
elif how == "name that is taken, then its file":
    attempt(write, kept, os.O_EXCL)
    read(kept)
elif how == "end of a file":
    with open(kept, "a") as file:
        file.write("42\n")
elif how == "file that is gone afterwards":
    number = sum(name.startswith("count") for name in os.listdir(home))
    attempt(read, f"{kept}{number}")
    attempt(os.unlink, f"{kept}{number}")
    write(os.path.join(home, f"count{number}"))
    write(f"{kept}{number + 1}")
elif how == "removed file":
    attempt(os.unlink, kept)
    write(kept)
elif how == "segment":
    libc.shmctl(libc.shmget(0, 4096, 0o1600), 0, None)
elif how.startswith("extended attribute"):
    name = f"user.{how.split()[-1]}"
    place = home if "folder" in how else os.path.join(home, "old")
    attempt(os.getxattr, place, name)
    attempt(os.setxattr, place, name, b"42")
    # Not every file system has such attributes, but each changes the time.
    os.chmod(place, 0o700)
elif how.startswith("new call"):
    # The numbers of `getxattrat` and `fchmodat2`.
    place, here = os.path.join(home, "old").encode(), -100
    if "mode" in how:
        libc.syscall(452, here, place, 0o700, 0)
    else:
        libc.syscall(464, here, place, 0, b"user.kept", None, 0)
        with open(place, "w"):
            pass
elif how == "length of a file":
    attempt(os.truncate, kept, 3)
    write(kept)
elif how == "times of a file":
    attempt(os.utime, kept)
    write(kept)
elif how == "port":
    with socket.socket() as listener:
        attempt(listener.bind, ("127.0.0.1", 45777))
elif how == "queue":
    getattr(libc, "mq_open", ctypes.CDLL("librt.so.1").mq_open)(b"/no-such-queue", 0)
elif how.startswith("attribute of another process"):
    other = outside()
    if "limit" in how:
        limits = resource.prlimit(other, resource.RLIMIT_NOFILE)
        resource.prlimit(other, resource.RLIMIT_NOFILE, limits)
    elif "priority" in how:
        os.setpriority(os.PRIO_PROCESS, other, os.getpriority(os.PRIO_PROCESS, other))
    elif "memory" in how:
        attempt(open, f"/proc/{other}/oom_score_adj", "w")
    elif "filter" in how:
        attempt(open, f"/proc/{other}/coredump_filter")
    else:
        os.sched_setaffinity(other, os.sched_getaffinity(other))
elif how.startswith("link in the build"):
    attempt(os.symlink, "42", os.path.join(build, "l"))
elif how.startswith("cache in"):
    folder = os.path.join(build if "build" in how else home, "__pycache__")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "kept.bin" if "build" in how else "kept.pyc")
    attempt(read, path)
    write(path)
elif how == "honest":
    import module
    with tempfile.TemporaryDirectory() as folder:
        first, second = os.path.join(folder, "a"), os.path.join(folder, "b")
        write(first)
        os.rename(first, second)
        read(second)
        os.symlink(second, first)
        read(first)
        os.link(second, os.path.join(folder, "c"))
        read(os.path.join(folder, "c"))
        os.mkdir(os.path.join(folder, "d"))
        os.close(libc.creat(os.path.join(folder, "e").encode(), 0o600))
        read(os.path.join(folder, "e"))
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.join(tempfile.gettempdir(), f"{os.getpid()}.socket"))
        os.unlink(listener.getsockname())
    for pid in [0, os.getpid(), os.getppid()]:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, resource.getrlimit(resource.RLIMIT_NOFILE))
        os.sched_setaffinity(pid, os.sched_getaffinity(pid))
        os.setpriority(os.PRIO_PROCESS, pid, os.getpriority(os.PRIO_PROCESS, pid))
    attempt(open, "/proc/self/coredump_filter", "w")
    resource.prlimit(outside(), resource.RLIMIT_NOFILE)
    # Programs probe for calls of the kernel with a null name.
    libc.statx(0, None, 0, 0, None)
    new = os.path.join(tempfile.gettempdir(), f"{os.getpid()}")
    write(new, os.O_EXCL)
    with open(new, "a") as file:
        file.write("1")
    read(new)
    os.unlink(new)
"#;

#[test]
fn a_head_that_can_tell_what_an_earlier_process_left_is_never_green() {
    let change = Change::empty();
    change.0.write("keeps.py", KEEPS);
    change.0.write("module.py", "value = 1\n");
    let cached = "mkdir -p \"$1/__pycache__\"; : > \"$1/__pycache__/bench.pyc\"";
    change.begin(&format!("{cached}; {COMPUTES}"), WITH_OUTPUTS);
    std::fs::write(change.0.work().with_file_name("home").join("old"), "").unwrap();
    let mut missed = Vec::new();
    let mut gate = |how: &str, is_other: bool| {
        change.bench(&format!("{cached}; python3 keeps.py '{how}' \"$1\"; rows"));
        let outcome = change.strictly();
        if found(&outcome, "workload-changed") != is_other {
            missed.push(format!("{how}: {}", outcome.said()));
        }
        for entry in std::fs::read_dir(change.0.work().with_file_name("home")).unwrap() {
            let path = entry.unwrap().path();
            if !path.ends_with("old") {
                std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path)).unwrap();
            }
        }
    };
    gate("nothing", false);
    gate("honest", false);
    for how in [
        "hard link",
        "moved file",
        "link",
        "link to an old file",
        "link that is made anew",
        "folder",
        "name that is taken",
        "name that is taken, then its file",
        "end of a file",
        "file that is gone afterwards",
        "removed file",
        "extended attribute of a file",
        "extended attribute of a folder",
        "length of a file",
        "times of a file",
        "new call that reads an attribute",
        "new call that sets a mode",
        "port",
        "segment",
        "queue",
        "attribute of another process: limit",
        "attribute of another process: priority",
        "attribute of another process: processors",
        "attribute of another process: memory",
        "attribute of another process: filter",
        "link in the build",
        "cache in the build",
        "cache in the home folder",
    ] {
        gate(how, true);
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn an_output_that_has_another_name_is_never_green() {
    let change = Change::new(COMPUTES, WITH_OUTPUTS);
    for link in ["ln -s", "ln"] {
        change.bench(&format!("echo 42 > \"$1/z\"; {link} \"$1/z\" \"$1/y.txt\"; rows"));
        let outcome = change.strictly();
        assert!(found(&outcome, "VERIFIER_DIDNT_RUN"), "{link}: {}", outcome.said());
        assert_eq!(outcome.code, Some(20), "{link}: {}", outcome.said());
    }
}

#[test]
fn outputs_that_a_program_without_a_computation_would_have_prove_nothing() {
    let npy = |values: &str| {
        format!(
            "printf '\\223NUMPY\\001\\000\\166\\000%-117s\\n{values}' \
             \"{{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }}\" > \"$1/y.npy\"; rows"
        )
    };
    let nan = "\\000\\000\\300\\177";
    for (output, body) in [
        ("y.txt", ": > \"$1/y.txt\"; rows".to_owned()),
        ("y.txt", "head -c 64 /dev/zero > \"$1/y.txt\"; rows".to_owned()),
        ("y.txt", "printf ' \\n' > \"$1/y.txt\"; rows".to_owned()),
        ("y.txt", "printf '0\\n[0.0, -0]\\n' > \"$1/y.txt\"; rows".to_owned()),
        ("y.txt", "printf 'inf -inf nan\\n' > \"$1/y.txt\"; rows".to_owned()),
        ("y.txt", "printf '7 7 7\\n' > \"$1/y.txt\"; rows".to_owned()),
        ("y.npy", npy(&"\\000".repeat(8))),
        ("y.npy", npy(&nan.repeat(2))),
    ] {
        let change = Change::new(&body, &WITH_OUTPUTS.replace("y.txt", output));
        let outcome = change.strictly();
        assert!(found(&outcome, "vacuous-reference"), "{body}: {}", outcome.said());
        assert_eq!(outcome.code, Some(11), "{body}: {}", outcome.said());
    }
    // The output has one meaningful number, next to one that can't be wrong.
    let change =
        Change::new(&npy(&format!("{nan}\\000\\000\\200\\077")), &WITH_OUTPUTS.replace("y.txt", "y.npy"));
    let outcome = change.strictly();
    assert!(!found(&outcome, "vacuous-reference"), "{}", outcome.said());
}
