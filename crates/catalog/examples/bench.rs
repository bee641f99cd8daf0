//! Measures a link by its name or URI, as `bench tcp`; its far end runs in a thread of this program.

use hodo_catalog::CATALOG;
use hodo_measure::{Test, Until};
use hodo_report::Style;
use hodo_tester::{Benchmark, Error};
use std::time::Duration;

/// Returns the table of a short latency test.
///
/// # Errors
/// [`Error::Usage`] if the URI is wrong, [`Error::Failed`] if the link fails.
pub fn table(link: &str) -> Result<String, Error> {
    let mut benchmark = Benchmark::new(CATALOG.uri(link)?);
    benchmark.choice.test = Some(Test::Latency);
    benchmark.timing.until = Until::Elapsed(Duration::from_millis(50));
    let document = benchmark.measure()?;
    Ok(hodo_report::table(&document.measurements, Style { width: 160, color: false }))
}

#[allow(dead_code, reason = "a test takes this file for its function alone")]
fn main() -> Result<(), Error> {
    let link = std::env::args().nth(1).unwrap_or_else(|| "tcp".to_owned());
    table(&link).map(|table| println!("{table}"))
}
