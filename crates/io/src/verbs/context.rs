#![allow(unsafe_code)]

use super::Error;
use super::error::check;
use super::functions::Functions;
use super::layout::{
    IBV_ATOMIC_NONE, IBV_EVENT_CQ_ERR, IBV_EVENT_DEVICE_FATAL, IBV_ODP_SUPPORT, IBV_ODP_SUPPORT_ATOMIC,
    IBV_ODP_SUPPORT_IMPLICIT, IBV_ODP_SUPPORT_READ, IBV_ODP_SUPPORT_RECV, IBV_ODP_SUPPORT_SEND, IBV_ODP_SUPPORT_WRITE,
    ibv_async_event, ibv_context, ibv_device_attr_ex, verbs_context,
};
use std::ffi::{CStr, c_int};
use std::mem::{MaybeUninit, offset_of};
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// A device that is open, until the last of what was made from it is dropped.
pub(super) struct Opened {
    pub(super) raw: NonNull<ibv_context>,
    pub(super) functions: Arc<Functions>,
}

// SAFETY: the library's functions may be called from any thread, and several at a time, on one context.
unsafe impl Send for Opened {}
// SAFETY: as above; the context's fields that are read here do not change while it is open.
unsafe impl Sync for Opened {}

impl Opened {
    pub(super) fn new(raw: *mut ibv_context, functions: &Arc<Functions>) -> Result<Self, Error> {
        let raw = NonNull::new(raw).ok_or_else(|| Error::last("ibv_open_device"))?;
        let opened = Opened { raw, functions: functions.clone() };
        set_nonblocking(opened.events())?;
        Ok(opened)
    }

    /// Returns the descriptor of the device's asynchronous events.
    pub(super) fn events(&self) -> BorrowedFd<'_> {
        // SAFETY: the context is open, and with it this descriptor, as long as `self` lives.
        unsafe { BorrowedFd::borrow_raw((*self.raw.as_ptr()).async_fd) }
    }

    /// Returns the later calls, if they reach to the one at this offset: the structure begins in front of the context and grows there.
    pub(super) fn later(&self, offset: usize) -> Option<*const verbs_context> {
        let context = self.raw.as_ptr();
        // SAFETY: the context is open. The marker says that it is the end of a verbs_context, whose size stands right before it.
        unsafe {
            if (*context).abi_compat.addr() != usize::MAX {
                return None;
            }
            let whole = context.byte_sub(offset_of!(verbs_context, context)).cast::<verbs_context>();
            ((*whole).sz >= size_of::<verbs_context>() - offset).then_some(whole.cast_const())
        }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // SAFETY: the context was opened once, and everything made from it has been destroyed, for that keeps it alive.
        unsafe { (self.functions.ibv_close_device)(self.raw.as_ptr()) };
    }
}

/// Finds a call that was added later; `None` if the library or the driver lacks it.
macro_rules! later {
    ($opened:expr, $call:ident) => {
        // SAFETY: the structure reaches to this field.
        $opened
            .later(std::mem::offset_of!(crate::verbs::layout::verbs_context, $call))
            .and_then(|calls| unsafe { (*calls).$call })
    };
}
pub(super) use later;

/// Lets reads from a descriptor return at once if nothing is there.
pub(super) fn set_nonblocking(fd: BorrowedFd<'_>) -> Result<(), Error> {
    use std::os::fd::AsRawFd;
    // SAFETY: takes no pointers; the descriptor is open.
    let answer = unsafe {
        let flags = libc::fcntl(fd.as_raw_fd(), libc::F_GETFL);
        libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK)
    };
    if answer < 0 { Err(Error::last("fcntl")) } else { Ok(()) }
}

/// A device that is open.
#[derive(Clone)]
pub struct Context {
    pub(super) opened: Arc<Opened>,
}

/// Limits and capabilities of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceFacts {
    /// The version of the firmware.
    pub firmware: String,
    /// Ports, which are numbered from 1.
    pub ports: u32,
    /// Queue pairs at most.
    pub queue_pairs: u32,
    /// Outstanding requests of a queue at most.
    pub queue_depth: u32,
    /// Entries of a request at most.
    pub entries: u32,
    /// Entries of a completion queue at most.
    pub completions: u32,
    /// Reads and atomic operations in flight at most, as their target and as their source.
    pub reads: (u32, u32),
    /// Whether the device does atomic operations.
    pub has_atomics: bool,
    /// The capabilities with memory that is paged in on demand.
    pub on_demand: OnDemandPaging,
    /// The bits of a completion's timestamp; 0 if the device has none.
    pub timestamp_mask: u64,
    /// The frequency of the timestamps' clock in kHz; 0 if the driver does not say.
    pub core_clock_khz: u64,
    /// Bytes of memory on the device; 0 if it has none.
    pub device_memory: u64,
}

/// Capabilities of a device with memory that is paged in on demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OnDemandPaging {
    /// Regions may be paged in on demand at all.
    pub explicit: bool,
    /// A region may be the whole address space.
    pub implicit: bool,
    /// Reliable connections may send from such memory.
    pub send: bool,
    /// Reliable connections may receive into it.
    pub receive: bool,
    /// Reliable connections may write to it, or from it.
    pub write: bool,
    /// Reliable connections may read from it, or into it.
    pub read: bool,
    /// Reliable connections may do atomic operations on it.
    pub atomic: bool,
}

/// Something that happened to a device, a port or a queue, outside of completions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AsyncEvent {
    /// The event in the library's words.
    pub text: String,
    /// Whether the device or a completion queue can no longer be used.
    pub is_fatal: bool,
}

impl Context {
    pub(super) fn new(opened: Opened) -> Self {
        Context { opened: Arc::new(opened) }
    }

    /// Returns the limits and capabilities of the device. A driver without the newer query reports none of the newer capabilities.
    ///
    /// # Errors
    /// [`Error::Refused`] if the device does not answer.
    pub fn facts(&self) -> Result<DeviceFacts, Error> {
        // SAFETY: the structure is plain numbers, for which all zeroes are valid.
        let mut raw: ibv_device_attr_ex = unsafe { MaybeUninit::zeroed().assume_init() };
        let context = self.opened.raw.as_ptr();
        let later = later!(self.opened, query_device_ex).map(|query| {
            // SAFETY: the context is open, no input is asked for, and pointer and size are those of a live structure.
            unsafe { query(context, ptr::null(), &raw mut raw, size_of::<ibv_device_attr_ex>()) }
        });
        if !matches!(later, Some(answer) if ![libc::EOPNOTSUPP, libc::ENOSYS].contains(&answer.abs())) {
            // SAFETY: the context is open, and the pointer is that of a live structure.
            let answer = unsafe { (self.opened.functions.ibv_query_device)(context, &raw mut raw.orig_attr) };
            check("ibv_query_device", answer)?;
        } else if let Some(answer) = later {
            check("ibv_query_device_ex", answer)?;
        }
        Ok(facts(&raw))
    }

    /// Returns the next asynchronous event, if there is one. Does not wait.
    pub fn event(&self) -> Option<AsyncEvent> {
        let mut event = ibv_async_event { element: ptr::null_mut(), event_type: 0 };
        // SAFETY: the context is open and its descriptor does not block; the event that was written is acknowledged once, as the
        // library asks, while what it is about still lives: destroying that waits for the acknowledgement. The description of
        // an event is a string that ends in a zero byte and lives as long as the library.
        unsafe {
            if (self.opened.functions.ibv_get_async_event)(self.opened.raw.as_ptr(), &raw mut event) != 0 {
                return None;
            }
            let text = CStr::from_ptr((self.opened.functions.ibv_event_type_str)(event.event_type));
            let text = text.to_string_lossy().into_owned();
            let is_fatal = [IBV_EVENT_CQ_ERR, IBV_EVENT_DEVICE_FATAL].contains(&event.event_type);
            (self.opened.functions.ibv_ack_async_event)(&raw mut event);
            Some(AsyncEvent { text, is_fatal })
        }
    }
}

fn facts(raw: &ibv_device_attr_ex) -> DeviceFacts {
    let count = |number: c_int| u32::try_from(number).unwrap_or(0);
    let first = &raw.orig_attr;
    let firmware = first.fw_ver.split(|byte| *byte == 0).next().unwrap_or_default();
    let general = |bit: u32| raw.odp_caps.general_caps & u64::from(bit) != 0;
    let reliable = |bit: u32| raw.odp_caps.per_transport_caps[0] & bit != 0;
    DeviceFacts {
        firmware: String::from_utf8_lossy(firmware).into_owned(),
        ports: u32::from(first.phys_port_cnt),
        queue_pairs: count(first.max_qp),
        queue_depth: count(first.max_qp_wr),
        entries: count(first.max_sge),
        completions: count(first.max_cqe),
        reads: (count(first.max_qp_rd_atom), count(first.max_qp_init_rd_atom)),
        has_atomics: first.atomic_cap != IBV_ATOMIC_NONE,
        on_demand: OnDemandPaging {
            explicit: general(IBV_ODP_SUPPORT),
            implicit: general(IBV_ODP_SUPPORT_IMPLICIT),
            send: reliable(IBV_ODP_SUPPORT_SEND),
            receive: reliable(IBV_ODP_SUPPORT_RECV),
            write: reliable(IBV_ODP_SUPPORT_WRITE),
            read: reliable(IBV_ODP_SUPPORT_READ),
            atomic: reliable(IBV_ODP_SUPPORT_ATOMIC),
        },
        timestamp_mask: raw.completion_timestamp_mask,
        core_clock_khz: raw.hca_core_clock,
        device_memory: raw.max_dm_size,
    }
}
