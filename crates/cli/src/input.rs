//! Files that the user names are read here, and nowhere else in the command: whole, and no more of them than a bound, so that a device or a pipe
//! without an end takes no memory without one.

use hodo_measure::units::text::bytes;
use std::fs::File;
use std::io::{self, Error, ErrorKind, Read};
use std::path::Path;

/// Bytes of the longest text that is read: a document of results, a list of names.
const TEXT_MAX: u64 = 256 << 20;
/// Bytes of the longest text of our own.
const OWN_MAX: u64 = 16 << 30;

/// Reads a file, or a pipe, of at most so many bytes; `-` is standard input.
///
/// # Errors
/// The system's error, or that it has more.
pub fn read(file: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut read = Vec::new();
    if file.as_os_str() == "-" {
        io::stdin().take(most + 1).read_to_end(&mut read)?;
    } else {
        File::open(file)?.take(most + 1).read_to_end(&mut read)?;
    }
    if read.len() as u64 > most {
        return Err(Error::new(ErrorKind::FileTooLarge, format!("it has more than {}", bytes(most))));
    }
    Ok(read)
}

/// Reads a text of at most [`TEXT_MAX`] bytes likewise.
///
/// # Errors
/// The errors of [`read`], or that it is no text.
pub fn read_text(file: &Path) -> io::Result<String> {
    text_of(read(file, TEXT_MAX)?)
}

/// Reads a text that this program wrote, and keeps within a bound of its own.
///
/// # Errors
/// The errors of [`read_text`].
pub fn read_own(file: &Path) -> io::Result<String> {
    text_of(read(file, OWN_MAX)?)
}

fn text_of(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|_| Error::new(ErrorKind::InvalidData, "it is no text (UTF-8)"))
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
        let latin = std::env::temp_dir().join(format!("hodo-input-{}", std::process::id()));
        std::fs::write(&latin, b"caf\xe9").unwrap();
        assert_eq!(read_text(&latin).unwrap_err().to_string(), "it is no text (UTF-8)");
        std::fs::remove_file(&latin).unwrap();
        assert_eq!(read(Path::new("/nowhere"), 1).unwrap_err().kind(), ErrorKind::NotFound);
    }
}
