//! Packets in routers that wait for each other in a circle: nothing but a watchdog or an error ends that.
//!
//! An input is dead if all that it could go on with is dead: the packets that hold its outputs, the input behind its output
//! that gives no credit, or the router before it that sends no more. It is found as the greatest set for which that is so.
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::port::{Cargo, NEVER, Owner};
use super::router::{Source, Worm};
use super::{Network, Observer, Place, Record, RouterId};
use crate::end::CREDIT_OF_FCT;
use crate::time::Picos;

/// How often packets that wait for an output are looked at.
pub(super) const CHECK_INTERVAL: Picos = Picos::from_nanos(100_000);

/// What a packet waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WaitsFor {
    /// Outputs of its router that other packets hold, one in each bit.
    Outputs(u32),
    /// Room behind an output of its router.
    Credit(u8),
    /// The rest of itself, from the router before.
    Characters,
}

/// A packet that stands at the input of a router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    /// The input.
    pub at: Place,
    /// What it waits for.
    pub waits_for: WaitsFor,
    /// The inputs whose packets would have to move first.
    pub behind: Vec<Place>,
}

/// Packets that wait for each other in a circle, in the order of their places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deadlock {
    /// When it was found.
    pub at: Picos,
    /// The packets.
    pub blocked: Vec<Blocked>,
}

/// One input: its router and its number.
type Spot = (usize, u8);

impl<O: Observer> Network<O> {
    /// Returns the circle of packets that was found last, as long as it lasts. Routers look for one every 100 us while packets wait.
    #[must_use]
    pub fn deadlock(&self) -> Option<&Deadlock> {
        self.deadlock.as_ref()
    }

    pub(super) fn check_deadlock(&mut self, now: u64) {
        let waiting = self.routers.iter().any(|router| router.waiting != 0);
        // One more look after the last packet went on.
        self.next_check = if waiting { now + CHECK_INTERVAL.0 } else { NEVER };
        let blocked = self.find_deadlock();
        if blocked.is_empty() {
            self.deadlock = None;
            return;
        }
        if self.deadlock.as_ref().is_some_and(|known| known.blocked == blocked) {
            return;
        }
        let deadlock = Deadlock { at: Picos(now), blocked };
        if O::ACTIVE {
            let place = deadlock.blocked[0].at;
            self.observer.record(Picos(now), place, Record::Deadlock(&deadlock));
        }
        self.deadlock = Some(deadlock);
    }

    fn find_deadlock(&self) -> Vec<Blocked> {
        let mut dead: BTreeMap<Spot, (WaitsFor, Vec<Spot>)> = BTreeMap::new();
        for (number, router) in self.routers.iter().enumerate() {
            for input in 0..router.inputs.len() as u8 {
                if let Some(wait) = self.blocked(number, input) {
                    dead.insert((number, input), wait);
                }
            }
        }
        loop {
            let alive: Vec<Spot> = dead
                .iter()
                .filter(|(_, (_, behind))| behind.iter().any(|spot| !dead.contains_key(spot)))
                .map(|(spot, _)| *spot)
                .collect();
            if alive.is_empty() {
                break;
            }
            for spot in alive {
                dead.remove(&spot);
            }
        }
        let place = |(router, input): Spot| Place::Router(RouterId(router), input);
        dead.into_iter()
            .map(|(spot, (waits_for, behind))| Blocked {
                at: place(spot),
                waits_for,
                behind: behind.into_iter().map(place).collect(),
            })
            .collect()
    }

    /// Returns what an input waits for, and the inputs that could end that. `None` if it can move, or something else than a router can end it.
    fn blocked(&self, number: usize, input: u8) -> Option<(WaitsFor, Vec<Spot>)> {
        let router = &self.routers[number];
        match router.inputs[usize::from(input)].worm {
            Worm::Waiting(route) => {
                let outputs = (1..32u8).filter(|output| route.outputs & (1 << output) != 0);
                let holders: Option<Vec<Spot>> = outputs
                    .filter(|output| router.port(*output).is_some())
                    .map(|output| match router.outputs[usize::from(output)].source {
                        Source::Input(holder) => Some((number, holder)),
                        _ => None,
                    })
                    .collect();
                Some((WaitsFor::Outputs(route.outputs), holders.filter(|holders| !holders.is_empty())?))
            }
            Worm::Routed(output) if router.inputs[usize::from(input)].stored.is_empty() => {
                let port = router.port(input)?;
                let from = self.ports[port ^ 1].owner;
                let arrives = self.ports[port].inbound.iter().any(|flight| match flight.cargo {
                    Cargo::Code(code) => code.is_nchar(),
                    _ => true,
                });
                let Owner::Router(before, port_before) = from else { return None };
                match self.routers[before].outputs[usize::from(port_before)].source {
                    Source::Input(holder) if !arrives && output != 0 => {
                        Some((WaitsFor::Characters, [(before, holder)].into()))
                    }
                    _ => None,
                }
            }
            Worm::Routed(output) => {
                let port = router.port(output)?;
                let far = &self.ports[port ^ 1];
                let stands = self.ports[port].runs()
                    && far.runs()
                    && self.ports[port].end.credit() == 0
                    && far.end.promised() < CREDIT_OF_FCT
                    && !far.end.fct_is_due()
                    && far.inbound.is_empty();
                match far.owner {
                    Owner::Router(next, at) if stands => Some((WaitsFor::Credit(output), [(next, at)].into())),
                    _ => None,
                }
            }
            Worm::Header | Worm::Spilling | Worm::Configuring => None,
        }
    }
}
