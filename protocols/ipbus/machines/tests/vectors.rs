//! Every kind of packet as literal bytes, in both byte orders: what is decoded and encoded, and what a device answers.

use hodo_ipbus::device::{Device, DeviceConfig, Failure, Register, Registers};
use hodo_ipbus::wire::hub::{self, Code};
use hodo_ipbus::wire::packet::{Kind, Packet};
use hodo_ipbus::wire::status::{self, Status};
use hodo_ipbus::wire::{Order, Version, chunk, legacy};
use hodo_machine::{Ends, Input, Instant, Machine, Outbox, Output, Peer, Transport};
use std::net::{Ipv4Addr, SocketAddrV4};

const PEER: Peer = Peer(Peer::FIRST_ACCEPTED);

/// A request and its reply, each in big-endian words and in little-endian ones, or where there is one line as it is.
struct Exchange {
    name: &'static str,
    requests: Vec<Vec<u8>>,
    replies: Vec<Option<Vec<u8>>>,
}

impl Exchange {
    fn request(&self, order: usize) -> &[u8] {
        &self.requests[order.min(self.requests.len() - 1)]
    }

    fn reply(&self, order: usize) -> Option<&[u8]> {
        self.replies[order.min(self.replies.len() - 1)].as_deref()
    }
}

fn exchanges(version: Version) -> Vec<Exchange> {
    let text = match version {
        Version::V2_0 => include_str!("vectors/packets-2.0.txt"),
        Version::V1_3 => include_str!("vectors/packets-1.3.txt"),
    };
    let mut all: Vec<Exchange> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[') {
            let name = name.strip_suffix(']').expect("a name ends");
            all.push(Exchange { name, requests: Vec::new(), replies: Vec::new() });
            continue;
        }
        let exchange = all.last_mut().expect("a name stands first");
        match line.split_at(2) {
            ("> ", packet) => exchange.requests.push(hex(packet)),
            ("< ", "nothing") => exchange.replies.push(None),
            ("< ", packet) => exchange.replies.push(Some(hex(packet))),
            _ => panic!("no line of an exchange: {line}"),
        }
    }
    all
}

fn hex(text: &str) -> Vec<u8> {
    let digits: String = text.split(' ').collect();
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal digits");
    (0..digits.len()).step_by(2).map(byte).collect()
}

/// Creates the device that the files describe.
fn device(version: Version, transport: Transport) -> Device {
    let mut config = DeviceConfig::new(transport, version);
    let registers = [
        Register::word(0x100).failing(Failure::Error),
        Register::word(0x200).failing(Failure::Timeout),
        Register::fifo(0x300, 2),
    ];
    config.registers = Registers::new(registers).expect("they do not overlap");
    config.configuration = vec![0xC0A8_0001, 0x20];
    let mut device = Device::new(config);
    device.handle(Instant::ZERO, Input::Opened(PEER, &Ends::nodes(0, 1)));
    device
}

fn asked(device: &mut Device, bytes: &[u8]) -> Option<Vec<u8>> {
    device.handle(Instant::ZERO, Input::Received(PEER, bytes));
    let mut out = Outbox::new();
    match device.poll(Instant::ZERO, &mut out) {
        Output::Send(PEER) => Some(out.pieces().iter().flat_map(|piece| out.bytes(piece).to_vec()).collect()),
        Output::Idle(_) => None,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_device_answers_these_bytes() {
    for version in [Version::V2_0, Version::V1_3] {
        for order in [0, 1] {
            let mut device = device(version, Transport::Datagram);
            for exchange in exchanges(version) {
                let found = asked(&mut device, exchange.request(order));
                assert_eq!(found.as_deref(), exchange.reply(order), "{version}, {}, order {order}", exchange.name);
            }
        }
    }
}

/// Sends packets over TCP: each stands behind its length, which is big-endian whatever the packet is.
#[test]
fn a_device_answers_these_bytes_in_chunks() {
    for version in [Version::V2_0, Version::V1_3] {
        for order in [0, 1] {
            let mut device = device(version, Transport::Stream);
            for exchange in exchanges(version) {
                let framed = |packet: &[u8]| [&[0, 0, 0, packet.len() as u8], packet].concat();
                assert_eq!(chunk::length(exchange.request(order).len()), framed(exchange.request(order))[..4]);
                let found = asked(&mut device, &framed(exchange.request(order)));
                assert_eq!(found, exchange.reply(order).map(framed), "{version}, {}, order {order}", exchange.name);
            }
        }
    }
}

#[test]
fn what_is_decoded_is_encoded_to_these_bytes() {
    let mut kinds = Vec::new();
    for exchange in exchanges(Version::V2_0) {
        for (index, bytes) in exchange.requests.iter().enumerate() {
            let Ok(packet) = Packet::decode(bytes) else { continue };
            assert_eq!(packet.order, [Order::Big, Order::Little][index], "{}", exchange.name);
            let mut again = packet.order.bytes_32(packet.header.encode()).to_vec();
            for request in packet.requests().flatten() {
                kinds.push((request.header.kind as u8, index));
                request.encode(packet.order, &mut again);
            }
            match packet.header.kind {
                Kind::Status => assert!(status::REQUEST.starts_with(bytes), "{}", exchange.name),
                _ if exchange.name == "bad header" => assert!(bytes.starts_with(&again)),
                _ => assert_eq!(again, *bytes, "{}", exchange.name),
            }
        }
        for bytes in exchange.replies.iter().flatten() {
            if let Ok(status) = Status::decode(bytes) {
                assert_eq!(status.encode()[..], bytes[..]);
                continue;
            }
            let packet = Packet::decode(bytes).expect(exchange.name);
            let mut again = packet.order.bytes_32(packet.header.encode()).to_vec();
            packet.replies().flatten().for_each(|reply| reply.encode(packet.order, &mut again));
            // A header that was bad is no header in the reply either.
            assert!(again == *bytes || exchange.name == "bad header" && bytes.starts_with(&again), "{}", exchange.name);
        }
    }
    kinds.sort_unstable();
    kinds.dedup();
    assert_eq!(kinds.len(), 16, "every kind of transaction in both orders: {kinds:?}");
}

#[test]
fn what_is_decoded_of_version_1_3_is_encoded_to_these_bytes() {
    let mut kinds = Vec::new();
    for exchange in exchanges(Version::V1_3) {
        for (index, bytes) in exchange.requests.iter().enumerate() {
            let Ok(packet) = legacy::Packet::decode(bytes) else { continue };
            assert_eq!(packet.order, [Order::Big, Order::Little][index], "{}", exchange.name);
            let mut again = Vec::new();
            for request in packet.requests().flatten() {
                kinds.push((request.header.kind as u8, index));
                request.encode(packet.order, &mut again);
            }
            assert!(again == *bytes || exchange.name == "bad header" && bytes.starts_with(&again), "{}", exchange.name);
        }
        for bytes in exchange.replies.iter().flatten() {
            let packet = legacy::Packet::decode(bytes).expect(exchange.name);
            let mut again = Vec::new();
            packet.replies().flatten().for_each(|reply| reply.encode(packet.order, &mut again));
            assert!(again == *bytes || exchange.name == "bad header" && bytes.starts_with(&again), "{}", exchange.name);
        }
    }
    kinds.sort_unstable();
    kinds.dedup();
    assert_eq!(kinds.len(), 16, "every kind of transaction in both orders: {kinds:?}");
}

/// Compares the hub's entries: its own fields are big-endian, and packets stay as their client made them.
#[test]
fn the_hubs_entries_are_these_bytes() {
    let target = SocketAddrV4::new(Ipv4Addr::new(192, 168, 0, 10), 50001);
    for (packet, request, reply) in [
        (
            "200000F0 2000010F 00000010",
            "C0A8000A C3510003 200000F0 2000010F 00000010",
            "00000014 C0A8000A C3510000 200000F0 2000010F 00000010",
        ),
        (
            "F0000020 0F010020 10000000",
            "C0A8000A C3510003 F0000020 0F010020 10000000",
            "00000014 C0A8000A C3510000 F0000020 0F010020 10000000",
        ),
        (
            "100000F8 10020118 00000010 100000F8 100000F8 100000F8 100000F8 100000F8",
            "C0A8000A C3510008 100000F8 10020118 00000010 100000F8 100000F8 100000F8 100000F8 100000F8",
            "00000028 C0A8000A C3510000 100000F8 10020118 00000010 100000F8 100000F8 100000F8 100000F8 100000F8",
        ),
    ] {
        let packet = hex(packet);
        let mut out = Vec::new();
        hub::Request { target, packet: &packet }.encode(&mut out);
        assert_eq!(out, hex(request));
        assert!(hub::Requests::new(&out).eq([Ok(hub::Request { target, packet: &packet })]));
        let answered = hub::Reply { target, code: Code::Done, packet: &packet };
        let mut out = Vec::new();
        answered.encode(&mut out);
        assert_eq!(out, hex(reply));
        assert!(hub::Replies::new(&out).eq([Ok(answered)]));
    }
}

#[test]
fn every_code_of_the_hub_is_these_bytes() {
    let target = SocketAddrV4::new(Ipv4Addr::new(192, 168, 0, 10), 50001);
    for (code, bytes) in [
        (Code::NoControlReply, "00000008 C0A8000A C3510001"),
        (Code::HubTimeout, "00000008 C0A8000A C3510002"),
        (Code::NoStatusReply, "00000008 C0A8000A C3510003"),
        (Code::NoResendReply, "00000008 C0A8000A C3510004"),
        (Code::MalformedStatus, "00000008 C0A8000A C3510005"),
        (Code::WrongVersion, "00000008 C0A8000A C3510006"),
        (Code::NotAllowed, "00000008 C0A8000A C3510007"),
    ] {
        let refused = hub::Reply { target, code, packet: &[] };
        let mut out = Vec::new();
        refused.encode(&mut out);
        assert_eq!(out, hex(bytes), "{code:?}");
        assert!(hub::Replies::new(&out).eq([Ok(refused)]));
    }
}
