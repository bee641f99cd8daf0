//! `hodo farm source`: gives events, or fragments of them.

use super::lines::Lines;
use super::replay::Replay;
use super::{generator, instance, serve_options};
use crate::args::FarmSource;
use crate::serve::at_the_end_of_stdin;
use crate::{Error, Outcome, interrupt, terminal};
use hodo_catalog::farm;
use hodo_catalog::farm::emulation::Generator;
use hodo_catalog::farm::source::{Command, Event};
use hodo_catalog::farm::wire::Verdict;
use hodo_catalog::farm::{Next, Ranges, Source, SourceConfig, Supply};
use hodo_io::{Attendant, attend_opened, attend_opened_datagrams};
use hodo_machine::{Address, Instant};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What the far end says where the events' numbers have more gaps than it remembers.
const TOO_MANY_GAPS: u64 = farm::Error::TooManyGaps { max: 0 }.code();

/// Gives events until all have their verdict, or a signal comes.
pub fn run(asked: &FarmSource) -> Result<Outcome, Error> {
    let options = serve_options(&asked.process, 1, 16)?;
    let stop = interrupt::flag()?;
    if asked.process.until_stdin_closes {
        at_the_end_of_stdin(&stop);
    }
    let damaged = Arc::new(AtomicBool::new(false));
    let given = match &asked.recorded.replay {
        Some(path) => Given::Recorded(Box::new(Replay::open(path, asked, Arc::clone(&damaged))?)),
        None => {
            let made = generator(&asked.made, asked.first, asked.step, asked.made.events);
            Given::Made(Box::new(Generator::new(made, Ranges::default())))
        }
    };
    let supply = UntilStopped { given, stop: Arc::clone(&stop) };
    let (to, run) = (Address::Socket(asked.to), asked.run.unwrap_or(1));
    let datagram = asked.udp.then_some(asked.datagram);
    let config = SourceConfig { instance: instance(), datagram, ..SourceConfig::new(to, asked.number, run) };
    let mut summary = Summary::default();
    let attending = Attending {
        lines: Lines::of("source"),
        verbose: asked.process.verbose,
        over: false,
        replays: asked.recorded.replay.is_some(),
        summary: &mut summary,
    };
    let make = || (Source::new(config, supply), attending);
    let attended = if asked.udp {
        attend_opened_datagrams(&options, asked.drain, make, &stop)
    } else {
        attend_opened(&options, asked.drain, make, &stop)
    };
    attended.map_err(|error| Error::Failed(format!("giving events to {}: {error}", asked.to)))?;
    let Summary { accepted, rejected, quarantined, incomplete, duplicate, .. } = summary;
    let kept = summary.kept.get();
    let lost = match summary.sent_again.get() {
        _ if !asked.udp => String::new(),
        again => format!(", {again} times parts lost and sent again"),
    };
    terminal::print(&format!(
        "source {}: {accepted} accepted, {rejected} rejected, {quarantined} quarantined, {incomplete} incomplete, \
         {duplicate} given twice, {kept} without a verdict{lost}\n",
        asked.number
    ))?;
    let is_whole = summary.too_large == 0 && !summary.gave_up && !damaged.load(Ordering::Relaxed);
    Ok(if summary.kept.get() == 0 && is_whole { Outcome::Done } else { Outcome::Failed })
}

#[derive(Default)]
struct Summary {
    accepted: u64,
    rejected: u64,
    quarantined: u64,
    incomplete: u64,
    duplicate: u64,
    too_large: u64,
    /// The far end will not take the rest, however often it is given.
    gave_up: bool,
    kept: Cell<usize>,
    /// Over UDP: events that were given again because parts of them were lost, each time counted.
    sent_again: Cell<u64>,
}

/// Where its events come from.
enum Given {
    Made(Box<Generator>),
    Recorded(Box<Replay>),
}

/// Gives events until the source is to stop; those that were given get their verdict then.
struct UntilStopped {
    given: Given,
    stop: Arc<AtomicBool>,
}

impl Supply for UntilStopped {
    fn next(&mut self, now: Instant) -> Next {
        match &mut self.given {
            _ if self.stop.load(Ordering::Relaxed) => Next::Ended,
            Given::Made(generator) => generator.next(now),
            Given::Recorded(replay) => replay.next(now),
        }
    }

    fn run(&self) -> Option<u32> {
        match &self.given {
            Given::Made(_) => None,
            Given::Recorded(replay) => replay.run(),
        }
    }

    fn is_paced(&self) -> bool {
        match &self.given {
            Given::Made(generator) => generator.is_paced(),
            Given::Recorded(replay) => replay.is_paced(),
        }
    }
}

struct Attending<'a> {
    lines: Lines,
    verbose: bool,
    over: bool,
    replays: bool,
    summary: &'a mut Summary,
}

impl Attending<'_> {
    fn note(&self, source: &Source<UntilStopped>) {
        self.summary.kept.set(source.kept());
        self.summary.sent_again.set(source.sent_again());
    }
}

impl Attendant for Attending<'_> {
    type Machine = Source<UntilStopped>;

    fn told(&mut self, event: Event) -> Option<Command> {
        match event {
            Event::Answered { duplicate: true, .. } => self.summary.duplicate += 1,
            Event::Answered { verdict, .. } => {
                *match verdict {
                    Verdict::Accepted => &mut self.summary.accepted,
                    Verdict::Rejected => &mut self.summary.rejected,
                    Verdict::Quarantined | Verdict::Failed => &mut self.summary.quarantined,
                    Verdict::Incomplete => &mut self.summary.incomplete,
                } += 1;
            }
            Event::Joined(hello) if self.verbose => {
                self.lines.say(&format!("the {} takes {} events at once", hello.role.name(), hello.credits));
            }
            Event::Left(farm::Error::RefusedBy { code }) if self.replays && code == TOO_MANY_GAPS => {
                self.summary.gave_up = true;
                self.lines.say("the numbers of the recorded events have more gaps than a run may have; add --renumber");
            }
            Event::Left(error) => self.lines.say(&format!("{error}; trying again")),
            Event::TooLarge { event, size, max } => {
                self.summary.too_large += 1;
                self.lines.say(&format!("event {event} of {size} bytes is left out: the far end takes {max} at most"));
            }
            Event::Ended => self.over = true,
            Event::Joined(_) => {}
        }
        None
    }

    fn is_over(&self, source: &Source<UntilStopped>) -> bool {
        self.note(source);
        self.over || self.summary.gave_up
    }

    fn look_in(&mut self, _: Instant, source: &Source<UntilStopped>) -> Option<Command> {
        self.lines.look_in();
        self.note(source);
        None
    }

    fn is_drained(&self, source: &Source<UntilStopped>) -> bool {
        self.note(source);
        source.kept() == 0
    }
}

impl Drop for Attending<'_> {
    fn drop(&mut self) {
        if self.over {
            self.summary.kept.set(0);
        }
    }
}
