//! Broadcast codes in a network: the time of a router, and its interrupt register (ECSS-E-ST-50-12C Rev.1, 5.6.4 and 5.6.5).
//!
//! | code | passes a router |
//! |---|---|
//! | time-code | if it is the one after the last; the router's time is that of the code in any case |
//! | interrupt | if its bit of the register is 0, which becomes 1 |
//! | acknowledgement | if that bit is 1, which becomes 0 |
//! | other flags | only where [`Broadcasting`] says so |
//!
//! What passes leaves through all other ports that run. So an interrupt reaches each node once, through circles too. A bit that nobody
//! acknowledges becomes 0 by a timeout. For a while after it has changed, codes with its number are discarded: a late copy of an
//! interrupt, behind its acknowledgement, would set it again.
//!
//! The text of Rev.1 was not at hand. The rules are those of the router in the GR740 (GR740-UM-DS 1.7, 13.2.18), which is that of the
//! GR718B; there the bits are those of RTR.ISR0 and ISR1, and the timers are the ISR timer and the ISR change timer.
use super::node::Node;
use super::port::Port;
use super::router::Router;
use super::{BuildError, Network, NodeId, Observer, RouterId, UseError};
use crate::broadcast::{ACKNOWLEDGED_INTERRUPTS, Broadcast, EXTENDED_INTERRUPTS};
use crate::time::Picos;

/// The bits of a time-code.
const TIME: u8 = 0x3F;

/// The broadcast codes that pass a router.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Broadcasting {
    /// Those of the edition of 2008: time-codes. A code with other flags neither changes the time nor passes.
    #[default]
    TimeCodes,
    /// Time-codes with any flags, which pass with them: devices that take every code for a time-code.
    AnyFlags,
    /// Those of Rev.1: time-codes and distributed interrupts. Reserved codes do not pass.
    Interrupts(InterruptSettings),
}

/// The interrupts that pass a router.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct InterruptSettings {
    /// Whether interrupts are acknowledged: numbers 0 to 31. Otherwise there are numbers 0 to 63, which end by their timeouts.
    pub acknowledged: bool,
    /// How long an interrupt lasts that nobody acknowledges.
    pub timeout: Picos,
    /// How long an interrupt does not change again, where they are acknowledged. A handler has to wait for longer before it acknowledges.
    pub change: Picos,
}

impl Default for InterruptSettings {
    /// Returns acknowledged interrupts that last for 1 ms and change every 10 us. The standard and the manuals leave both to the network.
    fn default() -> Self {
        InterruptSettings {
            acknowledged: true,
            timeout: Picos::from_nanos(1_000_000),
            change: Picos::from_nanos(10_000),
        }
    }
}

impl Broadcasting {
    /// Checks that an interrupt lasts for longer than the time in which it does not change.
    pub(super) fn check(&self, router: &str) -> Result<(), BuildError> {
        match self {
            Broadcasting::Interrupts(InterruptSettings { timeout, change, .. }) if timeout <= change => {
                Err(BuildError::InterruptTimeout { router: router.into(), timeout: timeout.0, change: change.0 })
            }
            _ => Ok(()),
        }
    }
}

/// The interrupts of a router.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Interrupts {
    /// Interrupts that were neither acknowledged nor ended by their timeouts, one in each bit.
    pub pending: u64,
    /// Interrupts that ended by their timeouts.
    pub timeouts: u64,
}

/// The register of a router with the interrupts that are pending.
#[derive(Debug)]
pub(super) struct InterruptRegister {
    numbers: [Number; EXTENDED_INTERRUPTS as usize],
    /// Timeouts that were noticed.
    timeouts: u64,
}

/// One interrupt.
#[derive(Debug, Clone, Copy, Default)]
struct Number {
    /// From when on it is pending.
    since: Option<u64>,
    /// When it changed last.
    changed: Option<u64>,
}

impl Number {
    /// Returns when it has ended by its timeout, if it has by `now`.
    fn ended(&self, timeout: Picos, now: u64) -> Option<u64> {
        self.since.map(|since| since.saturating_add(timeout.0)).filter(|end| *end <= now)
    }
}

impl Default for InterruptRegister {
    fn default() -> Self {
        InterruptRegister { numbers: [Number::default(); EXTENDED_INTERRUPTS as usize], timeouts: 0 }
    }
}

impl InterruptRegister {
    /// Takes an interrupt, or its acknowledgement. Returns whether it changes the register.
    fn take(&mut self, number: u8, is_acknowledgement: bool, settings: &InterruptSettings, now: u64) -> bool {
        let this = &mut self.numbers[usize::from(number)];
        if let Some(end) = this.ended(settings.timeout, now) {
            *this = Number { since: None, changed: Some(end) };
            self.timeouts += 1;
        }
        let may_change = !settings.acknowledged
            || this.changed.is_none_or(|changed| changed.saturating_add(settings.change.0) <= now);
        let changes = may_change && this.since.is_some() == is_acknowledgement;
        if changes {
            *this = Number { since: (!is_acknowledgement).then_some(now), changed: Some(now) };
        }
        changes
    }

    fn at(&self, settings: &InterruptSettings, now: u64) -> Interrupts {
        let mut interrupts = Interrupts { pending: 0, timeouts: self.timeouts };
        for (number, this) in self.numbers.iter().enumerate() {
            let has_ended = this.ended(settings.timeout, now).is_some();
            interrupts.timeouts += u64::from(has_ended);
            interrupts.pending |= u64::from(this.since.is_some() && !has_ended) << number;
        }
        interrupts
    }
}

impl<O: Observer> Network<O> {
    /// Sends a [broadcast code](crate::broadcast) from a node, before everything else that waits. A time-code that still waits is replaced.
    ///
    /// # Errors
    /// If the node is unknown.
    pub fn broadcast(&mut self, node: NodeId, code: u8) -> Result<(), UseError> {
        let port = self.nodes.get(node.0).ok_or(UseError::UnknownNode(node))?.port;
        self.ports[port].end.send_broadcast(code);
        self.wake(port, self.now);
        self.update();
        Ok(())
    }

    /// Returns the next [broadcast code](crate::broadcast) that arrived at a node, with its time. The last 64 are kept.
    pub fn receive_broadcast(&mut self, node: NodeId) -> Option<(Picos, u8)> {
        self.nodes.get_mut(node.0)?.broadcasts.pop_front()
    }

    /// Returns the interrupts of a router, which has none unless [`Broadcasting::Interrupts`] pass it.
    ///
    /// # Errors
    /// If the router is unknown.
    pub fn interrupts(&self, router: RouterId) -> Result<Interrupts, UseError> {
        let this = self.routers.get(router.0).ok_or(UseError::UnknownRouter(router))?;
        Ok(match &this.settings.broadcasting {
            Broadcasting::Interrupts(settings) => this.interrupts.at(settings, self.now),
            Broadcasting::TimeCodes | Broadcasting::AnyFlags => Interrupts::default(),
        })
    }

    /// Passes a code to the host of a node, which may acknowledge it.
    pub(super) fn broadcast_to_node(&mut self, node: usize, code: u8, now: u64) {
        self.nodes[node].broadcast(code, now);
        let Node { settings, port, .. } = &self.nodes[node];
        if let Broadcast::Interrupt(number) = Broadcast::of(code)
            && settings.acknowledges >> number & 1 != 0
        {
            let (port, at) = (*port, now + settings.acknowledges_after.0);
            self.plan_broadcast(port, at, Broadcast::Acknowledgement(number).byte());
        }
    }

    /// Forwards a broadcast code through all other ports of a router, if it passes.
    pub(super) fn forward_broadcast(&mut self, router: usize, input: u8, code: u8, now: u64) {
        if !self.passes(router, input, code, now) {
            return;
        }
        let Router { links, settings, .. } = &self.routers[router];
        let (links, latency) = (*links, settings.latency);
        let bit_in = links[usize::from(input)].map_or(0, |port| self.ports[port].bit());
        for (number, port) in links.into_iter().enumerate() {
            if let Some(port) = port.filter(|port| number != usize::from(input) && self.ports[*port].runs()) {
                let through = latency.after_last_bit(latency.time_code, bit_in, self.ports[port].bit());
                self.plan_broadcast(port, now + through, code);
            }
        }
    }

    fn plan_broadcast(&mut self, port: usize, at: u64, code: u8) {
        let this = &mut self.ports[port];
        this.plan_broadcast(at, code);
        this.set_alarm();
        self.touch(port);
    }

    /// Takes a code into a router. Returns whether it passes.
    fn passes(&mut self, router: usize, input: u8, code: u8, now: u64) -> bool {
        let Router { settings, links, interrupts, time, .. } = &mut self.routers[router];
        let kind = Broadcast::of(code);
        match (kind, settings.broadcasting) {
            (Broadcast::TimeCode(_), _) | (_, Broadcasting::AnyFlags) => {
                let follows = (*time + 1) & TIME == code & TIME;
                *time = code & TIME;
                if !follows {
                    self.count(router, input, |faults| faults.time_codes += 1);
                }
                follows
            }
            (Broadcast::Interrupt(_) | Broadcast::Acknowledgement(_), Broadcasting::Interrupts(settings)) => {
                let (number, is_acknowledgement) = match kind {
                    Broadcast::Acknowledgement(number) if settings.acknowledged => (number, true),
                    _ => (kind.extended_interrupt().unwrap_or(0), false),
                };
                let both = if settings.acknowledged { 1 | 1 << ACKNOWLEDGED_INTERRUPTS } else { 1 };
                let holds = |port: &Port| port.holds_interrupt(both << number);
                // One with the same number may still be on its way out of a port, and has to stay in front.
                let passes = !links.iter().flatten().any(|port| holds(&self.ports[*port]))
                    && interrupts.take(number, is_acknowledgement, &settings, now);
                if !passes {
                    self.count(router, input, |faults| faults.interrupts += 1);
                }
                passes
            }
            _ => {
                self.count(router, input, |faults| faults.flags += 1);
                false
            }
        }
    }
}
