//! `[[command]]`: builds of a head that use what base's build made or files that no commit contains, a base that
//! runs other code of head's working tree, and a head that takes files away from base.

use std::os::unix::fs::PermissionsExt;

use crate::harness::Outcome;

use super::suite_commands::{BASES_BUILD, CONFIG, Change};

/// A command whose `build` is a script.
fn built_by_script() -> String {
    CONFIG.replace("cp bench.sh {build}/bench", "sh build.sh {build}").replace("\"2s\"", "\"5s\"")
}

/// A repository whose base is built by this script.
fn change(build: &str) -> Change {
    let change = Change::empty();
    change.0.write("build.sh", build);
    change.begin("rows", &built_by_script());
    change
}

fn says(outcome: &Outcome, detail: &str) -> bool {
    outcome.stdout.contains(detail)
}

#[track_caller]
fn is_refused(case: &str, outcome: &Outcome, detail: &str) {
    assert!(says(outcome, "\"workload-changed\""), "{case}: {}", outcome.said());
    assert!(says(outcome, detail), "{case}: {}", outcome.said());
    assert_ne!(outcome.code, Some(0), "{case}");
}

#[track_caller]
fn is_accepted(case: &str, outcome: &Outcome) {
    for code in ["workload-changed", "unobserved"] {
        assert!(!says(outcome, &format!("\"{code}\"")), "{case}: {}", outcome.said());
    }
}

const SLOWER: &str = "sleep 0.01; rows";

#[test]
fn a_head_that_is_built_from_objects_of_base_is_never_green() {
    // As make does in a build folder that both checkouts share.
    let make = "o=$HOME/objects; mkdir -p $o; [ $o/bench -nt bench.sh ] || cp bench.sh $o/bench; ";
    for use_it in ["cp $o/bench $1/bench", "ln -s $o/bench $1/bench"] {
        let change = change(&format!("{make}{use_it}"));
        change.bench(SLOWER);
        let outcome = change.strictly();
        is_refused(use_it, &outcome, "head's build does not read `bench.sh`, which differs from base's, but");
    }
    // Another file of the build differs.
    let change = Change::empty();
    change.0.write("build.sh", format!("{make}cp $o/bench $1/bench; git describe --always > $1/version"));
    let reads = "cat \"${0%/*}/version\" >&2; ";
    change.begin(&format!("{reads}rows"), &built_by_script());
    change.bench(&format!("{reads}{SLOWER}"));
    is_refused("a file with the version", &change.strictly(), "head's build does not read `bench.sh`");
    // As a compiler cache does.
    let cache = "c=$HOME/.cache/cc; mkdir -p $c; \
                 for f in bench.sh other.sh; do d=$c/$(sha256sum < $f | head -c 64); [ -e $d ] || cp $f $d; cp $d $1/${f%.sh}; done";
    let change = Change::empty();
    change.0.write("build.sh", cache);
    change.0.write("other.sh", "true");
    change.begin("rows", &built_by_script());
    is_accepted("a cache by content, without a change", &change.strictly());
    change.bench("rows # changed");
    is_accepted("a cache by content", &change.strictly());
    change.bench("rows");
    change.0.write("README", "Documentation");
    is_accepted("a changed document", &change.strictly());
}

#[test]
fn a_head_whose_build_takes_bases_program_is_never_green() {
    let build = "cp bench.sh $1/bench; cat bench.sh > /dev/null";
    let change = change(build);
    change.bench(SLOWER);
    change.0.write("build.sh", format!("{build}; cp {BASES_BUILD}/bench $1/bench"));
    is_refused("base's program", &change.strictly(), "head's build reads base's");
    let linked = "ln -s $(echo $PWD/../cache/benchgate/commands/*/content/base) $HOME/link; cp $HOME/link/bench $1/bench";
    change.0.write("build.sh", format!("{build}; {linked}; rm $HOME/link"));
    is_refused("base's program by a link", &change.strictly(), "head's build reads base's");
    let sources = "../cache/benchgate/checkouts/checkout-*/content/tree";
    change.0.write("build.sh", format!("{build}; cp {sources}/bench.sh $1/bench"));
    is_refused("base's sources", &change.strictly(), "head's build reads base's `bench.sh`");
}

#[test]
fn a_base_that_runs_untracked_code_of_heads_working_tree_is_never_green() {
    let run = |name: &str| {
        let change = Change::empty();
        change.0.write(".gitignore", "*.so\n*.bin\n/venv\n");
        let path = change.0.work().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        change.0.write("package/code.py", "");
        change.begin(&format!(". '{}'; rows", path.display()), CONFIG);
        std::fs::write(&path, "true").unwrap();
        change
    };
    for name in ["package/native.so", "build/lib/native.so"] {
        is_refused(name, &run(name).strictly(), "git does not track");
    }
    // Data and tools are shared on purpose.
    is_accepted("data", &run("package/weights.bin").strictly());
    let environment = run("venv/lib/native.so");
    environment.0.write("venv/pyvenv.cfg", "");
    is_accepted("a virtual environment", &environment.strictly());
    let tools = run("compiler/bin/libcompiler.so");
    is_accepted("a compiler that was unpacked in the tree", &tools.strictly());
}

#[test]
fn a_base_that_is_built_from_heads_working_tree_is_never_green() {
    let built = |build: &str| {
        let change = Change::empty();
        let clone = change.0.work().display().to_string();
        change.0.write(".gitignore", "/out\n/venv\n");
        change.0.write("part.sh", ":");
        change.0.write("build.sh", build.replace("CLONE", &clone));
        change.begin(". ${0%/*}/part; rows", &built_by_script());
        change.0.write("part.sh", "sleep 0.01");
        change
    };
    let rest = "cp bench.sh $1/bench";
    let tracked = built(&format!("cp CLONE/part.sh $1/part; {rest}"));
    is_refused("a tracked file", &tracked.strictly(), "base's build read head's `part.sh`");
    let object = built(&format!("cp CLONE/out/part.o $1/part; {rest}"));
    object.0.write("out/part.o", ":");
    is_refused("an object", &object.strictly(), "`out/part.o`, which git does not track");
    let archive =
        built(&format!("git -C CLONE archive HEAD part.sh | tar -xC $1; mv $1/part.sh $1/part; {rest}"));
    is_refused("head's repository", &archive.strictly(), "base's build read head's repository");
    let tool = built(&format!("cp CLONE/venv/lib/part.o $1/part; {rest}"));
    tool.0.write("venv/pyvenv.cfg", "");
    tool.0.write("venv/lib/part.o", ":");
    is_accepted("a tool of a virtual environment", &tool.strictly());
}

#[test]
fn a_change_that_no_build_reads_is_never_green() {
    // As make does for a program that was committed.
    let made = |build: &str| {
        let change = Change::empty();
        change.0.write("build.sh", build);
        change.0.write("part.sh", ":");
        let program = change.0.write("made", super::suite_commands::script("rows"));
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        change.begin("rows", &built_by_script().replace("sh {build}/bench", "sh made"));
        change
    };
    let change = made("[ -e part.sh ] && : > $1/built");
    is_accepted("unchanged", &change.strictly());
    change.0.write("README", "Documentation");
    is_accepted("a changed document", &change.strictly());
    change.0.write("part.sh", "sleep 0.01");
    is_refused(
        "a changed part",
        &change.strictly(),
        "head's build looks at `part.sh`, which differs from base's",
    );
    for (case, build) in [
        ("git looks at all files", "git status > /dev/null; [ -e part.sh ]"),
        ("a build that reads it", "[ -e part.sh ] && cat part.sh > $1/part"),
    ] {
        let change = made(build);
        change.0.write("part.sh", "sleep 0.01");
        is_accepted(case, &change.strictly());
    }
    // A program that is built, and a build that looks at files as cargo does.
    let change = Change::empty();
    change.0.write("build.sh", "[ -e part.sh ] && cp bench.sh $1/bench; chmod +x $1/bench");
    change.0.write("part.sh", ":");
    change.begin("rows", &built_by_script());
    change.0.write("part.sh", "# Documentation");
    is_accepted("a program that is built", &change.strictly());
}

#[test]
fn a_head_that_takes_a_file_away_from_base_is_never_green() {
    let cache = |change: &Change| {
        let folder = change.0.work().with_file_name("home").join(".cache/app");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("tuned"), "1").unwrap();
    };
    let tuned =
        "if [ -e $HOME/.cache/app/tuned ]; then cat $HOME/.cache/app/tuned >&2; else sleep 0.01; fi; rows";
    let warmed = CONFIG.replace("warmup = 0", "warmup = 1");
    let again = "python3 -c 'import os; t = os.environ[\"HOME\"] + \"/tuned\"; open(t + \".new\", \"w\").close(); \
                 os.replace(t + \".new\", t); open(t)'; rows";
    is_accepted("a file that each process makes", &Change::new(again, &warmed).strictly());
    let remove = "rm -f $HOME/.cache/app/tuned";
    let change = Change::new(tuned, &warmed);
    cache(&change);
    is_accepted("the file stays", &change.strictly());
    change.bench(&format!("{remove}; {tuned}"));
    is_refused("a process removes it", &change.strictly(), "base's processes read");
    cache(&change);
    // The observed process of head is a later one.
    change.bench(&format!("[ -e $HOME/done ] || {{ {remove}; : > $HOME/done; }}; {tuned}"));
    is_refused("the first process removes it", &change.strictly(), "base's processes read");
    let change = Change::new(tuned, CONFIG);
    cache(&change);
    change.0.write("benchgate.toml", CONFIG.replace("\"cp bench.sh", "\"sh build.sh"));
    change.0.write("build.sh", format!("{remove}; cp bench.sh \"$1\""));
    is_refused("the build removes it", &change.strictly(), "head's build removed");
}

#[test]
fn a_head_that_is_built_from_a_file_that_no_commit_contains_is_never_green() {
    let change = change("[ ! -e local.mk ] || cat local.mk >&2; cp bench.sh $1/bench");
    is_accepted("no such file", &change.strictly());
    change.0.write(".gitignore", "local.mk\n/data\n");
    change.0.write("local.mk", "FLAGS = -O3");
    is_refused("a local override", &change.strictly(), "`local.mk`, which no commit contains");
    // Both sides read the same file.
    let change = Change::empty();
    change.0.write(".gitignore", "/data\n");
    let data = change.0.write("data/input", "1");
    change.0.write("build.sh", format!("cat '{}' >&2; cp bench.sh $1/bench", data.display()));
    change.begin("rows", &built_by_script());
    is_accepted("data that both sides read", &change.strictly());
}

#[test]
fn a_head_with_settings_above_its_clone_is_never_green() {
    let read = "[ ! -e ../local.mk ] || cat ../local.mk >&2";
    let of_build = change(&format!("{read}; cp bench.sh $1/bench"));
    let of_processes = Change::new(&format!("{read}; rows"), CONFIG);
    for (case, change) in [("build", of_build), ("processes", of_processes)] {
        is_accepted("no such file", &change.strictly());
        std::fs::write(change.0.work().with_file_name("local.mk"), "FLAGS = -O3").unwrap();
        let found = "local.mk`, a file above the clone, and base's look for it in vain";
        is_refused(case, &change.strictly(), found);
    }
}

/// A repository in which git ignores these files, and whose base runs this.
fn ignoring(ignored: &str, run: &str) -> Change {
    let change = Change::empty();
    change.0.write(".gitignore", ignored);
    change.begin(run, CONFIG);
    change
}

#[test]
fn a_head_that_runs_a_file_that_no_commit_contains_is_never_green() {
    let found = "which no commit contains and base's processes don't find";
    let change = ignoring("native.so\n", "[ ! -e native.so ] || . ./native.so; rows");
    is_accepted("no such file", &change.strictly());
    change.0.write("native.so", "true");
    is_refused("a library", &change.strictly(), &format!("`native.so`, {found}"));
    // Python lists the folder of a module and opens nothing that is not there.
    let module = |ignored: &str| {
        let import = "python3 -c 'try: import native\nexcept ImportError: pass'; rows";
        let change = ignoring(ignored, import);
        change.0.write("native.py", "");
        change
    };
    is_refused("a module of Python", &module("*.py\n").strictly(), &format!("`native.py`, {found}"));
    let package =
        ignoring("/native/\n", "python3 -c 'try: import native.code\nexcept ImportError: pass'; rows");
    package.0.write("native/code.py", "");
    is_refused("a package of Python", &package.strictly(), found);
    is_accepted("a module that is not committed yet", &module("*.so\n").strictly());
}

#[test]
fn a_head_that_runs_what_an_earlier_build_left_is_never_green() {
    // Base's checkout is read-only, except for root.
    let make = "[ -e made.sh ] || { chmod u+w .; cp bench.sh made.sh; }";
    let change = Change::empty();
    change.0.write(".gitignore", "/made.sh\n");
    change.0.write("build.sh", make);
    change.begin("rows", &built_by_script().replace("sh {build}/bench", "sh made.sh"));
    is_accepted("a clean working tree", &change.strictly());
    // The first run left it there.
    change.bench(SLOWER);
    is_refused("a stale script", &change.strictly(), "which head's build did not write");
    change.0.write("build.sh", make.replace("[ -e made.sh ]", "false"));
    is_accepted("a build that makes it again", &change.strictly());
}

#[test]
fn files_of_tools_in_the_working_tree_are_not_heads_code() {
    for (folder, mark) in
        [("venv", "pyvenv.cfg"), ("node_modules", "package.json"), ("cache", "CACHEDIR.TAG")]
    {
        let code = format!("{folder}/lib/native.so");
        let change = ignoring(&format!("/{folder}/\n"), &format!("[ ! -e {code} ] || . ./{code}; rows"));
        change.0.write(&format!("{folder}/{mark}"), "");
        change.0.write(&code, "true");
        is_accepted(folder, &change.strictly());
    }
    // Both sides read the same file.
    let change = Change::empty();
    change.0.write(".gitignore", "/data\n");
    let data = change.0.write("data/input", "1");
    change.begin(&format!("cat data/input '{}' >&2; rows", data.display()), CONFIG);
    is_accepted("data that both sides read", &change.strictly());
    // A cache of Python, and data that only head's program looks for.
    let import = "python3 -c 'import code_of_bench'; rows";
    let change = Change::empty();
    change.0.write(".gitignore", "__pycache__/\n*.bin\n");
    change.0.write("code_of_bench.py", "");
    change.begin(import, CONFIG);
    let compile = ["-m", "py_compile", "code_of_bench.py"];
    let done = std::process::Command::new("python3").args(compile).current_dir(change.0.work()).status();
    assert!(done.unwrap().success());
    is_accepted("compiled Python", &change.strictly());
    change.0.write("weights.bin", "1");
    change.bench(&format!("cat weights.bin >&2; {import}"));
    is_accepted("data of head alone", &change.strictly());
}

#[test]
fn a_head_whose_build_falls_back_to_an_older_program_is_never_green() {
    // A compiler that refuses what contains `BROKEN`.
    let compile = "if grep -q BROKEN bench.sh; then echo \"bench.sh:1:1: error: BROKEN\" >&2; false; \
                   else cp bench.sh $1/bench; chmod +x $1/bench; fi";
    let says_error = "head's `build` ended with success, but its log says";
    let is_reported = |case: &str, change: &Change| {
        let outcome = change.strictly();
        assert!(says(&outcome, says_error), "{case}: {}", outcome.said());
        assert_ne!(outcome.code, Some(0), "{case}");
    };
    let silent = compile.replace(" >&2", " > /dev/null");
    let committed = "head's processes use `older.sh`, which base's commit contains too";
    for (build, is_told) in [
        (format!("{compile} || cp older.sh $1/bench"), true),
        (format!("{silent} || cp older.sh $1/bench"), false),
        (format!("{silent} || ln -s $PWD/older.sh $1/bench"), false),
        (format!("{silent} || {{ touch older.sh; cp older.sh $1/bench; chmod -x $1/bench; }}"), false),
        (format!("{silent} || mv older.sh $1/bench"), false),
    ] {
        let change = Change::empty();
        change.0.write("build.sh", &build);
        change.0.write("older.sh", format!("{}\n# an older one", super::suite_commands::script("rows")));
        let older = change.0.work().join("older.sh");
        std::fs::set_permissions(&older, std::fs::Permissions::from_mode(0o755)).unwrap();
        change.begin("rows", &built_by_script());
        is_accepted("unchanged", &change.strictly());
        change.bench("rows; sleep 0.001");
        is_accepted("a changed program", &change.strictly());
        change.bench("BROKEN; rows");
        if is_told {
            is_reported(&build, &change);
        }
        is_refused(&build, &change.strictly(), committed);
    }
    // A wrapper that starts what the build made.
    let change = Change::empty();
    change.0.write("build.sh", "cp bench.sh $1/bench; chmod +x $1/bench");
    change.0.write("wrap.sh", "sh \"$1\"");
    let wrapper = change.0.work().join("wrap.sh");
    std::fs::set_permissions(&wrapper, std::fs::Permissions::from_mode(0o755)).unwrap();
    change.begin("rows", &built_by_script());
    change.0.write("benchgate.toml", built_by_script().replace("\"sh {build}", "\"sh wrap.sh {build}"));
    is_accepted("a wrapper", &change.strictly());
    let change = Change::empty();
    change.0.write("build.sh", format!("{compile} || true; [ -e $1/bench ] || cp bench.sh $1/bench"));
    change.begin("rows # BROKEN", &built_by_script());
    let outcome = change.strictly();
    assert!(!says(&outcome, says_error), "base's build says it too: {}", outcome.said());
}

#[test]
fn data_that_the_builds_made_differently_is_noted() {
    let config = CONFIG.replace(
        "\"cp bench.sh {build}/bench\"",
        "[\"cp bench.sh {build}/bench\", \"cp data {build}/data\"]",
    );
    let change = Change::empty();
    change.0.write("data", "1234");
    change.begin("cat \"${0%/*}/data\" >&2; rows", &config);
    let note = "`data` in {build}; this file has 4 bytes at base and";
    assert!(!says(&change.strictly(), note));
    change.0.write("data", "12");
    let outcome = change.strictly();
    assert!(says(&outcome, note), "{}", outcome.said());
}

#[test]
fn an_executable_of_head_is_code_whatever_its_name() {
    let change = Change::empty();
    change.0.write(".gitignore", "/target\n");
    let path = change.0.work().join("target/release/tool");
    change.begin(&format!("'{}' || rows", path.display()), CONFIG);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::copy("/bin/false", &path).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    is_refused("an executable", &change.strictly(), "git does not track");
}

#[test]
fn a_program_that_asks_git_for_its_version_keeps_no_state() {
    let change = Change::new("git describe --always --dirty >&2; rows", CONFIG);
    is_accepted("without a change", &change.strictly());
    change.0.write("README", "Documentation");
    is_accepted("a changed document", &change.strictly());
}
