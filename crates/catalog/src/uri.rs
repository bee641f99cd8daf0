use crate::{Error, protocols, schemes};
use std::fmt;
use std::str::FromStr;

/// A link's name: `[sim+]scheme://[host[:port]][/path][?key=value&…]`, or a protocol's bare name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uri {
    /// Whether the link runs over the simulated network.
    pub simulated: bool,
    /// One of its protocol's schemes.
    pub scheme: &'static str,
    /// Host, or host and port; empty where the far end is to be started here.
    pub authority: String,
    /// The path, with its leading slash; for `unix` the socket's path.
    pub path: String,
    /// The options behind `?`, in order.
    pub options: Vec<(String, String)>,
}

impl Uri {
    /// Whether the URI names no far end, so that one has to be started here.
    #[must_use]
    pub fn wants_far_end(&self) -> bool {
        !self.simulated && self.authority.is_empty() && self.path.is_empty()
    }
}

impl FromStr for Uri {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let bare = || text.split_at(text.find('?').unwrap_or(text.len()));
        let (name, rest) = text.split_once("://").filter(|(name, _)| !name.contains('?')).unwrap_or_else(bare);
        let (simulated, name) = name.strip_prefix("sim+").map_or((false, name), |name| (true, name));
        let named = || protocols().iter().find(|protocol| protocol.name == name).map(|protocol| protocol.schemes[0]);
        let scheme = schemes().find(|known| *known == name).or_else(named).ok_or_else(|| {
            Error::Usage(format!(
                "unknown scheme `{name}` in `{text}`; the known ones are {}, each also as sim+…; a link is written as \
                 tcp or tcp://host:4242",
                schemes().collect::<Vec<_>>().join(", ")
            ))
        })?;
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let slash = place.find('/').unwrap_or(place.len());
        let (authority, path) = place.split_at(slash);
        let mut options = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair
                .split_once('=')
                .ok_or_else(|| Error::Usage(format!("option `{pair}` in `{text}` has no value; write {pair}=…")))?;
            options.push((key.to_owned(), value.to_owned()));
        }
        Ok(Uri { simulated, scheme, authority: authority.to_owned(), path: path.to_owned(), options })
    }
}

impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}://{}{}", if self.simulated { "sim+" } else { "" }, self.scheme, self.authority, self.path)?;
        for (index, (key, value)) in self.options.iter().enumerate() {
            write!(f, "{}{key}={value}", if index == 0 { '?' } else { '&' })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips() {
        for text in ["tcp://127.0.0.1:4242", "udp://[::1]:7", "unix:///tmp/a.sock", "sim+udp://?delay=5us&loss=0.01"] {
            assert_eq!(text.parse::<Uri>().unwrap().to_string(), text);
        }
        assert!("tcp".parse::<Uri>().unwrap().wants_far_end());
        assert_eq!("ipbus".parse::<Uri>().unwrap().to_string(), "ipbusudp-2.0://");
        let bare: Uri = "ipbustcp-1.3?table=file:///a.xml".parse().unwrap();
        assert!(bare.wants_far_end() && bare.options[0].1 == "file:///a.xml");
    }

    #[test]
    fn names_what_is_wrong() {
        let unknown = "ftp://x".parse::<Uri>().unwrap_err().to_string();
        assert!(unknown.contains("`ftp`") && unknown.contains("tcp, udp, unix"), "{unknown}");
        assert!("localhost:4242".parse::<Uri>().unwrap_err().to_string().contains("tcp://host:4242"));
        assert!("sim+udp://?delay".parse::<Uri>().unwrap_err().to_string().contains("delay=…"));
    }
}
