//! L3: one view model, many small renderers.
//!
//! [`View`] turns a [`benchgate_gate::Comparison`] into words and numbers once; each renderer only lays
//! them out. Names, logs and reasons are untrusted: a view keeps them raw and apart from its own
//! sentences, and every renderer makes them harmless in its own way.

mod advice;
mod backends;
mod bisection;
mod chart;
mod columns;
mod csv;
mod drawn;
mod explain;
mod grid;
mod html;
mod human;
mod json;
mod junit;
mod markdown;
mod markup;
mod noise;
mod order;
mod outcomes;
mod row_view;
mod sparkline;
mod terminal;
#[cfg(test)]
mod tests;
mod view;
mod withhold;
mod words;
mod wrap;

pub use benchgate_core::model::clean;

pub use backends::{BackendRow, BackendTable, backends_markdown, backends_table};
pub use bisection::{BisectionFacts, bisection_file, bisection_html, bisection_markdown, bisection_terminal};
pub use chart::{Picture, Theme, picture, power_curve, round_step};
pub use columns::{Compared, columns, columns_markdown};
pub use csv::csv;
pub use drawn::DrawnRun;
pub use explain::{explanations, explanations_json};
pub use html::html;
pub use human::{change, duration, interval, percent, quantity};
pub use json::{comparison_file, json};
pub use junit::junit;
pub use markdown::{Failure, MarkdownOptions, ResultSource, failure, failure_headline, markdown};
pub use markdown::{cell as markdown_cell, code as markdown_code};
pub use noise::{noise_json, noise_table, spread_lines};
pub use order::Order;
pub use outcomes::{OutcomeRow, Outcomes, outcomes_json, outcomes_table};
pub use row_view::RowView;
pub use sparkline::sparkline;
pub use terminal::{TerminalOptions, harmless, terminal};
pub use view::{Fact, Legend, LintGroup, OpenGroup, RegressionCause, View};
pub use withhold::withhold;
pub use wrap::{fitted, paragraph};
