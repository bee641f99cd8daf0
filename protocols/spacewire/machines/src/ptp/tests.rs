use super::*;
use crate::EndOfPacket::{Eep, Eop};
use hodo_machine::Random;

/// A primary header of the documentation of us-irs/spacepackets-py, behind a header and in front of data of our own.
const PING: [u8; 15] = [0xFE, 0x02, 0x00, 0x07, 0x18, 0x73, 0xC0, 0x19, 0x00, 0x04, 0x11, 0x11, 0x01, 0xA0, 0xB8];

#[test]
fn a_telecommand_has_its_fields() {
    let header = PrimaryHeader {
        is_telecommand: true,
        has_secondary_header: true,
        application_process: 0x73,
        sequence_flags: SequenceFlags::Unsegmented,
        sequence_count: 25,
    };
    let space_packet = SpacePacket { header, data: &PING[10..] };
    let packet = Packet { target: 0xFE, application: 7, space_packet };
    assert_eq!(Packet::decode(&PING, Eop), Ok(packet));
    let mut out = Vec::new();
    assert_eq!(packet.encode(&mut out), Ok(()));
    assert_eq!(out, PING);
}

#[test]
fn every_defect_has_its_name() {
    let changed = |at: usize, byte| {
        let mut bytes = PING;
        bytes[at] = byte;
        Packet::decode(&bytes, Eop).unwrap_err()
    };
    assert_eq!(changed(1, 1), Malformed::Protocol(1));
    assert_eq!(changed(2, 1), Malformed::Reserved(1));
    assert_eq!(changed(4, 0xF8), Malformed::Version(7));
    assert_eq!(changed(9, 5), Malformed::Length { announced: 6, have: 5 });
    assert_eq!(changed(8, 0xFF), Malformed::Length { announced: 0xFF05, have: 5 });
    assert_eq!(Packet::decode(&PING, Eep), Err(Malformed::Eep));
    for length in 0..PING.len() {
        let error = Packet::decode(&PING[..length], Eop).unwrap_err();
        assert!(matches!(error, Malformed::Truncated(_) | Malformed::Length { .. }), "{length}: {error}");
    }
}

#[test]
fn data_of_impossible_lengths_is_refused() {
    let space_packet = Packet::decode(&PING, Eop).expect("a right packet").space_packet;
    for (length, expected) in [
        (0, Err(Malformed::Length { announced: 1, have: 0 })),
        (1, Ok(())),
        (65_536, Ok(())),
        (65_537, Err(Malformed::Length { announced: 65_536, have: 65_537 })),
    ] {
        let data = alloc::vec![0; length];
        let packet = Packet { target: 1, application: 2, space_packet: SpacePacket { data: &data, ..space_packet } };
        let mut out = Vec::new();
        assert_eq!(packet.encode(&mut out), expected, "{length} bytes");
        if expected.is_ok() {
            assert_eq!(Packet::decode(&out, Eop), Ok(packet));
        }
    }
}

#[test]
fn any_bytes_decode_to_one_packet_or_none() {
    let mut random = Random::new(1);
    let mut decoded = 0;
    for _ in 0..50_000 {
        let mut bytes: Vec<u8> = (0..random.below(30)).map(|_| random.bits() as u8).collect();
        if bytes.len() > 10 && random.below(4) > 0 {
            let length = bytes.len() - 11;
            (bytes[1], bytes[2], bytes[4], bytes[8], bytes[9]) = (2, 0, bytes[4] & 0x1F, 0, length as u8);
        }
        let Ok(packet) = Packet::decode(&bytes, Eop) else { continue };
        let mut out = Vec::new();
        assert_eq!(packet.encode(&mut out), Ok(()));
        assert_eq!(out, bytes);
        decoded += 1;
    }
    assert!(decoded > 10_000, "{decoded}");
}
