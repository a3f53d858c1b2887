//! The environment of a command: the date, the command line, and the asynchronous runtime.

use std::io;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use crate::process::{self, Cancel, shell_word};

use super::CliError;

/// The number of threads that the runtime requires: two workers (one listens for signals and pipes while the
/// other hashes), and one thread for blocking work such as starting a program.
const WORKERS: usize = 2;
const NEEDED: usize = WORKERS + 1;

/// Longer than any session, so that threads never end and restart.
const KEEP_ALIVE: Duration = Duration::from_secs(7 * 24 * 3600);

/// The maximum wait for the kernel to clean up after a thread.
const CLEANED_UP: Duration = Duration::from_secs(5);

/// Runs asynchronous work to its end. SIGINT and SIGTERM cancel the token that is passed to it.
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
            // If tokio can't start another blocking thread, it waits for the existing one; without any, it
            // panics.
            tokio::task::spawn_blocking(|| ()).await.map_err(io::Error::other).map_err(internal)?;
            let interrupts = process::interrupts().map_err(internal)?;
            work(interrupts.cancel.clone()).await
        })
}

/// Checks that the threads which the runtime needs can run at the same time. Otherwise tokio would panic or
/// hang.
fn check_threads() -> io::Result<()> {
    let before = own_threads();
    let checked = start_threads();
    // An ended thread still counts until the kernel has cleaned up after it, which takes a while on a busy
    // machine.
    let until = Instant::now() + CLEANED_UP;
    while own_threads() > before && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
    checked
}

/// The number of threads of this process; zero if the system doesn't report it.
fn own_threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
}

fn start_threads() -> io::Result<()> {
    std::thread::scope(|scope| {
        let mut held = Vec::new();
        for _ in 0..NEEDED {
            // Each thread lives until its sender is dropped, after all have been started or one has failed to
            // start.
            let (hold, released) = channel::<()>();
            std::thread::Builder::new().spawn_scoped(scope, move || released.recv().is_err())?;
            held.push(hold);
        }
        Ok(())
    })
}

/// The current date in UTC, on which the expiry of waivers depends.
pub fn today() -> String {
    jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date().to_string()
}

/// The command line as it was given, quoted for a shell.
pub fn command_line() -> String {
    let words = std::env::args().skip(1).map(shell_word);
    std::iter::once("benchgate".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}
