//! Hosts of far ends, and datagrams that are none of theirs.

use crate::bare;

use bare::{Bare, CAPACITY, FAR, HOST, THEIRS, ack, flow, packet};
use hodo_machine::{Address, Closed, Ends, Input, Instant, Machine, Outbox, Output, Peer};
use hodo_roce::icrc::Flow;
use hodo_roce::wire::{BaseHeader, Extended, Opcode, Packet, RdmaHeader, Syndrome};
use hodo_roce::{
    Adapter, AdapterCommand, AdapterConfig, Operation, ScatterEntry, SendRequest, State, Status, VerbError,
};
use std::net::SocketAddr;
use std::time::Duration;

/// Returns whether the adapter takes the sender of a datagram as a peer. Whatever it does, nothing goes back.
fn admits(adapter: &mut Adapter, ends: &Ends, datagram: &[u8]) -> bool {
    let mut out = Outbox::new();
    let is_admitted = adapter.admits(Instant::ZERO, ends, datagram, &mut out);
    assert!(out.is_empty());
    is_admitted
}

/// Returns the adapter's outputs up to the next time it is idle.
fn outputs(adapter: &mut Adapter) -> Vec<String> {
    let mut out = Outbox::new();
    let mut all = Vec::new();
    loop {
        match adapter.poll(Instant::ZERO, &mut out) {
            Output::Idle(_) => return all,
            Output::Send(peer) => all.push(format!("send {}", peer.0)),
            Output::Event(completion) => all.push(format!("event {}", completion.status)),
            Output::Open(peer, address) => all.push(format!("open {} {address}", peer.0)),
            Output::Close(peer) => all.push(format!("close {}", peer.0)),
        }
        out.clear();
    }
}

fn opened(adapter: &mut Adapter, peer: Peer, to: u32) {
    adapter.handle(Instant::ZERO, Input::Opened(peer, &Ends::nodes(0, to)));
}

fn connection(to: u32) -> hodo_roce::Connection {
    hodo_roce::Connection { address: Address::Node(to), ..bare::connection() }
}

fn post(adapter: &mut Adapter, number: u32) {
    adapter.post_send(number, &SendRequest::new(1, Operation::Send, &[])).unwrap();
}

#[test]
fn a_stranger_is_neither_heard_nor_answered() {
    let mut bare = Bare::new();
    bare.post_receive(1, 0, 64);
    let base = BaseHeader { asks_ack: true, ..BaseHeader::new(Opcode::SendOnly, bare.number, THEIRS) };
    let right = packet(flow(1, 0), &base, &Extended::None, b"abcd");
    // Another host, no such queue pair, a wrong CRC, no packet at all.
    assert!(!admits(&mut bare.adapter, &Ends::nodes(0, 2), &packet(flow(2, 0), &base, &Extended::None, b"abcd")));
    let elsewhere = BaseHeader { queue_pair: bare.number ^ 1 << 20, ..base };
    assert!(!admits(&mut bare.adapter, &Ends::nodes(0, 1), &packet(flow(1, 0), &elsewhere, &Extended::None, b"abcd")));
    let mut wrong = right.clone();
    wrong[14] ^= 1;
    assert!(!admits(&mut bare.adapter, &Ends::nodes(0, 1), &wrong));
    assert!(!admits(&mut bare.adapter, &Ends::nodes(0, 1), b"hello"));
    assert!(!admits(&mut bare.adapter, &Ends::nodes(0, 1), &[]));
    // The far end's host, from another of its ports.
    assert!(admits(&mut bare.adapter, &Ends::nodes(0, 1), &right));
    let port = Peer(Peer::FIRST_ACCEPTED);
    bare.adapter.handle(bare.now, Input::Opened(port, &Ends::nodes(0, 1)));
    bare.adapter.handle(bare.now, Input::Received(port, &right));
    assert_eq!(bare.take().iter().map(bare::Sent::reply).collect::<Vec<_>>(), [ack(0)]);
    assert_eq!(bare.outcomes(), [(1, Status::Success)]);
}

#[test]
fn a_host_reaches_only_its_own_queue_pairs() {
    let mut bare = Bare::new();
    let other = bare.adapter.create(&CAPACITY).unwrap();
    bare.adapter.connect(other, &connection(2)).unwrap();
    bare.take();
    let header = RdmaHeader { address: bare.address, key: bare.key, length: 4 };
    let base = BaseHeader { asks_ack: true, ..BaseHeader::new(Opcode::WriteOnly, other, THEIRS) };
    let bytes = packet(flow(1, 0), &base, &Extended::Rdma(header), b"abcd");
    bare.adapter.handle(bare.now, Input::Received(HOST, &bytes));
    assert!(bare.take().is_empty());
    assert_eq!((bare.bytes()[..4].to_vec(), bare.adapter.counters().discarded), (vec![0; 4], 1));
    bare.adapter
        .handle(bare.now, Input::Received(Peer(1), &packet(flow(2, 0), &base, &Extended::Rdma(header), b"abcd")));
    assert_eq!(bare.bytes()[..4], *b"abcd");
}

#[test]
fn packets_of_other_partitions_and_wrong_crcs_are_dropped_in_silence() {
    let mut bare = Bare::new();
    bare.post_receive(1, 0, 64);
    let base = BaseHeader { asks_ack: true, ..BaseHeader::new(Opcode::SendOnly, bare.number, THEIRS) };
    bare.hand_packet(&BaseHeader { partition_key: 0xFFFE, ..base }, &Extended::None, b"abcd");
    let mut wrong = packet(flow(1, 0), &base, &Extended::None, b"abcd");
    wrong[12] ^= 0x80;
    bare.adapter.handle(bare.now, Input::Received(HOST, &wrong));
    bare.adapter.handle(bare.now, Input::Received(HOST, &wrong[..15]));
    assert!(bare.take().is_empty());
    let counters = bare.adapter.counters();
    assert_eq!((counters.discarded, counters.wrong_icrc, counters.received), (2, 1, 0));
    // A limited member of the partition, a path that has not migrated, and congestion on the way are as good as any.
    let odd = BaseHeader { partition_key: 0x7FFF, is_migrated: false, forward_congestion: true, ..base };
    bare.hand_packet(&odd, &Extended::None, b"abcd");
    assert_eq!(bare.take().iter().map(bare::Sent::reply).collect::<Vec<_>>(), [ack(0)]);
}

#[test]
fn a_host_that_refuses_is_opened_again_and_retries_go_on() {
    let mut bare = Bare::new();
    bare.post(1, Operation::Send, 10);
    for sent in 0..8 {
        assert_eq!(bare.take().len(), 1, "{sent}");
        bare.adapter.handle(bare.now, Input::Closed(HOST, Closed::Refused));
        assert!(bare.take().is_empty());
        bare.pass_to_deadline();
    }
    assert!(bare.take().is_empty());
    assert_eq!(bare.outcomes(), [(1, Status::RetryExceeded)]);
}

#[test]
fn a_host_that_could_not_be_opened_is_tried_again_for_the_next_queue_pair() {
    let mut adapter = Adapter::new(AdapterConfig::default());
    let first = adapter.create(&CAPACITY).unwrap();
    adapter.connect(first, &connection(1)).unwrap();
    assert_eq!(outputs(&mut adapter), ["open 0 simulated node 1"]);
    post(&mut adapter, first);
    adapter.handle(Instant::ZERO, Input::Closed(Peer(0), Closed::Unreachable));
    assert_eq!(outputs(&mut adapter), ["event transport retry counter exceeded"]);
    assert_eq!(adapter.state(first), Ok(State::Error));
    // In the error state requests are flushed, with or without a host.
    post(&mut adapter, first);
    assert_eq!(outputs(&mut adapter), ["event Work Request Flushed Error"]);
    let second = adapter.create(&CAPACITY).unwrap();
    adapter.connect(second, &connection(1)).unwrap();
    post(&mut adapter, second);
    assert_eq!(outputs(&mut adapter), ["open 0 simulated node 1"]);
    assert!(!adapter.is_open(&Address::Node(1)));
    opened(&mut adapter, Peer(0), 1);
    assert!(adapter.is_open(&Address::Node(1)));
    assert_eq!(outputs(&mut adapter), ["send 0"]);
}

#[test]
fn a_host_is_closed_after_its_last_queue_pair_and_its_number_used_again() {
    let mut adapter = Adapter::new(AdapterConfig::default());
    let [first, second, third] = [0; 3].map(|_| adapter.create(&CAPACITY).unwrap());
    adapter.connect(first, &connection(1)).unwrap();
    adapter.connect(second, &connection(1)).unwrap();
    assert_eq!(outputs(&mut adapter), ["open 0 simulated node 1"]);
    adapter.destroy(first);
    assert_eq!(outputs(&mut adapter), [""; 0]);
    // The driver has not opened it yet.
    adapter.destroy(second);
    adapter.connect(third, &connection(2)).unwrap();
    post(&mut adapter, third);
    opened(&mut adapter, Peer(0), 1);
    assert_eq!(outputs(&mut adapter), ["close 0", "open 0 simulated node 2"]);
    opened(&mut adapter, Peer(0), 2);
    assert_eq!(outputs(&mut adapter), ["send 0"]);
    adapter.destroy(third);
    assert_eq!(outputs(&mut adapter), ["close 0"]);
}

#[test]
fn a_host_that_is_blocked_gets_nothing_before_it_has_drained() {
    let mut bare = Bare::new();
    bare.post(1, Operation::Send, 10);
    assert_eq!(bare.take().len(), 1);
    bare.adapter.handle(bare.now, Input::Blocked(HOST));
    bare.post(2, Operation::Send, 10);
    bare.post_receive(9, 0, 64);
    bare.hand(Opcode::SendOnly, 0, Extended::None, b"abcd");
    // Retries that cannot be sent do not count.
    for _ in 0..20 {
        assert!(bare.take().is_empty());
        bare.pass(Duration::from_millis(10));
    }
    bare.adapter.handle(bare.now, Input::Drained(HOST));
    assert_eq!(
        bare.take().iter().map(|sent| sent.base.opcode).collect::<Vec<_>>(),
        [Opcode::SendOnly, Opcode::Acknowledge]
    );
    bare.pass(Duration::ZERO);
    assert_eq!(
        bare.take().iter().map(bare::Sent::request).collect::<Vec<_>>(),
        [(Opcode::SendOnly, 0), (Opcode::SendOnly, 1)]
    );
    bare.acknowledge(1, Syndrome::ACK);
    bare.take();
    assert_eq!(bare.outcomes(), [(9, Status::Success), (1, Status::Success), (2, Status::Success)]);
    assert_eq!(bare.adapter.counters().timeouts, 1);
}

#[test]
fn a_host_that_is_blocked_holds_up_no_other() {
    let mut adapter = Adapter::new(AdapterConfig::default());
    let numbers = [1, 1, 2].map(|host| {
        let number = adapter.create(&CAPACITY).unwrap();
        adapter.connect(number, &connection(host)).unwrap();
        number
    });
    outputs(&mut adapter);
    (0..2).for_each(|peer| opened(&mut adapter, Peer(peer), peer + 1));
    adapter.handle(Instant::ZERO, Input::Blocked(Peer(0)));
    numbers.iter().for_each(|number| post(&mut adapter, *number));
    assert_eq!(outputs(&mut adapter), ["send 1"]);
    // One that fails while it waits is flushed at once, and one that is destroyed is forgotten.
    adapter.handle(Instant::ZERO, Input::Command(AdapterCommand::Fail(numbers[0])));
    assert_eq!(outputs(&mut adapter), ["event Work Request Flushed Error"]);
    adapter.destroy(numbers[1]);
    adapter.handle(Instant::ZERO, Input::Drained(Peer(0)));
    assert_eq!(outputs(&mut adapter), [""; 0]);
    // A host that is opened anew is not held back.
    adapter.handle(Instant::ZERO, Input::Blocked(Peer(1)));
    post(&mut adapter, numbers[2]);
    adapter.handle(Instant::ZERO, Input::Closed(Peer(1), Closed::Refused));
    assert_eq!(outputs(&mut adapter), ["open 1 simulated node 2"]);
    opened(&mut adapter, Peer(1), 2);
    assert_eq!(outputs(&mut adapter), ["send 1"]);
}

#[test]
fn a_refused_connection_opens_no_host() {
    let mut adapter = Adapter::new(AdapterConfig::default());
    assert_eq!(adapter.connect(9, &connection(1)), Err(VerbError::NoSuchQueuePair(9)));
    let number = adapter.create(&CAPACITY).unwrap();
    adapter.connect(number, &connection(1)).unwrap();
    assert_eq!(adapter.connect(number, &connection(2)), Err(VerbError::State(State::ReadyToSend)));
    adapter.destroy(number);
    assert_eq!(outputs(&mut adapter), [""; 0]);
}

#[test]
fn a_source_that_is_silent_makes_room_for_another() {
    let mut bare = Bare::with(AdapterConfig { sources_max: 2, ..AdapterConfig::default() }, |_| {});
    let peer = |number| Peer(Peer::FIRST_ACCEPTED + number);
    let closed = |bare: &mut Bare| {
        let all = outputs(&mut bare.adapter);
        all.into_iter().filter(|output| output.starts_with("close")).collect::<Vec<_>>()
    };
    let base = BaseHeader::new(Opcode::CongestionNotification, bare.number, THEIRS);
    let bytes = packet(flow(1, 0), &base, &Extended::None, &[0; 16]);
    for number in 0..2 {
        assert!(admits(&mut bare.adapter, &Ends::nodes(0, 1), &bytes));
        opened(&mut bare.adapter, peer(number), 1);
        bare.adapter.handle(bare.now, Input::Received(peer(number), &bytes));
    }
    // One of them goes on, and the newcomers say no more than one thing each.
    for number in 2..100 {
        bare.adapter.handle(bare.now, Input::Received(peer(0), &bytes));
        opened(&mut bare.adapter, peer(number), 1);
        assert_eq!(closed(&mut bare), [format!("close {}", peer(number - 1).0)]);
        bare.adapter.handle(bare.now, Input::Received(peer(number), &bytes));
    }
    assert_eq!(bare.adapter.counters().received, 2 * 98 + 2);
}

/// Two adapters of one host differ by their ports; whichever port a packet comes from, it is from that host.
#[test]
fn two_hosts_of_one_address_are_one() {
    let ip = |port: u16| Address::Udp(SocketAddr::from(([10, 0, 0, 1], port)));
    let local = Address::Udp(SocketAddr::from(([10, 0, 0, 2], 4791)));
    let mut adapter = Adapter::new(AdapterConfig::default());
    let numbers = [4791, 4792].map(|port| {
        let number = adapter.create(&CAPACITY).unwrap();
        adapter.connect(number, &hodo_roce::Connection { address: ip(port), ..bare::connection() }).unwrap();
        number
    });
    outputs(&mut adapter);
    let source = Peer(Peer::FIRST_ACCEPTED);
    adapter.handle(Instant::ZERO, Input::Opened(source, &Ends::new(local.clone(), ip(50_000))));
    for number in numbers {
        let base = BaseHeader::new(Opcode::SendOnly, number, THEIRS);
        let bytes = packet(Flow::new(&ip(50_000), &local), &base, &Extended::None, &[]);
        adapter.handle(Instant::ZERO, Input::Received(source, &bytes));
    }
    assert_eq!((adapter.counters().received, adapter.counters().receiver_not_ready), (2, 2));
}

#[test]
fn a_number_does_not_return_before_all_others_have_been_at_its_place() {
    let mut adapter = Adapter::new(AdapterConfig::default());
    let mut numbers: Vec<u32> = Vec::new();
    for _ in 0..1023 {
        let number = adapter.create(&CAPACITY).unwrap();
        adapter.destroy(number);
        assert!(number >= 2);
        numbers.push(number);
    }
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 1023);
}

#[test]
fn a_table_of_16384_queue_pairs_is_full() {
    let mut adapter = Adapter::new(AdapterConfig::default());
    let small =
        hodo_roce::Capacity { send_depth: 1, receive_depth: 1, send_entries: 0, receive_entries: 0, inline_bytes: 0 };
    let numbers: Vec<u32> = (0..16_384).map(|_| adapter.create(&small).unwrap()).collect();
    assert_eq!(adapter.create(&small), Err(VerbError::OverBound("queue pairs")));
    for number in &numbers {
        adapter.connect(*number, &connection(number % 3)).unwrap();
        post(&mut adapter, *number);
    }
    assert_eq!(outputs(&mut adapter).len(), 3);
    (0..3).for_each(|peer| opened(&mut adapter, Peer(peer), peer));
    assert_eq!(outputs(&mut adapter).len(), 16_384);
    numbers.iter().for_each(|number| adapter.destroy(*number));
    assert_eq!(outputs(&mut adapter).len(), 3);
}

#[test]
fn queues_without_depth_or_beyond_all_bounds_are_no_trouble() {
    let mut adapter = Adapter::new(AdapterConfig::default());
    let huge = |entries| hodo_roce::Capacity {
        send_depth: u32::MAX,
        receive_depth: u32::MAX,
        send_entries: entries,
        receive_entries: entries,
        inline_bytes: u32::MAX,
    };
    for entries in [0, 1, u32::MAX] {
        assert_eq!(adapter.create(&huge(entries)), Err(VerbError::OverBound("memory of a queue pair's queues")));
    }
    let (key, address) = adapter.register(vec![1; 8], hodo_roce::Access::LOCAL, None).unwrap();
    let shallow = hodo_roce::Capacity { send_depth: 0, receive_depth: 0, ..CAPACITY };
    let number = adapter.create(&shallow).unwrap();
    adapter.connect(number, &connection(1)).unwrap();
    let entries = [ScatterEntry { address, length: 8, key }];
    let request = SendRequest { is_inline: true, ..SendRequest::new(1, Operation::Send, &entries) };
    adapter.post_send(number, &request).unwrap();
    assert_eq!(adapter.post_send(number, &request), Err(VerbError::QueueFull(1)));
    outputs(&mut adapter);
    opened(&mut adapter, Peer(0), 1);
    let mut out = Outbox::new();
    assert!(matches!(adapter.poll(Instant::ZERO, &mut out), Output::Send(Peer(0))));
    let bytes: Vec<u8> = out.pieces().iter().flat_map(|piece| out.bytes(piece).to_vec()).collect();
    let packet = Packet::decode(&bytes).unwrap();
    assert_eq!((packet.payload, packet.base.queue_pair), (&[1; 8][..], FAR));
}
