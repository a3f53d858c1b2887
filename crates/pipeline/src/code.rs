//! Facts about the code of a compiled module. For PTX, an assembler determines some of them.

use std::borrow::Cow;
use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use memchr::memmem;

use benchgate_config::{Assembler, Target};
use benchgate_host::files;
use benchgate_host::process::{Command, Exit};
use benchgate_ingest::{CompiledCode, Unassembled};

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
    let finished = match benchgate_host::process::run(&command, host.cancel).await {
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

/// The operation with which the calls that are timed can differ from the one that was verified, if a program has one: it
/// keeps a value for the next call (`util.global.store`), or its effect can't be known (`llvm.inline_asm`, which can make
/// system calls). Both the text form and the bytecode contain the names of operations.
pub(super) fn suspect_operation(mlir: &Path) -> std::io::Result<Option<&'static str>> {
    // Most programs don't contain such a name, not even in a comment, so the first search includes comments.
    match suspect_operation_in(mlir, None)? {
        Some(_) => suspect_operation_in(mlir, Some(Comments::default())),
        None => Ok(None),
    }
}

/// A state machine that leaves out the comments of a text that is read in parts.
#[derive(Debug, Clone, Copy, Default)]
enum Comments {
    #[default]
    Code,
    /// The last byte was a slash.
    Slash,
    Comment,
    Text,
    /// The last byte was a backslash in a string literal.
    Escape,
}

impl Comments {
    fn without(&mut self, text: &[u8]) -> Vec<u8> {
        let mut code = Vec::with_capacity(text.len());
        for &byte in text {
            *self = match (*self, byte) {
                // String literals end at the end of their line. Between angle brackets, two slashes need not
                // begin a comment. So a comment is only left out up to the next closing bracket.
                (_, b'\n') | (Self::Comment, b'\r' | b'>') => Self::Code,
                (Self::Comment, _) | (Self::Slash, b'/') => Self::Comment,
                (Self::Text, b'\\') => Self::Escape,
                (Self::Text, b'"') => Self::Code,
                (Self::Text | Self::Escape, _) | (Self::Code | Self::Slash, b'"') => Self::Text,
                (Self::Code, b'/') => Self::Slash,
                (Self::Code | Self::Slash, _) => Self::Code,
            };
            if !matches!(self, Self::Comment) {
                code.push(byte);
            }
        }
        code
    }
}

fn suspect_operation_in(
    mlir: &Path,
    mut comments: Option<Comments>,
) -> std::io::Result<Option<&'static str>> {
    // The names after `variable` are of TOSA. Memory from the device's queue has the contents that the previous call left
    // there, which the host reads with `buffer.load`. The code of a dispatch, already lowered, refers to static variables
    // by `get_global` and `addressof`, and reads clocks, files and fixed addresses by the last three. Bytecode has names of
    // operations without their dialect.
    const SUSPECT: [&str; 11] = [
        "global.store",
        "global_store",
        "variable_write",
        "variable.write",
        "queue.alloca",
        "buffer.load",
        "get_global",
        "mlir.addressof",
        "inline_asm",
        "call_intrinsic",
        "inttoptr",
    ];
    const CHUNK: usize = 1 << 20;
    let finders = SUSPECT.map(|name| (name, memmem::Finder::new(name)));
    // Each letter of a name may be escaped as a backslash with two digits, which is three times as long.
    let longest = 3 * SUSPECT.iter().map(|name| name.len()).max().unwrap_or(1);
    let mut file = fs::File::open(mlir)?;
    let mut window = Vec::with_capacity(CHUNK + longest);
    let mut chunk = Vec::with_capacity(CHUNK);
    let mut is_bytecode = None;
    loop {
        chunk.clear();
        let read = file.by_ref().take(CHUNK as u64).read_to_end(&mut chunk)?;
        // Bytecode has no escapes, and replacing each backslash in its weights would take long.
        let is_bytecode = *is_bytecode.get_or_insert_with(|| chunk.starts_with(b"ML\xefR"));
        match comments.as_mut().filter(|_| !is_bytecode) {
            Some(comments) => window.extend(comments.without(&chunk)),
            None => window.extend_from_slice(&chunk),
        }
        let text = if is_bytecode { Cow::Borrowed(&window[..]) } else { without_escapes(&window) };
        if let Some((name, _)) = finders.iter().find(|(_, finder)| finder.find(&text).is_some()) {
            return Ok(Some(name));
        }
        if read == 0 {
            return Ok(None);
        }
        // A name may continue in the next chunk, so the end of this one is kept.
        window.drain(..window.len().saturating_sub(longest - 1));
    }
}

/// The text with the escapes of MLIR's strings replaced. The name of an operation may be written as a string,
/// in which `\2E` is a dot.
fn without_escapes(text: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'\\', text).is_none() {
        return Cow::Borrowed(text);
    }
    let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, after @ ..] = rest {
        let escaped = match (first, after) {
            (b'\\', [high, low, ..]) => digit(high).zip(digit(low)),
            _ => None,
        };
        let (byte, next) = match escaped {
            Some((high, low)) => (16 * high + low, &after[2..]),
            None => (*first, after),
        };
        plain.push(byte);
        rest = next;
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_that_makes_later_calls_differ_is_found_wherever_it_stands() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.mlir");
        let found = |before: usize, name: &str| {
            fs::write(&path, format!("{}{name}\n", " ".repeat(before))).unwrap();
            suspect_operation(&path).unwrap()
        };
        for before in [0, 1, (1 << 20) - 6, 1 << 20, (3 << 20) + 17] {
            assert_eq!(found(before, "util.global.store %a, @b : i32"), Some("global.store"));
            assert_eq!(found(before, "\"ml_program.global_store\"(%a)"), Some("global_store"));
            assert_eq!(found(before, r#""util.\67lobal\2Estore"(%a)"#), Some("global.store"));
            assert_eq!(found(before, "%0 = memref.get_global @n : memref<i32>"), Some("get_global"));
            assert_eq!(found(before, "llvm.mlir.addressof @n : !llvm.ptr"), Some("mlir.addressof"));
            assert_eq!(found(before, "tosa.variable_write @n, %0 : tensor<1xi32>"), Some("variable_write"));
            assert_eq!(found(before, "%0 = hal.device.queue.alloca<%d>"), Some("queue.alloca"));
            assert_eq!(found(before, "llvm.inline_asm has_side_effects \"syscall\""), Some("inline_asm"));
            assert_eq!(
                found(before, "llvm.call_intrinsic \"llvm.readcyclecounter\"()"),
                Some("call_intrinsic")
            );
            assert_eq!(found(before, "llvm.inttoptr %0 : i64 to !llvm.ptr"), Some("inttoptr"));
            assert_eq!(found(before, "util.global.load immutable @b : i32"), None);
            assert_eq!(found(before, r#""util.global\2Eload"() : i32"#), None);
            assert_eq!(found(before, "// no util.global.store"), None);
            assert_eq!(found(before, "util.return // \"a\" util.global.store"), None);
            for code in [
                "#a.b<//> util.global.store %a, @b",
                "\"//\" \"util.global.store\"()",
                "\"\\\"//\" util.global.store %a, @b",
                "// a comment\nutil.global.store %a, @b",
                "/ / util.global.store %a, @b",
                "// a comment\rutil.global.store %a, @b",
                "\"\r//\" util.global.store %a, @b",
            ] {
                assert_eq!(found(before, code), Some("global.store"), "{code}");
            }
        }
    }
}
