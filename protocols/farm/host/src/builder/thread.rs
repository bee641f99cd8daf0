use super::status::{BuilderSnapshot, names};
use hodo_daemon::Rounds;
use hodo_farm::Builder;
use hodo_farm::builder::{Command, Event};
use hodo_io::{Attendant, Snapshot};
use hodo_machine::{Address, Instant};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Between two lines that tell of incomplete events: there may be many.
const INCOMPLETE_EVERY: Duration = Duration::from_secs(1);

/// The thread of a builder: logs its events, and passes its counters to the pages.
pub struct BuilderThread {
    /// The controller.
    pub to: Address,
    pub rounds: Rounds,
    pub snapshot: Arc<Snapshot<BuilderSnapshot>>,
    /// Connections for which there was no room.
    pub turned_away: Arc<AtomicU64>,
    /// Incomplete events since the last line about them.
    pub incomplete: u64,
    pub told_at: Instant,
    /// Sources that have given other data under numbers of theirs, as far as the log has told.
    pub conflicting: BTreeSet<u32>,
    /// Events that the controller would not take, and the most bytes that it takes.
    pub discarded: Arc<Discarded>,
}

/// Events that a builder had to throw away for their size.
#[derive(Debug, Default)]
pub struct Discarded {
    pub events: AtomicU64,
    pub max: AtomicU64,
}

impl Attendant for BuilderThread {
    type Machine = Builder;

    fn told(&mut self, event: Event) -> Option<Command> {
        match event {
            Event::Incomplete { .. } => self.incomplete += 1,
            Event::Lost(error) => tracing::warn!("{}: {error}; trying again", self.to),
            Event::TooLarge { event, size, max, .. } => {
                if self.discarded.events.fetch_add(1, Ordering::Relaxed) == 0 {
                    // The others are counted: there may be many.
                    tracing::warn!("event {event} of {size} bytes is dropped: the controller takes at most {max}");
                }
                self.discarded.max.store(u64::from(max), Ordering::Relaxed);
            }
            Event::Left { hello, error, .. } if error.is_misbehaviour() => {
                tracing::warn!("source {} is gone: {error}", hello.number);
            }
            Event::Left { hello, error, .. } => tracing::debug!("source {} is gone: {error}", hello.number),
            Event::Refused(_, error) => tracing::debug!("a connection was refused: {error}"),
            Event::Joined { hello, .. } => {
                tracing::debug!("source {} has joined", hello.number);
            }
            Event::Reached(hello) => {
                tracing::debug!("the controller takes up to {} events", hello.credits);
            }
            Event::Conflict { run, event, source } => {
                if self.conflicting.insert(source) {
                    // The others are counted: there may be many.
                    tracing::error!(
                        "fragment {event} of run {run} from source {source} has the number of a fragment with other data; the \
                         controller gets it for the quarantine"
                    );
                }
            }
            Event::Drained => {}
        }
        None
    }

    fn look_in(&mut self, now: Instant, builder: &Builder) -> Option<Command> {
        if self.incomplete > 0 && now - self.told_at >= INCOMPLETE_EVERY {
            let absent = names(&builder.absent());
            tracing::warn!("{} events lack fragments{absent}", std::mem::take(&mut self.incomplete));
            self.told_at = now;
        }
        let turned_away = self.turned_away.load(Ordering::Relaxed);
        let snapshot = || BuilderSnapshot { now, counters: builder.counters(), absent: builder.absent(), turned_away };
        self.snapshot.offer(snapshot);
        self.rounds.look_in(now);
        None
    }

    fn drain(&mut self) -> Option<Command> {
        self.rounds.draining("ending what is in hand");
        Some(Command::Drain)
    }

    fn is_drained(&self, builder: &Builder) -> bool {
        builder.is_drained()
    }
}
