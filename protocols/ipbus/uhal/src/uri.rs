//! Where is a device, and how is it spoken to?
//!
//! ```text
//! ipbusudp-2.0://board:50001[?max_payload_size=bytes]     ipbusudp-1.3://…
//! ipbustcp-2.0://board:50001[?max_payload_size=bytes]     ipbustcp-1.3://…
//! chtcp-2.0://hub:10203?target=board:50001[&…]            chtcp-1.3://…
//! ```
//!
//! As in uHAL, spaces do not count, and over TCP what follows an unknown option is ignored. Beyond uHAL, which refuses it,
//! `ipbusudp-2.0://` takes `reliable=false`: packets without numbers, as uHAL sends them, so that the device has room for
//! another client whose packets have some.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::ops::RangeInclusive;
use core::str::FromStr;
use hodo_ipbus::wire::{DEVICE_PORT, Version};
use thiserror::Error;

/// The sizes of a packet's payload that can be asked for, in bytes: from a header and a few words to a whole datagram.
pub const PAYLOAD_BYTES: RangeInclusive<u32> = 64..=65_507;

/// Where a device is, and how it is spoken to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uri {
    /// The version of the protocol.
    pub version: Version,
    /// The way to the device.
    pub route: Route,
    /// The most bytes of a packet, where it says so.
    pub max_payload_bytes: Option<u32>,
    /// Whether packets over UDP have numbers, so that what is lost is recovered, where it says so.
    pub reliable: Option<bool>,
    /// Options that have no effect, as `name=value`.
    pub ignored: Vec<String>,
}

/// The way to a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// Datagrams to the device itself.
    Udp(Host),
    /// A stream to the device itself.
    Tcp(Host),
    /// A stream to a hub, and datagrams from there to the device.
    Hub {
        /// The hub.
        hub: Host,
        /// The device, as the hub reaches it.
        target: Host,
    },
}

/// A name or an address, and a port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Host {
    /// The name or address; an IPv6 address without its brackets.
    pub name: String,
    /// The port.
    pub port: u16,
}

/// Why a text is no URI of a device.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UriError {
    /// There is no `://`.
    #[error("`{uri}` is not the URI of a device; write it as `ipbusudp-2.0://board:{DEVICE_PORT}`")]
    NoScheme {
        /// The text.
        uri: String,
    },
    /// The scheme is none of the known ones.
    #[error("unknown scheme `{scheme}` in `{uri}`; the known ones are {}", known_schemes())]
    UnknownScheme {
        /// The text.
        uri: String,
        /// Scheme of the URI.
        scheme: String,
    },
    /// The scheme is of a device in the same computer.
    #[error(
        "`{scheme}` is of a device inside this computer, which is not supported here; boards are reached over the network, by ipbusudp, ipbustcp or chtcp"
    )]
    NotANetwork {
        /// The scheme.
        scheme: String,
    },
    /// A host without a name or port.
    #[error("`{host}` in `{uri}` is not a host and port; write them as `board:{DEVICE_PORT}`")]
    BadHost {
        /// The text.
        uri: String,
        /// The text in place of a host and a port.
        host: String,
    },
    /// A hub without a target.
    #[error("`{uri}` does not say which board is behind the hub; add `?{TARGET}=board:{DEVICE_PORT}`")]
    NoTarget {
        /// The text.
        uri: String,
    },
    /// An option without a value.
    #[error("option `{option}` in `{uri}` has no value; write {option}=…")]
    NoValue {
        /// The text.
        uri: String,
        /// The option.
        option: String,
    },
    /// An option that there is not, over UDP.
    #[error("unknown option `{option}` in `{uri}`; over UDP there is {PAYLOAD}, and in version 2.0 {RELIABLE}")]
    UnknownOption {
        /// The text.
        uri: String,
        /// The option.
        option: String,
    },
    /// Neither `true` nor `false`.
    #[error("{RELIABLE} in `{uri}` cannot be `{value}`: it is true or false")]
    BadReliable {
        /// The text.
        uri: String,
        /// The value.
        value: String,
    },
    /// A size that no packet has.
    #[error("{PAYLOAD} in `{uri}` cannot be `{value}`: it takes bytes from {} to {}", PAYLOAD_BYTES.start(), PAYLOAD_BYTES.end())]
    BadPayloadSize {
        /// The text.
        uri: String,
        /// The size.
        value: String,
    },
}

const SCHEMES: &[(&str, Version, Kind)] = &[
    ("ipbusudp-2.0", Version::V2_0, Kind::Udp),
    ("ipbustcp-2.0", Version::V2_0, Kind::Tcp),
    ("chtcp-2.0", Version::V2_0, Kind::Hub),
    ("ipbusudp-1.3", Version::V1_3, Kind::Udp),
    ("ipbustcp-1.3", Version::V1_3, Kind::Tcp),
    ("chtcp-1.3", Version::V1_3, Kind::Hub),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Udp,
    Tcp,
    Hub,
}

const PAYLOAD: &str = "max_payload_size";
const TARGET: &str = "target";
const RELIABLE: &str = "reliable";

impl FromStr for Uri {
    type Err = UriError;

    fn from_str(text: &str) -> Result<Self, UriError> {
        let uri: String = text.split_ascii_whitespace().collect();
        let (scheme, rest) = uri.split_once("://").ok_or_else(|| UriError::NoScheme { uri: uri.clone() })?;
        if ["ipbuspcie-2.0", "ipbusmmap-2.0"].contains(&scheme) {
            return Err(UriError::NotANetwork { scheme: scheme.to_owned() });
        }
        let (_, version, kind) = *SCHEMES
            .iter()
            .find(|(known, ..)| *known == scheme)
            .ok_or_else(|| UriError::UnknownScheme { uri: uri.clone(), scheme: scheme.to_owned() })?;
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let near = Host::parse(place, &uri)?;
        let mut options = Options::default();
        for option in query.split('&').filter(|option| !option.is_empty()) {
            options.take(option, version, kind, &uri)?;
        }
        let route = match kind {
            Kind::Udp => Route::Udp(near),
            Kind::Tcp => Route::Tcp(near),
            Kind::Hub => {
                let target = options.target.ok_or_else(|| UriError::NoTarget { uri: uri.clone() })?;
                Route::Hub { hub: near, target }
            }
        };
        let Options { max_payload_bytes, reliable, ignored, .. } = options;
        Ok(Uri { version, route, max_payload_bytes, reliable, ignored })
    }
}

#[derive(Default)]
struct Options {
    target: Option<Host>,
    max_payload_bytes: Option<u32>,
    reliable: Option<bool>,
    ignored: Vec<String>,
}

impl Options {
    fn take(&mut self, option: &str, version: Version, kind: Kind, uri: &str) -> Result<(), UriError> {
        let (name, value) = option
            .split_once('=')
            .ok_or_else(|| UriError::NoValue { uri: uri.to_owned(), option: option.to_owned() })?;
        match (name, kind) {
            (PAYLOAD, _) => {
                let bytes = value.parse().ok().filter(|bytes| PAYLOAD_BYTES.contains(bytes));
                let bad = || UriError::BadPayloadSize { uri: uri.to_owned(), value: value.to_owned() };
                self.max_payload_bytes = Some(bytes.ok_or_else(bad)?);
            }
            (TARGET, Kind::Hub) if self.target.is_none() => self.target = Some(Host::parse(value, uri)?),
            (RELIABLE, Kind::Udp) if version == Version::V2_0 => {
                let bad = |_| UriError::BadReliable { uri: uri.to_owned(), value: value.to_owned() };
                self.reliable = Some(value.parse().map_err(bad)?);
            }
            (_, Kind::Udp) => {
                return Err(UriError::UnknownOption { uri: uri.to_owned(), option: name.to_owned() });
            }
            _ => self.ignored.push(option.to_owned()),
        }
        Ok(())
    }
}

impl Host {
    fn parse(text: &str, uri: &str) -> Result<Self, UriError> {
        let bad = || UriError::BadHost { uri: uri.to_owned(), host: text.to_owned() };
        let (name, port) = match text.strip_prefix('[') {
            Some(rest) => rest.split_once("]:").ok_or_else(bad)?,
            None => text.split_once(':').ok_or_else(bad)?,
        };
        let digits = port.bytes().all(|digit| digit.is_ascii_digit());
        let port = port.parse().ok().filter(|port| digits && *port != 0).ok_or_else(bad)?;
        if name.is_empty() || name.contains(['[', ']']) {
            return Err(bad());
        }
        Ok(Host { name: name.to_owned(), port })
    }
}

impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, near, target) = match &self.route {
            Route::Udp(host) => (Kind::Udp, host, None),
            Route::Tcp(host) => (Kind::Tcp, host, None),
            Route::Hub { hub, target } => (Kind::Hub, hub, Some(target)),
        };
        let scheme = SCHEMES.iter().find(|(_, version, known)| (*version, *known) == (self.version, kind));
        write!(f, "{}://{near}", scheme.map_or("", |(scheme, ..)| scheme))?;
        let mut mark = '?';
        if let Some(target) = target {
            write!(f, "{mark}{TARGET}={target}")?;
            mark = '&';
        }
        if let Some(bytes) = self.max_payload_bytes {
            write!(f, "{mark}{PAYLOAD}={bytes}")?;
            mark = '&';
        }
        if let Some(reliable) = self.reliable {
            write!(f, "{mark}{RELIABLE}={reliable}")?;
            mark = '&';
        }
        for option in &self.ignored {
            write!(f, "{mark}{option}")?;
            mark = '&';
        }
        Ok(())
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (open, close) = if self.name.contains(':') { ("[", "]") } else { ("", "") };
        write!(f, "{open}{}{close}:{}", self.name, self.port)
    }
}

fn known_schemes() -> String {
    SCHEMES.iter().map(|(scheme, ..)| *scheme).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn host(name: &str, port: u16) -> Host {
        Host { name: name.to_owned(), port }
    }

    #[test]
    fn every_scheme_is_read() {
        let read = |text: &str| {
            let uri: Uri = text.parse().unwrap();
            assert_eq!(uri.ignored, Vec::<String>::new());
            (uri.version, uri.route, uri.max_payload_bytes)
        };
        let board = || host("board-1.lab", 50001);
        let hub = || Route::Hub { hub: host("hub", 10203), target: board() };
        assert_eq!(read("ipbusudp-2.0://board-1.lab:50001"), (Version::V2_0, Route::Udp(board()), None));
        assert_eq!(read("ipbusudp-1.3://board-1.lab:50001"), (Version::V1_3, Route::Udp(board()), None));
        assert_eq!(read("ipbustcp-2.0://board-1.lab:50001"), (Version::V2_0, Route::Tcp(board()), None));
        assert_eq!(read("ipbustcp-1.3://board-1.lab:50001"), (Version::V1_3, Route::Tcp(board()), None));
        assert_eq!(read("chtcp-2.0://hub:10203?target=board-1.lab:50001"), (Version::V2_0, hub(), None));
        assert_eq!(read("chtcp-1.3://hub:10203?target=board-1.lab:50001"), (Version::V1_3, hub(), None));
        let sized = "chtcp-2.0://hub:10203?max_payload_size=8000&target=board-1.lab:50001";
        assert_eq!(read(sized), (Version::V2_0, hub(), Some(8000)));
        let address = Route::Udp(host("::1", 7));
        assert_eq!(read("ipbusudp-2.0://[::1]:7?max_payload_size=9000"), (Version::V2_0, address, Some(9000)));
        assert_eq!(read(" ipbusudp-2.0:// board-1.lab : 50001 ? "), (Version::V2_0, Route::Udp(board()), None));
    }

    #[test]
    fn what_has_no_effect_is_told() {
        let ignored = |text: &str| text.parse::<Uri>().unwrap().ignored;
        assert_eq!(ignored("ipbustcp-2.0://a:1?foo=1&target=b:2"), ["foo=1", "target=b:2"]);
        assert_eq!(ignored("chtcp-2.0://a:1?target=b:2&target=c:3"), ["target=c:3"]);
    }

    #[test]
    fn what_is_written_reads_the_same() {
        for text in [
            "ipbusudp-2.0://127.0.0.1:50001",
            "ipbusudp-1.3://[fe80::1]:50001?max_payload_size=1000",
            "ipbusudp-2.0://a:1?max_payload_size=64&reliable=false",
            "ipbustcp-2.0://a:1?x=y",
            "chtcp-2.0://hub:10203?target=board:50001&max_payload_size=8000&a=b",
        ] {
            assert_eq!(text.parse::<Uri>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_uri_says_why() {
        for (text, why) in [
            ("", "`` is not the URI of a device; write it as `ipbusudp-2.0://board:50001`"),
            ("nonsense", "`nonsense` is not the URI of a device; write it as `ipbusudp-2.0://board:50001`"),
            (
                "IPBUSUDP-2.0://a:1",
                "unknown scheme `IPBUSUDP-2.0` in `IPBUSUDP-2.0://a:1`; the known ones are ipbusudp-2.0, ipbustcp-2.0, \
                 chtcp-2.0, ipbusudp-1.3, ipbustcp-1.3, chtcp-1.3",
            ),
            (
                "ipbuspcie-2.0:///dev/a,/dev/b",
                "`ipbuspcie-2.0` is of a device inside this computer, which is not supported here; boards are reached over \
                 the network, by ipbusudp, ipbustcp or chtcp",
            ),
            (
                "ipbusmmap-2.0:///dev/a?offset=0x10",
                "`ipbusmmap-2.0` is of a device inside this computer, which is not supported here; boards are reached over \
                 the network, by ipbusudp, ipbustcp or chtcp",
            ),
            (
                "ipbusudp-2.0://board",
                "`board` in `ipbusudp-2.0://board` is not a host and port; write them as `board:50001`",
            ),
            (
                "chtcp-2.0://hub:10203?target=board",
                "`board` in `chtcp-2.0://hub:10203?target=board` is not a host and port; write them as `board:50001`",
            ),
            (
                "chtcp-2.0://hub:10203",
                "`chtcp-2.0://hub:10203` does not say which board is behind the hub; add `?target=board:50001`",
            ),
            (
                "ipbusudp-2.0://a:1?max_payload_size",
                "option `max_payload_size` in `ipbusudp-2.0://a:1?max_payload_size` has no value; write \
                 max_payload_size=…",
            ),
            (
                "ipbusudp-2.0://a:1?target=b:2",
                "unknown option `target` in `ipbusudp-2.0://a:1?target=b:2`; over UDP there is max_payload_size, and in \
                 version 2.0 reliable",
            ),
            (
                "ipbusudp-2.0://a:1?reliable=0",
                "reliable in `ipbusudp-2.0://a:1?reliable=0` cannot be `0`: it is true or false",
            ),
            (
                "ipbusudp-2.0://a:1?max_payload_size=63",
                "max_payload_size in `ipbusudp-2.0://a:1?max_payload_size=63` cannot be `63`: it takes bytes from 64 to \
                 65507",
            ),
        ] {
            assert_eq!(text.parse::<Uri>().unwrap_err().to_string(), why);
        }
        for place in
            [":1", "a:", "a:0", "a:70000", "a:+1", "a:1:2", "::1:7", "[::1]", "[::1:7", "a]:1", "a:1#x", "a:1/"]
        {
            let text = alloc::format!("ipbusudp-2.0://{place}");
            let error = text.parse::<Uri>().unwrap_err();
            assert!(matches!(error, UriError::BadHost { .. }), "{text}: {error}");
        }
    }
}
