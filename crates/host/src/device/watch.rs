//! Observation of the machine while one process is measured.
//!
//! Processors need no sampling: the kernel counts their usage, and two readings of its counters cover the
//! time between them. A GPU's driver keeps few counters, so a separate thread queries it a few times a
//! second, on a processor that is not measured.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use benchgate_core::model::ForeignProcess;

use super::busy::{Busy, Usage, busiest_on, foreign_on_gpu, marked, named, own_time};
use super::gpu::{GpuReading, Gpus};
use super::processors::stay_with_the_host;

/// Interval between two readings of a GPU. Its sensors update their values about ten times a second, but heat
/// and power change more slowly. Four readings a second detect every lasting change, and use less than a
/// hundredth of one processor.
const INTERVAL: Duration = Duration::from_millis(250);

/// The share of the processors' time above which a foreign program is reported by name.
const WORTH_A_NAME: f64 = 0.05;

/// The devices and processors to watch.
#[derive(Debug, Clone)]
pub struct Watched {
    pub gpus: Arc<Gpus>,
    /// Positions of the watched GPUs in the list of GPUs.
    pub indices: Vec<usize>,
    /// The processors reserved for a CPU target; `None` if none are watched.
    pub cpus: Option<Vec<usize>>,
}

/// The observations of one GPU during one process.
#[derive(Debug, Clone, PartialEq)]
pub struct GpuSeen {
    pub index: usize,
    pub before: GpuReading,
    pub during: Vec<GpuReading>,
    pub after: GpuReading,
    pub foreign: Vec<ForeignProcess>,
}

/// The observations during one process.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Seen {
    pub cpu: Option<Usage>,
    /// Number of times that a watched processor lowered its clock because of heat. `None` if the processor
    /// does not count it.
    pub cpu_throttled: Option<u64>,
    /// Another program that used the watched processors.
    pub on_cpus: Option<ForeignProcess>,
    pub gpus: Vec<GpuSeen>,
}

/// An observation in progress.
pub struct Watch {
    watched: Watched,
    busy: Option<Busy>,
    throttled: Option<u64>,
    own: Duration,
    before: Vec<GpuReading>,
    sampler: Option<Sampler>,
}

/// The index of a GPU, a reading of it, and the processes on it: true if ours, false if foreign, `None` if
/// unknown. They are marked when the reading is taken, because a process may end soon after.
type GpuSample = (usize, GpuReading, Vec<(u32, Option<bool>)>);

struct Sampler {
    stop: Sender<()>,
    samples: Arc<Mutex<Vec<GpuSample>>>,
    thread: JoinHandle<()>,
}

impl Watch {
    /// Takes the first readings. Start the watched process only after this returns.
    pub fn start(watched: Watched) -> Self {
        let before = watched.indices.iter().map(|index| watched.gpus.read(*index)).collect();
        let sampler = (!watched.indices.is_empty()).then(|| Sampler::start(&watched)).flatten();
        let cpus = watched.cpus.as_deref();
        Self {
            throttled: cpus.and_then(|cpus| throttle_count(Path::new(SYSTEM), cpus)),
            own: own_time(),
            busy: cpus.and_then(|cpus| Busy::now(Some(cpus))),
            before,
            sampler,
            watched,
        }
    }

    /// Takes the last readings. `used` is the processor time of the process and its children.
    pub fn stop(self, used: Duration) -> Seen {
        let cpus = self.watched.cpus.as_deref();
        let cpu = self.busy.as_ref().and_then(|before| {
            let own = used + own_time().saturating_sub(self.own);
            Busy::now(cpus)?.since(before, own)
        });
        let disturbed = cpu.is_some_and(|usage| usage.foreign > usage.resolution.max(WORTH_A_NAME));
        let on_cpus = if disturbed { busiest_on(cpus) } else { None };
        let throttled = cpus.and_then(|cpus| throttle_count(Path::new(SYSTEM), cpus));
        let samples = self.sampler.map(Sampler::finish).unwrap_or_default();
        let gpus = self.watched.indices.iter().zip(self.before).map(|(index, before)| {
            let after = self.watched.gpus.read(*index);
            let of_this = || samples.iter().filter(|(of, ..)| of == index);
            let pids = |reading: &GpuReading| reading.processes.clone().unwrap_or_default();
            let seen: Vec<(u32, Option<bool>)> =
                of_this().flat_map(|(_, _, pids)| pids.iter().copied()).collect();
            let foreign: BTreeSet<u32> = foreign_on_gpu(&pids(&before), &seen, &pids(&after));
            GpuSeen {
                index: *index,
                before,
                during: of_this().map(|(_, reading, _)| reading.clone()).collect(),
                after,
                foreign: named(foreign),
            }
        });
        Seen {
            cpu,
            cpu_throttled: throttled.zip(self.throttled).map(|(now, then)| now.saturating_sub(then)),
            on_cpus,
            gpus: gpus.collect(),
        }
    }
}

impl Sampler {
    /// Starts the sampling thread. `None` if the thread can't be started; then only the first and the last
    /// reading are used.
    fn start(watched: &Watched) -> Option<Self> {
        let (stop, stopped) = channel::<()>();
        let samples = Arc::new(Mutex::new(Vec::new()));
        let (kept, watched) = (Arc::clone(&samples), watched.clone());
        let sample = move || {
            stay_with_the_host();
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(INTERVAL) {
                for index in &watched.indices {
                    let reading = watched.gpus.read(*index);
                    let pids = marked(reading.processes.as_deref().unwrap_or_default());
                    kept.lock().unwrap_or_else(PoisonError::into_inner).push((*index, reading, pids));
                }
            }
        };
        let thread = std::thread::Builder::new().name("watch".to_owned()).spawn(sample).ok()?;
        Some(Self { stop, samples, thread })
    }

    fn finish(self) -> Vec<GpuSample> {
        drop(self.stop);
        // If the thread panicked, the samples that it took before remain usable.
        drop(self.thread.join());
        std::mem::take(&mut *self.samples.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

const SYSTEM: &str = "/sys/devices/system/cpu";

/// The number of times that these processors throttled since boot, as Intel processors count it.
fn throttle_count(system: &Path, cpus: &[usize]) -> Option<u64> {
    let counts = cpus.iter().flat_map(|cpu| {
        ["core_throttle_count", "package_throttle_count"].into_iter().filter_map(move |name| {
            let path = system.join(format!("cpu{cpu}/thermal_throttle/{name}"));
            std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok()
        })
    });
    counts.reduce(|all, more| all + more)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throttling_is_counted_over_the_watched_processors() {
        let system = tempfile::tempdir().unwrap();
        for (cpu, count) in [(0, "7"), (1, "2"), (2, "100")] {
            let folder = system.path().join(format!("cpu{cpu}/thermal_throttle"));
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("core_throttle_count"), format!("{count}\n")).unwrap();
        }
        assert_eq!(throttle_count(system.path(), &[0, 1]), Some(9));
        assert_eq!(throttle_count(system.path(), &[8]), None);
    }

    /// Work of our own process on a second thread is not foreign, because its processor time is subtracted.
    #[test]
    fn our_own_work_is_not_foreign() {
        let watched = Watched { gpus: Arc::new(Gpus::default()), indices: Vec::new(), cpus: Some(vec![0]) };
        let seen = Watch::start(watched).stop(Duration::from_secs(3600));
        assert_eq!(seen.cpu.map(|usage| usage.foreign), Some(0.0));
        assert_eq!(seen.on_cpus, None);
    }
}
