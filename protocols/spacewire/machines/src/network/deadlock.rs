//! Packets in routers that wait for each other in a circle: nothing but a watchdog or an error ends that.
//!
//! An input is dead if all that it could go on with is dead: the packets that hold its outputs, the input behind its output
//! that gives no credit, or the router before it that sends no more. It is found as the greatest set for which that is so.
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::port::{Cargo, NEVER, Owner, Port};
use super::router::{Source, Worm};
use super::{Network, Observer, Place, Record, RouterId};
use crate::character::Code;
use crate::end::CREDIT_OF_FCT;
use crate::time::Picos;

/// How often packets that wait for an output are looked at.
pub(super) const CHECK_INTERVAL: Picos = Picos::from_nanos(100_000);

/// The thing that a packet waits for.
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
    /// The thing that it waits for.
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
    /// Returns the circle of packets that was found last, as long as it lasts. A network looks for one every 100 us while packets wait, and
    /// when nothing moves any more.
    #[must_use]
    pub fn deadlock(&self) -> Option<&Deadlock> {
        self.deadlock.as_ref()
    }

    /// Tells whether a packet waits for an output, or did when a circle was found that may have ended since.
    pub(super) fn packets_wait(&self) -> bool {
        self.deadlock.is_some() || self.routers.iter().any(|router| router.waiting != 0)
    }

    pub(super) fn check_deadlock(&mut self, now: u64) {
        let blocked = self.find_deadlock();
        // One more look after the last packet went on.
        self.next_check = if self.packets_wait() { now + CHECK_INTERVAL.0 } else { NEVER };
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

    /// Returns what an input waits for, and the inputs one of which could end that. `None` if it can move, or something else than
    /// a router can end it.
    fn blocked(&self, number: usize, input: u8) -> Option<(WaitsFor, Vec<Spot>)> {
        let router = &self.routers[number];
        let is_empty = router.inputs[usize::from(input)].stored.is_empty();
        match router.inputs[usize::from(input)].worm {
            Worm::Waiting(route) => {
                let outputs = (1..32u8).filter(|output| route.outputs & (1 << output) != 0);
                let holders: Option<Vec<Spot>> = outputs
                    .filter(|output| router.port(*output).is_some())
                    .map(|output| match router.outputs[usize::from(output)].source {
                        Source::Input(holder) => Some((number, holder)),
                        Source::Ending | Source::Free => self.output_blocked(router.port(output)?),
                    })
                    .collect();
                Some((WaitsFor::Outputs(route.outputs), holders.filter(|holders| !holders.is_empty())?))
            }
            Worm::Routed(_) if is_empty => {
                let port = router.port(input)?;
                let Owner::Router(before, output) = self.ports[port ^ 1].owner else { return None };
                let arrives = self.ports[port].inbound.iter().any(|flight| match flight.cargo {
                    Cargo::Code(code) => code.is_nchar(),
                    _ => true,
                });
                match self.routers[before].outputs[usize::from(output)].source {
                    Source::Input(holder) if !arrives => Some((WaitsFor::Characters, [(before, holder)].into())),
                    _ => None,
                }
            }
            Worm::Routed(output) => {
                let behind = self.output_blocked(router.port(output)?)?;
                Some((WaitsFor::Credit(output), [behind].into()))
            }
            Worm::Header | Worm::Spilling | Worm::Configuring => None,
        }
    }

    /// Returns the input that has to move before an output can send an N-char again.
    fn output_blocked(&self, port: usize) -> Option<Spot> {
        let (this, far) = (&self.ports[port], &self.ports[port ^ 1]);
        let spot = |port: &Port| match port.owner {
            Owner::Router(router, input) => Some((router, input)),
            Owner::Node(_) => None,
        };
        let has_begun = match this.owner {
            Owner::Router(router, output) => {
                let output = &self.routers[router].outputs[usize::from(output)];
                output.begun && output.source != Source::Free
            }
            Owner::Node(_) => false,
        };
        if this.runs() && !far.runs() && has_begun {
            // The link is about to fail, which cuts the packet.
            return None;
        }
        if !this.runs() || !far.runs() {
            // A link cannot start while an end has no room for an FCT.
            let is_full = |port: &&Port| port.end.filled() + CREDIT_OF_FCT > port.end.settings().buffer;
            return [far, this].into_iter().find(is_full).and_then(spot);
        }
        // Bit errors can alter an FCT unnoticed: credit that was given need not be on its way.
        let arrives = this.inbound.iter().any(|flight| flight.cargo == Cargo::Code(Code::Fct));
        let stands = this.end.credit() == 0 && !arrives && !far.end.fct_is_due();
        if stands { spot(far) } else { None }
    }
}
