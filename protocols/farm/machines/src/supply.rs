use bytes::Bytes;
use hodo_machine::Instant;

/// An event, or a fragment of one.
#[derive(Debug, Clone)]
pub struct Event {
    /// Its number in its run: from 0 on, without gaps as a rule.
    pub number: u64,
    /// Its bytes.
    pub payload: Bytes,
    /// Whether fragments of it are missing.
    pub partial: bool,
}

/// What a supply has.
#[derive(Debug, Clone)]
pub enum Next {
    /// The next event.
    Event(Event),
    /// None before this instant.
    Later(Instant),
    /// None any more.
    Ended,
}

/// Where events come from that are made in this process: an emulator, a recorded file, a read-out.
pub trait Supply {
    /// The next event. Asked when there is a token for it, and at the instant of the last [`Next::Later`].
    fn next(&mut self, now: Instant) -> Next;

    /// The run of the event that came last, where that is the supply's to say: a source goes by it, a controller by its own.
    fn run(&self) -> Option<u32> {
        None
    }

    /// Whether events come on a schedule of their own, and wait for tokens; else one is made for each token.
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
