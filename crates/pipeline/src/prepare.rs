//! Prepares one benchmark of one side: from its source to a verified module that is ready to be measured.
//!
//! Identifies the runtime on this machine by the content of its files: its programs, their libraries, the
//! drivers that a device needs, and every other file that they open. The files are observed while nothing is
//! timed: in the verified call, and in a start of the benchmark tool that measures nothing.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use benchgate_config::ModelSource;
use benchgate_core::model::{
    Artifact, DeviceKind, Event, GeneratedCode, Lint, LintCode, Metric, Outcome, SideName, Stage,
    Verification, VerifyCode, Workload, excerpt,
};
use benchgate_core::record::StageStatus;
use benchgate_host::files;
use benchgate_host::process::{Command, Opened};
use benchgate_ingest::CompiledCode;
use benchgate_toolchain::{Environment, Installed};

use super::argv::{CompileSpec, Execution};
use super::cache::{KeyBuilder, aside};
use super::calling_module::NoCaller;
use super::candidates::Measurable;
use super::compile::{self, CompileJob};
use super::export::{self, ExportJob};
use super::flags::{self, Named};
use super::host::Host;
use super::interpreters::Exporters;
use super::later_calls;
use super::plan::PlannedBenchmark;
use super::stage::{Compiled, Prepared, PreparedSource, StageError, StageFailure, Staged, ended};
use super::targets::{self, Presence};
use super::verify::{self, VerifyJob, add_inputs, add_tensors};
use super::{PipelineError, code, generated};

/// Exports and compiles, which are the stages that need Python or a compiler.
pub(super) async fn build<'a>(
    host: &Host<'_>,
    exporters: &Exporters,
    planned: PlannedBenchmark<'a>,
    tools: &Installed,
) -> Result<Prepared<'a>, PipelineError> {
    let mut prepared = Prepared::new(planned);
    // If an environment is missing, only the benchmarks that need it fail. This is not a finding about the
    // model.
    if let Some(environment) = Environment::for_model(planned.model)
        && let Err(failure) = exporters.environment(environment)
    {
        prepared.fail(Stage::Toolchain, failure);
        return Ok(prepared);
    }
    let work = source(host, exporters, planned);
    let Some(source) = prepared.stage(Stage::Export, host.progress, work).await? else {
        return Ok(prepared);
    };
    prepared.note_damage(source.damaged.as_ref(), host.progress);
    let mlir = source.mlir.clone();
    let stores =
        aside(move || code::suspect_operation(&mlir).map_err(PipelineError::io("read", &mlir))).await?;
    if let Some(name) = stores {
        prepared.lints.push(Lint::new(LintCode::Stateful, format!("the model's source contains `{name}`")));
    }
    if !source.left_out.is_empty() {
        let names = excerpt(&source.left_out.join(", "), 80);
        let why = format!("the export leaves out what each call of the model stores in `{names}`");
        prepared.lints.push(Lint::new(LintCode::KeptState, why));
    }
    let job = compile_job(planned, &source, tools);
    if let Some(root) = &host.ir {
        compile::dump_ir(host, planned, &job, root).await?;
    }
    let planned_flags = job.spec.flags.clone();
    let compiled = prepared.stage(Stage::Compile, host.progress, compile::compile(host, &job)).await?;
    prepared.note_damage(compiled.as_ref().and_then(|compiled| compiled.damaged.as_ref()), host.progress);
    let cached = compiled.as_ref().is_some_and(|compiled| compiled.report.status == StageStatus::Cached);
    if let Some(flag) = flags::first_that_writes(&planned_flags).filter(|_| cached) {
        let text = format!(
            "{} {}: `{flag}` wrote nothing, because the module was compiled by an earlier run; `--dump-ir` \
             compiles again, and so does another --cache-dir",
            planned.name(),
            planned.side.name
        );
        host.progress.on(Event::Note(&text));
    }
    if let Some(stores) = compiled.as_ref().and_then(|compiled| compiled.stores.clone()) {
        prepared.lints.push(Lint::new(LintCode::Stateful, stores));
    }
    if let (Some(folder), Some(compiled)) = (&host.modules, &compiled) {
        keep_module(folder, planned, &compiled.module)?;
    }
    if let Some(compiled) = compiled.as_ref().filter(|_| planned.target.is_timed()) {
        match later_calls::caller(host, planned, tools, &compiled.module).await? {
            Ok(caller) => prepared.caller = Some(caller),
            Err(NoCaller::NoFunction(why)) => {
                prepared.verification =
                    Some(Verification::bare(VerifyCode::ExceptionRaised, Some(why.clone())));
                prepared.fail(Stage::Verify, StageFailure::new(why));
            }
            Err(NoCaller::Unchecked(why)) => {
                let why = format!("a second call in the same process could not be checked: {why}");
                prepared.lints.push(Lint::new(LintCode::Stateful, why));
            }
            Err(NoCaller::Unawaited) => {
                let why = "the module awaits none of the work that it submits, so only submitting it would be timed";
                prepared.lints.push(Lint::new(LintCode::Stateful, why));
            }
        }
    }
    if let Some(compiled) = compiled.as_ref().filter(|_| planned.side.config.measure.compile_instructions) {
        let name = Metric::COMPILE_INSTRUCTIONS.name;
        match compile::instructions_of_compiler(host, &job, compiled).await {
            Ok(count) => prepared.code_facts.push((Metric::COMPILE_INSTRUCTIONS, count)),
            Err(StageError::Run(error)) => return Err(error),
            Err(StageError::Benchmark(failure)) => {
                let why = format!("{name}: {}", failure.why);
                prepared.lints.push(Lint::new(LintCode::DroppedMetric, why));
            }
        }
    }
    prepared.compiled = compiled;
    prepared.source = Some(source);
    Ok(prepared)
}

/// The compile job of a benchmark on one side.
pub(super) fn compile_job<'a>(
    planned: PlannedBenchmark<'a>,
    source: &'a PreparedSource,
    tools: &'a Installed,
) -> CompileJob<'a> {
    CompileJob {
        tools,
        source: &source.mlir,
        source_sha256: &source.mlir_sha256,
        spec: compile_spec(planned),
        folder: &planned.side.side.sources,
        timeout: planned.side.config.measure.compile_timeout,
    }
}

/// Copies a module to a folder that the user named. Benchmarks of the same module share the copy.
fn keep_module(folder: &Path, planned: PlannedBenchmark<'_>, module: &Path) -> Result<(), PipelineError> {
    let side = if planned.side.name == SideName::Base { ".base" } else { "" };
    let path = folder.join(format!("{}-{}{side}.vmfb", planned.model.name, planned.target.name));
    let bytes = fs::read(module).map_err(PipelineError::io("read", module))?;
    fs::create_dir_all(folder).map_err(PipelineError::io("create", folder))?;
    files::write(&path, &bytes).map_err(PipelineError::io("write", &path))
}

/// Looks for the device and verifies the module, on the machine that measures. `paired` tells whether there
/// is another side to compare the outputs with.
pub(super) async fn check<'a>(
    host: &Host<'_>,
    mut prepared: Prepared<'a>,
    tools: &Installed,
    paired: bool,
) -> Result<Prepared<'a>, PipelineError> {
    let planned = prepared.planned;
    let (Some(source), Some(compiled), true) =
        (&prepared.source, &prepared.compiled, prepared.outcome.is_ok())
    else {
        return Ok(prepared);
    };
    let made = async {
        let execution = execution(host, planned, source, compiled)?;
        let vmfb_sha256 = compiled.vmfb_sha256.clone();
        Ok((artifact(host, &execution, source, planned, tools, vmfb_sha256).await?, execution))
    };
    let (artifact, execution) = match made.await {
        Ok(made) => made,
        Err(StageError::Run(error)) => return Err(error),
        Err(StageError::Benchmark(failure)) => {
            prepared.fail(Stage::Verify, failure);
            return Ok(prepared);
        }
    };
    prepared.artifact = Some(artifact);
    let dispatches = match compiled.dispatch_count {
        Some(0) => Some("the module repeats no dispatch"),
        None => Some("the compiler does not report that the module has dispatches to repeat"),
        Some(_) => None,
    };
    if let Some(why) = dispatches.filter(|_| planned.model.dispatch_repeats > 1) {
        let detail = format!("`dispatch-repeats` divides the time, but {why}");
        prepared.lints.push(Lint::new(LintCode::WorkloadChanged, detail));
    }
    if planned.target.is_timed() {
        let read = code::read(host, planned.target, &execution.module).await?;
        let unknown = |why| GeneratedCode { problem: Some(why), ..GeneratedCode::default() };
        prepared.code = Some(read.map_or_else(unknown, CompiledCode::generated));
    }
    if planned.target.judges_code() {
        match code::read(host, planned.target, &execution.module).await? {
            Ok(code) => {
                prepared.architecture = Some(code.architecture());
                prepared.code_facts.extend(code.facts());
            }
            Err(why) => {
                let reason = format!("the generated code can't be judged: {why}");
                prepared.outcome = Outcome::Unsupported { reason };
            }
        }
        return Ok(prepared);
    }
    match targets::presence(host, tools, planned.target).await? {
        Presence::Present => {}
        // The modules of the two sides are still compared, but nothing is timed.
        Presence::Absent { what, said } => {
            prepared.lints.push(Lint::new(LintCode::NoDevice, said));
            prepared.outcome = Outcome::Unsupported { reason: format!("{what} (compiled only)") };
            return Ok(prepared);
        }
        // This is a fault of the machine, as if a process could not be measured.
        Presence::Broken { why } => {
            prepared.fail(Stage::Benchmark, StageFailure::new(why));
            return Ok(prepared);
        }
    }
    let source = source.clone();
    let caller = prepared.caller.take();
    let is_known = prepared.lints.iter().any(|lint| lint.code == LintCode::Stateful);
    if caller.is_none() && planned.target.is_timed() && !is_known {
        let why = "the bundle lacks the data for checking a second call in the same process";
        prepared.lints.push(Lint::new(LintCode::Stateful, why));
    }
    let job =
        VerifyJob { planned, tools, execution: &execution, source: &source, caller: caller.as_ref(), paired };
    let verified = prepared.stage(Stage::Verify, host.progress, verify::verify(host, &job)).await?;
    let Some(verified) = verified else {
        if let Outcome::Failed { why, .. } = &prepared.outcome {
            prepared.verification = Some(Verification::bare(VerifyCode::ExceptionRaised, Some(why.clone())));
        }
        return Ok(prepared);
    };
    // There is a reference, but the outputs could not be verified against it.
    if verified.verification.code == VerifyCode::VerifierSkipped && !source.expected.is_empty() {
        let why = verified.verification.why.clone().unwrap_or_default();
        prepared.lints.push(Lint::new(LintCode::VacuousReference, why));
    }
    if let Some(how) = verified.stateful {
        prepared.lints.push(Lint::new(LintCode::Stateful, how));
    }
    let ready = Measurable {
        execution: &execution,
        tools,
        env: &planned.target.env,
        folder: planned.side.side.sources.as_path(),
    };
    let loaded = digest(host, &ready, verified.opened.as_ref()).await?;
    if loaded.is_none() {
        let why = "the files that the runtime opened could not be observed";
        prepared.lints.push(Lint::new(LintCode::Unobserved, why));
    }
    if let Some(artifact) = &mut prepared.artifact {
        // If the files of a side are unknown, they must not count as equal to the other side's.
        let loaded = loaded.as_deref().unwrap_or(planned.side.name.as_str());
        let key = KeyBuilder::new("execution/5").text("given", &artifact.execution_sha256);
        artifact.execution_sha256 = key.text("loaded", loaded).finish();
        if let Some(workload) = &mut artifact.workload {
            workload.changed_inputs = verified.changed_inputs;
        }
    }
    prepared.verification = Some(verified.verification);
    prepared.calls = verified.calls;
    prepared.execution = planned.target.is_timed().then_some(execution);
    Ok(prepared)
}

pub(super) fn compile_spec(planned: PlannedBenchmark<'_>) -> CompileSpec {
    let flags = [&planned.target.flags, &planned.model.flags, &planned.side.side.flags];
    CompileSpec {
        target: DeviceKind::of_backend(&planned.target.backend).unwrap_or(DeviceKind::Other),
        input_type: planned.model.input_type.clone(),
        dispatch_repeats: planned.model.dispatch_repeats,
        flags: flags.into_iter().flatten().cloned().collect(),
    }
}

/// Returns a model's source, and exports it first if it is a Python model.
async fn source(
    host: &Host<'_>,
    exporters: &Exporters,
    planned: PlannedBenchmark<'_>,
) -> Staged<PreparedSource> {
    let folder = &planned.side.side.sources;
    let model = planned.model;
    let ModelSource::Mlir(path) = &model.source else {
        let (Some(exporter), Some(environment)) = (model.exporter, Environment::for_model(model)) else {
            return Err(StageFailure::new("the model names no exporter").into());
        };
        return export::export(host, ExportJob { planned, exporter, environment, exporters }).await;
    };
    let mlir = folder.join(path);
    Ok(PreparedSource {
        mlir_sha256: host.digests.sha256(&mlir).await?,
        inputs: generated::inputs(host, planned).await?,
        expected: model.expected.iter().map(|file| file.below(folder)).collect(),
        parameters: generated::parameters(host, planned, &mlir).await?,
        mlir,
        expected64: model.expected_f64.iter().map(|file| file.below(folder)).collect(),
        expected64_problem: None,
        left_out: Vec::new(),
        reference_problem: None,
        report: ended(Stage::Export, StageStatus::Skipped, 0.0),
        lowering: None,
        read: Vec::new(),
        absent: Vec::new(),
        observed: None,
        damaged: None,
    })
}

fn execution(
    host: &Host<'_>,
    planned: PlannedBenchmark<'_>,
    source: &PreparedSource,
    compiled: &Compiled,
) -> Result<Execution, StageFailure> {
    let side = &planned.side.side;
    let run_flags: Vec<String> = planned.target.run_flags.iter().chain(&side.run_flags).cloned().collect();
    let by_flags = Named::find(&run_flags, &side.sources).map_err(StageFailure::new)?;
    let by_values = Named::in_values(planned.target.env.values(), &side.sources);
    Ok(Execution {
        module: compiled.module.clone(),
        function: planned.model.function.clone(),
        device: planned.target.device.clone(),
        inputs: source.inputs.clone(),
        parameters: source.parameters.clone(),
        allocators: planned.target.allocators.clone(),
        dispatch_repeats: planned.model.dispatch_repeats,
        run_flags,
        named: by_flags.files.into_values().chain(by_values.files.into_values()).collect(),
        workers: host.cpus_for(&planned.target.device).map(|cpus| cpus.len()),
    })
}

/// Identifies everything that is executed by its content: the module, and all files that run with it.
async fn artifact(
    host: &Host<'_>,
    execution: &Execution,
    source: &PreparedSource,
    planned: PlannedBenchmark<'_>,
    tools: &Installed,
    vmfb_sha256: String,
) -> Staged<Artifact> {
    let workload = workload(host, execution, source, planned).await?;
    let folder = &planned.side.side.sources;
    let named = Named::find(&execution.run_flags, folder).map_err(StageFailure::new)?;
    let mut key = KeyBuilder::new("execution/4")
        .text("tools", &tools.digest)
        .text("device", &workload.device)
        .text("inputs", &workload.inputs_sha256)
        .text("settings", &workload.settings_sha256)
        .list("flag", &execution.run_flags)
        .list("workers", execution.workers.map(|workers| workers.to_string()));
    if !host.claims_identity {
        key = key.text("side", planned.side.name.as_str());
    }
    key = named.add_to(key, &host.digests).await?;
    for (scope, path) in &execution.parameters {
        key = key.text("scope", scope).text("parameters", &host.digests.sha256(path).await?);
    }
    Ok(Artifact { vmfb_sha256, execution_sha256: key.finish(), workload: Some(workload) })
}

/// Identifies the work that the module is asked to do. Tools, parameters and compile flags are not part of
/// it, because the gate judges changes to them.
async fn workload(
    host: &Host<'_>,
    execution: &Execution,
    source: &PreparedSource,
    planned: PlannedBenchmark<'_>,
) -> Staged<Workload> {
    let (side, config) = (&planned.side.side, &planned.side.config);
    let digests = &host.digests;
    // If one configuration declares different flags for its two sides, comparing them is the purpose, so they
    // don't change the workload. If base and head have configurations with different declarations, the
    // workload differs. A side without flags of its own is like one that is not declared.
    let of_base = config.base.as_ref().map(|base| &base.run_flags);
    let of_base = of_base.filter(|flags| **flags != config.head.run_flags);
    let flags = if of_base.is_none() { &execution.run_flags } else { &planned.target.run_flags };
    let named = Named::find(flags, &side.sources).map_err(StageFailure::new)?;
    let mut settings = KeyBuilder::new("workload-settings/1")
        .text("function", &execution.function)
        .list("flag", &planned.target.run_flags)
        .list("allocator", &execution.allocators)
        .text("dispatch-repeats", &execution.dispatch_repeats.to_string())
        .list("env", planned.target.env.iter().map(|(name, value)| format!("{name}={value}")));
    for flags in of_base.into_iter().chain([&config.head.run_flags]) {
        settings = settings.list("side-flag", flags);
    }
    settings = named.add_to(settings, digests).await?;
    settings = Named::in_values(planned.target.env.values(), &side.sources).add_to(settings, digests).await?;
    let inputs = add_inputs(KeyBuilder::new("inputs"), &execution.inputs, digests).await?;
    let mut references = [None, None];
    for (found, files) in references.iter_mut().zip([&source.expected, &source.expected64]) {
        if !files.is_empty() {
            *found = Some(add_tensors(KeyBuilder::new("reference"), files, digests).await?.finish());
        }
    }
    let [reference_sha256, reference64_sha256] = references;
    Ok(Workload {
        device: execution.device.clone(),
        inputs_sha256: inputs.finish(),
        settings_sha256: settings.finish(),
        reference_sha256,
        reference64_sha256,
        changed_inputs: Vec::new(),
        left_out: Some(source.left_out.clone()),
    })
}

/// Time limit for starting the tool. Loading a large driver for the first time takes seconds.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The digest of the files that a benchmark's processes load. `verified` are the files that the verified call
/// opened. `None` if the observation is incomplete.
pub(super) async fn digest(
    host: &Host<'_>,
    ready: &Measurable<'_>,
    verified: Option<&Opened>,
) -> Result<Option<String>, PipelineError> {
    let benchmark = &ready.tools.iree_benchmark_module;
    let key = (benchmark.clone(), ready.env.clone(), ready.folder.to_owned());
    let start = async || {
        // With `--help`, the tool loads its libraries but opens no device.
        let command =
            Command::new(benchmark, TIMEOUT).arg("--help").cwd(ready.folder).envs(ready.env).observed();
        Ok::<_, PipelineError>(host.run(&command).await?.opened.map(Arc::new))
    };
    let started = host.loaded.get(key, start).await?;
    let (Some(verified), Some(started)) = (verified, started) else {
        host.note_unobserved();
        return Ok(None);
    };
    let scratch = super::trace::clean(&host.scratch);
    // Files are identified without their folders, because the sides' sources and tools are in different ones.
    let mut files: BTreeSet<(OsString, String)> = BTreeSet::new();
    for path in verified.read.union(&started.read) {
        // The module is part of the key already, and the scratch folder only contains results.
        if path.starts_with(&scratch) || *path == ready.execution.module {
            continue;
        }
        if let Some(sha256) = host.digests.readable(path).await {
            files.insert((name(path), sha256));
        }
    }
    let key = files.iter().fold(KeyBuilder::new("loaded/1"), |key, (name, sha256)| {
        key.bytes("name", name.as_encoded_bytes()).text("is", sha256)
    });
    Ok(Some(key.finish()))
}

fn name(path: &Path) -> OsString {
    path.file_name().unwrap_or_default().to_owned()
}
