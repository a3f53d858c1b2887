//! Checks the software that a measurement needs: IREE's tools, git, Python and disk space.

use std::path::Path;
use std::time::Duration;

use crate::cli::CliError;
use crate::config::{Config, ModelSource, ToolSource};
use crate::model::Quiet;
use crate::process::{self, Cancel, Command, Exit};
use crate::toolchain::{self, Installed, Lock, ToolchainError};
use crate::{device, pipeline};

use super::{CheckContext, Finding};

/// Time limit for starting a program. Programs usually start at once, but a home directory on a network can
/// be slow.
const PATIENCE: Duration = Duration::from_secs(30);

/// With less free space than this, a run is likely to fill the disk: one IREE release takes much of it,
/// together with the wheels of its exporter (including torch) and the modules of a medium-sized suite.
const LITTLE_ROOM: u64 = 10 << 30;
/// With less free space than this, not even one IREE release can be installed.
const NO_ROOM: u64 = 1 << 30;

pub(super) async fn findings(context: &CheckContext, cancel: &Cancel) -> Result<Vec<Finding>, CliError> {
    let mut found = vec![room(&context.cache), git(cancel).await?];
    let needs_python = context.config.as_ref().is_none_or(needs_python);
    found.push(python(needs_python, cancel).await?);
    let counts = context.config.as_ref().is_some_and(|config| config.measure.compile_instructions);
    found.push(valgrind(counts, cancel).await?);
    // A suite that has only commands has no pinned tools.
    if let Some(config) = context.config.as_ref().filter(|config| !config.models.is_empty()) {
        found.extend(tools(config, &context.cache, cancel).await?);
    }
    Ok(found)
}

fn room(cache: &Path) -> Finding {
    const ID: &str = "disk-space";
    // The cache folder may not exist yet.
    let there = cache.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("/"));
    let Some(free) = device::free_bytes(there) else {
        let what = format!("the free space in {} is unknown", there.display());
        return Finding::note(ID, what, "A run that fills the disk ends without its result.", "");
    };
    let what =
        format!("{:.1} GiB free for the cache {}", free as f64 / f64::from(1u32 << 30), cache.display());
    let why = "Tools, exported and compiled models are kept there.";
    let fix = "Free some space, or choose another disk with --cache-dir or BENCHGATE_CACHE.";
    match free {
        ..NO_ROOM => Finding::error(ID, what, why, fix),
        NO_ROOM..LITTLE_ROOM => Finding::warning(ID, what, why, fix),
        LITTLE_ROOM.. => Finding::ok(ID, what),
    }
}

/// The first line that a program prints for `--version`; `None` if there is no such program.
async fn version(program: &str, cancel: &Cancel) -> Result<Option<String>, CliError> {
    let command = Command::new(program, PATIENCE).arg("--version").capture_stdout();
    match process::run(&command, cancel).await {
        Ok(finished) if finished.exit == Exit::Interrupted => Err(CliError::interrupted()),
        Ok(finished) if finished.exit.is_success() => {
            let text = String::from_utf8_lossy(&finished.stdout).into_owned();
            Ok(text.lines().next().map(|line| line.trim().to_owned()))
        }
        Ok(_) | Err(_) => Ok(None),
    }
}

async fn git(cancel: &Cancel) -> Result<Finding, CliError> {
    const ID: &str = "git";
    Ok(match version("git", cancel).await? {
        Some(version) => Finding::ok(ID, version),
        None => Finding::warning(
            ID,
            "git was not found",
            "benchgate uses git to fetch and push baselines on a branch; `gate --base` works without git.",
            "Install git.",
        ),
    })
}

async fn valgrind(needed: bool, cancel: &Cancel) -> Result<Finding, CliError> {
    const ID: &str = "valgrind";
    let why = "benchgate counts the compiler's instructions with valgrind (`compile-instructions = true` in \
        [measure]).";
    let fix = "Install valgrind (`apt-get install valgrind`).";
    Ok(match version("valgrind", cancel).await? {
        Some(version) => Finding::ok(ID, version),
        None if needed => Finding::error(ID, "valgrind was not found", why, fix),
        None => Finding::note(ID, "valgrind was not found", why, fix),
    })
}

fn needs_python(config: &Config) -> bool {
    let exports = config.models.iter().any(|model| !matches!(model.source, ModelSource::Mlir(_)));
    let installs = !config.models.is_empty()
        && config.base.iter().chain([&config.head]).any(|side| side.pin.source == ToolSource::Pypi);
    exports || installs
}

async fn python(needed: bool, cancel: &Cancel) -> Result<Finding, CliError> {
    const ID: &str = "python";
    Ok(match toolchain::pythons(cancel).await {
        Ok(found) if !found.is_empty() => Finding::ok(ID, format!("Python {}", found.join(", "))),
        Err(ToolchainError::Interrupted) => return Err(CliError::interrupted()),
        Ok(_) | Err(_) if needed => Finding::error(
            ID,
            "there is no Python 3.10 or newer",
            "Python is needed to install the tools and to export models.",
            "Install python3 (3.10 or newer) with its pip and venv packages.",
        ),
        Ok(_) | Err(_) => Finding::note(ID, "there is no Python 3.10 or newer", "This suite needs none.", ""),
    })
}

/// Checks the drivers of a runtime, and for each target the device that the runtime finds.
async fn targets(config: &Config, tools: &Installed, cancel: &Cancel) -> Result<Vec<Finding>, CliError> {
    const ID: &str = "target";
    let drivers = pipeline::listed_drivers(tools, cancel).await?;
    let mut found = vec![Finding::ok("drivers", drivers.join(", "))];
    for target in &config.targets {
        let listed = pipeline::listed_devices(tools, target, cancel).await?;
        let on = format!("{} ({})", target.name, target.device);
        found.push(match listed {
            Ok(devices) => Finding::ok(ID, format!("{on}: {}", devices.join(", "))),
            Err(why) if target.required == Some(false) => Finding::note(
                ID,
                format!("{on}: {why}"),
                "The modules of this target are compiled here and not measured, as `required = false` allows.",
                "",
            ),
            Err(why) => Finding::error(
                ID,
                format!("{on}: {why}"),
                "The modules of this target can be compiled here, but not measured.",
                "Install the device's driver, or measure on a machine with such a device. If the device may be absent, \
                 set `required = false` in the [[target]].",
            ),
        });
    }
    Ok(found)
}

/// Checks the tools of each distinct pin.
async fn tools(config: &Config, cache: &Path, cancel: &Cancel) -> Result<Vec<Finding>, CliError> {
    const ID: &str = "tools";
    const WHY: &str = "benchgate measures only with the pinned tools.";
    let lock = match Lock::read_for(&config.file) {
        Ok(lock) => lock,
        Err(error) => {
            let fix = error.hint().unwrap_or_default();
            return Ok(vec![Finding::error("lock-file", error.to_string(), WHY, fix)]);
        }
    };
    let mut found = Vec::new();
    let mut seen = Vec::new();
    for side in config.base.iter().chain([&config.head]) {
        if seen.contains(&&side.pin) {
            continue;
        }
        seen.push(&side.pin);
        found.push(match toolchain::verify(&side.pin, &lock, cache, &Quiet, cancel).await {
            Ok(tools) => {
                let identity = &tools.identity;
                let what = format!(
                    "IREE {} ({}) verified in {}",
                    identity.version,
                    identity.compiler_commit,
                    tools.root.display()
                );
                found.push(Finding::ok(ID, what));
                found.extend(targets(config, &tools, cancel).await?);
                continue;
            }
            Err(ToolchainError::Interrupted) => return Err(CliError::interrupted()),
            Err(error @ ToolchainError::NotInstalled { .. }) => Finding::note(
                ID,
                format!("IREE {} is pinned and locked, but not installed yet", side.pin.version),
                "The first run installs it.",
                error.hint().unwrap_or_default(),
            ),
            Err(error) => {
                Finding::error(ID, format!("failed to {error}"), WHY, error.hint().unwrap_or_default())
            }
        });
    }
    Ok(found)
}
