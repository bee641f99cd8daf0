use super::*;
use crate::device::{Register, Registers};
use crate::wire::packet::resend;
use alloc::vec;
use hodo_machine::{Random, Transport};

const FAILING: u32 = 0x10;
const SILENT: u32 = 0x20;
const READ_ONLY: u32 = 0x30;
const MEMORY: u32 = 0x40;
/// The words at readable addresses: this and the address.
const THERE: u32 = 0xA000_0000;

fn config(version: Version) -> DeviceConfig {
    let registers = Registers::new([
        Register::block(FAILING, 16).failing(Failure::Error),
        Register::block(SILENT, 16).failing(Failure::Timeout),
        Register::block(READ_ONLY, 16).read_only(),
        Register::fifo(0x100, 4),
    ]);
    DeviceConfig {
        buffers: 4,
        registers: registers.expect("they do not overlap"),
        configuration: vec![0xC0, 0xC1, 0xC2, 0xC3],
        ..DeviceConfig::new(Transport::Datagram, version)
    }
}

fn board(version: Version) -> Board {
    let mut board = Board::new(config(version));
    for address in (0xE..0x10).chain(READ_ONLY..0x100) {
        board.bus.poke(address, THERE + address);
    }
    board
}

/// Returns a board's answer to a packet of these words.
fn answered(board: &mut Board, order: Order, words: &[u32]) -> Vec<u32> {
    let mut request = Vec::new();
    order.append(words, &mut request);
    let mut reply = vec![9; 3];
    board.answer(&request, &mut reply);
    assert_eq!(reply.len() % WORD, 3, "whole words");
    crate::wire::Words::new(&reply[3..], order).iter().collect()
}

/// The transactions of a packet and the replies to them, the packet header left out. All were answered so by the
/// transactor of the field's firmware, simulated with a bus as the one above; but that there is something else than 0
/// for a word that could not be read.
const AS_FIRMWARE: [(&str, &[u32], &[u32]); 18] = [
    ("read", &[0x2001_030F, 0x40], &[0x2001_0300, 0xA000_0040, 0xA000_0041, 0xA000_0042]),
    (
        "write, then read",
        &[0x2001_021F, 0x50, 0x1111_1111, 0x2222_2222, 0x2002_020F, 0x50],
        &[0x2001_0210, 0x2002_0200, 0x1111_1111, 0x2222_2222],
    ),
    (
        "read whose second word fails, and one more",
        &[0x2001_030F, 0xF, 0x2002_010F, 0x40],
        &[0x2001_0204, 0xA000_000F, 0],
    ),
    ("read that fails", &[0x2001_010F, 0x10], &[0x2001_0104, 0]),
    ("read without answer, and one more", &[0x2001_030F, 0x20, 0x2002_010F, 0x40], &[0x2001_0006]),
    (
        "good read, then one without answer",
        &[0x2001_010F, 0x40, 0x2002_030F, 0x20],
        &[0x2001_0100, 0xA000_0040, 0x2002_0006],
    ),
    ("write whose second word fails", &[0x2001_031F, 0xF, 1, 2, 3, 0x2002_010F, 0x40], &[0x2001_0215]),
    ("write without answer", &[0x2001_021F, 0x20, 1, 2], &[0x2001_0017]),
    ("write to a read-only register", &[0x2001_021F, 0x30, 1, 2], &[0x2001_0115]),
    ("RMW bits", &[0x2001_014F, 0x50, 0xFFFF_FFFF, 1], &[0x2001_0140, 0xA000_0050]),
    ("RMW sum", &[0x2001_015F, 0x50, 5], &[0x2001_0150, 0xA000_0050]),
    ("RMW that cannot read", &[0x2001_014F, 0x10, 0xFFFF_FFFF, 1], &[0x2001_0044, 0]),
    ("RMW that gets no answer", &[0x2001_014F, 0x20, 0xFFFF_FFFF, 1], &[0x2001_0046]),
    ("RMW sum that cannot write", &[0x2001_015F, 0x30, 5], &[0x2001_0155, 0xA000_0030]),
    ("RMW bits that cannot write", &[0x2001_014F, 0x30, 0, 5], &[0x2001_0145, 0xA000_0030]),
    ("read of no words", &[0x2001_000F, 0x40, 0x2002_010F, 0x41], &[0x2001_0000, 0x2002_0100, 0xA000_0041]),
    ("write of no words", &[0x2001_001F, 0x40, 0x2002_010F, 0x41], &[0x2001_0010, 0x2002_0100, 0xA000_0041]),
    ("FIFO read of memory", &[0x2001_022F, 0x41], &[0x2001_0220, 0xA000_0041, 0xA000_0041]),
];

#[test]
fn transactions_are_answered_as_firmware_answers_them() {
    for order in Order::BOTH {
        for (what, request, reply) in AS_FIRMWARE {
            let packet = [&[0x2000_00F0], request].concat();
            let expected = [&[0x2000_00F0], reply].concat();
            assert_eq!(answered(&mut board(Version::V2_0), order, &packet), expected, "{what}, {order}");
        }
    }
}

/// Names such a transaction, as the field's own software device does; firmware ends its reply before it.
#[test]
fn a_transaction_that_cannot_be_read_is_named_and_ends_the_packet() {
    let good = [0x2000_00F0, 0x2001_010F, MEMORY];
    for (what, bad, reply) in [
        ("version", &[0x1002_010F, 1][..], 0x1002_0001),
        ("type", &[0x2002_028F, 1], 0x2002_0081),
        ("a reply", &[0x2002_0100, 1], 0x2002_0001),
        ("no address", &[0x2002_010F], 0x2002_0001),
        ("less data than told", &[0x2002_031F, MEMORY, 1, 2], 0x2002_0011),
        ("no OR term", &[0x2002_014F, MEMORY, 1], 0x2002_0041),
    ] {
        let mut board = board(Version::V2_0);
        let request = [&good, bad].concat();
        let expected = [0x2000_00F0, 0x2001_0100, THERE + MEMORY, reply];
        assert_eq!(answered(&mut board, Order::Big, &request), expected, "{what}");
        assert_eq!(board.bus.peek(MEMORY), THERE + MEMORY, "{what}: nothing was written");
        assert_eq!((board.counters.transactions, board.counters.failed), (2, 1));
    }
}

#[test]
fn bytes_behind_the_last_whole_word_are_passed_over() {
    let mut request = Vec::new();
    Order::Big.append(&[0x2000_00F0, 0x2001_010F, MEMORY], &mut request);
    request.extend_from_slice(&[0x20, 0x01]);
    let mut reply = Vec::new();
    board(Version::V2_0).answer(&request, &mut reply);
    assert_eq!(reply, [0x20, 0, 0, 0xF0, 0x20, 1, 1, 0, 0xA0, 0, 0, 0x40]);
}

#[test]
fn the_configuration_space_has_its_own_words_and_an_end() {
    let mut board = board(Version::V2_0);
    let header = 0x2000_00F0;
    let written = answered(&mut board, Order::Little, &[header, 0x2000_027F, 1, 7, 8, 0x2001_026F, 1]);
    assert_eq!(written, [header, 0x2000_0270, 0x2001_0260, 7, 8]);
    assert_eq!(board.bus.peek(1), 0, "memory has others");
    let over = answered(&mut board, Order::Little, &[header, 0x2000_036F, 2]);
    assert_eq!(over, [header, 0x2000_0364, 8, 0xC3, 0], "it ends behind the second");
    assert_eq!(answered(&mut board, Order::Little, &[header, 0x2000_017F, 4, 1]), [header, 0x2000_0175]);
}

#[test]
fn a_packet_with_a_number_has_to_be_the_next() {
    let mut board = board(Version::V2_0);
    let control = |id: u32| 0x2000_00F0 | id << 8;
    assert_eq!(answered(&mut board, Order::Big, &[control(2)]), []);
    assert_eq!(answered(&mut board, Order::Little, &[control(1)]), [control(1)]);
    assert_eq!(answered(&mut board, Order::Big, &[control(1)]), [], "a second time");
    assert_eq!(answered(&mut board, Order::Big, &[control(0)]), [control(0)], "one without a number always");
    assert_eq!(answered(&mut board, Order::Big, &[control(2)]), [control(2)]);
    board.next_id = 0xFFFF;
    assert_eq!(answered(&mut board, Order::Big, &[control(0xFFFF)]), [control(0xFFFF)]);
    assert_eq!(board.status().next_id, 1, "0 is left out");
    let status = board.status();
    let last = status.history[10..].iter().map(|event| event.0).collect::<Vec<_>>();
    assert_eq!(last, [0x05, 0x02, 0x05, 0x02, 0x02, 0x02]);
    assert_eq!(status.history[9].traffic(), Traffic::Reset);
    assert_eq!(status.received, [control(1), control(0), control(2), control(0xFFFF)]);
    assert_eq!(status.sent, status.received);
    assert_eq!((board.counters.packets, board.counters.refused), (4, 2));
}

#[test]
fn a_resend_brings_the_same_bytes_and_carries_nothing_out() {
    let mut board = board(Version::V2_0);
    let request = [0x2000_01F0, 0x2000_015F, MEMORY, 1, 0x2001_010F, MEMORY];
    let reply = answered(&mut board, Order::Little, &request);
    assert_eq!(reply[3..], [0x2001_0100, THERE + MEMORY + 1]);
    board.bus.poke(MEMORY, 0);
    let mut again = Vec::new();
    board.answer(&resend(1), &mut again);
    let mut expected = Vec::new();
    Order::Little.append(&reply, &mut expected);
    assert_eq!(again, expected);
    assert_eq!(board.bus.peek(MEMORY), 0);
    let mut nothing = Vec::new();
    board.answer(&resend(2), &mut nothing);
    board.answer(&resend(0), &mut nothing);
    assert!(nothing.is_empty());
    let history = board.status().history;
    assert_eq!(history[12..].iter().map(|event| event.0).collect::<Vec<_>>(), [0x02, 0x04, 0x44, 0x44]);
    assert_eq!((board.counters.resent, board.counters.not_found), (1, 2));
}

#[test]
fn so_many_replies_are_kept_as_there_are_buffers() {
    let mut board = board(Version::V2_0);
    for id in 1..=6 {
        answered(&mut board, Order::Big, &[0x2000_00F0 | id << 8]);
        answered(&mut board, Order::Big, &[0x2000_00F0]);
    }
    for id in 1..=6 {
        let mut reply = Vec::new();
        board.answer(&resend(id), &mut reply);
        assert_eq!(reply.is_empty(), id < 3, "reply {id} of the last four");
    }
}

#[test]
fn status_tells_what_was_before_it() {
    let mut board = board(Version::V2_0);
    let mut reply = Vec::new();
    board.answer(&status::REQUEST, &mut reply);
    let first = Status::decode(&reply).expect("it is a status");
    assert_eq!((first.buffer_bytes, first.buffers, first.next_id), (2040, 4, 1));
    assert_eq!(first.history[15].traffic(), Traffic::Reset);
    assert_eq!(board.status().history[15].traffic(), Traffic::Status);
    for (what, request) in [
        ("short", status::REQUEST[..60].to_vec()),
        ("long", [&status::REQUEST[..], &[0; 4]].concat()),
        ("with a number", [&[0x20, 0, 1, 0xF1], &status::REQUEST[4..]].concat()),
        ("little-endian", [&[0xF1, 0, 0, 0x20], &status::REQUEST[4..]].concat()),
        ("another type", vec![0x20, 0, 0, 0xF3]),
        ("another protocol", b"GET / HTTP/1.1".to_vec()),
        ("nothing", vec![]),
    ] {
        let mut reply = Vec::new();
        board.answer(&request, &mut reply);
        assert!(reply.is_empty(), "{what}");
        assert_eq!(board.status().history[15], Event::new(Traffic::Refused), "{what}");
    }
}

#[test]
fn a_reboot_forgets_numbers_and_replies_and_memory_only_where_it_is_to() {
    for clear_memory in [false, true] {
        let mut board = board(Version::V2_0);
        answered(&mut board, Order::Big, &[0x2000_01F0, 0x2000_011F, 0x70, 5, 0x2000_013F, 0x100, 6]);
        board.reboot(clear_memory);
        let status = board.status();
        assert_eq!((status.next_id, status.received, status.sent), (1, [0; 4], [0; 4]));
        assert_eq!((status.history[14].0, status.history[15].0), (0, 1));
        let mut reply = Vec::new();
        board.answer(&resend(1), &mut reply);
        assert!(reply.is_empty());
        let expected = if clear_memory { (0, 0) } else { (5, 6) };
        assert_eq!((board.bus.peek(0x70), board.bus.peek(0x100)), expected);
    }
}

/// Fills a buffer: neither a reply nor a request has more bytes.
#[test]
fn packets_are_as_long_as_a_buffer_at_most() {
    let mut board = Board::new(DeviceConfig { buffer_bytes: 64, ..config(Version::V2_0) });
    let header = 0x2000_00F0;
    let fits = answered(&mut board, Order::Big, &[header, 0x2000_0E0F, 0]);
    assert_eq!((fits.len(), fits[1]), (16, 0x2000_0E00));
    assert_eq!(answered(&mut board, Order::Big, &[header, 0x2000_0F0F, 0]), [header, 0x2000_0001], "one more");
    let second = answered(&mut board, Order::Big, &[header, 0x2000_0C0F, 0, 0x2001_021F, 0, 1, 2, 0x2002_001F, 0]);
    assert_eq!((second.len(), second[14], second[15]), (16, 0x2001_0210, 0x2002_0010));
    let full = answered(&mut board, Order::Big, &[header, 0x2000_0E0F, 0, 0x2001_001F, 0]);
    assert_eq!((full.len(), full[1]), (16, 0x2000_0E00), "not even an error fits");
    let long: Vec<u32> = core::iter::once(0x2000_01F0).chain([0; 16]).collect();
    assert_eq!(answered(&mut board, Order::Big, &long), []);
    assert_eq!(board.status().history[15], Event::new(Traffic::Control).dropped());
    assert_eq!((board.status().next_id, board.counters.dropped), (1, 1));
}

const BYTE_ORDER: u32 = 0x1000_00F8;

/// Requests as uHAL 2.8 makes them; the replies to the good ones are those that it takes.
#[test]
fn version_1_3_is_answered_in_its_own_way() {
    let mut board = board(Version::V1_3);
    #[rustfmt::skip]
    let cases: [(&str, &[u32], &[u32]); 10] = [
        ("read", &[0x1002_0218, 0x40], &[0x1002_021C, THERE + 0x40, THERE + 0x41]),
        ("write tells no words", &[0x1002_0220, 0x50, 1, 2], &[0x1002_0024]),
        ("RMW bits answers the word after", &[0x1002_0128, 0x50, 0, 6], &[0x1002_012C, 6]),
        ("RMW sum too", &[0x1002_0130, 0x51, 7], &[0x1002_0134, 9]),
        ("FIFO write, then read", &[0x1002_0248, 0x100, 1, 2, 0x1004_0240, 0x100], &[0x1002_004C, 0x1004_0244, 1, 2]),
        ("reserved addresses", &[0x1002_00F0], &[0x1002_00F4]),
        ("a part of a read", &[0x1002_0318, 0xE, 0x1004_0118, 0x40], &[0x1002_021D, THERE + 0xE, THERE + 0xF]),
        ("nothing of a read", &[0x1002_0318, 0x10], &[0x1002_001E]),
        ("a part of a write", &[0x1002_0320, 0xE, 1, 2, 3], &[0x1002_0225]),
        ("a type that is none", &[0x1002_0138, 0], &[0x1002_003E]),
    ];
    for order in Order::BOTH {
        for (what, request, reply) in cases {
            board.bus.poke(0x0E, THERE + 0xE);
            board.bus.poke(0x0F, THERE + 0xF);
            let packet = [&[BYTE_ORDER], request].concat();
            assert_eq!(answered(&mut board, order, &packet), [&[BYTE_ORDER | 4], reply].concat(), "{what}, {order}");
        }
    }
    assert_eq!(answered(&mut board, Order::Big, &[0x2000_00F0]), [], "version 2.0");
    assert_eq!(answered(&mut super::tests::board(Version::V2_0), Order::Big, &[BYTE_ORDER]), [], "and the other way");
}

/// Damages requests in any way: no panic, no reply over the bound, and a reply that decodes.
#[test]
fn any_bytes_are_answered_within_the_bounds() {
    let mut random = Random::new(9);
    for version in [Version::V2_0, Version::V1_3] {
        let mut board = Board::new(DeviceConfig { buffer_bytes: 200, ..config(version) });
        let mut answers = 0;
        for round in 0..50_000 {
            let order = Order::BOTH[round % 2];
            let (_, transactions, _) = AS_FIRMWARE[random.below(18) as usize];
            let mut bytes = Vec::new();
            let first = if version == Version::V2_0 { 0x2000_00F0 } else { BYTE_ORDER };
            order.append(&[&[first], transactions].concat(), &mut bytes);
            if version == Version::V1_3 {
                let kind = [0x18, 0x20, 0x28, 0x30, 0x40, 0x48, 0xF0, 0xF8][random.below(8) as usize];
                bytes[4..8].copy_from_slice(&order.bytes_32(0x1002_0000 | (random.bits() as u32 & 0x3FF) << 8 | kind));
            }
            for _ in 0..random.below(4) {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] = random.bits() as u8;
            }
            bytes.truncate(random.below(bytes.len() as u64 + 1) as usize);
            let mut reply = Vec::new();
            board.answer(&bytes, &mut reply);
            assert!(reply.len() <= 200 && reply.len() % WORD == 0);
            assert!(reply.is_empty() || Version::of(&reply).is_some_and(|(found, _)| found == version));
            answers += usize::from(!reply.is_empty());
        }
        assert!(answers > 5_000, "{answers}");
    }
}
