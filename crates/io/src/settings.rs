use crate::PathOptions;
use std::net::SocketAddr;
use std::time::Duration;

/// The default of bytes received at once: eight 32 KiB messages with their headers, which still fit in a core's
/// second-level cache.
const AT_ONCE: usize = 260 << 10;

/// The settings of every socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocketSettings {
    /// The TCP congestion control; `None` leaves the system's.
    pub congestion: Option<String>,
    /// The marks of the packets, and the way on which they leave.
    pub path: PathOptions,
    /// The size of the send and the receive buffer in bytes; `None` leaves the system's for streams, and requests 4 MiB
    /// for datagrams.
    pub socket_buffer: Option<usize>,
    /// The bytes that may wait in user space for one peer before its machine is notified to hold back.
    pub backlog_max: usize,
    /// The bytes that are kept for all peers together until they take them. With more, the peer for which the most are kept is
    /// closed. Segments that the machine shares are not counted.
    pub backlogs_max: usize,
    /// The number of peers that may be open at once; one more is refused.
    pub peers_max: usize,
    /// The bytes that are received from a stream at once, if its machine offers no place for them.
    pub at_once: usize,
    /// The bytes that are received from the only peer, as long as whole buffers come, before its machine is polled:
    /// with small buffers, which stay in the cache, it then still answers many messages together.
    pub together: usize,
    /// The time for which a closed stream may leave bytes untaken that were sent to it before; then it is cut. A stream
    /// that is never read would otherwise be kept for ever.
    pub close_within: Duration,
    /// The most bytes per second that the kernel sends over a TCP stream; `None` for as fast as it goes. Datagrams would need a
    /// queue discipline that paces them, which few hosts have.
    pub pace: Option<u64>,
    /// Whether streams are cut rather than closed in order, which leaves no TIME-WAIT state behind.
    pub cut_on_close: bool,
}

impl Default for SocketSettings {
    fn default() -> Self {
        SocketSettings {
            congestion: None,
            path: PathOptions::default(),
            socket_buffer: None,
            backlog_max: 256 << 10,
            backlogs_max: 128 << 20,
            peers_max: 16_384,
            at_once: AT_ONCE,
            together: AT_ONCE,
            close_within: Duration::from_secs(10),
            pace: None,
            cut_on_close: false,
        }
    }
}

/// The kernel's report of an open socket.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SocketFacts {
    /// The TCP congestion control in use.
    pub congestion: Option<String>,
    /// The bytes of payload in the largest TCP segment.
    pub mss: Option<u32>,
    /// The address at this end.
    pub local: Option<SocketAddr>,
    /// The address at the far end.
    pub remote: Option<SocketAddr>,
}
