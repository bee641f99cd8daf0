//! Registered regions: those of this device, and those of a far end that are mapped here.

use super::layout::REGIONS_MAX;
use hodo_io::shared_memory::SharedMemory;
use hodo_roce::{Access, ScatterEntry};

/// The bits of a key that are its slot; the others change each time that the slot is used.
const SLOT_BITS: u32 = REGIONS_MAX.trailing_zeros();

/// A registered region.
#[derive(Debug)]
pub(super) struct Registered {
    pub(super) key: u32,
    /// The virtual address of its first byte, by which work requests name it.
    pub(super) address: u64,
    pub(super) access: Access,
    pub(super) memory: SharedMemory,
}

/// A run of bytes that is inside of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    slot: usize,
    offset: usize,
    length: usize,
}

impl Piece {
    fn advance(&mut self, count: usize) {
        self.offset += count;
        self.length -= count;
    }
}

/// Regions, by slot.
#[derive(Debug)]
pub(super) struct Regions {
    slots: Box<[Option<Registered>]>,
}

impl Regions {
    pub(super) fn new() -> Self {
        Regions { slots: (0..REGIONS_MAX).map(|_| None).collect() }
    }

    /// Returns a slot without a region.
    pub(super) fn free_slot(&self) -> Option<usize> {
        self.slots.iter().position(Option::is_none)
    }

    /// Puts a region into a slot, or takes it out.
    pub(super) fn set(&mut self, slot: usize, region: Option<Registered>) {
        self.slots[slot] = region;
    }

    pub(super) fn in_slot(&self, slot: usize) -> Option<&Registered> {
        self.slots.get(slot)?.as_ref()
    }

    /// Returns the slots that have regions.
    pub(super) fn taken(&self) -> impl Iterator<Item = usize> {
        self.slots.iter().enumerate().filter(|(_, region)| region.is_some()).map(|(slot, _)| slot)
    }

    /// Returns the region of a key.
    #[inline]
    pub(super) fn find(&self, key: u32) -> Option<&Registered> {
        self.slots[slot_of(key)].as_ref().filter(|region| region.key == key)
    }

    /// Returns the bytes that a key, an address and a length name, if they are all inside of the region.
    #[inline]
    pub(super) fn piece(&self, key: u32, address: u64, length: u32) -> Option<Piece> {
        let region = self.find(key)?;
        let (offset, size) = (address.checked_sub(region.address)?, region.memory.len() as u64);
        let is_inside = offset <= size && u64::from(length) <= size - offset;
        is_inside.then(|| Piece { slot: slot_of(key), offset: offset as usize, length: length as usize })
    }

    /// Finds the first `length` bytes that a list of entries names. Returns whether they are all inside of regions, which may be
    /// written to if `is_written`.
    #[inline]
    pub(super) fn resolve(
        &self,
        entries: &[ScatterEntry],
        mut length: u32,
        is_written: bool,
        pieces: &mut Vec<Piece>,
    ) -> bool {
        pieces.clear();
        for entry in entries {
            let count = entry.length.min(length);
            if count == 0 {
                continue;
            }
            let Some(piece) = self.piece(entry.key, entry.address, count) else { return false };
            if is_written && !self.slots[piece.slot].as_ref().is_some_and(|region| region.access.local_write) {
                return false;
            }
            pieces.push(piece);
            length -= count;
        }
        length == 0
    }

    /// Returns the memory of a piece, and its offset there.
    #[inline]
    pub(super) fn memory(&self, piece: &Piece) -> (&SharedMemory, usize) {
        let region = self.slots[piece.slot].as_ref().expect("pieces are used before a region goes");
        (&region.memory, piece.offset)
    }

    /// Copies bytes into pieces.
    #[inline]
    pub(super) fn copy_in(&self, pieces: &[Piece], mut bytes: &[u8]) {
        for piece in pieces {
            let (front, rest) = bytes.split_at(piece.length.min(bytes.len()));
            let (memory, offset) = self.memory(piece);
            memory.copy_in(offset, front).expect("a piece is inside of its region");
            bytes = rest;
        }
    }

    /// Copies bytes out of pieces.
    pub(super) fn copy_out(&self, pieces: &[Piece], mut bytes: &mut [u8]) {
        for piece in pieces {
            let (front, rest) = bytes.split_at_mut(piece.length.min(bytes.len()));
            let (memory, offset) = self.memory(piece);
            memory.copy_out(offset, front).expect("a piece is inside of its region");
            bytes = rest;
        }
    }
}

/// Copies the bytes of one list of pieces to another list.
#[inline]
pub(super) fn transfer((from_regions, from): (&Regions, &[Piece]), (to_regions, to): (&Regions, &[Piece])) {
    let mut rooms = to.iter().copied();
    let Some(mut room) = rooms.next() else { return };
    for piece in from {
        let mut piece = *piece;
        while piece.length > 0 {
            let count = piece.length.min(room.length);
            let ((source, source_offset), (target, target_offset)) =
                (from_regions.memory(&piece), to_regions.memory(&room));
            source.copy_to(source_offset, target, target_offset, count).expect("a piece is inside of its region");
            piece.advance(count);
            room.advance(count);
            if room.length == 0 {
                match rooms.next() {
                    Some(next) => room = next,
                    None => return,
                }
            }
        }
    }
}

/// Returns the slot of a key.
#[inline]
pub(super) const fn slot_of(key: u32) -> usize {
    key as usize & (REGIONS_MAX - 1)
}

/// Returns the key of a slot; never 0, which applications take for no key.
pub(super) const fn key_of(slot: usize, variant: u32) -> u32 {
    let variants = 1 << (u32::BITS - SLOT_BITS);
    (variant % (variants - 1) + 1) << SLOT_BITS | slot as u32
}

/// A set of slots.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SlotSet([u64; REGIONS_MAX / 64]);

impl SlotSet {
    pub(super) fn insert(&mut self, slot: usize) {
        self.0[slot / 64] |= 1 << (slot % 64);
    }

    pub(super) fn remove(&mut self, slot: usize) {
        self.0[slot / 64] &= !(1 << (slot % 64));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0 == [0; REGIONS_MAX / 64]
    }

    pub(super) fn iter(self) -> impl Iterator<Item = usize> {
        (0..REGIONS_MAX).filter(move |slot| self.0[slot / 64] >> (slot % 64) & 1 != 0)
    }
}
