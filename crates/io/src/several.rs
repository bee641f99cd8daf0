use crate::poller::{Poller, span_until};
use crate::serve::NOTICE;
use crate::{Clock, Endpoint, Port, PortOptions, ServeOptions, Sockets, Stop, affinity};
use hodo_machine::{Address, Instant, Machine, Wait};
use std::collections::BTreeSet;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

/// A server for UDP datagrams at several addresses, with a machine for each, all on one thread: for many devices that
/// receive few requests. A busy device is better off with a [`Server`](crate::Server) of its own.
pub struct DatagramServers {
    ports: Vec<Port>,
    addresses: Vec<Address>,
    options: ServeOptions,
}

impl DatagramServers {
    /// Binds a socket at each address; port 0 is any free one.
    ///
    /// # Errors
    /// Returns the operating system's error if an address is in use or does not belong to this host.
    pub fn bind(addresses: impl IntoIterator<Item = Address>, options: ServeOptions) -> io::Result<Self> {
        let mut servers = DatagramServers { ports: Vec::new(), addresses: Vec::new(), options };
        for address in addresses {
            let port = Port::bind(&address, &PortOptions::default())?;
            servers.addresses.push(port.address().clone());
            servers.ports.push(port);
        }
        Ok(servers)
    }

    /// Returns the addresses that the sockets are bound to.
    #[must_use]
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// Serves until `stop` is set. `make` creates the machine of each address; the events of the machines are
    /// discarded.
    ///
    /// # Errors
    /// Returns the operating system's error if the thread cannot be pinned or a socket cannot be set up or polled.
    pub fn run<M: Machine>(self, mut make: impl FnMut(usize) -> M, stop: &Stop) -> io::Result<()> {
        affinity::keep(|| {
            if let Some(cpu) = self.options.cpus.first() {
                affinity::pin_thread(*cpu)?;
            }
            let mut servers = Servers::new(Clock::start())?;
            for (number, port) in self.ports.into_iter().enumerate() {
                servers.add(make(number), port, &self.options)?;
            }
            while !stop.load(Ordering::Relaxed) {
                servers.round(self.options.wait)?;
            }
            Ok(())
        })
    }
}

/// The endpoints, the poller that reports which of them has something to read, and the deadlines of the others.
struct Servers<M: Machine> {
    endpoints: Vec<Endpoint<M, Sockets>>,
    /// The deadline of each endpoint, if it has one.
    alarms: Vec<Option<Instant>>,
    by_time: BTreeSet<(Instant, usize)>,
    poller: Poller,
    clock: Clock,
}

impl<M: Machine> Servers<M> {
    fn new(clock: Clock) -> io::Result<Self> {
        let (endpoints, alarms) = (Vec::new(), Vec::new());
        Ok(Servers { endpoints, alarms, by_time: BTreeSet::new(), poller: Poller::new()?, clock })
    }

    fn add(&mut self, machine: M, port: Port, options: &ServeOptions) -> io::Result<()> {
        let number = self.endpoints.len();
        self.poller.add(port.fd.as_fd(), number as u64, false)?;
        let mut sockets = Sockets::new(options.settings.clone())?;
        sockets.bind(port)?;
        self.endpoints.push(Endpoint::new(machine, sockets, self.clock));
        self.alarms.push(None);
        self.turn(number)
    }

    /// Waits for the next datagram or deadline, and runs a turn of each endpoint that has one.
    fn round(&mut self, wait: Wait) -> io::Result<()> {
        let now = self.clock.now();
        let next = self.by_time.first().map_or(Instant::MAX, |(at, _)| *at);
        let until = if wait == Wait::Block { next.min(now + NOTICE) } else { now };
        self.poller.wait(span_until(until, now))?;
        while let Some(ready) = self.poller.next() {
            self.turn(ready.token as usize)?;
        }
        let now = self.clock.now();
        for _ in 0..self.endpoints.len() {
            match self.by_time.first() {
                Some(&(at, number)) if at <= now => self.turn(number)?,
                _ => break,
            }
        }
        Ok(())
    }

    fn turn(&mut self, number: usize) -> io::Result<()> {
        let endpoint = &mut self.endpoints[number];
        endpoint.step(Wait::Never, Instant::ZERO, &mut |_| {})?;
        let alarm = endpoint.deadline();
        if let Some(before) = std::mem::replace(&mut self.alarms[number], alarm) {
            self.by_time.remove(&(before, number));
        }
        self.by_time.extend(alarm.map(|at| (at, number)));
        Ok(())
    }
}
