//! The counts of an end.
use super::LinkError;
use crate::character::Code;

/// Codes of every kind in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the standard's names")]
pub struct Counts {
    pub nulls: u64,
    pub fcts: u64,
    pub data: u64,
    pub eops: u64,
    pub eeps: u64,
    pub time_codes: u64,
}

impl Counts {
    /// Adds `n` codes of one kind.
    pub fn count(&mut self, code: Code, n: u64) {
        *match code {
            Code::Null => &mut self.nulls,
            Code::Fct => &mut self.fcts,
            Code::Data(_) => &mut self.data,
            Code::Eop => &mut self.eops,
            Code::Eep => &mut self.eeps,
            Code::TimeCode(_) => &mut self.time_codes,
        } += n;
    }

    /// Adds the codes of another period.
    pub fn add(&mut self, other: &Counts) {
        self.nulls += other.nulls;
        self.fcts += other.fcts;
        self.data += other.data;
        self.eops += other.eops;
        self.eeps += other.eeps;
        self.time_codes += other.time_codes;
    }

    /// Returns how many bits these codes have.
    #[must_use]
    pub fn bits(&self) -> u64 {
        10 * self.data + 4 * (self.fcts + self.eops + self.eeps) + 8 * self.nulls + 14 * self.time_codes
    }

    /// Returns the N-chars: data and the ends of packets.
    #[must_use]
    pub fn nchars(&self) -> u64 {
        self.data + self.eops + self.eeps
    }
}

/// Errors in Run, by their cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the causes of `LinkError`")]
pub struct Errors {
    pub disconnect: u64,
    pub parity: u64,
    pub escape: u64,
    pub credit: u64,
    pub sequence: u64,
}

impl Errors {
    pub(super) fn count(&mut self, error: LinkError) {
        match error {
            LinkError::Disconnect => self.disconnect += 1,
            LinkError::Parity => self.parity += 1,
            LinkError::Escape => self.escape += 1,
            LinkError::Credit => self.credit += 1,
            LinkError::Sequence => self.sequence += 1,
            LinkError::Timeout | LinkError::Disabled => {}
        }
    }
}

/// The counts of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Codes that left.
    pub sent: Counts,
    /// Codes that arrived.
    pub received: Counts,
    /// Errors in Run.
    pub errors: Errors,
    /// How often the link reached Run.
    pub starts: u64,
}
