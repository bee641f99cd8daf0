use hodo_io::nic::Interface;
use hodo_io::resolve;
use std::net::{IpAddr, SocketAddr};
use thiserror::Error;

/// An entry of an address list: `host[:port][,ttl][@interface]`, where addresses of IPv6 stand in brackets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AddressEntry {
    /// The address and port.
    pub address: SocketAddr,
    /// How many hops datagrams to a multicast group may go: 1, within the subnet, unless given.
    pub hops: Option<u8>,
    /// The index of the interface by which datagrams to a multicast group leave, or by which they are received.
    pub interface: Option<u32>,
}

/// A mistake in an entry of an address list.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EntryError {
    /// The interface stands before the hops.
    #[error("the number of hops comes before the interface: write `host[:port][,ttl][@interface]`")]
    Order,
    /// The number of hops is none.
    #[error("`{0}` is not a number of hops in 1..=255")]
    Hops(String),
    /// There is no such interface.
    #[error("this host has no interface with the name or address `{0}`")]
    Interface(String),
    /// The host or the port is wrong.
    #[error("{0}")]
    Host(String),
}

impl AddressEntry {
    /// Parses an entry; `host` tells the interfaces there are. A name of a host is looked up.
    ///
    /// # Errors
    /// An [`EntryError`].
    pub fn parse(text: &str, default_port: u16, host: &[Interface]) -> Result<Self, EntryError> {
        let (rest, interface) = match text.split_once('@') {
            Some((rest, name)) => (rest, Some(name)),
            None => (text, None),
        };
        if interface.is_some_and(|name| name.contains(',')) {
            return Err(EntryError::Order);
        }
        let (authority, hops) = match rest.split_once(',') {
            Some((authority, hops)) => {
                let number = hops.parse().ok().filter(|number| *number > 0);
                (authority, Some(number.ok_or_else(|| EntryError::Hops(hops.to_owned()))?))
            }
            None => (rest, None),
        };
        let interface = interface.map(|name| index(name, host)).transpose()?;
        let address = resolve(authority, default_port).map_err(|why| EntryError::Host(why.to_string()))?;
        Ok(AddressEntry { address, hops, interface })
    }
}

fn index(name: &str, host: &[Interface]) -> Result<u32, EntryError> {
    let address: Option<IpAddr> = name.trim_matches(['[', ']']).parse().ok();
    let is_it = |one: &&Interface| one.name == name || (address.is_some() && one.address == address);
    host.iter().find(is_it).map(|one| one.index).ok_or_else(|| EntryError::Interface(name.to_owned()))
}
