//! In steady state a client allocates nothing per transaction: ten times the operations need no more memory.
use crate::counting;

use counting::allocations_here;
use hodo_ipbus::hub::{AllowList, Hub, HubConfig};
use hodo_ipbus::wire::Version;
use hodo_ipbus::wire::operation::Mode;
use hodo_ipbus::{Block, Client, ClientConfig, Command, Data, Device, DeviceConfig, Event, Path};
use hodo_machine::{Address, Ends, Input, Instant, Machine, Outbox, Output, Peer, Transport};
use std::net::{Ipv4Addr, SocketAddrV4};

const DEVICE: Peer = Peer(0);
const CLIENT: Peer = Peer(Peer::FIRST_ACCEPTED);
const WORDS: u32 = 20_000;

/// A client and a device, the hub where there is one, and what is on its way between them.
struct Bench {
    client: Client,
    hub: Option<Hub>,
    device: Device,
    out: Outbox,
    bytes: Vec<u8>,
    block: Vec<u32>,
    data: Block,
    ended: u64,
}

impl Bench {
    fn new(path: Path, version: Version) -> Bench {
        let transport = if matches!(path, Path::Tcp) { Transport::Stream } else { Transport::Datagram };
        let mut hub = matches!(path, Path::Hub(_)).then(|| Hub::new(HubConfig::default(), AllowList::ALL));
        if let Some(hub) = &mut hub {
            hub.handle(Instant::ZERO, Input::Opened(CLIENT, &Ends::nodes(1, 0)));
        }
        let mut bench = Bench {
            hub,
            client: Client::new(ClientConfig::new(path, version, Address::Node(1))),
            device: Device::new(DeviceConfig::new(transport, version)),
            out: Outbox::new(),
            bytes: Vec::new(),
            block: Vec::new(),
            data: (0..WORDS).collect(),
            ended: 0,
        };
        bench.device.handle(Instant::ZERO, Input::Opened(CLIENT, &Ends::nodes(1, 0)));
        bench.run(0);
        bench
    }

    /// Runs single words by the hundred, and a block out and back.
    fn round(&mut self) {
        let due = self.ended + 202;
        let tag = 0;
        let block = std::mem::take(&mut self.block);
        let (mode, address) = (Mode::Incrementing, 0x1000);
        self.ask(Command::WriteBlock { tag, mode, address, data: self.data.clone() });
        self.ask(Command::ReadBlock { tag, mode, address, words: WORDS, into: block });
        for address in 0..100 {
            self.ask(Command::Read { tag, address });
            self.ask(Command::RmwSum { tag, address, addend: 1 });
        }
        self.ask(Command::Flush);
        self.run(due);
    }

    fn ask(&mut self, command: Command) {
        self.client.handle(Instant::ZERO, Input::Command(command));
    }

    fn run(&mut self, due: u64) {
        loop {
            match self.client.poll(Instant::ZERO, &mut self.out) {
                Output::Send(_) => self.answer(),
                Output::Open(peer, address) => {
                    self.client.handle(Instant::ZERO, Input::Opened(peer, &Ends::new(Address::Node(0), address)));
                }
                Output::Event(Event::Done { data, .. }) => {
                    self.ended += 1;
                    if let Data::Block(block) = data {
                        assert_eq!(block[..], self.data[..]);
                        self.block = block;
                    }
                }
                Output::Event(Event::Ready) => {}
                Output::Event(other) => panic!("{other:?}"),
                Output::Close(_) => panic!("closed"),
                Output::Idle(_) => break,
            }
        }
        assert_eq!(self.ended, due);
    }

    /// Brings what the client sends to the device, and its answers back.
    fn answer(&mut self) {
        take(&mut self.out, &mut self.bytes);
        let Some(hub) = &mut self.hub else {
            self.device.handle(Instant::ZERO, Input::Received(CLIENT, &self.bytes));
            while let Output::Send(_) = self.device.poll(Instant::ZERO, &mut self.out) {
                take(&mut self.out, &mut self.bytes);
                self.client.handle(Instant::ZERO, Input::Received(DEVICE, &self.bytes));
            }
            return;
        };
        hub.handle(Instant::ZERO, Input::Received(CLIENT, &self.bytes));
        loop {
            match hub.poll(Instant::ZERO, &mut self.out) {
                Output::Send(peer) if peer.is_accepted() => {
                    take(&mut self.out, &mut self.bytes);
                    self.client.handle(Instant::ZERO, Input::Received(DEVICE, &self.bytes));
                }
                Output::Send(board) => {
                    take(&mut self.out, &mut self.bytes);
                    self.device.handle(Instant::ZERO, Input::Received(CLIENT, &self.bytes));
                    while let Output::Send(_) = self.device.poll(Instant::ZERO, &mut self.out) {
                        take(&mut self.out, &mut self.bytes);
                        hub.handle(Instant::ZERO, Input::Received(board, &self.bytes));
                    }
                }
                Output::Open(peer, address) => {
                    hub.handle(Instant::ZERO, Input::Opened(peer, &Ends::new(Address::Node(0), address)));
                }
                Output::Event(_) => {}
                Output::Close(_) => panic!("closed"),
                Output::Idle(_) => break,
            }
        }
    }

    fn allocations(&mut self, rounds: u64) -> u64 {
        let before = allocations_here();
        (0..rounds).for_each(|_| self.round());
        allocations_here() - before
    }
}

fn take(out: &mut Outbox, bytes: &mut Vec<u8>) {
    bytes.clear();
    out.pieces().iter().for_each(|piece| bytes.extend_from_slice(out.bytes(piece)));
    out.clear();
}

/// Runs as the only test, because the counter counts everything in this process.
#[test]
fn more_operations_need_no_more_allocations() {
    let hub = Path::Hub(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 50001));
    let ways = [Path::Udp { reliable: true }, Path::Udp { reliable: false }, Path::Tcp, hub];
    for path in ways {
        for version in [Version::V2_0, Version::V1_3] {
            let mut bench = Bench::new(path, version);
            let first = bench.allocations(20);
            assert_eq!(bench.allocations(50), 0, "{path:?} {version}, after {first} at first");
        }
    }
}
