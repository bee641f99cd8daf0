//! Documents that an earlier run wrote.

use crate::{Error, input};
use hodo_measure::Document;
use std::path::Path;

/// Reads one; `-` is standard input.
pub fn read(file: &Path) -> Result<Document, Error> {
    let wrong = |why: &dyn std::fmt::Display| Error::Usage(format!("{}: {why}", file.display()));
    let text = input::read_text(file).map_err(|why| wrong(&why))?;
    hodo_report::json::from_str(&text).map_err(|why| wrong(&why))
}

/// Reads several as one: the measurements of all, under the environment of the first. Tells whether the others have
/// been measured elsewhere.
pub fn read_all<'a>(files: impl IntoIterator<Item = &'a Path>) -> Result<Option<(Document, bool)>, Error> {
    let mut merged: Option<(Document, bool)> = None;
    for file in files {
        let document = read(file)?;
        match &mut merged {
            None => merged = Some((document, false)),
            Some((all, elsewhere)) => {
                let (a, b) = (&all.environment, &document.environment);
                *elsewhere |= (&a.host, &a.kernel, &a.nic) != (&b.host, &b.kernel, &b.nic);
                all.measurements.extend(document.measurements);
            }
        }
    }
    Ok(merged)
}
