//! The counters that the kernel's TCP keeps of connections: `TCP_INFO` (tcp(7); `struct tcp_info` in linux/tcp.h).
//!
//! | bytes | field | since Linux |
//! |---|---|---|
//! | 7 | bit 0: the last rate was limited by the application | 4.9 |
//! | 68..72 | smoothed round-trip in microseconds | 2.4 |
//! | 80..84 | congestion window in segments | 2.4 |
//! | 100..104 | segments sent again | 2.4 |
//! | 148..152 | shortest round-trip in microseconds; all ones: not known | 4.6 |
//! | 156..160 | segments with data sent | 4.6 |
//! | 168..176 | microseconds with data on its way | 4.10 |
//! | 176..184 | of those, held back by the peer's receive window | 4.10 |
//! | 184..192 | of those, held back by a full send buffer | 4.10 |
//! | 216..220 | segments sent again in vain, as the peer said (DSACK) | 4.19 |
//! | 224..228 | packets received out of order | 5.4 |
//! | 240..242 | retransmission timeouts | 6.7 |

use crate::sys;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// Counters of one TCP connection or of several, since they were opened. Sums and the shortest round-trip hold closed
/// connections too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TcpCounters {
    /// The number of open connections.
    pub connections: u32,
    /// The number of segments sent again.
    pub retransmitted: u64,
    /// The number of those that had arrived already: the peer said so (DSACK, RFC 2883).
    pub spurious: u64,
    /// The time with data on its way, summed over connections.
    pub busy: Duration,
    /// The time in which the peer's receive window held data back.
    pub receive_window_limited: Duration,
    /// The time in which a full send buffer held data back.
    pub send_buffer_limited: Duration,
    /// The number of open connections whose last rate was limited by the application.
    pub application_limited: u32,
    /// The shortest round-trip of any connection.
    pub min_rtt: Option<Duration>,
    /// The longest smoothed round-trip of any open connection, as it is now.
    pub rtt: Option<Duration>,
    /// The congestion windows in segments, summed over open connections.
    pub congestion_window: u64,
    /// The sizes of the send buffers in bytes, as the kernel has them now, summed over open connections.
    pub send_buffer: u64,
    /// The number of segments with data sent, those sent again included.
    pub segments: u64,
    /// The number of packets received out of order: others were lost on their way here, or overtaken.
    pub out_of_order: u64,
    /// The number of retransmission timeouts.
    pub timeouts: u64,
}

impl TcpCounters {
    /// Reads the counters of a connection; `None` if it is not TCP.
    pub(crate) fn of(fd: BorrowedFd<'_>) -> Option<TcpCounters> {
        let mut bytes = [0; 256];
        let length = sys::tcp_info(fd, &mut bytes).ok()?;
        let send_buffer = sys::option(fd, libc::SOL_SOCKET, libc::SO_SNDBUF).unwrap_or(0) as u64;
        Some(TcpCounters { send_buffer, ..parse(&bytes[..length.min(256)]) })
    }

    /// Returns what stays of these connections after they are closed: the sums, and the shortest round-trip.
    pub(crate) fn of_closed(self) -> TcpCounters {
        TcpCounters { connections: 0, application_limited: 0, rtt: None, congestion_window: 0, send_buffer: 0, ..self }
    }

    /// Returns the counters of these connections and of others together: sums, and the shorter round-trip.
    #[must_use]
    pub fn and(self, other: TcpCounters) -> TcpCounters {
        TcpCounters {
            connections: self.connections + other.connections,
            retransmitted: self.retransmitted + other.retransmitted,
            spurious: self.spurious + other.spurious,
            busy: self.busy + other.busy,
            receive_window_limited: self.receive_window_limited + other.receive_window_limited,
            send_buffer_limited: self.send_buffer_limited + other.send_buffer_limited,
            application_limited: self.application_limited + other.application_limited,
            min_rtt: self.min_rtt.into_iter().chain(other.min_rtt).min(),
            rtt: self.rtt.max(other.rtt),
            congestion_window: self.congestion_window + other.congestion_window,
            send_buffer: self.send_buffer + other.send_buffer,
            segments: self.segments + other.segments,
            out_of_order: self.out_of_order + other.out_of_order,
            timeouts: self.timeouts + other.timeouts,
        }
    }
}

/// Parses the counters. Fields that an older kernel does not have are 0.
fn parse(bytes: &[u8]) -> TcpCounters {
    let u32_at =
        |at: usize| bytes.get(at..at + 4).map_or(0, |field| u32::from_ne_bytes(field.try_into().expect("four bytes")));
    let micros_at = |at: usize| {
        let field = bytes.get(at..at + 8).map_or(0, |field| u64::from_ne_bytes(field.try_into().expect("eight bytes")));
        Duration::from_micros(field)
    };
    let (min_rtt, rtt) = (u32_at(148), u32_at(68));
    let timeouts = bytes.get(240..242).map_or(0, |field| u16::from_ne_bytes([field[0], field[1]]));
    TcpCounters {
        connections: 1,
        retransmitted: u32_at(100).into(),
        spurious: u32_at(216).into(),
        busy: micros_at(168),
        receive_window_limited: micros_at(176),
        send_buffer_limited: micros_at(184),
        application_limited: u32::from(bytes.get(7).copied().unwrap_or(0) & 1),
        min_rtt: (min_rtt != 0 && min_rtt != u32::MAX).then(|| Duration::from_micros(min_rtt.into())),
        rtt: (rtt != 0).then(|| Duration::from_micros(rtt.into())),
        congestion_window: u32_at(80).into(),
        send_buffer: 0,
        segments: u32_at(156).into(),
        out_of_order: u32_at(224).into(),
        timeouts: timeouts.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_connection_that_has_sent_knows_its_round_trip() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let mut near = TcpStream::connect(listener.local_addr().expect("an address")).expect("it listens");
        let (mut far, _) = listener.accept().expect("it has connected");
        for _ in 0..3 {
            near.write_all(b"there").expect("it is open");
            let mut came = [0; 5];
            far.read_exact(&mut came).expect("it was sent");
            far.write_all(&came).expect("it is open");
            near.read_exact(&mut came).expect("it was sent");
        }
        let counters = TcpCounters::of(near.as_fd()).expect("it is TCP");
        assert_eq!((counters.connections, counters.retransmitted), (1, 0));
        assert!(counters.min_rtt.is_some_and(|rtt| rtt < Duration::from_secs(1)), "{counters:?}");
        let both = counters.and(counters);
        assert_eq!((both.connections, both.min_rtt), (2, counters.min_rtt));
    }

    #[test]
    fn a_unix_socket_has_no_counters() {
        let (near, _far) = UnixStream::pair().expect("a pair");
        assert_eq!(TcpCounters::of(near.as_fd()), None);
    }

    #[test]
    fn fields_that_a_kernel_does_not_have_are_zero() {
        let mut bytes = [0; 104];
        (bytes[7], bytes[100]) = (3, 9);
        let counters = parse(&bytes);
        assert_eq!((counters.application_limited, counters.retransmitted, counters.min_rtt), (1, 9, None));
        assert_eq!(parse(&[]), TcpCounters { connections: 1, ..TcpCounters::default() });
    }
}
