use super::{Error, Opened, later};
use crate::verbs::error::check;
use crate::verbs::layout::{ibv_alloc_dm_attr, ibv_dm};
use std::ffi::c_int;
use std::ptr::NonNull;

/// Drivers copy to and from device memory in words.
const WORD: usize = 4;

/// Memory on the device.
pub(super) struct DeviceMemory {
    raw: NonNull<ibv_dm>,
    free: unsafe extern "C" fn(*mut ibv_dm) -> c_int,
}

impl DeviceMemory {
    /// Allocates memory for at least this many bytes.
    pub(super) fn allocate(opened: &Opened, length: usize) -> Result<Self, Error> {
        let allocate = later!(opened, alloc_dm).ok_or(Error::Unsupported("ibv_alloc_dm"))?;
        let free = later!(opened, free_dm).ok_or(Error::Unsupported("ibv_free_dm"))?;
        let mut wish = ibv_alloc_dm_attr { length: length.next_multiple_of(WORD), log_align_req: 0, comp_mask: 0 };
        // SAFETY: the context is open, and the pointer is that of a live structure.
        let raw = unsafe { allocate(opened.raw.as_ptr(), &raw mut wish) };
        Ok(DeviceMemory { raw: NonNull::new(raw).ok_or_else(|| Error::last("ibv_alloc_dm"))?, free })
    }

    pub(super) fn raw(&self) -> *mut ibv_dm {
        self.raw.as_ptr()
    }

    /// Copies bytes out; they must be inside.
    pub(super) fn read(&self, offset: usize, bytes: &mut [u8]) -> Result<(), Error> {
        let (first, mut words) = words(offset, bytes.len());
        self.read_words(first, &mut words)?;
        bytes.copy_from_slice(&words[offset - first..][..bytes.len()]);
        Ok(())
    }

    /// Copies bytes in; they must fit inside.
    pub(super) fn write(&self, offset: usize, bytes: &[u8]) -> Result<(), Error> {
        let (first, mut words) = words(offset, bytes.len());
        if words.len() != bytes.len() {
            self.read_words(first, &mut words)?;
        }
        words[offset - first..][..bytes.len()].copy_from_slice(bytes);
        let raw = self.raw.as_ptr();
        // SAFETY: the memory is live, and has the function that was set when it was allocated.
        let copy = unsafe { (*raw).memcpy_to_dm }.ok_or(Error::Unsupported("ibv_memcpy_to_dm"))?;
        // SAFETY: pointer and length are those of a live vector. The driver checks the range again.
        check("ibv_memcpy_to_dm", unsafe { copy(raw, first as u64, words.as_ptr().cast(), words.len()) })
    }

    fn read_words(&self, first: usize, words: &mut [u8]) -> Result<(), Error> {
        let raw = self.raw.as_ptr();
        // SAFETY: the memory is live, and has the function that was set when it was allocated.
        let copy = unsafe { (*raw).memcpy_from_dm }.ok_or(Error::Unsupported("ibv_memcpy_from_dm"))?;
        // SAFETY: pointer and length are those of a live slice. The driver checks the range again.
        check("ibv_memcpy_from_dm", unsafe { copy(words.as_mut_ptr().cast(), raw, first as u64, words.len()) })
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        // SAFETY: the memory was allocated once, and its region is deregistered.
        unsafe { (self.free)(self.raw.as_ptr()) };
    }
}

/// Returns where the words begin that these bytes are in, and room for the words.
fn words(offset: usize, length: usize) -> (usize, Vec<u8>) {
    let first = offset - offset % WORD;
    (first, vec![0; (offset + length).next_multiple_of(WORD) - first])
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn device_memory_is_copied_in_whole_words() {
        assert_eq!(words(0, 8), (0, vec![0; 8]));
        assert_eq!(words(3, 2), (0, vec![0; 8]));
        assert_eq!(words(5, 1), (4, vec![0; 4]));
        assert_eq!(words(8, 0), (8, vec![]));
    }
}
