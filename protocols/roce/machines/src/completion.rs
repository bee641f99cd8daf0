//! Work completions (volume 1, 11.4.2.1; `ibv_poll_cq`).

use core::fmt;

hodo_machine::codes! {
    /// The outcome of a work request (`ibv_wc_status`), with the words of `ibv_wc_status_str`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Status: u32 {
        /// The request succeeded.
        Success = 0 => "success",
        /// A message was longer than the buffer of its receive request, or than the port's limit.
        LocalLength = 1 => "local length error",
        /// The queue pair cannot carry out the request.
        LocalQueuePair = 2 => "local QP operation error",
        /// An entry is outside of a region, or its key or its rights are wrong.
        LocalProtection = 4 => "local protection error",
        /// The queue pair had failed before the request was carried out.
        Flushed = 5 => "Work Request Flushed Error",
        /// The response is not one to the request.
        BadResponse = 7 => "bad response error",
        /// A protection error on a local buffer of an incoming request.
        LocalAccess = 8 => "local access error",
        /// The far end found the request invalid.
        RemoteInvalidRequest = 9 => "remote invalid request error",
        /// The remote key, the address or the rights are wrong.
        RemoteAccess = 10 => "remote access error",
        /// The far end could not carry out the request.
        RemoteOperation = 11 => "remote operation error",
        /// No acknowledgement came within all retries.
        RetryExceeded = 12 => "transport retry counter exceeded",
        /// The far end had no receive request within all retries.
        ReceiverNotReady = 13 => "RNR retry counter exceeded",
        /// A failure of another kind.
        General = 21 => "general error",
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

hodo_machine::codes! {
    /// The kind of request that was completed (`ibv_wc_opcode`).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Completed: u32 {
        /// A send.
        Send = 0,
        /// A write to the far end.
        Write = 1,
        /// A read from the far end.
        Read = 2,
        /// A compare-and-swap.
        CompareSwap = 3,
        /// A fetch-and-add.
        FetchAdd = 4,
        /// A receive of a message.
        Receive = 128,
        /// A receive that a write with immediate has completed.
        ReceiveWrite = 129,
    }
}

impl Completed {
    /// Returns whether the request came from the receive queue.
    #[must_use]
    pub const fn is_receive(self) -> bool {
        matches!(self, Completed::Receive | Completed::ReceiveWrite)
    }
}

/// The completion of a work request (`ibv_wc`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// The application's number of the request.
    pub id: u64,
    /// The queue pair's number.
    pub queue_pair: u32,
    /// The outcome. If it is an error, only `id` and `queue_pair` are meaningful beside it.
    pub status: Status,
    /// The kind of request.
    pub kind: Completed,
    /// Bytes received or read; 0 for sends and writes.
    pub length: u32,
    /// The immediate data of a received message.
    pub immediate: Option<u32>,
    /// The remote key that a received message has invalidated.
    pub invalidated: Option<u32>,
    /// Whether the far end asked for an event.
    pub is_solicited: bool,
}
