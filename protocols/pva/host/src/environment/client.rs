//! The sockets of a client as its settings ask for them.

use crate::environment::ports::{
    BindPort, LOOPBACK_BROADCAST, Ways, any, broadcasts, common, group, groups, near, number,
};
use crate::environment::{AddressEntry, ClientNetwork};
use hodo_io::PortOptions;
use hodo_io::nic::Interface;
use hodo_pva::discovery::{FinderConfig, Target};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

impl ClientNetwork {
    /// Binds the ports by which a client finds servers, and returns the settings of its discovery. If it `hears_beacons`, it shares the port
    /// where searches come to servers of this host, and passes those on that it receives in their place.
    ///
    /// # Errors
    /// Returns the error of `bind`, but for the port of the beacons, without which servers are found as well.
    pub fn bind(&self, host: &[Interface], hears_beacons: bool, bind: &mut BindPort<'_>) -> io::Result<FinderConfig> {
        let targets = self.search_targets(host);
        let options = PortOptions { broadcast: true, ..PortOptions::default() };
        let from = number(&bind(&any(true, 0), &options)?);
        if targets.iter().any(|target| target.address.is_ipv6()) {
            let options = PortOptions { only_ipv6: true, ..options };
            bind(&any(false, from), &options)?;
        }
        let has_ipv6 = host.iter().any(|one| one.address.is_some_and(|ip| ip.is_ipv6()));
        let all = [&self.interfaces[..], &self.targets].concat();
        let port = hears_beacons.then(|| common(host, self.broadcast_port, groups(&all, host), has_ipv6, bind).ok());
        let group = port.flatten().and_then(|port| group(host, port, bind).ok().flatten());
        let broadcasts = broadcasts(&[Ipv4Addr::UNSPECIFIED.into()], host);
        let is_unicast = |ip: IpAddr| {
            let is_broadcast = ip == Ipv4Addr::BROADCAST || ip == LOOPBACK_BROADCAST || broadcasts.contains(&ip);
            !ip.is_multicast() && !is_broadcast
        };
        let mut ways = Ways::new(from);
        let mut target = |entry: &AddressEntry| {
            Ok(Target { address: ways.to(entry, bind)?, is_unicast: is_unicast(entry.address.ip()) })
        };
        let targets = targets.iter().map(&mut target).collect::<io::Result<_>>()?;
        Ok(FinderConfig { targets, from, near: near(host), group, ..FinderConfig::default() })
    }

    /// Returns where searches are sent to: what is listed, and the broadcast addresses of the interfaces and of this host.
    fn search_targets(&self, host: &[Interface]) -> Vec<AddressEntry> {
        let mut targets = self.targets.clone();
        if self.auto_targets {
            let mut interfaces: Vec<IpAddr> = self.interfaces.iter().map(|entry| entry.address.ip()).collect();
            interfaces.retain(|ip| !ip.is_multicast());
            let all = [Ipv4Addr::UNSPECIFIED.into()];
            let mut found = broadcasts(if interfaces.is_empty() { &all } else { &interfaces }, host);
            // Servers that only this host can reach are found, too.
            if interfaces.is_empty() {
                found.push(LOOPBACK_BROADCAST.into());
            }
            let entry =
                |ip| AddressEntry { address: SocketAddr::new(ip, self.broadcast_port), hops: None, interface: None };
            targets.extend(found.into_iter().map(entry).filter(|entry| !self.targets.contains(entry)));
        }
        targets
    }
}
