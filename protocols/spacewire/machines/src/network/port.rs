//! One end of a link in the network: its transmitter's clock, and the characters on the way to it.
use alloc::collections::VecDeque;

use super::random_bits::Flips;
use super::router::PortFaults;
use crate::character::{Character, Code};
use crate::end::{Counts, DISCONNECTED, End, Fault, LinkError, START_UP_RATE, Sent, State};
use crate::time::Picos;

/// Later than everything.
pub(super) const NEVER: u64 = u64::MAX;

/// Picoseconds in a second.
pub(super) const SECOND: u64 = 1_000_000_000_000;

/// The part of the network that an end belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    Node(usize),
    Router(usize, u8),
}

/// A code on its way, with the times of its first and its last bit at the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flight {
    pub(super) begin: u64,
    pub(super) arrive: u64,
    pub(super) cargo: Cargo,
}

/// Something on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cargo {
    Code(Code),
    /// A character that is no code: bit errors made it.
    Character(Character),
    Error(LinkError),
}

/// A fault that waits for its time, or for N-chars to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Planned {
    pub(super) at: u64,
    pub(super) fault: Fault,
    /// The time until the next one of the same kind, if there is another.
    pub(super) every: Option<u64>,
}

/// One end of a link. Its peer is the other one of an even and the next odd number.
#[derive(Debug)]
pub(super) struct Port {
    pub(super) end: End,
    pub(super) owner: Owner,
    /// Whether the other end or this one is a router's.
    pub(super) routed: bool,
    /// Whether its next event may have changed.
    pub(super) touched: bool,
    /// Bit times in picoseconds: in Run, and before.
    pub(super) bit_run: u64,
    pub(super) bit_start: u64,
    /// Bit time of the code in progress.
    pub(super) bit_now: u64,
    pub(super) cable: u64,
    /// Whether the transmitter is on.
    pub(super) on: bool,
    /// Where the code in progress ends. When idle: where the first NULL begins that has not been counted.
    pub(super) boundary: u64,
    pub(super) idle: bool,
    /// When to choose the next code.
    pub(super) transmit_at: u64,
    pub(super) inbound: VecDeque<Flight>,
    pub(super) disconnect_at: u64,
    pub(super) listening_since: u64,
    /// Whether an ESC came that belongs to no code yet. Only bit errors make it.
    pub(super) escaped: bool,
    pub(super) flips: Option<Flips>,
    /// Characters that bit errors altered unnoticed in what this end sends.
    pub(super) unnoticed: u64,
    /// Bytes of the packet that arrives, and whether there is one.
    pub(super) arriving: Option<u64>,
    pub(super) planned: VecDeque<Planned>,
    pub(super) after_nchars: Option<(u64, Fault)>,
    /// Whether a fault or a bit error since the last failure may have left the two ends with different ideas of the credit.
    pub(super) unbalanced: bool,
    /// When the host takes the next N-char.
    pub(super) sink_at: u64,
    /// When the next N-char of the wormhole through this output is ready.
    pub(super) ready_at: u64,
    /// When an N-char left a router's buffer here last, and how many that counted there left at that time.
    pub(super) left_at: u64,
    pub(super) left: u16,
    /// When the watchdog of this input looks.
    pub(super) watchdog_at: u64,
    pub(super) watchdog: u64,
    /// A time-code that a router forwards, and when.
    pub(super) time_code: Option<(u64, u8)>,
    /// The earliest of the rare times.
    pub(super) alarm: u64,
    pub(super) faults: PortFaults,
}

impl Port {
    pub(super) fn new(end: End, owner: Owner, rate: u64, cable: u64, flips: Option<Flips>) -> Self {
        let bit_run = (SECOND + rate / 2) / rate;
        let bit_start = SECOND / START_UP_RATE;
        Port {
            end,
            owner,
            routed: false,
            touched: false,
            bit_run,
            bit_start,
            bit_now: bit_start,
            cable,
            on: false,
            boundary: 0,
            idle: false,
            transmit_at: NEVER,
            inbound: VecDeque::with_capacity(64),
            disconnect_at: NEVER,
            listening_since: 0,
            escaped: false,
            flips,
            unnoticed: 0,
            arriving: None,
            planned: VecDeque::new(),
            after_nchars: None,
            unbalanced: false,
            sink_at: NEVER,
            ready_at: NEVER,
            left_at: NEVER,
            left: 0,
            watchdog_at: NEVER,
            watchdog: NEVER,
            time_code: None,
            alarm: NEVER,
            faults: PortFaults::default(),
        }
    }

    /// Sends a fault at the next boundary.
    pub(super) fn inject(&mut self, fault: Fault) {
        self.end.inject(fault);
        self.unbalanced |= matches!(fault, Fault::Fct | Fault::WithoutCredit);
    }

    /// Removes `n` N-chars from a router's buffer. The transmitter knows of their places from the next moment on, so that the
    /// order of choices at one time does not matter.
    pub(super) fn leaves(&mut self, n: u16, now: u64) {
        self.end.take(n);
        self.left = if self.left_at == now { self.left + n } else { n };
        self.left_at = now;
    }

    /// Chooses what is sent at `now`.
    pub(super) fn choose(&mut self, offered: Option<Code>, now: u64) -> Sent {
        if self.left_at != now {
            return self.end.send(offered, Picos(now));
        }
        self.end.hold(self.left);
        let sent = self.end.send(offered, Picos(now));
        self.end.take(self.left);
        sent
    }

    pub(super) fn runs(&self) -> bool {
        self.end.state() == State::Run
    }

    /// Plans a fault, behind those that are due before it.
    pub(super) fn plan(&mut self, planned: Planned) {
        let behind = self.planned.iter().position(|other| other.at > planned.at).unwrap_or(self.planned.len());
        self.planned.insert(behind, planned);
    }

    /// Returns the bit time of a code that begins now.
    pub(super) fn bit(&self) -> u64 {
        if self.runs() { self.bit_run } else { self.bit_start }
    }

    /// Returns when something arrives or a time is over.
    pub(super) fn event_at(&self) -> u64 {
        let arrives = self.inbound.front().map_or(NEVER, |flight| flight.arrive);
        let deadline = self.end.deadline().map_or(NEVER, |due| due.0);
        arrives.min(deadline).min(self.disconnect_at).min(self.alarm)
    }

    /// Returns twice the time of the next event, plus one if that is a choice of the transmitter: at the same time, everything
    /// else in the network goes first.
    pub(super) fn key(&self) -> u64 {
        let event = self.event_at().saturating_mul(2);
        event.min(self.transmit_at.saturating_mul(2).saturating_add(1))
    }

    /// Returns the earliest of the rare times but that of the next N-char through an output.
    pub(super) fn alarm_but_ready(&self) -> u64 {
        let planned = self.planned.front().map_or(NEVER, |planned| planned.at);
        let time_code = self.time_code.map_or(NEVER, |(at, _)| at);
        planned.min(time_code).min(self.sink_at).min(self.watchdog_at)
    }

    /// Brings [`alarm`](Self::alarm) up to date.
    pub(super) fn set_alarm(&mut self) {
        self.alarm = self.alarm_but_ready().min(self.ready_at);
    }

    /// Returns the time of the last transition before the transmitter stops at `now`.
    pub(super) fn last_transition(&self, now: u64) -> u64 {
        let bit = self.bit_now;
        if self.boundary > now {
            self.boundary - (self.boundary - now).div_ceil(bit) * bit
        } else {
            self.boundary + (now - self.boundary) / bit * bit
        }
    }

    /// Takes note that the far end's transmitter made its last transition at `last`.
    pub(super) fn expect_disconnect(&mut self, last: u64) {
        self.disconnect_at = last + self.cable + DISCONNECTED.0;
    }

    /// Returns when an idle transmitter sends the first NULL with a bit error.
    pub(super) fn wrong_null_at(&self) -> u64 {
        let right = self.flips.as_ref().map(|flips| flips.right_units(8));
        right.map_or(NEVER, |nulls| self.boundary.saturating_add(nulls.saturating_mul(8 * self.bit_now)))
    }

    /// Returns until when every code that begins arrives as it was sent, for certain.
    pub(super) fn right_until(&self) -> u64 {
        let Some(flips) = &self.flips else { return NEVER };
        // No code of a batch has more than ten bits.
        let spare = flips.right_units(1).checked_sub(10).map(|bits| bits.saturating_mul(self.bit_now));
        spare.map_or(self.boundary.saturating_sub(1), |spare| self.boundary.saturating_add(spare))
    }

    /// Takes over what a transmitter sent in a batch, and where it stands.
    pub(super) fn transmitted(&mut self, sent: &Counts, boundary: u64, idle: bool) {
        if let Some(flips) = &mut self.flips {
            flips.skip(sent.bits());
        }
        (self.boundary, self.idle) = (boundary, idle);
        self.transmit_at = if idle { self.wrong_null_at() } else { boundary };
    }

    /// Counts NULLs of an idle transmitter that began before `now`, without those counted already.
    pub(super) fn nulls_before(&self, now: u64) -> u64 {
        now.saturating_sub(self.boundary).div_ceil(8 * self.bit_now)
    }

    /// Counts NULLs of an idle transmitter that began by `now`, without those counted already.
    pub(super) fn idle_nulls(&self, now: u64) -> u64 {
        if self.idle && now >= self.boundary { (now - self.boundary) / (8 * self.bit_now) + 1 } else { 0 }
    }
}
