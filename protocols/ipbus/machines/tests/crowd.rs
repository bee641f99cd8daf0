//! Several hosts of one device, and several clients of one hub: nobody who keeps the rules waits for others, and neither costs
//! more than its allowance.

use crate::counting;

use core::time::Duration;
use hodo_ipbus::hub::{AllowList, Hub, HubCommand, HubConfig, HubEvent};
use hodo_ipbus::wire::Version;
use hodo_ipbus::wire::operation::Mode;
use hodo_ipbus::{Client, ClientConfig, Command, Device, DeviceConfig, Event, Path};
use hodo_machine::{Address, Input, Instant, Machine, Outbox, Output, Transport};
use hodo_sim::World;
use hodo_sim::conformance::Crowd;
use hodo_sim::cost::{Allowance, measure_by};
use std::net::{Ipv4Addr, SocketAddrV4};

const BOARD: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 50001);

/// A hub whose boards are all at one node.
struct At(Hub, u32);

impl Machine for At {
    type Command = HubCommand;
    type Event = HubEvent;

    fn handle(&mut self, now: Instant, input: Input<'_, HubCommand>) {
        self.0.handle(now, input);
    }

    fn poll(&mut self, now: Instant, out: &mut Outbox) -> Output<HubEvent> {
        match self.0.poll(now, out) {
            Output::Open(peer, _) => Output::Open(peer, Address::Node(self.1)),
            output => output,
        }
    }
}

/// Returns the cost of machines that talk to a device, which has no room for a proof: four bytes have a stored reply sent again.
fn cost() -> Allowance {
    Allowance { to_strangers: 1500 / 4, ..Allowance::default() }
}

fn device(world: &mut World, transport: Transport) -> u32 {
    let site = world.add_site();
    world.start_with(site, Device::new(DeviceConfig::new(transport, Version::V2_0)), |_| None);
    site.node
}

fn is_fair(transport: Transport, path: Path, server: &dyn Fn(&mut World) -> u32) {
    measure_by(counting::bytes_here);
    let flushed = |command| vec![command, Command::Flush];
    let crowd = Crowd {
        transport,
        server,
        client: &|node, _| Client::new(ClientConfig::new(path, Version::V2_0, Address::Node(node))),
        operation: &|_, tag| flushed(Command::Read { tag, address: 1 }),
        greedy: &|_, tag| {
            let (mode, into) = (Mode::Incrementing, Vec::new());
            flushed(Command::ReadBlock { tag, mode, address: 0, words: 1000, into })
        },
        is_done: |event| matches!(event, Event::Done { .. }),
        patience: Duration::from_millis(10),
        cost: cost(),
    };
    crowd.is_fair();
}

#[test]
fn hosts_of_a_device_over_datagrams_do_not_wait_for_others() {
    is_fair(Transport::Datagram, Path::Udp { reliable: false }, &|world| device(world, Transport::Datagram));
}

#[test]
fn hosts_of_a_device_over_streams_do_not_wait_for_others() {
    is_fair(Transport::Stream, Path::Tcp, &|world| device(world, Transport::Stream));
}

#[test]
fn clients_of_a_hub_do_not_wait_for_others() {
    is_fair(Transport::Stream, Path::Hub(BOARD), &|world| {
        let board = device(world, Transport::Datagram);
        let site = world.add_site();
        world.set_opening(site.node, Transport::Datagram);
        world.start_with(site, At(Hub::new(HubConfig::default(), AllowList::ALL), board), |_| None);
        site.node
    });
}
