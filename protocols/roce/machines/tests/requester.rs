//! The requester, whose far end's responses are put together by hand.

use crate::bare;

use bare::{Bare, MTU};
use hodo_machine::{Input, Machine};
use hodo_roce::wire::{AckHeader, Extended, Opcode, Syndrome};
use hodo_roce::{AckTimeout, AdapterConfig, Operation, SendRequest, Status};
use std::time::Duration;

fn opcodes(sent: &[bare::Sent]) -> Vec<(Opcode, i32)> {
    sent.iter().map(bare::Sent::request).collect()
}

#[test]
fn sends_what_was_posted_while_replies_went_out() {
    let mut bare = Bare::new();
    bare.post_receive(1, 0, 64);
    bare.hand(Opcode::SendOnly, 0, Extended::None, b"abcd");
    assert_eq!(bare.take_one().unwrap().reply(), bare::ack(0));
    bare.post(2, Operation::Send, 10);
    assert_eq!(opcodes(&bare.take()), [(Opcode::SendOnly, 0)]);
}

#[test]
fn a_local_error_fails_a_request_once_those_before_it_are_complete() {
    let mut bare = Bare::new();
    bare.post(1, Operation::Send, 10);
    let entries = [hodo_roce::ScatterEntry { key: 5, ..bare.entry(0, 10) }];
    bare.adapter.post_send(bare.number, &SendRequest::new(2, Operation::Send, &entries)).unwrap();
    bare.post(3, Operation::Send, 10);
    assert_eq!(opcodes(&bare.take()), [(Opcode::SendOnly, 0)]);
    // What is before it is still sent again.
    bare.pass_to_deadline();
    assert_eq!(opcodes(&bare.take()), [(Opcode::SendOnly, 0)]);
    bare.acknowledge(0, Syndrome::ACK);
    bare.take();
    assert_eq!(bare.outcomes(), [(1, Status::Success), (2, Status::LocalProtection), (3, Status::Flushed)]);
}

#[test]
fn a_fenced_request_is_sent_again_while_a_read_behind_it_is_in_flight() {
    let mut bare = Bare::new();
    let entries = [bare.entry(0, 10)];
    let request = SendRequest { has_fence: true, ..SendRequest::new(1, Operation::Send, &entries) };
    bare.adapter.post_send(bare.number, &request).unwrap();
    bare.post(2, Operation::Read(bare::remote(0)), 10);
    let both = [(Opcode::SendOnly, 0), (Opcode::ReadRequest, 1)];
    assert_eq!(opcodes(&bare.take()), both);
    bare.pass_to_deadline();
    assert_eq!(opcodes(&bare.take()), both);
}

/// A responder answers no read again that begins before the end of what has arrived there and ends behind it.
#[test]
fn a_read_is_asked_for_again_no_further_than_before() {
    let config = AdapterConfig { window_bytes: 8 * MTU as u32, ..AdapterConfig::default() };
    let mut bare = Bare::with(config, |_| {});
    bare.post(1, Operation::Send, 3 * MTU);
    bare.post(2, Operation::Read(bare::remote(0)), 12 * MTU);
    // Returns the first packet and the packets of the request to read among those that were sent.
    let asked = |bare: &mut Bare| {
        let sent = bare.take();
        let Extended::Rdma(header) = sent.last()?.extended else { return None };
        assert_eq!(header.address, bare::remote(0).address + (sent.last()?.request().1 - 3) as u64 * MTU as u64);
        Some((sent.last()?.request().1, header.length as usize / MTU))
    };
    assert_eq!(asked(&mut bare), Some((3, 5)));
    bare.acknowledge(2, Syndrome::ACK);
    assert_eq!(asked(&mut bare), None);
    // Timeouts narrow the window.
    bare.pass_to_deadline();
    assert_eq!(asked(&mut bare), Some((3, 4)));
    bare.pass_to_deadline();
    assert_eq!(asked(&mut bare), Some((3, 2)));
    let respond =
        |bare: &mut Bare, psn| bare.respond(Opcode::ReadResponseMiddle, psn, Extended::None, &[psn as u8; MTU]);
    respond(&mut bare, 3);
    assert_eq!(asked(&mut bare), None);
    // It has widened again: the request goes on to its next part only where the last one ended, to where the one before ended.
    respond(&mut bare, 4);
    assert_eq!(asked(&mut bare), Some((5, 2)));
    bare.pass_to_deadline();
    assert_eq!(asked(&mut bare), Some((5, 2)));
    (5..7).for_each(|psn| respond(&mut bare, psn));
    assert_eq!(asked(&mut bare), Some((7, 1)));
    // From here on nothing was asked for before.
    respond(&mut bare, 7);
    let (first, packets) = asked(&mut bare).unwrap();
    assert!(first == 8 && packets > 2);
    assert_eq!(bare.bytes()[..5 * MTU].chunks(MTU).map(|part| part[0]).collect::<Vec<_>>(), [3, 4, 5, 6, 7]);
}

#[test]
fn an_acknowledgement_ends_the_wait_for_the_receiver() {
    let mut bare = Bare::new();
    bare.post(1, Operation::Send, 10);
    bare.take();
    bare.acknowledge(0, Syndrome::ReceiverNotReady(31));
    assert!(bare.take().is_empty());
    bare.acknowledge(0, Syndrome::ACK);
    bare.post(2, Operation::Send, 10);
    assert_eq!(opcodes(&bare.take()), [(Opcode::SendOnly, 1)]);
    assert_eq!(bare.outcomes(), [(1, Status::Success)]);
}

#[test]
fn a_far_end_that_says_it_is_not_ready_is_not_lost() {
    let mut bare = Bare::with(AdapterConfig::default(), |connection| connection.retries = 2);
    bare.post(1, Operation::Send, 10);
    for _ in 0..10 {
        bare.take();
        bare.pass_to_deadline();
        bare.take();
        bare.acknowledge(0, Syndrome::ReceiverNotReady(1));
        bare.take();
        bare.pass_to_deadline();
    }
    bare.take();
    bare.acknowledge(0, Syndrome::ACK);
    bare.take();
    assert_eq!(bare.outcomes(), [(1, Status::Success)]);
}

#[test]
fn an_atomic_response_is_none_to_a_read() {
    let mut bare = Bare::new();
    bare.post(1, Operation::Read(bare::remote(0)), 8);
    bare.take();
    let header = AckHeader { syndrome: Syndrome::ACK, messages: 1 };
    bare.respond(Opcode::AtomicAcknowledge, 0, Extended::AtomicAck(header, 5), &[]);
    bare.take();
    assert_eq!(bare.outcomes(), [(1, Status::BadResponse)]);
}

#[test]
fn requests_posted_in_the_error_state_are_bounded_by_the_queue() {
    let mut bare = Bare::new();
    bare.adapter.handle(bare.now, Input::Command(hodo_roce::AdapterCommand::Fail(bare.number)));
    let entries = [bare.entry(0, 10)];
    let request = SendRequest::new(1, Operation::Send, &entries);
    let posted = (0..1000).take_while(|_| bare.adapter.post_send(bare.number, &request).is_ok()).count();
    assert_eq!(posted, bare::CAPACITY.send_depth as usize);
    bare.take();
    assert_eq!(bare.outcomes().len(), posted);
    assert_eq!(bare.adapter.post_send(bare.number, &request), Ok(()));
}

#[test]
fn timeouts_that_are_measured_do_not_grow_while_packets_arrive() {
    let least = Duration::from_millis(1);
    let mut bare = Bare::with(AdapterConfig::default(), |connection| {
        connection.timeout = AckTimeout::Measured(least);
    });
    bare.post(0, Operation::Send, 10);
    bare.take();
    bare.pass(Duration::from_micros(10));
    bare.acknowledge(0, Syndrome::ACK);
    // Each packet has to be sent twice.
    for id in 1..20 {
        bare.post(id, Operation::Send, 10);
        bare.take();
        let waited = bare.pass_to_deadline();
        assert!(waited <= 32 * least, "{waited:?} for {id}");
        bare.take();
        bare.pass(Duration::from_micros(10));
        bare.acknowledge(id as i32, Syndrome::ACK);
        bare.take();
    }
}
