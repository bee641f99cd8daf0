use super::*;
use crate::wire::operation::Mode;
use crate::wire::samples::{in_order, requests};
use alloc::vec;

/// uHAL 2.8: one read, little-endian, filled up.
#[rustfmt::skip]
const READ: [u8; REQUEST_MIN] = [
    0xF8, 0x00, 0x00, 0x10, 0x18, 0x01, 0x02, 0x10, 0x34, 0x12, 0x00, 0x00, 0xF8, 0x00, 0x00, 0x10,
    0xF8, 0x00, 0x00, 0x10, 0xF8, 0x00, 0x00, 0x10, 0xF8, 0x00, 0x00, 0x10, 0xF8, 0x00, 0x00, 0x10,
];

/// uHAL 2.8: a read, a write, a FIFO read of 3, a FIFO write of 2, RMW bits, RMW sum.
#[rustfmt::skip]
const REQUEST: [u32; 19] = [
    0x1000_00F8, 0x1002_0118, 0x1234, 0x1004_0120, 0x1235, 0xDEAD_BEEF, 0x1006_0340, 0x10, 0x1008_0248, 0x20, 1, 2,
    0x100A_0128, 0x30, 0xFFFF_0000, 0x55, 0x100C_0130, 0x31, 7,
];

/// Replies to [`REQUEST`] that uHAL 2.8 was seen to take; it gave back these values.
#[rustfmt::skip]
const REPLIES: [u32; 13] = [
    0x1000_00FC, 0x1002_011C, 0xCAFE, 0x1004_0024, 0x1006_0344, 1, 2, 3, 0x1008_004C, 0x100A_012C, 0x9999,
    0x100C_0134, 0x8888,
];

#[test]
fn requests_of_every_kind_are_these_bytes_in_both_orders() {
    for order in Order::BOTH {
        let bytes = in_order(order, &REQUEST);
        let mut out = Vec::new();
        begin(0, order, &mut out);
        for (id, operation) in (1..).zip(requests()) {
            Request::new(id, operation).expect("1.3 has it").encode(order, &mut out);
        }
        end(&mut out, 0, order);
        assert_eq!(out, bytes, "{order}");
        let packet = Packet::decode(&bytes).expect("it is a packet");
        assert_eq!(packet.order, order);
        let mut again = Vec::new();
        packet.requests().for_each(|request| request.expect("it is a request").encode(order, &mut again));
        assert_eq!(again, bytes);
    }
}

#[test]
fn a_short_request_is_filled_up() {
    let read = Operation::<&[u32]>::Read { mode: Mode::Incrementing, address: 0x1234, words: 1 };
    let mut out = vec![9];
    begin(0, Order::Little, &mut out);
    Request::new(1, read).expect("1.3 has it").encode(Order::Little, &mut out);
    end(&mut out, 1, Order::Little);
    assert_eq!(out[1..], READ);
    let headers_alone =
        |request: &Result<Request<Words<'_>>, Error>| matches!(request, Ok(Request { operation: None, .. }));
    let packet = Packet::decode(&READ).expect("it is a packet");
    assert_eq!((packet.requests().count(), packet.requests().filter(headers_alone).count()), (7, 6));
}

#[test]
fn replies_of_every_kind_are_these_bytes_in_both_orders() {
    for order in Order::BOTH {
        let bytes = in_order(order, &REPLIES);
        let packet = Packet::decode(&bytes).expect("it is a packet");
        let replies: Vec<_> = packet.replies().map(|reply| reply.expect("it is a reply")).collect();
        let data: Vec<Vec<u32>> = replies.iter().map(|reply| reply.data.iter().collect()).collect();
        assert_eq!(data, [vec![], vec![0xCAFE], vec![], vec![1, 2, 3], vec![], vec![0x9999], vec![0x8888]]);
        let mut again = Vec::new();
        replies.iter().for_each(|reply| reply.encode(order, &mut again));
        assert_eq!(again, bytes, "{order}");
    }
}

#[test]
fn headers_carry_nine_bits_of_words_and_eleven_of_id() {
    let header = Header::request(0x7FF, Kind::Read, 0x1FF);
    assert_eq!(header.encode(), 0x1FFF_FF18);
    assert_eq!(Header::decode(0x1FFF_FF18), Ok(header));
    assert_eq!(header.answered(3, Info::Partial).encode(), 0x1FFE_031D);
}

#[test]
fn the_configuration_space_is_absent() {
    let read = Operation::<&[u32]>::Read { mode: Mode::Configuration, address: 0, words: 1 };
    assert_eq!(Request::new(0, read), None);
}

#[test]
fn what_is_out_of_place_is_named_by_its_word() {
    let first = |words: &[u32]| -> Option<Error> {
        let bytes = in_order(Order::Big, words);
        Packet::decode(&bytes).expect("it is a packet").requests().find_map(Result::err)
    };
    assert_eq!(first(&[0x1000_00F8, 0x2000_010F]), Some(Error::TransactionHeader { header: 0x2000_010F }), "2.0");
    assert_eq!(first(&[0x1000_00FC]), Some(Error::TransactionHeader { header: 0x1000_00FC }), "a reply");
    assert_eq!(first(&[0x1000_00F8, 0x1002_0038]), Some(Error::TransactionHeader { header: 0x1002_0038 }), "type");
    assert_eq!(first(&[0x1000_00F8, 0x1002_0118]), Some(Error::Truncated { need: 4, have: 0 }));
    let reply = in_order(Order::Big, &[0x1000_00F8]);
    let error = Packet::decode(&reply).expect("it is a packet").replies().next();
    assert_eq!(error, Some(Err(Error::TransactionHeader { header: 0x1000_00F8 })), "a request");
}

#[test]
fn any_bytes_never_panic_and_what_decodes_is_encoded_to_the_same() {
    let mut random = hodo_sim::Random::new(6);
    let mut decoded = 0;
    for round in 0..20_000 {
        let mut bytes = in_order(Order::BOTH[round % 2], if round % 4 < 2 { &REQUEST } else { &REPLIES });
        for _ in 0..random.below(4) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.bits() as u8;
        }
        let Ok(packet) = Packet::decode(&bytes) else { continue };
        let (mut requests, mut replies) = (Vec::new(), Vec::new());
        packet.requests().flatten().for_each(|request| request.encode(packet.order, &mut requests));
        packet.replies().flatten().for_each(|reply| reply.encode(packet.order, &mut replies));
        assert!(bytes.starts_with(&requests) && bytes.starts_with(&replies));
        decoded += requests.len() + replies.len();
    }
    assert!(decoded > 100_000);
}
