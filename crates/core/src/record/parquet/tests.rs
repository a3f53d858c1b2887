//! Guarantees of a session's Parquet form.

use std::collections::BTreeMap;
use std::sync::Arc;

use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use proptest::prelude::*;

use crate::record::{BaselineFile, BaselineProcess, Number, SummaryRecord};

use super::SESSION_KEY;
use super::columns::{COLUMNS, ColumnKind};

const GOLDEN: &str = include_str!("../../../../../tests/fixtures/record/baseline-v1.json");
const GOLDEN_PARQUET: &[u8] = include_bytes!("../../../../../tests/fixtures/record/baseline-v1.parquet");

fn golden() -> BaselineFile {
    BaselineFile::from_slice(GOLDEN.as_bytes()).unwrap()
}

fn refusal(bytes: &[u8]) -> String {
    BaselineFile::from_parquet(bytes).unwrap_err().to_string()
}

#[test]
fn the_golden_file_is_read_as_its_json_and_written_back_byte_for_byte() {
    assert_eq!(BaselineFile::from_parquet(GOLDEN_PARQUET).unwrap(), golden());
    assert!(golden().to_parquet().unwrap() == GOLDEN_PARQUET, "the written form has changed");
}

#[test]
fn numbers_that_json_has_words_for_are_kept() {
    let mut file = golden();
    let benchmark = &mut file.benchmarks[0];
    benchmark.processes.push(BaselineProcess { state: BTreeMap::new(), summaries: BTreeMap::new() });
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, f64::MIN_POSITIVE] {
        let median = Number(value);
        let summary = SummaryRecord {
            n: u64::from(u32::MAX),
            median,
            undisturbed: None,
            stddev: None,
            min: Some(median),
        };
        let mut process = BaselineProcess { state: BTreeMap::new(), summaries: BTreeMap::new() };
        process.summaries.insert("latency".to_owned(), summary);
        process.state.insert("load-1m".to_owned(), median);
        benchmark.processes.push(process);
    }
    file.seal();
    let read = BaselineFile::from_parquet(&file.to_parquet().unwrap()).unwrap();
    assert_eq!(read.to_json(), file.to_json());
}

#[test]
fn a_session_of_several_row_groups_is_the_same_session() {
    let mut file = golden();
    let one = file.benchmarks[0].clone();
    file.benchmarks = (0..40)
        .map(|at| {
            let mut benchmark = one.clone();
            benchmark.name = format!("model-{at}/cpu/main");
            benchmark.processes = std::iter::repeat_n(&one.processes, 2000).flatten().cloned().collect();
            benchmark
        })
        .collect();
    file.seal();
    let bytes = file.to_parquet().unwrap();
    assert!(BaselineFile::from_parquet(&bytes).unwrap() == file);
}

#[test]
fn a_file_that_ends_early_is_refused_wherever_it_ends() {
    let bytes = golden().to_parquet().unwrap();
    for end in 0..bytes.len() {
        assert!(BaselineFile::from_parquet(&bytes[..end]).is_err(), "{end} bytes");
    }
}

#[test]
fn no_changed_byte_changes_what_is_read() {
    let (file, bytes) = (golden(), golden().to_parquet().unwrap());
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= [0x01, 0x80, 0xff][at % 3];
        // A changed byte in an unused statistic or offset is harmless; the content must not change.
        if let Ok(read) = BaselineFile::from_parquet(&changed) {
            assert!(read == file, "byte {at}");
        }
    }
}

proptest! {
    #[test]
    fn changed_bytes_are_refused_or_change_nothing(noise in proptest::collection::vec((any::<u16>(), any::<u8>()), 1..12)) {
        // The parquet crate panics on some of these files; benchgate must report an error instead.
        let (file, mut bytes) = (golden(), golden().to_parquet().unwrap());
        let length = bytes.len();
        for (at, value) in noise {
            bytes[usize::from(at) % length] = value;
        }
        if let Ok(read) = BaselineFile::from_parquet(&bytes) {
            prop_assert!(read == file);
        }
    }
}

/// Returns a file with the golden header and `rows` rows. Each row is a process of the golden benchmark with
/// a metric of this name.
fn forged(rows: usize, metric: &str) -> Vec<u8> {
    let mut header = golden();
    let mut detail = header.benchmarks.remove(0);
    detail.processes.clear();
    detail.values.clear();
    let texts = BTreeMap::from([
        ("benchmark", detail.name.clone()),
        ("metric", metric.to_owned()),
        ("detail", serde_json::to_string(&detail).unwrap()),
    ]);
    let header = serde_json::to_string(&header).unwrap();
    let properties = WriterProperties::builder()
        .set_key_value_metadata(Some(vec![KeyValue::new(SESSION_KEY.to_owned(), header)]))
        .build();
    let schema = Arc::new(super::schema().unwrap());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    for column in &COLUMNS {
        let mut chunk = group.next_column().unwrap().unwrap();
        let levels = vec![1; rows];
        let levels = column.optional.then_some(levels.as_slice());
        match (chunk.untyped(), column.kind) {
            (ColumnWriter::ByteArrayColumnWriter(to), ColumnKind::Text) => {
                let text = ByteArray::from(texts.get(column.name).map_or("{}", String::as_str));
                to.write_batch(&vec![text; rows], levels, None).unwrap();
            }
            (ColumnWriter::Int64ColumnWriter(to), _) => {
                to.write_batch(&(0..rows as i64).collect::<Vec<_>>(), levels, None).unwrap();
            }
            (ColumnWriter::DoubleColumnWriter(to), _) => {
                to.write_batch(&vec![0.0; rows], levels, None).unwrap();
            }
            (ColumnWriter::BoolColumnWriter(to), _) => {
                to.write_batch(&vec![false; rows], levels, None).unwrap();
            }
            _ => panic!("{}", column.name),
        }
        chunk.close().unwrap();
    }
    group.close().unwrap();
    writer.into_inner().unwrap()
}

#[test]
fn a_small_file_that_would_take_gigabytes_is_refused() {
    let rows = forged(300_000, "x");
    assert!(refusal(&rows).contains("a row group has 300000 rows"), "{}", refusal(&rows));
    // The text is stored once, but every row refers to it.
    let text = forged(8_000, &"x".repeat(20_000));
    assert!(text.len() < 1 << 20, "{}", text.len());
    assert!(refusal(&text).contains("its text takes more than 128 MiB"), "{}", refusal(&text));
}

#[test]
fn a_dictionary_that_states_more_entries_than_it_has_is_refused_before_memory_is_reserved() {
    use parquet::basic::Encoding;
    use parquet::column::page::{Page, PageMetadata, PageReader};

    struct One(Option<Page>);
    impl PageReader for One {
        fn get_next_page(&mut self) -> parquet::errors::Result<Option<Page>> {
            Ok(self.0.take())
        }
        fn peek_next_page(&mut self) -> parquet::errors::Result<Option<PageMetadata>> {
            Ok(None)
        }
        fn skip_next_page(&mut self) -> parquet::errors::Result<()> {
            Ok(())
        }
    }
    impl Iterator for One {
        type Item = parquet::errors::Result<Page>;
        fn next(&mut self) -> Option<Self::Item> {
            self.0.take().map(Ok)
        }
    }
    let dictionary = Page::DictionaryPage {
        buf: vec![0; 64].into(),
        num_values: u32::MAX,
        encoding: Encoding::PLAIN,
        is_sorted: false,
    };
    let mut pages = super::read::CheckedPages::new(Box::new(One(Some(dictionary))), 10);
    let error = pages.get_next_page().err().unwrap();
    assert!(error.to_string().contains("states 4294967295 entries"), "{error}");
}

#[test]
fn columns_that_contradict_the_session_are_refused() {
    let mut file = golden();
    let honest = file.to_parquet().unwrap();
    // The hash of the content still matches, but a query would see another commit.
    file.commit = Some("f".repeat(40));
    let forged = file.to_parquet().unwrap();
    let swapped = replaced(&forged, file.commit.as_ref().unwrap(), golden().commit.as_ref().unwrap(), 1);
    assert!(BaselineFile::from_parquet(&honest).is_ok());
    assert!(refusal(&swapped).contains("column commit of row 0"), "{}", refusal(&swapped));
}

/// Replaces the last `count` occurrences of a text in `bytes` by another one of the same length.
fn replaced(bytes: &[u8], from: &str, to: &str, count: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let places: Vec<usize> =
        (0..bytes.len() - from.len()).filter(|at| bytes[*at..].starts_with(from.as_bytes())).collect();
    for at in places.iter().rev().take(count) {
        bytes[*at..*at + to.len()].copy_from_slice(to.as_bytes());
    }
    bytes
}
