#![doc = include_str!("../README.md")]

mod device;
pub mod exchange;
pub mod perftest;
pub mod pingpong;
pub mod session;
mod shm;
mod soft;
mod verbs;

pub use device::{AddressOfQueuePair, Device, DeviceError, Gid, Limits, Region, Reliability, WaitMode};
pub use hodo_io::{Clock, PathOptions};
pub use hodo_machine::{Instant, Wait};
/// Requests, completions, rights and the software adapter, as machines.
pub use hodo_roce as machines;
pub use hodo_roce::wire::PORT as UDP_PORT;
pub use shm::{SharedMemoryDevice, SharedMemorySettings};
pub use soft::{SoftDevice, SoftSettings};
pub use verbs::{MemoryKind, VerbsDevice, VerbsSettings};
