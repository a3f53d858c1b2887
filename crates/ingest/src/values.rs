//! The text of a field: a number, a path, a date, a revision or a command.

use benchgate_core::model::{is_hash, is_in, words};

/// Endings of files that hold a model or its data.
const DATA: &str = "gguf mlir mlirbc onnx pt pth pt2 ckpt safetensors tflite vmfb irpa npz npy pb h5 csv bin";

/// Returns a value as a number, if it is one; `76.1 %` and `0.93±0.01` are too.
pub(super) fn number(value: &str) -> Option<f64> {
    let value = value.split('±').next().unwrap_or(value);
    value.trim().trim_end_matches('%').trim_end().parse().ok().filter(|number: &f64| number.is_finite())
}

/// Returns a value in one spelling: `8.0` is `8`.
pub(super) fn plain(value: &str) -> String {
    number(value)
        .map_or_else(|| without_versions(&without_addresses(value.trim())), |number| number.to_string())
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

/// Words in the names of options whose value is a file that a program writes.
const OUTPUTS: &str = "o out output outfile json log report export result results junit xml csv";

/// Returns the arguments of a command, without its program, paths, and the files that it writes.
pub(super) fn settings(command: &str) -> Option<String> {
    let trimmed = command.split_whitespace().map(|word| word.trim_matches(['"', '\'', ',', '[', ']']));
    // A list (`["./bench", "--n=1"]`) may have no spaces.
    let all: Vec<&str> =
        trimmed.flat_map(|word| word.split("\",\"")).filter(|word| !word.is_empty()).collect();
    let writes = |option: &str| {
        option.starts_with('-')
            && (option.contains("benchmark_out") || words(option).last().is_some_and(|it| is_in(OUTPUTS, it)))
    };
    let is_data = |value: &str| value.rsplit_once('.').is_some_and(|(_, ending)| is_in(DATA, ending));
    let is_file = |value: &str| value.contains(['.', '/']) && !is_data(value);
    let mut kept: Vec<&str> = Vec::new();
    let mut follows_output = false;
    for word in all.into_iter().skip(1) {
        let (option, value) =
            word.split_once('=').map_or((word, None), |(option, value)| (option, Some(value)));
        let is_output = writes(option) && value.is_none_or(is_file) || follows_output && is_file(word);
        follows_output = writes(option) && value.is_none();
        if !is_output && !is_place(value.unwrap_or(word)) {
            kept.push(word);
        }
    }
    (!kept.is_empty()).then(|| kept.join(" "))
}

/// Returns the name of a file that holds a model or its data, without its folder: an absolute path may differ.
pub(super) fn data_file(value: &str) -> Option<&str> {
    let (_, file) = value.trim().rsplit_once('/').filter(|_| is_place(value))?;
    let (stem, ending) = file.rsplit_once('.')?;
    (is_in(DATA, ending) && !stem.starts_with("tmp")).then_some(file)
}

/// Returns the name of a file or folder that a program reads, without the folder in which it lies, by the words in the name of
/// its field: `input_file`, `dataset_url`.
pub(super) fn input(words: &[&str], value: &str) -> Option<String> {
    const PLACES: &str = "path file dir directory folder url uri";
    const INPUTS: &str = "input inputs data dataset corpus";
    const REPORTS: &str = "json jsonl log xml html md";
    const WRITTEN: &str = "output outputs out result results log logs tmp temp cache dump save saved";
    const SIDES: &str = "base head old new before after baseline candidate main pr";
    let any = |known: &str| words.iter().any(|word| is_in(known, word));
    let value = value.trim().split(['?', '#']).next()?.trim_end_matches('/');
    let (folder, name) = value.rsplit_once(['/', '\\']).unwrap_or(("", value));
    let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
    let is_bare_file = words == ["file"] && folder.is_empty() && !is_in(REPORTS, ending);
    let is_input = any(PLACES) && any(INPUTS) && !any(WRITTEN) || is_bare_file;
    // Folders of runs and sides have numbers, dates or names of their own.
    let lower = stem.to_lowercase();
    let is_of_run = ending.is_empty() && stem.ends_with(|c: char| c.is_ascii_digit())
        || is_identity(stem)
        || number(stem).is_some()
        || benchgate_core::model::words(&lower).iter().any(|word| is_in(SIDES, word));
    (is_input && !name.is_empty() && !name.starts_with("tmp") && !is_of_run).then(|| plain(name))
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

/// Returns whether a text is the hash of a commit, which is shorter than that of data.
fn is_commits(text: &str) -> bool {
    is_hash(text) && text.len() <= 41
}

/// Returns whether a text is a day, such as `20261130`.
fn is_day(text: &str) -> bool {
    let part = |at: std::ops::Range<usize>| text.get(at).and_then(|part| part.parse::<u32>().ok());
    text.len() == 8
        && text.starts_with("20")
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && part(4..6).is_some_and(|month| (1..=12).contains(&month))
        && part(6..8).is_some_and(|day| (1..=31).contains(&day))
}

/// Returns whether a value consists of nothing but what tells runs or revisions apart: the hash of a commit, the output of
/// `git describe`, a reference of git, a date, or a time of the day.
pub(super) fn is_identity(value: &str) -> bool {
    let value = value.trim();
    let described = value.strip_suffix("-dirty").unwrap_or(value);
    // `v1.2-3-gabc1234`
    let is_description = || {
        let mut parts = described.rsplitn(3, '-');
        let (hash, count) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        hash.starts_with('g') && is_commits(hash) && number(count).is_some()
    };
    let is_date = || {
        const MONTHS: &str = "jan feb mar apr may jun jul aug sep sept oct nov dec january february march april june july august \
            september october november december";
        const OTHERS: &str = "mon tue wed thu fri sat sun monday tuesday wednesday thursday friday saturday sunday am pm utc gmt";
        let said: Vec<String> = words(value).iter().map(|word| word.to_lowercase()).collect();
        let is_month = |word: &String| is_in(MONTHS, word);
        let is_number = |word: &String| word.bytes().all(|byte| byte.is_ascii_digit());
        said.len() >= 3
            && said.iter().any(is_month)
            && said.iter().any(|word| word.len() == 4 && word.starts_with("20") && is_number(word))
            && said.iter().all(|word| is_month(word) || is_number(word) || is_in(OTHERS, word))
    };
    // `10:20:00.5`, but not the ratio `16:9`
    let is_clock = || {
        let is_part = |part: &str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        let whole = value.split('.').next().unwrap_or_default();
        whole.split(':').count() == 3 && whole.split(':').all(is_part)
    };
    value.starts_with("refs/")
        || is_commits(described)
        || is_day(value)
        || is_description()
        || is_date()
        || is_clock()
}

/// Returns a value without the versions in it and what tells its runs apart: `fmt 10.1.0` is `fmt #`.
fn without_versions(value: &str) -> String {
    let masked: Vec<String> = value
        .split_whitespace()
        .map(|word| if is_version_number(word) { "#".to_owned() } else { without_revision(word) })
        .collect();
    masked.join(" ")
}

/// Returns a value without the hash or the day at its end, which may differ: `nightly-20261130` is `nightly-#`.
pub(super) fn without_revision(value: &str) -> String {
    let at = value.rfind(['-', '_', '@', '.']).filter(|at| {
        let end = &value[at + 1..];
        is_commits(end) || is_day(end)
    });
    at.map_or_else(|| value.to_owned(), |at| format!("{}#", &value[..=at]))
}
