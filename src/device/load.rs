//! How busy the machine is.

/// The 1, 5 and 15 minute load averages; empty where the kernel does not say.
pub fn load_average() -> Vec<f64> {
    parse(&std::fs::read_to_string("/proc/loadavg").unwrap_or_default())
}

fn parse(text: &str) -> Vec<f64> {
    text.split(' ').take(3).map_while(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_averages_are_read() {
        assert_eq!(parse("0.20 1.18 12.08 1/190 12345\n"), [0.20, 1.18, 12.08]);
        assert!(parse("").is_empty());
        assert_eq!(load_average().len(), 3);
    }
}
