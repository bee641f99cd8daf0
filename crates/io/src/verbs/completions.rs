#![allow(unsafe_code)]

mod channel;
mod extended;

use super::context::Opened;
use super::error::check;
use super::layout::{IBV_WC_RECV, IBV_WC_SUCCESS, IBV_WC_WITH_IMM, IBV_WC_WITH_INV, ibv_cq, ibv_cq_ex, ibv_wc};
use super::{Context, Error};
use channel::Channel;
use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

/// Completions that are taken from a queue at a time.
const BATCH: usize = 32;

/// The completion of a request (`ibv_wc`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkCompletion {
    /// The application's number of the request.
    pub id: u64,
    /// The queue pair's number.
    pub queue_pair: u32,
    /// The outcome, `ibv_wc_status`: 0 is success.
    pub status: u32,
    /// The kind of request, `ibv_wc_opcode`; 0 if the request failed.
    pub opcode: u32,
    /// The driver's own code of an error.
    pub vendor_error: u32,
    /// Bytes received or read; 0 if the request failed.
    pub length: u32,
    /// The immediate data of a received message.
    pub immediate: Option<u32>,
    /// The remote key that a received message has invalidated.
    pub invalidated: Option<u32>,
    /// The device's clock at completion, if the queue has timestamps.
    pub timestamp: Option<u64>,
}

impl WorkCompletion {
    /// Sets what is only there after a success. Some drivers mark their sends with immediate data as well.
    #[inline]
    fn succeeded(mut self, opcode: u32, length: u32, flags: u32, immediate: u32) -> Self {
        (self.opcode, self.length) = (opcode, length);
        if opcode & IBV_WC_RECV != 0 {
            self.immediate = (flags & IBV_WC_WITH_IMM != 0).then(|| u32::from_be(immediate));
            self.invalidated = (flags & IBV_WC_WITH_INV != 0).then_some(immediate);
        }
        self
    }
}

/// A completion queue, and the channel for its events if it has one.
pub struct CompletionQueue {
    pub(super) handle: Arc<QueueHandle>,
    /// Room for the driver's form of a batch.
    room: Box<[ibv_wc; BATCH]>,
}

/// A completion queue in the library, which the queue pairs that complete to it keep alive.
pub(super) struct QueueHandle {
    pub(super) raw: NonNull<ibv_cq>,
    /// The queue again, if it is read field by field, because it has timestamps.
    extended: Option<NonNull<ibv_cq_ex>>,
    poll: unsafe extern "C" fn(*mut ibv_cq, c_int, *mut ibv_wc) -> c_int,
    arm: unsafe extern "C" fn(*mut ibv_cq, c_int) -> c_int,
    channel: Option<Channel>,
    pub(super) opened: Arc<Opened>,
}

// SAFETY: the library's functions may be called from any thread, and several at a time. Only the one CompletionQueue polls, so that
// nobody else is between the start and the end of a round of polling.
unsafe impl Send for QueueHandle {}
// SAFETY: as above.
unsafe impl Sync for QueueHandle {}

impl Drop for QueueHandle {
    fn drop(&mut self) {
        // SAFETY: the queue was created once, no queue pair completes to it any more, and its events are acknowledged.
        unsafe { (self.opened.functions.ibv_destroy_cq)(self.raw.as_ptr()) };
    }
}

impl Context {
    /// Creates a completion queue with room for at least `entries`, with a channel for its events if `has_events`, and with
    /// timestamps from the device if `has_timestamps`.
    ///
    /// # Errors
    /// [`Error::Refused`] if it is too long, [`Error::Unsupported`] if the driver has no timestamps.
    pub fn completion_queue(
        &self,
        entries: u32,
        has_events: bool,
        has_timestamps: bool,
    ) -> Result<CompletionQueue, Error> {
        let opened = &self.opened;
        let channel = if has_events { Some(Channel::new(opened)?) } else { None };
        // SAFETY: the context is open, and the calls of its driver do not change.
        let (poll, arm) = unsafe { ((*opened.raw.as_ptr()).ops.poll_cq, (*opened.raw.as_ptr()).ops.req_notify_cq) };
        let poll = poll.ok_or(Error::Unsupported("ibv_poll_cq"))?;
        let arm = arm.ok_or(Error::Unsupported("ibv_req_notify_cq"))?;
        let raw_channel = channel.as_ref().map_or(std::ptr::null_mut(), Channel::raw);
        let extended = if has_timestamps { Some(extended::create(opened, entries, raw_channel)?) } else { None };
        let raw = match extended {
            Some(extended) => extended.cast(),
            None => {
                let entries = c_int::try_from(entries).unwrap_or(c_int::MAX);
                // SAFETY: the context is open, and the channel is null or live as long as the queue.
                let raw = unsafe {
                    let create = opened.functions.ibv_create_cq;
                    create(opened.raw.as_ptr(), entries, std::ptr::null_mut(), raw_channel, 0)
                };
                NonNull::new(raw).ok_or_else(|| Error::last("ibv_create_cq"))?
            }
        };
        let handle = QueueHandle { raw, extended, poll, arm, channel, opened: opened.clone() };
        // SAFETY: completions are plain numbers, for which all zeroes are valid.
        let room = Box::new(unsafe { MaybeUninit::zeroed().assume_init() });
        Ok(CompletionQueue { handle: Arc::new(handle), room })
    }
}

impl CompletionQueue {
    /// Returns the entries that the queue has room for.
    #[must_use]
    pub fn entries(&self) -> u32 {
        // SAFETY: the queue is live; only `resize`, which has it for itself, changes this field.
        let entries = unsafe { (*self.handle.raw.as_ptr()).cqe };
        u32::try_from(entries).unwrap_or(0)
    }

    /// Makes room for at least `entries`.
    ///
    /// # Errors
    /// [`Error::Refused`] if the device cannot do that, or not for so many.
    pub fn resize(&mut self, entries: u32) -> Result<(), Error> {
        let entries = c_int::try_from(entries).unwrap_or(c_int::MAX);
        // SAFETY: the queue is live.
        let answer = unsafe { (self.handle.opened.functions.ibv_resize_cq)(self.handle.raw.as_ptr(), entries) };
        check("ibv_resize_cq", answer)
    }

    /// Takes completions from the queue, at most a batch, and hands each to `take`. Returns how many there were.
    ///
    /// # Errors
    /// [`Error::Refused`] if the queue can no longer be used.
    #[inline]
    pub fn poll(&mut self, mut take: impl FnMut(&WorkCompletion)) -> Result<usize, Error> {
        if let Some(queue) = self.handle.extended {
            return extended::poll(queue, take);
        }
        // SAFETY: the queue is live, and pointer and count are those of room for completions.
        let count = unsafe { (self.handle.poll)(self.handle.raw.as_ptr(), BATCH as c_int, self.room.as_mut_ptr()) };
        let count = usize::try_from(count).map_err(|_| Error::Refused { verb: "ibv_poll_cq", errno: libc::EIO })?;
        for raw in self.room.iter().take(count) {
            let base = WorkCompletion {
                id: raw.wr_id,
                queue_pair: raw.qp_num,
                status: raw.status,
                vendor_error: raw.vendor_err,
                ..WorkCompletion::default()
            };
            let is_success = raw.status == IBV_WC_SUCCESS;
            let succeeded = || base.succeeded(raw.opcode, raw.byte_len, raw.wc_flags, raw.imm_data);
            take(&if is_success { succeeded() } else { base });
        }
        Ok(count)
    }

    /// Requests an event for when the next completion comes. One that came before is not announced, so poll once more after this.
    ///
    /// # Errors
    /// [`Error::Refused`] if the queue can no longer be used.
    pub fn arm(&mut self) -> Result<(), Error> {
        // SAFETY: the queue is live.
        check("ibv_req_notify_cq", unsafe { (self.handle.arm)(self.handle.raw.as_ptr(), 0) })
    }

    /// Sleeps until an event, at most for `span`, and takes it. Returns `false` if none came in time, or there was an asynchronous
    /// event ([`Context::event`]) first.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the queue was created without events, [`Error::Refused`] if waiting fails.
    pub fn wait(&mut self, span: Duration) -> Result<bool, Error> {
        let channel =
            self.handle.channel.as_ref().ok_or(Error::Unsupported("completion channel: it was not asked for"))?;
        channel.wait(&self.handle, span)
    }
}
