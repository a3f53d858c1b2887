//! Generates data that a suite only describes: random inputs, and weights for the parameters that a module
//! declares.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use benchgate_config::{ModelInput, ParameterSource};
use benchgate_core::numerics::{ParameterFill, RandomTensor, TensorFile, WeightArchive};
use benchgate_host::process::Cancel;

use super::PipelineError;
use super::argv::InputArg;
use super::cache::{KeyBuilder, Made, aside};
use super::host::Host;
use super::plan::PlannedBenchmark;
use super::stage::{StageFailure, Staged};

const KIND: &str = "generated";
/// Maximum size of a module's text that is searched for declarations.
const LONGEST_MODULE: u64 = 1 << 30;

/// The inputs that the suite specifies for a benchmark, generated if necessary.
pub(super) async fn inputs(host: &Host<'_>, planned: PlannedBenchmark<'_>) -> Staged<Vec<InputArg>> {
    let mut inputs = Vec::new();
    for input in &planned.model.inputs {
        inputs.push(match input {
            ModelInput::File(file) => {
                let file = file.below(&planned.side.side.sources);
                check_length(&file)?;
                InputArg::File(file)
            }
            ModelInput::Literal(text) => InputArg::Literal(text.clone()),
            ModelInput::Random(random) => InputArg::File(random_file(host, random).await?),
        });
    }
    Ok(inputs)
}

/// Fails if a raw file is shorter or longer than its type: the runtime cuts a longer file without a message.
fn check_length(file: &TensorFile) -> Staged<()> {
    // A file that can't be read is reported where its content is needed.
    let Ok(metadata) = fs::metadata(&file.path) else { return Ok(()) };
    let wrong =
        |error| StageFailure::new(format!("the input can't be read: {}: {error}", file.path.display()));
    Ok(file.check_length(metadata.len()).map_err(wrong)?)
}

/// The weights of a model: each scope with its archive.
pub(super) async fn parameters(
    host: &Host<'_>,
    planned: PlannedBenchmark<'_>,
    mlir: &Path,
) -> Staged<Vec<(String, PathBuf)>> {
    let mut parameters = Vec::new();
    for weights in &planned.model.parameters {
        let path = match &weights.source {
            ParameterSource::File(path) => planned.side.side.sources.join(path),
            ParameterSource::Made(fill) => archive(host, mlir, &weights.scope, *fill).await?,
        };
        parameters.push((weights.scope.clone(), path));
    }
    Ok(parameters)
}

async fn random_file(host: &Host<'_>, random: &RandomTensor) -> Staged<TensorFile> {
    let file = TensorFile { path: PathBuf::from("input.bin"), raw: Some(random.kind.clone()) };
    let key = KeyBuilder::new("random-input/2").text("notation", &random.to_string()).finish();
    let random = random.clone();
    let path =
        kept(host, key, "input.bin", async || Ok(move |write: &Writer| write.parts(random.bytes()))).await?;
    Ok(TensorFile { path, ..file })
}

async fn archive(host: &Host<'_>, mlir: &Path, scope: &str, fill: ParameterFill) -> Staged<PathBuf> {
    let source = host.digests.sha256(mlir).await?;
    let key = KeyBuilder::new("weights/1").text("mlir", &source).text("scope", scope);
    let key = key.text("fill", &fill.to_string()).finish();
    let read = async || {
        let failed =
            |why: String| StageFailure::new(format!("failed to make weights for {}: {why}", mlir.display()));
        if mlir.extension().is_none_or(|ending| ending != "mlir") {
            return Err(failed(
                "weight declarations can be read only from MLIR text (a `.mlir` file)".to_owned(),
            )
            .into());
        }
        let bytes = benchgate_host::files::read_bounded(mlir, LONGEST_MODULE)
            .map_err(PipelineError::io("read", mlir))?;
        let text = String::from_utf8_lossy(&bytes);
        let archive = WeightArchive::declared(&text, scope, fill).map_err(|why| failed(why.to_string()))?;
        Ok(move |write: &Writer| write.parts(archive.bytes()))
    };
    kept(host, key, "weights.irpa", read).await
}

/// Returns a file of the cache. If it is missing, it is made by the work that `prepare` returns.
async fn kept<W: FnOnce(&Writer) -> Result<(), PipelineError> + Send + 'static>(
    host: &Host<'_>,
    key: String,
    name: &'static str,
    prepare: impl AsyncFnOnce() -> Staged<W>,
) -> Staged<PathBuf> {
    let make = async |staged: &Path| {
        let work = prepare().await?;
        let writer = Writer { path: staged.join(name), cancel: host.cancel.clone() };
        aside(move || work(&writer)).await?;
        Ok(Made { key: key.clone(), files: vec![name.to_owned()], meta: () })
    };
    let find = async || Ok(Some(key.clone()));
    Ok(host.cache.keep(KIND, &key, &key, find, make).await?.path(name))
}

/// Writes a file in parts, and stops if the run is canceled.
struct Writer {
    path: PathBuf,
    cancel: Cancel,
}

impl Writer {
    fn parts(&self, parts: impl Iterator<Item = Vec<u8>>) -> Result<(), PipelineError> {
        let write = || {
            let mut file = fs::File::create_new(&self.path)?;
            for part in parts {
                if self.cancel.is_requested() {
                    return Ok(false);
                }
                file.write_all(&part)?;
            }
            Ok(true)
        };
        let is_whole = write().map_err(PipelineError::io("write", &self.path))?;
        if is_whole { Ok(()) } else { Err(PipelineError::Interrupted) }
    }
}
