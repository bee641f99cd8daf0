//! Searches that were sent to one address of a host where several programs share the port: only one of them receives such a datagram. It
//! passes the search on to a group on the loopback interface, with a tag in front that says where it was sent to.

use crate::discovery::subnet::is_on_link;
use crate::discovery::{LOCAL_GROUP, Mail, Piece, Subnet};
use crate::wire::discovery::{Search, UNICAST, encode_origin_tag};
use crate::wire::{HEADER, Message, Side};
use crate::{Order, Writer};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv6Addr, SocketAddr};
use hodo_machine::{Address, Ends};

/// The way that a datagram took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// From its sender.
    Direct,
    /// Over the group on the loopback interface, from a program of this host.
    PassedOn,
    /// Over that group, from this program itself.
    Own,
}

/// The part of a program that passes searches on, and decides where answers may go.
#[derive(Debug, Clone, Default)]
pub(crate) struct Relay {
    /// Where searches are passed on to.
    pub(crate) group: Option<Address>,
    /// The subnets of this host's interfaces.
    pub(crate) near: Vec<Subnet>,
}

impl Relay {
    /// Returns the way that a datagram took.
    pub(crate) fn way(&self, ends: &Ends) -> Way {
        let (Some(local), Some(remote)) = (ends.local.ip(), ends.remote.ip()) else { return Way::Direct };
        if local.ip() != IpAddr::V4(LOCAL_GROUP) {
            return Way::Direct;
        }
        match self.group {
            Some(Address::UdpFrom(port, _)) if port == remote.port() && remote.ip().is_loopback() => Way::Own,
            _ => Way::PassedOn,
        }
    }

    /// Returns whether an address is on a subnet of this host.
    pub(crate) fn is_near(&self, address: IpAddr) -> bool {
        is_on_link(address) || self.near.iter().any(|subnet| subnet.contains(address))
    }

    /// Returns where the answer to a search goes: to the address that it names, if that is near or its sender's, and otherwise to its
    /// sender. `None` if it goes nowhere, or the sender is no IP address.
    pub(crate) fn target(&self, search: &Search<'_>, ends: &Ends, way: Way) -> Option<SocketAddr> {
        let sender = ends.remote.ip()?;
        if search.address.is_multicast() || (search.address.is_unspecified() && way == Way::PassedOn) {
            return None;
        }
        let named = if search.address.is_unspecified() { sender.ip() } else { search.address };
        let may_name = way == Way::PassedOn || self.is_near(named);
        Some(if search.port != 0 && may_name { SocketAddr::new(named, search.port) } else { sender })
    }

    /// Passes a search on if it was sent to this host alone; returns whether it was, or `None` if it is not to be.
    pub(crate) fn pass_on(
        &self,
        piece: &Piece<'_>,
        search: &Search<'_>,
        ends: &Ends,
        mail: &mut Mail,
        may: impl FnOnce() -> bool,
    ) -> Option<bool> {
        let (group, local) = (self.group.clone()?, ends.local.ip()?.ip());
        if search.flags & UNICAST == 0 || self.way(ends) != Way::Direct || local.is_multicast() {
            return None;
        }
        let answer = self.target(search, ends, Way::Direct)?;
        Some(may() && mail.post(group, |into| passed_on(&piece.message, piece.bytes, local, answer, into)))
    }
}

/// Writes the datagram that passes a search on: a tag with the address that it was sent to, and the search itself, which names the address
/// for the answer and is not to be passed on again.
fn passed_on(message: &Message<'_>, bytes: &[u8], sent_to: IpAddr, answer: SocketAddr, into: &mut Vec<u8>) {
    const FLAGS: usize = HEADER + 4;
    const ADDRESS: usize = HEADER + 8;
    const PORT: usize = ADDRESS + 16;
    let mut tag = Writer::new(Side::Client, Order::Big);
    encode_origin_tag(sent_to, &mut tag);
    tag.move_to(into);
    let at = into.len();
    into.extend_from_slice(bytes);
    let search = &mut into[at..];
    search[FLAGS] &= !UNICAST;
    search[ADDRESS..PORT].copy_from_slice(&mapped(answer.ip()).octets());
    search[PORT..PORT + 2].copy_from_slice(&message.order.bytes_16(answer.port()));
}

fn mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}
