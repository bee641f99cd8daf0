use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};

/// A version of the Internet Protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IpVersion {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl IpVersion {
    /// Returns the version of an address.
    #[must_use]
    pub const fn of(ip: IpAddr) -> IpVersion {
        if ip.is_ipv4() { IpVersion::V4 } else { IpVersion::V6 }
    }

    /// Returns the number of the version.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            IpVersion::V4 => 4,
            IpVersion::V6 => 6,
        }
    }
}

/// Returns all addresses of this host of one version of IP, with a port.
#[must_use]
pub fn any_address(is_ipv4: bool, port: u16) -> SocketAddr {
    let ip: IpAddr = if is_ipv4 { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    SocketAddr::new(ip, port)
}

/// Returns the address of this host that packets to `remote` carry, by the kernel's routes; nothing is sent. `None` if there is no route.
#[must_use]
pub fn source_towards(remote: SocketAddr) -> Option<IpAddr> {
    let socket = UdpSocket::bind(any_address(remote.is_ipv4(), 0)).ok()?;
    let mut target = remote;
    // The discard port if none is named, because connect needs one.
    target.set_port(if remote.port() == 0 { 9 } else { remote.port() });
    socket.connect(target).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

impl fmt::Display for IpVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IPv{}", self.number())
    }
}

/// Returns the address of `host:port`, or of `host` with a default port. A name with addresses of both versions yields
/// an IPv4 address. An address of a link has its interface behind a percent sign, by number or by name: `[fe80::1%eth0]:7`.
///
/// # Errors
/// Returns `InvalidInput` for a port out of range and for a host that is a number, `NotFound` for a name without an address, and
/// otherwise the resolver's error.
pub fn resolve(authority: &str, default_port: u16) -> io::Result<SocketAddr> {
    resolve_as(authority, default_port, None)
}

/// Returns the address as [`resolve`] does, of this version of IP if there is one.
///
/// # Errors
/// Returns the errors of [`resolve`], and `NotFound` for a name or address of the other version.
pub fn resolve_as(authority: &str, default_port: u16, version: Option<IpVersion>) -> io::Result<SocketAddr> {
    let invalid = |why: String| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (host, port) = authority.rsplit_once(':').map_or((authority, None), |(host, port)| (host, Some(port)));
    if let Some(port) = port.filter(|port| is_number(port) && port.parse::<u16>().is_err()) {
        return invalid(format!("`{port}` is not a port in 0..=65535"));
    }
    // The system's resolver would take 99999 for the address 0.1.134.159, and a port without its host likewise.
    if !host.is_empty() && is_number(host) {
        return invalid(format!(
            "`{host}` is a number and no host; write its name or address, and a port as HOST:PORT"
        ));
    }
    let mut found: Vec<SocketAddr> = match authority.to_socket_addrs() {
        Ok(found) => found.collect(),
        Err(_) => bracketed(authority, default_port).to_socket_addrs()?.collect(),
    };
    let is_of_version = |address: &SocketAddr| version.is_none_or(|version| IpVersion::of(address.ip()) == version);
    found.retain(is_of_version);
    found.sort_by_key(SocketAddr::is_ipv6);
    let kind = version.map_or_else(|| "address".to_owned(), |version| format!("{version} address"));
    found
        .first()
        .copied()
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("`{authority}` has no {kind}")))
}

/// Returns the host within brackets, and the port behind them if there is one: the standard library takes no name of an interface there.
fn bracketed(authority: &str, default_port: u16) -> (&str, u16) {
    let Some((host, behind)) = authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) else {
        return (authority, default_port);
    };
    match behind.strip_prefix(':').map(str::parse) {
        None if behind.is_empty() => (host, default_port),
        Some(Ok(port)) => (host, port),
        _ => (authority, default_port),
    }
}

/// Returns whether this is an address of this host.
#[must_use]
pub fn is_local(ip: IpAddr) -> bool {
    ip.is_loopback() || UdpSocket::bind((ip, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_local_and_an_address_for_documentation_is_not() {
        assert!(is_local([127, 0, 0, 1].into()) && !is_local([192, 0, 2, 1].into()));
    }

    #[test]
    fn takes_ports_and_brackets() {
        assert_eq!(resolve("127.0.0.1:7", 9).unwrap().to_string(), "127.0.0.1:7");
        assert_eq!(resolve("127.0.0.1", 9).unwrap().to_string(), "127.0.0.1:9");
        assert_eq!(resolve("[::1]:7", 9).unwrap().to_string(), "[::1]:7");
        assert_eq!(resolve("[::1]", 9).unwrap().to_string(), "[::1]:9");
        for with_interface in ["[fe80::1%lo]:7", "[fe80::1%1]:7"] {
            assert_eq!(resolve(with_interface, 9).unwrap().to_string(), "[fe80::1%1]:7");
        }
        assert_eq!(resolve("[fe80::1%lo]", 9).unwrap().to_string(), "[fe80::1%1]:9");
        for wrong in ["127.0.0.1:99999", "127.0.0.1:", "[::1]:99999"] {
            let said = resolve(wrong, 9).unwrap_err().to_string();
            assert!(said.contains("not a port in 0..=65535"), "{said}");
        }
        assert!(resolve("[::1]x", 9).is_err());
    }

    #[test]
    fn an_address_of_the_other_version_is_none() {
        assert_eq!(resolve_as("[::1]", 9, Some(IpVersion::V6)).unwrap().to_string(), "[::1]:9");
        assert_eq!(resolve_as("127.0.0.1", 9, Some(IpVersion::V4)).unwrap().to_string(), "127.0.0.1:9");
        for (authority, version) in [("127.0.0.1", IpVersion::V6), ("[::1]:7", IpVersion::V4)] {
            let error = resolve_as(authority, 9, Some(version)).unwrap_err().to_string();
            assert!(error.contains(&format!("has no {version} address")), "{error}");
        }
    }

    #[test]
    fn a_number_alone_is_no_host() {
        for wrong in ["99999", "10031", "99999:7", "0"] {
            let said = resolve(wrong, 9).unwrap_err().to_string();
            assert!(said.contains("a number and no host"), "{said}");
        }
    }
}
