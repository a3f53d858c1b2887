//! L3: what is measured on: the machine's fingerprint, its load, its processors and GPUs, what happens
//! on them while a process is measured, and the lock that keeps two measurements apart.

mod bus;
mod busy;
mod clocks;
mod governance;
mod gpu;
mod host_lock;
mod load;
mod processes;
mod processors;
mod room;
mod sysfs;
mod testbed;
mod watch;

pub use bus::accelerator;
pub use busy::{Usage, usage_now};
pub use clocks::{ClockHold, Leftover, hold_clocks, leftover_locks, undo_leftovers};
pub use governance::{Governance, governance};
pub use gpu::{Choice, Gpu, GpuReading, Gpus, Limit, Vendor, choose, visible};
pub use host_lock::{DeviceError, HostLock, lock, lock_host, measuring_now};
pub use load::{idle_time, load_average};
pub use processes::foreign;
pub use processors::{default_cpus, pinnable, ranges};
pub use room::free_bytes;
pub use testbed::{testbed, with_fact};
pub use watch::{GpuSeen, Seen, Watch, Watched};
