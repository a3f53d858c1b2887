//! Runs the real binary in an isolated world, with an empty environment and a temporary home and cache.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

/// A temporary folder that contains a home, a cache and a working folder.
pub struct World {
    folder: tempfile::TempDir,
}

impl World {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["home", "cache", "work", "locks", "proc"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let world = Self { folder };
        // A simulated idle machine, so that the load of the test machine does not affect the tests.
        let processors: String = (0..1024).map(|cpu| format!("cpu{cpu} 0 0 0 0 0 0 0 0 0 0\n")).collect();
        world.counters("stat", &format!("cpu 0 0 0 0 0 0 0 0 0 0\n{processors}"));
        world.counters("loadavg", "0.10 0.10 0.10 1/100 1000\n");
        world
    }

    /// The folder in which commands are run.
    pub fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// The binary's `$XDG_CACHE_HOME`.
    pub fn cache(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    /// The folder of the machine's locks. Each world has its own, so worlds never wait for each other.
    pub fn locks(&self) -> PathBuf {
        self.folder.path().join("locks")
    }

    /// Writes a file that the binary reads as one of the kernel's counters (`/proc/loadavg`, `/proc/stat`).
    pub fn counters(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join("proc").join(name), text).unwrap();
    }

    /// Writes a file below the working folder, and creates its parent folders.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.work().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// Reads a file below the working folder.
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.work().join(name)).unwrap()
    }

    /// The binary with these arguments, without the environment in which the tests run: no GITHUB_*, CI,
    /// NO_COLOR or XDG_*. PATH is kept, because tools are looked up there.
    pub fn command<I>(&self, args: I) -> Command
    where
        I: IntoIterator,
        I::Item: AsRef<OsStr>,
    {
        let mut command = Command::new(env!("CARGO_BIN_EXE_benchgate"));
        command
            .args(args)
            .current_dir(self.work())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .env_clear()
            .env("HOME", self.folder.path().join("home"))
            .env("XDG_CACHE_HOME", self.cache())
            .env("BENCHGATE_LOCK_DIR", self.locks())
            .env("BENCHGATE_PROC_DIR", self.folder.path().join("proc"))
            .env("LC_ALL", "C.UTF-8");
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        command
    }

    /// Runs the binary to its end.
    pub fn run<I>(&self, args: I) -> Outcome
    where
        I: IntoIterator,
        I::Item: AsRef<OsStr>,
    {
        self.finish(self.command(args))
    }

    /// Runs the binary to its end with `input` on stdin.
    pub fn run_with_input<I>(&self, args: I, input: &[u8]) -> Outcome
    where
        I: IntoIterator,
        I::Item: AsRef<OsStr>,
    {
        // The input is in a file, because a pipe would need a second thread once input and output exceed its
        // buffer.
        let path = self.folder.path().join("stdin");
        std::fs::write(&path, input).unwrap();
        let mut command = self.command(args);
        command.stdin(std::fs::File::open(path).unwrap());
        self.finish(command)
    }

    /// Runs a prepared command to its end.
    pub fn finish(&self, mut command: Command) -> Outcome {
        // Streams that the command does not redirect are captured.
        let output = command.stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
        Outcome {
            code: output.status.code(),
            stdout: self.tidy(&output.stdout),
            stderr: self.tidy(&output.stderr),
        }
    }

    /// Replaces the name of the temporary folder in an output, so that snapshots don't depend on it.
    fn tidy(&self, bytes: &[u8]) -> String {
        let root = self.folder.path();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let resolved = root.canonicalize().unwrap();
        [resolved.as_path(), root]
            .into_iter()
            .fold(text, |text, root: &Path| text.replace(root.to_str().unwrap(), "[WORLD]"))
    }
}

/// The result of running the binary.
#[derive(Debug)]
pub struct Outcome {
    /// `None` if a signal ended it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Outcome {
    /// The printed result without line breaks: words separated by single spaces.
    pub fn said(&self) -> String {
        self.stdout.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// The output of `--format json`.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap()
    }

    /// Errors, warnings, hints and notes, without the progress of a run.
    pub fn messages(&self) -> String {
        self.stderr.lines().filter(|line| !line.starts_with('[')).collect::<Vec<_>>().join("\n")
    }

    /// Fails the test unless the binary ended with this code, and shows the binary's output.
    #[track_caller]
    pub fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// Fails the test unless a gate passed or was inconclusive. The load of this host can prevent a decision,
    /// which such a test does not check.
    #[track_caller]
    pub fn expect_no_failure(self) -> Self {
        assert!(matches!(self.code, Some(0 | 11)), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }
}

/// Replaces digests in a message, because commits, testbeds and just-built tools differ between runs.
pub fn without_digests(message: &str) -> String {
    regex::Regex::new(r"\b[0-9a-f]{12,}\b").unwrap().replace_all(message, "[DIGEST]").into_owned()
}

/// The row of a comparison about a metric of a benchmark; without a metric, the row about the benchmark as a whole.
#[track_caller]
pub fn row<'a>(comparison: &'a Value, benchmark: &str, metric: Option<&str>) -> &'a Value {
    let mut rows = comparison["rows"].as_array().unwrap().iter();
    rows.find(|row| row["benchmark"] == benchmark && row["metric"]["name"].as_str() == metric)
        .unwrap_or_else(|| panic!("no row of {benchmark}, {metric:?}: {comparison:#}"))
}

/// The code of a row's reason, and its text: the sentence, and below it the message of a tool or file, if
/// any.
#[track_caller]
pub fn reason(row: &Value) -> (&str, String) {
    let reason = &row["reason"];
    let said = [&reason["text"], &reason["detail"]].into_iter().filter_map(Value::as_str);
    (reason["code"].as_str().unwrap(), said.collect::<Vec<_>>().join("\n"))
}

/// The codes of the findings about a row, a benchmark or a comparison.
pub fn lint_codes(of: &Value) -> Vec<&str> {
    let lints = of["lints"].as_array().map(Vec::as_slice).unwrap_or_default();
    lints.iter().map(|lint| lint["code"].as_str().unwrap()).collect()
}

/// The detail of the finding with this code.
#[track_caller]
pub fn lint_detail<'a>(of: &'a Value, code: &str) -> &'a str {
    let mut lints = of["lints"].as_array().unwrap().iter();
    let lint = lints.find(|lint| lint["code"] == code).unwrap_or_else(|| panic!("no {code}: {of:#}"));
    lint["detail"].as_str().unwrap()
}

/// Installs a program at the place where it will be started. Another process writes the file: if this process
/// did, a program that another thread starts at that moment would inherit the open file, and the installed
/// program could not be started ("Text file busy").
pub fn install_program(program: &Path, to: &Path) {
    let done = Command::new("install").args(["-m", "755"]).args([program, to]).status().unwrap();
    assert!(done.success(), "install {} {}", program.display(), to.display());
}

/// Writes a script that will be started.
pub fn install_script(path: &Path, text: &str) {
    let source = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(source.path(), text).unwrap();
    install_program(source.path(), path);
}

/// The shared library of an example.
pub fn built_library(name: &'static str) -> PathBuf {
    let program = built_example(name);
    program.with_file_name(format!("lib{name}.so"))
}

/// The binary of an example. `cargo test` builds it; if only this test binary was built, it is built here.
pub fn built_example(name: &'static str) -> PathBuf {
    static BUILT: Mutex<BTreeMap<&str, PathBuf>> = Mutex::new(BTreeMap::new());
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    built.entry(name).or_insert_with(|| build_example(name)).clone()
}

fn build_example(name: &str) -> PathBuf {
    let deps = std::env::current_exe().unwrap();
    let profile = deps.parent().unwrap().parent().unwrap().to_owned();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--offline", "--example", name]);
    // Some build scripts treat the variables that cargo sets for a running test as a change, and would build
    // half of the dependencies again.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        let of_the_test = name.starts_with("CARGO_") || name == "OUT_DIR";
        if of_the_test && name != "CARGO_HOME" && name != "CARGO_TARGET_DIR" {
            cargo.env_remove(&*name);
        }
    }
    if profile.ends_with("release") {
        cargo.arg("--release");
    }
    let done = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).status().unwrap();
    assert!(done.success());
    profile.join("examples").join(name)
}
