//! Opens a bundle on the machine with the device: unpacks it, checks it as a whole, and makes it ready to be
//! verified and measured.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use benchgate_core::model::{Outcome, SideName, Stage, Testbed};
use benchgate_core::numerics::TensorFile;
use benchgate_core::record::{
    BundleFile, BundleOrigin, BundledBenchmark, BundledInput, BundledModule, BundledSide, ShardRecord,
    StageRecord, StageStatus,
};
use benchgate_host::files::Scratch;
use benchgate_host::process::Cancel;
use benchgate_toolchain::Installed;

use super::super::PipelineError;
use super::super::argv::InputArg;
use super::super::cache::{Cache, Digests, aside};
use super::super::plan::{self, Filter, PlannedBenchmark, Shard, SideInput};
use super::super::stage::{Caller, Compiled, Prepared, PreparedSource, StageFailure, ended};
use super::archive;

/// An unpacked and completely checked bundle. Dropping it removes its files.
#[derive(Debug)]
pub struct OpenBundle {
    file: PathBuf,
    folder: Scratch,
    contents: BundleFile,
    pub(crate) tools: Vec<Arc<Installed>>,
    /// Digest of the whole archive.
    pub sha256: String,
    /// The sides to measure. Options of the command line may still change the duration.
    pub sides: Vec<SideInput>,
    /// Warnings to show before the verdict.
    pub notices: Vec<String>,
}

/// Unpacks a bundle below `cache` and checks it completely. `expected` is the required digest, if it was passed
/// separately.
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
    let read = |side: &BundledSide| -> Result<benchgate_config::Config, PipelineError> {
        let config = benchgate_config::load_judging_within(&folder.path().join(&side.config), folder.path());
        let mut config = config.map_err(|error| refused(error.to_string()))?;
        // A pull request must not use a rename to choose which policy judges a benchmark. So only base's
        // configuration may contain the old name, and only head's the new one.
        let known = |name: &str| config.models.iter().any(|model| model.name == name);
        let is_base = side.name == SideName::Base;
        if side.renamed.iter().any(|(to, from)| known(from) != is_base || known(to) == is_base) {
            return Err(refused("its renames contradict its configurations".to_owned()));
        }
        config.take_names(&side.renamed);
        Ok(config)
    };
    if contents.sides.windows(2).any(|pair| pair[0].renamed != pair[1].renamed) {
        return Err(refused("its sides have different renames".to_owned()));
    }
    let judge = contents.sides.iter().find(|side| side.name == contents.judged_by);
    let judge = judge.map(read).transpose()?;
    let mut sides = Vec::with_capacity(contents.sides.len());
    let mut tools = Vec::with_capacity(contents.sides.len());
    for side in &contents.sides {
        let name = side.name;
        let mut config = read(side)?;
        if let Some(judge) = &judge {
            config.judge_by(judge);
        }
        let Some(mut declared) = config.side(side.declared).cloned() else {
            return Err(refused(format!("its configuration has no side {}", side.declared)));
        };
        declared.sources = folder.path().join(super::sources(name));
        fs::create_dir_all(&declared.sources).map_err(PipelineError::io("create", &declared.sources))?;
        let paths = [&side.run_module, &side.benchmark_module].map(|tool| folder.path().join(tool));
        if [&side.run_module, &side.benchmark_module].iter().any(|tool| !tool.starts_with(archive::TOOLS)) {
            return Err(refused("its tools are not in the folder `tools`".to_owned()));
        }
        let identity = side.toolchain.clone();
        tools.push(Arc::new(Installed::runtime_alone(&declared.pin, identity, folder.path(), paths).await?));
        sides.push(SideInput {
            commit: side.commit.clone(),
            dirty: side.dirty,
            ..SideInput::new(name, config, declared)
        });
    }
    let notices = contents.notices.clone();
    let open = OpenBundle { file: file.to_owned(), folder, tools, sha256, sides, notices, contents };
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
    /// Returns whether head's policy judges. It does if head's configuration declares the base itself.
    pub fn is_judged_by_head(&self) -> bool {
        self.contents.judged_by == SideName::Head
    }

    /// Refuses to measure a shard's bundle as if it contained the whole suite, or as another shard.
    pub(crate) fn require_shard(&self, wanted: Option<&Shard>) -> Result<(), PipelineError> {
        let Some(packed) = &self.contents.shard else { return Ok(()) };
        let is_same = |wanted: ShardRecord| wanted.plan == packed.plan && wanted.shard == packed.shard;
        if wanted.map(Shard::record).is_some_and(is_same) {
            return Ok(());
        }
        let number = packed.shard;
        let why =
            format!("it contains only shard {number} of a plan; give the same --plan, and --shard {number}");
        Err(PipelineError::Bundle { path: self.file.clone(), why })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn side(&self, name: SideName) -> Option<&BundledSide> {
        self.contents.sides.iter().find(|side| side.name == name)
    }

    fn benchmark(&self, planned: PlannedBenchmark<'_>) -> Option<&BundledBenchmark> {
        let name = planned.name();
        self.side(planned.side.name)?.benchmarks.iter().find(|benchmark| benchmark.name == name.as_str())
    }

    /// Returns whether the benchmark was selected on any side when the bundle was packed. If it is missing on
    /// one side only, it is reported as missing.
    pub(crate) fn has(&self, planned: PlannedBenchmark<'_>) -> bool {
        let name = planned.name();
        let mut packed = self.contents.sides.iter().flat_map(|side| &side.benchmarks);
        packed.any(|benchmark| benchmark.name == name.as_str())
    }

    /// The origin of the modules, for the record of a run.
    pub(crate) fn origin(&self) -> BundleOrigin {
        BundleOrigin {
            sha256: self.sha256.clone(),
            created: self.contents.created.clone(),
            made_on: self.contents.made_on.clone(),
        }
    }

    /// Records the digests of the files that were just unpacked, so that they are not hashed again.
    pub(crate) fn teach(&self, digests: &Digests) {
        for file in &self.contents.files {
            digests.learn(self.path(&file.path), file.sha256.clone());
        }
    }

    /// Restores a benchmark on this machine in the state in which it was packed.
    pub(crate) fn prepared<'a>(&self, planned: PlannedBenchmark<'a>, testbed: &Testbed) -> Prepared<'a> {
        let mut prepared = Prepared::new(planned);
        let Some(packed) = self.benchmark(planned) else {
            prepared.fail(Stage::Export, StageFailure::new("the bundle does not contain this benchmark"));
            return prepared;
        };
        prepared.outcome = Outcome::from(&packed.outcome);
        prepared.lints = packed.lints.clone();
        let stages = packed.stages.iter();
        prepared.stages =
            stages.map(|stage| StageRecord { slot: None, log: None, ..stage.clone() }).collect();
        let Some(module) = &packed.module else { return prepared };
        if let Some(failure) = self.for_another_processor(module, testbed) {
            prepared.fail(Stage::Verify, failure);
        } else {
            prepared.source = Some(self.source(module));
            prepared.compiled = Some(self.compiled(module));
            prepared.caller = module.caller.as_ref().map(|caller| Caller {
                module: self.path(&caller.path),
                results: caller.results as usize,
                inputs: caller.inputs as usize,
                _folder: None,
            });
        }
        prepared
    }

    fn source(&self, module: &BundledModule) -> PreparedSource {
        let all = |names: &[String]| names.iter().map(|name| TensorFile::named(self.path(name))).collect();
        let inputs = module.inputs.iter().map(|input| match input {
            BundledInput::Npy(name) => InputArg::File(TensorFile::named(self.path(name))),
            BundledInput::Literal(text) => InputArg::Literal(text.clone()),
        });
        let parameters = module.parameters.iter().map(|named| (named.scope.clone(), self.path(&named.path)));
        let problem = module.reference_problem.as_ref();
        PreparedSource {
            // The path is empty, because nothing is compiled from a bundle.
            mlir: PathBuf::new(),
            mlir_sha256: String::new(),
            inputs: inputs.collect(),
            expected: all(&module.expected),
            parameters: parameters.collect(),
            expected64: all(&module.expected64),
            expected64_problem: None,
            left_out: module.left_out.clone(),
            reference_problem: problem.map(|problem| (problem.code, problem.why.clone())),
            report: ended(Stage::Export, StageStatus::Skipped, 0.0),
            lowering: module.lowering.clone(),
            read: Vec::new(),
            absent: Vec::new(),
            observed: None,
            damaged: None,
        }
    }

    fn compiled(&self, module: &BundledModule) -> Compiled {
        let file = self.contents.files.iter().find(|file| file.path == module.path);
        Compiled {
            stores: None,
            module: self.path(&module.path),
            vmfb_sha256: file.map(|file| file.sha256.clone()).unwrap_or_default(),
            vmfb_bytes: file.map_or(0, |file| file.bytes),
            dispatch_count: module.dispatch_count,
            statistics: module.compiler.clone(),
            report: ended(Stage::Compile, StageStatus::Cached, 0.0),
            damaged: None,
        }
    }

    /// The reason why a module that was compiled for a specific processor can't be measured on this one;
    /// `None` if it can.
    fn for_another_processor(&self, module: &BundledModule, testbed: &Testbed) -> Option<StageFailure> {
        let facts = ["arch", "cpu", "cpu-id", "isa"];
        let same = facts.iter().all(|fact| self.contents.made_on.get(*fact) == testbed.facts.get(*fact));
        if !module.host_specific || same {
            return None;
        }
        let processor = |facts: &BTreeMap<String, String>| {
            let fact = |name: &str| facts.get(name).map_or("unknown", String::as_str);
            format!("{} ({})", fact("cpu"), fact("isa"))
        };
        Some(StageFailure::new(format!(
            "a flag compiles for the processor of the compiling machine ({}), but this machine has a different one: {}",
            processor(&self.contents.made_on),
            processor(&testbed.facts)
        )))
    }
}
