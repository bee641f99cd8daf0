//! Content of the hub's chunks, all fields big-endian; packets stay in their client's byte order.
//!
//! | request | bytes | reply | bytes |
//! |---|---|---|---|
//! | | | bytes that follow in this entry, `8 + packet` | 4 |
//! | address of the device | 4 | address of the device | 4 |
//! | its UDP port | 2 | its UDP port | 2 |
//! | words of the packet | 2 | [`Code`] | 2 |
//! | IPbus packet | | IPbus packet; none where there is an error | |
//!
//! A request chunk holds one or more entries, and its reply chunk as many, in the same order.

use super::{Order, Reader, WORD, chunk};
use crate::Error;
use alloc::vec::Vec;
use core::fmt;
use core::net::{Ipv4Addr, SocketAddrV4};
use hodo_machine::codes;

/// Bytes of a request entry in front of its packet.
pub const REQUEST_HEADER: usize = 8;
/// Bytes of a reply entry in front of its packet.
pub const REPLY_HEADER: usize = 12;

/// Bytes of a reply entry that its count counts, beside the packet.
const COUNTED: usize = REPLY_HEADER - 4;

/// The least request chunk: one entry with a packet of one word, behind the chunk's length.
pub const REQUEST_CHUNK_MIN: usize = chunk::HEADER + REQUEST_HEADER + WORD;

/// A packet for a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// The device.
    pub target: SocketAddrV4,
    /// The packet, of whole words.
    pub packet: &'a [u8],
}

impl Request<'_> {
    /// Appends it to a chunk.
    ///
    /// # Panics
    /// Where the packet has 65536 words or more.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let words = u16::try_from(self.packet.len() / WORD).expect("a packet fits into a datagram");
        out.extend_from_slice(&target_bytes(self.target));
        out.extend_from_slice(&words.to_be_bytes());
        out.extend_from_slice(self.packet);
    }
}

/// A device's answer, or why there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply<'a> {
    /// The device.
    pub target: SocketAddrV4,
    /// Whether it answered.
    pub code: Code,
    /// The packet, in the client's byte order.
    pub packet: &'a [u8],
}

impl Reply<'_> {
    /// Appends it to a chunk.
    ///
    /// # Panics
    /// Where the packet has 4 GiB.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.header());
        out.extend_from_slice(self.packet);
    }

    /// Returns the bytes in front of the packet.
    ///
    /// # Panics
    /// Where the packet has 4 GiB.
    #[must_use]
    pub fn header(&self) -> [u8; REPLY_HEADER] {
        let counted = u32::try_from(COUNTED + self.packet.len()).expect("a packet fits into a datagram");
        let ([n0, n1, n2, n3], [a, b, c, d, p0, p1]) = (counted.to_be_bytes(), target_bytes(self.target));
        let [c0, c1] = self.code.code().to_be_bytes();
        [n0, n1, n2, n3, a, b, c, d, p0, p1, c0, c1]
    }
}

fn target_bytes(target: SocketAddrV4) -> [u8; 6] {
    let [a, b, c, d] = target.ip().octets();
    let [high, low] = target.port().to_be_bytes();
    [a, b, c, d, high, low]
}

codes! {
    /// Why a client gets no packet of the device, as the hub tells it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Code: u16 {
        /// The device answered.
        Done = 0,
        /// The device did not answer a control packet.
        NoControlReply = 1,
        /// A bound of the hub was reached.
        HubTimeout = 2,
        /// The device did not answer a status request.
        NoStatusReply = 3,
        /// The device did not answer a resend request.
        NoResendReply = 4,
        /// The device's status makes no sense.
        MalformedStatus = 5,
        /// The request is of a version that the device, or the hub, does not speak.
        WrongVersion = 6,
        /// The device is not on the hub's list.
        NotAllowed = 7,
    } else {
        /// A code that no hub was known to send.
        Other
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = self.code();
        f.write_str(match self {
            Code::Done => return f.write_str("done"),
            Code::NoControlReply => {
                "the device did not answer a control packet; it was there before: look at its link and its load"
            }
            Code::HubTimeout => "a bound of the hub was reached: its packets in all, its devices, or the bytes of a packet; send less at once, in packets that the device has buffers for",
            Code::NoStatusReply => {
                "the device does not answer; is it on, and are its address, port and version as in the URI?"
            }
            Code::NoResendReply => {
                "the device lost a reply and cannot send it again; it may have restarted: read back what you wrote"
            }
            Code::MalformedStatus => "the device sent a status that makes no sense; does it speak IPbus 2.0?",
            Code::WrongVersion => {
                "the device does not speak this version of IPbus; use the other (1.3 or 2.0) in the URI"
            }
            Code::NotAllowed => "the device is not on the hub's allow-list; add it there, or correct the address",
            Code::Other(_) => "the hub refused for a reason that this program does not know; look at the hub's log",
        })?;
        write!(f, " (hub error {code})")
    }
}

/// Returns the device that a request entry names, if that much of it is there.
#[must_use]
pub fn target(entry: &[u8]) -> Option<SocketAddrV4> {
    let [a, b, c, d, high, low] = *entry.first_chunk()?;
    Some(SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), u16::from_be_bytes([high, low])))
}

/// The packets of a request chunk, up to the first that is cut short.
#[derive(Debug, Clone)]
pub struct Requests<'a>(Reader<'a>);

/// The packets of a reply chunk, up to the first that is cut short.
#[derive(Debug, Clone)]
pub struct Replies<'a>(Reader<'a>);

impl<'a> Requests<'a> {
    /// Iterates over the requests of this chunk, without its length.
    #[must_use]
    pub const fn new(chunk: &'a [u8]) -> Self {
        Requests(Reader::new(chunk, Order::Big))
    }
}

impl<'a> Replies<'a> {
    /// Iterates over the replies of this chunk, without its length.
    #[must_use]
    pub const fn new(chunk: &'a [u8]) -> Self {
        Replies(Reader::new(chunk, Order::Big))
    }
}

impl<'a> Iterator for Requests<'a> {
    type Item = Result<Request<'a>, Error>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.0.next_item(|chunk| {
            let (target, words) = target_and_field(chunk)?;
            Ok(Request { target, packet: chunk.bytes(usize::from(words) * WORD)? })
        })
    }
}

impl<'a> Iterator for Replies<'a> {
    type Item = Result<Reply<'a>, Error>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.0.next_item(|chunk| {
            let bytes = chunk.word()? as usize;
            let mut entry = Reader::new(chunk.bytes(bytes)?, Order::Big);
            let (target, code) = target_and_field(&mut entry)?;
            Ok(Reply { target, code: Code::from_code(code), packet: entry.rest() })
        })
    }
}

/// Reads the two words that both directions have: a device, and 16 bits behind its port.
fn target_and_field(entry: &mut Reader<'_>) -> Result<(SocketAddrV4, u16), Error> {
    let (address, port_and_field) = (entry.word()?, entry.word()?);
    let target = SocketAddrV4::new(Ipv4Addr::from(address), (port_and_field >> 16) as u16);
    Ok((target, port_and_field as u16))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::packet::Packet;

    const TARGET: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 1, 2, 3), 50001);

    /// uHAL 2.8, `chtcp-2.0`: one read, without the chunk's length.
    #[rustfmt::skip]
    const READ: [u8; 20] = [
        0x0A, 0x01, 0x02, 0x03, 0xC3, 0x51, 0x00, 0x03,
        0xF0, 0x00, 0x00, 0x20, 0x0F, 0x01, 0x00, 0x20, 0x34, 0x12, 0x00, 0x00,
    ];

    /// Laid out by hand after the table above: the reply to that read. uHAL 2.8 was seen to take entries so made.
    #[rustfmt::skip]
    const REPLY: [u8; 24] = [
        0x00, 0x00, 0x00, 0x14, 0x0A, 0x01, 0x02, 0x03, 0xC3, 0x51, 0x00, 0x00,
        0xF0, 0x00, 0x00, 0x20, 0x00, 0x01, 0x00, 0x20, 0xEF, 0xBE, 0xAD, 0xDE,
    ];

    #[test]
    fn requests_are_these_bytes() {
        let chunk = [READ, READ].concat();
        let request = Request { target: TARGET, packet: &READ[8..] };
        assert!(Requests::new(&chunk).eq([Ok(request), Ok(request)]));
        let mut out = Vec::new();
        request.encode(&mut out);
        assert_eq!(out, READ);
        assert_eq!(Packet::decode(request.packet).expect("a packet").requests().count(), 1);
    }

    #[test]
    fn replies_are_these_bytes() {
        let refused = [0, 0, 0, 8, 0x0A, 0x01, 0x02, 0x03, 0xC3, 0x51, 0x00, 0x03];
        let replies = [
            Reply { target: TARGET, code: Code::Done, packet: &REPLY[12..] },
            Reply { target: TARGET, code: Code::NoStatusReply, packet: &[] },
        ];
        let chunk = [&REPLY[..], &refused].concat();
        assert!(Replies::new(&chunk).eq(replies.map(Ok)));
        let mut out = Vec::new();
        replies.iter().for_each(|reply| reply.encode(&mut out));
        assert_eq!(out, chunk);
    }

    #[test]
    fn an_entry_that_is_cut_short_is_the_last() {
        for length in 1..READ.len() {
            let mut requests = Requests::new(&READ[..length]);
            assert!(matches!(requests.next(), Some(Err(Error::Truncated { .. }))), "{length}");
            assert_eq!(requests.next(), None);
            assert_eq!(target(&READ[..length]), (length >= 6).then_some(TARGET));
        }
        for length in 1..REPLY.len() {
            let mut replies = Replies::new(&REPLY[..length]);
            assert!(matches!(replies.next(), Some(Err(Error::Truncated { .. }))), "{length}");
            assert_eq!(replies.next(), None);
        }
    }

    #[test]
    fn codes_say_cause_and_remedy() {
        for code in 0..=u16::MAX {
            assert_eq!(Code::from_code(code).code(), code);
        }
        for code in 1..9 {
            let text = alloc::format!("{}", Code::from_code(code));
            assert!(text.ends_with(&alloc::format!("(hub error {code})")) && text.contains(['?', ';']), "{text}");
        }
    }

    #[test]
    fn any_bytes_never_panic() {
        let mut random = hodo_sim::Random::new(4);
        for _ in 0..20_000 {
            let mut bytes = [READ, READ].concat();
            bytes.extend_from_slice(&REPLY);
            for _ in 0..random.below(6) {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] = random.bits() as u8;
            }
            bytes.drain(..random.below(bytes.len() as u64) as usize);
            assert!(Requests::new(&bytes).count() <= bytes.len() / REQUEST_HEADER + 1);
            assert!(Replies::new(&bytes).count() <= bytes.len() / REPLY_HEADER + 1);
        }
    }
}
