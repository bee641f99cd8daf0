//! A client that sends what its board never takes, or never answers, and the other clients of that board: they are served as if it were not
//! there.
use crate::rack;
use crate::rig;

use hodo_ipbus::hub::{AllowList, Hub, HubCommand, HubConfig};
use hodo_ipbus::wire::chunk;
use hodo_ipbus::wire::hub::Code;
use hodo_ipbus::wire::operation::Operation;
use hodo_ipbus::wire::packet::{Kind, Packet};
use hodo_machine::{Address, Ends, Input, Instant, Machine, Outbox, Output, Peer};
use hodo_sim::Random;
use rack::{Board, Wish, chunk_of, codes_of};
use rig::{MILLI, Rig, read, write};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::Duration;

/// One way to the board, and one to a client.
const WAY: u64 = 50_000;
/// The board's time for a datagram.
const SERVICE: u64 = 5_000;
/// Virtual time of a run.
const LASTS: u64 = 400_000_000;
/// The first byte of the words and addresses that the board does not take.
const IGNORED: u32 = 0xDE00_0000;

/// The board's answer to a packet with [`IGNORED`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// It drops the packet, and waits for its number.
    Dropped,
    /// It does the packet, and its reply never arrives.
    Unanswered,
}

/// A client that waits for the answers to a number of chunks.
struct Client {
    depth: usize,
    packets: u32,
    /// One in so many packets is [`IGNORED`]; none for 0.
    ignored: u32,
    number: u32,
    sent: u32,
    waiting: VecDeque<(Vec<Wish>, u64)>,
    received: Vec<u8>,
    codes: HashMap<Code, u32>,
    /// The longest wait for a chunk: of all, and of those sent in the second half of the run.
    longest: [u64; 2],
    /// Packets of chunks sent in the second half of the run that were done.
    done_later: u32,
    /// The codes of its packets that are not [`IGNORED`], where they failed.
    innocent: Vec<Code>,
}

impl Client {
    fn new(number: u32, depth: usize, packets: u32, ignored: u32) -> Self {
        let (codes, innocent) = (HashMap::new(), Vec::new());
        let (waiting, received) = (VecDeque::new(), Vec::new());
        Client {
            depth,
            packets,
            ignored,
            number,
            sent: 0,
            waiting,
            received,
            codes,
            longest: [0; 2],
            done_later: 0,
            innocent,
        }
    }

    fn next_chunk(&mut self, now: u64) -> Option<Vec<u8>> {
        if self.waiting.len() >= self.depth {
            return None;
        }
        let wishes: Vec<Wish> = (0..self.packets).map(|_| self.wish()).collect();
        let chunk = chunk_of(&wishes);
        self.waiting.push_back((wishes, now));
        Some(chunk)
    }

    fn wish(&mut self) -> Wish {
        self.sent += 1;
        let is_ignored = self.ignored > 0 && self.sent.is_multiple_of(self.ignored);
        let word = self.number << 16 | self.sent | if is_ignored { IGNORED } else { 0 };
        if self.sent.is_multiple_of(3) { read(0, word) } else { write(0, word) }
    }

    fn received(&mut self, now: u64, bytes: &[u8]) {
        self.received.extend_from_slice(bytes);
        while let Some(length) = self.received.first_chunk().map(|length| u32::from_be_bytes(*length) as usize) {
            if self.received.len() < chunk::HEADER + length {
                return;
            }
            let chunk: Vec<u8> = self.received.drain(..chunk::HEADER + length).skip(chunk::HEADER).collect();
            let (wishes, asked) = self.waiting.pop_front().expect("a chunk was asked for");
            for (wish, code) in wishes.iter().zip(codes_of(&wishes, &chunk)) {
                *self.codes.entry(code).or_default() += 1;
                self.done_later += u32::from(code == Code::Done && asked > LASTS / 2);
                if code != Code::Done && !is_ignored(wish) {
                    self.innocent.push(code);
                }
            }
            self.longest[0] = self.longest[0].max(now - asked);
            if asked > LASTS / 2 {
                self.longest[1] = self.longest[1].max(now - asked);
            }
        }
    }
}

fn is_ignored(wish: &Wish) -> bool {
    let (rack::Deed::Read(word, _) | rack::Deed::Write(word)) = wish.deed;
    word >= IGNORED
}

enum Arrival {
    AtBoard(Peer, Vec<u8>),
    FromBoard(Peer, Vec<u8>),
    AtHub(Peer, Vec<u8>),
    AtClient(usize, Vec<u8>),
}

struct World {
    hub: Hub,
    out: Outbox,
    now: u64,
    deadline: Option<Instant>,
    board: Board,
    fault: Fault,
    unanswered: BTreeSet<u16>,
    busy: u64,
    clients: Vec<Client>,
    arrivals: BTreeMap<(u64, u64), Arrival>,
    sent: u64,
    random: Random,
    loss: f64,
}

impl World {
    fn new(seed: u64, fault: Fault, loss: f64, clients: Vec<Client>) -> Self {
        let mut board = Board::new(0);
        board.serve_another(20);
        World {
            hub: Hub::new(HubConfig { seed, ..HubConfig::default() }, AllowList::ALL),
            out: Outbox::new(),
            now: 0,
            deadline: None,
            board,
            fault,
            unanswered: BTreeSet::new(),
            busy: 0,
            clients,
            arrivals: BTreeMap::new(),
            sent: 0,
            random: Random::new(seed),
            loss,
        }
    }

    fn at(&self) -> Instant {
        Instant::from_nanos(self.now)
    }

    fn put(&mut self, at: u64, arrival: Arrival) {
        let is_datagram = matches!(arrival, Arrival::AtBoard(..) | Arrival::FromBoard(..));
        if !is_datagram || !self.random.chance(self.loss) {
            self.sent += 1;
            self.arrivals.insert((at, self.sent), arrival);
        }
    }

    fn handle(&mut self, input: Input<'_, HubCommand>) {
        self.hub.handle(self.at(), input);
        loop {
            match self.hub.poll(self.at(), &mut self.out) {
                Output::Send(peer) => {
                    let pieces = self.out.pieces().iter();
                    let bytes: Vec<u8> = pieces.flat_map(|piece| self.out.bytes(piece).to_vec()).collect();
                    self.out.clear();
                    let arrival = if peer.is_accepted() {
                        Arrival::AtClient((peer.0 - Peer::FIRST_ACCEPTED) as usize, bytes)
                    } else {
                        Arrival::AtBoard(peer, bytes)
                    };
                    self.put(self.now + WAY, arrival);
                }
                Output::Open(peer, address) => {
                    self.hub.handle(self.at(), Input::Opened(peer, &Ends::new(Address::Node(0), address)));
                }
                Output::Event(_) | Output::Close(_) => {}
                Output::Idle(deadline) => {
                    self.deadline = deadline;
                    return;
                }
            }
        }
    }

    /// Returns the board's answer to a datagram, if it arrives.
    fn answer(&mut self, datagram: &[u8]) -> Option<Vec<u8>> {
        let packet = Packet::decode(datagram).expect("the hub sends packets");
        let id = packet.header.id;
        let is_ignored = packet.header.kind == Kind::Control
            && packet.requests().any(|request| match request.expect("whole transactions").operation {
                Operation::Read { address, .. } => address >= IGNORED,
                Operation::Write { data, .. } => data.into_iter().any(|word| word >= IGNORED),
                _ => false,
            });
        match (packet.header.kind, self.fault) {
            (Kind::Control, Fault::Dropped) if is_ignored => return None,
            (Kind::Control, Fault::Unanswered) if is_ignored => {
                let taken = self.board.answer(datagram).is_some();
                self.unanswered.extend(taken.then_some(id));
                return None;
            }
            (Kind::Resend, _) if self.unanswered.contains(&id) => return None,
            _ => {}
        }
        self.board.answer(datagram)
    }

    fn run(mut self) -> Self {
        for number in 0..self.clients.len() as u32 {
            self.handle(Input::Opened(Peer(Peer::FIRST_ACCEPTED + number), &Ends::nodes(0, 7)));
        }
        while self.now < LASTS {
            for number in 0..self.clients.len() {
                while let Some(chunk) = self.clients[number].next_chunk(self.now) {
                    let peer = Peer(Peer::FIRST_ACCEPTED + number as u32);
                    self.put(self.now + WAY, Arrival::AtHub(peer, chunk));
                }
            }
            let arrives = self.arrivals.first_key_value().map(|((at, _), _)| *at);
            let deadline = self.deadline.map(Instant::as_nanos);
            self.now = arrives.into_iter().chain(deadline).min().expect("clients wait for something").max(self.now);
            match self
                .arrivals
                .first_entry()
                .filter(|entry| entry.key().0 <= self.now)
                .map(std::collections::btree_map::OccupiedEntry::remove)
            {
                Some(Arrival::AtBoard(peer, datagram)) => {
                    self.busy = self.busy.max(self.now) + SERVICE;
                    if let Some(reply) = self.answer(&datagram) {
                        self.put(self.busy + WAY, Arrival::FromBoard(peer, reply));
                    }
                }
                Some(Arrival::FromBoard(peer, bytes) | Arrival::AtHub(peer, bytes)) => {
                    self.handle(Input::Received(peer, &bytes));
                }
                Some(Arrival::AtClient(number, bytes)) => self.clients[number].received(self.now, &bytes),
                None => self.handle(Input::Elapsed),
            }
        }
        self
    }
}

/// Runs two clients that the board serves beside one that sends it other packets, and returns them all.
fn run(fault: Fault, loss: f64, others: (usize, u32), bad: Client) -> Vec<Client> {
    let served = (1..3).map(|number| Client::new(number, others.0, others.1, 0));
    World::new(1, fault, loss, served.chain([bad]).collect()).run().clients
}

/// Counts what both clients that are served got in the second half of the run.
fn served_later(clients: &[Client]) -> u32 {
    clients[..2].iter().map(|client| client.done_later).sum()
}

#[test]
fn a_packet_that_a_board_never_takes_or_answers_costs_its_other_clients_little() {
    for (fault, code) in [(Fault::Dropped, Code::NoControlReply), (Fault::Unanswered, Code::NoResendReply)] {
        for (others, loss) in [((1, 1), 0.0), ((1, 1), 0.01), ((4, 4), 0.0)] {
            let alone = served_later(&run(fault, loss, others, Client::new(3, 0, 1, 0)));
            for (depth, packets, one_in) in [(1, 1, 1), (8, 1, 1), (4, 4, 1), (4, 4, 2), (1, 1, 5)] {
                let clients = run(fault, loss, others, Client::new(3, depth, packets, one_in));
                let case = format!("{fault:?}, {loss} lost, {others:?} beside {depth} x {packets}, 1 in {one_in}");
                let done = served_later(&clients);
                assert!(done * 4 > alone * 3, "{case}: {done} of {alone} are served");
                for client in &clients[..2] {
                    let [longest, later] = client.longest.map(Duration::from_nanos);
                    assert!(longest < 50 * MILLI && later < 10 * MILLI, "{case}: {longest:?}, then {later:?}");
                    assert!(client.innocent.is_empty(), "{case}: {:?}", client.innocent);
                }
                let bad = &clients[2].codes;
                assert!(bad[&code] > 5 && bad.len() <= 2, "{case}: {bad:?}");
            }
        }
    }
}

/// Has a board tell its status and take nothing for a time: it is not what one client sends.
#[test]
fn a_board_that_takes_nothing_for_a_time_costs_one_client_its_packet_and_no_other() {
    let mut rig = Rig::new(1, HubConfig::default());
    let clients = [(); 4].map(|()| rig.client());
    assert_eq!(rig.exchange(clients[0], &[read(0, 0)]), [Code::Done]);
    rig.boards[0].ignores = true;
    for (client, address) in clients.into_iter().zip(1..) {
        rig.ask(client, &[read(0, address)]);
    }
    rig.wait(80 * MILLI);
    rig.boards[0].ignores = false;
    rig.wait(80 * MILLI);
    let codes: Vec<Code> =
        clients.into_iter().zip(1..).flat_map(|(it, word)| rig.codes(it, &[read(0, word)])).collect();
    assert_eq!(codes, [Code::NoControlReply, Code::Done, Code::Done, Code::Done]);
}
