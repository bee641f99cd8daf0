//! A connection for each exchange: connect, send the request, receive the reply, close.

use super::{COUNTED, Calls, Floor, Kind, Measurement, WARM_UP};
use crate::connect::{prepare_stream, socket_for};
use crate::sys::{self, RawAddress};
use crate::{Clock, SocketSettings};
use hodo_machine::Address;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The number of connections that may wait to be accepted: one at a time comes, and the one before may not be gone yet.
const QUEUE: i32 = 16;

/// The address that connections go to.
pub(super) enum Place {
    Tcp(RawAddress),
    Unix(UnixAddr),
}

/// Creates a listener, bound to a free port of loopback or to a name that no file has, and returns it with its address.
pub(super) fn listener(kind: Kind) -> io::Result<(OwnedFd, Place)> {
    match kind {
        Kind::Tcp => {
            let (listener, any) = socket_for(&loopback(), libc::SOCK_STREAM)?;
            sys::bind(listener.as_fd(), &any)?;
            sys::listen(listener.as_fd(), QUEUE)?;
            let at = sys::local_address(listener.as_fd())?;
            Ok((listener, Place::Tcp(at)))
        }
        Kind::Unix => {
            static FLOORS: AtomicU64 = AtomicU64::new(0);
            let name = format!("hodo floor {} {}", std::process::id(), FLOORS.fetch_add(1, Ordering::Relaxed));
            let at = UnixAddr::from_abstract_name(name)?;
            Ok((UnixListener::bind_addr(&at)?.into(), Place::Unix(at)))
        }
        Kind::Udp => Err(io::Error::new(ErrorKind::InvalidInput, "UDP has no connections")),
    }
}

impl Place {
    /// Opens a new connection to this address.
    pub(super) fn connect(&self, settings: &SocketSettings) -> io::Result<OwnedFd> {
        match self {
            Place::Tcp(at) => {
                let (fd, _) = socket_for(&loopback(), libc::SOCK_STREAM)?;
                prepare_stream(fd.as_fd(), &loopback(), settings)?;
                settings.path.confine(fd.as_fd(), &loopback())?;
                sys::connect(fd.as_fd(), at)?;
                Ok(fd)
            }
            Place::Unix(at) => UnixStream::connect_addr(at).map(OwnedFd::from),
        }
    }

    /// Returns the address that this connection goes to.
    fn of(kind: Kind, connection: &OwnedFd) -> io::Result<Place> {
        match kind {
            Kind::Unix => UnixStream::from(connection.try_clone()?).peer_addr().map(Place::Unix),
            _ => sys::remote_address(connection.as_fd()).map(Place::Tcp),
        }
    }
}

/// Accepts the next connection of a listener.
pub(super) fn accept(kind: Kind, listener: BorrowedFd<'_>, settings: &SocketSettings) -> io::Result<OwnedFd> {
    let (fd, _) = sys::accept(listener)?;
    if kind == Kind::Tcp {
        prepare_stream(fd.as_fd(), &loopback(), settings)?;
    }
    Ok(fd)
}

fn loopback() -> Address {
    Address::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
}

impl Floor {
    /// Returns the first connection, and the listener where it waits to be accepted.
    pub(super) fn first_connection(&self) -> io::Result<(OwnedFd, OwnedFd)> {
        let (listener, place) = listener(self.kind)?;
        if !self.wait.sleeps() {
            sys::set_nonblocking(listener.as_fd(), true)?;
        }
        Ok((place.connect(&self.settings)?, listener))
    }

    /// Measures one exchange per connection. The time of an exchange ends with its reply; closing counts in the rate
    /// alone.
    pub(super) fn connect_each(&self, fds: Vec<OwnedFd>, answer: usize) -> io::Result<Measurement> {
        let place = Place::of(self.kind, &fds[0])?;
        let mut first = fds.into_iter().next();
        let out = vec![0x55u8; self.size];
        let mut calls = Calls::one_by_one(self, self.size.max(answer));
        let clock = Clock::start();
        let (from, end) = (clock.now() + WARM_UP, clock.now() + WARM_UP + COUNTED);
        let (mut times, mut last, mut all) = (Vec::with_capacity(1 << 16), clock.now(), 0);
        while last < end {
            let fd = first.take().map_or_else(|| place.connect(&self.settings), Ok)?;
            calls.send(fd.as_fd(), &out)?;
            calls.receive_exactly(fd.as_fd(), answer)?;
            let answered = clock.now();
            drop(fd);
            all += 1;
            if last >= from {
                times.push(answered.nanos_since(last));
            }
            last = clock.now();
        }
        Ok(Measurement::of(times, last.nanos_since(from), all))
    }

    /// Accepts one connection after the other and replies on each, until `stop` is set.
    pub(super) fn accept_each(&self, listener: BorrowedFd<'_>, answer: usize, stop: &AtomicBool) -> io::Result<()> {
        let out = vec![0x55u8; answer];
        let mut calls = Calls::one_by_one(self, self.size.max(answer));
        while !stop.load(Ordering::Relaxed) {
            let fd = match accept(self.kind, listener, &self.far_settings) {
                Ok(fd) => fd,
                Err(error) if sys::is_vain(&error) || error.kind() == ErrorKind::ConnectionAborted => continue,
                Err(error) => return Err(error),
            };
            calls.receive_exactly(fd.as_fd(), self.size)?;
            calls.send(fd.as_fd(), &out)?;
            // The near side closes, in whatever way.
            while !stop.load(Ordering::Relaxed) && matches!(calls.receive(fd.as_fd()), Ok(Some(1..) | None)) {}
        }
        Ok(())
    }
}
