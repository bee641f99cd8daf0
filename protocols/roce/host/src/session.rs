//! One ping-pong, or one test of perftest's kind, from the TCP connection to the figures, as client or as server.

use crate::AddressOfQueuePair;
use crate::device::{Device, DeviceError, Reliability};
use crate::exchange::{Exchange, ExchangeError, Greeting, Request};
use crate::perftest::{Perftest, Row};
use crate::pingpong::{End, PingPong, PingPongError, Side, Took};
use crate::shm::{SharedMemoryDevice, SharedMemorySettings};
use crate::soft::{SoftDevice, SoftSettings};
use crate::verbs::{VerbsDevice, VerbsSettings};
use hodo_io::{Clock, is_local, resolve, sleep, source_towards};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::time::Duration;
use thiserror::Error;

/// Addresses of loopback that are tried, one after the other, if the port is taken on the first: both ends may be on this host.
const LOOPBACK_ADDRESSES: u8 = 200;

/// The name of the value of a line that tells an end's UDP port.
pub(crate) const UDP: &str = "udp";

/// The time between two attempts to reach a server that does not listen yet.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// The acknowledgement timeout for three of which an end answers at most when its exchange is over.
const LINGER_STEP: Duration = Duration::from_millis(100);

/// The device that a session uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Backend {
    /// The software adapter, on UDP sockets.
    Soft,
    /// An adapter, through libibverbs.
    Verbs(VerbsSettings),
    /// Shared memory of this host, which both ends have to choose.
    SharedMemory,
}

/// How a session is carried out.
#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    /// The device.
    pub backend: Backend,
    /// The exchange.
    pub parameters: PingPong,
    /// The test that a client asks for in place of the exchange. A server carries out what is asked of it.
    pub perftest: Option<Perftest>,
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

/// A step of a session, as it happens.
#[derive(Debug, Clone, Copy)]
pub enum Progress<'a> {
    /// The queue pair of this end.
    Local(&'a AddressOfQueuePair),
    /// The queue pair of the far end.
    Remote(&'a AddressOfQueuePair),
    /// The result of one size.
    Row(&'a Row),
    /// A connection that was no client's. The server goes on waiting for one.
    Stranger(&'a ExchangeError),
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
    /// Returns a session with this device and the defaults of `ibv_rc_pingpong`, of which a client does not wait for its server.
    #[must_use]
    pub fn new(backend: Backend, parameters: PingPong) -> Self {
        let patience = parameters.patience;
        Session {
            backend,
            parameters,
            perftest: None,
            reliability: Reliability::default(),
            address: None,
            udp_port: crate::UDP_PORT,
            measures_timeout: false,
            connect_within: Duration::ZERO,
            patience,
        }
    }

    /// Connects to the server at `host`, and exchanges messages with it, or carries out the test. Returns the figures of the exchange;
    /// those of a test have been told row by row.
    ///
    /// # Errors
    /// Returns the [`SessionError`].
    pub fn client(
        &self,
        host: &str,
        port: u16,
        told: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Option<Took>, SessionError> {
        if let Some(plan) = &self.perftest {
            plan.check().map_err(SessionError::Usage)?;
        }
        let to = resolve(host, port).map_err(|error| SessionError::Usage(format!("`{host}`: {error}")))?;
        let clock = Clock::start();
        // A stock server takes one client: all that can fail here has to fail before that.
        match &self.backend {
            Backend::Soft => {
                let unreachable = || ExchangeError::Tcp {
                    what: format!("connecting to {to}"),
                    error: io::ErrorKind::NetworkUnreachable.into(),
                };
                let here = source_towards(to).ok_or_else(unreachable)?;
                self.ask(&mut self.open_soft(here, is_local(to.ip()))?, to, told)
            }
            Backend::Verbs(settings) => self.ask(&mut VerbsDevice::open(settings, clock)?, to, told),
            Backend::SharedMemory => self.ask(&mut open_shared_memory()?, to, told),
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
                    sleep(RETRY_AFTER.min(until - clock.now()));
                }
                other => return other,
            }
        }
    }

    /// Waits for a client, and exchanges messages with it, or carries out the test that it asks for. If it is known which address the
    /// queue pair will have, it is told of before.
    ///
    /// # Errors
    /// Returns the [`SessionError`].
    pub fn server(
        &self,
        listener: &TcpListener,
        told: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Option<Took>, SessionError> {
        let at = listener.local_addr().ok().map(|at| at.ip()).filter(|ip| !ip.is_unspecified());
        match (&self.backend, self.address.or(at)) {
            (Backend::Soft, None) => {
                let exchange = self.accept(listener, told)?;
                let mut device = self.open_soft(exchange.local()?.ip(), true)?;
                self.serve(&mut device, |_, _| Ok(exchange), told)
            }
            (Backend::Soft, Some(address)) => {
                self.serve(&mut self.open_soft(address, true)?, |session, told| session.accept(listener, told), told)
            }
            (Backend::Verbs(settings), _) => {
                let mut device = VerbsDevice::open(settings, Clock::start())?;
                self.serve(&mut device, |session, told| session.accept(listener, told), told)
            }
            (Backend::SharedMemory, _) => {
                self.serve(&mut open_shared_memory()?, |session, told| session.accept(listener, told), told)
            }
        }
    }

    fn accept(&self, listener: &TcpListener, told: &mut dyn FnMut(Progress<'_>)) -> Result<Exchange, ExchangeError> {
        Exchange::accept(listener, self.patience, &mut |why| told(Progress::Stranger(why)))
    }

    /// Prepares this end, and tells of it.
    fn end<'d, D: Device>(
        device: &'d mut D,
        parameters: &PingPong,
        told: &mut dyn FnMut(Progress<'_>),
    ) -> Result<End<'d, D>, DeviceError> {
        let end = End::new(device, parameters)?;
        told(Progress::Local(end.local()));
        Ok(end)
    }

    /// Carries out this session with the server at `to`.
    fn ask<D: Device>(
        &self,
        device: &mut D,
        to: SocketAddr,
        told: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Option<Took>, SessionError> {
        if let Some(plan) = &self.perftest {
            return plan.ask(device, &mut self.reach(to)?, &self.reliability, told).map(|()| None);
        }
        let mut end = Self::end(device, &self.parameters, told)?;
        let mut exchange = self.reach(to)?;
        let request = with_port(self.parameters.request(), end.device());
        let (remote, query) = exchange.offer(end.local(), &request)?;
        exchange.done()?;
        match &query {
            Some(query) => end.agree(query),
            None => end.face(&remote)?,
        }
        told(Progress::Remote(&remote));
        end.connect(&remote, &self.reliability)?;
        self.run(end, Side::Client).map(Some)
    }

    /// Carries out what a client asks for. Its connection comes once this end is prepared and told of.
    fn serve<D: Device>(
        &self,
        device: &mut D,
        exchange: impl FnOnce(&Self, &mut dyn FnMut(Progress<'_>)) -> Result<Exchange, ExchangeError>,
        told: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Option<Took>, SessionError> {
        let mut end = Self::end(device, &self.parameters, told)?;
        let mut exchange = exchange(self, told)?;
        match exchange.greeting()? {
            Greeting::Address(remote) => {
                end.face(&remote)?;
                self.answer(end, &remote, &mut exchange, told).map(Some)
            }
            Greeting::Queryable(remote) => {
                let request = exchange.query(&with_port(self.parameters.query(), end.device()))?;
                let parameters = match self.parameters.as_requested(&request) {
                    Ok(parameters) => parameters,
                    Err(why) => {
                        exchange.refuse(&why)?;
                        return Err(SessionError::Usage(why));
                    }
                };
                let mut end = if parameters.size == self.parameters.size {
                    end
                } else {
                    drop(end);
                    Self::end(device, &parameters, told)?
                };
                end.set_iterations(parameters.iterations);
                end.agree(&request);
                self.answer(end, &remote, &mut exchange, told).map(Some)
            }
            Greeting::Request(asked) => {
                drop(end);
                let (wait, patience) = (self.parameters.wait, self.patience);
                Perftest::serve(&asked, (wait, patience), device, &mut exchange, &self.reliability, told).map(|()| None)
            }
        }
    }

    /// Connects to a client's queue pair, and answers its messages.
    fn answer<D: Device>(
        &self,
        mut end: End<'_, D>,
        remote: &AddressOfQueuePair,
        exchange: &mut Exchange,
        told: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Took, SessionError> {
        end.connect(remote, &self.reliability)?;
        exchange.tell(end.local())?;
        exchange.wait_done()?;
        told(Progress::Remote(remote));
        self.run(end, Side::Server)
    }

    fn run<D: Device>(&self, mut end: End<'_, D>, side: Side) -> Result<Took, SessionError> {
        let took = end.run(side)?;
        end.linger(self.reliability.timeout_span().min(LINGER_STEP) * 3)?;
        Ok(took)
    }

    /// Opens the software adapter at the address of the session, or at `here`. Where another end on this host has the UDP port, another
    /// address of loopback is taken, or any free port: ends of this program tell each other, and for all others the port is shared. Unless
    /// `is_near` they may be others, which have to be able to reach this end.
    fn open_soft(&self, here: IpAddr, is_near: bool) -> Result<SoftDevice, DeviceError> {
        let address = self.address.unwrap_or_else(|| here.to_canonical());
        let open = |address, port| {
            let settings = SoftSettings {
                address: SocketAddr::new(address, port),
                far_port: self.udp_port,
                measures_timeout: self.measures_timeout,
                // There is one queue pair.
                sources: Some(0),
                shares: Some(self.udp_port).filter(|port| *port > 0),
                ..SoftSettings::at(address)
            };
            SoftDevice::open(settings, Clock::start())
        };
        let first = open(address, self.udp_port);
        if first.is_ok() {
            return first;
        }
        if self.address.is_none() && address.is_ipv4() && address.is_loopback() {
            let others = (2..=LOOPBACK_ADDRESSES).map(|last| Ipv4Addr::new(127, 0, 0, last).into());
            return others.filter_map(|other| open(other, self.udp_port).ok()).next().map_or(first, Ok);
        }
        if !is_near {
            SoftDevice::check_shared(SocketAddr::new(address, self.udp_port))?;
        }
        open(address, 0).or(first)
    }
}

/// Returns a line with the device's own UDP port, if it has one.
pub(crate) fn with_port(line: Request, device: &impl Device) -> Request {
    match device.own_port() {
        Some(port) => line.with(UDP, &port),
        None => line,
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
mod tests;
