use super::arrivals::Arrivals;
use hodo_machine::{Input, Instant, Machine, Outbox, Output, Peer};
use hodo_spacewire::client::{Client, ClientEvent};

/// Connections of a client at most.
const CONNECTIONS: u32 = 2;

/// Several clients in one machine.
#[derive(Debug)]
pub(super) struct Ports {
    pub(super) clients: Vec<Client<Arrivals>>,
    /// The client that is asked next.
    next: usize,
}

impl Ports {
    pub(super) fn new(clients: Vec<Client<Arrivals>>) -> Self {
        Ports { clients, next: 0 }
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
                Output::Send(peer) => Output::Send(outer(peer)),
                Output::Open(peer, address) => Output::Open(outer(peer), address),
                Output::Close(peer) => Output::Close(outer(peer)),
                Output::Event(event) => Output::Event((index, event)),
            };
            self.next = if index + 1 == count { 0 } else { index + 1 };
            return output;
        }
        Output::Idle(None)
    }

    fn landing(&mut self, peer: Peer) -> Option<&mut [u8]> {
        self.client_mut(peer)?.landing(inner(peer))
    }

    #[inline]
    fn has_room(&self, peer: Peer) -> bool {
        self.client(peer).is_none_or(|client| client.has_room(inner(peer)))
    }
}
