//! Reads and measures the facts, in under ten seconds.

mod measure;
mod path;

use super::{Facts, InterfaceFacts, Report, Watched, judge};
use crate::{Error, Uri};
use hodo_io::host::{self, HostFacts, Idle, Pressure, Processes, SocketLimits, Softnet, Throttling};
use hodo_io::nic::{Nic, NicCounters, QueueDiscipline, interfaces};
use hodo_io::usage::MachineTime;
use hodo_io::{Clock, Programs, affinity, probe, sleep};
use std::collections::BTreeMap;
use std::time::Duration;

/// The time for which this program sleeps and observes the others.
const WATCH: Duration = Duration::from_millis(700);
/// The time for which a busy thread runs on each processor: two periods of the usual quota.
const OCCUPY: Duration = Duration::from_millis(220);
/// The most processors that are occupied at once, so that a large machine in use is not.
const OCCUPIED_MAX: usize = 8;

/// Examines this host, and the path to the far end that a URI names; without one, every interface that is up. Takes up to ten seconds,
/// and keeps processors busy for about two of them.
///
/// # Errors
/// [`Error::Usage`] if the URI names no host that could be reached, or a simulated link; [`Error::Failed`] if there is no route.
pub fn examine(uri: Option<&Uri>) -> Result<Report, Error> {
    let target = uri.map(path::target).transpose()?.flatten();
    Ok(judge(&facts(target)))
}

fn facts(target: Option<path::Target>) -> Facts {
    let names = match &target {
        Some(target) if target.route.is_local => Vec::new(),
        Some(target) => vec![target.route.interface.clone()],
        None => interfaces_up(),
    };
    let before = Counters::read(&names);
    let mut watched = watch();
    let (online, allowed) = (affinity::online_cpus(), affinity::allowed_cpus().unwrap_or_default());
    let host = HostFacts::collect();
    let idle = Idle::read();
    let occupied = &allowed[..allowed.len().min(OCCUPIED_MAX)];
    let pair = measure::pair(&allowed, &online);
    let mut facts = Facts {
        clock_cost_ns: host::clock_cost_ns(),
        occupancy: probe::occupancy(occupied, OCCUPY),
        wake_up: pair.and_then(|(near, far)| probe::wake_up(near, far).ok()),
        packets: probe::packet_cost().ok(),
        slow_start: idle.frequency_governor.as_ref().and_then(|_| probe::slow_start()),
        tcp: measure::tcp_rates(&host, &allowed, pair),
        limits: SocketLimits::read(),
        probes_mtu: host::tcp_probes_mtu(),
        interfaces: names.iter().filter_map(|name| interface(name)).collect(),
        path: target.map(path::examine),
        online,
        allowed,
        host,
        idle,
        ..Facts::default()
    };
    let after = Counters::read(&names);
    after.add_changes(&before, &mut facts.interfaces, &mut watched);
    facts.watched = watched;
    facts
}

/// Returns the interfaces that are up, but for the loopback.
fn interfaces_up() -> Vec<String> {
    let mut names: Vec<String> =
        interfaces().into_iter().filter(|each| each.is_up && !each.is_loopback).map(|each| each.name).collect();
    names.sort();
    names.dedup();
    names
}

fn interface(name: &str) -> Option<InterfaceFacts> {
    Some(InterfaceFacts {
        nic: Nic::named(name)?,
        rings: Nic::rings(name),
        queues: Nic::receive_queues(name),
        interrupts: Nic::interrupts(name),
        dormant: Nic::dormant_features(name),
        ..InterfaceFacts::default()
    })
}

/// Sleeps, and observes what other programs do meanwhile.
fn watch() -> Watched {
    let clock = Clock::start();
    let (own, programs) = (std::process::id(), Programs::except([std::process::id()]));
    let (processes, pressure, used_s) = (Processes::until_now(), Pressure::of_processors(), programs.used_s());
    let begin = clock.now();
    sleep(WATCH);
    let (now_s, now) = (programs.used_s(), Pressure::of_processors());
    let span_s = (clock.now() - begin).as_secs_f64();
    let mut busiest = Processes::until_now().since(&processes);
    busiest.retain(|busy| busy.process != own);
    Watched {
        span_s,
        others: now_s.zip(used_s).map(|(now, before)| ((now - before) / span_s).max(0.0)),
        busiest,
        pressure: now.zip(pressure).map(|(now, before)| (now.since(&before).as_secs_f64() / span_s).min(1.0)),
        ..Watched::default()
    }
}

/// Counters that are compared over the examination.
struct Counters {
    machine: Option<MachineTime>,
    throttling: Option<Throttling>,
    softnet: Option<Softnet>,
    /// The counters and the queue disciplines of each interface, by name.
    interfaces: BTreeMap<String, (Option<NicCounters>, Vec<QueueDiscipline>)>,
}

impl Counters {
    fn read(names: &[String]) -> Counters {
        Counters {
            machine: MachineTime::until_now(),
            throttling: Throttling::of_process(),
            softnet: Softnet::until_now(),
            interfaces: names
                .iter()
                .map(|name| (name.clone(), (Nic::counters(name), QueueDiscipline::of(name))))
                .collect(),
        }
    }

    /// Adds what changed since an earlier reading of the same interfaces.
    fn add_changes(mut self, before: &Counters, interfaces: &mut [InterfaceFacts], watched: &mut Watched) {
        watched.stolen = self.machine.zip(before.machine).and_then(|(now, before)| {
            let passed = now.since(&before);
            let all_s = passed.busy_s + passed.idle_s;
            (all_s > 0.0).then(|| passed.stolen_s / all_s)
        });
        watched.throttling = self.throttling.zip(before.throttling.as_ref()).map(|(now, before)| now.since(before));
        watched.softnet = self.softnet.zip(before.softnet).map(|(now, before)| (now, now.since(&before)));
        for facts in interfaces {
            let Some((counters, disciplines)) = self.interfaces.remove(&facts.nic.name) else { continue };
            let Some((earlier, earlier_disciplines)) = before.interfaces.get(&facts.nic.name) else { continue };
            facts.counters = counters.zip(*earlier).map(|(now, before)| (now, now.since(&before)));
            let dropped = QueueDiscipline::dropped_by_roots;
            facts.dropped_now = dropped(&disciplines).saturating_sub(dropped(earlier_disciplines));
            facts.disciplines = disciplines;
        }
    }
}
