#![no_main]

use benchgate_fuzz::ingest::Format;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| benchgate_fuzz::check(Format::GoTestJson, bytes));
