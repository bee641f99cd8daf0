//! A source: gives events, made or recorded, to a builder or to the controller.

use crate::Error;
use crate::process::ProcessSettings;
use crate::replay::{Replay, ReplaySettings};
use hodo_farm::emulation::{Generator, GeneratorConfig};
use hodo_farm::source::{Command, Event};
use hodo_farm::wire::Verdict;
use hodo_farm::{Next, Ranges, Source, SourceConfig, Supply};
use hodo_io::{Attendant, Server, Stop, random_bits};
use hodo_machine::{Address, Instant, Random, Transport};
use std::cell::Cell;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The far end's code for numbers with more gaps than it remembers.
const TOO_MANY_GAPS: u64 = hodo_farm::Error::TooManyGaps { max: 0 }.code();

/// The far end's code for a run that it has not opened.
const NO_SUCH_RUN: u64 = hodo_farm::Error::NoSuchRun { run: 0 }.code();

/// The far end's code for a source for which others have waited too long.
const BEHIND: u64 = hodo_farm::Error::Behind.code();

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
/// [`Error::Settings`] if there are fewer numbers than events, [`Error::Replay`] if there are no recorded events,
/// [`Error::Run`] if the network fails.
pub fn run(settings: &SourceSettings, stop: &Arc<Stop>) -> Result<Summary, Error> {
    let options = settings.process.serve_options(1, 16);
    let damaged = Arc::new(AtomicBool::new(false));
    let (supply, replays) = match &settings.events {
        SourceEvents::Recorded(replay) => {
            (EventOrigin::Recorded(Box::new(Replay::open(replay, Arc::clone(&damaged))?)), true)
        }
        SourceEvents::Made(made) => {
            check_numbers(made)?;
            let made = of_source(made, settings.number);
            (EventOrigin::Made(Box::new(Generator::new(made, Ranges::default()))), false)
        }
    };
    let datagram = settings.datagram;
    let transport = if datagram.is_some() { Transport::Datagram } else { Transport::Stream };
    let (to, run) = (Address::of(transport, settings.to), settings.run.unwrap_or(1));
    let config = SourceConfig { instance: random_bits(), datagram, ..SourceConfig::new(to, settings.number, run) };
    let mut summary = Summary { is_udp: datagram.is_some(), ..Summary::default() };
    let thread = SourceThread { to: settings.to, over: false, replays, summary: &mut summary };
    let make = || (Source::new(config, supply), thread);
    let attended = Server::new(options).with_drain(settings.drain).attend_here(make, stop);
    attended.map_err(|why| Error::run(format!("sending events to {}", settings.to), &why))?;
    summary.damaged = damaged.load(Ordering::Relaxed);
    Ok(summary)
}

/// Checks that there is a number for each event.
fn check_numbers(made: &GeneratorConfig) -> Result<(), Error> {
    match made.count.and_then(|count| count.checked_sub(1)) {
        Some(last) if made.number(last).is_none() => {
            let GeneratorConfig { first, step, .. } = made;
            let why = format!(
                "there are not so many event numbers from {first} on, {step} apart: they end at 2^64 - 2; lower --first, \
                 --step or --events"
            );
            Err(Error::Settings(why))
        }
        _ => Ok(()),
    }
}

/// Returns what a source makes: not the same as another one, which reads out another part of a detector.
fn of_source(made: &GeneratorConfig, number: u32) -> GeneratorConfig {
    // That of source 0 is the seed itself, as of the events that a controller makes.
    let seed = if number == 0 { made.seed } else { Random::for_purpose(made.seed, u64::from(number)).bits() };
    GeneratorConfig { seed, ..made.clone() }
}

/// The counters of the events of a source, by their outcome.
#[derive(Debug, Default)]
pub struct Summary {
    accepted: u64,
    rejected: u64,
    quarantined: u64,
    incomplete: u64,
    duplicate: u64,
    conflicts: u64,
    /// Fragments that came when their events had gone on without them.
    late: u64,
    /// How often the builder went on without this source, which gave nothing.
    behind: u64,
    too_large: u64,
    /// The far end will not take the rest, however often it is given.
    gave_up: bool,
    /// Recorded events had to be left out.
    damaged: bool,
    is_udp: bool,
    kept: Cell<usize>,
    /// Over UDP: events that were given again because parts of them were lost, each time counted.
    sent_again: Cell<u64>,
}

impl Summary {
    /// Returns whether every event has its verdict, and none was left out or went on without this source.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let Summary { conflicts, late, behind, too_large, .. } = self;
        self.kept.get() == 0 && conflicts + late + behind + too_large == 0 && !self.gave_up && !self.damaged
    }

    /// Returns the verdicts in one line for people.
    #[must_use]
    pub fn text(&self) -> String {
        let Summary { accepted, rejected, quarantined, incomplete, duplicate, .. } = self;
        let kept = self.kept.get();
        let conflicts = match self.conflicts {
            0 => String::new(),
            apart => format!(", {apart} under numbers with other data"),
        };
        let late = match self.late {
            0 => String::new(),
            late => format!(", {late} too late for their events"),
        };
        let too_large = match self.too_large {
            0 => String::new(),
            skipped => format!(", {skipped} too large and skipped"),
        };
        let lost = match self.sent_again.get() {
            _ if !self.is_udp => String::new(),
            again => format!(", parts lost and sent again {again} times"),
        };
        format!(
            "{accepted} accepted, {rejected} rejected, {quarantined} quarantined, {incomplete} incomplete, {duplicate} \
             given twice, {kept} without a verdict{conflicts}{late}{too_large}{lost}"
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

    fn is_paced(&self) -> bool {
        match self {
            EventOrigin::Made(generator) => generator.is_paced(),
            EventOrigin::Recorded(replay) => replay.is_paced(),
        }
    }
}

/// The thread of a source: counts verdicts and logs what is wrong.
struct SourceThread<'a> {
    /// The builder or controller.
    to: SocketAddr,
    over: bool,
    replays: bool,
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
            Event::Answered { run, event, verdict, conflict: true, .. } => {
                if self.summary.conflicts == 0 {
                    // The others are counted: there may be many.
                    let fate = if verdict == Verdict::Quarantined { "in quarantine" } else { "not kept" };
                    tracing::error!(
                        "event {event} of run {run} has the number of an event with other data, and is {fate}"
                    );
                }
                self.summary.conflicts += 1;
            }
            Event::Answered { run, event, late: true, .. } => {
                if self.summary.late == 0 {
                    // The others are counted: there may be many.
                    tracing::error!(
                        "event {event} of run {run} went on without this source's fragment, which came too late"
                    );
                }
                self.summary.late += 1;
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
            Event::Left(hodo_farm::Error::RefusedBy { code }) if self.replays && code == TOO_MANY_GAPS => {
                self.summary.gave_up = true;
                tracing::error!(
                    "the numbers of the recorded events have more gaps than a run may have; add --renumber"
                );
            }
            Event::Left(hodo_farm::Error::RefusedBy { code: NO_SUCH_RUN }) => {
                tracing::warn!("the run of these events is not open there: `hodo farm set-run` opens it; trying again");
            }
            Event::Left(hodo_farm::Error::RefusedBy { code: BEHIND }) => {
                self.summary.behind += 1;
                tracing::error!(
                    "events waited for this source, which gave nothing for the builder's --behind: they go on without it until \
                     it gives"
                );
            }
            Event::Left(error) => tracing::warn!("{}: {error}; trying again", self.to),
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
        self.over || self.summary.gave_up
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
        source.has_ended()
    }
}

impl Drop for SourceThread<'_> {
    fn drop(&mut self) {
        if self.over {
            self.summary.kept.set(0);
        }
    }
}
