//! Reading in a process of its own, which another one does not have to wait for.
//!
//! A read from a file system that does not answer, such as FUSE, ends by nothing that is done to the process. Here that process is a copy
//! of this one that does nothing but open, read and write into a pipe; it has no other file open, so that it holds no port.
#![allow(unsafe_code)]

use super::{NULL_DEVICE, other_kind, within};
use crate::sys::{self, check};
use libc::{c_char, c_int, c_long, pid_t};
use std::ffi::CString;
use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The longest wait for a file system.
const ANSWER: Duration = Duration::from_secs(10);
/// How long a reader that was killed may take to end, and how long one look at it is apart from the next.
const END: Duration = Duration::from_millis(100);
const LOOK: Duration = Duration::from_micros(200);
/// Bytes that are read at once.
const CHUNK: usize = 1 << 16;
/// Processes that may still wait for their file system; no file is read while there are so many.
const STUCK_MAX: usize = 8;
/// The message for a file of another kind than a regular one.
const OTHER_KIND: i32 = i32::MIN;

/// Readers that have not ended although they were killed.
static STUCK: Mutex<Vec<pid_t>> = Mutex::new(Vec::new());

/// Reads a regular file of at most `most` bytes.
pub(super) fn read(path: &Path, most: u64) -> Result<Vec<u8>> {
    let text = CString::new(path.as_os_str().as_bytes()).map_err(|_| Error::from(ErrorKind::NotFound))?;
    if still_stuck() >= STUCK_MAX {
        return Err(Error::new(
            ErrorKind::TimedOut,
            format!("{STUCK_MAX} earlier files have not been read yet: their file systems do not answer"),
        ));
    }
    let (from, into) = std::io::pipe()?;
    let (mut from, into): (File, OwnedFd) = (OwnedFd::from(from).into(), into.into());
    let mut buffer = vec![0; CHUNK];
    let reader = start(&text, &into, most, &mut buffer)?;
    drop(into);
    let read = collect(&mut from, &mut buffer);
    reader.end();
    within(read?, most)
}

/// A process that reads, which is killed with this.
struct Reader(pid_t);

impl Reader {
    /// Kills the process. One that does not end at once is left to end when its file system answers.
    fn end(self) {
        // SAFETY: takes no pointers; the number is that of our child, which has not been collected.
        unsafe { libc::kill(self.0, libc::SIGKILL) };
        let begun_at = Instant::now();
        while !is_collected(self.0) {
            if begun_at.elapsed() > END {
                return STUCK.lock().unwrap_or_else(PoisonError::into_inner).push(self.0);
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// Collects the readers that have ended. Returns how many have not.
fn still_stuck() -> usize {
    let mut stuck = STUCK.lock().unwrap_or_else(PoisonError::into_inner);
    stuck.retain(|reader| !is_collected(*reader));
    stuck.len()
}

/// Collects a reader if it has ended.
fn is_collected(reader: pid_t) -> bool {
    // SAFETY: a null pointer is allowed for the status; the number is that of a child that has not been collected.
    unsafe { libc::waitpid(reader, std::ptr::null_mut(), libc::WNOHANG | libc::__WALL) != 0 }
}

/// Takes what the reader says: lengths with as many bytes, and at last 0, or a negative number of an error.
fn collect(from: &mut File, buffer: &mut [u8]) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        let mut length = [0; 4];
        receive(from, &mut length)?;
        match i32::from_ne_bytes(length) {
            0 => return Ok(bytes),
            OTHER_KIND => return Err(other_kind("not a regular file")),
            error @ ..0 => return Err(Error::from_raw_os_error(-error)),
            length => {
                let chunk = &mut buffer[..length as usize];
                receive(from, chunk)?;
                bytes.extend_from_slice(chunk);
            }
        }
    }
}

fn receive(from: &mut File, mut into: &mut [u8]) -> Result<()> {
    while !into.is_empty() {
        if !sys::wait_until_readable(from.as_fd(), ANSWER)? {
            return Err(Error::new(ErrorKind::TimedOut, format!("its file system has not answered within {ANSWER:?}")));
        }
        match from.read(into) {
            Ok(0) => return Err(Error::other("the process that reads it has ended")),
            Ok(length) => into = &mut into[length..],
            Err(why) if why.kind() == ErrorKind::Interrupted => {}
            Err(why) => return Err(why),
        }
    }
    Ok(())
}

/// Starts the process. It is no child that a `wait` of the rest of the program, or SIGCHLD, tells of.
fn start(path: &CString, into: &OwnedFd, most: u64, buffer: &mut [u8]) -> Result<Reader> {
    let (path, into) = (path.as_ptr(), into.as_raw_fd());
    // SAFETY: without CLONE_VM this is fork: the child has a copy of this thread alone, and calls nothing but the system.
    let pid =
        unsafe { libc::syscall(libc::SYS_clone, 0 as c_long, 0 as c_long, 0 as c_long, 0 as c_long, 0 as c_long) };
    if pid == 0 {
        // SAFETY: the path ends in a zero, and the buffer is this process's copy.
        unsafe { run(path, into, most, buffer) }
    }
    check(pid as c_int).map(Reader)
}

/// Reads the file, and ends the process. Nothing here may allocate or lock: another thread may have held that lock.
///
/// # Safety
/// The path has to end in a zero.
unsafe fn run(path: *const c_char, into: c_int, most: u64, buffer: &mut [u8]) -> ! {
    // SAFETY: the calls take numbers, and pointers to the path, to the live buffer and to locals of the right size.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        close_all_but(into);
        let file = libc::open(path, libc::O_RDONLY | libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC);
        if file < 0 {
            finish(into, if errno() == libc::ENXIO { OTHER_KIND } else { -errno() });
        }
        let mut found: libc::stat = std::mem::zeroed();
        if libc::fstat(file, &raw mut found) < 0 {
            finish(into, -errno());
        }
        let is_null = found.st_mode & libc::S_IFMT == libc::S_IFCHR
            && found.st_rdev == libc::makedev(NULL_DEVICE.0, NULL_DEVICE.1);
        match found.st_mode & libc::S_IFMT {
            libc::S_IFREG => {}
            _ if is_null => {}
            libc::S_IFDIR => finish(into, -libc::EISDIR),
            _ => finish(into, OTHER_KIND),
        }
        // One byte more, which shows that the file is longer.
        let mut left = most.saturating_add(1);
        while left > 0 {
            let size = left.min(buffer.len() as u64) as usize;
            let length = libc::read(file, buffer.as_mut_ptr().cast(), size);
            match length {
                0 => break,
                ..0 if errno() == libc::EINTR => continue,
                ..0 => finish(into, -errno()),
                _ => {}
            }
            say(into, &(length as i32).to_ne_bytes());
            say(into, &buffer[..length as usize]);
            left -= length as u64;
        }
        finish(into, 0)
    }
}

/// Closes all descriptors but one.
///
/// # Safety
/// Nothing may use the others afterwards.
unsafe fn close_all_but(one: c_int) {
    let range = |first: c_int, last: c_int| {
        // SAFETY: takes no pointers.
        unsafe { libc::syscall(libc::SYS_close_range, c_long::from(first), c_long::from(last), 0 as c_long) }
    };
    if one > 0 {
        range(0, one - 1);
    }
    if range(one + 1, c_int::MAX) < 0 {
        // Before Linux 5.9.
        for other in (0..1 << 16).filter(|other| *other != one) {
            // SAFETY: takes no pointers.
            unsafe { libc::close(other) };
        }
    }
}

fn errno() -> c_int {
    // Reads the thread's own number, and nothing else.
    Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

/// Says the last word, and ends the process.
fn finish(into: c_int, word: i32) -> ! {
    say(into, &word.to_ne_bytes());
    // SAFETY: takes no pointers, and runs nothing of this process.
    unsafe { libc::_exit(0) }
}

/// Writes bytes to the pipe, or ends the process if nobody reads them.
fn say(into: c_int, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        // SAFETY: pointer and length are those of `bytes`.
        let written = unsafe { libc::write(into, bytes.as_ptr().cast(), bytes.len()) };
        match written {
            ..0 if errno() == libc::EINTR => {}
            // SAFETY: as above.
            ..=0 => unsafe { libc::_exit(1) },
            written => bytes = &bytes[written as usize..],
        }
    }
}
