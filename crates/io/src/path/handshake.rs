//! The facts of a path that opening a TCP connection reveals (`struct tcp_info` in linux/tcp.h).
//!
//! | bytes | field |
//! |---|---|
//! | 16..20 | bytes of payload in a full segment that is sent |
//! | 60..64 | largest IP packet that the kernel believes the path to take |
//! | 68..72 | smoothed round-trip in microseconds |

use crate::netlink::u32_at;
use crate::sys;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

/// A path as a TCP connection finds it when it opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpPath {
    /// The round-trip of the handshake.
    pub round_trip: Duration,
    /// The bytes of payload in a full segment: the smaller of both ends' largest.
    pub segment: u32,
    /// The largest IP packet that the kernel believes the path to take.
    pub mtu: u32,
}

/// Opens a connection, sends nothing over it, and closes it.
///
/// # Errors
/// Returns the operating system's error if it cannot be opened within `patience`.
pub fn tcp_path(remote: SocketAddr, patience: Duration) -> io::Result<TcpPath> {
    let stream = TcpStream::connect_timeout(&remote, patience)?;
    let mut bytes = [0; 256];
    let length = sys::tcp_info(stream.as_fd(), &mut bytes)?;
    parse(&bytes[..length.min(256)]).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

fn parse(bytes: &[u8]) -> Option<TcpPath> {
    Some(TcpPath {
        round_trip: Duration::from_micros(u32_at(bytes, 68)?.into()),
        segment: u32_at(bytes, 16)?,
        mtu: u32_at(bytes, 60)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_handshake_measures_the_path() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let path = tcp_path(listener.local_addr().expect("it is bound"), Duration::from_secs(1)).expect("it listens");
        assert!(path.segment > 500 && path.mtu > path.segment, "{path:?}");
        assert_eq!(parse(&[0; 71]), None);
    }
}
