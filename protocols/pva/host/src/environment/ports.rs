//! The ports by which both sides send and receive datagrams.

use crate::environment::AddressEntry;
use hodo_io::nic::Interface;
use hodo_io::{Multicast, PortOptions, any_address};
use hodo_machine::Address;
use hodo_pva::discovery::{LOCAL_GROUP, Subnet};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};

/// Binds a port for datagrams, and returns the address that it is bound to.
pub type BindPort<'a> = dyn FnMut(&Address, &PortOptions) -> io::Result<Address> + 'a;

/// The broadcast address of the loopback, which no interface is known by.
pub(crate) const LOOPBACK_BROADCAST: Ipv4Addr = Ipv4Addr::new(127, 255, 255, 255);

/// Binds the port that all programs of the host share, for each version of IP; returns its number.
pub(crate) fn common(
    host: &[Interface],
    port: u16,
    mut groups: Vec<(IpAddr, u32)>,
    has_ipv6: bool,
    bind: &mut BindPort<'_>,
) -> io::Result<u16> {
    groups.extend(loopback(host).map(|index| (IpAddr::V4(LOCAL_GROUP), index)));
    let (groups, groups_of_6): (Vec<_>, Vec<_>) = groups.into_iter().partition(|(group, _)| group.is_ipv4());
    let options = PortOptions { common: true, broadcast: true, tells_arrival: true, ..PortOptions::default() };
    let options_of_4 = PortOptions { groups, ..options.clone() };
    let number = number(&bind(&any(true, port), &options_of_4)?);
    if has_ipv6 || !groups_of_6.is_empty() {
        let options = PortOptions { only_ipv6: true, groups: groups_of_6, ..options };
        bind(&any(false, number), &options)?;
    }
    Ok(number)
}

/// Binds the port by which searches are passed on to the other programs at a port of this host; returns where to.
pub(crate) fn group(host: &[Interface], port: u16, bind: &mut BindPort<'_>) -> io::Result<Option<Address>> {
    let Some(interface) = loopback(host) else { return Ok(None) };
    let options = PortOptions { multicast: Some(Multicast { interface, hops: 1 }), ..PortOptions::default() };
    // Bound to the loopback's address, since programs take what is passed on only from there.
    let from = number(&bind(&Address::Udp((Ipv4Addr::LOCALHOST, 0).into()), &options)?);
    Ok(Some(Address::UdpFrom(from, (LOCAL_GROUP, port).into())))
}

/// Returns the groups among these entries, each with an interface: with none given, all that take part in multicast.
pub(crate) fn groups(entries: &[AddressEntry], host: &[Interface]) -> Vec<(IpAddr, u32)> {
    let mut groups = Vec::new();
    for entry in entries.iter().filter(|entry| entry.address.ip().is_multicast()) {
        let all = || host.iter().filter(|one| one.is_up && one.has_multicast && !one.is_loopback);
        match entry.interface {
            Some(index) => groups.push((entry.address.ip(), index)),
            None => groups.extend(all().map(|one| (entry.address.ip(), one.index))),
        }
    }
    groups.sort_unstable();
    groups.dedup();
    groups
}

fn loopback(host: &[Interface]) -> Option<u32> {
    host.iter().find(|one| one.is_loopback).map(|one| one.index)
}

/// Returns all addresses of one version of IP, with a port.
pub(crate) fn any(is_ipv4: bool, port: u16) -> Address {
    Address::Udp(any_address(is_ipv4, port))
}

/// Returns the subnets of the interfaces that are up.
pub(crate) fn near(host: &[Interface]) -> Vec<Subnet> {
    let up = host.iter().filter(|one| one.is_up);
    up.filter_map(|one| Some(Subnet::new(one.address?, one.prefix))).collect()
}

/// Returns the broadcast addresses of the subnets of these addresses of this host.
pub(crate) fn broadcasts(of: &[IpAddr], host: &[Interface]) -> Vec<IpAddr> {
    let all = of.iter().any(IpAddr::is_unspecified);
    let is_in = |one: &&Interface| one.is_up && (all || one.address.is_some_and(|ip| of.contains(&ip)));
    let mut found: Vec<IpAddr> = host.iter().filter(is_in).filter_map(|one| one.broadcast).collect();
    if !all && of.iter().any(|ip| ip.is_ipv4() && ip.is_loopback()) {
        found.push(LOOPBACK_BROADCAST.into());
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// The ports that datagrams leave by: groups with an interface or a number of hops have ports of their own.
pub(crate) struct Ways {
    from: u16,
    ports: HashMap<(bool, Multicast), u16>,
}

impl Ways {
    /// Creates ways of which most lead through the port of this number.
    pub(crate) fn new(from: u16) -> Self {
        Ways { from, ports: HashMap::new() }
    }

    /// Returns the address by which an entry is reached.
    pub(crate) fn to(&mut self, entry: &AddressEntry, bind: &mut BindPort<'_>) -> io::Result<Address> {
        let AddressEntry { address, hops, interface } = *entry;
        if !address.ip().is_multicast() {
            return Ok(Address::UdpFrom(self.from, address));
        }
        let multicast = Multicast { interface: interface.unwrap_or(0), hops: hops.unwrap_or(1) };
        let key = (address.is_ipv4(), multicast);
        if let Some(port) = self.ports.get(&key) {
            return Ok(Address::UdpFrom(*port, address));
        }
        let options = PortOptions { multicast: Some(multicast), ..PortOptions::default() };
        let port = number(&bind(&any(address.is_ipv4(), 0), &options)?);
        self.ports.insert(key, port);
        Ok(Address::UdpFrom(port, address))
    }
}

pub(crate) fn number(bound: &Address) -> u16 {
    bound.ip().map_or(0, |ip| ip.port())
}
