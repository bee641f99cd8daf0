use super::*;
use crate::EndOfPacket::{Eep, Eop};
use crate::rmap::packet::tests::patterns;
use crate::rmap::{Command, Ram, Reply, ReplyAddress, Target, TargetSettings};
use hodo_machine::Random;

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

fn initiator(outstanding_max: u16) -> Initiator {
    Initiator::new(InitiatorSettings { logical_address: 0x67, outstanding_max })
}

fn read(length: u32) -> Request<'static> {
    Request::Read { address: 0xA000_0000, length, increment: true }
}

/// Sends a request with its number as the tag and returns the command.
fn sent(initiator: &mut Initiator, request: &Request<'_>, tag: u64, deadline: Instant) -> Vec<u8> {
    let mut out = Vec::new();
    initiator.send(request, &Destination::default(), tag, deadline, &mut out).expect("a request that can be sent");
    out
}

/// Returns the reply of a target with 64 bytes at 0xA0000000.
fn reply(command: &[u8]) -> Vec<u8> {
    let (mut target, mut out) = (Target::new(TargetSettings::default()), Vec::new());
    target.receive(command, Eop, &mut Ram::new(0xA000_0000, (0..64).collect()), &mut out);
    out
}

#[test]
fn the_standards_patterns_are_sent_and_their_replies_taken() {
    let mut initiator = initiator(4);
    let path = |path, reply: &[u8]| Destination {
        path,
        reply_address: ReplyAddress::from_path(reply).expect("a short path"),
        ..Destination::default()
    };
    let destinations = [
        path(vec![], &[]),
        path(vec![], &[]),
        path(vec![0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77], patterns::PATH_WRITE_REPLY_PATH),
        path(vec![0x11, 0x22, 0x33, 0x44], patterns::PATH_READ_REPLY_PATH),
        path(vec![], &[]),
        path(vec![0x11], &[0x88]),
    ];
    let (numbers, other) = (patterns::DATA, core::array::from_fn::<u8, 16, _>(|at| 0xA0 + at as u8));
    let write = |address, data| Request::Write { address, data, increment: true, verify: false, reply: true };
    let read = |address| Request::Read { address, length: 16, increment: true };
    let modify = |data, mask| Request::ReadModifyWrite { address: 0xA000_0010, data, mask };
    let requests = [
        (write(0xA000_0000, &numbers), &[][..]),
        (read(0xA000_0000), &numbers),
        (write(0xA000_0010, &other), &[]),
        (read(0xA000_0010), &other),
        (modify(&[0xC0, 0x18, 0x02], &[0xF0, 0x3C, 0x03]), &[0xA0, 0xA1, 0xA2]),
        (modify(&[0x07, 0x02, 0xA0, 0x00], &[0x0F, 0x83, 0xE0, 0xFF]), &[0xE0, 0x99, 0xA2, 0xA3]),
    ];
    for (number, ((request, data), to)) in requests.iter().zip(&destinations).enumerate() {
        let mut out = Vec::new();
        assert_eq!(initiator.send(request, to, 70 + number as u64, at(9), &mut out), Ok(number as u16));
        assert_eq!(out, [&to.path, patterns::COMMANDS[number]].concat());
        let completion = Completion { tag: 70 + number as u64, transaction: number as u16, result: Ok(*data) };
        assert_eq!(initiator.receive(patterns::REPLIES[number], Eop), Ok(completion));
    }
    assert_eq!((initiator.statistics().succeeded, initiator.outstanding(), initiator.deadline()), (6, 0, None));
}

#[test]
fn replies_may_come_in_any_order() {
    let mut initiator = initiator(8);
    let replies: Vec<_> = (0..8).map(|tag| reply(&sent(&mut initiator, &read(tag as u32), tag, at(9)))).collect();
    assert_eq!(
        initiator.send(&read(1), &Destination::default(), 9, at(9), &mut Vec::new()),
        Err(RequestError::Full(8))
    );
    for tag in [3_u64, 7, 0, 1, 6, 2, 5, 4] {
        let completion = initiator.receive(&replies[tag as usize], Eop).expect("a reply that is expected");
        assert_eq!((completion.tag, completion.result.map(<[u8]>::len)), (tag, Ok(tag as usize)));
    }
    assert_eq!(initiator.outstanding(), 0);
}

#[test]
fn late_second_and_unknown_replies_are_told_apart() {
    let mut initiator = initiator(4);
    let late = reply(&sent(&mut initiator, &read(4), 1, at(10)));
    let second = reply(&sent(&mut initiator, &read(4), 2, at(20)));
    assert_eq!((initiator.deadline(), initiator.expire(at(9))), (Some(at(10)), None));
    let timeout = Completion { tag: 1, transaction: 0, result: Err(Failure::TimedOut) };
    assert_eq!((initiator.expire(at(10)), initiator.expire(at(10))), (Some(timeout), None));
    assert!(initiator.receive(&second, Eop).is_ok());
    assert_eq!(initiator.receive(&late, Eop), Err(Ignored::Late(0)));
    assert_eq!(initiator.receive(&second, Eop), Err(Ignored::Duplicate(1)));
    assert_eq!(initiator.receive(patterns::PATH_READ_REPLY, Eop), Err(Ignored::Unknown(3)));
    let statistics = *initiator.statistics();
    assert_eq!((statistics.late, statistics.duplicate, statistics.unknown, statistics.timed_out), (1, 1, 1, 1));
}

#[test]
fn a_reply_must_fit_its_command() {
    let mut initiator = initiator(4);
    let right = reply(&sent(&mut initiator, &read(4), 1, at(10)));
    let right = Reply::decode(&right, Eop, Crc::Standard).expect("a reply");
    let encoded = |reply: Reply<'_>| {
        let mut out = Vec::new();
        reply.encode(Crc::Standard, &mut out);
        out
    };
    for header in [
        ReplyHeader { initiator: 0x66, ..right.header },
        ReplyHeader { target: 0x66, ..right.header },
        ReplyHeader { instruction: Instruction::read(false).reply(), ..right.header },
    ] {
        assert_eq!(initiator.receive(&encoded(Reply { header, ..right }), Eop), Err(Ignored::Mismatched(0)));
    }
    let mut changed = encoded(right);
    changed[3] ^= 1;
    assert!(matches!(initiator.receive(&changed, Eop), Err(Ignored::Malformed(Malformed::HeaderCrc { .. }))));
    assert!(matches!(initiator.receive(&[], Eop), Err(Ignored::Malformed(Malformed::Truncated(_)))));
    assert!(matches!(initiator.receive(patterns::READ, Eop), Err(Ignored::Malformed(Malformed::Kind(_)))));
    assert_eq!((initiator.statistics().mismatched, initiator.statistics().malformed), (3, 3));
    assert!(initiator.receive(&encoded(right), Eop).is_ok(), "the transaction was still waiting");
}

#[test]
fn a_damaged_or_refused_transaction_fails_at_once() {
    let mut initiator = initiator(4);
    let good = |initiator: &mut Initiator| reply(&sent(initiator, &read(4), 1, at(10)));
    let result = |initiator: &mut Initiator, packet: &[u8], end| {
        initiator.receive(packet, end).expect("a reply that is expected").result.map(<[u8]>::len)
    };
    let packet = good(&mut initiator);
    assert_eq!(result(&mut initiator, &packet, Eep), Err(Failure::Damaged(DataError::Eep)));
    let packet = good(&mut initiator);
    assert_eq!(result(&mut initiator, &packet[..14], Eop), Err(Failure::Damaged(DataError::EarlyEop)));
    let mut packet = good(&mut initiator);
    packet[13] ^= 1;
    assert_eq!(result(&mut initiator, &packet, Eop), Err(Failure::Damaged(DataError::Crc)));
    let packet = reply(&sent(&mut initiator, &read(65), 1, at(10)));
    assert_eq!(result(&mut initiator, &packet, Eop), Err(Failure::Refused(Status::NotAuthorised)));
    let packet = reply(&sent(&mut initiator, &read(65), 1, at(10)));
    assert_eq!(result(&mut initiator, &packet[..12], Eop), Err(Failure::Refused(Status::NotAuthorised)));
    let command = sent(&mut initiator, &read(4), 1, at(10));
    let mut shorter = Command::decode(&command, Eop, Crc::Standard).expect("a command of ours");
    shorter.header.length = 3;
    let mut command = Vec::new();
    shorter.encode(Crc::Standard, &mut command);
    let packet = reply(&command);
    assert_eq!(result(&mut initiator, &packet, Eop), Err(Failure::Length { requested: 4, received: 3 }));
    assert_eq!((initiator.statistics().damaged, initiator.statistics().refused), (4, 2));
}

#[test]
fn requests_that_no_command_expresses_are_refused() {
    let mut initiator = initiator(4);
    let long = vec![0; 1 << 24];
    let write = |data| Request::Write { address: 0, data, increment: true, verify: false, reply: true };
    for (request, expected) in [
        (read(1 << 24), RequestError::Length(1 << 24)),
        (write(&long), RequestError::Length(1 << 24)),
        (Request::Read { address: 1 << 40, length: 1, increment: true }, RequestError::Address(1 << 40)),
        (
            Request::ReadModifyWrite { address: 0, data: &[0; 5], mask: &[0; 5] },
            RequestError::Mask { data: 5, mask: 5 },
        ),
        (
            Request::ReadModifyWrite { address: 0, data: &[0; 2], mask: &[0; 3] },
            RequestError::Mask { data: 2, mask: 3 },
        ),
    ] {
        let mut out = Vec::new();
        assert_eq!(initiator.send(&request, &Destination::default(), 0, at(1), &mut out), Err(expected));
        assert!(out.is_empty());
    }
    assert_eq!((initiator.outstanding(), initiator.statistics().commands), (0, 0));
}

#[test]
fn a_write_without_reply_does_not_wait() {
    let mut initiator = initiator(1);
    let write = Request::Write { address: 0, data: &[1], increment: true, verify: false, reply: false };
    for _ in 0..10 {
        sent(&mut initiator, &write, 1, at(1));
    }
    assert_eq!((initiator.outstanding(), initiator.deadline(), initiator.statistics().commands), (0, None, 10));
}

/// Over many seeds: replies are lost, repeated, delayed and damaged, and every request completes once, with its own data.
#[test]
fn every_request_completes_once_whatever_becomes_of_the_replies() {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let mut initiator = initiator(1 << random.below(7));
        let (mut open, mut on_the_way) = (alloc::collections::BTreeMap::new(), Vec::new());
        for step in 0..5_000_u64 {
            let length = random.below(65) as u32;
            let mut command = Vec::new();
            let deadline = at(step + 1 + random.below(100));
            if random.below(2) == 0
                && initiator.send(&read(length), &Destination::default(), step, deadline, &mut command).is_ok()
            {
                open.insert(step, length);
                on_the_way.extend((0..random.below(3)).map(|_| reply(&command)));
            }
            if !on_the_way.is_empty() && random.below(2) == 0 {
                let mut packet = on_the_way.swap_remove(random.below(on_the_way.len() as u64) as usize);
                if random.below(4) == 0 {
                    let at = random.below(packet.len() as u64) as usize;
                    packet[at] ^= 1 << random.below(8);
                }
                if let Ok(completion) = initiator.receive(&packet, Eop) {
                    let length = open.remove(&completion.tag).expect("an open request");
                    let expected: Vec<u8> = (0..length as u8).collect();
                    assert!(completion.result.is_err() || completion.result == Ok(&expected));
                }
            }
            while let Some(completion) = initiator.expire(at(step)) {
                assert!(open.remove(&completion.tag).is_some());
            }
            assert_eq!(usize::from(initiator.outstanding()), open.len());
        }
        while initiator.expire(Instant::MAX).is_some() {}
        let counts = initiator.statistics();
        assert_eq!(counts.commands, counts.succeeded + counts.refused + counts.damaged + counts.timed_out);
        assert!(counts.succeeded > 100 && counts.timed_out > 50 && counts.malformed > 10, "{counts:?}");
    }
}

#[test]
fn any_bytes_are_survived() {
    let mut random = Random::new(5);
    let mut initiator = initiator(16);
    for tag in 0..16 {
        sent(&mut initiator, &read(4), tag, at(1));
    }
    for _ in 0..50_000 {
        let mut bytes: Vec<u8> = (0..random.below(20)).map(|_| random.bits() as u8).collect();
        if bytes.len() >= 12 {
            bytes[..7].copy_from_slice(&[0x67, 1, 0x0C, 0, 0xFE, 0, random.below(32) as u8]);
            bytes[11] = Crc::Standard.of(&bytes[..11]);
        }
        let _ = initiator.receive(&bytes, if random.below(2) == 0 { Eop } else { Eep });
    }
    assert!(initiator.statistics().damaged > 0 && initiator.statistics().unknown > 0);
}
