//! Nothing is allocated for a packet once the hub's buffers have grown.
use crate::counting;
use crate::rack;

use counting::allocations_here;
use hodo_ipbus::hub::{AllowList, Hub, HubConfig};
use hodo_ipbus::wire::packet::{Header, Kind, Packet, following};
use hodo_ipbus::wire::status::Status;
use hodo_machine::{Address, Ends, Input, Instant, Machine, Outbox, Output, Peer};
use rack::{Deed, Wish, chunk_of};
use std::time::Duration;

const CLIENTS: u32 = 3;
const BOARDS: usize = 4;
const BUFFERS: usize = 16;

/// The hub, clients that ask all the time, and boards that answer with what they were sent, but for some losses.
struct Floor {
    hub: Hub,
    now: Instant,
    out: Outbox,
    /// Chunks that each client sends, again and again.
    chunks: Vec<Vec<u8>>,
    /// The next id of each board.
    next: [u16; BOARDS],
    /// The last replies of each, by their ids.
    kept: [[Vec<u8>; BUFFERS]; BOARDS],
    wire: Vec<(Peer, Vec<u8>)>,
    spare: Vec<Vec<u8>>,
    answered: u64,
    sent: u64,
}

impl Floor {
    fn new() -> Self {
        let chunk = |client: u32| {
            let wish = |packet: u32| Wish::new((client + packet) % BOARDS as u32, Deed::Write(packet));
            chunk_of(&(0..20).map(wish).collect::<Vec<_>>())
        };
        let mut floor = Floor {
            hub: Hub::new(HubConfig::default(), AllowList::ALL),
            now: Instant::ZERO,
            out: Outbox::new(),
            chunks: (0..CLIENTS).map(chunk).collect(),
            next: [1; BOARDS],
            kept: Default::default(),
            wire: Vec::new(),
            spare: Vec::new(),
            answered: 0,
            sent: 0,
        };
        for client in 0..CLIENTS {
            let peer = Peer(Peer::FIRST_ACCEPTED + client);
            floor.hub.handle(floor.now, Input::Opened(peer, &Ends::nodes(0, client)));
            floor.ask(client);
        }
        floor
    }

    fn ask(&mut self, client: u32) {
        let peer = Peer(Peer::FIRST_ACCEPTED + client);
        self.hub.handle(self.now, Input::Received(peer, &self.chunks[client as usize]));
    }

    fn turn(&mut self) {
        self.now = self.now + Duration::from_micros(100);
        self.hub.handle(self.now, Input::Elapsed);
        loop {
            match self.hub.poll(self.now, &mut self.out) {
                Output::Send(peer) if peer.is_accepted() => {
                    self.answered += 1;
                    self.ask(peer.0 - Peer::FIRST_ACCEPTED);
                }
                Output::Send(peer) => {
                    let mut datagram = self.spare.pop().unwrap_or_default();
                    self.out.pieces().iter().for_each(|piece| datagram.extend_from_slice(self.out.bytes(piece)));
                    self.wire.push((peer, datagram));
                }
                Output::Open(peer, address) => {
                    self.hub.handle(self.now, Input::Opened(peer, &Ends::new(Address::Node(0), address)));
                }
                Output::Event(_) | Output::Close(_) => {}
                Output::Idle(_) => break,
            }
            self.out.clear();
        }
        while let Some((peer, mut datagram)) = self.wire.pop() {
            self.answer(peer, &datagram);
            datagram.clear();
            self.spare.push(datagram);
        }
    }

    /// Replies out of order, for that matter: a packet that comes too early is dropped, and asked for again.
    fn answer(&mut self, peer: Peer, datagram: &[u8]) {
        let next = &mut self.next[peer.0 as usize];
        let packet = Packet::decode(datagram).expect("the hub sends packets");
        self.sent += 1;
        let lost = self.sent.is_multiple_of(50);
        match packet.header {
            Header { kind: Kind::Status, .. } => {
                let status = Status { buffers: BUFFERS as u32, next_id: *next, ..Status::default() }.encode();
                self.hub.handle(self.now, Input::Received(peer, &status));
            }
            Header { kind: Kind::Resend, id } => {
                let kept = &self.kept[peer.0 as usize][usize::from(id) % BUFFERS];
                self.hub.handle(self.now, Input::Received(peer, kept));
            }
            Header { id, .. } if id == *next => {
                *next = following(id);
                let kept = &mut self.kept[peer.0 as usize][usize::from(id) % BUFFERS];
                kept.clear();
                kept.extend_from_slice(datagram);
                if !lost {
                    self.hub.handle(self.now, Input::Received(peer, datagram));
                }
            }
            _ => {}
        }
    }

    fn turns(&mut self, count: usize) -> (u64, u64) {
        let before = (allocations_here(), self.answered);
        (0..count).for_each(|_| self.turn());
        (allocations_here() - before.0, self.answered - before.1)
    }
}

#[test]
fn packets_need_no_allocations_once_buffers_have_grown() {
    let mut floor = Floor::new();
    floor.turns(20_000);
    let (allocations, answered) = floor.turns(20_000);
    assert!(answered > 500, "{answered}");
    assert_eq!(allocations, 0, "for {answered} chunks");
}
