//! Files that the user names, of which `-` is standard input.

use hodo_io::files::{self, TEXT_MAX};
use std::io;
use std::path::Path;

/// Reads a file, or a pipe, of at most `most` bytes.
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
