use super::Operation;
use alloc::vec::Vec;
use thiserror::Error;

/// The largest number of bytes that a read-modify-write changes.
pub(super) const MODIFY_MAX: usize = 4;

/// An access to the memory of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Access {
    /// The operation.
    pub operation: Operation,
    /// The extended address and the address, in 40 bits.
    pub address: u64,
    /// Bytes to be read or written; in a read-modify-write those of the data without the mask.
    pub length: u32,
    /// Whether the address advances with the data; otherwise every word goes to or comes from the same address.
    pub increments: bool,
    /// The key of the command.
    pub key: u8,
    /// The target logical address of the command.
    pub target: u8,
    /// The initiator logical address of the command.
    pub initiator: u8,
}

/// A memory's reason to refuse an access before it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The key is not the one that these addresses need.
    #[error("invalid key")]
    Key,
    /// The logical address is not one that these addresses are reached by.
    #[error("invalid target logical address")]
    LogicalAddress,
    /// The access is not implemented or not allowed.
    #[error("not implemented or not authorised")]
    NotAuthorised,
}

/// The failure of a memory during an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the memory failed")]
pub struct AccessError;

/// A memory that a [`Target`](super::Target) serves. Every access is authorised before it begins.
pub trait Memory {
    /// Decides whether an access may begin.
    ///
    /// # Errors
    /// Returns the reason to refuse it, which becomes the status of the reply.
    fn authorise(&self, access: &Access) -> Result<(), Refusal>;

    /// Reads into all of `data`.
    ///
    /// # Errors
    /// [`AccessError`] if the memory fails.
    fn read(&mut self, access: &Access, data: &mut [u8]) -> Result<(), AccessError>;

    /// Writes all of `data`.
    ///
    /// # Errors
    /// [`AccessError`] if the memory fails.
    fn write(&mut self, access: &Access, data: &[u8]) -> Result<(), AccessError>;

    /// Reads into `old`, and writes `data` where `mask` has ones and `old` elsewhere. All three have the length of the access.
    ///
    /// The standard leaves the rule to the target; this one is usual.
    ///
    /// # Errors
    /// [`AccessError`] if the memory fails.
    fn modify(&mut self, access: &Access, data: &[u8], mask: &[u8], old: &mut [u8]) -> Result<(), AccessError> {
        self.read(access, old)?;
        let mut new = [0; MODIFY_MAX];
        let new = new.get_mut(..old.len()).ok_or(AccessError)?;
        for (at, new) in new.iter_mut().enumerate() {
            *new = data[at] & mask[at] | old[at] & !mask[at];
        }
        self.write(access, new)
    }
}

/// A memory of regions with rights, for simulated devices and tests.
#[derive(Debug, Clone, Default)]
pub struct Ram {
    /// The regions. Where several hold an access, the first one serves it.
    pub regions: Vec<Region>,
}

/// Bytes at consecutive addresses.
#[derive(Debug, Clone)]
pub struct Region {
    /// The address of the first byte.
    pub address: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The allowed operations.
    pub rights: Rights,
    /// Bytes of a word. Addresses and lengths must be multiples of it; without increment an access stays at one word.
    pub word: u8,
}

/// The operations that a region allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rights {
    /// Reads.
    pub read: bool,
    /// Writes.
    pub write: bool,
    /// Read-modify-writes.
    pub modify: bool,
}

impl Rights {
    /// Every operation.
    pub const ALL: Rights = Rights { read: true, write: true, modify: true };
    /// Reads alone.
    pub const READ: Rights = Rights { read: true, write: false, modify: false };
}

impl Ram {
    /// Creates a memory of one region of bytes that allows everything.
    #[must_use]
    pub fn new(address: u64, bytes: Vec<u8>) -> Self {
        Ram { regions: [Region { address, bytes, rights: Rights::ALL, word: 1 }].into() }
    }

    fn find(&self, access: &Access) -> Option<(usize, usize)> {
        let mut regions = self.regions.iter().enumerate();
        regions.find_map(|(number, region)| region.offset(access).map(|offset| (number, offset)))
    }
}

impl Region {
    fn allows(&self, operation: Operation) -> bool {
        match operation {
            Operation::Read => self.rights.read,
            Operation::Write { .. } => self.rights.write,
            Operation::ReadModifyWrite => self.rights.modify,
        }
    }

    /// Returns where an access begins in the region, or `None` if part of it is outside.
    fn offset(&self, access: &Access) -> Option<usize> {
        let word = u64::from(self.word.max(1));
        let extent = if access.increments { u64::from(access.length) } else { word.min(u64::from(access.length)) };
        let offset = access.address.checked_sub(self.address)?;
        let is_aligned = access.address.is_multiple_of(word) && u64::from(access.length).is_multiple_of(word);
        let is_inside = offset.checked_add(extent)? <= self.bytes.len() as u64;
        (is_aligned && is_inside).then_some(offset as usize)
    }
}

impl Memory for Ram {
    fn authorise(&self, access: &Access) -> Result<(), Refusal> {
        let (number, _) = self.find(access).ok_or(Refusal::NotAuthorised)?;
        if self.regions[number].allows(access.operation) { Ok(()) } else { Err(Refusal::NotAuthorised) }
    }

    fn read(&mut self, access: &Access, data: &mut [u8]) -> Result<(), AccessError> {
        let (number, offset) = self.find(access).ok_or(AccessError)?;
        let region = &self.regions[number];
        if access.increments {
            data.copy_from_slice(region.bytes.get(offset..offset + data.len()).ok_or(AccessError)?);
            return Ok(());
        }
        for word in data.chunks_mut(usize::from(region.word.max(1))) {
            word.copy_from_slice(region.bytes.get(offset..offset + word.len()).ok_or(AccessError)?);
        }
        Ok(())
    }

    fn write(&mut self, access: &Access, data: &[u8]) -> Result<(), AccessError> {
        let (number, offset) = self.find(access).ok_or(AccessError)?;
        let region = &mut self.regions[number];
        // Without increment only the last word stays.
        let stays = if access.increments { data.len() } else { data.len().min(usize::from(region.word.max(1))) };
        let room = region.bytes.get_mut(offset..offset + stays).ok_or(AccessError)?;
        room.copy_from_slice(&data[data.len() - stays..]);
        Ok(())
    }
}
