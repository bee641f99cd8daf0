use super::Discarded;
use crate::rmap::{CommandHeader, Operation, Status};

/// Status codes that have a meaning lie below this.
const CODES: usize = 13;

/// Counts of a target since it was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TargetStatistics {
    /// Reads that were carried out.
    pub reads: u64,
    /// Writes that were carried out.
    pub writes: u64,
    /// Read-modify-writes that were carried out.
    pub modifies: u64,
    /// Bytes that reads have returned.
    pub bytes_read: u64,
    /// Bytes that writes have stored.
    pub bytes_written: u64,
    /// Replies, with any status.
    pub replies: u64,
    /// Packets of another protocol.
    pub other_protocols: u64,
    /// Replies that arrived in place of commands.
    pub stray_replies: u64,
    /// Packets that an EOP ended within their header.
    pub truncated: u64,
    /// Packets that an EEP ended within their header.
    pub eep_in_header: u64,
    /// Packets with a wrong header CRC.
    pub header_crc_errors: u64,
    /// Packets of a reserved type that had no reply.
    pub reserved_types: u64,
    statuses: [u64; CODES],
}

impl TargetStatistics {
    /// Returns how many commands had this status, also without a reply.
    #[must_use]
    pub fn with_status(&self, status: Status) -> u64 {
        self.statuses.get(usize::from(status.code())).copied().unwrap_or_default()
    }

    /// Returns how many commands were refused, for whatever reason.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.statuses[1..].iter().sum()
    }

    pub(super) fn count(&mut self, command: &CommandHeader, status: Status, has_reply: bool) {
        self.replies += u64::from(has_reply);
        if let Some(count) = self.statuses.get_mut(usize::from(status.code())) {
            *count += 1;
        }
        if status != Status::Success {
            return;
        }
        let length = u64::from(command.length);
        match command.instruction.operation() {
            Some(Operation::Read) => {
                self.reads += 1;
                self.bytes_read += length;
            }
            Some(Operation::Write { .. }) => {
                self.writes += 1;
                self.bytes_written += length;
            }
            Some(Operation::ReadModifyWrite) => self.modifies += 1,
            None => {}
        }
    }

    pub(super) fn discard(&mut self, why: Discarded) {
        let count = match why {
            Discarded::OtherProtocol => &mut self.other_protocols,
            Discarded::Reply => &mut self.stray_replies,
            Discarded::Truncated => &mut self.truncated,
            Discarded::Eep => &mut self.eep_in_header,
            Discarded::HeaderCrc => &mut self.header_crc_errors,
            Discarded::ReservedType => &mut self.reserved_types,
        };
        *count += 1;
    }
}
