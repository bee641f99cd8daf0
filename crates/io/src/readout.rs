use crate::attended::{Accepting, Attendant, attend_here};
use crate::connect::socket_for;
use crate::listener::bound;
use crate::poller::span_until;
use crate::transport::{Batch, Ends, Transport};
use crate::{Clock, Datagrams, ServeOptions, Stop, Streams, affinity, sys};
use hodo_machine::{Address, Closed, Instant, Machine, Outbox, Peer, Wait};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// Datagrams that come by themselves and streams that the machine opens, at one endpoint, on one thread: a builder between
/// its sources over UDP and its controller over TCP. The other way round is [`Joint`](crate::Joint).
pub struct Readout {
    streams: Streams,
    datagrams: Datagrams,
}

impl Readout {
    /// Those who send to this socket become peers.
    fn new(options: &ServeOptions, socket: OwnedFd) -> io::Result<Self> {
        let streams = Streams::new(options.settings.clone(), None)?;
        let mut datagrams = Datagrams::new(options.settings.clone(), Some(socket))?;
        datagrams.share_poller(&streams.poller)?;
        Ok(Readout { streams, datagrams })
    }

    fn look<M: Machine>(
        &mut self,
        sleep: Option<Duration>,
        clock: &Clock,
        machine: &mut M,
    ) -> io::Result<Option<Instant>> {
        self.streams.watch_all()?;
        self.datagrams.watch_all()?;
        self.streams.poller.wait(sleep)?;
        self.ready(clock, machine)
    }

    /// One of those that the poller saw.
    fn ready<M: Machine>(&mut self, clock: &Clock, machine: &mut M) -> io::Result<Option<Instant>> {
        while let Some(ready) = self.streams.poller.next() {
            let seen = match Datagrams::listens_as(ready.token) {
                Some(source) => self.datagrams.read_solo(source, libc::MSG_DONTWAIT, clock, machine)?,
                None => self.streams.ready(ready, clock, machine)?,
            };
            if seen.is_some() {
                return Ok(seen);
            }
        }
        Ok(None)
    }
}

impl Transport for Readout {
    fn open(&mut self, peer: Peer, address: &Address) -> Result<(), Closed> {
        self.streams.open(peer, address)
    }

    fn close(&mut self, peer: Peer) {
        if peer.is_accepted() { self.datagrams.close(peer) } else { self.streams.close(peer) }
    }

    fn send(&mut self, batch: &Batch, out: &Outbox) -> io::Result<()> {
        for run in batch.runs() {
            if run.peer.is_accepted() {
                self.datagrams.send_run(&run, out);
            } else {
                self.streams.send_run(&run, out);
            }
        }
        Ok(())
    }

    fn announce<M: Machine>(&mut self, now: Instant, machine: &mut M) -> bool {
        let any = self.streams.announce(now, machine);
        self.datagrams.announce(now, machine) || any
    }

    #[inline]
    fn has_held(&self) -> bool {
        self.streams.has_held() || self.datagrams.has_held()
    }

    fn release<M: Machine>(&mut self, now: Instant, machine: &mut M) {
        self.streams.release(now, machine);
        self.datagrams.release(now, machine);
    }

    fn receive<M: Machine>(
        &mut self,
        wait: Wait,
        until: Instant,
        clock: &Clock,
        machine: &mut M,
    ) -> io::Result<Option<Instant>> {
        self.streams.cut_untaken(clock);
        let noticed = self.streams.notice(clock, machine).or_else(|| self.datagrams.notice(clock, machine));
        if noticed.is_some() {
            return Ok(noticed);
        }
        if let Some(now) = self.ready(clock, machine)? {
            return Ok(Some(now));
        }
        let Some(spins) = wait.polls_for() else { return self.look(Some(Duration::ZERO), clock, machine) };
        let spin_until = (clock.now() + spins).min(until);
        loop {
            let now = clock.now();
            if now >= spin_until {
                let asleep = spin_until < until;
                return if asleep { self.look(span_until(until, now), clock, machine) } else { Ok(None) };
            }
            if let Some(now) = self.look(Some(Duration::ZERO), clock, machine)? {
                return Ok(Some(now));
            }
        }
    }

    fn ends(&self, peer: Peer) -> Option<Ends> {
        if peer.is_accepted() { self.datagrams.ends(peer) } else { self.streams.ends(peer) }
    }
}

impl Accepting for Readout {
    fn stop_listening(&mut self) {
        self.datagrams.stop_listening();
    }

    fn backlog(&self) -> usize {
        self.streams.backlog()
    }
}

/// Takes datagrams for a machine that reaches others over streams: see [`Readout`].
pub struct ReadoutServer {
    socket: OwnedFd,
    address: Address,
    options: ServeOptions,
}

impl ReadoutServer {
    /// Binds at an address; port 0 is any free one.
    pub fn bind(address: &Address, options: ServeOptions) -> io::Result<Self> {
        let (socket, raw) = socket_for(address, libc::SOCK_DGRAM)?;
        sys::bind(socket.as_fd(), &raw)?;
        Ok(ReadoutServer { address: bound(&socket, address)?, socket, options })
    }

    /// Where it is bound.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Serves on this thread until `stop` is set, then until the machine is drained or the time for that is over.
    pub fn attend<A: Attendant>(
        self,
        drain: Duration,
        make: impl FnOnce() -> (A::Machine, A),
        stop: &Stop,
    ) -> io::Result<()> {
        let ReadoutServer { socket, options, .. } = self;
        affinity::keep(|| attend_here(&options, drain, make, || Readout::new(&options, socket), stop))
    }
}
