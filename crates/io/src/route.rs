//! The route of packets to an address: `RTM_GETROUTE` (linux/rtnetlink.h). Nothing is sent to the network.
//!
//! | bytes | field of `struct rtmsg` |
//! |---|---|
//! | 0 | family |
//! | 1 | bits of the destination |
//! | 7 | type: 1 unicast, 2 an address of this host |

use crate::netlink::{attribute, encoded, query, u32_at};
use crate::nic::interfaces;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;
/// Bytes of `struct rtmsg`.
const FIXED: usize = 12;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_METRICS: u16 = 8;
const RTAX_MTU: u16 = 2;
const RTN_LOCAL: u8 = 2;

/// The way that packets to an address take, as the kernel knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The interface that they leave by.
    pub interface: String,
    /// The next hop; `None` if the address is on the interface's own network.
    pub gateway: Option<IpAddr>,
    /// The largest packet that the path takes, if the route says so or a router has reported it; else it is the interface's.
    pub mtu: Option<u32>,
    /// Whether the address is this host's own.
    pub is_local: bool,
}

impl Route {
    /// Returns the route to an address.
    ///
    /// # Errors
    /// Returns the operating system's error if there is no way there.
    pub fn to(remote: IpAddr) -> io::Result<Route> {
        let (family, address) = match remote {
            IpAddr::V4(v4) => (libc::AF_INET, v4.octets().to_vec()),
            IpAddr::V6(v6) => (libc::AF_INET6, v6.octets().to_vec()),
        };
        let mut request = vec![0; FIXED];
        (request[0], request[1]) = (family as u8, (8 * address.len()) as u8);
        request.extend(encoded(RTA_DST, &address));
        let found = query(RTM_GETROUTE, 0, &request, RTM_NEWROUTE)?;
        let names = interfaces();
        let name_of = |index| names.iter().find(|each| each.index == index).map(|each| each.name.clone());
        found.first().and_then(|body| parse(body, name_of)).ok_or_else(|| io::ErrorKind::HostUnreachable.into())
    }
}

fn parse(body: &[u8], name_of: impl Fn(u32) -> Option<String>) -> Option<Route> {
    let attributes = body.get(FIXED..)?;
    let metrics = attribute(attributes, RTA_METRICS).unwrap_or(&[]);
    Some(Route {
        interface: attribute(attributes, RTA_OIF).and_then(|value| name_of(u32_at(value, 0)?))?,
        gateway: attribute(attributes, RTA_GATEWAY).and_then(ip),
        mtu: attribute(metrics, RTAX_MTU).and_then(|value| u32_at(value, 0)).filter(|mtu| *mtu > 0),
        is_local: body[7] == RTN_LOCAL,
    })
}

fn ip(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(|octets| Ipv4Addr::from(octets).into());
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(|octets| Ipv6Addr::from(octets).into())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_read_from_its_attributes() {
        let fixed = [2, 32, 0, 0, 254, 0, 0, 1, 0, 2, 0, 0];
        let body = [
            fixed.to_vec(),
            encoded(RTA_OIF, &3_u32.to_ne_bytes()),
            encoded(RTA_GATEWAY, &[10, 0, 0, 1]),
            encoded(RTA_METRICS, &encoded(RTAX_MTU, &1400_u32.to_ne_bytes())),
        ]
        .concat();
        let name_of = |index| (index == 3).then(|| "eth0".to_owned());
        let expected = Route {
            interface: "eth0".into(),
            gateway: Some(Ipv4Addr::new(10, 0, 0, 1).into()),
            mtu: Some(1400),
            is_local: false,
        };
        assert_eq!(parse(&body, name_of), Some(expected));
        for length in 0..body.len() {
            let _ = parse(&body[..length], name_of);
        }
    }

    #[test]
    fn this_host_is_reached_over_its_loopback() {
        let route = Route::to(Ipv4Addr::LOCALHOST.into()).expect("loopback");
        assert_eq!((route.interface.as_str(), route.is_local, route.gateway), ("lo", true, None));
    }
}
