//! `hodo farm node`: takes events and decides.

use super::lines::Lines;
use super::{deciders, instance, serve_options};
use crate::args::FarmNode;
use crate::serve::at_the_end_of_stdin;
use crate::{Error, Outcome, interrupt};
use hodo_catalog::farm::emulation::Decisions;
use hodo_catalog::farm::node::{Command, Decide, Event};
use hodo_catalog::farm::{Deciding, Node, NodeConfig, process_counters};
use hodo_io::{Attendant, attend_opened};
use hodo_machine::{Address, Instant};
use std::time::Duration;

/// Events that are here for each that is being decided, so that none is waited for.
const CREDITS: u32 = 2;

/// Decides until a signal comes.
pub fn run(asked: &FarmNode) -> Result<Outcome, Error> {
    let options = serve_options(&asked.process, 1, asked.count as usize + 16)?;
    let stop = interrupt::flag()?;
    if asked.process.until_stdin_closes {
        at_the_end_of_stdin(&stop);
    }
    if asked.deciders.command.is_some() || asked.deciders.exec.is_some() {
        let deciding = Deciding { serve: options, node: config(asked), drain: asked.drain };
        return deciders::run(&asked.deciders, deciding, asked.process.verbose, &stop);
    }
    let node = Node::new(config(asked));
    let attending = Attending { lines: Lines::of("node"), verbose: asked.process.verbose, left: None };
    attend_opened(&options, asked.drain, || (node, attending), &stop)
        .map_err(|error| Error::Failed(format!("deciding for {}: {error}", asked.to)))?;
    Ok(Outcome::Done)
}

fn config(asked: &FarmNode) -> NodeConfig {
    let decisions = Decisions {
        accept: asked.accept,
        output: vec![0xA5; asked.output.unwrap_or(0) as usize].into(),
        time: asked.time,
        seed: asked.seed,
    };
    NodeConfig {
        controllers: vec![Address::Socket(asked.to); asked.count as usize],
        number: asked.number,
        credits: asked.credits.unwrap_or(CREDITS * u32::from(asked.deciders.workers)),
        weight: asked.weight,
        event_max: super::wire_length(asked.event_max),
        decide: if asked.no_tokens { Decide::Nobody } else { Decide::Emulated(decisions) },
        silence: Duration::from_secs(2),
        instance: instance(),
    }
}

struct Attending {
    lines: Lines,
    verbose: bool,
    /// Why a controller could last not be reached.
    left: Option<hodo_catalog::farm::Error>,
}

impl Attendant for Attending {
    type Machine = Node;

    fn told(&mut self, event: Event) -> Option<Command> {
        match event {
            Event::ReportAsked(peer, value) => Some(Command::Report { peer, value, process: process_counters() }),
            Event::Left(_, error) => {
                // It is tried again and again: once for each reason is enough.
                if self.left.replace(error) != Some(error) {
                    self.lines.say(&format!("{error}; trying again"));
                }
                None
            }
            Event::Joined(..) => {
                self.left = None;
                if self.verbose {
                    self.lines.say("the controller has greeted");
                }
                None
            }
            Event::Work { .. } | Event::Drained => None,
        }
    }

    fn look_in(&mut self, _: Instant, _: &Node) -> Option<Command> {
        self.lines.look_in();
        None
    }

    fn drain(&mut self) -> Option<Command> {
        Some(Command::Drain)
    }

    fn is_drained(&self, node: &Node) -> bool {
        node.is_drained()
    }
}
