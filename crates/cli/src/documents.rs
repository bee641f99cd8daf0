//! Documents that an earlier run wrote.

use crate::Error;
use hodo_measure::Document;
use std::fs;
use std::io::{self, Read};
use std::path::Path;

/// Reads one; `-` is standard input.
pub fn read(file: &Path) -> Result<Document, Error> {
    let wrong = |why: &dyn std::fmt::Display| Error::Usage(format!("{}: {why}", file.display()));
    let text = if file.as_os_str() == "-" {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        fs::read_to_string(file)
    };
    hodo_report::json::from_str(&text.map_err(|why| wrong(&why))?).map_err(|why| wrong(&why))
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
