//! Files of memory that are mapped here and in another process.
//!
//! The other process may write to the memory at any time, so nothing here makes a reference to its bytes: they are copied, or
//! accessed as atomic words.

use super::sys;
use crate::host::memory_available;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64};

/// A run of bytes that is not all inside of the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfBounds;

impl fmt::Display for OutOfBounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes are not all inside of the shared memory")
    }
}

impl std::error::Error for OutOfBounds {}

/// Memory that other processes may read and write at the same time.
pub struct SharedMemory {
    map: sys::Map,
    file: Option<OwnedFd>,
}

impl SharedMemory {
    /// Allocates memory of zeroes, which cannot shrink; `name` is what the kernel shows for it.
    ///
    /// # Errors
    /// Returns `InvalidInput` for a length of 0, `OutOfMemory` for more than is available, and otherwise the operating system's
    /// error.
    pub fn create(name: &str, length: usize) -> io::Result<Self> {
        if length == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "shared memory of no bytes"));
        }
        // Pages that are not there would be allocated until the kernel ends a process, which may be another one.
        if memory_available().is_some_and(|available| length as u64 > available) {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let file = sys::create_file(name)?;
        sys::allocate(file.as_fd(), length)?;
        sys::seal(file.as_fd())?;
        let map = sys::Map::new(file.as_fd(), length)?;
        Ok(SharedMemory { map, file: Some(file) })
    }

    /// Maps the first `length` bytes of a file that another process has created.
    ///
    /// Memory that is not there would end this process when it is accessed. So the file has to be one of memory, sealed against
    /// shrinking, as long as that, and with all of its pages.
    ///
    /// # Errors
    /// Returns `InvalidData` if the file is not so, and otherwise the operating system's error.
    pub fn map(file: &OwnedFd, length: usize) -> io::Result<Self> {
        sys::check_file(file.as_fd(), length)?;
        Ok(SharedMemory { map: sys::Map::new(file.as_fd(), length)?, file: None })
    }

    /// Returns the file that another process can map, if this one has created it.
    #[must_use]
    pub fn file(&self) -> Option<BorrowedFd<'_>> {
        self.file.as_ref().map(AsFd::as_fd)
    }

    /// Returns the number of bytes.
    #[must_use]
    #[inline]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Returns the address of the first byte in this process.
    #[must_use]
    #[inline]
    pub fn address(&self) -> u64 {
        self.map.address()
    }

    /// Copies bytes into the memory.
    ///
    /// # Errors
    /// Returns [`OutOfBounds`], and copies nothing, if they are not all inside of it.
    #[inline]
    pub fn copy_in(&self, offset: usize, bytes: &[u8]) -> Result<(), OutOfBounds> {
        self.check(offset, bytes.len())?;
        self.map.copy_in(offset, bytes);
        Ok(())
    }

    /// Copies bytes out of the memory.
    ///
    /// # Errors
    /// Returns [`OutOfBounds`], and copies nothing, if they are not all inside of it.
    #[inline]
    pub fn copy_out(&self, offset: usize, bytes: &mut [u8]) -> Result<(), OutOfBounds> {
        self.check(offset, bytes.len())?;
        self.map.copy_out(offset, bytes);
        Ok(())
    }

    /// Copies bytes from this memory to another, or to another place of it.
    ///
    /// # Errors
    /// Returns [`OutOfBounds`], and copies nothing, if they are not all inside of both.
    #[inline]
    pub fn copy_to(
        &self,
        offset: usize,
        to: &SharedMemory,
        to_offset: usize,
        length: usize,
    ) -> Result<(), OutOfBounds> {
        self.check(offset, length)?;
        to.check(to_offset, length)?;
        self.map.copy_to(offset, &to.map, to_offset, length);
        Ok(())
    }

    /// Returns the four bytes at an offset as an atomic word.
    ///
    /// # Panics
    /// Panics if they are not all inside of the memory, or not aligned.
    #[must_use]
    #[inline]
    pub fn word32(&self, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(4) && self.check(offset, 4).is_ok(), "no word of four bytes at {offset}");
        self.map.word32(offset)
    }

    /// Returns the eight bytes at an offset as an atomic word.
    ///
    /// # Panics
    /// Panics if they are not all inside of the memory, or not aligned.
    #[must_use]
    #[inline]
    pub fn word64(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && self.check(offset, 8).is_ok(), "no word of eight bytes at {offset}");
        self.map.word64(offset)
    }

    #[inline]
    fn check(&self, offset: usize, length: usize) -> Result<(), OutOfBounds> {
        let is_inside = offset.checked_add(length).is_some_and(|end| end <= self.len());
        if is_inside { Ok(()) } else { Err(OutOfBounds) }
    }
}

impl fmt::Debug for SharedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedMemory").field("len", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
