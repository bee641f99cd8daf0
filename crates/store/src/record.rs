//! An event and what became of it.

/// What became of an event. Every event has exactly one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// A node wants it kept; its data is stored.
    Accepted,
    /// A node does not want it.
    Rejected,
    /// No node could decide on it; its data is stored.
    Quarantined,
    /// Fragments were missing, and it was given up.
    Incomplete,
}

impl Verdict {
    /// All of them, in the order of their codes.
    pub const ALL: [Verdict; 4] = [Verdict::Accepted, Verdict::Rejected, Verdict::Quarantined, Verdict::Incomplete];

    /// Its code in the files.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Verdict::Accepted => 1,
            Verdict::Rejected => 2,
            Verdict::Quarantined => 3,
            Verdict::Incomplete => 4,
        }
    }

    /// The verdict of a code.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|verdict| verdict.code() == code)
    }

    /// Its name, in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Accepted => "accepted",
            Verdict::Rejected => "rejected",
            Verdict::Quarantined => "quarantined",
            Verdict::Incomplete => "incomplete",
        }
    }

    /// Are the data of such events stored?
    #[must_use]
    pub fn keeps_data(self) -> bool {
        matches!(self, Verdict::Accepted | Verdict::Quarantined)
    }
}

/// An event with its verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// The run that it belongs to.
    pub run: u32,
    /// Its number in the run; every `u64` but the last.
    pub event: u64,
    /// What became of it.
    pub verdict: Verdict,
    /// The node that decided.
    pub node: u32,
    /// How many nodes had it.
    pub attempts: u8,
    /// Fragments are missing.
    pub partial: bool,
    /// When it was decided, in ns since 1970.
    pub time_ns: u64,
    /// Its data; stored only where [`Verdict::keeps_data`].
    pub data: &'a [u8],
}
