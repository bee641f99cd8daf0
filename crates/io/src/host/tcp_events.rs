//! Counters of TCP on all connections of this network namespace (`/proc/net/snmp`, `/proc/net/netstat`).

use std::fs;

/// Counters of TCP since the network namespace was made, over all its connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TcpEvents {
    /// The number of segments sent again (`RetransSegs`, RFC 4022).
    pub retransmitted: u64,
    /// The number of retransmission timeouts (`TCPTimeouts`).
    pub timeouts: u64,
}

impl TcpEvents {
    /// Reads the counters; `None` if the kernel does not report them.
    #[must_use]
    pub fn until_now() -> Option<TcpEvents> {
        let field = |file: &str, group: &str, name: &str| field(&fs::read_to_string(file).ok()?, group, name);
        Some(TcpEvents {
            retransmitted: field("/proc/net/snmp", "Tcp:", "RetransSegs")?,
            timeouts: field("/proc/net/netstat", "TcpExt:", "TCPTimeouts")?,
        })
    }
}

/// Returns a field of a group, which has a line of names and then one of values.
fn field(text: &str, group: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter(|line| line.starts_with(group));
    let (names, values) = (lines.next()?, lines.next()?);
    let place = names.split_ascii_whitespace().position(|other| other == name)?;
    values.split_ascii_whitespace().nth(place)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of Linux 6.18, shortened; some values of other fields are negative.
    #[test]
    fn a_field_stands_under_its_name() {
        let text = "Ip: Forwarding DefaultTTL\nIp: 1 64\n\
                    Tcp: RtoAlgorithm MaxConn InSegs RetransSegs\nTcp: 1 -1 7300 42\nUdp: InDatagrams\nUdp: 9\n";
        assert_eq!(field(text, "Tcp:", "RetransSegs"), Some(42));
        assert_eq!(field(text, "Tcp:", "OutSegs"), None);
        assert_eq!(field(text, "TcpExt:", "TCPTimeouts"), None);
        assert!(TcpEvents::until_now().is_some(), "Linux has both files");
    }
}
