use super::*;
use crate::EndOfPacket::{Eep, Eop};
use alloc::vec;

fn at(port: u16) -> Address {
    Address::Tcp(([127, 0, 0, 1], port).into())
}

fn ssdtp2() -> Client<Inbox> {
    Client::new(ClientSettings::new(Port::Ssdtp2(at(10_030))), Inbox::default())
}

fn gresb() -> Client<Inbox> {
    let port = Port::Gresb { to_bridge: at(3000), to_host: at(3001), status_bits: gresb::StatusBits::High };
    Client::new(ClientSettings::new(port), Inbox::default())
}

/// Polls a client until it is idle. Returns the connections that it opens and closes, what it sends, and its events.
fn poll(client: &mut Client<Inbox>) -> (Vec<Peer>, Vec<u8>, Vec<ClientEvent>) {
    let (mut peers, mut sent, mut events, mut out) = (Vec::new(), Vec::new(), Vec::new(), Outbox::new());
    loop {
        match client.poll(Instant::ZERO, &mut out) {
            Output::Open(peer, _) | Output::Close(peer) => peers.push(peer),
            Output::Send(peer) => {
                assert_eq!(peer, OUT);
                out.seal();
                out.pieces().iter().for_each(|piece| sent.extend_from_slice(out.bytes(piece)));
                out.clear();
            }
            Output::Event(event) => events.push(event),
            Output::Idle(_) => return (peers, sent, events),
        }
    }
}

fn open(client: &mut Client<Inbox>) {
    let (peers, _, _) = poll(client);
    for peer in peers {
        client.handle(Instant::ZERO, Input::Opened(peer, &Ends::new(at(9), at(10))));
    }
}

#[test]
fn packets_leave_and_arrive_over_either_protocol() {
    for mut client in [ssdtp2(), gresb()] {
        assert_eq!(client.send(&[1], Eop), Err(CannotSend::NotConnected));
        open(&mut client);
        assert!(matches!(poll(&mut client).2[..], [ClientEvent::Connected(_)]));
        client.send(&[1, 2, 3], Eop).unwrap();
        client.send_shared(Bytes::from(vec![7; 100]), Eop).unwrap();
        client.send_time_code(5).unwrap();
        let is_gresb = matches!(client.settings.port, Port::Gresb { .. });
        let mut expected = Vec::new();
        if is_gresb {
            gresb::FromHost::Packet(&[1, 2, 3]).encode(&mut expected).unwrap();
            gresb::FromHost::Packet(&[7; 100]).encode(&mut expected).unwrap();
            gresb::FromHost::SendTimeCode(5).encode(&mut expected).unwrap();
        } else {
            ssdtp2::Message::Packet { data: &[1, 2, 3], end: Eop }.encode(&mut expected);
            ssdtp2::Message::Packet { data: &[7; 100], end: Eop }.encode(&mut expected);
            ssdtp2::Message::SendTimeCode(5).encode(&mut expected);
        }
        assert_eq!(client.queued(), expected.len());
        assert_eq!(poll(&mut client).1, expected);
        assert_eq!(client.queued(), 0);
        let mut stream = Vec::new();
        if is_gresb {
            let frame = gresb::ToHost { data: &[9, 8], end: Eep, is_truncated: false };
            frame.encode(gresb::StatusBits::High, &mut stream).unwrap();
        } else {
            ssdtp2::Message::Packet { data: &[9, 8], end: Eep }.encode(&mut stream);
        }
        let inbound = if is_gresb { BACK } else { OUT };
        for byte in stream.chunks(1) {
            client.handle(Instant::ZERO, Input::Received(inbound, byte));
        }
        assert_eq!(client.receiver().front(), Some((&[9, 8][..], Eep)));
        assert!(client.receiver_mut().pop() && !client.receiver_mut().pop());
    }
}

#[test]
fn gresb_sends_no_eep_and_a_truncated_packet_is_not_whole() {
    let mut client = gresb();
    open(&mut client);
    assert_eq!(client.send(&[1], Eep), Err(CannotSend::NoEep));
    let mut stream = Vec::new();
    let frame = gresb::ToHost { data: &[9, 8], end: Eop, is_truncated: true };
    frame.encode(gresb::StatusBits::High, &mut stream).unwrap();
    client.handle(Instant::ZERO, Input::Received(BACK, &stream));
    assert_eq!(client.receiver().front(), Some((&[9, 8][..], Eep)));
}

#[test]
fn a_queue_has_its_bound_and_a_blocked_bridge_gets_nothing() {
    let mut client = ssdtp2();
    client.settings.queue_max = 100;
    open(&mut client);
    poll(&mut client);
    client.handle(Instant::ZERO, Input::Blocked(OUT));
    client.send(&[0; 100], Eop).unwrap();
    assert_eq!(client.send(&[0], Eop), Err(CannotSend::Full(112)));
    assert_eq!(poll(&mut client).1, []);
    client.handle(Instant::ZERO, Input::Drained(OUT));
    assert_eq!(poll(&mut client).1.len(), 112);
}

#[test]
fn a_full_inbox_holds_the_bridge_back() {
    let mut client =
        Client::new(ClientSettings::new(Port::Ssdtp2(at(1))), Inbox::new(InboxSettings { packets: 2, bytes: 1_000 }));
    open(&mut client);
    for length in [10, 10, 2_000] {
        assert_eq!(client.has_room(OUT), client.receiver().len() < 2);
        client.receiver_mut().packet(&vec![1; length], Eop);
    }
    while client.receiver_mut().pop() {}
    assert!(client.has_room(OUT));
    client.receiver_mut().packet(&[1; 2_000], Eop);
    assert!(!client.has_room(OUT));
}

#[test]
fn the_end_of_one_connection_ends_both_and_another_may_follow() {
    let mut client = gresb();
    open(&mut client);
    poll(&mut client);
    client.send(&[1], Eop).unwrap();
    client.handle(Instant::ZERO, Input::Closed(BACK, Closed::Finished));
    let (peers, sent, events) = poll(&mut client);
    assert_eq!((peers, sent, events), (vec![OUT], vec![], vec![ClientEvent::Closed(Closed::Finished)]));
    client.connect();
    assert_eq!(poll(&mut client).0, [OUT, BACK]);
}

#[test]
fn gresb_opens_the_connections_of_the_directions_that_are_used() {
    let with = |port, directions| {
        let settings = ClientSettings { directions, ..ClientSettings::new(port) };
        Client::new(settings, Inbox::default())
    };
    let gresb = || gresb().settings.port;
    for (port, directions, peers) in [
        (gresb(), Directions::Both, &[OUT, BACK][..]),
        (gresb(), Directions::Sending, &[OUT]),
        (gresb(), Directions::Receiving, &[BACK]),
        (ssdtp2().settings.port, Directions::Sending, &[OUT]),
        (ssdtp2().settings.port, Directions::Receiving, &[OUT]),
    ] {
        let mut client = with(port, directions);
        let (opened, _, _) = poll(&mut client);
        assert_eq!(opened, peers, "{directions:?}");
        for peer in opened {
            assert!(!client.is_connected());
            client.handle(Instant::ZERO, Input::Opened(peer, &Ends::new(at(9), at(10))));
        }
        assert!(client.is_connected());
        let sent = client.send(&[1], Eop);
        assert_eq!(sent.is_ok(), directions != Directions::Receiving, "{sent:?}");
        client.handle(Instant::ZERO, Input::Closed(peers[0], Closed::Finished));
        assert!(!client.is_connected());
        client.connect();
        assert_eq!(poll(&mut client).0.last(), peers.last());
    }
}

#[test]
fn a_stream_out_of_step_is_told() {
    let mut client = ssdtp2();
    open(&mut client);
    poll(&mut client);
    client.handle(Instant::ZERO, Input::Received(OUT, &[0x99; 12]));
    let (peers, _, events) = poll(&mut client);
    assert_eq!(peers, [OUT]);
    assert!(matches!(events[..], [ClientEvent::Malformed(MalformedStream::Ssdtp2(_))]));
}
