//! Clients, the hub and boards on the simulated network: nothing is done twice, whatever happens.
mod rack;

use hodo_ipbus::hub::{AllowList, Hub, HubConfig, HubEvent};
use hodo_ipbus::wire::chunk::Chunks;
use hodo_ipbus::wire::hub::Code;
use hodo_ipbus::wire::{Order, Version};
use hodo_machine::{Address, Driver, Input, Instant, Machine, Outbox, Output, Peer, Wait};
use hodo_sim::conformance::seeds;
use hodo_sim::{Congestion, Network, Random, Sim, Transport};
use rack::{Board, Deed, Wish, chunk_of, codes_of, target};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

/// Seeds of a run.
const SEEDS: u64 = 10_000;
/// Everything has been answered by then, however bad the network is.
const PATIENCE: Duration = Duration::from_secs(120);
/// A reboot takes longer than a packet lives.
const REBOOT: Duration = Duration::from_millis(2);

/// A machine of the network.
enum Role {
    Hub(Box<Hub>, u32),
    Client(Box<Client>),
    Board(Rebooting),
}

/// A turn of a board's life.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Die,
    Rise,
}

struct Rebooting {
    board: Board,
    replies: VecDeque<(Peer, Vec<u8>)>,
}

/// Sends random chunks, some at a time, and checks what comes back.
struct Client {
    number: u32,
    boards: u32,
    random: Random,
    peer: Peer,
    is_open: bool,
    to_open: bool,
    chunks: Chunks,
    /// Chunks still to be sent.
    left: u32,
    words: u32,
    /// Chunks that are waited for.
    waiting: VecDeque<Vec<Wish>>,
    depth: usize,
    /// Whether it goes away when so many chunks are left, and comes again.
    leaves_at: Option<u32>,
    to_close: bool,
    blocked: bool,
    /// The end of each write.
    ends: BTreeMap<u32, Option<Code>>,
    reads: u64,
}

impl Client {
    fn new(number: u32, boards: u32, seed: u64) -> Self {
        let mut random = Random::for_purpose(seed, 1_000 + u64::from(number));
        let left = 10 + random.below(20) as u32;
        Client {
            number,
            boards,
            peer: Peer(0),
            is_open: false,
            to_open: true,
            chunks: Chunks::new(1 << 20),
            left,
            words: 0,
            waiting: VecDeque::new(),
            depth: 1 + random.below(8) as usize,
            leaves_at: random.chance(0.3).then(|| random.below(u64::from(left)) as u32),
            to_close: false,
            blocked: false,
            ends: BTreeMap::new(),
            reads: 0,
            random,
        }
    }

    fn is_done(&self) -> bool {
        self.left == 0 && self.waiting.is_empty()
    }

    fn wish(&mut self) -> Wish {
        let board = self.random.below(u64::from(self.boards)) as u32;
        let order = Order::BOTH[self.random.below(2) as usize];
        let id = self.random.bits() as u16;
        // A version without ids can do nothing about a datagram that the network doubles.
        let legacy = self.random.chance(0.1);
        if legacy || self.random.chance(0.4) {
            let version = if legacy { Version::V1_3 } else { Version::V2_0 };
            let deed = Deed::Read(self.random.bits() as u32, self.random.below(255) as u16);
            return Wish { board, version, order, id, deed };
        }
        self.words += 1;
        // Connections have no order among them: what a client said last may come after what it says next.
        let word = self.number << 24 | self.peer.0 << 16 | self.words;
        self.ends.insert(word, None);
        Wish { board, version: Version::V2_0, order, id, deed: Deed::Write(word) }
    }

    fn answered(&mut self, chunk: &[u8]) {
        let wishes = self.waiting.pop_front().expect("a chunk was asked for");
        for (wish, code) in wishes.iter().zip(codes_of(&wishes, chunk)) {
            match wish.deed {
                Deed::Write(word) => {
                    let before = self.ends.insert(word, Some(code));
                    assert_eq!(before, Some(None), "answered once");
                }
                Deed::Read(..) => self.reads += u64::from(code == Code::Done),
            }
        }
    }

    /// Marks what was waited for as of unknown end.
    fn cut(&mut self) {
        self.waiting.clear();
        self.is_open = false;
        self.blocked = false;
        self.peer = Peer(self.peer.0 + 1);
        self.chunks = Chunks::new(1 << 20);
        self.to_open = self.left > 0;
    }

    fn poll(&mut self, out: &mut Outbox) -> Output<HubEvent> {
        if std::mem::take(&mut self.to_open) {
            return Output::Open(self.peer, Address::Node(0));
        }
        if self.is_open && self.is_done() || std::mem::take(&mut self.to_close) {
            let peer = self.peer;
            self.cut();
            return Output::Close(peer);
        }
        if !self.is_open || self.blocked || self.left == 0 || self.waiting.len() >= self.depth {
            return Output::Idle(None);
        }
        self.left -= 1;
        self.to_close = self.leaves_at == Some(self.left);
        let wishes: Vec<Wish> = (0..1 + self.random.below(4)).map(|_| self.wish()).collect();
        out.copy(&chunk_of(&wishes));
        self.waiting.push_back(wishes);
        Output::Send(self.peer)
    }

    fn handle(&mut self, input: &Input<'_, Fate>) {
        match input {
            Input::Opened(..) => self.is_open = true,
            Input::Received(_, bytes) => {
                let mut rest = *bytes;
                let mut chunks = std::mem::replace(&mut self.chunks, Chunks::new(0));
                while let Some(chunk) = chunks.next(&mut rest).expect("the hub sends chunks") {
                    self.answered(chunk);
                }
                self.chunks = chunks;
            }
            Input::Closed(..) => self.cut(),
            Input::Blocked(_) => self.blocked = true,
            Input::Drained(_) => self.blocked = false,
            Input::Landed(..) | Input::Command(_) | Input::Elapsed => {}
        }
    }
}

impl Rebooting {
    fn handle(&mut self, input: &Input<'_, Fate>) {
        match input {
            Input::Received(peer, datagram) => {
                let reply = self.board.answer(datagram);
                self.replies.extend(reply.map(|reply| (*peer, reply)));
            }
            Input::Command(Fate::Die) => self.board.dead = true,
            Input::Command(Fate::Rise) => {
                self.board.dead = false;
                self.board.reboot();
            }
            _ => {}
        }
    }
}

impl Machine for Role {
    type Command = Fate;
    type Event = HubEvent;

    fn handle(&mut self, now: Instant, input: Input<'_, Fate>) {
        match self {
            Role::Client(client) => client.handle(&input),
            Role::Board(board) => board.handle(&input),
            Role::Hub(hub, _) => hub.handle(now, input.without_command().expect("a fate is a board's")),
        }
    }

    fn poll(&mut self, now: Instant, out: &mut Outbox) -> Output<HubEvent> {
        match self {
            Role::Client(client) => client.poll(out),
            Role::Board(board) => match board.replies.pop_front() {
                Some((peer, reply)) => {
                    out.copy(&reply);
                    Output::Send(peer)
                }
                None => Output::Idle(None),
            },
            Role::Hub(hub, first_board) => match hub.poll(now, out) {
                Output::Open(peer, Address::Udp(SocketAddr::V4(socket))) => {
                    let board = u32::from(socket.ip().octets()[3]);
                    assert_eq!(socket, target(board));
                    Output::Open(peer, Address::Node(*first_board + board))
                }
                output => output,
            },
        }
    }
}

/// The events that a run has to show.
#[derive(Debug, Default)]
struct Observed {
    writes: u64,
    done: u64,
    refused: u64,
    unknown: u64,
    reads: u64,
    restarts: u64,
    lost: u64,
}

struct Scene {
    sim: Sim<Role, Role>,
    clients: u32,
    boards: u32,
    /// When which node has which fate.
    fates: VecDeque<(Instant, u32, Fate)>,
}

fn network(random: &mut Random, faults: bool) -> Network {
    let micros = |random: &mut Random, most: u64| Duration::from_micros(random.below(most + 1));
    let share = |random: &mut Random, most: f64| {
        if random.chance(0.5) { random.below(1000) as f64 / 1000.0 * most } else { 0.0 }
    };
    Network {
        delay: Duration::from_micros(1) + micros(random, 50),
        jitter: if random.chance(0.5) { micros(random, 100) } else { Duration::ZERO },
        loss: share(random, if faults { 0.3 } else { 0.1 }),
        duplicate: share(random, 0.3),
        reorder: share(random, 0.3),
        cuts: if faults && random.chance(0.2) { vec![Instant::ZERO + micros(random, 5_000)] } else { Vec::new() },
        seed: random.bits(),
        // With congestion control, a loss of a third keeps a stream silent for longer than its client waits.
        congestion: Congestion::None,
        ..Network::default()
    }
}

/// Creates a scene of this seed, with boards that are as they should be, or not.
fn scene(seed: u64, faults: bool) -> Scene {
    let mut random = Random::new(seed);
    let (clients, boards) = (1 + random.below(4) as u32, 1 + random.below(4) as u32);
    let first_board = 1 + clients;
    let [out, back] = [(); 2].map(|()| network(&mut random, faults));
    let hub = Role::Hub(Box::new(Hub::new(HubConfig::default(), AllowList::ALL)), first_board);
    let servers = (1..=clients)
        .map(|number| Role::Client(Box::new(Client::new(number, boards, seed))))
        .chain((0..boards).map(|board| Role::Board(Rebooting { board: Board::new(board), replies: VecDeque::new() })));
    let mut sim = Sim::new(Transport::Stream, (&out, &back), hub, servers.collect(), |_| None);
    sim.set_opening(0, Transport::Datagram);
    sim.set_listening(0, true);
    (1..=clients).for_each(|node| sim.set_listening(node, false));
    let mut fates = Vec::new();
    for node in first_board..first_board + boards {
        match if faults { random.below(10) } else { 9 } {
            // Nothing listens there, or nobody answers.
            0 => sim.set_listening(node, false),
            1 => fates.push((Instant::ZERO, node, Fate::Die)),
            2..=5 => {
                let mut at = Instant::ZERO;
                for _ in 0..1 + random.below(3) {
                    at = at + Duration::from_micros(random.below(20_000));
                    fates.push((at, node, Fate::Die));
                    at = at + REBOOT + if random.chance(0.3) { Duration::from_millis(200) } else { Duration::ZERO };
                    fates.push((at, node, Fate::Rise));
                }
            }
            _ => {}
        }
    }
    fates.sort_by_key(|(at, ..)| *at);
    Scene { sim, clients, boards, fates: fates.into() }
}

impl Scene {
    fn hub(&self) -> &Hub {
        match self.sim.machine() {
            Role::Hub(hub, _) => hub,
            _ => unreachable!("the hub is at node 0"),
        }
    }

    fn clients(&self) -> impl Iterator<Item = &Client> {
        (1..=self.clients).map(|node| match self.sim.server(node) {
            Role::Client(client) => &**client,
            _ => unreachable!("clients are at the first nodes"),
        })
    }

    fn written(&self) -> impl Iterator<Item = &[u32]> {
        (1 + self.clients..=self.clients + self.boards).map(|node| match self.sim.server(node) {
            Role::Board(board) => &board.board.written[..],
            _ => unreachable!("boards are at the last nodes"),
        })
    }

    fn run_until(&mut self, until: Instant) {
        while self.sim.now() < until {
            let next = self.fates.front().map_or(until, |(at, ..)| (*at).min(until));
            // Nothing may be left to happen before then: time goes on all the same.
            let _ = self.sim.turn(Wait::Block, next, &mut |_| {});
            assert!(self.hub().held().0 <= 4 * 8 * 4 + 16 * 4, "clients wait for 8 chunks of 4 packets at most");
            while let Some(&(at, node, fate)) = self.fates.front()
                && at <= self.sim.now()
            {
                self.fates.pop_front();
                self.sim.command_server(node, fate);
            }
        }
    }

    fn run(mut self, seed: u64) -> Observed {
        let end = self.sim.now() + PATIENCE;
        while !self.clients().all(Client::is_done) {
            assert!(self.sim.now() < end, "seed {seed}: not everything was answered");
            self.run_until(self.sim.now() + Duration::from_millis(20));
        }
        self.run_until(self.sim.now() + Duration::from_secs(30));
        let hub = self.hub();
        assert_eq!((hub.held().0, hub.clients().count(), hub.boards().count()), (0, 0, 0), "seed {seed}");
        let counters = hub.counters();
        let mut seen = Observed {
            restarts: counters.boards.link.restarts,
            lost: counters.boards.link.requests_lost + counters.boards.link.replies_lost,
            reads: self.clients().map(|client| client.reads).sum(),
            ..Observed::default()
        };
        let mut times = BTreeMap::new();
        for board in self.written() {
            let mut last = BTreeMap::new();
            for word in board {
                *times.entry(*word).or_insert(0) += 1;
                let before = last.insert(word >> 16, *word);
                assert!(before < Some(*word), "seed {seed}: {word:08X} came after {before:08X?}");
            }
        }
        for (word, end) in self.clients().flat_map(|client| &client.ends) {
            let times = times.get(word).copied().unwrap_or(0);
            seen.writes += 1;
            match end {
                Some(Code::Done) => {
                    assert_eq!(times, 1, "seed {seed}: {word:08X} was said to be done");
                    seen.done += 1;
                }
                Some(Code::NoControlReply | Code::NoStatusReply | Code::NoResendReply) => {
                    assert!(times <= 1, "seed {seed}: {word:08X} was done twice");
                    seen.refused += 1;
                }
                Some(other) => panic!("seed {seed}: {other}"),
                None => {
                    assert!(times <= 1, "seed {seed}: {word:08X} was done twice");
                    seen.unknown += 1;
                }
            }
        }
        seen
    }
}

#[test]
fn everything_is_done_once_or_said_to_have_failed() {
    let mut all = Observed::default();
    for seed in seeds(SEEDS) {
        let seen = scene(seed, true).run(seed);
        all.writes += seen.writes;
        all.done += seen.done;
        all.refused += seen.refused;
        all.unknown += seen.unknown;
        all.reads += seen.reads;
        all.restarts += seen.restarts;
        all.lost += seen.lost;
    }
    assert!(all.done > all.writes / 2 && all.reads > all.done / 4, "{all:?}");
    assert!(all.refused > SEEDS && all.unknown > SEEDS / 4 && all.restarts > SEEDS / 8 && all.lost > SEEDS, "{all:?}");
}

#[test]
fn nothing_fails_where_packets_are_lost_and_boards_are_well() {
    let mut done = 0;
    for seed in seeds(SEEDS / 2) {
        let seen = scene(seed, false).run(seed);
        assert_eq!((seen.refused, seen.restarts), (0, 0), "seed {seed}");
        done += seen.done;
    }
    // A client may happen to do nothing but reads.
    assert!(done > SEEDS, "{done}");
}
