//! The largest packet that a path takes: as the kernel knows it, and by packets that come back.

mod echo;
mod handshake;

pub use echo::{PathProbe, probe_path};
pub use handshake::{TcpPath, tcp_path};

use crate::connect::socket_for;
use crate::sys;
use hodo_machine::Address;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

/// Returns the bytes of the largest IP packet that the first hop from `local` to `remote` takes, or that the kernel knows the
/// path to take.
///
/// # Errors
/// Returns the operating system's error if there is no way there.
pub fn path_mtu(local: SocketAddr, remote: SocketAddr) -> io::Result<u32> {
    let (fd, to) = socket_for(&Address::Udp(remote), libc::SOCK_DGRAM)?;
    let (_, from) = socket_for(&Address::Udp(SocketAddr::new(local.ip(), 0)), libc::SOCK_DGRAM)?;
    sys::bind(fd.as_fd(), &from)?;
    sys::connect(fd.as_fd(), &to)?;
    let (level, name) = match remote {
        SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_MTU),
        SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_MTU),
    };
    sys::option(fd.as_fd(), level, name).map(|mtu| mtu as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_takes_large_packets() {
        let here = SocketAddr::from(([127, 0, 0, 1], 4791));
        assert!(path_mtu(here, here).unwrap() >= 1500);
    }
}
