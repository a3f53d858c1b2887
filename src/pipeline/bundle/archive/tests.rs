use super::*;
use crate::record::BundleFile;
use std::os::unix::fs::PermissionsExt;

/// A manifest that lists these files.
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

/// An archive as an attacker could write it, with entries of any type and name.
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

/// The reason why an archive is rejected.
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
    // The last kilobyte is padding, so cutting it only changes the digest.
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
    insta::assert_snapshot!(refusal(&broken, None), @"the archive is incomplete or damaged: there is data after its end");
    insta::assert_snapshot!(refusal(&archive, Some(&"0".repeat(64))), @"expected sha256 0000000000000000000000000000000000000000000000000000000000000000, found eda23a9400527d8b6da6820715c3551351db4a68031bd164c0b92174864ba9b8");
    insta::assert_snapshot!(refusal(folder.path(), None), @"it is not an ordinary file");
}

#[test]
fn nothing_but_the_listed_ordinary_files_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let listed = manifest(&FILES);
    let mut entries = regular(&FILES);
    entries.push((tar::EntryType::Regular, "more", b"x"));
    insta::assert_snapshot!(refusal(&hostile(folder.path(), &listed, &entries), None), @"it has an entry that its manifest does not list");
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
    insta::assert_snapshot!(refused.join("\n"), @"
    data/x.npy is not an ordinary file (Symlink)
    data/x.npy is not an ordinary file (Link)
    data/x.npy is not an ordinary file (Directory)
    data/x.npy is not an ordinary file (Fifo)
    data/x.npy is not an ordinary file (Char)
    data/x.npy is not an ordinary file (GNUSparse)
    data/x.npy is not an ordinary file (GNULongName)
    data/x.npy is not an ordinary file (XHeader)
    ");
    let mut refused = Vec::new();
    for name in ["../../escaped", "/tmp/escaped", "data/y.npy"] {
        let mut entries = regular(&FILES);
        entries[1].1 = name;
        refused.push(refusal(&hostile(folder.path(), &listed, &entries), None));
    }
    insta::assert_snapshot!(refused.join("\n"), @r#"
    it has "../../escaped" where its manifest lists data/x.npy
    it has "/tmp/escaped" where its manifest lists data/x.npy
    it has "data/y.npy" where its manifest lists data/x.npy
    "#);
    let mut entries = regular(&FILES);
    entries[1].2 = b"numbers and more";
    insta::assert_snapshot!(refusal(&hostile(folder.path(), &listed, &entries), None), @"data/x.npy has 16 bytes, listed as 7");
    let mut entries = regular(&FILES);
    entries[1].2 = b"nUmbers";
    insta::assert_snapshot!(refusal(&hostile(folder.path(), &listed, &entries), None), @"data/x.npy has sha256 65812a048244712ce92979f725dd63898bbb85b7244af6eb5513d74b474579f5, listed as f3c7807d475073ba009bf4801b2d934e9f0126cb96dd19a27dbffcae23a7f5a3");
    entries.truncate(2);
    entries[1].2 = b"numbers";
    insta::assert_snapshot!(refusal(&hostile(folder.path(), &listed, &entries), None), @"it ends before tools/0/iree-benchmark-module");
}

#[test]
fn what_would_fill_the_disk_is_refused_before_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut listed = manifest(&FILES);
    listed.files[1].bytes = u64::MAX / 2;
    listed.files[2].bytes = u64::MAX / 2;
    // The message ends with the free space, which depends on the host.
    let why = refusal(&hostile(folder.path(), &listed, &[]), None);
    insta::assert_snapshot!(why.trim_end_matches(|letter: char| letter.is_ascii_digit()), @"it needs 18446744073709551615 bytes, but the disk has only");
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
    insta::assert_snapshot!(error.to_string().replace(folder.path().to_str().unwrap(), "[FOLDER]"), @"failed to read [FOLDER]/data-x.npy: it changed while it was packed");
    assert!(!output.exists());
}
