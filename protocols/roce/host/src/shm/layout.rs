//! The shared memory of a queue pair and of a device, as both processes see it. All words are in the host's byte order.
//!
//! ```text
//! queue pair    bytes                 written by          read by
//! state         0..4                  owner               far end
//! descriptors   128.., stride each    owner               far end    of posted receives
//! arrivals      behind, 16 each       far end             owner      of messages that completed a receive
//!
//! device        bytes                 written by          read by
//! armed         0..4                  owner, far ends     far ends   1 while the owner sleeps
//! keys          128.., 8 each         owner, far ends     far ends   of region n: u32 local key, u32 remote key; 0 is none
//!
//! descriptor    u32 sequence, u32 count;  count times: u64 address, u32 length, u32 key
//! arrival       u32 length, u32 datum;    u32 sequence, u8 kind, u8 flags, u8 status, u8 0
//! ```
//!
//! Receive `n` has slot `n % depth` of both rings, and the sequence `n + 1`, which is written last: a slot with another sequence is
//! not filled yet. So there is no index for the processes to share, and a message costs the transfer of one cache line, as a flag
//! would. The owner posts receive `n` only after it has taken arrival `n - depth`, so neither ring overflows.
//!
//! Nothing here is trusted: what the other process wrote is copied once, and checked as a copy.

use hodo_io::shared_memory::SharedMemory;
use hodo_roce::{Completed, ScatterEntry, Status};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::fence;

/// Regions of a device at most.
pub(super) const REGIONS_MAX: usize = 256;
/// Requests of a queue at most.
pub(super) const DEPTH_MAX: u32 = 1 << 16;
/// Entries of a request at most.
pub(super) const ENTRIES_MAX: u32 = 32;

/// Two cache lines, which processors fetch together: what two processes write does not share them.
const APART: usize = 128;
const ENTRY: usize = 16;
const ARRIVAL: usize = 16;

/// The state of a queue pair as its far end sees it; before it is connected, the word is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OwnerState {
    /// Messages may come.
    Ready = 1,
    /// The queue pair has failed.
    Failed = 2,
    /// The owner has destroyed the queue pair.
    Left = 3,
}

/// The depth and width of a receive queue, from which the places in its memory follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    /// A power of two.
    depth: u32,
    width: u32,
}

impl Shape {
    /// Returns the shape with room for `depth` receives of `width` entries; `None` if that is out of range.
    pub(super) fn new(depth: u32, width: u32) -> Option<Shape> {
        let is_possible = (1..=DEPTH_MAX).contains(&depth) && width <= ENTRIES_MAX;
        is_possible.then(|| Shape { depth: depth.next_power_of_two(), width })
    }

    pub(super) const fn depth(self) -> u32 {
        self.depth
    }

    pub(super) const fn width(self) -> u32 {
        self.width
    }

    /// Returns the slot of a receive.
    #[inline]
    pub(super) const fn slot(self, number: u32) -> usize {
        (number & (self.depth - 1)) as usize
    }

    const fn stride(self) -> usize {
        (8 + self.width as usize * ENTRY).next_multiple_of(32)
    }

    #[inline]
    const fn descriptor(self, number: u32) -> usize {
        APART + self.slot(number) * self.stride()
    }

    #[inline]
    const fn arrival(self, number: u32) -> usize {
        (APART + self.depth as usize * self.stride()).next_multiple_of(APART) + self.slot(number) * ARRIVAL
    }

    const fn bytes(self) -> usize {
        self.arrival(self.depth - 1) + ARRIVAL
    }
}

/// A message that has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) kind: Completed,
    pub(super) length: u32,
    pub(super) immediate: Option<u32>,
    pub(super) invalidated: Option<u32>,
    pub(super) is_solicited: bool,
}

/// An entry of the ring of arrivals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// A message, which completes a receive.
    Message(Message),
    /// A message that fails a receive, and the queue pair with it.
    Refused(Status),
    /// The queue pair fails, whether a receive is posted or not.
    Failed,
}

const RECEIVE: u8 = 1;
const RECEIVE_WRITE: u8 = 2;
const REFUSED: u8 = 3;
const FAILURE: u8 = 4;

const IMMEDIATE: u8 = 1;
const INVALIDATED: u8 = 2;
const SOLICITED: u8 = 4;

impl Arrival {
    #[inline]
    fn encode(&self, sequence: u32) -> (u64, u64) {
        let (kind, flags, status, length, datum) = match *self {
            Arrival::Message(message) => message.encode(),
            Arrival::Refused(status) => (REFUSED, 0, status.code() as u8, 0, 0),
            Arrival::Failed => (FAILURE, 0, 0, 0, 0),
        };
        let [a, b, c, d] = sequence.to_ne_bytes();
        (words(length, datum), u64::from_ne_bytes([a, b, c, d, kind, flags, status, 0]))
    }

    #[inline]
    fn decode(first: u64, second: u64) -> Option<Arrival> {
        let [_, _, _, _, kind, flags, status, _] = second.to_ne_bytes();
        let (length, datum) = halves(first);
        let kind = match kind {
            RECEIVE => Completed::Receive,
            RECEIVE_WRITE => Completed::ReceiveWrite,
            REFUSED => {
                let status = Status::from_code(u32::from(status)).filter(|status| *status != Status::Success);
                return status.map(Arrival::Refused);
            }
            FAILURE => return Some(Arrival::Failed),
            _ => return None,
        };
        Some(Arrival::Message(Message {
            kind,
            length,
            immediate: (flags & IMMEDIATE != 0).then_some(datum),
            invalidated: (flags & INVALIDATED != 0).then_some(datum),
            is_solicited: flags & SOLICITED != 0,
        }))
    }
}

impl Message {
    #[inline]
    fn encode(&self) -> (u8, u8, u8, u32, u32) {
        let kind = if self.kind == Completed::Receive { RECEIVE } else { RECEIVE_WRITE };
        let flag = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        let flags = flag(self.immediate.is_some(), IMMEDIATE)
            | flag(self.invalidated.is_some(), INVALIDATED)
            | flag(self.is_solicited, SOLICITED);
        (kind, flags, 0, self.length, self.immediate.or(self.invalidated).unwrap_or(0))
    }
}

/// Bytes that no process of this kind writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Garbage;

/// The memory of a queue pair: the descriptors of its receives, and the arrivals.
#[derive(Debug)]
pub(super) struct Rings {
    memory: SharedMemory,
    shape: Shape,
}

impl Rings {
    pub(super) fn create(shape: Shape) -> io::Result<Self> {
        Ok(Rings { memory: SharedMemory::create("hodo-queue-pair", shape.bytes())?, shape })
    }

    pub(super) fn map(file: &OwnedFd, shape: Shape) -> io::Result<Self> {
        Ok(Rings { memory: SharedMemory::map(file, shape.bytes())?, shape })
    }

    pub(super) const fn memory(&self) -> &SharedMemory {
        &self.memory
    }

    pub(super) const fn shape(&self) -> Shape {
        self.shape
    }

    /// Tells the far end the state of the queue pair.
    pub(super) fn set_state(&self, state: OwnerState) {
        self.memory.word32(0).store(state as u32, Release);
    }

    /// Returns whether the owner's queue pair is in this state.
    #[inline]
    pub(super) fn is_in(&self, state: OwnerState) -> bool {
        self.memory.word32(0).load(Acquire) == state as u32
    }

    /// Publishes a receive; there are at most as many entries as the shape has.
    #[inline]
    pub(super) fn post(&self, number: u32, entries: &[ScatterEntry]) {
        let at = self.shape.descriptor(number);
        for (index, entry) in entries.iter().enumerate() {
            let place = at + 8 + index * ENTRY;
            self.memory.word64(place).store(entry.address, Relaxed);
            self.memory.word64(place + 8).store(words(entry.length, entry.key), Relaxed);
        }
        self.memory.word64(at).store(words(number.wrapping_add(1), entries.len() as u32), Release);
    }

    /// Returns whether a receive is posted, and has any entries; makes the processor fetch it if it is not there.
    #[inline]
    pub(super) fn is_posted(&self, number: u32) -> bool {
        halves(self.memory.word64(self.shape.descriptor(number)).load(Relaxed)).0 == number.wrapping_add(1)
    }

    /// Copies the entries of a receive; `None` if it is not posted.
    #[inline]
    pub(super) fn posted(&self, number: u32, entries: &mut Vec<ScatterEntry>) -> Option<Result<(), Garbage>> {
        let at = self.shape.descriptor(number);
        let (sequence, count) = halves(self.memory.word64(at).load(Acquire));
        if sequence != number.wrapping_add(1) {
            return None;
        }
        if count > self.shape.width {
            return Some(Err(Garbage));
        }
        entries.clear();
        for index in 0..count as usize {
            let place = at + 8 + index * ENTRY;
            let address = self.memory.word64(place).load(Relaxed);
            let (length, key) = halves(self.memory.word64(place + 8).load(Relaxed));
            entries.push(ScatterEntry { address, length, key });
        }
        Some(Ok(()))
    }

    /// Publishes an arrival to the owner.
    #[inline]
    pub(super) fn arrive(&self, number: u32, arrival: &Arrival) {
        let at = self.shape.arrival(number);
        let (first, second) = arrival.encode(number.wrapping_add(1));
        self.memory.word64(at).store(first, Relaxed);
        self.memory.word64(at + 8).store(second, Release);
    }

    /// Returns an arrival; `None` if it has not come.
    #[inline]
    pub(super) fn arrived(&self, number: u32) -> Option<Result<Arrival, Garbage>> {
        let at = self.shape.arrival(number);
        let second = self.memory.word64(at + 8).load(Acquire);
        if halves(second).0 != number.wrapping_add(1) {
            return None;
        }
        let first = self.memory.word64(at).load(Relaxed);
        Some(Arrival::decode(first, second).ok_or(Garbage))
    }
}

/// The memory of a device: whether it sleeps, and the keys of its regions that are valid now.
#[derive(Debug)]
pub(super) struct Table {
    memory: SharedMemory,
}

const TABLE_BYTES: usize = APART + REGIONS_MAX * 8;

impl Table {
    pub(super) fn create() -> io::Result<Self> {
        Ok(Table { memory: SharedMemory::create("hodo-device", TABLE_BYTES)? })
    }

    pub(super) fn map(file: &OwnedFd) -> io::Result<Self> {
        Ok(Table { memory: SharedMemory::map(file, TABLE_BYTES)? })
    }

    pub(super) const fn memory(&self) -> &SharedMemory {
        &self.memory
    }

    /// Says that the owner goes to sleep. It looks once more afterwards: an arrival that it does not see then comes from a far end
    /// that sees this.
    pub(super) fn arm(&self) {
        self.memory.word32(0).store(1, Relaxed);
        fence(SeqCst);
    }

    /// Says that the owner is awake.
    pub(super) fn disarm(&self) {
        self.memory.word32(0).store(0, Relaxed);
    }

    /// Returns whether the owner is to be woken. The far end has published an arrival before.
    #[inline]
    pub(super) fn is_to_be_woken(&self) -> bool {
        fence(SeqCst);
        let armed = self.memory.word32(0);
        armed.load(Relaxed) != 0 && armed.swap(0, Relaxed) != 0
    }

    /// Sets the keys of a region, 0 for none.
    pub(super) fn publish(&self, slot: usize, local_key: u32, remote_key: u32) {
        self.memory.word64(keys_at(slot)).store(words(local_key, remote_key), Release);
    }

    /// Returns the local and the remote key of a region, 0 for none.
    #[inline]
    pub(super) fn keys(&self, slot: usize) -> (u32, u32) {
        halves(self.memory.word64(keys_at(slot)).load(Relaxed))
    }

    /// Makes a remote key invalid. Returns whether it was valid.
    pub(super) fn invalidate(&self, slot: usize, key: u32) -> bool {
        let word = self.memory.word64(keys_at(slot));
        word.compare_exchange(words(key, key), words(key, 0), SeqCst, Relaxed).is_ok()
    }
}

const fn keys_at(slot: usize) -> usize {
    APART + slot * 8
}

/// Puts two words of four bytes one behind the other.
#[inline]
const fn words(first: u32, second: u32) -> u64 {
    let ([a, b, c, d], [e, f, g, h]) = (first.to_ne_bytes(), second.to_ne_bytes());
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}

#[inline]
const fn halves(word: u64) -> (u32, u32) {
    let [a, b, c, d, e, f, g, h] = word.to_ne_bytes();
    (u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h]))
}
