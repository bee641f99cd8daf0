//! The requester's work in the far end's memory: the process that asks for an operation carries it out.

use super::far::{Far, Trouble};
use super::layout::{Arrival, ENTRIES_MAX, Message, OwnerState};
use super::regions::{Piece, Regions, slot_of, transfer};
use hodo_roce::{Completed, Operation, Remote, ScatterEntry, Status};
use std::sync::atomic::Ordering::SeqCst;

/// A send request, with the length of its payload, and the payload itself if it was copied when it was posted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work<'a> {
    pub(super) operation: Operation,
    pub(super) length: u32,
    pub(super) entries: &'a [ScatterEntry],
    pub(super) inline: Option<&'a [u8]>,
    pub(super) is_solicited: bool,
}

/// Lists that are filled anew for each request.
#[derive(Debug)]
pub(super) struct Scratch {
    near: Vec<Piece>,
    far: Vec<Piece>,
    entries: Vec<ScatterEntry>,
}

impl Scratch {
    pub(super) fn new() -> Self {
        let most = ENTRIES_MAX as usize;
        Scratch { near: Vec::with_capacity(most), far: Vec::with_capacity(most), entries: Vec::with_capacity(most) }
    }

    /// Returns the list for local pieces.
    pub(super) const fn near(&mut self) -> &mut Vec<Piece> {
        &mut self.near
    }
}

/// Why a request was not carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Setback {
    /// It is to be tried again.
    Wait(Reason),
    /// It fails, and the queue pair with it.
    Fault(Fault),
}

/// Why a request waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// The far end has not connected yet, or a region of it has not been mapped yet.
    Silent,
    /// The far end has no receive posted.
    ReceiverNotReady,
}

/// A failure: the status of the request, and what the far end is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) status: Status,
    pub(super) told: Option<Arrival>,
}

impl Fault {
    const LOCAL: Setback = Setback::Fault(Fault { status: Status::LocalProtection, told: None });
    /// The far end's queue pair has failed: on a wire, it would not answer.
    const SILENCE: Setback = Setback::Fault(Fault { status: Status::RetryExceeded, told: None });
    const INVALID: Setback =
        Setback::Fault(Fault { status: Status::RemoteInvalidRequest, told: Some(Arrival::Failed) });
    const ACCESS: Setback = Setback::Fault(Fault { status: Status::RemoteAccess, told: Some(Arrival::Failed) });

    /// Creates the failure of a message that fails its receive, too.
    const fn of_receive(status: Status, told: Status) -> Setback {
        Setback::Fault(Fault { status, told: Some(Arrival::Refused(told)) })
    }
}

impl From<Trouble> for Setback {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::NotMapped => Setback::Wait(Reason::Silent),
            Trouble::Denied => Fault::ACCESS,
        }
    }
}

/// Returns the kind of request that an operation completes.
#[inline]
pub(super) const fn kind_of(operation: &Operation) -> Completed {
    match operation {
        Operation::Send | Operation::SendWithImmediate(_) | Operation::SendWithInvalidate(_) => Completed::Send,
        Operation::Write(_) | Operation::WriteWithImmediate(..) => Completed::Write,
        Operation::Read(_) => Completed::Read,
        Operation::CompareSwap { .. } => Completed::CompareSwap,
        Operation::FetchAdd { .. } => Completed::FetchAdd,
    }
}

/// Returns whether an operation brings data back.
#[inline]
pub(super) const fn is_answered(operation: &Operation) -> bool {
    matches!(operation, Operation::Read(_) | Operation::CompareSwap { .. } | Operation::FetchAdd { .. })
}

impl Far {
    /// Carries out a request. Returns whether something arrived at the far end, which may have to be woken for it.
    #[inline]
    pub(super) fn attempt(&mut self, work: &Work<'_>, near: &Regions, scratch: &mut Scratch) -> Result<bool, Setback> {
        if !self.rings.is_in(OwnerState::Ready) {
            return Err(Fault::SILENCE);
        }
        let is_written = is_answered(&work.operation);
        if work.inline.is_none() && !near.resolve(work.entries, work.length, is_written, &mut scratch.near) {
            return Err(Fault::LOCAL);
        }
        match work.operation {
            Operation::Send => self.send(work, None, near, scratch),
            Operation::SendWithImmediate(word) => self.send(work, Some(word), near, scratch),
            Operation::SendWithInvalidate(key) => self.send_with_invalidate(work, key, near, scratch),
            Operation::Write(remote) => self.write(work, remote, near, scratch).map(|()| false),
            Operation::WriteWithImmediate(remote, word) => {
                self.write_with_immediate(work, (remote, word), near, scratch)
            }
            Operation::Read(remote) => self.read(work, remote, near, scratch),
            Operation::CompareSwap { remote, compare, swap } => {
                let exchange = |word: &std::sync::atomic::AtomicU64| {
                    word.compare_exchange(compare, swap, SeqCst, SeqCst).unwrap_or_else(|found| found)
                };
                self.atomic(remote, near, scratch, exchange)
            }
            Operation::FetchAdd { remote, add } => {
                self.atomic(remote, near, scratch, |word| word.fetch_add(add, SeqCst))
            }
        }
    }

    #[inline]
    fn send(
        &mut self,
        work: &Work<'_>,
        immediate: Option<u32>,
        near: &Regions,
        scratch: &mut Scratch,
    ) -> Result<bool, Setback> {
        self.place(work, near, scratch)?;
        self.deliver(Message {
            kind: Completed::Receive,
            length: work.length,
            immediate,
            invalidated: None,
            is_solicited: work.is_solicited,
        });
        Ok(true)
    }

    fn send_with_invalidate(
        &mut self,
        work: &Work<'_>,
        key: u32,
        near: &Regions,
        scratch: &mut Scratch,
    ) -> Result<bool, Setback> {
        self.place(work, near, scratch)?;
        if key == 0 || !self.table.invalidate(slot_of(key), key) {
            return Err(Fault::of_receive(Status::RemoteAccess, Status::LocalAccess));
        }
        self.deliver(Message {
            kind: Completed::Receive,
            length: work.length,
            immediate: None,
            invalidated: Some(key),
            is_solicited: work.is_solicited,
        });
        Ok(true)
    }

    /// Copies the payload to where the next receive of the far end puts it.
    #[inline]
    fn place(&mut self, work: &Work<'_>, near: &Regions, scratch: &mut Scratch) -> Result<(), Setback> {
        const PROTECTION: Setback = Fault::of_receive(Status::RemoteOperation, Status::LocalProtection);
        let posted = self.receiver(&mut scratch.entries).ok_or(Setback::Wait(Reason::ReceiverNotReady))?;
        posted.map_err(|_| PROTECTION)?;
        let room: u64 = scratch.entries.iter().map(|entry| u64::from(entry.length)).sum();
        if u64::from(work.length) > room {
            return Err(Fault::of_receive(Status::RemoteInvalidRequest, Status::LocalLength));
        }
        match self.scatter(&scratch.entries, work.length, &mut scratch.far) {
            Ok(()) => self.copy(work, near, &scratch.near, &scratch.far),
            Err(Trouble::Denied) => return Err(PROTECTION),
            Err(trouble @ Trouble::NotMapped) => return Err(trouble.into()),
        }
        Ok(())
    }

    #[inline]
    fn write(&mut self, work: &Work<'_>, remote: Remote, near: &Regions, scratch: &mut Scratch) -> Result<(), Setback> {
        // A write of nothing needs no key (9.7.4.1.5).
        if work.length > 0 {
            let piece = self.remote(remote, work.length, |access| access.remote_write)?;
            self.copy(work, near, &scratch.near, &[piece]);
        }
        Ok(())
    }

    fn write_with_immediate(
        &mut self,
        work: &Work<'_>,
        (remote, word): (Remote, u32),
        near: &Regions,
        scratch: &mut Scratch,
    ) -> Result<bool, Setback> {
        if !self.is_receiver_ready() {
            return Err(Setback::Wait(Reason::ReceiverNotReady));
        }
        self.write(work, remote, near, scratch)?;
        self.deliver(Message {
            kind: Completed::ReceiveWrite,
            length: work.length,
            immediate: Some(word),
            invalidated: None,
            is_solicited: work.is_solicited,
        });
        Ok(true)
    }

    #[inline]
    fn copy(&self, work: &Work<'_>, near: &Regions, from: &[Piece], to: &[Piece]) {
        match work.inline {
            None => transfer((near, from), (&self.regions, to)),
            Some(bytes) => self.regions.copy_in(to, bytes),
        }
    }

    fn read(
        &mut self,
        work: &Work<'_>,
        remote: Remote,
        near: &Regions,
        scratch: &mut Scratch,
    ) -> Result<bool, Setback> {
        if work.length > 0 {
            let piece = self.remote(remote, work.length, |access| access.remote_read)?;
            transfer((&self.regions, &[piece]), (near, &scratch.near));
        }
        Ok(false)
    }

    fn atomic(
        &mut self,
        remote: Remote,
        near: &Regions,
        scratch: &mut Scratch,
        act: impl FnOnce(&std::sync::atomic::AtomicU64) -> u64,
    ) -> Result<bool, Setback> {
        if !remote.address.is_multiple_of(8) {
            return Err(Fault::INVALID);
        }
        let piece = self.remote(remote, 8, |access| access.remote_atomic)?;
        let (memory, offset) = self.regions.memory(&piece);
        // A far end may say that its region begins between two words.
        if !offset.is_multiple_of(8) {
            return Err(Fault::INVALID);
        }
        let original = act(memory.word64(offset));
        near.copy_in(&scratch.near, &original.to_ne_bytes());
        Ok(false)
    }
}
