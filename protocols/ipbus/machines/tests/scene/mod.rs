//! Clients, hubs and boards on the simulated network.
#![allow(dead_code, reason = "each test file uses a part")]

use crate::rack::{Board, Deed, Wish, chunk_of, codes_of, target};
use hodo_ipbus as ipbus;
use hodo_ipbus::Error as Failure;
use hodo_ipbus::hub::{AllowList, Hub, HubConfig, HubEvent};
use hodo_ipbus::wire::chunk::Chunks;
use hodo_ipbus::wire::hub::Code;
use hodo_ipbus::wire::{Order, Version};
use hodo_machine::{Address, Driver, Input, Instant, Machine, Outbox, Output, Peer, Wait};
use hodo_sim::cost::Allowance;
use hodo_sim::{Congestion, Network, Random, Sim, Transport};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

/// Everything has been answered by then, however bad the network is.
const PATIENCE: Duration = Duration::from_secs(120);
/// A reboot takes longer than a packet lives.
const REBOOT: Duration = Duration::from_millis(2);

/// A machine of the network.
enum Role {
    Hub(Box<Hub>, u32),
    Client(Box<Client>),
    Direct(Box<Direct>),
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
    hub: u32,
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
    /// Packets of a chunk at most.
    packets: u64,
    /// Whether it goes away when so many chunks are left, and comes again.
    leaves_at: Option<u32>,
    to_close: bool,
    blocked: bool,
    /// The end of each write.
    ends: BTreeMap<u32, Option<Code>>,
    reads: u64,
}

impl Client {
    fn new(number: u32, hub: u32, boards: u32, seed: u64) -> Self {
        let mut random = Random::for_purpose(seed, 1_000 + u64::from(number));
        let left = 10 + random.below(20) as u32;
        Client {
            number,
            hub,
            boards,
            peer: Peer(0),
            is_open: false,
            to_open: true,
            chunks: Chunks::new(1 << 20),
            left,
            words: 0,
            waiting: VecDeque::new(),
            depth: 1 + random.below(8) as usize,
            packets: 4,
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
            return Output::Open(self.peer, Address::Node(self.hub));
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
        let wishes: Vec<Wish> = (0..1 + self.random.below(self.packets)).map(|_| self.wish()).collect();
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

/// Writes one word after the other to a board, in numbered packets.
struct Direct {
    machine: ipbus::Client,
    left: u32,
    word: u32,
    is_waiting: bool,
    ends: BTreeMap<u32, Option<Code>>,
}

impl Direct {
    fn new(number: u32, board: u32, seed: u64) -> Self {
        let mut random = Random::for_purpose(seed, 2_000 + u64::from(number));
        let config = ipbus::ClientConfig::new(ipbus::Path::Udp { reliable: true }, Version::V2_0, Address::Node(board));
        let config = ipbus::ClientConfig { seed: Some(random.bits()), ..config };
        Direct {
            machine: ipbus::Client::new(config),
            left: 10 + random.below(30) as u32,
            word: (200 + number) << 24,
            is_waiting: false,
            ends: BTreeMap::new(),
        }
    }

    fn is_done(&self) -> bool {
        self.left == 0 && !self.is_waiting
    }

    fn handle(&mut self, now: Instant, input: Input<'_, ipbus::Command>) {
        self.machine.handle(now, input);
    }

    fn poll(&mut self, now: Instant, out: &mut Outbox) -> Output<HubEvent> {
        // The scene is not set at its first instant.
        let begin = Instant::ZERO + Duration::from_micros(1);
        if now < begin {
            return Output::Idle(Some(begin));
        }
        loop {
            if !self.is_waiting && self.left > 0 {
                (self.is_waiting, self.left, self.word) = (true, self.left - 1, self.word + 1);
                self.ends.insert(self.word, None);
                let write = ipbus::Command::Write { tag: u64::from(self.word), address: 0x1000, word: self.word };
                self.machine.handle(now, Input::Command(write));
                self.machine.handle(now, Input::Command(ipbus::Command::Flush));
            }
            match self.machine.poll(now, out) {
                Output::Event(ipbus::Event::Done { tag, .. }) => self.end(tag as u32, Code::Done),
                Output::Event(ipbus::Event::Failed { tag, error, .. }) => {
                    let told = matches!(
                        error,
                        Failure::Restarted | Failure::Contended | Failure::NoAnswer | Failure::Closed(_)
                    );
                    assert!(told, "{error}");
                    self.end(tag as u32, Code::NoResendReply);
                }
                Output::Event(_) => {}
                Output::Send(peer) => return Output::Send(peer),
                Output::Open(peer, address) => return Output::Open(peer, address),
                Output::Close(peer) => return Output::Close(peer),
                Output::Idle(deadline) => return Output::Idle(deadline),
            }
        }
    }

    fn end(&mut self, word: u32, code: Code) {
        self.is_waiting = false;
        let before = self.ends.insert(word, Some(code));
        assert_eq!(before, Some(None), "told once");
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
            Role::Direct(direct) => direct.handle(now, input.without_command().expect("a fate is a board's")),
            Role::Board(board) => board.handle(&input),
            Role::Hub(hub, _) => hub.handle(now, input.without_command().expect("a fate is a board's")),
        }
    }

    fn poll(&mut self, now: Instant, out: &mut Outbox) -> Output<HubEvent> {
        match self {
            Role::Client(client) => client.poll(out),
            Role::Direct(direct) => direct.poll(now, out),
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
pub struct Observed {
    pub writes: u64,
    pub done: u64,
    pub refused: u64,
    pub unknown: u64,
    pub reads: u64,
    pub restarts: u64,
    pub lost: u64,
}

pub struct Scene {
    sim: Sim<Role, Role>,
    hubs: u32,
    direct: u32,
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

/// The number of hosts of each kind, where chance does not choose it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cast {
    /// Boards; any number of them for 0.
    pub boards: u32,
    /// Hubs beside the first, each with clients of its own.
    pub more_hubs: u32,
    /// Clients that number packets for the first board themselves.
    pub direct: u32,
    /// Whether each client waits for one packet at a time.
    pub one_by_one: bool,
}

/// Creates a scene of this seed, with boards that are as they should be, or not.
pub fn scene(seed: u64, faults: bool, cast: Cast) -> Scene {
    let mut random = Random::new(seed);
    let (clients, boards) = (1 + random.below(4) as u32, 1 + random.below(4) as u32);
    let boards = if cast.boards > 0 { cast.boards } else { boards };
    let (hubs, direct) = (1 + cast.more_hubs, cast.direct);
    let clients = clients.max(hubs);
    let (first_direct, first_board) = (hubs + clients, hubs + clients + direct);
    let [out, back] = [(); 2].map(|()| network(&mut random, faults));
    let hub = |number: u32| {
        let config = HubConfig { seed: seed ^ u64::from(number) << 32, ..HubConfig::default() };
        Role::Hub(Box::new(Hub::new(config, AllowList::ALL)), first_board)
    };
    let client = |number: u32| {
        let mut client = Client::new(number, number % hubs, boards, seed);
        if cast.one_by_one {
            (client.depth, client.packets) = (1, 1);
        }
        Role::Client(Box::new(client))
    };
    let servers = (1..hubs)
        .map(hub)
        .chain((1..=clients).map(client))
        .chain((0..direct).map(|number| Role::Direct(Box::new(Direct::new(number, first_board, seed)))))
        .chain((0..boards).map(|board| Role::Board(Rebooting { board: Board::new(board), replies: VecDeque::new() })));
    let mut sim = Sim::new(Transport::Stream, (&out, &back), hub(0), servers.collect(), |_| None);
    for node in (0..hubs).chain(first_direct..first_board) {
        sim.set_opening(node, Transport::Datagram);
    }
    for node in 0..hubs {
        sim.set_listening(node, true);
        sim.set_allowance(node, Allowance::default());
    }
    (hubs..first_board).for_each(|node| sim.set_listening(node, false));
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
    Scene { sim, hubs, direct, clients, boards, fates: fates.into() }
}

impl Scene {
    fn node(&self, node: u32) -> &Role {
        if node == 0 { self.sim.machine() } else { self.sim.server(node) }
    }

    fn hubs(&self) -> impl Iterator<Item = &Hub> {
        (0..self.hubs).map(|node| match self.node(node) {
            Role::Hub(hub, _) => &**hub,
            _ => unreachable!("hubs are at the first nodes"),
        })
    }

    fn clients(&self) -> impl Iterator<Item = &Client> {
        (self.hubs..self.hubs + self.clients).map(|node| match self.node(node) {
            Role::Client(client) => &**client,
            _ => unreachable!("clients are behind the hubs"),
        })
    }

    fn direct(&self) -> impl Iterator<Item = &Direct> {
        let first = self.hubs + self.clients;
        (first..first + self.direct).map(|node| match self.node(node) {
            Role::Direct(direct) => &**direct,
            _ => unreachable!("direct clients are behind those of the hubs"),
        })
    }

    fn written(&self) -> impl Iterator<Item = &[u32]> {
        let first = self.hubs + self.clients + self.direct;
        (first..first + self.boards).map(|node| match self.node(node) {
            Role::Board(board) => &board.board.written[..],
            _ => unreachable!("boards are at the last nodes"),
        })
    }

    fn run_until(&mut self, until: Instant) {
        while self.sim.now() < until {
            let next = self.fates.front().map_or(until, |(at, ..)| (*at).min(until));
            // Nothing may be left to happen before then: time goes on all the same.
            let _ = self.sim.turn(Wait::Block, next, &mut |_| {});
            let held = self.hubs().map(|hub| hub.held().0).max();
            assert!(held <= Some(4 * 8 * 4 + 16 * 4), "clients wait for 8 chunks of 4 packets at most");
            while let Some(&(at, node, fate)) = self.fates.front()
                && at <= self.sim.now()
            {
                self.fates.pop_front();
                self.sim.command_server(node, fate);
            }
        }
    }

    pub fn run(mut self, seed: u64) -> Observed {
        let end = self.sim.now() + PATIENCE;
        while !(self.clients().all(Client::is_done) && self.direct().all(Direct::is_done)) {
            assert!(self.sim.now() < end, "seed {seed}: not everything was answered");
            self.run_until(self.sim.now() + Duration::from_millis(20));
        }
        self.run_until(self.sim.now() + Duration::from_secs(30));
        let mut seen = Observed { reads: self.clients().map(|client| client.reads).sum(), ..Observed::default() };
        for hub in self.hubs() {
            assert_eq!((hub.held().0, hub.clients().count(), hub.boards().count()), (0, 0, 0), "seed {seed}");
            let link = hub.counters().boards.link;
            seen.restarts += link.restarts;
            seen.lost += link.requests_lost + link.replies_lost;
        }
        let mut times = BTreeMap::new();
        for board in self.written() {
            let mut last = BTreeMap::new();
            for word in board {
                *times.entry(*word).or_insert(0) += 1;
                let before = last.insert(word >> 16, *word);
                assert!(before < Some(*word), "seed {seed}: {word:08X} came after {before:08X?}");
            }
        }
        let direct = self.direct().flat_map(|direct| &direct.ends);
        for (word, end) in self.clients().flat_map(|client| &client.ends).chain(direct) {
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
