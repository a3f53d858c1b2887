//! NVIDIA's management library, faked: one GPU with the part of NVML's C interface that benchgate uses.
//! Tests put it where the system's loader finds `libnvidia-ml.so.1`, as a driver does.
//!
//! `FAKE_NVML` names a folder. Its file `gpu` describes the GPU in `KEY=VALUE` lines and is read at every
//! call, so that a test can change the GPU during a run; `locked` stores the locked clock and, as in a
//! driver, outlives the process; `log` has a line for every changed setting.
//!
//! | key | meaning |
//! |---|---|
//! | `uuid` | the GPU's UUID |
//! | `reasons` | bits of the throttle reasons |
//! | `temperature`, `power-mw`, `clock` | current readings |
//! | `processes` | IDs of the processes on the GPU, separated by spaces |
//! | `denied=1` | changing a setting is not permitted |
//! | `violation-ns` | time that heat held the clock down |
#![expect(clippy::unwrap_used, clippy::undocumented_unsafe_blocks, reason = "a fake may")]

use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};
use std::io::Write as _;
use std::path::PathBuf;

const SUCCESS: c_int = 0;
const NOT_SUPPORTED: c_int = 3;
const NO_PERMISSION: c_int = 4;
const INSUFFICIENT_SIZE: c_int = 7;

/// The driver's base clock, and the clock that it sets.
const TDP: c_uint = 0xffff_ff01;
const BASE_MHZ: c_uint = 1095;

fn folder() -> PathBuf {
    std::env::var_os("FAKE_NVML").map(PathBuf::from).unwrap()
}

fn state() -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(folder().join("gpu")).unwrap_or_default();
    text.lines()
        .filter_map(|line| line.split_once('='))
        .map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()))
        .collect()
}

fn number(key: &str, default: u64) -> u64 {
    state().get(key).map_or(default, |value| value.parse().unwrap())
}

fn log(line: &str) {
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(folder().join("log")).unwrap();
    writeln!(file, "{line}").unwrap();
}

unsafe fn put(text: &str, to: *mut c_char, room: usize) {
    let bytes = text.as_bytes();
    let length = bytes.len().min(room - 1);
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast::<u8>(), length);
        *to.add(length) = 0;
    }
}

#[unsafe(no_mangle)]
extern "C" fn nvmlInit_v2() -> c_int {
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn nvmlShutdown() -> c_int {
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlSystemGetDriverVersion(to: *mut c_char, room: c_uint) -> c_int {
    unsafe { put("570.133.20", to, room as usize) };
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetCount_v2(count: *mut c_uint) -> c_int {
    unsafe { *count = 1 };
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, device: *mut *mut c_void) -> c_int {
    unsafe { *device = (index as usize + 1) as *mut c_void };
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetName(_: *mut c_void, to: *mut c_char, room: c_uint) -> c_int {
    unsafe { put("NVIDIA Fake 100", to, room as usize) };
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetUUID(_: *mut c_void, to: *mut c_char, room: c_uint) -> c_int {
    let state = state();
    unsafe { put(state.get("uuid").map_or("GPU-fake", String::as_str), to, room as usize) };
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetVbiosVersion(_: *mut c_void, to: *mut c_char, room: c_uint) -> c_int {
    unsafe { put("92.00.36.00.04", to, room as usize) };
    SUCCESS
}

/// `nvmlPciInfo_t`.
#[repr(C)]
struct PciInfo {
    legacy: [c_char; 16],
    domain: c_uint,
    bus: c_uint,
    device: c_uint,
    device_id: c_uint,
    subsystem_id: c_uint,
    bus_id: [c_char; 32],
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetPciInfo_v3(_: *mut c_void, info: *mut PciInfo) -> c_int {
    unsafe {
        put("0000:3B:00.0", (*info).legacy.as_mut_ptr(), 16);
        put("00000000:3B:00.0", (*info).bus_id.as_mut_ptr(), 32);
        (*info).bus = 0x3b;
    }
    SUCCESS
}

/// `nvmlMemory_v2_t`.
#[repr(C)]
struct Memory {
    version: c_uint,
    total: c_ulonglong,
    reserved: c_ulonglong,
    free: c_ulonglong,
    used: c_ulonglong,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetMemoryInfo_v2(_: *mut c_void, memory: *mut Memory) -> c_int {
    unsafe {
        (*memory).total = 40 << 30;
        (*memory).used = 1 << 30;
        (*memory).free = 39 << 30;
    }
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetMigMode(_: *mut c_void, now: *mut c_uint, next: *mut c_uint) -> c_int {
    unsafe {
        *now = 0;
        *next = 0;
    }
    SUCCESS
}

/// Consumer cards answer like this, because they don't have this memory.
#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetEccMode(_: *mut c_void, _: *mut c_int, _: *mut c_int) -> c_int {
    NOT_SUPPORTED
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetEnforcedPowerLimit(_: *mut c_void, milliwatts: *mut c_uint) -> c_int {
    unsafe { *milliwatts = 400_000 };
    SUCCESS
}

fn clock_now() -> c_uint {
    let locked = std::fs::read_to_string(folder().join("locked")).ok();
    let minimum = locked.and_then(|text| text.split(' ').next()?.parse::<c_uint>().ok());
    match minimum {
        Some(TDP) => BASE_MHZ,
        Some(mhz) => mhz,
        None => c_uint::try_from(number("clock", 1410)).unwrap(),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetClockInfo(_: *mut c_void, kind: c_uint, mhz: *mut c_uint) -> c_int {
    const MEMORY: c_uint = 2;
    unsafe { *mhz = if kind == MEMORY { 1215 } else { clock_now() } };
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetMaxClockInfo(_: *mut c_void, _: c_uint, mhz: *mut c_uint) -> c_int {
    unsafe { *mhz = 1410 };
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetTemperature(_: *mut c_void, _: c_uint, degrees: *mut c_uint) -> c_int {
    unsafe { *degrees = c_uint::try_from(number("temperature", 41)).unwrap() };
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetPowerUsage(_: *mut c_void, milliwatts: *mut c_uint) -> c_int {
    unsafe { *milliwatts = c_uint::try_from(number("power-mw", 61_500)).unwrap() };
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetCurrentClocksThrottleReasons(
    _: *mut c_void,
    reasons: *mut c_ulonglong,
) -> c_int {
    unsafe { *reasons = number("reasons", 1) };
    SUCCESS
}

/// `nvmlViolationTime_t`.
#[repr(C)]
struct ViolationTime {
    reference: c_ulonglong,
    violation: c_ulonglong,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetViolationStatus(
    _: *mut c_void,
    policy: c_uint,
    time: *mut ViolationTime,
) -> c_int {
    const THERMAL: c_uint = 1;
    unsafe { (*time).violation = if policy == THERMAL { number("violation-ns", 0) } else { 0 } };
    SUCCESS
}

/// `nvmlProcessInfo_t`.
#[repr(C)]
struct ProcessInfo {
    pid: c_uint,
    memory: c_ulonglong,
    gpu_instance: c_uint,
    compute_instance: c_uint,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetComputeRunningProcesses_v3(
    _: *mut c_void,
    count: *mut c_uint,
    processes: *mut ProcessInfo,
) -> c_int {
    let listed = state().remove("processes").unwrap_or_default();
    let pids: Vec<c_uint> = listed.split_ascii_whitespace().map(|pid| pid.parse().unwrap()).collect();
    let found = c_uint::try_from(pids.len()).unwrap();
    unsafe {
        let room = *count;
        *count = found;
        if room < found || (processes.is_null() && found > 0) {
            return INSUFFICIENT_SIZE;
        }
        for (index, pid) in pids.into_iter().enumerate() {
            let none = c_uint::MAX;
            let memory = 1 << 28;
            processes.add(index).write(ProcessInfo {
                pid,
                memory,
                gpu_instance: none,
                compute_instance: none,
            });
        }
    }
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceSetGpuLockedClocks(_: *mut c_void, min: c_uint, max: c_uint) -> c_int {
    if state().contains_key("denied") {
        return NO_PERMISSION;
    }
    log(&format!("lock {min} {max}"));
    // A test kills the run as soon as the file exists, so the file appears with its content.
    let new = folder().join("locked.new");
    std::fs::write(&new, format!("{min} {max}")).unwrap();
    std::fs::rename(new, folder().join("locked")).unwrap();
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceResetGpuLockedClocks(_: *mut c_void) -> c_int {
    if state().contains_key("denied") {
        return NO_PERMISSION;
    }
    log("unlock");
    drop(std::fs::remove_file(folder().join("locked")));
    SUCCESS
}
