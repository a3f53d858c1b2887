//! SHA-256 of files and of small facts.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use sha2::{Digest, Sha256};

pub(super) use crate::files::sha256_of;
use crate::model::hex;

/// The digest of one text.
pub(super) fn text_digest(text: &str) -> String {
    hex(&Sha256::digest(text))
}

/// One digest of several texts. Each is preceded by its length, so that no two lists run together.
pub(super) fn digest_of<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hex(&hash.finalize())
}

/// The digests of many files, in their order, computed on all processors.
pub(super) fn sha256_of_all(paths: &[PathBuf]) -> Vec<io::Result<String>> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(paths.len().max(1));
    let next = AtomicUsize::new(0);
    let mut digests: Vec<Option<io::Result<String>>> = paths.iter().map(|_| None).collect();
    let found: Vec<(usize, io::Result<String>)> = std::thread::scope(|scope| {
        let work = || {
            let mut mine = Vec::new();
            while let Some((index, path)) =
                Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((i, paths.get(i)?)))
            {
                mine.push((index, sha256_of(path)));
            }
            mine
        };
        // This thread works too: if no other can be started (`ulimit -u`), it does everything.
        let start = |_| std::thread::Builder::new().spawn_scoped(scope, work).ok();
        let handles: Vec<_> = (1..workers).filter_map(start).collect();
        let mut found = work();
        found.extend(handles.into_iter().flat_map(|handle| handle.join().unwrap_or_default()));
        found
    });
    for (index, digest) in found {
        digests[index] = Some(digest);
    }
    let lost = || Err(io::Error::other("the thread that hashed it ended early"));
    digests.into_iter().map(|digest| digest.unwrap_or_else(lost)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_hashed_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> = (0..20).map(|n| folder.path().join(n.to_string())).collect();
        for path in &paths[..19] {
            std::fs::write(path, path.to_str().unwrap()).unwrap();
        }
        let digests = sha256_of_all(&paths);
        for (path, digest) in paths.iter().zip(&digests).take(19) {
            assert_eq!(digest.as_ref().unwrap(), &hex(&Sha256::digest(path.to_str().unwrap())));
        }
        assert!(digests[19].is_err());
    }

    #[test]
    fn parts_do_not_run_together() {
        assert_ne!(digest_of(["ab", "c"]), digest_of(["a", "bc"]));
    }
}
