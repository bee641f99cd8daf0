//! The owner of a reply. Several hosts may number packets of one device, and the reply that it keeps under a number may be
//! another host's: the header is the same, and so may the transactions be, which clients number alike after an error.

use super::{Slot, Stage, Window};
use crate::wire::packet::{HEADER, Header, Kind, Packet, is_header};
use crate::wire::transaction::{IDS, Info};
use crate::wire::{Order, WORD};
use hodo_machine::Random;

/// Bits of a transaction's header that hold its number.
const ID_SHIFT: u32 = 16;
const ID: u32 = (IDS as u32 - 1) << ID_SHIFT;

/// The numbers that a window writes over those of its callers' first transactions: the packet's number, and an offset that
/// no other host has but by chance.
#[derive(Debug)]
pub(super) struct OwnIds {
    random: Random,
    offset: u16,
}

impl OwnIds {
    pub(super) fn new(seed: u64) -> Self {
        let mut ids = OwnIds { random: Random::new(seed), offset: 0 };
        ids.renew();
        ids
    }

    /// Draws another offset: replies from before a restart have the old one.
    pub(super) fn renew(&mut self) {
        self.offset = self.random.below(u64::from(IDS)) as u16;
    }

    /// Draws another offset if a packet of this id, which another host sent, has the number that ours would have.
    pub(super) fn differ_from(&mut self, header: u32, packet: u16) {
        if self.write(header, packet) == header {
            let step = 1 + self.random.below(u64::from(IDS) - 1) as u16;
            self.offset = self.offset.wrapping_add(step);
        }
    }

    /// Returns a transaction's header with the number for the packet of this id.
    fn write(&self, header: u32, packet: u16) -> u32 {
        header & !ID | u32::from(self.offset.wrapping_add(packet)) << ID_SHIFT & ID
    }
}

impl Window {
    /// Gives a packet another number.
    pub(super) fn number(&self, slot: &mut Slot, id: u16) {
        let order = slot.order();
        slot.packet[..HEADER].copy_from_slice(&order.bytes_32(Header { id, kind: Kind::Control }.encode()));
        (slot.id, slot.stage, slot.once) = (id, Stage::New, false);
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

    /// Tells whether a reply is this packet's: each transaction is its request's and has its data, up to the first that
    /// failed, and nothing is behind them.
    #[inline]
    pub(super) fn is_answered_by(&self, reply: &Packet<'_>) -> bool {
        let order = self.order();
        let body = self.packet.get(HEADER..).unwrap_or_default();
        if order != reply.order {
            return false;
        }
        let asked = Packet { header: reply.header, order, body };
        let mut replies = reply.replies();
        for request in asked.requests() {
            // What nobody can read may be answered by anything.
            let Ok(request) = request else { return true };
            let Some(Ok(told)) = replies.next() else { return false };
            // What a device cannot read, it need not repeat.
            if told.header.info == Info::BadHeader {
                return true;
            }
            if (told.header.id, told.header.kind) != (request.header.id, request.header.kind) {
                return false;
            }
            if told.header.info != Info::Done {
                return true;
            }
            let words = request.header.kind.reply_words(usize::from(request.header.words)) - 1;
            if told.data.len() != words {
                return false;
            }
        }
        replies.next().is_none()
    }
}
