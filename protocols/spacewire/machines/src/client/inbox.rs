use super::Receiver;
use crate::EndOfPacket;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The bounds of an inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InboxSettings {
    /// Packets beyond which the bridge is held back.
    pub packets: usize,
    /// Bytes beyond which the bridge is held back.
    pub bytes: usize,
}

impl Default for InboxSettings {
    fn default() -> Self {
        InboxSettings { packets: 65_536, bytes: 16 << 20 }
    }
}

/// Packets and time-codes that have arrived.
///
/// What one receive brings beyond the bounds is still taken.
#[derive(Debug, Default)]
pub struct Inbox {
    settings: InboxSettings,
    bytes: Vec<u8>,
    /// Bytes at the front that have been taken.
    taken: usize,
    packets: VecDeque<(usize, EndOfPacket)>,
    time_codes: VecDeque<u8>,
    discards: bool,
}

/// Time-codes that are kept: one round.
const TIME_CODES: usize = 64;

impl Inbox {
    /// Creates an inbox.
    #[must_use]
    pub fn new(settings: InboxSettings) -> Self {
        Inbox { settings, ..Inbox::default() }
    }

    /// Returns the next packet, without taking it.
    #[must_use]
    #[inline]
    pub fn front(&self) -> Option<(&[u8], EndOfPacket)> {
        let (length, end) = self.packets.front()?;
        Some((&self.bytes[self.taken..self.taken + length], *end))
    }

    /// Removes the next packet. Returns whether there was one.
    #[inline]
    pub fn pop(&mut self) -> bool {
        let Some((length, _)) = self.packets.pop_front() else { return false };
        self.taken += length;
        if self.packets.is_empty() {
            self.bytes.clear();
            self.taken = 0;
        }
        true
    }

    /// Takes the next time-code. The last 64 are kept.
    pub fn time_code(&mut self) -> Option<u8> {
        self.time_codes.pop_front()
    }

    /// Returns whether a time-code waits.
    #[must_use]
    pub fn has_time_codes(&self) -> bool {
        !self.time_codes.is_empty()
    }

    /// Returns how many packets wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Discards what waits, and everything that arrives from now on.
    pub fn discard(&mut self) {
        *self = Inbox { discards: true, ..Inbox::new(self.settings) };
    }

    /// Returns whether no packet waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }
}

impl Receiver for Inbox {
    #[inline]
    fn packet(&mut self, data: &[u8], end: EndOfPacket) {
        if self.discards {
            return;
        }
        // The gap at the front is closed when it is the larger part, so that each byte moves once at the most.
        if self.taken > self.bytes.len() / 2 && self.bytes.len() + data.len() > self.bytes.capacity() {
            self.bytes.drain(..self.taken);
            self.taken = 0;
        }
        self.bytes.extend_from_slice(data);
        self.packets.push_back((data.len(), end));
    }

    fn time_code(&mut self, code: u8) {
        if self.discards {
            return;
        }
        if self.time_codes.len() == TIME_CODES {
            self.time_codes.pop_front();
        }
        self.time_codes.push_back(code);
    }

    #[inline]
    fn has_room(&self) -> bool {
        self.packets.len() < self.settings.packets && self.bytes.len() - self.taken < self.settings.bytes
    }
}
