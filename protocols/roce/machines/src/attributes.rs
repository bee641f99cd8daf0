//! The attributes and the states of a queue pair (volume 1, 10.3.1 and 11.2.5.2; `ibv_qp_attr`).

use crate::Psn;
use core::fmt;
use core::time::Duration;
use hodo_machine::Address;
use thiserror::Error;

/// The sizes of a queue pair's queues.
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

/// The state of a queue pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Receives may be posted; nothing is sent or received.
    Init,
    /// Ready to receive.
    ReadyToReceive,
    /// Ready to receive and to send.
    ReadyToSend,
    /// A request failed for good: everything that is outstanding, and is posted from now on, is flushed.
    Error,
}

/// The path MTU: the bytes of payload of a full packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mtu(u32);

impl Mtu {
    /// Every path MTU there is.
    pub const ALL: [Mtu; 5] = [Mtu(256), Mtu(512), Mtu(1024), Mtu(2048), Mtu(4096)];

    /// Returns the path MTU of this many bytes, if there is one.
    #[must_use]
    pub fn new(bytes: u32) -> Option<Mtu> {
        Self::ALL.into_iter().find(|mtu| mtu.0 == bytes)
    }

    /// Returns the bytes.
    #[must_use]
    #[inline]
    pub const fn bytes(self) -> u32 {
        self.0
    }

    /// Returns how many packets carry a message: at least one.
    #[must_use]
    #[inline]
    pub const fn packets(self, length: u32) -> u32 {
        // The sizes are powers of two.
        let packets = (length as u64 + self.0 as u64 - 1) >> self.0.trailing_zeros();
        if packets == 0 { 1 } else { packets as u32 }
    }
}

impl fmt::Display for Mtu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How long a requester waits for an acknowledgement before it sends again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AckTimeout {
    /// For ever.
    Never,
    /// This long each time (9.7.6.1.3): 4.096 us * 2^t for the codes 1 to 31 of verbs.
    Fixed(Duration),
    /// As long as round trips have taken, as TCP estimates it (RFC 6298), at least this long, and twice as long after
    /// each timeout.
    Measured(Duration),
}

impl AckTimeout {
    /// Returns the timeout that verbs code so, from 0 to 31.
    #[must_use]
    pub const fn of_code(code: u8) -> AckTimeout {
        match code & 31 {
            0 => AckTimeout::Never,
            code => AckTimeout::Fixed(Duration::from_nanos(4096 << code)),
        }
    }
}

/// The far end of a connection, and how it is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    /// Where the packets go.
    pub address: Address,
    /// The queue pair there.
    pub queue_pair: u32,
    /// The first packet sequence number that it sends.
    pub receive_psn: Psn,
    /// The first packet sequence number that this side sends.
    pub send_psn: Psn,
    /// The path MTU.
    pub mtu: Mtu,
    /// The acknowledgement timeout.
    pub timeout: AckTimeout,
    /// Retries after a timeout or a sequence error, 0 to 7.
    pub retries: u8,
    /// Retries when the receiver is not ready: 0 to 6, or 7 for any number.
    pub receiver_not_ready_retries: u8,
    /// The code of the time that the far end waits when this receiver is not ready.
    pub receiver_not_ready_timer: u8,
    /// Reads and atomic operations of this side in flight.
    pub reads: u8,
    /// Reads and atomic operations of the far end in flight.
    pub reads_served: u8,
}

/// Why a verb was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum VerbError {
    /// There is no such queue pair.
    #[error("there is no queue pair {0:#08x}")]
    NoSuchQueuePair(u32),
    /// The queue pair's state does not allow it.
    #[error("the queue pair is in the state {0:?}")]
    State(State),
    /// The queue is full.
    #[error("the queue is full: {0} requests are outstanding")]
    QueueFull(u32),
    /// The request has more entries than the queue pair was made for.
    #[error("{given} entries, and the queue pair was created for {most}")]
    TooManyEntries {
        /// Entries of the request.
        given: usize,
        /// Entries of the queue pair.
        most: u32,
    },
    /// The payload is longer than the port's limit, or than the limit of inline payloads.
    #[error("{given} bytes, and the limit is {most}")]
    TooLong {
        /// Bytes of the request.
        given: u64,
        /// The limit.
        most: u32,
    },
    /// The request is malformed. The text says how.
    #[error("{0}")]
    Malformed(&'static str),
    /// No more queue pairs or regions.
    #[error("the adapter's limit of {0} is reached")]
    OverBound(&'static str),
}
