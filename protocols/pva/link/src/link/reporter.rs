//! Questions to the far end about itself: the usage of its process, its stages, its clock.

use crate::report;
use hodo_machine::{Difference, Instant};
use hodo_measure::{ClockDifference, FarEnd};
use hodo_pva::Value;
use std::time::Duration;

/// How often the far end's clock is read while updates come.
const CLOCK_READ: Duration = Duration::from_millis(250);

/// The reports of a far end.
#[derive(Debug, Default)]
pub(super) struct Reporter {
    /// The client's numbers of the channel and the operation; `None` at a server that is not `hodo serve`.
    numbers: Option<(u32, u32)>,
    /// When the question was asked that is not answered.
    asked: Option<Instant>,
    next: Instant,
    difference: Difference,
    last: Option<FarEnd>,
}

impl Reporter {
    /// Creates one that calls with this operation.
    pub(super) fn new(channel: u32, operation: u32) -> Self {
        Reporter { numbers: Some((channel, operation)), ..Reporter::default() }
    }

    /// Tells whether this is its channel.
    pub(super) fn is_at(&self, channel: u32) -> bool {
        self.numbers.is_some_and(|numbers| numbers.0 == channel)
    }

    /// Gives the reports up: the far end has none.
    pub(super) fn give_up(&mut self) {
        *self = Reporter::default();
    }

    /// Returns the operation that asks, if none is under way.
    pub(super) fn ask(&mut self, now: Instant) -> Option<u32> {
        let (_, operation) = self.numbers.filter(|_| self.asked.is_none())?;
        (self.asked, self.next, self.last) = (Some(now), now + CLOCK_READ, None);
        Some(operation)
    }

    /// Tells whether there are reports at all.
    pub(super) const fn is_there(&self) -> bool {
        self.numbers.is_some()
    }

    /// Tells whether a question is not answered yet.
    pub(super) const fn is_asked(&self) -> bool {
        self.asked.is_some()
    }

    /// Tells whether it is time to read the clock again.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.numbers.is_some() && self.asked.is_none() && now >= self.next
    }

    /// Takes the reply, or that there is none.
    pub(super) fn take(&mut self, reply: Option<&Value>, now: Instant) {
        let Some((asked, report)) = self.asked.take().zip(reply.and_then(report::read)) else { return };
        self.difference.read(asked.as_nanos(), report.now_ns, now);
        let clock = self.difference.known().map(|(ahead_ns, error_ns)| ClockDifference { ahead_ns, error_ns });
        self.last = Some(FarEnd { clock, ..report.far_end });
    }

    /// Returns the latest report.
    pub(super) fn last(&self) -> Option<FarEnd> {
        self.last.clone()
    }

    /// Returns the nanoseconds since a time on the far end's clock; `None` while that is not known.
    #[inline]
    pub(super) fn since(&self, theirs_ns: u64, now: Instant) -> Option<u64> {
        self.difference.since(theirs_ns, now)
    }
}
