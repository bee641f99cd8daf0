//! RDMA reliable connections over RoCEv2 (InfiniBand Architecture Specification, volume 1, and its annex A17).
//!
//! An [`Adapter`] is a channel adapter in software: memory regions, and queue pairs of the reliable-connection service. Work
//! requests go in, completions come out, as an application of verbs knows them.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;

mod completion;
mod work;

pub use completion::{Completed, Completion, Status};
pub use work::{Access, Operation, ReceiveRequest, Remote, ScatterEntry, SendRequest};
