use super::*;
use crate::record::BundleFile;
use std::os::unix::fs::PermissionsExt;

/// A manifest with these files and nothing else of interest.
fn manifest(files: &[(&str, &[u8])]) -> BundleFile {
    let golden = include_str!("../../../../tests/fixtures/record/bundle-v1.json");
    let mut manifest = BundleFile::from_slice(golden.as_bytes()).unwrap();
    manifest.sides.truncate(1);
    manifest.judged_by = manifest.sides[0].name;
    manifest.sides[0].benchmarks.clear();
    let listed = |(path, content): &(&str, &[u8])| BundledFile {
        path: (*path).to_owned(),
        bytes: content.len() as u64,
        sha256: hex(&Sha256::digest(content)),
    };
    manifest.files = files.iter().map(listed).collect();
    manifest
}

const FILES: [(&str, &[u8]); 4] = [
    ("config/head/benchgate.toml", b"[suite]\n"),
    ("data/x.npy", b"numbers"),
    ("tools/0/iree-benchmark-module", b"tool"),
    ("tools/0/iree-run-module", b"another tool"),
];

fn packed(folder: &Path) -> (PathBuf, Packed) {
    let from: Vec<PathBuf> = FILES
        .iter()
        .map(|(path, content)| {
            let path = folder.join(path.replace('/', "-"));
            fs::write(&path, content).unwrap();
            path
        })
        .collect();
    let output = folder.join("a.bundle");
    let packed = pack(&output, &manifest(&FILES), &from, &Cancel::new()).unwrap();
    (output, packed)
}

/// An archive of entries as an enemy would write them: any type, any name.
fn hostile(folder: &Path, manifest: &BundleFile, entries: &[(tar::EntryType, &str, &[u8])]) -> PathBuf {
    let path = folder.join("hostile.bundle");
    let mut archive = tar::Builder::new(File::create(&path).unwrap());
    let text = manifest.to_json();
    archive.append(&header(MANIFEST, text.len() as u64).unwrap(), text.as_slice()).unwrap();
    for (kind, name, content) in entries {
        let mut header = header("x", content.len() as u64).unwrap();
        header.as_mut_bytes()[..100].fill(0);
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(*kind);
        if !kind.is_file() {
            header.set_link_name("/etc/passwd").unwrap();
        }
        header.set_cksum();
        archive.append(&header, *content).unwrap();
    }
    archive.into_inner().unwrap();
    path
}

/// Why an archive is refused.
fn refusal(archive: &Path, expected: Option<&str>) -> String {
    let folder = tempfile::tempdir().unwrap();
    match unpack(archive, folder.path(), expected, &Cancel::new()).unwrap_err() {
        PipelineError::Bundle { path, why } => {
            assert_eq!(path, archive);
            why
        }
        other => panic!("{other}"),
    }
}

fn regular<'a>(files: &[(&'a str, &'a [u8])]) -> Vec<(tar::EntryType, &'a str, &'a [u8])> {
    files.iter().map(|(name, content)| (tar::EntryType::Regular, *name, *content)).collect()
}

#[test]
fn what_is_packed_is_unpacked_and_only_tools_may_be_executed() {
    let folder = tempfile::tempdir().unwrap();
    let (archive, packed) = packed(folder.path());
    assert_eq!(packed.bytes, fs::metadata(&archive).unwrap().len());
    let there = tempfile::tempdir().unwrap();
    let (found, sha256) =
        unpack(&archive, there.path(), Some(&packed.sha256.to_uppercase()), &Cancel::new()).unwrap();
    assert_eq!(found, manifest(&FILES));
    assert_eq!(sha256, packed.sha256);
    for (path, content) in FILES {
        let path = there.path().join(path);
        assert_eq!(fs::read(&path).unwrap(), content);
        let executable = fs::metadata(&path).unwrap().permissions().mode() & 0o111 != 0;
        assert_eq!(executable, path.to_string_lossy().contains("/tools/"), "{}", path.display());
    }
}

#[test]
fn every_cut_and_every_changed_byte_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let (archive, packed) = packed(folder.path());
    let whole = fs::read(&archive).unwrap();
    let broken = folder.path().join("broken");
    // The last kilobyte is padding: cutting there changes the digest alone.
    for end in (0..whole.len() - 1024).step_by(97) {
        fs::write(&broken, &whole[..end]).unwrap();
        refusal(&broken, None);
    }
    for at in (0..whole.len()).step_by(31) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        fs::write(&broken, bytes).unwrap();
        refusal(&broken, Some(&packed.sha256));
    }
    let mut longer = whole;
    longer.extend(b"more");
    fs::write(&broken, longer).unwrap();
    insta::assert_snapshot!(refusal(&broken, None), @"");
    insta::assert_snapshot!(refusal(&archive, Some(&"0".repeat(64))), @"");
    insta::assert_snapshot!(refusal(folder.path(), None), @"");
}

#[test]
fn nothing_but_the_listed_ordinary_files_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let listed = manifest(&FILES);
    let mut entries = regular(&FILES);
    entries.push((tar::EntryType::Regular, "more", b"x"));
    insta::assert_snapshot!(refusal(&hostile(folder.path(), &listed, &entries), None), @"");
    let mut refused = Vec::new();
    for kind in [
        tar::EntryType::Symlink,
        tar::EntryType::Link,
        tar::EntryType::Directory,
        tar::EntryType::Fifo,
        tar::EntryType::Char,
        tar::EntryType::GNUSparse,
        tar::EntryType::GNULongName,
        tar::EntryType::XHeader,
    ] {
        let mut entries = regular(&FILES);
        entries[1].0 = kind;
        refused.push(refusal(&hostile(folder.path(), &listed, &entries), None));
    }
    insta::assert_snapshot!(refused.join("\n"), @"");
    let mut refused = Vec::new();
    for name in ["../../escaped", "/tmp/escaped", "data/y.npy"] {
        let mut entries = regular(&FILES);
        entries[1].1 = name;
        refused.push(refusal(&hostile(folder.path(), &listed, &entries), None));
    }
    insta::assert_snapshot!(refused.join("\n"), @"");
    let mut entries = regular(&FILES);
    entries[1].2 = b"numbers and more";
    insta::assert_snapshot!(refusal(&hostile(folder.path(), &listed, &entries), None), @"");
    let mut entries = regular(&FILES);
    entries[1].2 = b"nUmbers";
    insta::assert_snapshot!(refusal(&hostile(folder.path(), &listed, &entries), None), @"");
    entries.truncate(2);
    entries[1].2 = b"numbers";
    insta::assert_snapshot!(refusal(&hostile(folder.path(), &listed, &entries), None), @"");
}

#[test]
fn what_would_fill_the_disk_is_refused_before_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut listed = manifest(&FILES);
    listed.files[1].bytes = u64::MAX / 2;
    listed.files[2].bytes = u64::MAX / 2;
    // How much room there is depends on the host.
    let why = refusal(&hostile(folder.path(), &listed, &[]), None);
    insta::assert_snapshot!(why.trim_end_matches(|letter: char| letter.is_ascii_digit()), @"");
}

#[test]
fn a_file_that_changes_while_it_is_packed_is_noticed_and_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let (_, _) = packed(folder.path());
    fs::write(folder.path().join("data-x.npy"), "letters").unwrap();
    let from: Vec<PathBuf> =
        FILES.iter().map(|(path, _)| folder.path().join(path.replace('/', "-"))).collect();
    let output = folder.path().join("b.bundle");
    let error = pack(&output, &manifest(&FILES), &from, &Cancel::new()).unwrap_err();
    insta::assert_snapshot!(error.to_string().replace(folder.path().to_str().unwrap(), "[FOLDER]"), @"");
    assert!(!output.exists());
}
