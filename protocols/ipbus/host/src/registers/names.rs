//! Connection files and address tables by plain paths, or by expressions of uHAL's.

use super::Error;
use crate::Files;
use hodo_uhal::connections::Connections;
use hodo_uhal::files;
use hodo_uhal::finding::{FileError, FileProblem};
use hodo_uhal::table::{Limits, Table};

/// Reads the devices of connection files, each named by a path or an expression of uHAL's.
///
/// # Errors
/// Everything that is wrong in the files.
pub fn connections(names: &[String]) -> Result<Connections, FileError> {
    let expressions: Vec<String> = names.iter().map(|name| expression(name)).collect();
    Connections::read(&expressions.join(";"), &Files, &Limits::default())
}

/// Returns the files of address tables, each named by a path or an expression of uHAL's.
///
/// # Errors
/// The first name that is wrong, or has no file.
pub fn tables(names: &[String]) -> Result<Vec<String>, FileProblem> {
    let found: Result<Vec<Vec<String>>, _> =
        names.iter().map(|name| files::all(&expression(name), "", &Files)).collect();
    Ok(found?.concat())
}

/// Reads the address table that a path or an expression names.
///
/// # Errors
/// [`Error::Usage`] with what is wrong.
pub fn table(name: &str) -> Result<Table, Error> {
    let file = files::one(&expression(name), "", &Files).map_err(|problem| Error::Usage(problem.to_string()))?;
    read_table(&file)
}

/// Reads the address table in a file.
///
/// # Errors
/// [`Error::Usage`] with what is wrong.
pub fn read_table(file: &str) -> Result<Table, Error> {
    Table::read(file, &Files, &Limits::default()).map_err(|error| Error::Usage(error.to_string()))
}

/// Returns the expression of a name. A plain path means itself, whatever letters it has: the shell has had its turn.
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
