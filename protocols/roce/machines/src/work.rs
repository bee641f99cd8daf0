//! Work requests, as an application posts them (volume 1, 10.8; `ibv_post_send`, `ibv_post_recv`).

/// A run of bytes of a registered region (`ibv_sge`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScatterEntry {
    /// The virtual address of the first byte.
    pub address: u64,
    /// Bytes.
    pub length: u32,
    /// The region's local key.
    pub key: u32,
}

/// A place in the memory of the far end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Remote {
    /// The virtual address at the far end.
    pub address: u64,
    /// The remote key of the region there.
    pub key: u32,
}

/// The operation of a send request (`ibv_wr_opcode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Sends a message into the next receive buffer of the far end.
    Send,
    /// Sends a message with 32 bits that its completion reports.
    SendWithImmediate(u32),
    /// Sends a message, and invalidates a remote key at the far end.
    SendWithInvalidate(u32),
    /// Writes into a region of the far end.
    Write(Remote),
    /// Writes into a region of the far end, and completes a receive there, which reports 32 bits.
    WriteWithImmediate(Remote, u32),
    /// Reads from a region of the far end.
    Read(Remote),
    /// Sets eight bytes of the far end to `swap` if they are `compare`; returns what they were.
    CompareSwap {
        /// Eight bytes, aligned to eight.
        remote: Remote,
        /// The expected value.
        compare: u64,
        /// The new value.
        swap: u64,
    },
    /// Adds to eight bytes of the far end; returns what they were.
    FetchAdd {
        /// Eight bytes, aligned to eight.
        remote: Remote,
        /// The summand, modulo 2^64.
        add: u64,
    },
}

/// A request for the send queue (`ibv_send_wr`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendRequest<'a> {
    /// The application's number; comes back in the completion.
    pub id: u64,
    /// The operation.
    pub operation: Operation,
    /// Where the payload is gathered from, or where a read or an atomic operation leaves its result.
    pub entries: &'a [ScatterEntry],
    /// Whether a success is reported; an error always is.
    pub is_signaled: bool,
    /// Whether the completion at the far end is a solicited event.
    pub is_solicited: bool,
    /// Whether the request waits until all reads and atomic operations before it have completed.
    pub has_fence: bool,
    /// Whether the payload is copied when the request is posted, so that its memory may be reused at once.
    pub is_inline: bool,
}

impl<'a> SendRequest<'a> {
    /// Creates a signaled request with nothing else set.
    #[must_use]
    pub const fn new(id: u64, operation: Operation, entries: &'a [ScatterEntry]) -> Self {
        SendRequest {
            id,
            operation,
            entries,
            is_signaled: true,
            is_solicited: false,
            has_fence: false,
            is_inline: false,
        }
    }
}

/// A request for the receive queue (`ibv_recv_wr`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiveRequest<'a> {
    /// The application's number; comes back in the completion.
    pub id: u64,
    /// Where a message is scattered to.
    pub entries: &'a [ScatterEntry],
}

/// The rights of a memory region (`ibv_access_flags`). Reading by the local side is always allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Access {
    /// Receives, reads and atomic operations of the local side may write to the region.
    pub local_write: bool,
    /// The far end may write to it.
    pub remote_write: bool,
    /// The far end may read from it.
    pub remote_read: bool,
    /// The far end may do atomic operations on it.
    pub remote_atomic: bool,
}

impl Access {
    /// The local side may write to the region, and the far end has no right.
    pub const LOCAL: Access =
        Access { local_write: true, remote_write: false, remote_read: false, remote_atomic: false };
    /// Both sides have every right.
    pub const ALL: Access = Access { local_write: true, remote_write: true, remote_read: true, remote_atomic: true };

    /// Returns whether the rights go together: a far end that may write implies that the local side may
    /// (`ibv_reg_mr` refuses anything else).
    #[must_use]
    pub const fn is_consistent(self) -> bool {
        self.local_write || !(self.remote_write || self.remote_atomic)
    }
}
