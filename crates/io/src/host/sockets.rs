//! The system's limits of socket buffers and its rules of congestion: `/proc/sys/net`, of this network namespace.

use super::line_of;

/// The limits of socket buffers in bytes. A limit that cannot be read is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SocketLimits {
    /// The largest receive buffer to which TCP grows by itself: the last of `net.ipv4.tcp_rmem`.
    pub tcp_receive: Option<u64>,
    /// The largest send buffer to which TCP grows by itself: the last of `net.ipv4.tcp_wmem`.
    pub tcp_send: Option<u64>,
    /// The largest receive buffer that a program may request: `net.core.rmem_max`.
    pub receive: Option<u64>,
    /// The largest send buffer that a program may request: `net.core.wmem_max`.
    pub send: Option<u64>,
}

impl SocketLimits {
    /// Reads the limits.
    #[must_use]
    pub fn read() -> SocketLimits {
        let last = |name: &str| line_of(&format!("/proc/sys/net/{name}"))?.split_whitespace().last()?.parse().ok();
        SocketLimits {
            tcp_receive: last("ipv4/tcp_rmem"),
            tcp_send: last("ipv4/tcp_wmem"),
            receive: last("core/rmem_max"),
            send: last("core/wmem_max"),
        }
    }
}

/// Returns whether TCP searches by itself for a packet size that passes where no router reports one (`net.ipv4.tcp_mtu_probing`).
#[must_use]
pub fn tcp_probes_mtu() -> Option<bool> {
    line_of("/proc/sys/net/ipv4/tcp_mtu_probing").map(|mode| mode != "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_linux_has_limits() {
        let limits = SocketLimits::read();
        assert!(limits.tcp_receive.is_some_and(|bytes| bytes > 0) && limits.tcp_send.is_some(), "{limits:?}");
        assert!(tcp_probes_mtu().is_some());
    }
}
