//! Fakes all of IREE's tools with one binary, which acts by the name it was called by. Lines `// fake
//! KEY=VALUE` in the source of a "module" define its behavior; `iree-compile` copies them, and its flags,
//! into the module, so that a flag can change the measured time.
//!
//! | key | effect |
//! |---|---|
//! | `compile-error=TEXT` | the compiler fails with this diagnostic |
//! | `compile-hang=1`, `benchmark-hang=1` | the tool never ends |
//! | `run-error=TEXT` | `iree-run-module` fails with this message |
//! | `latency-us=N` | time of one iteration, with 0.2 % noise; `pinned-latency-us=N` wins over it |
//! | `output=1,2,3` | the function's only output, in f32; `NaN` is allowed |
//! | `output-file=A.npy,B.npy` | the outputs are these files, relative to the tool's working folder |
//! | `output-type=4x1xbf16` | the type that the tool prints for its results; by default 3xf32. bf16 can't be written as `.npy` |
//! | `second-output=1,2,3` | the output of a second call in one process |
//! | `late-output=1,2,3` | the output of a call after many others in one process |
//! | `other-output=4,5,6` | the function has an input, and returns this output for other inputs |
//! | `remembers=1` | later calls return the first call's output, whatever their input |
//! | `rejects-other-inputs=1` | a call with other inputs fails |
//! | `changes-input=once`, `changes-input=always` | the function has an input, which its first call, or every call, changes |
//! | `changes-input=1,2,3` | the first call leaves these values in the input, in f32 |
//! | `no-output=1` | the function has no output |
//! | `random-output=1` | the output differs from call to call |
//! | `error-occurred=TEXT` | the benchmark prints a failed row of 0.0 ms and exits 0, as IREE did |
//! | `crash=1` | the benchmark crashes with a signal |
//! | `kill-compile=N`, `kill-run=N`, `kill-benchmark=N` | the tool is ended by this signal, as if from outside |
//! | `pause-ms=N`, `compile-pause-ms=N` | the benchmark, or the compiler, takes this long |
//! | `burn-ms=N` | the benchmark computes for this long |
//! | `disk-full=1` | the benchmark fails because the disk is full |
//! | `dispatch-count=N`, `bytes=N` | the compiler's dispatch count, and the number of bytes by which the module is larger |
//! | `latency-us-FUNCTION=N`, `output-FUNCTION=…` | the same, for one function |
//! | `kernels=A:US,B:US` | time per kernel that `iree-profile` prints; with `no-profile=1` the module can't be profiled |
//! | `device-memory=N` | the peak that `--print_statistics` prints |
//! | `compile-stderr=TEXT`, `run-stderr=TEXT`, `benchmark-stderr=TEXT` | printed to stderr, with `\n` for a new line; the tool goes on |
//! | `compile-exit=N`, `run-exit=N`, `benchmark-exit=N` | exit code after the work is done |
//! | `compile-no-output=1`, `run-no-output=1`, `benchmark-no-output=1` | exits 0 and writes nothing |
//! | `benchmark-kill=N` | the benchmark is ended by signal N |
//! | `json-replace=FROM=>TO`, `json-replace-last=…` | edits all, or the last, of the benchmark's JSON |
//! | `json-twice=1` | writes the JSON twice |
//! | `json-cut=N` | keeps the first N bytes of the JSON |
//! | `day-file=FILE` | times are multiplied by the number in this file, so that they can change although the module doesn't |
//! | `slow-every=N`, `slow-by=X` | every N-th process of the module takes X percent longer |
//! | `shell=COMMAND`, `run-shell=COMMAND` | the benchmark, or `iree-run-module`, runs this command first |
//! | `reads=FILE` | the fake directives of this file, if it exists, go into the module |
//!
//! Flag files (`@flags.txt`) are read as by the real compiler. The fake directives in a transform library
//! (`--iree-codegen-transform-dialect-library=FILE@NAME`, `{library-file-name=FILE}` in any flag), in the
//! files of `--iree-rocm-bc-dir=FOLDER`, or in `libLLVM.so` next to the compiler, also go into the module.
//! Runtime programs load `libruntime.so` from the folders of LD_LIBRARY_PATH, or from their own folder; with
//! `slower-by=X` in it, they take X percent longer.
//!
//! A file `DEVICES` next to the tools lists devices: `cuda cuda://GPU-1` is a device, and `hip !TEXT` is a
//! driver that fails with TEXT. Drivers that it omits are not installed.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::exit,
    reason = "a fake may"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// The commit that the fake compiler and runtime report.
const COMMIT: &str = "1111111111111111111111111111111111111111";

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let name = Path::new(&args[0]).file_name().unwrap().to_str().unwrap().to_owned();
    let args = &args[1..];
    if args.iter().any(|arg| arg == "--version") {
        let commit = commit();
        println!(
            "IREE (https://iree.dev):\n  IREE compiler version 9.9.9 @ {commit}\n  LLVM version 0.0.0git"
        );
        return;
    }
    if args == ["--help"] {
        runtime_library();
        return;
    }
    match name.as_str() {
        "iree-compile" => compile(args),
        "iree-run-module" => run_module(args),
        "iree-benchmark-module" => benchmark(args),
        "iree-dump-module" => dump(args.last().unwrap()),
        "iree-profile" => print!("{}", std::fs::read_to_string(args.last().unwrap()).unwrap()),
        other => {
            eprintln!("{other} is not faked");
            std::process::exit(64);
        }
    }
}

/// The commit in a file next to the tool, so that two installations can differ.
fn commit() -> String {
    let listed = std::env::current_exe().unwrap().with_file_name("COMMIT");
    std::fs::read_to_string(listed).map_or_else(|_| COMMIT.to_owned(), |text| text.trim().to_owned())
}

fn value<'a>(args: &'a [String], flag: &str) -> Option<&'a str> {
    args.iter().find_map(|arg| arg.strip_prefix(flag))
}

fn directives(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .filter_map(|line| line.trim().strip_prefix("// fake "))
        .filter_map(|line| line.split_once('='))
        .map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()))
        .collect()
}

fn end_if_asked(known: &BTreeMap<String, String>, key: &str) {
    if let Some(number) = known.get(key) {
        let signal = nix::sys::signal::Signal::try_from(number.parse::<i32>().unwrap()).unwrap();
        // Rust's own handlers swallow some signals. An error is ignored, because not every signal can have a
        // handler.
        // SAFETY: the default action is no handler.
        let _ = unsafe { nix::sys::signal::signal(signal, nix::sys::signal::SigHandler::SigDfl) };
        nix::sys::signal::raise(signal).unwrap();
    }
}

fn forever() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

fn compile(args: &[String]) {
    let source = args.iter().find(|arg| !arg.starts_with('-')).unwrap();
    let output = &args[args.iter().position(|arg| arg == "-o").unwrap() + 1];
    let text = std::fs::read_to_string(source).unwrap();
    let known = directives(&text);
    if known.contains_key("compile-hang") {
        forever();
    }
    if let Some(error) = known.get("compile-error") {
        eprintln!("{source}:1:1: error: {error}\n^");
        std::process::exit(1);
    }
    let mut module = text;
    let mut known = known;
    let args = &with_flag_files(args);
    let library = next_to_tool("libLLVM.so");
    for text in named_files(args)
        .into_iter()
        .chain(read_there(&library))
        .chain(known.get("reads").into_iter().filter_map(|file| read_there(Path::new(file))))
        .collect::<Vec<_>>()
    {
        writeln!(module, "\n{text}").unwrap();
        known.extend(directives(&text));
    }
    // `--fake=KEY=VALUE` overrides what the source says, as a real flag changes code generation.
    for arg in args {
        if let Some(directive) = arg.strip_prefix("--fake=") {
            writeln!(module, "\n// fake {directive}").unwrap();
            known.extend(directives(&format!("// fake {directive}")));
        }
    }
    end_if_asked(&known, "kill-compile");
    // A later flag wins.
    let repeats = |arg: &String| {
        let (name, count) = arg.split_once('=')?;
        name.ends_with("-iree-hal-benchmark-dispatch-repeat-count").then(|| count.to_owned())
    };
    if let Some(repeats) = args.iter().filter_map(repeats).next_back() {
        writeln!(module, "\n// fake repeats={repeats}").unwrap();
    }
    say(&known, "compile-stderr");
    if let Some(pause) = known.get("compile-pause-ms") {
        std::thread::sleep(Duration::from_millis(pause.parse().unwrap()));
    }
    if known.contains_key("compile-no-output") {
        end(&known, "compile-exit");
    }
    if let Some(bytes) = known.get("bytes") {
        module.push_str(&" ".repeat(bytes.parse().unwrap()));
    }
    if let Some(folder) = value(args, "--dump-compilation-phases-to=") {
        std::fs::create_dir_all(folder).unwrap();
        for phase in ["1.input", "2.abi", "6.flow"] {
            std::fs::write(Path::new(folder).join(format!("module.{phase}.mlir")), &module).unwrap();
        }
    }
    // `module=FILE.gz`: a module that a real compiler made.
    let module = match known.get("module") {
        Some(file) => {
            let packed = std::fs::read(file).unwrap();
            benchgate::ingest::decompressed(&packed, file).unwrap().into_owned()
        }
        None => module.into_bytes(),
    };
    if let Err(error) = std::fs::write(output, module) {
        eprintln!("error: failed to write {output}: {error}");
        std::process::exit(1);
    }
    if let Some(statistics) = value(args, "--iree-scheduling-dump-statistics-file=") {
        let count = known.get("dispatch-count").map_or("3", String::as_str);
        let json = format!(r#"{{"stream-aggregate": {{"execution": {{"dispatch-count": {count}}}}}}}"#);
        std::fs::write(statistics, json).unwrap();
    }
    end(&known, "compile-exit");
}

/// Runs the command of a directive.
fn shell(known: &BTreeMap<String, String>, key: &str) {
    if let Some(command) = known.get(key) {
        assert!(std::process::Command::new("sh").args(["-c", command]).status().unwrap().success());
    }
}

/// Prints the text of a directive to stderr.
fn say(known: &BTreeMap<String, String>, key: &str) {
    if let Some(text) = known.get(key) {
        eprintln!("{}", text.replace("\\n", "\n"));
    }
}

/// Ends with the exit code of a directive, by default 0.
fn end(known: &BTreeMap<String, String>, key: &str) -> ! {
    std::process::exit(known.get(key).map_or(0, |code| code.parse().unwrap()))
}

/// The arguments, with every `@file` replaced by its content.
fn with_flag_files(args: &[String]) -> Vec<String> {
    let read = |file: &str| -> Vec<String> {
        let words: Vec<String> =
            std::fs::read_to_string(file).unwrap().split_whitespace().map(str::to_owned).collect();
        with_flag_files(&words)
    };
    args.iter().flat_map(|arg| arg.strip_prefix('@').map_or_else(|| vec![arg.clone()], read)).collect()
}

/// Content of the files that the compiler's flags name.
fn named_files(args: &[String]) -> Vec<String> {
    let library = value(args, "--iree-codegen-transform-dialect-library=")
        .map(|named| PathBuf::from(named.split('@').next().unwrap()));
    let folder =
        value(args, "--iree-rocm-bc-dir=").into_iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let inside = args.iter().filter_map(|arg| arg.split_once("{library-file-name="));
    let inside = inside.map(|(_, rest)| PathBuf::from(rest.split('}').next().unwrap()));
    let files = library.into_iter().chain(folder.map(|item| item.unwrap().path())).chain(inside);
    files.map(|file| std::fs::read_to_string(file).unwrap()).collect()
}

/// A file in the folder of the tool.
fn next_to_tool(name: &str) -> PathBuf {
    std::env::current_exe().unwrap().with_file_name(name)
}

fn read_there(file: &Path) -> Option<String> {
    std::fs::read_to_string(file).ok()
}

/// The directives of the library that programs of the runtime load.
fn runtime_library() -> BTreeMap<String, String> {
    let folders = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let listed = std::env::split_paths(&folders).map(|folder| folder.join("libruntime.so"));
    let found = listed.chain([next_to_tool("libruntime.so")]).find_map(|file| read_there(&file));
    directives(&found.unwrap_or_default())
}

fn module(args: &[String]) -> BTreeMap<String, String> {
    directives(&std::fs::read_to_string(value(args, "--module=").unwrap()).unwrap())
}

fn of<'a>(known: &'a BTreeMap<String, String>, key: &str, function: &str) -> Option<&'a String> {
    known.get(&format!("{key}-{function}")).or(known.get(key))
}

/// The value of a key for the function that is called, or for all of them.
fn of_function<'a>(known: &'a BTreeMap<String, String>, key: &str, args: &[String]) -> Option<&'a String> {
    of(known, key, value(args, "--function=").unwrap())
}

/// Prints the module's exports: `main`, and each function that has its own directive.
fn dump(module: &str) {
    let known = directives(&std::fs::read_to_string(module).unwrap_or_default());
    let named = known.keys().filter_map(|key| {
        ["latency-us-", "output-file-", "output-"].into_iter().find_map(|prefix| key.strip_prefix(prefix))
    });
    let input = ["changes-input", "other-output"].iter().any(|key| known.contains_key(*key));
    let input = if input { "!vm.ref<?>" } else { "" };
    println!("// @module : version 0\n\nExported Functions:");
    for function in named.chain(["main"]) {
        let results = count(&known, of(&known, "output-file", function));
        println!("  [  0] {function}({input}) -> ({})", vec!["!vm.ref<?>"; results].join(", "));
    }
    println!();
}

/// Runs a function of the module that calls another module's function: prints the results of the second call,
/// those of a call with other inputs, and the input.
fn call_through(known: &BTreeMap<String, String>, args: &[String], caller: &str) {
    let text = std::fs::read_to_string(caller).unwrap();
    let name = text.split("vm.import private @\"module.").nth(1).unwrap().split('"').next().unwrap();
    let calls = value(args, "--function=").unwrap();
    let is_twice = ["twice", "thrice", "late"].contains(&calls);
    let mut known = known.clone();
    if let Some(output) = known.remove("late-output").filter(|_| calls == "late") {
        known.insert("output".to_owned(), output);
    }
    if calls == "alone" && known.contains_key("rejects-other-inputs") {
        std::process::exit(1);
    }
    let mut other = known.clone();
    if let Some(output) =
        other.remove("other-output").filter(|_| calls == "alone" || !known.contains_key("remembers"))
    {
        other.insert("output".to_owned(), output);
    }
    if let Some(second) = known.remove("second-output") {
        known.insert("output".to_owned(), second);
    }
    let (inputs, results): (Vec<String>, Vec<String>) =
        args.iter().filter(|arg| arg.starts_with("--output=@")).cloned().partition(|arg| {
            ["given", "once", "twice"].iter().any(|calls| arg.contains(&format!("/{calls}")))
        });
    let (third, results): (Vec<String>, Vec<String>) =
        results.into_iter().partition(|arg| arg.contains("/third") || arg.contains("/alone"));
    if !third.is_empty() {
        let called: Vec<String> = [format!("--function={name}")].into_iter().chain(third).collect();
        call(&other, &called);
    }
    for input in inputs {
        let state = match known.get("changes-input").map_or("", String::as_str) {
            "" => b"0".to_vec(),
            _ if calls == "given" => b"0".to_vec(),
            "always" if is_twice => b"2".to_vec(),
            "always" | "once" => b"1".to_vec(),
            values => values.split(',').flat_map(|it| it.parse::<f32>().unwrap().to_le_bytes()).collect(),
        };
        std::fs::write(input.strip_prefix("--output=@").unwrap(), state).unwrap();
    }
    if is_twice {
        let called: Vec<String> = [format!("--function={name}")].into_iter().chain(results).collect();
        call(&known, &called);
    }
}

fn list_devices(driver: &str) {
    let listed = std::env::current_exe().unwrap().with_file_name("DEVICES");
    let text = std::fs::read_to_string(listed).unwrap_or_default();
    let known = text.lines().filter_map(|line| line.split_once(' ')).filter(|(known, _)| *known == driver);
    let known: Vec<&str> = known.map(|(_, device)| device).collect();
    let complaint = match (known.first().and_then(|first| first.strip_prefix('!')), driver) {
        (Some(complaint), _) => complaint.to_owned(),
        (None, _) if !known.is_empty() => {
            known.iter().for_each(|device| println!("{device}"));
            return;
        }
        (None, "local-task" | "local-sync") => return println!("{driver}://"),
        (None, "vulkan") => "NOT_FOUND; Vulkan loader library not found; ensure it is installed".to_owned(),
        (None, "hip") => "UNAVAILABLE; HIP runtime library 'libamdhip64.so' not available".to_owned(),
        (None, driver) => format!("UNAVAILABLE; {driver} driver library '{driver}.so' not available"),
    };
    eprintln!("FLAGS ERROR:\nc/fake/driver.c:66: {complaint}");
    std::process::exit(1);
}

fn run_module(args: &[String]) {
    if let Some(driver) = value(args, "--list_devices=") {
        return list_devices(driver);
    }
    if args.iter().any(|arg| arg == "--list_drivers") {
        println!("# ====\n# Available HAL drivers\n# ====");
        println!("        cuda: NVIDIA CUDA HAL driver\n  local-task: Local execution");
        return;
    }
    let known = module(args);
    runtime_library();
    shell(&known, "run-shell");
    println!("EXEC @{}", value(args, "--function=").unwrap());
    end_if_asked(&known, "kill-run");
    if let Some(error) = known.get("run-error") {
        eprintln!("fake.c:1: INVALID_ARGUMENT; {error}");
        std::process::exit(1);
    }
    say(&known, "run-stderr");
    if known.contains_key("run-no-output") {
        end(&known, "run-exit");
    }
    match args.iter().filter_map(|arg| arg.strip_prefix("--module=")).nth(1) {
        Some(caller) => call_through(&known, args, caller),
        None => call(&known, args),
    }
    end(&known, "run-exit");
}

/// Number of the function's outputs, which may be those in `files`.
fn count(known: &BTreeMap<String, String>, files: Option<&String>) -> usize {
    let written = files.map_or(1, |files| files.split(',').count());
    if known.contains_key("no-output") { 0 } else { written }
}

/// Writes the results of the function.
fn call(known: &BTreeMap<String, String>, args: &[String]) {
    let outputs: Vec<PathBuf> =
        args.iter().filter_map(|arg| arg.strip_prefix("--output=@")).map(PathBuf::from).collect();
    if args.iter().any(|arg| arg == "--print_statistics")
        && let Some(bytes) = known.get("device-memory")
    {
        eprintln!("DEVICE_LOCAL: {bytes:>12}B peak / {bytes:>12}B allocated / 0B freed / 0B live");
    }
    let files = of_function(known, "output-file", args);
    let count = count(known, files);
    if outputs.is_empty() {
        // Without output files, the tool prints its results.
        for index in 0..count {
            let found = known.get("output-type").map_or("3xf32", String::as_str);
            println!("result[{index}]: hal.buffer_view\n{found}=1 2 3");
        }
        return;
    }
    if outputs.len() != count {
        eprintln!("c/fake.c:1: OUT_OF_RANGE; {} outputs specified but there are {count}", outputs.len());
        std::process::exit(1);
    }
    if known.contains_key("random-output") {
        let nanoseconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().subsec_nanos();
        std::fs::write(&outputs[0], npy(&[nanoseconds as f32])).unwrap();
        return;
    }
    if let Some(files) = files {
        for (file, output) in files.split(',').zip(&outputs) {
            std::fs::copy(file.trim(), output).unwrap();
        }
        return;
    }
    let values: Vec<f32> = of_function(known, "output", args)
        .map(|text| {
            let numbers = text.split(',').map(str::trim).filter(|number| !number.is_empty());
            numbers.map(|number| number.parse().unwrap()).collect()
        })
        .unwrap_or_else(|| vec![1.0, 2.0, 3.0]);
    for output in outputs {
        let name = output.to_str().unwrap();
        let is_bf16 = known.get("output-type").is_some_and(|found| found.ends_with("bf16"));
        if name.ends_with(".bin") {
            let upper = values.iter().flat_map(|value| value.to_le_bytes()[2..].to_vec());
            std::fs::write(output, upper.collect::<Vec<_>>()).unwrap();
        } else if is_bf16 {
            eprintln!("UNIMPLEMENTED; .npy has no bf16");
            std::process::exit(1);
        } else {
            std::fs::write(output, npy(&values)).unwrap();
        }
    }
}

/// NumPy's format, version 1.0: magic, header padded to 64 bytes, little-endian data.
fn npy(values: &[f32]) -> Vec<u8> {
    let mut header =
        format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({},), }}", values.len()).into_bytes();
    while !(10 + header.len() + 1).is_multiple_of(64) {
        header.push(b' ');
    }
    header.push(b'\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    bytes.extend(header);
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    bytes
}

fn benchmark(args: &[String]) {
    let known = module(args);
    if known.contains_key("benchmark-hang") {
        forever();
    }
    end_if_asked(&known, "kill-benchmark");
    if known.contains_key("crash") {
        std::process::abort();
    }
    if let Some(signal) = known.get("benchmark-kill") {
        // The shell sends the signal to its parent, which needs no dependency.
        std::process::Command::new("sh").args(["-c", &format!("kill -{signal} $PPID")]).status().unwrap();
        forever();
    }
    shell(&known, "shell");
    say(&known, "benchmark-stderr");
    if let Some(pause) = known.get("pause-ms") {
        std::thread::sleep(Duration::from_millis(pause.parse().unwrap()));
    }
    if let Some(burn) = known.get("burn-ms") {
        let until = Instant::now() + Duration::from_millis(burn.parse().unwrap());
        while Instant::now() < until {
            std::hint::spin_loop();
        }
    }
    if known.contains_key("disk-full") {
        eprintln!("fake.c:1: No space left on device");
        std::process::exit(1);
    }
    if let Some(profile) = value(args, "--device_profiling_output=") {
        return profiled(&known, args, Path::new(profile));
    }
    let repetitions: usize = value(args, "--benchmark_repetitions=").unwrap_or("1").parse().unwrap();
    let name = format!("BM_{}/process_time/real_time", value(args, "--function=").unwrap());
    let mut rows = Vec::new();
    if let Some(message) = known.get("error-occurred") {
        rows.push(format!(
            r#"{{"name": "{name}", "run_name": "{name}", "run_type": "iteration", "repetitions": 1, "repetition_index": 0, "threads": 1, "error_occurred": true, "error_message": "{message}", "iterations": 1, "real_time": 0.0, "cpu_time": 0.0, "time_unit": "ms"}}"#
        ));
    } else {
        let time = known.get("pinned-latency-us").or(of_function(&known, "latency-us", args));
        let one: f64 = time.map_or(1000.0, |text| text.parse().unwrap());
        let number = |text: Option<&str>| text.map_or(1.0, |text| text.parse::<f64>().unwrap());
        let repeats = number(known.get("repeats").map(String::as_str));
        let latency = one * repeats / number(value(args, "--batch_size="));
        let mut state =
            u64::from(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().subsec_nanos());
        state ^= u64::from(std::process::id()) << 32;
        let percent = |key: &str| known.get(key).map_or(0.0, |text| text.parse::<f64>().unwrap() / 100.0);
        let today =
            known.get("day-file").map_or(1.0, |file| number(Some(&std::fs::read_to_string(file).unwrap())));
        let slow = if is_slow(&known, args) { 1.0 + percent("slow-by") } else { 1.0 };
        let slow = slow
            * (1.0 + number(runtime_library().get("slower-by").map(String::as_str).or(Some("0"))) / 100.0);
        for index in 0..repetitions {
            // A linear congruential generator (Knuth, MMIX): noise that differs from process to process.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let noise = 0.002 * ((state >> 33) as f64 / f64::from(u32::MAX >> 1) - 0.5);
            let time = latency * today * slow * (1.0 + noise) / 1000.0;
            rows.push(format!(
                r#"{{"name": "{name}", "run_name": "{name}", "run_type": "iteration", "repetitions": {repetitions}, "repetition_index": {index}, "threads": 1, "iterations": 10, "real_time": {time:e}, "cpu_time": {time:e}, "time_unit": "ms"}}"#
            ));
        }
    }
    // The number of processors is large, so that the load of the test machine never counts as too high.
    let json = format!(
        r#"{{"context": {{"date": "2026-01-01T00:00:00+00:00", "host_name": "fake", "executable": "iree-benchmark-module", "num_cpus": 4096, "mhz_per_cpu": 3000, "cpu_scaling_enabled": false, "load_avg": [0.1, 0.1, 0.1], "library_build_type": "release"}}, "benchmarks": [{}]}}"#,
        rows.join(", ")
    );
    if !known.contains_key("benchmark-no-output") {
        std::fs::write(value(args, "--benchmark_out=").unwrap(), edited(json, &known)).unwrap();
    }
    end(&known, "benchmark-exit");
}

/// Returns whether this process is an N-th one of its module, counted in a file next to the tools.
fn is_slow(known: &BTreeMap<String, String>, args: &[String]) -> bool {
    let Some(every) = known.get("slow-every") else { return false };
    let module = Path::new(value(args, "--module=").unwrap());
    let name: String = module.display().to_string().replace('/', "_");
    let counter = std::env::current_exe().unwrap().with_file_name(format!("COUNT{name}"));
    let count = std::fs::read_to_string(&counter).map_or(0, |text| text.parse::<u32>().unwrap());
    std::fs::write(counter, (count + 1).to_string()).unwrap();
    count.is_multiple_of(every.parse().unwrap())
}

/// The benchmark's JSON after the edits that the directives request.
fn edited(mut json: String, known: &BTreeMap<String, String>) -> String {
    let edit = |key: &str| known.get(key).map(|text| text.split_once("=>").unwrap());
    if let Some((from, to)) = edit("json-replace") {
        assert!(json.contains(from), "{from} is not in {json}");
        json = json.replace(from, to);
    }
    if let Some((from, to)) = edit("json-replace-last") {
        let at = json.rfind(from).unwrap();
        json.replace_range(at..at + from.len(), to);
    }
    if known.contains_key("json-twice") {
        json = json.repeat(2);
    }
    if let Some(length) = known.get("json-cut") {
        json.truncate(length.parse().unwrap());
    }
    json
}

/// Writes the output of `iree-profile`, so that the fake `iree-profile` only has to copy it.
fn profiled(known: &BTreeMap<String, String>, args: &[String], profile: &Path) {
    if known.contains_key("no-profile") {
        eprintln!("fake.c:1: UNIMPLEMENTED; unsupported profiling data families 0x8");
        std::process::exit(1);
    }
    let iterations = value(args, "--benchmark_min_time=").and_then(|count| count.strip_suffix('x')).unwrap();
    let iterations: f64 = iterations.parse().unwrap();
    let mut text = String::from("{\"type\": \"dispatch_summary\", \"total_host_dispatches\": 0}\n");
    for kernel in known.get("kernels").map(String::as_str).unwrap_or_default().split(',') {
        let Some((name, microseconds)) = kernel.split_once(':') else { continue };
        let total = microseconds.trim().parse::<f64>().unwrap() * 1000.0 * iterations;
        writeln!(
            text,
            "{{\"type\": \"host_dispatch_group\", \"key\": \"{}\", \"count\": {iterations}, \"invalid\": 0, \"total_ns\": {total}}}",
            name.trim()
        )
        .unwrap();
    }
    std::fs::write(profile, text).unwrap();
}
