//! The responder: what the far end's requests do here, and the replies that are due (volume 1, 9.7.4 and 9.7.5.1).

mod replies;
mod requests;

use crate::queue::Queue;
use crate::requester::Completions;
use crate::{Capacity, Completed, Completion, Connection, Mtu, Psn, ReceiveRequest, Status, VerbError};
use alloc::collections::VecDeque;
use replies::Reply;

pub(crate) use requests::Fault;

/// A request that has been posted to the receive queue.
#[derive(Debug, Clone, Copy)]
struct Receive {
    id: u64,
    length: u64,
    entries: u32,
}

/// The message that is arriving.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inbound {
    None,
    /// A send, of which this many bytes are there.
    Send(u64),
    /// A write: where the next byte goes, and how many are to come.
    Write {
        key: u32,
        address: u64,
        left: u32,
        length: u32,
    },
}

/// An atomic operation that was carried out, kept because its acknowledgement may be lost.
#[derive(Debug, Clone, Copy)]
struct Executed {
    psn: Psn,
    original: u64,
}

/// The receive queue, and what is expected of the far end.
#[derive(Debug)]
pub(crate) struct Responder {
    receives: Queue<Receive>,
    expected: Psn,
    /// Messages completed, modulo 2^24.
    messages: u32,
    mtu: Mtu,
    inbound: Inbound,
    /// Whether the far end was told that a packet is missing, or that no receive was posted: it is told once.
    has_refused: bool,
    not_ready_timer: u8,
    reads_max: usize,
    replies: VecDeque<Reply>,
    executed: VecDeque<Executed>,
    /// The far end's queue pair.
    to: u32,
    pub(crate) duplicates: u64,
    pub(crate) out_of_order: u64,
    pub(crate) not_ready: u64,
    pub(crate) naks: u64,
}

impl Responder {
    /// Returns the bytes that the receive queue takes.
    pub(crate) const fn size(capacity: &Capacity) -> u64 {
        Queue::<Receive>::size(capacity.receive_depth, capacity.receive_entries)
    }

    pub(crate) fn new(capacity: &Capacity) -> Self {
        Responder {
            receives: Queue::new(capacity.receive_depth, capacity.receive_entries),
            expected: Psn::default(),
            messages: 0,
            mtu: Mtu::ALL[0],
            inbound: Inbound::None,
            has_refused: false,
            not_ready_timer: 0,
            reads_max: 0,
            replies: VecDeque::new(),
            executed: VecDeque::new(),
            to: 0,
            duplicates: 0,
            out_of_order: 0,
            not_ready: 0,
            naks: 0,
        }
    }

    pub(crate) fn connect(&mut self, connection: &Connection) {
        self.expected = connection.receive_psn;
        self.mtu = connection.mtu;
        self.not_ready_timer = connection.receiver_not_ready_timer;
        self.reads_max = usize::from(connection.reads_served);
        self.to = connection.queue_pair;
    }

    /// Adds a receive request.
    pub(crate) fn post(&mut self, request: &ReceiveRequest<'_>) -> Result<(), VerbError> {
        if self.receives.is_full() {
            return Err(VerbError::QueueFull(self.receives.depth()));
        }
        let (given, most) = (request.entries.len(), self.receives.width());
        if given > most {
            return Err(VerbError::TooManyEntries { given, most: most as u32 });
        }
        let length = request.entries.iter().map(|entry| u64::from(entry.length)).sum();
        self.receives.push(Receive { id: request.id, length, entries: given as u32 }, request.entries);
        Ok(())
    }

    /// Returns whether no receive request is outstanding.
    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.receives.is_empty()
    }

    /// Flushes every receive request.
    pub(crate) fn flush(&mut self, completions: &mut Completions<'_>) {
        while let Some(receive) = self.receives.get(self.receives.head()) {
            (completions.tell)(receive.completion(completions.queue_pair, Status::Flushed));
            self.receives.pop();
        }
        self.inbound = Inbound::None;
        self.executed.clear();
    }

    /// Completes the oldest receive request.
    #[inline]
    fn complete(&mut self, message: &Message, completions: &mut Completions<'_>) {
        let Some(receive) = self.receives.get(self.receives.head()) else { return };
        let mut completion = receive.completion(completions.queue_pair, message.status);
        completion.kind = message.kind;
        completion.length = message.length;
        completion.immediate = message.immediate;
        completion.invalidated = message.invalidated;
        completion.is_solicited = message.is_solicited;
        self.receives.pop();
        (completions.tell)(completion);
    }
}

/// A message that has arrived.
struct Message {
    status: Status,
    kind: Completed,
    length: u32,
    immediate: Option<u32>,
    invalidated: Option<u32>,
    is_solicited: bool,
}

impl Receive {
    const fn completion(&self, queue_pair: u32, status: Status) -> Completion {
        Completion {
            id: self.id,
            queue_pair,
            status,
            kind: Completed::Receive,
            length: 0,
            immediate: None,
            invalidated: None,
            is_solicited: false,
        }
    }
}
