//! Runs one program to its end.

use std::future::pending;
use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::{sleep, timeout};

use super::child::{Child, exit_of, peak_memory_bytes, wall};
use super::output::{Log, OutputHead, Tail};
use super::supervisor::Report;
use super::{Cancel, Command, Exit, Finished, ProcessError};

/// Time to wait for more output after the whole process tree is gone. Only a process outside the tree can
/// still hold the pipe open then.
const DRAIN: Duration = Duration::from_secs(1);

/// Runs `command` until it ends, reaches its time limit, or is canceled. In every case, even if this future
/// is dropped, no process that the program started keeps running.
///
/// # Errors
/// The program could not be started, or its output could not be read or logged. How it ended is not an error:
/// see [`Finished::exit`].
pub async fn run(command: &Command, cancel: &Cancel) -> Result<Finished, ProcessError> {
    // The log is opened first, so that nothing runs if it can't be written.
    let mut log = Log::open(command.log.as_deref())?;
    let mut child = Child::start(command, false).await?;
    let (mut stdout, mut stderr) = (child.stdout.take(), child.stderr.take());
    let (mut head, mut tail) = (OutputHead::default(), Tail::default());
    let (mut out_buffer, mut err_buffer) = (vec![0; 64 << 10], vec![0; 16 << 10]);
    let mut stopped: Option<Exit> = None;
    let ended = child.ended();
    tokio::pin!(ended);
    let deadline = sleep(command.timeout);
    tokio::pin!(deadline);
    let insisted = cancel.insisted();
    tokio::pin!(insisted);
    let mut has_insisted = false;
    let mut report: Option<Option<Report>> = None;

    loop {
        let over = report.is_some();
        if over && stdout.is_none() && stderr.is_none() {
            break;
        }
        tokio::select! {
            read = read_some(&mut stdout, &mut out_buffer) => {
                let bytes = taken(&mut stdout, &out_buffer, read, command)?;
                log.write(bytes)?;
                if command.capture_stdout {
                    head.push(bytes);
                }
            }
            read = read_some(&mut stderr, &mut err_buffer) => {
                let bytes = taken(&mut stderr, &err_buffer, read, command)?;
                log.write(bytes)?;
                tail.push(bytes);
            }
            how = &mut ended, if !over => report = Some(how),
            () = sleep(DRAIN), if over => break,
            () = &mut deadline, if stopped.is_none() && !over => {
                stopped = Some(Exit::TimedOut(command.timeout));
                child.terminate();
            }
            () = cancel.requested(), if stopped.is_none() && !over => {
                stopped = Some(Exit::Interrupted);
                child.terminate();
            }
            () = &mut insisted, if !has_insisted && !over => {
                has_insisted = true;
                stopped = stopped.or(Some(Exit::Interrupted));
                child.kill();
            }
        }
    }
    let lost = || ProcessError::SupervisorLost { program: command.program.clone() };
    let report = report.flatten().ok_or_else(lost)?;
    let finished = finished(&report, stopped, child.memory_ran_out(), head, tail);
    Ok(Finished { opened: child.opened(), ..finished })
}

pub(super) fn finished(
    report: &Report,
    stopped: Option<Exit>,
    memory_ran_out: bool,
    head: OutputHead,
    tail: Tail,
) -> Finished {
    let exit = stopped.unwrap_or_else(|| exit_of(report.status));
    Finished {
        wall: wall(report),
        user: Duration::from_micros(report.user_us),
        system: Duration::from_micros(report.system_us),
        peak_memory_bytes: peak_memory_bytes(report),
        stdout_truncated: head.truncated,
        leftovers: report.leftovers,
        memory_ran_out,
        ..Finished::new(exit, head.bytes, tail.into_text())
    }
}

/// Reads available output; never resolves once the stream has ended.
async fn read_some(stream: &mut Option<impl AsyncRead + Unpin>, buffer: &mut [u8]) -> io::Result<usize> {
    match stream {
        Some(stream) => stream.read(buffer).await,
        None => pending().await,
    }
}

/// The bytes of a read; an empty read closes the stream.
fn taken<'a, S>(
    stream: &mut Option<S>,
    buffer: &'a [u8],
    read: io::Result<usize>,
    command: &Command,
) -> Result<&'a [u8], ProcessError> {
    let length = read.map_err(|source| ProcessError::Output { program: command.program.clone(), source })?;
    if length == 0 {
        *stream = None;
    }
    Ok(&buffer[..length])
}

/// Waits, up to a limit, for the end of a tool that was asked to stop.
pub(super) async fn wait(ended: impl Future<Output = Option<Report>>, limit: Duration) -> Option<Report> {
    timeout(limit, ended).await.ok().flatten()
}
