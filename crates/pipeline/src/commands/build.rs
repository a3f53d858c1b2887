//! Builds the commands of a suite on each side, base first, before anything is measured.

use std::path::Path;
use std::time::SystemTime;

use benchgate_config::CommandSpec;
use benchgate_core::model::{Event, Stage};
use benchgate_host::files;
use benchgate_host::process::{Command, Exit};

use super::super::PipelineError;
use super::super::compile::failure;
use super::super::host::Host;
use super::super::plan::SideInput;
use super::super::stage::StageFailure;
use super::observed::observed_process;
use super::{CommandRows, EVERYTHING, GuardedFolders, Line, PreparedCommand};

/// Builds the commands of a side. `guarded` contains the folders of the sides that were built before; this
/// side's are added.
pub(crate) async fn built<'a>(
    host: &Host<'_>,
    side: &SideInput,
    specs: impl Iterator<Item = &'a CommandSpec>,
    rows: CommandRows,
    guarded: &mut GuardedFolders,
) -> Result<Vec<PreparedCommand>, PipelineError> {
    let mut commands = Vec::new();
    for spec in specs {
        let mut command = PreparedCommand::new(host, side, spec, rows, guarded.clone())?;
        if !spec.build.is_empty() {
            let what = format!("{} {}", spec.name, side.name);
            host.progress.on(Event::StageStarted { stage: Stage::Compile, steps: 1 });
            host.progress.on(Event::StepStarted { stage: Stage::Compile, what: &what });
            let began = std::time::Instant::now();
            command.failure = command.build(host, side).await?;
            command.built_by = SystemTime::now();
            let note = command.failure.as_ref().map(StageFailure::note);
            host.progress.on(Event::StepFinished {
                stage: Stage::Compile,
                what: &what,
                note: &note.unwrap_or_default(),
                took: began.elapsed(),
            });
            host.progress.on(Event::StageFinished { stage: Stage::Compile });
        }
        command.look_at_files(&host.digests).await?;
        commands.push(command);
    }
    // Without a checkout of the base, the suite compares two folders of one tree. These may be the same
    // folder, so they are not guarded.
    if let Some(checkout) = &side.checkout {
        guarded.add(&checkout.folder);
        commands.iter().filter_map(PreparedCommand::build_folder).for_each(|folder| guarded.add(folder));
    }
    Ok(commands)
}

impl PreparedCommand {
    /// Runs the lines of `build` until one fails.
    async fn build(
        &mut self,
        host: &Host<'_>,
        side: &SideInput,
    ) -> Result<Option<StageFailure>, PipelineError> {
        let log = host.logs.join(format!("build-{}-{}.log", self.spec.name, side.name));
        files::if_exists(std::fs::remove_file(&log)).map_err(PipelineError::io("remove", &log))?;
        // Nothing is compared with a base that has no checkout.
        let is_observed = self.is_compared();
        let mut files = self.build_files.take();
        for line in &self.spec.build {
            let before = self.guarded.look()?;
            let timeout = side.config.measure.compile_timeout;
            let step = Command { timeout, ..self.line(line, Path::new(""), EVERYTHING).log(&log) };
            let step = if is_observed { observed_process(step) } else { step };
            let mut finished = host.run(&step).await?;
            before.check()?;
            host.fail_on_full_disk(&finished, &log)?;
            if finished.exit != Exit::Success {
                return Ok(Some(failure(&finished, Some(log))));
            }
            // A script can hide the exit status of a compiler.
            self.note_errors(Line::Build, &finished.stderr_tail);
            files = files.zip(finished.opened.take()).map(|(mut files, of_line)| {
                files.join(of_line);
                files
            });
        }
        self.build_files = files;
        // A build may remove it together with all untracked files.
        let said = files::if_exists(std::fs::read(&log)).map_err(PipelineError::io("read", &log))?;
        self.note_errors(Line::Build, &String::from_utf8_lossy(&said.unwrap_or_default()));
        Ok(None)
    }
}
