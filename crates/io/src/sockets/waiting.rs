//! The wait for the next input: the one loop of all receives.

use super::{ARRIVALS, Datagrams, PORTS, RECEIVE_SPAN, Side, Sockets, Source};
use crate::patience::{Begin, LINGER, Poll};
use crate::poller::{Ready, span_until};
use crate::stream::LOOK_UP;
use crate::{Clock, polling, sys};
use hodo_machine::{Instant, Machine, Peer, Wait};
use std::io;
use std::time::Duration;

/// The number of empty looks at the only socket, or rounds of looks, between two readings of the clock.
const SPINS: u32 = 32;
const ROUNDS: u32 = 8;
/// The number of looks at the side where the next input is expected, in a round before one at the other.
const EXPECTED: u32 = 3;

/// The time after which a reply that has not arrived is lost, or takes so long that polling for it does not pay.
const LATE: Duration = Duration::from_micros(100);

/// The bytes after which what has come is answered before more is received: whoever sends much waits for the answers.
const ENOUGH: usize = 64 << 10;

/// The bytes that count as a little: the window of a device, or a few requests.
const LITTLE: usize = 64 << 10;
/// The datagrams in flight at most at which a thread between datagrams and streams looks for a while. With more, one comes soon,
/// and a sleep gathers more of them, and of what comes on the other side.
const FEW: usize = 2;

/// The only socket, which is received from directly.
#[derive(Clone, Copy)]
enum Solo {
    Stream(Peer),
    Datagrams(Source),
}

/// The time of the last input, or `None` if there was none.
type InputTime = io::Result<Option<Instant>>;

impl Sockets {
    /// Waits for input, at most to `until`, and passes it to the machine. Returns when it came.
    #[inline]
    pub(super) fn wait<M: Machine>(&mut self, wait: Wait, until: Instant, clock: &Clock, machine: &mut M) -> InputTime {
        self.streams.end_work(clock);
        if let Some(now) = self.take_what_is_known(clock, machine)? {
            return Ok(Some(now));
        }
        if self.streams.has_arrived() {
            let seen = self.look(clock, machine)?;
            return Ok(seen.or_else(|| self.streams.welcome(clock, machine)));
        }
        match wait {
            Wait::Never => {
                self.streams.gather_no_more();
                self.look(clock, machine)
            }
            Wait::Block => self.sleep(until, clock, machine),
            Wait::Adaptive => self.linger(until, clock, machine),
            Wait::Spin => self.spin(until, clock, machine),
            Wait::SpinThenBlock(span) => {
                let spin_until = (clock.now() + span).min(until);
                let seen = self.spin(spin_until, clock, machine)?;
                if seen.is_some() || spin_until == until {
                    return Ok(seen);
                }
                self.sleep(until, clock, machine)
            }
        }
    }

    /// Passes on input that is known without a look.
    #[inline]
    fn take_what_is_known<M: Machine>(&mut self, clock: &Clock, machine: &mut M) -> InputTime {
        self.streams.resume(machine);
        self.streams.cut_untaken(clock);
        self.streams.look_at_clock(clock);
        if self.streams.has_arrivals() && self.take_arrivals(clock)? {
            return Ok(Some(self.streams.heard));
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
        self.take_ready(clock, machine)
    }

    /// Takes the connections that have come. Returns whether another thread has woken this one, which then has something to do
    /// before it sleeps.
    fn take_arrivals(&mut self, clock: &Clock) -> io::Result<bool> {
        let woken = self.is_woken && self.streams.is_woken();
        self.streams.take_arrivals(clock)?;
        Ok(woken)
    }

    /// Receives from the descriptors that the poller found ready: all of them, unless they bring much or that takes too long.
    #[inline]
    fn take_ready<M: Machine>(&mut self, clock: &Clock, machine: &mut M) -> InputTime {
        let (mut first, mut last) = (None, None);
        self.streams.taken = 0;
        while let Some(ready) = self.streams.poller.next() {
            if let Some(now) = self.take(ready, clock, machine)? {
                last = Some(now);
                if self.streams.taken >= ENOUGH || now - *first.get_or_insert(now) >= RECEIVE_SPAN {
                    break;
                }
            }
        }
        Ok(last)
    }

    #[inline]
    fn take<M: Machine>(&mut self, ready: Ready, clock: &Clock, machine: &mut M) -> InputTime {
        let peer = Peer(ready.token as u32);
        if ready.token < ARRIVALS && self.streams.has(peer) {
            let seen = self.streams.ready(ready, clock, machine);
            return Ok(self.note(Side::Streams, seen));
        }
        if (ARRIVALS..PORTS).contains(&ready.token) {
            let woken = self.take_arrivals(clock)?.then_some(self.streams.heard);
            return Ok(self.streams.welcome(clock, machine).or(woken));
        }
        let source = Datagrams::source_of(ready.token);
        let seen = self.datagrams.read(source, libc::MSG_DONTWAIT, clock, machine)?;
        Ok(self.note(Side::Datagrams, seen))
    }

    /// Records that the next input is expected on the side that this one did not come from.
    #[inline]
    fn note(&mut self, side: Side, seen: Option<Instant>) -> Option<Instant> {
        if let Some(now) = seen {
            self.streams.heard = now;
            self.heard_since_sleep = true;
            self.expected = side.other();
        }
        seen
    }

    /// Returns the only socket, if it can be received from directly.
    #[inline]
    fn solo(&mut self) -> Option<Solo> {
        match (self.streams.count, self.datagrams.sockets()) {
            (1, 0) => self.streams.solo().map(Solo::Stream),
            (0, 1) => self.datagrams.solo().map(Solo::Datagrams),
            _ => None,
        }
    }

    /// Looks once at every socket.
    fn look<M: Machine>(&mut self, clock: &Clock, machine: &mut M) -> InputTime {
        let seen = match self.solo() {
            None if self.streams.count == 1 || self.datagrams.solo().is_some() => {
                let first = self.expected;
                let seen = self.glance(first, clock, machine)?;
                if seen.is_none() {
                    self.glance(first.other(), clock, machine)?
                } else if self.both.is_worth_a_look() {
                    // What came on both sides is answered by one turn, with fewer sends, and that keeps them in step.
                    let more = self.glance(first.other(), clock, machine)?;
                    self.both.learned(more.is_some());
                    more.or(seen)
                } else {
                    seen
                }
            }
            Some(Solo::Stream(peer)) => {
                let seen = self.streams.read_on(peer, libc::MSG_DONTWAIT, clock, machine);
                self.note(Side::Streams, seen)
            }
            Some(Solo::Datagrams(source)) => {
                let seen = self.datagrams.read(source, libc::MSG_DONTWAIT, clock, machine)?;
                self.note(Side::Datagrams, seen)
            }
            None => self.poll(Some(Duration::ZERO), clock, machine)?,
        };
        if seen.is_none() {
            // Listeners are checked when time has passed.
            self.streams.heard = clock.now();
        }
        Ok(seen)
    }

    /// Looks once at one side of two.
    #[inline]
    fn glance<M: Machine>(&mut self, side: Side, clock: &Clock, machine: &mut M) -> InputTime {
        let seen = match side {
            Side::Streams => match self.streams.solo() {
                Some(peer) => self.streams.read(peer, libc::MSG_DONTWAIT, clock, machine),
                None if self.streams.count == 0 => None,
                None => return self.poll(Some(Duration::ZERO), clock, machine),
            },
            Side::Datagrams => match self.datagrams.solo() {
                Some(source) => self.datagrams.read(source, libc::MSG_DONTWAIT, clock, machine)?,
                None if self.datagrams.sockets() == 0 => None,
                None => return self.poll(Some(Duration::ZERO), clock, machine),
            },
        };
        Ok(self.note(side, seen))
    }

    /// Polls until something comes, or until `until`.
    fn spin<M: Machine>(&mut self, until: Instant, clock: &Clock, machine: &mut M) -> InputTime {
        let mut last = clock.now();
        loop {
            let (seen, looks) = self.spin_a_while(clock, machine)?;
            if let Some(now) = seen {
                // All looks but the one that found input.
                polling::add(
                    now.nanos_since(last).min(polling::ROUND_NS_MAX) * u64::from(looks - 1) / u64::from(looks),
                );
                return Ok(seen);
            }
            if self.streams.has_arrivals() {
                let woken = self.take_arrivals(clock)?.then_some(self.streams.heard);
                if let Some(now) = self.streams.welcome(clock, machine).or(woken) {
                    return Ok(Some(now));
                }
            }
            let now = clock.now();
            polling::add(now.nanos_since(last).min(polling::ROUND_NS_MAX));
            (last, self.streams.heard) = (now, now);
            self.heard_since_sleep = true;
            if now >= until {
                return Ok(None);
            }
        }
    }

    /// Looks again and again between two readings of the clock. Returns the number of looks, too.
    fn spin_a_while<M: Machine>(&mut self, clock: &Clock, machine: &mut M) -> io::Result<(Option<Instant>, u32)> {
        match self.solo() {
            Some(Solo::Stream(peer)) => {
                let (seen, looks) = self.streams.spin_solo(peer, clock, machine);
                return Ok((self.note(Side::Streams, seen), looks));
            }
            Some(Solo::Datagrams(source)) => {
                self.datagrams.unwatch(source);
                for looks in 1..=SPINS {
                    let seen = self.datagrams.read(source, libc::MSG_DONTWAIT, clock, machine)?;
                    if self.note(Side::Datagrams, seen).is_some() {
                        return Ok((seen, looks));
                    }
                }
                return Ok((None, SPINS));
            }
            None if self.streams.count == 0 || self.datagrams.sockets() == 0 => {
                return Ok((self.poll(Some(Duration::ZERO), clock, machine)?, 1));
            }
            None => {}
        }
        if let Some(source) = self.datagrams.solo() {
            self.datagrams.unwatch(source);
        }
        for round in 0..ROUNDS {
            for look in 1..EXPECTED {
                let seen = self.glance(self.expected, clock, machine)?;
                if seen.is_some() {
                    return Ok((seen, round * EXPECTED + look));
                }
            }
            let seen = self.look(clock, machine)?;
            if seen.is_some() || self.streams.has_arrivals() {
                return Ok((seen, (round + 1) * EXPECTED));
            }
        }
        Ok((None, ROUNDS * EXPECTED))
    }

    /// Polls before a sleep where that has paid lately: while input is expected, because something was sent or a reply is pending.
    fn linger<M: Machine>(&mut self, until: Instant, clock: &Clock, machine: &mut M) -> InputTime {
        let sent = std::mem::take(&mut self.sent);
        let is_owed = self.streams.owed + self.datagrams.owed > 0;
        if sent == 0 && !is_owed {
            return self.sleep(until, clock, machine);
        }
        let began = clock.now();
        // The receiver may have run already, on the processor of this thread.
        if self.looks[usize::from(is_owed)].is_worth_a_look() {
            let seen = self.look(clock, machine)?;
            self.looks[usize::from(is_owed)].looked(seen.is_some());
            if seen.is_some() {
                return Ok(seen);
            }
        }
        // After much was sent, a sleep gathers more of the replies.
        let is_little = sent <= LITTLE && (self.streams.count == 0 || self.datagrams.in_flight <= FEW);
        let kind = usize::from(is_little);
        let (seen, polled_ns) = match self.patience[kind].begin(began) {
            Begin::Sleep => {
                let seen = self.sleep(until, clock, machine)?;
                seen.iter().for_each(|now| self.patience[kind].slept(now.nanos_since(began)));
                return Ok(seen);
            }
            Begin::Spin => {
                let seen = self.spin((began + LINGER).min(until), clock, machine)?;
                (seen, seen.unwrap_or(self.streams.heard).min(began + LINGER).nanos_since(began))
            }
            Begin::Yield => self.let_others_run(is_little, began, clock, machine)?,
        };
        match seen {
            Some(now) => {
                self.patience[kind].found(now.nanos_since(began), polled_ns, now);
                Ok(seen)
            }
            None => {
                self.patience[kind].found_nothing(polled_ns, self.streams.heard);
                self.sleep(until, clock, machine)
            }
        }
    }

    /// Lets other threads run and looks again: once, or for a while. On one processor the receiver of a message runs then. Returns the CPU
    /// time of the empty looks, too.
    fn let_others_run<M: Machine>(
        &mut self,
        for_a_while: bool,
        began: Instant,
        clock: &Clock,
        machine: &mut M,
    ) -> io::Result<(Option<Instant>, u64)> {
        let mut poll = Poll::begin(began);
        let seen = loop {
            sys::yield_now();
            let seen = self.look(clock, machine)?;
            if seen.is_some() || !poll.looked(self.streams.heard) || !for_a_while {
                break seen;
            }
        };
        polling::add(poll.polled_ns());
        Ok((seen, poll.polled_ns()))
    }

    /// Sleeps until input comes, at most to `until`: in a receive if there is only one socket, which spares the
    /// poller's call.
    fn sleep<M: Machine>(&mut self, until: Instant, clock: &Clock, machine: &mut M) -> InputTime {
        // A turn is over in microseconds: the time of the last input is recent enough for a timer, and spares a
        // reading.
        let now = if std::mem::take(&mut self.heard_since_sleep) { self.streams.heard } else { clock.now() };
        let mut span = span_until(until, now);
        if span.is_none_or(|span| span > LOOK_UP)
            && now >= self.streams.unsettled_until
            && !self.is_woken
            && let Some(solo) = self.solo()
        {
            let seen = match solo {
                Solo::Stream(peer) => self.streams.block_solo(peer, clock, machine),
                Solo::Datagrams(source) => {
                    self.datagrams.unwatch(source);
                    self.datagrams.read(source, 0, clock, machine)?
                }
            };
            if seen.is_some() {
                return Ok(seen);
            }
            span = span_until(until, clock.now());
        }
        let seen = self.poll_gathering(span, until, clock, machine)?;
        if seen.is_none_or(|seen| seen - now > LATE) {
            self.datagrams.in_flight = 0;
        }
        Ok(seen)
    }

    /// Polls all sockets as [`Sockets::poll`] does. If a message stops to come while its bytes are gathered, those that are there are taken.
    fn poll_gathering<M: Machine>(
        &mut self,
        span: Option<Duration>,
        until: Instant,
        clock: &Clock,
        machine: &mut M,
    ) -> InputTime {
        if !self.streams.gather() {
            return self.poll(span, clock, machine);
        }
        let seen = self.poll(Some(span.map_or(LOOK_UP, |span| span.min(LOOK_UP))), clock, machine)?;
        if seen.is_some() {
            return Ok(seen);
        }
        self.streams.gather_no_more();
        self.poll(span_until(until, clock.now()), clock, machine)
    }

    /// Polls all sockets, and sleeps in the poller for at most `span`.
    fn poll<M: Machine>(&mut self, span: Option<Duration>, clock: &Clock, machine: &mut M) -> InputTime {
        self.streams.direct = 0;
        self.streams.watch_all()?;
        self.datagrams.watch_all()?;
        self.streams.poller.wait(span)?;
        self.take_ready(clock, machine)
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
