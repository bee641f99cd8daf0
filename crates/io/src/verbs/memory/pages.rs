use super::Error;
use std::ptr::NonNull;

/// Whole pages of zeroes, which a device may read and write at any time: they are only copied into and out of.
pub(super) struct Pages {
    address: NonNull<u8>,
    length: usize,
}

// SAFETY: the pages belong to no thread, and are reached through pointers only.
unsafe impl Send for Pages {}
// SAFETY: as above. Copies that overlap in time may be torn, as they are when the device writes.
unsafe impl Sync for Pages {}

impl Pages {
    /// Maps pages for this many bytes. A child process does not inherit them: otherwise the first write after a fork would move
    /// them away from under the device.
    pub(super) fn new(length: usize) -> Result<Self, Error> {
        // SAFETY: asks for a new mapping, whose address nobody else has; the advice is for that mapping alone.
        unsafe {
            let (rights, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            let address = libc::mmap(std::ptr::null_mut(), length, rights, kind, -1, 0);
            if address == libc::MAP_FAILED {
                return Err(Error::last("mmap"));
            }
            libc::madvise(address, length, libc::MADV_DONTFORK);
            Ok(Pages { address: NonNull::new(address.cast()).ok_or_else(|| Error::last("mmap"))?, length })
        }
    }

    pub(super) fn address(&self) -> NonNull<u8> {
        self.address
    }

    /// Returns whether a run of bytes is inside.
    pub(super) fn contains(&self, address: u64, length: u32) -> bool {
        let first = self.address.addr().get() as u64;
        address >= first
            && (address - first).checked_add(u64::from(length)).is_some_and(|end| end <= self.length as u64)
    }

    /// Copies bytes out; they must be inside.
    pub(super) fn read(&self, offset: usize, bytes: &mut [u8]) {
        assert!(offset + bytes.len() <= self.length, "the caller has checked the range");
        // SAFETY: the range is inside of the mapping, and `bytes` is no part of it: nobody has a reference into it.
        unsafe { self.address.add(offset).as_ptr().copy_to_nonoverlapping(bytes.as_mut_ptr(), bytes.len()) };
    }

    /// Copies bytes in; they must fit inside.
    pub(super) fn write(&self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= self.length, "the caller has checked the range");
        // SAFETY: the range is inside of the mapping, and `bytes` is no part of it: nobody has a reference into it.
        unsafe { self.address.add(offset).as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, of this length, and no region is registered on it any more.
        unsafe { libc::munmap(self.address.as_ptr().cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::Pages;

    #[test]
    fn pages_are_zeroes_aligned_and_copied() {
        let pages = Pages::new(5000).expect("two pages can be mapped");
        let first = pages.address().addr().get();
        assert_eq!(first % 4096, 0);
        let mut bytes = [1; 4];
        pages.read(4996, &mut bytes);
        assert_eq!(bytes, [0; 4]);
        pages.write(1, b"abc");
        pages.read(0, &mut bytes);
        assert_eq!(&bytes, b"\0abc");
        let first = first as u64;
        assert!(pages.contains(first, 5000) && pages.contains(first + 5000, 0));
        assert!(!pages.contains(first, 5001) && !pages.contains(first - 1, 1) && !pages.contains(first + 5001, 0));
        assert!(!pages.contains(u64::MAX, u32::MAX));
    }
}
