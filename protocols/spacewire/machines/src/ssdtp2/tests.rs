use super::*;
use crate::EndOfPacket::{Eep, Eop};
use alloc::vec;
use core::num::NonZeroUsize;
use hodo_machine::Random;

fn decoder() -> Decoder {
    Decoder::new(DecoderSettings::default())
}

/// A message that owns its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Owned(Flag, Vec<u8>);

impl Owned {
    fn of(message: Message<'_>) -> Self {
        match message {
            Message::Packet { data, end } => Owned(complete(end), data.to_vec()),
            Message::SendTimeCode(code) => Owned(Flag::SendTimeCode, vec![code]),
            Message::GotTimeCode(code) => Owned(Flag::GotTimeCode, vec![code]),
            Message::ChangeSpeed(divider) => Owned(Flag::ChangeSpeed, vec![divider]),
            Message::RegisterRead(body) => Owned(Flag::RegisterRead, body.to_vec()),
            Message::RegisterReadReply(body) => Owned(Flag::RegisterReadReply, body.to_vec()),
            Message::RegisterWrite(body) => Owned(Flag::RegisterWrite, body.to_vec()),
            Message::RegisterWriteReply(body) => Owned(Flag::RegisterWriteReply, body.to_vec()),
        }
    }

    fn message(&self) -> Message<'_> {
        let Owned(flag, body) = self;
        match flag {
            Flag::CompleteEop | Flag::Fragment => Message::Packet { data: body, end: Eop },
            Flag::CompleteEep => Message::Packet { data: body, end: Eep },
            Flag::SendTimeCode => Message::SendTimeCode(body[0]),
            Flag::GotTimeCode => Message::GotTimeCode(body[0]),
            Flag::ChangeSpeed => Message::ChangeSpeed(body[0]),
            Flag::RegisterRead => Message::RegisterRead(body),
            Flag::RegisterReadReply => Message::RegisterReadReply(body),
            Flag::RegisterWrite => Message::RegisterWrite(body),
            Flag::RegisterWriteReply => Message::RegisterWriteReply(body),
        }
    }
}

/// Returns all messages of a chunk, or the error behind them.
fn all(decoder: &mut Decoder, mut bytes: &[u8], messages: &mut Vec<Owned>) -> Result<(), Malformed> {
    while let Some(message) = decoder.next(&mut bytes)? {
        messages.push(Owned::of(message));
    }
    assert!(bytes.is_empty());
    Ok(())
}

fn decoded(bytes: &[u8], settings: DecoderSettings) -> Result<Vec<Owned>, Malformed> {
    let mut messages = Vec::new();
    all(&mut Decoder::new(settings), bytes, &mut messages).map(|()| messages)
}

/// The layout as SpaceWireRMAPLibrary sends it.
#[test]
fn frames_are_laid_out_as_the_tables_say() {
    let mut out = Vec::new();
    Message::Packet { data: &[7, 8, 9], end: Eop }.encode(&mut out);
    Message::Packet { data: &[6], end: Eep }.encode(&mut out);
    Message::SendTimeCode(0x3F).encode(&mut out);
    Message::GotTimeCode(1).encode(&mut out);
    Message::ChangeSpeed(3).encode(&mut out);
    let expected = [
        [0x00, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3].as_slice(),
        &[7, 8, 9],
        &[0x01, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        &[6],
        &[0x30, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0x3F, 0],
        &[0x31, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0],
        &[0x38, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 3, 0],
    ];
    assert_eq!(out, expected.concat());
    assert_eq!(header(Flag::Fragment, 0x01_0203), [2, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3]);
}

#[test]
fn a_packet_that_lies_whole_in_the_buffer_is_not_copied() {
    let mut out = Vec::new();
    encode_packets([(&[1, 2, 3][..], Eop), (&[4], Eep)], &mut out);
    let mut rest = &out[..];
    let mut decoder = decoder();
    let Ok(Some(Message::Packet { data, end: Eop })) = decoder.next(&mut rest) else { panic!("a packet") };
    assert!(core::ptr::eq(data.as_ptr(), &raw const out[HEADER_LENGTH]));
    assert_eq!(decoder.next(&mut rest), Ok(Some(Message::Packet { data: &[4], end: Eep })));
    assert_eq!(decoder.next(&mut rest), Ok(None));
}

#[test]
fn fragments_are_joined_around_a_time_code() {
    let fragment = |data: &[u8]| [&header(Flag::Fragment, data.len())[..], data].concat();
    let mut out = [fragment(&[1, 2]), fragment(&[]), fragment(&[3])].concat();
    Message::GotTimeCode(9).encode(&mut out);
    Message::Packet { data: &[], end: Eep }.encode(&mut out);
    Message::Packet { data: &[4], end: Eop }.encode(&mut out);
    let expected =
        [Owned(Flag::GotTimeCode, vec![9]), Owned(Flag::CompleteEep, vec![1, 2, 3]), Owned(Flag::CompleteEop, vec![4])];
    for cut in 1..=out.len() {
        let (mut decoder, mut messages) = (decoder(), Vec::new());
        out.chunks(cut).for_each(|chunk| assert_eq!(all(&mut decoder, chunk, &mut messages), Ok(())));
        assert_eq!(messages, expected, "cut {cut}");
    }
}

#[test]
fn absurd_lengths_are_refused() {
    let settings = DecoderSettings { packet_max: 100, ..DecoderSettings::default() };
    let refused = |length: u128, limit| Err(Malformed::TooLarge { length, limit });
    assert_eq!(decoded(&header(Flag::CompleteEop, 101), settings), refused(101, 100));
    let mut longest = [0xFF; 12];
    longest[..2].copy_from_slice(&[0, 0]);
    assert_eq!(decoded(&longest, settings), refused((1 << 80) - 1, 100));
    let just_over_64_bits = [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 4];
    assert_eq!(decoded(&just_over_64_bits, settings), refused((1 << 64) + 4, 100));
    assert_eq!(decoded(&header(Flag::RegisterRead, 4097), settings), refused(4097, 4096));
    let two = [&header(Flag::Fragment, 60)[..], &[0; 60], &header(Flag::Fragment, 41)].concat();
    assert_eq!(decoded(&two, settings), refused(101, 100));
    let at_the_limit = [&header(Flag::Fragment, 60)[..], &[0; 60], &header(Flag::CompleteEop, 40), &[0; 40]].concat();
    assert_eq!(decoded(&at_the_limit, settings), Ok(vec![Owned(Flag::CompleteEop, vec![0; 100])]));
}

#[test]
fn an_error_ends_the_stream() {
    let mut decoder = decoder();
    let mut bytes = &[&header(Flag::CompleteEop, 1)[..], &[5, 0x03], &[0; 30]].concat()[..];
    assert_eq!(decoder.next(&mut bytes), Ok(Some(Message::Packet { data: &[5], end: Eop })));
    assert_eq!(decoder.next(&mut bytes), Err(Malformed::UnknownFlag(3)));
    let right = [&header(Flag::CompleteEop, 1)[..], &[5]].concat();
    assert_eq!(decoder.next(&mut &right[..]), Err(Malformed::UnknownFlag(3)));
    for flag in [Flag::SendTimeCode, Flag::GotTimeCode, Flag::ChangeSpeed] {
        for length in [0, 1, 3] {
            let expected = Err(Malformed::ControlLength { flag, length: length as u128 });
            assert_eq!(decoded(&header(flag, length), DecoderSettings::default()), expected);
        }
    }
}

#[test]
fn empty_packets_are_treated_as_the_settings_say() {
    let mut bytes = header(Flag::CompleteEop, 0).to_vec();
    Message::Packet { data: &[1], end: Eop }.encode(&mut bytes);
    let one = Owned(Flag::CompleteEop, vec![1]);
    for (empty_packets, expected) in [
        (EmptyPackets::Skip, Ok(vec![one.clone()])),
        (EmptyPackets::Refuse, Err(Malformed::Empty)),
        (EmptyPackets::Deliver, Ok(vec![Owned(Flag::CompleteEop, vec![]), one])),
    ] {
        assert_eq!(decoded(&bytes, DecoderSettings { empty_packets, ..DecoderSettings::default() }), expected);
    }
}

#[test]
fn a_large_packet_lands_in_place() {
    let data: Vec<u8> = (0..1_000_000_u32).map(|number| number as u8).collect();
    let mut out = Vec::new();
    Message::Packet { data: &data, end: Eep }.encode(&mut out);
    let mut decoder = decoder();
    assert!(decoder.landing().is_none() && decoder.landed(5).is_none());
    let (front, mut rest) = out.split_at(1000);
    assert_eq!(decoder.next(&mut &*front), Ok(None));
    let mut received = None;
    while let Some(room) = decoder.landing() {
        let count = room.len().min(rest.len()).min(70_000);
        room[..count].copy_from_slice(&rest[..count]);
        rest = &rest[count..];
        received = decoder.landed(count).map(Owned::of);
    }
    if received.is_none() {
        received = decoder.next(&mut rest).expect("a right stream").map(Owned::of);
    }
    assert!(received == Some(Owned(Flag::CompleteEep, data)));
    assert!(decoder.landing().is_none());
}

/// Over many seeds: messages of all kinds, some in fragments, come out however the stream is cut and wherever it lands.
#[test]
fn messages_survive_every_cut() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let (mut out, mut sent) = (Vec::new(), Vec::new());
        for _ in 0..random.below(30) {
            let flag = Flag::ALL[random.below(Flag::ALL.len() as u64) as usize];
            let length = match flag {
                Flag::CompleteEop | Flag::CompleteEep => [40, 20_000][random.below(2) as usize],
                Flag::Fragment => continue,
                Flag::SendTimeCode | Flag::GotTimeCode | Flag::ChangeSpeed => 0,
                _ => 30,
            };
            let body: Vec<u8> = (0..=random.below(length)).map(|_| random.bits() as u8).collect();
            let owned = Owned(flag, if length == 0 { vec![body[0]] } else { body });
            let fragment = NonZeroUsize::new(1 + random.below(9000) as usize);
            match (owned.message(), fragment) {
                (Message::Packet { data, end }, Some(fragment)) if random.below(2) == 0 => {
                    encode_fragments(data, end, fragment, &mut out);
                }
                (message, _) => message.encode(&mut out),
            }
            sent.push(owned);
        }
        let (mut decoder, mut received, mut rest) = (decoder(), Vec::new(), &out[..]);
        while !rest.is_empty() {
            let longest = [20, 5000][random.below(2) as usize];
            let count = (1 + random.below(longest) as usize).min(rest.len());
            match decoder.landing() {
                Some(room) if random.below(2) == 0 => {
                    let count = count.min(room.len());
                    room[..count].copy_from_slice(&rest[..count]);
                    rest = &rest[count..];
                    received.extend(decoder.landed(count).map(Owned::of));
                }
                _ => {
                    assert_eq!(all(&mut decoder, &rest[..count], &mut received), Ok(()));
                    rest = &rest[count..];
                }
            }
        }
        assert_eq!(received, sent, "seed {seed}");
    }
}

#[test]
fn any_bytes_are_survived() {
    let mut errors = [0; 4];
    for seed in 0..20_000 {
        let mut random = Random::new(seed);
        let mut decoder = Decoder::new(DecoderSettings { packet_max: 50, empty_packets: EmptyPackets::Refuse });
        for _ in 0..10 {
            let mut bytes: Vec<u8> = (0..random.below(60)).map(|_| random.bits() as u8).collect();
            if random.below(8) > 0 && bytes.len() >= HEADER_LENGTH {
                let flag = Flag::ALL[random.below(Flag::ALL.len() as u64) as usize];
                bytes[..HEADER_LENGTH].copy_from_slice(&header(flag, random.below(30) as usize));
            }
            if let Some(room) = decoder.landing() {
                assert!(room.len() <= 50);
            }
            let _ = decoder.landed(random.below(20) as usize);
            if let Err(error) = all(&mut decoder, &bytes, &mut Vec::new()) {
                let kind = match error {
                    Malformed::UnknownFlag(_) => 0,
                    Malformed::TooLarge { .. } => 1,
                    Malformed::Empty => 2,
                    Malformed::ControlLength { .. } => 3,
                };
                errors[kind] += 1;
                break;
            }
        }
    }
    assert!(errors.iter().all(|count| *count > 10), "{errors:?}");
}
