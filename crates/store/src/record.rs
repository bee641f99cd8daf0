//! An event and its verdict.

use hodo_machine::codes;

codes! {
    /// The outcome of an event. Every event has exactly one.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Verdict: u8 {
        /// A node wants to keep the event; its data is stored.
        Accepted = 1 => "accepted",
        /// A node does not want to keep the event.
        Rejected = 2 => "rejected",
        /// No node could decide on the event; its data is stored.
        Quarantined = 3 => "quarantined",
        /// Fragments were missing, and the event was given up.
        Incomplete = 4 => "incomplete",
    }
}

impl Verdict {
    /// Returns whether the data of such events are stored.
    #[must_use]
    pub fn keeps_data(self) -> bool {
        matches!(self, Verdict::Accepted | Verdict::Quarantined)
    }
}

/// An event with its verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// The run that the event belongs to.
    pub run: u32,
    /// The event's number in the run; every `u64` but the last.
    pub event: u64,
    /// The verdict.
    pub verdict: Verdict,
    /// The node that decided.
    pub node: u32,
    /// The number of nodes that had the event.
    pub attempts: u8,
    /// Whether fragments are missing.
    pub partial: bool,
    /// The time of the verdict, in ns since 1970.
    pub time_ns: u64,
    /// Whether this is no verdict: the data came under the number of another event, and are kept beside it. `node` is the source
    /// that gave them.
    pub conflict: bool,
    /// A checksum of the event as it was given, of the application's choice: 0 where it is not known.
    pub given: u32,
    /// The event's data; stored only if [`Verdict::keeps_data`].
    pub data: &'a [u8],
}

impl<'a> Record<'a> {
    /// Returns the record of an event: by no node, in no attempt, at no time.
    #[must_use]
    pub const fn new(run: u32, event: u64, verdict: Verdict, data: &'a [u8]) -> Self {
        let (node, attempts, partial, conflict, given, time_ns) = (0, 0, false, false, 0, 0);
        Record { run, event, verdict, node, attempts, partial, time_ns, conflict, given, data }
    }
}
