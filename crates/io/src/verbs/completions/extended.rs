//! A completion queue with timestamps, which is read field by field.

use super::{BATCH, Error, Opened, WorkCompletion};
use crate::verbs::context::later;
use crate::verbs::layout::{
    IBV_WC_EX_WITH_BYTE_LEN, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP, IBV_WC_EX_WITH_IMM, IBV_WC_EX_WITH_QP_NUM,
    IBV_WC_SUCCESS, ibv_comp_channel, ibv_cq_ex, ibv_cq_init_attr_ex, ibv_poll_cq_attr,
};
use std::ffi::c_int;
use std::ptr::{self, NonNull};

/// Creates the queue. The channel is null, or outlives it.
pub(super) fn create(
    opened: &Opened,
    entries: u32,
    channel: *mut ibv_comp_channel,
) -> Result<NonNull<ibv_cq_ex>, Error> {
    let create = later!(opened, create_cq_ex).ok_or(Error::Unsupported("ibv_create_cq_ex"))?;
    let fields =
        IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
    let mut wish = ibv_cq_init_attr_ex {
        cqe: entries,
        cq_context: ptr::null_mut(),
        channel,
        comp_vector: 0,
        wc_flags: u64::from(fields),
        comp_mask: 0,
        flags: 0,
        parent_domain: ptr::null_mut(),
    };
    // SAFETY: the context is open, and the pointer is that of a live structure.
    let queue = unsafe { create(opened.raw.as_ptr(), &raw mut wish) };
    let queue = NonNull::new(queue).ok_or_else(|| Error::last("ibv_create_cq_ex"))?;
    let raw = queue.as_ptr();
    // SAFETY: the queue is live.
    let is_whole = unsafe {
        (*raw).start_poll.is_some()
            && (*raw).next_poll.is_some()
            && (*raw).end_poll.is_some()
            && (*raw).read_opcode.is_some()
            && (*raw).read_vendor_err.is_some()
            && (*raw).read_byte_len.is_some()
            && (*raw).read_imm_data.is_some()
            && (*raw).read_qp_num.is_some()
            && (*raw).read_wc_flags.is_some()
            && (*raw).read_completion_ts.is_some()
    };
    if is_whole {
        return Ok(queue);
    }
    // SAFETY: the queue was created once, and nobody uses it.
    unsafe { (opened.functions.ibv_destroy_cq)(queue.as_ptr().cast()) };
    Err(Error::Unsupported("ibv_wc_read_completion_ts"))
}

/// Reads a field of the completion that the queue stands at. All functions that are used here are there: `create` has seen them.
macro_rules! field {
    ($queue:expr, $read:ident) => {
        // SAFETY: the queue is live, and stands at a completion.
        unsafe { (*$queue.as_ptr()).$read.map_or(0, |read| read($queue.as_ptr())) }
    };
}

/// Hands over the completions that are there, at most a batch. Returns how many there were.
pub(super) fn poll(queue: NonNull<ibv_cq_ex>, mut take: impl FnMut(&WorkCompletion)) -> Result<usize, Error> {
    let Some(round) = Round::start(queue)? else { return Ok(0) };
    let (mut answer, mut count) = (0, 0);
    while answer == 0 {
        take(&completion(queue));
        count += 1;
        if count == BATCH {
            break;
        }
        // SAFETY: the round has been started.
        answer = unsafe { (round.next)(queue.as_ptr()) };
    }
    match answer {
        0 | libc::ENOENT => Ok(count),
        errno => Err(Error::Refused { verb: "ibv_next_poll", errno: errno.abs() }),
    }
}

/// A round of polling, which ends when it is dropped: until then the driver keeps the queue locked.
struct Round {
    queue: NonNull<ibv_cq_ex>,
    next: unsafe extern "C" fn(*mut ibv_cq_ex) -> c_int,
    end: unsafe extern "C" fn(*mut ibv_cq_ex),
}

impl Round {
    /// Starts a round, which stands at the first completion; `None` if the queue is empty.
    fn start(queue: NonNull<ibv_cq_ex>) -> Result<Option<Self>, Error> {
        let raw = queue.as_ptr();
        // SAFETY: the queue is live, and the functions do not change.
        let (start, next, end) = unsafe { ((*raw).start_poll, (*raw).next_poll, (*raw).end_poll) };
        let (Some(start), Some(next), Some(end)) = (start, next, end) else {
            return Err(Error::Unsupported("ibv_start_poll"));
        };
        let mut attributes = ibv_poll_cq_attr { comp_mask: 0 };
        // SAFETY: the queue is live, this thread has it for itself, and the pointer is that of a live structure.
        match unsafe { start(raw, &raw mut attributes) } {
            0 => Ok(Some(Round { queue, next, end })),
            libc::ENOENT => Ok(None),
            errno => Err(Error::Refused { verb: "ibv_start_poll", errno: errno.abs() }),
        }
    }
}

impl Drop for Round {
    fn drop(&mut self) {
        // SAFETY: the round has been started, and is ended once.
        unsafe { (self.end)(self.queue.as_ptr()) };
    }
}

fn completion(queue: NonNull<ibv_cq_ex>) -> WorkCompletion {
    // SAFETY: the queue is live, and stands at a completion.
    let (id, status) = unsafe { ((*queue.as_ptr()).wr_id, (*queue.as_ptr()).status) };
    let queue_pair = field!(queue, read_qp_num);
    if status != IBV_WC_SUCCESS {
        let vendor_error = field!(queue, read_vendor_err);
        return WorkCompletion { id, queue_pair, status, vendor_error, ..WorkCompletion::default() };
    }
    let timestamp = Some(field!(queue, read_completion_ts));
    let (opcode, flags) = (field!(queue, read_opcode), field!(queue, read_wc_flags));
    let (length, immediate) = (field!(queue, read_byte_len), field!(queue, read_imm_data));
    WorkCompletion { id, queue_pair, timestamp, ..WorkCompletion::default() }
        .succeeded(opcode, length, flags, immediate)
}
