//! Days as text.

/// Whether this is a calendar day, `YYYY-MM-DD` and nothing else, so that comparing texts compares days.
pub fn is_date(text: &str) -> bool {
    let day = text.parse::<jiff::civil::Date>();
    text.len() == 10 && day.is_ok_and(|day| day.to_string() == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_days_that_sort_as_text_are_days() {
        for day in ["2026-11-23", "2024-02-29"] {
            assert!(is_date(day), "{day}");
        }
        for other in ["", "2026-02-30", "20261123", "2026-1-23", "2026-11-23T00:00", "-002026-11-23", "soon"]
        {
            assert!(!is_date(other), "{other}");
        }
    }
}
