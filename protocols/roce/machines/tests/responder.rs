//! The responder, whose far end's requests are put together by hand.

use crate::bare;

use bare::{Bare, MTU, ack, nak, not_ready};
use hodo_roce::wire::{Extended, NakCode, Opcode, Syndrome};
use hodo_roce::{AdapterConfig, State, Status};

/// Returns the reply to an atomic operation.
fn atomic_reply(psn: i32) -> (Opcode, i32, Option<Syndrome>) {
    (Opcode::AtomicAcknowledge, psn, Some(Syndrome::ACK))
}

#[test]
fn a_request_that_comes_again_is_acknowledged_and_not_carried_out_again() {
    let mut bare = Bare::new();
    bare.post_receive(1, 0, 64);
    bare.post_receive(2, 64, 64);
    for _ in 0..3 {
        assert_eq!(bare.ask(Opcode::SendOnly, 0, Extended::None, b"abcd"), [ack(0)]);
    }
    assert_eq!(bare.ask(Opcode::SendOnly, 1, Extended::None, b"efgh"), [ack(1)]);
    // The newest packet is acknowledged, whichever comes again.
    assert_eq!(bare.ask(Opcode::SendOnly, 0, Extended::None, b"abcd"), [ack(1)]);
    assert_eq!(bare.outcomes(), [(1, Status::Success), (2, Status::Success)]);
    assert_eq!(bare.adapter.counters().duplicates, 3);
    assert_eq!((bare.bytes()[..4] == *b"abcd", bare.bytes()[64..68] == *b"efgh"), (true, true));
}

#[test]
fn a_missing_packet_is_reported_once() {
    let mut bare = Bare::new();
    bare.post_receive(1, 0, 4 * MTU);
    assert_eq!(bare.ask(Opcode::SendFirst, 0, Extended::None, &[1; MTU]), [ack(0)]);
    assert_eq!(bare.ask(Opcode::SendMiddle, 2, Extended::None, &[3; MTU]), [nak(1, NakCode::SequenceError)]);
    assert_eq!(bare.ask(Opcode::SendLast, 3, Extended::None, &[4; 4]), []);
    assert_eq!(bare.ask(Opcode::SendMiddle, 1, Extended::None, &[2; MTU]), [ack(1)]);
    // The next loss is reported anew.
    assert_eq!(bare.ask(Opcode::SendLast, 3, Extended::None, &[4; 4]), [nak(2, NakCode::SequenceError)]);
    assert_eq!(bare.ask(Opcode::SendMiddle, 2, Extended::None, &[3; MTU]), [ack(2)]);
    assert_eq!(bare.ask(Opcode::SendLast, 3, Extended::None, &[4; 4]), [ack(3)]);
    assert_eq!((bare.completions[0].id, bare.completions[0].length as usize), (1, 3 * MTU + 4));
    assert!((0..4).all(|part| bare.bytes()[part * MTU] == part as u8 + 1));
    let counters = bare.adapter.counters();
    assert_eq!((counters.naks_sent, counters.out_of_order), (2, 3));
}

#[test]
fn an_atomic_operation_that_comes_again_finds_what_it_found() {
    let mut bare = Bare::new();
    for psn in 0..6 {
        let add = Extended::Atomic(bare.atomic(8, 1 << psn, 0));
        assert_eq!(bare.ask(Opcode::FetchAdd, psn, add, &[]), [atomic_reply(psn)]);
    }
    for psn in 0..6 {
        let add = Extended::Atomic(bare.atomic(8, 1 << psn, 0));
        bare.hand(Opcode::FetchAdd, psn, add, &[]);
        let found = bare.take().iter().find_map(|sent| match sent.extended {
            Extended::AtomicAck(_, original) => Some(original),
            _ => None,
        });
        // The far end has four in flight at most, so older ones are no longer asked for.
        assert_eq!(found, (psn >= 2).then_some((1 << psn) - 1), "{psn}");
    }
    assert_eq!(bare.bytes()[8..16], 63_u64.to_ne_bytes());
}

#[test]
fn a_read_that_comes_again_is_answered_again_from_any_packet_on() {
    let mut bare = Bare::new();
    (0..4).for_each(|part| bare.bytes()[part * MTU..(part + 1) * MTU].fill(part as u8));
    let read = Extended::Rdma(bare.rdma(0, 3 * MTU + 1));
    let all = [
        (Opcode::ReadResponseFirst, 0, Some(Syndrome::ACK)),
        (Opcode::ReadResponseMiddle, 1, None),
        (Opcode::ReadResponseMiddle, 2, None),
        (Opcode::ReadResponseLast, 3, Some(Syndrome::ACK)),
    ];
    assert_eq!(bare.ask(Opcode::ReadRequest, 0, read, &[]), all);
    assert_eq!(bare.ask(Opcode::ReadRequest, 0, read, &[]), all);
    let rest = Extended::Rdma(bare.rdma(2 * MTU, MTU + 1));
    bare.hand(Opcode::ReadRequest, 2, rest, &[]);
    let sent = bare.take();
    assert_eq!(sent.iter().map(bare::Sent::reply).map(|reply| reply.1).collect::<Vec<_>>(), [2, 3]);
    assert_eq!((&sent[0].payload[..], &sent[1].payload[..]), (&[2; MTU][..], &[3][..]));
    // Nothing is answered that was not asked for before.
    let longer = Extended::Rdma(bare.rdma(0, 4 * MTU + 1));
    assert_eq!(bare.ask(Opcode::ReadRequest, 0, longer, &[]), []);
    // The next request follows the read's packets.
    assert_eq!(bare.ask(Opcode::WriteOnly, 4, Extended::Rdma(bare.rdma(0, 0)), &[]), [ack(4)]);
}

#[test]
fn a_receiver_that_is_not_ready_says_so_once_for_each_try() {
    let mut bare = Bare::new();
    for _ in 0..2 {
        assert_eq!(bare.ask(Opcode::SendOnly, 0, Extended::None, b"abcd"), [not_ready(0)]);
        assert_eq!(bare.ask(Opcode::SendOnly, 1, Extended::None, b"efgh"), []);
    }
    bare.post_receive(1, 0, 64);
    assert_eq!(bare.ask(Opcode::SendOnly, 0, Extended::None, b"abcd"), [ack(0)]);
    // A write says so with the packet that takes the receive.
    let to = bare.rdma(0, MTU + 1);
    assert_eq!(bare.ask(Opcode::WriteFirst, 1, Extended::Rdma(to), &[7; MTU]), [ack(1)]);
    assert_eq!(bare.ask(Opcode::WriteLastImmediate, 2, Extended::Immediate(5), &[8]), [not_ready(2)]);
    bare.post_receive(2, 0, 0);
    assert_eq!(bare.ask(Opcode::WriteLastImmediate, 2, Extended::Immediate(5), &[8]), [ack(2)]);
    assert_eq!((bare.completions[1].immediate, bare.completions[1].length as usize), (Some(5), MTU + 1));
    assert_eq!(bare.adapter.counters().receiver_not_ready, 3);
}

/// Hands over a first packet, if there is one, and then another that may not follow it.
fn invalid(first: Option<Opcode>, opcode: Opcode, length: usize) {
    let mut bare = Bare::new();
    bare.post_receive(1, 1000, 4 * MTU);
    let extended = |bare: &Bare, opcode| match opcode {
        Opcode::WriteFirst | Opcode::WriteOnly => Extended::Rdma(bare.rdma(0, 2 * MTU)),
        _ => Extended::None,
    };
    let psn = i32::from(first.is_some());
    if let Some(opcode) = first {
        let extended = extended(&bare, opcode);
        assert_eq!(bare.ask(opcode, 0, extended, &[1; MTU]), [ack(0)]);
    }
    let extended = extended(&bare, opcode);
    let replies = bare.ask(opcode, psn, extended, &vec![2; length]);
    assert_eq!(replies, [nak(psn, NakCode::InvalidRequest)], "{first:?} {opcode:?} {length}");
    assert_eq!(bare.adapter.state(bare.number), Ok(State::Error));
    assert!(bare.bytes().iter().all(|byte| *byte != 2), "{first:?} {opcode:?} {length}");
    assert_eq!(bare.outcomes(), [(1, Status::Flushed)]);
}

#[test]
fn packets_out_of_place_or_of_a_wrong_length_are_invalid() {
    let (send, write) = (Some(Opcode::SendFirst), Some(Opcode::WriteFirst));
    for opcode in [Opcode::SendMiddle, Opcode::SendLast, Opcode::WriteMiddle, Opcode::WriteLast] {
        invalid(None, opcode, MTU);
    }
    for opcode in [Opcode::SendFirst, Opcode::SendOnly, Opcode::WriteMiddle, Opcode::WriteOnly] {
        invalid(send, opcode, MTU);
    }
    for opcode in [Opcode::WriteFirst, Opcode::WriteOnly, Opcode::SendMiddle, Opcode::SendLast] {
        invalid(write, opcode, MTU);
    }
    for (first, opcode, length) in [
        (None, Opcode::SendFirst, MTU - 1),
        (None, Opcode::SendOnly, MTU + 1),
        (send, Opcode::SendMiddle, MTU - 4),
        (send, Opcode::SendLast, 0),
        (send, Opcode::SendLast, MTU + 4),
        // The announced length of these writes is two packets.
        (None, Opcode::WriteOnly, MTU),
        (write, Opcode::WriteMiddle, MTU),
        (write, Opcode::WriteLast, MTU - 4),
    ] {
        invalid(first, opcode, length);
    }
}

#[test]
fn reads_beyond_those_that_are_served_wait_for_another_try() {
    let mut bare = Bare::with(AdapterConfig::default(), |connection| connection.reads_served = 2);
    let read = Extended::Rdma(bare.rdma(0, 4));
    (0..3).for_each(|psn| bare.hand(Opcode::ReadRequest, psn, read, &[]));
    let reply = |psn| (Opcode::ReadResponseOnly, psn, Some(Syndrome::ACK));
    assert_eq!(bare.take().iter().map(bare::Sent::reply).collect::<Vec<_>>(), [reply(0), reply(1)]);
    assert_eq!(bare.ask(Opcode::ReadRequest, 2, read, &[]), [reply(2)]);
}
