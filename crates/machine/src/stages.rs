//! Where the time of an operation goes: a machine marks, its driver stamps.
//!
//! A machine has no clock of its own. While it is polled it marks that a stage of an operation is over ([`crate::Outbox::mark`]);
//! its driver adds when that was, and tells the machine ([`crate::Machine::stamped`]). A client keeps these [`Stamps`]
//! for whoever drives it; a server adds them up in [`crate::Spans`], which it can send back. A stage lasts from the
//! end of the one before it, so that the stages of an operation follow each other without gaps.

use crate::Instant;
use alloc::vec::Vec;

/// Stamps that are kept for whoever drives a machine; those beyond are dropped.
const KEPT_MAX: usize = 1 << 16;

/// A stage of an operation is over. The driver stamps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// The stage's name, in the protocol's own terms.
    pub stage: &'static str,
    /// The operation's tag.
    pub tag: u64,
    /// When it is over.
    pub moment: Moment,
}

/// When a stage that was marked is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// At this time, which the machine knows: that of the input which ended the stage, or what [`crate::Outbox::now`] said.
    At(Instant),
    /// Right before the driver writes what the same poll sends.
    Sending,
    /// Once the driver has written that: its system calls have returned.
    Sent,
}

/// A stage of an operation was over at this time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// The stage's name.
    pub stage: &'static str,
    /// The operation's tag.
    pub tag: u64,
    /// When it was over.
    pub at: Instant,
}

impl Mark {
    /// Stamps the mark as a driver that wrote between these two times.
    #[must_use]
    #[inline]
    pub fn stamp(self, sending: Instant, sent: Instant) -> Stamp {
        let at = match self.moment {
            Moment::At(at) => at,
            Moment::Sending => sending,
            Moment::Sent => sent,
        };
        Stamp { stage: self.stage, tag: self.tag, at }
    }
}

/// Which operations are stamped: none at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sampling {
    on: bool,
    zero_bits: u64,
}

impl Sampling {
    /// No operation.
    pub const NONE: Sampling = Sampling { on: false, zero_bits: 0 };
    /// Every operation.
    pub const ALL: Sampling = Sampling { on: true, zero_bits: 0 };

    /// Takes the operations whose tag ends in this many zero bits: one in 2, 4, 8 … if tags are counted up.
    #[must_use]
    pub const fn ending_in_zeros(bits: u32) -> Self {
        let zero_bits = if bits < u64::BITS { (1 << bits) - 1 } else { u64::MAX };
        Sampling { on: true, zero_bits }
    }

    /// Tells whether any operation is stamped.
    #[must_use]
    #[inline]
    pub const fn is_on(self) -> bool {
        self.on
    }

    /// Tells whether the operation with this tag is stamped.
    #[must_use]
    #[inline]
    pub const fn takes(self, tag: u64) -> bool {
        self.on && tag & self.zero_bits == 0
    }
}

/// The stamps that a client keeps until whoever drives it fetches them.
#[derive(Debug, Default)]
pub struct Stamps {
    /// Which operations the client is to mark.
    pub sampling: Sampling,
    kept: Vec<Stamp>,
}

impl Stamps {
    /// Keeps one; of a bounded number.
    #[inline]
    pub fn keep(&mut self, stamp: Stamp) {
        if self.kept.len() < KEPT_MAX {
            self.kept.push(stamp);
        }
    }

    /// Moves all that are kept to the end of `into`, in the order in which they were marked.
    pub fn hand_over(&mut self, into: &mut Vec<Stamp>) {
        into.append(&mut self.kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_stamped_with_the_moment_that_it_names() {
        let [known, sending, sent] = [1, 20, 30].map(Instant::from_nanos);
        for (moment, at) in [(Moment::At(known), known), (Moment::Sending, sending), (Moment::Sent, sent)] {
            let stamp = Mark { stage: "send", tag: 7, moment }.stamp(sending, sent);
            assert_eq!(stamp, Stamp { stage: "send", tag: 7, at });
        }
    }

    #[test]
    fn a_sampling_takes_none_or_all_or_one_in_a_power_of_two() {
        let taken = |sampling: Sampling| (0..64).filter(|tag| sampling.takes(*tag)).count();
        assert_eq!([Sampling::default(), Sampling::NONE].map(taken), [0, 0]);
        assert_eq!([0, 1, 3, 6, 64].map(|bits| taken(Sampling::ending_in_zeros(bits))), [64, 32, 8, 1, 1]);
        assert_eq!(taken(Sampling::ALL), 64);
    }

    #[test]
    fn what_nobody_fetches_is_bounded() {
        let mut stamps = Stamps::default();
        (0..2 * KEPT_MAX as u64).for_each(|tag| stamps.keep(Stamp { stage: "send", tag, at: Instant::ZERO }));
        let mut fetched = Vec::new();
        stamps.hand_over(&mut fetched);
        assert_eq!((fetched.len(), fetched[0].tag), (KEPT_MAX, 0));
        stamps.hand_over(&mut fetched);
        assert_eq!(fetched.len(), KEPT_MAX);
    }
}
