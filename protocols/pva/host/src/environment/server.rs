//! The sockets of a server as its settings ask for them.

use crate::environment::{AddressEntry, ServerNetwork};
use hodo_io::nic::Interface;
use hodo_io::{Multicast, PortOptions};
use hodo_machine::Address;
use hodo_pva::discovery::{LOCAL_GROUP, Subnet};
use hodo_pva::server::DiscoveryConfig;
use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Binds a port for datagrams, and returns the address that it is bound to.
pub type BindPort<'a> = dyn FnMut(&Address, &PortOptions) -> io::Result<Address> + 'a;

/// The broadcast address of the loopback, which no interface is known by.
const LOOPBACK_BROADCAST: Ipv4Addr = Ipv4Addr::new(127, 255, 255, 255);

impl ServerNetwork {
    /// Returns the same settings for a server that is found on this host alone, if no interface is set.
    #[must_use]
    pub fn or_loopback(mut self) -> Self {
        if self.interfaces.is_empty() {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            self.interfaces.push(AddressEntry { address, hops: None, interface: None });
        }
        self
    }

    /// Listens at each address of the settings, and returns the addresses, which have one port. It is another one than that of the
    /// settings if that is in use.
    ///
    /// # Errors
    /// Returns the error of `listen`.
    pub fn listen(
        &self,
        host: &[Interface],
        listen: &mut dyn FnMut(&Address) -> io::Result<Address>,
    ) -> io::Result<Vec<Address>> {
        let mut bound: Vec<Address> = Vec::new();
        let mut port = self.port;
        for ip in self.addresses(host) {
            let own = self.interfaces.iter().find(|one| one.address.ip() == ip).map_or(0, |one| one.address.port());
            let asked = if own != 0 { own } else { port };
            let at = |port| Address::Tcp(SocketAddr::new(ip, port));
            let address = match listen(&at(asked)) {
                Err(error) if error.kind() == ErrorKind::AddrInUse && bound.is_empty() => listen(&at(0)),
                other => other,
            }?;
            if own == 0 {
                port = address.ip().map_or(0, |ip| ip.port());
            }
            bound.push(address);
        }
        Ok(bound)
    }

    /// Binds the ports by which a server that listens at a TCP port is found, and returns the settings of its discovery.
    ///
    /// # Errors
    /// Returns the error of `bind`.
    pub fn bind(&self, host: &[Interface], tcp_port: u16, bind: &mut BindPort<'_>) -> io::Result<DiscoveryConfig> {
        let loopback = host.iter().find(|one| one.is_loopback).map(|one| one.index);
        let mut groups = self.groups(host);
        groups.extend(loopback.map(|index| (IpAddr::V4(LOCAL_GROUP), index)));
        let (groups, groups_of_6) = groups.into_iter().partition(|(group, _)| group.is_ipv4());
        let options = PortOptions { common: true, broadcast: true, tells_arrival: true, ..PortOptions::default() };
        let any = |ip: IpAddr, port| Address::Udp(SocketAddr::new(ip, port));
        let options_of_4 = PortOptions { groups, ..options.clone() };
        let from = number(&bind(&any(Ipv4Addr::UNSPECIFIED.into(), self.broadcast_port), &options_of_4)?);
        if self.addresses(host).iter().any(IpAddr::is_ipv6) || !groups_of_6.is_empty() {
            let options = PortOptions { only_ipv6: true, groups: groups_of_6, ..options };
            bind(&any(Ipv6Addr::UNSPECIFIED.into(), from), &options)?;
        }
        let group = match loopback {
            None => None,
            Some(interface) => {
                let multicast = Some(Multicast { interface, hops: 1 });
                // Bound to the loopback's address, since programs take what is passed on only from there.
                let options = PortOptions { multicast, ..PortOptions::default() };
                let port = number(&bind(&any(Ipv4Addr::LOCALHOST.into(), 0), &options)?);
                Some(Address::UdpFrom(port, (LOCAL_GROUP, from).into()))
            }
        };
        let mut ways = Ways { from, ports: HashMap::new() };
        let targets = self.beacon_targets(host, from);
        let beacons = targets.iter().map(|entry| ways.to(entry, bind)).collect::<io::Result<_>>()?;
        Ok(DiscoveryConfig {
            port: tcp_port,
            from,
            near: near(host),
            interfaces: self.arrivals(host),
            ignored: self.ignored.clone(),
            group,
            beacons,
            ..DiscoveryConfig::default()
        })
    }

    /// Returns the addresses of this host at which the server is found.
    fn addresses(&self, host: &[Interface]) -> Vec<IpAddr> {
        let mut listed: Vec<IpAddr> = self.interfaces.iter().map(|one| one.address.ip()).collect();
        listed.retain(|ip| !ip.is_multicast());
        let has_ipv6 = host.iter().any(|one| one.address.is_some_and(|ip| ip.is_ipv6()));
        if listed.is_empty() || listed.iter().any(IpAddr::is_unspecified) {
            // One socket for both versions.
            let any = if has_ipv6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
            return vec![any];
        }
        listed
    }

    /// Returns the groups that are listed, each with an interface: with none given, all that take part in multicast.
    fn groups(&self, host: &[Interface]) -> Vec<(IpAddr, u32)> {
        let mut groups = Vec::new();
        for entry in self.interfaces.iter().filter(|entry| entry.address.ip().is_multicast()) {
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

    /// Returns the addresses that searches may come to; none for all.
    fn arrivals(&self, host: &[Interface]) -> Vec<IpAddr> {
        let mut arrivals: Vec<IpAddr> = self.addresses(host);
        if arrivals.iter().any(IpAddr::is_unspecified) {
            return Vec::new();
        }
        let broadcasts = broadcasts(&arrivals, host);
        if arrivals.iter().any(|ip| !ip.is_loopback()) {
            arrivals.push(Ipv4Addr::BROADCAST.into());
        }
        arrivals.extend(broadcasts);
        arrivals.extend(self.interfaces.iter().map(|entry| entry.address.ip()).filter(IpAddr::is_multicast));
        arrivals
    }

    fn beacon_targets(&self, host: &[Interface], port: u16) -> Vec<AddressEntry> {
        let mut targets = self.beacons.clone();
        for entry in targets.iter_mut().filter(|entry| entry.address.port() == 0) {
            entry.address.set_port(port);
        }
        if self.auto_beacons {
            let of = broadcasts(&self.addresses(host), host);
            let entry = |ip| AddressEntry { address: SocketAddr::new(ip, port), hops: None, interface: None };
            targets.extend(of.into_iter().map(entry));
        }
        let mut once: Vec<AddressEntry> = Vec::new();
        targets.retain(|entry| {
            !once.contains(entry) && {
                once.push(*entry);
                true
            }
        });
        targets
    }
}

/// Returns the subnets of the interfaces that are up.
fn near(host: &[Interface]) -> Vec<Subnet> {
    let up = host.iter().filter(|one| one.is_up);
    up.filter_map(|one| Some(Subnet::new(one.address?, one.prefix))).collect()
}

/// Returns the broadcast addresses of the subnets of these addresses of this host.
fn broadcasts(of: &[IpAddr], host: &[Interface]) -> Vec<IpAddr> {
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
struct Ways {
    from: u16,
    ports: HashMap<(bool, Multicast), u16>,
}

impl Ways {
    /// Returns the address by which an entry is reached.
    fn to(&mut self, entry: &AddressEntry, bind: &mut BindPort<'_>) -> io::Result<Address> {
        let AddressEntry { address, hops, interface } = *entry;
        if !address.ip().is_multicast() {
            return Ok(Address::UdpFrom(self.from, address));
        }
        let multicast = Multicast { interface: interface.unwrap_or(0), hops: hops.unwrap_or(1) };
        let key = (address.is_ipv4(), multicast);
        if let Some(port) = self.ports.get(&key) {
            return Ok(Address::UdpFrom(*port, address));
        }
        let ip: IpAddr = if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let options = PortOptions { multicast: Some(multicast), ..PortOptions::default() };
        let port = number(&bind(&Address::Udp(SocketAddr::new(ip, 0)), &options)?);
        self.ports.insert(key, port);
        Ok(Address::UdpFrom(port, address))
    }
}

fn number(bound: &Address) -> u16 {
    bound.ip().map_or(0, |ip| ip.port())
}
