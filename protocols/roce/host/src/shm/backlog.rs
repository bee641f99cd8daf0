//! Send requests that cannot be carried out yet, because the far end is not there or has no receive posted.

use super::requester::{Reason, Work};
use hodo_machine::Instant;
use hodo_roce::{Operation, ScatterEntry, SendRequest};
use std::collections::VecDeque;

/// A send request without its entries and its payload.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pending {
    pub(super) id: u64,
    pub(super) operation: Operation,
    pub(super) is_signaled: bool,
    length: u32,
    entries: usize,
    is_solicited: bool,
    is_inline: bool,
}

/// Why the first request waits, and until when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Waiting {
    pub(super) reason: Reason,
    /// The time of failure; `None` for never.
    pub(super) deadline: Option<Instant>,
}

/// A queue of send requests, with room for a fixed number.
#[derive(Debug)]
pub(super) struct Backlog {
    works: VecDeque<Pending>,
    /// Entries and inline payloads, by slot.
    entries: Box<[ScatterEntry]>,
    inline: Box<[u8]>,
    /// The slot of the first request.
    first: usize,
    depth: usize,
    pub(super) waiting: Option<Waiting>,
}

impl Backlog {
    pub(super) fn new(depth: u32, width: u32, inline_bytes: u32) -> Self {
        let [depth, width, inline_bytes] = [depth.max(1), width, inline_bytes].map(|size| size as usize);
        Backlog {
            works: VecDeque::with_capacity(depth),
            entries: vec![ScatterEntry::default(); depth * width].into_boxed_slice(),
            inline: vec![0; depth * inline_bytes].into_boxed_slice(),
            first: 0,
            depth,
            waiting: None,
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.works.is_empty()
    }

    /// Adds a request. There is room for it; `gather` copies its payload if it is inline.
    pub(super) fn push(&mut self, request: &SendRequest<'_>, length: u32, gather: impl FnOnce(&mut [u8])) {
        let slot = (self.first + self.works.len()) % self.depth;
        let (width, inline_bytes) = (self.entries.len() / self.depth, self.inline.len() / self.depth);
        self.entries[slot * width..][..request.entries.len()].copy_from_slice(request.entries);
        if request.is_inline {
            gather(&mut self.inline[slot * inline_bytes..][..length as usize]);
        }
        self.works.push_back(Pending {
            id: request.id,
            operation: request.operation,
            is_signaled: request.is_signaled,
            length,
            entries: request.entries.len(),
            is_solicited: request.is_solicited,
            is_inline: request.is_inline,
        });
    }

    /// Returns the first request.
    #[inline]
    pub(super) fn front(&self) -> Option<(Pending, Work<'_>)> {
        let pending = *self.works.front()?;
        let (width, inline_bytes) = (self.entries.len() / self.depth, self.inline.len() / self.depth);
        let payload = || &self.inline[self.first * inline_bytes..][..pending.length as usize];
        let work = Work {
            operation: pending.operation,
            length: pending.length,
            entries: &self.entries[self.first * width..][..pending.entries],
            inline: pending.is_inline.then(payload),
            is_solicited: pending.is_solicited,
        };
        Some((pending, work))
    }

    /// Takes the first request out.
    pub(super) fn pop(&mut self) -> Option<Pending> {
        self.waiting = None;
        self.first = (self.first + 1) % self.depth;
        self.works.pop_front()
    }
}

impl Pending {
    /// Returns the bytes that the request brings back.
    pub(super) const fn length(&self) -> u32 {
        self.length
    }
}
