//! Measures how fast two large Google Benchmark files are compared, relative to a typed serde_json parse of
//! the same bytes and, if its path is given, to google/benchmark's own `tools/compare.py`:
//!
//! ```text
//! cargo bench --bench compare -- [--benchmarks 5000] [--repetitions 20] [--rounds 7]
//!                                [--compare-py path/to/tools/compare.py] [--many 200]
//! ```
//!
//! The contenders run in turn, each in its own process, so that peak memory is measured separately and drift
//! of the machine affects all alike. The output has the median wall-clock time of the rounds, the least
//! processor time (which a busy machine disturbs least), the ratios of both, and peak resident memory.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints and may panic")]

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use benchgate::gate;
use benchgate::ingest;
use serde::Deserialize;

/// The fields of a file that a comparison needs, for serde_json: strings are borrowed, other fields are
/// ignored. The type is `&str` and not `Cow`, because serde copies a `Cow` inside an `Option`.
#[derive(Deserialize)]
struct TypedFile<'a> {
    #[serde(borrow)]
    context: TypedContext<'a>,
    #[serde(borrow)]
    benchmarks: Vec<TypedRow<'a>>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "read for their cost")]
struct TypedContext<'a> {
    date: Option<&'a str>,
    host_name: Option<&'a str>,
    num_cpus: Option<u32>,
    cpu_scaling_enabled: Option<bool>,
    load_avg: Option<Vec<f64>>,
    library_build_type: Option<&'a str>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "read for their cost")]
struct TypedRow<'a> {
    name: &'a str,
    run_name: Option<&'a str>,
    run_type: Option<&'a str>,
    repetitions: Option<u32>,
    repetition_index: Option<u32>,
    real_time: Option<f64>,
    cpu_time: Option<f64>,
    time_unit: Option<&'a str>,
    aggregate_name: Option<&'a str>,
    error_occurred: Option<bool>,
    error_message: Option<&'a str>,
    items_per_second: Option<f64>,
}

/// SplitMix64, which generates the same files every time.
struct Stream(u64);

impl Stream {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Writes a file as the tool does; the repetitions spread by about 1 %.
fn generate(path: &Path, seed: u64, benchmarks: usize, repetitions: usize) {
    let mut stream = Stream(seed);
    let mut out = std::io::BufWriter::new(std::fs::File::create(path).unwrap());
    out.write_all(
        b"{\n  \"context\": {\n    \"date\": \"2026-11-20T21:44:00+00:00\",\n    \"host_name\": \"vm\",\n    \"executable\": \"iree-benchmark-module\",\n    \"num_cpus\": 2,\n    \"mhz_per_cpu\": 2596,\n    \"cpu_scaling_enabled\": false,\n    \"load_avg\": [0.871582,1.3208,1.71729],\n    \"library_version\": \"v1.9.5\",\n    \"library_build_type\": \"release\",\n    \"json_schema_version\": 1\n  },\n  \"benchmarks\": [\n",
    )
    .unwrap();
    let mut row = String::new();
    for benchmark in 0..benchmarks {
        let base = 10f64.powf(1.0 + 2.0 * Stream(benchmark as u64).unit());
        for repetition in 0..repetitions {
            let real = base * (1.0 + 0.02 * (stream.unit() - 0.5));
            let name = format!("BM_dispatch_{benchmark}_matmul/process_time/real_time");
            row.clear();
            write!(
                row,
                "    {{\n      \"name\": \"{name}\",\n      \"family_index\": {benchmark},\n      \"per_family_instance_index\": 0,\n      \"run_name\": \"{name}\",\n      \"run_type\": \"iteration\",\n      \"repetitions\": {repetitions},\n      \"repetition_index\": {repetition},\n      \"threads\": 1,\n      \"iterations\": 12,\n      \"real_time\": {real:.16e},\n      \"cpu_time\": {:.16e},\n      \"time_unit\": \"ms\",\n      \"items_per_second\": {:.16e}\n    }}",
                real * 0.99,
                1e3 / real,
            )
            .unwrap();
            let last = benchmark + 1 == benchmarks && repetition + 1 == repetitions;
            row.push_str(if last { "\n" } else { ",\n" });
            out.write_all(row.as_bytes()).unwrap();
        }
    }
    out.write_all(b"  ]\n}\n").unwrap();
    out.flush().unwrap();
}

/// Runs one contender on its files, and returns the seconds. The result is checked, so that nothing
/// is optimized away.
fn contend(mode: &str, files: &[PathBuf]) -> f64 {
    let start = Instant::now();
    let seen = match mode {
        // Parses one file after the other, and keeps nothing of the first.
        "typed" => files
            .iter()
            .map(|file| {
                let bytes = std::fs::read(file).unwrap();
                let file: TypedFile<'_> = serde_json::from_slice(&bytes).unwrap();
                file.benchmarks.len() + usize::from(file.context.num_cpus.is_some())
            })
            .sum(),
        "whole" => files.iter().map(|file| read(file).benchmarks.len()).sum(),
        "read" => files.iter().map(|file| in_pieces(file).benchmarks.len()).sum(),
        "join" => {
            let mut joiner = ingest::Joiner::new();
            for file in files {
                joiner.push(read(file)).unwrap();
            }
            joiner.finish().unwrap().benchmarks.len()
        }
        "compare" => {
            let runs: Vec<_> = files.iter().map(|file| in_pieces(file)).collect();
            let options =
                gate::CompareOptions { seed: 1, today: "2026-11-20".to_owned(), ..Default::default() };
            gate::compare(&runs[0], &runs[1], &gate::Policy::default(), &options).rows.len()
        }
        // Runs the whole command: options, policy, and a report.
        format @ ("terminal" | "json") => {
            let status = Command::new(env!("CARGO_BIN_EXE_benchgate"))
                .args(["compare", "--format", format])
                .args(files)
                .stdout(std::process::Stdio::null())
                .stderr(std::process::Stdio::null())
                .status()
                .unwrap();
            // The exit code is the verdict; only a failure to read the files counts as an error here.
            usize::from(!matches!(status.code(), None | Some(1 | 2 | 21 | 22)))
        }
        other => panic!("no contender {other}"),
    };
    assert!(seen > 0);
    start.elapsed().as_secs_f64()
}

fn read(file: &Path) -> benchgate::model::Run {
    let bytes = std::fs::read(file).unwrap();
    ingest::read(&bytes, ingest::detect(&bytes).unwrap(), &file.display().to_string()).unwrap()
}

/// Reads a large file as the command does.
fn in_pieces(file: &Path) -> benchgate::model::Run {
    let source = std::fs::File::open(file).unwrap();
    ingest::read_in_pieces(source, &file.display().to_string()).unwrap()
}

/// Returns the processor time of this process and of the one that it started, in seconds.
fn processor_time() -> f64 {
    use nix::sys::resource::{UsageWho, getrusage};
    let seconds = |who| {
        let usage = getrusage(who).unwrap();
        [usage.user_time(), usage.system_time()]
            .iter()
            .map(|time| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6)
            .sum::<f64>()
    };
    seconds(UsageWho::RUSAGE_SELF) + seconds(UsageWho::RUSAGE_CHILDREN)
}

/// Returns the peak resident memory of this process, or of the one that it started and waited for, in MiB.
fn peak_mib() -> f64 {
    let children = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_CHILDREN).unwrap();
    if children.max_rss() > 0 {
        return children.max_rss() as f64 / 1024.0;
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib =
        peak.and_then(|peak| peak.trim().strip_suffix("kB")).and_then(|kib| kib.trim().parse::<f64>().ok());
    kib.unwrap_or(f64::NAN) / 1024.0
}

/// Runs one contender in its own process. Returns seconds, processor seconds and peak MiB.
fn child(mode: &str, files: &[PathBuf]) -> [f64; 3] {
    let output =
        Command::new(std::env::current_exe().unwrap()).arg("--child").arg(mode).args(files).output().unwrap();
    assert!(output.status.success(), "{mode}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let numbers: Vec<f64> = text.split_whitespace().map(|number| number.parse().unwrap()).collect();
    numbers.try_into().unwrap()
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn option(arguments: &[String], name: &str) -> Option<String> {
    let at = arguments.iter().position(|argument| argument == name)?;
    arguments.get(at + 1).cloned()
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "--child") {
        let files: Vec<PathBuf> = arguments[2..].iter().map(PathBuf::from).collect();
        let seconds = contend(&arguments[1], &files);
        println!("{seconds} {} {}", processor_time(), peak_mib());
        return;
    }
    let number =
        |name: &str, default: usize| option(&arguments, name).map_or(default, |value| value.parse().unwrap());
    let (benchmarks, repetitions) = (number("--benchmarks", 5000), number("--repetitions", 20));
    let folder = tempfile::tempdir().unwrap();
    let files = [folder.path().join("base.json"), folder.path().join("head.json")];
    for (seed, file) in files.iter().enumerate() {
        generate(file, seed as u64 + 1, benchmarks, repetitions);
    }
    let mib = files.iter().map(|file| std::fs::metadata(file).unwrap().len()).sum::<u64>() as f64 / 1048576.0;
    println!("two files of {benchmarks} x {repetitions}, {mib:.1} MiB together");

    let modes = ["typed", "whole", "read", "compare", "terminal", "json"];
    let mut seconds = vec![Vec::new(); modes.len()];
    let mut processor = vec![f64::INFINITY; modes.len()];
    let mut peaks = vec![Vec::new(); modes.len()];
    for _ in 0..number("--rounds", 7) {
        for (at, mode) in modes.iter().enumerate() {
            let [time, busy, peak] = child(mode, &files);
            seconds[at].push(time);
            processor[at] = processor[at].min(busy);
            peaks[at].push(peak);
        }
    }
    let typed = median(&mut seconds[0]);
    let mut compare = f64::NAN;
    for (at, mode) in modes.iter().enumerate() {
        let (time, peak) = (median(&mut seconds[at]), median(&mut peaks[at]));
        println!(
            "{mode:8} {:7.1} ms = {:4.2} x typed  processor {:7.1} ms = {:4.2} x typed  peak {peak:6.1} MiB = {:4.2} x files",
            time * 1e3,
            time / typed,
            processor[at] * 1e3,
            processor[at] / processor[0],
            peak / mib
        );
        compare = time;
    }
    if let Some(script) = option(&arguments, "--compare-py") {
        let start = Instant::now();
        let output = Command::new("python3").arg(script).arg("benchmarks").args(&files).output().unwrap();
        let time = start.elapsed().as_secs_f64();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "compare.py failed: {said}");
        println!("compare.py {time:.1} s = {:.0} x json", time / compare);
    }
    many(folder.path(), number("--many", 200), benchmarks, repetitions);
}

/// Checks that joining twice as many files takes twice the time, and that memory grows only by the samples
/// that are kept.
fn many(folder: &Path, count: usize, benchmarks: usize, repetitions: usize) {
    if count == 0 {
        return;
    }
    let (benchmarks, repetitions) = ((benchmarks / 50).max(1), repetitions);
    let files: Vec<PathBuf> = (0..count).map(|at| folder.join(format!("process-{at}.json"))).collect();
    for (at, file) in files.iter().enumerate() {
        generate(file, 100 + at as u64, benchmarks, repetitions);
    }
    for part in [count / 4, count / 2, count] {
        let [time, busy, peak] = child("join", &files[..part]);
        println!(
            "join {part:4} files of {benchmarks} x {repetitions}: {:7.1} ms, processor {:7.1} ms, peak {peak:6.1} MiB",
            time * 1e3,
            busy * 1e3
        );
    }
}
