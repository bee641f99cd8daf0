use super::*;
use alloc::vec;
use alloc::vec::Vec;

/// An acknowledgement of the kernel's rxe, from 10.9.0.1:49441 to 10.9.0.2, with the IPv4 identification 0xe3b7 (the capture
/// `rc_pingpong.pcap`).
const RXE: [u8; 20] = [
    0x11, 0x00, 0xFF, 0xFF, 0x00, 0x00, 0x00, 0x11, 0x00, 0x71, 0xC8, 0xCE, 0x1F, 0x00, 0x00, 0x01, 0xFC, 0xF2, 0xEA,
    0x8B,
];
/// An acknowledgement from 10.9.0.254:4791 to 10.9.0.1, from a socket that sends the identification 0 (`user_vs_rxe.pcap`).
const SOCKET: [u8; 20] = [
    0x11, 0x40, 0xFF, 0xFF, 0x00, 0x00, 0x00, 0x11, 0x00, 0xCF, 0x66, 0x42, 0x1F, 0x00, 0x00, 0x01, 0xF8, 0x28, 0x9B,
    0xF8,
];
/// An acknowledgement from [2001:db8::1]:49153 to [2001:db8::2], with the CRC that zlib computes of the table of this module.
const V6: [u8; 20] = [
    0x11, 0x40, 0xFF, 0xFF, 0x00, 0x00, 0x00, 0x77, 0x00, 0x00, 0x12, 0x34, 0x1F, 0x00, 0x00, 0x01, 0xF2, 0x74, 0x96,
    0x29,
];

fn flow(from: &str, to: &str) -> Flow {
    let address = |text: &str| Address::Udp(text.parse().unwrap());
    Flow::new(&address(from), &address(to))
}

fn rxe() -> Flow {
    flow("10.9.0.1:49441", "10.9.0.2:4791")
}

fn socket() -> Flow {
    flow("10.9.0.254:4791", "10.9.0.1:4791")
}

fn v6() -> Flow {
    flow("[2001:db8::1]:49153", "[2001:db8::2]:4791")
}

/// Returns a packet of a flow, as it is at a place of a segmented send.
fn packet(flow: &mut Flow, payload: &[u8], place: u16) -> Vec<u8> {
    let mut bytes = SOCKET[..BASE_LENGTH].to_vec();
    let length = BASE_LENGTH + payload.len() + ICRC_LENGTH;
    let mut checksum = flow.start(length, &bytes);
    checksum.update(payload);
    bytes.extend_from_slice(payload);
    let sum = checksum.finish() ^ if flow.is_numbered() { of_place(length, place) } else { 0 };
    bytes.extend(sum.to_le_bytes());
    bytes
}

#[test]
fn packets_of_others_verify_in_their_flow_alone() {
    let all = [(rxe(), RXE), (socket(), SOCKET), (v6(), V6)];
    for (place, (flow, _)) in all.iter().enumerate() {
        for (other, (_, packet)) in all.iter().enumerate() {
            assert_eq!(flow.clone().verify(packet), place == other, "{place} {other}");
        }
    }
    let mut flow = v6();
    let mut checksum = flow.start(V6.len(), &V6[..BASE_LENGTH]);
    checksum.update(&V6[BASE_LENGTH..16]);
    assert_eq!(checksum.finish(), 0x2996_74F2);
}

#[test]
fn every_bit_but_those_of_congestion_is_covered() {
    for (mut flow, packet) in [(v6(), V6), (socket(), SOCKET)] {
        for bit in 0..packet.len() * 8 {
            let mut damaged = packet;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(flow.verify(&damaged), bit / 8 == 4, "bit {bit}");
        }
    }
}

#[test]
fn addresses_of_ipv4_are_the_same_in_the_form_of_ipv6() {
    assert!(flow("[::ffff:10.9.0.254]:4791", "[::ffff:10.9.0.1]:4791").verify(&SOCKET));
}

#[test]
fn segments_of_a_send_are_numbered_over_ipv4() {
    for (mut flow, is_numbered) in [(socket(), true), (v6(), false)] {
        assert_eq!(flow.is_numbered(), is_numbered);
        for round in 0..3 {
            for place in 0..64 {
                let length = if place == 63 { 8 } else { 256 };
                let bytes = packet(&mut flow, &vec![round; length], place);
                assert!(flow.verify(&bytes), "{round} {place}");
            }
        }
    }
}

#[test]
fn any_identification_is_solved_for_with_and_without_fragmentation() {
    let mut flow = socket();
    for place in [1, 63, 64, 0x79B9, 0xFFFF, 0, 0x8000] {
        let bytes = packet(&mut flow, &[7; 100], place);
        assert!(flow.verify(&bytes), "{place:#x}");
        assert_eq!(flow.expected, place.wrapping_add(1));
    }
    let mut fragmenting = socket();
    fragmenting.is_unfragmented = false;
    for _ in 0..2 {
        assert!(flow.verify(&packet(&mut fragmenting, &[7; 100], 0x1234)));
        assert!(!flow.is_unfragmented);
    }
    // Other differences of the IPv4 header have no solution.
    let mut other = packet(&mut socket(), &[7; 100], 0);
    let end = other.len() - ICRC_LENGTH;
    let sum = polynomial::advance(0x20 << 16, IDENTIFICATION_TO_END + end);
    other[end..].iter_mut().zip(sum.to_le_bytes()).for_each(|(byte, bits)| *byte ^= bits);
    assert!(!socket().verify(&other));
}

#[test]
fn places_that_are_kept_are_those_that_are_computed() {
    let mut places = Places::default();
    for length in [20, 24, 276, 1044, 4116, 20 + 4 * KEPT, 20] {
        for place in [0, 1, 2, 3, 31, 32, 63, 64, 1000, u16::MAX] {
            assert_eq!(places.at(length, place), of_place(length, place), "{length} {place}");
        }
    }
}

#[test]
fn remainders_come_back() {
    for remainder in [1, 0x8000_0000, 0xDEAD_BEEF] {
        for bytes in [0, 1, 20, 4144, 65_535] {
            assert_eq!(polynomial::retreat(polynomial::advance(remainder, bytes), bytes), remainder);
        }
    }
}

#[test]
fn bytes_that_are_too_short_have_no_crc() {
    for length in 0..BASE_LENGTH + ICRC_LENGTH {
        assert!(!v6().verify(&V6[..length]));
        assert!(!socket().verify(&SOCKET[..length]));
    }
}
