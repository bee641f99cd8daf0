//! RDMA reliable connections on a host: one interface to the software adapter, to shared memory, and to real adapters through
//! libibverbs; and the tests of `ibv_rc_pingpong` and perftest.

mod device;
pub mod exchange;
pub mod perftest;
pub mod pingpong;
pub mod session;
mod shm;
mod soft;
mod verbs;

pub use device::{AddressOfQueuePair, Device, DeviceError, Gid, Limits, Region, Reliability, WaitMode};
pub use hodo_roce::wire::PORT as UDP_PORT;
pub use shm::{SharedMemoryDevice, SharedMemorySettings};
pub use soft::{SoftDevice, SoftSettings};
pub use verbs::{MemoryKind, VerbsDevice, VerbsSettings};
