use super::*;
use crate::EndOfPacket::{Eep, Eop};
use crate::rmap::packet::tests::patterns;
use crate::rmap::{AccessError, Command, Instruction, Ram, Region, Reply, ReplyAddress, Rights};
use crate::rmap::{Destination, Initiator, InitiatorSettings, Request};
use alloc::vec;
use hodo_machine::{Instant, Random};

const BASE: u64 = 0xA000_0000;

fn ram() -> Ram {
    Ram::new(BASE, vec![0; 64])
}

fn target() -> Target {
    Target::new(TargetSettings::default())
}

fn header(instruction: Instruction, length: u32) -> CommandHeader {
    CommandHeader {
        target: 0xFE,
        instruction,
        key: 0,
        reply_address: ReplyAddress::default(),
        initiator: 0x67,
        transaction: 9,
        address: BASE,
        length,
    }
}

fn packet(header: CommandHeader, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    Command { header, data }.encode(Crc::Standard, &mut bytes);
    bytes
}

/// Returns the status of the outcome, after checking that a reply reports it.
fn status(target: &mut Target, memory: &mut impl Memory, packet: &[u8], end: EndOfPacket) -> Status {
    let mut reply = Vec::new();
    let Outcome::Finished { status, has_reply: true } = target.receive(packet, end, memory, &mut reply) else {
        panic!("no reply to {packet:02x?}");
    };
    let replied = Reply::decode(&reply, Eop, Crc::Standard).expect("a reply that is well formed");
    assert_eq!((replied.header.status, replied.header.transaction), (status, 9));
    assert_eq!(replied.header.length as usize, replied.data.len());
    status
}

#[test]
fn the_standards_patterns_are_carried_out_in_turn() {
    let (mut target, mut memory) = (target(), ram());
    let paths: [&[u8]; 4] = [&[], &[], patterns::PATH_WRITE_REPLY_PATH, patterns::PATH_READ_REPLY_PATH];
    for ((command, reply), path) in patterns::COMMANDS.iter().zip(patterns::REPLIES).zip(paths) {
        let mut out = vec![1, 2, 3];
        let outcome = target.receive(command, Eop, &mut memory, &mut out);
        assert_eq!(outcome, Outcome::Finished { status: Status::Success, has_reply: true });
        assert_eq!(out, [&[1, 2, 3], path, reply].concat());
    }
    assert_eq!(memory.regions[0].bytes[..16], patterns::DATA);
    let statistics = target.statistics();
    assert_eq!((statistics.reads, statistics.writes, statistics.replies), (2, 2, 4));
    assert_eq!((statistics.bytes_read, statistics.bytes_written, statistics.refused()), (32, 32, 0));
}

#[test]
fn a_read_modify_write_changes_the_bits_under_the_mask() {
    let mut memory = ram();
    memory.regions[0].bytes[16..20].copy_from_slice(&[0xA0, 0xA1, 0xA2, 0xA3]);
    let mut reply = Vec::new();
    target().receive(patterns::MODIFY, Eop, &mut memory, &mut reply);
    assert_eq!(reply, patterns::MODIFY_REPLY);
    assert_eq!(memory.regions[0].bytes[16..20], [0xC0, 0x99, 0xA2, 0xA3]);
    // The other pattern finds 0xE0 in the first byte, which does not follow from the first one.
    memory.regions[0].bytes[16] = 0xE0;
    reply.clear();
    target().receive(patterns::PATH_MODIFY, Eop, &mut memory, &mut reply);
    assert_eq!(reply, [&[0x88], patterns::PATH_MODIFY_REPLY].concat());
}

#[test]
fn every_refusal_has_its_status() {
    let (read, write) = (Instruction::read(true), Instruction::write(false, true, true));
    let verified = Instruction::write(true, true, true);
    let modify = Instruction::read_modify_write();
    let good = header(write, 4);
    let settings = TargetSettings { verify_buffer: 4, length_max: 1000, ..TargetSettings::default() };
    let cases: &[(&str, CommandHeader, &[u8], Status)] = &[
        ("a write", good, &[1; 4], Status::Success),
        ("a read", header(read, 64), &[], Status::Success),
        ("no data", header(write, 0), &[], Status::Success),
        ("an unused code", header(Instruction::from_byte(0x58), 4), &[], Status::UnusedCode),
        ("another key", CommandHeader { key: 1, ..good }, &[1; 4], Status::InvalidKey),
        ("another node", CommandHeader { target: 0x40, ..good }, &[1; 4], Status::InvalidLogicalAddress),
        ("behind the end", header(read, 65), &[], Status::NotAuthorised),
        ("absurdly long", header(read, LENGTH_MAX), &[], Status::NotAuthorised),
        ("in front", CommandHeader { address: BASE - 1, ..header(read, 4) }, &[], Status::NotAuthorised),
        ("another page", CommandHeader { address: BASE | 1 << 32, ..good }, &[1; 4], Status::NotAuthorised),
        ("within the buffer", header(verified, 4), &[1; 4], Status::Success),
        ("over the buffer", header(verified, 5), &[1; 5], Status::VerifyBufferOverrun),
        ("an odd length", header(modify, 3), &[1; 3], Status::ModifyLength),
        ("ten bytes", header(modify, 10), &[1; 10], Status::ModifyLength),
        ("no bytes", header(modify, 0), &[], Status::Success),
        ("too little data", header(write, 5), &[1; 3], Status::EarlyEop),
        ("too much data", header(write, 0), &[0; 5], Status::TooMuchData),
        ("address before key", CommandHeader { key: 1, target: 0, ..good }, &[1; 4], Status::InvalidLogicalAddress),
        ("key before length", CommandHeader { key: 1, ..header(modify, 3) }, &[1; 3], Status::InvalidKey),
        ("right before data", header(write, 65), &[1; 3], Status::NotAuthorised),
    ];
    let (mut target, mut memory) = (Target::new(settings), ram());
    for (name, header, data, expected) in cases {
        assert_eq!(status(&mut target, &mut memory, &packet(*header, data), Eop), *expected, "{name}");
    }
    assert_eq!(target.statistics().with_status(Status::NotAuthorised), 5);
    assert_eq!(target.statistics().with_status(Status::InvalidKey), 2);
}

#[test]
fn the_end_of_the_packet_and_the_data_crc_are_checked() {
    let (mut target, mut memory) = (target(), ram());
    let write = packet(header(Instruction::write(false, true, true), 4), &[1; 4]);
    let read = packet(header(Instruction::read(true), 4), &[]);
    let mut changed = write.clone();
    changed[17] ^= 1;
    let mut longer = write.clone();
    longer.push(0);
    let changed_longer = [&changed[..], &[0]].concat();
    for (packet, end, expected) in [
        (&changed[..], Eop, Status::DataCrc),
        (&changed, Eep, Status::DataCrc),
        (&changed_longer, Eop, Status::DataCrc),
        (&write[..18], Eop, Status::EarlyEop),
        (&write[..18], Eep, Status::Eep),
        (&write, Eep, Status::Eep),
        (&longer, Eop, Status::TooMuchData),
        (&longer, Eep, Status::Eep),
        (&read, Eep, Status::Eep),
        (&[&read[..], &[0]].concat(), Eop, Status::TooMuchData),
    ] {
        assert_eq!(status(&mut target, &mut memory, packet, end), expected);
    }
    assert_eq!(memory.regions[0].bytes, [0; 64], "nothing was written");
}

#[test]
fn an_unverified_write_stores_damaged_data_where_devices_do() {
    let settings = TargetSettings { writes_unchecked: true, verify_buffer: 2, ..TargetSettings::default() };
    let (mut target, mut memory) = (Target::new(settings), ram());
    let unverified = packet(header(Instruction::write(false, true, true), 4), &[1, 2, 3, 4]);
    let verified = packet(header(Instruction::write(true, true, true), 2), &[5, 6]);
    assert_eq!(status(&mut target, &mut memory, &unverified[..18], Eop), Status::EarlyEop);
    assert_eq!(memory.regions[0].bytes[..4], [1, 2, 0, 0]);
    assert_eq!(status(&mut target, &mut memory, &[&unverified[..20], &[0]].concat(), Eop), Status::DataCrc);
    assert_eq!(memory.regions[0].bytes[..4], [1, 2, 3, 4]);
    assert_eq!(status(&mut target, &mut memory, &[&verified[..18], &[0]].concat(), Eop), Status::DataCrc);
    assert_eq!(memory.regions[0].bytes[..4], [1, 2, 3, 4]);
    let modify = packet(header(Instruction::read_modify_write(), 6), &[0; 6]);
    assert_eq!(status(&mut target, &mut memory, &modify, Eop), Status::VerifyBufferOverrun);
}

#[test]
fn both_ends_speak_the_other_draft() {
    let crc = Crc::DraftE;
    let mut target = Target::new(TargetSettings { crc, ..TargetSettings::default() });
    let mut initiator = Initiator::new(InitiatorSettings::default());
    let (mut command, mut reply) = (Vec::new(), Vec::new());
    let request = Request::Read { address: BASE, length: 3, increment: true };
    let to = Destination { crc, ..Destination::default() };
    assert_eq!(initiator.send(&request, &to, 5, Instant::MAX, &mut command), Ok(0));
    target.receive(&command, Eop, &mut ram(), &mut reply);
    let completion = initiator.receive(&reply, Eop).map(|completion| completion.result);
    assert_eq!(completion, Ok(Ok(&[0, 0, 0][..])));
}

#[test]
fn some_packets_get_no_reply() {
    let (mut target, mut memory) = (target(), ram());
    let read = packet(header(Instruction::read(true), 4), &[]);
    let mut changed = read.clone();
    changed[9] ^= 1;
    let reserved = packet(header(Instruction::from_byte(0xCC), 4), &[]);
    for (packet, end, expected) in [
        (&[][..], Eop, Discarded::Truncated),
        (&read[..15], Eop, Discarded::Truncated),
        (&read[..15], Eep, Discarded::Eep),
        (&changed, Eop, Discarded::HeaderCrc),
        (patterns::READ_REPLY, Eop, Discarded::Reply),
        (&[0xFE, 0x02, 0, 0, 1, 2, 3], Eop, Discarded::OtherProtocol),
        (&reserved, Eop, Discarded::ReservedType),
    ] {
        let mut reply = Vec::new();
        assert_eq!(target.receive(packet, end, &mut memory, &mut reply), Outcome::Discarded(expected));
        assert!(reply.is_empty());
    }
    let statistics = target.statistics();
    assert_eq!((statistics.truncated, statistics.eep_in_header, statistics.header_crc_errors), (2, 1, 1));
    assert_eq!((statistics.stray_replies, statistics.other_protocols, statistics.reserved_types), (1, 1, 1));

    let settings = TargetSettings { replies_to_reserved: true, ..TargetSettings::default() };
    assert_eq!(status(&mut Target::new(settings), &mut memory, &reserved, Eop), Status::UnusedCode);
}

#[test]
fn a_write_without_reply_is_silent_whatever_happens() {
    let (mut target, mut memory) = (target(), ram());
    let mut reply = Vec::new();
    for (key, expected) in [(0, Status::Success), (1, Status::InvalidKey)] {
        let reply_address = ReplyAddress::from_path(&[1, 2]).expect("a short path");
        let header = CommandHeader { key, reply_address, ..header(Instruction::write(true, false, true), 2) };
        let outcome = target.receive(&packet(header, &[7, 8]), Eop, &mut memory, &mut reply);
        assert_eq!(outcome, Outcome::Finished { status: expected, has_reply: false });
    }
    // A command code without a meaning, and without a reply bit.
    let unused = packet(header(Instruction::from_byte(0x50), 2), &[]);
    let outcome = target.receive(&unused, Eop, &mut memory, &mut reply);
    assert_eq!(outcome, Outcome::Finished { status: Status::UnusedCode, has_reply: false });
    assert!(reply.is_empty());
    assert_eq!(memory.regions[0].bytes[..3], [7, 8, 0]);
}

#[test]
fn a_failing_memory_is_a_general_error() {
    struct Broken;
    impl Memory for Broken {
        fn authorise(&self, access: &Access) -> Result<(), Refusal> {
            match access.initiator {
                0x67 => Ok(()),
                0x68 => Err(Refusal::Key),
                _ => Err(Refusal::LogicalAddress),
            }
        }
        fn read(&mut self, _: &Access, _: &mut [u8]) -> Result<(), AccessError> {
            Err(AccessError)
        }
        fn write(&mut self, _: &Access, _: &[u8]) -> Result<(), AccessError> {
            Err(AccessError)
        }
    }
    for (instruction, length) in [
        (Instruction::read(true), 8),
        (Instruction::write(false, true, true), 8),
        (Instruction::read_modify_write(), 8),
    ] {
        let data = if instruction == Instruction::read(true) { &[][..] } else { &[1; 8] };
        for (initiator, expected) in
            [(0x67, Status::General), (0x68, Status::InvalidKey), (0x69, Status::InvalidLogicalAddress)]
        {
            let header = CommandHeader { initiator, ..header(instruction, length) };
            assert_eq!(status(&mut target(), &mut Broken, &packet(header, data), Eop), expected);
        }
    }
}

#[test]
fn regions_have_rights_and_words() {
    let rights = Rights { read: true, write: true, modify: false };
    let mut memory = Ram {
        regions: vec![
            Region { address: BASE, bytes: vec![1; 8], rights: Rights::READ, word: 1 },
            Region { address: BASE + 8, bytes: vec![2; 8], rights, word: 4 },
        ],
    };
    let mut target = target();
    let at = |offset, instruction, length| CommandHeader { address: BASE + offset, ..header(instruction, length) };
    let write = |increment| Instruction::write(false, true, increment);
    let data: [u8; 8] = [10, 11, 12, 13, 14, 15, 16, 17];
    let mut status = |header, data: &[u8]| status(&mut target, &mut memory, &packet(header, data), Eop);
    assert_eq!(status(at(0, write(true), 8), &data), Status::NotAuthorised);
    assert_eq!(status(at(9, write(true), 4), &data[..4]), Status::NotAuthorised);
    assert_eq!(status(at(8, write(true), 3), &data[..3]), Status::NotAuthorised);
    assert_eq!(status(at(8, Instruction::read_modify_write(), 8), &data), Status::NotAuthorised);
    assert_eq!(status(at(4, Instruction::read(true), 8), &[]), Status::NotAuthorised);
    assert_eq!(status(at(12, write(false), 8), &data), Status::Success);
    assert_eq!(memory.regions[1].bytes, [2, 2, 2, 2, 14, 15, 16, 17]);
    let mut reply = Vec::new();
    target.receive(&packet(at(12, Instruction::read(false), 12), &[]), Eop, &mut memory, &mut reply);
    let reply = Reply::decode(&reply, Eop, Crc::Standard).expect("a reply");
    assert_eq!(reply.data, [[14, 15, 16, 17]; 3].concat());
}

#[test]
fn any_bytes_are_survived() {
    let mut random = Random::new(3);
    let settings = TargetSettings { key: None, logical_address: None, ..TargetSettings::default() };
    let (mut target, mut memory) = (Target::new(settings), ram());
    let mut finished = 0;
    for _ in 0..50_000 {
        let length = random.below(60) as usize;
        let mut bytes: Vec<u8> = (0..length).map(|_| random.bits() as u8).collect();
        if let [_, protocol, instruction, _, _, _, _, address @ .., _] = &mut bytes[..]
            && address.len() >= 8
        {
            (*protocol, *instruction) = (1, *instruction & 0x7C | 0x40);
            address[..8].copy_from_slice(&[0, 0xA0, 0, 0, random.below(70) as u8, 0, 0, random.below(12) as u8]);
            bytes[15] = Crc::Standard.of(&bytes[..15]);
            let end = bytes.len() - 1;
            bytes[end] = if end > 15 { Crc::Standard.of(&bytes[16..end]) } else { bytes[15] };
        }
        let mut reply = Vec::new();
        let end = if random.below(4) == 0 { Eep } else { Eop };
        if let Outcome::Finished { has_reply, .. } = target.receive(&bytes, end, &mut memory, &mut reply) {
            assert_eq!(has_reply, Reply::decode(&reply, Eop, Crc::Standard).is_ok());
            finished += 1;
        } else {
            assert!(reply.is_empty());
        }
    }
    assert!(finished > 10_000 && target.statistics().writes > 100, "{:?}", target.statistics());
}
