//! The far end of a queue pair, as this process has mapped it. What the far end wrote is checked before each use.

use super::layout::{Arrival, Message as Arrived, Rings, Table};
use super::messages::{Announced, Hello, MESSAGE_BYTES, Malformed, Message, announced};
use super::regions::{Piece, Regions, Registered, slot_of};
use hodo_io::shared_memory::{Channel, Received, SharedMemory};
use hodo_roce::{Access, Remote, ScatterEntry};
use std::io;
use std::os::fd::OwnedFd;

/// Messages that are taken from a channel at once.
const TURN: usize = 64;

/// Room for a message of a channel, and for the files that come with it.
#[derive(Debug)]
pub(super) struct Inbox {
    pub(super) bytes: Box<[u8; MESSAGE_BYTES]>,
    pub(super) files: Vec<OwnedFd>,
}

impl Inbox {
    pub(super) fn new() -> Self {
        Inbox { bytes: Box::new([0; MESSAGE_BYTES]), files: Vec::new() }
    }

    /// Receives the next message.
    pub(super) fn receive(&mut self, channel: &Channel) -> io::Result<Received> {
        self.files.clear();
        channel.receive(&mut *self.bytes, &mut self.files)
    }
}

/// Why a request cannot use a region of the far end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// The region was announced, and its announcement is yet to be read.
    NotMapped,
    /// The key, the bounds or the rights are wrong.
    Denied,
}

/// The far end of a channel after a turn of reading from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    /// It is there.
    There,
    /// It has closed the channel, or its process has ended.
    Gone,
}

/// The far end of a queue pair.
#[derive(Debug)]
pub(super) struct Far {
    pub(super) rings: Rings,
    pub(super) table: Table,
    pub(super) regions: Regions,
    /// The code of the time to wait when the far end has no receive posted.
    pub(super) not_ready_timer: u8,
    /// On which the far end sends; `None` once it has left.
    pub(super) channel: Option<Channel>,
    /// The number of the receive that the next message takes.
    next: u32,
}

impl Far {
    /// Maps the memory that came with a hello: of the queue pair, and of the device.
    pub(super) fn map(hello: &Hello, files: &[OwnedFd], channel: Channel) -> io::Result<Self> {
        let [rings, table] = files else { return Err(io::ErrorKind::InvalidData.into()) };
        Ok(Far {
            rings: Rings::map(rings, hello.shape)?,
            table: Table::map(table)?,
            regions: Regions::new(),
            not_ready_timer: hello.not_ready_timer,
            channel: Some(channel),
            next: 0,
        })
    }

    /// Returns whether a receive is posted for the next message.
    #[inline]
    pub(super) fn is_receiver_ready(&self) -> bool {
        self.rings.is_posted(self.next)
    }

    /// Copies the entries of the receive that the next message takes; `None` if none is posted.
    #[inline]
    pub(super) fn receiver(&self, entries: &mut Vec<ScatterEntry>) -> Option<Result<(), Trouble>> {
        self.rings.posted(self.next, entries).map(|posted| posted.map_err(|_| Trouble::Denied))
    }

    /// Completes the next receive, or fails it or the queue pair.
    #[inline]
    pub(super) fn arrive(&mut self, arrival: &Arrival) {
        self.rings.arrive(self.next, arrival);
        if !matches!(arrival, Arrival::Failed) {
            self.next = self.next.wrapping_add(1);
            // Has the processor fetch the descriptor that the next message needs, which the far end may have posted already.
            let _ = self.is_receiver_ready();
        }
    }

    /// Completes the next receive with a message.
    #[inline]
    pub(super) fn deliver(&mut self, message: Arrived) {
        self.arrive(&Arrival::Message(message));
    }

    /// Finds the bytes that a remote address and key name, if the far end allows this.
    #[inline]
    pub(super) fn remote(
        &self,
        remote: Remote,
        length: u32,
        is_allowed: impl FnOnce(&Access) -> bool,
    ) -> Result<Piece, Trouble> {
        if self.table.keys(slot_of(remote.key)).1 != remote.key || remote.key == 0 {
            return Err(Trouble::Denied);
        }
        let region = self.regions.find(remote.key).ok_or(Trouble::NotMapped)?;
        let piece = self.regions.piece(remote.key, remote.address, length);
        piece.filter(|_| is_allowed(&region.access)).ok_or(Trouble::Denied)
    }

    /// Finds the bytes that the first `length` bytes of a receive go to. They are checked by their local keys.
    #[inline]
    pub(super) fn scatter(
        &self,
        entries: &[ScatterEntry],
        length: u32,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), Trouble> {
        let mut left = length;
        for entry in entries.iter().filter(|entry| entry.length > 0) {
            if left == 0 {
                break;
            }
            left = left.saturating_sub(entry.length);
            if self.table.keys(slot_of(entry.key)).0 != entry.key || entry.key == 0 {
                return Err(Trouble::Denied);
            }
            self.regions.find(entry.key).ok_or(Trouble::NotMapped)?;
        }
        if self.regions.resolve(entries, length, true, pieces) { Ok(()) } else { Err(Trouble::Denied) }
    }

    /// Reads what the far end has sent, at most a turn of it.
    pub(super) fn hear(&mut self, inbox: &mut Inbox) -> Result<Heard, Malformed> {
        let Some(channel) = &self.channel else { return Ok(Heard::There) };
        for _ in 0..TURN {
            match inbox.receive(channel).map_err(|_| Malformed)? {
                Received::Nothing => break,
                Received::End => return Ok(Heard::Gone),
                Received::Message(length) => match Message::decode(&inbox.bytes[..length])? {
                    Message::Bell => {}
                    Message::Regions(regions) => map_all(&mut self.regions, regions, &inbox.files)?,
                    Message::Hello(_) => return Err(Malformed),
                },
            }
        }
        Ok(Heard::There)
    }
}

/// Maps the regions that were announced, and unmaps those that are gone.
fn map_all(regions: &mut Regions, message: &[u8], files: &[OwnedFd]) -> Result<(), Malformed> {
    let mut files = files.iter();
    for region in announced(message) {
        let region = region?;
        let slot = usize::from(region.slot);
        let mapped = match region.key {
            0 => None,
            _ => Some(map(&region, files.next().ok_or(Malformed)?).ok_or(Malformed)?),
        };
        regions.set(slot, mapped);
    }
    Ok(())
}

fn map(region: &Announced, file: &OwnedFd) -> Option<Registered> {
    let Announced { slot, key, address, length, access } = *region;
    address.checked_add(length)?;
    if slot_of(key) != usize::from(slot) {
        return None;
    }
    let memory = SharedMemory::map(file, usize::try_from(length).ok()?).ok()?;
    Some(Registered { key, address, access, memory })
}
