//! Level 3: one view model, many small renderers.
//!
//! [`View`] turns a [`benchgate_gate::Comparison`] into words and numbers once, `comparison` puts these into
//! a document, and a renderer for each form (terminal, Markdown, HTML) lays documents out. Names, logs and
//! reasons are untrusted: a document keeps them raw and separate from its own sentences, and every renderer
//! makes them harmless for its own form.

mod advice;
mod backends;
mod bisection;
mod chart;
mod columns;
mod comparison;
mod document;
mod exchange;
mod explain;
mod formats;
mod html;
mod human;
mod layout;
mod noise;
mod open;
mod outcomes;
mod provenance;
mod row_view;
#[cfg(test)]
mod tests;
mod view;
mod words;
mod wrap;

pub use benchgate_core::model::clean;

pub use advice::LintGroup;
pub use backends::{BackendRow, BackendTable, backends_markdown, backends_table};
pub use bisection::{BisectionFacts, bisection_file, bisection_html, bisection_markdown, bisection_terminal};
pub use chart::{DrawnRun, Picture, Theme, picture, round_step};
pub use columns::{Compared, columns, columns_markdown};
pub use comparison::{MarkdownOptions, markdown, terminal};
pub use document::{TerminalOptions, cell as markdown_cell, code as markdown_code, harmless};
pub use exchange::{ExchangeReport, exchange, exchange_json};
pub use explain::{explanations, explanations_json};
pub use formats::{comparison_file, csv, json, junit};
pub use html::html;
pub use human::{change, duration, interval, percent, quantity, sparkline};
pub use layout::Order;
pub use noise::{noise_json, noise_table, spread_lines};
pub use outcomes::{OutcomeRow, Outcomes, outcomes_json, outcomes_markdown, outcomes_table};
pub use provenance::{Failure, ResultSource, failure, failure_headline, withhold};
pub use row_view::RowView;
pub use view::{Fact, Legend, OpenGroup, RegressionCause, View};
pub use wrap::{fitted, paragraph};
