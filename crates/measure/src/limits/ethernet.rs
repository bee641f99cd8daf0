//! Ethernet: what a packet costs on the line (IEEE 802.3-2022, clauses 3.1.1, 3.2 and 4.4.2; tags: IEEE 802.1Q, 9.3).
//!
//! | part | bytes |
//! |---|---|
//! | preamble, start-of-frame delimiter | 7 + 1 |
//! | destination, source, type | 6 + 6 + 2 |
//! | VLAN tags, each | 4 |
//! | packet, padded so that the frame has 64 bytes | 46 (42, 38 when tagged) to the MTU |
//! | frame check sequence | 4 |
//! | gap to the next frame | 12 |

/// The alternating bits ahead of a frame.
pub const PREAMBLE_BYTES: u32 = 7;
/// The start-of-frame delimiter.
pub const SFD_BYTES: u32 = 1;
/// Destination, source and type.
pub const HEADER_BYTES: u32 = 14;
/// One VLAN tag; it does not count against the MTU.
pub const VLAN_TAG_BYTES: u32 = 4;
/// The frame check sequence.
pub const FCS_BYTES: u32 = 4;
/// The smallest gap between two frames, in byte times.
pub const GAP_BYTES: u32 = 12;
/// The smallest frame, from its header to its check sequence, tags included.
pub const MIN_FRAME_BYTES: u32 = 64;

/// A full-duplex Ethernet line: the rate holds for each direction by itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// The rate at which bits of the frame pass, in bits per second: 1e9 for Gigabit Ethernet.
    pub rate_bits_per_s: f64,
    /// The largest packet that a frame carries, in bytes.
    pub mtu: u32,
    /// VLAN tags in each frame: 0, 1, or 2 for stacked ones.
    pub vlan_tags: u8,
}

impl Line {
    /// Creates a line without VLAN tags.
    #[must_use]
    pub const fn new(rate_bits_per_s: f64, mtu: u32) -> Line {
        Line { rate_bits_per_s, mtu, vlan_tags: 0 }
    }

    /// Returns the bytes of the frame that carries a packet: `max(64, 14 + 4 x tags + packet + 4)`.
    #[must_use]
    pub fn frame_bytes(&self, packet_bytes: u32) -> u32 {
        (self.host_bytes(packet_bytes) + FCS_BYTES).max(MIN_FRAME_BYTES)
    }

    /// Returns the byte times that the packet's frame takes on the line: `frame + 7 + 1 + 12`.
    #[must_use]
    pub fn wire_bytes(&self, packet_bytes: u32) -> u32 {
        self.frame_bytes(packet_bytes) + PREAMBLE_BYTES + SFD_BYTES + GAP_BYTES
    }

    /// Returns the bytes of the frame in the host's memory, `14 + 4 x tags + packet`: what the bus carries and what the
    /// kernel's shapers (`tbf`, `htb`) and interface counters count.
    #[must_use]
    pub fn host_bytes(&self, packet_bytes: u32) -> u32 {
        HEADER_BYTES + VLAN_TAG_BYTES * u32::from(self.vlan_tags) + packet_bytes
    }

    /// Returns the frames per second of packets of this size: `rate / (8 x wire bytes)`.
    #[must_use]
    pub fn frames_per_s(&self, packet_bytes: u32) -> f64 {
        self.rate_bits_per_s / (8.0 * f64::from(self.wire_bytes(packet_bytes)))
    }
}
