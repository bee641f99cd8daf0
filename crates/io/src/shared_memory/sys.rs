//! Safe forms of the system calls for memory of several processes, and the only accesses to such memory.
#![allow(unsafe_code)]

use crate::sys::check;
use std::ffi::{CString, c_int, c_uint};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// The unit in which the kernel counts the blocks of a file.
const BLOCK: u64 = 512;
/// Creates a file that can never be executed (Linux 6.3).
const MFD_NOEXEC_SEAL: c_uint = 8;

/// Creates a file of memory without a path.
pub(super) fn create_file(name: &str) -> io::Result<OwnedFd> {
    let name = CString::new(name)?;
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    match memfd(&name, flags | MFD_NOEXEC_SEAL) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => memfd(&name, flags),
        other => other,
    }
}

fn memfd(name: &CString, flags: c_uint) -> io::Result<OwnedFd> {
    // SAFETY: the name ends with a zero and lives through the call; a non-negative answer is a descriptor that nobody else owns.
    unsafe { check(libc::memfd_create(name.as_ptr(), flags)).map(|fd| OwnedFd::from_raw_fd(fd)) }
}

/// Gives a file a length, and all of its pages.
pub(super) fn allocate(file: BorrowedFd<'_>, length: usize) -> io::Result<()> {
    let length = libc::off_t::try_from(length).map_err(|_| io::Error::from_raw_os_error(libc::ENOMEM))?;
    // SAFETY: takes no pointers.
    unsafe {
        check(libc::ftruncate(file.as_raw_fd(), length))?;
        check(libc::fallocate(file.as_raw_fd(), 0, 0, length)).map(drop)
    }
}

/// Makes a file keep its length for ever.
pub(super) fn seal(file: BorrowedFd<'_>) -> io::Result<()> {
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: takes no pointers.
    unsafe { check(libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals)).map(drop) }
}

/// Checks that the first `length` bytes of a file are there, and stay.
pub(super) fn check_file(file: BorrowedFd<'_>, length: usize) -> io::Result<()> {
    let refuse = |why: &str| Err(io::Error::new(io::ErrorKind::InvalidData, why));
    // First, because a file that is not of memory may be of a file system that makes the other calls wait.
    // SAFETY: takes no pointers. For files of other kinds it fails.
    let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
    if seals < 0 || seals & libc::F_SEAL_SHRINK == 0 {
        return refuse("not a file of memory that is sealed against shrinking");
    }
    // Pages of a file system of huge ones need not exist, though the file is sealed and has its length.
    if file_system(file)? != libc::TMPFS_MAGIC {
        return refuse("shared memory of huge pages");
    }
    let mut facts = MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: the pointer is to a whole stat, of which all zeroes are one.
    let facts = unsafe {
        check(libc::fstat(file.as_raw_fd(), facts.as_mut_ptr()))?;
        facts.assume_init()
    };
    let need = length as u64;
    if length == 0 || (facts.st_size as u64) < need || (facts.st_blocks as u64).saturating_mul(BLOCK) < need {
        return refuse("the shared memory is shorter than its owner says");
    }
    Ok(())
}

fn file_system(file: BorrowedFd<'_>) -> io::Result<libc::c_long> {
    let mut facts = MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: the pointer is to a whole statfs, of which all zeroes are one.
    let facts = unsafe {
        check(libc::fstatfs(file.as_raw_fd(), facts.as_mut_ptr()))?;
        facts.assume_init()
    };
    Ok(facts.f_type as libc::c_long)
}

/// A mapping of a file of memory. Bounds are the caller's to check.
pub(super) struct Map {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the mapping belongs to nobody's thread: it is accessed through copies and atomic words alone, and unmapped once.
unsafe impl Send for Map {}

impl Map {
    /// Maps the first `length` bytes of a file, and touches all of their pages.
    pub(super) fn new(file: BorrowedFd<'_>, length: usize) -> io::Result<Self> {
        let (access, kind): (c_int, c_int) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_POPULATE);
        // SAFETY: asks for a new place, so that no other memory is touched.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), length, access, kind, file.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Map { start, length })
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.length
    }

    #[inline]
    pub(super) fn address(&self) -> u64 {
        self.start.as_ptr() as u64
    }

    #[inline]
    pub(super) fn copy_in(&self, offset: usize, bytes: &[u8]) {
        debug_assert!(offset + bytes.len() <= self.length);
        // SAFETY: both runs are whole, as the caller has checked, and `bytes` is no part of a mapping, to which there are no
        // references. Another process may write at the same time; then the bytes are a mixture, which no type forbids.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.at(offset), bytes.len()) };
    }

    #[inline]
    pub(super) fn copy_out(&self, offset: usize, bytes: &mut [u8]) {
        debug_assert!(offset + bytes.len() <= self.length);
        // SAFETY: as for `copy_in`.
        unsafe { std::ptr::copy_nonoverlapping(self.at(offset), bytes.as_mut_ptr(), bytes.len()) };
    }

    #[inline]
    pub(super) fn copy_to(&self, offset: usize, to: &Map, to_offset: usize, length: usize) {
        debug_assert!(offset + length <= self.length && to_offset + length <= to.length);
        // SAFETY: both runs are whole, as the caller has checked; they may overlap. Another process may write at the same time,
        // as for `copy_in`.
        unsafe { std::ptr::copy(self.at(offset), to.at(to_offset), length) };
    }

    #[inline]
    pub(super) fn word32(&self, offset: usize) -> &AtomicU32 {
        debug_assert!(offset + 4 <= self.length && offset.is_multiple_of(4));
        // SAFETY: the word is whole and aligned, as the caller has checked, and mapped as long as `self` is borrowed.
        unsafe { AtomicU32::from_ptr(self.at(offset).cast()) }
    }

    #[inline]
    pub(super) fn word64(&self, offset: usize) -> &AtomicU64 {
        debug_assert!(offset + 8 <= self.length && offset.is_multiple_of(8));
        // SAFETY: as for `word32`.
        unsafe { AtomicU64::from_ptr(self.at(offset).cast()) }
    }

    #[inline]
    fn at(&self, offset: usize) -> *mut u8 {
        self.start.as_ptr().wrapping_add(offset)
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's alone, and nothing borrows it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// Receives one message and the descriptors that came with it. Returns the message's length and flags.
pub(super) fn receive_with_files(
    socket: BorrowedFd<'_>,
    bytes: &mut [u8],
    files: &mut Vec<OwnedFd>,
) -> io::Result<(usize, c_int)> {
    let mut control = Control::new();
    let mut slice = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let mut header = control.header(&mut slice, size_of::<Control>());
    let flags = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
    // SAFETY: the header's pointers are to `bytes` and `control`, which are writable and live through the call.
    let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, flags) };
    let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: the kernel has filled `control` for as long as the header says, and the macros stay within that. Each descriptor
    // is new, and nobody else owns it.
    unsafe {
        let mut part = libc::CMSG_FIRSTHDR(&raw const header);
        while !part.is_null() {
            if (*part).cmsg_level == libc::SOL_SOCKET && (*part).cmsg_type == libc::SCM_RIGHTS {
                let data = libc::CMSG_DATA(part).cast::<c_int>();
                let count = ((*part).cmsg_len - libc::CMSG_LEN(0) as usize) / size_of::<c_int>();
                files.extend((0..count).map(|index| OwnedFd::from_raw_fd(data.add(index).read_unaligned())));
            }
            part = libc::CMSG_NXTHDR(&raw const header, part);
        }
    }
    Ok((length, header.msg_flags))
}

/// Sends one message, with at most [`super::FILES_MAX`] descriptors.
pub(super) fn send_with_files(socket: BorrowedFd<'_>, bytes: &[u8], files: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut control = Control::new();
    let mut slice = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let space = if files.is_empty() { 0 } else { control.hold(files) };
    let header = control.header(&mut slice, space);
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the header's pointers are to `bytes` and `control`, which live through the call, and are only read.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const header, flags) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Bytes of the header and the descriptors of a message, with what the kernel's form adds between and behind them.
const ROOM: usize = 32 + size_of::<c_int>() * super::FILES_MAX;

/// Room for the descriptors of a message, in the kernel's form, aligned for its header.
#[repr(C, align(8))]
struct Control([u8; ROOM]);

impl Control {
    fn new() -> Self {
        Control([0; ROOM])
    }

    /// Puts descriptors here, and returns the bytes that they need.
    fn hold(&mut self, files: &[BorrowedFd<'_>]) -> usize {
        assert!(files.len() <= super::FILES_MAX, "the caller keeps to the bound");
        let bytes = size_of_val(files) as c_uint;
        let mut slice = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        // SAFETY: takes no pointers.
        let space = unsafe { libc::CMSG_SPACE(bytes) } as usize;
        assert!(space <= size_of::<Control>(), "the room holds as many descriptors as the bound says");
        let header = self.header(&mut slice, space);
        // SAFETY: the first header is at the beginning of `self`, which is aligned for it and has room for `space` bytes: the
        // header itself, and the descriptors.
        unsafe {
            let part = libc::CMSG_FIRSTHDR(&raw const header);
            (*part).cmsg_level = libc::SOL_SOCKET;
            (*part).cmsg_type = libc::SCM_RIGHTS;
            (*part).cmsg_len = libc::CMSG_LEN(bytes) as usize;
            let data = libc::CMSG_DATA(part).cast::<c_int>();
            for (index, file) in files.iter().enumerate() {
                data.add(index).write_unaligned(file.as_raw_fd());
            }
        }
        space
    }

    /// Returns the header of a message with this control part.
    fn header(&mut self, slice: &mut libc::iovec, space: usize) -> libc::msghdr {
        // SAFETY: all zeroes is a valid msghdr: no name, no control.
        let mut header: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
        header.msg_iov = &raw mut *slice;
        header.msg_iovlen = 1;
        if space > 0 {
            header.msg_control = self.0.as_mut_ptr().cast();
            header.msg_controllen = space as _;
        }
        header
    }
}
