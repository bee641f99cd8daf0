//! Memory that two processes of one host share, and the Unix sockets over which they pass it to each other.

mod channel;
mod channel_set;
mod mapping;
mod sys;

pub use channel::{Channel, ChannelListener, FILES_MAX, Received};
pub use channel_set::ChannelSet;
pub use mapping::{OutOfBounds, SharedMemory};
