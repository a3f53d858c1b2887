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

use crate::device;
use crate::files::FileDraft;
use crate::model::hex;
use crate::process::Cancel;
use crate::record::{BundleFile, BundledFile};

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
mod tests;
