//! The invariant CRC (A17.3.3): the CRC-32 of Ethernet over the packet and the headers below it, with everything that
//! changes on the way replaced by ones.
//!
//! | bytes | IPv4 | IPv6 |
//! |---|---|---|
//! | 8 | ones | ones |
//! | 20, 40 | header; type of service, time to live and checksum are ones | header; traffic class, flow label and hop limit are ones |
//! | 8 | UDP header; the checksum is ones | as with IPv4 |
//! | 12 | base transport header; byte 4 is ones | as with IPv4 |
//! | rest | extended headers, payload, padding | as with IPv4 |
//!
//! IPv4's identification and fragment flags are covered, and a UDP socket neither sets nor shows them. A sender without a
//! raw socket knows them because the kernel sends "do not fragment" and the identification 0, 1, 2, … within one segmented
//! send on a socket that is not connected. A receiver *solves* for them: the CRC is linear, so the difference between the CRC received and
//! the one computed leads back to the difference in those 32 bits, of which all but 17 have to be zero.

use core::net::{IpAddr, SocketAddr};
use crc32fast::Hasher;
use hodo_machine::Address;

use crate::wire::{BASE_LENGTH, ICRC_LENGTH};

/// The most bytes in front of the base transport header: of IPv6.
const PREFIX_MAX: usize = 8 + 40 + 8;
/// Where IPv4's identification stands in the prefix.
const IDENTIFICATION: usize = 8 + 4;
/// From the identification to the end of the prefix.
const IDENTIFICATION_TO_END: usize = 8 + 20 + 8 - IDENTIFICATION;
/// Lengths of which the CRC of the headers is kept.
const STARTS: usize = 16;
/// The fragment flag "do not fragment", as the difference that solving leads back to: the flags follow the
/// identification, and the first byte is the lowest.
const DO_NOT_FRAGMENT: u32 = 0x40 << 16;

/// The headers below the packets of one direction between two addresses, as the CRC covers them.
#[derive(Debug, Clone)]
pub struct Flow {
    prefix: [u8; PREFIX_MAX],
    kind: Kind,
    /// The identification that the next packet is expected to have, unless it begins a new segmented send with 0.
    expected: u16,
    places: Places,
    /// Whether the sender sets "do not fragment".
    is_unfragmented: bool,
    /// The lengths that came last, and the CRC of the headers below them.
    starts: [(usize, u32); STARTS],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    V4,
    V6,
    /// A node of the simulated network, without headers.
    Bare,
}

impl Flow {
    /// Returns the flow from one address to another; the headers of one without an IP address count as empty.
    #[must_use]
    pub fn new(from: &Address, to: &Address) -> Flow {
        match (from.ip(), to.ip()) {
            (Some(from), Some(to)) => Self::of_ip(from, to),
            _ => Flow {
                prefix: [0xFF; PREFIX_MAX],
                kind: Kind::Bare,
                expected: 0,
                places: Places::default(),
                is_unfragmented: true,
                starts: [(0, 0); STARTS],
            },
        }
    }

    fn of_ip(from: SocketAddr, to: SocketAddr) -> Flow {
        let mut prefix = [0xFF; PREFIX_MAX];
        let (kind, ports) = match (from.ip().to_canonical(), to.ip().to_canonical()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let header = &mut prefix[8..28];
                header[0] = 0x45;
                header[4..8].copy_from_slice(&[0, 0, 0x40, 0]);
                header[9] = 17;
                header[12..16].copy_from_slice(&source.octets());
                header[16..20].copy_from_slice(&destination.octets());
                (Kind::V4, 28)
            }
            (source, destination) => {
                let header = &mut prefix[8..48];
                // The version, before the traffic class.
                header[0] = 0x6F;
                header[6] = 17;
                header[8..24].copy_from_slice(&v6_octets(source));
                header[24..40].copy_from_slice(&v6_octets(destination));
                (Kind::V6, 48)
            }
        };
        prefix[ports..ports + 2].copy_from_slice(&from.port().to_be_bytes());
        prefix[ports + 2..ports + 4].copy_from_slice(&to.port().to_be_bytes());
        Flow { prefix, kind, expected: 0, places: Places::default(), is_unfragmented: true, starts: [(0, 0); STARTS] }
    }

    /// Starts the CRC of a datagram of `length` bytes, CRC included, that begins with these headers. An IPv4 identification
    /// of 0 is assumed.
    #[must_use]
    #[inline]
    pub fn start(&mut self, length: usize, headers: &[u8]) -> Checksum {
        // Packets are multiples of four bytes.
        let place = length / 4 % STARTS;
        if self.starts[place].0 != length {
            self.starts[place] = (length, self.of_prefix(length));
        }
        let mut hasher = Hasher::new_with_initial(self.starts[place].1);
        let (base, extended) = headers.split_at(BASE_LENGTH);
        let mut masked = [0; BASE_LENGTH];
        masked.copy_from_slice(base);
        masked[4] = 0xFF;
        hasher.update(&masked);
        let mut checksum = Checksum(hasher);
        checksum.update(extended);
        checksum
    }

    /// Returns the CRC of the headers below a datagram of this length.
    #[cold]
    fn of_prefix(&self, length: usize) -> u32 {
        let mut room = self.prefix;
        let udp_length = ((length + 8) as u16).to_be_bytes();
        match self.kind {
            Kind::V4 => {
                room[10..12].copy_from_slice(&((length + 28) as u16).to_be_bytes());
                if !self.is_unfragmented {
                    room[IDENTIFICATION + 2] = 0;
                }
                room[32..34].copy_from_slice(&udp_length);
            }
            Kind::V6 => {
                room[12..14].copy_from_slice(&udp_length);
                room[52..54].copy_from_slice(&udp_length);
            }
            Kind::Bare => {}
        }
        crc32fast::hash(&room[..self.prefix_length()])
    }

    const fn prefix_length(&self) -> usize {
        match self.kind {
            Kind::V4 => 36,
            Kind::V6 => PREFIX_MAX,
            Kind::Bare => 8,
        }
    }

    /// Returns whether the CRC of a received datagram is right. Over IPv4 the identification is whatever makes it so, if any
    /// does; a wrong CRC passes with a probability of 2^-15.
    #[inline]
    pub fn verify(&mut self, datagram: &[u8]) -> bool {
        let Some(length) = datagram.len().checked_sub(ICRC_LENGTH).filter(|length| *length >= BASE_LENGTH) else {
            return false;
        };
        let (covered, stored) = datagram.split_at(length);
        let mut received = [0; ICRC_LENGTH];
        received.copy_from_slice(stored);
        let received = u32::from_le_bytes(received);
        let mut checksum = self.start(datagram.len(), &covered[..BASE_LENGTH]);
        checksum.update(&covered[BASE_LENGTH..]);
        let difference = received ^ checksum.finish();
        if difference == 0 {
            self.expected = 1;
            return true;
        }
        if self.kind != Kind::V4 {
            return false;
        }
        if difference == self.places.at(datagram.len(), self.expected) {
            self.expected = self.expected.wrapping_add(1);
            return true;
        }
        self.solve(difference, datagram.len())
    }

    /// Finds the identification and the flag that explain a difference, and expects the same of what follows.
    fn solve(&mut self, difference: u32, length: usize) -> bool {
        let behind = IDENTIFICATION_TO_END + length - ICRC_LENGTH;
        let found = polynomial::retreat(difference, behind);
        if found >> 16 & !(DO_NOT_FRAGMENT >> 16) != 0 {
            return false;
        }
        if found & DO_NOT_FRAGMENT != 0 {
            self.is_unfragmented ^= true;
            self.starts = [(0, 0); STARTS];
        }
        let identification = u16::from_be_bytes([found as u8, (found >> 8) as u8]);
        self.expected = identification.wrapping_add(1);
        true
    }

    /// Returns whether the CRC of a datagram depends on the place that it has in a segmented send.
    #[must_use]
    pub fn is_numbered(&self) -> bool {
        self.kind == Kind::V4
    }
}

/// The differences that are added, bit by bit, to the CRC of an IPv4 datagram that was computed for the identification 0, if the
/// datagram has another place in a segmented send.
///
/// The differences of the lengths that came last are kept: to compute one costs about as much as the CRC of a full packet.
#[derive(Debug, Clone)]
pub struct Places {
    kept: [OfLength; KEPT],
}

/// Lengths that are kept at a time.
const KEPT: usize = 64;
/// Bits of a place: a segmented send has up to 64 datagrams.
const PLACE_BITS: usize = 6;

#[derive(Debug, Clone, Copy, Default)]
struct OfLength {
    length: usize,
    bits: [u32; PLACE_BITS],
}

impl Default for Places {
    fn default() -> Self {
        Places { kept: [OfLength::default(); KEPT] }
    }
}

impl Places {
    /// Returns what is added to the CRC of an IPv4 datagram of `length` bytes at this place.
    #[inline]
    pub fn at(&mut self, length: usize, place: u16) -> u32 {
        // Packets are multiples of four bytes.
        let kept = &mut self.kept[length / 4 % KEPT];
        if kept.length != length {
            *kept = OfLength { length, bits: core::array::from_fn(|bit| of_place(length, 1 << bit)) };
        }
        let sum = |sum, bit: usize| if place >> bit & 1 != 0 { sum ^ kept.bits[bit] } else { sum };
        match place >> PLACE_BITS {
            0 => (0..PLACE_BITS).fold(0, sum),
            _ => of_place(length, place),
        }
    }
}

/// Returns what the identification `place` adds to the CRC of an IPv4 datagram of `length` bytes.
#[must_use]
pub fn of_place(length: usize, place: u16) -> u32 {
    let [high, low] = place.to_be_bytes();
    let behind = IDENTIFICATION_TO_END + length.saturating_sub(ICRC_LENGTH);
    polynomial::advance(u32::from_le_bytes([high, low, 0, 0]), behind)
}

/// The CRC of a packet that is being put together.
#[derive(Debug, Clone)]
pub struct Checksum(Hasher);

impl Checksum {
    /// Adds bytes.
    #[inline]
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the CRC.
    #[must_use]
    #[inline]
    pub fn finish(self) -> u32 {
        self.0.finalize()
    }
}

const fn v6_octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

/// Arithmetic of remainders modulo the CRC's polynomial, lowest bit first, as the CRC has them.
mod polynomial {
    const POLYNOMIAL: u32 = 0xEDB8_8320;
    /// The number of remainders other than zero, after which the powers of x repeat: the polynomial is primitive.
    const PERIOD: u64 = (1 << 32) - 1;
    /// x^(2^n) for n from 0.
    const SQUARES: [u32; 32] = squares();

    const fn squares() -> [u32; 32] {
        let mut squares = [1 << 30; 32];
        let mut n = 1;
        while n < 32 {
            squares[n] = product(squares[n - 1], squares[n - 1]);
            n += 1;
        }
        squares
    }

    const fn product(a: u32, mut b: u32) -> u32 {
        let mut result = 0;
        let mut bit = 1 << 31;
        while bit != 0 {
            if a & bit != 0 {
                result ^= b;
            }
            b = if b & 1 != 0 { b >> 1 ^ POLYNOMIAL } else { b >> 1 };
            bit >>= 1;
        }
        result
    }

    const fn power(mut exponent: u64) -> u32 {
        let mut result = 1 << 31;
        let mut n = 0;
        while exponent != 0 {
            if exponent & 1 != 0 {
                result = product(SQUARES[n & 31], result);
            }
            exponent >>= 1;
            n += 1;
        }
        result
    }

    /// Returns the remainder after that many bytes of zeroes.
    pub(super) const fn advance(remainder: u32, bytes: usize) -> u32 {
        product(power(8 * bytes as u64), remainder)
    }

    /// Returns the remainder that becomes this one after that many bytes of zeroes.
    pub(super) const fn retreat(remainder: u32, bytes: usize) -> u32 {
        product(power(PERIOD - 8 * bytes as u64 % PERIOD), remainder)
    }
}

#[cfg(test)]
mod tests;
