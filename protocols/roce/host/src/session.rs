//! One ping-pong from the TCP connection to the figures, as client or as server.

use crate::AddressOfQueuePair;
use crate::device::{Device, DeviceError, Reliability};
use crate::exchange::{Exchange, ExchangeError, Greeting};
use crate::pingpong::{End, PingPong, PingPongError, Side, Took};
use crate::soft::{SoftDevice, SoftSettings};
use hodo_io::{Clock, resolve};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::time::Duration;
use thiserror::Error;

/// Addresses of loopback that are tried, one after the other, if the port is taken on the first: both ends may be on this host.
const LOOPBACK_ADDRESSES: u8 = 200;

/// How a session is carried out.
#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    /// The exchange.
    pub parameters: PingPong,
    /// The attributes of the connection.
    pub reliability: Reliability,
    /// The address of the software adapter; `None` is the one over which the TCP connection goes.
    pub address: Option<IpAddr>,
    /// The UDP port, of both ends.
    pub udp_port: u16,
    /// Whether timeouts follow measured round trips.
    pub measures_timeout: bool,
    /// The time within which the far end has to answer over TCP.
    pub patience: Duration,
}

/// What happens in a session, as it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress<'a> {
    /// The queue pair of this end.
    Local(&'a AddressOfQueuePair),
    /// The queue pair of the far end.
    Remote(&'a AddressOfQueuePair),
}

/// Why a session failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SessionError {
    /// A setting is wrong.
    #[error("{0}")]
    Usage(String),
    /// The two ends could not be connected.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// The exchange failed.
    #[error(transparent)]
    PingPong(#[from] PingPongError),
}

impl From<DeviceError> for SessionError {
    fn from(error: DeviceError) -> Self {
        SessionError::PingPong(error.into())
    }
}

impl Session {
    /// Connects to the server at `host`, and exchanges messages with it.
    ///
    /// # Errors
    /// Returns the [`SessionError`].
    pub fn client(&self, host: &str, port: u16, told: &mut dyn FnMut(Progress<'_>)) -> Result<Took, SessionError> {
        let to = resolve(host, port).map_err(|error| SessionError::Usage(format!("`{host}`: {error}")))?;
        let mut exchange = Exchange::connect(to, self.patience)?;
        let mut device = self.open_soft(exchange.local()?.ip())?;
        self.with(&mut device, &mut exchange, Side::Client, told)
    }

    /// Waits for a client, and exchanges messages with it.
    ///
    /// # Errors
    /// Returns the [`SessionError`].
    pub fn server(&self, listener: &TcpListener, told: &mut dyn FnMut(Progress<'_>)) -> Result<Took, SessionError> {
        let mut exchange = Exchange::accept(listener, self.patience)?;
        let mut device = self.open_soft(exchange.local()?.ip())?;
        self.with(&mut device, &mut exchange, Side::Server, told)
    }

    fn with<D: Device>(
        &self,
        device: &mut D,
        exchange: &mut Exchange,
        side: Side,
        told: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Took, SessionError> {
        let mut end = End::new(device, &self.parameters)?;
        let local = *end.local();
        told(Progress::Local(&local));
        match side {
            Side::Client => {
                exchange.tell(&local)?;
                let remote = exchange.hear()?;
                exchange.done()?;
                told(Progress::Remote(&remote));
                end.connect(&remote, &self.reliability)?;
            }
            Side::Server => {
                let remote = match exchange.greeting()? {
                    Greeting::Address(remote) => remote,
                    Greeting::Request(request) => {
                        return Err(ExchangeError::NotAnAddress(exchange.far(), request.to_string()).into());
                    }
                };
                end.connect(&remote, &self.reliability)?;
                exchange.tell(&local)?;
                exchange.wait_done()?;
                told(Progress::Remote(&remote));
            }
        }
        let took = end.run(side)?;
        end.linger(self.reliability.timeout_span().min(Duration::from_millis(100)) * 3)?;
        Ok(took)
    }

    /// Opens the software adapter at the address of the session, or at `here`.
    fn open_soft(&self, here: IpAddr) -> Result<SoftDevice, DeviceError> {
        let address = self.address.unwrap_or_else(|| here.to_canonical());
        let settings = SoftSettings {
            address: SocketAddr::new(address, self.udp_port),
            far_port: self.udp_port,
            measures_timeout: self.measures_timeout,
            ..SoftSettings::at(address)
        };
        let first = SoftDevice::open(settings.clone(), Clock::start());
        let (Err(_), None, IpAddr::V4(v4)) = (&first, self.address, address) else { return first };
        if !v4.is_loopback() {
            return first;
        }
        let others = (2..=LOOPBACK_ADDRESSES).filter_map(|last| {
            let address = SocketAddr::new(Ipv4Addr::new(127, 0, 0, last).into(), self.udp_port);
            SoftDevice::open(SoftSettings { address, ..settings.clone() }, Clock::start()).ok()
        });
        { others }.next().map_or(first, Ok)
    }
}

/// Listens for clients.
///
/// # Errors
/// [`ExchangeError::Tcp`] if the address is taken, or is not this host's.
pub fn listen(address: SocketAddr) -> Result<TcpListener, ExchangeError> {
    TcpListener::bind(address)
        .map_err(|error: io::Error| ExchangeError::Tcp { what: format!("listening on {address}"), error })
}
