//! RDMA reliable connections on a host: one interface to the software adapter, to shared memory, and to real adapters through
//! libibverbs; links for the tester, and the ping-pong study.

mod device;
pub mod pingpong;
mod soft;

pub use device::{AddressOfQueuePair, Device, DeviceError, Gid, Limits, Region, Reliability, WaitMode};
pub use soft::{SoftDevice, SoftSettings};
