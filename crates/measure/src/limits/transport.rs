//! TCP and UDP over IP: what an operation costs on the line.
//!
//! | header | bytes | source |
//! |---|---|---|
//! | IPv4 without options | 20 | RFC 791, 3.1 |
//! | IPv6; fragment header | 40; 8 | RFC 8200, 3 and 4.5 |
//! | TCP without options | 20 | RFC 9293, 3.1 |
//! | TCP timestamps, padded | 12 | RFC 7323, 3.2 and appendix A |
//! | UDP | 8 | RFC 768 |

use super::{LimitError, Line};

const TCP_HEADER_BYTES: u32 = 20;
const TCP_TIMESTAMPS_BYTES: u32 = 12;
const UDP_HEADER_BYTES: u32 = 8;
const IPV6_FRAGMENT_HEADER_BYTES: u32 = 8;

/// The largest MTU that an interface has: the loopback's.
const MAX_MTU: u32 = 65_536;

/// The version of the Internet Protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ip {
    /// Version 4, without options.
    V4,
    /// Version 6, without extension headers except for fragments.
    V6,
}

impl Ip {
    /// Returns the bytes of the header.
    #[must_use]
    pub const fn header_bytes(self) -> u32 {
        match self {
            Ip::V4 => 20,
            Ip::V6 => 40,
        }
    }

    /// Returns the smallest MTU that it works over (RFC 791, 3.2; RFC 8200, 5).
    #[must_use]
    pub const fn min_mtu(self) -> u32 {
        match self {
            Ip::V4 => 68,
            Ip::V6 => 1280,
        }
    }

    /// Returns the bytes of the largest packet: version 4 counts the header in the 16-bit length, version 6 does not.
    #[must_use]
    pub const fn max_packet_bytes(self) -> u32 {
        match self {
            Ip::V4 => 65_535,
            Ip::V6 => 65_535 + self.header_bytes(),
        }
    }

    const fn fragment_header_bytes(self) -> u32 {
        match self {
            Ip::V4 => self.header_bytes(),
            Ip::V6 => self.header_bytes() + IPV6_FRAGMENT_HEADER_BYTES,
        }
    }
}

/// The transport that carries the payload over IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// A stream of segments.
    Tcp {
        /// Whether each segment carries the timestamps option; Linux agrees on it by default.
        timestamps: bool,
    },
    /// Datagrams; one that is larger than the MTU goes in IP fragments.
    Udp,
}

impl Transport {
    /// Returns the bytes of the header.
    #[must_use]
    pub const fn header_bytes(self) -> u32 {
        match self {
            Transport::Tcp { timestamps: false } => TCP_HEADER_BYTES,
            Transport::Tcp { timestamps: true } => TCP_HEADER_BYTES + TCP_TIMESTAMPS_BYTES,
            Transport::Udp => UDP_HEADER_BYTES,
        }
    }
}

/// How operations meet the segments of a stream. Datagrams are always [`Packing::Own`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// Many operations in flight: they follow each other in full segments and share them.
    Stream,
    /// One operation at a time: it has segments of its own, and the last one is seldom full.
    Own,
}

/// The byte times that one operation takes on the line in each direction, beside its payload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WireCost {
    /// Payload of the operation: what the result counts.
    pub payload_bytes: f64,
    /// On the line from here to the far end.
    pub out_bytes: f64,
    /// On the line from the far end to here.
    pub back_bytes: f64,
}

impl WireCost {
    /// Returns the cost of several packets together, as those of one operation that is cut into packets.
    #[must_use]
    pub fn total(costs: impl IntoIterator<Item = WireCost>) -> WireCost {
        let none = WireCost { payload_bytes: 0.0, out_bytes: 0.0, back_bytes: 0.0 };
        costs.into_iter().fold(none, |sum, cost| WireCost {
            payload_bytes: sum.payload_bytes + cost.payload_bytes,
            out_bytes: sum.out_bytes + cost.out_bytes,
            back_bytes: sum.back_bytes + cost.back_bytes,
        })
    }

    /// Returns the mean over operations of several sizes; `None` without any.
    #[must_use]
    pub fn mean(costs: impl IntoIterator<Item = WireCost>) -> Option<WireCost> {
        let mut count = 0.0;
        let sum = WireCost::total(costs.into_iter().inspect(|_| count += 1.0));
        (count > 0.0).then(|| WireCost {
            payload_bytes: sum.payload_bytes / count,
            out_bytes: sum.out_bytes / count,
            back_bytes: sum.back_bytes / count,
        })
    }

    /// Returns the byte times of the busier direction: on a full-duplex line the other one hides behind it.
    #[must_use]
    pub fn busier_bytes(&self) -> f64 {
        self.out_bytes.max(self.back_bytes)
    }
}

/// A line and the headers that the payload travels under, checked to fit each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Path {
    line: Line,
    ip: Ip,
    transport: Transport,
}

impl Path {
    /// Checks that the line has a rate and an MTU that the IP version works over.
    ///
    /// # Errors
    /// [`LimitError::Rate`], [`LimitError::VlanTags`] or [`LimitError::Mtu`], by the value that is not possible.
    pub fn new(line: Line, ip: Ip, transport: Transport) -> Result<Path, LimitError> {
        if !(line.rate_bits_per_s.is_finite() && line.rate_bits_per_s > 0.0) {
            return Err(LimitError::Rate(line.rate_bits_per_s));
        }
        if line.vlan_tags > 2 {
            return Err(LimitError::VlanTags(line.vlan_tags));
        }
        if !(ip.min_mtu()..=MAX_MTU).contains(&line.mtu) {
            return Err(LimitError::Mtu { mtu: line.mtu, min: ip.min_mtu(), max: MAX_MTU });
        }
        Ok(Path { line, ip, transport })
    }

    /// Returns the line.
    #[must_use]
    pub const fn line(&self) -> &Line {
        &self.line
    }

    /// Returns the IP version.
    #[must_use]
    pub const fn ip(&self) -> Ip {
        self.ip
    }

    /// Returns the transport.
    #[must_use]
    pub const fn transport(&self) -> Transport {
        self.transport
    }

    /// Returns the payload of a full packet, `MTU - IP header - transport header`: TCP's segment, UDP's largest whole
    /// datagram.
    #[must_use]
    pub fn segment_bytes(&self) -> u32 {
        self.packet_bytes_max() - self.header_bytes()
    }

    /// Returns the payload of the largest datagram, in fragments if need be; `None` for TCP.
    #[must_use]
    pub fn datagram_bytes_max(&self) -> Option<u32> {
        (self.transport == Transport::Udp).then(|| self.largest_datagram_bytes())
    }

    /// Returns the share of the line that is payload when every packet is full: `segment / wire bytes of an MTU`.
    #[must_use]
    pub fn payload_share(&self) -> f64 {
        f64::from(self.segment_bytes()) / f64::from(self.line.wire_bytes(self.packet_bytes_max()))
    }

    /// Returns the payload bits per second when every packet is full: `rate x payload share`.
    #[must_use]
    pub fn payload_bits_per_s(&self) -> f64 {
        self.line.rate_bits_per_s * self.payload_share()
    }

    /// Returns the byte times on the line for this many bytes in one direction; 0 for none.
    ///
    /// TCP, [`Packing::Stream`]: `bytes x wire bytes of an MTU / segment`. TCP, [`Packing::Own`]: full segments and one
    /// with the rest. UDP: one datagram, fragmented where it is larger than the MTU; more bytes than a datagram can
    /// hold go in several.
    #[must_use]
    pub fn wire_bytes(&self, bytes: u64, packing: Packing) -> f64 {
        match (self.transport, packing) {
            (Transport::Tcp { .. }, Packing::Stream) => bytes as f64 / self.payload_share(),
            (Transport::Tcp { .. }, Packing::Own) => self.segments_wire_bytes(bytes),
            (Transport::Udp, _) => self.datagrams_wire_bytes(bytes),
        }
    }

    /// Returns the cost of an operation that sends `out_bytes` there and `back_bytes` back, headers of the protocol
    /// included, and of which `payload_bytes` count.
    #[must_use]
    pub fn cost(&self, payload_bytes: u64, out_bytes: u64, back_bytes: u64, packing: Packing) -> WireCost {
        WireCost {
            payload_bytes: payload_bytes as f64,
            out_bytes: self.wire_bytes(out_bytes, packing),
            back_bytes: self.wire_bytes(back_bytes, packing),
        }
    }

    /// Returns the share of the line that acknowledgements without payload take against a one-way stream, when every
    /// second segment is acknowledged (RFC 9293, 3.8.6.3); 0 for UDP.
    ///
    /// It is the most: receivers that merge segments acknowledge less often, and with payload both ways the
    /// acknowledgements ride on it. No bound counts it, for it shares its direction with payload only there.
    #[must_use]
    pub fn acknowledgement_share(&self) -> f64 {
        match self.transport {
            Transport::Udp => 0.0,
            Transport::Tcp { .. } => {
                let acknowledgement = self.line.wire_bytes(self.header_bytes());
                f64::from(acknowledgement) / (2.0 * f64::from(self.line.wire_bytes(self.packet_bytes_max())))
            }
        }
    }

    /// Returns the path in words, as `TCP with timestamps over IPv4, MTU 1500`.
    #[must_use]
    pub fn describe(&self) -> String {
        let transport = match self.transport {
            Transport::Tcp { timestamps: true } => "TCP with timestamps",
            Transport::Tcp { timestamps: false } => "TCP without timestamps",
            Transport::Udp => "UDP",
        };
        let ip = match self.ip {
            Ip::V4 => "IPv4",
            Ip::V6 => "IPv6",
        };
        let tags = match self.line.vlan_tags {
            0 => "",
            1 => ", one VLAN tag",
            _ => ", two VLAN tags",
        };
        format!("{transport} over {ip}, full-duplex Ethernet, MTU {}{tags}", self.line.mtu)
    }

    fn header_bytes(&self) -> u32 {
        self.ip.header_bytes() + self.transport.header_bytes()
    }

    fn packet_bytes_max(&self) -> u32 {
        self.line.mtu.min(self.ip.max_packet_bytes())
    }

    fn largest_datagram_bytes(&self) -> u32 {
        self.ip.max_packet_bytes() - self.header_bytes()
    }

    fn segments_wire_bytes(&self, bytes: u64) -> f64 {
        let segment = u64::from(self.segment_bytes());
        let full = (bytes / segment) as f64 * f64::from(self.line.wire_bytes(self.packet_bytes_max()));
        match (bytes % segment) as u32 {
            0 => full,
            rest => full + f64::from(self.line.wire_bytes(self.header_bytes() + rest)),
        }
    }

    fn datagrams_wire_bytes(&self, bytes: u64) -> f64 {
        let largest = self.largest_datagram_bytes();
        let full = bytes / u64::from(largest);
        let rest = match (bytes % u64::from(largest)) as u32 {
            0 => 0.0,
            rest => self.datagram_wire_bytes(rest),
        };
        if full == 0 { rest } else { full as f64 * self.datagram_wire_bytes(largest) + rest }
    }

    /// Returns the byte times of one datagram. All fragments but the last carry a multiple of 8 bytes (RFC 791, 3.2;
    /// RFC 8200, 4.5).
    fn datagram_wire_bytes(&self, bytes: u32) -> f64 {
        let content = UDP_HEADER_BYTES + bytes;
        if self.ip.header_bytes() + content <= self.packet_bytes_max() {
            return f64::from(self.line.wire_bytes(self.ip.header_bytes() + content));
        }
        let header = self.ip.fragment_header_bytes();
        let room = self.packet_bytes_max() - header;
        let aligned = room / 8 * 8;
        let full = content.saturating_sub(room).div_ceil(aligned);
        let last = content - full * aligned;
        f64::from(full) * f64::from(self.line.wire_bytes(header + aligned))
            + f64::from(self.line.wire_bytes(header + last))
    }
}
