use std::time::Duration;

/// Eight 32 KiB messages with their headers, and still in a core's second-level cache.
const AT_ONCE: usize = 260 << 10;

/// What is set on every socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocketSettings {
    /// TCP congestion control; `None` leaves the system's.
    pub congestion: Option<String>,
    /// Send and receive buffer in bytes; `None` leaves the system's for streams, and asks for 4 MiB for datagrams.
    pub socket_buffer: Option<usize>,
    /// Bytes that may wait in user space for one peer before its machine is told to hold back.
    pub backlog_max: usize,
    /// Peers that may be there at once; one more is refused.
    pub peers_max: usize,
    /// Bytes that are received from a stream at once, where its machine has no place for them.
    pub at_once: usize,
    /// As long as whole buffers come from the only peer, so many bytes are received before its machine is asked what to
    /// send: with small buffers, which stay in the cache, it then still answers many messages together.
    pub together: usize,
    /// How long a stream that is closed may leave untaken what was sent to it before; then it is cut. One that is never
    /// read would otherwise be kept for ever.
    pub close_within: Duration,
    /// Whether streams are cut rather than closed in order, which leaves no TIME-WAIT state behind.
    pub cut_on_close: bool,
}

impl Default for SocketSettings {
    fn default() -> Self {
        SocketSettings {
            congestion: None,
            socket_buffer: None,
            backlog_max: 256 << 10,
            peers_max: 16_384,
            at_once: AT_ONCE,
            together: AT_ONCE,
            close_within: Duration::from_secs(10),
            cut_on_close: false,
        }
    }
}
