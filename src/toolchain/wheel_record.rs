//! The lists of files in wheels (`RECORD`), which pip leaves next to the installed files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::ToolchainError;

/// Digests by file, as the records below a folder have them: base64 without padding.
pub(super) fn read<'a>(
    files: impl IntoIterator<Item = &'a PathBuf>,
) -> Result<BTreeMap<PathBuf, String>, ToolchainError> {
    let mut listed = BTreeMap::new();
    for record in files.into_iter().filter(|path| is_record(path)) {
        let Some(packages) = record.parent().and_then(Path::parent) else { continue };
        let text = fs::read_to_string(record).map_err(ToolchainError::io("read", record))?;
        for line in text.lines() {
            // `path,sha256=digest,bytes`. pip lists scripts under paths at which they are not.
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

/// A digest in hexadecimal, as a record writes it.
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
