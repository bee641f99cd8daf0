//! An application of a client, and a server whose values change, in virtual time.
#![allow(dead_code, reason = "each test file uses a part")]

use hodo_machine::{Ends, Input, Instant, Machine, Outbox, Output, Peer, Random};
use hodo_pva::client::{Client, ClientConfig, Command, Event, Kind};
use hodo_pva::normative::Normative;
use hodo_pva::server::{Access, Command as Ask, Event as Asked, Server, ServerConfig};
use hodo_pva::wire::Status;
use hodo_pva::{Array, Datum, Item, Scalar, Value};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// The time after which the application gives up what is not done, and the pause after which it takes updates that it has left.
const PATIENCE: Duration = Duration::from_secs(30);
const LAZINESS: Duration = Duration::from_millis(7);

/// An event of the application.
#[derive(Debug, Clone, PartialEq)]
pub enum AppEvent {
    Client(Event),
    /// An update that was taken: the value, and whether it overwrote another.
    Update {
        operation: u32,
        number: f64,
        overrun: bool,
    },
}

/// A client, and an application that takes its updates now or later, and gives up in the end.
#[derive(Debug)]
pub struct App {
    client: Client,
    told: VecDeque<AppEvent>,
    /// Monitors with updates that were left for later.
    left: Vec<u32>,
    take_at: Option<Instant>,
    give_up_at: Option<Instant>,
    operations: u32,
    /// The channel of each operation.
    channels: HashMap<u32, u32>,
    random: Random,
}

impl App {
    /// Creates an application of operations numbered below `operations`.
    pub fn new(config: ClientConfig, operations: u32) -> Self {
        App {
            random: Random::for_purpose(config.seed, 77),
            client: Client::new(config),
            told: VecDeque::new(),
            left: Vec::new(),
            take_at: None,
            give_up_at: Some(Instant::ZERO + PATIENCE),
            operations,
            channels: HashMap::new(),
        }
    }

    /// Gives up so much later.
    pub fn patient(mut self, patience: Duration) -> Self {
        self.give_up_at = Some(Instant::ZERO + patience);
        self
    }

    /// Forgets the updates of monitors that end.
    fn note(&mut self, command: &Command) {
        let channels = &mut self.channels;
        let mut ends = |is_it: &dyn Fn(u32) -> bool| {
            self.told.retain(|told| !matches!(told, AppEvent::Update { operation, .. } if is_it(*operation)));
        };
        match command {
            Command::Prepare { operation, channel, .. } => _ = channels.insert(*operation, *channel),
            Command::Finish { operation } => ends(&|other| other == *operation),
            Command::Close { channel } => ends(&|other| channels.get(&other) == Some(channel)),
            _ => {}
        }
    }

    fn take(&mut self) {
        self.take_at = None;
        for operation in std::mem::take(&mut self.left) {
            while let Some(update) = self.client.next_update(operation) {
                let number = update.value.get("value").and_then(Item::as_f64).expect("a number");
                self.told.push_back(AppEvent::Update { operation, number, overrun: update.overrun.has(1) });
            }
        }
    }
}

impl Machine for App {
    type Command = Command;
    type Event = AppEvent;

    fn handle(&mut self, now: Instant, input: Input<'_, Command>) {
        if let Input::Command(command) = &input {
            self.note(command);
        }
        self.client.handle(now, input);
        if self.take_at.is_some_and(|at| at <= now) {
            self.take();
        }
        if self.give_up_at.is_some_and(|at| at <= now) {
            self.give_up_at = None;
            (0..self.operations)
                .for_each(|operation| self.client.handle(now, Input::Command(Command::Cancel { operation })));
        }
    }

    fn poll(&mut self, now: Instant, out: &mut Outbox) -> Output<AppEvent> {
        loop {
            if let Some(told) = self.told.pop_front() {
                return Output::Event(told);
            }
            match self.client.poll(now, out) {
                Output::Event(Event::Updates { operation }) => {
                    self.left.push(operation);
                    if self.random.chance(0.7) {
                        self.take();
                    } else {
                        self.take_at.get_or_insert(now + LAZINESS);
                    }
                }
                Output::Event(event) => return Output::Event(AppEvent::Client(event)),
                Output::Idle(at) => {
                    return Output::Idle([at, self.take_at, self.give_up_at].into_iter().flatten().min());
                }
                Output::Send(peer) => return Output::Send(peer),
                Output::Open(peer, address) => return Output::Open(peer, address),
                Output::Close(peer) => return Output::Close(peer),
            }
        }
    }

    fn landing(&mut self, peer: Peer) -> Option<&mut [u8]> {
        self.client.landing(peer)
    }

    fn admits(&mut self, now: Instant, ends: &Ends, datagram: &[u8], out: &mut Outbox) -> bool {
        self.client.admits(now, ends, datagram, out)
    }
}

/// A server of `box`, `asked`, `wave`, and `count`, whose value grows by one each time.
#[derive(Debug)]
pub struct Source {
    server: Server,
    /// Name of the counter.
    count: String,
    every: Duration,
    next_at: Option<Instant>,
    last_at: Instant,
}

impl Source {
    /// Creates a server whose counter grows from `now` on. It says how many times it would have grown since the beginning of time, so that
    /// one which is started again goes on.
    ///
    /// `suffix` stands behind the name of each channel.
    pub fn new(config: ServerConfig, now: Instant, every: Duration, last_at: Instant, suffix: &str) -> Self {
        let mut server = Server::new(config);
        let mut wave = Value::of(Normative::scalar_array(Scalar::F64).build());
        wave.set("value", Datum::Array(Array::from(vec![0.5; 20_000]))).expect("it fits");
        let channels = [
            ("box", Access::Mailbox, number(1.5)),
            ("asked", Access::Handled, number(1.5)),
            ("count", Access::ReadOnly, number((now.as_nanos() / every.as_nanos() as u64) as f64)),
            ("wave", Access::ReadOnly, wave),
        ];
        for (name, access, value) in channels {
            let serve = Ask::Serve { name: format!("{name}{suffix}"), value: Box::new(value), access };
            server.handle(now, Input::Command(serve));
        }
        Source { server, count: format!("count{suffix}"), every, next_at: Some(now + every), last_at }
    }

    fn tick(&mut self, now: Instant) {
        while let Some(at) = self.next_at.filter(|at| *at <= now) {
            self.next_at = (at < self.last_at).then(|| at + self.every);
            let mut value = number((at.as_nanos() / self.every.as_nanos() as u64) as f64);
            value.unmark();
            value.mark(1);
            self.server.handle(now, Input::Command(Ask::Post { name: self.count.clone(), value: Box::new(value) }));
        }
    }
}

/// Returns a value of one number with an alarm.
pub fn number(number: f64) -> Value {
    let mut value = Value::of(Normative::scalar(Scalar::F64).alarm().build());
    value.set("value", number).expect("it fits");
    value
}

/// Returns the answer of an application of the server to a put or a call: every third is refused.
pub fn answer(event: Asked) -> Option<Ask> {
    let (Asked::Put { call, .. } | Asked::Call { call, .. }) = &event else { return None };
    let call = *call;
    let result = match event {
        _ if call % 3 == 2 => Err(Status::error("every third is refused")),
        Asked::Call { argument, .. } => Ok(argument),
        _ => Ok(None),
    };
    Some(Ask::Answer { call, result })
}

impl Machine for Source {
    type Command = Ask;
    type Event = Asked;

    fn handle(&mut self, now: Instant, input: Input<'_, Ask>) {
        self.server.handle(now, input);
        self.tick(now);
    }

    fn poll(&mut self, now: Instant, out: &mut Outbox) -> Output<Asked> {
        match self.server.poll(now, out) {
            Output::Idle(at) => Output::Idle([at, self.next_at].into_iter().flatten().min()),
            other => other,
        }
    }

    fn landing(&mut self, peer: Peer) -> Option<&mut [u8]> {
        self.server.landing(peer)
    }

    fn admits(&mut self, now: Instant, ends: &Ends, datagram: &[u8], out: &mut Outbox) -> bool {
        self.server.admits(now, ends, datagram, out)
    }
}

/// The kinds of operations that end, with the channel of each, by the operation's number.
pub const OPERATIONS: [(Kind, u32); 6] =
    [(Kind::Get, 0), (Kind::Put, 1), (Kind::Call, 1), (Kind::Get, 2), (Kind::PutGet, 0), (Kind::Process, 0)];

/// Returns the commands that prepare an operation and execute it. A put puts nothing: its type is not known yet.
pub fn operation(operation: u32, seed: u64) -> [Command; 2] {
    let (kind, channel) = OPERATIONS[(u64::from(operation) * 7 + seed) as usize % OPERATIONS.len()];
    let prepare = Command::Prepare { operation, channel, kind, request: Box::default() };
    let execute = match kind {
        Kind::Call => Command::Call { operation, argument: Some(Box::new(number(4.0))) },
        Kind::Put => Command::Put { operation, value: Box::new(number(5.0)) },
        Kind::PutGet if seed.is_multiple_of(2) => Command::Put { operation, value: Box::new(number(6.0)) },
        _ => Command::Execute { operation },
    };
    [prepare, execute]
}

/// Checks that each of so many operations has ended once; returns how many have.
pub fn ends<'a>(told: impl Iterator<Item = &'a AppEvent>, operations: u32) -> Result<usize, String> {
    let mut ends: HashMap<u32, u32> = HashMap::new();
    for told in told {
        if let AppEvent::Client(Event::Done { operation } | Event::Failed { operation, .. }) = told
            && *operation < operations
        {
            *ends.entry(*operation).or_default() += 1;
        }
    }
    match ends.iter().find(|(_, count)| **count != 1) {
        Some((operation, count)) => Err(format!("operation {operation} ended {count} times")),
        None => Ok(ends.len()),
    }
}

/// Checks that the updates of a monitor are in order, and that none is missing in silence but where it began anew.
pub fn in_order<'a>(told: impl Iterator<Item = &'a AppEvent>, monitor: u32) -> Result<usize, String> {
    let (mut last, mut count, mut gaps, mut beginnings) = (None, 0, 0, 0);
    for told in told {
        match told {
            AppEvent::Client(Event::Ready { operation }) if *operation == monitor => beginnings += 1,
            AppEvent::Update { operation, number, overrun } if *operation == monitor => {
                count += 1;
                if let Some(before) = last.replace(*number) {
                    if *number < before {
                        return Err(format!("{number} after {before}"));
                    }
                    gaps += usize::from(*number > before + 1.0 && !overrun);
                }
            }
            _ => {}
        }
    }
    // Each beginning brings the value of then, behind which the former updates may still have waited.
    if gaps < beginnings.max(1) { Ok(count) } else { Err(format!("{gaps} gaps in silence, {beginnings} beginnings")) }
}
