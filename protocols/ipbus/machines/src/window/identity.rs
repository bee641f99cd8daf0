//! The owner of a reply. Several hosts may number packets of one device, and the reply that it keeps under a number may be
//! another host's: the header is the same, and so may the transactions be, which clients number alike after an error.

use super::{Slot, Stage, Window};
use crate::wire::operation::{Mode, Operation};
use crate::wire::packet::{HEADER, Header, Kind, Packet, is_header};
use crate::wire::transaction::{self, IDS, Info};
use crate::wire::{Order, WORD};
use hodo_machine::Random;

/// Bits of a transaction's header that hold its number.
const ID_SHIFT: u32 = 16;
const ID: u32 = (IDS as u32 - 1) << ID_SHIFT;

/// The offsets of other hosts that are remembered.
const OTHERS: usize = 8;
/// Replies to other hosts' packets that have been seen when none of them is likely to have one's own offset.
const SEEN: u32 = 64;

/// The numbers that a window writes over those of its callers' first transactions: the packet's number, and an offset that
/// no other host has.
#[derive(Debug)]
pub(super) struct OwnIds {
    random: Random,
    offset: u16,
    /// The offsets of others that were seen last.
    others: [u16; OTHERS],
    /// Replies to others that were seen since the offset was drawn.
    seen: u32,
}

impl OwnIds {
    pub(super) fn new(seed: u64) -> Self {
        let mut ids = OwnIds { random: Random::new(seed), offset: 0, others: [IDS; OTHERS], seen: 0 };
        ids.draw();
        ids
    }

    /// Draws another offset, which nobody is known to have.
    pub(super) fn draw(&mut self) {
        self.seen = 0;
        let before = self.offset;
        while self.offset == before || self.others.contains(&self.offset) {
            self.offset = self.random.below(u64::from(IDS)) as u16;
        }
    }

    /// Takes in the first transaction of a packet of this id that another host sent. Answers whether it had our offset.
    pub(super) fn note_anothers(&mut self, header: u32, packet: u16) -> bool {
        let theirs = offset_of(header, packet);
        if !self.others.contains(&theirs) {
            self.others.rotate_right(1);
            self.others[0] = theirs;
        }
        self.seen += 1;
        let is_ours = theirs == self.offset;
        if is_ours {
            self.draw();
        }
        is_ours
    }

    /// Tells whether the offset that a packet's first transaction has is another host's.
    pub(super) fn is_of_known(&self, header: u32, packet: u16) -> bool {
        self.others.contains(&offset_of(header, packet))
    }

    /// Tells whether enough is known of others to tell their replies from one's own.
    pub(super) fn knows_others(&self) -> bool {
        self.seen >= SEEN
    }

    /// Returns a transaction's header with the number for the packet of this id.
    fn write(&self, header: u32, packet: u16) -> u32 {
        header & !ID | u32::from(self.offset.wrapping_add(packet)) << ID_SHIFT & ID
    }
}

/// Returns how far a transaction's number is from its packet's.
fn offset_of(header: u32, packet: u16) -> u16 {
    ((header & ID) >> ID_SHIFT).wrapping_sub(u32::from(packet)) as u16 % IDS
}

impl Window {
    /// Gives a packet another number.
    pub(super) fn number(&self, slot: &mut Slot, id: u16) {
        let order = slot.order();
        slot.packet[..HEADER].copy_from_slice(&order.bytes_32(Header { id, kind: Kind::Control }.encode()));
        (slot.id, slot.stage, slot.once) = (id, Stage::New, false);
        slot.alone |= id == 1;
        self.mark(id, order, &mut slot.packet);
    }

    /// Writes a number of the window's own into the first transaction of a packet, and returns that transaction's header as
    /// it was.
    #[inline]
    pub(super) fn mark(&self, id: u16, order: Order, packet: &mut [u8]) -> Option<u32> {
        let own = self.own.as_ref()?;
        let first = packet.get_mut(HEADER..)?.first_chunk_mut::<WORD>()?;
        let asked = order.u32(*first);
        *first = order.bytes_32(own.write(asked, id));
        Some(asked)
    }
}

impl Slot {
    /// Returns the header of the first transaction as it was sent.
    #[inline]
    pub(super) fn first_header(&self) -> Option<u32> {
        Some(self.order().u32(*self.packet.get(HEADER..)?.first_chunk()?))
    }

    fn order(&self) -> Order {
        if is_header(Order::Big.u32(self.header)) { Order::Big } else { Order::Little }
    }

    /// Returns the header of a reply's first transaction, with the number that its caller chose.
    #[inline]
    pub(super) fn unmarked(&self, reply: &Packet<'_>) -> Option<[u8; WORD]> {
        let told = reply.order.u32(*reply.body.first_chunk()?);
        Some(reply.order.bytes_32(told & !ID | self.first? & ID))
    }

    /// Returns how many bytes of a reply are this packet's, if it is its reply: each transaction is its request's and has its data, up to
    /// the first that failed. Bytes behind the last are nobody's: a device with a wide data path fills up its packets. What is behind one
    /// that failed cannot be told from its data, and is left.
    #[inline]
    pub(super) fn answered_by(&self, reply: &Packet<'_>) -> Option<usize> {
        let order = self.order();
        if order != reply.order {
            return None;
        }
        let asked = Packet { header: reply.header, order, body: self.body() };
        let mut replies = reply.replies();
        let (mut length, whole) = (HEADER, HEADER + reply.body.len());
        for request in asked.requests() {
            // What nobody can read may be answered by anything.
            let Ok(request) = request else { return Some(whole) };
            let Some(Ok(told)) = replies.next() else { return None };
            length += WORD * (1 + told.data.len());
            // What a device cannot read, it need not repeat.
            if told.header.info == Info::BadHeader {
                return Some(whole);
            }
            if (told.header.id, told.header.kind) != (request.header.id, request.header.kind) {
                return None;
            }
            if told.header.info != Info::Done {
                return Some(whole);
            }
            let words = request.header.kind.reply_words(usize::from(request.header.words)) - 1;
            if told.data.len() != words {
                return None;
            }
        }
        Some(length)
    }

    /// Tells whether it does no harm if it is done twice: it only reads memory.
    pub(super) fn only_reads(&self) -> bool {
        let asked =
            Packet { header: Header { id: self.id, kind: Kind::Control }, order: self.order(), body: self.body() };
        asked.requests().all(|request| {
            request.is_ok_and(|it| matches!(it.operation, Operation::Read { mode: Mode::Incrementing, .. }))
        })
    }

    fn body(&self) -> &[u8] {
        self.packet.get(HEADER..).unwrap_or_default()
    }
}

/// Returns the header of a reply's first transaction, if it can be read.
pub(super) fn first_of(reply: &Packet<'_>) -> Option<u32> {
    let first = reply.order.u32(*reply.body.first_chunk::<WORD>()?);
    let header = transaction::Header::decode(first).ok()?;
    (header.info != Info::BadHeader).then_some(first)
}

/// Tells whether two transactions have the same number and type.
pub(super) const fn is_alike(one: u32, other: u32) -> bool {
    (one ^ other) & 0x0FFF_00F0 == 0
}
