use super::status::{BuilderSnapshot, names, sources};
use crate::conflicts::Conflicts;
use hodo_daemon::{Health, Rounds, Snapshot};
use hodo_farm::Builder;
use hodo_farm::builder::{Command, Event};
use hodo_io::Attendant;
use hodo_machine::Instant;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Between two lines that tell of incomplete events: there may be many.
const INCOMPLETE_EVERY: Duration = Duration::from_secs(1);
/// When sources that have never come are named, and how often.
const AWAITED_FIRST: Duration = Duration::from_secs(1);
const AWAITED_EVERY: Duration = Duration::from_secs(10);

/// The thread of a builder: logs its events, and passes its counters to the pages.
pub struct BuilderThread {
    pub rounds: Rounds,
    pub snapshot: Arc<Snapshot<BuilderSnapshot>>,
    /// Connections for which there was no room.
    pub turned_away: Arc<AtomicU64>,
    /// Incomplete events since the last line about them.
    pub incomplete: u64,
    pub told_at: Instant,
    /// The sources that events wait for and that have never come, and when they are named next.
    pub awaited: Vec<u32>,
    pub awaited_at: Instant,
    pub health: Arc<Health>,
    /// The sources that the run has just started without.
    pub started_without: Vec<u32>,
    /// Events that the controller would not take, and the most bytes that it takes.
    pub discarded: Arc<Discarded>,
    /// Events under numbers that other data has.
    pub conflicts: Conflicts,
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
            Event::Lost(error) => tracing::warn!("the controller: {error}; trying again"),
            Event::TooLarge { event, size, max, .. } => {
                if self.discarded.events.fetch_add(1, Ordering::Relaxed) == 0 {
                    // The others are counted: there may be many.
                    tracing::warn!("event {event} of {size} bytes is dropped: the controller takes at most {max}");
                }
                self.discarded.max.store(u64::from(max), Ordering::Relaxed);
            }
            Event::Left { hello, error, .. } if error.is_to_be_logged() => {
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
            Event::Behind { source, within } => {
                let what = format!("source {source} gave nothing for {within:?} although events waited for it");
                tracing::error!("{what}: it counts as gone until it gives something");
                self.health.add_wrong(&what);
            }
            // All of them are named in one line.
            Event::StartedWithout { source } => self.started_without.push(source),
            Event::Conflict { run, event, source } => {
                self.conflicts.add(hodo_farm::wire::Role::Source, source, (run, event));
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
        if !self.started_without.is_empty() {
            tracing::warn!("the run has started without {}", sources(&std::mem::take(&mut self.started_without)));
        }
        let awaited = builder.awaited();
        if awaited != self.awaited {
            (self.awaited, self.awaited_at) = (awaited, now + AWAITED_FIRST);
        }
        if !self.awaited.is_empty() && now >= self.awaited_at {
            self.awaited_at = now + AWAITED_EVERY;
            tracing::warn!(
                "events wait for what has not connected yet: {}; --start-without starts without it",
                sources(&self.awaited)
            );
        }
        let turned_away = self.turned_away.load(Ordering::Relaxed);
        let snapshot = || BuilderSnapshot {
            now,
            counters: builder.counters(),
            absent: builder.absent(),
            sources: builder.source_counters(),
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
