use hodo_uhal::files::Source;
use std::fs::{self, File};
use std::io::{self, Read};

/// Address tables and connection files on this computer's disks, named with its environment.
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
        let mut bytes = Vec::new();
        // A pipe would be waited for, and a device may have no end.
        let kind = fs::metadata(file).map_err(|error| reason(&error))?;
        if !kind.is_file() && !kind.is_dir() {
            return Err("it is a pipe or a device, and not a file".to_owned());
        }
        let open = File::open(file);
        open.and_then(|open| open.take(max as u64 + 1).read_to_end(&mut bytes)).map_err(|error| reason(&error))?;
        Ok(bytes)
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
        assert_eq!(Files.read("/dev/zero", 1).unwrap_err(), "it is a pipe or a device, and not a file");
    }

    #[test]
    fn a_file_has_one_identity_whatever_leads_to_it() {
        let identity = |path: &str| Files.identity(&format!("{HERE}/{path}"));
        assert_eq!(identity("Cargo.toml"), identity("src/../Cargo.toml"));
        assert_eq!(Files.identity("no/such/file"), "no/such/file");
    }
}
