use super::*;
use crate::EndOfPacket::{Eep, Eop};
use alloc::vec;
use hodo_machine::Random;

const BOTH: [StatusBits; 2] = [StatusBits::High, StatusBits::Low];

fn to_host_decoder(status_bits: StatusBits) -> ToHostDecoder {
    ToHostDecoder::new(DecoderSettings { status_bits, ..DecoderSettings::default() })
}

/// Returns the frames of a host as commands and bodies.
fn from_host(decoder: &mut FromHostDecoder, mut bytes: &[u8]) -> Result<Vec<(Command, Vec<u8>)>, Malformed> {
    let mut frames = Vec::new();
    while let Some(frame) = decoder.next(&mut bytes)? {
        frames.push(match frame {
            FromHost::Packet(data) => (Command::Packet, data.to_vec()),
            FromHost::SetConfiguration(body) => (Command::SetConfiguration, body.to_vec()),
            FromHost::ReadConfiguration(body) => (Command::ReadConfiguration, body.to_vec()),
            FromHost::SendTimeCode(code) => (Command::SendTimeCode, vec![code]),
        });
    }
    assert!(bytes.is_empty());
    Ok(frames)
}

fn to_host(decoder: &mut ToHostDecoder, mut bytes: &[u8]) -> Result<Vec<(Vec<u8>, EndOfPacket, bool)>, Malformed> {
    let mut packets = Vec::new();
    while let Some(packet) = decoder.next(&mut bytes)? {
        packets.push((packet.data.to_vec(), packet.end, packet.is_truncated));
    }
    assert!(bytes.is_empty());
    Ok(packets)
}

#[test]
fn virtual_links_have_two_ports_each() {
    let ports = |number| VirtualLink::new(number).map(|link| (link.port_from_host(), link.port_to_host()));
    assert_eq!([0, 5, 6].map(ports), [Some((3000, 3001)), Some((3010, 3011)), None]);
}

#[test]
fn frames_are_laid_out_as_the_tables_say() {
    let mut out = Vec::new();
    for frame in [
        FromHost::Packet(&[0xFE, 1, 2]),
        FromHost::SetConfiguration(&[7, 8]),
        FromHost::ReadConfiguration(&[9]),
        FromHost::SendTimeCode(0x3F),
    ] {
        assert_eq!(frame.encode(&mut out), Ok(()));
    }
    let expected = [0, 0, 0, 3, 0xFE, 1, 2, 1, 0, 0, 2, 7, 8, 2, 0, 0, 1, 9, 3, 0, 0, 1, 0x3F];
    assert_eq!(out, expected);
    assert_eq!(packet_header(0x01_0203), Ok([0, 1, 2, 3]));
    assert_eq!(packet_header(1 << 24), Err(TooLong { length: 1 << 24 }));
    let packets = [(Eop, false), (Eep, false), (Eop, true), (Eep, true)];
    let statuses = |bits: StatusBits| {
        packets
            .map(|(end, is_truncated)| ToHost { data: &[5; 2], end, is_truncated }.header(bits).map(|header| header[0]))
    };
    assert_eq!(statuses(StatusBits::High), [Ok(0), Ok(0x80), Ok(0x40), Ok(0xC0)]);
    assert_eq!(statuses(StatusBits::Low), [Ok(0), Ok(1), Ok(2), Ok(3)]);
}

#[test]
fn a_packet_that_lies_whole_in_the_buffer_is_not_copied() {
    let bytes = [0x80, 0, 0, 2, 5, 6, 0];
    let (mut decoder, mut rest) = (to_host_decoder(StatusBits::High), &bytes[..]);
    let packet = decoder.next(&mut rest).expect("a right stream").expect("a packet");
    assert_eq!((packet, packet.data.as_ptr()), (ToHost { end: Eep, ..packet }, bytes[4..].as_ptr()));
    assert_eq!(decoder.next(&mut rest), Ok(None));
    assert_eq!(decoder.next(&mut &[0, 0][..]), Ok(None));
    let empty = ToHost { data: &[], end: Eop, is_truncated: false };
    assert_eq!(decoder.next(&mut &[0][..]), Ok(Some(empty)));
}

#[test]
fn every_defect_has_its_name_and_ends_the_stream() {
    let settings = DecoderSettings { body_max: 10, ..DecoderSettings::default() };
    for (bytes, expected) in [
        ([4, 0, 0, 1], Malformed::UnknownCommand(4)),
        ([0, 0, 0, 11], Malformed::TooLarge { length: 11, limit: 10 }),
        ([0, 0xFF, 0xFF, 0xFF], Malformed::TooLarge { length: BODY_MAX, limit: 10 }),
        ([3, 0, 0, 0], Malformed::TimeCodeLength(0)),
        ([3, 0, 0, 2], Malformed::TimeCodeLength(2)),
    ] {
        let mut decoder = FromHostDecoder::new(settings);
        assert_eq!(from_host(&mut decoder, &bytes), Err(expected));
        assert_eq!(from_host(&mut decoder, &[0, 0, 0, 0]), Err(expected));
    }
    let mut decoder = ToHostDecoder::new(settings);
    assert_eq!(to_host(&mut decoder, &[0xC0, 0, 1, 0]), Err(Malformed::TooLarge { length: 256, limit: 10 }));
    assert_eq!(to_host(&mut to_host_decoder(StatusBits::High), &[1, 0, 0, 0]), Err(Malformed::UnknownStatus(1)));
    assert_eq!(to_host(&mut to_host_decoder(StatusBits::Low), &[0x40, 0, 0, 0]), Err(Malformed::UnknownStatus(0x40)));
}

#[test]
fn a_large_packet_lands_in_place() {
    let data: Vec<u8> = (0..100_000_u32).map(|number| number as u8).collect();
    let mut out = Vec::new();
    assert_eq!(FromHost::Packet(&data).encode(&mut out), Ok(()));
    let mut decoder = FromHostDecoder::new(DecoderSettings::default());
    let (front, mut rest) = out.split_at(10);
    assert_eq!(decoder.next(&mut &*front), Ok(None));
    while let Some(room) = decoder.landing() {
        let count = room.len().min(rest.len());
        room[..count].copy_from_slice(&rest[..count]);
        rest = &rest[count..];
        assert!(decoder.landed(count) == Some(FromHost::Packet(&data)));
    }
    assert!(rest.is_empty());
}

/// Over many seeds: frames of both directions come out however the stream is cut.
#[test]
fn frames_survive_every_cut() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let bits = BOTH[random.below(2) as usize];
        let (mut there, mut sent, mut back, mut returned) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for _ in 0..random.below(20) {
            let data: Vec<u8> = (0..random.below(300)).map(|_| random.bits() as u8).collect();
            let (command, frame) = match random.below(4) {
                0 => (Command::SetConfiguration, FromHost::SetConfiguration(&data)),
                1 => (Command::ReadConfiguration, FromHost::ReadConfiguration(&data)),
                _ => (Command::Packet, FromHost::Packet(&data)),
            };
            assert_eq!(frame.encode(&mut there), Ok(()));
            sent.push((command, data.clone()));
            let end = [Eop, Eep][random.below(2) as usize];
            let is_truncated = random.below(2) == 0;
            assert_eq!(ToHost { data: &data, end, is_truncated }.encode(bits, &mut back), Ok(()));
            returned.push((data, end, is_truncated));
        }
        let cut = 1 + random.below(100) as usize;
        let mut decoder = FromHostDecoder::new(DecoderSettings::default());
        let received = there.chunks(cut).flat_map(|chunk| from_host(&mut decoder, chunk).expect("a right stream"));
        assert!(received.eq(sent), "seed {seed}");
        let mut decoder = to_host_decoder(bits);
        let received = back.chunks(cut).flat_map(|chunk| to_host(&mut decoder, chunk).expect("a right stream"));
        assert!(received.eq(returned), "seed {seed}");
    }
}

#[test]
fn any_bytes_are_survived() {
    let (mut frames, mut errors) = (0, 0);
    for seed in 0..20_000 {
        let mut random = Random::new(seed);
        let settings = DecoderSettings { body_max: 50, status_bits: BOTH[random.below(2) as usize] };
        let (mut bridge, mut host) = (FromHostDecoder::new(settings), ToHostDecoder::new(settings));
        for _ in 0..5 {
            let mut bytes: Vec<u8> = (0..random.below(60)).map(|_| random.bits() as u8).collect();
            if bytes.len() >= HEADER_LENGTH && random.below(8) > 0 {
                let length = bytes.len() - HEADER_LENGTH;
                bytes[..HEADER_LENGTH].copy_from_slice(&[random.below(4) as u8, 0, 0, length as u8]);
            }
            for count in
                [from_host(&mut bridge, &bytes).map(|all| all.len()), to_host(&mut host, &bytes).map(|all| all.len())]
            {
                count.map_or_else(|_| errors += 1, |count| frames += count);
            }
            assert!(bridge.landing().is_none() && host.landing().is_none());
            let _ = (bridge.landed(7), host.landed(7));
        }
    }
    assert!(frames > 10_000 && errors > 10_000, "{frames} {errors}");
}
