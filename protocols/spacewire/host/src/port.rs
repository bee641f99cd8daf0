//! The names of ports of bridges: `ssdtp2://HOST[:PORT]` and `gresb://HOST[:PORT][?link=0&status=high]`.

use hodo_machine::Address;
use hodo_spacewire::client::Port;
use hodo_spacewire::gresb::{self, StatusBits, VirtualLink};
use hodo_spacewire::ssdtp2;
use std::fmt;
use std::net::SocketAddr;
use thiserror::Error;

/// A port of a bridge, with its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedPort {
    /// The name, with the TCP port of the bridge.
    pub name: String,
    /// The protocol and the addresses.
    pub port: Port,
}

/// The reason that a text names no port.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PortError {
    /// The scheme is missing or another one.
    #[error(
        "`{0}` is no port of a bridge: write ssdtp2://host, ssdtp2://host:10030, gresb://host or gresb://host:3000?link=0"
    )]
    Scheme(String),
    /// The host has no address.
    #[error("`{host}` in `{name}` cannot be resolved: {why}")]
    NoAddress {
        /// The text.
        name: String,
        /// The host and port.
        host: String,
        /// The error of the system.
        why: String,
    },
    /// The option is not known, or has a wrong value.
    #[error("`{name}`: {why}")]
    Option {
        /// The text.
        name: String,
        /// The defect, and the remedy.
        why: String,
    },
}

impl NamedPort {
    /// Parses the name of a port, and looks up the address of its host.
    ///
    /// # Errors
    /// The defect of the name.
    pub fn resolve(name: &str) -> Result<NamedPort, PortError> {
        let no_scheme = || PortError::Scheme(name.to_owned());
        let (scheme, rest) = name.split_once("://").ok_or_else(no_scheme)?;
        let (place, options) = rest.split_once('?').unwrap_or((rest, ""));
        let place = place.strip_suffix('/').unwrap_or(place);
        if place.is_empty() || place.contains('/') {
            return Err(no_scheme());
        }
        let address = |port| {
            hodo_io::resolve(place, port).map_err(|error| PortError::NoAddress {
                name: name.to_owned(),
                host: place.to_owned(),
                why: error.to_string(),
            })
        };
        let wrong = |why: String| PortError::Option { name: name.to_owned(), why };
        let options = options.split('&').filter(|option| !option.is_empty());
        let port = match scheme {
            "ssdtp2" => {
                if let Some(option) = options.into_iter().next() {
                    return Err(wrong(format!("SSDTP2 has no options; leave `{option}` out")));
                }
                Port::Ssdtp2(Address::Tcp(address(ssdtp2::PORT)?))
            }
            "gresb" => {
                let (link, status_bits) = gresb_options(options).map_err(wrong)?;
                let base = address(gresb::PORT_BASE)?;
                let port = |number: u16| {
                    let number = base.port().checked_add(number);
                    let number = number.ok_or_else(|| wrong("the link's ports are beyond 65535".to_owned()))?;
                    Ok(Address::Tcp(SocketAddr::new(base.ip(), number)))
                };
                let first = 2 * u16::from(link.number());
                Port::Gresb { to_bridge: port(first)?, to_host: port(first + 1)?, status_bits }
            }
            _ => return Err(no_scheme()),
        };
        let usual = if matches!(port, Port::Gresb { .. }) { gresb::PORT_BASE } else { ssdtp2::PORT };
        let behind = &rest[place.len()..];
        Ok(NamedPort { name: format!("{scheme}://{}{behind}", hodo_io::with_port(place, usual)), port })
    }
}

impl fmt::Display for NamedPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

fn gresb_options<'a>(options: impl Iterator<Item = &'a str>) -> Result<(VirtualLink, StatusBits), String> {
    let (mut link, mut status_bits) = (VirtualLink::FIRST, StatusBits::default());
    let mut seen: Vec<&str> = Vec::new();
    for option in options {
        let name = option.split_once('=').map_or(option, |(name, _)| name);
        if seen.contains(&name) {
            return Err(format!("the option `{name}` is there twice; leave one of them out"));
        }
        seen.push(name);
        match option.split_once('=') {
            Some(("link", number)) => {
                link = number
                    .parse()
                    .ok()
                    .and_then(VirtualLink::new)
                    .ok_or_else(|| format!("`{number}` is no virtual link; they are 0 to 5"))?;
            }
            Some(("status", "high")) => status_bits = StatusBits::High,
            Some(("status", "low")) => status_bits = StatusBits::Low,
            _ => return Err(format!("`{option}` is no option of GRESB; they are link=0 and status=high or low")),
        }
    }
    Ok((link, status_bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Address {
        Address::Tcp(text.parse().unwrap())
    }

    #[test]
    fn names_have_the_usual_ports() {
        let port = |name| NamedPort::resolve(name).unwrap().port;
        assert_eq!(port("ssdtp2://127.0.0.1"), Port::Ssdtp2(at("127.0.0.1:10030")));
        assert_eq!(port("ssdtp2://[::1]:7/"), Port::Ssdtp2(at("[::1]:7")));
        let gresb = |to_bridge, to_host, status_bits| Port::Gresb {
            to_bridge: at(to_bridge),
            to_host: at(to_host),
            status_bits,
        };
        assert_eq!(port("gresb://127.0.0.1"), gresb("127.0.0.1:3000", "127.0.0.1:3001", StatusBits::default()));
        let second = gresb("127.0.0.1:4004", "127.0.0.1:4005", StatusBits::Low);
        assert_eq!(port("gresb://127.0.0.1:4000?link=2&status=low"), second);
    }

    #[test]
    fn defects_are_named() {
        for (name, told) in [
            ("127.0.0.1:10030", "write ssdtp2://host"),
            ("spw://127.0.0.1", "write ssdtp2://host"),
            ("ssdtp2://", "write ssdtp2://host"),
            ("ssdtp2://127.0.0.1/path", "write ssdtp2://host"),
            ("ssdtp2://127.0.0.1:70000", "70000"),
            ("ssdtp2://127.0.0.1?link=1", "leave `link=1` out"),
            ("gresb://127.0.0.1?link=6", "0 to 5"),
            ("gresb://127.0.0.1?speed=9", "`speed=9`"),
            ("gresb://127.0.0.1?link=1&link=2", "`link` is there twice"),
            ("gresb://127.0.0.1:65530?link=5", "beyond 65535"),
        ] {
            let error = NamedPort::resolve(name).unwrap_err().to_string();
            assert!(error.contains(told), "{name}: {error}");
        }
    }
}
