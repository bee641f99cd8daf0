//! Nodes of a farm whose decisions the application takes, on threads of its own.

mod work_queue;

use hodo_farm::controller::FarCounters;
use hodo_farm::node::{Command, Decide, Done, Event, Job};
use hodo_farm::wire::{Hello, Verdict};
use hodo_farm::{Error, Node, NodeConfig};
use hodo_io::usage::Usage;
use hodo_io::{Attendant, ServeOptions, Server, Stop, random_bits};
use hodo_machine::{Address, Bytes, Instant, Peer};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use work_queue::{Answer, WorkQueue};

/// Decides on events, one at a time. A function from an event to a decision is one.
pub trait Decider: Send {
    /// Decides on an event. A panic is the same as [`Decision::Failed`].
    fn decide(&mut self, event: &Undecided) -> Decision;

    /// Returns for how long the decider takes no events, or `None` if it is ready. Called before each event; the other
    /// deciders get the events meanwhile.
    fn rests(&mut self) -> Option<Duration> {
        None
    }
}

impl<F: FnMut(&Undecided) -> Decision + Send> Decider for F {
    fn decide(&mut self, event: &Undecided) -> Decision {
        self(event)
    }
}

/// An event without a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undecided {
    /// The run of the event.
    pub run: u32,
    /// The number of the event in its run.
    pub event: u64,
    /// Whether fragments of it are missing.
    pub partial: bool,
    /// The data of the event.
    pub bytes: Bytes,
}

/// The decision on an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It is stored.
    Accept,
    /// This is stored in its place; where this is empty, the event itself.
    AcceptAs(Bytes),
    /// It is not.
    Reject,
    /// No decision, for this reason: another node is asked, and in the end the event is quarantined.
    Failed(String),
}

/// How nodes run.
#[derive(Debug)]
pub struct Deciding {
    /// How the thread that speaks to the controllers runs; with several processors it has the first one, and the
    /// deciders have the others in turn.
    pub serve: ServeOptions,
    /// The nodes; who decides is left out.
    pub node: NodeConfig,
    /// How long events that are here may take when the nodes are to stop.
    pub drain: Duration,
}

impl Deciding {
    /// Creates the settings of a node at each of these controllers, numbered from 0. Each decider has two events at once, so that
    /// it waits for none.
    #[must_use]
    pub fn new(controllers: Vec<Address>, deciders: u32) -> Self {
        let (credits, instance) = (deciders.saturating_mul(2), random_bits());
        let node = NodeConfig { credits, instance, ..NodeConfig::new(controllers) };
        Deciding { serve: ServeOptions::default(), node, drain: Duration::from_secs(5) }
    }
}

/// A notice about the node while it runs.
#[derive(Debug)]
pub enum Notice<'a> {
    /// A controller has greeted.
    Joined(Hello),
    /// A controller is gone, or cannot be reached; it is tried again.
    Left(Error),
    /// There is no decision on an event.
    Failed {
        /// The number of the event.
        event: u64,
        /// Why.
        why: &'a str,
    },
    /// Some time has passed; so much was done.
    Passed(Done),
}

/// Receives events from the controllers, and lets one of the deciders decide each event, every decider on a thread of
/// its own, until `stop` is set.
///
/// Events wait here within the credits of the nodes; the node continues to answer the controllers, however long a
/// decision takes. A decision that is under way when the time for an orderly end is over is not waited for.
///
/// # Errors
/// The error of the system if a thread cannot be started, or the network fails.
pub fn decide<D: Decider + 'static>(
    deciding: Deciding,
    deciders: Vec<D>,
    told: impl FnMut(Notice<'_>),
    stop: &Stop,
) -> io::Result<()> {
    let Deciding { serve, node, drain } = deciding;
    let node = NodeConfig { decide: Decide::Application, ..node };
    let queue = Arc::new(WorkQueue::new(deciders.len()));
    for (index, decider) in deciders.into_iter().enumerate() {
        let shared = Arc::clone(&queue);
        let cpu = serve.cpus.get(1..).filter(|others| !others.is_empty()).map(|others| others[index % others.len()]);
        let thread = std::thread::Builder::new().name(format!("decider {index}"));
        thread.spawn(move || shared.work(decider, cpu)).inspect_err(|_| queue.close(Duration::ZERO))?;
    }
    let shared = Arc::clone(&queue);
    let attended = Server::new(serve).with_drain(drain).attend_here_woken(
        move |waker| {
            shared.set_waker(waker);
            let (answers, bounds) = (VecDeque::new(), BTreeMap::new());
            (Node::new(node), NodeThread { queue: shared, answers, bounds, told })
        },
        stop,
    );
    queue.close(drain);
    attended
}

/// Returns the counters of this process, as a controller that requests a report gets them.
#[must_use]
pub fn process_counters() -> FarCounters {
    let usage = Usage::of_process();
    FarCounters {
        process: u64::from(std::process::id()),
        user_ns: (usage.user_s * 1e9) as u64,
        system_ns: (usage.system_s * 1e9) as u64,
        voluntary: usage.voluntary_switches,
        involuntary: usage.involuntary_switches,
        max_rss_bytes: usage.max_rss_bytes,
        polling_ns: usage.polling_s.map(|seconds| (seconds * 1e9) as u64),
        ..FarCounters::default()
    }
}

struct NodeThread<T> {
    queue: Arc<WorkQueue>,
    answers: VecDeque<Answer>,
    /// The largest output in bytes that each controller accepts.
    bounds: BTreeMap<Peer, u32>,
    told: T,
}

impl<T: FnMut(Notice<'_>)> NodeThread<T> {
    /// Returns the command that sends the answer to its controller.
    fn answer(&mut self, Answer { job, decision, began }: Answer) -> Command {
        let max = self.bounds.get(&job.peer).copied().unwrap_or(u32::MAX) as usize;
        let (verdict, output) = match decision {
            Decision::Accept => (Verdict::Accepted, Bytes::new()),
            Decision::AcceptAs(output) if output.len() <= max => (Verdict::Accepted, output),
            Decision::AcceptAs(output) => {
                let why = format!("its output of {} bytes exceeds the controller's limit of {max}", output.len());
                (self.failed(&job, &why), Bytes::new())
            }
            Decision::Reject => (Verdict::Rejected, Bytes::new()),
            Decision::Failed(why) => (self.failed(&job, &why), Bytes::new()),
        };
        Command::Decided { job, verdict, output, began }
    }

    fn failed(&mut self, job: &Job, why: &str) -> Verdict {
        (self.told)(Notice::Failed { event: job.event, why });
        Verdict::Failed
    }
}

impl<T: FnMut(Notice<'_>)> Attendant for NodeThread<T> {
    type Machine = Node;

    fn told(&mut self, event: Event) -> Option<Command> {
        match event {
            Event::Work { job, partial, payload } => self.queue.push(job, partial, payload),
            Event::Joined(peer, hello) => {
                self.bounds.insert(peer, hello.event_max);
                (self.told)(Notice::Joined(hello));
            }
            Event::Left(peer, error) => {
                self.bounds.remove(&peer);
                self.queue.withdraw(peer);
                (self.told)(Notice::Left(error));
            }
            Event::ReportAsked(peer, value) => {
                return Some(Command::Report { peer, value, process: process_counters() });
            }
            Event::Drained => {}
        }
        None
    }

    fn wanted(&mut self, _: &mut Node) -> Option<Command> {
        if self.answers.is_empty() {
            self.queue.collect(&mut self.answers);
        }
        let answer = self.answers.pop_front()?;
        Some(self.answer(answer))
    }

    fn look_in(&mut self, _: Instant, node: &Node) -> Option<Command> {
        (self.told)(Notice::Passed(node.done()));
        None
    }

    fn drain(&mut self) -> Option<Command> {
        Some(Command::Drain)
    }

    fn is_drained(&self, node: &Node) -> bool {
        node.is_drained()
    }
}
