use super::{FarCounters, NodeShare, Pace};
use crate::Error;
use crate::sums::{Content, Likeness};
use crate::wire::{Hello, Role, Verdict};
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;
use hodo_machine::{Address, Peer, codes};

codes! {
    /// The policy by which a node is chosen for the next event.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum Policy {
        /// The node whose token has waited for longest.
        #[default]
        TokenFifo => "token-fifo",
        /// Each node in turn, ready or not.
        RoundRobin => "round-robin",
        /// The node that has the fewest events.
        LeastOutstanding => "least-outstanding",
        /// By the weights of the nodes.
        Weighted => "weighted",
    }
}

/// The settings of a controller.
#[derive(Debug, Clone)]
pub struct ControllerConfig {
    /// The run of the events that are made here.
    pub run: u32,
    /// The runs beside it whose events sources may give; [`Command::Run`] opens another.
    pub open: Vec<u32>,
    /// Whether no event is given before [`Command::Resume`].
    pub configured: bool,
    /// The policy by which a node is chosen for the next event.
    pub policy: Policy,
    /// Events that a node may have, whatever it offers.
    pub credits_max: u32,
    /// The largest event, and the most data behind a token, in bytes.
    pub event_max: u32,
    /// Memory for the events of sources, in bytes.
    pub pool_bytes: u64,
    /// Memory for the data behind tokens that is arriving, of all nodes together, in bytes.
    pub output_bytes: u64,
    /// Events that a source may have unanswered.
    pub source_credits: u32,
    /// Sources and builders that may be there; each gets its part of the pool.
    pub sources_max: u32,
    /// A source or builder that has nothing unanswered and has given nothing for this long gives its place to a new one,
    /// where all are taken.
    pub source_idle: Duration,
    /// Nodes that may be there.
    pub nodes_max: u32,
    /// How long a greeting may take.
    pub greeting: Duration,
    /// A peer that is silent for this long is gone, and what it had is given to others.
    pub silence: Duration,
    /// How long a node may take for one event, where that is bounded.
    pub deadline: Option<Duration>,
    /// An event over which so many nodes failed or died is quarantined.
    pub deaths_max: u8,
    /// Verdicts that may be told and not committed; `None` where nobody commits.
    pub uncommitted_max: Option<u64>,
    /// Bytes of what is to be stored of them, before no more events are given.
    pub uncommitted_bytes_max: u64,
    /// Events made here that may wait for a token, where they come on a schedule.
    pub waiting_max: usize,
    /// Events by which one of equally fast nodes may be ahead of another: the token of a node that is ahead waits while
    /// others are busy. `None` for tokens strictly in the order in which they came. For [`Policy::TokenFifo`] only.
    pub ahead_max: Option<u64>,
    /// How far the nodes of other threads have come, and which thread this is.
    pub pace: Option<(Arc<Pace>, usize)>,
    /// Whether nodes may come that send no tokens. What is given to one is rejected at once, and gone if it dies; it gets
    /// as much as its connection takes. For measuring what tokens cost.
    pub without_tokens: bool,
    /// Nodes that this side opens connections to, and opens again when they are lost.
    pub nodes: Vec<Address>,
    /// Differs each time that the program starts.
    pub instance: u64,
}

impl Default for ControllerConfig {
    fn default() -> Self {
        ControllerConfig {
            run: 1,
            open: Vec::new(),
            configured: false,
            policy: Policy::TokenFifo,
            credits_max: 64,
            event_max: 16 << 20,
            pool_bytes: 256 << 20,
            output_bytes: 256 << 20,
            source_credits: 4096,
            sources_max: 64,
            source_idle: Duration::from_secs(10),
            nodes_max: 4096,
            greeting: Duration::from_secs(2),
            silence: Duration::from_millis(600),
            deadline: None,
            deaths_max: 3,
            uncommitted_max: None,
            uncommitted_bytes_max: 256 << 20,
            waiting_max: 1024,
            ahead_max: None,
            pace: None,
            without_tokens: false,
            nodes: Vec::new(),
            instance: 0,
        }
    }
}

/// A command of the application to a controller.
#[derive(Debug)]
pub enum Command {
    /// Hand this event to a node.
    Event {
        /// The number of the event.
        number: u64,
        /// The bytes of the event.
        payload: Bytes,
        /// Whether its stages are stamped.
        stamped: bool,
    },
    /// This many verdicts, counted from the start, will survive whatever happens.
    Committed(u64),
    /// The oldest [`Final`] in doubt was compared with the event of its number: other data will be stored beside it. To be
    /// said before they are committed, or they count as unchecked.
    Compared(Likeness),
    /// Give no events to nodes until [`Command::Resume`].
    Pause,
    /// Begin, or go on: also after [`Command::Drain`].
    Resume,
    /// Take no new events; tell [`Event::Drained`] when none is in hand.
    Drain,
    /// The run of the events made here from now on; sources may give events of it, too.
    Run(u32),
    /// Ask every node for its counters.
    Report,
}

/// An event that a controller reports to the application.
#[derive(Debug)]
pub enum Event {
    /// The final verdict on an event.
    Verdict(Final),
    /// A peer has greeted.
    Joined {
        /// Which connection.
        peer: Peer,
        /// The greeting of the peer.
        hello: Hello,
    },
    /// A peer that had greeted is gone, or was sent away.
    Left {
        /// Which connection.
        peer: Peer,
        /// The greeting of the peer.
        hello: Hello,
        /// Why.
        error: Error,
        /// Events that it had, which others get now.
        taken_back: u32,
        /// The share of the peer, if it is a node.
        share: Option<NodeShare>,
    },
    /// A connection was refused before it had greeted.
    Refused(Peer, Error),
    /// An event was quarantined because no node takes so many bytes.
    TooLarge {
        /// The run of the event.
        run: u32,
        /// The number of the event.
        event: u64,
        /// The bytes of the event.
        size: u32,
        /// The most bytes that a node takes.
        max: u32,
    },
    /// Data came under the number of another event, and a [`Final`] has them, for the quarantine.
    Conflict {
        /// The run of the event.
        run: u32,
        /// The number of the event.
        event: u64,
        /// The role of who gave them.
        role: Role,
        /// The number of who gave them.
        number: u32,
    },
    /// No event is in hand, and none will come.
    Drained,
    /// A node's counters.
    Counters(Peer, FarCounters),
}

/// The event to which a number belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// That of the event itself.
    Itself,
    /// Another event's: this is no verdict, but data to be stored beside that one.
    Other,
    /// That of an event whose data the controller does not know any more. The application compares the contents, stores data
    /// that are different beside the event, and says so with [`Command::Compared`].
    Unknown {
        /// Whether data that cannot be compared are stored, too, and called different: their source has begun anew to count.
        anew: bool,
    },
}

/// The final verdict on an event, or data that came under a number which is not their own.
#[derive(Debug)]
pub struct Final {
    /// The run of the event.
    pub run: u32,
    /// The number of the event.
    pub event: u64,
    /// The verdict.
    pub verdict: Verdict,
    /// Whether fragments of it were missing.
    pub partial: bool,
    /// The node that gave the verdict; under a number that is not its own, the source or the builder that gave the data.
    pub node: u32,
    /// How often it was given to a node.
    pub attempts: u8,
    /// The owner of the number under which it came.
    pub owner: Owner,
    /// The event as it was given, whatever is stored of it: what comes under its number is compared with that.
    pub content: Content,
    /// The data to be stored: the node's output, or the event if there is none; empty if nothing is to be stored.
    pub data: Bytes,
}

impl Final {
    /// Compares these data, which are in doubt, with what was given under their number, as far as that is known. Other data
    /// are to be stored, also those that are only said to be other, as their source has begun anew.
    #[must_use]
    pub fn compared(&self, known: Content) -> Likeness {
        match known {
            Content::Unknown if self.owner == (Owner::Unknown { anew: true }) => Likeness::Other,
            Content::Unknown => Likeness::Unknown,
            known if known.code() == self.content.code() => Likeness::Same,
            _ => Likeness::Other,
        }
    }
}
