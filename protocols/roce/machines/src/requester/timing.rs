//! When a requester sends again (volume 1, 9.7.6).

use crate::{AckTimeout, Connection, Psn};
use core::time::Duration;
use hodo_machine::Instant;

/// Retries of a receiver that is not ready, without an end.
const ANY_NUMBER: u8 = 7;
/// The timeout before a round trip has been measured.
const FIRST: Duration = Duration::from_millis(67);
/// Doublings of a measured timeout that remain once packets are acknowledged. If all remained until a round trip is measured,
/// which takes packets that were sent once, timeouts would grow to seconds where a third of the packets is lost.
const BACKED_OFF_MAX: u32 = 4;
/// The longest measured timeout, as the code 22 of verbs.
const MEASURED_MAX: Duration = Duration::from_secs(17);

/// The timers and the retries of a requester.
#[derive(Debug)]
pub(super) struct Timing {
    timeout: AckTimeout,
    /// When the timeout began: with the first packet in flight, or with the last progress.
    since: Option<Instant>,
    /// Nothing is sent before this, because the receiver is not ready.
    held_until: Option<Instant>,
    retries: u8,
    retries_left: u8,
    not_ready_retries: u8,
    not_ready_left: u8,
    measured: Measured,
}

/// An estimate of the round trip (RFC 6298).
#[derive(Debug, Default)]
struct Measured {
    /// A packet whose acknowledgement will tell a round trip, and when it was sent.
    sample: Option<(Psn, Instant)>,
    /// Whether the next packet is known to be missing at the far end, so that its acknowledgement is of no earlier copy.
    is_missing: bool,
    smoothed: Option<Duration>,
    variation: Duration,
    /// Timeouts since the last sample.
    backed_off: u32,
}

impl Default for Timing {
    fn default() -> Self {
        Timing {
            timeout: AckTimeout::Never,
            since: None,
            held_until: None,
            retries: 0,
            retries_left: 0,
            not_ready_retries: 0,
            not_ready_left: 0,
            measured: Measured::default(),
        }
    }
}

impl Timing {
    pub(super) fn new(connection: &Connection) -> Self {
        Timing {
            timeout: connection.timeout,
            retries: connection.retries,
            retries_left: connection.retries,
            not_ready_retries: connection.receiver_not_ready_retries,
            not_ready_left: connection.receiver_not_ready_retries,
            ..Timing::default()
        }
    }

    /// Returns whether nothing may be sent because the receiver is not ready.
    #[inline]
    pub(super) fn is_held(&self, now: Instant) -> bool {
        self.held_until.is_some_and(|until| now < until)
    }

    /// Notes that a packet was sent, for the first time or again.
    #[inline]
    pub(super) fn note_sent(&mut self, now: Instant, psn: Psn, is_again: bool) {
        if matches!(self.timeout, AckTimeout::Measured(_))
            && self.measured.sample.is_none()
            && (!is_again || core::mem::take(&mut self.measured.is_missing))
        {
            self.measured.sample = Some((psn, now));
        }
    }

    /// Starts the timeout, unless it runs.
    #[inline]
    pub(super) fn start(&mut self, now: Instant) {
        self.held_until = None;
        self.since.get_or_insert(now);
    }

    /// Stops everything.
    pub(super) fn stop(&mut self) {
        (self.since, self.held_until) = (None, None);
    }

    /// Notes that everything before `psn` is acknowledged: retries begin anew, and so does the timeout if packets are in
    /// flight.
    #[inline]
    pub(super) fn progressed(&mut self, now: Instant, psn: Psn, is_waiting: bool) {
        self.since = is_waiting.then_some(now);
        self.held_until = None;
        self.measured.backed_off = self.measured.backed_off.min(BACKED_OFF_MAX);
        self.retries_left = self.retries;
        self.not_ready_left = self.not_ready_retries;
        if let Some((sampled, sent)) = self.measured.sample
            && psn.since(sampled) > 0
        {
            self.measured.take(now - sent);
        }
    }

    /// Counts a retry because packets were lost; `is_missing` if the far end has said so. Returns whether one was left.
    pub(super) fn retry(&mut self, now: Instant, is_missing: bool) -> bool {
        // What was sent twice tells no round trip (Karn), unless the first copy was lost for sure.
        (self.measured.sample, self.measured.is_missing) = (None, is_missing);
        self.since = Some(now);
        match self.retries_left.checked_sub(1) {
            Some(left) => {
                self.retries_left = left;
                true
            }
            None => false,
        }
    }

    /// Notes a timeout: the next one comes later, if round trips are measured.
    pub(super) fn timed_out(&mut self) {
        self.measured.backed_off = (self.measured.backed_off + 1).min(16);
    }

    /// Waits because the receiver is not ready. Returns whether a retry was left. The far end is there: retries after losses
    /// begin anew.
    pub(super) fn hold(&mut self, now: Instant, span: Duration) -> bool {
        if self.not_ready_retries != ANY_NUMBER {
            let Some(left) = self.not_ready_left.checked_sub(1) else { return false };
            self.not_ready_left = left;
        }
        self.retries_left = self.retries;
        self.measured.sample = None;
        self.held_until = Some(now + span);
        self.since = None;
        true
    }

    /// Returns when something has to be done.
    #[inline]
    pub(super) fn deadline(&self, is_waiting: bool) -> Option<Instant> {
        if self.held_until.is_some() {
            return self.held_until;
        }
        let since = self.since.filter(|_| is_waiting)?;
        Some(since + self.span()?)
    }

    fn span(&self) -> Option<Duration> {
        match self.timeout {
            AckTimeout::Never => None,
            AckTimeout::Fixed(span) => Some(span),
            AckTimeout::Measured(least) => Some(self.measured.timeout(least)),
        }
    }

    /// Ends the wait for a receiver that was not ready, if its time has come. Returns whether it did.
    pub(super) fn release(&mut self, now: Instant) -> bool {
        let is_over = self.held_until.is_some_and(|until| now >= until);
        if is_over {
            self.held_until = None;
        }
        is_over
    }
}

impl Measured {
    fn take(&mut self, took: Duration) {
        match self.smoothed {
            None => (self.smoothed, self.variation) = (Some(took), took / 2),
            Some(smoothed) => {
                self.variation = (self.variation * 3 + smoothed.abs_diff(took)) / 4;
                self.smoothed = Some((smoothed * 7 + took) / 8);
            }
        }
        self.sample = None;
        self.backed_off = 0;
    }

    fn timeout(&self, least: Duration) -> Duration {
        let one = self.smoothed.map_or(FIRST, |smoothed| smoothed + 4 * self.variation);
        (one.max(least) * (1 << self.backed_off.min(16))).min(MEASURED_MAX)
    }
}
