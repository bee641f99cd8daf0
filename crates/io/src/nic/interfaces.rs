#![allow(unsafe_code)]

use std::ffi::CStr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ptr;

/// One address of a network interface; an interface without addresses has one entry as well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// The name.
    pub name: String,
    /// The index, as the kernel counts interfaces.
    pub index: u32,
    /// Whether it is the loopback.
    pub is_loopback: bool,
    /// Whether it is switched on.
    pub is_up: bool,
    /// Whether it takes part in multicast.
    pub has_multicast: bool,
    /// The address.
    pub address: Option<IpAddr>,
    /// How many of the first bits of the address are those of its subnet.
    pub prefix: u8,
    /// The address that reaches all hosts of the subnet.
    pub broadcast: Option<IpAddr>,
}

/// Returns the interfaces of this network namespace, with an entry for each of their addresses; none if the kernel does not tell them.
#[must_use]
pub fn interfaces() -> Vec<Interface> {
    let mut first: *mut libc::ifaddrs = ptr::null_mut();
    // SAFETY: the pointer is to a pointer that outlives the call.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut next = first;
    // SAFETY: getifaddrs has made a list that ends with null and that lives, with all it points to, until freeifaddrs;
    // what is kept of it is copied.
    while let Some(entry) = unsafe { next.as_ref() } {
        // SAFETY: ifa_name is a string of that list.
        let name = unsafe { CStr::from_ptr(entry.ifa_name) };
        let has = |flag: libc::c_int| entry.ifa_flags & flag as u32 != 0;
        // SAFETY: each is null or a socket address of that list, as long as its family says.
        let (address, mask, broadcast) =
            unsafe { (ip_of(entry.ifa_addr), ip_of(entry.ifa_netmask), ip_of(entry.ifa_ifu)) };
        let prefix = mask.map_or(0, bits);
        found.push(Interface {
            // SAFETY: the name ends with a zero.
            index: unsafe { libc::if_nametoindex(name.as_ptr()) },
            name: name.to_string_lossy().into_owned(),
            is_loopback: has(libc::IFF_LOOPBACK),
            is_up: has(libc::IFF_UP),
            has_multicast: has(libc::IFF_MULTICAST),
            address,
            prefix,
            // Otherwise it is the far end of a tunnel. `ip address add` sets none by itself.
            broadcast: broadcast
                .filter(|told| Some(*told) != address && !told.is_unspecified())
                .or_else(|| address.and_then(|ip| last_of_subnet(ip, prefix)))
                .filter(|_| has(libc::IFF_BROADCAST)),
        });
        next = entry.ifa_next;
    }
    // SAFETY: the list of getifaddrs, freed once; no reference into it is left.
    unsafe { libc::freeifaddrs(first) };
    found
}

/// Returns the last address of an IPv4 subnet, which reaches all its hosts; none for subnets of one or two addresses.
fn last_of_subnet(address: IpAddr, prefix: u8) -> Option<IpAddr> {
    match address {
        IpAddr::V4(ip) if (1..31).contains(&prefix) => Some(Ipv4Addr::from(ip.to_bits() | u32::MAX >> prefix).into()),
        _ => None,
    }
}

fn bits(mask: IpAddr) -> u8 {
    let ones = match mask {
        IpAddr::V4(mask) => mask.to_bits().leading_ones(),
        IpAddr::V6(mask) => mask.to_bits().leading_ones(),
    };
    ones as u8
}

/// Reads the IP address of a socket address, if it has one.
///
/// # Safety
/// `address` is null or points to a socket address that is as long as its family says.
unsafe fn ip_of(address: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: the caller's promise; reads are unaligned because nobody promised an alignment.
    unsafe {
        if address.is_null() {
            return None;
        }
        match libc::c_int::from(address.read_unaligned().sa_family) {
            libc::AF_INET => {
                let v4 = address.cast::<libc::sockaddr_in>().read_unaligned();
                Some(Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr)).into())
            }
            libc::AF_INET6 => {
                let v6 = address.cast::<libc::sockaddr_in6>().read_unaligned();
                Some(Ipv6Addr::from(v6.sin6_addr.s6_addr).into())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subnet_is_reached_at_its_last_address() {
        let last = |ip: [u8; 4], prefix| last_of_subnet(Ipv4Addr::from(ip).into(), prefix);
        assert_eq!(last([10, 99, 0, 1], 24), Some(Ipv4Addr::new(10, 99, 0, 255).into()));
        assert_eq!(last([10, 99, 0, 1], 12), Some(Ipv4Addr::new(10, 111, 255, 255).into()));
        assert_eq!(last([10, 99, 0, 1], 30), Some(Ipv4Addr::new(10, 99, 0, 3).into()));
        assert_eq!((last([10, 0, 0, 1], 31), last([10, 0, 0, 1], 32), last([10, 0, 0, 1], 0)), (None, None, None));
        assert_eq!(last_of_subnet(Ipv6Addr::LOCALHOST.into(), 64), None);
    }

    #[test]
    fn the_loopback_has_its_subnet_and_index() {
        let all = interfaces();
        let loopback = all.iter().find(|one| one.address == Some(Ipv4Addr::LOCALHOST.into())).expect("it is there");
        assert_eq!((loopback.prefix, loopback.is_loopback, loopback.broadcast), (8, true, None));
        let index = std::fs::read_to_string(format!("/sys/class/net/{}/ifindex", loopback.name)).expect("it is there");
        assert_eq!(index.trim(), loopback.index.to_string());
        for one in all.iter().filter(|one| one.broadcast.is_some()) {
            assert!(one.address.is_some_and(|address| address.is_ipv4()), "{one:?}");
        }
    }
}
