//! Protects secrets in benchgate's own process.

use std::ffi::{CStr, OsString, c_char};

use nix::sys::prctl;

unsafe extern "C" {
    /// The C library's list of environment variables. The variables that the process was started with are in the
    /// memory block that `/proc/PID/environ` shows.
    static environ: *const *mut c_char;
}

/// Makes this process's memory, environment and core dumps unreadable to others of the same user. Root can
/// still read them. A child is readable again as soon as it executes a program. Returns whether it worked.
pub fn hide_memory() -> bool {
    prctl::set_dumpable(false).is_ok()
}

/// Removes a variable from the environment and overwrites its value in memory. `/proc/PID/environ`, which
/// root can read for any process, shows the original values even after a variable is unset.
///
/// # Safety
/// No other thread may read or change the environment meanwhile.
pub unsafe fn take_variable(name: &str) -> Option<OsString> {
    let value = std::env::var_os(name)?;
    // SAFETY: the list ends with a null pointer, its entries are null-terminated strings, and the caller
    // ensures that no other code uses them.
    unsafe {
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            let text = CStr::from_ptr(*entry).to_bytes();
            let value = text.strip_prefix(name.as_bytes()).and_then(|rest| rest.strip_prefix(b"="));
            if let Some(length) = value.map(<[u8]>::len) {
                (*entry).add(name.len() + 1).write_bytes(0, length);
            }
            entry = entry.add(1);
        }
        std::env::remove_var(name);
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hidden_process_is_not_dumpable() {
        assert!(hide_memory());
        assert_eq!(prctl::get_dumpable(), Ok(false));
        // Hidden memory would make this process's /proc files unreadable to the other tests.
        prctl::set_dumpable(true).unwrap();
    }
}
