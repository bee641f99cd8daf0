//! The smallest protocol: its machines, its link, its server and its name stand in this folder alone.

mod link;
pub mod machines;

use hodo_io::{Endpoint, Sockets};
use hodo_machine::{Address, Transport};
use hodo_measure::limits::{Carrier, OnTheWire};
use hodo_measure::{Mode, Plan, Test};
use hodo_sim::Sim;
use hodo_tester::{
    Description, Error, LOOPBACK, Opened, Protocol, SERVER_NODE, ServeSettings, Server, Service, Settings, TestGroup,
    Uri, cannot, in_parts, networks, simulated, socket_settings,
};
use link::ToyLink;
use machines::{Client, HEADER};
use std::sync::atomic::AtomicBool;

/// The protocol.
pub const TOY: Toy = Toy;

/// Payload one way, its length back.
#[derive(Debug)]
pub struct Toy;

const PORT: u16 = 4243;

const DESCRIPTION: Description = Description {
    name: "toy",
    schemes: &["toy"],
    known_as: &[],
    about: "a toy: payload one way, its length back",
    modes: &[Mode::Send],
    suite: &[
        TestGroup::new(Test::Latency, Mode::Send, &[64], 1, 1),
        TestGroup::new(Test::Rate, Mode::Send, &[64, 1 << 10], 16, 1),
        TestGroup::new(Test::Channels, Mode::Send, &[64], 4, 3),
    ],
    size_max: 1 << 20,
    channels_max: 20_000,
    shares_connections: false,
    batch_max: 1,
    own: false,
    is_at_path: false,
    has_one_thread: false,
    has_updates: false,
};

impl Protocol for Toy {
    fn description(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn port(&self, _uri: &Uri) -> Option<u16> {
        Some(PORT)
    }

    fn open(&self, uri: &Uri, settings: &Settings, stop: &AtomicBool) -> Result<Opened, Error> {
        let address = uri.socket_address("", PORT)?;
        let one_each = Settings { channels: 1, ..settings.clone() };
        let failed = |why: std::io::Error| Error::Failed(format!("opening {uri}: {why}"));
        in_parts(settings, |channels, clock, opened| {
            if channels.len() > 1 {
                return Err(Error::Usage("--channels: a toy has one channel a thread".into()));
            }
            let streams = Sockets::new(socket_settings(&one_each)).map_err(failed)?;
            let endpoint = Endpoint::new(Client::new(address.clone()), streams, clock);
            let link = ToyLink::open(endpoint, settings, stop).map_err(|why| cannot(uri, &why))?;
            opened.note(link.driver().transport().facts());
            opened.links.push(Box::new(link));
            Ok(())
        })
    }

    fn simulate(&self, uri: &Uri, settings: &Settings, stop: &AtomicBool) -> Result<Opened, Error> {
        let (out, back) = networks(uri, &uri.options, settings)?;
        let client = Client::new(Address::Node(SERVER_NODE));
        let server = machines::Server::default();
        let sim = Sim::new(Transport::Stream, (&out, &back), client, vec![server], |()| None);
        let link = ToyLink::open(sim, settings, stop).map_err(|why| cannot(uri, &why))?;
        let model = link.driver().model();
        Ok(simulated(Box::new(link), model, 1))
    }

    fn serve(&self, uri: &Uri, settings: &ServeSettings) -> Result<Server, Error> {
        let service = Service {
            make: |_| machines::Server::default(),
            answer: |()| None,
            transport: Transport::Stream,
            threads: settings.thread_count(),
            listeners: 1,
        };
        Server::bind(uri, &uri.socket_address(LOOPBACK, PORT)?, settings, service)
    }

    fn on_the_wire(&self, _uri: &Uri, plan: &Plan) -> Result<OnTheWire, Error> {
        Ok(OnTheWire::over_sizes(plan.size, |size| {
            let (header, payload) = (HEADER as u64, u64::from(size));
            OnTheWire::single(Carrier::Tcp, payload, header + payload, header)
        }))
    }
}
