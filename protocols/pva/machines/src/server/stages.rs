//! How long a server takes to answer one client.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use hodo_machine::{Instant, Moment, Outbox, Peer, Spans, Stamp};

/// From the arrival of a request until the system call that writes its reply.
pub const ANSWER: &str = "decode, source, encode";
/// That system call, with all that it writes.
pub const SEND: &str = "send";

/// The stages of what a server has answered to one client.
#[derive(Debug, Clone, Default)]
pub struct Stages {
    /// From the arrival of a request until the system call that writes its reply.
    pub answer: Spans,
    /// That system call, with all that it writes.
    pub send: Spans,
}

/// The replies to one client whose stages are followed.
#[derive(Debug, Default)]
pub(crate) struct Followed {
    pub(crate) stages: Stages,
    /// When the requests arrived of replies that the next write holds.
    written: Vec<Instant>,
    /// When those arrived whose replies are marked and not stamped.
    marked: VecDeque<Instant>,
    /// When the reply that is being stamped began to be written.
    sending: Instant,
}

impl Followed {
    /// Notes that the next write holds the reply to a request that arrived then.
    pub(crate) fn replied(&mut self, arrived: Instant) {
        self.written.push(arrived);
    }

    /// Marks the replies that this poll writes.
    pub(crate) fn mark(&mut self, peer: Peer, out: &mut Outbox) {
        for arrived in self.written.drain(..) {
            self.marked.push_back(arrived);
            out.mark(ANSWER, peer.0.into(), Moment::Sending);
            out.mark(SEND, peer.0.into(), Moment::Sent);
        }
    }

    /// Counts a stage of the oldest reply that is not stamped.
    pub(crate) fn stamped(&mut self, stamp: Stamp) {
        let Some(arrived) = self.marked.front() else { return };
        if stamp.stage == ANSWER {
            self.stages.answer.record(stamp.at.nanos_since(*arrived));
            self.sending = stamp.at;
        } else {
            self.stages.send.record(stamp.at.nanos_since(self.sending));
            self.marked.pop_front();
        }
    }
}
