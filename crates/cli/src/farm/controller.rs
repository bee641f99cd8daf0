//! `hodo farm controller`: takes events in, hands each to one node, stores what is accepted.

use super::attending::{Attending, Own};
use super::control;
use super::lines::Lines;
use super::seen::Seen;
use super::storing::{Storing, Upload, stored_verdict};
use super::{generator, instance, listen, pages, serve_options, uploading, wire_length};
use crate::args::{FarmController, FarmDurability};
use crate::{Error, Outcome};
use hodo_catalog::farm::controller::Pace;
use hodo_catalog::farm::emulation::Generator;
use hodo_catalog::farm::wire::Verdict;
use hodo_catalog::farm::{Controller, ControllerConfig, Ledger, Next, NoSupply, Ranges, Supply};
use hodo_daemon::Snapshot;
use hodo_machine::Instant;
use hodo_store::{Durability, Recovered, Store};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

/// Connections that the driver accepts beyond the controller's own bounds, so that it counts those that it turns away.
const MORE_PEERS: usize = 1024;

/// Is a controller until a signal comes, or until what it was to make has its verdict.
pub fn run(asked: &FarmController) -> Result<Outcome, Error> {
    let made_here = asked.made.events.is_some();
    let threads = usize::from(asked.threads);
    if threads > 1 && !made_here {
        return Err(Error::Usage("--threads above 1 is for events that are made here; add --events".to_owned()));
    }
    let (storing, recovered) = open_store(asked, threads)?;
    let peers_max = (asked.nodes + asked.sources) as usize + MORE_PEERS;
    let options = serve_options(&asked.process, threads, peers_max)?;
    let seen: Arc<Vec<Arc<Snapshot<Seen>>>> = Arc::new((0..threads).map(|_| Arc::default()).collect());
    let control = control::Desk::new(threads);
    let daemon = pages::start(asked, &seen, &control)?;
    control.set_stop(daemon.stop());
    let server = listen(asked.listen, options, &daemon, asked.process.until_stdin_closes)?;
    let at = server.address().to_string();
    let turned_away = server.turned_away();
    let running = Arc::new(AtomicU32::new(threads as u32));
    let done = done(&recovered, asked.run);
    let shared = Pace::of(threads);
    let pace = |index| (Arc::clone(&shared), index);
    let make = |index: usize, waker: hodo_io::Waker| {
        let ledger = if index == 0 { ledger(&recovered) } else { Ledger::default() };
        let controller =
            Controller::new(config(asked, threads, pace(index)), supply(asked, index, threads, &done), ledger);
        let desk = storing.as_ref().map(|storing| storing.desk(index));
        if let Some(desk) = &desk {
            desk.set_waker(waker);
        }
        let attending = Attending {
            rounds: daemon.rounds(&format!("controller {index}")),
            seen: Arc::clone(&seen[index]),
            verbose: asked.process.verbose,
            desk,
            running: Arc::clone(&running),
            until_done: asked.until_done,
            lines: Lines::of("controller"),
            turned_away: Arc::clone(&turned_away),
            orders: control.orders(index),
            state: Own::default(),
        };
        (controller, attending)
    };
    server.attend(asked.drain, make, daemon.stop()).map_err(|error| Error::Failed(format!("serving {at}: {error}")))?;
    drop(storing);
    Ok(Outcome::Done)
}

/// The folder is opened, and what is in it is told.
fn open_store(asked: &FarmController, threads: usize) -> Result<(Option<Storing>, Recovered), Error> {
    let Some(directory) = &asked.store else { return Ok((None, Recovered::default())) };
    let durability = match asked.durability {
        FarmDurability::Process => Durability::Process,
        FarmDurability::Disk => Durability::Disk,
    };
    let options =
        hodo_store::Options { segment_bytes: asked.segment, durability, ..hodo_store::Options::new(directory) };
    let (store, recovered) = Store::open(options).map_err(|error| Error::Failed(format!("--store: {error}")))?;
    for damage in &recovered.damaged {
        eprintln!("hodo farm controller: {damage:?}");
    }
    let uploader = uploading::start(directory, &asked.upload)?;
    let upload = uploader.map(|uploader| Upload { uploader, within: asked.drain });
    Ok((Some(Storing::start(store, threads, asked.commit_every, upload)), recovered))
}

fn config(asked: &FarmController, threads: usize, pace: (Arc<Pace>, usize)) -> ControllerConfig {
    ControllerConfig {
        run: asked.run,
        configured: asked.configured,
        policy: asked.policy.into(),
        credits_max: asked.credits_max,
        event_max: wire_length(asked.event_max),
        pool_bytes: asked.pool,
        // Events of sources need one table of what is known.
        sources_max: if threads > 1 { 0 } else { asked.sources },
        nodes_max: asked.nodes,
        silence: asked.silence,
        ahead_max: (asked.ahead > 0).then_some(asked.ahead),
        pace: Some(pace),
        deadline: asked.deadline,
        deaths_max: asked.deaths,
        uncommitted_max: asked.store.is_some().then_some(asked.uncommitted),
        uncommitted_bytes_max: asked.uncommitted_bytes / threads as u64,
        instance: instance(),
        ..ControllerConfig::default()
    }
}

/// What one thread makes.
enum Made {
    Nothing,
    Events(Box<Generator>),
}

impl Supply for Made {
    #[inline]
    fn next(&mut self, now: Instant) -> Next {
        match self {
            // Sources may come at any time.
            Made::Nothing => NoSupply.next(now),
            Made::Events(generator) => generator.next(now),
        }
    }

    fn is_paced(&self) -> bool {
        matches!(self, Made::Events(generator) if generator.is_paced())
    }
}

/// The part of the events that a thread makes: numbers without a gap.
fn supply(asked: &FarmController, index: usize, threads: usize, done: &Ranges) -> Made {
    let Some(count) = asked.made.events else { return Made::Nothing };
    let part = count.div_ceil(threads as u64);
    let first = part * index as u64;
    let mut made = generator(&asked.made, first, 1, Some(part.min(count.saturating_sub(first))));
    made.rate = made.rate.map(|rate| rate / threads as f64);
    Made::Events(Box::new(Generator::new(made, done.clone())))
}

/// Events of the run that have their verdict.
fn done(recovered: &Recovered, run: u32) -> Ranges {
    let mut done = Ranges::default();
    if let Some(ledger) = recovered.runs.get(&run) {
        for verdict in hodo_store::Verdict::ALL {
            ledger.of(verdict).iter().for_each(|range| done.insert_range(range));
        }
    }
    done
}

fn ledger(recovered: &Recovered) -> Ledger {
    let mut ledger = Ledger::default();
    for (run, known) in &recovered.runs {
        for verdict in [Verdict::Accepted, Verdict::Rejected, Verdict::Quarantined, Verdict::Incomplete] {
            let ranges: Vec<_> = known.of(stored_verdict(verdict)).iter().collect();
            // The runs come in order, so that those which are not remembered any more are the oldest.
            let _ = ledger.recover(*run, verdict, &ranges);
        }
    }
    ledger
}
