//! Facts about the code of a compiled module. For PTX, an assembler determines some of them.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::config::{Assembler, Target};
use crate::files;
use crate::ingest::{CompiledCode, Unassembled};
use crate::process::{Command, Exit};

use super::PipelineError;
use super::cache::aside;
use super::host::Host;
use super::slots::Priority;

/// Maximum size of a module to read, which includes its weights. Its code has only a few MiB.
const MOST_BYTES: u64 = 1 << 30;
/// The smaller limit that applies if the code is not judged. The facts then only explain times, and several
/// modules are read at once.
const MOST_UNASKED_BYTES: u64 = 128 << 20;

/// Timeout of the assembler, which needs seconds for each large kernel.
const ASSEMBLER_TIMEOUT: Duration = Duration::from_secs(600);

/// Maximum size of the assembler's output, which has a few lines per kernel.
const MOST_OF_LOG: u64 = 16 << 20;

/// Reads a module's code and all facts about it, or returns the reason why they are not available.
pub(super) async fn read(
    host: &Host<'_>,
    target: &Target,
    module: &Path,
) -> Result<Result<CompiledCode, String>, PipelineError> {
    let size = fs::metadata(module).map_err(PipelineError::io("read", module))?.len();
    let most = if target.judges_code() { MOST_BYTES } else { MOST_UNASKED_BYTES };
    if size > most {
        let why = format!("the module is {} MiB; the limit is {} MiB", size >> 20, most >> 20);
        return Ok(Err(why));
    }
    let path = module.to_owned();
    let read = aside(move || {
        let bytes = fs::read(&path).map_err(PipelineError::io("read", &path))?;
        Ok(CompiledCode::read(&bytes))
    });
    let mut code = match read.await? {
        Ok(code) => code,
        Err(why) => return Ok(Err(why)),
    };
    if let Some(assembler) = target.assembler()
        && let Err(why) = assemble(host, assembler, target.ptxas_arch.as_deref(), &mut code).await?
    {
        return Ok(Err(format!("`ptxas` reports no registers and spills: {why}")));
    }
    Ok(Ok(code))
}

/// Assembles every PTX text, for the given processor or else for the one that the text names.
async fn assemble(
    host: &Host<'_>,
    assembler: &Assembler,
    processor: Option<&str>,
    code: &mut CompiledCode,
) -> Result<Result<(), String>, PipelineError> {
    let program = match (assembler, &host.ptxas) {
        (Assembler::Path(path), _) => path,
        (Assembler::Locked, Some(Ok(path))) => path,
        (Assembler::Locked, Some(Err(why))) => return Ok(Err(why.clone())),
        // No assembler is installed when a bundle is opened.
        (Assembler::Locked, None) => return Ok(Err("it is not installed here".to_owned())),
    };
    let mut logs = Vec::new();
    for (number, source) in code.unassembled() {
        let processor = processor.unwrap_or(source.processor).to_owned();
        match log(host, program, &processor, source).await? {
            Ok(log) => logs.push((number, processor, log)),
            Err(why) => return Ok(Err(why)),
        }
    }
    for (number, processor, log) in logs {
        if let Err(why) = code.assembled(number, &processor, &log) {
            return Ok(Err(why));
        }
    }
    Ok(Ok(()))
}

/// Runs the assembler on a PTX text and returns what it prints.
async fn log(
    host: &Host<'_>,
    program: &Path,
    processor: &str,
    source: Unassembled<'_>,
) -> Result<Result<String, String>, PipelineError> {
    let _slot = host.slot(Priority::Compile { bytes: source.text.len() as u64 }).await?;
    let folder = host.scratch()?;
    let [input, output, log] = ["code.ptx", "code.cubin", "ptxas.log"].map(|name| folder.path().join(name));
    fs::write(&input, source.text).map_err(PipelineError::io("write", &input))?;
    let command = Command::new(program, ASSEMBLER_TIMEOUT)
        .args(["--verbose".to_owned(), format!("--gpu-name={processor}")])
        .arg("--output-file")
        .arg(&output)
        .arg(&input)
        .cwd(folder.path())
        .log(&log);
    let finished = match crate::process::run(&command, host.cancel).await {
        Ok(finished) => finished,
        Err(error) => return Ok(Err(error.to_string())),
    };
    match finished.exit {
        Exit::Success => {}
        Exit::Interrupted => return Err(PipelineError::Interrupted),
        exit => {
            let said =
                finished.stderr_tail.lines().find(|line| line.contains("error") || line.contains("fatal"));
            let said = said.or_else(|| finished.stderr_tail.lines().next_back()).unwrap_or("no message");
            return Ok(Err(format!("it {exit}: {said}")));
        }
    }
    host.fail_on_full_disk(&finished, folder.path())?;
    let printed = files::read_bounded(&log, MOST_OF_LOG).map_err(PipelineError::io("read", &log))?;
    Ok(Ok(String::from_utf8_lossy(&printed).into_owned()))
}
