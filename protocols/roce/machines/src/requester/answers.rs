//! Responses of the far end: acknowledgements, data that was read, and results of atomic operations (volume 1, 9.7.5.1 and
//! 9.7.5.2).

use super::{Requester, Work, is_answered, is_atomic};
use crate::memory::Memory;
use crate::wire::{NakCode, Syndrome, rnr_span};
use crate::{Completion, Operation, Psn, Status};
use hodo_machine::Instant;

/// A response, in its parts.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Answer<'a> {
    /// An acknowledgement.
    Ack(Syndrome),
    /// A packet of what was read.
    Data(&'a [u8]),
    /// The value that an atomic operation found.
    Atomic(u64),
}

/// Where completions go: the queue pair's number, and who takes them.
pub(crate) struct Completions<'a> {
    pub(crate) queue_pair: u32,
    pub(crate) tell: &'a mut dyn FnMut(Completion),
}

impl Requester {
    /// Takes a response.
    ///
    /// # Errors
    /// Returns the status with which the oldest request fails, and the queue pair with it.
    #[inline]
    pub(crate) fn answered(
        &mut self,
        now: Instant,
        psn: Psn,
        answer: Answer<'_>,
        memory: &mut Memory,
        completions: &mut Completions<'_>,
    ) -> Result<(), Status> {
        // It is acknowledged already, or was never sent: a duplicate, or a stray.
        if psn.since(self.unacknowledged) < 0 || psn.since(self.high) >= 0 {
            return Ok(());
        }
        match answer {
            Answer::Ack(Syndrome::Ack(_)) => self.acknowledged(now, psn.after(1), completions),
            Answer::Ack(Syndrome::ReceiverNotReady(timer)) => self.not_ready(now, psn, timer, completions),
            Answer::Ack(Syndrome::Nak(code)) => self.refused(now, psn, code, completions),
            Answer::Ack(Syndrome::Reserved(_)) => Ok(()),
            Answer::Data(bytes) => self.data(now, psn, (bytes, false), memory, completions),
            Answer::Atomic(original) => self.data(now, psn, (&original.to_ne_bytes(), true), memory, completions),
        }
    }

    /// Takes everything before `to` as received. An operation whose data is missing was not: it is asked for again.
    #[inline]
    fn acknowledged(&mut self, now: Instant, to: Psn, completions: &mut Completions<'_>) -> Result<(), Status> {
        let before = self.unacknowledged;
        let mut is_missing = false;
        while to.since(self.unacknowledged) > 0 {
            let Some(work) = self.works.get(self.works.head()) else { break };
            if is_answered(work.operation) {
                is_missing = true;
                break;
            }
            let end = work.end();
            if end.since(to) > 0 {
                self.unacknowledged = to;
                break;
            }
            self.unacknowledged = end;
            self.complete(completions);
        }
        let packets = self.unacknowledged.since(before);
        if packets > 0 {
            self.progressed(now, packets as u32);
        }
        if is_missing { self.missing(now) } else { Ok(()) }
    }

    /// Goes on from a new oldest packet, after that many were acknowledged.
    #[inline]
    fn progressed(&mut self, now: Instant, packets: u32) {
        self.gone_back_to = None;
        self.window.widen(packets);
        if let Some(work) = self.works.get(self.works.head())
            && self.cursor == self.works.head()
        {
            let acknowledged = self.unacknowledged.since(work.first).max(0) as u32;
            self.cursor_packets = self.cursor_packets.max(acknowledged);
        }
        let is_waiting = self.is_waiting();
        self.timing.progressed(now, self.unacknowledged, is_waiting);
    }

    /// Sends again from the oldest packet on. Further signs of the same loss change nothing.
    fn missing(&mut self, now: Instant) -> Result<(), Status> {
        if self.gone_back_to == Some(self.unacknowledged) {
            return Ok(());
        }
        self.gone_back_to = Some(self.unacknowledged);
        self.window.narrow();
        self.go_back(self.unacknowledged);
        if self.timing.retry(now, true) { Ok(()) } else { Err(Status::RetryExceeded) }
    }

    fn not_ready(
        &mut self,
        now: Instant,
        psn: Psn,
        timer: u8,
        completions: &mut Completions<'_>,
    ) -> Result<(), Status> {
        self.not_ready += 1;
        self.acknowledged(now, psn, completions)?;
        if self.unacknowledged != psn || self.timing.is_held(now) {
            return Ok(());
        }
        self.go_back(psn);
        if self.timing.hold(now, rnr_span(timer)) { Ok(()) } else { Err(Status::ReceiverNotReady) }
    }

    fn refused(
        &mut self,
        now: Instant,
        psn: Psn,
        code: NakCode,
        completions: &mut Completions<'_>,
    ) -> Result<(), Status> {
        self.naks += 1;
        self.acknowledged(now, psn, completions)?;
        match code {
            NakCode::SequenceError if self.unacknowledged == psn => self.missing(now),
            NakCode::SequenceError => Ok(()),
            NakCode::InvalidRequest | NakCode::InvalidDomain => Err(Status::RemoteInvalidRequest),
            NakCode::RemoteAccess => Err(Status::RemoteAccess),
            NakCode::RemoteOperation => Err(Status::RemoteOperation),
        }
    }

    /// Takes a packet of data that the oldest operation asked for: of what was read, or the result of an atomic operation.
    #[inline]
    fn data(
        &mut self,
        now: Instant,
        psn: Psn,
        (bytes, is_result): (&[u8], bool),
        memory: &mut Memory,
        completions: &mut Completions<'_>,
    ) -> Result<(), Status> {
        self.acknowledged(now, psn, completions)?;
        if self.unacknowledged != psn {
            return Ok(());
        }
        let number = self.works.head();
        let Some(work) = self.works.get(number).copied() else { return Ok(()) };
        let expected =
            work.expects(psn, bytes.len(), self.mtu.bytes()).filter(|_| is_result == is_atomic(work.operation));
        let offset = expected.ok_or(Status::BadResponse)?;
        let entries = &self.works.entries(number)[..work.entries as usize];
        memory.scatter(entries, offset, bytes).map_err(|_| Status::LocalProtection)?;
        self.unacknowledged = psn.after(1);
        if self.unacknowledged == work.end() {
            self.complete(completions);
        }
        self.progressed(now, 1);
        Ok(())
    }

    /// Does what is due at this time.
    ///
    /// # Errors
    /// Returns the status with which the oldest request fails, and the queue pair with it.
    pub(crate) fn elapsed(&mut self, now: Instant) -> Result<(), Status> {
        if self.timing.release(now) || self.deadline().is_none_or(|deadline| now < deadline) {
            return Ok(());
        }
        self.timeouts += 1;
        self.timing.timed_out();
        self.window.close();
        self.gone_back_to = None;
        self.go_back(self.unacknowledged);
        if self.timing.retry(now, false) { Ok(()) } else { Err(Status::RetryExceeded) }
    }
}

impl Work {
    /// Returns where `length` bytes that came with this number belong; `None` if the operation expects no such bytes.
    fn expects(&self, psn: Psn, length: usize, mtu: u32) -> Option<usize> {
        let index = u32::try_from(psn.since(self.first)).ok().filter(|index| *index < self.packets)?;
        let offset = u64::from(index) * u64::from(mtu);
        let expected = match self.operation {
            Operation::Read(_) => u64::from(self.length).checked_sub(offset)?.min(u64::from(mtu)),
            Operation::CompareSwap { .. } | Operation::FetchAdd { .. } => 8,
            _ => return None,
        };
        (length as u64 == expected).then_some(offset as usize)
    }
}
