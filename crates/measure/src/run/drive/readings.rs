//! The readings of counters: around the counted time, around pauses, and around silences.

use super::{Drive, TICK, millis};
use crate::run::accounts::Reading;
use crate::run::silences::Ended;
use crate::{Counters, FarEnd, LinkError, Loss, Mode};
use hodo_machine::Instant;

/// The most channels whose sockets are asked for their retransmissions at each tick.
pub(super) const ASKED_MAX: u32 = 64;

impl Drive<'_> {
    /// Keeps a silence that has just ended and may have been a stall.
    #[cold]
    pub(super) fn silence_ended(&mut self, from: Instant, now: Instant, in_flight: usize) {
        let lasted_s = (now - from).as_secs_f64();
        let due = self.shared.plan.scheduled_rate().map(|rate| {
            let share = f64::from(self.channels) / f64::from(self.shared.plan.channels);
            (rate * share * lasted_s).round() as u64
        });
        // A link that nothing comes from is left at each tick.
        let polls_due = lasted_s / (2.0 * TICK.as_secs_f64());
        let how = Ended {
            from,
            operations_late: due.unwrap_or(in_flight as u64),
            attended: f64::from(self.silent_polls) >= polls_due / 2.0 - 2.0,
            // Without a window nothing is waited for, and what was lost shows only in the far end's counters.
            sends: !self.shared.plan.unbounded && (self.mode != Mode::Receive || self.link.tcp().is_none()),
        };
        let (before, after) = (self.counters.1, self.read_counters());
        self.recorder.silence_ended(how, &before, &after);
        self.counters = (now, after);
    }

    /// Reads the counters that tell what happened in a silence.
    pub(super) fn read_counters(&self) -> Counters {
        let host = self.shared.watch.counters();
        let losses = if self.channels <= ASKED_MAX { self.link.losses() } else { Loss::default() };
        let own = (self.channels <= ASKED_MAX).then_some(losses.retransmitted);
        Counters { retransmitted: own.or(host.retransmitted), lost: losses.lost, given_up: self.accounts.lost, ..host }
    }

    /// Ends a part of the counted time, with the counters of this side, and asks the far end for its own.
    pub(super) fn end_part(&mut self, end: Reading) -> Result<(), LinkError> {
        let Some(start) = self.opened.take() else { return Ok(()) };
        self.accounts.parts.push([start, end]);
        let far = self.ask(false)?;
        if let Some([_, end]) = self.accounts.parts.last_mut() {
            end.far = far;
        }
        Ok(())
    }

    /// Reads the counters of this side's process and machine, once for all links, and of the link's TCP.
    pub(super) fn read_local(&self) -> Reading {
        let (tcp, watch) = (self.link.tcp(), self.shared.watch);
        let counters = watch.counters();
        if self.place != 0 {
            return Reading { tcp, counters, ..Reading::default() };
        }
        Reading {
            far: None,
            local: watch.local_usage(),
            host_s: watch.host_s(),
            machine: watch.machine_busy_s(),
            programs_s: watch.programs_s(),
            processors: watch.processors_busy_s(),
            tcp,
            counters,
        }
    }

    /// Requests the counters of the far end. A far end that reported none the first time gets no further request; one that was waited for in
    /// vain later is gone.
    pub(super) fn ask(&mut self, first: bool) -> Result<Option<FarEnd>, LinkError> {
        if !first && self.accounts.far[0].is_none() {
            return Ok(None);
        }
        let until = self.link.now() + self.shared.plan.stall;
        let reported = self.link.far_end(until, &mut self.done);
        let now = self.link.now();
        self.settle(now, now)?;
        self.heard = now;
        let reported = reported?;
        if reported.is_none() && !first && now >= until {
            return Err(LinkError::Unreported {
                who: "the far end".to_owned(),
                millis: millis(self.shared.plan.stall),
            });
        }
        Ok(reported)
    }

    /// Keeps the silence in which the counted time has come to its end.
    pub(super) fn silence_lasts(&mut self, now: Instant) {
        if let Some(from) = self.recorder.note(now, true, true) {
            self.silence_ended(from, now, self.slots.in_flight());
        }
    }
}
