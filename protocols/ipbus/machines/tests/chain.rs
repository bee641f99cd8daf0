//! A client, the hub and a device in a row, as they are in production, over the simulated network.

use hodo_ipbus::device::Registers;
use hodo_ipbus::hub::{AllowList, Hub, HubConfig};
use hodo_ipbus::wire::Version;
use hodo_ipbus::wire::hub::Code;
use hodo_ipbus::wire::operation::Mode;
use hodo_ipbus::{Client, ClientConfig, Command, Data, Device, DeviceCommand, DeviceConfig, Error, Event, Path};
use hodo_machine::{Address, Closed, Driver, Ends, Input, Instant, Machine, Outbox, Output, Peer, Transport, Wait};
use hodo_sim::{Network, Sim};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::time::Duration;

const TARGET: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 50001);
const HUB: u32 = 1;
const DEVICE: u32 = 2;
const WORDS: u32 = 20_000;

enum Link {
    Client(Box<Client>),
    Hub(Box<Hub>),
    Device(Box<Device>),
}

enum Ask {
    Client(Command),
    Device(DeviceCommand),
}

fn told<E>(output: &Output<E>) -> Output<Option<Event>> {
    match *output {
        Output::Send(peer) => Output::Send(peer),
        Output::Event(_) => Output::Event(None),
        Output::Open(peer, _) => Output::Open(peer, Address::Node(DEVICE)),
        Output::Close(peer) => Output::Close(peer),
        Output::Idle(deadline) => Output::Idle(deadline),
    }
}

impl Machine for Link {
    type Command = Ask;
    type Event = Option<Event>;

    fn handle(&mut self, now: Instant, input: Input<'_, Ask>) {
        let plainly = "the command is this machine's";
        match (self, input) {
            (Link::Client(client), Input::Command(Ask::Client(command))) => client.handle(now, Input::Command(command)),
            (Link::Device(device), Input::Command(Ask::Device(command))) => device.handle(now, Input::Command(command)),
            (Link::Client(client), input) => client.handle(now, input.without_command().expect(plainly)),
            (Link::Device(device), input) => device.handle(now, input.without_command().expect(plainly)),
            (Link::Hub(hub), input) => hub.handle(now, input.without_command().expect(plainly)),
        }
    }

    fn poll(&mut self, now: Instant, out: &mut Outbox) -> Output<Option<Event>> {
        match self {
            Link::Hub(hub) => told(&hub.poll(now, out)),
            Link::Device(device) => told(&device.poll(now, out)),
            Link::Client(client) => match client.poll(now, out) {
                Output::Event(event) => Output::Event(Some(event)),
                Output::Open(peer, address) => Output::Open(peer, address),
                output => told(&output),
            },
        }
    }
}

fn chain(version: Version, loss: f64, seed: u64) -> Sim<Link, Link> {
    let network = Network { loss, seed, jitter: Duration::from_micros(3), ..Network::default() };
    let client = ClientConfig::new(Path::Hub(TARGET), version, Address::Node(HUB));
    let client = ClientConfig { timeout: Duration::from_secs(10), ..client };
    let registers = Registers::new([]).expect("there is none");
    let device = DeviceConfig { registers, ..DeviceConfig::new(Transport::Datagram, version) };
    let servers = vec![
        Link::Hub(Box::new(Hub::new(HubConfig::default(), AllowList::ALL))),
        Link::Device(Box::new(Device::new(device))),
    ];
    let client = Link::Client(Box::new(Client::new(client)));
    let mut sim = Sim::new(Transport::Stream, (&network, &network), client, servers, |_| None);
    sim.set_opening(HUB, Transport::Datagram);
    sim
}

/// Sends commands, and waits for as many ends.
fn ask(sim: &mut Sim<Link, Link>, commands: Vec<Command>) -> Vec<Result<Data, Error>> {
    let (wanted, end) = (commands.len(), sim.now() + Duration::from_secs(100));
    commands.into_iter().for_each(|command| sim.command(Ask::Client(command)));
    sim.command(Ask::Client(Command::Flush));
    let mut ends = Vec::new();
    while ends.len() < wanted {
        assert!(sim.now() < end, "{} of {wanted} have ended", ends.len());
        let turned = sim.turn(Wait::Block, end, &mut |event| match event {
            Some(Event::Done { data, .. }) => ends.push(Ok(data)),
            Some(Event::Failed { error, .. }) => ends.push(Err(error)),
            _ => {}
        });
        turned.expect("something is left to happen");
    }
    ends
}

#[test]
fn blocks_come_through_whole_whatever_is_lost() {
    for (version, loss) in [(Version::V2_0, 0.0), (Version::V2_0, 0.1), (Version::V1_3, 0.0)] {
        for seed in 0..5 {
            let mut sim = chain(version, loss, seed);
            let data: Arc<[u32]> = (0..WORDS).map(|word| word.wrapping_mul(0x9E37_79B1) ^ seed as u32).collect();
            let (mode, address) = (Mode::Incrementing, 0x1000);
            let ends = ask(
                &mut sim,
                vec![
                    Command::WriteBlock { tag: 1, mode, address, data: Arc::clone(&data).into() },
                    Command::ReadBlock { tag: 2, mode, address, words: WORDS, into: Vec::new() },
                ],
            );
            assert_eq!(ends, [Ok(Data::Written), Ok(Data::Block(data.to_vec()))], "{version}, {loss}, {seed}");
        }
    }
}

#[test]
fn what_was_in_flight_at_a_restart_fails_and_the_rest_goes_on() {
    let mut sim = chain(Version::V2_0, 0.0, 1);
    assert_eq!(ask(&mut sim, vec![Command::Read { tag: 0, address: 0 }]), [Ok(Data::Word(0))]);
    sim.command_server(DEVICE, Ask::Device(DeviceCommand::Reboot { clear_memory: true }));
    let lost = Err(Error::Hub(Code::NoResendReply));
    assert_eq!(ask(&mut sim, vec![Command::Write { tag: 1, address: 5, word: 6 }]), [lost]);
    let ends =
        ask(&mut sim, vec![Command::Write { tag: 2, address: 5, word: 7 }, Command::Read { tag: 3, address: 5 }]);
    assert_eq!(ends, [Ok(Data::Written), Ok(Data::Word(7))]);
}

#[test]
fn a_device_that_is_not_there_is_told_by_the_hub() {
    let mut sim = chain(Version::V2_0, 0.0, 1);
    sim.set_listening(DEVICE, false);
    let ends = ask(&mut sim, vec![Command::Read { tag: 0, address: 0 }]);
    assert_eq!(ends, [Err(Error::Hub(Code::NoStatusReply))]);
}

/// Leaves nothing in the hub of a peer that the driver closes.
#[test]
fn a_hub_outlives_its_clients() {
    let mut hub = Hub::new(HubConfig::default(), AllowList::ALL);
    let mut out = Outbox::new();
    for number in 0..100 {
        let peer = Peer(Peer::FIRST_ACCEPTED + number % 3);
        hub.handle(Instant::ZERO, Input::Opened(peer, &Ends::nodes(0, number)));
        hub.handle(Instant::ZERO, Input::Received(peer, &[0, 0, 0]));
        hub.handle(Instant::ZERO, Input::Closed(peer, Closed::Reset));
        while !matches!(hub.poll(Instant::ZERO, &mut out), Output::Idle(_)) {}
    }
    assert_eq!((hub.clients().count(), hub.held().0, hub.counters().came), (0, 0, 100));
}
