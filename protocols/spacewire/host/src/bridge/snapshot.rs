use crate::Names;
use hodo_io::TraceCounters;
use hodo_machine::Instant;
use hodo_spacewire::Picos;
use hodo_spacewire::bridge::{Bridge, GateCounters, Lateness};
use hodo_spacewire::end::{State, Statistics};
use hodo_spacewire::network::{Deadlock, Observer, PortFaults};
use hodo_spacewire::rmap::TargetStatistics;
use std::time::Duration;

/// The state of a bridge at one moment.
#[derive(Debug)]
pub struct BridgeSnapshot {
    /// The time since the bridge began.
    pub now: Instant,
    /// The time of the network.
    pub network_time: Picos,
    /// How far the network has fallen behind for good.
    pub shortfall: Duration,
    /// How late the network was.
    pub lateness: Lateness,
    /// Each gate: the hosts that are connected, and its counters.
    pub gates: Vec<(usize, GateCounters)>,
    /// The two ends of each link.
    pub links: Vec<[EndSnapshot; 2]>,
    /// RMAP targets, by the names of their nodes.
    pub targets: Vec<(String, TargetStatistics)>,
    /// A circle of packets that wait for each other.
    pub deadlock: Option<Deadlock>,
    /// The counters of the recording, if there is one.
    pub recording: Option<TraceCounters>,
}

/// The state of the end of a link.
#[derive(Debug)]
pub struct EndSnapshot {
    pub state: State,
    pub credit: u16,
    pub counts: Statistics,
    pub faults: PortFaults,
}

impl BridgeSnapshot {
    pub fn of<O: Observer>(now: Instant, bridge: &Bridge<O>, names: &Names, recording: Option<TraceCounters>) -> Self {
        let network = bridge.network();
        let end = |place| {
            let end = network.end(place).expect("the link is in this network");
            EndSnapshot {
                state: end.state(),
                credit: end.credit(),
                counts: network.statistics(place).expect("the link is in this network"),
                faults: network.faults(place).expect("the link is in this network"),
            }
        };
        let name = |node| names.nodes.iter().find(|(_, known)| *known == node).map_or("?", |(name, _)| name);
        BridgeSnapshot {
            now,
            network_time: network.now(),
            shortfall: bridge.shortfall(),
            lateness: bridge.lateness(),
            gates: bridge.hosts().zip(bridge.counters()).collect(),
            links: names.links.iter().map(|ends| [end(ends[0].1), end(ends[1].1)]).collect(),
            targets: bridge.targets().map(|(node, counts)| (name(node).to_owned(), *counts)).collect(),
            deadlock: network.deadlock().cloned(),
            recording,
        }
    }
}
