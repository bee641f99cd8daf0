//! The headers that the kernel puts before the payload of a socket, rebuilt from the socket's addresses:
//!
//! | header | fields |
//! |---|---|
//! | IPv4 (RFC 791) | 0x45, 0, length(16), 0(16), don't fragment, time to live 64, protocol, checksum, from, to |
//! | IPv6 (RFC 8200) | 0x60000000, payload length(16), next header, hop limit 64, from, to |
//! | UDP (RFC 768) | ports(16, 16), length(16), checksum(16) |
//! | TCP (RFC 9293) | ports(16, 16), sequence(32), ack(32), 0x5018: push and ack, window(16), checksum(16), 0(16) |
//!
//! Addresses, ports and payloads are the real ones. For TCP there is one segment for the bytes that were read or
//! written at once, and numbers count from 1 where the trace begins; the kernels' other segments are not known here.

use super::pcapng::Direction;
use hodo_machine::{Ends, Transport};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

const TCP: u8 = 6;
const UDP: u8 = 17;
const UDP_HEADER: usize = 8;
const TCP_HEADER: usize = 20;
/// The payload of a segment in bytes, so that the packet's length fits in 16 bits: a whole number of 32-bit words.
pub(super) const SEGMENT: usize = 65_480;

/// A connection's two ends, and the sequence number of each direction of a stream.
pub(super) struct Flow {
    local: SocketAddr,
    remote: SocketAddr,
    pub transport: Transport,
    sent: u32,
    received: u32,
}

impl Flow {
    /// Creates the flow between two IP sockets; `None` for any other ends.
    pub(super) fn new(ends: &Ends) -> Option<Self> {
        let canonical = |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
        let (local, remote) = (canonical(ends.local.ip()?), canonical(ends.remote.ip()?));
        Some(Flow { local, remote, transport: ends.remote.transport()?, sent: 1, received: 1 })
    }

    /// Counts bytes that passed, whether or not there is a packet of them.
    pub(super) fn passed(&mut self, direction: Direction, bytes: usize) {
        let count = if direction == Direction::In { &mut self.received } else { &mut self.sent };
        *count = count.wrapping_add(bytes as u32);
    }

    /// Appends the packet that carries this payload.
    pub(super) fn packet(&self, direction: Direction, payload: &[u8], out: &mut Vec<u8>) {
        let (from, to, sequence, acknowledged) = match direction {
            Direction::In => (self.remote, self.local, self.received, self.sent),
            Direction::Out => (self.local, self.remote, self.sent, self.received),
        };
        let (protocol, header) = match self.transport {
            Transport::Stream => (TCP, TCP_HEADER),
            Transport::Datagram => (UDP, UDP_HEADER),
        };
        let length = (header + payload.len()) as u16;
        let pseudo = internet(from.ip(), to.ip(), protocol, length, out);
        let start = out.len();
        out.extend(from.port().to_be_bytes());
        out.extend(to.port().to_be_bytes());
        if protocol == TCP {
            out.extend(sequence.to_be_bytes());
            out.extend(acknowledged.to_be_bytes());
            out.extend([0x50, 0x18, 0xFF, 0xFF, 0, 0, 0, 0]);
        } else {
            out.extend(length.to_be_bytes());
            out.extend([0, 0]);
        }
        out.extend(payload);
        let sum = match checksum(sum_of(&out[start..]) + pseudo) {
            // A datagram's zero would say that it has none (RFC 768).
            0 if protocol == UDP => 0xFFFF,
            sum => sum,
        };
        let at = start + if protocol == TCP { 16 } else { 6 };
        out[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    }
}

/// Appends the internet header. Returns the sum that it adds to the checksum of the header behind it.
fn internet(from: IpAddr, to: IpAddr, protocol: u8, length: u16, out: &mut Vec<u8>) -> u64 {
    let start = out.len();
    let addresses = if let (IpAddr::V4(from), IpAddr::V4(to)) = (from, to) {
        out.extend([0x45, 0]);
        out.extend((length + 20).to_be_bytes());
        out.extend([0, 0, 0x40, 0, 64, protocol, 0, 0]);
        out.extend(from.octets());
        out.extend(to.octets());
        let sum = checksum(sum_of(&out[start..]));
        out[start + 10..start + 12].copy_from_slice(&sum.to_be_bytes());
        start + 12
    } else {
        out.extend([0x60, 0, 0, 0]);
        out.extend(length.to_be_bytes());
        out.extend([protocol, 64]);
        out.extend(wide(from).octets());
        out.extend(wide(to).octets());
        start + 8
    };
    sum_of(&out[addresses..]) + u64::from(protocol) + u64::from(length)
}

fn wide(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

/// Returns the sum of the bytes in big-endian order (RFC 1071), not folded to 16 bits.
fn sum_of(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<4>();
    let words: u64 = words.iter().map(|word| u64::from(u32::from_be_bytes(*word))).sum();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    words + u64::from(u32::from_be_bytes(last))
}

fn checksum(mut sum: u64) -> u16 {
    while sum > 0xFFFF {
        sum = (sum >> 16) + (sum & 0xFFFF);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hodo_machine::Address;

    fn flow(local: &str, remote: &str, transport: Transport) -> Flow {
        let [local, remote] = [local, remote].map(|ip| Address::of(transport, ip.parse().unwrap()));
        Flow::new(&Ends::new(local, remote)).expect("both are IP addresses")
    }

    #[test]
    fn a_header_has_the_checksum_of_the_rfc() {
        // A well-known example of an IPv4 header's checksum: 0xB861 in its place.
        let header = [0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0xB8, 0x61, 0xC0, 0xA8, 0, 1, 0xC0, 0xA8, 0, 0xC7];
        assert_eq!(checksum(sum_of(&header)), 0);
        let mut out = Vec::new();
        internet([192, 168, 0, 1].into(), [192, 168, 0, 199].into(), UDP, 0x73 - 20, &mut out);
        assert_eq!(out, header);
    }

    #[test]
    fn a_datagram_goes_from_the_board_to_the_hub() {
        let mut out = Vec::new();
        let flow = flow("127.0.0.1:4000", "127.0.0.2:50001", Transport::Datagram);
        flow.packet(Direction::In, &[1, 2, 3], &mut out);
        assert_eq!(out[..4], [0x45, 0, 0, 31]);
        assert_eq!(out[12..20], [127, 0, 0, 2, 127, 0, 0, 1]);
        assert_eq!(out[20..26], [0xC3, 0x51, 0x0F, 0xA0, 0, 11]);
        assert_eq!(out[28..], [1, 2, 3]);
        let pseudo = sum_of(&out[12..20]) + 17 + 11;
        assert_eq!(checksum(sum_of(&out[20..]) + pseudo), 0);
    }

    /// One packet in 65,536 has this sum.
    #[test]
    fn a_checksum_of_zero_is_written_as_ones_in_a_datagram_only() {
        for (transport, at, written) in [(Transport::Datagram, 26, 0xFFFF), (Transport::Stream, 36, 0_u16)] {
            let flow = flow("127.0.0.1:4000", "127.0.0.2:50001", transport);
            let packet = |payload: &[u8]| {
                let mut out = Vec::new();
                flow.packet(Direction::Out, payload, &mut out);
                out
            };
            let without = packet(&[0, 0]);
            let with = packet(&without[at..at + 2]);
            assert_eq!(with[at..at + 2], written.to_be_bytes(), "{transport:?}");
        }
    }

    #[test]
    fn a_streams_numbers_go_on_and_acknowledge_the_other_side() {
        let mut flow = flow("[::1]:10203", "[::1]:4000", Transport::Stream);
        flow.passed(Direction::In, 7);
        let mut out = Vec::new();
        flow.packet(Direction::Out, b"reply", &mut out);
        assert_eq!((out[0], &out[4..7]), (0x60, &[0, 25, 6][..]));
        assert_eq!(out[44..54], [0, 0, 0, 1, 0, 0, 0, 8, 0x50, 0x18]);
        let pseudo = sum_of(&out[8..40]) + 6 + 25;
        assert_eq!(checksum(sum_of(&out[40..]) + pseudo), 0);
    }
}
