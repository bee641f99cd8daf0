//! One ping-pong, or one test of perftest's kind, from the TCP connection to the figures, as client or as server.

use crate::AddressOfQueuePair;
use crate::device::{Device, DeviceError, Reliability};
use crate::exchange::{Exchange, ExchangeError, Greeting};
use crate::perftest::{Perftest, Row};
use crate::pingpong::{End, PingPong, PingPongError, Side, Took};
use crate::shm::{SharedMemoryDevice, SharedMemorySettings};
use crate::soft::{SoftDevice, SoftSettings};
use crate::verbs::{VerbsDevice, VerbsSettings};
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
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Progress<'a> {
    /// The queue pair of this end.
    Local(&'a AddressOfQueuePair),
    /// The queue pair of the far end.
    Remote(&'a AddressOfQueuePair),
    /// The result of one size.
    Row(&'a Row),
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
        let mut exchange = self.reach(to)?;
        match &self.backend {
            Backend::Soft => self.ask(&mut self.open_soft(exchange.local()?.ip())?, &mut exchange, told),
            Backend::Verbs(settings) => {
                self.ask(&mut VerbsDevice::open(settings, Clock::start())?, &mut exchange, told)
            }
            Backend::SharedMemory => self.ask(&mut open_shared_memory()?, &mut exchange, told),
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
        match (&self.backend, self.address) {
            (Backend::Soft, None) => {
                let exchange = self.accept(listener)?;
                let mut device = self.open_soft(exchange.local()?.ip())?;
                self.serve(&mut device, |_| Ok(exchange), told)
            }
            (Backend::Soft, Some(address)) => {
                self.serve(&mut self.open_soft(address)?, |session| session.accept(listener), told)
            }
            (Backend::Verbs(settings), _) => {
                self.serve(&mut VerbsDevice::open(settings, Clock::start())?, |session| session.accept(listener), told)
            }
            (Backend::SharedMemory, _) => {
                self.serve(&mut open_shared_memory()?, |session| session.accept(listener), told)
            }
        }
    }

    fn accept(&self, listener: &TcpListener) -> Result<Exchange, ExchangeError> {
        Exchange::accept(listener, self.patience)
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

    /// Carries out this session with a server.
    fn ask<D: Device>(
        &self,
        device: &mut D,
        exchange: &mut Exchange,
        told: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Option<Took>, SessionError> {
        if let Some(plan) = &self.perftest {
            return plan.ask(device, exchange, &self.reliability, told).map(|()| None);
        }
        let mut end = Self::end(device, &self.parameters, told)?;
        let remote = exchange.offer(end.local(), &self.parameters.request())?;
        exchange.done()?;
        told(Progress::Remote(&remote));
        end.connect(&remote, &self.reliability)?;
        self.run(end, Side::Client).map(Some)
    }

    /// Carries out what a client asks for. Its connection comes once this end is prepared and told of.
    fn serve<D: Device>(
        &self,
        device: &mut D,
        exchange: impl FnOnce(&Self) -> Result<Exchange, ExchangeError>,
        told: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Option<Took>, SessionError> {
        let end = Self::end(device, &self.parameters, told)?;
        let mut exchange = exchange(self)?;
        match exchange.greeting()? {
            Greeting::Address(remote) => self.answer(end, &remote, &mut exchange, told).map(Some),
            Greeting::Queryable(remote) => {
                let parameters = self.parameters.as_requested(&exchange.query()?);
                let parameters = match parameters {
                    Ok(parameters) => parameters,
                    Err(why) => {
                        exchange.refuse(&why)?;
                        return Err(SessionError::Usage(why));
                    }
                };
                let end = if parameters == self.parameters {
                    end
                } else {
                    drop(end);
                    Self::end(device, &parameters, told)?
                };
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
    use crate::perftest::{Atomic, Test};

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
        Session::new(Backend::SharedMemory, parameters)
    }

    #[test]
    fn a_server_takes_size_and_number_of_the_messages_from_a_client_of_this_program() {
        let mut client = session(WaitMode::Events);
        (client.parameters.size, client.parameters.iterations) = (64, 1000);
        let (took, served, ..) = run(&client, WaitMode::Events);
        assert_eq!(took.map(|took| (took.iterations, took.bytes)), Some((1000, 128_000)));
        assert_eq!(served.map(|took| (took.iterations, took.bytes)), Some((1000, 128_000)));
    }

    /// Runs a session with a server that expects a ping-pong. Returns what each end took, and the rows and ends that the client told of.
    fn run(client: &Session, wait: WaitMode) -> (Option<Took>, Option<Took>, Vec<Row>, usize) {
        let listener = listen(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || session(wait).server(&listener, &mut |_| {}).unwrap());
        let (mut rows, mut ends) = (Vec::new(), 0);
        let told = &mut |progress: Progress<'_>| match progress {
            Progress::Row(row) => rows.push(*row),
            Progress::Local(_) | Progress::Remote(_) => ends += 1,
        };
        let took = client.client("127.0.0.1", port, told).unwrap();
        (took, server.join().unwrap(), rows, ends)
    }

    #[test]
    fn two_ends_exchange_messages_through_shared_memory() {
        for wait in [WaitMode::Poll, WaitMode::Events, WaitMode::SpinThenBlock(Duration::from_micros(20))] {
            let (took, served, _, ends) = run(&session(wait), wait);
            let took = took.unwrap();
            assert_eq!((took.iterations, took.bytes, ends), (300, 6_000_000, 2));
            assert_eq!(served.unwrap().iterations, 300);
        }
    }

    #[test]
    fn every_operation_is_measured_and_every_byte_checked() {
        for (test, wait) in Test::ALL.iter().copied().zip([WaitMode::Poll, WaitMode::Events].into_iter().cycle()) {
            let is_atomic = matches!(test, Test::AtomicLatency | Test::AtomicBandwidth);
            let plan = Perftest {
                test,
                atomic: Atomic::CompareSwap,
                sizes: if is_atomic { vec![8] } else { vec![1, 64, 70_000] },
                iterations: 300,
                send_depth: 16,
                receive_depth: 32,
                inline_bytes: 0,
                checks: true,
                wait,
                patience: Duration::from_secs(10),
            };
            let client = Session { perftest: Some(plan.clone()), ..session(wait) };
            let (took, served, rows, ends) = run(&client, wait);
            assert_eq!((took, served, ends, rows.len()), (None, None, 2, plan.sizes.len()), "{}", test.name());
            assert!(rows.iter().all(|row| matches!(row, Row::Latency(_)) == test.is_latency()));
        }
    }
}
