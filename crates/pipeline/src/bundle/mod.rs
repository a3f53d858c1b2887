//! Splits the stages over machines. A machine with a compiler prepares a bundle; a machine with a device
//! verifies and measures it, without Python or a compiler.

mod archive;
mod open;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::candidates::PreparedSide;
use benchgate_core::model::{Outcome, SideName};
use benchgate_core::numerics::TensorFile;
use benchgate_core::record::{
    BundleFile, BundleSchema, BundledBenchmark, BundledCaller, BundledFile, BundledInput, BundledModule,
    BundledParameters, BundledSide, OutcomeRecord, ReferenceProblem, StageRecord, is_plain_path,
};
use benchgate_toolchain::Lock;

use super::PipelineError;
use super::argv::InputArg;
use super::cache::{aside, file_sha256};
use super::compile::is_host_specific;
use super::flags::Named;
use super::host::Host;
use super::plan::{Shard, SideInput};
use super::prepare::compile_spec;
use super::stage::{Compiled, Prepared, PreparedSource};

use archive::TOOLS;

pub use open::{OpenBundle, open_bundle};

/// The folder of an unpacked bundle in which the tools of a side run.
fn sources(side: SideName) -> String {
    format!("sources/{side}")
}

/// A bundle that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedBundle {
    /// Digest of the whole file, with which the measuring machine can check it.
    pub sha256: String,
    pub bytes: u64,
    /// The outcome of every benchmark on each side.
    pub benchmarks: Vec<(SideName, String, Outcome)>,
}

/// Packs sides whose benchmarks have been compiled.
pub(crate) async fn pack(
    host: &Host<'_>,
    lead: &SideInput,
    sides: &[PreparedSide<'_>],
    notices: &[String],
    shard: Option<&Shard>,
    output: &Path,
) -> Result<PackedBundle, PipelineError> {
    let mut packing = Packing { host, files: BTreeMap::new() };
    let mut records = Vec::new();
    let mut benchmarks = Vec::new();
    for side in sides {
        let own = side.input.config.file != lead.config.file;
        let config = packing.config(side.input, if own { side.input.name } else { lead.name })?;
        let declared = if own { SideName::Head } else { side.input.name };
        records.push(packing.side(side, (config, declared)).await?);
        benchmarks.extend(side.benchmarks.iter().map(|prepared| {
            (side.input.name, prepared.name().as_str().to_owned(), prepared.outcome.clone())
        }));
    }
    let judges = |side: &&PreparedSide<'_>| {
        side.input.name == SideName::Base && side.input.config.file != lead.config.file
    };
    let (files, from): (Vec<_>, Vec<_>) = packing.files.into_values().unzip();
    let manifest = BundleFile {
        schema: BundleSchema,
        benchgate: benchgate_core::VERSION.to_owned(),
        suite: lead.config.suite.clone(),
        created: jiff::Timestamp::now().to_string(),
        judged_by: sides.iter().find(judges).map_or(lead.name, |base| base.input.name),
        made_on: host.testbed.facts.clone(),
        files,
        sides: records,
        shard: shard.map(Shard::record),
        notices: notices.to_vec(),
    };
    let (output, cancel) = (output.to_owned(), host.cancel.clone());
    let packed = aside(move || archive::pack(&output, &manifest, &from, &cancel)).await?;
    Ok(PackedBundle { sha256: packed.sha256, bytes: packed.bytes, benchmarks })
}

/// Collects the files of a bundle, each once.
struct Packing<'a, 'b> {
    host: &'a Host<'b>,
    /// Digest, size and path of each file, by its name in the archive.
    files: BTreeMap<String, (BundledFile, PathBuf)>,
}

impl Packing<'_, '_> {
    fn put(&mut self, name: String, path: &Path, sha256: String) -> Result<String, PipelineError> {
        if !is_plain_path(&name) {
            let why = format!("{} can't be bundled: {name:?} is not a plain path", path.display());
            return Err(PipelineError::NotBundleable(why));
        }
        let bytes = fs::metadata(path).map_err(PipelineError::io("read", path))?.len();
        let file = BundledFile { path: name.clone(), bytes, sha256 };
        self.files.insert(name.clone(), (file, path.to_owned()));
        Ok(name)
    }

    /// Adds a file whose name in the archive is derived from its content, and returns that name.
    async fn data(&mut self, folder: &str, path: &Path, ending: &str) -> Result<String, PipelineError> {
        let sha256 = self.host.digests.sha256(path).await?;
        self.put(format!("{folder}/{}.{ending}", &sha256[..32]), path, sha256)
    }

    /// Adds a tensor. Its type is part of the file name, because the archive can't store it elsewhere.
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

    /// Adds the configuration, the policy file that it names, and the lock next to it. The first two
    /// determine the benchmarks and the policy; the lock records the origin of the tools.
    fn config(&mut self, side: &SideInput, folder: SideName) -> Result<String, PipelineError> {
        let config = &side.config;
        let folder = format!("config/{folder}");
        if let Some(policy) = &config.policy_file {
            let path = config.root.join(policy);
            let name = format!("{folder}/{}", policy.to_string_lossy());
            self.put(name, &path, file_sha256(&path)?)?;
        }
        let lock = Lock::path_for(&config.file);
        if lock.is_file() {
            let sha256 = file_sha256(&lock)?;
            self.put(format!("{folder}/benchgate.lock"), &lock, sha256)?;
        }
        self.put(format!("{folder}/benchgate.toml"), &config.file, file_sha256(&config.file)?)
    }

    async fn side(
        &mut self,
        side: &PreparedSide<'_>,
        (config, declared): (String, SideName),
    ) -> Result<BundledSide, PipelineError> {
        let (input, prepared) = (side.input, &side.benchmarks);
        let (Some(tools), []) = (&side.tools, side.commands.as_slice()) else {
            let why = "a bundle can contain only compiled models, because commands are built where they are measured";
            return Err(PipelineError::NotBundleable(why.to_owned()));
        };
        let folder = format!("{TOOLS}{}", &tools.digest[..16]);
        let mut tool = async |path: &Path, name: &str| {
            let sha256 = self.host.digests.sha256(path).await?;
            self.put(format!("{folder}/{name}"), path, sha256)
        };
        let run_module = tool(&tools.iree_run_module, "iree-run-module").await?;
        let benchmark_module = tool(&tools.iree_benchmark_module, "iree-benchmark-module").await?;
        // The profiler is included, because changed benchmarks are profiled on the machine that measured
        // them.
        if let Some(profile) = tools.iree_profile() {
            tool(&profile, "iree-profile").await?;
        }
        let targets: BTreeSet<&[String]> =
            prepared.iter().map(|prepared| prepared.planned.target.run_flags.as_slice()).collect();
        for flags in targets.into_iter().chain([input.side.run_flags.as_slice()]) {
            self.files_of_flags(input, flags).await?;
        }
        let mut benchmarks = Vec::with_capacity(prepared.len());
        for prepared in prepared {
            let module = match (&prepared.source, &prepared.compiled) {
                (Some(source), Some(compiled)) => Some(self.module(prepared, source, compiled).await?),
                _ => None,
            };
            benchmarks.push(record(prepared, module));
        }
        Ok(BundledSide {
            name: input.name,
            config,
            declared,
            commit: input.commit.clone(),
            dirty: input.dirty,
            toolchain: tools.identity.clone(),
            renamed: input.config.renames.clone(),
            run_module,
            benchmark_module,
            benchmarks,
        })
    }

    /// Adds files that flags of the runtime tools name (`--flagfile=run.txt`, `--parameters=model=w.irpa`).
    /// They are stored under the same path relative to the folder in which the tools run.
    async fn files_of_flags(&mut self, side: &SideInput, flags: &[String]) -> Result<(), PipelineError> {
        // If a flag names a missing file, its benchmarks fail later, when they are checked.
        let Ok(named) = Named::find(flags, &side.side.sources) else { return Ok(()) };
        for (name, path) in named.files {
            if !is_plain_path(&name) {
                let why = format!(
                    "a runtime flag names a file that can't be bundled: {name} (only plain paths inside the \
                     sources can)"
                );
                return Err(PipelineError::NotBundleable(why));
            }
            let sha256 = self.host.digests.sha256(&path).await?;
            self.put(format!("{}/{name}", sources(side.name)), &path, sha256)?;
        }
        Ok(())
    }

    async fn module(
        &mut self,
        prepared: &Prepared<'_>,
        source: &PreparedSource,
        compiled: &Compiled,
    ) -> Result<BundledModule, PipelineError> {
        let planned = prepared.planned;
        let mut inputs = Vec::with_capacity(source.inputs.len());
        for input in &source.inputs {
            inputs.push(match input {
                InputArg::File(file) => BundledInput::Npy(self.tensor(file).await?),
                InputArg::Literal(text) => BundledInput::Literal(text.clone()),
            });
        }
        let mut parameters = Vec::with_capacity(source.parameters.len());
        for (scope, path) in &source.parameters {
            // The tool recognizes the type of an archive by its file extension.
            let ending = path.extension().unwrap_or_default().to_string_lossy().into_owned();
            let path = self.data("parameters", path, &ending).await?;
            parameters.push(BundledParameters { scope: scope.clone(), path });
        }
        let caller = match &prepared.caller {
            Some(caller) => {
                let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
                let path = self.data("modules", &caller.module, "vmfb").await?;
                Some(BundledCaller { path, results: count(caller.results), inputs: count(caller.inputs) })
            }
            None => None,
        };
        let name = format!("modules/{}.vmfb", &compiled.vmfb_sha256[..32]);
        let problem = source.reference_problem.as_ref();
        Ok(BundledModule {
            path: self.put(name, &compiled.module, compiled.vmfb_sha256.clone())?,
            dispatch_count: compiled.dispatch_count,
            compiler: compiled.statistics.clone(),
            host_specific: is_host_specific(&compile_spec(planned), &planned.side.side.sources),
            lowering: source.lowering.clone(),
            inputs,
            expected: self.all(&source.expected).await?,
            expected64: self.all(&source.expected64).await?,
            left_out: source.left_out.clone(),
            parameters,
            reference_problem: problem
                .map(|(code, why)| ReferenceProblem { code: (*code), why: why.clone() }),
            caller,
        })
    }
}

fn record(prepared: &Prepared<'_>, module: Option<BundledModule>) -> BundledBenchmark {
    // The log is not packed; it stays on the machine that wrote it.
    let stage = |report: &StageRecord| StageRecord { log: None, ..report.clone() };
    BundledBenchmark {
        name: prepared.name().as_str().to_owned(),
        outcome: OutcomeRecord::from(&prepared.outcome),
        stages: prepared.stages.iter().map(stage).collect(),
        lints: prepared.lints.to_vec(),
        module,
    }
}
