use crate::sys;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, ToSocketAddrs, UdpSocket};
use std::os::fd::AsFd;

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

/// Returns all addresses of this host if an authority names them, as `:4242`, `*:4242` or `*`: those of IPv6 and of IPv4, as far as one socket
/// takes both, unless a version of IP is chosen.
#[must_use]
pub fn every_address(authority: &str, default_port: u16, version: Option<IpVersion>) -> Option<SocketAddr> {
    let port = match authority.strip_prefix('*').unwrap_or(authority) {
        "" if authority == "*" => default_port,
        behind => behind.strip_prefix(':')?.parse().ok()?,
    };
    let is_ipv4 = version.map_or_else(|| !takes_both_versions(), |version| version == IpVersion::V4);
    Some(any_address(is_ipv4, port))
}

/// Returns whether a socket at all addresses of IPv6 is reached over IPv4, too.
fn takes_both_versions() -> bool {
    let option = |socket: UdpSocket| sys::option(socket.as_fd(), libc::IPPROTO_IPV6, libc::IPV6_V6ONLY);
    UdpSocket::bind(any_address(false, 0)).and_then(option).is_ok_and(|only_ipv6| only_ipv6 == 0)
}

/// Returns where to listen: `host:port`, or all addresses of this host as `:port` or `*:port`.
///
/// # Errors
/// Returns the errors of [`resolve`], and `InvalidInput` if there is no port.
pub fn listen_address(text: &str) -> io::Result<SocketAddr> {
    match every_address(text, 0, None).filter(|_| text != "*") {
        Some(everywhere) => Ok(everywhere),
        None => host_and_port(text),
    }
}

/// Returns the address of `host:port`.
///
/// # Errors
/// Returns the errors of [`resolve`], and `InvalidInput` if there is no port.
pub fn host_and_port(text: &str) -> io::Result<SocketAddr> {
    let address = resolve(text, 0)?;
    if address.port() == 0 && !text.ends_with(":0") {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("`{text}` has no port; write {text}:PORT")));
    }
    Ok(address)
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
/// Returns `InvalidInput` for a port out of range, for a host that is a number or is not there, and for an address of a link without its
/// interface, `NotFound` for a name without an address, and otherwise the resolver's error.
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
    if matches!(host, "" | "*") {
        return invalid(format!("it names no host; write HOST{}", authority.trim_start_matches('*')));
    }
    if let (Ok(_), Ok(_), Some(port)) = (host.parse::<Ipv6Addr>(), authority.parse::<Ipv6Addr>(), port) {
        return invalid(format!(
            "`{port}` may be a port or the end of the address; write [{host}]:{port} or [{authority}]"
        ));
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
    match found.first().copied() {
        Some(SocketAddr::V6(address)) if lacks_interface(&address) => {
            let (host, behind) = authority.split_once(']').unwrap_or((authority, ""));
            let host = host.trim_start_matches('[');
            invalid(format!("a link-local address needs its interface; write it as [{host}%eth0]{behind}"))
        }
        Some(address) => Ok(address),
        None => Err(io::Error::new(io::ErrorKind::NotFound, format!("`{authority}` has no {kind}"))),
    }
}

/// Returns `host:port` of a host, or of a host and its port.
#[must_use]
pub fn with_port(authority: &str, default_port: u16) -> String {
    let behind = authority.rsplit_once(']').map_or(authority, |(_, behind)| behind);
    if behind.contains(':') { authority.to_owned() } else { format!("{authority}:{default_port}") }
}

/// Returns the port of an authority whose host is one of loopback.
#[must_use]
pub fn port_of_loopback(authority: &str) -> Option<&str> {
    let (host, port) = authority.rsplit_once(':')?;
    let ip = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    (host == "localhost" || ip.is_ok_and(|ip| ip.to_canonical().is_loopback())).then_some(port)
}

/// Returns whether this is an address of a link (RFC 4291, 2.5.6) that does not tell of which.
fn lacks_interface(address: &SocketAddrV6) -> bool {
    address.ip().is_unicast_link_local() && address.scope_id() == 0
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
        for (given, named) in [("a", "a:9"), ("a:7", "a:7"), ("[::1]", "[::1]:9"), ("[::1]:7", "[::1]:7")] {
            assert_eq!(with_port(given, 9), named);
        }
    }

    #[test]
    fn loopback_is_known_by_its_address() {
        for here in ["127.0.0.1:7", "127.9.9.9:7", "[::1]:7", "[::ffff:127.0.0.1]:7", "localhost:7"] {
            assert_eq!(port_of_loopback(here), Some("7"), "{here}");
        }
        for elsewhere in ["127.example.org:7", "10.0.0.1:7", "[::]:7", "0.0.0.0:7", "[fe80::1%1]:7", "/a/path", ""] {
            assert_eq!(port_of_loopback(elsewhere), None, "{elsewhere}");
        }
    }

    #[test]
    fn what_an_address_lacks_is_asked_for() {
        for (wrong, asked) in [
            (":7", "it names no host; write HOST:7"),
            ("*:7", "write HOST:7"),
            ("*", "write HOST"),
            ("", "names no host"),
            ("[fe80::1]:7", "write it as [fe80::1%eth0]:7"),
            ("fe80::1", "write it as [fe80::1%eth0]"),
            ("2001:db8::1:4242", "write [2001:db8::1]:4242 or [2001:db8::1:4242]"),
        ] {
            let said = resolve(wrong, 9).unwrap_err().to_string();
            assert!(said.contains(asked), "{wrong}: {said}");
        }
        assert_eq!(resolve("2001:db8::1", 9).unwrap().to_string(), "[2001:db8::1]:9");
    }

    #[test]
    fn all_addresses_have_short_names() {
        let of = |authority, version| every_address(authority, 9, version).map(|address| address.to_string());
        for (version, ip) in [(IpVersion::V4, "0.0.0.0"), (IpVersion::V6, "[::]")] {
            assert_eq!(of(":7", Some(version)), Some(format!("{ip}:7")));
            assert_eq!(of("*:7", Some(version)), Some(format!("{ip}:7")));
            assert_eq!(of("*", Some(version)), Some(format!("{ip}:9")));
        }
        for named in ["", ":", "*:", "**", "*:x", ":99999", "0.0.0.0:7", "[::]:7", "host:7", "*.example.org:7"] {
            assert_eq!(of(named, None), None, "{named}");
        }
        assert_eq!(listen_address("127.0.0.1:9").unwrap().to_string(), "127.0.0.1:9");
        for wrong in ["*", "127.0.0.1", "[::1]", ":x"] {
            assert!(listen_address(wrong).is_err(), "{wrong}");
        }
        assert!(host_and_port("[::1]").unwrap_err().to_string().contains("write [::1]:PORT"));
        assert!(host_and_port(":7").is_err());
        let served = UdpSocket::bind(listen_address("*:0").unwrap()).unwrap();
        let at = served.local_addr().unwrap();
        assert!(at.ip().is_unspecified());
        for host in ["127.0.0.1", "[::1]"].into_iter().filter(|_| at.is_ipv6()) {
            let Ok(client) = UdpSocket::bind(format!("{host}:0")) else { continue };
            client.send_to(b"x", format!("{host}:{}", at.port())).unwrap();
            assert_eq!(served.recv(&mut [0; 2]).unwrap(), 1);
        }
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
