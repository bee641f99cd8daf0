//! One ping-pong from the TCP connection to the figures, as client or as server.

use crate::AddressOfQueuePair;
use crate::device::{Device, DeviceError, Reliability};
use crate::exchange::{Exchange, ExchangeError};
use crate::pingpong::{End, PingPong, PingPongError, Side, Took};
use crate::shm::{SharedMemoryDevice, SharedMemorySettings};
use crate::soft::{SoftDevice, SoftSettings};
use hodo_io::{Clock, resolve, sleep};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::time::Duration;
use thiserror::Error;

/// Addresses of loopback that are tried, one after the other, if the port is taken on the first: both ends may be on this host.
const LOOPBACK_ADDRESSES: u8 = 200;

/// The time between two attempts to reach a server that does not listen yet.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// The acknowledgement timeout for three of which an end answers at most when its exchange is over.
const LINGER_STEP: Duration = Duration::from_millis(100);

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
    /// The time for which a client tries again while nothing listens at the far end.
    pub connect_within: Duration,
    /// The time within which the far end has to answer over TCP.
    pub patience: Duration,
}

/// The kind of device that a session opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Backend {
    /// The software adapter, over UDP.
    #[default]
    Software,
    /// Shared memory of this host, which both ends have to choose.
    SharedMemory,
}

/// A step of a session, as it happens.
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
    /// Connects to the server at `host`, and exchanges messages with it over UDP.
    ///
    /// # Errors
    /// Returns the [`SessionError`].
    pub fn client(&self, host: &str, port: u16, told: &mut dyn FnMut(Progress<'_>)) -> Result<Took, SessionError> {
        self.client_on(Backend::Software, host, port, told)
    }

    /// Connects to the server at `host`, and exchanges messages with it through a device of this kind.
    ///
    /// # Errors
    /// Returns the [`SessionError`].
    pub fn client_on(
        &self,
        backend: Backend,
        host: &str,
        port: u16,
        told: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Took, SessionError> {
        let to = resolve(host, port).map_err(|error| SessionError::Usage(format!("`{host}`: {error}")))?;
        let mut exchange = self.reach(to)?;
        match backend {
            Backend::Software => {
                let mut device = self.open_soft(exchange.local()?.ip())?;
                let end = self.end(&mut device, told)?;
                self.ask(end, &mut exchange, told)
            }
            Backend::SharedMemory => {
                let mut device = open_shared_memory()?;
                let end = self.end(&mut device, told)?;
                self.ask(end, &mut exchange, told)
            }
        }
    }

    /// Connects to a server, which may not listen yet.
    fn reach(&self, to: SocketAddr) -> Result<Exchange, ExchangeError> {
        let clock = Clock::start();
        let until = clock.now() + self.connect_within;
        loop {
            match Exchange::connect(to, self.patience) {
                Err(ExchangeError::Tcp { error, .. })
                    if error.kind() == io::ErrorKind::ConnectionRefused && clock.now() < until =>
                {
                    sleep(RETRY_AFTER);
                }
                other => return other,
            }
        }
    }

    /// Waits for a client, and exchanges messages with it over UDP. If the session has an address, its queue pair is told of before.
    ///
    /// # Errors
    /// Returns the [`SessionError`].
    pub fn server(&self, listener: &TcpListener, told: &mut dyn FnMut(Progress<'_>)) -> Result<Took, SessionError> {
        self.server_on(Backend::Software, listener, told)
    }

    /// Waits for a client, and exchanges messages with it through a device of this kind.
    ///
    /// # Errors
    /// Returns the [`SessionError`].
    pub fn server_on(
        &self,
        backend: Backend,
        listener: &TcpListener,
        told: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Took, SessionError> {
        match (backend, self.address) {
            (Backend::Software, Some(address)) => self.serve_next(&mut self.open_soft(address)?, listener, told),
            (Backend::Software, None) => {
                let mut exchange = Exchange::accept(listener, self.patience)?;
                let mut device = self.open_soft(exchange.local()?.ip())?;
                let end = self.end(&mut device, told)?;
                self.serve(end, &mut exchange, told)
            }
            (Backend::SharedMemory, _) => self.serve_next(&mut open_shared_memory()?, listener, told),
        }
    }

    /// Prepares this end, and then waits for a client.
    fn serve_next<D: Device>(
        &self,
        device: &mut D,
        listener: &TcpListener,
        told: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Took, SessionError> {
        let end = self.end(device, told)?;
        let mut exchange = Exchange::accept(listener, self.patience)?;
        self.serve(end, &mut exchange, told)
    }

    /// Prepares this end, and tells of it.
    fn end<'d, D: Device>(
        &self,
        device: &'d mut D,
        told: &mut dyn FnMut(Progress<'_>),
    ) -> Result<End<'d, D>, DeviceError> {
        let end = End::new(device, &self.parameters)?;
        told(Progress::Local(end.local()));
        Ok(end)
    }

    /// Exchanges messages with a server.
    fn ask<D: Device>(
        &self,
        mut end: End<'_, D>,
        exchange: &mut Exchange,
        told: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Took, SessionError> {
        exchange.tell(end.local())?;
        let remote = exchange.hear()?;
        exchange.done()?;
        told(Progress::Remote(&remote));
        end.connect(&remote, &self.reliability)?;
        self.run(end, Side::Client)
    }

    /// Exchanges messages with a client.
    fn serve<D: Device>(
        &self,
        mut end: End<'_, D>,
        exchange: &mut Exchange,
        told: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Took, SessionError> {
        let remote = exchange.hear()?;
        end.connect(&remote, &self.reliability)?;
        exchange.tell(end.local())?;
        exchange.wait_done()?;
        told(Progress::Remote(&remote));
        self.run(end, Side::Server)
    }

    fn run<D: Device>(&self, mut end: End<'_, D>, side: Side) -> Result<Took, SessionError> {
        let took = end.run(side)?;
        end.linger(self.reliability.timeout_span().min(LINGER_STEP) * 3)?;
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

fn open_shared_memory() -> Result<SharedMemoryDevice, DeviceError> {
    SharedMemoryDevice::open(SharedMemorySettings::default(), Clock::start())
}

/// Listens for clients.
///
/// # Errors
/// [`ExchangeError::Tcp`] if the address is taken, or is not this host's.
pub fn listen(address: SocketAddr) -> Result<TcpListener, ExchangeError> {
    TcpListener::bind(address)
        .map_err(|error: io::Error| ExchangeError::Tcp { what: format!("listening on {address}"), error })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WaitMode;

    fn session(wait: WaitMode) -> Session {
        let patience = Duration::from_secs(10);
        let parameters = PingPong {
            size: 10_000,
            iterations: 300,
            wait,
            checks: true,
            send_entries: 3,
            patience,
            ..PingPong::default()
        };
        Session {
            parameters,
            reliability: Reliability::default(),
            address: None,
            udp_port: 0,
            measures_timeout: false,
            connect_within: Duration::ZERO,
            patience,
        }
    }

    #[test]
    fn two_ends_exchange_messages_through_shared_memory() {
        for wait in [WaitMode::Poll, WaitMode::Events, WaitMode::SpinThenBlock(Duration::from_micros(20))] {
            let listener = listen(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0)).unwrap();
            let port = listener.local_addr().unwrap().port();
            let serve = move || session(wait).server_on(Backend::SharedMemory, &listener, &mut |_| {}).unwrap();
            let server = std::thread::spawn(serve);
            let mut ends = 0;
            let told = &mut |_: Progress<'_>| ends += 1;
            let took = session(wait).client_on(Backend::SharedMemory, "127.0.0.1", port, told).unwrap();
            assert_eq!((took.iterations, took.bytes, ends), (300, 6_000_000, 2));
            assert_eq!(server.join().unwrap().iterations, 300);
        }
    }
}
