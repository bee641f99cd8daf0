use super::Named;
use super::snapshot::BridgeSnapshot;
use crate::recording::Watched;
use hodo_daemon::Rounds;
use hodo_io::{Attendant, Snapshot, Trace};
use hodo_machine::{Closed, Instant};
use hodo_spacewire::bridge::{Bridge, BridgeEvent};
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

/// The least shortfall between two lines in the log.
const SHORTFALL: Duration = Duration::from_millis(100);

/// The thread of a bridge: logs its events, and passes its counters to the pages.
pub struct BridgeThread<O> {
    rounds: Rounds,
    snapshot: Arc<Snapshot<BridgeSnapshot>>,
    names: Named,
    deadlocks: u64,
    shortfall: Duration,
    trace: Option<Arc<Trace>>,
    has_failed: bool,
    observer: PhantomData<O>,
}

impl<O: Watched> BridgeThread<O> {
    pub fn new(
        rounds: Rounds,
        snapshot: Arc<Snapshot<BridgeSnapshot>>,
        names: Named,
        trace: Option<Arc<Trace>>,
    ) -> Self {
        let shortfall = Duration::ZERO;
        BridgeThread {
            rounds,
            snapshot,
            names,
            deadlocks: 0,
            shortfall,
            trace,
            has_failed: false,
            observer: PhantomData,
        }
    }

    fn gate(&self, number: usize) -> &str {
        self.names.gates.get(number).map_or("?", String::as_str)
    }

    /// Logs what the network has done meanwhile.
    fn look_at_network(&mut self, bridge: &Bridge<O>) {
        let is_stuck = u64::from(bridge.network().deadlock().is_some());
        if is_stuck > self.deadlocks {
            tracing::warn!(
                "packets in routers wait for each other in a circle, until a watchdog or an error cuts one of them"
            );
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

    /// Passes on what was recorded, and logs when no more can be.
    fn look_at_recording(&mut self, bridge: &Bridge<O>) {
        bridge.network().observed().look_in(bridge.network().now());
        let failed = self.trace.as_ref().filter(|_| !self.has_failed).and_then(|trace| trace.counters().failed);
        if let Some(why) = failed {
            tracing::error!("the recording has ended: {why}");
            self.has_failed = true;
        }
    }
}

impl<O: Watched> Attendant for BridgeThread<O> {
    type Machine = Bridge<O>;

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

    fn look_in(&mut self, now: Instant, bridge: &Bridge<O>) -> Option<()> {
        let recording = || self.trace.as_ref().map(|trace| trace.counters());
        self.snapshot.offer(|| BridgeSnapshot::of(now, bridge, &self.names.network, recording()));
        self.look_at_network(bridge);
        self.look_at_recording(bridge);
        if self.rounds.look_in(now) {
            self.rounds.reloaded("a bridge reads its file only when it starts");
        }
        None
    }
}
