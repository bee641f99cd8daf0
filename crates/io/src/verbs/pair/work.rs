//! Requests, and how they are posted.

use super::{Entry, Error, QueuePair, check, ibv_recv_wr, ibv_send_wr, ibv_sge};
use crate::verbs::layout::{
    IBV_SEND_FENCE, IBV_SEND_INLINE, IBV_SEND_SIGNALED, IBV_SEND_SOLICITED, IBV_WR_ATOMIC_CMP_AND_SWP,
    IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND,
    IBV_WR_SEND_WITH_IMM, IBV_WR_SEND_WITH_INV, remote, remote_access, remote_atomic,
};
use std::ffi::c_int;
use std::ptr;

/// A place in the memory of the far end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RemotePlace {
    /// The virtual address at the far end.
    pub address: u64,
    /// The remote key of the region there.
    pub key: u32,
}

/// The operation of a send request (`ibv_wr_opcode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Sends a message.
    Send,
    /// Sends a message with 32 bits that its completion reports.
    SendWithImmediate(u32),
    /// Sends a message, and invalidates a remote key at the far end.
    SendWithInvalidate(u32),
    /// Writes to the far end.
    Write(RemotePlace),
    /// Writes to the far end, and completes a receive there, which reports 32 bits.
    WriteWithImmediate(RemotePlace, u32),
    /// Reads from the far end.
    Read(RemotePlace),
    /// Sets eight bytes of the far end to `swap` if they are `compare`.
    CompareSwap {
        /// Eight bytes, aligned to eight.
        place: RemotePlace,
        /// The expected value.
        compare: u64,
        /// The new value.
        swap: u64,
    },
    /// Adds to eight bytes of the far end.
    FetchAdd {
        /// Eight bytes, aligned to eight.
        place: RemotePlace,
        /// The number that is added.
        add: u64,
    },
}

/// The bytes of a send request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payload<'a> {
    /// Runs of bytes of regions, or where the result is put.
    Entries(&'a [Entry]),
    /// Bytes that are copied when the request is posted.
    Inline(&'a [u8]),
}

/// A request for the send queue (`ibv_send_wr`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendWork<'a> {
    /// The application's number; comes back in the completion.
    pub id: u64,
    /// The operation.
    pub operation: Operation,
    /// The bytes.
    pub payload: Payload<'a>,
    /// Whether a success is reported; an error always is.
    pub is_signaled: bool,
    /// Whether the completion at the far end is a solicited event.
    pub is_solicited: bool,
    /// Whether the request waits until all reads and atomic operations before it have completed.
    pub has_fence: bool,
}

impl QueuePair {
    /// Posts a request to the send queue.
    ///
    /// # Errors
    /// [`Error::Refused`]: `ENOMEM` if the queue is full, `EINVAL` if there are too many entries or inline bytes, or the state is
    /// another, `EFAULT` if an entry is outside of the pages that may be used with the key of the whole address space.
    #[inline]
    pub fn post_send(&self, work: &SendWork<'_>) -> Result<(), Error> {
        let mut inline;
        let (entries, count, inline_flag) = match work.payload {
            Payload::Entries(entries) => {
                self.check(entries, self.capacity.send_entries, "ibv_post_send")?;
                (entries.as_ptr().cast_mut().cast(), entries.len(), 0)
            }
            Payload::Inline(bytes) => {
                let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
                if length > self.capacity.inline_bytes {
                    return Err(Error::Refused { verb: "ibv_post_send", errno: libc::EINVAL });
                }
                inline = ibv_sge { addr: bytes.as_ptr().expose_provenance() as u64, length, lkey: 0 };
                (&raw mut inline, usize::from(length > 0), IBV_SEND_INLINE)
            }
        };
        let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
        let (opcode, imm_data, wr) = raw_operation(work.operation);
        let mut request = ibv_send_wr {
            wr_id: work.id,
            next: ptr::null_mut(),
            sg_list: entries,
            num_sge: count as c_int,
            opcode,
            send_flags: flag(work.is_signaled, IBV_SEND_SIGNALED)
                | flag(work.is_solicited, IBV_SEND_SOLICITED)
                | flag(work.has_fence, IBV_SEND_FENCE)
                | inline_flag,
            imm_data,
            wr,
            qp_type: 0,
            bind_mw: [0; 6],
        };
        let mut failed = ptr::null_mut();
        // SAFETY: the queue pair is live. The request, its entries and an inline payload are only read, and only during the call;
        // entries of regions are checked by the device when it carries the request out.
        check("ibv_post_send", unsafe { (self.post_send)(self.raw.as_ptr(), &raw mut request, &raw mut failed) })
    }

    /// Posts a request to the receive queue: the next message is put into these runs of bytes.
    ///
    /// # Errors
    /// [`Error::Refused`], as [`QueuePair::post_send`].
    #[inline]
    pub fn post_receive(&self, id: u64, entries: &[Entry]) -> Result<(), Error> {
        self.check(entries, self.capacity.receive_entries, "ibv_post_recv")?;
        let list = entries.as_ptr().cast_mut().cast();
        let mut request =
            ibv_recv_wr { wr_id: id, next: ptr::null_mut(), sg_list: list, num_sge: entries.len() as c_int };
        let mut failed = ptr::null_mut();
        // SAFETY: as for a send request.
        check("ibv_post_recv", unsafe { (self.post_receive)(self.raw.as_ptr(), &raw mut request, &raw mut failed) })
    }

    #[inline]
    fn check(&self, entries: &[Entry], limit: u32, verb: &'static str) -> Result<(), Error> {
        if entries.len() > limit as usize {
            return Err(Error::Refused { verb, errno: libc::EINVAL });
        }
        if !entries.iter().all(|entry| self.domain.allows(entry.key, entry.address, entry.length)) {
            return Err(Error::Refused { verb, errno: libc::EFAULT });
        }
        Ok(())
    }
}

/// Returns the opcode, the immediate data or the key to invalidate, and the far end's place.
#[inline]
fn raw_operation(operation: Operation) -> (u32, u32, remote) {
    let access = |RemotePlace { address, key }| {
        // The larger variant first, so that no byte is left undefined.
        let mut place = remote { atomic: remote_atomic { remote_addr: 0, compare_add: 0, swap: 0, rkey: 0 } };
        place.rdma = remote_access { remote_addr: address, rkey: key };
        place
    };
    let none = access(RemotePlace::default());
    match operation {
        Operation::Send => (IBV_WR_SEND, 0, none),
        Operation::SendWithImmediate(immediate) => (IBV_WR_SEND_WITH_IMM, immediate.to_be(), none),
        Operation::SendWithInvalidate(key) => (IBV_WR_SEND_WITH_INV, key, none),
        Operation::Write(place) => (IBV_WR_RDMA_WRITE, 0, access(place)),
        Operation::WriteWithImmediate(place, immediate) => {
            (IBV_WR_RDMA_WRITE_WITH_IMM, immediate.to_be(), access(place))
        }
        Operation::Read(place) => (IBV_WR_RDMA_READ, 0, access(place)),
        Operation::CompareSwap { place, compare, swap } => {
            let atomic = remote_atomic { remote_addr: place.address, compare_add: compare, swap, rkey: place.key };
            (IBV_WR_ATOMIC_CMP_AND_SWP, 0, remote { atomic })
        }
        Operation::FetchAdd { place, add } => {
            let atomic = remote_atomic { remote_addr: place.address, compare_add: add, swap: 0, rkey: place.key };
            (IBV_WR_ATOMIC_FETCH_AND_ADD, 0, remote { atomic })
        }
    }
}
