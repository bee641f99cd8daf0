//! How long a server takes to answer one client.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use hodo_machine::{Instant, Moment, Outbox, Peer, Spans, Stamp};

/// From the arrival of a request until it is decoded, with what was received together with it.
pub const DECODE: &str = "decode";
/// From then on until its reply begins to be encoded: those before it, and the application where that has to answer.
pub const SOURCE: &str = "source";
/// From then on until the system call that writes the reply: encoding it, and what leaves together with it.
pub const ENCODE: &str = "encode";
/// That system call, with all that it writes.
pub const SEND: &str = "send";

/// The stages of what a server has answered to one client.
#[derive(Debug, Clone, Default)]
pub struct Stages {
    /// Until the request is decoded; see [`DECODE`].
    pub decode: Spans,
    /// Until the reply begins to be encoded; see [`SOURCE`].
    pub source: Spans,
    /// Until the system call that writes it; see [`ENCODE`].
    pub encode: Spans,
    /// That system call.
    pub send: Spans,
}

impl Stages {
    /// Returns each with its name, in their order.
    #[must_use]
    pub const fn named(&self) -> [(&'static str, &Spans); 4] {
        [(DECODE, &self.decode), (SOURCE, &self.source), (ENCODE, &self.encode), (SEND, &self.send)]
    }
}

/// How far the answer to a request has come.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Progress {
    /// When the request was received.
    pub(crate) arrived: Instant,
    /// When it was decoded, with all that was received together with it.
    pub(crate) decoded: Option<Instant>,
    /// When the reply began to be encoded, if that was while the server was polled.
    pub(crate) encoding: Option<Instant>,
}

/// The replies to one client whose stages are followed.
#[derive(Debug, Default)]
pub(crate) struct Followed {
    pub(crate) stages: Stages,
    /// The replies that the next write holds.
    written: Vec<Progress>,
    /// When those began to be encoded that are marked and not stamped.
    marked: VecDeque<Instant>,
    /// When the reply that is being stamped began to be written.
    sending: Instant,
}

impl Followed {
    /// Notes that the next write holds this reply.
    pub(crate) fn replied(&mut self, progress: Progress) {
        self.written.push(progress);
    }

    /// Marks the replies that this poll writes. One that was encoded as its request was decoded, or by its handler, is so now.
    pub(crate) fn mark(&mut self, now: Instant, peer: Peer, out: &mut Outbox) {
        if self.written.is_empty() {
            return;
        }
        let now = out.now(now);
        for Progress { arrived, decoded, encoding } in self.written.drain(..) {
            let (decoded, encoding) = (decoded.unwrap_or(now), encoding.unwrap_or(now));
            self.stages.decode.record(decoded.nanos_since(arrived));
            self.stages.source.record(encoding.nanos_since(decoded));
            self.marked.push_back(encoding);
            out.mark(ENCODE, peer.0.into(), Moment::Sending);
            out.mark(SEND, peer.0.into(), Moment::Sent);
        }
    }

    /// Counts a stage of the oldest reply that is not stamped.
    pub(crate) fn stamped(&mut self, stamp: Stamp) {
        let Some(encoding) = self.marked.front() else { return };
        if stamp.stage == ENCODE {
            self.stages.encode.record(stamp.at.nanos_since(*encoding));
            self.sending = stamp.at;
        } else {
            self.stages.send.record(stamp.at.nanos_since(self.sending));
            self.marked.pop_front();
        }
    }
}
