use crate::metered::Metered;
use hodo_ipbus::hub::{AllowList, Hub, HubCommand, HubConfig};
use hodo_ipbus::wire::chunk::{self, Chunks};
use hodo_ipbus::wire::hub::{Code, Replies, Request};
use hodo_ipbus::wire::operation::{self, Mode, Operation};
use hodo_ipbus::wire::packet::{Header, Kind, Packet, following};
use hodo_ipbus::wire::status::Status;
use hodo_ipbus::wire::{Order, Version, WORD, legacy};
use hodo_machine::{Address, Closed, Ends, Input, Instant, Machine, Outbox, Output, Peer, Sampling};
use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::Duration;

const CLIENTS: u8 = 3;
const BOARDS: u8 = 3;
const OUTPUTS_MAX: usize = 10_000;

/// Clients and boards that keep the rules or break them, as the bytes say. An honest client is answered what it asked
/// for, in order; by an honest board, with that board's reply and no other. No bytes make the hub panic.
pub fn machine(input: &[u8]) {
    let mut floor = Floor::new();
    let mut rest = input;
    while let Some((head, behind)) = rest.split_first_chunk::<2>() {
        let (kind, who, value) = (head[0] % 16, head[0] / 16, head[1]);
        let takes = if matches!(kind, 1 | 2 | 5) { usize::from(value).min(behind.len()) } else { 0 };
        let (bytes, behind) = behind.split_at(takes);
        rest = behind;
        floor.step(kind, who, value, bytes);
        floor.settle();
    }
}

struct Floor {
    hub: Metered<Hub>,
    now: Instant,
    out: Outbox,
    clients: BTreeMap<Peer, Client>,
    boards: Vec<Board>,
    /// Which board a peer is.
    peers: BTreeMap<Peer, usize>,
    asked: u32,
}

/// The replies that a client must get: for each packet its device, and the reply of an honest board.
struct Client {
    due: VecDeque<Vec<(SocketAddrV4, Vec<u8>)>>,
    chunks: Chunks,
    honest: bool,
    blocked: bool,
}

#[derive(Default)]
struct Board {
    honest: bool,
    next: u16,
    kept: VecDeque<(u16, Vec<u8>)>,
    arriving: VecDeque<Vec<u8>>,
    last: Vec<u8>,
}

impl Floor {
    fn new() -> Self {
        let config =
            HubConfig { client_packets: 40, packets: 60, board_packets: 30, boards: 2, ..HubConfig::default() };
        Floor {
            hub: Metered::new(Hub::new(config, AllowList::ALL)),
            now: Instant::ZERO,
            out: Outbox::new(),
            clients: BTreeMap::new(),
            boards: (0..BOARDS).map(|_| Board { honest: true, next: 1, ..Board::default() }).collect(),
            peers: BTreeMap::new(),
            asked: 0,
        }
    }

    fn step(&mut self, kind: u8, who: u8, value: u8, bytes: &[u8]) {
        let client = Peer(Peer::FIRST_ACCEPTED + u32::from(who % CLIENTS));
        let number = usize::from(who % BOARDS);
        let board = self.peers.iter().find(|(_, board)| **board == number).map(|(peer, _)| *peer);
        match kind {
            0 => self.come(client),
            1 => self.ask(client, bytes),
            2 => self.say(client, bytes),
            3 | 4 => self.deliver(board, kind == 4),
            5 => self.forge(board, bytes),
            6 => self.again(board),
            7 => (self.boards[number].next, self.boards[number].kept) = (1, VecDeque::new()),
            8 => self.refuse(board),
            9 | 10 => {
                self.now = self.now + Duration::from_micros(50 << (value % 20));
                self.hub.handle(self.now, Input::Elapsed);
            }
            11 => self.leave(client),
            12 => self.block(client),
            13 => self.hub.handle(self.now, Input::Command(HubCommand::Sample(Sampling::ALL))),
            14 if value == 0 => self.hub.handle(self.now, Input::Command(HubCommand::Drain)),
            14 => {
                let list = AllowList::parse(["10.0.0.0", "10.0.0.1\n10.0.0.2"][usize::from(value % 2)]);
                self.hub.handle(self.now, Input::Command(HubCommand::Allow(list.expect("a list"))));
            }
            _ => {}
        }
    }

    fn come(&mut self, peer: Peer) {
        if self.clients.contains_key(&peer) {
            return;
        }
        let client = Client { due: VecDeque::new(), chunks: Chunks::new(1 << 20), honest: true, blocked: false };
        self.clients.insert(peer, client);
        self.hub.handle(self.now, Input::Opened(peer, &Ends::nodes(0, peer.0)));
    }

    /// Sends a packet for each two bytes: they choose the board, the version and byte order, and the words.
    fn ask(&mut self, peer: Peer, bytes: &[u8]) {
        let Some(client) = self.clients.get_mut(&peer) else { return };
        let (mut out, mut due) = (Vec::new(), Vec::new());
        let begun = chunk::begin(&mut out);
        for [which, words] in bytes.as_chunks().0 {
            self.asked += 1;
            let target = target(which % BOARDS);
            let order = Order::BOTH[usize::from(which >> 6 & 1 ^ 1)];
            let operation: Operation<&[u32]> = if words % 2 == 0 {
                Operation::Read { mode: Mode::Incrementing, address: self.asked, words: u16::from(*words) }
            } else {
                Operation::RmwSum { address: self.asked, addend: self.asked }
            };
            let packet = if which >> 7 == 0 { current(self.asked, order, operation) } else { old(order, operation) };
            Request { target, packet: &packet }.encode(&mut out);
            due.push((target, answer(&packet)));
        }
        chunk::end(&mut out, begun);
        client.due.push_back(due);
        self.hub.handle(self.now, Input::Received(peer, &out));
    }

    fn say(&mut self, peer: Peer, bytes: &[u8]) {
        if let Some(client) = self.clients.get_mut(&peer) {
            client.honest = false;
            self.hub.handle(self.now, Input::Received(peer, bytes));
        }
    }

    /// Delivers the next datagram to a board, whose reply may be lost.
    fn deliver(&mut self, peer: Option<Peer>, lost: bool) {
        let Some(peer) = peer else { return };
        let board = &mut self.boards[self.peers[&peer]];
        let Some(datagram) = board.arriving.pop_front() else { return };
        if let Some(reply) = board.take(&datagram) {
            board.last = reply;
            if !lost {
                self.again(Some(peer));
            }
        }
    }

    fn again(&mut self, peer: Option<Peer>) {
        let Some(peer) = peer else { return };
        let reply = &self.boards[self.peers[&peer]].last;
        if !reply.is_empty() {
            self.hub.handle(self.now, Input::Received(peer, reply));
        }
    }

    fn forge(&mut self, peer: Option<Peer>, bytes: &[u8]) {
        let Some(peer) = peer else { return };
        self.boards[self.peers[&peer]].honest = false;
        self.hub.handle(self.now, Input::Received(peer, bytes));
    }

    fn refuse(&mut self, peer: Option<Peer>) {
        if let Some(peer) = peer {
            self.peers.remove(&peer);
            self.hub.handle(self.now, Input::Closed(peer, Closed::Refused));
        }
    }

    fn leave(&mut self, peer: Peer) {
        if self.clients.remove(&peer).is_some() {
            self.hub.handle(self.now, Input::Closed(peer, Closed::Reset));
        }
    }

    fn block(&mut self, peer: Peer) {
        if let Some(client) = self.clients.get_mut(&peer) {
            client.blocked = !client.blocked;
            let input = if client.blocked { Input::Blocked(peer) } else { Input::Drained(peer) };
            self.hub.handle(self.now, input);
        }
    }

    fn settle(&mut self) {
        for _ in 0..OUTPUTS_MAX {
            match self.hub.poll(self.now, &mut self.out) {
                Output::Send(peer) => {
                    let pieces = self.out.pieces().iter();
                    let bytes: Vec<u8> = pieces.flat_map(|piece| self.out.bytes(piece).to_vec()).collect();
                    self.out.clear();
                    if let Some(board) = self.peers.get(&peer) {
                        self.boards[*board].arriving.push_back(bytes);
                    } else {
                        self.check(peer, &bytes);
                    }
                }
                Output::Event(_) => {}
                Output::Open(peer, address) => {
                    let Address::Udp(SocketAddr::V4(socket)) = address else { panic!("{address} is no board's") };
                    let board = usize::from(socket.ip().octets()[3]);
                    if socket == target(board as u8) && board < self.boards.len() {
                        self.boards[board].arriving.clear();
                        self.peers.insert(peer, board);
                        self.hub.handle(
                            self.now,
                            Input::Opened(peer, &Ends::new(Address::Node(0), Address::Udp(socket.into()))),
                        );
                    } else {
                        self.hub.handle(self.now, Input::Closed(peer, Closed::Unreachable));
                    }
                }
                Output::Close(peer) => {
                    self.clients.remove(&peer);
                    self.peers.remove(&peer);
                }
                Output::Idle(_) => return,
            }
            self.out.drain_marks().for_each(|mark| self.hub.stamped(mark.stamp(self.now, self.now)));
        }
        panic!("not idle after {OUTPUTS_MAX} outputs");
    }

    /// Checks that a client receives the replies that it must get.
    fn check(&mut self, peer: Peer, bytes: &[u8]) {
        let client = self.clients.get_mut(&peer).expect("bytes only for a peer that is there");
        assert!(!client.blocked, "it does not read");
        let mut rest = bytes;
        while let Some(chunk) = client.chunks.next(&mut rest).expect("the hub sends chunks") {
            let replies: Vec<_> = Replies::new(chunk).map(|reply| reply.expect("a whole entry")).collect();
            if !client.honest {
                continue;
            }
            let due = client.due.pop_front().expect("a chunk was asked for");
            assert_eq!(replies.len(), due.len());
            for (reply, (target, packet)) in replies.iter().zip(&due) {
                assert_eq!(reply.target, *target);
                if reply.code != Code::Done {
                    assert!(reply.packet.is_empty());
                } else if self.boards[usize::from(target.ip().octets()[3])].honest {
                    assert_eq!(reply.packet, packet);
                } else if Version::of(packet).is_some_and(|(version, _)| version == Version::V2_0) {
                    assert_eq!(reply.packet[..WORD], packet[..WORD], "its own header");
                }
            }
        }
    }
}

impl Board {
    /// Returns the reply of a board that keeps the rules, and sends back what it gets.
    fn take(&mut self, datagram: &[u8]) -> Option<Vec<u8>> {
        let Ok(packet) = Packet::decode(datagram) else { return Some(answer(datagram)) };
        let Header { id, kind } = packet.header;
        match kind {
            Kind::Status => Some(Status { buffers: 4, next_id: self.next, ..Status::default() }.encode().to_vec()),
            Kind::Resend => self.kept.iter().find(|(kept, _)| *kept == id).map(|(_, reply)| reply.clone()),
            Kind::Control if id != self.next => None,
            Kind::Control => {
                self.next = following(id);
                if self.kept.len() == 4 {
                    self.kept.pop_front();
                }
                self.kept.push_back((id, answer(datagram)));
                Some(answer(datagram))
            }
        }
    }
}

/// Returns the bytes of the request, with version 1.3 as a reply.
fn answer(request: &[u8]) -> Vec<u8> {
    let mut reply = request.to_vec();
    if let Ok(packet) = legacy::Packet::decode(request)
        && let Some(first) = reply.first_chunk_mut::<WORD>()
        && let Ok(header) = legacy::Header::decode(packet.order.u32(*first))
    {
        *first = packet.order.bytes_32(legacy::Header { reply: true, ..header }.encode());
    }
    reply
}

fn target(board: u8) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, board), 50001)
}

fn current(id: u32, order: Order, operation: Operation<&[u32]>) -> Vec<u8> {
    let mut packet = order.bytes_32(Header { id: id as u16 ^ 0x55, kind: Kind::Control }.encode()).to_vec();
    operation::Request::new(id as u16, operation).encode(order, &mut packet);
    packet
}

fn old(order: Order, operation: Operation<&[u32]>) -> Vec<u8> {
    let mut packet = Vec::new();
    legacy::begin(7, order, &mut packet);
    legacy::Request::new(1, operation).expect("1.3 has it").encode(order, &mut packet);
    legacy::end(&mut packet, 0, order);
    packet
}
