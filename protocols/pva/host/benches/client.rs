//! Measures the client machine alone, without sockets: `cargo bench -p hodo-pva-host --bench client`.

use hodo_io::Clock;
use hodo_machine::{Address, Ends, Input, Instant, Machine, Outbox, Output, Peer};
use hodo_pva_host::machines::client::{Client, ClientConfig, Command, Event, Kind};
use hodo_pva_host::machines::normative::Normative;
use hodo_pva_host::machines::server::{Access, Server, ServerConfig};
use hodo_pva_host::machines::{Item, Request, Scalar, Value};

/// A client and a server, and the bytes between them.
struct Scene {
    client: Client,
    server: Server,
    out: Outbox,
    /// The number that the client has given to the connection.
    peer: Peer,
    done: u32,
}

impl Scene {
    /// Connects a client, which opens channels and prepares a get on each.
    fn new(channels: u32) -> Self {
        let mut server = Server::new(ServerConfig::default());
        let mut value = Value::of(Normative::scalar(Scalar::F64).build());
        value.set("value", 1.5).expect("it fits");
        for number in 0..channels {
            server.serve(format!("pv:{number}"), value.clone(), Access::ReadOnly);
        }
        let mut scene =
            Scene { client: Client::new(ClientConfig::default()), server, out: Outbox::new(), peer: Peer(0), done: 0 };
        for channel in 0..channels {
            let name = format!("pv:{channel}");
            scene.command(Command::Open { channel, name, server: Some(Address::Node(1)) });
            let request: Request = "field(value)".parse().expect("a request");
            let request = Box::new(request);
            scene.command(Command::Prepare { operation: channel, channel, kind: Kind::Get, request });
        }
        scene.talk();
        scene
    }

    #[inline]
    fn command(&mut self, command: Command) {
        self.client.handle(Instant::ZERO, Input::Command(command));
    }

    /// Returns what the client sends, which is not looked at.
    #[inline]
    fn said(&mut self) -> Vec<u8> {
        let mut said = Vec::new();
        loop {
            match self.client.poll(Instant::ZERO, &mut self.out) {
                Output::Send(_) => {
                    said.extend(self.out.pieces().iter().flat_map(|piece| self.out.bytes(piece).to_vec()));
                    self.out.clear();
                }
                Output::Open(peer, _) => {
                    self.peer = peer;
                    self.client.handle(Instant::ZERO, Input::Opened(peer, &Ends::nodes(0, 1)));
                    self.server.handle(Instant::ZERO, Input::Opened(Peer::accepted(0), &Ends::nodes(1, 0)));
                }
                Output::Event(Event::Done { .. }) => self.done += 1,
                Output::Event(_) => {}
                Output::Close(_) => panic!("the client closes"),
                Output::Idle(_) => return said,
            }
        }
    }

    /// Returns what the server answers.
    fn answers(&mut self) -> Vec<u8> {
        let mut said = Vec::new();
        loop {
            match self.server.poll(Instant::ZERO, &mut self.out) {
                Output::Send(_) => {
                    said.extend(self.out.pieces().iter().flat_map(|piece| self.out.bytes(piece).to_vec()));
                    self.out.clear();
                }
                Output::Event(_) => {}
                Output::Idle(_) => return said,
                other => panic!("{other:?}"),
            }
        }
    }

    /// Carries bytes to and fro until nobody says anything; returns the last ones of the server.
    fn talk(&mut self) -> Vec<u8> {
        let mut last = Vec::new();
        loop {
            let (asked, answers) = (self.said(), self.answers());
            if asked.is_empty() && answers.is_empty() {
                return last;
            }
            self.server.handle(Instant::ZERO, Input::Received(Peer::accepted(0), &asked));
            let more = self.answers();
            let all = [answers, more].concat();
            self.client.handle(Instant::ZERO, Input::Received(self.peer, &all));
            last = all;
        }
    }
}

/// Repeats gets of so many channels, and prints how long one takes the client.
fn measure(channels: u32) {
    let mut scene = Scene::new(channels);
    (0..channels).for_each(|operation| scene.command(Command::Execute { operation }));
    let replies = scene.talk();
    assert_eq!(scene.done, channels);
    assert_eq!(scene.client.value(0).and_then(|value| value.get("value")).and_then(Item::as_f64), Some(1.5));
    let clock = Clock::start();
    let (mut best, rounds) = (f64::INFINITY, (1_000_000 / channels).max(1));
    for _ in 0..9 {
        let start = clock.now();
        for _ in 0..rounds {
            (0..channels).for_each(|operation| scene.command(Command::Execute { operation }));
            while let Output::Send(_) = scene.client.poll(Instant::ZERO, &mut scene.out) {
                scene.out.clear();
            }
            scene.client.handle(Instant::ZERO, Input::Received(scene.peer, &replies));
            while let Output::Event(event) = scene.client.poll(Instant::ZERO, &mut scene.out) {
                scene.done += u32::from(matches!(event, Event::Done { .. }));
            }
        }
        best = best.min((clock.now() - start).as_nanos() as f64 / f64::from(rounds * channels));
    }
    assert_eq!(scene.done, channels * (1 + 9 * rounds));
    println!("get, {channels} channels of one server, a round {best:12.1} ns  {:7.2} M/s", 1e3 / best);
}

fn main() {
    [1, 100, 1000, 10_000].into_iter().for_each(measure);
}
