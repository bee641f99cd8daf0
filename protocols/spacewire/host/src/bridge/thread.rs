use super::Named;
use super::snapshot::BridgeSnapshot;
use hodo_daemon::{Rounds, Snapshot};
use hodo_io::Attendant;
use hodo_machine::{Closed, Instant};
use hodo_spacewire::bridge::{Bridge, BridgeEvent};
use std::sync::Arc;
use std::time::Duration;

/// The least shortfall between two lines in the log.
const SHORTFALL: Duration = Duration::from_millis(100);

/// The thread of a bridge: logs its events, and passes its counters to the pages.
pub struct BridgeThread {
    rounds: Rounds,
    snapshot: Arc<Snapshot<BridgeSnapshot>>,
    names: Named,
    deadlocks: u64,
    shortfall: Duration,
}

impl BridgeThread {
    pub fn new(rounds: Rounds, snapshot: Arc<Snapshot<BridgeSnapshot>>, names: Named) -> Self {
        BridgeThread { rounds, snapshot, names, deadlocks: 0, shortfall: Duration::ZERO }
    }

    fn gate(&self, number: usize) -> &str {
        self.names.gates.get(number).map_or("?", String::as_str)
    }

    /// Logs what the network has done meanwhile.
    fn look_at_network(&mut self, bridge: &Bridge) {
        let is_stuck = u64::from(bridge.network().deadlock().is_some());
        if is_stuck > self.deadlocks {
            tracing::warn!("packets in routers wait for each other in a circle; a watchdog would cut one of them");
        }
        self.deadlocks = is_stuck;
        let shortfall = bridge.shortfall();
        if shortfall > self.shortfall + SHORTFALL {
            tracing::warn!(
                "the network has fallen {} ms behind the clock: this processor is too slow for it, or was taken away",
                shortfall.as_millis()
            );
            self.shortfall = shortfall;
        }
    }
}

impl Attendant for BridgeThread {
    type Machine = Bridge;

    fn told(&mut self, event: BridgeEvent) -> Option<()> {
        match event {
            BridgeEvent::Connected(gate, ends) => {
                tracing::info!("{} has connected to {}", ends.remote, self.gate(gate));
            }
            BridgeEvent::Disconnected(gate, Closed::OverBound) => {
                tracing::warn!("a newer host has taken the place of an older one at {}", self.gate(gate));
            }
            BridgeEvent::Disconnected(gate, why) => tracing::info!("a host of {} is gone: {why}", self.gate(gate)),
            BridgeEvent::Malformed(gate, why) => {
                tracing::warn!("a host of {} was disconnected: {why}", self.gate(gate));
            }
            BridgeEvent::NoGate(address) => tracing::warn!("a connection to {address}, where no gate is, was closed"),
            _ => {}
        }
        None
    }

    fn look_in(&mut self, now: Instant, bridge: &Bridge) -> Option<()> {
        self.snapshot.offer(|| BridgeSnapshot::of(now, bridge, &self.names.network));
        self.look_at_network(bridge);
        if self.rounds.look_in(now) {
            self.rounds.reloaded("a bridge reads its file only when it starts");
        }
        None
    }
}
