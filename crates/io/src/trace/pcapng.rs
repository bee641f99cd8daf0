//! The blocks of a pcapng file, little-endian (draft-ietf-opsawg-pcapng):
//!
//! | block | fields behind type and length |
//! |---|---|
//! | section header, 0x0A0D0D0A (4.1) | magic 0x1A2B3C4D, version 1.0, length -1 |
//! | interface description, 1 (4.2) | link type, as 101: IPv4 and IPv6 without a link's header; no bound on a packet |
//! | enhanced packet, 6 (4.3) | interface, time (high, low) in ns, captured and original length, the packet |
//!
//! Options (3.5) are code, length and value, padded to 32 bits, and end with code 0. A block ends with its length
//! again.

const SECTION: u32 = 0x0A0D_0D0A;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;
const MAGIC: u32 = 0x1A2B_3C4D;
/// The link type of IPv4 and IPv6 without a link's header.
pub(super) const LINK_RAW: u16 = 101;
const COMMENT: u16 = 1;
const USER_APPLICATION: u16 = 4;
const NAME: u16 = 2;
const TIME_RESOLUTION: u16 = 9;
const NANOSECONDS: u8 = 9;
const FLAGS: u16 = 2;
const DROPPED: u16 = 4;

/// Which way a packet went, as its flags say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// In.
    In = 1,
    /// Out.
    Out = 2,
}

/// The metadata of a packet.
pub(super) struct About<'a> {
    pub interface: u32,
    pub unix_ns: u64,
    pub direction: Direction,
    /// Bytes of the packet that are not in the file.
    pub missing: u32,
    /// Packets of this interface that are missing since the one before.
    pub dropped: u64,
    pub comment: &'a str,
}

/// Appends the section header of a file, and the descriptions of its interfaces, numbered from 0.
pub(super) fn begin(application: &str, link_type: u16, interfaces: &[&str], out: &mut Vec<u8>) {
    block(SECTION, out, |out| {
        out.extend(MAGIC.to_le_bytes());
        out.extend(1_u16.to_le_bytes());
        out.extend(0_u16.to_le_bytes());
        out.extend((-1_i64).to_le_bytes());
        option(USER_APPLICATION, application.as_bytes(), out);
        end_options(out);
    });
    for name in interfaces {
        block(INTERFACE, out, |out| {
            out.extend(link_type.to_le_bytes());
            out.extend([0; 6]);
            option(NAME, name.as_bytes(), out);
            option(TIME_RESOLUTION, &[NANOSECONDS], out);
            end_options(out);
        });
    }
}

/// Appends a packet, whose bytes `fill` appends.
pub(super) fn packet(about: &About<'_>, out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
    block(PACKET, out, |out| {
        out.extend(about.interface.to_le_bytes());
        out.extend(((about.unix_ns >> 32) as u32).to_le_bytes());
        out.extend((about.unix_ns as u32).to_le_bytes());
        let lengths = out.len();
        out.extend([0; 8]);
        fill(out);
        let kept = out.len() - lengths - 8;
        out[lengths..lengths + 4].copy_from_slice(&(kept as u32).to_le_bytes());
        out[lengths + 4..lengths + 8].copy_from_slice(&(kept as u32 + about.missing).to_le_bytes());
        pad(kept, out);
        option(FLAGS, &(about.direction as u32).to_le_bytes(), out);
        if about.dropped > 0 {
            option(DROPPED, &about.dropped.to_le_bytes(), out);
        }
        if !about.comment.is_empty() {
            option(COMMENT, about.comment.as_bytes(), out);
        }
        end_options(out);
    });
}

/// Appends a block: type and length, the body that `inside` appends, and the length again.
fn block(kind: u32, out: &mut Vec<u8>, inside: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend(kind.to_le_bytes());
    out.extend([0; 4]);
    inside(out);
    let length = ((out.len() - start + 4) as u32).to_le_bytes();
    out[start + 4..start + 8].copy_from_slice(&length);
    out.extend(length);
}

fn option(code: u16, value: &[u8], out: &mut Vec<u8>) {
    out.extend(code.to_le_bytes());
    out.extend((value.len() as u16).to_le_bytes());
    out.extend(value);
    pad(value.len(), out);
}

fn end_options(out: &mut Vec<u8>) {
    out.extend([0; 4]);
}

/// Appends zeros behind `length` bytes, up to a multiple of 32 bits.
fn pad(length: usize, out: &mut Vec<u8>) {
    out.extend(&[0; 3][..length.next_multiple_of(4) - length]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_blocks_are_those_of_the_draft() {
        let mut out = Vec::new();
        begin("ab", LINK_RAW, &["x"], &mut out);
        #[rustfmt::skip]
        let expected = [
            0x0A, 0x0D, 0x0D, 0x0A, 40, 0, 0, 0, 0x4D, 0x3C, 0x2B, 0x1A, 1, 0, 0, 0,
            0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 4, 0, 2, 0, b'a', b'b', 0, 0, 0, 0, 0, 0, 40, 0, 0, 0,
            1, 0, 0, 0, 40, 0, 0, 0, 101, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0, b'x', 0, 0, 0, 9, 0, 1, 0, 9, 0, 0, 0,
            0, 0, 0, 0, 40, 0, 0, 0,
        ];
        assert_eq!(out, expected);
    }

    #[test]
    fn a_packet_has_its_time_its_direction_and_what_is_said_of_it() {
        let about = About {
            interface: 1,
            unix_ns: 0x1_0000_0002,
            direction: Direction::Out,
            missing: 2,
            dropped: 3,
            comment: "hi",
        };
        let mut out = Vec::new();
        packet(&about, &mut out, |out| out.extend([0x45, 1, 2, 3, 4]));
        #[rustfmt::skip]
        let expected = [
            6, 0, 0, 0, 72, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 5, 0, 0, 0, 7, 0, 0, 0,
            0x45, 1, 2, 3, 4, 0, 0, 0, 2, 0, 4, 0, 2, 0, 0, 0, 4, 0, 8, 0, 3, 0, 0, 0, 0, 0, 0, 0,
            1, 0, 2, 0, b'h', b'i', 0, 0, 0, 0, 0, 0, 72, 0, 0, 0,
        ];
        assert_eq!(out, expected);
    }
}
