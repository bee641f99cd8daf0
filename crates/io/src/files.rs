//! Files that somebody named are read whole, and no more of them than a bound, so that a device or a pipe without an end takes no memory
//! without one.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

/// Bytes of the longest text that is read: a document of results, a list of names, the file of a server.
pub const TEXT_MAX: u64 = 256 << 20;

/// Reads a file, or a pipe, of at most so many bytes.
///
/// # Errors
/// The system's error, or [`ErrorKind::FileTooLarge`] if it has more.
pub fn read(path: &Path, most: u64) -> Result<Vec<u8>> {
    read_from(File::open(path)?, most)
}

/// Reads a text of at most [`TEXT_MAX`] bytes likewise.
///
/// # Errors
/// The errors of [`read`], or [`ErrorKind::InvalidData`] if it is no text.
pub fn read_text(path: &Path) -> Result<String> {
    text_of(read(path, TEXT_MAX)?)
}

/// Reads what is left of a source likewise, as of standard input.
///
/// # Errors
/// The errors of [`read`].
pub fn read_from(source: impl Read, most: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(Error::new(ErrorKind::FileTooLarge, format!("it has more than {}", size_text(most))));
    }
    Ok(bytes)
}

/// Returns bytes as a text.
///
/// # Errors
/// [`ErrorKind::InvalidData`] if they are no text.
pub fn text_of(bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|_| Error::new(ErrorKind::InvalidData, "it is no text (UTF-8)"))
}

/// Returns a bound in the largest unit in which it is a whole number.
fn size_text(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB"), (0, "bytes")];
    let (shift, unit) =
        units.into_iter().find(|(shift, _)| bytes > 0 && bytes.is_multiple_of(1 << shift)).unwrap_or((0, "bytes"));
    format!("{} {unit}", bytes >> shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_has_a_bound_and_what_is_no_text_says_so() {
        let endless = read(Path::new("/dev/zero"), 1 << 10).unwrap_err();
        assert_eq!(
            (endless.kind(), endless.to_string()),
            (ErrorKind::FileTooLarge, "it has more than 1 KiB".to_owned())
        );
        assert_eq!(read(Path::new("/dev/null"), 0).unwrap(), b"");
        assert_eq!(text_of(b"caf\xe9".to_vec()).unwrap_err().to_string(), "it is no text (UTF-8)");
        assert_eq!(read(Path::new("/nowhere"), 1).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!([TEXT_MAX, 1 << 30, 1_000].map(size_text), ["256 MiB", "1 GiB", "1000 bytes"]);
    }
}
