//! Measures the cost of `benchgate run` beyond that of the tools it runs, on the quickstart suite with real
//! IREE.
//!
//! ```console
//! $ cargo bench --bench pipeline
//! ```
//!
//! Everything is measured in one invocation, because the speed of a machine varies from hour to hour. The
//! tools are installed first; their download is not part of any figure.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark prints, and may panic")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const BINARY: &str = env!("CARGO_BIN_EXE_benchgate");

/// Number of starts of the binary; their median is precise to about 0.1 ms.
const STARTS: usize = 51;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let cache =
        std::env::var_os("BENCHGATE_CACHE").map_or_else(|| folder.path().join("cache"), PathBuf::from);
    let suite = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/quickstart/benchgate.toml");
    let bench =
        Bench { cache, suite, work: folder.path().join("work"), output: folder.path().join("run.json") };

    println!("benchgate {}, quickstart suite, head side", env!("CARGO_PKG_VERSION"));
    bench.command(&["tools", "install"]).status().unwrap();

    let one = bench.cold("1");
    println!("cold, one tool at a time:  {one}");
    let warm = bench.run("1");
    println!("warm, one tool at a time:  {warm}");
    let parallel = bench.cold("2");
    println!("cold, two tools at once:   {parallel}");
    println!(
        "preparing two at once takes {:.2} × the time of one at a time",
        parallel.preparing().as_secs_f64() / one.preparing().as_secs_f64()
    );
    println!(
        "a warm run prepares in {:.3} × the time of a cold one",
        warm.preparing().as_secs_f64() / one.preparing().as_secs_f64()
    );

    let help = median(|| start(BINARY, &["--help"]));
    let nothing = median(|| start("true", &[]));
    println!("start to --help: {help:.1?}; starting `true`: {nothing:.1?} (medians of {STARTS})");
    #[expect(clippy::cast_precision_loss, reason = "a file's size in megabytes")]
    let megabytes = std::fs::metadata(BINARY).unwrap().len() as f64 / 1e6;
    println!("binary: {megabytes:.1} MB");
}

struct Bench {
    cache: PathBuf,
    suite: PathBuf,
    work: PathBuf,
    output: PathBuf,
}

/// The cost of one run: wall-clock time, and the times that its tools report.
struct Cost {
    wall: Duration,
    /// Time of compilers and verification, read from the run file.
    preparing_tools: Duration,
    measuring_tools: Duration,
}

impl Cost {
    /// Returns the wall-clock time outside measuring.
    fn preparing(&self) -> Duration {
        self.wall.saturating_sub(self.measuring_tools)
    }
}

impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tools = self.preparing_tools + self.measuring_tools;
        write!(
            f,
            "wall {:.2} s, tools {:.2} s (preparing {:.2} s, measuring {:.2} s), wall over tools {:+.2} %",
            self.wall.as_secs_f64(),
            tools.as_secs_f64(),
            self.preparing_tools.as_secs_f64(),
            self.measuring_tools.as_secs_f64(),
            100.0 * (self.wall.as_secs_f64() / tools.as_secs_f64() - 1.0)
        )
    }
}

impl Bench {
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        command.args(args).arg("--config").arg(&self.suite).env("BENCHGATE_CACHE", &self.cache);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn cold(&self, jobs: &str) -> Cost {
        let compiled = self.cache.join("compile");
        if compiled.exists() {
            std::fs::remove_dir_all(compiled).unwrap();
        }
        self.run(jobs)
    }

    fn run(&self, jobs: &str) -> Cost {
        let mut command = self.command(&["run", "--side", "head", "--jobs", jobs]);
        command.arg("--run").arg(&self.output).arg("--work-dir").arg(&self.work);
        let started = Instant::now();
        assert!(command.status().unwrap().success());
        let wall = started.elapsed();
        let run: serde_json::Value = serde_json::from_slice(&std::fs::read(&self.output).unwrap()).unwrap();
        let benchmarks = run["sides"][0]["benchmarks"].as_array().unwrap();
        let seconds = |items: &str, counted: fn(&serde_json::Value) -> bool| {
            let all = benchmarks.iter().flat_map(|benchmark| benchmark[items].as_array().unwrap());
            Duration::from_secs_f64(
                all.filter(|item| counted(item)).map(|item| item["seconds"].as_f64().unwrap()).sum(),
            )
        };
        Cost {
            wall,
            // A cached stage states the time that it took when it was made.
            preparing_tools: seconds("stages", |stage| stage["status"] == "ok"),
            measuring_tools: seconds("processes", |_| true),
        }
    }
}

fn start(program: &str, args: &[&str]) -> Duration {
    let started = Instant::now();
    Command::new(program).args(args).stdout(Stdio::null()).status().unwrap();
    started.elapsed()
}

fn median(mut measure: impl FnMut() -> Duration) -> Duration {
    let mut all: Vec<Duration> = (0..STARTS).map(|_| measure()).collect();
    all.sort();
    all[STARTS / 2]
}
