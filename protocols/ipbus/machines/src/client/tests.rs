use super::*;
use crate::wire::packet::Packet;
use crate::wire::status::{self, Status};
use crate::wire::transaction::Info;
use crate::wire::{WORD, chunk};
use alloc::vec;
use core::net::Ipv4Addr;
use hodo_machine::{Ends, Random};

const TARGET: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 1, 2, 3), 50001);

fn client(path: Path, version: Version) -> Client {
    Client::new(ClientConfig { order: Order::Big, ..ClientConfig::new(path, version, Address::Node(1)) })
}

/// Creates a client whose link is there.
fn opened(path: Path, version: Version) -> Client {
    let mut client = client(path, version);
    let (sent, events) = pump(&mut client);
    assert!(sent.is_empty() && events.is_empty());
    client.handle(Instant::ZERO, Input::Opened(PEER, &Ends::nodes(0, 1)));
    if version == Version::V1_3 {
        assert_eq!(pump(&mut client).0[0][..WORD], Order::NATIVE.bytes_32(0x1002_00F8), "a packet that does nothing");
        // From a device that knows big-endian words only.
        receive(&mut client, &bytes(&[0x1002_00FC]));
    } else if path == UDP {
        let (sent, _) = pump(&mut client);
        assert_eq!(sent, [status::REQUEST.to_vec()]);
        let status = Status { buffer_bytes: 2040, buffers: 16, next_id: 1, ..Status::default() };
        receive(&mut client, &status.encode());
        let (sent, _) = pump(&mut client);
        assert_eq!(sent.len(), 1, "a read of no words");
        receive(&mut client, &greeted(&sent[0]));
    }
    assert_eq!(pump(&mut client).1, [Event::Ready]);
    client
}

/// Returns the reply to a greeting: reads of no words.
pub(super) fn greeted(packet: &[u8]) -> Vec<u8> {
    let headers =
        packet[WORD..].chunks(2 * WORD).map(|read| Order::NATIVE.u32(read[..WORD].try_into().unwrap()) & !0xF);
    let words: Vec<u32> = headers.collect();
    let mut reply = packet[..WORD].to_vec();
    Order::NATIVE.append(&words, &mut reply);
    reply
}

/// Returns the client's datagrams and events.
fn pump(client: &mut Client) -> (Vec<Vec<u8>>, Vec<Event>) {
    let (mut sent, mut events, mut out) = (Vec::new(), Vec::new(), Outbox::new());
    for _ in 0..10_000 {
        match client.poll(Instant::ZERO, &mut out) {
            Output::Send(_) => {
                sent.push(out.pieces().iter().flat_map(|piece| out.bytes(piece).to_vec()).collect());
                out.clear();
            }
            Output::Event(event) => events.push(event),
            Output::Open(..) | Output::Close(_) => {}
            Output::Idle(_) => return (sent, events),
        }
    }
    panic!("it never comes to rest");
}

fn receive(client: &mut Client, bytes: &[u8]) {
    client.handle(Instant::ZERO, Input::Received(PEER, bytes));
}

fn ask(client: &mut Client, commands: impl IntoIterator<Item = Command>) {
    for command in commands {
        client.handle(Instant::ZERO, Input::Command(command));
    }
}

fn block(tag: u64, words: u32) -> Command {
    Command::ReadBlock { tag, mode: Mode::Incrementing, address: 0x100, words, into: Vec::new() }
}

fn bytes(words: &[u32]) -> Vec<u8> {
    let mut bytes = Vec::new();
    Order::Big.append(words, &mut bytes);
    bytes
}

fn framed(packet: &[u8]) -> Vec<u8> {
    let mut framed = Vec::new();
    let begun = chunk::begin(&mut framed);
    framed.extend_from_slice(packet);
    chunk::end(&mut framed, begun);
    framed
}

fn done(tag: u64, data: Data) -> Event {
    Event::Done { tag, data }
}

const UDP: Path = Path::Udp { reliable: true };
const WITHOUT_IDS: Path = Path::Udp { reliable: false };

#[test]
fn operations_are_concatenated_until_they_are_flushed() {
    let mut client = opened(UDP, Version::V2_0);
    ask(
        &mut client,
        [
            Command::Read { tag: 10, address: 0x1234 },
            Command::Write { tag: 11, address: 0x20, word: 0xCAFE },
            Command::RmwBits { tag: 12, address: 0x30, and: 0xFF, or: 0x100 },
            Command::RmwSum { tag: 13, address: 0x31, addend: 3 },
        ],
    );
    assert_eq!(pump(&mut client), (vec![], vec![]), "nothing is sent before it is flushed, or fills a packet");
    ask(&mut client, [Command::Flush]);
    let (sent, _) = pump(&mut client);
    #[rustfmt::skip]
    let request = bytes(&[
        0x2000_02F0,
        0x2000_010F, 0x1234,
        0x2001_011F, 0x20, 0xCAFE,
        0x2002_014F, 0x30, 0xFF, 0x100,
        0x2003_015F, 0x31, 3,
    ]);
    assert_eq!(sent, [request]);
    receive(&mut client, &bytes(&[0x2000_02F0, 0x2000_0100, 7, 0x2001_0110, 0x2002_0140, 8, 0x2003_0150, 9]));
    let word = |tag, word| done(tag, Data::Word(word));
    assert_eq!(pump(&mut client).1, [word(10, 7), done(11, Data::Written), word(12, 8), word(13, 9)]);
    assert_eq!(client.outstanding(), 0);
}

/// Cuts a long block as uHAL 2.8 does: 347 words a packet for reads, in transactions of 255 and 92.
#[test]
fn a_block_is_cut_into_transactions_and_packets() {
    let mut client = opened(UDP, Version::V2_0);
    ask(&mut client, [block(5, 700), Command::Flush]);
    let (sent, _) = pump(&mut client);
    let counts = |packet: &Vec<u8>| {
        let packet = Packet::decode(packet).expect("a packet");
        packet.requests().map(|request| request.expect("a request").operation.words()).collect::<Vec<_>>()
    };
    assert_eq!(sent.iter().map(counts).collect::<Vec<_>>(), [vec![255, 92], vec![255, 92], vec![6]]);
    // The replies come in any order, and the words are where they belong.
    for index in [2, 0, 1] {
        let packet = Packet::decode(&sent[index]).expect("a packet");
        let mut reply = bytes(&[packet.header.encode()]);
        for request in packet.requests().map(|request| request.expect("a request")) {
            reply.extend_from_slice(&bytes(&[request.header.answered(request.header.words, Info::Done).encode()]));
            let first = request.operation.address();
            reply.extend_from_slice(&bytes(&(first..first + request.operation.words() as u32).collect::<Vec<_>>()));
        }
        receive(&mut client, &reply);
    }
    assert_eq!(pump(&mut client).1, [done(5, Data::Block((0x100..0x100 + 700).collect()))]);
}

#[test]
fn a_packet_ends_where_it_was_flushed() {
    let mut client = opened(UDP, Version::V2_0);
    for tag in 0..3 {
        ask(&mut client, [Command::Read { tag, address: 1 }, Command::Flush, Command::Flush]);
    }
    assert_eq!(pump(&mut client).0.len(), 3);
}

#[test]
fn a_fifo_read_that_fails_keeps_the_words_that_it_took_out() {
    let mut client = opened(UDP, Version::V2_0);
    let fifo = |tag| Command::ReadBlock { tag, mode: Mode::Fifo, address: 7, words: 1000, into: Vec::new() };
    ask(&mut client, [fifo(1), Command::Flush]);
    assert_eq!(pump(&mut client).0.len(), 3);
    let reply = |id: u32, parts: &[(u32, u32, u32)]| {
        let mut words = vec![0x2000_00F0 | id << 8];
        for &(number, count, first) in parts {
            words.push(0x2000_0020 | number << 16 | count << 8);
            words.extend(first..first + count);
        }
        words
    };
    // The last packet is answered before the second, in which the bus fails after 3 words; firmware tells of a fourth.
    receive(&mut client, &bytes(&reply(4, &[(4, 255, 5000), (5, 51, 6000)])));
    receive(&mut client, &bytes(&reply(2, &[(0, 255, 0), (1, 92, 255)])));
    assert_eq!(pump(&mut client).1, []);
    receive(&mut client, &bytes(&[0x2000_03F0, 0x2002_0424, 347, 348, 349, 0]));
    let error = Error::Transaction { info: Info::ReadError, done: 3 };
    let taken = (0..350).chain(5000..5255).chain(6000..6051).collect();
    assert_eq!(pump(&mut client).1, [Event::Failed { tag: 1, address: 7, error, taken }]);
    // And where a reply never comes.
    ask(&mut client, [fifo(2), Command::Flush]);
    assert!(pump(&mut client).0.len() >= 3);
    receive(&mut client, &bytes(&reply(5, &[(6, 255, 0), (7, 92, 255)])));
    client.handle(Instant::ZERO, Input::Closed(PEER, Closed::Refused));
    let events = pump(&mut client).1;
    let kept = |events: &[Event]| matches!(events, [Event::Failed { tag: 2, taken, .. }, ..] if *taken == Vec::from_iter(0..347));
    assert!(kept(&events), "{events:?}");
}

#[test]
fn a_bus_error_names_its_address_and_what_stands_behind_it_was_left_out() {
    let mut client = opened(UDP, Version::V2_0);
    ask(&mut client, [block(1, 10), Command::Write { tag: 2, address: 5, word: 0 }, Command::Flush]);
    pump(&mut client);
    // Firmware counts the word at which the bus answered an error.
    receive(&mut client, &bytes(&[0x2000_02F0, 0x2000_0304, 1, 2, 3]));
    let error = Error::Transaction { info: Info::ReadError, done: 2 };
    assert_eq!(
        pump(&mut client).1,
        [
            Event::Failed { tag: 1, address: 0x102, error, taken: vec![] },
            Event::Failed { tag: 2, address: 5, error: Error::LeftOut, taken: vec![] },
        ]
    );
    // A block that fails is not read to its end.
    ask(&mut client, [block(3, 100_000), Command::Flush]);
    assert_eq!(pump(&mut client).0.len(), 16);
    receive(&mut client, &bytes(&[0x2000_03F0, 0x2002_0006]));
    assert_eq!(pump(&mut client).0.len(), 0, "nothing more of it is asked for");
}

#[test]
fn a_reply_of_another_packet_is_asked_for_again() {
    let mut client = opened(UDP, Version::V2_0);
    ask(&mut client, [Command::Read { tag: 1, address: 5 }, Command::Flush]);
    pump(&mut client);
    receive(&mut client, &bytes(&[0x2000_02F0, 0x2FFF_0100, 7]));
    assert_eq!(pump(&mut client).0, [status::REQUEST.to_vec()], "the status says what the device has done");
    let status = Status { buffers: 4, next_id: 3, ..Status::default() };
    client.handle(Instant::from_nanos(1_000), Input::Received(PEER, &status.encode()));
    assert_eq!(pump(&mut client).0, [bytes(&[0x2000_02F2])]);
    receive(&mut client, &bytes(&[0x2000_02F0, 0x2000_0100, 8]));
    assert_eq!(pump(&mut client).1, [done(1, Data::Word(8))]);
}

/// Expects the bytes that uHAL 2.8 sends for one read, with our id in place of its 0.
#[test]
fn a_read_through_the_hub_is_these_bytes() {
    let mut client = opened(Path::Hub(TARGET), Version::V2_0);
    ask(&mut client, [Command::Read { tag: 1, address: 0x1234 }, Command::Flush]);
    #[rustfmt::skip]
    let request = [
        0x00, 0x00, 0x00, 0x14, 0x0A, 0x01, 0x02, 0x03, 0xC3, 0x51, 0x00, 0x03,
        0x20, 0x00, 0x00, 0xF0, 0x20, 0x00, 0x01, 0x0F, 0x00, 0x00, 0x12, 0x34,
    ];
    assert_eq!(pump(&mut client).0, [request]);
    let packet = bytes(&[0x2000_00F0, 0x2000_0100, 0xDEAD_BEEF]);
    let mut reply = Vec::new();
    hub::Reply { target: TARGET, code: hub::Code::Done, packet: &packet }.encode(&mut reply);
    for piece in framed(&reply).chunks(5) {
        receive(&mut client, piece);
    }
    assert_eq!(pump(&mut client).1, [done(1, Data::Word(0xDEAD_BEEF))]);
}

#[test]
fn the_hub_gets_three_packets_a_chunk_and_its_error_fails_one() {
    let mut client = opened(Path::Hub(TARGET), Version::V2_0);
    for tag in 0..4 {
        ask(&mut client, [Command::Read { tag, address: tag as u32 }, Command::Flush]);
    }
    let (sent, _) = pump(&mut client);
    assert_eq!(sent[0].len(), 2 * chunk::HEADER + 4 * (hub::REQUEST_HEADER + 3 * WORD));
    assert_eq!(sent[0][..4], [0, 0, 0, 60]);
    let mut reply = Vec::new();
    for (id, code) in [(0, hub::Code::Done), (1, hub::Code::NoStatusReply), (2, hub::Code::Done)] {
        let packet = bytes(&[0x2000_00F0, 0x2000_0100 | id << 16, id]);
        let packet = if code == hub::Code::Done { &packet[..] } else { &[] };
        hub::Reply { target: TARGET, code, packet }.encode(&mut reply);
    }
    receive(&mut client, &framed(&reply));
    assert_eq!(
        pump(&mut client).1,
        [
            done(0, Data::Word(0)),
            Event::Failed { tag: 1, address: 1, error: Error::Hub(hub::Code::NoStatusReply), taken: vec![] },
            done(2, Data::Word(2)),
        ]
    );
}

#[test]
fn an_answer_for_another_device_ends_the_connection_and_what_is_in_flight() {
    let mut client = opened(Path::Hub(TARGET), Version::V2_0);
    ask(&mut client, [Command::Read { tag: 1, address: 0 }, Command::Flush]);
    pump(&mut client);
    let came = SocketAddrV4::new(*TARGET.ip(), 50002);
    let mut reply = Vec::new();
    hub::Reply { target: came, code: hub::Code::Done, packet: &[] }.encode(&mut reply);
    receive(&mut client, &framed(&reply));
    let error = Error::WrongTarget { asked: TARGET, came };
    assert_eq!(pump(&mut client).1, [Event::Failed { tag: 1, address: 0, error, taken: vec![] }]);
}

/// Expects words laid out by hand: the byte order first, and filled up to 8 words.
#[test]
fn a_read_of_version_1_3_is_these_words() {
    let mut client = opened(WITHOUT_IDS, Version::V1_3);
    ask(&mut client, [Command::Read { tag: 1, address: 0x1234 }, Command::Flush]);
    ask(&mut client, [Command::RmwSum { tag: 2, address: 1, addend: 2 }, Command::Flush]);
    let fill = 0x1000_00F8;
    let read = bytes(&[0x1004_00F8, 0x1000_0118, 0x1234, fill, fill, fill, fill, fill]);
    assert_eq!(pump(&mut client).0, [read], "one packet is in flight");
    let fill = 0x1000_00FC;
    receive(&mut client, &bytes(&[0x1004_00FC, 0x1000_011C, 7, fill, fill, fill, fill, fill]));
    let (sent, events) = pump(&mut client);
    assert_eq!(events, [done(1, Data::Word(7))]);
    assert_eq!(sent[0][4..16], bytes(&[0x1002_0130, 1, 2]));
    receive(&mut client, &bytes(&[0x1006_00FC, 0x1002_0136, fill, fill, fill, fill]));
    let error = Error::Transaction { info: Info::ReadError, done: 1 };
    assert!(matches!(pump(&mut client).1[..], [Event::Failed { tag: 2, error: found, .. }] if found == error));
}

#[test]
fn version_1_3_has_no_configuration_space() {
    let mut client = opened(WITHOUT_IDS, Version::V1_3);
    let read = Command::ReadBlock { tag: 1, mode: Mode::Configuration, address: 2, words: 1, into: Vec::new() };
    ask(&mut client, [read, Command::Read { tag: 2, address: 0 }, Command::Flush]);
    let (sent, events) = pump(&mut client);
    assert_eq!(
        (sent.len(), events),
        (1, vec![Event::Failed { tag: 1, address: 2, error: Error::Unsupported, taken: vec![] }])
    );
}

#[test]
fn a_device_that_refuses_fails_what_was_asked_and_is_tried_again() {
    let mut client = client(Path::Tcp, Version::V2_0);
    ask(&mut client, [Command::Read { tag: 1, address: 3 }, Command::Flush]);
    pump(&mut client);
    client.handle(Instant::ZERO, Input::Closed(PEER, Closed::Refused));
    let error = Error::Closed(Closed::Refused);
    assert_eq!(pump(&mut client).1, [Event::Failed { tag: 1, address: 3, error, taken: vec![] }, Event::Down(error)]);
    ask(&mut client, [Command::Read { tag: 2, address: 3 }, Command::Flush]);
    assert!(matches!(client.poll(Instant::ZERO, &mut Outbox::new()), Output::Open(PEER, Address::Node(1))));
}

/// Closes the socket after a datagram: only then does the kernel tell of a closed port.
#[test]
fn a_port_that_nobody_listens_at_is_told_of_at_once() {
    for (path, version) in [(UDP, Version::V2_0), (WITHOUT_IDS, Version::V2_0), (UDP, Version::V1_3)] {
        let mut client = client(path, version);
        ask(&mut client, [Command::Read { tag: 1, address: 3 }, Command::Flush]);
        pump(&mut client);
        client.handle(Instant::ZERO, Input::Opened(PEER, &Ends::nodes(0, 1)));
        assert_eq!(pump(&mut client).0.len(), 1, "a question, or the read itself");
        client.handle(Instant::ZERO, Input::Closed(PEER, Closed::Refused));
        let error = Error::Closed(Closed::Refused);
        let (sent, events) = pump(&mut client);
        assert!(
            sent.is_empty() && events.contains(&Event::Failed { tag: 1, address: 3, error, taken: vec![] }),
            "{events:?}"
        );
        assert_eq!((client.outstanding(), events.last()), (0, Some(&Event::Down(error))));
    }
}

#[test]
fn a_device_that_goes_away_fails_what_is_in_flight_and_is_asked_once_for_the_rest() {
    let mut client = opened(UDP, Version::V2_0);
    ask(&mut client, [Command::Read { tag: 1, address: 3 }, Command::Flush]);
    assert_eq!(pump(&mut client).0.len(), 1);
    ask(&mut client, [Command::Read { tag: 2, address: 4 }]);
    let error = Error::Closed(Closed::Refused);
    client.handle(Instant::ZERO, Input::Closed(PEER, Closed::Refused));
    assert_eq!(pump(&mut client).1, [Event::Failed { tag: 1, address: 3, error, taken: vec![] }]);
    client.handle(Instant::ZERO, Input::Opened(PEER, &Ends::nodes(0, 1)));
    assert_eq!(pump(&mut client).0, [status::REQUEST.to_vec()]);
    client.handle(Instant::ZERO, Input::Closed(PEER, Closed::Refused));
    assert_eq!(pump(&mut client).1, [Event::Failed { tag: 2, address: 4, error, taken: vec![] }, Event::Down(error)]);
}

#[test]
fn a_new_connection_is_not_held_back_because_the_one_before_was() {
    let mut client = opened(Path::Tcp, Version::V2_0);
    ask(&mut client, [Command::Read { tag: 1, address: 3 }, Command::Flush]);
    pump(&mut client);
    client.handle(Instant::ZERO, Input::Closed(PEER, Closed::Reset));
    client.handle(Instant::ZERO, Input::Blocked(PEER));
    ask(&mut client, [Command::Read { tag: 2, address: 4 }, Command::Flush]);
    pump(&mut client);
    client.handle(Instant::ZERO, Input::Opened(PEER, &Ends::nodes(0, 1)));
    assert_eq!(pump(&mut client).0.len(), 1);
}

#[test]
fn a_reply_to_another_packet_is_not_taken() {
    let wrong = bytes(&[0x2000_01F0, 0x2000_0100, 7]);
    let read = || [Command::Read { tag: 1, address: 3 }, Command::Flush];
    let mut by_stream = opened(Path::Tcp, Version::V2_0);
    ask(&mut by_stream, read());
    pump(&mut by_stream);
    receive(&mut by_stream, &framed(&wrong));
    let error = Error::WrongPacket { sent: 0x2000_00F0, came: 0x2000_01F0 };
    assert_eq!(pump(&mut by_stream).1[0], Event::Failed { tag: 1, address: 3, error, taken: vec![] });
    let mut without_ids = opened(WITHOUT_IDS, Version::V2_0);
    ask(&mut without_ids, read());
    pump(&mut without_ids);
    receive(&mut without_ids, &wrong);
    assert_eq!(pump(&mut without_ids).1, [], "it may be of somebody before");
    receive(&mut without_ids, &bytes(&[0x2000_00F0, 0x2000_0100, 8]));
    assert_eq!(pump(&mut without_ids).1, [done(1, Data::Word(8))]);
}

#[test]
fn nothing_that_comes_makes_it_panic() {
    let mut random = Random::new(11);
    for round in 0..400 {
        let path = [UDP, WITHOUT_IDS, Path::Tcp, Path::Hub(TARGET)][round % 4];
        let mut client = opened(path, Version::V2_0);
        for tag in 0..20 {
            ask(&mut client, [block(tag, 1 + random.below(400) as u32), Command::Flush]);
            let (sent, _) = pump(&mut client);
            let mut reply: Vec<u8> = sent.concat();
            for _ in 0..random.below(6) {
                if !reply.is_empty() {
                    let at = random.below(reply.len() as u64) as usize;
                    reply[at] = random.bits() as u8;
                }
            }
            receive(&mut client, &reply);
            pump(&mut client);
            if random.chance(0.1) {
                client.handle(Instant::ZERO, Input::Closed(PEER, Closed::Reset));
                pump(&mut client);
                client.handle(Instant::ZERO, Input::Opened(PEER, &Ends::nodes(0, 1)));
            }
        }
    }
}
