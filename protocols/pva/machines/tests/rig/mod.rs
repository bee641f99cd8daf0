//! A client and servers that talk without a network, and what the client was told.
#![allow(dead_code, reason = "each test file uses a part")]

use hodo_machine::{Address, Closed, Ends, Input, Instant, Machine, Outbox, Output, Peer};
use hodo_pva::client::{Client, ClientConfig, Command, Event, Kind};
use hodo_pva::normative::Normative;
use hodo_pva::server::{Access, Command as Ask, Event as Asked, Server, ServerConfig};
use hodo_pva::{Item, Scalar, SessionConfig, Value};
use std::collections::HashMap;
use std::time::Duration;

/// Whatever stands at the other end of a connection.
pub trait Far {
    fn opened(&mut self, now: Instant, peer: Peer);
    fn received(&mut self, now: Instant, peer: Peer, bytes: &[u8]);
    fn closed(&mut self, now: Instant, peer: Peer);
    /// Returns the next bytes for a peer; none at all ends the connection.
    fn say(&mut self, now: Instant) -> Option<(Peer, Vec<u8>)>;
}

impl Far for (Server, Vec<Asked>) {
    fn opened(&mut self, now: Instant, peer: Peer) {
        self.0.handle(now, Input::Opened(peer, &Ends::nodes(0, peer.0)));
    }
    fn received(&mut self, now: Instant, peer: Peer, bytes: &[u8]) {
        self.0.handle(now, Input::Received(peer, bytes));
    }
    fn closed(&mut self, now: Instant, peer: Peer) {
        self.0.handle(now, Input::Closed(peer, Closed::Finished));
    }
    fn say(&mut self, now: Instant) -> Option<(Peer, Vec<u8>)> {
        let mut out = Outbox::new();
        loop {
            match self.0.poll(now, &mut out) {
                Output::Send(peer) => {
                    return Some((peer, out.pieces().iter().flat_map(|piece| out.bytes(piece).to_vec()).collect()));
                }
                Output::Event(event) => self.1.push(event),
                Output::Close(peer) => return Some((peer, Vec::new())),
                Output::Open(..) => panic!("a server opens nothing"),
                Output::Idle(_) => return None,
            }
        }
    }
}

/// A client at node 0, and far ends at nodes 1 and up.
pub struct Rig<F> {
    pub client: Client,
    pub far: Vec<F>,
    /// The node of each connection that is open.
    pub open: HashMap<u32, usize>,
    /// Connections that were opened or tried.
    pub tries: Vec<(Instant, u32)>,
    pub events: Vec<Event>,
    pub writes: usize,
    pub sent_bytes: usize,
    pub now: Instant,
    /// Bytes in which streams arrive.
    pub chunk: usize,
    /// Nodes that nobody can connect to.
    pub deaf: Vec<usize>,
    /// Bytes to the far ends, and to the client, after which the connection is cut, once.
    pub cut_after: [Option<usize>; 2],
    /// Bytes that went to the far ends, and to the client.
    pub carried: [usize; 2],
    deadline: Option<Instant>,
}

impl<F: Far> Rig<F> {
    pub fn new(config: ClientConfig, far: Vec<F>) -> Self {
        Rig {
            client: Client::new(config),
            far,
            open: HashMap::new(),
            tries: Vec::new(),
            events: Vec::new(),
            writes: 0,
            sent_bytes: 0,
            now: Instant::ZERO,
            chunk: usize::MAX,
            deaf: Vec::new(),
            cut_after: [None; 2],
            carried: [0; 2],
            deadline: None,
        }
    }

    pub fn command(&mut self, command: Command) {
        self.client.handle(self.now, Input::Command(command));
    }

    /// Carries everything to and fro until nobody says anything.
    pub fn settle(&mut self) {
        let mut out = Outbox::new();
        loop {
            out.clear();
            match self.client.poll(self.now, &mut out) {
                Output::Send(Peer(number)) => {
                    let bytes: Vec<u8> = out.pieces().iter().flat_map(|piece| out.bytes(piece).to_vec()).collect();
                    self.writes += 1;
                    self.sent_bytes += bytes.len();
                    if let Some(node) = self.open.get(&number).copied() {
                        let (bytes, is_cut) = self.carry(0, &bytes);
                        for bytes in bytes.chunks(self.chunk) {
                            self.far[node - 1].received(self.now, Peer::accepted(number), bytes);
                        }
                        if is_cut {
                            self.break_off(number);
                        }
                    }
                }
                Output::Event(event) => self.events.push(event),
                Output::Close(Peer(number)) => {
                    if let Some(node) = self.open.remove(&number) {
                        self.far[node - 1].closed(self.now, Peer::accepted(number));
                    }
                }
                Output::Open(peer, Address::Node(node)) => self.connect(peer, node),
                // An IP address stands for the node of its port.
                Output::Open(peer, address) => self.connect(peer, address.ip().expect("an IP address").port().into()),
                Output::Idle(deadline) => {
                    self.deadline = deadline;
                    if !self.far_ends_say() {
                        return;
                    }
                }
            }
        }
    }

    fn connect(&mut self, peer: Peer, node: u32) {
        self.tries.push((self.now, node));
        if self.deaf.contains(&(node as usize)) {
            return self.client.handle(self.now, Input::Closed(peer, Closed::Refused));
        }
        assert!(self.open.insert(peer.0, node as usize).is_none(), "one connection of that number is open already");
        self.far[node as usize - 1].opened(self.now, Peer::accepted(peer.0));
        self.client.handle(self.now, Input::Opened(peer, &Ends::nodes(0, node)));
    }

    fn far_ends_say(&mut self) -> bool {
        let mut any = false;
        for node in 1..=self.far.len() {
            while let Some((peer, bytes)) = self.far[node - 1].say(self.now) {
                any = true;
                let near = Peer(peer.index() as u32);
                if self.open.get(&near.0) != Some(&node) {
                    continue;
                }
                if bytes.is_empty() {
                    self.open.remove(&near.0);
                    self.client.handle(self.now, Input::Closed(near, Closed::Finished));
                }
                let (bytes, is_cut) = self.carry(1, &bytes);
                self.arrive(near, bytes);
                if is_cut {
                    self.break_off(near.0);
                }
            }
        }
        any
    }

    /// Returns the bytes that arrive one way, and whether the connection is cut behind them.
    fn carry<'b>(&mut self, way: usize, bytes: &'b [u8]) -> (&'b [u8], bool) {
        let count = match self.cut_after[way] {
            Some(left) if left < bytes.len() => {
                self.cut_after = [None; 2];
                left
            }
            left => {
                self.cut_after[way] = left.map(|left| left - bytes.len());
                self.carried[way] += bytes.len();
                return (bytes, false);
            }
        };
        (&bytes[..count], true)
    }

    fn break_off(&mut self, number: u32) {
        if let Some(node) = self.open.remove(&number) {
            self.far[node - 1].closed(self.now, Peer::accepted(number));
            self.client.handle(self.now, Input::Closed(Peer(number), Closed::Reset));
        }
    }

    /// Hands bytes to the client, directly into their place where it offers one.
    pub fn arrive(&mut self, near: Peer, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let count = self.chunk.min(bytes.len());
            let place = self.client.landing(near).filter(|place| !place.is_empty());
            let count = match place {
                Some(place) => {
                    let count = count.min(place.len());
                    place[..count].copy_from_slice(&bytes[..count]);
                    self.client.handle(self.now, Input::Landed(near, count));
                    count
                }
                None => {
                    self.client.handle(self.now, Input::Received(near, &bytes[..count]));
                    count
                }
            };
            bytes = &bytes[count..];
        }
    }

    /// Lets time pass, and everything happen that is due.
    pub fn pass(&mut self, span: Duration) {
        let until = self.now + span;
        self.settle();
        while let Some(at) = self.deadline.filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.client.handle(self.now, Input::Elapsed);
            self.settle();
        }
        self.now = until;
    }

    /// Cuts all connections to a node.
    pub fn cut(&mut self, node: usize) {
        let cut: Vec<u32> = self.open.iter().filter(|(_, at)| **at == node).map(|(number, _)| *number).collect();
        cut.into_iter().for_each(|number| self.break_off(number));
        self.settle();
    }

    pub fn open(&mut self, channel: u32, name: &str, node: u32) {
        self.command(Command::Open { channel, name: name.into(), server: Some(Address::Node(node)) });
    }

    pub fn prepare(&mut self, operation: u32, channel: u32, kind: Kind, request: &str) {
        let request = Box::new(request.parse().expect("it is a request"));
        self.command(Command::Prepare { operation, channel, kind, request });
    }

    /// Executes an operation, and returns what the client says meanwhile.
    pub fn execute(&mut self, operation: u32) -> Vec<Event> {
        self.command(Command::Execute { operation });
        self.told()
    }

    pub fn put(&mut self, operation: u32, to: f64) -> Vec<Event> {
        let mut value = self.client.blank(operation).expect("it is set up");
        value.set("value", to).expect("it fits");
        self.command(Command::Put { operation, value });
        self.told()
    }

    /// Settles, and returns the events since the last time.
    pub fn told(&mut self) -> Vec<Event> {
        self.settle();
        std::mem::take(&mut self.events)
    }

    pub fn number(&self, operation: u32) -> Option<f64> {
        self.client.value(operation)?.get("value").and_then(Item::as_f64)
    }

    /// Takes all updates of a monitor: the value, and whether it overwrote another.
    pub fn updates(&mut self, operation: u32) -> Vec<(f64, bool)> {
        let mut all = Vec::new();
        while let Some(update) = self.client.next_update(operation) {
            let number = update.value.get("value").and_then(Item::as_f64).expect("a number");
            all.push((number, update.overrun.has(1)));
        }
        all
    }
}

/// Returns a value of one number with an alarm.
pub fn sample(number: f64) -> Value {
    let mut value = Value::of(Normative::scalar(Scalar::F64).alarm().build());
    value.set("value", number).expect("it fits");
    value
}

pub fn server(session: SessionConfig) -> (Server, Vec<Asked>) {
    let mut server = Server::new(ServerConfig { queue_max: 100, session, ..ServerConfig::default() });
    for (name, access) in [("fixed", Access::ReadOnly), ("box", Access::Mailbox), ("asked", Access::Handled)] {
        let serve = Ask::Serve { name: name.into(), value: Box::new(sample(1.5)), access };
        server.handle(Instant::ZERO, Input::Command(serve));
    }
    (server, Vec::new())
}

pub type Served = Rig<(Server, Vec<Asked>)>;

impl Served {
    /// Creates a client and one server.
    pub fn pair() -> Self {
        Rig::new(ClientConfig::default(), vec![server(SessionConfig::default())])
    }

    pub fn ask(&mut self, node: usize, ask: Ask) {
        self.far[node - 1].0.handle(self.now, Input::Command(ask));
        self.settle();
    }

    pub fn post(&mut self, name: &str, to: f64) {
        self.post_only(name, to);
        self.settle();
    }

    /// Posts a value, of which nobody is told yet.
    pub fn post_only(&mut self, name: &str, to: f64) {
        let mut value = sample(to);
        value.unmark();
        value.mark(1);
        let post = Ask::Post { name: name.into(), value: Box::new(value) };
        self.far[0].0.handle(self.now, Input::Command(post));
    }
}
