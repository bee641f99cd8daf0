//! The settings of the server: what the command line says, otherwise `[server]`, otherwise the environment, otherwise the default.

use super::place::Place;
use super::{ServeError, ServeSettings};
use crate::environment::AddressEntry;
use crate::machines::{Order, ServerConfig};
use crate::server::ServerOptions;
use hodo_daemon::Options;
use hodo_io::nic::interfaces;
use hodo_machine::Wait;
use serde::{Deserialize, Deserializer};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

/// The port of the pages.
const PAGES_PORT: u16 = 9205;

/// `[server]`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerTable {
    /// The address for clients.
    #[serde(deserialize_with = "socket_address")]
    pub listen: Option<SocketAddr>,
    /// Whether it answers no searches over UDP and sends no beacons.
    pub tcp_only: bool,
    /// The UDP port of searches.
    pub broadcast_port: Option<u16>,
    /// Where beacons are sent to.
    pub beacons: Option<Vec<String>>,
    /// Whether they also go to the broadcast address of each interface.
    pub auto_beacons: Option<bool>,
    /// Clients whose searches are not answered.
    pub ignored: Option<Vec<String>>,
    /// The address that answers and beacons state, behind an address translator.
    pub stated_address: Option<IpAddr>,
    /// The most answers to searches in a second.
    pub answers_per_second: Option<u64>,
    /// The address of the pages.
    #[serde(deserialize_with = "socket_address")]
    pub metrics: Option<SocketAddr>,
    /// Whether there are no pages.
    pub no_metrics: bool,
    /// Names that the pages may be asked for.
    pub pages_name: Vec<String>,
    /// The way in which the serving thread waits.
    #[serde(deserialize_with = "wait")]
    pub wait: Option<Wait>,
    /// The processor of the serving thread.
    pub cpu: Option<usize>,
    /// How long puts and calls under way may take at the end.
    #[serde(deserialize_with = "span")]
    pub drain: Option<Duration>,
    /// Whether everything is sent big-endian.
    pub big_endian: bool,
    /// How long a client may be silent.
    #[serde(deserialize_with = "span")]
    pub silence: Option<Duration>,
    /// Clients at once.
    pub clients: Option<NonZeroUsize>,
    /// Channels of one client.
    pub channels: Option<NonZeroUsize>,
    /// Operations of one client.
    pub operations: Option<NonZeroUsize>,
    /// Updates that may wait for one subscription.
    pub queue: Option<NonZeroU32>,
    /// Bytes of updates that may wait for one client.
    #[serde(deserialize_with = "bytes")]
    pub queued_bytes: Option<usize>,
    /// Bytes of one message of a client.
    #[serde(deserialize_with = "bytes")]
    pub message_bytes: Option<usize>,
    /// Bytes that the values of one message may take.
    #[serde(deserialize_with = "bytes")]
    pub value_bytes: Option<usize>,
    /// Puts and calls that may wait for a handler.
    pub waiting: Option<NonZeroUsize>,
    /// Updates of one PV that may wait for the serving thread.
    pub posts: Option<NonZeroUsize>,
}

impl ServerTable {
    /// Returns the options of the server.
    ///
    /// # Errors
    /// [`ServeError::File`] for an entry that is no address, [`ServeError::Server`] for a mistake in the environment.
    pub fn options(&self, settings: &ServeSettings, place: &Place) -> Result<ServerOptions, ServeError> {
        let mut options = ServerOptions::from_environment()?;
        if let Some(listen) = settings.listen.or(self.listen) {
            options = options.at(listen);
        }
        self.set_network(&mut options, place)?;
        options.is_found = !settings.is_tcp_only && !self.tcp_only;
        set(&mut options.clients_max, settings.clients.or(self.clients.map(NonZeroUsize::get)));
        set(&mut options.drain, settings.drain.or(self.drain));
        set(&mut options.wait, settings.wait.or(self.wait));
        set(&mut options.waiting_max, self.waiting.map(NonZeroUsize::get));
        set(&mut options.posts_max, self.posts.map(NonZeroUsize::get));
        options.cpu = settings.cpu.or(self.cpu);
        self.set_limits(&mut options.config);
        if settings.is_big_endian || self.big_endian {
            options.config.session.order = Order::Big;
        }
        Ok(options)
    }

    /// Returns the options of the pages.
    pub fn pages(&self, settings: &ServeSettings) -> Options {
        let usual = SocketAddr::from((Ipv4Addr::LOCALHOST, PAGES_PORT));
        let is_wanted = !settings.has_no_metrics && (settings.metrics.is_some() || !self.no_metrics);
        let names = if settings.pages_names.is_empty() { &self.pages_name } else { &settings.pages_names };
        Options {
            http: is_wanted.then(|| settings.metrics.or(self.metrics).unwrap_or(usual)),
            names: names.clone(),
            pid_file: settings.pid_file.clone(),
            catches_signals: true,
        }
    }

    fn set_network(&self, options: &mut ServerOptions, place: &Place) -> Result<(), ServeError> {
        let (network, host) = (&mut options.network, interfaces());
        let entries = |key: &str, entries: &[String], port| {
            let parse = |entry: &String| AddressEntry::parse(entry, port, &host).map_err(|why| (entry.clone(), why));
            let parsed: Result<Vec<AddressEntry>, _> = entries.iter().map(parse).collect();
            parsed.map_err(|(entry, why)| place.wrong_in("server", 0, format!("{key}: `{entry}`: {why}")))
        };
        set(&mut network.broadcast_port, self.broadcast_port);
        if let Some(beacons) = &self.beacons {
            network.beacons = entries("beacons", beacons, network.broadcast_port)?;
        }
        if let Some(ignored) = &self.ignored {
            network.ignored = entries("ignored", ignored, 0)?.into_iter().map(|entry| entry.address).collect();
        }
        set(&mut network.auto_beacons, self.auto_beacons);
        set(&mut options.config.discovery.address, self.stated_address);
        set(&mut options.config.discovery.answers_per_second, self.answers_per_second);
        Ok(())
    }

    fn set_limits(&self, config: &mut ServerConfig) {
        set(&mut config.session.silence_timeout, self.silence);
        set(&mut config.channels_max, self.channels.map(NonZeroUsize::get));
        set(&mut config.operations_max, self.operations.map(NonZeroUsize::get));
        set(&mut config.queue_max, self.queue.map(NonZeroU32::get));
        set(&mut config.queued_bytes_max, self.queued_bytes);
        set(&mut config.session.limits.message_bytes, self.message_bytes);
        set(&mut config.session.limits.value_bytes, self.value_bytes);
    }
}

fn set<T>(to: &mut T, from: Option<T>) {
    if let Some(from) = from {
        *to = from;
    }
}

/// Reads a span of time.
pub fn span<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    text(from, "write a span of time in quotes, as \"100ms\"", hodo_units::span)
}

fn wait<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Wait>, D::Error> {
    text(from, "write \"block\", \"spin\" or \"spin:50us\"", hodo_units::wait)
}

fn socket_address<'de, D: Deserializer<'de>>(from: D) -> Result<Option<SocketAddr>, D::Error> {
    text(from, "write address and port in quotes, as \"127.0.0.1:5075\"", |text| {
        hodo_io::listen_address(text).map_err(|why| why.to_string())
    })
}

fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Option<usize>, D::Error> {
    text(from, "write a size in quotes, as \"64M\"", hodo_units::buffer)
}

fn text<'de, D: Deserializer<'de>, T>(
    from: D,
    remedy: &str,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<Option<T>, D::Error> {
    let text = String::deserialize(from).map_err(|_: D::Error| serde::de::Error::custom(remedy))?;
    parse(&text).map(Some).map_err(|why| serde::de::Error::custom(format!("{why}; {remedy}")))
}
