use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The options of a link's sockets, as far as they were set, and the segments of its TCP.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Connection {
    /// The code point of differentiated services in each packet; absent where the system's was left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dscp: Option<u8>,
    /// The time to live of IPv4, or hop limit of IPv6, of each packet; absent where the system's was left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl: Option<u8>,
    /// The bytes of payload in the largest segment, as the kernel reports them of an open connection; absent without TCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mss: Option<u32>,
    /// The largest segment that was requested; absent where the system's was left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mss_asked: Option<u32>,
    /// The local address that was requested, with its first port if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bind: Option<String>,
    /// The interface that the sockets were bound to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// The version of IP that was requested, 4 or 6.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_version: Option<u8>,
}

impl Connection {
    /// Returns the part that makes two measurements ones of the same plan: everything that was requested except the local address, which
    /// is another one on each host.
    #[must_use]
    pub fn plan(&self) -> Connection {
        Connection { mss: None, bind: None, ..self.clone() }
    }

    /// Returns the requested options in a few words, as `DSCP 46, TTL 8`; `None` if none was requested.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        let words = [
            self.dscp.map(|dscp| format!("DSCP {dscp}")),
            self.ttl.map(|ttl| format!("TTL {ttl}")),
            self.mss_asked.map(|mss| format!("MSS {mss}")),
            self.device.as_ref().map(|device| format!("on {device}")),
            self.ip_version.map(|version| format!("IPv{version}")),
        ];
        let words: Vec<String> = words.into_iter().flatten().collect();
        (!words.is_empty()).then(|| words.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_requested_makes_the_plan() {
        let plain = Connection { mss: Some(1448), bind: Some("192.0.2.1".into()), ..Connection::default() };
        assert_eq!((plain.plan(), plain.text()), (Connection::default(), None));
        let marked = Connection { dscp: Some(46), mss_asked: Some(536), device: Some("eth0".into()), ..plain };
        assert_ne!(marked.plan(), Connection::default());
        assert_eq!(marked.text().as_deref(), Some("DSCP 46, MSS 536, on eth0"));
    }
}
