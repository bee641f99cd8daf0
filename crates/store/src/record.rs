//! An event and its verdict.

/// The outcome of an event. Every event has exactly one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// A node wants to keep the event; its data is stored.
    Accepted,
    /// A node does not want to keep the event.
    Rejected,
    /// No node could decide on the event; its data is stored.
    Quarantined,
    /// Fragments were missing, and the event was given up.
    Incomplete,
}

impl Verdict {
    /// Every verdict, in the order of the codes.
    pub const ALL: [Verdict; 4] = [Verdict::Accepted, Verdict::Rejected, Verdict::Quarantined, Verdict::Incomplete];

    /// Returns the verdict's code in the files.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Verdict::Accepted => 1,
            Verdict::Rejected => 2,
            Verdict::Quarantined => 3,
            Verdict::Incomplete => 4,
        }
    }

    /// Returns the verdict of a code.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|verdict| verdict.code() == code)
    }

    /// Returns the verdict's name, in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Accepted => "accepted",
            Verdict::Rejected => "rejected",
            Verdict::Quarantined => "quarantined",
            Verdict::Incomplete => "incomplete",
        }
    }

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
    /// The event's data; stored only if [`Verdict::keeps_data`].
    pub data: &'a [u8],
}
