use super::{SessionError, SessionSettings};
use hodo_io::{Clock, Endpoint, SocketSettings, Sockets};
use hodo_ipbus::{Client, ClientConfig, Command, Event, Path};
use hodo_machine::{Address, Driver, Instant, Wait};
use hodo_uhal::uri::{Host, Route, Uri};
use std::io;
use std::net::{SocketAddr, SocketAddrV4};

/// The client machine on its socket.
pub(super) struct Line(Box<Endpoint<Client, Sockets>>);

impl Line {
    pub(super) fn open(uri: &Uri, settings: &SessionSettings) -> Result<Line, SessionError> {
        let config = config(uri, settings)?;
        let sockets = SocketSettings { peers_max: 1, ..SocketSettings::default() };
        let clock = Clock::start();
        let sockets = Sockets::new(sockets)
            .map_err(|error| SessionError::System { uri: uri.to_string(), why: error.to_string() })?;
        Ok(Line(Box::new(Endpoint::new(Client::new(config), sockets, clock))))
    }

    #[inline]
    pub(super) fn command(&mut self, command: Command) {
        self.0.command(command);
    }

    #[inline]
    pub(super) fn step(&mut self, wait: Wait, until: Instant, told: &mut dyn FnMut(Event)) -> io::Result<()> {
        self.0.step(wait, until, told)
    }

    /// Returns when the last step ended.
    pub(super) fn last_turn(&self) -> Instant {
        self.0.last_turn()
    }
}

/// Returns the configuration of the client for a URI.
fn config(uri: &Uri, settings: &SessionSettings) -> Result<ClientConfig, SessionError> {
    let (path, host) = match &uri.route {
        Route::Udp(host) => (udp(uri.reliable.or(settings.reliable)), host),
        Route::Tcp(host) => (Path::Tcp, host),
        Route::Hub { hub, target } => (Path::Hub(address_v4(target)?), hub),
    };
    let at = address(host)?;
    let at = if path.is_udp() { Address::Udp(at) } else { Address::Tcp(at) };
    let mut config = ClientConfig::new(path, uri.version, at);
    config.timeout = settings.timeout;
    config.seed = Some(hodo_io::random_bits());
    if let Some(bytes) = uri.max_payload_bytes {
        config.payload_max = bytes as usize;
    }
    Ok(config)
}

fn udp(reliable: Option<bool>) -> Path {
    reliable.map_or(Path::SharedUdp, |reliable| Path::Udp { reliable })
}

fn address(host: &Host) -> Result<SocketAddr, SessionError> {
    hodo_io::resolve(&host.to_string(), host.port)
        .map_err(|error| SessionError::NoAddress { host: host.clone(), why: error.to_string() })
}

/// Returns the board's address for a hub, which is always IPv4.
fn address_v4(host: &Host) -> Result<SocketAddrV4, SessionError> {
    match address(host)? {
        SocketAddr::V4(address) => Ok(address),
        SocketAddr::V6(_) => {
            let why = "a hub takes IPv4 addresses only, and it has none".to_owned();
            Err(SessionError::NoAddress { host: host.clone(), why })
        }
    }
}
