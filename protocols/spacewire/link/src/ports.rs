use crate::arrivals::Arrivals;
use hodo_machine::{Input, Instant, Machine, Moment, Outbox, Output, Peer, Stamp, Stamps};
use hodo_spacewire::client::{Client, ClientEvent};
use std::collections::VecDeque;

/// Connections of a client at most.
const CONNECTIONS: u32 = 2;
/// The stages of an operation: until its first byte is passed to the kernel, until the system call has returned, and until its
/// answer is here.
const QUEUE: &str = "queue";
const SEND: &str = "send";
const AWAY: &str = "bridge and network";

/// Several clients in one machine.
#[derive(Debug)]
pub(crate) struct Ports {
    pub(crate) clients: Vec<Client<Arrivals>>,
    /// The client that is asked next.
    next: usize,
    pub(crate) stamps: Stamps,
    /// Operations that are stamped and wait to leave, of each client: the tag, and the bytes in front of it.
    started: Vec<VecDeque<(u64, u64)>>,
}

impl Ports {
    pub(crate) fn new(clients: Vec<Client<Arrivals>>) -> Self {
        let started = clients.iter().map(|_| VecDeque::new()).collect();
        Ports { clients, next: 0, stamps: Stamps::default(), started }
    }

    /// Notes that an operation begins at a client, before anything is sent for it.
    #[inline]
    pub(crate) fn begin(&mut self, client: usize, tag: u64) {
        if self.stamps.sampling.takes(tag) {
            let port = &self.clients[client];
            self.started[client].push_back((tag, port.passed() + port.queued() as u64));
        }
    }

    /// Notes that an operation is done, the last input of which came at this time.
    #[inline]
    pub(crate) fn finish(&mut self, tag: u64, at: Instant) {
        if self.stamps.sampling.takes(tag) {
            self.stamps.keep(Stamp { stage: AWAY, tag, at });
        }
    }

    /// Marks the operations of which something leaves.
    fn mark(&mut self, client: usize, out: &mut Outbox) {
        let passed = self.clients[client].passed();
        let started = &mut self.started[client];
        while let Some((tag, _)) = started.front().copied().filter(|(_, before)| *before < passed) {
            started.pop_front();
            out.mark(QUEUE, tag, Moment::Sending);
            out.mark(SEND, tag, Moment::Sent);
        }
    }

    fn client(&self, peer: Peer) -> Option<&Client<Arrivals>> {
        self.clients.get((peer.0 / CONNECTIONS) as usize)
    }

    fn client_mut(&mut self, peer: Peer) -> Option<&mut Client<Arrivals>> {
        self.clients.get_mut((peer.0 / CONNECTIONS) as usize)
    }
}

/// Returns the peer as its client knows it.
const fn inner(peer: Peer) -> Peer {
    Peer(peer.0 % CONNECTIONS)
}

impl Machine for Ports {
    type Command = ();
    type Event = (usize, ClientEvent);

    #[inline]
    fn handle(&mut self, now: Instant, input: Input<'_, ()>) {
        let (peer, input) = match input {
            Input::Opened(peer, ends) => (peer, Input::Opened(inner(peer), ends)),
            Input::Received(peer, bytes) => (peer, Input::Received(inner(peer), bytes)),
            Input::Landed(peer, count) => (peer, Input::Landed(inner(peer), count)),
            Input::Closed(peer, why) => (peer, Input::Closed(inner(peer), why)),
            Input::Blocked(peer) => (peer, Input::Blocked(inner(peer))),
            Input::Drained(peer) => (peer, Input::Drained(inner(peer))),
            Input::Command(()) | Input::Elapsed => return,
        };
        if let Some(client) = self.client_mut(peer) {
            client.handle(now, input);
        }
    }

    #[inline]
    fn poll(&mut self, now: Instant, out: &mut Outbox) -> Output<(usize, ClientEvent)> {
        let count = self.clients.len();
        for step in 0..count {
            let index = (self.next + step) % count;
            let outer = |peer: Peer| Peer(index as u32 * CONNECTIONS + peer.0);
            let output = match self.clients[index].poll(now, out) {
                Output::Idle(_) => continue,
                Output::Send(peer) => {
                    self.mark(index, out);
                    Output::Send(outer(peer))
                }
                Output::Open(peer, address) => Output::Open(outer(peer), address),
                Output::Close(peer) => Output::Close(outer(peer)),
                Output::Event(event) => Output::Event((index, event)),
            };
            self.next = if index + 1 == count { 0 } else { index + 1 };
            return output;
        }
        Output::Idle(None)
    }

    fn stamped(&mut self, stamp: Stamp) {
        self.stamps.keep(stamp);
    }

    fn landing(&mut self, peer: Peer) -> Option<&mut [u8]> {
        self.client_mut(peer)?.landing(inner(peer))
    }

    #[inline]
    fn has_room(&self, peer: Peer) -> bool {
        self.client(peer).is_none_or(|client| client.has_room(inner(peer)))
    }
}
