//! The file format of a bundle: a plain tar archive. Its first entry is the manifest; the other entries are
//! exactly the files that the manifest lists, in its order.
//!
//! A bundle is read as untrusted input: it may contain only ordinary files with plain names, each with the
//! listed size and digest, and no file is used before all are checked. It is not compressed, because modules
//! and weights hardly shrink, and decompressing would take time on the machine with the device, which is the
//! expensive one.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use benchgate_core::model::hex;
use benchgate_core::record::{BundleFile, BundledFile};
use benchgate_host::device;
use benchgate_host::files::FileDraft;
use benchgate_host::process::Cancel;

use super::super::PipelineError;

/// Name of the first entry.
pub(super) const MANIFEST: &str = "bundle.json";
/// The only folder whose files may be executable.
pub(super) const TOOLS: &str = "tools/";

/// Maximum size of a manifest. With ten thousand benchmarks it has a few megabytes.
const LARGEST_MANIFEST: u64 = 64 << 20;
const BUFFER: usize = 1 << 20;

/// The digest and size of a bundle that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Packed {
    pub(super) sha256: String,
    pub(super) bytes: u64,
}

fn refused(archive: &Path, why: impl Into<String>) -> PipelineError {
    PipelineError::Bundle { path: archive.to_owned(), why: why.into() }
}

/// Writes a bundle completely or not at all. `from` lists the local files, in the order of the manifest.
pub(super) fn pack(
    output: &Path,
    manifest: &BundleFile,
    from: &[PathBuf],
    cancel: &Cancel,
) -> Result<Packed, PipelineError> {
    let writing = |error| PipelineError::io("write", output)(error);
    let file = FileDraft::open(output).map_err(writing)?;
    let sink = HashingStream::new(BufWriter::with_capacity(BUFFER, file));
    let mut archive = tar::Builder::new(sink);
    let text = manifest.to_json();
    archive
        .append(&header(MANIFEST, text.len() as u64).map_err(writing)?, text.as_slice())
        .map_err(writing)?;
    for (listed, path) in manifest.files.iter().zip(from) {
        if cancel.is_requested() {
            return Err(PipelineError::Interrupted);
        }
        let reading = |error| PipelineError::io("read", path)(error);
        let source = File::open(path).map_err(reading)?;
        let mut source = HashingStream::new(BufReader::with_capacity(BUFFER, source).take(listed.bytes));
        archive
            .append(&header(&listed.path, listed.bytes).map_err(writing)?, &mut source)
            .map_err(writing)?;
        if source.bytes != listed.bytes || source.digest() != listed.sha256 {
            return Err(reading(io::Error::other("it changed while it was packed")));
        }
    }
    let sink = archive.into_inner().map_err(writing)?;
    let packed = Packed { sha256: hex(&sink.hash.clone().finalize()), bytes: sink.bytes };
    let file = sink.inner.into_inner().map_err(|error| writing(error.into_error()))?;
    file.commit().map_err(writing)?;
    Ok(packed)
}

fn header(path: &str, bytes: u64) -> io::Result<tar::Header> {
    let mut header = tar::Header::new_ustar();
    header.set_path(path)?;
    header.set_size(bytes);
    header.set_mode(if path.starts_with(TOOLS) { 0o755 } else { 0o644 });
    // Equal files produce equal archives, regardless of who packs them and when.
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header.set_entry_type(tar::EntryType::Regular);
    header.set_cksum();
    Ok(header)
}

/// Unpacks a bundle into an empty folder and returns its manifest and its digest. `expected` is the required
/// digest, if known.
///
/// # Errors
/// The archive is invalid in any way; then no file in `folder` may be used.
pub(super) fn unpack(
    archive: &Path,
    folder: &Path,
    expected: Option<&str>,
    cancel: &Cancel,
) -> Result<(BundleFile, String), PipelineError> {
    let opening = |error| PipelineError::io("open the bundle", archive)(error);
    let file = File::open(archive).map_err(opening)?;
    if !file.metadata().map_err(opening)?.is_file() {
        return Err(refused(archive, "it is not an ordinary file"));
    }
    let mut reader = tar::Archive::new(HashingStream::new(BufReader::with_capacity(BUFFER, file)));
    let damaged =
        |error: io::Error| refused(archive, format!("the archive is incomplete or damaged: {error}"));
    let manifest = {
        // In raw mode, extensions (long names, sparse files, links) appear as entries of their own kind,
        // which are rejected.
        let mut entries = reader.entries().map_err(damaged)?.raw(true);
        let mut next = |wanted: &str| match entries.next() {
            Some(entry) => {
                let entry = entry.map_err(damaged)?;
                ordinary(&entry, wanted).map_err(|why| refused(archive, why))?;
                Ok(entry)
            }
            None => Err(refused(archive, format!("it ends before {wanted}"))),
        };
        let entry = next(MANIFEST)?;
        if entry.size() > LARGEST_MANIFEST {
            return Err(refused(archive, format!("its manifest is too large ({} bytes)", entry.size())));
        }
        let mut text = Vec::new();
        entry.take(LARGEST_MANIFEST).read_to_end(&mut text).map_err(damaged)?;
        let manifest = BundleFile::from_slice(&text).map_err(|error| refused(archive, error.to_string()))?;
        // The size is checked first, because a full disk could disturb other measurements on this machine.
        if let Some(free) = device::free_bytes(folder).filter(|free| *free <= manifest.bytes()) {
            let why = format!("it needs {} bytes, but the disk has only {free}", manifest.bytes());
            return Err(refused(archive, why));
        }
        for listed in &manifest.files {
            if cancel.is_requested() {
                return Err(PipelineError::Interrupted);
            }
            let entry = next(&listed.path)?;
            if entry.size() != listed.bytes {
                let why = format!("{} has {} bytes, listed as {}", listed.path, entry.size(), listed.bytes);
                return Err(refused(archive, why));
            }
            extract(entry, listed, folder, archive)?;
        }
        match entries.next() {
            None => manifest,
            Some(_) => return Err(refused(archive, "it has an entry that its manifest does not list")),
        }
    };
    let mut source = reader.into_inner();
    nothing_but_zeros(&mut source).map_err(damaged)?;
    let found = hex(&source.hash.finalize());
    if let Some(expected) = expected.filter(|expected| !expected.eq_ignore_ascii_case(&found)) {
        return Err(refused(archive, format!("expected sha256 {expected}, found {found}")));
    }
    Ok((manifest, found))
}

/// Checks that an entry is an ordinary file with this name.
fn ordinary<R: Read>(entry: &tar::Entry<'_, R>, wanted: &str) -> Result<(), String> {
    let name = entry.path_bytes();
    if *name != *wanted.as_bytes() {
        let shown: String = String::from_utf8_lossy(&name).escape_debug().take(100).collect();
        return Err(format!("it has \"{shown}\" where its manifest lists {wanted}"));
    }
    match entry.header().entry_type() {
        tar::EntryType::Regular => Ok(()),
        other => Err(format!("{wanted} is not an ordinary file ({other:?})")),
    }
}

/// Extracts one file and checks its digest.
fn extract<R: Read>(
    mut entry: tar::Entry<'_, R>,
    listed: &BundledFile,
    folder: &Path,
    archive: &Path,
) -> Result<(), PipelineError> {
    let path = folder.join(&listed.path);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(PipelineError::io("create", parent))?;
    }
    let writing = |error| PipelineError::io("write", &path)(error);
    let mode = if listed.path.starts_with(TOOLS) { 0o700 } else { 0o600 };
    let mut file =
        fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&path).map_err(writing)?;
    let mut hash = Sha256::new();
    let mut left = listed.bytes;
    let mut buffer = vec![0_u8; BUFFER];
    while left > 0 {
        let most = usize::try_from(left).unwrap_or(BUFFER).min(BUFFER);
        let read = entry
            .read(&mut buffer[..most])
            .map_err(|error| refused(archive, format!("{}: {error}", listed.path)))?;
        if read == 0 {
            return Err(refused(archive, format!("it ends inside {}", listed.path)));
        }
        hash.update(&buffer[..read]);
        file.write_all(&buffer[..read]).map_err(writing)?;
        left -= read as u64;
    }
    let found = hex(&hash.finalize());
    if found != listed.sha256 {
        let why = format!("{} has sha256 {found}, listed as {}", listed.path, listed.sha256);
        return Err(refused(archive, why));
    }
    Ok(())
}

/// Checks that the rest of an archive is zero padding. Other programs could read additional entries there.
fn nothing_but_zeros(source: &mut impl Read) -> io::Result<()> {
    let mut buffer = vec![0_u8; BUFFER];
    loop {
        match source.read(&mut buffer)? {
            0 => return Ok(()),
            read if buffer[..read].iter().any(|byte| *byte != 0) => {
                return Err(io::Error::other("there is data after its end"));
            }
            _ => {}
        }
    }
}

/// A reader that computes the digest of the bytes that pass through it.
struct HashingStream<T> {
    inner: T,
    hash: Sha256,
    bytes: u64,
}

impl<T> HashingStream<T> {
    fn new(inner: T) -> Self {
        Self { inner, hash: Sha256::new(), bytes: 0 }
    }

    fn digest(self) -> String {
        hex(&self.hash.finalize())
    }

    fn saw(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
    }
}

impl<R: Read> Read for HashingStream<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.saw(&buffer[..read]);
        Ok(read)
    }
}

impl<W: Write> Write for HashingStream<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(buffer)?;
        self.saw(&buffer[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use benchgate_core::record::BundleFile;
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
}
