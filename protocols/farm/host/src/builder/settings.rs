use crate::process::ProcessSettings;
use hodo_daemon::Options;
use hodo_farm::BuilderConfig;
use hodo_machine::Address;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// Where a builder listens by default.
const PORT: u16 = 5501;

/// Settings of a builder.
#[derive(Debug, Clone)]
pub struct BuilderSettings {
    /// Where sources connect; port 0 is any free one.
    pub listen: SocketAddr,
    /// The builder itself. Its instance is set when it starts.
    pub config: BuilderConfig,
    /// Pages, and the file with the process number.
    pub daemon: Options,
    /// How long events in hand may take when the builder is to stop.
    pub drain: Duration,
    /// The process.
    pub process: ProcessSettings,
}

impl BuilderSettings {
    /// Creates a builder on loopback, without pages, of events from this many sources.
    #[must_use]
    pub fn new(controller: SocketAddr, sources: u32) -> Self {
        BuilderSettings {
            listen: (Ipv4Addr::LOCALHOST, PORT).into(),
            config: BuilderConfig::new(Address::Tcp(controller), sources),
            daemon: Options::default(),
            drain: Duration::from_secs(5),
            process: ProcessSettings::default(),
        }
    }
}
