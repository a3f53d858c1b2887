//! Google Benchmark's output, from every version of iree-benchmark-module.

mod console;
mod counters;
mod csv;
mod json;
mod pieces;
mod preamble;
mod rows;
mod stated;
mod summaries;
mod time_unit;

pub(super) use console::{is_header as is_console_header, read as read_console, without_colors};
pub(super) use counters::counter_metric;
pub(super) use csv::{HEADER as CSV_HEADER, read as read_csv};
pub(super) use json::{AXES, Axes, TESTBED, read as read_json};
pub(super) use pieces::read as read_pieces;
