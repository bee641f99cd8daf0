//! The status packet of IPbus 2.0: 16 words, big-endian, in either direction.
//!
//! | word | field |
//! |---|---|
//! | 0 | packet header `200000F1` |
//! | 1 | bytes of a buffer: no packet is longer |
//! | 2 | buffers: replies that can be asked for again, and packets that may be in flight |
//! | 3 | header of the next control packet that is accepted, `20 II II F0` |
//! | 4..8 | the last 16 things that arrived, oldest first, a byte each: [`Event`] |
//! | 8..12 | headers of the last 4 control packets received, oldest first |
//! | 12..16 | headers of the last 4 control packets sent, oldest first |
//!
//! A request has the same length, and zeros behind the header.

use super::packet::{self, Packet};
use super::{Order, Reader, WORD};
use crate::Error;
use core::fmt;
use hodo_machine::codes;

/// Bytes of a status packet. The firmware answers no request of another length.
pub const LENGTH: usize = 16 * WORD;
/// Events that a device remembers.
pub const EVENTS: usize = 16;
/// Control packet headers that a device remembers, of each direction.
pub const HEADERS: usize = 4;

const HEADER: packet::Header = packet::Header { id: 0, kind: packet::Kind::Status };

/// The packet that asks for a device's status.
pub const REQUEST: [u8; LENGTH] = {
    let [a, b, c, d] = Order::Big.bytes_32(HEADER.encode());
    let mut bytes = [0; LENGTH];
    (bytes[0], bytes[1], bytes[2], bytes[3]) = (a, b, c, d);
    bytes
};

/// The status of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Status {
    /// Bytes of a buffer: no packet is longer.
    pub buffer_bytes: u32,
    /// Replies that can be asked for again, and packets that may be in flight.
    pub buffers: u32,
    /// The id that the next control packet must have; one of id 0 is always accepted.
    pub next_id: u16,
    /// The last arrivals, oldest first.
    pub history: [Event; EVENTS],
    /// Headers of the last control packets received, oldest first; 0 where there was none.
    pub received: [u32; HEADERS],
    /// Headers of the last control packets sent, oldest first; 0 where there was none.
    pub sent: [u32; HEADERS],
}

impl Status {
    /// Reads a device's status packet.
    ///
    /// # Errors
    /// An [`Error`] if it is no status packet of the right length.
    pub fn decode(bytes: &[u8]) -> Result<Status, Error> {
        let packet = Packet::decode(bytes)?;
        if packet.header.kind != packet::Kind::Status {
            return Err(Error::PacketKind { header: packet.header.encode() });
        }
        if bytes.len() != LENGTH {
            return Err(Error::Length { due: LENGTH, came: bytes.len() });
        }
        let mut words = Reader::new(packet.body, packet.order);
        let (buffer_bytes, buffers) = (words.word()?, words.word()?);
        let next = words.word()?;
        let packet::Header { id: next_id, kind: packet::Kind::Control } = packet::Header::decode(next)? else {
            return Err(Error::PacketKind { header: next });
        };
        let mut status = Status { buffer_bytes, buffers, next_id, ..Status::default() };
        for (event, byte) in status.history.iter_mut().zip(words.words(EVENTS / WORD)?.bytes()) {
            *event = Event(*byte);
        }
        words.words(HEADERS)?.read(&mut status.received);
        words.words(HEADERS)?.read(&mut status.sent);
        Ok(status)
    }

    /// Encodes the reply of a device.
    #[must_use]
    pub fn encode(&self) -> [u8; LENGTH] {
        let mut bytes = REQUEST;
        let next = packet::Header { id: self.next_id, kind: packet::Kind::Control };
        Order::Big.write(&[self.buffer_bytes, self.buffers, next.encode()], &mut bytes[WORD..]);
        for (byte, event) in bytes[4 * WORD..].iter_mut().zip(self.history) {
            *byte = event.0;
        }
        Order::Big.write(&self.received, &mut bytes[8 * WORD..]);
        Order::Big.write(&self.sent, &mut bytes[12 * WORD..]);
        bytes
    }
}

/// One thing that arrived at a device, as the byte that its history holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Event(pub u8);

codes! {
    /// An arrival at a device.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Traffic: u8 {
        /// Nothing yet.
        Nothing = 0x0,
        /// The device was reset.
        Reset = 0x1,
        /// A control packet.
        Control = 0x2,
        /// A status request.
        Status = 0x3,
        /// A resend request.
        Resend = 0x4,
        /// A packet of IPbus that was refused: another type, or an id that was not the next.
        Refused = 0x5,
        /// An ICMP echo request.
        Ping = 0x6,
        /// An ARP request.
        Arp = 0x7,
        /// An assignment of its address.
        AddressAssignment = 0x8,
        /// One of the six events of a device with an asynchronous memory.
        Asynchronous = 0x9,
        /// Something else.
        Other = 0xF,
    }
}

impl Event {
    const DROPPED: u8 = 0x40;
    const MAC_ERROR: u8 = 0x80;

    /// Creates an arrival that was taken.
    #[must_use]
    pub const fn new(traffic: Traffic) -> Self {
        Event(traffic.code())
    }

    /// Marks the arrival as dropped for want of a buffer.
    #[must_use]
    pub const fn dropped(self) -> Self {
        Event(self.0 | Self::DROPPED)
    }

    /// Returns the kind of arrival.
    #[must_use]
    pub const fn traffic(self) -> Traffic {
        match Traffic::from_code(self.0 & 0xF) {
            Some(traffic) => traffic,
            None => Traffic::Asynchronous,
        }
    }

    /// Tells whether it was dropped.
    #[must_use]
    pub const fn is_dropped(self) -> bool {
        self.0 & Self::DROPPED != 0
    }

    /// Tells whether the Ethernet frame was damaged.
    #[must_use]
    pub const fn is_mac_error(self) -> bool {
        self.0 & Self::MAC_ERROR != 0
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.traffic() {
            Traffic::Nothing => "nothing",
            Traffic::Reset => "reset",
            Traffic::Control => "control",
            Traffic::Status => "status",
            Traffic::Resend => "resend",
            Traffic::Refused => "refused",
            Traffic::Ping => "ping",
            Traffic::Arp => "ARP",
            Traffic::AddressAssignment => "address assignment",
            Traffic::Asynchronous => "asynchronous memory",
            Traffic::Other => "other",
        })?;
        f.write_str(if self.is_dropped() { ", dropped" } else { "" })?;
        f.write_str(if self.is_mac_error() { ", damaged" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Laid out by hand after the table above, with the values of firmware as built by default.
    #[rustfmt::skip]
    const REPLY: [u8; LENGTH] = [
        0x20, 0x00, 0x00, 0xF1, 0x00, 0x00, 0x07, 0xF8, 0x00, 0x00, 0x00, 0x10, 0x20, 0x01, 0x03, 0xF0,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x07, 0x06, 0x02, 0x02, 0x45, 0x03,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x20, 0x01, 0x01, 0xF0, 0x20, 0x01, 0x02, 0xF0,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x20, 0x01, 0x01, 0xF0, 0x20, 0x01, 0x02, 0xF0,
    ];

    #[test]
    fn a_reply_is_these_bytes() {
        let status = Status::decode(&REPLY).expect("it is a status packet");
        assert_eq!((status.buffer_bytes, status.buffers, status.next_id), (2040, 16, 0x0103));
        let history: [Traffic; EVENTS] = status.history.map(Event::traffic);
        assert_eq!(
            history[9..],
            [
                Traffic::Reset,
                Traffic::Arp,
                Traffic::Ping,
                Traffic::Control,
                Traffic::Control,
                Traffic::Refused,
                Traffic::Status
            ]
        );
        assert!(status.history[14].is_dropped() && !status.history[13].is_dropped());
        assert_eq!(status.history[14], Event::new(Traffic::Refused).dropped());
        assert_eq!(alloc::format!("{}", status.history[14]), "refused, dropped");
        assert_eq!(status.received, [0, 0, 0x2001_01F0, 0x2001_02F0]);
        assert_eq!(status.encode(), REPLY);
    }

    #[test]
    fn a_request_is_a_header_and_zeros() {
        assert_eq!(REQUEST[..4], [0x20, 0, 0, 0xF1]);
        assert!(REQUEST[4..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn what_is_no_status_is_refused() {
        assert_eq!(Status::decode(&REPLY[..60]), Err(Error::Length { due: 64, came: 60 }));
        let mut control = REPLY;
        control[3] = 0xF0;
        assert_eq!(Status::decode(&control), Err(Error::PacketKind { header: 0x2000_00F0 }));
        let mut next = REPLY;
        next[12] = 0x21;
        assert_eq!(Status::decode(&next), Err(Error::NotIpbus { first: 0x2101_03F0 }));
    }

    #[test]
    fn any_bytes_decode_to_themselves_or_not_at_all() {
        let mut random = hodo_sim::Random::new(3);
        for _ in 0..20_000 {
            let mut bytes = REPLY;
            for _ in 0..random.below(8) {
                bytes[random.below(64) as usize] = random.bits() as u8;
            }
            if let Ok(status) = Status::decode(&bytes) {
                // The id of the header itself has no meaning.
                assert_eq!(status.encode()[4..], bytes[4..]);
            }
        }
    }
}
