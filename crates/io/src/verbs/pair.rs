#![allow(unsafe_code)]

mod states;
mod work;

use super::completions::QueueHandle;
use super::error::check;
use super::layout::{
    IBV_QP_AV, IBV_QP_CAP, IBV_QP_DEST_QPN, IBV_QP_PATH_MTU, IBV_QP_RQ_PSN, IBV_QP_SQ_PSN, IBV_QP_STATE, IBV_QPT_RC,
    ibv_qp, ibv_qp_attr, ibv_qp_cap, ibv_qp_init_attr, ibv_recv_wr, ibv_send_wr, ibv_sge,
};
use super::memory::DomainHandle;
use super::{CompletionQueue, Domain, Error};
use std::ffi::c_int;
use std::mem::{MaybeUninit, offset_of};
use std::ptr::{self, NonNull};
use std::sync::Arc;

pub use states::{PairFacts, Path, State, Timing};
pub use work::{Operation, Payload, RemotePlace, SendWork};

/// The sizes of a queue pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// Send requests that may be outstanding.
    pub send_depth: u32,
    /// Receive requests that may be outstanding.
    pub receive_depth: u32,
    /// Entries of a send request.
    pub send_entries: u32,
    /// Entries of a receive request.
    pub receive_entries: u32,
    /// Bytes of an inline payload.
    pub inline_bytes: u32,
}

impl Capacity {
    fn raw(self) -> ibv_qp_cap {
        ibv_qp_cap {
            max_send_wr: self.send_depth,
            max_recv_wr: self.receive_depth,
            max_send_sge: self.send_entries,
            max_recv_sge: self.receive_entries,
            max_inline_data: self.inline_bytes,
        }
    }

    fn of(raw: &ibv_qp_cap) -> Self {
        Capacity {
            send_depth: raw.max_send_wr,
            receive_depth: raw.max_recv_wr,
            send_entries: raw.max_send_sge,
            receive_entries: raw.max_recv_sge,
            inline_bytes: raw.max_inline_data,
        }
    }
}

/// A run of bytes of a region, in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Entry {
    /// The virtual address of the first byte.
    pub address: u64,
    /// Bytes.
    pub length: u32,
    /// The region's local key.
    pub key: u32,
}

const _: () = {
    assert!(size_of::<Entry>() == size_of::<ibv_sge>() && align_of::<Entry>() == align_of::<ibv_sge>());
    assert!(offset_of!(Entry, address) == offset_of!(ibv_sge, addr));
    assert!(offset_of!(Entry, length) == offset_of!(ibv_sge, length));
    assert!(offset_of!(Entry, key) == offset_of!(ibv_sge, lkey));
};

/// A queue pair of the reliable-connection service. Dropping it destroys it, with the requests that are outstanding.
pub struct QueuePair {
    raw: NonNull<ibv_qp>,
    number: u32,
    capacity: Capacity,
    post_send: unsafe extern "C" fn(*mut ibv_qp, *mut ibv_send_wr, *mut *mut ibv_send_wr) -> c_int,
    post_receive: unsafe extern "C" fn(*mut ibv_qp, *mut ibv_recv_wr, *mut *mut ibv_recv_wr) -> c_int,
    domain: Arc<DomainHandle>,
    _completions: Arc<QueueHandle>,
}

// SAFETY: the library's functions may be called from any thread, and several at a time.
unsafe impl Send for QueuePair {}
// SAFETY: as above.
unsafe impl Sync for QueuePair {}

impl Drop for QueuePair {
    fn drop(&mut self) {
        // SAFETY: the queue pair was created once.
        unsafe { (self.domain.opened.functions.ibv_destroy_qp)(self.raw.as_ptr()) };
    }
}

impl Domain {
    /// Creates a queue pair, in the state RESET, both queues of which complete to `completions`. It may have larger sizes than
    /// asked for.
    ///
    /// # Errors
    /// [`Error::Refused`] if the device cannot do these sizes.
    pub fn queue_pair(&self, completions: &CompletionQueue, wish: Capacity) -> Result<QueuePair, Error> {
        let opened = &self.handle.opened;
        // SAFETY: the context is open, and the calls of its driver do not change.
        let (post_send, post_receive) =
            unsafe { ((*opened.raw.as_ptr()).ops.post_send, (*opened.raw.as_ptr()).ops.post_recv) };
        let queue = completions.handle.raw.as_ptr();
        let mut attributes = ibv_qp_init_attr {
            qp_context: ptr::null_mut(),
            send_cq: queue,
            recv_cq: queue,
            srq: ptr::null_mut(),
            cap: wish.raw(),
            qp_type: IBV_QPT_RC,
            sq_sig_all: 0,
        };
        // SAFETY: the domain and the completion queue are live, and stay so as long as the queue pair.
        let raw = unsafe { (opened.functions.ibv_create_qp)(self.handle.raw.as_ptr(), &raw mut attributes) };
        let raw = NonNull::new(raw).ok_or_else(|| Error::last("ibv_create_qp"))?;
        let mut pair = QueuePair {
            raw,
            // SAFETY: the queue pair is live, and its number does not change.
            number: unsafe { (*raw.as_ptr()).qp_num },
            capacity: Capacity::of(&attributes.cap),
            post_send: post_send.ok_or(Error::Unsupported("ibv_post_send"))?,
            post_receive: post_receive.ok_or(Error::Unsupported("ibv_post_recv"))?,
            domain: self.handle.clone(),
            _completions: completions.handle.clone(),
        };
        // Some drivers report the sizes that they chose only here.
        if let Ok(facts) = pair.facts() {
            pair.capacity = facts.capacity;
        }
        Ok(pair)
    }
}

impl QueuePair {
    /// Returns the number by which the far end names the queue pair.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns the sizes that the device chose.
    #[must_use]
    pub fn capacity(&self) -> Capacity {
        self.capacity
    }

    /// Returns the state and the attributes as the device has them.
    ///
    /// # Errors
    /// [`Error::Refused`] if the device does not answer.
    pub fn facts(&self) -> Result<PairFacts, Error> {
        let mut attributes = zeroed_attributes();
        // SAFETY: these are numbers and pointers, for which all zeroes are valid.
        let mut initial: ibv_qp_init_attr = unsafe { MaybeUninit::zeroed().assume_init() };
        // SAFETY: the queue pair is live, and the pointers are those of live structures.
        let answer = unsafe {
            let query = self.domain.opened.functions.ibv_query_qp;
            query(self.raw.as_ptr(), &raw mut attributes, ALL_ATTRIBUTES as c_int, &raw mut initial)
        };
        check("ibv_query_qp", answer)?;
        Ok(PairFacts::of(&attributes, &initial))
    }

    fn modify(&mut self, mut attributes: ibv_qp_attr, mask: u32) -> Result<(), Error> {
        // SAFETY: the queue pair is live, and the pointer is that of a live structure.
        let answer = unsafe {
            let modify = self.domain.opened.functions.ibv_modify_qp;
            modify(self.raw.as_ptr(), &raw mut attributes, mask as c_int)
        };
        check("ibv_modify_qp", answer)
    }
}

/// The attributes that [`QueuePair::facts`] asks for.
const ALL_ATTRIBUTES: u32 =
    IBV_QP_STATE | IBV_QP_CAP | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_SQ_PSN;

fn zeroed_attributes() -> ibv_qp_attr {
    // SAFETY: these are plain numbers, for which all zeroes are valid.
    unsafe { MaybeUninit::zeroed().assume_init() }
}
