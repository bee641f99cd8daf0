//! The sockets of a server as its settings ask for them.

use crate::environment::ports::{BindPort, Ways, broadcasts, common, group, groups, near};
use crate::environment::{AddressEntry, ServerNetwork};
use hodo_io::nic::Interface;
use hodo_machine::Address;
use hodo_pva::server::DiscoveryConfig;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

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

    /// Listens at each address of the settings, and returns the addresses, which have one port. It is another one than the default port
    /// if that is in use; a port that the settings name is taken or refused.
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
            let at = |port| Address::Tcp(self.with_interface(ip, port, host));
            let address = match listen(&at(asked)) {
                Err(error) if error.kind() == ErrorKind::AddrInUse && bound.is_empty() && own == 0 && self.may_move => {
                    listen(&at(0))
                }
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
        let has_ipv6 = self.addresses(host).iter().any(IpAddr::is_ipv6);
        let from = common(host, self.broadcast_port, groups(&self.interfaces, host), has_ipv6, bind)?;
        let group = group(host, from, bind)?;
        let mut ways = Ways::new(from);
        let targets = self.beacon_targets(host, from);
        let beacons = targets.iter().map(|entry| ways.to(entry, bind)).collect::<io::Result<_>>()?;
        Ok(DiscoveryConfig {
            port: tcp_port,
            from,
            near: near(host),
            listens: self.addresses(host).into_iter().filter(|ip| !ip.is_unspecified()).collect(),
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

    /// Returns an address of this host with a port. At a link-local address nothing can listen without its interface: the one that the
    /// settings name, else the one that has the address.
    fn with_interface(&self, ip: IpAddr, port: u16, host: &[Interface]) -> SocketAddr {
        let IpAddr::V6(own) = ip else { return SocketAddr::new(ip, port) };
        let named = |entry: &AddressEntry| match entry.address {
            SocketAddr::V6(address) if address.scope_id() != 0 => Some(address.scope_id()),
            _ => entry.interface,
        };
        let listed = self.interfaces.iter().find(|entry| entry.address.ip() == ip).and_then(named);
        let found = || host.iter().find(|one| one.address == Some(ip)).map_or(0, |one| one.index);
        let interface = if own.is_unicast_link_local() { listed.unwrap_or_else(found) } else { 0 };
        SocketAddrV6::new(own, port, 0, interface).into()
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
