use crate::Error;
use crate::wire::Hello;
use core::time::Duration;
use hodo_machine::{Address, Peer, codes};

codes! {
    /// The treatment of an event of which fragments are missing.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum Incomplete {
        /// It is given on with what there is, and flagged.
        #[default]
        Forward => "forward",
        /// It is given up, and counts as incomplete.
        Drop => "drop",
    }
}

/// The settings of a builder.
#[derive(Debug, Clone)]
pub struct BuilderConfig {
    /// The controller that takes the events.
    pub controller: Address,
    /// Which builder it is.
    pub number: u32,
    /// Sources expected: they have the numbers from 0 on.
    pub sources: u32,
    /// How long a source is waited for that is gone, or, over datagrams, a fragment of which parts were lost.
    pub patience: Duration,
    /// How long one is that is there, and gives nothing although others wait.
    pub behind: Duration,
    /// Whether sources that have not come yet are waited for no longer than those that are gone.
    pub starts_without: bool,
    /// The treatment of an event of which fragments are missing then.
    pub incomplete: Incomplete,
    /// The largest fragment in bytes.
    pub fragment_max: u32,
    /// Memory for fragments, in bytes: each source gets its part.
    pub pool_bytes: u64,
    /// Fragments that a source may have unanswered.
    pub source_credits: u32,
    /// Whether sources come over datagrams: their fragments are segments then, and what has no token is sent again.
    pub datagrams: bool,
    /// How long a greeting may take.
    pub greeting: Duration,
    /// A peer that is silent for this long is gone.
    pub silence: Duration,
    /// Differs each time that the program starts.
    pub instance: u64,
}

impl BuilderConfig {
    /// Creates the settings of a builder of events from this many sources.
    #[must_use]
    pub const fn new(controller: Address, sources: u32) -> Self {
        BuilderConfig {
            controller,
            number: 0,
            sources,
            patience: Duration::from_secs(2),
            behind: Duration::from_secs(30),
            starts_without: false,
            incomplete: Incomplete::Forward,
            fragment_max: 1 << 20,
            pool_bytes: 256 << 20,
            source_credits: 4096,
            datagrams: false,
            greeting: Duration::from_secs(2),
            silence: Duration::from_millis(1000),
            instance: 0,
        }
    }

    /// Bytes of fragments that a source may have unanswered.
    pub(crate) fn window(&self) -> u64 {
        (self.pool_bytes / u64::from(self.sources.max(1))).max(u64::from(self.fragment_max))
    }
}

/// A command of the application to a builder.
#[derive(Debug)]
pub enum Command {
    /// Take no new fragments; tell [`Event::Drained`] when what was given on has its verdict.
    Drain,
}

/// An event that a builder reports to the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The controller takes events.
    Reached(Hello),
    /// The controller is gone, or cannot be reached; it is tried again.
    Lost(Error),
    /// A source has greeted.
    Joined {
        /// Which connection.
        peer: Peer,
        /// The greeting of the source.
        hello: Hello,
    },
    /// A source is gone, or was sent away.
    Left {
        /// Which connection.
        peer: Peer,
        /// The greeting of the source.
        hello: Hello,
        /// Why.
        error: Error,
    },
    /// A source has been gone for long, or has not come: events go on without it until it does.
    Gone {
        /// The number of the source.
        source: u32,
    },
    /// A source that is there has given nothing for long although others wait: events go on without it until it gives.
    Behind {
        /// The number of the source.
        source: u32,
    },
    /// A connection was refused before it had greeted.
    Refused(Peer, Error),
    /// An event was given on, or given up, without all its fragments.
    Incomplete {
        /// The run of the event.
        run: u32,
        /// The number of the event.
        event: u64,
        /// Fragments that it lacks.
        missing: u32,
    },
    /// An event that the controller does not take because of its size: it was given up.
    TooLarge {
        /// The run of the event.
        run: u32,
        /// The number of the event.
        event: u64,
        /// The bytes of the event.
        size: u32,
        /// The controller's bound.
        max: u32,
    },
    /// A source gave other data under the number of a fragment of its own: they are on their way to the quarantine.
    Conflict {
        /// The run of the event.
        run: u32,
        /// The number of the event.
        event: u64,
        /// The number of the source.
        source: u32,
    },
    /// Every event that was given on has its verdict, and no fragment will come.
    Drained,
}

/// The counters of a builder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Fragments that came.
    pub fragments: u64,
    /// Bytes of them.
    pub bytes_in: u64,
    /// Events given on with all their fragments.
    pub complete: u64,
    /// Events given on, or given up, without some of them.
    pub incomplete: u64,
    /// Fragments that did not come in time.
    pub lost_fragments: u64,
    /// Fragments that came when their event had gone on without them.
    pub late_fragments: u64,
    /// Fragments that came again.
    pub duplicate_fragments: u64,
    /// Fragments, and built events, whose numbers were those of others.
    pub conflicts: u64,
    /// Fragments of runs that are over, or with too many gaps before them.
    pub unexpected_fragments: u64,
    /// Events with their verdict.
    pub answered: u64,
    /// Events among them that the controller had already.
    pub duplicates: u64,
    /// Nanoseconds during which the controller took nothing although there was something.
    pub dead_time_ns: u64,
    /// Nanoseconds during which a source could give nothing more, as its events waited for the fragments of others.
    pub held_back_ns: u64,
    /// How often a source was there, and gave nothing for so long that events went on without it.
    pub behind: u64,
    /// Datagrams that could not be read, or were out of place.
    pub bad_datagrams: u64,
    /// Connections refused before they had greeted.
    pub refused: u64,
    /// Connections ended because the peer broke the rules.
    pub misbehaved: u64,
    /// Events of which fragments are awaited now.
    pub events_open: u64,
    /// Built events that wait for their verdict now.
    pub events_waiting: u64,
    /// Sources that are there.
    pub sources: u64,
    /// Whether it takes no new fragments.
    pub is_draining: bool,
}
