use crate::metered::Metered;
use hodo_ipbus::wire::Version;
use hodo_ipbus::wire::operation::Mode;
use hodo_ipbus::{Block, Client, ClientConfig, Command, Device, DeviceCommand, DeviceConfig, Event, Path};
use hodo_machine::{Address, Closed, Ends, Input, Instant, Machine, Outbox, Output, Peer, Transport};
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

const OUTPUTS_MAX: usize = 10_000;
const DEVICE: Peer = Peer(0);
const CLIENT: Peer = Peer(Peer::FIRST_ACCEPTED);

/// Drives a client. The first byte chooses path and version; the rest says the commands and the fate of each packet. Every
/// command ends once, and in order, and no bytes make the client panic.
pub fn machine(input: &[u8]) {
    let Some((choice, script)) = input.split_first() else { return };
    let mut floor = Floor::new(*choice);
    floor.settle();
    let mut rest = script;
    while let Some((head, behind)) = rest.split_first_chunk::<2>() {
        let (kind, value) = (head[0] % 16, head[1]);
        let takes = if kind == 9 { usize::from(value).min(behind.len()) } else { 0 };
        let (bytes, behind) = behind.split_at(takes);
        rest = behind;
        floor.step(kind, value, bytes);
        floor.settle();
    }
}

struct Floor {
    client: Metered<Client>,
    device: Device,
    now: Instant,
    out: Outbox,
    open: bool,
    /// On their way to the device, and back.
    requests: VecDeque<Vec<u8>>,
    replies: VecDeque<Vec<u8>>,
    asked: u64,
    ended: u64,
}

impl Floor {
    fn new(choice: u8) -> Floor {
        let version = if choice & 1 == 0 { Version::V2_0 } else { Version::V1_3 };
        let target = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 50001);
        let path = match choice >> 1 & 3 {
            0 => Path::Udp { reliable: true },
            1 => Path::Udp { reliable: false },
            2 => Path::Tcp,
            _ => Path::Hub(target),
        };
        let transport = if matches!(path, Path::Udp { .. }) { Transport::Datagram } else { Transport::Stream };
        let mut device =
            Device::new(DeviceConfig { memory_bytes_max: 1 << 20, ..DeviceConfig::new(transport, version) });
        device.handle(Instant::ZERO, Input::Opened(CLIENT, &Ends::nodes(1, 0)));
        Floor {
            client: Metered::new(Client::new(ClientConfig::new(path, version, Address::Node(1)))),
            device,
            now: Instant::ZERO,
            out: Outbox::new(),
            open: false,
            requests: VecDeque::new(),
            replies: VecDeque::new(),
            asked: 0,
            ended: 0,
        }
    }

    fn step(&mut self, kind: u8, value: u8, bytes: &[u8]) {
        match kind {
            0..=3 => self.ask(kind, value),
            4 => self.client.handle(self.now, Input::Command(Command::Flush)),
            5 => (0..=value % 8).for_each(|_| self.carry()),
            6 => drop(self.requests.pop_front()),
            7 => drop(self.replies.pop_front()),
            8 => {
                if let Some(reply) = self.replies.front_mut() {
                    let at = usize::from(value) % reply.len().max(1);
                    reply.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << (value % 8));
                }
            }
            9 => self.receive(bytes),
            10 => self.replies.extend(self.replies.front().cloned()),
            11 => self.replies.rotate_left(usize::from(value % 2).min(self.replies.len())),
            12 => self.device.handle(self.now, Input::Command(DeviceCommand::Reboot { clear_memory: true })),
            13 if self.open => {
                self.open = false;
                self.client.handle(self.now, Input::Closed(DEVICE, Closed::Reset));
            }
            14 if self.open => {
                let input = if value.is_multiple_of(2) { Input::Blocked(DEVICE) } else { Input::Drained(DEVICE) };
                self.client.handle(self.now, input);
            }
            _ => {
                self.now = self.now + Duration::from_micros(1 << (value % 22));
                self.client.handle(self.now, Input::Elapsed);
            }
        }
    }

    fn ask(&mut self, kind: u8, value: u8) {
        let (tag, address, words) = (self.asked, u32::from(value), u32::from(value) * 7);
        self.asked += 1;
        let mode = [Mode::Incrementing, Mode::Fifo, Mode::Configuration][usize::from(value % 3)];
        let data: Block = (0..words).collect();
        self.client.handle(
            self.now,
            Input::Command(match kind {
                0 => Command::Read { tag, address },
                1 => Command::ReadBlock { tag, mode, address, words, into: Vec::new() },
                2 => Command::WriteBlock { tag, mode, address, data },
                _ => Command::RmwSum { tag, address, addend: words },
            }),
        );
    }

    /// Brings the next packet to the device, and the next answer back.
    fn carry(&mut self) {
        if let Some(request) = self.requests.pop_front() {
            self.device.handle(self.now, Input::Received(CLIENT, &request));
            loop {
                match self.device.poll(self.now, &mut self.out) {
                    Output::Send(_) => self.replies.push_back(taken(&mut self.out)),
                    Output::Idle(_) => break,
                    _ => {}
                }
            }
        }
        if let Some(reply) = self.replies.pop_front() {
            self.receive(&reply);
        }
    }

    fn receive(&mut self, bytes: &[u8]) {
        if self.open {
            self.client.handle(self.now, Input::Received(DEVICE, bytes));
        }
    }

    fn settle(&mut self) {
        for _ in 0..OUTPUTS_MAX {
            match self.client.poll(self.now, &mut self.out) {
                Output::Send(_) => {
                    assert!(self.open, "sent without a link");
                    self.requests.push_back(taken(&mut self.out));
                }
                Output::Event(Event::Done { tag, .. } | Event::Failed { tag, .. }) => {
                    assert_eq!(tag, self.ended, "what is asked ends once, and in order");
                    self.ended += 1;
                }
                Output::Event(_) => {}
                Output::Open(peer, address) => {
                    assert!(!self.open, "opened twice");
                    self.open = true;
                    self.client.handle(self.now, Input::Opened(peer, &Ends::new(Address::Node(0), address)));
                }
                Output::Close(_) => self.open = false,
                Output::Idle(_) => return,
            }
        }
        panic!("it never comes to rest");
    }
}

fn taken(out: &mut Outbox) -> Vec<u8> {
    let bytes = out.pieces().iter().flat_map(|piece| out.bytes(piece).to_vec()).collect();
    out.clear();
    bytes
}
