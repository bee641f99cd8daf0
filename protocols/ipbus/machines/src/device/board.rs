use super::DeviceConfig;
use super::bus::{Access, Bus, Carried};
use super::history::History;
use super::register::Failure;
use super::replies::Replies;
use crate::wire::packet::{self, Kind, Packet};
use crate::wire::status::{self, Event, Status, Traffic};
use crate::wire::{Order, Version, WORD, legacy, transaction};
use alloc::vec::Vec;

/// Replies that are kept at most, whatever is asked for.
const BUFFERS_MAX: u32 = 1024;

/// A device as its packets see it, whoever sends them: the bus, which packet is next, and the replies that are kept.
#[derive(Debug)]
pub(crate) struct Board {
    version: Version,
    buffers: u32,
    buffer_bytes: u32,
    next_id: u16,
    replies: Replies,
    history: History,
    counters: DeviceCounters,
    pub(crate) bus: Bus,
}

/// The counters of a device since it was made. A reboot does not change them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeviceCounters {
    /// Control packets that were carried out.
    pub packets: u64,
    /// Transactions of these packets, including those that failed.
    pub transactions: u64,
    /// Transactions that failed.
    pub failed: u64,
    /// Replies that were sent again.
    pub resent: u64,
    /// Resend requests for a reply that is not there any more.
    pub not_found: u64,
    /// Status requests that were answered.
    pub statuses: u64,
    /// Packets that were not for this device, or not now: another protocol, another number.
    pub refused: u64,
    /// Packets that were dropped because they are longer than a buffer, or because too much is unsent.
    pub dropped: u64,
}

impl Board {
    pub(crate) fn new(config: DeviceConfig) -> Self {
        let buffers = config.buffers.min(BUFFERS_MAX);
        let mut board = Board {
            version: config.version,
            buffers,
            buffer_bytes: config.buffer_bytes,
            next_id: 1,
            replies: Replies::new(buffers as usize, config.buffer_bytes as usize),
            history: History::default(),
            counters: DeviceCounters::default(),
            bus: Bus::new(config.registers, config.configuration, config.memory_bytes_max),
        };
        board.history.reset();
        board
    }

    /// Forgets numbers, replies and history; what was written too, where `clear_memory` says so.
    pub(crate) fn reboot(&mut self, clear_memory: bool) {
        self.next_id = 1;
        self.replies.clear();
        self.history.reset();
        if clear_memory {
            self.bus.reset();
        }
    }

    /// Appends the answer to a packet, or nothing where it gets none.
    #[inline]
    pub(crate) fn answer(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        if bytes.len() > self.buffer_bytes as usize {
            return self.drop_packet();
        }
        match self.version {
            Version::V2_0 => self.answer_current(bytes, out),
            Version::V1_3 => self.answer_legacy(bytes, out),
        }
    }

    /// Counts a packet that there is no room for.
    pub(crate) fn drop_packet(&mut self) {
        self.counters.dropped += 1;
        self.history.note(Event::new(Traffic::Control).dropped());
    }

    pub(crate) fn counters(&self) -> DeviceCounters {
        self.counters
    }

    /// Returns the status of the device.
    pub(crate) fn status(&self) -> Status {
        Status {
            buffer_bytes: self.buffer_bytes,
            buffers: self.buffers,
            next_id: self.next_id,
            history: self.history.events,
            received: self.history.received,
            sent: self.history.sent,
        }
    }

    fn answer_current(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let Ok(packet) = Packet::decode(bytes) else { return self.refuse() };
        match packet.header.kind {
            Kind::Control if packet.header.id == 0 || packet.header.id == self.next_id => self.control(&packet, out),
            Kind::Status if packet.header.id == 0 && bytes.len() == status::LENGTH => {
                // As of firmware, the request itself shows in the next status only.
                out.extend_from_slice(&self.status().encode());
                self.counters.statuses += 1;
                self.history.note(Event::new(Traffic::Status));
            }
            Kind::Resend => self.resend(packet.header.id, out),
            Kind::Control | Kind::Status => self.refuse(),
        }
    }

    fn refuse(&mut self) {
        self.counters.refused += 1;
        self.history.note(Event::new(Traffic::Refused));
    }

    fn resend(&mut self, id: u16, out: &mut Vec<u8>) {
        let Some(reply) = self.replies.find(id) else {
            self.counters.not_found += 1;
            return self.history.note(Event::new(Traffic::Resend).dropped());
        };
        out.extend_from_slice(reply);
        self.counters.resent += 1;
        self.history.note(Event::new(Traffic::Resend));
        self.history.sent(packet::Header { id, kind: Kind::Control }.encode());
    }

    fn control(&mut self, packet: &Packet<'_>, out: &mut Vec<u8>) {
        let packet::Header { id, .. } = packet.header;
        let header = packet.header.encode();
        self.counters.packets += 1;
        self.history.note(Event::new(Traffic::Control));
        self.history.received(header);
        let start = out.len();
        packet.order.push(header, out);
        self.transactions(packet, start, out);
        self.history.sent(header);
        if id != 0 {
            self.next_id = packet::following(id);
            self.replies.keep(id, &out[start..]);
        }
    }

    /// Carries out the transactions of a packet up to the first that fails, and appends their replies.
    fn transactions(&mut self, packet: &Packet<'_>, start: usize, out: &mut Vec<u8>) {
        let order = packet.order;
        let mut at = 0;
        for request in packet.requests() {
            self.counters.transactions += 1;
            let room = self.room(start, out);
            let Ok(request) = request else {
                return self.bad_header(word_at(packet.body, at, order).map(transaction::bad_header), order, room, out);
            };
            let header = request.header;
            let words = request.operation.words();
            at += header.kind.request_words(words) * WORD;
            if header.kind.reply_words(words) * WORD > room {
                return self.bad_header(Some(transaction::bad_header(header.encode())), order, room, out);
            }
            let place = out.len();
            order.push(0, out);
            let carried = self.bus.carry_out(&request.operation, self.version, order, out);
            let told = told_by_firmware(carried, header.kind, order, out);
            let reply = header.answered(told as u8, carried.info());
            out[place..place + WORD].copy_from_slice(&order.bytes_32(reply.encode()));
            if carried.failed.is_some() {
                self.counters.failed += 1;
                return;
            }
        }
    }

    /// Ends a reply with the header that says that a transaction could not be read, where there is one and room.
    fn bad_header(&mut self, reply: Option<u32>, order: Order, room: usize, out: &mut Vec<u8>) {
        self.counters.failed += 1;
        if let Some(reply) = reply.filter(|_| room >= WORD) {
            order.push(reply, out);
        }
    }

    /// Bytes that a reply which began at `start` may still have.
    fn room(&self, start: usize, out: &[u8]) -> usize {
        (self.buffer_bytes as usize).saturating_sub(out.len() - start)
    }

    fn answer_legacy(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let Ok(packet) = legacy::Packet::decode(bytes) else { return self.refuse() };
        self.counters.packets += 1;
        self.history.note(Event::new(Traffic::Control));
        let (order, start) = (packet.order, out.len());
        let mut at = 0;
        for request in packet.requests() {
            self.counters.transactions += 1;
            let room = self.room(start, out);
            let Ok(request) = request else {
                return self.bad_header(word_at(bytes, at, order).map(legacy::bad_header), order, room, out);
            };
            let header = request.header;
            let Some(operation) = request.operation else {
                // The byte order, or which addresses are reserved: none.
                at += WORD;
                if room < WORD {
                    return self.bad_header(None, order, room, out);
                }
                order.push(header.answered(0, legacy::Info::Done).encode(), out);
                continue;
            };
            let (kind, words) = (operation.kind(), operation.words());
            at += kind.request_words(words) * WORD;
            if kind.reply_words(words) * WORD > room {
                return self.bad_header(Some(legacy::bad_header(header.encode())), order, room, out);
            }
            let place = out.len();
            order.push(0, out);
            let carried = self.bus.carry_out(&operation, self.version, order, out);
            let reply = legacy_reply(header, kind, carried);
            out[place..place + WORD].copy_from_slice(&order.bytes_32(reply.encode()));
            if carried.failed.is_some() {
                self.counters.failed += 1;
                return;
            }
        }
    }
}

/// Returns the words that firmware tells in the header of a reply of IPbus 2.0: the word at which the bus answered an
/// error counts, and something stands for it where it was read; a read-modify-write counts when it writes.
fn told_by_firmware(carried: Carried, kind: transaction::Kind, order: Order, out: &mut Vec<u8>) -> usize {
    let Some((access, failure)) = carried.failed else { return carried.words };
    if (access, failure) == (Access::Read, Failure::Error) {
        order.push(0, out);
    }
    match kind {
        transaction::Kind::RmwBits | transaction::Kind::RmwSum => {
            usize::from((access, failure) == (Access::Write, Failure::Error))
        }
        _ => carried.words + usize::from(failure == Failure::Error),
    }
}

/// Returns the header of a reply; a write that was done tells no words.
fn legacy_reply(header: legacy::Header, kind: transaction::Kind, carried: Carried) -> legacy::Header {
    let writes = matches!(kind, transaction::Kind::Write | transaction::Kind::FifoWrite);
    let words = carried.words as u16;
    match carried.failed {
        None if writes => header.answered(0, legacy::Info::Done),
        None => header.answered(words, legacy::Info::Done),
        Some(_) if words > 0 => header.answered(words, legacy::Info::Partial),
        Some(_) => header.answered(0, legacy::Info::Failed),
    }
}

/// Returns the word at an offset of a packet, if it is whole.
fn word_at(bytes: &[u8], at: usize, order: Order) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|word| order.u32(*word))
}

#[cfg(test)]
mod tests;
