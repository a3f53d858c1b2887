//! `benchgate clean`: removes unused files of the cache and the working folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::device;
use crate::exit_code::ExitCode;
use crate::files::{self, KeptFolder};
use crate::model::{Unit, counted};
use crate::pipeline::Cache;
use crate::report;
use crate::toolchain;

use super::{CliError, Terminal, paths};

/// Remove unused files of the cache and the working folder
///
/// Searches the cache (exported and compiled models, downloaded artifacts, IREE tools, Python environments) and the
/// suite's working folder (logs, sessions to resume). Removed logs are lost, and a removed session can't be resumed;
/// everything else is created again when needed. Files that a run used in the last 24 hours stay, because a measurement
/// may be using them, unless --older-than is 0.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  benchgate clean --dry-run
  benchgate clean --older-than 7 --max-size 10
  benchgate clean --cache-dir /mnt/cache/benchgate

Exit codes: 0 done, 2 usage, 20 something can't be removed.")]
pub struct CleanArgs {
    /// Remove files that were not used for this many days; 0 removes all, and requires that nothing is being measured
    #[arg(long, value_name = "DAYS", default_value_t = 30)]
    older_than: u32,
    /// Also remove the least recently used files until the cache has at most this many gigabytes
    #[arg(long, value_name = "GB")]
    max_size: Option<f64>,
    /// Show what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Cache directory for tools and compiled models [default: $XDG_CACHE_HOME/benchgate]
    #[arg(long, value_name = "FOLDER", env = "BENCHGATE_CACHE")]
    cache_dir: Option<PathBuf>,
    /// Folder for sessions and logs
    #[arg(long, value_name = "FOLDER", default_value = ".benchgate")]
    work_dir: PathBuf,
}

const DAY: Duration = Duration::from_secs(24 * 3600);

/// The kind of a folder, which determines how it can be removed safely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keeper {
    /// Tools or artifacts, which another process may be installing.
    Tools,
    Cache,
    /// A subfolder of the working folder, which does not count toward the size of the cache.
    Work,
}

struct Kept {
    kind: String,
    keeper: Keeper,
    folder: KeptFolder,
}

pub fn run(args: &CleanArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let cache = paths::cache_dir(args.cache_dir.as_deref())?;
    let kept = find(&cache, Some(&args.work_dir))?;
    let now = SystemTime::now();
    let doomed = choose(&kept, now, DAY * args.older_than, args.max_size.map(|gb| gb * 1e9));
    if args.older_than == 0
        && !args.dry_run
        && let Some(holder) = device::measuring_now()
    {
        return Err(CliError::usage(format!(
            "failed to remove files that were used in the last 24 hours: {holder} is measuring and may be using them"
        ))
        .hint("wait until that process ends, or keep these files with `--older-than 1`"));
    }
    let mut lines: BTreeMap<&str, Line> = BTreeMap::new();
    for (kept, &doomed) in kept.iter().zip(&doomed) {
        let removed = doomed && (args.dry_run || remove(kept)?);
        lines.entry(&kept.kind).or_default().add(kept.folder.bytes, removed);
    }
    let mut all = Line::default();
    for (kind, line) in &lines {
        all.merge(line);
        if line.removed > 0 {
            terminal.say(&format!("{}: {}\n", kind, line.text(args.dry_run)));
        }
    }
    let place = cache.display();
    terminal.print(&if all.folders == 0 {
        format!("nothing to remove in {place}\n")
    } else if all.removed == 0 {
        let bytes = report::quantity(all.bytes, &Unit::Bytes);
        let what = format!("nothing to remove: {} ({bytes}) in {place}", counted(all.folders, "folder"));
        if doomed.contains(&true) {
            format!("{what}: the selected folders are in use\n")
        } else if kept.iter().all(|kept| kept.folder.idle(now) <= DAY) {
            format!("{what}, used in the last 24 hours; `--older-than 0` removes these too\n")
        } else {
            let days = counted(args.older_than as usize, "day");
            format!("{what}, used in the last {days}; `--older-than` and `--max-size` remove more\n")
        }
    } else {
        format!("{} in {place} and {}\n", all.text(args.dry_run), args.work_dir.display())
    });
    Ok(ExitCode::Pass)
}

/// Totals of one line of the output: all folders, and those that are removed.
#[derive(Debug, Default)]
struct Line {
    folders: usize,
    removed: usize,
    bytes: f64,
    removed_bytes: f64,
}

impl Line {
    fn add(&mut self, bytes: u64, removed: bool) {
        let gone = u8::from(removed);
        self.merge(&Self {
            folders: 1,
            removed: gone.into(),
            bytes: bytes as f64,
            removed_bytes: bytes as f64 * f64::from(gone),
        });
    }

    fn merge(&mut self, other: &Self) {
        self.folders += other.folders;
        self.removed += other.removed;
        self.bytes += other.bytes;
        self.removed_bytes += other.removed_bytes;
    }

    fn text(&self, dry_run: bool) -> String {
        let bytes = |bytes: f64| report::quantity(bytes, &Unit::Bytes);
        format!(
            "{} {} of {} ({} of {})",
            if dry_run { "would remove" } else { "removed" },
            self.removed,
            counted(self.folders, "folder"),
            bytes(self.removed_bytes),
            bytes(self.bytes)
        )
    }
}

/// The size of everything in a cache.
pub fn cache_bytes(cache: &Path) -> Result<u64, CliError> {
    Ok(find(cache, None)?.iter().map(|kept| kept.folder.bytes).sum())
}

fn find(cache: &Path, work: Option<&Path>) -> Result<Vec<Kept>, CliError> {
    let tools = toolchain::list(cache).into_iter().map(|tree| {
        let kind = tree.root.parent().and_then(Path::file_name).unwrap_or_default();
        (kind.to_string_lossy().into_owned(), Keeper::Tools, tree.root)
    });
    let artifacts = toolchain::cached_artifacts(cache);
    let artifacts = artifacts.into_iter().map(|path| ("artifacts".to_owned(), Keeper::Tools, path));
    let entries = Cache::kept(cache).into_iter().map(|(kind, path)| (kind, Keeper::Cache, path));
    // A folder with both of these was created by benchgate as a working folder.
    let ours = |work: &&Path| work.join(".gitignore").is_file() && work.join("sessions").is_dir();
    let working = work.filter(ours).into_iter().flat_map(|work| {
        WORKING.iter().flat_map(|kind| {
            let folders = files::folders_in(&work.join(kind)).into_iter();
            folders.map(|path| ((*kind).to_owned(), Keeper::Work, path))
        })
    });
    let read = |(kind, keeper, path): (String, Keeper, PathBuf)| {
        let folder = KeptFolder::read(&path).map_err(|error| {
            CliError::failed(format!("failed to read {}: {error}", path.display()))
                .hint("run the command as the user who owns these files")
        })?;
        Ok(Kept { kind, keeper, folder })
    };
    tools.chain(artifacts).chain(entries).chain(working).map(read).collect()
}

/// Subfolders of a working folder that can be removed: their files are only for inspection, or for resuming a
/// killed run.
const WORKING: [&str; 4] = ["bisect", "logs", "profiles", "sessions"];

/// Decides which folders to remove: those that are too old, and then the least recently used ones until the
/// cache is small enough. Folders used in the last 24 hours stay, unless `older_than` is zero.
fn choose(kept: &[Kept], now: SystemTime, older_than: Duration, most: Option<f64>) -> Vec<bool> {
    let idle = |kept: &Kept| kept.folder.idle(now);
    let oldest = |kept: &Kept| older_than.is_zero() || idle(kept) > older_than.max(DAY);
    let mut doomed: Vec<bool> = kept.iter().map(oldest).collect();
    let Some(most) = most else { return doomed };
    let cached = |index: &usize| kept[*index].keeper != Keeper::Work;
    let mut left: Vec<usize> = (0..kept.len()).filter(|&index| !doomed[index]).filter(cached).collect();
    left.sort_by_key(|&index| std::cmp::Reverse(idle(&kept[index])));
    let mut bytes: f64 = left.iter().map(|&index| kept[index].folder.bytes as f64).sum();
    for index in left {
        if bytes <= most || idle(&kept[index]) <= DAY {
            break;
        }
        bytes -= kept[index].folder.bytes as f64;
        doomed[index] = true;
    }
    doomed
}

/// Removes a folder. Returns true if it is gone.
fn remove(kept: &Kept) -> Result<bool, CliError> {
    let failed = |error: &dyn std::fmt::Display| {
        CliError::failed(format!("failed to remove {}: {error}", kept.folder.path.display()))
            .hint("run the command as the user who owns these files")
    };
    match kept.keeper {
        Keeper::Tools => toolchain::remove_tree(&kept.folder).map_err(|error| failed(&error)),
        Keeper::Cache | Keeper::Work => kept.folder.remove().map(|()| true).map_err(|error| failed(&error)),
    }
}
