//! `hodo farm builder`: makes events of the fragments of several sources, and gives each to the controller.

pub mod page;

use super::lines::Lines;
use super::pages::PATIENCE;
use super::{cannot_listen, instance, listen, serve_options};
use crate::args::FarmBuilder;
use crate::hub::announce;
use crate::{Error, Outcome};
use hodo_catalog::farm::builder::{Command, Event};
use hodo_catalog::farm::{Builder, BuilderConfig};
use hodo_daemon::{Daemon, Options, Reply, Rounds, Snapshot};
use hodo_io::{Attendant, ReadoutServer};
use hodo_machine::{Address, Instant};
use page::Seen;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Connections that are accepted beyond two of each source, so that those which are turned away are told why.
const MORE_PEERS: usize = 256;
/// Between two lines that tell of incomplete events: there may be many.
const INCOMPLETE_EVERY: Duration = Duration::from_secs(1);

/// Builds events until a signal comes.
pub fn run(asked: &FarmBuilder) -> Result<Outcome, Error> {
    let options = serve_options(&asked.process, 1, 2 * asked.sources as usize + MORE_PEERS)?;
    let seen: Arc<Snapshot<Seen>> = Arc::default();
    let daemon = start_daemon(asked, &seen)?;
    let turned_away = Arc::<AtomicU64>::default();
    let make = |turned_away: Arc<AtomicU64>| {
        let attending = Attending {
            rounds: daemon.rounds("builder"),
            seen: Arc::clone(&seen),
            turned_away,
            verbose: asked.process.verbose,
            lines: Lines::of("builder"),
            incomplete: 0,
            told_at: Instant::ZERO,
        };
        (Builder::new(config(asked)), attending)
    };
    let is_tied = asked.process.until_stdin_closes;
    let served = if asked.udp {
        let at = &Address::Socket(asked.listen);
        let server = ReadoutServer::bind(at, options).map_err(|error| cannot_listen(asked.listen, &error))?;
        announce(&daemon, server.address(), is_tied)?;
        server.attend(asked.drain, || make(turned_away), daemon.stop())
    } else {
        let server = listen(asked.listen, options, &daemon, is_tied)?;
        let turned_away = server.turned_away();
        server.attend(asked.drain, |_, _| make(Arc::clone(&turned_away)), daemon.stop())
    };
    served.map_err(|error| Error::Failed(format!("serving {}: {error}", asked.listen)))?;
    Ok(Outcome::Done)
}

/// Pages, signals, and the manager of services.
fn start_daemon(asked: &FarmBuilder, seen: &Arc<Snapshot<Seen>>) -> Result<Daemon, Error> {
    let http = (!asked.no_metrics).then_some(asked.metrics);
    let options = Options { http, pid_file: asked.pid_file.clone() };
    let (shown, told, to) = (Arc::clone(seen), Arc::clone(seen), asked.to);
    let daemon = Daemon::start(&options, |pages| {
        pages.with(page::PATH, move || match shown.ask(PATIENCE) {
            Some(seen) => Reply::json(format!("{:#}\n", page::page(&seen, to))),
            None => Reply::text(503, "the builder has not begun, or is stuck\n"),
        })
    })?;
    daemon.registry().source(move |exposition| {
        if let Some(seen) = told.ask(PATIENCE) {
            page::tell(&seen, exposition);
        }
    });
    Ok(daemon)
}

fn config(asked: &FarmBuilder) -> BuilderConfig {
    BuilderConfig {
        number: asked.number,
        patience: asked.patience,
        incomplete: asked.incomplete.into(),
        fragment_max: super::wire_length(asked.event_max),
        pool_bytes: asked.pool,
        source_credits: asked.credits,
        datagrams: asked.udp,
        silence: asked.silence,
        instance: instance(),
        ..BuilderConfig::new(Address::Socket(asked.to), asked.sources)
    }
}

struct Attending {
    rounds: Rounds,
    seen: Arc<Snapshot<Seen>>,
    /// Connections for which there was no room.
    turned_away: Arc<AtomicU64>,
    verbose: bool,
    lines: Lines,
    /// Incomplete events since the last line about them.
    incomplete: u64,
    told_at: Instant,
}

impl Attendant for Attending {
    type Machine = Builder;

    fn told(&mut self, event: Event) -> Option<Command> {
        match event {
            Event::Incomplete { .. } => self.incomplete += 1,
            Event::Lost(error) => self.lines.say(&format!("the controller: {error}; trying again")),
            Event::TooLarge { event, size, max, .. } => {
                self.lines
                    .say(&format!("event {event} of {size} bytes is given up: the controller takes {max} at most"));
            }
            Event::Left { hello, error, .. } if error.is_misbehaviour() || self.verbose => {
                self.lines.say(&format!("source {} is gone: {error}", hello.number));
            }
            Event::Refused(_, error) if self.verbose => self.lines.say(&format!("a connection was refused: {error}")),
            Event::Joined { hello, .. } if self.verbose => {
                self.lines.say(&format!("source {} has joined", hello.number));
            }
            Event::Reached(hello) if self.verbose => {
                self.lines.say(&format!("the controller takes {} events at once", hello.credits));
            }
            Event::Left { .. } | Event::Refused(..) | Event::Joined { .. } | Event::Reached(_) | Event::Drained => {}
        }
        None
    }

    fn look_in(&mut self, now: Instant, builder: &Builder) -> Option<Command> {
        if self.incomplete > 0 && now - self.told_at >= INCOMPLETE_EVERY {
            let absent = page::names(&builder.absent());
            self.lines.say(&format!("{} events lack fragments{absent}", std::mem::take(&mut self.incomplete)));
            self.told_at = now;
        }
        self.lines.look_in();
        let turned_away = self.turned_away.load(Ordering::Relaxed);
        self.seen.offer(|| Seen { now, counters: builder.counters(), absent: builder.absent(), turned_away });
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
