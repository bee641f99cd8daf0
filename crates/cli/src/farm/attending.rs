use super::lines::Lines;
use super::orders::Orders;
use super::seen::Seen;
use super::storing::{Desk, Stored};
use hodo_catalog::farm::controller::{Command, Event, Final, NodeShare};
use hodo_catalog::farm::wire::Hello;
use hodo_catalog::farm::{Controller, Supply};
use hodo_daemon::{Rounds, Snapshot};
use hodo_io::Attendant;
use hodo_machine::Instant;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// What is between a thread of the controller and the rest of the process.
pub struct Attending<S> {
    pub rounds: Rounds,
    pub seen: Arc<Snapshot<Seen>>,
    pub verbose: bool,
    /// Where verdicts go; nowhere without a store.
    pub desk: Option<Desk>,
    /// Threads that have not come to their end; the controller ends with the last, where it is to end by itself.
    pub running: Arc<AtomicU32>,
    pub until_done: bool,
    pub lines: Lines,
    /// Connections for which there was no room, of all threads.
    pub turned_away: Arc<AtomicU64>,
    /// What the operator wants.
    pub orders: Arc<Orders>,
    pub state: Own<S>,
}

/// What only the thread itself knows.
pub struct Own<S> {
    verdicts: Vec<Final>,
    committed: u64,
    /// The machine has come to an end, for good or for now.
    drained: bool,
    /// For good, which the others know.
    ended: Cell<bool>,
    /// What nodes had done that are gone, by their numbers.
    gone: BTreeMap<u32, NodeShare>,
    machine: PhantomData<S>,
}

impl<S> Default for Own<S> {
    fn default() -> Self {
        Own {
            verdicts: Vec::new(),
            committed: 0,
            drained: false,
            ended: Cell::new(false),
            gone: BTreeMap::new(),
            machine: PhantomData,
        }
    }
}

/// Nodes that are remembered when they are gone; those beyond are counted together, under the last number.
const GONE_MAX: usize = 4096;

impl<S> Attending<S> {
    fn left(&mut self, hello: &Hello, error: &hodo_catalog::farm::Error, taken_back: u32, share: Option<NodeShare>) {
        if let Some(share) = share {
            let gone = &mut self.state.gone;
            let number = if gone.len() < GONE_MAX { share.number } else { u32::MAX };
            let before = gone.entry(number).or_insert(NodeShare { number, ..NodeShare::default() });
            *before = before.plus(&share);
        }
        if taken_back > 0 || error.is_misbehaviour() || self.verbose {
            let (role, number) = (hello.role.name(), hello.number);
            let others = if taken_back > 0 { format!("; others get its {taken_back} events") } else { String::new() };
            self.lines.say(&format!("{role} {number} is gone: {error}{others}"));
        }
    }

    fn stored(&self) -> Stored {
        self.desk.as_ref().map(Desk::stored).unwrap_or_default()
    }
}

impl<S: Supply> Attendant for Attending<S> {
    type Machine = Controller<S>;

    #[inline]
    fn told(&mut self, event: Event) -> Option<Command> {
        match event {
            Event::Verdict(verdict) if self.desk.is_some() => self.state.verdicts.push(verdict),
            Event::Joined { hello, .. } if self.verbose => {
                self.lines.say(&format!("{} {} has joined", hello.role.name(), hello.number));
            }
            Event::Left { hello, error, taken_back, share, .. } => self.left(&hello, &error, taken_back, share),
            Event::Refused(_, error) if self.verbose => self.lines.say(&format!("a connection was refused: {error}")),
            Event::Drained => self.state.drained = true,
            _ => {}
        }
        None
    }

    #[inline]
    fn wanted(&mut self, _: &mut Controller<S>) -> Option<Command> {
        if let Some(desk) = &self.desk {
            if !self.state.verdicts.is_empty() {
                desk.leave(&mut self.state.verdicts);
            }
            let committed = desk.committed();
            if committed != self.state.committed {
                self.state.committed = committed;
                return Some(Command::Committed(committed));
            }
        }
        self.orders.next()
    }

    fn is_over(&self, controller: &Controller<S>) -> bool {
        // One that was drained by an order may be told to go on.
        if self.until_done && self.state.drained && !self.state.ended.get() && controller.is_ended() {
            self.state.ended.set(true);
            self.running.fetch_sub(1, Ordering::AcqRel);
        }
        self.state.ended.get() && self.running.load(Ordering::Acquire) == 0
    }

    fn look_in(&mut self, now: Instant, controller: &Controller<S>) -> Option<Command> {
        self.lines.look_in();
        let stored = || self.stored();
        self.seen.offer(|| Seen {
            gone: self.state.gone.values().copied().collect(),
            orders: self.orders.taken(),
            turned_away: self.turned_away.load(Ordering::Relaxed),
            ..Seen::of(now, controller, stored())
        });
        self.rounds.look_in(now);
        None
    }

    fn drain(&mut self) -> Option<Command> {
        self.rounds.draining("ending what is in hand");
        Some(Command::Drain)
    }

    fn is_drained(&self, controller: &Controller<S>) -> bool {
        controller.is_drained()
    }
}
