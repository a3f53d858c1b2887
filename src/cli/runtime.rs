//! The asynchronous runtime, made only by commands that wait for something.

use crate::process::{self, Cancel};

use super::CliError;

/// Runs work to its end. It gets the token that SIGINT and SIGTERM raise.
pub fn block_on<T>(work: impl AsyncFnOnce(Cancel) -> Result<T, CliError>) -> Result<T, CliError> {
    let internal = |error: std::io::Error| CliError::Internal {
        message: format!("failed to start the runtime: {error}"),
    };
    tokio::runtime::Builder::new_multi_thread()
        // One listens for signals and pipes while the other hashes.
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(internal)?
        .block_on(async {
            let cancel = process::interrupts().map_err(internal)?;
            work(cancel).await
        })
}
