//! RDMA reliable connections over RoCEv2 (InfiniBand Architecture Specification, volume 1, and its annex A17).
//!
//! An [`Adapter`] is a channel adapter in software: memory regions, and queue pairs of the reliable-connection service. Work
//! requests go in, completions come out, as an application of verbs knows them.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;

mod adapter;
mod attributes;
mod completion;
pub mod icrc;
mod memory;
mod packet;
mod psn;
mod queue;
mod queue_pair;
mod requester;
mod responder;
pub mod wire;
mod work;

pub use adapter::{Adapter, AdapterCommand, AdapterConfig, Counters};
pub use attributes::{AckTimeout, Capacity, Connection, Mtu, State, VerbError};
pub use completion::{Completed, Completion, Status};
pub use memory::AccessError;
pub use psn::Psn;
pub use work::{Access, Operation, ReceiveRequest, Remote, ScatterEntry, SendRequest};
