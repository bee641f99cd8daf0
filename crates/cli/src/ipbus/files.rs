//! What the command line calls connection files and address tables.

use crate::Error;
use hodo_catalog::ipbus::Files;
use hodo_catalog::ipbus::connections::Connections;
use hodo_catalog::ipbus::files;
use hodo_catalog::ipbus::finding::{FileError, FileProblem};
use hodo_catalog::ipbus::table::{Limits, Table};

/// The devices of connection files, each named by a path or an expression of uHAL's.
pub fn connections(names: &[String]) -> Result<Connections, FileError> {
    let expressions: Vec<String> = names.iter().map(|name| expression(name)).collect();
    Connections::read(&expressions.join(";"), &Files, &Limits::default())
}

/// The files of address tables, each named by a path or an expression of uHAL's.
pub fn tables(names: &[String]) -> Result<Vec<String>, FileProblem> {
    let found: Result<Vec<Vec<String>>, _> =
        names.iter().map(|name| files::all(&expression(name), "", &Files)).collect();
    Ok(found?.concat())
}

/// The address table that a path or an expression names.
pub fn table(name: &str) -> Result<Table, Error> {
    let file = files::one(&expression(name), "", &Files).map_err(|problem| Error::Usage(problem.to_string()))?;
    read_table(&file)
}

/// The address table in a file.
pub fn read_table(file: &str) -> Result<Table, Error> {
    Table::read(file, &Files, &Limits::default()).map_err(|error| Error::Usage(error.to_string()))
}

/// A plain path means itself, whatever letters it has; the shell has had its turn.
fn expression(name: &str) -> String {
    if name.contains("://") { name.to_owned() } else { format!("file://'{}'", name.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_path_means_itself() {
        for path in ["a.xml", "with space.xml", "it's.xml", "$HOME/[a]*.xml", "~/x", "\\"] {
            assert_eq!(files::one(&expression(path), "", &Files).unwrap(), path);
        }
        assert_eq!(expression("file://*.xml"), "file://*.xml");
    }
}
