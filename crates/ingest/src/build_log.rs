//! Errors that a build states in its log although it ended with success, because a script went on after them.

use std::collections::BTreeMap;

use benchgate_core::model::{excerpt, without_colors};

use super::logs::{is_ended_by_signal, is_failed_build};
use super::text::lines;

/// Maximum number of characters of an error that is kept.
const LONGEST: usize = 80;

/// Returns the errors that compilers, linkers and build tools state in a log. The keys don't contain what differs between two
/// builds of other folders that state the same: places and numbers.
pub fn build_errors(log: &str) -> BTreeMap<String, String> {
    let key = |said: &str| {
        let is_place = |word: &&str| word.contains(['/', '\\']);
        let constant =
            |word: &str| if word.contains(|c: char| c.is_ascii_digit()) { "…" } else { word }.to_owned();
        said.split_whitespace().filter(|word| !is_place(word)).map(constant).collect::<Vec<_>>().join(" ")
    };
    let of_line = |line: &str| {
        let line = without_colors(line.trim());
        // Compilers show the source line: `   12 |     puts("error: no input");`
        let is_source = line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ').starts_with('|');
        let said = of_compiler(&line)
            .or_else(|| (is_failed_build(&line) || is_ended_by_signal(&line)).then_some(&*line))
            .filter(|_| !is_source)?;
        Some((key(said), excerpt(said, LONGEST)))
    };
    lines(log).filter_map(|line| of_line(line.text)).collect()
}

/// Returns the error that a line of a compiler, assembler or linker states: `a.c:3:5: error: …`, `error[E0308]: …`,
/// `a.cu(12): error C2065: …`, `nvcc error   : …`, `a.s:3: Error: …`, `ld: a.o: undefined reference to …`, and `./a.go:3:5: …`,
/// as Go writes errors only.
fn of_compiler(line: &str) -> Option<&str> {
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_code = |code: &str| {
        let code = code.strip_prefix('[').and_then(|code| code.strip_suffix(']')).or(code.strip_prefix(' '));
        code.is_some_and(|code| {
            code.contains(|c: char| c.is_ascii_digit()) && code.bytes().all(|it| it.is_ascii_alphanumeric())
        })
    };
    // `bench.s:3: `, `bench.cu(12): `
    let is_placed = |before: &str| {
        let place = before.strip_suffix(": ").unwrap_or_default();
        place.ends_with(')') || place.rsplit(':').next().is_some_and(is_digits)
    };
    let error = ["error", "Error", "fatal"].iter().find_map(|word| {
        line.match_indices(word).find_map(|(at, _)| {
            let (before, rest) = (&line[..at], &line[at + word.len()..]);
            let (code, text) = rest.split_once(':')?;
            let begins = match *word {
                // Names of Python's exceptions end with this word, such as `ValueError`.
                "Error" => before.is_empty() || is_placed(before),
                "fatal" => before == "ptxas ",
                _ => {
                    before.is_empty()
                        || before.ends_with(": ")
                        || before.ends_with(": fatal ")
                        || before.ends_with(": internal compiler ")
                        || before == "nvcc "
                }
            };
            // `error: 1e-6` and `error: none` are results.
            let said: Vec<&str> = text.split_whitespace().collect();
            let is_result = match said.as_slice() {
                [] => true,
                [one] | [one, _] => one.parse::<f64>().is_ok() || *one == "none",
                _ => false,
            };
            let is_told = is_placed(before) || text.starts_with(' ') && !is_result;
            (begins && (code.trim().is_empty() || is_code(code)) && is_told).then(|| &line[at..])
        })
    });
    let undefined =
        || line.find("undefined reference to ").filter(|_| !line.contains("warning: ")).map(|at| &line[at..]);
    // Bazel's own: `ERROR: /src/BUILD:3:1: Compiling a.cc failed: …`
    let of_bazel =
        || line.strip_prefix("ERROR: ").filter(|rest| rest.contains(" failed: ") || rest.contains("BUILD"));
    let of_go = || {
        let (_, rest) = line.split_once(".go:")?;
        let mut parts = rest.splitn(3, ':');
        let [row, column] = [parts.next()?, parts.next()?];
        (is_digits(row) && is_digits(column)).then(|| parts.next()).flatten()
    };
    error.or_else(undefined).or_else(of_bazel).or_else(of_go)
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
            ("nvcc error   : 'cicc' died due to signal 11", "nvcc error   : 'cicc' died due to signal 6"),
            (
                "ptxas fatal   : Unresolved extern function 'f'",
                "ptxas fatal   : Unresolved extern function 'f'",
            ),
            ("bench.s:3: Error: no such instruction: `x'", "b.s:7: Error: no such instruction: `x'"),
            ("Bench.hs:3:1: error:", "b/Bench.hs:17:1: error:"),
            (
                "ERROR: /src/BUILD:3:1: Compiling a.cc failed: (Exit 1)",
                "ERROR: /x/BUILD:4:1: Compiling a.cc failed: (Exit 1)",
            ),
            (
                "bench.c:3:1: internal compiler error: Segmentation fault",
                "b.c:4:1: internal compiler error: Segmentation fault",
            ),
            ("cc1: error: -mfoo is not supported", "cc1: error: -mfoo is not supported"),
            ("a.s:3: Error: .size expression", "b.s:3: Error: .size expression"),
            (
                "build.sh: line 3: 4711 Segmentation fault      cc a.c",
                "build.sh: line 4: 12 Segmentation fault      cc a.c",
            ),
            ("make[1]: *** [Makefile:2: bench] Error 1", "make[2]: *** [Makefile:3: bench] Error 1"),
            (
                "CMake Error at CMakeLists.txt:3 (find_package):",
                "CMake Error at CMakeLists.txt:4 (find_package):",
            ),
        ] {
            let [here, there] = [line, elsewhere].map(build_errors);
            assert_eq!(here.len(), 1, "{line}");
            let key = |errors: &BTreeMap<String, String>| {
                errors.keys().next().map(|error| error.trim_end_matches('s').to_owned())
            };
            assert_eq!(key(&here), key(&there), "{line}");
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
            "max error: 1.2e-5",
            "error: 0.5 %",
            "error: none",
            "   12 | cudaError_t err = cudaMalloc(&p, n);",
            "      |                 ^ error: not this one",
            "-- Looking for VK_ERROR_OUT_OF_DATE_KHR - found",
            "bench.cpp:3: warning: ignoring return value of type 'hipError_t' [-Wunused-value]",
            "ERROR: pip's dependency resolver does not currently take into account all the packages that are installed.",
            "ld: a.o: warning: undefined reference to `f'",
            "test_error ... ok",
            "CHECK failed: 0",
            "see bench.go: it is slow",
        ] {
            assert_eq!(build_errors(line), BTreeMap::new(), "{line}");
        }
    }
}
