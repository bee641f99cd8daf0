use crate::wire::Token;
use hodo_machine::{Instant, Moment, Outbox, Spans, Stamp, Stamps};

/// From its start until the system call that writes it: waiting for a token, too.
pub const QUEUE: &str = "queue";
/// That system call, with all that it writes.
pub const SEND: &str = "send";
/// From then on until the token is received: the network both ways, the node, and waking up.
pub const AWAY: &str = "wire and node";
/// At the node, from the event's last byte until its decision begins, in whole microseconds.
pub const WAIT: &str = "wait";
/// The decision, likewise.
pub const DECIDE: &str = "decide";

/// Where the time of the events goes that are to be stamped.
#[derive(Debug, Default)]
pub(crate) struct Stages {
    pub(crate) stamps: Stamps,
    waited: Spans,
    decided: Spans,
}

impl Stages {
    /// Marks an event that this poll gives to a node.
    #[cold]
    pub(crate) fn give(event: u64, out: &mut Outbox) {
        out.mark(QUEUE, event, Moment::Sending);
        out.mark(SEND, event, Moment::Sent);
    }

    /// Ends the stages of an event whose token has come.
    #[cold]
    pub(crate) fn answer(&mut self, now: Instant, token: &Token) {
        self.stamps.keep(Stamp { stage: AWAY, tag: token.event, at: now });
        self.waited.record(u64::from(token.waited_us) * 1000);
        self.decided.record(u64::from(token.decided_us) * 1000);
    }

    /// Returns the nodes' stages, by name and in order.
    pub(crate) fn far(&self) -> [(&'static str, &Spans); 2] {
        [(WAIT, &self.waited), (DECIDE, &self.decided)]
    }
}
