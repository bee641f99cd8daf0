//! Measures the server machine alone, without sockets: `cargo bench -p hodo-pva-host --bench server`.

use hodo_io::Clock;
use hodo_machine::{Ends, Input, Instant, Machine, Outbox, Output, Peer};
use hodo_pva_host::machines::normative::Normative;
use hodo_pva_host::machines::server::{Access, Server, ServerConfig};
use hodo_pva_host::machines::session::ANONYMOUS;
use hodo_pva_host::machines::wire::connection::{CreateChannel, Credentials};
use hodo_pva_host::machines::wire::operation::{Operation, Subcommand};
use hodo_pva_host::machines::wire::{Command, Side};
use hodo_pva_host::machines::{BitSet, Order, Request, Scalar, Value, Writer};

const CHANNELS: u32 = 1000;

/// A server, and what its clients have sent.
struct Scene {
    server: Server,
    out: Outbox,
    sent_bytes: usize,
}

fn written(write: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut writer = Writer::new(Side::Client, Order::Little);
    write(&mut writer);
    writer.to_vec()
}

impl Scene {
    fn new() -> Self {
        let mut server = Server::new(ServerConfig::default());
        for number in 0..CHANNELS {
            server.serve(format!("pv:{number}"), sample(), Access::ReadOnly);
        }
        Scene { server, out: Outbox::new(), sent_bytes: 0 }
    }

    /// Connects a client, which opens channels and sets an operation up on each.
    fn connect(&mut self, client: u32, channels: u32, command: Command) {
        let peer = Peer::accepted(client);
        self.server.handle(Instant::ZERO, Input::Opened(peer, &Ends::nodes(0, client)));
        let way = ANONYMOUS.to_string();
        let credentials = Credentials { buffer_bytes: 0, types: 0, priority: 0, way, claim: None };
        self.hand(client, &written(|writer| credentials.encode(writer)));
        let request = "field(value)".parse::<Request>().expect("it is one").to_value();
        for number in 0..channels {
            let name = format!("pv:{number}");
            self.hand(
                client,
                &written(|writer| {
                    CreateChannel { cid: number, name: name.as_bytes() }.encode(writer);
                    Operation { sid: number, ioid: number, subcommand: Subcommand::INIT }.begin(command, writer);
                    Value::encode_any(Some(&request), writer);
                    writer.end();
                }),
            );
        }
    }

    fn hand(&mut self, client: u32, bytes: &[u8]) {
        self.server.handle(Instant::ZERO, Input::Received(Peer::accepted(client), bytes));
        self.settle();
    }

    fn settle(&mut self) {
        loop {
            match self.server.poll(Instant::ZERO, &mut self.out) {
                Output::Send(_) => {
                    self.sent_bytes += self.out.len();
                    self.out.clear();
                }
                Output::Event(_) => {}
                Output::Idle(_) => return,
                other => panic!("{other:?}"),
            }
        }
    }

    fn start(&mut self, client: u32, operations: u32) {
        let start = written(|writer| {
            for ioid in 0..operations {
                Operation { sid: ioid, ioid, subcommand: Subcommand::START }.encode(Command::Monitor, writer);
            }
        });
        self.hand(client, &start);
    }
}

fn sample() -> Value {
    let mut value = Value::of(Normative::scalar(Scalar::F64).alarm().time_stamp().build());
    value.set("value", 1.5).expect("it fits");
    value
}

/// Repeats something, and prints how long one of its `items` takes.
fn measure(what: &str, items: u32, mut round: impl FnMut(u32)) {
    let clock = Clock::start();
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let start = clock.now();
        let rounds = 2_000_000 / items;
        (0..rounds).for_each(&mut round);
        best = best.min((clock.now() - start).as_nanos() as f64 / f64::from(rounds * items));
    }
    println!("{what:<60} {best:7.1} ns  {:7.2} M/s", 1e3 / best);
}

fn main() {
    let mut scene = Scene::new();
    scene.connect(0, CHANNELS, Command::Get);
    let gets = written(|writer| {
        for ioid in 0..CHANNELS {
            Operation { sid: ioid, ioid, subcommand: Subcommand::NONE }.encode(Command::Get, writer);
        }
    });
    measure("get, 1000 channels of one client", CHANNELS, |_| scene.hand(0, &gets));

    let mut value = sample();
    let none = BitSet::new();
    let mut update = |scene: &mut Scene, channel: u32, number: u32| {
        value.unmark();
        value.set_at(1, f64::from(number)).expect("it fits");
        scene.server.post(channel, &value, &none);
    };
    measure("post, nobody subscribed", 1, |number| update(&mut scene, 0, number));

    let mut scene = Scene::new();
    scene.connect(0, 1, Command::Monitor);
    scene.start(0, 1);
    measure("post and send, 1 channel, 1 subscriber", 1, |number| {
        update(&mut scene, 0, number);
        scene.settle();
    });

    let mut scene = Scene::new();
    scene.connect(0, CHANNELS, Command::Monitor);
    scene.start(0, CHANNELS);
    measure("post and send, 1000 channels of one subscriber, a round", CHANNELS, |number| {
        (0..CHANNELS).for_each(|channel| update(&mut scene, channel, number));
        scene.settle();
    });

    let mut scene = Scene::new();
    for client in 0..1000 {
        scene.connect(client, 1, Command::Monitor);
        scene.start(client, 1);
    }
    measure("update of one of 1000 subscribers of a channel", 1000, |number| {
        update(&mut scene, 0, number);
        scene.settle();
    });
    println!("{} bytes were sent last", scene.sent_bytes);
}
