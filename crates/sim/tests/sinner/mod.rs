//! A server with one vice, for the tests that every bound is held: whoever says a byte is owed so many kibibytes.
#![allow(dead_code, reason = "each test file uses a part")]

use hodo_machine::{Ends, Input, Instant, Machine, Outbox, Output, Peer};
use std::collections::{BTreeMap, VecDeque};

/// A misuse of the bytes that come, or of the other peers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Vice {
    None,
    /// A kibibyte is kept for each byte.
    Hoards,
    /// A mebibyte is kept for whoever comes.
    Welcomes,
    /// Each byte is answered with ten messages of one byte.
    Chatters,
    /// All that came so far is copied with every byte, which is answered with one.
    Copies,
    /// Strangers are answered with more than they sent.
    Amplifies,
    /// Strangers become peers at once, who are owed as much as any.
    Trusts,
    /// The peer that is owed the most is served first, and the others wait for it.
    Starves,
}

/// The server.
pub struct Sinner {
    vice: Vice,
    kept: Vec<Vec<u8>>,
    all: Vec<u8>,
    /// The kibibytes of each reply that a peer is owed.
    owed: BTreeMap<Peer, VecDeque<u8>>,
    /// The peers in turn.
    turns: VecDeque<Peer>,
    blocked: Vec<Peer>,
}

impl Sinner {
    pub fn new(vice: Vice) -> Self {
        let (kept, all, owed, turns, blocked) = Default::default();
        Sinner { vice, kept, all, owed, turns, blocked }
    }

    /// Returns the peer that is served next.
    fn next(&mut self) -> Option<Peer> {
        let is_free = |peer: &Peer| !self.blocked.contains(peer) && !self.owed[peer].is_empty();
        if self.vice == Vice::Starves {
            let greedy = self.turns.iter().max_by_key(|peer| self.owed[peer].len())?;
            return Some(*greedy).filter(is_free);
        }
        let place = self.turns.iter().position(is_free)?;
        self.turns.rotate_left(place + 1);
        self.turns.back().copied()
    }
}

impl Machine for Sinner {
    type Command = ();
    type Event = ();

    fn handle(&mut self, _now: Instant, input: Input<'_, ()>) {
        match input {
            Input::Opened(peer, _) => {
                self.owed.insert(peer, VecDeque::new());
                self.turns.push_back(peer);
                self.kept.extend((self.vice == Vice::Welcomes).then(|| vec![0; 1 << 20]));
            }
            Input::Received(peer, bytes) => {
                match self.vice {
                    Vice::Hoards => self.kept.push(vec![0; bytes.len() << 10]),
                    Vice::Copies => bytes.iter().for_each(|byte| self.all = [&self.all[..], &[*byte; 16]].concat()),
                    _ => {}
                }
                let times = if self.vice == Vice::Chatters { 10 } else { 1 };
                let owed = self.owed.get_mut(&peer).expect("it was opened");
                (0..times).for_each(|_| owed.extend(bytes));
            }
            Input::Closed(peer, _) => {
                self.owed.remove(&peer);
                self.turns.retain(|other| *other != peer);
                self.blocked.retain(|other| *other != peer);
            }
            Input::Blocked(peer) => self.blocked.push(peer),
            Input::Drained(peer) => self.blocked.retain(|other| *other != peer),
            _ => {}
        }
    }

    fn poll(&mut self, _now: Instant, out: &mut Outbox) -> Output<()> {
        let Some(peer) = self.next() else { return Output::Idle(None) };
        let kibibytes = self.owed.get_mut(&peer).and_then(VecDeque::pop_front).expect("it is owed something");
        let is_terse = matches!(self.vice, Vice::Chatters | Vice::Copies);
        let length = if is_terse { 1 } else { usize::from(kibibytes) << 10 };
        out.copy(&vec![b'x'; length]);
        Output::Send(peer)
    }

    fn admits(&mut self, _now: Instant, _ends: &Ends, bytes: &[u8], out: &mut Outbox) -> bool {
        if self.vice == Vice::Amplifies {
            out.copy(bytes);
            out.copy(b"and more");
        }
        self.vice == Vice::Trusts
    }
}
