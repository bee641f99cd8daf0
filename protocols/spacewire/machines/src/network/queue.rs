//! The queues of a node's host: bytes in one piece, and the packets that they make up.
use alloc::vec::Vec;

use super::ring::Ring;
use crate::EndOfPacket;
use crate::time::Picos;

/// A packet that a node received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// How it ended, and when.
    pub header: PacketHeader,
}

/// The length of a received packet, how it ended, and its times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketHeader {
    /// The length in bytes.
    pub length: usize,
    /// How it ended.
    pub end: EndOfPacket,
    /// When the last bit of its first character arrived.
    pub began: Picos,
    /// When the last bit of its end arrived, or the error that cut it.
    pub ended: Picos,
}

/// Bytes in one piece, added at the back and taken from the front.
#[derive(Debug, Default)]
pub(super) struct Bytes {
    buffer: Vec<u8>,
    front: usize,
}

impl Bytes {
    pub(super) fn as_slice(&self) -> &[u8] {
        &self.buffer[self.front..]
    }

    fn len(&self) -> usize {
        self.buffer.len() - self.front
    }

    #[inline]
    pub(super) fn push(&mut self, bytes: &[u8]) {
        // The gap at the front is closed when it is the larger part, so that each byte moves once at the most.
        if self.front > self.buffer.len() / 2 && self.buffer.len() + bytes.len() > self.buffer.capacity() {
            self.buffer.drain(..self.front);
            self.front = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    #[inline]
    pub(super) fn take(&mut self, n: usize) {
        self.front += n;
        if self.front == self.buffer.len() {
            self.clear();
        }
    }

    pub(super) fn clear(&mut self) {
        self.buffer.clear();
        self.front = 0;
    }
}

/// Packets that wait to be sent.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    bytes: Bytes,
    packets: Ring<(usize, EndOfPacket)>,
    /// Bytes of the front packet that have not been sent.
    rest: usize,
    /// Whether anything of the front packet has been sent.
    begun: bool,
}

impl Outgoing {
    pub(super) fn packets(&self) -> usize {
        self.packets.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    #[inline]
    pub(super) fn push(&mut self, bytes: &[u8], end: EndOfPacket) {
        self.bytes.push(bytes);
        self.packets.push_back((bytes.len(), end));
        if self.packets.len() == 1 {
            self.rest = bytes.len();
        }
    }

    /// Returns the bytes of the front packet that have not been sent, and its end.
    #[inline]
    pub(super) fn front(&self) -> Option<(&[u8], EndOfPacket)> {
        let (_, end) = self.packets.front()?;
        Some((&self.bytes.as_slice()[..self.rest], *end))
    }

    /// Takes note that `n` bytes of the front packet have been sent.
    pub(super) fn sent(&mut self, n: usize) {
        self.bytes.take(n);
        self.rest -= n;
        self.begun |= n > 0;
    }

    /// Removes the front packet with all that is left of it.
    #[inline]
    pub(super) fn finish(&mut self) {
        self.bytes.take(self.rest);
        self.packets.pop_front();
        self.rest = self.packets.front().map_or(0, |(length, _)| *length);
        self.begun = false;
    }

    /// Tells whether a part of the front packet has been sent.
    pub(super) fn begun(&self) -> bool {
        self.begun
    }
}

/// Packets that have arrived, and the one that arrives.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    bytes: Bytes,
    packets: Ring<PacketHeader>,
    /// Bytes of the packet that arrives.
    open: usize,
    began: Option<Picos>,
}

impl Incoming {
    pub(super) fn packets(&self) -> usize {
        self.packets.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Tells whether a packet has begun to arrive.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.began.is_some()
    }

    pub(super) fn push(&mut self, bytes: &[u8], now: Picos) {
        self.began.get_or_insert(now);
        self.bytes.push(bytes);
        self.open += bytes.len();
    }

    /// Adds bytes that are only on their way, without a beginning.
    #[inline]
    pub(super) fn append(&mut self, bytes: &[u8]) {
        self.bytes.push(bytes);
        self.open += bytes.len();
    }

    /// Takes note of when the packet began.
    #[inline]
    pub(super) fn begin(&mut self, now: Picos) {
        self.began.get_or_insert(now);
    }

    /// Takes the last `n` bytes back, which have not arrived yet.
    pub(super) fn take_back(&mut self, n: usize) -> Vec<u8> {
        self.open -= n;
        if self.open == 0 {
            self.began = None;
        }
        self.bytes.buffer.split_off(self.bytes.buffer.len() - n)
    }

    /// Takes the last end of a packet back, which has not arrived yet.
    pub(super) fn reopen(&mut self) {
        if let Some(header) = self.packets.pop_back() {
            (self.open, self.began) = (header.length, Some(header.began));
        }
    }

    /// Bytes of the packet that arrives, if there is one.
    pub(super) fn open(&self) -> Option<u64> {
        self.began.map(|_| self.open as u64)
    }

    /// Ends the packet that arrives. Returns its length.
    // A header that is returned goes through memory, in other pieces than it is read in again: that takes longer than all the rest.
    #[inline]
    pub(super) fn end(&mut self, end: EndOfPacket, now: Picos) -> usize {
        let began = self.began.take().unwrap_or(now);
        let length = core::mem::take(&mut self.open);
        self.packets.push_back(PacketHeader { length, end, began, ended: now });
        length
    }

    #[inline]
    pub(super) fn pop(&mut self, into: &mut Vec<u8>) -> Option<PacketHeader> {
        let header = self.packets.pop_front()?;
        into.extend_from_slice(&self.bytes.as_slice()[..header.length]);
        self.bytes.take(header.length);
        Some(header)
    }

    #[cfg(test)]
    pub(super) fn nth(&self, number: usize) -> Option<&PacketHeader> {
        self.packets.get(number)
    }

    pub(super) fn front(&self) -> Option<(&[u8], PacketHeader)> {
        let header = self.packets.front()?;
        Some((&self.bytes.as_slice()[..header.length], *header))
    }
}
