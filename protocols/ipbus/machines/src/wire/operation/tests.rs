use super::*;
use crate::wire::packet::{self, Packet};
use crate::wire::samples::{in_order, requests};
use alloc::vec;

/// uHAL 2.8: a read, a write, a FIFO read of 3, a FIFO write of 2, RMW bits, RMW sum.
#[rustfmt::skip]
const REQUEST: [u32; 19] = [
    0x2000_00F0, 0x2000_010F, 0x1234, 0x2001_011F, 0x1235, 0xDEAD_BEEF, 0x2002_032F, 0x10, 0x2003_023F, 0x20, 1, 2,
    0x2004_014F, 0x30, 0xFFFF_0000, 0x55, 0x2005_015F, 0x31, 7,
];

/// The configuration space: uHAL 2.8 reads a word of it; the write is laid out by hand.
const CONFIGURATION: [u32; 6] = [0x2000_00F0, 0x2000_016F, 3, 0x2001_017F, 4, 5];
/// Replies to [`REQUEST`] that uHAL 2.8 was seen to take; it gave back these values.
#[rustfmt::skip]
const REPLY: [u32; 13] = [
    0x2000_00F0, 0x2000_0100, 0xCAFE, 0x2001_0110, 0x2002_0320, 1, 2, 3, 0x2003_0230, 0x2004_0140, 0x9999,
    0x2005_0150, 0x8888,
];

fn configuration() -> Vec<Operation<&'static [u32]>> {
    let mode = Mode::Configuration;
    vec![Operation::Read { mode, address: 3, words: 1 }, Operation::Write { mode, address: 4, data: &[5] }]
}

#[test]
fn requests_of_every_kind_are_these_bytes_in_both_orders() {
    for order in Order::BOTH {
        for (words, operations) in [(&REQUEST[..], requests()), (&CONFIGURATION, configuration())] {
            let bytes = in_order(order, words);
            let mut out = bytes[..packet::HEADER].to_vec();
            for (id, operation) in (0..).zip(&operations) {
                let before = out.len();
                Request::new(id, *operation).encode(order, &mut out);
                let counted = operation.kind().request_words(operation.words());
                assert_eq!(out.len() - before, counted * 4, "{operation:?}");
            }
            assert_eq!(out, bytes, "{order}");
            let packet = Packet::decode(&bytes).expect("it is a packet");
            assert_eq!(packet.order, order);
            let mut again = bytes[..packet::HEADER].to_vec();
            for request in packet.requests() {
                request.expect("it is a request").encode(order, &mut again);
            }
            assert_eq!(again, bytes);
        }
    }
}

#[test]
fn replies_of_every_kind_are_these_bytes_in_both_orders() {
    for order in Order::BOTH {
        let bytes = in_order(order, &REPLY);
        let packet = Packet::decode(&bytes).expect("it is a packet");
        let replies: Vec<_> = packet.replies().map(|reply| reply.expect("it is a reply")).collect();
        let data: Vec<Vec<u32>> = replies.iter().map(|reply| reply.data.iter().collect()).collect();
        assert_eq!(data, [vec![0xCAFE], vec![], vec![1, 2, 3], vec![], vec![0x9999], vec![0x8888]]);
        let mut again = bytes[..packet::HEADER].to_vec();
        for (reply, operation) in replies.iter().zip(requests()) {
            assert_eq!(reply.header.kind, operation.kind());
            assert_eq!(1 + reply.data.len(), operation.kind().reply_words(operation.words()));
            reply.encode(order, &mut again);
        }
        assert_eq!(again, bytes, "{order}");
    }
}

#[test]
fn no_words_are_allowed() {
    let bytes = in_order(Order::Little, &[0x2000_00F0, 0x2000_000F, 0x10, 0x2001_001F, 0x10]);
    let packet = Packet::decode(&bytes).expect("it is a packet");
    assert!(packet.requests().all(|request| request.is_ok_and(|request| request.operation.words() == 0)));
    assert_eq!(packet.requests().count(), 2);
}

/// Leaves out the rest of the packet after an error; a header that cannot be read ends it.
#[test]
fn what_cannot_be_read_is_the_last() {
    let failed = in_order(Order::Big, &[0x2000_00F0, 0x2000_0100, 7, 0x2001_0204, 1, 2]);
    let replies: Vec<_> = Packet::decode(&failed).expect("it is a packet").replies().collect();
    assert!(replies[1].as_ref().is_ok_and(|reply| reply.header.info == Info::ReadError && reply.data.len() == 2));
    let bad = in_order(Order::Big, &[0x2000_00F0, 0x2000_010F, 7, 0x2001_01EF, 0x2002_010F, 8]);
    let requests: Vec<_> = Packet::decode(&bad).expect("it is a packet").requests().collect();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[1], Err(Error::TransactionHeader { header: 0x2001_01EF }));
    let reply = in_order(Order::Big, &[0x2000_00F0, 0x2000_0100, 7]);
    let mut requests = Packet::decode(&reply).expect("it is a packet").requests();
    assert_eq!(requests.next(), Some(Err(Error::TransactionHeader { header: 0x2000_0100 })), "no request");
}

#[test]
fn a_packet_that_is_cut_short_says_so() {
    let whole = in_order(Order::Little, &REQUEST);
    for length in packet::HEADER..whole.len() {
        let packet = Packet::decode(&whole[..length]).expect("it is a packet");
        let last = packet.requests().last();
        let boundary = [1, 3, 6, 8, 12, 16].map(|words| words * 4).contains(&length);
        assert_eq!(boundary, last.is_none_or(|last| last.is_ok()), "{length}");
    }
}

#[test]
fn any_bytes_never_panic_and_what_decodes_is_encoded_to_the_same() {
    let mut random = hodo_sim::Random::new(5);
    let mut decoded = 0;
    for round in 0..20_000 {
        let order = Order::BOTH[round % 2];
        let mut bytes = in_order(order, if round % 4 < 2 { &REQUEST } else { &REPLY });
        for _ in 0..random.below(4) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.bits() as u8;
        }
        let Ok(packet) = Packet::decode(&bytes) else { continue };
        let (mut requests, mut replies) = (Vec::new(), Vec::new());
        packet.requests().flatten().for_each(|request| request.encode(packet.order, &mut requests));
        packet.replies().flatten().for_each(|reply| reply.encode(packet.order, &mut replies));
        assert!(packet.body.starts_with(&requests) && packet.body.starts_with(&replies));
        decoded += requests.len() + replies.len();
    }
    assert!(decoded > 100_000);
}
