use super::{Client, ClientError, Machine, Place};
use crate::environment::{ClientNetwork, Environment, EnvironmentError};
use crate::machines::client::ClientConfig;
use crate::machines::discovery::FinderConfig;
use hodo_io::nic::interfaces;
use hodo_io::{Clock, Endpoint, Port, SocketSettings, Sockets, Waker};
use hodo_machine::Address;
use std::io;
use std::time::Duration;

/// The settings of a client on sockets.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// Settings of the protocol: bounds, retries, and the names of user and host that are claimed.
    pub protocol: ClientConfig,
    /// How servers are found.
    pub network: ClientNetwork,
    /// Whether beacons of servers are heard, so that one that has started is found at once. It takes the port of beacons, which the
    /// programs of a host share.
    pub hears_beacons: bool,
    /// How long a reply may take.
    pub timeout: Duration,
    /// Host, and perhaps port, of the server of all channels that name none. Without one they are searched for.
    pub server: Option<String>,
}

impl Default for ClientOptions {
    /// Returns the options where no variable of EPICS is set.
    fn default() -> Self {
        ClientOptions::of(Environment::default())
    }
}

impl ClientOptions {
    /// Returns the options that the variables `EPICS_PVA*` of this process give.
    ///
    /// # Errors
    /// An [`EnvironmentError`] with the variable and its mistake.
    pub fn from_environment() -> Result<Self, EnvironmentError> {
        Environment::read().map(ClientOptions::of)
    }

    /// Creates the options that the variables of EPICS ask for.
    #[must_use]
    pub fn of(environment: Environment) -> Self {
        let network = environment.client;
        let mut session = network.session();
        session.claim = Some((user(), hodo_io::host::name().unwrap_or_default()));
        let protocol = ClientConfig {
            session,
            seed: hodo_io::random_bits(),
            name_servers: network.name_servers.iter().copied().map(Address::Tcp).collect(),
            ..ClientConfig::default()
        };
        ClientOptions { protocol, network, hears_beacons: true, timeout: Duration::from_secs(5), server: None }
    }
}

/// Returns the name that servers take for that of the user.
fn user() -> String {
    let named = ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok());
    named.filter(|name| !name.is_empty()).unwrap_or_else(|| "nobody".into())
}

impl Client {
    /// Creates a client on sockets.
    ///
    /// # Errors
    /// A [`ClientError`] if the server has no address, or a socket cannot be made.
    pub fn open(options: &ClientOptions) -> Result<Self, ClientError> {
        let sockets = Sockets::new(SocketSettings::default()).map_err(failed)?;
        Client::on(sockets, options)
    }

    /// Creates a client on sockets, and a handle by which other threads end its wait.
    ///
    /// # Errors
    /// A [`ClientError`] if the server has no address, or a socket cannot be made.
    pub(crate) fn open_woken(options: &ClientOptions) -> Result<(Self, Waker), ClientError> {
        let mut sockets = Sockets::new(SocketSettings::default()).map_err(failed)?;
        let waker = sockets.waker().map_err(failed)?;
        let mut client = Client::on(sockets, options)?;
        client.keep_finished();
        Ok((client, waker))
    }

    fn on(mut sockets: Sockets, options: &ClientOptions) -> Result<Self, ClientError> {
        let mut protocol = options.protocol.clone();
        let server = match &options.server {
            Some(server) => {
                let place = Place { name: String::new(), server: Some(server.clone()) };
                protocol.name_servers.clear();
                place.resolved().map_err(ClientError::Sockets)?.map(Address::Tcp)
            }
            None => {
                let search = searching(&options.network, options.hears_beacons, &mut sockets).map_err(failed)?;
                protocol.search = FinderConfig { seed: protocol.seed, ..search };
                None
            }
        };
        let endpoint = Endpoint::new(Machine::new(protocol), sockets, Clock::start());
        let mut client = Client::over(Box::new(endpoint), server);
        client.timeout = options.timeout;
        Ok(client)
    }
}

#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
fn failed(why: io::Error) -> ClientError {
    ClientError::Sockets(why.to_string())
}

/// Binds the ports by which servers are found.
pub(super) fn searching(
    network: &ClientNetwork,
    hears_beacons: bool,
    sockets: &mut Sockets,
) -> io::Result<FinderConfig> {
    network.bind(&interfaces(), hears_beacons, &mut |address, options| {
        let port = Port::bind(address, options)?;
        let bound = port.address().clone();
        sockets.bind(port)?;
        Ok(bound)
    })
}
