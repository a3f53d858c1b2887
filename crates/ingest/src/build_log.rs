//! Errors that a build states in its log although it ended with success, because a script went on after them.

use std::collections::BTreeSet;

use benchgate_core::model::{excerpt, without_colors};

use super::logs::is_crash;
use super::text::lines;

/// Maximum number of characters of an error that is kept.
const LONGEST: usize = 80;

/// Returns the errors that compilers, linkers and build tools state in a log, without the places where they found them, so
/// that two builds of other folders state the same.
pub fn build_errors(log: &str) -> BTreeSet<String> {
    let without_places = |line: &str| {
        let is_place = |word: &&str| word.contains(['/', '\\']);
        let words = line.split_whitespace().filter(|word| !is_place(word));
        let constant = |word: &str| word.replace(|c: char| c.is_ascii_digit(), "");
        words.map(constant).collect::<Vec<_>>().join(" ")
    };
    let of_line = |line: &str| {
        let line = without_colors(line.trim());
        let said = of_compiler(&line).or_else(|| is_crash(&line).then_some(&*line))?;
        Some(excerpt(&without_places(said), LONGEST))
    };
    lines(log).filter_map(|line| of_line(line.text)).collect()
}

/// Returns the error that a line of a compiler or linker states: `a.c:3:5: error: …`, `error[E0308]: …`, `a.cu(12): error
/// C2065: …`, `ld: a.o: undefined reference to …`, and `./a.go:3:5: …`, as Go writes errors only.
fn of_compiler(line: &str) -> Option<&str> {
    const WORD: &str = "error";
    let begins = |before: &str| before.is_empty() || before.ends_with(": ") || before.ends_with(": fatal ");
    let is_code = |code: &str| {
        let code = code.strip_prefix('[').and_then(|code| code.strip_suffix(']')).or(code.strip_prefix(' '));
        code.is_some_and(|code| {
            code.contains(|c: char| c.is_ascii_digit()) && code.bytes().all(|it| it.is_ascii_alphanumeric())
        })
    };
    let error = line.match_indices(WORD).find_map(|(at, _)| {
        let (code, text) = line[at + WORD.len()..].split_once(": ")?;
        let is_error = begins(&line[..at]) && (code.is_empty() || is_code(code)) && !text.trim().is_empty();
        is_error.then(|| &line[at..])
    });
    let undefined = || line.find("undefined reference to ").map(|at| &line[at..]);
    let of_go = || {
        let (_, rest) = line.split_once(".go:")?;
        let mut parts = rest.splitn(3, ':');
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let [row, column] = [parts.next()?, parts.next()?];
        (is_number(row) && is_number(column)).then(|| parts.next()).flatten()
    };
    error.or_else(undefined).or_else(of_go)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_compilers_and_build_tools_are_found_and_those_of_two_folders_are_equal() {
        for (line, elsewhere) in [
            (
                "/a/bench.c:3:5: error: expected ';'",
                "../b/bench.c:17:1: \u{1b}[1merror: \u{1b}[0mexpected ';'",
            ),
            (
                "bench.c:1:10: fatal error: a.h: No such file or directory",
                "/x/y.c:2:10: fatal error: a.h: No such file or directory",
            ),
            ("error[E0308]: mismatched types", "error[E0308]: mismatched types"),
            (
                "error: could not compile `bench` (bin \"bench\") due to 1 previous error",
                "error: could not compile `bench` (bin \"bench\") due to 2 previous errors",
            ),
            (
                "bench.cu(12): error: identifier \"x\" is undefined",
                "bench.cu(14): error: identifier \"x\" is undefined",
            ),
            (
                "bench.cpp(12): error C2065: 'x': undeclared identifier",
                "bench.cpp(13): error C2065: 'x': undeclared identifier",
            ),
            (
                "/usr/bin/ld: a.o: undefined reference to `main'",
                "a.c:(.text+0x9): undefined reference to `main'",
            ),
            ("collect2: error: ld returned 1 exit status", "collect2: error: ld returned 1 exit status"),
            ("./bench.go:3:5: undefined: x", "../b/bench.go:13:5: undefined: x"),
            ("make[1]: *** [Makefile:2: bench] Error 1", "make[2]: *** [Makefile:3: bench] Error 1"),
            (
                "CMake Error at CMakeLists.txt:3 (find_package):",
                "CMake Error at CMakeLists.txt:4 (find_package):",
            ),
        ] {
            let [here, there] = [line, elsewhere].map(build_errors);
            assert_eq!(here.len(), 1, "{line}");
            let same = |errors: &BTreeSet<String>| {
                errors.iter().next().map(|error| error.trim_end_matches('s').to_owned())
            };
            assert_eq!(same(&here), same(&there), "{line}");
        }
    }

    #[test]
    fn what_a_build_that_succeeds_says_is_no_error() {
        for line in [
            "bench.c:3:5: warning: unused variable 'error' [-Wunused-variable]",
            "   12 |     puts(\"error: no input\");",
            "gcc -Werror -c error.c -o error.o || echo \"error: no compiler\"",
            "-- Performing Test HAVE_ERROR_H - Failed",
            "checking for error_at_line... no",
            "   Compiling thiserror v2.0.12",
            "[2/3] Building C object error.c.o",
            "make: Nothing to be done for 'bench'.",
            "0 errors, 1 warning",
            "error: ",
            "see bench.go: it is slow",
        ] {
            assert_eq!(build_errors(line), BTreeSet::new(), "{line}");
        }
    }
}
