//! Finds the files that flags of the tools name: transform libraries, tuning specs, folders of bitcode,
//! parameter archives, and files with more flags. A cache key that contains a flag but not the content of the
//! file that it names would match entries made from other content.
//!
//! There is no list of known flags, because each release of the tools has different ones. Every part of a
//! flag that is the name of an existing file or folder counts as one. At worst, a model is compiled once too
//! often.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use benchgate_config::{self, Config, Side};

use super::cache::{Digests, KeyBuilder};
use super::{PipelineError, trace};

/// Maximum depth of flag files that name other flag files.
const DEEPEST: usize = 8;
/// Maximum size of a flag file, which is text that people write.
const LARGEST_FLAG_FILE: u64 = 1 << 20;
/// Maximum number of adjacent parts of a flag that can form one name, because a file name may itself contain
/// separators.
const WIDEST: usize = 6;
/// Characters that separate the parts of a flag, as in `spec.mlir@sequence`, `scope=w.irpa`, `a.bc,b.bc`.
const SEPARATORS: &[char] = &['=', '@', ',', ':', ';', '+', '"', '\'', ' ', '\t'];

/// Words at the end of a flag's name that show that it reads a file or folder.
const READS: &[&str] = &["dir", "directory", "file", "filename", "flagfile", "from", "library"];
/// Words in the name of a flag that show that it writes a file. Such a file need not exist, and an existing
/// one is not read.
const WRITES: &[&str] = &[
    "dump",
    "export",
    "log",
    "out",
    "output",
    "print",
    "profile",
    "reproducer",
    "save",
    "splat",
    "to",
    "trace",
    "write",
];
/// Extensions by which a file name without a folder is recognized.
const ENDINGS: &[&str] = &[
    "a",
    "bc",
    "bin",
    "cfg",
    "fatbin",
    "gguf",
    "hsaco",
    "irpa",
    "json",
    "ll",
    "mlir",
    "mlirbc",
    "npy",
    "o",
    "ptx",
    "safetensors",
    "so",
    "spv",
    "txt",
    "vmfb",
    "yaml",
    "yml",
];

/// Every file that a side's flags name, including flags in flag files.
pub fn named_by_flags(config: &Config, side: &Side) -> Vec<PathBuf> {
    let of_targets = config.targets.iter().flat_map(|target| [&target.flags, &target.run_flags]);
    let of_models = config.models.iter().map(|model| &model.flags);
    let all = of_targets.chain(of_models).chain([&side.flags, &side.run_flags]);
    // A flag that names a missing file makes its benchmarks fail elsewhere, so errors are ignored here.
    let named = all.filter_map(|flags| Named::find(flags, &side.sources).ok());
    named.flat_map(|named| named.files.into_values()).collect()
}

/// The files that the flags of one command name.
#[derive(Debug, Default)]
pub(super) struct Named {
    /// Paths of the files by their names in the flags. For files in a folder, the rest of the path is
    /// appended.
    pub(super) files: BTreeMap<String, PathBuf>,
    /// The flags, including those in flag files.
    flags: Vec<String>,
}

impl Named {
    /// Finds every file. Names are relative to `folder`, in which the tools are started.
    ///
    /// # Errors
    /// A flag names a missing file, or flag files are nested too deeply.
    pub(super) fn find(flags: &[String], folder: &Path) -> Result<Self, String> {
        let mut search = FlagSearch {
            folder,
            named: Self::default(),
            folders: Vec::new(),
            read: BTreeSet::new(),
            missing: Vec::new(),
        };
        search.all(flags, 0)?;
        let FlagSearch { named, folders, missing, .. } = search;
        // A missing object file may be in a folder that another flag names.
        let lost = missing.iter().find(|(_, name)| !folders.iter().any(|folder| folder.join(name).exists()));
        match lost {
            Some((flag, name)) => Err(format!(
                "the flag `{flag}` names `{name}`, but there is no such file in {}",
                folder.display()
            )),
            None => Ok(named),
        }
    }

    /// Finds files in the values of environment variables. A value need not name a file. Folders are left
    /// out, because they are usually search paths of a loader.
    pub(super) fn in_values<'a>(values: impl IntoIterator<Item = &'a String>, folder: &Path) -> Self {
        let mut named = Self::default();
        for value in values {
            for name in candidates(value) {
                let path = folder.join(name);
                if path.is_file() {
                    named.files.insert(name.to_owned(), path);
                }
            }
        }
        named
    }

    /// Adds the names and contents of the files to a key.
    pub(super) async fn add_to(
        &self,
        mut key: KeyBuilder,
        digests: &Digests,
    ) -> Result<KeyBuilder, PipelineError> {
        for (name, path) in &self.files {
            key = key.text("named", name).text("file", &digests.sha256(path).await?);
        }
        Ok(key.bytes("files", &self.files.len().to_le_bytes()))
    }

    /// Returns whether a flag requests code for the processor on which it is compiled.
    pub(super) fn asks_for_host(&self) -> bool {
        let value =
            |flag: &str| flag.split_once('=').map_or_else(|| flag.to_owned(), |(_, value)| value.to_owned());
        let is_host = |word: &str| matches!(word, "host" | "native");
        self.flags.iter().any(|flag| value(flag).split(|c: char| !c.is_ascii_alphanumeric()).any(is_host))
    }
}

struct FlagSearch<'a> {
    folder: &'a Path,
    named: Named,
    folders: Vec<PathBuf>,
    /// Flag files that were read.
    read: BTreeSet<PathBuf>,
    /// Missing files: the flag, and the name in it.
    missing: Vec<(String, String)>,
}

impl FlagSearch<'_> {
    fn all(&mut self, flags: &[String], depth: usize) -> Result<(), String> {
        let mut before = "";
        for flag in flags {
            self.one(flag)?;
            self.demand(flag, before);
            accepted(flag)?;
            self.flag_file(flag, depth)?;
            self.named.flags.push(flag.clone());
            before = flag;
        }
        Ok(())
    }

    /// Records every part of a flag that is a file or a folder.
    fn one(&mut self, flag: &str) -> Result<(), String> {
        if flag.starts_with('-') && writes(name_of(flag)) {
            return Ok(());
        }
        for name in candidates(flag) {
            let path = self.folder.join(name);
            if path.is_file() {
                self.named.files.insert(name.to_owned(), path);
            } else if path.is_dir() {
                let below = trace::files_below(&path, &|_| false)
                    .map_err(|error| format!("the flag `{flag}` names the folder `{name}`: {error}"))?;
                for (rest, path) in below.into_iter().filter_map(|(rest, path)| Some((rest, path?))) {
                    self.named.files.insert(format!("{}/{rest}", name.trim_end_matches('/')), path);
                }
                self.folders.push(path);
            }
        }
        Ok(())
    }

    /// Records words that look like the name of a missing file. `before` is the preceding flag, which may
    /// take this word as its value.
    fn demand(&mut self, flag: &str, before: &str) {
        let (name, value) = match flag.split_once('=') {
            Some((name, value)) if name.starts_with('-') => (name, value),
            _ if flag.starts_with('-') => return,
            _ => (if before.contains('=') { "" } else { before }, flag),
        };
        if writes(name) {
            return;
        }
        let is_phase = name.trim_start_matches('-') == "compile-from";
        let reads = name.starts_with('-')
            && !is_phase
            && words(name).next_back().is_some_and(|word| READS.contains(&word));
        for part in value.split(',').filter(|part| !part.is_empty() && *part != "-") {
            let is_flag_file = flag.starts_with('@');
            if !(reads || is_flag_file || looks_like_a_file(part)) {
                continue;
            }
            let there = |name: &str| self.folder.join(name).exists();
            if !candidates(part).any(there) {
                let lost = part.rsplit('=').next().unwrap_or(part).trim_start_matches('@');
                self.missing.push((flag.to_owned(), lost.to_owned()));
            }
        }
    }

    /// Reads the file of `@flags.txt` (compiler) or `--flagfile=flags.txt` (runtime).
    fn flag_file(&mut self, flag: &str, depth: usize) -> Result<(), String> {
        let named = flag.strip_prefix('@').or_else(|| {
            let (name, value) = flag.split_once('=')?;
            (name.trim_start_matches('-') == "flagfile").then_some(value)
        });
        let Some(path) = named.map(|name| self.folder.join(name)).filter(|path| path.is_file()) else {
            return Ok(());
        };
        if depth >= DEEPEST {
            return Err(format!("files of flags are nested more than {DEEPEST} deep, at `{flag}`"));
        }
        if !self.read.insert(path.clone()) {
            return Ok(());
        }
        let unreadable = |why: String| format!("the flags of `{flag}` can't be read: {why}");
        let bytes = fs::metadata(&path).map_err(|error| unreadable(error.to_string()))?.len();
        if bytes > LARGEST_FLAG_FILE {
            return Err(unreadable(format!("the file is too large ({bytes} bytes)")));
        }
        let text = fs::read_to_string(&path).map_err(|error| unreadable(error.to_string()))?;
        // For the compiler, such a file has no comments, and quotes may extend over several lines.
        let text = text.trim_start_matches('\u{feff}');
        if flag.starts_with('@') {
            words_of(text).iter().try_for_each(|inner| accepted(inner))?;
        }
        for line in text.lines().map(str::trim) {
            // A quoted name may contain spaces. The runtime reads one flag per line, so the whole line is
            // tried first.
            self.one(line)?;
            let flags = words_of(line);
            if line.starts_with('#') || line.starts_with("//") {
                // A comment for the runtime. The compiler has no comments, so it would read a flag file that
                // is named here.
                for flag in &flags {
                    self.flag_file(flag, depth + 1)?;
                }
            } else {
                self.all(&flags, depth + 1)?;
            }
        }
        Ok(())
    }
}

/// Rejects flags that are not allowed, even in a flag file.
fn accepted(flag: &str) -> Result<(), String> {
    benchgate_config::refused_flag(flag).map_or(Ok(()), Err)
}

/// Splits the text of a flag file as the compiler does: at white space, unless it is quoted or follows a
/// backslash.
fn words_of(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    let mut letters = text.chars();
    while let Some(c) = letters.next() {
        match quote {
            _ if c == '\\' => {
                if let (Some(word), Some(escaped)) = (words.last_mut(), letters.next()) {
                    word.push(escaped);
                }
            }
            Some(open) if c == open => quote = None,
            None if c == '"' || c == '\'' => quote = Some(c),
            None if c.is_whitespace() => words.push(String::new()),
            _ => {
                if let Some(word) = words.last_mut() {
                    word.push(c);
                }
            }
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The parts of a flag that may be a name, each from one separator to another.
fn candidates(flag: &str) -> impl Iterator<Item = &str> {
    let ends: Vec<usize> =
        flag.match_indices(SEPARATORS).map(|(at, _)| at).chain(std::iter::once(flag.len())).collect();
    let starts = std::iter::once(0).chain(flag.match_indices(SEPARATORS).map(|(at, found)| at + found.len()));
    starts
        .enumerate()
        .flat_map(move |(index, from)| {
            let ends: Vec<usize> = ends.iter().skip(index).take(WIDEST).copied().collect();
            ends.into_iter().map(move |to| (from, to))
        })
        .filter(|(from, to)| from < to)
        .filter_map(|(from, to)| flag.get(from..to))
}

fn name_of(flag: &str) -> &str {
    flag.split('=').next().unwrap_or(flag)
}

fn words(name: &str) -> impl DoubleEndedIterator<Item = &str> {
    name.split(['-', '_']).filter(|word| !word.is_empty())
}

/// The first flag, if any, that makes the compiler write files in addition to the module.
pub(super) fn first_that_writes(flags: &[String]) -> Option<&String> {
    // A flag such as `--iree-input-demote-f64-to-f32=false` contains one of these words but takes a boolean.
    let names_a_file =
        |flag: &str| flag.split_once('=').is_some_and(|(_, value)| !matches!(value, "true" | "false"));
    flags.iter().find(|flag| names_a_file(flag) && writes(name_of(flag)))
}

fn writes(name: &str) -> bool {
    let expects = words(name).any(|word| word == "expected");
    name == "-o" || (!expects && words(name).any(|word| WRITES.contains(&word)))
}

/// Returns whether a value looks like a file: a path with a folder, or a name with a known file extension.
fn looks_like_a_file(value: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-+@=~/:".contains(c);
    if value.contains("://") || !value.chars().all(plain) {
        return false;
    }
    value.contains('/')
        || value.split(['@', '=', ':']).any(|part| {
            let ending = part.rsplit_once('.').filter(|(stem, _)| !stem.is_empty());
            ending.is_some_and(|(_, ending)| ENDINGS.contains(&ending))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    fn found(flags: &[&str], files: &[(&str, &str)]) -> Result<Vec<String>, String> {
        let folder = folder(files);
        let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        Named::find(&flags, folder.path()).map(|named| named.files.into_keys().collect())
    }

    #[test]
    fn each_way_to_name_a_file_is_found() {
        for flag in [
            "--iree-codegen-transform-dialect-library=s/a.mlir@sequence",
            "--iree-codegen-tuning-spec-path=s/a.mlir",
            "--parameters=model=s/a.mlir",
            "--iree-link-bitcode=x86_64=s/a.mlir",
            "--input=2x3xbf16=@s/a.mlir",
            "--iree-hal-preprocess-executables-with=sh s/a.mlir",
            "-foo=\"s/a.mlir\"",
            "s/a.mlir",
        ] {
            assert_eq!(found(&[flag], &[("s/a.mlir", "")]).unwrap(), ["s/a.mlir"], "{flag}");
        }
        let two = found(&["--iree-link-bitcode=a.bc,b.bc"], &[("a.bc", ""), ("b.bc", "")]).unwrap();
        assert_eq!(two, ["a.bc", "b.bc"]);
        assert_eq!(
            found(&["--x=odd,name@1=.mlir"], &[("odd,name@1=.mlir", "")]).unwrap(),
            ["odd,name@1=.mlir"]
        );
    }

    #[test]
    fn a_folder_is_all_of_its_files() {
        let files = [("bc/a.bc", ""), ("bc/more/b.bc", "")];
        assert_eq!(found(&["--iree-rocm-bc-dir=bc"], &files).unwrap(), ["bc/a.bc", "bc/more/b.bc"]);
        assert_eq!(found(&["--iree-rocm-bc-dir=bc/"], &files).unwrap(), ["bc/a.bc", "bc/more/b.bc"]);
    }

    #[test]
    fn files_of_flags_are_followed_through_each_other() {
        let files = [
            ("a.txt", "--x=1 @sub/b.txt\n# @c.txt"),
            ("sub/b.txt", "\"--iree-codegen-transform-dialect-library=my spec.mlir@s\"\n"),
            ("c.txt", "--flagfile=d.txt"),
            ("d.txt", "--iree-llvmcpu-target-cpu=host @a.txt"),
            ("my spec.mlir", ""),
        ];
        let all = found(&["@a.txt"], &files).unwrap();
        assert_eq!(all, ["a.txt", "c.txt", "d.txt", "my spec.mlir", "sub/b.txt"]);
        let folder = folder(&files);
        assert!(Named::find(&["@a.txt".to_owned()], folder.path()).unwrap().asks_for_host());
    }

    #[test]
    fn files_of_flags_without_an_end_are_refused() {
        let chain: Vec<(String, String)> =
            (0..20).map(|n| (format!("{n}.txt"), format!("@{}.txt", n + 1))).collect();
        let mut files: Vec<(&str, &str)> = chain.iter().map(|(n, t)| (n.as_str(), t.as_str())).collect();
        files.push(("20.txt", ""));
        assert!(found(&["@0.txt"], &files).is_err());
    }

    #[test]
    fn a_file_that_is_not_there_is_an_error() {
        for flags in [
            &["--iree-codegen-transform-dialect-library=missing.mlir@s"][..],
            &["--iree-codegen-transform-dialect-library", "missing.mlir"],
            &["--iree-rocm-bc-dir=nothere"],
            &["--iree-link-bitcode=there.bc,missing.bc"],
            &["@missing.txt"],
            &["@nested.txt"],
            &["--flagfile=missing"],
            &["--parameters=model=missing.irpa"],
            &["--expected_output=@sub/y"],
        ] {
            let files = [("there.bc", ""), ("nested.txt", "--x=lost/spec.mlir")];
            assert!(found(flags, &files).is_err(), "{flags:?}");
        }
    }

    #[test]
    fn a_value_that_is_not_a_file_and_a_file_that_is_written_are_not_missed() {
        for flag in [
            "--iree-hal-target-device=local",
            "--iree-hal-target-device=#hal.device.target<\"local\", [#hal.executable.target<\"llvm-cpu\">]>",
            "--iree-llvmcpu-target-triple=x86_64-linux-gnu",
            "--iree-llvmcpu-target-cpu-features=+avx2,+fma",
            "--iree-preprocessing-pass-pipeline=builtin.module(util.func(iree-a{x=1}))",
            "--device=cuda://GPU-1",
            "--device_allocator=caching:device_local=1gib",
            "--iree-llvmcpu-system-linker-path=ld.lld",
            "--iree-hal-dump-executable-files-to=out/ir",
            "--iree-flow-dump-dispatch-graph-output-file=out/s.dot",
            "--iree-parameter-export=model=out/w.irpa",
            "--device_profiling_output=out/p.bin",
            "--benchmark_min_time=1.5s",
            "--module_mode=mmap",
            "--x=",
            "-",
        ] {
            assert_eq!(found(&[flag], &[("unrelated", "")]), Ok(Vec::new()), "{flag}");
        }
    }

    #[test]
    fn only_flags_that_ask_for_the_host_make_a_module_host_specific() {
        let asks = |flag: &str| Named::find(&[flag.to_owned()], Path::new(".")).unwrap().asks_for_host();
        assert!(asks("--iree-llvmcpu-target-cpu=host"));
        assert!(asks("--iree-hal-target-device=#hal.executable.target<\"llvm-cpu\", {cpu = \"host\"}>"));
        assert!(!asks("--iree-llvmcpu-target-cpu=znver4"));
        assert!(!asks("--iree-hal-indirect-host-calls=true"));
    }

    #[test]
    fn an_object_may_lie_in_a_folder_that_another_flag_names() {
        let flags =
            ["--iree-hal-executable-object-search-path=obj", "--iree-hal-substitute-executable-object=d=k.o"];
        assert_eq!(found(&flags, &[("obj/k.o", "")]).unwrap(), ["obj/k.o"]);
    }
}
