//! Outputs of IREE's tools other than benchmarks: profiles, captured calls, and transcripts of iree-run-module.

use serde::Deserialize;

use benchgate_core::model::{
    Benchmark, JUDGED_BY, JUDGED_BY_OUTPUTS, Kernel, OutputCheck, Run, Stage, Verification, VerifyCode,
};

use super::build::fail;
use super::join::ByName;
use super::logs::is_status;
use super::text::lines;
use super::{LineFault, json, line_fault};

/// The tool's rows for one command; other rows and fields are ignored.
#[derive(Deserialize)]
struct ProfileRow {
    #[serde(rename = "type")]
    kind: String,
    key: Option<String>,
    count: Option<u64>,
    invalid: Option<u64>,
    total_ns: Option<f64>,
    /// A device's ticks can be converted to nanoseconds only if its clock was compared with the host's.
    time_ns_available: Option<bool>,
}

/// Reads `iree-profile dispatch --format=jsonl`: the time that a profiled process spent in each kernel. Returns the kernels
/// in the order of the module, with launches and time per iteration; the profile covers `iterations` iterations. Also
/// fails for a profile without launches, for which the tool exits with 0.
pub fn kernels(bytes: &[u8], iterations: u32) -> Result<Vec<Kernel>, String> {
    let text =
        std::str::from_utf8(bytes).map_err(|_| "iree-profile printed text that is not UTF-8".to_owned())?;
    let mut kernels: Vec<Kernel> = Vec::new();
    let take = |row: ProfileRow| -> Result<(), String> {
        // Kernels are timed by the device, or by the host if they run on the host.
        if !matches!(row.kind.as_str(), "dispatch_group" | "host_dispatch_group") {
            return Ok(());
        }
        let name = row.key.ok_or("a kernel has no name")?;
        if row.invalid.unwrap_or(0) > 0 || row.time_ns_available == Some(false) {
            return Err(format!("{name} has launches without a time"));
        }
        let total = row.total_ns.filter(|total| total.is_finite() && *total >= 0.0);
        let (count, total) = row.count.zip(total).ok_or_else(|| format!("{name} has no time"))?;
        let calls = count as f64 / f64::from(iterations);
        let nanoseconds = total / f64::from(iterations);
        // If two executables contain functions of one name, readers can't tell them apart, so they count as
        // one kernel.
        match kernels.iter_mut().find(|kernel| kernel.name == name) {
            Some(known) => {
                known.calls += calls;
                known.nanoseconds += nanoseconds;
            }
            None => kernels.push(Kernel { name, calls, nanoseconds }),
        }
        Ok(())
    };
    json::parse_stream(text, take)
        .map_err(|fault| format!("iree-profile, line {}: {}", fault.line, fault.what))?;
    if kernels.is_empty() {
        return Err("the profiler recorded no kernel".to_owned());
    }
    Ok(kernels)
}

/// One line of the tool's output; most lines describe other operations.
#[derive(Deserialize)]
struct Record {
    operation: Option<String>,
    related_object_id: Option<u64>,
    payload: Option<Payload>,
}

#[derive(Deserialize)]
struct Payload {
    data_range: Option<ByteRange>,
}

#[derive(Deserialize)]
struct ByteRange {
    offset: u64,
    length: u64,
}

/// An executable inside a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapturedExecutable {
    /// The number by which the runtime can exchange it.
    pub id: u64,
    /// Offset of its content in the capture.
    pub offset: u64,
    pub length: u64,
}

impl CapturedExecutable {
    /// Returns its content; `None` if the capture ends before it.
    pub fn content<'a>(&self, capture: &'a [u8]) -> Option<&'a [u8]> {
        let start = usize::try_from(self.offset).ok()?;
        capture.get(start..start.checked_add(usize::try_from(self.length).ok()?)?)
    }
}

/// Reads `iree-dump-replay --format=jsonl`: returns the executables of a capture, in the order in which the call loads
/// them.
///
/// # Errors
/// The output has another form, or the capture loads no executable.
pub fn captured_executables(printed: &[u8]) -> Result<Vec<CapturedExecutable>, String> {
    let text = std::str::from_utf8(printed)
        .map_err(|_| "iree-dump-replay printed text that is not UTF-8".to_owned())?;
    let mut found = Vec::new();
    let take = |record: Record| {
        if record.operation.as_deref() != Some("executable_cache.prepare_executable") {
            return Ok(());
        }
        let range = record.payload.and_then(|payload| payload.data_range);
        let (id, range) = record.related_object_id.zip(range).ok_or("an executable without content")?;
        found.push(CapturedExecutable { id, offset: range.offset, length: range.length });
        Ok(())
    };
    json::parse_stream(text, take)
        .map_err(|fault| format!("iree-dump-replay, line {}: {}", fault.line, fault.what))?;
    if found.is_empty() { Err("the captured call loads no executable".to_owned()) } else { Ok(found) }
}

/// Returns whether this line begins a function's transcript.
pub(super) fn is_exec(line: &str) -> bool {
    line.strip_prefix("EXEC @").is_some_and(|name| !name.trim().is_empty())
}

/// The function of the last `EXEC` line, as far as it was read.
#[derive(Default)]
struct Function {
    name: String,
    outputs: Vec<OutputCheck>,
    /// The values of each output; empty until they are read.
    printed: Vec<String>,
    success: bool,
    failures: Vec<String>,
    error: Option<String>,
}

/// Reads a log with any number of transcripts of iree-run-module: `EXEC @main`, result lines, and `[SUCCESS]` or
/// `[FAILED]`. Transcripts contain no times, but show whether a function ran and whether its outputs were the expected
/// ones.
pub(super) fn read_run_module(text: &str) -> Result<Run, LineFault> {
    let mut benchmarks = ByName::default();
    let mut current: Option<Function> = None;
    for line in lines(text) {
        let text = line.text.trim_end();
        if let Some(name) = text.strip_prefix("EXEC @") {
            if let Some(done) = current.take() {
                benchmarks.push(done.finish());
            }
            current = Some(Function { name: name.trim().to_owned(), ..Function::default() });
            continue;
        }
        let Some(function) = &mut current else {
            if is_status(text) {
                benchmarks.push(failed_before_exec(text, line.number)?);
            }
            continue;
        };
        if let Some(index) = result_index(text) {
            function.outputs.push(OutputCheck {
                index,
                code: VerifyCode::VerifierSkipped,
                divergence: None,
                why: None,
            });
            // A host scalar is printed on the result line itself.
            let own = text.split_once("]:").map_or("", |(_, value)| value.trim());
            function.printed.push(if own.contains('=') { own.to_owned() } else { String::new() });
        } else if let Some(values) =
            function.printed.last_mut().filter(|it| text.contains('=') && (it.is_empty() || is_value(text)))
        {
            // A text with a second value can't be compared.
            if !values.is_empty() {
                values.push('\n');
            }
            values.push_str(text);
        } else if text.starts_with("[SUCCESS]") {
            function.success = true;
        } else if let Some(why) = text.strip_prefix("[FAILED]") {
            function.failures.push(why.trim().to_owned());
        } else if function.error.is_none() && is_status(text) {
            function.error = Some(text.trim().to_owned());
        }
    }
    if let Some(done) = current {
        benchmarks.push(done.finish());
    }
    Ok(Run { benchmarks: benchmarks.finish(), ..Run::default() })
}

/// Returns a failed benchmark. If the tool can't load the module or find the function, it prints only a
/// status.
fn failed_before_exec(status: &str, line: u64) -> Result<Benchmark, LineFault> {
    let name = status.split_once("function '").and_then(|(_, rest)| rest.split_once('\''));
    let Some((name, _)) = name.filter(|(name, _)| !name.is_empty()) else {
        return Err(line_fault(line, format!("the tool failed before it ran a function: {}", status.trim())));
    };
    let mut benchmark = Benchmark::new(name);
    fail(&mut benchmark, Stage::Benchmark, status.trim());
    Ok(benchmark)
}

/// Returns the index in `result[0]: hal.buffer_view`.
fn result_index(line: &str) -> Option<usize> {
    line.strip_prefix("result[")?.split_once("]:")?.0.parse().ok()
}

/// Returns whether a line begins like a printed value: `4x8xf32=[…`.
fn is_value(line: &str) -> bool {
    let Some((shape, _)) = line.split_once('=') else { return false };
    let mut parts = shape.rsplit('x');
    let is_type = parts.next().is_some_and(|kind| {
        kind.starts_with(|first: char| first.is_ascii_lowercase())
            && kind.chars().all(|letter| letter.is_ascii_alphanumeric())
    });
    is_type && parts.all(|size| size.parse::<u64>().is_ok())
}

impl Function {
    fn finish(self) -> Benchmark {
        let mut benchmark = Benchmark::new(&self.name);
        benchmark.labels.insert("function".to_owned(), self.name.clone());
        if let Some(error) = self.error {
            fail(&mut benchmark, Stage::Benchmark, error);
            return benchmark;
        }
        // Outputs are compared by their numbers, not in the order in which they are printed.
        let mut results: Vec<(OutputCheck, String)> = self.outputs.into_iter().zip(self.printed).collect();
        results.sort_by_key(|(output, _)| output.index);
        let (mut outputs, printed): (Vec<_>, Vec<_>) = results.into_iter().unzip();
        let (code, why) = if let Some(first) = self.failures.first() {
            // The tool prints the outputs that differ in place of the result lines.
            for failure in &self.failures {
                if let Some(index) = result_index(failure) {
                    let why = Some(failure.clone());
                    outputs.push(OutputCheck { index, code: VerifyCode::Fail, divergence: None, why });
                }
            }
            (VerifyCode::Fail, Some(first.clone()))
        } else if self.success {
            outputs.iter_mut().for_each(|output| output.code = VerifyCode::Pass);
            (VerifyCode::Pass, None)
        } else if outputs.is_empty() {
            // The transcript ends after EXEC: the tool crashed or the file is cut off.
            fail(&mut benchmark, Stage::Benchmark, "the transcript ends without a result");
            return benchmark;
        } else {
            (VerifyCode::VerifierSkipped, Some("no expected output was given".to_owned()))
        };
        if code == VerifyCode::Pass {
            benchmark.labels.insert(JUDGED_BY.to_owned(), JUDGED_BY_OUTPUTS.to_owned());
        }
        benchmark.printed = printed;
        benchmark.verification = Some(Verification { outputs, ..Verification::bare(code, why) });
        benchmark
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of iree-profile 3.13.0 for 20 iterations on local-task, shortened to two of twelve kernels.
    const HOST: &str = r#"{"type":"dispatch_summary","mode":"aggregate","filter":"*","total_dispatches":0,"matched_dispatches":0,"valid_dispatches":0,"invalid_dispatches":0,"aggregate_groups":0,"total_host_dispatches":300,"matched_host_dispatches":300,"valid_host_dispatches":300,"invalid_host_dispatches":0,"host_aggregate_groups":12}
{"type":"host_dispatch_group","timing_source":"host_execution_event","time_domain":"iree_host_time_ns","duration_time_domain":"iree_host_duration_ns","physical_device_ordinal":0,"executable_id":1,"function_ordinal":0,"key":"main_dispatch_0_reduction_197x192_f32","count":40,"valid":40,"invalid":0,"min_ns":13810,"avg_ns":16980.250,"stddev_ns":8672.581,"max_ns":70254,"total_ns":679210,"total_tile_count":7880,"total_tile_duration_sum_ns":713312,"last_workgroup_count":[197,1,1],"last_workgroup_size":[1,1,1]}
{"type":"host_dispatch_group","timing_source":"host_execution_event","time_domain":"iree_host_time_ns","duration_time_domain":"iree_host_duration_ns","physical_device_ordinal":0,"executable_id":1,"function_ordinal":4,"key":"main_dispatch_4_elementwise_4x197x48_f32","count":20,"valid":20,"invalid":0,"min_ns":2678,"avg_ns":4467.950,"stddev_ns":1089.019,"max_ns":6369,"total_ns":89359,"total_tile_count":20,"last_workgroup_count":[1,1,1],"last_workgroup_size":[1,1,1]}
"#;

    /// Output for 3 iterations on Mesa's Vulkan device.
    const DEVICE: &str = r#"{"type":"dispatch_summary","mode":"aggregate","filter":"*","total_dispatches":45,"valid_dispatches":45,"invalid_dispatches":0}
{"type":"dispatch_group","physical_device_ordinal":0,"executable_id":1,"function_ordinal":0,"key":"main_dispatch_0_reduction_197x192_f32","count":6,"valid":6,"invalid":0,"min_ticks":197715,"avg_ticks":3275006.167,"stddev_ticks":5734875.667,"max_ticks":14581027,"total_ticks":19650037,"clock_fit_available":true,"time_ns_available":true,"min_ns":197715,"avg_ns":3275006.167,"stddev_ns":5734875.667,"max_ns":14581027,"total_ns":19650037,"last_workgroup_count":[4,1,1],"last_workgroup_size":[64,1,1]}
"#;

    #[test]
    fn kernels_are_counted_per_iteration_in_the_order_of_the_module() {
        let read = kernels(HOST.as_bytes(), 20).unwrap();
        let names: Vec<&str> = read.iter().map(|kernel| kernel.name.as_str()).collect();
        assert_eq!(
            names,
            ["main_dispatch_0_reduction_197x192_f32", "main_dispatch_4_elementwise_4x197x48_f32"]
        );
        assert_eq!((read[0].calls, read[0].nanoseconds), (2.0, 33_960.5));
        assert_eq!((read[1].calls, read[1].nanoseconds), (1.0, 4_467.95));
        assert_eq!(kernels(DEVICE.as_bytes(), 3).unwrap()[0].calls, 2.0);
    }

    #[test]
    fn a_function_of_two_executables_is_one_kernel() {
        let twice = format!("{DEVICE}{}", DEVICE.lines().last().unwrap().replace("_id\":1", "_id\":2"));
        let read = kernels(twice.as_bytes(), 3).unwrap();
        assert_eq!((read.len(), read[0].calls), (1, 4.0));
    }

    #[test]
    fn what_was_not_timed_is_a_problem_and_no_zero() {
        let problem = |text: &str| kernels(text.as_bytes(), 20).unwrap_err();
        assert_eq!(problem(HOST.lines().next().unwrap()), "the profiler recorded no kernel");
        assert_eq!(problem(""), "the profiler recorded no kernel");
        let unfit = DEVICE.replace("\"time_ns_available\":true", "\"time_ns_available\":false");
        assert!(problem(&unfit).ends_with("has launches without a time"));
        assert!(problem(&DEVICE.replace("\"invalid\":0,\"min", "\"invalid\":1,\"min")).contains("without a"));
        assert!(problem(&DEVICE.replace(",\"total_ns\":19650037", "")).ends_with("has no time"));
        assert!(problem("{\"type\":").starts_with("iree-profile, line 1: "));
    }

    #[test]
    fn executables_are_listed_with_their_numbers_and_their_place_in_the_capture() {
        let line = r#"{"kind":"operation","operation":"executable_cache.prepare_executable","related_object_id":4,
            "payload":{"data_range":{"offset":2,"length":3},"constant_count":0}}"#;
        let other = r#"{"kind":"object","operation":"none","payload":{"identifier_length":0}}"#;
        let found = captured_executables(format!("{other}\n{line}\n").as_bytes()).unwrap();
        assert_eq!(found, [CapturedExecutable { id: 4, offset: 2, length: 3 }]);
        assert_eq!(found[0].content(b"abcdef"), Some(&b"cde"[..]));
        assert_eq!(found[0].content(b"abcd"), None);
        for bad in [other, "", "no JSON", &line.replace("4,", "null,"), &line.replace("data_range", "x")] {
            assert!(captured_executables(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
