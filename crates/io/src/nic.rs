//! The network interface that a link leaves by, and its settings. A setting that cannot be known is `None`.

mod counters;
mod ethtool;
mod interfaces;
mod interrupts;
mod queueing;
mod queues;

use crate::resolve::source_towards;
pub use counters::NicCounters;
pub use ethtool::Rings;
pub use interfaces::{Interface, interfaces};
pub use interrupts::Interrupt;
pub use queueing::{QueueDiscipline, QueueLimit};
pub use queues::ReceiveQueues;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// A network interface and its settings, as documents have them too.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "documents", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
pub struct Nic {
    /// The name.
    pub name: String,
    /// The largest packet that it sends.
    #[cfg_attr(feature = "documents", serde(skip))]
    pub mtu: Option<u32>,
    /// Whether it is the loopback, which has no line.
    #[cfg_attr(feature = "documents", serde(skip))]
    pub is_loopback: bool,
    /// Whether no hardware is behind it (`veth`, bridge, VLAN, bond, tunnel), or none is known: its speed is invented
    /// or that of another interface.
    #[cfg_attr(feature = "documents", serde(skip))]
    pub is_virtual: bool,
    /// The driver.
    pub driver: Option<String>,
    /// The speed that it reports; see [`Nic::line_rate_bits_per_s`] before use.
    pub speed_mbit_per_s: Option<u64>,
    /// `full` or `half`.
    pub duplex: Option<String>,
    /// Interrupt coalescence on receive, in microseconds.
    pub rx_usecs: Option<u32>,
    /// Whether the driver adapts `rx_usecs` to the traffic, so that the number is only its initial value.
    pub rx_adaptive: Option<bool>,
    /// Interrupt coalescence on transmit, in microseconds.
    pub tx_usecs: Option<u32>,
    /// Whether the driver adapts `tx_usecs` to the traffic.
    pub tx_adaptive: Option<bool>,
    /// Offloads that are on, by their `ethtool` names.
    pub offloads: Vec<String>,
}

impl Nic {
    /// Returns the interface of this name in this network namespace; `None` if there is none.
    #[must_use]
    pub fn named(name: &str) -> Option<Nic> {
        interfaces().into_iter().find(|interface| interface.name == name).map(|interface| facts(&interface))
    }

    /// Returns every interface in this network namespace that has an address.
    #[must_use]
    pub fn all() -> Vec<Nic> {
        let mut interfaces: Vec<Interface> = interfaces().into_iter().filter(|each| each.address.is_some()).collect();
        interfaces.dedup_by(|a, b| a.name == b.name);
        interfaces.iter().map(facts).collect()
    }

    /// Returns the interface that has this address.
    #[must_use]
    pub fn of_local(address: IpAddr) -> Option<Nic> {
        let interfaces = interfaces();
        let found = if address.is_loopback() {
            interfaces.iter().find(|interface| interface.is_loopback)
        } else {
            interfaces.iter().find(|interface| interface.address == Some(address))
        };
        found.map(facts)
    }

    /// Returns the interface whose address packets to `remote` would carry, by the kernel's routes; nothing is sent.
    ///
    /// An address of this host is reached over the loopback. `None` if there is no route.
    #[must_use]
    pub fn towards(remote: SocketAddr) -> Option<Nic> {
        let local = source_towards(remote)?;
        let is_this_host = local == remote.ip() || remote.ip().is_unspecified();
        Nic::of_local(if is_this_host { Ipv4Addr::LOCALHOST.into() } else { local })
    }

    /// Returns the rings of the interface of this name; `None` if its driver has none.
    #[must_use]
    pub fn rings(name: &str) -> Option<Rings> {
        ethtool::Ethtool::open(name)?.rings()
    }

    /// Returns the names of features of the interface of this name that are off and could be switched on, as the kernel names them:
    /// `tx-tcp-segmentation`, `rx-gro`.
    #[must_use]
    pub fn dormant_features(name: &str) -> Vec<String> {
        ethtool::Ethtool::open(name).map(|driver| driver.dormant_features()).unwrap_or_default()
    }

    /// Returns the rate of the line, if hardware reports one; `None` for the loopback and for virtual interfaces.
    #[must_use]
    pub fn line_rate_bits_per_s(&self) -> Option<f64> {
        if self.is_loopback || self.is_virtual {
            return None;
        }
        self.speed_mbit_per_s.map(|speed| speed as f64 * 1e6)
    }
}

/// Returns the folder of an interface in `/sys`; `None` if `/sys` shows another network namespace.
fn sysfs(name: &str) -> Option<PathBuf> {
    let folder = Path::new("/sys/class/net").join(name);
    let index: u32 = std::fs::read_to_string(folder.join("ifindex")).ok()?.trim().parse().ok()?;
    interfaces().iter().any(|each| each.name == name && each.index == index).then_some(folder)
}

fn facts(interface: &Interface) -> Nic {
    let name = &interface.name;
    let mut facts = Nic {
        name: name.clone(),
        is_loopback: interface.is_loopback,
        is_virtual: !Path::new("/sys/class/net").join(name).join("device").exists(),
        ..Nic::default()
    };
    let Some(ethtool) = ethtool::Ethtool::open(name) else { return facts };
    facts.mtu = ethtool.mtu();
    facts.driver = ethtool.driver();
    if let Some(settings) = ethtool.settings() {
        facts.speed_mbit_per_s = settings.speed_mbit_per_s;
        facts.duplex = settings.duplex.map(String::from);
    }
    if let Some([rx, tx]) = ethtool.coalescence() {
        (facts.rx_usecs, facts.rx_adaptive) = (Some(rx.0), Some(rx.1));
        (facts.tx_usecs, facts.tx_adaptive) = (Some(tx.0), Some(tx.1));
    }
    facts.offloads = ethtool.offloads().into_iter().map(String::from).collect();
    facts
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv6Addr;

    #[test]
    fn loopback_addresses_belong_to_the_loopback() {
        for address in
            [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv4Addr::new(127, 9, 9, 9).into(), Ipv6Addr::LOCALHOST.into()]
        {
            let nic = Nic::of_local(address).expect("every Linux has a loopback");
            assert!(nic.is_loopback && nic.is_virtual);
            assert_eq!(nic.line_rate_bits_per_s(), None);
            assert!(nic.mtu.is_none_or(|mtu| mtu >= 1280));
        }
    }

    #[test]
    fn every_address_of_this_host_leads_to_its_interface() {
        for interface in interfaces() {
            let named = Nic::named(&interface.name).expect("it is in the list");
            assert_eq!((&named.name, named.is_loopback), (&interface.name, interface.is_loopback));
            if let Some(address) = interface.address {
                assert!(Nic::of_local(address).is_some(), "{address}");
            }
        }
    }

    #[test]
    fn an_address_of_this_host_is_reached_over_the_loopback() {
        let here = interfaces().into_iter().filter_map(|interface| interface.address).filter(IpAddr::is_ipv4);
        for address in here.chain([Ipv4Addr::LOCALHOST.into(), Ipv4Addr::UNSPECIFIED.into()]) {
            let nic = Nic::towards(SocketAddr::new(address, 4242));
            assert!(nic.is_none_or(|nic| nic.is_loopback), "{address}");
        }
    }

    #[test]
    fn what_does_not_exist_is_not_found() {
        assert_eq!(Nic::named("no-such-interface-at-all"), None);
        assert_eq!(Nic::named(""), None);
        // A multicast group is nobody's own address.
        assert_eq!(Nic::of_local(Ipv4Addr::new(224, 0, 0, 1).into()), None);
    }

    #[test]
    fn only_hardware_has_a_line_rate() {
        let mut nic = Nic { speed_mbit_per_s: Some(10_000), ..Nic::default() };
        assert_eq!(nic.line_rate_bits_per_s(), Some(1e10));
        nic.is_virtual = true;
        assert_eq!(nic.line_rate_bits_per_s(), None);
    }
}
