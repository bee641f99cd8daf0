use crate::attended::Accepting;
use crate::datagram::Source;
use crate::hunch::Hunch;
use crate::poller::span_until;
use crate::transport::{Batch, Ends, Transport};
use crate::{Clock, Datagrams, Listener, SocketSettings, Streams};
use hodo_machine::{Address, Closed, Instant, Machine, Outbox, Peer, Wait};
use std::io;
use std::time::Duration;

/// Rounds of empty looks between two looks at the clock.
const ROUNDS: u32 = 8;
/// Looks of a round at the side where the next input is expected, before one at the other.
const EXPECTED: u32 = 3;
/// Inputs that the machine takes in before it is asked what to send, where the poller saw several: requests of several
/// clients to one board then go out with one call.
const INPUTS: usize = 16;

/// Streams and datagrams at one endpoint, on one thread: a hub between clients over TCP and devices over UDP.
///
/// The peers that come by themselves are streams, from a [`Listener`]; those that the machine opens are datagrams, each on
/// a connected socket of its own. So each device has its own buffer in the kernel, which no other can fill, its absence
/// is told as [`Closed::Refused`], and a stranger's datagrams do not come through.
///
/// What comes on one side is mostly answered on the other: polling looks first at the side that did not bring the last
/// input, with a receive and without the poller where that side has one peer.
pub struct Joint {
    streams: Streams,
    datagrams: Datagrams,
    expected: Side,
    heard_since_sleep: bool,
    /// The stream that the poller saw last.
    client: Peer,
    /// Whether what is expected is there before a sleep.
    hunch: [Hunch; 2],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Streams,
    Datagrams,
}

impl Joint {
    /// Without any peer. Connections to `listener` are accepted here; each side has its own settings.
    pub fn listening(streams: SocketSettings, datagrams: SocketSettings, listener: Listener) -> io::Result<Self> {
        Self::with(Streams::listening(streams, listener)?, datagrams)
    }

    /// With these streams, none of which the machine may have opened, and without any device.
    pub(crate) fn with(streams: Streams, datagrams: SocketSettings) -> io::Result<Self> {
        let mut datagrams = Datagrams::new(datagrams, None)?;
        datagrams.share_poller(&streams.poller)?;
        Ok(Joint {
            streams,
            datagrams,
            expected: Side::Streams,
            heard_since_sleep: false,
            client: Peer(0),
            hunch: [Hunch::new(), Hunch::new()],
        })
    }

    /// The side that came by itself.
    #[must_use]
    pub fn streams(&self) -> &Streams {
        &self.streams
    }

    /// Looks once at one side.
    #[inline]
    fn glance<M: Machine>(&mut self, side: Side, clock: &Clock, machine: &mut M) -> io::Result<Option<Instant>> {
        let seen = match side {
            Side::Streams if self.streams.count == 0 => None,
            Side::Streams => match self.streams.solo() {
                Some(peer) => self.streams.read(peer, libc::MSG_DONTWAIT, clock, machine),
                None => {
                    self.streams.watch_all()?;
                    return self.poll(Some(Duration::ZERO), clock, machine);
                }
            },
            Side::Datagrams if self.datagrams.open == 0 => None,
            Side::Datagrams => match self.datagrams.solo() {
                Some(source) => self.datagrams.read(source, libc::MSG_DONTWAIT, clock, machine)?,
                None => {
                    self.datagrams.watch_all()?;
                    return self.poll(Some(Duration::ZERO), clock, machine);
                }
            },
        };
        self.note(side, seen);
        Ok(seen)
    }

    /// The next input is expected where this one did not come from.
    #[inline]
    fn note(&mut self, side: Side, seen: Option<Instant>) {
        if let Some(now) = seen {
            self.streams.heard = now;
            self.heard_since_sleep = true;
            self.expected = side.other();
        }
    }

    /// Looks once at both sides.
    #[inline]
    fn look<M: Machine>(&mut self, clock: &Clock, machine: &mut M) -> io::Result<Option<Instant>> {
        let first = self.expected;
        match self.glance(first, clock, machine)? {
            None => self.glance(first.other(), clock, machine),
            seen => Ok(seen),
        }
    }

    /// Looks at both sides, more often where the next input is expected.
    #[inline]
    fn round<M: Machine>(&mut self, clock: &Clock, machine: &mut M) -> io::Result<Option<Instant>> {
        for _ in 1..EXPECTED {
            if let Some(now) = self.glance(self.expected, clock, machine)? {
                return Ok(Some(now));
            }
        }
        self.look(clock, machine)
    }

    fn spin<M: Machine>(&mut self, clock: &Clock, machine: &mut M) -> io::Result<Option<Instant>> {
        for _ in 0..ROUNDS {
            if let Some(now) = self.round(clock, machine)? {
                return Ok(Some(now));
            }
            if self.streams.has_arrivals() {
                self.streams.take_arrivals(clock)?;
                if let Some(now) = self.streams.welcome(clock, machine) {
                    return Ok(Some(now));
                }
            }
        }
        Ok(None)
    }

    /// Looks where the next input is expected, where that side has one peer and its answer was often there lately.
    #[inline]
    fn look_first<M: Machine>(&mut self, clock: &Clock, machine: &mut M) -> io::Result<Option<Instant>> {
        let side = self.expected;
        let hunch = &mut self.hunch[side as usize];
        if !hunch.is_worth_a_look() {
            return Ok(None);
        }
        let seen = match side {
            Side::Streams if self.streams.count == 1 => {
                self.streams.read(self.client, libc::MSG_DONTWAIT, clock, machine)
            }
            Side::Streams => return Ok(None),
            Side::Datagrams => match self.datagrams.solo() {
                Some(source) => self.datagrams.read(source, libc::MSG_DONTWAIT, clock, machine)?,
                None => return Ok(None),
            },
        };
        self.hunch[side as usize].looked(seen.is_some());
        self.note(side, seen);
        Ok(seen)
    }

    /// Waits for both sides.
    fn sleep<M: Machine>(
        &mut self,
        span: Option<Duration>,
        clock: &Clock,
        machine: &mut M,
    ) -> io::Result<Option<Instant>> {
        self.streams.watch_all()?;
        self.datagrams.watch_all()?;
        self.poll(span, clock, machine)
    }

    fn poll<M: Machine>(
        &mut self,
        span: Option<Duration>,
        clock: &Clock,
        machine: &mut M,
    ) -> io::Result<Option<Instant>> {
        self.streams.poller.wait(span)?;
        self.ready(clock, machine)
    }

    /// Takes in some of what the poller saw.
    fn ready<M: Machine>(&mut self, clock: &Clock, machine: &mut M) -> io::Result<Option<Instant>> {
        let mut last = None;
        for _ in 0..INPUTS {
            let Some(ready) = self.streams.poller.next() else { break };
            let (side, seen) = if ready.token < u64::from(Peer::FIRST_ACCEPTED) {
                let source = Source::Opened(ready.token as u32);
                (Side::Datagrams, self.datagrams.read(source, libc::MSG_DONTWAIT, clock, machine)?)
            } else {
                self.client = Peer(ready.token as u32);
                (Side::Streams, self.streams.ready(ready, clock, machine)?)
            };
            self.note(side, seen);
            last = seen.or(last);
        }
        Ok(last)
    }
}

impl Side {
    #[inline]
    fn other(self) -> Side {
        match self {
            Side::Streams => Side::Datagrams,
            Side::Datagrams => Side::Streams,
        }
    }
}

impl Transport for Joint {
    fn open(&mut self, peer: Peer, address: &Address) -> Result<(), Closed> {
        self.datagrams.open(peer, address)
    }

    fn close(&mut self, peer: Peer) {
        if peer.is_accepted() {
            self.streams.close(peer);
        } else {
            self.datagrams.close(peer);
        }
    }

    #[inline]
    fn send(&mut self, batch: &Batch, out: &Outbox) -> io::Result<()> {
        for run in batch.runs() {
            if run.peer.is_accepted() {
                self.streams.send_run(&run, out);
            } else {
                self.datagrams.send_run(&run, out);
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

    #[inline]
    fn receive<M: Machine>(
        &mut self,
        wait: Wait,
        until: Instant,
        clock: &Clock,
        machine: &mut M,
    ) -> io::Result<Option<Instant>> {
        self.streams.cut_untaken(clock);
        if self.streams.has_arrivals() {
            self.streams.take_arrivals(clock)?;
        }
        if let Some(now) = self.streams.notice(clock, machine) {
            return Ok(Some(now));
        }
        if let Some(now) = self.datagrams.notice(clock, machine) {
            return Ok(Some(now));
        }
        if self.streams.is_to_welcome() {
            return Ok(self.streams.welcome(clock, machine));
        }
        if let Some(now) = self.ready(clock, machine)? {
            return Ok(Some(now));
        }
        if self.streams.has_arrived() {
            let seen = self.look(clock, machine)?;
            return Ok(seen.or_else(|| self.streams.welcome(clock, machine)));
        }
        if let Some(source) = self.datagrams.solo() {
            let seen = self.datagrams.look_on(source, clock, machine)?;
            self.note(Side::Datagrams, seen);
            if seen.is_some() {
                return Ok(seen);
            }
        }
        let Some(spins) = wait.polls_for() else { return self.look(clock, machine) };
        if spins.is_zero() {
            if let Some(now) = self.look_first(clock, machine)? {
                return Ok(Some(now));
            }
        } else {
            if wait == Wait::Spin
                && let Some(source) = self.datagrams.solo()
            {
                self.datagrams.unwatch(source);
            }
            let spin_until = (clock.now() + spins).min(until);
            loop {
                if let Some(now) = self.spin(clock, machine)? {
                    return Ok(Some(now));
                }
                self.streams.heard = clock.now();
                self.heard_since_sleep = true;
                if self.streams.heard >= spin_until {
                    break;
                }
            }
            if spin_until == until {
                return Ok(None);
            }
        }
        // A turn is over in microseconds: what was heard last is recent enough for a timer, and spares a reading.
        let now = if std::mem::take(&mut self.heard_since_sleep) { self.streams.heard } else { clock.now() };
        self.sleep(span_until(until, now), clock, machine)
    }

    fn ends(&self, peer: Peer) -> Option<Ends> {
        if peer.is_accepted() { self.streams.ends(peer) } else { self.datagrams.ends(peer) }
    }
}

impl Accepting for Joint {
    fn stop_listening(&mut self) {
        self.streams.stop_listening();
    }

    fn backlog(&self) -> usize {
        self.streams.backlog()
    }
}
