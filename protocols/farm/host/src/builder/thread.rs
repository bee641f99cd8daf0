use super::status::{BuilderSnapshot, listed, names};
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
/// Between two lines that tell of sources without which a run does not begin.
const AWAITED_EVERY: Duration = Duration::from_secs(5);

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
    /// When the log is told next, at the earliest, that sources are awaited.
    pub awaited_at: Instant,
    /// Sources that have given other data under numbers of theirs, as far as the log has told.
    pub conflicting: BTreeSet<u32>,
    pub faults: Arc<Faults>,
}

/// The reasons for which a builder ends with an error.
#[derive(Debug, Default)]
pub struct Faults {
    /// Events that the controller would not take, and the most bytes that it takes.
    pub too_large: AtomicU64,
    pub max: AtomicU64,
    /// How often events went on without a source that was there.
    pub behind: AtomicU64,
}

impl Attendant for BuilderThread {
    type Machine = Builder;

    fn told(&mut self, event: Event) -> Option<Command> {
        match event {
            Event::Incomplete { .. } => self.incomplete += 1,
            Event::Lost(error) => tracing::warn!("{}: {error}; trying again", self.to),
            Event::TooLarge { event, size, max, .. } => {
                if self.faults.too_large.fetch_add(1, Ordering::Relaxed) == 0 {
                    // The others are counted: there may be many.
                    tracing::warn!("event {event} of {size} bytes is dropped: the controller takes at most {max}");
                }
                self.faults.max.store(u64::from(max), Ordering::Relaxed);
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
            Event::Gone { source } => {
                tracing::warn!("source {source} is not there: events go on without it until it comes");
            }
            Event::Behind { source } => {
                self.faults.behind.fetch_add(1, Ordering::Relaxed);
                tracing::error!(
                    "source {source} is connected, and has given nothing for --behind although events waited for it: they go on \
                     without it until it gives"
                );
            }
            Event::Drained => {}
        }
        None
    }

    fn look_in(&mut self, now: Instant, builder: &Builder) -> Option<Command> {
        if self.incomplete > 0 && now - self.told_at >= INCOMPLETE_EVERY {
            let absent = names("absent", &builder.absent());
            tracing::warn!("{} events lack fragments{absent}", std::mem::take(&mut self.incomplete));
            self.told_at = now;
        }
        if now >= self.awaited_at {
            self.awaited_at = now + AWAITED_EVERY;
            let (waited_for, has_begun) = builder.waited_for();
            if !has_begun {
                tracing::warn!(
                    "the run begins when all sources have come: events wait for source {}; --start-without begins without them",
                    listed(&waited_for)
                );
            }
        }
        let turned_away = self.turned_away.load(Ordering::Relaxed);
        let snapshot = || BuilderSnapshot {
            now,
            counters: builder.counters(),
            absent: builder.absent(),
            waited_for: builder.waited_for().0,
            turned_away,
        };
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
