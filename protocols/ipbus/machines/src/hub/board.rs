use super::packets::Packets;
use super::statistics::BoardCounters;
use crate::Error;
use crate::single::Single;
use crate::window::{Answer, Cause, Heard, RoundTrip, Step, Window, WindowConfig, WindowCounters};
use crate::wire::Version;
use crate::wire::hub::Code;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::mem::swap;
use core::net::SocketAddrV4;
use core::time::Duration;
use hodo_machine::{Instant, Slab};

/// One device that clients ask for, in one version of the protocol.
#[derive(Debug)]
pub(super) struct Board {
    pub(super) target: SocketAddrV4,
    pub(super) version: Version,
    pub(super) link: Link,
    pub(super) socket: Socket,
    pub(super) health: Health,
    /// The lanes that hold packets for it, in turn.
    pub(super) turns: VecDeque<u32>,
    /// Packets in them.
    pub(super) queued: u32,
    /// Clients whose next chunk waits for room in them, in turn.
    pub(super) waiting: VecDeque<u32>,
    /// When a client asked for it last.
    pub(super) used: Instant,
    /// Whether it is in the queue of those that have something to do.
    pub(super) at_work: bool,
    /// Whether it has been tried once more, though it gave packets up.
    pub(super) retried: bool,
    /// The restarts that the application was told of.
    pub(super) restarts: u64,
    pub(super) counters: BoardCounters,
}

/// Whether its peer is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Socket {
    Closed,
    Opening,
    Open,
    /// The driver holds too much for it.
    Blocked,
}

/// The health of a board, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Health {
    /// It was not heard of yet.
    Unknown,
    Alive,
    /// It does not answer: what is asked of it waits for a probe for a short time, and is refused.
    Dead(Death),
}

/// The state of a board that does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Death {
    /// The answer to whatever is asked of it.
    pub(super) code: Code,
    /// When a client had it asked last whether it is there.
    pub(super) asked: Instant,
    /// When it was asked last, on a client's behalf or not.
    pub(super) probed: Instant,
    /// When it is asked next.
    pub(super) probe_at: Instant,
    /// The time from a probe to the next, where nobody asks for the board.
    pub(super) wait: Duration,
}

/// The packets in flight to a board.
#[derive(Debug)]
pub(super) enum Link {
    Current(Box<Window>),
    Legacy(Box<Single>),
}

impl Board {
    pub(super) fn new(target: SocketAddrV4, version: Version, config: WindowConfig, now: Instant) -> Self {
        Board {
            target,
            version,
            link: match version {
                Version::V2_0 => Link::Current(Box::new(Window::new(config))),
                Version::V1_3 => Link::Legacy(Box::new(Single::new(config))),
            },
            socket: Socket::Closed,
            health: Health::Unknown,
            turns: VecDeque::new(),
            queued: 0,
            waiting: VecDeque::new(),
            used: now,
            at_work: false,
            retried: false,
            restarts: 0,
            counters: BoardCounters::default(),
        }
    }

    /// Tells whether as many packets are queued as may be. An empty queue has room whatever the bound.
    pub(super) fn is_full(&self, queued_max: usize) -> bool {
        self.queued as usize >= queued_max.max(1)
    }

    /// Tells whether a client waits for room in the queue, and there is some.
    pub(super) fn admits(&self, queued_max: usize) -> bool {
        !self.waiting.is_empty() && !self.is_full(queued_max)
    }

    /// Tells whether nothing is queued or in flight, and nobody waits.
    pub(super) fn is_idle(&self) -> bool {
        self.turns.is_empty() && self.link.len() == 0 && self.waiting.is_empty()
    }

    pub(super) fn counters(&self) -> BoardCounters {
        BoardCounters { link: self.link.counters(), ..self.counters }
    }

    /// Takes in that a client asks for the board: one that is dead is probed, at most once in `gap`, and an answer is
    /// waited for over `answer`.
    ///
    /// # Errors
    /// The code for the client, if the board was probed lately and did not answer.
    pub(super) fn asked(&mut self, now: Instant, gap: Duration, answer: Duration) -> Result<(), Code> {
        self.used = now;
        let is_down = self.link.is_down();
        let Health::Dead(death) = &mut self.health else { return Ok(()) };
        if now >= death.asked + gap {
            (death.asked, death.probe_at) = (now, now);
        }
        let waits = !is_down || death.probe_at <= now || now < death.probed + answer;
        if waits { Ok(()) } else { Err(death.code) }
    }

    /// Sends one probe to a board that is dead.
    pub(super) fn probe(&mut self, now: Instant, last: Duration) {
        if self.probed(now, last) {
            self.link.probe(now);
        }
    }

    /// Sets when a board that is dead is probed next; returns whether it is dead.
    pub(super) fn probed(&mut self, now: Instant, last: Duration) -> bool {
        let Health::Dead(death) = &mut self.health else { return false };
        (death.probed, death.probe_at) = (now, now + death.wait);
        death.wait = (death.wait * 2).min(last);
        true
    }

    /// Returns when the board is to be probed, if it is dead and not being opened.
    pub(super) fn probe_at(&self) -> Option<Instant> {
        match self.health {
            Health::Dead(death) if self.link.is_down() && self.socket != Socket::Opening => Some(death.probe_at),
            _ => None,
        }
    }

    /// Returns when what waits for the answer to a probe is to be refused, and with which code.
    pub(super) fn refuse_at(&self, answer: Duration) -> Option<(Instant, Code)> {
        match self.health {
            Health::Dead(death) if self.probe_at().is_some() && !self.turns.is_empty() => {
                Some((death.probed + answer, death.code))
            }
            _ => None,
        }
    }
}

impl Link {
    pub(super) fn open(&mut self, now: Instant) {
        match self {
            Link::Current(window) => window.open(now),
            Link::Legacy(single) => single.open(now),
        }
    }

    /// Sends one probe to a device that is down.
    pub(super) fn probe(&mut self, now: Instant) {
        match self {
            Link::Current(window) => window.probe(),
            Link::Legacy(single) => single.probe(now),
        }
    }

    pub(super) fn give_up(&mut self) {
        match self {
            Link::Current(window) => window.give_up(),
            Link::Legacy(single) => single.give_up(),
        }
    }

    pub(super) fn is_down(&self) -> bool {
        match self {
            Link::Current(window) => window.is_down(),
            Link::Legacy(single) => single.is_down(),
        }
    }

    pub(super) fn room(&self) -> usize {
        match self {
            Link::Current(window) => window.room(),
            Link::Legacy(single) => single.room(),
        }
    }

    /// Tells whether the board has buffers for a packet of this many bytes. In version 1.3 it does not tell.
    pub(super) fn takes(&self, bytes: usize) -> bool {
        match self {
            Link::Current(window) => window.takes(bytes),
            Link::Legacy(_) => true,
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Link::Current(window) => window.len(),
            Link::Legacy(single) => single.len(),
        }
    }

    pub(super) fn round_trip(&self) -> &RoundTrip {
        match self {
            Link::Current(window) => window.round_trip(),
            Link::Legacy(single) => single.round_trip(),
        }
    }

    pub(super) fn counters(&self) -> WindowCounters {
        match self {
            Link::Current(window) => window.counters(),
            Link::Legacy(single) => single.counters(),
        }
    }

    /// Puts a packet into flight; its buffer goes with it, and another comes back in its place.
    pub(super) fn push(&mut self, now: Instant, number: u32, packets: &mut Packets) {
        let chain = packets[number].chain;
        let fill = |buffer: &mut Vec<u8>| swap(buffer, &mut packets[number].bytes);
        match self {
            Link::Current(window) => {
                window.push_of(now, u64::from(number), chain, fill);
            }
            Link::Legacy(single) => single.push(now, u64::from(number), fill),
        }
    }

    pub(super) fn received(&mut self, now: Instant, bytes: &[u8], take: impl FnOnce(Answer<'_>) -> bool) -> Heard {
        match self {
            Link::Current(window) => window.received(now, bytes, take),
            Link::Legacy(single) => single.received(now, bytes, take),
        }
    }

    pub(super) fn poll(&mut self, now: Instant) -> Step<'_> {
        match self {
            Link::Current(window) => window.poll(now),
            Link::Legacy(single) => single.poll(now),
        }
    }
}

/// Returns the code for a client whose packet was given up.
pub(super) fn code_of(cause: Cause) -> Code {
    match cause {
        Cause::Silent => Code::NoStatusReply,
        Cause::Ignored => Code::NoControlReply,
        Cause::ReplyLost | Cause::Restarted | Cause::Contended => Code::NoResendReply,
        Cause::Malformed(Error::NotIpbus { first }) if Version::of(&first.to_be_bytes()).is_some() => {
            Code::WrongVersion
        }
        Cause::Malformed(_) => Code::MalformedStatus,
    }
}

/// All boards. Each has a place, whose number is that of its peer.
#[derive(Debug, Default)]
pub(super) struct Boards {
    boards: Slab<Option<Board>>,
    by_target: BTreeMap<(SocketAddrV4, Version), u32>,
}

impl Boards {
    #[inline]
    pub(super) fn at(&mut self, number: u32) -> Option<&mut Board> {
        self.boards.at(number)?.as_mut()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (u32, &Board)> {
        self.boards.iter().filter_map(|(number, board)| Some((number, board.as_ref()?)))
    }

    pub(super) fn len(&self) -> usize {
        self.boards.len()
    }

    /// Returns the number of this board, if it is remembered. It is looked for at `likely` first.
    #[inline]
    pub(super) fn find(&self, target: SocketAddrV4, version: Version, likely: u32) -> Option<u32> {
        let there = self.boards.get(likely).and_then(Option::as_ref);
        if there.is_some_and(|board| board.target == target && board.version == version) {
            return Some(likely);
        }
        self.by_target.get(&(target, version)).copied()
    }

    pub(super) fn insert(&mut self, board: Board) -> u32 {
        let target = (board.target, board.version);
        let number = self.boards.insert(Some(board));
        self.by_target.insert(target, number);
        number
    }

    pub(super) fn remove(&mut self, number: u32) -> Option<Board> {
        let board = self.boards.at(number)?.take()?;
        self.boards.release(number);
        self.by_target.remove(&(board.target, board.version));
        Some(board)
    }

    /// Returns the board that was not used for longest, of those that have nothing to do.
    pub(super) fn idlest(&self) -> Option<u32> {
        self.all().filter(|(_, board)| board.is_idle()).min_by_key(|(_, board)| board.used).map(|(number, _)| number)
    }
}
