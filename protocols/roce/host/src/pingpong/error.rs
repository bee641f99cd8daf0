//! The errors of a ping-pong.

use crate::device::{Device, DeviceError};
use hodo_roce::Status;
use std::time::Duration;
use thiserror::Error;

/// Why a ping-pong failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PingPongError {
    /// The device refused something.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A request did not succeed.
    #[error("Failed status {status} ({}) for wr_id {id}", status.code())]
    Failed {
        /// The outcome.
        status: Status,
        /// The request's number.
        id: u64,
    },
    /// Nothing completed for a long time.
    #[error("no completion within {} s: is the far end stopped, or with another number of iterations?", .0.as_secs())]
    Stalled(Duration),
    /// The far end has acknowledged everything, and sends nothing.
    #[error(
        "no message within {} s after {received} of {iterations}, though the far end has acknowledged every message of ours: is it \
         stopped, or with another number of iterations?",
        patience.as_secs()
    )]
    Unanswered {
        /// How long it was waited for.
        patience: Duration,
        /// Messages that came.
        received: u64,
        /// Messages that should come.
        iterations: u64,
    },
    /// A message had another length.
    #[error("message {number} has {length} bytes, not {size}: both ends need the same --size")]
    WrongLength {
        /// The message, from 0.
        number: u64,
        /// Bytes that came.
        length: u32,
        /// Bytes that were expected.
        size: u32,
    },
    /// A byte of a message is wrong.
    #[error("message {number}: byte {offset} is {found:#04x}, not {expected:#04x}")]
    WrongData {
        /// The message, from 0.
        number: u64,
        /// The byte.
        offset: usize,
        /// The value that arrived.
        found: u8,
        /// The value that was sent.
        expected: u8,
    },
    /// An atomic operation counted wrong.
    #[error("atomic operation {number}: the count is {found}, not {expected}")]
    WrongAtomic {
        /// The operation, from 0.
        number: u64,
        /// The count that was found.
        found: u64,
        /// The expected count.
        expected: u64,
    },
    /// An exchange failed, and the device knows more.
    #[error("{error}; {remark}")]
    Remarked {
        /// The failure.
        error: Box<PingPongError>,
        /// The remark of [`Device::remark`].
        remark: String,
    },
}

impl PingPongError {
    /// Returns the error with what its device can tell of the reason.
    #[must_use]
    pub(crate) fn remarked(self, device: &impl Device) -> Self {
        let is_of_silence = match &self {
            PingPongError::Failed { status, .. } => *status == Status::RetryExceeded,
            PingPongError::Stalled(_) => true,
            PingPongError::Unanswered { received, .. } => *received == 0,
            _ => false,
        };
        match device.remark().filter(|_| is_of_silence) {
            Some(remark) => PingPongError::Remarked { error: Box::new(self), remark },
            None => self,
        }
    }
}
