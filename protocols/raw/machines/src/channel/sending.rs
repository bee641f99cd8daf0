//! The messages that a channel sends.

use super::{BURST, Channel, Queued, Report, State};
use crate::client::{Event, Queues};
use crate::stages::{QUEUE, SEND};
use crate::wire::{
    self, Direction, FLAG_ACKNOWLEDGE, FLAG_BY_TIME, FLAG_CHECK, FLAG_FACTS, FLAG_STAGES, GREETING, GREETING_MAX,
    Header, Kind, PROOF, RECEIVE_MAX,
};
use hodo_machine::{Instant, Moment, Outbox, Transport};

impl Channel {
    /// Writes what is to be sent: one message over UDP, a burst on a stream. Answers whether more is waiting.
    #[inline]
    pub(crate) fn write(&mut self, now: Instant, queues: &mut Queues, out: &mut Outbox) -> bool {
        let (start, stream) = (out.len(), self.transport == Transport::Stream);
        loop {
            if self.blocked || !matches!(self.state, State::Greeting | State::Ready) {
                return false;
            }
            if out.len() > start && (!stream || out.len() - start >= BURST) {
                return true;
            }
            if self.leaving {
                self.state = State::Left;
                out.copy(&Header::new(Kind::Goodbye, 0, 0).encode());
                return false;
            }
            if self.greet {
                self.greet = false;
                self.greeted.get_or_insert(now);
                self.hello(out);
            } else if if self.single { self.in_flight() } else { self.state == State::Greeting } {
                // A single-use connection carries one operation, sent along with its greeting.
                return false;
            } else if let Some(next) = self.queued.front().copied() {
                self.operation(now, next, queues, out);
            } else if let Some(updates) = self.updates.as_mut().filter(|updates| updates.has_more()) {
                updates.write(now, self.proof, out);
            } else if self.flush {
                self.flush = false;
                self.report(0, 0, out);
            } else if self.report == Report::ToAsk {
                self.report = Report::Asked(now);
                let flags = if queues.stamps.sampling.is_on() { FLAG_STAGES } else { 0 };
                self.report(flags, self.reports, out);
            } else {
                return false;
            }
        }
    }

    /// Writes the greeting, over UDP with the proof, and as long as its answer may become.
    pub(crate) fn hello(&self, out: &mut Outbox) {
        let length = if self.transport == Transport::Datagram { GREETING_MAX } else { GREETING };
        let flags = FLAG_FACTS | FLAG_BY_TIME | if self.inbound.checks_payloads() { FLAG_CHECK } else { 0 };
        out.copy(&Header { flags, ..Header::new(Kind::Hello, length as u32, 0) }.encode());
        out.copy(&wire::encode_greeting(self.size_max));
        out.copy(self.proof_over_udp(&self.proof.to_le_bytes()));
        out.copy(&[0; GREETING_MAX - GREETING][..length.saturating_sub(GREETING + PROOF)]);
    }

    fn report(&self, flags: u8, sequence: u64, out: &mut Outbox) {
        let proof = self.proof.to_le_bytes();
        let proof = self.proof_over_udp(&proof);
        out.copy(&Header { flags, ..Header::new(Kind::Report, proof.len() as u32, sequence) }.encode());
        out.copy(proof);
    }

    /// Returns the proof where it belongs to a message: on a stream the connection is proof enough.
    fn proof_over_udp<'a>(&self, proof: &'a [u8; PROOF]) -> &'a [u8] {
        if self.transport == Transport::Datagram { proof } else { &[] }
    }

    #[inline]
    fn operation(&mut self, now: Instant, next: Queued, queues: &mut Queues, out: &mut Outbox) {
        mark(next.tag, queues, out);
        match next.direction {
            Direction::Both => {
                self.queued.pop_front();
                let header = Header::new(Kind::Echo, next.size, self.echoes.push(next.tag, now));
                queues.payload.message(&header, self.inbound.checks_payloads(), out);
            }
            Direction::Send => {
                self.queued.pop_front();
                let sequence = if self.unbounded {
                    queues.events.push_back(Event::Sent(next.tag));
                    self.sent += 1;
                    self.sent - 1
                } else {
                    self.sends.push(next.tag, now)
                };
                let mut header = Header::new(Kind::Send, next.size, sequence);
                self.unacknowledged += 1;
                // A quarter of what is in flight, which may be far less than the window. The last one of a burst asks too: nobody
                // knows when the next one will come.
                let in_flight = if self.unbounded { u64::MAX } else { self.sends.ahead() };
                let every = u64::from(self.acknowledge_every).min(in_flight / 4);
                if self.single || u64::from(self.unacknowledged) >= every || self.queued.is_empty() {
                    self.unacknowledged = 0;
                    header.flags = FLAG_ACKNOWLEDGE;
                }
                queues.payload.message(&header, self.inbound.checks_payloads(), out);
            }
            Direction::Receive => {
                let mut header = Header::new(Kind::Receive, next.size, 0);
                let most = if self.single { 1 } else { RECEIVE_MAX };
                while let Some(also) = self.queued.front().copied()
                    && header.count < most
                    && (also.size, also.direction) == (next.size, next.direction)
                {
                    self.queued.pop_front();
                    let sequence = self.receives.push(also.tag, now);
                    if header.count == 0 {
                        header.sequence = sequence;
                    } else {
                        mark(also.tag, queues, out);
                    }
                    header.count += 1;
                }
                out.copy(&header.encode());
                out.copy(self.proof_over_udp(&self.proof.to_le_bytes()));
            }
        }
    }
}

/// Marks an operation that this poll writes.
#[inline]
fn mark(tag: u64, queues: &Queues, out: &mut Outbox) {
    if queues.stamps.sampling.takes(tag) {
        out.mark(QUEUE, tag, Moment::Sending);
        out.mark(SEND, tag, Moment::Sent);
    }
}
