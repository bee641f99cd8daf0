//! IPbus on a host: sessions for applications, and registers by their names; with its feature, the hub's daemon.

#[cfg(feature = "daemon")]
pub mod daemon;
mod file_system;
pub mod registers;
mod session;

pub use file_system::Files;
pub use hodo_ipbus::{Error, hub, window, wire};
pub use hodo_uhal::{connections, files, finding, pattern, table, uri};
pub use session::{Access, AccessResult, Action, At, Failure, Queued, Session, SessionError, SessionSettings};
