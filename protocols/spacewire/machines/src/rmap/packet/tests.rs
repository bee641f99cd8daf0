use super::*;
use crate::EndOfPacket::{Eep, Eop};
use alloc::vec::Vec;
use hodo_machine::Random;

/// The test patterns of ECSS-E-ST-50-52C, as commands and the replies to them, without the paths in front of them.
pub(in crate::rmap) mod patterns {
    pub const DATA: [u8; 16] =
        [0x01, 0x23, 0x45, 0x67, 0x89, 0xAB, 0xCD, 0xEF, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17];
    pub const WRITE: &[u8] = &[
        0xFE, 0x01, 0x6C, 0x00, 0x67, 0x00, 0x00, 0x00, 0xA0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x10, 0x9F, 0x01, 0x23,
        0x45, 0x67, 0x89, 0xAB, 0xCD, 0xEF, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x56,
    ];
    pub const WRITE_REPLY: &[u8] = &[0x67, 0x01, 0x2C, 0x00, 0xFE, 0x00, 0x00, 0xED];
    pub const READ: &[u8] =
        &[0xFE, 0x01, 0x4C, 0x00, 0x67, 0x00, 0x01, 0x00, 0xA0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x10, 0xC9];
    pub const READ_REPLY: &[u8] = &[
        0x67, 0x01, 0x0C, 0x00, 0xFE, 0x00, 0x01, 0x00, 0x00, 0x00, 0x10, 0x6D, 0x01, 0x23, 0x45, 0x67, 0x89, 0xAB,
        0xCD, 0xEF, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x56,
    ];
    /// Sent to the path 11 22 33 44 55 66 77.
    pub const PATH_WRITE: &[u8] = &[
        0xFE, 0x01, 0x6E, 0x00, 0x00, 0x99, 0xAA, 0xBB, 0xCC, 0xDD, 0xEE, 0x00, 0x67, 0x00, 0x02, 0x00, 0xA0, 0x00,
        0x00, 0x10, 0x00, 0x00, 0x10, 0x7F, 0xA0, 0xA1, 0xA2, 0xA3, 0xA4, 0xA5, 0xA6, 0xA7, 0xA8, 0xA9, 0xAA, 0xAB,
        0xAC, 0xAD, 0xAE, 0xAF, 0xB4,
    ];
    pub const PATH_WRITE_REPLY_PATH: &[u8] = &[0x99, 0xAA, 0xBB, 0xCC, 0xDD, 0xEE, 0x00];
    pub const PATH_WRITE_REPLY: &[u8] = &[0x67, 0x01, 0x2E, 0x00, 0xFE, 0x00, 0x02, 0x1D];
    /// Sent to the path 11 22 33 44.
    pub const PATH_READ: &[u8] = &[
        0xFE, 0x01, 0x4D, 0x00, 0x99, 0xAA, 0xBB, 0xCC, 0x67, 0x00, 0x03, 0x00, 0xA0, 0x00, 0x00, 0x10, 0x00, 0x00,
        0x10, 0xF7,
    ];
    pub const PATH_READ_REPLY_PATH: &[u8] = &[0x99, 0xAA, 0xBB, 0xCC];
    pub const PATH_READ_REPLY: &[u8] = &[
        0x67, 0x01, 0x0D, 0x00, 0xFE, 0x00, 0x03, 0x00, 0x00, 0x00, 0x10, 0x52, 0xA0, 0xA1, 0xA2, 0xA3, 0xA4, 0xA5,
        0xA6, 0xA7, 0xA8, 0xA9, 0xAA, 0xAB, 0xAC, 0xAD, 0xAE, 0xAF, 0xB4,
    ];
    /// Not of the standard, which has no pattern of a read-modify-write: those of the tests of ienorand/spacewire-rmap.
    pub const MODIFY: &[u8] = &[
        0xFE, 0x01, 0x5C, 0x00, 0x67, 0x00, 0x04, 0x00, 0xA0, 0x00, 0x00, 0x10, 0x00, 0x00, 0x06, 0x9D, 0xC0, 0x18,
        0x02, 0xF0, 0x3C, 0x03, 0xE3,
    ];
    pub const MODIFY_REPLY: &[u8] =
        &[0x67, 0x01, 0x1C, 0x00, 0xFE, 0x00, 0x04, 0x00, 0x00, 0x00, 0x03, 0x4F, 0xA0, 0xA1, 0xA2, 0xD7];
    pub const PATH_MODIFY: &[u8] = &[
        0xFE, 0x01, 0x5D, 0x00, 0x00, 0x00, 0x00, 0x88, 0x67, 0x00, 0x05, 0x00, 0xA0, 0x00, 0x00, 0x10, 0x00, 0x00,
        0x08, 0xC6, 0x07, 0x02, 0xA0, 0x00, 0x0F, 0x83, 0xE0, 0xFF, 0x1D,
    ];
    pub const PATH_MODIFY_REPLY: &[u8] =
        &[0x67, 0x01, 0x1D, 0x00, 0xFE, 0x00, 0x05, 0x00, 0x00, 0x00, 0x04, 0xFF, 0xE0, 0x99, 0xA2, 0xA3, 0x7D];

    pub const COMMANDS: [&[u8]; 6] = [WRITE, READ, PATH_WRITE, PATH_READ, MODIFY, PATH_MODIFY];
    pub const REPLIES: [&[u8]; 6] =
        [WRITE_REPLY, READ_REPLY, PATH_WRITE_REPLY, PATH_READ_REPLY, MODIFY_REPLY, PATH_MODIFY_REPLY];
}

fn encoded(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(&mut bytes);
    bytes
}

#[test]
fn the_standards_patterns_are_decoded_and_encoded() {
    for bytes in patterns::COMMANDS {
        let command = Command::decode(bytes, Eop, Crc::Standard).expect("a pattern of the standard");
        assert_eq!((command.header.target, command.header.initiator), (0xFE, 0x67));
        assert_eq!(encoded(|out| command.encode(Crc::Standard, out)), bytes);
    }
    for bytes in patterns::REPLIES {
        let reply = Reply::decode(bytes, Eop, Crc::Standard).expect("a pattern of the standard");
        assert_eq!((reply.header.target, reply.header.initiator), (0xFE, 0x67));
        assert_eq!(reply.header.status, Status::Success);
        assert_eq!(encoded(|out| reply.encode(Crc::Standard, out)), bytes);
    }
}

#[test]
fn a_write_has_its_fields() {
    let write = Command::decode(patterns::PATH_WRITE, Eop, Crc::Standard).expect("a pattern of the standard");
    let header = write.header;
    assert_eq!(header.instruction.operation(), Some(Operation::Write { verify: false }));
    assert!(header.instruction.requests_reply() && header.instruction.increments());
    assert_eq!((header.key, header.transaction, header.address, header.length), (0, 2, 0xA000_0010, 16));
    assert_eq!(header.reply_address.path(), patterns::PATH_WRITE_REPLY_PATH);
    assert_eq!(write.data, core::array::from_fn::<u8, 16, _>(|at| 0xA0 + at as u8));
}

#[test]
fn a_reply_address_is_a_path_without_the_zeros_in_front() {
    let path_of = |field: &[u8]| ReplyAddress::from_field(field).path().to_vec();
    assert_eq!(path_of(&[]), []);
    assert_eq!(path_of(&[0, 0, 0, 0]), [0]);
    assert_eq!(path_of(&[0, 0, 0, 0, 0, 0, 0, 0]), [0]);
    assert_eq!(path_of(&[0, 0, 3, 0]), [3, 0]);
    let field_of = |path: &[u8]| ReplyAddress::from_path(path).map(|address| address.field().to_vec());
    assert_eq!(field_of(&[]), Some([].to_vec()));
    assert_eq!(field_of(&[0]), Some([0, 0, 0, 0].to_vec()));
    assert_eq!(field_of(&[1, 2, 3, 4, 5]), Some([0, 0, 0, 1, 2, 3, 4, 5].to_vec()));
    assert_eq!((field_of(&[0, 1]), field_of(&[1; 13])), (None, None));
    assert_eq!(field_of(&[1; 12]), Some([1; 12].to_vec()));
}

/// The valid codes of 5.1.4 are 0010, 0011, 0111 and 1000 to 1111.
#[test]
fn command_codes_have_their_meaning() {
    for code in 0..16_u8 {
        let instruction = Instruction::from_byte(0x40 | code << 2);
        let expected = match code {
            0b0010 | 0b0011 => Some(Operation::Read),
            0b0111 => Some(Operation::ReadModifyWrite),
            0b1000..=0b1011 => Some(Operation::Write { verify: false }),
            0b1100..=0b1111 => Some(Operation::Write { verify: true }),
            _ => None,
        };
        assert_eq!(instruction.operation(), expected, "{code:04b}");
    }
    assert_eq!(
        [0x00, 0x40, 0x80, 0xC0].map(|byte| Instruction::from_byte(byte).kind()),
        [Kind::Reply, Kind::Command, Kind::Reserved, Kind::Reserved]
    );
    assert_eq!(Instruction::read(true).byte(), 0x4C);
    assert_eq!(Instruction::write(false, true, true).byte(), 0x6C);
    assert_eq!(Instruction::read_modify_write().byte(), 0x5C);
    assert_eq!(Instruction::write(true, false, false).byte(), 0x70);
}

#[test]
fn every_cut_and_every_changed_byte_is_noticed() {
    fn decode(bytes: &[u8], end: EndOfPacket) -> Result<Command<'_>, Malformed> {
        Command::decode(bytes, end, Crc::Standard)
    }
    for length in 0..patterns::WRITE.len() {
        let need = FIXED_WRITE_HEADER;
        let expected = if length < need {
            Malformed::Truncated(Truncated { need, have: length })
        } else {
            Malformed::Data(DataError::EarlyEop)
        };
        assert_eq!(decode(&patterns::WRITE[..length], Eop), Err(expected), "{length} bytes");
    }
    for at in 0..patterns::WRITE.len() {
        let mut bytes = patterns::WRITE.to_vec();
        bytes[at] ^= 0x10;
        assert!(decode(&bytes, Eop).is_err(), "byte {at}");
    }
    let longer = [patterns::WRITE, &[0]].concat();
    assert_eq!(decode(&longer, Eop), Err(DataError::TooMuch.into()));
    assert_eq!(decode(&longer, Eep), Err(DataError::Eep.into()));
    assert_eq!(decode(patterns::WRITE, Eep), Err(DataError::Eep.into()));
    assert_eq!(decode(&patterns::WRITE[..20], Eep), Err(DataError::Eep.into()));
    assert_eq!(decode(&[patterns::READ, &[0]].concat(), Eop), Err(DataError::TooMuch.into()));
    assert_eq!(decode(patterns::READ, Eep), Err(DataError::Eep.into()));
    assert_eq!(decode(&[0xFE, 0x02, 0, 0], Eop), Err(Malformed::Protocol(2)));
    assert!(matches!(decode(patterns::READ_REPLY, Eop), Err(Malformed::Kind(_))));
    assert!(matches!(Reply::decode(patterns::READ, Eop, Crc::Standard), Err(Malformed::Kind(_))));
}

const FIXED_WRITE_HEADER: usize = 16;

#[test]
fn the_other_draft_has_another_crc() {
    let header = CommandHeader::decode(patterns::READ, Crc::Standard).expect("a pattern of the standard").0;
    let bytes = encoded(|out| header.encode(Crc::DraftE, out));
    assert_eq!(CommandHeader::decode(&bytes, Crc::DraftE), Ok((header, &[][..])));
    assert!(matches!(CommandHeader::decode(&bytes, Crc::Standard), Err(Malformed::HeaderCrc { .. })));
}

#[test]
fn a_path_is_split_off() {
    assert_eq!(split_path(&[1, 31, 32, 1]), (&[1, 31][..], &[32, 1][..]));
    assert_eq!(split_path(&[]), (&[][..], &[][..]));
    assert_eq!(split_path(&[3]), (&[3][..], &[][..]));
}

fn random_bytes(random: &mut Random, length: usize) -> Vec<u8> {
    (0..length).map(|_| random.bits() as u8).collect()
}

#[test]
fn commands_and_replies_survive_the_wire() {
    let mut random = Random::new(1);
    for _ in 0..20_000 {
        let crc = [Crc::Standard, Crc::DraftE][random.below(2) as usize];
        let instruction = Instruction::from_byte(random.bits() as u8 & 0x3F);
        let field = random_bytes(&mut random, instruction.reply_address_length());
        let length = random.below(40) as usize;
        let data = random_bytes(&mut random, length);
        let header = CommandHeader {
            target: random.bits() as u8,
            instruction: Instruction::from_byte(instruction.byte() | 0x40),
            key: random.bits() as u8,
            reply_address: ReplyAddress::from_field(&field),
            initiator: random.bits() as u8,
            transaction: random.bits() as u16,
            address: random.bits() & ADDRESS_MAX,
            length: length as u32,
        };
        let has_data = matches!(instruction.operation(), Some(Operation::Write { .. } | Operation::ReadModifyWrite));
        let command = Command { header, data: if has_data { &data } else { &[] } };
        let bytes = encoded(|out| command.encode(crc, out));
        assert_eq!(Command::decode(&bytes, Eop, crc), Ok(command));

        let header = ReplyHeader {
            initiator: header.initiator,
            instruction,
            status: Status::from_code(random.bits() as u8),
            target: header.target,
            transaction: header.transaction,
            length: if instruction.is_write() { 0 } else { length as u32 },
        };
        let reply = Reply { header, data: if instruction.is_write() { &[] } else { &data } };
        let bytes = encoded(|out| reply.encode(crc, out));
        assert_eq!(Reply::decode(&bytes, Eop, crc), Ok(reply));
    }
}

#[test]
fn any_bytes_decode_to_one_packet_or_none() {
    let mut random = Random::new(2);
    let mut decoded = 0;
    for _ in 0..50_000 {
        let length = [random.below(40), 8, 16][random.below(3) as usize] as usize;
        let mut bytes = random_bytes(&mut random, length);
        if let [_, protocol, ..] = &mut bytes[..] {
            *protocol = PROTOCOL;
        }
        // A right header CRC, so that what is behind it comes under test.
        for at in [8, 12, 16] {
            if random.below(3) == 0 && bytes.len() >= at {
                bytes[at - 1] = Crc::Standard.of(&bytes[..at - 1]);
            }
        }
        for end in [Eop, Eep] {
            if let Ok(command) = Command::decode(&bytes, end, Crc::Standard) {
                assert_eq!(encoded(|out| command.encode(Crc::Standard, out)), bytes);
                decoded += 1;
            }
            if let Ok(reply) = Reply::decode(&bytes, end, Crc::Standard) {
                let again = encoded(|out| reply.encode(Crc::Standard, out));
                assert_eq!(Reply::decode(&again, Eop, Crc::Standard), Ok(reply));
                decoded += 1;
            }
        }
    }
    assert!(decoded > 100, "{decoded}");
}
