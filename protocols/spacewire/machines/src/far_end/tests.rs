use super::*;
use crate::EndOfPacket::{Eep, Eop};
use crate::rmap::{Destination, Initiator, InitiatorSettings, Request};
use crate::ssdtp2::{Decoder, DecoderSettings, Message};
use hodo_machine::{Address, Ends};

const HOST: Peer = Peer::accepted(0);

fn far_end() -> FarEnd {
    let mut far_end = FarEnd::new(FarEndSettings { packet_max: 64 << 10 });
    let at = || Address::Tcp(([127, 0, 0, 1], 1).into());
    far_end.handle(Instant::ZERO, Input::Opened(HOST, &Ends::new(at(), at())));
    far_end
}

/// Sends packets and returns those that come back.
fn exchange(far_end: &mut FarEnd, packets: &[(&[u8], EndOfPacket)]) -> Vec<(Vec<u8>, EndOfPacket)> {
    let (mut stream, mut back, mut out) = (Vec::new(), Vec::new(), Outbox::new());
    for (data, end) in packets {
        Message::Packet { data, end: *end }.encode(&mut stream);
    }
    far_end.handle(Instant::ZERO, Input::Received(HOST, &stream));
    while let Output::Send(peer) = far_end.poll(Instant::ZERO, &mut out) {
        assert_eq!(peer, HOST);
        out.seal();
        out.pieces().iter().for_each(|piece| back.extend_from_slice(out.bytes(piece)));
        out.clear();
    }
    let (mut decoder, mut bytes, mut found) = (Decoder::new(DecoderSettings::default()), &back[..], Vec::new());
    while let Some(message) = decoder.next(&mut bytes).unwrap() {
        let Message::Packet { data, end } = message else { panic!("no packet") };
        found.push((data.to_vec(), end));
    }
    found
}

#[test]
fn packets_are_counted_sent_back_and_made() {
    let mut far_end = far_end();
    let back = exchange(&mut far_end, &[(&[COUNTED], Eop), (&[3, 4, COUNTED, 9], Eop), (&[COUNT], Eop)]);
    assert_eq!(back, [([&[COUNT], &2_u64.to_be_bytes()[..]].concat(), Eop)]);
    let back = exchange(&mut far_end, &[(&[ECHO, 1, 2], Eep), (&[ECHO], Eop), (&[99], Eop), (&[], Eop)]);
    assert_eq!(back, [(vec![ECHO, 1, 2], Eep), (vec![ECHO], Eop)]);
    let back = exchange(&mut far_end, &[(&[SOURCE, 0, 2, 0, 0, 0, 3], Eop), (&[SOURCE, 0, 20, 0, 0, 0x40, 0], Eop)]);
    assert_eq!(back.len(), 22);
    assert!(back[..2].iter().all(|(data, _)| *data == [SOURCE, 0, 0]));
    assert!(back[2..].iter().all(|(data, _)| data.len() == 0x4000 && data[0] == SOURCE));
}

#[test]
fn the_memory_answers() {
    let mut far_end = far_end();
    let mut initiator = Initiator::new(InitiatorSettings::default());
    let mut call = |request: &Request<'_>| {
        let mut command = Vec::new();
        initiator.send(request, &Destination::default(), 0, Instant::MAX, &mut command).unwrap();
        let [(reply, end)] = &exchange(&mut far_end, &[(&command, Eop)])[..] else { panic!("one reply") };
        initiator.receive(reply, *end).unwrap().result.unwrap().to_vec()
    };
    call(&Request::Write { address: 8, data: &[1, 2, 3], increment: true, verify: false, reply: true });
    assert_eq!(call(&Request::Read { address: 8, length: 4, increment: true }), [1, 2, 3, 0]);
}

#[test]
fn requests_are_bounded() {
    let mut far_end = far_end();
    far_end.handle(Instant::ZERO, Input::Blocked(HOST));
    let mut stream = Vec::new();
    Message::Packet { data: &[SOURCE, 255, 255, 255, 255, 255, 255], end: Eop }.encode(&mut stream);
    let mut rounds = 0;
    while far_end.has_room(HOST) {
        far_end.handle(Instant::ZERO, Input::Received(HOST, &stream));
        rounds += 1;
    }
    assert_eq!(rounds, REQUESTS);
    far_end.handle(Instant::ZERO, Input::Received(HOST, &[0x77; 12]));
    assert!(matches!(far_end.poll(Instant::ZERO, &mut Outbox::new()), Output::Event(FarEndEvent::Malformed(HOST, _))));
    assert!(matches!(far_end.poll(Instant::ZERO, &mut Outbox::new()), Output::Close(HOST)));
}

#[test]
fn short_commands_with_long_replies_are_answered_one_after_another() {
    let mut far_end = far_end();
    let mut initiator = Initiator::new(InitiatorSettings { outstanding_max: 100, ..InitiatorSettings::default() });
    let (mut stream, mut command) = (Vec::new(), Vec::new());
    for tag in 0..100 {
        let request = Request::Read { address: 0, length: 1 << 20, increment: true };
        command.clear();
        initiator.send(&request, &Destination::default(), tag, Instant::MAX, &mut command).unwrap();
        Message::Packet { data: &command, end: Eop }.encode(&mut stream);
    }
    far_end.handle(Instant::ZERO, Input::Received(HOST, &stream));
    assert!(!far_end.has_room(HOST));
    let (mut decoder, mut out, mut replies) = (Decoder::new(DecoderSettings::default()), Outbox::new(), 0);
    while let Output::Send(_) = far_end.poll(Instant::ZERO, &mut out) {
        assert!(out.len() < 3 << 20, "{} bytes at once", out.len());
        out.seal();
        for piece in out.pieces() {
            let mut bytes = out.bytes(piece);
            while let Some(Message::Packet { data, end }) = decoder.next(&mut bytes).unwrap() {
                assert!(initiator.receive(data, end).unwrap().result.is_ok());
                replies += 1;
            }
        }
        out.clear();
    }
    assert_eq!(replies, 100);
    assert!(far_end.has_room(HOST));
}
