use core::net::{IpAddr, Ipv6Addr};

/// A subnet: the addresses that begin with the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subnet {
    address: IpAddr,
    prefix: u8,
}

impl Subnet {
    /// Returns the subnet of an address whose first `prefix` bits are shared by all its members.
    #[must_use]
    pub const fn new(address: IpAddr, prefix: u8) -> Self {
        Subnet { address, prefix }
    }

    /// Returns whether an address belongs to the subnet.
    #[must_use]
    pub fn contains(&self, other: IpAddr) -> bool {
        let shared = match (self.address, other.to_canonical()) {
            (IpAddr::V4(a), IpAddr::V4(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
            (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
            _ => return false,
        };
        shared >= u32::from(self.prefix)
    }
}

/// Returns whether an address is this host's own, or one that only this link has.
pub(crate) fn is_on_link(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => address.is_loopback() || address.is_link_local(),
        IpAddr::V6(address) => address == Ipv6Addr::LOCALHOST || address.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_share_the_first_bits() {
        let ip = |text: &str| text.parse::<IpAddr>().expect("an address");
        for (address, prefix, other, is_member) in [
            ("10.1.2.3", 24, "10.1.2.200", true),
            ("10.1.2.3", 24, "10.1.3.3", false),
            ("10.1.2.3", 24, "::ffff:10.1.2.7", true),
            ("10.1.2.3", 32, "10.1.2.3", true),
            ("10.1.2.3", 0, "99.1.2.3", true),
            ("10.1.2.3", 0, "fe80::1", false),
            ("2001:db8::1", 64, "2001:db8::ffff", true),
            ("2001:db8::1", 64, "2001:db8:0:1::1", false),
        ] {
            assert_eq!(Subnet::new(ip(address), prefix).contains(ip(other)), is_member, "{address}/{prefix} {other}");
        }
        assert!(is_on_link(ip("127.0.0.9")) && is_on_link(ip("::1")) && is_on_link(ip("fe80::2")));
        assert!(!is_on_link(ip("10.1.2.3")) && !is_on_link(ip("2001:db8::1")));
    }
}
