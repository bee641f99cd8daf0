use crate::wire::transaction::Kind;
use crate::wire::{Version, WORD, legacy};

/// Bytes that a packet and its reply may have, or have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Bytes of the request.
    pub request: usize,
    /// Bytes of the reply.
    pub reply: usize,
}

/// A packet that is being put together: how full it and its reply are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Packing {
    version: Version,
    /// Words of the request and of its reply.
    request: usize,
    reply: usize,
}

impl Packing {
    /// Creates a packet without transactions: its header, or the one that says the byte order.
    pub(super) const fn new(version: Version) -> Self {
        Packing { version, request: 1, reply: 1 }
    }

    /// Tells whether it has a transaction.
    pub(super) const fn is_begun(&self) -> bool {
        self.request > 1
    }

    /// Returns how many of `left` words fit as the next transaction; `None` if none does.
    #[inline]
    pub(super) fn fit(&self, kind: Kind, left: u32, room: Room) -> Option<u32> {
        if self.version == Version::V1_3 && legacy::Kind::of(kind).is_none() {
            return None;
        }
        let request = (room.request / WORD).checked_sub(self.request + kind.request_words(0))?;
        let reply = (room.reply / WORD).checked_sub(self.reply + kind.reply_words(0))?;
        let most = match kind {
            Kind::RmwBits | Kind::RmwSum => 1,
            Kind::Read | Kind::FifoRead | Kind::ConfigurationRead => reply,
            Kind::Write | Kind::FifoWrite | Kind::ConfigurationWrite => request,
        };
        let words = left.min(most.min(self.version.words_max()) as u32);
        (words > 0 || left == 0).then_some(words)
    }

    /// Appends a transaction of so many words.
    #[inline]
    pub(super) fn append(&mut self, kind: Kind, words: u32) {
        self.request += kind.request_words(words as usize);
        self.reply += kind.reply_words(words as usize);
    }

    /// Returns the bytes on the wire.
    const fn bytes(&self) -> Room {
        let (mut request, mut reply) = (self.request * WORD, self.reply * WORD);
        if let Version::V1_3 = self.version {
            // What fills it up is answered too.
            let filling = legacy::REQUEST_MIN.saturating_sub(request);
            request += filling;
            reply += filling;
        }
        Room { request, reply }
    }
}

/// Returns the packets that these operations, each with its words, make one after the other, and the replies to them:
/// as a [`Client`](super::Client) sends them when they are flushed together.
///
/// ```
/// use hodo_ipbus::client::{Room, packets};
/// use hodo_ipbus::wire::{PAYLOAD, Version, transaction::Kind};
/// let room = Room { request: PAYLOAD, reply: PAYLOAD };
/// let read = packets(Version::V2_0, room, [(Kind::Read, 347)]);
/// assert_eq!(read.collect::<Vec<_>>(), [Room { request: 20, reply: 1400 }]);
/// ```
pub fn packets(
    version: Version,
    room: Room,
    operations: impl IntoIterator<Item = (Kind, u32)>,
) -> impl Iterator<Item = Room> {
    let mut operations = operations.into_iter();
    let mut next = operations.next();
    core::iter::from_fn(move || {
        let mut packing = Packing::new(version);
        while let Some((kind, left)) = next {
            let Some(words) = packing.fit(kind, left, room) else { break };
            packing.append(kind, words);
            next = if words < left { Some((kind, left - words)) } else { operations.next() };
        }
        packing.is_begun().then(|| packing.bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::PAYLOAD;
    use alloc::vec::Vec;

    const ROOM: Room = Room { request: PAYLOAD, reply: PAYLOAD };

    fn of(version: Version, operations: &[(Kind, u32)]) -> Vec<(usize, usize)> {
        let packets = packets(version, ROOM, operations.iter().copied());
        packets.map(|packet| (packet.request, packet.reply)).collect()
    }

    #[test]
    fn a_long_block_fills_its_packets() {
        assert_eq!(of(Version::V2_0, &[(Kind::Read, 700)]), [(20, 1400), (20, 1400), (12, 4 + 4 + 24)]);
        assert_eq!(of(Version::V2_0, &[(Kind::Write, 345)]), [(1400, 12)]);
        assert_eq!(of(Version::V1_3, &[(Kind::Read, 348)]), [(32, 1420)], "what fills up is answered");
    }

    #[test]
    fn operations_share_packets() {
        assert_eq!(of(Version::V2_0, &[(Kind::Read, 1); 100]), [(804, 804)]);
        assert_eq!(of(Version::V2_0, &[(Kind::Read, 1); 175]), [(1396, 1396), (12, 12)]);
        assert_eq!(of(Version::V2_0, &[(Kind::Write, 1), (Kind::Read, 1), (Kind::RmwSum, 1)]), [(36, 24)]);
        assert_eq!(of(Version::V2_0, &[]), []);
        assert_eq!(of(Version::V1_3, &[(Kind::ConfigurationRead, 1)]), [], "there is none");
    }
}
