//! A long-running program that answers each line of input with one line of output.
//!
//! Runs one program to its end.

use std::collections::BTreeSet;
use std::future::pending;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::child::{Child, Log, OutputHead, Tail, exit_of, peak_memory_bytes, wall};
use super::supervisor::{GRACE, Report};
use super::{Cancel, Command, Exit, Finished, ProcessError};

/// Maximum length of an answer.
const LINE_LIMIT: u64 = 16 << 20;

/// The outcome of a request. Every outcome except a line ends the session: call [`ProgramSession::finish`] or
/// [`ProgramSession::kill`] to learn how the program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// The answer, without the line break.
    Line(String),
    /// The program closed its output, because it ended or crashed.
    Ended,
    /// The program did not answer in time.
    TimedOut,
    /// benchgate was asked to stop.
    Interrupted,
}

/// A running program that answers each line on stdin with one line on stdout. stderr goes to the
/// log. Dropping it kills the program and everything it started.
pub struct ProgramSession {
    command: Command,
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Option<BufReader<ChildStdout>>,
    stderr: JoinHandle<Result<Tail, ProcessError>>,
    stopped: Option<Exit>,
}

impl ProgramSession {
    /// Starts the program. `command.timeout` is the limit for each request. stdout contains the answers and
    /// is not logged.
    pub async fn start(command: &Command) -> Result<Self, ProcessError> {
        let mut log = Log::open(command.log.as_deref())?;
        let mut child = Child::start(command, true).await?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().map(BufReader::new);
        let stderr = child.stderr.take();
        let program = command.program.clone();
        let stderr = tokio::spawn(async move {
            let mut tail = Tail::default();
            let Some(mut stderr) = stderr else { return Ok(tail) };
            let mut buffer = vec![0; 16 << 10];
            loop {
                let length = stderr
                    .read(&mut buffer)
                    .await
                    .map_err(|source| ProcessError::Output { program: program.clone(), source })?;
                if length == 0 {
                    return Ok(tail);
                }
                log.write(&buffer[..length])?;
                tail.push(&buffer[..length]);
            }
        });
        Ok(Self { command: command.clone(), child, stdin, stdout, stderr, stopped: None })
    }

    /// Sends a line and waits for the first line of the answer.
    pub async fn request(&mut self, line: &str, cancel: &Cancel) -> Result<Reply, ProcessError> {
        self.send(line).await;
        self.receive(cancel).await
    }

    /// Sends a line. A broken pipe is ignored here, because the end of the program's output shows that the
    /// program died.
    pub async fn send(&mut self, line: &str) {
        if let Some(stdin) = &mut self.stdin {
            drop(stdin.write_all(format!("{line}\n").as_bytes()).await);
        }
    }

    /// Waits for the next line, for at most the command's timeout.
    pub async fn receive(&mut self, cancel: &Cancel) -> Result<Reply, ProcessError> {
        let limit = self.command.timeout;
        let reply = tokio::select! {
            reply = timeout(limit, next_line(&mut self.stdout)) => reply,
            () = cancel.requested() => {
                self.stopped = Some(Exit::Interrupted);
                return Ok(Reply::Interrupted);
            }
        };
        match reply {
            Ok(reply) => {
                reply.map_err(|source| ProcessError::Output { program: self.command.program.clone(), source })
            }
            Err(_elapsed) => {
                self.stopped = Some(Exit::TimedOut(limit));
                Ok(Reply::TimedOut)
            }
        }
    }

    /// The files whose content the program and its descendants could use since the last call, up to the moment when they last
    /// looked for [`super::END_OF_SECTION`]. `None` if the program is not observed, or did not look for it.
    pub fn used(&mut self) -> Option<BTreeSet<PathBuf>> {
        self.child.opened().map(|opened| opened.used)
    }

    /// Closes the program's input, waits up to `limit` for the program to end by itself, and otherwise ends
    /// it. If the last request timed out or was interrupted, the program is ended at once.
    pub async fn finish(mut self, limit: Duration) -> Result<Finished, ProcessError> {
        self.stdin = None;
        let ended = self.child.ended();
        tokio::pin!(ended);
        let mut report = match self.stopped {
            None => wait(&mut ended, limit).await,
            Some(_) => None,
        };
        if report.is_none() {
            self.stopped = self.stopped.or(Some(Exit::TimedOut(limit)));
            self.child.terminate();
            report = wait(&mut ended, GRACE * 4).await;
        }
        self.conclude(report).await
    }

    /// Kills the program and everything it started.
    pub async fn kill(mut self) -> Result<Finished, ProcessError> {
        let ended = self.child.ended();
        self.child.kill();
        let report = wait(ended, GRACE * 4).await;
        self.conclude(report).await
    }

    async fn conclude(self, report: Option<Report>) -> Result<Finished, ProcessError> {
        let Self { command, child, stderr, stopped, .. } = self;
        let memory_ran_out = child.memory_ran_out();
        drop(child);
        let program = command.program;
        let tail = match timeout(GRACE, stderr).await {
            Ok(Ok(tail)) => tail?,
            // A process outside the tree still holds the pipe open; the output so far is in the log.
            Ok(Err(_)) | Err(_) => Tail::default(),
        };
        let report = report.ok_or(ProcessError::SupervisorLost { program })?;
        Ok(finished(&report, stopped, memory_ran_out, OutputHead::default(), tail))
    }
}

async fn next_line(stdout: &mut Option<BufReader<ChildStdout>>) -> io::Result<Reply> {
    let Some(stdout) = stdout else { return Ok(Reply::Ended) };
    let mut answer = Vec::new();
    stdout.take(LINE_LIMIT).read_until(b'\n', &mut answer).await?;
    match answer.pop() {
        None => Ok(Reply::Ended),
        Some(b'\n') => String::from_utf8(answer)
            .map(Reply::Line)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error)),
        Some(_) if answer.len() as u64 + 1 >= LINE_LIMIT => {
            Err(io::Error::new(io::ErrorKind::InvalidData, "the answer is too long"))
        }
        // An incomplete line shows that the program crashed.
        Some(_) => Ok(Reply::Ended),
    }
}

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
