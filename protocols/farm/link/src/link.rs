//! Farm links: this side is a controller that opens a connection to a node for each channel. An operation is an event
//! that is given to a node, and its token; which node gets it is the controller's to say, so a channel is no node, but
//! the right to have its window's events in the farm.

use crate::options::FarmOptions;
use hodo_farm::controller::{Command, Event, FarCounters, Final};
use hodo_farm::node;
use hodo_farm::wire::Verdict;
use hodo_farm::{Controller, ControllerConfig, Ledger, NoSupply};
use hodo_machine::{Address, Bytes, Driver, Instant, Sampling, Stamp, Wait};
use hodo_measure::{Completion, FarEnd, Link, LinkError, Loss, Operation, Outcome, TcpTimes, Usage};
use hodo_tester::{Settings, TransportCounters, ended, until_ready};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The controller of a link: its events are the tester's.
pub(crate) type Giver = Controller<NoSupply>;

/// A node is not gone before it was silent for this long, and for twice the time-out that ends a measurement: between two
/// plans nobody looks at the link.
const SILENCE_MIN: Duration = Duration::from_secs(2);

/// A controller on any driver, as the tester sees it.
pub(crate) struct FarmLink<D: Driver<Machine = Giver>> {
    driver: D,
    /// The bytes of every event.
    payload: Bytes,
    /// The number of the next event.
    next: u64,
    /// Operations in hand, by the numbers of their events.
    tags: HashMap<u64, u64>,
    sampling: Sampling,
    /// Those of operations that have ended and whose stamps have not been fetched.
    ended: HashMap<u64, u64>,
    fresh: Vec<Stamp>,
    nodes: u32,
    joined: u32,
    /// The least that a node offers.
    credits: u32,
    size_max: u32,
    reports: u32,
    far_end: FarEnd,
    /// The usage of each process of nodes; several nodes may be one process.
    processes: BTreeMap<u64, Usage>,
    failed: Option<LinkError>,
}

/// Returns the machine of a controller of these nodes.
pub(crate) fn controller(options: &FarmOptions, settings: &Settings, nodes: Vec<Address>) -> Giver {
    let config = ControllerConfig {
        policy: options.policy,
        ahead_max: options.ahead,
        credits_max: settings.window,
        event_max: options.output_max().max(1),
        sources_max: 0,
        nodes_max: nodes.len() as u32,
        greeting: settings.timeout,
        silence: (2 * settings.timeout).max(SILENCE_MIN),
        nodes,
        ..ControllerConfig::default()
    };
    Controller::new(config, NoSupply, Ledger::default())
}

impl<D: TransportCounters<Machine = Giver>> FarmLink<D> {
    /// Waits until every node has greeted, at most for the settings' time-out, and no longer than until `stop` is set.
    pub(crate) fn open(driver: D, nodes: u32, settings: &Settings, stop: &AtomicBool) -> Result<Self, LinkError> {
        let mut link = FarmLink {
            driver,
            payload: vec![0x5A; settings.size_max as usize].into(),
            next: 0,
            tags: HashMap::new(),
            sampling: Sampling::NONE,
            ended: HashMap::new(),
            fresh: Vec::new(),
            nodes,
            joined: 0,
            credits: u32::MAX,
            size_max: u32::MAX,
            reports: 0,
            far_end: FarEnd::default(),
            processes: BTreeMap::new(),
            failed: None,
        };
        until_ready(&mut link, settings.timeout, stop, |link| link.joined >= nodes)?;
        if settings.window > link.credits {
            let most = link.credits;
            return Err(LinkError::Unsupported(format!(
                "its nodes take at most {most} events at a time; lower --window"
            )));
        }
        Ok(link)
    }

    /// Returns the driver.
    pub(crate) fn driver(&self) -> &D {
        &self.driver
    }

    /// Returns the largest event that every node takes.
    pub(crate) fn size_max(&self) -> u32 {
        self.size_max
    }

    #[inline]
    fn turn(&mut self, wait: Wait, until: Instant, done: &mut Vec<Completion>) -> Result<(), LinkError> {
        let FarmLink { driver, tags, sampling, joined, credits, size_max, reports, far_end, processes, failed, .. } =
            self;
        let stamped_ones = &mut self.ended;
        let outcome = driver.turn(wait, until, &mut |event| match event {
            Event::Verdict(Final { event, verdict, .. }) => {
                if let Some(tag) = tags.remove(&event) {
                    if sampling.takes(tag) {
                        stamped_ones.insert(event, tag);
                    }
                    done.push(Completion { tag, outcome: outcome_of(verdict) });
                }
            }
            Event::Joined { hello, .. } => {
                *joined += 1;
                *credits = hello.credits.min(*credits);
                *size_max = hello.event_max.min(*size_max);
            }
            Event::Counters(peer, counters) => {
                *reports += 1;
                far_end.received += counters.events;
                if let Some(served) = far_end.served.get_mut(peer.0 as usize) {
                    *served = counters.tokens;
                }
                if counters.process != 0 {
                    processes.insert(counters.process, usage(&counters));
                }
            }
            Event::Left { peer, error, .. } | Event::Refused(peer, error) => {
                failed.get_or_insert_with(|| link_error(peer.0, error));
            }
            // Its verdict has been told.
            Event::TooLarge { .. } | Event::Conflict { .. } | Event::Drained => {}
        });
        ended(outcome, self.failed.as_ref())
    }
}

impl<D: TransportCounters<Machine = Giver>> Link for FarmLink<D> {
    #[inline]
    fn start(&mut self, operation: Operation) {
        let number = self.next;
        self.next += 1;
        self.tags.insert(number, operation.tag);
        let payload = self.payload.slice(..operation.size as usize);
        let stamped = self.sampling.takes(operation.tag);
        self.driver.command(Command::Event { number, payload, stamped });
    }

    #[inline]
    fn poll(&mut self, wait: Wait, until: Instant, done: &mut Vec<Completion>) -> Result<(), LinkError> {
        self.turn(wait, until, done)
    }

    #[inline]
    fn now(&self) -> Instant {
        self.driver.now()
    }

    fn far_end(&mut self, until: Instant, done: &mut Vec<Completion>) -> Result<Option<FarEnd>, LinkError> {
        self.reports = 0;
        self.far_end = FarEnd { served: vec![0; self.nodes as usize], ..FarEnd::default() };
        self.processes.clear();
        self.driver.command(Command::Report);
        while self.reports < self.nodes {
            if self.now() >= until {
                return Ok(None);
            }
            self.turn(Wait::Block, until, done)?;
        }
        if self.sampling.is_on() {
            let stages = self.driver.machine_mut().far_stages();
            self.far_end.stages = stages.map(|(name, spans)| (name, spans.clone())).into();
        }
        self.far_end.usage = self.processes.values().copied().reduce(Usage::and);
        Ok(Some(self.far_end.clone()))
    }

    fn tcp(&self) -> Option<TcpTimes> {
        self.driver.tcp()
    }

    fn losses(&self) -> Loss {
        self.driver.transport_losses()
    }

    fn sample_stages(&mut self, taken: Sampling) -> bool {
        self.sampling = taken;
        true
    }

    fn stamps(&mut self, stamps: &mut Vec<Stamp>) {
        self.driver.machine_mut().stamps().hand_over(&mut self.fresh);
        let FarmLink { fresh, tags, ended, .. } = self;
        let of = |event: u64| tags.get(&event).or_else(|| ended.get(&event)).copied();
        stamps.extend(fresh.drain(..).filter_map(|stamp| Some(Stamp { tag: of(stamp.tag)?, ..stamp })));
        self.ended.clear();
    }
}

fn outcome_of(verdict: Verdict) -> Outcome {
    match verdict {
        Verdict::Accepted | Verdict::Rejected => Outcome::Done,
        Verdict::Failed | Verdict::Quarantined | Verdict::Incomplete => Outcome::Refused,
    }
}

fn usage(counters: &FarCounters) -> Usage {
    Usage {
        user_s: counters.user_ns as f64 * 1e-9,
        system_s: counters.system_ns as f64 * 1e-9,
        voluntary_switches: counters.voluntary,
        involuntary_switches: counters.involuntary,
        max_rss_bytes: counters.max_rss_bytes,
        polling_s: counters.polling_ns.map(|nanos| nanos as f64 * 1e-9),
    }
}

fn link_error(channel: u32, error: hodo_farm::Error) -> LinkError {
    match error {
        hodo_farm::Error::Closed(why) => LinkError::Closed { channel, why },
        other => LinkError::PeerMisbehaved { channel, what: other.to_string() },
    }
}

/// Returns the command that answers an event of a link's node: a request for a report gets the usage of its process.
#[expect(clippy::needless_pass_by_value, reason = "a server hands its events over")]
pub(crate) fn answer(event: node::Event, process: fn() -> FarCounters) -> Option<node::Command> {
    match event {
        node::Event::ReportAsked(peer, value) => Some(node::Command::Report { peer, value, process: process() }),
        _ => None,
    }
}
