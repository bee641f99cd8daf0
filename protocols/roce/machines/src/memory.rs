//! Memory regions: bytes that work requests and the far end name by key and virtual address (volume 1, 10.6).

use crate::{Access, ScatterEntry};
use alloc::vec::Vec;
use hodo_machine::{Random, Slab};
use thiserror::Error;

/// The bits of a key that are its place in the table; the others are random, so that a key that was invalidated or guessed is
/// not another region's.
const PLACE_BITS: u32 = 16;

/// A registered region.
#[derive(Debug)]
struct Region {
    key: u32,
    address: u64,
    access: Access,
    /// Whether the remote key is valid: a send with invalidate ends that, and leaves the local key.
    is_remote: bool,
    bytes: Vec<u8>,
}

/// Why a key and an address lead to no bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AccessError {
    /// No region has this key.
    #[error("no region has the key {0:#010x}")]
    NoSuchKey(u32),
    /// The bytes are not all inside of the region.
    #[error("{length} bytes at {address:#x} are not all inside of the region with the key {key:#010x}")]
    OutOfBounds {
        /// The key.
        key: u32,
        /// The virtual address.
        address: u64,
        /// Bytes.
        length: u64,
    },
    /// The region was registered without the right.
    #[error("the region with the key {0:#010x} does not allow it")]
    NotAllowed(u32),
}

/// The access to a region that a work request or the far end needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    LocalRead,
    LocalWrite,
    RemoteRead,
    RemoteWrite,
    RemoteAtomic,
}

/// The regions of an adapter.
#[derive(Debug)]
pub(crate) struct Memory {
    regions: Slab<Option<Region>>,
    random: Random,
    /// The address of the next region that chooses none.
    next_address: u64,
}

/// Regions that choose no address begin at multiples of this, so that no two of them are neighbours.
const SPACING: u64 = 1 << 32;

impl Memory {
    pub(crate) fn new(seed: u64) -> Self {
        Memory { regions: Slab::default(), random: Random::for_purpose(seed, 1), next_address: SPACING }
    }

    /// Registers bytes; the first one has the virtual address `address`, or one of its own.
    pub(crate) fn register(&mut self, bytes: Vec<u8>, access: Access, address: Option<u64>) -> Option<(u32, u64)> {
        let address = address.unwrap_or(self.next_address);
        if self.regions.len() >= 1 << PLACE_BITS || address.checked_add(bytes.len() as u64).is_none() {
            return None;
        }
        let behind = SPACING + (bytes.len() as u64).next_multiple_of(SPACING);
        // After all addresses have been used it begins again: keys tell regions of one address apart.
        self.next_address = self.next_address.checked_add(behind).unwrap_or(SPACING);
        let place = self.regions.insert(None);
        // Never 0, which applications take for no key.
        let variant = self.random.below((1 << (32 - PLACE_BITS)) - 1) as u32 + 1;
        let key = variant << PLACE_BITS | place;
        self.regions[place] = Some(Region { key, address, access, is_remote: true, bytes });
        Some((key, address))
    }

    pub(crate) fn deregister(&mut self, key: u32) -> Option<Vec<u8>> {
        self.region(key)?;
        let place = key & ((1 << PLACE_BITS) - 1);
        self.regions.release(place);
        self.regions[place].take().map(|region| region.bytes)
    }

    /// Makes a remote key invalid. Returns whether it was valid.
    pub(crate) fn invalidate(&mut self, key: u32) -> bool {
        self.region_mut(key).is_some_and(|region| core::mem::take(&mut region.is_remote))
    }

    pub(crate) fn bytes(&self, key: u32) -> Option<&[u8]> {
        self.region(key).map(|region| region.bytes.as_slice())
    }

    pub(crate) fn bytes_mut(&mut self, key: u32) -> Option<&mut [u8]> {
        self.region_mut(key).map(|region| region.bytes.as_mut_slice())
    }

    #[inline]
    fn region(&self, key: u32) -> Option<&Region> {
        self.regions.get(key & ((1 << PLACE_BITS) - 1))?.as_ref().filter(|region| region.key == key)
    }

    #[inline]
    fn region_mut(&mut self, key: u32) -> Option<&mut Region> {
        self.regions.at(key & ((1 << PLACE_BITS) - 1))?.as_mut().filter(|region| region.key == key)
    }

    /// Returns bytes to be read.
    #[inline]
    pub(crate) fn get(&self, key: u32, address: u64, length: usize, intent: Use) -> Result<&[u8], AccessError> {
        let region = self.region(key).ok_or(AccessError::NoSuchKey(key))?;
        let start = region.check(address, length, intent)?;
        Ok(&region.bytes[start..start + length])
    }

    /// Returns bytes to be written.
    #[inline]
    pub(crate) fn at(&mut self, key: u32, address: u64, length: usize, intent: Use) -> Result<&mut [u8], AccessError> {
        let region = self.region_mut(key).ok_or(AccessError::NoSuchKey(key))?;
        let start = region.check(address, length, intent)?;
        Ok(&mut region.bytes[start..start + length])
    }

    /// Copies bytes to where a list of entries puts them, `offset` bytes from its beginning. The entries together hold them.
    #[inline]
    pub(crate) fn scatter(
        &mut self,
        entries: &[ScatterEntry],
        mut offset: usize,
        mut bytes: &[u8],
    ) -> Result<(), AccessError> {
        for entry in entries {
            if bytes.is_empty() {
                break;
            }
            let length = entry.length as usize;
            if offset >= length {
                offset -= length;
                continue;
            }
            let (front, rest) = bytes.split_at(bytes.len().min(length - offset));
            let address = entry.address.saturating_add(offset as u64);
            self.at(entry.key, address, front.len(), Use::LocalWrite)?.copy_from_slice(front);
            (bytes, offset) = (rest, 0);
        }
        Ok(())
    }

    /// Hands out `length` bytes that a list of entries gathers, from `offset` on, run by run.
    #[inline]
    pub(crate) fn gather(
        &self,
        entries: &[ScatterEntry],
        mut offset: usize,
        mut length: usize,
        mut take: impl FnMut(&[u8]),
    ) -> Result<(), AccessError> {
        for entry in entries {
            if length == 0 {
                break;
            }
            let whole = entry.length as usize;
            if offset >= whole {
                offset -= whole;
                continue;
            }
            let count = length.min(whole - offset);
            take(self.get(entry.key, entry.address.saturating_add(offset as u64), count, Use::LocalRead)?);
            (length, offset) = (length - count, 0);
        }
        Ok(())
    }
}

impl Region {
    /// Returns where the bytes begin in the region.
    #[inline]
    fn check(&self, address: u64, length: usize, intent: Use) -> Result<usize, AccessError> {
        let is_allowed = match intent {
            Use::LocalRead => true,
            Use::LocalWrite => self.access.local_write,
            Use::RemoteRead => self.is_remote && self.access.remote_read,
            Use::RemoteWrite => self.is_remote && self.access.remote_write,
            Use::RemoteAtomic => self.is_remote && self.access.remote_atomic,
        };
        if !is_allowed {
            return Err(AccessError::NotAllowed(self.key));
        }
        let out = AccessError::OutOfBounds { key: self.key, address, length: length as u64 };
        let start = address.checked_sub(self.address).ok_or(out)?;
        let end = start.checked_add(length as u64).ok_or(out)?;
        if end > self.bytes.len() as u64 {
            return Err(out);
        }
        Ok(start as usize)
    }
}

#[cfg(test)]
mod tests;
