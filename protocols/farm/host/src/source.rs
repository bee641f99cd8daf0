//! A source: gives events, made or recorded, to a builder or to the controller.

use crate::Error;
use crate::process::{ProcessSettings, instance};
use crate::replay::{Replay, ReplaySettings};
use hodo_farm::emulation::{Generator, GeneratorConfig};
use hodo_farm::source::{Command, Event};
use hodo_farm::wire::Verdict;
use hodo_farm::{Next, Ranges, Source, SourceConfig, Supply};
use hodo_io::{Attendant, Server, Stop};
use hodo_machine::{Address, Instant, Transport};
use std::cell::Cell;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The far end's code for a run that it has not opened.
const NO_SUCH_RUN: u64 = hodo_farm::Error::NoSuchRun { run: 0 }.code();
/// The far end's code for a source that gave nothing for too long although events waited for it.
pub(crate) const BEHIND: u64 = hodo_farm::Error::Behind { seconds: 0 }.code();

/// Settings of a source.
#[derive(Debug, Clone)]
pub struct SourceSettings {
    /// The builder or the controller.
    pub to: SocketAddr,
    /// The number of the source.
    pub number: u32,
    /// The run of its events; `None`: 1, or as recorded.
    pub run: Option<u32>,
    /// Bytes of a fragment in each datagram; `None` for TCP.
    pub datagram: Option<u32>,
    /// The events.
    pub events: SourceEvents,
    /// How long it waits for verdicts when it is to stop.
    pub drain: Duration,
    /// The process.
    pub process: ProcessSettings,
}

/// The events of a source.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum SourceEvents {
    /// They are made.
    Made(GeneratorConfig),
    /// They are read from a store.
    Recorded(ReplaySettings),
}

/// Gives events until all have their verdict, or `stop` is set.
///
/// # Errors
/// [`Error::Replay`] if there are no recorded events, [`Error::Run`] if the network fails.
pub fn run(settings: &SourceSettings, stop: &Arc<Stop>) -> Result<Summary, Error> {
    let options = settings.process.serve_options(1, 16);
    let damaged = Arc::new(AtomicBool::new(false));
    let supply = match &settings.events {
        SourceEvents::Recorded(replay) => EventOrigin::Recorded(Box::new(Replay::open(replay, Arc::clone(&damaged))?)),
        SourceEvents::Made(made) => EventOrigin::Made(Box::new(Generator::new(made.clone(), Ranges::default()))),
    };
    let datagram = settings.datagram;
    let transport = if datagram.is_some() { Transport::Datagram } else { Transport::Stream };
    let (to, run) = (Address::of(transport, settings.to), settings.run.unwrap_or(1));
    let config = SourceConfig { instance: instance(), datagram, ..SourceConfig::new(to, settings.number, run) };
    let mut summary = Summary { is_udp: datagram.is_some(), ..Summary::default() };
    let thread = SourceThread { over: false, summary: &mut summary };
    let make = || (Source::new(config, supply), thread);
    let attended = Server::new(options).with_drain(settings.drain).attend_here(make, stop);
    attended.map_err(|why| Error::run(format!("sending events to {}", settings.to), &why))?;
    summary.damaged = damaged.load(Ordering::Relaxed);
    Ok(summary)
}

/// The counters of the events of a source, by their outcome.
#[derive(Debug, Default)]
pub struct Summary {
    accepted: u64,
    rejected: u64,
    quarantined: u64,
    incomplete: u64,
    duplicate: u64,
    conflict: u64,
    without: u64,
    /// Times that it gave nothing for too long.
    behind: u64,
    too_large: u64,
    /// Recorded events had to be left out.
    damaged: bool,
    is_udp: bool,
    kept: Cell<usize>,
    /// Over UDP: events that were given again because parts of them were lost, each time counted.
    sent_again: Cell<u64>,
}

impl Summary {
    /// Returns whether every event has its verdict, and none was left out.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.kept.get() == 0 && self.too_large + self.conflict + self.without + self.behind == 0 && !self.damaged
    }

    /// Returns the verdicts in one line for people.
    #[must_use]
    pub fn text(&self) -> String {
        let Summary { accepted, rejected, quarantined, incomplete, duplicate, .. } = self;
        let kept = self.kept.get();
        let some = |count, says| if count == 0 { String::new() } else { format!(", {count} {says}") };
        let too_large = some(self.too_large, "too large and skipped");
        let conflict = some(self.conflict, "kept apart because other data has their numbers");
        let without = some(self.without, "too late for their events");
        let behind = some(self.behind, "times counted as gone, since it gave nothing for too long");
        let lost = match self.sent_again.get() {
            _ if !self.is_udp => String::new(),
            again => format!(", parts lost and sent again {again} times"),
        };
        format!(
            "{accepted} accepted, {rejected} rejected, {quarantined} quarantined, {incomplete} incomplete, {duplicate} \
             given twice, {kept} without a verdict{conflict}{without}{behind}{too_large}{lost}"
        )
    }
}

/// The supply of a source.
enum EventOrigin {
    Made(Box<Generator>),
    Recorded(Box<Replay>),
}

impl Supply for EventOrigin {
    fn next(&mut self, now: Instant) -> Next {
        match self {
            EventOrigin::Made(generator) => generator.next(now),
            EventOrigin::Recorded(replay) => replay.next(now),
        }
    }

    fn run(&self) -> Option<u32> {
        match self {
            EventOrigin::Made(_) => None,
            EventOrigin::Recorded(replay) => replay.run(),
        }
    }

    fn hurry(&mut self, is_hurried: bool) {
        match self {
            EventOrigin::Made(generator) => generator.hurry(is_hurried),
            EventOrigin::Recorded(replay) => replay.hurry(is_hurried),
        }
    }

    fn is_paced(&self) -> bool {
        match self {
            EventOrigin::Made(generator) => generator.is_paced(),
            EventOrigin::Recorded(replay) => replay.is_paced(),
        }
    }
}

/// The thread of a source: counts verdicts and logs what is wrong.
struct SourceThread<'a> {
    over: bool,
    summary: &'a mut Summary,
}

impl SourceThread<'_> {
    fn note(&self, source: &Source<EventOrigin>) {
        self.summary.kept.set(source.kept());
        self.summary.sent_again.set(source.sent_again());
    }
}

impl Attendant for SourceThread<'_> {
    type Machine = Source<EventOrigin>;

    fn told(&mut self, event: Event) -> Option<Command> {
        match event {
            Event::Answered { run, event, conflict: true, .. } => {
                if self.summary.conflict == 0 {
                    // The others are counted: there may be many.
                    tracing::error!(
                        "other data has the number {event} of run {run}: this is kept apart; did the count of this source begin anew, or has \
                         another one the same numbers?"
                    );
                }
                self.summary.conflict += 1;
            }
            Event::Answered { run, event, without: true, .. } => {
                if self.summary.without == 0 {
                    tracing::error!(
                        "event {event} of run {run} went on without this source's fragment, which came too late"
                    );
                }
                self.summary.without += 1;
            }
            Event::Answered { duplicate: true, .. } => self.summary.duplicate += 1,
            Event::Answered { verdict, .. } => {
                *match verdict {
                    Verdict::Accepted => &mut self.summary.accepted,
                    Verdict::Rejected => &mut self.summary.rejected,
                    Verdict::Quarantined | Verdict::Failed => &mut self.summary.quarantined,
                    Verdict::Incomplete => &mut self.summary.incomplete,
                } += 1;
            }
            Event::Joined(hello) => {
                tracing::debug!("the {} takes up to {} events", hello.role.name(), hello.credits);
            }
            Event::Left(hodo_farm::Error::RefusedBy { code: NO_SUCH_RUN }) => {
                tracing::warn!("the run of these events is not open there: `hodo farm set-run` opens it; trying again");
            }
            Event::Left(hodo_farm::Error::RefusedBy { code: BEHIND }) => {
                tracing::error!("this source gave nothing for too long: events went on without it there; trying again");
                self.summary.behind += 1;
            }
            Event::Left(error) => tracing::warn!("{error}; trying again"),
            Event::TooLarge { event, size, max } => {
                if self.summary.too_large == 0 {
                    // The others are counted: there may be many.
                    tracing::warn!(
                        "event {event} of {size} bytes is skipped: the far end takes at most {max}; raise --event-max there"
                    );
                }
                self.summary.too_large += 1;
            }
            Event::Ended => self.over = true,
        }
        None
    }

    fn is_over(&self, source: &Source<EventOrigin>) -> bool {
        self.note(source);
        self.over
    }

    fn look_in(&mut self, _: Instant, source: &Source<EventOrigin>) -> Option<Command> {
        self.note(source);
        None
    }

    fn drain(&mut self) -> Option<Command> {
        Some(Command::End)
    }

    fn is_drained(&self, source: &Source<EventOrigin>) -> bool {
        self.note(source);
        source.is_ended()
    }
}

impl Drop for SourceThread<'_> {
    fn drop(&mut self) {
        if self.over {
            self.summary.kept.set(0);
        }
    }
}
