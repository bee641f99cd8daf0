use super::nodes::{Member, Queue, node};
use crate::lines::Lines;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use hodo_machine::{Instant, Peer};

/// A node that is ahead gets the next event if nothing else has been ready for this long at the least: far less than a
/// decision that is worth a farm takes, so that nodes which are faster than others still get all that they can do.
const QUIET: Duration = Duration::from_micros(100);
/// The longest wait, however slow the lines are.
const QUIET_MAX: Duration = Duration::from_millis(20);
/// Times that the lines take for one event, for which it has to be quiet: shorter silences are those of a line that is slower
/// than the host, on which the next token is on its way.
const QUIET_EVENTS: u32 = 8;
/// The work of a node by which it may be ahead, so that shares are equal also where an event takes long on the lines; no less
/// than so many events.
const LEAD: Duration = Duration::from_millis(50);
const LEAD_MIN: u64 = 8;
/// The part of the mean that each event's time on the lines has.
const WEIGHT: u64 = 16;
/// Tokens between two looks at which node has had the fewest events.
const LOOK_EVERY: u32 = 32;

/// How far the nodes of several threads have come.
#[derive(Debug)]
pub struct Pace(Vec<AtomicU64>);

impl Pace {
    /// Creates the progress of this many threads.
    #[must_use]
    pub fn of(threads: usize) -> Arc<Self> {
        Arc::new(Pace((0..threads).map(|_| AtomicU64::new(u64::MAX)).collect()))
    }

    fn fewest(&self) -> u64 {
        self.0.iter().map(|fewest| fewest.load(Ordering::Relaxed)).min().unwrap_or(u64::MAX)
    }
}

/// Keeps nodes that are as fast as each other even: the token of one that is ahead waits, as long as others are busy.
#[derive(Debug)]
pub(crate) struct Even {
    ahead_max: Option<u64>,
    pace: Option<(Arc<Pace>, usize)>,
    /// Events of the node that has had the fewest, as of the last look.
    fewest: u64,
    tokens: u32,
    held: VecDeque<(Peer, u32)>,
    /// When a token last came.
    heard: Instant,
    /// Mean time of an event on the lines, there and back, without waiting and deciding at the node.
    away_ns: u64,
    quiet: Duration,
    /// Events by which a node may be ahead now: at most `ahead_max`.
    lead: u64,
}

impl Even {
    pub(crate) fn new(ahead_max: Option<u64>, pace: Option<(Arc<Pace>, usize)>) -> Self {
        Even {
            ahead_max,
            pace,
            fewest: 0,
            tokens: 0,
            held: VecDeque::new(),
            heard: Instant::ZERO,
            away_ns: 0,
            quiet: QUIET,
            lead: ahead_max.unwrap_or(0),
        }
    }

    /// Returns where a node that comes now begins: with the others, not at nothing.
    pub(crate) fn start(&mut self, queue: &Queue, lines: &mut Lines<Member>) -> u64 {
        self.look(queue, lines);
        if self.fewest == u64::MAX { 0 } else { self.fewest }
    }

    /// Notes how long an event was on the lines.
    #[inline]
    pub(crate) fn was_away(&mut self, span_ns: u64) {
        self.away_ns = self.away_ns - self.away_ns / WEIGHT + span_ns / WEIGHT;
    }

    /// Tokens of a node that has had so many events; answers whether they are held back.
    #[inline]
    pub(crate) fn holds(&mut self, now: Instant, peer: Peer, served: u64, count: u32) -> bool {
        if self.ahead_max.is_none() {
            return false;
        }
        self.heard = now;
        self.tokens += 1;
        if served <= self.fewest.saturating_add(self.lead) || count == 0 {
            return false;
        }
        self.held.push_back((peer, count));
        true
    }

    pub(crate) fn forget(&mut self, peer: Peer) {
        self.held.retain(|(held, _)| *held != peer);
    }

    /// Looks whether enough tokens have come since the last time.
    #[inline]
    pub(crate) fn look_in(&mut self, queue: &Queue, lines: &mut Lines<Member>) {
        if self.tokens >= LOOK_EVERY {
            self.look(queue, lines);
        }
    }

    fn look(&mut self, queue: &Queue, lines: &mut Lines<Member>) {
        self.tokens = 0;
        let (mut here, mut in_flight) = (u64::MAX, 0);
        for peer in queue.nodes() {
            if let Some((_, node)) = node(lines, *peer) {
                here = here.min(node.served);
                in_flight += node.given.len() as u64;
            }
        }
        // So often the lines take an event, if there is always one on them.
        let every = Duration::from_nanos(self.away_ns / in_flight.max(1));
        self.quiet = (every * QUIET_EVENTS).clamp(QUIET, QUIET_MAX);
        let every_ns_of_a_node = every.as_nanos() as u64 * queue.nodes().len() as u64;
        let lead = LEAD.as_nanos() as u64 / every_ns_of_a_node.max(1);
        self.lead = lead.max(LEAD_MIN).min(self.ahead_max.unwrap_or(0));
        self.fewest = match &self.pace {
            None => here,
            Some((pace, index)) => {
                pace.0[*index].store(here, Ordering::Relaxed);
                pace.fewest()
            }
        };
    }

    /// Moves tokens that need not be held back any more to the queue, if nothing else is to be done. Returns whether it
    /// moved any.
    #[inline]
    pub(crate) fn release(&mut self, now: Instant, queue: &mut Queue, lines: &mut Lines<Member>) -> bool {
        if self.held.is_empty() {
            return false;
        }
        self.look(queue, lines);
        let quiet = now >= self.heard + self.quiet;
        let bound = self.fewest.saturating_add(self.lead);
        let mut any = false;
        for _ in 0..self.held.len() {
            let Some((peer, count)) = self.held.pop_front() else { break };
            match node(lines, peer) {
                Some((_, node)) if !quiet && node.served > bound => self.held.push_back((peer, count)),
                Some(_) => {
                    queue.tokens_came(peer, count);
                    any = true;
                }
                None => {}
            }
        }
        any
    }

    /// Returns when the tokens that are held back are let go.
    #[inline]
    pub(crate) fn deadline(&self) -> Option<Instant> {
        (!self.held.is_empty()).then(|| self.heard + self.quiet)
    }
}
