//! Files and settings that affect a module or its speed without being named in a configuration. Head differs
//! only in these, and is slower.

use super::{BASE, FAIL_ON, Sides};
use crate::harness::{lint_codes, row};
use crate::suite::{COMMIT, install_fake_tools};

/// Sides with the same model, compiled with `flags` and run with the target's `env`.
fn same_sources(flags: &str, env: &str) -> Sides {
    let sides = Sides::new();
    sides.model("head", "a", BASE);
    let target = format!("device = \"local-task\"\nflags = [{flags}]\n{env}");
    sides.edit("device = \"local-task\"\n", &target);
    sides
}

/// Sides with the same model and separate tools: base's are in `tools`, and head's in `tools2`.
fn same_sources_with_own_tools() -> Sides {
    let sides = same_sources("", "");
    install_fake_tools(&sides.world.work().join("tools2"));
    let own = format!(
        "[side.head]\ntoolchain = {{ version = \"9.9.9\", commit = \"{COMMIT}\", path = \"tools2\" }}\n"
    );
    sides.edit("[side.head]\n", &own);
    sides
}

/// Checks that an honest pair passes, and that it does not pass after a change that makes head slower.
fn is_noticed(sides: &Sides, files: &[(&str, &str)], changed: (&str, &str)) {
    for (name, text) in files {
        sides.world.write(name, text);
    }
    sides.gate().expect_code(0);
    sides.world.write(changed.0, changed.1);
    sides.gate().expect_code(10);
}

const QUICK: &str = "// fake latency-us=1000\n";
const SLOW: &str = "// fake latency-us=10000\n";

#[test]
fn a_file_that_is_named_inside_a_flag_is_in_the_key() {
    let flag = "\"--iree-preprocessing-pass-pipeline=builtin.module(iree-x{library-file-name=spec.mlir})\"";
    let files = [("base/spec.mlir", QUICK), ("head/spec.mlir", QUICK)];
    is_noticed(&same_sources(flag, ""), &files, ("head/spec.mlir", SLOW));
}

#[test]
fn a_file_of_a_flag_that_keeps_state_is_noticed_where_nothing_can_be_observed_too() {
    let sides = same_sources("\"--iree-preprocessing-transform-spec-filename=spec.mlir\"", "");
    sides.world.write("base/spec.mlir", QUICK);
    sides.world.write("head/spec.mlir", format!("{QUICK}util.global.store %a, @b : i32\n"));
    let mut command = sides.world.command(["gate", "--fail-on", FAIL_ON, "--format", "json"]);
    deny_seccomp(&mut command);
    let comparison = sides.world.finish(command).expect_code(11).json();
    assert!(
        lint_codes(row(&comparison, "a/cpu/main", Some("latency"))).contains(&"stateful"),
        "{comparison:#}"
    );
}

#[test]
fn a_file_that_was_looked_for_and_appears_is_in_the_key() {
    let sides = same_sources("", "");
    for side in ["base", "head"] {
        sides.model(side, "a", &[BASE, &["reads=tuning.mlir"]].concat());
    }
    is_noticed(&sides, &[], ("head/tuning.mlir", SLOW));
}

#[test]
fn a_library_of_the_compiler_is_in_the_key() {
    let files = [("tools/libLLVM.so", QUICK), ("tools2/libLLVM.so", QUICK)];
    is_noticed(&same_sources_with_own_tools(), &files, ("tools2/libLLVM.so", SLOW));
}

#[test]
fn a_library_of_the_runtime_is_in_what_is_executed() {
    let files = [("tools/libruntime.so", ""), ("tools2/libruntime.so", "")];
    is_noticed(&same_sources_with_own_tools(), &files, ("tools2/libruntime.so", "// fake slower-by=45\n"));
}

#[test]
fn a_library_in_a_folder_that_the_environment_names_is_in_what_is_executed() {
    let sides = same_sources("", "env = { LD_LIBRARY_PATH = \"lib\" }\n");
    let files = [("base/lib/libruntime.so", ""), ("head/lib/libruntime.so", "")];
    is_noticed(&sides, &files, ("head/lib/libruntime.so", "// fake slower-by=45\n"));
}

#[test]
fn what_only_timed_processes_read_shows_in_their_times() {
    let sides = same_sources("", "");
    for side in ["base", "head"] {
        sides.model(side, "a", &[BASE, &["day-file=DAY"]].concat());
    }
    is_noticed(&sides, &[("base/DAY", "1"), ("head/DAY", "1")], ("head/DAY", "1.45"));
}

/// Prevents the program from observing files, as in a container whose profile forbids seccomp.
fn deny_seccomp(command: &mut std::process::Command) {
    use nix::libc;
    use std::os::unix::process::CommandExt;

    let step = |code: u32, k: u32, jt: u8, jf: u8| libc::sock_filter { code: code as u16, jt, jf, k };
    let filter = [
        step(
            libc::BPF_LD | libc::BPF_W | libc::BPF_ABS,
            std::mem::offset_of!(libc::seccomp_data, nr) as u32,
            0,
            0,
        ),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, libc::SYS_seccomp as u32, 0, 1),
        step(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32, 0, 0),
        step(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0, 0),
    ];
    let install = move || {
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
        // SAFETY: both calls only read their arguments, which live longer than the calls.
        let refused = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
                || libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) != 0
        };
        if refused { Err(std::io::Error::last_os_error()) } else { Ok(()) }
    };
    // SAFETY: the closure makes two system calls and allocates nothing.
    unsafe { command.pre_exec(install) };
}

#[test]
fn where_no_file_can_be_observed_nothing_is_identical_and_nothing_comes_from_the_cache() {
    let sides = same_sources_with_own_tools();
    for (file, text) in [("tools/libLLVM.so", QUICK), ("tools2/libLLVM.so", QUICK)] {
        sides.world.write(file, text);
    }
    let gate = || {
        let mut command = sides.world.command(["gate", "--fail-on", FAIL_ON, "--format", "json"]);
        deny_seccomp(&mut command);
        sides.world.finish(command)
    };
    let comparison = gate().expect_code(0).json();
    let row = row(&comparison, "a/cpu/main", Some("latency"));
    assert!(lint_codes(row).contains(&"unobserved"), "{comparison:#}");
    assert_ne!(row["reason"], "identical");
    sides.world.write("tools2/libLLVM.so", SLOW);
    gate().expect_code(10);
}
