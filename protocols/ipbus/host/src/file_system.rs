use hodo_io::files;
use hodo_uhal::files::Source;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Address tables and connection files on this computer's disks, also pipes, named with its environment.
///
/// ```
/// use hodo_ipbus_host::{Files, table::{Limits, Table}};
/// let why = Table::read("none.xml", &Files, &Limits::default()).unwrap_err();
/// assert_eq!(why.to_string(), "none.xml: error: `none.xml` cannot be read: there is no such file; check the path");
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Files;

impl Source for Files {
    fn read(&self, file: &str, max: usize) -> Result<Vec<u8>, String> {
        let path = Path::new(file);
        let read = match fs::metadata(path) {
            // Whether it can be read is seen without taking anything out of it.
            Ok(found) if found.file_type().is_fifo() && max == 0 => Ok(Vec::new()),
            Ok(found) if found.is_file() => {
                // Of a longer file, one byte more is read.
                let most = (max as u64).saturating_add(1);
                files::open(path).and_then(|file| files::read_from(file.take(most), most))
            }
            _ => files::read(path, max as u64),
        };
        read.map_err(|error| reason(&error))
    }

    fn list(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(if folder.is_empty() { "." } else { folder }).into_iter().flatten();
        // A name that is no text can be in no expression either.
        entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }

    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn identity(&self, file: &str) -> String {
        let real = fs::canonicalize(file).ok().and_then(|path| path.into_os_string().into_string().ok());
        real.unwrap_or_else(|| file.to_owned())
    }
}

/// The files of [`Files`] as a daemon reads them, in a process of its own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FilesApart;

impl Source for FilesApart {
    fn read(&self, file: &str, max: usize) -> Result<Vec<u8>, String> {
        files::read_apart(Path::new(file), max as u64).map_err(|error| reason(&error))
    }

    fn list(&self, folder: &str) -> Vec<String> {
        Files.list(folder)
    }

    fn variable(&self, name: &str) -> Option<String> {
        Files.variable(name)
    }

    fn identity(&self, file: &str) -> String {
        Files.identity(file)
    }
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::IsADirectory => "it is a folder".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hodo_uhal::files;

    const HERE: &str = env!("CARGO_MANIFEST_DIR");

    #[test]
    fn patterns_and_variables_find_files() {
        let found = files::all("file://${CARGO_MANIFEST_DIR}/Cargo.t*", "", &Files).unwrap();
        assert_eq!(found, [format!("{HERE}/Cargo.toml")]);
        let why = files::all("file://$HODO_NO_SUCH_VARIABLE/x", "", &Files).unwrap_err().to_string();
        assert!(why.contains("`HODO_NO_SUCH_VARIABLE`"), "{why}");
        assert!(Files.list("/no/such/folder").is_empty());
    }

    #[test]
    fn a_file_is_read_no_further_than_it_may_be() {
        let file = format!("{HERE}/Cargo.toml");
        assert_eq!(Files.read(&file, 10).unwrap().len(), 11);
        assert!(Files.read(&file, usize::MAX - 1).unwrap().len() > 100);
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        assert_eq!(Files.read("/no/such/file.xml", 1).unwrap_err(), "there is no such file");
        assert_eq!(Files.read("/", 1).unwrap_err(), "it is a folder");
        assert_eq!(Files.read("/dev/zero", 1).unwrap_err(), "it is neither a file nor a pipe");
    }

    #[test]
    fn a_file_has_one_identity_whatever_leads_to_it() {
        let identity = |path: &str| Files.identity(&format!("{HERE}/{path}"));
        assert_eq!(identity("Cargo.toml"), identity("src/../Cargo.toml"));
        assert_eq!(Files.identity("no/such/file"), "no/such/file");
    }
}
