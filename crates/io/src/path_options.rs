//! The marks of a socket's packets, and the way on which they leave: code point, hops, segments, local address, interface.

#[cfg(test)]
mod tests;

use crate::connect::socket_for;
use crate::resolve::{IpVersion, any_address, resolve};
use crate::sys::{self, RawAddress};
use hodo_machine::{Address, Transport};
use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use thiserror::Error;

/// The longest name of an interface in bytes; the kernel would cut a longer one.
const DEVICE_MAX: usize = 15;
/// The code points of RFC 2474, RFC 2597, RFC 3246 and RFC 8622 that are in neither of the series `cs` and `af`.
const NAMED: [(&str, u8); 2] = [("ef", 46), ("le", 1)];

/// The marks of a socket's packets, and the way on which they leave. What is `None` is left to the system.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathOptions {
    /// The code point of differentiated services.
    pub dscp: Option<Dscp>,
    /// The time to live of IPv4, which is the hop limit of IPv6.
    pub ttl: Option<u8>,
    /// The largest TCP segment in bytes. Both ends keep it: this one offers it to the other.
    pub mss: Option<u16>,
    /// The address of this end of sockets that connect.
    pub local: Option<LocalAddress>,
    /// The interface, by its name.
    pub device: Option<String>,
    /// The version of IP that names are resolved to.
    pub version: Option<IpVersion>,
}

impl PathOptions {
    /// Returns the version of IP that names are resolved to: the chosen one, else that of the local address.
    #[must_use]
    pub fn ip_version(&self) -> Option<IpVersion> {
        self.version.or_else(|| self.local.as_ref().map(|local| IpVersion::of(local.address.ip())))
    }

    /// Returns these options for a link with this many sockets, of which each has a port of its own if ports are chosen.
    #[must_use]
    pub fn for_sockets(&self, count: u32) -> PathOptions {
        let local = self.local.as_ref().map(|local| LocalAddress { sockets: count.max(1), ..local.afresh() });
        PathOptions { local, ..self.clone() }
    }

    /// Checks that this process may set all of these options on sockets of this host, and bind every port.
    ///
    /// # Errors
    /// The option that this host or this process lacks.
    pub fn check(&self, transport: Transport) -> Result<(), PathError> {
        let any = match (&self.local, self.version) {
            (Some(local), _) => local.address,
            (None, version) => any_address(version != Some(IpVersion::V6), 0),
        };
        let address = Address::of(transport, any);
        let kind = if transport == Transport::Stream { libc::SOCK_STREAM } else { libc::SOCK_DGRAM };
        let socket = || -> Result<OwnedFd, PathError> {
            let made = socket_for(&address, kind).map_err(|error| refused("ip", "sockets", &error));
            made.map(|(fd, _)| fd)
        };
        self.prepare(socket()?.as_fd(), &address)?;
        let Some(local) = &self.local else { return Ok(()) };
        for number in 0..local.ports() {
            local.bind_at(local.port(number)?, socket()?.as_fd(), transport)?;
        }
        Ok(())
    }

    /// Sets all options of a socket that is to connect to or listen at `address`, except its local address.
    pub(crate) fn prepare(&self, fd: BorrowedFd<'_>, address: &Address) -> Result<(), PathError> {
        self.confine(fd, address)?;
        self.mark(fd, address)
    }

    /// Sets the interface and the segments of a socket before it is connected.
    pub(crate) fn confine(&self, fd: BorrowedFd<'_>, address: &Address) -> Result<(), PathError> {
        if let Some(device) = &self.device {
            set_device(fd, device)?;
        }
        if let (Some(mss), Some(Transport::Stream)) = (self.mss, address.transport()) {
            sys::set_option(fd, libc::IPPROTO_TCP, libc::TCP_MAXSEG, i32::from(mss))
                .map_err(|error| refused("mss", mss, &error))?;
        }
        Ok(())
    }

    /// Sets the marks of the packets of a socket, which may be connected already.
    pub(crate) fn mark(&self, fd: BorrowedFd<'_>, address: &Address) -> Result<(), PathError> {
        let Some(ip) = address.ip() else { return Ok(()) };
        let is_datagram = address.transport() == Some(Transport::Datagram);
        let set = |level, name, value: u8| sys::set_option(fd, level, name, i32::from(value));
        if let Some(dscp) = self.dscp {
            let class = dscp.0 << 2;
            // A socket of IPv6 may have peers of IPv4, too.
            let mut outcome = set(libc::IPPROTO_IP, libc::IP_TOS, class);
            if !ip.is_ipv4() {
                outcome = outcome.and_then(|()| set(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, class));
            }
            outcome.map_err(|error| refused("dscp", dscp, &error))?;
        }
        if let Some(ttl) = self.ttl {
            let mut outcome = set(libc::IPPROTO_IP, libc::IP_TTL, ttl);
            if is_datagram {
                outcome = outcome.and_then(|()| set(libc::IPPROTO_IP, libc::IP_MULTICAST_TTL, ttl));
            }
            if !ip.is_ipv4() {
                outcome = outcome.and_then(|()| set(libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS, ttl));
                if is_datagram {
                    outcome = outcome.and_then(|()| set(libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_HOPS, ttl));
                }
            }
            outcome.map_err(|error| refused("ttl", ttl, &error))?;
        }
        Ok(())
    }

    /// Binds a socket that is to connect to the local address, if one is chosen.
    pub(crate) fn bind(&self, fd: BorrowedFd<'_>, address: &Address) -> Result<(), PathError> {
        let (Some(local), Some(transport)) = (&self.local, address.transport()) else { return Ok(()) };
        local.bind_at(local.next()?, fd, transport)
    }
}

fn set_device(fd: BorrowedFd<'_>, device: &str) -> Result<(), PathError> {
    let missing = || PathError::NoDevice { device: device.to_owned() };
    if device.is_empty() || device.len() > DEVICE_MAX {
        return Err(missing());
    }
    sys::set_text(fd, libc::SOL_SOCKET, libc::SO_BINDTODEVICE, device).map_err(|error| match error.raw_os_error() {
        Some(libc::ENODEV) => missing(),
        Some(libc::EPERM | libc::EACCES) => PathError::DeviceDenied { device: device.to_owned() },
        _ => refused("device", device, &error),
    })
}

fn refused(option: &'static str, value: impl fmt::Display, error: &io::Error) -> PathError {
    PathError::Refused { option, value: value.to_string(), errno: error.raw_os_error().unwrap_or(0) }
}

/// The address of this end of sockets that connect. Where it has a port, each socket has one of its own: this is the first of them.
#[derive(Debug, Clone)]
pub struct LocalAddress {
    address: SocketAddr,
    /// The sockets that share the range of ports.
    sockets: u32,
    /// The number of ports that were taken, by all threads of a link.
    taken: Arc<AtomicU32>,
}

impl LocalAddress {
    /// Creates the address of one socket; port 0 is any free one.
    #[must_use]
    pub fn new(address: SocketAddr) -> LocalAddress {
        LocalAddress { address, sockets: 1, taken: Arc::default() }
    }

    /// Returns the address, with the first port or 0.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns whether ports are chosen, too.
    #[must_use]
    pub const fn has_port(&self) -> bool {
        self.address.port() != 0
    }

    /// Returns the address of which no port has been taken.
    fn afresh(&self) -> LocalAddress {
        LocalAddress { taken: Arc::default(), ..self.clone() }
    }

    /// Returns the number of addresses to be bound.
    const fn ports(&self) -> u32 {
        if self.has_port() { self.sockets } else { 1 }
    }

    /// Returns the address of the socket with this number.
    fn port(&self, number: u32) -> Result<SocketAddr, PathError> {
        let first = self.address.port();
        let port = u32::from(first) + if self.has_port() { number } else { 0 };
        let port = u16::try_from(port).map_err(|_| PathError::PortsEnd { first, sockets: self.sockets })?;
        let mut address = self.address;
        address.set_port(port);
        Ok(address)
    }

    /// Returns the address of the next socket: the first one again behind the last.
    fn next(&self) -> Result<SocketAddr, PathError> {
        self.port(self.taken.fetch_add(1, Ordering::Relaxed) % self.sockets)
    }

    fn bind_at(&self, address: SocketAddr, fd: BorrowedFd<'_>, transport: Transport) -> Result<(), PathError> {
        if transport == Transport::Stream {
            // Both are for many connections: the port of a finished one can be taken, and any port is chosen for the far end's address.
            let _ = sys::set_option(fd, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1);
            if !self.has_port() {
                let _ = sys::set_option(fd, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1);
            }
        }
        sys::bind(fd, &RawAddress::ip(address)).map_err(|error| match error.kind() {
            ErrorKind::AddrInUse => PathError::InUse { address },
            ErrorKind::AddrNotAvailable => PathError::NotHere { ip: address.ip() },
            ErrorKind::PermissionDenied => PathError::PortDenied { port: address.port() },
            _ => refused("bind", address, &error),
        })
    }
}

impl PartialEq for LocalAddress {
    fn eq(&self, other: &Self) -> bool {
        (self.address, self.sockets) == (other.address, other.sockets)
    }
}

impl Eq for LocalAddress {}

impl FromStr for LocalAddress {
    type Err = String;

    /// Parses an address or a name, and perhaps a port behind a colon; an address of IPv6 with a port has brackets.
    fn from_str(text: &str) -> Result<Self, String> {
        let address = match text.parse::<IpAddr>() {
            Ok(ip) => SocketAddr::new(ip, 0),
            Err(_) => resolve(text, 0).map_err(|error| {
                format!("`{text}` is not an address: {error}; write 192.0.2.1, 192.0.2.1:5000 or [::1]:5000")
            })?,
        };
        Ok(LocalAddress::new(address))
    }
}

impl fmt::Display for LocalAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.has_port() { self.address.fmt(f) } else { self.address.ip().fmt(f) }
    }
}

/// A code point of differentiated services (RFC 2474): the upper six bits of IPv4's TOS and of IPv6's traffic class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dscp(u8);

impl Dscp {
    /// Returns the code point with this number, of 0 to 63.
    #[must_use]
    pub const fn new(code: u8) -> Option<Dscp> {
        if code < 64 { Some(Dscp(code)) } else { None }
    }

    /// Returns the number.
    #[must_use]
    pub const fn code(self) -> u8 {
        self.0
    }

    /// Returns the code point of a name such as `ef`, `af41` or `cs6`.
    fn named(name: &str) -> Option<Dscp> {
        let name = name.to_ascii_lowercase();
        let digits = |prefix: &str| name.strip_prefix(prefix).map(str::as_bytes);
        match (digits("cs"), digits("af")) {
            (Some([class @ b'0'..=b'7']), _) => Some(Dscp((class - b'0') << 3)),
            (_, Some([class @ b'1'..=b'4', drop @ b'1'..=b'3'])) => {
                Some(Dscp(((class - b'0') << 3) | ((drop - b'0') << 1)))
            }
            _ => NAMED.iter().find(|(known, _)| *known == name).map(|(_, code)| Dscp(*code)),
        }
    }
}

impl FromStr for Dscp {
    type Err = String;

    /// Parses a number or a name.
    fn from_str(text: &str) -> Result<Self, String> {
        let number = || text.parse().ok().and_then(Dscp::new);
        number().or_else(|| Dscp::named(text)).ok_or_else(|| {
            format!("`{text}` is no code point: write 0..63, ef, le, cs0..cs7, or af11..af43 (class 1..4, drop precedence 1..3)")
        })
    }
}

impl fmt::Display for Dscp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Why sockets cannot have an option of [`PathOptions`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PathError {
    /// No interface has this name.
    #[error("no interface of this host has this name; `ip link` lists them")]
    NoDevice {
        /// The name.
        device: String,
    },
    /// The process may not choose the interface.
    #[error("this process may not choose the interface; run as root, or with the capability CAP_NET_RAW")]
    DeviceDenied {
        /// The name of the interface.
        device: String,
    },
    /// The address is not this host's.
    #[error("this host does not have the address {ip}; `ip address` lists those that it has")]
    NotHere {
        /// The address.
        ip: IpAddr,
    },
    /// Another socket has the port.
    #[error("{address} is in use; choose another port, or none for any free one")]
    InUse {
        /// The address and port.
        address: SocketAddr,
    },
    /// The process may not take the port.
    #[error("this process may not take port {port}; choose one of 1024 or more, or run as root")]
    PortDenied {
        /// The port.
        port: u16,
    },
    /// There are fewer ports than sockets.
    #[error(
        "{sockets} channels need ports from {first} on, and the last one is 65535; choose a lower port, or fewer channels"
    )]
    PortsEnd {
        /// The first port.
        first: u16,
        /// The sockets.
        sockets: u32,
    },
    /// The operating system refuses an option.
    #[error("this system refuses it: {}", io::Error::from_raw_os_error(*.errno))]
    Refused {
        /// The option.
        option: &'static str,
        /// The value.
        value: String,
        /// The system's error number.
        errno: i32,
    },
}

impl PathError {
    /// Returns the option that cannot be had, and its value, as they are written on a command line.
    #[must_use]
    pub fn culprit(&self) -> (&'static str, String) {
        match self {
            PathError::NoDevice { device } | PathError::DeviceDenied { device } => ("device", device.clone()),
            PathError::NotHere { ip } => ("bind", ip.to_string()),
            PathError::InUse { address } => ("bind", address.to_string()),
            PathError::PortDenied { port } => ("bind", format!("…:{port}")),
            PathError::PortsEnd { first, .. } => ("bind", format!("…:{first}")),
            PathError::Refused { option, value, .. } => (option, value.clone()),
        }
    }
}

impl From<PathError> for io::Error {
    fn from(error: PathError) -> Self {
        let kind = match error {
            PathError::NoDevice { .. } | PathError::NotHere { .. } => ErrorKind::AddrNotAvailable,
            PathError::InUse { .. } => ErrorKind::AddrInUse,
            PathError::DeviceDenied { .. } | PathError::PortDenied { .. } => ErrorKind::PermissionDenied,
            PathError::PortsEnd { .. } | PathError::Refused { .. } => ErrorKind::InvalidInput,
        };
        io::Error::new(kind, error)
    }
}
