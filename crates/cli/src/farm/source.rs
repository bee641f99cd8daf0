//! `hodo farm source`: gives events, or fragments of them.

use super::lines::Lines;
use super::{generator, instance, serve_options};
use crate::args::FarmSource;
use crate::serve::at_the_end_of_stdin;
use crate::{Error, Outcome, interrupt, terminal};
use hodo_catalog::farm::emulation::Generator;
use hodo_catalog::farm::source::{Command, Event};
use hodo_catalog::farm::wire::Verdict;
use hodo_catalog::farm::{Ranges, Source, SourceConfig};
use hodo_io::{Attendant, attend_opened};
use hodo_machine::{Address, Instant};
use std::time::Duration;

/// Gives events until all have their verdict, or a signal comes.
pub fn run(asked: &FarmSource) -> Result<Outcome, Error> {
    let options = serve_options(&asked.process, 1, 16)?;
    let stop = interrupt::flag()?;
    if asked.process.until_stdin_closes {
        at_the_end_of_stdin(&stop);
    }
    let made = generator(&asked.made, asked.first, asked.step, asked.made.events);
    let config =
        SourceConfig { instance: instance(), ..SourceConfig::new(Address::Socket(asked.to), asked.number, asked.run) };
    let mut summary = Summary::default();
    let attending =
        Attending { lines: Lines::of("source"), verbose: asked.process.verbose, over: false, summary: &mut summary };
    let make = || (Source::new(config, Generator::new(made, Ranges::default())), attending);
    attend_opened(&options, Duration::ZERO, make, &stop)
        .map_err(|error| Error::Failed(format!("giving events to {}: {error}", asked.to)))?;
    let Summary { accepted, rejected, quarantined, incomplete, duplicate, kept, .. } = summary;
    terminal::print(&format!(
        "source {}: {accepted} accepted, {rejected} rejected, {quarantined} quarantined, {incomplete} incomplete, \
         {duplicate} given twice, {kept} without a verdict\n",
        asked.number
    ))?;
    Ok(if summary.kept == 0 && summary.too_large == 0 { Outcome::Done } else { Outcome::Failed })
}

#[derive(Default)]
struct Summary {
    accepted: u64,
    rejected: u64,
    quarantined: u64,
    incomplete: u64,
    duplicate: u64,
    too_large: u64,
    kept: usize,
}

struct Attending<'a> {
    lines: Lines,
    verbose: bool,
    over: bool,
    summary: &'a mut Summary,
}

impl Attendant for Attending<'_> {
    type Machine = Source<Generator>;

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

    fn is_over(&self, _: &Source<Generator>) -> bool {
        self.over
    }

    fn look_in(&mut self, _: Instant, source: &Source<Generator>) -> Option<Command> {
        self.lines.look_in();
        self.summary.kept = source.kept();
        None
    }

    fn drain(&mut self) -> Option<Command> {
        Some(Command::Leave)
    }
}

impl Drop for Attending<'_> {
    fn drop(&mut self) {
        if self.over {
            self.summary.kept = 0;
        }
    }
}
