//! Rejects a file with so many small records that they would take several times its size in memory.

use super::RecordError;

/// Files up to this size are always read: their size alone bounds the memory that they need.
const FREE_BYTES: usize = 8 << 20;
/// Maximum number of bytes of records for each byte of the file. The file's own bytes are in memory too.
const MOST: usize = 2;
/// Bytes of records that any file may need, which is enough for as many small benchmarks as a result may
/// have.
const FREE_RECORDS: usize = 64 << 20;
/// The parser rejects documents that are nested more deeply.
const DEEPEST: usize = 128;

/// Nesting depths in a run file: the file is at 1, its sides are at 3.
const OF_BENCHMARK: usize = 5;
const IN_BENCHMARK: usize = 6;
const IN_PROCESS: usize = 8;

/// Memory that each kind of element takes, rounded up. The fields of a record are included in the record.
const BENCHMARK: usize = 1_000;
const RECORD: usize = 280;
const MAP_ENTRY: usize = 80;
const LIST: usize = 32;
const NUMBER: usize = 12;
const TEXT: usize = 32;

/// Rejects a large file whose records are far smaller than any real measurement.
pub(super) fn check(bytes: &[u8]) -> Result<(), RecordError> {
    let most = bytes.len().saturating_mul(MOST).max(FREE_RECORDS);
    if bytes.len() <= FREE_BYTES || weight(bytes, most) <= most {
        return Ok(());
    }
    Err(RecordError::TooDense { mebibytes: bytes.len() >> 20 })
}

/// Returns a lower bound for the memory that the records of this document take, or any value above `enough`.
fn weight(bytes: &[u8], enough: usize) -> usize {
    let mut open: Vec<u8> = Vec::with_capacity(DEEPEST);
    let (mut weight, mut at, mut is_value) = (0_usize, 0, true);
    while let Some(&byte) = bytes.get(at) {
        let in_list = open.last() == Some(&b'[');
        let depth = open.len();
        let mut next = at + 1;
        match byte {
            b'{' | b'[' => {
                weight += match (byte, in_list) {
                    (b'{', true) if depth + 1 == OF_BENCHMARK => BENCHMARK,
                    (b'{', true) => RECORD,
                    (b'[', false) if depth >= IN_PROCESS => LIST + MAP_ENTRY,
                    (b'[', _) => LIST,
                    _ => 0,
                };
                if depth == DEEPEST {
                    return weight;
                }
                open.push(byte);
                is_value = byte == b'[';
            }
            b'}' | b']' => drop(open.pop()),
            b':' => is_value = true,
            b',' => is_value = in_list,
            b' ' | b'\n' | b'\r' | b'\t' => {}
            b'"' => {
                next = end_of_text(bytes, next);
                if is_value {
                    weight += TEXT + (next - at) + entry(depth, in_list);
                }
            }
            _ => {
                let rest = &bytes[next..];
                let length = rest.iter().position(|byte| b",]} \n\r\t".contains(byte));
                next += length.unwrap_or(rest.len());
                weight += if in_list { NUMBER } else { entry(depth, in_list) };
            }
        }
        if weight > enough {
            break;
        }
        at = next;
    }
    weight
}

/// Returns the weight of a value. Outside of processes it may belong to a map (labels, compiler statistics,
/// facts).
fn entry(depth: usize, in_list: bool) -> usize {
    if in_list || depth > IN_BENCHMARK { 0 } else { MAP_ENTRY }
}

/// Returns the position after the closing quote.
fn end_of_text(bytes: &[u8], mut at: usize) -> usize {
    while let Some(byte) = bytes.get(at) {
        at += match byte {
            b'"' => return at + 1,
            b'\\' => 2,
            _ => 1,
        };
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_small_benchmarks_as_a_result_may_have_are_read() {
        let benchmark = r#"{"name":"BM_NUMBER","outcome":{"status":"ok"},"processes":[{"order":0,
            "started":"2026-11-23T23:17:12.6717511Z","seconds":0,"samples":{"cpu-time":[1000000,1000000,1000000],
            "latency":[1000000,1000999.9999999999,1002000]}}]}"#;
        let list: Vec<String> = (0..20_000).map(|at| benchmark.replace("NUMBER", &at.to_string())).collect();
        let file = format!(r#"{{"sides":[{{"name":"head","benchmarks":[{}]}}]}}"#, list.join(","));
        assert!(file.len() < 8 << 20, "{}", file.len());
        let padded = format!("{}{file}", " ".repeat(FREE_BYTES));
        assert!(check(padded.as_bytes()).is_ok());
    }
}
