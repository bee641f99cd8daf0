//! The floor: the rate and time of bare sockets for the same exchange, without any machine or endpoint.
//!
//! There is one thread on each side with a few system calls in a loop, and nothing else. Where many operations may be
//! in flight the loop moves them in bulk, because the kernel can do so for a program that asks for it: with large
//! writes on a stream, and with datagrams that the kernel cuts and joins.

mod calls;
mod connections;
mod crowd;

use crate::sys;
use crate::sys_datagram as batch;
use crate::usage::Usage;
use crate::{Clock, SocketSettings, affinity, connect};
use calls::Calls;
use hodo_machine::{Address, Instant, Wait};
use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{Builder, ScopedJoinHandle};
use std::time::Duration;

const WARM_UP: Duration = Duration::from_millis(10);
const COUNTED: Duration = Duration::from_millis(40);
/// The timeout of a blocking call, after which the thread checks whether the measurement is over.
const LOOK_UP: Duration = Duration::from_millis(20);
/// The bytes moved with one call.
const BULK: usize = 256 << 10;
/// The time after which a floor that has not ended is given up.
const GIVE_UP: Duration = Duration::from_secs(2);
/// The bytes of the datagrams that the kernel cuts from one call.
const CUT: usize = 64_000;

/// The kind of the sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// TCP on loopback.
    Tcp,
    /// UDP on loopback.
    Udp,
    /// Unix streams.
    Unix,
}

/// The pattern of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exchange {
    /// One message out and a reply back, one at a time.
    PingPong {
        /// The bytes of the reply.
        answer: usize,
    },
    /// A window of messages in flight.
    Windowed(Window),
    /// Messages one way.
    OneWay {
        /// The sockets of each pair of threads, which get as many messages each.
        sockets: usize,
    },
    /// One message out and a reply back on a connection of their own, one at a time. Streams only.
    Connect {
        /// The bytes of the reply.
        answer: usize,
    },
}

/// Groups of messages in flight, with one reply to each group as a whole: a window of a protocol, in its own packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The sockets of each pair of threads. Of several, a thread asks the kernel which have something.
    pub sockets: usize,
    /// The number of groups on each socket.
    pub groups: usize,
    /// The number of messages in a group.
    pub messages: usize,
    /// The number of messages in the reply to a group.
    pub answers: usize,
    /// The bytes of each message of the reply.
    pub answer: usize,
}

/// One floor to be measured.
#[derive(Debug, Clone)]
pub struct Floor {
    /// The kind of the sockets.
    pub kind: Kind,
    /// The pattern of an exchange.
    pub exchange: Exchange,
    /// The bytes of a message.
    pub size: usize,
    /// The way in which both sides wait.
    pub wait: Wait,
    /// The processors of the near and the far thread, a pair for each pair of threads; `None` leaves the choice to the
    /// kernel.
    pub cpus: Vec<(Option<usize>, Option<usize>)>,
    /// The settings of the sockets on the near side.
    pub settings: SocketSettings,
    /// The settings of those on the far side.
    pub far_settings: SocketSettings,
}

/// The result of a floor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found {
    /// Messages per second: those with a reply, or for one way those that arrived.
    pub messages_per_s: f64,
    /// The median time of one exchange, if they are one at a time.
    pub p50_ns: Option<f64>,
    /// CPU time of the busier side per message, as the kernel counts it for the threads, less that of polling.
    pub cost_ns: Option<f64>,
}

/// The measurement of a near thread: the rate in the counted time, and all messages since it began.
struct Measurement {
    messages_per_s: f64,
    p50_ns: Option<f64>,
    all: u64,
}

impl Measurement {
    /// Creates a measurement from the times of exchanges one after the other, which took `span_ns` together.
    fn of(mut times: Vec<u64>, span_ns: u64, all: u64) -> Measurement {
        times.sort_unstable();
        let p50_ns = times.get(times.len() / 2).map(|ns| *ns as f64);
        Measurement { messages_per_s: times.len() as f64 / (span_ns as f64 * 1e-9), p50_ns, all }
    }
}

impl Floor {
    /// Measures for about a twentieth of a second.
    ///
    /// # Errors
    /// Returns `InvalidInput` for connections over UDP or without any pair of processors, and otherwise the operating
    /// system's error if a socket cannot be set up or used, or a thread cannot be started or pinned.
    pub fn measure(&self) -> io::Result<Found> {
        let stop = AtomicBool::new(false);
        let arrived: Vec<AtomicU64> = self.cpus.iter().map(|_| AtomicU64::new(0)).collect();
        // Before any thread runs, because a running one would not be stopped.
        let pairs = self.cpus.iter().map(|_| self.pairs()).collect::<io::Result<Vec<_>>>()?;
        let (here, there): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        std::thread::scope(|scope| {
            let mut far = Vec::new();
            for ((there, cpus), arrived) in there.iter().zip(&self.cpus).zip(&arrived) {
                let stop = &stop;
                let run = move || {
                    if let [only] = there.as_slice() {
                        affinity::leave_other_descriptors(only.as_fd());
                    }
                    costing(|| self.far(there, cpus.1, arrived, stop)).1
                };
                // Those that run already would not end by themselves.
                let thread = Builder::new().spawn_scoped(scope, run);
                far.push(thread.inspect_err(|_| stop.store(true, Ordering::Relaxed))?);
            }
            let sides = here.into_iter().zip(&self.cpus).zip(&arrived);
            let near = sides.map(|((here, cpus), arrived)| move || costing(|| self.near(here, cpus.0, arrived)));
            let near = match self.cpus.len() {
                1 => Ok(near.map(affinity::keep).collect()),
                _ => near.map(|near| Builder::new().spawn_scoped(scope, near)).collect::<io::Result<_>>().map(joined),
            };
            stop.store(true, Ordering::Relaxed);
            let found = near?.into_iter().zip(joined(far)).map(|((seen, near_ns), far_ns)| {
                let seen = seen?;
                let cost_ns = (seen.all > 0).then(|| near_ns.max(far_ns) / seen.all as f64);
                Ok(Found { messages_per_s: seen.messages_per_s, p50_ns: seen.p50_ns, cost_ns })
            });
            found.reduce(add).unwrap_or(Err(ErrorKind::InvalidInput.into()))
        })
    }

    fn sockets(&self) -> usize {
        match self.exchange {
            Exchange::Windowed(Window { sockets, .. }) | Exchange::OneWay { sockets } => sockets.max(1),
            Exchange::PingPong { .. } | Exchange::Connect { .. } => 1,
        }
    }

    fn pairs(&self) -> io::Result<(Vec<OwnedFd>, Vec<OwnedFd>)> {
        (0..self.sockets()).map(|_| self.pair()).collect::<io::Result<Vec<_>>>().map(|pairs| pairs.into_iter().unzip())
    }

    fn pair(&self) -> io::Result<(OwnedFd, OwnedFd)> {
        let (near, far) = match self.kind {
            _ if matches!(self.exchange, Exchange::Connect { .. }) => self.first_connection()?,
            Kind::Unix => UnixStream::pair().map(|(near, far)| (near.into(), far.into()))?,
            Kind::Tcp => self.tcp_pair()?,
            Kind::Udp => udp_pair()?,
        };
        if self.kind == Kind::Udp && self.sockets() > 1 {
            sys::connect(far.as_fd(), &sys::local_address(near.as_fd())?)?;
        }
        for (fd, buffer) in
            [(near.as_fd(), self.settings.socket_buffer), (far.as_fd(), self.far_settings.socket_buffer)]
        {
            if self.kind == Kind::Udp {
                connect::set_buffers(fd, buffer.unwrap_or(4 << 20))?;
                if !matches!(self.exchange, Exchange::PingPong { .. }) {
                    // Without it each datagram comes alone, which is all that such a kernel can do.
                    let _ = batch::join(fd);
                }
            }
            sys::set_timeout(fd, libc::SO_RCVTIMEO, LOOK_UP)?;
            sys::set_timeout(fd, libc::SO_SNDTIMEO, LOOK_UP)?;
        }
        Ok((near, far))
    }

    fn tcp_pair(&self) -> io::Result<(OwnedFd, OwnedFd)> {
        let (listener, place) = connections::listener(Kind::Tcp)?;
        let near = place.connect(&self.settings)?;
        Ok((near, connections::accept(Kind::Tcp, listener.as_fd(), &self.far_settings)?))
    }

    fn near(&self, fds: Vec<OwnedFd>, cpu: Option<usize>, arrived: &AtomicU64) -> io::Result<Measurement> {
        place(cpu)?;
        let fd = fds[0].as_fd();
        match self.exchange {
            Exchange::Windowed(window) => self.windowed(&fds, window),
            Exchange::PingPong { answer } => self.ping(fd, answer),
            Exchange::OneWay { .. } => self.push(&fds, arrived),
            Exchange::Connect { answer } => self.connect_each(fds, answer),
        }
    }

    /// Runs the far thread, which ends with its stream or when `stop` is set.
    fn far(&self, fds: &[OwnedFd], cpu: Option<usize>, arrived: &AtomicU64, stop: &AtomicBool) {
        let fd = fds[0].as_fd();
        let outcome = place(cpu).and_then(|()| match self.exchange {
            Exchange::OneWay { .. } => self.sink(fds, arrived, stop),
            Exchange::PingPong { answer } => self.pong(fd, answer, stop),
            Exchange::Connect { answer } => self.accept_each(fd, answer, stop),
            Exchange::Windowed(window) => {
                let [near, far] = self.groups(window);
                self.exchanges(fds, 0, near.bytes, far, |_| stop.load(Ordering::Relaxed))
            }
        });
        if outcome.is_err() {
            // The near side sees the end of a stream, and misses the replies of a datagram socket.
            fds.iter().for_each(|fd| sys::shut_down(fd.as_fd()));
        }
    }

    /// Returns whether two threads share a processor: one that spins would keep the other waiting for a time slice.
    fn is_crowded(&self) -> bool {
        let named: Vec<usize> = self.cpus.iter().flat_map(|(near, far)| [*near, *far]).flatten().collect();
        let apart: BTreeSet<usize> = named.iter().copied().collect();
        let unplaced = 2 * self.cpus.len() - named.len();
        // A thread that has its place sees no other processor, and needs not ask.
        let are_few = || apart.len() + unplaced > std::thread::available_parallelism().map_or(1, usize::from);
        apart.len() < named.len() || (unplaced > 0 && are_few())
    }

    /// Returns how many messages go out with one call.
    fn bulk(&self) -> usize {
        self.bulk_of(self.size)
    }

    /// Returns how many messages of this size go out with one call.
    fn bulk_of(&self, size: usize) -> usize {
        let most = if self.kind == Kind::Udp { CUT.min(64 * size) } else { BULK };
        (most / size.max(1)).max(1)
    }

    /// Returns the groups that the near and the far side send.
    fn groups(&self, window: Window) -> [Group; 2] {
        [Group::new(window.messages, self.size), Group::new(window.answers, window.answer)]
    }

    /// Returns how many of these bytes one call moves: a stream is cut anywhere, a datagram nowhere.
    fn piece(&self, bytes: usize) -> usize {
        if self.kind == Kind::Udp { bytes } else { bytes.min(BULK) }
    }

    fn ping(&self, fd: BorrowedFd<'_>, answer: usize) -> io::Result<Measurement> {
        let out = vec![0x55u8; self.piece(self.size)];
        let mut calls = Calls::one_by_one(self, self.piece(answer));
        let clock = Clock::start();
        let (from, end) = (clock.now() + WARM_UP, clock.now() + WARM_UP + COUNTED);
        let (mut times, mut last, mut all) = (Vec::with_capacity(1 << 16), clock.now(), 0);
        // A busy machine may have let the whole time pass: then the next exchange counts.
        while last < end || times.is_empty() {
            calls.send_message(fd, &out, self.size)?;
            calls.receive_exactly(fd, answer)?;
            all += 1;
            let now = clock.now();
            if last >= from || now >= end {
                times.push(now.nanos_since(last));
            }
            last = now;
        }
        Ok(Measurement::of(times, last.nanos_since(from), all))
    }

    fn pong(&self, fd: BorrowedFd<'_>, answer: usize, stop: &AtomicBool) -> io::Result<()> {
        let mut calls = Calls::one_by_one(self, self.piece(self.size)).answering();
        let out = vec![0x55u8; self.piece(answer)];
        let mut came = 0;
        while !stop.load(Ordering::Relaxed) {
            match calls.receive(fd)? {
                Some(0) => break,
                Some(count) => came += count,
                None => continue,
            }
            while came >= self.size {
                came -= self.size;
                calls.send_message(fd, &out, answer)?;
            }
        }
        Ok(())
    }

    /// Exchanges groups on one socket or on many until it is over, or a stream ends.
    fn exchanges(
        &self,
        fds: &[OwnedFd],
        window: usize,
        group_in: usize,
        group: Group,
        over: impl FnMut(usize) -> bool,
    ) -> io::Result<()> {
        let [only] = fds else { return self.crowd(fds, window, group_in, group, over) };
        let calls = Calls::of_pieces(self, BULK, group.piece);
        let calls = if window == 0 { calls.answering() } else { calls };
        self.duplex(only.as_fd(), window, group_in, group, calls, over)
    }

    /// Exchanges groups both ways at once: each group that arrives lets one of this side's go. The near side begins
    /// with a window's worth.
    fn duplex(
        &self,
        fd: BorrowedFd<'_>,
        window: usize,
        group_in: usize,
        group: Group,
        mut calls: Calls,
        mut over: impl FnMut(usize) -> bool,
    ) -> io::Result<()> {
        let bulk = self.piece(self.bulk_of(group.piece) * group.piece);
        let out = vec![0x55u8; bulk];
        let (mut credit, mut part, mut heard) = (window * group.bytes, 0, Instant::ZERO);
        loop {
            let go = credit.min(bulk);
            // Datagrams are cut evenly, and a stream takes what it can.
            let go = if self.kind == Kind::Udp { go / group.piece * group.piece } else { go };
            let went = if go > 0 { calls.send_some(fd, &out[..go])? } else { 0 };
            credit -= went;
            let came = match calls.receive_some(fd, went == 0 && go == 0)? {
                Some(0) if self.kind != Kind::Udp => return Ok(()),
                came => came.unwrap_or(0),
            };
            part += came;
            credit += part / group_in * group.bytes;
            part %= group_in;
            if over(came) {
                return Ok(());
            }
            if self.kind == Kind::Udp && window > 0 {
                let now = calls.clock.now();
                if came > 0 {
                    heard = now;
                } else if now >= heard + LOOK_UP {
                    // A datagram was lost, and with it the rest of the window.
                    (credit, part, heard) = (window * group.bytes, 0, now);
                }
            }
            if went == 0 && came == 0 && go > 0 && calls.blocks() {
                sys::wait_ready(fd, LOOK_UP)?;
            }
        }
    }

    fn windowed(&self, fds: &[OwnedFd], window: Window) -> io::Result<Measurement> {
        let [near, far] = self.groups(window);
        let clock = Clock::start();
        let (from, end) = (clock.now() + WARM_UP, clock.now() + WARM_UP + COUNTED);
        let (mut bytes, mut last, mut all) = (0u64, clock.now(), 0);
        self.exchanges(fds, window.groups, far.bytes, near, |came| {
            last = clock.now();
            all += came as u64;
            bytes += if last >= from { came as u64 } else { 0 };
            last >= end && (bytes > 0 || last >= Instant::ZERO + GIVE_UP)
        })?;
        let groups = |bytes: u64| bytes as f64 / far.bytes as f64;
        let messages_per_s = groups(bytes) * window.messages as f64 / (last.nanos_since(from) as f64 * 1e-9);
        Ok(Measurement { messages_per_s, p50_ns: None, all: (groups(all) * window.messages as f64) as u64 })
    }

    fn push(&self, fds: &[OwnedFd], arrived: &AtomicU64) -> io::Result<Measurement> {
        let bulk = self.bulk();
        let out = vec![0x55u8; self.piece(bulk * self.size)];
        let mut calls = Calls::new(self, out.len());
        let clock = Clock::start();
        let from = clock.now() + WARM_UP;
        // When and after how many bytes the counted time began.
        let mut first: Option<(Instant, u64)> = None;
        let mut now = clock.now();
        let since_then = |before: u64| arrived.load(Ordering::Relaxed).saturating_sub(before);
        // A call may take longer than all the time that is counted: that begins with the end of the call.
        let enough = |first: Option<(Instant, u64)>, now| {
            first.is_some_and(|(since, before)| now >= since + COUNTED && since_then(before) > 0)
        };
        let mut each = fds.iter().cycle();
        while !(enough(first, now) || now >= Instant::ZERO + GIVE_UP) {
            each.next().map_or(Ok(()), |fd| calls.send(fd.as_fd(), &out))?;
            now = clock.now();
            if first.is_none() && now >= from {
                first = Some((now, arrived.load(Ordering::Relaxed)));
            }
        }
        let (since, before) = first.unwrap_or((from, 0));
        let all = arrived.load(Ordering::Relaxed);
        Ok(self.seen(all.saturating_sub(before), now.nanos_since(since), all))
    }

    /// Converts the bytes that arrived in the counted time, and since the beginning, into a measurement.
    fn seen(&self, bytes: u64, span_ns: u64, all: u64) -> Measurement {
        let size = self.size.max(1) as u64;
        let messages = bytes as f64 / size as f64;
        Measurement { messages_per_s: messages / (span_ns as f64 * 1e-9), p50_ns: None, all: all / size }
    }

    fn sink(&self, fds: &[OwnedFd], arrived: &AtomicU64, stop: &AtomicBool) -> io::Result<()> {
        let mut calls = Calls::new(self, BULK);
        let [only] = fds else { return self.sinks(fds, calls, arrived, stop) };
        while !stop.load(Ordering::Relaxed) {
            match calls.receive(only.as_fd())? {
                Some(0) => break,
                Some(count) => {
                    arrived.fetch_add(count as u64, Ordering::Relaxed);
                }
                None => {}
            }
        }
        Ok(())
    }
}

/// The messages that one side sends together.
#[derive(Debug, Clone, Copy)]
struct Group {
    /// The bytes of one message.
    piece: usize,
    /// The bytes of all messages.
    bytes: usize,
}

impl Group {
    fn new(messages: usize, size: usize) -> Group {
        let piece = size.max(1);
        Group { piece, bytes: messages.max(1) * piece }
    }
}

fn place(cpu: Option<usize>) -> io::Result<()> {
    cpu.map_or(Ok(()), affinity::pin_thread)
}

/// Adds the results of two pairs of threads: the cost is that of the mean message.
fn add(a: io::Result<Found>, b: io::Result<Found>) -> io::Result<Found> {
    let (a, b) = (a?, b?);
    let messages_per_s = a.messages_per_s + b.messages_per_s;
    let cost = |of: Found| Some(of.cost_ns? * of.messages_per_s / messages_per_s);
    let cost_ns = cost(a).zip(cost(b)).map(|(a, b)| a + b).filter(|cost| cost.is_finite());
    Ok(Found { messages_per_s, p50_ns: a.p50_ns, cost_ns })
}

/// Returns the result of `act`, and the CPU time that this thread has spent on it without polling, in nanoseconds.
fn costing<T>(act: impl FnOnce() -> T) -> (T, f64) {
    let before = Usage::of_thread();
    (act(), Usage::of_thread().since(&before).working_s() * 1e9)
}

fn joined<T>(threads: Vec<ScopedJoinHandle<'_, T>>) -> Vec<T> {
    threads.into_iter().map(|thread| thread.join().expect("the loop does not panic")).collect()
}

fn udp_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let any = Address::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let (near, raw) = connect::socket_for(&any, libc::SOCK_DGRAM)?;
    let (far, _) = connect::socket_for(&any, libc::SOCK_DGRAM)?;
    sys::bind(near.as_fd(), &raw)?;
    sys::bind(far.as_fd(), &raw)?;
    // The far one is not connected, because no server's is: it takes a sender's address, and replies there.
    sys::connect(near.as_fd(), &sys::local_address(far.as_fd())?)?;
    Ok((near, far))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn echo(sockets: usize, window: usize) -> Exchange {
        Exchange::Windowed(Window { sockets, groups: window, messages: 1, answers: 1, answer: 64 })
    }

    const fn one_way(sockets: usize) -> Exchange {
        Exchange::OneWay { sockets }
    }

    fn floor(kind: Kind, exchange: Exchange, wait: Wait) -> Floor {
        let settings = SocketSettings { cut_on_close: true, ..SocketSettings::default() };
        Floor { kind, exchange, size: 64, wait, cpus: vec![(None, None)], far_settings: settings.clone(), settings }
    }

    #[test]
    fn every_exchange_moves_messages() {
        let connect = Exchange::Connect { answer: 16 };
        for kind in [Kind::Tcp, Kind::Udp, Kind::Unix] {
            for exchange in
                [Exchange::PingPong { answer: 16 }, echo(1, 16), echo(64, 1), one_way(1), one_way(20), connect]
            {
                if (kind, exchange) == (Kind::Udp, connect) {
                    continue;
                }
                let floor = floor(kind, exchange, Wait::Block);
                let found = floor.measure().unwrap_or_else(|error| panic!("{kind:?} {exchange:?}: {error}"));
                assert!(found.messages_per_s > 100.0, "{kind:?} {exchange:?}: {found:?}");
                let single = matches!(exchange, Exchange::PingPong { .. } | Exchange::Connect { .. });
                assert_eq!(found.p50_ns.is_some(), single);
                assert!(found.cost_ns.is_some_and(|cost| cost > 0.0), "{kind:?} {exchange:?}: {found:?}");
            }
        }
    }

    /// Moves a block of registers: 20 bytes request 1,400, and 16 packets are in flight. On a stream a reply covers eight
    /// messages.
    #[test]
    fn a_window_moves_in_the_packets_of_its_protocol() {
        for (kind, messages, answers, answer) in
            [(Kind::Udp, 1, 1, 1400), (Kind::Tcp, 8, 1, 16), (Kind::Unix, 1, 1, 9000)]
        {
            for (sockets, wait) in [1, 20]
                .into_iter()
                .flat_map(|sockets| [Wait::Block, Wait::Adaptive, Wait::Spin].map(|wait| (sockets, wait)))
            {
                let exchange = Exchange::Windowed(Window { sockets, groups: 16, messages, answers, answer });
                let found = Floor { size: 20, ..floor(kind, exchange, wait) }.measure();
                let found = found.unwrap_or_else(|error| panic!("{kind:?} {exchange:?}: {error}"));
                assert!(found.messages_per_s > 100.0, "{kind:?} {exchange:?}: {found:?}");
                assert!(found.cost_ns.is_some_and(|cost| cost > 0.0), "{kind:?} {exchange:?}: {found:?}");
            }
        }
    }

    /// Checks that connections end, but not how many: that depends on the other load of the processors.
    #[test]
    fn connections_come_to_their_end_while_both_sides_poll() {
        for kind in [Kind::Tcp, Kind::Unix] {
            floor(kind, Exchange::Connect { answer: 64 }, Wait::Spin).measure().expect("it moves");
        }
    }

    #[test]
    fn datagrams_have_no_connections() {
        let error = floor(Kind::Udp, Exchange::Connect { answer: 64 }, Wait::Block).measure().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }

    #[test]
    fn large_messages_flow_as_fast_as_small_ones() {
        for kind in [Kind::Tcp, Kind::Unix] {
            for exchange in [echo(1, 2), echo(8, 2), one_way(1), one_way(8), Exchange::PingPong { answer: 16 }] {
                let large = Floor { size: 32 << 20, ..floor(kind, exchange, Wait::Block) };
                let measured = || large.measure().unwrap_or_else(|error| panic!("{kind:?} {exchange:?}: {error}"));
                // Some gigabits; when the time went by before the first byte, it was a thousandth of that. Again where others have the
                // processors meanwhile: a look is short.
                let fast = (0..10).any(|_| measured().messages_per_s > 0.05);
                assert!(fast, "{kind:?} {exchange:?}: nothing flows");
            }
        }
    }

    /// The options of this side are not those of the far end: with its buffers as small, each message would wait for a timer of TCP, and the
    /// loop made 5 a second.
    #[test]
    fn small_buffers_are_of_the_near_side_alone() {
        let mut small = Floor { size: 16 << 10, ..floor(Kind::Tcp, echo(1, 4), Wait::Block) };
        small.settings.socket_buffer = Some(4096);
        let fast = (0..10).any(|_| small.measure().unwrap().messages_per_s > 1000.0);
        assert!(fast, "its messages wait for a timer");
    }

    #[test]
    #[ignore = "timing"]
    fn two_that_spin_on_one_processor_let_each_other_run() {
        let cpu = affinity::allowed_cpus().unwrap().first().copied();
        let (kind, exchange) = (Kind::Tcp, Exchange::PingPong { answer: 64 });
        let floor = Floor { cpus: vec![(cpu, cpu)], ..floor(kind, exchange, Wait::Spin) };
        // Again where others have the processor meanwhile, because they are given way to as well.
        let fast = (0..20).any(|_| floor.measure().unwrap().messages_per_s > 2000.0);
        assert!(fast, "a time slice each would make it some 200");
    }
}
