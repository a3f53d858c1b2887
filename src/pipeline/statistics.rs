//! The allocator's statistics that the runtime tools print on exit (`--print_statistics`).

/// The most memory that was allocated on the device at once. A tool that words it differently leaves it
/// unknown, never zero.
pub(super) fn peak_device_memory(stderr: &str) -> Option<u64> {
    // DEVICE_LOCAL:       524288B peak /       524288B allocated / …
    let line = stderr.lines().rev().find_map(|line| line.trim().strip_prefix("DEVICE_LOCAL:"))?;
    let (bytes, _) = line.split_once("B peak")?;
    bytes.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_read_from_what_the_tool_prints_on_exit() {
        // iree-run-module 3.13.0 on local-task; 3.9.0 words it alike.
        let printed = "Device: local-task\n[[ iree_hal_allocator_t memory statistics ]]\n  \
                       HOST_LOCAL:       262144B peak /       262144B allocated /       262144B freed /            0B live\n\
                       DEVICE_LOCAL:       524288B peak /       524288B allocated /       524288B freed /            0B live\n\n";
        assert_eq!(peak_device_memory(printed), Some(524_288));
    }

    #[test]
    fn other_words_leave_it_unknown() {
        for other in ["", "DEVICE_LOCAL: 5 MiB peak / 0", "HOST_LOCAL: 5B peak /", "DEVICE_LOCAL: -5B peak"] {
            assert_eq!(peak_device_memory(other), None, "{other}");
        }
    }
}
