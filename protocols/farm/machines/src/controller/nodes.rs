use super::Policy;
use crate::Error;
use crate::lines::{Line, Lines};
use crate::sums::Content;
use crate::wire::{FLAG_NO_TOKENS, Hello, Kind, Token};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use bytes::Bytes;
use hodo_machine::{Instant, Peer};

/// An event in hand.
#[derive(Debug)]
pub(crate) struct PendingEvent {
    pub(crate) run: u32,
    pub(crate) event: u64,
    pub(crate) kind: Kind,
    /// Nodes that failed or died over it.
    pub(crate) deaths: u8,
    /// Whether its stages are.
    pub(crate) stamped: bool,
    pub(crate) payload: Bytes,
    pub(crate) content: Content,
    pub(crate) origin: Origin,
    pub(crate) came: Instant,
}

/// The giver of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// This process.
    Here,
    /// This peer, during its connection with this serial number.
    Peer(Peer, u64),
}

/// A connected peer, as the controller knows it.
#[derive(Debug)]
pub(crate) enum Member {
    /// Not known yet.
    Greeting { host: u64 },
    /// It gives events.
    Giver(super::sources::Giver),
    /// It decides.
    Node(NodeLine),
}

/// A node.
#[derive(Debug)]
pub(crate) struct NodeLine {
    pub(crate) hello: Hello,
    /// Events that may be given now.
    pub(crate) credits: u32,
    /// Events that are with it, in the order in which they were given.
    pub(crate) given: VecDeque<Dispatched>,
    /// A suspect that it is to get alone, once it has nothing else.
    pub(crate) reserved: Option<PendingEvent>,
    /// When it last answered.
    pub(crate) answered_at: Instant,
    /// Whether it has a suspect now.
    pub(crate) alone: bool,
    /// Tokens that it could not use while it was blocked or reserved.
    parked: u32,
    /// The run that it was last told.
    pub(crate) run: u32,
    pub(crate) draining: bool,
    pub(crate) share: NodeShare,
    /// Events that it has answered, and those that others had when it came.
    pub(crate) served: u64,
    /// Events by weight, for [`Policy::Weighted`].
    pace: u64,
}

/// An event that is with a node.
#[derive(Debug)]
pub(crate) struct Dispatched {
    pub(crate) held: PendingEvent,
    pub(crate) at: Instant,
}

/// The share of a node: the work that it has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NodeShare {
    /// The number of the node, by its greeting.
    pub number: u32,
    /// Events that it was given.
    pub given: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Events that it has answered; of one without tokens, that it has reported.
    pub answered: u64,
    /// Accepted events among the answered ones.
    pub accepted: u64,
    /// Failed events among the answered ones.
    pub failed: u64,
    /// Events that are with it now.
    pub in_flight: u32,
    /// Nanoseconds that its events waited at it before their decision.
    pub waited_ns: u64,
    /// Nanoseconds that it spent deciding.
    pub decided_ns: u64,
}

impl NodeShare {
    /// Adds the share of another connection of the node.
    #[must_use]
    pub const fn plus(&self, other: &NodeShare) -> NodeShare {
        NodeShare {
            number: self.number,
            given: self.given + other.given,
            bytes: self.bytes + other.bytes,
            answered: self.answered + other.answered,
            accepted: self.accepted + other.accepted,
            failed: self.failed + other.failed,
            in_flight: self.in_flight + other.in_flight,
            waited_ns: self.waited_ns + other.waited_ns,
            decided_ns: self.decided_ns + other.decided_ns,
        }
    }
}

impl NodeLine {
    pub(crate) fn new(hello: Hello, credits: u32, now: Instant) -> Self {
        NodeLine {
            hello,
            credits,
            given: VecDeque::new(),
            reserved: None,
            answered_at: now,
            alone: false,
            parked: 0,
            run: 0,
            draining: false,
            share: NodeShare { number: hello.number, ..NodeShare::default() },
            served: 0,
            pace: 0,
        }
    }

    /// Tells whether the node sends tokens.
    #[inline]
    pub(crate) const fn answers(&self) -> bool {
        self.hello.flags & FLAG_NO_TOKENS == 0
    }

    /// Tells whether an event of this length is within the bound of the node's greeting.
    #[inline]
    pub(crate) const fn takes(&self, length: usize) -> bool {
        length <= self.hello.event_max as usize
    }

    /// Tells whether the node will ever take an event again: a credit comes with the answer to an event alone.
    fn is_alive(&self) -> bool {
        self.credits > 0 || !self.given.is_empty() || !self.answers()
    }

    /// Returns the place of the event that a token answers.
    #[inline]
    pub(crate) fn position(&self, token: &Token) -> Result<usize, Error> {
        let mut given = self.given.iter();
        let index = given.position(|given| given.held.event == token.event && given.held.run == token.run);
        index.ok_or(Error::Unasked { event: token.event })
    }

    /// Takes back the event that a token answers, and its credits.
    #[inline]
    pub(crate) fn answer(&mut self, token: &Token, credits_max: u32) -> Result<Dispatched, Error> {
        let index = self.position(token)?;
        let given = self.given.remove(index).ok_or(Error::Unasked { event: token.event })?;
        let room = credits_max.saturating_sub(self.given.len() as u32 + self.credits);
        self.credits += u32::from(token.credits).min(room);
        self.served += 1;
        let share = &mut self.share;
        share.answered += 1;
        share.waited_ns += u64::from(token.waited_us) * 1000;
        share.decided_ns += u64::from(token.decided_us) * 1000;
        Ok(given)
    }
}

/// The nodes and their tokens, from which the policy picks.
#[derive(Debug)]
pub(crate) struct Queue {
    policy: Policy,
    /// One entry for each credit, in the order in which the tokens came.
    tokens: VecDeque<Peer>,
    /// The nodes, in the order in which they came.
    ring: Vec<Peer>,
    next: usize,
    /// The largest event that one of the nodes takes.
    takes_max: Option<u32>,
    /// Tokens at the front whose nodes do not take the event that is next.
    passed_over: usize,
}

impl Queue {
    pub(crate) fn new(policy: Policy) -> Self {
        Queue { policy, tokens: VecDeque::new(), ring: Vec::new(), next: 0, takes_max: None, passed_over: 0 }
    }

    /// Returns the nodes, in the order in which they came.
    pub(crate) fn nodes(&self) -> &[Peer] {
        &self.ring
    }

    /// Adds a node with its credits. A node that comes later begins where the others are, not at nothing.
    pub(crate) fn join(&mut self, lines: &mut Lines<Member>, peer: Peer) {
        let paces = self.ring.iter().filter_map(|other| Some(node(lines, *other)?.1.pace));
        let pace = paces.collect::<Vec<_>>().into_iter().min().unwrap_or(0);
        self.ring.push(peer);
        if let Some((_, node)) = node(lines, peer) {
            node.pace = pace;
            self.takes_max = self.takes_max.max(Some(node.hello.event_max));
            self.tokens_came(peer, node.credits);
        }
    }

    pub(crate) fn leave(&mut self, lines: &mut Lines<Member>, peer: Peer) {
        if let Some(index) = self.ring.iter().position(|other| *other == peer) {
            self.ring.remove(index);
            if self.next > index {
                self.next -= 1;
            }
        }
        self.tokens.retain(|token| *token != peer);
        self.passed_over = 0;
        let bounds = self.ring.iter().filter_map(|other| Some(node(lines, *other)?.1.hello.event_max));
        self.takes_max = bounds.max();
    }

    /// Returns the largest event that one of the nodes takes, if none of them takes one of this length.
    #[inline]
    pub(crate) fn too_small_for(&self, length: usize) -> Option<u32> {
        self.takes_max.filter(|max| length > *max as usize)
    }

    /// Tokens have come from a node.
    #[inline]
    pub(crate) fn tokens_came(&mut self, peer: Peer, count: u32) {
        if self.policy == Policy::TokenFifo {
            for _ in 0..count {
                self.tokens.push_back(peer);
            }
        }
    }

    /// Returns its parked tokens to a node that can take events again.
    pub(crate) fn unpark(&mut self, lines: &mut Lines<Member>, peer: Peer) {
        if let Some((_, node)) = node(lines, peer) {
            let parked = core::mem::take(&mut node.parked);
            self.tokens_came(peer, parked);
        }
    }

    /// Tells whether some node has a token.
    #[inline]
    pub(crate) fn has_token(&self, lines: &mut Lines<Member>) -> bool {
        match self.policy {
            Policy::TokenFifo => !self.tokens.is_empty(),
            _ => self.ring.iter().any(|peer| node(lines, *peer).is_some_and(|(_, node)| node.credits > 0)),
        }
    }

    /// Takes a credit of a node outside its turn.
    pub(crate) fn spend(&mut self, lines: &mut Lines<Member>, peer: Peer) {
        let Some((_, node)) = node(lines, peer) else { return };
        node.credits = node.credits.saturating_sub(1);
        if node.parked > 0 {
            node.parked -= 1;
        } else if let Some(index) = self.tokens.iter().position(|token| *token == peer) {
            self.tokens.remove(index);
            self.passed_over = 0;
        }
    }

    /// Returns the node that has been without credits and events for longest, and so for good.
    pub(crate) fn of_no_use(&self, lines: &mut Lines<Member>) -> Option<Peer> {
        let mut useless: Option<(Instant, Peer)> = None;
        for peer in &self.ring {
            let Some((_, node)) = node(lines, *peer) else { continue };
            if !node.is_alive() && useless.is_none_or(|(since, _)| node.answered_at < since) {
                useless = Some((node.answered_at, *peer));
            }
        }
        useless.map(|(_, peer)| peer)
    }

    /// Picks the node that gets the next event, of this length, by the policy, and takes a credit from it.
    #[inline]
    pub(crate) fn pick(&mut self, lines: &mut Lines<Member>, length: usize) -> Option<Peer> {
        let peer = match self.policy {
            Policy::TokenFifo => self.first_token(lines, length),
            Policy::RoundRobin => self.next_in_turn(lines, length),
            Policy::LeastOutstanding => self.least(lines, length, |node| node.given.len() as u64),
            Policy::Weighted => self.least(lines, length, |node| node.pace),
        }?;
        let (_, node) = node(lines, peer)?;
        node.credits -= 1;
        node.pace += (1 << 20) / u64::from(node.hello.weight.clamp(1, 1 << 20));
        Some(peer)
    }

    /// Takes the first token whose node takes an event of this length; those before it keep their places.
    fn first_token(&mut self, lines: &mut Lines<Member>, length: usize) -> Option<Peer> {
        while let Some(peer) = self.tokens.get(self.passed_over).copied() {
            match node(lines, peer) {
                Some((blocked, node)) if node.credits > 0 && is_free(blocked, node) => {
                    if node.takes(length) {
                        self.tokens.remove(self.passed_over);
                        self.passed_over = 0;
                        return Some(peer);
                    }
                    self.passed_over += 1;
                    continue;
                }
                Some((_, node)) if node.credits > 0 => node.parked += 1,
                _ => {}
            }
            self.tokens.remove(self.passed_over);
        }
        None
    }

    /// Picks the next node in turn, whether it is ready or not.
    fn next_in_turn(&mut self, lines: &mut Lines<Member>, length: usize) -> Option<Peer> {
        for _ in 0..self.ring.len() {
            if self.next >= self.ring.len() {
                self.next = 0;
            }
            let peer = *self.ring.get(self.next)?;
            let (blocked, node) = node(lines, peer)?;
            if node.reserved.is_some() || node.alone || node.draining || !node.takes(length) || !node.is_alive() {
                // One that is set apart, too small, or without credits for good does not hold up the others.
                self.next += 1;
                continue;
            }
            return (node.credits > 0 && !blocked).then(|| {
                self.next += 1;
                peer
            });
        }
        None
    }

    /// Picks the node with the least measure; of several, the one behind the last that was served.
    fn least(&mut self, lines: &mut Lines<Member>, length: usize, measure: impl Fn(&NodeLine) -> u64) -> Option<Peer> {
        let count = self.ring.len();
        let mut best: Option<(u64, usize)> = None;
        for step in 0..count {
            let index = (self.next + step) % count;
            let Some((blocked, node)) = node(lines, self.ring[index]) else { continue };
            if node.credits == 0 || !is_free(blocked, node) || !node.takes(length) {
                continue;
            }
            let measure = measure(node);
            if best.is_none_or(|(least, _)| measure < least) {
                best = Some((measure, index));
            }
        }
        let (_, index) = best?;
        self.next = index + 1;
        Some(self.ring[index])
    }

    /// Picks a node to be kept for a suspect of this length: the one with the least to do; at most half of the nodes at a
    /// time.
    pub(crate) fn to_reserve(&self, lines: &mut Lines<Member>, length: usize) -> Option<Peer> {
        let mut best: Option<(usize, Peer)> = None;
        let mut taken = 0;
        for peer in &self.ring {
            let Some((_, node)) = node(lines, *peer) else { continue };
            if node.alone || node.reserved.is_some() {
                taken += 1;
            } else if !node.draining
                && node.is_alive()
                && node.takes(length)
                && best.is_none_or(|(least, _)| node.given.len() < least)
            {
                best = Some((node.given.len(), *peer));
            }
        }
        (taken < self.ring.len().div_ceil(2)).then_some(best?.1)
    }
}

#[inline]
fn is_free(blocked: bool, node: &NodeLine) -> bool {
    !blocked && !node.draining && !node.alone && node.reserved.is_none()
}

/// Returns a peer that is a node, and whether it is blocked.
#[inline]
pub(crate) fn node(lines: &mut Lines<Member>, peer: Peer) -> Option<(bool, &mut NodeLine)> {
    match lines.at(peer)? {
        Line { state: Member::Node(node), blocked, .. } => Some((*blocked, node)),
        _ => None,
    }
}
