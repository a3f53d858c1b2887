//! The first half of a run on one machine: export and compile, and everything the other half needs into
//! one file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::try_join_all;

use crate::model::{Event, Outcome, Progress, SideName, Stage};
use crate::numerics::TensorFile;
use crate::process::Cancel;
use crate::record::{
    BundleFile, BundleSchema, BundledBenchmark, BundledFile, BundledInput, BundledModule, BundledParameters,
    BundledSide, LintRecord, Number, OutcomeRecord, ReferenceProblem, StageRecord, ToolchainRecord,
    is_plain_path,
};
use crate::toolchain::{Installed, Lock};

use super::super::PipelineError;
use super::super::argv::InputArg;
use super::super::cache::{Cache, aside, file_sha256};
use super::super::compile;
use super::super::flags::Named;
use super::super::plan::{self, Planned, SideInput};
use super::super::prepare::{Built, Context, Prepared, StageReport, build, compile_spec};
use super::super::session::{Effort, Machine, Needed, Options, context, ready};
use super::archive::{self, TOOLS};

/// A bundle that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeBundle {
    /// Of the whole file: what the measuring machine is told to expect.
    pub sha256: String,
    pub bytes: u64,
    /// What became of every benchmark.
    pub benchmarks: Vec<(SideName, String, Outcome)>,
}

/// Exports and compiles a suite and packs it into `options.output`. `notices` are for whoever reads the
/// verdict. Where the base has a configuration of its own, that one judges.
///
/// # Errors
/// What stops a whole run, and what can't travel. A model that fails is in the bundle as such.
pub async fn make_bundle(
    sides: &[SideInput],
    notices: &[String],
    options: &Options,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<MadeBundle, PipelineError> {
    let Some(lead) = sides.iter().find(|side| side.name == SideName::Head).or(sides.first()) else {
        return Err(PipelineError::Selection("there is no side to run".to_owned()));
    };
    let plans: Vec<Vec<Planned<'_>>> = sides.iter().map(|side| plan::plan(side, &options.filter)).collect();
    plan::names(&plans)?;
    let cache = Cache::open(&options.cache);
    let Needed { tools, exporters, .. } = ready(sides, &plans, lead, &[], options, progress, cancel).await?;
    let machine = Machine::without_devices();
    let context = context(&cache, &machine, lead, options, exporters, progress, cancel);
    let effort = Effort::begin();
    let steps = plans.iter().map(Vec::len).sum();
    let stages = [Stage::Export, Stage::Compile];
    for stage in stages {
        progress.on(Event::StageStarted { stage, steps });
    }
    let jobs = plans
        .iter()
        .zip(&tools)
        .map(|(plan, tools)| try_join_all(plan.iter().map(|planned| build(&context, *planned, tools))));
    let built = try_join_all(jobs).await?;
    for stage in stages {
        progress.on(Event::StageFinished { stage });
    }
    context.interpreters.stop().await;
    progress.on(Event::Note(&effort.end(steps)));

    let mut packing = Packing { context: &context, files: BTreeMap::new() };
    let mut records = Vec::new();
    let mut benchmarks = Vec::new();
    for (((side, plan), tools), built) in sides.iter().zip(&plans).zip(&tools).zip(&built) {
        let own = side.config.file != lead.config.file;
        let config = packing.config(side, if own { side.name } else { lead.name })?;
        let declared = if own { SideName::Head } else { side.name };
        records.push(packing.side(side, (config, declared), plan, tools, built).await?);
        benchmarks.extend(plan.iter().zip(built).map(|(planned, built)| {
            let outcome = match built {
                Ok(_) => Outcome::Ok,
                Err(failed) => failed.outcome.clone(),
            };
            (side.name, planned.name().as_str().to_owned(), outcome)
        }));
    }
    let (files, from) = packing.listed();
    let manifest = BundleFile {
        schema: BundleSchema,
        benchgate: env!("CARGO_PKG_VERSION").to_owned(),
        suite: lead.config.suite.clone(),
        created: jiff::Timestamp::now().to_string(),
        judged_by: sides
            .iter()
            .find(|side| side.name == SideName::Base && side.config.file != lead.config.file)
            .map_or(lead.name, |base| base.name)
            .into(),
        made_on: machine.testbed.facts.clone(),
        files,
        sides: records,
        notices: notices.to_vec(),
    };
    let (output, cancel) = (options.output.clone(), cancel.clone());
    let packed = aside(move || archive::pack(&output, &manifest, &from, &cancel)).await?;
    Ok(MadeBundle { sha256: packed.sha256, bytes: packed.bytes, benchmarks })
}

/// Collects the files of a bundle, each once.
struct Packing<'a, 'b> {
    context: &'a Context<'b>,
    /// By name in the archive: digest, size, and where it is.
    files: BTreeMap<String, (BundledFile, PathBuf)>,
}

impl Packing<'_, '_> {
    /// The files and where they are, in one order.
    fn listed(self) -> (Vec<BundledFile>, Vec<PathBuf>) {
        self.files.into_values().unzip()
    }

    fn put(&mut self, name: String, path: &Path, sha256: String) -> Result<String, PipelineError> {
        if !is_plain_path(&name) {
            let why = format!("{} can't travel: {name:?} is not a plain path", path.display());
            return Err(PipelineError::CannotTravel(why));
        }
        let bytes = fs::metadata(path).map_err(PipelineError::io("read", path))?.len();
        let file = BundledFile { path: name.clone(), bytes, sha256 };
        self.files.insert(name.clone(), (file, path.to_owned()));
        Ok(name)
    }

    /// A file whose name in the archive is its content.
    async fn data(&mut self, folder: &str, path: &Path, ending: &str) -> Result<String, PipelineError> {
        let sha256 = self.context.digests.of(path).await?;
        self.put(format!("{folder}/{}.{ending}", &sha256[..32]), path, sha256)
    }

    /// The archive has no room for a type but the name.
    async fn tensor(&mut self, file: &TensorFile) -> Result<String, PipelineError> {
        self.data("data", &file.path, &file.ending()).await
    }

    async fn all(&mut self, files: &[TensorFile]) -> Result<Vec<String>, PipelineError> {
        let mut names = Vec::with_capacity(files.len());
        for file in files {
            names.push(self.tensor(file).await?);
        }
        Ok(names)
    }

    /// The configuration, the policy that it names and the lock beside it. The first two decide what is
    /// measured and how it is judged; the third says where the tools came from.
    fn config(&mut self, side: &SideInput, folder: SideName) -> Result<String, PipelineError> {
        let config = &side.config;
        let folder = format!("config/{folder}");
        if let Some(policy) = &config.policy_file {
            let path = config.root.join(policy);
            let name = format!("{folder}/{}", policy.to_string_lossy());
            self.put(name, &path, file_sha256(&path)?)?;
        }
        let lock = Lock::path_beside(&config.file);
        if lock.is_file() {
            let sha256 = file_sha256(&lock)?;
            self.put(format!("{folder}/benchgate.lock"), &lock, sha256)?;
        }
        self.put(format!("{folder}/benchgate.toml"), &config.file, file_sha256(&config.file)?)
    }

    async fn side(
        &mut self,
        side: &SideInput,
        (config, declared): (String, SideName),
        plan: &[Planned<'_>],
        tools: &Arc<Installed>,
        built: &[Result<Box<Built>, Box<Prepared>>],
    ) -> Result<BundledSide, PipelineError> {
        let folder = format!("{TOOLS}{}", &tools.digest[..16]);
        let mut tool = async |path: &Path, name: &str| {
            let sha256 = self.context.digests.of(path).await?;
            self.put(format!("{folder}/{name}"), path, sha256)
        };
        let run_module = tool(&tools.iree_run_module, "iree-run-module").await?;
        let benchmark_module = tool(&tools.iree_benchmark_module, "iree-benchmark-module").await?;
        // What moved is profiled where it was measured.
        if let Some(profile) = tools.iree_profile() {
            tool(&profile, "iree-profile").await?;
        }
        let targets: BTreeSet<&[String]> = plan.iter().map(|p| p.target.run_flags.as_slice()).collect();
        for flags in targets.into_iter().chain([side.side.run_flags.as_slice()]) {
            self.files_of_flags(side, flags).await?;
        }
        let mut benchmarks = Vec::with_capacity(plan.len());
        for (planned, built) in plan.iter().zip(built) {
            benchmarks.push(match built {
                Ok(built) => self.benchmark(*planned, built).await?,
                Err(failed) => record(failed, None),
            });
        }
        Ok(BundledSide {
            name: side.name.into(),
            config,
            declared: declared.into(),
            commit: side.commit.clone(),
            dirty: side.dirty,
            toolchain: ToolchainRecord::from(&tools.identity),
            run_module,
            benchmark_module,
            benchmarks,
        })
    }

    /// What flags of the runtime tools name (`--flagfile=run.txt`, `--parameters=model=w.irpa`) lies there at the
    /// same place below the folder they run in.
    async fn files_of_flags(&mut self, side: &SideInput, flags: &[String]) -> Result<(), PipelineError> {
        // A flag that names a missing file fails its benchmarks where they are checked.
        let Ok(named) = Named::find(flags, &side.side.sources) else { return Ok(()) };
        for (name, path) in named.files {
            if !is_plain_path(&name) {
                let why = format!(
                    "a runtime flag names a file that can't be bundled: {name} (only plain paths inside the \
                     sources can)"
                );
                return Err(PipelineError::CannotTravel(why));
            }
            let sha256 = self.context.digests.of(&path).await?;
            self.put(format!("{}/{name}", super::sources(side.name)), &path, sha256)?;
        }
        Ok(())
    }

    async fn benchmark(
        &mut self,
        planned: Planned<'_>,
        built: &Built,
    ) -> Result<BundledBenchmark, PipelineError> {
        let Built { prepared, source, compiled } = built;
        let mut inputs = Vec::with_capacity(source.inputs.len());
        for input in &source.inputs {
            inputs.push(match input {
                InputArg::File(file) => BundledInput::Npy(self.tensor(file).await?),
                InputArg::Literal(text) => BundledInput::Literal(text.clone()),
            });
        }
        let mut parameters = Vec::with_capacity(source.parameters.len());
        for (scope, path) in &source.parameters {
            // The tool knows the kind of an archive by the end of its name.
            let ending = path.extension().unwrap_or_default().to_string_lossy().into_owned();
            let path = self.data("parameters", path, &ending).await?;
            parameters.push(BundledParameters { scope: scope.clone(), path });
        }
        let name = format!("modules/{}.vmfb", &compiled.vmfb_sha256[..32]);
        let problem = source.reference_problem.as_ref();
        let module = BundledModule {
            path: self.put(name, &compiled.module, compiled.vmfb_sha256.clone())?,
            dispatch_count: compiled.dispatch_count,
            compiler: compiled.statistics.clone(),
            host_specific: compile::is_host_specific(&compile_spec(planned), &planned.side.side.sources),
            lowering: source.lowering.clone(),
            inputs,
            expected: self.all(&source.expected).await?,
            expected64: self.all(&source.expected64).await?,
            parameters,
            reference_problem: problem
                .map(|(code, why)| ReferenceProblem { code: (*code).into(), why: why.clone() }),
        };
        Ok(record(prepared, Some(module)))
    }
}

fn record(prepared: &Prepared, module: Option<BundledModule>) -> BundledBenchmark {
    let stage = |report: &StageReport| StageRecord {
        stage: report.stage.into(),
        status: report.status,
        seconds: Number(report.seconds),
        peak_memory_bytes: report.peak_memory_bytes,
        // The log stays on the machine that wrote it.
        log: None,
    };
    BundledBenchmark {
        name: prepared.name.as_str().to_owned(),
        outcome: OutcomeRecord::from(&prepared.outcome),
        stages: prepared.stages.iter().map(stage).collect(),
        lints: prepared.lints.iter().map(LintRecord::from).collect(),
        module,
    }
}
