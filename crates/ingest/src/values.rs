//! The text of a field: a number, a path, a date, a revision or a command.

use benchgate_core::model::{is_in, words};

/// Endings of files that hold a model or its data.
const DATA: &str = "gguf mlir mlirbc onnx pt pth pt2 ckpt safetensors tflite vmfb irpa npz npy pb h5 csv bin";

/// Returns a value as a number, if it is one; `76.1 %` and `0.93±0.01` are too.
pub(super) fn number(value: &str) -> Option<f64> {
    let value = value.split('±').next().unwrap_or(value);
    value.trim().trim_end_matches('%').trim_end().parse().ok().filter(|number: &f64| number.is_finite())
}

/// Returns a value in one spelling: `8.0` is `8`.
pub(super) fn plain(value: &str) -> String {
    number(value).map_or_else(|| without_addresses(value.trim()), |number| number.to_string())
}

/// Returns whether a value means that there is none.
pub(super) fn is_absent(value: &str) -> bool {
    matches!(value.trim(), "" | "-" | "–" | "null" | "None" | "none" | "n/a" | "N/A")
}

/// Returns whether a value is a path, an address or a date.
pub(super) fn is_place(value: &str) -> bool {
    let value = value.trim();
    let is_date = value.len() >= 10
        && value.bytes().take(10).enumerate().all(|(at, byte)| match at {
            4 | 7 => matches!(byte, b'-' | b'/'),
            _ => byte.is_ascii_digit(),
        });
    let is_drive = value.split_once(":\\").is_some_and(|(drive, _)| drive.len() == 1);
    is_date
        || is_drive
        || value.contains("://")
        || ["/", "./", "../", "~/"].iter().any(|start| value.starts_with(start))
}

/// Returns the arguments of a command, without its program, paths, and the settings of the tool that repeats it.
pub(super) fn settings(command: &str) -> Option<String> {
    let is_setting = |word: &&str| {
        let value = word.split_once('=').map_or(*word, |(_, value)| value);
        let is_output = ["json", "xml", "txt", "log", "out"].into_iter().any(|end| {
            value
                .rsplit_once('.')
                .is_some_and(|(_, ending)| ending.trim_end_matches(['"', '\'', ',', ']']) == end)
        });
        !is_place(value.trim_start_matches(['"', '\'', '['])) && !is_output && !word.contains("--benchmark_")
    };
    let words: Vec<&str> = command.split_whitespace().skip(1).filter(is_setting).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// Returns the name of a file that holds a model or its data, without its folder, which may differ.
pub(super) fn data_file(value: &str) -> Option<&str> {
    let (folder, file) = value.trim().rsplit_once('/')?;
    let is_path = is_place(value) || !folder.contains(char::is_whitespace);
    let (stem, ending) = file.rsplit_once('.')?;
    (is_path && is_in(DATA, ending) && !stem.starts_with("tmp")).then_some(file)
}

/// Returns whether a value is a version of at least three numbers: `2.7.1+cu121`.
pub(super) fn is_version_number(value: &str) -> bool {
    let value = value.trim();
    let numbers = value.strip_prefix('v').unwrap_or(value).split(['+', '-']).next().unwrap_or_default();
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = numbers.split('.').collect();
    parts.len() >= 3 && parts[..3].iter().all(|part| is_number(part))
}

/// Returns a text without the addresses of objects in it, such as `<Timer object at 0x7f95e34e8910>`.
pub(super) fn without_addresses(text: &str) -> String {
    let mut parts = text.split(" at 0x");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.trim_start_matches(|c: char| c.is_ascii_hexdigit()))
}

/// Returns whether a value tells runs or revisions apart: the hash of a commit, the output of `git describe`, a reference of
/// git, or a date.
pub(super) fn is_identity(value: &str) -> bool {
    let value = value.trim();
    let is_hash = |text: &str| {
        let text = text.strip_prefix('g').unwrap_or(text);
        (7..=40).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_hexdigit())
            && text.bytes().any(|byte| byte.is_ascii_digit())
            && text.bytes().any(|byte| byte.is_ascii_alphabetic())
    };
    let is_day = |digits: &str| {
        digits.len() == 8 && digits.starts_with("20") && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    let of_day = || {
        let said = words(value);
        let is_month = |word: &&str| {
            let months = "jan feb mar apr may jun jul aug sep oct nov dec";
            word.get(..3).is_some_and(|start| is_in(months, &start.to_lowercase()))
        };
        let is_year = |word: &&str| word.len() == 4 && word.starts_with("20") && number(word).is_some();
        said.len() >= 3 && said.iter().any(|it| is_month(it)) && said.iter().any(|it| is_year(it))
    };
    let described = value.strip_suffix("-dirty").unwrap_or(value);
    value.starts_with("refs/")
        || is_hash(described)
        || described.rsplit_once(['-', '@']).is_some_and(|(_, hash)| is_hash(hash))
        || value.rsplit(['-', '_', '.']).next().is_some_and(is_day)
        || of_day()
}
