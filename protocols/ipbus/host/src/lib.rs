#![doc = include_str!("../README.md")]

#[cfg(feature = "daemon")]
pub mod daemon;
mod file_system;
pub mod registers;
mod session;

pub use file_system::Files;
pub use hodo_io::{ServeOptions, Server, Stop};
/// The packets, the client, the hub and the device, as machines.
pub use hodo_ipbus as machines;
pub use hodo_ipbus::{Error, hub, window, wire};
pub use hodo_machine::{Address, Transport, Wait};
pub use hodo_uhal::{connections, files, finding, pattern, table, uri};
pub use session::{Access, AccessResult, Action, At, Failure, Queued, Session, SessionError, SessionSettings};
