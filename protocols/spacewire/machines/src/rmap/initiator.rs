//! An initiator: requests in, commands out, and replies in, completions out.

mod request;
mod statistics;
#[cfg(test)]
mod tests;

pub use request::{Destination, Request, RequestError};
pub use statistics::InitiatorStatistics;

use super::packet::{DataError, Malformed};
use super::{Crc, Instruction, ReplyHeader, Status};
use crate::EndOfPacket;
use alloc::vec;
use alloc::vec::Vec;
use hodo_machine::{Instant, Timers};
use thiserror::Error;

/// The settings of an initiator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InitiatorSettings {
    /// The logical address, to which targets send their replies.
    pub logical_address: u8,
    /// Transactions that may wait for their replies at a time: 1 to 32768.
    pub outstanding_max: u16,
}

impl Default for InitiatorSettings {
    /// Returns the settings of an initiator at the default logical address with 1024 transactions at a time.
    fn default() -> Self {
        InitiatorSettings { logical_address: super::packet::DEFAULT_LOGICAL_ADDRESS, outstanding_max: 1024 }
    }
}

/// An initiator with many transactions outstanding.
///
/// A transaction ends with exactly one [`Completion`]: from its reply, or once its deadline has passed. Replies are matched by
/// their transaction identifiers and may come in any order. Identifiers count through all 16 bits, so that a late reply is not
/// taken for that of another transaction.
#[derive(Debug, Clone)]
pub struct Initiator {
    settings: InitiatorSettings,
    /// For every identifier modulo the length, a power of two, the last transaction that had such an identifier.
    transactions: Vec<Transaction>,
    outstanding: u16,
    next: u16,
    timers: Timers<u16>,
    statistics: InitiatorStatistics,
}

#[derive(Debug, Clone, Copy)]
struct Transaction {
    number: u16,
    state: State,
    tag: u64,
    /// The instruction of the reply.
    instruction: Instruction,
    target: u8,
    /// Bytes of the reply's data.
    length: u32,
    crc: Crc,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Unused,
    Outstanding,
    Completed,
    TimedOut,
}

/// The end of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion<'a> {
    /// The tag of the request.
    pub tag: u64,
    /// The transaction identifier.
    pub transaction: u16,
    /// The data of a read or read-modify-write, nothing after a write, or the failure.
    pub result: Result<&'a [u8], Failure>,
}

/// The failure of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Failure {
    /// The target refused the command.
    #[error("refused by the target: {0}")]
    Refused(Status),
    /// The data of the reply was damaged on its way, or the target's memory failed in the middle of it.
    #[error("reply damaged: {0}")]
    Damaged(DataError),
    /// The reply has another length than the request.
    #[error("{received} bytes in the reply to a request for {requested}")]
    Length {
        /// Bytes that were requested.
        requested: u32,
        /// Bytes that the reply announces.
        received: u32,
    },
    /// No reply arrived before the deadline.
    #[error("no reply before the deadline: check address, path and link")]
    TimedOut,
}

/// The reason that a packet completes no transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Ignored {
    /// The header is no reply's.
    #[error("no reply: {0}")]
    Malformed(Malformed),
    /// The reply came after its transaction had timed out.
    #[error("late reply to transaction {0}")]
    Late(u16),
    /// The transaction had its reply before.
    #[error("second reply to transaction {0}")]
    Duplicate(u16),
    /// No transaction of this initiator had the identifier recently.
    #[error("reply to transaction {0}, which is not one of ours")]
    Unknown(u16),
    /// Instruction or logical addresses differ from those of the command. The transaction goes on waiting.
    #[error("reply to transaction {0} with another instruction or logical address")]
    Mismatched(u16),
}

impl Initiator {
    /// Creates an initiator.
    #[must_use]
    pub fn new(settings: InitiatorSettings) -> Self {
        let settings =
            InitiatorSettings { outstanding_max: settings.outstanding_max.clamp(1, OUTSTANDING_LIMIT), ..settings };
        let unused = Transaction {
            number: 0,
            state: State::Unused,
            tag: 0,
            instruction: Instruction::from_byte(0),
            target: 0,
            length: 0,
            crc: Crc::Standard,
        };
        Initiator {
            settings,
            transactions: vec![unused; 2 * usize::from(settings.outstanding_max).next_power_of_two()],
            outstanding: 0,
            next: 0,
            timers: Timers::default(),
            statistics: InitiatorStatistics::default(),
        }
    }

    /// Returns the settings.
    #[must_use]
    pub fn settings(&self) -> &InitiatorSettings {
        &self.settings
    }

    /// Returns the counts since the initiator was created.
    #[must_use]
    pub fn statistics(&self) -> &InitiatorStatistics {
        &self.statistics
    }

    /// Returns how many transactions wait for their replies.
    #[must_use]
    pub fn outstanding(&self) -> u16 {
        self.outstanding
    }

    /// Returns the earliest deadline, at which [`expire`](Self::expire) is due.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// Appends the command of a request, with the path to its target, and returns its transaction identifier.
    ///
    /// The completion comes with `tag`, or at the latest as a timeout at `deadline`. A write that requests no reply has no
    /// completion.
    ///
    /// # Errors
    /// Returns the reason that no command expresses the request, or [`RequestError::Full`] where completions must come first.
    pub fn send(
        &mut self,
        request: &Request<'_>,
        to: &Destination,
        tag: u64,
        deadline: Instant,
        out: &mut Vec<u8>,
    ) -> Result<u16, RequestError> {
        request.check()?;
        if self.outstanding >= self.settings.outstanding_max {
            return Err(RequestError::Full(self.settings.outstanding_max));
        }
        let number = self.next_number();
        let header = request.encode(to, self.settings.logical_address, number, out);
        self.statistics.commands += 1;
        self.next = number.wrapping_add(1);
        if !header.instruction.requests_reply() {
            return Ok(number);
        }
        let place = self.place(number);
        self.transactions[place] = Transaction {
            number,
            state: State::Outstanding,
            tag,
            instruction: header.instruction.reply(),
            target: header.target,
            length: request.reply_length(),
            crc: to.crc,
        };
        self.outstanding += 1;
        self.timers.arm(number, deadline);
        Ok(number)
    }

    /// Takes in a packet that begins with the initiator logical address, and returns the completion of its transaction.
    ///
    /// # Errors
    /// Returns the reason that the packet completes none. All are counted, and need no reaction.
    pub fn receive<'a>(&mut self, packet: &'a [u8], end: EndOfPacket) -> Result<Completion<'a>, Ignored> {
        let completion = self.complete(packet, end);
        match &completion {
            Ok(completion) => self.statistics.complete(completion.result.err()),
            Err(why) => self.statistics.ignore(*why),
        }
        completion
    }

    /// Takes the next transaction whose deadline has passed, and returns its completion as a timeout.
    ///
    /// With [`Instant::MAX`] this ends every transaction, as after the loss of a connection.
    pub fn expire(&mut self, now: Instant) -> Option<Completion<'static>> {
        let number = self.timers.pop_due(now)?;
        let tag = self.end(number, State::TimedOut);
        self.statistics.complete(Some(Failure::TimedOut));
        Some(Completion { tag, transaction: number, result: Err(Failure::TimedOut) })
    }

    fn complete<'a>(&mut self, packet: &'a [u8], end: EndOfPacket) -> Result<Completion<'a>, Ignored> {
        // The draft of the CRC is the target's, which the transaction tells.
        let number = transaction_of(packet);
        let known = number
            .map(|number| self.transactions[self.place(number)])
            .filter(|known| known.state != State::Unused && Some(known.number) == number);
        let crc = known.map_or(Crc::Standard, |known| known.crc);
        let (header, body) = ReplyHeader::decode(packet, crc).map_err(Ignored::Malformed)?;
        let number = header.transaction;
        let known = known.ok_or(Ignored::Unknown(number))?;
        match known.state {
            State::Unused => return Err(Ignored::Unknown(number)),
            State::Completed => return Err(Ignored::Duplicate(number)),
            State::TimedOut => return Err(Ignored::Late(number)),
            State::Outstanding => {}
        }
        let expected = (known.instruction, known.target, self.settings.logical_address);
        if (header.instruction, header.target, header.initiator) != expected {
            return Err(Ignored::Mismatched(number));
        }
        // A refusal stands in the header, whose CRC is right. Some targets leave the CRC behind its empty data out.
        let result = match header.data(body, end, crc) {
            _ if header.status != Status::Success => Err(Failure::Refused(header.status)),
            Err(defect) => Err(Failure::Damaged(defect)),
            Ok(data) if header.length == known.length => Ok(data),
            Ok(_) => Err(Failure::Length { requested: known.length, received: header.length }),
        };
        self.timers.cancel(number);
        let tag = self.end(number, State::Completed);
        Ok(Completion { tag, transaction: number, result })
    }

    /// Ends an outstanding transaction and returns its tag.
    fn end(&mut self, number: u16, state: State) -> u64 {
        let place = self.place(number);
        self.transactions[place].state = state;
        self.outstanding -= 1;
        self.transactions[place].tag
    }

    /// Returns the next identifier whose place is free. At most half of the places are taken.
    fn next_number(&self) -> u16 {
        let is_free = |number: &u16| self.transactions[self.place(*number)].state != State::Outstanding;
        (0..=u16::MAX).map(|step| self.next.wrapping_add(step)).find(is_free).unwrap_or(self.next)
    }

    fn place(&self, number: u16) -> usize {
        usize::from(number) & (self.transactions.len() - 1)
    }
}

/// The largest number of outstanding transactions: half of the identifiers.
const OUTSTANDING_LIMIT: u16 = 1 << 15;

/// Returns the transaction identifier, which stands at the same place in all replies.
fn transaction_of(packet: &[u8]) -> Option<u16> {
    packet.get(5..7)?.try_into().ok().map(u16::from_be_bytes)
}
