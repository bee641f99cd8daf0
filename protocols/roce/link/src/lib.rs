//! RDMA as links of the tester: the operations of a plan as work requests, over any [`Device`](hodo_roce_host::Device).
//!
//! | scheme | device |
//! |---|---|
//! | `roce` | the software adapter |
//! | `verbs` | an adapter through libibverbs |
//! | `shm` | shared memory of one host |
//!
//! The two ends meet over TCP. Each channel is a queue pair; one more carries control messages.
//!
//! | operation | payload out | payload back | out and back |
//! |---|---|---|---|
//! | send | SEND | SEND of 0 bytes, answered by SEND | SEND, answered by SEND |
//! | write | WRITE | WRITE of 0 bytes, answered by WRITE | WRITE, answered by WRITE |
//! | read | | READ | |
//!
//! A request that is answered carries the bytes of its answer as immediate data; the answer to a WRITE carries them, too.

mod backend;
mod client;
mod control;
mod far_end;
mod feed;
mod greeting;
mod open;
mod options;
mod protocol;
mod served;
mod study;
mod suite;
mod wire;

pub use protocol::{ROCE, Rdma};
