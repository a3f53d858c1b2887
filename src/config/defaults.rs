//! The defaults of a configuration, each with its reason. Those of the policy are in `gate`.

use std::time::Duration;

/// Enough for an estimate of the spread between processes with seven degrees of freedom.
pub(super) const PROCESSES: u32 = 8;

/// Backends are context: three processes show the spread without doubling the time of a run.
pub(super) const BACKEND_PROCESSES: u32 = 3;

/// torch.compile takes minutes for large models.
pub(super) const BACKEND_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// Generous: a hang is minutes, a slow model is seconds.
pub(super) const TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// Large models take minutes on few cores.
pub(super) const COMPILE_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// The first import of torch and a download-free export of a large model take minutes.
pub(super) const EXPORT_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// What exported and hand-written modules call their entry point.
pub(super) const FUNCTION: &str = "main";

/// Every dispatch once, as in use.
pub(super) const DISPATCH_REPEATS: u32 = 1;

/// The compiler finds the dialect itself.
pub(super) const INPUT_TYPE: &str = "auto";

/// The folder of the configuration.
pub(super) const SOURCES: &str = ".";

/// The folder of stored baselines, beside the configuration.
pub(super) const STORE_FOLDER: &str = "baselines";

/// What git calls the remote that a clone came from.
pub(super) const STORE_REMOTE: &str = "origin";

/// Most sessions a gate reads. Twenty know the spread between sessions to a sixth of itself (1/√(2·19)), and cover three weeks of
/// nights; more would reach back to another state of the machine.
pub(super) const STORE_SESSIONS: usize = 20;

/// Nightly sessions stop for a weekend, not for two weeks.
pub(super) const STORE_STALE_DAYS: u32 = 14;

/// What `benchgate init` calls it.
pub(super) const WORKFLOW: &str = ".github/workflows/benchgate.yml";

/// Who a workflow's own token is.
pub(super) const AUTHOR: &str = "github-actions[bot]";
