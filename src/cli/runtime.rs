//! This invocation: its day, its words for a shell, and the asynchronous runtime of commands that wait for something.

use std::io;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use crate::process::{self, Cancel, shell_word};

use super::CliError;

/// Threads that the runtime can't do without: the workers (one listens for signals and pipes while the other hashes),
/// and one for work that blocks, such as starting a program.
const WORKERS: usize = 2;
const NEEDED: usize = WORKERS + 1;

/// Threads must not end and restart, so this is longer than any session.
const KEEP_ALIVE: Duration = Duration::from_secs(7 * 24 * 3600);

/// Longest wait for the kernel to clean up after a thread.
const CLEANED_UP: Duration = Duration::from_secs(5);

/// Runs work to its end. It gets the token that SIGINT and SIGTERM raise.
pub fn block_on<T>(work: impl AsyncFnOnce(Cancel) -> Result<T, CliError>) -> Result<T, CliError> {
    let internal = |error: io::Error| CliError::internal(format!("failed to start the runtime: {error}"));
    check_threads().map_err(|error| {
        CliError::failed(format!("failed to start {NEEDED} threads: {error}"))
            .hint("raise the limit on processes of this user or container (`ulimit -u`, `pids.max`)")
    })?;
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .thread_keep_alive(KEEP_ALIVE)
        .enable_all()
        .build()
        .map_err(internal)?
        .block_on(async {
            // With one such thread, tokio waits for it if it can't have another. Without any it panics.
            tokio::task::spawn_blocking(|| ()).await.map_err(io::Error::other).map_err(internal)?;
            let interrupts = process::interrupts().map_err(internal)?;
            work(interrupts.cancel.clone()).await
        })
}

/// Whether the threads that the runtime needs can be started at once: otherwise tokio panics or hangs.
fn check_threads() -> io::Result<()> {
    let before = own_threads();
    let checked = start_threads();
    // A thread that has ended counts until the kernel has cleaned up after it, which takes a while on a busy machine.
    let until = Instant::now() + CLEANED_UP;
    while own_threads() > before && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
    checked
}

/// Threads of this process; zero if the system doesn't say.
fn own_threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
}

fn start_threads() -> io::Result<()> {
    std::thread::scope(|scope| {
        let mut held = Vec::new();
        for _ in 0..NEEDED {
            // Each lives until its sender is dropped, which is when all were started or one was not.
            let (hold, released) = channel::<()>();
            std::thread::Builder::new().spawn_scoped(scope, move || released.recv().is_err())?;
            held.push(hold);
        }
        Ok(())
    })
}

/// Waivers end with a day, and the day is that of the machine that judges.
pub fn today() -> String {
    jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date().to_string()
}

/// The command as it was given, quoted for a shell.
pub fn command_line() -> String {
    let words = std::env::args().skip(1).map(shell_word);
    std::iter::once("benchgate".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}
