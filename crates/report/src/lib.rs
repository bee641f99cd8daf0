//! Tables, TSV, JSON, HTML and plots: pure functions of results.
//!
//! A [`hodo_measure::Document`] or its measurements go in; text or the bytes of a picture come out. Nothing here reads
//! a file, a clock or the terminal.

mod columns;
mod compare;
mod distribution;
mod figure;
mod html;
pub mod json;
mod layout;
mod markdown;
pub mod plot;
#[cfg(test)]
mod sample;
mod sparkline;
mod stages;
mod table;
mod tsv;

pub use compare::{Answer, Check, Comparison, Pair, compare, comparison_table};
pub use figure::{Figure, plan_text};
pub use html::{Table, html, html_with};
pub use json::JsonError;
pub use layout::wrap;
pub use markdown::markdown;
pub use sparkline::sparkline;
pub use table::{Style, explain, line, overview, table};
pub use tsv::{COLUMNS, tsv};

use hodo_measure::units::text as units;
