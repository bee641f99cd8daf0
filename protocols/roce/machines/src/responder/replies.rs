//! The replies that are due, in the order of their requests.

use super::Responder;
use crate::Psn;
use crate::memory::{Memory, Use};
use crate::packet::Writer;
use crate::wire::{AckHeader, BaseHeader, Extended, NakCode, Opcode, Position, Syndrome};

/// A reply that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reply {
    /// An acknowledgement, of either kind.
    Ack { psn: Psn, syndrome: Syndrome, messages: u32 },
    /// The value that an atomic operation found.
    Atomic { psn: Psn, original: u64, messages: u32 },
    /// Data that was asked for, of which `next` packets are sent.
    Read(Reading),
}

/// Data that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) psn: Psn,
    pub(super) next: u32,
    pub(super) packets: u32,
    pub(super) key: u32,
    pub(super) address: u64,
    pub(super) length: u32,
    pub(super) messages: u32,
}

/// The replies beside those to reads that may be due.
const REPLIES_MAX: usize = 64;

impl Responder {
    /// Returns whether replies are due.
    #[inline]
    pub(crate) fn has_replies(&self) -> bool {
        !self.replies.is_empty()
    }

    /// Acknowledges everything up to `psn`: together with what is to be acknowledged anyhow.
    #[inline]
    pub(super) fn acknowledge(&mut self, psn: Psn) {
        let ack = Reply::Ack { psn, syndrome: Syndrome::ACK, messages: self.messages };
        match self.replies.back_mut() {
            Some(last @ Reply::Ack { syndrome: Syndrome::Ack(_), .. }) => *last = ack,
            _ => self.reply(ack),
        }
    }

    /// Refuses the request that is expected.
    pub(super) fn refuse(&mut self, syndrome: Syndrome) {
        self.has_refused = true;
        self.naks += u64::from(matches!(syndrome, Syndrome::Nak(_)));
        self.reply(Reply::Ack { psn: self.expected, syndrome, messages: self.messages });
    }

    /// Adds a reply. Beyond the bound it is left out, as if it had been lost.
    pub(super) fn reply(&mut self, reply: Reply) {
        if self.replies.len() < REPLIES_MAX + self.reads_max {
            self.replies.push_back(reply);
        }
    }

    /// Adds data to be sent. If it is asked for again before all of it is sent, it begins anew, in front of the same replies.
    pub(super) fn read(&mut self, reading: Reading) {
        let is_same = |reply: &&mut Reply| {
            matches!(reply, Reply::Read(other)
                if (0..other.packets as i32).contains(&reading.psn.since(other.psn)))
        };
        if let Some(place) = self.replies.iter_mut().find(is_same) {
            *place = Reply::Read(reading);
            return;
        }
        let reads = self.replies.iter().filter(|reply| matches!(reply, Reply::Read(_))).count();
        if reads < self.reads_max.max(1) {
            self.reply(Reply::Read(reading));
        }
    }

    /// Writes the next reply. Returns its length; `None` if none is due.
    #[inline]
    pub(crate) fn write_next(&mut self, memory: &Memory, writer: &mut Writer<'_>) -> Option<usize> {
        let (opcode, psn, extended) = match *self.replies.front()? {
            Reply::Ack { psn, syndrome, messages } => {
                (Opcode::Acknowledge, psn, Extended::Ack(AckHeader { syndrome, messages }))
            }
            Reply::Atomic { psn, original, messages } => {
                let ack = AckHeader { syndrome: Syndrome::ACK, messages };
                (Opcode::AtomicAcknowledge, psn, Extended::AtomicAck(ack, original))
            }
            Reply::Read(reading) => return Some(self.write_data(reading, memory, writer)),
        };
        self.replies.pop_front();
        Some(writer.write(&BaseHeader::new(opcode, self.to, psn), &extended, 0, |_| {}))
    }

    /// Writes the next packet of data.
    fn write_data(&mut self, reading: Reading, memory: &Memory, writer: &mut Writer<'_>) -> usize {
        let Reading { psn, next, packets, key, address, length, messages } = reading;
        let offset = u64::from(next) * u64::from(self.mtu.bytes());
        let count = (u64::from(length) - offset).min(u64::from(self.mtu.bytes())) as usize;
        let ack = |syndrome| Extended::Ack(AckHeader { syndrome, messages });
        // The region may have gone since the request was accepted.
        let bytes = match memory.get(key, address.wrapping_add(offset), count, Use::RemoteRead) {
            Ok(bytes) => bytes,
            Err(_) if count == 0 => &[],
            Err(_) => {
                self.replies.pop_front();
                self.naks += 1;
                let base = BaseHeader::new(Opcode::Acknowledge, self.to, psn.after(next));
                return writer.write(&base, &ack(Syndrome::Nak(NakCode::RemoteAccess)), 0, |_| {});
            }
        };
        let (opcode, extended) = match Position::of(next, packets) {
            Position::First => (Opcode::ReadResponseFirst, ack(Syndrome::ACK)),
            Position::Middle => (Opcode::ReadResponseMiddle, Extended::None),
            Position::Last => (Opcode::ReadResponseLast, ack(Syndrome::ACK)),
            Position::Only => (Opcode::ReadResponseOnly, ack(Syndrome::ACK)),
        };
        match self.replies.front_mut() {
            Some(Reply::Read(reading)) if next + 1 < packets => reading.next += 1,
            _ => {
                self.replies.pop_front();
            }
        }
        let base = BaseHeader::new(opcode, self.to, psn.after(next));
        writer.write(&base, &extended, count, |take| take(bytes))
    }
}
