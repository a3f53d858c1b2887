//! The pattern that makes a tool run only some of its benchmarks. It may select more benchmarks than
//! requested but never fewer, because a requested benchmark that is not printed counts as failed.

use benchgate_ingest::Format;

/// A pattern that selects all benchmarks in every tool with a filter, because it matches any character.
pub(super) const EVERYTHING: &str = ".";

/// Maximum length of a pattern. The kernel rejects arguments of more than 128 KiB.
const LONGEST: usize = 100 << 10;

/// The pattern for these benchmarks, or for all, in the syntax of the tool that prints this format. Tools
/// whose filter syntax is unknown run everything.
pub(super) fn pattern(format: Option<Format>, rows: Option<&[&str]>) -> String {
    let Some(rows) = rows else { return EVERYTHING.to_owned() };
    let found = match format {
        Some(
            Format::GoogleBenchmarkJson
            | Format::GoogleBenchmarkCsv
            | Format::GoogleBenchmarkConsole
            | Format::CargoBench,
        ) => Some(one_of(rows.iter().copied())),
        Some(Format::Benchfmt | Format::GoTestJson) => rows
            .iter()
            .map(|row| go_function(row))
            .collect::<Option<Vec<&str>>>()
            .map(|names| one_of(names.into_iter())),
        Some(Format::PytestBenchmarkJson) => {
            Some(rows.iter().map(|row| pytest_keyword(row)).collect::<Vec<&str>>().join(" or "))
        }
        _ => None,
    };
    found
        .filter(|pattern| !pattern.is_empty() && pattern.len() <= LONGEST)
        .unwrap_or_else(|| EVERYTHING.to_owned())
}

/// A regular expression that matches any of the names, in the syntax that POSIX (Google Benchmark), Go and Rust share.
/// POSIX knows no `\]` and no `\}`; alone, both are ordinary characters.
fn one_of<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let escaped = |name: &str| -> String {
        let special = |c: char| r"\.+*?()|[{^$".contains(c);
        name.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
    };
    let mut names: Vec<String> = names.map(escaped).collect();
    names.dedup();
    format!("^({})$", names.join("|"))
}

/// The function name of a Go benchmark, without its package, sub-benchmarks and number of processors.
fn go_function(row: &str) -> Option<&str> {
    let function = row.split('/').find(|part| part.starts_with("Benchmark"))?;
    let (name, count) = function.rsplit_once('-').unwrap_or((function, ""));
    Some(if !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit()) { name } else { function })
}

/// The test's name as a word for `-k`, which matches parts of names. The parameters are left out, because
/// they may contain characters that `-k` does not accept in a word.
fn pytest_keyword(row: &str) -> &str {
    let without_parameters = row.split('[').next().unwrap_or(row);
    without_parameters.rsplit("::").next().unwrap_or(without_parameters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tool_gets_its_own_syntax() {
        let google = pattern(Some(Format::GoogleBenchmarkJson), Some(&["BM_x<int>/8", "BM_y/real_time.5"]));
        assert_eq!(google, r"^(BM_x<int>/8|BM_y/real_time\.5)$");
        let brackets = pattern(Some(Format::GoogleBenchmarkJson), Some(&["BM_x[4]{2}"]));
        assert_eq!(brackets, r"^(BM_x\[4]\{2})$");
        let pytest =
            pattern(Some(Format::PytestBenchmarkJson), Some(&["t.py::test_a[1 2]", "t.py::C::test_b"]));
        assert_eq!(pytest, "test_a or test_b");
        let go = pattern(Some(Format::Benchfmt), Some(&["p/q/BenchmarkSum/n=8-16", "BenchmarkMax-16"]));
        assert_eq!(go, "^(BenchmarkSum|BenchmarkMax)$");
        assert_eq!(pattern(Some(Format::JmhJson), Some(&["a"])), EVERYTHING);
        assert_eq!(pattern(Some(Format::GoTestJson), Some(&["sum"])), EVERYTHING);
    }

    #[test]
    fn a_pattern_that_is_too_long_for_an_argument_selects_everything() {
        let name = "x".repeat(LONGEST);
        assert_eq!(pattern(Some(Format::CargoBench), Some(&[&name])), EVERYTHING);
    }
}
