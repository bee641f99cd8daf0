//! The conformance suite of every protocol: a table of nasty networks, over many seeds.
//!
//! A [`Case`] says how to make the two machines, what the client is asked, and what must hold in the end. Beside that,
//! each run must not panic, must come to its end in bounded virtual time and in bounded steps, must keep the bytes that
//! it has the network hold bounded, must cost no more than its [`Allowance`], and must go the same way again with the same
//! seed. A [`Crowd`] says how several clients share a server, and that one of them holds up no other.

mod crowd;

use crate::cost::Allowance;
use crate::{Counters, Network, Sim, Transport};
use hodo_machine::{Driver, DriverError, Instant, Machine, Wait};
use std::fmt::Debug;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

pub use crowd::Crowd;

/// The networks, as options of a URI: to see one run again, add them and the seed to the protocol's `sim+…` URI.
///
/// Streams have no congestion control where they lose a tenth or more, or all: TCP would be silent there for minutes.
pub const NETWORKS: &[&str] = &[
    "delay=5us",
    "delay=1ms&jitter=2ms",
    "delay=100us&loss=0.01",
    "delay=100us&loss=0.1&jitter=50us&congestion=none",
    "delay=1ms&loss=0.3&congestion=none",
    "delay=100us&duplicate=0.3",
    "delay=100us&reorder=0.3",
    "delay=100us&corrupt=0.1&congestion=none",
    "delay=100us&jitter=100us&loss=0.1&duplicate=0.1&reorder=0.1&corrupt=0.05&congestion=none",
    "delay=50us&out.loss=0.3&congestion=none",
    "delay=50us&back.loss=0.3&congestion=none",
    "delay=20us&rate=10M&queue=4K&mtu=1500",
    "delay=20us&rate=1G&queue=1M&mtu=9000&overhead=38",
    "delay=20us&mtu=576&jitter=10us",
    "delay=100us&partition=200us..5ms",
    "delay=100us&loss=0.05&partition=0ns..1ms,2ms..50ms",
    "delay=100us&partition=0ns..1000s",
    "delay=100us&out.partition=500us..1000s&congestion=none",
    "delay=100us&cut=0.02",
    "delay=100us&cut=150us,250us,1ms,3ms",
    "delay=1us&cost=20us&buffer=64K",
    "delay=10ms&loss=0.02&jitter=5ms&rate=100M&queue=64K",
];

/// The bounds of a run.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Virtual time.
    pub time: Duration,
    /// Things that happen.
    pub steps: u64,
    /// Bytes of payload that the network holds.
    pub outstanding_bytes: usize,
    /// The cost of the client. What it sends again while nothing comes is counted too.
    pub client: Allowance,
    /// The cost of the server.
    pub server: Allowance,
}

impl Default for Bounds {
    /// Returns two minutes of virtual time, two million steps, 16 MiB.
    fn default() -> Self {
        Bounds {
            time: Duration::from_secs(120),
            steps: 2_000_000,
            outstanding_bytes: 16 << 20,
            client: Allowance::default(),
            server: Allowance::default(),
        }
    }
}

/// A protocol's two machines, what the client is asked, and what must hold in the end.
pub struct Case<'a, C: Machine, S: Machine> {
    /// The protocol's transport.
    pub transport: Transport,
    /// Makes the client of this seed.
    pub client: &'a dyn Fn(u64) -> C,
    /// Makes the server of this seed.
    pub server: &'a dyn Fn(u64) -> S,
    /// The application's part of the server.
    pub answer: fn(S::Event) -> Option<S::Command>,
    /// The client's commands, in order.
    pub commands: &'a dyn Fn(u64) -> Vec<C::Command>,
    /// Whether these events are all that the run is to bring. It ends too when nothing is left to happen.
    pub finished: Finished<'a, C::Event>,
    /// The check in the end; an error says what does not hold.
    pub check: Check<'a, C::Event>,
    /// The bounds of a run.
    pub bounds: Bounds,
}

/// Says whether the events so far are all that a run is to bring.
pub type Finished<'a, E> = &'a dyn Fn(&[(Instant, E)]) -> bool;

/// Says whether what came of a run is as it should be.
pub type Check<'a, E> = &'a dyn Fn(&Run<E>) -> Result<(), String>;

/// The result of one run.
#[derive(Debug, Clone)]
pub struct Run<E> {
    /// The network's options.
    pub network: String,
    /// The seed of the network and of the machines.
    pub seed: u64,
    /// The client's events, and when they came.
    pub events: Vec<(Instant, E)>,
    /// Whether it ended because nothing was left to happen.
    pub nothing_left: bool,
    /// Packets from the client.
    pub out: Counters,
    /// Packets to the client.
    pub back: Counters,
    trace: u64,
}

impl<C: Machine, S: Machine> Case<'_, C, S>
where
    C: Send + 'static,
    C::Event: Debug + Send,
    S: Send + 'static,
    S::Event: Send,
{
    /// Runs the case over every network of [`NETWORKS`] with every seed.
    ///
    /// # Panics
    /// With the network, the seed and what went wrong, at the first run that does not conform.
    pub fn conforms(&self, seeds: Range<u64>) {
        for network in NETWORKS {
            self.conforms_on(network, seeds.clone());
        }
    }

    /// Runs the case over one network, given as the options of a URI, with every seed.
    ///
    /// # Panics
    /// As [`Case::conforms`].
    pub fn conforms_on(&self, network: &str, seeds: Range<u64>) {
        for seed in seeds {
            let verdict = catch_unwind(AssertUnwindSafe(|| self.twice(network, seed)));
            let verdict = verdict.unwrap_or_else(|cause| Err(format!("panicked: {}", message(&*cause))));
            if let Err(what) = verdict {
                panic!("over the network `{network}` with seed {seed}: {what}");
            }
        }
    }

    fn twice(&self, network: &str, seed: u64) -> Result<(), String> {
        let first = self.run(network, seed)?;
        let again = self.run(network, seed)?;
        let told = |run: &Run<C::Event>| format!("{:?}", run.events);
        if first.trace != again.trace || told(&first) != told(&again) {
            return Err("the same seed went another way: something depends on more than time and input".to_owned());
        }
        (self.check)(&first)
    }

    fn run(&self, network: &str, seed: u64) -> Result<Run<C::Event>, String> {
        let (out, back) = networks(network, seed)?;
        let (client, server) = ((self.client)(seed), (self.server)(seed));
        let mut sim = Sim::new(self.transport, (&out, &back), client, vec![server], self.answer);
        sim.set_tracing();
        sim.set_allowance(0, self.bounds.client);
        sim.set_allowance(1, self.bounds.server);
        let mut events = Vec::new();
        for command in (self.commands)(seed) {
            sim.command(command);
            self.turn(&mut sim, Wait::Never, &mut events)?;
        }
        let mut nothing_left = false;
        while !nothing_left && !(self.finished)(&events) {
            nothing_left = !self.turn(&mut sim, Wait::Block, &mut events)?;
        }
        Ok(Run {
            network: network.to_owned(),
            seed,
            events,
            nothing_left,
            out: sim.counters(0, 1),
            back: sim.counters(1, 0),
            trace: sim.trace(),
        })
    }

    /// Turns by a small step of time, so that the bounds are checked; returns whether anything is left to happen.
    fn turn(&self, sim: &mut Sim<C, S>, wait: Wait, events: &mut Vec<(Instant, C::Event)>) -> Result<bool, String> {
        let mut told = Vec::new();
        let end = Instant::ZERO + self.bounds.time;
        let until = end.min(sim.next_at().unwrap_or(sim.now()).max(sim.now()));
        let left = sim.next_at().is_some();
        match sim.turn(wait, until, &mut |event| told.push(event)) {
            Ok(()) | Err(DriverError::NothingLeft) => {}
            Err(other) => return Err(other.to_string()),
        }
        let now = sim.now();
        events.extend(told.into_iter().map(|event| (now, event)));
        let Bounds { time, steps, outstanding_bytes, .. } = self.bounds;
        if left && now >= end {
            return Err(format!("not finished after {time:?} of virtual time, with {} events", events.len()));
        }
        if sim.steps() > steps {
            return Err(format!("not finished after {steps} steps, at {:?}, with {} events", now, events.len()));
        }
        if sim.outstanding_bytes() > outstanding_bytes {
            return Err(format!("{} bytes are outstanding, more than {outstanding_bytes}", sim.outstanding_bytes()));
        }
        Ok(left || sim.next_at().is_some())
    }
}

/// Returns the networks out and back that a URI's options describe, with this seed.
///
/// # Errors
/// Says which option is wrong.
pub fn networks(query: &str, seed: u64) -> Result<(Network, Network), String> {
    let mut options = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').ok_or_else(|| format!("option `{pair}` has no value"))?;
        options.push((name.to_owned(), value.to_owned()));
    }
    options.push(("seed".to_owned(), seed.to_string()));
    Network::both_ways(&options).map_err(|error| error.to_string())
}

/// Returns the seeds of one round: `count` of them, from 0 on.
///
/// The soak runs tests again and again with `HODO_SOAK_SEED` counting up, and each round takes the seeds behind those of
/// the last.
#[must_use]
pub fn seeds(count: u64) -> Range<u64> {
    let first = asked_for("HODO_SOAK_SEED").unwrap_or(0) * count;
    first..first + count
}

/// Runs a scene with each seed of one round, as many as `HODO_CHAOS_SEEDS` asks for or else `count`; returns how many those were.
///
/// # Panics
/// With the seed and what went wrong, at the first scene that panics.
pub fn each_seed(count: u64, mut scene: impl FnMut(u64)) -> u64 {
    let count = asked_for("HODO_CHAOS_SEEDS").unwrap_or(count);
    for seed in seeds(count) {
        if let Err(cause) = catch_unwind(AssertUnwindSafe(|| scene(seed))) {
            panic!("seed {seed}: {}", message(&*cause));
        }
    }
    count
}

/// Returns the number that an environment variable holds.
fn asked_for(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Returns the message of a panic.
fn message(cause: &(dyn std::any::Any + Send)) -> &str {
    let text = cause.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| cause.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}
