use crate::SocketSettings;
use crate::sys::{self, RawAddress};
use hodo_machine::{Address, Ends, Transport};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Checks that the system knows this TCP congestion control and lets this process choose it.
///
/// # Errors
/// Returns the operating system's error if it does not know the congestion control or refuses it to this process.
pub fn check_congestion(name: &str) -> io::Result<()> {
    sys::set_congestion(sys::socket(libc::AF_INET, libc::SOCK_STREAM)?.as_fd(), name)
}

/// Connects a TCP stream from this address of this host, on any port.
///
/// # Errors
/// Returns the operating system's error: `AddrNotAvailable` if the address is not this host's, `TimedOut` after `patience`.
pub fn connect_from(from: IpAddr, to: SocketAddr, patience: Duration) -> io::Result<TcpStream> {
    let (fd, raw) = socket_for(&Address::Tcp(to), libc::SOCK_STREAM)?;
    sys::set_timeout(fd.as_fd(), libc::SO_SNDTIMEO, patience)?;
    sys::bind(fd.as_fd(), &RawAddress::ip(SocketAddr::new(from, 0)))?;
    if !sys::connect(fd.as_fd(), &raw)? {
        return Err(io::ErrorKind::TimedOut.into());
    }
    Ok(TcpStream::from(fd))
}

/// Begins to connect a stream, and returns whether it is connected already. The socket does not block while connecting.
pub(crate) fn stream(address: &Address, settings: &SocketSettings) -> io::Result<(OwnedFd, bool)> {
    let (fd, raw) = socket_for(address, libc::SOCK_STREAM)?;
    prepare_stream(fd.as_fd(), address, settings)?;
    settings.path.confine(fd.as_fd(), address)?;
    settings.path.bind(fd.as_fd(), address)?;
    sys::set_nonblocking(fd.as_fd(), true)?;
    let connected = sys::connect(fd.as_fd(), &raw)?;
    if connected {
        sys::set_nonblocking(fd.as_fd(), false)?;
    }
    Ok((fd, connected))
}

/// Creates a socket that can be bound or connected to `address`, and returns it with the address in the kernel's form.
pub(crate) fn socket_for(address: &Address, kind: i32) -> io::Result<(OwnedFd, RawAddress)> {
    match address {
        Address::Tcp(ip) | Address::Udp(ip) | Address::UdpFrom(_, ip) => {
            let family = if ip.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
            Ok((sys::socket(family, kind)?, RawAddress::ip(*ip)))
        }
        Address::Path(path) => Ok((sys::socket(libc::AF_UNIX, kind)?, RawAddress::path(path)?)),
        other => Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{other} is not the address of a socket"))),
    }
}

/// Returns the ends of a socket that is connected to `remote`.
pub(crate) fn ends(fd: BorrowedFd<'_>, remote: Address) -> Ends {
    let local = sys::local_address(fd).map_or_else(|_| Address::Path(String::new()), |raw| address_of(raw, &remote));
    let user = if matches!(remote, Address::Path(_)) { sys::user_at_far_end(fd).ok() } else { None };
    Ends { user, ..Ends::new(local, remote) }
}

/// Returns the address of a socket of the same kind as the one at `other`.
fn address_of(raw: RawAddress, other: &Address) -> Address {
    match raw.to_ip() {
        Some(ip) => Address::of(other.transport().unwrap_or(Transport::Stream), ip),
        None => Address::Path(raw.to_path()),
    }
}

/// Sets the options of a stream, before it is connected or after it is accepted.
pub(crate) fn prepare_stream(fd: BorrowedFd<'_>, address: &Address, settings: &SocketSettings) -> io::Result<()> {
    if let Some(size) = settings.socket_buffer {
        set_buffers(fd, size)?;
    }
    if !matches!(address, Address::Tcp(_)) {
        return Ok(());
    }
    sys::set_option(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)?;
    if let Some(name) = &settings.congestion {
        sys::set_congestion(fd, name)?;
    }
    if let Some(pace) = settings.pace {
        sys::set_pace(fd, pace)?;
    }
    settings.path.mark(fd, address)?;
    if settings.cut_on_close {
        return sys::set_cut_on_close(fd);
    }
    let (idle, interval) = keep_alive(NUMBER.fetch_add(1, Ordering::Relaxed));
    sys::set_option(fd, libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1)?;
    sys::set_option(fd, libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, idle)?;
    sys::set_option(fd, libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, interval)?;
    sys::set_option(fd, libc::IPPROTO_TCP, libc::TCP_KEEPCNT, PROBES)
}

/// The number of the next stream.
static NUMBER: AtomicU32 = AtomicU32::new(0);
/// The probes of a silent peer that are not answered before it counts as gone.
const PROBES: i32 = 4;

/// Returns the seconds of silence before the first probe of a stream, and between the probes. Streams that fell silent together
/// are not probed together, nor again: thousands of probes at once are more than a queue takes, and were lost each time.
const fn keep_alive(number: u32) -> (i32, i32) {
    (10 + (number % 16) as i32, 3 + (number / 16 % 3) as i32)
}

/// Requests buffers of this size, also above the system's limit if the process may.
pub(crate) fn set_buffers(fd: BorrowedFd<'_>, size: usize) -> io::Result<()> {
    let size = i32::try_from(size).unwrap_or(i32::MAX);
    for (forced, plain) in [(libc::SO_SNDBUFFORCE, libc::SO_SNDBUF), (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF)] {
        if sys::set_option(fd, libc::SOL_SOCKET, forced, size).is_err() {
            sys::set_option(fd, libc::SOL_SOCKET, plain, size)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_not_probed_in_lockstep() {
        let mut at = [[0; 48]; PROBES as usize];
        for (idle, interval) in (0..4800).map(keep_alive) {
            assert!((10..=25).contains(&idle) && (25..=50).contains(&(idle + PROBES * interval + 3)));
            (0..PROBES).for_each(|probe| at[probe as usize][(idle + probe * interval) as usize] += 1);
        }
        assert!(at.iter().flatten().all(|together| *together <= 300), "of 4,800: {at:?}");
    }
}
