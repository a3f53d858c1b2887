//! Lines of a log that report a crash or a problem.

use std::borrow::Cow;
use std::collections::BTreeSet;

use benchgate_core::model::{Lint, LintCode, excerpt, without_colors};

use super::text::lines;

/// First words of lines that runtimes, shells and build tools print about a program that crashed or failed.
const CRASH_STARTS: &[&str] = &[
    "terminate called ",
    "terminating due to ",
    "libc++abi: ",
    "double free or corruption",
    "free(): ",
    "malloc(): ",
    "munmap_chunk(): ",
    "corrupted size vs. prev_size",
    "*** stack smashing detected",
    "*** buffer overflow detected",
    "fatal error: ",
    "Fatal Python error: ",
    "Traceback (most recent call last)",
    "Fatal glibc error: ",
    "pure virtual method called",
    "Command terminated by signal ",
    "Memory access fault by GPU node",
    "timeout: sending signal ",
    "timeout: the monitored command dumped core",
    "timeout: failed to run command ",
    "srun: error: ",
    "slurmstepd: error: ",
    "*** Aborted at ",
    "*** SIG",
    "fatal runtime error: ",
    "panic: ",
    "signal: ",
    "signal (",
    "Exception in thread ",
    "ERROR: LoadError: ",
    "[  FAILED  ]",
    "The following tests FAILED",
    "Errors while running CTest",
    "test result: FAILED",
    "error: test failed",
    "error: bench failed",
    "MPI_ABORT was invoked",
    "oom-kill:",
    "WARNING: DATA RACE",
    "slurmstepd: Detected ",
    "AssertionError",
    "MemoryError",
    "Assertion failed: ",
    "runtime error: ",
    "npm ERR! code ",
];

/// Parts of lines that sanitizers, runtimes and build tools print about a crash or a failure.
const CRASH_PARTS: &[&str] = &[
    "(core dumped)",
    "Sanitizer: ",
    "Sanitizer:DEADLYSIGNAL",
    ": runtime error: ",
    " panicked at ",
    " Check failed: ",
    "CHECK failed",
    "Process didn't exit successfully: ",
    "process didn't exit successfully: ",
    ": error while loading shared libraries: ",
    "CUDA error",
    "CUDA Error",
    "CUDA_ERROR_",
    "HIP error",
    "cudaError",
    "hipError",
    "VK_ERROR_",
    "ut of memory",
    "HSA_STATUS_ERROR",
    "CUDNN_STATUS_",
    "CUBLAS_STATUS_",
    "CUSPARSE_STATUS_",
    "HIPBLAS_STATUS_",
    "NCCL error",
    "java.lang.OutOfMemoryError",
    "== Invalid read of size ",
    "== Invalid write of size ",
    "NVRM: Xid",
    "std::bad_alloc",
    "annot allocate memory",
    "No space left on device",
    "exited on signal ",
    "terminated by signal ",
    "killed by signal ",
    "BAD TERMINATION OF ",
    "returned a non-zero exit code",
    "returned non-zero exit status",
    "OOMKilled",
    "oom_kill event",
    "***Failed",
    "***Exception",
    "***Timeout",
    "fatal error has been detected by the Java Runtime",
];

/// Parts, in lower case, of lines that state a problem but no crash. A program can print them and go on, and so can base's.
const PROBLEMS: &str = include_str!("problems.txt");

/// Words, in lower case, that begin a message about an error: at the start of a line or after the name of a program or
/// place.
const MESSAGES: [&str; 5] = ["error: ", "fatal: ", "fatal error: ", "fail: ", "usage: "];

/// Words that mark a line of a log as an error, if they are written like this.
const MARKS: [&str; 6] = ["ERROR", "FATAL", "MISMATCH", "FAILED", "panicked", "Error:"];

/// Words that command runners print before the exit code of a command.
const EXITS: [&str; 6] = [
    "exit code ",
    "exit code: ",
    "exit status ",
    "exit status: ",
    "exited with code ",
    "exited with non-zero status ",
];

/// Names of the signals that end a program, as a shell prints them.
const SIGNALS: &[&str] = &[
    "Segmentation fault",
    "Aborted",
    "Killed",
    "Bus error",
    "Illegal instruction",
    "Floating point exception",
    "Trace/breakpoint trap",
    "Terminated",
    "Bad system call",
    "Hangup",
    "Quit",
    "Alarm clock",
    "CPU time limit exceeded",
    "File size limit exceeded",
];

/// Names of signals that only zsh uses; it writes all of them in lowercase.
const ZSH_SIGNALS: [&str; 3] = ["abort", "trace trap", "illegal hardware instruction"];

/// Returns a finding with the first line that reports a crash or, if `statuses` is set, an error of IREE's
/// runtime.
pub(super) fn crash(text: &str, statuses: bool) -> Option<Lint> {
    let line = plain_lines(text).find(|line| is_crash(line) || statuses && is_status(line))?;
    Some(Lint::new(LintCode::TruncatedInput, format!("the log says `{}`", excerpt(&line, 80))))
}

/// Returns a finding for each kind of problem that lines of a log state. It has the same detail on both sides.
pub(super) fn problems(text: &str) -> Vec<Lint> {
    let said: BTreeSet<&str> = plain_lines(text).filter_map(|line| stated_problem(&line)).collect();
    let lint = |said| Lint::new(LintCode::ReportedProblem, format!("the log says `{said}`"));
    said.into_iter().map(lint).collect()
}

/// Returns a finding for each crash or problem that a program's log states although the program succeeded.
pub fn logged_problems(log: &str) -> Vec<Lint> {
    // Process IDs and times differ between processes that report the same.
    let constant =
        |word: &str| if word.bytes().any(|byte| byte.is_ascii_digit()) { "…" } else { word }.to_owned();
    let crash = plain_lines(log).find(|line| is_crash(line)).map(|line| {
        let line = line.split_whitespace().map(constant).collect::<Vec<_>>().join(" ");
        Lint::new(LintCode::ReportedProblem, format!("the log says `{}`", excerpt(&line, 80)))
    });
    crash.into_iter().chain(problems(log)).collect()
}

/// Returns the lines of a log that are not rows of results, as most lines of a large file are.
fn plain_lines(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    let is_row = |line: &&str| ["\"", "|", "Benchmark", "BM_"].iter().any(|start| line.starts_with(start));
    lines(text).map(|line| line.text.trim()).filter(move |line| !is_row(line)).map(without_colors)
}

/// Returns the words of a line that state a problem.
pub(super) fn stated_problem(line: &str) -> Option<&'static str> {
    let words: Vec<&str> = line.split(|c: char| c.is_whitespace() || matches!(c, '[' | ']')).collect();
    let marks = words.iter().enumerate().find_map(|(at, word)| {
        let is_mark = |mark: &&&str| *word == **mark || word.strip_suffix(':') == Some(**mark);
        MARKS.iter().find(is_mark).filter(|_| words.get(at + 1) != Some(&"0"))
    });
    // glog and absl: `E1128 10:00:00.123456 4711 bench.cc:3] …`
    let of_glog = || {
        let (first, rest) = line.strip_prefix('E')?.split_once(' ')?;
        (first.len() >= 4 && is_number(first) && rest.contains("] ")).then_some("E")
    };
    let lower = line.to_ascii_lowercase();
    // On macOS, Google Benchmark says that it can't find out the clock rate.
    let is_harmless = lower.contains("sysctl");
    // `no NaN detected`, `0 requests timed out`, `mismatch: 0`
    let is_none = |part: &str| {
        lower.split_once(part).is_some_and(|(before, after)| {
            let rest = after.trim_matches([':', '=', '.', ' ']);
            let before_end = before.len();
            let before: Vec<&str> = before.split_whitespace().collect();
            // A zero is a count if it begins a part of the line; `rank 0` is a name.
            let is_count = |at: usize| at == 0 || before[at - 1].ends_with([',', ';', ':', '.', '(']);
            let mut last_two = (0..before.len()).rev().take(2);
            // `100 items processed`
            let is_part = part.starts_with('0')
                && lower[..before_end].ends_with(|c: char| c.is_ascii_digit() || ",.".contains(c));
            is_part
                || part.starts_with("mismatched") && rest.starts_with("0 ")
                || before.last().is_some_and(|last| ["no", "without", "zero", "not", "never"].contains(last))
                || last_two.any(|at| before[at] == "0" && is_count(at))
                || ["0", "no", "none", "false"].contains(&rest)
        })
    };
    // `using CPU 3` and `using CPUs 0-3` say where a benchmark is pinned.
    let is_pinned = |part: &str| {
        let (before, after) = lower.split_once(part).unwrap_or_default();
        let after = after.trim_start_matches(['s', ' ', '#']);
        let are_numbers = after.chars().all(|c| c.is_ascii_digit() || ",- ".contains(c));
        part == "using cpu"
            && !after.is_empty()
            && are_numbers
            && !before.contains("gpu")
            && !before.contains("cuda")
    };
    let said = || {
        let is_said = |part: &&str| lower.contains(part) && !is_none(part) && !is_pinned(part);
        PROBLEMS.lines().find(|part| !is_harmless && is_said(part))
    };
    // `error: 1e-6` and `error: none` are results.
    let is_text = |rest: &str| {
        let first = rest.split_whitespace().next().unwrap_or_default();
        !first.starts_with(|c: char| c.is_ascii_digit() || "+-.<>~±≤(".contains(c))
            && !["", "none", "no", "nan", "inf", "n/a", "null", "false"].contains(&rest.trim())
    };
    // `ValueError: bad shape`
    let is_begun = |message: &str, before: &str| {
        let is_class =
            message == "error: " && line.get(before.len()..).is_some_and(|rest| rest.starts_with('E'));
        before.is_empty()
            || before.ends_with(": ")
            || is_class && before.bytes().all(|byte| byte.is_ascii_alphabetic())
    };
    let begun = || {
        MESSAGES.iter().copied().find(|message| {
            lower
                .split_once(*message)
                .is_some_and(|(before, rest)| is_begun(message, before) && is_text(rest))
        })
    };
    // `0 passed, 3 failed`
    let counted = || {
        let raw: Vec<&str> = lower.split_whitespace().collect();
        let words: Vec<&str> = raw.iter().map(|word| word.trim_matches([',', ';', '.', '(', ')'])).collect();
        let ends = |at: usize| raw[at].ends_with([',', ';', '.', ')']);
        // In `PASSED 10 FAILED 0`, the number follows its name.
        let is_named =
            |at: usize| ends(at) || !ends(at + 1) && words.get(at + 2).is_some_and(|next| is_number(next));
        // `3 failed`, `3 tests failed`
        let failed = words.windows(2).enumerate().any(|(at, two)| {
            let is_noun = ["test", "tests", "case", "cases", "outputs"].contains(&two[1]);
            let said = if is_noun { words.get(at + 2) } else { words.get(at + 1) };
            said == Some(&"failed") && is_number(two[0]) && two[0] != "0" && !is_named(at)
        });
        failed.then_some("failed")
    };
    // `Validation: FAIL`, `softmax ... FAIL`, but not `expected FAIL`
    let ended = || {
        let before = line.strip_suffix("FAIL")?.trim_end();
        before.ends_with([':', '=', '.', '-', '>', '|']).then_some("FAIL")
    };
    // `loss: nan`, but not `packet loss: nan` or `loss: nanoseconds`
    let lost = || {
        let words: Vec<&str> =
            lower.split(|c: char| !c.is_alphanumeric()).filter(|it| !it.is_empty()).collect();
        let is_lost =
            |at: usize| words[at..].starts_with(&["loss", "nan"]) && (at == 0 || words[at - 1] != "packet");
        (0..words.len()).any(is_lost).then_some("loss: nan")
    };
    marks.copied().or_else(said).or_else(lost).or_else(begun).or_else(counted).or_else(ended).or_else(of_glog)
}

/// Returns whether a line is an IREE status: `FILE.c:12: INVALID_ARGUMENT; message …`.
pub(super) fn is_status(line: &str) -> bool {
    const CODES: [&str; 15] = [
        "CANCELLED",
        "UNKNOWN",
        "INVALID_ARGUMENT",
        "DEADLINE_EXCEEDED",
        "NOT_FOUND",
        "ALREADY_EXISTS",
        "PERMISSION_DENIED",
        "RESOURCE_EXHAUSTED",
        "FAILED_PRECONDITION",
        "ABORTED",
        "OUT_OF_RANGE",
        "UNIMPLEMENTED",
        "INTERNAL",
        "UNAVAILABLE",
        "DATA_LOSS",
    ];
    line.split_once(": ").is_some_and(|(place, rest)| {
        place.contains(".c")
            && CODES.iter().any(|code| rest.strip_prefix(code).is_some_and(|r| r.starts_with(';')))
    })
}

/// Returns whether a line reports a crash or a failed command.
pub(super) fn is_crash(line: &str) -> bool {
    // A shell numbers its background jobs: `[1]+  Killed   ./bench`, `[1]  + 4711 killed  ./bench`.
    let (job, line) = match line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((number, rest)) if is_number(number) => {
            (true, rest.trim_start_matches(|c: char| " +-".contains(c) || c.is_ascii_digit()))
        }
        _ => (false, line),
    };
    let zsh_ended = |said: &str| {
        ZSH_SIGNALS.iter().any(|signal| said.starts_with(signal))
            || SIGNALS.iter().any(|signal| said.starts_with(&signal.to_lowercase()))
    };
    // The number after these words must indicate a failure: neither `exit code 0` nor `exit code of ./bench`
    // does.
    let failed = |words: &&str| {
        line.split_once(*words).is_some_and(|(_, rest)| {
            let number = rest.split(|c: char| !c.is_ascii_digit() && c != '-').next().unwrap_or_default();
            number.parse().is_ok_and(|code: i64| code != 0)
        })
    };
    // Valgrind
    let counted = line.split_once("ERROR SUMMARY: ").is_some_and(|(_, rest)| !rest.starts_with("0 errors"));
    is_failed_build(line)
        || counted
        || EXITS.iter().any(failed)
        || job && (line.starts_with("Exit ") || line.starts_with("exit ") || zsh_ended(line))
        || is_ended_by_signal(line)
        || line.strip_prefix("zsh: ").is_some_and(zsh_ended)
        || CRASH_STARTS.iter().any(|start| line.starts_with(start))
        || CRASH_PARTS.iter().any(|part| line.contains(part)) && !line.contains("_STATUS_SUCCESS")
        || (line.contains("Assertion ") && line.ends_with("failed."))
        || failed_tests(line)
}

/// Returns whether a shell reports that a signal ended a program: `Killed`, `Killed: 9`, `Killed          ./bench`,
/// `run.sh: line 3:  4711 Killed   ./bench`; but not `Killed 3 workers`.
pub(super) fn is_ended_by_signal(line: &str) -> bool {
    let number = |rest: &str| rest.strip_prefix(": ").is_some_and(|n| n.parse::<u8>().is_ok());
    SIGNALS.iter().any(|signal| match line.split_once(*signal) {
        Some(("", rest)) => rest.is_empty() || rest.starts_with("  ") || number(rest),
        Some((before, _)) => before.contains(": line ") && before.ends_with(' '),
        None => false,
    })
}

/// Returns whether a line of a build tool or compiler reports that it failed.
pub(super) fn is_failed_build(line: &str) -> bool {
    const STARTS: [&str; 6] = [
        "ninja: build stopped: ",
        "CMake Error",
        "FAILED: ",
        "LLVM ERROR: ",
        "Stack dump:",
        "PLEASE submit a bug report to ",
    ];
    // `make: *** [Makefile:2: bench] Error 1`, `make[1]: *** [bench] Killed`
    let made = ["make", "gmake"].iter().any(|name| line.starts_with(name)) && line.contains(": *** ");
    made || STARTS.iter().any(|start| line.starts_with(start))
}

/// Returns whether a line of ctest or Bazel counts failed tests: `90% tests passed, 1 tests failed out of 10`,
/// `Executed 1 out of 2 tests: 1 test passes and 1 fails locally.`
fn failed_tests(line: &str) -> bool {
    let ctest = line.split_once("% tests passed, ").and_then(|(_, rest)| rest.split_once(' '));
    ctest.is_some_and(|(count, rest)| count != "0" && is_number(count) && rest.contains("failed out of"))
        || line.starts_with("Executed ")
            && (line.contains(" fail locally") || line.contains(" fails locally"))
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_a_crash_leaves_are_found() {
        for line in [
            "Segmentation fault",
            "\u{1b}[31mSegmentation fault (core dumped)\u{1b}[0m",
            "run.sh: line 3:  4711 Killed                  ./bench",
            "Aborted",
            "Killed: 9",
            "Terminated              ./bench",
            "zsh: segmentation fault  ./bench",
            "terminate called after throwing an instance of 'std::bad_alloc'",
            "==4711==ERROR: AddressSanitizer: heap-use-after-free on address 0x602000000010",
            "bench: bench.cc:12: int main(): Assertion `n > 0' failed.",
            "thread 'main' panicked at src/main.rs:2:5:",
            "timeout: sending signal TERM to command ‘./bench’",
            "Command exited with non-zero status 3",
            "##[error]Process completed with exit code 139.",
            "Error: Process completed with exit code 1.",
            "ninja: build stopped: subcommand failed.",
            "make: *** [Makefile:2: bench] Error 1",
            "make[1]: *** [Makefile:2: bench] Segmentation fault (core dumped)",
            "[1]+  Segmentation fault      ./bench",
            "[1]  + 4711 killed     ./bench",
            "[1]  + 4711 exit 1     ./bench",
            "bench.cu:12: CUDA error 700: an illegal memory access was encountered",
            "HIP error: hipErrorIllegalAddress",
            "Memory access fault by GPU node-1 (Agent handle: 0x55) on address 0x7f.",
            "LLVM ERROR: out of memory",
            "*** SIGSEGV (@0x0) received by PID 4711 (TID 0x7f) from PID 0; stack trace: ***",
            "./bench: error while loading shared libraries: libomp.so.5: cannot open shared object file",
            "srun: error: node1: task 0: Killed",
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
            "iree/runtime/src/iree/hal/drivers/hip/event_semaphore.c:675: ABORTED; the semaphore was aborted",
            "error: process didn't exit successfully: `target/release/bench` (signal: 11)",
            "error: bench failed, to rerun pass `--bench gemm`",
            "error: test failed, to rerun pass `--lib`",
            "mpirun noticed that process rank 0 with PID 0 on node a exited on signal 9 (Killed).",
            "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
            "run.sh: line 3:  4711 Hangup                  ./bench",
            "90% tests passed, 1 tests failed out of 10",
            "The following tests FAILED:",
            " 1/10 Test  #1: bench ............................***Failed    0.10 sec",
            "FAILED: Build did NOT complete successfully",
            "Executed 1 out of 2 tests: 1 test passes and 1 fails locally.",
            "CMake Error at CMakeLists.txt:3 (find_package):",
            "[  FAILED  ] Gemm.Runs (3 ms)",
            "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null)",
            "Out of memory: Killed process 4711 (bench)",
            "NVRM: Xid (PCI:0000:3b:00): 31, pid=4711, MMU Fault",
            "subprocess.CalledProcessError: Command '['./bench']' returned non-zero exit status 1.",
            "panic: runtime error: index out of range [3] with length 3",
            "signal: killed",
            "[4711] signal (11): Segmentation fault",
            "CHECK failed: a == b",
            "AssertionError: 3 != 4",
            "MemoryError",
            "Assertion failed: (x), function f, file a.c, line 3.",
            "runtime error: signed integer overflow: 1 + 2",
            "java.lang.OutOfMemoryError: Java heap space",
            "==12== ERROR SUMMARY: 3 errors from 3 contexts (suppressed: 0 from 0)",
            "CUBLAS_STATUS_NOT_INITIALIZED",
        ] {
            assert!(crash(&format!("BM_a 1 ns 1 ns 1\n{line}\n"), true).is_some(), "{line}");
        }
        for line in [
            "BM_Aborted 1 ns 1 ns 1",
            "0 jobs were Killed",
            "Aborted 0 of 10 requests",
            "zsh: command not found: foo",
            "Running ./bench",
            "PASS",
            "ok  a/b 1.2s",
            "[1] 4711",
            "[1]+  Done                    ./bench",
            "[2/3] Linking bench",
            "[1]  + 4711 done       ./bench",
            "[0] NVIDIA H100: no errors",
            "the process ended with exit code 0",
            "exit code of ./bench: 0",
            "make: Nothing to be done for 'bench'.",
            "make[1]: Entering directory '/src'",
            "timeout 60 ./bench",
            "Running with CUDA 12.4",
            "no CUDA-capable device is needed",
            "100% tests passed, 0 tests failed out of 10",
            "Executed 2 out of 2 tests: 2 tests pass.",
            "[  PASSED  ] 3 tests.",
            "test result: ok. 3 passed; 0 failed; 0 ignored",
            "Quit with Ctrl-C",
            "run.sh: line 3: nvidia-smi: command not found",
            "==12== ERROR SUMMARY: 0 errors from 0 contexts (suppressed: 0 from 0)",
            "CUBLAS_STATUS_SUCCESS",
        ] {
            assert!(crash(line, true).is_none(), "{line}");
        }
    }

    #[test]
    fn lines_that_state_a_problem_are_found() {
        for line in [
            "verification: FAILED",
            "MISMATCH at 3: 1.0 vs 2.0",
            "max error 3.0 exceeds tolerance",
            "results incorrect!",
            "Error: outputs do not match the reference",
            "2026/11/28 10:00:00 ERROR validation failed",
            "[FAIL] correctness",
            "level=error msg=\"diverged\"",
            "no GPU found, using CPU",
            "using CPU instead of cuda:3",
            "E20261128 10:00:00.1 1 x.cc:3] bad",
            "error: unknown option --fast",
            "bench.c:3:1: error: expected ';'",
            "fatal: cannot load weights",
            "sh: 1: ./bench: not found",
            "cat: weights.bin: No such file or directory",
            "FAILED",
            "rank 0 wrong result",
            "verification failed: no match",
            "verification failed: 0 of 10 outputs are right",
            "no GPU, falling back to the CPU",
            "FAIL: conv2d",
            "result mismatch: got 3 want 4",
            "error: no kernel found, using stub",
            "kernel launch failed",
            "NaN detected in output",
            "output differs from reference",
            "0 tests passed, 3 failed",
            "=== 3 failed, 7 passed in 0.12s ===",
            "1 test failed, 9 passed",
            "Validation: FAIL",
            "softmax ... FAIL",
            "Mismatched elements: 512 / 512 (100%)",
            "tolerance exceeded at 3",
            "benchmark timed out",
            "** On entry to DGEMM parameter number 8 had an illegal value",
            "panicked at src/main.rs:3",
            "tool: cannot open input.bin",
            "no CUDA-capable device is detected",
            "tool: license expired, exiting",
            "0 items processed",
            "ValueError: bad shape",
            "usage: tool [--size N] FILE",
            "a.py:129: UserWarning: CUDA initialization: Found no NVIDIA driver on your system.",
            "[W:onnxruntime:Default] Failed to create CUDAExecutionProvider. Require cuDNN 9.*",
            "Could not find cuda drivers on your machine, GPU will not be used.",
            "Device set to use cpu",
            "warning: no usable GPU found, --gpu-layers option will be ignored",
            "OpenJDK 64-Bit Server VM warning: CodeCache is full. Compiler has been disabled.",
            "WARNING: lavapipe is not a conformant vulkan implementation, testing use only.",
            "run.py:3: RuntimeWarning: overflow encountered in exp",
            "  Warning: Ignoring non-zero exit code.",
            "Encountered 1 file(s) that should have been pointers, but weren't:",
            "ConvergenceWarning: lbfgs failed to converge (status=1):",
            "STOP: TOTAL NO. OF ITERATIONS REACHED LIMIT",
            "Failed to initialize NVML: Driver/library version mismatch",
            "rsync error: some files/attrs were not transferred (see previous errors)",
            "ImportError: libfoo.so.1: cannot open shared object file",
            "UserWarning: C extension not available, using pure Python implementation",
            "could not load weights; using random data",
            "sh: 1: cd: can't cd to haed",
            "taskset: failed to set pid 0's affinity: Invalid argument",
            "ok  \texample.com/y\t0.002s [no tests to run]",
        ] {
            assert!(!problems(line).is_empty(), "{line}");
        }
        for line in [
            "a.py:3: UserWarning: The given buffer is not writable",
            "run.py:3: RuntimeWarning: Mean of nothing",
            "Some weights of Bert were not initialized from the checkpoint and are newly initialized",
            "Torch was not compiled with flash attention.",
            "?   \tx/y\t[no test files]",
            "BM_errors 1 ns 1 ns 1",
            "max error 1e-7 is within the tolerance",
            "0 errors",
            "error: 1.5e-7",
            "max error: small",
            "error: none",
            "Unable to determine clock rate from sysctl: hw.cpufrequency: No such file or directory",
            "error: <1e-6",
            "I1128 10:00:00.1 1 x.cc:3] started",
            "EPYC 7763 (64 cores) [2 sockets] ",
            "verification: passed",
            "All outputs match",
            "error: no",
            "10 passed, 0 failed",
            "3 passed; 0 failed; 0 ignored",
            "failed 0 of 3",
            "no NaN detected",
            "0 requests timed out",
            "mismatch: 0",
            "validation error: 0.05",
            "12:03:05,123 failed over to B",
            "PASSED 10 FAILED 0",
            "passed 10, failed 0",
            "=== 7 passed, 1 xfailed in 0.12s ===",
            "=== 0 failed, 7 passed in 0.12s ===",
            "FAIL: 0",
            "XFAIL",
            "expected: XFAIL",
            "failover: done",
            "expected FAIL",
            "Mismatched elements: 0 / 512 (0%)",
            "no tolerance exceeded",
            "100 items processed",
            "no segfault",
            "0 requests not implemented",
            "not aborting on the first error",
            "usage: 12 %",
            "maxError: 3.0",
        ] {
            assert!(problems(line).is_empty(), "{line}");
        }
    }
}
