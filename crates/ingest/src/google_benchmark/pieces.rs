//! Reads Google Benchmark JSON in pieces: only the samples of a large file are kept in memory, and a piece
//! fits into the processor's cache.

use std::io::{self, Read};

use benchgate_core::model::Run;

use super::super::document;
use super::super::json_scan::{Scan, Scanner};
use super::json::{KeyLayout, context, read_row, second_list};
use super::rows::{Families, GoogleBenchmarkRow};

/// Number of bytes per read.
const PIECE: usize = 256 << 10;
/// Maximum size of a row or of the context, in bytes. If one is larger, the file is not read in pieces.
const LONGEST: usize = 16 << 20;

/// Reads a whole file that starts with `head`. Returns `None` if the file breaks the format's rules or can't
/// be read: reading it as a whole then finds the fault and its line.
pub(crate) fn read(head: Vec<u8>, source: &mut dyn Read) -> Option<Run> {
    read_by(PIECE, head, source)
}

fn read_by(piece: usize, head: Vec<u8>, source: &mut dyn Read) -> Option<Run> {
    let mut window = Window { filled: head.len(), bytes: head, ended: false };
    let mut reader = Reader::default();
    loop {
        let text = window.text()?;
        let mut json = Scanner::new(text);
        // Before the end of the file, an error may only mean that a value is cut; at the end it is final.
        let result = reader.advance(&mut json, window.ended);
        if !matches!(result, Ok(true)) && window.ended {
            return None;
        }
        window.drop_front(reader.taken);
        if matches!(result, Ok(true)) && window.ended {
            break;
        }
        window.fill(piece, source).ok()?;
        if window.filled > LONGEST.max(2 * piece) {
            return None;
        }
    }
    let Reader { mut run, families, place, .. } = reader;
    run.benchmarks = families.finish();
    (place == FilePosition::End { rows_seen: true }).then_some(run)
}

/// The part of the file that was read but not consumed yet.
struct Window {
    bytes: Vec<u8>,
    /// Number of valid bytes in `bytes`; the rest is spare capacity, which is reused for each piece.
    filled: usize,
    /// True if the source has no more data.
    ended: bool,
}

impl Window {
    fn drop_front(&mut self, taken: usize) {
        self.bytes.copy_within(taken..self.filled, 0);
        self.filled -= taken;
    }

    /// Reads one more piece, or as much as the window already holds, so that a long row is not scanned again
    /// for each piece.
    fn fill(&mut self, piece: usize, source: &mut dyn Read) -> io::Result<()> {
        let end = self.filled + piece.max(self.filled);
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        while self.filled < end && !self.ended {
            match source.read(&mut self.bytes[self.filled..end]) {
                Ok(count) => {
                    self.ended = count == 0;
                    self.filled += count;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Returns the text without a truncated character at its end; `None` if it is not UTF-8.
    fn text(&self) -> Option<&str> {
        let bytes = &self.bytes[..self.filled];
        match std::str::from_utf8(bytes) {
            Ok(text) => Some(text),
            Err(error) if error.error_len().is_none() && !self.ended => {
                std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()
            }
            Err(_) => None,
        }
    }
}

/// Position in the document at which the next step begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FilePosition {
    Start,
    Keys { first: bool, rows_seen: bool },
    Rows { first: bool },
    End { rows_seen: bool },
}

struct Reader {
    run: Run,
    families: Families,
    place: FilePosition,
    /// Number of bytes of the current text that are consumed.
    taken: usize,
}

impl Default for Reader {
    fn default() -> Self {
        Self { run: Run::default(), families: Families::default(), place: FilePosition::Start, taken: 0 }
    }
}

impl Reader {
    /// Takes whole steps until the text ends. Returns true at the end of the outermost value.
    fn advance<'a>(&mut self, json: &mut Scanner<'a>, ended: bool) -> Scan<bool> {
        self.taken = 0;
        let mut row = GoogleBenchmarkRow::default();
        let mut layout = KeyLayout::default();
        while !matches!(self.place, FilePosition::End { .. }) {
            let (next, has_row) = self.step(json, &mut row, &mut layout)?;
            // A number at the end of the text may continue in the next piece.
            if !ended && json.is_at_end() {
                return Ok(false);
            }
            if has_row {
                self.families.push(&mut row);
            }
            self.place = next;
            self.taken = json.at();
        }
        json.end()?;
        self.taken = json.at();
        Ok(true)
    }

    /// Takes one step. Returns the position of the next step, and whether `row` now holds a row.
    fn step<'a>(
        &mut self,
        json: &mut Scanner<'a>,
        row: &mut GoogleBenchmarkRow<'a>,
        layout: &mut KeyLayout<'a>,
    ) -> Scan<(FilePosition, bool)> {
        let next = match self.place {
            FilePosition::Start => {
                json.begin_object()?;
                FilePosition::Keys { first: true, rows_seen: false }
            }
            FilePosition::Keys { mut first, rows_seen } => match json.next_key(&mut first)?.as_deref() {
                None => FilePosition::End { rows_seen },
                Some("benchmarks") if rows_seen => return Err(second_list(json)),
                Some("benchmarks") => {
                    json.begin_array()?;
                    FilePosition::Rows { first: true }
                }
                Some(key) => {
                    if key == "context" {
                        self.families.stated = context(json, &mut self.run)?;
                    } else {
                        let found = document::read_field(json, key)?;
                        // Otherwise the value may be cut, and is read again.
                        document::add(&mut self.run.lints, found.filter(|_| !json.is_at_end()));
                    }
                    FilePosition::Keys { first: false, rows_seen }
                }
            },
            FilePosition::Rows { mut first } => {
                if json.next_item(&mut first)? {
                    return Ok((FilePosition::Rows { first: false }, read_row(json, row, layout)?));
                }
                FilePosition::Keys { first: false, rows_seen: true }
            }
            end @ FilePosition::End { .. } => end,
        };
        Ok((next, false))
    }
}

#[cfg(test)]
mod tests {
    use super::super::json;
    use super::*;

    const FILES: [&str; 5] = [
        include_str!("../../../../tests/fixtures/tool_output/google_benchmark/vit.3.9.0.json"),
        include_str!("../../../../tests/fixtures/tool_output/google_benchmark/edge-rows.json"),
        include_str!("../../../../tests/fixtures/tool_output/google_benchmark/aggregates-only.json"),
        include_str!("../../../../tests/fixtures/tool_output/google_benchmark/errored.json"),
        include_str!("../../../../tests/fixtures/tool_output/google_benchmark/counters-main.json"),
    ];

    fn pieces(piece: usize, text: &str) -> Option<Run> {
        read_by(piece, Vec::new(), &mut text.as_bytes())
    }

    #[test]
    fn pieces_of_any_size_give_the_run_that_the_whole_file_gives() {
        for text in FILES {
            let whole = json::read(text).unwrap();
            for piece in [1, 2, 3, 7, 64, 1000, 4096, PIECE] {
                assert_eq!(format!("{:?}", pieces(piece, text).unwrap()), format!("{whole:?}"), "{piece}");
            }
        }
    }

    #[test]
    fn a_file_that_is_cut_or_followed_by_text_is_not_read_in_pieces() {
        let text = FILES[0];
        for end in (0..text.trim_end().len()).step_by(61) {
            assert!(pieces(64, &text[..end]).is_none(), "{end}");
        }
        assert!(pieces(64, &format!("{text}{{}}")).is_none());
        assert!(pieces(64, "{\"context\": {}}").is_none());
        assert!(text.contains("\"name\""));
        assert!(pieces(64, &text.replacen("\"name\"", "\"na\u{0}me\"", 1)).is_none());
    }

    #[test]
    fn numbers_and_characters_across_the_end_of_a_piece_are_read_whole() {
        let row = |name: &str, time: &str| {
            format!("{{\"name\": \"{name}\", \"real_time\": {time}, \"time_unit\": \"ns\"}}")
        };
        let text = format!(
            "{{\"x\": 123456789, \"benchmarks\": [{}, {}]}} ",
            row("é€𝄞", "123.456e2"),
            row("b", "7")
        );
        let whole = json::read(&text).unwrap();
        for piece in 1..text.len() {
            assert_eq!(pieces(piece, &text).as_ref(), Some(&whole), "{piece}");
        }
    }
}
