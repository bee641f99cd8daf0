//! The floor: what bare sockets do for the same exchange, without any machine or endpoint.
//!
//! One thread on each side, a few system calls in a loop, nothing else. Where many operations may be in flight the loop
//! moves them in bulk, because that is what the kernel can do for whoever asks it well: large writes on a stream,
//! datagrams that the kernel cuts and joins.

use crate::sys;
use crate::sys_datagram::{self as batch, Received};
use crate::{Clock, SocketSettings, affinity, connect};
use hodo_machine::{Address, Instant, Wait};
use std::io::{self, ErrorKind, IoSlice};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const WARM_UP: Duration = Duration::from_millis(40);
const COUNTED: Duration = Duration::from_millis(160);
/// A blocking call returns after this long, to see whether it is over.
const LOOK_UP: Duration = Duration::from_millis(20);
/// Bytes moved with one call.
const BULK: usize = 256 << 10;
/// A floor that has not come to its end by then never will.
const GIVE_UP: Duration = Duration::from_secs(2);
/// Bytes of datagrams that the kernel cuts from one call.
const CUT: usize = 64_000;

/// What the sockets are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// TCP on loopback.
    Tcp,
    /// UDP on loopback.
    Udp,
    /// Unix streams.
    Unix,
}

/// What is exchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exchange {
    /// One message out, one back, one at a time.
    PingPong,
    /// So many messages in flight, each answered.
    Echo {
        /// How many.
        window: usize,
    },
    /// Messages one way.
    OneWay,
}

/// One floor to be measured.
#[derive(Debug, Clone)]
pub struct Floor {
    /// What the sockets are.
    pub kind: Kind,
    /// What is exchanged.
    pub exchange: Exchange,
    /// Bytes of a message.
    pub size: usize,
    /// How both sides wait.
    pub wait: Wait,
    /// Processors of the near and the far thread, a pair for each pair of threads; `None`: wherever the kernel puts them.
    pub cpus: Vec<(Option<usize>, Option<usize>)>,
    /// What is set on every socket.
    pub settings: SocketSettings,
}

/// What bare sockets did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found {
    /// Messages per second: answered ones, or for one way those that arrived.
    pub messages_per_s: f64,
    /// The median time of a ping-pong.
    pub p50_ns: Option<f64>,
}

impl Floor {
    /// Measures for about a fifth of a second.
    pub fn measure(&self) -> io::Result<Found> {
        let stop = AtomicBool::new(false);
        let arrived: Vec<AtomicU64> = self.cpus.iter().map(|_| AtomicU64::new(0)).collect();
        std::thread::scope(|scope| {
            let mut near = Vec::new();
            for (&cpus, arrived) in self.cpus.iter().zip(&arrived) {
                let (here, there) = self.pair()?;
                let stop = &stop;
                scope.spawn(move || self.far(&there, cpus.1, arrived, stop));
                near.push(scope.spawn(move || self.near(&here, cpus.0, arrived)));
            }
            let found: Vec<io::Result<Found>> =
                near.into_iter().map(|thread| thread.join().expect("the loop does not panic")).collect();
            stop.store(true, Ordering::Relaxed);
            found.into_iter().reduce(add).unwrap_or(Err(ErrorKind::InvalidInput.into()))
        })
    }

    fn pair(&self) -> io::Result<(OwnedFd, OwnedFd)> {
        let (near, far) = match self.kind {
            Kind::Unix => UnixStream::pair().map(|(near, far)| (near.into(), far.into()))?,
            Kind::Tcp => self.tcp_pair()?,
            Kind::Udp => udp_pair()?,
        };
        for fd in [near.as_fd(), far.as_fd()] {
            if self.kind == Kind::Udp {
                connect::set_buffers(fd, self.settings.socket_buffer.unwrap_or(4 << 20))?;
                // Without it each datagram comes alone, which is what such a kernel can do.
                let _ = batch::set_joining(fd, !matches!(self.exchange, Exchange::PingPong));
            }
            sys::set_timeout(fd, libc::SO_RCVTIMEO, LOOK_UP)?;
            sys::set_timeout(fd, libc::SO_SNDTIMEO, LOOK_UP)?;
        }
        Ok((near, far))
    }

    fn tcp_pair(&self) -> io::Result<(OwnedFd, OwnedFd)> {
        let any = Address::Socket(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let (listener, raw) = connect::socket_for(&any, libc::SOCK_STREAM)?;
        sys::bind(listener.as_fd(), &raw)?;
        sys::listen(listener.as_fd(), 1)?;
        let bound = sys::local_address(listener.as_fd())?;
        let (near, _) = connect::socket_for(&any, libc::SOCK_STREAM)?;
        connect::prepare_stream(near.as_fd(), &any, &self.settings)?;
        sys::connect(near.as_fd(), &bound)?;
        let (far, _) = sys::accept(listener.as_fd())?;
        connect::prepare_stream(far.as_fd(), &any, &self.settings)?;
        Ok((near, far))
    }

    fn near(&self, fd: &OwnedFd, cpu: Option<usize>, arrived: &AtomicU64) -> io::Result<Found> {
        place(cpu)?;
        match self.exchange {
            Exchange::PingPong => self.ping(fd.as_fd()),
            Exchange::Echo { window } => self.echo(fd.as_fd(), window),
            Exchange::OneWay => self.push(fd.as_fd(), arrived),
        }
    }

    /// The far thread ends with its stream, or when it is told to.
    fn far(&self, fd: &OwnedFd, cpu: Option<usize>, arrived: &AtomicU64, stop: &AtomicBool) {
        // A thread that could not be placed or has failed closes its socket, which the near side sees.
        let _ = place(cpu).and_then(|()| match self.exchange {
            Exchange::OneWay => self.sink(fd.as_fd(), arrived, stop),
            Exchange::PingPong => self.pong(fd.as_fd(), stop),
            Exchange::Echo { .. } => self.duplex(fd.as_fd(), 0, |_| stop.load(Ordering::Relaxed)),
        });
    }

    /// Messages that go out with one call.
    fn bulk(&self) -> usize {
        let most = if self.kind == Kind::Udp { CUT.min(64 * self.size) } else { BULK };
        (most / self.size.max(1)).max(1)
    }

    fn ping(&self, fd: BorrowedFd<'_>) -> io::Result<Found> {
        let out = vec![0x55u8; self.size];
        let mut calls = Calls::new(self, self.size);
        let clock = Clock::start();
        let (from, end) = (clock.now() + WARM_UP, clock.now() + WARM_UP + COUNTED);
        let (mut times, mut last) = (Vec::with_capacity(1 << 16), clock.now());
        while last < end {
            calls.send(fd, &out)?;
            calls.receive_exactly(fd, out.len())?;
            let now = clock.now();
            if last >= from {
                times.push(now.nanos_since(last));
            }
            last = now;
        }
        times.sort_unstable();
        let p50 = times.get(times.len() / 2).map(|ns| *ns as f64);
        Ok(Found { messages_per_s: times.len() as f64 / (last.nanos_since(from) as f64 * 1e-9), p50_ns: p50 })
    }

    fn pong(&self, fd: BorrowedFd<'_>, stop: &AtomicBool) -> io::Result<()> {
        let mut calls = Calls::new(self, self.size);
        let out = vec![0x55u8; self.size];
        let mut came = 0;
        while !stop.load(Ordering::Relaxed) {
            match calls.receive(fd)? {
                Some(0) => break,
                Some(count) => came += count,
                None => continue,
            }
            while came >= self.size {
                came -= self.size;
                calls.send(fd, &out)?;
            }
        }
        Ok(())
    }

    /// Both ways at once: each byte that comes lets one go. The near side begins with a window's worth.
    fn duplex(&self, fd: BorrowedFd<'_>, window: usize, mut over: impl FnMut(usize) -> bool) -> io::Result<()> {
        let bulk = self.bulk() * self.size;
        let out = vec![0x55u8; bulk];
        let mut calls = Calls::new(self, bulk.max(BULK));
        let mut credit = window * self.size;
        loop {
            let go = credit.min(bulk);
            // Datagrams are cut evenly, and a stream takes what it can.
            let go = if self.kind == Kind::Udp { go / self.size * self.size } else { go };
            let went = if go > 0 { calls.send_some(fd, &out[..go])? } else { 0 };
            credit -= went;
            let came = match calls.receive_some(fd, went == 0 && go == 0)? {
                Some(0) if self.kind != Kind::Udp => return Ok(()),
                came => came.unwrap_or(0),
            };
            credit += came;
            if over(came) {
                return Ok(());
            }
            if went == 0 && came == 0 && go > 0 && calls.blocks() {
                sys::wait_ready(fd, LOOK_UP)?;
            }
        }
    }

    fn echo(&self, fd: BorrowedFd<'_>, window: usize) -> io::Result<Found> {
        let clock = Clock::start();
        let (from, end) = (clock.now() + WARM_UP, clock.now() + WARM_UP + COUNTED);
        let (mut bytes, mut last) = (0u64, clock.now());
        self.duplex(fd, window, |came| {
            last = clock.now();
            bytes += if last >= from { came as u64 } else { 0 };
            last >= end
        })?;
        let messages = bytes as f64 / self.size.max(1) as f64;
        Ok(Found { messages_per_s: messages / (last.nanos_since(from) as f64 * 1e-9), p50_ns: None })
    }

    fn push(&self, fd: BorrowedFd<'_>, arrived: &AtomicU64) -> io::Result<Found> {
        let bulk = self.bulk();
        let out = vec![0x55u8; bulk * self.size];
        let mut calls = Calls::new(self, out.len());
        let clock = Clock::start();
        let (from, end) = (clock.now() + WARM_UP, clock.now() + WARM_UP + COUNTED);
        let mut first = None;
        let mut now = clock.now();
        while now < end {
            calls.send(fd, &out)?;
            now = clock.now();
            if first.is_none() && now >= from {
                first = Some((now, arrived.load(Ordering::Relaxed)));
            }
        }
        let (since, before) = first.unwrap_or((from, 0));
        let bytes = arrived.load(Ordering::Relaxed).saturating_sub(before);
        let spent = now.nanos_since(since) as f64 * 1e-9;
        let messages = bytes as f64 / self.size.max(1) as f64;
        Ok(Found { messages_per_s: messages / spent, p50_ns: None })
    }

    fn sink(&self, fd: BorrowedFd<'_>, arrived: &AtomicU64, stop: &AtomicBool) -> io::Result<()> {
        let mut calls = Calls::new(self, BULK);
        while !stop.load(Ordering::Relaxed) {
            match calls.receive(fd)? {
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

/// The system calls of one side.
struct Calls {
    flags: i32,
    buffer: Vec<u8>,
    datagrams: Option<Received>,
    cut: Option<u16>,
    clock: Clock,
}

impl Calls {
    fn new(floor: &Floor, size: usize) -> Self {
        let udp = floor.kind == Kind::Udp;
        Calls {
            flags: if matches!(floor.wait, Wait::Block) { 0 } else { libc::MSG_DONTWAIT },
            buffer: vec![0; size.max(1)],
            datagrams: (udp && size > floor.size).then(Received::new),
            cut: (udp && size > floor.size).then(|| u16::try_from(floor.size).ok()).flatten(),
            clock: Clock::start(),
        }
    }

    #[inline]
    fn send(&mut self, fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let sent = match self.cut {
                Some(each) => batch::send(fd, None, &[IoSlice::new(rest)], Some(each)).map(|()| rest.len()),
                None => sys::send(fd, rest, 0),
            };
            match sent {
                Ok(count) => rest = &rest[count..],
                Err(error) if is_late(&error) && self.clock.now() < Instant::ZERO + GIVE_UP => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Sends what there is room for.
    #[inline]
    fn send_some(&mut self, fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
        let sent = match self.cut {
            Some(each) if bytes.len() > usize::from(each) => {
                batch::send(fd, None, &[IoSlice::new(bytes)], Some(each)).map(|()| bytes.len())
            }
            _ => sys::send(fd, bytes, libc::MSG_DONTWAIT),
        };
        match sent {
            Err(error) if is_late(&error) => Ok(0),
            other => other,
        }
    }

    /// Receives what is there, and waits for it only where nothing else can be done.
    #[inline]
    fn receive_some(&mut self, fd: BorrowedFd<'_>, wait: bool) -> io::Result<Option<usize>> {
        let flags = self.flags;
        if !wait {
            self.flags = libc::MSG_DONTWAIT;
        }
        let came = self.receive(fd);
        self.flags = flags;
        came
    }

    /// Whether waiting sleeps.
    fn blocks(&self) -> bool {
        self.flags == 0
    }

    /// Some bytes; `None` where none came in time.
    #[inline]
    fn receive(&mut self, fd: BorrowedFd<'_>) -> io::Result<Option<usize>> {
        let came = match &mut self.datagrams {
            Some(received) => received
                .receive(fd, self.flags, false)
                .map(|runs| (0..runs).map(|index| received.run(index).bytes.len()).sum()),
            None => sys::receive(fd, &mut self.buffer, self.flags),
        };
        match came {
            Ok(count) => Ok(Some(count)),
            Err(error) if is_late(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    #[inline]
    fn receive_exactly(&mut self, fd: BorrowedFd<'_>, size: usize) -> io::Result<()> {
        let (mut came, mut empty) = (0, 0u32);
        while came < size {
            match self.receive(fd)? {
                Some(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Some(count) => came += count,
                None => {
                    empty += 1;
                    if empty.is_multiple_of(64) && self.clock.now() >= Instant::ZERO + GIVE_UP {
                        return Err(ErrorKind::TimedOut.into());
                    }
                }
            }
        }
        Ok(())
    }
}

fn place(cpu: Option<usize>) -> io::Result<()> {
    cpu.map_or(Ok(()), affinity::pin_thread)
}

fn add(a: io::Result<Found>, b: io::Result<Found>) -> io::Result<Found> {
    let (a, b) = (a?, b?);
    Ok(Found { messages_per_s: a.messages_per_s + b.messages_per_s, p50_ns: a.p50_ns })
}

fn udp_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let any = Address::Socket(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let (near, raw) = connect::socket_for(&any, libc::SOCK_DGRAM)?;
    let (far, _) = connect::socket_for(&any, libc::SOCK_DGRAM)?;
    sys::bind(near.as_fd(), &raw)?;
    sys::bind(far.as_fd(), &raw)?;
    sys::connect(near.as_fd(), &sys::local_address(far.as_fd())?)?;
    sys::connect(far.as_fd(), &sys::local_address(near.as_fd())?)?;
    Ok((near, far))
}

fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_exchange_moves_messages() {
        for kind in [Kind::Tcp, Kind::Udp, Kind::Unix] {
            for exchange in [Exchange::PingPong, Exchange::Echo { window: 16 }, Exchange::OneWay] {
                let settings = SocketSettings::default();
                let floor = Floor { kind, exchange, size: 64, wait: Wait::Block, cpus: vec![(None, None)], settings };
                let found = floor.measure().unwrap_or_else(|error| panic!("{kind:?} {exchange:?}: {error}"));
                assert!(found.messages_per_s > 100.0, "{kind:?} {exchange:?}: {found:?}");
                assert_eq!(found.p50_ns.is_some(), exchange == Exchange::PingPong);
            }
        }
    }
}
