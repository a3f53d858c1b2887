//! Builds the command lines of the IREE tools, as pure functions. This module starts no programs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use benchgate_core::model::{DeviceKind, device_driver};
use benchgate_core::numerics::TensorFile;

/// Inputs that determine a compiled module, in addition to the compiler and the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CompileSpec {
    pub(super) target: DeviceKind,
    pub(super) input_type: String,
    /// The number of times that the compiled module repeats each dispatch; normally 1.
    pub(super) dispatch_repeats: u32,
    /// Flags of the target, the model and the side, in this order, because the tool lets a later flag win.
    pub(super) flags: Vec<String>,
}

impl CompileSpec {
    /// The flags that enter both the command line and the cache key.
    pub(super) fn flags(&self) -> Vec<String> {
        let mut flags: Vec<String> =
            self.target.facts().compile_flags.iter().map(ToString::to_string).collect();
        if self.input_type != "auto" {
            flags.push(format!("--iree-input-type={}", self.input_type));
        }
        if self.dispatch_repeats > 1 {
            flags.push(format!("--iree-hal-benchmark-dispatch-repeat-count={}", self.dispatch_repeats));
        }
        flags.extend(self.flags.iter().cloned());
        flags
    }
}

pub(super) fn compile(spec: &CompileSpec, source: &Path, output: &Path, statistics: &Path) -> Vec<OsString> {
    let mut args: Vec<OsString> = vec![source.into(), "-o".into(), output.into()];
    args.extend(spec.flags().into_iter().map(OsString::from));
    args.push("--iree-scheduling-dump-statistics-format=json".into());
    args.push(joined("--iree-scheduling-dump-statistics-file=", statistics));
    args
}

/// An input in a form that the runtime tools accept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum InputArg {
    File(TensorFile),
    Literal(String),
}

/// The executed module, its device and its data, which are the same for verifying and measuring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Execution {
    pub(super) module: PathBuf,
    pub(super) function: String,
    pub(super) device: String,
    pub(super) inputs: Vec<InputArg>,
    /// Each scope with its archive.
    pub(super) parameters: Vec<(String, PathBuf)>,
    /// Values of `--device_allocator`, innermost last.
    pub(super) allocators: Vec<String>,
    /// The number of times that the compiled module repeats each dispatch.
    pub(super) dispatch_repeats: u32,
    /// Flags of the target, then those of the side.
    pub(super) run_flags: Vec<String>,
    /// Files that flags and environment variables name.
    pub(super) named: Vec<PathBuf>,
    /// Number of worker threads of a CPU device; `None` leaves the tool's default.
    pub(super) workers: Option<usize>,
}

impl Execution {
    /// The files, other than the module, that its command lines name.
    pub(super) fn reads(&self) -> impl Iterator<Item = &Path> {
        let inputs = self.inputs.iter().filter_map(|input| match input {
            InputArg::File(file) => Some(file.path.as_path()),
            InputArg::Literal(_) => None,
        });
        let parameters = self.parameters.iter().map(|(_, path)| path.as_path());
        inputs.chain(parameters).chain(self.named.iter().map(PathBuf::as_path))
    }

    fn common(&self) -> Vec<OsString> {
        self.calling(&[&self.module], &self.function)
    }

    /// The arguments for calling a function of the last of these modules.
    fn calling(&self, modules: &[&Path], function: &str) -> Vec<OsString> {
        let mut args: Vec<OsString> = vec![format!("--device={}", self.device).into()];
        args.extend(modules.iter().map(|module| joined("--module=", module)));
        args.push(format!("--function={function}").into());
        args.extend(self.inputs.iter().map(|input| match input {
            InputArg::File(TensorFile { path, raw: Some(raw) }) => joined(&format!("--input={raw}=@"), path),
            InputArg::File(TensorFile { path, raw: None }) => joined("--input=@", path),
            InputArg::Literal(text) => format!("--input={text}").into(),
        }));
        args.extend(self.parameters.iter().map(|(scope, path)| {
            let prefix = if scope.is_empty() { String::new() } else { format!("{scope}=") };
            joined(&format!("--parameters={prefix}"), path)
        }));
        args.extend(self.device_settings());
        args.extend(self.run_flags.iter().map(OsString::from));
        args
    }

    fn device_settings(&self) -> impl Iterator<Item = OsString> {
        let workers = self.workers.filter(|_| device_driver(&self.device) == DeviceKind::Cpu.facts().device);
        let workers = workers.map(|workers| format!("--task_topology_group_count={workers}"));
        let allocators = self.allocators.iter().map(|spec| format!("--device_allocator={spec}"));
        workers.into_iter().chain(allocators).map(OsString::from)
    }

    /// The command line of `iree-run-module` that records its call in a capture, including the weights that
    /// the call reads.
    pub(super) fn capture(&self, capture: &Path) -> Vec<OsString> {
        let mut args = self.common();
        args.push(joined("--device_replay_output=", capture));
        args.push("--device_replay_file_policy=capture-ranges".into());
        args
    }

    /// The command line of `iree-benchmark-replay`, which times the captured call without the work before it.
    pub(super) fn replay(&self, timing: &Timing, capture: &Path) -> Vec<OsString> {
        let mut args = vec![format!("--device={}", self.device).into()];
        args.extend(self.device_settings());
        args.push("--replay_scope=execute".into());
        args.extend(timing.args());
        args.push(capture.into());
        args
    }

    /// The command line of `iree-run-module` that writes each output to a file, as `.npy` or as raw bytes
    /// depending on the file's name. Its allocator statistics cover a single call, so they can be compared
    /// exactly: a timed loop has several calls in flight.
    pub(super) fn verify(&self, outputs: &[TensorFile]) -> Vec<OsString> {
        let mut args = self.common();
        args.push("--print_statistics".into());
        args.extend(outputs.iter().map(|file| joined("--output=@", &file.path)));
        args
    }

    /// The command line of `iree-run-module` that calls a function of another module, which in turn calls the
    /// function of this one.
    pub(super) fn through(&self, caller: &Path, function: &str, outputs: &[TensorFile]) -> Vec<OsString> {
        let mut args = self.calling(&[&self.module, caller], function);
        args.extend(outputs.iter().map(|file| joined("--output=@", &file.path)));
        args
    }

    /// The command line of `iree-benchmark-module` that writes samples as Google Benchmark JSON to `output`.
    pub(super) fn benchmark(&self, timing: &Timing, output: &Path) -> Vec<OsString> {
        let mut args = self.common();
        if self.dispatch_repeats > 1 {
            // The tool divides times by this value, so it must be the one that the module was compiled with.
            args.push(format!("--batch_size={}", self.dispatch_repeats).into());
        }
        args.extend(timing.args());
        args.push(joined("--benchmark_out=", output));
        args.push("--benchmark_out_format=json".into());
        args
    }

    /// The command line of `iree-benchmark-module` under its profiler.
    pub(super) fn profile(&self, iterations: u32, output: &Path) -> Vec<OsString> {
        let mut args = self.common();
        let family = DeviceKind::from_uri(&self.device).facts().profiling;
        args.push(format!("--benchmark_min_time={iterations}x").into());
        args.push(format!("--device_profiling_mode={family},executable-metadata").into());
        args.push(joined("--device_profiling_output=", output));
        args
    }
}

/// The timing of a process: how long and how often it measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Timing {
    pub(super) repetitions: u32,
    pub(super) iterations: Option<u32>,
    pub(super) min_time: Duration,
    pub(super) warmup: Duration,
}

impl Timing {
    fn args(&self) -> [OsString; 3] {
        let min_time = match self.iterations {
            Some(count) => format!("{count}x"),
            None => format!("{}s", seconds(self.min_time)),
        };
        [
            format!("--benchmark_repetitions={}", self.repetitions).into(),
            format!("--benchmark_min_time={min_time}").into(),
            format!("--benchmark_min_warmup_time={}", seconds(self.warmup)).into(),
        ]
    }
}

/// Formats a duration in plain decimals, because the tool's flag parser does not accept exponents.
fn seconds(duration: Duration) -> String {
    format!("{:.6}", duration.as_secs_f64())
}

pub(super) fn joined(prefix: &str, path: &Path) -> OsString {
    let mut arg = OsString::from(prefix);
    arg.push(path);
    arg
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(args: Vec<OsString>) -> Vec<String> {
        args.into_iter().map(|arg| arg.into_string().unwrap()).collect()
    }

    fn execution(device: &str) -> Execution {
        Execution {
            module: "/c/m.vmfb".into(),
            function: "main".into(),
            device: device.into(),
            inputs: vec![InputArg::File(TensorFile::named("/d/x.npy")), InputArg::Literal("1xf32=2".into())],
            parameters: vec![("model".into(), "/d/w.irpa".into()), (String::new(), "/d/v.irpa".into())],
            allocators: vec!["caching".into()],
            dispatch_repeats: 1,
            run_flags: vec!["--module_mode=mmap".into()],
            named: Vec::new(),
            workers: Some(1),
        }
    }

    #[test]
    fn a_cpu_target_compiles_for_the_local_device() {
        let spec = CompileSpec {
            dispatch_repeats: 1,
            target: DeviceKind::Cpu,
            input_type: "auto".into(),
            flags: vec!["--x".into()],
        };
        let args = text(compile(&spec, Path::new("a.mlir"), Path::new("o.vmfb"), Path::new("s.json")));
        assert_eq!(
            args,
            [
                "a.mlir",
                "-o",
                "o.vmfb",
                "--iree-hal-target-device=local",
                "--iree-hal-local-target-device-backends=llvm-cpu",
                "--x",
                "--iree-scheduling-dump-statistics-format=json",
                "--iree-scheduling-dump-statistics-file=s.json",
            ]
        );
    }

    #[test]
    fn a_benchmark_command_names_module_data_and_timing() {
        let timing = Timing {
            repetitions: 8,
            iterations: None,
            min_time: Duration::from_millis(40),
            warmup: Duration::from_millis(5),
        };
        assert_eq!(
            text(execution("local-task").benchmark(&timing, Path::new("/o.json"))),
            [
                "--device=local-task",
                "--module=/c/m.vmfb",
                "--function=main",
                "--input=@/d/x.npy",
                "--input=1xf32=2",
                "--parameters=model=/d/w.irpa",
                "--parameters=/d/v.irpa",
                "--task_topology_group_count=1",
                "--device_allocator=caching",
                "--module_mode=mmap",
                "--benchmark_repetitions=8",
                "--benchmark_min_time=0.040000s",
                "--benchmark_min_warmup_time=0.005000",
                "--benchmark_out=/o.json",
                "--benchmark_out_format=json",
            ]
        );
    }

    #[test]
    fn a_module_of_repeated_dispatches_is_timed_by_the_dispatch() {
        let spec = CompileSpec {
            target: DeviceKind::Cuda,
            input_type: "auto".into(),
            dispatch_repeats: 10,
            flags: Vec::new(),
        };
        assert!(spec.flags().contains(&"--iree-hal-benchmark-dispatch-repeat-count=10".to_owned()));
        let timing =
            Timing { repetitions: 8, iterations: None, min_time: Duration::ZERO, warmup: Duration::ZERO };
        let args =
            text(Execution { dispatch_repeats: 10, ..execution("cuda") }.benchmark(&timing, Path::new("o")));
        assert!(args.contains(&"--batch_size=10".to_owned()), "{args:?}");
        let once = text(execution("cuda").benchmark(&timing, Path::new("o")));
        assert!(!once.iter().any(|arg| arg.contains("batch")), "{once:?}");
    }

    #[test]
    fn a_raw_input_is_passed_with_its_type_and_a_raw_output_without() {
        let inputs =
            ["/d/x.4x8xbf16.bin", "/d/x.npy"].map(|path| InputArg::File(TensorFile::named(path))).to_vec();
        let args =
            text(Execution { inputs, ..execution("cuda") }.verify(&[TensorFile::named("/y.4xbf16.bin")]));
        assert!(args.contains(&"--input=4x8xbf16=@/d/x.4x8xbf16.bin".to_owned()), "{args:?}");
        assert!(args.contains(&"--input=@/d/x.npy".to_owned()), "{args:?}");
        assert_eq!(args.last().map(String::as_str), Some("--output=@/y.4xbf16.bin"));
    }

    #[test]
    fn a_gpu_gets_no_worker_count() {
        let args = text(execution("cuda").verify(&[TensorFile::named("/y.npy")]));
        assert!(!args.iter().any(|arg| arg.contains("task_topology")), "{args:?}");
        assert_eq!(args.last().map(String::as_str), Some("--output=@/y.npy"));
    }
}
