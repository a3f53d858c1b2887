//! L3: what is measured on: the machine's fingerprint, its load, its processors, and the lock that
//! keeps two measurements apart.

mod bus;
mod host_lock;
mod load;
mod processors;
mod room;
mod testbed;

pub use bus::accelerator;
pub use host_lock::{DeviceError, HostLock, lock, lock_host};
pub use load::{idle_time, load_average};
pub use processors::default_cpus;
pub use room::free_bytes;
pub use testbed::testbed;
