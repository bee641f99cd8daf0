use super::{Failure, Ignored};

/// Counts of an initiator since it was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InitiatorStatistics {
    /// Commands, also those without a reply.
    pub commands: u64,
    /// Transactions that succeeded.
    pub succeeded: u64,
    /// Transactions that their targets refused.
    pub refused: u64,
    /// Transactions whose reply was damaged or had another length.
    pub damaged: u64,
    /// Transactions without a reply before their deadline.
    pub timed_out: u64,
    /// Replies after the deadline.
    pub late: u64,
    /// Second replies to a transaction.
    pub duplicate: u64,
    /// Replies to transactions that are not those of this initiator.
    pub unknown: u64,
    /// Replies that do not fit the command with their transaction identifier.
    pub mismatched: u64,
    /// Packets that are no replies.
    pub malformed: u64,
}

impl InitiatorStatistics {
    pub(super) fn complete(&mut self, failure: Option<Failure>) {
        let count = match failure {
            None => &mut self.succeeded,
            Some(Failure::Refused(_)) => &mut self.refused,
            Some(Failure::Damaged(_) | Failure::Length { .. }) => &mut self.damaged,
            Some(Failure::TimedOut) => &mut self.timed_out,
        };
        *count += 1;
    }

    pub(super) fn ignore(&mut self, why: Ignored) {
        let count = match why {
            Ignored::Malformed(_) => &mut self.malformed,
            Ignored::Late(_) => &mut self.late,
            Ignored::Duplicate(_) => &mut self.duplicate,
            Ignored::Unknown(_) => &mut self.unknown,
            Ignored::Mismatched(_) => &mut self.mismatched,
        };
        *count += 1;
    }
}
