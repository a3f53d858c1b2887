//! A process that holds a secret keeps other processes of its user out.

use nix::sys::prctl;

/// Makes this process's memory, environment and core dumps unreadable to others of the same user. Root can
/// still read them. A child is readable again as soon as it executes a program. Returns whether it worked.
pub fn hide_memory() -> bool {
    prctl::set_dumpable(false).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hidden_process_is_not_dumpable() {
        assert!(hide_memory());
        assert_eq!(prctl::get_dumpable(), Ok(false));
        // The other tests of this process read their own /proc files.
        prctl::set_dumpable(true).unwrap();
    }
}
