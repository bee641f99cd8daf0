//! A queue pair of the reliable-connection service.

use crate::icrc::Flow;
use crate::memory::Memory;
use crate::packet::Writer;
use crate::requester::{Answer, Completions, Requester};
use crate::responder::{Fault, Responder};
use crate::wire::{Extended, Opcode, Packet};
use crate::{Capacity, Completion, Connection, Counters, ReceiveRequest, SendRequest, State, Status, VerbError};
use alloc::collections::VecDeque;
use hodo_machine::{Instant, Outbox};

/// Packets and bytes that one queue pair sends before another has its turn: as many as one segmented send takes.
const TURN_PACKETS: u32 = 60;
const TURN_BYTES: usize = 60_000;

/// A queue pair: what it sends, and what it receives.
#[derive(Debug)]
pub(crate) struct QueuePair {
    pub(crate) number: u32,
    pub(crate) state: State,
    /// The host of the far end, in the adapter's table.
    pub(crate) host: Option<u32>,
    pub(crate) requester: Requester,
    pub(crate) responder: Responder,
    /// Whether it stands in the adapter's list of those with something to send.
    pub(crate) is_listed: bool,
    /// When its timer is due, if it is armed.
    pub(crate) armed: Option<Instant>,
    turn: Turn,
}

/// The packets sent in this turn.
#[derive(Debug, Default)]
struct Turn {
    packets: u32,
    bytes: usize,
    /// Whether the requests of this turn are sent, and replies follow.
    has_requests: bool,
}

/// The outcome of an attempt to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// A packet was written.
    Packet,
    /// It has had its turn, and there is more.
    TurnOver,
    /// There is nothing to send now.
    Nothing,
}

impl QueuePair {
    pub(crate) fn new(number: u32, capacity: &Capacity) -> Self {
        QueuePair {
            number,
            state: State::Init,
            host: None,
            requester: Requester::new(capacity),
            responder: Responder::new(capacity),
            is_listed: false,
            armed: None,
            turn: Turn::default(),
        }
    }

    /// Moves to "ready to receive", or on to "ready to send".
    pub(crate) fn connect(&mut self, connection: &Connection, window_bytes: u32, host: u32) {
        self.requester.connect(connection, window_bytes);
        self.responder.connect(connection);
        self.host = Some(host);
        self.state = State::ReadyToSend;
    }

    /// Adds a send request. In the error state it stays in the queue until it is flushed, so that the queue's depth holds.
    #[inline]
    pub(crate) fn post_send(&mut self, request: &SendRequest<'_>, memory: &Memory) -> Result<(), VerbError> {
        match self.state {
            State::ReadyToSend | State::Error => self.requester.post(request, memory),
            state => Err(VerbError::State(state)),
        }
    }

    /// Adds a receive request, as [`QueuePair::post_send`].
    #[inline]
    pub(crate) fn post_receive(&mut self, request: &ReceiveRequest<'_>) -> Result<(), VerbError> {
        self.responder.post(request)
    }

    /// Takes a packet.
    #[inline]
    pub(crate) fn received(
        &mut self,
        now: Instant,
        packet: &Packet<'_>,
        memory: &mut Memory,
        events: &mut VecDeque<Completion>,
    ) {
        if !matches!(self.state, State::ReadyToReceive | State::ReadyToSend) {
            return;
        }
        let completions =
            &mut Completions { queue_pair: self.number, tell: &mut |completion| events.push_back(completion) };
        if !packet.base.opcode.is_response() {
            if packet.base.opcode != Opcode::CongestionNotification
                && let Err(Fault { .. }) = self.responder.requested(packet, memory, completions)
            {
                self.fail(Status::Flushed, events);
            }
            return;
        }
        let answer = match packet.extended {
            Extended::Ack(header) if packet.base.opcode == Opcode::Acknowledge => Answer::Ack(header.syndrome),
            Extended::AtomicAck(_, original) => Answer::Atomic(original),
            _ => Answer::Data(packet.payload),
        };
        if let Err(status) = self.requester.answered(now, packet.base.psn, answer, memory, completions) {
            self.fail(status, events);
        }
    }

    /// Does what is due.
    pub(crate) fn elapsed(&mut self, now: Instant, events: &mut VecDeque<Completion>) {
        if self.state == State::ReadyToSend
            && let Err(status) = self.requester.elapsed(now)
        {
            self.fail(status, events);
        }
    }

    /// Moves to the error state: the oldest send request fails with this status, and everything behind it is flushed.
    pub(crate) fn fail(&mut self, status: Status, events: &mut VecDeque<Completion>) {
        self.state = State::Error;
        let completions =
            &mut Completions { queue_pair: self.number, tell: &mut |completion| events.push_back(completion) };
        self.requester.fail(status, completions);
        self.responder.flush(completions);
    }

    /// Adds the counters of both halves.
    pub(crate) fn count(&self, counters: &mut Counters) {
        let QueuePair { requester, responder, .. } = self;
        counters.retransmitted += requester.retransmitted;
        counters.timeouts += requester.timeouts;
        counters.naks_received += requester.naks;
        counters.far_receiver_not_ready += requester.not_ready;
        counters.duplicates += responder.duplicates;
        counters.out_of_order += responder.out_of_order;
        counters.receiver_not_ready += responder.not_ready;
        counters.naks_sent += responder.naks;
    }

    /// Flushes what was posted in the error state.
    #[inline]
    pub(crate) fn flush(&mut self, events: &mut VecDeque<Completion>) {
        if self.state == State::Error {
            self.fail(Status::Flushed, events);
        }
    }

    /// Returns whether there may be something to send, or to be flushed.
    #[inline]
    pub(crate) fn has_output(&self, now: Instant) -> bool {
        self.responder.has_replies()
            || match self.state {
                State::ReadyToSend => self.requester.has_work(now),
                State::Error => !self.requester.is_empty() || !self.responder.is_empty(),
                State::Init | State::ReadyToReceive => false,
            }
    }

    /// Writes the next packet: requests first and then replies, so that an acknowledgement, which is shorter, ends one segmented
    /// send with them.
    #[inline]
    pub(crate) fn write_next(
        &mut self,
        now: Instant,
        memory: &Memory,
        (flow, out): (&mut Flow, &mut Outbox),
        events: &mut VecDeque<Completion>,
    ) -> Next {
        let writer = &mut Writer { flow, out };
        if self.turn.packets >= TURN_PACKETS || self.turn.bytes >= TURN_BYTES {
            self.turn.has_requests = true;
        }
        if !self.turn.has_requests && self.state == State::ReadyToSend {
            if let Some(length) = self.requester.write_next(now, memory, writer) {
                return self.wrote(length);
            }
            if let Some(status) = self.requester.failure() {
                self.fail(status, events);
            }
        }
        self.flush(events);
        self.turn.has_requests = true;
        if self.turn.packets < 2 * TURN_PACKETS
            && self.turn.bytes < 2 * TURN_BYTES
            && let Some(length) = self.responder.write_next(memory, writer)
        {
            return self.wrote(length);
        }
        // Requests may have been posted since the replies of this turn began.
        let has_sent = core::mem::take(&mut self.turn).packets > 0;
        if has_sent && self.has_output(now) { Next::TurnOver } else { Next::Nothing }
    }

    #[inline]
    fn wrote(&mut self, length: usize) -> Next {
        self.turn.packets += 1;
        self.turn.bytes += length;
        Next::Packet
    }
}
