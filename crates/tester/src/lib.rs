//! A benchmark from URI to result, for any [`Protocol`].

mod error;
mod far_end;
mod limit;
mod open;
mod protocol;
mod serve;
mod simulated;
mod uri;

pub use error::{Error, ended};
pub use far_end::{FarEnd, LISTENING_ON, PAGES_ON};
pub use limit::{Floor, OnTheWire, Operation, floor, in_turn, limit, measured, pairs};
pub use open::{Opened, Settings, cannot, check_options, check_size, in_parts, open, socket_settings, until_ready};
pub use protocol::{Catalog, Description, Part, Protocol};
pub use serve::{LOOPBACK, ServeSettings, Server, Service, serve};
pub use simulated::{MODEL_ASSUMES, SERVER_NODE, networks, simulated, simulated_far_end};
pub use uri::Uri;
