//! Which IPbus devices a URI names, and how they are reached.

use crate::link::{LinkSettings, Registers};
use hodo_ipbus::wire::operation::Mode;
use hodo_ipbus::wire::{DEVICE_PORT, HUB_PORT, Version};
use hodo_ipbus::{ClientConfig, DeviceConfig, Path};
use hodo_machine::{Address, Transport};
use hodo_tester::{Error, Settings, Uri};
use hodo_uhal::uri::{Host, Route, Uri as DeviceUri, UriError};
use std::net::{SocketAddr, SocketAddrV4};
use std::ops::Range;
use std::time::Duration;

/// How long a lone packet may take before it counts as late, where the driver sleeps: a timer that is farther away than
/// the transport's own look costs nothing.
const CALM: Duration = Duration::from_millis(50);

/// Options that are the link's own, and what they take.
pub(crate) const OPTIONS: &[(&str, &str)] = &[
    ("reliable", "true or false: whether packets over UDP have ids, so that what is lost is recovered"),
    ("max_in_flight", "packets from 1 to 1000, as 16"),
    ("address", "an address, as 0x1000: what is read and written"),
    ("access", "block or fifo: successive addresses, or one"),
];

pub(crate) const TARGET: &str = "target";
pub(crate) const PAYLOAD: &str = "max_payload_size";
/// The devices that a URI names, and what is done with them.
#[derive(Debug, Clone)]
pub(crate) struct Boards {
    version: Version,
    places: Vec<(Path, Address)>,
    payload_max: Option<usize>,
    in_flight: Option<usize>,
    reliable: Option<bool>,
    registers: Registers,
}

impl Boards {
    /// Reads those of a URI. Hosts, and targets of a hub, may be several with commas.
    pub(crate) fn of(uri: &Uri) -> Result<Boards, Error> {
        let (mut boards, others) = Boards::without_places(uri)?;
        let named = |wanted: &str| others.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
        let (target, payload) = (named(TARGET), named(PAYLOAD));
        if let Some((name, _)) = others.iter().find(|(name, _)| ![TARGET, PAYLOAD].contains(&name.as_str())) {
            let known: Vec<&str> = OPTIONS.iter().map(|(name, _)| *name).chain([PAYLOAD, TARGET]).collect();
            return Err(Error::Usage(format!(
                "`{uri}`: unknown option `{name}` of an IPbus link; the known ones are {}",
                known.join(", ")
            )));
        }
        for near in with_port(&uri.authority, default_port(uri.scheme)) {
            for target in target.map_or(vec![None], |targets| with_port(targets, DEVICE_PORT).map(Some).collect()) {
                let read = read(uri, &near, target.as_deref(), payload)?;
                let (path, host) = match &read.route {
                    Route::Udp(host) => (Path::Udp { reliable: read.version == Version::V2_0 }, host),
                    Route::Tcp(host) => (Path::Tcp, host),
                    Route::Hub { hub, target } => (Path::Hub(target_address(uri, target)?), hub),
                };
                boards.describe(&read);
                let at = address(uri, host)?;
                let at = if matches!(path, Path::Udp { .. }) { Address::Udp(at) } else { Address::Tcp(at) };
                boards.places.push((path, at));
            }
        }
        Ok(boards)
    }

    /// Returns `count` boards at the nodes of a simulated network, from node 1 on, and the options of the network.
    pub(crate) fn simulated(uri: &Uri, count: u32) -> Result<(Boards, Vec<(String, String)>), Error> {
        let (mut boards, others) = Boards::without_places(uri)?;
        let (own, network): (Vec<_>, Vec<_>) = others.into_iter().partition(|(name, _)| name == PAYLOAD);
        let read = read(uri, "node:1", None, own.first().map(|(_, value)| value.as_str()))?;
        let path = match read.route {
            Route::Udp(_) => Path::Udp { reliable: read.version == Version::V2_0 },
            _ => Path::Tcp,
        };
        boards.describe(&read);
        boards.places = (1..=count).map(|node| (path, Address::Node(node))).collect();
        Ok((boards, network))
    }

    /// Parses the link's own options, and returns the other options beside them.
    fn without_places(uri: &Uri) -> Result<(Boards, Vec<(String, String)>), Error> {
        let registers = Registers { address: 0, access: Mode::Incrementing };
        let (in_flight, reliable) = (None, None);
        let mut boards =
            Boards { version: Version::V2_0, places: Vec::new(), payload_max: None, in_flight, reliable, registers };
        let mut others = Vec::new();
        for (name, value) in &uri.options {
            match OPTIONS.iter().find(|(known, _)| known == name) {
                Some((_, takes)) => boards.take(name, value).ok_or_else(|| {
                    Error::Usage(format!("`{uri}`: option `{name}` cannot be `{value}`: it takes {takes}"))
                })?,
                None => others.push((name.clone(), value.clone())),
            }
        }
        Ok((boards, others))
    }

    fn describe(&mut self, read: &DeviceUri) {
        self.version = read.version;
        self.payload_max = read.max_payload_bytes.map(|bytes| bytes as usize);
    }

    fn take(&mut self, name: &str, value: &str) -> Option<()> {
        match (name, value) {
            ("reliable", _) => self.reliable = Some(value.parse().ok()?),
            ("max_in_flight", _) => self.in_flight = Some(value.parse().ok().filter(|most| (1..=1000).contains(most))?),
            ("address", _) => self.registers.address = word(value)?,
            ("access", "block") => self.registers.access = Mode::Incrementing,
            ("access", "fifo") => self.registers.access = Mode::Fifo,
            _ => return None,
        }
        Some(())
    }

    /// Returns the client of this channel. Channels beyond the number of devices share them; over UDP those clients
    /// have no ids then, because a device has one count of them.
    pub(crate) fn client(&self, channel: u32, settings: &Settings) -> ClientConfig {
        let (path, address) = self.places[channel as usize % self.places.len()].clone();
        let shared = settings.channels as usize > self.places.len();
        let path = match path {
            Path::Udp { .. } => {
                let reliable = self.version == Version::V2_0 && self.reliable.unwrap_or(!shared);
                Path::Udp { reliable }
            }
            other => other,
        };
        let mut config = self.config(path, address);
        config.timeout = settings.timeout;
        if settings.wait.sleeps() {
            config.calm = CALM;
        }
        config
    }

    pub(crate) fn asked(&self, channels: Range<u32>, settings: &Settings) -> LinkSettings {
        LinkSettings {
            registers: self.registers,
            channels: channels.end - channels.start,
            size_max: settings.size_max,
            batch: settings.batch,
            far_end: settings.far_process.clone(),
        }
    }

    /// Returns the configuration of a client that determines the packets of a channel.
    pub(crate) fn typical(&self) -> ClientConfig {
        let (path, address) = self.places[0].clone();
        self.config(path, address)
    }

    /// Returns how the addresses of the words follow each other: incrementing, or one address for all.
    pub(crate) fn access(&self) -> Mode {
        self.registers.access
    }

    fn config(&self, path: Path, address: Address) -> ClientConfig {
        let mut config = ClientConfig::new(path, self.version, address);
        config.payload_max = self.payload_max.unwrap_or(config.payload_max);
        config.in_flight = self.in_flight.unwrap_or(config.in_flight);
        config
    }

    /// Returns a device that these clients can talk to, with its transport.
    pub(crate) fn device(&self) -> (Transport, DeviceConfig) {
        let transport = if self.is_datagrams() { Transport::Datagram } else { Transport::Stream };
        let config = DeviceConfig::new(transport, self.version);
        let payload = self.payload_max.map_or(0, |bytes| bytes as u32);
        (transport, DeviceConfig { buffer_bytes: config.buffer_bytes.max(payload), ..config })
    }

    /// Returns whether the path is over datagrams.
    pub(crate) fn is_datagrams(&self) -> bool {
        matches!(self.places.first(), Some((Path::Udp { .. }, _)))
    }
}

/// Returns whether an option describes the link, and not the device.
pub(crate) fn is_of_link(option: &str) -> bool {
    OPTIONS.iter().any(|(name, _)| *name == option) || [PAYLOAD, TARGET].contains(&option)
}

/// Returns whether a link goes through a hub.
pub(crate) fn is_through_hub(uri: &Uri) -> bool {
    default_port(uri.scheme) == HUB_PORT
}

/// Parses the URI of a device, as uHAL does.
fn read(uri: &Uri, near: &str, target: Option<&str>, payload: Option<&str>) -> Result<DeviceUri, Error> {
    let mut text = format!("{}://{near}", uri.scheme);
    for (name, value) in [(TARGET, target), (PAYLOAD, payload)] {
        if let Some(value) = value {
            text += &format!("{}{name}={value}", if text.contains('?') { '&' } else { '?' });
        }
    }
    text.parse().map_err(|error: UriError| Error::Usage(error.to_string()))
}

const fn default_port(scheme: &str) -> u16 {
    // Of a hub's schemes only.
    if scheme.as_bytes()[0] == b'c' { HUB_PORT } else { DEVICE_PORT }
}

/// Hosts with commas between them, each with its port.
fn with_port(hosts: &str, port: u16) -> impl Iterator<Item = String> {
    hosts.split(',').map(move |host| {
        let bracket = host.rfind(']').map_or(0, |at| at);
        if host[bracket..].contains(':') { host.to_owned() } else { format!("{host}:{port}") }
    })
}

fn address(uri: &Uri, host: &Host) -> Result<SocketAddr, Error> {
    hodo_io::resolve(&host.to_string(), host.port)
        .map_err(|error| Error::Usage(format!("`{host}` in `{uri}` cannot be resolved: {error}")))
}

/// Returns the board's address; the hub's framing has room for an IPv4 address only.
fn target_address(uri: &Uri, host: &Host) -> Result<SocketAddrV4, Error> {
    match address(uri, host)? {
        SocketAddr::V4(address) => Ok(address),
        SocketAddr::V6(address) => {
            Err(Error::Usage(format!("`{uri}`: a hub reaches boards by IPv4 only, and `{host}` is {address}")))
        }
    }
}

/// Reads an address or a word of an option: decimal, or behind 0x hexadecimal.
pub(crate) fn word(value: &str) -> Option<u32> {
    match value.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => value.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_uri_is_named_once() {
        let uri = hodo_tester::Catalog::new(&[&crate::IPBUS]).uri("chtcp-2.0://127.0.0.1:10203").unwrap();
        let error = Boards::of(&uri).err().unwrap().to_string();
        assert_eq!(error.matches("127.0.0.1:10203").count(), 1, "{error}");
        assert!(error.contains("?target="), "{error}");
    }
}
