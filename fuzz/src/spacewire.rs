use crate::drive::{Accepts, drive, drive_within};
use crate::metered::Metered;
use hodo_machine::{Address, Closed, Ends, Input, Instant, Machine, Outbox, Output, Peer, Transport};
use hodo_sim::cost::Allowance;
use hodo_spacewire::EndOfPacket::{self, Eep, Eop};
use hodo_spacewire::Picos;
use hodo_spacewire::bridge::{Bridge, Device, Gate, GateProtocol, Pace};
use hodo_spacewire::client::{Client, ClientSettings, Inbox, Port};
use hodo_spacewire::far_end::{COUNT, FarEnd, FarEndSettings};
use hodo_spacewire::network::{
    Builder, CONFIGURATION_KEY, ConfigurationPort, LinkSettings, NodeSettings, RouterSettings,
};
use hodo_spacewire::rmap::{
    Command, Crc, Destination, Initiator, InitiatorSettings, Outcome, Ram, Reply, Request, Target, TargetSettings,
};
use hodo_spacewire::{gresb, ptp, ssdtp2};
use hodo_spacewire_host::network::Plan;
use std::path::Path;
use std::time::Duration;

/// Bytes of the longest packet here.
const PACKET_MAX: usize = 4096;
/// Outputs in a row after which a bridge that is not idle is stuck.
const OUTPUTS_MAX: usize = 100_000;
/// The TCP ports of the bridge: SSDTP2, and GRESB in both directions.
const PORTS: [u16; 3] = [10_030, 3000, 3001];

/// Checks that a stream of a bridge gives the same messages however it is cut. The first byte chooses the protocol, the second says how.
pub fn streams(input: &[u8]) {
    let Some((&[choice, cut], stream)) = input.split_first_chunk::<2>() else { return };
    let decode = |cut: usize| match choice % 4 {
        0 | 1 => ssdtp2_messages(stream, cut, choice & 1 == 1),
        2 => {
            let mut decoder = gresb::FromHostDecoder::new(gresb_settings(choice));
            collect(stream, cut, |bytes| decoder.next(bytes).map(|it| it.map(|it| format!("{it:?}"))))
        }
        _ => {
            let mut decoder = gresb::ToHostDecoder::new(gresb_settings(choice));
            collect(stream, cut, |bytes| decoder.next(bytes).map(|it| it.map(|it| format!("{it:?}"))))
        }
    };
    let whole = decode(stream.len().max(1));
    assert_eq!(decode(usize::from(cut).max(1)), whole, "cut every {cut} bytes");
}

fn gresb_settings(choice: u8) -> gresb::DecoderSettings {
    let status_bits = if choice & 4 == 0 { gresb::StatusBits::High } else { gresb::StatusBits::Low };
    gresb::DecoderSettings { body_max: PACKET_MAX, status_bits }
}

fn ssdtp2_messages(stream: &[u8], cut: usize, refuses_empty: bool) -> Vec<String> {
    let empty = if refuses_empty { ssdtp2::EmptyPackets::Refuse } else { ssdtp2::EmptyPackets::default() };
    let settings = ssdtp2::DecoderSettings { packet_max: PACKET_MAX, empty_packets: empty };
    let mut decoder = ssdtp2::Decoder::new(settings);
    collect(stream, cut, |bytes| decoder.next(bytes).map(|it| it.map(|it| format!("{it:?}"))))
}

/// Decodes a stream in pieces. The last line is the error, if there is one.
fn collect<E: std::fmt::Display>(
    stream: &[u8],
    cut: usize,
    mut next: impl FnMut(&mut &[u8]) -> Result<Option<String>, E>,
) -> Vec<String> {
    let mut found = Vec::new();
    for mut piece in stream.chunks(cut) {
        loop {
            match next(&mut piece) {
                Ok(Some(message)) => found.push(message),
                Ok(None) => break,
                Err(why) => {
                    assert!(!why.to_string().is_empty(), "an error says something");
                    found.push(why.to_string());
                    return found;
                }
            }
        }
        assert!(piece.is_empty(), "a part of a frame is kept, not left");
    }
    found
}

/// Checks packets: what is decoded can be encoded to the same, a target takes any bytes, answers no more than one reply whose size the
/// command asked for, and an initiator takes any reply. The first byte chooses the CRC, the end and the settings.
pub fn packets(input: &[u8]) {
    let Some((&choice, packet)) = input.split_first() else { return };
    let crc = if choice & 1 == 0 { Crc::Standard } else { Crc::DraftE };
    let end = if choice & 2 == 0 { Eop } else { Eep };
    let mut again = Vec::new();
    if let Ok(command) = Command::decode(packet, end, crc) {
        command.encode(crc, &mut again);
        assert_eq!(Command::decode(&again, end, crc), Ok(command));
    }
    again.clear();
    if let Ok(reply) = Reply::decode(packet, end, crc) {
        reply.encode(crc, &mut again);
        assert_eq!(Reply::decode(&again, end, crc), Ok(reply));
    }
    again.clear();
    if let Ok(space) = ptp::Packet::decode(packet, end) {
        space.encode(&mut again).expect("what was decoded can be encoded");
        assert_eq!(ptp::Packet::decode(&again, end), Ok(space));
    }
    at_target(packet, end, crc, choice);
    let mut initiator = Initiator::new(InitiatorSettings::default());
    let to = Destination { crc, ..Destination::default() };
    let request = Request::Read { address: 0, length: 4, increment: true };
    initiator.send(&request, &to, 1, Instant::ZERO, &mut Vec::new()).expect("nothing is outstanding");
    let _ = initiator.receive(packet, end);
}

fn at_target(packet: &[u8], end: EndOfPacket, crc: Crc, choice: u8) {
    let settings = TargetSettings {
        logical_address: None,
        key: None,
        crc,
        length_max: PACKET_MAX as u32,
        writes_unchecked: choice & 4 != 0,
        replies_to_reserved: choice & 8 != 0,
        verify_buffer: if choice & 16 == 0 { 64 } else { u32::MAX },
    };
    let mut ram = Ram::new(0, vec![0; PACKET_MAX]);
    let mut reply = Vec::new();
    let outcome = Target::new(settings).receive(packet, end, &mut ram, &mut reply);
    let is_told = matches!(outcome, Outcome::Finished { has_reply: true, .. });
    assert_eq!(is_told, !reply.is_empty(), "{outcome:?}");
    assert!(reply.len() <= PACKET_MAX + 64);
}

/// Drives a client of SSDTP2 or of GRESB, as the first byte says.
pub fn client(input: &[u8]) {
    let Some((choice, script)) = input.split_first() else { return };
    let at = |port: u16| Address::Tcp(([127, 0, 0, 1], port).into());
    let port = match choice % 2 {
        0 => Port::Ssdtp2(at(PORTS[0])),
        _ => Port::Gresb {
            to_bridge: at(PORTS[1]),
            to_host: at(PORTS[2]),
            status_bits: gresb_settings(choice.wrapping_mul(2)).status_bits,
        },
    };
    let settings = ClientSettings { packet_max: PACKET_MAX, ..ClientSettings::new(port) };
    drive(Client::new(settings, Inbox::default()), script, None, |_| None);
}

/// Drives the tester's far end with hosts of any kind; one that asks for a count gets it.
pub fn far_end(input: &[u8]) {
    let frame = [&ssdtp2::header(ssdtp2::Flag::CompleteEop, 1)[..], &[COUNT]].concat();
    let accepts = Accepts::new(Transport::Stream, frame, ssdtp2::HEADER_LENGTH + 9);
    // It puts up to 256 KiB of packets together, in buffers that double as they grow, of its own and for each host.
    let allowance = Allowance { memory: 2 << 20, memory_per_peer: 2 << 20, ..Allowance::default() };
    drive_within(allowance, FarEnd::new(FarEndSettings { packet_max: PACKET_MAX }), input, Some(&accepts), |_| None);
}

/// Drives a bridge with two gates in front of a router with a memory. The bytes say which hosts come and go, what they send, and
/// how time passes. In the end a host that keeps the rules reads the memory.
pub fn bridge(input: &[u8]) {
    let mut floor = Floor::new();
    let mut rest = input;
    while let Some((&[head, value], behind)) = rest.split_first_chunk::<2>() {
        let peer = floor.hosts.get(usize::from(head >> 4) % floor.hosts.len().max(1)).copied();
        rest = behind;
        match (head % 8, peer) {
            (0, _) if floor.hosts.len() < 8 => floor.connect(PORTS[usize::from(value) % 3]),
            (1..=3, Some(peer)) => {
                let (bytes, behind) = behind.split_at(usize::from(value).min(behind.len()));
                rest = behind;
                floor.receive(peer, bytes);
            }
            (4, Some(peer)) => floor.tell(Input::Blocked(peer)),
            (5, Some(peer)) => floor.tell(Input::Drained(peer)),
            (6, Some(peer)) => {
                floor.hosts.retain(|host| *host != peer);
                floor.tell(Input::Closed(peer, Closed::Reset));
            }
            _ => floor.now = floor.now + Duration::from_micros(u64::from(value)),
        }
        floor.settle();
    }
    floor.serve_another();
}

struct Floor {
    bridge: Metered<Bridge>,
    now: Instant,
    hosts: Vec<Peer>,
    came: u32,
    sent: Vec<(Peer, Vec<u8>)>,
}

impl Floor {
    fn new() -> Self {
        let mut builder = Builder::new();
        let settings = || NodeSettings { packets: 64, bytes: 4 * PACKET_MAX, ..NodeSettings::default() };
        let nodes = ["one", "two", "memory"].map(|name| builder.node(name, settings()).expect("names differ"));
        let watchdog = Some(Picos::from_nanos(100_000));
        let settings = RouterSettings { ports: 4, watchdog, ..RouterSettings::default() };
        let router = builder.router("router", settings).expect("its name is free");
        for (port, node) in (1..).zip(nodes) {
            builder.link(node, (router, port), &LinkSettings::default()).expect("both ends are free");
        }
        let mut network = builder.build().expect("it is whole");
        network.set_configuration(router, ConfigurationPort::new(CONFIGURATION_KEY)).expect("it is there");
        let protocols = [
            GateProtocol::Ssdtp2 { port: PORTS[0], fragment: std::num::NonZeroUsize::new(100) },
            GateProtocol::Gresb { to_bridge: PORTS[1], to_host: PORTS[2], status_bits: gresb::StatusBits::High },
        ];
        let queue_max = (64, 4 * PACKET_MAX);
        let gates = nodes.into_iter().zip(protocols);
        let gates = gates.map(|(node, protocol)| Gate { node, protocol, packet_max: PACKET_MAX, queue_max });
        let settings = TargetSettings { length_max: PACKET_MAX as u32, ..TargetSettings::default() };
        let memory = Device::Memory(settings, Ram::new(0, vec![7; PACKET_MAX]));
        let bridge = Bridge::new(network, Pace::RealTime, gates.collect(), vec![(nodes[2], memory)]);
        let allowance = Allowance { memory: 4 << 20, memory_per_peer: 64 << 10, outputs: 64, ..Allowance::default() };
        let bridge = Metered::within(Allowance { allocated: 1 << 20, ..allowance }, bridge);
        Floor { bridge, now: Instant::ZERO, hosts: Vec::new(), came: 0, sent: Vec::new() }
    }

    fn connect(&mut self, port: u16) {
        let peer = Peer::accepted(self.came);
        self.came += 1;
        self.hosts.push(peer);
        let [local, remote] = [port, 40_000].map(|port| Address::Tcp(([127, 0, 0, 1], port).into()));
        self.tell(Input::Opened(peer, &Ends::new(local, remote)));
    }

    fn tell(&mut self, input: Input<'_, ()>) {
        self.bridge.handle(self.now, input);
    }

    fn receive(&mut self, peer: Peer, bytes: &[u8]) {
        if !self.bridge.has_room(peer) {
            return;
        }
        match self.bridge.landing(peer) {
            Some(landing) if !landing.is_empty() && !bytes.is_empty() => {
                let count = landing.len().min(bytes.len());
                landing[..count].copy_from_slice(&bytes[..count]);
                self.tell(Input::Landed(peer, count));
            }
            _ => self.tell(Input::Received(peer, bytes)),
        }
    }

    fn settle(&mut self) {
        let mut out = Outbox::new();
        for _ in 0..OUTPUTS_MAX {
            match self.bridge.poll(self.now, &mut out) {
                Output::Send(peer) => {
                    out.seal();
                    let bytes = out.pieces().iter().flat_map(|piece| out.bytes(piece).to_vec()).collect();
                    out.clear();
                    self.sent.push((peer, bytes));
                }
                Output::Close(peer) => self.hosts.retain(|host| *host != peer),
                Output::Event(event) => drop(event),
                Output::Open(..) => panic!("a bridge opens nothing"),
                // A bridge that asks for no time at all wants to be polled again soon, which comes with the next step.
                Output::Idle(_) => return,
            }
        }
        panic!("the bridge does not come to rest");
    }

    /// Checks that a host at the first gate is served, whatever happened before: it reads four bytes of the memory.
    fn serve_another(&mut self) {
        self.sent.clear();
        self.connect(PORTS[0]);
        let peer = *self.hosts.last().expect("it has just connected");
        let mut initiator = Initiator::new(InitiatorSettings { logical_address: 200, ..InitiatorSettings::default() });
        let reply_address = hodo_spacewire::rmap::ReplyAddress::from_path(&[1]).expect("it is short");
        let to = Destination { path: vec![3], reply_address, ..Destination::default() };
        let mut packet = Vec::new();
        let request = Request::Read { address: 0, length: 4, increment: true };
        initiator.send(&request, &to, 1, self.now, &mut packet).expect("nothing is outstanding");
        let mut frame = Vec::new();
        ssdtp2::Message::Packet { data: &packet, end: Eop }.encode(&mut frame);
        let mut is_asked = false;
        // Routes and links may have been changed by commands for the configuration port: then nobody is served.
        for _ in 0..400 {
            self.now = self.now + Duration::from_micros(50);
            self.settle();
            if !is_asked && self.bridge.has_room(peer) {
                is_asked = true;
                self.receive(peer, &frame);
                self.settle();
            }
            let stream: Vec<u8> =
                self.sent.iter().filter(|(to, _)| *to == peer).flat_map(|(_, bytes)| bytes.clone()).collect();
            if contains_reply(&stream, &mut initiator) {
                return;
            }
        }
        let network = self.bridge.machine().network_mut();
        let router = network.router("router").expect("it is there");
        let is_disabled = |port| network.end((router, port)).expect("it has a link").settings().disabled;
        assert!([1, 3].into_iter().any(is_disabled), "a host that keeps the rules is not served");
    }
}

fn contains_reply(stream: &[u8], initiator: &mut Initiator) -> bool {
    let mut decoder = ssdtp2::Decoder::new(ssdtp2::DecoderSettings::default());
    let mut rest = stream;
    while let Ok(Some(message)) = decoder.next(&mut rest) {
        if let ssdtp2::Message::Packet { data, end } = message
            && initiator.receive(data, end).is_ok_and(|completion| completion.result.is_ok())
        {
            return true;
        }
    }
    false
}

/// Checks that a network file is understood or refused with a line to look at.
pub fn network(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    // No file of this computer is to be read, nor memory of gigabytes to be made.
    if text.contains("file") || text.contains('/') || text.len() > 4096 {
        return;
    }
    if let Err(error) = Plan::parse("network.toml", text, Path::new("/nowhere")) {
        assert!(error.to_string().contains("network.toml"), "{error}");
    }
}
