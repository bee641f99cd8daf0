//! The user whose a socket of this host is.

use crate::files;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Bytes of the kernel's table of sockets that are read, at most.
const TABLE_MAX: u64 = 64 << 20;
/// The state of a socket that listens.
const LISTENS: &str = "0A";

/// Returns the id of the user whose process listens at an address of this host; `None` if none does, or the system does not say.
#[must_use]
pub fn listening_user(address: SocketAddr) -> Option<u32> {
    let entry = find(["/proc/net/tcp", "/proc/net/tcp6"], address, |entry| entry.state == LISTENS);
    entry.map(|entry| entry.user)
}

/// The owner of a UDP socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatagramOwner {
    /// The kernel itself.
    Kernel,
    /// A process of the user with this id.
    User(u32),
}

/// Returns whose UDP socket is bound to an address of this host; `None` if none is, or the system does not say.
#[must_use]
pub fn datagram_owner(address: SocketAddr) -> Option<DatagramOwner> {
    let entry = find(["/proc/net/udp", "/proc/net/udp6"], address, |_| true)?;
    // A socket of the kernel has no file.
    Some(if entry.file == 0 { DatagramOwner::Kernel } else { DatagramOwner::User(entry.user) })
}

/// Returns the entry of one of these tables that receives what is sent to an address.
fn find(tables: [&str; 2], address: SocketAddr, is_one: impl Fn(&Entry<'_>) -> bool) -> Option<Owner> {
    let table = |name: &str| {
        let bytes = files::read(Path::new(name), TABLE_MAX).unwrap_or_default();
        String::from_utf8(bytes).unwrap_or_default()
    };
    let tables = tables.map(table);
    let all = || tables.iter().flat_map(|table| table.lines().filter_map(entry)).filter(&is_one);
    let (ip, port) = (address.ip().to_canonical(), address.port());
    let found = |is_it: &dyn Fn(IpAddr) -> bool| {
        all().find(|entry| entry.at.port() == port && is_it(entry.at.ip().to_canonical()))
    };
    // One of this very address receives before one of all addresses does.
    let entry = found(&|at| at == ip).or_else(|| found(&|at| at.is_unspecified()))?;
    Some(Owner { user: entry.user, file: entry.file })
}

/// Returns the number of the network that this process is in: addresses mean the same to two processes if they are in the same one.
#[must_use]
pub fn network_number() -> Option<u64> {
    std::fs::metadata("/proc/self/ns/net").ok().map(|found| found.ino())
}

/// The owner of a socket, as the table has it.
struct Owner {
    user: u32,
    /// The number of the socket's file.
    file: u64,
}

/// A line of the table.
struct Entry<'a> {
    at: SocketAddr,
    state: &'a str,
    user: u32,
    file: u64,
}

/// Parses a line of the table.
fn entry(line: &str) -> Option<Entry<'_>> {
    let mut words = line.split_ascii_whitespace().skip(1);
    let (at, state) = (words.next()?, words.nth(1)?);
    let user = words.nth(3)?.parse().ok()?;
    let file = words.nth(1)?.parse().ok()?;
    let (ip, port) = at.split_once(':')?;
    let word = |at: usize| ip.get(8 * at..8 * at + 8).and_then(|word| u32::from_str_radix(word, 16).ok());
    // Each word is in this host's order of bytes.
    let ip = if ip.len() == 8 {
        IpAddr::from(Ipv4Addr::from(word(0)?.to_ne_bytes()))
    } else {
        let bytes: Vec<u8> =
            [word(0)?, word(1)?, word(2)?, word(3)?].iter().flat_map(|word| word.to_ne_bytes()).collect();
        IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?))
    };
    Some(Entry { at: SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?), state, user, file })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, UdpSocket};

    #[test]
    fn the_user_of_a_listener_is_known() {
        for (at, asked) in
            [("127.0.0.1:0", "127.0.0.1"), ("0.0.0.0:0", "127.0.0.1"), ("[::]:0", "::1"), ("[::1]:0", "::1")]
        {
            // Without version 6 there is nothing to find.
            let Ok(listener) = TcpListener::bind(at) else { continue };
            let port = listener.local_addr().expect("it is bound").port();
            let address = SocketAddr::new(asked.parse().expect("an address"), port);
            assert_eq!(listening_user(address), Some(crate::process::user()), "{at}");
            drop(listener);
            assert_eq!(listening_user(address), None, "{at}");
        }
    }

    #[test]
    fn the_owner_of_a_datagram_socket_is_known() {
        for (at, queried) in [("127.0.0.1:0", "127.0.0.1"), ("0.0.0.0:0", "127.0.0.1"), ("[::1]:0", "::1")] {
            let Ok(socket) = UdpSocket::bind(at) else { continue };
            let port = socket.local_addr().expect("it is bound").port();
            let address = SocketAddr::new(queried.parse().expect("an address"), port);
            assert_eq!(datagram_owner(address), Some(DatagramOwner::User(crate::process::user())), "{at}");
            drop(socket);
            assert_eq!(datagram_owner(address), None, "{at}");
        }
    }
}
