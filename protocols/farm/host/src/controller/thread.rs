use super::generator::Made;
use super::orders::Orders;
use super::snapshot::ControllerSnapshot;
use super::storage::StorageQueue;
use crate::Error;
use hodo_daemon::{Health, Rounds};
use hodo_farm::Controller;
use hodo_farm::controller::{Command, Counters, Event, Final, NodeShare};
use hodo_farm::wire::{Hello, Role};
use hodo_io::{Attendant, Snapshot};
use hodo_machine::Instant;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Disconnected nodes that are listed by number; those beyond are counted together, under the last number.
const GONE_MAX: usize = 4096;

/// One thread of a controller: passes verdicts to storage, orders to the machine, and counters to the pages.
pub struct ControllerThread {
    pub rounds: Rounds,
    pub snapshot: Arc<Snapshot<ControllerSnapshot>>,
    /// Takes verdicts to be stored; `None` without a store.
    pub storage: Option<StorageQueue>,
    /// Threads that have not ended; with `until_done` the controller ends with the last one.
    pub running: Arc<AtomicU32>,
    pub until_done: bool,
    /// Connections of all threads that were closed at once because there were too many.
    pub turned_away: Arc<AtomicU64>,
    /// The totals of all threads that have ended.
    pub decided: Arc<Mutex<Decided>>,
    /// Orders of the operator.
    pub orders: Arc<Orders>,
    pub health: Arc<Health>,
    pub state: ThreadState,
}

/// The state of one thread that no other thread needs.
#[derive(Default)]
pub struct ThreadState {
    verdicts: Vec<Final>,
    committed: u64,
    /// News of the storage that the machine was not told yet.
    news: VecDeque<Command>,
    /// The machine has drained, for good or until an order to resume.
    drained: bool,
    /// The machine has ended for good, and `running` no longer counts this thread.
    ended: Cell<bool>,
    /// The totals of this thread, as of the last look at whether it has ended.
    decided: Cell<Decided>,
    /// The most bytes that a node takes, as of the last event that was larger.
    takes_max: u32,
    /// Givers of data under the numbers of other events, as far as the log has told.
    conflicting: BTreeSet<(Role, u32)>,
    /// Whether the log has told of events that could not be compared with what was given before.
    told_of_unchecked: bool,
    /// Totals of nodes that have disconnected, by their numbers.
    gone: BTreeMap<u32, NodeShare>,
}

/// The totals of a controller at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Decided {
    /// Events of its run that have a verdict, those of earlier processes included.
    pub events: u64,
    /// Events that lacked fragments, among those which nodes of this process decided on.
    pub partial: u64,
    /// Events that this process quarantined because no node takes so many bytes.
    pub too_large: u64,
    /// The most bytes that a node takes, if there are any of those.
    pub takes_max: u32,
    /// Events that came to this process under the numbers of others.
    pub conflicts: u64,
}

impl Decided {
    /// Returns the counts for the last line of a controller; the number of events comes first.
    #[must_use]
    pub fn text(&self) -> String {
        let partial = if self.partial > 0 { format!(", {} of them partial", self.partial) } else { String::new() };
        let conflicts = match self.conflicts {
            0 => String::new(),
            events => format!(", {events} more under numbers with other data"),
        };
        format!("{}{partial}{conflicts}", self.events)
    }

    /// Checks that some node took each event, and that each had a number of its own.
    ///
    /// # Errors
    /// [`Error::Conflicts`] if events had the numbers of others, [`Error::TooLarge`] if one was larger than any node takes.
    pub fn check(&self) -> Result<(), Error> {
        match (self.conflicts, self.too_large) {
            (0, 0) => Ok(()),
            (0, events) => Err(Error::TooLarge { events, max: self.takes_max }),
            (events, _) => Err(Error::Conflicts { events }),
        }
    }

    fn of(controller: &Controller<Made>, takes_max: u32) -> Self {
        let Counters { partial, too_large, .. } = controller.counters();
        let conflicts = controller.counts().conflicts;
        Decided { events: controller.decided(), partial, too_large, takes_max, conflicts }
    }

    fn plus(&self, other: &Decided) -> Decided {
        Decided {
            events: self.events + other.events,
            partial: self.partial + other.partial,
            too_large: self.too_large + other.too_large,
            takes_max: self.takes_max.max(other.takes_max),
            conflicts: self.conflicts + other.conflicts,
        }
    }
}

impl ControllerThread {
    /// Tells of data under the number of another event: of each giver once, because there may be many.
    fn conflicts(&mut self, run: u32, event: u64, role: Role, number: u32) {
        let known = &mut self.state.conflicting;
        if known.len() >= GONE_MAX || !known.insert((role, number)) {
            return;
        }
        let fate = if self.storage.is_some() { "is in quarantine" } else { "is not kept, as there is no --store" };
        let what = format!(
            "event {event} of run {run} from {} {number} has the number of an event with other data, and {fate}; give each \
             event a number of its own",
            role.name()
        );
        tracing::error!("{what}");
        self.health.set_wrong(what);
    }

    fn left(&mut self, hello: &Hello, error: &hodo_farm::Error, taken_back: u32, share: Option<NodeShare>) {
        if let Some(share) = share {
            let gone = &mut self.state.gone;
            let number = if gone.len() < GONE_MAX { share.number } else { u32::MAX };
            let before = gone.entry(number).or_insert(NodeShare { number, ..NodeShare::default() });
            *before = before.plus(&share);
        }
        let (role, number) = (hello.role.name(), hello.number);
        if taken_back > 0 {
            tracing::warn!("{role} {number} is gone: {error}; others get its {taken_back} events");
        } else if error.is_misbehaviour() {
            tracing::warn!("{role} {number} is gone: {error}");
        } else {
            tracing::debug!("{role} {number} is gone: {error}");
        }
    }
}

impl Attendant for ControllerThread {
    type Machine = Controller<Made>;

    #[inline]
    fn told(&mut self, event: Event) -> Option<Command> {
        match event {
            Event::Verdict(verdict) if self.storage.is_some() => self.state.verdicts.push(verdict),
            Event::Joined { hello, .. } => {
                tracing::debug!("{} {} has joined", hello.role.name(), hello.number);
            }
            Event::Left { hello, error, taken_back, share, .. } => self.left(&hello, &error, taken_back, share),
            Event::Refused(_, error) => tracing::debug!("a connection was refused: {error}"),
            Event::Conflict { run, event, role, number } => self.conflicts(run, event, role, number),
            Event::Drained => self.state.drained = true,
            Event::TooLarge { event, size, max, .. } => {
                if self.state.takes_max == 0 {
                    // The others are counted: there may be many.
                    tracing::warn!("event {event} of {size} bytes is quarantined: no node takes more than {max}");
                }
                self.state.takes_max = max;
            }
            _ => {}
        }
        None
    }

    #[inline]
    fn wanted(&mut self, _: &mut Controller<Made>) -> Option<Command> {
        if let Some(storage) = &self.storage {
            if !self.state.verdicts.is_empty() {
                storage.push(&mut self.state.verdicts);
            }
            let committed = storage.committed();
            if committed != self.state.committed {
                self.state.committed = committed;
                self.state.news.extend(storage.compared().into_iter().map(Command::Compared));
                self.state.news.push_back(Command::Committed(committed));
            }
            if let Some(news) = self.state.news.pop_front() {
                return Some(news);
            }
        }
        self.orders.next()
    }

    fn is_over(&self, controller: &Controller<Made>) -> bool {
        // One that was drained by an order may be told to go on.
        if self.until_done && self.state.drained && !self.state.ended.get() && controller.is_ended() {
            self.state.ended.set(true);
            self.state.decided.set(Decided::of(controller, self.state.takes_max));
            self.running.fetch_sub(1, Ordering::AcqRel);
        }
        self.state.ended.get() && self.running.load(Ordering::Acquire) == 0
    }

    fn look_in(&mut self, now: Instant, controller: &Controller<Made>) -> Option<Command> {
        self.snapshot.offer(|| ControllerSnapshot {
            gone: self.state.gone.values().copied().collect(),
            orders: self.orders.taken(),
            turned_away: self.turned_away.load(Ordering::Relaxed),
            store: self.storage.as_ref().map(StorageQueue::status).unwrap_or_default(),
            ..ControllerSnapshot::of(now, controller)
        });
        let unchecked = controller.counts().unchecked;
        if unchecked > 0 && !std::mem::replace(&mut self.state.told_of_unchecked, true) {
            tracing::warn!(
                "{unchecked} events were given again and could not be compared with what was given before, which is not known \
                 any more; more are counted"
            );
        }
        self.rounds.look_in(now);
        None
    }

    fn drain(&mut self) -> Option<Command> {
        self.rounds.draining("ending what is in hand");
        Some(Command::Drain)
    }

    fn is_drained(&self, controller: &Controller<Made>) -> bool {
        self.state.decided.set(Decided::of(controller, self.state.takes_max));
        controller.is_drained()
    }
}

impl Drop for ControllerThread {
    fn drop(&mut self) {
        let mut decided = self.decided.lock().unwrap_or_else(PoisonError::into_inner);
        *decided = decided.plus(&self.state.decided.get());
    }
}
