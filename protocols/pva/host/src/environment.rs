//! The variables `EPICS_PVA*` and `EPICS_PVAS*`, as values that a client and a server take.
//!
//! | variable | side | default | meaning |
//! |---|---|---|---|
//! | `EPICS_PVA_ADDR_LIST` | client | empty | where searches are sent to |
//! | `EPICS_PVA_AUTO_ADDR_LIST` | client | `YES` | whether they also go to the broadcast address of each interface |
//! | `EPICS_PVA_NAME_SERVERS` | client | empty | servers that are searched over TCP |
//! | `EPICS_PVA_INTF_ADDR_LIST` | client | all | the interfaces that searches are sent from, and whose beacons are received |
//! | `EPICS_PVA_BROADCAST_PORT`, `EPICS_PVAS_BROADCAST_PORT` | both, server | 5076 | the UDP port of searches and beacons |
//! | `EPICS_PVA_SERVER_PORT`, `EPICS_PVAS_SERVER_PORT` | both, server | 5075 | the TCP port of a server |
//! | `EPICS_PVAS_INTF_ADDR_LIST` | server | all | the interfaces, and groups, at which the server is found |
//! | `EPICS_PVAS_BEACON_ADDR_LIST` | server | `EPICS_PVA_ADDR_LIST` | where beacons are sent to |
//! | `EPICS_PVAS_AUTO_BEACON_ADDR_LIST` | server | `EPICS_PVA_AUTO_ADDR_LIST` | whether they also go to the broadcast address of each interface |
//! | `EPICS_PVAS_IGNORE_ADDR_LIST` | server | empty | clients that are not answered, from any port unless one is given |
//! | `EPICS_PVA_CONN_TMO` | both | 30 | seconds of silence, times 4/3, after which a connection is given up |
//!
//! Addresses are `host[:port][,ttl][@interface]`, separated by blanks; those of IPv6 stand in brackets. Where two variables are named, the
//! server prefers its own. As in pvxs, `EPICS_PVA_MAX_ARRAY_BYTES`, `EPICS_PVA_BEACON_PERIOD` and `EPICS_PVAS_PROVIDER_NAMES` mean nothing.

mod addresses;
mod client;
mod ports;
mod server;

pub use addresses::{AddressEntry, EntryError};
use hodo_io::nic::{Interface, interfaces};
use hodo_pva::SessionConfig;
use hodo_pva::wire::{DISCOVERY_PORT, SERVER_PORT};
pub use ports::BindPort;
use std::net::SocketAddr;
use std::time::Duration;
use thiserror::Error;

/// The settings of the network, for both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment {
    /// Settings of a client.
    pub client: ClientNetwork,
    /// Settings of a server.
    pub server: ServerNetwork,
}

/// The settings with which a client finds servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientNetwork {
    /// Where searches are sent to.
    pub targets: Vec<AddressEntry>,
    /// Whether they also go to the broadcast address of each interface.
    pub auto_targets: bool,
    /// Servers that are searched over TCP.
    pub name_servers: Vec<SocketAddr>,
    /// The interfaces that are used; none for all.
    pub interfaces: Vec<AddressEntry>,
    /// The UDP port of searches and beacons.
    pub broadcast_port: u16,
    /// How long a server may be silent.
    pub silence_timeout: Duration,
}

/// The settings with which a server is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerNetwork {
    /// The addresses of this host and the multicast groups at which the server is found; none for all addresses. A port is that of TCP.
    pub interfaces: Vec<AddressEntry>,
    /// The TCP port; 0 for any free one.
    pub port: u16,
    /// Whether a free port is taken if another program has that one: only if nobody has named it.
    pub may_move: bool,
    /// The UDP port of searches; 0 for any free one.
    pub broadcast_port: u16,
    /// Clients that are not answered, from any port for port 0.
    pub ignored: Vec<SocketAddr>,
    /// Where beacons are sent to.
    pub beacons: Vec<AddressEntry>,
    /// Whether they also go to the broadcast address of each interface.
    pub auto_beacons: bool,
    /// How long a client may be silent.
    pub silence_timeout: Duration,
}

/// The shortest time of silence that can be set, and the largest number of seconds that is taken for one.
const SILENCE_MIN: Duration = Duration::from_secs(2);
const SILENCE_MAX_S: f64 = 1e9;
/// The period between echoes, at most.
const ECHO_MAX: Duration = Duration::from_secs(15);

/// An error in one of the variables.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{variable}: {why}")]
pub struct EnvironmentError {
    /// The name of the variable.
    pub variable: &'static str,
    /// The mistake.
    pub why: EnvironmentMistake,
}

/// A mistake in the text of a variable.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EnvironmentMistake {
    /// An entry of an address list is wrong.
    #[error("`{entry}`: {why}")]
    Entry {
        /// The entry.
        entry: String,
        /// The mistake.
        why: EntryError,
    },
    /// The text is no port.
    #[error("`{0}` is not a port: write a number in 0..=65535")]
    Port(String),
    /// The text is neither yes nor no.
    #[error("`{0}` is neither YES nor NO")]
    Flag(String),
    /// The text is no number of seconds.
    #[error("`{0}` is not a time: write a positive number of seconds")]
    Seconds(String),
}

impl Environment {
    /// Reads the variables of this process.
    ///
    /// # Errors
    /// An [`EnvironmentError`] with the variable and its mistake.
    pub fn read() -> Result<Self, EnvironmentError> {
        let variable = |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
        Environment::from(variable, &interfaces())
    }

    /// Reads variables from elsewhere, for a host with these interfaces.
    ///
    /// # Errors
    /// An [`EnvironmentError`] with the variable and its mistake.
    pub fn from(variable: impl Fn(&str) -> Option<String>, host: &[Interface]) -> Result<Self, EnvironmentError> {
        let reader = Reader { variable: &variable, host };
        let broadcast_port = reader.port("EPICS_PVA_BROADCAST_PORT", DISCOVERY_PORT)?;
        let port = reader.port("EPICS_PVA_SERVER_PORT", SERVER_PORT)?;
        let silence_timeout = reader.silence("EPICS_PVA_CONN_TMO")?;
        let targets = reader.addresses("EPICS_PVA_ADDR_LIST", broadcast_port)?.unwrap_or_default();
        let auto_targets = reader.flag("EPICS_PVA_AUTO_ADDR_LIST", true)?;
        let sockets = |entries: Option<Vec<AddressEntry>>| {
            entries.unwrap_or_default().into_iter().map(|entry| entry.address).collect::<Vec<SocketAddr>>()
        };
        let client = ClientNetwork {
            name_servers: sockets(reader.addresses("EPICS_PVA_NAME_SERVERS", port)?),
            interfaces: reader.addresses("EPICS_PVA_INTF_ADDR_LIST", 0)?.unwrap_or_default(),
            targets,
            auto_targets,
            broadcast_port,
            silence_timeout,
        };
        let broadcast_port = reader.port("EPICS_PVAS_BROADCAST_PORT", broadcast_port)?;
        let own_beacons = reader.addresses("EPICS_PVAS_BEACON_ADDR_LIST", broadcast_port)?;
        // Read once more, since its entries without a port mean another one here.
        let beacons = match own_beacons {
            None => reader.addresses("EPICS_PVA_ADDR_LIST", broadcast_port)?.unwrap_or_default(),
            Some(own) => own,
        };
        let server = ServerNetwork {
            interfaces: reader.addresses("EPICS_PVAS_INTF_ADDR_LIST", 0)?.unwrap_or_default(),
            port: reader.port("EPICS_PVAS_SERVER_PORT", port)?,
            may_move: ["EPICS_PVA_SERVER_PORT", "EPICS_PVAS_SERVER_PORT"]
                .iter()
                .all(|name| reader.text(name).is_none()),
            broadcast_port,
            ignored: sockets(reader.addresses("EPICS_PVAS_IGNORE_ADDR_LIST", 0)?),
            beacons,
            auto_beacons: reader.flag("EPICS_PVAS_AUTO_BEACON_ADDR_LIST", auto_targets)?,
            silence_timeout,
        };
        Ok(Environment { client, server })
    }
}

impl Default for Environment {
    /// Returns the settings where no variable is set.
    fn default() -> Self {
        let silence_timeout = SessionConfig::default().silence_timeout;
        let client = ClientNetwork {
            targets: Vec::new(),
            auto_targets: true,
            name_servers: Vec::new(),
            interfaces: Vec::new(),
            broadcast_port: DISCOVERY_PORT,
            silence_timeout,
        };
        let server = ServerNetwork {
            interfaces: Vec::new(),
            port: SERVER_PORT,
            may_move: true,
            broadcast_port: DISCOVERY_PORT,
            ignored: Vec::new(),
            beacons: Vec::new(),
            auto_beacons: true,
            silence_timeout,
        };
        Environment { client, server }
    }
}

impl ClientNetwork {
    /// Returns the settings of a connection.
    #[must_use]
    pub fn session(&self) -> SessionConfig {
        session(self.silence_timeout)
    }
}

impl ServerNetwork {
    /// Returns the settings of a connection.
    #[must_use]
    pub fn session(&self) -> SessionConfig {
        session(self.silence_timeout)
    }
}

fn session(silence_timeout: Duration) -> SessionConfig {
    let echo_every = (silence_timeout * 3 / 8).min(ECHO_MAX);
    SessionConfig { silence_timeout, echo_every, ..SessionConfig::default() }
}

/// Reads variables one by one.
struct Reader<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
    host: &'a [Interface],
}

impl Reader<'_> {
    /// Returns the text of a variable that is set to more than blanks.
    fn text(&self, name: &str) -> Option<String> {
        (self.variable)(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    fn port(&self, variable: &'static str, default: u16) -> Result<u16, EnvironmentError> {
        let Some(text) = self.text(variable) else { return Ok(default) };
        text.parse().map_err(|_| EnvironmentError { variable, why: EnvironmentMistake::Port(text) })
    }

    fn flag(&self, variable: &'static str, default: bool) -> Result<bool, EnvironmentError> {
        let Some(text) = self.text(variable) else { return Ok(default) };
        match text.to_ascii_uppercase().as_str() {
            "YES" | "1" => Ok(true),
            "NO" | "0" => Ok(false),
            _ => Err(EnvironmentError { variable, why: EnvironmentMistake::Flag(text) }),
        }
    }

    fn silence(&self, variable: &'static str) -> Result<Duration, EnvironmentError> {
        let Some(text) = self.text(variable) else { return Ok(SessionConfig::default().silence_timeout) };
        match text.parse::<f64>() {
            // What is configured was the period of echoes once, and is shorter than the silence by tradition.
            Ok(seconds) if seconds > 0.0 && seconds < SILENCE_MAX_S => {
                Ok(Duration::from_secs_f64(seconds * 4.0 / 3.0).max(SILENCE_MIN))
            }
            _ => Err(EnvironmentError { variable, why: EnvironmentMistake::Seconds(text) }),
        }
    }

    /// Returns the entries of a list, each once; `None` if the variable is not set.
    fn addresses(
        &self,
        variable: &'static str,
        default_port: u16,
    ) -> Result<Option<Vec<AddressEntry>>, EnvironmentError> {
        let Some(text) = (self.variable)(variable) else { return Ok(None) };
        let mut entries: Vec<AddressEntry> = Vec::new();
        for word in text.split_whitespace() {
            let entry = AddressEntry::parse(word, default_port, self.host).map_err(|why| {
                let why = EnvironmentMistake::Entry { entry: word.to_owned(), why };
                EnvironmentError { variable, why }
            })?;
            let is_same = |one: &&mut AddressEntry| (one.address, one.interface) == (entry.address, entry.interface);
            match entries.iter_mut().find(is_same) {
                Some(one) => one.hops = one.hops.max(entry.hops),
                None => entries.push(entry),
            }
        }
        Ok(Some(entries))
    }
}

#[cfg(test)]
mod tests;
