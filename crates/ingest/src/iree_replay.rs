//! `iree-dump-replay --format=jsonl`: the executables that a captured call loads.

use serde::Deserialize;

use super::json;

/// One line of the tool's output; most lines describe other operations.
#[derive(Deserialize)]
struct Record {
    operation: Option<String>,
    related_object_id: Option<u64>,
    payload: Option<Payload>,
}

#[derive(Deserialize)]
struct Payload {
    data_range: Option<ByteRange>,
}

#[derive(Deserialize)]
struct ByteRange {
    offset: u64,
    length: u64,
}

/// An executable inside a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapturedExecutable {
    /// The number by which the runtime can exchange it.
    pub id: u64,
    /// Offset of its content in the capture.
    pub offset: u64,
    pub length: u64,
}

impl CapturedExecutable {
    /// Returns its content; `None` if the capture ends before it.
    pub fn content<'a>(&self, capture: &'a [u8]) -> Option<&'a [u8]> {
        let start = usize::try_from(self.offset).ok()?;
        capture.get(start..start.checked_add(usize::try_from(self.length).ok()?)?)
    }
}

/// Returns the executables of a capture, in the order in which the call loads them.
///
/// # Errors
/// The output has another form, or the capture loads no executable.
pub fn captured_executables(printed: &[u8]) -> Result<Vec<CapturedExecutable>, String> {
    let text = std::str::from_utf8(printed)
        .map_err(|_| "iree-dump-replay printed text that is not UTF-8".to_owned())?;
    let mut found = Vec::new();
    let take = |record: Record| {
        if record.operation.as_deref() != Some("executable_cache.prepare_executable") {
            return Ok(());
        }
        let range = record.payload.and_then(|payload| payload.data_range);
        let (id, range) = record.related_object_id.zip(range).ok_or("an executable without content")?;
        found.push(CapturedExecutable { id, offset: range.offset, length: range.length });
        Ok(())
    };
    json::parse_stream(text, take)
        .map_err(|fault| format!("iree-dump-replay, line {}: {}", fault.line, fault.what))?;
    if found.is_empty() { Err("the captured call loads no executable".to_owned()) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executables_are_listed_with_their_numbers_and_their_place_in_the_capture() {
        let line = r#"{"kind":"operation","operation":"executable_cache.prepare_executable","related_object_id":4,
            "payload":{"data_range":{"offset":2,"length":3},"constant_count":0}}"#;
        let other = r#"{"kind":"object","operation":"none","payload":{"identifier_length":0}}"#;
        let found = captured_executables(format!("{other}\n{line}\n").as_bytes()).unwrap();
        assert_eq!(found, [CapturedExecutable { id: 4, offset: 2, length: 3 }]);
        assert_eq!(found[0].content(b"abcdef"), Some(&b"cde"[..]));
        assert_eq!(found[0].content(b"abcd"), None);
        for bad in [other, "", "no JSON", &line.replace("4,", "null,"), &line.replace("data_range", "x")] {
            assert!(captured_executables(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
