//! The hub with boards that answer when they are told to, one step after the other.
#![allow(dead_code, reason = "each test file uses a part")]

use crate::rack::{Board, Deed, Wish, chunk_of, codes_of};
use hodo_ipbus::hub::{AllowList, Hub, HubCommand, HubConfig, HubEvent};
use hodo_ipbus::wire::chunk;
use hodo_ipbus::wire::hub::Code;
use hodo_machine::{Address, Closed, Ends, Input, Instant, Machine, Outbox, Output, Peer};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

pub const MILLI: Duration = Duration::from_millis(1);
/// Where every client is.
pub const ADDRESS: Address = Address::Node(7);
/// How long the driver takes to get to writing, and to write.
pub const WRITING: Duration = Duration::from_micros(10);

/// The number of a board to which no network leads.
pub const NOWHERE: u32 = 255;

/// A hub, with boards that answer when they are told to.
pub struct Rig {
    pub hub: Hub,
    pub now: Instant,
    pub out: Outbox,
    pub boards: Vec<Board>,
    /// Which board a peer is.
    pub peers: BTreeMap<u32, u32>,
    /// Datagrams for boards that were not delivered yet.
    pub wire: VecDeque<(Peer, Vec<u8>)>,
    /// Bytes that each client received.
    pub received: BTreeMap<u32, Vec<u8>>,
    pub events: Vec<HubEvent>,
    pub closed: Vec<Peer>,
    pub deadline: Option<Instant>,
    pub clients: u32,
    /// Attempts to reach the board that is [`NOWHERE`].
    pub tries: u32,
}

impl Rig {
    pub fn new(boards: u32, config: HubConfig) -> Self {
        Rig {
            hub: Hub::new(config, AllowList::ALL),
            now: Instant::ZERO,
            out: Outbox::new(),
            boards: (0..boards).map(Board::new).collect(),
            peers: BTreeMap::new(),
            wire: VecDeque::new(),
            received: BTreeMap::new(),
            events: Vec::new(),
            closed: Vec::new(),
            deadline: None,
            clients: 0,
            tries: 0,
        }
    }

    pub fn handle(&mut self, input: Input<'_, HubCommand>) {
        self.hub.handle(self.now, input);
        self.poll();
    }

    pub fn poll(&mut self) {
        loop {
            match self.hub.poll(self.now, &mut self.out) {
                Output::Send(peer) => {
                    let pieces = self.out.pieces().iter();
                    let bytes: Vec<u8> = pieces.flat_map(|piece| self.out.bytes(piece).to_vec()).collect();
                    self.out.clear();
                    let (sending, sent) = (self.now + WRITING, self.now + 2 * WRITING);
                    self.out.drain_marks().for_each(|mark| self.hub.stamped(mark.stamp(sending, sent)));
                    if peer.is_accepted() {
                        self.received.entry(peer.0).or_default().extend(bytes);
                    } else {
                        self.wire.push_back((peer, bytes));
                    }
                }
                Output::Event(event) => self.events.push(event),
                Output::Open(peer, address) => {
                    let Some(SocketAddr::V4(board)) = address.ip() else { panic!("{address}") };
                    let number = u32::from(board.ip().octets()[3]);
                    if number == NOWHERE {
                        self.tries += 1;
                        self.hub.handle(self.now, Input::Closed(peer, Closed::Unreachable));
                        continue;
                    }
                    self.peers.insert(peer.0, number);
                    self.hub.handle(self.now, Input::Opened(peer, &Ends::new(Address::Node(0), address)));
                }
                Output::Close(peer) => {
                    self.peers.remove(&peer.0);
                    self.closed.push(peer);
                }
                Output::Idle(deadline) => {
                    self.deadline = deadline;
                    return;
                }
            }
        }
    }

    pub fn client(&mut self) -> Peer {
        let peer = Peer(Peer::FIRST_ACCEPTED + self.clients);
        self.clients += 1;
        self.handle(Input::Opened(peer, &Ends::nodes(0, 7)));
        peer
    }

    pub fn ask(&mut self, client: Peer, wishes: &[Wish]) {
        self.handle(Input::Received(client, &chunk_of(wishes)));
    }

    /// Lets boards answer until nothing is under way.
    pub fn settle(&mut self) {
        while let Some((peer, datagram)) = self.wire.pop_front() {
            let board = self.peers.get(&peer.0).copied();
            let reply = board.and_then(|board| self.boards.get_mut(board as usize)?.answer(&datagram));
            if let Some(reply) = reply {
                self.handle(Input::Received(peer, &reply));
            }
        }
    }

    /// Has the first board do so many of the packets that are on their way, and restart: their replies are lost with its memory.
    pub fn restart_after(&mut self, done: usize) {
        for _ in 0..done {
            let (_, datagram) = self.wire.pop_front().expect("16 are in flight");
            self.boards[0].answer(&datagram);
        }
        self.wire.clear();
        self.boards[0].reboot();
        self.wait(100 * MILLI);
    }

    /// Lets time go on by `span`, with every deadline in it; boards answer at once.
    pub fn wait(&mut self, span: Duration) {
        let until = self.now + span;
        self.settle();
        while let Some(deadline) = self.deadline.filter(|deadline| *deadline <= until) {
            self.now = self.now.max(deadline);
            self.handle(Input::Elapsed);
            self.settle();
        }
        self.now = until;
    }

    /// Returns the next chunk that a client received, without its length.
    pub fn chunk(&mut self, client: Peer) -> Option<Vec<u8>> {
        let bytes = self.received.get_mut(&client.0)?;
        let length = u32::from_be_bytes(*bytes.first_chunk()?) as usize;
        let chunk: Vec<u8> = bytes.drain(..chunk::HEADER + length).skip(chunk::HEADER).collect();
        Some(chunk)
    }

    pub fn chunk_is_missing(&self, client: Peer) -> bool {
        self.received.get(&client.0).is_none_or(Vec::is_empty)
    }

    pub fn codes(&mut self, client: Peer, wishes: &[Wish]) -> Vec<Code> {
        let chunk = self.chunk(client).expect("a chunk is there");
        codes_of(wishes, &chunk)
    }

    /// Sends a packet to the first board, which does not answer.
    pub fn exchange_with_a_dead_board(&mut self, client: Peer) {
        self.ask(client, &[read(0, 1)]);
        self.wait(120 * MILLI);
        assert_eq!(self.codes(client, &[read(0, 1)]), [Code::NoStatusReply]);
    }

    /// Sends a chunk, waits, and returns the codes.
    pub fn exchange(&mut self, client: Peer, wishes: &[Wish]) -> Vec<Code> {
        self.ask(client, wishes);
        self.wait(MILLI);
        self.codes(client, wishes)
    }
}

pub fn read(board: u32, address: u32) -> Wish {
    Wish::new(board, Deed::Read(address, 1))
}

pub fn write(board: u32, word: u32) -> Wish {
    Wish::new(board, Deed::Write(word))
}
