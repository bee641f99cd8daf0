//! Files that the user names, of which `-` is standard input.

use hodo_io::files::{self, TEXT_MAX};
use std::io;
use std::path::Path;

/// Bytes of the longest text of our own, which keeps within a bound of its own.
const OWN_MAX: u64 = 16 << 30;

/// Reads a file, or a pipe, of at most so many bytes.
///
/// # Errors
/// The errors of [`files::read`].
pub fn read(file: &Path, most: u64) -> io::Result<Vec<u8>> {
    if file.as_os_str() == "-" { files::read_from(io::stdin(), most) } else { files::read(file, most) }
}

/// Reads a text likewise.
///
/// # Errors
/// The errors of [`files::read_text`].
pub fn read_text(file: &Path) -> io::Result<String> {
    files::text_of(read(file, TEXT_MAX)?)
}

/// Reads a text that this program wrote.
///
/// # Errors
/// The errors of [`files::read_text`].
pub fn read_own(file: &Path) -> io::Result<String> {
    files::text_of(files::read(file, OWN_MAX)?)
}
