//! Boards off the rules, each in one way or in several: the packets that go out for a caller's packet stay few, each ends in its
//! time, and what uHAL and the ControlHub work with works here.

use crate::rack::{Board, Wish};
use crate::rig::{read, write};
use hodo_ipbus::window::{Answer, Step, Window, WindowConfig};
use hodo_ipbus::wire::WORD;
use hodo_ipbus::wire::packet::{Kind, Packet};
use hodo_machine::Instant;
use hodo_sim::Random;
use hodo_sim::conformance::seeds;
use std::collections::BTreeMap;
use std::time::Duration;

/// Boards of a run.
const BOARDS: u64 = 10_000;
/// As a hub has.
const PATIENCE: Duration = Duration::from_millis(100);
/// One way through the network.
const WAY: u64 = 50_000;
/// Packets of a caller's.
const WISHES: u64 = 6;
/// Datagrams to a board for each packet of a caller's and each patience.
const DATAGRAMS: u64 = 4;
/// As many go to a board that tells its status, and whose answers are no replies to the packet, or whose next id is not what it takes:
/// packets or replies may be lost, and are asked for at ever longer intervals.
const DATAGRAMS_LOST: u64 = 40;
/// As many go to a board whose status tells any next id: it looks like one that other hosts fill, whose numbers are tried one after
/// the other.
const DATAGRAMS_ANY: u64 = 64;
/// Datagrams to a board that uHAL and the ControlHub work with, over a network that loses nothing.
const DATAGRAMS_SERVED: u64 = 4;
/// As many go to a board that is slow and answers twice: the copy of a status is taken for the answer to the next request for it, and
/// so the board for a fast one.
const DATAGRAMS_SLOW_TWICE: u64 = 12;
/// Datagrams at the opening: the status, replies from before it, and the status again.
const OPENING: u64 = 6;
/// The patiences within which a packet has its answer or its failure, while it is the oldest.
const PATIENCES: u64 = 5;

/// A way off the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Bytes stand behind each reply, or only behind those of an odd number of words.
    Behind {
        bytes: usize,
        odd: bool,
        noise: bool,
    },
    /// A reply is filled up to so many bytes.
    FilledUp(usize),
    /// An answer takes so many microseconds.
    Slow(u64),
    /// The status says so for ever.
    NextIs(u16),
    /// The status says any next id, another one each time.
    NextAny,
    /// Packets asked for again are cut to a part.
    AgainCut,
    AgainSilent,
    StatusSilent,
    StatusGarbage,
    StatusShort,
    /// Replies come twice.
    Twice,
    /// Bits of a word of each reply, which has this place, are others.
    Flipped {
        place: usize,
        bits: u32,
    },
    /// Replies are cut to so many bytes.
    Cut(usize),
    Garbage,
    Silent,
    /// It executes a packet whatever its number.
    AnyNumber,
}

use Way::*;

impl Way {
    fn of(random: &mut Random) -> Way {
        let place = random.below(4) as usize;
        match random.below(16) {
            0 => Behind { bytes: 1 + random.below(64) as usize, odd: random.chance(0.5), noise: random.chance(0.5) },
            1 => FilledUp(64),
            2 => Slow(random.below(15_000)),
            3 => NextIs(random.below(4) as u16),
            4 => AgainCut,
            5 => AgainSilent,
            6 => StatusSilent,
            7 => StatusGarbage,
            8 => StatusShort,
            9 => Twice,
            10 => Flipped { place, bits: 1 << random.below(32) },
            11 => Cut(random.below(24) as usize),
            12 => Garbage,
            13 => Silent,
            14 => NextAny,
            _ => AnyNumber,
        }
    }

    /// Tells whether uHAL and the ControlHub work with such a board.
    fn is_common(self) -> bool {
        matches!(self, Behind { .. } | FilledUp(_) | Slow(_) | Twice | AgainCut | AgainSilent | AnyNumber)
    }

    /// Changes what the board answers to a datagram, which it has done.
    fn bend(self, kind: Kind, reply: Option<Vec<u8>>, random: &mut Random) -> Option<Vec<u8>> {
        let mut reply = reply?;
        let noise = random.bits() as u8;
        match self {
            Behind { bytes, odd, noise: is_noise } if kind != Kind::Status && (!odd || reply.len() / WORD % 2 == 1) => {
                reply.resize(reply.len() + bytes, if is_noise { noise } else { 0 });
            }
            FilledUp(least) if kind != Kind::Status => reply.resize(reply.len().max(least), 0),
            AgainCut if kind == Kind::Resend => reply.truncate(reply.len() / 4),
            AgainSilent if kind == Kind::Resend => return None,
            StatusSilent if kind == Kind::Status => return None,
            StatusGarbage if kind == Kind::Status => {
                reply.iter_mut().skip(WORD).for_each(|byte| *byte = random.bits() as u8);
            }
            StatusShort if kind == Kind::Status => reply.truncate(20),
            NextIs(id) if kind == Kind::Status && reply.len() >= 16 => reply[13..15].copy_from_slice(&id.to_be_bytes()),
            NextAny if kind == Kind::Status && reply.len() >= 16 => {
                reply[13..15].copy_from_slice(&(1 + random.below(65_535) as u16).to_be_bytes());
            }
            Flipped { place, bits } => {
                for (byte, bits) in reply.iter_mut().skip(place * WORD).zip(bits.to_be_bytes()) {
                    *byte ^= bits;
                }
            }
            Cut(bytes) => reply.truncate(bytes),
            Garbage => reply.iter_mut().for_each(|byte| *byte = random.bits() as u8),
            Silent => return None,
            _ => {}
        }
        Some(reply)
    }
}

/// A window, and a board that is off the rules.
struct World {
    window: Window,
    board: Board,
    ways: Vec<Way>,
    random: Random,
    now: u64,
    under_way: BTreeMap<(u64, u64), (bool, Vec<u8>)>,
    sent: u64,
    /// Datagrams to the board.
    datagrams: u64,
    /// When the oldest packet became the oldest, and the longest time from there to its end.
    since: u64,
    longest: u64,
    answered: u64,
    failed: u64,
}

impl World {
    fn new(seed: u64) -> World {
        let mut random = Random::new(seed);
        let count = 1 + random.below(8) / 6;
        let ways = (0..count).map(|_| Way::of(&mut random)).collect();
        let config =
            WindowConfig { patience: PATIENCE, own_ids: random.chance(0.7).then_some(seed), ..WindowConfig::default() };
        let mut board = Board::new(0);
        if random.chance(0.5) {
            board.skip_to(1 + random.below(65_535) as u16);
        }
        let mut window = Window::new(config);
        window.open(Instant::ZERO);
        let under_way = BTreeMap::new();
        World {
            window,
            board,
            ways,
            random,
            now: 0,
            under_way,
            sent: 0,
            datagrams: 0,
            since: 0,
            longest: 0,
            answered: 0,
            failed: 0,
        }
    }

    fn put(&mut self, to_board: bool, after: u64, bytes: Vec<u8>) {
        self.sent += 1;
        self.under_way.insert((self.now + after, self.sent), (to_board, bytes));
    }

    /// Has the board answer a datagram.
    fn board(&mut self, bytes: &[u8]) {
        let asked = Packet::decode(bytes).expect("windows send packets");
        let asks_nothing = asked.requests().any(|it| it.is_ok_and(|it| it.header.words == 0));
        assert!(asked.header.kind != Kind::Control || !asks_nothing, "nobody asks for what no client wants");
        if self.ways.contains(&AnyNumber) && asked.header.kind == Kind::Control {
            self.board.skip_to(asked.header.id);
        }
        let mut reply = self.board.answer(bytes);
        for way in &self.ways {
            reply = way.bend(asked.header.kind, reply, &mut self.random);
        }
        let Some(reply) = reply else { return };
        let slow = self.ways.iter().map(|way| if let Slow(us) = way { us * 1000 } else { 0 }).sum::<u64>();
        if self.ways.contains(&Twice) {
            self.put(false, WAY + slow, reply.clone());
        }
        self.put(false, WAY + slow, reply);
    }

    fn ended(&mut self) {
        self.longest = self.longest.max(self.now - self.since);
        self.since = self.now;
    }

    /// Has the window do what it wants. Returns when it wants to be called again.
    fn poll(&mut self) -> Option<Instant> {
        loop {
            match self.window.poll(Instant::from_nanos(self.now)) {
                Step::Send(bytes) => {
                    let bytes = bytes.to_vec();
                    self.datagrams += 1;
                    self.put(true, WAY, bytes);
                }
                Step::Failed { .. } => {
                    self.failed += 1;
                    self.ended();
                }
                // As a hub does: it asks again once in each patience.
                Step::Down(_) => return Some(Instant::from_nanos(self.now) + PATIENCE),
                Step::Resumed => return Some(Instant::from_nanos(self.now)),
                Step::Idle(until) => return until,
            }
        }
    }

    fn received(&mut self, bytes: &[u8], wishes: &[Wish]) {
        let mut answers = Vec::new();
        let take = |answer: Answer<'_>| {
            answers.push((answer.key, answer.packet.len()));
            true
        };
        self.window.received(Instant::from_nanos(self.now), bytes, take);
        for (key, length) in answers {
            self.answered += 1;
            self.ended();
            let due = wishes[key as usize].reply().len();
            let is_common = self.ways.iter().all(|way| way.is_common());
            assert!(length <= due || !is_common, "{length} of {due} bytes: what is behind a reply is nobody's");
        }
    }

    /// Tells whether a packet, or its reply, may be lost for all that the board tells.
    fn may_be_lost(&self) -> bool {
        self.ways.iter().any(|way| matches!(way, Flipped { .. } | NextIs(_) | NextAny))
    }

    /// Tells whether the board has done a write twice.
    fn wrote_twice(&self) -> bool {
        let mut written = self.board.written.clone();
        written.sort_unstable();
        written.windows(2).any(|pair| pair[0] == pair[1])
    }

    /// Has a client ask so often, one packet after the other, and open the window again where it is down, as a hub does after a part of
    /// the patience. Returns the patiences that this took.
    fn ask_again(&mut self, wishes: &[Wish]) -> u64 {
        let patience = PATIENCE.as_nanos() as u64;
        let mut next = 0;
        while next < wishes.len() {
            let ended = self.answered + self.failed;
            let mut opened = self.now;
            while self.window.room() == 0 && self.now < opened + patience {
                if !self.step(wishes) && self.window.is_down() {
                    self.now += patience / 4;
                    self.window.open(Instant::from_nanos(self.now));
                }
            }
            if self.window.room() > 0 {
                self.window.push(Instant::from_nanos(self.now), next as u64, |packet| *packet = wishes[next].request());
            }
            opened = self.now;
            while self.answered + self.failed == ended && self.now < opened + PATIENCES * patience {
                if !self.step(wishes) {
                    break;
                }
            }
            next += 1;
        }
        1 + self.now / patience
    }

    /// Goes on to what happens next. Answers whether anything does.
    fn step(&mut self, wishes: &[Wish]) -> bool {
        let due = self.poll();
        if self.window.is_down() || !self.wait(due) {
            return false;
        }
        self.deliver(wishes);
        true
    }

    /// Lets time pass until something arrives, or until the window wants to be called. Answers whether either comes.
    fn wait(&mut self, due: Option<Instant>) -> bool {
        let arrives = self.under_way.first_key_value().map(|((at, _), _)| *at);
        let wakes = due.map(|due| due.nanos_since(Instant::ZERO).max(self.now));
        let next = arrives.into_iter().chain(wakes).min();
        self.now = self.now.max(next.unwrap_or_default());
        next.is_some()
    }

    /// Hands over what has arrived.
    fn deliver(&mut self, wishes: &[Wish]) {
        while let Some(entry) = self.under_way.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let (to_board, bytes) = entry.remove();
            if to_board { self.board(&bytes) } else { self.received(&bytes, wishes) }
        }
    }

    /// Runs until all packets have their ends. Returns the patiences that this took.
    fn run(&mut self, wishes: &[Wish]) -> u64 {
        let mut next = 0;
        let patience = PATIENCE.as_nanos() as u64;
        while self.answered + self.failed < wishes.len() as u64 {
            while next < wishes.len() && self.window.room() > 0 {
                self.window.push(Instant::from_nanos(self.now), next as u64, |packet| *packet = wishes[next].request());
                next += 1;
            }
            let mut due = self.poll();
            if self.window.is_down() {
                // Who asks for a board that is down is told so, and may come again.
                self.failed = (wishes.len() as u64 - self.answered).max(self.failed);
                due = None;
            }
            if !self.wait(due) || self.now > 2 * WISHES * PATIENCES * patience {
                break;
            }
            self.deliver(wishes);
        }
        1 + self.now / patience
    }
}

#[test]
fn the_packets_to_a_board_off_the_rules_are_few_and_each_ends() {
    let mut served = 0;
    for seed in seeds(BOARDS) {
        let mut world = World::new(seed);
        let wishes: Vec<Wish> =
            (0..WISHES).map(|n| if n % 3 == 2 { write(0, n as u32) } else { read(0, n as u32) }).collect();
        let patiences = world.run(&wishes);
        let ways = world.ways.clone();
        let (answered, failed) = (world.answered, world.failed);
        assert!(answered + failed >= WISHES, "{seed}: {answered} answered, {failed} failed: {ways:?}");
        let is_slow_twice = ways.contains(&Twice) && ways.iter().any(|way| matches!(way, Slow(_)));
        let most = match (world.may_be_lost(), is_slow_twice) {
            (true, _) if ways.contains(&NextAny) => DATAGRAMS_ANY,
            (true, _) => DATAGRAMS_LOST,
            (_, true) => DATAGRAMS_SLOW_TWICE,
            _ => DATAGRAMS,
        };
        assert!(
            world.datagrams <= OPENING + most * (WISHES + patiences),
            "{seed}: {} in {patiences} patiences: {ways:?}",
            world.datagrams
        );
        assert!(world.longest <= PATIENCES * PATIENCE.as_nanos() as u64, "{seed}: {} ns: {ways:?}", world.longest);
        if ways.iter().all(|way| way.is_common()) {
            assert_eq!((answered, failed), (WISHES, 0), "{seed}: {ways:?}");
            assert!(
                is_slow_twice || world.datagrams <= OPENING + DATAGRAMS_SERVED * (WISHES + patiences),
                "{seed}: {}: {ways:?}",
                world.datagrams
            );
            served += 1;
        }
    }
    assert!(served > seeds(BOARDS).count() as u64 / 4, "{served}");
}

#[test]
fn what_a_board_off_the_rules_writes_it_writes_once() {
    for seed in seeds(BOARDS) {
        let mut world = World::new(seed);
        let wishes: Vec<Wish> = (0..WISHES).map(|n| write(0, n as u32)).collect();
        world.run(&wishes);
        // One that executes a packet whatever its number does so with each copy.
        assert!(world.ways.contains(&AnyNumber) || !world.wrote_twice(), "{seed}: {:?}", world.ways);
    }
}

/// Chunks of a client that asks again at once.
const CHUNKS: u64 = 300;

#[test]
fn who_asks_again_at_once_makes_no_storm() {
    for seed in seeds(BOARDS / 20) {
        let mut world = World::new(seed);
        let wishes: Vec<Wish> = (0..CHUNKS).map(|n| read(0, n as u32)).collect();
        let patiences = world.ask_again(&wishes);
        let each = if world.may_be_lost() || world.ways.contains(&Twice) { DATAGRAMS_LOST } else { DATAGRAMS };
        let most = OPENING + each * (CHUNKS + patiences);
        assert!(world.datagrams <= most, "{seed}: {} in {patiences} patiences: {:?}", world.datagrams, world.ways);
    }
}

#[test]
fn a_status_that_tells_any_number_is_asked_for_ever_more_slowly() {
    for seed in seeds(BOARDS / 100) {
        let mut world = World::new(seed);
        world.ways = vec![NextAny];
        let wishes: Vec<Wish> = (0..CHUNKS).map(|n| write(0, n as u32)).collect();
        let patiences = world.ask_again(&wishes);
        assert!(world.datagrams <= 200 * patiences, "{seed}: {} in {patiences} patiences", world.datagrams);
        assert!(!world.wrote_twice(), "{seed}");
    }
}
