//! Files that a user names: each is read whole, up to a bound, and neither opening nor reading it waits for ever. One that is written to is
//! opened within a bound, too.
//!
//! A command reads regular files and pipes, a daemon regular files alone. A daemon reads in a process of its own: a file system that
//! does not answer keeps the process that reads from it for ever, even from SIGKILL.

mod apart;

use crate::sys;
use std::fs::{File, FileType};
use std::io::{Error, ErrorKind, Read, Result};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes of the longest text that is read: a document of results, a list of names, the file of a server.
pub const TEXT_MAX: u64 = 256 << 20;
/// The longest wait for the program that opens the other end of a pipe.
const OTHER_END: Duration = Duration::from_secs(5);
/// How long one wait for a pipe lasts.
const LOOK: Duration = Duration::from_millis(100);
/// The number of the device `/dev/null`, which is an empty file.
const NULL_DEVICE: (u32, u32) = (1, 3);

/// Reads a regular file, or a pipe, of at most `most` bytes. A pipe that no program opens to write to it is waited for 5 s.
///
/// # Errors
/// The system's error, [`ErrorKind::FileTooLarge`] for a longer file, [`ErrorKind::InvalidInput`] for a device or a socket, and
/// [`ErrorKind::TimedOut`] for a pipe without a writer.
pub fn read(path: &Path, most: u64) -> Result<Vec<u8>> {
    let file = open_at_once(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_fifo() {
        return read_from(Pipe { file, has_begun: false }, most);
    }
    check(&file, "neither a file nor a pipe")?;
    read_from(file, most)
}

/// Reads a text of at most [`TEXT_MAX`] bytes as [`read`] does.
///
/// # Errors
/// The errors of [`read`], or [`ErrorKind::InvalidData`] if it is no text.
pub fn read_text(path: &Path) -> Result<String> {
    text_of(read(path, TEXT_MAX)?)
}

/// Reads a regular file of at most `most` bytes for a daemon, in a process of its own. Not to be called on a serving thread: a file
/// system that does not answer is waited for 10 s.
///
/// # Errors
/// The system's error, [`ErrorKind::FileTooLarge`] for a longer file, [`ErrorKind::InvalidInput`] for a pipe, a device or a socket,
/// and [`ErrorKind::TimedOut`] if the file system does not answer.
pub fn read_apart(path: &Path, most: u64) -> Result<Vec<u8>> {
    apart::read(path, most)
}

/// Reads a text of at most [`TEXT_MAX`] bytes as [`read_apart`] does.
///
/// # Errors
/// The errors of [`read_apart`], or [`ErrorKind::InvalidData`] if it is no text.
pub fn read_text_apart(path: &Path) -> Result<String> {
    text_of(read_apart(path, TEXT_MAX)?)
}

/// Opens a regular file for reading, and waits for nobody.
///
/// # Errors
/// The system's error, or [`ErrorKind::InvalidInput`] for a pipe, a device or a socket.
pub fn open(path: &Path) -> Result<File> {
    let file = open_at_once(path)?;
    check(&file, "not a regular file")?;
    Ok(file)
}

/// Opens a file to append to it, which is created if it is not there. A pipe has to have a reader; one that is full later takes nothing.
///
/// # Errors
/// The system's error, which for a pipe without a reader says so.
pub fn append(path: &Path) -> Result<File> {
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let opened = File::options().create(true).append(true).custom_flags(flags).open(path);
    opened.map_err(|why| match why.raw_os_error() {
        Some(libc::ENXIO) => Error::new(ErrorKind::NotConnected, "it is a pipe that no program reads, or a socket"),
        _ => why,
    })
}

/// Opens a file to write to it, which is created if it is not there, and emptied. A pipe that no program reads is waited for 5 s.
///
/// # Errors
/// The system's error, [`ErrorKind::InvalidInput`] for a socket, and [`ErrorKind::TimedOut`] for a pipe without a reader.
pub fn create(path: &Path) -> Result<File> {
    let begun_at = Instant::now();
    let mut options = File::options();
    options.write(true).create(true).truncate(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    loop {
        match options.open(path) {
            Ok(file) => {
                sys::set_nonblocking(file.as_fd(), false)?;
                return Ok(file);
            }
            Err(why) if why.raw_os_error() != Some(libc::ENXIO) => return Err(why),
            Err(_) if !path.metadata()?.file_type().is_fifo() => return Err(other_kind("a socket")),
            Err(_) if begun_at.elapsed() >= OTHER_END => {
                let text = format!("no program reads this pipe, for {OTHER_END:?}");
                return Err(Error::new(ErrorKind::TimedOut, text));
            }
            // A pipe wakes nobody when its reader comes.
            Err(_) => std::thread::sleep(LOOK),
        }
    }
}

/// Reads what is left of a source, as of standard input, up to `most` bytes.
///
/// # Errors
/// The system's error, or [`ErrorKind::FileTooLarge`] if there is more.
pub fn read_from(source: impl Read, most: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    within(bytes, most)
}

/// Returns bytes as a text.
///
/// # Errors
/// [`ErrorKind::InvalidData`] if they are no text.
pub fn text_of(bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|_| Error::new(ErrorKind::InvalidData, "it is no text (UTF-8)"))
}

fn within(bytes: Vec<u8>, most: u64) -> Result<Vec<u8>> {
    if bytes.len() as u64 > most {
        return Err(Error::new(ErrorKind::FileTooLarge, format!("it has more than {}", size_text(most))));
    }
    Ok(bytes)
}

/// Opens whatever is there, without waiting for the writer of a pipe, and without taking a terminal.
fn open_at_once(path: &Path) -> Result<File> {
    let opened = File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path);
    opened.map_err(|why| match why.raw_os_error() {
        Some(libc::ENXIO) => other_kind("neither a file nor a pipe"),
        _ => why,
    })
}

/// Checks that an open file is a regular one, or the null device.
fn check(file: &File, says: &str) -> Result<()> {
    let found = file.metadata()?;
    let is_null =
        |of: FileType| of.is_char_device() && (libc::major(found.rdev()), libc::minor(found.rdev())) == NULL_DEVICE;
    match found.file_type() {
        of if of.is_file() || is_null(of) => Ok(()),
        of if of.is_dir() => Err(ErrorKind::IsADirectory.into()),
        _ => Err(other_kind(says)),
    }
}

fn other_kind(says: &str) -> Error {
    Error::new(ErrorKind::InvalidInput, format!("it is {says}"))
}

/// The reading end of a pipe, which does not block by itself.
struct Pipe {
    file: File,
    /// Whether a program has opened it to write to it.
    has_begun: bool,
}

impl Read for Pipe {
    fn read(&mut self, into: &mut [u8]) -> Result<usize> {
        let begun_at = Instant::now();
        loop {
            // Until a program opens it to write to it, a pipe reads as one that has ended, but does not wake a poller.
            let is_ready = sys::wait_until_readable(self.file.as_fd(), LOOK)?;
            match self.file.read(into) {
                Err(why) if matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Ok(0) if !is_ready && !self.has_begun => {
                    if begun_at.elapsed() >= OTHER_END {
                        return Err(Error::new(
                            ErrorKind::TimedOut,
                            format!("no program writes to this pipe, for {OTHER_END:?}"),
                        ));
                    }
                    continue;
                }
                done => {
                    self.has_begun = true;
                    return done;
                }
            }
            self.has_begun = true;
        }
    }
}

/// Returns a bound in the largest unit in which it is a whole number.
fn size_text(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB"), (0, "bytes")];
    let (shift, unit) =
        units.into_iter().find(|(shift, _)| bytes > 0 && bytes.is_multiple_of(1 << shift)).unwrap_or((0, "bytes"));
    format!("{} {unit}", bytes >> shift)
}

#[cfg(test)]
mod tests;
