use super::*;
use alloc::vec;
use alloc::vec::Vec;
use hodo_machine::Random;

/// Returns the bytes of a packet, with a CRC of zeroes.
fn encode(packet: &Packet<'_>) -> Vec<u8> {
    let mut room = [0; HEADERS_MAX];
    let length = Packet::encode_headers(&packet.base, &packet.extended, packet.payload.len(), &mut room);
    let padding = padding_of(packet.payload.len());
    [&room[..length], packet.payload, &[0; 3][..padding], &[0; ICRC_LENGTH]].concat()
}

#[test]
fn a_write_is_laid_out_as_the_tables_say() {
    let base = BaseHeader {
        is_solicited: true,
        asks_ack: true,
        backward_congestion: true,
        ..BaseHeader::new(Opcode::WriteOnlyImmediate, 0x01_0203, Psn::new(0xFE_FDFC))
    };
    let to = RdmaHeader { address: 0x1122_3344_5566_7788, key: 0x99AA_BBCC, length: 5 };
    let packet = Packet { base, extended: Extended::RdmaImmediate(to, 0xDDEE_FF00), payload: b"abcde" };
    let bytes = [
        0x0B, 0xF0, 0xFF, 0xFF, 0x40, 0x01, 0x02, 0x03, 0x80, 0xFE, 0xFD, 0xFC, // base transport header
        0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xAA, 0xBB, 0xCC, 0, 0, 0, 5, // where to
        0xDD, 0xEE, 0xFF, 0x00, // immediate data
        b'a', b'b', b'c', b'd', b'e', 0, 0, 0, // payload and padding
        0, 0, 0, 0, // CRC
    ];
    assert_eq!(encode(&packet), bytes);
    assert_eq!(Packet::decode(&bytes), Ok(packet));
}

#[test]
fn an_atomic_operation_and_its_acknowledgement_are_laid_out_as_the_tables_say() {
    let header = AtomicHeader { address: 0x10, key: 0x20, swap_or_add: 0x30, compare: 0x40 };
    let base = BaseHeader::new(Opcode::CompareSwap, 7, Psn::new(8));
    let swap = Packet { base, extended: Extended::Atomic(header), payload: &[] };
    let expected = [&[0; 7][..], &[0x10, 0, 0, 0, 0x20], &[0; 7], &[0x30], &[0; 7], &[0x40], &[0; 4]].concat();
    assert_eq!(encode(&swap)[BASE_LENGTH..], expected);
    let ack = AckHeader { syndrome: Syndrome::ACK, messages: 0x01_0203 };
    let base = BaseHeader::new(Opcode::AtomicAcknowledge, 7, Psn::new(8));
    let found = Packet { base, extended: Extended::AtomicAck(ack, 0x0102_0304_0506_0708), payload: &[] };
    assert_eq!(encode(&found)[BASE_LENGTH..], [0x1F, 1, 2, 3, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0]);
}

#[test]
fn what_is_no_packet_has_a_reason() {
    let right = encode(&Packet {
        base: BaseHeader::new(Opcode::SendOnlyImmediate, 1, Psn::new(2)),
        extended: Extended::Immediate(3),
        payload: b"abc",
    });
    for have in 0..right.len() - 4 {
        let need = if have < BASE_LENGTH { 16 } else { 20 };
        assert_eq!(Packet::decode(&right[..have]), Err(Malformed::Truncated { need, have }));
    }
    // A pad count without a payload, and a length that is no multiple of four.
    assert_eq!(Packet::decode(&right[..right.len() - 4]), Err(Malformed::Padding(0)));
    assert_eq!(Packet::decode(&right[..right.len() - 1]), Err(Malformed::Padding(3)));
    let changed = |at: usize, byte: u8| {
        let mut bytes = right.clone();
        bytes[at] = byte;
        Packet::decode(&bytes).map(|packet| packet.base).unwrap_err()
    };
    assert_eq!((changed(0, 0x15), changed(0, 0x64)), (Malformed::Opcode(0x15), Malformed::Opcode(0x64)));
    assert_eq!(changed(1, 0x51), Malformed::Version(1));
}

#[test]
fn payloads_are_padded_to_four_bytes() {
    assert_eq!([0, 1, 2, 3, 4, 5, 4095, 4096].map(padding_of), [0, 3, 2, 1, 0, 3, 1, 0]);
    for length in 0..=9 {
        let payload = vec![7; length];
        let base = BaseHeader::new(Opcode::SendOnly, 1, Psn::new(2));
        let packet = Packet { base, extended: Extended::None, payload: &payload };
        let bytes = encode(&packet);
        assert_eq!(bytes.len(), BASE_LENGTH + length.next_multiple_of(4) + ICRC_LENGTH);
        assert_eq!(Packet::decode(&bytes), Ok(packet));
    }
}

#[test]
fn opcodes_are_what_their_names_say() {
    let all: Vec<Opcode> = (0..=u8::MAX).filter_map(Opcode::from_code).collect();
    assert_eq!(all.len(), 24);
    for opcode in all {
        let name = opcode.name();
        assert_eq!(opcode.is_send(), name.starts_with("SEND"), "{name}");
        assert_eq!(opcode.is_write(), name.starts_with("RDMA_WRITE"), "{name}");
        assert_eq!(opcode.is_response(), name.contains("RESPONSE") || name.contains("ACKNOWLEDGE"), "{name}");
        let position = match name {
            _ if name.contains("FIRST") => Position::First,
            _ if name.contains("MIDDLE") => Position::Middle,
            _ if name.contains("LAST") => Position::Last,
            _ => Position::Only,
        };
        assert_eq!(opcode.position(), position, "{name}");
        assert_eq!(opcode.position().begins(), matches!(position, Position::First | Position::Only));
        assert_eq!(opcode.position().ends(), matches!(position, Position::Last | Position::Only));
    }
    assert_eq!(
        [(0, 1), (0, 2), (1, 3), (2, 3)].map(|(index, count)| Position::of(index, count)),
        [Position::Only, Position::First, Position::Middle, Position::Last]
    );
}

/// Any bytes decode or do not, and what decodes is encoded to the bytes that it came from, but for those that are reserved.
#[test]
fn any_bytes_decode_to_one_packet_or_none() {
    let mut random = Random::new(1);
    let mut decoded = 0;
    for _ in 0..50_000 {
        let length = random.below(80) as usize;
        let mut bytes: Vec<u8> = (0..length).map(|_| random.bits() as u8).collect();
        if let [code, flags, ..] = &mut bytes[..] {
            (*code, *flags) = (*code % 0x18, *flags & 0xF0);
        }
        let Ok(packet) = Packet::decode(&bytes) else { continue };
        decoded += 1;
        let again = encode(&packet);
        let is_reserved = |at: usize| at == 4 || at == 8;
        let end = again.len() - ICRC_LENGTH - padding_of(packet.payload.len());
        let differs = (0..end).find(|at| again[*at] != bytes[*at] && *at != 1 && !is_reserved(*at));
        assert_eq!(differs, None, "{packet:?}");
        assert_eq!(Packet::decode(&again), Ok(packet));
    }
    assert!(decoded > 5_000, "{decoded}");
}
