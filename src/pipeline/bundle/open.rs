//! The second half of a run, on the machine with the device: unpack, verify, measure.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::try_join_all;

use crate::config;
use crate::files::Scratch;
use crate::model::{Event, Outcome, Progress, SideName, Stage, Testbed, Toolchain, VerifyCode};
use crate::numerics::TensorFile;
use crate::process::Cancel;
use crate::record::{BundleFile, BundleOrigin, BundledBenchmark, BundledInput, BundledModule, BundledSide};
use crate::toolchain::{Installed, Lock};

use super::super::PipelineError;
use super::super::argv::InputArg;
use super::super::assemble::PreparedSide;
use super::super::backends;
use super::super::cache::{Cache, aside};
use super::super::compile::Compiled;
use super::super::divergence;
use super::super::plan::{self, Filter, Planned, SideInput};
use super::super::prepare::{
    Built, Context, Prepared, Source, StageFailure, StageReport, check, failed, labels_of_export, unprepared,
};
use super::super::session::{
    Beside, Effort, Exporters, Machine, Options, Session, context, measure_and_record,
};
use super::archive;

/// A bundle, unpacked and found whole. Dropped, its files are gone.
#[derive(Debug)]
pub struct OpenBundle {
    folder: Scratch,
    contents: BundleFile,
    /// Digest by name in the archive.
    digests: BTreeMap<String, String>,
    tools: Vec<Arc<Installed>>,
    /// Of the whole archive.
    pub sha256: String,
    /// What is measured; the command line may still change how long.
    pub sides: Vec<SideInput>,
    /// What a reader of the verdict must know before anything else.
    pub notices: Vec<String>,
}

/// Unpacks a bundle below `cache` and checks all of it. `expected` is the digest it must have, where its
/// maker's word came another way.
///
/// # Errors
/// The bundle is not whole, not consistent, or not what was expected.
pub async fn open_bundle(
    file: &Path,
    cache: &Path,
    expected: Option<&str>,
    cancel: &Cancel,
) -> Result<OpenBundle, PipelineError> {
    let folder = Cache::open(cache).stage()?;
    let (contents, sha256) = {
        let (file, folder) = (file.to_owned(), folder.path().to_owned());
        let (expected, cancel) = (expected.map(str::to_owned), cancel.clone());
        aside(move || archive::unpack(&file, &folder, expected.as_deref(), &cancel)).await?
    };
    let refused = |why: String| PipelineError::Bundle { path: file.to_owned(), why };
    let read = |side: &BundledSide| {
        config::load_judging_within(&folder.path().join(&side.config), folder.path())
            .map_err(|error| refused(error.to_string()))
    };
    let judge = contents.sides.iter().find(|side| side.name == contents.judged_by);
    let judge = judge.map(read).transpose()?;
    let mut sides = Vec::with_capacity(contents.sides.len());
    let mut tools = Vec::with_capacity(contents.sides.len());
    for side in &contents.sides {
        let name = side.name.0;
        let mut config = read(side)?;
        if let Some(judge) = &judge {
            config.judge_by(judge);
        }
        let Some(mut declared) = config.side(side.declared.0).cloned() else {
            return Err(refused(format!("its configuration has no side {}", side.declared.0)));
        };
        declared.sources = folder.path().join(super::sources(name));
        fs::create_dir_all(&declared.sources).map_err(PipelineError::io("create", &declared.sources))?;
        let paths = [&side.run_module, &side.benchmark_module].map(|tool| folder.path().join(tool));
        if [&side.run_module, &side.benchmark_module].iter().any(|tool| !tool.starts_with(archive::TOOLS)) {
            return Err(refused("its tools do not lie in `tools`".to_owned()));
        }
        let identity = Toolchain::from(&side.toolchain);
        tools.push(Arc::new(Installed::runtime_alone(&declared.pin, identity, folder.path(), paths).await?));
        sides.push(SideInput {
            name,
            config,
            side: declared,
            lock: Lock::default(),
            commit: side.commit.clone(),
            dirty: side.dirty,
        });
    }
    let digests = contents.files.iter().map(|file| (file.path.clone(), file.sha256.clone())).collect();
    let notices = contents.notices.clone();
    let open = OpenBundle { folder, digests, tools, sha256, sides, notices, contents };
    for (input, side) in open.sides.iter().zip(&open.contents.sides) {
        let planned = plan::plan(input, &Filter::default());
        let unknown = side
            .benchmarks
            .iter()
            .find(|benchmark| planned.iter().all(|planned| planned.name().as_str() != benchmark.name));
        if let Some(unknown) = unknown {
            return Err(refused(format!("its configuration has no benchmark {:?}", unknown.name)));
        }
    }
    Ok(open)
}

impl OpenBundle {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn side(&self, name: SideName) -> Option<&BundledSide> {
        self.contents.sides.iter().find(|side| side.name.0 == name)
    }

    fn benchmark(&self, planned: Planned<'_>) -> Option<&BundledBenchmark> {
        let name = planned.name();
        self.side(planned.side.name)?.benchmarks.iter().find(|benchmark| benchmark.name == name.as_str())
    }

    /// The state a benchmark was in when it was packed.
    fn prepared(&self, planned: Planned<'_>, packed: &BundledBenchmark) -> Prepared {
        let mut prepared = unprepared(planned);
        prepared.outcome = Outcome::from(&packed.outcome);
        prepared.lints = packed.lints.iter().map(Into::into).collect();
        prepared.stages = packed
            .stages
            .iter()
            .map(|stage| StageReport {
                stage: stage.stage.0,
                status: stage.status,
                seconds: stage.seconds.0,
                peak_memory_bytes: stage.peak_memory_bytes,
                log: None,
            })
            .collect();
        prepared
    }

    fn built(&self, planned: Planned<'_>, mut prepared: Prepared, module: &BundledModule) -> Built {
        let all = |names: &[String]| names.iter().map(|name| TensorFile::named(self.path(name))).collect();
        let inputs = module.inputs.iter().map(|input| match input {
            BundledInput::Npy(name) => InputArg::File(TensorFile::named(self.path(name))),
            BundledInput::Literal(text) => InputArg::Literal(text.clone()),
        });
        let parameters = module.parameters.iter().map(|named| (named.scope.clone(), self.path(&named.path)));
        let problem = |problem: &crate::record::ReferenceProblem| -> (VerifyCode, String) {
            (problem.code.0, problem.why.clone())
        };
        let source = Source {
            // Nothing is compiled here.
            mlir: PathBuf::new(),
            mlir_sha256: String::new(),
            inputs: inputs.collect(),
            expected: all(&module.expected),
            parameters: parameters.collect(),
            expected64: all(&module.expected64),
            expected64_problem: None,
            reference_problem: module.reference_problem.as_ref().map(problem),
            report: StageReport::skipped(Stage::Export),
            lowering: module.lowering.clone(),
        };
        prepared.labels.extend(labels_of_export(planned, &source));
        let file = self.contents.files.iter().find(|file| file.path == module.path);
        let compiled = Compiled {
            module: self.path(&module.path),
            vmfb_sha256: self.digests.get(&module.path).cloned().unwrap_or_default(),
            vmfb_bytes: file.map_or(0, |file| file.bytes),
            dispatch_count: module.dispatch_count,
            statistics: module.compiler.clone(),
            seconds: 0.0,
            peak_memory_bytes: None,
            cached: true,
            damaged: None,
            log: PathBuf::new(),
        };
        Built { prepared, source, compiled }
    }

    /// Why a module that was compiled for one very processor can't be measured on this one.
    fn for_another_processor(&self, module: &BundledModule, testbed: &Testbed) -> Option<StageFailure> {
        let facts = ["arch", "cpu", "cpu-id", "isa"];
        let same = facts.iter().all(|fact| self.contents.made_on.get(*fact) == testbed.facts.get(*fact));
        if !module.host_specific || same {
            return None;
        }
        let told = |facts: &BTreeMap<String, String>| {
            let fact = |name: &str| facts.get(name).map_or("unknown", String::as_str);
            format!("{} ({})", fact("cpu"), fact("isa"))
        };
        Some(StageFailure::new(format!(
            "a flag asks for the processor it is compiled on ({}), and this one is another: {}",
            told(&self.contents.made_on),
            told(&testbed.facts)
        )))
    }
}

/// Verifies and measures what a bundle holds.
///
/// # Errors
/// As for a whole run.
pub async fn run_bundle(
    bundle: &OpenBundle,
    options: &Options,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<Session, PipelineError> {
    let sides = &bundle.sides;
    let Some(lead) = sides.iter().find(|side| side.name == SideName::Head).or(sides.first()) else {
        return Err(PipelineError::Selection("there is no side to run".to_owned()));
    };
    let mut plans: Vec<Vec<Planned<'_>>> =
        sides.iter().map(|side| plan::plan(side, &options.filter)).collect();
    for plan in &mut plans {
        // What was filtered away when the bundle was made is not missing.
        plan.retain(|planned| bundle.benchmark(*planned).is_some());
    }
    let names = plan::names(&plans)?;
    let cache = Cache::open(&options.cache);
    let machine = Machine::look(&plans, progress);
    let context = context(&cache, &machine, lead, options, Exporters::default(), progress, cancel);
    let context = Context { paired: sides.len() == 2, ..context };
    if !lead.config.backends.is_empty() {
        progress.on(Event::Note("other backends run in Python, so a bundle has none of them"));
    }
    for (name, sha256) in &bundle.digests {
        context.digests.learn(bundle.path(name), sha256.clone());
    }
    let effort = Effort::begin();
    let steps = plans.iter().map(Vec::len).sum();
    progress.on(Event::StageStarted { stage: Stage::Verify, steps });
    let jobs = sides.iter().zip(plans).zip(&bundle.tools).map(|((side, plan), tools)| {
        let context = &context;
        async move {
            let one = plan.into_iter().map(|planned| verified(bundle, context, planned, tools));
            let benchmarks = try_join_all(one).await?;
            Ok::<_, PipelineError>(PreparedSide {
                input: side,
                toolchain: tools.identity.clone(),
                benchmarks,
            })
        }
    });
    let mut prepared = try_join_all(jobs).await?;
    divergence::compare_sides(&mut prepared)?;
    progress.on(Event::StageFinished { stage: Stage::Verify });
    progress.on(Event::Note(&effort.end(steps)));
    let origin = BundleOrigin {
        sha256: bundle.sha256.clone(),
        created: bundle.contents.created.clone(),
        made_on: bundle.contents.made_on.clone(),
    };
    let interpreters = backends::Interpreters::default();
    let beside = Beside { experiments: &[], interpreters: &interpreters, bundle: Some(origin) };
    measure_and_record(&context, lead, &prepared, &bundle.tools, &names, &beside, options).await
}

async fn verified(
    bundle: &OpenBundle,
    context: &Context<'_>,
    planned: Planned<'_>,
    tools: &Installed,
) -> Result<Prepared, PipelineError> {
    let Some(packed) = bundle.benchmark(planned) else {
        return Err(PipelineError::Selection(format!("the bundle lost {}", planned.name())));
    };
    let prepared = bundle.prepared(planned, packed);
    let Some(module) = &packed.module else { return Ok(prepared) };
    if let Some(failure) = bundle.for_another_processor(module, context.testbed) {
        return Ok(failed(prepared, Stage::Verify, failure));
    }
    check(context, planned, tools, bundle.built(planned, prepared, module)).await
}
