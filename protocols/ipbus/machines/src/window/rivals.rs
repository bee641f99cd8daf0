//! Hosts that find the numbers of their packets taken, again and again.
//!
//! A device drops such packets without a word, and who takes all the numbers hears of nobody. But the device's status tells what has arrived
//! of late, so a window looks at it now and then: requests that are not its own, and packets that were refused where it has lost none, are
//! another host's. From then on each pauses after its packets. One on a short way is soon done with its pause, and another on a long one
//! comes too late for the number that it was told: the pause grows while others are refused, until one of them takes a number.

use super::sharing::CONTENDED;
use super::{State, Window};
use crate::wire::status::{EVENTS, Event, Traffic};

/// The packets between two looks at the history.
const GLANCE: u32 = 128;
/// A trace of another host counts for so many histories without one. Two show it, for a poor network leaves some as well.
const TRACE: u32 = 64;
/// A request for the status, which comes from who only looks, too, counts for less.
const TRACE_STATUS: u32 = 16;
/// The longest pause after a packet, in usual round-trips.
const PAUSE: u64 = 2;
/// The pause doubles so often at the first packets that are refused.
const DOUBLINGS: u32 = 2;
/// The pause doubles again with so many more.
const REFUSED_DOUBLES: u32 = 4;
/// No more are counted: a part of the patience bounds the pause, too.
const REFUSED_MAX: u32 = 14 * REFUSED_DOUBLES;

/// The knowledge of a window about hosts that it keeps from the device.
#[derive(Debug, Default)]
pub(super) struct Rivals {
    /// So often packets of others were refused since one of them took a number.
    refused: u32,
    /// Whether the next status was asked for because of its history, and the packets sent since one was.
    glances: bool,
    unglanced: u32,
    /// The count of the traces of others.
    traces: u32,
}

impl Rivals {
    /// Returns the longest pause after a packet, in nanoseconds, where a round-trip usually takes `usual`.
    pub(super) fn pause(&self, usual: u64) -> u64 {
        let doublings = (2 * self.refused).min(DOUBLINGS + self.refused / REFUSED_DOUBLES);
        (PAUSE * usual) << doublings
    }

    /// Takes in that another host has taken a number, or that none has been there for long.
    pub(super) fn yielded(&mut self) {
        self.refused = 0;
    }

    /// Forgets traces: others are known of, or the network doubles packets, and those of our own that are refused look like another's.
    pub(super) fn forget_traces(&mut self) {
        (self.glances, self.unglanced, self.traces) = (false, 0, 0);
    }
}

impl Window {
    /// Tells whether the device's history is to be asked for behind a packet that was sent now.
    #[inline]
    pub(super) fn glances(&mut self) -> bool {
        let rivals = &mut self.sharing.rivals;
        rivals.unglanced += 1;
        if rivals.unglanced < GLANCE {
            return false;
        }
        rivals.unglanced = 0;
        rivals.glances = self.own.is_some() && self.sharing.contended == 0 && self.troubled == 0;
        rivals.glances
    }

    /// Takes in from a device's history that packets of another host do not find their numbers free.
    pub(super) fn look_at_history(&mut self, history: &[Event; EVENTS]) {
        if self.own.is_none() || self.state != State::Open {
            return;
        }
        let has = |events: &[Event], kinds: &[Traffic]| events.iter().any(|event| kinds.contains(&event.traffic()));
        let rivals = &mut self.sharing.rivals;
        if self.sharing.contended > 0 {
            // The last two packets that were taken, and what has come since the first of them.
            let mut taken = history.iter().enumerate().rev().filter(|(_, event)| event.traffic() == Traffic::Control);
            let since = taken.nth(1).map_or(0, |(place, _)| place);
            if has(&history[since..], &[Traffic::Refused]) {
                rivals.refused = (rivals.refused + 1).min(REFUSED_MAX);
                self.sharing.contended = CONTENDED;
            }
        } else if core::mem::take(&mut rivals.glances) && self.troubled == 0 && self.status.due == 0 {
            // The newest may be the request for this status.
            let before = &history[..EVENTS - 1];
            let is_asked = has(before, &[Traffic::Status]);
            rivals.traces = rivals.traces.saturating_sub(1) + if is_asked { TRACE_STATUS } else { 0 };
            if has(before, &[Traffic::Refused, Traffic::Resend]) {
                rivals.traces += TRACE;
            }
            if rivals.traces > TRACE {
                self.note_others();
            }
        }
    }
}
