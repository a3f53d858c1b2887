//! How busy the machine is.

use std::path::PathBuf;

/// A file of counters that the kernel keeps. A debug build, whose measurements don't count, reads those that a test
/// wrote instead; a release has no such variable, because a machine that only looks idle must not pass.
pub(super) fn counters(name: &str) -> PathBuf {
    let given = if cfg!(debug_assertions) { std::env::var_os("BENCHGATE_PROC_DIR") } else { None };
    given.map_or_else(|| PathBuf::from("/proc"), PathBuf::from).join(name)
}

/// The 1, 5 and 15 minute load averages; empty if the kernel does not report them.
pub fn load_average() -> Vec<f64> {
    parse(&std::fs::read_to_string(counters("loadavg")).unwrap_or_default())
}

/// Total idle time of the machine's processors since boot; `None` if the kernel does not report it.
pub fn idle_time() -> Option<std::time::Duration> {
    let ticks = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK).ok().flatten()?;
    let ticks_per_second = f64::from(i32::try_from(ticks).ok()?);
    idle_ticks(&std::fs::read_to_string(counters("stat")).ok()?)
        .map(|ticks| std::time::Duration::from_secs_f64(ticks / ticks_per_second))
}

/// `idle` and `iowait` of the line that sums up all processors.
fn idle_ticks(stat: &str) -> Option<f64> {
    let numbers = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
    let numbers: Vec<f64> = numbers.map_while(|number| number.parse().ok()).collect();
    Some(numbers.get(3)? + numbers.get(4)?)
}

fn parse(text: &str) -> Vec<f64> {
    text.split(' ').take(3).map_while(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_and_waiting_for_a_disk_are_one() {
        assert_eq!(idle_ticks("cpu  10 20 30 400 50 0 0 0 0 0\ncpu0 1 2 3 4 5 0 0 0 0 0\n"), Some(450.0));
        assert_eq!(idle_ticks("cpu0 1 2 3 4 5\n"), None);
        assert!(idle_time().is_some());
    }

    #[test]
    fn three_averages_are_read() {
        assert_eq!(parse("0.20 1.18 12.08 1/190 12345\n"), [0.20, 1.18, 12.08]);
        assert!(parse("").is_empty());
        assert_eq!(load_average().len(), 3);
    }
}
