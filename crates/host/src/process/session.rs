//! A long-running program that answers each line of input with one line of output.

use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::child::Child;
use super::output::{Log, OutputHead, Tail};
use super::run::{finished, wait};
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

async fn next_line(stdout: &mut Option<BufReader<ChildStdout>>) -> std::io::Result<Reply> {
    let Some(stdout) = stdout else { return Ok(Reply::Ended) };
    let mut answer = Vec::new();
    stdout.take(LINE_LIMIT).read_until(b'\n', &mut answer).await?;
    match answer.pop() {
        None => Ok(Reply::Ended),
        Some(b'\n') => String::from_utf8(answer)
            .map(Reply::Line)
            .map_err(|error| std::io::Error::new(std::io::ErrorKind::InvalidData, error)),
        Some(_) if answer.len() as u64 + 1 >= LINE_LIMIT => {
            Err(std::io::Error::new(std::io::ErrorKind::InvalidData, "the answer is too long"))
        }
        // An incomplete line shows that the program crashed.
        Some(_) => Ok(Reply::Ended),
    }
}
