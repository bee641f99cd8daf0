use super::{Client, ClientError, Machine, Place};
use crate::environment::Environment;
use crate::machines::SessionConfig;
use crate::machines::client::ClientConfig;
use hodo_io::{Clock, Endpoint, SocketSettings, Sockets};
use hodo_machine::Address;
use std::hash::BuildHasher;
use std::time::Duration;

/// The settings of a client on sockets.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// Settings of the protocol: bounds, retries, and the names of user and host that are claimed.
    pub protocol: ClientConfig,
    /// How long a reply may take.
    pub timeout: Duration,
    /// Host, and perhaps port, of the server of all channels that name none.
    pub server: Option<String>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        ClientOptions::with(SessionConfig::default())
    }
}

impl ClientOptions {
    /// Creates the options that the variables of EPICS ask for.
    #[must_use]
    pub fn of(environment: &Environment) -> Self {
        ClientOptions::with(environment.client.session())
    }

    fn with(mut session: SessionConfig) -> Self {
        session.claim = Some((user(), hodo_io::host::name().unwrap_or_default()));
        let protocol =
            ClientConfig { session, seed: std::hash::RandomState::new().hash_one(()), ..ClientConfig::default() };
        ClientOptions { protocol, timeout: Duration::from_secs(5), server: None }
    }
}

/// Returns the name that servers take for that of the user.
fn user() -> String {
    let named = ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok());
    named.filter(|name| !name.is_empty()).unwrap_or_else(|| "nobody".into())
}

impl Client {
    /// Creates a client on sockets. Nothing is sent before a channel is opened.
    ///
    /// # Errors
    /// A [`ClientError`] if the server has no address, or no socket is left.
    pub fn open(options: &ClientOptions) -> Result<Self, ClientError> {
        let server = match &options.server {
            Some(server) => {
                let place = Place { name: String::new(), server: Some(server.clone()) };
                place.resolved().map_err(ClientError::Sockets)?.map(Address::Tcp)
            }
            None => None,
        };
        let failed = |why: std::io::Error| ClientError::Sockets(why.to_string());
        let sockets = Sockets::new(SocketSettings::default()).map_err(failed)?;
        let endpoint = Endpoint::new(Machine::new(options.protocol.clone()), sockets, Clock::start());
        let mut client = Client::over(Box::new(endpoint), server);
        client.timeout = options.timeout;
        Ok(client)
    }
}
