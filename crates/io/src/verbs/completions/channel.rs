use super::{Error, Opened, QueueHandle};
use crate::verbs::context::set_nonblocking;
use crate::verbs::layout::ibv_comp_channel;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::time::Duration;

/// A channel for the events of one completion queue.
pub(super) struct Channel {
    raw: NonNull<ibv_comp_channel>,
    opened: Arc<Opened>,
}

impl Channel {
    pub(super) fn new(opened: &Arc<Opened>) -> Result<Self, Error> {
        // SAFETY: the context is open.
        let raw = unsafe { (opened.functions.ibv_create_comp_channel)(opened.raw.as_ptr()) };
        let raw = NonNull::new(raw).ok_or_else(|| Error::last("ibv_create_comp_channel"))?;
        let channel = Channel { raw, opened: opened.clone() };
        set_nonblocking(channel.events())?;
        Ok(channel)
    }

    pub(super) fn raw(&self) -> *mut ibv_comp_channel {
        self.raw.as_ptr()
    }

    fn events(&self) -> BorrowedFd<'_> {
        // SAFETY: the channel is live, and with it this descriptor, as long as `self` is.
        unsafe { BorrowedFd::borrow_raw((*self.raw.as_ptr()).fd) }
    }

    /// Sleeps until an event of the queue, which is taken and acknowledged, or of the device, which is left; at most for `span`.
    pub(super) fn wait(&self, queue: &QueueHandle, span: Duration) -> Result<bool, Error> {
        let poll = |fd: BorrowedFd<'_>| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let mut polls = [poll(self.events()), poll(self.opened.events())];
        let limit = libc::timespec {
            tv_sec: i64::try_from(span.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(span.subsec_nanos()),
        };
        // SAFETY: pointers and count are those of live values; the signal mask is left alone.
        let answer =
            unsafe { libc::ppoll(polls.as_mut_ptr(), polls.len() as libc::nfds_t, &raw const limit, ptr::null()) };
        let error = Error::last("ppoll");
        if answer < 0 && error != (Error::Refused { verb: "ppoll", errno: libc::EINTR }) {
            return Err(error);
        }
        if answer <= 0 || polls[0].revents == 0 { Ok(false) } else { self.take(queue) }
    }

    fn take(&self, queue: &QueueHandle) -> Result<bool, Error> {
        let (mut source, mut context) = (ptr::null_mut(), ptr::null_mut());
        let functions = &self.opened.functions;
        // SAFETY: the channel is live, and the pointers are those of live variables. The event is that of `queue`, the only one
        // with this channel, and is acknowledged once.
        unsafe {
            if (functions.ibv_get_cq_event)(self.raw.as_ptr(), &raw mut source, &raw mut context) == 0 {
                (functions.ibv_ack_cq_events)(queue.raw.as_ptr(), 1);
                return Ok(true);
            }
        }
        match Error::last("ibv_get_cq_event") {
            Error::Refused { errno: libc::EAGAIN, .. } => Ok(false),
            error => Err(error),
        }
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // SAFETY: the channel was created once, and the queue that used it is destroyed before.
        unsafe { (self.opened.functions.ibv_destroy_comp_channel)(self.raw.as_ptr()) };
    }
}
