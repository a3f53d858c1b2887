//! Wheels and their file names: `{project}-{version}(-{build})?-{python}-{abi}-{platform}.whl` (the binary
//! distribution format of the Python packaging guide).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::ToolchainError;

/// A locked wheel: its file name and its hash.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wheel {
    pub file: String,
    /// The hash in lowercase hexadecimal.
    pub sha256: String,
}

/// The parts of a wheel's file name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Name<'a> {
    pub(super) project: &'a str,
    pub(super) version: &'a str,
    pub(super) python: &'a str,
    pub(super) abi: &'a str,
    pub(super) platform: &'a str,
}

impl<'a> Name<'a> {
    /// Parses a wheel's file name; `None` for anything else. A lock file may come from a pull request, and
    /// these names become arguments and lines of requirements files, so the check is strict.
    pub(super) fn parse(file: &'a str) -> Option<Self> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._+!-".contains(c);
        let stem = file.strip_suffix(".whl")?;
        if !stem.chars().all(plain) || !stem.starts_with(|c: char| c.is_ascii_alphanumeric()) {
            return None;
        }
        let parts: Vec<&str> = stem.split('-').collect();
        let (project, version, [python, abi, platform]) = match parts.as_slice() {
            [project, version, rest @ ..] if rest.len() == 3 => {
                (*project, *version, [rest[0], rest[1], rest[2]])
            }
            [project, version, _build, python, abi, platform] => {
                (*project, *version, [*python, *abi, *platform])
            }
            _ => return None,
        };
        let name = Self { project, version, python, abi, platform };
        [project, version, python, abi, platform].iter().all(|part| !part.is_empty()).then_some(name)
    }

    /// The project name as indexes spell it.
    pub(super) fn requirement(&self) -> String {
        format!("{}=={}", self.project.replace('_', "-").to_ascii_lowercase(), self.version)
    }

    /// Returns whether the wheel contains code for this architecture of Linux (`x86_64`, `aarch64`).
    pub(super) fn runs_on(&self, arch: &str) -> bool {
        self.platform.split('.').any(|tag| {
            tag == "any"
                || tag.strip_suffix(arch).is_some_and(|rest| rest.contains("linux") && rest.ends_with('_'))
        })
    }

    /// The arguments that make pip choose this wheel, whichever Python runs pip.
    pub(super) fn selecting_arguments(&self) -> Vec<String> {
        let mut arguments =
            vec!["--implementation".to_owned(), "cp".to_owned(), "--only-binary=:all:".to_owned()];
        if let Some(digits) = self.python.split('.').next_back().and_then(|tag| tag.strip_prefix("cp")) {
            arguments.extend(["--python-version".to_owned(), digits.to_owned()]);
        }
        arguments.extend(["--abi".to_owned(), self.abi.to_owned()]);
        for platform in self.platform.split('.').filter(|tag| *tag != "any") {
            arguments.extend(["--platform".to_owned(), platform.to_owned()]);
        }
        arguments
    }
}

/// Returns whether a version or commit has only characters that are valid in a requirement.
pub(super) fn is_plain_version(version: &str) -> bool {
    !version.is_empty() && version.chars().all(|c| c.is_ascii_alphanumeric() || "._+!-".contains(c))
}

/// The digest of each file, from the `RECORD` files among `files`: base64 without padding.
pub(super) fn read<'a>(
    files: impl IntoIterator<Item = &'a PathBuf>,
) -> Result<BTreeMap<PathBuf, String>, ToolchainError> {
    let mut listed = BTreeMap::new();
    for record in files.into_iter().filter(|path| is_record(path)) {
        let Some(packages) = record.parent().and_then(Path::parent) else { continue };
        let text = fs::read_to_string(record).map_err(ToolchainError::io("read", record))?;
        for line in text.lines() {
            // A line is `path,sha256=digest,bytes`. For scripts, pip lists paths that do not exist.
            let mut fields = line.rsplitn(3, ',').skip(1);
            let (Some(digest), Some(path)) = (fields.next(), fields.next()) else { continue };
            if let Some(digest) = digest.strip_prefix("sha256=") {
                listed.insert(packages.join(path.trim_matches('"')), digest.to_owned());
            }
        }
    }
    Ok(listed)
}

fn is_record(path: &Path) -> bool {
    let folder = path.parent().and_then(Path::extension);
    path.file_name().is_some_and(|name| name == "RECORD") && folder.is_some_and(|kind| kind == "dist-info")
}

/// Converts a hexadecimal digest to the form in which a record contains it.
pub(super) fn as_recorded(hex: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let bits: Vec<u8> = hex
        .chars()
        .filter_map(|digit| digit.to_digit(16))
        .flat_map(|digit| (0..4).rev().map(move |bit| (digit >> bit & 1) as u8))
        .collect();
    bits.chunks(6)
        .map(|six| {
            let value = six.iter().fold(0, |value, bit| value << 1 | usize::from(*bit)) << (6 - six.len());
            char::from(LETTERS[value])
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPILER: &str =
        "iree_base_compiler-3.13.0-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl";

    #[test]
    fn a_wheel_name_tells_what_it_is() {
        let name = Name::parse(COMPILER).unwrap();
        assert_eq!(name.requirement(), "iree-base-compiler==3.13.0");
        assert!(name.runs_on("x86_64"));
        assert!(!name.runs_on("aarch64"));
        assert!(Name::parse("networkx-3.6.1-py3-none-any.whl").unwrap().runs_on("aarch64"));
        assert!(!Name::parse("torch-2.15.0-cp311-cp311-win_x86_64.whl").unwrap().runs_on("x86_64"));
        assert_eq!(
            name.selecting_arguments().join(" "),
            "--implementation cp --only-binary=:all: --python-version 311 --abi cp311 \
             --platform manylinux_2_27_x86_64 --platform manylinux_2_28_x86_64"
        );
    }

    #[test]
    fn a_name_that_is_more_than_a_name_is_refused() {
        for hostile in [
            "../evil-1-py3-none-any.whl",
            "a-1-py3-none-any.whl --index-url=http://evil",
            "a-1-py3-none-any.whl\n-r /etc/passwd",
            "-rfoo-1-py3-none-any.whl",
            "a-1-py3-none.whl",
            "a--py3-none-any.whl",
            "a.tar.gz",
        ] {
            assert_eq!(Name::parse(hostile), None, "{hostile}");
        }
    }

    #[test]
    fn a_digest_is_written_as_in_a_record() {
        let hex = "577e9a85d77ebfc1ac9bc6e13ae4d19f1ff9fc5a5e24f9ad3a7a0f0c0dd4c0b1";
        assert!(as_recorded(hex).starts_with("V36ahdd-v8"));
        assert_eq!(as_recorded(hex).len(), 43);
    }

    #[test]
    fn a_record_names_files_next_to_its_own_folder() {
        let folder = tempfile::tempdir().unwrap();
        let record = folder.path().join("a-1.dist-info/RECORD");
        fs::create_dir(record.parent().unwrap()).unwrap();
        fs::write(&record, "a/tool,sha256=xyz,12\n\"a/b,c\",sha256=uvw,1\na-1.dist-info/RECORD,,\n").unwrap();
        let listed = read([&record, &folder.path().join("a/tool")]).unwrap();
        assert_eq!(listed.get(&folder.path().join("a/tool")).unwrap(), "xyz");
        assert_eq!(listed.get(&folder.path().join("a/b,c")).unwrap(), "uvw");
        assert_eq!(listed.len(), 2);
    }
}
