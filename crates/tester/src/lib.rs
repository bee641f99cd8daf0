//! A benchmark from URI to result, for any [`Protocol`].

mod benchmark;
mod congestion;
mod drive;
pub mod environment;
mod error;
mod facts;
mod far_end;
mod limit;
mod line;
mod open;
mod placement;
mod plan;
mod private_dir;
mod process;
mod protocol;
mod round_trip;
mod running;
mod serve;
mod simulated;
mod steps;
mod unmeasured;
mod uri;

pub use benchmark::{Benchmark, Conditions, Host, Observer, Unobserved, document};
pub use congestion::check_congestion;
pub use error::{Error, ended};
pub use far_end::{FarEnd, LISTENING_ON, PAGES_ON};
pub use limit::{baseline, limit, tcp_times};
pub use open::{Opened, Settings, cannot, check_options, check_size, in_parts, open, socket_settings, until_ready};
pub use plan::{Choice, Timing};
pub use private_dir::PrivateDir;
pub use protocol::{Catalog, Description, Protocol, TestGroup};
pub use serve::{LOOPBACK, ServeSettings, Server, Service, serve};
pub use simulated::{SERVER_NODE, networks, simulated, simulated_far_end};
pub use uri::Uri;
