//! N-chars of one length on their way, back to back.
use crate::EndOfPacket;
use crate::character::Code;

/// N-chars of one length on their way, back to back.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run<K> {
    /// When the last bit of the first one arrives.
    pub(super) arrive: u64,
    pub(super) count: u64,
    /// How long each takes.
    pub(super) length: u64,
    pub(super) kind: K,
}

impl<K> Run<K> {
    #[inline]
    pub(super) fn last(&self) -> u64 {
        self.arrive + (self.count - 1) * self.length
    }

    /// Returns how many have arrived at `now`.
    #[inline]
    pub(super) fn arrived(&self, now: u64) -> u64 {
        if now < self.arrive { 0 } else { ((now - self.arrive) / self.length + 1).min(self.count) }
    }
}

/// Returns how a packet ends with an N-char that is not data.
#[inline]
pub(super) fn end_of_packet(code: Code) -> EndOfPacket {
    if code == Code::Eop { EndOfPacket::Eop } else { EndOfPacket::Eep }
}
