use bytes::Bytes;
use hodo_machine::Instant;

/// An event, or a fragment of one.
#[derive(Debug, Clone)]
pub struct EventData {
    /// Number in the run: from 0 on, without gaps as a rule.
    pub number: u64,
    /// Bytes of the event.
    pub payload: Bytes,
    /// Whether fragments of it are missing.
    pub partial: bool,
}

/// The answer of a supply.
#[derive(Debug, Clone)]
pub enum Next {
    /// The next event.
    Event(EventData),
    /// None before this instant.
    Later(Instant),
    /// None any more.
    Ended,
}

/// Where events come from that are made in this process: an emulator, a recorded file, a read-out.
pub trait Supply {
    /// Returns the next event. Called when there is a token for it, and at the instant of the last [`Next::Later`].
    fn next(&mut self, now: Instant) -> Next;

    /// Returns the run of the last event, if the supply decides on it: a source goes by it, a controller by its own.
    fn run(&self) -> Option<u32> {
        None
    }

    /// Tells whether events come on a schedule of their own, and wait for tokens; else one is made for each token.
    fn is_paced(&self) -> bool {
        false
    }
}

/// No events are made here, now or later: neither is there an end of them.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSupply;

impl Supply for NoSupply {
    fn next(&mut self, _: Instant) -> Next {
        Next::Later(Instant::MAX)
    }
}
